"""What the table refuses of the asynchronous instructions, word for word: rule, caret, repair."""

# ruff: noqa: E501 (a golden text is as long as it is)

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, ops, warnings

from memmodel.errors import InputError
from memmodel.isa.lower import lower_test

PUT = "fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.b128"

GOLDEN = {
    "mbarrier.try_wait.parity.acquire.cta.shared::cluster.b64 %p, [bar], 0;": """
mbarrier.try_wait works on mbarrier objects of the executing CTA only
    |                                      ^^^^^^^^^^^^^^^
  hint: write .shared::cta; arrive, expect_tx and complete_tx may be remote""",
    "mbarrier.try_wait.release.cta.b64 %p, [bar], %rd0;": """
a wait cannot release
    |                   ^^^^^^^
  hint: the arrive releases: mbarrier.arrive.release""",
    "mbarrier.try_wait.b64 %p, [bar], 0;": """
mbarrier.try_wait takes the state that an arrive returned, and this is the number 0
    |                                  ^
  hint: write mbarrier.try_wait.parity for a phase parity""",
    "mbarrier.try_wait.parity.b64 %p, [bar], 2;": """
a phase parity is a number from 0 to 1, not 2
    |                                         ^""",
    "mbarrier.try_wait.acquire.gpu.b64 %p, [bar], %rd0;": """
an mbarrier operation has .cta or .cluster scope
    |                           ^^^
  hint: write .cluster, the widest scope of an mbarrier""",
    "mbarrier.arrive.relaxed.b64 _, [bar];": """
mbarrier.arrive.relaxed needs a scope
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: write .relaxed.cta or .relaxed.cluster""",
    "mbarrier.arrive.cluster.b64 _, [bar];": """
mbarrier.arrive with a scope names its semantics
    |                 ^^^^^^^
  hint: write .cluster after .release, .acquire or .relaxed, or drop it""",
    "mbarrier.arrive.b64 %rd0, [bar@cta1];": """
mbarrier.arrive returns nothing from another CTA's mbarrier
    |                     ^^^^
  hint: write _ as destination""",
    "mbarrier.arrive.expect_tx.b64 _, [bar];": """
mbarrier.arrive.expect_tx needs a transaction count
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: add the number of bytes""",
    "mbarrier.arrive.noComplete.relaxed.cta.b64 _, [bar], 1;": """
mbarrier.arrive.noComplete is .release.cta
    |                            ^^^^^^^
  hint: drop .noComplete, or write .release.cta""",
    "mbarrier.init.b64 [bar], 0;": """
the count of mbarrier.init is a number from 1 to 1048575, not 0
    |                          ^""",
    "mbarrier.init.b64 [x], 1;": """
'x' is a .global variable, not .shared
    |                   ^^^""",
    "mbarrier.test_wait.parity.b64 %p|%q, [bar], 0;": """
a report predicate needs .phase_type::primary
    |                               ^^^^^
  hint: write mbarrier.test_wait.phase_type::primary, or the first register alone""",
    "mbarrier.test_wait.b64 %p, [bar], %rd0, 4;": """
mbarrier.test_wait takes waitComplete, [addr], state; 4 operands are given
    | ^^^^^^^^^^^^^^^^^^^^^^""",
    "mbarrier.test_wait.parity.b64 %p, [bar], 0, 4;": """
mbarrier.test_wait takes waitComplete, [addr], phaseParity; 4 operands are given
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^""",
    "cp.async.bulk.shared::cta.global.bulk_group [tile], [src], 32;": """
a copy to .shared::cta completes on an mbarrier
    |                                  ^^^^^^^^^^
  hint: write .mbarrier::complete_tx::bytes and name the mbarrier""",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [src], 24, [bar];": """
cp.async.bulk copies a positive multiple of 16 bytes, not 24
    |                                                                              ^^""",
    "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile@cta1], [map, {0}], [bar];": """
the mbarrier object is not in the CTA that the copy writes to
    |                                                                                                           ^^^^^
  hint: write [bar@cta1]""",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [src], 16, [bar], 4;": """
the mask names CTA 2, which has no thread in this cluster
    |                                                                                                                ^""",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [tile], [tile], 16, [bar];": """
cp.async.bulk from .shared::cta to .shared::cluster goes to another CTA
    |                                                                        ^^^^^^
  hint: write [tile@cta1] for the instance in CTA 1""",
    "cp.async.bulk.global.global.bulk_group [src], [src], 16;": """
cp.async.bulk does not copy from .global to .global
    |                      ^^^^^^
  hint: go through shared memory""",
    "cp.async.bulk.shared.global.mbarrier::complete_tx::bytes [tile], [src], 16, [bar];": """
cp.async.bulk has no plain .shared
    |               ^^^^^^
  hint: write .shared::cta or .shared::cluster""",
    "cp.async.bulk.relaxed.shared::cta.global.mbarrier::complete_tx::bytes.b128 [tile], [src], 16, [bar];": """
cp.async.bulk.relaxed needs a scope
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: write .relaxed.gpu or another scope""",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.b32 [src], [tile], 16;": """
cp.reduce.async.bulk.add to .global has no type .b32
    |                                                        ^^^
  hint: it has .u32 .s32 .u64""",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [src], [tile], 16;": """
floating-point atomics are not modelled
    |                                                        ^^^
  hint: use an integer type: the order of accesses is the same""",
    "cp.async.bulk.wait_group %r0;": """
cp.async.bulk.wait_group takes a number of groups, and this is the register 'r0'
    |                          ^^^
  hint: write it out""",
    "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [map, {0, 0}], [bar];": """
'map' describes a tensor of 1 dimension(s)
    |                                                                                 ^^^^^^^^^^^^^
  hint: declare it with 2 sizes: tensormap(src, {8, 2}, {16, 4}) has two""",
    "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [tile, {0}], [bar];": """
'tile' is not a tensor map
    |                                                                                  ^^^^
  hint: declare it `.const tile = tensormap(x);`""",
    "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [map], [bar];": """
cp.async.bulk.tensor takes a tensor operand here, and this is a memory operand
    |                                                                                 ^^^^^
  hint: write [map, {0, 0}]: the tensor map and a coordinate for each dimension""",
    "cp.async.cg.shared.global [tile], [src], 8;": """
cp.async.cg copies 16 bytes
    |                                          ^""",
    "fence.proxy.async.shared;": """
fence.proxy.async has no plain .shared
    |                   ^^^^^^
  hint: write .shared::cta or .shared::cluster""",
    "fence.acquire.sync_restrict::shared::cta.cluster;": """
.sync_restrict::shared::cta goes with .release
    |               ^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: write fence.release.sync_restrict::shared::cta.cluster""",
    "fence.release.sync_restrict::shared::cta.gpu;": """
a fence with .sync_restrict::shared::cta has .cluster scope
    |                                          ^^^
  hint: write .cluster""",
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster::read.cluster;": """
.sync_restrict::shared::cluster::read goes with .release
    |                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: write fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster""",
    "fence.proxy.alias.release;": """
fence.proxy.alias.release names its scope
    |                   ^^^^^^^
  hint: write fence.proxy.alias.release.sys""",
    "fence.proxy.alias.sys;": """
fence.proxy.alias takes effect in its thread and has no scope
    |                   ^^^
  hint: write fence.proxy.alias, or fence.proxy.alias.release.sys""",
    "fence.proxy.alias.release.gpu;": """
unknown qualifier '.gpu' of fence.proxy
    |                           ^^^
  hint: it takes .alias .surface .texture .constant .acquire .release .sys""",
    "fence.proxy.tensormap::generic.acquire.gpu;": """
fence.proxy.tensormap::generic.acquire takes [addr], size; 0 operands are given
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^""",
    "fence.proxy.tensormap::generic.acquire.gpu [gmap], 64;": """
fence.proxy.tensormap::generic takes the size 128 only
    |                                                    ^^
  hint: write 128""",
    "fence.proxy.generic::fabric.alias.release.gpu;": """
unknown qualifier '.gpu' of fence.proxy.generic::fabric
    |                                           ^^^
  hint: it takes .alias .acquire .release .sys""",
    f"{PUT} [src, 0], [tile], 16, [reporter];": """
'src' is not a logical endpoint
    |                                                                                                       ^^^^^^^^
  hint: declare one: e @ fabric aliases src;""",
    f"{PUT} [%r1, 0], [tile], 16, [reporter];": """
a litmus test names the logical endpoint of a handle
    |                                                                                                       ^^^^^^^^
  hint: declare one, `e @ fabric aliases x;`, and write [e, 0]""",
    f"{PUT} [le, 0], [tile], 80, [reporter];": """
a litmus test moves at most 64 bytes by one fabric operation
    |                                                                                                                        ^^
  hint: each 16 bytes may be moved or not where it fails; several operations move more""",
    f"{PUT} [le, 0], [tile], %r1, [reporter];": """
fabric.try_put of a size that the run decides is not modelled
    |                                                                                                                        ^^^
  hint: write the number of bytes""",
    "ld.global.u32 %r0, [le];": """
'le' is a logical endpoint, which has no address
    |                    ^^^^
  hint: write [le, 0] in a fabric operation""",
    f"{PUT} [le, 0], [tile], 16, [reporter]; mbarrier.try_wait.parity.phase_type::primary.b64 %p|%q, %r0, [reporter], 0;": """
what fabric operations put into a report value is not modelled
    |                                                                               ^^^
  hint: write _""",
    "fence.mbarrier_init.acquire.cluster;": """
unknown qualifier '.acquire' of fence.mbarrier_init
    |                     ^^^^^^^
  hint: it takes .release .cluster""",
    "st.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.b32 [%rd0], 1, [%rd1];": """
st.async is weak, or .release to global memory
    |          ^^^^^^^
  hint: write .weak or nothing""",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [tile@cta1], 1, [bar];": """
the mbarrier object is not in the CTA that is written to
    |                                                                           ^^^^^
  hint: write it with @cta1""",
    "st.async.release.gpu.shared::cluster.b32 [tile@cta1], 1;": """
st.async.release is for .global memory
    |                      ^^^^^^^^^^^^^^^
  hint: write .global""",
    "st.async.shared::cluster.b32 [%rd0], 1, [%rd1];": """
st.async needs .mbarrier::complete_tx::bytes
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: add it after the state space""",
    "red.async.release.gpu.global.min.u32 [x], 1;": """
red.async.release only adds
    |                              ^^^
  hint: write .add""",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1}, %rd0, %rd1, %p, 1, 1, 0, 0;": """
this wgmma.mma_async has its result in 4 registers, and 2 are given
    |                                                   ^^^^^^^^^^
  hint: write {%r0, %r1, %r2, %r3}""",
    "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {%r0, %r1, %r2, %r3}, {%r4}, %rd1, %p;": """
this wgmma.mma_async has A in 4 registers, and 1 are given
    |                                                                       ^^^^^
  hint: write {%r0, %r1, %r2, %r3}""",
    "wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%f0, %f1}, %rd0, %rd1, %p, 1, 1, 0, 0;": """
wgmma.mma_async of .bf16 has no result of type .f16
    |                                       ^^^
  hint: write .f32""",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, %p, 1, 1, 0, 0;": """
wgmma.mma_async does not multiply .f16 by .bf16
    |                                               ^^^^
  hint: write .f16 for B""",
    "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and {%r0, %r1, %r2, %r3}, %rd0, %rd1, %p;": """
wgmma.mma_async of .b1 is .and.popc
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: add .popc""",
    "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.u8 {%r0}, %rd0, %rd1, %p;": """
wgmma.mma_async of .s8 has no shape .m64n40k32
    |                              ^^^^^^^^^
  hint: N is 8, 16, 24 or a multiple of 16 for integers""",
    "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%f0, %f1}, %rd0, %rd1, %p, 0, 1, 0, 0;": """
imm-scale is 1 or -1, and this is the number 0
    |                                                                               ^""",
    "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%f0, %f1}, tile, %rd1, %p, 1, 1, 0, 0;": """
a matrix descriptor is a 64-bit register, and this is the name 'tile'
    |                                                               ^^^^
  hint: write mov.u64 %d, tile; and then %d""",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.tf32.tf32 {%f0, %f1}, %rd0, %rd1, %p, 1, 1;": """
wgmma.mma_async has no shape .m64n8k16 for .tf32
    |                              ^^^^^^^^
  hint: its k is 8: write .m64nNk8""",
    "wgmma.fence;": """
wgmma.fence is .sync.aligned
    | ^^^^^^^^^^^
  hint: write wgmma.fence.sync.aligned""",
    "tcgen05.mma.kind::f16 [acc], %rd0, %rd1, %r2, %p;": """
tcgen05.mma.kind::f16 needs a CTA group
    | ^^^^^^^^^^^^^^^^^^^^^
  hint: one of .cta_group::1 .cta_group::2""",
    "tcgen05.mma.cta_group::1.kind::mxf4 [acc], %rd0, %rd1, %r2, [sf], [sf], %p;": """
tcgen05.mma.kind::mxf4 needs .block_scale
    |                          ^^^^^^^^^^
  hint: write .kind::mxf4.block_scale""",
    "tcgen05.mma.cta_group::1.kind::f16 [tile], %rd0, %rd1, %r2, %p;": """
'tile' is a .shared variable, not .tensor
    |                                    ^^^^^^""",
    "tcgen05.mma.cta_group::1.kind::f16 [acc], tile, %rd1, %r2, %p;": """
a matrix descriptor is a 64-bit register, and this is the name 'tile'
    |                                           ^^^^
  hint: write mov.u64 %d, tile; and then %d""",
    "tcgen05.mma.cta_group::1.kind::f16 [acc], %rd0, %rd1, %r2, 1;": """
enable-input-d is a predicate, and this is the number 1
    |                                                            ^
  hint: write mov.pred %p, 1;""",
    "tcgen05.cp.cta_group::1.64x128b [acc], %rd0;": """
tcgen05.cp.64x128b needs .warpx2::02_13 or .warpx2::01_23
    |                         ^^^^^^^
  hint: write tcgen05.cp.cta_group::N.64x128b.warpx2::02_13""",
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 %r0, [acc];": """
tcgen05.ld has its registers in braces, even one
    |                                       ^^^
  hint: write {%r0}""",
    "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0}, [acc];": """
.32x32b.x2 has 2 register(s), and 1 are given
    |                                       ^^^^^""",
    "tcgen05.mma.cta_group::1.kind::f16.collector::b0::fill [acc], %rd0, %rd1, %r2, %p;": """
tcgen05.mma has no such collector buffer
    |                                    ^^^^^^^^^^^^^^^^^^^
  hint: write .collector::a::fill, ::use, ::lastuse or ::discard""",
    "tcgen05.mma.cta_group::1.kind::f16.ashift [acc], %rd0, %rd1, %r2, %p;": """
.ashift is for a matrix A in tensor memory
    |                                    ^^^^^^
  hint: drop it, or write [a-tmem]""",
    "tcgen05.mma.cta_group::1.kind::f16.collector::a::fill.ashift [acc], [acc+1], %rd1, %r2, %p;": """
.ashift and .collector::a::fill exclude each other
    |                                    ^^^^^^^^^^^^^^^^^^
  hint: write .collector::a::lastuse or ::discard, or drop it""",
    "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [acc], %rd0, %rd1, %r2, [sf], [sf+1], %p;": """
tcgen05.mma.kind::mxf4nvf4 needs a scale vector size
    |                          ^^^^^^^^^^^^^^
  hint: write .scale_vec::2X, .scale_vec::4X, .block16 or .block32""",
    "fence.alias.release.sync_restrict::read.sys;": """
fence.alias is not modelled: ptxas takes it, and no page of the PTX ISA says what it does
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^""",
    "cp.async.bulk.wait_group.sync_restrict::proxy::async 0;": """
cp.async.bulk.wait_group.sync_restrict::proxy::async is not modelled: ptxas takes it, and no page of the PTX ISA says what it does
    |                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: drop .sync_restrict::proxy::async""",
    "membar.proxy.async.global;": """
membar.proxy.async.global is not modelled: ptxas has no such instruction; write fence.proxy.async with the state space
    | ^^^^^^^^^^^^^^^^^^^^^^^^^""",
    "cp.async.bulk.prefetch.L2.global.L2::cache_hint [src], 32;": """
this cp.async.bulk.prefetch takes [srcMem], size, cache_policy; 2 operands are given
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^""",
    "cp.async.bulk.prefetch.tensor.1d.L2.global.im2col [map, {0}];": """
cp.async.bulk.prefetch.tensor.1d has no .im2col
    |                                            ^^^^^^
  hint: an image has 3 to 5 dimensions: write .3d, .4d or .5d, or .tile""",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%rd0], {%rd2, %rd3, %rd4, %rd5}, [%rd1];": """
st.async writes 128 bits at most
    |                                                       ^^
  hint: write .v2.b64, or .b128 without .v4""",
    "tcgen05.ld.32x32b.x1.b32 %r0, [acc];": """
tcgen05.ld is .sync.aligned
    | ^^^^^^^^^^^^^^^^^^^^^^^^
  hint: write tcgen05.ld.sync.aligned""",
    "tcgen05.alloc.cta_group::1.sync.aligned.b32 [tile], 48;": """
tcgen05.alloc takes a power of two from 32 to 512 columns, not 48
    |                                                     ^^""",
    "tcgen05.wait::mma.sync.aligned;": """
unknown instruction 'tcgen05.wait::mma.sync.aligned'
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  hint: did you mean 'tcgen05.wait::ld'?""",
    "tensormap.replace.tile.global_address.global.b1024.b32 [gmap], %r0;": """
tensormap.replace.tile.global_address has type .b64
    |                                                    ^^^
  hint: write .b64""",
    "cp.async.ca.shared.global [tile], [src], 8, 9;": """
src-size is from 0 to 8, not 9
    |                                             ^""",
    "cp.async.ca.shared.global [tile], [src], %r0;": """
cp.async.ca copies 4, 8 or 16 bytes
    |                                          ^^^""",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [tile], [src], 32, 16, 0, [bar];": """
ignoreBytesLeft is a number from 0 to 15, not 16
    |                                                                                             ^^""",
    "mbarrier.init.b64 [map], 1;": """
'map' is a .const variable, not .shared
    |                   ^^^^^""",
    "mbarrier.init.b64 [smap], 1;": """
'smap' is a tensor map, not an mbarrier object
    |                   ^^^^^^""",
    "mov.u32 %r0, %nctaid.x;": """
the special register '%nctaid.x' has no value here
    |              ^^^^^^^^^
  hint: a litmus thread's place is fixed: write the number""",
    "mov.u32 %$0, 1;": """
names that begin with $ are those of temporaries here
    |         ^^^
  hint: rename the register""",
    "tensormap.replace.tile.rank.global.b1024.b32 [src], 1;": """
'src' is not a tensor map
    |                                              ^^^^^
  hint: declare it `.b8 map[128] = tensormap(x);`""",
    "mapa.u64 %rd0, s, 7;": """
no thread of the test is in CTA 7 of this cluster
    |                   ^""",
    "elect.sync %p, 0xffffffff;": """
elect.sync writes d|p: the elected lane and a predicate
    |            ^^
  hint: write _|%p""",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [src], 32;": """
this cp.async.bulk takes [dstMem], [srcMem], size, [mbar]; 3 operands are given
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^""",
    "tcgen05.mma.ws.cta_group::2.kind::f16 [acc], %rd0, %rd1, %r2, %p;": """
tcgen05.mma.ws works in one CTA
    |                ^^^^^^^^^^^^
  hint: write .cta_group::1""",
    "ld.shared::cluster.b32 %r0, [tile@cta3];": """
`tile` has no instance in CTA 3
    |                              ^^^^^^^^^
  hint: the test's threads are in CTA 0, 1""",
    "cp.async.bulk.commit_groop;": """
unknown qualifier '.commit_groop' of cp.async.bulk
    |               ^^^^^^^^^^^^
  hint: did you mean 'cp.async.bulk.commit_group'?""",
}


@pytest.mark.parametrize("line", GOLDEN)
def test_refusal(line: str) -> None:
    with pytest.raises(InputError) as caught:
        lower_test(blocks(line))
    place, *excerpt = str(caught.value).split("\n")
    shown = [place.split("error: ", 1)[1]]
    for text in excerpt[1:]:
        shown.append("    | " + text.split("|", 1)[1][3:] if "^" in text else text)
    assert "\n" + "\n".join(shown) == GOLDEN[line]


LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
OUTSIDE, MISALIGNED = "is outside every object", "is misaligned for its access"
WINDOW = "is outside the window of the state space that the instruction names"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("mbarrier.try_wait.parity.b64 %p, [bar@cta1], 0;", WINDOW),
        ("mbarrier.init.b64 [tile+4], 1;", MISALIGNED),
        ("mbarrier.init.b64 [bar+4], 1;", OUTSIDE),
        (f"{LOAD} [tile], [src], 64, [bar];", OUTSIDE),
        (f"{LOAD} [tile+4], [src], 16, [bar];", MISALIGNED),
        (f"{LOAD} [tile@cta1], [src], 16, [bar@cta1];", WINDOW),
        (f"{LOAD} [tile], [x], 16, [bar];", OUTSIDE),
        ("cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [src, {0}], [bar];", OUTSIDE),
        ("cp.async.ca.shared.global [tile+4], [src], 8;", MISALIGNED),
        ("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%rd0], [tile], 16, [bar];", OUTSIDE),
        ("clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [tile+4], [bar];", MISALIGNED),
    ],
)
def test_a_bad_address_is_undefined_behaviour_and_no_error(line: str, why: str) -> None:
    (warning,) = [text for text in warnings(blocks(line)) if "the thread stops here" in text]
    assert f"{why}: the thread stops here" in warning


@pytest.mark.parametrize(
    "line",
    [
        "mbarrier.init.b64 [tile], 1;",  # any 8 bytes of shared memory can be an object
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [tile], 1, [bar];",  # in the own CTA
        "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [map, {6}], [bar];",
    ],
)
def test_what_needs_no_refusal(line: str) -> None:
    assert ops(blocks(line))
    assert not any("the thread stops here" in text for text in warnings(blocks(line)))
