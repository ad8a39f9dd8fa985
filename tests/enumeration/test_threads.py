"""One thread alone: loops, guards, dependencies, addresses; and the values that its reads may return."""

from __future__ import annotations

from itertools import product
from typing import cast

import pytest
from helpers.executions import problem_of

from memmodel import api
from memmodel.answer import Budget
from memmodel.base.labels import Fault
from memmodel.concrete.loops import find_loops
from memmodel.concrete.meter import BudgetSpent, Meter
from memmodel.concrete.records import AccessRecord, End, RecordName, Trace
from memmodel.enumeration.domains import Domains, RememberingOracle
from memmodel.enumeration.problem import Problem, prepare
from memmodel.memory.bytes import Cell, Instance
from memmodel.program.lowered import LoweredTest
from memmodel.ptx.vocabulary import Space
from memmodel.source import Source


def columns(*threads: str, init: str = "x=0; y=0;", condition: str = "true", place: str = "cta 0,gpu 0") -> LoweredTest:
    """A test in the column layout; the lines of a thread are separated by semicolons."""
    parts = [[line.strip() for line in thread.split(";")] for thread in threads]
    height = max(map(len, parts))
    rows = [" | ".join(part[at] if at < len(part) else "" for part in parts) + " ;" for at in range(height)]
    header = " | ".join(f"P{number}@{place}" for number in range(len(threads))) + " ;"
    text = "\n".join(["PTX test", f"{{ {init} }}", header, *rows, f"exists ({condition})"])
    return api.lowered(Source("test.litmus", text))


def blocks(*bodies: str, declarations: str = ".global .u32 x = 0; .global .u32 y = 0;") -> LoweredTest:
    threads = "".join(f"thread P{number} @ cta 0, gpu 0 {{\n{body}\n}}\n" for number, body in enumerate(bodies))
    return api.lowered(Source("test.litmus", f"PTX test\n{declarations}\n{threads}exists (true)\n"))


def ready(test: LoweredTest, bound: int = 2, *, grounded: bool = False) -> Problem:
    return problem_of(test, waits=True, bound=bound, grounded=grounded)


def spins(test: LoweredTest) -> list[bool]:
    return [loop.spins for loop in find_loops(test.programs[0]).values()]


def values_of(trace: Trace) -> list[int | None]:
    return [
        value for record, value in zip(trace.records, trace.values, strict=True) if isinstance(record, AccessRecord)
    ]


@pytest.mark.parametrize(
    ("body", "spin"),
    [
        ("L0:; ld.acquire.gpu r0, x; beq r0, 0, L0", True),
        ("L0:; ld.acquire.gpu r0, x; beq r0, 1, L1; goto L0; L1:", True),
        ("L0:; atom.acquire.gpu.cas r0, x, 0, 1; bne r0, 0, L0", True),
        ("L0:; atom.acquire.gpu.exch r0, x, 1; bne r0, 0, L0", False),
        ("L0:; ld.weak r0, x; fence.sc.gpu; beq r0, 0, L0", True),
        ("L0:; ld.weak r0, x; bar.cta.sync 0; beq r0, 0, L0", False),
        ("L0:; ld.weak r0, x; st.weak y, 1; beq r0, 0, L0", False),
        ("L0:; ld.weak r0, x; add r1, r1, 1; beq r0, 0, L0", False),
        ("L0:; beq r1, 1, L1; ld.weak r0, x; L1:; beq r0, 0, L0", False),
        ("L0:; ld.weak r0, x; beq r0, 1, L1; ld.weak r1, y; beq r1, 0, L0; L1:", False),
        ("bne r2, 0, L1; L0:; ld.weak r0, x; L1:; ld.weak r1, y; beq r1, 0, L0", False),
        ("L0:; ld.weak r0, x; L1:; ld.weak r1, y; beq r1, 0, L1; beq r0, 0, L0", None),
    ],
)
def test_a_loop_spins_if_a_round_leaves_nothing_behind(body: str, spin: bool | None) -> None:
    test = columns(body, "st.weak x, 1")
    assert spins(test) == ([True, False] if spin is None else [spin])


def test_only_the_last_round_of_a_spin_loop_runs() -> None:
    problem = ready(columns("L0:; ld.acquire.gpu r0, x; beq r0, 0, L0", "st.release.gpu x, 1"))
    assert [values_of(trace) for trace in problem.complete[0]] == [[1]]
    assert [values_of(trace) for trace in problem.waiting[0]] == [[0]]
    assert problem.stopped[0] == ()


def test_a_failed_round_that_may_race_is_kept_once() -> None:
    problem = ready(columns("L0:; ld.weak r0, x; beq r0, 0, L0", "st.weak x, 1"))
    assert sorted(map(values_of, problem.complete[0])) == [[0, 1], [1]]


def test_a_round_of_a_spin_loop_that_wrote_is_kept() -> None:
    spin = "L0:; atom.acquire.gpu.cas r0, x, 0, 1; beq r0, 0, L0"
    problem = ready(columns(spin, "st.relaxed.gpu x, 2"), bound=1, grounded=True)
    assert sorted(map(values_of, problem.complete[0])) == [[0, 1, 1], [0, 1, 2], [1], [2]]
    assert problem.stopped[0]


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_other_loops_go_round_as_often_as_the_bound_says(bound: int) -> None:
    problem = ready(columns("L0:; st.weak x, 1; ld.weak r0, y; beq r0, 0, L0", "st.weak y, 1"), bound)
    lengths = {len(trace.records) for trace in problem.complete[0]}
    assert lengths == {2 * rounds for rounds in range(1, bound + 2)}
    assert {trace.ending.end for trace in problem.stopped[0]} == {End.CUT}


def test_a_branch_that_every_execution_decides_alike_needs_no_bound() -> None:
    problem = ready(columns("L0:; st.weak x, 1; add r1, r1, 1; bne r1, 5, L0"), bound=1)
    assert [len(trace.records) for trace in problem.complete[0]] == [5]
    assert problem.stopped == ((),)


def test_a_loop_without_an_exit_only_waits() -> None:
    problem = ready(columns("L0:; goto L0"))
    assert problem.complete == ((),)
    assert [trace.ending.end for trace in problem.waiting[0]] == [End.WAITS]


def test_what_is_written_before_a_wait_may_end_it() -> None:
    """Only the thread itself makes x other than 0, before it waits for that; who asks for no hang sees it as well."""
    test = columns("st.weak x, 1; L0:; ld.weak r0, x; beq r0, 0, L0")
    assert [trace.registers["r0"] for trace in problem_of(test, waits=False).complete[0]] == [1]


def masks(trace: Trace) -> list[tuple[int, int, int]]:
    """For each access, as masks over the reads of the thread: address, data, control."""
    return [(record.addr, record.data[0], record.ctrl) for record in trace.records if isinstance(record, AccessRecord)]


def test_dependencies_follow_registers() -> None:
    body = """
      ld.weak.global.u32 %r0, [x];
      add.u32 %r1, %r0, 1;
      st.weak.global.u32 [y], %r1;
      setp.eq.u32 %p, %r0, 0;
      @%p mov.u32 %r2, 5;
      st.weak.global.u32 [y], %r2;
      @%p st.weak.global.u32 [x], 1;
      st.weak.global.u32 [y], 3;
      @%p bra END;
      END:
      st.weak.global.u32 [y], 4;
    """
    traces = ready(blocks(body)).complete[0]
    by_path = {trace.values[0] == 0: masks(trace) for trace in traces}
    read, copied, kept, plain, after_branch = (0, 0, 0), (0, 1, 0), (0, 1, 0), (0, 0, 0), (0, 0, 1)
    assert by_path[True] == [read, copied, kept, (0, 0, 1), plain, after_branch]
    assert by_path[False] == [read, copied, kept, plain, after_branch]


def test_cas_depends_on_what_it_compared_and_a_select_on_all_its_sources() -> None:
    body = """
      ld.weak.global.u32 %r0, [x];
      ld.weak.global.u32 %r1, [x];
      setp.eq.u32 %p, %r1, 0;
      selp.u32 %r2, 1, %r0, %p;
      st.weak.global.u32 [y], %r2;
      atom.relaxed.gpu.global.cas.b32 %r3, [y], 7, 1;
      ld.weak.global.u32 %r4, [x];
    """
    trace = ready(blocks(body)).complete[0][0]
    assert masks(trace)[2] == (0, 3, 0)
    assert trace.records[-1].ctrl == 0


# ---- addresses and bytes ---------------------------------------------------------------------------------------

ARRAY = ".global .align 8 .u32 a[2] = {0, 0}; .global .u64 p = 0; .global .u32 i = 0;"


def places(problem: Problem, thread: int, side: str) -> set[tuple[str, int]]:
    """What a thread reads or writes in some run: (first cell, size)."""
    return {
        (f"{extent.instance.name}+{extent.first}", extent.size)
        for trace in problem.complete[thread]
        for record in trace.records
        if isinstance(record, AccessRecord) and record.access.side.value == side
        for extent in record.footprint.extents
    }


def test_an_address_comes_from_memory() -> None:
    pointer = (
        "mov.u64 %rd0, a; st.weak.global.u64 [p], %rd0; ld.weak.global.u64 %rd1, [p]; st.weak.global.u32 [%rd1+4], 9;"
    )
    problem = ready(blocks(pointer, declarations=ARRAY))
    assert places(problem, 0, "W") == {("p+0", 8), ("a+4", 4)}
    written = [
        record for trace in problem.complete[0] for record in trace.records[2:] if isinstance(record, AccessRecord)
    ]
    assert {record.addr for record in written} == {1}


def test_an_index_that_was_read_picks_the_element() -> None:
    index = """
      ld.weak.global.u32 %r0, [i];
      mul.wide.u32 %o, %r0, 4;
      mov.u64 %a, a;
      add.u64 %a, %a, %o;
      st.weak.global.u32 [%a], 9;
    """
    problem = ready(blocks(index, "st.weak.global.u32 [i], 1;", declarations=ARRAY), grounded=True)
    assert places(problem, 0, "W") == {("a+0", 4), ("a+4", 4)}


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("a; add.u64 %a, %a, 2", "misaligned for its access"),
        ("a; add.u64 %a, %a, 8", "outside every object"),
        ("0", "outside every object"),
    ],
)
def test_a_thread_stops_at_a_bad_address_with_what_it_has(address: str, rule: str) -> None:
    body = f"mov.u32 %r0, 7; mov.u64 %a, {address}; st.weak.global.u32 [%a], 1; mov.u32 %r0, 8;"
    (trace,) = ready(blocks(body, declarations=ARRAY)).complete[0]
    assert trace.ending.end is End.FAULT
    assert trace.registers["r0"] == 7
    (fault,) = trace.records
    assert isinstance(fault.label, Fault) and fault.label.reason.endswith(rule)


def test_a_vector_is_written_and_read_in_parts() -> None:
    """Each element may come from another write, whatever the elements of the write have in common."""
    writer = "st.weak.global.v2.u32 [a], {1, 2};"
    reader = "ld.weak.global.v2.u32 {%r0, %r1}, [a];"
    problem = ready(blocks(writer, reader, declarations=ARRAY), grounded=True)
    seen = {(trace.registers["r0"], trace.registers["r1"]) for trace in problem.complete[1]}
    assert seen == {(0, 0), (0, 2), (1, 0), (1, 2)}


def test_bytes_of_different_writes_are_put_together() -> None:
    writer = "st.weak.global.u8 [a+1], 1; st.weak.global.u16 [a+2], 0x203;"
    problem = ready(blocks(writer, "ld.weak.global.u32 %r0, [a];", declarations=ARRAY), grounded=True)
    assert {trace.registers["r0"] for trace in problem.complete[1]} == {0, 0x100, 0x2030000, 0x2030100}


def test_a_copy_is_cut_where_others_access_what_it_copies() -> None:
    """A copy of 8 bytes reads halves of two writes, because its destination is read by halves."""
    copy = "cp.async.ca.shared.global [s], [a], 8; cp.async.wait_all; ld.shared.u32 %r0, [s]; ld.shared.u32 %r1, [s+4];"
    declarations = f"{ARRAY} .shared .align 8 .u32 s[2] = {{0, 0}};"
    whole = "mov.b64 %v, {1, 2}; st.weak.global.b64 [a], %v;"
    problem = ready(blocks(copy, whole, declarations=declarations), grounded=True)
    copied = {value for trace in problem.complete[0] for value in values_of(trace)[:1]}
    assert copied == {0, 1, 2 << 32, 1 | 2 << 32}


# ---- values ----------------------------------------------------------------------------------------------------------


def test_a_cycle_of_copies_may_produce_any_constant_of_the_test() -> None:
    test = columns("ld.weak r0, x; st.weak y, r0", "ld.weak r0, y; st.weak x, r0", condition="P0:r0 == 42")
    addresses = {test.space.address(name, 0, test.test.threads[0].place) for name in "xy"}
    assert {trace.registers["r0"] for trace in ready(test).complete[0]} == {0, 42, *addresses}


def test_no_constant_is_a_value_where_the_model_grounds_values() -> None:
    test = columns("ld.weak r0, x; st.weak y, r0", "ld.weak r0, y; st.weak x, r0", condition="P0:r0 == 42")
    assert [trace.registers["r0"] for trace in ready(test, grounded=True).complete[0]] == [0]


def test_a_chain_of_copies_produces_what_its_head_holds() -> None:
    test = columns("ld.weak r0, x; st.weak y, r0", "ld.weak r0, y", "st.weak x, 7", condition="P1:r0 == 42")
    assert {trace.registers["r0"] for trace in ready(test).complete[1]} == {0, 7}


def test_sums_are_found_by_running_the_threads() -> None:
    test = columns(*["atom.relaxed.gpu.add r0, x, 1"] * 3)
    assert {trace.registers["r0"] for trace in ready(test).complete[0]} >= {0, 1, 2}


def test_running_threads_costs_effort() -> None:
    test = columns("L0:; st.weak x, 1; ld.weak r0, y; beq r0, 0, L0", "st.weak y, 1")
    with pytest.raises(BudgetSpent, match="effort"):
        prepare(test, 1000, Meter(Budget(effort=10_000)), waits=True)
    with pytest.raises(BudgetSpent, match="seconds"):
        prepare(test, 3, Meter(Budget(seconds=0.0)), waits=True)


def test_a_write_is_not_behind_what_it_depends_on() -> None:
    """Two threads that add one: neither reads what its own addition led to. Where values may support themselves, one
    addition after the other is followed for as many rounds as the test has writes."""
    test = columns(*["atom.relaxed.gpu.add r0, x, 1"] * 2)
    read = [{trace.values[0] for trace in traces} for traces in ready(test, grounded=True).complete]
    assert read == [{0, 1}, {0, 1}]
    assert all({0, 1} < {trace.values[0] for trace in traces} for traces in ready(test).complete)


def test_a_value_with_two_origins_is_kept() -> None:
    """x = 1 comes from what the reader writes, or from a third thread: with the second origin it may be read."""
    relay = ("ld.relaxed.gpu r0, x; st.relaxed.gpu y, r0", "ld.relaxed.gpu r0, y; st.relaxed.gpu x, r0")
    alone = ready(columns(*relay), grounded=True)
    assert [trace.values for traces in alone.complete for trace in traces] == [(0, 0), (0, 0)]
    helped = ready(columns(*relay, "st.relaxed.gpu x, 1"), grounded=True)
    assert [sorted(trace.values) for trace in helped.complete[0]] == [[0, 0], [1, 1]]


ADD = "ld.relaxed.gpu.u32 %r0, [x]; add.u32 %r1, %r0, 1; st.relaxed.gpu.u32 [x], %r1;"
"""Writes 1 itself: what it reads as 1 has another origin, or is not read."""


@pytest.mark.parametrize(
    ("other", "seen"),
    [
        ("ld.relaxed.gpu.u32 %r0, [y];", False),
        ("st.relaxed.gpu.u32 [x], 1;", True),
        ("st.relaxed.gpu.v2.u32 [x], {1, 7};", True),
        ("st.relaxed.gpu.u16 [x], 1;", True),
        ("cp.async.ca.shared.global [s], [x], 4; ld.relaxed.gpu.u32 %r0, [x+4]; st.relaxed.gpu.u32 [x], %r0;", False),
        ("st.weak.u16 [x+4], 1; ld.relaxed.gpu.u32 %r0, [x+4]; st.relaxed.gpu.u32 [x], %r0;", True),
    ],
)
def test_other_origins_of_a_value(other: str, seen: bool) -> None:
    """Whole, as a part of a larger write, and put together of smaller ones."""
    declarations = ".global .align 8 .u32 x[2] = {0}; .global .u32 y = 0; .shared .align 16 .u32 s[4] = {0};"
    found = ready(blocks(ADD, other, declarations=declarations), grounded=True)
    assert (1 in {trace.values[0] for trace in found.complete[0]}) is seen


SHIFTING = """
    ld.relaxed.gpu.u32 %g, [g];
    mov.u32 %k, 0;
    mov.u64 %p, a;
    LOOP:
    setp.eq.u32 %last, %k, 4;
    setp.ne.u32 %skipped, %k, 0;
    @!%skipped setp.eq.u32 %skip, %g, 1;
    @%skipped setp.eq.u32 %skip, %k, 9;
    ld.relaxed.gpu.u32 %v, [%p];
    @%last and.b32 %v, %v, %g;
    @!%skip st.relaxed.gpu.u32 [%p+4], %v;
    add.u64 %p, %p, 4;
    add.u32 %k, %k, 1;
    setp.lt.u32 %more, %k, 5;
    @%more bra LOOP;
"""


def test_a_guard_that_skips_a_write_moves_none_of_those_after_it() -> None:
    """The first store of the loop runs or not, and no other depends on that: they are the same writes."""
    declarations = ".global .u32 a[6] = {0, 1, 0, 0, 0, 0}; .global .u32 g = 0;"
    relay = "ld.relaxed.gpu.u32 %r, [a+16]; st.relaxed.gpu.u32 [g], %r;"
    found = ready(blocks(SHIFTING, relay, "ld.relaxed.gpu.u32 %r, [a+20];", declarations=declarations), grounded=True)
    assert {trace.values[0] for trace in found.complete[2]} == {0, 1}


def test_values_may_wait_for_arrivals_that_wait_for_values() -> None:
    """Each link takes two more rounds: two arrivals under a guard, then a state that says so."""
    links = 3
    states = "".join(
        f"mbarrier.arrive.relaxed.cta.shared::cta.b64 %s, [b{i}]; and.b64 %s, %s, 65535; shr.u64 %s, %s, 1;\n"
        f"st.relaxed.cta.u64 [x+{8 * i + 8}], %s;\n"
        for i in reversed(range(links))
    )
    arrivals = "".join(
        f"ld.relaxed.cta.u64 %r, [x+{8 * i}]; setp.eq.u64 %q, %r, 1;\n"
        + f"@%q mbarrier.arrive.relaxed.cta.shared::cta.b64 %d, [b{i}];\n" * 2
        for i in reversed(range(links))
    )
    objects = " ".join(f".shared .align 8 .b64 b{i} = mbarrier(1);" for i in range(links))
    declarations = f".global .u64 x[4] = {{1, 0, 0, 0}}; {objects}"
    last = f"ld.relaxed.cta.u64 %r, [x+{8 * links}];"
    found = ready(blocks(last, states, arrivals, declarations=declarations), grounded=True)
    assert {trace.values[0] for trace in found.complete[0]} == {0, 1}


def test_scalars_of_one_write_depend_on_their_own_reads() -> None:
    """y is written with what x was read as, x with what y was: neither value is behind itself."""
    relay = "ld.relaxed.gpu.u32 %a, [z]; ld.relaxed.gpu.u32 %b, [y]; st.relaxed.gpu.v2.u32 [x], {%b, %a};"
    declarations = ".global .align 8 .u32 x[2] = {0}; .global .u32 y = 0; .global .u32 z = 0;"
    other = "ld.relaxed.gpu.u32 %r0, [x+4]; st.relaxed.gpu.u32 [y], %r0;"
    found = ready(blocks(relay, other, "st.relaxed.gpu.u32 [z], 1;", declarations=declarations), grounded=True)
    assert {(1, 1)} <= {trace.values[:2] for trace in found.complete[0]}


def test_what_is_behind_parts_of_other_writes_is_not_followed() -> None:
    """Bytes of several writes: any of them may be behind the value."""
    half = "ld.relaxed.gpu.b16 %r0, [x]; add.u32 %r1, %r0, 1; st.relaxed.gpu.u32 [x], %r1;"
    wide = "ld.relaxed.gpu.u32 %r0, [x]; st.relaxed.gpu.u32 [x], %r0;"
    found = ready(blocks(half, wide), grounded=True)
    assert {1} <= {trace.values[0] for trace in found.complete[1]}


class Told:
    """Domains of which the phases and the pending counts of every object are given."""

    def __init__(self, phases: tuple[int, ...], pending: tuple[int, ...]) -> None:
        self._phases, self._pending = phases, pending

    def phases(self, object: Cell) -> tuple[int, ...]:
        return self._phases

    def pending(self, object: Cell) -> tuple[int, ...]:
        return self._pending


@pytest.mark.parametrize("asked", [("phases",), ("pending",), ("phases", "pending")])
def test_a_thread_runs_again_where_it_would_hear_something_else(asked: tuple[str, ...]) -> None:
    object, name = Cell(Instance("bar", None, Space.SHARED, 8), 0, 8), RecordName(0, 0, 0)
    for said in product(((0, 1), (0, 1, 2)), repeat=2):
        for now in product(((0, 1), (0, 1, 2)), repeat=2):
            heard = RememberingOracle(cast(Domains, Told(*said)))
            for question in asked:
                getattr(heard, question)(name, object)
            changed = [question for question, a, b in zip(("phases", "pending"), said, now, strict=True) if a != b]
            assert heard.differs(cast(Domains, Told(*now))) is bool(set(changed) & set(asked))
