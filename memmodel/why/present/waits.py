"""The waits of a thread that do not cover the end of an asynchronous access.

In: an execution, the change that adds a wait. Out: what is wrong with those that stand there, and what would do.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.base.labels import Mbarrier
from memmodel.base.rows import bits
from memmodel.concrete.execution import Execution
from memmodel.program.expressions import Const
from memmodel.program.ops import CommitGroup, WaitForGroups
from memmodel.why.changes.situation import Change, is_submit, is_told_elsewhere
from memmodel.why.flow import Flow
from memmodel.why.phases import waited_again


class WaitsForCompletion:
    """The waits of one execution. `name`: the name of an event with its place."""

    def __init__(self, execution: Execution, flow: Flow, name: Callable[[int | None], str]) -> None:
        self.execution = execution
        self.flow = flow
        self.name = name
        self.po = execution.relation("po")

    def short(self, change: Change) -> tuple[str, str]:
        """A wait of the thread that stands there and does not cover the access; what would do, where that is not
        another wait."""
        completes, event = self.execution.relation("compl"), change.at
        issue = self.flow.in_po(event)
        waits = [
            n
            for n in range(self.flow.count)
            if self.execution.set("WAITGROUP") >> n & 1 and self.po[issue] >> n & 1 and not completes[event] >> n & 1
        ]
        if not waits:
            return self._too_late(change) or self._told(change) or (self._waited_again(change.other), "")
        submits = [n for n in bits(self.po[waits[0]]) if is_submit(self.execution.events[n].label)]
        if submits:
            after = self.name(submits[0])
            return f"; {self.name(waits[0])} waits for submitted operations only, and stands before {after}", ""
        if self._in_no_group(issue, waits[0]):
            wait = self.name(waits[0])
            return f"; {wait} waits for groups, and no commit_group has put it into one", f"commit_group before {wait}"
        before = [n for n in waits if change.other is not None and self.po[n] >> change.other & 1]
        last = max(before or waits[:1], key=lambda n: self.execution.events[n].point.order or 0)
        return f"; {self.name(last)} {self._leaves(event, last)}", ""

    def _too_late(self, change: Change) -> tuple[str, str] | None:
        """A wait that sees the end of the access, and stands behind what has to come after it."""
        for wait in self.flow.completion_waits(change.at):
            test = isinstance(self.execution.events[wait].label, Mbarrier)
            if test and change.other is not None and self.po[change.other] >> wait & 1:
                seen, needed = self.name(wait), self.name(change.other)
                return f"; {seen} sees its end later", f"{seen} before {needed}"
        return None

    def _leaves(self, event: int, wait: int) -> str:
        """Why a wait for groups does not cover an access that was put into one."""
        op = self._waiting(wait)
        if op is not None and op.sources_only and self.execution.set("W") >> event & 1:
            return "covers reads of sources only"
        if any(row >> wait & 1 for row in self.execution.relation("compl")):
            return "waits for older groups only, and leaves this one pending"
        match op:
            case WaitForGroups(pending=Const(value=1)):
                return "leaves the last group pending, which is this one"
            case WaitForGroups(pending=Const(value=pending)) if pending > 0:
                return f"leaves the last {pending} groups pending, this one among them"
        return "covers none of its groups"

    def _waiting(self, wait: int) -> WaitForGroups | None:
        """The operation of a wait for groups."""
        record = self.execution.frame.record_of(self.execution.events[wait])
        if record is None:
            return None
        op = self.execution.frame.lowered.programs[record.name.thread].steps[record.name.step].op
        return op if isinstance(op, WaitForGroups) else None

    def _in_no_group(self, issue: int, wait: int) -> bool:
        """True if a wait is for groups, and the thread commits none between an asynchronous instruction and it."""
        records = [self.execution.frame.record_of(self.execution.events[event]) for event in (issue, wait)]
        waiting = self._waiting(wait)
        if records[0] is None or records[1] is None or waiting is None or waiting.pending is None:
            return False
        first, last = records[0].name, records[1].name
        if last.step < first.step:
            return False
        steps = self.execution.frame.lowered.programs[first.thread].steps
        ops = [step.op for step in steps[first.step : last.step]]
        return not any(isinstance(op, CommitGroup) and op.track is waiting.track for op in ops)

    def _waited_again(self, event: int | None) -> str:
        """A wait of the later thread that is for nothing new."""
        again = None if event is None else waited_again(self.execution, event)
        return "" if again is None else f"; {self.name(again[0])} waits for what {self.name(again[1])} has waited for"

    def _told(self, change: Change) -> tuple[str, str] | None:
        arrival = self.told_to_nobody(change)
        if arrival is None:
            return None
        text = f"; {self.name(arrival)} tells of it on an object that no thread waits for"
        return text, f"{self.name(arrival)} on an object that is waited for before {self.name(change.other)}"

    def elsewhere(self, change: Change) -> str:
        """Who has to wait, in words, where the end of an access is told on an object of another CTA alone."""
        if change.other is None or not is_told_elsewhere(self.execution, change.at, self.flow.in_po(change.other)):
            return ""
        return ", by a thread of the CTA of its object that then tells this one,"

    def told_to_nobody(self, change: Change) -> int | None:
        """An arrival for which no thread waits, by a thread that waits for the end of the access."""
        tests, same = self.execution.set("MBTEST"), self.execution.relation("samebar")
        for end in bits(self.execution.relation("compl")[change.at]):
            for wait in bits(same[end] & tests):
                arrivals = bits(self.po[wait] & self.execution.set("ARRIVEON"))
                told = next((arrival for arrival in arrivals if not same[arrival] & tests), None)
                if told is not None:
                    return told
        return None
