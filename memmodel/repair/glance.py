"""A glance at a changed test: one execution that speaks against it, if one is soon found.

In: a text. Out: `Against`, or None, which says nothing. What was found last is looked for first: what refutes one
change is likely to refute the next. So the executions that were found are tried on the new text (`referee.transfer`)
before an engine is asked for one. A small test is judged in full as fast, by enumeration.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel import engine
from memmodel.answer import HANG, Finding
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.limits import available
from memmodel.litmus.syntax import Quantifier
from memmodel.program.lowered import LoweredTest
from memmodel.referee.choice import Choice
from memmodel.referee.replay import Replay, Wanted, whatever
from memmodel.referee.transfer import transferred
from memmodel.referee.witness import shown_event
from memmodel.repair.judge import Against, parse
from memmodel.solve.kept_queries import KeptQueries
from memmodel.solve.seek import OUTCOME, Sought
from memmodel.why.story import execution_of
from memmodel.why.values import Values

KEPT = 12
"""So many executions are kept to be tried on the next text."""

TRIED = 6
"""So many of them are tried."""


class Glance:
    """A glance for what is wrong: these findings, and with `outcomes` what a question about outcomes forbids.

    `queries`: keeps the queries of searches in vain, for the full judgement of the same text.

    Where a hang is wrong, undefined behaviour is as well, since it hides hangs; a hang is looked for before it.
    """

    def __init__(
        self,
        name: str,
        models: tuple[Model, ...],
        options: Options,
        wrong: frozenset[str],
        *,
        outcomes: bool,
        queries: KeptQueries | None = None,
    ) -> None:
        self.name = name
        self.options = options
        self.turns = [(model, names_of(model, wrong, outcomes=outcomes)) for model in models]
        self.known: dict[str, Against | None] = {}
        self.found: list[Against] = []
        self.queries = queries

    def begin(self, known: Sequence[Against]) -> None:
        """Executions of the test as it stands, to be tried first."""
        self.found = [against for against in known if _choice(against) is not None][:KEPT]

    def known_against(self, text: str) -> Against | None:
        """An execution of another text that no repair may have, if this text has it, too. No engine is asked."""
        if self.known.get(text) is None:
            asked = parse(self.name, text)
            against = None if asked is None else self._once_more(asked)
            if against is not None:
                self.known[text] = against
        return self.known.get(text)

    def at(self, text: str) -> Against | None:
        """An execution that no repair may have; None says nothing."""
        available(self.options.budget)
        if text not in self.known:
            self.known[text] = self._seen(text)
        return self.known[text]

    def flagged(self, text: str, flag: str) -> Against | None:
        """An execution in which this is found."""
        asked = parse(self.name, text)
        turns = [(model, [flag]) for model, _ in self.turns] if asked is not None else []
        seen = (_seen(asked[0], model, self.options, names, findings=True) for model, names in turns if asked)
        return next((against for against in seen if against is not None), None)

    def _seen(self, text: str) -> Against | None:
        asked = parse(self.name, text)
        if asked is None:
            return None
        for turn, (model, names) in enumerate(self.turns):
            for number, steps in enumerate(asked):
                against = _seen(steps, model, self.options, names, findings=number == 0, queries=self.queries)
                if against is not None:
                    self.turns.insert(0, self.turns.pop(turn))
                    self.found = [against, *self.found][:KEPT]
                    return against
        return None

    def _once_more(self, asked: Sequence[LoweredTest]) -> Against | None:
        """An execution that was found before, as one of another text."""
        for against in self.found[:TRIED]:
            names = next((names for model, names in self.turns if model is against.model), None)
            seen = None if names is None else once_more(against, asked, names)
            if seen is not None:
                self.found.remove(against)
                self.found.insert(0, against)
                return seen
        return None


def once_more(against: Against, asked: Sequence[LoweredTest], names: Sequence[str]) -> Against | None:
    """The execution as one of another text, if it is one and shows one of the things looked for there."""
    execution, choice = execution_of(against.witness), _choice(against)
    if execution is None or choice is None:
        return None
    steps = next((candidate for candidate in asked if candidate.test.finding is None), asked[0])
    replay = transferred(execution.frame.lowered, choice, steps, against.model, _consistent(against.model))
    return None if replay is None else _shown(replay, against.model, names, steps)


def _consistent(model: Model) -> Wanted:
    """Whether an execution breaks no axiom, soon told: most executions of another text that are no more break one."""
    if any(definition.order is not None for definition in model.definitions):
        return whatever  # the orders that the model chooses are not known
    return lambda execution: Values(model, execution, {}).violated() is None


def _choice(against: Against) -> Choice | None:
    choice = None if against.witness.ground is None else against.witness.ground.choice
    return choice if isinstance(choice, Choice) else None


def _shown(replay: Replay, model: Model, names: Sequence[str], steps: LoweredTest) -> Against | None:
    """What is looked for, as far as an execution shows it."""
    wanted = steps.test.quantifier is not Quantifier.FORALL
    for name in names:
        if name == OUTCOME:
            if steps.test.finding is None and not replay.waits and replay.ended and replay.satisfies is wanted:
                return Against(model, None, replay.witness)
        elif name == HANG:
            if replay.waits and not any(kind_of(flag) is FindingKind.UNDEFINED for flag in replay.flags):
                return Against(model, HANG, replay.witness, Finding(HANG, replay.witness))
        elif name in replay.flags:
            return Against(model, name, replay.witness, _finding(replay, name))
    return None


def _finding(replay: Replay, name: str) -> Finding:
    """The first pair that a flag reports."""
    execution, pairs = execution_of(replay.witness), replay.flags[name]
    if execution is None or not pairs:
        return Finding(name, replay.witness)
    first, second = (shown_event(execution, end) for end in (min(pairs[0]), max(pairs[0])))
    return Finding(name, replay.witness, first, second, replay.rules.get(pairs[0][0], ""))


def names_of(model: Model, wrong: frozenset[str], *, outcomes: bool) -> list[str]:
    """What is looked for under a model."""
    hides = FindingKind.UNDEFINED if HANG in wrong else None
    flags = [check.name for check in model.flags if check.name in wrong or kind_of(check.name) is hides]
    names = [*([HANG] if HANG in wrong else []), *([OUTCOME] if outcomes else [])]
    return [*names, *flags]


def _seen(
    steps: LoweredTest,
    model: Model,
    options: Options,
    names: list[str],
    *,
    findings: bool,
    queries: KeptQueries | None = None,
) -> Against | None:
    """`findings`: also look for findings, which are those of the threads, whatever is asked of them."""
    wanted = tuple(name for name in names if (findings if name != OUTCOME else steps.test.finding is None))
    if not wanted:
        return None
    sought = Sought(wanted, satisfied=steps.test.quantifier is not Quantifier.FORALL)
    seen = engine.seek(steps, model, options, sought, queries)
    if seen is None:
        return None
    if HANG not in names:
        names.insert(0, names.pop(names.index(seen.name)))
    return Against(model, None if seen.name == OUTCOME else seen.name, seen.witness, seen.finding)
