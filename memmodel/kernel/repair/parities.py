"""The parity for which a loop waits in its first round, and in the next ones.

In: a finding, the instructions of the entry. Out: changes. A loop that waits for one parity in each round, and so
passes twice on one phase, takes the other one in the next: the register that says it is turned, or there is one in
place of a number that is written out. A loop whose first wait never ends begins with the other one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memmodel.answer import HANG
from memmodel.isa.lowered import lowered
from memmodel.kernel.order.missing_order import MissingOrder
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.repair.lines import GUARD, MissingLine, Where
from memmodel.kernel.repair.object_names import unused
from memmodel.kernel.repair.words import Reworded
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Imm, JumpTarget, Operand, Register
from memmodel.repair.costs import OTHER

PASSED_TWICE = (HANG, "undefined-unobserved-phase")
"""The findings after which a thread may have waited twice for one phase."""
STALE = "undefined-mbarrier-state"
"""The rule about the state of a phase that is long over."""


class _Loop(NamedTuple):
    """The instructions of a loop, and the branch behind them that leads back."""

    inside: tuple[PtxInstruction, ...]
    branch: PtxInstruction


def flips(finding: KernelFinding, body: tuple[PtxInstruction, ...]) -> Iterator[tuple[MissingLine, ...]]:
    """The other parity in the next round of a loop that waits for one parity in each round."""
    if not _may_pass_twice(finding):
        return
    for test in body:
        parity = test.operands[2] if len(test.operands) > 2 and "parity" in test.words else None
        if not isinstance(parity, Register):
            continue
        loop = _loop_around(test, body)
        if loop is not None and not any(parity.slot in lowered(it).writes for it in loop.inside):
            name = _parity_of(test)
            flip = f"xor.b32 {name}, {name}, 1;"
            for wraps, guard in _wraps(loop.inside):
                yield (MissingLine(f"{guard}{flip}", Where.SECOND, OTHER, wraps, after=True),)
            yield (MissingLine(flip, Where.SECOND, OTHER, loop.branch),)


def kept_parities(
    finding: KernelFinding, body: tuple[PtxInstruction, ...]
) -> Iterator[tuple[Reworded, MissingLine, MissingLine]]:
    """A register for the parity of a wait in a loop that names a number: it begins with the number, and is turned at
    the end of each round."""
    if not _may_pass_twice(finding):
        return
    name = unused("%parity", body)
    for test in body:
        parity = test.operands[2] if len(test.operands) > 2 and "parity" in test.words else None
        loop = _loop_around(test, body) if isinstance(parity, Imm) else None
        if loop is None or not isinstance(parity, Imm):
            continue
        text = re.sub(rf",\s*{parity.value}(?=\s*(,|$))", f", {name}", test.span.text, count=1)
        begins = f".reg .b32 {name}; mov.b32 {name}, {parity.value};"
        yield (
            Reworded(test, text, f"parity {parity.value} becomes {name}", OTHER),
            MissingLine(begins, Where.FIRST, OTHER, body[0]),
            MissingLine(f"xor.b32 {name}, {name}, 1;", Where.SECOND, OTHER, loop.branch),
        )


def begun_otherwise(finding: KernelFinding, body: tuple[PtxInstruction, ...]) -> Iterator[tuple[MissingLine, ...]]:
    """The other parity in the first round of a loop whose wait for it never ends: in front of the loop."""
    test = finding.sides[0].instruction
    parity = test.operands[2] if len(test.operands) > 2 and "parity" in test.words else None
    loop = _loop_around(test, body) if isinstance(parity, Register) else None
    ahead = body[loop.inside[0].number - 1] if loop is not None and loop.inside and loop.inside[0].number else None
    if finding.rule == HANG and ahead is not None and (ahead.words[0] != "bra" or ahead.guard is not None):
        name = _parity_of(test)
        yield (MissingLine(f"xor.b32 {name}, {name}, 1;", Where.FIRST, OTHER, ahead, after=True),)


def states(finding: KernelFinding, body: tuple[PtxInstruction, ...]) -> Iterator[tuple[Reworded, ...]]:
    """Tests by state that pass in an older phase: with the state of the arrive in front of them."""
    tests = [it for it in body if "_wait" in it.kind and it.words[0] == "mbarrier" and "parity" not in it.words]
    for test in tests if len(finding.sides) > 1 or finding.rule == STALE else ():
        before = [it for it in body[: test.number] if it.words[:2] == ("mbarrier", "arrive") and len(it.operands) > 1]
        arrive, state = before[-1].operands[0] if before else None, test.operands[2] if len(test.operands) > 2 else None
        if isinstance(arrive, Register) and isinstance(state, Register) and arrive.name != state.name:
            head, _, tail = test.span.text.rpartition(state.name)
            yield (Reworded(test, f"{head}{arrive.name}{tail}", f"state {state.name} becomes {arrive.name}", OTHER),)


def _parity_of(test: PtxInstruction) -> str:
    """The parity of a test, as it is written."""
    return test.span.text.rpartition("]")[2].strip(", ").split(",")[0].strip()


def _may_pass_twice(finding: KernelFinding) -> bool:
    return finding.rule in PASSED_TWICE or finding.reason == MissingOrder.PARITY.value


def _loop_around(test: PtxInstruction, body: tuple[PtxInstruction, ...]) -> _Loop | None:
    """The innermost loop around a test that does not only repeat it until it succeeds; None if there is none."""
    done = lowered(test).writes
    for branch in body[test.number :]:
        target = branch.operands[0] if branch.words[0] == "bra" else None
        polls = branch.guard is not None and branch.guard.slot in done
        if isinstance(target, JumpTarget) and target.at <= test.number and not polls:
            return _Loop(body[target.at : branch.number], branch)
    return None


def _wraps(inside: Sequence[PtxInstruction]) -> Iterator[tuple[PtxInstruction, str]]:
    """The instructions of a loop that begin a ring again with stage 0, each with the guard under which they do."""
    for at, it in enumerate(inside):
        guard = GUARD.match(it.span.text)
        skips = inside[at - 1] if at else None
        if it.words[0] == "mov" and _zero(it.operands[-1]):
            skipped = skips is not None and skips.words[0] == "bra" and skips.guard is not None
            if guard is not None or skipped:
                yield it, guard[0] if guard else ""
        if it.words[0] == "selp" and len(it.operands) == 4 and any(map(_zero, it.operands[1:3])):
            predicate = it.span.text.rpartition(",")[2].strip()
            yield it, f"@{'' if _zero(it.operands[1]) else '!'}{predicate} "


def _zero(operand: Operand) -> bool:
    return isinstance(operand, Imm) and operand.value == 0


__all__ = ["begun_otherwise", "flips", "kept_parities", "states"]
