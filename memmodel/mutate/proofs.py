"""Which edits change nothing, by bounds on what an expression may hold.

In: EditFamily; labels, or the events of a test. Out: `Bounds`: whether an edited model agrees with the model in every
execution whose events have these labels, or in every execution of the test. Which labels a base relation may relate
stands in `base.label_bounds`, which events of a test it relates always and which never in `refine.cells`;
`search.judging.alike` follows the expressions from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memmodel.base.label_bounds import BOUNDS, may_relate
from memmodel.base.labels import Label
from memmodel.base.rows import bits, closure, inverse
from memmodel.base.sets import names_of
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.rows import Value, as_relation
from memmodel.encode.base import BaseFormulas
from memmodel.events.elaborate import elaborate
from memmodel.litmus.syntax import terms_of
from memmodel.mutate.family import EditFamily, Member
from memmodel.program.lowered import LoweredTest
from memmodel.refine.cells import Formulas
from memmodel.search.judging.alike import Differences, upper_bounds


class Bounds:
    """What edits can change. `most`: what each node may have, whatever the execution; its opposite: what it has in
    each. `subject`: what they were taken from."""

    def __init__(self, family: EditFamily, most: Evaluator[Value], subject: object = None) -> None:
        self.subject = subject
        self._family, self._most = family, most
        self._differences = Differences(most, most, inclusions=family.inclusions)

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
            and self._agree_on(placed.check.kind, checks[name].node, placed.node)
            for name, (placed, _) in member.changes.checks.items()
        )

    def _agree_on(self, kind: str, mine: int, other: int) -> bool:
        """True if two relations pass a test, or fail it, in the same executions: where it is about circles, they may
        disagree on what lies on none."""
        apart = self._differences.differs(mine, other)
        if kind == "empty" or isinstance(apart, int):
            return self._most.algebra.is_empty(apart)
        if kind == "irreflexive":
            return not any(row >> a & 1 for a, row in enumerate(apart))
        either = self._most.algebra.union(self._most.value(mine), self._most.value(other))
        reach = closure(as_relation(either))
        return not any(reach[b] >> a & 1 for a, row in enumerate(apart) for b in bits(row))


def bounds_of_labels(family: EditFamily, labels: Sequence[Label]) -> Bounds:
    """What edits can change where events have these labels."""
    return Bounds(family, upper_bounds(family.graph, labels))


def bounds_of_test(family: EditFamily, steps: LoweredTest, bound: int) -> Bounds:
    """What edits that ground values as the model does can change in a test. Raises TooLarge."""
    events = elaborate(steps, bound, tuple(terms_of(steps.test.condition)), grounded=family.grounded)
    return Bounds(family, Formulas(family.definitions, BaseFormulas(events)).high, subject=steps)


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
