"""The minimum set of a kernel, put to independent runs: nothing is found without what can go, and something without
each other one. A share of the kernels of docs each day, all of them at night."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.minimum_sets import EXAMPLES, GALLERY, examined, holds, kernels

SMALL = [*(EXAMPLES / f"{name}.ptx" for name in ("dsmem", "st_async", "tma_pipeline")), *kernels([GALLERY])]
"""Kernels whose report takes seconds."""


@pytest.mark.share(10)
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_runs_of_their_own_agree(path: Path) -> None:
    row = examined(path, 300.0)
    assert holds(row), row


def test_a_claim_that_does_not_hold_is_seen() -> None:
    """A set that leaves something to be found, and a member without which nothing is."""
    row = examined(EXAMPLES / "dsmem.ptx", 300.0)
    assert holds(row) and row["members"]
    member = row["members"][0]
    assert not holds({**row, "new": member["new"]})
    assert not holds({**row, "members": [{**member, "new": [], "under readings": [], "open": []}]})
