"""Executions in which some thread waits for ever, and what is missing then.

In: Problem with the traces that stand, Model as Plan. Out: a sentence for each thread that waits in the execution
found. docs/executions.md, "Hangs", says which executions hang.
"""

from __future__ import annotations

from memmodel.enumeration.finals import Question
from memmodel.enumeration.meter import Meter
from memmodel.enumeration.plan import Plan
from memmodel.enumeration.problem import Problem
from memmodel.enumeration.search import Candidate, Search
from memmodel.enumeration.traces import Half


def find_hang(problem: Problem, plan: Plan, meter: Meter) -> tuple[str, ...]:
    """What is missing in some execution that hangs; () if none does. Raises BudgetSpent."""
    if not any(problem.standing):
        return ()
    search = Search(problem, plan, Question((), lambda registers, memory: True), (True,), meter, hangs=True)
    search.run()
    found = search.findings.found.get(True)
    return () if found is None else _told(problem, found)


def _told(problem: Problem, found: Candidate) -> tuple[str, ...]:
    sentences = []
    for thread, (runner, trace) in enumerate(zip(problem.runners, found.traces, strict=True)):
        if trace.stand is None:
            continue
        span = runner.program.steps[trace.stand.step].instruction.span
        sentence = f"{runner.thread.name} waits for ever at {span}" if span else f"{runner.thread.name} waits for ever"
        missing = _missing(found, thread)
        sentences.append(f"{sentence}: {missing}" if missing else sentence)
    return tuple(sentences)


def _missing(found: Candidate, thread: int) -> str:
    """What the thread waits for: the first test or read of its last round, or a barrier."""
    skeleton, stand = found.skeleton, found.traces[thread].stand
    assert stand is not None
    if stand.half is not None:
        came, needed = skeleton.arrivals(thread, stand.half)
        return f"{_barrier(stand.half)}: {came} of {needed} arrivals"
    assert stand.first is not None
    for order in range(stand.first, len(found.traces[thread].events)):
        event = skeleton.events[skeleton.first[thread] + order]
        if event.operation is not None:
            one = next(one for one in skeleton.objects() if one.location == event.operation.object)
            return one.missing(one.chosen(found.variant.chosen["mbar"]))
        if "R" in event.tags:
            return f"{event.location} stays {found.traces[thread].values[order]}"
    return ""


def _barrier(half: Half) -> str:
    domain, _, key = half.resource
    return f"{domain} barrier {key[0]}" if domain == "cta" and isinstance(key, tuple) and key else f"{domain} barrier"
