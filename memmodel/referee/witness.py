"""A judged execution in the reader's terms.

In: an execution, the model's evaluation of it, its final state. Out: Witness.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from memmodel.answer import EvaluatedExecution, ShownEvent, Witness
from memmodel.base.graphs import reached
from memmodel.base.kinds import Kind
from memmodel.base.labels import (
    Access,
    Barrier,
    Fault,
    Mark,
    Marker,
    Mbarrier,
    Side,
    Signal,
    Undefined,
)
from memmodel.base.rows import pairs_of
from memmodel.base.sets import DECIDED, SETS, names_of
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import ConcreteEvent, Execution, FixedPart
from memmodel.concrete.records import BarrierRecord, ObjectRecord
from memmodel.litmus.syntax import LitmusTest, RegValue, Term, terms_of
from memmodel.memory.bytes import Cell
from memmodel.program.spelling import spell_cell, spell_value
from memmodel.referee.evaluate import Evaluation

_ALWAYS = ("po", "rf", "co", "rmw")
_SYNC = ("sync", "base-causality")
"""Relations worth seeing when a model defines them, whether it shows them or not."""

_SILENT = re.compile(
    r"[usbf](8|16|32|64|128)|f16x2|bf16|pred|global|shared(::cta|::cluster)?|generic|const|param|ld|st|atom|red"
    r"|mbarrier::complete_tx::(bytes|16B)|mbarrier::report::fabric|bulk_group"
)
"""Parts of a mnemonic that say nothing about order: type, state space, what R and W say, how the end is told."""

SPACED = tuple(row for row in SETS if row.placed)
_PLAIN = frozenset(row.name for row in SETS if not row.placed)


def shown_event(execution: Execution, number: int) -> ShownEvent:
    """One event of an execution as a reader sees it; `number` is its uid."""
    frame = execution.frame
    event, value = frame.events[number], execution.values[number]
    test, place = frame.lowered.test, event.point.place
    cell = event.point.cell if isinstance(event.label, Access) or event.record is None else None
    location = None if cell is None else spell_cell(frame.lowered.space, cell)
    tags = _tags(execution, event, number)
    if event.record is None:
        assert cell is not None and value is not None
        text = f"W {location} = {spell_value(frame.lowered.space, cell, value)}"
        return ShownEvent(number, f"init {location}", None, None, text, tags, location, value)
    initial = sum(1 for other in frame.events if other.record is None)
    instruction = frame.instruction_of(event)
    return ShownEvent(
        number,
        _letters(number - initial),
        test.threads[event.record[0]].name,
        place,
        _text(frame, event, value),
        tags,
        location,
        value,
        None if instruction is None else instruction.span,
    )


def _tags(execution: Execution, event: ConcreteEvent, number: int) -> frozenset[str]:
    """The base sets that an event is in."""
    cell = event.point.cell
    placed = [row.name for row in SPACED if row.has(cell)]
    tags = names_of(event.label) & {*placed, *_PLAIN}
    return tags | {name for name in DECIDED if execution.set(name) >> number & 1}


def _letters(number: int) -> str:
    """a … z, aa, ab …"""
    name = chr(ord("a") + number % 26)
    return name if number < 26 else _letters(number // 26 - 1) + name


def _text(frame: FixedPart, event: ConcreteEvent, value: int | None) -> str:
    instruction, label, cell = frame.instruction_of(event), event.label, event.point.cell
    if instruction is None or (isinstance(label, Mark) and label.what is Marker.END):
        return "end of the thread"
    space = frame.lowered.space
    match label:
        case Barrier(half=half):
            record = frame.record_of(event)
            assert isinstance(record, BarrierRecord)
            return f"{instruction.mnemonic} ({half.value}, {record.barrier.text})"
        case Mbarrier() if cell is not None:
            return f"{instruction.mnemonic} {spell_cell(space, cell)}"
        case Signal(action=action) if cell is not None:
            record = frame.record_of(event)
            failed = " (failed)" if isinstance(record, ObjectRecord) and record.failed else ""
            return f"signal.{action.value} {spell_cell(space, cell)}{failed}"
        case Fault(reason):
            return f"{instruction.mnemonic}: {reason}"
        case Undefined(rule):
            return f"{instruction.mnemonic}: {rule}"
        case Access(side=side) if cell is not None and value is not None:
            words = [side.value if side is Side.READ else "W"]
            words += [part for part in instruction.parts if not _SILENT.fullmatch(part)]
            return f"{'.'.join(words)} {spell_cell(space, cell, event.point.name)} = {spell_value(space, cell, value)}"
        case _:
            return instruction.mnemonic


def rule_of(execution: Execution, number: int) -> str:
    """What a bad address or an undefined instruction breaks."""
    match execution.events[number].label:
        case Fault(reason):
            return reason
        case Undefined(rule):
            return rule
        case _:
            return ""


def make_witness(
    model: Model,
    evaluation: Evaluation,
    registers: Sequence[Mapping[str, int]],
    memory: Mapping[Cell, int],
    waits: Sequence[str] = (),
) -> Witness:
    """The execution that was evaluated, with its final state, as a Witness."""
    spell = partial(_spelled, model, evaluation, registers, memory, waits)
    return Witness.of(EvaluatedExecution(evaluation.execution, evaluation.ranks, spell))


def _spelled(
    model: Model,
    evaluation: Evaluation,
    registers: Sequence[Mapping[str, int]],
    memory: Mapping[Cell, int],
    waits: Sequence[str],
) -> Witness:
    execution = evaluation.execution
    frame = execution.frame
    events = tuple(shown_event(execution, number) for number in range(len(frame.events)))
    edges = {name: tuple(pairs_of(execution.relation(name))) for name in _ALWAYS}
    edges["fr"] = tuple(_from_reads(edges["rf"], edges["co"]))
    defined = {definition.name: definition.kind for definition in model.definitions}
    for name in dict.fromkeys((*model.shown, *(name for name in _SYNC if name in defined))):
        if defined.get(name, Kind.RELATION) is Kind.RELATION:
            edges[name] = tuple(pairs_of(evaluation.relation(name)))
    final = {
        (thread.name, name): value
        for thread, values in zip(frame.lowered.test.threads, registers, strict=True)
        for name, value in values.items()
    }
    space = frame.lowered.space
    order = {instance: number for number, instance in enumerate(space.instances)}
    cells = sorted(memory, key=lambda cell: (order[cell.instance], cell.first))
    ends = {spell_cell(space, cell): spell_value(space, cell, memory[cell]) for cell in cells}
    named = frozenset((term.thread, term.register) for term in _terms(frame.lowered.test) if isinstance(term, RegValue))
    return Witness(events, edges, final, ends, tuple(waits), named)


def _terms(test: LitmusTest) -> Iterator[Term]:
    """What the questions of a test name, and what it wants shown."""
    yield from (*test.shown, *terms_of(test.condition))
    for question in test.more_questions:
        yield from (*question.shown, *terms_of(question.condition))


def _from_reads(rf: Sequence[tuple[int, int]], co: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """A read to the writes after the one that it reads from, in the transitive closure of co."""
    after: dict[int, set[int]] = {}
    for first, second in co:
        after.setdefault(first, set()).add(second)
    pairs = []
    for write, read in rf:
        overwriting = reached(after.get(write, ()), lambda other: after.get(other, ()))
        pairs += [(read, later) for later in sorted(overwriting)]
    return pairs
