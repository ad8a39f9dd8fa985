"""What the lanes of a warp learn from one another: values against the pages, masks, lanes that have exited."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged


def says(body: str, wanted: dict[int, int], register: str = "%r10") -> bool:
    """True if a register has these values in these lanes; a run with another value traps."""
    checks = "".join(
        f"setp.eq.u32 %p3, %r0, {lane};\nsetp.ne.and.u32 %p4, {register}, {value}, %p3;\n@%p4 trap;\n"
        for lane, value in wanted.items()
    )
    verdict = judged(f"{body}\n{checks}", threads=32)
    assert verdict.word in ("clean", "findings"), verdict.open
    return not verdict.findings


SHUFFLES = [
    ("idx", 3, 31, lambda lane: 3),
    ("idx", 35, 31, lambda lane: 3),
    ("up", 2, 0, lambda lane: lane - 2 if lane >= 2 else lane),
    ("down", 2, 31, lambda lane: lane + 2 if lane <= 29 else lane),
    ("bfly", 5, 31, lambda lane: lane ^ 5),
    # Segments of eight lanes: the segment mask stands in bits 8 to 12.
    ("idx", 3, 0x181F, lambda lane: (lane & 0x18) + 3),
    ("up", 2, 0x1800, lambda lane: lane - 2 if lane % 8 >= 2 else lane),
    ("down", 2, 0x181F, lambda lane: lane + 2 if lane % 8 <= 5 else lane),
    ("bfly", 16, 0x181F, lambda lane: lane if lane < 16 else lane ^ 16),
    # A clamp that is less than the last lane.
    ("down", 1, 15, lambda lane: lane + 1 if lane < 15 else lane),
]


@pytest.mark.parametrize(("mode", "number", "bounds", "source"), SHUFFLES)
def test_shuffles(mode: str, number: int, bounds: int, source) -> None:  # type: ignore[no-untyped-def]
    """ "j = lane - bval; pval = (j >= maxLane)" and so on; out of range, a lane copies its own value."""
    wanted = {lane: 7 * source(lane) for lane in (0, 1, 2, 7, 8, 15, 16, 30, 31)}
    for form, mask in (("shfl.sync", ", -1"), ("shfl", "")):
        body = f"mul.lo.u32 %r9, %r0, 7;\n{form}.{mode}.b32 %r10, %r9, {number}, {bounds}{mask};"
        assert says(body, wanted)
        assert not says(body, {1: 7 * source(1) + 1})


@pytest.mark.parametrize(("mode", "lane", "inside"), [("up", 1, 0), ("up", 2, 1), ("down", 29, 1), ("down", 30, 0)])
def test_the_predicate_of_a_shuffle_says_whether_the_source_is_in_range(mode: str, lane: int, inside: int) -> None:
    bounds = 0 if mode == "up" else 31
    body = f"shfl.sync.{mode}.b32 %r9|%p1, %r0, 2, {bounds}, 0xffffffff;\nselp.u32 %r10, 1, 0, %p1;"
    assert says(body, {lane: inside})


SMALL = "setp.lt.u32 %p1, %r0, 4;\n"
EVEN = "and.b32 %r9, %r0, 1;\n"
RESULTS = [
    (SMALL + "vote.sync.all.pred %p2, %p1, -1;\nselp.u32 %r10, 1, 0, %p2;", 0),
    (SMALL + "vote.sync.any.pred %p2, %p1, -1;\nselp.u32 %r10, 1, 0, %p2;", 1),
    (SMALL + "vote.sync.any.pred %p2, !%p1, -1;\nselp.u32 %r10, 1, 0, %p2;", 1),
    (SMALL + "vote.sync.uni.pred %p2, %p1, -1;\nselp.u32 %r10, 1, 0, %p2;", 0),
    (SMALL + "vote.sync.ballot.b32 %r10, %p1, -1;", 0xF),
    (SMALL + "vote.sync.ballot.b32 %r10, !%p1, -1;", 0xFFFFFFF0),
    ("redux.sync.add.u32 %r10, %r0, -1;", 496),
    ("sub.u32 %r9, %r0, 16;\nredux.sync.min.s32 %r10, %r9, -1;", 0xFFFFFFF0),
    ("sub.u32 %r9, %r0, 16;\nredux.sync.min.u32 %r10, %r9, -1;", 0),
    ("redux.sync.max.u32 %r10, %r0, -1;", 31),
    ("or.b32 %r9, %r0, 64;\nredux.sync.and.b32 %r10, %r9, -1;", 64),
    ("redux.sync.or.b32 %r10, %r0, -1;", 31),
    ("redux.sync.xor.b32 %r10, %r0, -1;", 0),
    ("mov.b32 %f0, 0f3F800000;\n@%p0 mov.b32 %f0, 0fC0000000;\nredux.sync.min.f32 %f1, %f0, -1;\nmov.b32 %r10, %f1;",
     0xC0000000),
    ("mov.b32 %f0, 0f3F800000;\n@%p0 mov.b32 %f0, 0fC0000000;\nredux.sync.min.abs.f32 %f1, %f0, -1;\n"
     "mov.b32 %r10, %f1;", 0x3F800000),
    ("mov.b32 %f0, 0f3F800000;\n@%p0 mov.b32 %f0, 0f7FC00000;\nredux.sync.max.f32 %f1, %f0, -1;\nmov.b32 %r10, %f1;",
     0x3F800000),
    ("match.all.sync.b32 %r10, 5, -1;", 0xFFFFFFFF),
    ("match.all.sync.b32 %r10, %r0, -1;", 0),
    (EVEN + "match.all.sync.b32 %r8|%p1, %r9, -1;\nselp.u32 %r10, 1, 0, %p1;", 0),
]  # fmt: skip


@pytest.mark.parametrize(("body", "value"), RESULTS)
def test_results_that_all_lanes_have(body: str, value: int) -> None:
    assert says(body, {0: value, 9: value, 31: value})


def test_lanes_that_have_the_same_value() -> None:
    assert says(EVEN + "match.any.sync.b32 %r10, %r9, -1;", {0: 0x55555555, 1: 0xAAAAAAAA, 31: 0xAAAAAAAA})


EXITED = "setp.ge.u32 %p5, %r0, 20;\n@%p5 exit;\n"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("match.all.sync.b32 %r10, 5, -1;", (1 << 20) - 1),
        ("match.any.sync.b32 %r10, 5, -1;", (1 << 20) - 1),
        ("redux.sync.add.u32 %r10, 1, -1;", 20),
        ("vote.sync.ballot.b32 %r10, 1, -1;", (1 << 20) - 1),
    ],
)
def test_lanes_that_have_exited_take_no_part(line: str, value: int) -> None:
    """ "all non-exited threads in membermask"."""
    line = line.replace("u32 %r10, 1", "u32 %r10, %r8").replace("b32 %r10, 1", "b32 %r10, %p1")
    assert says(f"{EXITED}mov.u32 %r8, 1;\nsetp.eq.u32 %p1, %r8, 1;\n{line}", {0: value, 19: value})


@pytest.mark.parametrize(
    "line",
    [
        "vote.sync.ballot.b32 %r10, %p0, {0};",
        "shfl.sync.idx.b32 %r10, %r0, 0, 31, {0};",
        "redux.sync.add.u32 %r10, %r0, {0};",
        "match.any.sync.b32 %r10, %r0, {0};",
        "elect.sync %r10|%p1, {0};",
        "bar.warp.sync {0};",
    ],
)
@pytest.mark.parametrize("register", [False, True])
def test_a_lane_is_in_its_own_mask(line: str, register: bool) -> None:
    """ "The behavior is undefined if the executing thread is not in the membermask"."""
    for mask, undefined in ((0xFFFFFFFE, True), (0xFFFFFFFF, False)):
        put = f"mov.u32 %r11, {mask};\n" if register else ""
        verdict = judged(put + line.format("%r11" if register else mask), threads=32)
        assert {finding.rule for finding in verdict.findings} == ({"undefined-instruction"} if undefined else set())


def test_a_value_of_a_lane_that_takes_no_part_is_not_known() -> None:
    """ "results are undefined if a thread sources a register from ... a thread that is not in membermask"."""
    body = (
        "@%p0 bra OVER;\nshfl.sync.idx.b32 %r10, %r0, 0, 31, 0xfffffffe;\nsetp.eq.u32 %p1, %r10, 0;\n@%p1 trap;\nOVER:"
    )
    verdict = judged(body, threads=32)
    assert verdict.word == "undecided" and "depends on a value" in verdict.open[0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("vote.sync.ballot.pred %p1, %p0, -1;", "vote.sync.ballot gives a .b32"),
        ("vote.sync.b32.ballot %r10, %p0, -1;", "out of order"),
        ("redux.sync.add.b32 %r10, %r0, -1;", "redux.sync.add is for .u32 and .s32"),
        ("redux.sync.and.u32 %r10, %r0, -1;", "redux.sync.and is for .b32"),
        ("redux.sync.add.f32 %f0, %f1, -1;", "redux.sync.add is for .u32 and .s32"),
        ("redux.sync.min.abs.u32 %r10, %r0, -1;", "redux.sync with .abs is for .f32"),
        ("match.any.sync.b32 %r10|%p1, %r0, -1;", "writes one register"),
        ("shfl.sync.idx.b32 %r10, %r0, 0, 31;", "takes d|p, a, b, c, membermask"),
        ("shfl.sync.idx.b64 %r10, %r0, 0, 31, -1;", "unknown qualifier '.b64'"),
        ("elect.sync %p1, -1;", "writes d|p"),
        ("activemask.u32 %r10;", "unknown qualifier '.u32'"),
    ],
)
def test_what_the_table_refuses(line: str, why: str) -> None:
    verdict = judged(line, threads=32)
    assert verdict.word == "undecided" and why in verdict.open[0], verdict.open


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ("shfl.sync.idx.b32 %r11, %r1, 0, 31, -1;", "undecided"),
        ("shfl.sync.bfly.b32 %r11, %r0, 0, 31, -1;", "findings"),
    ],
)
def test_lanes_of_one_mask_may_meet_at_several_instructions(other: str, word: str) -> None:
    """ "with the same qualifiers and same membermask value": with others they wait for ever."""
    halves = "setp.lt.u32 %p3, %r0, 16;\n@%p3 bra A;\n{}\nbar.warp.sync 0xffff0000;\nbra B;\nA:\n{}\nB:\n"
    verdict = judged(halves.format(other, "shfl.sync.idx.b32 %r10, %r0, 0, 31, -1;"), threads=32)
    assert verdict.word == word, verdict.open
    assert word == "findings" or "at several places of the text" in verdict.open[0]


def test_whether_all_lanes_have_one_value_is_open_where_one_is_unknown() -> None:
    """Where they do, each lane stores its number to one place."""
    body = "mov.u32 %r9, 5;\n{}match.all.sync.b32 %r10|%p1, %r9, -1;\n@%p1 st.shared.u32 [%r2], %r0;"
    words = [judged(body.format(load), threads=32).word for load in ("", "@%p0 ld.global.u32 %r9, [%d0];\n")]
    assert words == ["findings", "undecided"]
