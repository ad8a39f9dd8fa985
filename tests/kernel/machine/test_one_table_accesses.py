"""Loads, stores, atomics and hints mean the same through either door: in a litmus test and in a compiled module.

Each row in every legal spelling of its words that change what is touched, and with operands that its page names.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from helpers.kernel.one_table import compare, in_litmus, in_module, readable

from memmodel.errors import InputError
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.rows.slots import Slot
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.table import HEADS
from memmodel.litmus.syntax import Layout

pytestmark = pytest.mark.turns(2)

HINTS = ("cop", "L1", "L2", "hint", "prefetch")
"""Slots of words without an effect."""

SPACES = ("global", "shared", "shared::cta", "const")
LETTERS = {8: "r", 16: "h", 32: "r", 64: "rd", 128: "q"}


def spellings(head: str, **only: tuple[str, ...]) -> Iterator[Spelling]:
    """Every legal mnemonic of a row in litmus blocks, but for hints. `only`: the words of a slot that are looked at."""
    slots = [slot for slot in HEADS[head].slots if slot.name not in HINTS]
    for words in product(*(("", *only.get(slot.name, _words(slot))) for slot in slots)):
        spelling = read_mnemonic(".".join([head, *(word for word in words if word)]), Layout.BLOCKS, HEADS)
        if isinstance(spelling, Spelling):
            yield spelling


def _words(slot: Slot) -> tuple[str, ...]:
    return tuple(word for word in slot.words if word not in slot.columns)


def mnemonic(spelling: Spelling) -> str:
    words = [spelling.words[slot.name] for slot in spelling.row.slots if slot.name in spelling.words]
    return ".".join([spelling.head, *words])


def accesses(head: str) -> Iterator[Spelling]:
    """Spellings of a load or store: with all semantics, and with all types."""
    yield from spellings(head, space=SPACES, type=("u32",), vec=())
    yield from spellings(head, space=("global",), sem=(), scope=(), mmio=(), nc=())
    yield from spellings(head, space=("global",), sem=("relaxed",), scope=("gpu",), mmio=(), type=("u32", "s64"))


def variable(spelling: Spelling) -> str:
    space = spelling.words.get("space", "global")
    return {"shared": "tile", "const": "fixed"}.get(space.partition("::")[0], "src")


def registers(spelling: Spelling) -> list[str]:
    width, count = int(spelling.words["type"][1:]), int(spelling.words.get("vec", "v1")[1:])
    return [f"%{LETTERS[width]}{n}" for n in range(count)]


def listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def numbers(names: list[str]) -> str:
    """Values for registers."""
    if names[0] == "%q0":
        return "mov.b64 %rd0, 77; mov.b64 %rd1, 78; mov.b128 %q0, {%rd0, %rd1};"
    width = {"h": 16, "r": 32}.get(names[0][1:-1], 64)
    return " ".join(f"mov.b{width} {name}, {0x81A7 * (n + 3) & (1 << width) - 1};" for n, name in enumerate(names))


@pytest.mark.parametrize("head", ["ld", "ldu"])
def test_loads(head: str) -> None:
    lines = [(mnemonic(one), listed(registers(one)), variable(one)) for one in accesses(head)]
    for opcode, names, name in lines:
        compare(f"{opcode} {names}, [{name}+32];")
    assert len(lines) > 30


def test_stores() -> None:
    lines = [(mnemonic(one), registers(one), variable(one)) for one in accesses("st")]
    for opcode, names, name in lines:
        compare(f"{opcode} [{name}+32], {listed(names)};", numbers(names))
    assert len(lines) > 50


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("ld.global.v8.b32 {%r0, _, %r2, %r3, _, _, %r6, %r7}, [src+32];", ""),
        ("ld.relaxed.gpu.global.v4.u64 {_, %rd1, %rd2, _}, [src+64];", ""),
        ("ld.global.v4.u32 {%r0, _, %r2, %r3}, [src+16];", ""),
        ("st.global.v8.b32 [dst+32], {%r0, _, %r1, %r1, _, _, %r0, %r0};", "mov.b32 %r0, 9; mov.b32 %r1, 8;"),
        ("st.volatile.global.v4.u64 [dst+64], {_, %rd0, %rd0, _};", "mov.b64 %rd0, 9;"),
        ("ld.const.s8 %r0, [fixed+3];", ""),
        ("ld.const.s16 %rd0, [fixed+2];", ""),
        ("ld.const.u16 %rd0, [fixed+2];", ""),
        ("st.u8 [dst], %r0;", "mov.b32 %r0, 511;"),
        ("ld.u32 %r0, [%rd0+8];", "mov.u64 %rd0, src;"),
        ("ld.u32 %r0, [%rd0-8];", "mov.u64 %rd0, src; add.u64 %rd0, %rd0, 64;"),
        ("ldu.u32 %r0, [%rd0+8];", "mov.u64 %rd0, src;"),
    ],
)
def test_operands_of_loads_and_stores(line: str, before: str) -> None:
    """ "_ indicates that data from corresponding memory location is not read" ("ld"), of vectors of 256 bits only."""
    compare(line, before)
    assert in_litmus(line, before).touched


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("ld.global.u32 %r0, [src+2];", ""),
        ("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [src+8];", ""),
        ("ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, _}, [src+16];", ""),
        ("ld.global.u32 %r0, [src+8192];", ""),
        ("st.global.u64 [dst+252], 1;", ""),
        ("ld.relaxed.gpu.u32 %r0, [%rd0];", "cvta.const.u64 %rd0, fixed;"),
        ("ldu.u32 %r0, [%rd0];", "cvta.const.u64 %rd0, fixed;"),
        ("ld.const.u32 %r0, [%rd0];", "mov.u64 %rd0, src;"),
        ("ld.local.u32 %r0, [%rd0];", "mov.u64 %rd0, src;"),
        ("st.bulk.weak.shared::cta [tile+4], 64, 0;", ""),
        ("atom.global.add.u64 %rd0, [dst+4], 1;", ""),
        ("red.global.add.u32 [dst+8192], 1;", ""),
    ],
)
def test_bad_addresses(line: str, before: str) -> None:
    assert in_litmus(line, before).undefined == in_module(line, before).undefined == {"address"}


@pytest.mark.parametrize("line", ["st.u32 [%rd0], 1;", "atom.add.u32 %r0, [%rd0], 1;", "red.xor.b32 [%rd0], 1;"])
def test_what_is_only_read(line: str) -> None:
    """ "Stores to const memory are illegal" ("st"). A litmus test names the variable."""
    before = "cvta.const.u64 %rd0, fixed;"
    assert in_litmus(line, before).undefined == {"fixed is in memory that is only read"}
    assert in_module(line, before).undefined == {"address"}


@pytest.mark.parametrize(
    "line",
    [
        "ld.global.u32 _, [src];",
        "ld.global.f16 %h0, [src];",
        "ld.shared.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [tile];",
        "ld.relaxed.global.u32 %r0, [src];",
        "ld.release.gpu.global.u32 %r0, [src];",
        "ld.const.relaxed.gpu.u32 %r0, [fixed];",
        "ldu.shared.u32 %r0, [tile];",
        "ldu.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [src];",
        "st.global.v2.u32 [dst], {%r0, _};",
        "st.const.u32 [fixed], %r0;",
        "st.global.v2.u32 [dst], {%r0, %r1, %r2};",
        "st.mmio.relaxed.gpu.global.u32 [dst], %r0;",
        "st.bulk.weak.shared::cta [tile], 64, 1;",
        "st.bulk.weak.shared [tile], 64, 0;",
        "atom.global.add.s64 %rd0, [dst], 1;",
        "atom.global.sub.u32 %r0, [dst], 1;",
        "atom.global.cas.u32 %r0, [dst], 1, 2;",
        "atom.global.exch.f32 %r0, [dst], %r1;",
        "atom.global.and.u32 %r0, [dst], 1;",
        "atom.weak.global.add.u32 %r0, [dst], 1;",
        "atom.const.add.u32 %r0, [fixed], 1;",
        "atom.global.cas.L2::cache_hint.b32 %r0, [dst], 1, 2, %rd0;",
        "atom.shared.exch.L2::cache_hint.b32 %r0, [tile], 1, %rd0;",
        "red.global.acquire.sys.add.u32 [dst], 1;",
        "red.global.exch.b32 [dst], 1;",
        "prefetch.shared.L1 [tile];",
        "prefetchu.L2 [src];",
        "applypriority.global.L2::evict_normal [src], 64;",
        "createpolicy.fractional.L2::evict_normal.L2::evict_last.b64 %rd0, 0.5;",
    ],
)
def test_what_the_isa_does_not_have_is_refused_by_both(line: str) -> None:
    assert not readable(line)
    with pytest.raises(InputError):
        in_module(line)


@pytest.mark.parametrize("size", [0, 8, 64])
@pytest.mark.parametrize("amount", ["", "%rd0", "%r0"])
def test_zeros(size: int, amount: str) -> None:
    """st.bulk."""
    compare(f"st.bulk.weak.shared::cta [tile+8], {amount or size}, 0;", f"mov.u64 %rd0, {size}; mov.u32 %r0, {size};")


@pytest.mark.parametrize(
    "line",
    [
        "prefetch.global.L1 [src];",
        "prefetch.global.L2::evict_last [src];",
        "prefetchu.L1 [src];",
        "applypriority.global.L2::evict_normal [src], 128;",
        "createpolicy.fractional.L2::evict_last.b64 %rd0, 0.5;",
        "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd0, [src], 64, 128;",
        "createpolicy.cvt.L2.b64 %rd0, %rd1;",
    ],
)
def test_hints_access_nothing(line: str) -> None:
    compare(line)
    assert not in_module(line).touched


def operate(spelling: Spelling, given: int) -> None:
    """Compare an atomic operation on one element of 64 bits or fewer."""
    width, op = int(spelling.words["type"][1:]), spelling.words["op"]
    if width > 64:
        return
    letter, name = LETTERS[width], "tile" if "shared" in spelling.words.get("space", "") else "src"
    target, operand, other = (f"%{letter}{n}" for n in (5, 6, 7))
    before = f"mov.b{width} {operand}, {given & (1 << width) - 1}; mov.b{width} {other}, 77; st.shared.b64 [tile+8], 0;"
    operands = f"{operand}, {other}" if op == "cas" else operand
    compare(f"{mnemonic(spelling)} {target + ', ' if spelling.head == 'atom' else ''}[{name}+8], {operands};", before)


@pytest.mark.parametrize("head", ["atom", "red"])
def test_semantics_of_atomic_operations(head: str) -> None:
    for spelling in spellings(head, space=SPACES[:3], op=("add",), type=("u32",)):
        operate(spelling, 5)


@pytest.mark.share(2)
@pytest.mark.parametrize("head", ["atom", "red"])
@pytest.mark.parametrize("given", [0, 3, 0x80000005])
def test_atomic_operations(head: str, given: int) -> None:
    for spelling in spellings(head, space=("global",), scope=(), sem=("relaxed",)):
        operate(spelling, given)


def test_128_bits() -> None:
    before = "mov.b64 %rd0, 3; mov.b64 %rd1, 4; mov.b128 %q1, {%rd0, %rd1}; mov.b128 %q2, {%rd1, %rd0};"
    before += "st.shared.v2.b64 [tile+16], {0, 0};"
    compare("atom.global.exch.b128 %q0, [src], %q1;", before)
    compare("atom.global.acquire.cluster.cas.b128 %q0, [src], %q1, %q2;", before)
    compare("atom.shared::cta.cas.b128 %q0, [tile+16], %q1, %q2;", before)


@pytest.mark.parametrize(
    "op", ["exch.b32 %r0, [src+12], 9;", "cas.b32 %r0, [src+12], 4, 9;", "cas.b32 _, [src], 4, 9;"]
)
def test_what_replaces_the_old_value(op: str) -> None:
    """ "if they are equal, it stores operand c at location a, otherwise it leaves the value unchanged" ("atom")."""
    compare(f"atom.acq_rel.gpu.global.{op}")
