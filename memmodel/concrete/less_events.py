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
    that it lacks itself; `gone`: all that are left out; `relations`: those that are chosen, without them."""

    def __init__(self, whole: Execution, gone: int, relations: dict[str, Rows]) -> None:
        self.whole, self._left = whole, relations
        self.before: int = whole.frame.gone if isinstance(whole.frame, LessEvents) else 0
        self.gone: int = gone | self.before
        self.events, self.count = whole.events, len(whole.events)

    def changed(self, execution: Execution) -> set[str]:
        """The base names that decide more in an execution with this fixed part than to leave out events."""
        whole, sets, relations = self.whole, execution.chosen_sets, execution.chosen_relations
        names = {name for name, rows in relations.items() if rows is not self._left.get(name)}
        left = {name: mask & ~self.gone for name, mask in whole.chosen_sets.items()}
        return names | {name for name, mask in sets.items() if mask != left.get(name)}

    def set(self, name: str) -> int:
        return self.whole.frame.set(name) & ~self.gone

    def relation(self, name: str) -> Rows:
        return rows_without(self.whole.frame.relation(name), self.gone)


def without(execution: Execution, gone: int, more: Mapping[str, int]) -> Execution:
    """The execution without the events in `gone`. `more`: events that are then in base sets, too."""
    sets = {name: mask & ~gone | more.get(name, 0) for name, mask in execution.chosen_sets.items()}
    relations = {name: rows_without(rows, gone) for name, rows in execution.chosen_relations.items()}
    frame = LessEvents(execution, gone, relations)
    return replace(execution, frame=frame, chosen_sets=sets, chosen_relations=relations)
