"""Structural hazards of asynchronous instructions: what is doubtful whatever the outcome that a test asks for.

In: LitmusTest and its programs. Out: (step, message, hint) for each. Settled here: what can be told from the text
alone; what depends on the order of events is a matter of the model's flags.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.isa.fragments import unfinished_registers
from memmodel.isa.memory import MemoryMap
from memmodel.isa.ops import AddressOf, Expr, Fence, Issue, Mbarrier, Op, Part, Signal
from memmodel.isa.program import Program, Step
from memmodel.litmus.syntax import LitmusTest
from memmodel.ptx import Space

Hazard = tuple[Step, str, str]

_SPACE_NAMES = {"own-shared": "shared", "shared": "shared", "global": "global"}


def hazards(test: LitmusTest, programs: tuple[Program, ...]) -> Iterator[Hazard]:
    """Every structural hazard, thread by thread."""
    memory = MemoryMap(test)
    steps = [step for program in programs for step in program.steps]
    for program in programs:
        yield from _unfenced(program)
        yield from unfinished_registers(program)
    yield from _mixed_groups(steps)
    yield from _unmet_bytes(steps)
    yield from _missed_spaces(steps, memory)


def _unfenced(program: Program) -> Iterator[Hazard]:
    """wgmma.mma_async with no wgmma.fence before it reads shared memory without order ("wgmma.fence")."""
    fenced = False
    for step in program.steps:
        fenced = fenced or (isinstance(step.op, Fence) and "WGFENCE" in step.op.event.tags)
        if isinstance(step.op, Issue) and not fenced and any("WGMMA" in p.event.tags for p in step.op.parts):
            yield step, "wgmma.mma_async with no wgmma.fence before it", "write wgmma.fence.sync.aligned in front of it"
            return


def _mixed_groups(steps: list[Step]) -> Iterator[Hazard]:
    """All tcgen05 instructions of a kernel have one .cta_group ("CTA Pair")."""
    first: int | None = None
    for step in steps:
        unit = step.op.event.unit if isinstance(step.op, Issue | Fence) else None
        if unit is not None and first is not None and unit != first:
            message = f".cta_group::{unit} in a test that also has .cta_group::{first}"
            yield step, message, "all tcgen05 instructions of a kernel name one CTA group"
            return
        first = first or unit


def _unmet_bytes(steps: list[Step]) -> Iterator[Hazard]:
    """Bytes that are expected and never come, or come without being expected, as far as barriers are named."""
    if any(not isinstance(address, AddressOf) for step in steps for address in _barriers(step.op)):
        return
    coming = {_name(a.address) for step in steps for a in _signals(step.op) if a.bytes is not None}
    counted = [step.op for step in steps if isinstance(step.op, Mbarrier)]
    coming |= {_name(op.address) for op in counted if op.action == "complete_tx"}
    expected = {_name(op.address) for op in counted if _expects(op)}
    for step in steps:
        if isinstance(step.op, Mbarrier) and _expects(step.op) and _name(step.op.address) not in coming:
            hint = "name the mbarrier in a copy, or arrive without .expect_tx"
            yield step, "bytes are expected that no instruction of the test delivers: the phase never ends", hint
        for signal in _signals(step.op):
            if signal.bytes is not None and _name(signal.address) not in expected:
                yield step, "nobody expects the bytes of this copy: its phase may end before it", "add .expect_tx"
                break


def _signals(op: Op) -> list[Signal]:
    return [part for part in op.parts if isinstance(part, Signal)] if isinstance(op, Issue) else []


def _barriers(op: Op) -> list[Expr]:
    return [op.address] if isinstance(op, Mbarrier) else [signal.address for signal in _signals(op)]


def _expects(op: Mbarrier) -> bool:
    return op.action == "expect_tx" or (op.action == "arrive" and op.bytes is not None)


def _name(address: Expr) -> str:
    return address.name if isinstance(address, AddressOf) else ""


def _missed_spaces(steps: list[Step], memory: MemoryMap) -> Iterator[Hazard]:
    """A proxy fence for a state space in which the test has no async-proxy access."""
    parts = [p for step in steps if isinstance(step.op, Issue) for p in step.op.parts if isinstance(p, Part)]
    seen = {_space(part, memory) for part in parts if "ASY" in part.event.tags}
    for step in steps:
        if not isinstance(step.op, Fence) or not {"F", "ASY"} <= step.op.event.tags or step.op.event.covers is None:
            continue
        wanted = _SPACE_NAMES[step.op.event.covers.what]
        if seen and wanted not in seen and None not in seen:
            yield step, f"no async-proxy access of the test is to {wanted} memory", "name the state space of the data"


def _space(part: Part, memory: MemoryMap) -> str | None:
    """Where a part accesses memory; None if only the execution tells."""
    if "SMEM" in part.event.tags:
        return "shared"
    if not isinstance(part.address, AddressOf):
        return None
    return "shared" if memory.root(part.address.name).space is Space.SHARED else "global"
