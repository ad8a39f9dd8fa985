"""A verdict on a launch as text and as JSON.

In: Verdict. Out: lines, and JSON values.
"""

from __future__ import annotations

from typing import Any

from memmodel.kernel.judge.verdict import FindingPlace, KernelFinding, KernelVerdict
from memmodel.kernel.text.syntax import Location

SHOWN = 20


def lines(verdict: KernelVerdict) -> list[str]:
    """The verdict, then each finding with its places, then what is open."""
    launch, numbers = verdict.launch, verdict.statistics
    grid = "×".join(str(one) for one in launch.grid)
    block = "×".join(str(one) for one in launch.block)
    found = [f"{verdict.word}: {verdict.entry}, grid {grid}, block {block}, all CTAs, under {verdict.model}"]
    found.append(
        f"  {numbers.threads} threads in {numbers.roles} roles, {numbers.instructions:,} instructions, "
        f"{numbers.accesses:,} accesses, {numbers.events:,} events, {numbers.judged:,} judged"
    )
    for one in verdict.findings[:SHOWN]:
        found += _finding(one)
    if len(verdict.findings) > SHOWN:
        found.append(f"and {len(verdict.findings) - SHOWN} findings more")
    if verdict.choices:
        found.append(f"{'every one of' if verdict.exhaustive else ''} {verdict.explored} schedules explored, because".strip())
        found += [f"  {reason}" for reason in verdict.choices[:SHOWN]]
    if verdict.open:
        found.append("not settled for every schedule:" if verdict.findings else "undecided:")
        found += [f"  {reason}" for reason in verdict.open[:SHOWN]]
        if len(verdict.open) > SHOWN:
            found.append(f"  and {len(verdict.open) - SHOWN} reasons more")
    return found


def _finding(finding: KernelFinding) -> list[str]:
    head = f"{finding.rule}: {finding.message}" if finding.message else finding.rule
    more = f" ({finding.count} alike)" if finding.count > 1 else ""
    found = [head + (f", {finding.where}" if finding.where else "") + more]
    for side in finding.sides:
        span = side.instruction.span
        who = f", CTA {side.cta} warp {side.warp} lane {side.lane}" if side.cta >= 0 else ""
        found.append(f"  {span}: {side.instruction.opcode}: {side.what}{who}")
        location = side.instruction.location
        while location is not None:
            found.append(f"    from {location}")
            location = location.caller
    return found


def record(verdict: KernelVerdict) -> dict[str, Any]:
    """The verdict as JSON values."""
    numbers = verdict.statistics
    return {
        "entry": verdict.entry,
        "model": verdict.model,
        "verdict": verdict.word,
        "findings": [
            {
                "rule": one.rule,
                "kind": one.kind,
                "message": one.message,
                "where": one.where,
                "count": one.count,
                "places": [_side(side) for side in one.sides],
            }
            for one in verdict.findings
        ],
        "open": verdict.open,
        "statistics": {name: getattr(numbers, name) for name in numbers.__dataclass_fields__},
    }


def _side(side: FindingPlace) -> dict[str, Any]:
    span = side.instruction.span
    return {
        "file": span.source.name,
        "line": span.line,
        "column": span.column,
        "instruction": side.instruction.opcode,
        "what": side.what,
        "source": _locations(side.instruction.location),
    }


def _locations(location: Location | None) -> list[str]:
    found = []
    while location is not None:
        found.append(str(location))
        location = location.caller
    return found
