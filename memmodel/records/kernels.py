"""Records of kernels and of changes to tests: what `kernel`, `fix` and `weaken` write.

In: nothing. Out: the models that docs/json.md describes. `kernel.output.record` and `repair.record` fill them.
"""

from __future__ import annotations

from typing import Literal

from memmodel.records.base import JsonRecord

KernelVerdictWord = Literal["clean", "findings", "depends", "explored", "partial", "undecided"]


class KernelThreadRecord(JsonRecord):
    """A thread of a launch. `round`: which of its executions of the instruction it is, from 0. `stage`: which of the
    few places that the instruction comes back to, from 0; null if it does not."""

    cta: int
    warp: int
    lane: int
    role: int
    round: int
    stage: int | None


class KernelPlaceRecord(JsonRecord):
    """One access or operation of a finding; `thread` is null where it is about no single thread."""

    file: str
    line: int
    column: int
    instruction: str
    what: str
    thread: KernelThreadRecord | None
    source: tuple[str, ...]


class KernelFindingRecord(JsonRecord):
    """Something wrong in a launch. `count`: how many pairs of classes are alike; `way`: how far something leads;
    `ignored`: why it does not count, if a comment or a baseline says so.
    """

    rule: str
    kind: str
    harmless: bool
    message: str
    where: str
    count: int
    reason: str | None
    missing: str
    places: tuple[KernelPlaceRecord, ...]
    way: tuple[KernelPlaceRecord, ...]
    ignored: str | None = None


class KernelReadingRecord(JsonRecord):
    """A reading under which findings go or come."""

    reading: str
    answer: str
    gone: tuple[KernelFindingRecord, ...]
    new: tuple[KernelFindingRecord, ...]


class KernelAssumptionRecord(JsonRecord):
    """Something that was taken for granted. `needs`: what it takes to drop it."""

    assumption: str
    needs: str


class KernelCoverageRecord(JsonRecord):
    """What the runs came to. `unreached`: lines of synchronizations that no thread executed. `skipped`: lines of loops
    of which no round was run. `single`: mbarrier objects that ended at most one phase."""

    synchronizations: int
    unreached: tuple[int, ...]
    loops: int
    skipped: tuple[int, ...]
    objects: int
    single: int


class KernelSchedulesRecord(JsonRecord):
    """How many schedules were explored, and whether these are all."""

    explored: int
    all: bool


class KernelStatisticsRecord(JsonRecord):
    """How large the run was. `seconds`: of run, order and conditions."""

    instructions: int
    threads: int
    accesses: int
    events: int
    judged: int
    pairs: int
    roles: int
    runs: int
    seconds: dict[str, float]


class KernelChangeRecord(JsonRecord):
    """A change beside one instruction: what is put in or becomes of it, in words."""

    line: int
    what: str


class KernelRepairRecord(JsonRecord):
    """Changes of the text. `verdict`: with them; `left`: how many findings there are then (0 for a repair).
    `may_depend_on`: as in the verdict."""

    changes: tuple[KernelChangeRecord, ...]
    diff: str
    verdict: KernelVerdictWord
    left: int
    may_depend_on: tuple[str, ...] = ()


class KernelRecord(JsonRecord):
    """The verdict on one launch. `open`: conditions that do not hold or were not checked. `ctas`: empty means all.
    `whole`: they are all, or stand for all. `coverage`: null if no run came to its end.
    `smaller`: the verdicts on smaller launches, by what differs. `may_depend_on`: readings on which the verdict may
    depend, where none was asked.

    `repairs`: null where none were asked for; where nothing ends all findings, what leaves the fewest. `file`: the file
    that was asked about, as it was named.
    """

    entry: str
    model: str
    verdict: KernelVerdictWord
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    ctas: tuple[int, ...]
    findings: tuple[KernelFindingRecord, ...]
    open: tuple[str, ...]
    choices: tuple[str, ...]
    schedules: KernelSchedulesRecord
    readings: tuple[KernelReadingRecord, ...]
    beyond: dict[str, str]
    notes: tuple[str, ...]
    statistics: KernelStatisticsRecord
    repairs: tuple[KernelRepairRecord, ...] | None = None
    assumptions: tuple[KernelAssumptionRecord, ...]
    whole: bool
    coverage: KernelCoverageRecord | None
    smaller: dict[str, KernelVerdictWord]
    may_depend_on: tuple[str, ...] = ()
    file: str = ""


class UnjudgedKernelRecord(JsonRecord):
    """A kernel of a directory without a verdict: what `kernel DIRECTORY` writes. `why`: the reason, or the error."""

    file: str
    entry: str | None
    verdict: Literal["bad input", "undecided", "internal error"]
    why: str


class SweepAnswerRecord(JsonRecord):
    """Launches with one verdict: the word, or `no launch` or `bad input`. `about`: the findings, or the first reason.
    `sizes`: ranges of values, as `--sweep` takes them.
    """

    verdict: str
    about: tuple[str, ...]
    launches: int
    sizes: tuple[str, ...]


class KernelSweepRecord(JsonRecord):
    """The verdicts on a family of launches: what `kernel --sweep` writes. `verdict`: the worst. `sizes`: as they were
    given. `left`: launches that were not judged, and `stopped` says why. `judged`: verdicts that the answers took.
    `counterexample`: the sizes of the smallest launch with a finding, whose verdict is `found`.
    """

    entry: str
    model: str
    verdict: str
    sizes: dict[str, str]
    launches: int
    left: int
    stopped: str | None
    judged: int
    answers: tuple[SweepAnswerRecord, ...]
    assumptions: tuple[KernelAssumptionRecord, ...]
    counterexample: dict[str, int] | None
    found: KernelRecord | None


class RepairRecord(JsonRecord):
    """Changes after which a test is right. `instead`: those of other repairs of the same idea that this one has not.
    `version`: of PTX, where the changed text needs a newer one than the test. `depends_on`: readings under which it is
    wrong, as far as the executions at hand show."""

    cost: float
    changes: tuple[str, ...]
    diff: str
    instead: tuple[tuple[str, ...], ...] = ()
    version: str = ""
    depends_on: tuple[str, ...] = ()


class FixRecord(JsonRecord):
    """What `fix` found. `reason`: why there are no repairs, or not all of them."""

    file: str
    wrong: tuple[str, ...]
    repairs: tuple[RepairRecord, ...]
    reason: str
    tried: int


class WeakenRecord(JsonRecord):
    """What `weaken` found. `cheapest`: there is no cheaper combination of changes. `version`: of PTX, where the changed
    text needs a newer one than the test. `wrong`: what is found in the test as it stands."""

    file: str
    saves: float
    changes: tuple[str, ...]
    diff: str
    reason: str
    cheapest: bool
    tried: int
    version: str = ""
    wrong: tuple[str, ...] = ()


class SyncRecord(JsonRecord):
    """What `sync` found. `cost`: of the new text; `given`: of the test as it was; `bound`: nothing costs less.

    `proved`: `cost` is the least. `reason`: why nothing was found, or it is not proved. `judged`: by which engines.
    """

    file: str
    wrong: tuple[str, ...]
    changes: tuple[str, ...]
    cost: float | None
    given: float
    bound: float | None
    proved: bool
    offered: int
    tried: int
    bare: str
    text: str | None
    diff: str
    reason: str = ""
    judged: str = ""
    version: str = ""
    depends_on: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
