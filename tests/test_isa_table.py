"""The table as a whole: every row is exercised, the page is current, targets follow the pages of the ISA."""

from __future__ import annotations

from pathlib import Path

import pytest
from isa_samples import BLOCK_SAMPLES, COLUMN_SAMPLES, blocks, columns, ops

from memmodel.isa import TABLE, minimum_target, read_instruction
from memmodel.isa.document import markdown
from memmodel.isa.table import HEADS
from memmodel.litmus.syntax import Instruction

PAGE = Path(__file__).parent.parent / "docs" / "instructions.md"


@pytest.mark.parametrize("line", BLOCK_SAMPLES)
def test_block_sample_lowers(line: str) -> None:
    assert ops(blocks(line)) or line.startswith(("nanosleep", "cp.async.bulk.prefetch"))


@pytest.mark.parametrize("cell", COLUMN_SAMPLES)
def test_column_sample_lowers(cell: str) -> None:
    assert ops(columns(cell))


def test_every_head_has_a_sample() -> None:
    tests = [*map(blocks, BLOCK_SAMPLES), *map(columns, COLUMN_SAMPLES)]
    seen = {
        read_instruction(item, test).head
        for test in tests
        for thread in test.threads
        for item in thread.body
        if isinstance(item, Instruction)
    }
    assert seen == set(HEADS)


def test_no_two_rows_share_a_head() -> None:
    assert len(HEADS) == sum(len(row.heads) for row in TABLE)


def test_slots_of_a_row_do_not_share_a_name_and_rules_name_slots() -> None:
    for row in TABLE:
        names = [slot.name for slot in row.slots]
        assert len(names) == len(set(names)), row.heads
        for rule in row.rules:
            assert {*rule.has, *rule.lacks} <= set(names), (row.heads, rule.message)
            for slot in row.slots:
                meant = rule.has.get(slot.name, ())
                assert not meant or set(meant) & set(slot.words), f"{row.heads}: '{rule.message}' can never be broken"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run python -m memmodel.isa.document > docs/instructions.md"


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("ld.u32 %r0, [x];", 70),  # the other thread's st.weak
        ("ld.relaxed.cluster.global.u32 %r0, [x];", 90),
        ("ld.shared::cluster.u64 %rd0, [s];", 90),
        ("fence.acq_rel.gpu;", 70),
        ("fence.acquire.gpu;", 90),
        ("ld.global.L2::256B.u32 %r0, [x];", 80),
        ("barrier.cluster.wait;", 90),
    ],
)
def test_minimum_target(line: str, target: int) -> None:
    assert minimum_target(blocks(line)) == target
