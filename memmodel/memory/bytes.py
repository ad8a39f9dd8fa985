"""The bytes of memory: instances of variables, and what an access touches of them.

In: nothing. Out: `Instance`, `Cell`, `Extent`, `Footprint`. Offsets and sizes are in bytes. Tensor memory is counted as
if every column of an allocation had four bytes ("Memory Operations", docs/executions.md, "Memory").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from memmodel.ptx.vocabulary import Space

COLUMN_BYTES = 4
"""Bytes that stand for one column of tensor memory."""

CtaId = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a variable that is not an alias.

    `owner`: the CTA that it belongs to, for shared and tensor memory. `unit`: bytes of a declared element.
    `arrivals`: for a variable declared as mbarrier objects, the count that they start with.
    """

    name: str
    owner: CtaId | None = None
    space: Space = field(default=Space.GENERIC, compare=False)
    size: int = field(default=0, compare=False)
    unit: int = field(default=1, compare=False)
    arrivals: int | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Cell:
    """Bytes that no access of the test divides: what `loc` means in cat. Shown as its elements, `s[2]`."""

    instance: Instance
    first: int
    size: int

    def __hash__(self) -> int:
        return hash(self.instance.name) ^ self.first

    @property
    def end(self) -> int:
        return self.first + self.size

    def __str__(self) -> str:
        return spell_bytes(self.instance, self.first, self.size)


def spell_bytes(instance: Instance, first: int, size: int) -> str:
    """`x`, `s[2]`, `s[2..5]`, or for bytes that are no whole elements `s+3` and `s+3..6`."""
    name, unit = instance.name, instance.unit
    if first % unit or size % unit:
        return f"{name}+{first}" if size == 1 else f"{name}+{first}..{first + size - 1}"
    index, count = first // unit, size // unit
    if count > 1:
        return f"{name}[{index}..{index + count - 1}]" if instance.size > size else name
    return f"{name}[{index}]" if index else name


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes first … first+size of an instance, reached through the virtual address of a variable `name`."""

    instance: Instance
    first: int
    size: int
    name: str

    def __hash__(self) -> int:
        return hash(self.name) ^ self.first

    @property
    def end(self) -> int:
        return self.first + self.size


class Filler(Enum):
    """What stands where an access touches no memory: zeros that are read, bytes that are dropped, or anything."""

    ZERO = "zero"
    DROPPED = "dropped"
    INDETERMINATE = "indeterminate"


@dataclass(frozen=True, slots=True)
class Gap:
    """`size` bytes of an access that touch no memory."""

    size: int
    filler: Filler


Stretch = Extent | Gap


@dataclass(frozen=True, slots=True)
class Footprint:
    """The bytes that an access touches, in the order of its data.

    `scalar`: the size of the scalar operations that it consists of; None if it names none, so that it counts as
    pieces of whatever size another access has ("Overlap", "Memory Operations on Vector Data Types"). `shape`: of the
    accumulator of a matrix operation, what its instruction descriptor says of the shape.
    """

    stretches: tuple[Stretch, ...]
    scalar: int | None = None
    shape: int | None = None

    def __hash__(self) -> int:
        return hash(self.stretches[0]) if self.stretches else 0

    @property
    def size(self) -> int:
        return sum(stretch.size for stretch in self.stretches)

    @property
    def extents(self) -> tuple[Extent, ...]:
        return tuple(stretch for stretch in self.stretches if isinstance(stretch, Extent))

    def placed(self) -> Iterator[tuple[int, Extent]]:
        """The extents, each with its position in the data."""
        position = 0
        for stretch in self.stretches:
            if isinstance(stretch, Extent):
                yield position, stretch
            position += stretch.size


class BadAddress(Enum):
    """Why an address cannot be accessed. Its value is said to people."""

    OUTSIDE = "outside every object"
    MISALIGNED = "misaligned for its access"
    WINDOW = "outside the window of the state space that the instruction names"
    NO_OBJECT = "no tensor map with as many dimensions as the instruction"
    MULTIMEM = "a multimem address, which multimem instructions alone access"
    NOT_MULTIMEM = "no multimem address"


@dataclass(frozen=True, slots=True)
class BadFootprint:
    """An access that cannot be made: `address` is the one that is bad."""

    why: BadAddress
    address: int

    @property
    def text(self) -> str:
        what = "what was read as a tensor map" if self.why is BadAddress.NO_OBJECT else f"address {self.address:#x}"
        return f"{what} is {self.why.value}"
