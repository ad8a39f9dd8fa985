"""Which edits there are, and what they make of a model."""

from __future__ import annotations

import pytest

from memmodel import api, cat
from memmodel.cat.analysis import names_in
from memmodel.cat.syntax import Model
from memmodel.cat.text.printer import show
from memmodel.mutate.edits import edited, edits_of
from memmodel.mutate.family import EditFamily
from memmodel.mutate.siblings import ROWS, siblings
from memmodel.source import Source

TEXT = """"small"
let release-write = W & REL
let acquire-read = R & ACQ
let unused = po | rf
let through(r) = [release-write] ; r | rf
let order = (through(po+) \\ id) ; [R]
acyclic order as Order
flag ~empty F \\ SC as odd-fence
"""


def model(text: str = TEXT) -> Model:
    return cat.parse_model(Source("small.cat", text))


def keys(of: Model) -> list[str]:
    return [f"{edit.span.line} {edit.rule}: {edit.what}" for edit in edits_of(of)]


def test_the_edits_of_a_small_model_are_these() -> None:
    assert keys(model()) == [
        "2 release-write: `W` -> `M`",
        "2 release-write: without `W`",
        "2 release-write: `REL` -> `ACQ`",
        "2 release-write: without `REL`",
        "5 order: without `[release-write]; po+`",
        "5 order: without `[release-write]`",
        "5 order: `release-write` -> `REL`",
        "5 order: `release-write` -> `W`",
        "5 order: `rf` -> `co`",
        "5 order: without `rf`",
        "6 order: `(order)+` in its place",
        "6 order: `po+` -> `po`",
        "6 order: without `\\` `id`",
        "6 order: without `[R]`",
        "6 order: `R` -> `M`",
        "7 Order: `acyclic` -> `irreflexive`",
        "7 Order: without the axiom `Order`",
        "8 odd-fence: without the flag `odd-fence`",
        "8 odd-fence: `SC` -> `ACQ_REL`",
        "8 odd-fence: without `\\` `SC`",
    ]


@pytest.mark.parametrize(
    ("what", "order"),
    [
        ("without `rf`", "([release-write]; po+) \\ id; [R]"),
        ("without `[release-write]; po+`", "rf \\ id; [R]"),
        ("without `\\` `id`", "([release-write]; po+ | rf); [R]"),
        ("`po+` -> `po`", "([release-write]; po | rf) \\ id; [R]"),
        ("`(order)+` in its place", "(([release-write]; po+ | rf) \\ id; [R])+"),
        ("without `[R]`", "([release-write]; po+ | rf) \\ id"),
    ],
)
def test_an_edit_changes_its_rule_and_nothing_else(what: str, order: str) -> None:
    subject = model()
    edit = next(edit for edit in edits_of(subject) if edit.what == what)
    changed = edited(subject, edit)
    rule = next(n for n, definition in enumerate(subject.definitions) if definition.name == "order")
    assert show(changed.definitions[rule].body) == order
    assert changed.checks == subject.checks
    assert [d for d in changed.definitions if d.name != "order"] == [
        d for d in subject.definitions if d.name != "order"
    ]


def test_a_check_is_dropped_or_tests_otherwise() -> None:
    subject = model()
    by_what = {edit.what: edited(subject, edit) for edit in edits_of(subject)}
    assert [check.name for check in by_what["without the axiom `Order`"].checks] == ["odd-fence"]
    assert [check.name for check in by_what["without the flag `odd-fence`"].checks] == ["Order"]
    assert [check.kind for check in by_what["`acyclic` -> `irreflexive`"].checks] == ["irreflexive", "empty"]


def test_a_function_is_edited_in_all_its_calls() -> None:
    subject = model('"f"\nlet f(r) = r & ext\nacyclic f(rf) | f(co) as Both\n')
    edit = next(edit for edit in edits_of(subject) if edit.what == "without `ext`")
    assert show(edited(subject, edit).checks[0].body) == "rf | co"


def test_every_edit_of_a_shipped_model_differs_from_it_in_its_text() -> None:
    """Or is known to be the same: equal expressions are one node."""
    subject = api.load("ptx-7.5")
    family = EditFamily(subject, edits_of(subject))
    assert len({member.edit.key for member in family.members}) == len(family.members) > 200
    for member in family.members:
        changed = [a is not b for a, b in zip(subject.definitions, member.model.definitions, strict=True)]
        assert member.of_check or any(changed) or member.model.checks != subject.checks, member.edit.key
        if member.unchanged:
            assert not member.changes.checks


def test_equal_expressions_are_seen_to_be_equal() -> None:
    subject = model('"e"\nlet a = po | rf | po\nirreflexive (a ; co)? \\ id as A\n')
    members = {member.edit.what: member for member in EditFamily(subject, edits_of(subject)).members}
    assert not members["without `rf`"].unchanged
    twice = model('"t"\nlet a = po & po\nacyclic a as A\n')
    assert all(
        member.changes.checks for member in EditFamily(twice, edits_of(twice)).members
    )  # `po` is another node than `po & po`


def test_siblings_are_names_of_cat() -> None:
    from memmodel.base.relations import RELATION_ROWS
    from memmodel.base.sets import SET_ROWS

    for row in ROWS:
        assert set(row) <= set(SET_ROWS) or set(row) <= set(RELATION_ROWS), row


def test_nothing_stands_where_it_is_not_known_yet() -> None:
    """The body of a recursive definition may name the one that is edited."""
    read = model('"t"\nlet rec a = (po & b) | rf and b = a | fr\nacyclic a as A\n')
    edited_one = next(number for number, definition in enumerate(read.definitions) if definition.name == "a")
    name = next(name for name in names_in(read.definitions[edited_one].body) if name.name == "b")
    assert [each.name for each in siblings(name, read, edited_one)] == ["fr"]
    assert [each.name for each in siblings(name, read, len(read.definitions))] == ["a", "fr"]
