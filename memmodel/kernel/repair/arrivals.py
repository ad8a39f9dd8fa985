"""Arrivals that the phase of an mbarrier object lacks, for which threads of a kernel wait for ever.

In: a judged kernel, a finding that threads hang. Out: `MissingLine`s. Settled here: who may have to arrive, and how the
text names the object there. As many threads of a CTA as arrivals are lacking; none of them waits for a phase in which
nothing has arrived. They arrive behind the last of a row of accesses, or where they synchronize. They name the object
as they do elsewhere, or by its distance from another one. Behind a matrix operation of tcgen05 its completion arrives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod

from memmodel.answer import HANG
from memmodel.base.labels import Action, Mbarrier
from memmodel.isa.lowered import lowered
from memmodel.isa.rows.row import Effect
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.repair.lines import GUARD, MissingLine, Where
from memmodel.kernel.repair.object_names import MAPPED, PLACE, guarded, mapped, names_of
from memmodel.kernel.repair.warps import executions
from memmodel.kernel.repair.words import Reworded
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.objects import AwaitedPhase
from memmodel.program.warp_ops import CopyToTensorMemory, MultiplyInTensorMemory, ShiftTensorMemory
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import JumpTarget
from memmodel.repair.costs import OTHER, SCOPE_COST, SEM_FACTOR, WAIT

ACCESSES = (Effect.MEMORY, Effect.ASYNCHRONOUS)
TRACKED = (MultiplyInTensorMemory, CopyToTensorMemory, ShiftTensorMemory)
"""What tcgen05.commit follows."""


def arrivals(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[MissingLine, ...]]:
    """Lines with an arrival each."""
    trace = None if kernel.representative is None else kernel.representative.run.run
    if trace is None or len(finding.sides) != 1:
        return
    at, lacking = finding.sides[0].instruction.number, _Lacking(kernel.entry.body or (), trace)
    for awaited in dict.fromkeys(stuck.awaits for stuck in trace.stuck if stuck.at == at and stuck.awaits is not None):
        if awaited.live and awaited.pending > 0:
            yield from lacking.lines(awaited)


def misnamed(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[Reworded, ...]]:
    """What signals another object beside the one whose phase lacks arrivals or bytes, with the name of that one."""
    body, judged = kernel.entry.body or (), kernel.representative
    if judged is None or finding.rule != HANG or len(finding.sides) != 1:
        return
    trace, at = judged.run.run, finding.sides[0].instruction.number
    for awaited in dict.fromkeys(stuck.awaits for stuck in trace.stuck if stuck.at == at and stuck.awaits is not None):
        signals: dict[int, set[int]] = {}
        for (block, first), steps in trace.objects.items():
            for step in steps if block is awaited.block and first != awaited.first else ():
                if step.update and body[step.event.at].kind not in ("init", "inval"):
                    signals.setdefault(step.event.at, set()).add(step.event.thread)
        for number, threads in sorted(signals.items()):
            yield from ((it,) for it in _renamed(body[number], names_of(body, trace, *awaited[:2], threads)))


def _renamed(instruction: PtxInstruction, names: list[str]) -> Iterator[Reworded]:
    """An instruction with another object, which is the last place that it names."""
    text = instruction.span.text
    old = next(reversed(list(PLACE.finditer(text))), None)
    for name in names if old is not None else ():
        if old is not None and name != old[0]:
            new = f"{text[: old.start()]}{name}{text[old.end() :]}"
            yield Reworded(instruction, new, f"{old[0]} becomes {name} in {instruction.opcode}", OTHER)


def first_arrivals(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[MissingLine, ...]]:
    """Threads that wait for ever at barriers of the CTA for each other: those at one of them arrive at the other one
    first, in front of the wait or of a loop around it."""
    body, judged = kernel.entry.body or (), kernel.representative
    if judged is None or finding.rule != HANG:
        return
    stuck = sorted({it.at for it in judged.run.run.stuck if body[it.at].kind == "sync" and body[it.at].operands[1:]})
    for at, other in permutations(stuck, 2):
        opcode = body[other].opcode
        text = GUARD.sub("", body[other].span.text).replace(opcode, opcode.replace("sync", "arrive"), 1) + ";"
        yield (MissingLine(text, Where.SECOND, OTHER, body[at]),)
        for branch in body[at:]:
            target = branch.operands[0] if branch.words[0] == "bra" else None
            if isinstance(target, JumpTarget) and 0 < target.at <= at:
                yield (MissingLine(text, Where.SECOND, OTHER, body[target.at - 1], after=True),)


def committed_instead(first: PtxInstruction, body: tuple[PtxInstruction, ...]) -> Iterator[Reworded]:
    """Of a matrix operation that is not over: an arrive behind it, which would tell of its end, becomes its commit."""
    op = next((op for op in lowered(first).ops if isinstance(op, TRACKED)), None)
    for arrive in body[first.number :] if op is not None else ():
        named = PLACE.search(arrive.span.text)
        if op is None or named is None or arrive.words[:2] != ("mbarrier", "arrive") or "expect_tx" in arrive.words:
            continue
        guard = GUARD.match(arrive.span.text)
        commit = f"tcgen05.commit.cta_group::{op.group}.mbarrier::arrive::one.shared::cluster.b64 {named[0]}"
        yield Reworded(arrive, f"{guard[0] if guard else ''}{commit}", f"{arrive.opcode} becomes tcgen05.commit", WAIT)


def ranks(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[Reworded, ...]]:
    """Where threads wait for ever for an mbarrier object: places of another CTA of the cluster that the text maps."""
    body, size = kernel.entry.body or (), prod(kernel.launch.cluster)
    if finding.rule != HANG or finding.sides[0].instruction.words[0] != "mbarrier" or size == 1:
        return
    for instruction in body:
        mapped_to = MAPPED.search(instruction.span.text)
        if mapped_to is not None:
            named = [match[3] for it in body if (match := MAPPED.search(it.span.text))]
            for rank in dict.fromkeys((*named, *map(str, range(size)))):
                text = instruction.span.text
                new = f"{text[: mapped_to.start(3)]}{rank}{text[mapped_to.end(3) :]}"
                if rank != mapped_to[3]:
                    yield (Reworded(instruction, new, f"rank {mapped_to[3]} becomes {rank}", OTHER),)


@dataclass(slots=True)
class _Lacking:
    body: tuple[PtxInstruction, ...]
    trace: LaunchTrace

    def lines(self, awaited: AwaitedPhase) -> Iterator[tuple[MissingLine, ...]]:
        """Arrivals in this phase, those at the end of the text first."""
        waiting = set[int]() if self._has_begun(awaited) else self._waiting(awaited)
        threads: dict[int, set[int]] = {}
        for at, number in executions(self.trace):
            threads.setdefault(at, set()).add(number)
        for place in reversed(self.body):
            others = threads.get(place.number, set())
            if not any(isinstance(op, TRACKED) for op in lowered(place).ops):  # these tell while the thread waits
                others = others - waiting
            ctas = Counter(self.trace.threads[number].place.cta_id for number in others)
            idle = place.kind == "init" and awaited.tx >= 0  # a smaller count would say the same
            if idle or awaited.pending not in ctas.values() or not self._ends_a_row(place):
                continue
            guard = GUARD.match(place.span.text)
            remote = ctas.get(awaited.block.instance.owner or ()) != awaited.pending
            for line, price in self._arrives(awaited, place, others, remote=remote):
                if not line.startswith("tcgen05.commit") and not others.isdisjoint(waiting):
                    continue
                text = guarded(f"{line};", guard[0] if guard else "")
                yield (MissingLine(text, Where.SECOND, price, place, after=True),)

    def _waiting(self, awaited: AwaitedPhase) -> set[int]:
        return {number for stuck in self.trace.stuck if stuck.awaits == awaited for number in stuck.threads}

    def _has_begun(self, awaited: AwaitedPhase) -> bool:
        """True if something has arrived in the phase: else a thread that waits for it would wait for itself alone."""
        steps = self.trace.objects.get((awaited.block, awaited.first), ())
        arrived = (
            isinstance(it.event.label, Mbarrier) and it.event.label.action is Action.ARRIVE
            for it in steps
            if it.update and it.before == awaited.phase
        )
        return awaited.tx < 0 or any(arrived)

    def _ends_a_row(self, place: PtxInstruction) -> bool:
        """True for what synchronizes, and for an access that no other one follows before its threads synchronize or
        branch."""
        effects = map(_effect, self.body[place.number + 1 :])
        following = next((effect for effect in effects if effect not in (Effect.COMPUTES, Effect.NOTHING)), None)
        row = _effect(place) in ACCESSES and following not in ACCESSES
        return row or (_effect(place) is Effect.SYNCHRONIZES and "wait" not in place.kind)

    def _arrives(
        self, awaited: AwaitedPhase, place: PtxInstruction, threads: Collection[int], *, remote: bool
    ) -> Iterator[tuple[str, float]]:
        """Arrivals of these threads on the object, each with its price."""
        scope = "cluster" if remote else "cta"
        price = OTHER + SCOPE_COST[scope] * SEM_FACTOR["release"]
        expects, number = (".expect_tx", f", {-awaited.tx}") if awaited.tx < 0 else ("", "")
        names = names_of(self.body, self.trace, awaited.block, awaited.first, threads)
        for line, name in mapped(self.body, names) if remote else ():
            yield f"{line}mbarrier.arrive{expects}.release.{scope}.shared::{scope}.b64 _, {name}{number}", price
        for name in names:
            for op in lowered(place).ops:
                if isinstance(op, TRACKED):
                    yield f"tcgen05.commit.cta_group::{op.group}.mbarrier::arrive::one.shared::cluster.b64 {name}", WAIT
            yield f"mbarrier.arrive{expects}.release.{scope}.shared::{scope}.b64 _, {name}{number}", price


def _effect(instruction: PtxInstruction) -> Effect | None:
    row = lowered(instruction).row
    return None if row is None else row.effect


__all__ = ["arrivals", "committed_instead", "first_arrivals", "misnamed", "ranks"]
