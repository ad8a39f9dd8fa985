"""What a thread has not seen of another one, and why it went on.

In: an execution, the change that lets it see. Out: a sentence and what would do. Settled here: a value that is stored
again, or is there from the start, does not say which write was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memmodel.answer import ShownEvent
from memmodel.base.labels import Access
from memmodel.concrete.execution import Execution
from memmodel.program.ops import Jump, OnObject
from memmodel.program.uses import assigned
from memmodel.why.changes.situation import Change
from memmodel.why.flow import Flow
from memmodel.why.present.updates import same_value_read


class NotSeen:
    """What threads of one execution have not seen. `ends`: the two accesses, where they are known. `line`, `ref`: an
    event in words."""

    def __init__(
        self,
        execution: Execution,
        flow: Flow,
        shown: Mapping[int, ShownEvent],
        ends: tuple[int, int] | None,
        line: Callable[[int | None], str],
        ref: Callable[[int], str],
    ) -> None:
        self.execution, self.flow, self.shown, self.ends = execution, flow, shown, ends
        self.po = execution.relation("po")
        self.line, self.ref = line, ref

    def text_and_repair(self, change: Change, prior: str, after: str) -> tuple[str, str]:
        branch = "a branch that skips the access"
        if (end := self._made_where_not_seen(change.other)) is not None:
            text = f"{after} has not seen {prior}, and only then is {self.line(end)} executed"
            return text, "the other guard: the access belongs where it has seen it"
        same = None if change.other is None else same_value_read(self.execution, change.at, change.other)
        if same is not None:
            of = f"of {self.ref(same)}" if same in self.shown else "that is there at the start"
            own = same in self.shown and self.flow.thread(same) not in (None, self.flow.thread(change.at))
            again = "as well" if own else "again"
            text = f"{after} reads the value {of}, which {prior} stores {again}: it need not have seen that"
            return text, f"another value at {self.line(change.at)}, for which {self.line(change.other)} waits"
        if self._changes_memory(change.other):
            repair = f"{branch} unless it has"
        else:
            repair = f"a loop that repeats {self.line(change.other)} until it has, or {branch}"
        return f"{after} has not seen {prior}{self._not_waiting(change.other)}", repair

    def _changes_memory(self, event: int | None) -> bool:
        """True of an atomic operation that leaves something else each time that it is repeated."""
        if event is None or event not in self.shown:
            return False
        label = self.execution.events[event].label
        takes = any(word in self.shown[event].text for word in (".cas", ".exch"))  # what a lock is taken with
        return isinstance(label, Access) and label.rmw and not takes

    def _not_waiting(self, seeing: int | None) -> str:
        """A clause for the case that the later access does not depend on what its thread has seen: it does not wait."""
        for end in self.ends or ():
            if seeing is not None and self.po[seeing] >> self.flow.in_po(end) & 1:
                return f", and {self.line(end)} does not wait until it has"
        return ""

    def _made_where_not_seen(self, seeing: int | None) -> int | None:
        """The later access, where a guard by the predicate of a test makes it only if the test returned false."""
        record = None if seeing is None else self.execution.frame.record_of(self.execution.events[seeing])
        if record is None:
            return None
        program = self.execution.frame.lowered.programs[record.name.thread]
        test = program.steps[record.name.step].op
        if not isinstance(test, OnObject) or test.register is None:
            return None
        for end in self.ends or ():
            issue = self.flow.in_po(end)
            access = self.execution.frame.record_of(self.execution.events[issue])
            if access is None or seeing is None or not self.po[seeing] >> issue & 1:
                continue
            for number in range(record.name.step + 1, access.name.step + 1):
                step = program.steps[number]
                if test.register in assigned(step.op):
                    break
                if step.guard is None or step.guard.register != test.register:
                    continue
                skips = isinstance(step.op, Jump) and program.labels.get(step.op.label or "", -1) > access.name.step
                if step.guard.negated is (number == access.name.step) and (skips or number == access.name.step):
                    return end
        return None
