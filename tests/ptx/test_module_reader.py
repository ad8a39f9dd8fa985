"""PTX as compilers write it: what is read, and that bad text is an error with its line."""

from __future__ import annotations

import random
import re
from itertools import product
from pathlib import Path

import pytest
from helpers.kernel.samples import HEAD, copy, module

from memmodel.errors import InputError
from memmodel.ptx.lexer import tokenize
from memmodel.ptx.module.lexer import SPELLING
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.operands import Imm, JumpTable, JumpTarget, Mem, Register, TensorOperand, Vector
from memmodel.source import Source

SCOPED = """
{ .reg .pred P1; .reg .b32 %x;
LAB_WAIT:
mbarrier.try_wait.parity.shared::cta.b64 P1, [%r4], %r5;
@P1 bra DONE;
bra LAB_WAIT;
DONE: }
"""


def read(text: str) -> None:
    parse_module(Source("x.ptx", text))


def test_braces_scope_labels_and_registers() -> None:
    body = module(SCOPED + SCOPED).functions["k"].body
    assert body is not None
    jumps = [one for one in body if one.words[0] == "bra"]
    targets = [one.operands[0].at for one in jumps if isinstance(one.operands[0], JumpTarget)]
    assert len(jumps) == len(targets) == 4
    assert targets[1] < targets[0] <= targets[3] < targets[2]
    tests = [one.operands[0] for one in body if one.words[0] == "mbarrier"]
    slots = {one.slot for one in tests if isinstance(one, Register)}
    assert len(slots) == 2


def test_operands() -> None:
    body = (
        module("ld.shared.v2.u32 {%r5, %r6}, [ %r3 + 0x10 ];\n@!%p0 st.shared.f32 [%r3-4], 0f3F800000;")
        .functions["k"]
        .body
    )
    assert body is not None
    load, store = body[-3], body[-2]
    assert isinstance(load.operands[0], Vector) and isinstance(load.operands[1], Mem | TensorOperand)
    assert load.operands[1].offset == 16
    assert store.negated and store.guard is not None and store.guard.name == "%p0"
    assert isinstance(store.operands[0], Mem | TensorOperand) and store.operands[0].offset == -4


def test_the_size_of_a_warp_is_a_constant() -> None:
    """In operands and in expressions ("Predefined Constants")."""
    body = module("mov.u32 %r1, WARP_SZ;\nadd.u32 %r2, %r1, WARP_SZ*2+1;").functions["k"].body
    assert body is not None
    move, add = body[-3], body[-2]
    assert (move.operands[1], add.operands[2]) == (Imm(32), Imm(65))


def test_lines_of_inline_assembly_are_no_lines_of_the_source() -> None:
    """Triton writes a load as two lines of assembly, and LLVM gives the second one the next line of the source."""
    text = """.loc 1 14 19
// begin inline asm
.loc 1 14 19
mov.u32 %r1, 0x0;
.loc 1 15 19
mov.u32 %r2, 1;
.loc 1 2 3
mov.u32 %r3, 1;
// end inline asm
.loc 1 15 19
mov.u32 %r4, 1;
// begin inline asm

.loc 1 17 19
mov.u32 %r5, 1;
.loc 1 18 19
mov.u32 %r6, 1;
// end inline asm
// begin inline asm
.loc 1 25 19
mov.u32 %r7, 1;
// end inline asm"""
    read = parse_module(Source("k.ptx", module(text).source.text + '\n.file 1 "a.py"\n'))
    assert [str(step.location) for step in (read.functions["k"].body or ())[-8:-1]] == [
        "a.py:14:19", "a.py:14:19", "a.py:2:3", "a.py:15:19", "a.py:15:19", "a.py:15:19", "a.py:25:19",
    ]  # fmt: skip


def test_locations_follow_inlining() -> None:
    text = """.loc 1 5 3
.loc 2 16 3, function_name $L__info0, inlined_at 1 5 3
.loc 2 20 1, function_name $L__info0+4, inlined_at 2 16 3
mov.u32 %r9, 1;"""
    read_module = parse_module(
        Source("k.ptx", module(text).source.text + '\n.file 1 "a.cu"\n.file 2 "b.h"\n.section .debug_str { .b8 1,2 }\n')
    )
    body = read_module.functions["k"].body
    assert body is not None
    found = body[-2].location
    chain = []
    while found is not None:
        chain.append(str(found))
        found = found.caller
    assert chain == ["b.h:20:1", "b.h:16:3", "a.cu:5:3"]


def test_module_directives() -> None:
    text = (
        HEAD
        + """.extern .func __assertfail (.param .b64 a, .param .b32 b) ;
.global .align 1 .b8 name[5] = {97, 98, 0x63, 100};
.global .align 4 .u32 t[2] = {1, -1};
.extern .shared .align 16 .b8 dyn[];
.visible .entry e(.param .u64 .ptr .global .align 1 e_0, .param .align 128 .b8 e_1[64]) .reqntid 128 .maxnreg 168
{ .reg .b32 %r<4>; L: .branchtargets A, B; brx.idx %r1, L; A: B: { .param .b64 q; st.param.b64 [q], 1; } ret; }
"""
    )
    found = parse_module(Source("x.ptx", text))
    initial = found.variables["name"].initial
    assert initial is not None and initial.content == b"abcd" and found.variables["name"].size == 5
    initial = found.variables["t"].initial
    assert initial is not None and initial.content == b"\1\0\0\0\xff\xff\xff\xff"
    assert found.variables["dyn"].size is None
    entry = found.functions["e"]
    assert entry.directives == {"reqntid": (128,), "maxnreg": (168,)}
    assert [one.size for one in entry.params] == [8, 64] and entry.params[0].pointer
    assert entry.body is not None and entry.body[0].operands[1] == JumpTable("L", (1, 1))
    assert entry.body[1].operands[1] == Imm(1)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (HEAD + ".visible .entry k()\n{\nadd.s32 %r1, %r2, 3;\n}", 6, "%r1 is not declared"),
        (HEAD + ".entry k()\n{\nbra NOWHERE;\n}", 6, "NOWHERE is not declared"),
        (HEAD + ".entry k()\n{\nA:\nA:\nret;\n}", 7, "stands twice"),
        (HEAD + ".entry k()\n{\nret;\n", 6, "not closed"),
        (HEAD + ".entry k()\n{\nret\n}", 7, "expected an operand"),
        (HEAD + ".global .b8 x[4] = {1, 2", 4, "expected"),
        (HEAD + "\n§", 5, "begins no word"),
        (".target sm_90", 1, ".version is missing"),
        ("int main() { return 0; }", 1, "begins no directive"),
        (HEAD + ".entry k() {" + "{" * 100, 4, "braces are open"),
    ],
)
def test_errors_name_their_line(text: str, line: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert words in caught.value.message
    assert caught.value.span is not None and caught.value.span.line == line


def test_truncated_and_mutated_text_is_read_or_refused() -> None:
    text = module(copy() + SCOPED).source.text
    chance = random.Random(11)
    refused = 0
    for _ in range(500):
        at, end = sorted(chance.randrange(len(text)) for _ in range(2))
        kind = chance.randrange(4)
        piece = chance.choice(
            ["{", "}", ";", "[", "]", ",", "%", ":", "\0", "@!", "0f", "-", ".reg", '"', "/*", "é", "|"]
        )
        if kind == 0:
            changed = text[:at]
        elif kind == 1:
            changed = text[:at] + text[min(end, at + 40) :]
        elif kind == 2:
            changed = text[:at] + piece + text[at:]
        else:
            changed = text[:at] + text[end : end + 30] + text[at:]
        try:
            read(changed)
        except InputError as error:
            refused += 1
            assert error.span is not None
    assert 100 < refused < 500


@pytest.mark.parametrize(
    "length, size", [("4*8+1", 132), ("(1<<4)-1", 60), ("WARP_SZ*2", 256), ("8", 32), ("2][3+1", 32), ("0x10U", 64)]
)
def test_the_size_of_a_dimension_is_a_constant_expression(length: str, size: int) -> None:
    """ "The size of each dimension is a constant expression" ("Array Declarations")."""
    assert parse_module(Source("x.ptx", f"{HEAD}\n.shared .b32 s[{length}];\n")).variables["s"].size == size


@pytest.mark.parametrize(
    "line, message",
    [
        (".shared .align 3 .b32 s[4];", "an alignment is a power of two"),
        (".shared .align 0 .b32 s[4];", "an alignment is a power of two"),
        (".shared .align -4 .b32 s[4];", "an alignment is a power of two"),
        (f".shared .align {1 << 60} .b32 s[4];", "an alignment is a power of two"),
        (".visible .entry k(.param .u64 .ptr .global .align 12 p) { ret; }", "an alignment is a power of two"),
        (".visible .entry k() { .reg .b32 %r<10000000000000000000000>; ret; }", "the number of variables is 0 to"),
        (".visible .entry k() { .reg .b32 %r<-1>; ret; }", "the number of variables is 0 to"),
        (".global .b32 g<10000000000000000000000>;", "the number of variables is 0 to"),
        (".shared .b32 s[1-2];", "cannot have this size"),
        (".shared .b32 s[1<<60];", "cannot have this size"),
    ],
)
def test_numbers_of_a_declaration_that_nothing_has(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        parse_module(Source("x.ptx", f"{HEAD}\n{line}\n"))
    assert error.value.span is not None


PARTS = (
    "/* one */",
    "/* two ** \n * / */",
    "// three\n",
    " \n\t",
    "/**/",
    ".source_begin . it's #one.source .source_end",
)
"""What is dropped between words."""


@pytest.mark.parametrize("pair", list(product(PARTS, repeat=2)), ids=" ".join)
def test_comments_and_embedded_sources_are_dropped(pair: tuple[str, str]) -> None:
    """One behind another, before a word and at the end (Python 3.11.2 forgot its place in some of them)."""
    between = "".join(pair)
    words = [token.text for token in tokenize(Source("x.ptx", f"a {between} b {between}"), SPELLING)]
    assert words == ["a", "b", "the end of the file"]


def test_an_embedded_source_that_is_never_closed() -> None:
    """It was looked for its end to the end of the file, and so was each one after it: 60,000 took minutes."""
    with pytest.raises(InputError, match="this embedded source is never closed") as error:
        parse_module(Source("x.ptx", f"{HEAD}\n{'.source_begin x;' * 60_000}"))
    assert error.value.span is not None and error.value.span.line == HEAD.count("\n") + 2


def test_no_repetition_stands_within_a_possessive_one() -> None:
    """In such a pattern Python 3.11.2 loses its place."""
    for path in sorted(Path("memmodel").rglob("*.py")):
        assert not re.search(r"r[\"'].*\)[*+?]\+.*[\"']", path.read_text()), path
