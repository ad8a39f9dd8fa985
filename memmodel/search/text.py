"""A program of the search as a litmus test.

In: Sketch, Vocabulary, a choice of forms. Out: text. Settled here: names of places and registers, values and
initialisation. Each store has a value of its own, so that what a load returns says which store it read; tiles begin
with values of their own, since a copy carries them on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.isa.rows.ingredients import GLOBAL, OBJECT, PLACED, SHARED, TENSOR, TILE, Form, Grain, Ingredient
from memmodel.ptx.vocabulary import Place
from memmodel.search.sketches import Homes, Sketch, Use
from memmodel.search.vocabulary import Vocabulary

NAMES = {
    GLOBAL: ("x", "y", "z", "w"),
    TILE: ("ga", "gb", "gc", "gd"),
    SHARED: ("sa", "sb", "sc", "sd"),
    TENSOR: ("ta", "tb", "tc", "td"),
    OBJECT: ("bar", "bar1", "bar2", "bar3"),
}
_DECLARED = {
    GLOBAL: ".global .u32 {name} = 0;",
    TILE: ".global .align 16 .{word} {name}[{words}] = {{{initial}}};",
    SHARED: ".shared .align 16 .{word} {name}[{words}] = {{{initial}}};",
    TENSOR: ".tensor .b32 {name} = {initial};",
    OBJECT: ".shared .align 8 .b64 {name} = mbarrier({count});",
}
_WIDE = {
    TILE: ".global .align 16 .b128 {name} = {initial};",
    SHARED: ".shared .align 16 .b128 {name} = {initial};",
}
_INITIAL = 20
"""The second tile begins with 21, the third with 22; tensor memory beside tiles with 10; stores write 1, 2, …"""


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
    """A sketch with its choices laid out, or part of one. `seats` and `homes` as in `Sketch`."""

    threads: tuple[tuple[Spot, ...], ...]
    seats: Seats | None
    homes: Homes = ()

    def without(self, dimension: int) -> Draft:
        """Less the instruction that a choice decides. The other choices keep their numbers."""
        kept = tuple(tuple(spot for spot in body if spot.dimension != dimension) for body in self.threads)
        return Draft(kept, self.seats, self.homes)

    def is_far(self, thread: int, place: tuple[str, int]) -> bool:
        """True if a place belongs to another CTA than the thread."""
        home = dict(self.homes).get(place)
        return home is not None and self.seats is not None and home != self.seats[thread][2]

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
            ingredient = vocabulary.accesses[use[0]]
            loaded = any(_loads(vocabulary.accesses[name]) for name, _ in body[:index])
            forms = tuple(form for form in ingredient.forms if loaded or not form.data)
            mine.append(Spot(number, index, use, forms))
            number += 1
            if gaps and index + 1 < len(body) and len(fences) > 1:
                for _ in range(vocabulary.gap):
                    mine.append(Spot(number, index, None, fences))
                    number += 1
        threads.append(tuple(mine))
    return Draft(tuple(threads), sketch.seats, sketch.homes)


def _loads(ingredient: Ingredient) -> bool:
    return ingredient.answers and bool({"r", "u"} & set(ingredient.does))


def before(body: Sequence[Spot], at: int, vocabulary: Vocabulary) -> int | None:
    """The place in the thread of the last instruction before this one that loads into a register."""
    for number in range(at - 1, -1, -1):
        use = body[number].use
        if use is not None and _loads(vocabulary.accesses[use[0]]):
            return number
    return None


def lines_of(
    draft: Draft, vocabulary: Vocabulary, choice: Sequence[int], less: int | None = None
) -> list[list[tuple[str, Spot]]]:
    """The lines of each thread, each with its spot. `less`: the choice of an instruction that is left out; the values
    of the others stay what they are."""
    threads: list[list[tuple[str, Spot]]] = []
    value = 0
    for thread, body in enumerate(draft.threads):
        lines: list[tuple[str, Spot]] = []
        for at, spot in enumerate(body):
            form = spot.forms[choice[spot.dimension]]
            if form is None:
                continue
            text = form.text
            if spot.use is not None:
                ingredient, places = used(spot.use, vocabulary)
                homes = dict(draft.homes)
                where = list(zip(ingredient.places, spot.use[1], strict=True))
                away = [homes[place] if draft.is_far(thread, place) else None for place in where]
                text, places = reaching(text, places, away)
                value += "w" in ingredient.does or "u" in ingredient.does
                last = before(body, at, vocabulary)
                if form.data and last is None:
                    text = text.split("\n")[-1].replace("%d{n}", "{v}")
                holes = dict(zip("xyz", places, strict=False))
                source = "" if last is None else f"r{body[last].index}"
                text = text.format(
                    **holes, v=value_of(ingredient, value), r=f"r{spot.index}", n=spot.index, before=source
                )
            if spot.dimension != less:
                lines += [(line, spot) for line in text.split("\n")]
        threads.append(lines)
    return threads


def reaching(text: str, names: Sequence[str], ctas: Sequence[int | None]) -> tuple[str, list[str]]:
    """The text and the names of places, with those of another CTA (None: its own) named so."""
    if any(cta is not None for cta in ctas):
        text = text.replace(".shared::cta", ".shared::cluster").replace(
            "expect_tx.relaxed.cta", "expect_tx.relaxed.cluster"
        )
    return text, [name if cta is None else f"{name}@cta{cta}" for name, cta in zip(names, ctas, strict=True)]


def written(draft: Draft, vocabulary: Vocabulary) -> dict[int, int]:
    """What each write of a draft writes, by the choice that decides its form."""
    values: dict[int, int] = {}
    for spot in draft.uses:
        ingredient = vocabulary.accesses[spot.use[0]] if spot.use is not None else None
        if ingredient is not None and {"w", "u"} & set(ingredient.does):
            values[spot.dimension] = value_of(ingredient, len(values) + 1)
    return values


def value_of(ingredient: Ingredient, number: int) -> int:
    """What the n-th write writes; each reduction sets a bit of its own."""
    return 8 << number if ingredient.reduces else number


def shows(value: int, wrote: int) -> bool:
    """True if a value shows that `wrote` was written: reductions set bits above those of the other writes."""
    return bool(value & wrote) if wrote >= 8 else value & 7 == wrote


def used(use: Use, vocabulary: Vocabulary) -> tuple[Ingredient, list[str]]:
    """An instruction and the names of its places."""
    ingredient = vocabulary.accesses[use[0]]
    return ingredient, [NAMES[kind][place] for kind, place in zip(ingredient.places, use[1], strict=True)]


def used_places(draft: Draft, vocabulary: Vocabulary) -> dict[tuple[str, int], int]:
    """The places that are named, each with the arrivals that an object gets."""
    arrivals: dict[tuple[str, int], int] = {}
    for spot in draft.uses:
        assert spot.use is not None
        ingredient = vocabulary.accesses[spot.use[0]]
        for kind, place in zip(ingredient.places, spot.use[1], strict=True):
            arrivals[kind, place] = arrivals.get((kind, place), 0) + (ingredient.arrives if kind == OBJECT else 0)
    return dict(sorted(arrivals.items(), key=lambda item: ("gGstb".index(item[0][0]), item[0][1])))


def asked(draft: Draft, vocabulary: Vocabulary) -> list[str]:
    """What an outcome consists of: every register that an instruction sets, then every place."""
    registers = [
        f"P{thread}:r{spot.index}"
        for thread, body in enumerate(draft.threads)
        for spot in body
        if spot.use is not None and vocabulary.accesses[spot.use[0]].answers
    ]
    arrays = {TENSOR} if vocabulary.columns > 1 else set()
    if vocabulary.grain is not Grain.WHOLE:
        arrays |= {TILE, SHARED}
    places = []
    one_cta = draft.seats is None or len(set(draft.seats)) == 1
    for kind, place in used_places(draft, vocabulary):
        if kind != OBJECT:
            home = "" if one_cta or kind not in PLACED else f"@cta{dict(draft.homes)[kind, place]}"
            places.append(NAMES[kind][place] + home + ("[0]" if kind in arrays else ""))
    return registers + places


def places_of(seats: Seats, vocabulary: Vocabulary) -> list[Place]:
    """Where each thread runs."""
    together = len({seat[:2] for seat in seats}) < len(set(seats))  # two CTAs share a cluster
    places = []
    for number, (gpu, cluster, cta) in enumerate(seats):
        warp = sum(seat == seats[number] for seat in seats[:number]) if "warpgroup" in vocabulary.spread else None
        places.append(Place(gpu, cluster if together else None, cta, warp))
    return places


def declared(
    places: Sequence[tuple[str, str, int]], seen: Sequence[tuple[Ingredient, list[str]]], vocabulary: Vocabulary
) -> list[str]:
    """The declarations of a program. `places`: class, name, and arrivals of an object; `seen`: what names them."""
    lines = []
    tiles = 0
    for kind, name, count in places:
        initial = _INITIAL + tiles if tiles else 0
        if kind == TENSOR:
            initial = 10 if vocabulary.grain else 0
        tiles += kind in (TILE, SHARED)
        pattern = _WIDE.get(kind, _DECLARED[kind]) if vocabulary.grain is Grain.WHOLE else _DECLARED[kind]
        word, size = vocabulary.grain.word
        start = str(initial)
        if kind == TENSOR and vocabulary.columns > 1:
            starts = ", ".join(str(initial + column) for column in range(vocabulary.columns))
            name, start = f"{name}[{vocabulary.columns}]", f"{{{starts}}}"
        lines.append(pattern.format(name=name, initial=start, count=max(count, 1), word=word, words=16 // size))
    lines += dict.fromkeys(
        line.format(**dict(zip("xyz", names, strict=False)))
        for ingredient, names in seen
        for line in ingredient.declares
    )
    return lines


def write(
    draft: Draft,
    vocabulary: Vocabulary,
    choice: Sequence[int],
    seats: Seats,
    condition: str,
    *,
    name: str = "found",
    header: str = "",
    less: int | None = None,
) -> str:
    """The litmus test of one program. `condition`: its last line. `less`: as in `lines_of`."""
    lines = [f"PTX {name}", *([header] if header else []), ""]
    places = [(kind, NAMES[kind][place], count) for (kind, place), count in used_places(draft, vocabulary).items()]
    lines += declared(places, [used(spot.use, vocabulary) for spot in draft.uses if spot.use is not None], vocabulary)
    for number, (body, at) in enumerate(
        zip(lines_of(draft, vocabulary, choice, less), places_of(seats, vocabulary), strict=True)
    ):
        cluster = "" if at.cluster is None else f", cluster {at.cluster}"
        warp = "" if at.warp is None else f", warp {at.warp}"
        where = f"cta {at.cta}{cluster}, gpu {at.gpu}{warp}"
        lines += ["", f"thread P{number} @ {where} {{", *(f"    {line}" for line, _ in body), "}"]
    return "\n".join([*lines, "", condition]) + "\n"
