"""What a trace records: blocks of bytes against a list of bytes, accesses of lanes one by one, accesses of threads."""

from __future__ import annotations

from random import Random

import pytest
from helpers.kernel.random_accesses import random_kernel
from helpers.kernel.samples import entry

from memmodel.base.labels import Access, Action, Family, Fence, Mark, Marker, Side, Signal
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.unobserved_atomics import demote_unobserved
from memmodel.kernel.trace import blocks
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess, done_by
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.left_out import leave_out
from memmodel.kernel.trace.threads import TraceThread
from memmodel.memory.bytes import Instance
from memmodel.program.fields import NOTHING, Bits
from memmodel.ptx.vocabulary import Place, Scope, Sem, Space

SIZE = 24
READ, WRITE = Access(Side.READ), Access(Side.WRITE)
ATOMIC = Access(Side.WRITE, Sem.RELAXED, Scope.GPU, rmw=True)


def block(name: str = "x", size: int = SIZE) -> Block:
    return Block(Instance(name, None, Space.GLOBAL, size), 0x1000, size)


class Bytes(list[int | None]):
    """The same as a block, one byte after the other; None is a byte that is not known."""

    def part(self, at: int, size: int) -> list[int | None]:
        return self[at : at + size]

    def number(self, at: int, size: int) -> int | None:
        part = [byte for byte in self.part(at, size) if byte is not None]
        return int.from_bytes(bytes(part), "little") if len(part) == size else None


def _step(random: Random, kept: tuple[Block, Bytes], other: tuple[Block, Bytes]) -> None:
    """One change, of a block and of the list beside it."""
    size = random.choice((1, 2, 4, 8))
    at, begin = random.randrange(SIZE - size + 1), random.randrange(SIZE - size + 1)
    content, known = random.randbytes(size), bytes(random.randrange(2) for _ in range(size))
    number = int.from_bytes(content, "little")
    match random.randrange(6):
        case 0:
            kept[0].store(at, size, number + (1 << 8 * size) * random.randrange(2))
            kept[1][at : at + size] = content
        case 1:
            kept[0].store(at, size, None) if random.randrange(2) else kept[0].forget(at, size)
            kept[1][at : at + size] = [None] * size
        case 2:
            mask = random.choice((0, (1 << 8 * size) - 1, random.getrandbits(8 * size), 0xFF << 8 * (size - 1)))
            kept[0].store_bits(at, size, Bits(mask, number & mask))
            whole = (mask >> 8 * byte & 0xFF == 0xFF for byte in range(size))
            kept[1][at : at + size] = [byte if sure else None for byte, sure in zip(content, whole, strict=True)]
        case 3:
            kept[0].write(at, content)
            kept[1][at : at + size] = content
        case 4:
            kept[0].put(at, content, known)
            kept[1][at : at + size] = [byte if sure else None for byte, sure in zip(content, known, strict=True)]
        case _:
            kept[0].copy(at, other[0], begin, size)
            kept[1][at : at + size] = other[1].part(begin, size)


@pytest.mark.parametrize("at_once", [blocks.AT_ONCE, 2])
@pytest.mark.parametrize("seed", range(20))
def test_a_block_remembers_what_a_list_of_bytes_does(seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch):
    """Memory is held as a whole, or as far as it is written."""
    monkeypatch.setattr(blocks, "AT_ONCE", at_once)
    random = Random(seed)
    first, second = (block("x"), Bytes([None] * SIZE)), (block("y"), Bytes([None] * SIZE))
    for _ in range(60):
        _step(random, *random.sample((first, second), 2))
        for kept, listed in (first, second):
            at, size = random.randrange(SIZE - 3), random.choice((1, 2, 4))
            assert kept.load(at, size) == listed.number(at, size)
            bits = kept.bits(at, size)
            sure = [byte if bits.known >> 8 * number & 0xFF else None for number, byte in enumerate(_bytes(bits, size))]
            assert sure == listed.part(at, size)
    assert first[0].known is not None and second[0].known is not None


def test_large_memory_is_held_as_far_as_it_is_written():
    large, other = block(size=blocks.REMEMBERED), block("y", size=blocks.REMEMBERED)
    large.store(0, 4, 7)
    other.copy(8, large, 2 * blocks.AT_ONCE, 4)  # what was never written
    assert large.load(0, 4) == 7 and large.load(2 * blocks.AT_ONCE, 4) is None and other.load(8, 4) is None
    large.forget(2 * blocks.AT_ONCE, 4)
    assert large.known is not None and len(large.known) == len(large.data) == blocks.AT_ONCE
    large.store(blocks.REMEMBERED - 4, 4, 9)
    assert large.load(blocks.REMEMBERED - 4, 4) == 9 and large.load(0, 4) == 7


def _bytes(bits: Bits, size: int) -> bytes:
    return bits.value.to_bytes(size, "little")


def test_what_is_stored_in_very_large_memory_is_not_remembered(monkeypatch):
    monkeypatch.setattr(blocks, "REMEMBERED", SIZE)
    large, small = block(size=SIZE + 1), block()
    for kept in (large, small):
        kept.store(0, 4, 7)
    large.copy(0, small, 0, 4)
    assert large.load(0, 4) is None and large.bits(0, 4) is NOTHING and small.load(0, 4) == 7


def thread(number: int, *events: TraceEvent) -> TraceThread:
    return TraceThread(number, 0, number // 32, number % 32, Place(cta=0, gpu=0), list(events))


def test_accesses_of_lanes_are_those_of_each_lane():
    lanes = LaneAccesses(block(), [0, 4, 8], 4, [5, 6, 7], [1, 0, 2], WRITE, 9, 4, [10, None, 12], 2)
    each = list(lanes.each())
    assert [(one.first, one.thread, one.epoch, one.value) for one in each] == [
        (0, 5, 1, 10),
        (4, 6, 0, None),
        (8, 7, 2, 12),
    ]
    assert all((one.block, one.size, one.label, one.at, one.part) == (lanes.block, 4, WRITE, 9, 2) for one in each)
    unknown = lanes._replace(values=None)
    assert [one.value for one in unknown.each()] == [None] * 3
    for row in (lanes, unknown):
        assert [row.access(number) for number in range(3)] == list(row.each())


def test_a_trace_lists_the_weak_accesses_of_some_blocks():
    near, far = block("near"), block("far")
    single = WeakAccess(near, 0, 4, 0, 0, READ, 1, 4)
    trace = LaunchTrace(single=[single], lanes=[LaneAccesses(far, [0, 4], 4, [0, 1], [0, 0], WRITE, 2, 4)])
    assert trace.accesses == len(list(trace.weak())) == 3
    assert list(trace.weak([near])) == [single] and [one.block for one in trace.weak([far])] == [far, far]


def test_the_access_of_another_thread_that_does_the_same():
    where = block()
    mine, other = (TraceEvent(number, 0, 3, ATOMIC, where) for number in (0, 1))
    part = TraceEvent(0, None, 3, READ, where, issue=mine)
    weak = WeakAccess(where, 0, 4, 0, 0, READ, 1, 4)
    second = thread(1, other)
    assert done_by(mine, second) is other and done_by(other, second) is other and done_by(part, second) is part
    assert done_by(weak, second) == weak._replace(thread=1)


def test_strong_accesses_of_a_thread_are_its_own_and_those_of_its_issues():
    where = block()
    asynchronous = TraceEvent(0, None, 1, Access(Side.WRITE, Sem.RELEASE, Scope.GPU, asynchronous=True), where)
    signal = TraceEvent(0, None, 1, Signal(Action.COMPLETE_TX, Scope.CTA, Family.BULK), where)
    issue = TraceEvent(0, 0, 1, Fence(Sem.ACQ_REL, Scope.CTA), signals=(signal, asynchronous))
    atomic = TraceEvent(0, 1, 2, ATOMIC, where)
    own = thread(0, issue, atomic)
    assert list(own.strong()) == [asynchronous, atomic] and not own.ended
    own.events.append(TraceEvent(0, 2, 3, Mark(Marker.EXIT)))
    assert own.ended and not thread(1).ended
    own.settle()
    assert list(own.strong()) == [asynchronous, atomic]
    leave_out(LaunchTrace([own]), {0: [False, True, True]})
    assert list(own.strong()) == [atomic]


@pytest.mark.parametrize("seed", [4, 25, 30])
def test_no_event_gets_memory_after_the_run(seed: int):
    kernel = random_kernel(seed, asynchronous=True)
    run = demote_unobserved(run_launch(kernel.module, entry(kernel.module), kernel.launch), frozenset())
    settled = [own.accessing for own in run.threads]
    assert any(event.signals for events in settled for event in events or ())
    for own, events in zip(run.threads, settled, strict=True):
        own.settle()
        assert own.accessing == events


@pytest.mark.parametrize(("between", "orders"), [(4, False), (2, True), (8, False)])
def test_words_side_by_side_are_apart_and_those_that_overlap_are_not(between: int, orders: bool):
    """Two counters that nothing reads: their operations order nothing, unless a byte is in both."""
    where = block()
    counts = [TraceEvent(0, n, n + 1, ATOMIC, where, first=between * n, size=4) for n in range(2)]
    run = demote_unobserved(LaunchTrace([thread(0, *counts)]), frozenset())
    assert bool(run.threads[0].events) is orders and len(run.single) == (0 if orders else 2)
