"""Polls that a CTA makes in common: one thread asks, tells the others through shared memory, and all go round again.

In: PtxFunction. Out: `polled_alone`, the function in which that thread goes round alone until its loop would end; what
has to hold in a run for that to be the same. Source: docs/kernels-theorem.md, "Polls in common".

Triton writes loops around atomic operations so: a barrier, the operation under a guard, a store of its result to shared
memory, a barrier, a load of that by every thread, and a branch. A round that goes on changes nothing that outlives it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from memmodel.base.labels import Barrier, Domain, Half, is_atomic, is_read
from memmodel.isa.lowered import Body, LoweredInstruction, body_of
from memmodel.kernel.flow.known_values import constants
from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.origin import from_memory
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.expressions import AddressOf, Const, Expr
from memmodel.program.ops import AtBarrier, Read, Write
from memmodel.program.uses import results_of
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import JumpTarget, Mem, Operand, Register, Sym
from memmodel.ptx.vocabulary import Sem, Window

MOST = 64
"""Instructions of a loop that polls in common."""


@dataclass(frozen=True, slots=True)
class CommonPoll:
    """A loop, by the numbers of its instructions: what asks, what stores the result and loads it, and the branch back.
    `barriers`: those of all threads in it. `alone`: where the thread asks that goes round alone.
    """

    head: int
    poll: int
    store: int
    load: int
    branch: int
    barriers: frozenset[int]
    alone: int = 0

    def holds(self, run: LaunchTrace) -> bool:
        """True if one thread of each CTA asked, and all its threads met at the barriers of the loop."""
        asked = Counter(
            run.threads[number].cta
            for number in {event.thread for thread in run.threads for event in thread.events if event.at == self.alone}
        )
        places: dict[object, set[int]] = {}
        for thread in run.threads:
            for event in thread.events:
                if isinstance(event.label, Barrier):
                    places.setdefault((event.barrier, event.generation), set()).add(event.at)
        mixed = any(len(where) > 1 and not self.barriers.isdisjoint(where) for where in places.values())
        return not mixed and all(count == 1 for count in asked.values())


@dataclass(frozen=True, slots=True)
class PolledAlone:
    """A function in which threads poll alone, and the loops that are so."""

    entry: PtxFunction
    polls: tuple[CommonPoll, ...]

    def holds(self, run: LaunchTrace) -> bool:
        """True if what these loops need was so in a run."""
        return all(poll.holds(run) for poll in self.polls)


def polled_alone(entry: PtxFunction) -> PolledAlone | None:
    """The function with the loops in which a CTA polls in common made loops of one thread; None if it has none."""
    body, polls, instructions = body_of(entry), list[CommonPoll](), list(entry.body or ())
    if not body or any(len(body) in does.follows for does in body):
        return None
    for branch, does in enumerate(body):
        poll = _common_poll(entry, does.target, branch) if does.jumps and does.target is not None else None
        chain = None if poll is None else _chain(body, poll, liveness(entry))
        if poll is not None and chain is not None:
            polls.append(replace(poll, alone=len(instructions) + 1))
            _add_loop(instructions, poll, chain)
    return PolledAlone(replace(entry, body=tuple(instructions)), tuple(polls)) if polls else None


def _common_poll(entry: PtxFunction, head: int, branch: int) -> CommonPoll | None:
    """The loop that a branch back makes, if it polls in common."""
    body = body_of(entry)
    inside = range(head, branch)
    if not 0 < len(inside) <= MOST or any(body[at].follows != (at + 1,) for at in inside):
        return None
    entered = (target for at, does in enumerate(body) if at not in inside for target in does.targets)
    if any(head < target <= branch for target in entered):
        return None
    others = [at for at in inside if not body[at].computes]
    barriers = frozenset(at for at in others if _is_of_all(body[at]))
    polls = [at for at in others if _asks(body[at])]
    stores = [at for at in others if _touches_shared(body[at], Write)]
    loads = [at for at in others if _touches_shared(body[at], Read)]
    if len(polls) != 1 or len(stores) != 1 or len(loads) != 1 or len(others) != len(barriers) + 3:
        return None
    found = CommonPoll(head, polls[0], stores[0], loads[0], branch, barriers)
    return found if _is_handed_over(entry, found) and _leaves_nothing(entry, found) else None


def _is_of_all(does: LoweredInstruction) -> bool:
    """True of a barrier at which all threads of a CTA wait for each other."""
    ops = [op for op in does.ops if isinstance(op, AtBarrier)]
    labels = [op.label for op in ops]
    plain = all(label.domain is Domain.CTA and not label.reduces for label in labels) and not _guarded(does)
    fixed = all(op.count is None and all(isinstance(part, Const) for part in op.key) for op in ops)
    return (
        plain and fixed and [label.half for label in labels] == [Half.ARRIVE, Half.WAIT] and len(ops) == len(does.ops)
    )


def _asks(does: LoweredInstruction) -> bool:
    """True of a strong read of one word under a guard."""
    access = does.access
    strong = access is not None and access.sem is not Sem.WEAK and access.spelt is None
    reads = access is not None and (is_read(access) or is_atomic(access)) and len(does.writes) == 1
    return strong and reads and does.instruction.guard is not None and does.elements == 1


def _touches_shared(does: LoweredInstruction, kind: type[Read | Write]) -> bool:
    """True of a weak load or store of one word of shared memory."""
    access, ops = does.access, does.ops
    weak = access is not None and access.sem is Sem.WEAK and access.spelt is None and not access.asynchronous
    return weak and len(ops) == 1 and isinstance(ops[0], kind) and does.window is Window.SHARED_CTA


def _is_handed_over(entry: PtxFunction, poll: CommonPoll) -> bool:
    """True if the result is stored by who asks, and loaded by all behind a barrier, which another one parts from the
    store of the next round."""
    body = body_of(entry)
    asks, stores, loads = body[poll.poll].instruction, body[poll.store].instruction, body[poll.load].instruction
    guard = asks.guard
    if guard is None or stores.guard is None or loads.guard is not None or len(body[poll.load].writes) != 1:
        return False
    same = (guard.slot, asks.negated) == (stores.guard.slot, stores.negated)
    result = stores.operands[-1]
    stored = isinstance(result, Register) and body[poll.poll].writes == (result.slot,)
    places = _place(body, stores.operands), _place(body, loads.operands)
    in_order = poll.poll < poll.store < poll.load
    meets = any(poll.store < at < poll.load for at in poll.barriers)
    parts = any(at > poll.load or at < poll.store for at in poll.barriers)
    one_place = places[0] is not None and places[0] == places[1] and body[poll.store].type == body[poll.load].type
    return same and stored and one_place and in_order and meets and parts and guard.slot not in from_memory(entry)


def _place(body: Body, operands: Sequence[Operand]) -> tuple[object, int] | None:
    """The address of a memory operand: a variable or a register, and an offset."""
    mem = next((operand for operand in operands if isinstance(operand, Mem)), None)
    if mem is None:
        return None
    if isinstance(mem.base, Register):
        value = _value(body, mem.base.slot)
        if isinstance(value, AddressOf):
            return value.name, value.offset + mem.offset
        return mem.base.slot, mem.offset
    return (mem.base.name, mem.offset) if isinstance(mem.base, Sym) else None


def _value(body: Body, slot: int) -> Expr | None:
    """What a register holds that one instruction writes, without a guard; None for others."""
    writers = [does for does in body if slot in does.writes]
    return results_of(writers[0].ops).get(str(slot)) if len(writers) == 1 and not _guarded(writers[0]) else None


def _guarded(does: LoweredInstruction) -> bool:
    return does.instruction.guard is not None


def _leaves_nothing(entry: PtxFunction, poll: CommonPoll) -> bool:
    """True if no register that a round writes is read in the next one, or decides who asks and where."""
    body = body_of(entry)
    written = {slot for at in range(poll.head, poll.branch) for slot in body[at].writes} - constants(entry)
    written = {slot for slot in written if not isinstance(_value(body, slot), AddressOf)}
    fixed = {slot for at in (poll.poll, poll.store, poll.load) for slot in body[at].sources}
    fixed -= {slot for slot in body[poll.poll].writes}
    guard = body[poll.poll].instruction.guard
    assert guard is not None
    return written.isdisjoint(liveness(entry)[poll.head] | fixed | {guard.slot})


def _chain(body: Body, poll: CommonPoll, live: Sequence[Collection[int]]) -> list[PtxInstruction] | None:
    """What computes whether the loop goes on, of what was asked in place of what was loaded; None if that cannot be
    done before the others know."""
    (asked,), (loaded,) = body[poll.poll].writes, body[poll.load].writes
    between = range(poll.load + 1, poll.branch)
    chain = [at for at in between if body[at].computes]
    writes = {slot for at in chain for slot in body[at].writes}
    late = {slot for at in range(poll.poll + 1, poll.load) for slot in body[at].writes}
    guard = body[poll.branch].instruction.guard
    reads = {slot for at in chain for slot in body[at].reads}
    if guard is None or guard.slot not in writes or loaded not in reads or reads & late or {asked, loaded} & writes:
        return None
    if any(body[at].instruction.guard is not None for at in chain) or writes & set(live[poll.poll + 1]):
        return None
    result = next(it for it in body[poll.poll].instruction.operands if isinstance(it, Register) and it.slot == asked)

    def told(operand: Operand) -> Operand:
        return result if isinstance(operand, Register) and operand.slot == loaded else operand

    if any(loaded in body[at].reads - {it.slot for it in _plain(body[at].instruction)} for at in chain):
        return None
    moved = (body[at].instruction for at in chain)
    return [replace(instruction, operands=tuple(map(told, instruction.operands))) for instruction in moved]


def _plain(instruction: PtxInstruction) -> list[Register]:
    """The operands of an instruction that are registers by themselves, and not parts of others."""
    return [operand for operand in instruction.operands if isinstance(operand, Register)]


def _add_loop(instructions: list[PtxInstruction], poll: CommonPoll, chain: Sequence[PtxInstruction]) -> None:
    """Put the loop of the thread that asks behind all instructions, and a jump to it where it asked."""
    branch, asks = instructions[poll.branch], instructions[poll.poll]

    def jump(number: int, target: int, guard: Register | None = None, *, negated: bool = False) -> PtxInstruction:
        to = (JumpTarget(f"to line {asks.line}", target),)
        span, location = asks.span, asks.location
        return replace(branch, number=number, operands=to, span=span, location=location, guard=guard, negated=negated)

    start, alone = len(instructions), len(instructions) + 1
    instructions[poll.poll] = jump(poll.poll, start)
    end = alone + len(chain) + 2  # all lanes go back by one jump, and so in one round of the loop around
    instructions.append(jump(start, end, asks.guard, negated=not asks.negated))
    instructions.append(replace(asks, number=alone, guard=None, negated=False))
    instructions += [replace(it, number=alone + 1 + number) for number, it in enumerate(chain)]
    instructions.append(jump(len(instructions), alone, branch.guard, negated=branch.negated))
    instructions.append(jump(end, poll.poll + 1))
