"""Answers about tests: kept ones where there are any, else new ones from the engines.

In: a test's text, a model by name or loaded, options. Out: `Report`, `Outcomes`, the same whether they are new or kept.
Settled here: a test is read, lowered and judged only if something of it is not known. Kept is what was answered in
full; what is undecided, or was not searched to its end, is judged again the next time, unless it is undecided because
accesses of different sizes race, which no other budget changes. A run that is resumed keeps every answer, under its
whole budget, in a file of its own. What a file expects is not part of an answer: it is compared anew. What judges is
loaded when something has to be judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from memmodel.base.resources import cache_dir
from memmodel.cache import keys

if TYPE_CHECKING:
    from pathlib import Path

    from memmodel.answer import Outcomes
    from memmodel.cache.store import Store
    from memmodel.cat.syntax import Model
    from memmodel.engine import Options
    from memmodel.litmus.syntax import Expectation
    from memmodel.program.lowered import LoweredTest
    from memmodel.report.report import Report
    from memmodel.source import Source

T = TypeVar("T")

Row = tuple[str, str, int, int]
"""An expectation: the model, the word, and where it stands in the test's text."""


@dataclass(slots=True)
class PosedText:
    """A test's text with its questions, lowered once and only when needed."""

    source: Source
    ask: tuple[str, ...]
    steps: tuple[LoweredTest, ...] | None = None

    def lowered(self) -> tuple[LoweredTest, ...]:
        """The test once for each of its questions. Raises InputError."""
        from memmodel import api

        if self.steps is None:
            self.steps = api.questions(api.read_test(self.source, self.ask))
        return self.steps


@dataclass(frozen=True, slots=True)
class PosedQuestion:
    """One question of a test. `words`: what it expects. `key`: what its answers depend on, the model and the options
    aside; empty if nothing is kept."""

    text: PosedText
    number: int
    name: str
    rows: tuple[Row, ...] = ()
    key: str = field(default="", repr=False)

    @property
    def steps(self) -> LoweredTest:
        """The lowered test. Raises InputError."""
        return self.text.lowered()[self.number]

    @property
    def words(self) -> dict[str, str]:
        """What the question expects, by model."""
        return {model: word for model, word, *_ in self.rows}

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """The same with their places."""
        from memmodel.litmus.syntax import Expectation

        source = self.text.source
        return tuple(Expectation(model, word, source.span(start, end)) for model, word, start, end in self.rows)


class Verdicts:
    """Answers from a store, else from the engines. `store` None: always from the engines. `run`: what a run did."""

    def __init__(self, store: Store | None = None, run: Store | None = None) -> None:
        self._run = run
        self._store = store if store is not None else run
        self._keys = keys.ModelKeys(store)
        self._models: dict[str, tuple[Model, str]] = {}

    @staticmethod
    def kept(wanted: bool = True) -> Verdicts:
        """With the user's store, if that is wanted and there is one."""
        return Verdicts.at(cache_dir() if wanted else None)

    @staticmethod
    def at(folder: Path | None, run: str | None = None) -> Verdicts:
        """With the store in a folder; None: without one. `run`: the file of a resumed run. Raises InputError."""
        if folder is None and run is None:
            return Verdicts()
        from memmodel.cache.store import Store

        return Verdicts(None if folder is None else Store(folder), None if run is None else Store.in_file(run))

    @property
    def trouble(self) -> str:
        """Why nothing is kept although it should be; empty while all is well."""
        return next((store.trouble for store in (self._run, self._store) if store is not None and store.trouble), "")

    def close(self) -> None:
        """Let go of the stores."""
        for store in (self._run, self._store):
            if store is not None:
                store.close()

    def known(self, model: str) -> keys.KnownModel:
        """What is known of a model without loading it, if it is. Raises InputError."""
        return self._keys.of(model)

    def posed(self, source: Source, ask: tuple[str, ...] = ()) -> tuple[PosedQuestion, ...]:
        """The questions of a test, or `ask` in their place. Raises InputError."""
        text = PosedText(source, ask)
        key = keys.digest("test", keys.program(), source.name, source.text, *ask) if self._store is not None else ""
        known = self._store.get(key) if self._store is not None else None
        if known is not None:
            return tuple(
                PosedQuestion(text, number, name, tuple(map(tuple, rows)), key)
                for number, (name, rows) in enumerate(json.loads(known))
            )
        questions = tuple(
            PosedQuestion(text, number, steps.test.name, tuple(map(_row, steps.test.expectations)), key)
            for number, steps in enumerate(text.lowered())
        )
        self._put(key, json.dumps([(question.name, question.rows) for question in questions]))
        return questions

    def meets(self, posed: PosedQuestion, model: str, options: str, word: str) -> bool | None:
        """Returns whether the stored answer meets a word of an Expect line; None if no answer is stored.

        `options`: as `keys.of_options` has it.
        """
        if self._store is None:
            return None
        known = self._store.get(self._key("Report", posed, self._keys.of(model).digest, options))
        if known is None:
            return None
        met = json.loads(known.partition("\n")[0])
        return all(part in met for part in word.split("+"))

    def report(
        self,
        posed: PosedQuestion,
        model: str | Model,
        options: Options,
        *,
        expected: str | None = None,
        against: str | None = None,
        reasons: bool = False,
    ) -> Report:
        """As `api.report_on`. Raises InputError. `reasons`: with what its reasons need, if it was judged now."""
        from memmodel import api
        from memmodel.report.expect import word_for
        from memmodel.report.report import Report

        word = expected or word_for(posed.expectations, against or self._named(model)[0])
        report = self._answered(
            Report, posed, model, options, lambda steps, loaded: api.bare_report(steps, loaded, options)
        )
        # A kept answer has no execution to explain: a fresh one is treated alike, so that both print the same.
        bare = report if self._store is None or reasons else replace(report, subject=None)
        return api.expecting(bare, posed.expectations, word)

    def explained(self, report: Report, posed: PosedQuestion, model: str | Model, options: Options) -> Report:
        """A report with what its reasons need: a question whose answer was kept is judged again. Raises InputError."""
        if report.subject is not None:
            return report
        fresh = Verdicts().report(posed, model, options, expected=report.expected)
        return fresh if fresh.answer.observation is report.answer.observation else report

    def outcomes(self, posed: PosedQuestion, model: str | Model, options: Options) -> Outcomes:
        """All final states of a question under a model. Raises InputError."""
        from memmodel import engine
        from memmodel.answer import Outcomes

        return self._answered(
            Outcomes, posed, model, options, lambda steps, loaded: engine.outcomes(steps, loaded, options)
        )

    # ---- below -------------------------------------------------------------------------------------------------------

    def _answered(
        self,
        kind: type[T],
        posed: PosedQuestion,
        model: str | Model,
        options: Options,
        work: Callable[[LoweredTest, Model], T],
    ) -> T:
        if self._store is None:
            return work(posed.steps, self._load(model)[0])
        from memmodel.cache.codec import NotKept, dump, undump

        judged_by, within = _judged_by(options), _within(options)
        digest = self._named(model)[1]
        for store, by in ((self._store, judged_by), (self._run, judged_by), (self._run, within)):
            text = store.get(self._key(kind.__name__, posed, digest, by)) if store is not None else None
            if text is not None:
                with suppress(NotKept):
                    return undump(kind, text.partition("\n")[2], posed.text.source)
        loaded, digest = self._load(model)  # its files may have changed since the name was looked up
        answer = work(posed.steps, loaded)
        with suppress(NotKept):
            body, whole = dump(answer, posed.text.source), True
            try:
                met = _met(answer)
            except NotKept:
                met, whole = [], False
            key = self._key(kind.__name__, posed, digest, judged_by if whole else within)
            for kept_in in dict.fromkeys((self._store if whole else None, self._run)):
                if kept_in is not None and not keys.program_changed():
                    kept_in.put(key, f"{json.dumps(met)}\n{body}")
        return answer

    def _key(self, kind: str, posed: PosedQuestion, model: str, judged_by: str) -> str:
        return keys.digest(kind, posed.key, posed.number, model, judged_by)

    def _put(self, key: str, text: str) -> None:
        if self._store is not None and not keys.program_changed():
            self._store.put(key, text)

    def _named(self, model: str | Model) -> tuple[str, str]:
        """The name of a model in reports, and its digest, by which it is known in the store."""
        if self._store is not None and isinstance(model, str):
            known = self._keys.of(model)
            return known.name, known.digest
        loaded, digest = self._load(model)
        return loaded.name, digest

    def _load(self, model: str | Model) -> tuple[Model, str]:
        """The model and, if there is a store, its digest; each is read once."""
        from memmodel import api

        known = model if isinstance(model, str) else f"\0{id(model)}"
        if known not in self._models:
            loaded = api.load(model)
            self._models[known] = loaded, keys.of_model(loaded) if self._store is not None else ""
        return self._models[known]


def _met(answer: object) -> list[str]:
    """The words of Expect lines that a report meets. Raises NotKept for an answer that is not whole."""
    from memmodel.answer import Observation, Outcomes
    from memmodel.cache.codec import NotKept
    from memmodel.report.expect import FAILS, FINDINGS, HOLDS, OBSERVED, meets
    from memmodel.report.report import Report

    if isinstance(answer, Outcomes) and answer.complete:
        return []
    if not isinstance(answer, Report) or answer.answer.unsearched:
        raise NotKept("not searched to its end")
    if answer.answer.observation is Observation.UNDECIDED and (not answer.mixed or "budget" in answer.answer.reason):
        raise NotKept("undecided")
    words = (*OBSERVED, *FINDINGS, HOLDS, FAILS)
    return [word for word in words if meets(answer.answer, answer.quantifier, word)]


def _judged_by(options: Options) -> str:
    from memmodel.answer import Budget

    effort = options.budget.effort
    return keys.of_options(options.engine, options.bound, None if effort == Budget().effort else effort)


def _within(options: Options) -> str:
    """All that an undecided answer depends on."""
    budget = options.budget
    return json.dumps([_judged_by(options), budget.effort, budget.seconds, budget.memory])


def _row(expectation: Expectation) -> Row:
    return (expectation.model, expectation.word, expectation.span.start, expectation.span.end)
