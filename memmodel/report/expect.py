"""What was expected, in a word, and whether an answer meets it.

In: a test's Expect line, or a row of a CSV file. Out: the word, and the judgement. Settled here: the closed list of
words. `never` … `undecided` are observations; `race` and the words after it are findings, met when the
answer has one; `holds` and `fails` come from a CSV and speak of the file's own question.
"""

from __future__ import annotations

from memmodel.answer import Answer, Observation
from memmodel.errors import InputError, nearest
from memmodel.litmus.syntax import LitmusTest, Quantifier

OBSERVED = tuple(observation.value for observation in Observation)
FINDINGS = ("race", "hang", "hazard", "undefined")
HOLDS, FAILS = "holds", "fails"


def expected_word(test: LitmusTest, model: str) -> str | None:
    """The word that the file's Expect line has for the model, or None. Raises InputError for a word that is none."""
    for expectation in test.expectations:
        if expectation.model != model:
            continue
        if expectation.word not in OBSERVED + FINDINGS:
            close = nearest(expectation.word, OBSERVED + FINDINGS)
            hint = f"did you mean `{close}`?" if close else "one of " + ", ".join(OBSERVED + FINDINGS)
            raise InputError(f"`{expectation.word}` is nothing that can be expected", expectation.span, hint)
        return expectation.word
    return None


def meets(answer: Answer, quantifier: Quantifier, word: str) -> bool:
    """Is the answer what the word says? An undecided answer meets only `undecided`, and findings that it has."""
    if word in OBSERVED:
        return answer.observation.value == word
    if word in (HOLDS, FAILS):
        return answer.observation.answers(quantifier) is (word == HOLDS)
    if word == "race":
        return bool(answer.races)
    return word in answer.flags
