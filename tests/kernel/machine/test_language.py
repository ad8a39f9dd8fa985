"""The language around instructions: initial values, directives, calls, registers wider than what they receive."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import verdict_of
from helpers.kernel.samples import HEAD, judged

from memmodel.errors import InputError
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import AddressValue
from memmodel.source import Source


def rules(body: str, before: str = "", threads: int = 64) -> set[str]:
    """The rules that are broken, or that the run could not be decided."""
    verdict = judged(body, threads, before=before)
    return {one.rule for one in verdict.findings} | ({verdict.word} - {"clean", "findings"})


def reached(value: str, wanted: str, kind: str = "u32") -> str:
    """A trap unless a register has a value."""
    return f"setp.eq.{kind} %p7, {value}, {wanted};\n@%p7 bra GOOD;\ntrap;\nGOOD:\n"


@pytest.mark.parametrize("name", ["warpid", "nwarpid"])
def test_the_number_of_a_warp_is_not_that_of_its_threads(name: str) -> None:
    assert rules(f"mov.u32 %r5, %{name};\n" + reached("%r5", "0"), threads=32) == {"undecided"}


# ---- initial values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "content"),
    [
        (".global .f32 x[3] = {1.0, 0fBF800000, -2};", "0000803f 000080bf 000000c0"),
        (".const .f64 x = 0d3FF8000000000000;", "000000000000f83f"),
        (".global .f32 x = -1.5;", "0000c0bf"),
        (".global .s16 x[2][2] = {{-1}, {2, 3}};", "ffff 0000 0200 0300"),
        (".global .b8 x[2][3] = {{1, 2}, {3}};", "010200 03"),
        (".global .u32 x[] = {1, 2, 3};", "01000000 02000000 03000000"),
    ],
)
def test_initial_values(declared: str, content: str) -> None:
    initial = parse_module(Source("x.ptx", HEAD + declared)).variables["x"].initial
    assert initial is not None and initial.content == bytes.fromhex(content)


def test_initial_addresses() -> None:
    text = ".global .u32 a[4]; .global .u64 x[3] = {a, generic(a)+4, a-8}; .global .u8 y[2] = {0xff(a), 0xff00(a)};"
    found = parse_module(Source("x.ptx", HEAD + text)).variables
    first, second = found["x"].initial, found["y"].initial
    assert first is not None and second is not None
    assert [(one.at, one.name, one.addend) for one in first.addresses] == [(0, "a", 0), (8, "a", 4), (16, "a", -8)]
    assert second.addresses[1] == AddressValue(1, 1, "a", 0, 8)


TABLE = """
.func (.param .b32 g_ret) g(.param .b32 g_x)
{ .reg .b32 %r<2>; ld.param.b32 %r0, [g_x]; add.s32 %r0, %r0, 100; st.param.b32 [g_ret], %r0; ret; }
.func (.param .b32 h_ret) h(.param .b32 h_x)
{ .reg .b32 %r<2>; ld.param.b32 %r0, [h_x]; add.s32 %r0, %r0, 200; st.param.b32 [h_ret], %r0; ret; }
.global .align 8 .u64 table[2] = {g, h};
"""
FROM_TABLE = """
and.b32 %r5, %r0, 1;
mul.wide.u32 %d1, %r5, 8;
mov.u64 %d2, table;
add.s64 %d2, %d2, %d1;
ld.global.u64 %d3, [%d2];
{ .param .b32 a; .param .b32 c;
st.param.b32 [a], %r0;
proto: .callprototype (.param .b32 _) _ (.param .b32 _);
call (c), %d3, (a), proto;
ld.param.b32 %r10, [c];
}
mad.lo.s32 %r11, %r5, 100, 100;
add.s32 %r11, %r11, %r0;
"""


def test_functions_in_a_table() -> None:
    assert rules(FROM_TABLE + reached("%r10", "%r11"), TABLE) == set()
    assert "trap" in rules(FROM_TABLE + reached("%r10", "%r0"), TABLE)


def test_a_pointer_to_a_variable() -> None:
    before = ".global .align 4 .u32 v[64];\n.global .align 8 .u64 p = generic(v)+4;\n"
    store = "ld.global.u64 %d2, [p];\nst.u32 [%d2], %r0;\n"
    assert rules(store, before, 32) == {"data-race"}
    assert rules(store.replace("generic(v)", "v"), before + ".extern .global .u64 q;", 1) == set()
    unknown = "ld.global.u64 %d2, [q];\nst.u32 [%d2], %r0;\n"
    assert rules(unknown, ".extern .global .align 8 .u64 q;\n", 1) == {"undecided"}


# ---- calls -----------------------------------------------------------------------------------------------------

FIBONACCI = """
.func (.param .b32 f_ret) f(.param .b32 f_n);
.func (.param .b32 f_ret) f(.param .b32 f_n)
{
.reg .b32 %r<8>; .reg .pred %p<2>;
ld.param.b32 %r0, [f_n];
mov.b32 %r5, %r0;
setp.lt.u32 %p0, %r0, 2;
@%p0 bra END;
sub.s32 %r1, %r0, 1;
{ .param .b32 a; .param .b32 c; st.param.b32 [a], %r1; call (c), f, (a); ld.param.b32 %r2, [c]; }
sub.s32 %r3, %r0, 2;
{ .param .b32 a; .param .b32 c; st.param.b32 [a], %r3; call (c), f, (a); ld.param.b32 %r4, [c]; }
add.s32 %r5, %r2, %r4;
END:
st.param.b32 [f_ret], %r5;
ret;
}
"""
CALL = """
and.b32 %r7, %r0, 1;
add.s32 %r7, %r7, 6;
{ .param .b32 a; .param .b32 c; st.param.b32 [a], %r7; call (c), f, (a); ld.param.b32 %r10, [c]; }
and.b32 %r8, %r0, 1;
mad.lo.s32 %r8, %r8, 5, 8;
"""


def test_a_function_that_calls_itself() -> None:
    """f(6) is 8 and f(7) is 13: lanes go to different depths."""
    assert rules(CALL + reached("%r10", "%r8"), FIBONACCI) == set()
    assert "trap" in rules(CALL + reached("%r10", "8"), FIBONACCI)


@pytest.mark.parametrize(("body", "found"), [("ret;", {"undefined-instruction"}), ("exit;", set())])
def test_a_function_that_is_said_not_to_return(body: str, found: set[str]) -> None:
    """ "If a function with .noreturn directive returns to the caller function at runtime, then the behavior is
    undefined" (.noreturn).
    """
    assert rules("call f;", f".func f() .noreturn {{ {body} }}\n") == found


def test_a_function_with_local_memory_that_calls_itself_is_named() -> None:
    local = FIBONACCI.replace(".reg .b32 %r<8>;", ".local .b32 depot; .reg .b32 %r<8>;")
    verdict = judged(CALL, before=local)
    assert verdict.word == "undecided" and "by itself" in verdict.open[0]


# ---- directives, registers -------------------------------------------------------------------------------------


def test_newer_directives() -> None:
    text = """
.func .attribute(.unified(0xAB, 0xCD)) (.param .b32 r) f(.param .b32 x)
.language "nvvm", "ptx", 7
{ .reg .b32 %r<2>; .loc 1 2 3
.loc_intermediate 2 23 6
ld.param.b32 %r0, [x]; st.param.b32 [r], %r0; ret; }
.func (.param .b32 r) g(.param .b32 x);
.alias g, f;
.file 1 "a.cu"
.nv_intermediate_source_section {
.code_block { .ir_name: "TileIR" .sourceFileName: 2 .source_begin
  it's #anything {{ at all .source
.source_end } }
"""
    call = "{ .param .b32 a; .param .b32 c; st.param.b32 [a], 7; call (c), g, (a); ld.param.b32 %r10, [c]; }\n"
    assert rules(call + reached("%r10", "7"), text) == set()


@pytest.mark.parametrize(
    ("written", "value"),
    [("4*8+1", 33), ("1+4*8", 33), ("(1<<4)-1", 15), ("~0 & 0xFF", 255), ("0xF0 | 3", 0xF3), ("-(3)", -3 & 0xFFFFFFFF),
     ("1 << 2 << 3", 32), ("7 ^ 2 & 3", 5), ("64 >> 2 - 1", 32)],
)  # fmt: skip
def test_constant_expressions(written: str, value: int) -> None:
    assert rules(f"mov.u32 %r10, {written};\n{reached('%r10', str(value))}", threads=1) == set()


def test_constant_expressions_in_addresses() -> None:
    body = "st.shared.u32 [%r2+4*8-(1<<2)], 5;\nld.shared.u32 %r10, [%r2+28];\n"
    assert rules(body + reached("%r10", "5"), threads=1) == set()
    for bad in ("1 +", "(1", "1 << -1", "2.5 + 1", "(" * 80):
        with pytest.raises(InputError):
            rules(f"mov.u32 %r10, {bad};\n")


def test_directives_without_space() -> None:
    assert rules("{.reg.b32 t;.reg.pred q; mov.b32 t, 5;" + reached("t", "5") + "}") == set()


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("cvt.s8.s32 %r10, 200;", "0xffffffc8"),
        ("cvt.sat.s8.s32 %r10, -1000;", "0xffffff80"),
        ("cvt.u8.s32 %r10, -1;", "0xff"),
        ("mov.b32 %r9, 0x8000;\nst.shared.b32 [%r2], %r9;\nld.shared.s16 %r10, [%r2];", "0xffff8000"),
        ("cvt.s16.s8 %h1, 0x90;\ncvt.u32.u16 %r10, %h1;", "0xff90"),
    ],
)
def test_signed_results_fill_the_register(body: str, wanted: str) -> None:
    assert rules(f"{body}\n{reached('%r10', wanted)}", threads=1) == set()


# ---- warps -----------------------------------------------------------------------------------------------------

TILES = """
and.b32 %r7, %r0, 24;
mov.b32 %r8, 255;
shl.b32 %r8, %r8, %r7;
st.shared.u32 [%r3], %r0;
bar.warp.sync %r8;
xor.b32 %r9, %r1, 12;
add.s32 %r9, %r9, %r2;
ld.shared.u32 %r10, [%r9];
"""


def test_tiles_of_a_warp() -> None:
    """Lanes of a warp that give different masks meet in their own teams."""
    assert rules(TILES, threads=32) == set()
    assert rules(TILES.replace("bar.warp.sync %r8;\n", ""), threads=32) == {"data-race"}
    assert rules(TILES.replace("xor.b32 %r9, %r1, 12", "xor.b32 %r9, %r1, 32"), threads=32) == {"data-race"}


POLL = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
@%p0 st.shared.u32 [%r2], 7;
@%p0 mbarrier.arrive.shared.b64 _, [%r4];
HEAD:
mov.u32 %r20, bar;
mov.u32 %r21, 0;
mbarrier.try_wait.parity.shared.b64 %p5, [%r20], %r21;
selp.b32 %r22, 1, 0, %p5;
setp.eq.s32 %p6, %r22, 0;
@%p6 bra HEAD;
ld.shared.u32 %r10, [%r2];
"""


def test_a_poll_that_computes_its_operands_again() -> None:
    assert rules(POLL) == set()
    changing = POLL.replace("mov.u32 %r21, 0;", "xor.b32 %r21, %r21, 1;").replace("HEAD:", "mov.u32 %r21, 1;\nHEAD:")
    assert rules(changing) == {"data-race"}, "it asks for parity 0, then for 1, which the phase before the first has"
    entered = POLL.replace("bar.sync 0;", "bar.sync 0;\n@%p0 bra MIDDLE;").replace(
        "mbarrier.try", "MIDDLE:\nmbarrier.try"
    )
    assert rules(entered) == {"undefined-register"}
    given = "mov.u32 %r20, %r4;\nmov.u32 %r21, 0;\n@%p0 bra MIDDLE;\nHEAD:"
    inside = POLL.replace("HEAD:", given).replace("mbarrier.try", "MIDDLE:\nmbarrier.try")
    assert rules(inside) == set(), "lane 0 has the same in these registers before the first round"
    assert rules(inside.replace("%r21, 0;\n@%p0 bra", "%r21, 2;\n@%p0 bra")) == {"undefined-instruction"}, (
        "it asks for 2: the valid values of phaseParity are 0 and 1"
    )


def test_shared_memory_of_the_libraries() -> None:
    own = "mov.u32 %r9, %reserved_smem_offset_1;\nadd.s32 %r9, %r9, %r1;\nst.shared.u32 [%r9], %r0;\n"
    assert rules(own, threads=32) == set()
    assert rules("mov.u32 %r9, 512;\nst.shared.u32 [%r9], %r0;\n", threads=32) == {"undefined-address"}


def test_predicates_that_one_operand_decides() -> None:
    data = "ld.global.u32 %r5, [%d0];\nsetp.eq.u32 %p1, %r5, 0;\nsetp.lt.u32 %p2, %r0, 64;\n"
    assert rules(data + "or.pred %p3, %p1, %p2;\n@%p3 bra GOOD;\ntrap;\nGOOD:\n") == set()
    assert rules(data + "and.pred %p3, !%p2, %p1;\n@!%p3 bra GOOD;\ntrap;\nGOOD:\n") == set()
    assert rules(data + "and.pred %p3, %p2, %p1;\n@!%p3 bra GOOD;\ntrap;\nGOOD:\n") == {"undecided"}


# ---- memory of a thread, calls on data, textures --------------------------------------------------------------

STACK = """
stacksave.u64 %d1;
alloca.u64 %d2, 40;
alloca.u64 %d3, 8, 64;
st.local.u32 [%d2+36], %r0;
st.local.u32 [%d3], 9;
ld.local.u32 %r10, [%d2+36];
and.b64 %d4, %d3, 63;
cvt.u32.u64 %r11, %d4;
sub.s32 %r10, %r10, %r0;
add.s32 %r10, %r10, %r11;
stackrestore.u64 %d1;
stacksave.u64 %d5;
sub.s64 %d6, %d5, %d1;
cvt.u32.u64 %r12, %d6;
add.s32 %r10, %r10, %r12;
"""


def test_stack() -> None:
    assert rules(STACK + reached("%r10", "0")) == set()
    assert "trap" in rules(STACK + reached("%r10", "1"))
    assert rules("alloca.u64 %d2, 100000;\n") == {"undecided"}


LOCAL = """
.local .align 4 .b8 lo[64];
ld.global.u32 %r5, [%d0];
and.b32 %r5, %r5, 60;
mov.u32 %r6, lo;
add.s32 %r6, %r6, %r5;
st.local.u32 [lo], 3;
st.local.u32 [%r6], 4;
ld.local.u32 %r7, [lo];
"""


def test_unknown_addresses_in_local_memory() -> None:
    """A store somewhere in it leaves nothing known; nobody else sees it."""
    verdict = judged(LOCAL + "st.shared.u32 [%r3], %r7;\n")
    assert verdict.word == "clean" and "local memory" in next(iter(verdict.assumptions))
    assert judged(LOCAL + reached("%r7", "3")).word == "undecided"


SLOW = """
.func (.param .b32 f_ret) f(.param .b32 f_x)
{
.reg .b32 %r<4>; .reg .pred %p<2>;
ld.param.b32 %r0, [f_x];
LOOP:
shr.u32 %r0, %r0, 1;
setp.gt.u32 %p0, %r0, 100;
@%p0 bra LOOP;
st.param.b32 [f_ret], %r0;
ret;
}
"""
ON_DATA = """
ld.global.u32 %r5, [%d0];
setp.lt.u32 %p5, %r5, 100;
@%p5 bra FAST;
{ .param .b32 a; .param .b32 c; st.param.b32 [a], %r5; call (c), f, (a); ld.param.b32 %r5, [c]; }
FAST:
st.shared.u32 [%r3], %r5;
bar.sync 0;
ld.shared.u32 %r6, [%r2];
"""


def test_a_call_on_one_side_of_a_branch_on_data() -> None:
    verdict = judged(ON_DATA, before=SLOW)
    assert verdict.word == "clean" and "only computes, ends" in next(iter(verdict.assumptions))
    assert rules(ON_DATA.replace("bar.sync 0;\n", ""), SLOW) == {"data-race"}
    stores = SLOW.replace("st.param", "st.shared.u32 [0x800], 1;\nst.param")
    assert rules(ON_DATA, stores) == {"undecided"}


def test_textures_are_read_only() -> None:
    fetch = "tex.1d.v4.u32.s32 {%r5, %r6, %r7, %r8}, [%d0, {%r0}];\ntxq.width.b32 %r9, [%d0];\n"
    verdict = judged(fetch + "st.shared.u32 [%r3], %r5;\n")
    assert verdict.word == "clean" and "texture" in next(iter(verdict.assumptions))
    assert judged(fetch + reached("%r9", "1")).word == "undecided"
    verdict = judged("sust.b.1d.b32.trap [%d0, {%r0}], %r5;\n")
    assert verdict.word == "undecided" and "sust.b.1d.b32.trap" in verdict.open[0]


def test_qualifiers_after_the_type() -> None:
    assert rules("max.s32.relu %r10, -5, -3;\n" + reached("%r10", "0")) == set()


@pytest.mark.parametrize(("count", "shape", "rows"), [("x4", "m8n8", 32), ("x1", "m16n16", 16), ("x2", "m16n8", 16)])
def test_rows_of_matrices(count: str, shape: str, rows: int) -> None:
    """A lane that names a row misses its alignment; one that names none may point anywhere."""
    kind = "b16" if shape == "m8n8" else "b8"
    registers = "{%r10, %r11, %r12, %r13}" if count == "x4" else "{%r10, %r11}"
    words = f"sync.aligned.{shape}.{count}.{'' if shape == 'm8n8' else 'trans.'}shared.{kind}"
    text = f"stmatrix.{words} [%r9], {registers};" if shape == "m16n8" else f"ldmatrix.{words} {registers}, [%r9];"
    place = "shl.b32 %r9, %r0, 4;\nadd.s32 %r9, %r9, %r2;\nsetp.eq.u32 %p5, %r0, {};\n@%p5 add.s32 %r9, %r9, 4;\n"
    assert rules(place.format(rows - 1) + text, threads=32) == {"undefined-address"}
    assert rules(place.format(rows) + text, threads=32) == set()


LINE = "setp.eq.s32 %p1, %r0, 0;\n{before}bar.sync 0;\n{after}"
DISCARD = "@%p1 discard.global.L2 [%d0], 128;\n"
LOOK = "@!%p1 ld.global.u32 %r10, [%d0+64];\n"


def test_discard_is_a_weak_write_of_128_bytes() -> None:
    assert not rules(LINE.format(before=LOOK, after=DISCARD))
    assert rules(LINE.format(before="", after=DISCARD + LOOK)) == {"data-race"}
    assert not rules(LINE.format(before="", after=DISCARD + LOOK.replace("+64", "+128")))
    assert rules("discard.L2 [%d0], 128;", threads=32) == {"same-store-race"}
    assert rules("discard.L2 [%d0+64], 128;", threads=1) == {"undefined-address"}


def test_what_is_discarded_is_not_known() -> None:
    """Not even that two lanes load the same."""
    known = "st.global.u32 [%d0], 1;\n{}ld.global.u32 %r10, [%d0];\nsetp.ne.u32 %p3, %r10, 1;\n@%p3 trap;"
    assert judged(known.format(""), threads=1).word == "clean"
    assert judged(known.format("discard.L2 [%d0], 128;\n"), threads=1).word == "undecided"
    stored = "{}bar.sync 0;\nld.global.u32 %r10, [%d0];\nst.shared.u32 [%r2], %r10;"
    assert rules(stored.format(""), threads=32) == {"equal-store-race"}
    assert "same-store-race" in rules(stored.format(DISCARD.replace("@%p1", "@%p0")), threads=32)


def test_a_cache_policy_is_opaque() -> None:
    body = "mov.u64 %d5, 1;\n{}setp.ne.u64 %p3, %d5, 1;\n@%p3 trap;"
    assert judged(body.format("")).word == "clean"
    assert judged(body.format("createpolicy.fractional.L2::evict_last.b64 %d5, 1.0;\n")).word == "undecided"


VOLATILE = """.local .align 4 .b8 mine[8];
mov.u64 %d5, mine;
cvta.local.u64 %d6, %d5;
{store}.u32 [%d6], %r0;
{load}.u32 %r10, [%d6];
setp.ne.u32 %p3, %r10, %r0;
@%p3 trap;
"""


def test_volatile_accesses_to_local_memory() -> None:
    """As `nvcc -G` writes them. Relaxed ones are for global and shared memory ("ld")."""
    assert judged(VOLATILE.format(store="st.volatile", load="ld.volatile")).word == "clean"
    assert judged(VOLATILE.format(store="st", load="ld.volatile")).word == "clean"
    for store, load in (("st.relaxed.gpu", "ld"), ("st", "ld.acquire.cta"), ("st", "ld.mmio.relaxed.sys")):
        assert rules(VOLATILE.format(store=store, load=load)) == {"undefined-address"}
    shared = VOLATILE.replace("cvta.local.u64 %d6, %d5;", "cvt.u64.u32 %d5, %r2;\ncvta.shared.u64 %d6, %d5;")
    assert "data-race" in rules(shared.format(store="st.volatile", load="ld"))


@pytest.mark.parametrize("access", ["ld.global.v8.b32 {0}, [%d0]", "st.global.v8.b32 [%d0], {0}"])
def test_sinks_in_vectors_are_not_accessed(access: str) -> None:
    vector = "{%r10, _, %r12, %r13, %r14, %r15, %r16, %r17}"
    body = "setp.eq.s32 %p1, %r0, 0;\n@%p1 {};\n@!%p1 st.global.u32 [%d0+{}], 1;"
    assert not rules(body.format(access.format(vector), 4), threads=2)
    assert rules(body.format(access.format(vector), 8), threads=2) == {"data-race"}
    assert rules(body.format(access.format(vector.replace("_", "%r11")), 4), threads=2) == {"data-race"}


@pytest.mark.parametrize("line", ["ld.shared.v2.u32 {%r10, %r10}, [%r2];", "mov.b64 {%r10, %r10}, %d0;"])
def test_a_vector_that_is_written_has_different_registers(line: str) -> None:
    """ "All elements in vector expression must be unique, otherwise behavior is undefined" (Vectors as Operands)."""
    verdict = judged(line)
    assert verdict.word == "undecided" and "are different" in verdict.open[0]
    assert judged("mov.b64 %d1, {%r1, %r1};\n" + line.replace("{%r10", "{_")).word == "clean"


def test_a_vector_with_sinks_may_overwrite_its_address() -> None:
    assert judged("mov.u64 %d5, %d0;\nld.global.v4.u64 {%d5, %d6, _, %d7}, [%d5];", threads=1).word == "clean"


MMIO = """mov.u32 %r10, %ctaid.x;
setp.ne.u32 %p3, %r10, 0;
@%p3 bra READER;
st.global.u32 [%d0+64], 7;
st.mmio.{release}.sys.global.u32 [%d0], 1;
ret;
READER:
ld.mmio.{acquire}.sys.global.u32 %r11, [%d0];
setp.ne.u32 %p4, %r11, 1;
@%p4 bra READER;
ld.global.u32 %r12, [%d0+64];
"""


def test_mmio_may_release_and_acquire() -> None:
    def found(release: str, acquire: str) -> set[str]:
        verdict = judged(MMIO.format(release=release, acquire=acquire), 1, 2, "zero")
        return {one.rule for one in verdict.findings}

    assert not found("release", "acquire")
    assert found("relaxed", "acquire") == found("release", "relaxed") == {"data-race"}


@pytest.mark.parametrize("register", ["%p5", "%h5"])
@pytest.mark.parametrize(
    "line",
    [
        "st.shared.u32 [%r2], {0};",
        "ld.shared.u32 {0}, [%r2];",
        "st.shared.v2.u32 [%r2], {{%r5, {0}}};",
        "ld.shared.v2.u32 {{{0}, %r5}}, [%r2];",
        "atom.shared.add.u32 %r5, [%r2], {0};",
        "red.shared.add.u32 [%r2], {0};",
        "atom.shared.cas.b32 %r5, [%r2], %r5, {0};",
    ],
)
def test_a_register_that_moves_to_or_from_memory_has_the_bits_of_its_type(line: str, register: str) -> None:
    """ "There is no direct conversion between predicates and integer values, and no direct way to load or store
    predicate register values" ("Manipulating Predicates"); only wider registers are taken ("Operand Size Exceeding
    Instruction-Type Size").
    """
    assert "bits, and" in judged(line.format(register), threads=1).open[0]
    assert not judged(line.format("%r6"), threads=1).open


def test_masks_of_lanes() -> None:
    masks = """mov.u32 %r10, %laneid;
mov.u32 %r11, 1;
shl.b32 %r11, %r11, %r10;
sub.u32 %r12, %r11, 1;
or.b32 %r13, %r12, %r11;
not.b32 %r14, %r13;
not.b32 %r15, %r12;
"""
    wanted = {"eq": "%r11", "lt": "%r12", "le": "%r13", "gt": "%r14", "ge": "%r15"}
    for name, register in wanted.items():
        check = f"mov.u32 %r20, %lanemask_{name};\n"
        assert rules(masks + check + reached("%r20", register)) == set(), name
    assert rules(masks + "mov.u32 %r20, %lanemask_gt;\n" + reached("%r20", "%r13"))


@pytest.mark.parametrize(
    ("shift", "value", "result"),
    [("shl.b16", 3, 0), ("shr.u16", 3, 0), ("shr.s16", -3, -1), ("shl.b32", 3, 0), ("shr.s64", -3, -1)],
)
@pytest.mark.parametrize("amount", ["65536", "%r20"])
def test_shift_amounts_are_clamped(shift: str, value: int, result: int, amount: str) -> None:
    """ "Shift amounts greater than the register width N are clamped to N", .u32 in all forms ("shl", "shr")."""
    size = shift[-2:]
    name = {"16": "%h", "32": "%r", "64": "%d"}[size] + "7"
    body = f"mov.u32 %r20, 65536;\nmov.b{size} {name}, {value};\n{shift} {name}, {name}, {amount};\n"
    for wanted, found in ((result, set()), (1 - result, {"trap"})):
        verdict = verdict_of(f"{body}setp.ne.s{size} %p1, {name}, {wanted};\n@%p1 trap;")
        assert {finding.rule for finding in verdict.findings} == found and not verdict.open


def test_the_size_of_a_warp() -> None:
    """WARP_SZ is the constant 32, in operands and expressions."""
    verdict = verdict_of("mov.u32 %r20, WARP_SZ * 2;\nsetp.ne.u32 %p1, %r20, 64;\n@%p1 trap;")
    assert verdict.word == "clean"


# ---- branches that do not diverge, and the stack ---------------------------------------------------------------

BY_TABLE = "ts: .branchtargets A, B;\nbrx.idx.uni %r10, ts;\nA:\nst.shared.u32 [%r3], 1;\nB:\n"


@pytest.mark.parametrize(
    ("body", "diverges"),
    [
        ("@%p0 bra.uni A;\nst.shared.u32 [%r3], 1;\nA:\n", True),
        ("@%p0 bra A;\nst.shared.u32 [%r3], 1;\nA:\n", False),
        ("setp.lt.u32 %p5, %r0, 32;\n@%p5 bra.uni A;\nst.shared.u32 [%r3], 1;\nA:\n", False),
        ("and.b32 %r10, %r0, 1;\n" + BY_TABLE, True),
        ("shr.b32 %r10, %r0, 5;\n" + BY_TABLE, False),
    ],
)
def test_lanes_do_not_go_different_ways_at_a_uniform_branch(body: str, diverges: bool) -> None:
    assert rules(body) == ({"undefined-instruction"} if diverges else set())


TAKES_STACK = """.func (.param .b64 r) takes() {
.reg .b64 %y<2>;
alloca.u64 %y0, 64;
st.local.u32 [%y0+60], 1;
st.param.b64 [r], %y0;
ret;
}
"""
CALLS = "{ .param .b64 r; call (r), takes; ld.param.b64 %d10, [r]; }\nUSE"


@pytest.mark.parametrize(
    ("body", "freed"),
    [
        ("alloca.u64 %d10, 64;\nst.local.u32 [%d10+60], 1;", False),
        ("stacksave.u64 %d11;\nalloca.u64 %d10, 64;\nstackrestore.u64 %d11;\nst.local.u32 [%d10], 1;", True),
        ("alloca.u64 %d12, 64;\nstacksave.u64 %d11;\nalloca.u64 %d10, 64;\nstackrestore.u64 %d11;\n"
         "cvta.local.u64 %d12, %d12;\nst.u32 [%d12], 1;", False),
        (CALLS.replace("USE", ""), False),
        (CALLS.replace("USE", "ld.local.u32 %r10, [%d10+60];"), True),
        (CALLS.replace("USE", "alloca.u64 %d10, 64;\nld.local.u32 %r10, [%d10+60];"), False),
    ],
)  # fmt: skip
def test_memory_of_the_stack_is_there_until_it_is_given_back(body: str, freed: bool) -> None:
    """Accessing deallocated memory after executing stackrestore results in undefined behavior ("alloca")."""
    assert rules(body, before=TAKES_STACK) == ({"undefined-address"} if freed else set())
