"""The staged search against trying everything, and replay against everything that the search finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from memmodel.enumeration.barriers import reductions_agree
from memmodel.enumeration.choice import EventId, ThreadEventId
from memmodel.enumeration.execution import (
    Execution,
    Rows,
    base_sets,
    bits,
    pairs_of,
    rows_of,
    static_relations,
)
from memmodel.enumeration.finals import condition_question, outcome_question, outcome_terms
from memmodel.enumeration.meter import Meter

from memmodel.answer import Budget, Observation
from memmodel.cat import load_model
from memmodel.cat.load import parse_model
from memmodel.enumeration import Choice, enumerate_answer, enumerate_outcomes, evaluate, replay
from memmodel.enumeration.answers import execution_of, final_memory
from memmodel.enumeration.orders import acyclic_relations, partial_orders
from memmodel.enumeration.plan import Plan
from memmodel.enumeration.problem import Problem, prepare
from memmodel.enumeration.search import Candidate, Search, position
from memmodel.enumeration.skeleton import Skeleton, build_events
from memmodel.errors import InternalError
from memmodel.litmus import parse_litmus
from memmodel.litmus.syntax import LitmusTest
from memmodel.source import Source

STRANGE = """
empty (W * W & loc) \\ (co | co^-1 | id) as total
empty ([F & SC] ; po ; [F & SC]) \\ sync_fence as fences-follow-program
irreflexive rf ; (po | sync_fence)+ as past
flag ~empty (W * R & loc & ext) \\ (rf | co ; rf) as unread
flag ~empty (R * W & loc & ext) \\ (po | sync_fence)+ as race
flag empty F as fenceless
"""
"""A model that uses base co unclosed, gains from more sync_fence, and raises flags that depend on every choice."""

MODELS = {name: load_model(name) for name in ("sc", "ptx-7.5", "ptx-9.3")}
MODELS["strange"] = parse_model(Source("strange.cat", STRANGE))

TOO_MANY = 100
"""Tests with so many candidates or more are left out: plain evaluation of each takes its time."""

INSTRUCTIONS = (
    "st.weak {x}, 1",
    "st.release.gpu {x}, 2",
    "st.relaxed.cta {x}, r{o}",
    "ld.weak r{n}, {x}",
    "ld.acquire.gpu r{n}, {x}",
    "fence.sc.gpu",
    "fence.sc.cta",
    "atom.relaxed.gpu.add r{n}, {x}, 1",
    "atom.acq_rel.gpu.cas r{n}, {x}, 1, 2",
    "bar.cta.sync 0",
    "bne r{o}, 0, L{n}",
)


@st.composite
def small_tests(draw: st.DrawFn) -> LitmusTest:
    """Two threads of up to three instructions on two locations."""
    columns = []
    for thread in range(2):
        lines = []
        labels = []
        for number in range(draw(st.integers(1, 3))):
            text = draw(st.sampled_from(INSTRUCTIONS))
            lines.append(text.format(x=draw(st.sampled_from("xy")), n=number, o=draw(st.integers(0, 1))))
            if text.startswith("bne"):
                labels.append(f"L{number}:")
        columns.append(lines + labels)
        assert thread < 2
    height = max(map(len, columns))
    rows = [" | ".join(column[at] if at < len(column) else "" for column in columns) + " ;" for at in range(height)]
    cta = draw(st.integers(0, 1))
    left = draw(st.sampled_from(["P0:r0 == 0", "P0:r1 == 1", "x == 1", "y == 2", "P0:r2 == 2"]))
    right = draw(st.sampled_from(["P1:r0 == 1", "P1:r1 == 0", "x == 2", "y == 0", "P1:r2 == 1"]))
    joined = draw(st.sampled_from(["/\\", "\\/"]))
    header = f"P0@cta 0,gpu 0 | P1@cta {cta},gpu 0 ;"
    text = "\n".join(["PTX generated", "{ x=0; y=0; }", header, *rows, f"exists ({left} {joined} {right})"])
    return parse_litmus(Source("generated.litmus", text))


def everything(problem: Problem, plan: Plan) -> Iterator[tuple[Execution, list[dict[str, int]]]]:
    """Every candidate execution, by making all choices one after the other; `plan` only serves to meet at barriers."""
    for traces in product(*problem.traces):
        if not reductions_agree([one for trace in traces for one in trace.reductions]):
            continue
        values: list[int | None] = [problem.memory.initial[where] for where in problem.locations]
        for trace in traces:
            values.extend(trace.values)
        paths = [trace.events for trace in traces]
        events = tuple(replace(e, value=v) for e, v in zip(build_events(problem, paths), values, strict=True))
        count = len(events)
        static = static_relations(events)
        sets = base_sets(events)
        sources = [
            [
                (write, read)
                for write in bits(sets.get("W", 0))
                if events[write].location == events[read].location and events[write].value == events[read].value
            ]
            for read in bits(sets.get("R", 0))
        ]
        skeleton = Skeleton(problem, plan, paths)
        fences = bits(sets.get("F", 0) & sets.get("SC", 0))
        for variant in skeleton.variants(Meter(Budget())):
            for rf, fence_order, co in product(
                product(*sources), orders_of_fences(fences, static["sr"], count), orders_of_writes(events, count)
            ):
                chosen = {"rf": rows_of(rf, count), "co": co, "sync_fence": fence_order, **variant.chosen}
                execution = Execution(events, sets, {**static, **chosen})
                yield execution, [trace.registers for trace in traces]


def orders_of_fences(fences: list[int], sr: Rows, count: int) -> list[Rows]:
    comparable = [sum(1 << j for j, b in enumerate(fences) if i != j and sr[a] >> b & 1) for i, a in enumerate(fences)]
    found = []
    for order in partial_orders(len(fences), comparable):
        pairs = [(fences[a], fences[b]) for a, b in pairs_of(order)]
        found.append(rows_of(pairs, count))
    return found


def orders_of_writes(events: tuple[object, ...], count: int) -> list[Rows]:
    by_location: dict[object, list[int]] = {}
    for number, event in enumerate(events):
        if "W" in event.tags:  # type: ignore[attr-defined]
            by_location.setdefault(event.location, []).append(number)  # type: ignore[attr-defined]
    options = []
    for initial, *others in by_location.values():
        first = [(initial, one) for one in others]
        options.append(
            [first + [(others[a], others[b]) for a, b in pairs_of(one)] for one in acyclic_relations(len(others))]
        )
    return [rows_of([pair for part in parts for pair in part], count) for parts in product(*options)]


def finals(execution: Execution) -> Iterator[dict[object, int]]:
    """One maximal write for each location, in every way."""
    last: dict[object, set[int]] = {}
    for number in bits(execution.sets["W"]):
        event = execution.events[number]
        if not execution.relations["co"][number]:
            assert event.value is not None
            last.setdefault(event.location, set()).add(event.value)
    for values in product(*last.values()):
        yield dict(zip(last, values, strict=True))


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(test=small_tests())
def test_the_search_finds_what_trying_everything_finds(name: str, test: LitmusTest) -> None:
    model = MODELS[name]
    problem = prepare(test, 1, Meter(Budget()))
    question = condition_question(problem)
    shown = outcome_question(problem, outcome_terms(test))
    keys, outcomes, flags = set(), set(), set()
    candidates = list(islice(everything(problem, Plan(model, flags=False)), TOO_MANY))
    assume(len(candidates) < TOO_MANY)
    for execution, registers in candidates:
        evaluation = evaluate(model, execution)
        if not evaluation.consistent:
            continue
        for memory in finals(execution):
            keys.add(question.key(registers, memory))  # type: ignore[arg-type]
            outcomes.add(shown.key(registers, memory))  # type: ignore[arg-type]
        for flag, pairs in evaluation.flags.items():
            flags.add((flag, None))
            for a, b in pairs:
                flags.add((flag, frozenset((position(execution.events[a]), position(execution.events[b])))))

    for races in (False, True):
        answer = enumerate_answer(test, model, budget=Budget(), bound=1, races=races)
        expected = {
            (True, True): Observation.SOMETIMES,
            (True, False): Observation.ALWAYS,
            (False, True): Observation.NEVER,
            (False, False): Observation.VACUOUS,
        }[True in keys, False in keys]
        assert answer.observation is expected
        assert (answer.witness is not None, answer.counter is not None) == (True in keys, False in keys)
    search = Search(problem, Plan(model, flags=True), question, (True, False), Meter(Budget()))
    search.run()
    assert set(search.findings.raised) == {flag for flag, pair in flags if pair is None}
    assert set(search.findings.flags) == {(flag, pair) for flag, pair in flags if pair is not None}
    assert len(answer.races) == len(search.findings.flags)
    found = enumerate_outcomes(test, model, budget=Budget(), bound=1)
    assert found.complete
    assert {tuple(value for _, value in state.values) for state in found.states} == outcomes


def choice_of(problem: Problem, candidate: Candidate) -> Choice:
    """A candidate as the other engine would hand it over."""
    execution = execution_of(problem, candidate)

    def name(number: int) -> EventId:
        event = execution.events[number]
        if event.thread is None or event.order is None:
            assert event.location is not None
            return ("init", event.location)
        return (event.thread, event.order)

    def in_thread(number: int) -> ThreadEventId:
        event = execution.events[number]
        assert event.thread is not None and event.order is not None
        return (event.thread, event.order)

    reads = tuple(
        tuple(e.value for e in execution.events if e.thread == number and "R" in e.tags and e.value is not None)
        for number in range(len(candidate.traces))
    )
    relations = execution.relations
    return Choice(
        reads,
        tuple((name(a), in_thread(b)) for a, b in pairs_of(relations["rf"])),
        tuple((name(a), name(b)) for a, b in pairs_of(relations["co"])),
        tuple((in_thread(a), in_thread(b)) for a, b in pairs_of(relations["sync_fence"])),
    )


@settings(max_examples=60, deadline=None)
@given(test=small_tests(), name=st.sampled_from(sorted(MODELS)))
def test_every_candidate_found_replays_as_the_same_execution(test: LitmusTest, name: str) -> None:
    model = MODELS[name]
    problem = prepare(test, 1, Meter(Budget()))
    search = Search(problem, Plan(model, flags=False), condition_question(problem), (True, False), Meter(Budget()))
    search.run()
    for candidate in search.findings.found.values():
        choice = choice_of(problem, candidate)
        again = replay(test, model, choice)
        assert again.failed == ()
        execution = execution_of(problem, candidate)
        assert dict(again.witness.edges)["rf"] == tuple(pairs_of(execution.relations["rf"]))
        assert dict(again.witness.edges)["co"] == tuple(pairs_of(execution.relations["co"]))
        if not any(len(bits_of) > 1 for bits_of in maximal(execution).values()):
            memory = final_memory(execution, {})
            assert again.satisfies is condition_question(problem).key([t.registers for t in candidate.traces], memory)


def maximal(execution: Execution) -> dict[object, list[int]]:
    last: dict[object, list[int]] = {}
    for number in bits(execution.sets["W"]):
        if not execution.relations["co"][number]:
            last.setdefault(execution.events[number].location, []).append(number)
    return last


# ---- what replay refuses ---------------------------------------------------------------------------------------

SB = """PTX SB+fences
{ x=0; y=0; }
P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
st.weak x, 1   | st.weak y, 1   ;
fence.sc.gpu   | fence.sc.gpu   ;
ld.weak r0, y  | ld.weak r0, x  ;
st.weak x, 2   |                ;
exists (P0:r0 == 0 /\\ P1:r0 == 0)
"""


@pytest.fixture
def store_buffering() -> tuple[LitmusTest, Choice]:
    test = parse_litmus(Source("SB.litmus", SB))
    problem = prepare(test, 1, Meter(Budget()))
    x, y = problem.locations
    choice = Choice(
        reads=((0,), (1,)),
        rf=((("init", y), (0, 2)), ((0, 0), (1, 2))),
        co=((("init", x), (0, 0)), (("init", x), (0, 3)), ((0, 0), (0, 3)), (("init", y), (1, 0))),
        sync_fence=(((0, 1), (1, 1)),),
    )
    return test, choice


def test_a_good_choice_becomes_a_witness(store_buffering: tuple[LitmusTest, Choice]) -> None:
    test, choice = store_buffering
    again = replay(test, MODELS["ptx-9.3"], choice)
    assert (again.failed, again.satisfies) == ((), False)
    assert again.witness.registers == {("P0", "r0"): 0, ("P1", "r0"): 1}
    assert again.witness.memory == {"x": 2, "y": 1}
    texts = [event.text for event in again.witness.events]
    assert texts[:2] == ["W x = 0", "W y = 0"]
    assert texts[2:6] == ["W.weak x = 1", "fence.sc.gpu", "R.weak y = 0", "W.weak x = 2"]
    assert texts[6:] == ["W.weak y = 1", "fence.sc.gpu", "R.weak x = 1"]
    assert [event.label for event in again.witness.events][2:5] == ["a", "b", "c"]


def test_a_choice_that_the_model_forbids_names_the_axiom(store_buffering: tuple[LitmusTest, Choice]) -> None:
    test, choice = store_buffering
    x, y = prepare(test, 1, Meter(Budget())).locations
    forbidden = replace(choice, reads=((0,), (0,)), rf=((("init", y), (0, 2)), (("init", x), (1, 2))))
    again = replay(test, MODELS["ptx-9.3"], forbidden)
    assert again.satisfies
    assert again.failed == ("Causality",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reads": ((0,),)}, "another number of threads"),
        ({"reads": ((), (1,))}, "does not reach its end"),
        ({"reads": ((0,), (1, 1))}, "takes 1 values, not 2"),
        ({"reads": ((0,), (0,))}, "cannot take its value"),
        ({"rf": ()}, "exactly one rf"),
        ({"co": (((0, 0), (1, 0)),)}, "not writes of one location"),
        ({"co": (((0, 0), (0, 3)), ((0, 3), (0, 0)))}, "co has a cycle"),
        ({"sync_fence": ()}, "unordered"),
        ({"sync_fence": (((0, 1), (1, 1)), ((1, 1), (0, 1)))}, "not a strict partial order"),
        ({"sync_fence": (((0, 0), (1, 1)),)}, "other than fence.sc"),
        ({"sync_fence": (((0, 9), (1, 1)),)}, "no event"),
        ({"groups": (frozenset({(0, 1)}),)}, "barriers cannot complete"),
    ],
)
def test_a_choice_that_is_no_execution_is_refused(
    store_buffering: tuple[LitmusTest, Choice], change: dict[str, object], message: str
) -> None:
    test, choice = store_buffering
    with pytest.raises(InternalError, match=message):
        replay(test, MODELS["ptx-9.3"], replace(choice, **change))  # type: ignore[arg-type]


def test_a_location_ends_with_the_write_chosen_if_it_is_maximal(store_buffering: tuple[LitmusTest, Choice]) -> None:
    test, choice = store_buffering
    x, _ = prepare(test, 1, Meter(Budget())).locations
    unordered = replace(choice, co=(), finals=((x, (0, 0)),))
    assert replay(test, MODELS["ptx-9.3"], unordered).witness.memory["x"] == 1
    with pytest.raises(InternalError, match="not co-maximal"):
        replay(test, MODELS["ptx-9.3"], replace(choice, finals=((x, (0, 0)),)))
