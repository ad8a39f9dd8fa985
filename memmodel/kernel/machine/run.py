"""One run of a launch under a fair scheduler, with unknown data.

In: PtxModule, PtxFunction, Launch. Out: `LaunchTrace`. Lanes of a warp go on together while they can; the groups with
the lowest instruction run first, so that lanes meet again where their paths do. A test of an mbarrier object waits
until it returns true.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.ahead import looking_ahead
from memmodel.kernel.flow.dead_results import read_beside
from memmodel.kernel.flow.paths import landing
from memmodel.kernel.flow.rounds import looked_at
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.choices.chosen_reads import ChosenReads
from memmodel.kernel.machine.choices.delayed_accesses import PATIENCE
from memmodel.kernel.machine.choices.schedule import Schedule, last_clusters
from memmodel.kernel.machine.choices.scripted_reads import ScriptedReads
from memmodel.kernel.machine.code import Follower, compile_function
from memmodel.kernel.machine.collective.checks import RULE
from memmodel.kernel.machine.engines.multimem import misused
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.machine.parts import HELD, PARKED, Cta, LaneGroup, Moment, Warp, state_of
from memmodel.kernel.machine.rows import uniform
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.values.naming import Naming
from memmodel.kernel.machine.waiting import FROM_OUTSIDE, awaits_outside, lacks, stuck
from memmodel.kernel.machine.warps.starting import start_cta
from memmodel.kernel.machine.warps.stepping import POLLS, STARVED, Stepping
from memmodel.kernel.trace.launch import LaunchTrace, TermsOf
from memmodel.kernel.trace.problems import AwaitsOthers, Refused
from memmodel.limits import effort
from memmodel.ptx.module.syntax import PtxFunction, PtxModule

MAX_STEPS = 4_000_000
"""Steps of groups of lanes in a run; more is taken for a loop without end."""

LOOPS = 256
"""Backward jumps of a warp in one turn, in loops that do not poll memory."""

WRITES, MOST_WRITES = 16, 20
"""Warps are held back one round more for each 16 writes of a round, at most 20 rounds: each write is judged with all
others."""

IDLE_ROUNDS = 400
"""Rounds in which nothing changed; more of them are taken for polling without end."""


class Scheduler:
    """All warps of the chosen CTAs."""

    def __init__(
        self, module: PtxModule, entry: PtxFunction, launch: Launch, schedule: Schedule, follower: Follower
    ) -> None:
        self.launch = launch
        memory = DeviceMemory(module, entry, launch)
        self.run = LaunchTrace(memory=memory.blocks)
        awaits = looking_ahead(entry)
        self.code, registers = compile_function(
            entry, memory, frozenset(n for peeks in awaits.values() for n in peeks), schedule.assumed
        )
        self.ctas: list[Cta] = []
        self.warps: list[Warp] = []
        for number in schedule.ctas or range(launch.grid[0] * launch.grid[1] * launch.grid[2]):
            cta, warps = start_cta(number, launch, entry, memory, self.run, registers)
            self.ctas.append(cta)
            self.warps += warps
        self.machine = Machine(launch, memory, self.run, self.ctas, schedule, _reads(self.run, schedule))
        first = min(cta.cluster for cta in self.ctas) + 1
        self.machine.unstarted = last_clusters(launch, first, schedule.cancelled, schedule.apart)
        self.machine.awaits = self.run.awaits = awaits
        polls = schedule.scripted is not None
        self._body = body_of(entry)
        loads = [number for number, does in enumerate(self._body) if does.loads or (polls and does.atomic)]
        self.machine.looked_at = {number: slots for number in loads if (slots := looked_at(entry, number))}
        for number, does in enumerate(self._body):
            if does.atomic and number not in self.machine.looked_at:
                self.machine.looked_at[number] = read_beside(entry, number)
        for warp in self.warps if schedule.slow else ():
            warp.slow = random.Random(f"{schedule.slow} {warp.cta.number} {warp.number}").random() < 0.5
        for warp in self.warps if schedule.filled else ():
            warp.registers = [uniform(0)] * registers
        for warp in self.warps if schedule.late else ():
            warp.slow = (warp.cta.number, warp.number) in schedule.late
        most = min(effort(MAX_STEPS), schedule.steps or MAX_STEPS)
        self._stepping = Stepping(self.machine, entry, self.code, follower, most, schedule.holding)
        self._rounds, self._starved = 0, 0
        self._state_of_others: object = None
        follower.follow(self.machine, self.code, schedule.assumed)

    def _started(self) -> list[Warp]:
        """The warps of the clusters that could be cancelled, when no cluster has cancelled them: they start."""
        warps = [warp for warp in self.warps if warp.cta.cluster in self.machine.unstarted]
        self.machine.unstarted = {}
        return warps

    # ---- scheduling ------------------------------------------------------------------------------------------

    def go(self) -> LaunchTrace:
        """Run to the end, or until no thread can go on."""
        machine, parks = self.machine, self.machine.schedule.parks
        waiting = [warp for warp in self.warps if warp.cta.cluster not in machine.unstarted]
        waiting = waiting[:: -1 if machine.schedule.backwards else 1]
        unchanged_rounds, idle_rounds, state = 0, 0, None
        while waiting and not (machine.schedule.scripted is not None and self.run.infeasible):
            version, idle = machine.version, machine.idle
            progress = self._round(waiting)
            waiting = [warp for warp in waiting if warp.groups] or self._started()
            unchanged_rounds = 0 if machine.version != version else unchanged_rounds + 1
            idle_rounds = 0 if machine.version - version != machine.idle - idle else idle_rounds + 1
            before, state = state, state_of(waiting) if idle_rounds > 1 else None
            if not waiting or (progress and (state is None or state != before)):
                if unchanged_rounds <= IDLE_ROUNDS:
                    continue
                if parks:
                    break
                at = self.code[waiting[0].groups[0].at].instruction
                raise Refused("threads poll without end, as far as this was followed", at.span)
            # no thread can go on by itself, but for those that the schedule holds back
            late = self._started()
            held = [group for warp in waiting for group in warp.groups if group.held_rounds or group.waits is HELD]
            for group in held:
                group.held_rounds, group.waits = 0, None if group.waits is HELD else group.waits
            if held or late or machine.delays.release():
                waiting, unchanged_rounds, idle_rounds = waiting + late, 0, 0
            elif machine.delays.all_stay:
                break
            elif machine.order:  # the kernel does not let its atomic operations be made in this order
                machine.order, self.run.infeasible, unchanged_rounds, idle_rounds = {}, True, 0, 0
            else:
                if not parks:
                    self._hang(waiting)
                break
        for message, instruction in machine.warpgroups.differences(self.ctas, ended=not waiting):
            machine.problem(RULE, message, instruction)
        self.run.proved = machine.failing.proved()
        for thread in self.run.threads:
            thread.settle()
        for align, sentence in machine.memory.trusted.values():
            self.run.assumed.setdefault(sentence, f"an .align of {align}")
        return self.run

    def _round(self, waiting: Sequence[Warp]) -> bool:
        """Each warp has a turn; the slow ones as the schedule says. True if some group went on."""
        machine, starves = self.machine, self.machine.schedule.starves
        machine.delays.next_round()
        self._rounds += 1
        progress, version, idle = False, machine.version, machine.idle
        others = [warp for warp in waiting if not warp.slow]
        for warp in others:
            progress |= self._turn(warp)
        before, self._state_of_others = self._state_of_others, None
        if starves and others:
            self._state_of_others = state_of(others)
        # the slow warps wait while the others come to new states
        starving = starves and progress and self._state_of_others != before and self._starved < STARVED
        if starving:
            self._starved += min(1 + (machine.version - version) // WRITES, MOST_WRITES)
            return progress
        for warp in waiting:
            unchanged = machine.version - version == machine.idle - idle
            if warp.slow and (unchanged or self._rounds % PATIENCE == 0 or starves):
                progress |= self._turn(warp)
        return progress

    def _turn(self, warp: Warp) -> bool:
        """Run a warp until all its groups wait."""
        progress, jumps = False, 0
        self.machine.polled = False
        for group in warp.groups:
            group.blocked = group.waits in (PARKED, HELD)
        while True:
            if jumps > (POLLS if self.machine.polled else LOOPS):
                return True
            ready = [candidate for candidate in warp.groups if not candidate.blocked]
            if not ready:
                return progress
            group = min(ready, key=lambda candidate: (candidate.held_rounds > 0, candidate.poll_jumps, candidate.at))
            group.held_rounds = 0
            for other in warp.groups:
                meets = (other.at, other.frames) == (group.at, group.frames)
                alike = meets and not (other.held_rounds or other.step or group.step)
                if other is not group and alike and other.waits is None and group.waits is None:
                    group.lanes, group.checked = sorted(group.lanes + other.lanes), False
                    warp.groups.remove(other)
                    group.apart_since = min(filter(None, (group.apart_since, other.apart_since)), default=None)
                    group.apart_since = group.apart_since if len(warp.groups) > 1 else None
                    break
            meeting = (other.at for other in warp.groups if other.at > group.at and not other.held_rounds)
            stop = min(meeting, default=-1)
            before, groups = group.at, len(warp.groups)
            moved = self._stepping.advance(warp, group, stop)
            if len(warp.groups) > groups:
                _note_split(warp, group, self.machine.moment)
            progress |= moved or group.at != before
            if moved and group.at <= before:
                jumps += 1
                group.poll_jumps += int(self.machine.polled)
                for other in warp.groups:
                    other.held_rounds = max(0, other.held_rounds - int(self.machine.polled))
            elif moved:
                group.poll_jumps = 0
            if moved:
                for other in warp.groups:
                    stays = other is group or other.waits in (PARKED, HELD) or other.fence == other.at
                    other.blocked = other.blocked and stays

    def _hang(self, waiting: list[Warp]) -> None:
        polls = (group for warp in waiting for group in warp.groups if group.waits is None and group.mbarrier is None)
        if self.machine.schedule.ctas and (group := next(polls, None)) is not None:
            what = "threads poll what CTAs may write that are not run"
            raise AwaitsOthers(what, self.code[group.at].instruction.span)
        outside = (it for warp in waiting for it in warp.groups if awaits_outside(self.machine, warp, it))
        if (group := next(outside, None)) is not None:
            raise Refused(FROM_OUTSIDE, self.code[group.at].instruction.span)
        for warp in waiting:
            for group in warp.groups:
                code = self.code[landing(self._body, group.at)]
                if self.run.multimem and group.waits is None and group.mbarrier is None:
                    what = "threads poll what another device may write through a multimem address"
                    raise Refused(what, code.instruction.span)
                divergent = code.does.aligned and group.waits is None and len(warp.groups) > 1
                rule = "barrier-divergence" if divergent else "hang"
                message = f"threads wait for ever at {code.instruction.opcode}{lacks(self.machine, warp, group)}"
                self.machine.problem(rule, message, code.instruction)
                self.run.problems[-1].threads += len(group.lanes) - 1
                self.run.stuck.append(stuck(self.machine, warp, group))


def _reads(run: LaunchTrace, schedule: Schedule) -> ChosenReads:
    """What the strong reads of a run return."""
    if schedule.scripted is None:
        return ChosenReads(run, schedule.reads)
    return ScriptedReads(run, schedule.reads, schedule.scripted)


def _note_split(warp: Warp, group: LaneGroup, moment: Moment) -> None:
    """Note since when the groups of a warp are apart."""
    since = group.apart_since or moment
    for member in warp.groups:
        member.apart_since = member.apart_since or since


def run_launch(
    module: PtxModule, entry: PtxFunction, launch: Launch, schedule: Schedule | None = None,
    follower: Follower | None = None,
) -> LaunchTrace:  # fmt: skip
    """Run a launch under one schedule. `follower`: what goes along with it."""
    schedule = schedule or Schedule()
    scheduler = Scheduler(module, entry, launch, schedule, follower or Follower())
    run = scheduler.go()
    run.infeasible |= scheduler.machine.reads.foretold
    for instruction in misused(run, scheduler.machine.memory.replicas, entry.body or ()):
        message = "a multimem address is accessed by another instruction than multimem"
        scheduler.machine.problem("undefined-address", message, instruction)

    def with_symbols(stores: frozenset[int], terms: TermsOf) -> LaunchTrace:
        ordered = terms is TermsOf.NUMBERS or not launch.nan
        naming = Naming(entry.body or (), stores, ordered=ordered, by_rows=terms is TermsOf.WARPS)
        named_run = run_launch(module, entry, launch, schedule, naming)
        named_run.doubtful, named_run.limited = naming.terms.doubtful, naming.limited
        return named_run

    run.with_symbols = with_symbols
    return run
