"""Every mistake has a message of its own, at its place, with a repair; and hostile text ends in one too."""

from __future__ import annotations

import pytest
from helpers.examples import share
from helpers.patience import processor_seconds
from hypothesis import given
from hypothesis import strategies as st

from memmodel.cat import parse_model
from memmodel.errors import InputError
from memmodel.source import Source


def refusal(text: str, *, strict_names: bool = False) -> str:
    with pytest.raises(InputError) as caught:
        parse_model(Source("m.cat", text), strict_names=strict_names)
    return caught.value.render()


GOLDEN = {
    "let x po | rf": """\
m.cat:1:10: error: missing `=` in `let x`, found `|`
  1 | let x po | rf
    |          ^
  hint: let x = …""",
    "acyclic (po | rf as foo": """\
m.cat:1:9: error: `(` is never closed
  1 | acyclic (po | rf as foo
    |         ^
  hint: `)` is missing before `as` at m.cat:1:18""",
    "acyclic po\n(* open (* inner *)": """\
m.cat:2:1: error: comment is never closed
  2 | (* open (* inner *)
    | ^^
  hint: close it with `*)`; comments nest""",
    "let rec = po": """\
m.cat:1:9: error: `let rec` needs a name, found `=`
  1 | let rec = po
    |         ^
  hint: let rec name = …""",
    "PTX\nacylic po as x": """\
m.cat:2:1: error: unknown statement `acylic`
  2 | acylic po as x
    | ^^^^^^
  hint: did you mean `acyclic`?""",
    "let strong-write = W\nlet a = strong-wrte": """\
m.cat:2:9: error: unknown name `strong-wrte`
  2 | let a = strong-wrte
    |         ^^^^^^^^^^^
  hint: did you mean `strong-write` (set, defined at line 1)?""",
    "acyclic rff | po": """\
m.cat:1:9: error: unknown name `rff`
  1 | acyclic rff | po
    |         ^^^
  hint: did you mean `rf` (relation, a base name)?""",
    "let a = W ; po": """\
m.cat:1:9: error: `;` joins two relations; left side `W` is a set
  1 | let a = W ; po
    |         ^
  hint: [S] is the identity relation on a set S; S * T pairs two sets""",
    "let a = rf | W": """\
m.cat:1:12: error: `|` takes two sets or two relations; left side `rf` is a relation, right side `W` is a set
  1 | let a = rf | W
    |            ^
  hint: domain(r) and range(r) are the sets at the ends of a relation r""",
    "let rec a = po | (rf \\ (a ; a))": """\
m.cat:1:25: error: `a` is recursive here and may not stand under `~` or on the right of `\\`
  1 | let rec a = po | (rf \\ (a ; a))
    |                         ^
  hint: a `let rec` is a least fixpoint: a larger operand must give a larger result""",
    "let f(x) = x ; x\nlet a = f(W)": """\
m.cat:2:9: error: `;` joins two relations; left side `x` is a set
  2 | let a = f(W)
    |         ^^^^
  hint: in the body of `f`, m.cat:1:12: 'x'""",
    'include "nowhere/at-all.cat"': """\
m.cat:1:9: error: no file "nowhere/at-all.cat"
  1 | include "nowhere/at-all.cat"
    |         ^^^^^^^^^^^^^^^^^^^^
  hint: it is looked for beside this file, then among the shipped models""",
}

STRICT = {
    "acyclic po as a\nacyclic rf as a": """\
m.cat:2:1: error: two checks are called `a`
  2 | acyclic rf as a
    | ^^^^^^^^^^^^^^^
  hint: the other is at m.cat:1:1""",
    "let a = [MFENCE] ; po\nlet b = LFENCE | MFENCE | SFENCE": """\
m.cat:2:9: error: a PTX test has none of 2 names, they are empty: `LFENCE`, `SFENCE`
  2 | let b = LFENCE | MFENCE | SFENCE
    |         ^^^^^^
  hint: `memmodel names` lists what a PTX test has""",
    "show W": """\
m.cat:1:6: error: `W` is a set; pictures draw relations
  1 | show W
    |      ^""",
}


@pytest.mark.parametrize("text", GOLDEN)
def test_message_in_full(text: str) -> None:
    assert refusal(text) == GOLDEN[text]


@pytest.mark.parametrize("text", STRICT)
def test_what_is_told_is_an_error_under_strict_names(text: str) -> None:
    assert refusal(text, strict_names=True) == STRICT[text]
    model = parse_model(Source("m.cat", text))
    assert [notice.message in STRICT[text] for notice in model.notices] == [True]


@pytest.mark.parametrize(
    "text, place, words",
    [
        ("acyclic po)", "1:11", "`)` closes nothing"),
        ("let a = [W\nlet b = po", "1:9", "`[` is never closed"),
        ("let a = begin po", "1:9", "`begin` is never closed"),
        ('let a = "x', "1:9", "string is never closed"),
        ("foo = po", "1:1", "begins with `let`"),
        ("let a = po rf", "1:9", "`po` is a relation, not a function"),
        ("let a = po rf co", "1:15", "operator is missing before `co`"),
        ("let a = po + rf", "1:12", "`+` is the transitive closure"),
        ("let a = po |", "1:13", "found the end of the file"),
        ("let a = po ^ rf", "1:14", "expected `-1` after `^`"),
        ("let a = 1", "1:9", "only `0`"),
        ("let a = 'tag", "1:9", "tags"),
        ("let a = @", "1:9", "no meaning"),
        ("let a = {W}\nlet b = a ; po", "2:11", "cannot combine a set of sets"),
        ("let a = (po, rf)\nlet b = a | po", "2:11", "cannot combine a tuple of 2"),
        ("let a = if po then rf", "1:15", "`if` needs a condition"),
        ("let a = po when empty a", "1:12", "`when` belongs to `let rec`"),
        ("let rec f(x) = f(x)\nlet a = f(po)", "2:9", "too large"),
        ("let (a, b) = po", "1:5", "patterns"),
        ("let a = po and a = rf", "1:16", "defined twice"),
        ("let f(x, x) = x", "1:10", "appears twice"),
        ("let f(x) = x\nacyclic f", "2:9", "`f` is a function"),
        ("let f(x) = x\nlet a = f(po, po)", "2:9", "takes 1 argument, not 2"),
        ("let never-called(x) = y ; x", "1:23", "unknown name `y`"),
        ("let a = domain(W)", "1:16", "`domain` takes a relation"),
        ("let a = [po]", "1:10", "identity on a set"),
        ("let a = W+", "1:9", "`+` applies to a relation"),
        ("let a = po * W", "1:9", "left side `po` is a relation"),
        ("let rec a = W and b = a ; a", "1:23", "left side `a` is a set"),
        ("acyclic W", "1:9", "`acyclic` tests a relation"),
        ("acyclic po as let", "1:15", "keyword `let`"),
        ("flag po as x", "1:6", "expected acyclic"),
        ("show po | rf", "1:6", "needs a name"),
        ("unshow foo", "1:8", "unknown name `foo`"),
        ("with co from po", "1:14", "`with` chooses from a set of relations"),
        ('include "coss.cat"', "1:9", 'no file "coss.cat"'),
        ("include sc", "1:9", "file name in quotes"),
        ('"title" "again"', "1:9", "only a title"),
        ('empty po "|" rf', "1:10", "only a title"),
    ],
)
def test_message_and_place(text: str, place: str, words: str) -> None:
    first = refusal(text).split("\n")[0]
    assert first.startswith(f"m.cat:{place}: error: ") and words in first


def test_a_file_has_so_many_checks_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memmodel.cat.resolve.MAX_CHECKS", 2)
    checks = [f"empty po as C{number}\n" for number in range(3)]
    parse_model(Source("m.cat", "".join(checks[:2])))
    assert "m.cat:3:1: error: more than 2 checks" in refusal("".join(checks))


@pytest.mark.parametrize("text", ["", "\n\n", "(* nothing *)", '"only a title"'])
def test_a_model_without_statements_is_refused(text: str) -> None:
    assert refusal(text).startswith("m.cat:1:1: error: the model has no statement\n  hint: ")


HOSTILE = {
    "parentheses": "let a = " + "(" * 100_000,
    "complements": "let a = " + "~" * 100_000 + "po",
    "brackets": "let a = " + "[" * 100_000,
    "calls": "let a = " + "toid(" * 50_000,
    "locals": "let a = " + "let x = " * 50_000,
    "comments": "(*" * 200_000,
    "union": "let a = po" + "|po" * 100_000,
    "difference": "let a = po" + "\\po" * 100_000,
    "closures": "let a = po" + "+" * 100_000,
    "doubling": "let f0(x) = x;x\n"
    + "\n".join(f"let f{i}(x) = f{i - 1}(x);f{i - 1}(x)" for i in range(1, 60))
    + "\nlet a = f59(po)",
    "hidden doubling": "let f0(x) = x\n"
    + "\n".join(f"let f{i}(x) = let q = f{i - 1}(x) in let r = f{i - 1}(x) in po" for i in range(1, 60)),
    "long chain": "let a0 = po\n" + "\n".join(f"let a{i} = a{i - 1};po" for i in range(1, 2_000)),
    "many names": "\n".join(f"let a{i} = po" for i in range(30_000)),
    "deep functions": "let f0(x) = x\n"
    + "\n".join(f"let f{i}(x) = f{i - 1}(x)" for i in range(1, 2_000))
    + "\nlet a = f1999(po)",
}


@pytest.mark.parametrize("name", share(HOSTILE, 3))
def test_hostile_text_is_refused_in_bounded_time(name: str) -> None:
    with processor_seconds(15):
        message = refusal(HOSTILE[name])
    assert len(message) < 600


MARKS = "( ) [ ] { } | ; & \\ * ~ + ? ^ -1 = , 0 _"
WORDS = 'let rec and as in begin end acyclic empty show flag include "sc.cat" po W f'
TOKENS = [*MARKS.split(), *WORDS.split(), "\n"]


@given(st.lists(st.sampled_from(TOKENS), max_size=15).map(" ".join) | st.text(max_size=40))
def test_any_text_is_a_model_or_an_input_error(text: str) -> None:
    try:
        parse_model(Source("m.cat", text))
    except InputError as error:
        assert error.render()
