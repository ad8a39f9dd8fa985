"""What a weakened test does not need under the model as decided, and needs under another reading of the documents.

In: the text of a test, the changes that weaken it. Out: for each change, the readings that need what it takes away.
Settled here: a reading needs what a change takes away if the change alone adds an outcome or a finding under the
reading. Where only all changes together do, it needs all of them. Readings that allow more than the default model are
not asked (`report.open_decisions`). Those that may allow less than it, of a test that is wrong under the default, are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from memmodel import engine
from memmodel.answer import Answer, Observation
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.repair.edits import Edit, apply
from memmodel.repair.judge import parse
from memmodel.report.open_decisions import readings_with_less, readings_with_more
from memmodel.report.report import Report
from memmodel.why.limited import limited


def with_readings(
    name: str, text: str, changes: Sequence[Edit], models: Sequence[Model], options: Options
) -> tuple[Edit, ...]:
    """The changes. Those whose loss a reading does not bear say so in their words."""
    default = next((model for model in models if model.name == DEFAULT_MODEL), None)
    if default is None or not changes:
        return tuple(changes)
    new, ones = apply(text, changes), [apply(text, (edit,)) for edit in changes]
    before = _some(readings_with_more, name, text, default, options)
    more = _some(readings_with_more, name, new, default, options) - before
    right = _Right(name, text, _some(readings_with_less, name, text, default, options), options)
    lost = right.lost(new)
    if not more and not lost:
        return tuple(changes)
    alone = [_some(readings_with_more, name, one, default, options) & more if more else frozenset() for one in ones]
    alone = [mine | right.lost(one) & lost for mine, one in zip(alone, ones, strict=True)]
    together = (more | lost).difference(*alone)
    return tuple(_worded(edit, mine | together) for edit, mine in zip(changes, alone, strict=True))


def wrong_under(name: str, text: str, models: Sequence[Model], options: Options) -> tuple[str, ...]:
    """The readings under which a text that is right is not, as far as the executions at hand show; none if other models
    than the default were asked."""
    if len(models) != 1 or models[0].name != DEFAULT_MODEL:
        return ()
    none: frozenset[str] = frozenset()
    return tuple(sorted(limited(partial(_some, readings_with_more, name, text, models[0], options), none)))


def _some(
    which: Callable[[Report], frozenset[str]], name: str, text: str, model: Model, options: Options
) -> frozenset[str]:
    """The readings of which something holds in a text, by the reports of its questions."""
    readings: set[str] = set()
    for steps in parse(name, text) or ():
        answer = engine.answer(steps, model, options, findings=False)
        readings |= which(Report.of(steps, model, answer, None, options))
    return frozenset(readings)


class _Right:
    """The answers of readings about a text. A reading may forbid what the default model allows."""

    def __init__(self, name: str, text: str, readings: frozenset[str], options: Options) -> None:
        self._name, self._options = name, options
        self._answers = {reading: self._ask(text, reading) for reading in readings}

    def lost(self, text: str) -> frozenset[str]:
        """The readings under which a changed text has an outcome or a finding that the text has not."""
        return frozenset(
            reading
            for reading, answers in self._answers.items()
            if any(_worse(old, new) for old, new in zip(answers, self._ask(text, reading), strict=True))
        )

    def _ask(self, text: str, reading: str) -> list[Answer]:
        model = load_model(f"readings/{reading.replace(' ', '-')}")
        return [engine.answer(steps, model, self._options) for steps in parse(self._name, text) or ()]


def _worse(old: Answer, new: Answer) -> bool:
    """True if a text does more than another one, as far as the answers show."""
    sure = old.observation in (Observation.NEVER, Observation.ALWAYS)
    other = new.observation in (Observation.NEVER, Observation.SOMETIMES, Observation.ALWAYS)
    return (sure and other and new.observation is not old.observation) or bool(set(new.flags) - set(old.flags))


def _worded(edit: Edit, readings: frozenset[str]) -> Edit:
    """A change that some readings want undone."""
    if not readings:
        return edit
    which = " and ".join(sorted(readings))
    why = f"enough under the model as decided, not under {which}"
    if not edit.text:
        why = f"needless under the model as decided, needed under {which}"
    return replace(edit, what=f"{edit.what}; {why}")
