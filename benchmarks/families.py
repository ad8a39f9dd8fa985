"""Families of tests that grow: message-passing chains, store-buffering rings, IRIW-like fans.

Out: litmus text for n threads. Every thread stands in a CTA of its own, so gpu scope is really used.
"""

from __future__ import annotations

from collections.abc import Callable


def _table(columns: list[list[str]], declarations: str, name: str, question: str) -> str:
    height = max(len(column) for column in columns)
    header = " | ".join(f"P{i}@cta {i},gpu 0" for i in range(len(columns))) + " ;"
    rows = [" | ".join(column[row] if row < len(column) else "" for column in columns) + " ;" for row in range(height)]
    return "\n".join([f"PTX {name}", "{", declarations, "}", header, *rows, question, ""])


def mp_chain(n: int) -> str:
    """P0 writes data and releases a flag; each thread acquires one flag and releases the next; the last reads."""
    columns = [["st.weak x, 1", "st.release.gpu f0, 1"]]
    for i in range(1, n - 1):
        columns.append([f"ld.acquire.gpu r0, f{i - 1}", f"st.release.gpu f{i}, 1"])
    columns.append([f"ld.acquire.gpu r0, f{n - 2}", "ld.weak r1, x"])
    flags = " ".join(f"f{i} = 0;" for i in range(n - 1))
    seen = r" /\ ".join(f"P{i}:r0 == 1" for i in range(1, n))
    return _table(columns, f"x = 0; {flags}", f"MP-chain-{n}", rf"exists ({seen} /\ P{n - 1}:r1 == 0)")


def sb_ring(n: int) -> str:
    """Each thread writes its location, fences, and reads its neighbour's."""
    columns = [[f"st.weak x{i}, 1", "fence.sc.gpu", f"ld.weak r0, x{(i + 1) % n}"] for i in range(n)]
    stale = r" /\ ".join(f"P{i}:r0 == 0" for i in range(n))
    return _table(columns, " ".join(f"x{i} = 0;" for i in range(n)), f"SB-ring-{n}", f"exists ({stale})")


def iriw_fan(n: int) -> str:
    """n writers, n readers: each reader reads two neighbouring locations with a fence between, in disagreement."""
    columns = [[f"st.relaxed.gpu x{i}, 1"] for i in range(n)]
    for i in range(n):
        columns.append([f"ld.relaxed.gpu r0, x{i}", "fence.sc.gpu", f"ld.relaxed.gpu r1, x{(i + 1) % n}"])
    seen = r" /\ ".join(rf"P{n + i}:r0 == 1 /\ P{n + i}:r1 == 0" for i in range(n))
    return _table(columns, " ".join(f"x{i} = 0;" for i in range(n)), f"IRIW-fan-{n}", f"exists ({seen})")


FAMILIES: dict[str, Callable[[int], str]] = {"mp-chain": mp_chain, "sb-ring": sb_ring, "iriw-fan": iriw_fan}
