"""Integer and bit instructions against the pseudocode of their pages, written down once more, on random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from helpers.computed import computed, results
from helpers.examples import TIMES, generator

M32, M64 = 0xFFFFFFFF, (1 << 64) - 1
CORNERS = (0, 1, 2, 15, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, M32)


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> width - 1 & 1 else value


def szext(a: int, b: int, mode: str, kind: str) -> int:
    b1 = b & 0x1F
    too_large = b >= 32 and mode == "clamp"
    mask = 0 if too_large else M32 << b1 & M32
    sign_bit = 0 if b1 == 0 or too_large or kind != "s32" else a >> (b1 - 1 & 0x1F) & 1
    return a & ~mask | (mask if sign_bit else 0)


def bmsk(a: int, b: int, mode: str) -> int:
    a1, b1 = a & 0x1F, b & 0x1F
    mask0, total = M32 << a1 & M32, a1 + b1
    mask1 = M32 << total & M32
    past, wide = mode == "clamp" and a >= 32, mode == "clamp" and b >= 32
    mask0 = 0 if past else mask0
    if total >= 32 or past or wide:
        mask1 = 0
    elif b1 == 0:
        mask1 = M32
    return mask0 & ~mask1


def fns(mask: int, base: int, offset: int) -> int:
    found = [n for n in (range(base, 32) if offset > 0 else range(base, -1, -1)) if mask >> n & 1]
    if offset == 0:
        return base if mask >> base & 1 else M32
    return found[abs(offset) - 1] if len(found) >= abs(offset) else M32


def bfe(a: int, pos: int, length: int, kind: str) -> int:
    width = int(kind[1:])
    sbit = 0 if kind[0] == "u" or length == 0 else a >> min(pos + length - 1, width - 1) & 1
    return sum((a >> pos + i & 1 if i < length and pos + i < width else sbit) << i for i in range(width))


def bfi(a: int, b: int, pos: int, length: int, width: int) -> int:
    for i in range(length):
        if pos + i < width:
            b = b & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return b


def bfind(a: int, kind: str, *, shifts: bool) -> int:
    width = int(kind[1:])
    if kind[0] == "s" and a >> width - 1:
        a = ~a & (1 << width) - 1
    for i in range(width - 1, -1, -1):
        if a >> i & 1:
            return width - 1 - i if shifts else i
    return M32


def prmt(a: int, b: int, c: int, mode: str) -> int:
    data = [a >> 8 * k & 255 for k in range(4)] + [b >> 8 * k & 255 for k in range(4)]
    if mode == "":
        out = [data[n & 7] if not n & 8 else 255 * (data[n & 7] >> 7) for n in (c >> 4 * k & 15 for k in range(4))]
    else:
        # The tables of the page: for c = 0, 1, 2, 3, the sources of bytes 3, 2, 1, 0.
        table = {
            "f4e": ("3210", "4321", "5432", "6543"), "b4e": ("5670", "6701", "7012", "0123"),
            "rc8": ("0000", "1111", "2222", "3333"), "ecl": ("3210", "3211", "3222", "3333"),
            "ecr": ("0000", "1110", "2210", "3210"), "rc16": ("1010", "3232", "1010", "3232"),
        }[mode]  # fmt: skip
        out = [data[int(n)] for n in reversed(table[c & 3])]
    return sum(one << 8 * k for k, one in enumerate(out))


def clmad(a: int, b: int, c: int, mode: str) -> int:
    product = 0
    for i in range(64):
        if a & 1 << i:
            product ^= b << i
    return (product & M64 if mode == "lo" else product >> 64) ^ c


def each(a: int, b: int, kind: str, work: Callable[[int, int], int]) -> int:
    width = int(kind[1:-2])
    mask = (1 << width) - 1
    read = (lambda x: signed(x, width)) if kind[0] == "s" else (lambda x: x)
    return sum((work(read(a >> at & mask), read(b >> at & mask)) & mask) << at for at in range(0, 32, width))


def saturated(value: int, kind: str) -> int:
    width = int(kind[1:].split("x")[0])
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)
    return max(low, min(high, value))


Page = tuple[str, tuple[int, ...], Callable[..., int]]
PAGES: list[Page] = [
    *((f"szext.{m}.{k}", (32, 8), lambda a, b, m=m, k=k: szext(a, b, m, k))
      for m in ("clamp", "wrap") for k in ("u32", "s32")),
    *((f"bmsk.{m}.b32", (8, 8), lambda a, b, m=m: bmsk(a, b, m)) for m in ("clamp", "wrap")),
    ("fns.b32", (32, 5, 0), fns),
    *((f"bfe.{k}", (int(k[1:]), 8, 8), lambda a, b, c, k=k: bfe(a, b, c, k)) for k in ("u32", "s32", "u64", "s64")),
    *((f"bfi.b{w}", (w, w, 8, 8), lambda a, b, c, d, w=w: bfi(a, b, c, d, w)) for w in (32, 64)),
    *((f"bfind{s}.{k}", (int(k[1:]),), lambda a, k=k, s=s: bfind(a, k, shifts=bool(s)))
      for s in ("", ".shiftamt") for k in ("u32", "s32", "u64", "s64")),
    ("prmt.b32", (32, 32, 32), lambda a, b, c: prmt(a, b, c, "")),
    *((f"prmt.b32.{m}", (32, 32, 32), lambda a, b, c, m=m: prmt(a, b, c, m))
      for m in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")),
    *((f"clmad.{m}.u64", (64, 64, 64), lambda a, b, c, m=m: clmad(a, b, c, m)) for m in ("lo", "hi")),
    *((f"add.sat.{k}", (32, 32), lambda a, b, k=k: each(a, b, k, lambda x, y: saturated(x + y, k)))
      for k in ("u16x2", "s16x2", "u8x4", "s8x4")),
    *((f"sub.sat.{k}", (32, 32), lambda a, b, k=k: each(a, b, k, lambda x, y: saturated(x - y, k)))
      for k in ("u8x4", "s8x4")),
    *((f"max.relu.{k}", (32, 32), lambda a, b, k=k: each(a, b, k, lambda x, y: max(x, y, 0)))
      for k in ("s16x2", "s8x4")),
    *((f"min.relu.{k}", (32, 32), lambda a, b, k=k: each(a, b, k, lambda x, y: max(min(x, y), 0)))
      for k in ("s16x2", "s8x4")),
    *((f"min.{k}", (32, 32), lambda a, b, k=k: each(a, b, k, min)) for k in ("u16x2", "s16x2", "u8x4", "s8x4")),
    ("max.relu.s32", (32, 32), lambda a, b: max(signed(a, 32), signed(b, 32), 0)),
    ("add.sat.u32", (32, 32), lambda a, b: min(a + b, M32)),
    ("sad.s32", (32, 32, 32), lambda a, b, c: c + abs(signed(a, 32) - signed(b, 32)) & M32),
    ("sad.u16", (16, 16, 16), lambda a, b, c: c + abs(a - b) & 0xFFFF),
    ("mul.hi.s64", (64, 64), lambda a, b: signed(a, 64) * signed(b, 64) >> 64 & M64),
    ("mad.hi.u32", (32, 32, 32), lambda a, b, c: (a * b >> 32) + c & M32),
    ("cvt.pack.sat.u16.s32", (32, 32),
     lambda a, b: saturated(signed(a, 32), "u16") << 16 | saturated(signed(b, 32), "u16")),
    ("cvt.pack.sat.u2.s32.b32", (32, 32, 32),
     lambda a, b, c: c << 4 & M32 | saturated(signed(a, 32), "u2") << 2 | saturated(signed(b, 32), "u2")),
    ("dp4a.s32.u32", (32, 32, 32),
     lambda a, b, c: c + sum(signed(a >> 8 * k & 255, 8) * (b >> 8 * k & 255) for k in range(4)) & M32),
    ("dp2a.hi.s32.s32", (32, 32, 32),
     lambda a, b, c: c + sum(signed(a >> 16 * k & 65535, 16) * signed(b >> 16 + 8 * k & 255, 8) for k in (0, 1)) & M32),
]  # fmt: skip


def numbers(rng: random.Random, width: int) -> int:
    if width == 0:
        return rng.randrange(-5, 6)
    if width == 8:
        return rng.choice((0, 1, 5, 8, 31, 32, 33, 63, 64, 255, rng.randrange(40)))
    return rng.choice((rng.getrandbits(width), rng.choice(CORNERS) & (1 << width) - 1))


@pytest.mark.generated
@pytest.mark.parametrize(("opcode", "widths", "page"), PAGES, ids=[one[0] for one in PAGES])
def test_pages(opcode: str, widths: tuple[int, ...], page: Callable[..., int]) -> None:
    rng = generator(opcode)
    for _ in range(60 * TIMES):
        given = [numbers(rng, width) for width in widths]
        assert computed(opcode, *(one & M32 if one < 0 else one for one in given)) == page(*given), given


@pytest.mark.generated
@pytest.mark.parametrize("width", [32, 64])
def test_carries(width: int) -> None:
    """A sum, a difference and a product of two words, by words."""
    rng, kind, mask = generator(width), f"u{width}", (1 << width) - 1
    for _ in range(60 * TIMES):
        a, b = (rng.choice((rng.getrandbits(2 * width), mask, mask + 1, 0)) for _ in range(2))
        for head, wanted in (("add", a + b), ("sub", a - b)):
            low = results(f"{head}.cc.{kind}", (a & mask, b & mask))
            high = results(f"{head}c.{kind}", (a >> width, b >> width), low["#carry"])["0"]
            assert low["0"] is not None and high is not None
            assert high << width | low["0"] == wanted & (1 << 2 * width) - 1
