"""Integer, bit, convert and select instructions, exactly; floating point as opaque values.

In: the words of an opcode. Out: `Fn`: values of the sources to the value of the result. A value is an unsigned number
of the width of its type; None is a value that is not known. Nothing here knows of threads.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from memmodel.kernel.arithmetic.floats import flushed, reader
from memmodel.kernel.arithmetic.packed import PACKED_KINDS, as_signed, carryless, clamped, dot, narrowed, packed

Fn = Callable[..., int]

WIDTH = {"pred": 1, "b1": 1, "f16x2": 32, "bf16x2": 32, "bf16": 16, "tf32": 32, "e4m3x2": 16, "e5m2x2": 16}
COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"))
_FLOAT_COMPARE = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge", "num": "num",
                  "nan": "nan"}  # fmt: skip
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
        "mad",
    ]
)
"""Instructions that may work on floating-point types."""


def operand_widths(words: tuple[str, ...], count: int) -> list[int]:
    """Bits of the operands of an instruction that only computes: of a number that is written there."""
    width = width_of(words[-1]) or 32
    if words[0] == "mad" and "wide" in words:
        return [width, width, 2 * width][:count]
    return [width if words[0] != "slct" or at == 2 else width_of(words[-2]) or width for at in range(count)]


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
    if head == "prmt" and kind in _PERMUTATIONS:
        return _PERMUTATIONS[kind]
    if head == "slct" and len(words) >= 3:
        return _slct(words[-2], kind, flushes="ftz" in words)
    if head == "testp":
        return _tested(words[1], kind)
    if words[:2] == ("cvt", "pack"):
        return narrowed(words)
    if kind in PACKED_KINDS:
        return packed(words)
    if head in ("dp4a", "dp2a"):
        return dot(words)
    if head == "clmad":
        return carryless(words)
    width = width_of(kind)
    if width is None or is_float(kind):
        return None
    mask = (1 << width) - 1
    read = _numbers(kind)
    if head == "mul" or head == "mad":
        return _product(words, width, read)
    if head in ("mul24", "mad24"):
        return _product24(words, kind)
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
        "fns": lambda a, b, c: _nth(a & mask, b & 31, signed(c & 0xFFFFFFFF, 32)),
        "bmsk": lambda a, b: _bitmask(a, b, clamp="clamp" in words),
        "szext": lambda a, b: _resized(a & mask, b & mask, kind[0] == "s", clamp="clamp" in words),
    }
    if head in ("add", "sub") and "sat" in words:
        return _saturated(head, read, signed=kind[0] == "s") if kind in ("s32", "u32") else None
    if head in ("add", "sub") and "cc" in words:
        return None
    if head in ("min", "max") and "relu" in words:
        return lambda a, b: max(0, (min if head == "min" else max)(read(a), read(b))) & mask
    if head == "lop3":
        return lambda a, b, c, table: _lookup(a, b, c, table)
    if head == "shf":
        return _funnel(words)
    return simple.get(head)


def _product(words: tuple[str, ...], width: int, read: Fn) -> Fn | None:
    mode = words[1]
    if "cc" in words or mode not in ("lo", "hi", "wide"):
        return None
    if "sat" in words:  # mad.hi.sat.s32 alone
        return lambda a, b, c: clamped((read(a) * read(b) >> width) + read(c), width, signed=True) & (1 << width) - 1
    size = 2 * width if mode == "wide" else width
    mask = (1 << size) - 1
    down = width if mode == "hi" else 0
    if words[0] == "mul":
        return lambda a, b: read(a) * read(b) >> down & mask
    return lambda a, b, c: (read(a) * read(b) >> down) + c & mask


def _slct(kind: str, choice: str, *, flushes: bool) -> Fn | None:
    """slct: a where c is not negative; -0.0 is not, NaN is. `flushes`: subnormal numbers are zero."""
    width = width_of(kind)
    if width is None or choice not in ("s32", "f32"):
        return None
    mask = (1 << width) - 1
    if choice == "s32":
        return lambda a, b, c: (b if c >> 31 & 1 else a) & mask
    zero = 0x807FFFFF if flushes else 0x80000000
    return lambda a, b, c: (a if (c := c & 0xFFFFFFFF) <= 0x7F800000 or 0x80000000 <= c <= zero else b) & mask


_EXPONENTS = {"f32": (8, 23), "f64": (11, 52)}
"""Bits of the exponent and of the fraction."""


def _tested(what: str, kind: str) -> Fn | None:
    """testp: a property of a floating-point number."""
    if kind not in _EXPONENTS:
        return None
    exponent_bits, fraction_bits = _EXPONENTS[kind]
    top = (1 << exponent_bits) - 1

    def test(a: int) -> int:
        exponent, fraction = a >> fraction_bits & top, a & (1 << fraction_bits) - 1
        table = {
            "finite": exponent != top,
            "infinite": exponent == top and not fraction,
            "number": exponent != top or not fraction,
            "notanumber": exponent == top and bool(fraction),
            "normal": 0 < exponent < top or not (exponent or fraction),
            "subnormal": not exponent and bool(fraction),
        }
        return int(table[what])

    return test


def _product24(words: tuple[str, ...], kind: str) -> Fn | None:
    """Of the low 24 bits: the low 32 bits of the product, or those from bit 16 on."""
    if words[1] not in ("lo", "hi"):
        return None
    low24 = 0xFFFFFF
    read: Callable[[int], int] = (lambda a: signed(a & low24, 24)) if kind[0] == "s" else (lambda a: a & low24)
    down = 16 if words[1] == "hi" else 0
    if words[0] == "mul24":
        return lambda a, b: read(a) * read(b) >> down & 0xFFFFFFFF
    if "sat" in words:  # mad24.hi.sat.s32 alone
        return lambda a, b, c: clamped((read(a) * read(b) >> down) + as_signed(c, 32), 32, signed=True) & 0xFFFFFFFF
    return lambda a, b, c: (read(a) * read(b) >> down) + c & 0xFFFFFFFF


def _saturated(head: str, read: Fn, *, signed: bool) -> Fn:
    """add.sat and sub.sat on 32 bits."""
    sign = 1 if head == "add" else -1
    return lambda a, b: clamped(read(a) + sign * read(b), 32, signed=signed) & 0xFFFFFFFF


def with_carry(words: tuple[str, ...]) -> tuple[Fn, bool, bool, int] | None:
    """add.cc, addc, sub.cc, subc, mad.cc, madc: the sum with its carry above it; does it use one, set one; its
    width.
    """
    head, width = words[0], width_of(words[-1]) or 0
    sets, uses = "cc" in words, head in ("addc", "subc", "madc")
    if not (sets or uses) or width not in (32, 64):
        return None
    mask, read = (1 << width) - 1, _numbers(words[-1])
    if head in ("add", "addc"):
        return (lambda a, b, c: (a & mask) + (b & mask) + c), uses, sets, width
    if head in ("sub", "subc"):
        return (lambda a, b, c: (a & mask) - (b & mask) - c & (mask << 1 | 1)), uses, sets, width
    if head in ("mad", "madc") and words[1] in ("lo", "hi"):
        down = width if words[1] == "hi" else 0
        return (lambda a, b, d, c: (read(a) * read(b) >> down & mask) + (d & mask) + c), uses, sets, width
    return None


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


def _selected(a: int, b: int, control: int, chosen: Callable[[int], tuple[int, ...]]) -> int:
    data = (b & 0xFFFFFFFF) << 32 | a & 0xFFFFFFFF
    return sum((data >> 8 * source & 255) << 8 * at for at, source in enumerate(chosen(control & 3)))


_PERMUTATIONS: dict[str, Fn] = {
    "f4e": lambda a, b, c: _selected(a, b, c, lambda n: (n, n + 1, n + 2, n + 3)),
    "b4e": lambda a, b, c: _selected(a, b, c, lambda n: tuple((n - k) % 8 for k in range(4))),
    "rc8": lambda a, b, c: _selected(a, b, c, lambda n: (n, n, n, n)),
    "ecl": lambda a, b, c: _selected(a, b, c, lambda n: tuple(max(n, k) for k in range(4))),
    "ecr": lambda a, b, c: _selected(a, b, c, lambda n: tuple(min(n, k) for k in range(4))),
    "rc16": lambda a, b, c: _selected(a, b, c, lambda n: (0, 1, 0, 1) if n % 2 == 0 else (2, 3, 2, 3)),
}
"""The modes of prmt: the byte of the pair that each byte of the result is."""


def _resized(a: int, width: int, extends: bool, *, clamp: bool) -> int:
    """szext: the low bits of a number, extended."""
    width = min(width, 32) if clamp else width & 31
    low = a & (1 << width) - 1
    if extends and width and low >> width - 1:
        low |= 0xFFFFFFFF & ~((1 << width) - 1)
    return low


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
        number = reader(kind)
        if number is None:
            return None
        if "ftz" in words:
            return _compared(_FLOAT_COMPARE.get(how, how), lambda a: flushed(number(a), kind), how in _UNORDERED)
        return _compared(_FLOAT_COMPARE.get(how, how), number, how in _UNORDERED)
    unsigned = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
    return _compared(unsigned.get(how, how), _numbers("u" + kind[1:] if how in unsigned else kind))


_UNORDERED = frozenset(_FLOAT_COMPARE) - {"num"}
"""The comparisons that hold where one of the two is NaN."""

_DECIDE: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "num": lambda x, y: True, "nan": lambda x, y: False,
}  # fmt: skip


def _compared(how: str, read: Callable[[int], int | float], unordered: bool = False) -> Fn:
    decide = _DECIDE[how]

    def compare(a: int, b: int) -> int:
        x, y = read(a), read(b)
        return int(unordered if x != x or y != y else decide(x, y))

    return compare


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


def extended(fn: Callable[..., int | None], kind: str, width: int) -> Callable[..., int | None]:
    """A signed result, extended to a register of that width ("Operand Size Exceeding Instruction-Type Size")."""
    own = width_of(kind) or 64
    if kind[0] != "s" or width <= own:
        return fn
    top = (1 << width) - (1 << own)

    def extend(*given: int) -> int | None:
        found = fn(*given)
        return found if found is None or not found >> own - 1 else found | top

    return extend


def joined(logic: str | None, join: Fn, a: int | None, b: int | None) -> int | None:
    """Two predicates joined, of which one may not be known."""
    if logic == "and" and (a == 0 or b == 0):
        return 0
    if logic == "or" and (a == 1 or b == 1):
        return 1
    return None if a is None or b is None else join(a, b)


def predicate(head: str) -> Fn:
    """An operation on predicates."""
    table: dict[str, Fn] = {
        "and": lambda a, b: a & b & 1,
        "or": lambda a, b: (a | b) & 1,
        "xor": lambda a, b: (a ^ b) & 1,
        "not": lambda a: ~a & 1,
    }
    return table[head]
