"""How the text of a kernel names an mbarrier object at a place.

In: the instructions, a run, an object, the threads that are to name it. Out: operands, and lines in front where a
register has to be set first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxInstruction

PLACE = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\d+)\s*)?\]")
"""Memory at a register or a variable, and how many bytes on."""

MAPPED = re.compile(r"mapa\.shared::cluster\.u32\s+(%[\w$]+)\s*,\s*([%\w$]+)\s*,\s*([%\w$]+)")
"""The address of a place of another CTA: its register, the place in the own CTA, the rank."""


def names_of(
    body: tuple[PtxInstruction, ...], trace: LaunchTrace, block: Block, first: int, threads: Collection[int]
) -> list[str]:
    """How these threads may name an object: as instructions on it do, or on another one in the same memory, or by the
    variable that it is in."""
    names: dict[tuple[bool, str], None] = {}
    for (other, begin), steps in trace.objects.items():
        for at, number in dict.fromkeys((step.event.at, step.event.thread) for step in steps):
            named = PLACE.search(body[at].span.text)
            if other is not block or named is None or body[at].words[0] != "mbarrier":
                continue
            distance = int(named[2] or 0) + first - begin
            if distance == int(named[2] or 0) or number in threads:
                names[begin != first, _operand(named[1], distance)] = None
    variable = None if block.aligned is None else block.aligned.named(first)
    return [*(name for _, name in sorted(names)), *([] if variable is None else [_operand(*variable)])]


def names_beside(body: tuple[PtxInstruction, ...], trace: LaunchTrace, block: Block, first: int) -> dict[int, str]:
    """How an object is named from the register of an instruction that initialises another one in the same memory, by
    the number of that instruction."""
    names = {}
    for (other, begin), steps in trace.objects.items():
        for at in {step.event.at for step in steps if body[step.event.at].words[:2] == ("mbarrier", "init")}:
            named = PLACE.search(body[at].span.text)
            if other is block and named is not None:
                names[at] = _operand(named[1], int(named[2] or 0) + first - begin)
    return names


def mapped(body: tuple[PtxInstruction, ...], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The names of such an object in another CTA of the cluster: a register that has its address, or one that is set to
    it by a line in front. The rank is one that the text maps other places to."""
    maps = [match for instruction in body if (match := MAPPED.search(instruction.span.text))]
    places = [place for name in names if (place := PLACE.fullmatch(name))]
    for place in places:
        yield from (("", _operand(match[1], int(place[2] or 0))) for match in maps if match[2] == place[1])
    fresh = unused("%peer", body)
    for place in places:
        for rank in dict.fromkeys(match[3] for match in maps):
            line = f".reg .b32 {fresh}; mapa.shared::cluster.u32 {fresh}, {place[1]}, {rank}; "
            yield line, _operand(fresh, int(place[2] or 0))


def unused(name: str, body: tuple[PtxInstruction, ...]) -> str:
    """A name that the text does not have."""
    text, number = body[0].span.source.text if body else "", 0
    while re.search(rf"{re.escape(name)}{number}\b", text):
        number += 1
    return f"{name}{number}"


def guarded(lines: str, guard: str) -> str:
    """Lines of which the last one has a guard."""
    *before, last = [line.strip() for line in lines.rstrip("; ").split(";")]
    return "".join(f"{line}; " for line in before) + f"{guard}{last};"


def _operand(base: str, distance: int) -> str:
    return f"[{base}+{distance}]" if distance else f"[{base}]"


__all__ = ["MAPPED", "PLACE", "guarded", "mapped", "names_beside", "names_of", "unused"]
