"""What a model says of one launch: findings, and the conditions under which they speak for every schedule.

In: Module, entry, Launch, Model. Out: `KernelVerdict`. `clean`: every condition was checked and held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from memmodel.base.classes import dataclass, field
from memmodel.base.labels import Access, Action, Barrier, Half, Label, Mbarrier, Side, Signal
from memmodel.base.oneline import shown
from memmodel.cat.flags import kind_of
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Rows
from memmodel.kernel.judge.conflicts import Conflicts
from memmodel.kernel.judge.evaluation import Flags
from memmodel.kernel.judge.events import LaunchTrace, Refused
from memmodel.kernel.judge.graph import Graph
from memmodel.kernel.judge.roles import Roles
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.polling import complaints
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.text.syntax import PtxFunction, PtxInstruction, PtxModule

KernelWord = Literal["clean", "findings", "undecided"]

MAX_EVENTS = 6_000
ORDER = "happens"
"""The definition of a model that says what has happened before what, whatever the semantics."""


@dataclass(frozen=True, slots=True)
class FindingPlace:
    """One access or operation of a finding."""

    instruction: PtxInstruction
    what: str
    cta: int
    warp: int
    lane: int


@dataclass(slots=True)
class KernelFinding:
    """Something wrong, with its places. `count`: pairs of classes that are alike."""

    rule: str
    kind: str
    message: str
    sides: tuple[FindingPlace, ...]
    where: str = ""
    count: int = 1


@dataclass(slots=True)
class Statistics:
    """Figures of one judgement."""

    instructions: int = 0
    threads: int = 0
    accesses: int = 0
    events: int = 0
    judged: int = 0
    pairs: int = 0
    roles: int = 0


@dataclass(slots=True, repr=False)
class KernelVerdict:
    """`word`: clean, findings or undecided. `open`: conditions that do not hold or were not checked."""

    entry: str
    launch: Launch
    model: str
    findings: list[KernelFinding] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)

    def __repr__(self) -> str:
        found = [f"{one.rule}: {one.message}" if one.message else one.rule for one in self.findings]
        return shown("KernelVerdict", f"{self.entry} under {self.model}: {self.word}", *found, *self.open)

    @property
    def word(self) -> KernelWord:
        if self.findings:
            return "findings"
        return "undecided" if self.open else "clean"


def judge(module: PtxModule, entry: PtxFunction, launch: Launch, model: Model) -> KernelVerdict:
    """Run a launch and judge it."""
    verdict = KernelVerdict(entry.name, launch, model.name)
    if launch.cluster != (1, 1, 1):
        verdict.open.append("clusters: exits of CTAs whose shared memory others use are not checked")
    try:
        run = run_launch(module, entry, launch)
        _one(verdict, entry, run, model)
        if run.elected:
            _one(verdict, entry, run_launch(module, entry, launch, elect_last=True), model)
    except Refused as error:
        place = f"{error.span.line}: " if error.span is not None else ""
        verdict.open.append(f"line {place}{error.message}" if place else error.message)
    return verdict


def _one(verdict: KernelVerdict, entry: PtxFunction, run: LaunchTrace, model: Model) -> None:
    body = entry.body or ()
    numbers = verdict.statistics
    numbers.instructions, numbers.threads, numbers.accesses = run.instructions, len(run.threads), len(run.weak)
    numbers.events = sum(len(thread.events) for thread in run.threads)
    for problem in run.problems:
        sides = (
            ()
            if problem.instruction is None
            else (FindingPlace(problem.instruction, problem.instruction.opcode, -1, -1, -1),)
        )
        _add(verdict, KernelFinding(problem.rule, kind_of(problem.rule).value, problem.message, sides))
    roles = Roles(run)
    conflicts = Conflicts(run, roles)
    graph = Graph(run, roles, conflicts)
    execution = graph.execution(fences=True)
    numbers.judged, numbers.pairs, numbers.roles = len(execution.events), len(graph.pairs), len(set(roles.who))
    _open(verdict, _choices(run) + [_said(test, why) for test, why in complaints(entry, run.tests)])
    _open(verdict, _objects_touched(run, body))
    if len(execution.events) > MAX_EVENTS:
        _open(verdict, [f"{len(execution.events)} events to judge are more than {MAX_EVENTS}"])
        return
    flags = Flags(model, execution)
    found = _raised(flags, graph)
    for rule, one, other in found:
        _add(verdict, _finding(graph, run, body, rule, one, other))
    if any(execution.relation("sync_fence")):
        flags = Flags(model, graph.execution(fences=False))
        for rule, one, other in _raised(flags, graph):
            if (rule, one, other) not in found:
                lines = sorted({body[graph.behind[n].at].line for n in (one, other)})
                _open(verdict, [f"lines {lines}: {rule} but for the order that fence.sc operations had in this run"])
    before = flags.relation(ORDER)
    if before is None:
        _open(verdict, [f"the model {model.name} does not define {ORDER}, so counts and waits were not checked"])
        return
    _open(verdict, _counted(graph, run, body, before))


def _raised(flags: Flags, graph: Graph) -> list[tuple[str, int, int]]:
    """What flags report. Accesses that share a location stand for pairs only where they touch the same bytes."""
    found = []
    for rule, pairs in flags.raised().items():
        for one, other in pairs:
            behind = graph.behind[one], graph.behind[other]
            if all(side.pair is not None for side in behind) and frozenset((one, other)) not in graph.pair_of:
                continue
            found.append((rule, one, other))
    return found


def _open(verdict: KernelVerdict, reasons: list[str]) -> None:
    verdict.open += [reason for reason in dict.fromkeys(reasons) if reason not in verdict.open]


def _said(instruction: PtxInstruction, why: str) -> str:
    return f"line {instruction.line}: {instruction.opcode}: {why}"


def _add(verdict: KernelVerdict, finding: KernelFinding) -> None:
    lines = sorted(side.instruction.number for side in finding.sides)
    for known in verdict.findings:
        if known.rule == finding.rule and sorted(side.instruction.number for side in known.sides) == lines:
            known.count += 1
            return
    verdict.findings.append(finding)


def _finding(
    graph: Graph, run: LaunchTrace, body: tuple[PtxInstruction, ...], rule: str, one: int, other: int
) -> KernelFinding:
    sides, where = [], ""
    for number in dict.fromkeys((one, other)):
        behind = graph.behind[number]
        thread = run.threads[behind.thread]
        point = graph.points[number]
        sides.append(FindingPlace(body[behind.at], describe(point.label), thread.cta, thread.warp, thread.lane))
        index = graph.pair_of.get(frozenset((one, other)))
        if index is not None:
            pair = graph.pairs[index]
            where = f"byte {pair.first} of {pair.block.instance.name}"
    return KernelFinding(rule, kind_of(rule).value, "", tuple(sides), where)


def describe(label: Label) -> str:
    """An event in words."""
    if isinstance(label, Access):
        what = "reads" if label.side is Side.READ else "writes"
        how = [] if label.proxy.value == "generic" else [f"through the {label.proxy.value} proxy"]
        return " ".join([what, *how, *(["asynchronously"] if label.asynchronous else [])])
    if isinstance(label, Mbarrier | Signal):
        return label.action.value
    return type(label).__name__.lower()


# ---- conditions ----------------------------------------------------------------------------------------------


def _choices(run: LaunchTrace) -> list[str]:
    """What another schedule might answer otherwise."""
    said = {
        "atomic": "its result depends on the order of the atomic operations; one order was looked at",
        "order": "what it leaves depends on the order of the atomic operations; one order was looked at",
        "load": "what it reads may depend on the schedule; one schedule was looked at",
        "activemask": "it tells which lanes happen to be together; one schedule was looked at",
    }
    return [_said(instruction, said[what]) for (what, _), instruction in run.choices.items()]


def _objects_touched(run: LaunchTrace, body: tuple[PtxInstruction, ...]) -> list[str]:
    """Accesses to the bytes of mbarrier objects are not judged here."""
    found = []
    objects: dict[object, list[int]] = {}
    for block, first in run.objects:
        objects.setdefault(block, []).append(first)
    for one in run.weak:
        for first in objects.get(one.block, ()):
            if one.first < first + 8 and first < one.first + one.size:
                found.append(_said(body[one.at], "it touches the memory of an mbarrier object"))
    return list(dict.fromkeys(found))


def _counted(graph: Graph, run: LaunchTrace, body: tuple[PtxInstruction, ...], before: Rows) -> list[str]:
    """Arrivals of one generation or phase come before those of the next, and a wait passes on its own phase only."""
    found: list[str] = []
    generations: dict[object, dict[int, list[int]]] = {}
    for thread in {behind.thread for behind in graph.behind}:
        for event in run.threads[thread].events:
            number = graph.number.get(id(event))
            label = event.label
            if number is not None and isinstance(label, Barrier) and label.half is Half.ARRIVE:
                generations.setdefault(event.barrier, {}).setdefault(event.generation, []).append(number)
    for levels in generations.values():
        found += _ordered(levels, before, lambda n: body[graph.behind[n].at], "arrivals of two generations")
    for log in run.objects.values():
        phases: dict[int, list[int]] = {}
        expected: list[tuple[int, int]] = []
        arrivals: dict[int, list[int]] = {}
        tests: dict[int, list[int]] = {}
        for step in log:
            number = graph.number.get(id(step.event))
            label = step.event.label
            if number is None or not isinstance(label, Mbarrier | Signal):
                continue
            if not step.update:
                tests.setdefault(step.seen - 1, []).append(number)
            elif label.action not in (Action.INIT, Action.INVAL):
                phases.setdefault(step.before, []).append(number)
                if label.action is Action.EXPECT_TX:
                    expected.append((step.before, number))
                elif label.action is Action.ARRIVE:
                    arrivals.setdefault(step.before, []).append(number)
        lives = {step.life for step in log}
        if len(lives) > 1:
            found.append(f"line {body[log[0].event.at].line}: an mbarrier object is initialised again")
            continue
        instruction: Callable[[int], PtxInstruction] = lambda n: body[graph.behind[n].at]  # noqa: E731
        found += _ordered(phases, before, instruction, "arrivals of two phases")
        for phase, one in expected:
            if not any(before[one] >> other & 1 for other in arrivals.get(phase, ())):
                found.append(_said(instruction(one), "it is not ordered before an arrival of its phase"))
        found += _passes(tests, phases, before, instruction)
    return list(dict.fromkeys(found))


def _ordered(
    levels: dict[int, list[int]], before: Rows, instruction: Callable[[int], PtxInstruction], what: str
) -> list[str]:
    found = []
    for level, members in levels.items():
        for one in members:
            for later in levels.get(level + 1, ()):
                if not before[one] >> later & 1:
                    lines = f"lines {instruction(one).line} and {instruction(later).line}"
                    found.append(f"{lines}: {what} that follow one another are not ordered")
    return found


def _passes(
    tests: dict[int, list[int]],
    phases: dict[int, list[int]],
    before: Rows,
    instruction: Callable[[int], PtxInstruction],
) -> list[str]:
    """A test of phase k comes after the end of k - 1 and before the end of k + 1."""
    found = []
    for phase, members in tests.items():
        earlier = [*tests.get(phase - 1, ()), *phases.get(phase, ())]
        for test in members:
            after = phase <= 0 or any(before[one] >> test & 1 for one in earlier)
            ends = phases.get(phase + 1)
            stays = not ends or any(before[test] >> one & 1 for one in ends)
            if not after or not stays:
                found.append(_said(instruction(test), f"it may pass on another phase than {phase}"))
    return found
