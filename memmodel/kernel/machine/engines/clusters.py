"""Instructions about the CTAs of a cluster: addresses.

In: an Instruction. Out: a step. Source: PTX ISA "mapa", "getctarank", "isspacep".
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.kernel.machine.memory import LOCAL_WINDOW, PARAM_WINDOW, RANK_SHIFT, SHARED_WINDOW
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.pure import Compiler
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Sym

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
    return None


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
