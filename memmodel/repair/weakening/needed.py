"""What a weakened test does not need under the model as decided, and needs under another reading of the documents.

In: the text of a test, the changes that weaken it. Out: for each change, the readings that need what it takes away.
Settled here: no reading is asked (`report.open_decisions`). A reading needs what a change takes away if the change
alone adds an outcome or a finding under the reading. Where only all changes together do, it needs all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memmodel import engine
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.repair.edits import Edit, apply
from memmodel.repair.judge import parse
from memmodel.report.open_decisions import readings_with_more
from memmodel.report.report import Report


def with_readings(
    name: str, text: str, changes: Sequence[Edit], models: Sequence[Model], options: Options
) -> tuple[Edit, ...]:
    """The changes. Those whose loss a reading does not bear say so in their words."""
    default = next((model for model in models if model.name == DEFAULT_MODEL), None)
    if default is None or not changes:
        return tuple(changes)
    before = _more(name, text, default, options)
    after = _more(name, apply(text, changes), default, options) - before
    if not after:
        return tuple(changes)
    alone = [_more(name, apply(text, (edit,)), default, options) & after for edit in changes]
    together = after.difference(*alone)
    return tuple(_worded(edit, mine | together) for edit, mine in zip(changes, alone, strict=True))


def _more(name: str, text: str, model: Model, options: Options) -> frozenset[str]:
    """The readings that have more than the default model in a text."""
    more: set[str] = set()
    for steps in parse(name, text) or ():
        answer = engine.answer(steps, model, options, findings=False)
        more |= readings_with_more(Report.of(steps, model, answer, None, options))
    return frozenset(more)


def _worded(edit: Edit, readings: frozenset[str]) -> Edit:
    """A change that some readings want undone."""
    if not readings:
        return edit
    which = " and ".join(sorted(readings))
    said = f"enough under the model as decided, not under {which}"
    if not edit.text:
        said = f"needless under the model as decided, needed under {which}"
    return replace(edit, what=f"{edit.what}; {said}")
