"""Terms of which only one part counts: `try`, `if` and `match`.

In: the term, and the expander that works it out. Out: `Value`. Settled here: a part is chosen when the model loads,
where that can be known: by tags, by sets that are listed, by variants (of which none is asked for), and by sets and
relations that are empty in every execution. Where it depends on the execution, both parts become one expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from memmodel.base.kinds import Kind
from memmodel.cat.interpret.values import (
    Entry,
    Macro,
    Scope,
    TagValue,
    Typed,
    Value,
    as_kind,
    binary,
    describe,
    elements,
    entry,
    mentioned,
    set_of,
    shortened,
    unary,
)
from memmodel.cat.primitives import Static
from memmodel.cat.syntax import Empty, Name
from memmodel.cat.text import tree
from memmodel.errors import InputError
from memmodel.source import Span

if TYPE_CHECKING:
    from memmodel.cat.interpret.expand import Expander

T = TypeVar("T")


def attempt(expander: Expander, term: tree.Try, scope: Scope) -> Value:
    """`try first with second`: the second if the first means nothing."""
    before = expander.progress()
    expander.try_depth += 1
    try:
        return expander.value(term.first, scope)
    except InputError:
        expander.go_back(before)
    finally:
        expander.try_depth -= 1
    return expander.value(term.second, scope)


def clause(
    expander: Expander, subject: tree.Term, clauses: tuple[tuple[str | None, T], ...], span: Span, scope: Scope
) -> T:
    """What a `match` on a tag chooses."""
    tag = expander.value(subject, scope)
    if not isinstance(tag, TagValue):
        raise Static(f"`match` takes a tag or a set; `{shortened(subject.span)}` is {describe(tag)}", subject.span)
    for name, body in clauses:
        if name in (tag.name, None):
            return body
    raise InputError(f"no clause for `'{tag.name}`", span, "|| _ -> …")


def match_set(expander: Expander, term: tree.MatchSet, scope: Scope) -> Value:
    """`match` on a set. Which events a set has is not known now, only whether it can have any."""
    subject = expander.value(term.subject, scope)
    items = elements(subject)
    if items == () or expander.void(subject):
        return expander.value(term.empty, scope)
    if items is None:
        used, _ = mentioned(term.other)
        if isinstance(subject, Typed) and not {term.element, term.rest, term.before} & {ref.name for ref in used}:
            return where_empty(expander, subject, term.empty, term.other, scope)
        raise Static(
            f"`{shortened(term.subject.span)}` is {describe(subject)}: its elements are not known when a model loads",
            term.subject.span,
            "a model can only look into sets that it lists",
        )
    bound: dict[str, Entry] = {term.element: entry(items[0]), term.rest: entry(set_of(items[1:], term.span))}
    if term.before is not None:
        bound[term.before] = Macro(Typed(Empty(Kind.EITHER, term.span)))
    return expander.value(term.other, {**scope, **bound})


def conditional(expander: Expander, term: tree.Conditional, scope: Scope) -> Value:
    condition = term.condition
    if isinstance(condition, tree.Comparison):
        left, right = expander.value(condition.left, scope), expander.value(condition.right, scope)
        known = compared(expander, condition, left, right)
        if isinstance(known, Typed):
            return where_empty(expander, known, term.first, term.second, scope)
    else:
        known = asked_for(condition)
    return expander.value(term.first if known else term.second, scope)


def compared(expander: Expander, condition: tree.Comparison, left: Value, right: Value) -> bool | Typed:
    """True if the condition holds. Of sets of events and relations: something that is empty where it holds."""
    op, first, second = condition.op, elements(left), elements(right)
    if op == "in":
        if second is None:
            message = f"`in` looks into {describe(right)}, which is not known when a model loads"
            raise Static(message, condition.span)
        return left in second
    if first is not None and second is not None:
        inside = all(member in second for member in first)
        return inside and (op == "subset" or len(first) == len(second))
    if not isinstance(left, Typed) or not isinstance(right, Typed):
        return left == right
    mark = condition.span
    more = expander.infix(tree.Infix("\\", condition.left, condition.right, mark, mark), left, right)
    if op == "=":
        less = expander.infix(tree.Infix("\\", condition.right, condition.left, mark, mark), right, left)
        more = expander.infix(tree.Infix("|", condition.left, condition.right, mark, mark), more, less)
    assert isinstance(more, Typed)
    return True if expander.void(more) else more


def asked_for(condition: tree.Condition) -> bool:
    """True if a condition on variants holds, of which none is asked for."""
    match condition:
        case tree.Logical("not", (inner,)):
            return not asked_for(inner)
        case tree.Logical("&&", operands):
            return all(map(asked_for, operands))
        case tree.Logical(_, operands):
            return any(map(asked_for, operands))
        case _:
            return False


def where_empty(expander: Expander, test: Typed, first: tree.Term, second: tree.Term, scope: Scope) -> Typed:
    """`first` in executions where `test` is empty, `second` in the others."""
    then, other = expander.term(first, scope), expander.term(second, scope)
    kind = other.expr.kind if then.expr.kind is Kind.EITHER else then.expr.kind
    rule = "both sides of a condition are sets or both are relations"
    then, other = expander.want(then, kind, rule, first), expander.want(other, kind, rule, second)
    every = Typed(Name("_", Kind.SET))
    if test.expr.kind is Kind.SET:  # every pair where the set is not empty, none where it is
        some = binary(";", binary("*", every, test), binary("*", test, every))
    else:
        inner = test._replace(expr=as_kind(test.expr, Kind.RELATION))
        some = binary(";", binary("*", every, every), binary(";", inner, binary("*", every, every)))
    if kind is Kind.SET:
        some = unary("domain", some)
    return binary("|", binary("\\", then, some), binary("&", other, some))
