"""Bytes of memory that lie together, with what is known of them.

In: nothing. Out: `Block`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.memory.bytes import Instance
from memmodel.program.fields import NOTHING, Bits

REMEMBERED = 1 << 26
"""Bytes of memory whose contents are held; those of larger memory are unknown."""


@dataclass(slots=True, eq=False)
class Block:
    """Bytes that lie together. `known`: 1 for each byte whose value is known; None while none of them is."""

    instance: Instance
    address: int
    size: int
    data: bytearray = field(default_factory=bytearray, repr=False)
    known: bytearray | None = field(default=None, repr=False)

    def load(self, at: int, size: int) -> int | None:
        """The bytes at an offset as a number; None if one of them is not known."""
        if self.known is None or self.known.find(0, at, at + size) >= 0:
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
        known = self._room() if self.known is None else self.known
        if known is not None:
            self.data[at : at + len(content)] = content
            known[at : at + len(content)] = b"\1" * len(content)

    def put(self, at: int, content: bytes, known: bytes) -> None:
        """Bytes at an offset, of which some are known."""
        if any(known):
            room = self._room() if self.known is None else self.known
            if room is not None:
                self.data[at : at + len(content)] = content
                room[at : at + len(content)] = known
                return
        self.forget(at, len(content))

    def forget(self, at: int, size: int) -> None:
        """Bytes that are no longer known."""
        if self.known is not None:
            self.known[at : at + size] = bytes(size)

    def copy(self, at: int, source: Block, begin: int, size: int) -> None:
        if source.known is None:
            self.forget(at, size)
            return
        known = self._room() if self.known is None else self.known
        if known is not None:
            self.data[at : at + size] = source.data[begin : begin + size]
            known[at : at + size] = source.known[begin : begin + size]

    def _room(self) -> bytearray | None:
        """Room for contents, of which none is known yet; None if the memory is too large."""
        if self.size <= REMEMBERED:
            self.data, self.known = bytearray(self.size), bytearray(self.size)
        return self.known
