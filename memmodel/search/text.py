"""A program of the search as a litmus test.

In: Sketch, Vocabulary, a choice of forms. Out: text. Settled here: names of places and registers, values and
initialisation. Each store has a value of its own, so that what a load returns says which store it read; tiles begin
with values of their own, since a copy carries them on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.search.sketches import Sketch, Use
from memmodel.search.vocabulary import GLOBAL, OBJECT, SHARED, TENSOR, TILE, Form, Ingredient, Vocabulary

NAMES = {
    GLOBAL: ("x", "y", "z", "w"),
    TILE: ("ga", "gb", "gc", "gd"),
    SHARED: ("sa", "sb", "sc", "sd"),
    TENSOR: ("ta", "tb", "tc", "td"),
    OBJECT: ("bar", "bar1", "bar2", "bar3"),
}
_DECLARED = {
    GLOBAL: ".global .u32 {name} = 0;",
    TILE: ".global .align 16 .u32 {name}[4] = {{{initial}}};",
    SHARED: ".shared .align 16 .u32 {name}[4] = {{{initial}}};",
    TENSOR: ".tensor .b32 {name} = 0;",
    OBJECT: ".shared .align 8 .b64 {name} = mbarrier({count});",
}
_INITIAL = 20
"""The second tile begins with 21, the third with 22; stores write 1, 2, …"""


Seats = tuple[tuple[int, int, int], ...]
"""For each thread its GPU, cluster and CTA."""


@dataclass(frozen=True, slots=True)
class Spot:
    """An instruction of a thread, or a gap (`use` None), whose first form is None: no fence.

    `dimension`: which choice decides its form. `index`: the number of the instruction in the thread of the sketch.
    """

    dimension: int
    index: int
    use: Use | None
    forms: tuple[Form | None, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A sketch with its choices laid out, or part of one. `seats` as in `Sketch`."""

    threads: tuple[tuple[Spot, ...], ...]
    seats: Seats | None

    def without(self, dimension: int) -> Draft:
        """Less the instruction that a choice decides. The other choices keep their numbers."""
        kept = tuple(tuple(spot for spot in body if spot.dimension != dimension) for body in self.threads)
        return Draft(kept, self.seats)

    @property
    def uses(self) -> list[Spot]:
        return [spot for body in self.threads for spot in body if spot.use is not None]


def draft(sketch: Sketch, vocabulary: Vocabulary, *, gaps: bool = True) -> Draft:
    """The choices that make a program of a sketch, in the order of its text. `gaps`: with room for fences."""
    fences = (None, *vocabulary.fences)
    threads, number = [], 0
    for body in sketch.threads:
        mine: list[Spot] = []
        for index, use in enumerate(body):
            one = vocabulary.accesses[use[0]]
            loaded = any(_loads(vocabulary.accesses[name]) for name, _ in body[:index])
            forms = tuple(form for form in one.forms if loaded or not form.data)
            mine.append(Spot(number, index, use, forms))
            number += 1
            if gaps and index + 1 < len(body) and len(fences) > 1:
                for _ in range(vocabulary.gap):
                    mine.append(Spot(number, index, None, fences))
                    number += 1
        threads.append(tuple(mine))
    return Draft(tuple(threads), sketch.seats)


def _loads(one: Ingredient) -> bool:
    return one.answers and bool({"r", "u"} & set(one.does))


def before(body: Sequence[Spot], at: int, vocabulary: Vocabulary) -> int | None:
    """The place in the thread of the last instruction before this one that loads into a register."""
    for number in range(at - 1, -1, -1):
        use = body[number].use
        if use is not None and _loads(vocabulary.accesses[use[0]]):
            return number
    return None


def lines_of(it: Draft, vocabulary: Vocabulary, choice: Sequence[int]) -> list[list[tuple[str, Spot]]]:
    """The lines of each thread, each with its spot."""
    found: list[list[tuple[str, Spot]]] = []
    value = 0
    for body in it.threads:
        lines: list[tuple[str, Spot]] = []
        for at, spot in enumerate(body):
            form = spot.forms[choice[spot.dimension]]
            if form is None:
                continue
            text = form.text
            if spot.use is not None:
                one, places = used(spot.use, vocabulary)
                value += "w" in one.does or "u" in one.does
                last = before(body, at, vocabulary)
                if form.data and last is None:
                    text = text.split("\n")[-1].replace("%d{n}", "{v}")
                holes = dict(zip("xyz", places, strict=False))
                source = "" if last is None else f"r{body[last].index}"
                text = text.format(**holes, v=value_of(one, value), r=f"r{spot.index}", n=spot.index, before=source)
            lines += [(line, spot) for line in text.split("\n")]
        found.append(lines)
    return found


def value_of(one: Ingredient, number: int) -> int:
    """What the n-th write writes; each reduction sets a bit of its own."""
    return 8 << number if one.name == "red" else number


def used(use: Use, vocabulary: Vocabulary) -> tuple[Ingredient, list[str]]:
    """An instruction and the names of its places."""
    one = vocabulary.accesses[use[0]]
    return one, [NAMES[kind][place] for kind, place in zip(one.places, use[1], strict=True)]


def used_places(it: Draft, vocabulary: Vocabulary) -> dict[tuple[str, int], int]:
    """The places that are named, each with the arrivals that an object gets."""
    found: dict[tuple[str, int], int] = {}
    for spot in it.uses:
        assert spot.use is not None
        one = vocabulary.accesses[spot.use[0]]
        for kind, place in zip(one.places, spot.use[1], strict=True):
            found[kind, place] = found.get((kind, place), 0) + (one.arrives if kind == OBJECT else 0)
    return dict(sorted(found.items(), key=lambda item: ("gGstb".index(item[0][0]), item[0][1])))


def asked(it: Draft, vocabulary: Vocabulary) -> list[str]:
    """What an outcome consists of: every register that an instruction sets, then every place."""
    registers = [
        f"P{thread}:r{spot.index}"
        for thread, body in enumerate(it.threads)
        for spot in body
        if spot.use is not None and vocabulary.accesses[spot.use[0]].answers
    ]
    places = []
    one_cta = it.seats is None or len(set(it.seats)) == 1
    for kind, place in used_places(it, vocabulary):
        if kind in (GLOBAL, TILE) or (kind in (SHARED, TENSOR) and one_cta):
            places.append(NAMES[kind][place] + ("[0]" if kind in (TILE, SHARED) else ""))
    return registers + places


def clustered(seats: Seats) -> bool:
    """Do CTAs share a cluster?"""
    return len({seat[:2] for seat in seats}) < len(set(seats))


def write(
    it: Draft,
    vocabulary: Vocabulary,
    choice: Sequence[int],
    seats: Seats,
    condition: str,
    *,
    name: str = "found",
    header: str = "",
) -> str:
    """The litmus test of one program. `condition`: its last line."""
    lines = [f"PTX {name}", *([header] if header else []), ""]
    tiles = 0
    for (kind, place), count in used_places(it, vocabulary).items():
        initial = _INITIAL + tiles if tiles else 0
        tiles += kind in (TILE, SHARED)
        lines.append(_DECLARED[kind].format(name=NAMES[kind][place], initial=initial, count=max(count, 1)))
    seen = [used(spot.use, vocabulary) for spot in it.uses if spot.use is not None]
    lines += dict.fromkeys(f"{names[0]}_alias aliases {names[0]};" for one, names in seen if one.name == "ld.alias")
    if any(vocabulary.accesses[spot.use[0]].name == "tcgen05.mma" for spot in it.uses if spot.use is not None):
        lines.append(".shared .align 16 .u32 one[4] = {1};")
    together = clustered(seats)
    for number, (body, (gpu, cluster, cta)) in enumerate(zip(lines_of(it, vocabulary, choice), seats, strict=True)):
        where = f"cta {cta}, cluster {cluster}, gpu {gpu}" if together else f"cta {cta}, gpu {gpu}"
        lines += ["", f"thread P{number} @ {where} {{", *(f"    {line}" for line, _ in body), "}"]
    return "\n".join([*lines, "", condition]) + "\n"
