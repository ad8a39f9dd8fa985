"""Terms put together from pieces of others: vectors, shifts, masks, bytes of memory.

In: terms, places in bits. Out: terms. A value that is taken apart and put together again is the value, however that is
done (a .b64 goes through shfl in two halves).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from memmodel.kernel.machine.values.terms import Terms
from memmodel.ptx.vocabulary import DataType

WIDEST = 128
"""Bits of the widest register."""

MOST_PIECES = 16
PIECES = f"a value of more than {MOST_PIECES} pieces"
"""Pieces of a term; one of more is a term of its own."""


MOVES = ("cvt", "shl", "shr", "and", "or", "xor", "prmt")
"""Operations that may only move bits."""


class Piece(NamedTuple):
    """Some bits of a term: `bits` of them, from the bit `first` on."""

    term: int
    first: int
    bits: int


class Slices:
    """Pieces of the terms of a run."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._pieces: dict[int, tuple[Piece, ...]] = {}
        self._widths = bytearray()  # of each term, since a run has millions

    def has(self, term: int, bits: int) -> int:
        """Note that a term has at most `bits` bits."""
        return self.have([term], bits)[0]

    def have(self, row: list[int], bits: int) -> list[int]:
        """Note that these terms have at most `bits` bits."""
        widths, most = self._widths, max(row, default=-1)
        if most >= len(widths):
            widths.extend(bytes([WIDEST]) * (2 * most + 64 - len(widths)))
        for term in row:
            if bits < widths[term]:
                widths[term] = bits
        return row

    def width(self, term: int) -> int:
        """The bits that a term has at most."""
        return self._widths[term] if term < len(self._widths) else WIDEST

    def low(self, row: list[int], bits: int) -> list[int]:
        """The lowest bits of terms, as numbers."""
        if all(self.width(term) <= bits for term in row):
            return row
        return [self.part(term, 0, bits) for term in row]

    def extended(self, term: int, bits: int, wider: int) -> int:
        """A signed number of `bits` bits in a wider one."""
        known = self._terms.known(term)
        if known is not None:
            return self._terms.number(DataType("s", bits).wrap(known) & (1 << wider) - 1)
        if self.width(term) < bits:
            return term
        return self.has(self._terms.of("extended", bits, wider, term), wider)

    def part(self, term: int, first: int, bits: int) -> int:
        """Bits of a term as a number."""
        if first == 0 and self.width(term) <= bits:
            return term
        known = self._terms.known(term)
        if known is not None:
            return self._terms.number(known >> first & (1 << bits) - 1)
        return self.joined(self._cut(term, first, bits))

    def joined(self, pieces: Iterable[Piece]) -> int:
        """Pieces one above the other, the lowest first."""
        terms, joined = self._terms, list[Piece]()
        for piece in pieces:
            known = terms.known(piece.term)
            if known is not None:
                piece = Piece(terms.number(known >> piece.first & (1 << piece.bits) - 1), 0, piece.bits)
            last = joined[-1] if joined else None
            low = None if last is None else terms.known(last.term)
            if last is not None and low is not None and known is not None:
                low |= (terms.known(piece.term) or 0) << last.bits
                joined[-1] = Piece(terms.number(low), 0, last.bits + piece.bits)
            elif last is not None and known is None and (last.term, last.first + last.bits) == piece[:2]:
                joined[-1] = Piece(last.term, last.first, last.bits + piece.bits)
            elif piece.bits > 0:
                joined.append(piece)
        top = terms.known(joined[-1].term) if joined else 0
        if top is not None and joined:
            joined[-1] = joined[-1]._replace(bits=top.bit_length())
            joined = joined[: None if top else -1]
        if not joined:
            return terms.number(0)
        term, first, bits = joined[0]
        if len(joined) == 1 and first == 0 and (terms.known(term) is not None or bits >= self.width(term)):
            return term
        bits = sum(piece.bits for piece in joined)
        if len(joined) > MOST_PIECES:
            return self.has(terms.over_limit(PIECES, "pieces", *joined), bits)
        whole = self.has(terms.of("pieces", *joined), bits)
        self._pieces[whole] = tuple(joined)
        return whole

    def _cut(self, term: int, first: int, bits: int) -> list[Piece]:
        """The pieces that make up some bits of a term, and zeros above them."""
        known = self._terms.known(term)
        if known is not None:
            return [Piece(self._terms.number(known >> first & (1 << bits) - 1), 0, bits)]
        whole = self._pieces.get(term) or (Piece(term, 0, self.width(term)),)
        at, pieces = 0, list[Piece]()
        for piece in whole:
            low, high = max(first, at), min(first + bits, at + piece.bits)
            if low < high:
                pieces.append(Piece(piece.term, piece.first + low - at, high - low))
            at += piece.bits
        missing = bits - sum(piece.bits for piece in pieces)
        return [*pieces, Piece(self._terms.number(0), 0, missing)] if missing else pieces

    # ---- operations ------------------------------------------------------------------------------------------

    def packed(self, parts: Sequence[int], bits: int) -> int:
        """The elements of a vector, each so wide, as one value."""
        return self.joined(piece for part in parts for piece in self._cut(part, 0, bits))

    def turned(self, rows: Sequence[int]) -> list[int]:
        """A transposed matrix of 8 × 8 elements of 16 bits: of each row the lanes of a warp have four bytes, in their
        order, two elements each ("ldmatrix", "movmatrix").
        """
        halves = [[self.part(row, 16 * half, 16) for half in range(2)] for row in rows]
        return [
            self.packed([halves[4 * (lane % 4 * 2 + n) + lane // 8][lane // 4 % 2] for n in range(2)], 16)
            for lane in range(len(rows))
        ]

    def computed(self, op: str, type: DataType, operands: Sequence[int]) -> int | None:
        """An operation that only moves bits; None if it does something else."""
        if op == "cvt":
            return self.part(operands[0], 0, type.width)
        numbers, width = [self._terms.known(operand) for operand in operands], type.width
        last = numbers[-1] if numbers else None
        if op == "shl" and last is not None:
            by = min(last, width)
            return self.joined([Piece(self._terms.number(0), 0, by), *self._cut(operands[0], 0, width - by)])
        if op == "shr" and last is not None and not type.signed:
            return self.part(operands[0], min(last, width), width - min(last, width))
        if op == "and":
            for operand, mask in ((operands[0], last), (operands[1], numbers[0])):
                if mask is not None:
                    return self._masked(operand, mask, width)
        if op in ("or", "xor"):
            return self._merged(operands[0], operands[1], width)
        if op == "prmt" and last is not None:
            places = [last >> 4 * n & 15 for n in range(4)]
            if all(place < 8 for place in places):
                return self.joined(x for place in places for x in self._cut(operands[place // 4], place % 4 * 8, 8))
        return None

    def _masked(self, term: int, mask: int, width: int) -> int | None:
        """The bits of a term that a number has too."""
        pieces, at = list[Piece](), 0
        while at < width and len(pieces) <= MOST_PIECES:
            bit, begin = mask >> at & 1, at
            while at < width and mask >> at & 1 == bit:
                at += 1
            pieces += self._cut(term, begin, at - begin) if bit else [Piece(self._terms.number(0), 0, at - begin)]
        return self.joined(pieces) if at == width else None

    def _merged(self, first: int, second: int, width: int) -> int | None:
        """Two terms of which everywhere at least one is zero."""
        cuts = sorted({0, width, *self._edges(first), *self._edges(second)})
        cuts = [at for at in cuts if at <= width]
        pieces, zero = list[Piece](), self._terms.number(0)
        for low, high in pairwise(cuts):
            parts = [self._cut(term, low, high - low) for term in (first, second)]
            kept = [part for part in parts if any(piece.term != zero for piece in part)]
            if len(kept) > 1:
                return None
            pieces += kept[0] if kept else [Piece(zero, 0, high - low)]
        return self.joined(pieces)

    def _edges(self, term: int) -> list[int]:
        """Where pieces of a term begin and end."""
        at, edges = 0, list[int]()
        for piece in self._pieces.get(term, (Piece(term, 0, self.width(term)),)):
            at += piece.bits
            edges.append(at)
        return edges
