"""An execution without some of its events, which stay as numbers that nothing relates.

In: an execution, the events that are left out. Out: an execution of the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memmodel.base.rows import Rows, rows_without
from memmodel.concrete.execution import Execution, FixedPart


class LessEvents(FixedPart):
    """The fixed part of an execution without some events. `whole`: the execution with them; `before`: events
    that it lacks itself; `gone`: all that are left out. Its relations are those of the whole, chosen or not, each made
    when it is asked for."""

    def __init__(self, whole: Execution, gone: int) -> None:
        self.whole = whole
        self.before: int = whole.frame.gone if isinstance(whole.frame, LessEvents) else 0
        self.gone: int = gone | self.before
        self.events, self.count = whole.events, len(whole.events)
        self._left: dict[str, Rows] = {}

    def changed(self, execution: Execution) -> set[str]:
        """The base names that decide more in an execution with this fixed part than to leave out events."""
        left = {name: mask & ~self.gone for name, mask in self.whole.chosen_sets.items()}
        sets = {name for name, mask in execution.chosen_sets.items() if mask != left.get(name)}
        return sets | execution.chosen_relations.keys()

    def set(self, name: str) -> int:
        return self.whole.frame.set(name) & ~self.gone

    def relation(self, name: str) -> Rows:
        if name not in self._left:
            self._left[name] = rows_without(self.whole.relation(name), self.gone)
        return self._left[name]


def without(execution: Execution, gone: int, more: Mapping[str, int]) -> Execution:
    """The execution without the events in `gone`. `more`: events that are then in base sets, too."""
    sets = {name: mask & ~gone | more.get(name, 0) for name, mask in execution.chosen_sets.items()}
    return replace(execution, frame=LessEvents(execution, gone), chosen_sets=sets, chosen_relations={})
