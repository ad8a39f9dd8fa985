"""What asynchronous instructions do: an issue in program order, then their parts, outside of it.

In: an IssueAsync step, the place where it is executed. Out: events. Settled here: an instruction with a bad address
does nothing; one whose tensor map gives a bad address reads the map and does nothing more (docs/executions.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memmodel.base.labels import Action
from memmodel.base.logic import FALSE, TRUE
from memmodel.events.accesses import (
    AccessTarget,
    Bytes,
    Origin,
    into_registers,
    reads,
    scalars,
    targets,
    value_of,
    writes,
)
from memmodel.events.builder import Builder, CurrentStep
from memmodel.events.graph import Copied, ObjectEvent
from memmodel.events.values import NO_DEPS, ZERO, Cases, Deps, Value, apply, merge_deps
from memmodel.memory.bytes import Cell, Footprint
from memmodel.memory.cells import paired
from memmodel.program.expressions import registers_of
from memmodel.program.ops import AsyncRead, AsyncWrite, Gather, IssueAsync, Part, Respond, Scatter, SignalPart, Update
from memmodel.program.regions import Region, region_exprs
from memmodel.program.uses import part_expressions
from memmodel.ptx.vocabulary import UNTYPED


@dataclass(frozen=True, slots=True)
class BytesOf:
    """What a reading part of the instruction has read, for one footprint: if `when`."""

    footprint: Footprint
    when: int
    data: tuple[Bytes, ...]
    operations: tuple[int, ...]


def issue(build: Builder, current: CurrentStep, op: IssueAsync) -> None:
    """The whole instruction."""
    inner = frozenset(name for part in op.parts if isinstance(part, AsyncRead) for name in part.registers if name)
    _stop_at_bad_addresses(build, current, [part.region for part in op.parts if not _uses(part.region, inner)])
    if current.runs == FALSE:
        return
    addr, data = _dependencies(build, current, op, inner)
    event = build.plain(current, op.label, current.runs, addr, data)
    parts = _Parts(build, current, event.uid, current.runs, dict(current.state.registers))
    for number, part in enumerate(op.parts):
        parts.make(number, part)
        if isinstance(part, AsyncRead):
            # If what was read says where later parts are, a bad address there stops the thread after the issue.
            names = frozenset(name for name in part.registers if name)
            later = [other.region for other in op.parts[number + 1 :] if _uses(other.region, names)]
            _stop_at_bad_addresses(build, current, later, parts.registers)
            parts.alive = build.logic.both(parts.alive, current.runs)
    for name in inner:
        current.state.registers[name] = parts.registers.get(name, ZERO)


def _stop_at_bad_addresses(
    build: Builder, current: CurrentStep, regions: list[Region], registers: dict[str, Value] | None = None
) -> None:
    """The thread ends at this step if one of these regions is at a bad address."""
    for region in regions:
        _, bad, deps = targets(build, current, region, current.runs, registers)
        for reason, when in bad:
            build.fault(current, reason, when, deps)


def _uses(region: Region, names: frozenset[str]) -> bool:
    return any(not names.isdisjoint(registers_of(expr)) for expr in region_exprs(region))


def _dependencies(build: Builder, current: CurrentStep, op: IssueAsync, inner: frozenset[str]) -> tuple[Deps, Deps]:
    """The addr and data dependencies of an issue: those of its parts, except on what other parts read."""
    addr: list[Deps] = []
    data: list[Deps] = []
    registers = current.state.registers
    for part in op.parts:
        places = set(region_exprs(part.region))
        for expr in part_expressions(part):
            kind = addr if expr in places else data
            kind += [registers[name].deps for name in registers_of(expr) - inner if name in registers]
    return merge_deps(build.logic, *addr), merge_deps(build.logic, *data)


@dataclass(slots=True)
class _Parts:
    """An instruction whose parts are being made, as far as the thread is still `alive`.

    `registers`: those of the thread, with the temporaries that parts read into. `uids[k]`: the events of part k;
    `known[k]`: what it has read.
    """

    build: Builder
    current: CurrentStep
    issue: int
    alive: int
    registers: dict[str, Value]
    uids: list[list[int]] = field(default_factory=list)
    known: dict[int, list[BytesOf]] = field(default_factory=dict)

    def make(self, number: int, part: Part) -> None:
        """The events of one part."""
        start = len(self.build.events)
        origin = Origin(number, self.issue, frozenset() if isinstance(part, Respond | SignalPart) else part.tracks)
        match part:
            case Gather():
                for target, addr in self._targets(part.region):
                    self._read(part, target, addr, origin)
            case AsyncRead():
                self._read_registers(part, origin)
            case Scatter():
                self._scatter(part, origin)
            case Update():
                self._update(part, origin)
            case AsyncWrite():
                self._write(part, origin)
            case Respond():
                self._respond(part, origin)
            case SignalPart():
                self._signal(part, number)
        self.uids.append(list(range(start, len(self.build.events))))

    def _targets(self, region: Region, when: int = TRUE) -> Iterator[tuple[AccessTarget, Deps]]:
        """The footprints that a region may mean; what is at a bad address has stopped the thread."""
        alive = self.build.logic.both(self.alive, when)
        good, _, deps = targets(self.build, self.current, region, alive, self.registers)
        for target in good:
            yield target, deps

    # ---- reading parts -----------------------------------------------------------------------------------------------

    def _read(self, part: Gather | AsyncRead, target: AccessTarget, addr: Deps, origin: Origin) -> BytesOf:
        data, operations = reads(self.build, self.current, part.label, target, addr, origin)
        known = BytesOf(target.footprint, target.when, tuple(data), operations)
        self.known.setdefault(origin.part, []).append(known)
        return known

    def _read_registers(self, part: AsyncRead, origin: Origin) -> None:
        """Each scalar into its temporary, or the sum of the declared elements into one."""
        options: list[tuple[int, list[Value]]] = []
        for target, addr in self._targets(part.region):
            known = self._read(part, target, addr, origin)
            values = [self._sum(known)] if part.sums else self._scalars_of(known, len(part.registers))
            options.append((target.when, values))
        self.registers.update(into_registers(self.build, part.registers, options))

    def _scalars_of(self, known: BytesOf, count: int) -> list[Value]:
        """The first scalars of what was read."""
        size = known.footprint.scalar or known.footprint.size
        return [value_of(self.build, known.data, k * size, size) for k in range(count)]

    def _sum(self, known: BytesOf) -> Value:
        """The sum of the declared elements of what was read."""
        total = ZERO
        at = 0
        for extent in known.footprint.extents:
            unit = extent.instance.unit
            for first in range(at, at + extent.size, unit):
                element = value_of(self.build, known.data, first, min(unit, at + extent.size - first))
                total = self._apply("add", total, element) if total is not ZERO else element
            at += extent.size
        return total

    def _apply(self, op: str, *values: Value) -> Value:
        return apply(self.build.logic, op, values, UNTYPED)

    # ---- writing parts -----------------------------------------------------------------------------------------------

    def _scatter(self, part: Scatter, origin: Origin) -> None:
        """The bytes that a Gather read, byte by byte."""
        build = self.build
        when, deps = build.nonzero(self.current, part.when)
        sources = self.known.get(part.source, [])
        for target, addr in self._targets(part.region, when):
            for known in sources:
                runs = build.logic.both(target.when, known.when) if len(sources) > 1 else target.when
                if runs == FALSE:
                    continue
                for first, second in paired(known.footprint, target.footprint):
                    build.knowledge.cells.link(first, second)
                    build.graph.copies.append(Copied(first, second, runs))
                copied = AccessTarget(target.footprint, runs)
                writes(build, self.current, part.label, copied, known.data, addr, origin, more=deps)

    def _update(self, part: Update, origin: Origin) -> None:
        """Every scalar becomes op(scalar, the scalar that the source part read)."""
        build, current, logic = self.build, self.current, self.build.logic
        size = part.type.width // 8
        when, deps = build.nonzero(current, part.when)
        for target, addr in self._targets(part.region, when):
            for source in self.known.get(part.source, []):
                runs = logic.both(target.when, source.when)
                if runs == FALSE:
                    continue
                both = AccessTarget(target.footprint, runs)
                old, operations = reads(build, current, part.read, both, addr, origin)
                values = []
                for first in range(0, target.footprint.size, size):
                    operands = [value_of(build, data, first, size) for data in (old, source.data)]
                    values.append(apply(logic, part.op, operands, part.type))
                new = scalars(build, values, size)
                writes(build, current, part.write, both, new, addr, origin, operations=operations, more=deps)

    def _write(self, part: AsyncWrite, origin: Origin) -> None:
        """Values to scalars; one value to all columns; a value added to what was in each column."""
        build, current = self.build, self.current
        values = [build.value(current, value, self.registers) for value in part.values]
        condition = None if part.adds_if is None else build.value(current, part.adds_if, self.registers)
        known: dict[Footprint, BytesOf] = {}
        if part.adds_to is not None or part.rmw:
            before = self.known.get(part.adds_to if part.adds_to is not None else origin.part - 1, [])
            known = {read.footprint: read for read in before}
        when, deps = build.nonzero(current, part.when)
        for target, addr in self._targets(part.region, when):
            size = target.footprint.scalar or target.footprint.size
            count = target.footprint.size // size
            new: Sequence[Value] = values * count if len(values) == 1 else values
            old = known.get(target.footprint)
            if part.adds_to is not None and old is not None:
                pairs = zip(self._scalars_of(old, count), new, strict=False)
                new = [self._added(first, second, condition) for first, second in pairs]
            operations = old.operations if part.rmw and old is not None else ()
            data = scalars(build, new, size)
            writes(build, current, part.label, target, data, addr, origin, operations=operations, more=deps)

    def _added(self, old: Value, value: Value, condition: Value | None) -> Value:
        total = self._apply("add", old, value)
        return total if condition is None else self._apply("selp", total, value, condition)

    def _respond(self, part: Respond, origin: Origin) -> None:
        """The response of a try_cancel, written to a receiver: one choice for all of them."""
        requests, visit = self.build.graph.requests, self.current.visit
        if part.like is None:
            requests[visit] = (origin.part, self.build.logic.var(f"success(v{visit})"))
        _, success = requests[visit]
        value = Value(Cases({0: -success, part.success: success}))
        for target, addr in self._targets(part.region):
            data = [Bytes(0, target.footprint.size, value)]
            writes(self.build, self.current, part.label, target, data, addr, origin)

    # ---- signals -----------------------------------------------------------------------------------------------------

    def _signal(self, part: SignalPart, number: int) -> None:
        """A complete-tx or an arrive-on, one event for each object and number of bytes that it may be."""
        build, current = self.build, self.current
        when, deps = build.nonzero(current, part.when)
        failed = FALSE if part.failed is None else build.nonzero(current, part.failed)[0]
        for target, addr in self._targets(part.region, when):
            for size, runs in self._sizes(part, target.when):
                extent = target.footprint.extents[0]
                point = build.point(
                    current,
                    part.label,
                    order=None,
                    issue=self.issue,
                    cell=Cell(extent.instance, extent.first, extent.size),
                    name=extent.name,
                )
                size_deps = NO_DEPS if part.bytes is None else build.value(current, part.bytes).deps
                build.add(
                    ObjectEvent(
                        point=point,
                        runs=runs,
                        addr=addr,
                        data=merge_deps(build.logic, deps, size_deps),
                        ctrl=current.control,
                        visit=current.visit,
                        part=number,
                        action=part.label.action,
                        count=1 if part.label.action is Action.ARRIVE else 0,
                        bytes=size,
                        of=tuple(uid for other in part.of for uid in self.uids[other]),
                        tracks=part.tracks,
                        failed=failed,
                    )
                )

    def _sizes(self, part: SignalPart, runs: int) -> list[tuple[int, int]]:
        """The numbers of bytes that a complete-tx may announce."""
        logic = self.build.logic
        if part.bytes is not None:
            choices, _ = self.build.choices(self.current, (part.bytes,), runs, self.registers)
            return [(numbers[0], when) for numbers, when in choices]
        if part.bytes_of is None:
            return [(0, runs)]
        sizes: dict[int, int] = {}
        for known in self.known.get(part.bytes_of, []):
            when = logic.both(runs, known.when)
            sizes[known.footprint.size] = logic.either(sizes.get(known.footprint.size, FALSE), when)
        return [(size, when) for size, when in sizes.items() if when != FALSE]
