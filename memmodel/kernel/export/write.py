"""A story as a litmus test in block layout: registers replaced by numbers, bytes by variables.

In: FindingStory. Out: text. Settled here: the thread of a load that took part in the order continues only with the
value that was read; each phase of an mbarrier object is the first phase of an object of its own; an asynchronous
instruction touches 16 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.answer import HANG
from memmodel.base.labels import (
    Access,
    Allocates,
    Allocation,
    Barrier,
    Domain,
    Fence,
    GroupWait,
    Issue,
    Mark,
    Marker,
    Mbarrier,
    ProxyFence,
)
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.kernel.export.issues import issued, releases
from memmodel.kernel.export.objects import ObjectLayout, remote
from memmodel.kernel.export.story import (
    ALIGN,
    COPIED,
    FindingStory,
    NotExported,
    StoryInstruction,
    about_lines,
    touched_by,
)
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.threads import TraceThread
from memmodel.memory.bytes import Instance
from memmodel.ptx.operands import Vector
from memmodel.ptx.vocabulary import Sem, Space

COLUMNS = 32
"""Of tensor memory, the fewest that are allocated."""
OPERATIONS = ("add", "inc", "dec", "min", "max", "and", "or", "xor", "exch", "cas")
FLOATS = {"f16": "b16", "bf16": "b16", "f32": "b32", "f64": "b64", "f16x2": "b32"}
ASKED = {HANG: HANG, "data-race": "race", "mixed-size-race": "race", "tensor-memory-hazard": "hazard"}


@dataclass(slots=True)
class _Region:
    """Bytes of a block that become one variable."""

    name: str
    first: int
    end: int


@dataclass(slots=True)
class Writer:
    """Writes one story."""

    story: FindingStory
    name: str
    regions: dict[Block, list[_Region]] = field(default_factory=dict)
    layout: ObjectLayout = field(init=False)
    _names: set[str] = field(default_factory=set)
    _beside: list[str] = field(default_factory=list)
    _tensors: list[str] = field(default_factory=list)
    _values: dict[tuple[Block, int], int] = field(default_factory=dict)
    _reads: dict[int, int] = field(default_factory=dict)
    _wrote: dict[int, int] = field(default_factory=dict)
    _forms: dict[str | None, int] = field(default_factory=dict)
    _labels: int = 0

    def text(self) -> str:
        """The test. Raises NotExported."""
        self._lay_out()
        self._replay()
        threads = [self._thread(number, place) for place, number in enumerate(sorted(self.story.threads))]
        threads += self._idle()
        finding = self.story.finding
        rule = finding.rule
        asked = self.story.asked or ASKED.get(
            rule, "race" if rule.endswith("-race") else "undefined" if rule.startswith("undefined") else ""
        )
        if not asked:
            raise NotExported(f"{rule} is no finding of a litmus test")
        source = finding.sides[0].instruction.span.source.name.rsplit("/", 1)[-1]
        head = [f"PTX {self.name}", f'"{about_lines(finding)} of {source.replace(chr(34), "")}."']
        head += [f'"{finding.message}."'] if rule == HANG else []
        head += [f"Expect={DEFAULT_MODEL}:sometimes", ""]
        declared = self._declarations()
        return "\n".join([*head, *declared, *([""] if declared else []), *threads, f"exists {asked}", ""])

    # ---- memory ----------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        touched: dict[Block, list[tuple[int, int]]] = {}
        for item in self.story.instructions():
            for block, first, size in touched_by(item):
                touched.setdefault(block, []).append((first, first + size))
        for block, spans in touched.items():
            spans.sort()
            joined = [list(spans[0])]
            for first, end in spans[1:]:
                if first <= joined[-1][1]:
                    joined[-1][1] = max(joined[-1][1], end)
                else:
                    joined.append([first, end])
            for first, end in joined:
                first = first // ALIGN * ALIGN
                name = self.fresh(_word(block.instance))
                self.regions.setdefault(block, []).append(_Region(name, first, -(-end // ALIGN) * ALIGN))
        self.layout = ObjectLayout(self.story, lambda: self.fresh("bar"))

    def fresh(self, name: str) -> str:
        """A name that is not used yet."""
        unused, number = name, 1
        while unused in self._names:
            number += 1
            unused = f"{name}{number}"
        self._names.add(unused)
        return unused

    def beside(self, space: str, size: int = COPIED) -> str:
        """A variable of 16 bytes or more, or some tensor memory, for what the story is not about."""
        name = self.fresh({"shared": "a", "tensor": "t"}.get(space, "b"))
        if space == "tensor":
            self._beside.append(f".tensor .b32 {name};")
            return name
        self._beside.append(f".{space} .align {ALIGN} .u32 {name}[{size // 4}];")
        return name

    def _declarations(self) -> list[str]:
        declarations = []
        for block, regions in self.regions.items():
            space = block.instance.space
            if space is Space.TENSOR:
                declarations += [f".tensor .b32 {region.name};" for region in regions]
                continue
            named = ".shared" if space is Space.SHARED else ".global"
            declarations += [
                f"{named} .align {ALIGN} .u32 {region.name}[{(region.end - region.first) // 4}];" for region in regions
            ]
        return [*declarations, *self._beside, *self.layout.declarations()]

    def address(self, block: Block, at: int, thread: int) -> str:
        """The address of a byte, as a thread names it."""
        for region in self.regions[block]:
            if region.first <= at < region.end:
                name = region.name + remote(self.story, block, thread)
                if block.instance.space is Space.TENSOR or at == region.first:
                    return f"[{name}]"
                return f"[{name}+{at - region.first}]"
        raise NotExported("its bytes are not known")

    # ---- values ----------------------------------------------------------------------------------------------

    def _replay(self) -> None:
        """Compute what strong accesses of the story read, if memory is zero at first, in the order of the run.

        Each write adds one to what was there, so that the story continues only as the run did.
        """
        events = [item for item in self.story.instructions() if item.event is not None]
        for item in sorted(events, key=lambda item: item.event.time if item.event is not None else 0):
            event, words = item.event, item.instruction.words
            released = event is not None and releases(event) and item.touched is not None
            if event is None or not (released or isinstance(event.label, Access)):
                continue
            block, first, *_ = item.touched or (event.block, event.first)
            if block is None:
                continue
            place = block, first
            old = self._reads[id(event)] = self._values.get(place, 0)
            writes = words[0] in ("st", "red") or (words[0] == "atom" and event.partner is not None)
            if writes:
                self._wrote[id(event)] = self._values[place] = old + 1

    def left(self, event: TraceEvent) -> int:
        """The value that an instruction leaves, if memory is zero at first."""
        return self._wrote[id(event)] or 0

    # ---- threads ---------------------------------------------------------------------------------------------

    def _thread(self, number: int, place: int) -> str:
        items = self.story.threads[number]
        lines: list[str] = []
        guarded = False
        for index, item in enumerate(items):
            item_lines, guards = self._instruction(item, number, last=index + 1 == len(items))
            lines += item_lines
            guarded |= guards
        if guarded:
            lines.append("END:")
        return self._block(self.story.of(number), place, lines)

    def _block(self, thread: TraceThread, place: int, lines: list[str]) -> str:
        where = [f"cta {thread.place.cta}"]
        if thread.place.cluster is not None:
            where.append(f"cluster {thread.place.cluster}")
        if self._in_a_warp(thread):
            where.append(f"warp {thread.warp}")
        indented = [line if line.endswith(":") else f"    {line}" for line in lines]
        return "\n".join([f"thread P{place} @ {', '.join([*where, 'gpu 0'])} {{", *indented, "}", ""])

    def _idle(self) -> list[str]:
        """An idle thread in each CTA whose memory the story is about, and that has no thread of the story."""
        blocks = {place[0] for place in self.layout.names} | set(self.regions)
        missing = {block.instance.owner for block in blocks} - {
            self.story.of(n).place.cta_id for n in self.story.threads
        }
        owners = {
            thread.place.cta_id: thread
            for thread in reversed(self.story.judge.run.threads)
            if thread.place.cta_id in missing
        }
        first = len(self.story.threads)
        return [self._block(thread, first + number, []) for number, thread in enumerate(owners.values())]

    def _instruction(self, item: StoryInstruction, number: int, *, last: bool) -> tuple[list[str], bool]:
        event, words = item.event, item.instruction.words
        if event is None:
            return [self._weak(item, number)], False
        label = event.label
        if isinstance(label, Fence | ProxyFence):
            return [self._plain(item)], False
        if isinstance(label, Mark):
            return ["exit;" if label.what is Marker.EXIT else self._plain(item)], False
        if isinstance(label, Access):
            return self._strong(item, number, last=last)
        if isinstance(label, Barrier):
            return self._barrier(item), False
        if isinstance(label, Mbarrier):
            return self.layout.lines(item, number, f"W{self.next()}"), False
        if isinstance(label, Issue):
            return issued(self, item, event, number), False
        if isinstance(label, GroupWait):
            return [self._group_wait(item, number)], False
        if isinstance(label, Allocates):
            return self._allocation(label), False
        raise NotExported(f"{'.'.join(words)} is not put into a test")

    def _plain(self, item: StoryInstruction) -> str:
        if item.instruction.operands:
            raise NotExported(f"{item.instruction.opcode} is not put into a test")
        return f"{item.instruction.opcode};"

    def _weak(self, item: StoryInstruction, number: int) -> str:
        assert item.touched is not None
        block, at, size = item.touched
        address = self.address(block, at, number)
        if item.off:
            address = f"{address[:-1]}+{item.off}]"
        words = item.instruction.words
        if words[0] in ("atom", "red"):
            operands = "0, 1" if "cas" in words else "1"
            register = "%v0, " if words[0] == "atom" else ""
            return f"{_typed(words, block, away=False)} {register}{address}, {operands};"
        away = remote(self.story, block, number) != ""
        if "bulk" in words:
            return f"st.bulk.weak.shared::cta {address}, {size}, 0;"
        if words[0] in ("ld", "st"):
            opcode = _typed(words, block, away=away)
            vector = isinstance(item.instruction.operands[0 if words[0] == "ld" else 1], Vector)
            many = next((int(word[1:]) for word in words if word in ("v2", "v4", "v8")), 1) if vector else 1
            if words[0] == "ld":
                what = "{" + ", ".join(f"%v{n}" for n in range(many)) + "}" if vector else "%v0"
                return f"{opcode} {what}, {address};"
            what = "{" + ", ".join("1" for _ in range(many)) + "}" if vector else "1"
            return f"{opcode} {address}, {what};"
        space = "global" if block.instance.space is not Space.SHARED else "shared::cluster" if away else "shared"
        unit = min(size, 4)
        kind = "st" if item.writes else "ld"
        return f"{kind}.{space}.b{8 * unit} " + (f"{address}, 1;" if item.writes else f"%v0, {address};")

    def _strong(self, item: StoryInstruction, number: int, *, last: bool) -> tuple[list[str], bool]:
        event, words = item.event, item.instruction.words
        assert event is not None and event.block is not None
        address = self.address(event.block, event.first, number)
        opcode = _typed(words, event.block, away=remote(self.story, event.block, number) != "")
        if any(word in ("v2", "v4", "v8") for word in words):
            raise NotExported(f"{item.instruction.opcode} is not put into a test")
        old, new = self._reads[id(event)], self._wrote.get(id(event))
        if words[0] == "st":
            return [f"{opcode} {address}, {new};"], False
        if words[0] == "red":
            return [f"{opcode} {address}, {_amount(words, new)};"], False
        register = f"%s{self.next()}"
        if "cas" in words:
            operands = f", {old}, {new}" if new is not None else f", {old + 100}, 0"
        else:
            operands = "" if words[0] == "ld" else f", {_amount(words, new)}"
        lines = [f"{opcode} {register}, {address}{operands};"]
        if id(event) in self.story.polls:
            label = f"W{self.next()}"
            return [
                f"{label}:",
                *lines,
                f"setp.eq.u{event.size * 8} %q, {register}, {old};",
                f"@%q bra {label};",
            ], False
        if last:
            return lines, False
        lines += [f"setp.ne.u{event.size * 8} %q, {register}, {old};", "@%q bra END;"]
        return lines, True

    def next(self) -> int:
        """Another number for a label or a register."""
        self._labels += 1
        return self._labels

    def _in_a_warp(self, thread: TraceThread) -> bool:
        """True if the story has a barrier of the thread's warp."""
        barriers = (item.event.barrier for item in self.story.instructions() if item.event is not None)
        mine = thread.place.cta_id, thread.warp
        return any(item is not None and item.domain is Domain.WARP and item.where == mine for item in barriers)

    def form(self, form: str | None) -> int:
        """A number for a kind and shape of tcgen05.mma: two of different ones are no pipelined pair."""
        return self._forms.setdefault(form, len(self._forms))

    def _barrier(self, item: StoryInstruction) -> list[str]:
        event = item.event
        assert event is not None and isinstance(event.label, Barrier) and event.barrier is not None
        if event.label.domain is Domain.CLUSTER:
            return [f"{item.instruction.opcode.replace('.aligned', '')};"]
        kind = "arrive" if "arrive" in item.instruction.words else "sync"
        meeting = event.barrier, event.generation
        comers = self.story.absent.get(meeting, 0) + sum(
            any(other.event is not None and (other.event.barrier, other.event.generation) == meeting for other in items)
            for items in self.story.threads.values()
        )
        if event.label.domain is Domain.WARP and event.label.sem is not Sem.RELAXED:
            return [f"bar.warp.sync {(1 << comers) - 1};"]
        if event.label.domain is not Domain.CTA:
            raise NotExported(f"{item.instruction.opcode} is not put into a test")
        return [f"bar.{kind} {event.barrier.key[0]}, {32 * comers};"]

    def _allocation(self, label: Allocates) -> list[str]:
        """tcgen05.alloc, dealloc and relinquish. A test allocates one piece of tensor memory: its first."""
        group = f"cta_group::{label.group or 1}.sync.aligned"
        if label.what is Allocation.RELINQUISH:
            return [f"tcgen05.relinquish_alloc_permit.{group};"]
        inside = [
            region for block, all_ in self.regions.items() if block.instance.space is Space.TENSOR for region in all_
        ]
        if len(inside) + len(self._tensors) > 1:
            raise NotExported("it allocates one piece of tensor memory and uses another")
        if not inside and not self._tensors:
            self._tensors.append(self.beside("tensor"))
        if label.what is Allocation.ALLOC:
            name = self.fresh("slot")
            self._beside.append(f".shared .align 4 .b32 {name};")
            return [f"tcgen05.alloc.{group}.shared::cta.b32 [{name}], {COLUMNS};"]
        register = f"%ta{self.next()}"
        name = inside[0].name if inside else self._tensors[0]
        return [f"mov.u32 {register}, {name};", f"tcgen05.dealloc.{group}.b32 {register}, {COLUMNS};"]

    def _group_wait(self, item: StoryInstruction, number: int) -> str:
        event = item.event
        assert event is not None and isinstance(event.label, GroupWait)
        family = event.label.family
        mine = [other.event for other in self.story.threads[number] if other.order < item.order]
        issues = [other for other in mine if other is not None and isinstance(other.label, Issue)]
        issues = [other for other in issues if isinstance(other.label, Issue) and other.label.family is family]
        left = sum(issue not in event.completes for issue in issues)
        if not item.instruction.operands:
            return f"{item.instruction.opcode};"
        return f"{item.instruction.opcode} {left};"


def _typed(words: tuple[str, ...], block: Block, *, away: bool) -> str:
    """The opcode with a state space, and with bit types in place of floating-point types."""
    space = "global" if block.instance.space is not Space.SHARED else "shared::cluster" if away else "shared"
    kept = [FLOATS.get(word, word) if number == len(words) - 1 else word for number, word in enumerate(words)]
    kept = [word for word in kept if not word.startswith(("L1", "L2", "evict")) and word != "cache_hint"]
    kept = [word for word in kept if word.split("::")[0] not in ("shared", "global")]
    kept.insert(len(kept) - 1 - sum(word in ("v2", "v4", "v8") for word in kept), space)
    if words[0] in ("atom", "red"):  # their state space stands before the operation
        kept.remove(space)
        name = next(n for n, word in enumerate(kept) if word in OPERATIONS)
        kept.insert(name, space)
    return ".".join(kept)


def _amount(words: tuple[str, ...], new: int | None) -> int:
    """The operand with which an atomic operation adds one; the bound of .inc is not reached."""
    if new is None or not {"add", "inc", "max", "exch"} & set(words):
        raise NotExported(f"{'.'.join(words)} is not put into a test")
    return 255 if "inc" in words else 1 if "add" in words else new


def _word(instance: Instance) -> str:
    """A name for memory."""
    if instance.space is Space.SHARED:
        return "s"
    if instance.space is Space.TENSOR:
        return "t"
    kept = "".join(char if char.isascii() and char.isalnum() else "_" for char in instance.name)
    return kept if kept[:1].isalpha() else f"g_{kept}"
