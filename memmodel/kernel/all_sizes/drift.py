"""How numbers change when a loop runs more often: the drift of a number.

In: an expression, and the numbers in its leaves with their drifts. Out: the drift of its value, or None if it does not
change evenly. A number whose drift is zero is the same however often the loops run. The drift of a number is modulo a
power of two, by the width of its type. Where a number is compared, divided or extended, it is noted how far it may
change before it wraps. The result of an operation that is not known here does not change evenly if an operand drifts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd, inf, lcm
from typing import NamedTuple

from memmodel.program.arith import COMPARISONS, operation, result_type
from memmodel.program.arith.integers import bounds
from memmodel.program.expressions import Apply, Const, Expr, stripped
from memmodel.program.unknowns import DECIDES, Leaf
from memmodel.ptx.vocabulary import PREDICATE, DataType

MAX_DIVISOR = 1 << 20
MOST_PERIODS = 1 << 64
NARROW = 32
"""Numbers of fewer bits wrap soon. In registers they are followed only if each period adds a multiple of all values."""

INTEGER = DataType("s", 256)
"""The type of a constant: it has every number that instructions have."""

ORDERS: dict[str, Callable[[float, float], bool | None]] = {
    "lt": lambda low, high: True if high < 0 else False if low >= 0 else None,
    "gt": lambda low, high: True if low > 0 else False if high <= 0 else None,
    "eq": lambda low, high: False if low > 0 or high < 0 else True if low == high else None,
}
"""Whether a number that lies between two others is below zero, above it, zero. None: not known."""

OPPOSITE = {"ge": "lt", "le": "gt", "ne": "eq"}


class Drift(NamedTuple):
    """How much a number changes: for each unit by which the parameter is larger, and for each period of rounds that is
    added.
    """

    by_parameter: Fraction
    by_period: int


STILL = Drift(Fraction(0), 0)
UNEVEN = None
"""A number that does not change evenly."""

Drifting = Drift | None


class DriftingNumber(NamedTuple):
    """A number of a type, and its drift. One that is not known (None) does not change evenly."""

    value: int | None
    type: DataType
    drift: Drifting


Leaves = Callable[[Leaf], DriftingNumber]
"""The numbers in registers."""


class Drifts:
    """The drifts that one parameter causes. `divisor`: the parameter grows by its multiples, so that quotients are
    exact. `rate`: its growth for each period of rounds, as the ends of the loops show; None if none did so far.
    `rates_differ`: the loops that the parameter decides show different rates.
    """

    def __init__(self) -> None:
        self.divisor = 1
        self.rate: Fraction | None = None
        self.rates_differ = False
        self._room: dict[tuple[int, Drift], int] = {}
        """How far numbers may go up (1) or down (-1), by their drift."""

    def step(self) -> int | None:
        """The least number that the parameter may grow by, and all its multiples."""
        if self.rate is None or self.rates_differ:
            return None
        return lcm(self.divisor, self.rate.numerator)

    def periods(self) -> int:
        """The number of periods that may be added before a number wraps."""
        periods = [MOST_PERIODS]
        for (sign, drift), room in self._room.items():
            growth = drift.by_parameter * (self.rate or 1)
            by = max(sign * (drift.by_period + growth), sign * growth)  # as in `_truth`
            periods += [int(room / by)] if by > 0 else []
        return min(periods)

    def after_loop(self, drift: Drifting) -> Drifting:
        """The drift of a number after the added rounds of a loop."""
        if drift is None or not drift.by_period:
            return drift
        return None if self.rate is None else _drift(drift.by_parameter + drift.by_period / self.rate, 0)

    # ---- expressions ---------------------------------------------------------------------------------------------

    def assigned(self, expr: Expr, width: int, leaves: Leaves) -> Drifting:
        """The drift of a register of `width` bits that receives the value of an expression."""
        number = self.number(expr, leaves)
        kept = min(width, number.type.width)
        if number.drift is None or kept >= NARROW:
            return self._in(number, DataType("b", width)).drift
        return self._divided(number.drift, 1 << kept, rest=True)

    def number(self, expr: Expr, leaves: Leaves) -> DriftingNumber:
        """The value of an expression, and its drift."""
        expr = stripped(expr)
        if isinstance(expr, Const):
            return DriftingNumber(expr.value, INTEGER, STILL)
        if not isinstance(expr, Apply):
            return leaves(expr)
        args, type = [self.number(arg, leaves) for arg in expr.args], result_type(expr.op, expr.type)
        if expr.op == "selp" and args[2].drift == STILL:
            return self._in(args[0] if args[2].value else args[1], type)
        decides = DECIDES.get(expr.op) if type == PREDICATE else None
        if any(decides is not None and (arg.value, arg.drift) == (decides, STILL) for arg in args):
            return DriftingNumber(decides, type, STILL)
        known = [arg.value for arg in args if arg.value is not None]
        value = operation(expr.op, expr.type)(*known) if len(known) == len(args) else None
        if value is None:
            return DriftingNumber(None, type, UNEVEN)
        drift: Drifting = STILL
        if any(arg.drift != STILL for arg in args):
            drift = UNEVEN if any(arg.drift is None for arg in args) else self._result(expr.op, args, expr.type)
        return DriftingNumber(type.wrap(value), type, drift)

    def _in(self, number: DriftingNumber, type: DataType) -> DriftingNumber:
        """A number as an operand of that type. One of fewer bits is extended."""
        if type.width > number.type.width:
            self._read(number)
        return DriftingNumber(None if number.value is None else type.wrap(number.value), type, number.drift)

    def _exact(self, number: DriftingNumber, type: DataType) -> DriftingNumber:
        """A number that is read as a number of that type, not modulo a power of two."""
        operand = self._in(number, type)
        self._read(operand)
        return operand

    def _read(self, number: DriftingNumber) -> None:
        self._keeps(number, *bounds(number.type))

    def _keeps(self, number: DriftingNumber, least: int, most: int) -> None:
        """A number stays between two others."""
        if number.drift is None or number.drift == STILL or number.value is None:
            return
        for sign, room in ((1, most - number.value), (-1, number.value - least)):
            self._room[sign, number.drift] = min(room, self._room.get((sign, number.drift), room))

    def multiple(self, drift: Drifting, divisor: int) -> bool:
        """True if a number changes by multiples of a divisor."""
        return divisor == 1 or (drift is not None and self._divided(drift, divisor, rest=True) is not None)

    # ---- operations ----------------------------------------------------------------------------------------------

    def _result(self, op: str, args: Sequence[DriftingNumber], type: DataType) -> Drifting:
        """The drift of what an operation gives. All operands are known and have a drift, or are still."""
        if type.floating or type.lanes > 1:
            return UNEVEN
        if op in COMPARISONS:
            truth = self._truth(op, self._exact(args[0], type), self._exact(args[1], type))
            return UNEVEN if truth is None else STILL
        match op:
            case "cvt":
                return self._in(args[0], type).drift
            case "add":
                return self._sum(args, type, 1)
            case "sub":
                return self._sum(args, type, -1)
            case "neg" | "not":
                return _times(self._in(args[0], type).drift, -1)
            case "mul":
                return self._product([self._in(arg, type) for arg in args])
            case "mul.wide":
                return self._product([self._exact(arg, type) for arg in args])
            case "mul.hi":
                return self._high([self._exact(arg, type) for arg in args], type.width)
            case "and" | "or" | "xor":
                return self._masked(op, [self._in(arg, type) for arg in args], type)
            case "min" | "max":
                first, second = (self._exact(arg, type) for arg in args)
                less = self._truth("lt" if op == "min" else "gt", first, second)
                return UNEVEN if less is None else first.drift if less else second.drift
            case "shl" | "shr" | "div" | "rem" | "bfe":
                return self._by_number(op, args, type)
        return UNEVEN

    def _sum(self, args: Sequence[DriftingNumber], type: DataType, factor: int) -> Drifting:
        first, second = (self._in(arg, type).drift for arg in args)
        return _plus(first, second, factor)

    def _product(self, args: Sequence[DriftingNumber]) -> Drifting:
        """The drift of a product of a number that drifts and one that does not."""
        drifting, factor = _by_drift(args)
        return UNEVEN if factor is None else _times(drifting.drift, factor)

    def _high(self, args: Sequence[DriftingNumber], width: int) -> Drifting:
        """The high half of a product: the step of the whole product is a multiple of 2^width and a small rest, which
        adds up until it carries. (A quotient by 3 is the high half of a product with (2^65 + 1) / 3.)
        """
        number, factor = _by_drift(args)
        if factor is None or number.drift is None or number.value is None:
            return UNEVEN
        drift, step = number.drift, 1
        if drift.by_parameter:
            step = self.step() or 0
            if not step or (drift.by_parameter * step).denominator != 1:
                return UNEVEN
            self.divisor = step
        halves, rests = [], []
        for slope in (int(drift.by_parameter * step), drift.by_period):
            half = (slope * factor + (1 << width - 1)) >> width
            halves.append(half)
            rests.append(slope * factor - (half << width))
        low = DataType("u", width)
        self._read(DriftingNumber(low.wrap(number.value * factor), low, Drift(Fraction(rests[0], step), rests[1])))
        return _drift(Fraction(halves[0], step), halves[1])

    def _by_number(self, op: str, args: Sequence[DriftingNumber], type: DataType) -> Drifting:
        """Shifts, quotients, remainders and fields of a number, by numbers that do not drift."""
        by = [arg.value for arg in args[1:] if arg.drift == STILL]
        if len(by) < len(args) - 1 or None in by:
            return UNEVEN
        amount = (by[0] or 0) & 0xFFFFFFFF
        if op == "shl":
            return _times(self._in(args[0], type).drift, 1 << min(amount, type.width))
        number = self._exact(args[0], type)
        assert number.value is not None and number.drift is not None
        if op == "shr":
            if amount == type.width - 1 and number.value >> amount == 0:  # the highest bit
                self._keeps(number, 0, (1 << amount) - 1)
                return STILL
            return self._divided(number.drift, 1 << min(amount, type.width))
        if number.value < 0 or (op == "bfe" and type.signed):
            return UNEVEN
        self._keeps(number, *bounds(DataType("u", type.width)))
        if op == "bfe":
            field = self._divided(number.drift, 1 << (amount & 0xFF))
            return None if field is None else self._divided(field, 1 << ((by[1] or 0) & 0xFF), rest=True)
        divisor = type.wrap(by[0] or 0)
        return UNEVEN if divisor <= 0 else self._divided(number.drift, divisor, rest=op == "rem")

    def _masked(self, op: str, args: Sequence[DriftingNumber], type: DataType) -> Drifting:
        """Bit operations with a mask that leaves all high bits alone, or only low ones."""
        number, mask = _by_drift(args)
        if mask is None or number.drift is None:
            return UNEVEN
        mask &= type.mask
        if op != "and":
            kept = mask.bit_length()
        elif mask >> type.width - 1:  # rounds down
            kept = (~mask & type.mask).bit_length()
        else:
            return self._divided(number.drift, 1 << mask.bit_length(), rest=True)
        return number.drift if self._divided(number.drift, 1 << kept, rest=True) is not None else UNEVEN

    def _divided(self, drift: Drift, by: int, *, rest: bool = False) -> Drifting:
        """The drift of a quotient, rounded down, or of the remainder; both parts must be multiples of the divisor."""
        if drift.by_period % by:
            return UNEVEN
        if drift.by_parameter:
            need = (
                drift.by_parameter.denominator
                * by
                // gcd(drift.by_parameter.numerator, drift.by_parameter.denominator * by)
            )
            if lcm(self.divisor, need) > MAX_DIVISOR:
                return UNEVEN
            self.divisor = lcm(self.divisor, need)
        return STILL if rest else _drift(drift.by_parameter / by, drift.by_period // by)

    def _truth(self, how: str, first: DriftingNumber, second: DriftingNumber) -> bool | None:
        """The result of a comparison, if it is the same however often the loops run."""
        if first.drift is None or second.drift is None or first.value is None or second.value is None:
            return None
        grows, moves = _plus(first.drift, second.drift, -1)
        if grows and moves and grows * moves < 0:
            rate = -moves / grows
            self.rates_differ |= self.rate is not None and self.rate != rate
            self.rate = rate
        # With t ≥ 0 periods more than the m ≥ 0 that have been run, the parameter is larger by rate * (m + t).
        each = grows * (self.rate or 1) if grows else Fraction(0)
        distance, slopes = first.value - second.value, (moves + each, each)
        low = -inf if any(slope < 0 for slope in slopes) else distance
        high = inf if any(slope > 0 for slope in slopes) else distance
        if how in OPPOSITE:
            opposite = ORDERS[OPPOSITE[how]](low, high)
            return None if opposite is None else not opposite
        return ORDERS[how](low, high)


def _by_drift(args: Sequence[DriftingNumber]) -> tuple[DriftingNumber, int | None]:
    """The operand of two that drifts, and the value of the other one; None if that drifts, too."""
    first, second = args
    number, other = (first, second) if second.drift == STILL else (second, first)
    return number, other.value if other.drift == STILL else None


def _drift(grows: Fraction, moves: int) -> Drift:
    return Drift(grows, moves) if grows or moves else STILL


def _plus(first: Drifting, second: Drifting, factor: int) -> Drift:
    assert first is not None and second is not None
    return _drift(first.by_parameter + factor * second.by_parameter, first.by_period + factor * second.by_period)


def _times(drift: Drifting, factor: int) -> Drift:
    return _plus(STILL, drift, factor)
