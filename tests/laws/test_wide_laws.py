"""Programs of many instructions: both engines give one answer, and a spelling that means the same, or more, behaves so.

What is spelled otherwise is one line. `SAME`: every final state stays. `FEWER`: the new line promises more, so that no
final state is new ("Release and Acquire Patterns": a fence in front of a relaxed write heads every pattern that a
release write heads; "Vector Data Types": the elements have no order).
"""

from __future__ import annotations

import re

import pytest
from helpers.agreement import BOUND, agree, lowered
from helpers.examples import examples, share
from helpers.strategies.kinds import KINDS, kinds
from helpers.strategies.programs import judged
from helpers.strategies.wide import THEMES, Program, fillings, programs
from hypothesis import assume, given
from hypothesis import strategies as st

from memmodel import engine
from memmodel.answer import Budget
from memmodel.cat import load_model
from memmodel.engine import Options

LITTLE = Options("z3", Budget(effort=8_000_000), bound=BOUND)
ADDRESS = re.compile(r":(da|db|gg|x|yy|t0|unused)$")
"""Registers that hold addresses or states, or that only one of two spellings has."""

SAME = (
    (r"ld\.volatile\.(.*)", r"ld.relaxed.sys.\1"),
    (r"fence\.sc\.gpu;", "membar.gl;"),
    (r"barrier\.cluster\.arrive;(.*)", r"barrier.cluster.arrive.release;\1"),
    (r"cp\.async\.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"),
    (r"(ld|st)\.(\S+?)\.(global|shared)\.u32 (.*)", r"\1.\2.u32 \4"),
    (r"cp\.async\.bulk\.shared::cta\.global(.*)", r"cp.async.bulk.shared::cluster.global\1"),
    (r"(ld|st)\.(\S+) (.*)\[(s|g)(\+\d)?\](.*)", r"mov.u64 %yy, \4; \1.\2 \3[%yy\5]\6"),
    (r"bar\.sync 0;", "barrier.sync.aligned 0;"),
    (r"mbarrier\.arrive\.b64 (.*)", r"mbarrier.arrive.release.cta.b64 \1"),
    (r"mbarrier\.test_wait\.b64 (.*)", r"mbarrier.try_wait.b64 \1"),
)
FEWER = (
    (r"st\.release\.(\w+)\.(.*)", r"fence.release.\1; st.relaxed.\1.\2"),
    (r"ld\.acquire\.(\w+)\.(.*)", r"ld.relaxed.\1.\2 fence.acquire.\1;"),
    (r"atom\.acq_rel\.(\w+)\.(.*)", r"fence.acq_rel.\1; atom.relaxed.\1.\2 fence.acq_rel.\1;"),
    (r"barrier\.cluster\.arrive;(.*)", r"fence.release.cluster; barrier.cluster.arrive.relaxed;\1"),
    (r"barrier\.cluster\.arrive\.relaxed;(.*)", r"barrier.cluster.arrive;\1"),
    (r"(W\d: mbarrier\.try_wait\.parity)\.acquire\.cluster(.*)", r"\1.relaxed.cluster\2 fence.acquire.cluster;"),
    (r"(W\d: mbarrier\.try_wait\.parity)\.relaxed\.cluster(.*)", r"\1.acquire.cluster\2"),
    (r"(mbarrier\.arrive)\.release\.cluster(.*) _(.*)", r"fence.release.cluster; \1.relaxed.cluster\2 _\3"),
    (r"red\.(\w+)\.gpu\.global\.add\.u32 \[f\], 1;(.*)", r"atom.\1.gpu.global.add.u32 %unused, [f], 1;\2"),
    (r"ld\.(weak|acquire\.gpu)\.v2\.u32 \{(\S+), (\S+)\}, \[(\w)\];", r"ld.\1.u32 \3, [\4+4]; ld.\1.u32 \2, [\4];"),
    (r"st\.(weak|release\.gpu)\.v2\.u32 \[(\w)\], \{1, 2\};", r"st.\1.u32 [\2], 1; st.\1.u32 [\2+4], 2;"),
    (r"(cp\.async\.bulk\.commit_group; cp\.async\.bulk\.wait_group)\.read 0;", r"\1 0;"),
    (r"fence\.acq_rel\.gpu;", "fence.sc.gpu;"),
    (r"fence\.proxy\.async\.\S+;", "fence.proxy.async;"),
)


@pytest.mark.share(2)
@pytest.mark.parametrize("theme", share(THEMES, 2))
@examples(3)
@given(data=st.data())
def test_engines_agree(theme: str, data: st.DataObject) -> None:
    agree(data.draw(programs([theme])).text, load_model("ptx-9.4"))


@pytest.mark.share(2)
@pytest.mark.parametrize("theme", KINDS)
@examples(2)
@given(data=st.data())
def test_engines_agree_on_more_kinds(theme: str, data: st.DataObject) -> None:
    agree(data.draw(kinds([theme])).text, load_model("ptx-9.4"))


def states(program: Program) -> frozenset[frozenset[tuple[str, int]]]:
    """All final states."""
    found = engine.outcomes(lowered(program.text), load_model("ptx-9.4"), LITTLE)
    judged(found.complete)
    return frozenset(frozenset(pair for pair in one.values if not ADDRESS.search(pair[0])) for one in found.states)


@st.composite
def respelled(draw: st.DrawFn, table: tuple[tuple[str, str], ...]) -> tuple[Program, Program]:
    """A program, and the same with one line spelled as the table says."""
    program = draw(programs())
    found = [
        (thread, position, match.expand(new))
        for old, new in table
        for thread, position, line in program.lines()
        if (match := re.fullmatch(old, line)) is not None
    ]
    assume(found)
    return program, program.changed(*draw(st.sampled_from(found)))


@examples(6)
@given(pair=respelled(SAME))
def test_another_spelling_means_the_same(pair: tuple[Program, Program]) -> None:
    program, changed = pair
    assert states(changed) == states(program), changed.text


@examples(6)
@given(pair=respelled(FEWER))
def test_a_spelling_that_promises_more_adds_no_outcome(pair: tuple[Program, Program]) -> None:
    program, changed = pair
    assert states(changed) <= states(program), changed.text


@pytest.mark.parametrize("old", [old for old, _ in (*SAME, *FEWER)])
def test_a_line_of_some_theme_is_spelled_otherwise(old: str) -> None:
    assert any(re.fullmatch(old, line) for lines in THEMES.values() for one in lines for line in fillings(one))
