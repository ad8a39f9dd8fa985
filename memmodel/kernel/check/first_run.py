"""The representative run: the launch, run once.

In: `KernelCase`. Out: `FirstRun`. Settled here: a test of an mbarrier object to which its thread does not come back
after a failure returns false where the thread would wait for ever. Tests outside of polling loops fail a few times
before they wait, if no failure of any of them changes anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memmodel.answer import HANG
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.flow.paths import fails_back
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import Refused


@dataclass(frozen=True, slots=True)
class FirstRun:
    """A run of the launch, and its schedule."""

    schedule: Schedule
    trace: LaunchTrace


def first_schedule(case: KernelCase) -> Schedule:
    """The schedule in which nothing is chosen yet."""
    return Schedule(ctas=case.options.ctas, assumed=case.options.assumed, steps=case.options.steps)


def first_run(case: KernelCase) -> FirstRun:
    """The run; where threads wait for ever at a test to which they do not come back after a failure, the run in which
    the test returns false. Raises Refused.
    """
    schedule = first_schedule(case)
    trace = case.run(schedule)
    once = frozenset(at for at in _stuck(trace) & frozenset(trace.tests) if not fails_back(case.entry, at))
    if not once:
        return FirstRun(schedule, trace)
    past = replace(schedule, truthful=once)
    outcome = case.attempt(past)
    if isinstance(outcome, Refused) or once & _stuck(outcome):
        return FirstRun(schedule, trace)
    return FirstRun(past, outcome)


def with_failing_tests(case: KernelCase, first: FirstRun) -> FirstRun:
    """The run in which tests that are no polling loops fail a few times, if no failure changes anything."""
    trace = first.trace
    tests = frozenset(test.number for test, _ in complaints(case.entry, trace.tests, trace.awaits))
    if not tests:
        return first
    schedule = replace(first.schedule, failing=tests)
    outcome = case.attempt(schedule)
    if isinstance(outcome, Refused) or outcome.proved != tests:
        return first
    return FirstRun(schedule, outcome)


def _stuck(trace: LaunchTrace) -> frozenset[int]:
    """The instructions at which threads wait for ever."""
    hangs = (problem.instruction for problem in trace.problems if problem.rule == HANG)
    return frozenset(instruction.number for instruction in hangs if instruction)
