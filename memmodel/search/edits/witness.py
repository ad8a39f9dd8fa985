"""A program on which two models differ, as a litmus test: the smallest that is found inside it, and what it shows.

In: ComparedModels, LitmusTest. Out: a smaller LitmusTest on which the models still differ, and a `Difference`. Settled
here: a program is made smaller until nothing of it can be left out, alone or with one word exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from time import monotonic

from memmodel import api
from memmodel.answer import HANG, Observation
from memmodel.cat.flags import kind_of
from memmodel.errors import BudgetSpent, InputError, InternalError
from memmodel.events.elaborate import elaborate
from memmodel.litmus.printer import print_litmus
from memmodel.litmus.syntax import LitmusTest, LocValue, Term
from memmodel.program.lowered import LoweredTest
from memmodel.referee.finals import outcome_terms, spell
from memmodel.search.differences import FINDING_WORDS, Difference
from memmodel.search.edits.comparing import EFFORT, Behaviour, ComparedModels
from memmodel.search.edits.reducing import size_of, smaller, tidier, weight, without_idle
from memmodel.search.edits.variants import respelt


def read_again(test: LitmusTest) -> LoweredTest | None:
    """The steps of a program that was changed; None if it is no program any more."""
    try:
        return api.lowered(print_litmus(test))
    except InputError:
        return None


class Shrinker:
    """Makes programs smaller on which two models differ. `until`: when it stops; `effort`: what each try may cost."""

    def __init__(self, comparison: ComparedModels, until: float, effort: int = EFFORT) -> None:
        self._comparison, self._until, self._effort = comparison, until, effort
        self._tried: set[str] = set()
        self.tried = 0

    def shrunk(self, test: LitmusTest) -> LitmusTest:
        """The smallest program inside a program."""
        while True:
            better = self._first(chain(smaller(test), self._with_other_words(test)), test)
            if better is None:
                break
            test = better
        while (tidy := self._first(tidier(test), test)) is not None:
            test = tidy
        return test

    def _first(self, candidates: Iterable[LitmusTest], than: LitmusTest) -> LitmusTest | None:
        """The first candidate that is smaller and on which the models differ."""
        for candidate in candidates:
            if monotonic() > self._until:
                return None
            candidate = without_idle(candidate)
            if (weight(candidate), len(candidate.variables)) < (weight(than), len(than.variables)) and self.differ(
                candidate
            ):
                return candidate
        return None

    def _with_other_words(self, test: LitmusTest) -> Iterator[LitmusTest]:
        """Programs that lack something and have one instruction spelt otherwise."""
        for changed in respelt(test):
            for less in smaller(changed):
                if size_of(less) < size_of(test):
                    yield less

    def differ(self, test: LitmusTest) -> bool:
        """True if the models differ on a program that has not been tried before."""
        text = print_litmus(test)
        if text in self._tried:
            return False
        self._tried.add(text)
        lowered = read_again(test)
        if lowered is None:
            return False
        self.tried += 1
        try:
            return self._comparison.differ(lowered, self._effort) is not None
        except (BudgetSpent, InputError):
            return False


def shown(comparison: ComparedModels, test: LitmusTest, names: tuple[str, str], effort: int = EFFORT) -> Difference:
    """What a program shows, as a litmus test. Raises BudgetSpent, InputError."""
    lowered = api.lowered(print_litmus(test))
    pair = comparison.differ(lowered, effort)
    if pair is None:
        raise InternalError(f"the models no longer differ on\n{print_litmus(test)}")
    size = size_of(test)
    for mine in (0, 1):
        state = min(pair[mine].states - pair[1 - mine].states, default=None, key=str)
        if state is not None and isinstance(state, tuple):
            question = f"exists ({_condition(lowered, state, pair[1 - mine])})"
            return _difference(test, question, names, mine, size, None, expects=True)
    finding, mine = _finding(pair)
    kind = HANG if finding == HANG else FINDING_WORDS.get(kind_of(finding))
    expects = (
        kind is not None and kind not in _kinds(pair[1 - mine]) and _cuts_alike(lowered, (), outcome_terms(lowered))
    )
    question = f"exists {kind}" if expects else "exists (true)"
    return _difference(test, question, names, mine, size, finding, expects=expects)


def _condition(lowered: LoweredTest, state: tuple[int, ...], other: Behaviour) -> str:
    """A condition for a final state, of as few terms as tell it from all that the other model allows.

    What is asked of memory cuts it, and an access is read in parts only where memory is cut. So what would leave it
    whole is asked for as well.
    """
    terms = outcome_terms(lowered)
    kept = list(range(len(terms)))
    for at in range(len(terms)):
        less = [number for number in kept if number != at]
        if all(any(theirs[n] != state[n] for n in less) for theirs in other.states if isinstance(theirs, tuple)):
            kept = less
    for at, term in enumerate(terms):
        more = sorted({*kept, at})
        if isinstance(term, LocValue) and not _cuts_alike(lowered, [terms[n] for n in kept], [terms[n] for n in more]):
            kept = more
    return " /\\ ".join(f"{spell(terms[n], lowered)} == {state[n]}" for n in kept) or "true"


def _cuts_alike(lowered: LoweredTest, some: Sequence[Term], terms: Sequence[Term]) -> bool:
    """True if a question about some of the terms cuts memory as one about all of them does."""
    cells = ({event.point.cell for event in elaborate(lowered, 1, asked).events} for asked in (some, terms))
    return next(cells) == next(cells)


def _kinds(behaviour: Behaviour) -> set[str | None]:
    kinds = {FINDING_WORDS.get(kind_of(flag)) for flag in behaviour.flags}
    return kinds | ({HANG} if behaviour.hangs else set())


def _finding(pair: tuple[Behaviour, Behaviour]) -> tuple[str, int]:
    """A finding that only one of the models has, or has at other places, and which model."""
    for mine in (0, 1):
        if only := sorted(pair[mine].flags - pair[1 - mine].flags):
            return only[0], mine
    for mine in (0, 1):
        if pair[mine].hangs and not pair[1 - mine].hangs:
            return HANG, mine
    for mine in (0, 1):
        if pair[mine].reports - pair[1 - mine].reports:
            return min(reported_flag[0] for reported_flag in pair[mine].reports - pair[1 - mine].reports), mine
    raise InternalError("two behaviours differ in nothing")


def _difference(
    test: LitmusTest,
    question: str,
    names: tuple[str, str],
    mine: int,
    size: int,
    finding: str | None,
    *,
    expects: bool,
) -> Difference:
    allows, forbids = names[mine], names[1 - mine]
    named = replace(test, name=f"{finding or 'outcome'}-{size}")
    lines = print_litmus(named).rstrip("\n").split("\n")
    words = [f"{name}:{word}" for name, word in ((allows, "sometimes"), (forbids, "never")) if " " not in name]
    head = [f"Expect={' '.join(words)}"] if expects and words else []
    text = "\n".join([lines[0], *head, *lines[1:-1], question]) + "\n"
    return Difference(allows, forbids, size, finding, 1, text)


def confirmed(difference: Difference, comparison: ComparedModels, names: tuple[str, str]) -> bool:
    """True if the solver says the same of a difference; False if it cannot say. Raises InternalError if it differs."""
    if difference.text.rstrip().endswith("exists (true)"):
        return False
    for name, model in zip(names, comparison.models, strict=True):
        answer = api.check(difference.text, model, engine="z3").answer
        if answer.observation is Observation.UNDECIDED:
            return False
        if (answer.observation in (Observation.SOMETIMES, Observation.ALWAYS)) is not (name == difference.allows):
            raise InternalError(f"z3 does not confirm what was found under {name}:\n{difference.text}")
    return True
