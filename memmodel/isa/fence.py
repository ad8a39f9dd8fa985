"""Rows of the table: memory fences and bi-directional proxy fences.

In: a Call. Out: one Fence. Settled here: their tags; a proxy fence takes effect in its thread and so has no scope.
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.ops import Event, Fence, Op
from memmodel.isa.row import SCOPES, Need, Row, Slot, scope_slot

TAGS = {"sc": ("SC", "ACQ_REL"), "acq_rel": ("ACQ_REL",), "acquire": ("ACQ",), "release": ("REL",)}
LEVELS = {"cta": "cta", "gl": "gpu", "sys": "sys"}
PROXIES = {"alias": "ALIAS", "surface": "SUR", "texture": "TEX", "constant": "CON"}

_PAGE = "Parallel Synchronization and Communication Instructions: membar / fence"
_WEAKER = "a fence is at least one of .acquire and .release"


def fence(call: Call) -> tuple[Op, ...]:
    """fence: .acq_rel unless another semantics is named."""
    return (Fence(call.event("F", *TAGS[call.word("sem") or "acq_rel"], scope=call.scope)),)


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
            scope_slot(Need.ALWAYS),
        ),
        operands=(),
        lower=fence,
        events="a fence; .acq_rel if no semantics is written; .sc is also .acq_rel",
        source=_PAGE,
        since=70,
        needs={"cluster": 90, "acquire": 90, "release": 90},
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
                    "generic": ("a proxy fence names the other proxy; the generic one is understood", "write .alias")
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
