"""Where variables live: every instance of every variable gets an integer address, and an address finds its location.

In: LitmusTest. Out: MemoryMap. A location is one element of one instance of a variable that is not an alias; aliases
are other virtual addresses of the same location ("Aliases"). Both engines read this map and nothing of each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.litmus.objects import TENSORMAP_BYTES
from memmodel.litmus.syntax import LitmusTest, Variable, root_of
from memmodel.ptx import Place, Space

STRIDE = 1 << 20
"""Distance between two variables in the address space; a variable is smaller than that."""

DEFAULT_BYTES = 8
"""Element size of an untyped variable (column layout)."""


@dataclass(frozen=True, slots=True)
class Location:
    """One element of one instance: `owner` is the CTA identity for .shared, None otherwise."""

    name: str
    index: int
    owner: tuple[object, ...] | None = None
    space: Space = Space.GENERIC

    def __str__(self) -> str:
        return self.name if self.index == 0 else f"{self.name}[{self.index}]"


@dataclass(frozen=True, slots=True)
class Cell:
    """What an address means: the location, and the virtual address (`vaddr`) it was reached through."""

    location: Location
    vaddr: tuple[str, int]


def element_bytes(variable: Variable) -> int:
    """How far the addresses of neighbouring elements lie apart. Tensor memory is addressed by column, not by byte."""
    if variable.space is Space.TENSOR:
        return 1
    if variable.tensormap is not None:
        return TENSORMAP_BYTES
    return (variable.type.width // 8 if variable.type else DEFAULT_BYTES) or 1


def cta_places(test: LitmusTest) -> tuple[Place, ...]:
    """One place in each CTA of the test, in the order in which instances of a variable lie behind each other."""
    places: dict[tuple[object, ...], Place] = {}
    for thread in test.threads:
        places.setdefault(thread.place.cta_id, thread.place)
    return tuple(places.values())


class MemoryMap:
    """Addresses of a test's variables.

    `address(name, offset, place, cta)` gives the integer address of `name` for a thread at `place`;
    `cell(address)` gives what lies there, or None; `initial` has every location with its initial value. What a tensor
    map holds is the address of the data that it describes, so that a copy through a stale map reads the old data.
    """

    def __init__(self, test: LitmusTest) -> None:
        self._variables: dict[str, Variable] = {v.name: v for v in test.variables}
        self._bases: dict[tuple[str, tuple[object, ...] | None], int] = {}
        self._cells: dict[int, Cell] = {}
        self.initial: dict[Location, int] = {}
        self.bytes_of: dict[str, int] = {}
        self._ctas = cta_places(test)
        number = 0
        for variable in test.variables:
            root = self.root(variable.name)
            size = element_bytes(root)
            self.bytes_of[variable.name] = size
            owners: list[tuple[object, ...] | None] = [None]
            if root.space in (Space.SHARED, Space.TENSOR):
                owners = [p.cta_id for p in self._ctas if root.cta is None or p.cta == root.cta]
            for owner in owners:
                number += 1
                base = number * STRIDE
                self._bases[variable.name, owner] = base
                if root.one_place:
                    self._as_one_place(variable, Location(root.name, 0, owner, root.space), base, size * len(root.init))
                    continue
                for index, value in enumerate(root.init):
                    location = Location(root.name, index, owner, root.space)
                    self._cells[base + index * size] = Cell(location, (self._virtual(variable), index))
                    if variable.alias_of is None:
                        self.initial[location] = value
        for variable in test.variables:
            if variable.tensormap is not None:
                for location in [where for where in self.initial if where.name == variable.name]:
                    self.initial[location] = self._bases[variable.tensormap, None]

    def _as_one_place(self, variable: Variable, location: Location, base: int, size: int) -> None:
        """Every byte of a variable is one location (`memmodel.sizes`)."""
        for offset in range(size):
            self._cells[base + offset] = Cell(location, (self._virtual(variable), 0))
        if variable.alias_of is None:
            self.initial[location] = self.root(variable.name).init[0]

    def root(self, name: str) -> Variable:
        """The variable that `name` is, or is finally an alias of."""
        return root_of(self._variables, name)

    def variable(self, name: str) -> Variable | None:
        return self._variables.get(name)

    def _virtual(self, variable: Variable) -> str:
        """The generic virtual address that a name stands for: a surface of x is reached through x's address."""
        from memmodel.ptx import Proxy

        while variable.alias_of is not None and variable.proxy is not Proxy.GENERIC:
            variable = self._variables[variable.alias_of]
        return variable.name

    def address(self, name: str, offset: int, place: Place, cta: int | None = None) -> int | None:
        """Integer address of `name` + offset bytes for a thread at `place`; None if that instance does not exist."""
        root = self.root(name)
        owner: tuple[object, ...] | None = None
        if root.space in (Space.SHARED, Space.TENSOR):
            target = place.cta_id
            if cta is None and root.cta is not None:
                cta = root.cta
            if cta is not None:
                peers = [p.cta_id for p in self._ctas if p.cta == cta and p.cluster_id == place.cluster_id]
                if not peers:
                    return None
                target = peers[0]
            owner = target
        base = self._bases.get((name, owner))
        return None if base is None else base + offset

    def cell(self, address: int) -> Cell | None:
        """What lies at an address; None when nothing starts there."""
        return self._cells.get(address)

    def find(self, name: str, index: int = 0, cta: int | None = None) -> Location | None:
        """The location that a condition names; for .shared with one instance only, `cta` may be left out."""
        if name not in self._variables:
            return None
        root = self.root(name).name
        index = 0 if self.root(name).one_place else index
        found = [
            where
            for where in self.initial
            if where.name == root
            and where.index == index
            and (cta is None or where.owner is None or where.owner[-1] == cta)
        ]
        return found[0] if len(found) == 1 else None

    def mbarrier_count(self, location: Location) -> int | None:
        """Arrivals a phase of an mbarrier object that its declaration initialises; None for any other location."""
        return self._variables[location.name].mbarrier

    def address_of(self, location: Location) -> int:
        """The integer address of a location through its own name."""
        return self._bases[location.name, location.owner] + location.index * self.bytes_of[location.name]
