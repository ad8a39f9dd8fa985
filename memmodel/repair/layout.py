"""A test is changed as blocks, PTX's own spelling. A table is given back as a table where that can say the change.

In: a test in any layout. Out: `Laid`: its text as blocks, and the way back. Settled here: what did not change keeps the
spelling that it had, and a text is given back only if it means what the blocks mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from memmodel import api
from memmodel.errors import InputError
from memmodel.isa.convert import convert
from memmodel.litmus import parse_litmus, print_litmus
from memmodel.litmus.syntax import Instruction, Label, Layout, LitmusTest, Thread
from memmodel.source import Source

_LINE = re.compile(r"\bline (\d+)\b")

Body = tuple[Instruction | Label, ...]


@dataclass(frozen=True, slots=True)
class Laid:
    """A test as it was written, and `blocks`: its text in block layout, the same text if it had that."""

    test: LitmusTest
    blocks: str

    @property
    def text(self) -> str:
        """The text as it was written."""
        return self.test.source.text

    def in_written_lines(self, what: str) -> str:
        """What is said of a change, with the lines of the text as it was written."""
        if self.test.layout is Layout.BLOCKS:
            return what
        old = _parsed(self.test, self.blocks)
        lines = {a.span.line: b.span.line for a, b in zip(old.variables, self.test.variables, strict=False)}
        for table, thread in zip(self.test.threads, old.threads, strict=False):
            if len(table.body) == len(thread.body):
                lines |= {a.span.line: b.span.line for a, b in zip(thread.body, table.body, strict=True)}
        return _LINE.sub(lambda match: f"line {lines[int(match[1])]}" if int(match[1]) in lines else "a line", what)

    def back(self, new: str) -> str:
        """Changed blocks, in the layout that the test had if that can say them."""
        if self.test.layout is Layout.BLOCKS:
            return new
        old, changed = (_parsed(self.test, text) for text in (self.blocks, new))
        try:
            converted = convert(changed, Layout.COLUMNS)
        except InputError:
            return new
        for table in (_merged(self.test, old, changed, converted), converted):
            for text in (_spliced(self.test, table), print_litmus(table)):
                if _says(self.test, text, changed):
                    return text
        return new


def laid(source: Source) -> Laid:
    """Raises InputError for a text that is no test, and for a table that blocks cannot say."""
    test = api.read_test(source).test
    if test.layout is Layout.BLOCKS:
        return Laid(test, source.text)
    try:
        return Laid(test, print_litmus(convert(test, Layout.BLOCKS)))
    except InputError as error:
        why = f"tests are changed as PTX, and this table has no equal there: {error.message}"
        raise InputError(why, error.span, "`memmodel explain` says what is missing") from error


def _parsed(test: LitmusTest, text: str) -> LitmusTest:
    return parse_litmus(Source(test.source.name, text))


def _says(test: LitmusTest, text: str, changed: LitmusTest) -> bool:
    """True if the text in columns means the same as the changed blocks."""
    try:
        return print_litmus(convert(_parsed(test, text), Layout.BLOCKS)) == print_litmus(changed)
    except InputError:
        return False


def _merged(table: LitmusTest, old: LitmusTest, new: LitmusTest, converted: LitmusTest) -> LitmusTest:
    """The converted table, with the spelling of the first one where the blocks are as they were."""
    before = dict(zip(old.variables, table.variables, strict=False))
    variables = tuple(before.get(a, b) for a, b in zip(new.variables, converted.variables, strict=False))
    threads = zip(table.threads, old.threads, new.threads, converted.threads, strict=False)
    return replace(
        converted,
        description=table.description,
        variables=variables if len(variables) == len(converted.variables) else converted.variables,
        threads=tuple(replace(four[3], body=_body(*four)) for four in threads),
    )


def _body(table: Thread, old: Thread, new: Thread, converted: Thread) -> Body:
    if len(table.body) != len(old.body) or len(new.body) != len(converted.body):
        return converted.body
    body = list(converted.body)
    for a, b, size in SequenceMatcher(None, old.body, new.body, autojunk=False).get_matching_blocks():
        body[b : b + size] = table.body[a : a + size]
    return tuple(body)


def _spliced(test: LitmusTest, table: LitmusTest) -> str:
    """The text as it was written, with the rows of a table in place of its own."""
    text, printed = test.source.text, print_litmus(table)
    try:
        reparsed = _parsed(test, printed)
    except InputError:
        return printed
    (start, end), (begin, stop) = _rows(test), _rows(reparsed)
    return text[:start] + printed[begin:stop] + text[end:]


def _rows(test: LitmusTest) -> tuple[int, int]:
    """The characters of a table's rows, whole lines."""
    text = test.source.text
    spans = [item.span for thread in test.threads for item in thread.body]
    start = text.rfind("\n", 0, min(span.start for span in spans)) + 1
    end = text.find("\n", text.index(";", max(span.end for span in spans)))
    return start, len(text) if end < 0 else end
