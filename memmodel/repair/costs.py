"""What synchronization costs, by a table: rough figures to compare changes by, not a prediction.

In: the spelling of an instruction, or a test. Out: a number. The scopes' figures are the middle of the ranges that are
usually given for them in cycles; a fence that is restricted to shared memory counts as one of the CTA, since nothing
has to leave the SM or the cluster for it (docs/repair.md has the table and its sources).
"""

from __future__ import annotations

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


def cost(spelling: Spelling) -> float:
    """What one instruction costs for what it orders."""
    words, head = spelling.words, spelling.head
    if head in ("fence.proxy", "membar.proxy"):
        return PROXY_FENCE if words.get("proxy", "") in ("async", "alias") else PROXY_FENCE_OF_ONE_SPACE
    if head == "fence.proxy.async::generic":
        return half_of_proxy_fence(words.get("sem", "release"), reads="read" in words.get("restrict", ""))
    if head == "fence.proxy.async":
        return PROXY_FENCE_OF_ONE_SPACE if "space" in words else PROXY_FENCE
    if head.startswith("fence.proxy"):
        return PROXY_FENCE * SEM_FACTOR.get(words.get("sem", "acq_rel"), 1.0)
    if head.startswith("tcgen05.fence"):
        return TCGEN05_FENCE
    if head == "membar":
        return SCOPE_COST[words.get("level", "sys")] * SEM_FACTOR["sc"]
    scope = "cta" if "restrict" in words else scope_of(spelling)
    return OTHER + SCOPE_COST[scope] * SEM_FACTOR.get(semantics(spelling), 1.0)
