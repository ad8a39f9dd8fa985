"""Which edits change nothing, by the labels of events alone.

In: EditFamily, labels. Out: `Bounds`: whether an edited model agrees with the model in every execution whose events
have these labels. Which labels a base relation may relate stands in `base.label_bounds`; `search.judging.alike` follows
the expressions from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memmodel.base.label_bounds import BOUNDS, may_relate
from memmodel.base.labels import Label
from memmodel.base.rows import inverse
from memmodel.base.sets import names_of
from memmodel.mutate.family import EditFamily, Member
from memmodel.search.judging.alike import Differences, upper_bounds


class Bounds:
    """What edits can change where events have these labels. `subject`: what they were taken from."""

    def __init__(self, family: EditFamily, labels: Sequence[Label], subject: object = None) -> None:
        self.subject = subject
        self._family = family
        most = upper_bounds(family.graph, labels)
        self._differences = Differences(most, most)

    def agrees(self, member: Member) -> bool:
        """True if an edited model agrees with the model on every check, in every such execution."""
        if member.of_check:
            return False
        agree = self._differences.agree
        if all(agree(mine, other) for mine, other in member.frontier):
            return True
        checks = self._family.checks
        return all(
            placed is not None
            and placed.check.kind == checks[name].check.kind
            and agree(checks[name].node, placed.node)
            for name, (placed, _) in member.changes.checks.items()
        )


def kinds_of(labels: Iterable[Label]) -> tuple[Label, ...]:
    """One label of each kind: labels are of one kind if they are in the same base sets, and base relations may relate
    them to and from the same labels.
    """
    unique = list(dict.fromkeys(labels))
    relations = [may_relate(name, unique) for name in BOUNDS]
    columns = [*relations, *map(inverse, relations)]
    kinds: dict[object, Label] = {}
    for at, label in enumerate(unique):
        kinds.setdefault((names_of(label), tuple(rows[at] for rows in columns)), label)
    return tuple(kinds.values())
