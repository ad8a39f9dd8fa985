"""What is asked of a family of launches, and what came of it.

In: a text, what is said of all launches, axes, a model. Out: `SweepRequest`, its launches in groups; `Sweep`. Settled
here: axes that the launch does not know are names for expressions. Smaller launches come first: fewer CTAs, then fewer
threads, then smaller values.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from time import monotonic

from memmodel.answer import Budget
from memmodel.base.oneline import shown
from memmodel.cat.syntax import Model
from memmodel.errors import BudgetSpent, InputError
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.inputs import chosen_ctas
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.question import GivenLaunch, KernelQuestion, KernelText, LaunchWords, names_taken, question
from memmodel.kernel.sweep.axes import Axes, Values
from memmodel.limits import available, sharing_budget
from memmodel.ptx.module.syntax import PtxFunction

NO_LAUNCH, BAD_INPUT = "no launch", "bad input"
"""Words for a grid without a CTA, which is not launched, and for sizes that no launch has."""

FOUND = ("findings", "depends")
"""Words of verdicts with a finding."""

WORST_FIRST = (BAD_INPUT, *FOUND, "undecided", "explored", "partial", "clean", NO_LAUNCH)

Sizes = tuple[tuple[str, int], ...]
"""What a sweep says of a launch: names that `--set` takes, and numbers."""

LaunchGroup = Mapping[Sizes, Sequence[Values]]
"""Launches that differ in unknown parameters only, each with the values that lead to it."""


@dataclass(frozen=True, slots=True)
class SweepAnswer:
    """What becomes of a launch: the word of its verdict, or NO_LAUNCH or BAD_INPUT, with its findings or the reason."""

    word: str
    about: tuple[str, ...] = ()


@dataclass(slots=True, repr=False)
class Sweep:
    """`answers`: of each launch that was judged, by the values of the free axes. `assumptions`: as in `KernelVerdict`,
    of all of them together. `judged`: verdicts that these answers took. `counterexample`: the smallest launch with a
    finding, as sizes, with its `verdict`. `stopped`: why launches are left; `signal`: what interrupted it.
    """

    axes: Axes
    total: int
    entry: str
    model: str
    answers: dict[Values, SweepAnswer] = field(default_factory=dict)
    assumptions: dict[str, str] = field(default_factory=dict)
    judged: int = 0
    counterexample: Sizes = ()
    verdict: KernelVerdict | None = None
    stopped: str = ""
    signal: KeyboardInterrupt | None = None

    def __repr__(self) -> str:
        answers = [f"{answer.word}: {len(launches)}" for answer, launches in self.launches_by_answer().items()]
        return shown("Sweep", f"{self.entry}, {self.axes} under {self.model}: {self.word}", *answers)

    @property
    def left(self) -> int:
        """Launches without an answer."""
        return self.total - len(self.answers)

    @property
    def word(self) -> str:
        """The worst word of all launches; those without an answer are undecided."""
        words = {answer.word for answer in self.answers.values()} | ({"undecided"} if self.left else set())
        return next(word for word in WORST_FIRST if word in words)

    def launches_by_answer(self) -> dict[SweepAnswer, list[Values]]:
        """The launches of each answer, the worst answers first."""
        found: dict[SweepAnswer, list[Values]] = {}
        for values, answer in sorted(self.answers.items()):
            found.setdefault(answer, []).append(values)
        return dict(sorted(found.items(), key=lambda item: WORST_FIRST.index(item[0].word)))


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """What all launches of a sweep share. `budget`: of all of them together, until the moment `until`."""

    text: KernelText
    launch: GivenLaunch
    launch_words: LaunchWords
    entry: str | None
    axes: Axes
    model: Model
    options: CheckOptions
    budget: Budget
    until: float
    baseline: str | None = None

    def left(self) -> Budget:
        """What one verdict may cost now. Raises BudgetSpent."""
        seconds = self.until - monotonic()
        if seconds <= 0:
            raise BudgetSpent(self.budget.out_of_seconds)
        return available(replace(self.budget, seconds=seconds, original=self.budget.original or self.budget))

    def sharing(self) -> AbstractContextManager[None]:
        """All verdicts of a process together keep the memory that was given, if any was."""
        given = replace(self.budget, effort=sys.maxsize, original=self.budget.original or self.budget)
        return nullcontext() if self.budget.memory is None else sharing_budget(given)

    def question(self, sizes: Sizes) -> KernelQuestion:
        """One launch. Raises InputError."""
        values = {**self.launch_words.values, **{name: str(value) for name, value in sizes}}
        words = replace(self.launch_words, values=values)
        return question(self.text, self.launch, words, self.entry, partial(chosen_ctas, wanted=()))

    def launches(self) -> tuple[PtxFunction, dict[Values, Sizes]]:
        """The entry, and all launches, the smallest first. Raises InputError."""
        names = list(self.axes.texts)
        entry, kept = names_taken(self.text, self.launch, self.entry, names)
        for name in names:
            if name not in kept and not self.axes.feeds(name):
                raise InputError(
                    f"--sweep: {entry.name} has no {name}",
                    hint="a parameter, grid.x, dynamic_shared, tensormaps.0.dims.1, or a name in an expression",
                )
        sizes = {values: self.axes.sizes(values) for values in self.axes.launches()}
        in_order = sorted(sizes, key=lambda values: (*_extent(sizes[values]), sum(values), values))
        return entry, {
            values: tuple((n, size) for n, size in sizes[values].items() if n in kept) for values in in_order
        }


def _extent(sizes: Mapping[str, int]) -> tuple[int, int]:
    """How many CTAs and threads there are, as far as a sweep says it."""
    ctas, threads = (prod(n for name, n in sizes.items() if name.startswith(head)) for head in ("grid.", "block."))
    return ctas, threads


def grouped(launches: Mapping[Values, Sizes], unknown: tuple[str, ...]) -> list[LaunchGroup]:
    """Launches that differ in nothing but `unknown` parameters, together."""
    groups: dict[Sizes, dict[Sizes, list[Values]]] = {}
    for values, sizes in launches.items():
        known = tuple((name, size) for name, size in sizes if name not in unknown)
        groups.setdefault(known, {}).setdefault(sizes, []).append(values)
    return list(groups.values())
