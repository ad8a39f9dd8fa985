"""Instructions about the CTAs of a cluster: addresses, launch control.

In: an Instruction. Out: a step. A response of try_cancel is a number of ours: 0 says that nothing was cancelled, else
bit 0 is set and the coordinates of the first CTA of the cancelled cluster lie above, 32 bits each. Source: PTX ISA
"mapa", "getctarank", "isspacep", "clusterlaunchcontrol".
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.base.labels import Access, Action, Family, Issue, Side, Signal
from memmodel.kernel.machine.accesses import address
from memmodel.kernel.machine.memory import LOCAL_WINDOW, PARAM_WINDOW, RANK_SHIFT, SHARED_WINDOW
from memmodel.kernel.machine.objects import signalled
from memmodel.kernel.machine.parts import Faulty, LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.state import Machine
from memmodel.kernel.machine.warpops import Blocking
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Sym, Vector
from memmodel.ptx.vocabulary import Proxy, Scope

RESPONSE_BYTES = 16
_LOW = (1 << RANK_SHIFT) - 1
_COORDINATE = 0xFFFFFFFF


def cluster_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[0] in ("mapa", "getctarank"):
        return _rank(compiler, instruction)
    if words[0] == "isspacep":
        return _in_space(compiler, instruction)
    if words[0] != "clusterlaunchcontrol":
        return None
    return _try_cancel(compiler, instruction) if words[1] == "try_cancel" else _query(compiler, instruction)


def _each(compiler: Compiler, instruction: PtxInstruction, fn: Callable[..., int | None]) -> Blocking:
    """The result of a function of known operands, in each lane."""
    slot = compiler.target(instruction)
    sources = [compiler.get(one, instruction) for one in instruction.operands[1:]]

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        lists = [list(one(warp)) for one in sources]
        for lane in lanes:
            values = [one[lane] for one in lists]
            warp.own(slot)[lane] = None if None in values else fn(*values)
        return True

    return step


def _rank(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """mapa: the same place in another CTA of the cluster; getctarank: which CTA an address is in."""
    if instruction.words[0] == "getctarank":
        generic = "shared::cluster" not in instruction.words
        return _each(compiler, instruction, lambda a: _owner(a, generic))
    # A variable by its name has a shared address; without .shared::cluster the result is a generic one.
    named = isinstance(instruction.operands[1], Sym) and "shared::cluster" not in instruction.words
    shift = SHARED_WINDOW if named else 0
    return _each(compiler, instruction, lambda a, b: (a & ~(_COORDINATE & ~_LOW)) + shift | (b & 0xFF) << RANK_SHIFT)


def _owner(address: int, generic: bool) -> int | None:
    """The rank of the CTA in whose shared memory an address is; None if it is in no shared memory."""
    if generic and not SHARED_WINDOW <= address < SHARED_WINDOW + (1 << 32):
        return None
    return (address & _COORDINATE) >> RANK_SHIFT


def _in_space(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """isspacep: does a generic address lie in a window?"""
    space = instruction.words[1]
    if space.split("::")[0] not in ("shared", "param", "local", "global", "const"):
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    slot, source = compiler.target(instruction), compiler.get(instruction.operands[1], instruction)

    def inside(warp: Warp, value: int) -> bool:
        shared = SHARED_WINDOW <= value < SHARED_WINDOW + (1 << 32)
        if space in ("shared", "shared::cta"):
            return shared and (value - SHARED_WINDOW) >> RANK_SHIFT == warp.cta.rank
        starts = {"param": PARAM_WINDOW, "param::entry": PARAM_WINDOW, "local": LOCAL_WINDOW}
        if space in starts:
            return starts[space] <= value < starts[space] + (1 << 32)
        if space == "shared::cluster":
            return shared
        return not shared and not any(start <= value < start + (1 << 32) for start in starts.values())

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        values = list(source(warp))
        for lane in lanes:
            value = values[lane]
            warp.own(slot)[lane] = None if value is None else int(inside(warp, value))
        return True

    return step


# ---- launch control ------------------------------------------------------------------------------------------------


def _try_cancel(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """The response, written through the async proxy, and a complete-tx of 16 bytes, in one or all CTAs of the
    cluster.
    """
    where, told = (address(compiler, instruction, one) for one in instruction.operands[:2])
    everywhere = any("multicast" in word for word in instruction.words)
    label = Access(Side.WRITE, proxy=Proxy.ASYNC, family=Family.TRY_CANCEL, asynchronous=True)
    signal = Signal(Action.COMPLETE_TX, Scope.CLUSTER, Family.TRY_CANCEL)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places, objects = list(where(warp)), list(told(warp))
        for lane in lanes:
            place, barrier = places[lane], objects[lane]
            if place is None or barrier is None:
                machine.unknown("the address of the response", instruction)
            thread = warp.threads[lane]
            if thread.number in warp.cta.refused:
                message = "a thread asks for a cluster to be cancelled after it has seen that none is left"
                machine.problem("undefined-cancel", message, instruction)
            issue = machine.event(thread, instruction.number, Issue(Family.TRY_CANCEL))
            response = machine.cancel(instruction, warp.cta.cluster)
            ranks = [rank for cluster, rank in machine.ctas if cluster == warp.cta.cluster]
            for part, rank in enumerate(ranks if everywhere else [warp.cta.rank], 1):
                there = place & _LOW | rank << RANK_SHIFT
                block, at = machine.place(warp, "shared::cluster", there, RESPONSE_BYTES, instruction)
                machine.weak(block, at, RESPONSE_BYTES, thread, label, instruction.number, None, issue, response, part)
                machine.forget(block, at, RESPONSE_BYTES)
                block.store(at, RESPONSE_BYTES, response)
                bar = machine.place(warp, "shared::cluster", barrier & _LOW | rank << RANK_SHIFT, 8, instruction)
                done = signalled(machine, issue, signal, *bar, [issue], RESPONSE_BYTES)
                done.parts = frozenset((part,))
        return True

    return step


def _is_canceled(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    """The lanes that see a refusal are noted."""
    tell, source = _each(compiler, instruction, lambda a: a & 1), compiler.get(instruction.operands[1], instruction)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        values = list(source(warp))
        warp.cta.refused |= {warp.threads[lane].number for lane in lanes if values[lane] == 0}
        return tell(machine, warp, lanes, group)

    return step


def _query(compiler: Compiler, instruction: PtxInstruction) -> Blocking:
    words = instruction.words
    if "is_canceled" in words:
        return _is_canceled(compiler, instruction)
    word = next((one for one in words if one.startswith("get_first_ctaid")), "")
    if "::" in word:
        axis = "xyz".index(word[-1])
        return _each(compiler, instruction, lambda a: a >> 32 * (axis + 1) & _COORDINATE)
    target = instruction.operands[0]
    slots = [compiler.slot_of(one) for one in target.items] if isinstance(target, Vector) else []
    source = compiler.get(instruction.operands[1], instruction)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        values = list(source(warp))
        for lane in lanes:
            value = values[lane]
            if value is not None and not value & 1:
                raise Faulty("undefined-instruction", "get_first_ctaid is for a response that says canceled")
            for axis, slot in enumerate(slots):
                if slot is not None:
                    shown = None if value is None else value >> 32 * (axis + 1) & _COORDINATE
                    warp.own(slot)[lane] = shown if axis < 3 else 0
        return True

    return step
