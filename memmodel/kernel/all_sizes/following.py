"""A run whose numbers are followed for larger values of one parameter, and for more rounds of the loops it decides.

In: entry, parameter, where loops are stretched. Out: visits of loops; the branches that go elsewhere for larger values.
Settled here: with `stretches`, all that decides control flow, addresses, sizes, counts and parities must be the same
however often the stretched loops run, and the state must come back after a period; else `Refused` is raised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from memmodel.base.labels import Action
from memmodel.isa.lowered import registers
from memmodel.isa.row import numeric_type
from memmodel.kernel.all_sizes.access_kinds import (
    copied_in,
    in_shared,
    maps_of,
    named_in,
    resized,
    slots_of,
    step_of,
    stores,
    tests_state,
    tiles,
)
from memmodel.kernel.all_sizes.cells import DriftCells, accesses_since
from memmodel.kernel.all_sizes.drift import STILL, UNEVEN, UNTYPED, Drift, Drifting, DriftingNumber, Drifts
from memmodel.kernel.all_sizes.loops import LoopText, ParamPart, address_taken, parts_of, widths
from memmodel.kernel.flow.detours import Detour
from memmodel.kernel.flow.registers import read_slots, written
from memmodel.kernel.machine.code import Code, Follower
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.rows import Row, Uniform, Value
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.machine.values.lanes import Step
from memmodel.kernel.machine.values.specials import special
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.problems import Refused
from memmodel.program.ops import OnObject
from memmodel.program.warp_ops import SHUFFLES, AmongLanes
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Imm, Negated, Operand, Pair, Register, Special, Sym, Vector

MOST_VISITS = 400
"""Rounds of a loop that are looked at."""

JOINS = {"and": 0, "or": 1}
"""The operand that decides the result alone."""


class RoundEnd(NamedTuple):
    """A thread goes back to the head of a loop. `within`: how often it had gone back to the heads of loops around it.

    `events`: the length of its trace then; `single`, `many`: the numbers of accesses of the run. `rows`: the registers
    that the loop writes.
    """

    head: int
    within: tuple[int, ...]
    events: int
    single: int
    many: int
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
    """Follows one run. `stretches`: by thread; without any the run is only observed.

    `uneven`: registers that do not change evenly over a period, whose values at its begin must have no effect.
    `varying`: stores of numbers that drift, and stores of unknown numbers after the begin of the period. `value`: the
    parameter in this launch. `leaves`: branches that may go elsewhere for larger values of the parameter; `wandering`:
    global memory that is read at other addresses then; `placed`: weak accesses to global memory whose addresses drift,
    with how many there are.
    """

    def __init__(
        self, loops: Mapping[int, LoopText], entry: PtxFunction, param: ParamPart,
        before: Mapping[int, Sequence[RoundEnd]] | None = None,
        stretches: Mapping[int, Sequence[Stretch]] | None = None, uneven: Collection[int] = (),
    ) -> None:  # fmt: skip
        self._entry, self._widths = {parameter.name for parameter in entry.params}, widths(entry.body or ())
        self._taken = address_taken(entry.body or (), param)
        self.uneven = set(uneven)
        self.varying: set[int] = set()
        self._begun: dict[tuple[int, int], Drifting] = {}
        self._stale: set[int] = set()
        """Threads whose carry comes from before a cut."""
        self.value: int | None = None
        self.drifts = Drifts()
        self.visits: dict[int, list[RoundEnd]] = {}
        self.leaves: dict[int, PtxInstruction] = {}
        self.wandering: dict[Block, PtxInstruction] = {}
        self.placed: dict[Block, Counter[Moved]] = {}
        self.cells = DriftCells()
        self._loops, self._param = loops, param
        self._carried = frozenset(slot for loop in loops.values() for slot in loop.live.intersection(loop.slots))
        self._before, self._stretches = before or {}, stretches or {}
        self._strict = stretches is not None
        self._counts: dict[tuple[int, int], int] = {}
        self._inside: dict[int, int] = {}
        self._reached: set[int] = set()
        self._going: dict[Warp, dict[int, dict[int, Drifting]]] = {}
        self._machine: Machine | None = None

    def follow(self, machine: Machine, codes: Sequence[Code], assumed: Sequence[str]) -> None:
        self._machine = machine
        for code in codes:
            if code.pure is not None:
                code.pure = self._computed(code.instruction, code.pure)
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

    def _moving(self, warp: Warp, slots: Sequence[int]) -> list[int]:
        """The registers in which something drifts, of some."""
        going = self._going.get(warp)
        return [] if not going else [slot for slot in slots if going.get(slot)]

    def _value(self, operand: Operand, warp: Warp, lane: int) -> Value:
        if isinstance(operand, Register):
            return warp.registers[operand.slot][lane]
        if isinstance(operand, Negated):
            value = self._value(operand.operand, warp, lane)
            return None if value is None else value ^ 1
        if isinstance(operand, Imm):
            return operand.value
        if isinstance(operand, Special):
            return special(operand.name)(warp)[lane]
        return None

    def _number(self, operand: Operand, warp: Warp, lane: int, kind: str) -> DriftingNumber:
        """An operand, read as its type. An unknown value does not change evenly."""
        drift = UNEVEN
        if isinstance(operand, Register | Negated):
            register = operand.operand if isinstance(operand, Negated) else operand
            assert isinstance(register, Register)
            drift = self._drift(warp, register.slot, lane)
        elif isinstance(operand, Imm | Special):
            drift = STILL
        value = self._value(operand, warp, lane)
        if value is None:
            return DriftingNumber(0, UNEVEN)
        return DriftingNumber((numeric_type(kind) or UNTYPED).wrap(value), drift)

    # ---- instructions that compute ---------------------------------------------------------------------------

    def _computed(self, instruction: PtxInstruction, step: Step) -> Step:
        sources, targets = tuple(read_slots(instruction)), tuple(written(instruction))

        def change(warp: Warp, lanes: Lanes) -> None:
            moving = self._moving(warp, sources)
            if self._strict:
                self._carries(instruction, warp, lanes, moving)
            if not moving:
                step(warp, lanes)
                self._still(warp, targets, lanes)
                return
            going = self._going[warp]
            drifts: dict[int, Drifting] = {}
            for lane in lanes:
                if any(lane in going[slot] for slot in moving):
                    drifts[lane] = self._made(instruction, warp, lane)
            step(warp, lanes)
            for slot in targets:
                for lane in lanes:
                    self._set(warp, slot, lane, drifts.get(lane, STILL))

        return change

    def _carries(self, instruction: PtxInstruction, warp: Warp, lanes: Lanes, moving: Sequence[int]) -> None:
        """The carry is no register: nothing that drifts may enter it, and it may not cross a cut."""
        threads = {warp.threads[lane].number for lane in lanes} if self._stale else set()
        uses, sets = instruction.words[0] in ("addc", "subc", "madc"), "cc" in instruction.words
        if (sets and moving) or (uses and threads & self._stale):
            raise Refused(f"the carry of {instruction.opcode}", instruction.span)
        self._stale -= threads if sets else set()

    def _still(self, warp: Warp, slots: Sequence[int], lanes: Lanes) -> None:
        for slot in self._moving(warp, slots):
            for lane in lanes:
                self._going[warp][slot].pop(lane, None)

    def _made(self, instruction: PtxInstruction, warp: Warp, lane: int) -> Drifting:
        """The drift of the result of an instruction."""
        words, (target, *sources) = instruction.words, instruction.operands
        if isinstance(target, Vector) or any(isinstance(item, Vector | Sym) for item in sources):
            return UNEVEN
        if words[0] in ("setp", "set"):
            return self._tested(words, sources, warp, lane)
        kind = words[-1]
        if kind == "pred":
            operands = [self._number(item, warp, lane, "u1") for item in sources]
            decides = JOINS.get(words[0])
            return STILL if any(item.drift == STILL and item.value == decides for item in operands) else UNEVEN
        if words[0] == "selp":
            choice = self._number(sources[2], warp, lane, "u1")
            return UNEVEN if choice.drift != STILL else self._number(sources[1 - choice.value], warp, lane, kind).drift
        if _floating(kind) or isinstance(target, Pair):
            return UNEVEN
        return self.drifts.computed(words, [self._number(item, warp, lane, kind) for item in sources])

    def _tested(self, words: tuple[str, ...], sources: Sequence[Operand], warp: Warp, lane: int) -> Drifting:
        if len(words) < 3 or _floating(words[-1]) or len(sources) != 2:
            return UNEVEN
        first, second = (self._number(item, warp, lane, words[-1]) for item in sources)
        for item in (first, second):
            self.drifts.read(item, words[-1])
        return UNEVEN if self.drifts.truth(words[1], first, second) is None else STILL

    # ---- instructions that do more ---------------------------------------------------------------------------

    def _done(self, code: Code, step: Blocking) -> Blocking:
        instruction, ops = code.instruction, code.ops
        shuffles = any(isinstance(op, AmongLanes) and op.exchange in SHUFFLES for op in ops)
        arrives = any(isinstance(op, OnObject) and op.label.action is Action.ARRIVE for op in ops)
        sources, targets = tuple(read_slots(instruction)), tuple(written(instruction))
        leaves = instruction.words[0] in ("st", "atom", "red") or stores(ops)
        loads = instruction.words[0] in ("ld", "ldu", "ldmatrix") and "const" not in instruction.words
        loads = loads and not ("param" in instruction.words and named_in(instruction) in self._entry)

        def change(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
            moving = [slot for slot in self._moving(warp, sources) if self._touches(warp, slot, lanes)]
            team = self._team(instruction, warp, lanes, moving) if moving and shuffles else None
            single, many = len(machine.run.single), len(machine.run.lanes)
            if not step(machine, warp, lanes, group):
                return False
            drift: Drifting = STILL
            if moving and team is None:
                self._uses(code, machine, warp, moving, single, many)
                drift = STILL if tests_state(instruction) else UNEVEN
            if arrives:
                drift = UNEVEN  # a state has the number of its phase
            if instruction.words[0] in ("alloca", "stacksave"):
                drift = UNEVEN  # the stack is no register
            if loads:
                threads = {warp.threads[lane].number for lane in lanes}
                accesses = accesses_since(machine, single, many)
                if self.cells.brought(instruction, accesses, self._inside, threads) or (self._taken and not accesses):
                    drift = UNEVEN
            if team is None and drift == STILL:
                self._still(warp, targets, lanes)
            else:
                for slot in targets:
                    for n, lane in enumerate(lanes):
                        self._set(warp, slot, lane, drift if team is None else team[n])
            if self.cells.any and maps_of(ops):
                self._through(code, machine, warp, lanes, single, many)
            if instruction.words[0] == "ld" and "param" in instruction.words:
                self._parameter(instruction, warp, lanes)
            elif leaves:
                drifts = instruction.words[0] not in ("atom", "red") and bool(moving)
                self.cells.left(code, accesses_since(machine, single, many), drifts=drifts)
                if instruction.words[0] == "st" and (drifts or self._unknown(instruction, warp, lanes)):
                    self.varying.add(instruction.number)
            return True

        return change

    def _unknown(self, instruction: PtxInstruction, warp: Warp, lanes: Lanes) -> bool:
        """True if a thread stores an unknown number after the begin of a period."""
        behind = [lane for lane in lanes if warp.threads[lane].number in self._reached]
        return any(warp.registers[slot][lane] is None for slot in read_slots(instruction) for lane in behind)

    def _touches(self, warp: Warp, slot: int, lanes: Lanes) -> bool:
        going = self._going[warp][slot]
        return any(lane in going for lane in lanes)

    def _team(
        self, instruction: PtxInstruction, warp: Warp, lanes: Lanes, moving: Sequence[int]
    ) -> list[Drifting] | None:
        """shfl of a number that all lanes have, and that drifts alike in them."""
        data = instruction.operands[1]
        if not isinstance(data, Register) or list(moving) != [data.slot]:
            return None
        drifts = {self._drift(warp, data.slot, lane) for lane in lanes}
        values = {warp.registers[data.slot][lane] for lane in lanes}
        return [drifts.pop()] * len(lanes) if len(drifts) == 1 and len(values) == 1 else None

    def _uses(
        self, code: Code, machine: Machine, warp: Warp, moving: Sequence[int], single: int, many: int
    ) -> None:  # fmt: skip
        """An instruction that does more than compute has operands that drift. Raises Refused where that must not be."""
        if not self._strict:
            return
        instruction, copied = code.instruction, copied_in(code.ops)
        words, free = instruction.words, set[int]()
        if words[0] in ("st", "ld", "ldu") and len(instruction.operands) == 2:
            data, place = instruction.operands[::-1] if words[0] == "st" else instruction.operands
            accesses = accesses_since(machine, single, many)
            elsewhere = bool(accesses) and not any(in_shared(access.block) for access in accesses)
            free = set(registers(data) if words[0] == "st" else ()) | set(registers(place) if elsewhere else ())
            for access in accesses if not set(registers(place)).isdisjoint(moving) else ():
                drift = self._drift(warp, registers(place)[0], machine.run.threads[access.thread].lane)
                self.placed.setdefault(access.block, Counter())[Moved(access.first, access.size, drift)] += 1
        elif tests_state(instruction):
            # A state that a round leaves to the next one may be that of another object in a longer loop.
            free = {slot for item in instruction.operands[2:] for slot in registers(item)} - self._carried
        elif sizes := resized(code.ops):
            free = slots_of(sizes)
        elif words[0] in ("prefetch", "prefetchu") or copied:  # another map is another tensor
            free = slots_of(copied) if copied else set(registers(instruction.operands[0]))
            free -= slots_of(maps_of(code.ops))
            self.wandering |= dict.fromkeys(tiles(accesses_since(machine, single, many)), instruction)
        if not free.issuperset(moving):
            raise Refused(f"an operand of {instruction.opcode}", instruction.span)

    def _through(
        self, code: Code, machine: Machine, warp: Warp, lanes: Lanes, single: int, many: int
    ) -> None:  # fmt: skip
        """A copy through a tensor map that holds numbers that drift."""
        for lane in lanes:
            events = warp.threads[lane].events
            named = events[-1].range if events else None
            if named is None or not self.cells.hold(*named):
                continue
            if self._strict and not copied_in(code.ops):
                raise Refused(f"the tensor map of {code.instruction.opcode}", code.instruction.span)
            self.wandering |= dict.fromkeys(tiles(accesses_since(machine, single, many)), code.instruction)

    def _parameter(self, instruction: PtxInstruction, warp: Warp, lanes: Lanes) -> None:
        """A load of a parameter: the one that grows drifts."""
        target, parts = instruction.operands[0], parts_of(instruction)
        if self._strict and not parts:
            raise Refused(f"the address of {instruction.opcode}", instruction.span)
        for item, part in zip(target.items if isinstance(target, Vector) else (target,), parts, strict=False):
            if isinstance(item, Register) and part.meets(self._param):
                whole = part == self._param
                self.value = warp.registers[item.slot][lanes[0]] if whole else self.value
                for lane in lanes:
                    self._set(warp, item.slot, lane, Drift(Fraction(1), 0) if whole else UNEVEN)

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
            if self._strict:
                raise Refused(f"whether {instruction.opcode} is carried out", instruction.span)
            if code.jumps:
                self.leaves[instruction.number] = instruction
        if code.jumps and instruction.number + 1 in self._loops:
            stay = [lane for lane in lanes if warp.registers[slot][lane] == int(code.negated)]
            self._comes(warp, stay, instruction, instruction.number + 1)

    def detoured(self, warp: Warp, lanes: Lanes, branch: int, way: Detour) -> dict[tuple[int, int], int]:
        self._still(warp, tuple(way.slots), lanes)
        return {}

    def jumped(self, warp: Warp, lanes: Lanes, code: Code, target: int) -> None:
        if code.jumps_by_table:
            slots = self._moving(warp, registers(code.instruction.operands[0]))
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
        assert self._machine is not None
        run = self._machine.run
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
                    begin = Drift(now.grows, step) if even and now is not None and step is not None else UNEVEN
                    self._begun[thread, slot] = begin
                    self._set(warp, slot, lane, begin)
                    continue
                begin = self._begun.pop((thread, slot))
                if begin is not None and now is None:
                    self.uneven.add(slot)
                elif begin not in (None, now):
                    raise Refused("what a register holds after a period", jump.span)
                self._set(warp, slot, lane, self.drifts.done(now))
            self._stale.add(thread)
            self._reached.add(thread)
            if visit == stretch.first:
                self._inside[thread] = visit
            else:
                self._inside.pop(thread, None)


def _floating(kind: str) -> bool:
    """True for the types of floating-point numbers."""
    type = numeric_type(kind)
    return type is None or type.floating
