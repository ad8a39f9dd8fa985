"""What was expected, in words, and whether an answer meets it.

In: a test's Expect line, or a row of a CSV file. Out: words joined by spaces, and the judgement. Settled here: the
closed list of words. `never` … `undecided` are observations; `race` and the words after it are findings, met when the
answer has one; `holds` and `fails` come from a CSV and speak of the file's own question.
"""

from __future__ import annotations

from memmodel.answer import Answer, Observation
from memmodel.errors import InputError, nearest
from memmodel.litmus.syntax import LitmusTest, Quantifier

OBSERVED = tuple(observation.value for observation in Observation)
FINDINGS = ("race", "hang", "hazard", "undefined")
HOLDS, FAILS = "holds", "fails"


def expected_words(test: LitmusTest, model: str) -> str | None:
    """The words that the file's Expect line has for the model, or None. Raises InputError for a word that is none."""
    words = []
    for expectation in test.expectations:
        if expectation.model != model:
            continue
        if expectation.word not in OBSERVED + FINDINGS:
            close = nearest(expectation.word, OBSERVED + FINDINGS)
            hint = f"did you mean `{close}`?" if close else "one of " + ", ".join(OBSERVED + FINDINGS)
            raise InputError(f"`{expectation.word}` is nothing that can be expected", expectation.span, hint)
        words.append(expectation.word)
    return " ".join(words) or None


def meets(answer: Answer, quantifier: Quantifier, expected: str) -> bool:
    """Does the answer have everything that the words ask for? An undecided answer meets only `undecided`."""
    return all(_meets(answer, quantifier, word) for word in expected.split())


def _meets(answer: Answer, quantifier: Quantifier, word: str) -> bool:
    if word in OBSERVED:
        return answer.observation.value == word
    if word in (HOLDS, FAILS):
        return answer.observation.answers(quantifier) is (word == HOLDS)
    if word == "race":
        return bool(answer.races)
    return word in answer.flags
