"""One run of a launch under a fair scheduler, with unknown data.

In: PtxModule, PtxFunction, Launch. Out: `LaunchTrace`. Lanes of a warp go on together while they can; the groups
that are behind run first, so that lanes meet again where their paths do. A test of an mbarrier object waits until it
returns true.
"""

from __future__ import annotations

import random

from memmodel.base.labels import Mark, Marker
from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.ahead import looking_ahead
from memmodel.kernel.flow.detours import Detour, detour
from memmodel.kernel.flow.rounds import looked_at
from memmodel.kernel.flow.timeouts import TimeOuts
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.choices.chosen_reads import ChosenReads
from memmodel.kernel.machine.choices.failing_tests import FailingTests
from memmodel.kernel.machine.choices.schedule import Schedule, last_clusters
from memmodel.kernel.machine.code import Code, Follower, compile_function, may_loop, only_computes
from memmodel.kernel.machine.collective.checks import RULE
from memmodel.kernel.machine.engines.calls import ASSERTION_CALL, back, chosen_callee, enter, system_call
from memmodel.kernel.machine.engines.multimem import misused
from memmodel.kernel.machine.engines.wgmma import BUSY
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.machine.parts import PARKED, Cta, Faulty, GoneLanes, LaneGroup, Lanes, Moment, Warp, state_of
from memmodel.kernel.machine.private_memory import moved
from memmodel.kernel.machine.rows import LANES, UNKNOWN, Row, Uniform, uniform
from memmodel.kernel.machine.state import PATIENCE, Machine
from memmodel.kernel.machine.values.lanes import forgetting
from memmodel.kernel.machine.values.naming import Naming, crossed
from memmodel.kernel.machine.waiting import lacks, stuck
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import ASSERTION, TRAP, AwaitsOthers, Refused
from memmodel.kernel.trace.threads import TraceThread
from memmodel.limits import effort
from memmodel.program.warp_ops import CallFunction, EndThread, Return, Trap
from memmodel.ptx.module.syntax import PtxFunction, PtxModule
from memmodel.ptx.vocabulary import Place

REGISTERS = 65536
"""Registers of a multiprocessor."""

MAX_STEPS = 4_000_000
"""Steps of groups of lanes in a run; more is taken for a loop without end."""

POLLS, LOOPS = 8, 256
"""Backward jumps of a warp in one turn, in loops that poll memory and in others."""

STARVED = 300
WRITES, MOST_WRITES = 16, 20
"""So many rounds warps that are to come late are held back. Each of so many writes in a round counts as one more, since
each is judged with all others; they count as this many at most."""

IDLE_ROUNDS = 400
"""Rounds in which nobody changed anything; more is taken for polling without end."""


class Scheduler:
    """All warps of the chosen CTAs."""

    def __init__(self, module: PtxModule, entry: PtxFunction, launch: Launch, schedule: Schedule) -> None:
        self.launch, self.entry = launch, entry
        self.follower = Follower()
        memory = DeviceMemory(module, entry, launch)
        self.run = LaunchTrace(memory=memory.blocks)
        awaits = looking_ahead(entry)
        self.code, self._slots = compile_function(
            entry, memory, frozenset(n for peeks in awaits.values() for n in peeks), schedule.assumed
        )
        self._most = min(effort(MAX_STEPS), schedule.steps or MAX_STEPS)
        self._time_outs = TimeOuts(entry, self.run.assumed)
        self._detours: dict[int, Detour | None] = {}
        self.ctas: list[Cta] = []
        self.warps: list[Warp] = []
        for number in schedule.ctas or range(launch.grid[0] * launch.grid[1] * launch.grid[2]):
            self._cta(number, memory)
        self.machine = Machine(launch, memory, self.run, self.ctas)
        self.machine.unstarted = last_clusters(launch, min(cta.cluster for cta in self.ctas) + 1, schedule.cancelled)
        self.machine.awaits = self.run.awaits = awaits
        loads = [number for number, does in enumerate(body_of(entry)) if does.loads]
        self.machine.loops = {number: slots for number in loads if (slots := looked_at(entry, number))}
        self.machine.schedule, self.machine.reads = schedule, ChosenReads(self.run, schedule.reads)
        self.machine.failing = FailingTests(self.run, schedule.failing)
        self.machine.elect_last = schedule.last_elected
        self.machine.order = {place: list(threads) for place, threads in schedule.order}
        for warp in self.warps if schedule.slow else ():
            warp.slow = random.Random(f"{schedule.slow} {warp.cta.number} {warp.number}").random() < 0.5
        for warp in self.warps if schedule.filled else ():
            warp.registers = [uniform(0)] * self._slots
        for warp in self.warps if schedule.late else ():
            warp.slow = (warp.cta.number, warp.number) in schedule.late
        self._holding = set(schedule.holding)

    # ---- threads ---------------------------------------------------------------------------------------------

    def _cta(self, number: int, memory: DeviceMemory) -> None:
        grid, block, size = self.launch.grid, self.launch.block, self.launch.cluster
        index = (number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1]))
        inside = tuple(i % c for i, c in zip(index, size, strict=True))
        cluster_index = tuple(i // c for i, c in zip(index, size, strict=True))
        clusters = tuple(g // c for g, c in zip(grid, size, strict=True))
        cluster = cluster_index[0] + clusters[0] * (cluster_index[1] + clusters[1] * cluster_index[2])
        rank = inside[0] + size[0] * (inside[1] + size[1] * inside[2])
        single = size == (1, 1, 1)
        threads = [
            TraceThread(
                len(self.run.threads) + n, number, n // LANES, n % LANES,
                Place(0, None if single else cluster, number if single else rank, n // LANES),
            )
            for n in range(self.launch.threads)
        ]  # fmt: skip
        self.run.threads += threads
        cta = Cta(number, cluster, rank, memory.shared(number, threads[0].place.cta_id), threads)
        self.ctas.append(cta)
        common: dict[str, int] = {"%dynamic_smem_size": self.launch.dynamic_shared}
        for axis, letter in enumerate("xyz"):
            common |= {
                f"%ctaid.{letter}": index[axis], f"%nctaid.{letter}": grid[axis], f"%ntid.{letter}": block[axis],
                f"%cluster_ctaid.{letter}": inside[axis], f"%cluster_nctaid.{letter}": size[axis],
                f"%clusterid.{letter}": cluster_index[axis], f"%nclusterid.{letter}": clusters[axis],
            }  # fmt: skip
        common |= {"%cluster_ctarank": rank, "%cluster_nctarank": size[0] * size[1] * size[2]}
        common |= {"%is_explicit_cluster": int(not single), "%nwarpid": -(-len(threads) // LANES)}
        for first in range(0, len(threads), LANES):
            self.warps.append(self._warp(cta, first // LANES, threads[first : first + LANES], common))

    def _warp(self, cta: Cta, number: int, threads: list[TraceThread], common: dict[str, int]) -> Warp:
        block = self.launch.block
        special: dict[str, Row] = {name: uniform(value) for name, value in common.items()}
        places = [number * LANES + lane for lane in range(LANES)]
        special["%tid.x"] = [n % block[0] for n in places]
        special["%tid.y"] = [n // block[0] % block[1] for n in places]
        special["%tid.z"] = [n // (block[0] * block[1]) for n in places]
        special["%laneid"] = list(range(LANES))
        special["%warpid"] = uniform(number)
        special["%lanemask_eq"] = [1 << lane for lane in range(LANES)]
        special["%lanemask_lt"] = [(1 << lane) - 1 for lane in range(LANES)]
        special["%lanemask_le"] = [(2 << lane) - 1 for lane in range(LANES)]
        special["%lanemask_gt"] = [0xFFFFFFFF & ~((2 << lane) - 1) for lane in range(LANES)]
        special["%lanemask_ge"] = [0xFFFFFFFF & ~((1 << lane) - 1) for lane in range(LANES)]
        warp = Warp(cta, number, threads, [], special, [LaneGroup(0, list(range(len(threads))))])
        warp.registers = [UNKNOWN] * self._slots
        warp.limit, warp.limit_known = self._limit(), "maxnreg" in self.entry.directives
        return warp

    def _limit(self) -> int:
        """Registers of a thread when the kernel starts: what .maxnreg says, or as many as the threads can have."""
        directive = self.entry.directives.get("maxnreg")
        return directive[0] if directive else min(248, REGISTERS // max(LANES, self.launch.threads) // 8 * 8)

    def _started(self) -> list[Warp]:
        """The warps of the clusters that wait to be taken over: nobody has asked for these, and they start."""
        warps = [warp for warp in self.warps if warp.cta.cluster in self.machine.unstarted]
        self.machine.unstarted = {}
        return warps

    # ---- scheduling ------------------------------------------------------------------------------------------

    def go(self) -> LaunchTrace:
        """Run to the end, or until no thread can go on."""
        waiting = [warp for warp in self.warps if warp.cta.cluster not in self.machine.unstarted]
        waiting = waiting[:: -1 if self.machine.schedule.backwards else 1]
        idle, state, rounds = 0, None, 0
        starves, starved, fast = self.machine.schedule.starves, 0, None
        while waiting:
            self.machine.next_round()
            rounds += 1
            progress, version = False, self.machine.version
            for warp in (warp for warp in waiting if not warp.slow):
                progress |= self._turn(warp)
            others = [warp for warp in waiting if not warp.slow]
            before_fast, fast = fast, state_of(others) if starves and others else None
            starving = starves and progress and fast != before_fast and starved < STARVED
            starved += starving * min(1 + (self.machine.version - version) // WRITES, MOST_WRITES)
            for warp in (warp for warp in waiting if warp.slow and not starving):
                if self.machine.version == version or rounds % PATIENCE == 0 or starves:
                    progress |= self._turn(warp)
            waiting = [warp for warp in waiting if warp.groups] or self._started()
            idle = 0 if self.machine.version != version else idle + 1
            before, state = state, state_of(waiting) if idle > 1 else None
            if not waiting or (progress and (state is None or state != before)):
                if idle > IDLE_ROUNDS and self.machine.schedule.parks:
                    break
                if idle > IDLE_ROUNDS:
                    at = self.code[waiting[0].groups[0].at].instruction
                    raise Refused("threads poll without end, as far as this was followed", at.span)
                continue
            late = self._started()
            if late or self.machine.release():
                waiting, idle = waiting + late, 0
                continue
            if self.machine.order:  # the kernel does not let its atomic operations be made in this order
                self.machine.order, self.run.infeasible, idle = {}, True, 0
                continue
            if not self.machine.schedule.parks:
                self._hang(waiting)
            break
        for message, instruction in self.machine.warpgroups.differences(self.ctas, ended=not waiting):
            self.machine.problem(RULE, message, instruction)
        self.run.proved = self.machine.failing.proved()
        return self.run

    def _turn(self, warp: Warp) -> bool:
        """Run a warp until all its groups wait."""
        progress, jumps = False, 0
        self.machine.polled = False
        for group in warp.groups:
            group.blocked = group.waits is PARKED
        while True:
            if jumps > (POLLS if self.machine.polled else LOOPS):
                return True
            ready = [candidate for candidate in warp.groups if not candidate.blocked]
            if not ready:
                return progress
            group = min(ready, key=lambda candidate: (candidate.held > 0, candidate.spun, candidate.at))
            group.held = 0
            for other in warp.groups:
                alike = (other.at, other.step, other.frames) == (group.at, other.held, group.frames) and group.step == 0
                if other is not group and alike and other.waits is None and group.waits is None:
                    group.lanes, group.checked = sorted(group.lanes + other.lanes), False
                    warp.groups.remove(other)
                    group.since = min(filter(None, (group.since, other.since)), default=None)
                    group.since = group.since if len(warp.groups) > 1 else None
                    break
            meeting = (other.at for other in warp.groups if other.at > group.at and not other.held)
            stop = min(meeting, default=-1)
            before, groups = group.at, len(warp.groups)
            moved = self._advance(warp, group, stop)
            if len(warp.groups) > groups:
                _apart(warp, group, self.machine.moment)
            progress |= moved or group.at != before
            if moved and group.at <= before:
                jumps += 1
                group.spun += int(self.machine.polled)
                for other in warp.groups:
                    other.held = max(0, other.held - int(self.machine.polled))
            elif moved:
                group.spun = 0
            if moved:
                for other in warp.groups:
                    stays = other is group or other.waits is PARKED or other.stopped == other.at
                    other.blocked = other.blocked and stays

    def _advance(self, warp: Warp, group: LaneGroup, stop: int) -> bool:
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
        """Hold back who has made an atomic operation: the warp, or the first of several lanes."""
        if not self.machine.schedule.apart or len(lanes) == 1:
            warp.slow = group.blocked = True
            return
        warp.groups.append(LaneGroup(group.at, lanes[:1], frames=group.frames, held=STARVED * POLLS))
        group.lanes = [lane for lane in group.lanes if lane != lanes[0]]

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
            self.machine.unknown("what this predicate decides", code.instruction)
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
            self.machine.unknown("what this predicate decides", code.instruction)
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
                moved(self.machine, warp, lane, (own, 0), own.size, number, put=True)
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
            if code.touched:
                self._check_registers(warp, code)
            return True
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
        match code.control:
            case CallFunction() as call:
                return self._call(warp, group, code, lanes, call)
            case Return() if group.frames:
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

    def _call(self, warp: Warp, group: LaneGroup, code: Code, lanes: Lanes, call: CallFunction) -> bool:
        """A call of a function of the module, or of the system."""
        instruction = code.instruction
        if code.calls or code.index is not None:
            through = None if code.index is None else code.index(warp)
            plan, lanes = chosen_callee(self.machine, warp, group, lanes, code.calls, through, instruction)
            warp.split(group, lanes)
            enter(self.machine, warp, group, lanes, plan, instruction)
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
        before = group.at
        for target, some in targets.items():
            self.follower.jumped(warp, some, code, target)
        stay = [lane for lane in group.lanes if lane not in lanes] if len(lanes) < len(group.lanes) else []
        (first, members), *others = targets.items()
        others += [(before + 1, stay)] if stay else []
        warp.groups += [LaneGroup(target, some, frames=group.frames) for target, some in others]
        group.at, group.lanes = first, members
        return bool(others) or first <= before or len(warp.groups) > 1

    def _leave(self, warp: Warp, group: LaneGroup, lanes: Lanes) -> None:
        warp.cta.gone |= warp.in_cta(lanes)
        self.machine.version += 1
        if group.since is not None:
            warp.gone.append(GoneLanes(tuple(lanes), group.since, self.machine.moment))
        if len(lanes) == len(group.lanes):
            warp.groups.remove(group)
        if len(warp.groups) == 1:
            warp.groups[0].since = None

    def _hang(self, waiting: list[Warp]) -> None:
        polls = (group for warp in waiting for group in warp.groups if group.waits is None and group.on is None)
        if self.machine.schedule.ctas and (group := next(polls, None)) is not None:
            what = "threads poll what CTAs may write that are not run"
            raise AwaitsOthers(what, self.code[group.at].instruction.span)
        for warp in waiting:
            for group in warp.groups:
                code = self.code[group.at]
                if self.run.multimem and group.waits is None and group.on is None:
                    what = "threads poll what another device may write through a multimem address"
                    raise Refused(what, code.instruction.span)
                divergent = code.does.aligned and group.waits is None and len(warp.groups) > 1
                rule = "barrier-divergence" if divergent else "hang"
                message = f"threads wait for ever at {code.instruction.opcode}{lacks(self.machine, warp, group)}"
                self.machine.problem(rule, message, code.instruction)
                self.run.problems[-1].threads += len(group.lanes) - 1
                self.run.stuck.append(stuck(self.machine, warp, group))


def _apart(warp: Warp, group: LaneGroup, moment: Moment) -> None:
    """Some lanes of a group went another way than the others."""
    since = group.since or moment
    for member in warp.groups:
        member.since = member.since or since


def _stops(group: LaneGroup, code: Code, schedule: Schedule) -> bool:
    """True if a slow warp stops before an instruction: once before a fence, so that those of others come first, and
    before all that others may see, where these are to see nothing as long as they can go on.
    """
    if not code.fences and not (schedule.starves and not code.does.without_effect):
        return False
    group.blocked = group.stopped != group.at
    group.stopped = group.at if group.blocked else -1
    return group.blocked


def run_launch(
    module: PtxModule, entry: PtxFunction, launch: Launch, schedule: Schedule | None = None,
    follower: Follower | None = None,
) -> LaunchTrace:  # fmt: skip
    """Run a launch under one schedule. `follower`: what goes along with it."""
    schedule = schedule or Schedule()
    scheduler = Scheduler(module, entry, launch, schedule)
    scheduler.follower = follower or scheduler.follower
    scheduler.follower.follow(scheduler.machine, scheduler.code, schedule.assumed)
    run = scheduler.go()
    run.infeasible |= scheduler.machine.reads.foretold
    for instruction in misused(run, scheduler.machine.memory.replicas, entry.body or ()):
        message = "a multimem address is accessed by another instruction than multimem"
        scheduler.machine.problem("undefined-address", message, instruction)

    def again(stores: frozenset[int], ordered: bool) -> LaunchTrace:
        naming = Naming(entry.body or (), stores, ordered=ordered or not launch.nan)
        named_run = run_launch(module, entry, launch, schedule, naming)
        named_run.doubtful, named_run.limited = naming.terms.doubtful, naming.limited
        return named_run

    run.again = again
    return run
