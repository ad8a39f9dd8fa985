"""Stronger words and other numbers in the instructions that a finding names.

In: a finding, the entry. Out: `Reworded`s.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations

from memmodel.answer import HANG
from memmodel.base.points import BarrierId
from memmodel.isa.lowered import lowered
from memmodel.kernel.check.so_far import JudgedKernel
from memmodel.kernel.order.missing_order import UNFINISHED, MissingOrder
from memmodel.kernel.order.verdict import FindingPlace, KernelFinding
from memmodel.kernel.repair.lines import bytes_of
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Imm, Operand, Register
from memmodel.repair.costs import OTHER, PROXY_FENCE, SCOPE_COST, SEM_FACTOR, WAIT
from memmodel.repair.spellings import LEVELS, PROXY_SPACES, SCOPES

GROUPS = ("wait_group", "wait_all")
TESTS = ("test_wait", "try_wait")
HALVES = ("relaxed", "acquire", "release")
"""Semantics that lack an acquire or a release."""

COUNTED = ("init", "arrive", "arrive_drop", "expect_tx")
"""Instructions on mbarrier objects that may end in a number of arrivals or bytes."""


@dataclass(frozen=True, slots=True)
class Reworded:
    """An instruction with another text. `text`: the whole instruction."""

    instruction: PtxInstruction
    text: str
    what: str
    cost: float


def reworded(finding: KernelFinding, entry: PtxFunction) -> Iterator[tuple[Reworded, ...]]:
    """Changes to be made together."""
    body = entry.body or ()
    named = [side.instruction for side in (*finding.way, *finding.sides)]
    reason = finding.reason
    if reason in (MissingOrder.RELAXED.value, MissingOrder.GONE.value):
        yield from _stronger([side.instruction for side in finding.way])
        yield from _stronger_and_wider(list(finding.way))
    if reason in (MissingOrder.SCOPES.value, MissingOrder.RELAXED.value):
        yield from _wider([*named, *finding.mentioned])
    if reason in (MissingOrder.PROXY.value, MissingOrder.PROXY_PLACE.value):
        for instruction in body:
            if instruction.words[:3] == ("fence", "proxy", "async") and instruction.words[-1] in PROXY_SPACES:
                yield (_opcode(instruction, instruction.words[:-1], PROXY_FENCE),)
    if not finding.way and len(finding.sides) < 2:
        yield from _counts(finding, body)
    if finding.rule == "undefined-barrier" and len(finding.sides) > 1:
        yield from _barrier_counts([side.instruction for side in finding.sides], body)


def waiting_more(finding: KernelFinding, entry: PtxFunction) -> Iterator[tuple[Reworded, ...]]:
    """Waits for groups that leave fewer groups open, or also wait for their writes; more bytes, the other parity."""
    body = entry.body or ()
    if finding.reason == MissingOrder.COUNT.value and finding.sides:
        size = bytes_of(finding.sides[0].instruction) or ""
        for instruction in body if size.isdigit() else ():
            if instruction.words[0] == "mbarrier" and "expect_tx" in instruction.words:
                yield from _numbers(instruction, body, lambda old: (old + int(size),))
    if finding.reason == MissingOrder.PARITY.value:
        yield from _other_parity(finding.mentioned)
    if finding.reason not in UNFINISHED and finding.rule != "tensor-memory-hazard":
        return
    head = finding.sides[0].instruction.words[0]
    for instruction in sorted(body, key=lambda instruction: instruction not in finding.mentioned):
        if instruction.words[0] == head and any(word in GROUPS for word in instruction.words):
            price = OTHER if instruction in finding.mentioned else 2 * OTHER
            yield from _numbers(instruction, body, lambda old: dict.fromkeys((old - 1, 0)), price)
        if instruction.words[0] == head and "read" in instruction.words and "wait_group" in instruction.words:
            yield (_opcode(instruction, tuple(word for word in instruction.words if word != "read"), WAIT),)


def _stronger(way: list[PtxInstruction]) -> Iterator[tuple[Reworded, ...]]:
    """Release on the first step of the way, acquire on the last one."""
    if not way:
        return
    first, last = way[0], way[-1]
    release, acquire = _with_sem(first, releases=True), _with_sem(last, releases=False)
    if first is last and first.words[0] == "atom" and "acq_rel" not in first.words:
        words = _sem_in_place(first, "acq_rel") or first.words
        yield (_opcode(first, words, OTHER + SCOPE_COST[_scope_of(words)] * SEM_FACTOR["acq_rel"]),)
        return
    if release is not None:
        yield (release,)
    if acquire is not None:
        yield (acquire,)
    if release is not None and acquire is not None and first is not last:
        yield release, acquire


def _stronger_and_wider(way: list[FindingPlace]) -> Iterator[tuple[Reworded, ...]]:
    """Release on the first step of a way to another CTA and acquire on the last one, both with a scope that has both
    threads."""
    if not way or way[0].cta == way[-1].cta:
        return
    ends = (way[0].instruction, True), (way[-1].instruction, False)
    for scope in SCOPES[1:]:
        changes = []
        for instruction, releases in ends:
            words = _sem_words(instruction, releases=releases) or instruction.words
            words = _scope_words(instruction, words, scope) or words
            if words != instruction.words:
                sem = "release" if releases else "acquire"
                changes.append(_opcode(instruction, words, OTHER + SCOPE_COST[scope] * SEM_FACTOR[sem]))
        if len(changes) > 1:
            yield tuple(changes)


def _with_sem(instruction: PtxInstruction, *, releases: bool) -> Reworded | None:
    words = _sem_words(instruction, releases=releases)
    if words is None:
        return None
    sem = next(word for word in words if word in SEM_FACTOR and word not in instruction.words)
    return _opcode(instruction, words, OTHER + SCOPE_COST[_scope_of(words)] * SEM_FACTOR[sem])


def _scope_of(words: tuple[str, ...]) -> str:
    """The scope of a strong access, a fence or an arrival."""
    return next((word for word in words if word in SCOPES), "gpu" if words[0] in ("atom", "red", "ld", "st") else "cta")


def _sem_words(instruction: PtxInstruction, *, releases: bool) -> tuple[str, ...] | None:
    """The words of an instruction that releases, or acquires; None if it cannot, or does."""
    words = instruction.words
    if words[0] in ("atom", "red") and "async" not in words[1:2]:
        sem = "release" if releases else "acquire"
        if words[0] == "red" and not releases:
            return None
        if {"release", "acquire"} - {sem} & set(words):  # it keeps what it has
            sem = "acq_rel"
    elif words[0] in ("ld", "st"):
        if (words[0] == "st") is not releases:
            return None
        sem = "release" if releases else "acquire"
    elif _arrives(words) is releases:
        sem = "release" if releases else "acquire"
    else:
        return None
    if sem in words or "acq_rel" in words:
        return None
    return _sem_in_place(instruction, sem)


def _sem_in_place(instruction: PtxInstruction, sem: str) -> tuple[str, ...] | None:
    """The words of an instruction with other semantics; None if it has none of its own."""
    words = instruction.words
    if set(HALVES) & set(words):
        return tuple(sem if word in HALVES else word for word in words)
    if words[0] in ("atom", "red"):
        scoped = () if any(word in SCOPES for word in words) else ("gpu",)
        return (words[0], sem, *scoped, *words[1:])
    if words[0] in ("ld", "st"):
        return (words[0], sem, "gpu", *(word for word in words[1:] if word not in ("volatile", "weak")))
    return None


def _arrives(words: tuple[str, ...]) -> bool | None:
    """True for an arrive, False for a wait, None for other instructions."""
    if words[0] == "mbarrier":
        return not set(words[1:2]) & set(TESTS)
    return "arrive" in words if words[:2] == ("barrier", "cluster") else None


def _wider(named: list[PtxInstruction]) -> Iterator[tuple[Reworded, ...]]:
    """Every named instruction with a wider scope, each alone and all together."""
    for scope in SCOPES[1:]:
        changes = []
        for instruction in dict.fromkeys(it for it in named if it.words[:2] != ("barrier", "cluster")):
            cost = OTHER + SCOPE_COST[scope]
            if instruction.words[0] == "membar":
                levels = dict(zip(("cta", "gpu", "sys"), LEVELS, strict=True))
                level, wider = instruction.words[1], levels.get(scope)
                if wider is not None and level in LEVELS and LEVELS.index(level) < LEVELS.index(wider):
                    changes.append(_opcode(instruction, ("membar", wider), cost - SCOPE_COST[level]))
            elif (words := _scope_words(instruction, instruction.words, scope)) is not None:
                changes.append(_opcode(instruction, words, cost))
        yield from ((change,) for change in changes)
        if len(changes) > 1:
            yield tuple(changes)


def _scope_words(instruction: PtxInstruction, words: tuple[str, ...], scope: str) -> tuple[str, ...] | None:
    """These words of an instruction with a wider scope; None if it has none, or one that is as wide."""
    old = next((word for word in words if word in SCOPES), None)
    if old is not None:
        wider = SCOPES.index(old) < SCOPES.index(scope)
        return tuple(scope if word == old else word for word in words) if wider else None
    if words[0] != "mbarrier" or instruction.kind not in (*TESTS, "arrive", "arrive_drop"):
        return None
    sem = "acquire" if instruction.kind in TESTS else "release"
    at = 3 if words[2:3] in (("expect_tx",), ("noComplete",), ("parity",)) else 2
    return (*words[:at], sem, scope, *words[at:])


def _barrier_counts(met: list[PtxInstruction], body: tuple[PtxInstruction, ...]) -> Iterator[tuple[Reworded, ...]]:
    """The count of one instruction at a barrier for another one."""
    for instruction, other in permutations(met, 2):
        count = _number(other.operands[-1], body) if other.operands else None
        if count is not None:
            yield from _numbers(instruction, body, lambda old, count=count: (count,))  # type: ignore[misc]


def met_by_all(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[Reworded, ...]]:
    """All instructions at a barrier at which threads wait for ever, or from which they race, with the number of those
    that come to it."""
    body, judged = kernel.entry.body or (), kernel.representative
    races = finding.reason == MissingOrder.SYNCHRONIZATION.value
    if judged is None or not (races or finding.rule == HANG):
        return
    named = finding.mentioned if races else [side.instruction for side in finding.sides]
    run, at = judged.run.run, {instruction.number for instruction in named}
    coming: dict[BarrierId, tuple[set[int], set[int]]] = {}
    for thread in run.threads:
        for event in thread.events:
            if event.barrier is not None:
                numbers, threads = coming.setdefault(event.barrier, (set(), set()))
                numbers.add(event.at)
                threads.add(thread.number)
    for numbers, threads in coming.values():
        counted = [body[number] for number in sorted(numbers) if len(body[number].operands) > 1]
        if len(counted) > (not races) and not numbers.isdisjoint(at):
            changes = [_numbers(instruction, body, lambda old, count=len(threads): (count,)) for instruction in counted]  # type: ignore[misc]
            yield tuple(change for each in changes for (change,) in each)


def all_that_arrive(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[Reworded, ...]]:
    """An mbarrier object whose phases end too early or too late, initialised for as many threads as arrive on it."""
    body, judged = kernel.entry.body or (), kernel.representative
    if judged is None or finding.rule not in (HANG, "undefined-mbarrier", "undefined-unobserved-phase"):
        return
    wanted: dict[int, set[int]] = {}
    for steps in judged.run.run.objects.values():
        threads = {step.event.thread for step in steps if step.arrivals and body[step.event.at].kind != "init"}
        for at in {step.event.at for step in steps if body[step.event.at].kind == "init"}:
            wanted.setdefault(at, set()).add(len(threads))
    for at, counts in sorted(wanted.items()):
        for count in sorted(counts - {0}):
            yield from _numbers(body[at], body, lambda old, count=count: (count,) if count != old else ())  # type: ignore[misc]


def other_barriers(finding: KernelFinding, body: tuple[PtxInstruction, ...]) -> Iterator[tuple[Reworded, ...]]:
    """The number of another barrier of the text, where threads wait for ever at one."""
    sides = [side.instruction for side in finding.sides] if finding.rule == HANG else []
    numbers = [_barrier(instruction) for instruction in body]
    for instruction in sides:
        own = _barrier(instruction)
        for number in sorted({number for number in numbers if number is not None} - {own}) if own is not None else ():
            text = re.sub(rf"(?<={re.escape(instruction.opcode)})\s+\d+", f" {number}", instruction.span.text, count=1)
            yield (Reworded(instruction, text, f"barrier {own} becomes {number}", OTHER),)


def waits_too(finding: KernelFinding, body: tuple[PtxInstruction, ...]) -> Iterator[tuple[Reworded, ...]]:
    """Where threads race, or wait for ever at a barrier: who only arrives at one waits there."""
    hangs = finding.rule == HANG and any(_barrier(side.instruction) is not None for side in finding.sides)
    for instruction in body if hangs or finding.reason == MissingOrder.SYNCHRONIZATION.value else ():
        if instruction.kind == "arrive" and _barrier(instruction) is not None:
            words = tuple("sync" if word == "arrive" else word for word in instruction.words)
            yield (_opcode(instruction, words, OTHER + SCOPE_COST["cta"]),)


def _barrier(instruction: PtxInstruction) -> int | None:
    """The number of the barrier of a CTA at which an instruction arrives, if it is written out."""
    named = instruction.words[0] in ("bar", "barrier") and instruction.kind in ("sync", "arrive")
    operand = instruction.operands[0] if named and instruction.operands else None
    return operand.value if isinstance(operand, Imm) else None


def expected_bytes(kernel: JudgedKernel, finding: KernelFinding) -> Iterator[tuple[Reworded, ...]]:
    """All instructions that announce bytes to an mbarrier object of a copy with the bytes that come to it."""
    body, judged = kernel.entry.body or (), kernel.representative
    signals = any("mbarrier::complete_tx::bytes" in side.instruction.words for side in finding.sides)
    if judged is None or not signals:
        return
    for steps in judged.run.run.objects.values():
        announced, come = Counter[int](), 0
        for step in steps:
            if "expect_tx" in body[step.event.at].words:
                announced[step.event.at] += step.bytes
            else:
                come -= step.bytes
        total = announced.total()
        if 0 < come != total > 0:
            changes = [_numbers(body[at], body, lambda old, n=come, of=total: (old * n // of,)) for at in announced]  # type: ignore[misc]
            yield tuple(change for each in changes for (change,) in each)


def _counts(finding: KernelFinding, body: tuple[PtxInstruction, ...]) -> Iterator[tuple[Reworded, ...]]:
    """Other numbers of arrivals and bytes for a finding about a hang, by what the message says is missing."""
    counts = {int(number) for number in re.findall(r"\b\d+\b(?! bytes)", finding.message)}
    sizes = {int(number) for number in re.findall(r"\b(\d+) bytes", finding.message)}
    for instruction in body:
        if instruction.words[0] == "mbarrier" and instruction.kind in COUNTED:
            steps = sizes if "expect_tx" in instruction.words else counts
            yield from _numbers(
                instruction,
                body,
                lambda old, steps=steps: sorted({old + sign * step for step in {1, *steps} for sign in (-1, 1)}),  # type: ignore[misc]
            )
    met = re.search(r"(\d+) of (\d+) threads have arrived at barrier", finding.message)
    arrived = () if met is None else (int(met[1]),)
    for instruction in (side.instruction for side in finding.sides) if arrived else ():
        others = (it for it in body if it is not instruction and _barrier(it) == _barrier(instruction) is not None)
        if all(it.operands[1:] != instruction.operands[1:] for it in others):  # else it waits for nobody that comes
            yield from _numbers(instruction, body, lambda old: arrived)
    lacking = re.search(r"lacks (\d+) of (\d+) arrivals", finding.message)
    if lacking is None or lacking[1] != lacking[2] or "bytes" in finding.message:
        return  # a test that asks for the phase before would hide that this one never ends
    yield from _other_parity(side.instruction for side in finding.sides)


def _other_parity(tests: Iterable[PtxInstruction]) -> Iterator[tuple[Reworded, ...]]:
    """Tests of mbarrier objects for the other parity, where the text says which one."""
    for instruction in tests:
        if instruction.words[0] == "mbarrier" and instruction.kind in TESTS and "parity" in instruction.words:
            operand = instruction.operands[2] if len(instruction.operands) > 2 else None
            if isinstance(operand, Imm):
                text = re.sub(r",\s*\d+(\s*(,|$))", f", {operand.value ^ 1}\\1", instruction.span.text, count=1)
                yield (Reworded(instruction, text, f"parity {operand.value} becomes {operand.value ^ 1}", OTHER),)


def _numbers(
    instruction: PtxInstruction,
    body: tuple[PtxInstruction, ...],
    others: Callable[[int], Iterable[int]],
    price: float = OTHER,
) -> Iterator[tuple[Reworded, ...]]:
    """The last number of an instruction as another one. `others`: what to put in its place."""
    old = _number(instruction.operands[-1], body) if instruction.operands else None
    for value in others(old) if old is not None else ():
        if 0 <= value != old and (value or "init" not in instruction.words):
            text = re.sub(r"%?[\w$]+\s*$", str(value), instruction.span.text)
            yield (Reworded(instruction, text, f"{old} becomes {value}", price),)


def _number(operand: Operand, body: tuple[PtxInstruction, ...]) -> int | None:
    """A number that is written out, or moved into the register by the only instruction that writes it."""
    if isinstance(operand, Register):
        writes = [instruction for instruction in body if operand.slot in lowered(instruction).writes]
        moved = len(writes) == 1 and writes[0].words[0] == "mov" and writes[0].guard is None
        operand = writes[0].operands[1] if moved else operand
    return operand.value if isinstance(operand, Imm) else None


def _opcode(instruction: PtxInstruction, words: tuple[str, ...], cost: float) -> Reworded:
    new = ".".join(words)
    return Reworded(
        instruction,
        instruction.span.text.replace(instruction.opcode, new, 1),
        f"{instruction.opcode} becomes {new}",
        cost,
    )


__all__ = ["Reworded", "expected_bytes", "met_by_all", "other_barriers", "reworded", "waiting_more"]
