"""What may depend on the result of a load: values, addresses, guards, and whether an instruction is executed at all.

In: a function, a load, a run. Out: numbers of instructions. Settled here: registers and branches are followed along the
paths through the text, memory from the stores of a run to the loads of the same bytes. Of other effects nothing is
known, so the result is an over-approximation.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.base.labels import Access, Side
from memmodel.kernel.flow.paths import PURE
from memmodel.kernel.flow.registers import reads, written
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
    """The instructions that may depend on what a load returns. `loads_of`: by a store the loads of its bytes."""
    body = entry.body or ()
    everything = frozenset(instruction.number for instruction in body)
    if any(instruction.words[0] in ("call", "brx") for instruction in body):
        return everything
    used, makes = [reads(instruction) for instruction in body], [set(written(instruction)) for instruction in body]
    tainted, loaded = {load}, set(loads_of.get(load, ()))
    behind = {load: _after(body, load)}
    values, jumps = {slot: [load] for slot in makes[load]}, list[int]()
    changed = True
    while changed:
        changed = False
        for instruction in body:
            at = instruction.number
            if at in tainted:
                continue
            by_value = at in loaded or any(at in behind[maker] for slot in used[at] for maker in values.get(slot, ()))
            if not (by_value or any(at in behind[jump] for jump in jumps)):
                continue
            head = instruction.words[0]
            if head not in TO_REGISTERS and head not in (*STORES, *ENDS, "fence", "membar"):
                return everything
            tainted.add(at)
            behind[at] = _after(body, at)
            for slot in makes[at]:
                values.setdefault(slot, []).append(at)
            jumps += [at] if head in JUMPS else []
            loaded |= loads_of.get(at, set())
            changed = True
    return frozenset(tainted - ({load} if load not in behind[load] else set()))


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


def _after(body: tuple[PtxInstruction, ...], at: int) -> set[int]:
    """The instructions that a thread may reach after an instruction."""
    waiting, after = [at], set[int]()
    while waiting:
        instruction = body[waiting.pop()]
        target = instruction.operands[0] if instruction.words[0] == "bra" and instruction.operands else None
        following = [target.at] if isinstance(target, JumpTarget) else []
        if instruction.guard is not None or instruction.words[0] not in ("bra", *ENDS):
            following.append(instruction.number + 1)
        for later in following:
            if later < len(body) and later not in after:
                after.add(later)
                waiting.append(later)
    return after
