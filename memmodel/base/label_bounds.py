"""The labels that a base relation may relate, whatever the execution.

In: the name of a base relation, labels. Out: for each label, those that an event with it may be related to. Settled
here: bounds for the relations of which labels say something; any other may relate any two events. Code that compares
two models by labels alone (`search.judging.alike`) rests on these bounds; a test asks every engine for pairs beyond
them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Allocation,
    Barrier,
    Covers,
    Family,
    Fence,
    GroupWait,
    Half,
    InitialWrite,
    Issue,
    Label,
    Mark,
    Mbarrier,
    ProxyFence,
    Signal,
    group_of,
    is_atomic,
    is_memory,
    is_read,
    is_write,
    scope_of,
)
from memmodel.ptx.vocabulary import Sem

LabelTest = Callable[[Label], bool]


def _any(label: Label) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class LabelBound:
    """`first`, `second`: the labels of events that the relation may begin and end at. `agree`: what the labels of both
    ends have in common."""

    first: LabelTest = _any
    second: LabelTest = _any
    agree: Callable[[Label], Hashable] | None = None
    pair: Callable[[Label, Label], bool] | None = None


def may_relate(name: str, labels: Sequence[Label]) -> list[int]:
    """For each label a row of bits: the labels that a relation may lead to from it."""
    bound = BOUNDS.get(name, _UNBOUND)
    ends: dict[Hashable, int] = {}
    for at, label in enumerate(labels):
        if bound.second(label):
            key = None if bound.agree is None else bound.agree(label)
            ends[key] = ends.get(key, 0) | 1 << at
    rows = []
    for label in labels:
        row = ends.get(None if bound.agree is None else bound.agree(label), 0) if bound.first(label) else 0
        if row and bound.pair is not None:
            row = sum(1 << at for at, other in enumerate(labels) if row >> at & 1 and bound.pair(label, other))
        rows.append(row)
    return rows


def _threads(label: Label) -> bool:
    """True for events of a thread."""
    return not isinstance(label, InitialWrite)


def _in_order(label: Label) -> bool:
    """True for events in program order."""
    return not isinstance(label, InitialWrite | Signal) and not (isinstance(label, Access) and label.asynchronous)


def _gives_value(label: Label) -> bool:
    """True for events whose value others may use: reads, and tests of objects."""
    return is_read(label) or not is_memory(label)


def _half(half: Half) -> LabelTest:
    return lambda label: isinstance(label, Barrier) and label.half is half


def _domain(label: Label) -> Hashable:
    return label.domain if isinstance(label, Barrier) else None


def _on_object(label: Label) -> bool:
    return isinstance(label, Mbarrier | Signal)


def _tests(label: Label) -> bool:
    return isinstance(label, Mbarrier) and label.action is Action.TEST


def _updates(label: Label) -> bool:
    return _on_object(label) and not _tests(label)


def _scoped(label: Label) -> bool:
    return scope_of(label) is not None


def _goes_on(label: Label) -> bool:
    """True for what an asynchronous instruction does outside program order."""
    return isinstance(label, Signal) or (isinstance(label, Access) and label.asynchronous)


def _covers(fence: Label, other: Label) -> bool:
    what = fence.covers if isinstance(fence, Fence | ProxyFence) else Covers.RANGE
    if what is Covers.INIT:
        return isinstance(other, Mbarrier)
    if what is Covers.OWN_READS:
        return is_read(other)
    return is_memory(other)


def _is_covered(label: Label) -> bool:
    return is_memory(label) or (isinstance(label, Mbarrier) and label.action is Action.INIT)


def _grouped(label: Label) -> bool:
    return group_of(label) is not None


def _accumulates(label: Label) -> bool:
    return isinstance(label, Access) and label.family is Family.MMA and label.form is not None


def _form(label: Label) -> Hashable:
    return (label.form, label.group) if isinstance(label, Access) else None


def _allocates(label: Label) -> bool:
    return isinstance(label, Allocates) and label.what is not Allocation.RELINQUISH


def _columns(label: Label) -> Hashable:
    return (label.columns, label.exclusive) if isinstance(label, Allocates) else None


_MEMORY = LabelBound(is_memory, is_memory)
_OBJECT = LabelBound(_updates, _updates)
_PLACED = LabelBound(_threads, _threads)
_DEPENDS = LabelBound(_gives_value, _threads)
_ARRIVALS = LabelBound(_half(Half.ARRIVE), _half(Half.ARRIVE), _domain)
_UNBOUND = LabelBound()

BOUNDS: Mapping[str, LabelBound] = {
    "po": LabelBound(_in_order, _in_order),
    "loc": _MEMORY,
    "vloc": _MEMORY,
    "whole": _MEMORY,
    "rf": LabelBound(is_write, is_read),
    "co": LabelBound(is_write, is_write),
    "rmw": LabelBound(
        lambda label: is_read(label) and is_atomic(label),
        lambda label: is_write(label) and is_atomic(label),
    ),
    "addr": _DEPENDS,
    "data": _DEPENDS,
    "ctrl": _DEPENDS,
    "sr": LabelBound(_scoped, _scoped),
    "sri": LabelBound(_scoped, _scoped),
    "scta": _PLACED,
    "scluster": _PLACED,
    "swarpgroup": _PLACED,
    "sgpu": _PLACED,
    "syncbar": LabelBound(_half(Half.ARRIVE), _half(Half.WAIT), _domain),
    "samegen": _ARRIVALS,
    "genbefore": _ARRIVALS,
    "barmix": _ARRIVALS,
    "sync_fence": LabelBound(
        lambda label: isinstance(label, Fence) and label.sem is Sem.SC,
        lambda label: isinstance(label, Fence) and label.sem is Sem.SC,
    ),
    "iss": LabelBound(lambda label: isinstance(label, Issue), _goes_on),
    "compl": LabelBound(_goes_on, lambda label: isinstance(label, Signal | GroupWait)),
    "complwg": LabelBound(_goes_on, lambda label: isinstance(label, GroupWait) and label.family is Family.WGMMA),
    "mbar": _OBJECT,
    "mbarobs": LabelBound(_updates, _tests),
    "mbarseen": LabelBound(_updates, _tests),
    "mbarfr": LabelBound(_tests, _updates),
    "mbarnext": LabelBound(_tests, _updates),
    "mbarended": LabelBound(_updates, _tests),
    "samebar": LabelBound(pair=lambda label, other: _on_object(label) or _on_object(other)),
    "covers": LabelBound(lambda label: isinstance(label, Fence | ProxyFence | Allocates), _is_covered, pair=_covers),
    "scg": LabelBound(_grouped, _grouped, group_of),
    "smma": LabelBound(_accumulates, _accumulates, _form),
    "samealloc": LabelBound(_allocates, _allocates, _columns),
    "exits": LabelBound(second=lambda label: isinstance(label, Mark)),
    "ctaends": LabelBound(second=lambda label: isinstance(label, Mark)),
}
"""What is not here may relate any two events."""
