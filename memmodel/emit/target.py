"""Which GPU a module is for.

In: LitmusTest, or `sm_90a` as typed. Out: Target. Settled here: the oldest target that has every instruction of a test.
"""

from __future__ import annotations

from memmodel.errors import InputError
from memmodel.isa.lower import minimum_target, requirements
from memmodel.litmus.constants import all_instructions
from memmodel.litmus.syntax import LitmusTest
from memmodel.program.special import is_special
from memmodel.ptx.operands import Reg
from memmodel.ptx.targets import Target

OLDEST = 30
"""The set-up uses warp-level instructions (shfl.sync, bar.warp.sync), which begin here."""

OBJECTS = 80
"""mbarrier.init, for a declared mbarrier object."""

CLUSTERS = 90
"""A launch has clusters, and the special registers about them exist, from here on."""


def oldest_target(test: LitmusTest) -> Target:
    """The oldest target with every instruction of the test. Raises InputError where no single one has them all."""
    number = max(OLDEST, minimum_target(test))
    if any(variable.mbarrier is not None for variable in test.variables):
        number = max(number, OBJECTS)
    if _has_clusters(test):
        number = max(number, CLUSTERS)
    common: frozenset[int] | None = None
    for instruction, since in requirements(test):
        if since.numbers:
            common = since.numbers if common is None else common & since.numbers
            if not any(sm >= number for sm in common):
                hint = "split the test: its instructions belong to different architectures"
                raise InputError("no target architecture has all instructions of this test", instruction.span, hint)
    if common is None:
        return Target(number)
    return Target(min(sm for sm in common if sm >= number), "a")


def _has_clusters(test: LitmusTest) -> bool:
    """True if the test places a thread in a cluster, or reads a special register of clusters."""
    registers = (
        operand.name
        for instruction in all_instructions(test)
        for operand in instruction.operands
        if isinstance(operand, Reg)
    )
    return any(thread.place.cluster is not None for thread in test.threads) or any(
        is_special(name) and "cluster" in name for name in registers
    )
