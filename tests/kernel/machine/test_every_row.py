"""Every row that both doors have: an instruction of a litmus test does what the same instruction of a module does.

Each sample is compared in each spelling that differs in one word. `%t1` is register 1 of the width of the type, `%s1`
of that of the source, `%w1` one that is twice as wide if the instruction is .wide, `%v` as many as the vector has.
`@` is a variable in the state space that is named, and `%a24` an address: a generic one if none is named.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from helpers.examples import share
from helpers.kernel.one_table import Comparison, compare, readable, spellings

from memmodel.errors import InputError
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.rows.row import Together
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.rows.types import numeric_type
from memmodel.isa.table import HEADS
from memmodel.litmus.syntax import Layout

LETTERS = {1: "p", 8: "r", 16: "h", 32: "r", 64: "rd", 128: "q"}
VARIABLES = {"shared": "tile", "const": "fixed"}

SET = (
    "mov.u16 %h1, 4660; mov.u16 %h2, 3; mov.u16 %h3, 65535; mov.u32 %r1, 2147483653; mov.u32 %r2, 3; mov.u32 %r3, 7; "
    "mov.u64 %rd1, 9223372036854775817; mov.u64 %rd2, 4; mov.u64 %rd3, 17; mov.b128 %q1, {%rd1, %rd2}; "
    "mov.b128 %q2, {%rd2, %rd1}; setp.eq.u32 %p1, %r2, 3; setp.eq.u32 %p2, %r2, 4; setp.eq.u32 %p3, %r3, 7; "
)
SET += "st.shared.v2.b64 [tile+16], {0, 0}; "
"""Registers by number, and bytes of shared memory."""

PLACES = (
    "mov.u64 %rd20, src; mov.u32 %r22, tile; mov.u32 %r23, bar; mapa.shared::cluster.u32 %r24, tile, 1; "
    "mapa.shared::cluster.u32 %r25, bar, 1; mov.u64 %rd22, tile; mov.u64 %rd23, bar; cvta.shared.u64 %rd22, %rd22; "
    "cvta.shared.u64 %rd23, %rd23; mapa.u64 %rd24, %rd22, 1; mapa.u64 %rd25, %rd23, 1; "
)
"""20: the source. 22, 23: the tile and the mbarrier object of the own CTA; 24, 25: of another one, %r.. in the window
of shared memory and %rd.. as generic addresses.
"""

ROWS = (
    "mov.u32 %r30, %laneid; shl.b32 %r30, %r30, 4; add.u32 %r22, %r22, %r30; "
    "cvt.u64.u32 %rd30, %r30; add.u64 %rd22, %rd22, %rd30; "
)
"""In a module each lane names a row of a matrix, which follow one another in a litmus test."""

LOAD, STORE = (
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes",
    "cp.async.bulk.global.shared::cta.bulk_group",
)
TO_CLUSTER = LOAD.replace("shared::cta", "shared::cluster")
BOX = "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes"
REMOTE = "shared::cluster.mbarrier::complete_tx::bytes"
REPLACE = "tensormap.replace.tile"
REPORTED = "shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric"

EXCHANGE = "what lanes of one warp tell one another is beyond a litmus test"
TENSOR = "tensor memory has columns and no lanes in a litmus test, where it is a variable"
MATRIX = "a matrix is the bytes behind an address in a litmus test"
LOOKS_AHEAD = "in a kernel a test that no loop repeats looks ahead, and orders nothing"
POINTS_TO = "what a multimem address points to is declared in a litmus test, and said by the launch of a kernel"
BOUND = "which memory a logical endpoint is bound to is declared in a litmus test, and no launch of a kernel says it"
STOPS = "an execution that stops is beyond a litmus test"

NOT_COMPARED = {
    "activemask": EXCHANGE,
    "brkpt": STOPS,
    "createpolicy.range.fabric": BOUND,
    "discard": "what memory holds afterwards is beyond a litmus test",
    "elect.sync": EXCHANGE,
    "fabric.try_atom": BOUND,
    "fabric.try_get": BOUND,
    "fabric.try_pullred": BOUND,
    "fabric.try_put": BOUND,
    "fabric.try_red": BOUND,
    "match.all.sync": EXCHANGE,
    "match.any.sync": EXCHANGE,
    "mbarrier.test_wait": LOOKS_AHEAD,
    "mbarrier.try_wait": LOOKS_AHEAD,
    "multimem.ld_reduce": POINTS_TO,
    "multimem.red": POINTS_TO,
    "multimem.red.async": POINTS_TO,
    "multimem.st": POINTS_TO,
    "multimem.st.async": POINTS_TO,
    "redux.sync": EXCHANGE,
    "shfl.sync": EXCHANGE,
    "tcgen05.alloc": TENSOR,
    "tcgen05.cp": TENSOR,
    "tcgen05.dealloc": TENSOR,
    "tcgen05.ld": TENSOR,
    "tcgen05.ld.red": TENSOR,
    "tcgen05.mma": TENSOR,
    "tcgen05.mma.sp": TENSOR,
    "tcgen05.mma.ws": TENSOR,
    "tcgen05.mma.ws.sp": TENSOR,
    "tcgen05.relinquish_alloc_permit": TENSOR,
    "tcgen05.shift": TENSOR,
    "tcgen05.st": TENSOR,
    "trap": STOPS,
    "vote.sync": EXCHANGE,
    "wgmma.mma_async": MATRIX,
    "wgmma.mma_async.sp": MATRIX,
}
"""The rows whose samples cannot be compared, and why."""

ADDRESSES = "the addresses of each side are its own"
COMBINED = "the execution decides what the threads of a barrier combine"
RESPONSE = "a response has bits of its own in a litmus test"

OTHER_NUMBERS = {
    "bar.cta.red": COMBINED,
    "bar.red": COMBINED,
    "barrier.red": COMBINED,
    "clusterlaunchcontrol.query_cancel.get_first_ctaid": RESPONSE,
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::x": RESPONSE,
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::y": RESPONSE,
    "cvta": ADDRESSES,
    "mapa": ADDRESSES,
    "mbarrier.arrive": "the state of an object is a number that each side chooses",
    "mov": ADDRESSES,
}
"""The rows whose results are other numbers on both sides, and why."""

SAMPLES = f"""
ld.weak.global.u32 %v, [@+32];
ld.relaxed.gpu.global.u32 %v, [@+32];
ld.mmio.relaxed.sys.global.u32 %t0, [@+32];
ld.global.nc.L1::no_allocate.L2::128B.u32 %t0, [@+32];
ld.proxy::readonly.global.u32 %t0, [@+32];
ld.proxy::readonly.u32 %t0, [%rd20+4];
ld.global.L2::cache_hint.u32 %t0, [@+32], %rd3;
ld.global.L2::evict_first.v8.u32 %v, [@+32];
ld.u32 %t0, [%rd20+4];
ldu.global.v2.u32 %v, [@+32];
st.weak.global.u32 [@+32], %v;
st.release.sys.global.u32 [@+32], %v;
st.mmio.relaxed.sys.global.u32 [@+32], %t1;
st.global.L2::cache_hint.u32 [@+32], %t1, %rd3;
st.bulk.weak.shared::cta [tile+8], 64, 0;
st.bulk.shared::cta [%a22], 64, 0;
atom.relaxed.gpu.global.add.u32 %t0, [@+16], %t1;
atom.global.exch.b32 _, [@+16], %t1;
atom.acq_rel.cluster.global.cas.b32 %t0, [@+16], %t1, %t2;
atom.global.add.L2::cache_hint.u32 %t0, [@+16], %t1, %rd3;
red.relaxed.gpu.global.add.u32 [@+16], %t1;
fence.acq_rel.gpu;
fence.acquire.sync_restrict::shared::cluster.cluster;
membar.cta;
fence.proxy.alias;
fence.proxy.alias.release.sys;
membar.proxy.alias;
fence.proxy.async.global;
membar.proxy.async;
fence.proxy.tensormap::generic.release.gpu;
fence.proxy.tensormap::generic.acquire.gpu [made], 128;
fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
fence.proxy.generic::fabric.alias.release.sys;
fence.proxy.fabric::generic.alias.acquire.sys;
fence.proxy.fabric::fabric.alias.acquire.sys;
fence.mbarrier_init.release.cluster;
bar.sync 1, 32;
bar.sync 1;
bar.cta.sync 1, 32;
bar.arrive 1, 64;
bar.cta.arrive 1, 64;
bar.red.popc.u32 %t0, 1, 32, %p1;
bar.red.and.pred %t0, 1, %p1;
bar.cta.red.popc.u32 %t0, 1, %p1;
barrier.sync.aligned 1, 32;
barrier.cta.sync %r2;
barrier.arrive 1, 64;
barrier.cta.arrive.aligned 1, 64;
barrier.red.or.pred %t0, 1, %p1;
barrier.cta.red.popc.aligned.u32 %t0, 1, !%p1;
bar.warp.sync 1;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire;
mbarrier.init.shared::cta.b64 [bar], 2;
mbarrier.inval.shared::cta.b64 [bar];
mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [bar], 32;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 32;
mbarrier.arrive.release.cta.shared::cta.b64 %rd0, [bar];
mbarrier.arrive.shared::cluster.b64 _, [%a25], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 %rd0, [bar], 16;
mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [bar], 3;
mbarrier.arrive.shared::cluster.multicast::cluster::32b.b64 _, [%a25], 1, %r2;
mbarrier.arrive_drop.expect_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%a23], 16, 3;
mbarrier.expect_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 [%a23], 32, %r2;
mbarrier.complete_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 [%a25], 32, 1;
mbarrier.arrive_drop.release.cta.shared::cta.b64 _, [bar];
mbarrier.arrive_drop.expect_tx.relaxed.cta.shared::cta.b64 _, [bar], 16;
mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p0, [bar], 1;
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [bar], 1, 100;
mbarrier.pending_count.b64 %r0, %rd2;
mbarrier.check_layout.layout::v0.shared::cta.b64 %p0, [bar];
cp.async.ca.shared::cta.global [tile], [src], 16;
cp.async.ca.shared.global.L2::128B [tile+16], [src], 16, %r2;
cp.async.ca.shared.global [tile+16], [src], 16, %p1;
cp.async.cg.shared.global.L2::cache_hint [tile], [src], 16, 8, %rd3;
cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
{LOAD} [tile], [src], 64, [bar];
{LOAD}.L2::cache_hint [tile], [src], 64, [bar], %rd3;
{LOAD}.mbarrier::report::disabled [tile], [src], 64, [bar];
{LOAD}.ignore_oob [tile], [src], 64, 4, %r2, [bar];
{TO_CLUSTER} [%a24], [src], 64, [%a25];
{TO_CLUSTER}.multicast::cluster [tile], [src+64], 32, [bar], 3;
{TO_CLUSTER.replace("global", "shared::cta")} [%a24], [other], 64, [%a25];
{STORE} [dst], [tile], 64;
{STORE.replace("bulk.", "bulk.relaxed.gpu.")}.b128 [dst], [tile], 64;
{STORE}.cp_mask [dst], [tile], 64, 255;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [dst+16], [tile], 32;
cp.reduce.async.bulk.relaxed.cta.global.shared::cta.bulk_group.min.s32 [dst+16], [tile], 32;
cp.reduce.async.bulk.{TO_CLUSTER.removeprefix("cp.async.bulk.").replace("global", "shared::cta")}.min.u32 [%a24], [tile], 32, [%a25];
cp.async.bulk.prefetch.L2.global [src], 32;
cp.async.bulk.prefetch.L2.global.L2::evict_last [src], 32;
{BOX} [tile], [map, {{4}}], [bar];
{BOX.replace("1d", "2d").replace("cta.g", "cluster.g")}.multicast::cluster.cta_group::2 [tile], [flat, {{2, 0}}], [bar], 3;
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [map, {{8}}], [tile];
cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [flat, {{4, 2}}], [tile];
cp.async.bulk.prefetch.tensor.2d.L2.global.tile [flat, {{0, 0}}];
applypriority.async.bulk.tensor.2d.global.bulk_group.tile.L2::evict_normal [flat, {{0, 0}}];
{REPLACE}.global_address.global.b1024.b64 [made], %rd3;
{REPLACE}.rank.global.b1024.b32 [made], %r2;
{REPLACE}.box_dim.global.b1024.b32 [made], 1, %r2;
{REPLACE}.fill_mode.global.b1024.b32 [made], 0;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [made], [held], 128;
cp.async.commit_group;
cp.async.bulk.commit_group;
cp.async.wait_group 1;
cp.async.bulk.wait_group.read 0;
fabric.try_get.async.{REPORTED}.relaxed.sys.b128 [tile], [%r1, %rd2], 16, [bar];
fabric.try_put.async.{REPORTED.replace("bytes", "16B")}.relaxed.sys.b128 [%r1, %rd2], [tile], 16, [bar];
fabric.try_red.async.{REPORTED.replace("bytes", "16B")}.relaxed.sys.add.u32 [%r1, %rd2], [tile], 16, [bar];
fabric.try_pullred.async.multimem.{REPORTED}.relaxed.sys.add.u32.sync [tile], [%r1, %rd2], 16, [bar], 0xffffffff;
fabric.try_atom.async.{REPORTED.replace("bytes", "16B")}.relaxed.sys.cas.b128 [%r1, %rd2], [tile], [tile], [bar];
fabric.submit;
fabric.submit.op_restrict::fetching;
fabric.wait.sync_restrict::reads;
cp.async.wait_all;
st.async.{REMOTE}.u32 [%a24], %v, [%a25];
st.async.weak.{REMOTE}.v2.b32 [%a24+8], %v, [%a25];
st.async.{REMOTE}.b32 [%a24], %v, [%a23];
st.async.release.sys.global.u32 [dst], %t1;
st.async.mmio.release.sys.u32 [%rd20], %t1;
red.async.relaxed.cluster.{REMOTE}.min.u32 [%a24], %t1, [%a25];
red.async.relaxed.cluster.{REMOTE}.add.u32 [%r22], %t1, [%a23];
red.async.release.gpu.global.add.u32 [dst], %t1;
ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {{%r1, %r2}}, [%a22];
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%a22], {{%r1}};
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%r0, %r1, %r2, %r3}}, %rd1, %rd2, %p1, 1, 1, 0, 0;
wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {{%r0, %r1, %r2, %r3}}, %rd1, %rd2, %r8, 1, %p1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;
tcgen05.mma.sp.cta_group::1.kind::i8 [%r1], %rd1, %rd2, [%r3], %r2, %p1;
tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;
tcgen05.mma.ws.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p1;
tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1], %rd1;
tcgen05.shift.cta_group::1.down [%r1];
tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%r0, %r1}}, [%r2];
tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {{%r0, %r1}}, %r2, [%r3];
tcgen05.st.sync.aligned.16x64b.x1.b32 [%r2], {{%r0}};
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%a22], 32;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], 3;
tcgen05.wait::ld.sync.aligned;
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
tcgen05.fence::after_thread_sync;
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [bar];
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%a22], [%a23];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %q1;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r0, _, _, _}}, %q1;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r0, %q1;
clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r0, %q1;
clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r0, %q1;
griddepcontrol.launch_dependents;
griddepcontrol.wait;
multimem.ld_reduce.acquire.sys.global.add.u32 %t0, [both];
multimem.st.weak.global.b32 [both], %t1;
multimem.red.release.gpu.global.max.u32 [both], %t1;
multimem.st.async.release.gpu.global.u32 [both], %t1;
multimem.red.async.release.gpu.global.add.u32 [both], %t1;
mapa.shared::cluster.u32 %t0, tile, 1;
getctarank.shared::cluster.u32 %r0, %a24;
isspacep.shared::cta %p0, %rd20;
cvta.to.global.u64 %rd0, %rd20;
cvta.global.u64 %rd0, %rd20;
vote.sync.ballot.b32 %t0, !%p1, 1;
redux.sync.add.u32 %t0, %t1, 1;
match.any.sync.b32 %r0, %t1, 1;
match.all.sync.b32 %r0|%p0, %t1, 1;
shfl.sync.idx.b32 %r0|%p0, %r1, 0, 31, 1;
elect.sync _|%p0, 1;
activemask.b32 %r0;
prefetch.global.L2::evict_last [@];
prefetchu.L1 [%rd20];
applypriority.global.L2::evict_normal [src], 128;
applypriority.async.bulk.global.bulk_group.L2::evict_normal [src], 64;
discard.global.L2 [made], 128;
createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd0, [src], 128, %r2;
createpolicy.fractional.L2::evict_first.b64 %rd0, 1.0;
createpolicy.range.fabric.L2::evict_last.b64 %rd0, [%r1, %rd2], 128, %r2;
createpolicy.cvt.L2.b64 %rd0, %rd1;
add.u32 %t0, %t1, %t2;
add.sat.s32 %t0, %t1, %t1;
sub.s32 %t0, %t1, %t2;
sub.sat.s32 %t0, %t1, %t3;
min.u32 %t0, %t1, %t2;
max.s32 %t0, %t1, %t2;
div.u32 %t0, %t1, %t2;
rem.s32 %t0, %t1, %t2;
mul.lo.u32 %w0, %t1, %t3;
mad.lo.s32 %w0, %t1, %t2, %w3;
mad.hi.sat.s32 %t0, %t1, %t2, %t1;
mul24.lo.s32 %r0, %r1, %r3;
mad24.hi.u32 %r0, %r1, %r2, 3;
clmad.hi.u64 %rd0, %rd1, %rd3, 1;
abs.s32 %t0, %t1;
neg.s32 %t0, %t1;
and.b32 %t0, %t1, %t3;
or.b32 %t0, %t1, %t2;
xor.b32 %t0, %t1, %t2;
not.b32 %t0, %t1;
cnot.b32 %t0, %t1;
sad.s32 %t0, %t1, %t2, %t3;
popc.b32 %r0, %t1;
clz.b32 %r0, %t1;
bfind.shiftamt.u32 %r0, %t1;
brev.b32 %t0, %t1;
bfe.s32 %t0, %t1, 2, 8;
bfi.b32 %t0, %t1, %t2, 4, 8;
fns.b32 %r0, %r1, 0, 2;
szext.clamp.s32 %r0, %r1, 8;
bmsk.wrap.b32 %r0, %r2, 8;
dp4a.u32.s32 %r0, %r1, %r2, %r3;
dp2a.lo.s32.u32 %r0, %r1, %r2, %r3;
lop3.b32 %r0, %r1, %r2, %r3, 0x96;
lop3.and.b32 %r0|%p0, %r1, %r2, %r3, 0x80, %p1;
prmt.b32 %r0, %r1, %r2, 21520;
prmt.b32.f4e %r0, %r1, %r2, %r3;
shf.l.wrap.b32 %r0, %r1, %r2, 8;
shf.r.clamp.b32 %r0, %r1, %r2, 40;
shl.b32 %t0, %t1, %r2;
shr.s32 %t0, %t1, 2;
selp.b32 %t0, %t1, %t2, %p1;
mov.b32 %t0, %t1;
mov.u32 %t0, %cluster_ctarank;
mov.u64 %t0, src;
setp.lt.s32 %p0, %t1, %t2;
setp.lt.and.s32 %p0|%p4, %t1, %t2, !%p2;
set.lt.u32.s32 %r0, %s1, %s2;
set.ge.or.u32.s32 %r0, %s1, %s2, %p2;
slct.b32.s32 %t0, %t1, %t2, %r1;
cvt.u32.s32 %t0, %s1;
cvt.sat.u8.s32 %t0, %s1;
cvt.pack.sat.s16.s32 %r0, %r1, %r2;
cvt.pack.sat.s8.s32.b32 %r0, %r1, %r2, %r3;
add.cc.u32 %t0, %t1, %t2;
addc.u32 %t0, %t1, %t2;
addc.cc.u32 %t0, %t1, %t2;
sub.cc.u32 %t0, %t2, %t1;
subc.s32 %t0, %t1, %t2;
subc.cc.s32 %t0, %t1, %t2;
mad.lo.cc.u32 %t0, %t1, %t2, %t3;
mad.hi.cc.u32 %t0, %t1, %t2, %t3;
madc.hi.u32 %t0, %t1, %t2, %t3;
bra.uni L0; L0:
ret;
exit;
nanosleep.u32 100;
trap;
brkpt;
pmevent 7;
setmaxnreg.dec.sync.aligned.u32 40;
""".splitlines()[1:]


def spelling_of(line: str) -> Spelling:
    spelling = read_mnemonic(line.split()[0].rstrip(";"), Layout.BLOCKS, HEADS)
    assert isinstance(spelling, Spelling), line
    return spelling


def fitted(line: str) -> str:
    """The line with registers as wide as its words say."""
    words = spelling_of(line).words

    def width(slot: str) -> int:
        type = numeric_type(words.get(slot, ""))
        return 32 if type is None else type.width

    def register(match: re.Match[str]) -> str:
        if match[1] == "a":
            return f"%{'r' if 'space' in words or 'dst' in words else 'rd'}{match[2]}"
        wide = width("source" if match[1] == "s" else "type") << (match[1] == "w" and words.get("mode") == "wide")
        return f"%{LETTERS[wide]}{match[2]}"

    count = int(words.get("vec", "v1")[1:])
    vector = [f"%t{number}" for number in range(1, count + 1)]
    text = line.replace("%v", vector[0] if count == 1 else f"{{{', '.join(vector)}}}")
    variable = VARIABLES.get(words.get("space", "").partition("::")[0], "src")
    return re.sub(r"%([tswa])(\d+)", register, text.replace("@", variable))


BEFORE = {"barrier.cluster.wait": "barrier.cluster.arrive.aligned;\n"}
"""What a thread has to do before an instruction, so that it is defined."""


def compared(head: str, how: Comparison) -> int:
    """How many spellings of the samples of a row are compared. Raises AssertionError where the doors differ."""
    lines = {fitted(line) for sample in SAMPLES if spelling_of(sample).head == head for line in spellings(sample)}
    before = SET + PLACES + BEFORE.get(head, "")
    return sum(readable(line, before) and compare(line, before, how) for line in sorted(lines))


def comparison(head: str) -> Comparison:
    together = HEADS[head].together
    threads = {Together.WARP: 32, Together.WARPGROUP: 128}.get(together, 1)
    return Comparison(threads, ROWS if head in ("ldmatrix", "stmatrix") else "", head not in OTHER_NUMBERS)


def same(head: str, how: Comparison) -> bool:
    """True if a row is compared, and both doors say the same of it."""
    try:
        return compared(head, how) > 0
    except (AssertionError, IndexError, InputError):
        return False


BOTH_DOORS = [head for head, row in HEADS.items() if not row.modules and not row.columns]


@pytest.mark.share(2)
@pytest.mark.parametrize("head", share((head for head in BOTH_DOORS if head not in NOT_COMPARED), 8))
def test_a_row_means_the_same_through_both_doors(head: str) -> None:
    assert compared(head, comparison(head)) > 0


@pytest.mark.share(2)
@pytest.mark.parametrize("head", NOT_COMPARED)
def test_what_is_not_compared_cannot_be(head: str) -> None:
    assert any(spelling_of(sample).head == head for sample in SAMPLES)
    assert not same(head, comparison(head)), "take it from the list"


@pytest.mark.parametrize("head", OTHER_NUMBERS)
def test_other_numbers_are_other_ones(head: str) -> None:
    assert not same(head, replace(comparison(head), results=True)), "take it from the list"
