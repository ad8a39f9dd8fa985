"""Registers of wgmma.mma_async: touched before a wait that covers them, used without a fence, no fence at all."""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, read, warnings

from memmodel import check
from memmodel.isa.lower import lower_test

FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
SHAPE = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16"
MATRICES = "mov.u64 %rd0, tile; mov.u64 %rd1, tile;"
MMA = f"{SHAPE} {{%d0, %d1}}, %rd0, %rd1, 1, 1, 1, 0, 0;"
OTHER = f"{SHAPE} {{%e0, %e1}}, %rd0, %rd1, 1, 1, 1, 0, 0;"
SHIFTED = f"{SHAPE} {{%d1, %d2}}, %rd0, %rd1, 1, 1, 1, 0, 0;"
FROM_REGISTERS = f"{SHAPE} {{%d0, %d1}}, {{%a0, %a1, %a2, %a3}}, %rd1, 1, 1, 1, 0;"
SAME_FRAGMENT = f"{SHAPE} {{%e0, %e1}}, {{%a0, %a1, %a2, %a3}}, %rd1, 1, 1, 1, 0;"
CHAINED = f"{SHAPE} {{%e0, %e1}}, {{%d0, %d1, %a2, %a3}}, %rd1, 1, 1, 1, 0;"
LONGER = "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3 {%d0, %d1}, %rd0, %rd1, 1, 1, 1;"
INTO_FRAGMENT = f"{SHAPE} {{%a0, %a1}}, %rd0, %rd1, 1, 1, 1, 0, 0;"
READ = "add.u32 %s, %d0, 1;"

USED = "a register of a wgmma.mma_async is used before a wait that covers it"
UNFENCED = "no wgmma.fence stands before this wgmma.mma_async"
UNORDERED = "registers of this wgmma.mma_async were used after the last wgmma.fence"


def wait(groups: int) -> str:
    return f"wgmma.wait_group.sync.aligned {groups};"


def reported(body: str) -> list[str]:
    """The rules that a thread certainly breaks."""
    texts = warnings(blocks(f"{MATRICES} {body}"))
    return [rule for text in texts for rule in (USED, UNFENCED, UNORDERED) if f"undefined: {rule}" in text]


@pytest.mark.parametrize(
    "body",
    [
        READ,
        "mov.u32 %d1, 0;",
        "st.global.u32 [x], %d1;",
        "setp.ne.u32 %p, %d0, 0;",
        "@%d0 bra L0;",
        "ld.global.u32 %r0, [%d0];",
        "ld.global.v2.u32 {%r0, %d1}, [a];",
        f"{COMMIT} {READ}",
        f"{wait(0)} {READ}",
        f"{COMMIT} {wait(1)} {READ}",
        f"{COMMIT} {OTHER} {COMMIT} {wait(2)} {READ}",
        f"{COMMIT} {OTHER} {COMMIT} {wait(1)} add.u32 %s, %e0, 1;",
        f"{COMMIT} setp.eq.u32 %p, 1, 1; @%p bra OUT; {wait(0)} OUT: {READ}",
        f"{COMMIT} {OTHER} {wait(0)} add.u32 %s, %e0, 1;",
        SHIFTED,
        CHAINED,
    ],
)
def test_a_register_of_an_unfinished_mma_is_undefined(body: str) -> None:
    assert USED in reported(f"{FENCE} {MMA} {body}")


@pytest.mark.parametrize(
    "body",
    [
        f"{COMMIT} {wait(0)} {READ}",
        f"{COMMIT} {OTHER} {COMMIT} {wait(1)} {READ}",
        f"{COMMIT} {COMMIT} {wait(1)} {READ}",
        f"{MMA} {COMMIT} {MMA} {COMMIT} {wait(0)} {READ}",
        f"{OTHER} {COMMIT} add.u32 %s, %t, 1; {wait(0)} {READ}",
        f"{COMMIT} {OTHER} {wait(0)} {READ}",
        f"{COMMIT} bra OUT; {READ} OUT: {wait(0)}",
    ],
)
def test_a_covering_wait_ends_it(body: str) -> None:
    assert reported(f"{FENCE} {MMA} {body}") == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("mov.u32 %a2, 0;", [USED]),
        (f"{COMMIT} {wait(0)} mov.u32 %a2, 0;", []),
        (SAME_FRAGMENT, []),
        (INTO_FRAGMENT, [USED]),
    ],
)
def test_a_fragment_of_a_in_registers_too(body: str, found: list[str]) -> None:
    assert reported(f"{FENCE} {FROM_REGISTERS} {body}") == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (MMA, [UNFENCED]),
        (f"{MMA} {FENCE} {OTHER}", [UNFENCED]),
        (f"mov.u32 %d0, 0; {FENCE} {MMA}", []),
        (f"{FENCE} mov.u32 %d0, 0; {MMA}", [UNORDERED]),
        (f"{FENCE} mov.u32 %e0, 0; {MMA}", []),
        (f"{FENCE} mov.u32 %a3, 0; {FROM_REGISTERS}", [UNORDERED]),
        (f"{FENCE} mov.u32 %a3, 0; {FENCE} {FROM_REGISTERS}", []),
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} mov.u32 %d0, 0; {MMA}", [UNORDERED]),
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} mov.u32 %d0, 0; {FENCE} {MMA}", []),
        # Reading is an access too, of an accumulator; two reads of a fragment need no order.
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} {READ} {MMA}", [UNORDERED]),
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} {READ} {FENCE} {MMA}", []),
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} {READ} {OTHER}", []),
        (f"{FENCE} add.u32 %s, %a0, 1; {FROM_REGISTERS}", []),
        # So is a wgmma.mma_async, but for accumulators of one shape.
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} {MMA}", []),
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} {LONGER}", [UNORDERED]),
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} {FENCE} {LONGER}", []),
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} {CHAINED}", [UNORDERED]),
        (f"{FENCE} {MMA} {COMMIT} {wait(0)} {FENCE} {CHAINED}", []),
        (f"{FENCE} {FROM_REGISTERS} {COMMIT} {wait(0)} {SAME_FRAGMENT}", []),
        (f"{FENCE} {FROM_REGISTERS} {COMMIT} {wait(0)} {INTO_FRAGMENT}", [UNORDERED]),
    ],
)
def test_a_fence_stands_between_using_a_register_and_the_mma(body: str, found: list[str]) -> None:
    assert reported(body) == found


def test_the_warning_says_where() -> None:
    test = blocks(f"{MATRICES} {FENCE} {MMA} {COMMIT}\n{READ}")
    assert test.source is not None
    line = test.source.text[: test.source.text.index(READ)].count("\n") + 1
    (text,) = [one for one in warnings(test) if USED in one]
    assert text.splitlines()[0] == f"t.litmus:{line}:1: warning: undefined: {USED}"


def test_other_programs_keep_no_notes() -> None:
    steps = lower_test(blocks(f"{FENCE} mov.u32 %d0, 1; {COMMIT} {wait(0)}")).programs[0].steps
    assert len(steps) == 4


SOMETIMES = """PTX sometimes
.global .u32 x;
.shared .align 16 .b32 tile[512];
thread P0 @ cta 0 {{
    mov.u64 %rd0, tile;
    mov.u64 %rd1, tile;
    {}
}}
thread P1 @ cta 1 {{
    st.relaxed.gpu.global.u32 [x], 1;
}}
exists undefined
"""


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize(
    ("body", "certain", "found"),
    [
        (f"@%p bra OUT; {wait(0)} OUT: {READ}", False, True),
        (f"@%p bra OUT; {READ} OUT: {wait(0)}", True, True),  # wherever it is executed
        (f"{wait(0)} @%p bra OUT; {READ} OUT:", False, False),
    ],
)
def test_what_only_some_executions_do_is_found_in_these(body: str, certain: bool, found: bool, engine: str) -> None:
    """The other thread decides which way this one goes: a finding if one way is undefined."""
    before = "ld.relaxed.gpu.global.u32 %r0, [x]; setp.eq.u32 %p, %r0, 1;"
    text = SOMETIMES.format(f"{before} {FENCE} {MMA} {COMMIT} {body}")
    assert any(USED in warning for warning in warnings(read(text))) is certain
    report = check(text, engine=engine)
    assert report.holds is found
    assert {finding.rule for finding in report.answer.findings} == ({USED} if found else set())
