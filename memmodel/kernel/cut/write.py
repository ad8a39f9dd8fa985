"""A story as a litmus test in block layout: registers replaced by numbers, bytes by variables.

In: CutStory. Out: text. Settled here: a load that took part in the order goes on only with the value that it read; a
phase of an mbarrier object is the first one of an object that is there from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memmodel.base.labels import Access, Action, Barrier, Domain, Fence, GroupWait, Issue, Mbarrier, ProxyFence, Side
from memmodel.kernel.cut.story import CutStory, Deed, NotCut
from memmodel.kernel.judge.events import TraceEvent, WeakAccess
from memmodel.kernel.machine.memory import Block
from memmodel.kernel.text.syntax import VectorOperand
from memmodel.memory.bytes import Instance
from memmodel.ptx import Space

ALIGN = 16
FLOATS = {"f16": "b16", "bf16": "b16", "f32": "b32", "f64": "b64", "f16x2": "b32"}
ASKED = {"data-race": "race", "mixed-size-race": "race", "tensor-memory-hazard": "hazard"}


@dataclass(slots=True)
class _Region:
    """Bytes of a block that become one variable."""

    name: str
    first: int
    end: int


@dataclass(slots=True)
class Writer:
    """Writes one story."""

    told: CutStory
    name: str
    regions: dict[Block, list[_Region]] = field(default_factory=dict)
    objects: dict[tuple[Block, int], str] = field(default_factory=dict)
    _values: dict[tuple[Block, int], int] = field(default_factory=dict)
    _reads: dict[int, int] = field(default_factory=dict)
    _labels: int = 0

    def text(self) -> str:
        """The test. Raises NotCut."""
        self._lay_out()
        self._replay()
        threads = [self._thread(number, place) for place, number in enumerate(sorted(self.told.threads))]
        finding = self.told.finding
        rule = finding.rule
        asked = ASKED.get(
            rule, "race" if rule.endswith("-race") else "undefined" if rule.startswith("undefined") else ""
        )
        if not asked:
            raise NotCut(f"{rule} is no finding of a litmus test")
        lines = " and ".join(str(side.instruction.line) for side in finding.sides)
        source = finding.sides[0].instruction.span.source.name.rsplit("/", 1)[-1]
        head = [f"PTX {self.name}", f'"{rule} of lines {lines} of {source.replace(chr(34), "")}."']
        head += ["Expect=ptx-9.3:sometimes", ""]
        return "\n".join([*head, *self._declarations(), "", *threads, f"exists {asked}", ""])

    # ---- memory ----------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        touched: dict[Block, list[tuple[int, int]]] = {}
        for deeds in self.told.threads.values():
            for one in deeds:
                for block, first, size in self._bytes(one):
                    touched.setdefault(block, []).append((first, first + size))
        names: set[str] = set()
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
                name = _unused(_word(block.instance), names)
                self.regions.setdefault(block, []).append(_Region(name, first, -(-end // ALIGN) * ALIGN))
        for deeds in self.told.threads.values():
            for one in deeds:
                event = _object_of(one)
                if event is not None and event.block is not None:
                    self.objects.setdefault((event.block, event.first), _unused("bar", names))

    def _bytes(self, one: Deed) -> list[tuple[Block, int, int]]:
        if one.touched is not None:
            return [one.touched]
        event = one.event
        if event is None:
            return []
        if isinstance(event.label, Access) and event.block is not None:
            return [(event.block, event.first, event.size)]
        if isinstance(event.label, Issue):
            return [(weak.block, weak.first, weak.size) for weak in self._copied(event)]
        return []

    def _copied(self, issue: TraceEvent) -> list[WeakAccess]:
        return [weak for weak in self.told.made.run.weak() if weak.issue is issue]

    def _declarations(self) -> list[str]:
        found = []
        for block, regions in self.regions.items():
            space = ".shared" if block.instance.space is Space.SHARED else ".global"
            found += [f"{space} .align {ALIGN} .u32 {one.name}[{(one.end - one.first) // 4}];" for one in regions]
        for place, name in self.objects.items():
            start = "" if self._initialised(place) else f" = mbarrier({self._arrivals(place)})"
            found.append(f".shared .align 8 .b64 {name}{start};")
        return found

    def _arrivals(self, place: tuple[Block, int]) -> int:
        count = 0
        for deeds in self.told.threads.values():
            for one in deeds:
                event = _object_of(one)
                label = None if event is None else event.label
                if event is None or (event.block, event.first) != place:
                    continue
                if isinstance(label, Mbarrier) and label.action is Action.ARRIVE:
                    count += 1
                elif isinstance(label, Mbarrier) and label.action not in (Action.TEST, Action.EXPECT_TX, Action.INIT):
                    raise NotCut(f"{one.instruction.opcode} is not put into a test")
        return max(1, count)

    def _initialised(self, place: tuple[Block, int]) -> bool:
        events = [_object_of(one) for deeds in self.told.threads.values() for one in deeds]
        return any(
            one is not None
            and _place(one) == place
            and isinstance(one.label, Mbarrier)
            and one.label.action is Action.INIT
            for one in events
        )

    def _address(self, block: Block, at: int, thread: int) -> str:
        for one in self.regions[block]:
            if one.first <= at < one.end:
                mine = self.told.of(thread).place.cta_id
                away = block.instance.owner is not None and block.instance.owner != mine
                if away:
                    raise NotCut("it is about the shared memory of another CTA")
                return f"[{one.name}]" if at == one.first else f"[{one.name}+{at - one.first}]"
        raise NotCut("its bytes are not known")

    # ---- values ----------------------------------------------------------------------------------------------

    def _replay(self) -> None:
        """What strong accesses of the story read, if it begins with zeros, in the order of the run."""
        events = [one for deeds in self.told.threads.values() for one in deeds if one.event is not None]
        for one in sorted(events, key=lambda one: one.event.time if one.event is not None else 0):
            event = one.event
            if event is None or not isinstance(event.label, Access) or event.block is None:
                continue
            place = event.block, event.first
            old = self._values.get(place, 0)
            self._reads[id(event)] = old
            words = one.instruction.words
            if words[0] == "st":
                self._values[place] = 1
            elif words[0] in ("atom", "red"):
                if "cas" in words:
                    raise NotCut(f"{one.instruction.opcode} is not put into a test")
                self._values[place] = old + 1 if "add" in words or "inc" in words else 1

    # ---- threads ---------------------------------------------------------------------------------------------

    def _thread(self, number: int, place: int) -> str:
        thread = self.told.of(number)
        where = [f"cta {thread.place.cta}"]
        if thread.place.cluster is not None:
            where.append(f"cluster {thread.place.cluster}")
        deeds = self.told.threads[number]
        lines: list[str] = []
        guarded = False
        for index, one in enumerate(deeds):
            made, guards = self._deed(one, number, last=index + 1 == len(deeds))
            lines += made
            guarded |= guards
        if guarded:
            lines.append("END:")
        indented = [line if line.endswith(":") else f"    {line}" for line in lines]
        return "\n".join([f"thread P{place} @ {', '.join([*where, 'gpu 0'])} {{", *indented, "}", ""])

    def _deed(self, one: Deed, number: int, *, last: bool) -> tuple[list[str], bool]:
        event, words = one.event, one.instruction.words
        if event is None:
            assert one.touched is not None
            return [self._weak(one, number)], False
        label = event.label
        if isinstance(label, Fence | ProxyFence):
            return [self._plain(one)], False
        if isinstance(label, Access):
            return self._strong(one, number, last=last)
        if isinstance(label, Barrier):
            return [self._barrier(one)], False
        if isinstance(label, Mbarrier):
            return self._object(one, event), False
        if isinstance(label, Issue):
            return self._copy(one, event, number), False
        if isinstance(label, GroupWait):
            return [self._group_wait(one, number)], False
        raise NotCut(f"{'.'.join(words)} is not put into a test")

    def _plain(self, one: Deed) -> str:
        if one.instruction.operands:
            raise NotCut(f"{one.instruction.opcode} is not put into a test")
        return f"{one.instruction.opcode};"

    def _weak(self, one: Deed, number: int) -> str:
        assert one.touched is not None
        block, at, size = one.touched
        address = self._address(block, at, number)
        words, sides = one.instruction.words, [side.what for side in self.told.finding.sides]
        if words[0] in ("ld", "st"):
            opcode = _typed(words, block)
            vector = isinstance(one.instruction.operands[0 if words[0] == "ld" else 1], VectorOperand)
            many = next((int(word[1:]) for word in words if word in ("v2", "v4", "v8")), 1) if vector else 1
            if words[0] == "ld":
                what = "{" + ", ".join(f"%v{n}" for n in range(many)) + "}" if vector else "%v0"
                return f"{opcode} {what}, {address};"
            what = "{" + ", ".join("1" for _ in range(many)) + "}" if vector else "1"
            return f"{opcode} {address}, {what};"
        writes = any("writes" in one_side for one_side in sides) and words[0] in ("stmatrix", "st")
        space = "shared" if block.instance.space is Space.SHARED else "global"
        unit = min(size, 4)
        kind = "st" if writes else "ld"
        return f"{kind}.{space}.b{8 * unit} " + (f"{address}, 1;" if writes else f"%v0, {address};")

    def _strong(self, one: Deed, number: int, *, last: bool) -> tuple[list[str], bool]:
        event = one.event
        assert event is not None and event.block is not None
        address = self._address(event.block, event.first, number)
        words = one.instruction.words
        opcode = _typed(words, event.block)
        kind = f"b{event.size * 8}"
        if any(word in ("v2", "v4", "v8") for word in words):
            raise NotCut(f"{one.instruction.opcode} is not put into a test")
        if words[0] == "st":
            return [f"{opcode} {address}, 1;"], False
        if words[0] == "red":
            return [f"{opcode} {address}, {_amount(one)};"], False
        register = f"%s{self._next()}"
        lines = [
            f"{opcode} {register}, {address};"
            if words[0] == "ld"
            else f"{opcode} {register}, {address}, {_amount(one)};"
        ]
        if last:
            return lines, False
        lines += [f"setp.ne.{kind.replace('b', 'u')} %q, {register}, {self._reads[id(event)]};", "@%q bra END;"]
        return lines, True

    def _next(self) -> int:
        self._labels += 1
        return self._labels

    def _barrier(self, one: Deed) -> str:
        event = one.event
        assert event is not None and isinstance(event.label, Barrier) and event.barrier is not None
        if event.label.domain is not Domain.CTA:
            raise NotCut(f"{one.instruction.opcode} is not put into a test")
        kind = "arrive" if "arrive" in one.instruction.words else "sync"
        meeting = event.barrier, event.generation
        there = sum(
            any(other.event is not None and (other.event.barrier, other.event.generation) == meeting for other in deeds)
            for deeds in self.told.threads.values()
        )
        return f"bar.{kind} {event.barrier.key[0]}, {32 * there};"

    def _object(self, one: Deed, event: TraceEvent) -> list[str]:
        assert event.block is not None and isinstance(event.label, Mbarrier)
        name = self.objects[event.block, event.first]
        words = one.instruction.words
        if event.label.action is Action.TEST:
            kept = [word for word in words if word not in ("b64", "parity", "mbarrier", "try_wait", "test_wait")]
            kept = [word for word in kept if not word.startswith("shared")]
            label = f"W{self._next()}"
            opcode = ".".join(["mbarrier.try_wait.parity", *kept, "shared::cta.b64"])
            return [f"{label}:", f"{opcode} %p, [{name}], 0;", f"@!%p bra {label};"]
        if event.label.action is Action.INIT:
            return [f"{_local(words)} [{name}], {self._arrivals((event.block, event.first))};"]
        if event.label.action is Action.EXPECT_TX:
            return [f"{_local(words)} [{name}], {event.count};"]
        if event.label.action is Action.ARRIVE:
            if "expect_tx" in words:
                return [f"{_local(words)} _, [{name}], {event.count};"]
            return [f"{_local(words)} _, [{name}];"]
        raise NotCut(f"{one.instruction.opcode} is not put into a test")

    def _copy(self, one: Deed, issue: TraceEvent, number: int) -> list[str]:
        words = one.instruction.words
        sides: dict[Side, tuple[Block, int, int]] = {}
        for weak in self._copied(issue):
            assert isinstance(weak.label, Access)
            sides[weak.label.side] = weak.block, weak.first, weak.size
        if words[:2] != ("cp", "async") or "tensor" in words or set(sides) != {Side.READ, Side.WRITE}:
            raise NotCut(f"{one.instruction.opcode} is not put into a test")
        (target, at, size), (source, start, _) = sides[Side.WRITE], sides[Side.READ]
        to, origin = self._address(target, at, number), self._address(source, start, number)
        lines: list[str] = []
        place = next((key for key in self.objects if key == _place(issue)), None)
        text = f"{one.instruction.opcode} {to}, {origin}, {size}"
        if "bulk" not in words or place is None:
            group = "cp.async.bulk.commit_group;" if "bulk" in words else "cp.async.commit_group;"
            return [*lines, f"{text};", group]
        name = self.objects[place]
        expected = any(
            isinstance(other.event.label, Mbarrier) and "expect_tx" in other.instruction.words
            for deeds in self.told.threads.values()
            for other in deeds
            if other.event is not None and _place(other.event) == place
        )
        if not expected:
            lines.append(f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{name}], {size};")
        return [*lines, f"{text}, [{name}];"]

    def _group_wait(self, one: Deed, number: int) -> str:
        event = one.event
        assert event is not None
        mine = [other.event for other in self.told.threads[number] if other.event is not None]
        issues = [other for other in mine if isinstance(other.label, Issue)]
        left = sum(issue not in event.completes for issue in issues)
        words = one.instruction.words
        if "wait_all" in words:
            return f"{one.instruction.opcode};"
        return f"{one.instruction.opcode} {left};"


def _object_of(one: Deed) -> TraceEvent | None:
    """The event about an mbarrier object that a deed has: its own, or the signal of a copy."""
    event = one.event
    if event is None:
        return None
    if isinstance(event.label, Mbarrier):
        return event
    return event.partner if isinstance(event.label, Issue) and event.partner is not None else None


def _place(event: TraceEvent) -> tuple[Block, int] | None:
    told = event.partner if isinstance(event.label, Issue) else event
    return None if told is None or told.block is None else (told.block, told.first)


def _typed(words: tuple[str, ...], block: Block) -> str:
    """The opcode with a state space and without floating-point types, whose values are numbers here."""
    space = "shared" if block.instance.space is Space.SHARED else "global"
    kept = [FLOATS.get(word, word) if number == len(words) - 1 else word for number, word in enumerate(words)]
    kept = [word for word in kept if not word.startswith(("L1", "L2", "evict")) and word != "cache_hint"]
    if not any(word.split("::")[0] in ("shared", "global") for word in kept):
        kept.insert(len(kept) - 1 - sum(word in ("v2", "v4", "v8") for word in kept), space)
    return ".".join(kept)


def _local(words: tuple[str, ...]) -> str:
    """The opcode of an operation on an object of the own CTA."""
    kept = [word for word in words if not word.startswith("shared") and word != "b64"]
    return ".".join([*kept, "shared::cta.b64"])


def _amount(one: Deed) -> int:
    """What an atomic operation adds or stores; the bound of .inc is far away."""
    return 255 if "inc" in one.instruction.words else 1


def _word(instance: Instance) -> str:
    """A name for memory."""
    if instance.space is Space.SHARED:
        return "s"
    kept = "".join(char if char.isascii() and char.isalnum() else "_" for char in instance.name)
    return kept if kept[:1].isalpha() else f"g_{kept}"


def _unused(name: str, names: set[str]) -> str:
    found, number = name, 1
    while found in names:
        number += 1
        found = f"{name}{number}"
    names.add(found)
    return found
