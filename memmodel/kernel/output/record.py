"""A verdict on a launch as JSON values.

In: KernelVerdict. Out: dictionaries. docs/kernels.md lists the members.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memmodel.kernel.judge.verdict import FindingPlace, KernelFinding, KernelVerdict
from memmodel.kernel.output.text import locations


def record(verdict: KernelVerdict) -> dict[str, Any]:
    """The verdict as JSON values."""
    return {
        "entry": verdict.entry,
        "model": verdict.model,
        "verdict": verdict.word,
        "ctas": list(verdict.ctas) or "all",
        "findings": [finding(one) for one in verdict.findings],
        "open": verdict.open,
        "choices": verdict.choices,
        "schedules": {"explored": verdict.explored, "all": verdict.exhaustive or not verdict.choices},
        "readings": [
            {
                "reading": one.name,
                "answer": one.answer,
                "gone": [finding(other) for other in one.gone],
                "new": [finding(other) for other in one.new],
            }
            for one in verdict.readings
        ],
        "beyond": verdict.beyond,
        "notes": verdict.notes,
        "statistics": asdict(verdict.statistics),
    }  # fmt: skip


def finding(one: KernelFinding) -> dict[str, Any]:
    """One finding."""
    return {
        "rule": one.rule,
        "kind": one.kind,
        "harmless": one.harmless,
        "message": one.message,
        "where": one.where,
        "count": one.count,
        "reason": one.reason or None,
        "missing": one.missing,
        "places": [_side(side) for side in one.sides],
        "way": [_side(side) for side in one.way],
    }


def _side(side: FindingPlace) -> dict[str, Any]:
    span = side.instruction.span
    thread = {"cta": side.cta, "warp": side.warp, "lane": side.lane, "role": side.role, "round": side.turn}
    return {
        "file": span.source.name,
        "line": span.line,
        "column": span.column,
        "instruction": side.instruction.opcode,
        "what": side.what,
        "thread": thread if side.cta >= 0 else None,
        "source": locations(side.instruction.location),
    }
