"""What can be said of a whole test before any instruction is lowered: constant registers, elements that matter.

In: LitmusTest. Out: constants of a thread, and for every variable the element indices that anybody looks at. A bulk
copy moves kilobytes, of which a test looks at a few elements; the others behave alike, so that copying only these
(and the first element of every copy) loses no outcome that the test can ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memmodel.isa.memory import element_bytes
from memmodel.litmus.syntax import (
    And,
    Compare,
    Condition,
    Group,
    Imm,
    Instruction,
    LitmusTest,
    LocValue,
    Mem,
    Not,
    Operand,
    Or,
    Pair,
    Reg,
    Sym,
    Term,
    Thread,
    Variable,
)

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
    copies: list[tuple[str, int, str, int, int]] = []
    for thread in test.threads:
        for item in instructions(thread):
            if item.mnemonic.startswith(BULK):
                copies += _copy(item, variables)
                continue
            for operand in item.operands:
                _mention(operand, _moved(item), variables, found)
    for term in (*test.shown, *_terms(test.condition)):
        if isinstance(term, LocValue):
            found[_root(variables, term.name).name].add(term.index)
    _close(found, copies)
    return {name: frozenset(indices) for name, indices in found.items()}


def _close(found: dict[str, set[int]], copies: list[tuple[str, int, str, int, int]]) -> None:
    """An element matters if the element that it is copied to, or from, does."""
    grown = True
    while grown:
        grown = False
        for target, to, source, origin, count in copies:
            wanted = {0} | {i - to for i in found[target]} | {i - origin for i in found[source]}
            for k in wanted:
                if 0 <= k < count and not (to + k in found[target] and origin + k in found[source]):
                    found[target].add(to + k)
                    found[source].add(origin + k)
                    grown = True


def _copy(item: Instruction, variables: Mapping[str, Variable]) -> list[tuple[str, int, str, int, int]]:
    """(target, first index, source, first index, elements) of a bulk copy between two variables that it names."""
    if len(item.operands) < 3 or ".tensor." in item.mnemonic:
        return _tensor_copy(item, variables)
    first, second, size = item.operands[:3]
    ends = [operand for operand in (first, second) if isinstance(operand, Mem) and isinstance(operand.base, Sym)]
    if len(ends) < 2 or not isinstance(size, Imm):
        return []
    target, source = (_root(variables, end.base.name) for end in ends)
    unit = element_bytes(source)
    count = min(max(size.value // unit, 0), len(source.init))
    return [(target.name, ends[0].offset // element_bytes(target), source.name, ends[1].offset // unit, count)]


def _tensor_copy(item: Instruction, variables: Mapping[str, Variable]) -> list[tuple[str, int, str, int, int]]:
    """The same for a tensor copy: an element of the shared tile for each element of the box."""
    groups = [operand for operand in item.operands if isinstance(operand, Group) and operand.bracketed]
    tiles = [operand for operand in item.operands if isinstance(operand, Mem) and isinstance(operand.base, Sym)]
    if not groups or not tiles or not isinstance(groups[0].items[0], Sym):
        return []
    descriptor = variables.get(groups[0].items[0].name)
    tile = _root(variables, tiles[0].base.name)
    if descriptor is None or descriptor.tensormap is None:
        return []
    data = variables[descriptor.tensormap]
    first = tiles[0].offset // element_bytes(tile)
    coordinates = [part.value for part in _coordinates(groups[0]) if isinstance(part, Imm)]
    offsets = box_offsets(descriptor, data)
    base = linear(descriptor, data, coordinates) if coordinates else 0
    return [(tile.name, first + k, data.name, base + at, 1) for k, at in enumerate(offsets)]


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


def _mention(operand: Operand, count: int, variables: Mapping[str, Variable], found: dict[str, set[int]]) -> None:
    if isinstance(operand, Sym) and operand.name in variables:
        found[_root(variables, operand.name).name].add(0)
    if not isinstance(operand, Mem):
        return
    if isinstance(operand.base, Sym):
        if operand.base.name in variables:
            root = _root(variables, operand.base.name)
            first = operand.offset // element_bytes(root)
            found[root.name] |= {i for i in range(first, first + count) if 0 <= i < len(root.init)}
        return
    for name, indices in found.items():  # whatever the register points to, an offset counts from it
        root = variables[name]
        first = operand.offset // element_bytes(root)
        indices |= {i for i in range(first, first + count) if 0 <= i < len(root.init)}


def _moved(item: Instruction) -> int:
    """How many elements a vector access names."""
    return next((int(part[1:]) for part in item.parts if part in ("v2", "v4", "v8")), 1)


def _root(variables: Mapping[str, Variable], name: str) -> Variable:
    variable = variables[name]
    while variable.alias_of is not None:
        variable = variables[variable.alias_of]
    return variable


def _terms(condition: Condition) -> Iterator[Term]:
    pending = [condition]
    while pending:
        node = pending.pop()
        if isinstance(node, Compare):
            yield node.left
            yield node.right
        elif isinstance(node, And | Or):
            pending.extend(node.items)
        elif isinstance(node, Not):
            pending.append(node.item)
