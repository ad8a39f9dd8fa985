"""Asynchronous instructions of a lane: the issue, then its parts, and waiting for their end.

In: the steps IssueAsync, CommitGroup and WaitForGroups. Out: what the machine does at them. The parts are made at once,
in their order, and are no part of the order of the thread: the trace says to which issue each belongs. What a copy
leaves is known as far as its source is known, where the order of its bytes is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from memmodel.base.labels import Access, Family, Side
from memmodel.kernel.machine.accesses import strong
from memmodel.kernel.machine.objects import signalled
from memmodel.kernel.machine.parts import PARTS_OF, Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.regions.locate import Locate, Located, locator
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.state import Blocking, Machine, Span
from memmodel.kernel.machine.values.lanes import Get
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKind, Committed
from memmodel.memory.bytes import Filler
from memmodel.program.expressions import registers_of
from memmodel.program.ops import (
    AsyncRead,
    AsyncWrite,
    CommitGroup,
    Gather,
    IssueAsync,
    Part,
    Respond,
    Scatter,
    SignalPart,
    Update,
    WaitForGroups,
)
from memmodel.program.regions import TensorMapAt, region_exprs
from memmodel.program.warp_ops import SeeRefusal
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Sem

if TYPE_CHECKING:
    from memmodel.kernel.machine.interpret import Interpreter

OBSERVED, MOST_OBSERVED = 1024, 65536
"""Bytes of a strong copy whose elements are always told apart, and of all larger ones in a run for which that is so;
what other ones leave is taken as unknown.
"""


# ---- groups ------------------------------------------------------------------------------------------------------


def commit_group(interpreter: Interpreter, op: CommitGroup) -> Blocking:
    """What each lane issued since its last commit becomes a group."""
    number = interpreter.instruction.number

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        groups = warp.tracks[op.track]
        for lane in lanes:
            groups.commit(lane)
            thread = warp.threads[lane]
            closed = Committed(number, len(groups.issued[lane]), len(thread.events))
            machine.run.commits.setdefault((thread.number, op.track), []).append(closed)
        return True

    return run


def wait_for_groups(interpreter: Interpreter, op: WaitForGroups) -> Blocking:
    """An event that everything comes before that is waited for."""
    pending, instruction = None if op.pending is None else interpreter.value(op.pending), interpreter.instruction

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        issued, counts = warp.tracks[op.track], None if pending is None else pending(warp)
        for lane in lanes:
            left = None if counts is None else counts[lane]
            if counts is not None and left is None:
                machine.unknown("the number of groups", instruction)
            event = machine.event(warp.threads[lane], instruction.number, op.label)
            event.completes = tuple(issued.issued[lane] if left is None else issued.over(lane, left))
            event.reads_only = op.sources_only
            event.note = (op.sources_only, len(event.completes))
        return True

    return run


# ---- issues ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LaneIssue:
    """An asynchronous instruction that a lane issues.

    `located`: the bytes of its parts by number, as far as they are known; None for one that is not made. `observed`:
    each element of a strong copy is an access of its own, which others may observe. `accesses`: what the last part did,
    if it is strong. `response`: what a request is told.
    """

    machine: Machine
    warp: Warp
    lane: int
    instruction: PtxInstruction
    issue: TraceEvent
    located: list[Located | None]
    observed: bool = False
    accesses: Sequence[TraceEvent] = ()
    response: int = 0

    @property
    def hidden(self) -> bool:
        """True if what strong accesses of the instruction move is unknown in this run."""
        return self.instruction.number in self.machine.schedule.opaque

    def value(self, get: Get) -> Value:
        """The value of an expression in the lane."""
        return get(self.warp)[self.lane]

    def bytes_of(self, part: int) -> Located:
        """The bytes of a part that is made."""
        located = self.located[part]
        assert located is not None
        return located

    def access(self, part: int, label: Access, *, strongly: bool) -> None:
        """Leave an access to the bytes of a part. `strongly`: each element is an event."""
        machine, number, located = self.machine, self.instruction.number, self.bytes_of(part)
        if strongly:
            self.accesses = [
                strong(machine, self.warp, self.lane, number, label, block, first, size, self.issue)
                for block, first, size in _scalars(located)
            ]
            for event in self.accesses:
                event.parts = frozenset((part,))
            return
        thread, writes = self.warp.threads[self.lane], label.side is Side.WRITE
        spans = [(block, first, size) for block, first, size, _ in located.spans]
        for layer, apart in enumerate(_without_overlap(spans) if writes else [spans]):
            count = len(self.located)
            machine.weak_parts(apart, thread, label, number, located.scalar, self.issue, part + layer * count)
        for span in spans if writes else ():
            machine.forget(*span)


def _without_overlap(spans: list[Span]) -> list[list[Span]]:
    """Bytes of a write in groups within which none are written twice: rows of a box may be one place of the tensor.

    The rows of a copy have no order, so each group is an access of its own.
    """
    groups: list[list[Span]] = [[]]
    ends: list[dict[Block, int]] = [{}]
    for block, first, size in sorted(spans, key=lambda span: span[1]):
        fits = (number for number, end in enumerate(ends) if end.get(block, 0) <= first)
        number = next(fits, len(groups))
        if number == len(groups):
            groups.append([])
            ends.append({})
        groups[number].append((block, first, size))
        ends[number][block] = first + size
    return groups


Make = Callable[[LaneIssue, int], None]
"""Makes the part of that number."""


@dataclass(frozen=True, slots=True)
class CompiledPart:
    """A part of an instruction. `when`: it is made where that is not 0. `late`: another part says where its bytes are.

    `slot`: of a part that says so, the temporary that receives what it reads.
    """

    locate: Locate
    when: Get | None
    late: bool
    slot: int | None
    make: Make


def issue(interpreter: Interpreter, op: IssueAsync) -> Blocking:
    """The instruction in each lane. Where the bytes of a part cannot be accessed, nothing is issued; where the number
    that says which bytes these are is bad, it is read, and no more ("Executions").
    """
    instruction = interpreter.instruction
    inner = frozenset(name for part in op.parts if isinstance(part, AsyncRead) for name in part.registers if name)
    pieces = [_piece(interpreter, part, inner) for part in op.parts]
    tracks = {track for part in op.parts if not isinstance(part, Respond | SignalPart) for track in part.tracks}
    copies = op.label.family is Family.BULK
    described, conditional = any(piece.late for piece in pieces), any(piece.when for piece in pieces)
    all_made, numbered = [True] * len(pieces), list(enumerate(pieces))

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        early = [None if piece.late else piece.locate(machine, warp) for piece in pieces]
        conditions = [None if piece.when is None else piece.when(warp) for piece in pieces]
        use, fault = all_made, None
        for lane in lanes:
            if conditional:
                use = [row is None or row[lane] != 0 for row in conditions]
            located = [at(lane) if at is not None and use[number] else None for number, at in enumerate(early)]
            if described:
                fault = _locate_late(machine, warp, lane, pieces, located, use)
            event = machine.event(warp.threads[lane], instruction.number, op.label)
            issuing = LaneIssue(machine, warp, lane, instruction, event, located)
            for number, piece in numbered:
                if use[number] and (fault is None or piece.slot is not None):
                    piece.make(issuing, number)
            if fault is not None:
                raise fault
            if copies:
                _name_twins(issuing)
            for track in tracks:
                warp.tracks[track].add(lane, event)
        return True

    return run


def _locate_late(
    machine: Machine,
    warp: Warp,
    lane: int,
    pieces: list[CompiledPart],
    located: list[Located | None],
    use: list[bool],
) -> Faulty | None:
    """Find the bytes of parts of which others say where they are, before anything is issued."""
    for number, piece in enumerate(pieces):
        place = located[number]
        if piece.slot is not None and place is not None:
            block, first, size, _ = place.spans[0]
            warp.own(piece.slot)[lane] = block.load(first, size)
        if piece.late and use[number]:
            try:
                located[number] = piece.locate(machine, warp)(lane)
            except Faulty as error:
                return error
    return None


def _name_twins(issuing: LaneIssue) -> None:
    """What lanes copy from one place to another with one instruction is the same."""
    machine, warp = issuing.machine, issuing.warp
    places = (None if located is None else located.spans for located in issuing.located)
    what = (warp.cta.number, warp.number, machine.steps, *places)
    issuing.issue.twin = machine.twins.setdefault(what, len(machine.twins))


# ---- parts -------------------------------------------------------------------------------------------------------


def _piece(interpreter: Interpreter, part: Part, inner: frozenset[str]) -> CompiledPart:
    """A part, compiled. `inner`: the temporaries that parts of the instruction read into."""
    instruction = interpreter.instruction
    locate = locator(interpreter, part.region)
    label = part.write if isinstance(part, Update) else part.label
    if isinstance(label, Access) and label.replicated:
        locate = _everywhere(locate, instruction)
    condition = part.when if isinstance(part, Scatter | SignalPart) else None
    when = None if condition is None else interpreter.value(condition)
    late = any(registers_of(expr) & inner for expr in region_exprs(part.region))
    says = isinstance(part, AsyncRead) and isinstance(part.region, TensorMapAt)
    slot = interpreter.slot(part.registers[0] or "") if isinstance(part, AsyncRead) and says else None
    return CompiledPart(locate, when, late, slot, _make(interpreter, part))


def _everywhere(locate: Locate, instruction: PtxInstruction) -> Locate:
    """The bytes in all memory that a multimem address points to."""

    def each(machine: Machine, warp: Warp) -> Callable[[int], Located]:
        at = locate(machine, warp)

        def everywhere(lane: int) -> Located:
            located = at(lane)
            spans = (
                span._replace(block=block)
                for span in located.spans
                for block in machine.replicas(span.block, instruction)
            )
            return located._replace(spans=tuple(spans))

        return everywhere

    return each


def _make(interpreter: Interpreter, part: Part) -> Make:
    match part:
        case Gather():
            return partial(_gather, part)
        case Scatter():
            return partial(_scatter, part)
        case Update():
            return partial(_update, part)
        case AsyncRead(region=TensorMapAt()):
            return partial(_describe, part)
        case AsyncRead():
            slots = [None if name is None else interpreter.slot(name) for name in part.registers]
            return partial(_read, part, [] if part.label.replicated else slots)
        case AsyncWrite():
            values = [interpreter.value(value) for value in part.values]
            return partial(_write, part, [] if part.label.replicated else values)
        case SignalPart():
            return partial(_signal, part, None if part.bytes is None else interpreter.value(part.bytes))
        case Respond():
            return partial(_respond, part)


def _gather(part: Gather, issuing: LaneIssue, number: int) -> None:
    """The source of a copy."""
    strongly = part.label.sem is not Sem.WEAK
    if strongly:
        size = issuing.bytes_of(number).size
        issuing.machine.observed += size if size > OBSERVED else 0
        issuing.observed = size <= OBSERVED or issuing.machine.observed <= MOST_OBSERVED
    issuing.access(number, part.label, strongly=strongly and issuing.observed)


def _scatter(part: Scatter, issuing: LaneIssue, number: int) -> None:
    """A destination of a copy. What a strong copy reads may depend on the schedule, as what a strong load does."""
    strongly = part.label.sem is not Sem.WEAK
    issuing.access(number, part.label, strongly=strongly and issuing.observed)
    source, target = issuing.bytes_of(part.source), issuing.bytes_of(number)
    known = source.ordered
    if strongly:
        known = issuing.observed and not issuing.hidden
        if known and any(span.block.known is not None for span in source.spans):
            issuing.machine.run.choices.setdefault((ChoiceKind.LOAD, issuing.instruction.number), issuing.instruction)
    if known:
        _copy(source, target)
    else:
        _forget(target)


def _copy(source: Located, target: Located) -> None:
    """What is known of the source, at the destination."""
    if source.filler is target.filler is None and len(source.spans) == len(target.spans) == 1:
        block, first, size, _ = target.spans[0]
        origin, begin, _, _ = source.spans[0]
        block.copy(first, origin, begin, size)
        return
    gaps = sum(span.size for span in source.spans) < source.size
    for block, first, size, at in target.spans:
        if gaps and source.filler is Filler.ZERO:
            block.store(first, size, 0)
        elif gaps:
            block.forget(first, size)
        for origin, begin, count, place in source.spans:
            low, high = max(at, place), min(at + size, place + count)
            if low < high:
                block.copy(first + low - at, origin, begin + low - place, high - low)


def _forget(target: Located) -> None:
    for block, first, size, _ in target.spans:
        block.forget(first, size)


def _update(part: Update, issuing: LaneIssue, number: int) -> None:
    """The destination of a reduction. Its result is unknown."""
    issuing.access(number, part.read, strongly=False)
    issuing.access(number, part.write, strongly=False)
    _forget(issuing.bytes_of(number))


def _describe(part: AsyncRead, issuing: LaneIssue, number: int) -> None:
    """The read of a tensor map, which says where other parts are."""
    block, first, size, _ = issuing.bytes_of(number).spans[0]
    event, machine, warp = issuing.issue, issuing.machine, issuing.warp
    event.range = (block, first, first + size)
    event.note = (*event.note, machine.alias(warp.cta, block, first))
    issuing.access(number, part.label, strongly=False)


def _read(part: AsyncRead, slots: list[int | None], issuing: LaneIssue, number: int) -> None:
    """Scalars into temporaries, as other parts use them; none of memory that other devices write, too."""
    issuing.access(number, part.label, strongly=part.label.sem is not Sem.WEAK)
    scalars = _scalars(issuing.bytes_of(number)) if slots else ()
    for slot, (block, first, size) in zip(slots, scalars, strict=True):
        if slot is not None:
            issuing.warp.own(slot)[issuing.lane] = None if issuing.hidden else block.load(first, size)


def _write(part: AsyncWrite, values: list[Get], issuing: LaneIssue, number: int) -> None:
    """Values to scalars; what memory holds that other devices write, too, is unknown."""
    reads = issuing.accesses
    issuing.access(number, part.label, strongly=part.label.sem is not Sem.WEAK)
    for read, write in zip(reads, issuing.accesses, strict=True) if part.rmw else ():
        read.partner, write.partner = write, read
    issuing.machine.version += 1
    if not values:
        _forget(issuing.bytes_of(number))
        return
    for get, (block, first, size) in zip(values, _scalars(issuing.bytes_of(number)), strict=True):
        block.store(first, size, None if issuing.hidden else issuing.value(get))


def _respond(part: Respond, issuing: LaneIssue, number: int) -> None:
    """The response to a request to cancel a cluster, in a receiver. Who has seen a refusal must not ask again."""
    machine, warp, instruction = issuing.machine, issuing.warp, issuing.instruction
    thread = warp.threads[issuing.lane]
    if part.like is None:
        if thread.number in warp.cta.refused:
            message = "a thread asks for a cluster to be cancelled after it has seen that none is left"
            machine.problem("undefined-cancel", message, instruction)
        issuing.response = machine.cancel(instruction, warp.cta.cluster)
    block, first, size, _ = issuing.bytes_of(number).spans[0]
    machine.weak(
        block, first, size, thread, part.label, instruction.number, None, issuing.issue, issuing.response, number
    )
    machine.forget(block, first, size)
    block.store(first, size, issuing.response)


def see_refusal(interpreter: Interpreter, op: SeeRefusal) -> Blocking:
    """The lanes that see that no cluster is left to cancel are noted."""
    refused = interpreter.value(op.when)

    def run(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        row = refused(warp)
        warp.cta.refused |= {warp.threads[lane].number for lane in lanes if row[lane]}
        return True

    return run


def _scalars(located: Located) -> Iterator[tuple[Block, int, int]]:
    """The scalars of the bytes of an access."""
    for block, first, size, _ in located.spans:
        unit = located.scalar or size
        for at in range(first, first + size, unit):
            yield block, at, unit


def _signal(part: SignalPart, sizes: Get | None, issuing: LaneIssue, number: int) -> None:
    """An operation on an mbarrier object when parts, or earlier instructions, are done."""
    block, first, _, _ = issuing.bytes_of(number).spans[0]
    size = 0 if sizes is None else issuing.value(sizes)
    if part.bytes_of is not None:
        size = issuing.bytes_of(part.bytes_of).size
    if size is None:
        issuing.machine.unknown("the number of bytes", issuing.instruction)
    completed = [issuing.issue] if part.of else []
    if part.tracks is not None:
        completed += issuing.warp.tracks[part.tracks].issued[issuing.lane]
    event = signalled(issuing.machine, issuing.issue, part.label, block, first, completed, size)
    event.parts = frozenset(part.of) if part.of else None if part.tracks is None else PARTS_OF.get(part.tracks)
