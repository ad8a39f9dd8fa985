"""Structural hazards of asynchronous instructions: what is doubtful whatever the outcome that a test asks for.

In: LoweredTest. Out: Advice. Settled here: what the text alone shows. What depends on the order of events is left to
the flags of the model.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.base.labels import Access, Action, Allocates, Covers, Issue, ProxyFence, group_of
from memmodel.lint.advice import Advice, named, part_label
from memmodel.program.expressions import AddressOf, Const
from memmodel.program.lowered import LoweredTest, Step
from memmodel.program.ops import Emit, IssueAsync, OnObject, Op, SignalPart
from memmodel.program.regions import Box, BoxTile, Chunk, Elements, Matrix, Region
from memmodel.ptx.vocabulary import Proxy, Space, Window

_SPACE_NAMES = {Covers.OWN_SHARED: "shared", Covers.SHARED: "shared", Covers.GLOBAL: "global"}


def hazards(lowered: LoweredTest) -> Iterator[Advice]:
    """Every structural hazard, thread by thread."""
    steps = [step for program in lowered.programs for step in program.steps]
    yield from _mixed_groups(steps)
    yield from _unmet_bytes(steps)
    yield from _missed_spaces(lowered, steps)


def _mixed_groups(steps: list[Step]) -> Iterator[Advice]:
    """All tcgen05 instructions of a kernel have one .cta_group ("CTA Pair")."""
    first: int | None = None
    for step in steps:
        label = step.op.label if isinstance(step.op, IssueAsync | Emit) else None
        group = group_of(label) if isinstance(label, Issue | Allocates) else None
        if group is not None and first is not None and group != first:
            message = f".cta_group::{group} in a test that also has .cta_group::{first}"
            yield Advice(step, message, "all tcgen05 instructions of a kernel name one CTA group")
            return
        first = first or group


def _unmet_bytes(steps: list[Step]) -> Iterator[Advice]:
    """Bytes that are expected and never come, or come without being expected, as far as barriers are named."""
    if any(name is None for step in steps for name in _barriers(step.op)):
        return
    coming = {_name(signal) for step in steps for signal in _signals(step.op) if _announces(signal)}
    counted = [step.op for step in steps if isinstance(step.op, OnObject)]
    coming |= {_name(op) for op in counted if op.label.action is Action.COMPLETE_TX}
    expected = {_name(op) for op in counted if _expects(op)}
    for step in steps:
        if isinstance(step.op, OnObject) and _expects(step.op) and _name(step.op) not in coming:
            hint = "name the mbarrier in a copy, or arrive without .expect_tx"
            yield Advice(
                step, "bytes are expected that no instruction of the test delivers: the phase never ends", hint
            )
        for signal in _signals(step.op):
            if _announces(signal) and _name(signal) not in expected:
                message = "no thread expects the bytes of this copy: its phase may end before it"
                yield Advice(step, message, "add .expect_tx")
                break


def _signals(op: Op) -> list[SignalPart]:
    return [part for part in op.parts if isinstance(part, SignalPart)] if isinstance(op, IssueAsync) else []


def _barriers(op: Op) -> list[str | None]:
    """The names of the objects that a step works on; None for an address in a register."""
    return [_name(op)] if isinstance(op, OnObject) else [_name(signal) for signal in _signals(op)]


def _name(op: OnObject | SignalPart) -> str | None:
    return op.region.address.name if isinstance(op.region.address, AddressOf) else None


def _announces(signal: SignalPart) -> bool:
    return signal.label.action is Action.COMPLETE_TX


def _expects(op: OnObject) -> bool:
    if op.label.action not in (Action.EXPECT_TX, Action.ARRIVE):
        return False
    return op.bytes is not None and op.bytes != Const(0)


def _missed_spaces(lowered: LoweredTest, steps: list[Step]) -> Iterator[Advice]:
    """A proxy fence for a state space in which the test has no async-proxy access."""
    seen = {
        _space(lowered, part.region)
        for step in steps
        if isinstance(step.op, IssueAsync)
        for part in step.op.parts
        if isinstance(label := part_label(part), Access) and label.proxy is Proxy.ASYNC
    }
    for step in steps:
        fence = step.op.label if isinstance(step.op, Emit) else None
        if not isinstance(fence, ProxyFence) or fence.proxy is not Proxy.ASYNC or fence.covers not in _SPACE_NAMES:
            continue
        wanted = _SPACE_NAMES[fence.covers]
        if seen and wanted not in seen and None not in seen:
            yield Advice(
                step, f"no async-proxy access of the test is to {wanted} memory", "name the state space of the data"
            )


def _space(lowered: LoweredTest, region: Region) -> str | None:
    """Where a region is; None if only the execution tells."""
    match region:
        case Box():
            return "global"
        case Matrix():
            return "shared"
        case Elements() | Chunk() | BoxTile() if region.window not in (Window.GENERIC, Window.DATA):
            return "global" if region.window is Window.GLOBAL else "shared"
        case _:
            variable = named(region, lowered.space)
            return None if variable is None else "shared" if variable.space is Space.SHARED else "global"
