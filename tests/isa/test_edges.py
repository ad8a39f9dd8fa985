"""Pairs of lines that differ in one number or word: the first is an instruction, the second is refused, and why.

Each pair stands on the two sides of one sentence of the PTX ISA. What the first lowers to is in the tables of steps.
"""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, ops, shown
from helpers.modules import steps_of

from memmodel.errors import InputError
from memmodel.isa.lower import lower_test
from memmodel.isa.matrix.tcgen_shapes import supported
from memmodel.program.ops import UndefinedIf

MMA = "tcgen05.mma.cta_group::1.kind::f16"
REPLACE = "tensormap.replace.tile.{}.global.b1024.b32 [gmap], {};"
TEST = "mbarrier.{}.phase_type::primary.parity.b64 %p|%q, {};"
RED = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [tile@cta1], 1, [{}];"
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [src], {}, [bar];"
CANCEL = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {}, %q0;"

PAIRS = {
    ("bar.sync 0, 0;", "bar.arrive 0, 0;"): "the thread count of bar.arrive is a multiple of 32, not 0",
    ("bar.sync 0, 32;", "bar.sync 0, -32;"): "the thread count of bar.sync is a multiple of 32, not -32",
    ("bar.warp.sync -1;", "bar.warp.sync -2;"): "a member mask is a 32-bit number",
    ("bar.warp.sync 0xffffffff;", "bar.warp.sync 0x100000000;"): "a member mask is a 32-bit number",
    ("bar.warp.sync 1;", "bar.warp.sync 0;"): "a member mask is a 32-bit number",
    ("elect.sync _|%p, 2;", "elect.sync %r0, 2;"): "elect.sync writes d|p",
    ("shfl.sync.bfly.b32 %r0|%p, %r1, 0, 31, -1;", "shfl.sync.up.b32 %r0|%p, %r1, 0, 31, -1;"): "different numbers",
    ("shfl.sync.idx.b32 %r0|%p, %r1, 0, 31, -1;", "shfl.sync.idx.b32 %r0|%p, %r1, 0, 0x1f1f, -1;"): "different numbers",
    ("cvt.sat.s32.u32 %r0, %r1;", "cvt.sat.u32.u32 %r0, %r1;"): "a .u32 has every .u32",
    ("cvt.sat.u64.s32 %rd0, %r1;", "cvt.sat.s64.u32 %rd0, %r1;"): "a .s64 has every .u32",
    ("lop3.b32 %r0, %r1, %r2, %r3, 255;", "lop3.b32 %r0, %r1, %r2, %r3, 256;"): "a number from 0 to 255",
    ("lop3.b32 %r0, %r1, %r2, %r3, 0;", "lop3.b32 %r0, %r1, %r2, %r3, -1;"): "a number from 0 to 255",
    ("lop3.and.b32 %r0|%p, %r1, %r2, %r3, 5, %q;", "lop3.b32 %r0|%p, %r1, %r2, %r3, 5;"): "lop3.b32 writes d",
    ("lop3.b32 %r0, %r1, %r2, %r3, 5;", "lop3.and.b32 %r0, %r1, %r2, %r3, 5, %q;"): "lop3.and.b32 writes d|p",
    ("setp.eq.and.u32 %p, %r0, %r1, %q;", "setp.eq.u32 %p, %r0, %r1, %q;"): "a predicate is combined, and 4 operands",
    ("setp.eq.u32 %p, %r0, %r1;", "setp.eq.and.u32 %p, %r0, %r1;"): "setp.and combines its comparison with a predicate",
    ("pmevent 15;", "pmevent 16;"): "from 0 to 15, and this is the number 16",
    ("pmevent 0;", "pmevent %r0;"): "from 0 to 15, and this is the register 'r0'",
    ("cp.async.wait_group 0;", "cp.async.wait_group -1;"): "takes a number of groups, and this is the number -1",
    ("cp.async.wait_group 1;", "cp.async.wait_group %r0;"): "takes a number of groups, and this is the register 'r0'",
    (COPY.format(16), COPY.format(0)): "a positive multiple of 16 bytes, not 0",
    (COPY.format(32), COPY.format(24)): "a positive multiple of 16 bytes, not 24",
    ("st.bulk [tile], 16777216, 0;", "st.bulk [tile], 16777224, 0;"): "16 MB at most, not 16777224",
    ("st.bulk [tile], 0, 0;", "st.bulk [tile], -8, 0;"): "16 MB at most, not -8",
    ("st.bulk [tile], %rd0, 0;", "st.bulk [tile], %rd0, %rd1;"): "st.bulk writes zeros",
    (f"{MMA} [acc], %rd0, %rd1, %r2, %p, 15;", f"{MMA} [acc], %rd0, %rd1, %r2, %p, 16;"): "a number from 0 to 15",
    (f"{MMA} [acc], %rd0, %rd1, %r2, %p, 0;", f"{MMA} [acc], %rd0, %rd1, %r2, %p, %r3;"): "a number from 0 to 15",
    (f"{MMA} [acc], %rd0, %rd1, %r2, {{0, 0, 0, 0}}, %p;", f"{MMA} [acc], %rd0, %rd1, %r2, {{0, 0, 0}}, %p;"): "of 4",
    (f"{MMA}.ashift [acc], [acc+1], %rd1, %r2, %p;", f"{MMA}.ashift [acc], %rd0, %rd1, %r2, %p;"): "in tensor memory",
    (f"{MMA} [acc], %rd0, %rd1, %r2, %p;", f"{MMA.replace('mma', 'mma.sp')} [acc], %rd0, %rd1, %r2, %p;"): "sp-meta",
    (REPLACE.format("global_dim", "4, 7"), REPLACE.format("global_dim", "5, 7")): "ord is a number from 0 to 4",
    (REPLACE.format("global_dim", "0, %r0"), REPLACE.format("global_dim", "%r0, 7")): "ord is a number from 0 to 4",
    (REPLACE.format("fill_mode", "1"), REPLACE.format("fill_mode", "2")): "from 0 to 1, and not 2",
    (REPLACE.format("elemtype", "15"), REPLACE.format("elemtype", "16")): "from 0 to 15, and not 16",
    (REPLACE.format("rank", "%r0"), REPLACE.format("elemtype", "%r0")): "the new value of .elemtype is written out",
    (REPLACE.format("rank", "1"), REPLACE.format("rank", "1").replace("gmap", "x")): "'x' is not a tensor map",
    (
        REPLACE.format("rank", "1").replace("global.b", "shared::cta.b").replace("gmap", "smap"),
        REPLACE.format("rank", "1").replace("global.b", "shared::cta.b").replace("gmap", "bar"),
    ): "'bar' is not a tensor map",
    ("mbarrier.arrive.b64 %rd0, [bar@cta0];", "mbarrier.arrive.b64 %rd0, [bar@cta1];"): "another CTA's mbarrier",
    (TEST.format("try_wait", "%rd1, [bar], 0, 5"), TEST.format("test_wait", "[bar], 0, 5")): "phaseParity; 4 operands",
    (TEST.format("try_wait", "[bar], 0, 5"), TEST.format("try_wait", "[bar], 0, 5, 6")): "{, timeHint}; 5 operands",
    (CANCEL.format("{%r0, %r1, %r2, %r3}"), CANCEL.format("{%r0, %r1, %r2}")): "a vector of 4 registers",
    (CANCEL.format("{%r0, %r1, %r2, _}"), CANCEL.format("%r0")): "a vector of 4 registers",
    (RED.format("bar@cta1"), RED.format("bar")): "the mbarrier object is not in the CTA that is written to",
    (RED.format("bar@cta1"), RED.format("bar").replace("@cta1", "@cta0")): "goes to the shared memory of another CTA",
    ("mapa.u64 %rd0, tile@cta1, 1;", "mapa.u64 %rd0, tile, 3;"): "no thread of the test is in CTA 3 of this cluster",
    ("ld.u32 %r0, [k];", "st.u32 [k], 1;"): "st cannot access 'k': .const memory is read-only",
    ("ld.global.u32 %r0, [x];", "ld.local.u32 %r0, [x];"): "'x' is a .global variable, not .local",
    ("bra L0;", "bra L0+4;"): "a jump goes to a label",
    ("bra L0;", "bra M0;"): "M0",
}


@pytest.mark.parametrize("pair", PAIRS, ids="|".join)
def test_one_side_of_a_rule_is_refused(pair: tuple[str, str]) -> None:
    good, bad = pair
    lower_test(blocks(good))
    with pytest.raises(InputError) as caught:
        ops(blocks(bad))
    assert PAIRS[pair] in caught.value.render()


IN_MODULES = {
    ("bar.sync 0, 64;", "bar.sync 0, 40;"): "the thread count of a barrier is a multiple of 32",
    ("bar.sync 0, 0;", "bar.arrive 0, 0;"): "bar.arrive has a thread count that is not zero",
    ("bar.arrive 15, 32;", "bar.arrive 16, 32;"): "the number of a barrier is from 0 to 15",
    ("st.bulk [s], 16777216, 0;", "st.bulk [s], 12, 0;"): "st.bulk writes a multiple of 8 bytes",
    ("st.bulk [s], 0, 0;", "st.bulk [s], %d0, 0;"): "st.bulk writes a multiple of 8 bytes",
    ("mbarrier.test_wait.parity.shared.b64 %p0, [s], 1;", "mbarrier.test_wait.parity.shared.b64 %p0, [s], 2;"): (
        "a phase parity is from 0 to 1"
    ),
    ("mbarrier.test_wait.shared.b64 %p0, [s], %d0;", "mbarrier.test_wait.parity.shared.b64 %p0, [s], %r0;"): (
        "a phase parity is from 0 to 1"
    ),
}
"""Of the second of two lines of a module it is found when it runs whether it is defined."""


@pytest.mark.parametrize("pair", IN_MODULES, ids="|".join)
def test_one_side_of_a_rule_is_checked_in_a_run(pair: tuple[str, str]) -> None:
    rules = [[step.rule for step in steps_of(line) if isinstance(step, UndefinedIf)] for line in pair]
    assert [IN_MODULES[pair] in found for found in rules] == [False, True]


@pytest.mark.parametrize(
    ("before", "predicate", "adds"),
    [
        ("", "%p", False),  # a register that nothing assigns is zero
        ("", "!%p", True),
        ("mov.pred %p, 1;", "%p", True),
        ("mov.pred %p, 0;", "!%p", True),
        ("mov.pred %p, 1;", "!%p", False),
        ("setp.eq.u32 %p, %r7, 0;", "%p", None),
        ("mov.pred %p, 0; @%q mov.pred %p, 1;", "%p", None),
    ],
)
def test_an_mma_adds_to_what_is_there_if_its_predicate_says_so(before: str, predicate: str, adds: bool | None) -> None:
    """`enable-input-d`; None if the execution decides it."""
    write = shown(ops(blocks(f"{before} {MMA} [acc], %rd0, %rd1, %r2, {predicate};")))[-1]
    assert ("adds_to=" in write, "adds_if=" in write) == (adds is not False, adds is None)


EVERY_8, EVERY_16, EVERY_32 = (set(range(step, 257, step)) for step in (8, 16, 32))
PLAIN = ("kind::f16", "kind::tf32", "kind::f8f6f4")
SCALED = ("kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4")
SHAPES = {
    (PLAIN, 1, "dense sparse"): ({64, 128}, EVERY_8),
    (PLAIN, 2, "dense sparse"): ({128, 256}, EVERY_16),
    (SCALED, 1, "dense sparse"): ({128}, EVERY_8),
    (SCALED, 2, "dense"): ({128, 256}, EVERY_16),
    (SCALED, 2, "sparse"): ({256}, EVERY_16),
    (("kind::i8",), 1, "dense sparse"): ({64, 128}, {8, 24} | EVERY_16),
    (("kind::i8",), 2, "dense sparse"): ({128, 256}, EVERY_32),
    ((*PLAIN, "kind::i8"), 1, "ws dense"): ({32, 64, 128}, {64, 128, 256}),
    ((*PLAIN, "kind::i8"), 1, "ws sparse"): ({32, 64, 128}, {64, 128}),
}
"""M and N of the table of "Matrix Shape"."""


@pytest.mark.parametrize("row", SHAPES, ids=str)
def test_a_kind_has_the_shapes_of_its_table(row: tuple[tuple[str, ...], int, str]) -> None:
    kinds, ctas, words = row
    for kind in kinds:
        for sparse in [word == "sparse" for word in words.split() if word != "ws"]:
            assert supported(kind, ctas, stationary="ws" in words, sparse=sparse) == SHAPES[row]
