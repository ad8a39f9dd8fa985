"""What the instructions of a test complete on its mbarrier objects, in the unit in which the object counts it.

In: a lowered test. Out: numbers by object, one for each instruction whose text says how much. Settled here: nothing
about instructions; their steps say what they signal, be it bytes of a copy or pieces of 16 bytes of the fabric.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod

from memmodel.base.labels import Action
from memmodel.litmus.syntax import Variable
from memmodel.program.expressions import AddressOf, Const, stripped
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import AsyncRead, Gather, IssueAsync, SignalPart
from memmodel.program.regions import Box, Chunk, Region, TensorMapAt

MAP = 128
"""The bytes of a tensor map."""


def completed_bytes(lowered: LoweredTest) -> dict[str, list[int]]:
    """By the name of an object, what each instruction completes on one instance of it."""
    variables = {variable.name: variable for variable in lowered.test.variables}
    completed: dict[str, list[int]] = defaultdict(list)
    for program in lowered.programs:
        for step in program.steps:
            if isinstance(step.op, IssueAsync):
                for name, size in dict.fromkeys(_signals(step.op, variables)):
                    completed[name].append(size)
    return completed


def _signals(op: IssueAsync, variables: dict[str, Variable]) -> list[tuple[str, int]]:
    signals = []
    for part in op.parts:
        if not isinstance(part, SignalPart) or part.label.action is not Action.COMPLETE_TX:
            continue
        address, size = stripped(part.region.address), None
        if isinstance(part.bytes, Const):
            size = part.bytes.value
        elif part.bytes_of is not None and isinstance(source := op.parts[part.bytes_of], Gather):
            size = _bytes(source.region, op, variables)
        if isinstance(address, AddressOf) and size:
            signals.append((address.name, size))
    return signals


def _bytes(region: Region, op: IssueAsync, variables: dict[str, Variable]) -> int | None:
    """The bytes of a region, if the text says how many; those of a box stand in the tensor map that is read first."""
    if isinstance(region, Chunk):
        return region.size.value if isinstance(region.size, Const) else None
    maps = (part.region for part in op.parts if isinstance(part, AsyncRead))
    place = next((stripped(read.address) for read in maps if isinstance(read, TensorMapAt)), None)
    if not isinstance(region, Box) or not isinstance(place, AddressOf):
        return None
    view = next(iter(variables[place.name].maps[place.offset // MAP :]), None)
    if view is None:
        return None
    tensor = variables[view.data]
    element = 1 if tensor.type is None else tensor.type.width // 8
    return region.mode.boxes * element * prod(view.box or view.shape or (tensor.length,))
