"""What instructions of modules say of themselves: each worked out by hand from its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest
from helpers.modules import instruction_of

from memmodel.isa.lowered import lowered

# %r0 is register 0, %d0 is 8, %h0 is 12, %p0 is 14.
REGISTERS: dict[str, tuple[list[int], list[int]]] = {
    "add.u32 %r0, %r1, %r2;": ([0], [1, 2]),
    "add.u32 %r0, %r0, 1;": ([0], [0]),
    "setp.eq.and.u32 %p0|%p1, %r0, %r1, !%p2;": ([14, 15], [0, 1, 16]),
    "mov.b64 {%r0, %r1}, %d0;": ([0, 1], [8]),
    "fma.rn.f32 %r0, %r1, %r2, %r3;": ([0], [1, 2, 3]),
    "@%p3 mov.u32 %r0, %r1;": ([0], [1]),
    "ld.global.v2.u32 {%r0, %r1}, [%d0+8];": ([0, 1], [8]),
    "st.global.v2.u32 [%d0], {%r0, %r1};": ([], [0, 1, 8]),
    "atom.global.cas.b32 %r0, [%d0], %r1, %r2;": ([0], [1, 2, 8]),
    "red.global.add.u32 [%d0], %r1;": ([], [1, 8]),
    "bar.sync %r0, %r1;": ([], [0, 1]),
    "barrier.red.popc.u32 %r0, %r1, %r2, %p0;": ([0], [1, 2, 14]),
    "mbarrier.init.shared.b64 [s], %r0;": ([], [0]),
    "mbarrier.arrive.shared.b64 %d0, [s], %r0;": ([8], [0]),
    "mbarrier.arrive.shared.b64 _, [s];": ([], []),
    "mbarrier.try_wait.parity.shared.b64 %p0, [s], %r0, %r1;": ([14], [0, 1]),
    "cp.async.wait_group 0;": ([], []),
    "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [s], [%d0, {%r0}], [%r1];": (
        [],
        [0, 1, 8],
    ),
    "shfl.sync.idx.b32 %r0|%p0, %r1, %r2, 31, -1;": ([0, 14], [1, 2]),
    "elect.sync _|%p0, -1;": ([14], []),
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, %r1;": ([], [0, 1]),
    "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [%r2];": ([0, 1], [2]),
    "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {%r0, %r1};": ([], [0, 1, 2]),
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %d0, %d1, %p0, 1, 1, 0, 0;": (
        [0, 1, 2, 3],
        [0, 1, 2, 3, 8, 9, 14],
    ),
    "nanosleep.u32 %r0;": ([], [0]),
    "griddepcontrol.wait;": ([], []),
}
"""Instructions with the registers that they write and read, without the guard."""


@pytest.mark.parametrize("line", REGISTERS)
def test_registers_that_are_written_and_read(line: str) -> None:
    instruction = lowered(instruction_of(line))
    writes, sources = REGISTERS[line]
    assert instruction.refusal is None
    assert (list(instruction.writes), sorted(instruction.sources)) == (writes, sources)
    guard = {17} if line.startswith("@") else set()
    assert instruction.reads == {*sources, *guard}


def _assigned(step: object) -> Iterator[str]:
    """The registers that a step assigns, temporaries left out."""
    for field in fields(step) if is_dataclass(step) else ():
        value = getattr(step, field.name)
        if field.name in ("register", "registers", "pending", "accumulator"):
            names = value if isinstance(value, tuple) else (value,)
            yield from (name for name in names if isinstance(name, str) and name.isdigit())


@pytest.mark.parametrize("line", REGISTERS)
def test_a_row_writes_what_its_steps_assign(line: str) -> None:
    instruction = lowered(instruction_of(line))
    assert {int(name) for step in instruction.ops for name in _assigned(step)} == set(instruction.writes)


def test_an_instruction_that_is_not_known_writes_its_first_operand() -> None:
    instruction = lowered(instruction_of("frobnicate.u32 %r0, %r1;"))
    assert (instruction.writes, instruction.reads, instruction.refusal is None) == ((0,), {1}, False)
    assert not instruction.without_effect and not instruction.computes


SAID = (
    *("computes", "without_effect", "loads", "stores", "atomic", "private", "tests_phase", "tests_parity", "fences"),
    *("exchanges", "may_fail", "changes_control", "aligned", "synchronizes"),
)

EFFECTS = {
    "add.u32 %r0, %r1, %r2;": "computes without_effect",
    "cvta.to.shared.u64 %d0, %d1;": "computes without_effect",
    "nanosleep.u32 %r0;": "without_effect",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, "
    "{%r0, %r1, %r2, %r3};": "aligned",
    "ld.global.u32 %r0, [%d0];": "loads",
    "ld.acquire.gpu.global.u32 %r0, [%d0];": "loads",
    "ld.local.u32 %r0, [%d0];": "loads private",
    "ld.param.u32 %r0, [%d0];": "loads private",
    "st.global.u32 [%d0], %r0;": "stores",
    "st.local.u32 [%d0], %r0;": "stores private",
    "atom.global.add.u32 %r0, [%d0], %r1;": "atomic",
    "atom.global.cas.b32 %r0, [%d0], %r1, %r2;": "atomic may_fail",
    "red.global.add.u32 [%d0], %r1;": "atomic",
    "mbarrier.test_wait.shared.b64 %p0, [s], %d0;": "tests_phase synchronizes",
    "mbarrier.test_wait.parity.shared.b64 %p0, [s], 0;": "tests_phase tests_parity synchronizes",
    "mbarrier.arrive.shared.b64 _, [s];": "synchronizes",
    "fence.sc.gpu;": "fences synchronizes",
    "fence.proxy.async;": "fences synchronizes",
    "membar.gl;": "fences synchronizes",
    "bar.sync 0;": "synchronizes aligned",
    "barrier.sync 0;": "synchronizes",
    "cp.async.wait_all;": "synchronizes",
    "shfl.sync.idx.b32 %r0, %r1, 0, 31, -1;": "exchanges synchronizes",
    "vote.sync.any.pred %p0, %p1, -1;": "exchanges synchronizes",
    "activemask.b32 %r0;": "synchronizes",
    "exit;": "changes_control",
    "L: bra L;": "changes_control without_effect",
}


@pytest.mark.parametrize("line", EFFECTS)
def test_what_an_instruction_does(line: str) -> None:
    assert {name for name in SAID if getattr(lowered(instruction_of(line)), name)} == {*EFFECTS[line].split()}


def test_where_an_instruction_leads() -> None:
    ends, stops = lowered(instruction_of("exit;")), lowered(instruction_of("trap;"))
    assert ends.ends and not ends.goes_on and not ends.traps
    assert stops.traps and not stops.goes_on and not stops.ends
    assert lowered(instruction_of("@%p0 exit;")).goes_on
    jump = lowered(instruction_of("L: bra L;"))
    assert jump.jumps and jump.target == jump.instruction.number and not jump.goes_on and jump.without_effect
    assert lowered(instruction_of("L: @%p0 bra L;")).goes_on
    assert lowered(instruction_of("add.u32 %r0, %r1, %r2;")).goes_on


WRITES: dict[str, tuple[str | None, bool, bool]] = {
    "ld.global.u32 %r0, [%d0];": (None, True, True),
    "st.global.u32 [%d0], %r0;": (None, True, False),
    "atom.global.add.u32 %r0, [%d0], %r1;": ("add u32", False, False),
    "atom.global.add.u32 %r0, [%d0], 0;": ("add u32", False, True),
    "red.global.or.b32 [%d0], 0;": ("or b32", False, True),
    "red.global.and.b32 [%d0], 0;": ("and b32", False, False),
    "red.global.max.s32 [%d0], 0;": ("max s32", False, False),
    "atom.global.exch.b32 %r0, [%d0], %r1;": ("exch b32", True, False),
    "atom.global.cas.b32 %r0, [%d0], 5, 5;": ("cas b32", False, True),
    "atom.global.cas.b32 %r0, [%d0], %r1, %r1;": ("cas b32", False, True),
    "atom.global.cas.b32 %r0, [%d0], 5, 6;": ("cas b32", False, False),
    "atom.global.add.noftz.f16x2 %r0, [%d0], %r1;": ("add f16x2", False, False),
}
"""Accesses: how they combine, whether they write regardless of what memory held, whether they leave it as it is."""


@pytest.mark.parametrize("line", WRITES)
def test_what_an_access_leaves_in_memory(line: str) -> None:
    does = lowered(instruction_of(line))
    combination = None if does.combination is None else " ".join(map(str, does.combination))
    assert (combination, does.replaces, does.leaves_memory) == WRITES[line]


def test_what_a_load_leaves_in_a_wider_register() -> None:
    assert lowered(instruction_of("ld.global.s8 %r0, [%d0];")).loaded(0x80) == 0xFFFFFF80
    assert lowered(instruction_of("ld.global.s8 %r0, [%d0];")).loaded(0x7F) == 0x7F
    assert lowered(instruction_of("ld.global.u8 %r0, [%d0];")).loaded(0x80) == 0x80
    assert lowered(instruction_of("ld.global.s8 _, [%d0];")).loaded(0x80) == 0x80
    assert lowered(instruction_of("st.global.u8 [%d0], %r0;")).loaded(0x80) == 0x80
    assert lowered(instruction_of("atom.global.min.s32 %r0, [%d0], 0;")).loaded(1 << 31) == 1 << 31


@pytest.mark.parametrize(
    ("line", "read", "written"),
    [
        ("add.u32 %r0, %r1, %r2;", 0, 0),
        ("add.cc.u32 %r0, %r1, %r2;", 0, 1),
        ("addc.cc.u32 %r0, %r1, %r2;", 1, 1),
        ("madc.hi.u32 %r0, %r1, %r2, %r3;", 1, 0),
        ("st.global.u32 [%d0], %r0;", 0, 0),
    ],
)
def test_a_carry_is_left_beside_the_registers(line: str, read: int, written: int) -> None:
    does = lowered(instruction_of(line))
    assert (len(does.notes_read), len(does.notes_written)) == (read, written)


def test_an_arrive_that_promises_not_to_end_the_phase() -> None:
    for word, promises in ((".noComplete.release.cta", True), ("", False)):
        line = f"mbarrier.arrive{word}.shared.b64 %d0, [s], 1;"
        assert lowered(instruction_of(line)).completes_no_phase is promises
