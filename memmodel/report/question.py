r"""A test's question as one line of text.

In: LitmusTest. Out: `exists (P1:r0 == 1 /\ P1:r1 == 0)`. Parentheses only where the reading needs them.
"""

from __future__ import annotations

from memmodel.litmus.syntax import Always, And, Compare, Condition, LitmusTest, Not, Number, Or, RegValue, Term


def question(test: LitmusTest) -> str:
    """Quantifier and condition."""
    return f"{test.quantifier.value} ({_text(test.condition)})"


def _text(condition: Condition) -> str:
    if isinstance(condition, Always):
        return "true"
    if isinstance(condition, Compare):
        return f"{_term(condition.left)} {condition.op} {_term(condition.right)}"
    if isinstance(condition, Not):
        return f"not ({_text(condition.item)})"
    joiner = r" /\ " if isinstance(condition, And) else r" \/ "
    return joiner.join(f"({_text(item)})" if isinstance(item, And | Or) else _text(item) for item in condition.items)


def _term(term: Term) -> str:
    if isinstance(term, Number):
        return str(term.value)
    if isinstance(term, RegValue):
        return f"{term.thread}:{term.register}"
    index = f"[{term.index}]" if term.index else ""
    return f"{term.name}{index}" + (f"@cta{term.cta}" if term.cta is not None else "")
