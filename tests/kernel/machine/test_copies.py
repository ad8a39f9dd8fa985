"""Copies whose bytes are not those of a plain box: out of bounds, im2col, element strides; cache policies."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import text_of, verdict_of
from helpers.kernel.samples import entry, judged, module

from memmodel.cat.load import load_model
from memmodel.errors import InputError
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.launch import TensorMapSpec, parse_launch
from memmodel.kernel.machine.regions.maps import Tile, packed_map, read_map
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

IGNORING = """@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 64;
{before}
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r2], [%d0], 64, {left}, {right}, [%r4];
W: mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;
@!%p5 bra W;
ld.shared.u32 %r10, [%r2+{at}];
setp.ne.u32 %p6, %r10, 0;
@%p6 trap;
"""


def ignoring(left: int, right: int, at: int = 16, before: str = "", size: int = 65536) -> set[str]:
    """The findings, and the word if it is undecided."""
    read = module(IGNORING.format(left=left, right=right, at=at, before=before))
    param = {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": size, "init": "zero"}
    launch = parse_launch({"grid": [1, 1, 1], "block": [32, 1, 1], "params": [param]})
    verdict = judge(read, entry(read), launch, load_model("ptx-9.4"))
    return {one.rule for one in verdict.findings} | ({"undecided"} if verdict.word == "undecided" else set())


def test_bytes_out_of_bounds_may_be_ignored() -> None:
    assert not ignoring(0, 7, size=57)
    assert ignoring(0, 6, size=57) == ignoring(0, 0, size=57) == {"undefined-address"}
    assert ignoring(16, 0) == ignoring(0, 16) == {"undefined-instruction"}


def test_what_is_ignored_is_not_read_and_is_indeterminate() -> None:
    assert ignoring(4, 4, 0) == ignoring(4, 4, 60) == {"undecided"}
    known = "@%p0 st.shared.b32 [%r2], 0;\n@%p0 fence.proxy.async;"  # what was there before is not left either
    assert ignoring(4, 4, 0, before=known) == {"undecided"}
    assert not ignoring(4, 4, 4) and not ignoring(4, 4, 56)
    assert not ignoring(4, 4, before="@%p0 st.global.b8 [%d0+3], 1;")
    assert "data-race" in ignoring(4, 4, before="@%p0 st.global.b8 [%d0+4], 0;")


@pytest.mark.parametrize("sizes", ["16", "16, 8"])
def test_a_cache_policy_is_no_size(sizes: str) -> None:
    body = f"""createpolicy.fractional.L2::evict_first.b64 %d5, 1.0;
cp.async.cg.shared.global.L2::cache_hint [%r2], [%d0], {sizes}, %d5;
{{wait}}ld.shared.u32 %r10, [%r2];"""
    assert judged(body.format(wait="cp.async.wait_all;\n"), threads=1).word == "clean"
    assert judged(body.format(wait=""), threads=1).word == "findings"


# ---- im2col and element strides --------------------------------------------------------------------------------

IMAGE = {
    "param": "map", "address": "0x100000000", "element_bytes": 2, "dims": [8, 4, 4, 2], "strides_bytes": [16, 64, 256],
    "im2col": {"pixels": 8, "channels": 8, "lower": [-1, -1], "upper": [-1, -1]},
}  # fmt: skip
"""Two images of 4 x 4 pixels of 16 bytes; filters of 3 x 3 pixels with a border of one pixel."""


def tile(**changes: object) -> Tile:
    found = read_map(packed_map(TensorMapSpec.model_validate({**IMAGE, **changes})))
    assert isinstance(found, Tile)
    return found


@pytest.mark.parametrize(
    ("start", "offsets", "pixels"),
    [
        ((-1, -1, 0), (0, 0), [(0, 0, 0), (1, 0, 0), (2, 0, 0)]),
        ((-1, -1, 0), (2, 0), [(1, 0, 0), (2, 0, 0), (3, 0, 0)]),
        ((-1, -1, 0), (0, 1), [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (1, 1, 0), (2, 1, 0)]),
        ((1, 2, 0), (1, 1), [(2, 3, 0), (3, 3, 0), *((x, 0, 1) for x in range(4)), (0, 1, 1), (1, 1, 1)]),
        ((1, 2, 1), (1, 1), [(2, 3, 1), (3, 3, 1)]),
    ],
    ids=["base", "right", "down", "next image", "end"],
)
def test_pixels_of_im2col(start: tuple[int, ...], offsets: tuple[int, ...], pixels: list[tuple[int, ...]]) -> None:
    """Bases go from -1 to 2 in both directions; what lies outside the images is not read."""
    expected = {0x1_0000_0000 + 16 * x + 64 * y + 256 * n + at for x, y, n in pixels for at in range(16)}
    found = tile().global_bytes((0, *start), offsets)
    assert found is not None
    assert {first + at for first, size in found for at in range(size)} == expected


def test_the_bounding_box_of_im2col() -> None:
    assert tile().global_bytes((0, 3, 0, 0), (0, 0)) is None
    assert tile().global_bytes((0, 0, -2, 0), (0, 0)) is None


def test_strides_of_im2col_leave_the_number_of_pixels() -> None:
    """The example of "Traversal Stride": a base moves by two, and begins again at the lower corner."""
    found = tile(element_strides=[1, 2, 2, 1])
    assert found.size == 128
    first = found.global_bytes((0, -1, 1, 0), (1, 1))
    # Bases (-1, 1), (1, 1), then the next image: (-1, -1), (1, -1), (-1, 1), (1, 1).
    pixels = [(0, 2, 0), (2, 2, 0), (0, 0, 1), (2, 0, 1), (0, 2, 1), (2, 2, 1)]
    assert first == [(0x1_0000_0000 + 16 * x + 64 * y + 256 * n, 16) for x, y, n in pixels]


def test_strides_of_a_box() -> None:
    """As many rows as there are steps in the box ("Traversal-Stride")."""
    found = tile(im2col=None, box=[8, 3, 4, 1], element_strides=[1, 2, 3, 1])
    assert (found.shape, found.size) == ((8, 2, 2, 1), 64)
    assert found.global_bytes((0, 1, 0, 0)) == [(0x1_0000_0000 + at, 16) for at in (16, 48, 208, 240)]


@pytest.mark.parametrize(
    ("packed", "outside", "inside"), [("b4x16", 64, 64), ("b4x16_p64", 64, 128), ("b6x16_p32", 96, 128)]
)
def test_elements_that_are_smaller_than_a_byte(packed: str, outside: int, inside: int) -> None:
    """16 elements have 8 or 12 bytes, and in shared memory those and their padding ("Sub-byte Types")."""
    made = tile(
        im2col=None, packed=packed, element_bytes=1, dims=[256, 4], strides_bytes=[2 * outside], box=[128, 2]
    )  # fmt: skip
    assert made.size == 2 * inside and made.shared_bytes(1024) == [(1024, 2 * inside)]
    assert made.global_bytes((128, 1)) == [((1 << 32) + (2 * row + 1) * outside, outside) for row in (1, 2)]
    assert made.global_bytes((192, 3)) == [((1 << 32) + 6 * outside + outside * 3 // 2, outside // 2)]


def test_the_padding_counts_as_transferred() -> None:
    changes = {"im2col": None, "packed": "b4x16_p64", "element_bytes": 1, "dims": [128, 1, 1, 1], "box": [128, 1, 1, 1]}
    place = {"mode": "", "offsets": "", "start": "{0, 0, 0, 0}"}
    assert copied(**place, **changes) == ("clean", set())  # type: ignore[arg-type]
    assert copied("@%p0 st.global.u32 [%d0+64], 1;", **place, **changes) == ("clean", set())  # type: ignore[arg-type]
    assert "data-race" in copied("@%p0 st.global.u32 [%d0+60], 1;", **place, **changes)[1]  # type: ignore[arg-type]
    assert "data-race" in copied("ld.shared.u32 %r11, [%r2+124];", **place, **changes)[1]  # type: ignore[arg-type]
    with pytest.raises(InputError, match="element_bytes"):
        copied(**place, **{**changes, "element_bytes": 2})  # type: ignore[arg-type]


def test_elements_that_a_copy_may_not_have() -> None:
    """ "Restriction on Tensor Copy instructions": types below a byte have coordinates of their own, and no reductions;
    "The size of the bounding box in the dimension 1 must be one" where four rows are gathered.
    """
    changes = {"im2col": None, "element_bytes": 1, "dims": [512, 8, 1, 1], "box": [128, 1, 1, 1]}
    place = {"mode": "", "offsets": "", "packed": "b4x16_p64", **changes}
    assert copied(start="{128, 0, 0, 0}", **place)[1] == set()  # type: ignore[arg-type]
    assert copied(start="{64, 0, 0, 0}", **place)[1] == {"undefined-instruction"}  # type: ignore[arg-type]
    store = "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%d1, {128, 1, 0, 0}], [%r2+1024];"
    reduce = store.replace("cp.", "cp.reduce.").replace("bulk_group", "add.bulk_group")
    for instruction, packed, undefined in (
        (store, "b4x16", False),
        (store, "b4x16_p64", True),
        (reduce, "b4x16", True),
        (reduce, None, False),
    ):
        beside = f"fence.proxy.async;\n@%p0 {instruction}"
        found = copied(beside, start="{0, 0, 0, 0}", **{**place, "packed": packed})[1]  # type: ignore[arg-type]
        assert ("undefined-instruction" in found) is undefined, (instruction, packed, found)


@pytest.mark.parametrize(
    ("map_", "undefined"),
    [
        ({"swizzle": 96, "element_bytes": 2, "dims": [64, 4, 1, 1], "box": [48, 2, 1, 1]}, False),
        ({"swizzle": 96, "element_bytes": 2, "dims": [64, 4, 1, 1], "box": [64, 2, 1, 1]}, True),
        ({"swizzle": 128, "element_bytes": 2, "dims": [64, 4, 1, 1], "box": [64, 2, 1, 1]}, False),
        ({"swizzle": 96, "packed": "b4x16", "dims": [128, 4, 1, 1], "box": [128, 2, 1, 1]}, False),
        ({"swizzle": 96, "packed": "b4x16_p64", "dims": [128, 4, 1, 1], "box": [128, 2, 1, 1]}, True),
        ({"packed": "b4x16_p64", "dims": [256, 4, 1, 1], "box": [256, 1, 1, 1]}, True),
        ({"packed": "b6x16_p32", "dims": [256, 4, 1, 1], "box": [64, 1, 1, 1]}, True),
        ({"packed": "b6x16_p32", "dims": [256, 4, 1, 1], "box": [128, 1, 1, 1]}, False),
    ],
)
def test_rows_of_boxes(map_: dict[str, object], undefined: bool) -> None:
    """ "Restriction on Tensor Copy instructions", 96B swizzle mode: "Box-Size[0] must be less than or equal to 96B", no
    .b4x16_p64; of that type it "must be exactly 64B", of .b6x16_p32 96B.
    """
    changes = {"im2col": None, "element_bytes": 1, "strides_bytes": [256, 1024, 1024], **map_}
    found = copied(mode="", offsets="", start="{0, 0, 0, 0}", **changes)[1]  # type: ignore[arg-type]
    assert ("undefined-instruction" in found) is undefined


def test_a_launch_has_the_swizzles_of_ptx() -> None:
    with pytest.raises(InputError, match="swizzle"):
        copied(mode="", offsets="", start="{0, 0, 0, 0}", **{"im2col": None, "box": [8, 1, 1, 1], "swizzle": 77})


@pytest.mark.parametrize(("rows", "undefined"), [(1, False), (2, True)])
def test_four_rows_of_a_matrix(rows: int, undefined: bool) -> None:
    body = """@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 512;
@%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes
    [%r2], [%d1, {0, 1, 5, 2, 7}], [%r4];
W: mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;
@!%p5 bra W;"""
    box = {"param": "map", "address": "0x100000000", "element_bytes": 2, "dims": [64, 64], "strides_bytes": [128]}
    param = {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536}
    launch = parse_launch({
        "grid": [1, 1, 1], "block": [32, 1, 1], "tensormaps": [{**box, "box": [64 // rows, rows]}],
        "params": [param, {"name": "map", "type": "bytes", "hex": "00" * 128}],
    })  # fmt: skip
    read = parse_module(Source("k.ptx", text_of(body)))
    verdict = judge(read, entry(read), launch, load_model("ptx-9.4"))
    assert ({one.rule for one in verdict.findings} == {"undefined-instruction"}) is undefined
    assert undefined or verdict.word == "clean"


SCATTERED = """fence.proxy.async.shared::cta;
bar.warp.sync -1;
@%p0 {copy} [%r2];
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;"""
SCATTER = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%d1, {{0, {}}}],"
STORED = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {0, 0}],"
REDUCED = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d1, {0, 0}],"


@pytest.mark.parametrize(
    ("copy", "box", "stride", "races"),
    [
        (SCATTER.format("9, 5, 7, 1"), [64, 1], 128, False),
        (SCATTER.format("5, 5, 7, 1"), [64, 1], 128, True),
        (SCATTER.format("5, 7, 1, 5"), [64, 1], 128, True),
        (SCATTER.format("5, 90, 90, 1"), [64, 1], 128, False),
        (STORED, [16, 4], 128, False),
        (STORED, [16, 4], 32, False),
        (STORED, [16, 4], 16, True),
        (REDUCED, [16, 4], 16, False),
    ],
)
def test_rows_of_a_copy_that_are_one_place_of_the_tensor(
    copy: str, box: list[int], stride: int, *, races: bool
) -> None:
    """The rows are written in no order. The sum of a reduction is the same in each; rows outside are not written."""
    described = {"param": "map", "address": "0x100000000", "element_bytes": 2, "dims": [64, 64]}
    launch = parse_launch({
        "grid": [1, 1, 1], "block": [32, 1, 1], "tensormaps": [{**described, "strides_bytes": [stride], "box": box}],
        "params": [{"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536},
                   {"name": "map", "type": "bytes", "hex": "00" * 128}],
    })  # fmt: skip
    read = parse_module(Source("k.ptx", text_of(SCATTERED.format(copy=copy))))
    verdict = judge(read, entry(read), launch, load_model("ptx-9.4"))
    assert ("data-race" in {finding.rule for finding in verdict.findings}) is races
    assert races is not verdict.clean
    assert all("twice, in no order" in finding.missing for finding in verdict.findings)


COPIED = """@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 128;
@%p0 cp.async.bulk.tensor.4d.shared::cta.global.{mode}mbarrier::complete_tx::bytes
    [%r2], [%d1, {start}], [%r4]{offsets};
{beside}
W: mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;
@!%p5 bra W;
ld.shared.u32 %r10, [%r3];
"""


def copied(
    beside: str = "", mode: str = "im2col.", offsets: str = ", {2, 0}", start: str = "{0, -1, -1, 0}", **changes: object
) -> tuple[str, set[str]]:
    text = text_of(COPIED.format(mode=mode, offsets=offsets, beside=beside, start=start))
    launch = parse_launch({
        "grid": [1, 1, 1], "block": [32, 1, 1], "tensormaps": [{**IMAGE, **changes}],
        "params": [
            {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536},
            {"name": "map", "type": "bytes", "hex": "00" * 128},
        ],
    })  # fmt: skip
    read = parse_module(Source("k.ptx", text))
    verdict = judge(read, entry(read), launch, load_model("ptx-9.4"))
    return verdict.word, {one.rule for one in verdict.findings}


def test_lanes_that_copy_one_box_look_it_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, outside = [], Tile.global_bytes
    monkeypatch.setattr(Tile, "global_bytes", lambda *where: asked.append(where) or outside(*where))
    store = "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%d1, {{0, {}, 0, 0}}], [%r2+512];"
    place = {"mode": "", "offsets": "", "start": "{0, 0, 0, 0}", "im2col": None, "box": [8, 1, 1, 1]}
    copied(store.format("1"), **place)  # type: ignore[arg-type]
    once = len(asked)
    assert 0 < once <= 4, "of the load and of the store, in two runs"
    copied(store.format("%r0"), **place)  # type: ignore[arg-type]
    assert len(asked) >= once + 32, "each lane has a box of its own"


def test_a_copy_with_im2col() -> None:
    """It reads bytes 16 to 63, and writes 128 bytes; the transaction has all of them."""
    assert copied() == ("clean", set())
    assert copied("@%p0 st.global.u32 [%d0+64], 1;") == copied("@%p0 st.global.u32 [%d0+12], 1;") == ("clean", set())
    assert "data-race" in copied("@%p0 st.global.u32 [%d0+60], 1;")[1]
    assert "data-race" in copied("@%p0 st.global.u32 [%d0+16], 1;")[1]
    assert "data-race" in copied("ld.shared.u32 %r11, [%r2+124];")[1]
    assert copied("ld.shared.u32 %r11, [%r2+128];") == ("clean", set())


def test_a_map_is_for_one_mode() -> None:
    assert copied(mode="tile.", offsets="")[0] == "undecided"
    assert copied(im2col=None, box=[8, 2, 2, 1])[0] == "undecided"
    assert copied(mode="im2col::w.", offsets=", {0, 0}")[0] == "undecided"
    assert copied(offsets=", {0}")[0] == "undecided"


@pytest.mark.parametrize(
    "changes",
    [
        {"im2col": None, "box": [8, 4]},
        {"box": [8, 4, 4, 2]},
        {"strides_bytes": [16]},
        {"element_strides": [1, 2]},
        {"im2col": {**IMAGE["im2col"], "lower": [-1]}},  # type: ignore[dict-item]
        {"dims": [8, 4], "strides_bytes": [16], "im2col": {**IMAGE["im2col"], "lower": [], "upper": []}},  # type: ignore[dict-item]
    ],
)
def test_maps_that_do_not_fit(changes: dict[str, object]) -> None:
    with pytest.raises(InputError):
        copied(**changes)


# ---- strong copies ---------------------------------------------------------------------------------------------

STRONG = "cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128 [%d0], [%r2], 64"
BOTH = """.reg .b128 %q;
mov.u32 %r10, %ctaid.x;
setp.eq.u32 %p1, %r10, 0;
@%p1 {};
@!%p1 {};
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
"""


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (STRONG, set()),
        ("ld.relaxed.gpu.global.b128 %q, [%d0+16]", set()),
        ("ld.relaxed.cta.global.b128 %q, [%d0+16]", {"data-race", "undefined-unfinished-copy"}),
        ("ld.global.b128 %q, [%d0+16]", {"data-race", "undefined-unfinished-copy"}),
        (STRONG.replace("relaxed.gpu.", "").replace(".b128", ""), {"data-race", "undefined-unfinished-copy"}),
    ],
)
def test_strong_copies(other: str, found: set[str]) -> None:
    """Elements of 16 bytes are strong at the scope written ("cp.async.bulk")."""
    verdict = judged(BOTH.format(STRONG, other), threads=1, ctas=2)
    assert {one.rule for one in verdict.findings} == found


def test_strong_accesses_of_other_sizes() -> None:
    other = judged(BOTH.format(STRONG, "ld.relaxed.gpu.global.u32 %r11, [%d0+16]"), threads=1, ctas=2)
    assert other.word == "undecided" and "different sizes" in str(other.open)


def test_what_a_strong_copy_reads_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may write it at the same time; what large ones leave is unknown beyond a bound for all of them."""
    body = f"""st.shared.u32 [%r2], 1;
fence.proxy.async.shared::cta;
{STRONG};
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ld.global.u32 %r11, [%d0];
setp.ne.u32 %p3, %r11, 1;
@%p3 trap;"""
    assert verdict_of(body, threads=1).word == "explored"
    large = body.replace("[%r2], 64", "[%r2], 2048")
    assert verdict_of(large, threads=1).word == "explored"
    monkeypatch.setattr("memmodel.kernel.machine.asynchronous.MOST_OBSERVED", 2047)
    assert verdict_of(large, threads=1).word == "undecided"
    assert verdict_of(body.replace("relaxed.gpu.", "").replace(".b128", ""), threads=1).word == "clean"


# ---- what the row says -----------------------------------------------------------------------------------------

TO_GLOBAL = "cp.async.bulk.global.shared::cta.bulk_group"


@pytest.mark.parametrize("size", ["24", "%r20"])
@pytest.mark.parametrize(
    "copy",
    [
        f"{TO_GLOBAL} [%d0], [%r2], ",
        "cp.async.bulk.prefetch.L2.global [%d0], ",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r2], ",
    ],
)
def test_a_size_that_is_no_multiple_of_16(size: str, copy: str) -> None:
    """ "If the value is not a multiple of 16, then the behavior is undefined" ("cp.async.bulk")."""
    verdict = verdict_of(f"mov.u32 %r20, 24;\n@%p0 {copy}{size};", threads=1)
    (undefined,) = [one for one in verdict.findings if one.rule == "undefined-instruction"]
    assert "copies a multiple of 16 bytes" in undefined.message


REDUCED = "cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [%d0], [%r2], 64;\ncp.async.bulk.commit_group;"


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("add.f32", True),
        ("add.f64", True),
        ("add.noftz.bf16", True),
        ("min.f16", True),
        ("add.f16", False),
        ("min.f32", False),
        ("max.noftz.f16", False),
        ("and.u32", False),
        ("dec.u64", False),
        ("relaxed.add.u32", False),
    ],
)
def test_types_of_reductions(words: str, known: bool) -> None:
    """The table of "cp.reduce.async.bulk": what is not in it is no instruction."""
    verdict = judged(f"{REDUCED.format(words)}\ncp.async.bulk.wait_group 0;", threads=1)
    assert verdict.word == ("clean" if known else "undecided"), repr(verdict)


def test_a_mask_that_nobody_knows() -> None:
    """It says who receives, so that nothing can be said of the copy."""
    copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    body = f"ld.global.u16 %h0, [%d0];\n@%p0 {copy} [%r2], [%d0], 64, [%r4], %h0;"
    verdict = verdict_of(body, ctas=2, cluster=2)
    assert verdict.word == "undecided" and "mask names a CTA" in str(verdict.open)


def test_lanes_of_one_instruction_copy_the_same() -> None:
    """Each lane issues the copy, from one place to another; lanes that copy other bytes there race."""
    copy = "cp.async.bulk.global.shared::cta.bulk_group [%d0], [{}], 16;\ncp.async.bulk.commit_group;\n"
    wait = "cp.async.bulk.wait_group 0;"
    assert {one.rule for one in judged(copy.format("%r2") + wait, threads=2).findings} == {"equal-store-race"}
    other = "shl.b32 %r20, %r0, 4;\nadd.u32 %r20, %r20, %r2;\n" + copy.format("%r20") + wait
    assert "data-race" in {one.rule for one in judged(other, threads=2).findings}
