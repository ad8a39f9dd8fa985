"""Paths through instructions without effect: where they lead, and what they write.

In: instructions. Out: `reached`, `in_loop`, `landing`, `failing`, `doomed`, `comes_back`, `fails_back`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memmodel.base import graphs
from memmodel.isa.lowered import Body, LoweredInstruction, body_of
from memmodel.kernel.flow.known_values import Known, State, following
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.operands import Sym

MAX_STATES = 20_000

NOT_BACK = "the paths behind a failure do not lead back to it"

PRINTS = "vprintf"
"""The function of the system that prints; it touches no memory of the kernel."""


def reached(body: Body, starts: Iterable[int], passes: Callable[[LoweredInstruction], bool]) -> set[int]:
    """The instructions that paths from some instructions come to; a path ends at one for which `passes` is false."""
    instructions = graphs.reached(starts, lambda at: body[at].follows if at < len(body) and passes(body[at]) else ())
    return {at for at in instructions if at < len(body)}


def in_loop(entry: PtxFunction, at: int) -> bool:
    """True if a thread may come to an instruction again; where functions are called, it may come to any."""
    body = body_of(entry)
    return any(does.calls for does in body) or at in reached(body, body[at].follows, lambda does: True)


def landing(body: Body, at: int) -> int:
    """Where a thread comes to that jumps as long as it only jumps."""
    seen = set[int]()
    while at < len(body) and at not in seen and body[at].jumps and body[at].instruction.guard is None:
        seen.add(at)
        at = body[at].targets[0]
    return at


def doomed(body: Body, at: int) -> int | None:
    """The trap that every path from an instruction leads to, if the paths only compute and print before it."""
    waiting, seen, trap = [at], set[int](), None
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        if at >= len(body):
            return None
        if body[at].traps:
            trap = at
        elif not (body[at].without_effect or _harmless(body[at])):
            return None
        waiting += body[at].follows
    return trap


def _harmless(does: LoweredInstruction) -> bool:
    """True if it only touches memory of its thread, or prints."""
    if does.calls:
        return any(isinstance(operand, Sym) and operand.name == PRINTS for operand in does.instruction.operands)
    return does.private


def comes_back(entry: PtxFunction, at: int) -> bool:
    """True if a thread may come to an instruction again."""
    body = body_of(entry)
    later = reached(body, [at + 1], _followed)
    return at in later or not all(_followed(body[place]) for place in later)


def fails_back(entry: PtxFunction, test: int) -> bool:
    """True if a thread may come to a test again after it has returned false."""
    body = body_of(entry)
    if len(body[test].writes) != 1:
        return comes_back(entry, test)
    waiting: list[State] = [(test + 1, ((body[test].writes[0], 0),))]
    seen: set[State] = set()
    while waiting:
        at, known = state = waiting.pop()
        if state in seen or at >= len(body):
            continue
        seen.add(state)
        if at == test or len(seen) > MAX_STATES or not _followed(body[at]):
            return True
        if body[at].without_effect:
            waiting += following(body, state)
        else:
            left = tuple(pair for pair in known if pair[0] not in body[at].writes)
            waiting += [(follower, left) for follower in body[at].follows]
    return False


def _followed(does: LoweredInstruction) -> bool:
    """True if it is known where an instruction leads, without a look at values and at other functions."""
    return not (does.jumps_by_table or does.calls)


def failing(
    body: Body, test: int, slot: int, visited: set[int] | None = None, value: int = 0, around: Known = (), *,
    fences: bool = False,
) -> tuple[str | None, set[int]]:  # fmt: skip
    """Follow the paths on which the test returned `value`, false at first, back to the test.

    Returns why they do not lead back, or None, and the registers written on them. `visited`: their instructions are
    added to it. `fences`: the paths may have fences.
    """
    waiting: list[State] = [(test + 1, tuple(sorted({**dict(around), slot: value}.items())))]
    ways: dict[State, list[State]] = {}
    seen: set[State] = set()
    changed: set[int] = set()
    while waiting:
        state = waiting.pop()
        if state in seen:
            continue
        seen.add(state)
        if state[0] == test:
            continue
        if len(seen) > MAX_STATES or state[0] >= len(body):
            return NOT_BACK, changed
        does = body[state[0]]
        if visited is not None:
            visited.add(state[0])
        ways[state] = []
        if does.traps:
            ways[state] = following(body, state) if does.goes_on else []
        elif not (does.without_effect or (fences and does.fences)):
            trap = doomed(body, state[0])
            if trap is None:
                return f"after a failure the thread may reach {does.instruction.at_line}", changed
            if visited is not None:
                visited.add(trap)
        else:
            changed |= set(does.writes)
            ways[state] = following(body, state)
        waiting += ways[state]
    # Rounds of a loop that counts are states of their own. In a cycle of states the thread may stay for ever.
    if graphs.has_cycle(ways):
        return NOT_BACK, changed
    return None, changed
