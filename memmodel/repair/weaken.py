"""Which fences of a test may be dropped, and which scopes and semantics narrowed, with nothing more allowed.

In: a test, models, options. Out: `Weaker`: the cheapest program that was found, its diff, and what each change saves.
Settled here: what has to stay. Every outcome of the changed test, in the terms that its question names, is one of the
test as it was, and no flag is raised that was not raised before. Everything that is returned has been judged in full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from memmodel import engine
from memmodel.answer import HANG
from memmodel.base.oneline import count, shown
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import BudgetSpent
from memmodel.limits import available, sharing_budget
from memmodel.program.lowered import LoweredTest
from memmodel.repair.edits import Edit, apply, diff
from memmodel.repair.judge import (
    AnswersOfTest,
    Judge,
    TextCounterexample,
    is_fault,
    judging,
    newer_version,
    parse,
    undecided,
)
from memmodel.repair.layout import laid
from memmodel.repair.weakening.forms import sites
from memmodel.repair.weakening.halves import with_halves
from memmodel.repair.weakening.needed import with_readings
from memmodel.repair.weakening.search import Narrowing
from memmodel.repair.weakening.site_forms import SiteForms
from memmodel.solve.seek import OUTCOME, Sought, State


@dataclass(frozen=True, slots=True, repr=False)
class Weaker:
    """The outcome of a search. `changes` empty: nothing can go, or `reason` says why nothing was tried.

    `version`: of PTX, where the changed text needs a newer one than the test. `wrong`: what is found in the test as it
    stands, which may be found in the changed text too.
    """

    name: str
    old: str
    new: str
    changes: tuple[Edit, ...]
    tried: int
    reason: str = ""
    best: bool = True
    version: str = ""
    wrong: tuple[str, ...] = ()

    def __repr__(self) -> str:
        saved = f"{self.name}: {count(len(self.changes), 'change')}, saves {self.saves:g}"
        return shown("Weaker", saved, self.reason, *(edit.what for edit in self.changes))

    @property
    def saves(self) -> float:
        """By the table of costs."""
        return -sum(edit.cost for edit in self.changes)

    def diff(self) -> str:
        """The change as a unified diff; empty if there is none."""
        return diff(self.name, self.old, self.new) if self.changes else ""


def weaken(
    name: str,
    text: str,
    models: tuple[Model, ...],
    options: Options,
    progress: Callable[[int], None] | None = None,
) -> Weaker:
    """The cheapest equivalent of a test, in the layout that it has.

    Raises InputError for a text that is no test, and for a table that blocks cannot say.
    """
    from memmodel import api
    from memmodel.source import Source

    layout = laid(Source(name, text))
    asked = api.questions(api.lowered(Source(name, layout.blocks)))
    try:
        with sharing_budget(options.budget):
            weaker = _weaker(name, layout.blocks, asked, models, options, progress)
        changes = tuple(replace(edit, what=layout.in_written_lines(edit.what)) for edit in weaker.changes)
        return replace(weaker, old=text, new=layout.back(weaker.new) if changes else text, changes=changes)
    except BudgetSpent as spent:
        return Weaker(name, text, text, (), 1, f"not decided: {spent}")


def _weaker(
    name: str,
    text: str,
    asked: tuple[LoweredTest, ...],
    models: tuple[Model, ...],
    options: Options,
    progress: Callable[[int], None] | None,
) -> Weaker:
    judge = judging(name, models, options)
    before = judge(text)
    if before is None or not before.complete:
        return Weaker(name, text, text, (), 1, undecided("what the test allows as it stands", before))
    states, reason = _states(asked, models, options)
    if reason:
        return Weaker(name, text, text, (), 1, f"what the test allows as it stands is not decided: {reason}")
    judges = _Judges(name, before, states, judge, models, options)
    site_forms = SiteForms(text, sites(asked[0]), judges.parsed)
    if not site_forms.legal:
        legal = [
            [edit for edit in site if judges.parsed(apply(text, (edit,))) is not None] for site in site_forms.sites
        ]
        site_forms = SiteForms(text, [site for site in legal if site], judges.parsed)
    tried = 0

    def one_more() -> int:
        nonlocal tried
        tried += 1
        if progress is not None:
            progress(tried)
        return tried

    forms, best = Narrowing(site_forms, judges, one_more).cheapest()

    def enough(new: str) -> bool:
        one_more()
        return (
            judges.parsed(new) is not None
            and judges.quick_counterexample(new) is None
            and judges.allows_nothing_more(new)
        )

    chosen = with_halves(asked[0], site_forms.edits(forms), enough)
    changes, new = with_readings(name, text, chosen, models, options), apply(text, chosen)
    wrong = tuple(sorted(before.findings))
    return Weaker(name, text, new, changes, tried, best=best, version=newer_version(name, text, new), wrong=wrong)


class _Judges:
    """Judges that say if a changed text allows nothing that the test does not allow.

    `states`: the final states of the test, for each question and model.
    """

    def __init__(
        self,
        name: str,
        before: AnswersOfTest,
        states: list[frozenset[State]],
        judge: Judge,
        models: tuple[Model, ...],
        options: Options,
    ) -> None:
        self.name = name
        self.before = before
        self.states = states
        self.judge = judge
        self.models = models
        self.options = options
        self.names = {
            model.name: [*([HANG] if HANG not in before.findings else []), OUTCOME, *_new(model, before)]
            for model in models
        }

    def parsed(self, text: str) -> LoweredTest | None:
        """The text with the first of its questions."""
        available(self.options.budget)
        asked = parse(self.name, text)
        return None if asked is None else asked[0]

    def quick_counterexample(self, text: str) -> TextCounterexample | None:
        """An execution that shows a finding or an outcome that the test has not, if one is soon found."""
        available(self.options.budget)
        known = iter(self.states)
        for number, steps in enumerate(parse(self.name, text) or ()):
            for model in self.models:
                states = None if steps.test.finding is not None else next(known)
                counterexample = self._sought(steps, model, states, findings=number == 0)
                if counterexample is not None:
                    return counterexample
        return None

    def _sought(
        self, steps: LoweredTest, model: Model, states: frozenset[State] | None, *, findings: bool
    ) -> TextCounterexample | None:
        names = self.names[model.name]
        wanted = tuple(name for name in names if (findings if name != OUTCOME else states is not None))
        shown = engine.seek(steps, model, self.options, Sought(wanted, known=states)) if wanted else None
        if shown is None:
            return None
        names.insert(0, names.pop(names.index(shown.name)))
        return TextCounterexample(model, None if shown.name == OUTCOME else shown.name, shown.witness, shown.finding)

    def allows_nothing_more(self, text: str) -> bool:
        """True if the text, judged in full, allows nothing more."""
        available(self.options.budget)
        now = self.judge(text)
        if now is None or not now.complete or not now.findings <= self.before.findings:
            return False
        if [observed.observation for observed in now.observations] != [
            observed.observation for observed in self.before.observations
        ]:
            return False
        asked = parse(self.name, text)
        states, reason = ([], "no test") if asked is None else _states(asked, self.models, self.options)
        return not reason and all(new <= old for new, old in zip(states, self.states, strict=True))


def _new(model: Model, before: AnswersOfTest) -> list[str]:
    """The flags that would be new findings of the test."""
    return [check.name for check in model.flags if is_fault(check.name) and check.name not in before.findings]


def _states(
    asked: tuple[LoweredTest, ...], models: tuple[Model, ...], options: Options
) -> tuple[list[frozenset[State]], str]:
    """The final states for each question and model, and why a list is not complete."""
    states: list[frozenset[State]] = []
    for steps in asked:
        if steps.test.finding is not None:
            continue
        for model in models:
            outcomes = engine.outcomes(steps, model, options)
            if not outcomes.complete:
                return states, outcomes.reason or "there may be more final states"
            states.append(frozenset(state.values for state in outcomes.states))
    return states, ""
