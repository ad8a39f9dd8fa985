"""Small kernels in PTX, as text, and their launches."""

from __future__ import annotations

from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import Launch, parse_launch
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import PtxFunction, PtxModule
from memmodel.source import Source

HEAD = ".version 8.8\n.target sm_90\n.address_size 64\n"


def kernel_text(body: str, before: str = "") -> str:
    """An entry `k(ptr)` with registers of every kind and 1024 bytes of shared memory."""
    return f"""{HEAD}{before}
.visible .entry k(.param .u64 k_param_0)
{{
.reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .f32 %f<16>; .reg .b64 %d<32>;
.shared .align 16 .b8 s[1024];
.shared .align 8 .b8 bar[16];
ld.param.u64 %d0, [k_param_0];
mov.u32 %r0, %tid.x;
shl.b32 %r1, %r0, 2;
mov.u32 %r2, s;
add.s32 %r3, %r2, %r1;
mov.u32 %r4, bar;
setp.eq.s32 %p0, %r0, 0;
{body}
ret;
}}
"""


def module(body: str, before: str = "") -> PtxModule:
    """The kernel with this body, parsed."""
    return parse_module(Source("k.ptx", kernel_text(body, before)))


def launch(threads: int = 64, ctas: int = 1, init: str | None = None) -> Launch:
    """One dimension, and a buffer of 64 KB."""
    param = {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536}
    if init is not None:
        param["init"] = init
    return parse_launch({"grid": [ctas, 1, 1], "block": [threads, 1, 1], "params": [param]})


def entry(read: PtxModule) -> PtxFunction:
    return entry_of(read, "k")


def judged(
    body: str, threads: int = 64, ctas: int = 1, init: str | None = None, before: str = "", *, first: bool = False
) -> KernelVerdict:
    """The verdict on such a kernel. `first`: the first serious finding is enough."""
    read = module(body, before)
    return judge(
        read, entry(read), launch(threads, ctas, init), load_model("ptx-9.4"), CheckOptions(until_finding=first)
    )


NEIGHBOUR = """
st.shared.u32 [%r3], %r0;
{sync}
xor.b32 %r10, %r1, 128;
add.s32 %r11, %r2, %r10;
ld.shared.u32 %r12, [%r11];
"""
"""Every thread reads what one of another warp wrote."""

ROUNDS = """
xor.b32 %r10, %r1, 128;
add.s32 %r11, %r2, %r10;
mov.u32 %r6, 0;
ROUND:
st.shared.u32 [%r3], %r6;
bar.sync 0;
bar.warp.sync 0xffffffff;
ld.shared.u32 %r5, [%r11];
add.u32 %r6, %r6, 1;
setp.lt.u32 %p2, %r6, 3;
@%p2 bra ROUND;
"""
"""The load races with the store of the next round. The barrier orders it behind that of its own."""

COPY = """
@%p0 mbarrier.init.shared.b64 [%r4], 64;
{fence}
bar.sync 0;
mov.u32 %r20, 256;
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%d0], %r20, [%r4];
@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], %r20;
mbarrier.arrive.shared::cta.b64 %d5, [%r4];
WAIT:
mbarrier.try_wait.shared::cta.b64 %p5, [%r4], %d5;
@!%p5 bra WAIT;
ld.shared.u32 %r21, [%r3];
add.s32 %r21, %r21, 1;
st.shared.u32 [%r3], %r21;
{proxy}
{sync}
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], %r20;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group.read 0;
"""
"""A tile is loaded, changed and stored; the parts that order it are to be filled in."""

FENCE = "fence.proxy.async.shared::cta;"


def copy(fence: str = FENCE, proxy: str = FENCE, sync: str = "bar.sync 0;") -> str:
    return COPY.format(fence=fence, proxy=proxy, sync=sync)
