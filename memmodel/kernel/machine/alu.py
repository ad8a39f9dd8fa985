"""Integer, bit, convert and select instructions, exactly; floating point as opaque values.

In: the words of an opcode. Out: `Fn`: values of the sources to the value of the result. A value is an unsigned number
of the width of its type; None is a value that is not known. Nothing here knows of threads.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

Value = int | None
Fn = Callable[..., int]

WIDTH = {"pred": 1, "b1": 1, "f16x2": 32, "bf16x2": 32, "bf16": 16, "tf32": 32, "e4m3x2": 16, "e5m2x2": 16}
COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"))
_FLOAT_COMPARE = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
OPAQUE = frozenset(
    [
        "ex2",
        "lg2",
        "sin",
        "cos",
        "tanh",
        "rcp",
        "sqrt",
        "rsqrt",
        "div",
        "fma",
        "add",
        "sub",
        "mul",
        "max",
        "min",
        "neg",
        "abs",
        "copysign",
    ]
)
"""Instructions that may work on floating-point types."""


def width_of(word: str) -> int | None:
    """Bits of a type word; None if it is no type."""
    if word in WIDTH:
        return WIDTH[word]
    if len(word) > 1 and word[0] in "busf" and word[1:] in ("8", "16", "32", "64", "128"):
        return int(word[1:])
    return None


def is_float(word: str) -> bool:
    return word[0] == "f" or word.startswith(("bf", "tf", "e4m3", "e5m2"))


def signed(value: int, width: int) -> int:
    """A number of that width as a signed one."""
    return value - (1 << width) if value >> (width - 1) & 1 else value


def _numbers(word: str) -> Callable[[int], int]:
    width = width_of(word) or 32
    mask = (1 << width) - 1
    if word[0] == "s":
        return lambda x: signed(x & mask, width)
    return lambda x: x & mask


def function(words: tuple[str, ...]) -> Fn | None:
    """What an instruction computes, if it is one of these."""
    head, kind = words[0], words[-1]
    width = width_of(kind)
    if width is None or is_float(kind):
        return None
    mask = (1 << width) - 1
    read = _numbers(kind)
    if head == "mul" or head == "mad":
        return _product(words, width, read)
    if head in ("shl", "shr"):
        return _shift(head, kind, width, read)
    simple: dict[str, Fn] = {
        "add": lambda a, b: (a + b) & mask,
        "sub": lambda a, b: (a - b) & mask,
        "and": lambda a, b: a & b & mask,
        "or": lambda a, b: (a | b) & mask,
        "xor": lambda a, b: (a ^ b) & mask,
        "not": lambda a: ~a & mask,
        "cnot": lambda a: int(a & mask == 0),
        "neg": lambda a: -a & mask,
        "abs": lambda a: abs(signed(a & mask, width)) & mask,
        "min": lambda a, b: min(read(a), read(b)) & mask,
        "max": lambda a, b: max(read(a), read(b)) & mask,
        "div": lambda a, b: _quotient(read(a), read(b), mask),
        "rem": lambda a, b: _remainder(read(a), read(b), mask),
        "popc": lambda a: (a & mask).bit_count(),
        "clz": lambda a: width - (a & mask).bit_length(),
        "brev": lambda a: int(format(a & mask, f"0{width}b")[::-1], 2),
        "selp": lambda a, b, p: (a if p & 1 else b) & mask,
        "bfe": lambda a, b, c: _extract(a & mask, b & 255, c & 255, width, kind[0] == "s"),
        "bfi": lambda a, b, c, d: _insert(a & mask, b & mask, c & 255, d & 255, width),
        "bfind": lambda a: _find(a & mask, width, kind[0] == "s", "shiftamt" in words),
        "sad": lambda a, b, c: (abs(read(a) - read(b)) + c) & mask,
        "prmt": lambda a, b, c: _permute(a, b, c),
        "slct": lambda a, b, c: (a if signed(c & 0xFFFFFFFF, 32) >= 0 else b) & mask,
        "fns": lambda a, b, c: _nth(a & mask, b & 31, signed(c & 0xFFFFFFFF, 32)),
        "bmsk": lambda a, b: _bitmask(a, b, clamp="clamp" in words),
    }
    if head in ("add", "sub") and ("cc" in words or "sat" in words):
        return None
    if head == "prmt" and len(words) > 2:
        return None
    if head == "lop3":
        return lambda a, b, c, table: _lookup(a, b, c, table)
    if head == "shf":
        return _funnel(words)
    return simple.get(head)


def _product(words: tuple[str, ...], width: int, read: Fn) -> Fn | None:
    mode = words[1]
    if "cc" in words or mode not in ("lo", "hi", "wide") or "sat" in words:
        return None
    size = 2 * width if mode == "wide" else width
    mask = (1 << size) - 1
    down = width if mode == "hi" else 0
    if words[0] == "mul":
        return lambda a, b: read(a) * read(b) >> down & mask
    return lambda a, b, c: (read(a) * read(b) >> down) + c & mask


def _shift(head: str, kind: str, width: int, read: Fn) -> Fn:
    mask = (1 << width) - 1
    if head == "shl":
        return lambda a, b: (a << b) & mask if b < width else 0
    return lambda a, b: read(a) >> min(b & 0xFFFFFFFF, width) & mask


def _quotient(a: int, b: int, mask: int) -> int:
    if b == 0:
        return mask
    return (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)) & mask


def _remainder(a: int, b: int, mask: int) -> int:
    if b == 0:
        return a & mask
    return (abs(a) % abs(b) * (-1 if a < 0 else 1)) & mask


def _extract(a: int, at: int, length: int, width: int, extends: bool) -> int:
    field = a >> at & ((1 << length) - 1) if length else 0
    if not extends or length == 0:
        return field
    sign = a >> min(at + length - 1, width - 1) & 1
    kept = max(0, min(length, width - at))
    if sign:
        field |= ((1 << width) - 1) & ~((1 << kept) - 1)
    return field & ((1 << width) - 1)


def _insert(a: int, b: int, at: int, length: int, width: int) -> int:
    field = ((1 << length) - 1) << at & ((1 << width) - 1)
    return b & ~field | a << at & field


def _find(a: int, width: int, is_signed: bool, shift: bool) -> int:
    if is_signed and a >> (width - 1):
        a = ~a & ((1 << width) - 1)
    if a == 0:
        return 0xFFFFFFFF
    top = a.bit_length() - 1
    return width - 1 - top if shift else top


def _permute(a: int, b: int, control: int) -> int:
    data = (b & 0xFFFFFFFF) << 32 | a & 0xFFFFFFFF
    result = 0
    for lane in range(4):
        chosen = control >> lane * 4 & 15
        byte = data >> (chosen & 7) * 8 & 255
        if chosen & 8:
            byte = 255 if byte & 128 else 0
        result |= byte << lane * 8
    return result


def _lookup(a: int, b: int, c: int, table: int) -> int:
    result = 0
    for case in range(8):
        if table >> case & 1:
            x, y, z = (v if case >> bit & 1 else ~v for v, bit in ((a, 2), (b, 1), (c, 0)))
            result |= x & y & z
    return result & 0xFFFFFFFF


def _funnel(words: tuple[str, ...]) -> Fn:
    clamp = "clamp" in words

    def shift(a: int, b: int, c: int) -> int:
        amount = min(c & 0xFFFFFFFF, 32) if clamp else c & 31
        both = (b & 0xFFFFFFFF) << 32 | a & 0xFFFFFFFF
        return (both << amount >> 32 if words[1] == "l" else both >> amount) & 0xFFFFFFFF

    return shift


def _nth(mask: int, base: int, offset: int) -> int:
    """fns: the position of the n-th set bit from `base` on."""
    step, wanted = (1, offset) if offset > 0 else (-1, -offset)
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    at, seen = base, 0
    while 0 <= at < 32:
        seen += mask >> at & 1
        if seen == wanted:
            return at
        at += step
    return 0xFFFFFFFF


def _bitmask(a: int, b: int, *, clamp: bool) -> int:
    at, length = (min(a, 32), min(b, 32)) if clamp else (a & 31, b & 31)
    return ((1 << length) - 1) << at & 0xFFFFFFFF


def comparison(words: tuple[str, ...]) -> Fn | None:
    """setp and set: whether two values compare so."""
    kind = words[-1]
    how = next((word for word in words[1:] if word in COMPARE or word in _FLOAT_COMPARE), None)
    if how is None or width_of(kind) is None:
        return None
    if is_float(kind):
        number = float_reader(kind)
        if number is None:
            return None
        return _compared(_FLOAT_COMPARE.get(how, how), number, unordered=how in _FLOAT_COMPARE)
    unsigned = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
    return _compared(unsigned.get(how, how), _numbers("u" + kind[1:] if how in unsigned else kind))


def _compared(how: str, read: Callable[[int], int | float], *, unordered: bool = False) -> Fn:
    def compare(a: int, b: int) -> int:
        x, y = read(a), read(b)
        if x != x or y != y:
            return int(unordered or (how == "ne" and False))
        return int({"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[how])

    return compare


def float_reader(kind: str) -> Callable[[int], float] | None:
    """Bits to a floating-point number."""
    codes = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}
    if kind not in codes:
        return None
    whole, real = codes[kind]
    mask = (1 << int(kind[1:])) - 1

    def read(bits: int) -> float:
        return float(struct.unpack(real, struct.pack(whole, bits & mask))[0])

    return read


def conversion(words: tuple[str, ...]) -> Fn | None:
    """cvt between integer types."""
    to, source = words[-2], words[-1]
    if width_of(to) is None or width_of(source) is None or is_float(to) or is_float(source):
        return None
    read, width = _numbers(source), width_of(to) or 32
    mask = (1 << width) - 1
    if "sat" in words:
        low, high = (-(1 << width - 1), (1 << width - 1) - 1) if to[0] == "s" else (0, mask)
        return lambda a: max(low, min(high, read(a))) & mask
    return lambda a: read(a) & mask
