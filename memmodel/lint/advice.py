"""One piece of advice about an instruction, and what several checks ask of steps.

In: nothing. Out: `Advice`; the variable that an address names and its users, the labels and regions of a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memmodel.base.labels import Label
from memmodel.litmus.syntax import Thread, Variable
from memmodel.program.addresses import AddressSpace
from memmodel.program.expressions import AddressOf
from memmodel.program.lowered import LoweredTest, Step
from memmodel.program.ops import IssueAsync, OnObject, Op, Part, Read, Update, Write
from memmodel.program.regions import Box, Region


@dataclass(frozen=True, slots=True)
class Advice:
    """`message` about the instruction of a step, and how to repair it."""

    step: Step
    message: str
    hint: str | None = None


def regions_of(op: Op) -> Iterator[Region]:
    """The regions that a step accesses, those of its parts included."""
    match op:
        case Read(_, region) | Write(_, region) | OnObject(_, region):
            yield region
        case IssueAsync(_, parts):
            for part in parts:
                yield part.region
        case _:
            pass


def part_label(part: Part) -> Label:
    """The label of a part of an asynchronous instruction."""
    return part.write if isinstance(part, Update) else part.label


def named(region: Region, space: AddressSpace) -> Variable | None:
    """The variable whose memory a region is, if its address names one."""
    if isinstance(region, Box):
        return None
    address = region.address
    return space.root(address.name) if isinstance(address, AddressOf) else None


def first_of_each(advice: Iterable[Advice]) -> Iterator[Advice]:
    """The first piece of advice about each instruction."""
    reported: set[int] = set()
    for remark in advice:
        instruction = id(remark.step.instruction)
        if instruction not in reported:
            reported.add(instruction)
            yield remark


def users_of(lowered: LoweredTest) -> dict[str, list[Thread]]:
    """For every variable, the threads that access it by name, once for each access."""
    users: dict[str, list[Thread]] = {}
    for thread, program in zip(lowered.test.threads, lowered.programs, strict=True):
        for step in program.steps:
            variable = named(step.op.region, lowered.space) if isinstance(step.op, Read | Write) else None
            if variable is not None:
                users.setdefault(variable.name, []).append(thread)
    return users
