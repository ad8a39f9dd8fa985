"""One execution as text: its events by thread, the edges between them, the final state.

In: Witness. Out: lines. Colour is the caller's: every word that may have one goes through `style(text, role)`.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.answer import ShownEvent, Witness
from memmodel.report.graph import BASIC, shown_edges

Style = Callable[[str, str], str]


def plain(text: str, role: str) -> str:
    """The style without colour."""
    return text


def execution_lines(witness: Witness, style: Style = plain) -> list[str]:
    """The start, events by thread in program order with values and where reads read from, edges, the end.

    Asynchronous events, which have no place in that order, are indented below the instruction that issued them.
    """
    events = [event for event in witness.events if event.thread is not None]
    label = {event.uid: event.label for event in witness.events}
    source = {read: f"from {label[write]}" for write, read in witness.edges.get("rf", ()) if write in label}
    sources = max((len(text) for text in source.values()), default=0)
    tags = max((len(event.label) for event in events), default=0)
    texts = {event.uid: ("  " if "ASYNC" in event.tags else "") + event.text for event in events}
    width = max(map(len, texts.values()), default=0)
    margin = max((len(event.thread or "") for event in events), default=0)
    begin = initial_state(witness)
    lines, last = [f"at the start: {begin}"] if begin else [], ""
    for event in events:
        name = (event.thread or "") if event.thread != last else ""
        head = f"{name:<{margin}}  {event.label:>{tags}}: {texts[event.uid]:<{width}}"
        line = f"line {event.line}" if event.line else ""
        lines.append(f"{head}  {source.get(event.uid, ''):<{sources}}  {line}".rstrip())
        last = event.thread or ""
    edges = shown_edges(witness)
    for name in dict.fromkeys(edge.name for edge in edges if edge.name != "rf"):
        pairs = ", ".join(f"{label[edge.first]} -> {label[edge.second]}" for edge in edges if edge.name == name)
        lines.append(f"{style(name, 'name' if name in BASIC else 'good')}: {pairs}")
    lines += witness.waits
    if end := final_state(witness):
        lines.append(f"at the end: {end}")
    return lines


def initial_state(witness: Witness) -> str:
    """`x = 0, y = 0`; locations that no thread accessed are left out."""
    used = _accessed(witness)
    first = (event for event in witness.events if event.thread is None and event.location in used)
    return ", ".join(event.text.removeprefix("W ") for event in first)


def final_state(witness: Witness) -> str:
    """`P1:r0 = 1, P1:r1 = 0; x = 1, y = 1`: the registers that the questions name, the locations that were accessed."""
    used = _accessed(witness)
    registers = ", ".join(
        f"{thread}:{name} = {_number(value)}"
        for (thread, name), value in witness.registers.items()
        if witness.asked is None or (thread, name) in witness.asked
    )
    memory = ", ".join(f"{name} = {value}" for name, value in witness.memory.items() if name in used)
    return "; ".join(part for part in (registers, memory) if part)


def _number(value: int) -> str:
    """An address is easier to know again in hexadecimal."""
    return str(value) if value < 1 << 32 else f"{value:#x}"


def waiting(witness: Witness) -> list[ShownEvent]:
    """The last event of each thread that waits for ever."""
    last = {event.thread: event for event in witness.events if event.thread and "ASYNC" not in event.tags}
    return [event for name, event in last.items() if any(text.startswith(f"{name} waits") for text in witness.waits)]


def _accessed(witness: Witness) -> set[str | None]:
    """The locations that some thread accesses in the execution."""
    return {event.location for event in witness.events if event.thread is not None}
