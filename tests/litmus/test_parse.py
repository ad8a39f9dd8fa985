"""What each construct of the litmus language means, and that the two layouts mean the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memmodel.litmus import parse_litmus, print_litmus
from memmodel.litmus.syntax import (
    Always,
    And,
    Compare,
    Condition,
    Expectation,
    Guard,
    Instruction,
    Label,
    Layout,
    LitmusTest,
    LocValue,
    Not,
    Number,
    Or,
    Quantifier,
    RegisterInit,
    RegValue,
    Variable,
)
from memmodel.ptx.operands import Blank, Imm, Mem, Negated, Operand, Pair, Reg, Sym, TensorOperand, Vector
from memmodel.ptx.vocabulary import DataType, Place, Proxy, Space
from memmodel.source import Source

MP_COLUMNS = r"""PTX MP+rel.gpu+acq.gpu
"The flag is released and acquired at gpu scope, so the data is seen"
Expect=ptx-7.5:never ptx-6.0:never
{ x=0; flag=0; P1:r0=0; 1:r1 = 0 }
 P0@cta 0,gpu 0          | P1@cta 1,cluster 0,gpu 0 ;
 st.weak [x], 1          | ld.acquire.gpu r0, [flag] ;
 st.release.gpu [flag],1 | ld.weak r1, [x]
exists (P1:r0 == 1 /\ 1:r1 = 0)"""

MP_BLOCKS = r"""PTX MP+rel.gpu+acq.gpu
"The flag is released and acquired
 at gpu scope, so the data is seen"
Expect=ptx-7.5:never
Expect=ptx-6.0:never
Generator=by hand
x = 0;   // untyped, as in a table
flag = 0;
P1:%r0 = 0; P1:%r1 = 0;
thread P0 @ gpu 0 {
    .reg .u32 %r<4>, %q;
    st.weak [x], 1;
    st.release.gpu [flag], 0x1;
}
thread P1 @ cta 1, cluster 0, gpu 0 {   (* nested (* note *) *)
    ld.acquire.gpu %r0, [flag];  /* another */
    ld.weak
        %r1, [x];
}
exists (P1:%r0 == 1 /\ P1:%r1 == 0)
"""


def read(text: str) -> LitmusTest:
    return parse_litmus(Source("<text>", text))


def body(cell: str, init: str = "x=0; y=0;") -> tuple[Instruction | Label, ...]:
    return read(f"PTX T\n{{ {init} }}\n P0 ;\n {cell} ;\nexists true").threads[0].body


def operands(cell: str, init: str = "x=0; y=0;") -> tuple[Operand, ...]:
    item = body(cell, init)[0]
    assert isinstance(item, Instruction)
    return item.operands


def block_operands(line: str, declarations: str = "x = 0; .shared .u32 s;") -> tuple[Operand, ...]:
    item = read(f"PTX T\n{declarations}\nthread P0 {{ {line}; }}\nexists true").threads[0].body[0]
    assert isinstance(item, Instruction)
    return item.operands


def condition(text: str) -> Condition:
    return read(f"PTX T\n{{ x=0; a[3]={{1}}; }}\n P0 ;\n ld r0, x ;\nexists {text}").condition


def variables(declarations: str) -> tuple[Variable, ...]:
    return read(f"PTX T\n{declarations}\nthread P0 {{ }}\nexists true").variables


def test_both_layouts_give_the_same_test() -> None:
    columns, blocks = read(MP_COLUMNS), read(MP_BLOCKS)
    assert columns == blocks
    assert (columns.layout, blocks.layout) == (Layout.COLUMNS, Layout.BLOCKS)
    assert columns.expectations == (Expectation("ptx-7.5", "never"), Expectation("ptx-6.0", "never"))
    assert columns.threads[1].place == Place(gpu=0, cluster=0, cta=1)
    assert columns.registers == (RegisterInit("P1", "r0", 0), RegisterInit("P1", "r1", 0))
    assert columns.quantifier is Quantifier.EXISTS
    assert columns.warnings == ()


def test_spans_are_exact() -> None:
    test = read(MP_COLUMNS)
    load = test.threads[1].body[0]
    assert isinstance(load, Instruction)
    assert load.span.text == "ld.acquire.gpu r0, [flag]"
    assert load.mnemonic_span.text == "ld.acquire.gpu"
    assert [operand.span.text for operand in load.operands] == ["r0", "[flag]"]
    assert str(load.span) == "<text>:6:28"
    assert [v.span.text for v in test.variables] == ["x", "flag"]
    assert isinstance(test.condition, And)
    assert [c.span.text for c in test.condition.items if isinstance(c, Compare)] == ["P1:r0 == 1", "1:r1 = 0"]
    assert test.expectations[1].span.text == "ptx-6.0:never"


def test_a_column_belongs_to_the_thread_that_its_header_names() -> None:
    test = read("PTX T\n{x=0;}\n P1 | P0@cta 3 ;\n ld r0, x | st x, 1 ;\nexists (0:r0 = 0)")
    assert [thread.name for thread in test.threads] == ["P1", "P0"]
    assert test.threads[1].place == Place(cta=3)
    assert isinstance(test.condition, Compare)
    assert test.condition.left == RegValue("P0", "r0")


def test_a_bare_name_is_a_variable_or_label_if_there_is_one_and_else_a_register() -> None:
    assert operands("add r1, x, %x") == (Reg("r1"), Sym("x"), Reg("x"))
    assert body("L0: beq r1, 0, L0") == (Label("L0"), Instruction("beq", (Reg("r1"), Imm(0), Sym("L0"))))
    assert operands("mov %r1, %tid.x") == (Reg("r1"), Reg("tid.x"))
    assert operands("ld r1, [%r2+8]") == (Reg("r1"), Mem(Reg("r2"), 8))
    assert operands("ld r1, [r2]", "x=0; P0:r2=x;") == (Reg("r1"), Mem(Reg("r2")))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("[x]", Mem(Sym("x"))),
        ("[x+4]", Mem(Sym("x"), 4)),
        ("[x + 0x10]", Mem(Sym("x"), 16)),
        ("[x-4]", Mem(Sym("x"), -4)),
        ("[x - 4]", Mem(Sym("x"), -4)),
        ("[%rd1+-8]", Mem(Reg("rd1"), -8)),
        ("[s@cta0]", Mem(Sym("s", 0))),
        ("[s @ cta 0 + 4]", Mem(Sym("s", 0), 4)),
        ("s@cta0", Sym("s", 0)),
        ("x+4", Sym("x", offset=4)),
        ("x - 0x10", Sym("x", offset=-16)),
        ("s@cta0+8", Sym("s", 0, offset=8)),
        ("{%r0, _, 3}", Vector((Reg("r0"), Blank(), Imm(3)))),
        ("[x, {%r1, 0}]", TensorOperand(Sym("x"), (Vector((Reg("r1"), Imm(0))),))),
        ("!%p", Negated(Reg("p"))),
        ("_", Blank()),
        ("%_", Reg("_")),
        ("-1", Imm(-1)),
        ("0xFFFFFFFFFFFFFFFF", Imm(2**64 - 1)),
        ("7U", Imm(7)),
    ],
)
def test_operands(text: str, meaning: Operand) -> None:
    assert block_operands(f"mov.b64 {text}") == (meaning,)


def test_a_pair_of_results_has_parentheses_in_a_table() -> None:
    pair = (Pair(Reg("r0"), Reg("p")), Imm(-1))
    assert block_operands("elect.sync %r0|%p, -1") == pair
    assert operands("elect.sync (r0|p), -1") == pair
    test = read("PTX T\n{}\n P0 | P1 ;\n elect.sync (_|p), -1 | fence.sc.gpu ;\nexists true")
    assert " elect.sync (_|p), -1 | fence.sc.gpu " in print_litmus(test)
    assert "elect.sync _|%p, -1;" in print_litmus(replace(test, layout=Layout.BLOCKS))


def test_guards() -> None:
    thread = read("PTX T\nthread P0 { L: @%p bra L; @!%q\n bra L; }\nexists true").threads[0]
    branch = Instruction("bra", (Sym("L"),))
    assert thread.body == (
        Label("L"),
        Instruction("bra", branch.operands, Guard("p")),
        Instruction("bra", branch.operands, Guard("q", negated=True)),
    )


@pytest.mark.parametrize(
    ("columns", "blocks", "meaning"),
    [
        ("1", "1", (Imm(1), Blank(), Blank())),
        ("1, 2", "1, 2, _", (Imm(1), Imm(2), Blank())),
        ("1, _, 64", "1, 64", (Imm(1), Blank(), Imm(64))),
        ("1, 2, 64", "1, 2, 64", (Imm(1), Imm(2), Imm(64))),
    ],
)
@pytest.mark.parametrize("name", ["bar.cta.sync", "barrier.sync", "barrier.cta.arrive.aligned"])
def test_barrier_operands_are_one_order_in_both_layouts(
    name: str, columns: str, blocks: str, meaning: tuple[Operand, ...]
) -> None:
    assert operands(f"{name} {columns}") == meaning
    assert block_operands(f"{name} {blocks}") == meaning
    test = read(f"PTX T\n{{}}\n P0 ;\n {name} {columns} ;\nexists true")
    assert f" {name} {columns} ;\n" in print_litmus(replace(test, layout=Layout.COLUMNS))
    assert f"    {name} {blocks};\n" in print_litmus(replace(test, layout=Layout.BLOCKS))


def test_a_barrier_reduction_keeps_its_destination_in_front_and_its_predicate_behind() -> None:
    red = (Reg("p"), Imm(0), Blank(), Imm(64), Negated(Reg("q")))
    assert block_operands("barrier.cta.red.and.pred %p, 0, 64, !%q") == red
    assert operands("bar.cta.red.and.pred p, 0, _, 64, !q") == red
    assert operands("bar.red.popc.u32 r0, 0, 1, q") == (Reg("r0"), Imm(0), Imm(1), Blank(), Reg("q"))
    assert block_operands("bar.red.popc.u32 %r0, 0, %q") == (Reg("r0"), Imm(0), Blank(), Blank(), Reg("q"))


def test_other_barriers_keep_their_operands() -> None:
    assert operands("bar.warp.sync 3") == (Imm(3),)
    assert operands("barrier.cluster.arrive.relaxed") == ()
    assert operands("bar.cta.sync 1, 2, 3, 4") == (Imm(1), Imm(2), Imm(3), Imm(4))


def test_declarations() -> None:
    u32, u64 = DataType("u", 32), DataType("u", 64)
    assert variables(
        """.global .u32 x = 7;
           .shared .align 8 .u64 bar;
           .global .u32 a[4] = {1, -2};
           b[] = {1, 2};
           .global .u32 y aliases x;
           .global .u32 t @ texture aliases x;
           .shared .u32 s @ cta 0 = 5;
           z;"""
    ) == (
        Variable("x", Space.GLOBAL, u32, (7,)),
        Variable("bar", Space.SHARED, u64, align=8),
        Variable("a", Space.GLOBAL, u32, (1, -2), 4, array=True),
        Variable("b", init=(1, 2), length=2, array=True),
        Variable("y", Space.GLOBAL, u32, alias_of="x"),
        Variable("t", Space.GLOBAL, u32, alias_of="x", proxy=Proxy.TEXTURE),
        Variable("s", Space.SHARED, u32, (5,), cta=0),
        Variable("z"),
    )


def test_conditions_bind_not_then_and_then_or() -> None:
    a, b, c = (Compare(LocValue("x"), "==", Number(value)) for value in (1, 2, 3))
    assert condition(r"(x=1 \/ x=2 /\ not x=3)") == Or((a, And((b, Not(c)))))
    assert condition(r"((x==1 \/ x==2) /\ ~(x==3))") == And((Or((a, b)), Not(c)))
    assert condition(r"x=1 /\ (x=2 /\ x=3)") == And((a, And((b, c))))
    assert condition("not not true") == Not(Not(Always()))


def test_terms_of_conditions() -> None:
    assert condition("[x] != a[2]") == Compare(LocValue("x"), "!=", LocValue("a", 2))
    assert condition("P0:%r0 <= 0:r0") == Compare(RegValue("P0", "r0"), "<=", RegValue("P0", "r0"))
    threads = "thread P0 {}\nthread P1 @ cta 1 {}"
    shared = read(f"PTX T\n.shared .u32 s[2];\n{threads}\nlocations [s@cta0; [s@cta1[1]]; 0:%r]\nforall true")
    assert shared.shown == (LocValue("s", 0, 0), LocValue("s", 1, 1), RegValue("P0", "r"))
    assert shared.quantifier is Quantifier.FORALL


def test_a_location_that_is_only_loaded_may_stay_undeclared_in_a_table() -> None:
    test = read("PTX T\n{ flag=0; }\n P0 | P1 ;\n ld r0, y | ld r1, [y] ;\nexists (y == 0)")
    assert [v.name for v in test.variables] == ["flag", "y"]
    assert test.threads[0].body == (Instruction("ld", (Reg("r0"), Sym("y"))),)
    assert test.threads[1].body == (Instruction("ld", (Reg("r1"), Mem(Sym("y")))),)
    assert test.warnings == ("<text>:4:9: warning: location `y` is not declared; it is taken to be 0 at the start",)


def test_what_is_likely_a_slip_is_warned_about() -> None:
    test = read("PTX T\n{ x=0; }\n P0 ;\n st x, val ;\n ld r1, x ;\nexists (P0:r2 == 0)")
    assert test.warnings == (
        "<text>:4:8: warning: `val` is read as a register that is never assigned",
        "<text>:6:9: warning: `P0:r2` is never assigned and stays 0",
    )


def test_printed_columns_are_aligned() -> None:
    text = print_litmus(replace(read(MP_BLOCKS), layout=Layout.COLUMNS))
    rows = [line for line in text.splitlines() if "|" in line]
    assert len(rows) == 3
    assert len({line.index("|") for line in rows}) == 1
    assert all(line.endswith(" ;") for line in rows)
