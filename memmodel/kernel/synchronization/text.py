"""The synchronization report of a kernel as text, and as JSON values.

In: SynchronizationReport. Out: lines; a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memmodel.kernel.mutate.together import MinimumSet
from memmodel.kernel.output.text import short_name
from memmodel.kernel.synchronization.report import (
    Necessity,
    Synchronization,
    SynchronizationReport,
    name_of,
    place,
)
from memmodel.ptx.module.syntax import PtxInstruction

LINE = "line "

MORE = {"seconds ran out": "--timeout", "memory ran out": "--memory"}
"""The option that gives more, by how the sentence ends that says what ran out."""


def report_lines(report: SynchronizationReport) -> list[str]:
    """A head, then each synchronizing instruction with what it does."""
    text = [headline(report), *late_lines(report), *minimum_lines(report.minimum, undecided_in(report))]
    for synchronization in report.synchronizations:
        text += _lines(synchronization)
    return text


def headline(report: SynchronizationReport) -> str:
    """How many instructions are needed."""
    counts = ", ".join(f"{report.count(need)} {need.value}" for need in Necessity if report.count(need))
    total = len(report.synchronizations)
    word = "synchronization" if total == 1 else "synchronizations"
    return f"{short_name(report.base.entry)} ({report.base.word}): {total} {word}" + (f": {counts}" if counts else "")


def late_lines(report: SynchronizationReport) -> list[str]:
    """Why not all was judged, and how to go on."""
    option = next((option for word, option in MORE.items() if report.late.endswith(word)), "")
    more = f"; {option} gives more" if option else ""
    return [f"not all was judged: {report.late}{more}"] if report.late else []


def undecided_in(report: SynchronizationReport) -> tuple[PtxInstruction, ...]:
    """The instructions of which it is not decided whether they are needed."""
    return tuple(it.instruction for it in report.synchronizations if it.need is Necessity.OPEN)


def minimum_lines(minimum: MinimumSet | None, undecided: tuple[PtxInstruction, ...] = ()) -> list[str]:
    """What can be left out at once. `undecided`: instructions that may be needed or not."""
    if minimum is None:
        return []
    if not (minimum.dropped or minimum.kept):
        if undecided:
            return [f"nothing is known to go; undecided: {_listed(undecided)}"]
        return ["nothing can go, alone or together: each set was judged"] if minimum.exact else []
    can, beside = ("can go", "it") if len(minimum.dropped) == 1 else ("can go together", "these")
    known = "is known to" if undecided or minimum.untried else "can"
    rest = f"beside {beside}, nothing else {known}"
    if undecided:
        rest += f"; undecided: {_listed(undecided)}"
    if minimum.untried:
        rest += f"; not tried: {minimum.untried} that take another verdict each"
    if minimum.late:
        rest = "not all others were tried"
    text = [f"{can}: {_listed(minimum.dropped)}; {rest}"]
    if minimum.exact and not undecided:
        text.append("  what is left is the least: each larger set was judged")
    else:
        text.append("  what is left is an upper bound: another set may leave fewer")
    if minimum.kept:
        text.append(f"  needless alone, but not beside {beside}: {_listed(minimum.kept)}")
    return text


def _listed(instructions: tuple[PtxInstruction, ...]) -> str:
    """Instructions by their names: `2 bar.sync (lines 386, 393), fence.proxy.async (k.cu:7)`."""
    by_name: dict[str, list[PtxInstruction]] = {}
    for instruction in instructions:
        by_name.setdefault(name_of(instruction), []).append(instruction)
    return ", ".join(
        f"{f'{len(those)} ' if len(those) > 1 else ''}{name} ({_places(those)})" for name, those in by_name.items()
    )


def _places(instructions: list[PtxInstruction]) -> str:
    """Where some instructions stand, each place once."""
    where = list(dict.fromkeys(map(place, instructions)))
    if len(where) > 1 and all(text.startswith(LINE) for text in where):
        return "lines " + ", ".join(text.removeprefix(LINE) for text in where)
    return ", ".join(where)


def _lines(synchronization: Synchronization) -> Iterator[str]:
    instruction = synchronization.instruction
    yield f"{place(instruction)}: {instruction.opcode}: {synchronization.need.value}"
    if synchronization.phrase:
        yield f"  {synchronization.phrase}"
    if synchronization.without:
        yield f"  {synchronization.without}"
    for what, why in synchronization.weaker:
        yield f"  weaker is enough: {what}" + (f"; {why}" if why else "")


def report_record(report: SynchronizationReport) -> dict[str, Any]:
    """The report as JSON values."""
    minimum = report.minimum
    return {
        "entry": report.base.entry,
        "verdict": report.base.word,
        "synchronizations": [_record(synchronization) for synchronization in report.synchronizations],
        "minimum": None
        if minimum is None
        else {
            "dropped": [instruction.line for instruction in minimum.dropped],
            "kept": [instruction.line for instruction in minimum.kept],
            "exact": minimum.exact and not undecided_in(report),
            "untried": minimum.untried,
        },
    }


def _record(synchronization: Synchronization) -> dict[str, Any]:
    return {
        "line": synchronization.instruction.line,
        "place": place(synchronization.instruction),
        "instruction": synchronization.instruction.opcode,
        "need": synchronization.need.value,
        "phrase": synchronization.phrase,
        "without": synchronization.without,
        "weaker": [{"change": what, "why": why} for what, why in synchronization.weaker],
        "orders": [
            {
                "memory": ordered.memory,
                "first": ordered.first.line,
                "second": ordered.second.line,
                "sides": None if ordered.sides is None else [side.value for side in ordered.sides],
                "pairs": ordered.count,
            }
            for ordered in synchronization.orders
        ],
    }
