"""What accesses do: regions become footprints, footprints become events on cells.

In: a step that reads or writes, the place where it is executed. Out: memory events, one for each cell of each scalar
operation, and the values that go to registers. An access whose address an execution decides has events for each place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memmodel.base.labels import Access
from memmodel.base.logic import FALSE
from memmodel.base.points import Range
from memmodel.errors import TooLarge
from memmodel.events.builder import Builder, Here
from memmodel.events.graph import MemoryEvent
from memmodel.events.values import ZERO, Cases, Deps, Value, joined, merge_deps, piece, select, typed
from memmodel.memory.bytes import BadFootprint, Cell, Filler, Footprint, Gap
from memmodel.program.ops import Emit, Read, Track, Write
from memmodel.program.regions import Region, TensorMapAt, region_exprs
from memmodel.program.resolve import resolve, start_of
from memmodel.ptx.vocabulary import DataType, Sem, Window


@dataclass(frozen=True, slots=True)
class AccessTarget:
    """The bytes that a region means under a formula."""

    footprint: Footprint
    when: int


@dataclass(frozen=True, slots=True)
class Bytes:
    """Some bytes of data: `first` and `size` count from its beginning."""

    first: int
    size: int
    value: Value


def targets(
    build: Builder, here: Here, region: Region, runs: int, registers: dict[str, Value] | None = None
) -> tuple[list[AccessTarget], list[tuple[str, int]], Deps]:
    """What a region may mean if `runs`: footprints, bad addresses with their formulas, and what that depends on."""
    found, deps = build.choices(here, region_exprs(region), runs, registers)
    good: dict[Footprint, int] = {}
    bad: dict[str, int] = {}
    for numbers, when in found:
        start = start_of(region, numbers, build.space, here.thread.place)
        if start is not None:
            build.knowledge.starts.update((start,))
        meant = resolve(region, numbers, build.space, here.thread.place, build.knowledge.starts)
        if isinstance(meant, BadFootprint):
            bad[meant.text] = build.logic.either(bad.get(meant.text, FALSE), when)
        else:
            good[meant] = build.logic.either(good.get(meant, FALSE), when)
    return [AccessTarget(footprint, when) for footprint, when in good.items()], list(bad.items()), deps


def read(build: Builder, here: Here, op: Read) -> None:
    """A read of the scalars of a region into registers."""
    meant, bad, deps = targets(build, here, op.region, here.runs)
    options: list[tuple[int, list[Value]]] = []
    here.state.operations = {}
    for target in meant:
        data, operations = reads(build, here, op.label, target, deps, part=0)
        here.state.operations[target.footprint] = operations
        kind = op.type or build.space.declared_type(target.footprint.extents[0])
        size = kind.width // 8 if op.at is not None else target.footprint.scalar or target.footprint.size
        starts = op.at or range(0, len(op.registers) * size, size)
        values = [in_register(build, value_of(build, data, first, size), size, kind) for first in starts]
        options.append((target.when, values))
    for why, when in bad:
        build.fault(here, why, when, deps)
    for k, register in enumerate(op.registers):
        if register is not None:
            value = select(build.logic, [(when, values[k]) for when, values in options]) if options else ZERO
            build.assign(here, register, value)


def write(build: Builder, here: Here, op: Write) -> None:
    """A write of scalars to a region, if its condition holds."""
    meant, bad, deps = targets(build, here, op.region, here.runs)
    condition, more = build.nonzero(here, op.when)
    values = [build.value(here, value) for value in op.values]
    for target in meant:
        size = target.footprint.scalar or target.footprint.size // len(values)
        data = [Bytes(k * size, size, piece(build.logic, one, 0, size, size)) for k, one in enumerate(values)]
        target = AccessTarget(target.footprint, build.logic.both(target.when, condition))
        known = here.state.operations.get(target.footprint) if op.rmw else None
        writes(build, here, op.label, target, data, deps, part=0, more=more, operations=known)
    for why, when in bad:
        build.fault(here, why, build.logic.both(when, condition), deps)
    if op.when is None or condition != FALSE:
        for loop in here.spins:
            wrote = here.state.wrote.get(loop, FALSE)
            here.state.wrote[loop] = build.logic.either(wrote, build.logic.both(here.runs, condition))


def emit(build: Builder, here: Here, op: Emit) -> None:
    """An event that is all in its label, with the range that it names. A range outside every object is none."""
    if op.address is None:
        build.plain(here, op.label, here.runs, {})
        return
    found, deps = build.choices(here, (op.address,), here.runs)
    for (address,), when in found:
        place = here.thread.place
        if op.columns:
            extent = build.space.find_columns(address, op.columns, place.cta_id)
        else:
            meant = resolve(
                TensorMapAt(op.address, Window.GENERIC), (address,), build.space, place, build.knowledge.starts
            )
            extent = meant.extents[0] if isinstance(meant, Footprint) else meant
        bytes = None if isinstance(extent, BadFootprint) else Range(extent.instance, extent.first, extent.end)
        build.plain(here, op.label, when, deps, bytes)


# ---- scalars and cells -----------------------------------------------------------------------------------------------


def reads(
    build: Builder,
    here: Here,
    label: Access,
    target: AccessTarget,
    addr: Deps,
    *,
    part: int,
    issue: int | None = None,
    operations: Sequence[int] | None = None,
    tracks: frozenset[Track] = frozenset(),
) -> tuple[list[Bytes], tuple[int, ...]]:
    """Events that read a footprint; the bytes that they return; the number of each scalar operation."""
    data: list[Bytes] = []
    size = target.footprint.scalar
    numbers: list[int] = list(operations or ())
    for at, index, cell, name in _pieces(build, label, target, data):
        while index >= len(numbers):
            numbers.append(build.operation())
        point = build.point(
            here,
            label,
            order=None if issue is not None else here.visit,
            operation=numbers[index],
            issue=issue,
            cell=cell,
            name=name,
            scalar=size,
            shape=target.footprint.shape,
        )
        value = build.read_value(point.event, cell, target.when)
        event = MemoryEvent(
            point=point,
            runs=target.when,
            addr=addr,
            ctrl=here.control,
            visit=here.visit,
            part=part,
            value=value,
            tracks=tracks,
        )
        build.add(event)
        data.append(Bytes(at, cell.size, value))
    data.sort(key=lambda one: one.first)
    return data, tuple(numbers)


def writes(
    build: Builder,
    here: Here,
    label: Access,
    target: AccessTarget,
    data: Sequence[Bytes],
    addr: Deps,
    *,
    part: int,
    more: Deps | None = None,
    issue: int | None = None,
    operations: Sequence[int] | None = None,
    tracks: frozenset[Track] = frozenset(),
) -> tuple[int, ...]:
    """Events that write data to a footprint, if `target.when`; the number of each scalar operation."""
    numbers: list[int] = list(operations or ())
    if target.when == FALSE:
        return tuple(numbers)
    size = target.footprint.scalar
    for at, index, cell, name in _pieces(build, label, target, []):
        while index >= len(numbers):
            numbers.append(build.operation())
        value = value_of(build, data, at, cell.size)
        point = build.point(
            here,
            label,
            order=None if issue is not None else here.visit,
            operation=numbers[index],
            issue=issue,
            cell=cell,
            name=name,
            scalar=size,
            shape=target.footprint.shape,
        )
        event = MemoryEvent(
            point=point,
            runs=target.when,
            addr=addr,
            data=merge_deps(build.logic, value.deps, more or {}),
            ctrl=here.control,
            visit=here.visit,
            part=part,
            value=value,
            tracks=tracks,
        )
        build.add(event)
    scalars = build.written.get((here.visit, part), 0)
    build.written[here.visit, part] = max(scalars, len(numbers))
    return tuple(numbers)


def _pieces(build: Builder, label: Access, target: AccessTarget, gaps: list[Bytes]) -> list[tuple[int, int, Cell, str]]:
    """The cells of a footprint: (position in the data, number of the scalar operation, cell, name of the variable).

    Adds to `gaps` what stands for bytes that are not accessed.
    """
    footprint = target.footprint
    build.touch(footprint, target.when, strong=label.sem is not Sem.WEAK)
    found: list[tuple[int, int, Cell, str]] = []
    at = 0
    for stretch in footprint.stretches:
        if isinstance(stretch, Gap):
            gaps.append(Bytes(at, stretch.size, _filler(stretch.filler)))
            at += stretch.size
            continue
        for cell in build.cells(stretch):
            index = len(found) if footprint.scalar is None else at // footprint.scalar
            found.append((at, index, cell, stretch.name))
            at += cell.size
    return found


def _filler(filler: Filler) -> Value:
    if filler is Filler.ZERO:
        return ZERO
    return Value(None, {}, (), _indeterminate)


def _indeterminate(_: object) -> Cases:
    raise TooLarge("something depends on bytes that .ignore_oob leaves indeterminate")


def value_of(build: Builder, data: Sequence[Bytes], first: int, size: int) -> Value:
    """Bytes first … first+size of some data, as an unsigned number; what the data do not have is 0."""
    parts: list[tuple[Value, int]] = []
    at = first
    for one in data:
        end = one.first + one.size
        if end <= at or one.first >= first + size:
            continue
        if one.first > at:
            parts.append((ZERO, one.first - at))
            at = one.first
        count = min(end, first + size) - at
        whole = one.first == at and one.size == count
        parts.append((one.value if whole else piece(build.logic, one.value, at - one.first, count, one.size), count))
        at += count
    if at < first + size:
        parts.append((ZERO, first + size - at))
    return joined(build.logic, parts)


def in_register(build: Builder, value: Value, size: int, kind: DataType) -> Value:
    """An unsigned number of so many bytes as a register of a type holds it."""
    return value if kind.kind != "s" and kind.width == size * 8 else typed(build.logic, value, kind)
