"""What ptxas makes of instructions whose operands are numbers: an oracle for arithmetic that shares nothing with ours.

`python -m helpers.folded` in `tests` writes the table tests/data/folded.tsv; it needs ptxas (`pip install '.[ptx]'`).
Each instruction gets an entry of its own that stores the result; ptxas computes the result when it compiles, and leaves
it in the instruction that loads a constant. An entry that stores a number that is known shows where this instruction
stands and in which bits of it the number is.
"""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from helpers.places import ROOT

TABLE = ROOT / "tests" / "data" / "folded.tsv"
MARKS = (0x12345679, 0x0BADCAFE)
"""Numbers that are stored to find the place of the constant; nothing else in an entry is like them."""

SIZES = {"b": (16, 32, 64), "u": (16, 32, 64), "s": (16, 32, 64)}
INTEGERS = [f"{kind}{width}" for kind in "us" for width in (16, 32, 64)]
BITS = ["b16", "b32", "b64"]

OPCODES: dict[str, int] = {
    **{f"{op}.{kind}": 2 for op in ("add", "sub", "min", "max", "div", "rem") for kind in INTEGERS},
    **{f"mul.{part}.{kind}": 2 for part in ("lo", "hi") for kind in INTEGERS},
    **{f"mul.wide.{kind}": 2 for kind in ("u16", "s16", "u32", "s32")},
    **{f"mad.{part}.{kind}": 3 for part in ("lo", "hi") for kind in INTEGERS},
    **{f"mul24.{part}.{kind}": 2 for part in ("lo", "hi") for kind in ("u32", "s32")},
    **{f"mad24.{part}.{kind}": 3 for part in ("lo", "hi") for kind in ("u32", "s32")},
    **{f"{op}.{kind}": 2 for op in ("and", "or", "xor") for kind in BITS},
    **{f"{op}.{kind}": 1 for op in ("not", "cnot") for kind in BITS},
    **{f"{op}.s{width}": 1 for op in ("neg", "abs") for width in (16, 32, 64)},
    **{f"shl.{kind}": 2 for kind in BITS},
    **{f"shr.{kind}": 2 for kind in INTEGERS},
    **{f"{op}.{kind}": 1 for op in ("popc", "clz", "brev") for kind in ("b32", "b64")},
    **{f"bfind{how}.{kind}": 1 for how in ("", ".shiftamt") for kind in ("u32", "s32", "u64", "s64")},
    **{f"bfe.{kind}": 3 for kind in ("u32", "s32", "u64", "s64")},
    **{f"bfi.{kind}": 4 for kind in ("b32", "b64")},
    **{f"sad.{kind}": 3 for kind in ("u16", "s16", "u32", "s32")},
    **{f"prmt.b32{mode}": 3 for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")},
    **{f"shf.{side}.{how}.b32": 3 for side in "lr" for how in ("wrap", "clamp")},
    **{f"{op}.sat.s32": 2 for op in ("add", "sub")},
    **{f"dp4a.{a}.{b}": 3 for a in ("u32", "s32") for b in ("u32", "s32")},
    **{f"dp2a.{part}.{a}.{b}": 3 for part in ("lo", "hi") for a in ("u32", "s32") for b in ("u32", "s32")},
    **{f"bmsk.{how}.b32": 2 for how in ("clamp", "wrap")},
    **{f"szext.{how}.{kind}": 2 for how in ("clamp", "wrap") for kind in ("u32", "s32")},
    **{f"cvt.{to}.{source}": 1 for to in ("u16", "s16", "u32", "s32", "u64", "s64") for source in INTEGERS},
    **{f"cvt.sat.{to}.{source}": 1 for to in ("u8", "s8", "u16", "s16") for source in INTEGERS[1:3] + INTEGERS[4:]},
    **{f"slct.{kind}.s32": 3 for kind in ("b16", "b32", "b64")},
}  # fmt: skip
"""Instructions, and how many numbers each takes."""

SMALL = {"shl": {1}, "shr": {1}, "bfe": {1, 2}, "bfi": {2, 3}, "shf": {2}, "bmsk": {0, 1}, "szext": {1}}
"""Operands that are amounts: of .u32, and chosen small more often."""

ROUNDS = 12
"""How often each instruction is tried with other numbers."""


def width_of(opcode: str, operand: int | None) -> int:
    """The bits of an operand, or of the result (None)."""
    head, *words = opcode.split(".")
    kinds = [int(word[1:]) for word in words if word[0] in "bus" and word[1:].isdigit()]
    if head == "cvt":
        return kinds[0 if operand is None else 1]
    if operand is None:
        wide = "wide" in words
        return 2 * kinds[0] if wide else 32 if head in ("popc", "clz", "bfind") else kinds[0]
    if operand in SMALL.get(head, ()) or (head, operand) == ("slct", 2):
        return 32
    return kinds[0]


def numbers_for(opcode: str, chosen: random.Random) -> tuple[int, ...]:
    """Operands: ends of ranges, small numbers, any numbers."""
    given = []
    for operand in range(OPCODES[opcode]):
        width = width_of(opcode, operand)
        kinds = [chosen.getrandbits(width), chosen.getrandbits(width), chosen.randrange(8)]
        kinds += [(1 << width) - 1 - chosen.randrange(3), (1 << width - 1) - chosen.randrange(2)]
        if operand in SMALL.get(opcode.split(".")[0], ()):
            beyond = (255,) if opcode.startswith("bf") else (255, 256, 65536)  # bfe and bfi take 0 to 255
            kinds = [chosen.randrange(70), chosen.randrange(40), chosen.randrange(33), chosen.choice(beyond)]
        given.append(chosen.choice(kinds))
    return tuple(given)


def _number_text(value: int, width: int) -> str:
    return str(value) if width < 64 else f"0x{value:x}"


def entry(name: str, opcode: str, numbers: Sequence[int], half: int) -> str:
    """An entry that stores 32 bits of the result: the low half, or the high one of 64."""
    result = width_of(opcode, None)
    moves, names = [], []
    for place, number in enumerate(numbers):
        width = width_of(opcode, place)
        moves.append(f"mov.b{width} %{'hrd'[(width > 16) + (width > 32)]}{place}, {_number_text(number, width)};")
        names.append(f"%{'hrd'[(width > 16) + (width > 32)]}{place}")
    holder = {8: "%h9", 16: "%h9", 32: "%r9", 64: "%d9"}[result]
    operands = ", ".join([holder, *names])
    text = f"{opcode} {operands};"
    if result <= 16:
        text += " cvt.u32.u16 %r8, %h9;"
    elif result == 64:
        text += " mov.b64 {%r6, %r7}, %d9;"
        text += f" mov.b32 %r8, %r{6 + half};"
    else:
        text += " mov.b32 %r8, %r9;"
    return _frame(name, " ".join(moves) + "\n" + text)


def _frame(name: str, body: str) -> str:
    return (
        f".visible .entry {name}(.param .u64 p) {{\n.reg .b16 %h<10>; .reg .b32 %r<10>; .reg .b64 %d<12>;\n"
        f"ld.param.u64 %d10, [p]; cvta.to.global.u64 %d11, %d10;\n{body}\nst.global.b32 [%d11], %r8;\nret;\n}}\n"
    )


def _codes(ptxas: str, entries: Sequence[str]) -> dict[str, bytes]:
    """The machine code of each entry."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "m.ptx", Path(folder) / "m.cubin"
        source.write_text(".version 8.8\n.target sm_90\n.address_size 64\n" + "".join(entries))
        subprocess.run([ptxas, "-arch=sm_90", "-O3", str(source), "-o", str(target)], check=True)
        return dict(_sections(target.read_bytes()))


def _sections(image: bytes) -> Iterator[tuple[str, bytes]]:
    """The sections of code of an ELF file, by the name of their entry."""
    start, size, count, names_at = *struct.unpack_from("<Q", image, 0x28), *struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, start + number * size) for number in range(count)]
    names = headers[names_at]
    for header in headers:
        at = names[4] + header[0]
        name = image[at : image.index(b"\0", at)].decode()
        if name.startswith(".text."):
            yield name.removeprefix(".text."), image[header[4] : header[4] + header[5]]


def folded(ptxas: str, cases: Sequence[tuple[str, tuple[int, ...]]]) -> list[int | None]:
    """The results that ptxas computes; None where it leaves the computation to the GPU."""
    entries = [_frame(f"mark{n}", f"mov.b32 %r8, {mark};") for n, mark in enumerate(MARKS)]
    for number, (opcode, numbers) in enumerate(cases):
        for half in range(2 if width_of(opcode, None) == 64 else 1):
            entries.append(entry(f"case{number}_{half}", opcode, numbers, half))
    codes = _codes(ptxas, entries)
    places = [codes[f"mark{n}"].index(struct.pack("<I", mark)) for n, mark in enumerate(MARKS)]
    assert places[0] == places[1], "the constant stands in one place"
    at, length = places[0], len(codes["mark0"])
    results: list[int | None] = []
    for number, (opcode, _) in enumerate(cases):
        value: int | None = 0
        for half in range(2 if width_of(opcode, None) == 64 else 1):
            code = codes[f"case{number}_{half}"]
            same = (
                len(code) == length and code[:at] == codes["mark0"][:at] and code[at + 4 :] == codes["mark0"][at + 4 :]
            )
            if not same or value is None:
                value = None
                continue
            value |= struct.unpack_from("<I", code, at)[0] << 32 * half
        results.append(None if value is None else value & (1 << width_of(opcode, None)) - 1)
    return results


def main() -> None:
    """Write the table."""
    ptxas, chosen = sys.argv[1], random.Random(1)
    cases = [(opcode, numbers_for(opcode, chosen)) for opcode in OPCODES for _ in range(ROUNDS)]
    rows = [
        f"{opcode}\t{' '.join(map(str, numbers))}\t{value}"
        for (opcode, numbers), value in zip(cases, folded(ptxas, cases), strict=True)
        if value is not None
    ]
    TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(f"{len(rows)} of {len(cases)} computed by ptxas", file=sys.stderr)


if __name__ == "__main__":
    main()
