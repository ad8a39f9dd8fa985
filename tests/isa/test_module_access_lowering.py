"""The steps of accesses that only compiled modules have, each worked out by hand from its page."""

from __future__ import annotations

import pytest

from isa.test_module_lowering import steps_of
from memmodel.base.labels import Access, Family, Issue, Side
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import Assign, AsyncRead, AsyncWrite, IssueAsync, Op, Read, UndefinedIf, Write
from memmodel.program.regions import Chunk, Elements
from memmodel.program.warp_ops import AccessReplicas, AccessTexture, WarpOp
from memmodel.ptx.vocabulary import DataType, Proxy, Scope, Sem, Window

U32, U64, F32 = DataType("u", 32), DataType("u", 64), DataType("f", 32)
READ, WRITE = Access(Side.READ), Access(Side.WRITE)
VOLATILE = Access(Side.READ, Sem.RELAXED, Scope.SYS, spelt="volatile")
FETCH, SURFACE_READ = Access(Side.READ, proxy=Proxy.TEXTURE), Access(Side.READ, proxy=Proxy.SURFACE)
SURFACE_WRITE = Access(Side.WRITE, proxy=Proxy.SURFACE)
OWN, AMOUNT = Apply("in shared", (AddressOf("s"),), U64), Get("6")


def loaded(window: Window, address: Expr = AMOUNT, label: Access = READ) -> list[Op | WarpOp]:
    return [Read(("0",), Elements(address, window, 4), label, U32)]


def stored(window: Window, address: Expr = AMOUNT) -> list[Op | WarpOp]:
    return [Write((Apply("cvt", (Get("0"),), U32),), Elements(address, window, 4), WRITE)]


def within(space: str) -> Apply:
    return Apply(f"in {space}", (AMOUNT,), U64)


def left_open(register: str, what: str, width: int = 64) -> list[Op | WarpOp]:
    return [Assign(register, Apply(f"opaque.{what}", (), DataType("b", width)))]


def updated(
    olds: tuple[str, ...], values: tuple[Expr, ...], size: int, window: Window, type: DataType | None = None
) -> list[Op | WarpOp]:
    """An atomic operation on elements of `size` bytes."""
    region = Elements(AMOUNT, window, size, len(olds))
    read, write = (Access(side, Sem.RELAXED, Scope.GPU, family=Family.ATOM, rmw=True) for side in Side)
    return [Read(olds, region, read, type), Write(values, region, write, rmw=True)]


def added(old: str, operand: Expr, width: int) -> Apply:
    return Apply("opaque.add", (Get(old), operand), DataType("b", width))


def as_float(slot: str) -> Apply:
    return Apply("cvt", (Get(slot),), F32)


PAIR = Apply("or", (Get("$0"), Apply("shl", (Get("$1"), Const(16)), U32)), U32)

ZEROS = Write(
    (Const(0),),
    Chunk(OWN, Window.SHARED_CTA, AMOUNT, align=8, multiple=8),
    WRITE,
    Apply("ne", (AMOUNT, Const(0)), DataType("s", 64)),
)
ODD = Apply("ne", (Apply("rem", (AMOUNT, Const(8)), U64), Const(0)), U64)

IN_GLOBAL = Elements(within("global"), Window.GLOBAL, 4)


def replicated(side: Side, scope: Scope, *, rmw: bool = False) -> Access:
    """An asynchronous access through a multimem address."""
    return Access(side, Sem.RELAXED, scope, family=Family.ST_ASYNC, rmw=rmw, asynchronous=True, spelt="multimem")


WORKED_OUT_IN_MODULES: dict[str, list[Op | WarpOp]] = {
    # A multimem address is one of global memory; all it points to is accessed alike.
    "multimem.ld_reduce.add.u32 %r0, [%d0];": [
        AccessReplicas((Access(Side.READ, spelt="multimem"),), Elements(AMOUNT, Window.GLOBAL, 4), ("0",))
    ],
    "multimem.ld_reduce.acquire.gpu.global.min.acc::f16.v2.e4m3x4 {%r0, %r1}, [%d0];": [
        AccessReplicas(
            (Access(Side.READ, Sem.ACQUIRE, Scope.GPU, spelt="multimem"),),
            Elements(within("global"), Window.GLOBAL, 4, 2),
            ("0", "1"),
        )
    ],
    "multimem.st.relaxed.sys.v4.f32 [%d0], {%r0, %r1, %r2, %r3};": [
        AccessReplicas(
            (Access(Side.WRITE, Sem.RELAXED, Scope.SYS, spelt="multimem"),), Elements(AMOUNT, Window.GLOBAL, 4, 4)
        )
    ],
    # "If the .scope qualifier is not specified for multimem.red then .sys scope is assumed by default."
    "multimem.red.add.f64 [%d0], %d1;": [
        AccessReplicas(
            tuple(
                Access(side, Sem.RELAXED, Scope.SYS, family=Family.RED, rmw=True, spelt="multimem")
                for side in (Side.READ, Side.WRITE)
            ),
            Elements(AMOUNT, Window.GLOBAL, 8),
        )
    ],
    "multimem.st.async.release.sys.global.u32 [%d0], %r0;": [
        IssueAsync(
            Issue(Family.ST_ASYNC, Sem.RELEASE, Scope.SYS),
            (AsyncWrite(replicated(Side.WRITE, Scope.SYS), IN_GLOBAL, (Apply("cvt", (Get("0"),), U32),)),),
        )
    ],
    "multimem.red.async.release.gpu.global.add.u32 [%d0], %r0;": [
        IssueAsync(
            Issue(Family.ST_ASYNC, Sem.RELEASE, Scope.GPU),
            (
                AsyncRead(replicated(Side.READ, Scope.GPU, rmw=True), IN_GLOBAL, ("$0",)),
                AsyncWrite(
                    replicated(Side.WRITE, Scope.GPU, rmw=True),
                    IN_GLOBAL,
                    (Apply("add", (Get("$0"), Apply("cvt", (Get("0"),), U32)), U32),),
                    rmw=True,
                ),
            ),
        )
    ],
    "ld.u32 %r0, [%d0];": loaded(Window.GENERIC),
    "ld.volatile.u32 %r0, [%d0];": loaded(Window.DATA_OR_LOCAL, label=VOLATILE),
    "ld.local.u32 %r0, [%d0];": loaded(Window.LOCAL, within("local")),
    "ld.param.u32 %r0, [%d0];": loaded(Window.ANY_PARAM, within("param")),
    "ld.param::entry.u32 %r0, [%d0];": loaded(Window.PARAM, within("param")),
    "ld.param::func.u32 %r0, [%d0];": loaded(Window.FUNCTION_PARAM, within("param")),
    "st.u32 [%d0], %r0;": stored(Window.DATA_OR_LOCAL),
    "st.local.u32 [%d0], %r0;": stored(Window.LOCAL, within("local")),
    "st.param.u32 [%d0], %r0;": stored(Window.FUNCTION_PARAM, within("param")),
    "st.param::func.u32 [%d0], %r0;": stored(Window.FUNCTION_PARAM, within("param")),
    "st.bulk.weak.shared::cta [s], %d0, 0;": [UndefinedIf("st.bulk writes a multiple of 8 bytes", ODD), ZEROS],
    "discard.L2 [%d0], 128;": [
        Write(
            (Apply("opaque.discard", (), DataType("b", 1024)),),
            Chunk(AMOUNT, Window.GLOBAL, Const(128), align=128),
            WRITE,
        )
    ],
    "createpolicy.fractional.L2::evict_last.b64 %d0, 0.5;": left_open("6", "createpolicy"),
    "createpolicy.cvt.L2.b64 %d0, %d0;": left_open("6", "createpolicy"),
    "atom.add.f32 %r0, [%d0], %r1;": [
        *updated(("$0",), (added("$0", as_float("1"), 32),), 4, Window.DATA, F32),
        Assign("0", as_float("$0")),
    ],
    # "the atomicity is guaranteed separately for each of the individual scalar elements"
    "atom.add.noftz.f16x2 %r0, [%d0], %r1;": [
        *updated(("$0", "$1"), tuple(added(old, Get("1"), 16) for old in ("$0", "$1")), 2, Window.DATA),
        Assign("0", PAIR),
    ],
    "atom.v2.f32.add {%r0, _}, [%d0], {%r1, %r2};": [
        *updated(
            ("$0", "$1"),
            (added("$0", as_float("1"), 32), added("$1", as_float("2"), 32)),
            4,
            Window.GLOBAL,
            F32,
        ),
        Assign("0", as_float("$0")),
    ],
    "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [s, {%r4}];": [AccessTexture(FETCH, ("0", "1", "2", "3"))],
    "tex.level.2d.v4.f32.f32 {%r0, _, _, _}|%r3, [s, {%r4, %r5}], %r5;": [AccessTexture(FETCH, ("0", "3"))],
    "tld4.r.2d.v4.s32.f32 {%r0, %r1, %r2, %r3}, [s, {%r4, %r5}];": [AccessTexture(FETCH, ("0", "1", "2", "3"))],
    "suld.b.2d.v2.b32.clamp {%r0, %r1}, [s, {%r4, %r5}];": [AccessTexture(SURFACE_READ, ("0", "1"))],
    "sust.b.1d.b32.trap [s, {%r4}], %r0;": [AccessTexture(SURFACE_WRITE)],
    "sust.p.1d.v2.b32.zero [s, {%r4}], {%r0, %r1};": [AccessTexture(SURFACE_WRITE)],
    "sured.b.add.2d.u32.trap [s, {%r4, %r5}], %r0;": [AccessTexture(SURFACE_WRITE)],
    "sured.p.min.1d.b32.trap [s, {%r4}], %r0;": [AccessTexture(SURFACE_WRITE)],
    "txq.width.b32 %r0, [s];": left_open("0", "txq"),
    "suq.memory_layout.b32 %r0, [s];": left_open("0", "suq"),
    "istypep.texref %r0, %d0;": left_open("0", "istypep"),
}


@pytest.mark.parametrize("line", WORKED_OUT_IN_MODULES)
def test_steps(line: str) -> None:
    assert list(steps_of(line)) == WORKED_OUT_IN_MODULES[line]
