"""Run a witness of the other engine again, concretely, and judge it afresh.

In: LoweredTest, Model, Choice. Out: Replay. All that makes a candidate execution well-formed is checked here: what
does not fit is an InternalError, since an engine that hands it over contradicts docs/executions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from memmodel.answer import Budget, Witness
from memmodel.base.graphs import has_cycle
from memmodel.base.labels import Access, Fence, InitialWrite, Issue, Side, is_read, is_write
from memmodel.base.rows import Rows, closure, rows_of
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
from memmodel.referee.chosen_answers import ChosenAnswers, stopped
from memmodel.referee.evaluate import Evaluation, evaluate
from memmodel.referee.finals import Finals
from memmodel.referee.reasons import CIRCULAR
from memmodel.referee.witness import make_witness, rule_of

_BUDGET = Budget(effort=200_000_000, seconds=60.0)
"""Against a choice whose values drive a loop forever."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A witness as judged afresh.

    `satisfies`: the test's condition holds in it. `failed`: the axioms of the model that it violates. `flags`: what the
    flags of the model report (name -> pairs of uids). `waits`: some thread waits for ever. `ended`: every thread came
    to its end. `circular`: some value supports itself. `positions`: where each event comes from. `rules`: what bad
    addresses and undefined instructions break.
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
"""True of an execution that is worth judging: a caller may see without the model that one is not."""


def whatever(execution: Execution) -> bool:
    """Every execution is worth judging."""
    return True


def replay(lowered: LoweredTest, model: Model, choice: Choice, wanted: Wanted = whatever) -> Replay:
    """Build and judge the execution that a choice describes. Raises InternalError if it describes none, or one that is
    not `wanted`; TooLarge if that may be because values in it support themselves: no engine works out which numbers
    fit such a cycle."""
    answers = ChosenAnswers(choice)
    try:
        return _replayed(lowered, model, choice, answers, wanted)
    except InternalError as error:
        if answers.circular:
            raise TooLarge(CIRCULAR) from error
        raise


def _replayed(lowered: LoweredTest, model: Model, choice: Choice, answers: ChosenAnswers, wanted: Wanted) -> Replay:
    finals = Finals(lowered, tuple(terms_of(lowered.test.condition)))
    traces = _final_traces(lowered, choice, answers)
    frame = FixedPart(lowered, traces, finals.extents)
    assembly = Assembly(frame)
    values = frame.values_of(traces)
    by_name = _EventsByName(frame, traces)
    rf = by_name.reads_from(choice, values)
    co = by_name.coherence(choice)
    meeting = _meeting(assembly, by_name, choice)
    observed = _objects(assembly, by_name, choice)
    relations: dict[str, Rows] = {
        "rf": rf,
        "co": co,
        "sync_fence": by_name.fence_order(choice),
        **assembly.relations(meeting, observed),
    }
    execution = Execution(frame, values, assembly.sets(observed), relations)
    if not wanted(execution):
        raise InternalError("replay: an execution that is not looked for")
    evaluation = evaluate(model, execution, by_name.orders(choice))
    last = by_name.finals(choice, co, values)
    registers = [trace.registers for trace in traces]
    satisfies = finals.holds(lowered.test.condition, registers, last)
    waits = assembly.sentences(values, relations["mbar"], meeting)
    _check_waits(assembly, evaluation)
    witness = make_witness(model, evaluation, registers, last, waits)
    if witness.evaluated is not None:
        witness.evaluated.choice = choice
    return Replay(
        witness,
        satisfies,
        evaluation.failed,
        evaluation.flags,
        bool(waits),
        all(trace.ending.end in (End.REACHED, End.EXIT) for trace in traces),
        answers.circular,
        [position(frame, event) for event in frame.events],
        {number: rule for number in range(frame.count) if (rule := rule_of(execution, number))},
    )


def _final_traces(lowered: LoweredTest, choice: Choice, answers: ChosenAnswers) -> list[Trace]:
    """A trace of each thread. What a choice leaves open of the values that are read follows from who wrote them: the
    threads are run again until nothing changes."""
    starts = choice.starts
    for _ in range(len(choice.rf) + 3):
        meter, known = Meter(_BUDGET), starts.count
        traces = []
        for number, thread in enumerate(lowered.test.threads):
            runner = Runner(lowered, number, starts, None)
            runs = runner.run(answers, meter, waits=choice.waiting[number] is not None)
            answers.note_dependencies(runs)
            trace = stopped(runs, choice.waiting[number])
            if trace is None:
                raise InternalError(f"replay: thread {thread.name} does not end as the execution found says")
            traces.append(trace)
        if not answers.learn(lowered, traces) and starts.count == known:
            return traces
    raise InternalError("replay: the values that are read do not settle")


class _EventsByName:
    """Events of an execution by the names in a Choice."""

    def __init__(self, frame: FixedPart, traces: Sequence[Trace]) -> None:
        self.frame = frame
        self._events: dict[tuple[Writer, Side], list[int]] = {}
        self._others: dict[tuple[object, bool], int] = {}
        for number, event in enumerate(frame.events):
            record = frame.record_of(event)
            name = None if record is None else record.name
            if isinstance(event.label, InitialWrite):
                self._events.setdefault((None, Side.WRITE), []).append(number)
            elif isinstance(event.label, Access):
                self._events.setdefault((name, event.label.side), []).append(number)
            else:
                self._others[name, isinstance(event.label, Issue)] = number

    def event(self, name: object, *, issue: bool = False) -> int:
        """The event of a record that is no access: its issue, or the only other one."""
        if (name, issue) not in self._others:
            raise InternalError(f"replay: there is no event {name}")
        return self._others[name, issue]

    def at(self, name: Writer, side: Side, cell: Cell) -> list[int]:
        """The events of a record that access some byte of a cell."""
        events = []
        for number in self._events.get((name, side), ()):
            accessed = self.frame.events[number].point.cell
            assert accessed is not None
            if accessed.instance == cell.instance and accessed.first < cell.end and cell.first < accessed.end:
                events.append(number)
        return events

    def _same_cell(self, events: Iterable[int], number: int) -> list[int]:
        cell = self.frame.events[number].point.cell
        return [event for event in events if self.frame.events[event].point.cell == cell]

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
            if is_read(event.label):
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
        after: dict[int, set[int]] = {}
        for first, second in pairs:
            after.setdefault(self._operation(first), set()).add(self._operation(second))
        if has_cycle(after):  # two operations that share no cell may be ordered by way of others
            raise InternalError("replay: co has a cycle")
        for number, event in enumerate(self.frame.events):
            if isinstance(event.label, InitialWrite):
                later_writes = [n for n, e in enumerate(self.frame.events) if is_write(e.label) and n != number]
                pairs.update((number, later) for later in self._same_cell(later_writes, number))
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
        """Two operations are ordered alike in all cells in which they meet. Raises InternalError."""
        others = self._pieces[self._operation(second)]
        for a in self._pieces[self._operation(first)]:
            if any(not rows[a] >> b & 1 for b in self._same_cell(others, a)):
                raise InternalError("replay: co orders two operations differently in different cells")

    @cached_property
    def _pieces(self) -> dict[int, list[int]]:
        """The writes of each operation."""
        pieces: dict[int, list[int]] = {}
        for number, event in enumerate(self.frame.events):
            if is_write(event.label) and event.point.operation is not None:
                pieces.setdefault(event.point.operation, []).append(number)
        return pieces

    def fence_order(self, choice: Choice) -> Rows:
        """sync_fence: a strict partial order on fence.sc that relates every pair whose scopes include each other."""
        pairs = [(self.event(a), self.event(b)) for a, b in choice.sync_fence]
        fences = [n for n, e in enumerate(self.frame.events) if isinstance(e.label, Fence) and e.label.sem is Sem.SC]
        if not {fence for pair in pairs for fence in pair} <= set(fences):
            raise InternalError("replay: sync_fence relates something other than fence.sc")
        rows, sr = rows_of(pairs, self.frame.count), self.frame.relation("sr")
        closed = closure(rows)
        if any(row >> fence & 1 for fence, row in enumerate(closed)):
            raise InternalError("replay: sync_fence has a cycle")
        if closed != rows:
            raise InternalError("replay: sync_fence is not transitive")
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
        places: dict[int, list[int]] = {}
        for index, events in choice.orders:
            ranks = places[index] = [len(events)] * self.frame.count
            for rank, (name, side, cell, issue) in enumerate(events):
                if side is not None and cell is not None:
                    named = self.at(name, side, cell)
                else:
                    named = [self.event(name, issue=issue)]
                for number in named:
                    ranks[number] = min(ranks[number], rank)
        return places

    def finals(self, choice: Choice, co: Rows, values: Sequence[int | None]) -> dict[Cell, int]:
        """The value that each cell ends with."""
        last: dict[Cell, list[int]] = {}
        for number, event in enumerate(self.frame.events):
            cell = event.point.cell
            if is_write(event.label) and cell is not None and not co[number]:
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


def _meeting(assembly: Assembly, by_name: _EventsByName, choice: Choice) -> Meeting:
    """The way to meet whose generations the choice names."""
    asked = {by_name.event(name): number for name, number in choice.generations.items()}
    for meeting in meetings(assembly.barriers, assembly.halves, assembly.waiting):
        if meeting.generations == asked or (choice.partial and asked.items() <= meeting.generations.items()):
            if not reductions_agree(assembly.contributions, assembly.barriers, meeting):
                raise InternalError("replay: a barrier reduction does not return the combination of its values")
            return meeting
    raise InternalError("replay: the barriers cannot complete in the way chosen")


def _objects(assembly: Assembly, by_name: _EventsByName, choice: Choice) -> Observed:
    """The order of updates, and what the tests see, for every mbarrier object."""
    orders = {cell: [by_name.event(name) for name in names] for cell, names in choice.mbar}
    seen = {}
    for name, (life, over) in choice.seen.items():
        seen[by_name.event(name)] = (START if life is None else by_name.event(life), over)
    chosen = []
    for uses in assembly.objects:
        walk = _walk(uses, orders.pop(uses.cell, []), partial=choice.partial)
        if walk is None:
            raise InternalError(f"replay: the operations on {uses.cell} cannot have the order chosen")
        views = {test.event: seen.pop(test.event) for test in uses.tests if test.event in seen}
        if choice.partial:
            views = next((each for each in uses.possible_views(walk) if views.items() <= each.items()), views)
        else:
            views = {test.event: (START, -1) for test in uses.tests} | views
        if not uses.can_have_seen(walk, views):
            raise InternalError(f"replay: the tests of {uses.cell} cannot see {views}")
        chosen.append((uses, walk, views))
    if seen or any(orders.values()):
        raise InternalError("replay: an order of updates, or what a test sees, for what is no such event")
    return observe(chosen)


def _walk(uses: MbarrierUses, order: list[int], *, partial: bool) -> ObjectWalk | None:
    """The updates of an object in the order chosen; what a partial choice leaves out comes last, or first of all."""
    walk = uses.walk(order)
    if walk is None and partial:
        missing = [update.event for update in uses.updates if update.event not in order]
        walk = uses.walk([*order, *missing]) or uses.walk([*missing, *order])
    return walk


def _check_waits(assembly: Assembly, evaluation: Evaluation) -> None:
    """In a spin loop that never ends, every read reads a write that no other follows."""
    if not assembly.waits_read_last_writes(evaluation.execution.relation("rf"), evaluation.execution.relation("co")):
        raise InternalError("replay: a thread waits for ever, and reads what is overwritten")
