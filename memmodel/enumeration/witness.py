"""A judged execution in the reader's terms.

In: the events of a concrete execution, the model's evaluation of it, its final state. Out: Witness.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memmodel.answer import ShownEvent, Witness
from memmodel.cat.syntax import Kind, Model
from memmodel.enumeration.evaluate import Evaluation
from memmodel.enumeration.execution import ExecutionEvent, from_reads, pairs_of
from memmodel.isa.memory import Location
from memmodel.litmus.syntax import LitmusTest

_ALWAYS = ("po", "rf", "co", "rmw")
_SYNC = ("sync", "base-causality")
"""Relations worth seeing when a model defines them, whether it shows them or not."""

_SILENT = re.compile(r"[usbf](8|16|32|64|128)|f16x2|bf16|pred|global|shared|generic|const|param|ld|st|atom|red")
"""Parts of a mnemonic that say nothing about order: the type, the state space, and what R and W say already."""


def shown_event(test: LitmusTest, events: Sequence[ExecutionEvent], number: int) -> ShownEvent:
    """One event of an execution as a reader sees it; `number` is its uid."""
    event = events[number]
    location = None if event.location is None else str(event.location)
    if event.thread is None:
        text = f"W {location} = {event.value}"
        return ShownEvent(number, f"init {location}", None, None, text, event.tags, location, event.value)
    initial = sum(1 for one in events if one.thread is None)
    assert event.instruction is not None
    return ShownEvent(
        number,
        _label(number - initial),
        test.threads[event.thread].name,
        event.place,
        _text(event),
        event.tags,
        location,
        event.value,
        event.instruction.span,
    )


def _label(number: int) -> str:
    """a … z, aa, ab …"""
    name = chr(ord("a") + number % 26)
    return name if number < 26 else _label(number // 26 - 1) + name


def _text(event: ExecutionEvent) -> str:
    assert event.instruction is not None
    mnemonic = event.instruction.mnemonic
    if event.location is None:
        halves = {"ARRIVE": " (arrive)", "WAIT": " (wait)"}
        return mnemonic + "".join(text for tag, text in halves.items() if tag in event.tags)
    assert event.vaddr is not None
    words = ["R" if "R" in event.tags else "W"]
    words += [part for part in event.instruction.parts if not _SILENT.fullmatch(part)]
    name, index = event.vaddr
    return f"{'.'.join(words)} {name}{f'[{index}]' if index else ''} = {event.value}"


def make_witness(
    test: LitmusTest,
    model: Model,
    evaluation: Evaluation,
    registers: Sequence[Mapping[str, int]],
    memory: Mapping[Location, int],
) -> Witness:
    """The execution that was evaluated, with its final state, as a Witness."""
    execution = evaluation.execution
    events = tuple(shown_event(test, execution.events, number) for number in range(len(execution.events)))
    edges = {name: tuple(pairs_of(execution.relations[name])) for name in _ALWAYS}
    edges["fr"] = tuple(pairs_of(from_reads(execution.relations["rf"], execution.relations["co"])))
    defined = {one.name: one.kind for one in model.definitions}
    for name in dict.fromkeys((*model.shown, *(one for one in _SYNC if one in defined))):
        if defined.get(name, Kind.RELATION) is Kind.RELATION and (name in defined or name in execution.relations):
            edges[name] = tuple(pairs_of(evaluation.relation(name)))
    final = {
        (thread.name, name): value
        for thread, values in zip(test.threads, registers, strict=True)
        for name, value in values.items()
    }
    return Witness(events, edges, final, {str(where): value for where, value in memory.items()})
