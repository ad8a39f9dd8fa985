"""Rows of the table: tcgen05.alloc and dealloc, commit, wait and fence.

In: a Call. Out: steps. Settled here: which variable an allocation yields. The k-th tcgen05.alloc of a CTA, in the order
of the file, allocates the k-th .tensor variable, unless its destination says which (`slot = alloc(acc)`); without any
alloc, tensor variables are there from the start.
"""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import (
    Access,
    Action,
    Allocates,
    Allocation,
    Barrier,
    Domain,
    Family,
    GroupWait,
    Half,
    Mark,
    Marker,
    Side,
    Signal,
)
from memmodel.isa.call import Call
from memmodel.isa.matrix.tensor_columns import (
    ColumnUse,
    allocated_again,
    allocations,
    column_use,
    columns_given_back,
    columns_of,
    columns_taken,
    exclusive,
    freed,
    more_than_before,
    other_than_the_peer,
)
from memmodel.isa.place import MULTICAST, WIDE_MASKS, address_in, in_cta, mask, mbarrier, pair
from memmodel.isa.rows.row import Effect, Row, Together
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import in_blocks, needed, optional
from memmodel.isa.tensor_memory import ALIGNED, GROUP, PAGE, TCGEN05, group, issue, matrix_a, tracked
from memmodel.litmus.syntax import Variable
from memmodel.program.addresses import WHOLE
from memmodel.program.expressions import AddressOf, Apply, Const, Expr
from memmodel.program.ops import (
    AtBarrier,
    Emit,
    IssueAsync,
    Op,
    SignalPart,
    Track,
    UndefinedIf,
    Unmodelled,
    WaitForGroups,
    Write,
)
from memmodel.program.regions import Elements, Object
from memmodel.program.warp_ops import AllocateColumns, FreeColumns, RelinquishPermit, WarpOp
from memmodel.ptx.operands import Operand, Reg
from memmodel.ptx.vocabulary import U32, Scope, Space, Window

COLUMNS = (32, 64, 128, 256, 512)
WIDEST_COLUMNS = 576


def alloc(call: Call) -> tuple[Op, ...]:
    """tcgen05.alloc: the address of the allocated variable goes to shared memory."""
    where = address_in(call, call.operands[0], Space.SHARED)
    valid = _check_columns(call, call.operands[1])
    variable, use = _allocated(call), column_use(call)
    address = AddressOf(variable.name)
    columns = call.integer(call.operands[1])
    label = Allocates(Allocation.ALLOC, group(call), _labelled(call, use), exclusive(call.instruction))
    taken = columns_taken(call, use, variable, columns)
    written = Write((address,), Elements(where, Window.SHARED_CTA, 4), Access(Side.WRITE))
    return (
        *valid,
        *(other_than_the_peer(call) if group(call) == 2 else ()),
        *_together(call, Allocation.ALLOC),
        *allocated_again(call, variable),
        *taken,
        *more_than_before(call, columns),
        Emit(label, address, columns=variable.length),
        written,
    )


def _labelled(call: Call, use: ColumnUse) -> int | None:
    """The number of columns as the label has it, by which the model compares alloc and dealloc."""
    return columns_of(call, call.context.thread, call.instruction) if use.known else None


def alloc_in_warp(call: Call) -> tuple[Op | WarpOp, ...]:
    """tcgen05.alloc in a module, where tensor memory has 512 columns and an allocation has a number of them."""
    where = address_in(call, call.operands[0], Space.SHARED)
    target, columns = Elements(where, Window.SHARED_CTA, 4), call.integer(call.operands[1])
    label = Allocates(Allocation.ALLOC, group(call), exclusive=exclusive(call.instruction))
    return (*_check_columns(call, call.operands[1]), AllocateColumns(label, columns, target, Access(Side.WRITE)))


def dealloc_in_warp(call: Call) -> tuple[Op | WarpOp, ...]:
    """tcgen05.dealloc in a module: all columns of an allocation, and no others."""
    address, columns = (call.integer(operand) for operand in call.operands)
    label = Allocates(Allocation.DEALLOC, group(call), exclusive=exclusive(call.instruction))
    return (*_check_columns(call, call.operands[1]), FreeColumns(label, address, columns))


def relinquish_in_warp(call: Call) -> tuple[WarpOp, ...]:
    """tcgen05.relinquish_alloc_permit in a module."""
    return (RelinquishPermit(Allocates(Allocation.RELINQUISH, group(call))),)


def _together(call: Call, action: Allocation) -> tuple[Op, ...]:
    """With .cta_group::2 a warp may have to wait until one of the peer CTA does the same ("Issue Granularity")."""
    if group(call) != 2 or len(pair(call)) < 2:
        return ()
    key = (Const(list(Allocation).index(action)),)
    return tuple(AtBarrier(Barrier(half, Domain.PAIR), key, Const(2)) for half in (Half.ARRIVE, Half.WAIT))


def _allocated(call: Call) -> Variable:
    """The tensor variable whose turn it is among those of the test."""
    turn = (variable for _, instruction, variable in allocations(call) if instruction is call.instruction)
    variable = next(turn, None)
    if variable is None:
        hint = "declare what it allocates: `.tensor .b32 acc[4];`"
        call.fail(f"no .tensor variable is left for this {call.head}", hint=hint)
    return variable


def dealloc(call: Call) -> tuple[Op, ...]:
    """tcgen05.dealloc: the tensor memory at an address is no more."""
    valid = _check_columns(call, call.operands[1])
    operand = call.operands[0]
    address: Expr = call.value(operand)
    if not isinstance(operand, Reg):
        call.fail(f"{call.head} takes the register that holds the address", operand, "load it from where alloc put it")
    use = column_use(call)
    label = Allocates(Allocation.DEALLOC, group(call), _labelled(call, use), exclusive(call.instruction))
    emitted = Emit(label, address, columns=WHOLE)
    given_back = columns_given_back(call, use, address, call.integer(call.operands[1]))
    return (*valid, *_together(call, Allocation.DEALLOC), emitted, *freed(call, address), *given_back)


def _check_columns(call: Call, operand: Operand) -> tuple[Op, ...]:
    """The step that finds an illegal number of columns where the number is known only when the test runs."""
    number, columns = call.constant(operand), call.integer(operand)
    if call.word("exclusive"):
        return _check_exclusive(call, columns)
    rule = f"{call.head} takes a power of two from {COLUMNS[0]} to {COLUMNS[-1]} columns"
    if number is not None and number not in COLUMNS and call.in_module:
        return (UndefinedIf(rule, Const(1)),)
    if number is not None and number not in COLUMNS:
        call.fail(f"{rule}, not {number}", operand)
    if number is not None:
        return ()
    several = Apply("ne", (Apply("popc", (columns,), U32), Const(1)), U32)
    beyond = Apply("gt", (Apply("sub", (columns, Const(COLUMNS[0])), U32), Const(COLUMNS[-1] - COLUMNS[0])), U32)
    return (UndefinedIf(rule, Apply("or", (several, beyond), U32)),)


def _check_exclusive(call: Call, columns: Expr) -> tuple[Op, ...]:
    """The steps that find a number of columns that no exclusive allocation has, or one that only sm_107 has."""
    most = WIDEST_COLUMNS
    rule = f"{call.head}.exclusive takes a multiple of {COLUMNS[0]}, from {COLUMNS[0]} to {most} columns"
    partial_unit = Apply("ne", (Apply("and", (columns, Const(COLUMNS[0] - 1)), U32), Const(0)), U32)
    beyond = Apply("gt", (Apply("sub", (columns, Const(COLUMNS[0])), U32), Const(most - COLUMNS[0])), U32)
    wide = Apply("gt", (columns, Const(COLUMNS[-1])), U32)
    return (
        UndefinedIf(rule, Apply("or", (partial_unit, beyond), U32)),
        Unmodelled(f"tensor memory has {COLUMNS[-1]} columns here, and that of sm_107 has {most}", wide),
    )


def relinquish(call: Call) -> tuple[Op, ...]:
    """tcgen05.relinquish_alloc_permit: a tcgen05 event; an alloc that follows in the CTA is undefined."""
    return (*_together(call, Allocation.RELINQUISH), Emit(Allocates(Allocation.RELINQUISH, group(call))))


def commit(call: Call) -> tuple[Op, ...]:
    """tcgen05.commit: an arrive-on when all earlier mma, cp and shift of the thread and CTA group are done; with
    .sync_restrict, when the mma among them have read their A in shared memory.
    """
    barrier = mbarrier(call, call.operands[0], Window.SHARED_CLUSTER)
    cta_mask = call.operand("ctaMask")
    steps, places = ((), ()) if cta_mask is None else mask(call, cta_mask, barrier.address)
    targets = [(Object(in_cta(call, barrier.address, rank), barrier.window), when) for rank, when in places]
    arrival = Signal(Action.ARRIVE, Scope.CLUSTER, Family.COMMIT, group(call))
    (tracks,) = (matrix_a(call),) if call.word("restrict") else tracked(call)
    parts = tuple(
        SignalPart(arrival, barrier_object, tracks=tracks, when=when)
        for barrier_object, when in targets or [(barrier, None)]
    )
    return (*steps, IssueAsync(issue(call, Family.COMMIT), parts))


def wait(call: Call) -> tuple[Op, ...]:
    """tcgen05.wait::ld and wait::st: all earlier tcgen05.ld, or st, of the thread are done."""
    if call.head.endswith("ld"):
        return (WaitForGroups(GroupWait(Family.TCGEN_LD), Track.TCGEN_LD),)
    return (WaitForGroups(GroupWait(Family.TCGEN_ST), Track.TCGEN_ST),)


def fence(call: Call) -> tuple[Op, ...]:
    """tcgen05.fence: no memory fence."""
    return (Emit(Mark(Marker.BEFORE if call.head.endswith("before_thread_sync") else Marker.AFTER)),)


_EXCLUSIVE = optional("exclusive")
_EXCLUSIVE_LATER = {"exclusive": Since(families=TCGEN05.families, version="9.4")}
_ALLOC_SPACE = optional("space", "shared::cta")

_MAY_WAIT = "; with .cta_group::2 it may wait until the peer CTA, if the test has it, does the same"

_row = partial(Row, since=TCGEN05, effect=Effect.SYNCHRONIZES)

ROWS = (
    _row(
        ("tcgen05.alloc",),
        (_EXCLUSIVE, GROUP, *ALIGNED, _ALLOC_SPACE, in_blocks("type", "b32")),
        ("[dst]", "nCols"),
        alloc,
        "an event that begins the life of the CTA's next .tensor variable, then a weak write of its address; it waits "
        "while the thread holds so many columns that there are not enough, with .exclusive while it holds any"
        + _MAY_WAIT,
        PAGE + "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit",
        later=_EXCLUSIVE_LATER,
        lower_module=alloc_in_warp,
        together=Together.WARP,
        live=True,
        uniform=("nCols",),
    ),
    _row(
        ("tcgen05.dealloc",),
        (_EXCLUSIVE, GROUP, *ALIGNED, in_blocks("type", "b32")),
        ("taddr", "nCols"),
        dealloc,
        "an event that ends the life of the variable at that address, which has as many columns, and was allocated "
        "with .exclusive if this has it" + _MAY_WAIT,
        PAGE + "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit",
        later=_EXCLUSIVE_LATER,
        lower_module=dealloc_in_warp,
        together=Together.WARP,
        live=True,
        uniform=("taddr", "nCols"),
        results=0,
    ),
    _row(
        ("tcgen05.relinquish_alloc_permit",),
        (GROUP, *ALIGNED),
        (),
        relinquish,
        "an event" + _MAY_WAIT,
        PAGE + "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit",
        lower_module=relinquish_in_warp,
        together=Together.WARP,
        live=True,
    ),
    _row(
        ("tcgen05.commit",),
        (
            GROUP,
            needed("completion", "mbarrier::arrive::one"),
            optional("restrict", "sync_restrict::shared::read::mma::a"),
            optional("space", "shared::cluster"),
            MULTICAST,
            in_blocks("type", "b64"),
        ),
        ("[mbar]", "ctaMask"),
        commit,
        "an issue; when all earlier mma, cp and shift of the thread and CTA group are done an arrive-on, which "
        "releases at .cluster scope; .multicast::cluster makes one in every CTA of the mask; with "
        ".sync_restrict::shared::read::mma::a it comes when earlier mma have read their A in shared memory",
        PAGE + "tcgen05.commit",
        when={"ctaMask": "multicast"},
        later=WIDE_MASKS | {"restrict": Since(version="9.4", families=frozenset({107}))},
    ),
    _row(
        ("tcgen05.wait::ld", "tcgen05.wait::st"),
        ALIGNED,
        (),
        wait,
        "an event that follows the end of all earlier tcgen05.ld, or st, of the thread",
        PAGE + "tcgen05.wait",
        together=Together.WARP,
        live=True,
    ),
    _row(
        ("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync"),
        (),
        (),
        fence,
        "an event that orders tcgen05 operations with those of other threads; it is not a memory fence",
        PAGE + "tcgen05.fence",
    ),
)
