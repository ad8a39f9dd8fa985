"""What a run itself shows to be wrong, and what it cannot decide.

In: nothing. Out: `Refused`, `Failure`, and the rules of what a kernel finds wrong itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.errors import InputError
from memmodel.ptx.module.syntax import PtxInstruction

TRAP, ASSERTION = "trap", "assertion"
"""The rules of findings about a kernel that stops itself."""


UNKNOWN_VALUE = "a value that this run does not know"
"""How a reason says that contents of memory, or a parameter, were needed and not given."""


class Refused(InputError):
    """The run met something that it cannot decide: an unknown instruction, a branch on unknown data."""


class AwaitsOthers(Refused):
    """Threads wait for what may be done by CTAs that are not run."""


@dataclass(slots=True)
class Failure:
    """Something wrong that the run itself showed: a hang, a bad address, a failed assertion."""

    rule: str
    message: str
    instruction: PtxInstruction | None
    threads: int = 1
