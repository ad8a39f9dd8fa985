"""A test in the other layout means the same, or is refused with a repair."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from helpers.examples import share
from helpers.isa_samples import blocks, columns
from helpers.places import ROOT

from memmodel import api, engine
from memmodel.answer import Answer
from memmodel.base.resources import suite_dir
from memmodel.cat.syntax import Model
from memmodel.emit import Assembler, emit
from memmodel.errors import InputError
from memmodel.isa.convert import convert
from memmodel.isa.lower import lower_test
from memmodel.litmus import parse_litmus, print_litmus
from memmodel.litmus.syntax import Layout, LitmusTest
from memmodel.source import Source

SUITE = suite_dir()
CONFORMANCE = ROOT.parent / "shared" / "conformance" / "dat3m-ptx"
PROXIES = ("has no spelling in PTX", "PTX has no fence.proxy.")
"""What is in the refusals of tests about textures, surfaces and constants."""

TABLE = """PTX table
"A table with whatever a case needs"
{{
x = 0; y = 0;
{}
}}
 P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
 {} | {} ;
exists (P0:r0 == 1)
"""


def read(text: str) -> LitmusTest:
    return parse_litmus(Source("<text>", text))


def other(layout: Layout) -> Layout:
    return Layout.BLOCKS if layout is Layout.COLUMNS else Layout.COLUMNS


def tables(paths: list[Path]) -> list[Path]:
    """Those of the files that are tables."""
    return [path for path in paths if parse_litmus(Source.read(path)).layout is Layout.COLUMNS]


@cache
def model() -> Model:
    return api.load("ptx-9.4")


def translated(test: LitmusTest) -> LitmusTest:
    """The test in the other layout, printed and read again; and it goes back."""
    made = convert(test, other(test.layout))
    again = read(print_litmus(made))
    assert again == made and again.layout is other(test.layout)
    back = convert(again, test.layout)
    assert read(print_litmus(back)) == back
    return again


def seen(answer: Answer) -> tuple[object, ...]:
    """What an answer says, apart from how it spells instructions."""
    found = Counter(finding.flag for finding in answer.findings)
    return answer.observation, answer.axioms, found, bool(answer.unsearched), answer.with_condition


def ask(test: LitmusTest) -> Answer:
    """What happens to the test, by the engine that is chosen for it."""
    return engine.answer(lower_test(test), model(), engine.Options())


# ---- whole files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", tables(share(sorted(SUITE.rglob("*.litmus")), 8)), ids=lambda path: path.stem)
def test_a_table_answers_alike_in_blocks(path: Path) -> None:
    test = parse_litmus(Source.read(path))
    try:
        again = translated(test)
    except InputError as error:
        assert any(text in error.message for text in PROXIES), error.render()
        assert "proxy" in path.parts or "surface" in path.read_text() or "texture" in path.read_text()
        return
    assert seen(ask(again)) == seen(ask(test))


@pytest.mark.share(3)
@pytest.mark.parametrize("folder", sorted({path.parent for path in SUITE.rglob("*.litmus")}), ids=lambda p: p.name)
def test_blocks_are_the_same_program_in_a_table(folder: Path) -> None:
    """The same steps at the same labels over the same variables: nothing is left that an engine could tell apart."""
    for path in share(sorted(folder.glob("*.litmus")), 4):
        test = parse_litmus(Source.read(path))
        if test.layout is Layout.BLOCKS:
            again = translated(test)
            assert convert(again, Layout.BLOCKS) == test
            assert again.variables == test.variables and again.condition == test.condition
            for first, second in zip(lower_test(test).programs, lower_test(again).programs, strict=True):
                assert [(step.op, step.guard) for step in first.steps] == [
                    (step.op, step.guard) for step in second.steps
                ]
                assert first.labels == second.labels


@pytest.mark.skipif(not CONFORMANCE.is_dir(), reason="the conformance files are not beside this checkout")
def test_published_tables_answer_alike_in_blocks() -> None:
    refused: dict[str, str] = {}
    for path in sorted(CONFORMANCE.rglob("*.litmus")):
        test = parse_litmus(Source.read(path))
        try:
            again = translated(test)
        except InputError as error:
            refused[path.stem] = error.message
            continue
        assert seen(ask(again)) == seen(ask(test)), path
    generic = {stem: message for stem, message in refused.items() if not any(text in message for text in PROXIES)}
    assert sorted(generic.values()) == [
        "PTX has no atom.sub",
        "this barrier is named by a register, and PTX needs another number for some barrier of the test",
        "whoever arrives meets at this barrier: PTX has no spelling for that",
    ]


def test_tables_assemble_in_blocks() -> None:
    try:
        assembler = Assembler.find()
    except InputError:
        pytest.skip("no ptxas: pip install 'memmodel[ptx]'")
    for path in tables(sorted(SUITE.rglob("*.litmus"))[::15]):
        try:
            made = convert(parse_litmus(Source.read(path)), Layout.BLOCKS)
        except InputError:
            continue
        assert assembler.assemble(emit(made)) == (), path


# ---- one instruction -----------------------------------------------------------------------------------------


def body(test: LitmusTest) -> list[str]:
    """The lines of the first thread."""
    text = print_litmus(test)
    return [line.strip() for line in text.split("{\n", 1)[1].split("}\n", 1)[0].splitlines()]


def table(init: str, first: str, second: str = "") -> LitmusTest:
    return read(TABLE.format(init, first, second))


@pytest.mark.parametrize(
    ("cell", "lines"),
    [
        ("ld r0, 1", ["mov.s64 %r0, 1;"]),
        ("ld r0, r1", ["mov.s64 %r0, %r1;"]),
        ("ld r0, x", ["ld.s64 %r0, [x];"]),
        ("ld.weak r0, [x]", ["ld.weak.s64 %r0, [x];"]),
        ("st.release.gpu x, r0", ["st.release.gpu.s64 [x], %r0;"]),
        ("ld.weak.u32 r0, x", ["ld.weak.u32 %r0, [x];"]),
        ("atom.relaxed.gpu.add r0, x, 1", ["atom.relaxed.gpu.add.u64 %r0, [x], 1;"]),
        ("atom.relaxed.gpu.cas r0, x, 0, 1", ["atom.relaxed.gpu.cas.b64 %r0, [x], 0, 1;"]),
        ("atom.relaxed.gpu.min r0, x, -1", ["atom.relaxed.gpu.min.s64 %r0, [x], -1;"]),
        ("red.release.sys.add x, 1", ["red.release.sys.add.u64 [x], 1;"]),
        ("mul r0, r1, 2", ["mul.lo.s64 %r0, %r1, 2;"]),
        ("shr r0, r1, 2", ["shr.s64 %r0, %r1, 2;"]),
        ("@!r1 and r0, r1, 2", ["@!%r1 and.b64 %b0, %r1, 2;", "@!%r1 cvt.s64.u64 %r0, %b0;"]),
        ("cvt r0, r1", ["cvt.s64.s64 %r0, %r1;"]),
        ("cvta r0, x", ["mov.u64 %r0, x;"]),
        ("nanosleep 10", ["nanosleep.u32 10;"]),
        ("L0: goto L0", ["L0:", "bra L0;"]),
        ("L0: bne r0, 1, L0", ["L0:", "setp.ne.s64 %p0, %r0, 1;", "@%p0 bra L0;"]),
        (
            "L0: @!r1 beq r0, 1, L0",
            ["L0:", "setp.eq.s64 %p0, %r0, 1;", "@%r1 mov.pred %p0, 0;", "@%p0 bra L0;"],
        ),
        ("bar.cta.sync 1", ["bar.cta.sync 1;"]),
        ("bar.cta.sync 1, _, 2", ["bar.cta.sync 1, 64;"]),
        ("bar.cta.sync 1, 1, 2", ["bar.cta.sync 0, 64;"]),
        ("bar.cta.sync 20, _, 2", ["bar.cta.sync 0, 64;"]),
        ("bar.cta.arrive 1", ["bar.cta.arrive 1, 64;"]),
        ("bar.cta.red.popc r0, 1, _, 2, r1", ["bar.cta.red.popc.u32 %r0, 1, 64, %r1;"]),
        ("bar.cta.red.and r0, 1, r1", ["bar.cta.red.and.pred %r0, 1, %r1;"]),
        ("bar.cta.sync 1, _, r2", ["mul.lo.u32 %n0, %r2, 32;", "bar.cta.sync 1, %n0;"]),
    ],
)
def test_a_cell_in_blocks(cell: str, lines: list[str]) -> None:
    assert body(convert(table("P0:r1 = 1; P0:r2 = 2;", cell), Layout.BLOCKS)) == lines


@pytest.mark.parametrize(
    ("line", "cell"),
    [
        ("bar.sync 1;", "bar.sync 1"),
        ("bar.sync 1, 64;", "bar.sync 1, _, 2"),
        ("bar.red.or.pred %p, 0, 32, %q;", "bar.red.or.pred p, 0, _, 1, %q"),
        ("st.weak.u32 [x], 1;", "st.weak.u32 [x], 1"),
        ("ld.v2.u32 {%r0, %r1}, [a+8];", "ld.v2.u32 {r0, r1}, [a+8]"),
        ("elect.sync _|%p, 0xffffffff;", "elect.sync (_|p), 4294967295"),
    ],
)
def test_a_line_in_columns(line: str, cell: str) -> None:
    text = print_litmus(convert(blocks(line), Layout.COLUMNS))
    assert f"\n {cell} " in text.split("L0:", 1)[1]


def test_a_count_in_a_register_is_divided() -> None:
    made = convert(blocks("bar.sync 1, %r4;"), Layout.COLUMNS)
    rows = [row.split("|")[0].strip() for row in print_litmus(made).split("L0:", 1)[1].splitlines()[1:3]]
    assert rows == ["div.u32 n0, %r4, 32", "bar.sync 1, _, n0"]


def test_a_new_register_has_a_name_of_its_own() -> None:
    test = table("P0:p0 = 0; p1 = 0;", "L0: beq r0, p0, L0", "ld.weak r0, p1")
    assert "setp.eq.s64 %p2, %r0, %p0;" in print_litmus(convert(test, Layout.BLOCKS))


def test_declarations_get_their_space_and_type() -> None:
    init = ".shared bar = mbarrier(1); a[3]; .const m = tensormap(a); .tensor acc[2]; y2 aliases y;"
    text = print_litmus(convert(table(init, "ld r0, x"), Layout.BLOCKS))
    for line in (
        ".global .s64 x = 0;",
        ".shared .b64 bar = mbarrier(1);",
        ".global .s64 a[3];",
        ".const .b8 m[128] = tensormap(a);",
        ".tensor .b32 acc[2];",
        "y2 aliases y;",
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize(
    ("init", "cell", "message", "hint"),
    [
        ("s @ surface aliases x;", "sust.weak s, 1", "sust has no spelling in PTX", "keep this test in columns"),
        ("", "fence.proxy.texture", "PTX has no fence.proxy.texture", "it has .alias"),
        ("", "red.acq_rel.gpu.add x, 1", "PTX has no red.acq_rel", "write atom.acq_rel"),
        ("", "atom.relaxed.gpu.sub r0, x, 1", "PTX has no atom.sub", "add the negated value"),
        ("", "atom.relaxed.gpu.add r0, x, -1", ".u64 may not hold every number", "such as .u64"),
        ("P0:r1 = -1;", "atom.relaxed.gpu.exch r0, x, r1", ".b64 may not hold every number", "such as .b64"),
        ("", "atom.relaxed.gpu.inc r0, x, 1", "PTX has no atom.relaxed.gpu.inc of 64 bits", None),
        (".u32 z = 0; P0:r1 = x;", "ld.weak r0, [r1]", "may access elements of different sizes", "give it a type"),
        (".u32 z = 0;", "st.weak z, -1", ".s32 may not hold every number", "such as .s32"),
        ("z = 0xffffffffffffffff;", "ld.weak r0, z", "18446744073709551615 does not fit .s64", "write -1"),
        ("", "bar.cta.sync 1, 1", "whoever arrives meets", "give the count of threads"),
        ("P0:r1 = 1;", "bar.cta.sync 1, r1, 2", "named by a register", "write the numbers out"),
        ("", "bar.cta.sync 1, _, -1", "multiple of 32, not -32", "32 for each warp"),
    ],
)
def test_what_blocks_cannot_say_is_refused(init: str, cell: str, message: str, hint: str | None) -> None:
    with pytest.raises(InputError) as caught:
        convert(table(init, cell), Layout.BLOCKS)
    assert message in caught.value.message
    assert (hint is None) is (caught.value.hint is None)
    assert hint is None or hint in (caught.value.hint or "")
    assert caught.value.span is not None


def test_its_own_layout_is_left_alone() -> None:
    for test in (blocks("nonsense.u32 %r0;"), columns("nonsense r0")):
        assert convert(test, test.layout) is test
        with pytest.raises(InputError, match="unknown instruction"):
            convert(test, other(test.layout))
