"""The column layout: herd's table, one column per thread.

In: Reader at the `{` of the init block. Out: declarations and threads; the reader stands at the question. A header
cell names its thread, and its column belongs to that name. A table with cells is read by hand: its columns are a
second dimension that no context-free grammar over the text sees.
"""

from __future__ import annotations

from memmodel.errors import InputError, suggestion
from memmodel.litmus.condition import QUESTIONS, begins_question
from memmodel.litmus.declarations import Declarations, read_statement
from memmodel.litmus.instructions import MAX_INSTRUCTIONS, MAX_THREADS, read_instruction, read_place
from memmodel.litmus.lexer import Reader
from memmodel.litmus.syntax import Instruction, Label, Layout, Thread
from memmodel.ptx.lexer import Token
from memmodel.ptx.vocabulary import Place

_Cell = tuple[int, int]
_HEADER_HINT = "a table begins with its threads: `P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;`"


def read_columns(reader: Reader) -> tuple[Declarations, list[Thread]]:
    """Init block and table. Raises InputError."""
    declarations = Declarations()
    _init_block(reader, declarations)
    rows = _rows(reader)
    heads = [_head(reader.part(*cell, "cell")) for cell in rows[0]]
    names: set[str] = set()
    for name, _, token in heads:
        if name in names:
            raise InputError(f"two columns are called `{name}`", reader.span(token))
        names.add(name)
    if len(heads) > MAX_THREADS:
        raise InputError(f"more than {MAX_THREADS} threads", reader.span(heads[MAX_THREADS][2]))
    for row in rows[1:]:
        if len(row) != len(heads):
            raise _wrong_row(reader, row, len(heads))
    threads: list[Thread] = []
    total = 0
    for column, (name, place, token) in enumerate(heads):
        cells = [row[column] for row in rows[1:]]
        body = _column(reader, cells, declarations)
        total += len(body)
        if total > MAX_INSTRUCTIONS:
            where = body[max(0, MAX_INSTRUCTIONS - total)].span
            raise InputError(f"more than {MAX_INSTRUCTIONS:,} instructions", where, "a litmus test is a few threads")
        threads.append(Thread(name, place, tuple(body), span=reader.span(token)))
    return declarations, threads


def _init_block(reader: Reader, into: Declarations) -> None:
    opened = reader.expect("{", "`{` and the init block")
    while reader.token.kind != "}":
        if reader.accept(";"):
            continue
        if reader.token.kind == "end":
            raise InputError("this `{` is never closed", reader.span(opened))
        read_statement(reader, into)
        if reader.token.kind not in (";", "}"):
            raise reader.wanted("`;` or `}`")
    reader.next()


def _rows(reader: Reader) -> list[list[_Cell]]:
    """The table as cells (ranges of tokens), header first; the reader moves to the question after it."""
    tokens = reader.tokens
    first = start = reader.at
    rows: list[list[_Cell]] = []
    row: list[_Cell] = []
    at = start
    open_pairs = 0
    while tokens[at].kind != "end" and not begins_question(tokens[at], tokens[at + 1]):
        if tokens[at].kind in ("(", ")"):  # the bar of a pair `(%r0|%p)` does not end a cell
            open_pairs += 1 if tokens[at].kind == "(" else -1
        elif tokens[at].kind == ";" or (tokens[at].kind == "|" and open_pairs <= 0):
            open_pairs = 0
            row.append((start, at))
            start = at + 1
            if tokens[at].kind == ";":
                rows.append(row)
                row = []
        at += 1
    if start < at or row:
        rows.append([*row, (start, at)])
    reader.at, reader.token = at, tokens[at]
    if not rows:
        raise reader.wanted("the table of threads", _HEADER_HINT)
    if len(rows) == 1 and tokens[at - 1].kind != ";" and at > first:
        raise reader.wanted("`;` after the last thread of the table's header", _HEADER_HINT)
    return rows


def _head(cell: Reader) -> tuple[str, Place, Token]:
    if cell.token.kind == "end":
        raise cell.wanted("the name of a thread", _HEADER_HINT)
    token = cell.identifier("the name of a thread")
    place = read_place(cell)
    if cell.token.kind != "end":
        raise cell.wanted("`@`, `,`, `|` or `;`", _HEADER_HINT)
    return token.text, place, token


def _wrong_row(reader: Reader, row: list[_Cell], threads: int) -> InputError:
    first, last = row[0][0], row[-1][1]
    span = reader.span(reader.tokens[first], reader.tokens[max(first, last - 1)])
    hint = suggestion(reader.tokens[first].text, QUESTIONS)
    if hint and row[-1][1] == reader.at:
        raise InputError("this is not a row of the table", reader.span(reader.tokens[first]), hint)
    message = f"this row has {_counted(len(row), 'cell')}, the header has {_counted(threads, 'thread')}"
    return InputError(message, span, "an idle thread has an empty cell; a row ends with `;`")


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _column(reader: Reader, cells: list[_Cell], declarations: Declarations) -> list[Instruction | Label]:
    labels = read_labels(reader, [i for first, last in cells for i in range(first, last)])
    names = declarations.variables.keys() | labels.keys()
    body: list[Instruction | Label] = []
    for first, last in cells:
        if first == last:
            continue
        cell = reader.part(first, last, "cell")
        while cell.token.kind == "name" and cell.ahead().kind == ":":
            body.append(labels[cell.next().text])
            cell.next()
        if cell.token.kind != "end":
            body.append(read_instruction(cell, names, Layout.COLUMNS))
    return body


def read_labels(reader: Reader, indices: list[int] | range) -> dict[str, Label]:
    """The labels among these tokens: names followed by a colon. Raises InputError on a duplicate."""
    tokens = reader.tokens
    labels: dict[str, Label] = {}
    for i in indices:
        if tokens[i].kind == ":" and tokens[i - 1].kind == "name":
            token = Reader(reader.source, [tokens[i - 1], tokens[i]]).identifier("a label")
            if token.text in labels:
                hint = f"the first is on line {labels[token.text].span.line}"
                raise InputError(f"label `{token.text}` stands twice in one thread", reader.span(token), hint)
            labels[token.text] = Label(token.text, reader.span(token))
    return labels
