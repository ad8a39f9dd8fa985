"""Rows of the table: memory fences and bi-directional proxy fences.

In: a Call. Out: one Fence. Settled here: their tags; a proxy fence takes effect in its thread and so has no scope.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.isa.call import Call
from memmodel.isa.ops import Cover, Event, Fence, Op
from memmodel.isa.row import SCOPES, Need, Row, Rule, Slot, scope_slot

TAGS = {"sc": ("SC", "ACQ_REL"), "acq_rel": ("ACQ_REL",), "acquire": ("ACQ",), "release": ("REL",)}
LEVELS = {"cta": "cta", "gl": "gpu", "sys": "sys"}
PROXIES = {"alias": "ALIAS", "surface": "SUR", "texture": "TEX", "constant": "CON"}

RESTRICTED = {
    "sync_restrict::shared::cta": Cover("own-shared"),
    "sync_restrict::shared::cluster": Cover("shared"),
}
RESTRICT = Slot("restrict", tuple(RESTRICTED), "restriction")
RESTRICTIONS = (
    Rule(
        ".sync_restrict::shared::cta goes with .release",
        "write {head}.release.sync_restrict::shared::cta.cluster",
        {"restrict": ("sync_restrict::shared::cta",), "sem": ("acquire", "acq_rel", "sc")},
        at="restrict",
    ),
    Rule(
        ".sync_restrict::shared::cluster goes with .acquire",
        "write {head}.acquire.sync_restrict::shared::cluster.cluster",
        {"restrict": ("sync_restrict::shared::cluster",), "sem": ("release", "acq_rel", "sc")},
        at="restrict",
    ),
    Rule(
        "a fence with .{restrict} names its semantics",
        "write .release with .sync_restrict::shared::cta, .acquire with .sync_restrict::shared::cluster",
        {"restrict": ()},
        ("sem",),
        at="restrict",
    ),
    Rule(
        "a fence with .{restrict} has .cluster scope",
        "write .cluster",
        {"restrict": (), "scope": ("cta", "gpu", "sys")},
        at="scope",
    ),
)

_PAGE = "Parallel Synchronization and Communication Instructions: membar / fence"
_WEAKER = "a fence is at least one of .acquire and .release"


def fence(call: Call) -> tuple[Op, ...]:
    """fence: .acq_rel unless another semantics is named; .sync_restrict narrows it to shared memory."""
    sem = TAGS[call.word("sem") or "acq_rel"]
    restrict = call.word("restrict")
    if restrict is None:
        return (Fence(call.event("F", *sem, scope=call.scope)),)
    event = call.event("F", *sem, "RESTRICTED", scope=call.scope)
    return (Fence(replace(event, covers=RESTRICTED[restrict])),)


def membar(call: Call) -> tuple[Op, ...]:
    """membar: fence.sc at the scope its level stands for."""
    return (Fence(call.event("F", *TAGS["sc"], scope=SCOPES[LEVELS[call.word("level") or "sys"]])),)


def proxy_fence(call: Call) -> tuple[Op, ...]:
    """fence.proxy: neither scope nor semantics, and not of the generic proxy alone."""
    return (Fence(Event(frozenset(("F", PROXIES[call.word("proxy") or "alias"])))),)


ROWS = (
    Row(
        heads=("fence",),
        slots=(
            Slot(
                "sem",
                tuple(TAGS),
                "memory semantics",
                refused={"relaxed": (_WEAKER, "write fence.acq_rel"), "weak": (_WEAKER, "write fence.acq_rel")},
            ),
            RESTRICT,
            scope_slot(Need.ALWAYS),
        ),
        operands=(),
        lower=fence,
        events="a fence; .acq_rel if no semantics is written; .sc is also .acq_rel; .sync_restrict::shared::cta is "
        "about shared memory of the own CTA, .sync_restrict::shared::cluster about shared memory anywhere",
        rules=RESTRICTIONS,
        source=_PAGE,
        since=70,
        needs={"cluster": 90, "acquire": 90, "release": 90, **dict.fromkeys(RESTRICTED, 90)},
    ),
    Row(
        heads=("membar",),
        slots=(
            Slot(
                "level",
                tuple(LEVELS),
                "level",
                Need.ALWAYS,
                refused={
                    "gpu": ("the levels of membar are .cta, .gl and .sys", "write membar.gl or fence.sc.gpu"),
                    "cluster": ("the levels of membar are .cta, .gl and .sys", "write fence.sc.cluster"),
                },
            ),
        ),
        operands=(),
        lower=membar,
        events="the same as fence.sc at scope .cta, .gpu (for .gl) or .sys",
        source=_PAGE,
    ),
    Row(
        heads=("fence.proxy", "membar.proxy"),
        slots=(
            Slot(
                "proxy",
                tuple(PROXIES),
                "proxy",
                Need.ALWAYS,
                refused={
                    "generic": ("a proxy fence names the other proxy; the generic one is understood", "write .alias"),
                    **dict.fromkeys(
                        ("generic::fabric", "fabric::generic", "fabric::fabric"),
                        ("the fabric proxy is not modelled", "no instruction of the table accesses memory through it"),
                    ),
                },
                columns=("surface", "texture", "constant"),
            ),
        ),
        operands=(),
        lower=proxy_fence,
        events="a proxy fence between the generic proxy and the one named; it takes no scope",
        source=_PAGE,
        since=70,
    ),
)
