"""What `fix` and `weaken` found, as JSON values. In: Fixed, Weaker. Out: the values of records (docs/json.md)."""

from __future__ import annotations

from memmodel.records.kernels import FixRecord, RepairRecord, WeakenRecord
from memmodel.repair.fix import Fixed, Repair
from memmodel.repair.weaken import Weaker


def fix_record(found: Fixed) -> dict[str, object]:
    """The repairs of a test."""
    repairs = tuple(_repair(one) for one in found.repairs)
    return FixRecord(
        file=found.name, wrong=found.wrong, repairs=repairs, reason=found.reason, tried=found.tried
    ).json_values()


def _repair(one: Repair) -> RepairRecord:
    instead = tuple(map(tuple, one.instead))
    return RepairRecord(
        cost=one.cost, changes=tuple(edit.what for edit in one.changes), diff=one.diff(), instead=instead
    )


def weaken_record(found: Weaker) -> dict[str, object]:
    """What a test does not need."""
    return WeakenRecord(
        file=found.name,
        saves=found.saves,
        changes=tuple(edit.what for edit in found.changes),
        diff=found.diff(),
        reason=found.reason,
        cheapest=found.best,
        tried=found.tried,
    ).json_values()
