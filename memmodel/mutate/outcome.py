"""What became of an edit, and of all of them.

In: nothing. Out: `Fate`, `EditResult`, `Strength`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from memmodel.mutate.edits import ModelEdit


class Fate(Enum):
    """The fate of an edit, spelled as tables print it."""

    FAILS = "a test fails"  # the Expect line of a test is no longer met
    DIFFERS = "an answer differs"  # `memmodel diff` shows it, though no Expect line speaks of it
    FOUND = "a program differs"  # no test shows it, a search found a program that does
    EQUIVALENT = "equivalent"  # it says the same of every execution
    SURVIVES = "survives"  # every test was judged, and none differs
    UNDECIDED = "undecided"  # some tests were not judged


@dataclass(frozen=True, slots=True)
class NoticedBy:
    """A test that tells an edit apart, with the verdicts under the model and under the edited one."""

    test: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class EditResult:
    """`how`: the proof that it is equivalent, how far a search came, or why it is undecided. `program`: what a search
    found."""

    edit: ModelEdit
    fate: Fate
    notice: NoticedBy | None = None
    how: str = ""
    program: str = ""


@dataclass(frozen=True, slots=True)
class Strength:
    """All edits of a model. `tests`: how many were judged; `unjudged`: those that were not. `reason`: why it ended
    early."""

    model: str
    results: Sequence[EditResult]
    tests: int
    unjudged: Sequence[str] = ()
    reason: str = ""

    def count(self, *fates: Fate) -> int:
        """How many edits have one of these fates."""
        return sum(result.fate in fates for result in self.results)

    @property
    def share(self) -> float:
        """The share of edits that tests tell apart, among those that are not equivalent and were decided."""
        noticed = self.count(Fate.FAILS, Fate.DIFFERS)
        judged = noticed + self.count(Fate.FOUND, Fate.SURVIVES)
        return noticed / judged if judged else 1.0
