"""What may depend on the result of a load: values, addresses, guards, and whether an instruction is executed at all.

In: a function, a load, a run. Out: numbers of instructions. Settled here: registers and branches are followed along the
ways through the text, memory from the stores of a run to the loads of the same bytes, and nothing is known of other
effects, so that too much is said to depend, and not too little.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.base.labels import Access, Side
from memmodel.kernel.flow.paths import PURE
from memmodel.kernel.flow.registers import registers, written
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import JumpTarget

TO_REGISTERS = PURE | {"ld", "ldu", "cvta", "mapa", "shfl", "vote", "match", "redux", "elect", "activemask"}
STORES = ("st", "atom", "red")
MOST_BYTES = 1 << 20
"""Bytes that accesses of a run touch, for memory to be followed."""
ENDS = ("ret", "exit", "trap")
JUMPS = ("bra", *ENDS)


def dependent(entry: PtxFunction, load: int, loads_of: Mapping[int, set[int]]) -> frozenset[int]:
    """The instructions that may depend on what a load returns. `loads_of`: for a store, what loads its bytes."""
    body = entry.body or ()
    everything = frozenset(one.number for one in body)
    if any(one.words[0] in ("call", "brx") for one in body):
        return everything
    used, makes = [_used(one) for one in body], [set(written(one)) for one in body]
    tainted, loaded = {load}, set(loads_of.get(load, ()))
    behind = {load: _after(body, load)}
    values, jumps = {slot: [load] for slot in makes[load]}, list[int]()
    changed = True
    while changed:
        changed = False
        for one in body:
            at = one.number
            if at in tainted:
                continue
            by_value = at in loaded or any(at in behind[maker] for slot in used[at] for maker in values.get(slot, ()))
            if not (by_value or any(at in behind[jump] for jump in jumps)):
                continue
            if one.words[0] not in TO_REGISTERS and one.words[0] not in (*STORES, *ENDS, "fence", "membar"):
                return everything
            tainted.add(at)
            behind[at] = _after(body, at)
            for slot in makes[at]:
                values.setdefault(slot, []).append(at)
            jumps += [at] if one.words[0] in JUMPS else []
            loaded |= loads_of.get(at, set())
            changed = True
    return frozenset(tainted - ({load} if load not in behind[load] else set()))


def flows(run: LaunchTrace) -> dict[int, set[int]] | None:
    """For each instruction that stores, those that load what it stored: of strong accesses, as they read; of others,
    and where that is not known, some of its bytes. None if there are too many bytes.
    """
    found: dict[int, set[int]] = {}
    stores: dict[tuple[Block, int], set[tuple[int, bool]]] = {}
    loads: dict[tuple[Block, int], set[tuple[int, bool]]] = {}
    chosen, count = {id(read) for read, _ in run.chosen}, 0
    strong: list[TraceEvent | WeakAccess] = [event for thread in run.threads for event in thread.strong()]
    for one in (*strong, *run.weak()):
        if one.block is None or not isinstance(one.label, Access):
            continue
        if isinstance(one, TraceEvent) and one.source is not None:
            found.setdefault(one.source.at, set()).add(one.at)
        writes = one.label.side is Side.WRITE
        exact = isinstance(one, TraceEvent) and (writes or one.source is not None or id(one) in chosen)
        into = stores if writes else loads
        count += one.size
        if count > MOST_BYTES:
            return None
        for byte in range(one.first, one.first + one.size):
            into.setdefault((one.block, byte), set()).add((one.at, exact))
    for place, makers in stores.items():
        for maker, is_strong in makers:
            there = {at for at, other in loads.get(place, ()) if not (is_strong and other)}
            found.setdefault(maker, set()).update(there)
    return found


def _used(one: PtxInstruction) -> set[int]:
    operands = one.operands[1:] if written(one) else one.operands
    found = {slot for operand in operands for slot in registers(operand)}
    return found if one.guard is None else found | {one.guard.slot}


def _after(body: tuple[PtxInstruction, ...], at: int) -> set[int]:
    """The instructions that a thread may come to after one."""
    waiting, found = [at], set[int]()
    while waiting:
        one = body[waiting.pop()]
        target = one.operands[0] if one.words[0] == "bra" and one.operands else None
        following = [target.at] if isinstance(target, JumpTarget) else []
        if one.guard is not None or one.words[0] not in ("bra", *ENDS):
            following.append(one.number + 1)
        for other in following:
            if other < len(body) and other not in found:
                found.add(other)
                waiting.append(other)
    return found
