"""Which bytes the regions of instructions are, worked out by hand, and which addresses are bad for them and why."""

from __future__ import annotations

import pytest
from helpers.isa_samples import read, warnings

from memmodel.isa.lower import lower_test
from memmodel.memory.bytes import BadAddress, BadFootprint, Extent, Filler
from memmodel.memory.cells import Starts
from memmodel.memory.tensormap import TensorMap
from memmodel.program.expressions import Const, Expr, Get
from memmodel.program.regions import (
    Accumulator,
    Box,
    BoxTile,
    Chunk,
    Columns,
    Elements,
    Matrix,
    Object,
    Region,
    TensorMapAt,
    region_exprs,
)
from memmodel.program.resolve import resolve, start_of
from memmodel.ptx.vocabulary import Window

OUTSIDE, MISALIGNED, WINDOW, NO_OBJECT, *_ = BadAddress
ZERO, DROPPED, INDETERMINATE = Filler

TEXT = """PTX addresses
.global .align 16 .b32 x[8];
.global .align 4 .b32 odd[8];
.global .b8 bytes[8];
.shared .align 16 .b32 s[8];
.shared .align 128 .b32 tile[32];
.shared .align 8 .b64 bar[2] = mbarrier(1);
.const .b32 k[2];
.param .b32 parameter;
.tensor .b32 acc[8];
.tensor .b32 sf[2];
.global .align 16 .b32 t[32];
.const .align 64 .b8 map[128] = tensormap(t, {{4, 2}}, {{8, 4}});
.shared .b32 there @ cta 1;
thread P0 @ cta 0, cluster 0 {{ {} }}
thread P1 @ cta 1, cluster 0 {{ ret; }}
thread P2 @ cta 0, cluster 1 {{ ret; }}
exists (true)
"""
LOWERED = lower_test(read(TEXT.format("ret;")))
SPACE = LOWERED.space
PLACES = [thread.place for thread in LOWERED.test.threads]
A = Get("a")
"""The address of a region; its value is given beside it."""


def at(name: str, offset: int = 0, thread: int = 0) -> int:
    """The address of a byte (or column) of a thread's instance of a variable."""
    found = SPACE.address(name, offset, PLACES[thread])
    assert found is not None
    return found


Shown = list[tuple[str, int, int] | tuple[Filler, int]]


def bytes_of(region: Region, *numbers: int, thread: int = 0, starts: Starts | None = None) -> Shown | BadAddress:
    """The stretches of a region: (variable, first byte, bytes) or (what stands there, bytes)."""
    assert len(numbers) == len(region_exprs(region))
    found = resolve(region, numbers, SPACE, PLACES[thread], starts or Starts())
    if isinstance(found, BadFootprint):
        return found.why
    return [
        (s.instance.name, s.first, s.size) if isinstance(s, Extent) else (s.filler, s.size) for s in found.stretches
    ]


# ---- scalars and vectors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "count", "name", "offset", "found"),
    [
        (4, 1, "x", 8, [("x", 8, 4)]),
        (4, 2, "x", 8, [("x", 8, 8)]),
        (8, 1, "x", 24, [("x", 24, 8)]),
        (1, 1, "x", 31, [("x", 31, 1)]),
        (16, 1, "x", 16, [("x", 16, 16)]),
        (4, 4, "x", 16, [("x", 16, 16)]),
        (4, 1, "x", 2, MISALIGNED),
        (8, 1, "x", 4, MISALIGNED),
        (4, 2, "x", 4, MISALIGNED),  # a vector as a whole
        (4, 4, "x", 8, MISALIGNED),
        (16, 1, "x", 8, MISALIGNED),
        (4, 1, "x", 32, OUTSIDE),
        (4, 1, "x", -4, OUTSIDE),
        (8, 1, "x", 28, OUTSIDE),
        (4, 1, "x", 30, OUTSIDE),
        (4, 2, "x", 28, OUTSIDE),
        (8, 1, "odd", 0, MISALIGNED),  # .align 4 is no more than that
        (8, 1, "odd", 4, [("odd", 4, 8)]),
        (8, 1, "bytes", 0, [("bytes", 0, 8)]),  # without .align it is aligned for every access
        (2, 1, "bytes", 3, MISALIGNED),
    ],
)
def test_scalars_and_vectors(size: int, count: int, name: str, offset: int, found: object) -> None:
    assert bytes_of(Elements(A, Window.GENERIC, size, count), at(name, offset)) == found


def test_an_access_of_the_column_layout_is_a_whole_element() -> None:
    region = Elements(A, Window.GENERIC)
    assert bytes_of(region, at("x", 4)) == [("x", 4, 4)]
    assert bytes_of(region, at("bytes", 5)) == [("bytes", 5, 1)]
    assert bytes_of(region, at("x", 2)) is MISALIGNED
    assert bytes_of(region, at("x", 32)) is OUTSIDE


@pytest.mark.parametrize("address", [0, 1, -4, 2**40, 2**64 - 4])
def test_numbers_that_are_no_address(address: int) -> None:
    assert bytes_of(Elements(A, Window.GENERIC, 4), address) is OUTSIDE


WINDOWS = {
    "x": {
        Window.GLOBAL,
        Window.GENERIC,
        Window.DATA,
        Window.DATA_OR_LOCAL,
        Window.OWN_DATA,
        Window.MAPS,
        Window.READ_ONLY,
    },
    "k": {Window.CONST, Window.GENERIC, Window.MAPS, Window.READ_ONLY},
    "parameter": {Window.PARAM, Window.ANY_PARAM, Window.GENERIC, Window.MAPS},
    "s": {
        Window.SHARED_CTA,
        Window.SHARED_CLUSTER,
        Window.GENERIC,
        Window.DATA,
        Window.DATA_OR_LOCAL,
        Window.OWN_DATA,
    },
}


@pytest.mark.parametrize("window", sorted(set(Window) - {Window.TENSOR}, key=lambda window: window.value))
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_of_state_spaces(name: str, window: Window) -> None:
    inside = window in WINDOWS[name]
    assert bytes_of(Elements(A, window, 4), at(name)) == ([(name, 0, 4)] if inside else WINDOW)
    found = resolve(Elements(A, Window.GENERIC, 2, 2), [at(name)], SPACE, PLACES[0], Starts())
    assert not isinstance(found, BadFootprint) and found.scalar == 2, "the scalar of a vector is its element"


def test_shared_memory_of_another_cta_is_in_the_window_of_its_cluster() -> None:
    peer, stranger = at("s", 4, thread=1), at("s", 4, thread=2)
    assert bytes_of(Elements(A, Window.SHARED_CTA, 4), peer) is WINDOW
    for window in (Window.SHARED_CLUSTER, Window.SHARED_OTHER, Window.GENERIC):
        assert bytes_of(Elements(A, window, 4), peer) == [("s", 4, 4)]
        assert bytes_of(Elements(A, window, 4), stranger) is WINDOW
    found = resolve(Elements(A, Window.SHARED_CLUSTER, 4), [peer], SPACE, PLACES[0], Starts())
    assert not isinstance(found, BadFootprint) and found.extents[0].instance.owner == PLACES[1].cta_id


def test_a_variable_of_one_cta_lies_nowhere_in_the_others() -> None:
    address = at("there", thread=1)
    assert (SPACE.address("there", 0, PLACES[0]), SPACE.address("there", 0, PLACES[0], 1)) == (None, address)
    assert bytes_of(Elements(A, Window.SHARED_CLUSTER, 4), address) == [("there", 0, 4)]
    own = address - at("s", thread=1) + at("s")  # the same place in the window of the own CTA belongs to nobody
    assert bytes_of(Elements(A, Window.SHARED_CTA, 4), own) is OUTSIDE


# ---- mbarrier objects, tensor maps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "offset", "window", "found"),
    [
        ("bar", 0, Window.SHARED_CTA, [("bar", 0, 8)]),
        ("bar", 8, Window.SHARED_CLUSTER, [("bar", 8, 8)]),
        ("s", 24, Window.SHARED_CTA, [("s", 24, 8)]),  # any 8 bytes of shared memory can be one
        ("bar", 4, Window.SHARED_CTA, MISALIGNED),
        ("bar", 16, Window.SHARED_CTA, OUTSIDE),
        ("s", 28, Window.SHARED_CTA, OUTSIDE),
        ("x", 0, Window.SHARED_CLUSTER, WINDOW),
    ],
)
def test_mbarrier_objects(name: str, offset: int, window: Window, found: object) -> None:
    assert bytes_of(Object(A, window), at(name, offset)) == found


def test_an_own_mbarrier_object_is_not_that_of_another_cta() -> None:
    assert bytes_of(Object(A, Window.SHARED_CTA), at("bar", thread=1)) is WINDOW
    assert bytes_of(Object(A, Window.SHARED_CLUSTER), at("bar", thread=1)) == [("bar", 0, 8)]


@pytest.mark.parametrize(
    ("name", "offset", "window", "found"),
    [
        ("map", 0, Window.GENERIC, [("map", 0, 128)]),
        ("tile", 0, Window.SHARED_CTA, [("tile", 0, 128)]),
        ("map", 64, Window.GENERIC, OUTSIDE),
        ("t", 0, Window.GLOBAL, MISALIGNED),  # .align 16, and a map needs 64
        ("x", 0, Window.GENERIC, OUTSIDE),
        ("map", 0, Window.GLOBAL, WINDOW),
    ],
)
def test_tensor_maps(name: str, offset: int, window: Window, found: object) -> None:
    assert bytes_of(TensorMapAt(A, window), at(name, offset)) == found


# ---- copies --------------------------------------------------------------------------------------------------------


def chunk(size: Expr = Get("size"), **fields: object) -> Chunk:
    """A chunk of global memory with its size in a register."""
    return Chunk(A, Window.GLOBAL, size, **{"multiple": 16, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "offset", "size", "found"),
    [
        ("x", 0, 32, [("x", 0, 32)]),
        ("x", 0, 24, MISALIGNED),
        ("x", 0, -16, MISALIGNED),
        ("x", 8, 16, MISALIGNED),
        ("odd", 0, 16, MISALIGNED),
        ("x", 16, 32, OUTSIDE),
        ("x", 0, 48, OUTSIDE),
        ("x", 32, 16, OUTSIDE),
        ("s", 0, 16, WINDOW),
    ],
)
def test_bulk_copies(name: str, offset: int, size: int, found: object) -> None:
    assert bytes_of(chunk(), at(name, offset), size) == found


@pytest.mark.parametrize(
    ("offset", "size", "found"),
    [
        (4, 4, [("x", 4, 4)]),
        (8, 8, [("x", 8, 8)]),
        (4, 8, MISALIGNED),
        (8, 16, MISALIGNED),
        (32, 4, OUTSIDE),
    ],
)
def test_cp_async_is_aligned_to_its_size(offset: int, size: int, found: object) -> None:
    assert bytes_of(chunk(Const(size), align=size, multiple=1), at("x", offset), size) == found


@pytest.mark.parametrize(
    ("offset", "kept", "found"),
    [
        (0, 16, [("x", 0, 16)]),
        (0, 5, [("x", 0, 5), (ZERO, 11)]),
        (0, 0, [(ZERO, 16)]),
        (16, 99, [("x", 16, 16)]),  # above cp-size: undefined by itself (test_async_lowering), and then all
        (32, 0, [(ZERO, 16)]),  # nothing is read, wherever it lies
        (32, 1, OUTSIDE),
    ],
)
def test_cp_async_fills_up_with_zeros(offset: int, kept: int, found: object) -> None:
    region = chunk(Const(16), align=16, multiple=1, kept=Get("kept"))
    assert bytes_of(region, at("x", offset), 16, kept) == found


@pytest.mark.parametrize(
    ("offset", "size", "mask", "found"),
    [
        (0, 16, 0xFFFF, [("x", 0, 16)]),
        (0, 32, 0x00FF, [("x", 0, 8), (DROPPED, 8), ("x", 16, 8), (DROPPED, 8)]),
        (0, 16, 0x8001, [("x", 0, 1), (DROPPED, 14), ("x", 15, 1)]),
        (16, 16, 0, [(DROPPED, 16)]),
        (16, 32, 0x00FF, OUTSIDE),
        (0, 48, 0, [(DROPPED, 48)]),
    ],
)
def test_cp_mask_leaves_bytes_out_of_the_destination(offset: int, size: int, mask: int, found: object) -> None:
    assert bytes_of(chunk(mask=Get("mask")), at("x", offset), size, mask) == found


def test_cp_mask_may_leave_out_what_lies_behind_the_variable() -> None:
    """The last row of a tensor that is not a multiple of 16 bytes: nothing is written after it."""
    odd = Chunk(A, Window.GLOBAL, Const(16), mask=Get("mask"))
    assert bytes_of(odd, at("odd", 28), 16, 0x000F) == [("odd", 28, 4), (DROPPED, 12)]
    assert bytes_of(odd, at("odd", 28), 16, 0x001F) is OUTSIDE


@pytest.mark.parametrize(
    ("name", "offset", "size", "left", "right", "found"),
    [
        ("x", 0, 32, 4, 8, [(INDETERMINATE, 4), ("x", 4, 20), (INDETERMINATE, 8)]),
        ("x", 0, 16, 0, 0, [("x", 0, 16)]),
        ("odd", -4, 32, 4, 0, [(INDETERMINATE, 4), ("odd", 0, 28)]),  # 4 bytes before the variable
        ("odd", 12, 32, 0, 12, [("odd", 12, 20), (INDETERMINATE, 12)]),  # and 12 after it
        ("odd", -4, 32, 3, 0, OUTSIDE),
        ("odd", 12, 32, 0, 11, OUTSIDE),
        ("x", 0, 16, 15, 15, [(INDETERMINATE, 15), (INDETERMINATE, 1)]),
    ],
)
def test_ignored_bytes_may_be_out_of_bounds(
    name: str, offset: int, size: int, left: int, right: int, found: object
) -> None:
    region = chunk(skip_left=Get("left"), skip_right=Get("right"))
    assert bytes_of(region, at(name, offset), size, left, right) == found


# ---- boxes of tensor maps ------------------------------------------------------------------------------------------

MAP = TensorMap.dense(at("t"), 4, (8, 4), (4, 2))
"""4 rows of 8 elements, 32 bytes each; a box has 2 rows of 4 elements."""


def box(map_: TensorMap, *coordinates: int, reads: bool = True) -> Shown | BadAddress:
    """The bytes of a box."""
    return bytes_of(Box(A, tuple(map(Const, coordinates)), reads), map_.pack(), *coordinates)


@pytest.mark.parametrize(
    ("coordinates", "found"),
    [
        ((0, 0), [("t", 0, 16), ("t", 32, 16)]),
        ((4, 2), [("t", 80, 16), ("t", 112, 16)]),
        ((6, 0), [("t", 24, 8), (ZERO, 8), ("t", 56, 8), (ZERO, 8)]),
        ((-1, 0), [(ZERO, 4), ("t", 0, 12), (ZERO, 4), ("t", 32, 12)]),
        ((0, 3), [("t", 96, 16), (ZERO, 16)]),
        ((0, -1), [(ZERO, 16), ("t", 0, 16)]),
        ((7, 3), [("t", 124, 4), (ZERO, 28)]),
        ((8, 0), [(ZERO, 32)]),
        ((-4, 0), [(ZERO, 32)]),
        ((0, 4), [(ZERO, 32)]),
        ((0, 2**31 - 1), [(ZERO, 32)]),
        ((2**32 - 1, 0), [(ZERO, 4), ("t", 0, 12), (ZERO, 4), ("t", 32, 12)]),  # -1 in 32 bits
    ],
)
def test_what_lies_outside_a_tensor_is_read_as_zero(coordinates: tuple[int, int], found: object) -> None:
    assert box(MAP, *coordinates) == found


def test_what_lies_outside_a_tensor_is_not_written() -> None:
    assert box(MAP, 6, 3, reads=False) == [("t", 120, 8), (DROPPED, 24)]


def test_rows_that_follow_one_another_are_one_stretch() -> None:
    assert box(TensorMap.dense(at("t"), 4, (8, 4), (8, 2)), 0, 1) == [("t", 32, 64)]
    assert box(TensorMap.dense(at("t"), 4, (32,), (8,)), 4) == [("t", 16, 32)]


def test_three_dimensions_and_a_stride() -> None:
    """2 planes of 2 rows of 4 elements: rows 16 bytes apart, planes 64."""
    map_ = TensorMap(at("t"), 4, (4, 2, 2), (2, 2, 2), (16, 64))
    assert box(map_, 1, 1, 0) == [("t", 20, 8), (ZERO, 8), ("t", 84, 8), (ZERO, 8)]
    assert box(map_, 2, 0, 1) == [("t", 72, 8), ("t", 88, 8), (ZERO, 16)]


@pytest.mark.parametrize(
    ("map_", "coordinates", "found"),
    [
        (TensorMap.dense(at("t", 4), 4, (8, 2), (4, 2)), (0, 0), MISALIGNED),
        (TensorMap.dense(at("t"), 4, (8, 8), (4, 2)), (0, 2), [("t", 64, 16), ("t", 96, 16)]),
        (TensorMap.dense(at("t"), 4, (8, 8), (4, 2)), (0, 3), OUTSIDE),  # the map promises more than the variable has
        (TensorMap.dense(at("s"), 4, (8,), (8,)), (0,), WINDOW),
        (TensorMap.dense(0, 4, (8,), (8,)), (0,), OUTSIDE),
        (MAP, (0,), NO_OBJECT),  # another number of dimensions
        (MAP, (0, 0, 0), NO_OBJECT),
    ],
)
def test_maps_that_lead_nowhere(map_: TensorMap, coordinates: tuple[int, ...], found: object) -> None:
    assert box(map_, *coordinates) == found
    assert bytes_of(Box(A, (Const(0),), True), 0, 0) is NO_OBJECT, "a number that is not a map"
    assert bytes_of(BoxTile(A, Window.SHARED_CTA, Get("map")), at("s"), 0) is NO_OBJECT


@pytest.mark.parametrize(
    ("offset", "window", "map_", "found"),
    [
        (0, Window.SHARED_CTA, MAP, [("s", 0, 32)]),
        (0, Window.SHARED_CLUSTER, MAP, [("s", 0, 32)]),
        (16, Window.SHARED_CTA, MAP, OUTSIDE),
        (8, Window.SHARED_CTA, TensorMap.dense(at("t"), 4, (8,), (4,)), MISALIGNED),
        (0, Window.SHARED_CTA, TensorMap.dense(at("t"), 4, (8,), (3,)), MISALIGNED),  # 12 bytes
        (0, Window.GLOBAL, MAP, WINDOW),
    ],
)
def test_tiles_of_boxes(offset: int, window: Window, map_: TensorMap, found: object) -> None:
    assert bytes_of(BoxTile(A, window, Get("map")), at("s", offset), map_.pack()) == found


# ---- matrices, tensor memory ---------------------------------------------------------------------------------------


def test_a_matrix_has_its_size_or_ends_where_the_next_begins() -> None:
    starts = Starts()
    assert bytes_of(Matrix(A, 64), at("tile", 16)) == [("tile", 16, 64)]
    assert bytes_of(Matrix(A, 2048), at("tile", 16)) == [("tile", 16, 112)]
    found = start_of(Matrix(A, None), [at("tile", 48)], SPACE, PLACES[0])
    assert found is not None and found[0].name == "tile" and starts.update([found])
    assert bytes_of(Matrix(A, None), at("tile", 16), starts=starts) == [("tile", 16, 32)]
    assert bytes_of(Matrix(A, 64), at("tile", 16), starts=starts) == [("tile", 16, 64)]
    assert bytes_of(Matrix(A, None), at("tile", 48), starts=starts) == [("tile", 48, 80)]


@pytest.mark.parametrize(
    ("name", "offset", "found"), [("tile", 8, MISALIGNED), ("tile", 128, OUTSIDE), ("x", 0, WINDOW)]
)
def test_bad_matrices(name: str, offset: int, found: BadAddress) -> None:
    assert bytes_of(Matrix(A, None), at(name, offset)) is found
    assert start_of(Matrix(A, None), [at(name, offset)], SPACE, PLACES[0]) is None


def test_columns_of_tensor_memory_count_four_bytes() -> None:
    assert bytes_of(Columns(A, 2), at("acc", 3)) == [("acc", 12, 8)]
    assert bytes_of(Columns(A, 8), at("acc")) == [("acc", 0, 32)]
    assert bytes_of(Columns(A, 2), at("acc", 7)) is OUTSIDE
    assert bytes_of(Columns(A, 1), at("sf", 2)) is OUTSIDE
    assert bytes_of(Columns(A, 1), 0) is OUTSIDE


def test_an_address_of_tensor_memory_means_the_same_in_every_cta() -> None:
    assert at("acc") == at("acc", thread=1)
    for cta in (0, 1):
        found = resolve(Columns(A, 1, cta), [at("acc")], SPACE, PLACES[0], Starts())
        assert not isinstance(found, BadFootprint)
        assert found.extents[0].instance.owner == PLACES[cta].cta_id


def test_an_accumulator_has_the_columns_of_its_shape_or_ends_where_the_next_begins() -> None:
    starts = Starts()
    assert bytes_of(Accumulator(A, 4), at("acc", 2)) == [("acc", 8, 16)]
    assert bytes_of(Accumulator(A, 256), at("acc", 2)) == [("acc", 8, 24)]
    by_shape = Accumulator(A, None, shape=Const(0))
    assert bytes_of(by_shape, at("acc"), 1 << 17) == bytes_of(by_shape, at("acc"), 5 << 17) == [("acc", 0, 32)]
    found = start_of(Accumulator(A, None), [at("acc", 4)], SPACE, PLACES[0])
    assert found is not None and starts.update([found])
    assert bytes_of(Accumulator(A, None), at("acc"), starts=starts) == [("acc", 0, 16)]
    assert bytes_of(Accumulator(A, None), at("acc", 8)) is OUTSIDE


# ---- told before any solving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ld.u64 %rd0, [x+4];", MISALIGNED),
        ("st.u32 [x+32], 1;", OUTSIDE),
        ("mov.u64 %a, x; add.u64 %a, %a, 40; st.u32 [%a], 1;", OUTSIDE),
        ("mov.u64 %a, s; ld.global.u32 %r0, [%a];", WINDOW),
        ("mapa.u64 %a, s, 1; st.shared::cta.u32 [%a], 1;", WINDOW),
        ("mbarrier.init.b64 [bar+4], 1;", MISALIGNED),
        ("mapa.u64 %a, bar, 1; mbarrier.try_wait.parity.b64 %p, [%a], 0;", WINDOW),
        ("cp.async.bulk.global.shared::cta.bulk_group [x], [s], 48;", OUTSIDE),
        ("cp.async.ca.shared.global [s+2], [x], 4;", MISALIGNED),
        ("mov.u32 %a, 77; atom.add.u32 %r0, [%a], 1;", OUTSIDE),
    ],
)
def test_a_bad_address_that_is_certain_is_told_with_its_place(line: str, why: BadAddress) -> None:
    (warning,) = [text for text in warnings(read(TEXT.format(line))) if "the thread stops here" in text]
    assert f"is {why.value}: the thread stops here" in warning
    assert "t.litmus:15:" in warning


def test_an_address_that_only_some_paths_have_is_not_told() -> None:
    line = "ld.u32 %r0, [x]; setp.eq.u32 %p, %r0, 0; mov.u64 %a, x; @%p add.u64 %a, %a, 2; ld.u32 %r1, [%a];"
    assert not any("stops here" in text for text in warnings(read(TEXT.format(line))))
