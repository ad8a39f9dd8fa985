"""A stage is read with loads and handed back to the warp that has TMA fill it again."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma

TILES = gl.constexpr(2)


@gluon.jit
def fill(source, tile, full, empty):
    for t in gl.static_range(TILES):
        mbarrier.wait(empty, (t & 1) ^ 1)
        mbarrier.expect(full, source.block_type.nbytes)
        tma.async_load(source, [128 * t], full, tile)


@gluon.jit
def add_up(out, tile, full, empty, fixed: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    total = gl.zeros([128], gl.float32, wide)
    for t in gl.static_range(TILES):
        mbarrier.wait(full, t & 1)
        total += tile.load(wide)  # the bug: the next tile may come before it was read
        if fixed:
            fence_async_shared()
        mbarrier.arrive(empty)
    gl.store(out + gl.arange(0, 128, layout=wide), total)


@gluon.jit
def kernel(source, out, fixed: gl.constexpr):
    tile = gl.allocate_shared_memory(gl.float32, [128], source.layout)
    full = mbarrier.allocate_mbarrier()
    empty = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    mbarrier.init(empty, count=1)
    gl.warp_specialize([(add_up, (out, tile, full, empty, fixed)), (fill, (source, tile, full, empty))], [1], [24])
