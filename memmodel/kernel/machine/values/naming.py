"""A run in which unknown values are terms: which stores leave the same bytes, whatever the data is.

In: the `Code` of an entry, the stores that are asked about. Out: in the trace, what these stores leave: a number below
zero for a value that is not known. Settled here: what leads to these stores through registers and memory is followed;
of other instructions, strong loads and atomic operations every result is a value of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from memmodel.isa.lowered import LoweredInstruction, lowered, named_registers, widths
from memmodel.kernel.flow.detours import Detour
from memmodel.kernel.machine.code import Code, Follower, begins
from memmodel.kernel.machine.collective.exchange import shuffle_source
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.rows import LANES, UNKNOWN, Uniform, Value
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.cells import MemoryTerms, OwnAccess
from memmodel.kernel.machine.values.lanes import Step, forgetting
from memmodel.kernel.machine.values.moves import Move, followed
from memmodel.kernel.machine.values.named_expressions import ExpressionTerms, TermRow
from memmodel.kernel.machine.values.slices import WIDEST, Slices
from memmodel.kernel.machine.values.specials import special
from memmodel.kernel.machine.values.terms import Terms
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess, each_once
from memmodel.program.expressions import AddressOf, Apply, Const, registers_of
from memmodel.program.ops import Assign, Write
from memmodel.program.unknowns import Leaf
from memmodel.program.uses import results_of
from memmodel.program.warp_ops import SHUFFLES, AmongLanes, Exchange, Forget, TransposeMatrix
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Register

VOTES = (Exchange.ALL, Exchange.ANY, Exchange.UNIFORM, Exchange.BALLOT)
NAMED = (*SHUFFLES, *VOTES, Exchange.REDUCE)
"""What is a function of the values that the lanes give."""

WrittenTerms = Sequence[list[int] | None]
"""For each register that an instruction writes its terms, one for each lane; None if they are not known."""

Moved = WeakAccess | OwnAccess


class Naming(Follower):
    """Follows values through a run. `stores`: the instructions of which the trace is to say what they store."""

    def __init__(
        self,
        body: Sequence[PtxInstruction],
        stores: frozenset[int],
        *,
        ordered: bool = False,
        by_rows: bool = False,
    ) -> None:
        self.terms = Terms(ordered=ordered, by_rows=by_rows)
        self.slices = Slices(self.terms)
        self.stores = stores
        loose = frozenset(instruction.number for instruction in body if _leaves_anything(lowered(instruction)))
        self._cells = MemoryTerms(self.terms, self.slices, loose)
        self._slots, self._moves = followed(body, stores)
        self._codes: Sequence[Code] = ()
        self._unsure: frozenset[int] = frozenset()

    def follow(self, machine: Machine, codes: Sequence[Code], assumed: Sequence[str]) -> None:
        """Wrap the steps of a run, before it begins."""
        machine.memory_terms, self._codes = self._cells, codes
        self._unsure = frozenset(n for n, code in enumerate(codes) if not _function(code, assumed))
        for code in codes:
            instruction = code.instruction
            slots = [slot for slot in lowered(instruction).writes if slot in self._slots]
            move = self._moves.get(instruction.number)
            if move is not None and move.values and code.blocking is not None:
                code.blocking = self._stored(instruction, move, code.blocking)
            elif slots and code.pure is not None:
                code.pure = self._computed(code, code.pure, slots, known=not begins(instruction, assumed))
            elif slots and code.blocking is not None:
                code.blocking = self._waited(code, move, code.blocking)

    @property
    def limited(self) -> dict[int, str]:
        """For values in the trace that a limit may keep apart from equal ones, that limit."""
        return {_value(term): limit for term, limit in self.terms.limited.items()}

    # ---- registers -------------------------------------------------------------------------------------------

    def read(self, warp: Warp, lanes: Lanes, slot: int, width: int) -> list[int]:
        """The terms of a register."""
        values, named = warp.registers[slot], warp.names.get(slot)
        if type(values) is Uniform and values.value is not None:
            return [self.terms.number(values.value)] * len(lanes)
        row: list[int | None] = [None if named is None else named[lane] for lane in lanes]
        if values is not UNKNOWN:
            for n, lane in enumerate(lanes):
                value = values[lane]
                row[n] = row[n] if value is None else self.terms.number(value)
        if None in row:
            nameless = [lane for lane, term in zip(lanes, row, strict=True) if term is None]
            warp.name(slot, nameless, self.slices.have(self._unknown(len(nameless)), width))
            return self.read(warp, lanes, slot, width)
        return [term for term in row if term is not None]

    def _expressions(self, instruction: PtxInstruction) -> ExpressionTerms:
        """The terms of the expressions of an instruction."""
        terms, bits = self.terms, widths(instruction)

        def leaf(leaf: Leaf) -> TermRow:
            if isinstance(leaf, AddressOf):
                name, offset = leaf.name, leaf.offset
                return lambda warp, lanes: [terms.of("address", name, offset, warp.cta.number)] * len(lanes)
            if leaf.register[0] == "%":
                row = special(leaf.register)

                def read(warp: Warp, lanes: Lanes) -> list[int]:
                    values = row(warp)
                    each = (values[lane] for lane in lanes)
                    return [terms.fresh() if value is None else terms.number(value) for value in each]

                return read
            slot = int(leaf.register)
            width = bits[slot]
            return lambda warp, lanes: self.read(warp, lanes, slot, width)

        return ExpressionTerms(terms, self.slices, leaf)

    def _leave(self, warp: Warp, lanes: Lanes, slots: Sequence[int | None], results: WrittenTerms) -> None:
        """Registers that an instruction has written. `results`: for each the terms, or None if they are not known."""
        for slot, row in zip(slots, results, strict=True):
            if slot is None:
                continue
            values = warp.registers[slot]
            if row is None:
                warp.name(slot, lanes, [None] * len(lanes))
            elif values is UNKNOWN:
                warp.name(slot, lanes, row)
            else:
                lanes_and_terms = zip(lanes, row, strict=True)
                warp.name(slot, lanes, [term if values[lane] is None else None for lane, term in lanes_and_terms])

    def detoured(self, warp: Warp, lanes: Lanes, branch: int, way: Detour) -> dict[int, list[int]]:
        """What is in the registers where the sides of a branch on unknown data meet: a function of what was there."""
        if not self._unsure.isdisjoint(way.inside) or any(_keeps_notes(self._codes[at]) for at in way.inside):
            return {}
        inside = [self._codes[at].instruction for at in (branch, *way.inside)]
        used = {
            register.slot: register
            for instruction in inside
            for register in _registers(instruction)
            if register.slot in self._slots
        }
        sources, targets = [used[slot] for slot in sorted(used)], [used[slot] for slot in way.slots if slot in used]
        before = [self.read(warp, lanes, register.slot, register.width) for register in sources]
        wholes = [self.terms.of("detour", branch, *(row[n] for row in before)) for n in range(len(lanes))]
        return {
            register.slot: self.slices.have(
                [self.terms.of("result", register.slot, whole) for whole in wholes], register.width
            )
            for register in targets
        }

    def _computed(self, code: Code, step: Step, slots: Sequence[int], *, known: bool) -> Step:
        """An instruction that only computes. `known`: what it computes is known."""
        expressions, bits = self._expressions(code.instruction), widths(code.instruction)
        values = {register: expr for register, expr in results_of(code.ops).items() if register.isdigit()}
        rows: list[TermRow] = []
        if known and values and not _keeps_notes(code):
            rows = [expressions.register(values[str(slot)], bits[slot]) for slot in slots]

        def change(warp: Warp, lanes: Lanes) -> None:
            results: WrittenTerms = [row(warp, lanes) for row in rows] if rows else [None] * len(slots)
            step(warp, lanes)
            self._leave(warp, lanes, slots, results)

        return change

    # ---- lanes that look at one another ----------------------------------------------------------------------

    def _waited(self, code: Code, move: Move | None, step: Blocking) -> Blocking:
        """An instruction that does more than compute."""
        slots: Sequence[int | None] = lowered(code.instruction).writes
        read: Callable[[Warp, Lanes, list[Moved]], WrittenTerms] | None = None
        team: Callable[[Warp, Lanes], WrittenTerms] | None = None
        if move is not None:
            slots, read = move.slots, self._loaded(code.instruction, move)
        for op in code.ops:
            if isinstance(op, AmongLanes) and op.exchange in NAMED:
                team, slots = self._team(code.instruction, op), [_slot(name) for name in op.registers]
            elif isinstance(op, Forget) and op.of:
                team, slots = self._multiplied(code.instruction, op), [_slot(name) for name in op.registers]
            elif isinstance(op, TransposeMatrix):
                team, slots = self._transposed(code.instruction, op), [_slot(op.register)]

        def change(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            results = [None] * len(slots) if team is None else team(warp, lanes)
            single, many = len(machine.run.single), len(machine.run.lanes)
            self._cells.moves.clear()
            if not step(machine, warp, lanes, group):
                return False
            if read is not None:
                results = read(warp, lanes, self._since(machine, single, many))
            self._leave(warp, lanes, slots, results)
            return True

        return change

    def _multiplied(self, instruction: PtxInstruction, op: Forget) -> Callable[[Warp, Lanes], WrittenTerms]:
        """Matrices that a warp multiplies: each element is a function of all elements that the lanes give."""
        terms, expressions, bits = self.terms, self._expressions(instruction), widths(instruction)
        values, opcode = [expressions.register(value, WIDEST) for value in op.of], instruction.opcode

        def of(warp: Warp, lanes: Lanes) -> WrittenTerms:
            product = terms.of("product", opcode, *(tuple(value(warp, lanes)) for value in values))
            results = []
            for n, name in enumerate(op.registers):
                row = [terms.of("element", product, n, lane) for lane in lanes]
                results.append(self.slices.have(row, bits[int(name)]))
            return results

        return of

    def _transposed(self, instruction: PtxInstruction, op: TransposeMatrix) -> Callable[[Warp, Lanes], WrittenTerms]:
        """What each lane gets of the matrix that all have."""
        value = self._expressions(instruction).register(op.value, 32)
        return lambda warp, lanes: [self._turned(value(warp, lanes))]

    def _team(self, instruction: PtxInstruction, among: AmongLanes) -> Callable[[Warp, Lanes], WrittenTerms]:
        """Shuffles, reductions, votes: what each lane gets of those that give the same mask."""
        terms, expressions = self.terms, self._expressions(instruction)
        values = [expressions.register(value, 32) for value in among.values]
        mask = expressions.register(Const(0) if among.mask is None else among.mask, 32)

        def of(warp: Warp, lanes: Lanes) -> WrittenTerms:
            masks = list(map(terms.known, mask(warp, lanes)))
            inputs = dict(zip(lanes, values[0](warp, lanes), strict=True))
            teams = {own: [lane for lane, same in zip(lanes, masks, strict=True) if same == own] for own in set(masks)}
            if among.exchange in SHUFFLES:
                numbers, bounds = (map(terms.known, value(warp, lanes)) for value in values[1:])
                row = []
                for lane, own, number, bound in zip(lanes, masks, numbers, bounds, strict=True):
                    source, _ = shuffle_source(among.exchange, lane, number, bound) or (-1, 0)
                    row.append(inputs[source] if source in teams[own] else terms.fresh())
                return [row, None][: len(among.registers)]
            shared = {own: self._shared(among, inputs, team) for own, team in teams.items()}
            return [[shared[own] for own in masks]]

        return of

    def _shared(self, among: AmongLanes, inputs: Mapping[int, int], team: Sequence[int]) -> int:
        """The one result of a reduction or vote."""
        if among.exchange is Exchange.REDUCE:
            combined = self.terms.of(among.combine, among.type, *sorted(inputs[lane] for lane in team))
            return self.slices.has(combined, 32)
        return self.terms.of(among.exchange, *((lane, inputs[lane]) for lane in team))

    # ---- memory ----------------------------------------------------------------------------------------------

    def _loaded(self, instruction: PtxInstruction, move: Move) -> Callable[[Warp, Lanes, list[Moved]], WrittenTerms]:
        """What a load brings, as it is in memory after the accesses that it made; nothing if that is not known."""
        bits, unit = widths(instruction), 8 * move.unit

        def of(warp: Warp, lanes: Lanes, accesses: list[Moved]) -> WrittenTerms:
            terms: dict[int, list[int]] = {thread.number: [] for thread in warp.threads}
            for access, n, first in _pieces(accesses, move):
                term = self._cells.load(access.block, first, move.unit)
                width = bits[move.slots[n]]
                extends = move.signed and width > unit
                terms[access.thread].append(self.slices.extended(term, unit, width) if extends else term)
            each = [terms[warp.threads[lane].number] for lane in lanes]
            if any(len(elements) < move.count for elements in each):
                each = [elements if len(elements) == move.count else self._unknown(move.count) for elements in each]
            rows = [list(row) for row in zip(*each, strict=True)]
            return [self._turned(row) for row in rows] if move.transposed else rows

        return of

    def _unknown(self, count: int) -> list[int]:
        return [self.terms.fresh() for _ in range(count)]

    def _turned(self, row: list[int]) -> list[int]:
        """A matrix of which lanes have elements, transposed; nothing is known of it if lanes are missing."""
        return self.slices.turned(row) if len(row) == LANES else self._unknown(len(row))

    def _stored(self, instruction: PtxInstruction, move: Move, step: Blocking) -> Blocking:
        expressions, asked = self._expressions(instruction), instruction.number in self.stores
        values = [expressions.register(value, 8 * move.unit) for value in move.values]

        def change(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            rows = [value(warp, lanes) for value in values]
            rows = [self._turned(row) for row in rows] if move.transposed else rows
            each = zip(*rows, strict=True)
            stored = {warp.threads[lane].number: elements for lane, elements in zip(lanes, each, strict=True)}
            single, many = len(machine.run.single), len(machine.run.lanes)
            self._cells.moves.clear()
            if not step(machine, warp, lanes, group):
                return False
            left: dict[tuple[int, int], list[int]] = {}
            for access, n, first in _pieces(self._since(machine, single, many), move):
                row = stored.get(access.thread)  # none of a lane that has exited, where the warp may not go on
                term = self.terms.fresh() if row is None else row[n]
                self._cells.store(access.block, first, move.unit, term)
                left.setdefault((access.thread, access.first), []).append(term)
            if asked:
                self._tell(machine, single, many, left)
            return True

        return change

    def _tell(self, machine: Machine, single: int, many: int, left: dict[tuple[int, int], list[int]]) -> None:
        """Note in the trace what a thread has stored at a place, where that is not known."""
        run = machine.run

        def stored(thread: int, first: int, value: Value) -> Value:
            terms = left.get((thread, first))
            return value if value is not None or terms is None else _value(self.terms.of("stored", *terms))

        for n in range(single, len(run.single)):
            access = run.single[n]
            run.single[n] = access._replace(value=stored(access.thread, access.first, access.value))
        for n in range(many, len(run.lanes)):
            row: LaneAccesses = run.lanes[n]
            known = row.values or [None] * len(row.threads)
            if row.part & 1:  # the same as the row before, made by other lanes
                values = run.lanes[n - 1].values
            else:
                values = [stored(*place) for place in zip(row.threads, row.firsts, known, strict=True)]
            run.lanes[n] = row._replace(values=values)

    def _since(self, machine: Machine, single: int, many: int) -> list[Moved]:
        """The accesses that an instruction has just made."""
        run = machine.run
        return [
            *run.single[single:],
            *each_once(run.lanes[many:]),
            *self._cells.moves,
        ]


def crossed(follower: Follower, warp: Warp, lanes: Lanes, branch: int, way: Detour) -> None:
    """Lanes are where the sides of a branch on unknown data meet."""
    named = follower.detoured(warp, lanes, branch, way)
    forgetting(list(way.slots))(warp, lanes)
    for slot, row in named.items():
        warp.name(slot, lanes, row)


def _value(term: int) -> int:
    """A term in place of a value that is not known."""
    return -1 - term


def _slot(register: str | None) -> int | None:
    return None if register is None else int(register)


def _pieces(accesses: list[Moved], move: Move) -> Iterator[tuple[Moved, int, int]]:
    """The elements of accesses, each with its number in its thread and its first byte."""
    met: Counter[int] = Counter()
    for access in accesses:
        if access.size in (move.unit, move.unit * move.count):
            for first in range(access.first, access.first + access.size, move.unit):
                yield access, met[access.thread], first
                met[access.thread] += 1


def _leaves_anything(instruction: LoweredInstruction) -> bool:
    """True if an instruction leaves bytes in memory that may differ from load to load."""
    values = (value for op in instruction.ops if isinstance(op, Write) for value in op.values)
    return any(isinstance(value, Apply) and not value.args for value in values)


def _keeps_notes(code: Code) -> bool:
    """True if an instruction computes with what another one left beside the registers, or leaves something there."""
    assigns = [op for op in code.ops if isinstance(op, Assign)]
    names = {op.register for op in assigns}.union(*(registers_of(op.value) for op in assigns))
    return any(name[0] == "#" for name in names)


def _function(code: Code, assumed: Sequence[str]) -> bool:
    """True if an instruction computes a function of its registers alone, or jumps."""
    if code.does.jumps:
        return True
    names = {name for op in code.ops if isinstance(op, Assign) for name in registers_of(op.value)}
    special = any(name[0] == "%" for name in names)
    return code.pure is not None and not special and not begins(code.instruction, assumed) and not _keeps_notes(code)


def _registers(instruction: PtxInstruction) -> Iterator[Register]:
    """The registers that an instruction reads or writes, its predicate included."""
    for operand in (*instruction.operands, *([instruction.guard] if instruction.guard is not None else [])):
        yield from named_registers(operand)
