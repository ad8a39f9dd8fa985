"""What is asked of shipped tests and of programs when two models are compared, in a form that travels to workers.

In: names of models, paths or texts. Out: records. Each worker loads the models once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from time import monotonic

from memmodel import api
from memmodel.cat.syntax import Model
from memmodel.errors import BudgetSpent, InputError
from memmodel.isa.lower import lower_test
from memmodel.litmus.printer import print_litmus
from memmodel.litmus.syntax import LitmusTest
from memmodel.search.edits.comparing import EFFORT, ComparedModels
from memmodel.search.edits.identical import identical
from memmodel.search.edits.reducing import bare, jumps, size_of
from memmodel.search.edits.variants import respelt
from memmodel.search.edits.witness import Shrinker, confirmed, read_again, shown
from memmodel.search.edits.word_labels import program_labels
from memmodel.search.edits.words import ChosenWords
from memmodel.search.tasks import models_key
from memmodel.search.work import Record

_NEARBY = 6
"""Programs of up to this number of instructions are respelt."""


@dataclass(frozen=True, slots=True)
class SearchedPair:
    """Two models by name. `old`: the first, if it is of a revision; `digest`: of both texts. `outcomes`: findings do
    not count.
    """

    first: str
    second: str
    outcomes: bool = False
    old: Model | None = field(default=None, compare=False)
    digest: str = ""

    @property
    def names(self) -> tuple[str, str]:
        return self.first, self.second

    def comparison(self) -> ComparedModels:
        """Both models, read once in each process."""
        key = (self.first, self.second, self.outcomes, self.digest)
        if key not in _COMPARISONS:
            _COMPARISONS.clear()
            models = (self.old or api.load(self.first), api.load(self.second))
            _COMPARISONS[key] = ComparedModels(models, outcomes=self.outcomes)
        return _COMPARISONS[key]

    def identical(self) -> bool:
        """True if the models are equal by the laws of sets and relations alone."""
        comparison = self.comparison()
        return identical(comparison.models, comparison.flags)

    def presets(self) -> list[str]:
        """The presets on whose programs the models can differ."""
        comparison = self.comparison()
        return [name for name in _PRESETS if not comparison.agree_on(program_labels((name,)))]

    def chosen_words(self) -> ChosenWords:
        """The words that the difference is about."""
        comparison = self.comparison()
        if comparison not in _WORDS:
            _WORDS.clear()
            _WORDS[comparison] = ChosenWords(comparison.agree_on, comparison.named_by_the_change())
        return _WORDS[comparison]


def sides_of(first: str | Model, second: str, *, outcomes: bool = False) -> SearchedPair:
    """Two models to compare; the first may be of a revision. What is kept of it is told apart by its text."""
    old = None if isinstance(first, str) else first
    return SearchedPair(
        first if isinstance(first, str) else first.name, second, outcomes, old, models_key(first, second)
    )


_COMPARISONS: dict[tuple[str, str, bool, str], ComparedModels] = {}
"""The pair that was asked for last."""

_WORDS: dict[ComparedModels, ChosenWords] = {}
"""Its words."""


_PRESETS = ("core", "dependencies", "barriers", "objects", "tensor", "async", "atomics")
"""The presets of which programs are tried, cheap ones first."""


def _program(path_or_text: str) -> LitmusTest | None:
    """The program of a test; None if it cannot be read."""
    try:
        return bare(api.lowered(path_or_text).test)
    except InputError:
        return None


@dataclass(frozen=True)
class SuiteTask:
    """Ask if two models differ on a test. The record has `text` and `size` if they do, and `undecided` if that costs
    more than `effort`.
    """

    sides: SearchedPair
    effort: int = EFFORT

    def judge(self, path: str) -> list[Record]:
        test = _program(path)
        if test is None:
            return []
        try:
            if self.sides.comparison().differ(lower_test(test), self.effort) is None:
                return []
        except (BudgetSpent, InputError) as error:
            return [{"path": path, "size": size_of(test), "jumps": jumps(test), "undecided": str(error)}]
        return [{"path": path, "text": print_litmus(test), "size": size_of(test), "effort": self.effort}]


@dataclass(frozen=True)
class VariantTask:
    """The first program on which the models differ among those that a test becomes when one word is exchanged."""

    sides: SearchedPair

    def judge(self, path: str) -> list[Record]:
        test = _program(path)
        if test is None or size_of(test) > _NEARBY:
            return []
        comparison = self.sides.comparison()
        for variant in respelt(test):
            lowered = read_again(variant)
            try:
                if lowered is not None and comparison.differ(lowered) is not None:
                    text = print_litmus(variant)
                    return [{"path": path, "text": text, "size": size_of(variant), "effort": EFFORT}]
            except (BudgetSpent, InputError):
                continue
        return []


@dataclass(frozen=True)
class ShrinkTask:
    """The smallest program inside a program on which the models differ. `seconds`: for each; `effort`: for each try."""

    sides: SearchedPair
    seconds: float
    effort: int = EFFORT

    @cached_property
    def comparison(self) -> ComparedModels:
        return self.sides.comparison()

    def judge(self, text: str) -> list[Record]:
        test = _program(text)
        if test is None:
            return []
        smallest = Shrinker(self.comparison, monotonic() + self.seconds, self.effort).shrunk(test)
        try:
            difference = shown(self.comparison, smallest, self.sides.names, self.effort)
            return [{**asdict(difference), "confirmed": confirmed(difference, self.comparison, self.sides.names)}]
        except BudgetSpent:
            return []
