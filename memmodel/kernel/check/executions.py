"""Other executions of a launch: those in which choices that matter are made otherwise.

In: `KernelCase`, `OpenChoices`, the waits. Out: what is wrong in them, put into a `VerdictSoFar` at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from time import process_time

from memmodel.answer import HANG
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.choices import OpenChoices, with_more_choices
from memmodel.kernel.check.judged_runs import judged_run, ready_run
from memmodel.kernel.check.so_far import JudgedRun, VerdictSoFar
from memmodel.kernel.executions.alike_orders import ranks_alike
from memmodel.kernel.executions.consistent import execution_of, impossible
from memmodel.kernel.executions.decisions import leaves_out, returns_older, without_rounds
from memmodel.kernel.executions.others import OtherReads
from memmodel.kernel.executions.reads_from import ReadsFrom, Script
from memmodel.kernel.executions.schedules import ALL, DrawnSchedules, atomics, ordered_place
from memmodel.kernel.executions.settled_waits import SettledWaits
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.order.fences import BASE
from memmodel.kernel.order.judging import RunJudge, problems
from memmodel.kernel.order.last_writes import stores_matter
from memmodel.kernel.order.verdict import KernelReading
from memmodel.kernel.trace.launch import ChoiceKind, LaunchTrace
from memmodel.kernel.trace.problems import ASSERTION, TRAP, Refused

READ = (ChoiceKind.LOAD, ChoiceKind.ATOMIC, ChoiceKind.LAST_WRITE)
"""Choices that are made where each read has the write that it reads from."""

SOME_EXECUTIONS, MOST_EXECUTIONS, SMALL, MOST_READS = 60, 256, 6_000, 64
"""Executions that are judged if they are all there are, more if all of them have so few events, and reads that
decide something in each of them."""

MOST_WAITING = 240
"""The most runs that wait to be judged: far more than executions are judged."""

LEAST_STEPS = 100_000
"""Steps that a run after the first may take, if four times those of the first run are fewer."""

MOST_STAYS = 640
"""Runs in which some threads stay in their loops."""

OTHERS = 24
"""Runs in which strong reads return other writes than the last ones in time."""

UNEVEN, LATE = 3, 6
"""Schedules that are looked at where a condition does not hold: some warps are slow, or one that is chosen."""

FEW_INSTRUCTIONS = 1_024
"""Instructions of the lanes of a run, of which as many are made as elect.sync has lanes."""

ELECTED = "elect.sync takes the first lane or the last, or the kernel does the same with each other lane"

CANCELLED = 8
"""The clusters that one cluster takes over, one after the other: enough tiles for it to use its stages again."""


@dataclass(frozen=True, slots=True)
class OtherExecutions:
    """Judges runs under other schedules than the first one's."""

    case: KernelCase
    waits: SettledWaits
    report: VerdictSoFar

    def judge(self, trace: LaunchTrace, chosen: frozenset[int], *, counted: bool = True) -> JudgedRun:
        """A run, judged; what is wrong with it is reported. `counted`: as a part of what may be explored."""
        self.report.unjudged = trace
        self.report.executed |= trace.executed
        ready = ready_run(self.case, trace, self.waits, chosen)
        self.report.waits_are_sure &= ready.waits_are_sure
        if counted:
            self.case.effort.events += len(ready.run.execution.events)
        judged = judged_run(self.case, ready, chosen)
        self.report.add(judged, chosen)
        return judged

    def other_lane_elected(self, choices: OpenChoices) -> None:
        """elect.sync takes the last lane; where a run is short, each other lane as well. Not in mutants, of which there
        are many.
        """
        if not choices.trace.elected:
            return
        options = self.case.options
        mutant = options.until_finding and not options.mended
        few = choices.trace.instructions <= FEW_INSTRUCTIONS and not mutant
        if not few:
            self.report.assume(ELECTED, f"a launch whose lanes execute up to {FEW_INSTRUCTIONS:,} instructions")
        for lane in (LANES - 1, *(range(1, LANES - 1) if few else ())):
            if not (self.report.may_stop or self._lane_elected(choices, lane)):
                break

    def _lane_elected(self, choices: OpenChoices, lane: int) -> bool:
        """Judge the run in which elect.sync takes a lane. If the kernel then stops itself or hangs, it relies on the
        first lane: the verdict says so, and nothing else is asked of that run, which returns False.
        """
        trace, verdict = self.case.run(replace(choices.base, elected=lane)), self.report.verdict
        stops = (problem.instruction for problem in trace.problems if problem.rule in (TRAP, ASSERTION))
        stopped = next(stops, None)
        known = {side.instruction.number for finding in verdict.findings for side in finding.sides}
        hangs = [
            problem
            for problem in problems(trace)
            if problem.rule == HANG and problem.sides[0].instruction.number not in known
        ]
        if stopped is not None:
            what = f"elect.sync takes the first lane: with another one the kernel stops itself at line {stopped.line}"
            self.report.assume(what, "a kernel that does not")
        elif hangs:
            what = "it takes another lane than the first"
            self.report.read_otherwise(KernelReading("elect.sync", what, [], hangs))
        else:
            self.judge(trace, choices.chosen, counted=False)
        return stopped is None and not hangs

    def clusters_cancelled(self, choices: OpenChoices) -> None:
        """clusterlaunchcontrol.try_cancel takes over clusters that have not been started."""
        clusters = prod(self.case.launch.grid) // prod(self.case.launch.cluster)
        cancels, verdict = choices.trace.cancels, self.report.verdict
        if not cancels or clusters <= 1:
            return
        count = min(clusters - 1, CANCELLED)
        self.judge(self.case.run(replace(choices.base, cancelled=count)), choices.chosen)
        verdict.explored += 1
        looked = ""
        if clusters > 2 and not verdict.serious:  # who takes a cluster over may do what the cluster beside it does
            self.judge(self.case.run(replace(choices.base, cancelled=count, apart=2)), choices.chosen)
            verdict.explored += 1
            looked = " with every other one,"
        verdict.notes.append(f"launch control was looked at with no cluster cancelled,{looked} and with {count}")
        verdict.choices += [f"what {request.at_line} answers depends on the schedule" for request in cancels.values()]

    def explored(self, choices: OpenChoices, representative: JudgedRun, *, every: bool = True) -> OpenChoices:
        """Other schedules, as many as are wanted, and then executions that no schedule shows; the choices with those
        that were met on the way. `every`: all executions are looked for.
        """
        case, verdict, why = self.case, self.report.verdict, ""
        number = self._alike_orders(choices)
        if every and not number:
            before = replace(case.effort)
            choices, number, why = self._all_executions(choices)
            if not number:  # what follows has its own bounds
                case.effort.instructions, case.effort.events = before.instructions, before.events
        if number:
            verdict.explored, verdict.exhaustive = number, True
            return choices
        other_reads = OtherReads(case.entry, self.waits.polls.repeats)
        _note(other_reads, choices.base, representative, choices.chosen)
        choices = self._by_schedules(choices, other_reads)
        if why and not verdict.exhaustive and not self.report.has_new_finding:
            verdict.notes.append(f"these are not all executions: {why}")
        self._with_other_reads(other_reads, choices.chosen)
        return choices

    def _by_schedules(self, choices: OpenChoices, other_reads: OtherReads) -> OpenChoices:
        """Judge the runs of other schedules. The verdict says how many, and whether these are all executions. Returns
        the choices with those that were met on the way.
        """
        case, report, first = self.case, self.report, choices.trace
        drawn = DrawnSchedules(case.entry, choices.base, first, case.options.schedules, set(choices.chosen))
        for number, schedule in enumerate(drawn, 1):
            if case.effort.spent or report.may_stop:
                drawn.all_executions = False
                break
            outcome = case.attempt(schedule)
            if isinstance(outcome, Refused) and schedule.parts_lanes:  # lanes that went together may have to
                drawn.all_executions = False
                continue
            if isinstance(outcome, Refused):  # what does not matter in the first run does here
                schedule, drawn.all_executions = replace(schedule, opaque=frozenset()), False
                outcome = case.run(schedule)
                choices = replace(choices, chosen=choices.chosen | choices.settled)
            report.verdict.explored = number
            choices = with_more_choices(case, choices, schedule, outcome)
            drawn.note(outcome, choices.chosen)
            _note(other_reads, schedule, self.judge(outcome, choices.chosen), choices.chosen)
        report.verdict.exhaustive = drawn.all_executions and report.waits_are_sure
        return choices

    def _alike_orders(self, choices: OpenChoices) -> int:
        """Judge one run for all orders of atomic operations in which threads do the same, with the order that all of
        these have; how many, or 0 if they show less than all executions or something that is not known to be wrong.
        """
        case, chosen, first, matter = self.case, choices.chosen, choices.trace, set(choices.chosen)
        place = ordered_place(first, matter)
        ranks = None if place is None or case.options.readings else ranks_alike(case.entry, first, place)
        if ranks is None or ranks.number > max(ALL, case.options.schedules):
            return 0
        found, runs = {finding.key for finding in self.report.verdict.findings}, list[JudgedRun]()
        for order in ranks.orders():
            run = case.attempt(replace(choices.base, order=((ranks.place, order),)))
            if isinstance(run, Refused) or run.infeasible or not run.choices.keys() <= first.choices.keys():
                return 0
            same = atomics(run, matter) == atomics(first, matter) and not stores_matter(run, matter)
            if not same or not ranks.loosen(run, order) or case.effort.spent or self.report.may_stop:
                return 0
            ready = ready_run(case, run, self.waits, chosen)
            case.effort.events += len(ready.run.execution.events)
            runs.append(judged_run(case, ready, chosen))
            judgement = runs[-1].judgement
            if not ready.waits_are_sure or judgement.open or {finding.key for finding in judgement.findings} - found:
                return 0
        for judged in runs:
            self.report.executed |= judged.run.run.executed
            self.report.add(judged, chosen)
        return len(runs)

    def _all_executions(self, choices: OpenChoices) -> tuple[OpenChoices, int, str]:
        """All executions, by what their deciding reads return; how many, or 0 and why these are not all."""
        first = choices.trace
        others = any(kind not in READ for kind, number in first.choices if number in choices.chosen)
        earliest = True
        while not (others or first.elected or first.cancels or self.report.may_stop):
            loads = self.waits.loads
            search = ReadsFrom(self.case.entry, self.waits.polls, choices.chosen - loads, loads, earliest)
            choices, more, number = self._of_reads(search, choices)
            all_needed = search.left_out and search.no_execution
            earliest &= not all_needed
            if not (more or all_needed):
                return choices, 0 if search.why_not else number, search.why_not
        return choices, 0, ""

    def _of_reads(self, search: ReadsFrom, choices: OpenChoices) -> tuple[OpenChoices, bool, int]:
        """Run one script after the other. The choices, True if there are more than before, and how many executions."""
        case, number, stays, chosen = self.case, 0, 0, choices.chosen
        before, wanted = case.effort.events, case.options.schedules
        steps = _steps(choices.trace)
        base = replace(choices.base, opaque=choices.settled - chosen, scripted=self.waits.polls.repeats, steps=steps)
        search.start()
        for script in search.next():
            if self.report.may_stop:
                search.why_not = search.why_not or "a finding is enough"
            few = case.effort.events - before <= SMALL and not search.passed_over
            enough = number >= (MOST_EXECUTIONS if few else SOME_EXECUTIONS) and number >= wanted
            if enough or search.left > max(MOST_WAITING, wanted) or case.effort.spent:
                search.why_not = search.why_not or f"there are more than {number}"
            if search.why_not:
                break
            schedule = replace(base, reads=tuple(sorted(script, key=lambda choice: choice.read)))
            run = case.attempt(schedule)
            if isinstance(run, Refused) and not choices.settled <= chosen:  # what does not matter in the first run
                return replace(choices, chosen=chosen | choices.settled), True, 0
            if isinstance(run, Refused):
                search.why_not = run.message
                break
            choices = with_more_choices(case, choices, schedule, run)
            if choices.chosen != chosen:
                return choices, True, 0
            if run.elected or run.cancels or any(kind not in READ for kind, at in run.choices if at in chosen):
                search.why_not = "something else than reads decides"
                break
            if run.conflict:  # two atomic operations come right after one write: there is no such execution
                continue
            passed_over = _passed_over(search, run, script)
            if passed_over:
                search.passed_over = search.passed_over or passed_over
                continue
            if search.ends_earlier(run, script):
                continue
            if any(choice.never for choice in script):
                without_rounds(run)
                search.note_stay(run, script)
                stays += 1
                if stays > max(MOST_STAYS, wanted):
                    search.why_not = search.why_not or f"there are more than {stays - 1} ways to stay in loops"
            elif search.is_new(run):
                number += 1
                self._judge_reads(search, run, chosen)
        search.why_not = search.why_not or search.passed_over
        return choices, False, number

    def _judge_reads(self, search: ReadsFrom, run: LaunchTrace, chosen: frozenset[int]) -> None:
        """Judge a run with the decisions that it has, and queue others."""
        case, report = self.case, self.report
        without_rounds(run)
        run.chosen = returns_older(run)
        if not run.chosen:
            judged = self.judge(run, chosen)
            search.why_not = search.why_not or ("" if report.waits_are_sure else "waits are not sure")
            search.note(run, judged.run.order(case.model, fences=False))
            return
        report.executed |= run.executed
        ready = ready_run(case, run, self.waits, chosen)
        case.effort.events += len(ready.run.execution.events)
        judgement = judged_run(case, ready, chosen).judgement
        serious = any(not finding.harmless for finding in judgement.findings)
        if not ready.waits_are_sure or judgement.open or serious:
            why = self._weak(search, run, chosen)
            search.passed_over = search.passed_over or why
        elif {finding.key for finding in judgement.findings} - {finding.key for finding in report.verdict.findings}:
            self._weak(search, run, chosen)  # harmless: whether the run is an execution may stay open
        # Where nothing races, causality says what a weak load returns, and the run keeps to it. An order of fence.sc
        # does not count: later decisions may demand it.
        fenced = any(ready.run.execution.relation("sync_fence"))
        surely_loaded = ready.waits_are_sure and not (judgement.findings or judgement.open or fenced)
        order, surely_waited = ready.run.order(case.model, fences=False), ready.waits_are_sure
        search.note(run, order, surely_loaded=surely_loaded, surely_waited=surely_waited)

    def _weak(self, search: ReadsFrom, run: LaunchTrace, chosen: frozenset[int]) -> str:
        """Report what is wrong in a run that no schedule shows, if it is an execution; else why this is not known."""
        case, by_instruction = self.case, self.case.options.by_instruction
        if run.stuck:
            return "a loop that polls an older value is followed no further"
        try:
            judge = RunJudge(case.entry, run, chosen, symmetric=False, by_instruction=by_instruction)
            flags = execution_of(case.model, judge)
            if flags is not None:
                self.report.add_findings(judge, judge.findings_shown(flags))
                return (
                    ""
                    if self.report.has_new_finding
                    else "what is open in an execution that no schedule shows stays open"
                )
            judge = RunJudge(case.entry, run, chosen, symmetric=False, by_instruction=by_instruction)
            if impossible(case.model, judge, search.reads(run)):
                search.no_execution = True
                return ""
        except Refused as error:
            return error.message
        return "it is not known whether a run is an execution"

    def _with_other_reads(self, other_reads: OtherReads, chosen: frozenset[int]) -> None:
        """Executions that no schedule shows: a strong read returns another write than the last one in time."""
        case, started, count = self.case, process_time(), 0
        by_instruction = case.options.by_instruction
        for schedule in islice(other_reads.next(), OTHERS):
            if self.report.may_stop or case.effort.spent:
                break
            try:
                trace = case.run(schedule)
                run = RunJudge(case.entry, trace, chosen, symmetric=False, by_instruction=by_instruction)
            except Refused:
                continue
            case.effort.events += len(run.execution.events)
            flags = None if other_reads.polls_older(trace) else execution_of(case.model, run)
            if flags is not None:
                count += 1
                self.report.add_findings(run, run.findings_shown(flags))
                other_reads.note(schedule, run.graph, flags.relation(BASE), chosen)
        case.effort.add_seconds("other reads", started)
        if count:
            executions = f"{count} executions" if count > 1 else "one execution"
            what = "in which a strong read returns another write than the last one in time"
            self.report.verdict.notes.append(f"looked at as well: {executions} {what}")

    def some_warps_late(self, choices: OpenChoices) -> None:
        """Where a condition does not hold, other schedules may do something else: look for what is wrong in some.

        A lane is late at a test for which no other thread waits. Late warps are one that touches what the run orders by
        chance, or all but those that execute a test which heads no loop (it returns false where a phase has not ended),
        or half of all. What is wrong there is a finding; what is open stays open.
        """
        for schedule in self._uneven(choices):
            effort = self.case.effort
            if self.report.has_new_finding or effort.spent or effort.instructions > self.case.options.instructions:
                return
            self._look_at(schedule, choices)

    def late_arrivals(self, choices: OpenChoices) -> None:
        """Where threads missed phases of an mbarrier object and wait for ever, they never reach what races because of
        that: in another run the warps that arrive at the object are late.
        """
        trace = choices.trace
        for lanes in trace.stuck:
            awaited = lanes.awaits
            if awaited is None or not awaited.is_late or self.report.may_stop or self.case.effort.spent:
                continue
            steps = trace.objects.get((awaited.block, awaited.first), ())
            threads = {step.event.thread for step in steps if step.update}.difference(lanes.threads)
            late = dict.fromkeys((trace.threads[number].cta, trace.threads[number].warp) for number in sorted(threads))
            self._look_at(replace(choices.base, late=tuple(late), starves=True, steps=_steps(trace)), choices)

    def _look_at(self, schedule: Schedule, choices: OpenChoices) -> None:
        """Report what is wrong in the run of a schedule. What is open there stays open."""
        run = self.case.attempt(schedule)
        if isinstance(run, Refused):  # threads may go round a loop in turn and wait for a warp that is late
            return
        ready = ready_run(self.case, run, self.waits, choices.chosen)
        self.case.effort.events += len(ready.run.execution.events)
        self.report.add_findings(ready.run, ready.run.judgement(self.case.model, choices.chosen).findings)

    def _late_tests(self) -> list[tuple[int, int]]:
        """Some tests, of threads and by instructions, at which a lane may be late."""
        judged = self.report.representative
        if judged is None or judged.judgement.flags is None:
            return []
        return judged.run.late_tests(judged.judgement.flags)[:LATE]

    def _uneven(self, choices: OpenChoices) -> Iterator[Schedule]:
        """Schedules in which some warps are late."""
        trace = choices.trace
        asked = trace.tests.keys() - trace.proved
        tests = frozenset(test.number for test, _ in complaints(self.case.entry, asked, trace.awaits))
        quick = replace(choices.base, steps=_steps(trace))
        base = replace(quick, truthful=tests)
        for number, at in self._late_tests():
            lane = trace.threads[number]
            yield replace(quick, held=frozenset([(lane.cta, lane.warp, lane.lane, at)]))
        for warp in list(islice(self.report.late_warps, LATE)):
            yield replace(base, late=(warp,))
        base = replace(base, cancelled=CANCELLED if trace.cancels else 0)
        for test in sorted(tests)[:UNEVEN]:
            warps: dict[tuple[int, int], bool] = {}
            for thread in trace.threads:
                warp = thread.cta, thread.warp
                warps[warp] = warps.get(warp, False) or any(event.at == test for event in thread.events)
            late = tuple(warp for warp, tests_it in warps.items() if not tests_it)
            yield replace(base, late=late, starves=True)
        for seed in range(UNEVEN):
            yield replace(base, slow=f"slow {seed}")


def _passed_over(search: ReadsFrom, run: LaunchTrace, script: Script) -> str:
    """Why a run is not looked at: it is not known to be the one of the script, or threads poll for too long."""
    reads = search.reads(run)
    if run.infeasible:
        return "the operations of an execution could not be performed in its order"
    if len(reads) > MOST_READS:
        return f"there are some with more than {MOST_READS} reads that decide"
    if leaves_out(run, reads):
        return "rounds of a loop in which something is decided were left out"
    return "" if search.follows(run, script) else "a run did not follow its decisions"


def _steps(first: LaunchTrace) -> int:
    """The most steps of a run that is like the first one."""
    return max(LEAST_STEPS, 4 * first.instructions)


def _note(other_reads: OtherReads, schedule: Schedule, judged: JudgedRun, looked: frozenset[int]) -> None:
    flags = judged.judgement.flags
    other_reads.note(schedule, judged.run.graph, None if flags is None else flags.relation(BASE), looked)
