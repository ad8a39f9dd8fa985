"""docs/mnemonics.md is as the table is, nothing that touches memory is missing, and what is refused says why.

`MEMMODEL_REWRITE=1 pytest tests/docs/test_mnemonics.py` writes the page.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.mnemonics import HEADS, MISSING, PAGE, SPELLINGS, mnemonics, page, rows_of, status, statuses
from helpers.patience import PATIENCE

from memmodel.cli.app import app
from memmodel.emit import Assembler
from memmodel.errors import InputError
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.refused import REFUSED, SPELLING
from memmodel.isa.rows.spelling import Refusal
from memmodel.litmus.syntax import Layout

ABOUT_MEMORY = ("Data Movement", "Fabric", "Parallel Sync", "Asynchronous Warpgroup", "TensorCore 5th")
NO_MEMORY = ("cvt",)
"""Instructions of these families that only compute."""

MODULE = """.version 9.5
.target sm_107a
.address_size 64
.visible .entry k(.param .u64 a)
{{
.reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<4>;
ld.param.u64 %rd1, [a];
{}
ret;
}}
"""


def test_the_page_is_current() -> None:
    if os.environ.get("MEMMODEL_REWRITE") == "1":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "MEMMODEL_REWRITE=1 writes it anew"


def test_no_word_about_memory_is_missing() -> None:
    listed = [mnemonic for mnemonic in mnemonics() if mnemonic.family.startswith(ABOUT_MEMORY)]
    missing = {mnemonic.name for mnemonic in listed if status(mnemonic.name) == MISSING}
    missing |= {
        f"{mnemonic.name}.{word}"
        for mnemonic in listed
        if mnemonic.name not in NO_MEMORY
        for word, who in statuses(mnemonic).items()
        if who == MISSING
    }
    assert not missing


def test_every_row_belongs_to_an_instruction_of_the_isa() -> None:
    """Or it is of the column layout; `goto` and the conditional branches are words of litmus tests."""
    known = {head for mnemonic in mnemonics() for head in rows_of(mnemonic.name)}
    others = {head for head, row in HEADS.items() if head not in known and not row.columns}
    assert others == set()


@pytest.mark.parametrize("head", REFUSED)
@pytest.mark.parametrize("layout", [Layout.BLOCKS, Layout.MODULE])
def test_what_is_refused_by_name_says_why(head: str, layout: Layout) -> None:
    assert head not in HEADS
    reading = read_mnemonic(f"{head}.sys", layout, HEADS)
    assert isinstance(reading, Refusal) and reading.message == f"{head} is not modelled: {REFUSED[head]}"


def test_a_refused_instruction_ends_with_exit_code_2(tmp_path: Path) -> None:
    test = tmp_path / "fabric.litmus"
    test.write_text("PTX fabric\n\nthread P0 @ cta 0, gpu 0 {\n    fabric.try_put.async.tensor;\n}\n\nexists (true)\n")
    done = CliRunner().invoke(app, ["check", str(test)])
    assert done.exit_code == 2 and "fabric.try_put.async.tensor is not modelled: no tensor" in done.output


@pytest.mark.parametrize("line", SPELLINGS)
def test_ptxas_takes_what_is_known_by_its_spelling_alone(line: str, tmp_path: Path) -> None:
    mnemonic = line.split()[0].rstrip(";")
    reading = read_mnemonic(mnemonic, Layout.MODULE, HEADS)
    assert isinstance(reading, Refusal) and (
        SPELLING in reading.message or "proxy::readonly takes no" in reading.message
    )
    try:
        assembler = Assembler.find()
    except InputError:
        pytest.skip("no ptxas: pip install 'memmodel[ptx]'")
    source = tmp_path / "module.ptx"
    source.write_text(MODULE.format(line))
    command = [str(assembler.path), "-arch=sm_107a", str(source), "-o", str(tmp_path / "module.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
