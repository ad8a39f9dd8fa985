"""Places in a litmus text that need no more than its words: questions, instructions, what stands at a position.

In: Source. Out: spans. Settled here: what still works while a test is being typed and cannot be read as a whole.
"""

from __future__ import annotations

import re

from memmodel.errors import InputError
from memmodel.litmus.lexer import blank_comments
from memmodel.recovery.every_error import Passage
from memmodel.source import Source, Span

_QUESTION = re.compile(r"~\s*exists\b|\bexists\b|\bforall\b")
_WORD = re.compile(r"[%@!]?[A-Za-z_$][\w$]*(?:(?:\.|::)[\w$]+)*")
_ENDS = ";{}|"
_BLOCK = re.compile(r"^[ \t]*thread\b", re.MULTILINE)
_HEAD = re.compile(r"\s*(?:[A-Za-z_$][\w$]*\s*:\s*)*")
_EXPECT = re.compile(r"[ \t]*Expect\b")
_AFTER_QUESTION = re.compile(r"(?m)~\s*exists\b|\bexists\b|\bforall\b|^[ \t]*(?:Expect|locations)\b")
_RESULT = re.compile(r"(?:@\S+\s+)?\S+\s+([^,]*)")
LONGEST = 300
"""Characters of a declaration whose name is kept when the rest of it cannot be read."""

_DECLARED = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:\[[^]]*\]\s*)?(?:=[^;]*)?;\s*\Z")
_TRUE = "exists (true)"
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


def passage_of(source: Source, span: Span) -> Passage | None:
    """The part of a test that an error is in and that can be left out: an expectation, a declaration, an instruction
    or a question."""
    text = blanked(source)
    line = text.rfind("\n", 0, span.start) + 1
    if _EXPECT.match(text, line):
        return _expectation(source, span)
    for question in questions_of(source):
        follows = _AFTER_QUESTION.search(text, question.start + 1)
        end = follows.start() if follows is not None else len(text)
        if question.start <= span.start <= end:
            return (
                Passage(source.span(question.start, end), instead=_TRUE) if end - question.start > len(_TRUE) else None
            )
    threads = _BLOCK.search(text)
    brace = text.find("{")
    in_blocks = threads is not None and threads.start() < (brace if brace >= 0 else len(text))
    closed = text.find("}")
    declared = threads.start() if in_blocks and threads is not None else closed
    if span.start < declared:
        return _declaration(source, text, span, -1 if in_blocks else brace, declared)
    heads = text.find(";", closed)
    return None if not in_blocks and span.start <= heads else _instruction(source, span)


def _instruction(source: Source, span: Span) -> Passage | None:
    instruction = instruction_at(source, span.start)
    if instruction is None or instruction.end < span.start:
        return None
    end = instruction.end
    if _BLOCK.search(blanked(source), 0, instruction.start):  # in a table the `;` ends the row
        semicolon = re.compile(r"\s*;").match(source.text, end)
        end = semicolon.end() if semicolon else end
    result = _RESULT.match(instruction.text)
    names = _names(result[1]) if result is not None and result[1][:1] != "[" else frozenset[str]()
    return Passage(source.span(instruction.start, end), names)


def _expectation(source: Source, span: Span) -> Passage:
    """One `model:word` of a line."""
    text = source.text
    start = next(at for at in range(span.start, -1, -1) if at == 0 or text[at - 1].isspace() or text[at - 1] == "=")
    end = next(at for at in range(span.start, len(text) + 1) if at == len(text) or text[at].isspace())
    return Passage(source.span(start, end))


def _declaration(source: Source, text: str, span: Span, opened: int, closed: int) -> Passage | None:
    """A statement of the block of declarations, with its `;`, which begins after `opened` and ends at `closed`."""
    begin = max(text.rfind(";", 0, span.start), opened) + 1
    if opened < 0 and begin == 0:  # the first one follows the header, and stands on a line of its own
        begin = text.rfind("\n", 0, span.start) + 1
    end = text.find(";", span.start)
    end = min(end + 1 if end >= 0 else closed, closed)
    if begin >= end or not text[begin:end].strip():
        return None
    passage = source.span(end - len(text[begin:end].lstrip()), end)
    declared = _DECLARED.search(passage.text) if opened < 0 and end - passage.start < LONGEST else None
    instead = f".global .u32 {declared[1]};" if declared is not None else ""
    return Passage(passage, _names(passage.text), instead if len(instead) <= len(passage.text) else "")


def _names(text: str) -> frozenset[str]:
    return frozenset(word.lstrip("%") for word in re.findall(r"[%\w$]+", text))
