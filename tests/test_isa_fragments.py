"""Registers of an unfinished wgmma.mma_async: touching them before a wgmma.wait_group that covers it is reported."""

from __future__ import annotations

import pytest
from isa_samples import blocks

from memmodel.isa import legality_warnings

FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
SHAPE = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16"
MMA = f"{SHAPE} {{%d0, %d1}}, %rd0, %rd1, 1, 1, 1, 0, 0;"
OTHER = f"{SHAPE} {{%e0, %e1}}, %rd0, %rd1, 1, 1, 1, 0, 0;"
SHIFTED = f"{SHAPE} {{%d1, %d2}}, %rd0, %rd1, 1, 1, 1, 0, 0;"
FROM_REGISTERS = f"{SHAPE} {{%d0, %d1}}, {{%a0, %a1, %a2, %a3}}, %rd1, 1, 1, 1, 0;"
SAME_FRAGMENT = f"{SHAPE} {{%e0, %e1}}, {{%a0, %a1, %a2, %a3}}, %rd1, 1, 1, 1, 0;"
CHAINED = f"{SHAPE} {{%e0, %e1}}, {{%d0, %d1, %a2, %a3}}, %rd1, 1, 1, 1, 0;"
READ = "add.u32 %s, %d0, 1;"


def wait(groups: int) -> str:
    return f"wgmma.wait_group.sync.aligned {groups};"


def reported(body: str) -> list[str]:
    return [text for text in legality_warnings(blocks(body)) if "undefined until wgmma.wait_group" in text]


@pytest.mark.parametrize(
    "body",
    [
        READ,
        "mov.u32 %d1, 0;",
        "st.global.u32 [x], %d1;",
        "setp.ne.u32 %p, %d0, 0;",
        f"{COMMIT} {READ}",
        f"{wait(0)} {READ}",
        f"{COMMIT} {wait(1)} {READ}",
        f"{COMMIT} {OTHER} {COMMIT} {wait(2)} {READ}",
        f"{COMMIT} {OTHER} {COMMIT} {wait(1)} add.u32 %s, %e0, 1;",
        f"{COMMIT} @%p bra OUT; {wait(0)} OUT: {READ}",
        f"{COMMIT} AGAIN: {READ} {MMA} {COMMIT} {wait(0)} @%p bra AGAIN;",
        SHIFTED,
        CHAINED,
    ],
)
def test_a_register_of_an_unfinished_mma_is_undefined(body: str) -> None:
    assert len(reported(f"{FENCE} {MMA} {body}")) == 1


@pytest.mark.parametrize(
    "body",
    [
        f"{COMMIT} {wait(0)} {READ}",
        f"{COMMIT} {OTHER} {COMMIT} {wait(1)} {READ}",
        f"{COMMIT} {COMMIT} {wait(1)} {READ}",
        f"{MMA} {COMMIT} {MMA} {COMMIT} {wait(0)} {READ}",
        f"{OTHER} {COMMIT} add.u32 %s, %t, 1; {wait(0)} {READ}",
        f"{COMMIT} AGAIN: {MMA} {COMMIT} {wait(1)} @%p bra AGAIN; {wait(0)} {READ}",
        f"{COMMIT} bra OUT; {READ} OUT: {wait(0)}",
    ],
)
def test_a_covering_wait_ends_it(body: str) -> None:
    assert not reported(f"{FENCE} {MMA} {body}")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("mov.u32 %a2, 0;", 1),
        (f"{COMMIT} {wait(0)} mov.u32 %a2, 0;", 0),
        (SAME_FRAGMENT, 0),
        (f"{SHAPE} {{%a0, %a1}}, %rd0, %rd1, 1, 1, 1, 0, 0;", 1),
    ],
)
def test_a_fragment_of_a_in_registers_too(body: str, found: int) -> None:
    assert len(reported(f"{FENCE} {FROM_REGISTERS} {body}")) == found


def test_the_warning_says_where_and_what_to_write() -> None:
    test = blocks(f"{FENCE} {MMA} {COMMIT}\n{READ}")
    line = test.source.text[: test.source.text.index(READ)].count("\n") + 1
    (text,) = reported(f"{FENCE} {MMA} {COMMIT}\n{READ}")
    assert "%d0 is undefined until wgmma.wait_group: accumulator of the wgmma.mma_async in line" in text
    assert 'write wgmma.wait_group.sync.aligned 0 in front of this ("wgmma.mma_async")' in text
    assert f"{test.source.name}:{line}:" in text.splitlines()[0]
    (text,) = reported(f"{FENCE} {MMA} {READ}")
    assert "commit its group and write" in text
