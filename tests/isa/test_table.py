"""The table as a whole: every row is exercised, the page is current, targets follow the pages of the ISA."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from string import Formatter

import pytest
from helpers.isa_samples import BLOCK_SAMPLES, COLUMN_SAMPLES, blocks, columns, ops
from helpers.places import ROOT

from memmodel.errors import InternalError
from memmodel.isa import table
from memmodel.isa.document import markdown
from memmodel.isa.lower import minimum_target, read_instruction
from memmodel.isa.module import spelling_of
from memmodel.isa.rows.cases import terms
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.table import HEADS, TABLE
from memmodel.litmus.syntax import Instruction

PAGE = ROOT / "docs" / "instructions.md"


NO_STEPS = (
    "applypriority",
    "cp.async.bulk.prefetch",
    "createpolicy",
    "griddepcontrol",  # the samples have one grid
    "nanosleep",
    "pmevent",
    "prefetch",
    "setmaxnreg",
)


@pytest.mark.parametrize("line", BLOCK_SAMPLES)
def test_block_sample_lowers(line: str) -> None:
    assert ops(blocks(line)) or line.startswith(NO_STEPS)


@pytest.mark.parametrize("cell", COLUMN_SAMPLES)
def test_column_sample_lowers(cell: str) -> None:
    assert ops(columns(cell))


def heads(lines: Iterable[str], cells: Iterable[str]) -> set[str]:
    """The heads of all instructions in tests of these lines and cells."""
    return {
        read_instruction(item, test).head
        for test in (*map(blocks, lines), *map(columns, cells))
        for item in test.threads[0].body
        if isinstance(item, Instruction)
    }


def test_the_steps_of_every_head_are_worked_out_by_hand() -> None:
    """Files of tests have them in `WORKED_OUT`, `WORKED_OUT_IN_COLUMNS` and `WORKED_OUT_IN_MODULES`: an instruction,
    and the steps expected.
    """
    paths = sorted((ROOT / "tests" / "isa").glob("test_*lowering.py"))
    files = [import_module(f"isa.{path.stem}") for path in paths]
    lines = {line for file in files for line in getattr(file, "WORKED_OUT", ())}
    cells = {cell for file in files for cell in getattr(file, "WORKED_OUT_IN_COLUMNS", ())}
    modules = {line.split()[0].rstrip(";") for file in files for line in getattr(file, "WORKED_OUT_IN_MODULES", ())}
    spellings = [spelling_of(opcode) for opcode in modules]
    in_modules = {spelling.head for spelling in spellings if isinstance(spelling, Spelling)}
    assert heads(lines, cells) == {head for head, row in HEADS.items() if not row.modules}
    for row in TABLE:
        assert not (row.modules or row.lower_module) or in_modules & set(row.heads), row.heads


def test_no_two_rows_share_a_head() -> None:
    assert len(HEADS) == sum(len(row.heads) for row in TABLE)


def test_slots_of_a_row_do_not_share_a_name_and_rules_name_slots() -> None:
    for row in TABLE:
        names = [slot.name for slot in row.slots]
        assert len(names) == len(set(names)), row.heads
        for rule in row.rules:
            assert {term.slot for term in terms(rule.case)} <= set(names), (row.heads, rule.message)
            for slot in row.slots:
                meant = [
                    term.matching_words(slot)
                    for term in terms(rule.case)
                    if term.slot == slot.name and not term.negated
                ]
                assert all(meant), f"{row.heads}: '{rule.message}' can never be broken"
            filled = {term.slot for term in terms(rule.case) if not term.negated}
            named = {field for text in (rule.message, rule.hint) for _, field, _, _ in Formatter().parse(text) if field}
            assert named <= {"head", *filled}, f"{row.heads}: '{rule.message}' names a slot that may be empty"


def test_what_came_later_is_spelled_by_the_row() -> None:
    """Each case names words or heads that the row has, or operands."""
    for row in TABLE:
        slots = {slot.name: slot for slot in row.slots}
        operands = {name.strip("[]?") for form in (row, *row.forms) for name in form.operands}
        for term in (term for case in row.later for term in terms(case)):
            if term.slot == "head":
                assert set(term.words) <= set(row.heads), (row.heads, term)
            elif term.slot in slots:
                assert term.matching_words(slots[term.slot]), (row.heads, term)
            else:
                assert term.slot in operands, (row.heads, term)


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


def test_every_head_is_found_by_its_first_word():
    """Files of the table are loaded by the first word of a mnemonic."""
    for _, file, words in table._FILES:
        assert sorted({head.partition(".")[0] for row in table._rows(file) for head in row.heads}) == sorted(
            words.split()
        )
    assert all(HEADS[head] is HEADS.get(head) for head in HEADS) and "ld.nothing" not in HEADS


def test_a_row_whose_first_word_the_list_of_files_lacks_is_named(monkeypatch):
    monkeypatch.setattr(table, "_FILES", (("Addresses", "movement.spaces", "cvta"),))
    with pytest.raises(InternalError, match=r"isspacep is a row of .*, whose words lack"):
        table._rows.__wrapped__("movement.spaces")
