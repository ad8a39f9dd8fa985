"""Rows of the table: griddepcontrol, and what the beginning and the end of a thread mean for dependent grids.

In: a Call, or a thread. Out: barrier halves. The grid n + 1 of a GPU depends on its grid n and was launched so that it
may begin early. It begins when each CTA of grid n has issued launch_dependents or has ended. Settled here: which halves
meet. The first launch_dependents of a CTA counts; the end of all its threads does if none is issued.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from memmodel.base.labels import Barrier, Domain, Half
from memmodel.isa.call import Call
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import LitmusTest, Thread
from memmodel.program.addresses import cta_places
from memmodel.program.expressions import Const
from memmodel.program.ops import AtBarrier, Op
from memmodel.ptx.vocabulary import Place, Scope, Sem

if TYPE_CHECKING:
    from memmodel.program.warp_ops import WarpOp
    from memmodel.ptx.module.syntax import PtxInstruction

_PAGE = "Parallel Synchronization and Communication Instructions: griddepcontrol"


UNWATCHED = (
    "what stands before this wait touches nothing that the launch before writes, and it writes what is read here"
)
"""What a verdict on a launch takes for granted that waits for the one before it."""


def launch(call: Call) -> tuple[Op, ...]:
    """griddepcontrol.launch_dependents: an arrival for the executing CTA."""
    test, place = call.context.test, call.place
    return (_launches(test, place, ends=False),) if _grid(test, place, 1) else ()


def wait(call: Call) -> tuple[Op, ...]:
    """griddepcontrol.wait: until the grid before has ended."""
    place = call.place
    if not _grid(call.context.test, place, -1):
        return ()
    return (AtBarrier(Barrier(Half.WAIT, Domain.GRID), (Const(place.grid - 1),), None),)


def alone(call: Call) -> tuple[Op | WarpOp, ...]:
    """griddepcontrol.wait in a module. A launch is one grid: the grid before it, which the wait is for, is not looked
    at, and the verdict says so.
    """
    from memmodel.program.warp_ops import Note

    return (Note(UNWATCHED, Const(1), "a litmus test of both grids"),)


def nothing(call: Call) -> tuple[Op, ...]:
    """The same in a module: no other grid is there that may begin."""
    return ()


def at_start(test: LitmusTest, thread: Thread) -> tuple[Op, ...]:
    """What a thread waits for before its first instruction: each CTA of the grid before."""
    place = thread.place
    before = [cta for cta in cta_places(test) if cta.grid_id == (place.gpu, place.grid - 1)]
    label = Barrier(Half.WAIT, Domain.LAUNCH, Sem.ACQUIRE, Scope.SYS)
    return tuple(AtBarrier(label, _key(test, cta), None) for cta in before)


def at_end(test: LitmusTest, thread: Thread) -> tuple[Op, ...]:
    """The steps at the end of a thread that the dependent grid may wait for."""
    place = thread.place
    threads, after = _grid(test, place, 0), _grid(test, place, 1)
    if not after:
        return ()
    waits = any(instruction.mnemonic == _WAIT for thread_after in after for instruction in instructions(thread_after))
    over = AtBarrier(Barrier(Half.ARRIVE, Domain.GRID, ends=True), (Const(place.grid),), Const(len(threads)))
    return (_launches(test, place, ends=True), *((over,) if waits else ()))


def _launches(test: LitmusTest, place: Place, *, ends: bool) -> AtBarrier:
    """An arrival that lets the next grid begin, as far as this CTA is concerned; so do the ends of all its threads."""
    members = sum(thread.place.cta_id == place.cta_id for thread in test.threads)
    label = Barrier(Half.ARRIVE, Domain.LAUNCH, Sem.RELAXED, ends=ends)
    return AtBarrier(label, _key(test, place), Const(members if ends else 1))


def _key(test: LitmusTest, place: Place) -> tuple[Const, Const]:
    """The grid, and the number of a CTA in it."""
    ctas = [cta.cta_id for cta in cta_places(test) if cta.grid_id == place.grid_id]
    return Const(place.grid), Const(ctas.index(place.cta_id))


def _grid(test: LitmusTest, place: Place, distance: int) -> list[Thread]:
    """The threads of the grid that is `distance` grids after that of a place, on the same GPU."""
    return [thread for thread in test.threads if thread.place.grid_id == (place.gpu, place.grid + distance)]


_LAUNCH, _WAIT = "griddepcontrol.launch_dependents", "griddepcontrol.wait"


def lets_next_begin(instruction: PtxInstruction) -> bool:
    """True for what lets the next grid begin, as far as its CTA is concerned."""
    return instruction.opcode == _LAUNCH


def waits_for_grid(instruction: PtxInstruction) -> bool:
    """True for what waits for the grid before."""
    return instruction.opcode == _WAIT


_row = partial(Row, since=Since(90, "7.8"), effect=Effect.SYNCHRONIZES)

ROWS = (
    _row(
        (_LAUNCH,),
        (),
        (),
        launch,
        "an arrival that lets the next grid begin, once every CTA has made one or has ended; a release fence before it "
        "at .gpu or .sys scope synchronizes with the start of that grid if it is the first of its CTA. Without a next "
        "grid in the test, none",
        _PAGE,
        lower_module=nothing,
    ),
    _row(
        (_WAIT,),
        (),
        (),
        wait,
        "a wait for the ends of all threads of the grid before: what these did is seen, asynchronously or through any "
        "proxy but the tensormap proxy (and the read-only path). Without a grid before in the test, none",
        _PAGE,
        lower_module=alone,
    ),
)
