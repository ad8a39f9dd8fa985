"""A run in which values that nobody knows are terms: which stores leave the same bytes, whatever the data is.

In: the `Code` of an entry, the stores that are asked about. Out: in the trace, what these stores leave: a number below
zero for a value that is not known. Settled here: what leads to these stores through registers and memory is followed;
of other instructions, strong loads and atomic operations every result is a value of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from memmodel.isa.lowered import registers
from memmodel.kernel.arithmetic.alu import comparison, width_of, with_carry
from memmodel.kernel.flow.detours import Detour
from memmodel.kernel.flow.registers import written
from memmodel.kernel.machine.accesses import space_of
from memmodel.kernel.machine.code import Code, Follower, begins
from memmodel.kernel.machine.collective.exchange import shuffle_source
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.rows import LANES, Value
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.cells import MemoryTerms, OwnAccess
from memmodel.kernel.machine.values.lanes import Step, forgetting
from memmodel.kernel.machine.values.slices import Slices
from memmodel.kernel.machine.values.specials import special
from memmodel.kernel.machine.values.terms import Terms
from memmodel.kernel.machine.values.widths import wider
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess
from memmodel.program.warp_ops import SHUFFLES, AmongLanes, Exchange
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import (
    Blank,
    Imm,
    Mem,
    Negated,
    Operand,
    Pair,
    Part,
    Real,
    Register,
    Special,
    Sym,
    TensorOperand,
    Vector,
)

LOGIC = ("and", "or", "xor", "not")
VOTES = (Exchange.ALL, Exchange.ANY, Exchange.UNIFORM, Exchange.BALLOT)
NAMED = (*SHUFFLES, *VOTES, Exchange.REDUCE)
"""What is a function of the values that the lanes give."""
MATRICES = ("ldmatrix", "stmatrix")
LOADS, STORES = ("ld", "ldu", "ldmatrix"), ("st", "stmatrix")
MADE = Callable[[Warp, Lanes], list[list[int]]]
"""For each lane the terms of the registers that an instruction writes."""

Moved = WeakAccess | OwnAccess


class Naming(Follower):
    """Follows values through a run. `stores`: the instructions whose values are asked for."""

    def __init__(self, body: Sequence[PtxInstruction], stores: frozenset[int], *, ordered: bool = False) -> None:
        self.terms = Terms(ordered=ordered)
        self.slices = Slices(self.terms)
        self.stores = stores
        self._cells = MemoryTerms(
            self.terms, self.slices, frozenset(one.number for one in body if one.words[0] == "discard")
        )
        self._slots, self._moves = followed(body, stores)
        self._codes: Sequence[Code] = ()
        self._unsure: frozenset[int] = frozenset()

    def follow(self, machine: Machine, codes: Sequence[Code], assumed: Sequence[str]) -> None:
        """Make a run do so, before it begins."""
        machine.noted, self._codes = self._cells, codes
        self._unsure = frozenset(n for n, one in enumerate(codes) if not _function(one, assumed))
        for code in codes:
            one = code.instruction
            slots = [slot for slot in written(one) if slot in self._slots]
            if one.words[0] in STORES and one.number in self._moves and code.blocking is not None:
                code.blocking = self._stored(one, code.blocking)
            elif slots and code.pure is not None:
                made = None if begins(one, assumed) or with_carry(one.words) else self._computed(one)
                code.pure = self._named(one, code.pure, made)
            elif slots and code.blocking is not None:
                code.blocking = self._waited(code, code.blocking)

    # ---- registers -------------------------------------------------------------------------------------------

    def read(self, operand: Operand, warp: Warp, lane: int, width: int) -> int:
        """The term of an operand."""
        terms = self.terms
        if isinstance(operand, Register):
            value = warp.registers[operand.slot][lane]
            if value is not None:
                return terms.number(value)
            found = warp.names.get((operand.slot, lane))
            if found is None:
                found = warp.names[operand.slot, lane] = self.slices.has(terms.fresh(), operand.width)
            return found
        if isinstance(operand, Negated):
            return terms.logic("not", self.read(operand.operand, warp, lane, 1))
        if isinstance(operand, Imm):
            return terms.number(operand.value & (1 << width) - 1)
        if isinstance(operand, Real):
            return terms.number(operand.bits)
        if isinstance(operand, Special):
            value = special(operand.name)(warp)[lane]
            return terms.fresh() if value is None else terms.number(value)
        if isinstance(operand, Sym):
            return terms.of("address", operand.name, operand.offset, warp.cta.number)
        if isinstance(operand, Part):
            return terms.of("bits", operand.selector, self.read(operand.register, warp, lane, width))
        if isinstance(operand, Vector):
            part = width // len(operand.items)
            return self.slices.packed([self.read(item, warp, lane, part) for item in operand.items], part)
        return terms.fresh()

    def _leave(self, warp: Warp, lane: int, slots: Iterable[int | None], made: Sequence[int] | None) -> None:
        """Registers that an instruction has written."""
        for number, slot in enumerate(slots):
            if slot is None:
                continue
            if made is None or warp.registers[slot][lane] is not None:
                warp.names.pop((slot, lane), None)
            else:
                warp.names[slot, lane] = made[number]

    def detoured(self, warp: Warp, lanes: Lanes, branch: int, way: Detour) -> dict[tuple[int, int], int]:
        """What is in the registers where the sides of a branch on unknown data meet: a function of what was there."""
        if not self._unsure.isdisjoint(way.inside):
            return {}
        inside = [self._codes[at].instruction for at in (branch, *way.inside)]
        found = {item.slot: item for one in inside for item in _registers(one) if item.slot in self._slots}
        given, slots = [found[slot] for slot in sorted(found)], [found[slot] for slot in way.slots if slot in found]
        named = {}
        for lane in lanes:
            whole = self.terms.of("detour", branch, *(self.read(item, warp, lane, item.width) for item in given))
            for item in slots:
                named[item.slot, lane] = self.slices.has(self.terms.of("result", item.slot, whole), item.width)
        return named

    def _named(self, one: PtxInstruction, step: Step, made: MADE | None) -> Step:
        """An instruction that only computes."""
        slots = _targets(one)

        def change(warp: Warp, lanes: Lanes) -> None:
            found = None if made is None else made(warp, lanes)
            step(warp, lanes)
            for number, lane in enumerate(lanes):
                self._leave(warp, lane, slots, None if found is None else found[number])

        return change

    def _computed(self, one: PtxInstruction) -> MADE:
        """What an instruction computes, as a function of its operands."""
        words, (target, *sources) = one.words, one.operands
        width, terms = width_of(words[-1]) or 64, self.terms
        count, made = len(_targets(one)), target.width if isinstance(target, Register) else 0

        def of(warp: Warp, lane: int) -> list[int]:
            given = [self.read(item, warp, lane, width) for item in sources]
            if words[0] == "mov" and len(given) == 1:
                if not isinstance(target, Vector):
                    return given
                return [self.slices.part(given[0], n * (width // count), width // count) for n in range(count)]
            if words[0] == "selp":
                return [self.slices.has(terms.selected(given[2], given[0], given[1]), made or width)]
            if words[0] == "setp":
                return self._tested(words, given, count)
            if words[0] in LOGIC and words[-1] == "pred":
                return [terms.logic(words[0], *given)]
            moved = self.slices.computed(words, given, width)
            found = terms.computed(words, given) if moved is None else moved
            return [
                self.slices.has(found, made) if made else found,
                *(terms.of("result", n, found) for n in range(1, count)),
            ]

        return lambda warp, lanes: [of(warp, lane) for lane in lanes]

    def _tested(self, words: tuple[str, ...], given: list[int], count: int) -> list[int]:
        """setp: a comparison, perhaps joined with a predicate, and what is left if it does not hold."""
        terms, fn = self.terms, comparison(words)
        holds = None if fn is None else terms.tested(fn, given[0], given[1])
        if holds is None:
            holds = terms.compared(words[1], words[-1], "ftz" in words, given[0], given[1])
        if holds is None:
            whole = terms.of(words, *given)
            return [terms.of("result", n, whole) for n in range(count)]
        found = [holds] if count == 1 else [holds, terms.logic("not", holds)]
        join = next((word for word in words[2:-1] if word in LOGIC), None)
        return found if join is None else [terms.logic(join, one, given[2]) for one in found]

    # ---- lanes that look at one another ----------------------------------------------------------------------

    def _waited(self, code: Code, step: Blocking) -> Blocking:
        """An instruction that does more than compute."""
        one = code.instruction
        slots, head = _targets(one), one.words[0]
        read = self._loaded(one, len(slots)) if head in LOADS and one.number in self._moves else None
        among = next((op for op in code.ops if isinstance(op, AmongLanes)), None)
        made = self._transposed(one) if head == "movmatrix" else None
        if among is not None and among.exchange in NAMED:
            made = self._team(one, among)

        def change(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            before = None if made is None else made(warp, lanes)
            single, many = len(machine.run.single), len(machine.run.lanes)
            self._cells.moves.clear()
            if not step(machine, warp, lanes, group):
                return False
            found = before if read is None else read(warp, lanes, self._since(machine, single, many))
            for number, lane in enumerate(lanes):
                made_here = None if found is None or len(found[number]) < len(slots) else found[number]
                self._leave(warp, lane, slots, made_here)
            return True

        return change

    def _transposed(self, one: PtxInstruction) -> MADE:
        """movmatrix: what each lane gets of the matrix that all have."""
        data = one.operands[1]
        return lambda warp, lanes: self._turned([[self.read(data, warp, lane, 32)] for lane in lanes])

    def _team(self, one: PtxInstruction, among: AmongLanes) -> MADE:
        """Shuffles, reductions, votes: what each lane gets of those that give the same mask."""
        terms, words = self.terms, one.words
        data, *rest = one.operands[1:]

        def of(warp: Warp, lanes: Lanes) -> list[list[int]]:
            synced = among.mask is not None
            masks = [terms.known(self.read(rest[-1], warp, lane, 32)) if synced else 0 for lane in lanes]
            given = {lane: self.read(data, warp, lane, 32) for lane in lanes}
            found = []
            for lane, mask in zip(lanes, masks, strict=True):
                team = [other for other, same in zip(lanes, masks, strict=True) if same == mask]
                if among.exchange in SHUFFLES:
                    number, bounds = (terms.known(self.read(item, warp, lane, 32)) for item in rest[:2])
                    source, _ = shuffle_source(among.exchange, lane, number, bounds) or (-1, 0)
                    found.append([given[source] if source in team else terms.fresh(), terms.fresh()])
                elif among.exchange is Exchange.REDUCE:
                    found.append([self.slices.has(terms.of(words, *sorted(given[other] for other in team)), 32)])
                else:
                    found.append([terms.of(words, *((other, given[other]) for other in team))])
            return found

        return of

    # ---- memory ----------------------------------------------------------------------------------------------

    def _loaded(self, one: PtxInstruction, count: int) -> Callable[[Warp, Lanes, list[Moved]], list[list[int]]]:
        """What a load brings, as it is in memory after the accesses that it made; nothing if that is not known."""
        what, unit = one.operands[0], _unit(one)
        items = what.items if isinstance(what, Vector) else (what,)
        extends = wider(one.words[-1], unit, items)

        def of(warp: Warp, lanes: Lanes, accesses: list[Moved]) -> list[list[int]]:
            found: dict[int, list[int]] = {warp.threads[lane].number: [] for lane in lanes}
            for access, _, first in _pieces(accesses, unit, count):
                term = self._cells.load(access.block, first, unit)
                found[access.thread].append(self.terms.of("extended", unit, term) if extends else term)
            each = [found[warp.threads[lane].number] for lane in lanes]
            return self._turned(each) if "trans" in one.words else each

        return of

    def _turned(self, each: list[list[int]]) -> list[list[int]]:
        """Matrices of which lanes have elements, transposed; nothing is known of them if lanes are missing."""
        if len(each) < LANES or len({len(one) for one in each}) > 1:
            return [[self.terms.fresh() for _ in one] for one in each]
        turned = [self.slices.turned(matrix) for matrix in zip(*each, strict=True)]
        return [list(one) for one in zip(*turned, strict=True)]

    def _stored(self, one: PtxInstruction, step: Blocking) -> Blocking:
        what, unit, terms = one.operands[1], _unit(one), self.terms
        items = what.items if isinstance(what, Vector) else (what,)
        bits, asked = 8 * unit, one.number in self.stores

        def element(item: Operand, warp: Warp, lane: int) -> int:
            term = self.read(item, warp, lane, bits)
            known = terms.known(term)
            if known is not None:
                return terms.number(known & (1 << bits) - 1)
            return term if isinstance(item, Register) and item.width == bits else self.slices.part(term, 0, bits)

        def change(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            each = [[element(item, warp, lane) for item in items] for lane in lanes]
            each = self._turned(each) if "trans" in one.words else each
            given = {warp.threads[lane].number: row for lane, row in zip(lanes, each, strict=True)}
            single, many = len(machine.run.single), len(machine.run.lanes)
            self._cells.moves.clear()
            if not step(machine, warp, lanes, group):
                return False
            left: dict[tuple[int, int], list[int]] = {}
            for access, n, first in _pieces(self._since(machine, single, many), unit, len(items)):
                term = given[access.thread][n]
                self._cells.store(access.block, first, unit, term)
                left.setdefault((access.thread, access.first), []).append(term)
            if asked:
                self._tell(machine, single, many, left)
            return True

        return change

    def _tell(self, machine: Machine, single: int, many: int, left: dict[tuple[int, int], list[int]]) -> None:
        """Note in the trace what a thread has stored at a place, where that is not known."""
        run = machine.run

        def told(thread: int, first: int, value: Value) -> Value:
            terms = left.get((thread, first))
            return value if value is not None or terms is None else -1 - self.terms.of("stored", *terms)

        for n in range(single, len(run.single)):
            one = run.single[n]
            run.single[n] = one._replace(value=told(one.thread, one.first, one.value))
        for n in range(many, len(run.lanes)):
            row: LaneAccesses = run.lanes[n]
            known = row.values or [None] * len(row.threads)
            values = [told(*place) for place in zip(row.threads, row.firsts, known, strict=True)]
            run.lanes[n] = row._replace(values=values)

    def _since(self, machine: Machine, single: int, many: int) -> list[Moved]:
        """The accesses that an instruction has just made."""
        run = machine.run
        return [*run.single[single:], *(one for row in run.lanes[many:] for one in row.each()), *self._cells.moves]


def crossed(follower: Follower, warp: Warp, lanes: Lanes, branch: int, way: Detour) -> None:
    """Lanes are where the sides of a branch on unknown data meet."""
    named = follower.detoured(warp, lanes, branch, way)
    forgetting(list(way.slots))(warp, lanes)
    warp.names.update(named)


def _unit(one: PtxInstruction) -> int:
    """Bytes of an element that an instruction moves; of ldmatrix and stmatrix what a lane has of a row."""
    return 4 if one.words[0] in MATRICES else (width_of(one.words[-1]) or 8) // 8


def _pieces(accesses: list[Moved], unit: int, count: int) -> Iterator[tuple[Moved, int, int]]:
    """The elements of accesses, each with its number in its thread and its first byte."""
    met: Counter[int] = Counter()
    for one in accesses:
        for first in range(one.first, one.first + one.size, unit) if one.size in (unit, unit * count) else ():
            yield one, met[one.thread], first
            met[one.thread] += 1


def _targets(one: PtxInstruction) -> list[int | None]:
    """The registers of a result, None for what is thrown away."""
    target = one.operands[0]
    if isinstance(target, Pair):
        items: tuple[Operand, ...] = (target.first, target.second)
    else:
        items = target.items if isinstance(target, Vector) else (target,)
    return [item.slot if isinstance(item, Register) else None for item in items]


def _function(code: Code, assumed: Sequence[str]) -> bool:
    """Does an instruction compute a function of its registers alone, or jump?"""
    one = code.instruction
    if code.jumps:
        return True
    special = any(isinstance(item, Special) for operand in one.operands for item in _items(operand))
    return code.pure is not None and not special and not begins(one, assumed) and with_carry(one.words) is None


def _items(operand: Operand) -> Sequence[Operand]:
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return operand.items if isinstance(operand, Vector) else (operand,)


def _registers(one: PtxInstruction) -> Iterator[Register]:
    """The registers that an instruction reads or writes, its predicate included."""
    for operand in (*one.operands, *([one.guard] if one.guard is not None else [])):
        for item in _items(operand):
            register = item.operand if isinstance(item, Negated) else item.register if isinstance(item, Part) else item
            if isinstance(register, Register):
                yield register


def _plain(one: PtxInstruction) -> bool:
    """Is it a load or store whose values can be followed: weak, of all elements, of memory that threads share?"""
    strong = any(word in ("relaxed", "acquire", "release", "volatile", "mmio", "async", "bulk") for word in one.words)
    sunk = any(isinstance(item, Blank) for what in one.operands if isinstance(what, Vector) for item in what.items)
    other = one.words[0] in MATRICES and not {"m8n8", "b16"} <= set(one.words)
    return not strong and not sunk and not other and len(one.operands) >= 2


def followed(body: Sequence[PtxInstruction], stores: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
    """The registers that lead to some stores, and the loads and stores on the way."""
    makers: dict[int, list[PtxInstruction]] = {}
    writers = [one for one in body if one.words[0] in STORES and _plain(one)]
    for one in body:
        for slot in written(one):
            makers.setdefault(slot, []).append(one)
    slots: set[int] = set()
    moves = {one.number for one in writers if one.number in stores}
    waiting = [slot for one in writers if one.number in stores for slot in registers(one.operands[1])]
    waiting += [one.guard.slot for one in body if one.words[0] == "bra" and one.guard is not None]
    while waiting:
        slot = waiting.pop()
        if slot in slots:
            continue
        slots.add(slot)
        for one in makers.get(slot, ()):
            waiting += [] if one.guard is None else [one.guard.slot]
            if one.words[0] in LOADS:
                if not _plain(one) or one.number in moves:
                    continue
                moves.add(one.number)
                for other in writers:
                    if other.number not in moves and _meet(space_of(one.words), space_of(other.words)):
                        moves.add(other.number)
                        waiting += registers(other.operands[1])
            else:
                given = [item for item in one.operands[1:] if not isinstance(item, Mem | TensorOperand)]
                waiting += [register for item in given for register in registers(item)]
    return frozenset(slots), frozenset(moves)


def _meet(one: str, other: str) -> bool:
    """May an address of one state space be in the other one?"""
    first, second = one.split("::")[0], other.split("::")[0]
    return first == second or "generic" in (first, second)
