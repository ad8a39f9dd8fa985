"""Cells and their values as people read them.

In: AddressSpace, Cell. Out: text. Settled here: an instance has its CTA in its name where there are several of it.
"""

from __future__ import annotations

from memmodel.memory.bytes import Cell, spell_bytes
from memmodel.program.addresses import AddressSpace, element_type

_FEW_ELEMENTS = 4
"""More elements of a cell than this are not written out."""


def spell_cell(space: AddressSpace, cell: Cell, name: str | None = None) -> str:
    """A cell under the name of a variable (its own, or an alias), with its CTA where several have an instance of it.

    A multimem address, which names several, stands behind it.
    """
    text = spell_bytes(cell.instance, cell.first, cell.size)
    if name is not None and space.root(name).multimem:
        return f"{text} ({name})"
    if name is not None and name != cell.instance.name:
        text = name + text.removeprefix(cell.instance.name)
    several = sum(one.name == cell.instance.name for one in space.instances) > 1
    return f"{text}@cta{cell.instance.owner[-1]}" if several and cell.instance.owner is not None else text


def spell_value(space: AddressSpace, cell: Cell, value: int) -> str:
    """The value of a cell as its variable's type has it: one number, or its elements."""
    kind = element_type(space.root(cell.instance.name))
    unit = cell.instance.unit
    if cell.size == unit and cell.first % unit == 0:
        return "a tensor map" if kind.width > 128 else str(kind.wrap(value))
    if cell.size % unit or cell.first % unit:
        return str(value) if cell.size <= 2 else f"{value:#x}"
    count = cell.size // unit
    elements = [kind.wrap(value >> k * unit * 8) for k in range(min(count, _FEW_ELEMENTS + 1))]
    if value == 0:
        return "all 0"
    shown = ", ".join(str(element) for element in elements[:_FEW_ELEMENTS])
    return f"{{{shown}}}" if count <= _FEW_ELEMENTS else f"{{{shown}, ...}}"
