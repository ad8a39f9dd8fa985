"""What may depend on the result of a load: values, addresses, guards, and whether an instruction is executed at all.

In: a function, a load, a run. Out: numbers of instructions. Settled here: registers and branches are followed along the
paths through the text, memory from the stores of a run to the loads of the same bytes. Of other effects nothing is
known, so the result is an over-approximation.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.base.labels import Access, Side
from memmodel.isa.lowered import LoweredInstruction, body_of, registers
from memmodel.kernel.flow.paths import reached
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.program.ops import Assign, Read, UndefinedIf, Unmodelled, Write
from memmodel.program.warp_ops import ActiveLanes, AmongLanes, Forget, Note
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.operands import Mem
from memmodel.ptx.vocabulary import Sem

FOLLOWED = (Assign, Forget, UndefinedIf, Unmodelled, Note, Read, Write, AmongLanes, ActiveLanes)
"""Steps that change nothing but registers of their threads and memory that the trace records."""

MOST_BYTES = 1 << 20
"""Bytes that accesses of a run touch, for memory to be followed."""


def dependent(entry: PtxFunction, load: int, loads_of: Mapping[int, set[int]]) -> frozenset[int]:
    """The instructions that may depend on what a load returns. `loads_of`: by a store the loads of its bytes."""
    body = body_of(entry)
    everything = frozenset(range(len(body)))
    if any(does.calls or does.jumps_by_table for does in body):
        return everything
    tainted, loaded = {load}, set(loads_of.get(load, ()))
    behind = {load: _after(entry, load)}
    values, jumps = {slot: [load] for slot in body[load].writes}, list[int]()
    changed = True
    while changed:
        changed = False
        for at, does in enumerate(body):
            if at in tainted:
                continue
            by_value = at in loaded or any(at in behind[maker] for slot in does.reads for maker in values.get(slot, ()))
            if not (by_value or any(at in behind[jump] for jump in jumps)):
                continue
            if not _is_followed(does):
                return everything
            tainted.add(at)
            behind[at] = _after(entry, at)
            for slot in does.writes:
                values.setdefault(slot, []).append(at)
            jumps += [at] if does.changes_control else []
            loaded |= loads_of.get(at, set())
            changed = True
    return frozenset(tainted - ({load} if load not in behind[load] else set()))


def only_values(entry: PtxFunction, load: int, loads_of: Mapping[int, set[int]]) -> bool:
    """True if nothing but registers and what weak stores write depends on what a load returns: threads execute the same
    instructions at the same addresses whatever it is.
    """
    body, followed = body_of(entry), dependent(entry, load, loads_of)
    tainted = {slot for at in (load, *followed) for slot in body[at].writes}
    for does in (body[at] for at in followed - {load}):
        guard = does.instruction.guard
        memory = [operand for operand in does.instruction.operands if isinstance(operand, Mem)]
        plain = (does.loads or does.stores) and does.access is not None and does.access.sem is Sem.WEAK
        if does.changes_control or not (plain or does.computes) or (guard is not None and guard.slot in tainted):
            return False
        if any(slot in tainted for operand in memory for slot in registers(operand)):
            return False
    return True


def flows(run: LaunchTrace) -> dict[int, set[int]] | None:
    """For each instruction that stores, the instructions that load its value: strong accesses by their sources; others,
    and those without a known source, if they touch its bytes. None if there are too many bytes.
    """
    loads_of: dict[int, set[int]] = {}
    stores: dict[tuple[Block, int], set[tuple[int, bool]]] = {}
    loads: dict[tuple[Block, int], set[tuple[int, bool]]] = {}
    chosen, count = {id(read) for read, _ in run.chosen}, 0
    strong: list[TraceEvent | WeakAccess] = [event for thread in run.threads for event in thread.strong()]
    for access in (*strong, *run.weak()):
        if access.block is None or not isinstance(access.label, Access):
            continue
        if isinstance(access, TraceEvent) and access.source is not None:
            loads_of.setdefault(access.source.at, set()).add(access.at)
        writes = access.label.side is Side.WRITE
        exact = isinstance(access, TraceEvent) and (writes or access.source is not None or id(access) in chosen)
        into = stores if writes else loads
        count += access.size
        if count > MOST_BYTES:
            return None
        for byte in range(access.first, access.first + access.size):
            into.setdefault((access.block, byte), set()).add((access.at, exact))
    for place, makers in stores.items():
        for maker, is_strong in makers:
            loaders = {at for at, other in loads.get(place, ()) if not (is_strong and other)}
            loads_of.setdefault(maker, set()).update(loaders)
    return loads_of


def _is_followed(does: LoweredInstruction) -> bool:
    """True if nothing but its registers, memory and its place among the instructions carries a dependency on."""
    return (
        does.without_effect
        or does.changes_control
        or does.fences
        or (bool(does.ops) and all(isinstance(op, FOLLOWED) for op in does.ops))
    )


def _after(entry: PtxFunction, at: int) -> set[int]:
    """The instructions that a thread may reach after an instruction."""
    body = body_of(entry)
    return reached(body, body[at].follows, lambda does: True)
