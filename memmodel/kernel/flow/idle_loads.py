"""Loads of a polled word that only delay the next load of it: polls that are unrolled, peeled off, or nested.

In: PtxFunction. Out: `without_idle_loads`, the function in which each of them is a jump: the thread makes the next load
at once. Source: docs/kernels-theorem.md, "Polls within a poll".

A poll is a load and a branch on what it returns. On one side every path leads to one load of the word, the *last* one,
and the thread does nothing on the way but compute, let time pass, and load the word again. On the other side the loop
is left. A load on the way whose value does not matter is idle. A poll beside the last one that is left for the same
values, and at the same place, is peeled off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

from memmodel.base import graphs
from memmodel.isa.lowered import Body, LoweredInstruction, body_of
from memmodel.kernel.flow.known_values import Known, constants, following
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.paths import MAX_STATES, landing, reached
from memmodel.program.expressions import Apply, Const, Expr, Get, registers_of, substituted
from memmodel.program.uses import results_of
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.operands import JumpTarget
from memmodel.ptx.vocabulary import Sem

MAX_BETWEEN = 16
"""Instructions from a load to the branch on what it returns."""

INTEGERS = "sub"
"""Kinds of types of which two numbers with different bits are not equal."""

LOADED = "loaded"
"""What a poll loads, in expressions."""


class Poll(NamedTuple):
    """A load, and a branch on what it returns. `condition`: of the values for which the thread comes to `then`; else it
    comes to `other`. `inside`: the load, the branch, and what is between them.
    """

    load: int
    condition: Expr
    then: int
    other: int
    inside: tuple[int, ...]

    def side(self, then: bool) -> int:
        return self.then if then else self.other


class PollLoop(NamedTuple):
    """A loop that is left on one side of its polls. `idle`, `peeled`: loads of the word that may be idle, and polls
    that may be peeled off the loop, by their loads. `leaves`: True if it is left where the condition holds.
    """

    entry: PtxFunction
    last: Poll
    leaves: bool
    idle: frozenset[int]
    peeled: Mapping[int, Poll]

    @property
    def body(self) -> Body:
        return body_of(self.entry)

    def region(self, poll: Poll) -> set[int] | None:
        """The instructions between a poll that fails and the last load; None if there are other paths."""
        waiting, region = [poll.side(not self.leaves)], set[int]()
        while waiting:
            at = waiting.pop()
            if at == self.last.load or at in region:
                continue
            if at >= len(self.body):
                return None
            region.add(at)
            if at in self.peeled:
                waiting.append(self.peeled[at].side(not self.leaves))
            elif at in self.idle or self.body[at].without_effect:
                waiting += self.body[at].follows
            else:
                return None
        return region


@lru_cache(maxsize=8)
def without_idle_loads(entry: PtxFunction) -> PtxFunction:
    """A function that does the same, with a jump in place of each idle load; the numbers of instructions stay."""
    body = body_of(entry)
    words: dict[object, list[int]] = {}
    for at in _executed(entry):
        does = body[at]
        if _may_poll(does):
            words.setdefault((id(does.row), does.type, does.window, does.instruction.operands[1:]), []).append(at)
    for loads in (loads for loads in words.values() if len(loads) > 1):
        polls = [poll for poll in map(partial(_poll, body), loads) if poll is not None]
        for loop in _loops(entry, loads, polls):
            jumps = _jumps(loop)
            if jumps:
                return without_idle_loads(_with_jumps(loop, jumps))
    return entry


def _executed(entry: PtxFunction) -> list[int]:
    """The instructions that a thread may come to, in the order of the text."""
    body, starts = body_of(entry), (0, *(callee.start for callee in entry.callees.values()))
    return sorted(reached(body, starts, lambda _: True))


def _may_poll(does: LoweredInstruction) -> bool:
    """True for a strong load of one word into a register that is not its address."""
    access, alone = does.access, does.elements == len(does.writes) == 1 and does.instruction.guard is None
    plain = does.loads and access is not None and access.sem is not Sem.WEAK and access.spelt is None
    return alone and plain and set(does.sources).isdisjoint(does.writes)


def _poll(body: Body, load: int) -> Poll | None:
    """The poll that a load begins; None if it is not followed by a branch that its value decides."""
    values: dict[str, Expr] = {str(body[load].writes[0]): Get(LOADED)}
    for at in range(load + 1, min(load + MAX_BETWEEN, len(body))):
        does, guard = body[at], body[at].instruction.guard
        if does.jumps and guard is not None and does.target is not None:
            condition, holds = _simplest(values.get(str(guard.slot), Get(str(guard.slot))))
            sides = landing(body, does.target), landing(body, at + 1)
            then, other = sides if holds != does.instruction.negated else sides[::-1]
            looked_at = registers_of(condition)
            decides = LOADED in looked_at and all(name == LOADED or name.isdigit() for name in looked_at)
            return Poll(load, condition, then, other, tuple(range(load, at + 1))) if decides and then != other else None
        results = results_of(does.ops)
        if not does.computes or guard is not None or set(results) != set(map(str, does.writes)):
            return None
        values |= {slot: substituted(value, values) for slot, value in results.items()}
    return None


def _simplest(condition: Expr) -> tuple[Expr, bool]:
    """A comparison by "equal" or "less" alone, and whether it has to hold, or to fail, for this one to hold."""
    match condition:
        case Apply("ne", args, type) if type.kind in INTEGERS:
            return Apply("eq", args, type), False
        case Apply("ge", args, type) if type.kind in INTEGERS[:2]:
            return Apply("lt", args, type), False
        case Apply("le" | "gt" as word, (left, Const(bound)), type) if type.kind in INTEGERS[:2]:
            greatest = (type.mask >> 1) if type.signed else type.mask
            if bound & type.mask != greatest:
                above = bound + 1 if bound < 0 else bound + 1 & type.mask
                return Apply("lt", (left, Const(above)), type), word == "le"
    return condition, True


def _loops(entry: PtxFunction, loads: Collection[int], polls: Collection[Poll]) -> Iterator[PollLoop]:
    """The loops that these polls may be the last ones of."""
    body = body_of(entry)
    for last in polls:
        access = body[last.load].access
        assert access is not None
        its = {load: body[load].access for load in loads if load != last.load}
        idle = frozenset(
            load
            for load, other in its.items()
            if other is not None and other.sem in (Sem.RELAXED, access.sem) and replace(other, sem=access.sem) == access
        )
        for leaves in (True, False):
            peeled = {
                poll.load: poll
                for poll in polls
                if poll is not last and its[poll.load] == access and poll.condition == last.condition
                and poll.side(leaves) == last.side(leaves)
            }  # fmt: skip
            yield PollLoop(entry, last, leaves, idle, peeled)


def _jumps(loop: PollLoop) -> dict[int, int]:
    """The idle loads and those that are peeled off, each with where a thread goes instead; none if a condition does not
    hold.
    """
    entry, body, last = loop.entry, loop.body, loop.last
    while True:
        regions = {poll: loop.region(poll) for poll in (last, *loop.peeled.values())}
        staying = {poll.load for poll, region in regions.items() if region is None or poll.load in region}
        if not staying:
            break
        if last.load in staying:
            return {}
        loop = loop._replace(peeled={at: poll for at, poll in loop.peeled.items() if at not in staying})
    region = set[int]().union(*(region for region in regions.values() if region is not None))
    idle = (loop.idle & region) - loop.peeled.keys()
    jumps = {at: poll.side(not loop.leaves) for at, poll in loop.peeled.items()} | dict.fromkeys(idle, last.load)
    inside = set(chain.from_iterable(poll.inside for poll in regions))
    left, region = last.side(loop.leaves), region - inside
    if not jumps or left in region | inside or _entered_elsewhere(entry, region, inside, regions):
        return {}
    changed = _written(entry, region | inside)
    looked_at = {int(name) for name in registers_of(last.condition) if name != LOADED}
    if changed & ({*body[last.load].sources} | looked_at):
        return {}
    if idle and _may_stay(loop, idle):
        return {}
    # What is skipped, or what another number of rounds leaves, is not used.
    live = liveness(_with_jumps(loop, jumps))
    results = {body[poll.load].writes for poll in regions}
    unused = [(left, changed - set(body[last.load].writes if len(results) == 1 else ()))]
    unused += [(poll.side(not loop.leaves), _results(body, poll.inside)) for poll in loop.peeled.values()]
    unused += [(last.load, _results(body, region))] if idle else []
    return {} if any(written & live[at] for at, written in unused) else jumps


def _written(entry: PtxFunction, instructions: Collection[int]) -> set[int]:
    """The registers that instructions write, but for those that hold one number wherever they are read."""
    return _results(body_of(entry), instructions) - constants(entry)


def _results(body: Body, instructions: Collection[int]) -> set[int]:
    """The registers that instructions write."""
    return {slot for at in instructions for slot in body[at].writes}


def _entered_elsewhere(entry: PtxFunction, region: set[int], inside: set[int], polls: Collection[Poll]) -> bool:
    """True if a thread may come to what a poll leads to, or to the middle of a poll, without that poll."""
    entered = (region | inside) - {poll.load for poll in polls}
    return any(
        successor in entered
        for at in _executed(entry)
        if at not in region and at not in inside
        for successor in body_of(entry)[at].follows
    )


def _may_stay(loop: PollLoop, idle: Collection[int]) -> bool:
    """True if a thread may go round idle loads for ever while they return another value than the last poll did. (If
    they return the same, the last load returns it, too, and leads back to itself.)
    """
    ways: dict[_Compared, list[_Compared]] = {}
    polls = (loop.last, *loop.peeled.values())
    waiting = [_Compared(poll.side(not loop.leaves), (), frozenset(), loop.body[poll.load].writes) for poll in polls]
    ends = {loop.last.load, *loop.peeled}
    while waiting:
        state = waiting.pop()
        if state in ways or state.at in ends:
            continue
        ways[state] = list(state.following(loop.body, idle))
        if len(ways) > MAX_STATES:
            return True
        waiting += ways[state]
    return graphs.has_cycle(ways)


class _Compared(NamedTuple):
    """Where a thread is between two polls, and what its registers hold: known numbers, what idle loads returned
    (`newer`), and what the poll before them did (`older`).
    """

    at: int
    known: Known
    newer: frozenset[int]
    older: tuple[int, ...]

    def following(self, body: Body, idle: Collection[int]) -> Iterator[_Compared]:
        does = body[self.at]
        newer = (self.newer - set(does.writes)) | set(does.writes if self.at in idle else ())
        older = tuple(slot for slot in self.older if slot not in does.writes)
        differ = self._differ(does) if does.instruction.guard is None else {}
        for at, known in following(body, (self.at, self.known)):
            yield _Compared(at, tuple(sorted((dict(known) | differ).items())), newer, older)

    def _differ(self, does: LoweredInstruction) -> dict[int, int]:
        """The results of a comparison of a newer value with an older one: they are not equal."""
        results = dict[int, int]()
        for name, value in results_of(does.ops).items():
            match value:
                case Apply("eq" | "ne" as word, (Get(first), Get(second)), type) if (
                    first.isdigit() and second.isdigit()
                ):
                    pair, whole = {int(first), int(second)}, type.kind in INTEGERS
                    if whole and len(pair & self.newer) == len(pair.intersection(self.older)) == 1:
                        results[int(name)] = int(word == "ne")
        return results


def _with_jumps(loop: PollLoop, jumps: Mapping[int, int]) -> PtxFunction:
    """The function with jumps in place of some instructions, each spelt as the jump of the last poll is."""
    branch = loop.body[loop.last.inside[-1]].instruction
    body = list(loop.entry.body or ())
    for at, target in jumps.items():
        operands = (JumpTarget(f"to line {body[target].line}", target),)
        load = body[at]
        body[at] = replace(
            branch, number=at, operands=operands, span=load.span, guard=None, negated=False, location=load.location
        )
    return replace(loop.entry, body=tuple(body))
