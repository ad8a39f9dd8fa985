"""Places in a litmus text that need no more than its words: questions, instructions, what stands at a position.

In: Source. Out: spans. Settled here: what still works while a test is being typed and cannot be read as a whole.
"""

from __future__ import annotations

import re

from memmodel.errors import InputError
from memmodel.litmus.lexer import blank_comments
from memmodel.source import Source, Span

_QUESTION = re.compile(r"~\s*exists\b|\bexists\b|\bforall\b")
_WORD = re.compile(r"[%@!]?[A-Za-z_$][\w$]*(?:(?:\.|::)[\w$]+)*")
_ENDS = ";{}|"
_BLOCK = re.compile(r"^\s*thread\b", re.MULTILINE)
_HEAD = re.compile(r"\s*(?:[A-Za-z_$][\w$]*\s*:\s*)*")
_NO_INSTRUCTION = re.compile(r'\.|PTX\b|thread\b|Expect\b|locations\b|exists\b|forall\b|~|"|[\w$@+:]+\s*=|$')


def blanked(source: Source) -> str:
    """The text without comments, as far as they end."""
    try:
        return blank_comments(source)
    except InputError as error:
        if error.span is None:
            return source.text
        return source.text[: error.span.start].ljust(len(source.text))


def questions_of(source: Source) -> list[Span]:
    """Where each question stands, to the end of its line."""
    text = blanked(source)
    spans = []
    for match in _QUESTION.finditer(text):
        end = text.find("\n", match.end())
        line = text[match.start() : end if end >= 0 else len(text)]
        spans.append(source.span(match.start(), match.start() + len(line.rstrip())))
    return spans


def word_at(source: Source, offset: int) -> Span | None:
    """The name, register or mnemonic at an offset, with its dots; None in a comment or elsewhere."""
    text = blanked(source)
    begin = text.rfind("\n", 0, offset) + 1
    for match in _WORD.finditer(text, begin):
        if match.start() > offset or "\n" in text[begin : match.start()]:
            return None
        if offset <= match.end():
            return source.span(*match.span())
    return None


def instruction_at(source: Source, offset: int) -> Span | None:
    """What stands between the ends of instructions around an offset, without labels; None if it is no instruction."""
    text = blanked(source)
    begin = max(text.rfind(mark, 0, offset) for mark in _ENDS) + 1
    ends = [at for mark in _ENDS if (at := text.find(mark, offset)) >= 0]
    end = min(ends, default=len(text))
    if text.rfind("{", 0, offset) < 0:
        return None
    head = _HEAD.match(text, begin, end)
    begin = head.end() if head else begin
    if begin >= end or _NO_INSTRUCTION.match(text, begin, end):
        return None
    return source.span(begin, len(text[:end].rstrip()))


def without_instruction(source: Source, span: Span | None) -> Source | None:
    """The text with blanks in place of the instruction at a span, so that what follows can be read; None if there is
    no instruction."""
    if span is None or span.source.text != source.text or span.start >= span.end:
        return None
    instruction = instruction_at(source, span.start)
    if instruction is None or instruction.end < span.start:
        return None
    end = instruction.end
    if _BLOCK.search(blanked(source), 0, instruction.start):  # in a table the `;` ends the row
        semicolon = re.compile(r"\s*;").match(source.text, end)
        end = semicolon.end() if semicolon else end
    blank = re.sub(r"[^\n]", " ", source.text[instruction.start : end])
    return Source(source.name, source.text[: instruction.start] + blank + source.text[end:])
