"""A launch judged for every schedule: the run, what depends on the schedule, and the schedules that are looked at.

In: Module, entry, Launch, Model, `ExploreOptions`. Out: `KernelVerdict`. Settled here: a result that may differ between
schedules is taken as unknown first; if the run goes through, nothing depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import prod
from time import process_time

from memmodel.answer import HANG
from memmodel.cat.syntax import Model
from memmodel.kernel.all_sizes.grids import any_grid
from memmodel.kernel.all_sizes.trips import any_trips
from memmodel.kernel.executions.consistent import execution_of
from memmodel.kernel.executions.others import OtherReads
from memmodel.kernel.executions.schedules import ALL, atomics, complete, schedules
from memmodel.kernel.executions.settling import SettledWaits
from memmodel.kernel.flow.origin import come_from, place_of, unwritten
from memmodel.kernel.flow.paths import comes_back
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.flow.timeouts import notes as left_out_notes
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.code import begins
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.conditions import residents
from memmodel.kernel.order.fences import BASE
from memmodel.kernel.order.judging import Judgement, OtherReadings, RunJudge, add, problems
from memmodel.kernel.order.polled_words import Polls, contested, tallied
from memmodel.kernel.order.unobserved_atomics import hushed
from memmodel.kernel.order.verdict import FindingKey, FindingPlace, KernelFinding, KernelReading, KernelVerdict
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction, PtxModule

MAX_INSTRUCTIONS, MAX_JUDGED = 4_000_000, 40_000
"""Instructions in all the schedules that are explored, and events that are judged in them."""

OTHERS = 24
"""Runs in which strong reads return other writes than the last ones in time."""

UNEVEN, LATE = 3, 6
"""Schedules that are looked at where a condition does not hold: some warps are slow, or one that is chosen."""

CANCELLED = 8
"""Clusters that one of them takes over, one after the other: so many tiles that it uses its stages again."""

WORDS = {
    "atomic": "the result of {opcode} at line {line}",
    "order": "what {opcode} at line {line} leaves in memory",
    "load": "the value loaded at line {line}",
    "activemask": "the lanes that activemask at line {line} shows",
}


@dataclass(frozen=True, slots=True)
class ExploreOptions:
    """`schedules`: as many are looked at where choices matter; all of them if they are few.

    `ctas`, `assumed`: as in `Schedule`. `readings`: other models, by the name of the reading and its answer. `first`:
    stop at the first serious finding that is not `known`; `mended`: and if all of these are still found.
    `any_grid`, `any_trips`: say whether the verdict holds beyond the launch.
    """

    schedules: int = 8
    ctas: tuple[int, ...] = ()
    assumed: tuple[str, ...] = ()
    readings: tuple[tuple[str, str, Model], ...] = ()
    first: bool = False
    known: frozenset[FindingKey] = frozenset()
    mended: frozenset[FindingKey] = frozenset()
    any_grid: bool = False
    any_trips: bool = False


class LaunchJudge:
    """Judges one launch."""

    def __init__(
        self, module: PtxModule, entry: PtxFunction, launch: Launch, model: Model, options: ExploreOptions
    ) -> None:
        self.module, self.entry, self.launch, self.model, self.options = module, entry, launch, model, options
        self.verdict = KernelVerdict(entry.name, launch, model.name, ctas=options.ctas, notes=launch.notes)
        self._instructions = self._events = 0
        self._chosen = frozenset[int]()
        self._unsure = False
        self._waits = SettledWaits(entry, model, Polls(module, entry, launch))
        self._blank: tuple[Schedule, LaunchTrace] | None = None
        self._readings = OtherReadings(options.readings)
        self._late: dict[tuple[int, int], None] = {}
        self._known: frozenset[int] = frozenset()
        self.made: dict[int, RunJudge] = {}
        """What each finding was made from."""
        self.first: tuple[RunJudge, Judgement] | None = None
        """The run that speaks for every schedule, as far as one does."""

    def judge(self) -> KernelVerdict:
        """The verdict."""
        verdict = self.verdict
        for one in self.entry.body or ():
            if begins(one, self.options.assumed):
                verdict.notes.append(f"{one.opcode} at line {one.line} was taken to touch registers only")
        base = Schedule(ctas=self.options.ctas, assumed=self.options.assumed)
        run: LaunchTrace | None = None
        try:
            base, run = self._past_tests(base, self._run(base))
            verdict.explored = 1
            self._count(run)
            verdict.notes += run.assumed
            for one in run.endless.values():
                verdict.notes.append(f"line {one.line}: the loop there only computes, and was taken to end")
            if unsure := frozenset(one.number for one, _ in complaints(self.entry, run.tests, run.awaits)):
                base, run = self._failing(base, run, unsure)
            self._waits.look(run, lambda: self._run(base))
            base = replace(base, counted=self._waits.counted | tallied(run, self.entry, whole=not self.options.ctas))
            run.choices |= self._last_writes(base, run)
            settled = frozenset(number for _, number in run.choices) - self._waits.loads - self._waits.told
            real = self._depends(base, run)
            self._chosen = frozenset(one.number for one, _ in real)
            orders = frozenset(number for what, number in run.choices if what == "order")
            if orders & self._chosen:  # what one of them leaves depends on all of them
                self._chosen |= orders
            self._chosen |= self._waits.loads
            settled -= self._chosen
            self._known = settled | self._chosen | self._waits.told
            made = self._made(self._without(base, run, settled))
            self._statistics(made)
            self.first = made, self._judged(made)
            if self._enough():
                return verdict
            self._beyond(run, base, settled, judged=not (real or run.cancels or verdict.open))
            verdict.choices = [said for _, said in real]
            verdict.notes += residents(run, self.entry.body or (), self._chosen)
            verdict.notes += left_out_notes(self.entry, run.tests, self._waits.loads)
            if run.elected:
                self._elected(replace(base, last_elected=True, opaque=settled))
            clusters = prod(self.launch.grid) // prod(self.launch.cluster)
            if run.cancels and clusters > 1:
                count = min(clusters - 1, CANCELLED)
                verdict.notes.append(f"launch control was looked at with no cluster cancelled, and with {count}")
                self._look(self._run(replace(base, cancelled=count, opaque=settled)))
                verdict.explored += 1
                verdict.choices += [
                    f"what {one.opcode} at line {one.line} answers depends on the schedule"
                    for one in run.cancels.values()
                ]
            if real and not self._enough():
                self._explore(base, run, settled, set(self._chosen))
            elif self._unsure:
                _open(verdict, ["what ends a loop that polls is not known in every schedule"])
            if verdict.open and not self._found():
                asked = run.tests.keys() - run.proved
                tests = frozenset(one.number for one, _ in complaints(self.entry, asked, run.awaits))
                self._uneven(replace(base, opaque=settled, truthful=tests), run)
        except Refused as error:
            place = f"line {error.span.line}: " if error.span is not None else ""
            _open(verdict, [place + error.message + come_from(self.entry, error)])
            if run is None:
                self._beginning(base, error)
            for problem in problems(run) if run is not None and self.first is None else ():
                add(verdict.findings, problem)
        verdict.readings[:0] = self._readings.told(verdict.findings)
        return verdict

    def _failing(self, base: Schedule, run: LaunchTrace, tests: frozenset[int]) -> tuple[Schedule, LaunchTrace]:
        """The run with tests that fail a few times, where that shows of all of them that failures change nothing."""
        schedule = replace(base, failing=tests)
        try:
            found = self._run(schedule)
        except Refused:
            return base, run
        return (schedule, found) if found.proved == tests else (base, run)

    def _enough(self) -> bool:
        """Is something found, where one finding is asked for, or nothing mended?"""
        in_vain = self.options.mended and self.options.mended <= {one.key for one in self.verdict.serious}
        return self.options.first and (self._found() or bool(in_vain))

    def _found(self) -> bool:
        return any(one.key not in self.options.known for one in self.verdict.serious)

    def _beginning(self, base: Schedule, error: Refused) -> None:
        """What is wrong with a run as far as it goes: where threads meet what cannot be decided, they stay, and the
        others go on. That is the beginning of an execution, so that what it has no order for has none.
        """
        everything = frozenset(range(len(self.entry.body or ())))
        at = self._unwritten(base, error)
        if at is not None:
            said, side = "it depends on a register that was not written", FindingPlace(at, at.opcode, -1, -1, -1)
            self.verdict.findings.append(KernelFinding("undefined-register", "undefined behaviour", said, (side,)))
        try:
            made = RunJudge(self.entry, hushed(self._run(replace(base, parks=True)), everything), everything)
            found = made.judged(self.model, everything)
        except Refused:
            return
        self._add(made, found.findings)

    def _unwritten(self, base: Schedule, error: Refused) -> PtxInstruction | None:
        """The instruction that could not be decided, if it can be with numbers in registers that were not written."""
        at = unwritten(self.entry, error)
        if at is not None:
            return at
        other = self._refused(replace(base, filled=True))
        return None if other is not None and other.span == error.span else place_of(self.entry, error)

    def _elected(self, schedule: Schedule) -> None:
        """elect.sync takes another lane. A kernel that then stops itself, or waits for ever, relies on the first one:

        nothing else is asked of that run, and the verdict says so.
        """
        run = self._run(schedule)
        stopped = next((one.instruction for one in run.problems if one.rule in ("trap", "assertion")), None)
        known = {side.instruction.number for one in self.verdict.findings for side in one.sides}
        hangs = [one for one in problems(run) if one.rule == HANG and one.sides[0].instruction.number not in known]
        if stopped is not None:
            self.verdict.notes.append(
                f"line {stopped.line}: the kernel stops itself where elect.sync takes another lane than the first; "
                "left out"
            )
        elif hangs:
            self.verdict.readings.append(KernelReading("elect.sync", "it takes another lane than the first", [], hangs))
        else:
            self._judged(self._made(run))

    def _run(self, schedule: Schedule) -> LaunchTrace:
        started = process_time()
        try:
            run = run_launch(self.module, self.entry, self.launch, schedule)
        finally:
            self._spent("run", started)
        self.verdict.statistics.runs += 1
        self._instructions += run.instructions
        return run

    def _past_tests(self, base: Schedule, run: LaunchTrace) -> tuple[Schedule, LaunchTrace]:
        """The schedule and run to look at: where threads wait for ever at a test to which they do not come back, the
        run in which it returns false."""
        stuck = _stuck(run) & frozenset(run.tests)
        once = frozenset(one for one in stuck if not comes_back(self.entry, one))
        if not once:
            return base, run
        past = replace(base, truthful=once)
        try:
            found = self._run(past)
        except Refused:
            return base, run
        return (base, run) if past.truthful & _stuck(found) else (past, found)

    def _made(self, run: LaunchTrace) -> RunJudge:
        """The run made ready to be judged; its quiet atomic operations become accesses. Are its waits waits in it?"""
        polled = self._waits.prepare(run, self._chosen)
        made = RunJudge(self.entry, hushed(run, self._chosen), self._chosen)
        self._unsure |= not self._waits.hold(run, polled, made)
        return made

    def _spent(self, what: str, started: float) -> None:
        seconds = self.verdict.statistics.seconds
        seconds[what] = seconds.get(what, 0.0) + process_time() - started

    def _look(self, run: LaunchTrace) -> tuple[RunJudge, Judgement]:
        made = self._made(run)
        self._events += len(made.execution.events)
        return made, self._judged(made)

    def _judged(self, made: RunJudge) -> Judgement:
        started = process_time()
        found = made.judged(self.model, self._chosen)
        self._spent("order", started)
        self._add(made, found.findings)
        self._readings.look(made, self._chosen, found)
        _open(self.verdict, found.open)
        self._late |= dict.fromkeys(found.late)
        return found

    def _add(self, made: RunJudge, findings: list[KernelFinding]) -> None:
        for one in findings:
            if add(self.verdict.findings, one):
                self.made[id(one)] = made

    def _beyond(self, run: LaunchTrace, base: Schedule, settled: frozenset[int], *, judged: bool) -> None:
        if self.options.any_grid:
            self.verdict.beyond["any grid"] = any_grid(self.module, self.entry, self.launch, run)
        if self.options.any_trips:
            each = [replace(base, last_elected=last, opaque=settled) for last in (False, True)[: 1 + run.elected]]
            again = [partial(run_launch, self.module, self.entry, self.launch, one) for one in each if judged]
            self.verdict.beyond["any trip count"] = any_trips(self.entry, again, self.verdict.equal_stores)

    def _count(self, run: LaunchTrace) -> None:
        """What the run did, before anything is left out."""
        numbers = self.verdict.statistics
        self.verdict.reached = frozenset(event.at for thread in run.threads for event in thread.events)
        numbers.instructions, numbers.threads, numbers.accesses = run.instructions, len(run.threads), run.accesses
        numbers.events = sum(len(thread.events) for thread in run.threads)

    def _statistics(self, made: RunJudge) -> None:
        numbers = self.verdict.statistics
        numbers.judged, numbers.pairs = len(made.execution.events), len(made.graph.pairs)
        numbers.roles = len(set(made.roles.who))
        numbers.seconds["graph"] = made.seconds

    # ---- choices ---------------------------------------------------------------------------------------------

    def _depends(self, base: Schedule, run: LaunchTrace) -> list[tuple[PtxInstruction, str]]:
        """The choices on which the run depends, and what does."""
        if not run.choices:
            return []
        choices = {key: one for key, one in run.choices.items() if key[1] not in self._waits.loads | self._waits.told}
        numbers = frozenset(number for _, number in choices)
        if self._refused(replace(base, opaque=numbers)) is None:
            return []
        found = []
        for (what, number), one in choices.items():
            error = self._refused(replace(base, opaque=frozenset([number])))
            if error is not None:
                found.append((one, self._sentence(what, one, error)))
        return found or [(one, self._sentence(what, one, None)) for (what, _), one in choices.items()]

    def _last_writes(self, base: Schedule, run: LaunchTrace) -> dict[tuple[str, int], PtxInstruction]:
        """The strong writes of which it is open which one is the last at its place."""
        open_ = contested(run, self.entry.body or ())
        if not open_:
            return {}
        writes = frozenset(one.at for by_kind in open_ for events in by_kind.values() for one in events)
        again = self._run(base)
        self._waits.prepare(again)
        loads = self._waits.loads
        return RunJudge(self.entry, hushed(again, writes | loads), loads).last_writes(self.model)

    def _refused(self, schedule: Schedule) -> Refused | None:
        try:
            self._blank = schedule, self._run(schedule)
        except Refused as error:
            return error
        return None

    def _without(self, base: Schedule, run: LaunchTrace, settled: frozenset[int]) -> LaunchTrace:
        """The run in which results that differ between schedules are unknown, so that no two are equal by chance."""
        schedule = replace(base, opaque=settled)
        if not settled or ((self._blank is None or self._blank[0] != schedule) and self._refused(schedule)):
            return run
        return run if self._blank is None else self._blank[1]

    @staticmethod
    def _sentence(what: str, one: PtxInstruction, error: Refused | None) -> str:
        source = WORDS[what].format(opcode=one.opcode, line=one.line)
        if error is None or error.span is None:
            return f"the run depends on {source}, which depends on the schedule"
        text = error.message.split(" depends on ")[0]
        return f"line {error.span.line}: {text} depends on {source}, which depends on the schedule"

    def _explore(self, base: Schedule, run: LaunchTrace, settled: frozenset[int], real: set[int]) -> None:
        verdict = self.verdict
        base = replace(base, opaque=settled)
        all_ = complete(run, real, self.options.schedules)
        bound = max(ALL, self.options.schedules) if all_ else self.options.schedules
        wanted = islice(schedules(base, run, real, self.options.schedules), bound)
        others = OtherReads(self.entry, self._waits.polls.again)
        if self.first is not None:
            _note(others, base, *self.first, self._chosen)
        known = set(run.choices)
        for number, schedule in enumerate(wanted):
            spent = self._instructions > MAX_INSTRUCTIONS or self._events > MAX_JUDGED
            if spent or self._enough():
                all_ = False
                break
            try:
                other = self._run(schedule)
            except Refused:  # what does not matter in the first run does here
                schedule, all_ = replace(schedule, opaque=frozenset()), False
                other = self._run(schedule)
                real |= settled
                self._chosen |= settled
            verdict.explored = number + 1
            self._met(schedule, other, real)
            same = atomics(other, real) == atomics(run, real)
            all_ &= not other.infeasible and set(other.choices) <= known and same
            _note(others, schedule, *self._look(other), self._chosen)
        verdict.exhaustive = all_ and not self._unsure
        self._others(others)

    def _others(self, others: OtherReads) -> None:
        """Executions that no schedule shows: a strong read returns another write than the last one in time."""
        started, count = process_time(), 0
        for schedule in islice(others.next(), OTHERS):
            if self._enough() or self._instructions > MAX_INSTRUCTIONS or self._events > MAX_JUDGED:
                break
            try:
                run = self._run(schedule)
                made = RunJudge(self.entry, run, self._chosen, symmetric=False)
            except Refused:
                continue
            self._events += len(made.execution.events)
            flags = execution_of(self.model, made)
            if flags is not None:
                count += 1
                self._add(made, made.shown(flags))
                others.note(schedule, made.graph, flags.relation(BASE), self._chosen)
        self._spent("other reads", started)
        if count:
            many = f"{count} executions" if count > 1 else "one execution"
            said = "in which a strong read returns another write than the last one in time"
            self.verdict.notes.append(f"looked at as well: {many} {said}")

    def _met(self, schedule: Schedule, run: LaunchTrace, real: set[int]) -> None:
        """Another schedule meets choices that the first run did not (a lock is taken, so that a loop asks again): those
        on which it depends count there, and in what follows.
        """
        new = frozenset(number for _, number in run.choices) - self._known
        self._known |= new
        if new and self._refused(replace(schedule, opaque=schedule.opaque | new)) is not None:
            each = (one for one in sorted(new) if self._refused(replace(schedule, opaque=schedule.opaque | {one})))
            depends = frozenset(each) or new
            self._chosen |= depends
            real |= depends

    def _uneven(self, base: Schedule, run: LaunchTrace) -> None:
        """A condition does not hold, so that other schedules may do something else: is anything wrong in some of them?

        A warp is late there that touches what the run orders by chance, or all but those that make a test which is no
        loop (it returns false where a phase has not ended), or half of them. What is found there is found; what is open
        stays open.
        """
        schedules = [replace(base, late=(warp,)) for warp in islice(self._late, LATE)]
        base = replace(base, cancelled=CANCELLED if run.cancels else 0)
        for test in sorted(base.truthful)[:UNEVEN]:
            early = {(one.cta, one.warp) for one in run.threads if any(event.at == test for event in one.events)}
            others = dict.fromkeys((one.cta, one.warp) for one in run.threads if (one.cta, one.warp) not in early)
            schedules.append(replace(base, late=tuple(others)))
        for schedule in (*schedules, *(replace(base, slow=f"slow {seed}") for seed in range(UNEVEN))):
            if self._found() or self._instructions > MAX_INSTRUCTIONS or self._events > MAX_JUDGED:
                return
            made = self._made(self._run(schedule))
            self._events += len(made.execution.events)
            self._add(made, made.judged(self.model, self._chosen).findings)


def _stuck(run: LaunchTrace) -> frozenset[int]:
    """The instructions at which threads wait for ever."""
    return frozenset(one.instruction.number for one in run.problems if one.rule == "hang" and one.instruction)


def _open(verdict: KernelVerdict, reasons: list[str]) -> None:
    verdict.open += [reason for reason in dict.fromkeys(reasons) if reason not in verdict.open]


def _note(others: OtherReads, schedule: Schedule, made: RunJudge, found: Judgement, looked: frozenset[int]) -> None:
    others.note(schedule, made.graph, None if found.flags is None else found.flags.relation(BASE), looked)
