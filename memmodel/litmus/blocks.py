"""The block layout: declarations, then `thread P0 @ cta 0, gpu 0 { … }` with instructions as PTX spells them.

In: Reader after the header. Out: declarations, threads, and the registers that each thread's `.reg` lines name; the
reader stands at the question. Of `.reg` lines only the predicates are kept: a register needs no declaration.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.errors import InputError, suggestion
from memmodel.litmus.columns import read_labels
from memmodel.litmus.condition import is_over
from memmodel.litmus.declarations import TYPES, Declarations, read_statement
from memmodel.litmus.inner_blocks import closing, flatten
from memmodel.litmus.instructions import MAX_INSTRUCTIONS, MAX_THREADS, read_instruction, read_place
from memmodel.litmus.lexer import Reader
from memmodel.litmus.syntax import Instruction, Label, Layout, Thread
from memmodel.ptx.lexer import shorten


@dataclass(frozen=True, slots=True)
class _Declared:
    """The registers that the `.reg` lines of a thread name, and those of them that are predicates."""

    registers: set[str] = field(default_factory=set)
    predicates: set[str] = field(default_factory=set)


Registers = dict[str, set[str]]
"""Thread name -> registers that its `.reg` lines declare."""

MAX_PREDICATES = 1 << 12
"""Predicates that a thread declares."""


def read_blocks(reader: Reader) -> tuple[Declarations, list[Thread], Registers]:
    """Declarations and threads. Raises InputError."""
    declarations = Declarations()
    if reader.token.kind == "name" and reader.ahead().kind in "@|" and reader.ahead(2).text in ("cta", "gpu", "P1"):
        raise reader.wanted("`{` and the init block", "a table begins with its init block, empty or not: `{ x=0; }`")
    while reader.token.text != "thread" and not is_over(reader):
        first = reader.token
        read_statement(reader, declarations)
        if reader.token.kind != ";":
            raise reader.wanted("`;` after the declaration", suggestion(first.text, ("thread",)))
        reader.next()
    threads: dict[str, Thread] = {}
    registers: Registers = {}
    total = 0
    while reader.accept_word("thread"):
        token = reader.identifier("the name of a thread")
        if token.text in threads:
            raise InputError(f"two threads are called `{token.text}`", reader.span(token))
        if len(threads) == MAX_THREADS:
            raise InputError(f"more than {MAX_THREADS} threads", reader.span(token))
        place = read_place(reader)
        reader.expect("{", "`{` and the thread's instructions")
        declared = _Declared()
        body = _body(reader, declarations, declared, MAX_INSTRUCTIONS - total)
        total += len(body)
        registers[token.text] = declared.registers
        threads[token.text] = Thread(token.text, place, tuple(body), frozenset(declared.predicates), reader.span(token))
    if not threads or not is_over(reader):
        what = "`thread` or a question" if threads else "`thread`"
        raise reader.wanted(what, "a thread is `thread P0 @ cta 0, gpu 0 { … }`")
    return declarations, list(threads.values()), registers


def _body(reader: Reader, declarations: Declarations, declared: _Declared, room: int) -> list[Instruction | Label]:
    """The rest of a thread after its `{`, of at most `room` instructions and labels."""
    end = closing(reader.source, reader.tokens, reader.at - 1)
    flat = flatten(reader.source, reader.tokens[reader.at : end])
    reader.replace(end, flat)
    labels = read_labels(reader, range(reader.at, reader.at + len(flat)))
    names = declarations.variables.keys() | labels.keys()
    body: list[Instruction | Label] = []
    while not reader.accept("}"):
        if reader.token.kind == "name" and reader.ahead().kind == ":":
            body.append(labels[reader.next().text])
            reader.next()
        elif reader.token.text == ".reg":
            _registers(reader, declarations, declared)
        else:
            body.append(read_instruction(reader, names, Layout.BLOCKS))
            reader.expect(";", "`;` after the instruction")
        if len(body) > room:
            where = body[-1].span
            raise InputError(f"more than {MAX_INSTRUCTIONS:,} instructions", where, "a litmus test is a few threads")
    return body


def _registers(reader: Reader, declarations: Declarations, declared: _Declared) -> None:
    """`.reg .u32 %r<4>, %x;`. Fills the names of all registers, and of those that are predicates."""
    reader.next()
    kind = reader.expect("dot", "a register type such as .u32")
    if kind.text[1:] not in TYPES and kind.text != ".pred":
        hint = "such as .u32, .s64, .b16, .f32 or .pred"
        raise InputError(f"`{shorten(kind.text)}` is not a register type", reader.span(kind), hint)
    while True:
        name, token = reader.register()
        if token.text in declarations.variables:
            raise InputError(f"`{name}` is a variable already", reader.span(token), f"write the register as %{name}")
        names = [name]
        declared.registers.add(name)
        if reader.accept("<"):
            count, _ = reader.count("a number of registers", 1 << 16)
            reader.expect(">", "`>`")
            names = [f"{name}{number}" for number in range(count if kind.text == ".pred" else 0)]
        if kind.text == ".pred":
            declared.registers.update(names)
            declared.predicates.update(names)
            if len(declared.predicates) > MAX_PREDICATES:
                raise InputError(f"more than {MAX_PREDICATES:,} predicates in a thread", reader.span(token))
        if reader.accept(",") is None:
            break
    reader.expect(";", "`;` after the registers")
