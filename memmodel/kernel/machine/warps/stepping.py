"""Lanes of a warp that are at the same instruction go on together.

In: a group of lanes. Out: it at its next instruction, waiting, split, or gone. Settled here: what a guard that is not
known decides, and where a branch leads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memmodel.base.labels import Mark, Marker
from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.detours import Detour, detour
from memmodel.kernel.flow.timeouts import TimeOuts
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.code import Code, Follower, may_loop, only_computes
from memmodel.kernel.machine.collective.rounds import RoundsApart
from memmodel.kernel.machine.engines.calls import ASSERTION_CALL, back, chosen_callee, enter, system_call
from memmodel.kernel.machine.engines.wgmma import BUSY
from memmodel.kernel.machine.parts import HELD, PARKED, Faulty, GoneLanes, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.private_memory import note_access
from memmodel.kernel.machine.rows import Uniform
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.values.lanes import forgetting
from memmodel.kernel.machine.values.naming import crossed
from memmodel.kernel.trace.problems import ASSERTION, TRAP, Refused
from memmodel.program.warp_ops import CallFunction, EndThread, Return, Trap
from memmodel.ptx.module.syntax import PtxFunction

POLLS = 8
"""Backward jumps of a warp in one turn, in loops that poll memory."""

STARVED = 300
"""The most rounds for which warps that are to come late are held back."""


class Stepping:
    """Carries out the instructions of a function. `most`: the most steps of a run. `holding`: atomic operations; the
    first warp that makes one of them is held back after it."""

    def __init__(
        self, machine: Machine, entry: PtxFunction, code: Sequence[Code], follower: Follower, most: int,
        holding: Iterable[int],
    ) -> None:  # fmt: skip
        self.machine, self.run, self.entry, self.code = machine, machine.run, entry, code
        self.follower = follower
        self._most, self._holding = most, set(holding)
        self._held = set(machine.schedule.held)
        self._rounds = RoundsApart(entry)
        self._time_outs = TimeOuts(entry, machine.run.assumed)
        self._detours: dict[int, Detour | None] = {}
        self._without_return = [range(each.start, each.end) for each in entry.callees.values() if not each.returns]

    def advance(self, warp: Warp, group: LaneGroup, stop: int) -> bool:
        """Carry out instructions of a group until it waits, splits, jumps or meets others. False if it cannot go on."""
        done = 0
        try:
            while group.at != stop or done == 0:
                if group.at >= len(self.code):
                    self._leave(warp, group, group.lanes)
                    return True
                code = self.code[group.at]
                if warp.slow and _stops(group, code, self.machine.schedule):
                    return True
                if self._held and self._holds(warp, group):
                    return True
                lanes = group.lanes if code.guard is None else self._guarded(warp, group, code)
                if lanes is None:
                    return True
                self.run.instructions += len(lanes)
                if lanes or code.does.jumps:
                    self.run.executed.add(group.at)
                done += 1
                self.machine.steps += 1
                if self.machine.steps > self._most:
                    raise Refused(f"the run does not end within {self._most:,} steps", code.instruction.span)
                if code.control is not None:
                    if lanes and self._control(warp, group, code, lanes):
                        return True
                    if not lanes:
                        group.at += 1
                    continue
                if lanes and not self._plain(warp, group, code, lanes):
                    return done > 1
                group.at += 1
                if lanes and code.instruction.number in self._holding:
                    self._holding.remove(code.instruction.number)
                    self._hold(warp, group, lanes)
                    return True
        except Faulty as error:
            code = self.code[group.at]
            self.machine.problem(error.rule, error.message, code.instruction)
            self._leave(warp, group, group.lanes)
        except Refused:
            if not self.machine.schedule.parks:
                raise
            group.waits, group.blocked = PARKED, True
        return True

    def _hold(self, warp: Warp, group: LaneGroup, lanes: Lanes) -> None:
        """Hold back what has made an atomic operation: the warp, or the first of several lanes."""
        if not self.machine.schedule.parts_lanes or len(lanes) == 1:
            warp.slow = group.blocked = True
            return
        warp.groups.append(LaneGroup(group.at, lanes[:1], frames=group.frames, held_rounds=STARVED * POLLS))
        group.lanes = [lane for lane in group.lanes if lane != lanes[0]]

    def _holds(self, warp: Warp, group: LaneGroup) -> bool:
        """Stop the lanes that the schedule holds back before this instruction. True if some stop."""
        lanes_here = {lane: (warp.cta.number, warp.number, lane, group.at) for lane in group.lanes}
        late = [lane for lane, place in lanes_here.items() if place in self._held]
        if not late:
            return False
        self._held.difference_update(lanes_here[lane] for lane in late)
        if len(late) < len(group.lanes):
            warp.groups.append(
                LaneGroup(group.at, [lane for lane in group.lanes if lane not in late], frames=group.frames)
            )
            group.lanes = late
        group.waits, group.blocked = HELD, True
        return True

    def _guarded(self, warp: Warp, group: LaneGroup, code: Code) -> Lanes | None:
        """The lanes that carry out an instruction; None if the group goes on elsewhere."""
        assert code.guard is not None
        number, values = code.instruction.number, warp.registers[code.guard]
        if (jumps := self._time_outs.jumps(number)) is not None:
            return group.lanes if jumps else []
        self.follower.guarded(warp, group.lanes, code)
        wanted = 0 if code.negated else 1
        if type(values) is Uniform and values.value is not None:
            return group.lanes if values.value & 1 == wanted else []
        unsure = [lane for lane in group.lanes if values[lane] is None]
        if unsure and code.does.jumps:
            self._either(warp, group, code, unsure)
            return None
        if unsure and (code.pure is None or code.touched):
            self.machine.unknown("the value of this predicate", code.instruction)
        if unsure:
            forgetting(code.assigned)(warp, unsure)
        return [lane for lane in group.lanes if values[lane] == wanted]

    def _either(self, warp: Warp, group: LaneGroup, code: Code, lanes: Lanes) -> None:
        """Lanes come to a branch that unknown data decides: if both sides only compute, they go on where these meet."""
        number = code.instruction.number
        if number not in self._detours:
            self._detours[number] = detour(body_of(self.entry), number, lambda at: only_computes(self.code, at))
        way = self._detours[number]
        if way is None:
            self.machine.unknown("the value of this predicate", code.instruction)
        if way.loops or any(may_loop(self.code, at) for at in way.calls):
            self.run.endless[number] = code.instruction
        others = [lane for lane in group.lanes if lane not in lanes]
        if others:
            warp.groups.append(LaneGroup(group.at, others, frames=group.frames))
        crossed(self.follower, warp, lanes, number, way)
        noted = {slot for at in way.inside for slot in self.code[at].assigned}.difference(way.slots)
        forgetting(list(noted))(warp, lanes)
        for lane in lanes if way.stores else ():
            if (own := warp.locals[lane]) is not None:
                own.forget(0, own.size)
                note_access(self.machine, warp, lane, (own, 0), own.size, number, put=True)
        group.at, group.lanes = way.join, lanes

    def _plain(self, warp: Warp, group: LaneGroup, code: Code, lanes: Lanes) -> bool:
        """An instruction that goes on to the next; False if it waits."""
        if code.refusal is not None:
            raise code.refusal
        if code.pure is not None:
            code.pure(warp, lanes)
            if code.touched:
                self._check_registers(warp, code)
            return True
        self.machine.failing.met(warp, lanes, code.does)
        collective = code.collective
        ready = collective is None or collective.gathered(warp, lanes)
        if ready and code.blocking is not None and code.blocking(self.machine, warp, lanes, group):
            if collective is not None:
                collective.executed(self.machine, warp, lanes)
                self._rounds.met(self.machine, warp, lanes, group)
            if code.touched:
                self._check_registers(warp, code)
            return True
        if not ready and len(lanes) < len(group.lanes):
            warp.passed_over.add(code.instruction.number)
        warp.split(group, lanes)
        group.blocked = True
        return False

    def _check_registers(self, warp: Warp, code: Code) -> None:
        """Registers of a wgmma.mma_async that is not over are not touched ("wgmma.mma_async")."""
        use = warp.registers_in_use
        if any(use.busy(slot) for slot in code.touched):
            self.machine.problem("undefined-instruction", BUSY, code.instruction)
        for slot in code.touched:
            (use.written if slot in code.written else use.read)[slot] = use.fences

    def _control(self, warp: Warp, group: LaneGroup, code: Code, lanes: Lanes) -> bool:
        """A change of control; True if the group is to be chosen anew."""
        if code.refusal is not None:
            raise code.refusal
        if len(lanes) < len(group.lanes):
            self._divides(code)
        match code.control:
            case CallFunction() as call:
                return self._call(warp, group, code, lanes, call)
            case Return() if group.frames:
                if any(group.at in body for body in self._without_return):
                    raise Faulty("undefined-instruction", "a function that is declared with .noreturn returns")
                warp.split(group, lanes)
                back(self.machine, warp, group, lanes, self.code[group.frames[-1]].calls)
            case Return() | EndThread():
                warp.split(group, lanes)
                for lane in lanes:
                    self.machine.event(warp.threads[lane], group.at, Mark(Marker.EXIT))
                self._leave(warp, group, lanes)
            case Trap(name):
                self.machine.problem(TRAP, f"the kernel reaches {name}", code.instruction)
                self._leave(warp, group, group.lanes)
            case _:
                return self._jump(warp, group, code, lanes)
        return True

    def _divides(self, code: Code) -> None:
        """Lanes that are at one instruction go different ways ("bra": .uni is guaranteed to be non-divergent)."""
        if code.does.undivided:
            message = f"lanes of a warp go different ways at {code.instruction.opcode}, which says that they do not"
            self.machine.problem("undefined-instruction", message, code.instruction)

    def _call(self, warp: Warp, group: LaneGroup, code: Code, lanes: Lanes, call: CallFunction) -> bool:
        """A call of a function of the module, or of the system."""
        instruction = code.instruction
        if code.calls or code.index is not None:
            through = None if code.index is None else code.index(warp)
            plan, members = chosen_callee(self.machine, warp, group, lanes, code.calls, through, instruction)
            if len(members) < len(lanes):
                self._divides(code)
            warp.split(group, members)
            enter(self.machine, warp, group, members, plan, instruction)
            return True
        if call.name == ASSERTION_CALL:
            self.machine.problem(ASSERTION, "an assertion of the kernel fails", instruction)
            self._leave(warp, group, group.lanes)
            return True
        system_call(self.machine, warp, lanes, call, instruction)
        group.at += 1
        return False

    def _jump(self, warp: Warp, group: LaneGroup, code: Code, lanes: Lanes) -> bool:
        """A branch; lanes that go elsewhere are a group of their own."""
        labels = code.does.targets
        targets: dict[int, Lanes] = {}
        if code.index is None:
            targets[labels[0]] = lanes
        else:
            values = code.index(warp)
            for lane in lanes:
                value = values[lane]
                if value is None:
                    self.machine.unknown("where this branch goes", code.instruction)
                if value >= len(labels):
                    raise Faulty("undefined-instruction", f"the index {value} is outside the list of branch targets")
                targets.setdefault(labels[value], []).append(lane)
        if len(targets) > 1:
            self._divides(code)
        before = group.at
        for target, some in targets.items():
            self.follower.jumped(warp, some, code, target)
            if target <= before:
                self._rounds.jumped(warp, some, before, target)
        stay = [lane for lane in group.lanes if lane not in lanes] if len(lanes) < len(group.lanes) else []
        (first, members), *others = targets.items()
        others += [(before + 1, stay)] if stay else []
        warp.groups += [LaneGroup(target, some, frames=group.frames) for target, some in others]
        group.at, group.lanes = first, members
        return bool(others) or first <= before or len(warp.groups) > 1

    def _leave(self, warp: Warp, group: LaneGroup, lanes: Lanes) -> None:
        warp.cta.exited |= warp.in_cta(lanes)
        self.machine.version += 1
        if group.apart_since is not None:
            warp.exited.append(GoneLanes(tuple(lanes), group.apart_since, self.machine.moment))
        if len(lanes) == len(group.lanes):
            warp.groups.remove(group)
        if len(warp.groups) == 1:
            warp.groups[0].apart_since = None


def _stops(group: LaneGroup, code: Code, schedule: Schedule) -> bool:
    """True if a slow warp stops before an instruction.

    It stops once before each fence, so that fences of other warps come first. If the schedule starves it, it also stops
    before everything that other warps may see.
    """
    if not code.fences and not (schedule.starves and not code.does.without_effect):
        return False
    group.blocked = group.fence != group.at
    group.fence = group.at if group.blocked else -1
    return group.blocked
