"""What accesses do: regions become footprints, footprints become events on cells.

In: a step that reads or writes, the place where it is executed. Out: memory events, one for each cell of each scalar
operation, and the values that go to registers. An access whose address an execution decides has events for each place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memmodel.base.labels import Access
from memmodel.base.logic import FALSE
from memmodel.base.points import Range
from memmodel.errors import TooLarge
from memmodel.events.builder import Builder, CurrentStep
from memmodel.events.graph import MemoryEvent
from memmodel.events.values import NO_DEPS, ZERO, Cases, Deps, Value, joined, merge_deps, piece, select, typed
from memmodel.memory.bytes import BadFootprint, Cell, Extent, Filler, Footprint, Gap
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


@dataclass(frozen=True, slots=True)
class Origin:
    """Which part of its instruction makes an event; `issue`: of an asynchronous instruction."""

    part: int = 0
    issue: int | None = None
    tracks: frozenset[Track] = frozenset()


ITSELF = Origin()
"""The origin of the events of an instruction that is not asynchronous."""


def targets(
    build: Builder, current: CurrentStep, region: Region, runs: int, registers: dict[str, Value] | None = None
) -> tuple[list[AccessTarget], list[tuple[str, int]], Deps]:
    """What a region may mean if `runs`: footprints, bad addresses with their formulas, and what that depends on."""
    choices, deps = build.choices(current, region_exprs(region), runs, registers)
    good: dict[Footprint, int] = {}
    bad: dict[str, int] = {}
    place = current.thread.place
    for numbers, when in choices:
        start = start_of(region, numbers, build.space, place)
        if start is not None:
            build.knowledge.starts.update((start,))
        footprint = resolve(region, numbers, build.space, place, build.knowledge.starts)
        if isinstance(footprint, BadFootprint):
            bad[footprint.text] = build.logic.either(bad.get(footprint.text, FALSE), when)
        else:
            good[footprint] = build.logic.either(good.get(footprint, FALSE), when)
    return [AccessTarget(footprint, when) for footprint, when in good.items()], list(bad.items()), deps


def read(build: Builder, current: CurrentStep, op: Read) -> None:
    """A read of the scalars of a region into registers."""
    good, bad, deps = targets(build, current, op.region, current.runs)
    options: list[tuple[int, list[Value]]] = []
    current.state.operations = {}
    for target in good:
        data, operations = reads(build, current, op.label, target, deps)
        current.state.operations[target.footprint] = operations
        kind = op.type or build.space.declared_type(target.footprint.extents[0])
        size = kind.width // 8 if op.at is not None else target.footprint.scalar or target.footprint.size
        starts = op.at or range(0, len(op.registers) * size, size)
        values = [in_register(build, value_of(build, data, first, size), size, kind) for first in starts]
        options.append((target.when, values))
    for reason, when in bad:
        build.fault(current, reason, when, deps)
    for register, value in into_registers(build, op.registers, options):
        build.assign(current, register, value)


def into_registers(
    build: Builder, registers: Sequence[str | None], options: Sequence[tuple[int, Sequence[Value]]]
) -> Iterator[tuple[str, Value]]:
    """The value of each register; `options`: the values of all of them, each under a formula."""
    for k, register in enumerate(registers):
        if register is not None:
            yield register, select(build.logic, [(when, values[k]) for when, values in options]) if options else ZERO


def write(build: Builder, current: CurrentStep, op: Write) -> None:
    """A write of scalars to a region, if its condition holds."""
    good, bad, deps = targets(build, current, op.region, current.runs)
    condition, more = build.nonzero(current, op.when)
    values = [build.value(current, value) for value in op.values]
    for target in good:
        size = target.footprint.scalar or target.footprint.size // len(values)
        operations = current.state.operations.get(target.footprint, ()) if op.rmw else ()
        target = AccessTarget(target.footprint, build.logic.both(target.when, condition))
        writes(build, current, op.label, target, scalars(build, values, size), deps, more=more, operations=operations)
    for reason, when in bad:
        build.fault(current, reason, build.logic.both(when, condition), deps)
    if op.when is None or condition != FALSE:
        for loop in current.spins:
            wrote = current.state.wrote.get(loop, FALSE)
            current.state.wrote[loop] = build.logic.either(wrote, build.logic.both(current.runs, condition))


def emit(build: Builder, current: CurrentStep, op: Emit) -> None:
    """An event without accesses, with the range that it names. A range outside every object is left out."""
    if op.address is None:
        build.plain(current, op.label, current.runs, {})
        return
    choices, deps = build.choices(current, (op.address,), current.runs)
    place = current.thread.place
    for (address,), when in choices:
        extent: Extent | BadFootprint
        if op.columns:
            extent = build.space.find_columns(address, op.columns, place.cta_id)
        else:
            region = TensorMapAt(op.address, Window.GENERIC)
            footprint = resolve(region, (address,), build.space, place, build.knowledge.starts)
            extent = footprint if isinstance(footprint, BadFootprint) else footprint.extents[0]
        bytes = None if isinstance(extent, BadFootprint) else Range(extent.instance, extent.first, extent.end)
        build.plain(current, op.label, when, deps, range=bytes)


# ---- scalars and cells -----------------------------------------------------------------------------------------------


def reads(
    build: Builder, current: CurrentStep, label: Access, target: AccessTarget, addr: Deps, origin: Origin = ITSELF
) -> tuple[list[Bytes], tuple[int, ...]]:
    """Events that read a footprint; the bytes that they return; the number of each scalar operation."""
    data: list[Bytes] = []
    at = 0
    for stretch in target.footprint.stretches:
        if isinstance(stretch, Gap):
            data.append(Bytes(at, stretch.size, _filler(stretch.filler)))
        at += stretch.size

    def returned(uid: int, at: int, cell: Cell) -> tuple[Value, Deps]:
        value = build.read_value(uid, cell, target.when)
        data.append(Bytes(at, cell.size, value))
        return value, NO_DEPS

    operations = _on_cells(build, current, label, target, addr, origin, (), returned)
    data.sort(key=lambda part: part.first)
    return data, operations


def writes(
    build: Builder,
    current: CurrentStep,
    label: Access,
    target: AccessTarget,
    data: Sequence[Bytes],
    addr: Deps,
    origin: Origin = ITSELF,
    *,
    more: Deps = NO_DEPS,
    operations: Sequence[int] = (),
) -> None:
    """Events that write data to a footprint, if `target.when`. `more`: what they depend on beside the data.

    `operations`: the numbers of their scalar operations, where these are known.
    """
    if target.when == FALSE:
        return

    def written(uid: int, at: int, cell: Cell) -> tuple[Value, Deps]:
        value = value_of(build, data, at, cell.size)
        return value, merge_deps(build.logic, value.deps, more)

    count = len(_on_cells(build, current, label, target, addr, origin, operations, written))
    key = (current.visit, origin.part)
    build.written[key] = max(build.written.get(key, 0), count)


def _on_cells(
    build: Builder,
    current: CurrentStep,
    label: Access,
    target: AccessTarget,
    addr: Deps,
    origin: Origin,
    operations: Sequence[int],
    value_at: Callable[[int, int, Cell], tuple[Value, Deps]],
) -> tuple[int, ...]:
    """One event for each cell of a footprint; the number of each scalar operation.

    `value_at`: the value of an event, and its data dependencies, by its uid, its position in the data, and its cell.
    """
    footprint = target.footprint
    build.touch(footprint, target.when, strong=label.sem is not Sem.WEAK)
    numbers, count, at = list(operations), 0, 0
    for stretch in footprint.stretches:
        if isinstance(stretch, Gap):
            at += stretch.size
            continue
        for cell in build.cells(stretch):
            index = count if footprint.scalar is None else at // footprint.scalar
            while index >= len(numbers):
                numbers.append(build.operation())
            value, data = value_at(len(build.events), at, cell)
            point = build.point(
                current,
                label,
                order=current.visit if origin.issue is None else None,
                operation=numbers[index],
                issue=origin.issue,
                cell=cell,
                name=stretch.name,
                scalar=footprint.scalar,
                shape=footprint.shape,
            )
            build.add(
                MemoryEvent(
                    point=point,
                    runs=target.when,
                    addr=addr,
                    data=data,
                    ctrl=current.control,
                    visit=current.visit,
                    part=origin.part,
                    value=value,
                    tracks=origin.tracks,
                )
            )
            count += 1
            at += cell.size
    return tuple(numbers)


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
    for part in data:
        end = part.first + part.size
        if end <= at or part.first >= first + size:
            continue
        if part.first > at:
            parts.append((ZERO, part.first - at))
            at = part.first
        count = min(end, first + size) - at
        whole = part.first == at and part.size == count
        value = part.value if whole else piece(build.logic, part.value, at - part.first, count, part.size)
        parts.append((value, count))
        at += count
    if at < first + size:
        parts.append((ZERO, first + size - at))
    return joined(build.logic, parts)


def scalars(build: Builder, values: Sequence[Value], size: int) -> list[Bytes]:
    """Values as data: scalars of `size` bytes, one after the other."""
    return [Bytes(k * size, size, piece(build.logic, value, 0, size, size)) for k, value in enumerate(values)]


def in_register(build: Builder, value: Value, size: int, kind: DataType) -> Value:
    """An unsigned number of `size` bytes as a register of a type holds it."""
    return value if kind.kind != "s" and kind.width == size * 8 else typed(build.logic, value, kind)
