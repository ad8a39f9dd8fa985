"""st.async and red.async: stores and reductions that are made outside of program order.

In: an Instruction. Out: a step that leaves an issue and its access. To shared memory of the cluster a complete-tx tells
of the end; to global memory the issue is the release, and nothing tells of the end. Source: PTX ISA "st.async",
"red.async"; labels as the rows of `isa.movement.stasync` have them.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.labels import Access, Action, Family, Issue, Side, Signal
from memmodel.isa.row import numeric_type
from memmodel.kernel.machine.accesses import SCOPES, address, strong
from memmodel.kernel.machine.compiler import Compiler
from memmodel.kernel.machine.objects import at_object, signalled
from memmodel.kernel.machine.parts import LaneGroup, Lanes, Warp
from memmodel.kernel.machine.regions.locate import aligned
from memmodel.kernel.machine.rows import Value
from memmodel.kernel.machine.state import Blocking, Machine
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.problems import Refused
from memmodel.program.arith import Operation, operation
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Vector
from memmodel.ptx.vocabulary import Scope, Sem, Window

OPERATIONS = ("add", "min", "max", "and", "or", "xor", "inc", "dec")


@dataclass(frozen=True, slots=True)
class AsyncForm:
    """What the words say. `op`: of a reduction; `fn` computes it. `scope`: of a release to global memory."""

    instruction: PtxInstruction
    unit: int
    op: str | None
    fn: Operation | None
    scope: Scope | None

    @property
    def issue(self) -> Issue:
        return Issue(Family.ST_ASYNC) if self.scope is None else Issue(Family.ST_ASYNC, Sem.RELEASE, self.scope)

    def label(self, side: Side) -> Access:
        """Of an access: a weak store, or one that is relaxed at the scope of the release or the cluster."""
        if self.scope is None and self.op is None:
            return Access(side, family=Family.ST_ASYNC, asynchronous=True)
        scope, rmw = self.scope or Scope.CLUSTER, self.op is not None
        spelt = next((word for word in self.instruction.words if word in ("mmio", "multimem")), None)
        return Access(side, Sem.RELAXED, scope, family=Family.ST_ASYNC, rmw=rmw, asynchronous=True, spelt=spelt)


def async_step(compiler: Compiler, instruction: PtxInstruction) -> Blocking | None:
    """The step of an instruction of this family."""
    words = instruction.words
    if words[:2] not in (("st", "async"), ("red", "async")):
        return None
    form = _form(instruction)
    count = 2 if form.scope is not None else 3
    if len(instruction.operands) != count:
        raise Refused(f"{instruction.opcode} takes {count} operands", instruction.span)
    return _release(compiler, form) if form.scope is not None else _signalling(compiler, form)


def _form(instruction: PtxInstruction) -> AsyncForm:
    words = instruction.words
    type = numeric_type(words[-1])
    unit = 0 if type is None else type.width // 8
    op = next((word for word in words if word in OPERATIONS), None)
    if not unit or (words[0] == "red") is (op is None):
        raise Refused(f"{instruction.opcode} is not known", instruction.span)
    scope = next((SCOPES[word] for word in words if word in SCOPES), None)
    if "release" in words and scope is None:
        raise Refused(f"{instruction.opcode} names no scope", instruction.span)
    fn = None if op is None or type is None else operation(op, type)
    return AsyncForm(instruction, unit, op, fn, scope if "release" in words else None)


def _release(compiler: Compiler, form: AsyncForm) -> Blocking:
    """To global memory: each element is a strong access of its own."""
    instruction = form.instruction
    where, values = address(compiler, instruction, instruction.operands[0]), instruction.operands[1]
    items = values.items if isinstance(values, Vector) else (values,)
    sources = [compiler.get(one, instruction, form.unit * 8) for one in items]
    size = form.unit * len(items)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places, lists = list(where(warp)), [list(one(warp)) for one in sources]
        for lane in lanes:
            block, at = machine.place(warp, "generic", places[lane], size, instruction, Window.GLOBAL)
            aligned(block, at, size)
            for part, given in enumerate(lists):
                issue = machine.event(warp.threads[lane], instruction.number, form.issue)
                for one in machine.replicas(block, instruction) if "multimem" in instruction.words else (block,):
                    _access(machine, warp, lane, form, issue, (one, at + part * form.unit), given[lane])
        return True

    return step


def _signalling(compiler: Compiler, form: AsyncForm) -> Blocking:
    """To the shared memory of a CTA of the cluster, whose mbarrier object is told of the bytes."""
    instruction = form.instruction
    words, operands = instruction.words, instruction.operands
    where, told = address(compiler, instruction, operands[0]), address(compiler, instruction, operands[2])
    items = operands[1].items if isinstance(operands[1], Vector) else (operands[1],)
    sources = [compiler.get(one, instruction, form.unit * 8) for one in items]
    space = "shared::cluster" if "shared::cluster" in words else "generic"
    size = form.unit * len(items)
    signal = Signal(Action.COMPLETE_TX, Scope.CLUSTER, Family.ST_ASYNC)

    def step(machine: Machine, warp: Warp, lanes: Lanes, group: LaneGroup) -> bool:
        places, objects = list(where(warp)), list(told(warp))
        lists = [list(one(warp)) for one in sources]
        for lane in lanes:
            block, at = machine.place(warp, space, places[lane], size, instruction, Window.SHARED_CLUSTER)
            aligned(block, at, size)
            barrier = at_object(machine, warp, instruction, objects[lane])
            for message in _misplaced(machine, warp, form, block, barrier[0]):
                machine.problem("undefined-instruction", message, instruction)
            issue = machine.event(warp.threads[lane], instruction.number, form.issue)
            for part, given in enumerate(lists):
                _access(machine, warp, lane, form, issue, (block, at + part * form.unit), given[lane])
            signalled(machine, issue, signal, *barrier, [issue], size)
        return True

    return step


def _misplaced(machine: Machine, warp: Warp, form: AsyncForm, block: Block, barrier: Block) -> list[str]:
    """What the pages ask of the CTAs, and is not so."""
    head = f"{form.instruction.words[0]}.async"
    found = [f"{head} to one CTA, and its mbarrier object in another"] if barrier is not block else []
    if form.op is None and sum(cluster == warp.cta.cluster for cluster, _ in machine.ctas) == 1:
        found.append(f"{head} in a cluster of one CTA")
    if form.op is not None and block is warp.cta.shared:
        found.append(f"{head} goes to the shared memory of another CTA")
    return found


def _access(
    machine: Machine, warp: Warp, lane: int, form: AsyncForm, issue: TraceEvent, place: tuple[Block, int], value: Value
) -> None:
    """The access of one element. Of a reduction, what is there first is a read of the same operation."""
    (block, at), number, unit = place, form.instruction.number, form.unit
    hidden = number in machine.schedule.opaque
    label = form.label(Side.WRITE)
    new = None if hidden else value
    if form.op is not None:
        old = block.load(at, unit)
        new = None if hidden or old is None or value is None or form.fn is None else form.fn(old, value)
        read = strong(machine, warp, lane, number, form.label(Side.READ), block, at, unit, issue)
        write = strong(machine, warp, lane, number, label, block, at, unit, issue)
        read.partner, write.partner = write, read
    elif label.sem is not Sem.WEAK:
        strong(machine, warp, lane, number, label, block, at, unit, issue)
    else:
        machine.weak(block, at, unit, warp.threads[lane], label, number, unit, issue)
        machine.forget(block, at, unit)
    machine.version += 1
    block.store(at, unit, new)
