"""Records of kernels and of changes to tests: what `kernel`, `fix` and `weaken` write.

In: nothing. Out: the models that docs/json.md describes. `kernel.report` and `repair.record` fill them.
"""

from __future__ import annotations

from typing import Literal

from memmodel.records.base import JsonRecord


class KernelPlaceRecord(JsonRecord):
    """One access or operation of a finding; `cta`, `warp` and `lane` are null where it is about no single thread."""

    file: str
    line: int
    column: int
    instruction: str
    what: str
    source: tuple[str, ...]
    cta: int | None
    warp: int | None
    lane: int | None


class KernelFindingRecord(JsonRecord):
    """Something wrong in a launch; `count`: how many pairs of classes are alike."""

    rule: str
    kind: str
    message: str
    where: str
    count: int
    places: tuple[KernelPlaceRecord, ...]


class KernelRecord(JsonRecord):
    """The verdict on one launch. `open`: conditions that do not hold or were not checked."""

    entry: str
    model: str
    verdict: Literal["clean", "findings", "undecided"]
    findings: tuple[KernelFindingRecord, ...]
    open: tuple[str, ...]
    statistics: dict[str, int]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]


class RepairRecord(JsonRecord):
    """Changes after which a test is right."""

    cost: float
    changes: tuple[str, ...]
    diff: str


class FixRecord(JsonRecord):
    """What `fix` found. `reason`: why there are no repairs, or not all of them."""

    file: str
    wrong: tuple[str, ...]
    repairs: tuple[RepairRecord, ...]
    reason: str
    tried: int


class WeakenRecord(JsonRecord):
    """What `weaken` found. `cheapest`: there is no cheaper combination of changes."""

    file: str
    saves: float
    changes: tuple[str, ...]
    diff: str
    reason: str
    cheapest: bool
    tried: int
