"""What a model says of a test, as far as its Expect line may speak of it.

In: an engine's Answer, or what is consistent among all candidates. Out: ShortVerdict.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memmodel.answer import HANG, Answer, Observation
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.litmus.syntax import LitmusTest
from memmodel.report.expect import FINDINGS, OBSERVED, is_called


@dataclass(frozen=True, slots=True)
class ShortVerdict:
    """`observation`: never, sometimes, …; `findings`: race, hang, hazard, undefined, and other flags by name."""

    observation: Observation
    findings: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return "+".join([self.observation.value, *sorted(self.findings)])

    @property
    def decided(self) -> bool:
        return self.observation is not Observation.UNDECIDED

    def meets(self, words: str) -> bool:
        """True if it is as the words of an Expect line say."""
        return all(
            self.observation.value == word if word in OBSERVED else word in self.findings for word in words.split("+")
        )


@dataclass(slots=True)
class Consistent:
    """What consistent executions of a test show: the condition, its contrary, a hang, one that is stopped, flags."""

    yes: bool = False
    no: bool = False
    waits: bool = False
    stopped: bool = False
    flags: frozenset[str] = frozenset()

    def merge(self, other: Consistent) -> None:
        """Add what other executions show."""
        self.yes |= other.yes
        self.no |= other.no
        self.waits |= other.waits
        self.stopped |= other.stopped
        self.flags |= other.flags

    def verdict(self, test: LitmusTest, model: Model) -> ShortVerdict:
        """The verdict on the question of a test."""
        flags = self.flags | ({HANG} if self.waits else frozenset())
        if test.finding is not None:
            return ShortVerdict(self._of_finding(test.finding, model, flags), _words(flags))
        return ShortVerdict(self._observation(), _words(flags))

    def _observation(self) -> Observation:
        if any(kind_of(flag) is FindingKind.MIXED for flag in self.flags):
            return Observation.UNDECIDED
        if self.yes and self.no:
            return Observation.SOMETIMES
        if self.stopped:
            return Observation.UNDECIDED
        if self.yes:
            return Observation.ALWAYS
        return Observation.NEVER if self.no else Observation.VACUOUS

    def _of_finding(self, word: str, model: Model, flags: Collection[str]) -> Observation:
        if any(is_called(flag, word) for flag in flags):
            return Observation.SOMETIMES
        known = word == HANG or any(is_called(check.name, word) for check in model.flags)
        return Observation.NEVER if known and not self.stopped else Observation.UNDECIDED


def verdict_of(answer: Answer) -> ShortVerdict:
    """The verdict that an engine gave. Findings that were not looked at to the end leave it undecided."""
    observation = Observation.UNDECIDED if answer.unsearched else answer.observation
    return ShortVerdict(observation, _words(answer.flags))


def _words(flags: Collection[str]) -> frozenset[str]:
    """Flags by the words that an Expect line has for them."""
    words = set()
    for flag in flags:
        called = [word for word in FINDINGS if is_called(flag, word)]
        words.update(called or [flag])
    return frozenset(words)
