"""Numbers for labels of events.

In: labels. Out: `Labels`.
"""

from __future__ import annotations

from memmodel.base.labels import Label


class Labels:
    """Numbers for labels, the same for equal ones. Most equal ones are one object, which is faster to find."""

    def __init__(self) -> None:
        self._objects: dict[int, tuple[Label, int]] = {}
        self._equal: dict[Label, int] = {}

    def number(self, label: Label) -> int:
        known = self._objects.get(id(label))
        if known is None:
            known = self._objects[id(label)] = label, self._equal.setdefault(label, len(self._equal))
        return known[1]
