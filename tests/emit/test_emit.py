"""A litmus test as a PTX module: the text, where things go, what is refused."""

from __future__ import annotations

import pytest

from memmodel.emit import EmittedModule, Target, emit, oldest_target
from memmodel.errors import InputError
from memmodel.litmus.parse import parse_litmus
from memmodel.source import Source

STORE_AND_LOAD = """PTX store-and-load
"One stores, the other loads"
.global .u32 x = 7;
thread P0 @ cta 0, gpu 0 {
    st.relaxed.gpu.global.u32 [x], 1;
}
thread P1 @ cta 1, gpu 0 {
    ld.relaxed.gpu.global.u32 %r0, [x];
}
exists (P1:r0 == 1)
"""

GOLDEN = """// store-and-load
// One stores, the other loads
// Launch: grid 2, block 32.
// Parameters: the output buffer (8 bytes for each slot).
// out[0]: P1:%r0
// exists P1:%r0 == 1
.version 9.3
.target sm_70
.address_size 64

.visible .global .align 4 .u32 x = 7;

.visible .entry litmus(
    .param .u64 mm_out
)
.reqntid 32, 1, 1
{
    .reg .pred %mm_p;
    .reg .b32 %mm_tid, %mm_lane, %mm_warp, %mm_cta, %mm_here, %mm_n, %mm_tmem;
    .reg .b64 %mm_out, %mm_x;
    ld.param.u64 %mm_out, [mm_out];
    cvta.to.global.u64 %mm_out, %mm_out;
    mov.u32 %mm_tid, %tid.x;
    and.b32 %mm_lane, %mm_tid, 31;
    shr.u32 %mm_warp, %mm_tid, 5;
    mov.u32 %mm_cta, %ctaid.x;
    mad.lo.u32 %mm_here, %mm_cta, 1, %mm_warp;

    setp.eq.u32 %mm_p, %mm_here, 0;
    @%mm_p bra mm_thread_P0;
    setp.eq.u32 %mm_p, %mm_here, 1;
    @%mm_p bra mm_thread_P1;
    bra mm_finish;

mm_thread_P0: // cta 0, gpu 0
{
    setp.ne.u32 %mm_p, %mm_lane, 0;
    @%mm_p bra mm_end_P0;
    st.relaxed.gpu.global.u32 [x], 1; // line 5
mm_end_P0:
}
    bra mm_finish;

mm_thread_P1: // cta 1, gpu 0
{
    .reg .b32 %r0;
    mov.b32 %r0, 0;
    setp.ne.u32 %mm_p, %mm_lane, 0;
    @%mm_p bra mm_end_P1;
    ld.relaxed.gpu.global.u32 %r0, [x]; // line 8
mm_end_P1:
    .reg .b64 %mm_v;
    setp.eq.u32 %mm_p, %mm_lane, 0;
    cvt.u64.u32 %mm_v, %r0;
    @%mm_p st.global.u64 [%mm_out+0], %mm_v;
}
    bra mm_finish;

mm_finish:
    ret;
}
"""


def module(declarations: str, *threads: str, condition: str = "true", target: str | None = None) -> EmittedModule:
    """The module of a test; a thread is `place { body }`."""
    blocks = "\n".join(f"thread P{n} @ {thread}" for n, thread in enumerate(threads))
    text = f'PTX sample\n"a sample"\n{declarations}\n{blocks}\nexists ({condition})\n'
    return emit(parse_litmus(Source("t.litmus", text)), Target.parse(target) if target else None)


def refusal(*arguments: str, condition: str = "true", target: str | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        module(*arguments, condition=condition, target=target)
    return caught.value


def test_a_small_module_word_for_word() -> None:
    assert emit(parse_litmus(Source("t.litmus", STORE_AND_LOAD))).text == GOLDEN


def test_every_instruction_knows_its_litmus_line() -> None:
    made = emit(parse_litmus(Source("t.litmus", STORE_AND_LOAD)))
    places = dict(zip(made.text.splitlines(), made.places, strict=True))
    (store,) = (place for line, place in places.items() if "st.relaxed" in line)
    assert store is not None
    assert store.text == "st.relaxed.gpu.global.u32 [x], 1"


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("bar.sync 0;", "sm_30"),
        ("fence.sc.gpu;", "sm_70"),
        ("fence.acquire.cta;", "sm_90"),
        ("wgmma.fence.sync.aligned;", "sm_90a"),
        ("tcgen05.fence::before_thread_sync;", "sm_100a"),
    ],
)
def test_the_target_is_the_oldest_that_will_do(line: str, target: str) -> None:
    assert str(module("", f"cta 0, gpu 0 {{ {line} }}").target) == target


def test_instructions_of_two_architectures_are_in_no_target() -> None:
    body = "cta 0, gpu 0 { wgmma.fence.sync.aligned; tcgen05.fence::before_thread_sync; }"
    assert "no target architecture" in refusal("", body).message


def test_a_target_that_is_too_old() -> None:
    error = refusal("", "cta 0, gpu 0 { fence.sc.cluster; }", target="sm_80")
    assert error.message == "sample needs sm_90, not sm_80"


@pytest.mark.parametrize("text", ["90a", "sm_", "sm_9x", "sm_90b", "sm_1000"])
def test_targets_are_spelled_as_ptx_spells_them(text: str) -> None:
    with pytest.raises(InputError, match="not a target architecture"):
        Target.parse(text)


def test_one_register_of_two_sizes_is_refused_at_the_second() -> None:
    error = refusal("", "cta 0, gpu 0 { add.u32 %r0, 1, 2; add.u64 %r0, 1, 2; }")
    assert error.message == "'%r0' is used as 64 bits"
    assert error.hint is not None and "it is 32 bits on line 4" in error.hint


def test_registers_have_the_class_that_their_instructions_ask_for() -> None:
    body = """cta 0, gpu 0 {
        ld.global.u64 %rd0, [p];
        ld.global.u8 %r1, [%rd0];
        setp.eq.u32 %q, %r2, 1;
        mul.wide.u32 %rd2, %r2, 4;
        mbarrier.arrive.shared.b64 %state, [bar];
        atom.global.cas.b16 %h, [h], 0, 1;
    }"""
    made = module(".global .u64 p; .global .b16 h; .shared .b64 bar = mbarrier(1);", body)
    declared = [line.strip() for line in made.text.splitlines() if line.startswith("    .reg") and "mm_" not in line]
    assert declared == [
        ".reg .b64 %rd0;",
        ".reg .b16 %r1;",
        ".reg .pred %q;",
        ".reg .b32 %r2;",
        ".reg .b64 %rd2;",
        ".reg .b64 %state;",
        ".reg .b16 %h;",
    ]


def test_only_one_lane_touches_memory_where_a_whole_warp_runs() -> None:
    text = module(".global .u32 x;", "cta 0, gpu 0 { ld.global.u32 %r0, [x]; bar.sync 0; }").text
    assert "@%mm_lead ld.global.u32 %r0, [x];" in text
    assert "shfl.sync.idx.b32 %r0, %r0, 0, 31, 0xffffffff;" in text
    assert "    bar.sync 0; // line 4" in text


def test_a_guard_is_combined_with_the_leading_lane() -> None:
    text = module(".global .u32 x;", "cta 0, gpu 0 { @!%p st.global.u32 [x], 1; bar.sync 0; }").text
    assert "not.pred %mm_do, %p;\n    and.pred %mm_do, %mm_do, %mm_first;\n    @%mm_do st.global.u32 [x], 1;" in text


def test_wgmma_takes_a_warpgroup_at_a_multiple_of_four_warps() -> None:
    text = module("", "cta 0, gpu 0 { fence.sc.cta; }", "cta 0, gpu 0 { wgmma.fence.sync.aligned; }").text
    assert "Launch: grid 1, block 160." in text
    assert "setp.eq.u32 %mm_p, %mm_here, 4;\n    @%mm_p bra mm_thread_P0;" in text


def test_who_loads_tensor_memory_is_the_first_warp_of_a_warpgroup() -> None:
    load = "cta 0 { tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [t]; tcgen05.wait::ld.sync.aligned; }"
    text = module(".tensor .b32 t[8];", "cta 0 { membar.cta; }", load, load).text
    assert "block 288" in text  # warps 0, 4 and 8
    assert [f"setp.eq.u32 %mm_p, %mm_here, {warp};" in text for warp in (0, 1, 4, 8)] == [True, False, True, True]


def test_every_lane_waits_and_orders_its_own_operations() -> None:
    text = module(
        ".tensor .b32 t[8]; .shared .b64 bar = mbarrier(1);",
        """cta 0 {
        L: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra L;
        mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], 0;
        tcgen05.fence::after_thread_sync;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [t];
        tcgen05.wait::ld.sync.aligned; }""",
    ).text
    lines = [line.split(" //")[0].strip() for line in text.splitlines()]
    assert "mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;" in lines
    assert "@%mm_lead mbarrier.test_wait.parity.shared::cta.b64 %q, [bar], 0;" in lines
    meet = "bar.warp.sync 0xffffffff;"
    assert lines[lines.index("@!%p bra L;") + 1] == meet  # a lane that waited by itself might miss two phases
    for line in ("tcgen05.fence::after_thread_sync;", "tcgen05.wait::ld.sync.aligned;"):
        at = lines.index(line)
        assert lines[at - 1] == lines[at + 1] == meet


def test_what_the_lanes_copy_of_a_tensor_map_comes_before_what_the_first_lane_does_next() -> None:
    copy = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [g], [s], 128;"
    maps = ".{} .align 128 .b8 {}[128] = tensormap(f, {{4}}, {{4}});"
    text = module(
        f".global .align 16 .u32 f[4]; {maps.format('global', 'g')} {maps.format('shared', 's')}",
        f"cta 0 {{ {copy} tensormap.replace.tile.rank.global.b1024.b32 [g], 0; }}",
    ).text
    lines = [line.split(" //")[0].strip() for line in text.splitlines()]
    at = lines.index(copy)
    assert lines[at - 1] == lines[at + 1] == "bar.warp.sync 0xffffffff;"


def test_at_the_end_warps_meet_at_a_barrier_that_the_test_leaves_alone() -> None:
    shared, ends = ".shared .u32 s;", "s == 0"
    free = module(shared, "cta 0 { bar.sync 15; }", "cta 0 { bar.sync 15; }", condition=ends).text
    assert "bar.sync 14;" in free and "mm_done" not in free
    unknown = module(shared, "cta 0 { mov.u32 %r0, 3; bar.sync %r0; }", condition=ends).text
    assert "atom.shared.add.u32 %mm_n, [mm_done], 1;" in unknown
    pair = "cta {}, cluster 0 {{ {} }}"
    meets = "barrier.cluster.arrive; barrier.cluster.wait;"
    away = module(shared, *(pair.format(n, "membar.cta;") for n in (0, 1))).text
    assert away.count("barrier.cluster.wait.aligned;") >= 1 and "mm_left" not in away
    assert "mm_left" in module(shared, *(pair.format(n, meets) for n in (0, 1))).text


def test_threads_of_one_warp_are_its_lanes() -> None:
    text = module("", "cta 0, warp 0 { bar.warp.sync 3; }", "cta 0, warp 0 { bar.warp.sync 3; }").text
    assert "Launch: grid 1, block 32." in text
    assert "setp.eq.and.u32 %mm_p, %mm_lane, 1, %mm_p;\n    @%mm_p bra mm_thread_P1;" in text


def test_another_ctas_shared_memory_is_reached_by_mapa() -> None:
    text = module(
        ".shared .u32 s[4];",
        "cta 0, cluster 0 { st.shared::cluster.u32 [s@cta1+4], 1; }",
        "cta 1, cluster 0 { st.shared.u32 [s], 1; }",
    ).text
    assert ".reqnctapercluster 2, 1, 1" in text
    assert "mapa.shared::cluster.u32 %mm_a0, s, 1;" in text
    assert "st.shared::cluster.u32 [%mm_a0+4], 1;" in text
    assert "st.shared.u32 [s], 1;" in text


def test_an_alias_is_a_pointer_that_the_host_passes() -> None:
    text = module(".global .u32 x; y aliases x;", "cta 0 { ld.global.u32 %r0, [y]; ld.u32 %r1, [x]; }").text
    assert ".param .u64 mm_ptr_y" in text
    assert "ld.global.u32 %r0, [%mm_a0];" in text
    assert "cvta.global.u64 %mm_a1, %mm_a1;" in text
    assert "mad.lo.u64 %mm_z, %mm_zero, 1, %mm_a1;" in text  # the second load of y
    assert "ld.u32 %r1, [%mm_z];" in text


def test_several_gpus_share_memory_through_pointers() -> None:
    text = module(
        ".global .u32 x = 3;", "cta 0, gpu 0 { ld.global.u32 %r0, [x]; }", "cta 0, gpu 1 { fence.sc.sys; }"
    ).text
    assert "// x: 3" in text
    assert ".param .u64 mm_ptr_x" in text
    assert ".param .u32 mm_gpu" in text


def test_shared_variables_of_the_condition_are_stored_by_the_last_warp() -> None:
    text = module(".shared .u32 s[2] = {0, 5};", "cta 0 { ret; }", condition="s[1] == 5").text
    assert "// out[0]: s[1]" in text
    assert "st.shared.b32 [s+4], 5;" in text
    assert "ld.shared.u32 %mm_x, [s+4];" in text


def test_ret_goes_where_results_are_stored() -> None:
    text = module(".global .u32 x;", "cta 0 { @%p ret; ld.global.u32 %r0, [x]; }", condition="P0:r0 == 1").text
    assert "@%p bra mm_end_P0; // line 4" in text


def test_objects_are_initialised_before_any_thread_begins() -> None:
    text = module(
        ".shared .b64 bar = mbarrier(2);", "cta 0 { mbarrier.arrive.release.cluster.shared.b64 _, [bar]; }"
    ).text
    assert (
        "mbarrier.init.shared.b64 [bar], 2;\n    fence.mbarrier_init.release.cluster;\nmm_ready:\n    bar.sync 0;"
        in text
    )


def test_every_element_is_declared_and_initialised_whatever_values_the_test_names() -> None:
    text = module(
        """.global .u32 g[4096] = {0, 7};
        .global .b128 wide = -2;
        .shared .u32 few[3] = {0, 9};
        .shared .u32 many[100] = {5};
        .shared .b128 pair = -2;
        .shared .b64 bars[2] = mbarrier(3);
        .tensor .b32 acc[64];
        .tensor .b32 next[8];""",
        "cta 0 { tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [next]; tcgen05.wait::ld.sync.aligned; }",
    ).text
    lines = [line.strip() for line in text.splitlines()]
    assert ".visible .global .align 128 .u32 g[4096] = {0, 7};" in lines
    assert {".shared .align 128 .u32 few[3];", ".shared .align 128 .u32 many[100];"} <= set(lines)
    assert [line for line in lines if line.startswith(("st.shared.b32 [few", "st.shared.b32 [many"))] == [
        "st.shared.b32 [few], 0;",
        "st.shared.b32 [few+4], 9;",
        "st.shared.b32 [few+8], 0;",
        "st.shared.b32 [many], 5;",
    ]
    assert "mov.u32 %mm_n, 400;" in lines
    assert {"mbarrier.init.shared.b64 [bars], 3;", "mbarrier.init.shared.b64 [bars+8], 3;"} <= set(lines)
    assert {"st.shared.b64 [pair], 0xfffffffffffffffe;", "st.shared.b64 [pair+8], 0xffffffffffffffff;"} <= set(lines)
    assert "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [mm_tmem_at], 128;" in lines
    assert "// next: tensor memory from column 64" in lines


def test_a_128_bit_result_reaches_the_whole_warp() -> None:
    text = module(".shared .b128 s;", "cta 0 { ld.shared.b128 %h, [s]; bar.sync 0; }").text
    assert "mov.b128 {%mm_low, %mm_high}, %h;" in text
    assert text.count("shfl.sync.idx.b32") == 4
    assert "mov.b128 %h, {%mm_low, %mm_high};" in text


def test_offsets_are_spelled_as_ptx_reads_them() -> None:
    text = module(
        ".global .u32 x[4];", "cta 0 { ld.global.u32 %r0, [%rd0-4]; }", "cta 1 { ld.global.u32 %r0, [x+8]; }"
    ).text
    assert "[%rd0+-4];" in text
    assert "[x+8];" in text


def test_names_of_the_set_up_are_left_to_it() -> None:
    text = module(".global .u32 mm_p;", "cta 0 { ld.global.u32 %mm_p, [mm_p]; }").text
    assert "ld.global.u32 %v_mm_p, [v_mm_p];" in text


COLUMNS = """PTX sample
{{ x = 0; P0:r0 = 0; }}
 P0@cta 0,gpu 0 ;
 {} ;
exists (P0:r0 == 0)
"""


def test_columns_with_types_are_emitted() -> None:
    test = parse_litmus(Source("t.litmus", COLUMNS.format("ld.relaxed.gpu.global.u32 r0, x")))
    assert "ld.relaxed.gpu.global.u32 %r0, [x];" in emit(test).text


def test_columns_without_types_are_refused_with_a_hint() -> None:
    test = parse_litmus(Source("t.litmus", COLUMNS.format("ld.relaxed.gpu r0, x")))
    with pytest.raises(InputError) as caught:
        emit(test)
    assert caught.value.message == "not a PTX instruction: ld.relaxed.gpu needs a type"
    assert caught.value.hint is not None and "fmt --layout blocks" in caught.value.hint


def test_the_oldest_target_of_a_test_without_instructions_is_the_oldest_of_all() -> None:
    assert oldest_target(parse_litmus(Source("t.litmus", COLUMNS.format("")))) == Target(30)


def test_a_loop_around_an_instruction_without_operands_is_emitted() -> None:
    body = "W: barrier.cluster.wait;\n@!%p bra W;"
    text = "PTX t\n.global .u32 x;\nthread P0 @ cta 0, gpu 0 {\n" + body + "\n}\nexists true\n"
    assert "barrier.cluster.wait" in emit(parse_litmus(Source("t.litmus", text))).text
