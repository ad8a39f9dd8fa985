"""What can be said of a whole test before any instruction is lowered: constant registers, elements that matter.

In: LitmusTest. Out: constants of a thread, and for every variable the element indices that anybody looks at. A bulk
copy moves kilobytes, of which a test looks at a few elements; the others behave alike, so that copying only these
(and the first element of every copy) loses no outcome that the test can ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memmodel.isa.memory import element_bytes
from memmodel.litmus.syntax import (
    Group,
    Imm,
    Instruction,
    LitmusTest,
    LocValue,
    Mem,
    Operand,
    Pair,
    Reg,
    Sym,
    Thread,
    Variable,
    root_of,
    terms_of,
)

Copy = tuple[str, str, list[tuple[int, int]]]
"""Two variables and the elements of them that a copy pairs, the pair of its first element first."""

BULK = ("cp.async.bulk.", "cp.reduce.async.bulk.")
"""Instructions that move more elements than a test looks at."""


def instructions(thread: Thread) -> Iterator[Instruction]:
    """The instructions of a thread, labels left out."""
    return (item for item in thread.body if isinstance(item, Instruction))


def constants(test: LitmusTest, thread: Thread) -> dict[str, int]:
    """Registers that keep one known value: initialised or set by one unguarded mov of a number, and nothing else."""
    found = {
        item.register: item.value
        for item in test.registers
        if item.thread == thread.name and isinstance(item.value, int)
    }
    written: dict[str, int] = {item.register: 1 for item in test.registers if item.thread == thread.name}
    for item in instructions(thread):
        for name in _targets(item):
            written[name] = written.get(name, 0) + 1
        if item.parts[0] == "mov" and item.guard is None and len(item.operands) == 2:
            target, value = item.operands
            if isinstance(target, Reg) and isinstance(value, Imm):
                found[target.name] = value.value
    return {name: value for name, value in found.items() if written[name] == 1}


def _targets(item: Instruction) -> Iterator[str]:
    """Every register that the instruction might assign: its operands up to the first one in brackets."""
    for operand in item.operands[:2]:
        if isinstance(operand, Mem):
            return
        items: tuple[Operand, ...] = (operand,)
        if isinstance(operand, Group):
            items = operand.items
        elif isinstance(operand, Pair):
            items = (operand.first, operand.second)
        yield from (register.name for register in items if isinstance(register, Reg))
        if item.parts[0] != "mbarrier":
            return


def changed(test: LitmusTest, name: str) -> bool:
    """Can some instruction change this tensor map? It stays as declared if only tensor copies and fences name it."""
    harmless = ("cp.async.bulk.tensor.", "cp.reduce.async.bulk.tensor.", "cp.async.bulk.prefetch.", "fence.")
    return any(
        _names(operand, name)
        for thread in test.threads
        for item in instructions(thread)
        if not item.mnemonic.startswith(harmless)
        for operand in item.operands
    )


def _names(operand: Operand, name: str) -> bool:
    base = operand.base if isinstance(operand, Mem) else operand
    return isinstance(base, Sym) and base.name == name


def interest(test: LitmusTest) -> Mapping[str, frozenset[int]]:
    """For every variable that is no alias, the indices of elements that matter; empty if nothing is copied in bulk."""
    if not any(item.mnemonic.startswith(BULK) for thread in test.threads for item in instructions(thread)):
        return {}
    variables = {variable.name: variable for variable in test.variables}
    found: dict[str, set[int]] = {name: {0} for name, variable in variables.items() if variable.alias_of is None}
    copies: list[Copy] = []
    for thread in test.threads:
        for item in instructions(thread):
            if item.mnemonic.startswith(BULK):
                copies += [copy for copy in (_copy(item, variables),) if copy is not None]
                continue
            for operand in item.operands:
                _mention(operand, item, variables, found)
    for term in (*test.shown, *terms_of(test.condition)):
        if isinstance(term, LocValue):
            found[root_of(variables, term.name).name].add(term.index)
    _close(found, copies)
    return {name: frozenset(indices) for name, indices in found.items()}


def _close(found: dict[str, set[int]], copies: list[Copy]) -> None:
    """An element matters if the element that it is copied to, or from, does; so does the first of each copy."""
    grown = True
    while grown:
        grown = False
        for target, source, pairs in copies:
            for k, (to, origin) in enumerate(pairs):
                ends = (to in found[target]) + (origin in found[source])
                if ends == 1 or (k == 0 and ends == 0):
                    found[target].add(to)
                    found[source].add(origin)
                    grown = True


def _copy(item: Instruction, variables: Mapping[str, Variable]) -> Copy | None:
    """A bulk copy between two variables that it names; None if it names them not, or not by constants."""
    if len(item.operands) < 3 or ".tensor." in item.mnemonic:
        return _tensor_copy(item, variables)
    first, second, size = item.operands[:3]
    ends = [operand for operand in (first, second) if isinstance(operand, Mem) and isinstance(operand.base, Sym)]
    if len(ends) < 2 or not isinstance(size, Imm):
        return None
    target, source = (root_of(variables, end.base.name) for end in ends)
    unit = element_bytes(source)
    count = min(max(size.value // unit, 0), len(source.init))
    to, origin = ends[0].offset // element_bytes(target), ends[1].offset // unit
    return target.name, source.name, [(to + k, origin + k) for k in range(count)]


def _tensor_copy(item: Instruction, variables: Mapping[str, Variable]) -> Copy | None:
    """The same for a tensor copy in either direction: the shared tile, and the box in the data."""
    groups = [operand for operand in item.operands if isinstance(operand, Group) and operand.bracketed]
    tiles = [operand for operand in item.operands if isinstance(operand, Mem) and isinstance(operand.base, Sym)]
    if not groups or not tiles or not isinstance(groups[0].items[0], Sym):
        return None
    descriptor = variables.get(groups[0].items[0].name)
    tile = root_of(variables, tiles[0].base.name)
    if descriptor is None or descriptor.tensormap is None:
        return None
    data = variables[descriptor.tensormap]
    first = tiles[0].offset // element_bytes(tile)
    given = _coordinates(groups[0])
    coordinates = [part.value for part in given if isinstance(part, Imm)]
    if len(coordinates) != len(given):
        return None
    base = linear(descriptor, data, coordinates)
    return tile.name, data.name, [(first + k, base + at) for k, at in enumerate(box_offsets(descriptor, data))]


def _coordinates(group: Group) -> tuple[Operand, ...]:
    last = group.items[-1]
    return last.items if isinstance(last, Group) else ()


def box_offsets(descriptor: Variable, data: Variable) -> list[int]:
    """For every element of a box, in the order of the shared tile, how far it lies from the first one in the data."""
    sizes = descriptor.box or (len(data.init),)
    offsets, pitch = [0], 1
    for size, extent in zip(sizes, descriptor.shape or (len(data.init),), strict=True):
        offsets = [at + step * pitch for step in range(size) for at in offsets]
        pitch *= extent
    return offsets


def linear(descriptor: Variable, data: Variable, coordinates: list[int]) -> int:
    """The index in the data of the element at these coordinates, innermost first."""
    index, pitch = 0, 1
    for coordinate, extent in zip(coordinates, descriptor.shape or (len(data.init),), strict=False):
        index += coordinate * pitch
        pitch *= extent
    return index


def _mention(
    operand: Operand, item: Instruction, variables: Mapping[str, Variable], found: dict[str, set[int]]
) -> None:
    if isinstance(operand, Sym) and operand.name in variables:
        found[root_of(variables, operand.name).name].add(0)
    if not isinstance(operand, Mem):
        return
    if isinstance(operand.base, Sym):
        if operand.base.name in variables:
            root = root_of(variables, operand.base.name)
            found[root.name] |= _elements(root, operand.offset, item)
        return
    for name, indices in found.items():  # whatever the register points to, an offset counts from it
        indices |= _elements(variables[name], operand.offset, item)


def _elements(variable: Variable, offset: int, item: Instruction) -> set[int]:
    """The elements that an instruction accesses from an offset on: one, those of a vector, or those of a cp.async."""
    unit = element_bytes(variable)
    count = next((int(part[1:]) for part in item.parts if part in ("v2", "v4", "v8")), 1)
    if item.mnemonic.startswith("cp.async.c") and len(item.operands) > 2 and isinstance(item.operands[2], Imm):
        count = max(1, item.operands[2].value // unit)
    return {i for i in range(offset // unit, offset // unit + min(count, 16)) if 0 <= i < len(variable.init)}
