"""A warp-specialized GEMM with tensor maps in Triton, compiled for sm_90 (wgmma) and sm_100 (tcgen05) without a GPU.

`ptx()`: the two modules, and a broken copy of each.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), num_stages=3, warp_specialize=True):
        acc = tl.dot(a.load([row, k * BK]), b.load([column, k * BK]).T, acc)
    c.store([row, column], acc.to(tl.float16))


def ptx() -> dict[str, str]:
    """PTX by the name of its file."""
    signature = {name: "*fp16" for name in ("a_ptr", "b_ptr", "c_ptr")} | {name: "i32" for name in "MNK"}
    signature |= dict.fromkeys(("BM", "BN", "BK"), "constexpr")
    values = {(6,): 128, (7,): 64, (8,): 64}
    attrs = {(n,): [["tt.divisibility", 16]] for n in range(6)}
    found = {}
    for target in (90, 100):
        source = ASTSource(gemm, signature, values, attrs)
        made = triton.compile(source, target=GPUTarget("cuda", target, 32), options={"num_warps": 4})
        text = made.asm["ptx"]
        found[f"gemm_sm{target}"] = text
        found[f"gemm_sm{target}-broken"] = broken(text)
        print(f"sm_{target}: shared {made.metadata.shared}, scratch {made.metadata.global_scratch_size}")
    return found


def broken(text: str) -> str:
    """Without the last fence or wait of the epilogue: before the tile is copied out, or after tensor memory is read."""
    word = "tcgen05.wait::ld.sync.aligned;" if "tcgen05" in text else "fence.proxy.async.shared::cta;"
    before, found, after = text.rpartition(word)
    assert found
    return f"{before}// removed{after}"
