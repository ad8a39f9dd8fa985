"""Reads and writes of one thread, with numbers.

In: a step that accesses memory, a run. Out: records. The data of an access is one number: its bytes, little-endian, in
the order of the footprint. Bytes that are not accessed are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.base.points import Range
from memmodel.concrete.meter import MOVE, STEP
from memmodel.concrete.records import AccessRecord, PlainRecord
from memmodel.concrete.state import Run, RunState
from memmodel.memory.bytes import BadFootprint, Extent, Footprint
from memmodel.program.ops import Emit, Read, Write
from memmodel.program.regions import Region, TensorMapAt, region_exprs
from memmodel.program.resolve import resolve, start_of
from memmodel.ptx.vocabulary import DataType, Window

if TYPE_CHECKING:
    from memmodel.concrete.runner import Runner


def locate(runner: Runner, state: RunState, region: Region) -> tuple[Footprint | BadFootprint, int]:
    """The bytes that a region means, and what its place depends on."""
    exprs = region_exprs(region)
    numbers = [runner.value(expr, state) for expr in exprs]
    start = start_of(region, numbers, runner.space, runner.place)
    if start is not None:
        runner.starts.update((start,))
    return resolve(region, numbers, runner.space, runner.place, runner.starts), state.depend(*exprs)


def scalar_size(footprint: Footprint) -> int:
    """Bytes of one scalar of a footprint; all of it if it has none."""
    return footprint.scalar or footprint.size


def in_register(data: int, first: int, size: int, kind: DataType) -> int:
    """Some bytes of the data of a read as a register of a type holds them."""
    return kind.wrap(data >> first * 8 & (1 << size * 8) - 1)


def read(runner: Runner, state: RunState, op: Read, run: Run) -> bool:
    """One successor for each value that a read may return."""
    where, addr = locate(runner, state, op.region)
    if isinstance(where, BadFootprint):
        runner.fault(state, where.text, addr)
        return True
    record = runner.record(AccessRecord, state, op.label, addr=addr, footprint=where)
    kind = op.type or runner.space.declared_type(where.extents[0])
    size = scalar_size(where) if op.at is None else kind.width // 8
    starts = op.at or range(0, len(op.registers) * size, size)
    for data in reversed(run.oracle.read(record.name, where)):
        run.meter.spend(STEP + MOVE * len(op.registers))
        after = state.copy()
        number = after.add(record, data)
        for register, first in zip(op.registers, starts, strict=True):
            if register is not None:
                after.set(register, in_register(data, first, size, kind), after.token(number, first, size))
        runner.leave_step(after)
        run.pending.append(after)
    return False


def write(runner: Runner, state: RunState, op: Write) -> None:
    """A write, unless its `when` is zero."""
    if op.when is not None and not runner.value(op.when, state):
        return
    where, addr = locate(runner, state, op.region)
    if isinstance(where, BadFootprint):
        runner.fault(state, where.text, addr)
        return
    size = where.scalar or where.size // len(op.values)
    record = runner.record(
        AccessRecord,
        state,
        op.label,
        addr=addr,
        footprint=where,
        data=tuple(state.depend(value, op.when) for value in op.values),
        half_of=len(state.records) - 1 if op.rmw else None,
    )
    state.add(record, packed([runner.value(value, state) for value in op.values], size))


def packed(values: list[int], size: int) -> int:
    """Scalars of `size` bytes each as one number."""
    data = 0
    for k, value in enumerate(values):
        data |= (value & (1 << size * 8) - 1) << k * size * 8
    return data


def emitted(runner: Runner, state: RunState, op: Emit) -> PlainRecord:
    """An event without accesses, with the range that it names. A range outside every object is left out."""
    if op.address is None:
        return runner.plain(state, op.label)
    address = runner.value(op.address, state)
    extent: Extent | BadFootprint
    if op.columns:
        extent = runner.space.find_columns(address, op.columns, runner.place.cta_id)
    else:
        whole = resolve(TensorMapAt(op.address, Window.GENERIC), (address,), runner.space, runner.place, runner.starts)
        extent = whole if isinstance(whole, BadFootprint) else whole.extents[0]
    range = None if isinstance(extent, BadFootprint) else Range(extent.instance, extent.first, extent.end)
    return runner.plain(state, op.label, addr=state.depend(op.address), range=range)
