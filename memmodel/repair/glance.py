"""A glance at a changed test: one execution that speaks against it, if one is soon found.

In: a text. Out: `Against`, or None, which says nothing. What was found last is looked for first: what refutes one
change is likely to refute the next. A small test is judged in full as fast, by enumeration.
"""

from __future__ import annotations

from memmodel import engine
from memmodel.answer import HANG
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.limits import available
from memmodel.litmus.syntax import Quantifier
from memmodel.program.lowered import LoweredTest
from memmodel.repair.judge import Against, parse
from memmodel.solve.seek import OUTCOME, Sought


class Glance:
    """A glance for what is wrong: these findings, and with `outcomes` what a question about outcomes forbids.

    Where a hang is wrong, undefined behaviour is as well, since it hides hangs; a hang is looked for before it.
    """

    def __init__(
        self, name: str, models: tuple[Model, ...], options: Options, wrong: frozenset[str], *, outcomes: bool
    ) -> None:
        self.name = name
        self.options = options
        self.turns = [(model, names_of(model, wrong, outcomes=outcomes)) for model in models]
        self.known: dict[str, Against | None] = {}

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
        found = (_seen(asked[0], model, self.options, names, findings=True) for model, names in turns if asked)
        return next((one for one in found if one is not None), None)

    def _seen(self, text: str) -> Against | None:
        asked = parse(self.name, text)
        if asked is None:
            return None
        for turn, (model, names) in enumerate(self.turns):
            for number, steps in enumerate(asked):
                found = _seen(steps, model, self.options, names, findings=number == 0)
                if found is not None:
                    self.turns.insert(0, self.turns.pop(turn))
                    return found
        return None


def names_of(model: Model, wrong: frozenset[str], *, outcomes: bool) -> list[str]:
    """What is looked for under a model."""
    hides = FindingKind.UNDEFINED if HANG in wrong else None
    flags = [one.name for one in model.flags if one.name in wrong or kind_of(one.name) is hides]
    names = [*([HANG] if HANG in wrong else []), *([OUTCOME] if outcomes else [])]
    return [*names, *flags]


def _seen(steps: LoweredTest, model: Model, options: Options, names: list[str], *, findings: bool) -> Against | None:
    """`findings`: also look for findings, which are those of the threads, whatever is asked of them."""
    wanted = tuple(one for one in names if (findings if one != OUTCOME else steps.test.finding is None))
    if not wanted:
        return None
    sought = Sought(wanted, satisfied=steps.test.quantifier is not Quantifier.FORALL)
    seen = engine.seek(steps, model, options, sought)
    if seen is None:
        return None
    if HANG not in names:
        names.insert(0, names.pop(names.index(seen.name)))
    return Against(model, None if seen.name == OUTCOME else seen.name, seen.witness, seen.finding)
