"""How numbers change where a loop runs more often: by so much for each unit of a parameter, and for each more round.

In: words of opcodes, numbers, their drifts. Out: the drift of results, or None where they do not change evenly. A
number without a drift is the same however often the loops run. Sums and products are modulo a power of two. Where a
number is compared, divided or widened, it is noted how far it may change before it wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import gcd, inf, lcm
from typing import NamedTuple

from memmodel.isa.row import numeric_type
from memmodel.program.arith.integers import bounds
from memmodel.ptx.vocabulary import DataType

MAX_DIVISOR = 1 << 20
MOST_PERIODS = 1 << 64
UNTYPED = DataType("u", 64)
"""How a number without a type is read."""

READ = ("cvt", "shr", "div", "rem", "bfe", "min", "max")
"""First words of instructions that read their operands as numbers of their type, not modulo a power of two."""

ROUNDED = frozenset(("sat", "relu"))
"""Words of instructions whose result stays at a bound."""

ORDERS: dict[str, Callable[[float, float], bool | None]] = {
    "lt": lambda low, high: True if high < 0 else False if low >= 0 else None,
    "gt": lambda low, high: True if low > 0 else False if high <= 0 else None,
    "eq": lambda low, high: False if low > 0 or high < 0 else True if low == high else None,
}
"""Whether a number that lies between two others is below zero, above it, zero. None: not known."""

OPPOSITE = {"ge": "lt", "le": "gt", "ne": "eq", "hs": "lt", "ls": "gt"}
SAME = {"lt": "lt", "gt": "gt", "eq": "eq", "lo": "lt", "hi": "gt"}


class Drift(NamedTuple):
    """`grows`: for each unit by which the parameter is larger. `moves`: for each period of rounds that is added."""

    grows: Fraction
    moves: int


STILL = Drift(Fraction(0), 0)
UNEVEN = None
"""A number that does not change evenly."""

Drifting = Drift | None


class DriftingNumber(NamedTuple):
    """An operand, read as its type, and its drift."""

    value: int
    drift: Drifting


class Drifts:
    """The drifts that one parameter causes. `divisor`: the parameter grows by its multiples, so that quotients are
    exact. `rate`: its growth for each period of rounds, as the ends of the loops show; None if none did so far. `torn`:
    the loops that the parameter decides show different rates.
    """

    def __init__(self) -> None:
        self.divisor = 1
        self.rate: Fraction | None = None
        self.torn = False
        self._room: dict[tuple[int, Drift], int] = {}
        """How far numbers may go up (1) or down (-1), by their drift."""

    def step(self) -> int | None:
        """The least number that the parameter may grow by, and all its multiples."""
        if self.rate is None or self.torn:
            return None
        return lcm(self.divisor, self.rate.numerator)

    def periods(self) -> int:
        """How many periods may be added before a number wraps."""
        periods = [MOST_PERIODS]
        for (sign, drift), room in self._room.items():
            growth = drift.grows * (self.rate or 1)
            by = max(sign * (drift.moves + growth), sign * growth)  # as in `truth`
            periods += [int(room / by)] if by > 0 else []
        return min(periods)

    def read(self, number: DriftingNumber, kind: str) -> None:
        """A number that drifts is read as a number of that type."""
        self._keeps(number, *bounds(numeric_type(kind) or UNTYPED))

    def _keeps(self, number: DriftingNumber, least: int, most: int) -> None:
        """A number stays between two others."""
        drift = number.drift or STILL
        for sign, room in ((1, most - number.value), (-1, number.value - least)):
            if drift != STILL:
                self._room[sign, drift] = min(room, self._room.get((sign, drift), room))

    def done(self, drift: Drifting) -> Drifting:
        """The drift of a number after the added rounds of a loop."""
        if drift is None or not drift.moves:
            return drift
        return None if self.rate is None else Drift(drift.grows + drift.moves / self.rate, 0)

    # ---- instructions --------------------------------------------------------------------------------------------

    def computed(self, words: tuple[str, ...], operands: list[DriftingNumber]) -> Drifting:
        """The drift of the result of an instruction on integers. At least one operand has a drift."""
        head, kind = words[0], words[-1]
        types = [numeric_type(word) for word in (kind, words[-2])]
        source, target = types if head == "cvt" else types[:1] * 2
        if any(operand.drift is None for operand in operands) or source is None or target is None:
            return UNEVEN
        if source.floating or target.floating or source.lanes > 1:
            return UNEVEN
        width = target.width
        if head in READ or "wide" in words or "hi" in words:
            for operand in operands[:2]:
                self.read(operand, kind)
        drift = self._of(words, head, operands)
        width *= 2 if "wide" in words else 1
        # Fewer bits wrap soon.
        return drift if drift is None or width >= 32 else self._divided(drift, 1 << width, rest=True)

    def _of(self, words: tuple[str, ...], head: str, operands: list[DriftingNumber]) -> Drifting:
        if not ROUNDED.isdisjoint(words):
            return UNEVEN
        drifts = [drift.drift or STILL for drift in operands]
        numbers = [None if drift != STILL else operand.value for drift, operand in zip(drifts, operands, strict=True)]
        if head in ("mov", "cvt", "cvta"):
            return drifts[0]
        if head in ("add", "sub") and len(operands) == 2:
            return _plus(drifts[0], drifts[1], 1 if head == "add" else -1)
        if head in ("neg", "not"):
            return _plus(STILL, drifts[0], -1)
        if head in ("mul", "mad") and words[1] in ("lo", "hi", "wide"):
            at = 0 if numbers[1] is not None else 1
            factor = numbers[1 - at]
            if factor is None:
                return UNEVEN
            product: Drifting = _plus(STILL, drifts[at], factor)
            if words[1] == "hi":
                product = self._high(operands[at], factor, _width(words))
            return product if product is None or head == "mul" else _plus(product, drifts[2], 1)
        if head in ("shl", "shr", "div", "rem", "bfe"):
            return self._by_number(words, operands, drifts, numbers)
        if head in ("and", "or", "xor") and len(operands) == 2 and (numbers[0] is None) != (numbers[1] is None):
            at = numbers.index(None)
            return self._masked(head, drifts[at], numbers[1 - at] or 0, _width(words))
        if head in ("min", "max") and len(operands) == 2:
            first = self.truth("lt" if head == "min" else "gt", operands[0], operands[1])
            return UNEVEN if first is None else drifts[0 if first else 1]
        return UNEVEN

    def _high(self, number: DriftingNumber, factor: int, width: int) -> Drifting:
        """The high half of a product: the step of the whole product is a multiple of 2^width and a small rest, which
        adds up until it carries. (A quotient by 3 is the high half of a product with (2^65 + 1) / 3.)
        """
        drift, step = number.drift or STILL, 1
        if drift.grows:
            step = self.step() or 0
            if not step or (drift.grows * step).denominator != 1:
                return UNEVEN
            self.divisor = step
        halves, rests = [], []
        for slope in (int(drift.grows * step), drift.moves):
            half = (slope * factor + (1 << width - 1)) >> width
            halves.append(half)
            rests.append(slope * factor - (half << width))
        rest = DriftingNumber(number.value * factor & (1 << width) - 1, Drift(Fraction(rests[0], step), rests[1]))
        self.read(rest, f"u{width}")
        return Drift(Fraction(halves[0], step), halves[1])

    def _by_number(
        self, words: tuple[str, ...], operands: list[DriftingNumber], drifts: list[Drift], numbers: list[int | None]
    ) -> Drifting:
        """Shifts, quotients and remainders of a number that is not negative by a number that does not drift."""
        head, by = words[0], numbers[1]
        if by is None or (head == "bfe" and numbers[2] is None):
            return UNEVEN
        if head == "shl":
            return _plus(STILL, drifts[0], 1 << by) if by < 64 else STILL
        width = _width(words)
        if head == "shr" and by == width - 1 and operands[0].value >> by == 0:
            self._keeps(operands[0], 0, (1 << by) - 1)
            return STILL
        if head == "shr":
            return self._divided(drifts[0], 1 << min(by, 64))
        if operands[0].value < 0 or (by == 0 and head != "bfe"):
            return UNEVEN
        self.read(operands[0], f"u{width}")
        if head == "bfe":
            if words[-1][0] == "s":
                return UNEVEN
            shifted = self._divided(drifts[0], 1 << (by & 255))
            return None if shifted is None else self._divided(shifted, 1 << ((numbers[2] or 0) & 255), rest=True)
        return self._divided(drifts[0], by, rest=head == "rem")

    def _masked(self, head: str, drift: Drift, mask: int, width: int) -> Drifting:
        """Bit operations with a mask that leaves all high bits alone, or only low ones."""
        mask &= (1 << width) - 1
        if head != "and":
            return drift if self._divided(drift, 1 << mask.bit_length(), rest=True) is not None else UNEVEN
        if mask >> width - 1 & 1:  # rounds down
            low = (~mask & (1 << width) - 1).bit_length()
            return drift if self._divided(drift, 1 << low, rest=True) is not None else UNEVEN
        return self._divided(drift, 1 << mask.bit_length(), rest=True)

    def _divided(self, drift: Drift, by: int, *, rest: bool = False) -> Drifting:
        """The drift of a quotient, rounded down, or of the remainder; both parts must be multiples of the divisor."""
        if drift.moves % by:
            return UNEVEN
        if drift.grows:
            need = drift.grows.denominator * by // gcd(drift.grows.numerator, drift.grows.denominator * by)
            if lcm(self.divisor, need) > MAX_DIVISOR:
                return UNEVEN
            self.divisor = lcm(self.divisor, need)
        return STILL if rest else Drift(drift.grows / by, drift.moves // by)

    # ---- comparisons ---------------------------------------------------------------------------------------------

    def truth(self, how: str, first: DriftingNumber, second: DriftingNumber) -> bool | None:
        """The result of a comparison, if it is the same however often the loops run."""
        if first.drift is None or second.drift is None:
            return None
        grows, moves = _plus(first.drift, second.drift, -1)
        if grows and moves and grows * moves < 0:
            rate = -moves / grows
            self.torn |= self.rate is not None and self.rate != rate
            self.rate = rate
        # With t ≥ 0 periods more than the m ≥ 0 that have been run, the parameter is larger by rate * (m + t).
        each = grows * (self.rate or 1) if grows else Fraction(0)
        distance, slopes = first.value - second.value, (moves + each, each)
        low = -inf if any(slope < 0 for slope in slopes) else distance
        high = inf if any(slope > 0 for slope in slopes) else distance
        if how in SAME:
            return ORDERS[SAME[how]](low, high)
        if how not in OPPOSITE:
            return None
        opposite = ORDERS[OPPOSITE[how]](low, high)
        return None if opposite is None else not opposite


def _plus(first: Drift, second: Drift, factor: int) -> Drift:
    return Drift(first.grows + factor * second.grows, first.moves + factor * second.moves)


def centred(difference: int, width: int) -> int:
    """A difference modulo 2^width, as the number nearest to zero."""
    return DataType("s", width).wrap(difference)


def _width(words: tuple[str, ...]) -> int:
    """The bits of the last type of an opcode."""
    type = numeric_type(words[-1])
    return 32 if type is None else type.width
