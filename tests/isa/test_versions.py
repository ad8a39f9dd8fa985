"""Every row says since which version of PTX and on which targets there is what it has, as ptxas does
(helpers/versions.py wrote the table).
"""

from __future__ import annotations

import pytest
from helpers.versions import NEWEST, OLDEST, TARGETS, Fact, asked, knows, table

from memmodel.emit import Assembler
from memmodel.errors import InputError
from memmodel.isa.module import spelling_of
from memmodel.isa.row import Row, Spelling
from memmodel.isa.table import TABLE
from memmodel.ptx.targets import Target, version_of

FACTS = table()

FEWER_TARGETS = {
    "cp.async.bulk": "its page gives .weak, .relaxed, .scope and .type to sm_90a and the families of sm_100 and sm_110",
    "multimem.cp.async.bulk": "as cp.async.bulk",
}
"""Heads whose pages name fewer targets than ptxas accepts, and for what. The table follows the page."""

LATER = {
    "cp.async.bulk.prefetch": "the notes on PTX 9.4 have its eviction priority",
    "cp.async.bulk.prefetch.tensor": "the notes on PTX 9.4 have its eviction priority",
    "addc": "its page gives .u64 and .s64 to PTX 4.3",
    "madc": "its page gives .u64 and .s64 to PTX 4.3",
    "subc": "its page gives .u64 and .s64 to PTX 4.3",
}
"""Heads whose pages name a later version than ptxas asks for, and for what. The table follows the page."""


def operands(line: str) -> int:
    """How many operands an instruction has: what stands between commas outside of brackets."""
    depth, count = 0, 0
    text = line.partition(" ")[2].rstrip(";").strip()
    for character in text:
        depth += (character in "[{(") - (character in ")}]")
        count += character == "," and depth == 0
    return count + bool(text)


def spelling(line: str) -> Spelling:
    read = spelling_of(line.split()[0].rstrip(";"))
    assert isinstance(read, Spelling), line
    return read


def told(line: str) -> Fact:
    """What the table of instructions says of a line, as ptxas would."""
    needs = spelling(line).needs(operands(line)).values()
    version = max([OLDEST, *(since.version for since in needs)], key=version_of)
    return Fact(version, frozenset(str(target) for target in TARGETS if all(since.has(target) for since in needs)))


@pytest.mark.parametrize("row", [row for row in TABLE if not row.columns], ids=lambda row: row.heads[0])
def test_a_row_states_versions_and_targets(row: Row) -> None:
    for case, since in {"": row.since, **row.later}.items():
        assert version_of(since.version) <= version_of(NEWEST), case
        assert any(since.has(target) for target in (*TARGETS, Target(62))), case


@pytest.mark.parametrize("row", [row for row in TABLE if not row.columns], ids=lambda row: row.heads[0])
def test_a_row_says_what_ptxas_says(row: Row) -> None:
    lines = [line for line in FACTS if spelling(line).row is row]
    assert {spelling(line).head for line in lines} == set(row.heads), "a line of tests/data/versions.tsv for each head"
    for line in lines:
        mine, theirs = told(line), FACTS[line]
        if spelling(line).head in LATER:
            assert version_of(mine.version) >= version_of(theirs.version), line
        else:
            assert mine.version == theirs.version, line
        if spelling(line).head in FEWER_TARGETS:
            assert mine.targets <= theirs.targets, line
        else:
            assert mine.targets == theirs.targets, line


def test_what_differs_from_ptxas_differs() -> None:
    different = {spelling(line).head for line in FACTS if told(line) != FACTS[line]}
    assert different == FEWER_TARGETS.keys() | LATER.keys()


def test_the_table_is_what_ptxas_says_now() -> None:
    try:
        assembler = Assembler.find()
    except InputError:
        pytest.skip("no ptxas: pip install 'memmodel[ptx]'")
    if not knows(NEWEST, assembler):
        pytest.skip(f"this ptxas does not know PTX {NEWEST}")
    assert asked(sorted(FACTS), assembler) == FACTS
