"""The reasons for which an order that would forbid an outcome, a race or a hazard is not there.

In: nothing. Out: `Reason`, a closed list. Its words are what reports and JSON say.
"""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """What stops the order from the first access towards the second."""

    NO_SYNCHRONIZATION = "no synchronization"
    SCOPES = "scopes that do not include each other"
    RELAXED = "relaxed or weak where acquire or release is needed"
    REDUCTION = "a reduction heads no acquire pattern"
    RESTRICTED = "a fence restricted to other memory"
    NO_FENCE_SC = "no fence.sc between the accesses"
    WEAK = "weak accesses where strong ones are needed"
    NO_PROXY_FENCE = "no proxy fence on the path"
    PROXY_FENCE_SPACE = "a proxy fence for another state space or range"
    PROXY_FENCE_CTA = "a proxy fence in another CTA"
    PROXY_FENCE_SIDE = "a proxy fence on the wrong side"
    NO_ALIAS_FENCE = "no alias fence between two names"
    NOT_WAITED = "completion not waited for"
    NOT_TRANSITIVE = "a completion publishes nothing that its thread did"
    WGMMA_FENCE = "no wgmma.fence after what is read"
    TCGEN05_FENCE = "tcgen05.fence missing"
    TCGEN05_COMMIT = "tcgen05.commit missing"
    TCGEN05_WAIT = "tcgen05.wait missing"
    READ_ONLY = "the read-only path, which no fence bridges"
    LOCATION = "not one location"
    PARITY = "wrong parity"
    COUNT = "an arrive count that does not match"
    BYTES = "expected bytes that do not match"
    NEVER_WRITTEN = "a value that nobody writes"
    DEADLOCK = "each waits for the other"
    GONE = "an object or CTA that may be gone"
    RULE = "a rule that one thread breaks alone"
    NOTHING_MISSING = "nothing is missing: no order could forbid it"
