"""Programs with an outcome that a model forbids, and allows after any single relaxation.

In: a model, a sketch. Out: `Forbidden`. A relaxation drops a fence or a dependency, or replaces a form by a weaker one:
weaker semantics, a narrower scope (`weaker`). Dropping an instruction is one as well (of programs on words in global
memory): what is left of the outcome then has to be allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memmodel import api
from memmodel.answer import Observation
from memmodel.errors import InputError
from memmodel.isa.rows.ingredients import GLOBAL, Form
from memmodel.ptx.vocabulary import Sem
from memmodel.search.judging.frames import Key
from memmodel.search.judging.judge import ModelJudge
from memmodel.search.programs import Ready, Specimen, confirm
from memmodel.search.sketches import Sketch
from memmodel.search.vocabulary import SCOPES, Vocabulary

_SEMS = {sem.value: sem for sem in Sem}

_TRIED = 40
"""Spellings of one sketch that are asked whether each of their instructions is needed."""


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A minimally forbidden program. `spellings`: how many of this sketch there are."""

    size: int
    spellings: int
    text: str


def weaker(form: Form, other: Form | None) -> bool:
    """True if the second form is a relaxation of the first. None: no fence."""
    if other is None:
        return True
    if form.data and not other.data and [w for w in form.words if w != "data"] == list(other.words):
        return True
    if form.data != other.data:
        return False
    sem, scope = _parts(form)
    less, narrow = _parts(other)
    if sem == less:
        return scope is not None and narrow is not None and SCOPES.index(narrow) < SCOPES.index(scope)
    return _SEMS.keys() >= {sem, less} and _SEMS[sem].orders(_SEMS[less]) and (narrow == scope or narrow is None)


def _parts(form: Form) -> tuple[str, str | None]:
    words = [word for word in form.words if word != "data"]
    return (words[0] if words else ""), next((word for word in words if word in SCOPES), None)


def relaxations(ready: Ready) -> Iterator[tuple[int, int, int]]:
    """Dimension, choice, and a weaker choice."""
    for spot in ready.spots:
        for old, form in enumerate(spot.forms):
            for new, other in enumerate(spot.forms):
                if form is not None and new != old and weaker(form, other):
                    yield spot.dimension, old, new


class Synthesis:
    """One model, by name."""

    def __init__(self, model: str) -> None:
        self.name, self.model = model, api.load(model)
        self._judge = ModelJudge([self.model])

    def of(self, sketch: Sketch, vocabulary: Vocabulary, most: int) -> Iterator[Forbidden]:
        """What is minimally forbidden in one sketch; for each outcome the plainest program."""
        ready = Ready(sketch, vocabulary, most)
        allowed = self._judge.judge(ready).allowed[0]
        shown = 0
        for key, yes in sorted(allowed.items()):  # no other outcome: forbidden however the program is spelt
            least = ready.grid.full & ~yes
            for dimension, old, new in relaxations(ready):
                with_old = ready.grid.worlds_with(dimension, old)
                least &= ~with_old | ready.grid.moved(yes, dimension, old, new)
            least &= ready.worlds
            chosen = None if shown & least else self._minimal(ready, least, key)
            if chosen is not None:
                shown |= least
                specimen = ready.specimen(chosen)
                header = f"Expect={self.name}:never"
                text = specimen.text(f"exists ({specimen.condition(key)})", f"forbidden-{specimen.size}", header)
                confirm(text, self.model, False)
                yield Forbidden(specimen.size, least.bit_count(), text)

    def _minimal(self, ready: Ready, worlds: int, key: Key) -> tuple[int, ...] | None:
        """The plainest of these programs, each instruction of which is needed to forbid an outcome."""
        for _ in range(_TRIED):
            if not worlds:
                return None
            choice = ready.plainest(worlds)
            if self._needs_all(ready.specimen(choice), key):
                return choice
            worlds &= ~(1 << ready.grid.number(choice))
        return None

    def _needs_all(self, specimen: Specimen, key: Key) -> bool:
        """True if without any one access the rest of the outcome is allowed. Only asked of words in global memory:
        without an arrival, an object would wait for ever."""
        accesses = specimen.vocabulary.accesses
        uses = specimen.draft.uses
        if any(spot.use is not None and accesses[spot.use[0]].places != GLOBAL for spot in uses):
            return True
        return all(self._allows(specimen.lacking(spot, key)) for spot in uses)

    def _allows(self, text: str) -> bool:
        try:
            observation = api.check(text, self.model, engine="enumerate").answer.observation
        except InputError:
            return True  # what is left names a register that nothing sets: it is no program
        return observation is not Observation.NEVER
