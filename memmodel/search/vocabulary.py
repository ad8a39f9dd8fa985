"""The instructions that programs are made of.

In: names such as `ld`, `st.release`, `fence.sc`, scopes, numbers of threads and places. Out: `Vocabulary`. An
`Ingredient` is an instruction with its parts, counted as one; its `forms` are spellings that execute the same steps
and differ in labels only. Both stand in the instruction table (`isa.searching.searched`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from memmodel.errors import InputError, nearest
from memmodel.isa.rows.ingredients import Form, Grain, Ingredient
from memmodel.isa.searching.searched import SEARCHED
from memmodel.output import few
from memmodel.ptx.vocabulary import Scope

SCOPES = tuple(scope.name.lower() for scope in Scope)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What programs consist of. `gap`: how many fences may stand between two instructions. `spread`: the placements:
    of threads in CTAs (cta), also of CTAs in clusters (cluster) and on GPUs (gpu); threads of a CTA in one warpgroup.
    `most`: how many instructions besides fences a program has at most. `grain`: how tiles are accessed.
    `scopes`: those that instructions may have. `idle`: programs with an instruction that can do nothing are asked for,
    too."""

    ingredients: tuple[Ingredient, ...]
    threads: int = 4
    locations: int = 3
    gap: int = 1
    spread: tuple[str, ...] = ("cta",)
    words: tuple[str, ...] = ()
    most: int | None = None
    grain: Grain = Grain.WORDS
    scopes: tuple[str, ...] = ("cta", "gpu")
    idle: bool = False

    @property
    def accesses(self) -> tuple[Ingredient, ...]:
        return tuple(ingredient for ingredient in self.ingredients if not ingredient.fence)

    @property
    def fences(self) -> tuple[Form, ...]:
        """What may stand in a gap."""
        return tuple(form for ingredient in self.ingredients if ingredient.fence for form in ingredient.forms)

    def named(self, word: str) -> Ingredient:
        """The ingredient that a word selects, or selects a form of."""
        mine = [it for it in self.ingredients if word == it.name or word.startswith(f"{it.name}.")]
        return max(mine, key=lambda ingredient: len(ingredient.name))

    def text(self) -> str:
        """What was searched, in words."""
        return f"{', '.join(self.words)}; {self.room}"

    @property
    def columns(self) -> int:
        """How many columns a place in tensor memory has."""
        return max(self.grain.columns, *(ingredient.columns for ingredient in self.ingredients))

    @property
    def room(self) -> str:
        """How large programs are, where they run, and whether some are left out, in words."""
        room = f"up to {few(self.threads, 'thread')} and {few(self.locations, 'place')} of a kind"
        return f"{room}, placed by {', '.join(self.spread)}, {'idle instructions too' if self.idle else 'none idle'}"


@cache
def _ingredients(scopes: tuple[str, ...], grain: Grain = Grain.WORDS) -> dict[str, Ingredient]:
    """Every ingredient, with the forms that these scopes give it; plain forms come first."""
    every = (ingredient.spelt(scopes, grain) for _, ingredients in SEARCHED for ingredient in ingredients)
    return {ingredient.name: ingredient for ingredient in every if ingredient is not None}


PRESETS: dict[str, tuple[str, ...]] = {
    "core": ("ld", "st", "fence.acq_rel", "fence.sc"),
    "atomics": ("ld", "st", "atom", "red", "fence.acq_rel", "fence.sc"),
    "plain": ("ld.weak", "st.weak"),
    "fences": ("ld.weak", "st.weak", "fence.sc", "fence.acq_rel"),
    "dependencies": ("ld.weak", "ld.relaxed", "st.data"),
    "barriers": ("ld.weak", "st.weak", "bar"),
    "async": (
        "ld.tile.weak", "st.tile.weak", "ld.shared.weak", "st.shared.weak", "arrive", "wait", "copy.in", "copy.out",
        "wait_group", "fence.proxy.async",
    ),
    "async.wide": (
        "ld.tile.weak", "st.tile.weak", "ld.shared.weak", "st.shared.weak", "arrive", "wait", "copy.in", "copy.out",
        "wait_group", "wait_group.read", "fence.proxy.async",
    ),
    "copies": (
        "ld.shared.weak", "st.shared.weak", "copy.in", "copy.out", "wait.acquire", "wait_group", "fence.proxy.async",
    ),
    "asynchronous": (
        "ld.tile.weak", "st.tile.weak", "ld.shared.weak", "st.shared.weak", "arrive", "wait",
        "init", "inval",
        "copy.in", "copy.in.relaxed", "copy.out", "copy.out.relaxed", "reduce", "wait_group", "wait_group.read",
        "cp.async", "cp.async.arrive", "cp.async.wait",
        "tcgen05.st", "tcgen05.ld", "tcgen05.wait::st", "tcgen05.wait::ld", "tcgen05.mma", "tcgen05.cp.128x256b",
        "tcgen05.commit", "tcgen05.fence::before", "tcgen05.fence::after",
        "wgmma", "wgmma.registers", "wgmma.wait", "wgmma.fence",
        "fence.proxy.async", "fence.proxy.async.shared::cta", "fence.proxy.async.global",
        "fence.proxy.async.acquire", "fence.proxy.async.release", "fence.acq_rel",
    ),
    "objects": ("ld.shared.weak", "st.shared.weak", "arrive", "wait", "fence.acq_rel"),
    "tensor": (
        "tcgen05.st", "tcgen05.ld", "tcgen05.wait::st", "tcgen05.wait::ld", "arrive", "wait",
        "tcgen05.fence::before", "tcgen05.fence::after",
    ),
}  # fmt: skip
"""Vocabularies that a name stands for."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many threads and places of a kind programs have at most, and how threads are placed, by default."""

    threads: int = 4
    places: int = 3
    spread: tuple[str, ...] = ("cta",)


ROOMS = {"async": Room(2, 1), "asynchronous": Room(2, 1), "copies": Room(2, 1, ("one",))}
"""Presets with less room than others, so that five instructions are reached in minutes."""


def every_word(scopes: Sequence[str] = ("cta", "gpu")) -> tuple[str, ...]:
    """Each instruction that a search knows, once for each of its semantics."""
    words: list[str] = []
    for name, ingredient in _ingredients(tuple(scopes)).items():
        semantics = dict.fromkeys(form.words[0] for form in ingredient.forms if form.words)
        words += [f"{name}.{sem}" for sem in semantics] if len(semantics) > 1 else [name]
    return tuple(words)


def vocabulary(
    words: Sequence[str],
    scopes: Sequence[str] = ("cta", "gpu"),
    threads: int | None = None,
    locations: int | None = None,
    spread: Sequence[str] | None = None,
    gap: int | None = None,
) -> Vocabulary:
    """The vocabulary of these words: an ingredient (`ld`), some of its forms (`ld.acquire`), a preset (`core`).

    `threads`, `locations`, `spread` None: as the first preset that has a room of its own says. Raises InputError.
    """
    own = next((ROOMS[word] for word in words if word in ROOMS), Room())
    for scope in scopes:
        if scope not in SCOPES:
            raise InputError(f"unknown scope {scope!r}", hint=f"one of {', '.join(SCOPES)}")
    spelt = [name for word in words for name in PRESETS.get(word, (word,))]
    every = _ingredients(tuple(scopes))
    named = [every[_select(word, every)[0]] for word in spelt]
    grain = max((ingredient.grain for ingredient in named), default=Grain.WORDS)
    every = _ingredients(tuple(scopes), grain)
    chosen: dict[str, set[Form]] = {}
    for word in spelt:
        name, forms = _select(word, every)
        chosen.setdefault(name, set()).update(forms)
    ingredients = [
        replace(ingredient, forms=tuple(form for form in ingredient.forms if form in chosen[name]))
        for name, ingredient in every.items()
        if name in chosen
    ]
    if not any(not ingredient.fence for ingredient in ingredients):
        raise InputError("a vocabulary needs an instruction that is not a fence", hint="such as ld, st")
    proxies = any(
        form.words == ("proxy",) for ingredient in ingredients if ingredient.fence for form in ingredient.forms
    )
    memory = any(
        form.words != ("proxy",) for ingredient in ingredients if ingredient.fence for form in ingredient.forms
    )
    room = gap if gap is not None else 2 if proxies and memory else 1
    return Vocabulary(
        tuple(ingredients),
        threads or own.threads,
        locations or own.places,
        room,
        tuple(spread or own.spread),
        tuple(dict.fromkeys(spelt)),
        grain=grain,
        scopes=tuple(scopes),
    )


def _select(word: str, every: dict[str, Ingredient]) -> tuple[str, tuple[Form, ...]]:
    """The ingredient that a word names, and the forms that it selects. Raises InputError."""
    if word in every:
        return word, every[word].forms
    parts = word.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:cut])
        if name in every:
            forms = tuple(form for form in every[name].forms if set(parts[cut:]) <= set(form.words))
            if forms:
                return name, forms
            words = sorted({word for form in every[name].forms for word in form.words})
            raise InputError(f"{name} has no form {'.'.join(parts[cut:])!r} here", hint=f"words: {', '.join(words)}")
    near = nearest(word, [*every, *PRESETS])
    meant = f"did you mean {near}? " if near else ""
    raise InputError(
        f"no instruction {word!r} in the vocabulary",
        hint=f"{meant}presets: {', '.join(PRESETS)}; instructions: {', '.join(every)}",
    )
