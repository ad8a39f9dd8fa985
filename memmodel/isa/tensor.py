"""Rows of the table: copies and reductions through a tensor map, and prefetches.

In: a Call with a tensor operand `[map, {c0, c1}]`. Out: one Issue: a read of the tensor map through the tensormap
proxy, then as a bulk copy. The map's value is the address of the data: a copy reads its data through what the map
held, unless no instruction of the test can change the map. Settled here: where each element of a box lies.
Coordinates and box count elements, coordinate 0 is the innermost; a box has to lie within the tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.isa.bulk import COMPLETION, MECHANISM, MULTICAST, REDUCTIONS, SOURCE, TARGET, take, updates
from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import ADDRESS, Call, describe
from memmodel.isa.copying import (
    BULK_GROUP,
    CHUNK,
    End,
    check_barrier,
    check_extent,
    completed,
    destinations,
    elements,
    end,
    grouped,
    size_of,
    sources,
    writes,
)
from memmodel.isa.facts import box_offsets, changed, linear
from memmodel.isa.memory import element_bytes
from memmodel.isa.ops import AddressOf, Apply, Const, Expr, Get, Op, Part
from memmodel.isa.place import mask, mbarrier, shifted
from memmodel.isa.row import Need, Row, Rule, Slot
from memmodel.isa.tensor_memory import TENSOR_CORES
from memmodel.litmus.syntax import Group, Operand, Sym, Variable
from memmodel.ptx import UNTYPED, Proxy, Scope

MODES = ("tile", "tile::gather4", "tile::scatter4", "im2col", "im2col_no_offs", "im2col::w", "im2col::w::128")
DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")

_PAGE = "Data Movement and Conversion Instructions: "


@dataclass(frozen=True, slots=True)
class Box:
    """What a tensor operand names: the map, the data it describes at first, and the box's offsets in bytes."""

    map: Variable
    data: Variable
    address: Expr
    offsets: list[int]
    first: int | None

    @property
    def size(self) -> int:
        return len(self.offsets) * element_bytes(self.data)


def box_of(call: Call, operand: Operand) -> Box:
    """A tensor operand taken apart; `address` is that of the box's first element."""
    if not isinstance(operand, Group) or not operand.bracketed:
        hint = "write [map, {0, 0}]: the tensor map and a coordinate for each dimension"
        call.fail(f"{call.head} takes a tensor operand here, and this is {describe(operand)}", operand, hint)
    name, vector = operand.items[0], operand.items[-1]
    if not isinstance(name, Sym):
        call.fail(
            "the tensor map is named directly", operand, "declare it `.const .align 64 .b8 map[128] = tensormap(x);`"
        )
    descriptor = call.variable(name)
    if descriptor.tensormap is None:
        call.fail(
            f"'{descriptor.name}' is no tensor map", name, f"declare it `.const {descriptor.name} = tensormap(x);`"
        )
    data = call.context.variables[descriptor.tensormap]
    coordinates = vector.items if isinstance(vector, Group) and len(operand.items) == 2 else ()
    _check_dimensions(call, operand, descriptor, len(coordinates))
    unit = element_bytes(data)
    values = [call.constant(coordinate) for coordinate in coordinates]
    base: Expr = Get("$map") if changed(call.context.test, descriptor.name) else AddressOf(data.name)
    known = [value for value in values if value is not None]
    if len(known) == len(values):
        _check_inside(call, operand, descriptor, data, known)
        first = linear(descriptor, data, known)
        return Box(descriptor, data, shifted(base, first * unit), box_offsets(descriptor, data), first)
    pitch = unit
    for coordinate, extent in zip(coordinates, descriptor.shape or (len(data.init),), strict=True):
        step = Apply("mul", (call.integer(coordinate), Const(pitch)), UNTYPED)
        base = Apply("add", (base, step), ADDRESS)
        pitch *= extent
    return Box(descriptor, data, base, box_offsets(descriptor, data), None)


def _check_dimensions(call: Call, operand: Operand, descriptor: Variable, given: int) -> None:
    wanted = int((call.word("dim") or "1d")[0])
    if call.word("mode") in ("tile::gather4", "tile::scatter4"):
        call.refuse(
            "rows that are gathered or scattered are not modelled", "mode", "write .tile, and a copy for each row"
        )
    if given != wanted:
        call.fail(f"{call.head}.{wanted}d takes {wanted} coordinate(s), and {given} are given", operand)
    has = len(descriptor.shape or (1,))
    if has != wanted:
        hint = f"declare it with {wanted} sizes: tensormap({descriptor.tensormap}, {{8, 2}}, {{16, 4}}) has two"
        call.fail(f"'{descriptor.name}' describes a tensor of {has} dimension(s)", operand, hint)


def _check_inside(call: Call, operand: Operand, descriptor: Variable, data: Variable, at: list[int]) -> None:
    shape = descriptor.shape or (len(data.init),)
    box = descriptor.box or shape
    for axis, (first, size, extent) in enumerate(zip(at, box, shape, strict=True)):
        if not 0 <= first <= extent - size:
            hint = f"dimension {axis} has {extent} elements, of which a box takes {size}"
            call.fail(f"the box at {first} does not lie within '{data.name}'", operand, hint)


def descriptor_read(call: Call, box: Box, *, in_group: bool) -> Part:
    """The read of the tensor map, through its own proxy."""
    event = call.event("R", "M", "WEAK", "ASYNC", "BULK", "DESC", "SRC", proxy=Proxy.TENSORMAP)
    track = BULK_GROUP if in_group else frozenset[str]()
    return Part("read", AddressOf(box.map.name), event, "$map", track=track)


def copy(call: Call) -> tuple[Op, ...]:
    """cp.async.bulk.tensor."""
    if call.word("dst") == "global":
        given = take(call, ["[tensorMap, tensorCoords]", "[srcMem]", *_policy(call)])
        box, tile = box_of(call, given["[tensorMap, tensorCoords]"]), end(call, given["[srcMem]"], "shared::cta")
        kept = _kept(call, box, tile)
        unit = element_bytes(box.data)
        its = writes(call, "global", box.address, [box.offsets[k] * unit for k in kept], grouped=True)
        return (grouped(_tile_reads(call, box, tile, kept), its),)
    mask_name = ["ctaMask"] if call.word("multicast") else []
    given = take(call, ["[dstMem]", "[tensorMap, tensorCoords]", "[mbar]", *_offsets(call), *mask_name, *_policy(call)])
    box, tile = box_of(call, given["[tensorMap, tensorCoords]"]), end(call, given["[dstMem]"], call.word("dst") or "")
    kept = _kept(call, box, tile)
    unit = element_bytes(box.data)
    barrier = mbarrier(call, given["[mbar]"])
    check_barrier(call, tile, given["[mbar]"], peer=call.word("cta_group") == "cta_group::2")
    ctas = mask(call, given["ctaMask"]) if mask_name else ()
    reads = sources(call, "global", box.address, [box.offsets[k] * unit for k in kept], grouped=False)
    made = [
        (bar, writes(call, call.word("dst") or "", where, [k * unit for k in kept], grouped=False))
        for where, bar in destinations(call, tile.address, barrier, ctas)
    ]
    return (completed(call, [descriptor_read(call, box, in_group=False), *reads], made, box.size),)


def _kept(call: Call, box: Box, tile: End) -> list[int]:
    """The elements of the box that are copied, by their number in the tile."""
    unit = element_bytes(box.data)
    if box.size % CHUNK:
        call.fail(
            f"a box of {box.size} bytes is no multiple of {CHUNK}", tile.operand, "mind the box of the tensor map"
        )
    check_extent(call, tile, box.size)
    if tile.variable is not None and element_bytes(tile.variable) != unit:
        hint = f"declare both with elements of {unit} bytes: a copy is seen element by element"
        call.fail(f"{call.head} copies between elements of different sizes", tile.operand, hint)
    wanted = set(elements(call, tile, tile, len(box.offsets)))
    if box.first is not None:
        seen = call.context.interest.get(box.data.name, ())
        wanted |= {k for k, at in enumerate(box.offsets) if box.first + at in seen}
    return sorted(wanted)


def _tile_reads(call: Call, box: Box, tile: End, kept: list[int]) -> list[Part]:
    """What an operation on the tensor reads: the map, and its tile in shared memory."""
    offsets = [k * element_bytes(box.data) for k in kept]
    reads = sources(call, "shared::cta", tile.address, offsets, grouped=True)
    return [descriptor_read(call, box, in_group=True), *reads]


def reduce(call: Call) -> tuple[Op, ...]:
    """cp.reduce.async.bulk.tensor: atomic updates at .gpu scope, in the type of the data."""
    given = take(call, ["[tensorMap, tensorCoords]", "[srcMem]", *_policy(call)])
    box, tile = box_of(call, given["[tensorMap, tensorCoords]"]), end(call, given["[srcMem]"], "shared::cta")
    kept = _kept(call, box, tile)
    unit = element_bytes(box.data)
    offsets = [box.offsets[k] * unit for k in kept]
    its = updates(call, "global", box.address, offsets, Scope.GPU, box.data.type or UNTYPED, grouped=True)
    return (grouped(_tile_reads(call, box, tile, kept), its),)


def prefetch(call: Call) -> tuple[Op, ...]:
    """cp.async.bulk.prefetch: a hint, without events."""
    given = take(call, ["[srcMem]", "size", *_policy(call)])
    check_extent(call, end(call, given["[srcMem]"], "global"), size_of(call, given["size"]))
    return ()


def prefetch_box(call: Call) -> tuple[Op, ...]:
    """cp.async.bulk.prefetch.tensor: a hint, without events."""
    box_of(
        call, take(call, ["[tensorMap, tensorCoords]", *_offsets(call), *_policy(call)])["[tensorMap, tensorCoords]"]
    )
    return ()


def _policy(call: Call) -> list[str]:
    return ["cache_policy"] if call.word("hint") else []


def _offsets(call: Call) -> list[str]:
    """im2col needs to know where in the image it is."""
    return ["im2colInfo"] if call.word("mode") in ("im2col", "im2col::w", "im2col::w::128") else []


_DIM = Slot("dim", DIMENSIONS, "number of dimensions", Need.ALWAYS)
_MODE = Slot("mode", MODES, "load mode")
_FAMILIES = dict.fromkeys(("cta_group::1", "cta_group::2", "im2col::w", "im2col::w::128"), TENSOR_CORES)
_MODES_FROM = Rule(
    "{head} from .global has no .{mode}",
    "write .tile",
    {"mode": ("tile::scatter4", "im2col_no_offs"), "src": ("global",)},
    at="mode",
)
_MODES_TO = Rule(
    "{head} to .global has no .{mode}",
    "write .tile",
    {"mode": ("tile::gather4", "im2col", "im2col::w", "im2col::w::128"), "dst": ("global",)},
    at="mode",
)
_IMAGE = Rule(
    "{head}.{dim} has no .{mode}",
    "an image has 3 to 5 dimensions: write .3d, .4d or .5d, or .tile",
    {"dim": ("1d", "2d"), "mode": MODES[3:]},
    at="mode",
)

ROWS = (
    Row(
        ("cp.async.bulk.tensor",),
        (
            _DIM,
            TARGET,
            SOURCE,
            _MODE,
            COMPLETION,
            MULTICAST,
            Slot("cta_group", ("cta_group::1", "cta_group::2"), "CTA group"),
            CACHE_HINT,
        ),
        ("a", "b", "c?", "d?", "e?", "f?"),
        copy,
        "as cp.async.bulk, always weak, and with a read of the tensor map (tensormap proxy)",
        _PAGE + "cp.async.bulk.tensor",
        rules=(
            *MECHANISM,
            Rule(
                "{head} does not copy from .shared::cta to .shared::cluster",
                "write cp.async.bulk",
                {"dst": ("shared::cluster",), "src": ("shared::cta",)},
                at="src",
            ),
            Rule(
                ".cta_group is for copies to shared memory",
                "drop it",
                {"cta_group": (), "dst": ("global",)},
                at="cta_group",
            ),
            _MODES_FROM,
            _MODES_TO,
            _IMAGE,
        ),
        since=90,
        word_families=_FAMILIES,
        written="[dstMem], [tensorMap, {c0, ..}], [mbar]{, im2colInfo}{, ctaMask}{, cache_policy}; to .global: "
        "[tensorMap, {c0, ..}], [srcMem]{, cache_policy}",
    ),
    Row(
        ("cp.reduce.async.bulk.tensor",),
        (
            _DIM,
            Slot("dst", ("global",), "destination", Need.ALWAYS),
            Slot("src", ("shared::cta",), "source", Need.ALWAYS),
            Slot("op", REDUCTIONS, "operation", Need.ALWAYS),
            _MODE,
            Slot("completion", ("bulk_group",), "completion mechanism", Need.ALWAYS),
            CACHE_HINT,
        ),
        ("a", "b", "cache_policy?"),
        reduce,
        "as cp.reduce.async.bulk, at .gpu scope, and with a read of the tensor map (tensormap proxy)",
        _PAGE + "cp.reduce.async.bulk.tensor",
        rules=(_MODES_TO, _IMAGE),
        since=90,
        written="[tensorMap, {c0, ..}], [srcMem]{, cache_policy}",
    ),
    Row(
        ("cp.async.bulk.prefetch",),
        (Slot("level", ("L2",), "level", Need.ALWAYS), Slot("src", ("global",), "source", Need.ALWAYS), CACHE_HINT),
        ("[srcMem]", "size", "cache_policy?"),
        prefetch,
        "none; a hint",
        _PAGE + "cp.async.bulk.prefetch",
        since=90,
    ),
    Row(
        ("cp.async.bulk.prefetch.tensor",),
        (
            _DIM,
            Slot("level", ("L2",), "level", Need.ALWAYS),
            Slot("src", ("global",), "source", Need.ALWAYS),
            _MODE,
            CACHE_HINT,
        ),
        ("[tensorMap, tensorCoords]", "a?", "b?"),
        prefetch_box,
        "none; a hint",
        _PAGE + "cp.async.bulk.prefetch.tensor",
        rules=(_MODES_FROM, _IMAGE),
        since=90,
        word_families=_FAMILIES,
        written="[tensorMap, {c0, ..}]{, im2colInfo}{, cache_policy}",
    ),
)
