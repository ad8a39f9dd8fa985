"""Cells and their values as people read them.

In: AddressSpace, Cell. Out: text. Settled here: an instance has its CTA in its name where there are several of it, and
its cluster, grid and GPU where the CTA's number does not tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.memory.bytes import Cell, Instance, spell_bytes
from memmodel.program.addresses import AddressSpace, element_type

_FEW_ELEMENTS = 4
"""More elements of a cell than this are not written out."""


def spell_cell(space: AddressSpace, cell: Cell, name: str | None = None) -> str:
    """A cell under the name of a variable (its own, or an alias), with its CTA where several have an instance of it.

    A multimem address, which names several, follows it.
    """
    text = spell_bytes(cell.instance, cell.first, cell.size)
    if name is not None and space.root(name).multimem:
        return f"{text} ({name})"
    if name is not None and name != cell.instance.name:
        text = name + text.removeprefix(cell.instance.name)
    return text + spell_owner(cell.instance, space.instances)


def spell_owner(instance: Instance, instances: Sequence[Instance]) -> str:
    """Whose instance of a variable it is: nothing for the only one, `@cta0`, or `@cta0,cluster1` and so on.

    Its CTA or thread is named only where others have the same name.
    """
    others = [_facets(other) for other in instances if other.name == instance.name and other != instance]
    text = ""
    for number, (word, value) in enumerate(_facets(instance)):
        if not others:
            break
        left = [facets for facets in others if facets[number][1] == value]
        if number == 0 or len(left) < len(others):
            text += f"{',' if text else '@'}{word}{value}"
        others = left
    return text


def _facets(instance: Instance) -> tuple[tuple[str, object], ...]:
    """The CTA of an instance, its cluster, grid and GPU; a number that the test leaves out is None."""
    if instance.owner is None:
        return (("cta", None), ("cluster", None), ("grid", None), ("gpu", None))
    gpu, cluster_id, cta = instance.owner
    assert isinstance(cluster_id, tuple)
    grid = cluster_id[2] if cluster_id[1:2] == ("grid",) else 0
    cluster = None if "cta" in cluster_id else cluster_id[-1]
    return (("cta", cta), ("cluster", cluster), ("grid", grid), ("gpu", gpu))


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
