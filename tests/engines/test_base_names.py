"""Every base name of cat means the same in both engines, name by name, on executions of shipped tests.

The solver finds executions in which the names hold something; in each of them, the pairs that its formulas give are
those that plain evaluation gives after replaying it. What executions decide is compared over all executions as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import pytest
from helpers import agreement
from helpers.agreement import flagged
from helpers.examples import examples
from helpers.strategies import asynchronous
from helpers.strategies.kinds import KINDS, kinds
from helpers.strategies.wide import THEMES, programs
from hypothesis import assume, given
from hypothesis import strategies as st

from memmodel import api
from memmodel.answer import Budget
from memmodel.base import relations, sets
from memmodel.base.labels import Access
from memmodel.base.resources import axioms_dir, suite_dir
from memmodel.base.rows import rows_of
from memmodel.cat.load import parse_model
from memmodel.cat.syntax import Model
from memmodel.concrete import execution
from memmodel.encode import base
from memmodel.engine import Options
from memmodel.events.graph import Event
from memmodel.litmus.syntax import terms_of
from memmodel.program.lowered import LoweredTest
from memmodel.referee.replay import Replay, replay
from memmodel.referee.witness import spell_cell
from memmodel.refine.query import Query, encode
from memmodel.solve.formulas import Satisfiable
from memmodel.solve.questions import Asker
from memmodel.solve.reading import read_execution
from memmodel.solve.solver import Solver
from memmodel.source import Source
from memmodel.why.story import execution_of

NAMES = tuple(row.name for row in (*sets.SETS, *relations.RELATIONS))
DECIDED = (*sets.DECIDED, *relations.DECIDED)

SHIPPED = (
    "async/fabric/get-submit-fetching",
    "async/fabric/put-own-read",
    "async/honest/H11-memory-fences",
    "async/honest/H16-relaxed",
    "async/instructions/grid-wait",
    "async/mbarrier/init-cluster",
    "async/mbarrier/invalidated",
    "async/mbarrier/over-arrival",
    "async/mbarrier/red.async",
    "async/proxy/A9",
    "async/proxy/A14-no-wait",
    "async/readings/D13",
    "async/tcgen05/T16-cross-thread",
    "async/tcgen05/alloc",
    "async/tcgen05/alloc-mma",
    "bytes/B8",
    "control/bar+branch-around-exit",
    "control/spin+volatile+membar",
    "generic/G18-cta-scope",
    "proxy/MP+alias+F-before-rel@two-ctas",
    "proxy/single+store-cold",
    "proxy/single+sust-F.sur-F.tex-tld",
    "readings/mmio+MP",
)
"""Tests in which together, and with those below, every name holds something."""

OTHERS = {
    "read-only path": """
.global .u32 x = 0;
thread P0 @ cta 0, gpu 0 { st.global.u32 [x], 1; ld.global.nc.u32 %r, [x]; }
""",
    "fabric fences": """
thread P0 @ cta 0, gpu 0 { fence.proxy.fabric::generic.alias.release.sys; }
thread P1 @ cta 0, gpu 0 { fence.proxy.fabric::fabric.alias.release.sys; }
""",
    "mixed barrier": """
thread P0 @ cta 0, gpu 0 { bar.sync 1, 64; }
thread P1 @ cta 0, gpu 0 { bar.red.popc.u32 %r, 1, 64, %p; }
""",
    "old state": """
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {
    mbarrier.arrive.shared::cta.b64 %s, [bar];
    mbarrier.arrive.shared::cta.b64 _, [bar];
    mbarrier.test_wait.shared::cta.b64 %p, [bar], %s;
}
""",
    "gone": """
.shared .u32 s = 0;
thread P0 @ cta 0, cluster 0, gpu 0 { st.shared::cluster.u32 [s@cta1], 1; }
thread P1 @ cta 1, cluster 0, gpu 0 { ld.shared.u32 %r, [s]; exit; }
""",
    "warpgroup": """
.global .align 16 .u32 g[4];
.shared .align 16 .u32 a[4] = {1, 0, 0, 0};
.shared .align 16 .u32 b[4] = {1, 0, 0, 0};
thread P0 @ cta 0, gpu 0, warp 0 { MULTIPLY }
thread P1 @ cta 0, gpu 0, warp 1 { cp.async.ca.shared.global [b], [g], 16; MULTIPLY }
""".replace(
        "MULTIPLY",
        "mov.u64 %da, a; mov.u64 %db, b; wgmma.fence.sync.aligned; "
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %da, %db, 0, 1, 1, 0, 0; "
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
    ),
    "object": """
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, cluster 0, gpu 0 { ld.shared.b64 %r, [bar]; }
""",
}

NOTHING = ("emptyset", "foreign", "LANEGONE")
"""Names that hold nothing in any execution of a test; the second one is about CTAs of kernels that start."""

Pairs = frozenset[tuple[int, int]]


@cache
def asking(names: tuple[str, ...]) -> Model:
    """The shipped model, with flags that report what each of the names holds, and no others."""
    flags = "".join(f"flag ~empty {name} as name-{name}\n" for name in names)
    whole = parse_model(Source(str(axioms_dir() / "names.cat"), f'include "ptx-9.4.cat"\n{flags}'))
    kept = tuple(check for check in whole.checks if not check.flag or check.name.startswith("name-"))
    return Model("names", whole.title, whole.definitions, kept, (), whole.sources)


def lowered(name: str) -> LoweredTest:
    if name in OTHERS:
        return api.lowered(Source("other.litmus", f"PTX other\n{OTHERS[name]}\nexists (true)\n"))
    return api.lowered(suite_dir() / f"{name}.litmus")


class Compared:
    """Executions of one test, found one after the other until every name has held something that can."""

    def __init__(self, steps: LoweredTest, rows: tuple[str, ...] = NAMES) -> None:
        self.steps = steps
        self.model = asking(rows)
        self.query: Query = encode(steps, self.model, 2, tuple(terms_of(steps.test.condition)))
        self.door = Solver(self.query.graph.logic, Budget(seconds=60), time.monotonic())
        self.held: set[str] = set()
        asker = Asker(self.query, self.door)
        for name in rows:
            flag = f"name-{name}"
            raised = self.query.flags[flag]
            if flag not in self.held and asker.check([self.query.stops], raised=raised) is Satisfiable.SAT:
                here = self.compare()
                assert flag in here
                self.held |= here

    def compare(self) -> set[str]:
        """Compare both engines on the execution just found; the flags of the names that hold something in it."""
        again = replay(self.steps, self.model, read_execution(self.query, self.door))
        assert not again.failed
        number = self._numbers(again)
        for flag, formulas in self.query.flags.items():
            solver: Pairs = frozenset(
                (number(a), number(b)) for (a, b), formula in formulas.pairs.items() if self.door.holds(formula)
            )
            assert solver == frozenset(again.flags.get(flag, ())), flag
        return set(again.flags)

    def _numbers(self, again: Replay) -> Callable[[int], int]:
        """Event of the solver -> event of the replayed execution: in both, the n-th of its step, part and place."""
        runs = self.query.base.runs
        theirs: dict[object, list[int]] = {}
        for shown in again.witness.events:
            theirs.setdefault((again.positions[shown.uid], shown.location), []).append(shown.uid)
        mine: dict[object, list[int]] = {}
        for event in self.query.graph.events:
            if self.door.holds(runs[event.uid]):
                mine.setdefault(self._key(event), []).append(event.uid)
        assert {key: len(uids) for key, uids in mine.items()} == {key: len(uids) for key, uids in theirs.items()}
        return {a: b for key, uids in mine.items() for a, b in zip(uids, theirs[key], strict=True)}.__getitem__

    def _key(self, event: Event) -> object:
        """Where an event of the solver comes from, and its location, as a replayed execution has them."""
        cell = event.point.cell
        if event.visit is None:
            assert cell is not None
            return ("initial", cell.instance), spell_cell(self.steps.space, cell)
        visit = self.query.graph.visits[event.visit]
        side = event.label.side if isinstance(event.label, Access) else None
        place = None if side is None or cell is None else spell_cell(self.steps.space, cell)
        return (visit.thread, visit.step, event.part, side), place


@cache
def compared(name: str) -> frozenset[str]:
    return frozenset(Compared(lowered(name)).held)


def test_each_engine_finds_what_executions_decide() -> None:
    """A name that one engine forgets is missing here before it fails in a run."""
    assert set(base.DECIDED_SETS) == set(sets.DECIDED)
    assert set(base.DECIDED_RELATIONS) == set(relations.DECIDED)
    assert set(execution.DECIDED_SETS) < set(sets.DECIDED)
    assert set(execution.DECIDED_RELATIONS) < set(relations.DECIDED)


@pytest.mark.parametrize("name", [*SHIPPED, *OTHERS])
def test_names_hold_the_same_in_both_engines(name: str) -> None:
    assert compared(name)


def test_every_name_holds_something_somewhere() -> None:
    held = {flag.removeprefix("name-") for name in (*SHIPPED, *OTHERS) for flag in compared(name)}
    assert set(NAMES) - held == set(NOTHING)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", [*SHIPPED, *OTHERS])
def test_what_executions_decide_is_the_same_over_all_of_them(name: str) -> None:
    steps = lowered(name)
    slow, fast = (api.judge(steps, asking(DECIDED), Options(engine, bound=2)) for engine in ("enumerate", "z3"))
    assert not slow.unsearched and not fast.unsearched
    assert flagged(slow) == flagged(fast)


@examples(12)
@given(data=st.data())
def test_what_executions_of_generated_programs_decide(data: st.DataObject) -> None:
    program = data.draw(st.one_of(kinds([*KINDS]), programs([*THEMES]), asynchronous.programs()))
    steps = agreement.lowered(program.text)
    slow, fast = (agreement.answer(steps, asking(DECIDED), name) for name in ("enumerate", "z3"))
    assume(not slow.unsearched and not fast.unsearched)
    assert flagged(slow) == flagged(fast), program.text


def test_a_name_that_one_engine_gets_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base.DECIDED_RELATIONS, "data", base.DECIDED_RELATIONS["addr"])
    with pytest.raises(AssertionError, match="name-data"):
        Compared(lowered("async/tcgen05/alloc-mma"))


def test_a_name_that_one_engine_forgets_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(base.DECIDED_RELATIONS, "mbarnext")
    with pytest.raises(KeyError, match="mbarnext"):
        Compared(lowered("async/tcgen05/alloc-mma"))


def test_relations_of_kinds_are_those_of_every_pair() -> None:
    """What `kind` tells apart is all that `holds` looks at."""
    for name in ("async/pipelines/dsmem-reduction-relaxed", "isa/MP+atom"):
        answer = api.check(suite_dir() / f"{name}.litmus").answer
        witness = answer.witness or answer.counter
        shown = None if witness is None else execution_of(witness)
        assert shown is not None
        frame = shown.frame
        for row in relations.RELATIONS:
            if row.kind is not None and row.holds is not None and row.domain is not None:
                points = [event.point for event in frame.events if row.domain(event.point)]
                pairs = {(a.event, b.event) for a in points for b in points if row.holds(a, b)}
                assert pairs and rows_of(pairs, frame.count) == frame.relation(row.name)
