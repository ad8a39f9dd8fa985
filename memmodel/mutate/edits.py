"""Every edit of a model that changes one rule in one place.

In: Model. Out: `ModelEdit`s, and the model with one of them. Settled here: which edits there are. They are made in the
expressions as read, so a model is parsed once; the body of a function is edited in all its calls. What no axiom and no
flag depends on is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TypeVar

from memmodel.base.kinds import Kind
from memmodel.cat.analysis import names_in
from memmodel.cat.syntax import Binary, Check, Definition, Expr, Model, Name, Unary, operands_of, rebuilt
from memmodel.cat.text.printer import show
from memmodel.mutate.siblings import siblings
from memmodel.source import Span

T = TypeVar("T")

_WEAKER = {"acyclic": "irreflexive", "irreflexive": "acyclic"}
_CLOSURES = {"+": ("",), "*": ("?", "+"), "?": ("", "*"), "~": ("",), "^-1": ("",)}
"""What an edit makes of an operator after (or before) its operand; "" drops it."""


class EditKind(Enum):
    """What an edit does. Its spelling is the word for the kind of edit."""

    DISJUNCT = "disjunct dropped"
    CONJUNCT = "conjunct dropped"
    EXCEPTION = "exception dropped"
    FILTER = "filter dropped"
    OPERATOR = "operator changed"
    OPTIONAL = "step made optional"
    CLOSED = "closure added"
    SIBLING = "name changed"
    AXIOM = "axiom dropped"
    FLAG = "flag dropped"
    TEST = "test changed"


@dataclass(frozen=True, slots=True)
class ModelEdit:
    """`rule`: the definition, axiom or flag that it is in. `what`: the edit in words. `target`: the place and the node
    that it changes, in all calls of a function. `keep`: which operand of this node is left; `replacement`: the operator
    or the test that it gets, `name`: the name. `definitions`, `checks`: those that have the place in their bodies."""

    rule: str
    change: EditKind
    what: str
    span: Span
    target: tuple[str, int, int, str]
    keep: int | None = None
    replacement: str = ""
    name: Name | None = None
    definitions: tuple[int, ...] = ()
    checks: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """`causality.cat:41`."""
        return f"{Path(self.span.source.name).name}:{self.span.line}"

    @property
    def key(self) -> str:
        """The name of the edit among those of its model: place, rule and words."""
        return f"{self.place}:{self.span.column} {self.rule}: {self.what}"


def edits_of(model: Model) -> list[ModelEdit]:
    """Every edit, in the order of the files."""
    edits: dict[tuple[object, ...], ModelEdit] = {}
    for number, definition in reached(model):
        for edit in _in_body(model, definition, definition.body, number):
            known = edits.setdefault((edit.target, edit.what), edit)
            edits[edit.target, edit.what] = replace(known, definitions=_with(known.definitions, number))
    for check in model.checks:
        for edit in _of_check(check):
            edits[edit.target, edit.what] = edit
        for edit in _in_body(model, check, check.body, len(model.definitions)):
            known = edits.setdefault((edit.target, edit.what), edit)
            edits[edit.target, edit.what] = replace(known, checks=_with(known.checks, check.name))
    files = {source.name: number for number, source in enumerate(model.sources)}
    return sorted(edits.values(), key=lambda edit: (files.get(edit.span.source.name, 0), edit.span.start, edit.what))


def _with(known: tuple[T, ...], more: T) -> tuple[T, ...]:
    return known if more in known else (*known, more)


def reached(model: Model) -> list[tuple[int, Definition]]:
    """The definitions that some check depends on, with their numbers."""
    seen: set[int] = set()
    waiting = [check.body for check in model.checks]
    while waiting:
        for name in names_in(waiting.pop()):
            if name.ref is not None and name.ref not in seen:
                seen.add(name.ref)
                definition = model.definitions[name.ref]
                waiting += [definition.body, *([definition.order] if definition.order is not None else [])]
    return [(number, definition) for number, definition in enumerate(model.definitions) if number in seen]


# ---- which there are -----------------------------------------------------------------------------------------------


def _of_check(check: Check) -> Iterator[ModelEdit]:
    """A check dropped, or its test changed."""
    if check.span is None:
        return
    target = (check.span.source.name, check.span.start, check.span.end, f"check {check.name}")
    if check.flag:
        yield ModelEdit(check.name, EditKind.FLAG, f"without the flag `{check.name}`", check.span, target)
    else:
        yield ModelEdit(check.name, EditKind.AXIOM, f"without the axiom `{check.name}`", check.span, target)
    if check.kind in _WEAKER:
        other = _WEAKER[check.kind]
        yield ModelEdit(
            check.name, EditKind.TEST, f"`{check.kind}` -> `{other}`", check.span, target, replacement=other
        )


def _in_body(model: Model, owner: Definition | Check, expr: Expr, before: int) -> Iterator[ModelEdit]:
    """The edits of an expression and of all that is in it."""
    if expr.span is not None:
        if isinstance(owner, Definition) and expr is owner.body and expr.kind is Kind.RELATION:
            yield from _closed(owner, expr)
        match expr:
            case Binary():
                yield from _of_binary(owner, expr)
            case Unary():
                yield from _of_unary(owner, expr)
            case Name():
                for other in siblings(expr, model, before):
                    what = f"`{expr.name}` -> `{other.name}`"
                    yield ModelEdit(owner.name, EditKind.SIBLING, what, expr.span, _target(expr), name=other)
    for operand in operands_of(expr):
        yield from _in_body(model, owner, operand, before)


def _of_binary(owner: Definition | Check, expr: Binary) -> Iterator[ModelEdit]:
    sides = (expr.left, expr.right)
    for side, other in ((0, 1), (1, 0)):
        dropped = sides[other]
        if dropped.span is None:
            continue
        text = f"`{show(dropped)}`"
        if expr.op in "|&" and not (isinstance(dropped, Binary) and dropped.op == expr.op):
            change = EditKind.DISJUNCT if expr.op == "|" else EditKind.CONJUNCT
            yield ModelEdit(owner.name, change, f"without {text}", dropped.span, _target(expr), keep=side)
        elif expr.op == "\\" and other == 1:
            yield ModelEdit(
                owner.name, EditKind.EXCEPTION, f"without `\\` {text}", dropped.span, _target(expr), keep=side
            )
        elif expr.op == ";" and isinstance(dropped, Unary) and dropped.op == "[]":
            yield ModelEdit(owner.name, EditKind.FILTER, f"without {text}", dropped.span, _target(expr), keep=side)
        elif expr.op == ";" and isinstance(dropped, Name):
            what = f"{text} -> `{dropped.name}?`"
            yield ModelEdit(owner.name, EditKind.OPTIONAL, what, dropped.span, _target(dropped), replacement="?")


def _of_unary(owner: Definition | Check, expr: Unary) -> Iterator[ModelEdit]:
    assert expr.span is not None
    for to in _CLOSURES.get(expr.op, ()):
        becomes = show(expr.operand) if not to else show(replace(expr, op=to))
        what = f"`{show(expr)}` -> `{becomes}`"
        if to:
            yield ModelEdit(owner.name, EditKind.OPERATOR, what, expr.span, _target(expr), replacement=to)
        else:
            yield ModelEdit(owner.name, EditKind.OPERATOR, what, expr.span, _target(expr), keep=0)


def _closed(owner: Definition, expr: Expr) -> Iterator[ModelEdit]:
    """The closure of a whole definition."""
    assert expr.span is not None
    if not (isinstance(expr, Unary) and expr.op in "+*"):
        yield ModelEdit(
            owner.name, EditKind.CLOSED, f"`({owner.name})+` in its place", expr.span, _target(expr), replacement="+"
        )


def _target(expr: Expr) -> tuple[str, int, int, str]:
    """A node by its place and operator: the same in all calls of a function."""
    assert expr.span is not None
    word = expr.op if isinstance(expr, Unary | Binary) else "name"
    return expr.span.source.name, expr.span.start, expr.span.end, word


# ---- the model with one of them ------------------------------------------------------------------------------------


def edited(model: Model, edit: ModelEdit) -> Model:
    """The model with one edit."""
    title = f"{model.name} with {edit.key}"
    if edit.target[3].startswith("check "):
        return replace(model, name=title, checks=tuple(_checks(model.checks, edit)))
    definitions = list(model.definitions)
    for number in edit.definitions:
        definitions[number] = replace(definitions[number], body=changed(definitions[number].body, edit))
    checks = tuple(
        replace(check, body=changed(check.body, edit)) if check.name in edit.checks else check for check in model.checks
    )
    return replace(model, name=title, definitions=tuple(definitions), checks=checks)


def places(expr: Expr, edit: ModelEdit) -> Iterator[tuple[Expr, Expr]]:
    """The nodes of an expression that an edit changes, each with what it becomes."""
    if expr.span is not None and _target(expr) == edit.target:
        yield expr, changed(expr, edit)
        return
    for operand in operands_of(expr):
        yield from places(operand, edit)


def _checks(checks: Sequence[Check], edit: ModelEdit) -> Iterator[Check]:
    for check in checks:
        span = check.span
        if span is not None and (span.source.name, span.start, span.end, f"check {check.name}") == edit.target:
            if edit.replacement:
                yield replace(check, kind=edit.replacement)
        else:
            yield check


def changed(expr: Expr, edit: ModelEdit) -> Expr:
    """An expression with an edit; the same object where nothing of it is edited."""
    if expr.span is not None and _target(expr) == edit.target:
        if edit.name is not None:
            return replace(edit.name, span=expr.span)
        if edit.keep is not None:
            return operands_of(expr)[edit.keep]
        if edit.change is EditKind.OPERATOR and isinstance(expr, Unary):
            return replace(expr, op=edit.replacement)
        return Unary(edit.replacement, expr, Kind.RELATION, expr.span)
    parts = operands_of(expr)
    becomes = [changed(part, edit) for part in parts]
    if all(new is old for new, old in zip(becomes, parts, strict=True)):
        return expr
    left = iter(becomes)
    return rebuilt(expr, lambda _: next(left))
