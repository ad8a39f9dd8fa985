"""memmodel: what the NVIDIA PTX memory model lets a few threads observe.

    >>> import memmodel
    >>> print(memmodel.check("litmus/MP.litmus").explain())

The names below are the library; they load on first use, so that importing memmodel costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memmodel.answer import Answer, Budget, Observation, Outcomes
    from memmodel.api import check, explain, outcomes, readings
    from memmodel.errors import InputError
    from memmodel.kernel.check import check_kernel
    from memmodel.report.readings import ReadingsReport
    from memmodel.report.report import Report

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Budget",
    "InputError",
    "Observation",
    "Outcomes",
    "ReadingsReport",
    "Report",
    "__version__",
    "check",
    "check_kernel",
    "explain",
    "outcomes",
    "readings",
]

_HOME = {
    "Answer": "memmodel.answer",
    "Budget": "memmodel.answer",
    "InputError": "memmodel.errors",
    "Observation": "memmodel.answer",
    "Outcomes": "memmodel.answer",
    "ReadingsReport": "memmodel.report.readings",
    "Report": "memmodel.report.report",
    "check": "memmodel.api",
    "check_kernel": "memmodel.kernel.check",
    "explain": "memmodel.api",
    "outcomes": "memmodel.api",
    "readings": "memmodel.api",
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
