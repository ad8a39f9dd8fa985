"""What wgmma and tcgen05 lower to: operands, accumulators, results, commits, waits, fences.

The steps are worked out by hand from the pages of the ISA; `isa_samples.brief` says how they are written.
"""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, ops, shown, value, warnings

from memmodel.errors import InputError
from memmodel.litmus.syntax import LitmusTest
from memmodel.program.ops import Assign, AsyncWrite, IssueAsync, SignalPart


def operand(family: str, address: str, register: str, most: object = "-", tracks: str = "") -> str:
    """A matrix in shared memory, summed into a temporary."""
    return f"+ AsyncRead(Access(read async {family}) Matrix({address} {most}) [{register}] sums tracks={{{tracks}}})"


def wgmma(*matrices: tuple[str, str, int]) -> list[str]:
    """The issue of a wgmma.mma_async with matrices (address, temporary, bytes) in shared memory."""
    return ["Issue(wgmma)", *(operand("wgmma asynchronous", *matrix, tracks="wgmma") for matrix in matrices)]


TOTAL = "add.s64(%{}, %$p)"
A_AND_B = "Assign($p mul.s64(%$a, %$b))"
WGMMA = "wgmma.mma_async.sync.aligned"
WGMMA_STEPS = {
    # A has 64 rows of 16 elements of 2 bytes, B 8 columns
    f"{WGMMA}.m64n8k16.f16.f16.f16 {{%f0, %f1}}, %rd0, %rd1, 1, 1, 1, 0, 0;": [
        *wgmma(("%rd0", "$a", 2048), ("%rd1", "$b", 256)),
        A_AND_B,
        *(f"Assign({name} cvt.u32({TOTAL.format(name)}))" for name in ("f0", "f1")),
    ],
    f"{WGMMA}.m64n8k8.f32.tf32.tf32 {{%f0, %f1, %f2, %f3}}, %rd0, %rd1, 0, 1, 1;": [
        *wgmma(("%rd0", "$a", 2048), ("%rd1", "$b", 256)),
        A_AND_B,
        *(f"Assign(f{k} cvt.u32(%$p))" for k in range(4)),
    ],
    f"{WGMMA}.m64n16k256.s32.b1.b1.and.popc {{%a, %b, %c, %d, %e, %f, %g, %h}}, %rd0, %rd1, %p;": [
        *wgmma(("%rd0", "$a", 2048), ("%rd1", "$b", 512)),
        A_AND_B,
        *(f"Assign({name} cvt.u32(selp.s64({TOTAL.format(name)}, %$p, %p)))" for name in "abcdefgh"),
    ],
    # Of a sparse A half is stored: 64 rows of 32 of its 64 elements; B has 64 rows.
    "wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.u8 {%a, %b, %c, %d}, %rd0, %rd1, %r8, 0, 1;": [
        *wgmma(("%rd0", "$a", 2048), ("%rd1", "$b", 512)),
        "Assign($p add.s64(mul.s64(%$a, %$b), and.s64(%r8, 0)))",
        *(f"Assign({name} cvt.u32({TOTAL.format(name)}))" for name in "abcd"),
    ],
    f"{WGMMA}.m64n8k32.s32.s8.u8 {{%r4, %r5, %r6, %r7}}, {{%r0, %r1, %r2, %r3}}, %rd1, 1;": [
        *wgmma(("%rd1", "$b", 256)),
        "Assign($p mul.s64(%r0, %$b))",
        *(f"Assign(r{k} cvt.u32({TOTAL.format(f'r{k}')}))" for k in (4, 5, 6, 7)),
    ],
}

ONE, TWO = "tracks={group_1}", "tracks={group_2}"


def matrix(address: str, register: str, group: int = 1) -> str:
    """A matrix in shared memory of a tcgen05.mma; of A a commit may tell alone."""
    tracks = f"group_{group}" + (f" matrix_a_{group}" if register.startswith("$a") else "")
    return operand(f"mma asynchronous group={group}", address, register, tracks=tracks)


def shape(form: str) -> str:
    """Sparsity, the types, N and M of the instruction descriptor; the type of D or, with scale factors, K."""
    return f"shape=and.u32(%r2, {0x9F7E1F84 if 'mx' in form else 0x1F7E1FB4})"


def product(values: str, region: str, form: str, more: str = "", group: int = 1) -> str:
    """The write of an accumulator."""
    label = f"Access(write mma asynchronous group={group} form={form})"
    return f"+ AsyncWrite({label} Accumulator({region} {shape(form)}) [{values}]{more} tracks={{group_{group}}})"


def accumulator(region: str, form: str, group: int = 1) -> str:
    """The read of an accumulator."""
    label = f"Access(read mma asynchronous group={group} form={form})"
    return f"+ AsyncRead({label} Accumulator({region} {shape(form)}) [] tracks={{group_{group}}})"


def in_tensor_memory(address: str, register: str, group: int = 1) -> str:
    """An operand of a tcgen05.mma in tensor memory."""
    label = f"Access(read mma asynchronous group={group})"
    return f"+ AsyncRead({label} Accumulator({address} -) [{register}] sums tracks={{group_{group}}})"


PEER = "or.u64(and.u64({}, 16777215), shl.u64(add.u64(1, 0), 24))"
BOTH_B = "add.s64(%$b0, %$b1)"
F16, TF32, I8 = "kind::f16", "kind::tf32", "kind::i8"
F16_WS = "kind::f16 ws"
A_TIMES_B = "mul.s64(%$a0, %$b0)"
MMA = "tcgen05.mma.cta_group"
MMA_STEPS = {
    f"{MMA}::1.kind::f16 [acc], %rd0, %rd1, %r2, %unset;": [  # a predicate that is never set is false: D = A * B
        f"Issue(mma group=1 form={F16})",
        matrix("%rd1", "$b0"),
        matrix("%rd0", "$a0"),
        product(A_TIMES_B, "&acc -", F16),
    ],
    f"{MMA}::1.kind::f16 [acc], [acc+1], %rd1, %r2, !%unset;": [
        f"Issue(mma group=1 form={F16})",
        matrix("%rd1", "$b0"),
        in_tensor_memory("&acc+1", "$a0"),
        accumulator("&acc -", F16),
        product(A_TIMES_B, "&acc -", F16, " adds_to=2"),
    ],
    f"setp.eq.u32 %on, %r3, 1; {MMA}::1.kind::i8 [%r9], %rd0, %rd1, %r2, %on;": [
        "Assign(on eq.u32(%r3, 1))",
        f"Issue(mma group=1 form={I8})",
        matrix("%rd1", "$b0"),
        matrix("%rd0", "$a0"),
        accumulator("%r9 -", I8),
        product(A_TIMES_B, "%r9 -", I8, " adds_to=2 adds_if=%on"),
    ],
    f"{MMA}::2.kind::tf32 [acc], %rd0, %rd1, %r2, %unset;": [  # each CTA of the pair has its part of A and of B
        f"Issue(mma group=2 form={TF32})",
        matrix("%rd1", "$b0", 2),
        matrix(PEER.format("%rd1"), "$b1", 2),
        matrix("%rd0", "$a0", 2),
        product(f"mul.s64(%$a0, {BOTH_B})", "&acc -", TF32, group=2),
        matrix(PEER.format("%rd0"), "$a1", 2),
        product(f"mul.s64(%$a1, {BOTH_B})", "&acc - cta=1", TF32, group=2),
    ],
    f"{MMA}::1.kind::mxf8f6f4.block_scale [acc], %rd0, %rd1, %r2, [sf], [sf+1], %unset;": [
        "Issue(mma group=1 form=kind::mxf8f6f4)",
        matrix("%rd1", "$b0"),
        matrix("%rd0", "$a0"),
        in_tensor_memory("&sf", "$f0.0"),
        in_tensor_memory("&sf+1", "$f0.1"),
        product(f"mul.s64(%$f0.1, mul.s64(%$f0.0, {A_TIMES_B}))", "&acc -", "kind::mxf8f6f4"),
    ],
    **{
        f"tcgen05.mma{ws}.sp.cta_group::1.kind::f16 [acc], %rd0, %rd1, [sf], %r2, %unset;": [
            f"Issue(mma group=1 form={form})",
            matrix("%rd1", "$b0"),
            matrix("%rd0", "$a0"),
            in_tensor_memory("&sf", "$f0.0"),
            product(f"mul.s64(%$f0.0, {A_TIMES_B})", "&acc -", form),
        ]
        for ws, form in (("", f"{F16} sp"), (".ws", f"{F16_WS} sp"))
    },
    "tcgen05.mma.ws.cta_group::1.kind::f16 [acc], %rd0, %rd1, %r2, %unset, %rd7;": [
        "Unmodelled(a zero-column mask hides columns of B, and a matrix is its sum in a litmus test "
        "and.u64(%rd7, 4539628974145273856))",
        f"Issue(mma group=1 form={F16_WS})",
        matrix("%rd1", "$b0"),
        matrix("%rd0", "$a0"),
        product(A_TIMES_B, "&acc -", F16_WS),
    ],
}


def copied(
    group: int, shape: str, size: int, columns: int, address: str = "%rd0", at: int = 0, cta: str = ""
) -> list[str]:
    """Parts of a tcgen05.cp."""
    words = f"asynchronous group={group} form={shape}"
    return [
        f"+ Gather(Access(read async tcgen_cp {words}) Matrix({address} {size}) tracks={{group_{group}}})",
        f"+ Scatter(Access(write tcgen_cp {words}) Accumulator(&sf {columns}{cta}) {at} tracks={{group_{group}}})",
    ]


def shifted(group: int, at: int = 0, cta: str = "") -> list[str]:
    """Parts of a tcgen05.shift."""
    words = f"asynchronous group={group}"
    return [
        f"+ Gather(Access(read shift {words}) Columns(&acc+1 7{cta} spare=0) tracks={{group_{group}}})",
        f"+ Scatter(Access(write shift {words}) Columns(&acc 7{cta} spare=1) {at} tracks={{group_{group}}})",
    ]


LD, ST = "tcgen05.ld.sync.aligned", "tcgen05.st.sync.aligned"
MOVED = {
    # 32 lanes of 128 bits are 512 bytes in shared memory and 4 columns of 32 bits
    "tcgen05.cp.cta_group::1.32x128b.warpx4 [sf], %rd0;": [
        "Issue(tcgen_cp group=1 form=32x128b)",
        *copied(1, "32x128b", 512, 4),
    ],
    "tcgen05.cp.cta_group::2.4x256b [sf], %rd0;": [
        "Issue(tcgen_cp group=2 form=4x256b)",
        *copied(2, "4x256b", 128, 8),
        *copied(2, "4x256b", 128, 8, PEER.format("%rd0"), 2, " cta=1"),
    ],
    "tcgen05.shift.cta_group::1.down [acc];": ["Issue(shift group=1)", *shifted(1)],
    "tcgen05.shift.cta_group::2.down [acc];": ["Issue(shift group=2)", *shifted(2), *shifted(2, 2, " cta=1")],
    f"{LD}.32x32b.x2.b32 {{%r0, _}}, [acc+1];": [
        "Issue(tcgen_ld)",
        "+ AsyncRead(Access(read tcgen_ld asynchronous) Columns(&acc+1 2) [$r0 -] tracks={tcgen_ld})",
        "Assign(r0 cvt.b32(%$r0))",
    ],
    f"{LD}.16x128b.x1.b32 {{%r0, %r1}}, [%r9];": [  # 128 bits of a lane are four columns, of two threads
        "Issue(tcgen_ld)",
        "+ AsyncRead(Access(read tcgen_ld asynchronous) Columns(%r9 4) [$r0 - $r1 -] tracks={tcgen_ld})",
        "Assign(r0 cvt.b32(%$r0))",
        "Assign(r1 cvt.b32(%$r1))",
    ],
    f"{LD}.32x32b.x1.pack::16b.b32 {{%r0}}, [acc];": [  # two columns hold 16 bits each
        "Issue(tcgen_ld)",
        "+ AsyncRead(Access(read tcgen_ld asynchronous) Columns(&acc 2) [$r0 $r0.high] tracks={tcgen_ld})",
        "Assign(r0 or.b32(cvt.b16(%$r0), shl.b32(cvt.b16(%$r0.high), 16)))",
    ],
    "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%r0, %r1}, %r2, [acc];": [
        "Issue(tcgen_ld)",
        "+ AsyncRead(Access(read tcgen_ld asynchronous) Columns(&acc 2) [$r0 $r1] tracks={tcgen_ld})",
        "Assign(r0 cvt.u32(%$r0))",
        "Assign(r1 cvt.u32(%$r1))",
        "Assign(r2 min.u32(cvt.u32(%$r0), cvt.u32(%$r1)))",
    ],
    f"{ST}.16x64b.x1.b32 [acc+2], {{%r0}};": [
        "Issue(tcgen_st)",
        "+ AsyncWrite(Access(write tcgen_st asynchronous) Columns(&acc+2 2) [cvt.b32(%r0) cvt.b32(%r0)] "
        "tracks={tcgen_st})",
    ],
    f"{ST}.16x32bx2.x2.b32 [acc], 16, {{%r0, 5}};": [  # 16 lanes, and 16 more after the second address
        "Issue(tcgen_st)",
        "+ AsyncWrite(Access(write tcgen_st asynchronous) Columns(&acc 2) [cvt.b32(%r0) 5] tracks={tcgen_st})",
        "+ AsyncWrite(Access(write tcgen_st asynchronous) Columns(&acc+16 2) [cvt.b32(%r0) 5] tracks={tcgen_st})",
    ],
}

ROWS = "Chunk(&tile shared_cta {}) Access({})"
HALVES = "cvt.b16(%r0) cvt.b16(shr.b32(%r0, 16))"
JOINED = "Assign({0} or.b32(%${1}.0.low, shl.b32(%${1}.0.high, 16)))"
FRAGMENTS = {
    # lane 0 has the first two elements of the first row, or, transposed, of the first column
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [tile];": [
        f"Read([$0.0.low $0.0.high] {ROWS.format(128, 'read')} type=b16 at=[0 2])",
        JOINED.format("r0", 0),
    ],
    "ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%r0, %r1}, [tile];": [
        f"Read([$0.0.low $0.0.high $1.0.low $1.0.high] {ROWS.format(256, 'read')} type=b16 at=[0 16 128 144])",
        JOINED.format("r0", 0),
        JOINED.format("r1", 1),
    ],
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [tile], {%r0};": [
        f"Write([{' '.join([HALVES] * 32)}] {ROWS.format(128, 'write')})"
    ],
}

COMMITTED = "Signal(arrive cluster commit group={0}) Object({1} shared_cluster) group_{0}"
COMMIT = "mbarrier::arrive::one"
SYNCHRONIZED = {
    "wgmma.fence.sync.aligned;": ["Emit(Mark(wgmma_fence))"],
    "wgmma.commit_group.sync.aligned;": ["CommitGroup(wgmma)"],
    "wgmma.wait_group.sync.aligned 2;": ["WaitForGroups(GroupWait(wgmma) wgmma pending=2)"],
    f"tcgen05.commit.cta_group::1.{COMMIT}.b64 [bar];": [
        "Issue(commit group=1)",
        f"+ SignalPart({COMMITTED.format(1, '&bar')})",
    ],
    f"tcgen05.commit.cta_group::1.{COMMIT}.sync_restrict::shared::read::mma::a.shared::cluster.b64 [bar];": [
        "Issue(commit group=1)",
        f"+ SignalPart({COMMITTED.format(1, '&bar').replace('group_1', 'matrix_a_1')})",
    ],
    f"tcgen05.commit.cta_group::2.{COMMIT}.multicast::cluster.b64 [bar], 2;": [
        "Issue(commit group=2)",
        f"+ SignalPart({COMMITTED.format(2, '&bar@1')})",
    ],
    f"tcgen05.commit.cta_group::2.{COMMIT}.shared::cluster.multicast::cluster.b64 [bar], 3;": [
        "Issue(commit group=2)",
        f"+ SignalPart({COMMITTED.format(2, '&bar@0')})",
        f"+ SignalPart({COMMITTED.format(2, '&bar@1')})",
    ],
    "tcgen05.wait::ld.sync.aligned;": ["WaitForGroups(GroupWait(tcgen_ld) tcgen_ld)"],
    "tcgen05.wait::st.sync.aligned;": ["WaitForGroups(GroupWait(tcgen_st) tcgen_st)"],
    "tcgen05.fence::before_thread_sync;": ["Emit(Mark(before))"],
    "tcgen05.fence::after_thread_sync;": ["Emit(Mark(after))"],
    "tcgen05.alloc.cta_group::1.sync.aligned.b32 [tile+4], 32;": [
        "Emit(Allocates(alloc 1 columns=32) address=&acc columns=4)",
        "Write([&acc] Elements(&tile+4 shared_cta size=4) Access(write))",
    ],
    "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, 32;": [
        "AtBarrier(Barrier(arrive pair) [1] 2)",
        "AtBarrier(Barrier(wait pair) [1] 2)",
        "Emit(Allocates(dealloc 2 columns=32) address=%r0 columns=-1)",
    ],
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;": ["Emit(Allocates(relinquish 1))"],
}

WORKED_OUT: dict[str, list[str]] = {**WGMMA_STEPS, **MMA_STEPS, **MOVED, **FRAGMENTS, **SYNCHRONIZED}


def without_notes(lines: list[str]) -> list[str]:
    """Steps less the checks of wgmma registers, which have tests of their own (test_fragments)."""
    return [line for line in lines if not line.startswith("UndefinedIf") and "#" not in line]


@pytest.mark.parametrize("line", WORKED_OUT)
def test_steps(line: str) -> None:
    assert without_notes(shown(ops(blocks(line)))) == WORKED_OUT[line]


def issue(test: LitmusTest) -> IssueAsync:
    (found,) = [op for op in ops(test) if isinstance(op, IssueAsync)]
    return found


def test_an_accumulator_has_the_shape_of_the_instruction_descriptor() -> None:
    """N is in bits 17 to 22; the bits of this one are the selector of sparse elements, sparsity, negation of A."""
    line = "mov.b32 %i, {}; tcgen05.mma.cta_group::1.kind::f16 [acc], %rd0, %rd1, {}, %p;"
    known = issue(blocks(line.format(16 >> 3 << 17 | 1 << 13 | 7, "%i")))
    assert known.label.form == "kind::f16"
    assert shown([known])[-1].count(f"Accumulator(&acc - shape={2 << 17 | 4})") == 1
    other = issue(blocks(line.format(7, "%j")))
    assert shown([other])[-1].count("Accumulator(&acc - shape=and.u32(%j, 528359348))") == 1


@pytest.mark.parametrize(
    ("set_up", "predicate", "reads"),
    [
        ("mov.pred %p, 0;", "%p", False),
        ("mov.pred %p, 1;", "%p", True),
        ("mov.pred %p, 1;", "!%p", False),
        ("setp.eq.u32 %p, %r0, 1;", "%p", True),
        ("", "%p", False),
        ("", "!%p", True),
        ("elect.sync %r1|%p, -1;", "%p", True),
        ("elect.sync _|%p, -1;", "%p", True),
        ("mov.pred %p, 0; elect.sync _|%p, -1;", "%p", True),
    ],
)
def test_an_mma_reads_its_accumulator_unless_it_is_known_not_to(set_up: str, predicate: str, reads: bool) -> None:
    found = issue(blocks(f"{set_up} tcgen05.mma.cta_group::1.kind::f16 [acc], %rd0, %rd1, %r2, {predicate};"))
    assert sum("AsyncRead(" in line and "Accumulator(&acc" in line for line in shown([found])) == reads
    (write,) = [part for part in found.parts if isinstance(part, AsyncWrite)]
    assert (write.adds_to is not None) is reads


def test_alloc_hands_out_tensor_variables_in_order() -> None:
    alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32;"
    found = shown(ops(blocks(alloc + alloc)))
    assert [line.split("address=")[1] for line in found[::2]] == ["&acc columns=4)", "&sf columns=2)"]
    with pytest.raises(InputError, match=r"no .tensor variable is left for this tcgen05.alloc"):
        ops(blocks(alloc * 3))


def test_a_commit_is_about_its_own_cta_group() -> None:
    for group in (1, 2):
        (signal,) = issue(blocks(f"tcgen05.commit.cta_group::{group}.{COMMIT}.b64 [bar];")).parts
        assert isinstance(signal, SignalPart) and signal.tracks is not None and signal.bytes is None
        (mma,) = [
            part
            for part in issue(blocks(f"{MMA}::{group}.kind::f16 [acc], %rd0, %rd1, %r2, %p;")).parts[-1:]
            if isinstance(part, AsyncWrite)
        ]
        assert mma.tracks == {signal.tracks}


def test_the_result_of_a_wgmma_is_a_matrix_product() -> None:
    """With the sums of the matrices in its temporaries, each register gets D + A * B."""
    after = {"$a": 3, "$b": 5, "f0": 100, "f1": 2**32 - 1}
    for op in ops(blocks(f"{WGMMA}.m64n8k16.f16.f16.f16 {{%f0, %f1}}, %rd0, %rd1, 1, 1, 1, 0, 0;")):
        if isinstance(op, Assign):
            after[op.register] = value(op.value, after)
    assert (after["f0"], after["f1"]) == (115, 14)


def test_a_tensor_variable_is_addressed_by_column() -> None:
    assert warnings(blocks("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [acc+3];")) == []
    (warning,) = warnings(blocks("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [acc+3];"))
    assert "is outside every object: the thread stops here" in warning
