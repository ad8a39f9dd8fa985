"""What hints, st.bulk, 128-bit atomics, matrices of a warp, dependent grids and multimem instructions lower to.

The steps are worked out by hand from the pages of the ISA; `isa_samples.brief` says how they are written.
"""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, brief, ops, read, shown

from memmodel.isa.lower import lower_test, target
from memmodel.litmus.syntax import LitmusTest
from memmodel.program.ops import AtBarrier, UndefinedIf, Write
from memmodel.ptx.vocabulary import Window

NOTHING = (
    "setmaxnreg.inc.sync.aligned.u32 256;",
    "prefetch.L2 [%rd0+8];",
    "prefetch.local.L1 [%rd0];",
    "prefetch.global.L2::evict_normal [x];",
    "prefetch.tensormap [map];",
    "prefetch.param.tensormap [%rd0];",
    "prefetchu.L1 [%rd0];",
    "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd9, 0f3F000000;",
    "createpolicy.fractional.L2::evict_normal.b64 %rd9, %f0;",
    "createpolicy.fractional.L2::evict_first.b64 %rd9;",
    "createpolicy.cvt.L2.b64 %rd9, %rd0;",
    "griddepcontrol.launch_dependents;",
    "griddepcontrol.wait;",
)
"""Instructions that make no step. The samples have one grid, on which none depends and which depends on none."""

HINTS = {
    "applypriority.L2::evict_normal [%rd0], 128;": [
        "UndefinedIf(applypriority takes an address of global memory {outside})",
        "UndefinedIf(applypriority takes an address that is a multiple of 128 and.u64(%rd0, 127))",
    ],
    "createpolicy.range.L2::evict_unchanged.b64 %rd9, [%rd0], %r0, %r1;": [
        "UndefinedIf(createpolicy.range takes an address of global memory {outside})",
        "UndefinedIf(the primary-size of createpolicy.range is at most its total-size gt.u64(%r0, %r1))",
    ],
    "cp.async.bulk.prefetch.L2.global [%rd0], 32;": [
        "UndefinedIf(cp.async.bulk.prefetch takes an address of global memory {outside})",
        "UndefinedIf(cp.async.bulk.prefetch takes an address that is a multiple of 16 and.u64(%rd0, 15))",
    ],
}
"""`outside`: not above shared memory, or in one of the two constants of the samples."""

BULK_STORE = {
    "st.bulk.weak.shared::cta [tile+8], 16, 0;": [
        "Write([0] Chunk(&tile+8 shared_cta 16 align=8 multiple=8) Access(write) when=ne.s64(16, 0))"
    ],
    "st.bulk [%rd0+8], %r0, 0;": [
        "Write([0] Chunk(add.u64(%rd0, 8) shared_cta %r0 align=8 multiple=8) Access(write) when=ne.s64(%r0, 0))"
    ],
}

WIDE_ATOMS = {
    "atom.global.exch.b128 %q0, [src], %q1;": [
        "Read([$0] Elements(&src global size=16) Access(read relaxed gpu atom rmw) type=b128)",
        "Write([cvt.b128(%q1)] Elements(&src global size=16) Access(write relaxed gpu atom rmw) rmw)",
        "Assign(q0 cvt.b128(%$0))",
    ],
    "atom.acquire.sys.shared.b128.cas _, [%r0], %q1, %q2;": [
        "Read([$0] Elements(%r0 shared_cta size=16) Access(read acquire sys atom rmw) type=b128)",
        "Write([cvt.b128(%q2)] Elements(%r0 shared_cta size=16) Access(write relaxed sys atom rmw) "
        "when=eq.b128(%$0, cvt.b128(%q1)) rmw)",
    ],
}

LD = "tcgen05.ld.sync.aligned"
READ = "+ AsyncRead(Access(read tcgen_ld asynchronous) Columns({}) [{}] tracks={{tcgen_ld}})"
WRITE = "+ AsyncWrite(Access(write tcgen_st asynchronous) Columns({}) [{}] tracks={{tcgen_st}})"
LOW, HIGH = "cvt.b16(cvt.b32(%r0))", "cvt.b16(shr.b32(cvt.b32(%r0), 16))"
TENSOR = {
    # 64 bits of 16 lanes in one register of 32 threads: two columns
    f"{LD}.16x64b.x2.b32 {{%r0, _}}, [acc];": [
        "Issue(tcgen_ld)",
        READ.format("&acc 4", "$r0 - - -"),
        "Assign(r0 cvt.b32(%$r0))",
    ],
    f"{LD}.32x32b.x1.pack::16b.b32 {{%r0}}, [acc];": [
        "Issue(tcgen_ld)",
        READ.format("&acc 2", "$r0 $r0.high"),
        "Assign(r0 or.b32(cvt.b16(%$r0), shl.b32(cvt.b16(%$r0.high), 16)))",
    ],
    f"{LD}.16x32bx2.x1.b32 {{%r0}}, [acc], 2;": [
        "Issue(tcgen_ld)",
        READ.format("&acc 1", "$r0"),
        READ.format("&acc+2 1", "-"),
        "Assign(r0 cvt.b32(%$r0))",
    ],
    "tcgen05.st.sync.aligned.16x32bx2.x1.unpack::16b.b32 [acc], 2, {%r0};": [
        "Issue(tcgen_st)",
        WRITE.format("&acc 2", f"{LOW} {HIGH}"),
        WRITE.format("&acc+2 2", f"{LOW} {HIGH}"),
    ],
    "tcgen05.ld.red.sync.aligned.32x32b.x2.max.s32 {%r0, _}, %r2, [acc+1];": [
        "Issue(tcgen_ld)",
        READ.format("&acc+1 2", "$r0 $r1"),
        "Assign(r0 cvt.s32(%$r0))",
        "Assign(r2 max.s32(cvt.s32(%$r0), cvt.s32(%$r1)))",
    ],
    "tcgen05.ld.red.sync.aligned.16x32bx2.x2.u32.min {%r0, %r1}, %r2, [%r9], 2;": [
        "Issue(tcgen_ld)",
        READ.format("%r9 2", "$r0 $r1"),
        READ.format("add.u64(%r9, 2) 2", "- -"),
        "Assign(r0 cvt.u32(%$r0))",
        "Assign(r1 cvt.u32(%$r1))",
        "Assign(r2 min.u32(cvt.u32(%$r0), cvt.u32(%$r1)))",
    ],
}

JOINED = "Assign(r{0} or.b32(%${0}.0.low, shl.b32(%${0}.0.high, 16)))"
LOW_HALF, HIGH_HALF = "cvt.b16(%r0)", "cvt.b16(shr.b32(%r0, 16))"
MATRICES = {
    # lane 0 has the first two elements of the first row of each matrix
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [tile];": [
        "Read([$0.0.low $0.0.high $1.0.low $1.0.high] Chunk(&tile shared_cta 256) Access(read) type=b16 "
        "at=[0 2 128 130])",
        JOINED.format(0),
        JOINED.format(1),
    ],
    # transposed: of the first column
    "ldmatrix.sync.aligned.m8n8.x1.trans.b16 {%r0}, [%rd0];": [
        "Read([$0.0.low $0.0.high] Chunk(%rd0 shared_cta 128) Access(read) type=b16 at=[0 16])",
        JOINED.format(0),
    ],
    # every lane gives the same number: its halves in turn along a row, or, transposed, in rows
    "stmatrix.sync.aligned.m8n8.x1.shared::cta.b16 [tile], {%r0};": [
        f"Write([{' '.join([LOW_HALF, HIGH_HALF] * 32)}] Chunk(&tile shared_cta 128) Access(write))"
    ],
    "stmatrix.sync.aligned.m8n8.x1.trans.b16 [%rd0], {%r0};": [
        f"Write([{' '.join(([LOW_HALF] * 8 + [HIGH_HALF] * 8) * 4)}] Chunk(%rd0 shared_cta 128) Access(write))"
    ],
}

MULTIMEM = {
    "multimem.ld_reduce.acquire.gpu.global.add.u32 %r0, [both];": [
        "Read([$0 $1] Multimem(&both 4) Access(read acquire gpu spelt=multimem) type=u32)",
        "Assign(r0 cvt.u32(add.u32(%$0, %$1)))",
    ],
    "multimem.ld_reduce.and.b64 %rd0, [%rd1+8];": [
        "Read([$0 $1] Multimem(add.u64(%rd1, 8) 8) Access(read spelt=multimem) type=b64)",
        "Assign(rd0 cvt.b64(and.b64(%$0, %$1)))",
    ],
    "multimem.st.release.cta.global.s32 [both], %r0;": [
        "Write([cvt.s32(%r0) cvt.s32(%r0)] Multimem(&both 4) Access(write release cta spelt=multimem))"
    ],
    "multimem.red.min.s32 [both], -1;": [
        "Read([$0 $1] Multimem(&both 4) Access(read relaxed sys red rmw spelt=multimem) type=s32)",
        "Write([min.s32(%$0, -1) min.s32(%$1, -1)] Multimem(&both 4) "
        "Access(write relaxed sys red rmw spelt=multimem) rmw)",
    ],
    "multimem.st.async.release.gpu.global.b32 [both], %r0;": [
        "Issue(st_async release gpu)",
        "+ AsyncWrite(Access(write relaxed gpu st_async asynchronous spelt=multimem) Multimem(&both 4) "
        "[cvt.b32(%r0) cvt.b32(%r0)])",
    ],
    "multimem.red.async.release.sys.global.add.u32 [both], 1;": [
        "Issue(st_async release sys)",
        "+ AsyncRead(Access(read relaxed sys st_async rmw asynchronous spelt=multimem) Multimem(&both 4) [$0 $1])",
        "+ AsyncWrite(Access(write relaxed sys st_async rmw asynchronous spelt=multimem) Multimem(&both 4) "
        "[add.u32(%$0, 1) add.u32(%$1, 1)] rmw)",
    ],
    "multimem.red.release.gpu.global.add.u32 [both], %r0;": [
        "Read([$0 $1] Multimem(&both 4) Access(read relaxed gpu red rmw spelt=multimem) type=u32)",
        "Write([add.u32(%$0, cvt.u32(%r0)) add.u32(%$1, cvt.u32(%r0))] Multimem(&both 4) "
        "Access(write release gpu red rmw spelt=multimem) rmw)",
    ],
}

REALS = {
    "mov.f32 %f0, 1.0;": ["Assign(f0 1065353216)"],
    "mov.b32 %f0, 0f3F800000;": ["Assign(f0 1065353216)"],
    "mov.f64 %d0, 0f3F800000;": [f"Assign(d0 {0x3FF0000000000000})"],
    "mov.f32 %f0, 0d3FF0000000000000;": ["Assign(f0 1065353216)"],
    "mov.f32 %f0, 1e300;": [f"Assign(f0 {0x7F800000})"],  # beyond the largest: infinity
    "mov.b64 %d0, -.5;": [f"Assign(d0 {0xBFE0000000000000})"],
    "st.global.f32 [x], 1e-3;": [f"Write([{0x3A83126F}] Elements(&x global size=4) Access(write))"],  # the nearest
}

WORKED_OUT: dict[str, list[str]] = {
    **{line: [] for line in NOTHING},
    **BULK_STORE,
    **WIDE_ATOMS,
    **TENSOR,
    **MATRICES,
    **MULTIMEM,
    **REALS,
}


OUTSIDE = (
    "eq.u64(and.u64(ge.u64(%rd0, 68719476736), eq.u64(or.u64(or.u64(0, lt.u64(sub.u64(%rd0, 68719480896), 128)), "
    "lt.u64(sub.u64(%rd0, 68719482880), 4)), 0)), 0)"
)


@pytest.mark.parametrize("line", HINTS)
def test_addresses_of_hints(line: str) -> None:
    assert shown(ops(blocks(line))) == [step.replace("{outside}", OUTSIDE) for step in HINTS[line]]


@pytest.mark.parametrize("line", WORKED_OUT)
def test_steps(line: str) -> None:
    assert shown(ops(blocks(line))) == WORKED_OUT[line]


@pytest.mark.parametrize(
    ("line", "least"),
    [
        ("setmaxnreg.dec.sync.aligned.u32 40;", "sm_90a"),
        ("prefetch.global.L1 [x];", "sm_70"),  # the other thread's st.weak
        ("prefetch.global.L2::evict_last [x];", "sm_80"),
        ("prefetch.const.tensormap [map];", "sm_90"),
        ("createpolicy.cvt.L2.b64 %rd9, %rd0;", "sm_80"),
        ("applypriority.L2::evict_normal [%rd0], 128;", "sm_80"),
        ("atom.exch.b128 %q0, [src], %q1;", "sm_90"),
        ("st.bulk [%rd0], 8, 0;", "sm_100"),
        ("tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%r0, %r1}, %r2, [acc];", "sm_103a"),
        ("ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%rd0];", "sm_75"),
        ("stmatrix.sync.aligned.m8n8.x1.b16 [%rd0], {%r0};", "sm_90"),
        ("griddepcontrol.wait;", "sm_90"),
        ("multimem.st.b32 [both], 1;", "sm_90"),
    ],
)
def test_targets(line: str, least: str) -> None:
    assert target(blocks(line)) == least


# ---- st.async and red.async ------------------------------------------------------------------------------------------

RED = "red.async.relaxed.cluster.shared::cluster"


def test_the_completion_of_red_async_has_a_default() -> None:
    written = f"{RED}.mbarrier::complete_tx::bytes.add.u32 [tile@cta1], 1, [bar@cta1];"
    assert ops(blocks(f"{RED}.add.u32 [tile@cta1], 1, [bar@cta1];")) == ops(blocks(written))


def test_names_leave_nothing_to_check_and_registers_do() -> None:
    """The page wants the data and the mbarrier object in one CTA."""
    assert not any(isinstance(op, UndefinedIf) for op in ops(blocks(f"{RED}.add.u32 [tile@cta1], 1, [bar@cta1];")))
    (check, _) = ops(blocks(f"{RED}.add.u32 [%r0], 1, [bar@cta1];"))
    assert isinstance(check, UndefinedIf) and check.rule == "red.async to one CTA, and its mbarrier object in another"


def test_st_async_in_a_cluster_of_one_cta_is_undefined() -> None:
    text = """PTX alone
.shared .align 8 .b64 bar = mbarrier(1);
.shared .u32 x;
thread P0 @ cta 0, cluster 0 {
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [x], 1, [bar];
}
exists (true)
"""
    check, _ = ops(read(text))
    assert shown([check]) == ["UndefinedIf(st.async in a cluster of one CTA 1)"]


# ---- matrices of a warp ----------------------------------------------------------------------------------------------


def test_an_stmatrix_of_loaded_matrices_stores_what_each_lane_has() -> None:
    """Word w of row i is the register of lane 4 i + w."""
    line = "ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%rd0]; stmatrix.sync.aligned.m8n8.x1.b16 [%rd1], {%r0};"
    steps = ops(blocks(line))
    store = steps[-1]
    assert isinstance(store, Write) and len(store.values) == 64
    assert shown(steps)[1].startswith("Assign(r0 or.b32(%$0.0.low,")
    assert shown(steps)[32].startswith("Assign(r0#lane31 or.b32(%$0.31.low,")
    assert [brief(value) for value in store.values[10:12]] == ["cvt.b16(%r0#lane5)", "cvt.b16(shr.b32(%r0#lane5, 16))"]


# ---- grids -----------------------------------------------------------------------------------------------------------

GRIDS = """PTX grids
.global .u32 x;
thread P0 @ cta 0 {{ {} }}
thread P1 @ cta 0 {{ st.global.u32 [x], 1; }}
thread P2 @ cta 3 {{ ret; }}
thread P3 @ cta 0, grid 1 {{ {} }}
exists (true)
"""


def grids(first: str, second: str) -> LitmusTest:
    """Two CTAs in grid 0, one of them with two threads, and one thread in grid 1."""
    return read(GRIDS.format(first, second))


def test_what_lies_between_grids() -> None:
    test = grids("griddepcontrol.launch_dependents;", "griddepcontrol.wait;")
    end_of_p0 = [
        "AtBarrier(Barrier(arrive launch relaxed ends) [0 0] 2)",  # both threads of the CTA end
        "AtBarrier(Barrier(arrive grid ends) [0] 3)",  # all threads of the grid
    ]
    assert shown(ops(test, 0)) == ["AtBarrier(Barrier(arrive launch relaxed) [0 0] 1)", *end_of_p0]
    assert shown(ops(test, 1))[1:] == end_of_p0
    assert shown(ops(test, 2)) == [  # an explicit end, and the one that is never reached
        "Emit(Mark(exit))",
        "AtBarrier(Barrier(arrive launch relaxed ends) [0 1] 1)",
        "AtBarrier(Barrier(arrive grid ends) [0] 3)",
        "Jump(-)",
        "AtBarrier(Barrier(arrive launch relaxed ends) [0 1] 1)",
        "AtBarrier(Barrier(arrive grid ends) [0] 3)",
    ]
    assert shown(ops(test, 3)) == [
        "AtBarrier(Barrier(wait launch acquire sys) [0 0] -)",
        "AtBarrier(Barrier(wait launch acquire sys) [0 1] -)",
        "AtBarrier(Barrier(wait grid) [0] -)",
    ]


def test_the_end_of_a_grid_matters_to_a_wait_only() -> None:
    labels = [op.label.domain.value for op in ops(grids("", "ret;"), 0) if isinstance(op, AtBarrier)]
    assert labels == ["launch"]


def test_the_last_grid_launches_nothing_and_the_first_waits_for_nothing() -> None:
    assert ops(grids("griddepcontrol.wait;", "griddepcontrol.launch_dependents;"), 0)[:-1] == []
    assert len(ops(grids("", "griddepcontrol.launch_dependents;"), 3)) == 2


def test_grids_of_two_gpus_do_not_depend_on_one_another() -> None:
    text = """PTX apart
thread P0 @ cta 0, gpu 0 { griddepcontrol.launch_dependents; }
thread P1 @ cta 0, grid 1, gpu 1 { griddepcontrol.wait; }
exists (true)
"""
    assert ops(read(text), 0) == ops(read(text), 1) == []


def test_ctas_of_two_grids_have_shared_memory_of_their_own() -> None:
    text = """PTX shared
.shared .u32 s;
thread P0 @ cta 0 { ret; }
thread P1 @ cta 0, grid 1 { ret; }
exists (true)
"""
    space = lower_test(read(text)).space
    first, second = space.instances
    assert first.owner != second.owner
    places = [thread.place for thread in read(text).threads]
    address = space.address("s", 0, places[1])
    assert address is not None
    for window in (Window.SHARED_CTA, Window.SHARED_CLUSTER):
        assert getattr(space.find(address, 4, 4, window, places[0]), "why", None) is not None
        assert getattr(space.find(address, 4, 4, window, places[1]), "instance", None) == second
