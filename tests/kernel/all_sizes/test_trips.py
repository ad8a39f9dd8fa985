"""Any trip count: more rounds show nothing new where rounds are said to repeat, and what stops it otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.examples import each_seed
from helpers.kernel.loops import judged, kept, random_copies, random_loop, random_ring, said, step, text
from helpers.places import ROOT

from memmodel import check_kernel
from memmodel.kernel.all_sizes import trips
from memmodel.kernel.all_sizes.period_insertion import Participant, PeriodInsertion, Rendezvous
from memmodel.kernel.all_sizes.periods import Cuts
from memmodel.kernel.launch import read_launch

pytestmark = pytest.mark.turns(2)

EXAMPLES = ROOT / "docs/examples/kernels"

# Each round: all threads store to a slot, meet, load what the other warp stored.
ROUND = """
L:
{slot}
shl.b32 %r12, %r10, 8;
add.u32 %r12, %r12, %r2;
add.u32 %r13, %r12, %r1;
st.shared.u32 [%r13], %r0;
{meet}
xor.b32 %r14, %r1, 128;
add.u32 %r14, %r14, %r12;
ld.shared.u32 %r15, [%r14];
{more}
add.u32 %r9, %r9, 1;
setp.lt.u32 %p3, %r9, %r8;
@%p3 bra L;
"""
BEFORE = "mov.u32 %r9, 0;\nmov.u32 %r21, 0;\nmov.u32 %r22, 1;\n@%p0 st.shared.u32 [s+4000], 0;\nbar.sync 0;"


def rounds(slot: str = "and.b32 %r10, %r9, 1;", meet: str = "bar.sync 0;", more: str = "") -> str:
    return text(ROUND.format(slot=slot, meet=meet, more=more), BEFORE)


NEXT = "add.u32 %r21, %r21, 1;\nsetp.eq.u32 %p9, %r21, 3;\nselp.u32 %r21, 0, %r21, %p9;"


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("source", "length"),
    [
        pytest.param(rounds(), 2, id="two slots"),
        pytest.param(rounds("rem.u32 %r10, %r9, 3;"), 3, id="three slots by a remainder"),
        pytest.param(rounds("mov.u32 %r10, %r21;", more=NEXT), 3, id="three slots by a counter that starts again"),
        pytest.param(
            rounds("mul.hi.u32 %r10, %r9, 0xAAAAAAAB;\nshr.u32 %r10, %r10, 1;\nmul.lo.u32 %r10, %r10, 3;\n"
                   "sub.u32 %r10, %r9, %r10;"), 3, id="three slots by the high half of a product"),
        pytest.param(rounds("shr.u32 %r10, %r9, 1;\nand.b32 %r10, %r10, 1;", more="bar.sync 0;"), 4, id="every other"),
        pytest.param(rounds("setp.eq.u32 %p8, %r9, 2;\nselp.u32 %r10, 1, 0, %p8;", more="bar.sync 0;"), 1,
                     id="another slot in the third round"),
        pytest.param(rounds(more="mul.wide.u32 %d1, %r9, 256;\nadd.s64 %d1, %d1, %d0;\ncvt.u64.u32 %d2, %r1;\n"
                                 "add.s64 %d1, %d1, %d2;\nst.global.u32 [%d1], %r0;"), 2, id="a tile for each round"),
        pytest.param(rounds("ld.shared.u32 %r10, [s+4000];\nbar.sync 0;",
                            more="xor.b32 %r17, %r10, 1;\n@%p0 st.shared.u32 [s+4000], %r17;\nbar.sync 0;"), 2,
                     id="a slot that is in memory"),
        pytest.param(rounds(more="atom.shared.add.u32 %r16, [s+4008], 1;\n@%p1 red.release.gpu.global.add.u32 "
                                 "[%d0], 1;\nfence.sc.gpu;\n@%p0 st.relaxed.gpu.global.u32 [%d0+64], 1;"), 2,
                     id="strong accesses on which nothing depends"),
        pytest.param(rounds("sub.u32 %r10, %r8, %r9;\nand.b32 %r10, %r10, 1;"), 2, id="counted from the end"),
        pytest.param(rounds(meet="setp.gt.u32 %p8, %r22, %r9;\n@%p8 bar.sync 0;\nbar.sync 0;"), 2, id="first rounds"),
    ],
)  # fmt: skip
def test_rounds_that_repeat(source: str, length: int) -> None:
    answer = said(source, 14)
    assert step(answer) == length, answer
    assert f"after {length} rounds" in answer
    assert kept(source, 14)


STORE = """mul.wide.u32 %d1, %r9, {by};
add.s64 %d1, %d1, %d0;
cvt.u64.u32 %d2, %r1;
add.s64 %d1, %d1, %d2;
st.global.u32 [%d1], %r0;
"""
LATER = """setp.eq.u32 %p7, %r9, 0;
@%p7 ld.global.u32 %r15, [%d0+6400];
"""
LAST = "setp.ne.u32 %p8, %r9, 20;"
POLLED = text(
    "setp.eq.u32 %p2, %r0, 32;\n@%p0 bra L;\n@!%p2 bra E;\n"
    "W:\nld.acquire.gpu.global.u32 %r17, [%d0];\nsetp.lt.u32 %p7, %r17, 14;\n@%p7 bra W;\n"
    "ld.global.u32 %r18, [%d0+64];\nbra E;\nL:\nst.global.u32 [%d0+64], %r9;\n"
    "red.release.gpu.global.add.u32 [%d0], 1;\n"
    "add.u32 %r9, %r9, 1;\nsetp.lt.u32 %p3, %r9, %r8;\n@%p3 bra L;\nE:",
    "mov.u32 %r9, 0;\n@%p0 st.global.u32 [%d0], 0;\nbar.sync 0;",
)
"""Another thread waits for 14 rounds, and the next one writes what it reads then."""


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("source", "why"),
    [
        (rounds(meet=f"{LAST}\n@%p8 bar.sync 0;"), "whether bar.sync is carried out"),
        (rounds("shr.u32 %r10, %r9, 4;\nand.b32 %r10, %r10, 1;", more="bar.sync 0;"), "an operand of st.shared"),
        (rounds("min.u32 %r10, %r9, 20;\nand.b32 %r10, %r10, 1;"), "an operand of st.shared"),
        (rounds("add.u32 %r10, %r9, 250;\ncvt.u32.u8 %r10, %r10;\nshr.u32 %r10, %r10, 7;", more="bar.sync 0;"),
         "an operand of st.shared"),
        (rounds("cvt.rn.f32.u32 %f1, %r9;\nsetp.gt.f32 %p8, %f1, 0f41A00000;\nselp.u32 %r10, 1, 0, %p8;"),
         "an operand of st.shared"),
        (rounds("ld.shared.u32 %r17, [s+4000];\nbar.sync 0;\nshr.u32 %r10, %r17, 4;\nand.b32 %r10, %r10, 1;",
                more="add.u32 %r17, %r17, 1;\n@%p0 st.shared.u32 [s+4000], %r17;\nbar.sync 0;"),
         "is another number in each round"),
        (rounds(more="add.u32 %r23, %r9, 32;\nmul.lo.u32 %r23, %r23, 32;\nbar.sync 1, 64;\n"
                     "setp.lt.u32 %p8, %r9, %r23;\n@!%p8 bra L;\nmul.lo.u32 %r24, %r8, %r9;\nand.b32 %r24, %r24, 64;\n"
                     "setp.eq.u32 %p8, %r24, 4096;\n@%p8 bar.sync 2;"), "whether bar.sync is carried out"),
        (rounds(more="@%p0 atom.shared.add.u32 %r16, [s+4000], 1;\nbar.sync 0;\nld.shared.u32 %r17, [s+4000];\n"
                     "setp.gt.u32 %p7, %r17, 50;\n@%p7 st.shared.u32 [s+4008], %r0;"), "whether st.shared.u32"),
        (rounds(more="add.u32 %r16, %r2, %r1;\nst.shared.u32 [%r16+2048], %r9;\nbar.sync 0;\n"
                     "ld.shared.u32 %r17, [s+2048];\nsetp.gt.u32 %p7, %r17, 50;\n@%p7 st.shared.u32 [s+4008], %r0;"),
         "whether st.shared.u32"),
        (rounds("ld.shared.u32 %r17, [s+4000];\nbar.sync 0;\nsetp.gt.u32 %p7, %r17, 50;\nselp.u32 %r10, 1, 0, %p7;",
                more="@%p0 st.relaxed.cta.shared.u32 [s+4000], %r9;\nbar.sync 0;"), "an operand of st.shared"),
        (POLLED, "red.release.gpu.global.add.u32 at line 32 may meet others in each round"),
        (rounds(more=STORE.format(by=128)), "may not lie apart"),
        (rounds(more=STORE.format(by=256) + LATER), "may not lie apart"),
    ],
    ids=["a barrier that one round leaves out", "a slot that lasts for 16 rounds", "a slot that stays at last",
         "a byte that wraps", "floating point", "memory", "a product of two numbers",
         "a sum of atomic operations", "a number that all lanes store", "a number in a strong store",
         "a counter that is polled", "stores that overlap", "stores over what comes later"],
)  # fmt: skip
def test_rounds_that_need_not_repeat(source: str, why: str) -> None:
    answer = said(source, 14)
    assert answer.startswith("not shown: how often the loop"), answer
    assert why in answer


BARRIER = "bar.sync 0;\n"


def bad(register: str, value: int) -> str:
    """A race if a register holds a value."""
    return f"setp.eq.u32 %p7, {register}, {value};\n@%p7 st.shared.u32 [s+4008], %r0;\n"


def at_top(body: str, before: str = "", behind: str = "") -> str:
    """A loop that is left at its head."""
    head = "L:\nsetp.ge.u32 %p3, %r9, %r8;\n@%p3 bra END;\n"
    return text(f"{head}{body}\nadd.u32 %r9, %r9, 1;\nbra L;\nEND:\n{behind}", f"{BEFORE}\n{before}")


def counted(body: str, before: str = "", behind: str = "") -> str:
    return text(
        f"L:\n{BARRIER}{body}\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p3, %r9, %r8;\n@%p3 bra L;\n{behind}",
        f"{BEFORE}\n{before}",
    )


CHAIN = "".join(f"mov.u32 %r{40 + n}, %r{41 + n};\n" for n in range(20))
FOURTEEN = "".join(f"mov.u32 %r{40 + n}, 14;\n" for n in range(20))
LOADED = "".join(f"mov.u32 %r{40 + n}, %r30;\n" for n in range(20))
EACH = ("ld.global.u32 %r30, [%d0];\nmul.wide.u32 %d5, %r0, 4;\nadd.s64 %d5, %d5, %d0;\n"
        f"ld.global.u32 %r60, [%d5];\n{LOADED}")  # fmt: skip
NOT_14 = "setp.ne.u32 %p7, %r30, 14;\n@%p7 st.shared.u32 [s+4008], %r0;\n"
COPIED = "@%p0 st.global.u32 [%d0], %r9;\nbar.sync 0;\n@%p0 cp.async.ca.shared.global [s+4000], [%d0], 4;\n"


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("source", "why"),
    [
        *(pytest.param(at_top(f"{BARRIER}{bad('%r29', 1)}shr.u32 %r31, %r9, 4;\n{step}", "mov.u32 %r29, 0;"),
                       "whether st.shared.u32 is carried out", id=step.split(".")[0])
          for step in ("popc.b32 %r29, %r31;", "prmt.b32 %r29, %r31, 0, 0x4440;", "lop3.b32 %r29, %r31, 0, 0, 0xF0;")),
        pytest.param(at_top(f"{BARRIER}setp.ne.u32 %p7, %r40, 14;\n@%p7 st.shared.u32 [s+4008], %r0;\n{CHAIN}",
                            f"{FOURTEEN}mov.u32 %r60, %r8;"), "what a register holds after a period",
                     id="a long chain"),
        pytest.param(at_top(f"{BARRIER}addc.u32 %r30, 0, 0;\nxor.b32 %r30, %r30, 1;\nsub.cc.u32 %r31, 0, %r30;",
                            "add.cc.u32 %r31, 0, 0;", f"addc.u32 %r30, 0, 0;\n{bad('%r30', 1)}"),
                     "whether st.shared.u32 is carried out", id="a carry from round to round"),
        pytest.param(counted("sub.s32 %r30, 20, %r9;\nmin.relu.s32 %r31, %r30, 100;\nadd.s32 %r32, %r9, %r31;\n"
                             f"{bad('%r32', 25)}"), "whether st.shared.u32 is carried out", id="not below zero"),
        pytest.param(counted(f"and.b32 %r31, %r50, 16;\n{bad('%r31', 16)}and.b32 %r50, %r50, 0xFFFF0000;\n"
                             "or.b32 %r50, %r50, %r9;", "ld.global.u32 %r50, [%d0];\nand.b32 %r50, %r50, 0xFFFF0000;",
                             "st.relaxed.gpu.global.u32 [%d0+64], %r50;\n"
                             "@%p0 atom.relaxed.gpu.global.or.b32 %r50, [%d0+128], 0;"),
                     "whether st.shared.u32 is carried out", id="known bits of an unknown word"),
        pytest.param(counted("", behind="@%p0 st.volatile.shared.u32 [s+4000], %r9;\nbar.sync 0;\n"
                                        f"ld.shared.u32 %r30, [s+4000];\n{NOT_14}"),
                     "whether st.shared.u32 is carried out", id="a strong store"),
        pytest.param(counted("", behind=f"{COPIED}cp.async.wait_all;\nbar.sync 0;\nld.shared.u32 %r30, [s+4000];\n"
                                        f"{NOT_14}"), "whether st.shared.u32 is carried out", id="what is copied"),
        pytest.param(counted("", behind=f"{COPIED}cp.async.wait_all;\nbar.sync 0;\nld.global.u32 %r30, [%d0];\n"
                                        f"{NOT_14}"), "whether st.shared.u32 is carried out", id="what was copied"),
        pytest.param(counted("", behind="mov.b64 %d5, trips;\ncvta.param.u64 %d5, %d5;\nld.u32 %r30, [%d5];\n"
                                        f"{NOT_14}"), "whether st.shared.u32 is carried out", id="a generic parameter"),
        pytest.param(counted("", behind="@!%p0 mov.u32 %r9, 14;\nst.global.u32 [%d0], %r9;"),
                     "may no longer store what others store", id="equal numbers"),
        pytest.param(at_top(f"{BARRIER}st.global.u32 [%d0+256], %r40;\nbar.sync 0;\n{CHAIN}", EACH),
                     "may no longer store what others store", id="equal data"),
        pytest.param(text("setp.gt.u32 %p5, %r8, 20;\n@%p5 bra X;\nbra Z;\nX:\nmov.u32 %r30, 4;\nbra Y;\nZ:\n"
                          "mov.u32 %r30, 3;\nY:\nL:\nbar.sync 0;\nadd.u32 %r9, %r9, 1;\n"
                          "setp.lt.u32 %p6, %r9, %r30;\n@%p6 bra L;", BEFORE), "a parameter", id="a bound by a branch"),
        pytest.param(text("mov.u32 %r7, %nclusterid.x;\nL:\nbar.sync 0;\nadd.u32 %r9, %r9, 1;\n"
                          "setp.lt.u32 %p6, %r9, %r7;\n@%p6 bra L;", BEFORE), "a parameter", id="clusters of the grid"),
    ],
)  # fmt: skip
def test_what_comes_late(source: str, why: str) -> None:
    """Clean with so few rounds, and not with more."""
    answer = said(source, 14)
    assert answer.startswith("not shown: how often the loop"), answer
    assert why in answer


def test_addresses_stay_aligned() -> None:
    """A word at an even address: of an odd number of rounds it is misaligned."""
    source = counted("", behind="mul.wide.u32 %d5, %r9, 2;\nadd.s64 %d5, %d5, %d0;\nld.global.u32 %r30, [%d5];")
    assert step(said(source, 14)) == 2
    assert judged(source, 14).word == "clean"
    assert judged(source, 15).word == "findings"


def test_the_parity_behind_a_loop() -> None:
    """A phase more in each round: what waits behind for a parity is right for every other number of rounds."""
    source = counted(
        "mbarrier.arrive.shared.b64 _, [%r4];\nbar.sync 0;",
        "@%p0 mbarrier.init.shared.b64 [%r4], 64;\nbar.sync 0;",
        "W:\nmbarrier.try_wait.parity.shared.b64 %p6, [%r4], 1;\n@!%p6 bra W;",
    )
    assert step(said(source, 14)) == 2
    assert kept(source, 14)


def test_a_loop_with_a_wait_at_its_head() -> None:
    """The register of the test decides also whether there is another round."""
    source = text(
        "L:\nmbarrier.try_wait.parity.shared.b64 %p6, [%r4], 1;\n@!%p6 bra L;\nbar.sync 0;\n"
        "setp.lt.u32 %p6, %r9, %r8;\nadd.u32 %r9, %r9, 1;\n@%p6 bra L;",
        f"{BEFORE}\n@%p0 mbarrier.init.shared.b64 [%r4], 64;\nbar.sync 0;",
    )
    assert "no trip count depends on a parameter" not in said(source, 14)


def test_too_few_rounds() -> None:
    assert "no state comes back twice in 5 rounds" in said(rounds(), 5)


@pytest.mark.share(3)
@each_seed(3)
@pytest.mark.parametrize(("made", "trips"), [(random_loop, 14), (random_ring, 20), (random_copies, 14)])
def test_random_loops(seed: int, made: Callable[[int], str], trips: int) -> None:
    """Slots in shared memory with barriers; rings of mbarrier objects; copies that run ahead, and tiles that go on."""
    assert kept(made(seed), trips) is not False


def example(name: str, **values: int) -> tuple[str, str]:
    """The verdict and what is said of any trip count, with other values of parameters."""
    launch = read_launch(EXAMPLES / f"{name}.launch.json")
    params = [
        one.model_copy(update={"value": values[one.name]} if one.name in values else {"bytes": one.bytes and 1 << 20})
        for one in launch.params
    ]
    verdict = check_kernel(
        EXAMPLES / f"{name}.ptx", launch.model_copy(update={"params": tuple(params)}), any_trips=True
    )
    return verdict.word, verdict.beyond["any trip count"]


def test_a_ring_of_mbarrier_objects() -> None:
    """Six tiles are too few for a proof of their own: there is one for longer launches, of each number of tiles."""
    word, answer = example("tma_pipeline", tiles=6)
    assert word == "clean" and answer.startswith("yes, for every tma_pipeline_param_2 (up to "), answer
    assert "repeat what they do after 4 rounds" in answer


@pytest.mark.skipif(not os.environ.get("MEMMODEL_KERNEL_ALL"), reason="half a minute")
def test_a_gemm_with_specialized_warps() -> None:
    word, answer = example("gemm_sm90", K=1024)
    assert (word, step(answer)) == ("clean", 384)


# ---- what a loop that touches no memory decides ------------------------------------------------------------------

FIXED = """
mov.u32 %r20, 0;
F:
bar.sync 0;
st.shared.u32 [s+4012], 5;
add.u32 %r20, %r20, 1;
setp.lt.u32 %p5, %r20, {};
@%p5 bra F;
"""
COUNTED = "mov.u32 %r30, 0;\nM:\nadd.u32 %r30, %r30, 1;\n{}\nsetp.lt.u32 %p4, %r30, %r8;\n@%p4 bra M;\n"
ALL_STORE = "st.shared.u32 [s+4008], %r0;"
FIFTY = "setp.gt.u32 %p7, {}, 50;\n"
MINUS_FIFTY = "0xFFFFFFCE"


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(FIFTY + "@!%p7 bra Z;\n" + ALL_STORE + "\nZ:", id="a branch"),
        pytest.param(FIFTY + "@%p7 " + ALL_STORE, id="a guard"),
        pytest.param(FIFTY + "selp.u32 %r31, 0, %r1, %p7;\nadd.u32 %r31, %r31, %r2;\nst.shared.u32 [%r31], %r0;",
                     id="an address, by a select"),
        pytest.param("sub.u32 %r31, {}, 51;\nshr.u32 %r31, %r31, 31;\nmul.lo.u32 %r31, %r31, %r1;\n"
                     "add.u32 %r31, %r31, %r2;\nst.shared.u32 [%r31], %r0;", id="an address, by arithmetic"),
        pytest.param("min.u32 %r31, {}, 60;\nshl.b32 %r31, %r31, 2;\nadd.u32 %r31, %r31, %r2;\n"
                     "@%p0 st.shared.u32 [s+56], 0;\n@%p0 st.shared.u32 [s+240], 1;\nbar.sync 0;\n"
                     "ld.shared.u32 %r32, [%r31];\nsetp.eq.u32 %p7, %r32, 1;\n@%p7 " + ALL_STORE, id="a table"),
        pytest.param("@%p0 st.shared.u32 [s+4000], {};\nbar.sync 0;\nld.shared.u32 %r31, [s+4000];\n"
                     "setp.gt.u32 %p7, %r31, 50;\n@%p7 " + ALL_STORE, id="memory"),
        pytest.param("shfl.sync.idx.b32 %r31, {}, 0, 31, -1;\nsetp.gt.u32 %p7, %r31, 50;\n@%p7 " + ALL_STORE,
                     id="a shuffle"),
        pytest.param(f"add.cc.u32 %r31, {{}}, {MINUS_FIFTY};\naddc.u32 %r31, 0, 0;\nsetp.ne.u32 %p7, %r31, 0;\n"
                     "@%p7 " + ALL_STORE, id="a carry"),
    ],
)  # fmt: skip
def test_results_of_a_loop_that_only_computes(behind: str) -> None:
    """The loop touches no memory, but how often it runs decides what comes after it."""
    source = text(FIXED.format(3) + COUNTED.format("") + behind.format("%r30"), BEFORE)
    assert (judged(source, 14).word, judged(source, 100).word) == ("clean", "findings")
    assert said(source, 14).startswith("not shown: how often the loop")


def test_the_carry_of_a_loop_that_only_computes() -> None:
    """The carry that the last round leaves is the only result."""
    left = COUNTED.format(f"add.cc.u32 %r31, %r30, {MINUS_FIFTY};")
    source = text(f"{FIXED.format(3)}{left}addc.u32 %r31, 0, 0;\nsetp.ne.u32 %p7, %r31, 0;\n@%p7 {ALL_STORE}", BEFORE)
    assert (judged(source, 14).word, judged(source, 100).word) == ("clean", "findings")
    assert said(source, 14).startswith("not shown: how often the loop")


def test_a_trip_count_by_a_carry() -> None:
    count = f"add.cc.u32 %r31, %r8, {MINUS_FIFTY};\naddc.u32 %r32, 3, 0;\n"
    source = text(f"{count}{FIXED.format('%r32')}setp.gt.u32 %p7, %r20, 3;\n@%p7 {ALL_STORE}", BEFORE)
    assert (judged(source, 14).word, judged(source, 100).word) == ("clean", "findings")
    assert said(source, 14).startswith("not shown: how often the loop")


def test_a_trip_count_by_a_test_of_a_phase() -> None:
    """Whether the phase is over depends on an arrive that only some values of the parameter bring."""
    arrive = (
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\nbar.sync 0;\nsetp.gt.u32 %p8, %r8, 50;\n"
        "and.pred %p8, %p8, %p0;\n@%p8 mbarrier.arrive.shared::cta.b64 %d5, [bar];\nbar.sync 0;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 %p9, [bar], 0;\nselp.u32 %r32, 4, 3, %p9;\n"
    )
    source = text(f"{arrive}{FIXED.format('%r32')}setp.gt.u32 %p7, %r20, 3;\n@%p7 {ALL_STORE}", BEFORE)
    assert said(source, 14).startswith("not shown: how often the loop")


def test_a_loop_whose_results_nobody_reads() -> None:
    source = text(FIXED.format(3) + COUNTED.format(f"add.cc.u32 %r31, %r30, {MINUS_FIFTY};"), BEFORE)
    assert said(source, 14) == "yes: no trip count depends on a parameter"


TOKENS = """
{init}
bar.sync 0;
mbarrier.arrive.shared::cta.b64 %d5, [%r4];
L:
{round}
add.u32 %r9, %r9, 1;
setp.lt.u32 %p3, %r9, %r8;
@%p3 bra L;
"""
INITS = "@%p0 mbarrier.init.shared::cta.b64 [%r4], 64;"
WAIT = "{n}: mbarrier.try_wait.shared::cta.b64 %p5, [%r4], {state};\n@!%p5 bra {n};"


@pytest.mark.parametrize(
    ("round_", "shown"),
    [
        ("mbarrier.arrive.shared::cta.b64 %d6, [%r4];\n" + WAIT.format(n="W", state="%d6"), True),
        (WAIT.format(n="W", state="%d5") + "\nmbarrier.arrive.shared::cta.b64 %d5, [%r4];", False),
    ],
    ids=["of the same round", "of the round before"],
)
def test_states_of_mbarrier_objects(round_: str, shown: bool) -> None:
    """A state that one round leaves to the next one is a number that goes on."""
    first = WAIT.format(n="F", state="%d5") if shown else ""
    source = text(TOKENS.format(init=INITS, round=round_).replace("L:\n", f"{first}\nL:\n", 1), "mov.u32 %r9, 0;")
    assert (step(said(source, 8)) is not None) is shown


# ---- parameters that decide no trip count ------------------------------------------------------------------------

ARRIVED = """@%p0 mbarrier.init.shared::cta.b64 [%r4], {count};
bar.sync 0;
mbarrier.arrive.shared::cta.b64 _, [%r4];
W:
mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r4], {parity};
@!%p6 bra W;
"""
HALF = "shr.u32 %r31, %r8, 6;\n"
MOVED = """cvt.u64.u32 %d1, %r1;
mul.wide.u32 %d2, %r8, 512;
add.s64 %d1, %d1, %d2;
add.s64 %d1, %d1, %d0;
st.global.u32 [%d1], %r0;
"""
AT_R31 = "shl.b32 %r31, %r31, 2;\nadd.u32 %r31, %r31, %r2;\nst.shared.u32 [%r31], %r0;\n"


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("body", "by"),
    [
        pytest.param(f"{HALF}shr.u32 %r31, %r0, %r31;\n{AT_R31}", None, id="an address"),
        pytest.param(f"{HALF}setp.ne.u32 %p7, %r31, 0;\nselp.u32 %r31, 0, %r0, %p7;\n{AT_R31}", None, id="a select"),
        pytest.param(f"@%p0 st.shared.u32 [s+4000], %r8;\nbar.sync 0;\nld.shared.u32 %r31, [s+4000];\n"
                     f"setp.gt.u32 %p7, %r31, 50;\n@%p7 {ALL_STORE}", None, id="memory"),
        pytest.param(HALF + "add.u32 %r31, %r31, 1;\n@%p1 bar.sync %r31, 64;\n@!%p1 bar.sync 1, 64;", None,
                     id="a barrier"),
        pytest.param(HALF + "add.u32 %r31, %r31, 64;\n" + ARRIVED.format(count="%r31", parity=0), None, id="a count"),
        pytest.param(HALF + "and.b32 %r31, %r31, 1;\n" + ARRIVED.format(count=64, parity="%r31"), 128, id="a parity"),
        pytest.param("setp.lt.u32 %p7, %r0, 10;\nsetp.lt.and.u32 %p7, %r0, %r8, %p7;\n@%p7 st.shared.u32 [%r2], 1;", 1,
                     id="a bound of an index"),
        pytest.param(MOVED, 1, id="a place that moves"),
        pytest.param(MOVED + "ld.global.u32 %r31, [%d0+51200];", None, 
                     id="a place that meets another"),
    ],
)  # fmt: skip
def test_what_a_parameter_decides_beside_trip_counts(body: str, by: int | None) -> None:
    """Clean with 14; of those that nothing is shown of, most are wrong with 100."""
    answer = said(text(FIXED.format(3) + body, BEFORE), 14)
    assert step(answer) == by, answer
    assert by or "not shown: no trip count depends on a parameter, but trips may decide something else" in answer


def test_a_launch_that_cannot_be_run_is_answered() -> None:
    decides = "ld.global.u32 %r31, [%d0];\nsetp.eq.u32 %p7, %r31, 1;\n@%p7 bar.sync 0;"
    assert said(text(decides), 14) == "not shown: the launch itself could not be run to its end"


# ---- loops in loops, several schedules, meetings ----------------------------------------------------------------


def test_a_loop_in_a_loop_with_the_same_parameter() -> None:
    inner = "mov.u32 %r10, 0;\nM:\nbar.sync 0;\nadd.u32 %r10, %r10, 1;\nsetp.lt.u32 %p4, %r10, {};\n@%p4 bra M;"
    assert "so does how often a loop in it runs" in said(counted(inner.format("%r8")), 14)
    assert step(said(counted(inner.format("3")), 14)) == 1


def test_what_holds_in_each_of_several_schedules() -> None:
    """The parameter grows by a multiple of both steps, and no further than in the schedule that allows least."""
    schedules: list[Any] = [SimpleNamespace(step=2, most=30), SimpleNamespace(step=3, most=8)]
    for order in (schedules, schedules[::-1]):
        joined = trips._joined([SimpleNamespace(**vars(schedule)) for schedule in order])  # type: ignore[misc]
        assert (joined.step, joined.most) == (6, 4)


def meetings(late: int, turns: int = 1) -> str | None:
    """Why no period can be inserted where one thread arrives in each round and another waits some rounds later.

    Each thread has ten events in a round. `turns`: phases of a round.
    """
    sides: dict[Rendezvous, list[Participant]] = {}
    for round_ in range(-3, 4):
        for turn in range(max(turns, 1)):
            for thread, number in ((0, round_), (1, round_ + late)):
                if 0 <= number < 4:
                    what = Rendezvous("object", round_ * turns + turn)
                    order = 10 * number + 2 * turn + thread
                    sides.setdefault(what, []).append(Participant(thread, order, thread == 1, False, 0))
    run: Any = SimpleNamespace(threads=[SimpleNamespace(events=[]) for _ in range(2)])
    ends: Any = [SimpleNamespace(events=10 * number) for number in (1, 2, 3)]
    body: Any = [SimpleNamespace(at_line="wait at line 7")]
    site = {thread: Cuts(0, 1, 2) for thread in range(2)}
    return PeriodInsertion(run, sides, body, {0: ends, 1: ends}, site).why_not()


def test_a_phase_lasts_for_a_period_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PeriodInsertion, "_by_parity", lambda self, participant: False)
    assert [meetings(late, turns) for late in (0, 1) for turns in (1, 2)] == [None] * 4
    assert meetings(2) == meetings(3) == "a phase lasts for more than a period, wait at line 7"
    assert meetings(0, 0) == "each round adds to one phase, wait at line 7"


def test_a_parity_behind_a_loop_changes_with_an_odd_number_of_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PeriodInsertion, "_by_parity", lambda self, participant: participant.waits)
    assert (meetings(0, 1), meetings(0, 2)) == (
        "the parity of a phase is another one in longer loops, wait at line 7",
        None,
    )
