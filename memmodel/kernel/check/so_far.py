"""The verdict on a launch as far as it is judged.

In: what each pass finds, as it finds it. Out: `VerdictSoFar`; where a budget runs out, or a pass cannot go on, it holds
what the passes before have found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import process_time

from memmodel.base.labels import Access, Fence, Side, is_with_outside, side_of
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.composed import readings_of
from memmodel.isa.table import NEWEST
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.check.coverage import coverage
from memmodel.kernel.check.unwritten import unwritten
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.code import begins
from memmodel.kernel.machine.memory import GRID_WORKSPACE as WORKSPACE
from memmodel.kernel.order.judging import Judgement, RunJudge, add, problems
from memmodel.kernel.order.readings import OtherReadings, possible_readings
from memmodel.kernel.order.verdict import KernelFinding, KernelReading, KernelVerdict
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.targets import in_convergence
from memmodel.ptx.vocabulary import Space

FIRST_LAUNCH = "a launch that is the first to use the module, and a host that does not set the variable"
"""What it takes to drop that assumption."""


def zeros_assumption(name: str) -> tuple[str, str]:
    """The assumption that a variable without an initial value has not been written, and what it takes to drop it."""
    return f"{name} holds zeros, as when its module is loaded", FIRST_LAUNCH


FEW_LINES = 3
"""An assumption names at most this many lines."""

BOTH_SIDES = "a litmus test of both sides"
"""What it takes to drop the assumption that nothing outside the launch meets it."""

INDEPENDENT = "the lanes of a warp go their own ways, as from sm_70 on", ".target sm_70 or later"
KNOWN = "a row of the table of instructions"
"""What it takes to drop the assumption that an unknown instruction only computes."""


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """A run with its roles, conflicts and graph. `waits_are_sure`: the loops taken for waits are waits in it."""

    run: RunJudge
    waits_are_sure: bool


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run, and what the model says of it."""

    run: RunJudge
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class JudgedKernel:
    """The verdict on a launch, and what it was made from.

    `runs`: by the identity of a finding the run that shows it. `representative`: the representative run; None if no run
    was judged. `judged`: all runs that were judged, if the verdict follows from these and order decides nothing in
    them: neither what is executed nor what is left in memory. Otherwise empty.
    """

    entry: PtxFunction
    launch: Launch
    verdict: KernelVerdict
    runs: Mapping[int, RunJudge]
    representative: JudgedRun | None
    judged: tuple[JudgedRun, ...] = ()


class VerdictSoFar:
    """Collects what passes find."""

    def __init__(self, case: KernelCase) -> None:
        self._case, options = case, case.options
        self.verdict = KernelVerdict(
            case.entry.name, case.launch, case.model.name, ctas=options.ctas, assumptions=case.launch.assumptions,
            statistics=case.effort.statistics,
            sources={each.line: each.location for each in case.body if each.location is not None},
            compiled=not case.module.source.in_file,
        )  # fmt: skip
        if case.module.version > NEWEST:
            later, known = (".".join(map(str, version)) for version in (case.module.version, NEWEST))
            self.assume(
                f"instructions of the module, of PTX {later}, mean what PTX {known} says", f"PTX {known} or older"
            )
        if in_convergence(case.module.target):
            self.assume(*INDEPENDENT)
        for decision, side in readings_of(case.model):
            self.assume(f"{decision.number} {side.name}: {decision.question} {side.answer}", f"--model {DEFAULT_MODEL}")
        for instruction in case.body:
            if begins(instruction, options.assumed):
                self.assume(f"{instruction.at_line} touches registers only", KNOWN)
        self.representative: JudgedRun | None = None
        self.judged: list[JudgedRun] | None = []
        """The runs that were judged; None where order decides something in them."""
        self.ask_other_sizes: Callable[[], None] | None = None
        """The function that asks about other sizes, when the verdict stands."""
        self.awaits_others = False
        """True if threads wait for CTAs that are not run."""
        self.unjudged: LaunchTrace | None = None
        """A run that is an execution, until it is judged."""
        self.waits_are_sure = True
        self.late_warps: dict[tuple[int, int], None] = {}
        """Warps. A race that the runs exclude by chance needs one of them to be late."""
        self.executed: set[int] = set()
        """The numbers of the instructions that the runs have executed."""
        self._first: LaunchTrace | None = None
        self._runs: dict[int, RunJudge] = {}
        self._readings = OtherReadings(options.readings, options.known_to)
        self._unread: list[tuple[JudgedRun, frozenset[int]]] = []
        """Judged runs about which no reading was asked yet."""

    @property
    def has_new_finding(self) -> bool:
        """True if there is a serious finding that was not known."""
        return any(finding.key not in self._case.options.known for finding in self.verdict.serious)

    @property
    def may_stop(self) -> bool:
        """True if the search may stop: a new finding, or a repair that cured nothing."""
        options = self._case.options
        in_vain = options.mended and options.mended <= {finding.key for finding in self.verdict.serious}
        return options.until_finding and (self.has_new_finding or bool(in_vain))

    def shown_by(self, trace: LaunchTrace) -> bool:
        """True if a run shows a serious finding by itself that was not known."""
        known = self._case.options.known
        return any(finding.key not in known and not finding.harmless for finding in problems(trace))

    def add_first_run(self, trace: LaunchTrace) -> None:
        """The first run: what it did, before anything is left out."""
        verdict, statistics = self.verdict, self.verdict.statistics
        verdict.explored, self.unjudged = 1, trace
        self._first = trace
        if self._case.options.unwritten:
            verdict.findings += unwritten(self._case.entry, trace)
        verdict.reached = frozenset(event.at for thread in trace.threads for event in thread.events)
        statistics.instructions, statistics.threads = trace.instructions, len(trace.threads)
        statistics.accesses = trace.accesses
        statistics.events = sum(len(thread.events) for thread in trace.threads)
        for what, needs in trace.assumed.items():
            self.assume(what, needs)
        read = {access.block.instance.name for access in trace.single if side_of(access.label) is Side.READ}
        read |= {row.block.instance.name for row in trace.lanes if side_of(row.label) is Side.READ}
        read |= {event.block.instance.name for thread in trace.threads for event in thread.strong() if event.block}
        for variable in self._case.module.variables.values():
            first = self._case.launch.left is None
            if first and variable.name in read and variable.initial is None and not variable.external:
                self.assume(*zeros_assumption(variable.name))
        self._outside(trace)
        if WORKSPACE in read:
            self.assume("the workspace of the barrier of the grid holds zeros", "a cooperative launch")
        self._loops_end(trace)

    def _outside(self, trace: LaunchTrace) -> None:
        """Where a launch speaks to the host or to other devices, what they do is not looked at."""
        labels = {id(event.label): event.label for thread in trace.threads for event in thread.events}
        outside = {name for name, label in labels.items() if is_with_outside(label)}
        lines = {
            self._case.body[event.at].line
            for thread in trace.threads
            for event in (thread.events if outside else ())
            if id(event.label) in outside and (isinstance(event.label, Fence) or _in_global(event))
        }
        whose = "the host and other devices touch none of its memory meanwhile"
        if lines:
            shown = ", ".join(map(str, sorted(lines)[:FEW_LINES])) + (", …" if len(lines) > FEW_LINES else "")
            self.assume(f"{whose}, in spite of .sys in line{'s' if len(lines) > 1 else ''} {shown}", BOTH_SIDES)
        shared = [buffer.name for buffer in self._case.launch.all_buffers if buffer.multimem is not None]
        if shared:
            self.assume(f"{whose}, in spite of the multimem addresses of {', '.join(shared)}", BOTH_SIDES)

    def _loops_end(self, trace: LaunchTrace) -> None:
        for branch in trace.endless.values():
            self.assume(f"the loop at line {branch.line}, which only computes, ends", "known data")

    def add_figures(self, ready: ReadyRun) -> None:
        """Add the figures of the representative run."""
        run, statistics = ready.run, self.verdict.statistics
        statistics.judged, statistics.pairs = len(run.execution.events), len(run.graph.pairs)
        statistics.roles = len(set(run.roles.who))
        statistics.seconds["graph"] = run.seconds

    def add(self, judged: JudgedRun, chosen: frozenset[int]) -> None:
        """A run that was judged. `chosen`: the instructions on whose results runs depend."""
        if self.judged is not None:
            self.judged.append(judged)
        self.add_findings(judged.run, judged.judgement.findings)
        self._loops_end(judged.run.run)
        self.unjudged = None
        if self._case.options.until_finding and self._readings.models:
            self._unread.append((judged, chosen))
        else:
            self._readings.look(judged.run, chosen, judged.judgement)
        self.leave_open(judged.judgement.open)
        self.late_warps |= dict.fromkeys(judged.judgement.late)

    def add_findings(self, run: RunJudge, findings: Iterable[KernelFinding]) -> None:
        """Add the findings of a run."""
        for finding in findings:
            if add(self.verdict.findings, finding):
                self._runs[id(finding)] = run

    def add_problems(self, trace: LaunchTrace) -> None:
        """Add what went wrong in a run that cannot be judged."""
        for finding in problems(trace):
            add(self.verdict.findings, finding)

    def assume(self, what: str, needs: str) -> None:
        """Something is taken for granted. `needs`: what it takes to drop that."""
        self.verdict.assumptions.setdefault(what, needs)

    def leave_open(self, reasons: Iterable[str]) -> None:
        """Conditions that do not hold, or were not checked."""
        self.verdict.open += [reason for reason in dict.fromkeys(reasons) if reason not in self.verdict.open]

    def read_otherwise(self, reading: KernelReading) -> None:
        self.verdict.readings.append(reading)

    def finish(self) -> None:
        """All passes are over: add what other readings say. Where only the first finding is looked for, they are asked
        if there is none."""
        for judged, chosen in () if self.has_new_finding or self.verdict.open else self._unread:
            self._readings.look(judged.run, chosen, judged.judgement)
        self.verdict.readings[:0] = self._readings.differences(self.verdict.findings)
        options = self._case.options
        if options.depends and not options.readings and self._case.model.name == DEFAULT_MODEL and self.representative:
            started = process_time()
            self.verdict.possible = possible_readings(self.representative.run, self.representative.judgement)
            self._case.effort.add_seconds("readings", started)

    def run_out(self, reason: str) -> None:
        """The budget has run out. Add what a run that was not judged shows by itself."""
        if self.unjudged is not None:
            self.add_problems(self.unjudged)
        self.verdict.open.append(reason)
        self.verdict.spent = True

    def add_reached(self, numbers: Iterable[int]) -> None:
        """Instructions that leave no events in runs: those of them to which threads came count as reached."""
        executed = self.executed if self._first is None else self.executed | self._first.executed
        self.verdict.reached |= executed.intersection(numbers)

    def kernel(self) -> JudgedKernel:
        """The verdict, and what it was made from."""
        if self._first is not None:
            executed = self.executed | self._first.executed
            self.verdict.coverage = coverage(self._case.entry, executed, self._first)
        judged = tuple(self.judged or ()) if not (self.verdict.open or self.verdict.spent) else ()
        return JudgedKernel(self._case.entry, self._case.launch, self.verdict, self._runs, self.representative, judged)


def _in_global(event: TraceEvent) -> bool:
    block = event.block
    return isinstance(event.label, Access) and block is not None and block.instance.space is Space.GLOBAL
