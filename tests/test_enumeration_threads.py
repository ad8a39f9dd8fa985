"""One thread alone: loops, guards, dependencies, addresses; and the values that its reads may return."""

from __future__ import annotations

import pytest
from memmodel.enumeration.loops import find_loops
from memmodel.enumeration.meter import BudgetSpent, Meter
from memmodel.enumeration.traces import Trace

from memmodel.answer import Budget
from memmodel.enumeration.problem import Problem, prepare
from memmodel.isa import programs
from memmodel.litmus import parse_litmus
from memmodel.litmus.syntax import LitmusTest
from memmodel.source import Source


def columns(*threads: str, init: str = "x=0; y=0;", condition: str = "true", place: str = "cta 0,gpu 0") -> LitmusTest:
    """A test in the column layout; the lines of a thread are separated by semicolons."""
    parts = [[line.strip() for line in thread.split(";")] for thread in threads]
    height = max(map(len, parts))
    rows = [" | ".join(part[at] if at < len(part) else "" for part in parts) + " ;" for at in range(height)]
    header = " | ".join(f"P{number}@{place}" for number in range(len(threads))) + " ;"
    text = "\n".join(["PTX test", f"{{ {init} }}", header, *rows, f"exists ({condition})"])
    return parse_litmus(Source("test.litmus", text))


def blocks(body: str, declarations: str = ".global .u32 x = 0; .global .u32 y = 0;") -> LitmusTest:
    text = f"PTX test\n{declarations}\nthread P0 @ cta 0, gpu 0 {{\n{body}\n}}\nexists (true)\n"
    return parse_litmus(Source("test.litmus", text))


def ready(test: LitmusTest, bound: int = 2) -> Problem:
    return prepare(test, bound, Meter(Budget()))


def spins(test: LitmusTest) -> list[bool]:
    return [loop.spin for loop in find_loops(programs(test)[0]).values()]


def reads_of(trace: Trace) -> list[int | None]:
    return list(trace.values)


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
    assert [reads_of(trace) for trace in problem.traces[0]] == [[1]]
    assert not problem.cut


def test_a_round_of_a_spin_loop_that_wrote_is_kept() -> None:
    problem = ready(columns("L0:; atom.acquire.gpu.cas r0, x, 0, 1; beq r0, 0, L0", "st.weak x, 2"), bound=1)
    assert [reads_of(trace) for trace in problem.traces[0]] == [[0, 1, 1], [0, 1, 2], [1], [2]]
    assert problem.cut


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_other_loops_go_round_as_often_as_the_bound_says(bound: int) -> None:
    problem = ready(columns("L0:; st.weak x, 1; ld.weak r0, y; beq r0, 0, L0", "st.weak y, 1"), bound)
    assert [len(trace.events) for trace in problem.traces[0]] == [2 * rounds for rounds in range(bound + 1, 0, -1)]
    assert problem.cut


def test_a_loop_that_ends_by_itself_is_not_cut() -> None:
    problem = ready(columns("L0:; st.weak x, 1; add r1, r1, 1; bne r1, 2, L0"), bound=1)
    assert [len(trace.events) for trace in problem.traces[0]] == [2]
    assert not problem.cut


def test_a_loop_without_an_exit_has_no_trace() -> None:
    assert ready(columns("L0:; goto L0")).traces == ((),)


def masks(trace: Trace) -> list[tuple[int, int, int]]:
    return [(event.addr, event.data, event.ctrl) for event in trace.events]


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
    traces = ready(blocks(body)).traces[0]
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
    trace = ready(blocks(body)).traces[0][0]
    assert masks(trace)[2] == (0, 3, 0)
    assert trace.events[-1].ctrl == 0


def test_an_address_from_a_register_reaches_an_array() -> None:
    body = """
      ld.weak.global.u64 %rd1, [p];
      st.weak.global.u32 [%rd1+4], 9;
    """
    test = blocks(
        "mov.u64 %rd0, a;\nst.weak.global.u64 [p], %rd0;\n" + body, ".global .u32 a[2] = {0, 0}; .global .u64 p = 0;"
    )
    written = {
        (str(event.cell.location), event.addr)
        for trace in ready(test).traces[0]
        for event in trace.events[2:]
        if event.cell is not None
    }
    assert written == {("a[1]", 2)}


def test_a_cycle_of_copies_may_produce_any_constant_of_the_test() -> None:
    test = columns("ld.weak r0, x; st.weak y, r0", "ld.weak r0, y; st.weak x, r0", condition="P0:r0 == 42")
    assert sorted(trace.registers["r0"] for trace in ready(test).traces[0]) == [0, 42]


def test_a_chain_of_copies_produces_what_its_head_holds() -> None:
    test = columns("ld.weak r0, x; st.weak y, r0", "ld.weak r0, y", "st.weak x, 7", condition="P1:r0 == 42")
    assert {trace.registers["r0"] for trace in ready(test).traces[1]} == {0, 7}


def test_sums_are_found_by_running_the_threads() -> None:
    test = columns(*["atom.relaxed.gpu.add r0, x, 1"] * 3)
    assert {trace.registers["r0"] for trace in ready(test).traces[0]} >= {0, 1, 2}


def test_running_threads_costs_effort() -> None:
    test = columns("L0:; st.weak x, 1; ld.weak r0, y; beq r0, 0, L0", "st.weak y, 1")
    with pytest.raises(BudgetSpent, match="effort"):
        prepare(test, 1000, Meter(Budget(effort=10_000)))
    with pytest.raises(BudgetSpent, match="seconds"):
        prepare(test, 3, Meter(Budget(seconds=0.0)))
