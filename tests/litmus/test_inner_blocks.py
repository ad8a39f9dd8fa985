"""Blocks inside a thread, which have registers and labels of their own, and lines that change nothing."""

from __future__ import annotations

import pytest
from helpers.isa_samples import read

from memmodel import check
from memmodel.errors import InputError
from memmodel.litmus.printer import print_litmus


def body(*lines: str) -> list[str]:
    """The first thread as it is read, printed again, without its declarations."""
    text = print_litmus(read("PTX t\n.global .u32 x;\nthread P0 {\n" + "\n".join(lines) + "\n}\nexists (true)\n"))
    printed = text.split("{\n", 1)[1].split("\n}", 1)[0].splitlines()
    return [line.strip() for line in printed if ".reg" not in line]


def test_a_register_of_a_block_is_another_one() -> None:
    assert body(
        ".reg .b32 %r<3>;",
        "mov.u32 %r1, 1;",
        "{ .reg .b32 %r<2>; mov.u32 %r1, 2; mov.u32 %r2, 3; }",
        "add.u32 %r0, %r1, %r2;",
    ) == ["mov.u32 %r1, 1;", "mov.u32 %r_1_1, 2;", "mov.u32 %r2, 3;", "add.u32 %r0, %r1, %r2;"]


def test_a_block_sees_the_registers_around_it() -> None:
    assert body("mov.u32 %a, 1;", "{ .reg .b32 %b; mov.u32 %b, %a; }") == ["mov.u32 %a, 1;", "mov.u32 %b, %a;"]


def test_blocks_one_after_the_other_and_inside_one_another() -> None:
    block = "{ .reg .pred %p; setp.eq.u32 %p, %a, 0; @%p bra OUT; OUT: { .reg .pred %p; mov.pred %p, 1; } @!%p ret; }"
    found = body(block, block)
    names = [line.split()[1].rstrip(",") for line in found if line.startswith(("setp", "mov.pred"))]
    assert len(set(names)) == 4
    first, inner, second, other = names
    labels = [line for line in found if line.endswith(":")]
    assert len(set(labels)) == 2
    assert f"@!{first} ret;" in found and f"@!{second} ret;" in found
    assert {f"@{first} bra {labels[0][:-1]};", f"@{second} bra {labels[1][:-1]};"} <= set(found)
    assert not any(f"@!{name} ret;" in found for name in (inner, other))


def test_vectors_are_no_blocks() -> None:
    assert body("{ ld.v2.u32 {%r0, %r1}, [x]; }", "st.v2.u32 [x], {%r0, %r1};") == [
        "ld.v2.u32 {%r0, %r1}, [x];",
        "st.v2.u32 [x], {%r0, %r1};",
    ]


def test_lines_for_debuggers_and_ptxas_are_left_out() -> None:
    assert body('.file 1 "a.cu"', ".loc 1 5 3", "st.u32 [x], 1;", '.pragma "nounroll";', ".loc 1 6 0", "ret;") == [
        "st.u32 [x], 1;",
        "ret;",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ st.u32 [x], 1;", "never closed"),
        ("{" * 40 + "}" * 40, "blocks nest deeper than 32"),
        ("{ OUT: } bra OUT;", "label `OUT` is not declared"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(f"PTX t\n.global .u32 x;\nthread P0 {{\n{text}\n}}\nexists (true)\n")


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_what_a_block_computes_is_not_seen_behind_it(engine: str) -> None:
    text = """PTX inline
.global .u32 x = 5;
thread P0 {
    mov.u32 %r1, 1;
    {
        .reg .b32 %r1;
        ld.global.u32 %r1, [x];
        add.u32 %r2, %r1, 1;
    }
    add.u32 %r3, %r1, %r2;
}
forall (P0:r1 == 1 /\\ P0:r2 == 6 /\\ P0:r3 == 7)
"""
    assert check(text, engine=engine).holds is True
