"""What it means that both engines agree on a test: the comparison that generated and shipped tests share.

Compared are what happens to the condition, the findings and hangs (each by its flag and the instructions that it
concerns), whether anything was left unsearched, and all final states. Every execution shown is looked at: the solver's
has been replayed, and that of a finding must show it.
"""

from __future__ import annotations

import re

from helpers.strategies.programs import judged
from memmodel import api, engine
from memmodel.answer import HANG, Answer, Budget, Finding, Observation, ShownEvent, Witness
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.program.lowered import LoweredTest
from memmodel.source import Source

LITTLE = Budget(effort=6_000_000)
"""A generated test that needs more than this is dropped: it says nothing in a test of agreement."""

BOUND = 2

LIMITS = ("budget", "too many", "very many", "very large", "may return any", "may be any", "grows too large", "settle")
"""What is said of a test that is beyond what an engine tries."""

Place = tuple[str | None, object, str]


def lowered(text: str) -> LoweredTest:
    """A generated test as steps."""
    return api.lowered(Source("generated.litmus", text))


def answer(steps: LoweredTest, model: Model, name: str) -> Answer:
    """One engine's whole answer; a test that is too large for it is dropped."""
    found = api.judge(steps, model, Options(name, LITTLE, BOUND))
    judged(within_limits(found.reason + found.unsearched))
    return found


def within_limits(reason: str) -> bool:
    """Is a reason to be undecided about the test, and not about an engine's limits?"""
    return not any(words in reason for words in LIMITS)


def flagged(answer: Answer) -> set[tuple[str, frozenset[Place], str]]:
    """Findings by flag, by the instructions and halves (read or write) of both events, and by the rule broken."""
    return {
        (one.flag, frozenset(_place(event) for event in (one.first, one.second) if event is not None), one.rule)
        for one in answer.findings
    }


def _place(event: ShownEvent) -> Place:
    half = "R" if "R" in event.tags else "W" if "W" in event.tags else "-"
    if event.thread is None:
        return None, re.split(r"[\[@+]", event.location or "")[0], half
    return event.thread, event.span and event.span.start, half


def shows(finding: Finding) -> None:
    """The execution of a finding has the events that it names, and one of a hang says who waits."""
    events = set(finding.witness.events)
    assert {finding.first, finding.second} - {None} <= events, finding.flag
    if finding.flag == HANG:
        assert finding.witness.waits


def is_execution(witness: Witness | None) -> None:
    """Every read of an execution reads from one write, of its place and value."""
    if witness is None:
        return
    event = {one.uid: one for one in witness.events}
    sources = {read: write for write, read in witness.edges["rf"]}
    assert len(sources) == len(witness.edges["rf"])
    for one in witness.events:
        if "R" in one.tags:
            source = event[sources[one.uid]]
            assert (source.location, source.value) == (one.location, one.value)


def agree(text: str, model: Model) -> Answer:
    """Both engines say the same of a test; what the solver says of it."""
    steps = lowered(text)
    slow, fast = answer(steps, model, "enumerate"), answer(steps, model, "z3")
    where = f"under {model.name}\n{text}"
    assert fast.observation is slow.observation, where
    assert bool(fast.unsearched) == bool(slow.unsearched), where
    if not fast.unsearched:
        assert flagged(fast) == flagged(slow), where
        assert set(fast.with_condition or ()) == set(slow.with_condition or ()), where
    for one in (fast, slow):
        for finding in one.findings:
            shows(finding)
            is_execution(finding.witness)
        is_execution(one.witness)
        is_execution(one.counter)
    _same_states(steps, model, slow, where)
    return fast


def _same_states(steps: LoweredTest, model: Model, answer: Answer, where: str) -> None:
    """Both engines list the same final states, and the answer to the condition is theirs."""
    slow, fast = (engine.outcomes(steps, model, Options(name, LITTLE, BOUND)) for name in ("enumerate", "z3"))
    judged(within_limits(slow.reason + fast.reason))
    assert slow.complete == fast.complete, where
    if slow.complete:
        assert fast.states == slow.states, where
        if steps.test.finding is None:
            satisfied = {state.satisfies for state in slow.states}
            assert (
                answer.observation
                is {
                    frozenset(): Observation.VACUOUS,
                    frozenset({True}): Observation.ALWAYS,
                    frozenset({False}): Observation.NEVER,
                    frozenset({True, False}): Observation.SOMETIMES,
                }[frozenset(satisfied)]
            ), where
