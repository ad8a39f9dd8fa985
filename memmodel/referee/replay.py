"""Run a witness of the other engine again, concretely, and judge it afresh.

In: LoweredTest, Model, Choice. Out: Replay. All that makes a candidate execution well-formed is checked here: what
does not fit is an InternalError, since an engine that hands it over contradicts docs/executions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from memmodel.answer import Budget, Witness
from memmodel.base.labels import Access, Fence, InitialWrite, Side
from memmodel.base.rows import Rows, rows_of
from memmodel.cat.syntax import Model
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.barriers import Meeting, meetings, reductions_agree
from memmodel.concrete.execution import Execution, FixedPart, Position, position
from memmodel.concrete.mbarriers import START, MbarrierUses, ObjectWalk, Observed, observe
from memmodel.concrete.meter import Meter
from memmodel.concrete.records import End, Trace
from memmodel.concrete.runner import Runner
from memmodel.errors import InternalError, TooLarge
from memmodel.litmus.syntax import terms_of
from memmodel.memory.bytes import Cell
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.vocabulary import Sem
from memmodel.referee.choice import Choice, Writer
from memmodel.referee.evaluate import Evaluation, evaluate
from memmodel.referee.finals import Finals
from memmodel.referee.given import Given, stopped
from memmodel.referee.reasons import CIRCULAR
from memmodel.referee.witness import make_witness, rule_of

_BUDGET = Budget(effort=200_000_000, seconds=60.0)
"""Against a choice whose values drive a loop forever."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A witness as judged afresh: does the test's condition hold in it, which axioms of the model does it violate, and
    what do the model's flags report (name -> pairs of uids)?

    `waits`: some thread waits for ever. `ended`: every thread came to its end. `circular`: some value supports itself.
    `positions`: where each event comes from. `rules`: what bad addresses and undefined instructions break.
    """

    witness: Witness
    satisfies: bool
    failed: tuple[str, ...]
    flags: dict[str, list[tuple[int, int]]]
    waits: bool
    ended: bool
    circular: bool
    positions: list[Position]
    rules: dict[int, str]


Wanted = Callable[[Execution], bool]
"""Whether an execution is worth judging, for who can tell that sooner than the judge."""


def whatever(execution: Execution) -> bool:
    """Every execution is."""
    return True


def replay(lowered: LoweredTest, model: Model, choice: Choice, wanted: Wanted = whatever) -> Replay:
    """Build and judge the execution that a choice describes. Raises InternalError if it describes none, or one that is
    not `wanted`; TooLarge if that may be because values in it support themselves: no engine works out which numbers
    fit such a cycle."""
    given = Given(choice)
    try:
        return _replayed(lowered, model, choice, given, wanted)
    except InternalError as error:
        if given.circular:
            raise TooLarge(CIRCULAR) from error
        raise


def _replayed(lowered: LoweredTest, model: Model, choice: Choice, given: Given, wanted: Wanted) -> Replay:
    finals = Finals(lowered, tuple(terms_of(lowered.test.condition)))
    traces = _settled(lowered, choice, given)
    frame = FixedPart(lowered, traces, finals.extents)
    assembly = Assembly(frame)
    values = frame.values_of(traces)
    where = _Where(frame, traces)
    rf = where.reads_from(choice, values)
    co = where.coherence(choice)
    meeting = _meeting(assembly, where, choice)
    observed = _objects(assembly, where, choice)
    relations: dict[str, Rows] = {
        "rf": rf,
        "co": co,
        "sync_fence": where.fence_order(choice),
        **assembly.relations(meeting, observed),
    }
    execution = Execution(frame, values, assembly.sets(observed), relations)
    if not wanted(execution):
        raise InternalError("replay: an execution that is not looked for")
    evaluation = evaluate(model, execution, where.orders(choice))
    last = where.finals(choice, co, values)
    registers = [trace.registers for trace in traces]
    satisfies = finals.holds(lowered.test.condition, registers, last)
    waits = assembly.sentences(values, relations["mbar"], meeting)
    _rest(assembly, evaluation)
    witness = make_witness(model, evaluation, registers, last, waits)
    if witness.ground is not None:
        witness.ground.choice = choice
    return Replay(
        witness,
        satisfies,
        evaluation.failed,
        evaluation.flags,
        bool(waits),
        all(trace.ending.end in (End.REACHED, End.EXIT) for trace in traces),
        given.circular,
        [position(frame, event) for event in frame.events],
        {number: rule for number in range(frame.count) if (rule := rule_of(execution, number))},
    )


def _settled(lowered: LoweredTest, choice: Choice, given: Given) -> list[Trace]:
    """Each thread once. What a choice leaves open of the values that are read follows from who wrote them: the threads
    are run again until nothing changes."""
    starts = choice.starts
    for _ in range(len(choice.rf) + 3):
        meter, known = Meter(_BUDGET), starts.count
        traces = []
        for number, thread in enumerate(lowered.test.threads):
            runner = Runner(lowered, number, starts, None)
            runs = runner.run(given, meter, waits=choice.waiting[number] is not None)
            given.follow(runs.traces)
            found = stopped(runs.traces, choice.waiting[number])
            if found is None:
                raise InternalError(f"replay: thread {thread.name} does not end as the execution found says")
            traces.append(found)
        if not given.learn(lowered, traces) and starts.count == known:
            return traces
    raise InternalError("replay: the values that are read do not settle")


class _Where:
    """Events of an execution by the names in a Choice."""

    def __init__(self, frame: FixedPart, traces: Sequence[Trace]) -> None:
        self.frame = frame
        self._events: dict[tuple[Writer, Side], list[int]] = {}
        self._any: dict[object, int] = {}
        for number, event in enumerate(frame.events):
            record = frame.record_of(event)
            name = None if record is None else record.name
            if isinstance(event.label, InitialWrite):
                self._events.setdefault((None, Side.WRITE), []).append(number)
            elif isinstance(event.label, Access):
                self._events.setdefault((name, event.label.side), []).append(number)
            else:
                self._any[name] = number

    def event(self, name: object) -> int:
        """The only event of a record that is not an access."""
        if name not in self._any:
            raise InternalError(f"replay: there is no event {name}")
        return self._any[name]

    def at(self, name: Writer, side: Side, cell: Cell) -> list[int]:
        """The events of a record that access some byte of a cell."""
        found = []
        for number in self._events.get((name, side), ()):
            other = self.frame.events[number].point.cell
            assert other is not None
            if other.instance == cell.instance and other.first < cell.end and cell.first < other.end:
                found.append(number)
        return found

    def _same_cell(self, events: Iterable[int], number: int) -> list[int]:
        cell = self.frame.events[number].point.cell
        return [one for one in events if self.frame.events[one].point.cell == cell]

    def reads_from(self, choice: Choice, values: Sequence[int | None]) -> Rows:
        """rf: each read reads from exactly one write of its cell and value."""
        pairs: dict[int, set[int]] = {}
        for writer, reader, cell in choice.rf:
            for read in self.at(reader, Side.READ, cell):
                writes = self._same_cell(self.at(writer, Side.WRITE, cell), read)
                if not writes:
                    raise InternalError(f"replay: {writer} does not write {cell}, which {reader} reads from it")
                pairs.setdefault(read, set()).update(writes)
        for number, event in enumerate(self.frame.events):
            if isinstance(event.label, Access) and event.label.side is Side.READ:
                sources = pairs.get(number, set())
                if len(sources) != 1:
                    raise InternalError(f"replay: event {number} reads from {len(sources)} writes")
                if values[next(iter(sources))] != values[number]:
                    raise InternalError(f"replay: event {number} does not return what was written")
        return rows_of([(write, read) for read, writes in pairs.items() for write in writes], self.frame.count)

    def coherence(self, choice: Choice) -> Rows:
        """co: a strict partial order on operations, the same wherever they meet; initial writes first."""
        pairs: set[tuple[int, int]] = set()
        for earlier, later, cell in choice.co:
            for first in self.at(earlier, Side.WRITE, cell):
                pairs.update((first, second) for second in self._same_cell(self.at(later, Side.WRITE, cell), first))
        before: dict[int, set[int]] = {}
        for first, second in pairs:
            before.setdefault(self._operation(first), set()).add(self._operation(second))
        _check_order(_closed(before), "co")  # two operations that share no place are ordered by way of others
        for number, event in enumerate(self.frame.events):
            if isinstance(event.label, InitialWrite):
                later_writes = [n for n, e in enumerate(self.frame.events) if _writes(e.label) and n != number]
                pairs.update((number, one) for one in self._same_cell(later_writes, number))
        rows = rows_of(pairs, self.frame.count)
        for first, second in pairs:
            if self.frame.events[first].record is not None:
                self._same_everywhere(rows, first, second)
        return rows

    def _operation(self, number: int) -> int:
        operation = self.frame.events[number].point.operation
        if operation is None:
            raise InternalError("replay: co relates an initial write")
        return operation

    def _same_everywhere(self, rows: Rows, first: int, second: int) -> None:
        """Where two operations meet, they are ordered alike."""
        others = self._pieces[self._operation(second)]
        for a in self._pieces[self._operation(first)]:
            if any(not rows[a] >> b & 1 for b in self._same_cell(others, a)):
                raise InternalError("replay: co orders two operations differently in different cells")

    @cached_property
    def _pieces(self) -> dict[int, list[int]]:
        """The writes of each operation."""
        found: dict[int, list[int]] = {}
        for number, event in enumerate(self.frame.events):
            if _writes(event.label) and event.point.operation is not None:
                found.setdefault(event.point.operation, []).append(number)
        return found

    def fence_order(self, choice: Choice) -> Rows:
        """sync_fence: a strict partial order on fence.sc that relates every pair whose scopes include each other."""
        pairs = [(self.event(a), self.event(b)) for a, b in choice.sync_fence]
        fences = [n for n, e in enumerate(self.frame.events) if isinstance(e.label, Fence) and e.label.sem is Sem.SC]
        before: dict[int, set[int]] = {}
        for first, second in pairs:
            if first not in fences or second not in fences:
                raise InternalError("replay: sync_fence relates something other than fence.sc")
            before.setdefault(first, set()).add(second)
        _check_order(before, "sync_fence")
        rows, sr = rows_of(pairs, self.frame.count), self.frame.relation("sr")
        for first in fences:
            for second in fences:
                if (
                    first != second
                    and sr[first] >> second & 1
                    and not (rows[first] >> second | rows[second] >> first) & 1
                ):
                    raise InternalError(f"replay: sync_fence leaves {first} and {second} unordered")
        return rows

    def orders(self, choice: Choice) -> dict[int, list[int]]:
        """For each total order, the place of every event in it; events that it does not name come last."""
        found: dict[int, list[int]] = {}
        for index, events in choice.orders:
            ranks = found[index] = [len(events)] * self.frame.count
            for rank, (name, side, cell) in enumerate(events):
                here = [self.event(name)] if side is None or cell is None else self.at(name, side, cell)
                for number in here:
                    ranks[number] = min(ranks[number], rank)
        return found

    def finals(self, choice: Choice, co: Rows, values: Sequence[int | None]) -> dict[Cell, int]:
        """The value that each cell ends with."""
        last: dict[Cell, list[int]] = {}
        for number, event in enumerate(self.frame.events):
            cell = event.point.cell
            if _writes(event.label) and cell is not None and not co[number]:
                last.setdefault(cell, []).append(number)
        chosen = {cell: writes[-1] for cell, writes in last.items()}
        for cell, writer in choice.finals:
            for number in self.at(writer, Side.WRITE, cell):
                where = self.frame.events[number].point.cell
                assert where is not None
                if number not in last[where]:
                    raise InternalError(f"replay: {where} cannot end with event {number}, which is not co-maximal")
                chosen[where] = number
        return {cell: value for cell, number in chosen.items() if (value := values[number]) is not None}


def _writes(label: object) -> bool:
    return isinstance(label, InitialWrite) or (isinstance(label, Access) and label.side is Side.WRITE)


def _closed(before: dict[int, set[int]]) -> dict[int, set[int]]:
    """The transitive closure."""
    found: dict[int, set[int]] = {}
    for first, later in before.items():
        reached, pending = set(later), list(later)
        while pending:
            more = before.get(pending.pop(), set()) - reached
            reached |= more
            pending += more
        found[first] = reached
    return found


def _check_order(before: dict[int, set[int]], what: str) -> None:
    """Is this a strict partial order?"""
    for first, later in before.items():
        for second in later:
            if first == second or first in before.get(second, ()):
                raise InternalError(f"replay: {what} has a cycle")
            if not before.get(second, set()) <= later:
                raise InternalError(f"replay: {what} is not transitive")


def _meeting(assembly: Assembly, where: _Where, choice: Choice) -> Meeting:
    """The way to meet whose generations the choice names."""
    asked = {where.event(name): number for name, number in choice.generations.items()}
    for meeting in meetings(assembly.barriers, assembly.halves, assembly.waiting):
        if meeting.generations == asked or (choice.partial and asked.items() <= meeting.generations.items()):
            if not reductions_agree(assembly.contributions, assembly.barriers, meeting):
                raise InternalError("replay: a barrier reduction does not return the combination of its values")
            return meeting
    raise InternalError("replay: the barriers cannot complete in the way chosen")


def _objects(assembly: Assembly, where: _Where, choice: Choice) -> Observed:
    """The order of updates, and what the tests see, for every mbarrier object."""
    orders = {cell: [where.event(name) for name in names] for cell, names in choice.mbar}
    seen = {}
    for name, (life, over) in choice.seen.items():
        seen[where.event(name)] = (START if life is None else where.event(life), over)
    chosen = []
    for one in assembly.objects:
        walk = _walk(one, orders.pop(one.cell, []), partial=choice.partial)
        if walk is None:
            raise InternalError(f"replay: the operations on {one.cell} cannot have the order chosen")
        its = {test.event: seen.pop(test.event) for test in one.tests if test.event in seen}
        if choice.partial:
            its = next((views for views in one.sightings(walk) if its.items() <= views.items()), its)
        else:
            its = {test.event: (START, -1) for test in one.tests} | its
        if not one.fits(walk, its):
            raise InternalError(f"replay: the tests of {one.cell} cannot see {its}")
        chosen.append((one, walk, its))
    if seen or any(orders.values()):
        raise InternalError("replay: an order of updates, or what a test sees, for what is no such event")
    return observe(chosen)


def _walk(one: MbarrierUses, order: list[int], *, partial: bool) -> ObjectWalk | None:
    """The updates of an object in the order chosen; what a partial choice leaves out comes last, or first of all."""
    walk = one.walk(order)
    if walk is None and partial:
        rest = [update.event for update in one.updates if update.event not in order]
        walk = one.walk([*order, *rest]) or one.walk([*rest, *order])
    return walk


def _rest(assembly: Assembly, evaluation: Evaluation) -> None:
    """In a spin loop that never ends, every read reads a write that no other follows."""
    if not assembly.rests(evaluation.execution.relation("rf"), evaluation.execution.relation("co")):
        raise InternalError("replay: a thread waits for ever, and reads what is overwritten")
