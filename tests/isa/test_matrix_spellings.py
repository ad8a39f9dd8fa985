"""The spellings of matrix instructions are those of their pages, and ptxas 13.5 takes each of them.

tests/data/matrix-spellings.txt has what ptxas takes for any target, of all combinations of their words.
"""

from __future__ import annotations

import itertools

import pytest
from helpers.places import ROOT
from helpers.versions import HEADER, table

from memmodel.errors import InputError
from memmodel.isa.module import lower_in_module, spelling_of
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.table import HEADS
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

TAKEN = frozenset((ROOT / "tests" / "data" / "matrix-spellings.txt").read_text(encoding="utf-8").split())
TILES = ("wmma.load.a", "wmma.load.b", "wmma.load.c", "wmma.store.d")
ROWS = ("mma", "mma.sp", "mma.sp::ordered_metadata", "ldmatrix", "stmatrix", "wmma.mma", *TILES)


def spellings(head: str) -> set[str]:
    """What the syntax lines of a row say."""
    row = HEADS[head]
    parts = [list(form.parts(row.slots)) for form in row.forms]
    words = [[words if needed else (*words, "") for _, words, needed in line] for line in parts]
    written = {".".join((head, *filter(None, chosen))) for line in words for chosen in itertools.product(*line)}
    return {spelling for spelling in written if ".aligned" in spelling}  # PTX 6.2 and older leave it out


def belongs(spelling: str, head: str) -> bool:
    """True if a spelling is one of that row."""
    return spelling.startswith((f"{head}.sync.", f"{head}.xor.popc.sync.", f"{head}.and.popc.sync."))


def of_no_page(spelling: str) -> bool:
    """True of what ptxas takes although no syntax line of the ISA has it: m8n8k4 of bf16 and tf32, m16n8k16 of tf32 and
    of .kind::f8f6f4, kinds of block scaling without it, operations on bits of elements that are none; of wmma .f64 in
    other shapes than m8n8k4, and accumulators of a type that no multiplication of their shape has.
    """
    words = spelling.split(".")
    if words[0] == "wmma":
        wrong = {"f16", "s32"} if "m16n16k8" in words else {"f16", "f32"} if {"m8n8k32", "m8n8k128"} & {*words} else ()
        return ("f64" in words and "m8n8k4" not in words) or bool({*words} & {*wrong} and words[2] in "cd")
    if "b1" not in words and {"xor", "and", "popc"} & {*words}:
        return True
    scaled = any(word.startswith("kind::mx") for word in words)
    if "m8n8k4" in words or "m16n8k16" in words:
        return bool({"tf32", "kind::f8f6f4"} & {*words}) or ("m8n8k4" in words and "bf16" in words) or scaled
    return scaled and "block_scale" not in words


@pytest.mark.parametrize("head", ROWS)
def test_a_row_has_the_spellings_of_its_page(head: str) -> None:
    taken = {spelling for spelling in TAKEN if belongs(spelling, head)}
    if head == "mma" or head.startswith("wmma"):
        taken = {spelling for spelling in taken if not of_no_page(spelling)}
    elif head == "mma.sp::ordered_metadata":
        taken = {spelling for spelling in taken if "kind::mx" not in spelling or "block_scale" in spelling}
    assert spellings(head) == taken


@pytest.mark.share(2)
@pytest.mark.parametrize("head", ROWS)
def test_a_module_may_write_these_and_no_others(head: str) -> None:
    assert all(isinstance(spelling_of(spelling), Spelling) for spelling in spellings(head))
    for other in TAKEN - spellings(head):
        if belongs(other, head):
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
        "wmma.mma.sync.aligned.row.col.m16n16k16.s32.u8.s8.s32",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16.satfinite",
        "wmma.load.a.sync.aligned.row.m8n32k16.f64",
        "wmma.load.a.sync.aligned.col.m8n8k32.u4",
        "wmma.load.a.sync.aligned.row.m16n16k16.f32",
        "wmma.store.d.sync.aligned.row.m16n16k8.f16",
    ],
)
def test_what_ptxas_refuses_is_refused(opcode: str) -> None:
    assert not isinstance(spelling_of(opcode), Spelling)


LINES = [line for line in table() if line.startswith(("mma.", "wmma."))]
"""Instructions that ptxas takes, with as many registers as it wants."""


def refusals(lines: list[str]) -> list[str | None]:
    """What is wrong with each line; None if it is right."""
    text = HEADER.format(version="9.5", target="sm_120a") + "\n".join(lines) + "\nret;\n}\n"
    body = parse_module(Source("k.ptx", text)).functions["k"].body
    assert body is not None
    answers: list[str | None] = []
    for instruction in body[-1 - len(lines) : -1]:
        try:
            lower_in_module(instruction)
            answers.append(None)
        except InputError as error:
            answers.append(error.message)
    return answers


def test_a_lane_has_as_many_registers_as_ptxas_wants() -> None:
    assert set(refusals(LINES)) == {None}
    more = [
        f"{line[:at]}{{{'%rd9' if line[at + 1 : at + 4] == '%rd' else '%r9'}, {line[at + 1 :]}"
        for line in LINES
        for at, char in enumerate(line)
        if char == "{" and line[at + 1 : at + 3] != "%h"
    ]
    assert all("of this matrix" in (answer or "") for answer in refusals(more))


@pytest.mark.parametrize("operand", ["%r1", "{%rd1, %rd2}", "{%h1, %h2}"])
def test_registers_of_a_matrix_have_32_bits(operand: str) -> None:
    line = f"mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {operand}, {{%r1}}, {{%r2}}, {{%r3, %r4}};"
    assert refusals([line, line.replace(operand, "{%r1, %r2}")])[0] is not None
