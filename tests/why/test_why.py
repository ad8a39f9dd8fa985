"""explain: the cycle that is printed is one, the axioms are minimal, and the reason that is named is the reason."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import pytest
from helpers.places import ROOT

from benchmarks.pipelines import ring
from memmodel import api, engine
from memmodel.answer import Observation
from memmodel.base.kinds import Kind
from memmodel.engine import Options
from memmodel.records.explain import ExplanationRecord
from memmodel.referee.relevance import condition_sources
from memmodel.refine.query import encode
from memmodel.repair.fix import fix
from memmodel.report.why_text import lines_of
from memmodel.solve import parts as solve_parts
from memmodel.source import Source
from memmodel.why.diagnose import fence_orders
from memmodel.why.explanation import explanation
from memmodel.why.forbidden import EachByItself, contradictions, minimal, only
from memmodel.why.records import Explanation, PathStep, Reason
from memmodel.why.story import execution_of
from memmodel.why.unfold import UNORDERED, Chain, Unfolding
from memmodel.why.values import Values

LITMUS = ROOT / "litmus"
MODEL = api.load("ptx-9.4")

FORBIDDEN = (
    "async/proxy/A1",
    "async/proxy/A6",
    "async/proxy/A13",
    "async/honest/H16",
    "generic/H4",
    "async/tcgen05/T4",
    "async/tcgen05/T3",
    "async/mbarrier/G15",
    "bytes/B10",
    "shapes/MP+rel.gpu+acq.gpu@two-ctas",
    "shapes/SB+sc.gpu@two-ctas",
    "shapes/RMW-chain+two@two-ctas",
    "control/LB+data+exch+data",
)

REASONS = {
    "async/proxy/A2": Reason.NO_PROXY_FENCE,
    "async/proxy/A4": Reason.PROXY_FENCE_SPACE,
    "async/proxy/A5": Reason.PROXY_FENCE_SIDE,
    "async/proxy/A7-no-wait": Reason.NOT_WAITED,
    "async/proxy/A10-relaxed": Reason.RELAXED,
    "async/proxy/A13-handed-over-read": Reason.NOT_WAITED,
    "async/proxy/A16": Reason.NOT_TRANSITIVE,
    "async/proxy/relaxed-copy-reads-flag-no-fence": Reason.RELAXED,
    "async/proxy/weak-copy-as-flag": Reason.WEAK,
    "async/patterns/cp.async-noinc-to-mma-early-fence": Reason.PROXY_FENCE_SIDE,
    "async/honest/H6-same-parity": Reason.PARITY,
    "async/honest/H8-count-one": Reason.COUNT,
    "async/mbarrier/red.async-half": Reason.BYTES,
    "async/mbarrier/relay-earlier-phase": Reason.EARLIER_PHASE,
    "control/bar+two-ctas": Reason.LOCATION,
    "async/honest/H7": Reason.PARITY,
    "async/honest/H11-other-map": Reason.PROXY_FENCE_SPACE,
    "async/honest/H12-no-alias": Reason.NO_ALIAS_FENCE,
    "async/honest/H13": Reason.RESTRICTED,
    "async/mbarrier/G4-fence-after-arrive": Reason.FENCE_SIDE,
    "async/mbarrier/G9-wait.cta": Reason.SCOPES,
    "async/mbarrier/G9-arrive.cta": Reason.SCOPES,
    "async/patterns/threads-to-cp.cluster-writer-fence": Reason.PROXY_FENCE_CTA,
    "async/pipelines/gemm-tcgen05-2x3-few-bytes": Reason.BYTES,
    "async/pipelines/gemm-wgmma-2x3-consumer-parity": Reason.PARITY,
    "async/pipelines/epilogue-no-barrier": Reason.NO_SYNCHRONIZATION,
    "shapes/MP+acq_rel.gpu+acq_rel.gpu@two-ctas": Reason.NOT_SEEN,
    "shapes/ISA2+one-fence-middle@two-ctas": Reason.NOT_SEEN,
    "async/pipelines/multicast-own-commit": Reason.NOT_WAITED,
    "async/pipelines/split-k-bulk-reader-no-fence": Reason.NO_PROXY_FENCE,
    "async/honest/H11-same-thread-no-fence": Reason.NO_PROXY_FENCE,
    "async/readings/D12": Reason.WGMMA_FENCE,
    "async/tcgen05/T3-no-wait": Reason.TCGEN05_WAIT,
    "async/tcgen05/T5-no-fence": Reason.TCGEN05_FENCE,
    "async/tcgen05/T10-between": Reason.TCGEN05_COMMIT,
    "async/tcgen05/T10-st": Reason.TCGEN05_WAIT,
    "async/readings/D3-remote-fence": Reason.PROXY_FENCE_CTA,
    "isa/MP+red": Reason.REDUCTION,
    "shapes/MP+rel.cta+acq.gpu@two-ctas": Reason.SCOPES,
    "shapes/MP+rlx.gpu+acq.gpu@two-ctas": Reason.RELAXED,
    "shapes/SB+acq_rel.gpu@two-ctas": Reason.NO_FENCE_SC,
    "control/warp+no-barrier": Reason.NO_SYNCHRONIZATION,
}


def told(name: str, ask: str | None = None) -> Explanation:
    return api.explain(LITMUS / f"{name}.litmus", ask=ask)


def from_reads(values: Values) -> list[int]:
    rf, co = values.execution.relation("rf"), values.execution.relation("co")
    return [
        next((co[write] for write in range(values.count) if rf[write] >> read & 1), 0) for read in range(values.count)
    ]


def holds(chain: Chain, values: Values) -> bool:
    """Is every link in the relation that it names, and does each begin where the one before it ends?"""
    for link in chain:
        if link.name == UNORDERED:
            if values.execution.relation("co")[link.second] >> link.first & 1:
                return False
            continue
        rows = from_reads(values) if link.name == "fr" else values.relation(link.name)
        if rows is None or not rows[link.first] >> link.second & 1 or not holds(link.parts, values):
            return False
    return all(a.second == b.first for a, b in pairwise(chain))


@pytest.mark.parametrize("name", FORBIDDEN)
def test_the_axioms_are_minimal_and_the_edges_of_each_cycle_are_there(name: str) -> None:
    steps = api.questions(api.lowered(LITMUS / f"{name}.litmus"))[0]
    answer = engine.answer(steps, MODEL, Options(), findings=False)
    assert answer.observation is Observation.NEVER
    names = minimal(EachByItself(steps, Options()), MODEL, answer.axioms)
    for one in names:
        rest = only(MODEL, [other for other in names if other != one])
        assert engine.answer(steps, rest, Options(), findings=False).witness is not None
    assert engine.answer(steps, only(MODEL, list(names)), Options(), findings=False).witness is None
    found = contradictions(steps, MODEL, Options(), answer.axioms, answer)
    assert tuple(one.axiom for one in found) == names
    for one in found:
        execution = execution_of(one.witness)
        assert execution is not None and one.witness.evaluated is not None and one.rests_on
        values = Values(MODEL, execution, one.witness.evaluated.ranks)
        check = next(check for check in MODEL.axioms if check.name == one.axiom)
        assert not values.holds(check)
        chain = Unfolding(values).broken(check, condition_sources(execution, steps.test.condition))
        assert chain and holds(chain, values) and chain[0].first in (chain[-1].second, chain[0].first)
        assert [(step.first.label, step.second.label) for step in one.steps] == [
            (one.witness.events[link.first].label, one.witness.events[link.second].label) for link in chain
        ]


def test_the_reasons_of_a_never_come_from_one_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five answers of the solver took five times as long as the `never` of a ring."""
    encoded = []
    monkeypatch.setattr(solve_parts, "encode", lambda *given: encoded.append(given) or encode(*given))
    steps = api.questions(api.lowered(ring(2, 4)))[0]
    options = Options(engine="z3")
    answer = engine.answer(steps, MODEL, options, findings=False)
    shown = contradictions(steps, MODEL, options, answer.axioms, answer)
    assert len(encoded) == 1 and tuple(contradiction.axiom for contradiction in shown) == answer.axioms
    solver, each = solve_parts.AxiomParts(steps, MODEL, budget=options.budget, bound=3), EachByItself(steps, options)
    for names in (*([name] for name in answer.axioms), list(answer.axioms), []):
        part = only(MODEL, names)
        assert solver.forbids(part) is each.forbids(part) is (len(names) == len(answer.axioms))
        assert (solver.witness(part) is None) is (each.witness(part) is None)
    for contradiction in shown:
        execution = execution_of(contradiction.witness)
        assert execution is not None and contradiction.witness.evaluated is not None
        values = Values(MODEL, execution, contradiction.witness.evaluated.ranks)
        broken = {check.name for check in MODEL.axioms if not values.holds(check)}
        assert contradiction.axiom in broken and not broken & set(answer.axioms) - {contradiction.axiom}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", REASONS)
def test_the_reason_that_is_named_first(name: str) -> None:
    found = told(name)
    assert found.stories, name
    assert REASONS[name] in {one.reason for one in found.stories[0].obstacles}
    story = found.stories[0]
    assert story.first is not None and story.steps
    on_the_way = {at for step in story.steps for at in (step.first, step.second)}
    beside = any(not on_the_way.issuperset(one.events) for one in story.obstacles)  # such as a write not over by then
    assert (
        any(not step.holds for step in story.steps)
        or beside
        or REASONS[name]
        in (
            Reason.PROXY_FENCE_SPACE,
            Reason.NOT_TRANSITIVE,
            Reason.RESTRICTED,
        )
    )


REST = {
    "control/spin+never-set": Reason.NEVER_WRITTEN,
    "control/spin+crossed": Reason.DEADLOCK,
    "bytes/B3-bytes": Reason.OTHER_THREAD_WAITS,
    "async/undefined/peer-may-have-exited": Reason.GONE,
    "async/undefined/barrier-two-counts": Reason.RULE,
    "async/barriers/arrive-then-own-sync": Reason.NOTHING_MISSING,
    "async/instructions/grid-wait-read-only": Reason.READ_ONLY,
    "async/tcgen05/alloc-no-columns-left": Reason.NO_COLUMNS,
}
"""Where no order between two accesses is missing."""


def test_each_reason_is_given_for_some_shipped_test() -> None:
    assert {*REASONS.values(), *REST.values()} == set(Reason)


@pytest.mark.parametrize("name", REST)
def test_the_reason_where_no_order_is_missing(name: str) -> None:
    found = told(name)
    waits = found.stuck.waiting if found.stuck is not None else ()
    assert REST[name] in {
        *(one.reason for story in found.stories for one in story.obstacles),
        *(one.reason for one in waits),
    }


def test_a_hand_over_that_comes_later_is_not_to_be_moved() -> None:
    """The thread waits for the arrival only after it has read: to store before the arrival would not help."""
    text = (LITMUS / "async/undefined/state-handed-over.litmus").read_text()
    head, _, tail = text.partition("thread P1")
    race = api.explain(f"{head}thread P1{tail.replace('bar.sync 0;', '')}").stories[1]
    assert race.about == "data-race" and "stands before" not in race.obstacles[0].text


def test_what_leads_to_a_copy_does_not_wait_for_its_end() -> None:
    """The write is handed over to the thread that starts the copy: what is missing is an acquire."""
    text = (LITMUS / "async/patterns/threads-to-tma-load.gpu-writer-fence.litmus").read_text()
    stories = api.explain(text.replace("ld.acquire.gpu", "ld.relaxed.gpu")).stories
    reasons = {obstacle.reason for story in stories for obstacle in story.obstacles}
    assert len(stories) == 3 and reasons == {Reason.RELAXED, Reason.PROXY_FENCE_CTA}


SINGLE = ("async/proxy/A2", "async/proxy/A4", "async/tcgen05/T3-no-wait", "async/mbarrier/G9-wait.cta", "bytes/B11")


@pytest.mark.share(2)
@pytest.mark.parametrize("name", SINGLE[:4])
def test_repairing_the_reason_alone_forbids_the_outcome(name: str) -> None:
    path = LITMUS / f"{name}.litmus"
    story = told(name).stories[0]
    assert len(story.obstacles) == 1
    found = fix(str(path), path.read_text(), (MODEL,), Options())
    words = {word for one in found.repairs for edit in one.changes for word in edit.what.split()}
    repair = story.obstacles[0].repair
    wanted = {"the fence for s, or for every state space": "fence.proxy.async"}.get(repair, repair.split()[0])
    assert any(wanted.lstrip(".") in word for word in words), (repair, words)


MISLEADING = {
    "async/proxy/A4": (
        "covers global memory only, and s is in shared memory",
        "the fence for s",
    ),
    "async/proxy/A5": ("is not between the two accesses", "fence.proxy.async before e"),
    "async/proxy/A1-wrong-proxy": ("fence.proxy.alias (P0, line 11) is for another proxy", "fence.proxy.async before"),
    "async/proxy/A8-fence-before-wait": ("(P1, line 18) stands too early", "wgmma.fence before"),
    "async/proxy/A11-one-pending": (
        "(P0, line 11) leaves the last group pending, which is this one",
        "a wait for its end before",
    ),
    "async/honest/H11-other-map": ("covers the bytes that its operand names, and not map", "the fence for map"),
    "async/mbarrier/G9-wait.cta": ("the .cta of c: mbarrier.try_wait.parity.acquire.cta", ".cluster at c"),
    "async/tcgen05/T6-before-late": ("(P0, line 15) stands after it", "tcgen05.fence::before_thread_sync before"),
    "async/tcgen05/T4-commit-first": ("(P0, line 15) stands before it", "tcgen05.commit after it"),
}
"""What stands there and looks right: the sentence says why it is not, and the repair what would do."""


@pytest.mark.parametrize("name", MISLEADING)
def test_what_looks_right_is_said_to_be_in_the_wrong_place(name: str) -> None:
    text, repair = MISLEADING[name]
    (first, *_) = told(name).stories[0].obstacles
    assert text in first.text and repair in first.repair


APART = {
    "other": (".shared .align 8 .b64 a = mbarrier(1);\n.shared .align 8 .b64 b = mbarrier(1);", "mbarrier object", """
thread P2 @ cta 0 { mbarrier.arrive.shared::cta.b64 _, [b]; }""",
        "mbarrier.arrive.shared::cta.b64 _, [a];",
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p, [b], 0; @!%p bra W;"),
    "part": (".shared .align 4 .u32 f;", "location: they overlap in part only", "",
        "st.release.cta.shared.u32 [f], 65537;", "ld.acquire.cta.shared.u16 %r0, [f];"),
    "barrier": ("", "barrier", "\nthread P2 @ cta 0 { bar.arrive 2, 64; }", "bar.arrive 1, 64;", "bar.sync 2, 64;"),
}  # fmt: skip
"""Variables, what is said, another thread, a release, an acquire."""


@pytest.mark.parametrize("name", APART)
def test_a_release_and_an_acquire_that_do_not_meet(name: str) -> None:
    variables, what, more, release, acquire = APART[name]
    text = f"""PTX apart
.shared .u32 x;
{variables}{more}
thread P0 @ cta 0 {{ st.shared.u32 [x], 1; {release} }}
thread P1 @ cta 0 {{ {acquire} ld.shared.u32 %r1, [x]; }}
exists (P1:r1 == 0)
"""
    story = next(one for one in api.explain(text).stories if one.about in ("outcome", "data-race"))
    (obstacle,) = story.obstacles
    assert obstacle.reason is Reason.LOCATION and obstacle.text.endswith(f"are not about one {what}")


SAID = {
    "isa/MP+atom": ("forbidden by Causality; beside it, in; data race: between; skips the access unless it has",),
    "shapes/SB+sc.gpu@two-ctas": (
        "forbidden by Causality; beside it, in; data race: between; a strong write after b (P0, line 7), a strong read "
        "before e (P1, line 7) that observes it; strong accesses would not race: .relaxed.gpu at a (P0, line 6) and f",
        "a release after",
    ),
    "shapes/Z6.0+sc.gpu@two-ctas": ("beside it, in; would do: an acquire that observes c (P0, line 8)", "not one loc"),
    "shapes/CoRR+rlx.gpu+weak@two-ctas": ("beside it, in; strong accesses would not race: .relaxed.gpu at c (P1",),
    "shapes/CoRR+weak+rlx.gpu@two-ctas": (
        "can be seen: nothing orders; b: R.weak x = 1 (P1, line 6) is weak",
        "acquire is",
    ),
    "shapes/CoWR+weak@two-ctas": (
        "a: W.weak x = 1 (P0, line 6) is weak; c: W.weak x = 2 (P1, line 6) is weak; SC-per",
    ),
    "shapes/2+2W+weak@same-cta": (
        "fence.sc before b (P0, line 7); fence.sc before d (P1, line 7); missing: fence.sc bef",
    ),
    "shapes/RMW-chain+store@two-ctas": ("an acquire that observes b (P0, line 7); data race; has not seen b:",),
    "shapes/RMW-chain+cta-in-other-cta@two-ctas": (".gpu at c (P1, line 6); Causality forbids; for the same reason",),
    "shapes/WRC+rlx+rlx+acq@two-ctas": (
        "data race: between; a: W.relaxed.gpu x = 1 (P0, line 6); for the same reason",
    ),
    "control/bar+after-arrive": ("line 9) stands before b (P0, line 10); a (P0, line 9) after b; for the same reason",),
    "async/instructions/ldmatrix-race": ("beside it, in; no synchronization; a release after", "strong accesses"),
    "shapes/RWC+sc.gpu+weak@two-ctas": (
        "is weak; would do together with the others: a strong; is weak; would do together with the others: a strong",
    ),
    "async/fabric/put-source-no-wait": ("before i (P0, line 14)", "over at h"),
    "async/fabric/put-source-wait-before-submit": ("waits for submitted operations only, and stands before h",),
    "bytes/B8-undefined": ("undefined address: c: st.global.u32",),
    "generic/G18-no-last-barrier": (
        "nothing orders i: fence.acquire.gpu (C0, line 23) before j; would do: a barrier between the two, or a "
        "release; d is read by h; i: fence.acquire.gpu (C0, line 23) + missing",
    ),
    "isa/SB+acq_rel": ("b: fence.acq_rel.sys (P0, line 11) is no fence.sc; .sc at b; come first in Fence-SC",),
}
"""Parts of an explanation in their order, and what it does not say: sentences that misled."""


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SAID)
def test_an_explanation_does_not_mislead(name: str) -> None:
    wanted, *unwanted = SAID[name]
    text = " ".join(" ".join(lines_of(told(name))).split())
    place = 0
    for part in wanted.split("; "):
        place = text.find(part, place)
        assert place >= 0, part
    assert not any(part in text for part in unwanted)


DROPPED = {
    "async/fabric/put-mask": (18, "without fence.proxy.generic::fabric.alias (release half); Causality forbids"),
    "async/pipelines/pair": (23, "EPI1 waits for ever; a thread that waits for ever comes first; LEAD, line 29"),
    "async/honest/H16": (32, "a thread that waits for ever comes first; with an arrive on bar@cta1: nobody arrives"),
}
"""Tests without a line, and what the explanation says then."""


@pytest.mark.parametrize("name", DROPPED)
def test_the_line_that_is_not_there_is_what_is_missing(name: str, tmp_path: Path) -> None:
    line, wanted = DROPPED[name]
    lines = (LITMUS / f"{name}.litmus").read_text().split("\n")
    lines[line - 1] = ""
    (tmp_path / "t.litmus").write_text("\n".join(lines))
    text = " ".join(" ".join(lines_of(api.explain(tmp_path / "t.litmus"))).split())
    assert all(part in text for part in wanted.split("; ")), text


def test_an_order_of_writes_that_need_not_be_is_no_reason() -> None:
    """The execution may have the write of the cas before the write that it reads. Scopes forbid that, and not what is
    asked."""
    text = (LITMUS / "shapes/MP+atom.rel.gpu+atom.acq.gpu@two-gpus.litmus").read_text()
    story = api.explain(text.replace("atom.acquire", "atom.relaxed")).stories[0]
    assert {obstacle.reason for obstacle in story.obstacles} == {Reason.SCOPES, Reason.RELAXED}
    assert story.axiom == "Causality"


@pytest.mark.parametrize(("misplaced", "where"), [("release", "stands before b"), ("acquire", "stands after c")])
def test_synchronization_on_the_wrong_side_of_an_access_is_named(misplaced: str, where: str) -> None:
    writes, reads = ["st.weak x, 1", "st.release.gpu y, 1"], ["ld.acquire.gpu r0, y", "ld.weak r1, x"]
    writes, reads = (writes[::-1], reads) if misplaced == "release" else (writes, reads[::-1])
    rows = "\n".join(f" {write} | {read} ;" for write, read in zip(writes, reads, strict=True))
    text = f"""PTX side
{{ x = 0; y = 0; }}
 P0 @ cta 0, gpu 0 | P1 @ cta 1, gpu 0 ;
{rows}
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    (obstacle,) = api.explain(text).stories[0].obstacles
    assert obstacle.reason is Reason.NO_SYNCHRONIZATION and where in obstacle.text


BEYOND = {
    "release": (["fence.release.gpu", "st.weak x, 1", "st.relaxed.gpu y, 1"], "ld.acquire.gpu r0, y", "ld.weak r1, x"),
    "acquire": (["ld.relaxed.gpu r0, y", "ld.weak r1, x", "fence.acquire.gpu"], "st.weak x, 1", "st.release.gpu y, 1"),
}
"""A thread whose fence stands on the right side of the flag, and beyond the data; the other thread."""


@pytest.mark.parametrize(
    ("beyond", "where", "between"),
    [
        ("release", "stands before b", "b (P0, line 5) and c (P0, line 6)"),
        ("acquire", "stands after d", "c (P1, line 4) and d (P1, line 5)"),
    ],
)
def test_a_fence_beyond_the_access_that_it_should_cover_is_named(beyond: str, where: str, between: str) -> None:
    wrong, *right = BEYOND[beyond]
    threads = [wrong, [*right, ""]][:: 1 if beyond == "release" else -1]
    rows = "\n".join(f" {write} | {read} ;" for write, read in zip(*threads, strict=True))
    text = f"""PTX beyond
{{ x = 0; y = 0; }}
 P0 @ cta 0, gpu 0 | P1 @ cta 1, gpu 0 ;
{rows}
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    (obstacle,) = api.explain(text).stories[0].obstacles
    assert obstacle.reason is Reason.FENCE_SIDE and where in obstacle.text
    assert obstacle.repair == f"the fence between {between}"
    narrow = text.replace(f"fence.{beyond}.gpu", f"fence.{beyond}.cta")  # to move it would not be enough
    assert api.explain(narrow).stories[0].obstacles[0].reason is not Reason.FENCE_SIDE


TESTED_ONCE = """PTX once
.shared .u32 x = 0;
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {
    st.shared.u32 [x], 5;
    mbarrier.arrive.shared::cta.b64 _, [bar];
}
thread P1 @ cta 0, gpu 0 {
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    ld.shared.u32 %r, [x];
}
exists (P1:r == 0)
"""


def test_a_phase_that_ends_without_the_arrival_that_expects_bytes_has_the_wrong_count() -> None:
    """Another thread's arrival is enough for a count of one, so that no expectation is too small."""
    text = """PTX two-arrivals
.shared .align 16 .u32 s[4] = {0};
.global .align 16 .u32 g[4] = {1, 1, 1, 1};
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [bar];
}
thread P1 @ cta 0, gpu 0 {
    mbarrier.arrive.shared::cta.b64 _, [bar];
}
thread P2 @ cta 0, gpu 0 {
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra W;
    ld.shared.u32 %r, [s];
}
exists (P2:r == 0)
"""
    (obstacle,) = api.explain(text).stories[0].obstacles
    assert obstacle.reason is Reason.COUNT


@pytest.mark.parametrize(
    ("access", "only_then"),
    [
        ("@%p bra E;\n    ld.shared.u32 %r, [x];\nE:", True),
        ("@!%p ld.shared.u32 %r, [x];", True),
        ("@%p st.shared.u32 [y], 1;\n    ld.shared.u32 %r, [x];", False),
        ("setp.eq.u32 %p, 1, 1;\n    @!%p bra E;\n    ld.shared.u32 %r, [x];\nE:", False),
    ],
)
def test_a_guard_that_is_the_wrong_way_round_is_named(access: str, only_then: bool) -> None:
    """The access is made only if the test returned false."""
    text = TESTED_ONCE.replace("ld.shared.u32 %r, [x];", access).replace(
        ".shared .u32 x", ".shared .u32 y;\n.shared .u32 x"
    )
    obstacles = [it for story in api.explain(text, ask="exists race").stories for it in story.obstacles]
    unseen = [it for it in obstacles if it.reason is Reason.NOT_SEEN]
    assert unseen and all(("only then" in it.text and "the other guard" in it.repair) is only_then for it in unseen)


def test_an_outcome_that_does_not_ask_what_was_seen_has_the_reason_of_its_race() -> None:
    (obstacle,) = api.explain(TESTED_ONCE).stories[0].obstacles
    assert obstacle.reason is Reason.NOT_SEEN
    asked = api.explain(TESTED_ONCE.replace("(P1:r == 0)", "(P1:p == 0 /\\ P1:r == 0)"))
    assert Reason.NOT_SEEN not in {obstacle.reason for obstacle in asked.stories[0].obstacles}


def test_who_tests_once_whether_a_copy_is_over_has_not_seen_it() -> None:
    """There is a test that may be repeated; another wait is not what is missing."""
    text = (LITMUS / "async/proxy/A6.litmus").read_text()
    once = text.replace("WAIT:\n", "").replace("try_wait", "test_wait").replace("    @!%p bra WAIT;\n", "")
    (obstacle,) = api.explain(once).stories[0].obstacles
    assert obstacle.reason is Reason.NOT_SEEN


STORE_BUFFERING = """PTX sb
.shared .u32 x = 0;
.shared .u32 y = 0;
thread P0 @ cta 0, gpu 0 {
    st.shared.u32 [x], 3;
    ld.shared.u32 %r, [y];
}
thread P1 @ cta 0, gpu 0 {
    st.shared.u32 [y], 4;
    ld.shared.u32 %r, [x];
}
"""


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("exists (P0:r == 0 /\\ P1:r == 0)", Reason.NO_FENCE_SC),
        ("exists (P0:r == 0)", Reason.NO_SYNCHRONIZATION),
        ("exists (P0:r == 0 \\/ P1:r == 0)", Reason.NO_SYNCHRONIZATION),
        ("forall (P0:r == 4 /\\ P1:r == 3)", Reason.NO_SYNCHRONIZATION),
        ("exists (~(P0:r == 4 \\/ P1:r == 3))", Reason.NO_FENCE_SC),
    ],
)
def test_a_reason_does_not_rest_on_a_value_that_the_outcome_does_not_need(question: str, reason: Reason) -> None:
    """In the execution that is shown both threads may read 0. fence.sc would forbid that, and not the outcome."""
    assert api.explain(STORE_BUFFERING + question).stories[0].obstacles[0].reason is reason


RING = """PTX ring
.shared .u32 x = 0;
.shared .align 8 .b64 full = mbarrier(1);
.shared .align 8 .b64 empty = mbarrier(1);
thread P0 @ cta 0, gpu 0 {
    st.shared.u32 [x], 1;
    mbarrier.arrive.shared::cta.b64 _, [full];
    st.shared.u32 [x], 2;
    mbarrier.arrive.shared::cta.b64 _, [full];
}
thread P1 @ cta 0, gpu 0 {
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra W;
    ld.shared.u32 %r, [x];
    mbarrier.arrive.shared::cta.b64 _, [empty];
}
exists (P1:r == 2)
"""

BARRIERS = """PTX barriers
.shared .u32 x = 0;
thread P0 @ cta 0, gpu 0 {{ st.shared.u32 [x], 1; {first} }}
thread P1 @ cta 0, gpu 0 {{ {second} }}
thread P2 @ cta 0, gpu 0 {{ {third} ld.shared.u32 %r, [x]; }}
exists (P2:r == {stale})
"""

GRIDS = """PTX grids
.global .u32 x = 0;
thread P0 @ cta 0, gpu 0 {{ griddepcontrol.launch_dependents; st.global.u32 [x], 5; }}
thread P1 @ cta 0, grid 1, gpu 0 {{ ld.global.u32 %r, [x]; {wait} }}
exists (P1:r == 0)
"""

EXITS = """PTX exits
.shared .u32 x @ cta 1 = 3;
thread P0 @ cta 0, cluster 0, gpu 0 {
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared::cluster.u32 %r, [x@cta1];
}
thread P1 @ cta 1, cluster 0, gpu 0 {
    barrier.cluster.arrive;
    barrier.cluster.wait;
    exit;
}
exists (P0:r == 0)
"""

WOULD_DO = {
    "an arrival that nobody waits for": (RING, "a wait for the phase of g", "stands before"),
    "a thread that passes on too early": (
        BARRIERS.format(first="bar.arrive 1, 64;", second="bar.arrive 2, 64; bar.sync 1, 64;", third="bar.sync 2, 64;",
            stale=0),
        "c (P1, line 4) after e (P1, line 4)",
        "a barrier between",
    ),
    "a barrier that is needed where it stands": (
        BARRIERS.format(first="bar.sync 0; st.shared.u32 [x], 2;", second="bar.sync 0;", third="bar.sync 0;", stale=2),
        "a barrier between the two",
        "stands before",
    ),
    "one of two barriers stands in the wrong place": (
        BARRIERS.format(first="bar.sync 0; st.shared.u32 [x], 2; bar.sync 1;", second="bar.sync 0; bar.sync 1;",
            third="bar.sync 0;", stale=2).replace("[x]; }\nexists", "[x]; bar.sync 1; }\nexists"),
        "before",
        "a barrier between",
    ),
    "an arrival that would come after its own wait": (EXITS, "a release after the first", "stands before"),
    "a dependent grid": (GRIDS.format(wait=""), "griddepcontrol.wait before e", "a release after"),
    "a wait for the grid before that comes late": (
        GRIDS.format(wait="griddepcontrol.wait;"),
        "g (P1, line 4) before f (P1, line 4)",
        "a release after",
    ),
}  # fmt: skip
"""A test, what would do, and words that would mislead."""


STANDS_RIGHT = ("async/mbarrier/init-unordered", "bytes/B6", "async/tcgen05/alloc-handed-over-early-free")
"""A wait that is itself the access, a part of the same load, a barrier that hands over something else."""


@pytest.mark.parametrize("name", STANDS_RIGHT)
def test_what_stands_where_it_has_to_is_not_to_be_moved(name: str) -> None:
    obstacles = [obstacle for story in told(name).stories for obstacle in story.obstacles]
    assert obstacles and not any("stands" in it.text for it in obstacles), obstacles


@pytest.mark.parametrize("name", WOULD_DO)
def test_what_would_do_fits_what_is_there(name: str) -> None:
    text, wanted, misleading = WOULD_DO[name]
    obstacles = [obstacle for story in api.explain(text).stories for obstacle in story.obstacles]
    unsynchronized = [it for it in obstacles if it.reason in (Reason.NO_SYNCHRONIZATION, Reason.GONE)]
    assert unsynchronized and all(wanted in it.repair for it in unsynchronized), unsynchronized
    assert not any(misleading in f"{it.text}; {it.repair}" for it in unsynchronized)


EARLY_ARRIVAL = """PTX early-arrival
.shared .align 16 .u32 s[4] = {1, 1, 1, 1};
.global .align 16 .u32 g[4] = {2, 2, 2, 2};
.shared .align 8 .b64 empty @ cta 0 = mbarrier(1);
.shared .align 8 .b64 full = mbarrier(1);
thread P0 @ cta 0, cluster 0, gpu 0 {
W:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [empty], 0;
    @!%p bra W;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [g], 16, [full], 3;
}
thread P1 @ cta 1, cluster 0, gpu 0 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [empty@cta0];
    ld.shared::cta.u32 %r, [s];
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra W;
}
exists (P1:r == 2)
"""


OPERAND_OVERWRITTEN = """PTX operand-overwritten
.tensor .b32 t = 0;
.shared .align 16 .u32 sa[4] = {1};
.shared .align 16 .u32 sb[4] = {1};
.shared .align 8 .b64 empty = mbarrier(1);
thread P0 @ cta 0, gpu 0 {
    mov.u64 %da, sa;
    mov.u64 %db, sb;
    mov.u32 %i, 0x8100010;
    mov.pred %z, 0;
    tcgen05.mma.cta_group::1.kind::f16 [t], %da, %db, %i, %z;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [empty];
    bar.sync 0;
}
thread P1 @ cta 0, gpu 0 {
    bar.sync 0;
    st.shared.u32 [sa], 2;
}
exists (t == 2)
"""


def test_a_fence_is_asked_for_behind_the_wait_for_a_completion() -> None:
    """The signal of a commit is in no program order: what stands behind the commit need not come after the product."""
    obstacles = [it for story in api.explain(OPERAND_OVERWRITTEN).stories for it in story.obstacles]
    assert {it.reason for it in obstacles} == {Reason.NOT_WAITED, Reason.NO_PROXY_FENCE}
    fences = [it.repair for it in obstacles if it.reason is Reason.NO_PROXY_FENCE]
    assert fences and not any("after a" in repair or "before g" in repair for repair in fences)


def test_what_is_missing_does_not_order_both_ways() -> None:
    """A wait for the copy in front of the read and a hand-over from the read to the copy forbid the outcome together:
    nothing can be before itself."""
    story = api.explain(EARLY_ARRIVAL).stories[0]
    assert {it.reason for it in story.obstacles} == {Reason.NO_SYNCHRONIZATION, Reason.PROXY_FENCE_SIDE}
    assert story.first is not None and story.first.text.startswith("R s")
    assert [it.repair.split(" (")[0] for it in story.obstacles] == ["n", "fence.proxy.async after o"]


@pytest.mark.parametrize("name", ["async/proxy/dsmem-copy-reuse", "async/tcgen05/T13-no-wait", "async/proxy/A12"])
def test_a_race_of_a_thread_with_its_own_copy_has_the_reason_of_the_outcome(name: str) -> None:
    """The write that the copy reads comes after it, and does not lead to it."""
    stories = told(name).stories
    reasons = [[obstacle.reason for obstacle in story.obstacles] for story in stories]
    assert len(stories) > 1 and reasons == [reasons[0]] * len(stories) and Reason.RULE not in reasons[0]


def test_no_two_reasons_have_the_same_words() -> None:
    assert len({one.value for one in Reason}) == len(Reason)


def test_a_hang_names_who_waits_and_what_would_let_it_go_on() -> None:
    found = told("bytes/B9-hang")
    assert found.stuck is not None
    (one,) = found.stuck.waiting
    assert (one.thread, one.reason) == ("P2", Reason.COUNT) and "missing arrivals" in one.goes_on


def test_the_decision_that_makes_the_difference_and_what_makes_it_not_matter() -> None:
    found = api.explain(LITMUS / "async/readings/R3.litmus", readings=True)
    assert {one.decision.split()[0] for one in found.depends} >= {"D4b"}
    assert found.depends[0].obstacles[0].reason is Reason.TCGEN05_FENCE


def test_text_and_record_say_the_same() -> None:
    found = told("async/proxy/A5")
    text = "\n".join(lines_of(found))
    record = ExplanationRecord.of(found).json_values()
    assert record["stories"][0]["obstacles"][0]["reason"] == Reason.PROXY_FENCE_SIDE.value  # type: ignore[index]
    assert Reason.PROXY_FENCE_SIDE.value in text and "+ missing: fence.proxy.async" in text


def test_check_says_because() -> None:
    lines = api.check(LITMUS / "async/proxy/A4.litmus").explain().splitlines()
    assert any(line.strip().startswith("because b: fence.proxy.async.global") for line in lines)
    lines = api.check(LITMUS / "async/proxy/A1.litmus").explain().splitlines()
    place = next(n for n, line in enumerate(lines) if "forbidden by Causality" in line)
    assert lines[place + 1].strip().startswith("because W s = 1 (P0, line 11) comes before")


def test_a_forall_that_holds_is_explained_by_what_would_break_it() -> None:
    text = (LITMUS / "async/proxy/A1.litmus").read_text().replace("~exists (g[0] == 0)", "forall (g[0] == 1)")
    steps = api.questions(api.lowered(text))[0]
    report = api.report_on(steps, MODEL, Options())
    assert report.answer.observation is Observation.ALWAYS
    found = explanation(steps, MODEL, report.answer, Options(), report.question, {})
    assert [one.axiom for one in found.contradictions] == ["Causality"]


def test_a_report_from_another_process_has_nothing_to_explain_with() -> None:
    import pickle

    report = api.check(LITMUS / "async/proxy/A4.litmus")
    sent = pickle.loads(pickle.dumps(report))
    assert sent.subject is None and sent.answer.witness.evaluated is None
    assert "needs" in sent.explain() or "need synchronization" in sent.explain() or sent.explain()


def parts(steps: tuple[PathStep, ...]) -> list[PathStep]:
    return [one for step in steps for one in (step, *parts(step.parts))]


def test_derived_edges_carry_their_clause() -> None:
    found = told("async/proxy/A1")
    assert any(one.clause == "Memory synchronization" for one in parts(found.contradictions[0].steps))


def test_a_model_with_less_order_names_its_own_axiom() -> None:
    path = LITMUS / "shapes/MP+rel.gpu+acq.gpu@two-ctas.litmus"
    assert {one.axiom for one in api.explain(path, "ptx-6.0").contradictions}
    broken = replace(MODEL, checks=tuple(check for check in MODEL.checks if check.name != "Causality"))
    assert api.explain(path, broken).stories


def test_each_relation_is_asked_for_by_itself() -> None:
    """What one name means must not depend on which names were asked for before."""
    witness = api.check(LITMUS / "async/proxy/A2.litmus").answer.witness
    execution = None if witness is None else execution_of(witness)
    assert witness is not None and witness.evaluated is not None and execution is not None
    together = Values(MODEL, execution, witness.evaluated.ranks)
    names = list(dict.fromkeys(one.name for one in MODEL.definitions if one.kind is Kind.RELATION))
    for name in [*names, *reversed(names)]:
        assert together.relation(name) == Values(MODEL, execution, witness.evaluated.ranks).relation(name), name


def test_a_tile_that_is_overwritten_before_it_is_read() -> None:
    """What is missing is order from the read to the next product, and not the other way round."""
    first = told("async/pipelines/accumulator-reuse-no-wait").stories[0]
    assert first.first is not None and first.second is not None
    assert (first.first.thread, first.second.thread) == ("EPI", "MMA")
    assert {one.reason for one in first.obstacles} == {Reason.NO_SYNCHRONIZATION, Reason.TCGEN05_FENCE}


def test_who_waits_for_whom_in_a_ring_whose_addresses_are_computed() -> None:
    waiting = told("async/pipelines/gemm-wgmma-1x2-loop-parity").stuck
    assert waiting is not None
    assert {one.reason for one in waiting.waiting} == {Reason.DEADLOCK}
    assert "parity 1 at this wait" in waiting.waiting[0].goes_on


def test_a_thread_that_does_not_arrive_waits_for_itself() -> None:
    text = (LITMUS / "async/undefined/peer-waits-before-exit.litmus").read_text()
    hang = api.explain(text.replace("    barrier.cluster.arrive;\n", "", 1)).stuck
    assert hang is not None
    assert {one.thread: one.reason for one in hang.waiting} == {"P0": Reason.COUNT, "P1": Reason.OTHER_THREAD_WAITS}
    assert hang.waiting[0].goes_on.startswith("an arrive of the thread itself")


TWO_ELEMENTS = """PTX two-elements
.shared .align 16 .u32 s[4];
.global .align 16 .u32 g[4] = {{7, 7, 7, 7}};
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {{
    st.shared.u32 [s], 1;
    st.shared.u32 [s+4], 1;
    {fence}
    mbarrier.arrive.shared::cta.b64 _, [bar];
}}
thread P1 @ cta 0, gpu 0 {{
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
    ld.shared.u32 %r0, [s];
    ld.shared.u32 %r1, [s+4];
    cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
}}
exists ({condition})
"""


@pytest.mark.parametrize("condition", ["g[1] == 0", "P1:%r1 == 0"])
@pytest.mark.parametrize("fence", ["fence.proxy.async;", ""])
def test_an_explanation_is_about_the_accesses_that_the_condition_depends_on(condition: str, fence: str) -> None:
    """The other element goes the same way, and would be the first to be named."""
    explained = api.explain(Source("t", TWO_ELEMENTS.format(condition=condition, fence=fence)))
    if explained.observation == "never":
        ends = [step.first.text for step in explained.contradictions[0].steps if step.relation == "fr"]
    else:
        ends = [at.text for at in (explained.stories[0].first, explained.stories[0].second) if at is not None]
    assert ends and all("s[1]" in text for text in ends)


def test_a_thread_may_wait_before_it_has_done_anything() -> None:
    test = "PTX t\n.shared .u32 x = 0;\nthread P0 @ cta 0, gpu 0 {\n    barrier.cluster.wait;\n}\nexists true\n"
    found = api.explain(test, ask="exists hang")
    assert found.stuck is not None and found.stuck.waiting[0].reason is Reason.COUNT


@pytest.mark.parametrize(("threads", "orders"), [(4, 24), (50, None)])
def test_the_orders_of_many_fences(threads: int, orders: int | None) -> None:
    """As many as there are; the first one comes at once, however many pairs it has to order."""
    heads = " | ".join(f"P{number}@cta {number}, gpu 0" for number in range(threads))
    fences = " | ".join(["fence.sc.gpu"] * threads)
    report = api.check(f"PTX many\n{{ x = 0; }}\n{heads} ;\n{fences} ;\nexists (x == 0)\n")
    witness = report.answer.witness
    execution = None if witness is None else execution_of(witness)
    assert execution is not None
    no_order = [0] * len(execution.events)
    execution = replace(execution, chosen_relations={**execution.chosen_relations, "sync_fence": no_order})
    each = list(islice(fence_orders(execution), 1 if orders is None else orders + 1))
    assert len({tuple(it.relation("sync_fence")) for it in each}) == len(each) == (orders or 1)
