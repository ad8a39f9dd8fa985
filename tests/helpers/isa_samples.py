"""Small tests around one instruction, and its steps in short, for the tests of the instruction table."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from enum import Enum

from memmodel.isa.lower import lower_test
from memmodel.lint.warnings import legality_warnings
from memmodel.litmus.parse import parse_litmus
from memmodel.litmus.syntax import LitmusTest
from memmodel.program.arith import apply
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import IssueAsync, Op
from memmodel.ptx.vocabulary import DataType
from memmodel.source import Source

BLOCKS = """PTX sample
"one instruction"
.global .u32 x = 0;
.global .u32 a[4];
.global .s32 n = 0;
.shared .u64 s;
.shared .align 8 .b64 bar = mbarrier(2);
.global .align 16 .b32 src[8];
.tensor .b32 acc[4];
.const .align 64 .b8 map[128] = tensormap(src, {{4}}, {{8}});
.global .align 128 .b8 gmap[128] = tensormap(src, {{4, 2}}, {{4, 2}});
.shared .align 128 .b8 smap[128] = tensormap(src);
.shared .align 16 .b128 response;
.tensor .b32 sf[2];
.shared .align 16 .b32 tile[8];
.const .u32 k = 3;
.global .u32 twin = 0;
.global .u32 both = multimem(x, twin);
le @ fabric aliases src;
.global .align 16 .b32 copies[8];
.global .align 16 .b32 all = multimem(src, copies);
les @ fabric aliases all;
.shared .align 8 .b64 reporter;
thread P0 @ cta 0, cluster 0, gpu 0 {{
L0:
  {}
}}
thread P1 @ cta 1, cluster 0, gpu 0 {{
  st.weak.u32 [x], 0;
}}
exists (true)
"""

COLUMNS = """PTX sample
"one instruction"
{{
x=0; y=0;
s @ surface aliases x; t @ texture aliases x; c @ constant aliases x;
P0:r0=0; P0:r1=0; P0:r2=0;
}}
 P0@cta 0,gpu 0 ;
 LC00:          ;
 {} ;
exists (P0:r0 == 0)
"""


def blocks(line: str) -> LitmusTest:
    """A test in the block layout whose first thread is that line."""
    return parse_litmus(Source("t.litmus", BLOCKS.format(line)))


def columns(cell: str) -> LitmusTest:
    """A test in the column layout whose only thread is that cell."""
    return parse_litmus(Source("t.litmus", COLUMNS.format(cell)))


def read(text: str) -> LitmusTest:
    """A test from its text."""
    return parse_litmus(Source("t.litmus", text))


def ops(test: LitmusTest, thread: int = 0) -> list[Op]:
    """The steps of a thread."""
    return [step.op for step in lower_test(test).programs[thread].steps]


def warnings(test: LitmusTest) -> list[str]:
    """What the author of the test is told."""
    return legality_warnings(lower_test(test))


def shown(steps: list[Op]) -> list[str]:
    """Steps in short: their class and fields; a field that has its default is left out. Parts stand below an issue."""
    lines: list[str] = []
    for op in steps:
        if isinstance(op, IssueAsync):
            lines += [brief(op.label), *(f"+ {brief(part)}" for part in op.parts)]
        else:
            lines.append(brief(op))
    return lines


def brief(value: object) -> str:
    """Any part of a step in short."""
    match value:
        case None:
            return "-"
        case Const(number):
            return str(number)
        case Get(register):
            return f"%{register}"
        case AddressOf(name, offset, cta):
            return f"&{name}{f'+{offset}' if offset else ''}{'' if cta is None else f'@{cta}'}"
        case Apply(op, args, kind):
            return f"{op}.{kind}({', '.join(map(brief, args))})"
        case Enum():
            return value.name.lower()
        case tuple():
            return f"[{' '.join(map(brief, value))}]"
        case frozenset():
            return f"{{{' '.join(sorted(map(brief, value)))}}}"
        case DataType():
            return str(value)
    return f"{type(value).__name__}({' '.join(_fields(value))})" if is_dataclass(value) else str(value)


def _fields(value: object) -> list[str]:
    """Fields without a default stand bare, flags and words of closed lists too; the others have their name."""
    shown = []
    for field in fields(value):  # type: ignore[arg-type]
        content = getattr(value, field.name)
        if field.default is MISSING and field.default_factory is MISSING:
            shown.append(brief(content))
        elif content != (field.default if field.default_factory is MISSING else field.default_factory()):
            bare = content is True or isinstance(content, Enum)
            shown.append(
                (field.name if content is True else brief(content)) if bare else f"{field.name}={brief(content)}"
            )
    return shown


def value(expr: Expr, registers: dict[str, int], lowered: LoweredTest | None = None, thread: int = 0) -> int:
    """What an expression computes, with these numbers in registers; one with addresses needs the test and a thread."""
    match expr:
        case Const(number):
            return number
        case Get(register):
            return registers.get(register, 0)
        case AddressOf(name, offset, cta):
            assert lowered is not None
            found = lowered.space.address(name, offset, lowered.test.threads[thread].place, cta)
            assert found is not None
            return found
        case Apply(op, args, kind):
            return apply(op, tuple(value(arg, registers, lowered, thread) for arg in args), kind)


BLOCK_SAMPLES = """
ld.weak.global.u32 %r0, [x];
ld.relaxed.cluster.global.u32 %r0, [x];
ld.global.acquire.gpu.u32 %r0, [x];
ld.volatile.u32 %r0, [x];
ld.mmio.relaxed.sys.global.u32 %r0, [x];
ld.global.nc.L1::no_allocate.L2::128B.u32 %r0, [x];
ld.global.cg.u32 %r0, [x];
ld.global.L2::cache_hint.u32 %r0, [x], %rd9;
ld.v2.u32 {%r0, %r1}, [a+8];
ld.const.u32 %r0, [k];
ld.shared::cta.u64 %rd0, [s];
ld.u32 %r0, [%rd0+4];
st.release.sys.global.u32 [x], %r0;
st.v4.u32 [a], {%r0, %r1, %r2, %r3};
st.shared::cluster.u64 [s], 7;
atom.add.relaxed.gpu.global.u32 %r0, [x], %r1;
atom.acq_rel.cluster.global.cas.b32 %r0, [x], 0, 1;
atom.exch.b32 _, [x], 1;
atom.global.inc.u32 %r0, [x], 3;
red.release.gpu.global.add.u32 [x], 1;
fence.sc.gpu;
fence.cluster;
fence.acquire.cta;
membar.gl;
fence.proxy.alias;
membar.proxy.alias;
bar.sync 0;
bar.cta.sync 1, 64;
bar.arrive 1, 64;
bar.cta.arrive 1, %r0;
bar.red.popc.u32 %r0, 0, %p;
bar.cta.red.and.pred %p, 0, 64, !%q;
barrier.sync.aligned %r0;
barrier.cta.sync 0;
barrier.arrive 0, 32;
barrier.cta.arrive.aligned 0, 32;
barrier.red.or.pred %p, 0, %q;
barrier.cta.red.popc.aligned.u32 %r0, 0, %q;
bar.warp.sync 0xffffffff;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire;
add.u32 %r0, %r1, 1;
sub.s64 %rd0, %rd1, %rd2;
div.u32 %r0, %r1, %r2;
rem.s32 %r0, %r1, %r2;
min.u32 %r0, %r1, %r2;
max.s32 %r0, %r1, %r2;
mul.wide.u32 %rd0, %r1, 4;
mad.lo.u32 %r0, %r1, %r2, 3;
abs.s32 %r0, %r1;
neg.s32 %r0, %r1;
and.b32 %r0, %r1, 255;
or.pred %p, %p, %q;
xor.b64 %rd0, %rd1, %rd2;
not.b32 %r0, %r1;
shl.b32 %r0, %r1, 2;
cnot.b32 %r0, %r1;
sad.s32 %r0, %r1, %r2, 3;
popc.b64 %r0, %rd1;
clz.b32 %r0, %r1;
bfind.shiftamt.u32 %r0, %r1;
brev.b32 %r0, %r1;
bfe.s32 %r0, %r1, 4, 8;
bfi.b32 %r0, %r1, %r2, 4, 8;
lop3.b32 %r0, %r1, %r2, %r3, 0x96;
prmt.b32 %r0, %r1, %r2, 0x5410;
shf.l.wrap.b32 %r0, %r1, %r2, 8;
lop3.and.b32 %r0|%p, %r1, %r2, %r3, 0x80, %q;
prmt.b32.f4e %r0, %r1, %r2, %r3;
mul24.lo.s32 %r0, %r1, %r2;
mad24.hi.u32 %r0, %r1, %r2, 3;
clmad.hi.u64 %rd0, %rd1, %rd2, 1;
dp4a.u32.s32 %r0, %r1, %r2, 3;
dp2a.lo.s32.u32 %r0, %r1, %r2, 3;
fns.b32 %r0, %r1, 3, -1;
szext.clamp.s32 %r0, %r1, 8;
bmsk.wrap.b32 %r0, %r1, 8;
add.cc.u32 %r0, %r1, %r2;
addc.cc.u32 %r0, %r1, %r2;
sub.cc.u64 %rd0, %rd1, 1;
subc.s32 %r0, %r1, %r2;
mad.lo.cc.u32 %r0, %r1, %r2, 3;
madc.hi.u32 %r0, %r1, %r2, 3;
cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, 3;
shr.u32 %r0, %r1, 2;
setp.eq.u32 %p, %r0, 1;
setp.hs.and.u32 %p|%q, %r0, %r1, !%p1;
set.lt.or.u32.s32 %r0, %r1, 3, %p;
slct.b64.s32 %rd0, %rd1, 2, %r0;
add.sat.s32 %r0, %r1, 1;
sub.sat.s32 %r0, %r1, 1;
cvt.sat.u8.s32 %r0, %r1;
selp.b32 %r0, 1, 2, %p;
mov.u64 %rd0, x;
cvt.u64.s32 %rd0, %r1;
cvta.to.global.u64 %rd0, %rd1;
mbarrier.init.shared::cta.b64 [bar], 2;
mbarrier.inval.b64 [bar];
mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [bar], 32;
mbarrier.complete_tx.b64 [bar], 32;
mbarrier.arrive.release.cluster.shared::cta.b64 %rd0, [bar], 2;
mbarrier.arrive_drop.expect_tx.relaxed.cta.b64 _, [bar], 16;
mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [bar], 3;
mbarrier.expect_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 [bar], 32, %r1;
ld.proxy::readonly.global.u32 %r0, [x];
mbarrier.test_wait.phase_type::primary.b64 %p|%q, [bar], %rd0;
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p, [bar], 0, 100;
mbarrier.pending_count.b64 %r0, %rd0;
mbarrier.check_layout.layout::v1.shared::cta.b64 %p, [bar];
mbarrier.pending_count.layout::v0.b64 %r0, %rd0;
mbarrier.try_wait.parity.phase_type::primary.b64 %p|%q, %rd1, [bar], 0, 100;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [src], 32, [bar];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [src], 32, [bar], 1;
cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.L2::cache_hint.b128 [src], [tile], 16, %rd9;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [src], [tile], 32;
fabric.try_get.async.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric.relaxed.sys.b128 [tile], [le, 0], 32, [reporter];
fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.cp_mask.relaxed.sys.b128 [le, %rd0], [tile], 16, [reporter], 3;
fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.L2::cache_hint.relaxed.sys.b128 [le, 0], [tile], 16, [reporter], %rd9;
fabric.try_red.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.add.u32 [le, 16], [tile], 16, [reporter];
fabric.try_put.async.multimem.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.b128 [les, 0], [tile], 16, [reporter];
fabric.try_pullred.async.multimem.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric.relaxed.sys.add.u64.sync [tile], [les, 0], 16, [reporter], 0xffffffff;
fabric.try_atom.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.cas.b128 [le, 0], [response], [tile], [reporter];
fabric.submit;
fabric.submit.op_restrict::fetching;
fabric.wait.sync_restrict::reads;
fence.proxy.generic::fabric.alias.release.sys;
fence.proxy.fabric::generic.alias.acquire.sys;
fence.proxy.fabric::fabric.alias.acquire.sys;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
cp.async.commit_group;
cp.async.wait_group 1;
cp.async.wait_all;
fence.release.sync_restrict::shared::cta.cluster;
fence.proxy.async.shared::cta;
membar.proxy.async;
fence.proxy.tensormap::generic.release.gpu;
fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster;
fence.proxy.alias.release.sys;
fence.proxy.alias.acquire.sys;
fence.mbarrier_init.release.cluster;
cp.async.ca.shared::cta.global [tile], [src], 8;
cp.async.cg.shared.global.L2::128B [tile+16], [src], 16, %p;
cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [map, {4}], [bar];
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::1 [tile], [gmap, {0, %r1}], [bar], 1;
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [map, {%r0}], [tile];
cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [map, {0}], [tile];
cp.async.bulk.prefetch.L2.global [src], 32;
cp.async.bulk.prefetch.tensor.1d.L2.global.tile [map, {0}];
applypriority.async.bulk.tensor.1d.global.bulk_group.tile.L2::evict_normal [map, {0}];
cp.async.bulk.prefetch.L2.global.L2::evict_last [src], 32;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.mbarrier::report::disabled [tile], [src], 32, [bar];
tensormap.replace.tile.global_address.global.b1024.b64 [gmap], %rd0;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [smap], 0, 8;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [gmap], [smap], 128;
fence.proxy.tensormap::generic.acquire.gpu [gmap], 128;
st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%rd0], {%r0, %r1}, [%rd1];
st.async.release.sys.global.u32 [x], 1;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u32 [%rd0], %r0, [%rd1];
red.async.release.gpu.global.add.u32 [x], 1;
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [response], [bar];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %r0;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, _, _, _}, %r1;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r0, %r1;
clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r0, %r1;
clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r0, %r1;
mapa.shared::cluster.u32 %r0, s, 0;
getctarank.shared::cluster.u32 %r0, s;
elect.sync _|%p, 0xffffffff;
isspacep.shared::cta %p, %rd0;
ldu.global.v2.u32 {%r0, %r1}, [src];
discard.global.L2 [gmap], 128;
trap;
brkpt;
pmevent 7;
vote.sync.ballot.b32 %r0, !%p, 0xffffffff;
redux.sync.add.u32 %r0, %r1, 0xffffffff;
match.any.sync.b32 %r0, %r1, 0xff;
match.all.sync.b64 %r0|%p, %rd1, 0xff;
shfl.sync.idx.b32 %r0|%p, %r1, 0, 31, 0xffffffff;
activemask.b32 %r0;
tcgen05.mma.ws.cta_group::1.kind::f16.collector::b0::use [acc], %rd0, %rd1, %r2, %p, %rd2;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, %p, 1, 1, 0, 0;
wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, %r8, 1, %p, 1, 1, 0, 0;
wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {%r4, %r5, %r6, %r7}, {%r0, %r1, %r2, %r3}, %rd1, 1;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
tcgen05.mma.cta_group::1.kind::f16 [acc], %rd0, %rd1, %r2, %p;
tcgen05.mma.cta_group::2.kind::tf32.collector::a::fill [acc], [acc+1], %rd1, %r2, {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, !%p, 3;
tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 [acc], %rd0, %rd1, %r2, [sf], [sf+1], %p;
tcgen05.mma.sp.cta_group::1.kind::i8 [acc], %rd0, %rd1, [sf], %r2, %p;
tcgen05.mma.ws.cta_group::1.kind::f16 [acc], %rd0, %rd1, %r2, %p;
tcgen05.mma.ws.sp.cta_group::1.kind::f16 [acc], %rd0, %rd1, [sf], %r2, %p;
tcgen05.cp.cta_group::1.32x128b.warpx4 [sf], %rd0;
tcgen05.cp.cta_group::2.4x256b.b8x16.b6x16_p32 [sf], %rd0;
tcgen05.shift.cta_group::1.down [acc];
tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [acc];
tcgen05.ld.sync.aligned.16x32bx2.x1.pack::16b.b32 {%r0}, [acc], 16;
tcgen05.st.sync.aligned.16x64b.x1.b32 [acc+3], {%r0};
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], 1;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.sync_restrict::shared::read::mma::a.shared::cluster.b64 [bar];
tcgen05.wait::ld.sync.aligned;
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
tcgen05.fence::after_thread_sync;
bra.uni L0;
ret;
exit;
nanosleep.u32 100;
setmaxnreg.dec.sync.aligned.u32 40;
prefetch.global.L2::evict_last [x];
prefetch.const.tensormap [map];
prefetchu.L1 [%rd0];
applypriority.global.L2::evict_normal [x], 128;
applypriority.async.bulk.global.bulk_group.L2::evict_normal [x], 128;
createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd9, [x], 128, %r0;
createpolicy.fractional.L2::evict_first.b64 %rd9, 1.0;
createpolicy.range.fabric.L2::evict_last.L2::evict_first.b64 %rd9, [le, 0], 128, %r0;
createpolicy.cvt.L2.b64 %rd9, %rd0;
st.bulk.weak.shared::cta [tile], 32, 0;
atom.relaxed.cta.global.cas.b128 %q0, [src], %q1, %q2;
tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%r0, %r1}, %r2, [acc];
ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%r0, %r1}, [tile];
stmatrix.sync.aligned.m8n8.x1.b16 [%rd0+16], {%r0};
griddepcontrol.launch_dependents;
griddepcontrol.wait;
multimem.ld_reduce.acquire.sys.global.add.u32 %r0, [both];
multimem.st.weak.global.b32 [%rd0], %r0;
multimem.red.release.gpu.global.max.u32 [both], 1;
multimem.st.async.release.gpu.global.u32 [both], %r1;
multimem.red.async.release.sys.global.add.u32 [both], 1;
mov.f32 %f0, 1.0;
st.global.f64 [a], -2.5e-1;
""".splitlines()[1:]

COLUMN_SAMPLES = """
ld r0, 1
ld r0, r1
ld r0, x
ld.weak r0, x
st x, r0
st.release.gpu x, 1
atom.acq_rel.gpu.add r1, x, 1
atom.relaxed.gpu.cas r0, x, 0, 1
atom.acq_rel.sys.sub r1, x, 1
red.relaxed.gpu.add x, 1
sust.weak s, 2
suld.weak r0, s
tld.weak r0, t
cold.weak r0, c
fence.proxy.surface
fence.proxy.texture
fence.proxy.constant
bar.cta.sync 1
bar.cta.sync 1, r2
bar.cta.sync 1, 1, 2
bar.cta.arrive 1
add r2, r2, 1
goto LC00
beq r0, r1, LC00
bne r0, 1, LC00
blt r0, 1, LC00
ble r0, 1, LC00
bgt r0, 1, LC00
bge r0, 1, LC00
""".splitlines()[1:]
