"""sync finds what a test needs: it is right, costs no more than what the test has, and nothing cheaper is right."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.corpus import ROOT as SUITE
from helpers.examples import generator, share

import memmodel
from benchmarks.synchronize import TESTS
from memmodel import Agent, Costs, DataAccess, HandOverPlan, SharedBuffer, WantedHandOver, api
from memmodel.cli.app import app
from memmodel.concrete.execution import Execution
from memmodel.engine import Options
from memmodel.litmus.syntax import Not, Quantifier
from memmodel.program.lowered import LoweredTest
from memmodel.repair.costs import DEFAULT
from memmodel.repair.edits import Edit, apply
from memmodel.repair.insertion.meetings import barriers_between
from memmodel.repair.judge import judging
from memmodel.repair.searching.turns import Changes
from memmodel.repair.synchronizing import search, synchronize
from memmodel.repair.synchronizing.orderly import orderly
from memmodel.repair.synchronizing.phases_of import HandOvers, phase_waits
from memmodel.repair.synchronizing.strip import Strip, stripped
from memmodel.repair.vocabulary import single_strengthenings
from memmodel.repair.weaken import weaken
from memmodel.source import Source
from memmodel.why.story import execution_of

pytestmark = pytest.mark.turns(2)

QUICK = [file for file in TESTS if "pipelines" not in file]
MODELS = (api.load(api.DEFAULT_MODEL),)


@pytest.mark.share(2)
@pytest.mark.parametrize("file", share(QUICK, 4))
def test_what_is_found_costs_no_more_than_what_was_written(file: str) -> None:
    found = memmodel.sync(SUITE / file, strip="order")
    assert found.proved
    assert found.cost <= found.given
    assert found.judged == "enumerate and z3"
    assert found.new is not None
    assert not weaken(file, found.new, MODELS, Options()).changes


@pytest.mark.parametrize("file", share(QUICK, 8))
def test_cheaper_sets_are_not_right(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets that cost less than what was found, at random: some of its changes, and others."""
    searches: list[search.CheapestSearch] = []
    init = search.CheapestSearch.__init__

    def kept(self: search.CheapestSearch, *arguments: object) -> None:
        init(self, *arguments)  # type: ignore[arg-type]
        searches.extend([] if self.given else [self])

    monkeypatch.setattr(search.CheapestSearch, "__init__", kept)
    text = (SUITE / file).read_text()
    found = synchronize.synchronize(file, text, MODELS, Options(), strip=Strip.ORDER)
    (made,) = searches
    judge, random = judging(file, MODELS, Options()), generator(file)
    mine = [edit for edit in made.offered if edit.what in found.changes]
    room = made.total(mine)
    for _ in range(12):
        chosen: list[Edit] = random.sample(mine, random.randrange(len(mine)))
        for edit in random.sample(made.offered, len(made.offered)):
            if made.total((*chosen, edit)) < room - 0.01 and edit.group not in {other.group for other in chosen}:
                chosen.append(edit)
        now = judge(apply(made.trials.text, chosen))
        assert now is None or not made.trials.aim.reached(now), [edit.what for edit in chosen]


def test_forms_of_one_instruction_that_order_different_things_are_not_made_together() -> None:
    """acquire.cta orders neither more nor less than relaxed.cluster; the cheapest set has the latter."""
    found = memmodel.sync(SUITE / "async/mbarrier/G9.litmus", strip="order")
    assert (found.cost, found.given) == (33.5, 41.0)


def test_the_table_of_costs_decides() -> None:
    """A wait that acquires is dear here, so a fence for shared memory does it; where fences are dear it is the wait."""
    costs = Costs(scopes={"cta": 100.0, "cluster": 30.0})
    found = memmodel.sync(SUITE / "async/mbarrier/G9.litmus", strip="order", costs=costs)
    assert found.proved
    assert not any("sync_restrict" in change for change in found.changes)


def test_without_time_it_is_a_bound() -> None:
    found = memmodel.sync(SUITE / "async/mbarrier/G9.litmus", strip="order", seconds=1e-9)
    assert (found.proved, found.decided, found.new) == (False, False, None)
    assert found.reason == "the time for the search ran out"


@pytest.mark.parametrize(
    ("file", "strip"),
    [("async/proxy/A1.litmus", "order"), ("async/patterns/threads-to-mma.cluster.litmus", "waits")],
)
def test_where_explanations_lead_nowhere_all_changes_are_made_and_taken_back(
    file: str, strip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The set that the search begins with is right, and none of it can go. A fence is put behind a wait that is itself
    put in, where nothing stood before it."""
    whole = search.CheapestSearch.search
    begun: list[tuple[search.CheapestSearch, frozenset[Edit]]] = []

    def reached(
        self: search.CheapestSearch, known: Changes | None = None, below: float | None = None
    ) -> search.Reached:
        if self.given:  # the waits beside all order
            return whole(self)
        begun.append((self, frozenset(known or ())))
        return search.Reached(known, 0.0, "stopped")

    monkeypatch.setattr(synchronize._Synchronizing, "_known", staticmethod(lambda *_: None))
    monkeypatch.setattr(search.CheapestSearch, "search", reached)
    found = memmodel.sync(SUITE / file, strip=strip)
    ((made, kept),) = begun
    assert found.new is not None and found.judged == "enumerate and z3" and not found.proved
    assert not any(made.trials.is_right(kept - {edit}) for edit in kept)


def test_the_waits_of_one_execution_are_the_set_that_the_search_begins_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """One wait alone changes little here. The commits that are offered as well would be too many arrivals."""
    chosen: list[list[str]] = []

    def waits(execution: Execution, offered: dict[tuple[object, ...], Edit]) -> HandOvers:
        handed = phase_waits(execution, offered)
        chosen.append([edit.what.partition(" before ")[0] for edit in handed.waits])
        return handed

    monkeypatch.setattr(synchronize, "phase_waits", waits)
    monkeypatch.setattr(synchronize._Synchronizing, "_known", staticmethod(lambda *_: None))
    monkeypatch.setattr(synchronize._Synchronizing, "_waits_first", lambda *_: None)
    monkeypatch.setattr(
        search.CheapestSearch, "search", lambda _, known=None, below=None: search.Reached(known, 0.0, "stopped")
    )
    found = memmodel.sync(SUITE / "async/pipelines/accumulator-reuse.litmus", strip="waits")
    after = "with tcgen05.fence::after_thread_sync"
    assert sorted(chosen[0]) == [
        f"EPI, line 33: a wait for parity 0 of full {after}",
        f"EPI, line 41: a wait for parity 1 of full {after}",
        f"MMA, line 24: a wait for parity 0 of free {after}",
    ]
    assert found.new is not None and found.judged == "enumerate and z3"
    assert found.cost <= found.given


def handed_over(file: str) -> tuple[LoweredTest, list[Edit], HandOvers]:
    """A test without its waits, the order that may be added, and what one execution of it says of waits."""
    bare = api.lowered(Source(file, stripped(api.lowered(SUITE / file), Strip.WAITS, DEFAULT).text))
    wanted = replace(bare.test, quantifier=Quantifier.EXISTS, condition=Not(bare.test.condition))
    answer = api.judge(replace(bare, test=wanted), next(orderly(MODELS[0])), Options(), findings=False)
    assert answer.witness is not None
    execution = execution_of(answer.witness)
    assert execution is not None
    order, waits = synchronize._strongest(single_strengthenings(bare, exact=True))
    return bare, [*order], phase_waits(execution, waits)


def test_the_waits_of_a_ring_are_read_off_an_execution_of_which_the_rounds_do_not_mix() -> None:
    """Phases count signals of two threads, and a thread waits before it arrives for the next round."""
    _, _, handed = handed_over("async/pipelines/multicast.litmus")
    waits = sorted(re.sub(r"a wait\S* for | with \S+|\.\S*", "", edit.what) for edit in handed.waits)
    assert waits == [
        "MMA0, line 35: parity 0 of full before tcgen05",
        "MMA0, line 41: parity 1 of full before tcgen05",
        "MMA1, line 68: parity 0 of full before tcgen05",
        "MMA1, line 74: parity 1 of full before tcgen05",
        "TMA0, line 21: parity 0 of empty before mbarrier",
        "TMA1, line 54: parity 0 of empty before mbarrier",
    ]
    assert not handed.untold


def test_threads_meet_where_no_phase_tells_of_an_access() -> None:
    bare, order, handed = handed_over("async/pipelines/epilogue.litmus")
    (meeting,) = barriers_between(bare, handed.untold)
    assert meeting.what == (
        "EPI0, line 34: bar.sync 0, 64; before cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group; "
        "EPI1, line 46: bar.sync 0, 64; after st.shared.u32"
    )
    now = judging("epilogue", MODELS, Options())(apply(bare.test.source.text, [*order, *handed.waits, meeting]))
    assert now is not None and now.complete and synchronize._right(now)


def test_threads_meet_on_both_sides_of_a_flag() -> None:
    bare, _, handed = handed_over("async/pipelines/split-k-two-warps.litmus")
    assert {meeting.what for meeting in barriers_between(bare, handed.untold)} >= {
        "C0, line 24: bar.sync 0; after bra; C1, line 31: bar.sync 0; before ld.relaxed.cta.global.u32",
        "W0, line 12: bar.sync 1; before atom.relaxed.cta.global.add.u32; "
        "W1, line 16: bar.sync 1; after st.relaxed.cta.global.u32",
    }


def test_a_right_test_needs_nothing() -> None:
    found = memmodel.sync(SUITE / "async/mbarrier/G9.litmus")
    assert found.proved
    assert (found.changes, found.wrong, found.diff()) == ((), (), "")


def test_a_wait_that_only_explanations_lead_to() -> None:
    """The first executions do not show what there is to wait for."""
    found = memmodel.sync(SUITE / "isa/MP.litmus")
    assert found.proved
    assert found.wrong == ("data-race",)
    assert len(found.changes) == 1 and "repeat ld.global.relaxed.sys.u32" in found.changes[0]


WRITER = Agent("W", (DataAccess("fill", "write", "tile"),))
BUFFER = SharedBuffer("tile", 16)
COPIER = Agent("C", (DataAccess("flush", "copy-out", "tile", bytes=16),))


def test_hand_overs_as_data() -> None:
    """A store is handed to a bulk copy of another thread: what is cheapest is a barrier or an object, and a fence."""
    found = memmodel.sync(HandOverPlan("tile", (BUFFER,), (WRITER, COPIER), (WantedHandOver("fill", "flush"),)))
    assert found.proved
    assert found.signals == ("fill to flush: mbarrier",)
    assert found.new is not None
    assert "fence.proxy.async.shared::cta;" in found.new
    assert [line for line in found.new.splitlines() if line.endswith(":")] == ["WAIT0:"]
    assert not memmodel.check(found.new).answer.flags
    dear = Costs(semantics={"release": 9.0, "acquire": 9.0})
    barrier = memmodel.sync(
        HandOverPlan("tile", (BUFFER,), (WRITER, COPIER), (WantedHandOver("fill", "flush"),)), costs=dear
    )
    assert barrier.signals == ("fill to flush: bar.sync",)


@pytest.mark.parametrize(
    ("hand_overs", "message"),
    [
        ((), "touch the same bytes"),
        ((WantedHandOver("fill", "flash"),), "names no access"),
        ((WantedHandOver("fill", "flush"), WantedHandOver("flush", "fill")), "circle"),
    ],
)
def test_hand_overs_that_cannot_be_meant(hand_overs: tuple[WantedHandOver, ...], message: str) -> None:
    with pytest.raises(memmodel.InputError, match=message):
        HandOverPlan("tile", (BUFFER,), (WRITER, COPIER), hand_overs)


def test_accesses_with_a_common_byte_of_which_one_writes_have_to_be_ordered() -> None:
    extents = [(at, size) for at in (0, 4, 8, 16) for size in (4, 8, 16) if at % size == 0]
    for first, second in product(extents, extents):
        for kinds, buffers in product((("read", "read"), ("read", "write"), ("write", "write")), ("bb", "bc")):
            agents = [
                Agent(name, (DataAccess(name.lower(), kind, buffer, *extent),))
                for name, kind, buffer, extent in zip("XY", kinds, buffers, (first, second), strict=True)
            ]
            touched = zip(buffers, (first, second), strict=True)
            one, other = ({(buffer, at + n) for n in range(size)} for buffer, (at, size) in touched)
            meet = bool(one & other) and "write" in kinds
            both = (SharedBuffer("b", 64), SharedBuffer("c", 64))
            HandOverPlan("t", both, tuple(agents), (WantedHandOver("x", "y"),))
            with pytest.raises(memmodel.InputError, match="touch the same bytes") if meet else nullcontext():
                HandOverPlan("t", both, tuple(agents), ())


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        ({"bytes": 1e9}, "tile: bytes is 1000000000.0"),
        ({"bytes": True}, "tile: bytes is True"),
        ({"bytes": 1 << 40}, "tile: bytes is"),
        ({"cta": -1}, "tile: cta is -1"),
    ],
)
def test_numbers_that_are_none(buffer: dict[str, object], message: str) -> None:
    agents = [{"name": "W", "accesses": [{"name": "fill", "kind": "write", "buffer": "tile"}]}]
    values = {"name": "tile", "buffers": [{"name": "tile", **buffer}], "agents": agents, "hand_overs": []}
    with pytest.raises(memmodel.InputError, match=message):
        HandOverPlan.of(values)


def test_a_name_that_the_test_has_already() -> None:
    plan = HandOverPlan(
        "tile",
        (SharedBuffer("sync0", 16),),
        (Agent("W", (DataAccess("fill", "write", "sync0"),)), Agent("C", (DataAccess("flush", "read", "sync0"),))),
        (WantedHandOver("fill", "flush"),),
    )
    with pytest.raises(memmodel.InputError, match="sync0"):
        memmodel.sync(plan)


def test_the_command(tmp_path: Path) -> None:
    file, costs = tmp_path / "tile.json", tmp_path / "costs.json"
    access = {"name": "fill", "kind": "write", "buffer": "tile"}
    other = {"name": "use", "kind": "read", "buffer": "tile"}
    agents = [{"name": "W", "accesses": [access]}, {"name": "R", "accesses": [other]}]
    wanted = [{"first": "fill", "then": "use"}]
    values = {"name": "tile", "buffers": [{"name": "tile"}], "agents": agents, "hand_overs": wanted}
    file.write_text(json.dumps(values))
    done = CliRunner().invoke(app, ["sync", str(file)])
    assert done.exit_code == 0, done.output
    assert "the cheapest: cost 16" in done.output
    costs.write_text('{"scopes": {"gpus": 3}}')
    done = CliRunner().invoke(app, ["sync", str(file), "--costs", str(costs)])
    assert done.exit_code == 2
    assert "gpus" in done.output


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (('"hand_overs"', '"handovers"'), "p.json: a pipeline has no 'hand_overs'"),
        (('"then": "use"', '"then": "usee"'), "p.json:5:43: error: a hand-over names no access: usee"),
        (('"bytes": 16', '"bytes": -16'), "p.json:2:23: error: tile: bytes is -16"),
        (('"name": "R"', '"name": "W"'), "p.json:4:22: error: two things are called W"),
        (('"first": "fill", "then": "use"', '"first": "use", "then": "use"'), "the hand-overs lead in a circle"),
    ],
)
def test_what_is_wrong_with_a_pipeline_has_its_place(change: tuple[str, str], place: str, tmp_path: Path) -> None:
    text = """{"name": "tile",
 "buffers": [{"name": "tile", "bytes": 16}],
 "agents": [{"name": "W", "accesses": [{"name": "fill", "kind": "write", "buffer": "tile"}]},
            {"name": "R", "accesses": [{"name": "use", "kind": "read", "buffer": "tile"}]}],
 "hand_overs": [{"first": "fill", "then": "use"}]}
"""
    (tmp_path / "p.json").write_text(text.replace(*change))
    result = CliRunner().invoke(app, ["sync", str(tmp_path / "p.json")])
    assert result.exit_code == 2 and place in result.output, result.output
