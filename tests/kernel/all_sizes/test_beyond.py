"""Beyond one launch: is a yes for every grid and for every trip count right, and what stops it otherwise?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.kernel.samples import entry, launch, module

from memmodel.base.labels import Fence
from memmodel.cat.load import load_model
from memmodel.isa.lowered import body_of
from memmodel.kernel.all_sizes import grids
from memmodel.kernel.all_sizes.operand_roles import uses_of
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.trace.events import TraceEvent
from memmodel.ptx.vocabulary import Scope, Sem

TILE = """
mov.u32 %r20, %ctaid.x;
mov.u32 %r21, %ntid.x;
mad.lo.s32 %r22, %r20, %r21, %r0;
{between}
mul.wide.u32 %d1, %r22, 4;
add.s64 %d2, %d0, %d1;
st.global.u32 [%d2], %r0;
"""
REACH = "as long as buffers reach and no number wraps"
YES = f"yes, with any number of CTAs along x, {REACH}: CTAs do the same, each on its own"
ADDRESS = "not shown: the address of st.global.u32 at line "


def any_grid(body: str, ctas: int = 3) -> str:
    read = module(body, ".global .align 4 .u32 table[4] = {0, 1, 2, 0};")
    return judge(read, entry(read), launch(ctas=ctas), load_model("ptx-9.4"), CheckOptions(any_grid=True)).beyond[
        "any grid"
    ]


@pytest.mark.parametrize(
    ("between", "answer"),
    [
        ("", YES + " 256 bytes of p, 256 bytes apart"),
        ("sub.s32 %r22, %r22, %r20;", "not shown: CTAs touch 256 bytes of p, 252 bytes apart"),
        ("and.b32 %r22, %r22, 127;", ADDRESS + "24 is not linear"),
        ("setp.ge.u32 %p5, %r22, 900;\n@%p5 bra X;\nX:", "not shown: bra at line 22 is guarded"),
        ("red.global.add.u32 [%d0], 1;", "not shown: CTAs may meet at red.global.add.u32 at line 21"),
    ],
)
def test_any_grid(between: str, answer: str) -> None:
    assert any_grid(TILE.format(between=between)).startswith(answer)


@pytest.mark.parametrize(
    "between",
    [
        pytest.param("st.shared.u32 [%r3], 0;\nld.shared.u32 %r23, [%r3];", id="at a place that all CTAs have"),
        pytest.param(
            ".local .align 4 .b8 l[4];\nst.local.u32 [l], 0;\nst.shared.u32 [%r3], %r20;\nld.local.u32 %r23, [l];",
            id="beside one of the CTA in another space",
        ),
    ],
)
def test_a_number_that_all_ctas_keep_in_memory_moves_no_address(between: str) -> None:
    assert any_grid(TILE.format(between=f"{between}\nadd.u32 %r22, %r22, %r23;")).startswith(YES)


ONE = """
mov.u32 %r20, %ctaid.x;
mov.u32 %r22, %r20;
{between}
mul.wide.u32 %d1, %r22, 4;
add.s64 %d2, %d0, %d1;
@%p0 st.global.u32 [%d2], %r0;
"""
THIRD = "mul.hi.u32 %r23, %r20, 0x55555556;\nmul.lo.u32 %r23, %r23, 3;\nsub.u32 %r22, %r20, %r23;"


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(THIRD, id="a remainder by the high half of a product"),
        pytest.param("cvt.u32.u8 %r22, %r20;", id="a cut number"),
        pytest.param("cvt.rn.f32.u32 %f1, %r20;\ncvt.rzi.u32.f32 %r22, %f1;", id="a rounded number"),
        pytest.param("mov.u32 %r23, 1;\nshl.b32 %r22, %r23, %r20;", id="a power"),
        pytest.param("mul.lo.u32 %r22, %r20, %r20;", id="a square"),
        pytest.param(
            "mov.u32 %r23, %nctaid.x;\nsub.u32 %r23, %r23, 2;\nmul.lo.u32 %r22, %r20, %r23;", id="the grid's size"
        ),
        pytest.param("mov.u32 %r23, %nctaid.x;\nadd.u32 %r22, %r20, %r23;", id="a sum with the grid's size"),
        pytest.param("min.u32 %r22, %r20, 8;", id="a minimum"),
        pytest.param(
            "@%p0 st.shared.u32 [s], %r20;\nbar.sync 0;\nld.shared.u32 %r22, [s];", id="through shared memory"
        ),
        pytest.param(
            "mul.wide.u32 %d3, %r20, 4;\nmov.u64 %d4, table;\nadd.s64 %d5, %d4, %d3;\nld.global.u32 %r22, [%d5];",
            id="a table",
        ),
        pytest.param("shfl.sync.idx.b32 %r22|%p6, %r20, 0, 31, -1;", id="a shuffle"),
    ],
)
def test_addresses_that_repeat_later_are_not_linear(between: str) -> None:
    assert "is not linear in the number of the CTA" in any_grid(ONE.format(between=between), ctas=2)


def test_steps_of_accesses_differ() -> None:
    other = (
        "sub.u32 %r23, 40, %r20;\nmul.wide.u32 %d3, %r23, 4;\nadd.s64 %d4, %d0, %d3;\n@%p0 ld.global.u32 %r24, [%d4];"
    )
    assert any_grid(ONE.format(between=other)).startswith("not shown: CTAs touch bytes of p that are not evenly spaced")


def test_a_grid_of_one_dimension() -> None:
    assert any_grid(ONE.format(between="mov.u32 %r24, %ctaid.y;\nadd.u32 %r22, %r22, %r24;")).startswith(YES)


@pytest.mark.parametrize(
    "step",
    [
        "mov.u32 %r20, %ctaid.x;\nmov.u32 %r24, 32;\nshl.b32 %r25, %r20, 4;\nadd.u32 %r24, %r24, %r25;\n"
        "@%p0 cp.async.bulk.prefetch.L2.global [%d0], %r24;",
        "mov.u32 %r20, %ctaid.x;\nand.b32 %r24, %r20, 1;\nadd.u32 %r24, %r24, 1;\nbar.sync %r24;",
    ],
    ids=["a size", "a barrier"],
)
def test_operands_that_differ(step: str) -> None:
    assert "depends on the number of the CTA" in any_grid(step, ctas=2)


MATRIX = """
mov.u32 %r20, %ctaid.x;
mov.u32 %r21, %ctaid.y;
mul.lo.u32 %r22, %r20, {row};
mad.lo.u32 %r22, %r21, 128, %r22;
shr.u32 %r23, %r0, 5;
mad.lo.u32 %r22, %r23, 256, %r22;
and.b32 %r24, %r1, 127;
add.u32 %r22, %r22, %r24;
cvt.u64.u32 %d1, %r22;
add.s64 %d2, %d0, %d1;
st.global.u32 [%d2], %r0;
"""
"""A tile has two rows of 128 bytes, and two tiles lie beside each other in rows of 256 bytes."""


@pytest.mark.parametrize(("row", "along"), [(512, "yes, with any number of CTAs along x"), (256, "not shown")])
def test_a_matrix_of_tiles(row: int, along: str) -> None:
    """Rows of tiles may be added; what a row is longer by is in the next one."""
    read = module(MATRIX.format(row=row))
    given = launch().model_copy(update={"grid": (3, 2, 1)})
    verdict = judge(read, entry(read), given, load_model("ptx-9.4"), CheckOptions(any_grid=True))
    assert verdict.beyond["any grid"].startswith(f"along x: {along}")
    assert "; along y: not shown: CTAs touch" in verdict.beyond["any grid"]


SECOND = "mov.u32 %r20, %ctaid.x;\nsetp.eq.u32 %p5, %r20, 1;\n"
TWICE = (
    SECOND
    + """mov.u32 %r9, 0;
L:
setp.eq.u32 %p6, %r9, %r20;
{step}
add.u32 %r9, %r9, 1;
setp.lt.u32 %p7, %r9, 2;
@%p7 bra L;
"""
)
OBJECT = SECOND + "@!%p0 bra E;\nmbarrier.init.shared::cta.b64 [bar], 9;\nadd.u32 %r21, %r20, 1;\n{step}\nE:"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        pytest.param(SECOND + "@%p5 st.relaxed.cta.shared.u32 [s], 1;\n@!%p5 st.relaxed.cta.shared.u32 [s], 1;",
                     "st.relaxed", id="a strong store of another line"),
        pytest.param(SECOND + "mad.lo.u32 %r21, %r20, 64, %r2;\nst.relaxed.cta.shared.u32 [%r21], 1;", "st.relaxed",
                     id="a strong store elsewhere"),
        pytest.param(OBJECT.format(step="mbarrier.arrive.shared::cta.b64 _, [bar], %r21;"), "mbarrier.arrive",
                     id="other counts of arrivals"),
        pytest.param(TWICE.format(step="mad.lo.u32 %r24, %r20, %r9, 1;\nbar.sync %r24;"), "bar.sync",
                     id="other generations"),
        pytest.param(SECOND + "@%p5 st.global.u32 [%d0], 1;\n@!%p5 st.global.u32 [%d0], 1;", "st.global",
                     id="a store of another line"),
        pytest.param(TWICE.format(step="bar.sync 0;\n@%p6 st.global.u32 [%d0], 1;"), "st.global",
                     id="a store in another round"),
        pytest.param(SECOND + "shl.b32 %r21, %r20, 3;\nadd.u32 %r21, %r21, 8;\n"
                              "cp.async.cg.shared.global [s], [%d0], 16, %r21;", "cp.async", id="more bytes"),
        pytest.param(SECOND + "mad.lo.u32 %r21, %r20, 64, %r2;\nst.shared.u32 [%r21], 1;", "st.shared",
                     id="a store elsewhere"),
        pytest.param(SECOND + "mov.u64 %d1, table;\nselp.b64 %d2, %d0, %d1, %p5;\nst.global.u32 [%d2], 1;",
                     "st.global", id="a store to another buffer"),
        pytest.param(SECOND + "@%p5 st.shared.u32 [s], 1;", "st.shared", id="a store more"),
    ],
)  # fmt: skip
def test_what_the_run_shows(body: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is compared as well: what CTAs did has to be the same, whatever the text says of them."""
    assert any_grid(body, ctas=2).startswith("not shown: ")
    monkeypatch.setattr(grids, "_uneven", lambda step, dependences: None)
    answer = any_grid(body, ctas=2)
    assert answer.startswith("not shown: CTAs 0 and 1 differ at " + what), answer


TRIPS = """ld.param.u32 %r8, [k_param_0];
mov.u32 %r9, 0;
L: add.s32 %r9, %r9, 1;
{step}
setp.lt.u32 %p3, %r9, %r8;
@%p3 bra L;"""
FIXED = """mov.u32 %r9, 0;
L: add.s32 %r9, %r9, 1;
bar.sync 0;
{step}
setp.lt.u32 %p3, %r9, {count};
@%p3 bra L;
E:"""
GIVEN = "ld.param.u32 %r8, [k_param_0];\nsetp.eq.u32 %p4, %r8, 5;\n"
GUARDED = GIVEN + "@%p4 st.shared.u32 [s], 1;\n"


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("", "yes: there is no loop"),
        ("mov.u32 %r9, 0;\nL: add.s32 %r9, %r9, 1;\nsetp.lt.u32 %p3, %r9, 4;\n@%p3 bra L;", "yes: no trip count"),
        (
            GUARDED,
            "not shown: there is no loop, but k_param_0 may decide something else: whether st.shared.u32 is "
            "carried out at line 19 may depend on it",
        ),
        (TRIPS.format(step=""), "yes: no trip count"),
        (
            TRIPS.format(step="bar.sync 0;"),
            "not shown: how often the loop from line 19 to line 22 runs depends on the parameter k_param_0, "
            "ld.param.u32 at line 17",
        ),
        (FIXED.format(step="", count=4), "yes: no trip count"),
        (GIVEN + FIXED.format(step="@%p4 bra E;", count=4), "not shown: how often the loop"),
        (
            GIVEN + "mov.u32 %r10, 3;\n@%p4 mov.u32 %r10, 4;\n" + FIXED.format(step="", count="%r10"),
            "not shown: how often",
        ),
        (
            GIVEN + "mov.u32 %r10, 3;\n@%p4 bra B;\nmov.u32 %r10, 4;\nB:\n" + FIXED.format(step="", count="%r10"),
            "not shown: how often",
        ),
        (
            "ld.shared.u32 %r10, [s];\n" + FIXED.format(step="st.shared.u32 [s], 1;", count="%r10"),
            "not shown: how often",
        ),
    ],
)
def test_any_trips(body: str, answer: str) -> None:
    read = module("st.shared.u32 [s], 2;\nbar.sync 0;\n" + body if "ld.shared" in body else body)
    verdict = judge(read, entry(read), launch(), load_model("ptx-9.4"), CheckOptions(any_trips=True))
    assert verdict.beyond["any trip count"].startswith(answer)


def test_events_of_two_ctas_are_the_same_if_all_that_they_say_is() -> None:
    fence, other = Fence(Sem.ACQ_REL, Scope.GPU), Fence(Sem.SC, Scope.GPU)
    event = TraceEvent(0, 3, 7, fence, count=64, generation=1)
    assert grids._same_event(event, replace(event, thread=5, order=4, time=9))
    for changed in ({"at": 8}, {"label": other}, {"count": 32}, {"count": None}, {"generation": 2}):
        assert not grids._same_event(event, replace(event, **changed)), changed


def test_roles_of_the_operands_of_atomic_operations_and_barriers() -> None:
    lines = "atom.global.add.u32 %r20, [%d0], %r0;\nst.global.u32 [%d0], %r0;\nbar.sync %r0, %r21;"
    body = body_of(entry(module(lines)))
    roles = [
        sorted({use.role.name for use in uses_of(does) if use.slots}) for does in body if does.instruction.line >= 0
    ][-4:-1]
    assert roles == [["ADDRESS", "COMBINED"], ["PLACE", "VALUE"], ["SETTING"]]
