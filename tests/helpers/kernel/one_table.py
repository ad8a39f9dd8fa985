"""One instruction through both doors: as an instruction of a litmus test, and of a compiled module.

In: its text, and what stands before it. Out: what each side says that it does, in the same words: labels, the bytes
that each access touches, updates of mbarrier objects, what is undefined, what memory and registers hold afterwards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memmodel.answer import Budget
from memmodel.base.labels import Access, Action, Fault, GroupWait, Label, Mbarrier, Side, Signal, Undefined
from memmodel.concrete.meter import Meter
from memmodel.concrete.records import AccessRecord, End, ObjectRecord, Record, RecordName, Trace, WaitRecord
from memmodel.concrete.runner import Runner
from memmodel.errors import InputError
from memmodel.isa.lower import lower_test
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.rows.slots import Need
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.table import HEADS
from memmodel.kernel.launch import parse_launch
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.code import Follower
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.machine.run import Scheduler
from memmodel.kernel.question.entries import entry_of
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.litmus.parse import parse_litmus
from memmodel.litmus.syntax import Instruction, Layout
from memmodel.memory.bytes import Cell, Footprint, Instance
from memmodel.memory.cells import Starts
from memmodel.program.addresses import AddressSpace
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import Register
from memmodel.ptx.vocabulary import Space
from memmodel.source import Source

WORDS = 64
"""Elements of each array, of four bytes; a box has 16, a row 8."""

VARIABLES = f"""
.global .align 128 .b32 src[{WORDS}] = {{{", ".join(map(str, range(1, WORDS + 1)))}}};
.global .align 128 .b32 dst[{WORDS}];
.global .align 128 .b8 made[128];
.const .align 128 .b32 fixed[{WORDS}] = {{{", ".join(str(0x80000000 + 7 * n) for n in range(WORDS))}}};
.shared .align 128 .b32 tile[{WORDS}];
.shared .align 128 .b32 other[{WORDS}];
.shared .align 128 .b8 held[128];
"""

LITMUS = f"""PTX doors
{VARIABLES}
.shared .align 8 .b64 bar = mbarrier(1);
.const .align 64 .b8 map[128] = tensormap(src, {{16}}, {{{WORDS}}});
.const .align 64 .b8 flat[128] = tensormap(src, {{4, 2}}, {{8, 8}});
thread P0 @ cta 0, cluster 0, gpu 0 {{
  BEFORE
  LINE
}}
thread P1 @ cta 1, cluster 0, gpu 0 {{
  mov.u32 %r0, 0;
}}
exists (true)
"""

_SHARED = "".join(line for line in VARIABLES.splitlines(keepends=True) if line.startswith(".shared"))
MODULE = f""".version 9.3
.target sm_100a
.address_size 64
{VARIABLES.replace(_SHARED, "")}
.global .align 64 .b8 map[128];
.global .align 64 .b8 flat[128];
.visible .entry k()
{{
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .b128 %q<8>;
{_SHARED}
.shared .align 8 .b64 bar;
mbarrier.init.shared::cta.b64 [bar], 1;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r31, %cluster_ctarank;
setp.ne.u32 %p7, %r31, 0;
@%p7 bra END;
BEFORE
LINE
END: ret;
}}
"""

WIDTHS = {"p": 1, "h": 16, "r": 32, "rd": 64, "q": 128}

Where = tuple[str, int]
"""A variable, and the rank of the CTA whose instance it is; -1 for one that all share."""


@dataclass(slots=True)
class Told:
    """What an instruction does. `touched`: how often each byte (variable, offset) is, by label and size of elements.

    `completed`: for each signal or wait its label, its place, and the labels of what it completes. `bytes`: by which
    the tx-count of an object is lowered. `left`, `registers`: what these hold afterwards, where that is known.
    """

    events: list[Label] = field(default_factory=list)
    touched: Counter[tuple[Label, int | None, Where, int]] = field(default_factory=Counter)
    completed: list[tuple[Label, Where | None, int, frozenset[Label]]] = field(default_factory=list)
    bytes: Counter[tuple[Where, int]] = field(default_factory=Counter)
    undefined: set[str] = field(default_factory=set)
    left: dict[tuple[Where, int], int] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)

    def bytes_touched(self, threads: int) -> Counter[tuple[Label, int | None, Where, int]]:
        """`touched`; of several threads, who access some bytes each, without the sizes."""
        if threads == 1:
            return self.touched
        counts: Counter[tuple[Label, int | None, Where, int]] = Counter()
        for (label, _, where, byte), count in self.touched.items():
            counts[label, None, where, byte] += count
        return counts


# ---- litmus --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Initial:
    """An oracle of what the initial memory gives."""

    space: AddressSpace

    def read(self, name: RecordName, footprint: Footprint) -> Sequence[int]:
        value = at = 0
        for stretch in footprint.stretches:
            if stretch in footprint.extents:
                value |= self.space.initial(stretch.instance, stretch.first, stretch.size) << 8 * at  # type: ignore[union-attr]
            at += stretch.size
        return (value,)

    def test(self, name: RecordName, object: Cell) -> Sequence[int]:
        return (0,)

    def phases(self, name: RecordName, object: Cell) -> Sequence[int]:
        return (0,)

    def pending(self, name: RecordName, object: Cell) -> Sequence[int]:
        return (1,)

    def reduction(self, name: RecordName, op: str) -> Sequence[int]:
        return (0,)

    def success(self, name: RecordName) -> Sequence[int]:
        return (0,)


def lowered(line: str, before: str = "") -> LoweredTest:
    """The litmus test. Raises InputError."""
    return lower_test(parse_litmus(Source("t.litmus", LITMUS.replace("BEFORE", before).replace("LINE", line))))


def in_litmus(line: str, before: str = "") -> Told | None:
    """What the instruction does in a litmus test; None if litmus tests do not follow it. Raises InputError."""
    steps = lowered(line, before)
    runner = Runner(steps, 0, Starts(), 1)
    (trace,) = runner.run(Initial(steps.space), Meter(Budget()), waits=False)
    if trace.ending.end is End.BEYOND:
        return None
    told, last = Told(), [item for item in steps.test.threads[0].body if isinstance(item, Instruction)][-1]
    for number, record in enumerate(trace.records):
        if steps.programs[0].steps[record.name.step].instruction is last:
            _tell(told, trace, number, record)
    widths = {name: WIDTHS[name.rstrip("0123456789")] for name in trace.registers if name[0] != "$"}
    told.registers = {name: trace.registers[name] & (1 << width) - 1 for name, width in widths.items()}
    return told


def _tell(told: Told, trace: Trace, number: int, record: Record) -> None:
    match record:
        case AccessRecord(label=label, footprint=footprint):
            for extent in footprint.extents:
                for byte in range(extent.first, extent.end):
                    told.touched[label, footprint.scalar, _instance(extent.instance), byte] += 1
            if isinstance(label, Access) and label.side is Side.WRITE:
                _leave(told, footprint, trace.values[number])
        case ObjectRecord(label=label, object=cell):
            lowers = isinstance(label, Signal) or record.action is Action.COMPLETE_TX
            told.bytes[_instance(cell.instance), cell.first] += record.bytes if lowers else -record.bytes
            told.completed.append((label, _instance(cell.instance), cell.first, _labels(trace, record.completes)))
        case WaitRecord(label=label):
            told.completed.append((label, None, 0, _labels(trace, record.completes)))
        case Record(label=Undefined(rule)):
            told.undefined.add(rule)
        case Record(label=Fault()):
            told.undefined.add("address")
        case Record(label=label):
            told.events.append(label)


def _labels(trace: Trace, numbers: frozenset[int]) -> frozenset[Label]:
    return frozenset(trace.records[number].label for number in numbers)


def _instance(instance: Instance) -> Where:
    return instance.name, -1 if instance.owner is None else int(str(instance.owner[-1]))


def _leave(told: Told, footprint: Footprint, value: int | None) -> None:
    assert value is not None
    at = 0
    for stretch in footprint.stretches:
        if stretch in footprint.extents:
            for byte in range(stretch.size):
                place = _instance(stretch.instance), stretch.first + byte  # type: ignore[union-attr]
                told.left[place] = value >> 8 * (at + byte) & 0xFF
        at += stretch.size


# ---- modules -------------------------------------------------------------------------------------------------------


def in_module(line: str, before: str = "", threads: int = 1) -> Told:
    """What the instruction does in a module, executed by so many threads of a CTA: the events are those of the first of
    them. Raises InputError where the run cannot go on.
    """
    module = parse_module(Source("k.ptx", MODULE.replace("BEFORE", before).replace("LINE", line)))
    entry = entry_of(module, "k")
    plain = {"grid": [2, 1, 1], "block": [threads, 1, 1], "cluster": [2, 1, 1], "params": []}
    address = DeviceMemory(module, entry, parse_launch(plain)).symbols["src"][1]
    one = {"param": "map", "dims": [WORDS], "strides_bytes": [], "box": [16]}
    two = {"param": "flat", "dims": [8, 8], "strides_bytes": [32], "box": [4, 2]}
    maps = [{"address": hex(address), "element_bytes": 4, **described} for described in (one, two)]
    launch = parse_launch({**plain, "tensormaps": maps})
    scheduler = Scheduler(module, entry, launch, Schedule(), Follower())
    run = scheduler.go()
    body = entry.body or ()
    number = body[-2].number
    places = _Places(scheduler)
    told = Told(undefined={_rule(one.rule, one.message) for one in run.problems if one.instruction is body[number]})
    for access in (access for access in run.weak() if access.at == number and access.thread < threads):
        for byte in range(access.first, access.first + access.size):
            told.touched[access.label, access.scalar, *places.of(access.block, byte)] += 1
    for event in run.threads[0].events:
        for each in (event, *event.signals):
            if each.at == number:
                _note(told, scheduler, places, each)
    for place, value in places.known():
        told.left[place] = value
    for name, slot in _slots(body).items():
        value = scheduler.warps[0].registers[slot][0]
        if value is not None:
            told.registers[name] = value
    return told


def _slots(body: Sequence[PtxInstruction]) -> dict[str, int]:
    """The registers of a function by their names."""
    slots: dict[str, int] = {}
    operands: list[object] = [operand for instruction in body for operand in instruction.operands]
    while operands:
        operand = operands.pop()
        if isinstance(operand, Register):
            slots[operand.name.removeprefix("%")] = operand.slot
        operands += getattr(operand, "items", ())
    return slots


def _rule(rule: str, message: str) -> str:
    return "address" if rule == "undefined-address" else message


def _note(told: Told, scheduler: Scheduler, places: _Places, event: TraceEvent) -> None:
    """An event of the instruction: a strong access, a signal or a wait with what it completes, or another one."""
    if isinstance(event.label, Access) and event.block is not None:
        for byte in range(event.first, event.first + event.size):
            told.touched[event.label, event.size, *places.of(event.block, byte)] += 1
        return
    if isinstance(event.label, GroupWait | Signal):
        parts: set[Label] = set()
        for issue in event.completes:
            weak = [one for one in scheduler.run.single if one.issue is issue]
            strong = [one for one in issue.signals if isinstance(one.label, Access)]
            made = [(one.label, one.part) for one in weak] + [(one.label, min(one.parts or (0,))) for one in strong]
            parts |= {label for label, part in made if event.parts is None or part in event.parts}
        if event.reads_only:
            parts = {label for label in parts if isinstance(label, Access) and label.role is not None}
        where = (None, 0) if event.block is None else places.of(event.block, event.first)
        told.completed.append((event.label, *where, frozenset(parts)))
        if event.block is not None:
            told.bytes[where] = -scheduler.machine.object(event.block, event.first).tx  # type: ignore[index]
        return
    if isinstance(event.label, Mbarrier):
        assert event.block is not None
        told.completed.append((event.label, *places.of(event.block, event.first), frozenset()))
        told.bytes[places.of(event.block, event.first)] = -scheduler.machine.object(event.block, event.first).tx  # type: ignore[index]
        return
    told.events.append(event.label)


class _Places:
    """Names of the bytes of a launch."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._ranks = {cta.shared: cta.rank for cta in scheduler.ctas}
        symbols = scheduler.machine.memory.symbols
        self._shared = sorted((at, name) for name, (space, at) in symbols.items() if space is Space.SHARED)
        self._blocks = [*self._ranks, *scheduler.machine.memory.blocks]

    def of(self, block: Block, byte: int) -> tuple[Where, int]:
        """The variable, and the offset in it."""
        if block not in self._ranks:
            return (block.instance.name, -1), byte
        at, name = max((at, name) for at, name in self._shared if at <= byte)
        return (name, self._ranks[block]), byte - at

    def known(self) -> Iterator[tuple[tuple[Where, int], int]]:
        """The bytes that are known, and their values."""
        for block in self._blocks:
            for byte in range(1024 if block in self._ranks else 0, block.size):
                value = block.load(byte, 1)
                if value is not None:
                    yield self.of(block, byte), value


# ---- both ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an instruction is compared. `threads`: so many execute it together in a module, after `in_module`; then the
    sizes of their accesses are their own. `results`: in registers are the same numbers, too.
    """

    threads: int = 1
    in_module: str = ""
    results: bool = True


def compare(line: str, before: str = "", how: Comparison = Comparison()) -> bool:
    """Check that both doors say the same of an instruction. False if there is nothing to compare: litmus tests do not
    follow it, or have nothing to say of it beyond that its address is undefined.
    """
    litmus = in_litmus(line, before)
    if litmus is None:
        return False
    module = in_module(line, before + how.in_module, how.threads)
    assert litmus.undefined == module.undefined
    if "address" in litmus.undefined:  # a litmus test issues nothing then
        return False
    assert litmus.events == module.events
    assert litmus.bytes_touched(how.threads) == module.bytes_touched(how.threads)
    assert litmus.completed == module.completed
    assert litmus.bytes == module.bytes
    for place, value in litmus.left.items():
        assert module.left.get(place, value) == value, place
    for name in written(line) if how.results else ():
        value = litmus.registers.get(name)
        assert value is None or module.registers.get(name, value) == value, name
    return True


def written(line: str) -> list[str]:
    """The registers in the first operand, if that is no address."""
    first = re.match(r"\S+ (\{[^}]*\}|[^,\[]*)", line)
    return re.findall(r"%(\w+)", first[1]) if first else []


def spellings(line: str) -> Iterator[str]:
    """The instruction with each other word that one of its qualifiers may be, or without it."""
    mnemonic = line.split()[0].removesuffix(";")
    spelling = read_mnemonic(mnemonic, Layout.BLOCKS, HEADS)
    assert isinstance(spelling, Spelling), mnemonic
    yield line
    for slot in spelling.row.slots:
        for word in (*slot.words, *([None] if slot.need is Need.OPTIONAL else [])):
            words = {**spelling.words, slot.name: word}
            chosen = [words[one.name] for one in spelling.row.slots if words.get(one.name) is not None]
            other = ".".join([spelling.head, *chosen])  # type: ignore[list-item]
            if other != mnemonic and isinstance(read_mnemonic(other, Layout.BLOCKS, HEADS), Spelling):
                yield other + line.removeprefix(mnemonic)


def readable(line: str, before: str = "") -> bool:
    """True if a litmus test may have the instruction."""
    try:
        lowered(line, before)
    except InputError:
        return False
    return True
