"""A verdict on a launch as JSON values.

In: KernelVerdict. Out: the values of a `KernelRecord`. docs/json.md lists the members. pydantic is loaded with this
file, so only where JSON is wanted.
"""

from __future__ import annotations

from dataclasses import asdict

from memmodel.kernel.order.verdict import FindingPlace, KernelFinding, KernelVerdict
from memmodel.kernel.output.text import locations
from memmodel.kernel.repair.search import KernelRepair, KernelRepairs
from memmodel.records.kernels import (
    KernelAssumptionRecord,
    KernelChangeRecord,
    KernelCoverageRecord,
    KernelFindingRecord,
    KernelPlaceRecord,
    KernelReadingRecord,
    KernelRecord,
    KernelRepairRecord,
    KernelSchedulesRecord,
    KernelStatisticsRecord,
    KernelThreadRecord,
)


def record(verdict: KernelVerdict, repairs: KernelRepairs | None = None, file: str = "") -> dict[str, object]:
    """The verdict as JSON values, with the repairs that were found. `file`: the file that was asked about."""
    return KernelRecord(
        entry=verdict.entry,
        model=verdict.model,
        verdict=verdict.word,
        grid=verdict.launch.grid,
        block=verdict.launch.block,
        ctas=tuple(verdict.ctas),
        findings=tuple(map(finding, verdict.findings)),
        open=tuple(verdict.unsettled),
        choices=tuple(verdict.choices),
        schedules=KernelSchedulesRecord(explored=verdict.explored, all=verdict.exhaustive or not verdict.choices),
        readings=tuple(
            KernelReadingRecord(
                reading=reading.name,
                answer=reading.answer,
                gone=tuple(map(finding, reading.gone)),
                new=tuple(map(finding, reading.new)),
            )
            for reading in verdict.readings
        ),
        beyond=dict(verdict.beyond),
        notes=tuple(verdict.notes),
        assumptions=tuple(
            KernelAssumptionRecord(assumption=what, needs=needs)
            for what, needs in (verdict.assumptions | _guesses(verdict)).items()
        ),
        coverage=None if verdict.coverage is None else KernelCoverageRecord.of(verdict.coverage),
        smaller=dict(verdict.smaller),
        whole=verdict.whole or not verdict.ctas,
        statistics=KernelStatisticsRecord(**asdict(verdict.statistics)),
        repairs=None if repairs is None else tuple(map(repair, repairs.shown)),
        may_depend_on=verdict.possible.names,
        file=file,
    ).json_values()


def _guesses(verdict: KernelVerdict) -> dict[str, str]:
    return {f"not given: {what}": how for what, how in verdict.launch.guessed.items()}


def repair(changed: KernelRepair) -> KernelRepairRecord:
    """Changes of the text."""
    changes = tuple(KernelChangeRecord(line=edit.line, what=edit.what) for edit in changed.edits)
    return KernelRepairRecord(
        changes=changes,
        diff=changed.diff,
        verdict=changed.after.word,
        left=len(changed.left),
        may_depend_on=changed.after.possible.names,
    )


def finding(reported: KernelFinding) -> KernelFindingRecord:
    """One finding."""
    return KernelFindingRecord(
        rule=reported.rule,
        kind=reported.kind,
        harmless=reported.harmless,
        message=reported.message,
        where=reported.where,
        count=reported.count,
        reason=reported.reason or None,
        missing=reported.missing,
        places=tuple(map(_side, reported.sides)),
        way=tuple(map(_side, reported.way)),
        ignored=reported.ignored or None,
    )


def _side(side: FindingPlace) -> KernelPlaceRecord:
    span = side.instruction.span
    stage = side.stage if side.stage >= 0 else None
    thread = KernelThreadRecord(
        cta=side.cta, warp=side.warp, lane=side.lane, role=side.role, round=side.turn, stage=stage
    )
    return KernelPlaceRecord(
        file=span.source.name,
        line=span.line,
        column=span.column,
        instruction=side.instruction.opcode,
        what=side.what,
        thread=thread if side.cta >= 0 else None,
        source=tuple(locations(side.instruction.location)),
    )
