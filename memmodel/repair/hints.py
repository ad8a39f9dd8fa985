"""What the reasons of an explanation say about the changes worth trying first.

In: executions that speak against a test, changes. Out: the reasons; which changes may answer one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.answer import HANG
from memmodel.repair.edits import Edit
from memmodel.repair.judge import Against
from memmodel.why.records import Reason
from memmodel.why.story import finding_story, outcome_story
from memmodel.why.stuck import stuck

ABOUT_WAITS = frozenset(
    (
        Reason.NO_SYNCHRONIZATION,
        Reason.NOT_WAITED,
        Reason.NOT_TRANSITIVE,
        Reason.TCGEN05_COMMIT,
        Reason.TCGEN05_WAIT,
        Reason.GONE,
        Reason.RULE,
        Reason.PARITY,
        Reason.COUNT,
        Reason.BYTES,
        Reason.DEADLOCK,
        Reason.NEVER_WRITTEN,
        Reason.FENCE_SIDE,
    )
)
"""Where order is missing as a whole: a wait, an arrive or a number may be what is missing."""

ABOUT_PROXIES = frozenset(
    (
        Reason.NO_PROXY_FENCE,
        Reason.PROXY_FENCE_SPACE,
        Reason.PROXY_FENCE_CTA,
        Reason.PROXY_FENCE_SIDE,
        Reason.NO_ALIAS_FENCE,
    )
)
ABOUT_TENSOR_MEMORY = frozenset((Reason.TCGEN05_FENCE, Reason.TCGEN05_COMMIT, Reason.TCGEN05_WAIT))
"""Reasons after which order of the memory fences is not what is missing."""

BY_ITSELF = frozenset(
    (
        "undefined-address",
        "undefined-instruction",
        "undefined-cta-groups",
        "undefined-barrier",
        "undefined-cancel",
        "undefined-cluster-barrier",
        "undefined-mbarrier-access",
        "undefined-tensor-memory-permit",
        "undefined-tensor-memory-freed",
        "undefined-tensor-memory-kept",
    )
)
"""Findings about what instructions say, not about the order of what they do."""


def reasons(known: Sequence[Against]) -> frozenset[Reason]:
    """Why the executions can be, by the explanations of all of them."""
    found: set[Reason] = set()
    for one in known:
        if one.flag == HANG:
            found |= {waiting.reason for waiting in stuck(one.witness).waiting}
        elif one.finding is not None:
            told = finding_story(one.model, one.finding, "")
            found |= {obstacle.reason for obstacle in told.obstacles} if told is not None else set()
        else:
            told = outcome_story(one.model, one.witness)
            found |= {obstacle.reason for obstacle in told.obstacles} if told is not None else set()
    return frozenset(found)


def alone(known: Sequence[Against]) -> tuple[str, ...]:
    """The rules that single instructions break, whatever the others do."""
    told = [one.finding for one in known if one.finding is not None and one.flag in BY_ITSELF]
    return tuple(dict.fromkeys(one.rule or one.flag for one in told))


def about_numbers(edit: Edit) -> bool:
    """Does a change put another number, or move a fence?"""
    return edit.group[2] in ("number", "expected", "move")


def kind(edit: Edit) -> str:
    """What a changed number is about."""
    words = ("move", "parity", "expect_tx", "wait_group", "bar", "arrive", "count")
    return next((word for word in words if word in edit.what), "") if edit.group[2] != "move" else "move"


def answers(edit: Edit, why: frozenset[Reason]) -> bool:
    """Is a changed number of the kind that a hang has wrong? Where bytes are, others wait only for that."""
    looked_at = {Reason.BYTES} if Reason.BYTES in why else why
    kinds = {word for reason, words in WRONG_NUMBERS.items() if reason in looked_at for word in words}
    return kind(edit) in kinds


WRONG_NUMBERS = {
    Reason.BYTES: ("expect_tx",),
    Reason.PARITY: ("parity",),
    Reason.DEADLOCK: ("parity",),
    Reason.COUNT: ("count", "bar", "arrive", "expect_tx", "wait_group", ""),
}
"""What a number may be about that makes a thread wait for ever, by the reason."""


def relevant(edit: Edit, why: frozenset[Reason]) -> bool:
    """May a change answer one of the reasons?"""
    if about_numbers(edit) or (edit.adds > 0 and edit.rank <= 1) or edit.more:
        return bool(why & ABOUT_WAITS)
    if "fence.sc" in edit.text:
        return Reason.NO_FENCE_SC in why
    if "fence.proxy" in edit.text:
        return bool(why & (ABOUT_PROXIES | ABOUT_WAITS))
    if "tcgen05.fence" in edit.text or "wgmma.fence" in edit.text:
        return bool(why & (ABOUT_TENSOR_MEMORY | ABOUT_WAITS)) or Reason.WGMMA_FENCE in why
    return bool(why - ABOUT_PROXIES - ABOUT_TENSOR_MEMORY - {Reason.WGMMA_FENCE})
