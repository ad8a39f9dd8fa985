"""Asynchronous instructions of one thread, with numbers: the issue, then its parts in order.

In: an IssueAsync step, a run. Out: records. An instruction with a bad address does nothing; one whose tensor map says a
bad address has read that map, and does nothing more (docs/executions.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from memmodel.base.labels import Action
from memmodel.concrete.accessing import locate, packed, scalar_size
from memmodel.concrete.meter import STEP
from memmodel.concrete.records import AccessRecord, ObjectRecord, Record
from memmodel.concrete.state import Issuing, Run, RunState
from memmodel.concrete.waiting import tracked
from memmodel.memory.bytes import BadFootprint, Cell, Footprint
from memmodel.program.arith import apply
from memmodel.program.expressions import registers_of
from memmodel.program.ops import (
    AsyncRead,
    AsyncWrite,
    Gather,
    IssueAsync,
    Respond,
    Scatter,
    SignalPart,
    Update,
)
from memmodel.program.regions import Region, region_exprs
from memmodel.program.uses import part_expressions
from memmodel.ptx.vocabulary import UNTYPED

if TYPE_CHECKING:
    from memmodel.base.labels import Access, Label
    from memmodel.concrete.runner import Runner

R = TypeVar("R", bound=Record)


def issue(runner: Runner, state: RunState, op: IssueAsync, run: Run) -> bool:
    """The instruction, or as much of it as is left after the last of its reads; False if states go on from there."""
    if state.issuing is None:
        inner = _inner(op)
        if not _all_good(runner, state, [part.region for part in op.parts if not _uses(part.region, inner)]):
            return True
        addr, data = _dependencies(state, op, inner)
        record = runner.plain(state, op.label, addr=addr, data=data)
        state.issuing = Issuing(op, state.add(record))
    while state.ended is None and len(state.issuing.records) < len(op.parts):
        part = op.parts[len(state.issuing.records)]
        if (
            isinstance(part, Scatter | Update | AsyncWrite)
            and part.when is not None
            and not runner.value(part.when, state)
        ):
            state.issuing.records.append(None)
            continue
        if isinstance(part, Gather | AsyncRead | Update) or (isinstance(part, Respond) and part.like is None):
            return _ask(runner, state, part, run)
        if isinstance(part, SignalPart):
            _signal(runner, state, part)
        else:
            _write(runner, state, part)
    state.issuing = None
    return True


def _inner(op: IssueAsync) -> frozenset[str]:
    """The temporaries that parts of the instruction read into."""
    return frozenset(name for part in op.parts if isinstance(part, AsyncRead) for name in part.registers if name)


def _uses(region: Region, names: frozenset[str]) -> bool:
    return any(registers_of(expr) & names for expr in region_exprs(region))


def _all_good(runner: Runner, state: RunState, regions: list[Region]) -> bool:
    """True if all these regions are in memory. If not, the thread stops here."""
    for region in regions:
        where, addr = locate(runner, state, region)
        if isinstance(where, BadFootprint):
            runner.fault(state, where.text, addr)
            return False
    return True


def _dependencies(state: RunState, op: IssueAsync, inner: frozenset[str]) -> tuple[int, int]:
    """The addr and data dependencies of an issue: those of its parts, except on what other parts read."""
    addr = data = 0
    for part in op.parts:
        places = set(region_exprs(part.region))
        for expr in part_expressions(part):
            mask = 0
            for name in registers_of(expr) - inner:
                mask |= state.depends.get(name, 0)
            if expr in places:
                addr |= mask
            else:
                data |= mask
    return addr, data


# ---- parts -----------------------------------------------------------------------------------------------------------


def _record(runner: Runner, kind: Callable[..., R], state: RunState, label: Label, /, **more: Any) -> R:
    """A record of the next part of the instruction. `more`: the fields that only this kind of record has."""
    issuing = state.issuing
    assert issuing is not None
    return kind(
        name=runner.name(state, len(issuing.records)),
        label=label,
        order=None,
        instruction=state.instructions,
        issue=issuing.issue,
        ctrl=state.control(),
        **more,
    )


def _accessing(
    runner: Runner, state: RunState, label: Access, footprint: Footprint, addr: int, **more: Any
) -> AccessRecord:
    """The record of an access to a footprint."""
    return _record(runner, AccessRecord, state, label, footprint=footprint, addr=addr, **more)


def _ask(runner: Runner, state: RunState, part: Gather | AsyncRead | Update | Respond, run: Run) -> bool:
    """A part that gets an answer: one successor for each."""
    assert state.issuing is not None
    if isinstance(part, Respond):
        name = runner.name(state, len(state.issuing.records))
        for success in reversed(run.oracle.success(name)):
            after = state.copy()
            _respond(runner, after, part, part.success if success else 0)
            run.pending.append(after)
        return False
    where, addr = locate(runner, state, part.region)
    assert isinstance(where, Footprint), "bad addresses are refused before"
    label = part.read if isinstance(part, Update) else part.label
    record = _accessing(runner, state, label, where, addr, tracks=part.tracks)
    for data in reversed(run.oracle.read(record.name, where)):
        run.meter.spend(STEP)
        after = state.copy()
        number = after.add(record, data)
        if isinstance(part, Update):
            _update(runner, after, part, record, number, data)
        elif isinstance(part, AsyncRead):
            _into_temporaries(after, part, where, number, data)
        assert after.issuing is not None
        after.issuing.records.append(number)
        if isinstance(part, AsyncRead):
            names = frozenset(name for name in part.registers if name)
            later = after.issuing.op.parts[len(after.issuing.records) :]
            _all_good(runner, after, [other.region for other in later if _uses(other.region, names)])
        run.pending.append(after)
    return False


def _into_temporaries(state: RunState, part: AsyncRead, where: Footprint, number: int, data: int) -> None:
    """Each scalar into its temporary, or the sum of the declared elements into one."""
    guard, state.guard = state.guard, 0
    if part.sums:
        (register,) = part.registers
        if register is not None:
            state.set(register, _sum(where, data), state.token(number, 0, where.size))
    else:
        size = scalar_size(where)
        for k, register in enumerate(part.registers):
            if register is not None:
                value = data >> k * size * 8 & (1 << size * 8) - 1
                state.set(register, value, state.token(number, k * size, size))
    state.guard = guard


def _sum(where: Footprint, data: int) -> int:
    """The sum of the declared elements of what was read."""
    total = at = 0
    for extent in where.extents:
        unit = extent.instance.unit
        for first in range(at, at + extent.size, unit):
            size = min(unit, at + extent.size - first)
            total += data >> first * 8 & (1 << size * 8) - 1
        at += extent.size
    return UNTYPED.wrap(total)


def _update(runner: Runner, state: RunState, part: Update, read: AccessRecord, number: int, data: int) -> None:
    """The write half of a reduction: every scalar becomes op(scalar, the scalar that the source part read)."""
    assert state.issuing is not None
    source = state.issuing.records[part.source]
    assert source is not None
    addend = state.values[source]
    assert addend is not None
    size = part.type.width // 8
    mask = (1 << size * 8) - 1
    values, depends = [], []
    for first in range(0, read.footprint.size, size):
        old, new = data >> first * 8 & mask, addend >> first * 8 & mask
        values.append(apply(part.op, (old, new), part.type))
        depends.append(state.token(number, first, size) | state.token(source, first, size))
    more = {"data": tuple(depends), "tracks": part.tracks, "half_of": number}
    record = _accessing(runner, state, part.write, read.footprint, read.addr, **more)
    state.add(record, packed(values, size))


def _respond(runner: Runner, state: RunState, part: Respond, response: int) -> None:
    """The response, written to one receiver."""
    assert state.issuing is not None
    where, addr = locate(runner, state, part.region)
    assert isinstance(where, Footprint), "bad addresses are refused before"
    record = _accessing(runner, state, part.label, where, addr, refused=not response)
    state.issuing.records.append(state.add(record, response))


def _write(runner: Runner, state: RunState, part: Scatter | AsyncWrite | Respond) -> None:
    """The bytes that a Gather read, values, or the response that another receiver has."""
    assert state.issuing is not None
    if isinstance(part, Respond):
        first = state.issuing.records[part.like or 0]
        assert first is not None
        _respond(runner, state, part, state.values[first] or 0)
        return
    where, addr = locate(runner, state, part.region)
    assert isinstance(where, Footprint), "bad addresses are refused before"
    if isinstance(part, Scatter):
        source = state.issuing.records[part.source]
        assert source is not None
        data = state.values[source]
        assert data is not None
        depends = (state.depend(part.when),)
        record = _accessing(runner, state, part.label, where, addr, data=depends, tracks=part.tracks, copies=source)
        value = data & (1 << where.size * 8) - 1
    else:
        record, value = _values(runner, state, part, where, addr)
    state.issuing.records.append(state.add(record, value))


def _values(runner: Runner, state: RunState, part: AsyncWrite, where: Footprint, addr: int) -> tuple[AccessRecord, int]:
    """Values to scalars; one value to all columns; a value added to what was in each column."""
    assert state.issuing is not None
    size = scalar_size(where)
    scalars = where.size // size
    numbers = [runner.value(value, state) for value in part.values]
    depends = [state.depend(value) for value in part.values]
    if len(numbers) == 1:
        numbers, depends = numbers * scalars, depends * scalars
    if part.adds_to is not None:
        source = state.issuing.records[part.adds_to]
        assert source is not None
        old = state.values[source]
        assert old is not None
        adds = part.adds_if is None or runner.value(part.adds_if, state) != 0
        for k in range(scalars):
            depends[k] |= state.token(source, k * size, size) | state.depend(part.adds_if)
            if adds:
                numbers[k] = UNTYPED.wrap(numbers[k] + (old >> k * size * 8 & (1 << size * 8) - 1))
    half_of = len(state.records) - 1 if part.rmw else None
    more = {"data": tuple(depends), "tracks": part.tracks, "half_of": half_of}
    record = _accessing(runner, state, part.label, where, addr, **more)
    return record, packed(numbers[:scalars], size)


def _signal(runner: Runner, state: RunState, part: SignalPart) -> None:
    """A complete-tx or an arrive-on."""
    issuing = state.issuing
    assert issuing is not None
    if part.when is not None and not runner.value(part.when, state):
        issuing.records.append(None)
        return
    where, addr = locate(runner, state, part.region)
    assert isinstance(where, Footprint), "bad addresses are refused before"
    extent = where.extents[0]
    size = 0
    if part.bytes is not None:
        size = runner.value(part.bytes, state)
    elif part.bytes_of is not None:
        source = state.records[issuing.records[part.bytes_of] or 0]
        assert isinstance(source, AccessRecord)
        size = source.footprint.size
    completes = {number for part_before in part.of for number in _records_of(state, issuing.records[part_before])}
    if part.tracks is not None:
        completes |= {number for number in tracked(state, part.tracks) if number < issuing.issue}
    action = part.label.action
    record = _record(
        runner,
        ObjectRecord,
        state,
        part.label,
        addr=addr,
        object=Cell(extent.instance, extent.first, extent.size),
        action=action,
        count=1 if action is Action.ARRIVE else 0,
        bytes=size,
        data=state.depend(part.when, part.bytes),
        failed=part.failed is not None and runner.value(part.failed, state) != 0,
        completes=frozenset(completes),
    )
    issuing.records.append(state.add(record))


def _records_of(state: RunState, first: int | None) -> list[int]:
    """A part's records: one, but for a reduction's two halves."""
    if first is None:
        return []
    numbers = [first]
    while numbers[-1] + 1 < len(state.records) and state.records[numbers[-1] + 1].name == state.records[first].name:
        numbers.append(numbers[-1] + 1)
    return numbers
