"""Random kernels in which threads, lanes, copies and CTAs of a cluster access the same bytes."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from helpers.kernel.samples import module
from memmodel.kernel.launch import Launch, parse_launch
from memmodel.ptx.module.syntax import PtxModule

SET_UP = """setp.lt.u32 %p1, %r0, 32;
setp.eq.u32 %p2, %r0, 33;
and.b32 %r20, %r0, 1;
setp.eq.u32 %p3, %r20, 0;
xor.b32 %r21, %r1, 4;
add.u32 %r21, %r21, %r2;
xor.b32 %r22, %r1, 128;
and.b32 %r22, %r22, 255;
add.u32 %r22, %r22, %r2;
shr.u32 %r23, %r0, 5;
shl.b32 %r23, %r23, 2;
add.u32 %r24, %r23, %r2;
mov.u32 %r25, %ctaid.x;
shl.b32 %r26, %r25, 2;
cvt.u64.u32 %d1, %r26;
add.u64 %d1, %d0, %d1;
cvt.u64.u32 %d2, %r1;
add.u64 %d2, %d0, %d2;
"""
"""%p0: thread 0, %p1: warp 0, %p2: one lane of warp 1, %p3: even lanes. Words of shared memory: %r3 the thread's own,
%r21 of the lane beside it, %r22 of another warp, %r24 of the warp. Of the buffer: %d1 of the CTA, %d2 of the thread."""

ASYNC_SET_UP = """shl.b32 %r27, %r23, 2;
add.u32 %r27, %r27, %r2;
shl.b32 %r28, %r25, 4;
cvt.u64.u32 %d3, %r28;
add.u64 %d3, %d0, %d3;
xor.b32 %r29, %r25, 1;
mapa.shared::cluster.u32 %r30, %r3, %r29;
mapa.shared::cluster.u32 %r31, %r2, %r29;
mapa.shared::cluster.u32 %r32, %r2, 0;
mapa.shared::cluster.u32 %r33, %r4, %r29;
mov.u32 %r34, %ntid.x;
@%p0 mbarrier.init.shared.b64 [%r4], %r34;
@%p0 mbarrier.init.shared.b64 [%r4+8], 1;
barrier.cluster.arrive;
barrier.cluster.wait;
"""
"""16 bytes of shared memory: %r27 of the warp, %r31 the first ones of the CTA beside, %r32 those of CTA 0; of the
buffer: %d3 of the CTA. %r30 is the thread's own word in the CTA beside, %r33 the mbarrier object there."""

LINES = {
    "st.shared.u32 [S], V;": 4,
    "ld.shared.u32 %r10, [S];": 4,
    "st.shared.u8 [S+2], %h0;": 1,
    "st.shared.u16 [S], %h0;": 1,
    "st.global.u32 [G], V;": 2,
    "ld.global.u32 %r11, [G];": 1,
    "red.relaxed.cta.shared.add.u32 [S], 1;": 1,
    "st.release.cta.shared.u32 [S], 1;": 1,
    "red.relaxed.gpu.global.add.u32 [G], 1;": 1,
    "cp.async.ca.shared.global [S], [G], 4;": 1,
}
"""Accesses, each as often as it is among them."""

ASYNC_LINES = {
    "st.shared.u32 [S], V;": 3,
    "ld.shared.u32 %r10, [S];": 2,
    "st.shared.v2.u32 [T], {V, 7};": 1,
    "st.global.v4.u32 [H], {V, V, 7, 7};": 1,
    "ld.global.v2.u32 {%r10, %r11}, [H];": 1,
    "st.shared::cluster.u32 [R], V;": 2,
    "ld.shared::cluster.u32 %r10, [R];": 1,
    "ld.relaxed.cluster.shared::cluster.u32 %r10, [R];": 1,
    "red.relaxed.cluster.shared::cluster.add.u32 [R], 1;": 1,
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [R], V, [%r33];": 1,
    "ld.shared.u32 %r10, [%r4];": 1,
    "st.shared.u32 [%r4+12], V;": 1,
    "cp.async.bulk.global.shared::cta.bulk_group [H], [T], 16;": 3,
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [T], [H], 16, [%r4];": 2,
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r31], [T], 16, [%r33];": 1,
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [H], [T], 16;": 1,
    "cp.async.ca.shared.global [S], [G], 4;": 1,
    "st.release.cta.shared.u32 [S], 1;": 1,
}
"""The same with copies and memory of other CTAs."""

TOGETHER = ("bar.sync 0;", "bar.sync 0;", "bar.warp.sync -1;", "fence.acq_rel.cta;", "cp.async.wait_all;")
ASYNC_TOGETHER = (
    "bar.sync 0;",
    "bar.sync 0;",
    "barrier.cluster.arrive;\nbarrier.cluster.wait;",
    "fence.proxy.async;",
    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;",
)
GUARDS = ("", "@%p0 ", "@!%p0 ", "@%p1 ", "@!%p1 ", "@%p2 ", "@%p3 ")
PLACES = {
    "S": ("%r3", "%r21", "%r22", "%r2", "%r24", "%r2+8"),
    "G": ("%d0", "%d1", "%d2", "%d0+4"),
    "V": ("%r0", "7", "%r23", "%r25"),
    "R": ("%r30", "%r31", "%r32", "%r31+4"),
    "T": ("%r2", "%r27", "%r2+16"),
    "H": ("%d0", "%d3", "%d0+16"),
}


class RandomKernel(NamedTuple):
    """A kernel in which a few accesses, by some of the threads, are ordered by something, or are not."""

    body: str
    threads: int
    ctas: int
    cluster: int

    @property
    def module(self) -> PtxModule:
        return module(self.body)

    @property
    def launch(self) -> Launch:
        param = {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536}
        return parse_launch({
            "grid": [self.ctas, 1, 1], "block": [self.threads, 1, 1], "cluster": [self.cluster, 1, 1],
            "params": [param],
        })  # fmt: skip


def random_kernel(seed: int, *, asynchronous: bool) -> RandomKernel:
    """The kernel of a seed. `asynchronous`: with copies, and with memory of other CTAs of a cluster."""
    random = Random(seed)
    lines, together = (ASYNC_LINES, ASYNC_TOGETHER) if asynchronous else (LINES, TOGETHER)
    body = []
    for _ in range(random.randint(3, 7)):
        if random.random() < 0.2:
            body.append(random.choice(together))
            continue
        line = random.choice(GUARDS) + random.choices(list(lines), list(lines.values()))[0]
        for name, places in PLACES.items():
            place = random.choice(places)
            line = line.replace(f"[{name}+2]", f"[{place}]" if "+" in place else f"[{place}+2]")
            for before, after in (("[", "]"), (" ", ";"), (" ", ","), ("{", ",")):
                line = line.replace(f"{before}{name}{after}", f"{before}{place}{after}")
        body.append(line)
    cluster = 2 if asynchronous else 1
    ctas = random.choice((1, 1, 2)) * cluster
    set_up = SET_UP + (ASYNC_SET_UP if asynchronous else "")
    return RandomKernel(
        set_up + "\n".join(body), random.choice((34, 34, 36) if asynchronous else (34, 36, 40)), ctas, cluster
    )
