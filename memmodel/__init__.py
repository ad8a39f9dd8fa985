"""memmodel: what the NVIDIA PTX memory model lets a few threads observe.

    >>> import memmodel
    >>> print(memmodel.check("litmus/MP.litmus").explain())

The names below are the library; they load on first use, so that importing memmodel costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, whose import takes longer than all the rest of this file

if TYPE_CHECKING:
    from memmodel.answer import Answer, Budget, Observation, Outcomes
    from memmodel.api import check, explain, outcomes, readings
    from memmodel.batch import Entry
    from memmodel.errors import InputError
    from memmodel.kernel.arguments.kinds import FakeArray, Known, Struct, TiledMap
    from memmodel.kernel.check import check_kernel, check_ptx
    from memmodel.kernel.output.text import explain_kernel
    from memmodel.kernel.repair.search import fix_kernel
    from memmodel.kernel.sequence import check_launches
    from memmodel.kernel.sweep.sweeping import sweep_kernel
    from memmodel.library import ShippedModel, SuiteResult, format, models, parse, suite
    from memmodel.litmus.syntax import LitmusTest
    from memmodel.repair.costs import Costs
    from memmodel.repair.synchronizing.handovers import Agent, DataAccess, HandOverPlan, SharedBuffer, WantedHandOver
    from memmodel.repair.synchronizing.library import sync
    from memmodel.repair.synchronizing.synchronize import Synchronized
    from memmodel.report.readings import ReadingsReport
    from memmodel.report.report import Report
    from memmodel.testing import assert_always, assert_clean, assert_never, assert_sometimes

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Answer",
    "Budget",
    "Costs",
    "DataAccess",
    "Entry",
    "FakeArray",
    "HandOverPlan",
    "InputError",
    "Known",
    "LitmusTest",
    "Observation",
    "Outcomes",
    "ReadingsReport",
    "Report",
    "SharedBuffer",
    "ShippedModel",
    "Struct",
    "SuiteResult",
    "Synchronized",
    "TiledMap",
    "WantedHandOver",
    "__version__",
    "assert_always",
    "assert_clean",
    "assert_never",
    "assert_sometimes",
    "check",
    "check_kernel",
    "check_launches",
    "check_ptx",
    "explain",
    "explain_kernel",
    "fix_kernel",
    "format",
    "models",
    "outcomes",
    "parse",
    "readings",
    "suite",
    "sweep_kernel",
    "sync",
]

_HOME = {
    "Agent": "memmodel.repair.synchronizing.handovers",
    "Answer": "memmodel.answer",
    "Budget": "memmodel.answer",
    "Costs": "memmodel.repair.costs",
    "DataAccess": "memmodel.repair.synchronizing.handovers",
    "Entry": "memmodel.batch",
    "FakeArray": "memmodel.kernel.arguments.kinds",
    "WantedHandOver": "memmodel.repair.synchronizing.handovers",
    "InputError": "memmodel.errors",
    "Known": "memmodel.kernel.arguments.kinds",
    "LitmusTest": "memmodel.litmus.syntax",
    "Observation": "memmodel.answer",
    "Outcomes": "memmodel.answer",
    "HandOverPlan": "memmodel.repair.synchronizing.handovers",
    "ReadingsReport": "memmodel.report.readings",
    "Report": "memmodel.report.report",
    "SharedBuffer": "memmodel.repair.synchronizing.handovers",
    "ShippedModel": "memmodel.library",
    "Struct": "memmodel.kernel.arguments.kinds",
    "SuiteResult": "memmodel.library",
    "Synchronized": "memmodel.repair.synchronizing.synchronize",
    "TiledMap": "memmodel.kernel.arguments.kinds",
    "assert_always": "memmodel.testing",
    "assert_clean": "memmodel.testing",
    "assert_never": "memmodel.testing",
    "assert_sometimes": "memmodel.testing",
    "check": "memmodel.api",
    "check_kernel": "memmodel.kernel.check",
    "check_launches": "memmodel.kernel.sequence",
    "check_ptx": "memmodel.kernel.check",
    "explain": "memmodel.api",
    "explain_kernel": "memmodel.kernel.output.text",
    "fix_kernel": "memmodel.kernel.repair.search",
    "format": "memmodel.library",
    "models": "memmodel.library",
    "outcomes": "memmodel.api",
    "parse": "memmodel.library",
    "readings": "memmodel.api",
    "suite": "memmodel.library",
    "sweep_kernel": "memmodel.kernel.sweep.sweeping",
    "sync": "memmodel.repair.synchronizing.library",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'memmodel' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
