"""A file to a LitmusTest, whichever layout it is in.

In: Source. Out: LitmusTest. The reader is written by hand: header lines end with the line, tables have columns, and
an error should name the rule that the writer of a test broke, not the token that a grammar would have liked. A file
whose first `{` comes right after the header is a table; any other is made of blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memmodel.errors import InputError
from memmodel.litmus.blocks import Registers, read_blocks
from memmodel.litmus.check import NameCheck
from memmodel.litmus.columns import read_columns
from memmodel.litmus.condition import Question, read_questions
from memmodel.litmus.header import read_expectations, read_header
from memmodel.litmus.lexer import SPELLING, Reader, blank_comments
from memmodel.litmus.syntax import Asked, Expectation, Layout, LitmusTest
from memmodel.ptx.lexer import tokenize
from memmodel.source import MAX_BYTES, Source

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def parse_litmus(source: Source, ask: Sequence[str] = ()) -> LitmusTest:
    """Read a litmus test in either layout. Raises InputError with the place, the rule and a repair.

    `ask`: questions in place of the file's own, whose Expect lines are then left out; such a file needs no question.
    """
    _check_text(source)
    clean = blank_comments(source)
    header, at = read_header(source, clean)
    expected, clean = read_expectations(source, clean, at)
    reader = Reader(source, tokenize(source, SPELLING, clean, at))
    layout = Layout.COLUMNS if reader.token.kind == "{" else Layout.BLOCKS
    declared: Registers = {}
    if layout is Layout.COLUMNS:
        declarations, threads = read_columns(reader)
    else:
        declarations, threads, declared = read_blocks(reader)
    questions = [] if ask and reader.token.kind == "end" else read_questions(reader)
    expectations = _expectations(header.expectations, expected, questions)
    if ask:
        questions = [question for text in ask for question in _asked(text)]
        expectations = [()] * len(questions)
    names = NameCheck(declarations, threads, declared, implicit=layout is Layout.COLUMNS)
    names.check(questions)
    first, *others = questions
    return LitmusTest(
        header.name,
        header.description,
        expectations[0],
        tuple(names.variables.values()),
        tuple(declarations.registers.values()),
        tuple(names.threads),
        first.quantifier,
        first.condition,
        first.shown,
        first.finding,
        tuple(
            Asked(other.quantifier, other.condition, other.shown, other.finding, expected_of_it)
            for other, expected_of_it in zip(others, expectations[1:], strict=True)
        ),
        layout,
        source,
        tuple(names.warnings),
    )


def _asked(text: str) -> list[Question]:
    """Questions from outside the file. Raises InputError."""
    source = Source("<question>", text)
    if not text.strip():
        raise InputError("the question is empty", hint="such as `exists (P1:r0 == 1)` or `exists race`")
    _check_text(source)
    return read_questions(Reader(source, tokenize(source, SPELLING, blank_comments(source))))


def _expectations(
    first: tuple[Expectation, ...], later: list[tuple[int, tuple[Expectation, ...]]], questions: list[Question]
) -> list[tuple[Expectation, ...]]:
    """The expectations of each question: the header's for the first, and lines between the question before and it."""
    expectations: list[tuple[Expectation, ...]] = []
    since = 0
    for question in questions:
        above = [expectation for at, line in later if since <= at < question.start for expectation in line]
        expectations.append((*first, *above) if since == 0 else tuple(above))
        since = question.start
        seen: set[str] = set()
        for expectation in expectations[-1]:
            if expectation.model in seen:
                message = f"two expectations for `{expectation.model}`"
                raise InputError(message, expectation.span, "each question has one for a model")
            seen.add(expectation.model)
    for at, line in later:
        if line and (not questions or at > questions[-1].start):
            raise InputError("no question follows this expectation", line[0].span, "it stands above its question")
    return expectations


def _check_text(source: Source) -> None:
    text = source.text
    if not text.strip():
        hint = "a litmus test begins with `PTX name`"
        raise InputError("the file is empty", source.span(0, 0), hint, show_line=False)
    if len(text) > MAX_BYTES:
        hint = "a litmus test is a few threads"
        raise InputError(f"larger than {MAX_BYTES:,} characters", source.span(0, 1), hint, show_line=False)
    control = _CONTROL.search(text)
    if control:
        raise InputError("not a text file: control character", source.span(*control.span()), show_line=False)
