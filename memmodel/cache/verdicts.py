"""Judge tests, or know what was said of them before.

In: a test's text, a model by name or loaded, options. Out: `Report`, `Outcomes`, the same whether they are new or kept.
Settled here: a test is read, lowered and judged only if something of it is not known. Kept is what was answered in
full; what is undecided, or was not searched to its end, is judged again the next time. What a file expects is not part
of an answer: it is compared anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from memmodel import api, engine
from memmodel.answer import Observation, Outcomes
from memmodel.cache import keys
from memmodel.cache.codec import NotKept, dump, undump
from memmodel.cache.place import cache_dir
from memmodel.cache.store import Store
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.litmus.syntax import Expectation
from memmodel.program.lowered import LoweredTest
from memmodel.report.expect import word_for
from memmodel.report.report import Report
from memmodel.source import Source

T = TypeVar("T", Report, Outcomes)


@dataclass(slots=True)
class _Text:
    """A test's text with its questions, lowered once and only if somebody asks."""

    source: Source
    ask: tuple[str, ...]
    steps: tuple[LoweredTest, ...] | None = None

    def lowered(self) -> tuple[LoweredTest, ...]:
        if self.steps is None:
            self.steps = api.questions(api.lowered(self.source, self.ask))
        return self.steps


@dataclass(frozen=True, slots=True)
class Posed:
    """One question of a test. `key`: what its answers depend on, the model and the options aside; empty if not kept."""

    text: _Text
    number: int
    name: str
    expectations: tuple[Expectation, ...]
    key: str = field(default="", repr=False)

    @property
    def steps(self) -> LoweredTest:
        """The lowered test. Raises InputError."""
        return self.text.lowered()[self.number]


class Verdicts:
    """Answers from a store, else from the engines. `store` None: always from the engines."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._keys = keys.ModelKeys(store) if store is not None else None
        self._models: dict[str, tuple[Model, str]] = {}

    @staticmethod
    def kept(wanted: bool = True) -> Verdicts:
        """With the user's store, if that is wanted and there is one."""
        folder = cache_dir() if wanted else None
        return Verdicts(Store(folder) if folder is not None else None)

    @property
    def trouble(self) -> str:
        """Why nothing is kept although it should be; empty while all is well."""
        return self._store.trouble if self._store is not None else ""

    def close(self) -> None:
        """Let go of the store."""
        if self._store is not None:
            self._store.close()

    def posed(self, source: Source, ask: tuple[str, ...] = ()) -> tuple[Posed, ...]:
        """The questions of a test, or `ask` in their place. Raises InputError."""
        text = _Text(source, ask)
        if self._store is None:
            return _posed(text, "")
        key = keys.digest("test", keys.program(), source.name, source.text, *ask)
        known = self._store.get(key)
        if known is not None:
            return tuple(
                Posed(text, number, name, tuple(_expectation(source, one) for one in expected), key)
                for number, (name, expected) in enumerate(json.loads(known))
            )
        found = _posed(text, key)
        with suppress(NotKept):
            rows = [(one.name, [_row(source, expectation) for expectation in one.expectations]) for one in found]
            self._put(key, json.dumps(rows))
        return found

    def report(
        self,
        posed: Posed,
        model: str | Model,
        options: Options,
        *,
        expected: str | None = None,
        against: str | None = None,
    ) -> Report:
        """As `api.report_on`. Raises InputError."""
        name, _ = self._named(model)
        word = expected or word_for(posed.expectations, against or name)
        found = self._answered(
            Report, posed, model, options, lambda steps, loaded: api.bare_report(steps, loaded, options)
        )
        return api.expecting(found, posed.expectations, word)

    def outcomes(self, posed: Posed, model: str | Model, options: Options) -> Outcomes:
        """All final states of a question under a model. Raises InputError."""
        return self._answered(
            Outcomes, posed, model, options, lambda steps, loaded: engine.outcomes(steps, loaded, options)
        )

    def model_name(self, model: str) -> str:
        """The name that reports give a model. Raises InputError."""
        return self._named(model)[0]

    # ---- below -------------------------------------------------------------------------------------------------------

    def _answered(
        self,
        kind: type[T],
        posed: Posed,
        model: str | Model,
        options: Options,
        work: Callable[[LoweredTest, Model], T],
    ) -> T:
        if self._store is None:
            return work(posed.steps, self._load(model)[0])
        key = self._key(kind, posed, self._named(model)[1], options)
        text = self._store.get(key)
        if text is not None:
            with suppress(NotKept):
                return undump(kind, text, posed.text.source)
        loaded, digest = self._load(model)  # its files may have changed since the name was looked up
        found = work(posed.steps, loaded)
        if _whole(found):
            with suppress(NotKept):
                self._put(self._key(kind, posed, digest, options), dump(found, posed.text.source))
        return found

    def _key(self, kind: type, posed: Posed, model: str, options: Options) -> str:
        return keys.digest(kind.__name__, posed.key, posed.number, model, keys.of_options(options))

    def _put(self, key: str, text: str) -> None:
        if self._store is not None and not keys.program_changed():
            self._store.put(key, text)

    def _named(self, model: str | Model) -> tuple[str, str]:
        """The name of a model in reports, and its digest, by which it is known in the store."""
        if self._keys is not None and isinstance(model, str):
            return self._keys.of(model)
        loaded, digest = self._load(model)
        return loaded.name, digest

    def _load(self, model: str | Model) -> tuple[Model, str]:
        """The model and, if there is a store, its digest; each is read once."""
        known = model if isinstance(model, str) else f"\0{id(model)}"
        if known not in self._models:
            loaded = api.load(model)
            self._models[known] = loaded, keys.of_model(loaded) if self._store is not None else ""
        return self._models[known]


def _posed(text: _Text, key: str) -> tuple[Posed, ...]:
    return tuple(
        Posed(text, number, steps.test.name, steps.test.expectations, key)
        for number, steps in enumerate(text.lowered())
    )


def _whole(found: Report | Outcomes) -> bool:
    """Was everything searched?"""
    if isinstance(found, Outcomes):
        return found.complete
    return found.answer.observation is not Observation.UNDECIDED and not found.answer.unsearched


def _row(source: Source, one: Expectation) -> list[object]:
    """An expectation as JSON. Raises NotKept if it stands in another text."""
    if one.span is None or one.span.source != source:
        raise NotKept("an expectation of another text")
    return [one.model, one.word, one.span.start, one.span.end]


def _expectation(source: Source, row: list[object]) -> Expectation:
    model, word, start, end = row
    return Expectation(str(model), str(word), source.span(int(str(start)), int(str(end))))
