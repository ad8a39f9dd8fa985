"""One question and its answer, explained.

In: a lowered test, a model, the engine's answer. Out: `Explanation`. Settled here: an outcome whose execution has a
race or hazard is explained by that; what the question is about comes first.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.answer import Answer, Finding, Observation, Witness
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.litmus.syntax import Not, Quantifier
from memmodel.program.lowered import LoweredTest
from memmodel.why.forbidden import contradictions
from memmodel.why.limited import limited
from memmodel.why.records import Contradiction, Explanation, Reason, Story
from memmodel.why.story import finding_story, outcome_story


def shown_outcome(lowered: LoweredTest, answer: Answer) -> Witness | None:
    """The execution that a question about outcomes needs explained: it shows the outcome, or breaks a `forall`."""
    if lowered.test.finding is not None:
        return None
    if lowered.test.quantifier is Quantifier.FORALL:
        return answer.counter
    return answer.witness


def _asked(word: str | None, finding: Finding) -> bool:
    """True if the question asks about this kind of finding."""
    return word is not None and word in kind_of(finding.flag).value


def first_findings(answer: Answer) -> list[Finding]:
    """The first finding of each flag; without hangs."""
    first: dict[str, Finding] = {}
    for finding in answer.findings:
        if kind_of(finding.flag) is not FindingKind.OTHER:
            first.setdefault(finding.flag, finding)
    return list(first.values())


def explanation(
    lowered: LoweredTest, model: Model, answer: Answer, options: Options, question: str, rules: dict[str, str]
) -> Explanation:
    """All that can be said of an answer."""
    from memmodel.why.stuck import stuck

    test = lowered.test
    stories: list[Story | None] = []
    shown = shown_outcome(lowered, answer)
    if shown is not None and answer.observation in (Observation.SOMETIMES, Observation.ALWAYS, Observation.NEVER):
        stories.append(outcome_story(model, shown))
    findings = sorted(first_findings(answer), key=lambda finding: not _asked(test.finding, finding))
    meant = test.finding is None and not any(
        obstacle.reason is Reason.NO_SYNCHRONIZATION for story in stories if story for obstacle in story.obstacles
    )
    stories += [
        finding_story(model, finding, rules.get(finding.flag, ""), meant=meant, shown=shown) for finding in findings
    ]
    hang, never = answer.hang, why_never(lowered, model, answer, options)
    path = test.source.name if test.source else ""
    return Explanation(
        test.name,
        path,
        model.name,
        question,
        answer.observation.value,
        tuple(story for story in stories if story is not None),
        never,
        stuck(hang.witness) if hang is not None else None,
        (),
        note(answer, explained=bool(never)),
    )


def why_never(
    lowered: LoweredTest, model: Model, answer: Answer, options: Options, *, first: bool = False
) -> tuple[Contradiction, ...]:
    """Why an outcome is never seen; for a `forall`, why none breaks it. `first`: by the first axiom named is enough."""
    if lowered.test.finding is not None:
        return ()
    if lowered.test.quantifier is Quantifier.FORALL and answer.observation is Observation.ALWAYS:
        test = replace(lowered.test, quantifier=Quantifier.NOT_EXISTS, condition=Not(lowered.test.condition))
        lowered = replace(lowered, test=test)
        names = tuple(check.name for check in model.axioms)
        return limited(lambda: contradictions(lowered, model, options, names, answer), ())
    if answer.observation is Observation.NEVER and answer.axioms and shown_outcome(lowered, answer) is None:
        names = answer.axioms[:1] if first else answer.axioms
        return limited(lambda: contradictions(lowered, model, options, names, answer), ())
    return ()


def note(answer: Answer, *, explained: bool) -> str:
    """The sentence for an answer that has neither a story nor a contradiction."""
    if answer.observation is Observation.NEVER and answer.axioms and not explained:
        return f"forbidden by {' and '.join(answer.axioms)}; no execution was found that shows how"
    if answer.reason:
        return answer.reason
    if answer.observation is Observation.NEVER and not answer.axioms and answer.witness is None:
        return "no execution has it, whatever the model says"
    return ""
