"""Special registers: those whose value follows from where a thread is placed, and the others.

In: a register's name, the thread's place. Out: its value, or why it has none, or None for an ordinary register. A
litmus thread represents a warp and a test represents part of a grid, so registers that depend on lanes or on the size
of the grid have no value.
"""

from __future__ import annotations

from memmodel.program.addresses import AddressSpace
from memmodel.ptx.vocabulary import Place

_UNKNOWN = frozenset(
    [
        "tid",
        "ntid",
        "laneid",
        "nwarpid",
        "nctaid",
        "nclusterid",
        "gridid",
        "smid",
        "nsmid",
        *(f"pm{number}" for number in range(8)),
        *(f"pm{number}_64" for number in range(8)),
        "clock",
        "clock_hi",
        "clock64",
        "globaltimer",
        "globaltimer_lo",
        "globaltimer_hi",
        *(f"envreg{number}" for number in range(32)),
        *(f"reserved_smem_offset_{end}" for end in ("begin", "end", "cap", "0", "1")),
        "warpid",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
        "total_smem_size",
        "aggr_smem_size",
        "dynamic_smem_size",
        "current_graph_exec",
    ]
)
_PLACED = frozenset(
    [
        "ctaid",
        "clusterid",
        "cluster_ctaid",
        "cluster_nctaid",
        "cluster_ctarank",
        "cluster_nctarank",
        "is_explicit_cluster",
    ]
)

SPECIAL = _UNKNOWN | _PLACED
"""Special registers, by the name before the dot."""

_WRITE_IT = "a litmus thread's place is fixed: write the number"


def is_special(name: str) -> bool:
    """True for the name of a special register, or of a part of one (`ctaid.x`)."""
    return name.partition(".")[0] in SPECIAL


def special_register(name: str, place: Place, space: AddressSpace) -> int | str | None:
    """The value of a special register; a hint where it has none; None if this is an ordinary register."""
    base, _, axis = name.partition(".")
    if base not in SPECIAL:
        return None
    if base not in _PLACED:
        return _WRITE_IT
    size = space.cluster_size(place)
    if base == "is_explicit_cluster":
        return int(place.cluster is not None)
    if base in ("cluster_nctarank", "cluster_nctaid"):
        return size if axis in ("", "x") else 1
    if axis in ("y", "z"):
        return 0
    if base in ("cluster_ctarank", "cluster_ctaid"):
        return place.rank
    cluster = place.cta if place.cluster is None else place.cluster
    return cluster if base == "clusterid" else cluster * size + place.rank
