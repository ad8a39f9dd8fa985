"""What a model says of a counterexample, in words and as a picture.

In: a property, a model, the text of a program. Out: text, SVG. Settled here: the execution that is shown is the one in
which the check of the property fails.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel import api
from memmodel.report.draw import draw
from memmodel.report.report import Report
from memmodel.report.text import explain
from memmodel.search.properties import joined, load_property


def _report(name: str, model: str, text: str, check: str) -> Report:
    it = load_property(name)
    if it.kind == "inclusion":
        return api.check(text, model)
    report = api.check(text, joined(it, model), engine="enumerate")
    shown = tuple(one for one in report.answer.findings if one.flag == check)
    answer = replace(report.answer, findings=shown, witness=shown[0].witness if shown else report.answer.witness)
    return replace(report, answer=answer)


def explained(name: str, model: str, text: str, check: str) -> str:
    """The report on a counterexample, with nothing but the finding that it is about."""
    return explain(_report(name, model, text, check))


def picture(name: str, model: str, text: str, check: str) -> str:
    """The execution that breaks the property, as SVG."""
    return draw(_report(name, model, text, check), "svg")
