"""Small kernels with clusters, tensor copies and matrix instructions, as text."""

from __future__ import annotations

from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.launch import parse_launch
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"


def text_of(body: str, before: str = "") -> str:
    """An entry `k(ptr, 128 bytes)`: %d0 the buffer, %d1 the tensor map, %r2 64 KB of shared memory, %r4 mbarriers."""
    return f"""{HEAD}{before}
.visible .entry k(.param .u64 k_param_0, .param .align 64 .b8 k_param_1[128])
{{
.reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .f32 %f<64>; .reg .b64 %d<32>; .reg .b128 %q<4>;
.shared .align 1024 .b8 s[65536];
.shared .align 16 .b8 bar[128];
.local .align 8 .b8 depot[32];
ld.param.u64 %d0, [k_param_0];
mov.b64 %d1, k_param_1;
cvta.param.u64 %d1, %d1;
mov.u32 %r0, %tid.x;
shl.b32 %r1, %r0, 2;
mov.u32 %r2, s;
add.s32 %r3, %r2, %r1;
mov.u32 %r4, bar;
mov.u32 %r5, %cluster_ctarank;
xor.b32 %r6, %r5, 1;
setp.eq.s32 %p0, %r0, 0;
setp.eq.s32 %p1, %r5, 0;
and.pred %p2, %p0, %p1;
{body}
ret;
}}
"""


def verdict_of(
    body: str, threads: int = 32, ctas: int = 1, cluster: int = 1, model: str = "ptx-9.4", before: str = ""
) -> KernelVerdict:
    """The verdict on such a kernel; the map describes a 64 x 64 matrix of 16-bit elements, in boxes of 64 x 16."""
    return judged(body, threads, ctas, cluster, model, before).verdict


def judged(
    body: str, threads: int = 32, ctas: int = 1, cluster: int = 1, model: str = "ptx-9.4", before: str = ""
) -> JudgedKernel:
    """As `verdict_of`, with what the verdict was made from."""
    read = parse_module(Source("k.ptx", text_of(body, before)))
    launch = parse_launch({
        "grid": [ctas, 1, 1], "block": [threads, 1, 1], "cluster": [cluster, 1, 1],
        "params": [
            {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536},
            {"name": "map", "type": "bytes", "hex": "00" * 128},
        ],
        "tensormaps": [
            {"param": "map", "address": "0x100000000", "element_bytes": 2, "dims": [64, 64], "strides_bytes": [128],
             "box": [64, 16], "swizzle": 128}
        ],
    })  # fmt: skip
    return judge_case(KernelCase(read, entry_of(read, "k"), launch, load_model(model), CheckOptions()))


def rules(verdict: KernelVerdict) -> set[str]:
    return {one.rule for one in verdict.findings}


def without(body: str, *lines: str) -> str:
    """The kernel without instructions that are there once."""
    for line in lines:
        assert body.count(line) == 1, (line, body.count(line))
        body = body.replace(line, "")
    return body


def wait(where: str, parity: int, words: str = "") -> str:
    """A polling loop."""
    test = f"mbarrier.try_wait.parity{words}.shared::cta.b64 done, [{where}], {parity};"
    return f"{{ .reg .pred done; AGAIN: {test} @!done bra AGAIN; }}\n"
