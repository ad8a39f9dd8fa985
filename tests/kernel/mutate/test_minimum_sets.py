"""The minimum set of a kernel, put to independent runs: nothing is found without what can go, and something without
each other one. A share of the kernels of docs each day, all of them at night."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.kernel.samples import entry, module

from benchmarks.minimum_sets import EXAMPLES, GALLERY, blanked, examined, holds, kernels

pytestmark = pytest.mark.turns(2)

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


@pytest.mark.parametrize("guard", ["", "@!%p1 "])
def test_a_test_that_is_blanked_keeps_its_guard(guard: str) -> None:
    """CUTLASS tests a phase only where it has one to wait for."""
    read = module(f"{guard}mbarrier.test_wait.parity.shared.b64 %p2, [%r4], 0;")
    (test,) = (it for it in entry(read).body or () if it.kind == "test_wait")
    becomes = (entry(blanked(read, [test])).body or ())[test.number]
    assert (becomes.opcode, becomes.guard, becomes.negated) == ("mov.pred", test.guard, test.negated)
    assert becomes.line == test.line and becomes.operands[0] == test.operands[0]
