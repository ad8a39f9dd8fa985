"""Which pairs of accesses are judged: those of two lanes stand for those of a warp, of two warps and CTAs for all."""

from __future__ import annotations

from collections.abc import Container
from random import Random

import pytest
from helpers.examples import each_seed
from helpers.kernel.samples import entry, judged, launch, module

from memmodel.cat.load import load_model
from memmodel.kernel.conflicts import block_accesses, conflicts
from memmodel.kernel.conflicts.conflicts import AlikeThreads, Conflicts
from memmodel.kernel.conflicts.roles import Roles
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.flags import Flags
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.launch import LaunchTrace

STORES = {
    "the same value": "st.shared.u32 [s], 7;",
    "another value in one lane": "selp.u32 %r10, 1, 7, %p;\nst.shared.u32 [s], %r10;",
    "another value in one lane of another warp": "selp.u32 %r10, 1, 7, %q;\nst.shared.u32 [s], %r10;",
    "a value and a reader": "st.shared.u32 [s], 7;\nbar.warp.sync 0xffffffff;\nld.shared.u32 %r10, [s];",
    "one store and many readers": "@%p st.shared.u32 [s], 7;\nld.shared.u32 %r10, [s];",
    "a store behind a barrier": "st.shared.u32 [s], 7;\nbar.sync 0;\n@%p st.shared.u32 [s], 8;",
    "a value of each lane, twice": "st.shared.u32 [s], %r0;\n@%q st.shared.u32 [s], %r1;",
    "bytes that overlap in part": "st.shared.u32 [s], 0;\n@%p st.shared.u8 [s+1], 0;\n@%q st.shared.u16 [s+2], 1;",
    "a flag and who looks at it": "@%p st.relaxed.cta.shared.u32 [s], 1;\n@!%p st.shared.u32 [s], 1;",
}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_two_lanes_stand_for_those_that_do_the_same(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = ".reg .pred %p, %q;\nsetp.eq.u32 %p, %r0, 17;\nsetp.eq.u32 %q, %r0, 49;\n" + store

    def findings() -> set[tuple[object, ...]]:
        verdict = judged(named)
        return {(finding.key, finding.count, finding.message, finding.reason) for finding in verdict.findings} | {
            (verdict.word,)
        }

    few = findings()
    monkeypatch.setattr(Conflicts, "_enough_of_warps", lambda self, members, stored: members)
    assert findings() == few


# ---- random kernels --------------------------------------------------------------------------------------------------

SET_UP = """setp.lt.u32 %p1, %r0, 32;
setp.eq.u32 %p2, %r0, 33;
and.b32 %r20, %r0, 1;
setp.eq.u32 %p3, %r20, 0;
xor.b32 %r21, %r1, 4;
add.u32 %r21, %r21, %r2;
xor.b32 %r22, %r1, 128;
and.b32 %r22, %r22, 255;
add.u32 %r22, %r22, %r2;
shr.u32 %r23, %r0, 5;
shl.b32 %r23, %r23, 2;
add.u32 %r24, %r23, %r2;
mov.u32 %r25, %ctaid.x;
shl.b32 %r26, %r25, 2;
cvt.u64.u32 %d1, %r26;
add.u64 %d1, %d0, %d1;
cvt.u64.u32 %d2, %r1;
add.u64 %d2, %d0, %d2;
"""
"""%p0: thread 0, %p1: warp 0, %p2: one lane of warp 1, %p3: even lanes. Words of shared memory: %r3 the thread's own,
%r21 of the lane beside it, %r22 of another warp, %r24 of the warp. Of the buffer: %d1 of the CTA, %d2 of the thread."""

LINES = {
    "st.shared.u32 [S], V;": 4,
    "ld.shared.u32 %r10, [S];": 4,
    "st.shared.u8 [S+2], %h0;": 1,
    "st.shared.u16 [S], %h0;": 1,
    "st.global.u32 [G], V;": 2,
    "ld.global.u32 %r11, [G];": 1,
    "red.relaxed.cta.shared.add.u32 [S], 1;": 1,
    "st.release.cta.shared.u32 [S], 1;": 1,
    "red.relaxed.gpu.global.add.u32 [G], 1;": 1,
    "cp.async.ca.shared.global [S], [G], 4;": 1,
}
"""Accesses, each as often as it is among them."""
TOGETHER = ("bar.sync 0;", "bar.sync 0;", "bar.warp.sync -1;", "fence.acq_rel.cta;", "cp.async.wait_all;")
GUARDS = ("", "@%p0 ", "@!%p0 ", "@%p1 ", "@!%p1 ", "@%p2 ", "@%p3 ")
PLACES = {
    "S": ("%r3", "%r21", "%r22", "%r2", "%r24", "%r2+8"),
    "G": ("%d0", "%d1", "%d2", "%d0+4"),
    "V": ("%r0", "7", "%r23", "%r25"),
}


def body_of(random: Random) -> str:
    """A few accesses by some of the threads, with what orders them or does not."""
    lines = []
    for _ in range(random.randint(3, 7)):
        if random.random() < 0.2:
            lines.append(random.choice(TOGETHER))
            continue
        line = random.choice(GUARDS) + random.choices(list(LINES), list(LINES.values()))[0]
        for name, places in PLACES.items():
            place = random.choice(places)
            line = line.replace(f"[{name}+2]", f"[{place}]" if "+" in place else f"[{place}+2]")
            line = line.replace(f"[{name}]", f"[{place}]").replace(f" {name};", f" {place};")
        lines.append(line)
    return SET_UP + "\n".join(lines)


def raised(body: str, threads: int, ctas: int, *, symmetric: bool) -> set[tuple[str, frozenset[int]]]:
    """What is found in one run: rules, each with its instructions."""
    read = module(body)
    judge = RunJudge(
        entry(read), run_launch(read, entry(read), launch(threads, ctas)), symmetric=symmetric, by_instruction=True
    )
    origins = judge.graph.origins
    flags = Flags(load_model("ptx-9.4"), judge.execution)
    return {(rule, frozenset((origins[a].at, origins[b].at))) for rule, a, b in judge.raised(flags)}


def every(items: list[AlikeThreads]) -> AlikeThreads:
    """All groups as one."""
    ordered = sorted(items, key=lambda item: item.name)
    members = tuple(thread for item in ordered for thread in item.members)
    return AlikeThreads(tuple(item.name for item in ordered), members, any(item.writes for item in ordered))


@each_seed(24)
def test_few_threads_show_what_all_threads_show(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    body, threads, ctas = body_of(random), random.choice((34, 36, 40)), random.choice((1, 1, 2))
    few = raised(body, threads, ctas, symmetric=True)
    monkeypatch.setattr(Conflicts, "_enough_of_warps", lambda self, members, stored: members)
    monkeypatch.setattr(conflicts, "_at_most_two", every)
    assert few == raised(body, threads, ctas, symmetric=False), body


COPY = "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 64;"
COPIES = {
    "every lane copies the same": COPY,
    "copies, and stores to where they go": COPY + "\nst.global.u32 [%d0+16], %r0;",
    "copies, and a lane that stores to where they go": COPY + "\n@%p st.global.u32 [%d0+16], 7;",
    "copies, and who reads where they come from":
        "st.shared.u32 [%r2], 7;\n" + COPY + "\n@%q ld.shared.u32 %r10, [%r2];",
    "two copies of each lane": COPY + "\ncp.async.bulk.global.shared::cta.bulk_group [%d0+32], [%r2], 64;",
    "another copy of one lane": COPY + "\n@%p cp.async.bulk.global.shared::cta.bulk_group [%d0+32], [%r2], 64;",
    "lanes that wait for their copies": COPY + "\n@%p cp.async.bulk.commit_group;\n@%p cp.async.bulk.wait_group 0;\n"
    "@%p st.shared.u32 [%r2+8], 7;",
}  # fmt: skip


def test_two_lanes_stand_for_those_that_make_the_same_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = block_accesses._copies_of_two_lanes
    left_out: list[int] = []

    def counted(run: LaunchTrace, roles: Roles, single: list[WeakAccess], others: Container[int]) -> list[WeakAccess]:
        few = kept(run, roles, single, others)
        left_out.append(len(single) - len(few))
        return few

    def findings(copies: str) -> set[tuple[object, ...]]:
        verdict = judged(".reg .pred %p, %q;\nsetp.eq.u32 %p, %r0, 17;\nsetp.eq.u32 %q, %r0, 49;\n" + copies)
        return {(finding.key, finding.count, finding.message, finding.reason) for finding in verdict.findings} | {
            (verdict.word,)
        }

    for name, copies in COPIES.items():
        left_out.clear()
        monkeypatch.setattr(block_accesses, "_copies_of_two_lanes", counted)
        few = findings(copies)
        assert sum(left_out) >= (2 * 60 if name == "every lane copies the same" else 0), name
        monkeypatch.setattr(block_accesses, "_copies_of_two_lanes", lambda run, roles, single, others: single)
        assert findings(copies) == few, name
