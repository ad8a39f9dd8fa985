"""How far the order gets from the first access of a finding towards the second, and what stops it there.

In: Judgement's graph and relations, two events. Out: `Missing`, with a reason from the closed list `MissingOrder`.
The model decides that they are not ordered; this says in which of its terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import pairwise, takewhile

from memmodel.base.labels import (
    Access,
    Action,
    Barrier,
    Family,
    Fence,
    GroupWait,
    Label,
    Mbarrier,
    ProxyFence,
    Side,
    Signal,
    side_of,
)
from memmodel.base.rows import Rows, bits, closure
from memmodel.isa.lowered import lowered
from memmodel.kernel.order.fences import BASE
from memmodel.kernel.order.flags import Flags
from memmodel.kernel.order.graph import STEP, Graph
from memmodel.kernel.order.tensor_order import TensorOrder
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Proxy, Sem

STEPS = ("synchronizes", "mbarobs", "syncbar", "rf", "rmw", "iss", "compl", "complwg")
"""What leads from one thread to another, or from an instruction to its parts; program order does the rest."""


class MissingOrder(Enum):
    """The kinds of order that may be missing between two events."""

    SYNCHRONIZATION = "no synchronization"
    SCOPES = "scopes that do not include each other"
    RELAXED = "relaxed where acquire or release is needed"
    PROXY = "no proxy fence on the path"
    PROXY_PLACE = "a proxy fence that names another state space or range, stands in another CTA or on the wrong side"
    COMPLETION = "completion not waited for"
    TENSOR = "tcgen05 fence, commit or wait missing"
    PARITY = "wrong parity"
    COUNT = "arrive count or expected bytes that do not match"
    SIZE = "not one location"
    GONE = "an object or CTA that may be gone"
    UNSTARTED = "a CTA that may not have started"
    REDUCTION = "a reduction that heads no acquire pattern"


UNFINISHED = frozenset((MissingOrder.COMPLETION.value, MissingOrder.PARITY.value, MissingOrder.COUNT.value))
"""What is missing where an access may not be over: a wait for its end, or one that waits for the phase of its end."""


@dataclass(frozen=True, slots=True)
class Missing:
    """`first`, `second`: the events in the order of the way. `way`: events from the first towards the second.
    `mentioned`: the instructions that the text names by their lines.
    """

    reason: MissingOrder
    text: str
    first: int
    second: int
    way: tuple[int, ...] = ()
    mentioned: tuple[PtxInstruction, ...] = ()


class _Tree:
    """The events that are reached from one event, nearest first, each with the one before it in `came`. It grows as far
    as somebody looks: most ways are short.
    """

    def __init__(self, forth: Rows, first: int) -> None:
        self._forth = forth
        self._events, self.came = [first], {first: -1}
        self._unseen = ((1 << len(forth)) - 1) ^ 1 << first
        self._grown = 0

    def each(self) -> Iterator[int]:
        """The events, nearest first."""
        events, number = self._events, 0
        while True:
            while number < len(events):
                yield events[number]
                number += 1
            if self._grown == len(events):
                return
            at = events[self._grown]
            self._grown += 1
            new = self._forth[at] & self._unseen
            if new:
                self._unseen ^= new
                reached = bits(new)
                self.came |= dict.fromkeys(reached, at)
                events += reached


class Ways:
    """The ways between events of one judged graph."""

    def __init__(self, graph: Graph, flags: Flags, body: tuple[PtxInstruction, ...]) -> None:
        self.graph, self.flags, self.body = graph, flags, body
        self.points = graph.points
        self._trees: dict[int, _Tree] = {}
        self._mentioned: list[PtxInstruction] = []

    def missing(self, rule: str, left: int, right: int) -> Missing | None:
        """What is missing between two events of a finding."""
        self._mentioned.clear()
        missing = self._missing(rule, left, right)
        return None if missing is None else replace(missing, mentioned=tuple(self._mentioned))

    def _missing(self, rule: str, left: int, right: int) -> Missing | None:
        if left == right:
            return None
        base = self._rows(BASE)
        first, second, way = self._directed(left, right, base)
        labels = self.points[first].label, self.points[second].label
        if rule == "tensor-memory-hazard":
            return self._tensor(first, second, way)
        if rule == "mixed-size-race":
            return Missing(MissingOrder.SIZE, "the accesses have different sizes", first, second, way)
        if rule == "undefined-barrier":
            text = f"{self._line(left)} and {self._line(right)} ask for different counts, or only one is a .red"
            return Missing(MissingOrder.COUNT, text, left, right)
        if rule == "undefined-before-start":
            return Missing(MissingOrder.UNSTARTED, "", first, second, way)
        if "exit" in rule or "inval" in rule:
            return Missing(MissingOrder.GONE, self._still_there(rule, left, right), first, second, way)
        proxies = {label.proxy for label in labels if isinstance(label, Access)}
        if base[first] >> second & 1 and len(proxies) > 1:
            return self._proxies(first, second, way)
        scopes = [label.scope for label in labels if isinstance(label, Access) and label.sem is not Sem.WEAK]
        if rule == "data-race" and len(scopes) == len(labels):
            text = " and ".join(f".{scope.name.lower()}" for scope in scopes if scope is not None)
            return Missing(MissingOrder.SCOPES, text, first, second, way)
        if self.points[first].issue == self.points[second].issue is not None:
            text = "one copy accesses these bytes twice, in no order"
            return Missing(MissingOrder.SYNCHRONIZATION, text, first, second, way)
        if any(isinstance(label, Access) and label.asynchronous for label in labels[:1]) and len(way) <= 1:
            early = self._does_not_cover(first, second)
            if early is not None:
                text = f"{self._line(early)} does not wait for the end of the first access"
                return Missing(MissingOrder.COMPLETION, text, first, second, way)
            awaited = self._awaited(first)
            if awaited is not None:
                waiter = f"{self._line(awaited)} waits for the end of the first access"
                text = f"{waiter}, and nothing leads from it to the other one"
                return Missing(MissingOrder.SYNCHRONIZATION, text, first, second, way)
            unseen = self._another_phase(first, second)
            if unseen is not None:
                return Missing(*unseen, first, second, way)
            return Missing(MissingOrder.COMPLETION, "nothing waits for the end of the first access", first, second, way)
        if len(way) > 1:
            return self._weak_link(first, second, way)
        return Missing(MissingOrder.SYNCHRONIZATION, self._apart(first, second), first, second, way)

    def _rows(self, name: str) -> Rows:
        return self.flags.relation(name) or [0] * len(self.points)

    def _directed(self, left: int, right: int, base: Rows) -> tuple[int, int, tuple[int, ...]]:
        """The two events in the order in which something leads from the first to the second, and the way."""
        if base[right] >> left & 1:
            return right, left, self._way(right, left)
        forth, back = self._way(left, right), self._way(right, left)
        if not forth and not back:
            sides = [side_of(self.points[n].label) for n in (left, right)]
            if None in sides:
                return (right, left, ()) if sides[1] is Side.WRITE else (left, right, ())
            return (right, left, ()) if self._time(right) < self._time(left) else (left, right, ())
        return (right, left, back) if not forth or (back and len(back) < len(forth)) else (left, right, forth)

    def _time(self, number: int) -> int:
        """When an access, or the instruction that it is a part of, was executed in the run, as far as traces show."""
        point = self.points[number]
        whole = point if point.issue is None else self.points[point.issue]
        events = [] if whole.thread is None else self.graph.run.threads[whole.thread].events
        at = (whole.order or 0) // STEP - 1
        return events[min(at, len(events) - 1)].time if events and at >= 0 else 0

    @cached_property
    def _steps(self) -> Rows:
        """What leads from one thread to another."""
        rows = [0] * len(self.points)
        for name in STEPS:
            step = self._rows(name) if name == "synchronizes" else self.flags.execution.relation(name)
            rows = [old | new for old, new in zip(rows, step, strict=True)]
        return rows

    @cached_property
    def _forth(self) -> Rows:
        """The steps, and from each event the later ones of its thread from which a step leads."""
        leads = sum(1 << event for event, row in enumerate(self._steps) if row)
        order = self.flags.execution.relation("po")
        return [step | after & leads for step, after in zip(self._steps, order, strict=True)]

    @cached_property
    def _next(self) -> Rows:
        """The steps, and from each event all later ones of its thread."""
        order = self.flags.execution.relation("po")
        return [step | after for step, after in zip(self._steps, order, strict=True)]

    @cached_property
    def _reached(self) -> Rows:
        """Which events reach which at all; from most events there is no way to most others."""
        return closure(self._next)

    def _way(self, first: int, second: int) -> tuple[int, ...]:
        """The events at which a shortest way leaves or enters a thread, the ends left out."""
        if not self._reached[first] >> second & 1:
            return ()
        tree, following = self._tree(first), self._next
        last = next((at for at in tree.each() if following[at] >> second & 1 and at != second), None)
        if last is None:
            return ()
        way, at = [], last
        while at != first:
            way.append(at)
            at = tree.came[at]
        return tuple(way[::-1])

    def _tree(self, first: int) -> _Tree:
        if first not in self._trees:
            self._trees[first] = _Tree(self._forth, first)
        return self._trees[first]

    def _awaited(self, first: int) -> int | None:
        """The nearest event at which a thread knows that an asynchronous access is over; None if there is none."""
        points = self.points
        known = (
            n for n in self._tree(first).each() if n != first and points[n].issue is None and waits(points[n].label)
        )
        return next(known, None)

    def _does_not_cover(self, first: int, second: int | None) -> int | None:
        """The last wait for groups of its kind behind an asynchronous access that does not wait for the access, and
        leads to the second one."""
        issue, label = self.points[first].issue, self.points[first].label
        if issue is None or not isinstance(label, Access):
            return None
        ends, order = self.flags.execution.relation("compl")[first], self.flags.execution.relation("po")
        later = sorted(bits(order[issue]), key=lambda n: self.points[n].order or 0)
        waits_of = [n for n in later if isinstance(self.points[n].label, GroupWait)]
        early = takewhile(lambda n: not ends >> n & 1, (n for n in waits_of if self._family(n) is label.family))
        leading = [wait for wait in early if second is None or self._reached[wait] >> second & 1]
        return leading[-1] if leading else None

    def _another_phase(self, first: int, second: int) -> tuple[MissingOrder, str] | None:
        """A test of the object that tells of the end of an asynchronous access, on the way to the second one: it asks
        for a phase that is over without it, or for the other parity."""
        execution = self.flags.execution
        same, order, seen = (execution.relation(name) for name in ("samebar", "po", "mbarobs"))
        issue = self.points[second].issue
        at, done = second if issue is None else issue, execution.set("MBDONE")
        ends = [n for n in bits(execution.relation("compl")[first]) if isinstance(self.points[n].label, Signal)]
        tests = [n for end in ends for n in bits(same[end] & done) if order[n] >> at & 1]
        test = max(tests, key=lambda n: self.points[n].order or 0, default=None)
        if test is None:
            return None
        before = sum(1 << n for n, row in enumerate(order) if row >> test & 1)
        if all(row & before for row in seen if row >> test & 1):
            return MissingOrder.PARITY, f"{self._line(test)} asks for the parity of the phase before"
        return MissingOrder.COUNT, f"the phase that {self._line(test)} asks for is over without the first access"

    def _family(self, wait: int) -> Family | None:
        label = self.points[wait].label
        return label.family if isinstance(label, GroupWait) else None

    def _still_there(self, rule: str, left: int, right: int) -> str:
        """What an access lacks whose memory goes with its CTA."""
        access = next((n for n in (left, right) if isinstance(self.points[n].label, Access)), None)
        if "exit" not in rule or access is None:
            return ""
        label = self.points[access].label
        if not (isinstance(label, Access) and label.asynchronous):
            return "nothing orders the access before the end of the CTA that has the memory"
        awaited = self._awaited(access)
        if awaited is None:
            early = self._does_not_cover(access, None)
            waits_not = "nothing waits" if early is None else f"{self._line(early)} does not wait"
            return f"{waits_not} for the end of the access"
        return f"{self._line(awaited)} waits for the end of the access, and the CTA may end before that"

    @cached_property
    def _tensor_order(self) -> TensorOrder:
        return TensorOrder(self.flags, self.points, self._line)

    def _tensor(self, first: int, second: int, way: tuple[int, ...]) -> Missing:
        """What is missing between two accesses to tensor memory: as far as it gets in one of the two directions."""
        both = ((first, second, way), (second, first, ()))
        for ahead, later, steps in both:
            self._mentioned.clear()
            text = self._tensor_order.missing(ahead, later)
            if text is not None:
                return Missing(MissingOrder.TENSOR, text, ahead, later, steps)
        first, second, way = max(both, key=lambda ends: side_of(self.points[ends[0]].label) is Side.WRITE)
        self._mentioned.clear()
        issues = [point.issue for point in (self.points[first], self.points[second])]
        told = self._tensor_order.told(first)
        if told is not None:
            text = f"{told} tells of the end of the first access, and nothing leads from it to the other one"
            return Missing(MissingOrder.SYNCHRONIZATION, text, first, second, way)
        apart = self._apart(issues[0] or first, issues[1] or second)
        return Missing(MissingOrder.SYNCHRONIZATION, apart, first, second, way)

    def _proxies(self, first: int, second: int, way: tuple[int, ...]) -> Missing:
        base = self._rows(BASE)
        fences = [n for n, point in enumerate(self.points) if isinstance(point.label, ProxyFence)]
        between = [n for n in fences if base[first] >> n & 1 and base[n] >> second & 1]
        threads = {self.points[first].thread, self.points[second].thread}
        labels = [self.points[n].label for n in (first, second)]
        named = sorted(
            {label.proxy.value for label in labels if isinstance(label, Access) and label.proxy is not Proxy.GENERIC}
        )
        proxies = " and ".join(named) or "other"
        if between:
            lines = ", ".join(self._line(n) for n in between[:2])
            return Missing(
                MissingOrder.PROXY_PLACE, f"the fence at {lines} does not serve this pair", first, second, way
            )
        beside = [n for n in fences if self.points[n].thread in threads and not base[n] >> first & 1]
        near = [n for n in beside if base[first] >> n & 1 or base[n] >> second & 1]
        text = f"; the one at {self._line(near[0])} is not on it" if near else ""
        reason = MissingOrder.PROXY_PLACE if near else MissingOrder.PROXY
        return Missing(reason, f"ordered, but no fence for the {proxies} proxy is on the way{text}", first, second, way)

    def _weak_link(self, first: int, second: int, way: tuple[int, ...]) -> Missing:
        """The first step of the way between threads that synchronizes nothing."""
        causes = self._rows(BASE)
        chain = (first, *way, second)
        for place, (at, after) in enumerate(pairwise(chain)):
            left, right = self.points[at], self.points[after]
            if causes[at] >> after & 1 or left.thread == right.thread:
                continue
            if not all(self._has_semantics(event) for event in (at, after)):
                return Missing(MissingOrder.SYNCHRONIZATION, self._apart(first, second), first, second, way)
            sems = [getattr(point.label, "sem", None) for point in (left, right)]
            text = f"from {self._line(at)} to {self._line(after)}"
            ends = chain[max(0, place - 1)], at, after, chain[min(place + 2, len(chain) - 1)]
            if Sem.RELAXED in sems and not self._fenced(sems, ends):
                return Missing(MissingOrder.RELAXED, text, first, second, way)
            narrow = self._narrow_fences(ends)
            if narrow:
                fences = " and ".join(map(self._line, narrow))
                verb = "is" if len(narrow) == 1 else "are"
                return Missing(
                    MissingOrder.SCOPES, f"{fences} {verb} too narrow for the step {text}", first, second, way
                )
            scopes = [getattr(point.label, "scope", None) for point in (left, right)]
            named = " and ".join(f".{scope.name.lower()}" for scope in scopes if scope is not None)
            return Missing(MissingOrder.SCOPES, f"{named} {text}", first, second, way)
        signal = any(isinstance(self.points[n].label, Signal) for n in way)
        if signal:
            return Missing(
                MissingOrder.COMPLETION, "the signal on the way tells of another operation", first, second, way
            )
        return Missing(MissingOrder.SYNCHRONIZATION, "", first, second, way)

    def _has_semantics(self, event: int) -> bool:
        """False of a relaxed event whose instruction has no word for semantics, as of lanes that only meet."""
        if getattr(self.points[event].label, "sem", None) is not Sem.RELAXED:
            return True
        row = lowered(self.body[self.graph.origins[event].at]).row
        return row is None or any(slot.name == "sem" for slot in row.slots)

    def _narrow_fences(self, ends: tuple[int, int, int, int]) -> list[int]:
        """The fences beside a step between threads whose scope does not take in the other thread. `ends`: as below."""
        order = self.flags.execution.relation("po")
        before, at, after, behind = ends
        mine, other = self.points[at].place, self.points[after].place
        if mine is None or other is None:
            return []
        return [
            number
            for low, high, place, reached in ((before, at, mine, other), (after, behind, other, mine))
            for number in bits(order[low])
            if order[number] >> high & 1
            if isinstance(label := self.points[number].label, Fence) and not place.shares(label.scope, reached)
        ]

    def _fenced(self, sems: list[object], ends: tuple[int, int, int, int]) -> bool:
        """True if a fence stands wherever a step between threads is relaxed. `ends`: the event before the step, its two
        events, and the one after it.
        """
        order = self.flags.execution.relation("po")
        before, at, after, behind = ends

        def between(low: int, high: int) -> bool:
            later = bits(order[low])
            return any(isinstance(self.points[n].label, Fence) and order[n] >> high & 1 for n in later)

        left = sems[0] is not Sem.RELAXED or between(before, at)
        return left and (sems[1] is not Sem.RELAXED or between(after, behind))

    def _apart(self, first: int, second: int) -> str:
        """What the first thread does next, and what the second one did before."""
        left, right = self.points[first], self.points[second]
        if left.thread == right.thread:
            return "they are of one thread, and nothing orders an asynchronous access with the other one"
        order = self.flags.execution.relation("po")
        after = [n for n in bits(order[first]) if synchronizes(self.points[n].label)]
        before = [n for n in range(len(self.points)) if order[n] >> second & 1 and synchronizes(self.points[n].label)]
        later = min(after, key=lambda n: self.points[n].order or 0, default=None)
        last = max(before, key=lambda n: self.points[n].order or 0, default=None)
        parts = []
        if later is not None:
            parts.append(f"after the first access its thread goes on to {self._line(later)}")
        if last is not None:
            parts.append(f"the other thread comes from {self._line(last)}")
        return "; ".join(parts)

    def _line(self, number: int) -> str:
        origin = self.graph.origins[number]
        instruction = self.body[origin.at]
        self._mentioned.append(instruction)
        return instruction.at_line


def waits(label: Label) -> bool:
    """True if a thread waits at an event of that kind for the end of what is asynchronous."""
    return isinstance(label, GroupWait) or (isinstance(label, Mbarrier) and label.action is Action.TEST)


def synchronizes(label: Label) -> bool:
    """True if an event of that kind may order its thread with another one."""
    if isinstance(label, Barrier):
        return label.sem is not Sem.RELAXED
    if isinstance(label, Mbarrier):
        return label.action not in (Action.INIT, Action.INVAL)
    return isinstance(label, Fence) or (isinstance(label, Access) and label.sem is not Sem.WEAK)
