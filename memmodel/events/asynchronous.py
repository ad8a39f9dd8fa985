"""What asynchronous instructions do: an issue in program order, then their parts, outside of it.

In: an IssueAsync step, the place where it is executed. Out: events. Settled here: an instruction with a bad address
does nothing; one whose tensor map gives a bad address reads the map and does nothing more (docs/executions.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memmodel.base.labels import Action
from memmodel.base.logic import FALSE, TRUE
from memmodel.events.accesses import AccessTarget, Bytes, reads, targets, value_of, writes
from memmodel.events.builder import Builder, Here
from memmodel.events.graph import Copied, ObjectEvent, PlainEvent
from memmodel.events.values import ZERO, Cases, Deps, Value, apply, merge_deps, piece, select
from memmodel.memory.bytes import Cell, Footprint
from memmodel.memory.cells import paired
from memmodel.program.expressions import registers_of
from memmodel.program.ops import AsyncRead, AsyncWrite, Gather, IssueAsync, Part, Respond, Scatter, SignalPart, Update
from memmodel.program.regions import Region, region_exprs
from memmodel.program.uses import part_expressions
from memmodel.ptx.vocabulary import UNTYPED


@dataclass(frozen=True, slots=True)
class Done:
    """What a reading part of the instruction has read, for one footprint: if `when`."""

    footprint: Footprint
    when: int
    data: tuple[Bytes, ...]
    operations: tuple[int, ...]


@dataclass(slots=True)
class _Parts:
    """An instruction whose parts are being made. `uids[k]`: the events of part k; `done[k]`: what it has read."""

    op: IssueAsync
    issue: int
    alive: int
    registers: dict[str, Value]
    uids: list[list[int]] = field(default_factory=list)
    done: dict[int, list[Done]] = field(default_factory=dict)


def issue(build: Builder, here: Here, op: IssueAsync) -> None:
    """The whole instruction."""
    inner = frozenset(name for part in op.parts if isinstance(part, AsyncRead) for name in part.registers if name)
    _refuse(build, here, [part.region for part in op.parts if not _uses(part.region, inner)])
    if here.runs == FALSE:
        return
    addr, data = _dependencies(build, here, op, inner)
    event = PlainEvent(
        point=build.point(here, op.label), runs=here.runs, addr=addr, data=data, ctrl=here.control, visit=here.visit
    )
    build.add(event)
    parts = _Parts(op, event.uid, here.runs, dict(here.state.registers))
    for number, part in enumerate(op.parts):
        parts.uids.append([])
        _part(build, here, parts, number, part)
        if isinstance(part, AsyncRead):
            # If what was read says where later parts are, a bad address there stops the thread after the issue.
            names = frozenset(name for name in part.registers if name)
            later = [other.region for other in op.parts[number + 1 :] if _uses(other.region, names)]
            _refuse(build, here, later, parts.registers)
            parts.alive = build.logic.both(parts.alive, here.runs)
    for name in inner:
        here.state.registers[name] = parts.registers.get(name, ZERO)


def _refuse(build: Builder, here: Here, regions: list[Region], registers: dict[str, Value] | None = None) -> None:
    """The thread stops here if one of these regions is at a bad address."""
    for region in regions:
        _, bad, deps = targets(build, here, region, here.runs, registers)
        for why, when in bad:
            build.fault(here, why, when, deps)


def _uses(region: Region, names: frozenset[str]) -> bool:
    return any(not names.isdisjoint(registers_of(expr)) for expr in region_exprs(region))


def _dependencies(build: Builder, here: Here, op: IssueAsync, inner: frozenset[str]) -> tuple[Deps, Deps]:
    """The addr and data dependencies of an issue: those of its parts, except on what other parts read."""
    addr: list[Deps] = []
    data: list[Deps] = []
    for part in op.parts:
        places = set(region_exprs(part.region))
        for expr in part_expressions(part):
            names = registers_of(expr) - inner
            kind = addr if expr in places else data
            kind += [here.state.registers[name].deps for name in names if name in here.state.registers]
    return merge_deps(build.logic, *addr), merge_deps(build.logic, *data)


def _part(build: Builder, here: Here, parts: _Parts, number: int, part: Part) -> None:
    match part:
        case Gather():
            for target, deps in _targets(build, here, parts, part.region):
                _read(build, here, parts, number, part, target, deps)
        case AsyncRead():
            _read_registers(build, here, parts, number, part)
        case Scatter():
            _scatter(build, here, parts, number, part)
        case Update():
            _update(build, here, parts, number, part)
        case AsyncWrite():
            _write(build, here, parts, number, part)
        case Respond():
            _respond(build, here, parts, number, part)
        case SignalPart():
            _signal(build, here, parts, number, part)


def _targets(
    build: Builder, here: Here, parts: _Parts, region: Region, when: int = TRUE
) -> list[tuple[AccessTarget, Deps]]:
    """The footprints that a region may mean; what is at a bad address has stopped the thread."""
    alive = build.logic.both(parts.alive, when)
    meant, _, deps = targets(build, here, region, alive, parts.registers)
    return [(target, deps) for target in meant]


# ---- reading parts ---------------------------------------------------------------------------------------------------


def _read(
    build: Builder, here: Here, parts: _Parts, number: int, part: Gather | AsyncRead, target: AccessTarget, deps: Deps
) -> Done:
    start = len(build.events)
    data, operations = reads(build, here, part.label, target, deps, part=number, issue=parts.issue, tracks=part.tracks)
    parts.uids[number] += range(start, len(build.events))
    done = Done(target.footprint, target.when, tuple(data), operations)
    parts.done.setdefault(number, []).append(done)
    return done


def _read_registers(build: Builder, here: Here, parts: _Parts, number: int, part: AsyncRead) -> None:
    """Each scalar into its temporary, or the sum of the declared elements into one."""
    options: list[tuple[int, list[Value]]] = []
    for target, deps in _targets(build, here, parts, part.region):
        done = _read(build, here, parts, number, part, target, deps)
        size = target.footprint.scalar or target.footprint.size
        if part.sums:
            values = [_sum(build, done)]
        else:
            values = [value_of(build, done.data, k * size, size) for k in range(len(part.registers))]
        options.append((target.when, values))
    for k, register in enumerate(part.registers):
        if register is not None:
            value = select(build.logic, [(when, values[k]) for when, values in options]) if options else ZERO
            parts.registers[register] = value


def _sum(build: Builder, done: Done) -> Value:
    """The sum of the declared elements of what was read."""
    total = ZERO
    at = 0
    for extent in done.footprint.extents:
        unit = extent.instance.unit
        for first in range(at, at + extent.size, unit):
            element = value_of(build, done.data, first, min(unit, at + extent.size - first))
            total = apply(build.logic, "add", (total, element), UNTYPED) if total is not ZERO else element
        at += extent.size
    return total


# ---- writing parts ---------------------------------------------------------------------------------------------------


def _scatter(build: Builder, here: Here, parts: _Parts, number: int, part: Scatter) -> None:
    """The bytes that a Gather read, byte by byte."""
    when, deps = build.nonzero(here, part.when)
    sources = parts.done.get(part.source, [])
    for target, addr in _targets(build, here, parts, part.region, when):
        for done in sources:
            runs = build.logic.both(target.when, done.when) if len(sources) > 1 else target.when
            if runs == FALSE:
                continue
            for first, second in paired(done.footprint, target.footprint):
                build.knowledge.cells.link(first, second)
                build.copies.append(Copied(first, second, runs))
            _put(build, here, parts, number, part, AccessTarget(target.footprint, runs), done.data, addr, deps)


def _put(
    build: Builder,
    here: Here,
    parts: _Parts,
    number: int,
    part: Scatter | AsyncWrite,
    target: AccessTarget,
    data: tuple[Bytes, ...],
    addr: Deps,
    deps: Deps,
    operations: tuple[int, ...] = (),
) -> None:
    start = len(build.events)
    writes(
        build,
        here,
        part.label,
        target,
        data,
        addr,
        part=number,
        more=deps,
        issue=parts.issue,
        operations=operations,
        tracks=part.tracks,
    )
    parts.uids[number] += range(start, len(build.events))


def _update(build: Builder, here: Here, parts: _Parts, number: int, part: Update) -> None:
    """Every scalar becomes op(scalar, the scalar that the source part read)."""
    size = part.type.width // 8
    for target, addr in _targets(build, here, parts, part.region):
        for source in parts.done.get(part.source, []):
            runs = build.logic.both(target.when, source.when)
            if runs == FALSE:
                continue
            both = AccessTarget(target.footprint, runs)
            start = len(build.events)
            old, operations = reads(
                build, here, part.read, both, addr, part=number, issue=parts.issue, tracks=part.tracks
            )
            new = []
            for first in range(0, target.footprint.size, size):
                pair = [value_of(build, data, first, size) for data in (old, source.data)]
                value = apply(build.logic, part.op, pair, part.type)
                new.append(Bytes(first, size, piece(build.logic, value, 0, size, size)))
            writes(
                build,
                here,
                part.write,
                both,
                new,
                addr,
                part=number,
                issue=parts.issue,
                operations=operations,
                tracks=part.tracks,
            )
            parts.uids[number] += range(start, len(build.events))


def _write(build: Builder, here: Here, parts: _Parts, number: int, part: AsyncWrite) -> None:
    """Values to scalars; one value to all columns; a value added to what was in each column."""
    logic = build.logic
    given = [build.value(here, value, parts.registers) for value in part.values]
    condition: Value | None = None
    if part.adds_if is not None:
        condition = build.value(here, part.adds_if, parts.registers)
    known: Mapping[Footprint, Done] = {}
    if part.adds_to is not None or part.rmw:
        before = parts.done.get(part.adds_to if part.adds_to is not None else number - 1, [])
        known = {done.footprint: done for done in before}
    for target, addr in _targets(build, here, parts, part.region):
        size = target.footprint.scalar or target.footprint.size
        scalars = target.footprint.size // size
        values = given * scalars if len(given) == 1 else given
        done = known.get(target.footprint)
        if part.adds_to is not None and done is not None:
            values = [
                _added(build, value_of(build, done.data, k * size, size), value, condition)
                for k, value in enumerate(values[:scalars])
            ]
        data = tuple(Bytes(k * size, size, piece(logic, v, 0, size, size)) for k, v in enumerate(values))
        operations = done.operations if part.rmw and done is not None else ()
        _put(build, here, parts, number, part, target, data, addr, {}, operations)


def _added(build: Builder, old: Value, value: Value, condition: Value | None) -> Value:
    total = apply(build.logic, "add", (old, value), UNTYPED)
    if condition is None:
        return total
    return apply(build.logic, "selp", (total, value, condition), UNTYPED)


def _respond(build: Builder, here: Here, parts: _Parts, number: int, part: Respond) -> None:
    """The response of a try_cancel, written to a receiver: one choice for all of them."""
    if part.like is None:
        build.requests[here.visit] = (number, build.logic.var(f"success(v{here.visit})"))
    _, success = build.requests[here.visit]
    value = Value(Cases({0: -success, part.success: success}))
    start = len(build.events)
    for target, addr in _targets(build, here, parts, part.region):
        data = [Bytes(0, target.footprint.size, value)]
        writes(build, here, part.label, target, data, addr, part=number, issue=parts.issue)
    parts.uids[number] += range(start, len(build.events))


# ---- signals ---------------------------------------------------------------------------------------------------------


def _signal(build: Builder, here: Here, parts: _Parts, number: int, part: SignalPart) -> None:
    """A complete-tx or an arrive-on, one event for each object and number of bytes that it may be."""
    when, deps = build.nonzero(here, part.when)
    for target, addr in _targets(build, here, parts, part.region, when):
        for size, runs in _sizes(build, here, parts, part, target.when):
            extent = target.footprint.extents[0]
            event = ObjectEvent(
                point=build.point(
                    here,
                    part.label,
                    order=None,
                    issue=parts.issue,
                    cell=Cell(extent.instance, extent.first, extent.size),
                    name=extent.name,
                ),
                runs=runs,
                addr=addr,
                data=merge_deps(build.logic, deps, _size_deps(build, here, part)),
                ctrl=here.control,
                visit=here.visit,
                part=number,
                action=part.label.action,
                count=1 if part.label.action is Action.ARRIVE else 0,
                bytes=size,
                of=tuple(uid for one in part.of for uid in parts.uids[one]),
                tracks=part.tracks,
            )
            build.add(event)


def _sizes(build: Builder, here: Here, parts: _Parts, part: SignalPart, runs: int) -> list[tuple[int, int]]:
    """The numbers of bytes that a complete-tx may announce."""
    if part.bytes is not None:
        found, _ = build.choices(here, (part.bytes,), runs, parts.registers)
        return [(numbers[0], when) for numbers, when in found]
    if part.bytes_of is None:
        return [(0, runs)]
    sizes: dict[int, int] = {}
    for done in parts.done.get(part.bytes_of, []):
        when = build.logic.both(runs, done.when)
        sizes[done.footprint.size] = build.logic.either(sizes.get(done.footprint.size, FALSE), when)
    return [(size, when) for size, when in sizes.items() if when != FALSE]


def _size_deps(build: Builder, here: Here, part: SignalPart) -> Deps:
    return {} if part.bytes is None else build.value(here, part.bytes).deps
