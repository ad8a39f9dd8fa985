"""How a search for programs uses a row of the instruction table.

In: nothing. Out: `SEARCHED`: the first heads of rows, with the words that these give to the vocabulary of searches. A
test asks that each row stands here or in `not_searched`, so that an instruction is searched from the day on which it is
added. Instructions that a form has beside the one of its row are parts of it: an `expect_tx`, a `commit_group`,
computations.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.isa.rows.ingredients import (
    BEGINS,
    ENDS,
    GLOBAL,
    NEAR,
    OBJECT,
    SHARED,
    TENSOR,
    TILE,
    Form,
    Grain,
    Ingredient,
)


def _forms(**texts: str) -> tuple[Form, ...]:
    """Forms by the word that selects each."""
    return tuple(Form((word,), text) for word, text in texts.items())


def _only(text: str, *words: str) -> tuple[Form, ...]:
    return (Form(words, text),)


def _fence(
    name: str, text: str, *words: str, pairs: tuple[str, ...] = (), scopes: tuple[str, ...] = (), covers: str = ""
) -> Ingredient:
    return Ingredient(name, _only(text, *words), fence=True, pairs=pairs, scopes=scopes, covers=covers)


def _row(head: str, *ingredients: Ingredient) -> tuple[str, tuple[Ingredient, ...]]:
    return head, ingredients


# ---- loads, stores, atomics ------------------------------------------------------------------------------------------

_LOAD, _STORE = ".global.u32 %{r}, [{x}];", ".global.u32 [{x}], {v};"
_DEPENDS = "xor.b32 %e{n}, %{before}, %{before};\nadd.u32 %d{n}, %e{n}, {v};\n"
_WORD_LOAD, _WORD_STORE = ".{word} %{r}, [{x}];", ".{word} [{x}], {v};"
_WIDE_LOAD, _WIDE_STORE = ".b128 %q{n}, [{x}];\nmov.b128 {{%{r}, _}}, %q{n};", ".b128 [{x}], %q{n};"
_WIDE_VALUE = "mov.b128 %q{n}, {{{v}, 0}};\n"


def _loads(tail: str, head: str = "ld") -> tuple[Form, ...]:
    return _forms(
        weak=f"{head}.weak{tail}", relaxed=f"{head}.relaxed.{{scope}}{tail}", acquire=f"{head}.acquire.{{scope}}{tail}"
    )


def _stores(tail: str, value: str = "", head: str = "st") -> tuple[Form, ...]:
    return _forms(
        weak=f"{value}{head}.weak{tail}",
        relaxed=f"{value}{head}.relaxed.{{scope}}{tail}",
        release=f"{value}{head}.release.{{scope}}{tail}",
    )


def _dependent() -> tuple[Form, ...]:
    """Stores whose value may depend on the load before."""
    free = (Form(("weak",), "st.weak" + _STORE), Form(("relaxed",), "st.relaxed.{scope}" + _STORE))
    return tuple(
        variant
        for form in free
        for variant in (form, Form((*form.words, "data"), _DEPENDS + form.text.replace("{v}", "%d{n}"), data=True))
    )


def _atomics(tail: str, head: str, *semantics: str) -> tuple[Form, ...]:
    return tuple(Form((sem,), f"{head}.{sem}.{{scope}}{tail}") for sem in semantics)


def _tile_load(name: str, space: str, place: str, far: str = "") -> Ingredient:
    """Loads of the first word of a tile, or of all."""
    word, wide = _loads(f".{space}{_WORD_LOAD}"), _loads(f".{space}{_WIDE_LOAD}")
    return Ingredient(name, word, place, "r", far=far, wide=wide)


def _tile_store(name: str, space: str, place: str, far: str = "") -> Ingredient:
    """Stores to the first word of a tile, or to all."""
    word, wide = _stores(f".{space}{_WORD_STORE}"), _stores(f".{space}{_WIDE_STORE}", _WIDE_VALUE)
    return Ingredient(name, word, place, "w", far=far, wide=wide)


def _through_alias(access: Ingredient) -> Ingredient:
    """The same access through another virtual address of the place."""

    def renamed(forms: tuple[Form, ...]) -> tuple[Form, ...]:
        return tuple(replace(form, text=form.text.replace("[{x}]", "[{x}_alias]")) for form in forms)

    return replace(
        access,
        name=f"{access.name}.alias",
        forms=renamed(access.forms),
        wide=renamed(access.wide),
        declares=("{x}_alias aliases {x};",),
        far="",
    )


_MULTIMEM = (".global .u32 {x}_all = multimem({x});",)
_MULTIMEM_LOADS = _loads(".global.add.u32 %{r}, [{x}_all];", "multimem.ld_reduce")
_MULTIMEM_STORES = _stores(".global.u32 [{x}_all], {v};", head="multimem.st")
_MULTIMEM_REDUCTIONS = _atomics(".global.or.b32 [{x}_all], {v};", "multimem.red", "relaxed", "release")
_RELEASED_STORE = _only("st.async.release.{scope}.global.u32 [{x}], {v};", "release")
_RELEASED_REDUCTION = _only("red.async.release.{scope}.global.add.u32 [{x}], {v};", "release")

# ---- fences for some memory ------------------------------------------------------------------------------------------

_RESTRICTED_RELEASE = "fence.release.sync_restrict::shared::cta.cluster;"
_RESTRICTED_ACQUIRE = "fence.acquire.sync_restrict::shared::cluster.cluster;"
_INIT_RELEASE = "fence.mbarrier_init.release.cluster;"

# ---- fences of proxies -----------------------------------------------------------------------------------------------

_RELEASE_ASYNC = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"
_ACQUIRE_ASYNC = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;"

# ---- barriers and objects --------------------------------------------------------------------------------------------

_CLUSTER_ARRIVE = _forms(release="barrier.cluster.arrive.release;", relaxed="barrier.cluster.arrive.relaxed;")
_ARRIVED, _TESTED = ".shared::cta.b64 _, [{x}];", ".shared::cta.b64 %p, [{x}], 0;\nselp.u32 %{r}, 1, 0, %p;"
_ARRIVE = _atomics(_ARRIVED, "mbarrier.arrive", "release", "relaxed")
_WAIT = _atomics(_TESTED, "mbarrier.test_wait.parity", "acquire", "relaxed")
_CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [{x}], [{y}];"


def _expecting(place: str, size: int | str, text: str) -> str:
    """An instruction whose bytes are expected at an object, behind an arrive that expects them."""
    return f"mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [{{{place}}}], {size};\n{text}"


# ---- copies ----------------------------------------------------------------------------------------------------------

_COMMIT = "\ncp.async.bulk.commit_group;"
_COPY_IN = ".shared::cluster.global.mbarrier::complete_tx::bytes"
_COPY_OUT = ".global.shared::cta.bulk_group"
_COPY_MAP = (
    "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{y}], [{x}_map, {{0}}], [{z}];"
)
_STORE_ASYNC = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
_GROUPED = ("copy.out", "copy.out.relaxed", "reduce")

# ---- matrices --------------------------------------------------------------------------------------------------------

_ONE = (".shared .align 16 .u32 one[4] = {{1}};",)
_TENSOR_STORE = "mov.u32 %v{n}, {v};\ntcgen05.st.sync.aligned.32x32b.x{columns}.b32 [{x}], {{%v{n}{stored}}};"
_TENSOR_LOAD = "tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {{%{r}{loaded}}}, [{x}];"
_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{x}_at], 32;"
_DEALLOC = "mov.u32 %a{n}, {x};\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %a{n}, 32;"
_RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
_TENSOR_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{x}];"
_TENSOR_COPIES = tuple(
    Form((shape,), f"mov.u64 %dc{{n}}, {{y}};\ntcgen05.cp.cta_group::1.{shape} [{{x}}], %dc{{n}};")
    for shape in ("128x256b", "4x256b")
)
_MMA = (
    "mov.u64 %da{n}, {y};\nmov.u64 %db{n}, one;\nmov.u32 %i{n}, 0x8100010;\nmov.pred %c{n}, 0;\n"
    "tcgen05.mma.cta_group::1.kind::f16 [{x}], %da{n}, %db{n}, %i{n}, %c{n};"
)
_WGMMA = (
    "mov.u64 %da{n}, {x};\nmov.u64 %db{n}, one;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
    "{{%{r}, %s{n}, %t{n}, %u{n}}}, %da{n}, %db{n}, 0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;"
)
_WGMMA_REGISTERS = (
    "mov.u32 %a{n}, 1;\nmov.u64 %db{n}, {x};\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
    "{{%{r}, %s{n}, %t{n}, %u{n}}}, {{%a{n}, %a{n}, %a{n}, %a{n}}}, %db{n}, 0, 1, 1, 0;\n"
    "wgmma.commit_group.sync.aligned;"
)

# ---- tensor maps: each tile has one, and another tile that the map may be changed to ---------------------------------

_MAP = (
    ".global .align 128 .b8 {x}_map[128] = tensormap({x});",
    ".global .align 16 .u32 {x}_other[4] = {{99}};",
)
_OF_MAPS = ("copy.map",)
_ACQUIRE_MAP = _only("fence.proxy.tensormap::generic.acquire.{scope} [{x}_map], 128;", "half")
_REPLACE = "mov.u64 %a{n}, {x}_other;\ntensormap.replace.tile.global_address.global.b1024.b64 [{x}_map], %a{n};"
_REPLACE_ALIAS = _REPLACE.replace("{x}_map", "{x}_map_alias")
_DRAFT = (".shared .align 128 .b8 {x}_draft[128] = tensormap({x}_other);",)
_COPY_AND_FENCE = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned"
_PUBLISH = _only(_COPY_AND_FENCE + " [{x}_map], [{x}_draft], 128;", "half")
_MAP_ALIAS = (*_MAP, "{x}_map_alias aliases {x}_map;")

# ---- the table -------------------------------------------------------------------------------------------------------

SEARCHED: tuple[tuple[str, tuple[Ingredient, ...]], ...] = (
    _row("ld", Ingredient("ld", _loads(_LOAD), GLOBAL, "r")),
    _row("st", Ingredient("st", _stores(_STORE), GLOBAL, "w")),
    _row("ld", _through_alias(Ingredient("ld", _loads(_LOAD), GLOBAL, "r"))),
    _row("st", _through_alias(Ingredient("st", _stores(_STORE), GLOBAL, "w"))),
    _row("st", Ingredient("st.data", _dependent(), GLOBAL, "w")),
    _row(
        "atom",
        Ingredient(
            "atom",
            _atomics(".global.exch.b32 %{r}, [{x}], {v};", "atom", "relaxed", "acquire", "release", "acq_rel"),
            GLOBAL,
            "u",
        ),
    ),
    _row(
        "red",
        Ingredient(
            "red", _atomics(".global.or.b32 [{x}], {v};", "red", "relaxed", "release"), GLOBAL, "u", reduces=True
        ),
    ),
    _row(
        "fence",
        *(_fence(f"fence.{sem}", f"fence.{sem}.{{scope}};", sem) for sem in ("acq_rel", "sc", "acquire", "release")),
        _fence("fence.release.restricted", _RESTRICTED_RELEASE, "release", covers=SHARED),
        _fence("fence.acquire.restricted", _RESTRICTED_ACQUIRE, "acquire", covers=SHARED),
    ),
    _row(
        "fence.mbarrier_init",
        _fence("fence.mbarrier_init", _INIT_RELEASE, "release", pairs=("init",), covers=OBJECT),
    ),
    _row(
        "fence.proxy.async",
        _fence("fence.proxy.async", "fence.proxy.async;", "proxy"),
        _fence("fence.proxy.async.shared::cta", "fence.proxy.async.shared::cta;", "proxy"),
        _fence("fence.proxy.async.global", "fence.proxy.async.global;", "proxy"),
    ),
    _row(
        "fence.proxy",
        _fence("fence.proxy.alias", "fence.proxy.alias;", "proxy", pairs=("ld.alias.weak",)),
        _fence(
            "fence.proxy.alias.release",
            "fence.proxy.alias.release.sys;",
            "proxy",
            pairs=("ld.alias.weak", "fence.proxy.alias.acquire"),
        ),
        _fence(
            "fence.proxy.alias.acquire",
            "fence.proxy.alias.acquire.sys;",
            "proxy",
            pairs=("ld.alias.weak", "fence.proxy.alias.release"),
        ),
    ),
    _row(
        "fence.proxy.async::generic",
        _fence("fence.proxy.async.release", _RELEASE_ASYNC, "proxy", pairs=("fence.proxy.async.acquire",)),
        _fence("fence.proxy.async.acquire", _ACQUIRE_ASYNC, "proxy", pairs=("fence.proxy.async.release",)),
    ),
    _row(
        "tcgen05.fence::before_thread_sync",
        _fence("tcgen05.fence::before", "tcgen05.fence::before_thread_sync;", "before"),
        _fence("tcgen05.fence::after", "tcgen05.fence::after_thread_sync;", "after"),
    ),
    _row("bar.sync", Ingredient("bar", _only("bar.sync 0;"), meets="bar")),
    _row("barrier.cluster.arrive", Ingredient("cluster.arrive", _CLUSTER_ARRIVE, meets="cluster")),
    _row("barrier.cluster.wait", Ingredient("cluster.wait", _only("barrier.cluster.wait.acquire;"), meets="cluster")),
    _row("ld", _tile_load("ld.shared", "shared::cta", SHARED, "x")),
    _row("st", _tile_store("st.shared", "shared::cta", SHARED, "x")),
    _row("ld", _tile_load("ld.tile", "global", TILE)),
    _row("st", _tile_store("st.tile", "global", TILE)),
    _row(
        "ld",
        *(
            _through_alias(load)
            for load in (_tile_load("ld.shared", "shared::cta", SHARED), _tile_load("ld.tile", "global", TILE))
        ),
    ),
    _row(
        "st",
        *(
            _through_alias(store)
            for store in (_tile_store("st.shared", "shared::cta", SHARED), _tile_store("st.tile", "global", TILE))
        ),
    ),
    _row(
        "mbarrier.arrive",
        Ingredient("arrive", _ARRIVE, OBJECT, "-", arrives=1, far="x", scopes=NEAR),
        Ingredient("arrive.plain", _only("mbarrier.arrive" + _ARRIVED, "plain"), OBJECT, "-", arrives=1, far="x"),
    ),
    _row(
        "mbarrier.test_wait",
        Ingredient("wait", _WAIT, OBJECT, "-", scopes=NEAR),
        Ingredient("wait.plain", _only("mbarrier.test_wait.parity" + _TESTED, "plain"), OBJECT, "-"),
    ),
    _row(
        "cp.async.bulk",
        Ingredient(
            "copy.in",
            _only(_expecting("z", 16, f"cp.async.bulk{_COPY_IN} [{{y}}], [{{x}}], 16, [{{z}}];")),
            TILE + SHARED + OBJECT,
            "rw-",
            arrives=1,
            far="yz",
            grain=Grain.WHOLE,
        ),
        Ingredient(
            "copy.out",
            _only(f"cp.async.bulk{_COPY_OUT} [{{y}}], [{{x}}], 16;{_COMMIT}"),
            SHARED + TILE,
            "rw",
            grain=Grain.WHOLE,
        ),
        Ingredient(
            "copy.out.relaxed",
            _only(f"cp.async.bulk.relaxed.{{scope}}{_COPY_OUT}.b128 [{{y}}], [{{x}}], 16;{_COMMIT}", "relaxed"),
            SHARED + TILE,
            "rw",
            grain=Grain.WHOLE,
        ),
        Ingredient(
            "copy.in.relaxed",
            _only(
                _expecting("z", 16, f"cp.async.bulk.relaxed.{{scope}}{_COPY_IN}.b128 [{{y}}], [{{x}}], 16, [{{z}}];"),
                "relaxed",
            ),
            TILE + SHARED + OBJECT,
            "rw-",
            arrives=1,
            far="yz",
            grain=Grain.WHOLE,
        ),
    ),
    _row(
        "cp.reduce.async.bulk",
        Ingredient(
            "reduce",
            _only(f"cp.reduce.async.bulk{_COPY_OUT}.add.u64 [{{y}}], [{{x}}], 16;{_COMMIT}"),
            SHARED + TILE,
            "ru",
            grain=Grain.HALVES,
        ),
    ),
    _row(
        "cp.async.bulk.wait_group",
        Ingredient("wait_group", _only("cp.async.bulk.wait_group 0;"), ends=_GROUPED),
        Ingredient("wait_group.read", _only("cp.async.bulk.wait_group.read 0;"), ends=_GROUPED),
    ),
    _row("tcgen05.st", Ingredient("tcgen05.st", _only(_TENSOR_STORE), TENSOR, "w")),
    _row("tcgen05.ld", Ingredient("tcgen05.ld", _only(_TENSOR_LOAD), TENSOR, "r")),
    _row(
        "tcgen05.wait::ld",
        Ingredient("tcgen05.wait::st", _only("tcgen05.wait::st.sync.aligned;"), ends=("tcgen05.st",)),
        Ingredient("tcgen05.wait::ld", _only("tcgen05.wait::ld.sync.aligned;"), ends=("tcgen05.ld",)),
    ),
    _row(
        "tcgen05.mma",
        Ingredient("tcgen05.mma", _only(_MMA), TENSOR + SHARED, "wr", grain=Grain.WHOLE, declares=_ONE),
    ),
    _row("tcgen05.cp", Ingredient("tcgen05.cp", _TENSOR_COPIES, TENSOR + SHARED, "wr", grain=Grain.WHOLE)),
    _row("tcgen05.commit", Ingredient("tcgen05.commit", _only(_TENSOR_COMMIT), OBJECT, "-", arrives=1, far="x")),
    _row(
        "wgmma.mma_async",
        Ingredient("wgmma", _only(_WGMMA), SHARED, "r", grain=Grain.WHOLE, declares=_ONE),
        Ingredient("wgmma.registers", _only(_WGMMA_REGISTERS), SHARED, "r", grain=Grain.WHOLE),
    ),
    _row(
        "wgmma.wait_group",
        Ingredient("wgmma.wait", _only("wgmma.wait_group.sync.aligned 0;"), ends=("wgmma", "wgmma.registers")),
    ),
    _row("wgmma.fence", _fence("wgmma.fence", "wgmma.fence.sync.aligned;", "wgmma")),
    _row(
        "tensormap.cp_fenceproxy",
        Ingredient("tensormap.cp_fenceproxy", _PUBLISH, TILE, "-", declares=(*_MAP, *_DRAFT), pairs=_OF_MAPS),
    ),
    _row(
        "fence.proxy.tensormap::generic",
        _fence(
            "fence.proxy.tensormap.release",
            "fence.proxy.tensormap::generic.release.{scope};",
            "proxy",
            pairs=("fence.proxy.tensormap.acquire", "tensormap.replace"),
        ),
        Ingredient("fence.proxy.tensormap.acquire", _ACQUIRE_MAP, TILE, "-", declares=_MAP, pairs=_OF_MAPS),
    ),
    _row("mbarrier.init", Ingredient("init", _only("mbarrier.init.shared::cta.b64 [{x}], 1;"), OBJECT, "-")),
    _row("mbarrier.inval", Ingredient("inval", _only("mbarrier.inval.shared::cta.b64 [{x}];"), OBJECT, "-")),
    _row(
        "cp.async",
        Ingredient(
            "cp.async",
            _only("cp.async.ca.shared.global [{y}], [{x}], 16;\ncp.async.commit_group;"),
            TILE + SHARED,
            "rw",
            grain=Grain.WHOLE,
        ),
    ),
    _row(
        "cp.async.mbarrier.arrive",
        Ingredient(
            "cp.async.arrive",
            _only("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [{x}];"),
            OBJECT,
            "-",
            arrives=1,
            pairs=("cp.async",),
        ),
    ),
    _row("cp.async.wait_group", Ingredient("cp.async.wait", _only("cp.async.wait_group 0;"), ends=("cp.async",))),
    _row(
        "cp.async.bulk.tensor",
        Ingredient(
            "copy.map",
            _only(_expecting("z", 16, _COPY_MAP)),
            TILE + SHARED + OBJECT,
            "rw-",
            arrives=1,
            far="yz",
            declares=_MAP,
        ),
    ),
    _row(
        "tensormap.replace",
        Ingredient("tensormap.replace", _only(_REPLACE), TILE, "-", declares=_MAP, pairs=_OF_MAPS),
        Ingredient("tensormap.replace.alias", _only(_REPLACE_ALIAS), TILE, "-", declares=_MAP_ALIAS, pairs=_OF_MAPS),
    ),
    _row(
        "st.async",
        Ingredient(
            "st.async",
            _only(_expecting("y", "{bytes}", f"{_STORE_ASYNC}.{{word}} [{{x}}], {{v}}, [{{y}}];")),
            SHARED + OBJECT,
            "w-",
            arrives=1,
            far="xy",
            wide=_only(_WIDE_VALUE + _expecting("y", 16, f"{_STORE_ASYNC}.b128 [{{x}}], %q{{n}}, [{{y}}];")),
        ),
        Ingredient("st.async.release", _RELEASED_STORE, GLOBAL, "w", scopes=("gpu", "sys")),
    ),
    _row(
        "red.async",
        Ingredient("red.async.release", _RELEASED_REDUCTION, GLOBAL, "u", reduces=True, scopes=("gpu", "sys")),
    ),
    _row("multimem.ld_reduce", Ingredient("multimem.ld", _MULTIMEM_LOADS, GLOBAL, "r", declares=_MULTIMEM)),
    _row("multimem.st", Ingredient("multimem.st", _MULTIMEM_STORES, GLOBAL, "w", declares=_MULTIMEM)),
    _row(
        "multimem.red",
        Ingredient("multimem.red", _MULTIMEM_REDUCTIONS, GLOBAL, "u", reduces=True, declares=_MULTIMEM),
    ),
    _row(
        "tcgen05.alloc",
        Ingredient(
            "tcgen05.alloc",
            _only(_ALLOC),
            TENSOR,
            "-",
            declares=(".shared .align 4 .b32 {x}_at = alloc({x});",),
            pairs=("tcgen05.dealloc",),
            meets="permit",
            life=BEGINS,
        ),
    ),
    _row(
        "tcgen05.dealloc",
        Ingredient("tcgen05.dealloc", _only(_DEALLOC), TENSOR, "-", pairs=("tcgen05.alloc",), life=ENDS),
    ),
    _row(
        "tcgen05.relinquish_alloc_permit",
        Ingredient("tcgen05.relinquish", _only(_RELINQUISH), pairs=("tcgen05.alloc",), meets="permit"),
    ),
    _row(
        "tcgen05.shift",
        Ingredient("tcgen05.shift", _only("tcgen05.shift.cta_group::1.down [{x}];"), TENSOR, "u", columns=2),
    ),
    _row(
        "clusterlaunchcontrol.try_cancel.async",
        Ingredient("try_cancel", _only(_expecting("y", 16, _CANCEL)), SHARED + OBJECT, "w-", arrives=1),
    ),
)
"""Plain words first: the search prefers them."""
