"""What asynchronous instructions lower to: events with their tags, parts, signals, groups and waits."""

from __future__ import annotations

import pytest
from isa_samples import blocks, ops
from memmodel.isa.facts import constants, interest
from memmodel.isa.memory import STRIDE, MemoryMap

from memmodel.isa import legality_warnings, programs, target
from memmodel.litmus.parse import parse_litmus
from memmodel.litmus.syntax import LitmusTest
from memmodel.program.expressions import AddressOf, Apply, Const, Get
from memmodel.program.ops import (
    Assign,
    Commit,
    Cover,
    Event,
    Fence,
    Issue,
    Mbarrier,
    Op,
    Part,
    Read,
    Signal,
    Wait,
    Write,
)
from memmodel.ptx import Proxy, Scope
from memmodel.source import Source


def read(text: str) -> LitmusTest:
    return parse_litmus(Source("t.litmus", text))


def steps(test: LitmusTest, thread: int = 0) -> list[Op]:
    return [step.op for step in programs(test)[thread].steps]


def events(op: Op) -> list[Event]:
    """The events of a step, an issue before its parts."""
    if isinstance(op, Issue):
        return [op.event, *(part.event for part in op.parts)]
    return [op.event] if isinstance(op, Mbarrier | Fence | Wait | Read | Write) else []


SIGNAL = "MBAR SIGNAL ASYNC REL GEN CLUSTER"
BULK_READ, BULK_WRITE = "R M WEAK ASYNC BULK SRC ASY", "W M WEAK ASYNC BULK ASY"
TC = "TCGEN M WEAK ASYNC"

TAGS = {
    "mbarrier.init.b64 [bar], 2;": ["MBAR MBINIT GEN"],
    "mbarrier.inval.b64 [bar];": ["MBAR MBINVAL GEN"],
    "mbarrier.expect_tx.b64 [bar], 16;": ["MBAR RLX CTA GEN"],
    "mbarrier.complete_tx.relaxed.cluster.b64 [bar], 16;": ["MBAR RLX CLUSTER GEN"],
    "mbarrier.arrive.b64 _, [bar];": ["MBAR MBARRIVE REL CTA GEN"],
    "mbarrier.arrive.relaxed.cluster.b64 _, [bar];": ["MBAR MBARRIVE RLX CLUSTER GEN"],
    "mbarrier.arrive_drop.b64 _, [bar];": ["MBAR MBARRIVE REL CTA GEN"],
    "mbarrier.test_wait.b64 %p, [bar], %rd0;": ["MBAR MBTEST ACQ CTA GEN"],
    "mbarrier.try_wait.parity.relaxed.cluster.b64 %p, [bar], 1;": ["MBAR MBTEST RLX CLUSTER GEN"],
    "cp.async.ca.shared.global [tile], [src], 4;": [
        "ISSUE",
        "R M WEAK ASYNC CPASYNC SRC GEN",
        "W M WEAK ASYNC CPASYNC SMEM GEN",
    ],
    "cp.async.mbarrier.arrive.noinc.b64 [bar];": ["ISSUE", "MBAR SIGNAL ASYNC REL GEN CTA"],
    "cp.async.mbarrier.arrive.b64 [bar];": ["MBAR RLX CTA GEN", "ISSUE", "MBAR SIGNAL ASYNC REL GEN CTA"],
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [src], 16, [bar];": [
        "ISSUE",
        BULK_READ,
        BULK_WRITE + " SMEM",
        SIGNAL,
    ],
    "cp.async.bulk.global.shared::cta.bulk_group [src], [tile], 16;": ["ISSUE", BULK_READ + " SMEM", BULK_WRITE],
    "cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128 [src], [tile], 16;": [
        "ISSUE",
        "R M RLX GPU ASYNC BULK SRC ASY SMEM",
        "W M RLX GPU ASYNC BULK ASY",
    ],
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [src], [tile], 16;": [
        "ISSUE",
        BULK_READ + " SMEM",
        "R M RLX SYS RMW ASYNC BULK ASY",
        "W M RLX SYS RMW ASYNC BULK ASY",
    ],
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [map, {0}], [tile];": [
        "ISSUE",
        "R M WEAK ASYNC BULK DESC SRC TMP",
        BULK_READ + " SMEM",
        BULK_WRITE,
    ],
    "cp.async.bulk.wait_group.read 0;": ["WAITGROUP"],
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [tile@cta1], 1, [bar@cta1];": [
        "ISSUE",
        "W M WEAK ASYNC STASYNC SMEM GEN",
        SIGNAL,
    ],
    "st.async.release.gpu.global.u32 [x], 1;": ["ISSUE REL GPU GEN", "W M RLX GPU ASYNC STASYNC GEN"],
    "st.async.mmio.release.sys.global.u32 [x], 1;": ["ISSUE REL SYS GEN", "W M RLX SYS ASYNC STASYNC MMIO GEN"],
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [tile@cta1], 1, [bar@cta1];": [
        "ISSUE",
        "R M RLX CLUSTER ASYNC STASYNC RED RMW SMEM GEN",
        "W M RLX CLUSTER ASYNC STASYNC RED RMW SMEM GEN",
        SIGNAL,
    ],
    "wgmma.fence.sync.aligned;": ["WGFENCE"],
    "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%f0, %f1}, %rd0, %rd1, 1, 1, 1, 0, 0;": [
        "ISSUE",
        "R M WEAK ASYNC WGMMA SMEM ASY",
        "R M WEAK ASYNC WGMMA SMEM ASY",
    ],
    "tcgen05.mma.cta_group::1.kind::f16 [acc], %rd0, %rd1, %r2, %q;": [
        "TCGEN ISSUE MMA",
        f"{TC} R SMEM ASY MMA",
        f"{TC} R SMEM ASY MMA",
        f"{TC} W TMEM MMA",
    ],
    "tcgen05.mma.cta_group::1.kind::f16 [acc], [acc+1], %rd1, %r2, !%q;": [
        "TCGEN ISSUE MMA",
        f"{TC} R SMEM ASY MMA",
        f"{TC} R TMEM MMA",
        f"{TC} R TMEM MMA",
        f"{TC} W TMEM MMA",
    ],
    "tcgen05.cp.cta_group::1.4x256b [acc], %rd0;": [
        "TCGEN ISSUE CP CP4",
        f"{TC} R SMEM ASY CP CP4",
        f"{TC} W TMEM CP CP4",
    ],
    "tcgen05.shift.cta_group::1.down [acc];": ["TCGEN ISSUE SHIFT", f"{TC} R TMEM SHIFT", f"{TC} W TMEM SHIFT"],
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [acc];": ["TCGEN ISSUE TLD", f"{TC} R TMEM TLD"],
    "tcgen05.st.sync.aligned.32x32b.x1.b32 [acc], {%r0};": ["TCGEN ISSUE TST", f"{TC} W TMEM TST"],
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [bar];": [
        "TCGEN ISSUE COMMIT",
        SIGNAL + " COMMIT TCGEN",
    ],
    "tcgen05.wait::st.sync.aligned;": ["TWAIT TCGEN"],
    "tcgen05.fence::before_thread_sync;": ["TCGEN BEFORE"],
    "tcgen05.fence::after_thread_sync;": ["TCGEN AFTER"],
    "tcgen05.alloc.cta_group::1.sync.aligned.b32 [tile], 32;": ["TCGEN TALLOC", "W M WEAK SMEM GEN"],
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;": ["TCGEN TDEALLOC"],
    "fence.proxy.async;": ["F ASY"],
    "fence.acquire.sync_restrict::shared::cluster.cluster;": ["F ACQ RESTRICTED CLUSTER GEN"],
    "fence.mbarrier_init.release.cluster;": ["F REL RESTRICTED CLUSTER GEN"],
    "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;": ["F UNI ASY RESTRICTED REL CLUSTER"],
    "fence.proxy.tensormap::generic.acquire.gpu [gmap], 128;": ["F UNI TMP ACQ GPU"],
    "tensormap.replace.tile.global_address.global.b1024.b64 [gmap], %rd0;": ["W M WEAK GEN"],
    "tensormap.replace.tile.rank.shared::cta.b1024.b32 [smap], 1;": ["R M WEAK GEN SMEM", "W M WEAK GEN SMEM"],
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [gmap], [smap], 128;": [
        "R M WEAK GEN SMEM",
        "W M WEAK GEN",
        "F UNI TMP REL GPU",
    ],
    "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [response], [bar];": [
        "ISSUE",
        "W M WEAK ASYNC CLC SMEM ASY",
        SIGNAL,
    ],
    "ld.shared.u64 %rd0, [s];": ["R M WEAK GEN SMEM"],
    "atom.shared.add.u64 %rd0, [s], 1;": ["R M RLX GPU ATOM RMW SMEM GEN", "W M RLX GPU ATOM RMW SMEM GEN"],
}


@pytest.mark.parametrize("line", TAGS)
def test_tags(line: str) -> None:
    found = [event for op in ops(blocks(line)) for event in events(op)]
    assert [event.tags for event in found] == [frozenset(words.split()) for words in TAGS[line]]
    for event in found:
        assert event.scope is next((scope for scope in Scope if scope.name in event.tags), None)
        uni = "F" in event.tags
        assert event.proxy is (Proxy.ASYNC if "ASY" in event.tags and not uni else event.proxy)


@pytest.mark.parametrize(
    ("line", "covers"),
    [
        ("fence.proxy.async.global;", Cover("global")),
        ("fence.proxy.async.shared::cta;", Cover("own-shared")),
        ("fence.proxy.async.shared::cluster;", Cover("shared")),
        ("fence.proxy.async;", None),
        ("fence.release.sync_restrict::shared::cta.cluster;", Cover("own-shared")),
        ("fence.acquire.sync_restrict::shared::cluster.cluster;", Cover("shared")),
        ("fence.mbarrier_init.release.cluster;", Cover("init")),
        ("fence.proxy.tensormap::generic.acquire.gpu [gmap], 128;", Cover("range", AddressOf("gmap"), 128)),
        ("fence.proxy.tensormap::generic.release.gpu;", None),
    ],
)
def test_what_a_fence_is_about(line: str, covers: Cover | None) -> None:
    (fence,) = ops(blocks(line))
    assert isinstance(fence, Fence) and fence.event.covers == covers


def test_mbarrier_operands() -> None:
    (arrive,) = ops(blocks("mbarrier.arrive.expect_tx.b64 %rd0, [bar], 32;"))
    assert isinstance(arrive, Mbarrier)
    assert (arrive.action, arrive.address) == ("arrive", AddressOf("bar"))
    assert (arrive.count, arrive.bytes, arrive.register, arrive.drop) == (Const(1), Const(32), "rd0", False)
    (drop,) = ops(blocks("mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [bar@cta1], 2;"))
    assert isinstance(drop, Mbarrier)
    assert (drop.address, drop.count, drop.drop, drop.register) == (AddressOf("bar", 0, 1), Const(2), True, None)
    (test,) = ops(blocks("mbarrier.try_wait.parity.b64 %p, [bar], %r1, 1000;"))
    assert isinstance(test, Mbarrier) and (test.register, test.parity, test.state) == ("p", Get("r1"), None)
    (test, *report) = ops(blocks("mbarrier.try_wait.phase_type::primary.b64 %p|%q, [bar], %rd0;"))
    assert isinstance(test, Mbarrier) and (test.state, test.parity) == (Get("rd0"), None)
    assert report == [Assign("q", Const(0))]


def test_the_pending_count_is_kept_only_for_who_asks() -> None:
    arrive, count = ops(blocks("mbarrier.arrive.b64 %rd0, [bar]; mbarrier.pending_count.b64 %r0, %rd0;"))
    assert isinstance(arrive, Mbarrier) and arrive.pending == "rd0#pending"
    assert count == Assign("r0", Get("rd0#pending"))
    (alone,) = ops(blocks("mbarrier.arrive.b64 %rd0, [bar];"))
    assert isinstance(alone, Mbarrier) and alone.pending is None


def test_groups() -> None:
    assert ops(blocks("cp.async.bulk.commit_group;")) == [Commit("bulk")]
    assert ops(blocks("cp.async.commit_group;")) == [Commit("cp.async")]
    assert ops(blocks("wgmma.commit_group.sync.aligned;")) == [Commit("wgmma")]
    waited = Event(frozenset({"WAITGROUP"}))
    assert ops(blocks("cp.async.bulk.wait_group.read 1;")) == [Wait(waited, "bulk", Const(1), "SRC")]
    assert ops(blocks("wgmma.wait_group.sync.aligned 0;")) == [Wait(waited, "wgmma", Const(0))]
    assert ops(blocks("cp.async.wait_all;")) == [Commit("cp.async"), Wait(waited, "cp.async", Const(0))]
    (wait,) = ops(blocks("tcgen05.wait::ld.sync.aligned;"))
    assert isinstance(wait, Wait) and (wait.track, wait.pending, wait.only) == ("tcgen05.ld", None, None)


TWO_CTAS = """PTX two
.global .align 16 .b32 x[16] = {{1, 2, 3}};
.global .align 16 .b32 y[16];
.global .align 16 .b32 z[16];
.global .align 128 .b8 map[128] = tensormap(x, {{4, 2}}, {{8, 2}});
.shared .align 8 .b64 bar = mbarrier(1);
.shared .align 16 .b32 s[16];
.shared .b32 slot;
.tensor .b32 acc[2];
.tensor .b32 more[2];
thread P0 @ cta 0, cluster 0, gpu 0 {{
  {}
}}
thread P1 @ cta 1, cluster 0, gpu 0 {{
  {}
}}
exists ({})
"""


def two(line: str, other: str = "ret;", question: str = "true") -> LitmusTest:
    return read(TWO_CTAS.format(line, other, question))


def issue(test: LitmusTest) -> Issue:
    (found,) = [op for op in steps(test) if isinstance(op, Issue)]
    return found


def shown(found: Issue) -> list[str]:
    """Parts in short: `R x+4 -> $s0`, `W s@1 = $s0`, `S bar@1 0 2`."""
    lines = []
    for part in found.parts:
        if isinstance(part, Signal):
            lines.append(f"S {place(part)} {' '.join(map(str, part.of))}".rstrip())
        elif part.half == "read":
            lines.append(f"R {place(part)} -> {part.register}")
        else:
            value = part.value.register if isinstance(part.value, Get) else "…"
            lines.append(f"W {place(part)} = {value}")
    return lines


def place(part: Part | Signal) -> str:
    address = part.address
    if not isinstance(address, AddressOf):
        return "?"
    offset = f"+{address.offset}" if address.offset else ""
    return f"{address.name}{'' if address.cta is None else f'@{address.cta}'}{offset}"


LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


def test_a_multicast_signals_every_destination_of_its_own_writes_and_the_reads() -> None:
    found = issue(two(f"{LOAD}.multicast::cluster [s], [x], 32, [bar], 3;"))
    assert shown(found) == ["R x -> $s0", "W s@0 = $s0", "S bar@0 0 1", "W s@1 = $s0", "S bar@1 0 3"]
    assert [part.bytes for part in found.parts if isinstance(part, Signal)] == [Const(32), Const(32)]


def test_elements_that_a_test_looks_at_are_copied_also_through_a_second_copy() -> None:
    line = f"{LOAD} [s+16], [x], 32, [bar]; cp.async.bulk.global.shared::cta.bulk_group [y], [s+16], 32;"
    test = two(line, question="y[2] == 3")
    assert interest(test)["x"] == {0, 2} and interest(test)["s"] >= {4, 6} and interest(test)["y"] == {0, 2}
    load, store = [op for op in steps(test) if isinstance(op, Issue)]
    assert shown(load) == ["R x -> $s0", "R x+8 -> $s1", "W s+16 = $s0", "W s+24 = $s1", "S bar 0 1 2 3"]
    assert shown(store) == ["R s+16 -> $s0", "R s+24 -> $s1", "W y = $s0", "W y+8 = $s1"]
    assert all(part.track == {"bulk"} for part in store.parts if isinstance(part, Part))


def test_without_bulk_copies_nothing_is_of_interest() -> None:
    assert interest(two("ld.global.b32 %r0, [x+8];")) == {}


def test_a_copy_through_registers_has_its_first_element() -> None:
    assert shown(issue(two(f"{LOAD} [%rd0], [%rd1], 32, [%rd2];"))) == ["R ? -> $s0", "W ? = $s0", "S ? 0 1"]


def test_a_reduction_reads_and_writes_its_destination_as_one() -> None:
    head = "cp.reduce.async.bulk.relaxed.cluster.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    found = issue(two(f"{head}.add.u32 [s@cta1], [y+0], 16, [bar@cta1];".replace("y+0", "s")))
    assert shown(found) == ["R s -> $s0", "R s@1 -> $d0", "W s@1 = …", "S bar@1 0 1 2"]
    assert [part.rmw for part in found.parts if isinstance(part, Part)] == [False, False, True]


TENSOR = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [map, {4, 0}], [bar];"


def test_a_tensor_copy_finds_the_rows_of_its_box() -> None:
    found = issue(two(TENSOR, question="x[12] == 0"))
    assert shown(found) == [
        "R map -> $map",
        "R x+16 -> $s0",
        "R x+48 -> $s1",
        "W s = $s0",
        "W s+16 = $s1",
        "S bar 0 1 2 3 4",
    ]
    signal = found.parts[-1]
    assert isinstance(signal, Signal) and signal.bytes == Const(32)


def test_a_map_that_may_change_is_read_for_the_address_of_the_data() -> None:
    change = "tensormap.replace.tile.global_address.global.b1024.b64 [map], %rd0;"
    found = issue(two(TENSOR, change))
    data = found.parts[1]
    assert isinstance(data, Part) and isinstance(data.address, Apply) and data.address.args == (Get("$map"), Const(16))


def test_a_tensor_map_holds_the_address_of_its_data() -> None:
    test = two("ret;")
    memory = MemoryMap(test)
    where = memory.find("map")
    assert where is not None
    assert memory.initial[where] == memory.address("x", 0, test.threads[0].place)
    assert memory.address("map", 128, test.threads[0].place) is not None and memory.bytes_of["map"] == 128


def test_tensor_memory_is_addressed_by_element_in_every_cta() -> None:
    test = two("ret;")
    memory = MemoryMap(test)
    own, peer = (memory.address("acc", 1, thread.place) for thread in test.threads)
    assert own is not None and peer is not None and peer - own == STRIDE
    cell = memory.cell(peer)
    assert cell is not None and (cell.location.name, cell.location.index) == ("acc", 1)


def test_mapa_of_a_name_and_of_a_register() -> None:
    assert steps(two("mapa.u64 %rd0, s, 1;")) == [Assign("rd0", AddressOf("s", 0, 1))]
    (_, mapped) = steps(two("mov.u64 %rd1, s; mapa.u64 %rd0, %rd1, 1;"))
    assert isinstance(mapped, Assign) and isinstance(mapped.value, Apply)
    assert mapped.value.args == (Get("rd1"), Const(STRIDE))
    memory, test = MemoryMap(two("ret;")), two("ret;")
    own, peer = (memory.address("s", 0, thread.place) for thread in test.threads)
    assert own is not None and peer == own + STRIDE


def test_mma_of_a_pair_works_in_both_ctas() -> None:
    found = issue(two("tcgen05.mma.cta_group::2.kind::f16 [acc], %rd0, %rd1, %r2, %q;"))
    assert [(part.half, part.event.unit) for part in found.parts if isinstance(part, Part)] == [
        ("read", 2),
        ("read", 2),
        ("read", 2),
        ("write", 2),
        ("read", 2),
        ("write", 2),
    ]
    writes = [part for part in found.parts if isinstance(part, Part) and part.half == "write"]
    assert [part.address for part in writes] == [AddressOf("acc"), AddressOf("acc", 0, 1)]
    assert writes[0].track == {"tcgen05.mma", "tcgen05.cta_group::2"}


def test_the_form_of_an_mma_is_its_kind_and_instruction_descriptor() -> None:
    line = "mov.b32 %i, 7; tcgen05.mma.cta_group::1.kind::f16 [acc], %rd0, %rd1, {}, %p;"
    assert issue(two(line.format("%i"))).event.form == "kind::f16 idesc 7"
    assert issue(two(line.format("%j"))).event.form == "kind::f16 idesc %j"


@pytest.mark.parametrize(
    ("set_up", "predicate", "reads"),
    [
        ("mov.pred %p, 0;", "%p", False),
        ("mov.pred %p, 1;", "%p", True),
        ("mov.pred %p, 1;", "!%p", False),
        ("setp.eq.u32 %p, %r0, 1;", "%p", True),
        ("", "%p", False),
    ],
)
def test_an_mma_reads_its_accumulator_unless_it_is_known_not_to(set_up: str, predicate: str, reads: bool) -> None:
    found = issue(two(f"{set_up} tcgen05.mma.cta_group::1.kind::f16 [acc], %rd0, %rd1, %r2, {predicate};"))
    halves = [part.half for part in found.parts if isinstance(part, Part) and "TMEM" in part.event.tags]
    assert halves == (["read", "write"] if reads else ["write"])


def test_alloc_hands_out_tensor_variables_in_order() -> None:
    alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;"
    written = [op.value for op in steps(two(alloc + alloc)) if isinstance(op, Write)]
    assert written == [AddressOf("acc"), AddressOf("more")]
    (fence, _) = steps(two(alloc))
    assert isinstance(fence, Fence) and fence.event.covers == Cover("range", AddressOf("acc"), 2)


def test_a_commit_signals_every_cta_of_its_mask() -> None:
    head = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
    found = issue(two(f"mov.b16 %m, 3; {head} [bar], %m;"))
    assert shown(found) == ["S bar@0", "S bar@1"]
    for signal in found.parts:
        assert isinstance(signal, Signal) and signal.bytes is None and signal.tracks == "tcgen05.cta_group::2"


def test_wgmma_results_are_assigned_after_the_parts() -> None:
    line = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%f0, %f1}, %rd0, %rd1, 0, 1, 1, 0, 0;"
    issued, product, *assigns = ops(blocks(line))
    assert isinstance(issued, Issue) and isinstance(product, Assign)
    for name, assign in zip(("f0", "f1"), assigns, strict=True):
        assert isinstance(assign, Assign) and assign.register == name
        assert isinstance(assign.value, Apply) and assign.value.args == (Get("$p"),)


def test_responses_of_different_requests_differ() -> None:
    line = "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [response], [bar];"
    first, second = (op for op in ops(blocks(line + line)) if isinstance(op, Issue))
    values = [part.value for found in (first, second) for part in found.parts if isinstance(part, Part)]
    assert values == [Const(1), Const(2)]


def test_constants_are_registers_assigned_once() -> None:
    test = two("mov.u32 %a, 1; mov.u32 %b, 1; add.u32 %b, %b, 1; @%p mov.u32 %c, 1; mov.u32 %d, x;")
    assert constants(test, test.threads[0]) == {"a": 1}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("mbarrier.inval.b64 [bar];", "sm_80"),
        ("mbarrier.arrive.relaxed.cta.b64 _, [bar];", "sm_90"),
        ("mbarrier.arrive.b64 %rd0, [bar];", "sm_80"),
        ("mbarrier.arrive.b64 %rd0, [bar], 2;", "sm_90"),
        ("mbarrier.arrive.noComplete.b64 %rd0, [bar], 2;", "sm_80"),
        ("mbarrier.try_wait.b64 %p, [bar], %rd0;", "sm_90"),
        ("wgmma.fence.sync.aligned;", "sm_90a"),
        ("tcgen05.fence::after_thread_sync;", "sm_100a"),
        ("cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128 [src], [tile], 16;", "sm_90a"),
        ("st.async.release.gpu.global.u32 [x], 1;", "sm_100"),
        ("wgmma.fence.sync.aligned; tcgen05.fence::after_thread_sync;", None),
    ],
)
def test_target(line: str, name: str | None) -> None:
    test = blocks(line)
    assert target(test) == name
    assert ("no target architecture" in "".join(legality_warnings(test))) is (name is None)


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%f0, %f1}, %rd0, %rd1, 0, 1, 1, 0, 0;",
            "wgmma.mma_async with no wgmma.fence before it",
        ),
        ("mbarrier.arrive.expect_tx.b64 _, [bar], 16;", "bytes are expected that no instruction of the test delivers"),
        (f"{LOAD} [tile], [src], 16, [bar];", "nobody expects the bytes of this copy"),
        (
            "tcgen05.shift.cta_group::1.down [acc]; tcgen05.shift.cta_group::2.down [acc];",
            ".cta_group::2 in a test that also has .cta_group::1",
        ),
        (
            "wgmma.fence.sync.aligned; fence.proxy.async.global; "
            "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%f0, %f1}, %rd0, %rd1, 0, 1, 1, 0, 0;",
            "no async-proxy access of the test is to global memory",
        ),
    ],
)
def test_structural_hazards(line: str, warning: str) -> None:
    assert any(warning in text for text in legality_warnings(blocks(line)))
