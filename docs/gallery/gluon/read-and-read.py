"""Loads and a TMA store read the same tile. Does a proxy fence have to stand between them? No: nobody writes."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@gluon.jit
def read(out, tile, full, was_read, fixed: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    mbarrier.wait(full, 0)
    part = tile.load(wide)
    if not fixed:
        tile.store(part + 1)  # the bug, once somebody writes
    mbarrier.arrive(was_read)
    gl.store(out + gl.arange(0, 128, layout=wide), part)


@gluon.jit
def give_back(source, tile, was_read):
    mbarrier.wait(was_read, 0)
    tma.async_store(source, [0], tile)
    tma.store_wait(0)


@gluon.jit
def kernel(source, out, fixed: gl.constexpr):
    tile = gl.allocate_shared_memory(gl.float32, [128], source.layout)
    full = mbarrier.allocate_mbarrier()
    was_read = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    mbarrier.init(was_read, count=1)
    mbarrier.expect(full, source.block_type.nbytes)
    tma.async_load(source, [0], full, tile)
    gl.warp_specialize([(read, (out, tile, full, was_read, fixed)), (give_back, (source, tile, was_read))], [1], [24])
