"""Asynchronous instructions of a story as lines of a litmus test: 16 bytes around the byte that it is about, and fresh
memory for all else.

In: the writer, an instruction of the story, its issue. Out: lines. Settled here: a tensor copy becomes a bulk copy of
the same kind, and a matrix descriptor the address of 16 bytes.
"""

from __future__ import annotations

from typing import Protocol

from memmodel.base.labels import Family, Issue
from memmodel.isa.module import spelling_of
from memmodel.isa.rows.spelling import Spelling
from memmodel.kernel.export.objects import ObjectLayout, remote
from memmodel.kernel.export.story import COPIED, FindingStory, NotExported, StoryInstruction
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.ptx.vocabulary import Sem, Space

NO_MATTER = ("dim", "mode", "multicast", "cta_group", "hint")
"""Slots of a copy that do not affect its order."""

OF_TENSORS = ".tensor"
"""What the copy of a box has in its head beside that of bytes."""
SHAPE, WIDER = 0x8100010, 1 << 18
"""An instruction descriptor for tcgen05.mma of .kind::f16, and what is added to it for another number of columns."""


class Names(Protocol):
    """What the writer of a test offers."""

    story: FindingStory
    layout: ObjectLayout

    def beside(self, space: str, size: int = COPIED) -> str: ...
    def next(self) -> int: ...
    def address(self, block: Block, at: int, thread: int) -> str: ...
    def form(self, form: str | None) -> int: ...
    def left(self, event: TraceEvent) -> int: ...


def issued(names: Names, item: StoryInstruction, issue: TraceEvent, thread: int) -> list[str]:
    """The lines of an asynchronous instruction."""
    label = issue.label
    assert isinstance(label, Issue)
    if label.family is Family.COMMIT:
        where, ranks = _object(names, issue, thread), names.layout.ranks(issue)
        many, mask = (".multicast::cluster", f", {ranks}") if ranks else ("", "")
        opcode = f"tcgen05.commit.cta_group::{label.group or 1}.mbarrier::arrive::one.shared::cluster{many}.b64"
        return [f"{opcode} {where}{mask};"]
    if label.family is Family.CP_ASYNC and "mbarrier" in item.instruction.words:
        return [f"cp.async.mbarrier.arrive.noinc.shared::cta.b64 {_object(names, issue, thread)};"]
    if label.family in (Family.BULK, Family.BULK_REDUCTION, Family.CP_ASYNC):
        return [*names.layout.before(item, thread), *_copy(names, item, issue, thread)]
    if releases(issue):
        return [_released(names, item, issue, thread)]
    if label.family is Family.ST_ASYNC:
        where, kind = _object(names, issue, thread), "shared::cluster.mbarrier::complete_tx::bytes"
        reduces = item.instruction.words[0] == "red"
        opcode = f"red.async.relaxed.cluster.{kind}.add.u32" if reduces else f"st.async.{kind}.u32"
        mine = f"[{names.beside('shared')}{_there(names, issue, thread)}]"
        if item.touched is not None:
            block, at, _ = item.touched
            mine = names.address(block, at // 4 * 4, thread)
        return [*names.layout.before(item, thread), f"{opcode} {mine}, 1, {where};"]
    if label.family is Family.WGMMA:
        return _wgmma(names, item, thread)
    if label.family in (Family.MMA, Family.TCGEN_CP, Family.TCGEN_LD, Family.TCGEN_ST):
        return _tensor(names, item, label, thread)
    raise NotExported(f"{item.instruction.opcode} is not put into a test")


def releases(issue: TraceEvent) -> bool:
    """True for st.async.release and red.async.release."""
    label = issue.label
    return isinstance(label, Issue) and label.family is Family.ST_ASYNC and label.sem is Sem.RELEASE


def _released(names: Names, item: StoryInstruction, issue: TraceEvent, thread: int) -> str:
    words, label = item.instruction.words, issue.label
    assert isinstance(label, Issue) and label.scope is not None
    reduces, opcode = words[0] == "red", f"{words[0]}.async.release.{label.scope.name.lower()}.global"
    if item.touched is None:
        return f"{opcode}{'.add' if reduces else ''}.u32 [{names.beside('global')}], 1;"
    block, at, size = item.touched
    where, bits = names.address(block, at, thread), 8 * size
    return f"{opcode}.add.u{bits} {where}, 1;" if reduces else f"{opcode}.u{bits} {where}, {names.left(issue)};"


def _object(names: Names, issue: TraceEvent, thread: int) -> str:
    signals = names.layout.signals(issue)
    if not signals:
        raise NotExported("a signal of the finding is not known")
    where = names.layout.named(names.layout.place(signals[0]), thread)
    return f"[{_own(where)}]" if names.layout.ranks(issue) else where


def _own(where: str) -> str:
    """The same place in the CTA of the thread, from which a multicast takes the offset."""
    return where.strip("[]").split("@")[0]


def _kind(item: StoryInstruction) -> str:
    return "shared" if item.touched is not None and item.touched[0].instance.space is Space.SHARED else "global"


def _there(names: Names, issue: TraceEvent, thread: int) -> str:
    """The suffix of a name for memory in the CTA of the object that is signalled."""
    block = next((signal.block for signal in names.layout.signals(issue)), None)
    return "" if block is None else remote(names.story, block, thread)


def _target(names: Names, item: StoryInstruction, thread: int) -> str:
    """The address of the bytes that the story is about."""
    assert item.touched is not None
    block, at, _ = item.touched
    return names.address(block, at // COPIED * COPIED if block.instance.space is not Space.TENSOR else at, thread)


def _copy(names: Names, item: StoryInstruction, issue: TraceEvent, thread: int) -> list[str]:
    spelling = spelling_of(item.instruction.opcode)
    if not isinstance(spelling, Spelling) or spelling.row.modules:
        raise NotExported(f"{item.instruction.opcode} is not put into a test")
    kept = {slot: word for slot, word in spelling.words.items() if slot not in NO_MATTER}
    ranks, spaces = names.layout.ranks(issue), (kept["dst"], kept["src"])
    size = names.layout.size(item)
    beside_object = _there(names, issue, thread)
    mine = "" if item.touched is None else _target(names, item, thread)
    kinds, ends = [space.split("::")[0] for space in spaces], []
    for writes, space, kind in zip((True, False), spaces, kinds, strict=True):
        # A reduction reads and writes its destination, so the state space decides.
        if mine and (writes is item.writes if kinds[0] == kinds[1] else kind == _kind(item)):
            ends.append(mine)
        else:
            beside = names.beside(kind, size)
            ends.append(f"[{beside}{beside_object if space == 'shared::cluster' else ''}]")
    if ranks:
        kept["multicast"], ends[0] = "multicast::cluster", f"[{_own(ends[0])}]"
    elif "@" in mine and "shared::cluster" not in spaces:
        end = "dst" if kept["dst"] == "shared::cta" else "src"
        kept[end] = "shared::cluster"
    head = spelling.head.replace(OF_TENSORS, "")
    if OF_TENSORS in spelling.head and "op" in kept:  # the map has the type
        kept["type"] = "u32"
    text = f"{'.'.join([head, *kept.values()])} {ends[0]}, {ends[1]}, {size}"
    if kept.get("completion") == "mbarrier::complete_tx::bytes":
        return [f"{text}, {_object(names, issue, thread)}{f', {ranks}' if ranks else ''};"]
    return [f"{text};", f"{head.replace('.reduce', '')}.commit_group;"]


def _wgmma(names: Names, item: StoryInstruction, thread: int) -> list[str]:
    number = names.next()
    mine = names.beside("shared") if item.touched is None else _target(names, item, thread)[1:-1]
    result = ", ".join(f"%d{number}_{place}" for place in range(4))
    opcode = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    return [
        f"mov.u64 %da{number}, {mine};",
        f"mov.u64 %db{number}, {names.beside('shared')};",
        "wgmma.fence.sync.aligned;",
        f"{opcode} {{{result}}}, %da{number}, %db{number}, 1, 1, 1, 0, 0;",
        "wgmma.commit_group.sync.aligned;",
    ]


def _tensor(names: Names, item: StoryInstruction, label: Issue, thread: int) -> list[str]:
    """tcgen05.mma, cp, ld and st."""
    group, number = f"cta_group::{label.group or 1}", names.next()
    inside = item.touched is not None and item.touched[0].instance.space is Space.TENSOR
    mine = f"[{names.beside('tensor')}]" if item.touched is None else _target(names, item, thread)
    if label.family is Family.TCGEN_LD:
        return [f"tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v{number}}}, {mine};"]
    if label.family is Family.TCGEN_ST:
        return [f"mov.u32 %v{number}, 1;", f"tcgen05.st.sync.aligned.32x32b.x1.b32 {mine}, {{%v{number}}};"]
    where = mine if inside or item.touched is None else f"[{names.beside('tensor')}]"
    operand = mine[1:-1] if item.touched is not None and not inside else names.beside("shared")
    if label.family is Family.TCGEN_CP:
        return [f"mov.u64 %da{number}, {operand};", f"tcgen05.cp.{group}.128x256b {where}, %da{number};"]
    return [
        f"mov.u64 %da{number}, {operand};",
        f"mov.u64 %db{number}, {names.beside('shared')};",
        f"mov.u32 %i{number}, {SHAPE + WIDER * names.form(label.form):#x};",
        f"mov.pred %c{number}, 1;",
        f"tcgen05.mma.{group}.kind::f16 {where}, %da{number}, %db{number}, %i{number}, %c{number};",
    ]
