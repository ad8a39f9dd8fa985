"""A file to a LitmusTest, whichever layout it is in.

In: Source. Out: LitmusTest. The reader is written by hand: header lines end with the line, tables have columns, and
an error should name the rule that the writer of a test broke, not the token that a grammar would have liked. A file
whose first `{` comes right after the header is a table; any other is made of blocks.
"""

from __future__ import annotations

import re

from memmodel.errors import InputError
from memmodel.litmus.blocks import Registers, read_blocks
from memmodel.litmus.check import check_names
from memmodel.litmus.columns import read_columns
from memmodel.litmus.condition import read_question
from memmodel.litmus.header import read_header
from memmodel.litmus.lexer import Reader, blank_comments, tokenize
from memmodel.litmus.syntax import Layout, LitmusTest
from memmodel.source import MAX_BYTES, Source

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def parse_litmus(source: Source) -> LitmusTest:
    """Read a litmus test in either layout. Raises InputError with the place, the rule and a repair."""
    _check_text(source)
    clean = blank_comments(source)
    header, at = read_header(source, clean)
    reader = Reader(source, tokenize(source, clean, at))
    layout = Layout.COLUMNS if reader.token.kind == "{" else Layout.BLOCKS
    declared: Registers = {}
    if layout is Layout.COLUMNS:
        declarations, threads = read_columns(reader)
    else:
        declarations, threads, declared = read_blocks(reader)
    question = read_question(reader)
    checked = check_names(declarations, threads, question, declared, implicit=layout is Layout.COLUMNS)
    return LitmusTest(
        header.name,
        header.description,
        header.expectations,
        tuple(checked.variables.values()),
        tuple(declarations.registers.values()),
        tuple(checked.threads),
        question.quantifier,
        question.condition,
        question.shown,
        question.finding,
        layout,
        source,
        tuple(checked.warnings),
    )


def _check_text(source: Source) -> None:
    text = source.text
    if not text.strip():
        hint = "a litmus test begins with `PTX name`"
        raise InputError("the file is empty", source.span(0, 0), hint, show_line=False)
    if len(text) > MAX_BYTES:
        hint = "a litmus test is a few threads"
        raise InputError(f"larger than {MAX_BYTES:,} characters", source.span(0, 1), hint, show_line=False)
    found = _CONTROL.search(text)
    if found:
        raise InputError("not a text file: control character", source.span(*found.span()), show_line=False)
