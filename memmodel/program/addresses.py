"""Where variables lie: every instance of every variable has an integer address, and an address finds its instance.

In: LitmusTest. Out: `AddressSpace`. Shared memory is a window of 16 MB for each CTA, those of a cluster one after the
other in order of rank, so that an address is mapped to another CTA by replacing its upper bits, as mapa does. Tensor
memory has its own addresses, lane and column, which mean the same in every CTA. Aliases are addresses of their own for
the instance of their root ("Aliases"). A variable without `.align` is aligned for every access; one with it, no more
than it says.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from memmodel.errors import InputError, TooLarge
from memmodel.litmus.syntax import LitmusTest, LocValue, TensorView, Variable, root_of
from memmodel.memory.bytes import COLUMN_BYTES, BadAddress, BadFootprint, CtaId, Extent, Instance
from memmodel.memory.tensormap import TENSORMAP_BYTES, TensorMap
from memmodel.ptx.vocabulary import UNTYPED, DataType, Place, Proxy, Space, Window

WINDOW_BITS = 24
"""Bits of an address within the shared memory of one CTA."""

FIRST_SHARED = 0x400
"""Where a kernel's shared memory begins in its window; what lies before is the system's."""

FIRST_GLOBAL = 0x10_0000_0000
FIRST_COLUMN = 0x100
LANE_SHIFT = 16
APART = 0x100
"""Bytes, or columns, between two variables that belong to neither."""

LARGE = 0x400
"""No access needs a greater alignment than this."""

WHOLE = -1
"""In place of a number of columns: as many as the variable has."""

PER_CTA = (Space.SHARED, Space.TENSOR)
DEFAULT_BYTES = UNTYPED.width // 8

WINDOW_SPACES = {
    Window.GLOBAL: (Space.GLOBAL, Space.GENERIC),
    Window.CONST: (Space.CONST,),
    Window.PARAM: (Space.PARAM,),
    Window.ANY_PARAM: (Space.PARAM,),
    Window.FUNCTION_PARAM: (),
    Window.LOCAL: (),
    Window.SHARED_CTA: (Space.SHARED,),
    Window.SHARED_CLUSTER: (Space.SHARED,),
    Window.SHARED_OTHER: (Space.SHARED,),
    Window.GENERIC: (Space.GENERIC, Space.GLOBAL, Space.SHARED, Space.CONST, Space.PARAM),
    Window.DATA: (Space.GENERIC, Space.GLOBAL, Space.SHARED),
    Window.DATA_OR_LOCAL: (Space.GENERIC, Space.GLOBAL, Space.SHARED),
    Window.OWN_DATA: (Space.GENERIC, Space.GLOBAL, Space.SHARED),
    Window.MAPS: (Space.GENERIC, Space.GLOBAL, Space.CONST, Space.PARAM),
    Window.READ_ONLY: (Space.GENERIC, Space.GLOBAL, Space.CONST),
    Window.TENSOR: (Space.TENSOR,),
}
"""The memory that the addresses of a window reach."""


def element_bytes(variable: Variable) -> int:
    """Bytes of a declared element; a column of tensor memory counts as four."""
    if variable.space is Space.TENSOR:
        return COLUMN_BYTES
    if variable.maps:
        return TENSORMAP_BYTES
    return (variable.type.width // 8 if variable.type else DEFAULT_BYTES) or 1


def cta_places(test: LitmusTest) -> tuple[Place, ...]:
    """One place in each CTA of the test."""
    places: dict[CtaId, Place] = {}
    for thread in test.threads:
        places.setdefault(thread.place.cta_id, thread.place)
    return tuple(places.values())


@dataclass(frozen=True, slots=True)
class Named:
    """The addresses from `base` to below `end` belong to an instance, under the name of a variable."""

    base: int
    end: int
    instance: Instance
    name: str


@dataclass(frozen=True, slots=True)
class MultimemRange:
    """The addresses from `base` to below `end` point to the same bytes of several variables."""

    base: int
    end: int
    name: str
    targets: tuple[str, ...]


class AddressSpace:
    """Addresses of a test's variables, and what lies at an address."""

    def __init__(self, test: LitmusTest) -> None:
        self._variables: dict[str, Variable] = {v.name: v for v in test.variables}
        self._places = cta_places(test)
        self._owners: dict[str, CtaId] = {thread.name: thread.place.cta_id for thread in test.threads}
        self._windows = _number_ctas(self._places)
        self._bases: dict[tuple[str, CtaId | None], int] = {}
        self._extents: dict[tuple[object, ...], Extent | BadFootprint] = {}
        self.instances: list[Instance] = []
        self._instance: dict[tuple[str, CtaId | None], Instance] = {}
        self._flat: list[Named] = []
        self._multimem: list[MultimemRange] = []
        self._columns: dict[CtaId, list[Named]] = {}
        self._lay_out()

    # ---- laying out --------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Give every variable its place, in the order of the file."""
        shared, flat, column = FIRST_SHARED, FIRST_GLOBAL, FIRST_COLUMN
        for variable in self._variables.values():
            root = self.root(variable.name)
            first = self._variables[root.multimem[0]] if root.multimem else root
            size = element_bytes(first) * first.length
            if root.space is Space.TENSOR:
                self._add(variable, root, size, column)
                column = _round_up(column + root.length + APART, APART)
            elif root.space is Space.SHARED:
                offset = _aligned(shared, variable.align)
                shared = _round_up(offset + size + APART, LARGE)
                if shared > 1 << WINDOW_BITS:
                    hint = "the shared memory of a CTA has 227 KB at most"
                    raise InputError(f"'{variable.name}' does not fit into shared memory", variable.span, hint)
                self._add(variable, root, size, offset)
            else:
                base = _aligned(flat, variable.align)
                flat = _round_up(base + size + APART, LARGE)
                if root.multimem:
                    self._multimem.append(MultimemRange(base, base + size, variable.name, root.multimem))
                    self._bases[variable.name, None] = base
                else:
                    self._add(variable, root, size, base)
        self._flat.sort(key=lambda named: named.base)
        self._starts = [named.base for named in self._flat]

    def _add(self, variable: Variable, root: Variable, size: int, offset: int) -> None:
        owners: list[CtaId | None] = [None]
        if root.space in PER_CTA:
            owners = [p.cta_id for p in self._places if root.cta is None or p.cta == root.cta]
        for owner in owners:
            instance = self._instance.get((root.name, owner))
            if instance is None:
                unit = element_bytes(root)
                instance = Instance(root.name, owner, root.space, size, unit, root.mbarrier)
                self._instance[root.name, owner] = instance
                self.instances.append(instance)
            base = offset
            if root.space is Space.SHARED and owner is not None:
                base += self._windows[owner] << WINDOW_BITS
            self._bases[variable.name, owner] = base
            length = root.length if root.space is Space.TENSOR else size
            named = Named(base, base + length, instance, self._virtual(variable))
            if root.space is Space.TENSOR and owner is not None:
                self._columns.setdefault(owner, []).append(named)
            else:
                self._flat.append(named)

    def _virtual(self, variable: Variable) -> str:
        """The virtual address that a name stands for: a surface of x is reached through x's address; a logical endpoint
        is an address of its own."""
        while variable.alias_of is not None and variable.proxy not in (Proxy.GENERIC, Proxy.FABRIC):
            variable = self._variables[variable.alias_of]
        return variable.name

    # ---- names to addresses -------------------------------------------------------------------------------------

    def root(self, name: str) -> Variable:
        """The variable that `name` is, or is finally an alias of."""
        return root_of(self._variables, name)

    def address(self, name: str, offset: int, place: Place, cta: int | None = None) -> int | None:
        """Integer address of `name` + `offset` for a thread at `place`; None if the name has no instance there.

        `offset` is in bytes; in tensor memory, in columns.
        """
        root = self.root(name)
        owner: CtaId | None = None
        if root.space in PER_CTA:
            owner = place.cta_id if cta is None else self.cta_of_rank(cta, place)
            if owner is None:
                return None
        base = self._bases.get((name, owner))
        return None if base is None else base + offset

    def size(self, name: str) -> int:
        """Bytes of a variable; columns, in tensor memory."""
        root = self.root(name)
        if root.multimem:
            root = self._variables[root.multimem[0]]
        return root.length if root.space is Space.TENSOR else element_bytes(root) * root.length

    def cta_of_rank(self, rank: int, place: Place) -> CtaId | None:
        """The CTA of that number in the cluster of a place; None if no thread of the test is there."""
        return next((p.cta_id for p in self._places if p.cta == rank and p.cluster_id == place.cluster_id), None)

    def cluster_size(self, place: Place) -> int:
        """How many CTAs the cluster of a place has, as far as the test shows it."""
        return 1 + max(p.rank for p in self._places if p.cluster_id == place.cluster_id)

    def window(self, place: Place) -> int:
        """The number of the shared-memory window of a place's CTA."""
        return self._windows[place.cta_id]

    def first_window(self, place: Place) -> int:
        """The number that the window of CTA 0 of a place's cluster has, or would have."""
        return self._windows[place.cta_id] - place.rank

    # ---- addresses to bytes --------------------------------------------------------------------------------------

    def find(self, address: int, size: int, align: int, window: Window, place: Place) -> Extent | BadFootprint:
        """`size` bytes at an address, for a thread at `place` whose instruction names that state space."""
        key = (address, size, align, window, place)
        extent = self._extents.get(key)
        if extent is None:
            extent = self._extents[key] = self._find(address, size, align, window, place)
        return extent

    def _find(self, address: int, size: int, align: int, window: Window, place: Place) -> Extent | BadFootprint:
        position = bisect_right(self._starts, address) - 1
        named = self._flat[position] if position >= 0 else None
        if named is None or address + size > named.end or address >= named.end or size <= 0:
            points = any(multimem.base <= address < multimem.end for multimem in self._multimem)
            return BadFootprint(BadAddress.MULTIMEM if points else BadAddress.OUTSIDE, address)
        instance = named.instance
        if instance.space not in WINDOW_SPACES[window] or not _reaches(instance, window, place):
            return BadFootprint(BadAddress.WINDOW, address)
        if address % align:
            return BadFootprint(BadAddress.MISALIGNED, address)
        return Extent(instance, address - named.base, size, named.name)

    def find_multimem(self, address: int, size: int) -> tuple[Extent, ...] | BadFootprint:
        """`size` bytes in each variable that a multimem address points to."""
        for multimem in self._multimem:
            if multimem.base <= address and address + size <= multimem.end:
                if address % size:
                    return BadFootprint(BadAddress.MISALIGNED, address)
                first, name = address - multimem.base, multimem.name
                return tuple(Extent(self._instance[target, None], first, size, name) for target in multimem.targets)
        return BadFootprint(BadAddress.NOT_MULTIMEM, address)

    def find_columns(self, address: int, count: int, owner: CtaId) -> Extent | BadFootprint:
        """`count` columns of the tensor memory of a CTA, or all of the variable there (WHOLE).

        Raises TooLarge for an address that names a lane.
        """
        if address >> LANE_SHIFT:
            raise TooLarge("lanes of tensor memory are not modelled: a litmus test addresses its columns")
        for named in self._columns.get(owner, ()):
            if count == WHOLE and named.base <= address < named.end:
                return Extent(named.instance, 0, named.instance.size, named.name)
            if named.base <= address and address + count <= named.end and count > 0:
                first = (address - named.base) * COLUMN_BYTES
                return Extent(named.instance, first, count * COLUMN_BYTES, named.name)
        return BadFootprint(BadAddress.OUTSIDE, address)

    def columns_from(self, address: int, owner: CtaId) -> int:
        """How many columns the variable at an address has from there on."""
        ends = (named.end for named in self._columns.get(owner, ()) if named.base <= address < named.end)
        return next(ends, address) - address

    def declared_type(self, extent: Extent) -> DataType:
        """The type that the variable of an extent is declared with."""
        return self.root(extent.instance.name).type or UNTYPED

    # ---- values ----------------------------------------------------------------------------------------------------

    def initial(self, instance: Instance, first: int, size: int) -> int:
        """The initial value of some bytes of an instance, little-endian."""
        variable = self._variables[instance.name]
        unit = instance.unit
        begin, end = first // unit, (first + size - 1) // unit + 1
        mask = (1 << unit * 8) - 1
        values = [self._map(view) for view in variable.maps[begin:end]] or variable.init[begin:end]
        whole = 0
        for index, value in enumerate(values):
            whole |= (value & mask) << index * unit * 8
        return whole >> (first - begin * unit) * 8 & (1 << size * 8) - 1

    def _map(self, view: TensorView) -> int:
        """The number that stands for a declared tensor map."""
        data = self._variables[view.data]
        sizes = view.shape or (data.length,)
        return TensorMap.dense(self._bases[data.name, None], element_bytes(data), sizes, view.box or sizes).pack()

    def term(self, term: LocValue) -> tuple[Extent, DataType]:
        """The element that a condition names, and the type with which it is read.

        Raises InputError if the condition does not name exactly one element.
        """
        root = self.root(term.name)
        owner = term.owner if term.thread is None else self._owners[term.thread]
        instances = [
            instance
            for instance in self.instances
            if instance.name == root.name
            and (term.cta is None or instance.owner is None or instance.owner[-1] == term.cta)
            and owner in (None, instance.owner)
        ]
        if len(instances) != 1 or not 0 <= term.index < root.length:
            hint = "an element beyond the array, or a shared variable with several instances: write x@cta0"
            raise InputError(f"{term.name} does not name one location", term.span, hint)
        unit = instances[0].unit
        return Extent(instances[0], term.index * unit, unit, term.name), element_type(root)


def element_type(variable: Variable) -> DataType:
    """The type with which a condition reads an element."""
    if variable.maps:
        return DataType("b", TENSORMAP_BYTES * 8)
    if variable.space is Space.TENSOR:
        return variable.type or DataType("b", COLUMN_BYTES * 8)
    return variable.type or UNTYPED


def _reaches(instance: Instance, window: Window, place: Place) -> bool:
    """True if shared memory of that CTA is within the window; global and constant memory always is."""
    owner = instance.owner
    if owner is None:
        return True
    if owner == place.cta_id:
        return window is not Window.SHARED_OTHER
    return window not in (Window.SHARED_CTA, Window.OWN_DATA) and owner[1] == place.cluster_id


def _number_ctas(places: Iterable[Place]) -> dict[CtaId, int]:
    """A number for the window of each CTA: those of a cluster follow one another in order of rank."""
    clusters: dict[CtaId, list[Place]] = {}
    for place in places:
        clusters.setdefault(place.cluster_id, []).append(place)
    numbers: dict[CtaId, int] = {}
    first = 0
    for members in clusters.values():
        ranks = [place.rank for place in members]
        size = 1
        while size <= max(ranks):
            size *= 2
        first = _round_up(first, size)
        for place, rank in zip(members, ranks, strict=True):
            numbers[place.cta_id] = first + rank
        first += size
    return numbers


def _round_up(at: int, multiple: int) -> int:
    return -(-at // multiple) * multiple


def _aligned(at: int, align: int | None) -> int:
    """An address from `at` (a multiple of LARGE) on that is aligned as declared, and no more."""
    return at + align if align is not None and align < LARGE else at
