"""What was expected, in words, and whether an answer meets it.

In: a test's Expect line, or a row of a CSV file. Out: the word, and the judgement. Settled here: the closed list of
words. `never` … `undecided` are observations; `race` and the words after it are findings, met when the answer has one;
`a+b` is met when both are; `holds` and `fails` come from a CSV and speak of the file's own question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memmodel.answer import HANG, Answer, Observation
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.errors import InputError, suggestion
from memmodel.litmus.syntax import Expectation, Quantifier

OBSERVED = tuple(observation.value for observation in Observation)
FINDINGS = {
    "race": (FindingKind.RACE, FindingKind.MIXED),
    "hang": (),
    "hazard": (FindingKind.HAZARD,),
    "undefined": (FindingKind.UNDEFINED,),
}
"""The words for findings, each with the kinds of flags that it speaks of; no flag reports a hang."""

HOLDS, FAILS = "holds", "fails"


def word_for(expectations: Sequence[Expectation], model: str) -> str | None:
    """What the expectations of one question have for the model (`a` or `a+b`), else for the cat file of its name; None
    if they have nothing. Raises InputError for an unknown word.
    """
    known = (*OBSERVED, *FINDINGS)
    own = [expectation for expectation in expectations if expectation.model == model]
    for expectation in own or [other for other in expectations if other.model == f"{model}.cat"]:
        for word in expectation.word.split("+"):
            if word not in known:
                hint = suggestion(word, known, "`{}`") or "one of " + ", ".join(known)
                raise InputError(f"`{word}` is nothing that can be expected", expectation.span, hint)
        return expectation.word
    return None


def meets(answer: Answer, quantifier: Quantifier, words: str) -> bool:
    """True if the answer meets all the words. An undecided answer meets only `undecided`, and findings that it has."""
    return all(_meets(answer, quantifier, word) for word in words.split("+"))


def _meets(answer: Answer, quantifier: Quantifier, word: str) -> bool:
    if word in OBSERVED:
        return answer.observation.value == word
    if word in (HOLDS, FAILS):
        return answer.observation.answers(quantifier) is (word == HOLDS)
    return has(answer, word)


def has(answer: Answer, word: str) -> bool:
    """True if the answer has this finding."""
    return any(is_called(flag, word) for flag in answer.flags)


def is_called(flag: str, word: str) -> bool:
    """True if the word (`race`, `hang`, …) names findings with this flag."""
    return flag == HANG if word == HANG else flag != HANG and kind_of(flag) in FINDINGS[word]


def about_finding(word: str, model: Model, answer: Answer) -> Answer:
    """The answer to `exists race` and its like, from the answer about all executions; its witness is the finding's."""
    finding = next((finding for finding in answer.findings if is_called(finding.flag, word)), None)
    reported = word == HANG or any(is_called(flag.name, word) for flag in model.flags)
    if finding is not None:
        observation, reason = Observation.SOMETIMES, ""
    elif not reported:
        observation, reason = Observation.UNDECIDED, f"{model.name} has no rule for this finding"
    elif answer.unsearched:
        observation, reason = Observation.UNDECIDED, answer.unsearched
    else:
        observation, reason = Observation.NEVER, "no execution has it"
    witness = None if finding is None else finding.witness
    return replace(
        answer, observation=observation, witness=witness, counter=None, axioms=(), reason=reason, with_condition=None
    )
