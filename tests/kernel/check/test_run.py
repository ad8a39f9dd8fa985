"""Small kernels from text to verdict, whole and with a part of their synchronization removed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import FENCE, NEIGHBOUR, copy, entry, judged, kernel_text, launch, module

from memmodel.cat.load import load_model
from memmodel.cli.app import app
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.check.inputs import entry_of, reading_models
from memmodel.kernel.conflicts.conflicts import Conflicts
from memmodel.kernel.conflicts.roles import Roles
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.flags import Flags
from memmodel.kernel.order.graph import Graph
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.readings import OtherReadings
from memmodel.kernel.order.verdict import KernelFinding, KernelVerdict
from memmodel.kernel.output.record import record
from memmodel.kernel.output.text import lines
from memmodel.ptx.module.reader import parse_module
from memmodel.referee.evaluate import evaluate
from memmodel.source import Source


def rules(verdict: KernelVerdict) -> set[str]:
    return {one.rule for one in verdict.findings}


@pytest.mark.parametrize(("target", "assumed"), [("sm_60", True), ("sm_70", False), ("sm_90a", False)])
def test_lanes_of_old_targets_are_assumed_to_be_independent(target: str, assumed: bool) -> None:
    """ "For .target sm_6x or below, all threads within a warp must execute the same barrier{.cta} instruction"."""
    body = "setp.lt.u32 %p1, %r0, 16;\n@%p1 bra L;\nbarrier.sync 0;\nbra.uni E;\nL: barrier.sync 0;\nE:"
    read = parse_module(Source("k.ptx", kernel_text(body).replace("sm_90", target).replace("8.8", "6.0")))
    verdict = judge(read, entry(read), launch(), load_model("ptx-9.4"))
    assert verdict.word == "clean"
    assert any("lanes of a warp" in what for what in verdict.assumptions) is assumed


def test_a_barrier_orders_neighbours() -> None:
    assert judged(NEIGHBOUR.format(sync="bar.sync 0;")).word == "clean"


@pytest.mark.parametrize(("version", "noted"), [("9.3", False), ("9.4", False), ("9.5", True), ("10.0", True)])
def test_a_module_of_a_later_version_is_told_so(version: str, noted: bool) -> None:
    text = kernel_text(NEIGHBOUR.format(sync="bar.sync 0;"))
    assert text.count(".version 8.8") == 1
    read = parse_module(Source("k.ptx", text.replace(".version 8.8", f".version {version}")))
    verdict = judge(read, entry_of(read, None), launch(), load_model("ptx-9.4"))
    what = f"instructions of the module, of PTX {version}, mean what PTX 9.4 says"
    assert (what in verdict.assumptions) is noted


def test_without_it_they_race() -> None:
    verdict = judged(NEIGHBOUR.format(sync=""))
    assert verdict.word == "findings" and rules(verdict) == {"data-race"}
    assert len(verdict.findings) == 1
    opcodes = {place.instruction.opcode for place in verdict.findings[0].sides}
    assert opcodes == {"st.shared.u32", "ld.shared.u32"}


def test_a_warp_barrier_does_not_order_other_warps() -> None:
    assert judged(NEIGHBOUR.format(sync="bar.warp.sync -1;")).word == "findings"
    within = NEIGHBOUR.replace("128", "64")
    assert judged(within.format(sync="bar.warp.sync -1;")).word == "clean"
    assert judged(within.format(sync="vote.sync.all.pred %p4, %p0, -1;")).word == "findings"


def test_overwriting_before_all_have_read() -> None:
    twice = NEIGHBOUR.format(sync="bar.sync 0;") + "{}st.shared.u32 [%r3], %r12;"
    assert judged(twice.format("")).word == "findings"
    assert judged(twice.format("bar.sync 0;\n")).word == "clean"


def test_bulk_copies() -> None:
    assert judged(copy()).word == "clean"


@pytest.mark.parametrize("missing", [{"proxy": ""}, {"sync": ""}, {"sync": "bar.warp.sync -1;"}])
def test_a_removed_part_is_noticed(missing: dict[str, str]) -> None:
    verdict = judged(copy(**missing))
    assert verdict.word == "findings"
    assert any("bulk" in place.instruction.opcode for one in verdict.findings for place in one.sides)


def test_too_few_arrivals_hang() -> None:
    verdict = judged(copy().replace("[%r4], 64;", "[%r4], 65;"))
    assert rules(verdict) == {"hang"}
    assert verdict.findings[0].sides[0].instruction.words[1] == "try_wait"


def test_too_many_arrivals_are_undefined() -> None:
    body = "@%p0 mbarrier.init.shared.b64 [%r4], 1;\nbar.sync 0;\nmov.u32 %r9, 2;\n"
    verdict = judged(body + "@%p0 mbarrier.arrive.shared::cta.b64 %d5, [%r4], %r9;")
    assert "undefined-mbarrier" in rules(verdict)


def test_an_expected_transaction_comes_before_an_arrival() -> None:
    expect = "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], %r20;\n"
    late = copy().replace(expect, "").replace("WAIT:", expect + "WAIT:")
    verdict = judged(late)
    assert verdict.word == "undecided"
    assert any("not ordered before an arrival" in one for one in verdict.open)


def test_divergence_at_an_aligned_barrier() -> None:
    body = "setp.lt.u32 %p3, %r0, 8;\n@%p3 bra B;\nbar.sync 0;\nbra C;\nB: bar.sync 0;\nC:"
    assert rules(judged(body, threads=32)) == {"barrier-divergence"}


def test_bad_addresses() -> None:
    assert rules(judged("add.s32 %r9, %r2, 4096;\nst.shared.u32 [%r9], %r0;")) == {"undefined-address"}
    assert rules(judged("st.shared.u32 [%r3+2], %r0;")) == {"undefined-address"}
    assert rules(judged("st.global.u32 [%d0+65536], %r0;")) == {"undefined-address"}


@pytest.mark.parametrize(
    ("divisor", "word"), [("0", "undecided"), ("3", "clean"), ("%r20", "clean"), ("%r21", "undecided")]
)
@pytest.mark.parametrize("head", ["div", "rem"])
def test_what_division_by_zero_gives_is_not_known(head: str, divisor: str, word: str) -> None:
    body = f"mov.u32 %r20, 5;\nmov.u32 %r21, %r0;\n{head}.u32 %r9, 7, {divisor};\nsetp.eq.s32 %p3, %r9, -1;\n"
    verdict = judged(body + "@%p3 st.global.u32 [%d0], %r0;\n@%p3 bar.warp.sync -1;", threads=32)
    assert (verdict.word == "undecided") is (word == "undecided")


@pytest.mark.parametrize(
    ("access", "reaches"),
    [
        ("ld.u32 %r9, [{}];", "c p s g l"),
        ("ld.relaxed.gpu.u32 %r9, [{}];", "s g"),
        ("ld.volatile.u32 %r9, [{}];", "s g l"),
        ("st.volatile.u32 [{}], 1;", "s g l"),
        ("ld.v8.b32 {{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}}, [{}];", "g"),
        ("ld.mmio.relaxed.sys.u32 %r9, [{}];", "g"),
        ("st.u32 [{}], 1;", "s g l"),
        ("atom.global.add.u32 %r9, [{}], 1;", "g"),
        ("red.add.u32 [{}], 1;", "s g"),
        ("ld.const.u32 %r9, [{}];", "c"),
        ("ld.global.u32 %r9, [{}];", "g"),
        ("fence.proxy.tensormap::generic.acquire.gpu [{}], 128;", "g"),
        ("tensormap.replace.tile.rank.b1024.b32 [{}], 0;", "s g"),
    ],
)
def test_the_memory_that_an_address_may_reach(access: str, reaches: str) -> None:
    """Constants, parameters, shared, global and local memory through addresses in registers."""
    generic = "" if ".const" in access else "\ncvta.const.u64 %d9, %d9;"
    bases = {"c": f"mov.u64 %d9, c;{generic}", "p": "mov.b64 %d9, k_param_0;\ncvta.param.u64 %d9, %d9;"}
    bases["g"] = "mov.u64 %d9, %d0;"
    bases |= {"s": "cvta.shared.u64 %d9, s;", "l": "mov.u64 %d9, l;\ncvta.local.u64 %d9, %d9;"}
    for name, base in bases.items():
        body = f".local .align 64 .b8 l[128];\n{base}\n@%p0 {access.format('%d9')}"
        found = judged(body, init="zero", before=".const .align 64 .b8 c[128];")
        assert ("undefined-address" in rules(found)) is (name not in reaches.split()), (name, found.open)


def test_what_is_not_known_is_undecided() -> None:
    unknown = judged("frobnicate.b32 %r9, %r1;")
    assert unknown.word == "undecided" and "frobnicate.b32 is not known" in unknown.open[0]
    test = "ld.global.u32 %r9, [%d0];\nsetp.eq.s32 %p3, %r9, 0;\n"
    for effect in ("@%p3 bra X;\nbar.sync 0;\nX:", "@%p3 bar.sync 0;", "L: @%p3 bra L;\nbar.sync 0;\n@%p3 bra L;"):
        branch = judged(test + effect)
        assert branch.word == "undecided" and "does not know" in branch.open[0]
    assert judged(test + "@%p3 bra X;\nbar.sync 0;\nX:", init="zero").word == "clean"


@pytest.mark.parametrize(
    ("sides", "word"),
    [
        ("@%p3 bra X;\nadd.u32 %r9, %r9, 1;\nX:", "clean"),
        ("@%p3 mov.u32 %r9, 1;", "clean"),
        ("@%p3 bra Y;\nadd.u32 %r9, %r9, 1;\nbra X;\nY: @%p4 bra X;\nsub.u32 %r9, %r9, 1;\nX:", "clean"),
        ("bra A;\nY: mov.u32 %r9, 1;\nbra X;\nA: @%p3 bra Y;\nX:", "clean"),
        ("L: sub.u32 %r9, %r9, 1;\nsetp.ne.u32 %p3, %r9, 0;\n@%p3 bra L;", "clean"),
        ("@%p3 bra X;\nst.local.u32 [depot], %r9;\nld.local.u32 %r9, [depot];\nX:", "clean"),
        (
            "st.local.u32 [depot], %r3;\n@%p3 bra X;\nst.local.u32 [depot], %r2;\nX: ld.local.u32 %r3, [depot];",
            "undecided",
        ),
        ("@%p3 bra X;\nmov.u32 %r3, %r2;\nX:", "undecided"),
        ("@%p3 bra X;\nld.shared.u32 %r9, [%r3];\nX:", "undecided"),
        ("@%p3 bra X;\nret;\nX:", "undecided"),
        ("@%p3 bra X;\nM: bra M;\nX:", "undecided"),
    ],
)
def test_sides_that_only_compute(sides: str, word: str) -> None:
    """Which side an unknown branch takes changes nothing if both only compute: what they write is unknown then."""
    test = "ld.global.u32 %r9, [%d0];\nsetp.gt.s32 %p3, %r9, 7;\nsetp.gt.s32 %p4, %r9, 9;\n"
    verdict = judged(f".local .align 8 .b8 depot[16];\n{test}{sides}\nst.shared.u32 [%r3], %r9;", threads=32)
    assert verdict.word == word
    assert ("only computes, ends" in "".join(verdict.assumptions)) == ("L:" in sides)


def test_a_loop_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memmodel.kernel.machine.run.MAX_STEPS", 2000)
    verdict = judged("L: add.s32 %r9, %r9, 1;\nbra L;")
    assert verdict.word == "undecided" and "does not end" in verdict.open[0]
    assert rules(judged("L: bra L;")) == {"hang"}


@pytest.mark.parametrize(
    "body",
    [
        "add.s32 %r9, %r1;",
        "shl.b32 %r9, %r1, %r2, %r3;",
        "ld.shared.u32 %r9;",
        "st.shared.v2.u32 [%r3], %r1;",
        "mbarrier.init.shared.b64 [%r4];",
        "bar.sync;",
        "cp.async.cg.shared.global [%r2], [%d0];",
        "atom.shared.add.u32 %r9, [%r2];",
        "shfl.sync.bfly.b32 %r9, %r1;",
        "mov.b64 {%r1, %r2}, {%r3, %r4};",
    ],
)
def test_operands_that_no_assembler_takes(body: str) -> None:
    verdict = judged(body, threads=32)
    assert verdict.word == "undecided" and verdict.open[0].startswith("line "), verdict.open


TICKET = "mov.u32 %r9, 1;\natom.global.add.u32 %r10, [%d0], %r9;\n"
BRANCH = "setp.eq.u32 %p3, %r10, 0;\n@%p3 bra X;\nst.global.u32 [%d0+64], %r10;\nX:"


@pytest.mark.parametrize(
    "body",
    [
        TICKET,
        "mov.u32 %r9, 1;\nred.global.add.u32 [%d0], %r9;",
        "mov.u32 %r9, 1;\nred.global.add.u32 [%d0], %r9;\nred.global.max.u32 [%d0], %r9;",
        "activemask.b32 %r9;",
        "ld.relaxed.gpu.global.u32 %r9, [%d0];\nst.shared.u32 [%r3], %r9;",
    ],
)
def test_what_nothing_depends_on_is_no_choice(body: str) -> None:
    assert judged(body, init="zero", threads=32).word == "clean"


def test_choices_are_explored() -> None:
    many = judged(TICKET + "setp.eq.u32 %p3, %r10, 0;\n@%p3 bra X;\nfence.acq_rel.cta;\nX:", init="zero", threads=32)
    assert many.word == "explored" and many.explored == 8 and not many.open
    assert many.choices == [
        "line 20: the value of this predicate depends on the result of atom.global.add.u32 at line 18, "
        "which depends on the schedule"
    ]
    few = judged(
        TICKET + "setp.eq.u32 %p3, %r10, 0;\n@%p3 bra X;\nfence.acq_rel.cta;\nX:", init="zero", threads=1, ctas=3
    )
    # Only which CTA gets the first ticket matters: the other two do the same.
    assert few.word == "clean" and few.explored == 3 and few.exhaustive
    assert judged(TICKET + BRANCH, init="zero", threads=1, ctas=2).word == "clean"
    assert judged(TICKET + BRANCH, init="zero", threads=1, ctas=3).word == "findings"
    lanes = judged("activemask.b32 %r9;\nsetp.eq.u32 %p3, %r9, 1;\n@%p3 bra X;\nfence.acq_rel.cta;\nX:", threads=32)
    assert lanes.word == "explored"


QUIET = "ld.global.f32 %f1, [%d0];\nred.global.add.f32 [%d0+4], %f1;\nred.global.add.f32 [%d0+8], %f1;\n"


def test_atomic_operations_that_nobody_observes_are_no_events_of_their_own() -> None:
    alone = judged(QUIET, ctas=2)
    assert alone.word == "clean" and alone.statistics.events == 64 * 2 * 5 and alone.statistics.judged < 40
    assert rules(judged(QUIET + "ld.global.f32 %f2, [%d0+8];", ctas=2)) == {"data-race"}
    assert rules(judged(QUIET + "bar.sync 0;\nld.global.f32 %f2, [%d0+8];", ctas=2)) == {"data-race"}
    assert judged(QUIET + "bar.sync 0;\nld.global.f32 %f2, [%d0+8];").word == "clean"
    assert rules(judged(QUIET.replace("red.", "red.relaxed.cta."), ctas=2)) == {"data-race"}
    assert rules(judged(QUIET + "ld.relaxed.cta.global.f32 %f2, [%d0+8];", ctas=2)) == {"data-race"}
    assert judged(QUIET + "red.global.add.f64 [%d0+8], %d1;").word == "undecided"


def test_what_atomic_operations_without_a_result_leave_may_matter() -> None:
    body = (
        "{one}\n{other}\nbar.sync 0;\nld.global.u32 %r9, [%d0];\nsetp.gt.u32 %p3, %r9, 7;\n@%p3 bra X;\nbar.sync 0;\nX:"
    )
    add, most = "red.global.add.u32 [%d0], %r0;", "red.global.max.u32 [%d0], %r0;"
    assert judged(body.format(one=add, other=""), init="zero").word == "clean"
    assert judged(body.format(one=add, other=most), init="zero").word == "explored"


def test_where_unknown_values_come_from() -> None:
    verdict = judged(
        "ld.global.u32 %r9, [%d0];\nadd.s32 %r9, %r9, 1;\nsetp.eq.s32 %p3, %r9, 0;\n@%p3 bra X;\nfence.acq_rel.cta;\nX:"
    )
    assert verdict.open == [
        "line 20: the value of this predicate depends on a value that this run does not know; "
        "it comes from ld.global.u32 at line 17"
    ]


FLAG = """
setp.ne.u32 %p1, %r0, 0;
mov.u32 %r20, %ctaid.x;
setp.ne.u32 %p2, %r20, 0;
@%p1 bra DONE;
@%p2 bra WAIT;
{store}
st{release}.gpu.global.u32 [%d0], 1;
bra DONE;
WAIT:
ld{acquire}.gpu.global.u32 %r21, [%d0];
setp.eq.u32 %p3, %r21, 0;
@%p3 bra WAIT;
ld.global.u32 %r22, [%d0+64];
DONE:
"""


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ({}, "clean"),
        ({"release": ".relaxed"}, "findings"),
        ({"acquire": ".relaxed"}, "findings"),
    ],
)
def test_flags_are_polled(parts: dict[str, str], word: str) -> None:
    given = {"store": "st.global.u32 [%d0+64], %r0;", "release": ".release", "acquire": ".acquire", **parts}
    assert judged(FLAG.format(**given), ctas=2, init="zero").word == word


@pytest.mark.parametrize(("scope", "word"), [("gl", "clean"), ("cta", "findings")])
def test_fences_of_the_last_block(scope: str, word: str) -> None:
    """Lanes other than the one that saw the counter rely on the order that fence.sc must have, which has a scope."""
    body = f"""
add.s64 %d1, %d0, 64;
@%p0 st.global.u32 [%d1], 7;
@%p0 membar.{scope};
@%p0 atom.global.add.u32 %r9, [%d0], 1;
@%p0 st.shared.u32 [%r2], %r9;
bar.sync 0;
ld.shared.u32 %r10, [%r2];
setp.ne.u32 %p3, %r10, 1;
@%p3 bra DONE;
membar.gl;
ld.global.u32 %r11, [%d1];
DONE:"""
    body = body.replace(
        "@%p0 st.global.u32 [%d1], 7;",
        "mov.u32 %r20, %ctaid.x;\nmad.wide.u32 %d2, %r20, 4, %d1;\n@%p0 st.global.u32 [%d2], 7;",
    )
    body = body.replace("ld.global.u32 %r11, [%d1];", "ld.global.v2.u32 {%r11, %r12}, [%d1];")
    assert judged(body, ctas=2, init="zero").word == word


def test_what_a_strong_read_happened_to_read_gives_no_order() -> None:
    """The data is read whatever the flag says: in this run it was set, in another one, with slow warps, it is not."""
    body = FLAG.replace("setp.eq.u32 %p3, %r21, 0;\n@%p3 bra WAIT;\n", "")
    given = {"store": "st.global.u32 [%d0+64], %r0;", "release": ".release", "acquire": ".acquire"}
    verdict = judged(body.format(**given), ctas=2, init="zero")
    assert "but for what strong reads read" in verdict.open[0]
    assert verdict.word == "findings" and rules(verdict) == {"data-race"}


def test_strong_accesses_of_two_sizes_are_undecided() -> None:
    body = "st.relaxed.gpu.global.u32 [%d0], 1;\nld.relaxed.gpu.global.u64 %d5, [%d0];"
    assert "different sizes overlap" in judged(body, threads=1, ctas=2).open[0]


def test_a_flag_that_nobody_sets() -> None:
    body = FLAG.format(store="bra DONE;", release=".release", acquire=".acquire")
    assert rules(judged(body, ctas=2, init="zero")) == {"hang"}


def test_equal_stores_have_a_name() -> None:
    equal = judged("st.shared.u32 [%r2], 7;")
    assert equal.word == "clean" and rules(equal) == {"equal-store-race"}
    assert rules(judged("st.shared.u32 [%r2], %r0;")) == {"data-race"}
    own = "mul.wide.u32 %d1, %r0, 4;\nadd.s64 %d2, %d0, %d1;\nld.global.u32 %r9, [%d2];\n"
    assert rules(judged(own + "st.shared.u32 [%r2], %r9;", threads=32)) == {"same-store-race"}
    assert rules(judged(own + "st.shared.u32 [%r2], %r9;")) == {"same-store-race", "data-race"}
    carried = own + "add.cc.u32 %r9, %r9, 1;\naddc.u32 %r9, %r9, 0;\nst.shared.u32 [%r2], %r9;"  # it has no name
    assert rules(judged(carried, threads=32)) == {"same-store-race"}
    one_place = judged("ld.global.u32 %r9, [%d0];\nst.shared.u32 [%r2], %r9;")
    assert one_place.word == "clean" and rules(one_place) == {"equal-store-race"}
    sums = own + "redux.sync.add.u32 %r10, %r9, {mask};\nst.shared.u32 [%r2], %r10;"
    assert rules(judged(sums.format(mask="-1"), threads=32)) == {"equal-store-race"}
    assert rules(judged(sums.format(mask="-1"))) == {"equal-store-race", "data-race"}
    halves = sums.replace("{mask}", "%r11").replace("redux", "selp.b32 %r11, 65535, 0xffff0000, %p4;\nredux")
    # The lanes of each half store one sum, and the two halves two of them.
    both = {"equal-store-race", "same-store-race"}
    assert rules(judged("setp.lt.u32 %p4, %r0, 16;\n" + halves, threads=32)) == both
    turns = "bar.sync 0;\nld.shared.u32 %r9, [%r2];\nbar.sync 0;\n{other}st.shared.u32 [%r2], %r9;"
    assert rules(judged(turns.format(other=""))) == {"equal-store-race"}
    assert rules(judged(turns.format(other="add.u32 %r9, %r9, %r0;\n"))) == {"same-store-race", "data-race"}


BUTTERFLY = """
shr.u32 %r20, %r0, 5;
shl.b32 %r20, %r20, 2;
add.s32 %r21, %r2, %r20;
mul.wide.u32 %d1, %r0, 4;
add.s64 %d2, %d0, %d1;
ld.global.f32 %f0, [%d2];
shfl.sync.bfly.b32 %f1, %f0, 16, 31, -1;
{op} %f2, {a}, {b};
shfl.sync.bfly.b32 %f3, %f2, 8, 31, -1;
max.f32 %f4, %f2, %f3;
shfl.sync.bfly.b32 %f5, %f4, 4, 31, -1;
add.f32 %f6, %f5, %f4;
shfl.sync.bfly.b32 %f7, %f6, 2, 31, -1;
add.f32 %f8, %f6, %f7;
shfl.sync.bfly.b32 %f9, %f8, {last}, 31, -1;
add.f32 %f10, %f8, %f9;
{guard}st.shared.f32 [%r21], %f10;
"""


IN_DOUBLE = """
cvt.f64.f32 %d10, %f0;
cvt.f64.f32 %d11, %f1;
add.f64 %d12, %d10, %d11;
cvt.rn.f32.f64 %f2, %d12;
//"""
"""Sums of .f64 are not followed, since their NaN have payloads. The operands of the template stand in the comment."""


@pytest.mark.parametrize(
    ("parts", "rule"),
    [
        ({}, "equal-store-race"),
        ({"op": "add.f32", "a": "%f1", "b": "%f0"}, "equal-store-race"),
        ({"op": "sub.f32"}, "same-store-race"),
        ({"op": IN_DOUBLE}, "same-store-race"),
        ({"last": "2"}, "same-store-race"),
        ({"guard": "setp.lt.u32 %p4, %r0, 40;\n@%p4 bra S;\nadd.f32 %f10, %f10, %f0;\nS: "}, "same-store-race"),
    ],
)
def test_lanes_after_a_butterfly(parts: dict[str, str], rule: str) -> None:
    given = {"op": "max.f32", "a": "%f0", "b": "%f1", "last": "1", "guard": "", **parts}
    assert rules(judged(BUTTERFLY.format(**given))) == {rule}


def test_the_read_half_of_an_atomic_operation_is_ordered_with_its_write() -> None:
    body = FLAG.replace("st{release}.gpu.global.u32", "red{release}.gpu.global.add.u32")
    body = body.replace("ld.global.u32 %r22, [%d0+64];", "st.global.u32 [%d0], 0;")
    verdict = judged(body.format(store="", release=".release", acquire=".acquire"), ctas=2, init="zero")
    assert not verdict.findings
    early = body.replace("WAIT:\n", "WAIT:\nst.global.u32 [%d0], 0;\nPOLL:\n").replace("p3 bra WAIT", "p3 bra POLL")
    assert judged(early.format(store="", release=".release", acquire=".acquire"), ctas=2, init="zero").findings


def test_a_named_barrier_that_is_reused_too_early() -> None:
    body = "bar.arrive 1, 64;\nbar.arrive 1, 64;"
    verdict = judged(body)
    assert verdict.word == "undecided"
    assert any("arrivals of two generations" in one for one in verdict.open)


# ---- polling ---------------------------------------------------------------------------------------------------

TEST = "mbarrier.test_wait.parity.shared.b64 %p5, [%r4], %r9;"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (f"W: {TEST}\n@!%p5 bra W;", None),
        (f"W: {TEST}\nselp.b32 %r9, 1, 0, %p5;\nsetp.eq.s32 %p6, %r9, 0;\n@%p6 bra W;", "changes"),
        (f"W: {TEST}\nselp.b32 %r8, 1, 0, %p5;\nsetp.eq.s32 %p6, %r8, 0;\n@%p6 bra W;", None),
        (f"W: {TEST}\n@%p5 bra D;\nadd.s32 %r20, %r20, 1;\nsetp.lt.s32 %p7, %r20, 9;\n@%p7 bra W;\nbra W;\nD:", None),
        (f"W: {TEST}\n@%p5 bra D;\nadd.s32 %r20, %r20, 1;\nbra W;\nD: st.shared.u32 [%r3], %r20;", "changes"),
        (f"W: {TEST}\n@%p5 bra D;\nst.shared.u32 [%r3], %r0;\nbra W;\nD:", "st.shared"),
        (f"{TEST}\n@%p5 bra D;\nst.shared.u32 [%r3], %r0;\nD:", "st.shared"),
        (f"W: {TEST}\n@%p5 bra D;\nadd.s32 %r20, %r20, 1;\nsetp.lt.s32 %p7, %r20, 9;\n@%p7 bra W;\ntrap;\nD:", None),
        (f"W: @!%p5 bra W;\n{TEST}\n@!%p5 bra W;", "lead back"),
        (f"W: {TEST}\n@%p5 bra D;\nN: @%p7 bra N;\nbra W;\nD:", "lead back"),
        (
            f"W: {TEST}\n@%p5 bra D;\nmov.s32 %r20, 0;\nN: add.s32 %r20, %r20, 1;\nsetp.lt.s32 %p7, %r20, 9;\n"
            "@%p7 bra N;\nbra W;\nD:",
            None,
        ),
    ],
)
def test_polling_loops(body: str, wrong: str | None) -> None:
    found = entry(module(body))
    tests = [one.number for one in found.body or () if one.words[0] == "mbarrier"]
    said = complaints(found, tests)
    assert (not said) if wrong is None else (len(said) == 1 and wrong in said[0][1]), said


SIDE = """mov.u32 %r20, %ctaid.x;
setp.eq.u32 %p1, %r20, 0;
@%p1 st.release.gpu.global.u32 [%d0], 1;
@%p1 bra E;
ld.acquire.gpu.global.u32 %r21, [%d0];
setp.eq.u32 %p6, %r21, 1;
@%p6 bra E;
{side}
E:
"""
"""What a flag that another CTA sets decides."""


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("side", "word", "assumed"),
    [
        ("M: bra M;", "findings", 0),
        ("M: nanosleep.u32 100;\nbra M;", "findings", 0),
        ("M: @!%p6 bra M;", "findings", 0),
        ("M: setp.ne.u32 %p7, %r21, 1;\n@%p7 bra M;", "findings", 0),
        ("M: add.u32 %r21, %r21, 1;\nsetp.ne.u32 %p7, %r21, 7;\n@%p7 bra M;", "clean", 1),
    ],
)
def test_a_side_that_computes_comes_to_its_end(side: str, word: str, assumed: int) -> None:
    """Nobody sees which side was taken, unless one stays in a loop: nothing changes from round to round."""
    verdict = judged(SIDE.format(side=side), 32, ctas=2, init="zero")
    assert verdict.word == word
    assert sum("only computes, ends" in what for what in verdict.assumptions) == assumed


# ---- the reduction and the evaluator ------------------------------------------------------------------------------

BODIES = [
    NEIGHBOUR.format(sync="bar.sync 0;"),
    NEIGHBOUR.format(sync=""),
    NEIGHBOUR.format(sync="bar.warp.sync -1;"),
    copy(),
    copy(proxy=""),
    copy(sync=""),
    "st.shared.u32 [%r2], %r0;",
]


@pytest.mark.parametrize("body", BODIES)
def test_the_flags_are_those_of_the_referee(body: str) -> None:
    read = module(body)
    run = run_launch(read, entry(read), launch())
    roles = Roles(run)
    execution = Graph(run, roles, Conflicts(run, roles)).execution()
    model = load_model("ptx-9.4")
    flags, judged_by_referee = Flags(model, execution), evaluate(model, execution)
    assert flags.raised() == judged_by_referee.flags
    assert flags.relation("happens") == judged_by_referee.relation("happens")


@pytest.mark.share(3)
@pytest.mark.parametrize("body", BODIES[:3])
def test_readings_take_over_what_they_define_alike(body: str) -> None:
    read = module(body)
    made = RunJudge(entry(read), run_launch(read, entry(read), launch()))
    default = Flags(load_model("ptx-9.4"), made.execution)
    default.raised()
    for name, _, model in reading_models():
        alone = Flags(model, made.execution)
        assert Flags(model, made.execution, default).raised() == alone.raised(), name


RELOAD = f"""
@%p0 mbarrier.init.shared.b64 [%r4], 1;
{FENCE}
ld.shared.u32 %r21, [%r3];
bar.sync 0;
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%d0], 256, [%r4];
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 256;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@!%p5 bra WAIT;
"""
"""A tile is read and overwritten, with no proxy fence between."""


@pytest.mark.share(2)
@pytest.mark.parametrize("body", [*BODIES[3:6], RELOAD])
def test_what_readings_change_is_found_without_asking_them(body: str) -> None:
    read = module(body)
    made = RunJudge(entry(read), run_launch(read, entry(read), launch()))
    default = Flags(load_model("ptx-9.4"), made.execution)
    mine = default.raised()
    more, fewer = dict(default.more_with_readings()), dict(default.fewer_with_readings(mine.keys()))
    possible = {True: default.readings_that_may(None), False: default.readings_that_may(mine.keys())}
    for name, _, model in reading_models():
        theirs = Flags(model, made.execution).raised()
        for first, second, said in ((theirs, mine, more[name]), (mine, theirs, fewer[name])):
            differ = {rule: sorted(set(pairs) - set(second.get(rule, ()))) for rule, pairs in first.items()}
            assert said == {rule: pairs for rule, pairs in differ.items() if pairs}, name
            assert not said or name in possible[first is theirs]


@pytest.mark.share(3)
@pytest.mark.parametrize("known", [None, {}])
@pytest.mark.parametrize("body", [*BODIES, RELOAD])
def test_findings_of_readings_follow_from_what_they_report(
    body: str, known: dict[str, set[object]] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of a judgement by the reading itself, in every part."""
    read = module(body)
    made = RunJudge(entry(read), run_launch(read, entry(read), launch()))
    judged = made.judgement(load_model("ptx-9.4"))
    said = OtherReadings(reading_models(), known)
    said.look(made, frozenset(), judged)
    monkeypatch.setattr("memmodel.kernel.order.readings._different", lambda *_: None)
    asked = OtherReadings(reading_models(), known)
    asked.look(made, frozenset(), judged)
    assert said.differences(judged.findings) == asked.differences(judged.findings)
    brief = made.judgement(load_model("ptx-9.4"), explain=False)
    assert [(it.key, it.count) for it in brief.findings] == [(it.key, it.count) for it in judged.findings]
    assert brief.open == judged.open


@pytest.mark.parametrize(("body", "line"), [
    (copy(), "may depend on D10: D10 dependent has findings in this run; see --readings"),
    (RELOAD, "may depend on D18: D18 read has not all of these findings; see --readings"),
    (NEIGHBOUR.format(sync="bar.sync 0;"), None),
])  # fmt: skip
def test_a_verdict_says_on_which_readings_it_may_depend(body: str, line: str | None) -> None:
    read, model, depends = module(body), load_model("ptx-9.4"), CheckOptions(depends=True)
    verdict = judge(read, entry(read), launch(), model, depends)
    assert [text for text in lines(verdict) if text.startswith("may depend")] == ([] if line is None else [line])
    assert record(verdict)["may_depend_on"] == list(verdict.possible.names)
    other = judge(read, entry(read), launch(), load_model("readings/D9-letter"), depends)
    assert not other.possible.names
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memmodel.kernel.order.readings.SMALL", 0)
        large = judge(read, entry(read), launch(), model, depends)
    assert set(verdict.possible.names) <= set(large.possible.names)
    assert not large.possible.names or "not compared in a large run" in "\n".join(lines(large))


# ---- reports and the command ---------------------------------------------------------------------------------------


def test_reports() -> None:
    verdict = judged(NEIGHBOUR.format(sync=""))
    text = "\n".join(lines(verdict))
    assert text.startswith("findings: k,") and "k.ptx:" in text and "st.shared.u32: writes" in text
    made = json.loads(json.dumps(record(verdict)))
    assert made["verdict"] == "findings" and made["findings"][0]["places"][0]["line"] > 1


@pytest.mark.parametrize(("sync", "code"), [("bar.sync 0;", 0), ("", 1), ("tcgen05.nothing;", 3), ("nonsense", 2)])
def test_command(tmp_path: Path, sync: str, code: int) -> None:
    good = module(NEIGHBOUR.format(sync="")).source.text
    source = tmp_path / "k.ptx"
    source.write_text(good.replace("st.shared.u32 [%r3], %r0;", f"st.shared.u32 [%r3], %r0;\n{sync}"))
    given = tmp_path / "l.json"
    given.write_text(launch().model_dump_json(exclude_none=True))
    result = CliRunner().invoke(
        app, ["kernel", str(source), "--launch", str(given), "--json", str(tmp_path / "o.json")]
    )
    assert result.exit_code == code, result.output
    assert (tmp_path / "o.json").exists() == (code != 2)


def test_command_writes_a_template(tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"
    source.write_text(module("").source.text)
    result = CliRunner().invoke(app, ["kernel", str(source), "--init-launch"])
    assert result.exit_code == 0 and json.loads(result.output)["kernel"] == "k"


# ---- readings ------------------------------------------------------------------------------------------------------


class Canned:
    """A run of which it is known what is found in it under each model."""

    def __init__(self, found: dict[str, str], events: int) -> None:
        self.found = found
        self.execution = SimpleNamespace(events=range(events))
        self.asked: list[str] = []

    def judgement(self, model: str, *_: object, **__: object) -> SimpleNamespace:
        self.asked.append(model)
        return SimpleNamespace(findings=findings(self.found[model]), flags=None)


def findings(rules: str) -> list[KernelFinding]:
    return [KernelFinding(rule, "data race", "", ()) for rule in rules.split()]


@pytest.mark.parametrize("events", [10, 10000])
@pytest.mark.parametrize(("later", "depends"), [("", True), ("a", False), ("b", False)])
def test_a_finding_depends_on_a_reading_if_it_is_gone_in_all_runs(events: int, later: str, depends: bool) -> None:
    others = OtherReadings([(name, "", name) for name in ("one", "two", "three")])  # type: ignore[misc]
    runs = [
        Canned({"default": "a b", "one": "a b", "two": "", "three": "a"}, events),
        Canned({"default": "a b", "one": "a b", "two": later, "three": "b"}, events),
    ]
    for run in runs:
        judged_so = SimpleNamespace(findings=findings(run.found["default"]), flags=None)
        others.look(run, frozenset(), judged_so)  # type: ignore[arg-type]
    verdict = KernelVerdict("k", launch(), "default", findings("a b"))
    verdict.readings = others.differences(verdict.findings)
    assert verdict.word == ("depends" if depends else "findings")
    assert runs[1].asked == (["one", "two", "three"] if events < 1000 else ["two"])


def test_a_reading_says_nothing_of_runs_about_which_it_was_not_asked() -> None:
    others = OtherReadings([(name, "", name) for name in ("one", "two")])  # type: ignore[misc]
    for run in (
        Canned({"default": "a", "one": "a", "two": ""}, 10000),
        Canned({"default": "a b", "one": "a b", "two": "b"}, 10000),
    ):
        judged_so = SimpleNamespace(findings=findings(run.found["default"]), flags=None)
        others.look(run, frozenset(), judged_so)  # type: ignore[arg-type]
    told = {one.name: [finding.rule for finding in one.gone] for one in others.differences(findings("a b"))}
    assert told == {"two": ["a"]}


def test_no_run_is_made_for_the_name_of_a_race_that_only_a_reading_has() -> None:
    read = module("ld.global.b32 %r10, [%d0];\nst.shared.b32 [%r2], %r10;\n")
    made, model = RunJudge(entry(read), run_launch(read, entry(read), launch(32))), load_model("ptx-9.4")
    runs = False, True, False
    names = [{one.rule for one in made.judgement(model, may_rerun=may).findings} for may in runs]
    assert names == [{"same-store-race"}, {"equal-store-race"}, {"equal-store-race"}]


SOME = "setp.lt.u32 %p3, %r0, 8;\n"


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize(
    ("barrier", "aligned"),
    [
        ("bar.sync 0", True),
        ("bar.sync 1, 32", True),
        ("bar.arrive 1, 64", True),
        ("barrier.sync.aligned 0", True),
        ("barrier.cluster.arrive.aligned", True),
        ("barrier.sync 0", False),
        ("barrier.sync 1, 32", False),
        ("barrier.arrive 1, 64", False),
        ("barrier.cluster.arrive", False),
    ],
)
def test_an_aligned_barrier_that_only_some_lanes_of_a_warp_execute(barrier: str, aligned: bool, guarded: bool) -> None:
    """All threads of the warp execute the same aligned barrier; without it, those that exit are not waited for."""
    body = f"@%p3 {barrier};" if guarded else f"@!%p3 bra E;\n{barrier};\nE:"
    verdict = judged(SOME + body + "\nst.shared.u32 [%r3], %r0;", threads=32)
    assert rules(verdict) == ({"undefined-instruction"} if aligned else set())


def test_lanes_that_only_exit_are_not_asked_for_at_a_barrier() -> None:
    assert judged(SOME + "@%p3 exit;\nbar.sync 0;\nst.shared.u32 [%r3], %r0;", threads=32).word == "clean"
    assert judged("setp.lt.u32 %p3, %r0, 32;\n@!%p3 bra E;\nbar.sync 1, 32;\nE:").word == "clean"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("ld.shared.u32 %r9, [%r3];", True),
        ("st.shared.u32 [%r3], %r0;\nld.shared.u32 %r9, [%r3];", False),
        ("st.shared.u16 [%r3], %h1;\nld.shared.u32 %r9, [%r3];", True),
        (copy(), False),
    ],
)
def test_shared_memory_that_nothing_writes(body: str, found: bool) -> None:
    read = module(body)
    options = CheckOptions(unwritten=True)
    verdict = judge(read, entry(read), launch(), load_model("ptx-9.4"), options)
    assert rules(verdict) == ({"unwritten-shared-memory"} if found else set())
    assert judged(body).word == "clean"
    assert lines(verdict)
