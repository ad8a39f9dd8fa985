"""Bytes of memory that lie together, with what is known of them.

In: nothing. Out: `Block`; `Alignments`, what the variables in one are aligned to.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memmodel.memory.bytes import Instance
from memmodel.program.fields import NOTHING, Bits

REMEMBERED = 1 << 26
"""Bytes of memory whose contents are held; those of larger memory are unknown."""

AT_ONCE = 1 << 20
"""Bytes of memory that are held at once; those of larger memory as far as they are written. A buffer of which no size
is given has REMEMBERED bytes, and a kernel writes few of them."""


class AlignedVariable(NamedTuple):
    """Where a variable begins and ends in a block, its `.align`, its name."""

    first: int
    end: int
    align: int
    name: str


class Alignments:
    """What variables in a block are aligned to, and the accesses that are aligned by the layout of the run alone.

    `trusted`: sentences that such accesses take for granted, by variable, with the alignment of the access.
    """

    def __init__(self, variables: Sequence[AlignedVariable], trusted: dict[str, tuple[int, str]]) -> None:
        self._variables = sorted(variables)
        self._trusted = trusted
        self.least = min(variable.align for variable in variables)
        """No access that needs less is aligned by chance."""

    def named(self, at: int) -> tuple[str, int] | None:
        """The variable that has an offset, and how many bytes from its beginning; None if there is none."""
        having = (variable for variable in self._variables if variable.first <= at < variable.end)
        return next(((variable.name, at - variable.first) for variable in having), None)

    def trust(self, at: int, align: int) -> None:
        """An access at an offset is aligned as it has to be."""
        number = bisect.bisect_right(self._variables, at, key=lambda variable: variable.first)
        variable = self._variables[number - 1]
        if not number or at >= variable.end or align <= variable.align:
            return
        most, _ = self._trusted.get(variable.name, (0, ""))
        if align > most:
            behind = (variable.first - at) % align
            where = f"{behind} bytes behind a multiple of {align}" if behind else f"at a multiple of {align}"
            self._trusted[variable.name] = align, f"{variable.name}, of .align {variable.align}, lies {where}"


@dataclass(slots=True, eq=False)
class Block:
    """Bytes that lie together. `known`: 1 for each byte whose value is known; None while none of them is. `aligned`:
    what the variables in it are aligned to; None if it has none.
    """

    instance: Instance
    address: int
    size: int
    data: bytearray = field(default_factory=bytearray, repr=False)
    known: bytearray | None = field(default=None, repr=False)
    aligned: Alignments | None = field(default=None, repr=False)

    def trust(self, at: int, align: int) -> None:
        """An access at an offset is aligned as it has to be; note it if no `.align` promises that."""
        if self.aligned is not None and align > self.aligned.least:
            self.aligned.trust(at, align)

    def load(self, at: int, size: int) -> int | None:
        """The bytes at an offset as a number; None if one of them is not known."""
        if self.known is None or at + size > len(self.known) or self.known.find(0, at, at + size) >= 0:
            return None
        return int.from_bytes(self.data[at : at + size], "little")

    def bits(self, at: int, size: int) -> Bits:
        """What is known of the bytes at an offset as a number."""
        if self.known is None:
            return NOTHING
        mask = int.from_bytes(bytes(255 * known for known in self.known[at : at + size]), "little")
        return Bits(mask, int.from_bytes(self.data[at : at + size], "little") & mask)

    def store_bits(self, at: int, size: int, value: Bits) -> None:
        """The same of a number of which single bits are known, perhaps all or none."""
        whole = value.number(8 * size)
        if whole is not None or not value.known:
            self.store(at, size, whole)
            return
        for number in range(size):
            self.store(at + number, 1, value.part(8 * number, 8).number(8))

    def store(self, at: int, size: int, value: int | None) -> None:
        if value is None:
            self.forget(at, size)
            return
        self.write(at, (value & (1 << size * 8) - 1).to_bytes(size, "little"))

    def write(self, at: int, content: bytes) -> None:
        """Known bytes at an offset. What is stored in very large memory is not remembered."""
        known = self._room(at + len(content))
        if known is not None:
            self.data[at : at + len(content)] = content
            known[at : at + len(content)] = b"\1" * len(content)

    def put(self, at: int, content: bytes, known: bytes) -> None:
        """Bytes at an offset, of which some are known."""
        if any(known):
            room = self._room(at + len(content))
            if room is not None:
                self.data[at : at + len(content)] = content
                room[at : at + len(content)] = known
                return
        self.forget(at, len(content))

    def forget(self, at: int, size: int) -> None:
        """Bytes that are no longer known."""
        if self.known is not None and at < len(self.known):
            end = min(at + size, len(self.known))
            self.known[at:end] = bytes(end - at)

    def copy(self, at: int, source: Block, begin: int, size: int) -> None:
        if source.known is None:
            self.forget(at, size)
            return
        known = self._room(at + size)
        if known is not None:
            self.data[at : at + size] = source.data[begin : begin + size].ljust(size, b"\0")
            known[at : at + size] = source.known[begin : begin + size].ljust(size, b"\0")

    def _room(self, end: int) -> bytearray | None:
        """The marks of the bytes that are known, grown to reach up to `end`; None if the memory is too large to be
        remembered.
        """
        held = 0 if self.known is None else len(self.known)
        if self.size <= REMEMBERED and (self.known is None or held < end):
            whole = self.size if self.size <= AT_ONCE else min(self.size, max(end, 2 * held, AT_ONCE))
            self.known = bytearray() if self.known is None else self.known
            for content in (self.data, self.known):
                content.extend(bytes(whole - held))
        return self.known
