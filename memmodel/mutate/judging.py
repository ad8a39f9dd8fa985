"""What edits of a model make of one small test, by all its candidates.

In: EditFamily, the candidates of a test. Out: a ShortVerdict for each edit that is asked for. Settled here: an edit is
followed only as far as it changes a value. Where an edited expression has the same value on all candidates, nothing
above is evaluated again; else the definitions that refer to it are compared, and so on up to the checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.litmus.syntax import LitmusTest
from memmodel.mutate.candidates import Lanes
from memmodel.mutate.family import EditFamily, Member, PlacedCheck
from memmodel.mutate.verdicts import Consistent, ShortVerdict
from memmodel.search.judging.slices import WorldAlgebra


class TestJudge:
    """One question of a test, with its candidates."""

    __test__ = False  # no class of tests

    def __init__(self, family: EditFamily, test: LitmusTest, lanes: Sequence[Lanes]) -> None:
        self._family, self._test = family, test
        self._judges = [_LanesJudge(family, each) for each in lanes]

    def base(self) -> ShortVerdict:
        """The verdict of the model itself."""
        return self._verdict([judge.base for judge in self._judges], self._family.model)

    def verdict(self, member: Member) -> ShortVerdict:
        """The verdict of an edited model."""
        return self._verdict([judge.of(member) for judge in self._judges], self._family.model)

    def _verdict(self, parts: Sequence[Consistent], model: Model) -> ShortVerdict:
        whole = Consistent()
        for part in parts:
            whole.merge(part)
        return whole.verdict(self._test, model)


class _LanesJudge:
    """The candidates with one set of events."""

    def __init__(self, family: EditFamily, lanes: Lanes) -> None:
        self._family, self._lanes = family, lanes
        self._graph = family.graph
        self._algebra = WorldAlgebra([lanes.every] * lanes.skeleton.frame.count, lanes.base)
        self._some = lanes.skeleton.frame.count > 0  # without an event, every value is empty
        self._evaluator: Evaluator[Any] = Evaluator(self._graph, self._algebra)
        self._holds = {name: self._holding(placed, self._evaluator) for name, placed in family.checks.items()}
        self.base = self._consistent(self._holds, set())

    def of(self, member: Member) -> Consistent:
        """What the executions show that are consistent under an edit."""
        edit, evaluator = member.edit, Evaluator(self._graph, self._algebra, self._known)
        value = evaluator.value
        same = not self._some or all(value(mine) == value(other) for mine, other in member.frontier)
        if same and not member.of_check:
            return self.base
        unequal: set[int] = set()
        for changed in () if same else member.changes.definitions:
            begins = changed.number in edit.definitions or not unequal.isdisjoint(changed.needs)
            if begins and value(changed.mine) != value(changed.other):
                unequal.add(changed.number)
        holds: dict[str, int] = {}
        gone: set[str] = set()
        for name, (placed, needs) in member.changes.checks.items():
            if placed is None:
                gone.add(name)
            elif (
                name in edit.checks
                or placed.check.kind != self._family.checks[name].check.kind
                or not unequal.isdisjoint(needs)
            ):
                mask = self._holding(placed, evaluator)
                if mask != self._holds[name]:
                    holds[name] = mask
        return self._consistent({**self._holds, **holds}, gone) if holds or gone else self.base

    def _known(self, number: int) -> Any:
        """The value of a node of the model. Those of one edit alone are not kept: they would fill the memory."""
        return self._evaluator.value(number) if number < self._family.own else None

    def _holding(self, placed: PlacedCheck, evaluator: Evaluator[Any]) -> int:
        """The lanes in which a check holds; of a flag, those in which it is raised."""
        fails = self._algebra.fails(placed.check.kind, evaluator.value(placed.node)) if self._some else 0
        return (fails if placed.check.negated else ~fails) & self._lanes.every

    def _consistent(self, holds: dict[str, int], gone: set[str]) -> Consistent:
        lanes, checks = self._lanes, self._family.checks
        alive = lanes.every
        for name, placed in checks.items():
            if not placed.check.flag and name not in gone:
                alive &= holds[name]
        raised = {
            name: holds[name] & alive & ~lanes.stopped
            for name, placed in checks.items()
            if placed.check.flag and name not in gone
        }
        undefined = 0
        for name, mask in raised.items():
            if kind_of(name) is FindingKind.UNDEFINED:
                undefined |= mask
        return Consistent(
            bool(alive & lanes.yes),
            bool(alive & lanes.no),
            bool(alive & lanes.waits & ~undefined),
            bool(alive & lanes.stopped),
            frozenset(name for name, mask in raised.items() if mask),
        )
