"""Hangs cut down to litmus tests: who waits, what came, and where those are held up who did not come."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import entry, launch, module

from kernel.order.test_conditions import COPIED, arrive, lines, obj, wait
from memmodel import api
from memmodel.cat.load import load_model
from memmodel.cli.app import app
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.export.litmus import best
from memmodel.kernel.launch import Launch, parse_launch

RING = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.init.shared.b64 [%r4+8], 1;
bar.sync 0;
mov.u32 %r20, 256;
mov.u32 %r30, 0;
setp.eq.s32 %p1, %r0, 32;
@%p0 bra PROD;
@%p1 bra CONS;
bra OUT;
PROD:
mbarrier.arrive.expect_tx.shared.b64 %d5, [%r4], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], %r20, [%r4];
and.b32 %r31, %r30, 1;
WE: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4+8], %r31;
@!%p5 bra WE;
add.u32 %r30, %r30, 1;
setp.lt.u32 %p6, %r30, 3;
@%p6 bra PROD;
bra OUT;
CONS:
and.b32 %r31, %r30, 1;
WF: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], %r31;
@!%p5 bra WF;
ld.shared.u32 %r21, [%r2];
setp.ne.u32 %p7, %r30, {skip};
@%p7 mbarrier.arrive.shared.b64 %d6, [%r4+8];
add.u32 %r30, %r30, 1;
setp.lt.u32 %p6, %r30, 3;
@%p6 bra CONS;
OUT:
"""
"""A ring of one stage, whose consumer does not hand it back in one round."""

LATE = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];
@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];
bar.sync 0;
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@!%p5 bra W;
"""
"""Two phases go by before somebody waits for the first one."""

HALVES = "setp.ge.s32 %p1, %r0, 32;\n@%p1 bra L;\nbar.sync 1, 64;\nL: bar.sync 0;"
ALONE = """
@%p0 bra L;
{meet}
bra M;
L: mbarrier.init.shared.b64 [%r4], 2;
mbarrier.arrive.shared.b64 %d5, [%r4];
W: mbarrier.try_wait.shared.b64 %p5, [%r4], %d5;
@!%p5 bra W;
M:
"""
"""Lane 0 waits for an object, and the others for lane 0."""

CLUSTER = """
mov.u32 %r7, %cluster_ctarank;
setp.ne.u32 %p1, %r7, 0;
{first}
@%p1 bra L;
barrier.cluster.arrive;
barrier.cluster.wait;
bra M;
L: bar.sync 1, 64;
M:
"""
PAIR = {"grid": [2, 1, 1], "block": [32, 1, 1], "cluster": [2, 1, 1]}
POINTER = {"name": "p", "type": "ptr", "address": 1 << 32, "bytes": 65536}
TWO_CTAS = parse_launch({**PAIR, "params": [POINTER]})
ROUND = "barrier.cluster.arrive;\nbarrier.cluster.wait;"

SHARED_RING = """
mov.u32 %r7, %cluster_ctarank;
setp.eq.u32 %p1, %r7, 0;
and.pred %p2, %p0, %p1;
@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.init.shared.b64 [%r4+8], 2;
@%p0 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive;
barrier.cluster.wait;
mov.u32 %r20, 256;
mov.u16 %h1, 3;
mov.u32 %r30, 0;
setp.eq.u32 %p3, %r0, 32;
@%p2 bra PROD;
@%p3 bra CONS;
bra OUT;
PROD:
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%d0], %r20, [%r4], %h1;
and.b32 %r31, %r30, 1;
add.u32 %r8, %r4, 8;
WE: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [%r8], %r31;
@!%p5 bra WE;
add.u32 %r30, %r30, 1;
setp.lt.u32 %p6, %r30, 3;
@%p6 bra PROD;
bra OUT;
CONS:
mapa.shared::cluster.u32 %r9, %r8, 0;
add.u32 %r8, %r4, 8;
mapa.shared::cluster.u32 %r9, %r8, 0;
LOOP:
mbarrier.arrive.expect_tx.shared.b64 %d5, [%r4], 256;
and.b32 %r31, %r30, 1;
WF: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], %r31;
@!%p5 bra WF;
ld.shared.u32 %r21, [%r2];
setp.ne.u32 %p7, %r30, {skip};
or.pred %p7, %p7, %p1;
@%p7 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];
add.u32 %r30, %r30, 1;
setp.lt.u32 %p6, %r30, 3;
@%p6 bra LOOP;
OUT:
barrier.cluster.arrive;
barrier.cluster.wait;
"""
"""A ring of one stage that two CTAs read, whose consumer in the second CTA does not hand it back in one round."""

FOUR_WARPS = parse_launch({**PAIR, "block": [64, 1, 1], "params": [POINTER]})

POLL = """
mov.u32 %r8, %ctaid.x;
setp.ne.s32 %p1, %r8, 0;
@%p1 bra WRITER;
W: ld.acquire.gpu.global.u32 %r9, [%d0];
setp.lt.u32 %p2, %r9, {least};
@%p2 bra W;
bra OUT;
WRITER:
{write}
OUT:
"""
"""A CTA polls what another one leaves."""
APART = launch(threads=1, ctas=2, init="zero")

CASES: list[tuple[str, str, Launch | None, list[str]]] = [
    ("bytes that never come", COPIED.format(expected=512), None, ["cta.b64 _, [bar], 32;", ", 16, ["]),
    ("bytes left over", COPIED.format(expected=128), None, ["expect_tx.shared::cta.b64 _, [bar], 16;", ", 32, ["]),
    ("bytes, and an arrival", COPIED.format(expected=256).replace("[%r4], 1", "[%r4], 2"), None, ["mbarrier(2)"]),
    ("an arrival", lines(obj(65), arrive(), wait()), None, ["bar = mbarrier(2);", "mbarrier.arrive", "[bar], 0;"]),
    ("each waits for the other", RING.format(skip=1), None, ["bar2 = mbarrier(1);", "_, [bar2], 16;", "_, [bar];"]),
    ("the last round", RING.format(skip=2), None, ["bar = mbarrier(1);", "[bar], 0;"]),
    ("a count of threads", "bar.sync 1, 96;", None, ["bar.sync 1, 64;"]),
    ("two barriers", HALVES.replace("1, 64", "2"), None, ["bar.sync 2, 64;", "bar.sync 0, 64;"]),
    ("a warp", ALONE.format(meet="bar.warp.sync 0xffffffff;"), launch(32), ["warp 0", "sync 3;", "_, [bar];"]),
    ("a shuffle", ALONE.format(meet="shfl.sync.idx.b32 %r9, %r0, 0, 31, -1;"), launch(32), ["bar.warp.sync 3;"]),
    ("a cluster", CLUSTER.format(first=""), TWO_CTAS, ["barrier.cluster.wait;", "bar.sync 1, 64;", "cta 1, cluster 0"]),
    ("a multicast", SHARED_RING.format(skip=1), FOUR_WARPS, ["16, [bar2], 3;", "[bar@cta0];"]),
    ("a word", POLL.format(least=9, write="st.release.gpu.global.u32 [%d0], 7;"), APART, ["], 1;", "%q, %s1, 1;"]),
    ("a count", POLL.format(least=2, write="red.release.gpu.global.add.u32 [%d0], 1;"), APART, ["red.", "%q, %s1, 1;"]),
    ("nobody writes", POLL.format(least=2, write=""), APART, ["%q, %s1, 0;"]),
    ("no arrive of its own", "barrier.cluster.wait;", TWO_CTAS, ["{\n    barrier.cluster.wait;\n}"]),
    ("a cluster, later", CLUSTER.format(first=ROUND), TWO_CTAS, ["bar.sync 1, 64;\n    barrier.cluster.arrive;"]),
]  # fmt: skip


def hangs(body: str, given: Launch | None = None) -> list[tuple[str | None, str]]:
    """The tests of all hangs of a kernel."""
    read = module(body)
    kernel = judge_case(KernelCase(read, entry(read), given or launch(), load_model("ptx-9.4"), CheckOptions()))
    return [best(kernel.runs[id(one)], one, "cut") for one in kernel.verdict.findings if one.rule == "hang"]


@pytest.mark.parametrize(("body", "given", "kept"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_a_hang_is_cut(body: str, given: Launch | None, kept: list[str]) -> None:
    """Each wait that is reported becomes a test that only hangs; one has all that makes it last."""
    found = hangs(body, given)
    assert found and all(text is not None and why == "" for text, why in found), found
    assert any(all(line in (text or "") for line in kept) for text, _ in found), found
    for text, _ in found:
        answer = api.check(text or "").answer
        assert answer.flags == ("hang",)


def test_the_test_of_a_hang_is_repaired(tmp_path: Path) -> None:
    file = tmp_path / "ring.litmus"
    file.write_text(hangs(COPIED.format(expected=512))[0][0] or "")
    run = CliRunner().invoke(app, ["fix", str(file)])
    assert run.exit_code == 0 and "32 -> 16 in mbarrier.arrive.expect_tx" in run.output, run.output


def test_a_wait_for_an_object_that_nothing_initialises() -> None:
    """In a litmus test that is undefined behaviour, and no hang."""
    ((text, why),) = hangs(wait(state="%d0"))
    assert text is not None and why == "" and text.endswith("exists undefined\n") and "mbarrier(" not in text


def test_phases_that_go_by() -> None:
    """The thread waits for the third phase, since it missed the first one. The arrive in the second one is undefined,
    so that the test is without these phases, and says so.
    """
    ((text, why),) = hangs(LATE)
    assert text is not None and why.startswith("without the phases that") and "mbarrier.arrive" not in text


def test_what_a_test_cannot_wait_for() -> None:
    body = "setp.ge.s32 %p1, %r0, 1;\n@%p1 bra L;\nbra L2;\nL: bar.sync 0;\nL2: bar.warp.sync 0xffffffff;"
    ((text, why),) = hangs(body, launch(32))
    assert text is not None and "bar.warp.sync 3;" in text and why.startswith("the wait alone; it waits at bar.sync")
