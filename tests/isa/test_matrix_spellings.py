"""The spellings of mma, mma.sp, ldmatrix and stmatrix are those of their pages, and ptxas 13.5 takes each of them.

tests/data/matrix-spellings.txt has what ptxas takes for any target, of all combinations of their words.
"""

from __future__ import annotations

import itertools

import pytest
from helpers.places import ROOT

from memmodel.isa.module import spelling_of
from memmodel.isa.row import Spelling
from memmodel.isa.table import HEADS

TAKEN = frozenset((ROOT / "tests" / "data" / "matrix-spellings.txt").read_text(encoding="utf-8").split())
ROWS = ("mma", "mma.sp", "mma.sp::ordered_metadata", "ldmatrix", "stmatrix")


def spellings(head: str) -> set[str]:
    """What the syntax lines of a row say."""
    row = HEADS[head]
    parts = [list(form.parts(row.slots)) for form in row.forms]
    words = [[words if needed else (*words, "") for _, words, needed in line] for line in parts]
    return {".".join((head, *filter(None, chosen))) for line in words for chosen in itertools.product(*line)}


def of_no_page(spelling: str) -> bool:
    """True of what ptxas takes although no syntax line of the ISA has it: m8n8k4 of bf16 and tf32, m16n8k16 of tf32 and
    of .kind::f8f6f4, kinds of block scaling without it, and operations on bits of elements that are none.
    """
    words = spelling.split(".")
    if "b1" not in words and {"xor", "and", "popc"} & {*words}:
        return True
    scaled = any(word.startswith("kind::mx") for word in words)
    if "m8n8k4" in words or "m16n8k16" in words:
        return bool({"tf32", "kind::f8f6f4"} & {*words}) or ("m8n8k4" in words and "bf16" in words) or scaled
    return scaled and "block_scale" not in words


@pytest.mark.parametrize("head", ROWS)
def test_a_row_has_the_spellings_of_its_page(head: str) -> None:
    taken = {spelling for spelling in TAKEN if spelling.startswith(f"{head}.sync.")}
    if head == "mma":
        taken = {spelling for spelling in taken if not of_no_page(spelling)}
    elif head == "mma.sp::ordered_metadata":
        taken = {spelling for spelling in taken if "kind::mx" not in spelling or "block_scale" in spelling}
    assert spellings(head) == taken


@pytest.mark.parametrize("head", ROWS)
def test_a_module_may_write_these_and_no_others(head: str) -> None:
    assert all(isinstance(spelling_of(spelling), Spelling) for spelling in spellings(head))
    for other in TAKEN - spellings(head):
        if other.startswith(f"{head}.sync."):
            assert not isinstance(spelling_of(other), Spelling), other


@pytest.mark.parametrize(
    "opcode",
    [
        "mma.sync.m16n8k16.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32",
        "mma.sync.aligned.m16n8k256.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32",
        "mma.sp.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32",
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b8",
        "stmatrix.sync.aligned.m16n8.x1.shared.b16",
        "stmatrix.sync.aligned.m8n8.x1.dst_fmt.shared.b16",
        "movmatrix.sync.m8n8.trans.b16",
    ],
)
def test_what_ptxas_refuses_is_refused(opcode: str) -> None:
    assert not isinstance(spelling_of(opcode), Spelling)
