"""What the table refuses, word for word: place, rule, caret, repair."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.isa_samples import blocks, columns, read
from helpers.patience import processor_seconds

from memmodel.errors import InputError
from memmodel.isa.call import Context
from memmodel.isa.lower import lower_instruction, lower_test
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.rows.spelling import Refusal
from memmodel.isa.table import HEADS
from memmodel.litmus.syntax import Instruction, Label, Layout
from memmodel.program.addresses import AddressSpace
from memmodel.program.special import special_register
from memmodel.ptx.operands import Reg, Sym

GOLDEN_BLOCKS = {
    "ld.acquire.u32 %r0, [x];": """
ld.acquire needs a scope
    | ^^^^^^^^^^^^^^
  hint: ld.acquire.cta, .cluster, .gpu or .sys; only ld.weak takes none""",
    "ld.release.gpu.u32 %r0, [x];": """
a load cannot release
    |    ^^^^^^^
  hint: write ld.acquire here; release goes on the store (st.release) or a fence""",
    "ld.acq_rel.gpu.u32 %r0, [x];": """
.acq_rel is for atomics and fences
    |    ^^^^^^^
  hint: write ld.acquire""",
    "st.acquire.gpu.u32 [x], 1;": """
a store cannot acquire
    |    ^^^^^^^
  hint: write st.release here; acquire goes on the load (ld.acquire) or a fence""",
    "st.weak.gpu.u32 [x], 1;": """
st.weak takes no scope
    |         ^^^
  hint: drop .gpu, or write st.relaxed.gpu""",
    "ld.sys.u32 %r0, [x];": """
ld without semantics is weak, and takes no scope
    |    ^^^
  hint: write ld.relaxed.sys or ld.acquire.sys, or drop .sys""",
    "atom.sc.gpu.add.u32 %r0, [x], 1;": """
PTX has no atom.sc
    |      ^^
  hint: write .relaxed with a scope, and fence.sc with that scope in front of it""",
    "ld.relaxed.cta::cluster.u32 %r0, [x];": """
PTX has no scope .cta::cluster
    |            ^^^^^^^^^^^^
  hint: write .cluster, which reaches the same threads""",
    "ld.relaxd.gpu.u32 %r0, [x];": """
unknown qualifier '.relaxd' of ld
    |    ^^^^^^
  hint: did you mean '.relaxed'?""",
    "ld.acquire.relaxed.gpu.u32 %r0, [x];": """
'.acquire' and '.relaxed' exclude each other
    |            ^^^^^^^
  hint: each is a memory semantics; keep the one that is meant""",
    "ld.relaxed.gpu.gpu.u32 %r0, [x];": """
'.gpu' is written twice
    |                ^^^
  hint: once is enough""",
    "fence.sc;": """
fence.sc needs a scope
    | ^^^^^^^^
  hint: one of .cta .cluster .gpu .sys""",
    "ld.relaxed.gpu [%rd0], %r0;": """
ld.relaxed.gpu needs a type
    | ^^^^^^^^^^^^^^
  hint: one of .b8 .b16 .b32 .b64 .b128 .u8 .u16 .u32 .u64 .s8 .s16 .s32 .s64 .f32 .f64""",
    "fence.gpu 1;": """
fence takes no operands; 1 operand is given
    | ^^^^^^^^^^^
""",
    "st.u32 [k], 1;": """
st cannot access 'k': .const memory is read-only
    |        ^^^
  hint: declare it .global""",
    "st.const.u32 [k], 1;": """
st cannot write .const memory
    |    ^^^^^
  hint: declare it .global""",
    "ld.shared.u32 %r0, [x];": """
'x' is a .global variable, not .shared
    |                    ^^^
  hint: write .global or leave the state space out""",
    "ld.u32 %r0, x;": """
PTX writes memory operands in brackets
    |             ^
  hint: write [x]""",
    "ld.u32 %r0, %r1;": """
ld accesses memory, and this is the register 'r1'
    |             ^^^
  hint: write [%r1] for the memory that a register points to""",
    "mbarrier.init.b64 bar2, 1;": """
mbarrier.init accesses memory, and this is the register 'bar2'
    |                   ^^^^
  hint: declare the variable bar2, or write [%bar2] for the memory that a register points to""",
    "mbarrier.init.b64 bar, 1;": """
PTX writes memory operands in brackets
    |                   ^^^
  hint: write [bar]""",
    "ld.u32 [x], [x];": """
ld writes to a register here, and this is a memory operand
    |        ^^^
""",
    "add.u32 %r0, [x], 1;": """
add reads a register or a number here, and this is a memory operand
    |              ^^^
  hint: load it into a register first""",
    "atom.add.s64 %rd0, [%rd1], 1;": """
atom.add has no type .s64
    |          ^^^
  hint: it has .u32 .s32 .u64""",
    "atom.cas.b32 %r0, [x], 1;": """
atom.cas takes d, [a], b, c; 3 operands are given
    | ^^^^^^^^^^^^
""",
    "red.exch.b32 [x], 1;": """
PTX has no red.exch
    |     ^^^^
  hint: write atom.exch, with _ as destination if its result is not used""",
    "red.acq_rel.gpu.global.add.u32 [x], 1;": """
PTX has no red.acq_rel
    |     ^^^^^^^
  hint: write atom.acq_rel, with _ as destination if its result is not used""",
    "atom.relaxed.gpu.global.sub.u32 %r0, [x], 1;": """
PTX has no atom.sub
    |                         ^^^
  hint: add the negated value: neg.s32 %n, %v; and atom.add""",
    "ld.volatile.global.L1::evict_last.u32 %r0, [x];": """
.L1::evict_last and .volatile exclude each other
    |                    ^^^^^^^^^^^^^^
  hint: drop .L1::evict_last""",
    "ld.shared.L2::cache_hint.u64 %rd0, [s], %rd9;": """
.L2::cache_hint is for .global memory
    |           ^^^^^^^^^^^^^^
  hint: drop .L2::cache_hint""",
    "ld.global.L2::evict_last.v4.u32 {%r0, %r1, %r2, %r3}, [a];": """
.L2::evict_last is for accesses of 256 bits
    |           ^^^^^^^^^^^^^^
  hint: write .v8.b32 or .v4.b64, or drop it""",
    "ld.mmio.relaxed.sys.global.L2::128B.u32 %r0, [x];": """
.L2::128B and .mmio exclude each other
    |                            ^^^^^^^^
  hint: drop .L2::128B""",
    "st.shared.v4.b64 [tile], {%rd0, %rd1, %rd2, %rd3};": """
an access of 256 bits is for .global memory
    |           ^^
  hint: write .v2, twice""",
    "ld.v2.b128 {%q0, %q1}, [src];": """
a .b128 access is not a vector
    |    ^^
  hint: drop .v2""",
    "ld.param::func.u32 %r0, [%rd0];": """
a litmus test has no functions
    |    ^^^^^^^^^^^
  hint: a parameter of the kernel is .param::entry""",
    "mov.u32 %r0, x;": """
the address of 'x' has 64 bits, and .u32 has 32
    |              ^
  hint: write .u64""",
    "mov.pred %p, x;": """
the address of 'x' has 64 bits, and .pred has 1
    |              ^
  hint: write .u64""",
    "cvta.to.global.u32 %r0, %r1;": """
PTX has no 32-bit code any more
    |                ^^^
  hint: write .u64""",
    "bar.sync 16;": """
a CTA has barriers 0 to 15, not 16
    |          ^^
""",
    "bar.sync 0, 2;": """
the thread count of bar.sync is a multiple of 32, not 2
    |             ^
  hint: 32 for each warp that takes part; a litmus thread is a warp of its own""",
    "bar.warp.sync 0;": """
a member mask is a 32-bit number with a bit for each lane that takes part
    |               ^
  hint: write 0xffffffff""",
    "barrier.cluster.sync;": """
unknown instruction 'barrier.cluster.sync'
    | ^^^^^^^^^^^^^^^^^^^^
  hint: there is barrier.cluster.arrive, barrier.cluster.wait""",
    "lod.u32 %r0, [x];": """
unknown instruction 'lod.u32'
    | ^^^^^^^
  hint: did you mean 'ld'?""",
    "setp.u32.eq %p, %r0, 1;": """
the qualifiers of setp are out of order
    | ^^^^^^^^^^^
  hint: write setp.eq.u32""",
    "fence.proxy.surface;": """
PTX has no fence.proxy.surface
    |             ^^^^^^^
  hint: it has .alias""",
    "beq %r0, %r1, L0;": """
beq is a word of the column layout; PTX has no such instruction
    | ^^^
""",
    "mov.u32 %r0, %tid.x;": """
the special register '%tid.x' has no value here
    |              ^^^^^^
  hint: a litmus thread's place is fixed: write the number""",
    "ld.mmio.u32 %r0, [x];": """
ld.mmio needs .relaxed.sys
    | ^^^^^^^^^^^
  hint: write ld.mmio.relaxed.sys""",
    "ld.relaxed.gpu.cg.u32 %r0, [x];": """
ld.relaxed takes no cache operator
    |                ^^
  hint: drop .cg""",
    "ld.v2.u32 %r0, [a];": """
ld.v2.u32 moves 2 element(s), and 1 are given
    |           ^^^
  hint: a .v2 access names two registers in braces: {%r0, %r1}""",
}

GOLDEN_COLUMNS = {
    "ld.weak r0, s": """
ld is a generic access, and 's' is a surface
    |             ^
  hint: use suld, or declare a generic alias of the location""",
    "sust.weak x, 1": """
sust accesses a surface, and 'x' is not declared as one
    |           ^
  hint: declare one: s @ surface aliases x;""",
    "tld.weak r0, s": """
tld accesses a texture, and 's' is not declared as one
    |              ^
  hint: declare one: s @ texture aliases s;""",
    "suld.relaxed.gpu r0, s": """
suld is always weak
    |      ^^^^^^^
  hint: write suld.weak; order it with fence.proxy.surface and other accesses""",
}


def refusal(error: InputError, indent: int) -> str:
    """The message, caret line and hint, less the indentation of the instruction and the line of source text."""
    _, message = error.render().split(": error: ", 1)
    lines = message.split("\n")
    number = len(lines[1].split("|")[0])
    caret = "    |" + lines[2][number + 1 :].replace(" " * indent, "", 1)
    return "\n".join(["", lines[0], caret, *lines[3:]])


@pytest.mark.parametrize(("line", "want"), GOLDEN_BLOCKS.items(), ids=GOLDEN_BLOCKS)
def test_refusal_in_blocks(line: str, want: str) -> None:
    with pytest.raises(InputError) as caught:
        lower_test(blocks(line))
    assert refusal(caught.value, 2) == want.rstrip("\n")


@pytest.mark.parametrize(("cell", "want"), GOLDEN_COLUMNS.items(), ids=GOLDEN_COLUMNS)
def test_refusal_in_columns(cell: str, want: str) -> None:
    with pytest.raises(InputError) as caught:
        lower_test(columns(cell))
    assert refusal(caught.value, 1) == want.rstrip("\n")


SPECIAL = """tid.x ntid.y laneid warpid nwarpid nctaid.x nclusterid.x gridid smid nsmid lanemask_eq lanemask_le
lanemask_lt lanemask_ge lanemask_gt clock clock_hi clock64 pm0 pm1 pm2 pm3 pm4 pm5 pm6 pm7 pm0_64 pm1_64 pm7_64 envreg0
envreg31 globaltimer globaltimer_lo globaltimer_hi reserved_smem_offset_begin reserved_smem_offset_end
reserved_smem_offset_cap reserved_smem_offset_0 reserved_smem_offset_1 total_smem_size aggr_smem_size
dynamic_smem_size current_graph_exec"""


@pytest.mark.parametrize("name", SPECIAL.split())
def test_a_special_register_whose_value_is_not_known_is_refused(name: str) -> None:
    for line in (f"mov.u32 %r0, %{name};", f"st.u32 [x], %{name};", f"ld.u32 %r0, [%{name}];", f"@%{name} bra L0;"):
        with pytest.raises(InputError, match=f"the special register '%{name}' has no value here"):
            lower_test(blocks(line))
    with pytest.raises(InputError, match=f"the special register '%{name}' is read-only"):
        lower_test(blocks(f"mov.u32 %{name}, 1;"))


def test_a_special_register_is_no_guard() -> None:
    with pytest.raises(InputError, match="the special register '%is_explicit_cluster' is not a guard"):
        lower_test(blocks("@%is_explicit_cluster bra L0;"))


PLACED = """PTX placed
thread P0 @ cta 0, cluster 2 { ret; }
thread P1 @ cta 1, cluster 2, warp 3 { ret; }
thread P2 @ cta 3, cluster 5 { ret; }
thread P3 @ cta 7 { ret; }
exists (true)
"""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cluster_ctarank", [0, 1, 3, 0]),
        ("cluster_ctaid.x", [0, 1, 3, 0]),
        ("cluster_ctaid.y", [0, 0, 0, 0]),
        ("cluster_nctarank", [2, 2, 4, 1]),
        ("cluster_nctaid.x", [2, 2, 4, 1]),
        ("cluster_nctaid.z", [1, 1, 1, 1]),
        ("clusterid.x", [2, 2, 5, 7]),
        ("is_explicit_cluster", [1, 1, 1, 0]),
        ("warpid", [None, None, None, None]),
    ],
)
def test_special_registers_that_placement_determines(name: str, values: list[int | None]) -> None:
    test = read(PLACED)
    space = AddressSpace(test)
    found = [special_register(name, thread.place, space) for thread in test.threads]
    assert [None if isinstance(one, str) else one for one in found] == values


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (Instruction("ld.weak", (Reg("r0"), Sym("xx"))), "'xx' is not declared"),
        (Instruction("ld.weak", (Reg("r0"), Sym("LC00"))), "'LC00' is a label, not a variable"),
        (Instruction("goto", (Sym("LC01"),)), "no label 'LC01' in P0"),
    ],
)
def test_names_are_checked_without_the_reader(instruction: Instruction, message: str) -> None:
    test = columns("ld r0, x")
    with pytest.raises(InputError) as caught:
        lower_instruction(instruction, Context.of(test, test.threads[0], AddressSpace(test)))
    assert caught.value.message == message
    assert caught.value.hint


def test_a_label_stands_once() -> None:
    test = columns("ld r0, x")
    thread = test.threads[0]
    doubled = replace(thread, body=(*thread.body, Label("LC00")))
    with pytest.raises(InputError, match="stands twice"):
        lower_test(replace(test, threads=(doubled,)))


@pytest.mark.parametrize(
    "mnemonic", ["x" * 1_000_000, "ld" + ".u32" * 300_000, "ld." + "y" * 1_000_000, ".", "", "ld.", "..ld", "ld..u32"]
)
def test_hostile_mnemonics_are_refused_at_once(mnemonic: str) -> None:
    with processor_seconds(15):
        fault = read_mnemonic(mnemonic, Layout.BLOCKS, HEADS)
    assert isinstance(fault, Refusal)
    assert len(fault.message) < 200
