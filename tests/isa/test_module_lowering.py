"""The steps of instructions that only compiled modules have, each worked out by hand from its page."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import verdict_of
from helpers.kernel.samples import judged

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Allocation,
    Barrier,
    Domain,
    Family,
    Half,
    Issue,
    Mbarrier,
    ProxyFence,
    Role,
    Side,
    Signal,
)
from memmodel.isa.module import lower_in_module
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import (
    Assign,
    AsyncRead,
    AtBarrier,
    Emit,
    Gather,
    IssueAsync,
    OnObject,
    Op,
    Scatter,
    SignalPart,
    Track,
    UndefinedIf,
    Update,
)
from memmodel.program.regions import (
    Box,
    BoxMode,
    BoxTile,
    Chunk,
    DescribedMatrix,
    Elements,
    LaneRows,
    MatrixLines,
    Object,
    TensorMapAt,
)  # fmt: skip
from memmodel.program.warp_ops import (
    AllocateColumns,
    CheckLayout,
    CollectorUse,
    CopyTogether,
    CopyToTensorMemory,
    Forget,
    FreeColumns,
    MoveMatrix,
    MoveTensorMemory,
    MultiplyInRegisters,
    MultiplyInTensorMemory,
    RelinquishPermit,
    ShiftTensorMemory,
    TensorElements,
    TransposeMatrix,
    WarpOp,
)  # fmt: skip
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.vocabulary import DataType, MbarrierLayout, Proxy, Scope, Sem, Window
from memmodel.source import Source

U32, U64 = DataType("u", 32), DataType("u", 64)
READ, WRITE = Access(Side.READ), Access(Side.WRITE)
FOUR = ("0", "1", "2", "3")


def gets(slots: str) -> tuple[Get, ...]:
    return tuple(map(Get, slots))


SPARSE = (*gets("01"), *gets("45"), *gets("0123"), Get("4"), Const(0))
"""Half of A, B, C, the metadata, and which threads of four have it."""


def steps_of(line: str) -> tuple[Op | WarpOp, ...]:
    """The steps of one instruction. %r0 is register 0, and so on; `s` is a variable in shared memory."""
    text = f""".version 9.3
.target sm_100a
.address_size 64
.visible .entry k()
{{
.reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<4>; .reg .b128 %q<2>;
.shared .align 1024 .b8 s[65536];
{{ mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0; mov.b32 %r5, 0; }}
{{ mov.b64 %d0, 0; mov.b64 %d1, 0; setp.eq.u32 %p0, %r0, 0; }}
{line}
}}
"""
    body = parse_module(Source("k.ptx", text)).functions["k"].body
    assert body is not None
    return lower_in_module(body[-1])


ASYNC_READ = Access(Side.READ, proxy=Proxy.ASYNC, family=Family.WGMMA, asynchronous=True)


def tensor(address: Get) -> Apply:
    return Apply("in tensor", (address,), U64)


def lane(register: str) -> Apply:
    return Apply("shr", (tensor(Get(register)), Const(16)), U32)


def of_shape(name: str, first: int, field: int, allowed: int) -> UndefinedIf:
    """`name`: what is said of the shape. `allowed`: a bit for each number that the field may hold."""
    number = Apply("and", (Apply("shr", (Get("1"), Const(first)), U32), Const(field)), U32)
    last = first + field.bit_length() - 1
    rule = f"{name} (bits {first} to {last} of the instruction descriptor)"
    return UndefinedIf(rule, u64("eq", u64("and", u64("shr", Const(allowed), number), Const(1)), Const(0)))


def in_lane_0(head: str) -> UndefinedIf:
    rule = f"the accumulator of {head} begins in lane 0, or in 16 where its layout uses half of the lanes"
    return UndefinedIf(rule, Apply("ne", (lane("0"), Const(0)), U32))


def shared(address: AddressOf | Get) -> Apply:
    return Apply("in shared", (address,), U64)


def in_global(register: str) -> Apply:
    return Apply("in global", (Get(register),), U64)


def bulk(side: Side, **more: object) -> Access:
    return Access(side, asynchronous=True, **{"proxy": Proxy.ASYNC, "family": Family.BULK, **more})  # type: ignore[arg-type]


def stride_checks(head: str, stride: Get | Const, length: int, unit: int) -> list[UndefinedIf]:
    """What finds a stride below the length of a line, or not a multiple of `unit` elements."""
    return [
        UndefinedIf(
            f"the stride of {head} is not below {length}, the length of a line",
            Apply("lt", (stride, Const(length)), DataType("s", 32)),
        ),
        UndefinedIf(
            f"the stride of {head} is a multiple of {unit}, so that lines are aligned",
            Apply("and", (stride, Const(unit - 1)), U32),
        ),
    ]


def copied(write: Scatter, size: int = 64) -> IssueAsync:
    """A copy from `s` that is tracked by groups."""
    read = Gather(bulk(Side.READ, role=Role.SOURCE), Chunk(OWN, Window.SHARED_CTA, Const(size)), BULK)
    return IssueAsync(Issue(Family.BULK), (read, write))


def reduced(scope: Scope, op: str, type: DataType, spelt: str | None = None) -> IssueAsync:
    """A reduction of 64 bytes from `s`."""
    source = bulk(Side.READ, family=Family.BULK_REDUCTION, role=Role.SOURCE)
    read, write = (
        bulk(side, family=Family.BULK_REDUCTION, sem=Sem.RELAXED, scope=scope, rmw=True, spelt=spelt)
        for side in (Side.READ, Side.WRITE)
    )
    target = Chunk(in_global("6"), Window.GLOBAL, Const(64), scalar=type.width // 8)
    parts = (
        Gather(source, Chunk(OWN, Window.SHARED_CTA, Const(64)), BULK),
        Update(read, write, target, 0, op, type, BULK),
    )
    return IssueAsync(Issue(Family.BULK_REDUCTION), parts)


def loaded(box: Box) -> IssueAsync:
    """A copy of a box to `s`, of whose end the object behind it is told."""
    described = bulk(Side.READ, proxy=Proxy.TENSORMAP, role=Role.DESCRIPTOR)
    barrier = Object(shared(AddressOf("s", 64)), Window.SHARED_CTA)
    return IssueAsync(
        Issue(Family.BULK),
        (
            AsyncRead(described, TensorMapAt(Get("6"), Window.MAPS), ("$map",), tracks=BULK),
            Gather(bulk(Side.READ, role=Role.SOURCE), box),
            Scatter(WRITTEN, BoxTile(OWN, Window.SHARED_CTA, MAP, box.mode), 1),
            SignalPart(Signal(Action.COMPLETE_TX, Scope.CLUSTER, Family.BULK), barrier, bytes_of=1, of=(0, 1, 2)),
        ),
    )


BULK, OWN, MAP = frozenset({Track.BULK}), shared(AddressOf("s")), Get("$map")
WRITTEN, EVERYWHERE = bulk(Side.WRITE), bulk(Side.WRITE, spelt="multimem")


def u64(op: str, *args: Expr) -> Apply:
    return Apply(op, args, U64)


WINDOW = 0x7F5A_0000_0000_0000
"""Where the window of shared memory begins; it has 4 GB, and each CTA of the cluster 16 MB of them."""

NEAR_WINDOW = u64("eq", u64("shr", u64("add", Get("0"), Const(WINDOW)), Const(32)), Const(WINDOW >> 32))
IN_WINDOW = u64("eq", u64("shr", Get("6"), Const(32)), Const(WINDOW >> 32))

WORKED_OUT_IN_MODULES: dict[str, list[Op | WarpOp]] = {
    "mapa.shared::cluster.u32 %r1, %r0, %r2;": [
        UndefinedIf("mapa takes an address in shared memory", u64("eq", NEAR_WINDOW, Const(0))),
        Assign("1", u64("or", u64("and", Get("0"), Const(0xFFFFFF)),
                        u64("shl", u64("add", Get("2"), Const(0)), Const(24)))),
    ],
    # Of a generic address the result is one, too.
    "mapa.u64 %d1, %d0, 1;": [
        UndefinedIf("mapa takes an address in shared memory", u64("eq", IN_WINDOW, Const(0))),
        Assign("7", u64("add", u64("or", u64("and", u64("sub", Get("6"), Const(WINDOW)), Const(0xFFFFFF)),
                                   u64("shl", u64("add", Const(1), Const(0)), Const(24))), Const(WINDOW))),
    ],
    "getctarank.shared::cluster.u32 %r1, s;": [
        Assign("1", u64("sub", u64("shr", u64("and", AddressOf("s"), Const(0xFFFFFFFF)), Const(24)), Const(0))),
    ],
    "cvta.to.shared::cta.u64 %d1, %d0;": [
        UndefinedIf(
            "cvta takes an address in .shared::cta memory",
            u64("eq", u64("eq", u64("shr", Get("6"), Const(24)),
                          u64("add", Get("%cluster_ctarank"), Const(WINDOW >> 24))), Const(0)),
        ),
        Assign("7", u64("sub", Get("6"), Const(WINDOW))),
    ],
    "cvta.const.u64 %d1, %d0;": [
        UndefinedIf(
            "cvta takes an address in .const memory",
            u64("eq", u64("eq", u64("shr", u64("add", Get("6"), Const(0x7E40 << 32)), Const(32)), Const(0x7E40)),
                Const(0)),
        ),
        Assign("7", u64("add", Get("6"), Const(0x7E40 << 32))),
    ],
    # The local memory of each thread begins elsewhere.
    "cvta.local.u64 %d1, %d0;": [
        UndefinedIf("cvta takes an address in .local memory", u64("ne", u64("shr", Get("6"), Const(26)), Const(0))),
        Assign("7", u64("add", Get("6"), Get("%own_local"))),
    ],
    # All lanes of the mask that have not exited meet; a thread counts for itself.
    "bar.warp.sync 0xffffffff;": [
        AtBarrier(Barrier(Half.ARRIVE, Domain.WARP), (Const(0xFFFFFFFF),), None),
        AtBarrier(Barrier(Half.WAIT, Domain.WARP), (Const(0xFFFFFFFF),), None),
    ],
    "mbarrier.try_wait.parity.shared::cta.b64 %p0, [s], 1;": [
        OnObject(
            Mbarrier(Action.TEST, Sem.ACQUIRE, Scope.CTA, unscoped=True),
            Object(shared(AddressOf("s")), Window.SHARED_CTA), register="8", parity=Const(1),
        )
    ],
    "mbarrier.check_layout.layout::v1.shared::cta.b64 %p0, [s];": [
        OnObject(
            Mbarrier(Action.EXPECT_TX, Sem.RELAXED, Scope.CTA, unscoped=True),
            Object(shared(AddressOf("s")), Window.SHARED_CTA), bytes=Const(0),
        ),
        CheckLayout("8", Object(shared(AddressOf("s")), Window.SHARED_CTA), MbarrierLayout.V1),
    ],
    # How many arrivals were pending depends on the schedule; bit 34 of a state says that .noComplete made it.
    "mbarrier.pending_count.b64 %r0, %d0;": [
        UndefinedIf(
            "mbarrier.pending_count takes the state of an arrive with .noComplete",
            Apply("eq", (Apply("and", (Get("6"), Const(1 << 34)), U64), Const(0)), U64),
        ),
        Forget(("0",)),
    ],
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [s];": [
        MoveMatrix(READ, LaneRows(shared(AddressOf("s")), Window.SHARED_CTA, 16, 16, 16), ("0", "1"), transposed=False)
    ],
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [s];": [
        MoveMatrix(READ, LaneRows(shared(AddressOf("s")), Window.SHARED_CTA, 16, 16, 16), ("0", "1"))
    ],
    "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r0}, [s];": [
        MoveMatrix(READ, LaneRows(shared(AddressOf("s")), Window.SHARED_CTA, 8, 16, 8), ("0",))
    ],
    "stmatrix.sync.aligned.m8n8.x4.shared.b16 [s], {%r0, %r1, %r2, %r3};": [
        MoveMatrix(
            WRITE, LaneRows(shared(AddressOf("s")), Window.SHARED_CTA, 32, 16, 16), values=tuple(map(Get, FOUR)),
            transposed=False,
        )
    ],
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r0, %r1, %r2, %r3};": [
        Forget(FOUR, gets("0123450123"))
    ],
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r4, %r5}, {%r0, %r1, %r2, %r3}, %r4, 0;": [Forget(FOUR, SPARSE)],
    "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r4, %r5}, {%r0, %r1, %r2, %r3}, %r4, 0;": [Forget(FOUR, SPARSE)],
    "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;": [TransposeMatrix("0", Get("1"))],
    "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};": [
        Forget(("0", "1"), gets("2301"))
    ],
    # A has m rows of k elements: stored by columns these are k lines of m elements.
    "wmma.load.a.sync.aligned.row.m8n32k16.shared.bf16 {%r0, %r1}, [s], %r4;": [
        *stride_checks("wmma.load.a", Get("4"), 16, 4),
        MoveMatrix(
            READ,
            MatrixLines(shared(AddressOf("s")), Window.SHARED_CTA, Get("4"), 8, 16, 16, 8, "a.row.m8n32k16.bf16"),
            ("0", "1"),
        ),
    ],
    "wmma.load.b.sync.aligned.row.m8n32k16.shared.u8 {%r0, %r1, %r2, %r3}, [s];": [
        MoveMatrix(
            READ, MatrixLines(shared(AddressOf("s")), Window.SHARED_CTA, None, 16, 32, 8, 16, "b.row.m8n32k16.u8"), FOUR
        )
    ],
    "wmma.load.c.sync.aligned.col.m8n8k32.global.s32 {%r0, %r1}, [%d0], 32;": [
        *stride_checks("wmma.load.c", Const(32), 8, 2),
        MoveMatrix(
            READ,
            MatrixLines(
                Apply("in global", (Get("6"),), U64), Window.GLOBAL, Const(32), 8, 8, 32, 8, "cd.col.m8n8k32.s32"
            ),
            ("0", "1"),
        ),
    ],
    "wmma.store.d.sync.aligned.row.m8n8k4.f64 [%d0], {%d0, %d1};": [
        MoveMatrix(WRITE, MatrixLines(Get("6"), Window.GENERIC, None, 8, 8, 64, 16, "cd.row.m8n8k4.f64")),
    ],
    "multimem.cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [s], 64, 15;": [
        copied(Scatter(EVERYWHERE, Chunk(in_global("6"), Window.GLOBAL, Const(64), mask=Const(15)), 0, BULK))
    ],
    "multimem.cp.reduce.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.add.noftz.bf16 [%d0], [s], 64;": [
        reduced(Scope.GPU, "add", DataType("f", 16), "multimem")
    ],
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d0], [s], 64;": [
        reduced(Scope.SYS, "add", DataType("f", 32))
    ],
    # A number of bytes that is wrong is undefined when the instruction is executed.
    "cp.async.bulk.global.shared::cta.bulk_group [%d0], [s], 24;": [
        UndefinedIf("cp.async.bulk copies a multiple of 16 bytes", Apply("and", (Const(24), Const(15)), U32)),
        copied(Scatter(WRITTEN, Chunk(in_global("6"), Window.GLOBAL, Const(24)), 0, BULK), 24),
    ],
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d0], [s], 128;": [
        CopyTogether(READ, WRITE, TensorMapAt(OWN, Window.SHARED_CTA), TensorMapAt(in_global("6"), Window.GLOBAL)),
        Emit(ProxyFence(Proxy.TENSORMAP, Sem.RELEASE, Scope.GPU)),
    ],
    "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
    "[s], [%d0, {%r0, %r1, %r2, %r3, 7}], [s+64];": [
        loaded(Box(MAP, (*map(Get, FOUR), Const(7)), reads=True, mode=BoxMode.ROWS))
    ],
    "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes "
    "[s], [%d0, {%r0, %r1, %r2}], [s+64], {%r3};": [
        loaded(Box(MAP, tuple(map(Get, FOUR[:3])), reads=True, mode=BoxMode.IMAGE, offsets=(Get("3"),)))
    ],
    # Both matrices in shared memory, 32 bytes along K; A is transposed, and N is 8.
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %d0, %d1, 1, 1, 1, 1, 0;": [
        MultiplyInRegisters(
            Issue(Family.WGMMA), ASYNC_READ,
            (DescribedMatrix(Get("6"), 64, 32, 16, True), DescribedMatrix(Get("7"), 8, 32, 16, False)),
            FOUR, (), "m64n8k16",
        )
    ],
    # A sparse: half of it is stored, and B is twice as deep. A in registers.
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 "
    "{%r0, %r1, %r2, %r3}, {%r4, %r5, %r4, %r5}, %d1, %r5, 0, 1, 1, 1, 1;": [
        MultiplyInRegisters(
            Issue(Family.WGMMA), ASYNC_READ, (DescribedMatrix(Get("7"), 8, 64, 16, True),),
            FOUR, ("4", "5", "4", "5"), "m64n8k32",
        )
    ],
    "tcgen05.mma.cta_group::2.kind::mxf4.block_scale.scale_vec::2X [%r0], %d0, %d1, %r1, [%r2], [%r3], %p0;": [
        # M is 128 or 256, N a multiple of 16 up to 256.
        of_shape("tcgen05.mma.kind::mxf4 of 2 CTAs has no such M", 27, 3, 0b110),
        of_shape("tcgen05.mma.kind::mxf4 of 2 CTAs has no such N", 17, 63, 0x155555554),
        in_lane_0("tcgen05.mma"),
        MultiplyInTensorMemory(
            group=2, form="kind::mxf4", elements=TensorElements(4, True, True), sparse=False, stationary=False,
            shape=Get("1"), accumulator=tensor(Get("0")), left=Get("6"), left_in_tensor=False, right=Get("7"),
            adds=Get("8"), scales=(tensor(Get("2")), tensor(Get("3"))), metadata=None, disabled=(),
            collector=CollectorUse("a", False, False, False),
        )
    ],
    "tcgen05.mma.ws.sp.cta_group::1.kind::f16.collector::b1::lastuse [%r0], [%r4], %d1, [%r2], %r1, %p0;": [
        # M is 32, 64 or 128, N 64 or 128.
        of_shape("tcgen05.mma.ws.sp.kind::f16 of 1 CTA has no such M", 24, 31, 0b100010100),
        of_shape("tcgen05.mma.ws.sp.kind::f16 of 1 CTA has no such N", 17, 63, 1 << 8 | 1 << 16),
        in_lane_0("tcgen05.mma.ws.sp"),
        UndefinedIf(
            "matrix A and accumulator of tcgen05.mma.ws.sp begin in the same lane",
            Apply("ne", (lane("4"), lane("0")), U32),
        ),
        UndefinedIf(
            "metadata and accumulator of tcgen05.mma.ws.sp begin in the same lane",
            Apply("ne", (lane("2"), lane("0")), U32),
        ),
        MultiplyInTensorMemory(
            group=1, form="kind::f16 ws sp", elements=TensorElements(16, False, False), sparse=True, stationary=True,
            shape=Get("1"), accumulator=tensor(Get("0")), left=tensor(Get("4")), left_in_tensor=True, right=Get("7"),
            adds=Get("8"), scales=(), metadata=tensor(Get("2")), disabled=(),
            collector=CollectorUse("b1", True, False, False),
        )
    ],
    "tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%r0], %d0;": [
        CopyToTensorMemory(1, "64x128b", Get("6"), tensor(Get("0")), 64, 128)
    ],
    "tcgen05.shift.cta_group::2.down [%r0];": [
        UndefinedIf(
            "the lane of the address of tcgen05.shift is a multiple of 32",
            Apply("and", (lane("0"), Const(31)), U32),
        ),
        ShiftTensorMemory(2, tensor(Get("0"))),
    ],
    # A register for each repetition, one column each; every lane its own row.
    "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [%r4];": [
        MoveTensorMemory(
            Family.TCGEN_LD, Side.READ, tensor(Get("4")), tuple(((lane, 0, 2),) for lane in range(32)), Track.TCGEN_LD,
            ("0", "1"),
        )
    ],
    "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%r0, %r1}, %r2, [%r4];": [
        MoveTensorMemory(
            Family.TCGEN_LD, Side.READ, tensor(Get("4")), tuple(((lane, 0, 2),) for lane in range(32)), Track.TCGEN_LD,
            ("0", "1", "2"),
        )
    ],
    # Two columns of 16 rows: lanes 0 and 2 share row 0, lanes 1 and 3 row 8, lanes 4 and 6 row 1.
    "tcgen05.st.sync.aligned.16x64b.x1.b32 [%r4], {%r0};": [
        MoveTensorMemory(
            Family.TCGEN_ST, Side.WRITE, tensor(Get("4")),
            tuple(((lane // 4 + 8 * (lane % 2), lane // 2 % 2, 1),) for lane in range(32)), Track.TCGEN_ST,
        )
    ],
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 64;": [
        AllocateColumns(
            Allocates(Allocation.ALLOC, 1), Const(64), Elements(shared(AddressOf("s")), Window.SHARED_CTA, 4), WRITE
        )
    ],
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 48;": [
        UndefinedIf("tcgen05.dealloc takes a power of two from 32 to 512 columns", Const(1)),
        FreeColumns(Allocates(Allocation.DEALLOC, 1), Get("0"), Const(48)),
    ],
    "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;": [
        RelinquishPermit(Allocates(Allocation.RELINQUISH, 2))
    ],
}  # fmt: skip


@pytest.mark.parametrize("line", WORKED_OUT_IN_MODULES)
def test_the_steps_are_those_worked_out(line: str) -> None:
    assert list(steps_of(line)) == WORKED_OUT_IN_MODULES[line]


CELLS = {
    "32x32b": [[(0, 0), (0, 1)], [(1, 0), (1, 1)], [(2, 0), (2, 1)], [(7, 0), (7, 1)], [(31, 0), (31, 1)]],
    "16x64b": [[(0, 0), (0, 2)], [(8, 0), (8, 2)], [(0, 1), (0, 3)], [(9, 1), (9, 3)], [(15, 1), (15, 3)]],
    "16x128b": [
        [(0, 0), (8, 0), (0, 4), (8, 4)],
        [(0, 1), (8, 1), (0, 5), (8, 5)],
        [(0, 2), (8, 2), (0, 6), (8, 6)],
        [(1, 3), (9, 3), (1, 7), (9, 7)],
        [(7, 3), (15, 3), (7, 7), (15, 7)],
    ],
    "16x256b": [
        [(0, 0), (0, 1), (8, 0), (8, 1), (0, 8), (0, 9), (8, 8), (8, 9)],
        [(0, 2), (0, 3), (8, 2), (8, 3), (0, 10), (0, 11), (8, 10), (8, 11)],
        [(0, 4), (0, 5), (8, 4), (8, 5), (0, 12), (0, 13), (8, 12), (8, 13)],
        [(1, 6), (1, 7), (9, 6), (9, 7), (1, 14), (1, 15), (9, 14), (9, 15)],
        [(7, 6), (7, 7), (15, 6), (15, 7), (7, 14), (7, 15), (15, 14), (15, 15)],
    ],
    "16x32bx2": [[(0, 0), (0, 1)], [(1, 0), (1, 1)], [(2, 0), (2, 1)], [(7, 0), (7, 1)], [(15, 20), (15, 21)]],
}
"""Rows and columns of the registers of .x2 in lanes 0, 1, 2, 7 and 31 ("Data Movement Shape"). The other half of
.16x32bx2 is 20 columns on."""


@pytest.mark.parametrize("shape", CELLS)
def test_a_lane_has_the_part_of_a_shape_that_the_figures_show(shape: str) -> None:
    registers = len(CELLS[shape][0])
    names = ", ".join(f"%r{n % 8}" for n in range(registers))
    for words, columns in (("", 1), (".pack::16b", 2)):  # packed, a register has two columns
        split = f", {20 * columns}" if shape == "16x32bx2" else ""
        (step,) = steps_of(f"tcgen05.ld.sync.aligned.{shape}.x2{words}.b32 {{{names}}}, [%r4]{split};")
        assert isinstance(step, MoveTensorMemory)
        lanes = [[(row, at + n) for row, at, count in part for n in range(count)] for part in step.pieces]
        parts = [[(row, at * columns + n) for row, at in part for n in range(columns)] for part in CELLS[shape]]
        assert [lanes[lane] for lane in (0, 1, 2, 7, 31)] == parts
        cells = {cell for part in lanes for cell in part}
        assert len(cells) == sum(map(len, lanes)) == 32 * registers * columns


PAIR, ONE = "{%r10, %r11}", "{%r12}"
FOUR_HALVES = "{%r20, %r21, %r22, %r23}"
OCTET = "{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}"
ACCUMULATORS = {
    "wmma.mma.sync.aligned.row.col.m8n8k32.{0}.s4.s4.{0}": (PAIR, ONE, "s32", "f32"),
    "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.{0}.b1.b1.{0}": (PAIR, ONE, "s32", "f32"),
    "wmma.mma.sync.aligned.row.col.m16n16k16.{0}.u8.u8.{0}": (OCTET, PAIR, "s32", "f16"),
    "wmma.mma.sync.aligned.row.col.m16n16k16.{0}.{0}": (OCTET, OCTET, "f32", "s32"),
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.{0}": (FOUR_HALVES, OCTET, "f16", "s32"),
    "mma.sync.aligned.m8n8k32.row.col.{0}.s4.s4.{0}": (PAIR, ONE, "s32", "f32"),
    "mma.sync.aligned.m16n8k8.row.col.{0}.tf32.tf32.{0}": ("{%f0, %f1, %f2, %f3}", FOUR_HALVES, "f32", "f16"),
}
"""Registers of C and D, of A and B, and a type that C and D may have and one that they may not: "For sub-byte
single-bit wmma, .ctype and .dtype must be specified as .s32", and the syntax of mma and wmma.mma."""


@pytest.mark.parametrize("opcode", ACCUMULATORS)
def test_types_of_accumulators(opcode: str) -> None:
    results, factors, good, bad = ACCUMULATORS[opcode]
    operands = f"{results}, {factors}, {PAIR if 'tf32' in opcode else factors}, {results};"
    assert not judged(f"{opcode.format(good)} {operands}", 32).open
    assert "accumulator" in judged(f"{opcode.format(bad)} {operands}", 32).open[0]


def test_bits_are_combined_by_an_operation() -> None:
    line = f"wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {PAIR}, {ONE}, {ONE}, {PAIR};"
    assert "names its operation" in judged(line, 32).open[0]


@pytest.mark.parametrize(("shape", "registers"), [("16x64b", 1), ("16x128b", 2), ("16x256b", 4), ("32x32b", 1)])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("head", ["tcgen05.ld", "tcgen05.st"])
def test_a_shape_has_as_many_registers_as_its_page_says(head: str, shape: str, registers: int, times: int) -> None:
    """The registers of .x1 in the table of "tcgen05.ld", and as many times more."""

    def refusal(count: int) -> str | None:
        names = "{" + ", ".join(f"%r{n}" for n in range(10, 10 + count)) + "}"
        operands = f"{names}, [%r2]" if head.endswith("ld") else f"[%r2], {names}"
        line = f"{head}.sync.aligned.{shape}.x{times}.b32 {operands};"
        return next(iter(verdict_of(line, ctas=1).open), None)

    count = registers * times
    assert "register" not in (refusal(count) or "")
    assert "register" in (refusal(count + 1) or "") and (count == 1 or "register" in (refusal(count - 1) or ""))


MMA_OPERANDS = {
    "f16": "[%r0], %d0, %d1, %r1, %p0;", "i8": "[%r0], %d0, %d1, %r1, %p0;",
    "mxf8f6f4.block_scale": "[%r0], %d0, %d1, %r1, [%r2], [%r3], %p0;",
}  # fmt: skip
HALVES = {("", 1): 64, (".sp", 1): 64, (".sp", 2): 128}
"""The rows of the layouts F and C, whose accumulators may begin in lane 16, too ("Data Path Layout Organization")."""


FORMS = [("", 1), ("", 2), (".sp", 1), (".sp", 2), (".ws", 1), (".ws.sp", 1)]


@pytest.mark.parametrize(
    ("kind", "words", "ctas"),
    [(kind, *form) for kind in MMA_OPERANDS for form in FORMS if "scale" not in kind or "ws" not in form[0]],
)
def test_the_lanes_in_which_an_accumulator_may_begin(kind: str, words: str, ctas: int) -> None:
    operands = MMA_OPERANDS[kind].replace("%d1, %r1", "%d1, [%r2], %r1" if "sp" in words else "%d1, %r1")
    head = f"tcgen05.mma{words}"
    found = next(
        op
        for op in steps_of(f"{head}.cta_group::{ctas}.kind::{kind} {operands}")
        if isinstance(op, UndefinedIf) and op.rule.startswith("the accumulator of")
    )
    rows = None if "scale" in kind else HALVES.get((words, ctas))
    if rows is None:
        assert found == in_lane_0(head)
        return
    number = Apply("and", (Apply("shr", (Get("1"), Const(24)), U32), Const(31)), U32)
    allowed = Apply("selp", (Const(16), Const(0), Apply("eq", (number, Const(rows // 16)), U32)), U32)
    other = Apply("ne", (lane("0"), Apply("and", (lane("0"), allowed), U32)), U32)
    assert found.when == other


@pytest.mark.parametrize(
    "line",
    [
        "selp.b32 %r0, %r1, %r2, {};",
        "vote.sync.any.pred %p1, {}, -1;",
        "tcgen05.mma.cta_group::1.kind::f16 [%r0], %d0, %d1, %r1, {};",
    ],
)
def test_a_predicate_of_a_module_may_be_a_number(line: str) -> None:
    """A predicate that an instruction reads may be 0 or 1."""
    known, number = (repr(steps_of(line.format(operand))) for operand in ("%p0", "1"))
    assert known.replace("Get(register='8')", "Const(value=1)") == number
