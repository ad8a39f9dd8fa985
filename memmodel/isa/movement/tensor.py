"""Rows of the table: copies and reductions through a tensor map, and prefetches.

In: a Call with a tensor operand `[map, {c0, c1}]`. Out: one instruction: a read of the tensor map through the tensormap
proxy, then as a bulk copy, at the bytes that the map said. Coordinates count elements, coordinate 0 is the innermost;
what lies outside the tensor is read as zero, and not written.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from memmodel.base.labels import Access, Family, Role, Side
from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import Call
from memmodel.isa.copying import (
    CHUNK,
    check_barrier,
    checked_size,
    destinations_in,
    end,
    gather,
    group_tracks,
    issue,
    signalled_copy,
)
from memmodel.isa.movement.bulk import (
    COMPLETION,
    MECHANISM,
    NO_REPORT,
    REDUCTIONS,
    REPORT,
    REPORTS,
    SOURCE,
    TARGET,
    update,
)
from memmodel.isa.movement.hints import in_global
from memmodel.isa.place import MULTICAST, WIDE_MASKS, mask, mbarrier, memory_base, rank_of
from memmodel.isa.refused import refusing
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import needed, optional
from memmodel.litmus.syntax import Variable
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import AsyncRead, Op, Scatter, UndefinedIf
from memmodel.program.regions import Box, BoxMode, BoxTile, Region, TensorMapAt
from memmodel.ptx.operands import Mem, Operand, Reg, Sym, TensorOperand, Vector, describe
from memmodel.ptx.targets import FAMILY_100
from memmodel.ptx.vocabulary import S32, U64, DataType, Proxy, Scope, Window

MODES = ("tile", "tile::gather4", "tile::scatter4", "im2col", "im2col_no_offs", "im2col::w", "im2col::w::128")
DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")

_PAGE = "Data Movement and Conversion Instructions: "


def map_at(call: Call, operand: Operand) -> tuple[Expr, Variable | None, tuple[Expr, ...]]:
    """A tensor operand taken apart: the address of the map, the map if it is named, the coordinates."""
    if not isinstance(operand, TensorOperand):
        hint = "write [map, {0, 0}]: the tensor map and a coordinate for each dimension"
        call.fail(f"{call.head} takes a tensor operand here, and this is {describe(operand)}", operand, hint)
    base, vector = operand.base, operand.rest[-1]
    coordinates = vector.items if isinstance(vector, Vector) and len(operand.rest) == 1 else ()
    if not isinstance(base, Sym | Reg):
        call.fail(f"a tensor map is a name or a register that holds its address, and this is {describe(base)}", base)
    address, descriptor, _ = memory_base(call, Mem(base, operand.offset, base.span))
    _check_dimensions(call, operand, descriptor, len(coordinates))
    if descriptor is not None and not call.root(descriptor).maps and descriptor.space.value not in _MADE:
        hint = f"declare it `.const {descriptor.name} = tensormap(x);`"
        call.fail(f"'{descriptor.name}' is not a tensor map", base, hint)
    return address, descriptor, tuple(call.integer(coordinate) for coordinate in coordinates)


_UNTYPED = U64
"""An element of data that is declared without a type."""

_MADE = ("global", "generic")
"""State spaces in which a kernel may make a tensor map of its own."""

_OF_ROWS = ("tile::gather4", "tile::scatter4")
_OF_IMAGES = ("im2col", "im2col_no_offs")


def _check_dimensions(call: Call, operand: Operand, descriptor: Variable | None, count: int) -> None:
    dimensions = call.word("dim") or "1d"
    wanted = 1 + BoxMode.ROWS.boxes if call.word("mode") in _OF_ROWS else int(dimensions[0])
    if not call.in_module:
        _check_mode(call, ("tile",))
    if count != wanted:
        call.fail(f"{call.head}.{dimensions} takes {wanted} coordinate(s), and {count} are given", operand)
    if descriptor is None or not descriptor.maps:
        return
    view = descriptor.maps[0]
    has = len(view.shape or (1,))
    if has != wanted:
        hint = f"declare it with {wanted} sizes: tensormap({view.data}, {{8, 2}}, {{16, 4}}) has two"
        call.fail(f"'{descriptor.name}' describes a tensor of {has} dimension(s)", operand, hint)


def _check_mode(call: Call, known: tuple[str, ...]) -> str:
    """The load mode, which is one of these."""
    mode = call.word("mode") or "tile"
    if mode not in known:
        call.refuse(f".{mode} is not modelled", "mode", "write .tile, and a copy for each row or window")
    return mode


def _box(call: Call, coordinates: tuple[Expr, ...], offsets: Operand | None, *, reads: bool) -> Box:
    """The box that a copy reads or writes; modules have modes in which these are other bytes."""
    box = Box(Get("$map"), coordinates, reads)
    mode = _check_mode(call, ("tile", *_OF_ROWS, *_OF_IMAGES))
    if mode in _OF_ROWS:
        return replace(box, mode=BoxMode.ROWS)
    if mode not in _OF_IMAGES:
        return box
    numbers = () if offsets is None else offsets.items if isinstance(offsets, Vector) else (offsets,)
    if offsets is not None and len(numbers) != len(coordinates) - 2:
        call.fail(f"{mode} takes {len(coordinates) - 2} offsets here, and {len(numbers)} are given", offsets)
    return replace(box, mode=BoxMode.IMAGE, offsets=tuple(call.integer(number) for number in numbers))


def descriptor_read(address: Expr) -> AsyncRead:
    """The read of the tensor map, through its own proxy; the number is then in `$map`.

    Of a load too it is in the bulk group; whether the end of the group is the end of the read is decision D17.
    """
    label = Access(Side.READ, proxy=Proxy.TENSORMAP, family=Family.BULK, asynchronous=True, role=Role.DESCRIPTOR)
    return AsyncRead(label, TensorMapAt(address, Window.MAPS), ("$map",), tracks=group_tracks(True))


def copy(call: Call) -> tuple[Op, ...]:
    """cp.async.bulk.tensor."""
    if call.word("dst") == "global":
        address, _, coordinates = map_at(call, call.operands[0])
        tile, window, _ = end(call, call.operands[1], "shared::cta")
        box = _box(call, coordinates, None, reads=False)
        write = Scatter(_weak(call, Side.WRITE), box, 1, group_tracks(True))
        source = gather(call, BoxTile(tile, window, Get("$map"), box.mode), in_group=True)
        made_of = descriptor_read(address), source, write
        return (*_inside(call, coordinates), issue(Family.BULK, *made_of))
    destination, map_operand, barrier_operand = call.operands[:3]
    address, _, coordinates = map_at(call, map_operand)
    tile, window, named = end(call, destination, call.word("dst") or "")
    group = 2 if call.word("cta_group") == "cta_group::2" else None
    own = window is Window.SHARED_CTA
    barrier = mbarrier(call, barrier_operand, window)
    named_barrier = barrier_operand.base if isinstance(barrier_operand, Mem) else None
    if isinstance(named_barrier, Sym):
        check_barrier(call, named, named_barrier, barrier_operand, peer=group == 2 and not own)
    cta_mask = call.operand("ctaMask")
    steps, ctas = ((), ()) if cta_mask is None else mask(call, cta_mask, tile, barrier.address)
    if cta_mask is None and not own:
        steps = _one_cta(call, tile, barrier.address, group)
    box = _box(call, coordinates, call.operand("im2colInfo"), reads=True)
    destinations = destinations_in(call, tile, barrier, ctas, group)
    to_window = Window.SHARED_CLUSTER if ctas else window
    first = (descriptor_read(address), gather(call, box, in_group=False))

    def written(address: Expr) -> Region:
        return BoxTile(address, to_window, Get("$map"), box.mode)

    return (*steps, *signalled_copy(call, first, 1, destinations, written, None))


def _one_cta(call: Call, target: Expr, barrier: Expr, group: int | None) -> tuple[Op, ...]:
    """The step that finds an mbarrier object in another CTA than the destination, or with .cta_group::2 in another
    pair, as far as this depends on registers.
    """
    if isinstance(target, AddressOf) and isinstance(barrier, AddressOf):
        return ()
    destination, own = (rank_of(call, address) for address in (target, barrier))
    if group == 2:
        destination, own = (Apply("shr", (rank, Const(1)), _UNTYPED) for rank in (destination, own))
    what = "CTA pair" if group == 2 else "CTA"
    apart = Apply("ne", (destination, own), _UNTYPED)
    return (UndefinedIf(f"{call.head} to one {what}, and its mbarrier object in another", apart),)


def _inside(call: Call, coordinates: tuple[Expr, ...]) -> tuple[Op, ...]:
    """The steps that find a negative coordinate where a copy writes ("Restriction on Tensor Copy instructions")."""
    negative = [Apply("lt", (coordinate, Const(0)), S32) for coordinate in coordinates]
    known = [
        coordinate for coordinate in coordinates if isinstance(coordinate, Const) and not coordinate.value & 1 << 31
    ]
    rule = f"the coordinates of {call.head} to .global are not negative"
    return tuple(
        UndefinedIf(rule, when)
        for coordinate, when in zip(coordinates, negative, strict=True)
        if coordinate not in known
    )


def _weak(call: Call, side: Side) -> Access:
    return replace(call.access(side, proxy=Proxy.ASYNC, family=Family.BULK), asynchronous=True)


def reduce(call: Call) -> tuple[Op, ...]:
    """cp.reduce.async.bulk.tensor: atomic updates at .gpu scope, in the type of the data."""
    address, descriptor, coordinates = map_at(call, call.operands[0])
    tile, window, _ = end(call, call.operands[1], "shared::cta")
    type = _UNTYPED if call.in_module else _element_type(call, descriptor)  # the map says it when the copy is made
    weak = replace(_weak(call, Side.READ), family=Family.BULK_REDUCTION, role=Role.SOURCE)
    box = replace(_box(call, coordinates, None, reads=False), scalars=True)
    read = replace(gather(call, BoxTile(tile, window, Get("$map"), box.mode), in_group=True), label=weak)
    updates = update(call, box, 1, Scope.GPU, type, in_group=True)
    parts = descriptor_read(address), read, updates
    return (*_inside(call, coordinates), issue(Family.BULK_REDUCTION, *parts))


def _element_type(call: Call, descriptor: Variable | None) -> DataType:
    """The type in which a reduction works: that of the data after its map, or after all maps of the test."""
    variables = call.context.variables
    views = (
        view for variable in ([call.root(descriptor)] if descriptor else variables.values()) for view in variable.maps
    )
    types = {variables[view.data].type or _UNTYPED for view in views} or {_UNTYPED}
    if len(types) > 1:
        hint = "name the map, or let all maps of the test describe data of one type"
        call.fail(f"the maps that {call.head} may mean have elements of different types", call.operands[0], hint)
    return types.pop()


def prefetch(call: Call) -> tuple[Op, ...]:
    """cp.async.bulk.prefetch: a hint, without events."""
    return (*in_global(call, call.operands[0], CHUNK), *checked_size(call, call.operands[1])[1])


def prefetch_box(call: Call) -> tuple[Op, ...]:
    """cp.async.bulk.prefetch.tensor: a hint, without events."""
    map_at(call, call.operands[0])
    return ()


_MAP = "[tensorMap, tensorCoords]"
_OFFSETS = {"im2colInfo": "mode=im2col|im2col::w|im2col::w::128"}
"""im2col needs to know where in the image it is."""

_DIM = needed("dim", *DIMENSIONS)
_MODE = optional("mode", *MODES, what="load mode")
_MODES_SINCE = {
    "mode=tile::gather4|tile::scatter4|im2col::w|im2col::w::128": Since(100, "8.6"),
    "mode=tile::gather4|tile::scatter4|im2col::w dst!=shared::cta": Since(version="8.6", families=FAMILY_100),
    "mode=im2col::w::128": Since(version="8.6", families=FAMILY_100),
}
_MODES_FROM = Rule("{head} from .global has no .{mode}", "write .tile", "src=global mode=tile::scatter4|im2col_no_offs")
_MODES_PRIORITY = Rule("{head} has no .{mode}", "write .tile", "mode=tile::scatter4|im2col_no_offs")
_MODES_TO = Rule(
    "{head} to .global has no .{mode}", "write .tile", "dst=global mode=tile::gather4|im2col|im2col::w|im2col::w::128"
)
_MATRIX = Rule(
    "{head}.{dim} has no .{mode}", "rows are those of a matrix: write .2d, or .tile", f"dim!=2d mode={either(_OF_ROWS)}"
)
_IMAGE = Rule(
    "{head}.{dim} has no .{mode}",
    "an image has 3 to 5 dimensions: write .3d, .4d or .5d, or .tile",
    f"dim=1d|2d mode={either(MODES[3:])}",
)

EVICT_LAST = optional("evict", "L2::evict_last", what="eviction priority")
_EVICT_LATER = {"evict": Since(families=frozenset({107}), version="9.4")}
_ONE_HINT = Rule(".{evict} and .{hint} exclude each other", "drop .{evict}", "hint evict")
_OVERRIDE = refusing(
    "the tensor is where its map says, and laid out so",
    "override::global_address",
    "override::global_dim",
    "override::global_dim_stride",
    "im2col_no_offs::w",
    hint="use a tensor map that says so",
)

_row = partial(Row, since=Since(90, "8.0"), effect=Effect.ASYNCHRONOUS)

ROWS = (
    _row(
        ("cp.async.bulk.tensor",),
        (
            _DIM,
            TARGET,
            SOURCE,
            _MODE,
            COMPLETION,
            REPORT,
            MULTICAST,
            optional("cta_group", "cta_group::1", "cta_group::2"),
            CACHE_HINT,
            _OVERRIDE,
        ),
        ("[dstMem]", _MAP, "[srcMem]", "[mbar]", "im2colInfo", "ctaMask", "cache_policy"),
        copy,
        "as cp.async.bulk, always weak, and with a read of the tensor map (tensormap proxy)",
        _PAGE + "cp.async.bulk.tensor",
        rules=(
            *MECHANISM,
            NO_REPORT,
            Rule(
                "{head} does not copy from .shared::cta to .shared::cluster",
                "write cp.async.bulk",
                "dst=shared::cluster src=shared::cta",
            ),
            Rule(".cta_group is for copies to shared memory", "drop it", "dst=global cta_group"),
            _MODES_FROM,
            _MODES_TO,
            _MATRIX,
            _IMAGE,
        ),
        later={
            "cta_group": Since(version="8.6", families=FAMILY_100),
            "dst=shared::cta": Since(90, "8.6"),
            **_MODES_SINCE,
            **WIDE_MASKS,
            **REPORTS,
        },
        when={
            **dict.fromkeys(("[dstMem]", "[mbar]"), "dst!=global"),
            "[srcMem]": "dst=global",
            **_OFFSETS,
            "ctaMask": "multicast",
        },
        written="[dstMem], [tensorMap, {c0, ..}], [mbar]{, im2colInfo}{, ctaMask}{, cache_policy}; to .global: "
        "[tensorMap, {c0, ..}], [srcMem]{, cache_policy}",
    ),
    _row(
        ("cp.reduce.async.bulk.tensor",),
        (
            _DIM,
            needed("dst", "global"),
            needed("src", "shared::cta"),
            needed("op", *REDUCTIONS),
            _MODE,
            needed("completion", "bulk_group"),
            CACHE_HINT,
            _OVERRIDE,
        ),
        (_MAP, "[srcMem]", "cache_policy"),
        reduce,
        "as cp.reduce.async.bulk, at .gpu scope, and with a read of the tensor map (tensormap proxy)",
        _PAGE + "cp.reduce.async.bulk.tensor",
        rules=(_MODES_TO, Rule("{head} has no .{mode}", "write .tile", "mode=tile::scatter4"), _IMAGE),
    ),
    _row(
        ("cp.async.bulk.prefetch",),
        (needed("level", "L2"), needed("src", "global"), CACHE_HINT, EVICT_LAST),
        ("[srcMem]", "size", "cache_policy"),
        prefetch,
        "none; a hint",
        _PAGE + "cp.async.bulk.prefetch",
        rules=(_ONE_HINT,),
        later=_EVICT_LATER,
        effect=Effect.NOTHING,
    ),
    _row(
        ("cp.async.bulk.prefetch.tensor",),
        (_DIM, needed("level", "L2"), needed("src", "global"), _MODE, CACHE_HINT, EVICT_LAST, _OVERRIDE),
        (_MAP, "im2colInfo", "cache_policy"),
        prefetch_box,
        "none; a hint",
        _PAGE + "cp.async.bulk.prefetch.tensor",
        rules=(_MODES_FROM, _MATRIX, _IMAGE, _ONE_HINT),
        later={
            "mode=tile::gather4|im2col::w|im2col::w::128": Since(version="8.6", families=FAMILY_100),
            **_EVICT_LATER,
        },
        when=_OFFSETS,
        effect=Effect.NOTHING,
    ),
    _row(
        ("applypriority.async.bulk.tensor",),
        (
            _DIM,
            optional("src", "global"),
            needed("completion", "bulk_group"),
            _MODE,
            needed("level", "L2::evict_normal", what="eviction priority"),
            _OVERRIDE,
        ),
        (_MAP, "im2colInfo"),
        prefetch_box,
        "none; a hint",
        _PAGE + "applypriority.async.bulk.tensor",
        rules=(_MODES_PRIORITY, _MATRIX, _IMAGE),
        when=_OFFSETS,
        since=Since(families=frozenset({107}), version="9.4"),
        effect=Effect.NOTHING,
    ),
)
