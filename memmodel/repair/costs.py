"""What synchronization costs, by a table: rough figures to compare changes by, not a prediction.

In: the spelling of an instruction, or a test. Out: a number. The scopes' figures are the middle of the ranges that are
usually given for them in cycles; a fence that is restricted to shared memory or to mbarrier.init counts as one of the
CTA, since nothing has to leave the SM or the cluster for it (docs/repair.md has the table and its sources).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from memmodel.errors import InputError
from memmodel.isa.rows.spelling import Spelling
from memmodel.repair.spellings import scope_of, semantics

SCOPE_COST = {"cta": 5.0, "cluster": 30.0, "gpu": 500.0, "gl": 500.0, "sys": 1500.0}
SEM_FACTOR = {"weak": 0.0, "relaxed": 0.05, "volatile": 0.05, "acquire": 0.4, "release": 0.6, "acq_rel": 1.0, "sc": 1.5}
PROXY_FENCE = 20.0
PROXY_FENCE_OF_ONE_SPACE = 15.0
READS_ALONE = 0.5
"""What a half that is about the reads of its own thread costs of one that is about all that came before."""
TCGEN05_FENCE = 2.0
WAIT = 10.0
OTHER = 1.0
STRONG_DATA = 10.0
"""A weak access made strong, which may no longer be combined with others; data is rather waited for than relabelled."""

MOVED_ACCESS = 60.0
"""An access in another place of its thread: the program does its work in another order."""


def half_of_proxy_fence(sem: str, *, reads: bool = False) -> float:
    """What one half of a proxy fence of the async proxy costs, which is about shared memory. `reads`: about the reads
    of its thread alone."""
    return PROXY_FENCE_OF_ONE_SPACE * SEM_FACTOR[sem] * (READS_ALONE if reads else 1.0)


@dataclass(frozen=True, slots=True)
class Costs:
    """A table of costs. A fence costs the figure of its scope times the factor of its semantics.

    `scopes`: cta, cluster, gpu, sys. `semantics`: relaxed, acquire, release, acq_rel, sc. `proxy_fence`: one for all
    memory; `space_proxy_fence`: for one state space. `reads_alone`: the factor of half a proxy fence that is about the
    reads of its thread alone. `wait`: what may block a thread. `other`: any other line, such as an arrive.
    `strong_access`: a load or store that is not weak, beside its scope and semantics.
    """

    scopes: Mapping[str, float] = field(default_factory=lambda: dict(SCOPE_COST))
    semantics: Mapping[str, float] = field(default_factory=lambda: dict(SEM_FACTOR))
    proxy_fence: float = PROXY_FENCE
    space_proxy_fence: float = PROXY_FENCE_OF_ONE_SPACE
    reads_alone: float = READS_ALONE
    tcgen05_fence: float = TCGEN05_FENCE
    wait: float = WAIT
    other: float = OTHER
    strong_access: float = STRONG_DATA

    def __post_init__(self) -> None:
        scopes = {**SCOPE_COST, **self.scopes}
        if "gpu" in self.scopes:
            scopes["gl"] = self.scopes["gpu"]
        object.__setattr__(self, "scopes", scopes)
        object.__setattr__(self, "semantics", {**SEM_FACTOR, **self.semantics})
        numbers = [getattr(self, entry.name) for entry in fields(self) if entry.type == "float"]
        for number in (*numbers, *self.scopes.values(), *self.semantics.values()):
            if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < 1e9:
                raise InputError(f"{str(number)[:40]} is no cost", hint="a number from 0 up")
        unknown = sorted({*scopes} - {*SCOPE_COST} | {*self.semantics} - {*SEM_FACTOR})
        if unknown:
            raise InputError(f"{unknown[0][:40]} is no scope and no semantics", hint="such as cta or release")

    def order(self, spelling: Spelling) -> float:
        """What the scope and the semantics of an instruction cost."""
        near = "restrict" in spelling.words or spelling.head == "fence.mbarrier_init"
        scope = "cta" if near else scope_of(spelling)
        return self.scopes[scope] * self.semantics.get(semantics(spelling), 1.0)

    def of(self, spelling: Spelling) -> float:
        """What one fence costs, or another instruction for what it orders."""
        words, head = spelling.words, spelling.head
        if head in ("fence.proxy", "membar.proxy"):
            return self.proxy_fence if words.get("proxy", "") in ("async", "alias") else self.space_proxy_fence
        if head == "fence.proxy.async::generic":
            reads = self.reads_alone if "read" in words.get("restrict", "") else 1.0
            return self.space_proxy_fence * self.semantics[words.get("sem", "release")] * reads
        if head == "fence.proxy.async":
            return self.space_proxy_fence if "space" in words else self.proxy_fence
        if head.startswith("fence.proxy"):
            reached = self.scopes[words["scope"]] * self.semantics["relaxed"] if "scope" in words else 0.0
            return self.proxy_fence * self.semantics.get(words.get("sem", "acq_rel"), 1.0) + reached
        if head.startswith("tcgen05.fence"):
            return self.tcgen05_fence
        if head == "membar":
            return self.scopes[words.get("level", "sys")] * self.semantics["sc"]
        if head == "cp.async.bulk.wait_group" and "read" in words:
            return self.other * self.reads_alone
        return self.other + self.order(spelling)


DEFAULT = Costs()


def cost(spelling: Spelling) -> float:
    """What one instruction costs for what it orders."""
    return DEFAULT.of(spelling)
