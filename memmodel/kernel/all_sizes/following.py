"""A run whose numbers are followed for larger values of one parameter, and for more rounds of the loops it decides.

In: entry, parameter, where loops are stretched. Out: visits of loops; the branches that go elsewhere for larger values.
Settled here: with `stretches`, all that decides control flow, addresses, sizes, counts and parities must be the same
however often the stretched loops run, and the state must come back after a period; else `Refused` is raised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product, takewhile
from typing import NamedTuple

from memmodel.base.labels import Action
from memmodel.isa.lowered import LoweredInstruction, body_of
from memmodel.kernel.all_sizes.access_kinds import changes_memory, combines, in_shared, mapped, step_of, tiles
from memmodel.kernel.all_sizes.cells import DriftCells, accesses_since
from memmodel.kernel.all_sizes.drift import INTEGER, STILL, UNEVEN, Drift, Drifting, DriftingNumber, Drifts, Leaves
from memmodel.kernel.all_sizes.loops import LoopText, unseen
from memmodel.kernel.all_sizes.operand_roles import OperandRole, OperandUse, slots_in, uses_of
from memmodel.kernel.all_sizes.parameters import PARAMETERS, ParamPart, address_taken, parts_of, widths
from memmodel.kernel.flow.detours import Detour
from memmodel.kernel.machine.code import Code, Follower
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.rows import Row, Uniform
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Step
from memmodel.kernel.machine.values.specials import special
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import Refused
from memmodel.program.expressions import AddressOf, Expr, Get, registers_of
from memmodel.program.ops import Assign, Combine, OnObject, Read
from memmodel.program.unknowns import Leaf
from memmodel.program.warp_ops import SHUFFLES, ActiveLanes, AmongLanes
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.vocabulary import DataType, Window

MOST_VISITS = 400
"""Rounds of a loop that are looked at."""

RESULTS = (Assign, Read, Combine, OnObject, AmongLanes, ActiveLanes)
"""Steps whose results are the same if all that they use is."""

WIDEST = 128
"""The bits of registers that only the steps of instructions name."""

WORDS = DataType("b", WIDEST)


class RoundEnd(NamedTuple):
    """A thread goes back to the head of a loop. `within`: how often it has gone back to the heads of the loops around.

    `events`: how many events the thread has by then; `single`, `lanes`: how many accesses the run has. `rows`: the
    values of the registers that the loop writes.
    """

    head: int
    within: tuple[int, ...]
    events: int
    single: int
    lanes: int
    rows: Mapping[int, Row]


class Moved(NamedTuple):
    """Accesses whose address drifts: the first byte in a block, how many bytes, the drift."""

    first: int
    size: int
    drift: Drifting


class Stretch(NamedTuple):
    """Where a thread's loop is stretched: between two visits, with one period of rounds."""

    first: int
    second: int


class FollowedRounds(Follower):
    """Follows one run. `stretches`: by thread; without any, the run is only observed.

    `uneven`: registers that do not change evenly over a period; their values at its beginning must have no effect.
    `varying`: stores of numbers that drift, and stores of unknown numbers after the beginning of the period. `value`:
    the parameter in this launch. For larger values of the parameter, `leaves` has the branches that may go elsewhere,
    and `wandering` the global memory that is read at other addresses. `placed`: weak accesses to global memory whose
    addresses drift, with their number.
    """

    def __init__(
        self, loops: Mapping[int, LoopText], entry: PtxFunction, param: ParamPart,
        before: Mapping[int, Sequence[RoundEnd]] | None = None,
        stretches: Mapping[int, Sequence[Stretch]] | None = None, uneven: Collection[int] = (),
    ) -> None:  # fmt: skip
        self._entry, self._widths = {parameter.name for parameter in entry.params}, widths(body_of(entry))
        self._types = {slot: DataType("b", width) for slot, width in self._widths.items()}
        self._taken = address_taken(body_of(entry), param)
        self.uneven = set(uneven)
        self.varying: set[int] = set()
        self._begun: dict[tuple[int, int], Drifting] = {}
        self._notes: set[int] = set()
        """Registers that only the steps of instructions name, as the carry."""
        self.value: int | None = None
        self.drifts = Drifts()
        self.visits: dict[int, list[RoundEnd]] = {}
        self.leaves: dict[int, PtxInstruction] = {}
        self.wandering: dict[Block, PtxInstruction] = {}
        self.placed: dict[Block, Counter[Moved]] = {}
        self.cells = DriftCells()
        self._loops, self._param, self._unseen = loops, param, unseen(entry, loops)
        self._carried = frozenset(slot for loop in loops.values() for slot in loop.live.intersection(loop.slots))
        self._before, self._stretches = before or {}, stretches or {}
        self._strict = stretches is not None
        self._counts: dict[tuple[int, int], int] = {}
        self._inside: dict[int, int] = {}
        self._reached: set[int] = set()
        self._going: dict[Warp, dict[int, dict[int, Drifting]]] = {}
        self._run: LaunchTrace

    def follow(self, machine: Machine, codes: Sequence[Code], assumed: Sequence[str]) -> None:
        self._run = machine.run
        for code in codes:
            self._notes |= {slot for slot, _ in code.results} - self._widths.keys()
            if code.pure is not None:
                code.pure = self._computed(code, code.pure)
                if code.instruction.number + 1 in self._loops:
                    code.pure = self._fallen(code.pure, code.instruction)
            elif code.blocking is not None:
                code.blocking = self._done(code, code.blocking)

    # ---- what drifts -----------------------------------------------------------------------------------------

    def _drift(self, warp: Warp, slot: int, lane: int) -> Drifting:
        return self._going.get(warp, {}).get(slot, {}).get(lane, STILL)

    def _set(self, warp: Warp, slot: int, lane: int, drift: Drifting) -> None:
        if drift == STILL or not warp.knows(slot, lane):
            self._going.get(warp, {}).get(slot, {}).pop(lane, None)
        else:
            self._going.setdefault(warp, {}).setdefault(slot, {})[lane] = drift

    def _still(self, warp: Warp, slots: Iterable[int], lanes: Lanes) -> None:
        for slot in self._moving(warp, slots):
            for lane in lanes:
                self._going[warp][slot].pop(lane, None)

    def _moving(self, warp: Warp, slots: Iterable[int]) -> list[int]:
        """The registers, of these, that hold a drifting number."""
        going = self._going.get(warp)
        return [] if not going else [slot for slot in slots if going.get(slot)]

    def _touches(self, warp: Warp, slot: int, lanes: Lanes) -> bool:
        going = self._going[warp][slot]
        return any(lane in going for lane in lanes)

    def _leaves(self, warp: Warp, lane: int) -> Leaves:
        """The numbers in the registers of a lane."""

        def number(leaf: Leaf) -> DriftingNumber:
            name = leaf.name if isinstance(leaf, AddressOf) else leaf.register
            if not name.isdigit():
                value = special(name)(warp)[lane] if name[0] == "%" else None
                return DriftingNumber(value, INTEGER, UNEVEN if value is None else STILL)
            slot = int(name)
            value, type = warp.registers[slot][lane], self._types.get(slot, WORDS)
            return DriftingNumber(value, type, UNEVEN if value is None else self._drift(warp, slot, lane))

        return number

    # ---- instructions that compute ---------------------------------------------------------------------------

    def _computed(self, code: Code, step: Step) -> Step:
        """An instruction that only computes. What one without steps computes does not change evenly."""
        does = code.does
        results: Sequence[tuple[int, Expr | None]] = code.results or [(slot, None) for slot in does.writes]
        names = sorted({name for _, expr in code.results for name in registers_of(expr)})
        sources = {slot for _, expr in code.results for slot in slots_in(expr)} or does.sources
        targets = [slot for slot, _ in results]
        conditions = [use for use in uses_of(does) if use.role is OperandRole.SETTING]

        def change(warp: Warp, lanes: Lanes) -> None:
            moving = self._moving(warp, sources)
            if not moving:
                step(warp, lanes)
                self._still(warp, targets, lanes)
                return
            drifts = self._results(results, names, warp, self._drifting(warp, moving, lanes))
            if conditions and self._strict:
                self._permit(code, self._numbers(conditions, warp, lanes, moving), ())
            step(warp, lanes)
            self._still(warp, targets, lanes)
            for lane, of_lane in drifts.items():
                for slot, drift in zip(targets, of_lane, strict=True):
                    if drift is not STILL:
                        self._set(warp, slot, lane, drift)

        return change

    def _drifting(self, warp: Warp, moving: Sequence[int], lanes: Lanes) -> Lanes:
        """The lanes in which one of some registers drifts."""
        going = self._going[warp]
        return [lane for lane in lanes if any(lane in going[slot] for slot in moving)]

    def _results(
        self, results: Sequence[tuple[int, Expr | None]], names: Sequence[str], warp: Warp, lanes: Lanes
    ) -> dict[int, list[Drifting]]:  # fmt: skip
        """The drifts of results in some lanes. Most lanes have the same numbers."""
        drifts, known = dict[int, list[Drifting]](), dict[object, list[Drifting]]()
        for lane in lanes:
            leaves = self._leaves(warp, lane)
            key = tuple(leaves(Get(name)) for name in names)
            if key not in known:
                known[key] = [
                    UNEVEN if expr is None else self.drifts.assigned(expr, self._widths.get(slot, WIDEST), leaves)
                    for slot, expr in results
                ]
            drifts[lane] = known[key]
        return drifts

    # ---- instructions that do more ---------------------------------------------------------------------------

    def _done(self, code: Code, step: Blocking) -> Blocking:
        """An instruction that does more than compute."""
        does, ops, targets = code.does, code.ops, code.does.writes
        uses, parts = uses_of(does), parts_of(does)
        named = frozenset[int]().union(*(use.slots for use in uses))
        known = does.computes or any(isinstance(op, RESULTS) for op in ops)
        # A state that an arrive returns has the number of its phase.
        arrives = any(isinstance(op, OnObject) and op.label.action is Action.ARRIVE for op in ops)
        shuffles = any(isinstance(op, AmongLanes) and op.exchange in SHUFFLES for op in ops)
        of_entry = bool(parts) and parts[0].name in self._entry
        loads = (does.loads or does.atomic) and does.window is not Window.CONST and not of_entry
        leaves, described, atomic = changes_memory(does), mapped(does), combines(does)

        def change(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            moving = [slot for slot in self._moving(warp, does.sources) if self._touches(warp, slot, lanes)]
            numbers = self._numbers(uses, warp, lanes, moving) if moving else {}
            single, many = len(machine.run.single), len(machine.run.lanes)
            if not step(machine, warp, lanes, group):
                return False
            alike = self._shared_drift(numbers) if shuffles else UNEVEN
            drift = STILL if known and not arrives and named.issuperset(moving) else UNEVEN
            if numbers and alike is None and self._strict:
                self._permit(code, numbers, accesses_since(machine, single, many))
            if alike is None and not all(use.role is OperandRole.STATE for use in numbers):
                drift = UNEVEN
            if loads and self._may_load_drifting(does, machine, warp, lanes, single, many):
                drift = UNEVEN
            if atomic:
                self.cells.combined(self._new_events(warp, lanes, does.instruction.number))
            self._still(warp, targets, lanes)
            changed = targets[:1] if alike is not None else targets if drift is None else ()
            for slot, lane in product(changed, lanes):
                self._set(warp, slot, lane, alike)
            if described and self.cells.any:
                self._through(code, machine, warp, lanes, single, many)
            if does.loads and does.window in PARAMETERS:
                self._parameter(does, parts, warp, lanes)
            elif leaves:
                self.cells.left(does, accesses_since(machine, single, many), drifts=bool(moving))
                if does.stores and (moving or self._unknown(does, warp, lanes)):
                    self.varying.add(code.instruction.number)
            return True

        return change

    def _numbers(
        self, uses: Sequence[OperandUse], warp: Warp, lanes: Lanes, moving: Sequence[int]
    ) -> dict[OperandUse, dict[int, DriftingNumber]]:
        """The numbers that drift among those that an instruction uses, in each lane."""
        numbers = {}
        for use in uses:
            if use.slots.isdisjoint(moving):
                continue
            by_lane = {lane: self.drifts.number(use.expr, self._leaves(warp, lane)) for lane in lanes}
            if any(number.drift != STILL for number in by_lane.values()):
                numbers[use] = by_lane
        return numbers

    def _shared_drift(self, numbers: Mapping[OperandUse, Mapping[int, DriftingNumber]]) -> Drifting:
        """The drift of the result of a shuffle: that of its numbers if all lanes have the same number and drift."""
        if [use.role for use in numbers] != [OperandRole.LANES]:
            return UNEVEN
        (by_lane,) = numbers.values()
        first, *others = set(by_lane.values())
        return UNEVEN if others else first.drift

    def _may_load_drifting(
        self, does: LoweredInstruction, machine: Machine, warp: Warp, lanes: Lanes, single: int, many: int
    ) -> bool:  # fmt: skip
        """True if a load may return numbers that drift."""
        accesses, threads = accesses_since(machine, single, many), {warp.threads[lane].number for lane in lanes}
        return self.cells.brought(does, accesses, self._inside, threads) or (self._taken and not accesses)

    def _new_events(self, warp: Warp, lanes: Lanes, number: int) -> Iterator[TraceEvent]:
        """The last events of threads whose loops are stretched, as far as they are those of an instruction."""
        for lane in lanes:
            thread = warp.threads[lane]
            if thread.number in self._stretches:
                yield from takewhile(lambda event: event.at == number, reversed(thread.events))

    def _unknown(self, does: LoweredInstruction, warp: Warp, lanes: Lanes) -> bool:
        """True if a thread stores an unknown number after the begin of a period."""
        behind = [lane for lane in lanes if warp.threads[lane].number in self._reached]
        return any(warp.registers[slot][lane] is None for slot in does.sources for lane in behind)

    def _permit(
        self, code: Code, numbers: Mapping[OperandUse, Mapping[int, DriftingNumber]], accesses: Sequence[WeakAccess]
    ) -> None:  # fmt: skip
        """Numbers that an instruction uses drift. Raises Refused where one says what is done."""
        elsewhere = bool(accesses) and not any(in_shared(access.block) for access in accesses)
        for use, by_lane in numbers.items():
            free = use.role in (OperandRole.VALUE, OperandRole.SIZE, OperandRole.SOURCE) or (
                use.role is OperandRole.PLACE and elsewhere
            )
            # A state that a round leaves to the next one may be that of another object in a longer loop.
            free = free or (use.role is OperandRole.STATE and self._carried.isdisjoint(use.slots))
            if not free or not all(self.drifts.multiple(number.drift, use.align) for number in by_lane.values()):
                raise Refused(f"an operand of {code.instruction.opcode}", code.instruction.span)
            if use.role is OperandRole.SOURCE:
                self.wandering |= dict.fromkeys(tiles(accesses), code.instruction)
            for access in accesses if use.role is OperandRole.PLACE else ():
                drift = by_lane[self._run.threads[access.thread].lane].drift
                if drift != STILL:
                    self.placed.setdefault(access.block, Counter())[Moved(access.first, access.size, drift)] += 1

    def _through(
        self, code: Code, machine: Machine, warp: Warp, lanes: Lanes, single: int, many: int
    ) -> None:  # fmt: skip
        """A copy through a tensor map that holds numbers that drift."""
        for lane in lanes:
            events = warp.threads[lane].events
            named = events[-1].range if events else None
            if named is None or not self.cells.hold(*named):
                continue
            if self._strict and not any(use.role is OperandRole.SOURCE for use in uses_of(code.does)):
                raise Refused(f"the tensor map of {code.instruction.opcode}", code.instruction.span)
            self.wandering |= dict.fromkeys(tiles(accesses_since(machine, single, many)), code.instruction)

    def _parameter(self, does: LoweredInstruction, parts: Sequence[ParamPart], warp: Warp, lanes: Lanes) -> None:
        """A load of a parameter: the one that grows drifts."""
        if self._strict and not parts:
            raise Refused(f"the address of {does.instruction.opcode}", does.instruction.span)
        for slot, part in zip(does.writes, parts, strict=False):
            if part.meets(self._param):
                whole = part == self._param and self._widths[slot] == 8 * part.size
                self.value = warp.registers[slot][lanes[0]] if whole else self.value
                for lane in lanes:
                    self._set(warp, slot, lane, Drift(Fraction(1), 0) if whole else UNEVEN)

    # ---- branches and rounds ---------------------------------------------------------------------------------

    def _fallen(self, step: Step, instruction: PtxInstruction) -> Step:
        """An instruction that stands before the head of a loop."""

        def change(warp: Warp, lanes: Lanes) -> None:
            step(warp, lanes)
            self._comes(warp, lanes, instruction, instruction.number + 1)

        return change

    def guarded(self, warp: Warp, lanes: Lanes, code: Code) -> None:
        slot, instruction = code.guard, code.instruction
        assert slot is not None
        if self._moving(warp, (slot,)) and self._touches(warp, slot, lanes):
            if self._strict and instruction.number not in self._unseen:
                raise Refused(f"whether {instruction.opcode} is carried out", instruction.span)
            if code.does.jumps:
                self.leaves[instruction.number] = instruction
        if code.does.jumps and instruction.number + 1 in self._loops:
            stay = [lane for lane in lanes if warp.registers[slot][lane] == int(code.negated)]
            self._comes(warp, stay, instruction, instruction.number + 1)

    def detoured(self, warp: Warp, lanes: Lanes, branch: int, way: Detour) -> dict[int, list[int]]:
        self._still(warp, tuple(way.slots), lanes)
        return {}

    def jumped(self, warp: Warp, lanes: Lanes, code: Code, target: int) -> None:
        if code.does.jumps_by_table:
            slots = self._moving(warp, code.does.sources)
            if any(self._touches(warp, slot, lanes) for slot in slots):
                self.leaves[code.instruction.number] = code.instruction
                if self._strict:
                    raise Refused(f"where {code.instruction.opcode} goes", code.instruction.span)
        self._comes(warp, lanes, code.instruction, target)

    def _comes(self, warp: Warp, lanes: Lanes, instruction: PtxInstruction, target: int) -> None:
        """Lanes come to an instruction, perhaps back to the head of a loop."""
        loop = self._loops.get(target)
        if loop is None or instruction.number not in loop.inside:
            return
        run = self._run
        rows = {slot: row if type(row := warp.registers[slot]) is Uniform else list(row) for slot in loop.slots}
        for lane in lanes:
            thread = warp.threads[lane]
            number = thread.number
            self._counts[number, target] = self._counts.get((number, target), 0) + 1
            within = tuple(self._counts.get((number, head), 0) for head in loop.around)
            seen = self.visits.setdefault(number, [])
            if len(seen) < MOST_VISITS:
                seen.append(RoundEnd(target, within, len(thread.events), len(run.single), len(run.lanes), rows))
                if number in self._stretches:
                    self._stretch(warp, lane, number, len(seen) - 1, instruction)

    def _stretch(self, warp: Warp, lane: int, thread: int, visit: int, jump: PtxInstruction) -> None:
        """A round is over: the period that stands for all added ones may begin or end."""
        for stretch in self._stretches[thread]:
            if visit not in stretch:
                continue
            begun, ended = self._before[thread][stretch.first], self._before[thread][stretch.second]
            loop = self._loops[begun.head]
            for slot in loop.slots:
                now = self._drift(warp, slot, lane)
                step = step_of(begun.rows[slot][lane], ended.rows[slot][lane], self._widths[slot])
                if visit == stretch.first:
                    even = slot in loop.live and slot not in self.uneven and now is not None and step is not None
                    begin = Drift(now.by_parameter, step) if even and now is not None and step is not None else UNEVEN
                    self._begun[thread, slot] = begin
                    self._set(warp, slot, lane, begin)
                    continue
                begin = self._begun.pop((thread, slot))
                if begin is not None and now is None:
                    self.uneven.add(slot)
                elif begin not in (None, now):
                    raise Refused("what a register holds after a period", jump.span)
                self._set(warp, slot, lane, self.drifts.after_loop(now))
            for slot in self._notes:
                self._set(warp, slot, lane, UNEVEN)
            self._reached.add(thread)
            if visit == stretch.first:
                self._inside[thread] = visit
            else:
                self._inside.pop(thread, None)
