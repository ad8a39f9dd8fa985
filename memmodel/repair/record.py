"""What `fix`, `weaken` and `sync` found, as JSON values.

In: Fixed, Weaker, Synchronized. Out: the values of records (docs/json.md).
"""

from __future__ import annotations

from memmodel.records.kernels import FixRecord, RepairRecord, SyncRecord, WeakenRecord
from memmodel.repair.fix import Fixed, Repair
from memmodel.repair.synchronizing.synchronize import Synchronized
from memmodel.repair.weaken import Weaker


def fix_record(fixed: Fixed) -> dict[str, object]:
    """The repairs of a test."""
    repairs = tuple(_repair(repair) for repair in fixed.repairs)
    return FixRecord(
        file=fixed.name, wrong=fixed.wrong, repairs=repairs, reason=fixed.reason, tried=fixed.tried
    ).json_values()


def _repair(repair: Repair) -> RepairRecord:
    instead = tuple(map(tuple, repair.instead))
    return RepairRecord(
        cost=repair.cost,
        changes=tuple(edit.what for edit in repair.changes),
        diff=repair.diff(),
        instead=instead,
        version=repair.version,
        depends_on=repair.depends,
    )


def weaken_record(weaker: Weaker) -> dict[str, object]:
    """What a test does not need."""
    return WeakenRecord(
        file=weaker.name,
        saves=weaker.saves,
        changes=tuple(edit.what for edit in weaker.changes),
        diff=weaker.diff(),
        reason=weaker.reason,
        cheapest=weaker.best,
        tried=weaker.tried,
        version=weaker.version,
        wrong=weaker.wrong,
    ).json_values()


def sync_record(found: Synchronized) -> dict[str, object]:
    """The cheapest synchronization of a test."""
    return SyncRecord(
        file=found.name,
        wrong=found.wrong,
        changes=found.changes,
        cost=None if found.new is None else found.cost,
        given=found.given,
        bound=None if found.bound == float("inf") else found.bound,
        proved=found.proved,
        offered=found.offered,
        tried=found.tried,
        bare=found.bare,
        text=found.new,
        diff=found.diff(),
        reason=found.reason,
        judged=found.judged,
        version=found.version,
        depends_on=found.depends,
        signals=found.signals,
    ).json_values()
