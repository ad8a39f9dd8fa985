"""The numbers that a launch gives to parameters, and launches with others.

In: entry, `Launch`, `ParamPart`. Out: as above. A number may be a member of a parameter, or a part of its bytes.
"""

from __future__ import annotations

from memmodel.kernel.all_sizes.parameters import ParamPart
from memmodel.kernel.launch import KINDS, Launch, Param
from memmodel.ptx.module.syntax import PtxFunction

POINTER = 8
"""Bytes of an address."""

MOST_BYTES = 1 << 26
"""Bytes of a buffer that is made longer."""


def _place(entry: PtxFunction, launch: Launch, part: ParamPart) -> tuple[int, Param] | None:
    names = [param.name for param in entry.params]
    at = names.index(part.name) if part.name in names else len(launch.params)
    return (at, launch.params[at]) if at < len(launch.params) else None


def pointers(entry: PtxFunction, launch: Launch) -> frozenset[ParamPart]:
    """The parameters, and members of parameters, that are addresses of buffers."""
    of_all = zip(entry.params, launch.params, strict=False)
    return frozenset(
        ParamPart(parameter.name, offset, POINTER)
        for parameter, given in of_all
        for offset, kind in [(0, given.type), *((member.offset, member.type) for member in given.fields or ())]
        if kind == "ptr"
    )


def number_of(entry: PtxFunction, launch: Launch, part: ParamPart) -> int | None:
    """The number that a launch gives to a part of a parameter."""
    place = _place(entry, launch, part)
    if place is None:
        return None
    param = place[1]
    if param.type == "bytes" and param.hex is not None:
        return int.from_bytes(bytes.fromhex(param.hex)[part.offset : part.offset + part.size], "little")
    members = [(member.offset, member) for member in param.fields] if param.fields else [(0, param)]
    values = (member.value for at, member in members if (at, KINDS.get(member.type)) == (part.offset, part.size))
    return next((value for value in values if isinstance(value, int)), None)


def with_number(entry: PtxFunction, launch: Launch, part: ParamPart, number: int) -> Launch | None:
    """The launch with another number there; None where nothing says what the bytes before it are."""
    place = _place(entry, launch, part)
    if place is None:
        return None
    at, param = place
    if param.fields:
        members = (
            member.model_copy(update={"value": number}) if member.offset == part.offset else member
            for member in param.fields
        )
        changed = param.model_copy(update={"fields": tuple(members)})
    elif param.type == "bytes":
        content = bytearray.fromhex(param.hex or "")
        if len(content) < part.offset:
            return None
        content[part.offset : part.offset + part.size] = number.to_bytes(part.size, "little")
        changed = param.model_copy(update={"hex": content.hex()})
    else:
        changed = param.model_copy(update={"value": number})
    return launch.model_copy(update={"params": (*launch.params[:at], changed, *launch.params[at + 1 :])})


def with_longer_buffers(launch: Launch, times: int) -> Launch:
    """The launch with buffers that are `times` times as long, as far as none reaches the next one."""
    starts = sorted(buffer.address for buffer in launch.all_buffers)

    def longer(param: Param) -> Param:
        fields = tuple(map(longer, param.fields))
        if param.address is None or param.bytes is None:
            return param.model_copy(update={"fields": fields}) if fields else param
        behind = next((start for start in starts if start > param.address), 1 << 64)
        wanted = min(param.bytes * times, MOST_BYTES, behind - param.address)
        return param.model_copy(update={"bytes": max(param.bytes, wanted)})

    return launch.model_copy(update={"params": tuple(map(longer, launch.params))})
