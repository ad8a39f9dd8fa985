"""The representative run: the launch, run once.

In: `KernelCase`. Out: `FirstRun`. Settled here: a test of an mbarrier object that its thread does not repeat after a
failure, or not of the same phase, returns false where the thread would wait for ever. Tests outside of polling loops
fail a few times before they wait, if no failure of any of them changes anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memmodel.answer import HANG
from memmodel.kernel.check.case import KernelCase
from memmodel.kernel.flow.paths import fails_back
from memmodel.kernel.flow.polling import ANOTHER_TEST, complaints
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
    """The run of the first schedule. If threads wait for ever in it at a test that they would not repeat after a
    failure, or repeat with another operand, the run in which this test returns false. Raises Refused.
    """
    schedule = first_schedule(case)
    trace = case.run(schedule)
    stuck = _stuck(trace) & frozenset(trace.tests)
    others = {test.number for test, why in complaints(case.entry, stuck, trace.awaits) if why == ANOTHER_TEST}
    single_tests = frozenset(at for at in stuck if at in others or not fails_back(case.entry, at))
    if not single_tests:
        return FirstRun(schedule, trace)
    honest = replace(schedule, truthful=single_tests)
    outcome = case.attempt(honest)
    if isinstance(outcome, Refused) or single_tests & _stuck(outcome):
        return FirstRun(schedule, trace)
    return FirstRun(honest, outcome)


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
