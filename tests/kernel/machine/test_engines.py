"""Instructions of Hopper and Blackwell in small kernels, each whole and with a part of its synchronization missing."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import judged, rules, text_of, verdict_of, wait, without

from memmodel.cat.load import load_model
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import parse_launch
from memmodel.kernel.mutate.mutations import mutations
from memmodel.kernel.mutate.table import mutation_table
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

INIT = "@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
LOAD = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1, {0, 0}], [%r4];\n"
)  # fmt: skip
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 2048;\n"

TMA = (
    INIT
    + EXPECT
    + "@%p0 "
    + LOAD
    + wait("%r4", 0)
    + """ld.shared.b32 %r10, [%r3];
bar.sync 0;
add.s32 %r10, %r10, 1;
st.shared.b32 [%r3], %r10;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {0, 0}], [%r2];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
bar.warp.sync 0xffffffff;
st.shared.b32 [%r3], %r10;
"""
)


def test_tensor_copies() -> None:
    assert verdict_of(TMA).word == "clean"


@pytest.mark.parametrize(
    ("missing", "rule"),
    [
        ("fence.proxy.async.shared::cta;", "data-race"),
        ("cp.async.bulk.wait_group.read 0;", "undefined-unfinished-copy"),
        ("bar.warp.sync -1;", "data-race"),
        (wait("%r4", 0), "undefined-unfinished-copy"),
        ("fence.mbarrier_init.release.cluster;\nbar.sync 0;", "undefined-before-init"),
    ],
)
def test_a_tensor_copy_without(missing: str, rule: str) -> None:
    assert rule in rules(verdict_of(without(TMA, missing)))


@pytest.mark.parametrize(("first", "rule"), [("-16", "undefined-instruction"), ("0", None), ("48", None)])
def test_a_store_before_the_tensor(first: str, rule: str | None) -> None:
    found = rules(verdict_of(TMA.replace("bulk_group [%d1, {0, 0}]", f"bulk_group [%d1, {{0, {first}}}]")))
    assert found == ({rule} if rule else set())


@pytest.mark.parametrize(("barrier", "apart"), [("%r4", False), ("%r10", True)])
def test_a_tensor_copy_tells_the_cta_that_it_writes_to(barrier: str, apart: bool) -> None:
    body = f"mapa.shared::cluster.u32 %r10, %r4, %r6;\n{INIT}@%p2 {LOAD.replace('%r4', barrier)}"
    assert ("undefined-instruction" in rules(verdict_of(body, ctas=2, cluster=2))) is apart


@pytest.mark.parametrize(("target", "own"), [("%r2", True), ("%r10", False)])
def test_a_copy_between_shared_memories_goes_to_another_cta(target: str, own: bool) -> None:
    copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    body = f"mapa.shared::cluster.u32 %r10, %r2, %r6;\n{INIT}mov.u32 %r11, 64;\n"
    body += f"@%p2 {copy} [{target}], [%r2+1024], %r11, [%r4];"
    assert ("undefined-address" in rules(verdict_of(body, ctas=2, cluster=2))) is own


def test_bytes_that_nobody_expects() -> None:
    late = verdict_of(TMA.replace("_, [%r4], 2048", "_, [%r4], 4096"))
    assert rules(late) == {"hang"}
    expects = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 2048"
    none = verdict_of(TMA.replace(expects, "mbarrier.arrive.shared::cta.b64 _, [%r4]"))
    assert none.word != "clean"


def test_a_misaligned_tile() -> None:
    verdict = verdict_of("add.s32 %r2, %r2, 16;\n" + TMA)
    assert rules(verdict) == {"undefined-address"}


MASKED = """st.shared.b32 [%r3], %r0;
fence.proxy.async.shared::cta;
bar.sync 0;
mov.b16 %h0, {mask};
@%p0 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [%r2], 64, %h0;
cp.async.bulk.commit_group;
setp.eq.s32 %p3, %r0, 40;
@%p3 st.global.b32 [%d0+20], 1;
cp.async.bulk.wait_group 0;
"""


@pytest.mark.parametrize(
    ("mask", "word"), [(0xFF0F, "clean"), (0xFFFF, "findings"), (0x00F0, "findings"), (0, "clean")]
)
def test_a_masked_copy_leaves_bytes_out(mask: int, word: str) -> None:
    assert verdict_of(MASKED.format(mask=mask), threads=64).word == word


# ---- wgmma -----------------------------------------------------------------------------------------------------

DESCRIPTORS = """shr.u32 %r20, %r2, 4;
and.b32 %r20, %r20, 0x3fff;
mov.b32 %r21, 0x40000040;
mov.b64 %d10, {%r20, %r21};
"""
FRAGMENT = "{%f0, %f1, %f2, %f3}"
WGMMA = (
    DESCRIPTORS
    + f"""st.shared.b32 [%r3], %r0;
fence.proxy.async.shared::cta;
bar.sync 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {FRAGMENT}, %d10, %d10, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
add.f32 %f4, %f0, %f1;
bar.sync 0 ;
st.shared.b32 [%r3], %r0;
"""
)


def test_wgmma() -> None:
    assert verdict_of(WGMMA, threads=128).word == "clean"


@pytest.mark.parametrize(
    ("missing", "rule"),
    [
        ("fence.proxy.async.shared::cta;", "data-race"),
        ("bar.sync 0;", "data-race"),
        ("bar.sync 0 ;", None),
        ("wgmma.fence.sync.aligned;", "undefined-instruction"),
        ("wgmma.wait_group.sync.aligned 0;", "undefined-instruction"),
        ("wgmma.commit_group.sync.aligned;", "undefined-instruction"),
    ],
)
def test_wgmma_without(missing: str, rule: str | None) -> None:
    found = rules(verdict_of(without(WGMMA, missing), threads=128))
    assert rule in found if rule else not found


READS = WGMMA.replace("st.shared.b32 [%r3], %r0;\n", "")
"""Nothing writes what is read, so that only the ends of the reads are judged."""


@pytest.mark.parametrize(("body", "threads"), [(WGMMA, 128), (READS + READS, 128), (TMA + TMA, 32)])
def test_a_part_belongs_to_the_instruction_that_issues_it(body: str, threads: int) -> None:
    representative = judged(body, threads=threads).representative
    assert representative is not None
    graph = representative.run.graph
    parts = [number for number, point in enumerate(graph.points) if point.issue is not None]
    assert parts
    for number in parts:
        part = graph.points[number]
        assert part.issue is not None and part.instruction == part.issue
        assert graph.origins[number].at == graph.origins[part.issue].at


MMA = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {FRAGMENT}, %d10, %d10, 1, 1, 1, 0, 0;\n"
OF_HALVES = "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%f0, %f1, %f2, %f3}, %d10, %d10, 1, 1, 1, 0, 0;\n"


@pytest.mark.parametrize(
    ("after_fence", "defined"),
    [
        (MMA, True),
        ("mov.f32 %f5, %f6;", True),
        ("mov.f32 %f2, 0f00000000;", False),
        ("mov.f32 %f5, %f2;", False),
        (OF_HALVES, False),
    ],
)
def test_registers_of_wgmma_used_after_its_fence(after_fence: str, defined: bool) -> None:
    late = WGMMA.replace("wgmma.fence.sync.aligned;", f"wgmma.fence.sync.aligned;\n{after_fence}")
    assert rules(verdict_of(late, threads=128)) == (set() if defined else {"undefined-instruction"})


DENSE = f"m64n8k16.f32.f16.f16 {FRAGMENT}, %d10, %d10, 1, 1, 1, 0, 0;"


@pytest.mark.parametrize(
    ("shape", "flags"),
    [("m64n8k32.f32.f16.f16", ", 0, 0"), ("m64n8k16.f32.tf32.tf32", ""), ("m64n8k64.f32.e4m3.e4m3", "")],
)
def test_sparse_wgmma(shape: str, flags: str) -> None:
    """Metadata and a selector stand behind the matrices."""
    sparse = f"{shape} {FRAGMENT}, %d10, %d10, %r0, 0, 1, 1, 1{flags};"
    body = WGMMA.replace(f"sync.aligned.{DENSE}", f"sp.sync.aligned.{sparse}")
    assert ".sp." in body
    assert verdict_of(body, threads=128).word == "clean"
    assert "data-race" in rules(verdict_of(without(body, "fence.proxy.async.shared::cta;"), threads=128))


# ---- tcgen05 ---------------------------------------------------------------------------------------------------

TENSOR = (
    INIT
    + DESCRIPTORS
    + """add.s32 %r22, %r4, 64;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r22], 32;
bar.sync 0;
ld.shared.b32 %r23, [%r22];
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
st.shared.b32 [%r3], %r0;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
mov.b32 %r24, 0x08020010;
setp.ne.b32 %p5, %r24, %r24;
@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r23], %d10, %d10, %r24, %p5;
@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
"""
    + wait("%r4", 0)
    + """tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}, [%r23];
tcgen05.wait::ld.sync.aligned;
tcgen05.fence::before_thread_sync;
bar.sync 0 ;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r23, 32;
"""
)


def test_tcgen05() -> None:
    assert verdict_of(TENSOR).word == "clean"


@pytest.mark.parametrize(
    ("missing", "rule"),
    [
        ("tcgen05.fence::after_thread_sync;", "tensor-memory-hazard"),
        ("fence.proxy.async.shared::cta;", "data-race"),
        ("tcgen05.wait::ld.sync.aligned;", "undefined-tensor-memory"),
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r23, 32;", "undefined-tensor-memory-kept"),
        ("@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];", "hang"),
    ],
)
def test_tcgen05_without(missing: str, rule: str) -> None:
    assert rule in rules(verdict_of(without(TENSOR, missing)))


def allocated(alloc: str, dealloc: str, between: str = "", before: str = "") -> str:
    """A warp allocates and deallocates so."""
    return (
        f"add.s32 %r22, %r4, 64;\n{before}tcgen05.alloc{alloc};\nbar.warp.sync -1;\nld.shared.b32 %r23, [%r22];\n"
        f"{between}tcgen05.dealloc{dealloc};\n"
    )


ALLOC, DEALLOC = (
    ".cta_group::1.sync.aligned.shared::cta.b32 [%r22], {0}",
    ".cta_group::1.sync.aligned.b32 %r23, {0}",
)
OTHER = f"tcgen05.alloc{ALLOC.format(32).replace('%r22', '%r22+8')};\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (allocated(".exclusive" + ALLOC.format(96), ".exclusive" + DEALLOC.format(96)), set()),
        (allocated(".exclusive" + ALLOC.format(64), DEALLOC.format(64)), {"undefined-tensor-memory-freed"}),
        (allocated(ALLOC.format(64), ".exclusive" + DEALLOC.format(64)), {"undefined-tensor-memory-freed"}),
        (allocated(ALLOC.format(96), DEALLOC.format(96)), {"undefined-instruction"}),
        (allocated(".exclusive" + ALLOC.format(40), ".exclusive" + DEALLOC.format(40)), {"undefined-instruction"}),
        (allocated(".exclusive" + ALLOC.format(64), ".exclusive" + DEALLOC.format(64), OTHER), {"hang"}),
        (allocated(".exclusive" + ALLOC.format(64), ".exclusive" + DEALLOC.format(64), before=OTHER), {"hang"}),
        (allocated(ALLOC.format(64), DEALLOC.format(64), OTHER), {"undefined-tensor-memory-kept"}),
    ],
)  # fmt: skip
def test_an_exclusive_allocation(body: str, found: set[str]) -> None:
    """ "No other allocation may exist at the same time as an exclusive allocation"; "deallocated with .exclusive if and
    only if it is allocated with .exclusive"; "nCols must be a multiple of 32, in the range [32, 512]".
    """
    assert rules(verdict_of(body)) == found


@pytest.mark.parametrize(("other", "found"), [("", set()), (OTHER, {"hang"})])
def test_an_exclusive_allocation_of_a_pair_belongs_to_both_ctas(other: str, found: set[str]) -> None:
    """ "If .cta_group::2 is specified, ownership is held jointly by both peer CTAs": neither has another one."""
    meet = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
    body = allocated(".exclusive" + ALLOC.format(64), ".exclusive" + DEALLOC.format(64), other)
    body = meet + body.replace("cta_group::1", "cta_group::2") + meet
    assert rules(verdict_of(body, ctas=2, cluster=2)) == found


@pytest.mark.parametrize(
    ("moved", "columns", "assumed"),
    [
        ("", 32, False),
        ("mov.b32 %r23, 0;", 32, True),
        ("mov.b32 %r23, 0;", 512, False),
        ("mov.b32 %r30, 0;", 32, False),
    ],
)
def test_an_address_of_tensor_memory_comes_from_its_allocation(moved: str, columns: int, assumed: bool) -> None:
    """tcgen05.alloc "writes the address of the allocated Tensor Memory": which one, nothing says, unless it is all of
    it. An address that comes from elsewhere, of an access or of what is freed, is an assumption.
    """
    for used in ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r31}, [%r23];\ntcgen05.wait::ld.sync.aligned;\n", ""):
        body = allocated(ALLOC.format(columns), DEALLOC.format(columns), used)
        verdict = verdict_of(body.replace("ld.shared.b32 %r23, [%r22];", moved) if "%r23" in moved else body + moved)
        assert verdict.word == "clean"
        assert any("tcgen05.alloc gives out" in what for what in verdict.assumptions) is assumed


@pytest.mark.parametrize(("place", "found"), [("%r22+8", set()), ("%r22+6", {"undefined-address"})])
def test_the_address_of_an_allocation_goes_to_four_aligned_bytes(place: str, found: set[str]) -> None:
    """ "Addresses as Operands": an address is a multiple of the size of the access."""
    body = allocated(ALLOC.format(32).replace("%r22", place), DEALLOC.format(32))
    wrong = rules(verdict_of(body.replace("ld.shared.b32 %r23, [%r22]", f"ld.shared.b32 %r23, [{place}]")))
    assert wrong & {"undefined-address"} == found


def test_lanes_name_one_place_for_the_address_of_an_allocation() -> None:
    apart = allocated(ALLOC.format(32), DEALLOC.format(32), before="add.u32 %r22, %r2, %r1;\n")
    verdict = verdict_of(apart)
    assert verdict.word == "undecided" and "different places" in verdict.open[0]


def test_the_reduction_of_a_load_reads_two_registers() -> None:
    """ "When .red qualifier is specified, .num modifier must be at least .x2" (tcgen05.ld)."""
    load = "tcgen05.ld.red.sync.aligned.32x32b.{}.min.u32 {{{}}}, %r33, [%r23];\ntcgen05.wait::ld.sync.aligned;\n"
    for number, registers, word in (("x1", "%r31", "undecided"), ("x2", "%r31, %r32", "clean")):
        verdict = verdict_of(allocated(ALLOC.format(32), DEALLOC.format(32), load.format(number, registers)))
        assert verdict.word == word


def test_more_columns_than_are_modelled() -> None:
    verdict = verdict_of(allocated(".exclusive" + ALLOC.format(576), ".exclusive" + DEALLOC.format(576)))
    assert verdict.word == "undecided" and "tensor memory has 512 columns here" in verdict.open[0]


@pytest.mark.parametrize(("again", "word"), [(64, "clean"), (32, "clean"), (128, "undecided")])
def test_more_columns_than_before(again: int, word: str) -> None:
    """ "The number of columns allocated should not increase between any two allocations": what then, is not said."""
    both = [allocated(ALLOC.format(columns), DEALLOC.format(columns)) for columns in (64, again)]
    verdict = verdict_of("bar.warp.sync -1;\n".join(both))
    assert verdict.word == word
    assert word == "clean" or "should not increase" in verdict.open[0]


RESTRICTED = TENSOR.replace("arrive::one.shared", "arrive::one.sync_restrict::shared::read::mma::a.shared")
"""The commit tells of the reads of A in shared memory alone."""
FILL = "tcgen05.fence::after_thread_sync;\n"


def test_a_commit_about_matrix_a_does_not_tell_of_the_product() -> None:
    assert rules(verdict_of(RESTRICTED)) == {"tensor-memory-hazard", "undefined-tensor-memory"}


@pytest.mark.parametrize(("commit", "filled", "found"), [
    (TENSOR, "%d10", set()), (RESTRICTED, "%d10", set()), (RESTRICTED, "%d11", {"data-race"}), (TENSOR, "%d11", set()),
])  # fmt: skip
def test_a_commit_about_matrix_a_hands_its_buffer_back(commit: str, filled: str, found: set[str]) -> None:
    """B lies 2,048 bytes behind A; one of them is stored to, behind a proxy fence."""
    apart = commit.replace("[%r23], %d10, %d10,", "[%r23], %d10, %d11,")
    apart = apart.replace("mov.b32 %r24, 0x08020010;", "mov.b32 %r24, 0x08020010;\nadd.u64 %d11, %d10, 128;", 1)
    place = "%r2" if filled == "%d10" else "%r2+2048"
    store = f"fence.proxy.async.shared::cta;\n@%p0 st.shared.b32 [{place}], %r0;\n"
    body = apart.replace(FILL, FILL + store, 1)
    assert {rule for rule in rules(verdict_of(body)) if rule == "data-race"} == found


FREED = """
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
bar.warp.sync -1;
ld.shared.b32 %r23, [%r2];
{use}
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r23, 32;
"""
FILLS, FILLED = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r23], {%r0};\n", "tcgen05.wait::st.sync.aligned;\n"
READS, READ = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r23];\n", "tcgen05.wait::ld.sync.aligned;\n"


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("use", "threads", "found"),
    [
        (FILLS + FILLED, 32, set()),
        (FILLS + FILLED + READS + READ, 32, set()),
        (FILLS, 32, {"undefined-tensor-memory"}),
        (FILLS + FILLED + READS, 32, {"undefined-tensor-memory"}),
        (FILLS + FILLED + "setp.lt.u32 %p1, %r0, 32;\n@!%p1 bra E;", 64, {"undefined-tensor-memory"}),
        (FILLS + FILLED + "bar.sync 0;\nsetp.lt.u32 %p1, %r0, 32;\n@!%p1 bra E;", 64, set()),
    ],
)
def test_tensor_memory_that_a_warp_frees(use: str, threads: int, found: set[str]) -> None:
    """Its lanes wait for one another, but not for what they do not wait for themselves, and not for other warps."""
    body = FREED.replace("{use}", use)
    if threads > 32:
        body = body.replace("tcgen05.alloc", "setp.lt.u32 %p1, %r0, 32;\n@!%p1 bra A;\ntcgen05.alloc")
        lanes = "and.b32 %r12, %r0, 32;\nshl.b32 %r12, %r12, 16;\nadd.u32 %r23, %r23, %r12;"
        body = body.replace("bar.warp.sync -1;", "A:\nbar.sync 0;").replace("[%r2];\ntc", f"[%r2];\n{lanes}\ntc") + "E:"
    assert rules(verdict_of(body, threads)) == found


@pytest.mark.parametrize(("shape", "lane", "reached"), [
    ("32x32b", 0, True), ("32x32b", 1, False), ("16x64b", 16, True), ("16x64b", 17, False),
])  # fmt: skip
def test_a_warp_reaches_its_own_lanes_alone(shape: str, lane: int, reached: bool) -> None:
    """ "A lane of the Tensor Memory can be accessed by a single warp in the warpgroup" ("Access restrictions")."""
    stored = FILLS.replace("32x32b", shape).replace("[%r23]", f"[%r23+{lane << 16}]")
    found = rules(verdict_of(FREED.replace("{use}", stored + FILLED)))
    assert ("undefined-tensor-memory" in found) is not reached


@pytest.mark.parametrize(("model", "found"), [("ptx-9.4", {"data-race"}), ("readings/D19-together", set())])
def test_lanes_read_the_address_behind_the_allocation(model: str, found: set[str]) -> None:
    """Without bar.warp.sync, as Example 1 of the page has it: D19."""
    body = FREED.replace("bar.warp.sync -1;\n", "").replace("{use}", FILLS + FILLED)
    assert rules(verdict_of(body, 32, model=model)) == found


def test_other_warps_read_the_address_behind_a_barrier_under_any_reading() -> None:
    body = """setp.lt.u32 %p1, %r0, 32;
@!%p1 bra A;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
ld.shared.b32 %r23, [%r2];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r23, 32;
bra E;
A:
ld.shared.b32 %r24, [%r2];
E:
"""
    assert rules(verdict_of(body, 64, model="readings/D19-together")) == {"data-race"}


ISSUED = "@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r23], %d10, %d10, %r24, %p5;"


@pytest.mark.parametrize(
    ("uses", "word"),
    [
        (("fill", "use", "lastuse", "fill", "use"), "clean"),
        (("use",), "findings"),
        (("fill", "discard", "use"), "findings"),
        (("fill", "lastuse", "use"), "findings"),
        (("fill", "other", "discard"), "clean"),
        (("other", "fill", "use"), "undecided"),  # in another schedule the other thread discards it in between
        (("fill", "use", "other"), "undecided"),
        (("fill", "use", "other b0"), "clean"),
    ],
)
def test_collector_buffers(uses: tuple[str, ...], word: str) -> None:
    """`other`: an mma of another thread, which discards the buffer of A, or that of B."""
    shared = ISSUED.replace("%p0", "%p7")
    others = {
        "other": shared,
        "other b0": shared.replace("mma.", "mma.ws.")
        .replace("f16", "f16.collector::b0::discard")
        .replace("%r24", "%r25"),
    }
    made = [others.get(use) or ISSUED.replace("f16", f"f16.collector::a::{use}") for use in uses]
    body = TENSOR.replace(ISSUED, "setp.eq.u32 %p7, %r0, 1;\nmov.b32 %r25, 0x08100010;\n" + "\n".join(made))
    verdict = verdict_of(body.replace("%r22], 32;", "%r22], 64;").replace("%r23, 32;", "%r23, 64;"))
    assert (word == "findings") == ("undefined-instruction" in rules(verdict))
    assert (word == "undecided") == any("collector buffer" in one for one in verdict.open)


SCALED = (
    INIT
    + DESCRIPTORS
    + """add.s32 %r22, %r4, 64;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r22], 512;
bar.sync 0;
ld.shared.b32 %r23, [%r22];
st.shared.b32 [%r3], %r0;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
mov.b32 %r24, SHAPE;
mov.pred %p5, 0;
add.s32 %r25, %r23, 256;
add.s32 %r26, %r23, 260;
add.s32 %r27, %r23, COLUMN;
@%p0 tcgen05.mma.cta_group::1.kind::KIND [%r23], %d10, %d10, %r24, [%r25], [%r26], %p5;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r27], {%r0};
tcgen05.wait::st.sync.aligned;
@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];
"""
    + wait("%r4", 0)
    + """tcgen05.fence::after_thread_sync;
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r23, 512;
"""
)
"""Scale factors of A in columns 256 to 259, of B from 260 on; a store to a column while they are read."""

MX8, MX4 = "mxf8f6f4.block_scale.block32", "mxf4nvf4.block_scale.block16"


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("kind", "columns", "depth", "read"),
    [(MX8, 64, 0, 2), (MX8, 128, 0, 4), (MX8, 256, 0, 8), (MX8, 8, 0, 1), (MX4, 128, 0, 4), (MX4, 128, 1, 8)],
)
def test_columns_of_scale_factors(kind: str, columns: int, depth: int, read: int) -> None:
    """One for 32 rows of A or columns of B; where K is 96, perhaps two ("Scale Factor B ID")."""

    shape = depth << 31 | 1 << 27 | columns >> 3 << 17
    body = SCALED.replace("SHAPE", f"{shape:#x}").replace("KIND", kind)

    def stored(column: int) -> set[str]:
        """What is wrong with a store to that column; in the second part of them where that is not specified."""
        found = verdict_of(body.replace("COLUMN", f"{column}"))
        unsure = {one.split(": ")[1].split(",")[0] for one in found.open if "if these bytes are touched" in one}
        return rules(found) | {f"perhaps {one}" for one in unsure}

    assert "tensor-memory-hazard" in stored(259)
    assert "tensor-memory-hazard" in stored(260 + read // (1 + depth) - 1)
    assert ("perhaps " if depth else "") + "tensor-memory-hazard" in stored(260 + read - 1)
    assert not stored(260 + read)


LEFT_ALONE = (
    SCALED.replace("add.s32 %r27, %r23, COLUMN;", "mov.b32 %r27, %r23;\nmov.b32 %r28, 0xFFFF;")
    .replace(".kind::KIND", ".kind::f16")
    .replace("[%r25], [%r26]", "{MASK, 0, 0, 0}")
    .replace("SHAPE", "0x08020010")
)
"""An mma that leaves some lanes alone; warp 0 stores to lane 0, or to lane 16 and above."""
STORED, UPPER = "32x32b.x1.b32 [%r27], {%r0}", "16x64b.x1.b32 [%r27+0x100000], {%r0}"


@pytest.mark.parametrize(
    ("mask", "store", "found"),
    [("0", STORED, True), ("0xFFFFFFFF", STORED, False), ("0xFFFF", STORED, True), ("0xFFFF0000", UPPER, False),
     ("%r28", UPPER, True), ("0xFFFF", UPPER, True)],
)  # fmt: skip
def test_lanes_that_an_mma_leaves_alone(mask: str, store: str, found: bool) -> None:
    """disable-output-lane: these lanes of the accumulator are not touched."""
    body = LEFT_ALONE.replace("MASK", mask).replace(STORED, store)
    verdict = verdict_of(body)
    assert ("tensor-memory-hazard" in rules(verdict)) == found
    assert found or verdict.word == "clean"
    unknown = verdict_of(body.replace("mov.b32 %r28, 0xFFFF;", "ld.global.b32 %r28, [%d0];"))
    assert mask != "%r28" or (
        unknown.word == "undecided" and "which lanes disable-output-lane names" in unknown.open[0]
    )


FOUR_ROWS = TENSOR.replace(
    "mma.cta_group::1.kind::f16 [%r23], %d10, %d10, %r24, %p5", "cp.cta_group::1.4x256b [%r23], %d10"
)


def test_four_rows_lie_in_lanes_that_are_not_specified() -> None:
    whole = verdict_of(FOUR_ROWS)
    assert whole.word == "undecided" and not whole.findings
    assert "which lanes four rows go to is not specified" in whole.open[0]
    early = verdict_of(without(FOUR_ROWS, "tcgen05.fence::after_thread_sync;"))
    assert not early.findings and any("tensor-memory-hazard, if these bytes are touched" in one for one in early.open)


PRODUCT = "mma.cta_group::1.kind::f16 [%r25], %d10, %d10, %r24, %p5"
FROM_TENSOR = "mma.cta_group::1.kind::f16 [%r23], [%r25], %d10, %r24, %p5"
HALF, SHIFT, COPY = 0x04020010, "shift.cta_group::1.down [%r25]", "cp.cta_group::1.128x256b [%r25], %d10"


@pytest.mark.parametrize(("operation", "shape", "lane", "rule"), [
    (PRODUCT, 0x08020010, 16, "undefined-instruction"), (PRODUCT, 0x08020010, 32, "undefined-instruction"),
    (PRODUCT, HALF, 0, None), (PRODUCT, HALF, 16, None), (PRODUCT, HALF, 8, "undefined-instruction"),
    (PRODUCT, HALF, 64, "undefined-instruction"), (FROM_TENSOR, HALF, 0, None),
    (FROM_TENSOR, HALF, 16, "undefined-instruction"), (SHIFT, HALF, 0, None), (SHIFT, HALF, 96, None),
    (SHIFT, HALF, 16, "undefined-instruction"), (SHIFT, HALF, 33, "undefined-instruction"),
    (COPY, HALF, 0, None), (COPY, HALF, 16, "undefined-tensor-memory"),
])  # fmt: skip
def test_the_lane_of_an_address(operation: str, shape: int, lane: int, rule: str | None) -> None:
    """ "The lane of the address operand taddr must be aligned to 32" (shift); "Tensor Memory Datapath Lane Alignment":
    0, or 0 or 16 where M is 64, the same for A and D. Memory has 128 lanes, which a copy of so many rows needs.
    """
    body = TENSOR.replace(ISSUED, f"add.u32 %r25, %r23, {lane << 16};\n@%p0 tcgen05.{operation};")
    body = body.replace("mov.b32 %r24, 0x08020010;", f"mov.b32 %r24, {shape};")
    assert body.count(operation) == 1
    found = rules(verdict_of(body))
    assert rule in found if rule else not any(name.startswith("undefined") for name in found)


PRODUCTS = "{} [%r23], %d10, %d10, %r24, %p5"
FLOATS, INTEGERS, STATIONARY = (
    f"mma.cta_group::1.kind::{kind}" if kind != "ws" else "mma.ws.cta_group::1.kind::f16"
    for kind in ("f16", "i8", "ws")
)


@pytest.mark.parametrize(("head", "rows", "columns", "exists"), [
    (FLOATS, 64, 8, True), (FLOATS, 128, 24, True), (FLOATS, 32, 8, False), (FLOATS, 256, 16, False),
    (FLOATS, 112, 8, False), (INTEGERS, 64, 24, True), (INTEGERS, 64, 40, False), (STATIONARY, 32, 64, True),
    (STATIONARY, 32, 8, False), (STATIONARY, 128, 96, False),
])  # fmt: skip
def test_the_shape_that_an_instruction_descriptor_names(head: str, rows: int, columns: int, exists: bool) -> None:
    """ "Various combinations of .kind and shapes", in "Matrix Shape"; M and N as "Instruction descriptor" has them."""
    shape = rows >> 4 << 24 | columns >> 3 << 17 | 1 << 4
    body = TENSOR.replace(ISSUED, f"@%p0 tcgen05.{PRODUCTS.format(head)};").replace("0x08020010", f"{shape}")
    body = body.replace("%r22], 32;", "%r22], 128;").replace("%r23, 32;", "%r23, 128;")
    found = verdict_of(body).findings
    assert any("has no such" in finding.message for finding in found) is not exists


@pytest.mark.parametrize(("shape", "allowed"), [(0x08020010, True), (HALF, False)])
def test_matrix_a_is_shifted_with_128_rows_or_more(shape: int, allowed: bool) -> None:
    """ "Qualifier .ashift is only allowed with M = 128 or M = 256"."""
    shifted = FROM_TENSOR.replace("f16", "f16.ashift").replace("[%r25]", "[%r23]")
    body = TENSOR.replace(ISSUED, f"@%p0 tcgen05.{shifted};").replace("0x08020010", f"{shape}")
    assert any("has no such M" in finding.message for finding in verdict_of(body).findings) is not allowed


PAIR_SCALED = (
    INIT
    + DESCRIPTORS
    + """add.s32 %r22, %r4, 64;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r22], 512;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
ld.shared.b32 %r23, [%r22];
mov.b32 %r24, 0x10400000;
mov.pred %p5, 0;
add.s32 %r25, %r23, 256;
add.s32 %r26, %r23, 260;
add.s32 %r27, %r23, COLUMN;
@%p2 tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.block32 [%r23], %d10, %d10, %r24, [%r25], [%r26], %p5;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r27], {%r0};
tcgen05.wait::st.sync.aligned;
"""
)


@pytest.mark.parametrize(("column", "read"), [(267, True), (268, False)])
def test_each_cta_of_a_pair_scales_all_columns(column: int, read: bool) -> None:
    """M is 256 and N is 256: the factors of B lie in 8 columns of both CTAs."""
    found = verdict_of(PAIR_SCALED.replace("COLUMN", f"{column}"), ctas=2, cluster=2)
    places = [
        {one.cta for one in finding.sides} for finding in found.findings if finding.rule == "tensor-memory-hazard"
    ]
    assert bool(places) is read


def test_the_fence_depends_on_the_reading() -> None:
    body = without(TENSOR, "tcgen05.fence::after_thread_sync;")
    assert verdict_of(body, model="ptx-9.4").word == "findings"
    assert verdict_of(body, model="readings/D4b-acquire").word == "clean"


def test_what_makes_a_kernel_right_under_a_reading_alone_is_not_called_needless_without_a_word() -> None:
    """Without the fence, an acquire wait is enough under D4b and D4ab, and a relaxed one is not."""
    read = parse_module(Source("k.ptx", text_of(without(TENSOR, "tcgen05.fence::after_thread_sync;"))))
    buffers = [
        {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536},
        {"name": "map", "type": "bytes", "hex": "00" * 128},
    ]
    launch = parse_launch({"grid": [1, 1, 1], "block": [32, 1, 1], "params": buffers})
    with pytest.MonkeyPatch.context() as patch:
        relaxed = [change for change in mutations(entry_of(read, "k")) if change.what == "with .relaxed"]
        patch.setattr("memmodel.kernel.mutate.table.mutations", lambda *_, **_options: relaxed)
        table = mutation_table(read, entry_of(read, "k"), launch, load_model("ptx-9.4"))
    assert table.base.word == "findings"
    assert [result.needing for result in table.results] == [("D4b acquire", "D4ab no-fences")]


def test_tensor_memory_that_is_not_allocated() -> None:
    verdict = verdict_of(TENSOR.replace("[%r23], %d10", "[%r22], %d10"))
    assert "undefined-tensor-memory" in rules(verdict)


# ---- clusters --------------------------------------------------------------------------------------------------

EXCHANGE = """mapa.shared::cluster.u32 %r10, %r3, %r6;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.aligned;
st.shared::cluster.b32 [%r10], %r0;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
ld.shared.b32 %r11, [%r3];
"""
PULL = """st.shared.b32 [%r3], %r0;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mapa.shared::cluster.u32 %r10, %r3, %r6;
ld.shared::cluster.b32 %r11, [%r10];
barrier.cluster.arrive.release.aligned ;
barrier.cluster.wait.acquire.aligned ;
"""
REMOTE = (
    INIT
    + "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
    + "mapa.shared::cluster.u32 %r10, %r4, %r6;\nmapa.shared::cluster.u32 %r11, %r2, %r6;\n"
    + "@%p0 st.shared::cluster.b32 [%r11], %r0;\n"
    + "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];\n"
    + wait("%r4", 0, ".acquire.cluster")
    + "ld.shared.b32 %r12, [%r2];\n"
)


@pytest.mark.parametrize("body", [EXCHANGE, PULL, REMOTE])
def test_clusters(body: str) -> None:
    verdict = verdict_of(body, ctas=2, cluster=2)
    assert verdict.word == "clean", (rules(verdict), verdict.open)


@pytest.mark.parametrize(
    ("body", "old", "new", "rule"),
    [
        (EXCHANGE, "arrive.release", "arrive.relaxed", "data-race"),
        (PULL, "barrier.cluster.arrive.release.aligned ;\nbarrier.cluster.wait.acquire.aligned ;\n", "",
         "undefined-after-exit"),
        (PULL, "arrive.release.aligned;", "arrive.relaxed.aligned;", "data-race"),
        (REMOTE, "mbarrier.arrive.release.cluster.", "mbarrier.arrive.", "data-race"),
        (REMOTE, ".acquire.cluster", ".relaxed.cluster", "data-race"),
        (REMOTE, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10]", "mov.b32 %r9, %r9", "hang"),
    ],
)  # fmt: skip
def test_clusters_without(body: str, old: str, new: str, rule: str) -> None:
    assert old in body
    assert rule in rules(verdict_of(body.replace(old, new), ctas=2, cluster=2))


def test_an_address_of_another_cta_is_outside_the_window() -> None:
    body = EXCHANGE.replace("st.shared::cluster.b32", "st.shared.b32")
    assert "undefined-address" in rules(verdict_of(body, ctas=2, cluster=2))


def test_multicast() -> None:
    body = (
        INIT
        + "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
        + EXPECT
        + "mov.b16 %h0, 3;\n@%p2 "
        + LOAD.replace("::bytes", "::bytes.multicast::cluster").replace("[%r4]", "[%r4], %h0")
        + wait("%r4", 0)
        + "ld.shared.b32 %r10, [%r3];\n"
        + "barrier.cluster.arrive.release.aligned ;\nbarrier.cluster.wait.acquire.aligned ;\n"
    )
    whole = verdict_of(body, ctas=2, cluster=2)
    assert whole.word == "clean", (rules(whole), whole.open)
    assert "hang" in rules(verdict_of(body.replace("%h0, 3", "%h0, 1"), ctas=2, cluster=2))
    bare = without(body, wait("%r4", 0))
    assert "undefined-unfinished-copy" in rules(verdict_of(bare, ctas=2, cluster=2))


PAIR = """
add.s32 %r22, %r4, 64;
@%p8 bra A;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r22], 32;
A: @%p9 bra R;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
R: @%p10 bra D;
bar.warp.sync -1;
ld.shared.b32 %r23, [%r22];
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r23, 32;
D:
"""


@pytest.mark.parametrize("missing", ["", "%p8", "%p9", "%p10"])
def test_the_ctas_of_a_pair_allocate_together(missing: str) -> None:
    """%p1: the CTA of rank 0. What it leaves out lets the other one wait for ever ("Issue Granularity")."""
    left_out = "".join(
        f"and.pred {one}, %p1, {'%p1' if one == missing else '%p15'};\n" for one in ("%p8", "%p9", "%p10")
    )
    started = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n"
    body = started + "setp.ne.u32 %p15, %r5, %r5;\n" + left_out + PAIR
    verdict = verdict_of(body, ctas=2, cluster=2)
    said = " ".join(one.message for one in verdict.findings)
    assert "no warp of the peer CTA does the same" in said if missing else verdict.word == "clean"
    assert ("hang" in rules(verdict)) is bool(missing)


BEFORE, AFTER = "tcgen05.fence::before_thread_sync;\n", "tcgen05.fence::after_thread_sync;\n"


@pytest.mark.parametrize(
    ("meet", "kept"),
    [
        ("", False),
        ("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n", True),
        ("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n", False),
        (f"{BEFORE}barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n{AFTER}", True),
    ],
)
def test_a_pair_frees_what_neither_accesses_any_more(meet: str, kept: bool) -> None:
    """ "Issuing warp and peer CTA warp must synchronize Tensor Memory accesses before attempting to collectively
    deallocate" (tcgen05.dealloc): those of the peer to its own half too.
    """
    started = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n"
    stored = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r23], {%r0};\ntcgen05.wait::st.sync.aligned;\n"
    body = started + allocated(ALLOC.format(32), DEALLOC.format(32), stored + meet).replace("group::1", "group::2")
    assert rules(verdict_of(body, ctas=2, cluster=2)) == (set() if kept else {"undefined-tensor-memory"})
    assert rules(verdict_of(body.replace("group::2", "group::1"), ctas=2, cluster=2)) == set()


def test_to_allocate_together_orders_nothing() -> None:
    """The operation may block or not, so that what comes before it in one CTA races with what follows in the other."""
    body = (
        "@%p1 st.global.b32 [%d0], %r0;\nsetp.ne.u32 %p8, %r5, %r5;\nmov.pred %p9, %p8;\nmov.pred %p10, %p8;\n" + PAIR
    )
    assert "data-race" in rules(verdict_of(body + "@!%p1 ld.global.b32 %r30, [%d0];", ctas=2, cluster=2))
