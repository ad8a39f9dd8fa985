"""The arguments of a recorded launch, from their bytes.

In: the entry, the bytes, allocations, tensor maps. Out: the arguments that `kernel.arguments` makes a launch of, and
what is not known of them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence

from memmodel.kernel.arguments.arrays import ArrayFacts
from memmodel.kernel.arguments.kinds import Struct, TiledMap
from memmodel.kernel.question.encoded_maps import TYPES
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.ptx.module.syntax import ModuleVariable, PtxFunction
from memmodel.record.lines import MemoryRange, RecordedLaunch, RecordedMap

MAP_TYPES = tuple(TYPES.values())
"""By their numbers in CUtensorMapDataType: bytes of an element, and the name in PTX of a type below a byte."""

SWIZZLE_BYTES = {0: 0, 1: 32, 2: 64, 3: 128}
"""CUtensorMapSwizzle, as far as a swizzle is said by the bytes of its rows."""

MAP_ALIGN, ADDRESS_BYTES = 64, 8


def bytes_of(entry: PtxFunction, launch: RecordedLaunch) -> list[bytes] | None:
    """The bytes of each parameter of an entry; None if they are not known, or are those of another signature."""
    sizes = [param.size or 0 for param in entry.params]
    if launch.packed is not None:
        values, at = [], 0
        for param, size in zip(entry.params, sizes, strict=True):
            at = -(-at // param.align) * param.align
            values.append(launch.packed[at : at + size])
            at += size
    else:
        values = list(launch.params if launch.params is not None else () if not sizes else (b"",))
    return values if [len(value) for value in values] == sizes else None


def argument(
    param: ModuleVariable, value: bytes, memory: Sequence[MemoryRange], maps: Mapping[bytes, RecordedMap]
) -> tuple[object, list[str]]:
    """What was handed over for a parameter, and what of it is not known."""
    fields: dict[int, object] = {}
    unknown: list[str] = []
    for offset in range(0, len(value) - TENSORMAP_BYTES + 1, MAP_ALIGN):
        recorded = maps.get(value[offset : offset + TENSORMAP_BYTES])
        if recorded is not None:
            tiled = _tiled(recorded)
            if tiled is None:
                unknown.append(f"the tensor map in {param.name}: its swizzle or interleave is not known here")
            else:
                fields[offset] = tiled
    inside_maps = {at for offset in fields for at in range(offset, offset + TENSORMAP_BYTES)}
    for offset in range(0, len(value) - ADDRESS_BYTES + 1, ADDRESS_BYTES):
        if offset not in inside_maps:
            address = int.from_bytes(value[offset : offset + ADDRESS_BYTES], "little")
            pointed = next(((base, size) for base, size in memory if base <= address < base + size), None)
            if pointed is not None:
                fields[offset] = _bytes_from(address, pointed)
    if set(fields) == {0} and len(value) == (TENSORMAP_BYTES if isinstance(fields[0], TiledMap) else ADDRESS_BYTES):
        return fields[0], unknown
    if fields or (param.type == "b8" and len(value) != 1):
        return Struct(value, fields), unknown
    return _number(param.type, value), unknown


def _bytes_from(address: int, memory: MemoryRange) -> ArrayFacts:
    """What a pointer leads to: an allocation from there to its end."""
    end = memory[0] + memory[1]
    return ArrayFacts((end - address,), (1,), 1, address, (memory[0], end))


def _tiled(recorded: RecordedMap) -> TiledMap | None:
    """The map; None for a form that launch descriptions do not have."""
    if recorded.interleave or recorded.swizzle not in SWIZZLE_BYTES or not 0 <= recorded.type < len(MAP_TYPES):
        return None
    size, packed = MAP_TYPES[recorded.type]
    if any(stride % size for stride in recorded.strides):
        return None
    base, length = recorded.memory
    strides = (*(stride // size for stride in reversed(recorded.strides)), 1)
    array = ArrayFacts(
        tuple(reversed(recorded.dims)), strides, size, recorded.address, (base, base + length) if length else None
    )
    steps = () if set(recorded.steps) == {1} else tuple(reversed(recorded.steps))
    return TiledMap(array, tuple(reversed(recorded.box)), SWIZZLE_BYTES[recorded.swizzle], steps, packed)


def _number(kind: str, value: bytes) -> dict[str, object]:
    """A parameter of a launch description."""
    if kind in ("f32", "f64"):
        (number,) = struct.unpack("<f" if kind == "f32" else "<d", value)
        if math.isfinite(number):
            return {"type": "fp32" if kind == "f32" else "fp64", "value": number}
    if len(value) not in (1, 2, 4, 8):
        return {"type": "bytes", "hex": value.hex()}
    signed = kind.startswith("s")
    return {
        "type": f"{'s' if signed else 'u'}{8 * len(value)}",
        "value": int.from_bytes(value, "little", signed=signed),
    }
