"""The second wait for an mbarrier object has the parity of the first one, whose phase is over."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@gluon.jit
def kernel(source, out, fixed: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    tiles = gl.allocate_shared_memory(gl.float32, [2, 32], source.layout)
    full = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    total = gl.zeros([32], gl.float32, wide)
    for t in gl.static_range(2):
        mbarrier.expect(full, source.block_type.nbytes)
        tma.async_load(source, [32 * t], full, tiles.index(t))
        if fixed:
            mbarrier.wait(full, t & 1)
        else:
            mbarrier.wait(full, 0)  # the bug: it may wait for a third tile
        total += tiles.index(t).load(wide)
    gl.store(out + gl.arange(0, 32, layout=wide), total)
