"""What instructions lower to: events with their tags, values, addresses, jumps."""

from __future__ import annotations

import pytest
from isa_samples import blocks, columns, ops

from memmodel.errors import InputError
from memmodel.isa import legality_warnings, programs
from memmodel.litmus.parse import parse_litmus
from memmodel.litmus.syntax import LitmusTest
from memmodel.program.expressions import AddressOf, Apply, Const, Get
from memmodel.program.ops import Assign, Barrier, Event, Fence, Jump, Read, Reduce, Write
from memmodel.ptx import UNTYPED, DataType, Proxy, Scope
from memmodel.source import Source

U32 = DataType("u", 32)


def events(test: LitmusTest) -> list[Event]:
    return [op.event for op in ops(test) if isinstance(op, Read | Write | Fence | Barrier)]


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("ld.u32 %r0, [x];", ["R M WEAK GEN"]),
        ("ld.relaxed.cta.u32 %r0, [x];", ["R M RLX CTA GEN"]),
        ("ld.acquire.cluster.u32 %r0, [x];", ["R M ACQ CLUSTER GEN"]),
        ("ld.volatile.u32 %r0, [x];", ["R M RLX VOLATILE SYS GEN"]),
        ("ld.mmio.relaxed.sys.u32 %r0, [x];", ["R M RLX MMIO SYS GEN"]),
        ("ld.global.nc.u32 %r0, [x];", ["R M WEAK GEN"]),
        ("st.release.gpu.u32 [x], 1;", ["W M REL GPU GEN"]),
        ("st.mmio.release.sys.u32 [x], 1;", ["W M REL MMIO SYS GEN"]),
        ("atom.add.u32 %r0, [x], 1;", ["R M RLX GPU ATOM RMW GEN", "W M RLX GPU ATOM RMW GEN"]),
        ("atom.acq_rel.sys.add.u32 %r0, [x], 1;", ["R M ACQ SYS ATOM RMW GEN", "W M REL SYS ATOM RMW GEN"]),
        ("atom.acquire.cta.add.u32 %r0, [x], 1;", ["R M ACQ CTA ATOM RMW GEN", "W M RLX CTA ATOM RMW GEN"]),
        ("atom.release.cta.add.u32 %r0, [x], 1;", ["R M RLX CTA ATOM RMW GEN", "W M REL CTA ATOM RMW GEN"]),
        ("red.release.gpu.add.u32 [x], 1;", ["R M RLX GPU RED RMW GEN", "W M REL GPU RED RMW GEN"]),
        ("fence.sc.gpu;", ["F SC ACQ_REL GPU GEN"]),
        ("fence.acq_rel.sys;", ["F ACQ_REL SYS GEN"]),
        ("fence.sys;", ["F ACQ_REL SYS GEN"]),
        ("fence.acquire.cta;", ["F ACQ CTA GEN"]),
        ("fence.release.cluster;", ["F REL CLUSTER GEN"]),
        ("membar.cta;", ["F SC ACQ_REL CTA GEN"]),
        ("membar.gl;", ["F SC ACQ_REL GPU GEN"]),
        ("membar.sys;", ["F SC ACQ_REL SYS GEN"]),
        ("fence.proxy.alias;", ["F ALIAS"]),
        ("bar.sync 0;", ["B ARRIVE GEN", "B WAIT GEN"]),
        ("bar.arrive 0, 64;", ["B ARRIVE GEN"]),
        ("bar.warp.sync 3;", ["B ARRIVE GEN", "B WAIT GEN"]),
        ("barrier.cluster.arrive;", ["B ARRIVE REL CLUSTER GEN"]),
        ("barrier.cluster.arrive.relaxed;", ["B ARRIVE RLX CLUSTER GEN"]),
        ("barrier.cluster.wait;", ["B WAIT ACQ CLUSTER GEN"]),
    ],
)
def test_tags(line: str, tags: list[str]) -> None:
    found = events(blocks(line))
    assert [event.tags for event in found] == [frozenset(words.split()) for words in tags]
    for event in found:
        assert event.scope is next((scope for scope in Scope if scope.name in event.tags), None)


@pytest.mark.parametrize(
    ("cell", "tags", "proxy"),
    [
        ("sust.weak s, 1", "W M WEAK SUR", Proxy.SURFACE),
        ("suld.weak r0, s", "R M WEAK SUR", Proxy.SURFACE),
        ("tld.weak r0, t", "R M WEAK TEX", Proxy.TEXTURE),
        ("cold.weak r0, c", "R M WEAK CON", Proxy.CONSTANT),
    ],
)
def test_other_proxies(cell: str, tags: str, proxy: Proxy) -> None:
    assert events(columns(cell)) == [Event(frozenset(tags.split()), None, proxy)]


def test_a_typed_load_reduces_what_it_read() -> None:
    read, assign = ops(blocks("ld.s32 %r0, [n];"))
    assert isinstance(read, Read) and (read.register, read.width) == ("$0", 32)
    assert assign == Assign("r0", Apply("cvt", (Get("$0"),), DataType("s", 32)))


def test_an_untyped_load_goes_to_its_register() -> None:
    (read,) = ops(columns("ld.weak r0, x"))
    assert isinstance(read, Read)
    assert (read.register, read.address, read.width) == ("r0", AddressOf("x"), None)


def test_moves_of_the_column_layout() -> None:
    assert ops(columns("ld r0, 7")) == [Assign("r0", Const(7))]


def test_a_vector_reads_all_before_it_assigns() -> None:
    steps = ops(blocks("ld.v2.u32 {%rd0, _}, [%rd0];"))
    assert [type(step) for step in steps] == [Read, Read, Assign]
    addresses = [step.address for step in steps if isinstance(step, Read)]
    assert addresses == [Get("rd0"), Apply("add", (Get("rd0"), Const(4)), DataType("u", 64))]


def test_immediates_take_the_type() -> None:
    (write,) = ops(blocks("st.u32 [x], -1;"))
    assert isinstance(write, Write) and write.value == Const(0xFFFFFFFF)


def test_compare_and_swap_writes_only_when_equal() -> None:
    _, write, assign = ops(columns("atom.relaxed.gpu.cas r0, x, 0, 1"))
    assert isinstance(write, Write) and write.rmw
    assert write.value == Const(1)
    assert write.when == Apply("eq", (Get("$0"), Const(0)), UNTYPED)
    assert assign == Assign("r0", Get("$0"))


def test_the_operand_of_an_atomic_may_be_its_result() -> None:
    _, write, assign = ops(blocks("atom.add.u32 %r0, [x], %r0;"))
    assert isinstance(write, Write) and isinstance(assign, Assign) and assign.register == "r0"


def test_barriers_count_warps_in_blocks_and_threads_in_columns() -> None:
    counts = [op.count for op in ops(blocks("bar.sync 3, 96;")) if isinstance(op, Barrier)]
    assert counts == [Const(3), Const(3)]
    arrive, _ = ops(columns("bar.cta.sync 1, r2, 2"))
    assert isinstance(arrive, Barrier)
    assert (arrive.key, arrive.count) == ((Const(1), Get("r2")), Const(2))


def test_a_barrier_without_count_is_for_all_threads() -> None:
    (arrive,) = ops(columns("bar.cta.arrive 1"))
    assert isinstance(arrive, Barrier)
    assert (arrive.domain, arrive.key, arrive.count) == ("cta", (Const(1), Const(0)), None)


def test_reduction_of_negated_predicates() -> None:
    arrive, wait, reduce = ops(blocks("barrier.cta.red.and.pred %p, 0, 64, !%q;"))
    assert isinstance(arrive, Barrier) and isinstance(wait, Barrier) and arrive.half == "arrive" and wait.half == "wait"
    assert reduce == Reduce("p", "and", Apply("eq", (Get("q"), Const(0)), UNTYPED))


def test_warp_barrier_counts_the_lanes_of_its_mask() -> None:
    assert [op.count for op in ops(blocks("bar.warp.sync 0x7;")) if isinstance(op, Barrier)] == [Const(3), Const(3)]
    assert [op.count for op in ops(blocks("bar.warp.sync 0xffffffff;")) if isinstance(op, Barrier)] == [None, None]


def test_jumps() -> None:
    assert ops(columns("goto LC00")) == [Jump("LC00")]
    assert ops(columns("bne r0, 1, LC00")) == [Jump("LC00", Apply("ne", (Get("r0"), Const(1)), UNTYPED))]
    assert ops(blocks("exit;")) == [Jump(None)]


def test_address_of_a_variable() -> None:
    assert ops(blocks("mov.u64 %rd0, x;")) == [Assign("rd0", AddressOf("x"))]


def test_a_program_keeps_guards_labels_and_instruction_numbers() -> None:
    program = programs(blocks("@%p st.u32 [x], 1; @!%p atom.add.u32 %r0, [x], 1; bra END; END:"))[0]
    assert program.labels == {"L0": 0, "END": 5}
    assert [step.index for step in program.steps] == [0, 1, 1, 1, 2]
    guards = [step.guard.negated if step.guard else None for step in program.steps]
    assert guards == [False, True, True, True, None]


def test_red_acquire_is_accepted_with_a_warning() -> None:
    test = columns("red.acq_rel.gpu.add x, 1")
    assert [sorted(event.tags & {"ACQ", "REL"}) for event in events(test)] == [["ACQ"], ["REL"]]
    (warning,) = legality_warnings(test)
    assert "warning: PTX has no red.acq_rel" in warning


def test_a_cta_atomic_that_two_ctas_share_is_warned_about() -> None:
    (warning,) = legality_warnings(blocks("atom.relaxed.cta.add.u32 %r0, [x], 1;"))
    assert "an atomic of .cta scope on 'x', which threads of 2 CTAs access" in warning
    assert legality_warnings(blocks("atom.relaxed.cta.add.u32 %r0, [a], 1;")) == []


def test_another_ctas_shared_memory_is_reached_through_the_cluster_window() -> None:
    text = """PTX remote
.shared .u32 v;
thread P0 @ cta 0, cluster 0 { ld.shared::cluster.u32 %r0, [v@cta1]; }
thread P1 @ cta 1, cluster 0 { st.shared.u32 [v], 1; }
exists (P0:r0 == 0)
"""
    read = ops(parse_litmus(Source("t", text)))[0]
    assert isinstance(read, Read) and read.address == AddressOf("v", 0, 1)
    with pytest.raises(InputError, match="another CTA's shared memory"):
        programs(parse_litmus(Source("t", text.replace("shared::cluster", "shared"))))
