"""Loads of a flag that are made until it is there.

In: a finding about two accesses, the entry. Out: a label in front of a load, and the branch back behind it. Settled
here: the load is strong and stands in front of the second access in its basic block; what it waits for is a number that
a strong store of the text puts at its address. Whether that helps is not settled here: the kernel with them is judged
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from memmodel.kernel.flow.polling import basic_blocks
from memmodel.kernel.order.missing_order import MissingOrder
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.repair.lines import MissingLine, Where
from memmodel.kernel.repair.object_names import unused
from memmodel.kernel.repair.words import Reworded
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.repair.costs import OTHER, WAIT

STRONG = ("relaxed", "acquire", "release", "volatile", "mmio")


def polls(finding: KernelFinding, entry: PtxFunction) -> Iterator[tuple[MissingLine, MissingLine]]:
    """A label in front of a load, and a branch back behind it."""
    if finding.reason != MissingOrder.SYNCHRONIZATION.value or len(finding.sides) < 2:
        return
    body, begins = entry.body or (), basic_blocks(entry)[0]
    again, other = unused("AGAIN_", body), unused("%other", body)
    at = finding.sides[-1].instruction.number
    while at not in begins and at > 0:
        at -= 1
        load = re.fullmatch(r"ld\.\S+\s+(%[\w$]+)\s*,\s*(\[[^\]]*\])", body[at].span.text.strip())
        if load is None or not _is_strong(body[at], "ld"):
            continue
        for number in dict.fromkeys(_stored(body, load[2])):
            test = f".reg .pred {other}; setp.ne.b{_bits(body[at])} {other}, {load[1]}, {number}; @{other} bra {again};"
            yield (
                MissingLine(f"{again}:", Where.SECOND, 0.0, body[at]),
                MissingLine(test, Where.SECOND, WAIT, body[at], after=True),
            )


def other_numbers(finding: KernelFinding, entry: PtxFunction) -> Iterator[tuple[Reworded]]:
    """A loop that waits for a flag compares it with another number that is stored there: the access may stand behind
    the one that it waits for."""
    if finding.reason != MissingOrder.SYNCHRONIZATION.value or len(finding.sides) < 2:
        return
    body = entry.body or ()
    for load, test in pairwise(body):
        read = re.fullmatch(r"ld\.\S+\s+(%[\w$]+)\s*,\s*(\[[^\]]*\])", load.span.text.strip())
        compared = None if read is None else re.search(rf"{re.escape(read[1])}\s*,\s*(\d+)\s*$", test.span.text)
        if read is None or compared is None or test.words[0] != "setp" or not _is_strong(load, "ld"):
            continue
        for number in dict.fromkeys(_stored(body, read[2])):
            if number != compared[1]:
                text = f"{test.span.text[: compared.start(1)]}{number}"
                yield (Reworded(test, text, f"{compared[1]} becomes {number} in {test.opcode}", OTHER),)


def _is_strong(instruction: PtxInstruction, head: str) -> bool:
    return instruction.words[0] == head and any(word in instruction.words for word in STRONG)


def _stored(body: tuple[PtxInstruction, ...], place: str) -> Iterator[str]:
    """The numbers that strong stores of the text put at a place."""
    for instruction in body:
        stored = re.search(r"(\[[^\]]*\])\s*,\s*(\d+)\s*$", instruction.span.text)
        if stored is not None and stored[1] == place and _is_strong(instruction, "st"):
            yield stored[2]


def _bits(load: PtxInstruction) -> str:
    """The size of what a load puts into its register: at least 16 bits."""
    return str(max(16, int(re.sub(r"\D", "", load.words[-1]) or 32)))


__all__ = ["other_numbers", "polls"]
