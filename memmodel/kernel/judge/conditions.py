"""Under which conditions one run speaks for every schedule: counts, waits, polling, objects.

In: Graph, LaunchTrace, the order of a model. Out: what does not hold, as sentences. docs/kernels.md has the theorem.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.base.labels import Access, Action, Barrier, Half, Mbarrier, Signal
from memmodel.concrete.execution import Rows
from memmodel.kernel.judge.events import LaunchTrace, TraceEvent
from memmodel.kernel.judge.graph import Graph
from memmodel.kernel.machine.memory import Block
from memmodel.kernel.text.syntax import PtxInstruction


def said(instruction: PtxInstruction, why: str) -> str:
    """A sentence about an instruction."""
    return f"line {instruction.line}: {instruction.opcode}: {why}"


def counted(graph: Graph, run: LaunchTrace, body: tuple[PtxInstruction, ...], before: Rows) -> list[str]:
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
    peeked: dict[object, list[tuple[int, int]]] = {}
    for event, phase in run.peeks:
        if id(event) in graph.number:
            peeked.setdefault((event.block, event.first), []).append((phase, graph.number[id(event)]))
    for place, log in run.objects.items():
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
                found.append(said(instruction(one), "it is not ordered before an arrival of its phase"))
        found += _passes(tests, phases, before, instruction)
        for phase, one in peeked.get(place, ()):
            earlier = [*tests.get(phase - 1, ()), *phases.get(phase, ())]
            if phase > 0 and not any(before[other] >> one & 1 for other in earlier):
                found.append(said(instruction(one), f"it looks ahead, and may pass on another phase than {phase}"))
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
                found.append(said(instruction(test), f"it may pass on another phase than {phase}"))
    return found


def strong_sizes(run: LaunchTrace, body: tuple[PtxInstruction, ...]) -> list[str]:
    """Strong accesses that overlap in part: their races are not judged here."""
    extents: dict[Block, dict[tuple[int, int], TraceEvent]] = {}
    for thread in run.threads:
        for event in thread.events:
            if isinstance(event.label, Access) and event.block is not None:
                extents.setdefault(event.block, {}).setdefault((event.first, event.size), event)
    found = []
    for places in extents.values():
        end, last = -1, None
        for (first, size), event in sorted(places.items(), key=lambda item: item[0]):
            if last is not None and first < end:
                lines = sorted({body[last.at].line, body[event.at].line})
                found.append(f"lines {' and '.join(map(str, lines))}: strong accesses of different sizes overlap")
            if first + size > end:
                end, last = first + size, event
    return list(dict.fromkeys(found))
