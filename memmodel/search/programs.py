"""One program of the search: a sketch, a choice of forms, a placement; and what each sketch is judged with.

In: Sketch, Vocabulary. Out: `Ready` (draft, worlds, placements) and `Specimen`, which prints itself as a litmus
test and is judged by both engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from memmodel import api, engine
from memmodel.answer import Answer, Observation, Witness
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import BudgetSpent, InternalError
from memmodel.search.judging.slices import WorldGrid
from memmodel.search.sketches import Sketch, seatings
from memmodel.search.text import Draft, Seats, Spot, asked, draft, shows, used_places, write, written
from memmodel.search.vocabulary import Vocabulary

ENGINES = ("enumerate", "z3")


class Ready:
    """A sketch with its worlds: the form of each instruction and gap, and last the placement."""

    def __init__(self, sketch: Sketch, vocabulary: Vocabulary, most: int) -> None:
        self.sketch, self.vocabulary = sketch, vocabulary
        self.draft = draft(sketch, vocabulary, gaps=most > sketch.size)
        self.seatings: list[Seats] = (
            [sketch.seats] if sketch.seats is not None else seatings(len(sketch.threads), vocabulary.spread)
        )
        self.spots = [spot for body in self.draft.threads for spot in body]
        self.grid = WorldGrid([*(len(spot.forms) for spot in self.spots), len(self.seatings)])
        self.most = most

    @property
    def gaps(self) -> list[Spot]:
        return [spot for spot in self.spots if spot.use is None]

    @cached_property
    def worlds(self) -> int:
        """The worlds with no more instructions than asked for, each set of fences of a gap once."""
        counts = {0: self.grid.full}
        for spot in self.gaps:
            none = self.grid.worlds_with(spot.dimension, 0)
            more: dict[int, int] = {}
            for number, worlds in counts.items():
                more[number] = more.get(number, 0) | worlds & none
                more[number + 1] = more.get(number + 1, 0) | worlds & ~none
            counts = more
        room = self.most - self.sketch.size
        kept = sum(worlds for number, worlds in counts.items() if number <= room)
        for first, second in zip(self.spots, self.spots[1:], strict=False):
            if first.use is None and second.use is None and first.index == second.index:
                kept &= self._in_order(first, second)
        return kept

    def _in_order(self, first: Spot, second: Spot) -> int:
        """Two adjacent fences differ, or the second is left out."""
        ordered = self.grid.worlds_with(second.dimension, 0)
        for number in range(1, len(first.forms)):
            ordered |= self.grid.worlds_with(first.dimension, number) & ~self.grid.worlds_with(second.dimension, number)
        return ordered & ~(self.grid.worlds_with(first.dimension, 0) & ~self.grid.worlds_with(second.dimension, 0))

    def without_needless_fences(self, worlds: int) -> int:
        """The worlds from which no fence can be dropped: without it the program is not in `worlds`."""
        kept = worlds
        for spot in self.gaps:
            for number in range(1, len(spot.forms)):
                kept &= ~self.grid.moved(worlds, spot.dimension, number, 0)
        return kept

    def plainest(self, worlds: int) -> tuple[int, ...]:
        """The choice with the fewest fences and the plainest forms: first forms first."""
        order = [*self.gaps, *(spot for spot in self.spots if spot.use is not None)]
        for dimension in [*(spot.dimension for spot in order), len(self.spots)]:
            for number in range(self.grid.sizes[dimension]):
                if worlds & self.grid.worlds_with(dimension, number):
                    worlds &= self.grid.worlds_with(dimension, number)
                    break
        return self.grid.choice(worlds.bit_length() - 1)

    def key(self, worlds: Mapping[tuple[int, ...], int], choice: Sequence[int]) -> tuple[int, ...]:
        """The first outcome in whose worlds a choice is."""
        return min(key for key, allowed in worlds.items() if allowed >> self.grid.number(choice) & 1)

    def specimen(self, choice: Sequence[int]) -> Specimen:
        return Specimen(self.draft, self.vocabulary, tuple(choice), self.seatings[choice[-1]])


@dataclass(frozen=True, slots=True)
class Specimen:
    """One program."""

    draft: Draft
    vocabulary: Vocabulary
    choice: tuple[int, ...]
    seats: Seats

    @property
    def size(self) -> int:
        """Instructions, fences included."""
        return sum(spot.forms[self.choice[spot.dimension]] is not None for body in self.draft.threads for spot in body)

    def condition(self, key: Sequence[int]) -> str:
        """An outcome as a condition."""
        terms = [f"{name} == {value}" for name, value in zip(asked(self.draft, self.vocabulary), key, strict=True)]
        return " /\\ ".join(terms) or "true"

    def end(self, witness: Witness) -> str | None:
        """The end of an execution as a condition; None if the execution does not say all of it."""
        values: list[int] = []
        for term in asked(self.draft, self.vocabulary):
            thread, _, register = term.partition(":")
            value = (
                witness.registers.get((thread, register)) if register else witness.memory.get(term.removesuffix("[0]"))
            )
            if value is None or not str(value).isdecimal():
                return None
            values.append(int(value))
        return self.condition(values)

    def text(self, question: str, name: str = "found", header: str = "") -> str:
        """The litmus test. `question`: its last line."""
        return write(self.draft, self.vocabulary, self.choice, self.seats, question, name=name, header=header)

    def lacking(self, spot: Spot, key: Sequence[int]) -> str:
        """The program without one instruction, asking for what is left of an outcome: less what that instruction
        returns, and less what shows that it wrote."""
        wrote = written(self.draft, self.vocabulary).get(spot.dimension)
        register = next(f"P{thread}:r{spot.index}" for thread, body in enumerate(self.draft.threads) if spot in body)
        terms = [
            f"{name} == {value}"
            for name, value in zip(asked(self.draft, self.vocabulary), key, strict=True)
            if name != register and not (wrote is not None and shows(value, wrote))
        ]
        left = " /\\ ".join(terms) or "true"
        question = f"exists ({left})"
        return write(self.draft, self.vocabulary, self.choice, self.seats, question, less=spot.dimension)

    def smaller(self) -> list[Specimen]:
        """The programs that lack one instruction."""
        specimens = []
        for body in self.draft.threads:
            for spot in body:
                if spot.use is not None:
                    less = self.draft.without(spot.dimension)
                    kept = [
                        n
                        for n, mine in enumerate(less.threads)
                        if any(other_spot.use is not None for other_spot in mine)
                    ]
                    threads = tuple(less.threads[n] for n in kept)
                    seats = tuple(self.seats[n] for n in kept)
                    named = used_places(less, self.vocabulary)
                    homes = tuple((place, cta) for place, cta in less.homes if place in named)
                    if threads and {cta for _, cta in homes} <= {cta for _, _, cta in seats}:
                        specimens.append(replace(self, draft=Draft(threads, less.seats and seats, homes), seats=seats))
        return specimens

    def outcomes(self, model: Model, options: Options = Options()) -> frozenset[tuple[tuple[str, int], ...]]:
        """All outcomes under a model, by the engine."""
        steps = api.lowered(self.text(f"exists ({self.condition((0,) * len(asked(self.draft, self.vocabulary)))})"))
        outcomes = engine.outcomes(steps, model, options)
        if not outcomes.complete:
            raise BudgetSpent(outcomes.reason)
        return frozenset(tuple(sorted(state.values)) for state in outcomes.states)

    def flags(self, model: Model) -> frozenset[str]:
        """The flags that some execution raises under a model. Raises BudgetSpent if they are not all known."""
        answer = api.check(self.text("exists (true)"), model, engine="enumerate").answer
        all_known(answer)
        return frozenset(answer.flags)


def all_known(answer: Answer) -> None:
    """Raise BudgetSpent if an answer does not have all findings."""
    if answer.observation is Observation.UNDECIDED or answer.unsearched:
        raise BudgetSpent(answer.unsearched or answer.reason)


def confirm(text: str, model: Model, allowed: bool) -> None:
    """Ask both engines about a result. Raises InternalError if one says otherwise, BudgetSpent if one cannot say."""
    for name in ENGINES:
        answer = api.check(text, model, engine=name).answer
        observation = answer.observation
        if observation is Observation.UNDECIDED:
            raise BudgetSpent(answer.reason)
        if (observation in (Observation.SOMETIMES, Observation.ALWAYS)) is not allowed:
            raise InternalError(f"{name} does not confirm what the search found under {model.name}:\n{text}")
