"""What objects, tensor maps, copies and addresses in a cluster mean, beyond the steps of one line.

Steps are evaluated with numbers in their registers; what they are is in `test_async_lowering`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.isa_samples import blocks, ops, read, shown, value, warnings

from memmodel import api
from memmodel.isa.lower import lower_test, target
from memmodel.litmus.constants import constants
from memmodel.memory.tensormap import TensorMap
from memmodel.program.expressions import AddressOf
from memmodel.program.ops import Assign, IssueAsync, Respond, SignalPart, UndefinedIf, Write

LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
TO_CLUSTER = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
REPLACE = "tensormap.replace.tile"
CANCEL = "clusterlaunchcontrol.try_cancel.async"

# ---- objects -------------------------------------------------------------------------------------------------------


def test_a_report_is_noted_as_early_after_a_test_that_returns_false() -> None:
    test = "mbarrier.try_wait.phase_type::primary.b64 %p|%q, [bar], %rd0;"
    outcome = "register=p state=and.u64(%rd0, 262143) report=q)"
    assert shown(ops(blocks(f"{test} mov.pred %r, %q;")))[1:] == [
        f"OnObject(Mbarrier(test acquire cta unscoped) Object(&bar shared_cta) {outcome}",
        "Assign(q#early eq.s32(%p, 0))",
        "UndefinedIf(a report is read of a test that returned false %q#early)",
        "Assign(r %q)",
    ]


@pytest.mark.parametrize(("then", "flags"), [("", ("undefined-instruction",)), ("setp.eq.u32 %q, 1, 1;", ())])
def test_a_report_that_something_else_took_the_place_of_may_be_read(then: str, flags: tuple[str, ...]) -> None:
    """ "When waitComplete is False, the reportPredicate and reportValue operands have unspecified values"."""
    tested = "mbarrier.test_wait.parity.phase_type::primary.shared::cta.b64 %p|%q, [bar], 0;"
    text = f"""PTX early
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {{ {tested} {then} selp.u32 %r0, 1, 0, %q; }}
exists (true)
"""
    assert api.check(text).answer.flags == flags


def test_the_pending_count_is_kept_only_for_who_asks() -> None:
    arrive, state, *_ = shown(ops(blocks("mbarrier.arrive.b64 %rd0, [bar]; mbarrier.pending_count.b64 %r0, %rd1;")))
    assert arrive.endswith("register=$phase pending=$pending)")
    assert "shl.u64(%$pending, 18)" in state
    assert not any("pending" in step for step in shown(ops(blocks("mbarrier.arrive.b64 %rd0, [bar];"))))


# ---- tensor maps ---------------------------------------------------------------------------------------------------

MAP = TensorMap.dense(0x1000, 4, (8, 4), (4, 2))


@pytest.mark.parametrize(
    ("field", "operands", "changed"),
    [
        ("global_address.global.b1024.b64", "%rd0", {"address": 0x2000}),
        ("rank.global.b1024.b32", "0", {"sizes": (8,), "box": (4,), "strides": ()}),
        ("global_dim.global.b1024.b32", "0, 6", {"sizes": (6, 4)}),
        ("global_dim.global.b1024.b32", "1, 3", {"sizes": (8, 3)}),
        ("box_dim.global.b1024.b32", "0, 8", {"box": (8, 2)}),
        ("box_dim.global.b1024.b32", "1, 1", {"box": (4, 1)}),
        ("global_stride.global.b1024.b64", "0, 64", {"strides": (64,)}),
        ("fill_mode.global.b1024.b32", "0", {}),
    ],
)
def test_replacing_a_field_changes_that_field(field: str, operands: str, changed: dict[str, object]) -> None:
    (write,) = [op for op in ops(blocks(f"{REPLACE}.{field} [gmap], {operands};")) if isinstance(op, Write)]
    new = TensorMap.unpack(value(write.values[0], {"$map": MAP.pack(), "rd0": 0x2000}))
    assert new == replace(MAP, **changed)


@pytest.mark.parametrize(
    ("code", "bytes"),  # "do not correspond to the values of the CUtensorMapDataType enum"
    [(0, 1), (1, 2), (2, 4), (3, 4), (4, 8), (5, 8), (6, 2), (7, 4), (8, 4), (9, 8), (10, 2), (11, 4), (12, 4)],
)
def test_codes_of_element_types(code: int, bytes: int) -> None:
    steps = ops(blocks(f"{REPLACE}.elemtype.global.b1024.b32 [gmap], {code};"))
    assert isinstance(steps[-1], Write) and len(steps) == 2
    new = TensorMap.unpack(value(steps[-1].values[0], {"$map": MAP.pack()}))
    assert new is not None and new.element == bytes


def test_packed_elements_and_swizzled_maps_are_not_modelled() -> None:
    assert shown(ops(blocks(f"{REPLACE}.elemtype.global.b1024.b32 [gmap], 13;")))[0] == (
        "Unmodelled(a tensor map of packed elements 1)"
    )
    assert shown(ops(blocks(f"{REPLACE}.swizzle_mode.global.b1024.b32 [gmap], 3;")))[0] == (
        "Unmodelled(a tensor map with another swizzle_mode than 0 ne.u32(3, 0))"
    )


def test_a_tensor_map_holds_the_address_sizes_and_box_of_its_data() -> None:
    lowered = lower_test(blocks("ret;"))
    space = lowered.space
    maps = {instance.name: instance for instance in space.instances}
    data = space.address("src", 0, lowered.test.threads[0].place)
    assert maps["gmap"].size == 128 and data is not None
    assert TensorMap.unpack(space.initial(maps["gmap"], 0, 128)) == TensorMap(data, 4, (4, 2), (4, 2), (16,))
    assert TensorMap.unpack(space.initial(maps["smap"], 0, 128)) == TensorMap(data, 4, (8,), (8,), ())


# ---- copies --------------------------------------------------------------------------------------------------------


def test_a_mask_in_a_register_decides_who_receives() -> None:
    found = shown(ops(blocks(f"{TO_CLUSTER}.multicast::cluster [tile], [src], 32, [bar], %r0;")))
    assert found[0] == "Unmodelled(a CTA mask names a CTA that has no thread in the test and.u16(%r0, 65532))"
    assert [line.partition("when=")[2] for line in found[3:]] == [f"and.u16(%r0, {bit}))" for bit in (1, 1, 2, 2)]
    known = shown(ops(blocks(f"mov.b16 %m, 2; {TO_CLUSTER}.multicast::cluster [tile], [src], 32, [bar], %m;")))
    assert [line.split()[-1] for line in known if "when" in line] == [] and "&tile@1" in known[3]


PAIRS = """PTX pairs
.global .align 16 .b32 x[16];
.const .align 64 .b8 map[128] = tensormap(x, {{4}});
.shared .align 8 .b64 bar = mbarrier(1);
.shared .align 16 .b32 s[16];
{}exists (true)
"""


@pytest.mark.parametrize("own", [0, 1, 2, 3])
@pytest.mark.parametrize("there", [0, 1])
@pytest.mark.parametrize("named", [True, False])
def test_with_cta_group_2_a_pair_is_signalled_at_the_parity_of_the_mbarrier(own: int, there: int, named: bool) -> None:
    """Each destination signals its own bytes, in its own pair; the operand is in the pair of the executing CTA."""
    at = own & ~1 | there
    head = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2"
    bar = f"[bar@cta{at}]" if named else "[%bar]"
    copy = f"{head} [s], [map, {{0}}], {bar}, 15;"
    bodies = [f"thread P{k} @ cta {k}, cluster 0 {{ {copy if k == own else 'ret;'} }}\n" for k in range(4)]
    lowered = lower_test(read(PAIRS.format("".join(bodies))))
    place = lowered.test.threads[own].place
    wanted = [lowered.space.address("bar", 0, place, rank | there) for rank in (0, 0, 2, 2)]
    (issue,) = [step.op for step in lowered.programs[own].steps if isinstance(step.op, IssueAsync)]
    registers = {"bar": lowered.space.address("bar", 0, place, at) or 0}
    signals = [part for part in issue.parts if isinstance(part, SignalPart)]
    assert [value(part.region.address, registers, lowered, own) for part in signals] == wanted


def test_requests_get_different_responses() -> None:
    line = f"{CANCEL}.mbarrier::complete_tx::bytes.b128 [response], [bar];"
    issued = [op for op in ops(blocks(line + line)) if isinstance(op, IssueAsync)]
    assert [part.success for op in issued for part in op.parts if isinstance(part, Respond)] == [1, 2]


# ---- the cluster ---------------------------------------------------------------------------------------------------


def test_a_mapped_address_lies_at_the_same_place_in_the_other_cta() -> None:
    """Whatever mapa of a name is, mapa of a register that holds its address is too; getctarank finds the way back."""
    lowered = lower_test(blocks("mapa.u64 %rd0, %rd1, 1; getctarank.u64 %r0, %rd0;"))
    place = lowered.test.threads[0].place
    own, peer = lowered.space.address("tile", 4, place), lowered.space.address("tile", 4, place, 1)
    assert own is not None and peer is not None and own != peer
    registers = {"rd1": own}
    for step in lowered.programs[0].steps:
        if isinstance(step.op, UndefinedIf):
            assert not value(step.op.when, registers)
            continue
        assert isinstance(step.op, Assign)
        registers[step.op.register] = value(step.op.value, registers)
    assert (registers["rd0"], registers["r0"]) == (peer, 1)


def elected(mask: str, lane: int) -> list[str]:
    """What elect.sync does in lane 0 or 1 of one warp, or (2) in a thread that is a warp of its own."""
    text = "PTX warp\n" + "".join(
        f"thread P{k} @ cta 0, warp {warp} {{ elect.sync _|%p, {mask}; }}\n" for k, warp in enumerate((0, 0, 1))
    )
    return shown(ops(read(text + "exists (true)\n"), lane))


def test_which_of_several_threads_is_elected_is_open() -> None:
    assert elected("-1", 2) == ["Assign(p 1)"]
    assert [step.split("(")[0] for step in elected("-1", 0)] == ["Unmodelled", "Assign"]
    assert [step.split("(")[0] for step in elected("%r0", 1)] == ["UndefinedIf", "Unmodelled", "Assign"]
    assert elected("2", 1) == ["Assign(p 1)"]
    outside = "UndefinedIf(a thread executes elect.sync with a mask that does not have its own lane "
    assert elected("2", 0) == [outside + "eq.u32(and.u32(2, 1), 0))", "Assign(p 0)"]


def test_a_mapped_name_is_an_address() -> None:
    assert ops(blocks("mapa.u64 %rd0, s, 1;")) == [Assign("rd0", AddressOf("s", 0, 1))]


# ---- what a thread knows, and what its author is told --------------------------------------------------------------


def test_constants_are_registers_assigned_once() -> None:
    test = blocks("mov.u32 %a, 1; mov.u32 %b, 1; add.u32 %b, %b, 1; @%p mov.u32 %c, 1; mov.u64 %d, x;")
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
    assert ("no target architecture" in "".join(warnings(test))) is (name is None)


MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%f0, %f1}, %rd0, %rd1, 0, 1, 1, 0, 0;"


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        (MMA, "undefined: no wgmma.fence stands before this wgmma.mma_async"),
        ("mbarrier.arrive.expect_tx.b64 _, [bar], 16;", "bytes are expected that no instruction of the test delivers"),
        (f"{LOAD} [tile], [src], 16, [bar];", "no thread expects the bytes of this copy"),
        (
            "tcgen05.shift.cta_group::1.down [acc]; tcgen05.shift.cta_group::2.down [acc];",
            ".cta_group::2 in a test that also has .cta_group::1",
        ),
        (
            f"mov.u64 %rd0, tile; mov.u64 %rd1, tile; wgmma.fence.sync.aligned; fence.proxy.async.global; {MMA}",
            "no async-proxy access of the test is to global memory",
        ),
    ],
)
def test_structural_hazards(line: str, warning: str) -> None:
    assert any(warning in text for text in warnings(blocks(line)))
    assert not any(warning in text for text in warnings(blocks("ret;")))


ANSWERED = """PTX answered
.shared .align 8 .b64 bar = mbarrier(1);
.shared .align 16 .b128 response;
thread P0 @ cta 0, cluster 0, gpu 0 {{
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [response], [bar];
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0;
  @!%p bra W;
  ld.shared::cluster.b128 %q0, [response@cta{cta}];
}}
thread P1 @ cta 1, cluster 0, gpu 0 {{
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
}}
exists (true)
"""


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize("cta", [0, 1])
def test_each_cta_is_told_that_the_response_is_in_its_own_memory(cta: int, engine: str) -> None:
    """ "The completion of the writes to addr of a particular CTA is signaled ... on the shared memory of that CTA"."""
    flags = api.check(ANSWERED.format(cta=cta), engine=engine).answer.flags
    assert ("undefined-unfinished-copy" in flags) is (cta == 1)
