"""What the kernel of a test stores, and how its heading names it.

In: LitmusTest. Out: the terms, text.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.litmus.printer import whose
from memmodel.litmus.syntax import LitmusTest, LocValue, RegValue, Term, root_of, terms_of
from memmodel.ptx.vocabulary import Space


def results_of(test: LitmusTest) -> Iterator[Term]:
    """What the kernel stores: registers, and shared memory, which ends with the kernel."""
    variables = {variable.name: variable for variable in test.variables}
    seen: set[tuple[object, ...]] = set()
    for term in (*terms_of(test.condition), *test.shown):
        key: tuple[object, ...] = ()
        if isinstance(term, RegValue):
            key = (term.thread, term.register)
        elif isinstance(term, LocValue):
            root = root_of(variables, term.name)
            if root.space is Space.SHARED and root.mbarrier is None:
                key = (term.name, term.index, term.cta, term.thread)
        if key and key not in seen:
            seen.add(key)
            yield term


def term_text(term: Term) -> str:
    """A term as a condition has it."""
    if isinstance(term, RegValue):
        return f"{term.thread}:%{term.register}"
    if isinstance(term, LocValue):
        return term.name + whose(term) + (f"[{term.index}]" if term.index else "")
    return str(term.value)


def one_line(text: str) -> str:
    """Text that fits in a comment after `//`."""
    return " ".join(text.split())
