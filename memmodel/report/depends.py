"""Which decision of the documents makes the difference, and what a program has to add so that it does not.

In: the answers of all readings. Out: `Dependence`s, one for each reading that says the opposite of the default.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.cat.syntax import Model
from memmodel.report.readings import ReadingsReport, Verdict
from memmodel.why.records import Dependence
from memmodel.why.story import outcome_story


def dependences(report: ReadingsReport, load: Callable[[str], Model]) -> tuple[Dependence, ...]:
    """The readings that make a difference. `load`: a model by its name."""
    listed = []
    for reading in report.depends:
        side = reading.side
        if reading.verdict is Verdict.ALLOWED:
            name, model, witness = reading.name, side.model, reading.answer.witness
        else:
            name, model, witness = "the default", report.model, report.answer.witness
        story = outcome_story(load(model), witness) if witness is not None and model is not None else None
        obstacles = () if story is None else story.obstacles
        decision = reading.decision
        listed.append(
            Dependence(
                reading.name, decision.question, decision.default.answer, side.answer, name, obstacles, decision.source
            )
        )
    return tuple(listed)
