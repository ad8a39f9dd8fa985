"""Mistakes in litmus files: the exact message, and that no input hangs, crashes or slips through."""

from __future__ import annotations

import random

import pytest
from helpers.examples import TIMES, generator, share
from helpers.patience import processor_seconds

from memmodel.errors import InputError
from memmodel.litmus import parse_litmus
from memmodel.source import Source

COLUMNS = r"""PTX T
"What it is for"
{ x=0; flag=0; P1:r3=0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 st.weak x, 1 | ld.weak r0, flag ;
 fence.sc.gpu | ld.weak r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0)
"""

BLOCKS = r"""PTX T
.global .u32 x = 0;
.shared .u64 bar;
thread P0 @ cta 0, gpu 0 {
    .reg .u32 %r<4>;
    st.weak.global.u32 [x], 1;
L0:
    ld.weak.shared.u64 %r0, [bar];
    @%p bra L0;
}
exists (P0:%r0 == 1)
"""

GOLDEN = [
    (
        COLUMNS.replace('"What it is for"', "Expect=ptx-9.4:neverr"),
        """t.litmus:2:16: error: unknown expectation `neverr`
  2 | Expect=ptx-9.4:neverr
    |                ^^^^^^
  hint: did you mean never?""",
    ),
    (
        COLUMNS.replace('"What it is for"', "Expct=ptx-9.4:never"),
        """t.litmus:2:1: error: unknown header line `Expct`
  2 | Expct=ptx-9.4:never
    | ^^^^^
  hint: did you mean Expect?""",
    ),
    (
        COLUMNS.replace("flag=0;", "flag=0; s @ surfce aliases x;"),
        """t.litmus:3:20: error: unknown proxy `surfce`
  3 | { x=0; flag=0; s @ surfce aliases x; P1:r3=0; }
    |                    ^^^^^^
  hint: did you mean surface?""",
    ),
    (
        COLUMNS.replace("flag=0;", "flag=0; a aliases b; b aliases a;"),
        """t.litmus:3:16: error: these aliases go round in a circle: a aliases b aliases a
  3 | { x=0; flag=0; a aliases b; b aliases a; P1:r3=0; }
    |                ^
  hint: one of them must be a variable""",
    ),
    (
        COLUMNS.replace("flag=0;", "flag=0; s @ surface aliases flags;"),
        """t.litmus:3:36: error: variable `flags` is not declared
  3 | { x=0; flag=0; s @ surface aliases flags; P1:r3=0; }
    |                                    ^^^^^
  hint: did you mean flag?""",
    ),
    (
        COLUMNS.replace("flag=0;", "flag=0x1ffffffffffffffff;"),
        """t.litmus:3:13: error: `0x1ffffffffffffffff` does not fit in 64 bits
  3 | { x=0; flag=0x1ffffffffffffffff; P1:r3=0; }
    |             ^^^^^^^^^^^^^^^^^^^""",
    ),
    (
        COLUMNS.replace("st.weak x, 1 |", "st.weak x, 1 | |"),
        """t.litmus:5:2: error: this row has 3 cells, the header has 2 threads
  5 |  st.weak x, 1 | | ld.weak r0, flag ;
    |  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: an idle thread has an empty cell; a row ends with `;`""",
    ),
    (
        COLUMNS.replace("P1@", "P0@"),
        """t.litmus:4:19: error: two columns are called `P0`
  4 |  P0@cta 0,gpu 0 | P0@cta 1,gpu 0 ;
    |                   ^^""",
    ),
    (
        COLUMNS.replace("ld.weak r0, flag", "ld.weak r0, flg"),
        """t.litmus:5:29: error: location `flg` is not declared
  5 |  st.weak x, 1 | ld.weak r0, flg ;
    |                             ^^^
  hint: did you mean flag?""",
    ),
    (
        COLUMNS.replace("st.weak x", "st.weak z"),
        """t.litmus:5:10: error: location `z` is not declared
  5 |  st.weak z, 1 | ld.weak r0, flag ;
    |          ^
  hint: declare it, or write %z for a register that holds an address""",
    ),
    (
        COLUMNS.replace("ld.weak r0, flag", "ld.weak r0, %r1+4"),
        """t.litmus:5:32: error: expected `,` or `;` after the operand, found `+`
  5 |  st.weak x, 1 | ld.weak r0, %r1+4 ;
    |                                ^
  hint: an address with an offset stands in brackets: [x+4]""",
    ),
    (
        COLUMNS.replace("P1:r1 == 0", "P3:r1 == 0"),
        """t.litmus:7:23: error: thread `P3` is not declared
  7 | exists (P1:r0 == 1 /\\ P3:r1 == 0)
    |                       ^^^^^
  hint: the test has P0, P1""",
    ),
    (
        COLUMNS.replace("P1:r1 == 0", "r1 == 0"),
        """t.litmus:7:23: error: `r1` is a register of a thread
  7 | exists (P1:r0 == 1 /\\ r1 == 0)
    |                       ^^
  hint: write P1:r1""",
    ),
    (
        COLUMNS.replace("exists", "exist"),
        """t.litmus:7:1: error: this is not a row of the table
  7 | exist (P1:r0 == 1 /\\ P1:r1 == 0)
    | ^^^^^
  hint: did you mean exists?""",
    ),
    (
        COLUMNS[: COLUMNS.index("exists")],
        """t.litmus:6:32: error: expected exists, ~exists or forall, found the end of the file
  6 |  fence.sc.gpu | ld.weak r1, x ;
    |                                ^
  hint: a test ends with a question such as `exists (P1:r0 == 1)`""",
    ),
    (
        BLOCKS.replace("[x], 1;", "[x], 1"),
        """t.litmus:6:5: error: `;` is missing after this instruction
  6 |     st.weak.global.u32 [x], 1
    |     ^^^^^^^^^^^^^^^^^^^^^^^^^""",
    ),
    (
        BLOCKS.replace("bra L0", "bra L1"),
        """t.litmus:9:13: error: label `L1` is not declared
  9 |     @%p bra L1;
    |             ^^
  hint: a label is written `L0:` in the same thread""",
    ),
    (
        BLOCKS.replace("[bar]", "[bar@cta3]"),
        """t.litmus:8:30: error: `bar` has no instance in CTA 3
  8 |     ld.weak.shared.u64 %r0, [bar@cta3];
    |                              ^^^^^^^^
  hint: the test's threads are in CTA 0""",
    ),
    (
        BLOCKS.replace(".shared", ".shred"),
        """t.litmus:3:1: error: `.shred` is not a state space, a type or .align
  3 | .shred .u64 bar;
    | ^^^^^^
  hint: did you mean .shared?""",
    ),
    (
        BLOCKS.replace("thread", "tread"),
        """t.litmus:4:7: error: expected `;` after the declaration, found `P0`
  4 | tread P0 @ cta 0, gpu 0 {
    |       ^^
  hint: did you mean thread?""",
    ),
]


@pytest.mark.parametrize(("text", "message"), GOLDEN, ids=lambda v: v.splitlines()[0] if "error" in v else "")
def test_a_mistake_gets_its_message(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_litmus(Source("t.litmus", text))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("flag=0;", "x=1;", "`x` is declared twice"),
        ("flag=0;", "flag=09;", "`09` is not a number"),
        ("flag=0;", "flag=1.5;", "this needs a type"),
        ("flag=0;", "a[2]={1,2,3};", "3 values for 2 elements"),
        ("flag=0;", "a[0];", "at least one element"),
        ("flag=0;", "a={1};", "a list of values initialises an array"),
        ("flag=0;", "x @ surface;", "a proxy is named only for an alias"),
        ("flag=0;", "not=1;", "`not` is a word of the language"),
        ("flag=0;", "P1:r3=1;", "`P1:r3` is initialised twice"),
        ("flag=0;", "P7:r3=1;", "thread `P7` is not declared"),
        ("flag=0;", "P0:r3=zzz;", "variable `zzz` is not declared"),
        ("P1:r3=0; }", "P1:r3=0; ", "close the init block"),
        ("cta 0,gpu 0", "cta 0,gqu 0", "unknown level `gqu`"),
        ("cta 0,gpu 0", "cta 0,cta 0", "`cta` is given twice"),
        ("cta 0", "cta -1", "from 0 to 65535"),
        ("fence.sc.gpu", "L: L:", "label `L` stands twice"),
        ("fence.sc.gpu", "%r0", "is a register, not an instruction"),
        ("fence.sc.gpu", "ld r0, x@cta1", "`x` is not .shared"),
        ("fence.sc.gpu", "L: ld r0, L", "`L` is a label, not a location"),
        ("fence.sc.gpu", "ld r0, #3", "`#` means nothing here"),
        ("fence.sc.gpu", "ld r0, [4]", "expected a variable or a register"),
        ("fence.sc.gpu", "ld r0, {{{{{{{{{{x", "nest deeper than 8"),
        ("P1:r1 == 0)", "P1:r1 == 0", "this `\\(` is never closed"),
        ("P1:r1 == 0", "P1:r1", "expected a comparison"),
        ("P1:r1 == 0", "x[3] == 0", "`x` has no element 3"),
        ("/\\", "and", "conjunction is `/"),
        ("/\\", "&&", "conjunction is `/"),
        ('it is for"', "it is for", "this sentence is never closed"),
        ("{ x", "(* { x", "this comment is never closed"),
        ("{ x=0; flag=0; P1:r3=0; }", "", "a table begins with its init block"),
        ("PTX T", "C T", "the first line is not `PTX`"),
        ("PTX T", "PTX", "the test has no name"),
        ("PTX T", "PTX T U", "the name of a test is one word"),
    ],
)
def test_what_else_is_refused(before: str, after: str, words: str) -> None:
    assert before in COLUMNS
    with pytest.raises(InputError, match=words) as caught:
        parse_litmus(Source("t.litmus", COLUMNS.replace(before, after, 1)))
    assert caught.value.span is not None


def test_a_shared_variable_with_several_instances_needs_one_named() -> None:
    two = BLOCKS.replace("}\nexists (P0:%r0", "}\nthread P1 @ cta 1 { }\nexists (bar")
    with pytest.raises(InputError, match="`bar` has 2 instances"):
        parse_litmus(Source("t.litmus", two))


@pytest.mark.parametrize("text", [COLUMNS, BLOCKS], ids=["columns", "blocks"])
def test_every_truncation_is_refused(text: str) -> None:
    whole = text.rstrip().rstrip(")")
    for end in range(len(whole) + 1):
        with pytest.raises(InputError):
            parse_litmus(Source("t.litmus", whole[:end]))


@pytest.mark.generated
@pytest.mark.parametrize("text", [COLUMNS, BLOCKS], ids=["columns", "blocks"])
def test_a_damaged_file_is_read_or_refused_and_never_crashes(text: str) -> None:
    dice = generator(7)
    for _ in range(2_000 * TIMES):
        damaged = list(text)
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(damaged))
            damaged[at : at + dice.randint(0, 3)] = dice.choice(
                ["", ";", "{", "}", "[", "(", "|", "@", ":", '"', "%", "9", "x"]
            )
        try:
            parse_litmus(Source("t.litmus", "".join(damaged)))
        except InputError as error:
            assert str(error)


HEAD = "PTX T\n{ x=0; }\n P0 ;\n"
ASK = "exists (x == 0)"
HOSTILE = {
    "nothing": "",
    "two megabytes": "a" * 2_000_000,
    "blanks": "PTX T\n" + " " * 900_000,
    "binary": random.Random(1).randbytes(5_000).decode("latin-1"),
    "quotes": "PTX T\n" + '"' * 900_001,
    "open notes": "PTX T\n" + "(*" * 400_000,
    "comments": "PTX T\n" + "//\n" * 300_000,
    "braces": "PTX T\n" + "{" * 900_000,
    "brackets": HEAD + "ld r0, " + "[" * 900_000,
    "parentheses": HEAD + "exists " + "(" * 150_000,
    "negations": HEAD + "exists " + "not " * 150_000,
    "alternation": HEAD + "exists " + r"(x==0 \/ x==0 /\ " * 5_000,
    "conjunction": HEAD + "exists " + r"x==0 /\ " * 30_000 + "x==0",
    "rows": HEAD + "st x,1;\n" * 20_000 + ASK,
    "columns": "PTX T\n{}\n" + "|".join(f"P{i}" for i in range(65)) + ";" + ASK,
    "threads": "PTX T\n" + "".join(f"thread P{i} {{}}" for i in range(65)) + ASK,
    "instructions": "PTX T\nthread P0 {" + "fence.sc.gpu;\n" * 2_001 + "}" + ASK,
    "labels": HEAD + "".join(f"L{i}:" for i in range(40_000)) + ";" + ASK,
    "variables": "PTX T\n{" + "".join(f"x{i}=0;" for i in range(1_001)) + "}",
    "elements": "PTX T\n{ x[16384]; y[16384]; }",
    "aliases": "PTX T\n{" + "".join(f"x{i} aliases x{(i + 1) % 999};" for i in range(999)) + "} P0;" + ASK,
    "digits": "PTX T\n{x=" + "9" * 900_000 + "}",
    "one word": "PTX T\n{" + "x" * 900_000 + "=0}",
    "operands": HEAD + "ld " + "r0," * 90_000 + "r0;" + ASK,
    "locations": HEAD + "locations [" + "x;" * 90_000 + "]" + ASK,
    "expectations": "PTX T\n" + "".join(f"Expect=m{i}:never\n" for i in range(50_000)),
}


@pytest.mark.parametrize("name", share(HOSTILE, 3))
def test_hostile_input_is_refused_at_once(name: str) -> None:
    text = HOSTILE[name]
    with processor_seconds(15):
        with pytest.raises(InputError) as caught:
            parse_litmus(Source("t.litmus", text))
        shown = str(caught.value)
    assert len(shown) < 1_000
    assert shown.startswith("t.litmus:")


def test_two_hundred_levels_are_not_too_many() -> None:
    deep = HEAD + "exists " + "(" * 200 + "x == 0" + ")" * 200
    assert parse_litmus(Source("t.litmus", deep)).threads
    with pytest.raises(InputError, match="nests deeper than 200"):
        parse_litmus(Source("t.litmus", deep.replace("exists ", "exists (") + ")"))
