"""What the reasons of an explanation say about the changes worth trying first.

In: counterexamples of a test, changes. Out: the reasons; which changes may answer one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import lru_cache

from memmodel.answer import HANG
from memmodel.repair.edits import Edit, about_numbers
from memmodel.repair.exchanging.awaited_values import AWAITED
from memmodel.repair.exchanging.other_objects import awaited
from memmodel.repair.insertion.arrivals import ARRIVALS
from memmodel.repair.judge import TextCounterexample
from memmodel.why.records import Obstacle, Reason
from memmodel.why.story import finding_story, outcome_story
from memmodel.why.stuck import stuck

MOST_EXPLAINED = 6
"""At most this many executions are explained to learn their reasons."""

ABOUT_WAITS = frozenset(
    (
        Reason.NO_SYNCHRONIZATION,
        Reason.NOT_SEEN,
        Reason.NOT_WAITED,
        Reason.NOT_TRANSITIVE,
        Reason.TCGEN05_COMMIT,
        Reason.TCGEN05_WAIT,
        Reason.GONE,
        Reason.RULE,
        Reason.PARITY,
        Reason.EARLIER_PHASE,
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

ABOUT_FENCES = frozenset(
    (Reason.FENCE_SIDE, Reason.RELAXED, Reason.NO_SYNCHRONIZATION, Reason.NOT_SEEN, Reason.NO_FENCE_SC)
)
"""Reasons after which a memory fence may stand in the wrong place."""

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


def reasons(known: Sequence[TextCounterexample]) -> frozenset[Reason]:
    """Why the executions can be, by the explanations of all of them."""
    return frozenset(reason for reason, _ in _reasons(known))


def lines(known: Sequence[TextCounterexample]) -> frozenset[int]:
    """The lines that the explanations and the findings name."""
    findings = [counterexample.finding for counterexample in known if counterexample.finding is not None]
    ends = [end for finding in findings for end in (finding.first, finding.second) if end is not None]
    named = {line for _, line in _reasons(known)} | {end.span.line for end in ends if end.span is not None}
    return frozenset(line for line in named if line is not None)


def awaited_objects(known: Sequence[TextCounterexample]) -> frozenset[str]:
    """The variables of the mbarrier objects that threads wait for in hangs."""
    hangs = [counterexample for counterexample in known if counterexample.flag == HANG]
    return frozenset(name for hang in hangs[:MOST_EXPLAINED] for name, _ in awaited(hang))


def _reasons(known: Sequence[TextCounterexample]) -> Iterator[tuple[Reason, int | None]]:
    """The reasons of the explanations, each with the lines that it is about."""
    return (reason for counterexample in by_turns(known)[:MOST_EXPLAINED] for reason in _of(counterexample))


@lru_cache(maxsize=4 * MOST_EXPLAINED)
def _of(counterexample: TextCounterexample) -> tuple[tuple[Reason, int | None], ...]:
    if counterexample.flag == HANG:
        waiting = stuck(counterexample.witness).waiting
        return tuple((each.reason, None if each.span is None else each.span.line) for each in waiting)
    return tuple(
        (obstacle.reason, line) for obstacle in _obstacles(counterexample) for line in (None, *_lines_of(obstacle))
    )


def _obstacles(counterexample: TextCounterexample) -> tuple[Obstacle, ...]:
    """What stops the order that would rule the counterexample out."""
    model, finding = counterexample.model, counterexample.finding
    story = finding_story(model, finding, "") if finding else outcome_story(model, counterexample.witness)
    return () if story is None else story.obstacles


def _lines_of(obstacle: Obstacle) -> list[int | None]:
    return [place.line for place in obstacle.events]


def by_turns(known: Sequence[TextCounterexample]) -> list[TextCounterexample]:
    """The executions, the first of each flag before the second of any."""
    turns: dict[str | None, int] = {}
    numbered = []
    for counterexample in known:
        turns[counterexample.flag] = turns.get(counterexample.flag, 0) + 1
        numbered.append((turns[counterexample.flag], counterexample))
    return [counterexample for _, counterexample in sorted(numbered, key=lambda turn: turn[0])]


def sufficient_changes(known: Sequence[TextCounterexample]) -> Iterator[str]:
    """What is missing, in the words of the explanations."""
    for counterexample in known:
        if counterexample.flag == HANG:
            for waiting in stuck(counterexample.witness).waiting:
                what = waiting.text.partition(": ")[2]
                yield f"{waiting.thread} waits for {what}, and would go on with {waiting.goes_on}"
            continue
        for obstacle in _obstacles(counterexample):
            yield f"{obstacle.text}" + (f" ({obstacle.would_do}: {obstacle.repair})" if obstacle.repair else "")


def broken_rules(known: Sequence[TextCounterexample]) -> tuple[str, ...]:
    """The rules that single instructions break, whatever the others do."""
    by_itself = (
        counterexample
        for counterexample in known
        if counterexample.finding is not None and counterexample.flag in BY_ITSELF
    )
    return tuple(dict.fromkeys(_rule(counterexample).rstrip(".") for counterexample in by_itself))


def _rule(counterexample: TextCounterexample) -> str:
    """The rule that a finding is about."""
    assert counterexample.finding is not None and counterexample.flag is not None
    doc = next((check.doc for check in counterexample.model.flags if check.name == counterexample.flag), "")
    return counterexample.finding.rule or doc or counterexample.flag


def meets(edit: Edit) -> bool:
    """True if the change adds a barrier to two threads."""
    return bool(edit.more) and edit.adds > 0 and ("bar.sync" in edit.text or "barrier.cluster" in edit.text)


def kind(edit: Edit) -> str:
    """What a changed number is about; a barrier for two threads is about none."""
    if meets(edit):
        return "meeting"
    words = (AWAITED, "move", "parity", "expect_tx", "wait_group", "bar", "arrive", "count")
    return next((word for word in words if word in edit.what), "") if edit.group[2] != "move" else "move"


def moves_a_fence(edit: Edit) -> bool:
    """A fence is moved; in a set, a new one does as much."""
    return kind(edit) == "move" and "fence" in edit.what


def answers(edit: Edit, why: Set[Reason]) -> bool:
    """True if the changed number is of the kind that explains a hang. If bytes are a reason, only those count."""
    looked_at: Set[Reason] = {Reason.BYTES} if Reason.BYTES in why else why
    kinds = {word for reason, words in WRONG_NUMBERS.items() if reason in looked_at for word in words}
    return kind(edit) in kinds


WRONG_NUMBERS = {
    Reason.BYTES: ("expect_tx",),
    Reason.PARITY: ("parity",),
    Reason.DEADLOCK: ("parity", "bar"),
    Reason.NEVER_WRITTEN: (AWAITED,),
    Reason.COUNT: ("count", "bar", "arrive", "expect_tx", "wait_group", ""),
}
"""What a number may be about that makes a thread wait for ever, by the reason."""


def _moved(what: str) -> frozenset[Reason]:
    """The reasons that what is moved may answer."""
    if "fence.proxy" in what:
        return ABOUT_PROXIES
    if "tcgen05.fence" in what or "wgmma.fence" in what:
        return ABOUT_TENSOR_MEMORY | {Reason.WGMMA_FENCE}
    return ABOUT_FENCES if "fence" in what or "membar" in what else ABOUT_WAITS


def relevant(edit: Edit, why: frozenset[Reason]) -> bool:
    """True if a change may address one of the reasons."""
    if edit.rank == ARRIVALS:
        if edit.more:
            return bool(why & {Reason.NOT_TRANSITIVE, Reason.TCGEN05_COMMIT})
        return Reason.COUNT in why
    if edit.group[2] == "move":
        return bool(why & _moved(edit.what))
    if edit.group[2] == "space":
        return bool(why & ABOUT_PROXIES)
    if about_numbers(edit):
        return answers(edit, why) or bool(why & {Reason.NO_SYNCHRONIZATION, Reason.NOT_SEEN})
    if (edit.adds > 0 and edit.rank <= 1) or edit.more or "tcgen05.commit" in edit.text:
        return bool(why & ABOUT_WAITS)
    if "fence.sc" in edit.text:
        return Reason.NO_FENCE_SC in why
    if "fence.proxy" in edit.text:
        return bool(why & (ABOUT_PROXIES | ABOUT_WAITS))
    if "tcgen05.fence" in edit.text or "wgmma.fence" in edit.text:
        return bool(why & (ABOUT_TENSOR_MEMORY | ABOUT_WAITS)) or Reason.WGMMA_FENCE in why
    return bool(why - ABOUT_PROXIES - ABOUT_TENSOR_MEMORY - {Reason.WGMMA_FENCE})
