"""How a search for programs uses each row of the instruction table, or why it does not.

In: nothing. Out: `SEARCHED`: the first heads of rows, with the words that these give to the vocabulary of searches;
`NOT_SEARCHED`: by the same, why a row gives none. A test asks that each row stands in one of them, so that an
instruction is searched from the day on which it is added. Instructions that a form has beside the one of its row are
parts of it: an `expect_tx`, a `commit_group`, computations.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.isa.rows.ingredients import GLOBAL, NEAR, OBJECT, SHARED, TENSOR, TILE, Form, Ingredient


def _forms(**texts: str) -> tuple[Form, ...]:
    """Forms by the word that selects each."""
    return tuple(Form((word,), text) for word, text in texts.items())


def _only(text: str, *words: str) -> tuple[Form, ...]:
    return (Form(words, text),)


def _fence(name: str, text: str, *words: str, pairs: tuple[str, ...] = (), scopes: tuple[str, ...] = ()) -> Ingredient:
    return Ingredient(name, _only(text, *words), fence=True, pairs=pairs, scopes=scopes)


# ---- loads, stores, atomics ------------------------------------------------------------------------------------------

_LOAD, _STORE = ".global.u32 %{r}, [{x}];", ".global.u32 [{x}], {v};"
_DEPENDS = "xor.b32 %e{n}, %{before}, %{before};\nadd.u32 %d{n}, %e{n}, {v};\n"
_WORD_LOAD, _WORD_STORE = ".u32 %{r}, [{x}];", ".u32 [{x}], {v};"
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


def _tile(name: str, space: str, place: str, scopes: tuple[str, ...]) -> tuple[Ingredient, Ingredient]:
    """Loads and stores of tiles: of their first word, or of all."""
    local, far = place == SHARED, "x" if place == SHARED else ""
    return (
        Ingredient(
            f"ld.{name}",
            _loads(f".{space}{_WORD_LOAD}"),
            place,
            "r",
            answers=True,
            local=local,
            far=far,
            scopes=scopes,
            wide=_loads(f".{space}{_WIDE_LOAD}"),
        ),
        Ingredient(
            f"st.{name}",
            _stores(f".{space}{_WORD_STORE}"),
            place,
            "w",
            local=local,
            far=far,
            scopes=scopes,
            wide=_stores(f".{space}{_WIDE_STORE}", _WIDE_VALUE),
        ),
    )


_LD_SHARED, _ST_SHARED = _tile("shared", "shared::cta", SHARED, NEAR)
_LD_TILE, _ST_TILE = _tile("tile", "global", TILE, ())

# ---- objects ---------------------------------------------------------------------------------------------------------

_ARRIVE, _TEST = ".shared::cta.b64 _, [{x}];", ".shared::cta.b64 %p, [{x}], 0;\nselp.u32 %{r}, 1, 0, %p;"
_EXPECT = "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, "

_GROUPED = ("copy.out", "copy.out.relaxed", "reduce")

# ---- matrices --------------------------------------------------------------------------------------------------------

_ONE = (".shared .align 16 .u32 one[4] = {{1}};",)
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

_ALIAS = ("{x}_alias aliases {x};",)
_MULTIMEM = (".global .u32 {x}_all = multimem({x});",)

# ---- the table -------------------------------------------------------------------------------------------------------

SEARCHED: tuple[tuple[str, tuple[Ingredient, ...]], ...] = (
    ("ld", (Ingredient("ld", _loads(_LOAD), GLOBAL, "r", answers=True),)),
    ("st", (Ingredient("st", _stores(_STORE), GLOBAL, "w"),)),
    (
        "ld",
        (
            Ingredient(
                "ld.alias",
                _only("ld.weak.global.u32 %{r}, [{x}_alias];", "weak"),
                GLOBAL,
                "r",
                answers=True,
                declares=_ALIAS,
            ),
        ),
    ),
    (
        "st",
        (Ingredient("st.alias", _only("st.weak.global.u32 [{x}_alias], {v};", "weak"), GLOBAL, "w", declares=_ALIAS),),
    ),
    ("st", (Ingredient("st.data", _dependent(), GLOBAL, "w"),)),
    (
        "atom",
        (
            Ingredient(
                "atom",
                tuple(
                    Form((sem,), f"atom.{sem}.{{scope}}.global.exch.b32 %{{r}}, [{{x}}], {{v}};")
                    for sem in ("relaxed", "acquire", "release", "acq_rel")
                ),
                GLOBAL,
                "u",
                answers=True,
            ),
        ),
    ),
    (
        "red",
        (
            Ingredient(
                "red",
                _forms(
                    relaxed="red.relaxed.{scope}.global.or.b32 [{x}], {v};",
                    release="red.release.{scope}.global.or.b32 [{x}], {v};",
                ),
                GLOBAL,
                "u",
                reduces=True,
            ),
        ),
    ),
    (
        "fence",
        (
            *(
                _fence(f"fence.{sem}", f"fence.{sem}.{{scope}};", sem)
                for sem in ("acq_rel", "sc", "acquire", "release")
            ),
            _fence("fence.release.restricted", "fence.release.sync_restrict::shared::cta.cluster;", "release"),
            _fence("fence.acquire.restricted", "fence.acquire.sync_restrict::shared::cluster.cluster;", "acquire"),
        ),
    ),
    (
        "fence.proxy.async",
        tuple(
            _fence(f"fence.proxy.{what}", f"fence.proxy.{what};", "proxy")
            for what in ("async", "async.shared::cta", "async.global")
        ),
    ),
    (
        "fence.proxy",
        (
            _fence("fence.proxy.alias", "fence.proxy.alias;", "proxy", pairs=("ld.alias",)),
            *(
                _fence(
                    f"fence.proxy.alias.{half}", f"fence.proxy.alias.{half}.sys;", "proxy", pairs=("ld.alias", other)
                )
                for half, other in (
                    ("release", "fence.proxy.alias.acquire"),
                    ("acquire", "fence.proxy.alias.release"),
                )
            ),
        ),
    ),
    (
        "fence.proxy.async::generic",
        (
            _fence(
                "fence.proxy.async.release",
                "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;",
                "proxy",
                pairs=("fence.proxy.async.acquire",),
            ),
            _fence(
                "fence.proxy.async.acquire",
                "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
                "proxy",
                pairs=("fence.proxy.async.release",),
            ),
        ),
    ),
    (
        "tcgen05.fence::before_thread_sync",
        tuple(
            _fence(f"tcgen05.fence::{what}", f"tcgen05.fence::{what}_thread_sync;", what)
            for what in ("before", "after")
        ),
    ),
    ("bar.sync", (Ingredient("bar", _only("bar.sync 0;"), local=True, meets="bar"),)),
    (
        "barrier.cluster.arrive",
        (
            Ingredient(
                "cluster.arrive",
                _forms(release="barrier.cluster.arrive.release;", relaxed="barrier.cluster.arrive.relaxed;"),
                local=True,
                meets="cluster",
            ),
        ),
    ),
    (
        "barrier.cluster.wait",
        (Ingredient("cluster.wait", _only("barrier.cluster.wait.acquire;"), local=True, meets="cluster"),),
    ),
    ("ld", (_LD_SHARED,)),
    ("st", (_ST_SHARED,)),
    ("ld", (_LD_TILE,)),
    ("st", (_ST_TILE,)),
    (
        "mbarrier.arrive",
        (
            Ingredient(
                "arrive",
                _forms(
                    release="mbarrier.arrive.release.{scope}" + _ARRIVE,
                    relaxed="mbarrier.arrive.relaxed.{scope}" + _ARRIVE,
                ),
                OBJECT,
                "-",
                local=True,
                arrives=1,
                far="x",
                scopes=NEAR,
            ),
            Ingredient(
                "arrive.plain", _only("mbarrier.arrive" + _ARRIVE, "plain"), OBJECT, "-", local=True, arrives=1, far="x"
            ),
        ),
    ),
    (
        "mbarrier.test_wait",
        (
            Ingredient(
                "wait",
                _forms(
                    acquire="mbarrier.test_wait.parity.acquire.{scope}" + _TEST,
                    relaxed="mbarrier.test_wait.parity.relaxed.{scope}" + _TEST,
                ),
                OBJECT,
                "-",
                answers=True,
                local=True,
                scopes=NEAR,
            ),
            Ingredient(
                "wait.plain",
                _only("mbarrier.test_wait.parity" + _TEST, "plain"),
                OBJECT,
                "-",
                answers=True,
                local=True,
            ),
        ),
    ),
    (
        "cp.async.bulk",
        (
            Ingredient(
                "copy.in",
                _only(
                    _EXPECT + "[{z}], 16;\n"
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{y}], [{x}], 16, [{z}];"
                ),
                TILE + SHARED + OBJECT,
                "rw-",
                local=True,
                arrives=1,
                far="yz",
                whole_tiles=True,
            ),
            Ingredient(
                "copy.out",
                _only("cp.async.bulk.global.shared::cta.bulk_group [{y}], [{x}], 16;\ncp.async.bulk.commit_group;"),
                SHARED + TILE,
                "rw",
                local=True,
                whole_tiles=True,
            ),
            Ingredient(
                "copy.out.relaxed",
                _only(
                    "cp.async.bulk.relaxed.{scope}.global.shared::cta.bulk_group.b128 [{y}], [{x}], 16;\n"
                    "cp.async.bulk.commit_group;",
                    "relaxed",
                ),
                SHARED + TILE,
                "rw",
                local=True,
                whole_tiles=True,
            ),
            Ingredient(
                "copy.in.relaxed",
                _only(
                    _EXPECT + "[{z}], 16;\ncp.async.bulk.relaxed.{scope}.shared::cluster.global"
                    ".mbarrier::complete_tx::bytes.b128 [{y}], [{x}], 16, [{z}];",
                    "relaxed",
                ),
                TILE + SHARED + OBJECT,
                "rw-",
                local=True,
                arrives=1,
                far="yz",
                whole_tiles=True,
            ),
        ),
    ),
    (
        "cp.reduce.async.bulk",
        (
            Ingredient(
                "reduce",
                _only(
                    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [{y}], [{x}], 16;\n"
                    "cp.async.bulk.commit_group;"
                ),
                SHARED + TILE,
                "ru",
                local=True,
                narrow=True,
            ),
        ),
    ),
    (
        "cp.async.bulk.wait_group",
        (
            Ingredient("wait_group", _only("cp.async.bulk.wait_group 0;"), local=True, ends=_GROUPED),
            Ingredient("wait_group.read", _only("cp.async.bulk.wait_group.read 0;"), local=True, ends=_GROUPED),
        ),
    ),
    (
        "tcgen05.st",
        (
            Ingredient(
                "tcgen05.st",
                _only("mov.u32 %v{n}, {v};\ntcgen05.st.sync.aligned.32x32b.x1.b32 [{x}], {{%v{n}}};"),
                TENSOR,
                "w",
                local=True,
            ),
        ),
    ),
    (
        "tcgen05.ld",
        (
            Ingredient(
                "tcgen05.ld",
                _only("tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%{r}}}, [{x}];"),
                TENSOR,
                "r",
                answers=True,
                local=True,
            ),
        ),
    ),
    (
        "tcgen05.wait::ld",
        tuple(
            Ingredient(
                f"tcgen05.wait::{what}",
                _only(f"tcgen05.wait::{what}.sync.aligned;"),
                local=True,
                ends=(f"tcgen05.{what}",),
            )
            for what in ("st", "ld")
        ),
    ),
    (
        "tcgen05.mma",
        (Ingredient("tcgen05.mma", _only(_MMA), TENSOR + SHARED, "wr", local=True, whole_tiles=True, declares=_ONE),),
    ),
    (
        "tcgen05.cp",
        (
            Ingredient(
                "tcgen05.cp",
                tuple(
                    Form((shape,), f"mov.u64 %dc{{n}}, {{y}};\ntcgen05.cp.cta_group::1.{shape} [{{x}}], %dc{{n}};")
                    for shape in ("128x256b", "4x256b")
                ),
                TENSOR + SHARED,
                "wr",
                local=True,
                whole_tiles=True,
            ),
        ),
    ),
    (
        "tcgen05.commit",
        (
            Ingredient(
                "tcgen05.commit",
                _only("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{x}];"),
                OBJECT,
                "-",
                local=True,
                arrives=1,
                far="x",
            ),
        ),
    ),
    (
        "wgmma.mma_async",
        (
            Ingredient("wgmma", _only(_WGMMA), SHARED, "r", answers=True, local=True, whole_tiles=True, declares=_ONE),
            Ingredient(
                "wgmma.registers", _only(_WGMMA_REGISTERS), SHARED, "r", answers=True, local=True, whole_tiles=True
            ),
        ),
    ),
    (
        "wgmma.wait_group",
        (
            Ingredient(
                "wgmma.wait", _only("wgmma.wait_group.sync.aligned 0;"), local=True, ends=("wgmma", "wgmma.registers")
            ),
        ),
    ),
    ("wgmma.fence", (_fence("wgmma.fence", "wgmma.fence.sync.aligned;", "wgmma"),)),
    (
        "fence.proxy.tensormap::generic",
        (
            _fence(
                "fence.proxy.tensormap.release",
                "fence.proxy.tensormap::generic.release.{scope};",
                "proxy",
                pairs=("fence.proxy.tensormap.acquire", "tensormap.replace"),
            ),
            Ingredient(
                "fence.proxy.tensormap.acquire",
                _only("fence.proxy.tensormap::generic.acquire.{scope} [{x}_map], 128;", "half"),
                TILE,
                "-",
                declares=_MAP,
                pairs=_OF_MAPS,
            ),
        ),
    ),
    ("mbarrier.init", (Ingredient("init", _only("mbarrier.init.shared::cta.b64 [{x}], 1;"), OBJECT, "-", local=True),)),
    ("mbarrier.inval", (Ingredient("inval", _only("mbarrier.inval.shared::cta.b64 [{x}];"), OBJECT, "-", local=True),)),
    (
        "cp.async",
        (
            Ingredient(
                "cp.async",
                _only("cp.async.ca.shared.global [{y}], [{x}], 16;\ncp.async.commit_group;"),
                TILE + SHARED,
                "rw",
                local=True,
                whole_tiles=True,
            ),
        ),
    ),
    (
        "cp.async.mbarrier.arrive",
        (
            Ingredient(
                "cp.async.arrive",
                _only("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [{x}];"),
                OBJECT,
                "-",
                local=True,
                arrives=1,
                pairs=("cp.async",),
            ),
        ),
    ),
    (
        "cp.async.wait_group",
        (Ingredient("cp.async.wait", _only("cp.async.wait_group 0;"), local=True, ends=("cp.async",)),),
    ),
    (
        "cp.async.bulk.tensor",
        (
            Ingredient(
                "copy.map",
                _only(
                    _EXPECT
                    + "[{z}], 16;\ncp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                    "[{y}], [{x}_map, {{0}}], [{z}];"
                ),
                TILE + SHARED + OBJECT,
                "rw-",
                local=True,
                arrives=1,
                far="yz",
                declares=_MAP,
            ),
        ),
    ),
    (
        "tensormap.replace",
        (
            Ingredient(
                "tensormap.replace",
                _only(
                    "mov.u64 %a{n}, {x}_other;\n"
                    "tensormap.replace.tile.global_address.global.b1024.b64 [{x}_map], %a{n};"
                ),
                TILE,
                "-",
                declares=_MAP,
                pairs=_OF_MAPS,
            ),
        ),
    ),
    (
        "st.async",
        (
            Ingredient(
                "st.async",
                _only(
                    _EXPECT + "[{y}], 4;\n"
                    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [{x}], {v}, [{y}];"
                ),
                SHARED + OBJECT,
                "w-",
                local=True,
                arrives=1,
                far="xy",
                wide=_only(
                    _WIDE_VALUE + _EXPECT + "[{y}], 16;\n"
                    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b128 [{x}], %q{n}, [{y}];"
                ),
            ),
            Ingredient(
                "st.async.release",
                _only("st.async.release.{scope}.global.u32 [{x}], {v};", "release"),
                GLOBAL,
                "w",
                scopes=("gpu", "sys"),
            ),
        ),
    ),
    (
        "red.async",
        (
            Ingredient(
                "red.async.release",
                _only("red.async.release.{scope}.global.add.u32 [{x}], {v};", "release"),
                GLOBAL,
                "u",
                reduces=True,
                scopes=("gpu", "sys"),
            ),
        ),
    ),
    (
        "multimem.ld_reduce",
        (
            Ingredient(
                "multimem.ld",
                _loads(".global.add.u32 %{r}, [{x}_all];", "multimem.ld_reduce"),
                GLOBAL,
                "r",
                answers=True,
                declares=_MULTIMEM,
            ),
        ),
    ),
    (
        "multimem.st",
        (
            Ingredient(
                "multimem.st",
                _stores(".global.u32 [{x}_all], {v};", head="multimem.st"),
                GLOBAL,
                "w",
                declares=_MULTIMEM,
            ),
        ),
    ),
    (
        "multimem.red",
        (
            Ingredient(
                "multimem.red",
                tuple(
                    Form((sem,), f"multimem.red.{sem}.{{scope}}.global.or.b32 [{{x}}_all], {{v}};")
                    for sem in ("relaxed", "release")
                ),
                GLOBAL,
                "u",
                reduces=True,
                declares=_MULTIMEM,
            ),
        ),
    ),
    (
        "tcgen05.shift",
        (
            Ingredient(
                "tcgen05.shift", _only("tcgen05.shift.cta_group::1.down [{x}];"), TENSOR, "u", local=True, columns=2
            ),
        ),
    ),
    (
        "clusterlaunchcontrol.try_cancel.async",
        (
            Ingredient(
                "try_cancel",
                _only(
                    _EXPECT + "[{y}], 16;\n"
                    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [{x}], [{y}];"
                ),
                SHARED + OBJECT,
                "w-",
                local=True,
                arrives=1,
            ),
        ),
    ),
)
"""Plain words first: the search prefers them."""

_SAME = "its events are those of an instruction that is searched"
_LANES = "a thread of a program stands for a warp, so that lanes do not differ"
_ALLOCATED = "which memory an alloc gives follows from the text as a whole; tensor memory is there from the start"
_GRIDS = "the threads of a program are of one grid"
_ENDPOINTS = "programs declare no logical endpoints"
_BARRIERS = "a count, or a value that threads combine, changes no order"
_PROXY = (
    "its proxy has the rules of the asynchronous proxy, which is searched, and no instruction beside loads and stores"
)

NOT_SEARCHED: Mapping[str, str] = {
    **dict.fromkeys(("ldu", "sust", "suld", "tld", "cold"), _PROXY),
    **dict.fromkeys(("st.bulk", "ldmatrix", "stmatrix", "membar", "membar.proxy", "membar.proxy.async"), _SAME),
    **dict.fromkeys(("bar.arrive", "bar.red", "barrier.sync", "barrier.arrive", "barrier.red"), _BARRIERS),
    **dict.fromkeys(
        ("bar.warp.sync", "vote.sync", "redux.sync", "match.any.sync", "shfl.sync", "elect.sync", "activemask"), _LANES
    ),
    **dict.fromkeys(("griddepcontrol.launch_dependents", "griddepcontrol.wait"), _GRIDS),
    **dict.fromkeys(
        (
            "fence.proxy.generic::fabric",
            "fabric.try_get",
            "fabric.try_put",
            "fabric.try_red",
            "fabric.try_pullred",
            "fabric.try_atom",
            "fabric.submit",
            "fabric.wait",
        ),
        _ENDPOINTS,
    ),
    **dict.fromkeys(("tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit"), _ALLOCATED),
    "fence.mbarrier_init": "its rule is about objects that no thread has initialised before; here all are declared so",
    "mbarrier.expect_tx": "it is a part of the copy that it counts",
    "mbarrier.check_layout": "objects of programs have one layout",
    "cp.async.wait_all": _SAME,
    "cp.reduce.async.bulk.tensor": "as cp.reduce.async.bulk; its read of the map is that of the tensor copy",
    "tensormap.cp_fenceproxy": "as a copy of the map and the release half of its fence, which are searched",
    **dict.fromkeys(("multimem.st.async", "multimem.red.async"), _SAME),
    **dict.fromkeys(("wgmma.mma_async.sp", "tcgen05.mma.ws", "tcgen05.ld.red"), _SAME),
    **dict.fromkeys(("applypriority.async.bulk", "discard", "setmaxnreg"), "it orders nothing and moves no value"),
}
