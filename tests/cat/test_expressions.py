"""Operators, their strength and grouping, kinds, functions and recursion; and printing is the inverse of reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmodel.cat import BASE_NAMES, parse_model
from memmodel.cat.syntax import Binary, Definition, Empty, Expr, Kind, Name, Unary
from memmodel.cat.text.printer import show
from memmodel.source import Source

SETS = ("W", "R", "_", "ACQ_REL")
RELATIONS = ("po", "rf", "po-loc", "sync_fence")


def last(text: str) -> Definition:
    """The last definition of a model text."""
    return parse_model(Source("<text>", text)).definitions[-1]


def read(text: str) -> Expr:
    return last(f"let x = {text}").body


@pytest.mark.parametrize(
    "text, grouped",
    [
        ("po | rf ; co", "po | (rf ; co)"),
        ("po ; rf \\ co", "po ; (rf \\ co)"),
        ("po \\ rf & co", "po \\ (rf & co)"),
        ("po & W * R", "po & (W * R)"),
        ("W | R * W", None),
        ("po | rf | co", "po | (rf | co)"),
        ("po ; rf ; co", "po ; (rf ; co)"),
        ("po & rf & co", "po & (rf & co)"),
        ("po \\ rf \\ co", "(po \\ rf) \\ co"),
        ("~po ; rf", "(~po) ; rf"),
        ("~po+", "~(po+)"),
        ("~W * R", "(~W) * R"),
        ("po^-1+", "(po^-1)+"),
        ("po^+", "po+"),
        ("po^*?", "(po*)?"),
        ("po* ; rf", "(po*) ; rf"),
        ("po*\\rf", "(po*) \\ rf"),
        ("po & rf*", "po & (rf*)"),
        ("[W] ; po ; [R]", "([W]) ; (po ; ([R]))"),
        ("begin po | rf end ; co", "(po | rf) ; co"),
        ("{}", "0"),
        ("domain(rf) * range(rf)", "(domain(rf)) * (range(rf))"),
        ("toid(W)", "[W]"),
        ("toid W", "[W]"),
        ("fencerel(F) | rf", "((po & (_ * F)) ; po) | rf"),
        ("fencerel [W]", None),
        ("(let a = po ; rf in a | a)", "(po ; rf) | (po ; rf)"),
    ],
)
def test_operators_group_as_in_herd(text: str, grouped: str | None) -> None:
    if grouped is None:
        with pytest.raises(Exception, match="set"):
            read(text)
    else:
        assert read(text) == read(grouped)


def test_star_is_a_product_before_an_operand_and_a_closure_elsewhere() -> None:
    model = parse_model(Source("<text>", "let a = W * R\nlet b = po*\nlet c = (po*)\nacyclic rf* ~empty co as d"))
    a, b, c = (definition.body for definition in model.definitions[-3:])
    assert isinstance(a, Binary) and a.op == "*" and a.kind is Kind.RELATION
    assert isinstance(b, Unary) and b.op == "*" and b == c
    assert [(check.kind, check.negated) for check in model.checks] == [("acyclic", False), ("empty", True)]


def test_a_name_means_what_it_meant_where_it_stands() -> None:
    model = parse_model(Source("<text>", "let a = co\nlet co = co+\nlet b = co\nacyclic fr as fr-of-the-prelude"))
    a, co, b = model.definitions[-3:]
    assert a.body == Name("co", Kind.RELATION, None)
    assert co.body == Unary("+", Name("co", Kind.RELATION, None), Kind.RELATION)
    assert b.body == Name("co", Kind.RELATION, len(model.definitions) - 2)
    prelude = model.checks[0].body
    assert isinstance(prelude, Name) and prelude.ref is not None
    assert show(model.definitions[prelude.ref].body) == "rf^-1; co"


def test_let_and_sees_the_names_as_they_were() -> None:
    text = "let a = po\nlet a = rf and b = a"
    assert parse_model(Source("<text>", text)).definitions[-1].body == Name(
        "a", Kind.RELATION, len(parse_model(Source("<text>", text)).definitions) - 3
    )


def test_functions_take_their_kinds_from_each_call() -> None:
    assert last("let f(x) = x | x\nlet a = f(W)").kind is Kind.SET
    assert last("let f x = x | x\nlet a = f po").kind is Kind.RELATION
    body = last("let f(s, r) = [s] ; r\nlet po-before = po\nlet po = rf\nlet a = f(W, po)").body
    assert show(body) == "[W]; po" and isinstance(body, Binary)
    assert isinstance(body.right, Name) and body.right.ref is not None


def test_a_function_keeps_the_names_of_its_place() -> None:
    assert last("let f(x) = x ; po\nlet po = rf\nlet a = f(co)").body == last("let a = co ; po").body


def test_recursive_definitions_share_a_group_and_refer_to_themselves() -> None:
    model = parse_model(Source("<text>", "let rec a = rf | (a ; b) and b = po | a\nlet c = a"))
    a, b, c = model.definitions[-3:]
    first = len(model.definitions) - 3
    assert a.group == b.group is not None and c.group is None
    assert a.kind is b.kind is Kind.RELATION
    assert b.body == Binary("|", Name("po", Kind.RELATION), Name("a", Kind.RELATION, first), Kind.RELATION)


def test_a_recursive_set_is_a_set() -> None:
    definition = last("let rec tainted = W & IW | range([tainted] ; rf)")
    assert definition.kind is Kind.SET


def test_zero_takes_its_kind_from_its_place() -> None:
    assert read("W | 0") == Binary("|", Name("W", Kind.SET), Empty(Kind.SET), Kind.SET)
    assert read("0 ; po") == Binary(";", Empty(Kind.RELATION), Name("po", Kind.RELATION), Kind.RELATION)
    assert last("let none = 0\nlet a = none & W").kind is Kind.SET
    assert read("emptyset | W") == Binary("|", Empty(Kind.SET), Name("W", Kind.SET), Kind.SET)


def test_base_names_are_unique_and_explained() -> None:
    names = [base.name for base in BASE_NAMES]
    assert len(set(names)) == len(names)
    for base in BASE_NAMES:
        assert base.meaning and base.source and base.kind in (Kind.SET, Kind.RELATION)
        assert last(f"let x = {base.name}").kind is base.kind


def _named(names: tuple[str, ...], kind: Kind) -> st.SearchStrategy[Expr]:
    model = parse_model(Source("<text>", "let unused = po"))
    refs = {definition.name: index for index, definition in enumerate(model.definitions)}
    return st.sampled_from([Name(name, kind, refs.get(name)) for name in names])


def _expressions(kind: Kind, depth: int) -> st.SearchStrategy[Expr]:
    atoms = _named(SETS if kind is Kind.SET else RELATIONS, kind)
    if depth == 0:
        return atoms
    same = _expressions(kind, depth - 1)
    sets = same if kind is Kind.SET else _expressions(Kind.SET, depth - 1)
    either = st.builds(Binary, st.sampled_from("|&\\"), same, same, st.just(kind)) | st.builds(
        Unary, st.just("~"), same, st.just(kind)
    )
    if kind is Kind.SET:
        ends = st.builds(Unary, st.sampled_from(("domain", "range")), _named(RELATIONS, Kind.RELATION), st.just(kind))
        return atoms | either | ends
    return (
        atoms
        | either
        | st.builds(Binary, st.just(";"), same, same, st.just(kind))
        | st.builds(Binary, st.just("*"), sets, sets, st.just(kind))
        | st.builds(Unary, st.sampled_from(("^-1", "+", "*", "?")), same, st.just(kind))
        | st.builds(Unary, st.just("[]"), sets, st.just(kind))
    )


@given(st.one_of(_expressions(Kind.RELATION, 4), _expressions(Kind.SET, 4)))
def test_print_then_read_is_identity(expr: Expr) -> None:
    assert read(show(expr)) == expr
