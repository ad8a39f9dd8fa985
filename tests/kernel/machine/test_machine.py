"""Control flow, calls, local memory, tests that look ahead, tensor maps made on the device, launch
control.
"""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, text_of, verdict_of, wait, without
from helpers.kernel.samples import judged, kernel_text, launch

from memmodel.cat.load import load_model
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.flow.ahead import looking_ahead
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

CARRIES = """
add.cc.u32 %r10, 0, 0;
ld.global.u32 %r9, [%d0];
mov.u32 %r11, 1;
setp.eq.u32 %p5, %r9, 0;
{side}
addc.u32 %r12, 0, 0;
setp.ne.u32 %p6, %r12, 0;
@%p6 st.shared.u32 [%r2], %r0;
"""


@pytest.mark.parametrize("side", ["@%p5 bra Z;\nadd.cc.u32 %r11, %r11, -1;\nZ:", "@%p5 add.cc.u32 %r11, %r11, -1;"])
def test_data_decides_the_carry(side: str) -> None:
    """Where data decides whether an instruction sets the carry, it is not known afterwards."""
    assert judged(CARRIES.format(side=side)).word == "undecided"
    assert judged(CARRIES.format(side=side.replace("add.cc", "add"))).word == "clean"


FUNCTION = """
.func (.param .b32 f_ret) f(.param .b32 f_a, .param .b32 f_b)
{
.reg .b32 %r<4>; .reg .pred %p<2>;
ld.param.b32 %r0, [f_a];
ld.param.b32 %r1, [f_b];
setp.lt.u32 %p0, %r0, 16;
@%p0 bra SMALL;
add.s32 %r0, %r0, %r1;
SMALL:
st.param.b32 [f_ret], %r0;
ret;
}
"""
CALL = """{ .param .b32 a; .param .b32 b; .param .b32 c;
st.param.b32 [a], %r0;
st.param.b32 [b], 4096;
call.uni (c), f, (a, b);
ld.param.b32 %r10, [c];
}
"""


def reached(value: str, wanted: str) -> str:
    """A trap unless a register has a value."""
    return f"setp.eq.u32 %p7, {value}, {wanted};\n@%p7 bra GOOD;\ntrap;\nGOOD:\n"


def test_calls() -> None:
    """Lanes that take other ways in a function come back together."""
    wanted = "setp.lt.u32 %p6, %r0, 16;\nadd.s32 %r11, %r0, 4096;\nselp.b32 %r11, %r0, %r11, %p6;\n"
    body = CALL + wanted + reached("%r10", "%r11") + "bar.sync 0;\n"
    assert verdict_of(body, before=FUNCTION).word == "clean"
    assert "trap" in rules(verdict_of(CALL + reached("%r10", "%r0"), before=FUNCTION))


def test_an_unknown_function_is_named() -> None:
    declared = ".extern .func g(.param .b32 g_a);"
    verdict = verdict_of("{ .param .b32 a; st.param.b32 [a], 1; call.uni g, (a); }", before=declared)
    assert verdict.word == "undecided" and "the call of g is not known" in verdict.open[0]


@pytest.mark.parametrize(
    "body", ["ld.globl.u32 %r1, [%d0];", "st.relaxd.gpu.global.u32 [%d0], %r0;", "cvta.too.u64 %d1, %d0;"]
)
def test_a_qualifier_that_nothing_has_is_not_skipped(body: str) -> None:
    verdict = verdict_of(body)
    assert verdict.word == "undecided" and "unknown qualifier" in verdict.open[0]


TWO = """.func (.param .b32 g_ret) g(.param .b32 g_x)
{ .reg .b32 %r<2>; ld.param.b32 %r0, [g_x]; add.s32 %r0, %r0, 100; st.param.b32 [g_ret], %r0; ret; }
.func (.param .b32 h_ret) h(.param .b32 h_x)
{ .reg .b32 %r<2>; ld.param.b32 %r0, [h_x]; add.s32 %r0, %r0, 200; st.param.b32 [h_ret], %r0; ret; }
"""
THROUGH = """{ .param .b32 a; .param .b32 c;
st.param.b32 [a], %r0;
mov.u64 %d5, g;
mov.u64 %d6, h;
setp.lt.u32 %p5, %r0, 8;
selp.b64 %d7, %d5, %d6, %p5;
proto: .callprototype (.param .b32 _) _ (.param .b32 _);
call (c), %d7, (a), proto;
ld.param.b32 %r10, [c];
}
selp.b32 %r11, 100, 200, %p5;
add.s32 %r11, %r11, %r0;
"""


def test_calls_through_registers() -> None:
    """Lanes that call different functions have their turn one after the other, and meet again."""
    body = THROUGH + reached("%r10", "%r11") + "bar.warp.sync -1;\n"
    assert verdict_of(body, before=TWO).word == "clean"
    assert "trap" in rules(verdict_of(THROUGH + reached("%r10", "200"), before=TWO))
    wrong = verdict_of(THROUGH.replace("selp.b64 %d7, %d5, %d6, %p5", "mov.u64 %d7, %d0"), before=TWO)
    assert "undefined-instruction" in rules(wrong)
    unknown = verdict_of(THROUGH.replace("selp.b64 %d7, %d5, %d6, %p5", "ld.global.u64 %d7, [%d0]"), before=TWO)
    assert unknown.word == "undecided" and "which function is called" in unknown.open[0]


def test_the_workspace_of_a_cooperative_launch() -> None:
    """The barrier of a grid lies in memory that %envreg1 and %envreg2 name, zero at first."""
    body = (
        "mov.u32 %r10, %envreg2;\nmov.u32 %r11, %envreg1;\nmov.b64 %d5, {%r10, %r11};\nld.global.u32 %r12, [%d5+4];\n"
    )
    assert verdict_of(body + reached("%r12", "0")).word == "clean"


def test_vectors_of_atomic_operations() -> None:
    """Each element is an operation of its own, and each number of a packed one ("Memory Operations on Packed Data
    Types")."""
    body = "atom.global.v2.f32.add {%f0, _}, [%d0+8], {%f1, %f2};\n"
    body += "red.global.v4.f16x2.add.noftz [%d0+16], {%r5, %r6, %r7, %r8};\n"
    assert verdict_of(body, ctas=2).word == "clean"
    assert "data-race" in rules(verdict_of(body + "ld.global.f32 %f3, [%d0+12];", ctas=2))
    assert "mixed-size-race" in rules(verdict_of(body + "ld.global.f32 %f3, [%d0+28];", ctas=2))
    assert "data-race" in rules(verdict_of(body + "ld.global.b16 %h3, [%d0+30];", ctas=2))
    assert verdict_of(body + "ld.global.f32 %f3, [%d0+32];", ctas=2).word == "clean"
    assert "undefined-address" in rules(verdict_of(body.replace("+8]", "+4]")))


@pytest.mark.parametrize(
    ("offset", "race"), [(0, True), (30, True), (32, False), (64, True), (990, True), (992, False)]
)
def test_matrices_of_wmma(offset: int, race: bool) -> None:
    """16 rows of 16 halves, 32 elements apart: 32 bytes of every 64 are read."""
    load = "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}, [%r2], 32;\n"
    store = f"setp.ne.u32 %p5, %r0, 32;\n@%p5 bra X;\nst.shared.b16 [%r2+{offset}], %h1;\nX:"
    found = judged("setp.ge.u32 %p6, %r0, 32;\n@%p6 bra Y;\n" + load + "Y:\n" + store)
    assert rules(found) == ({"data-race"} if race else set())


@pytest.mark.parametrize(
    ("place", "stride", "undefined"),
    [
        ("%r2", "16", None),
        ("%r2", "20", "the stride of wmma.load.a is a multiple of 8"),
        ("%r2", "24", "taken for granted"),
        ("%r2", "8", "the stride of wmma.load.a is not below 16"),
        ("%r2", "-16", "the stride of wmma.load.a is not below 16"),
        ("%r2+16", "16", "misaligned for 32 bytes"),
        ("%r2+32", "16", None),
    ],
)
def test_lines_of_a_matrix_are_aligned_and_do_not_overlap(place: str, stride: str, undefined: str | None) -> None:
    registers = "{%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}"
    for given in (stride, "%r10"):
        body = f"mov.u32 %r10, {stride};\nsetp.ge.u32 %p6, %r0, 32;\n@%p6 bra Y;\n"
        body += f"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {registers}, [{place}], {given};\nY:\n"
        verdict = judged(body)
        messages = [finding.message for finding in verdict.findings]
        if undefined == "taken for granted":
            assert verdict.word == "clean"
            assert any("16 bytes apart are aligned enough" in text for text in verdict.assumptions)
        else:
            assert undefined is None or any(undefined in message for message in messages), messages
            wide = ["s, of .align 16, lies at a multiple of 32"]
            assert undefined is not None or (not messages and list(verdict.assumptions) == wide)


def test_results_that_come_with_a_predicate() -> None:
    body = "mov.u32 %r20, 12;\nmov.u32 %r21, 10;\nsetp.eq.u32 %p5, %r20, 0;\n"
    both = body + "lop3.or.b32 %r10|%p6, %r20, %r21, %r20, 0xc0, %p5;\nselp.u32 %r11, 1, 0, %p6;\n"
    assert verdict_of(both + reached("%r10", "8") + reached("%r11", "1").replace("GOOD", "G2")).word == "clean"
    none = body + "lop3.and.b32 _|%p6, %r20, %r21, %r20, 0xc0, %p5;\nselp.u32 %r11, 1, 0, %p6;\n"
    assert verdict_of(none + reached("%r11", "0")).word == "clean"
    whole = body + "set.lt.xor.u32.s32 %r10, %r21, %r20, %p5;\n"
    assert verdict_of(whole + reached("%r10", "0xffffffff")).word == "clean"
    assert verdict_of(body + "set.lt.f32.s32 %r10, %r21, %r20;\n" + reached("%r10", "0x3f800000")).word == "clean"


def test_bytes_of_registers() -> None:
    body = "mov.u32 %r20, 0x8070ff01;\nvadd.s32.s32.u32 %r10, %r20.b3, %r20.h0;\n"
    assert verdict_of(body + reached("%r10", "0xfe81")).word == "clean"


def test_zeros_in_bulk() -> None:
    """st.bulk writes as many bytes as its operand says."""
    body = "mov.u64 %d5, 64;\n@%p0 st.bulk.weak.shared::cta [%r2], %d5, 0;\nbar.warp.sync -1;\n"
    body += "ld.shared.u32 %r10, [%r2+{at}];\n"
    assert verdict_of(body.format(at=60) + reached("%r10", "0")).word == "clean"
    assert verdict_of(body.format(at=64) + reached("%r10", "0")).word == "undecided"
    assert "data-race" in rules(verdict_of(body.format(at=60).replace("bar.warp.sync -1;", "")))


def test_local_memory() -> None:
    """Each thread has its own, by bytes, also through a generic address."""
    body = """mov.b64 %d5, depot;
cvta.local.u64 %d6, %d5;
st.local.b32 [%d5+4], %r0;
ld.b8 %r10, [%d6+4];
"""
    assert verdict_of(body + reached("%r10", "%r0")).word == "clean"


def test_branches_through_a_table() -> None:
    """Triton reads the role of a warp as one byte of a word, and branches through a table."""
    body = """TABLE: .branchtargets A, B;
@%p0 st.shared.b32 [%r2], 0x00010001;
bar.sync 0;
shr.u32 %r10, %r0, 5;
add.s32 %r10, %r10, %r2;
ld.shared.b8 %r11, [%r10];
brx.idx %r11, TABLE;
A: mov.b32 %r12, 10; bra END;
B: mov.b32 %r12, 11;
END: sub.s32 %r13, %r12, %r11;
"""
    assert verdict_of(body + reached("%r13", "10"), threads=64).word == "clean"
    assert "undefined-instruction" in rules(verdict_of(body.replace("0x00010001", "0x00010007"), threads=64))


def test_an_increase_of_registers_waits_for_a_decrease() -> None:
    body = """setp.lt.u32 %p5, %r0, 128;
@%p5 bra A;
{dec}
bra END;
A: setmaxnreg.inc.sync.aligned.u32 248;
END: bar.sync 0;
"""
    threads = {"threads": 512}
    assert verdict_of(body.replace("{dec}", "setmaxnreg.dec.sync.aligned.u32 24;"), **threads).word == "clean"
    assert "hang" in rules(verdict_of(body.replace("{dec}", "mov.b32 %r9, 0;"), **threads))


OWNED = "setmaxnreg.dec.sync.aligned.u32 80;\nbar.sync 0;\n"


@pytest.mark.parametrize(
    ("before", "change", "undefined"),
    [
        (OWNED, "inc.sync.aligned.u32 80", False),
        (OWNED, "dec.sync.aligned.u32 80", False),
        (OWNED, "dec.sync.aligned.u32 88", True),
        (OWNED, "inc.sync.aligned.u32 72", True),
        ("", "dec.sync.aligned.u32 256", False),
    ],
)
def test_no_warp_gives_back_more_registers_than_it_owns_or_takes_fewer(
    before: str, change: str, undefined: bool
) -> None:
    """What the warp owns "should be greater than or equal to" the count of .dec, "less than or equal to" that of .inc,
    "Otherwise, the behaviour is undefined". How many it begins with, this entry does not say.
    """
    verdict = verdict_of(f"{before}setmaxnreg.{change};", threads=128)
    assert ("undefined-instruction" in rules(verdict)) is undefined
    side = "fewer" if change.startswith("dec") else "more"
    said = f"setmaxnreg.{change[:3]} to {change[-2:]} registers by a warp that owns {side}: 80"
    assert any(said in str(finding) for finding in verdict.findings) is undefined


@pytest.mark.parametrize("count", [168, 176])
def test_threads_begin_with_the_registers_of_maxnreg(count: int) -> None:
    text = kernel_text(f"setmaxnreg.dec.sync.aligned.u32 {count};").replace("sm_90", "sm_90a")
    read = parse_module(Source("k.ptx", text.replace("k_param_0)\n{", "k_param_0) .maxnreg 168\n{")))
    assert bool(judge(read, entry_of(read, "k"), launch(128), load_model("ptx-9.4")).findings) is (count > 168)


@pytest.mark.parametrize(("operation", "wanted"), [("popc.u32 %r10", 16), ("and.pred %p6", 0), ("or.pred %p6", 1)])
def test_barriers_that_reduce(operation: str, wanted: int) -> None:
    body = f"setp.lt.u32 %p5, %r0, 16;\nst.shared.b32 [%r3], %r0;\nbar.red.{operation}, 0, %p5;\n"
    shown = "" if "popc" in operation else "selp.b32 %r10, 1, 0, %p6;\n"
    read = "xor.b32 %r11, %r1, 128;\nadd.s32 %r11, %r11, %r2;\nld.shared.b32 %r12, [%r11];\n"
    assert verdict_of(body + shown + read + reached("%r10", str(wanted)), threads=64).word == "clean"
    assert rules(verdict_of(body.replace("bar.red", "//bar.red") + read, threads=64)) == {"data-race"}


# ---- looking ahead ---------------------------------------------------------------------------------------------

PEEK = (
    "@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\nbar.sync 0;\n"
    "@%p0 st.shared.b32 [%r2], %r0;\n@%p0 mbarrier.arrive.shared::cta.b64 _, [%r4];\n"
    "mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r4], 0;\nselp.b32 %r10, 1, 0, %p4;\n"
    "setp.ne.b32 %p5, %r10, 0;\n@%p5 bra GO;\n" + wait("%r4", 0) + "GO: ld.shared.b32 %r11, [%r2];\n"
)


def test_a_test_that_only_looks_ahead() -> None:
    assert verdict_of(PEEK).word == "clean"
    entry = entry_of(parse_module(Source("k.ptx", text_of(PEEK))), "k")
    assert len(looking_ahead(entry)) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[%r4], 0;\nselp", "[%r4+8], 0;\nselp"),  # another object
        ("GO: ld", "GO: mov.b32 %r12, %r10;\nst.shared.b32 [%r3+512], %r12;\nld"),  # the answer is stored
        ("mbarrier.try_wait.parity.shared::cta.b64 %p4", "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p4"),
    ],
)
def test_what_looks_ahead_in_another_way(old: str, new: str) -> None:
    assert old in PEEK
    init = "mbarrier.init.shared::cta.b64 [%r4], 1;"
    second = f"@%p0 {init.replace('[%r4]', '[%r4+8]')}\n@%p0 mbarrier.arrive.shared::cta.b64 _, [%r4+8];"
    body = PEEK.replace(old, new).replace(init, f"{init}\n{second}")
    assert verdict_of(body).word != "clean"


# ---- tensor maps -----------------------------------------------------------------------------------------------

MAP = (
    "@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\nfence.mbarrier_init.release.cluster;\n"
    "add.s32 %r10, %r2, 4096;\nadd.s32 %r11, %r10, %r1;\nst.shared.b32 [%r11], 0;\nbar.warp.sync -1;\n"
    "cvt.u64.u32 %d10, %r10;\nadd.s64 %d11, %d0, 32768;\n"
    "@!%p0 bra MADE;\n"
    + "".join(
        f"tensormap.replace.tile.{field}.shared::cta.b1024.{kind} [%d10], {value};\n"
        for field, kind, value in (
            ("global_address", "b64", "%d0"), ("rank", "b32", "0x1"), ("box_dim", "b32", "0x0, 64"),
            ("box_dim", "b32", "0x1, 16"), ("global_dim", "b32", "0x0, 64"), ("global_dim", "b32", "0x1, 64"),
            ("global_stride", "b64", "0x0, 128"), ("element_stride", "b32", "0x0, 1"),
            ("element_stride", "b32", "0x1, 1"), ("elemtype", "b32", "0x6"), ("swizzle_mode", "b32", "0x3"),
        )
    )
    + """MADE: bar.warp.sync -1 ;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d11], [%d10], 128;
fence.proxy.tensormap::generic.acquire.gpu [%d11], 128;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 2048;
@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%d11, {0, 0}], [%r4];
"""
    + wait("%r4", 0)
    + "ld.shared.b32 %r12, [%r3];\n"
)  # fmt: skip


def test_a_tensor_map_made_on_the_device() -> None:
    assert verdict_of(MAP).word == "clean"


@pytest.mark.parametrize(
    "missing",
    ["fence.proxy.tensormap::generic.acquire.gpu [%d11], 128;", "bar.sync 0;", "bar.warp.sync -1 ;"],
)
def test_a_tensor_map_without(missing: str) -> None:
    assert "data-race" in rules(verdict_of(without(MAP, missing)))


def test_an_acquire_fence_about_another_map() -> None:
    other = MAP.replace("acquire.gpu [%d11], 128", "acquire.gpu [%d11+128], 128")
    assert "data-race" in rules(verdict_of(other))


def test_an_acquire_fence_where_no_memory_is() -> None:
    """Warps of CUTLASS that have no map of their own fence the null pointer."""
    fence = "fence.proxy.tensormap::generic.acquire.gpu [{}], 128;\n"
    assert verdict_of("mov.b64 %d11, 0;\n" + fence.format("%d11")).word == "clean"
    shared = "cvt.u64.u32 %d11, %r2;\ncvta.shared.u64 %d11, %d11;\n"
    assert "undefined-address" in rules(verdict_of(shared + fence.format("%d11")))
    nowhere = MAP.replace("acquire.gpu [%d11], 128", "acquire.gpu [%d12], 128")
    assert "data-race" in rules(verdict_of("mov.b64 %d12, 0;\n" + nowhere))


def test_a_map_that_was_not_finished() -> None:
    line = "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%d10], 0x6;"
    verdict = verdict_of(without(MAP, line))
    assert verdict.word != "clean"


# ---- launch control --------------------------------------------------------------------------------------------

CLC = (
    "@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\nbar.sync 0;\n"
    "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;\n"
    "@%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r4];\n"
    + wait("%r4", 0)
    + """ld.shared.b128 %q0, [%r2];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p5, %q0;
@!%p5 bra END;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r10, %r11, %r12, _}, %q0;
setp.eq.u32 %p6, %r10, 0;
@!%p6 bra END;
trap;
END:
"""
)


def test_launch_control() -> None:
    assert not rules(verdict_of(CLC, ctas=2))
    assert "undefined-unfinished-copy" in rules(verdict_of(without(CLC, wait("%r4", 0)), ctas=2))


TILES = """mov.u32 %r20, 0;
mov.u32 %r21, 0;
@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
NEXT:
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
@%p0 fence.proxy.async.shared::cta;
@%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r4];
{ .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%r4], %r21; @!done bra AGAIN; }
ld.shared.b128 %q0, [%r2];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p5, %q0;
setp.eq.u32 %p6, %r20, TILE;
@%p6 st.shared.b32 [%r2+64], %r0;
add.u32 %r20, %r20, 1;
xor.b32 %r21, %r21, 1;
@%p5 bra NEXT;
"""
"""A CTA takes over one cluster after the other; in one round its threads store to one place."""


@pytest.mark.parametrize(("tile", "ctas", "found"), [(3, 4, True), (4, 4, False), (8, 64, True), (9, 64, False)])
def test_one_cluster_takes_over_several(tile: int, ctas: int, found: bool) -> None:
    verdict = verdict_of(TILES.replace("TILE", str(tile)), ctas=ctas)
    assert rules(verdict) == ({"data-race"} if found else set())
    assert {side.instruction.words[0] for one in verdict.findings for side in one.sides} <= {"st"}
    assert any(note.endswith(f"and with {min(ctas - 1, 8)}") for note in verdict.notes)


@pytest.mark.parametrize(("shift", "found"), [(0, False), (1, True)])
def test_a_cluster_that_is_taken_over_between_others(shift: int, found: bool) -> None:
    """Whose tile is the next one of four shares it with the cluster that started there."""
    tile = "mul.wide.u32 %d6, %r10, 4;\nadd.s64 %d6, %d6, %d0;\n@%p0 st.global.u32 [%d6], %r20;\n"
    take = "@%p5 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, %q0;\n"
    take += f"@%p5 add.u32 %r10, %r10, {shift};\nand.b32 %r10, %r10, 3;\n"
    body = TILES.replace("setp.eq.u32 %p6, %r20, TILE;\n@%p6 st.shared.b32 [%r2+64], %r0;\n", tile)
    body = "mov.u32 %r10, %ctaid.x;\n" + body.replace("@%p5 bra NEXT;", take + "@%p5 bra NEXT;")
    verdict = verdict_of(body, ctas=4)
    assert (rules(verdict), verdict.word) == (({"data-race"}, "findings") if found else (set(), "explored"))


def test_clusters_that_nobody_takes_over_start() -> None:
    """Each CTA asks once, and waits until all tiles are done: one of them has at most two tiles."""
    done = "@%p0 st.release.gpu.global.b32 [%d6], 1;\n"
    place = "mul.wide.u32 %d6, %r10, 4;\nadd.s64 %d6, %d6, %d0;\n" + done
    first = "mov.u32 %r10, %ctaid.x;\n" + place
    loop = "W{0}:\nld.acquire.gpu.global.b32 %r20, [%d0+{1}];\nsetp.ne.u32 %p7, %r20, 1;\n@%p7 bra W{0};\n"
    waits = "".join(loop.format(tile, 4 * tile) for tile in range(4))
    body = first + CLC.replace("setp.eq.u32 %p6, %r10, 0;\n@!%p6 bra END;\ntrap;\n", place) + waits
    verdict = judged(".reg .b128 %q<2>;\n" + body, 1, 4, "zero")
    assert verdict.word == "explored" and not verdict.findings, verdict


def test_a_request_after_a_refusal() -> None:
    request = "@%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r4];\n"
    again = CLC.replace("@!%p5 bra END;", request + "@!%p5 bra END;")
    assert "undefined-cancel" in rules(verdict_of(again, ctas=2))


@pytest.mark.parametrize(
    ("compute", "wanted"),
    [
        ("mad.wide.u32 %d5, %r0, 128, -128;", -128),
        ("mad.wide.s32 %d5, %r0, -1, 4294967296;", 1 << 32),
        ("slct.s64.s32 %d5, 4294967301, 7, %r0;", (1 << 32) + 5),
    ],
)
def test_a_number_that_is_written_has_the_width_of_its_operand(compute: str, wanted: int) -> None:
    """Any other result leads to a store beyond the shared memory."""
    body = f"{compute}\nsetp.ne.s64 %p2, %d5, {wanted};\n@%p2 st.shared.u32 [%r2+8192], 1;"
    assert judged(body, 1).word == "clean"
