"""The smallest programs on which two models differ.

In: two models, a sketch. Out: `Difference`s: one outcome that an execution under one model has and none under the
other, or a finding that only one reports. Settled here: what is smallest. No fence and no instruction of a difference
can be dropped with a difference left; of the spellings of one sketch the plainest is shown and the others are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memmodel import api
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.search.judging.alike import LabelFilter
from memmodel.search.judging.judge import Judgements, ModelJudge
from memmodel.search.judging.slices import union
from memmodel.search.programs import Ready, Specimen, confirm
from memmodel.search.sketches import Sketch
from memmodel.search.vocabulary import Vocabulary

_FEW_FLAGS = 2
"""Up to this number of flags that only one model has are taken for a change of the model; with more, the models have
different purposes, and only flags that both have are compared."""

_TRIED = 40
"""Spellings of one sketch that are asked whether a smaller program inside differs."""


FINDING_WORDS = {
    FindingKind.RACE: "race",
    FindingKind.MIXED: "race",
    FindingKind.HAZARD: "hazard",
    FindingKind.UNDEFINED: "undefined",
}
"""What a question calls a finding."""


@dataclass(frozen=True, slots=True)
class Difference:
    """`allows` has the outcome or finding, `forbids` has not. `spellings`: how many spellings differ so."""

    allows: str
    forbids: str
    size: int
    finding: str | None
    spellings: int
    text: str


def compared_flags(models: tuple[Model, Model]) -> tuple[str, ...]:
    """The flags that count as findings when two models are compared."""
    first, second = ({check.name for check in model.flags} for model in models)
    changed = first & second and len(first ^ second) <= _FEW_FLAGS
    names = first | second if changed else first & second
    return tuple(sorted(name for name in names if kind_of(name) is not FindingKind.OTHER))


class ModelPair:
    """Two models, by name or as read. `outcomes`: findings do not count."""

    def __init__(self, first: str | Model, second: str, *, outcomes: bool = False) -> None:
        self.names = (first if isinstance(first, str) else first.name, second)
        self.models: tuple[Model, Model] = (api.load(first) if isinstance(first, str) else first, api.load(second))
        self.flags = () if outcomes else compared_flags(self.models)
        self._judge = ModelJudge(self.models)
        self._filter = LabelFilter(self._judge.formulas, self.models, self.flags)
        self._flagger = ModelJudge(self.models, [self.flags] * 2) if self.flags else None

    def of(self, sketch: Sketch, vocabulary: Vocabulary, most: int) -> Iterator[Difference]:
        """The differences of one sketch with up to `most` instructions, one for each kind."""
        ready = Ready(sketch, vocabulary, most)
        if self._filter.excludes(ready):
            return
        if self._flagger is not None:
            verdicts = self._flagger.judge(ready)
            yield from self._outcomes(ready, verdicts)
            yield from self._findings(ready, verdicts)
        else:
            yield from self._outcomes(ready, self._judge.judge(ready))

    def _outcomes(self, ready: Ready, verdicts: Judgements) -> Iterator[Difference]:
        for mine, other in ((0, 1), (1, 0)):
            worlds = verdicts.only(mine, other, ready.worlds)
            left = ready.without_needless_fences(union(worlds.values()))
            chosen = self._minimal(ready, left, self._differ)
            if chosen is not None:
                specimen = ready.specimen(chosen)
                yield self.shown(specimen, specimen.condition(ready.key(worlds, chosen)), mine, None, left.bit_count())

    def _findings(self, ready: Ready, verdicts: Judgements) -> Iterator[Difference]:
        for mine, other in ((0, 1), (1, 0)):
            for flag in self.flags:
                worlds = verdicts.raised[mine].get(flag, 0) & ~verdicts.raised[other].get(flag, 0) & ready.worlds
                left = ready.without_needless_fences(worlds)
                chosen = self._minimal(ready, left, self._flags_differ)
                if chosen is not None:
                    yield self.shown(ready.specimen(chosen), "true", mine, flag, left.bit_count())

    def _minimal(self, ready: Ready, worlds: int, differ: Callable[[Specimen], bool]) -> tuple[int, ...] | None:
        """The plainest of these programs in which no smaller one differs."""
        for _ in range(_TRIED):
            if not worlds:
                return None
            choice = ready.plainest(worlds)
            if not any(differ(specimen) for specimen in ready.specimen(choice).smaller()):
                return choice
            worlds &= ~(1 << ready.grid.number(choice))
        return None

    def _differ(self, specimen: Specimen) -> bool:
        return specimen.outcomes(self.models[0]) != specimen.outcomes(self.models[1])

    def _flags_differ(self, specimen: Specimen) -> bool:
        return specimen.flags(self.models[0]) & set(self.flags) != specimen.flags(self.models[1]) & set(self.flags)

    def _asked(self, specimen: Specimen, flag: str, other: int) -> str | None:
        """What a question calls a finding, if the other model reports none that it calls so."""
        word = FINDING_WORDS.get(kind_of(flag))
        others = {FINDING_WORDS.get(kind_of(name)) for name in specimen.flags(self.models[other])}
        return None if word in others else word

    def shown(self, specimen: Specimen, condition: str, mine: int, flag: str | None, spellings: int) -> Difference:
        """A difference as a litmus test, confirmed by both engines."""
        allows, forbids = self.names[mine], self.names[1 - mine]
        kind = None if flag is None else self._asked(specimen, flag, 1 - mine)
        question = f"exists {kind or f'({condition})'}"
        expects = flag is None or kind is not None
        text = specimen.text(
            question, f"{'outcome' if flag is None else flag}-{specimen.size}", _expected(allows, forbids, expects)
        )
        if expects:
            for number, model in enumerate(self.models):
                confirm(text, model, number == mine)
        return Difference(allows, forbids, specimen.size, flag, spellings, text)


def _expected(allows: str, forbids: str, expects: bool) -> str:
    """The Expect line of a difference; of a revision of a model it says nothing."""
    words = [
        f"{name}:{word}" for name, word in ((allows, "sometimes"), (forbids, "never")) if expects and " " not in name
    ]
    return f"Expect={' '.join(words)}" if words else ""
