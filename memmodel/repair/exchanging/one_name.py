"""Accesses by another name of the same memory, where two names stand in the way of a synchronization.

In: a lowered test. Out: changes. Settled here: which names may stand for each other: a variable and an alias of it in
the same proxy; a multimem address and the variables that it points to, of which a load by that name is a reduction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memmodel.isa.lower import read_instruction
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction, Variable
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.vocabulary import Proxy
from memmodel.repair.costs import OTHER
from memmodel.repair.edits import Edit, place
from memmodel.repair.exchanging.exchanges import ALIKE

REDUCED = {"ld": "multimem.ld_reduce", "st": "multimem.st", "red": "multimem.red"}
"""What accesses all the variables of a multimem address, for what accesses one."""


def one_name(lowered: LoweredTest) -> Iterator[Edit]:
    """The accesses of one thread by one name, all by another name."""
    for variable in lowered.test.variables:
        if variable.alias_of is not None and variable.proxy is Proxy.GENERIC:
            yield from _renamed(lowered, variable.name, variable.alias_of)
            yield from _renamed(lowered, variable.alias_of, variable.name)
        for pointed in variable.multimem:
            yield from _by_multimem(lowered, variable, pointed)


def _renamed(lowered: LoweredTest, old: str, new: str) -> Iterator[Edit]:
    named = re.compile(rf"\[\s*({re.escape(old)})\b")
    for number, thread in enumerate(lowered.test.threads):
        edits: list[Edit] = []
        for index, item in enumerate(instructions(thread)):
            match = named.search(item.span.text)
            if match is not None:
                start = item.span.start + match.start(1)
                what = f"{place(thread, item)}: {old} -> {new} in {item.mnemonic}"
                edits.append(Edit(start, start + len(old), new, what, OTHER, (number, index, "name")))
        yield from _together(edits)


def _by_multimem(lowered: LoweredTest, variable: Variable, pointed: str) -> Iterator[Edit]:
    named = re.compile(rf"\[\s*{re.escape(pointed)}\s*\]")
    for number, thread in enumerate(lowered.test.threads):
        edits: list[Edit] = []
        for index, item in enumerate(instructions(thread)):
            match, mnemonic = named.search(item.span.text), _reduced(lowered, item)
            if match is not None and mnemonic:
                start = item.mnemonic_span.start
                text = item.span.text.replace(match[0], f"[{variable.name}]")
                text = text[start - item.span.start :].replace(item.mnemonic, mnemonic, 1)
                what = f"{place(thread, item)}: {item.mnemonic} {match[0]} -> {mnemonic} [{variable.name}]"
                edits.append(Edit(start, item.span.end, text, what, OTHER, (number, index, "name")))
        yield from _together(edits)


def _reduced(lowered: LoweredTest, item: Instruction) -> str:
    """The instruction that does the same to all variables of a multimem address; empty if there is none. What a load
    waits for has come when the least of the values is there."""
    head, kind = item.parts[0], item.parts[-1]
    if head not in REDUCED or not re.fullmatch("[bus](32|64)", kind) or "async" in item.parts or "v2" in item.parts:
        return ""
    words = read_instruction(item, lowered.test).words
    order = [words[slot] for slot in ("sem", "scope", "space") if slot in words]
    reduction = [] if head == "st" else [words["op"]] if head == "red" else ["and" if kind[0] == "b" else "min"]
    return ".".join((REDUCED[head], *order, *reduction, kind))


def _together(edits: Sequence[Edit]) -> Iterator[Edit]:
    """All these changes as one."""
    if not edits:
        return
    first, *more = edits
    what = "; ".join(edit.what for edit in edits)
    group = (*first.group, *ALIKE) if more else first.group
    yield Edit(first.start, first.end, first.text, what, OTHER * len(edits), group, more=tuple(more))
