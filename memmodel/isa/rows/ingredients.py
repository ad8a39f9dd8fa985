"""How a search for programs uses an instruction: the words of its vocabulary that a row gives.

In: nothing. Out: `Form`, `Ingredient`, `Grain`, classes of places. A form is lines of PTX with holes: `{x}`, `{y}`,
`{z}` for places, `{v}` for a value, `{r}` for a register, `{n}` for a number that makes names unique; `{scope}` stands
for each scope that is searched, in the words that select the form, too; `{word}` for the type of a word of a tile,
`{bytes}` for its size, `{columns}` for the number of columns of a place in tensor memory, `{stored}` and `{loaded}`
for registers of all but the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

GLOBAL, TILE, SHARED, TENSOR, OBJECT = "g", "G", "s", "t", "b"
"""Classes of places: a word or a 16-byte tile in global memory, a tile in shared memory, tensor memory, an mbarrier."""
PLACED = SHARED + TENSOR + OBJECT
"""Classes whose places are in some CTA."""

BEGINS, ENDS = "begins", "ends"
"""What an instruction does to the life of its place."""

NEAR = ("cta", "cluster")
"""The scopes of what is done in shared memory."""


class Grain(IntEnum):
    """How tiles are accessed: by words of 4 bytes; as a whole; as a whole and by words of 8 bytes, the widest ones that
    a bulk reduction adds. The coarsest that the instructions at hand allow leaves the fewest events."""

    WORDS = 0
    WHOLE = 1
    HALVES = 2

    @property
    def columns(self) -> int:
        """How many columns a place in tensor memory has: what is copied there is one event, as it is in the tile."""
        return (1, 4, 2)[self]

    @property
    def word(self) -> tuple[str, int]:
        """The type of a word of a tile, and its bytes."""
        return ("u64", 8) if self is Grain.HALVES else ("u32", 4)


@dataclass(frozen=True, slots=True)
class Form:
    """One spelling. `words`: what a vocabulary selects it by. `text`: lines of PTX. `data`: its value depends on the
    load before it in the thread."""

    words: tuple[str, ...]
    text: str
    data: bool = False

    def of_grain(self, grain: Grain) -> Form:
        """The form for places that are accessed so."""
        more, (word, size) = grain.columns - 1, grain.word
        holes = {
            "{word}": word,
            "{bytes}": str(size),
            "{columns}": str(grain.columns),
            "{stored}": ", %v{n}" * more,
            "{loaded}": "".join(f", %{name}{{n}}" for name in "stu"[:more]),
        }
        text = self.text
        for hole, what in holes.items():
            text = text.replace(hole, what)
        return replace(self, text=text)

    def with_scopes(self, scopes: Sequence[str]) -> tuple[Form, ...]:
        """The form with each of these scopes, or as it is if it names none."""
        if "{scope}" not in self.text:
            return (self,)
        return tuple(
            replace(self, words=(*self.words, scope), text=self.text.replace("{scope}", scope)) for scope in scopes
        )


@dataclass(frozen=True, slots=True)
class Ingredient:
    """An instruction without its spelling, with its parts, counted as one.

    `places`: the class of each place it names; `does`: whether it reads (r), writes (w), both (u) or neither (-) there.
    `fence`: it stands in a gap between two instructions. `arrives`: arrivals on an object. `ends`: it waits for the
    ends of these instructions, does nothing without one before it in its thread, and nothing at the end of a thread.
    `far`: which of its places, x y z, may be in shared memory of another CTA of the cluster; two of them are in one
    CTA. `meets`: threads that have it meet at a barrier. `reduces`: each write sets a bit of its own. `grain`: how
    it needs tiles to be accessed, by itself and by all others. `wide`: its forms where tiles are accessed as a whole.
    `declares`: further declarations. `pairs`: words without which it shows nothing.
    `scopes`: those that it may have. `columns`: how many columns of tensor memory it needs at a place.
    `covers`: the classes of the places that a fence orders, if not all. `life`: it begins or ends the life of its
    place, which matters though nothing else names it; between two beginnings, which are one thread's, is an end.
    """

    name: str
    forms: tuple[Form, ...]
    places: str = ""
    does: str = ""
    fence: bool = False
    arrives: int = 0
    far: str = ""
    ends: tuple[str, ...] = ()
    meets: str = ""
    reduces: bool = False
    grain: Grain = Grain.WORDS
    declares: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    wide: tuple[Form, ...] = ()
    columns: int = 1
    covers: str = ""
    life: str = ""

    @property
    def answers(self) -> bool:
        """True if it puts something into a register."""
        return "%{r}" in self.forms[0].text

    @property
    def local(self) -> bool:
        """True if what it does depends on the CTA of its thread, so that placements are tried one by one."""
        return bool(self.ends or self.meets) or any(place in PLACED for place in self.places)

    def spelt(self, scopes: Sequence[str], grain: Grain = Grain.WORDS) -> Ingredient | None:
        """With each of these scopes that it may have, for tiles that are accessed so; None if it has no form then."""
        mine = [scope for scope in scopes if not self.scopes or scope in self.scopes]
        if not mine and self.scopes == NEAR:
            mine = ["cta"]
        texts = self.wide if grain is Grain.WHOLE and self.wide else self.forms
        forms = tuple(spelt for form in texts for spelt in form.of_grain(grain).with_scopes(mine))
        return replace(self, forms=forms) if forms else None
