"""What the steps of an instruction do, and what else they do if it is changed.

In: instructions, mutations. Out: labels.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from memmodel.base.labels import (
    Access,
    Action,
    Barrier,
    Fence,
    GroupWait,
    Issue,
    Label,
    Mark,
    Mbarrier,
    ProxyFence,
    Signal,
)
from memmodel.isa.lowered import lowered
from memmodel.kernel.mutate.mutations import Mutation
from memmodel.program.ops import Assign, CommitGroup, UndefinedIf
from memmodel.program.warp_ops import Note
from memmodel.ptx.module.syntax import PtxInstruction

LABELS = Access | Barrier | Fence | GroupWait | Issue | Mark | Mbarrier | ProxyFence | Signal


def commits(instruction: PtxInstruction) -> bool:
    """True if an instruction closes a group and does nothing else. Without it, waits for groups wait for less."""
    steps = lowered(instruction).ops
    return bool(steps) and all(isinstance(step, CommitGroup) for step in steps)


def invalidates(instruction: PtxInstruction) -> bool:
    """True if an instruction ends the life of an mbarrier object."""
    labels = labels_of(instruction)
    return bool(labels) and all(object_action(label) is Action.INVAL for label in labels)


def labels_of(instruction: PtxInstruction) -> list[Label]:
    """The labels of the steps of an instruction; none if it has steps of another kind."""
    steps = [step for step in lowered(instruction).ops if not isinstance(step, Assign | UndefinedIf | Note)]
    labels: list[Label] = [label for step in steps if isinstance(label := getattr(step, "label", None), LABELS)]
    return labels if len(labels) == len(steps) else []


def object_action(label: Label) -> Action | None:
    """What an instruction itself does to an mbarrier object; None for other steps, and for what signals one."""
    return label.action if isinstance(label, Mbarrier) else None


def relabelled(change: Mutation) -> dict[Label, Label]:
    """The labels of the steps of an instruction, with what they become if it is weakened; none if more differs."""
    before, after = lowered(change.instruction).ops, lowered(change.becomes).ops
    if len(before) != len(after):
        return {}
    labels: list[tuple[Label, Label]] = []
    for old, new in zip(before, after, strict=True):
        mine, others = _labels_in(old), _labels_in(new)
        names = [name for name in mine if mine[name] != others.get(name)]
        if type(old) is not type(new) or mine.keys() != others.keys():
            return {}
        step: Any = old
        if (
            any(isinstance(mine[name], GroupWait | Issue) for name in names)
            or replace(step, **{name: others[name] for name in names}) != new
        ):
            return {}
        labels += [(mine[name], others[name]) for name in mine]
    known = dict(labels)
    return known if all(known[old] == new for old, new in labels) else {}


def _labels_in(step: object) -> dict[str, Label]:
    """The labels in the fields of a step."""
    values = ((each.name, getattr(step, each.name)) for each in fields(step)) if is_dataclass(step) else ()
    return {name: value for name, value in values if isinstance(value, LABELS)}
