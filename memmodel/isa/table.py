"""The instruction table: every row, and the row that each head belongs to.

In: the rows of each family. Out: `TABLE` and `HEADS`. A further family is a further file, added here.
"""

from __future__ import annotations

from memmodel.isa.matrix import fragments, tcgen_mma, tcgen_move, tcgen_sync, wgmma
from memmodel.isa.movement import access, bulk, cluster, cpasync, fill, hints, multimem, stasync, tensor, tensormap
from memmodel.isa.row import Row
from memmodel.isa.scalar import compute, control
from memmodel.isa.synchronization import atomic, barrier, fence, fence_async, grids, groups, launch, mbarrier

FAMILIES: tuple[tuple[str, tuple[Row, ...]], ...] = (
    ("Loads and stores", (*access.ROWS, *fill.ROWS)),
    ("Atomics", atomic.ROWS),
    ("Memory of several devices", multimem.ROWS),
    ("Fences", fence.ROWS),
    ("Fences of the asynchronous half", fence_async.ROWS),
    ("Barriers", barrier.ROWS),
    ("mbarrier objects", mbarrier.ROWS),
    ("Copies without bulk", cpasync.ROWS),
    ("Bulk copies", bulk.ROWS),
    ("Tensor copies and tensor maps", (*tensor.ROWS, *tensormap.ROWS)),
    ("Groups of asynchronous operations", groups.ROWS),
    ("Asynchronous stores and reductions", stasync.ROWS),
    ("Matrices of a warp", fragments.ROWS),
    ("wgmma", wgmma.ROWS),
    ("tcgen05", (*tcgen_mma.ROWS, *tcgen_move.ROWS, *tcgen_sync.ROWS)),
    ("Cluster launch control", launch.ROWS),
    ("Grids that depend on one another", grids.ROWS),
    ("Addresses in a cluster, and election", cluster.ROWS),
    ("Hints to the caches", hints.ROWS),
    ("Arithmetic and moves", compute.ROWS),
    ("Control flow", control.ROWS),
)
"""Headings of docs/instructions.md and what stands under each."""

TABLE: tuple[Row, ...] = tuple(row for _, rows in FAMILIES for row in rows)

HEADS: dict[str, Row] = {head: row for row in TABLE for head in row.heads}
