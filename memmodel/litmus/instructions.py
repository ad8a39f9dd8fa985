"""One instruction as spelled, in either layout: guard, mnemonic, operands, and the place of a thread.

In: Reader, the names that are variables or labels. Out: Instruction, Label, Place. Settled here: what a bare name is
(declared: Sym; else a register), and one operand order for CTA barriers. Which operand is memory is not settled here.
"""

from __future__ import annotations

from collections.abc import Container

from memmodel.errors import InputError, suggestion
from memmodel.litmus.lexer import MAX_PLACE, Reader, listed
from memmodel.litmus.reals import at_real, read_real
from memmodel.litmus.syntax import Guard, Instruction, Layout
from memmodel.ptx.lexer import Token, shorten
from memmodel.ptx.operand_reader import OperandReader
from memmodel.ptx.operands import Blank, Imm, Operand, Pair, Reg, Sym
from memmodel.ptx.vocabulary import Place
from memmodel.source import Span

MAX_THREADS = 256
MAX_INSTRUCTIONS = 2_000
"""Instructions of all threads together."""

MAX_OPERANDS = 512

_PLACE = ("gpu", "grid", "cluster", "cta", "warp")
_ENDS = frozenset({";", "end"})


def is_cta_barrier(mnemonic: str) -> bool:
    """True for bar/barrier[.cta].{sync,arrive,red}, whose operands are kept as (instance, resource, count)."""
    first, _, rest = mnemonic.partition(".")
    return first in ("bar", "barrier") and rest.removeprefix("cta.").partition(".")[0] in ("sync", "arrive", "red")


def is_reduction(mnemonic: str) -> bool:
    """True for the CTA barrier with a destination in front and a predicate at the end."""
    return "red" in mnemonic.split(".")


def read_place(reader: Reader) -> Place:
    """`@ cta 0, cluster 0, grid 0, gpu 0, warp 0` in any order; what is left out has its default."""
    if reader.accept("@") is None:
        return Place()
    levels: dict[str, int] = {}
    while True:
        token = reader.expect("name", listed(_PLACE))
        if token.text not in _PLACE:
            hint = suggestion(token.text, _PLACE) or f"known: {listed(_PLACE)}"
            raise InputError(f"unknown level `{shorten(token.text)}` in a thread's place", reader.span(token), hint)
        if token.text in levels:
            raise InputError(f"`{token.text}` is given twice", reader.span(token))
        levels[token.text] = reader.count(f"the number of a {token.text}", MAX_PLACE)[0]
        if reader.accept(",") is None:
            return Place(**levels)


def read_instruction(reader: Reader, names: Container[str], layout: Layout) -> Instruction:
    """One instruction, up to its `;` or the end of its cell (left for the caller). Raises InputError."""
    first = reader.token
    guard = _guard(reader)
    mnemonic = reader.expect("name", "an instruction")
    if mnemonic.text[0] == "%":
        hint = "an instruction comes first, as in `mov.u32 %r0, 1`"
        raise InputError(f"`{shorten(mnemonic.text)}` is a register, not an instruction", reader.span(mnemonic), hint)
    operands: list[Operand] = []
    if reader.token.kind not in _ENDS and not _begins_line(reader, mnemonic):
        grammar = LitmusOperands(reader, names)
        operands.append(grammar.operand())
        while reader.accept(","):
            operands.append(grammar.operand())
            if len(operands) > MAX_OPERANDS:
                raise InputError(f"more than {MAX_OPERANDS} operands", reader.span(mnemonic))
    last = reader.tokens[reader.at - 1]
    if reader.token.kind not in _ENDS:
        if "\n" in reader.source.text[last.end : reader.token.start]:
            raise InputError("`;` is missing after this instruction", Span(reader.source, first.start, last.end))
        offset = reader.token.kind == "+" or reader.token.text[0] == "-"
        repair = "an address with an offset stands in brackets: [x+4]" if offset else None
        raise reader.wanted("`,` or `;` after the operand" if operands else "an operand or `;`", repair)
    span = Span(reader.source, first.start, last.end)
    if is_cta_barrier(mnemonic.text):
        operands = _three(operands, is_reduction(mnemonic.text), layout, Span(reader.source, last.end, last.end))
    return Instruction(mnemonic.text, tuple(operands), guard, span, reader.span(mnemonic))


def _begins_line(reader: Reader, mnemonic: Token) -> bool:
    """True if another instruction follows at once: operands may stand on a line of their own, a bare name may not."""
    token = reader.token
    bare = token.kind == "@" or (token.kind == "name" and token.text[0] not in "%_")
    return bare and "\n" in reader.source.text[mnemonic.end : token.start]


def _guard(reader: Reader) -> Guard | None:
    at = reader.accept("@")
    if at is None:
        return None
    negated = reader.accept("!") is not None
    register, last = reader.register()
    return Guard(register, negated, reader.span(at, last))


def _three(operands: list[Operand], reduction: bool, layout: Layout, end: Span) -> list[Operand]:
    """Barrier operands as (instance, resource, count), blanks for those left out; any other number stays for the table.

    Two operands are the trap: the table dialect means (instance, resource), PTX means (barrier, thread count).
    """
    front, back = (operands[:1], operands[-1:]) if reduction else ([], [])
    middle = operands[len(front) : len(operands) - len(back)]
    blank = Blank(end)
    if len(operands) < len(front) + len(back) or not 1 <= len(middle) <= 3:
        return operands
    if len(middle) == 2:
        middle = [middle[0], middle[1], blank] if layout is Layout.COLUMNS else [middle[0], blank, middle[1]]
    middle += [blank] * (3 - len(middle))
    return [*front, *middle, *back]


class LitmusOperands(OperandReader[Reader]):
    """Operands of litmus tests. `names`: what is declared; any other name is a register."""

    def __init__(self, cursor: Reader, names: Container[str]) -> None:
        super().__init__(cursor)
        self._names = names

    def named(self) -> Operand:
        token = self.cursor.token
        operand = self._name()
        if isinstance(operand, Sym) and (offset := self.offset()):
            last = self.cursor.tokens[self.cursor.at - 1]
            return Sym(operand.name, operand.cta, self.cursor.span(token, last), offset)
        return operand

    def _name(self) -> Reg | Sym | Blank:
        reader = self.cursor
        token = reader.next()
        text = token.text
        if reader.token.kind == "@":
            reader.next()
            if text not in self._names:
                hint = "only a .shared variable has instances"
                raise InputError(f"`{shorten(text)}` is not a variable", reader.span(token), hint)
            cta, last = reader.cta_number()
            return Sym(text, cta, reader.span(token, last))
        span = reader.span(token)
        if text == "_":
            return Blank(span)
        return Sym(text, None, span) if text in self._names else Reg(reader.register_name(token), span)

    def number(self) -> Operand:
        if self.cursor.token.kind != "number":
            raise self.cursor.wanted("an operand")
        if at_real(self.cursor):
            return read_real(self.cursor)
        value, token = self.cursor.number()
        return Imm(value, self.cursor.span(token))

    def parenthesized(self, depth: int) -> Operand:
        """A pair of results: a table needs parentheses around it, since a bar ends a cell."""
        reader = self.cursor
        if depth:
            raise reader.wanted("an operand")
        token = reader.next()
        if reader.token.kind != "name":
            raise reader.wanted("a register", "a pair of results is written (%r0|%p)")
        pair = self.pair(self._name())
        last = reader.expect(")", "`)`")
        return Pair(pair.first, pair.second, reader.span(token, last))

    def pairs_at(self, depth: int) -> bool:
        return depth == 0

    def pair(self, first: Operand) -> Pair:
        reader = self.cursor
        reader.expect("|", "`|`", "a pair of results is written (%r0|%p)")
        token = reader.expect("name", "a predicate register")
        span = reader.span(token)
        second = Blank(span) if token.text == "_" else Reg(reader.register_name(token), span)
        if isinstance(first, Sym):
            hint = f"write %{first.name} for a register"
            raise InputError(f"`{shorten(first.name)}` is not a register", first.span, hint)
        assert first is not None
        return Pair(first, second, first.span.to(span))

    def predicate(self) -> Reg:
        name, token = self.cursor.register()
        return Reg(name, self.cursor.span(token))

    def base(self) -> Reg | Sym | Imm:
        if self.cursor.token.kind != "name":
            raise self.cursor.wanted("a variable or a register that holds an address", "write [x], [x+4] or [%rd1]")
        base = self._name()
        if isinstance(base, Blank):
            raise InputError("`_` is not an address", base.span)
        return base

    def offset(self) -> int:
        """`+4` or `-4` after a name; the sign may belong to the number."""
        reader = self.cursor
        minus = reader.accept("-")
        if minus or reader.accept("+") or (reader.token.kind == "number" and reader.token.text[0] == "-"):
            return reader.number("an offset in bytes", bits=63)[0] * (-1 if minus else 1)
        return 0
