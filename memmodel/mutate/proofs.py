"""Which edits change nothing, by the labels of events alone.

In: EditFamily, labels. Out: `Bounds`: whether an edited model agrees with the model in every execution whose events
have these labels. Settled here: which events a base relation may relate (`TYPES`); `search.judging.alike` follows the
expressions from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Barrier,
    Fence,
    Half,
    InitialWrite,
    Issue,
    Label,
    Mbarrier,
    ProxyFence,
    Side,
    Signal,
    scope_of,
)
from memmodel.base.sets import names_of
from memmodel.cat.evaluate.evaluator import Evaluator
from memmodel.cat.evaluate.graph import Node
from memmodel.cat.evaluate.rows import Value
from memmodel.mutate.family import EditFamily, Member
from memmodel.ptx.vocabulary import Sem
from memmodel.search.judging.alike import Differences, LeastLabels, MostLabels

_Is = Callable[[Label], bool]


def _reads(label: Label) -> bool:
    return isinstance(label, Access) and label.side is Side.READ


def _writes(label: Label) -> bool:
    return isinstance(label, InitialWrite) or (isinstance(label, Access) and label.side is Side.WRITE)


def _memory(label: Label) -> bool:
    return isinstance(label, Access | InitialWrite)


def _asynchronous(label: Label) -> bool:
    return isinstance(label, Signal) or (isinstance(label, Access) and label.asynchronous)


def _executed(label: Label) -> bool:
    return not isinstance(label, InitialWrite) and not _asynchronous(label)


def _strongest(label: Label) -> bool:
    return isinstance(label, Fence) and label.sem is Sem.SC


def _half(half: Half) -> _Is:
    return lambda label: isinstance(label, Barrier) and label.half is half


def _issue(label: Label) -> bool:
    return isinstance(label, Issue)


def _tests(label: Label) -> bool:
    return isinstance(label, Mbarrier) and label.action is Action.TEST


def _updates(label: Label) -> bool:
    return isinstance(label, Signal) or (isinstance(label, Mbarrier) and label.action is not Action.TEST)


def _covering(label: Label) -> bool:
    return isinstance(label, Fence | ProxyFence | Allocates)


def _covered(label: Label) -> bool:
    return _memory(label) or (isinstance(label, Mbarrier) and label.action is Action.INIT)


def _scoped(label: Label) -> bool:
    return scope_of(label) is not None


TYPES: dict[str, tuple[_Is, _Is]] = {
    "rf": (_writes, _reads),
    "co": (_writes, _writes),
    "rmw": (_reads, _writes),
    "po": (_executed, _executed),
    "loc": (_memory, _memory),
    "vloc": (_memory, _memory),
    "whole": (_memory, _memory),
    "sr": (_scoped, _scoped),
    "sri": (_scoped, _scoped),
    "sync_fence": (_strongest, _strongest),
    "syncbar": (_half(Half.ARRIVE), _half(Half.WAIT)),
    "samegen": (_half(Half.ARRIVE), _half(Half.ARRIVE)),
    "genbefore": (_half(Half.ARRIVE), _half(Half.ARRIVE)),
    "iss": (_issue, _asynchronous),
    "mbar": (_updates, _updates),
    "mbarobs": (_updates, _tests),
    "mbarfr": (_tests, _updates),
    "covers": (_covering, _covered),
}
"""Relations that only events of some kinds have: those that they lead from, and those that they lead to."""


class TypedLabels(MostLabels):
    """The labels that a base name may have or relate, with the kinds of `TYPES`."""

    def __init__(self, labels: Sequence[Label]) -> None:
        super().__init__(labels)
        self._kinds: dict[str, list[int]] = {}

    def base(self, node: Node) -> Value:
        """A base set or relation."""
        if node.is_set or node.name not in TYPES:
            return super().base(node)
        if node.name not in self._kinds:
            leads, ends = TYPES[node.name]
            targets = sum(1 << at for at, label in enumerate(self._labels) if ends(label))
            self._kinds[node.name] = [targets if leads(label) else 0 for label in self._labels]
        return self._kinds[node.name]


class Bounds:
    """What edits can change where events have these labels. `subject`: what they were taken from."""

    def __init__(self, family: EditFamily, labels: Sequence[Label], subject: object = None) -> None:
        self.subject = subject
        self._family = family
        most: Evaluator[Value] = Evaluator(family.graph, TypedLabels(labels))
        least: Evaluator[Value] = Evaluator(family.graph, LeastLabels(labels))
        most.opposite, least.opposite = least, most
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
    """One label of each kind that base sets and `TYPES` tell apart."""
    kinds: dict[object, Label] = {}
    for label in labels:
        types = tuple((leads(label), ends(label)) for leads, ends in TYPES.values())
        kinds.setdefault((names_of(label), types), label)
    return tuple(kinds.values())
