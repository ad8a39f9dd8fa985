"""The main loop of a GEMM, TMA to tcgen05.mma through full and empty barriers, for any stages and iterations.

Out: litmus text, unrolled, as the tests litmus/async/pipelines/gemm-tcgen05-*.litmus spell it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

TMA = "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"


def main_loop(stages: int, iterations: int) -> str:
    """One producer, one thread that issues the matrix instructions, one that reads the result: the sum of all tiles."""
    used = range(min(stages, iterations))
    tiles = [value for k in range(iterations) for value in (k + 1, 0, 0, 0)]
    ones = [value for _ in range(iterations) for value in (1, 0, 0, 0)]
    return "\n".join(
        [
            f"PTX gemm-tcgen05-{stages}x{iterations}",
            f'"The main loop with {stages} stages and {iterations} iterations."',
            "Expect=ptx-9.4:never",
            _array("ga", tiles),
            _array("gb", ones),
            f".const .align 64 .b8 map_a[128] = tensormap(ga, {{4}}, {{{len(tiles)}}});",
            f".const .align 64 .b8 map_b[128] = tensormap(gb, {{4}}, {{{len(ones)}}});",
            *(f".shared .align 16 .u32 s{which}{s}[4] = {{0}};" for s in used for which in "ab"),
            *(f".shared .align 8 .b64 {kind}{s} = mbarrier(1);" for kind in ("full", "empty") for s in used),
            ".shared .align 8 .b64 done = mbarrier(1);",
            ".tensor .b32 acc = 0;",
            "thread TMA @ cta 0, gpu 0 {",
            *(line for k in range(iterations) for line in _load(k, *divmod(k, stages))),
            "}",
            "thread MMA @ cta 0, gpu 0 {",
            *(f"    mov.u64 %desc_s{which}{s}, s{which}{s};" for s in used for which in "ab"),
            "    mov.u32 %idesc, 0x8100010;",
            "    mov.pred %acc, 1;",
            "    mov.pred %clear, 0;",
            *(line for k in range(iterations) for line in _multiply(k, *divmod(k, stages), k + stages < iterations)),
            f"    {COMMIT} [done];",
            "}",
            "thread EPI @ cta 0, gpu 0 {",
            *_wait("WAIT", "done", 0),
            "    tcgen05.fence::after_thread_sync;",
            "    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [acc];",
            "    tcgen05.wait::ld.sync.aligned;",
            "}",
            f"~exists (EPI:r0 != {sum(tiles)})",
            "",
        ]
    )


def ring(stages: int, iterations: int) -> str:
    """A producer and a consumer around full and empty barriers: each value is read as it was written."""
    used = range(min(stages, iterations))
    writer, reader = [], []
    for k in range(iterations):
        turn, stage = divmod(k, stages)
        writer += _wait(f"W{k}", f"empty{stage}", 1 - turn % 2)
        writer.append(f"    st.weak.shared::cta.u32 [s{stage}], {k + 1};")
        writer.append(f"    mbarrier.arrive.shared::cta.b64 _, [full{stage}];")
        reader += _wait(f"W{k}", f"full{stage}", turn % 2)
        reader.append(f"    ld.weak.shared::cta.u32 %r{k}, [s{stage}];")
        reader.append(f"    mbarrier.arrive.shared::cta.b64 _, [empty{stage}];")
    other = r" \/ ".join(f"C:r{k} != {k + 1}" for k in range(iterations))
    return "\n".join(
        [
            f"PTX ring-{stages}x{iterations}",
            *(f".shared .u32 s{s} = 0;" for s in used),
            *(f".shared .align 8 .b64 {kind}{s} = mbarrier(1);" for kind in ("full", "empty") for s in used),
            *("thread P @ cta 0, gpu 0 {", *writer, "}"),
            *("thread C @ cta 0, gpu 0 {", *reader, "}"),
            f"~exists ({other})",
            "",
        ]
    )


def _array(name: str, values: list[int]) -> str:
    return f".global .align 16 .u32 {name}[{len(values)}] = {{{', '.join(map(str, values))}}};"


def _wait(label: str, barrier: str, parity: int) -> list[str]:
    wait = f"mbarrier.try_wait.parity.shared::cta.b64 %p, [{barrier}], {parity};"
    return [f"{label}:", f"    {wait}", f"    @!%p bra {label};"]


def _load(k: int, turn: int, stage: int) -> list[str]:
    return [
        *_wait(f"WAIT{k + 1}", f"empty{stage}", 1 - turn % 2),
        f"    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full{stage}], 32;",
        *(f"    {TMA} [s{which}{stage}], [map_{which}, {{{4 * k}}}], [full{stage}];" for which in "ab"),
    ]


def _multiply(k: int, turn: int, stage: int, released: bool) -> list[str]:
    """The matrix instruction of iteration k; its stage is released if it is filled again."""
    mma = "tcgen05.mma.cta_group::1.kind::f16 [acc],"
    return [
        *_wait(f"WAIT{k + 1}", f"full{stage}", turn % 2),
        "    tcgen05.fence::after_thread_sync;",
        f"    {mma} %desc_sa{stage}, %desc_sb{stage}, %idesc, %{'acc' if k else 'clear'};",
        *([f"    {COMMIT} [empty{stage}];"] if released else []),
    ]


PIPELINES: dict[str, Callable[[int], str]] = {
    f"gemm-{stages}-stage{'s' if stages > 1 else ''}": partial(main_loop, stages) for stages in (1, 2, 3)
}
"""Stages -> the main loop by its number of iterations."""
