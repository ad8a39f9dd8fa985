"""The CTAs and warps of a launch, as the kernel starts.

In: a launch, the number of a CTA. Out: `Cta`, `Warp`. Settled here: special registers.
"""

from __future__ import annotations

from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.machine.parts import Cta, LaneGroup, Warp
from memmodel.kernel.machine.rows import LANES, UNKNOWN, Row, uniform
from memmodel.kernel.trace.indices import index_of, number_of
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.threads import TraceThread
from memmodel.program.windows import LOCAL_BITS, LOCAL_WINDOW, OWN_LOCAL
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.vocabulary import Place

REGISTERS = 65536
"""Registers of a multiprocessor."""


def start_cta(
    number: int, launch: Launch, entry: PtxFunction, memory: DeviceMemory, run: LaunchTrace, registers: int
) -> tuple[Cta, list[Warp]]:
    """The CTA of that number and its warps, whose threads are put into the trace. `registers`: of a thread."""
    grid, block, size = launch.grid, launch.block, launch.cluster
    index = index_of(number, grid)
    inside = tuple(i % c for i, c in zip(index, size, strict=True))
    cluster_index = tuple(i // c for i, c in zip(index, size, strict=True))
    clusters = tuple(g // c for g, c in zip(grid, size, strict=True))
    cluster = number_of(cluster_index, clusters)
    rank = number_of(inside, size)
    single = size == (1, 1, 1)
    threads = [
        TraceThread(
            len(run.threads) + n, number, n // LANES, n % LANES,
            Place(0, None if single else cluster, number if single else rank, n // LANES),
        )
        for n in range(launch.threads)
    ]  # fmt: skip
    run.threads += threads
    cta = Cta(number, cluster, rank, memory.shared(number, threads[0].place.cta_id), threads)
    common: dict[str, int] = {"%dynamic_smem_size": launch.dynamic_shared}
    for axis, letter in enumerate("xyz"):
        common |= {
            f"%ctaid.{letter}": index[axis], f"%nctaid.{letter}": grid[axis], f"%ntid.{letter}": block[axis],
            f"%cluster_ctaid.{letter}": inside[axis], f"%cluster_nctaid.{letter}": size[axis],
            f"%clusterid.{letter}": cluster_index[axis], f"%nclusterid.{letter}": clusters[axis],
        }  # fmt: skip
    common |= {"%cluster_ctarank": rank, "%cluster_nctarank": size[0] * size[1] * size[2]}
    common |= {"%is_explicit_cluster": int(not single)}
    warps = [
        _warp(launch, cta, first // LANES, threads[first : first + LANES], common)
        for first in range(0, len(threads), LANES)
    ]
    for warp in warps:
        warp.registers = [UNKNOWN] * registers
        warp.limit, warp.limit_known = _limit(launch, entry), "maxnreg" in entry.directives
    return cta, warps


def _warp(launch: Launch, cta: Cta, number: int, threads: list[TraceThread], common: dict[str, int]) -> Warp:
    """A warp with its special registers."""
    block = launch.block
    special: dict[str, Row] = {name: uniform(value) for name, value in common.items()}
    indices = [index_of(number * LANES + lane, block) for lane in range(LANES)]
    for axis, letter in enumerate("xyz"):
        special[f"%tid.{letter}"] = [index[axis] for index in indices]
    special["%laneid"] = list(range(LANES))
    special[OWN_LOCAL] = [LOCAL_WINDOW + (threads[0].number + lane << LOCAL_BITS) for lane in range(LANES)]
    special["%lanemask_eq"] = [1 << lane for lane in range(LANES)]
    special["%lanemask_lt"] = [(1 << lane) - 1 for lane in range(LANES)]
    special["%lanemask_le"] = [(2 << lane) - 1 for lane in range(LANES)]
    special["%lanemask_gt"] = [0xFFFFFFFF & ~((2 << lane) - 1) for lane in range(LANES)]
    special["%lanemask_ge"] = [0xFFFFFFFF & ~((1 << lane) - 1) for lane in range(LANES)]
    return Warp(cta, number, threads, [], special, [LaneGroup(0, list(range(len(threads))))])


def _limit(launch: Launch, entry: PtxFunction) -> int:
    """Registers of a thread when the kernel starts: what .maxnreg says, or as many as the threads can have."""
    directive = entry.directives.get("maxnreg")
    return directive[0] if directive else min(248, REGISTERS // max(LANES, launch.threads) // 8 * 8)
