"""Waits for the phase of an mbarrier object in which the first of two accesses is signalled or handed over.

In: a judged kernel, a finding about two accesses. Out: `MissingLine`s. Settled here: the phases are those in which the
first access, what commits it, or an arrival that its thread goes on to has an effect. A wait stands before the second
access, in a CTA that has the object; an object is waited for before its inval. The parity is that of all these phases,
or of the last one before an inval, or what another wait of the text has.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.order.missing_order import UNFINISHED, MissingOrder
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.repair.lines import GUARD, MissingLine, Where
from memmodel.kernel.repair.object_names import names_of, unused
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.objects import PARITIES
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.repair.costs import SCOPE_COST, SEM_FACTOR, WAIT

UNORDERED = (*UNFINISHED, MissingOrder.SYNCHRONIZATION.value)


def waits(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[MissingLine, ...]]:
    """Lines with a wait each."""
    trace = None if kernel.representative is None else kernel.representative.run.run
    goes = finding.rule == "undefined-mbarrier-inval"
    if trace is None or len(finding.sides) < 2 or not (goes or finding.reason in UNORDERED):
        return
    first, second = finding.sides[0], finding.sides[-1]
    if goes and "inval" in first.instruction.words:
        first, second = second, first
    if "init" in first.instruction.words:  # before that there is no phase
        return
    body = kernel.entry.body or ()
    signals = {first.instruction.number, *(it.number for it in finding.mentioned if "arrive" in it.opcode)}
    commits = {it.number for it in body if "commit" in it.opcode and it.words[0] == first.instruction.words[0]}
    phases: dict[tuple[Block, int], set[int]] = {}
    for (block, begin), steps in trace.objects.items():
        if block.instance.owner == trace.threads[second.thread].place.cta_id:
            if goes and all(step.event.at != second.instruction.number for step in steps):
                continue
            own = {step.before for step in steps if step.update and step.event.at in signals | commits}
            phases.setdefault((block, begin), set()).update(own)
    scope = "cta" if first.cta == second.cta else "cluster"
    price = WAIT + SCOPE_COST[scope] * SEM_FACTOR["acquire"]
    done, again = unused("%seen", body), unused("SEEN_", body)
    for (block, begin), numbers in phases.items():
        parities = {str(number % PARITIES) for number in numbers}
        last = {str(max(numbers) % PARITIES)} if goes and numbers else set()
        sure = last or (parities if len(parities) == 1 else ())
        written = dict.fromkeys([*sure, *(_parities(body) if parities else ())])
        for name in names_of(body, trace, block, begin, {second.thread}):
            for parity in written:
                wait = f"mbarrier.try_wait.parity.acquire.{scope}.shared::cta.b64 {done}, {name}, {parity}"
                text = f"{again}: {wait}; @!{done} bra {again};"
                text = f".reg .pred {done}; {_alone(second.instruction, text, body) if goes else text}"
                yield (MissingLine(text, Where.SECOND, price, second.instruction if goes else None),)


def _alone(instruction: PtxInstruction, lines: str, body: tuple[PtxInstruction, ...]) -> str:
    """Lines that only those threads execute for which the guard of an instruction holds."""
    guard, behind = GUARD.match(instruction.span.text), unused("PASSED_", body)
    if guard is None:
        return lines
    predicate = guard[0].strip(" @")
    other = predicate[1:] if predicate.startswith("!") else f"!{predicate}"
    return f"@{other} bra {behind}; {lines} {behind}:"


def _parities(body: tuple[PtxInstruction, ...]) -> Iterator[str]:
    """The registers by which waits of the text say their parity."""
    for instruction in body:
        if instruction.words[0] == "mbarrier" and "parity" in instruction.words:
            parity = instruction.span.text.rpartition("]")[2].strip(", ").split(",")[0].strip()
            if parity.startswith("%"):
                yield parity


__all__ = ["waits"]
