"""The instructions that programs are made of.

In: names such as `ld`, `st.release`, `fence.sc`, scopes, numbers of threads and places. Out: `Vocabulary`. An
`Ingredient` is an instruction with its parts, counted as one; its `forms` are spellings that execute the same steps
and differ in labels only. The lines of a form are PTX, with holes for places, value and register.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memmodel.errors import InputError, nearest
from memmodel.ptx.vocabulary import Scope

SCOPES = tuple(scope.name.lower() for scope in Scope)

GLOBAL, TILE, SHARED, TENSOR, OBJECT = "g", "G", "s", "t", "b"
"""Classes of places: a word or a 16-byte tile in global memory, a tile in shared memory, tensor memory, an mbarrier."""
PLACED = SHARED + TENSOR + OBJECT
"""Classes whose places are in some CTA."""


@dataclass(frozen=True, slots=True)
class Form:
    """One spelling. `words`: what a vocabulary selects it by. `text`: lines of PTX. `data`: its value depends on the
    load before it in the thread."""

    words: tuple[str, ...]
    text: str
    data: bool = False


@dataclass(frozen=True, slots=True)
class Ingredient:
    """An instruction without its spelling.

    `places`: the class of each place it names; `does`: whether it reads (r), writes (w), both (u) or neither (-) there.
    `fence`: it stands in a gap between two instructions. `answers`: it puts something into a register. `local`: what it
    does depends on the CTA of its thread, so that placements are tried one by one. `arrives`: arrivals on an object.
    `ends`: it waits for the ends of these instructions, does nothing without one before it in its thread, and nothing
    at the end of a thread. `far`: which of its places, x y z, may be in shared memory of another CTA of the cluster.
    """

    name: str
    forms: tuple[Form, ...]
    places: str = ""
    does: str = ""
    fence: bool = False
    answers: bool = False
    local: bool = False
    arrives: int = 0
    far: str = ""
    ends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What programs consist of. `gap`: how many fences may stand between two instructions. `spread`: the placements:
    of threads in CTAs (cta), also of CTAs in clusters (cluster) and on GPUs (gpu); threads of a CTA in one warpgroup.
    `most`: how many instructions besides fences a program has at most. `wide`: tiles are accessed as a whole."""

    ingredients: tuple[Ingredient, ...]
    threads: int = 4
    locations: int = 3
    gap: int = 1
    spread: tuple[str, ...] = ("cta",)
    words: tuple[str, ...] = ()
    most: int | None = None
    wide: bool = False

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
    def room(self) -> str:
        """How large programs are and where they run, in words."""
        room = f"up to {_few(self.threads, 'thread')} and {_few(self.locations, 'place')} of a kind"
        return f"{room}, placed by {', '.join(self.spread)}"


def _few(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _scoped(head: str, sems: Sequence[str], scopes: Sequence[str], tail: str) -> tuple[Form, ...]:
    return tuple(Form((sem, scope), f"{head}.{sem}.{scope}{tail}") for sem in sems for scope in scopes)


def _ingredients(scopes: Sequence[str], wide: bool = False) -> dict[str, Ingredient]:
    """Every ingredient, with the forms that these scopes give it; plain forms come first."""
    near = [scope for scope in scopes if scope in ("cta", "cluster")] or ["cta"]
    load, store = ".global.u32 %{r}, [{x}];", ".global.u32 [{x}], {v};"
    ingredients = [
        Ingredient(
            "ld",
            (Form(("weak",), "ld.weak" + load), *_scoped("ld", ("relaxed", "acquire"), scopes, load)),
            GLOBAL,
            "r",
            answers=True,
        ),
        Ingredient(
            "st",
            (Form(("weak",), "st.weak" + store), *_scoped("st", ("relaxed", "release"), scopes, store)),
            GLOBAL,
            "w",
        ),
        Ingredient("ld.alias", (Form(("weak",), "ld.weak.global.u32 %{r}, [{x}_alias];"),), GLOBAL, "r", answers=True),
        Ingredient("st.data", _dependent(scopes), GLOBAL, "w"),
        Ingredient(
            "atom",
            _scoped("atom", ("relaxed", "acquire", "release", "acq_rel"), scopes, ".global.exch.b32 %{r}, [{x}], {v};"),
            GLOBAL,
            "u",
            answers=True,
        ),
        Ingredient("red", _scoped("red", ("relaxed", "release"), scopes, ".global.or.b32 [{x}], {v};"), GLOBAL, "u"),
        *_fences(scopes),
        Ingredient("bar", (Form((), "bar.sync 0;"),), local=True),
        Ingredient("cluster.arrive", _cluster("arrive", ("release", "relaxed")), local=True),
        Ingredient("cluster.wait", (Form((), "barrier.cluster.wait.acquire;"),), local=True),
        *_tiles(near, scopes, wide),
        *_objects(near),
        *_copies(near),
        *_tensor(),
        *_wgmma(),
    ]
    return {ingredient.name: ingredient for ingredient in ingredients}


def _dependent(scopes: Sequence[str]) -> tuple[Form, ...]:
    """Stores whose value may depend on the load before."""
    free = (Form(("weak",), "st.weak.global.u32 [{x}], {v};"), *_scoped("st", ("relaxed",), scopes, _STORE))
    return tuple(
        variant
        for form in free
        for variant in (form, Form((*form.words, "data"), _DEPENDS + form.text.replace("{v}", "%d{n}"), data=True))
    )


_STORE = ".global.u32 [{x}], {v};"
_DEPENDS = "xor.b32 %e{n}, %{before}, %{before};\nadd.u32 %d{n}, %e{n}, {v};\n"


def _cluster(what: str, sems: Sequence[str]) -> tuple[Form, ...]:
    return tuple(Form((sem,), f"barrier.cluster.{what}.{sem};") for sem in sems)


def _fences(scopes: Sequence[str]) -> Iterable[Ingredient]:
    for sem in ("acq_rel", "sc", "acquire", "release"):
        yield Ingredient(f"fence.{sem}", _scoped("fence", (sem,), scopes, ";"), fence=True)
    for sem, space in (("release", "shared::cta"), ("acquire", "shared::cluster")):
        mnemonic = f"fence.{sem}.sync_restrict::{space}.cluster;"
        yield Ingredient(f"fence.{sem}.restricted", (Form((sem,), mnemonic),), fence=True)
    for what in ("async", "alias", "async.shared::cta", "async.global"):
        yield Ingredient(f"fence.proxy.{what}", (Form(("proxy",), f"fence.proxy.{what};"),), fence=True)
    for what in ("before", "after"):
        mnemonic = f"tcgen05.fence::{what}_thread_sync;"
        yield Ingredient(f"tcgen05.fence::{what}", (Form((what,), mnemonic),), fence=True)


_WORD_LOAD, _WORD_STORE = ".u32 %{r}, [{x}];", ".u32 [{x}], {v};"
_WIDE_LOAD, _WIDE_STORE = ".b128 %q{n}, [{x}];\nmov.b128 {{%{r}, _}}, %q{n};", ".b128 [{x}], %q{n};"
_WIDE_VALUE = "mov.b128 %q{n}, {{{v}, 0}};\n"


def _tiles(near: Sequence[str], every: Sequence[str], wide: bool) -> Iterable[Ingredient]:
    """Loads and stores of tiles: of their first word, or of all (`wide`)."""
    for name, space, place, scopes in (("shared", "shared::cta", SHARED, near), ("tile", "global", TILE, every)):
        load = f".{space}" + (_WIDE_LOAD if wide else _WORD_LOAD)
        store, value = f".{space}" + (_WIDE_STORE if wide else _WORD_STORE), _WIDE_VALUE if wide else ""
        strong = _scoped("ld", ("relaxed", "acquire"), scopes, load)
        local = place == SHARED
        far = "x" if local else ""
        forms = (Form(("weak",), "ld.weak" + load), *strong)
        yield Ingredient(f"ld.{name}", forms, place, "r", answers=True, local=local, far=far)
        strong = _scoped(value + "st", ("relaxed", "release"), scopes, store)
        forms = (Form(("weak",), value + "st.weak" + store), *strong)
        yield Ingredient(f"st.{name}", forms, place, "w", local=local, far=far)


def _objects(scopes: Sequence[str]) -> Iterable[Ingredient]:
    """Arrivals on mbarrier objects, and tests of their first phase; `.plain` ones name neither semantics nor scope."""
    arrive, test = ".shared::cta.b64 _, [{x}];", ".shared::cta.b64 %p, [{x}], 0;\nselp.u32 %{r}, 1, 0, %p;"
    arrivals = {
        "arrive": _scoped("mbarrier.arrive", ("release", "relaxed"), scopes, arrive),
        "arrive.plain": (Form(("plain",), "mbarrier.arrive" + arrive),),
    }
    for name, forms in arrivals.items():
        yield Ingredient(name, forms, OBJECT, "-", local=True, arrives=1, far="x")
    tests = {
        "wait": _scoped("mbarrier.test_wait.parity", ("acquire", "relaxed"), scopes, test),
        "wait.plain": (Form(("plain",), "mbarrier.test_wait.parity" + test),),
    }
    for name, forms in tests.items():
        yield Ingredient(name, forms, OBJECT, "-", answers=True, local=True)


def _copies(scopes: Sequence[str]) -> Iterable[Ingredient]:
    """Bulk copies with what starts and tracks them; reductions; waits for groups."""
    expect = "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [{z}], 16;\n"
    yield Ingredient(
        "copy.in",
        (
            Form(
                (),
                expect + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{y}], [{x}], 16, [{z}];",
            ),
        ),
        TILE + SHARED + OBJECT,
        "rw-",
        local=True,
        arrives=1,
        far="yz",
    )
    out = "cp.async.bulk.global.shared::cta.bulk_group [{y}], [{x}], 16;\ncp.async.bulk.commit_group;"
    yield Ingredient("copy.out", (Form((), out),), SHARED + TILE, "rw", local=True)
    reduce = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [{y}], [{x}], 16;\ncp.async.bulk.commit_group;"
    yield Ingredient("reduce", (Form((), reduce),), SHARED + TILE, "ru", local=True)
    groups = ("copy.out", "reduce")
    yield Ingredient("wait_group", (Form((), "cp.async.bulk.wait_group 0;"),), local=True, ends=groups)
    yield Ingredient("wait_group.read", (Form((), "cp.async.bulk.wait_group.read 0;"),), local=True, ends=groups)


def _tensor() -> Iterable[Ingredient]:
    """tcgen05 operations on one word of tensor memory, and what signals their completion."""
    put = "mov.u32 %v{n}, {v};\ntcgen05.st.sync.aligned.32x32b.x1.b32 [{x}], {{%v{n}}};"
    get = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%{r}}}, [{x}];"
    mma = (
        "mov.u64 %da{n}, {y};\nmov.u64 %db{n}, one;\nmov.u32 %i{n}, 0x8100010;\nmov.pred %c{n}, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [{x}], %da{n}, %db{n}, %i{n}, %c{n};"
    )
    yield Ingredient("tcgen05.st", (Form((), put),), TENSOR, "w", local=True)
    yield Ingredient("tcgen05.ld", (Form((), get),), TENSOR, "r", answers=True, local=True)
    for what in ("st", "ld"):
        form = Form((), f"tcgen05.wait::{what}.sync.aligned;")
        yield Ingredient(f"tcgen05.wait::{what}", (form,), local=True, ends=(f"tcgen05.{what}",))
    yield Ingredient("tcgen05.mma", (Form((), mma),), TENSOR + SHARED, "wr", local=True)
    copies = tuple(
        Form((shape,), f"mov.u64 %dc{{n}}, {{y}};\ntcgen05.cp.cta_group::1.{shape} [{{x}}], %dc{{n}};")
        for shape in ("128x256b", "4x256b")
    )
    yield Ingredient("tcgen05.cp", copies, TENSOR + SHARED, "wr", local=True)
    commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{x}];"
    yield Ingredient("tcgen05.commit", (Form((), commit),), OBJECT, "-", local=True, arrives=1, far="x")


def _wgmma() -> Iterable[Ingredient]:
    """Matrix instructions of a warp that read a tile, in a group of its own, the other operand in shared memory or in
    registers; what waits for groups."""
    mma = (
        "mov.u64 %da{n}, {x};\nmov.u64 %db{n}, one;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
        "{{%{r}, %s{n}, %t{n}, %u{n}}}, %da{n}, %db{n}, 0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;"
    )
    yield Ingredient("wgmma", (Form((), mma),), SHARED, "r", answers=True, local=True)
    registers = (
        "mov.u32 %a{n}, 1;\nmov.u64 %db{n}, {x};\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
        "{{%{r}, %s{n}, %t{n}, %u{n}}}, {{%a{n}, %a{n}, %a{n}, %a{n}}}, %db{n}, 0, 1, 1, 0;\n"
        "wgmma.commit_group.sync.aligned;"
    )
    yield Ingredient("wgmma.registers", (Form((), registers),), SHARED, "r", answers=True, local=True)
    groups = ("wgmma", "wgmma.registers")
    yield Ingredient("wgmma.wait", (Form((), "wgmma.wait_group.sync.aligned 0;"),), local=True, ends=groups)
    yield Ingredient("wgmma.fence", (Form(("wgmma",), "wgmma.fence.sync.aligned;"),), fence=True)


_WHOLE = ("copy.", "tcgen05.mma", "tcgen05.cp", "wgmma")
"""What accesses whole tiles, and would split them if loads and stores accessed their first word."""

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
    "objects": ("ld.shared.weak", "st.shared.weak", "arrive", "wait", "fence.acq_rel"),
    "tensor": (
        "tcgen05.st", "tcgen05.ld", "tcgen05.wait::st", "tcgen05.wait::ld", "arrive", "wait",
        "tcgen05.fence::before", "tcgen05.fence::after",
    ),
}  # fmt: skip
"""Vocabularies that a name stands for."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many threads and places of a kind programs have at most, and how threads are placed, if nobody says."""

    threads: int = 4
    places: int = 3
    spread: tuple[str, ...] = ("cta",)


ROOMS = {"async": Room(2, 1), "copies": Room(2, 1, ("one",))}
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
    wide = any(word.startswith(_WHOLE) for word in spelt) and "reduce" not in spelt
    every = _ingredients(tuple(scopes), wide)
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
        wide=wide,
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
