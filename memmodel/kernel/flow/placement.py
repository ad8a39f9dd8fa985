"""Decisions by where variables lie, which PTX does not say, and by the bits of an opaque state.

In: PtxFunction, the instructions that a run executed. Out: `decided_by_place`, what is taken for granted. What cancels
out decides nothing: a pointer into a variable that is compared with the end of the variable. Registers are followed,
memory is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from memmodel.isa.lowered import LoweredInstruction, body_of
from memmodel.program.arith.integers import COMPARISONS
from memmodel.program.expressions import WITHIN, AddressOf, Apply, Const, Expr, Get, leaves_of
from memmodel.program.ops import OnObject
from memmodel.program.uses import results_of
from memmodel.program.warp_ops import OnStack
from memmodel.ptx.module.syntax import PtxFunction

RESERVED_WORD = "%reserved_smem_offset_"
SUMS = {"add": 1, "sub": -1}
EQUALITY, ADDRESS_BITS = ("eq", "ne"), 64
"""No variable has a generic address of 0."""


NO_PLACE = "a kernel that does not"


class OnPlaces(NamedTuple):
    """How a number depends on places: `times`: how often each place is in a sum that gives the number; `varies`: the
    places on which it depends in another way.
    """

    times: frozenset[tuple[str, int]] = frozenset()
    varies: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        return self.varies | {name for name, _ in self.times}

    def plus(self, other: OnPlaces, sign: int = 1) -> OnPlaces:
        """The sum, or the difference."""
        sums = dict(self.times)
        for name, count in other.times:
            sums[name] = sums.get(name, 0) + sign * count
        return OnPlaces(frozenset((name, count) for name, count in sums.items() if count), self.varies | other.varies)

    def or_else(self, other: OnPlaces) -> OnPlaces:
        """A number that is one of two."""
        return self if self == other else OnPlaces(varies=self.names | other.names)


NOWHERE = OnPlaces()

Results = list[tuple[str, Expr | OnPlaces]]
"""What instructions leave in registers: an expression, or a place."""


def decided_by_place(entry: PtxFunction, executed: Collection[int]) -> dict[str, str]:
    """What is taken for granted of places by which a run decides, and what it takes to drop that. An instruction that
    no lane executes has a guard, too.
    """
    body = body_of(entry)
    computed = {slot for at in executed for slot in body[at].writes}
    return {
        f"line {body[at].instruction.line} decides by {', '.join(sorted(names))}, as in this run": NO_PLACE
        for at, (slot, names) in deciding_places(entry).items()
        if slot in computed
    }


@lru_cache(maxsize=8)
def deciding_places(entry: PtxFunction) -> Mapping[int, tuple[int, frozenset[str]]]:
    """By the number of an instruction its guard, and the places on which that depends."""
    results = [result for does in body_of(entry) for result in _results(does)]
    reached = _reached(results)
    places = _places([result for result in results if result[0] in reached], reached)
    guards = {at: guard.slot for at, does in enumerate(body_of(entry)) if (guard := does.instruction.guard)}
    return {at: (slot, names) for at, slot in guards.items() if (names := places.get(str(slot), NOWHERE).names)}


def _results(does: LoweredInstruction) -> Iterator[tuple[str, Expr | OnPlaces]]:
    """What an instruction leaves in registers; a state of an mbarrier object is in a temporary of the instruction."""
    line = does.instruction.line
    if does.row is not None and does.row.of_window:
        return
    for op in does.ops:
        if isinstance(op, OnStack) and op.register is not None:
            yield op.register, _place_of(f"the stack at line {line}")
    states = any(isinstance(op, OnObject) for op in does.ops) and not does.tests_phase
    for register, value in results_of(does.ops).items():
        hidden = any(isinstance(leaf, Get) and leaf.register[0] == "$" for leaf in leaves_of(value))
        yield register, _place_of(f"the state of line {line}") if hidden and states else value


def _place_of(name: str) -> OnPlaces:
    return OnPlaces(frozenset({(name, 1)}))


def _reached(results: Results) -> frozenset[str]:
    """The registers that a place may reach."""
    reached = {
        register for register, value in results if isinstance(value, OnPlaces) or any(map(_named, leaves_of(value)))
    }
    users: dict[str, list[str]] = {}
    for register, value in results:
        for leaf in () if isinstance(value, OnPlaces) else leaves_of(value):
            if isinstance(leaf, Get):
                users.setdefault(leaf.register, []).append(register)
    waiting = list(reached)
    while waiting:
        further = [user for user in users.get(waiting.pop(), ()) if user not in reached]
        reached.update(further)
        waiting += further
    return frozenset(reached)


def _named(leaf: Expr) -> OnPlaces | None:
    """The place that a name stands for."""
    match leaf:
        case AddressOf(name):
            return _place_of(f"the address of {name}")
        case Get(name) if name.startswith(RESERVED_WORD):
            return _place_of(name)
    return None


def _places(results: Results, reached: frozenset[str]) -> Mapping[str, OnPlaces]:
    """How registers depend on places, whichever of their writes was the last."""
    places: dict[str, OnPlaces] = {}
    grown = True
    while grown:
        grown = False
        for register, value in results:
            place = value if isinstance(value, OnPlaces) else _place(value, places, reached)
            if place is not None:
                after = places.get(register, place).or_else(place)
                grown |= places.get(register) != after
                places[register] = after
    return places


def _place(value: Expr, places: Mapping[str, OnPlaces], reached: frozenset[str]) -> OnPlaces | None:
    """How a value depends on places; None if it depends on a register of which nothing is known yet."""
    match value:
        case AddressOf() | Get() if named := _named(value):
            return named
        case Get(register):
            return places.get(register) if register in reached else NOWHERE
        case Apply(op, args, type):
            parts = [_place(arg, places, reached) for arg in args]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            null = op in EQUALITY and args[1] == Const(0) and type.width == ADDRESS_BITS
            return NOWHERE if null else _applied(op, known)
    return NOWHERE


def _applied(op: str, parts: list[OnPlaces]) -> OnPlaces:
    """How the result of an operation depends on places."""
    if op in SUMS:
        return parts[0].plus(parts[1], SUMS[op])
    if op == "cvt" or op.startswith(WITHIN):
        return parts[0]
    if op in COMPARISONS:
        parts = [parts[0].plus(parts[1], -1)]
    return OnPlaces(varies=frozenset[str]().union(*(part.names for part in parts)))
