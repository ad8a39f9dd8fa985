"""Operands as they are written: one grammar for litmus tests and compiled modules.

In: a Cursor at an operand. Out: an `Operand`. Settled here: vectors, memory and tensor operands, negations, pairs. What
a name or a number stands for is settled by the reader of the file (`OperandReader.named`, `number`, …).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from memmodel.errors import InputError
from memmodel.ptx.lexer import Cursor, Token
from memmodel.ptx.operands import Imm, Mem, Negated, Operand, Reg, Sym, TensorOperand, Vector

MAX_DEPTH = 8
MAX_ITEMS = 512

AnyCursor = TypeVar("AnyCursor", bound=Cursor)


class OperandReader(ABC, Generic[AnyCursor]):
    """Reads operands at a cursor."""

    def __init__(self, cursor: AnyCursor) -> None:
        self.cursor = cursor

    # ---- what the kind of file settles -----------------------------------------------------------------------

    @abstractmethod
    def named(self) -> Operand:
        """What a name, at which the cursor stands, is as an operand."""

    @abstractmethod
    def number(self) -> Operand:
        """The number at the cursor."""

    @abstractmethod
    def parenthesized(self, depth: int) -> Operand:
        """The operand at an opening parenthesis."""

    @abstractmethod
    def predicate(self) -> Reg:
        """The register of a negated predicate."""

    @abstractmethod
    def pair(self, first: Operand) -> Operand:
        """`first|second`, the cursor standing at the bar."""

    @abstractmethod
    def base(self) -> Reg | Sym | Imm:
        """What an address begins with."""

    @abstractmethod
    def offset(self) -> int:
        """The bytes that are added to the base of an address; 0 if none are written."""

    def pairs_at(self, depth: int) -> bool:
        """True where a bar makes a pair of results."""
        return True

    # ---- the grammar -----------------------------------------------------------------------------------------

    def operand(self, depth: int = 0) -> Operand:
        """One operand. Raises InputError."""
        first = self._simple(depth)
        return self.pair(first) if self.cursor.token.kind == "|" and self.pairs_at(depth) else first

    def items(self, depth: int) -> tuple[Operand, ...]:
        """Operands with commas between them."""
        if depth >= MAX_DEPTH:
            raise InputError(f"operands nest deeper than {MAX_DEPTH}", self.cursor.here())
        items = [self.operand(depth + 1)]
        while self.cursor.accept(","):
            items.append(self.operand(depth + 1))
            if len(items) > MAX_ITEMS:
                raise InputError(f"more than {MAX_ITEMS} operands", self.cursor.here())
        return tuple(items)

    def _simple(self, depth: int) -> Operand:
        cursor, token = self.cursor, self.cursor.token
        match token.kind:
            case "name":
                return self.named()
            case "number" | "-" | "~":
                return self.number()
            case "(":
                return self.parenthesized(depth)
            case "[":
                return self._bracketed(depth)
            case "{":
                cursor.next()
                items = self.items(depth)
                last = cursor.expect("}", "`,` or `}`")
                return Vector(items, cursor.span(token, last))
            case "!":
                cursor.next()
                register = self.predicate()
                return Negated(register, cursor.span(token, self._last()))
        raise cursor.wanted("an operand")

    def _bracketed(self, depth: int) -> Mem | TensorOperand:
        """`[base]`, `[base+offset]`, or a tensor operand `[map, {c0, c1}]`."""
        cursor = self.cursor
        first = cursor.next()
        base = self.base()
        offset = self.offset()
        rest = self.items(depth) if cursor.accept(",") else ()
        last = cursor.expect("]", "`,` or `]`" if rest else "`]`", "write [x], [x+4] or [%rd1]")
        span = cursor.span(first, last)
        return TensorOperand(base, rest, offset, span) if rest else Mem(base, offset, span)

    def _last(self) -> Token:
        return self.cursor.tokens[self.cursor.at - 1]
