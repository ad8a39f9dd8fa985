"""A quick look at a changed test: one counterexample, if one is soon found.

In: a text. Out: a counterexample, or None, which says nothing. What refutes one change is likely to refute the next. So
the last counterexamples are tried on the new text (`referee.transfer`) before an engine is asked for one. Small tests
are not looked at in this way: judging them in full, by enumeration, is as fast.
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
from memmodel.repair.judge import TextCounterexample, parse
from memmodel.solve.kept_queries import KeptQueries
from memmodel.solve.seek import OUTCOME, Sought
from memmodel.why.story import execution_of
from memmodel.why.values import Values

KEPT = 12
"""At most this many counterexamples are kept to be tried on the next text."""

TRIED = 6
"""At most this many of the kept counterexamples are tried."""


class Glance:
    """Looks for these findings, and with `outcomes` for outcomes that must not be.

    `queries`: keeps the queries of searches that found nothing, for the full judgement of the same text.

    Where hangs are looked for, so is undefined behaviour, which hides hangs; hangs come first.
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
        self.known: dict[str, TextCounterexample | None] = {}
        self.found: list[TextCounterexample] = []
        self.queries = queries

    def begin(self, known: Sequence[TextCounterexample]) -> None:
        """Take counterexamples of the unchanged test, to be tried first."""
        self.found = [counterexample for counterexample in known if _choice(counterexample) is not None][:KEPT]

    def known_counterexample(self, text: str) -> TextCounterexample | None:
        """A counterexample of another text that is one of this text, too. No engine is asked."""
        if self.known.get(text) is None:
            asked = parse(self.name, text)
            counterexample = None if asked is None else self._once_more(asked)
            if counterexample is not None:
                self.known[text] = counterexample
        return self.known.get(text)

    def at(self, text: str) -> TextCounterexample | None:
        """A counterexample of the text; None says nothing."""
        available(self.options.budget)
        if text not in self.known:
            self.known[text] = self._sought(text)
        return self.known[text]

    def counterexample_of(self, text: str, flag: str) -> TextCounterexample | None:
        """An execution that has this finding, if one is soon found."""
        asked = parse(self.name, text)
        turns = [(model, [flag]) for model, _ in self.turns] if asked is not None else []
        sought = (_sought(asked[0], model, self.options, names, findings=True) for model, names in turns if asked)
        return next((counterexample for counterexample in sought if counterexample is not None), None)

    def _sought(self, text: str) -> TextCounterexample | None:
        asked = parse(self.name, text)
        if asked is None:
            return None
        for turn, (model, names) in enumerate(self.turns):
            for number, steps in enumerate(asked):
                counterexample = _sought(steps, model, self.options, names, findings=number == 0, queries=self.queries)
                if counterexample is not None:
                    self.turns.insert(0, self.turns.pop(turn))
                    self.found = [counterexample, *self.found][:KEPT]
                    return counterexample
        return None

    def _once_more(self, asked: Sequence[LoweredTest]) -> TextCounterexample | None:
        """An execution that was found before, as one of another text."""
        for counterexample in self.found[:TRIED]:
            names = next((names for model, names in self.turns if model is counterexample.model), None)
            again = None if names is None else once_more(counterexample, asked, names)
            if again is not None:
                self.found.remove(counterexample)
                self.found.insert(0, counterexample)
                return again
        return None


def once_more(
    counterexample: TextCounterexample, asked: Sequence[LoweredTest], names: Sequence[str]
) -> TextCounterexample | None:
    """The execution as one of another text, if it is one and shows one of the things looked for there."""
    execution, choice = execution_of(counterexample.witness), _choice(counterexample)
    if execution is None or choice is None:
        return None
    steps = next((candidate for candidate in asked if candidate.test.finding is None), asked[0])
    replay = transferred(
        execution.frame.lowered, choice, steps, counterexample.model, _consistent(counterexample.model)
    )
    return None if replay is None else _shown(replay, counterexample.model, names, steps)


def _consistent(model: Model) -> Wanted:
    """A quick test that an execution breaks no axiom. Of another text, most executions that are no longer allowed break
    one.
    """
    if any(definition.order is not None for definition in model.definitions):
        return whatever  # the orders that the model chooses are not known
    return lambda execution: Values(model, execution, {}).violated() is None


def _choice(counterexample: TextCounterexample) -> Choice | None:
    choice = None if counterexample.witness.evaluated is None else counterexample.witness.evaluated.choice
    return choice if isinstance(choice, Choice) else None


def _shown(replay: Replay, model: Model, names: Sequence[str], steps: LoweredTest) -> TextCounterexample | None:
    """What is looked for, as far as an execution shows it."""
    wanted = steps.test.quantifier is not Quantifier.FORALL
    for name in names:
        if name == OUTCOME:
            if steps.test.finding is None and not replay.waits and replay.ended and replay.satisfies is wanted:
                return TextCounterexample(model, None, replay.witness)
        elif name == HANG:
            if replay.waits and not any(kind_of(flag) is FindingKind.UNDEFINED for flag in replay.flags):
                return TextCounterexample(model, HANG, replay.witness, Finding(HANG, replay.witness))
        elif name in replay.flags:
            return TextCounterexample(model, name, replay.witness, _finding(replay, name))
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


def _sought(
    steps: LoweredTest,
    model: Model,
    options: Options,
    names: list[str],
    *,
    findings: bool,
    queries: KeptQueries | None = None,
) -> TextCounterexample | None:
    """`findings`: also look for findings, which are those of the threads, whatever is asked of them."""
    wanted = tuple(name for name in names if (findings if name != OUTCOME else steps.test.finding is None))
    if not wanted:
        return None
    sought = Sought(wanted, satisfied=steps.test.quantifier is not Quantifier.FORALL)
    shown = engine.seek(steps, model, options, sought, queries)
    if shown is None:
        return None
    if HANG not in names:
        names.insert(0, names.pop(names.index(shown.name)))
    return TextCounterexample(model, None if shown.name == OUTCOME else shown.name, shown.witness, shown.finding)
