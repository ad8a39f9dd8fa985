"""The staged search against trying everything, and the referee against everything that the search finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

import pytest
from helpers.examples import examples
from helpers.executions import candidates, choice_of, execution_of, problem_of
from hypothesis import assume, given
from hypothesis import strategies as st

from memmodel import api
from memmodel.answer import Budget, Observation
from memmodel.base.labels import Access, InitialWrite, Side
from memmodel.base.rows import Rows, bits, pairs_of, rows_of
from memmodel.cat import load_model
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.load import parse_model
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.barriers import meetings, reductions_agree
from memmodel.concrete.execution import Execution, FixedPart, position
from memmodel.concrete.mbarriers import observations
from memmodel.concrete.meter import Meter
from memmodel.concrete.records import RecordName
from memmodel.enumeration.answers import enumerate_answer, enumerate_outcomes
from memmodel.enumeration.orders import partial_orders
from memmodel.enumeration.plan import Plan
from memmodel.enumeration.problem import Problem
from memmodel.enumeration.question import WAITS, AskedKey
from memmodel.enumeration.search import Search
from memmodel.errors import InternalError
from memmodel.memory.bytes import Cell
from memmodel.program.lowered import LoweredTest
from memmodel.referee.choice import Choice
from memmodel.referee.evaluate import evaluate
from memmodel.referee.finals import outcome_terms
from memmodel.referee.replay import replay
from memmodel.source import Source

STRANGE = """
empty (W * W & loc) \\ (co | co^-1 | id) as total
empty ([F & SC] ; po ; [F & SC]) \\ sync_fence as fences-follow-program
irreflexive rf ; (po | sync_fence)+ as past
flag ~empty (W * R & loc & ext) \\ (rf | co ; rf) as unread
flag ~empty (R * W & loc & ext) \\ (po | sync_fence)+ as race
flag empty F as fenceless
"""
"""A model that gains from more sync_fence, and raises flags that depend on every choice."""

MODELS = {name: load_model(name) for name in ("sc", "ptx-7.5", "ptx-9.4")}
MODELS["strange"] = parse_model(Source("strange.cat", STRANGE))

TOO_MANY = 100
"""Tests with so many candidates or more are left out: plain evaluation of each takes its time."""

INSTRUCTIONS = (
    "st.weak.u32 [{x}], 1;",
    "st.release.gpu.u32 [{x}], 2;",
    "st.relaxed.cta.u32 [{x}], %r{o};",
    "st.weak.u16 [{x}], 3;",
    "ld.weak.u32 %r{n}, [{x}];",
    "ld.weak.v2.u16 {{%r{n}, %h{n}}}, [{x}];",
    "ld.acquire.gpu.u32 %r{n}, [{x}];",
    "fence.sc.gpu;",
    "fence.sc.cta;",
    "atom.relaxed.gpu.add.u32 %r{n}, [{x}], 1;",
    "atom.acq_rel.gpu.cas.b32 %r{n}, [{x}], 1, 2;",
    "bar.sync 0;",
    "setp.ne.u32 %p{n}, %r{o}, 0; @%p{n} bra L{n};",
)


@st.composite
def small_tests(draw: st.DrawFn) -> LoweredTest:
    """Two threads of up to three instructions on two locations."""
    parts = ["PTX generated", ".global .u32 x = 0;", ".global .u32 y = 0;"]
    cta = draw(st.integers(0, 1))
    for thread in range(2):
        lines: list[str] = []
        labels: list[str] = []
        for number in range(draw(st.integers(1, 3))):
            text = draw(st.sampled_from(INSTRUCTIONS))
            lines.append(text.format(x=draw(st.sampled_from("xy")), n=number, o=draw(st.integers(0, 1))))
            if "bra" in text:
                labels.append(f"L{number}:")
        parts += [f"thread P{thread} @ cta {thread * cta}, gpu 0 {{", *lines, *labels, "}"]
    left = draw(st.sampled_from(["P0:r0 == 0", "P0:r1 == 1", "x == 1", "y == 2", "P0:r2 == 2"]))
    right = draw(st.sampled_from(["P1:r0 == 1", "P1:r1 == 0", "x == 2", "y == 0", "P1:r2 == 1"]))
    parts.append(f"exists ({left} {draw(st.sampled_from(['/' + chr(92), chr(92) + '/']))} {right})")
    return api.lowered(Source("generated.litmus", "\n".join([*parts, ""])))


# ---- trying everything -------------------------------------------------------------------------------------------


def everything(problem: Problem, asked: AskedKey) -> Iterator[tuple[Execution, Assembly]]:
    """Every candidate execution, by making all choices one after the other."""
    rows = zip(problem.complete, problem.waiting, problem.stopped, strict=True)
    for traces in product(*(complete + waiting + stopped for complete, waiting, stopped in rows)):
        frame = FixedPart(problem.lowered, traces, asked.extents)
        assembly, values = Assembly(frame), frame.values_of(traces)
        sources = [
            [
                (write, read)
                for write in bits(frame.set("W"))
                if same_place(frame, write, read) and values[write] == values[read]
            ]
            for read in bits(frame.set("R"))
        ]
        for meeting in meetings(assembly.barriers, assembly.halves, assembly.waiting):
            if not reductions_agree(assembly.contributions, assembly.barriers, meeting):
                continue
            for observed in observations(assembly.objects, Meter(Budget())):
                settled = assembly.relations(meeting, observed)
                for rf, fences, co in product(product(*sources), orders_of_fences(frame), orders_of_writes(frame)):
                    chosen = {"rf": rows_of(rf, frame.count), "co": co, "sync_fence": fences, **settled}
                    if assembly.waits_read_last_writes(chosen["rf"], co):
                        yield Execution(frame, values, assembly.sets(observed), chosen), assembly


def same_place(frame: FixedPart, a: int, b: int) -> bool:
    return frame.events[a].point.cell == frame.events[b].point.cell


def orders_of_fences(frame: FixedPart) -> list[Rows]:
    fences = bits(frame.set("F") & frame.set("SC"))
    sr = frame.relation("sr")
    comparable = [sum(1 << j for j, b in enumerate(fences) if i != j and sr[a] >> b & 1) for i, a in enumerate(fences)]
    found = []
    for order in partial_orders(len(fences), comparable):
        found.append(rows_of([(fences[a], fences[b]) for a, b in pairs_of(list(order))], frame.count))
    return found


def orders_of_writes(frame: FixedPart) -> list[Rows]:
    """Every strict partial order on the write operations, as far as these share cells; initial writes first."""
    events = frame.events
    initial = [n for n in bits(frame.set("W")) if isinstance(events[n].label, InitialWrite)]
    others = [n for n in bits(frame.set("W")) if n not in initial]
    first = [(a, b) for a in initial for b in others if same_place(frame, a, b)]
    operations = list(dict.fromkeys(events[n].point.operation for n in others))
    found: dict[tuple[int, ...], None] = {}
    for order in partial_orders(len(operations)):
        before = {(operations[a], operations[b]) for a, b in pairs_of(list(order))}
        pairs = [
            (a, b)
            for a in others
            for b in others
            if same_place(frame, a, b) and (events[a].point.operation, events[b].point.operation) in before
        ]
        found[tuple(rows_of([*first, *pairs], frame.count))] = None
    return [list(rows) for rows in found]


def finals(execution: Execution) -> Iterator[dict[Cell, int]]:
    """One maximal write for each location, in every way."""
    last: dict[Cell, set[int]] = {}
    for number in bits(execution.set("W")):
        cell, value = execution.events[number].point.cell, execution.values[number]
        if not execution.relation("co")[number]:
            assert cell is not None and value is not None
            last.setdefault(cell, set()).add(value)
    for values in product(*last.values()):
        yield dict(zip(last, values, strict=True))


class Tried:
    """What trying everything finds: keys of the condition, final states, flags with the places they relate."""

    def __init__(self, test: LoweredTest, name: str) -> None:
        model = MODELS[name]
        self.question, self.shown = AskedKey(test), AskedKey(test, outcome_terms(test))
        self.problem = problem_of(test, bound=1)
        self.keys: set[object] = set()
        self.outcomes: set[object] = set()
        self.flags: set[tuple[str, object]] = set()
        undefined = {check.name for check in model.flags if kind_of(check.name) is FindingKind.UNDEFINED}
        tried = list(islice(everything(self.problem, self.shown), TOO_MANY))
        assume(len(tried) < TOO_MANY)
        for execution, _ in tried:
            evaluation = evaluate(model, execution)
            if evaluation.consistent:
                self._take(execution, evaluation.flags, undefined)

    def _take(self, execution: Execution, flags: dict[str, list[tuple[int, int]]], undefined: set[str]) -> None:
        traces = execution.frame.traces
        for flag, pairs in flags.items():
            self.flags.add((flag, None))
            for a, b in pairs:
                places = frozenset(position(execution.frame, execution.events[one]) for one in (a, b))
                self.flags.add((flag, places))
        if not all(trace.ending.complete for trace in traces):
            if undefined.isdisjoint(flags):
                self.keys.add(WAITS)
            return
        registers = [trace.registers for trace in traces]
        for memory in finals(execution):
            self.keys.add(self.question.key(registers, memory))
            self.outcomes.add(self.shown.key(registers, memory))


@pytest.mark.share(2)
@pytest.mark.parametrize("name", MODELS)
@examples(20)
@given(test=small_tests())
def test_the_search_finds_what_trying_everything_finds(name: str, test: LoweredTest) -> None:
    model, tried = MODELS[name], Tried(test, name)
    expected = {
        (True, True): Observation.SOMETIMES,
        (True, False): Observation.ALWAYS,
        (False, True): Observation.NEVER,
        (False, False): Observation.VACUOUS,
    }[True in tried.keys, False in tried.keys]
    mixed = any(kind_of(flag) is FindingKind.MIXED for flag, _ in tried.flags)
    for findings in (False, True):
        answer = enumerate_answer(test, model, budget=Budget(), bound=1, findings=findings)
        assert answer.observation is (Observation.UNDECIDED if mixed else expected)
        assert (answer.witness is not None, answer.counter is not None) == (True in tried.keys, False in tried.keys)
    assert (answer.hang is not None) == (WAITS in tried.keys)
    plan = Plan(model, [check.name for check in model.flags])
    undefined = [check.name for check in model.flags if kind_of(check.name) is FindingKind.UNDEFINED]
    search = Search(tried.problem, plan, tried.question, (True, False), undefined, Meter(Budget()))
    search.run()
    assert set(search.result.raised) == {flag for flag, places in tried.flags if places is None}
    assert set(search.result.flags) == {(flag, places) for flag, places in tried.flags if places is not None}
    found = enumerate_outcomes(test, model, budget=Budget(), bound=1)
    assert found.complete is not mixed
    assert {tuple(value for _, value in state.values) for state in found.states} == tried.outcomes


@examples(40)
@given(test=small_tests(), name=st.sampled_from(sorted(MODELS)))
def test_every_candidate_found_replays_as_the_same_execution(test: LoweredTest, name: str) -> None:
    model = MODELS[name]
    for candidate in candidates(test, model, bound=1):
        execution = execution_of(candidate)
        again = replay(test, model, choice_of(candidate))
        assert again.failed == ()
        assert again.waits is not all(trace.ending.complete for trace in candidate.traces)
        if len(again.positions) == execution.frame.count:  # a question about less may leave cells whole
            for relation in ("po", "rf", "co"):
                assert again.witness.edges[relation] == tuple(pairs_of(execution.relation(relation)))


# ---- what the referee refuses ------------------------------------------------------------------------------------

SB = """PTX SB+fences
{ x=0; y=0; }
P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
st.weak x, 1   | st.weak y, 1   ;
fence.sc.gpu   | fence.sc.gpu   ;
ld.weak r0, y  | ld.weak r0, x  ;
st.weak x, 2   |                ;
exists (P0:r0 == 0 /\\ P1:r0 == 0)
"""

NAMES = {
    name: RecordName(*place, 0)
    for name, place in {
        "Wx1": (0, 0),
        "F0": (0, 1),
        "Ry": (0, 2),
        "Wx2": (0, 3),
        "Wy": (1, 0),
        "F1": (1, 1),
        "Rx": (1, 2),
    }.items()
}


@pytest.fixture
def store_buffering() -> tuple[LoweredTest, Choice]:
    test = api.lowered(Source("SB.litmus", SB))
    x, y = (Cell(one, 0, one.size) for one in test.space.instances)
    choice = Choice(
        values=((NAMES["Ry"], y, 0), (NAMES["Rx"], x, 1)),
        answers={},
        rf=((None, NAMES["Ry"], y), (NAMES["Wx1"], NAMES["Rx"], x)),
        co=((NAMES["Wx1"], NAMES["Wx2"], x),),
        sync_fence=((NAMES["F0"], NAMES["F1"]),),
        generations={},
        mbar=(),
        seen={},
        finals=(),
        waiting=(None, None),
    )
    return test, choice


def test_a_good_choice_becomes_a_witness(store_buffering: tuple[LoweredTest, Choice]) -> None:
    test, choice = store_buffering
    again = replay(test, MODELS["ptx-9.4"], choice)
    assert (again.failed, again.satisfies, again.waits) == ((), False, False)
    assert again.witness.registers == {("P0", "r0"): 0, ("P1", "r0"): 1}
    assert again.witness.memory == {"x": "2", "y": "1"}
    texts = [event.text for event in again.witness.events]
    assert texts[:2] == ["W x = 0", "W y = 0"]
    assert texts[2:6] == ["W.weak x = 1", "fence.sc.gpu", "R.weak y = 0", "W.weak x = 2"]
    assert texts[6:] == ["W.weak y = 1", "fence.sc.gpu", "R.weak x = 1"]
    assert [event.label for event in again.witness.events][2:5] == ["a", "b", "c"]


def test_a_choice_that_the_model_forbids_names_the_axiom(store_buffering: tuple[LoweredTest, Choice]) -> None:
    test, choice = store_buffering
    (_, _, y), (_, _, x) = choice.rf
    stale = replace(
        choice,
        values=((NAMES["Ry"], y, 0), (NAMES["Rx"], x, 0)),
        rf=((None, NAMES["Ry"], y), (None, NAMES["Rx"], x)),
    )
    again = replay(test, MODELS["ptx-9.4"], stale)
    assert again.satisfies
    assert again.failed == ("Causality",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rf": ()}, "does not end"),
        ({"waiting": (RecordName(0, 2, 0), None)}, "P0 does not end"),
        ({"values": ((NAMES["Ry"], "y", 5),)}, "does not return what was written"),
        ({"rf": ((NAMES["Wx1"], NAMES["Ry"], "y"), (NAMES["Wx1"], NAMES["Rx"], "x"))}, "does not write"),
        ({"rf": ((None, NAMES["Ry"], "y"), (None, NAMES["Rx"], "x"), (NAMES["Wx1"], NAMES["Rx"], "x"))}, "2 writes"),
        ({"co": ((NAMES["Wx1"], NAMES["Wx2"], "x"), (NAMES["Wx2"], NAMES["Wx1"], "x"))}, "co has a cycle"),
        ({"sync_fence": ()}, "unordered"),
        ({"sync_fence": ((NAMES["F0"], NAMES["F1"]), (NAMES["F1"], NAMES["F0"]))}, "sync_fence has a cycle"),
        ({"sync_fence": ((NAMES["Wx1"], NAMES["F1"]),)}, "no event"),
        ({"generations": {NAMES["F0"]: 0}}, "barriers cannot complete"),
        ({"finals": (("x", NAMES["Wx1"]),)}, "not co-maximal"),
        ({"mbar": (("x", (NAMES["F0"],)),)}, "no such event"),
    ],
)
def test_a_choice_that_is_no_execution_is_refused(
    store_buffering: tuple[LoweredTest, Choice], change: dict[str, object], message: str
) -> None:
    test, choice = store_buffering
    cells = {one.name: Cell(one, 0, one.size) for one in test.space.instances}

    def placed(value: object) -> object:
        if isinstance(value, tuple) and not isinstance(value, RecordName):
            return tuple(map(placed, value))
        return cells.get(value, value) if isinstance(value, str) else value

    with pytest.raises(InternalError, match=message):
        replay(test, MODELS["ptx-9.4"], replace(choice, **{k: placed(v) for k, v in change.items()}))  # type: ignore[arg-type]


def test_a_location_ends_with_the_write_chosen_if_it_is_maximal(store_buffering: tuple[LoweredTest, Choice]) -> None:
    test, choice = store_buffering
    _, (_, _, x) = choice.rf
    unordered = replace(choice, co=(), finals=((x, NAMES["Wx1"]),))
    assert replay(test, MODELS["ptx-9.4"], unordered).witness.memory["x"] == "1"


def test_two_operations_are_ordered_alike_wherever_they_meet() -> None:
    """The halves of a word that two stores write: co is about the stores."""
    test = api.lowered(
        Source(
            "halves.litmus",
            "PTX halves\n.global .u32 x = 0;\n"
            "thread P0 @ cta 0, gpu 0 { st.weak.u32 [x], 1; ld.weak.v2.u16 {%a, %b}, [x]; }\n"
            "thread P1 @ cta 0, gpu 0 { st.weak.u32 [x], 2; }\nexists (true)\n",
        )
    )
    for candidate in candidates(test, MODELS["strange"]):
        frame, co = candidate.skeleton.frame, execution_of(candidate).relation("co")
        writes = [n for n, e in enumerate(frame.events) if isinstance(e.label, Access) and e.label.side is Side.WRITE]
        ways = {
            (frame.events[a].point.operation, frame.events[b].point.operation)
            for a in writes
            for b in writes
            if co[a] >> b & 1
        }
        assert len(writes) == 4 and len(ways) == 1
