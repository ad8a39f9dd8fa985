"""One way to make the choices that a launch leaves open.

In: nothing, or a Launch. Out: `Schedule`, the clusters that start late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from memmodel.kernel.launch import Launch
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.indices import index_of
from memmodel.program.fields import Bits

Order = tuple[tuple[str, int], tuple[int, ...]]
"""For a location (the name of its memory, an offset) the threads in the order of their atomic operations there."""

FIRST, LAST = "first", "last"
"""Those that write a word again wait until no other thread can go on; or those that read it do."""

AccessKey = tuple[int, int, int]
"""A strong access in runs that do the same up to it: thread, instruction, how many the thread had made with it."""


@dataclass(frozen=True, slots=True)
class ChosenRead:
    """A strong read, and the write that it returns: None for what was there before all strong writes.

    `bits`: what that write leaves, as far as it is known. `place`: of an atomic operation that
    a script orders; `fails`: it writes nothing, and another operation comes right after that write.
    `never`: the thread stays in the loop around the read.
    """

    read: AccessKey
    write: AccessKey | None
    bits: Bits
    place: tuple[str, int] | None = None
    fails: bool = False
    never: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """How one run makes the choices that a launch leaves open."""

    elected: int = 0
    """elect.sync takes the lane of its mask before which so many others come, or the last one."""
    order: tuple[Order, ...] = ()
    """By location, the threads in the order in which they make their atomic operations there. Where the kernel does not
    allow this order, the operations are made as they come."""
    split: bool = False
    """activemask shows the first lane by itself."""
    backwards: bool = False
    """Warps take turns in the opposite order."""
    opaque: frozenset[int] = frozenset()
    """Numbers of instructions whose results are unknown, to see what depends on them."""
    ctas: tuple[int, ...] = ()
    """The CTAs that are run; empty: all."""
    cancelled: int = 0
    """This many clusters are not started while others can go on, so that clusterlaunchcontrol.try_cancel takes them
    over."""
    apart: int = 1
    """Of the last clusters each so many-th is not started: others that run lie between those that are taken over."""
    assumed: tuple[str, ...] = ()
    """Beginnings of opcodes that are assumed to compute registers from registers, and to do nothing else."""
    parks: bool = False
    """Lanes that meet something that the run cannot decide stay there, and the others go on as far as they can."""
    looks: str = ""
    """At the instructions `looked`: which state of a word is seen by the threads that poll it. FIRST, LAST, or a seed
    by which each thread sees one of the two; empty: as it comes."""
    looked: frozenset[int] = frozenset()
    """The instructions that `looks` is about."""
    slow: str = ""
    """A seed that makes half of the warps slow. A slow warp goes on only while no other warp changes anything, or after
    many rounds, and stops before each fence."""
    late: tuple[tuple[int, int], ...] = ()
    """The warps (CTA, number) that are slow."""
    held: frozenset[tuple[int, int, int, int]] = frozenset()
    """Lanes (CTA, warp, lane, instruction) that stop before an instruction until no other thread can go on."""
    starves: bool = False
    """Slow warps go on only when the others come to no new state, so that a thread that polls a word may give up."""
    holding: frozenset[int] = frozenset()
    """Atomic operations. The first warp that makes one of them becomes slow, so that a thread that tries to take what
    it has may give up."""
    parts_lanes: bool = False
    """Of several lanes that make such an operation together, the first is held back and the others go on."""
    truthful: frozenset[int] = frozenset()
    """Tests of mbarrier objects that return false if the phase has not ended, and do not wait for its end."""
    filled: bool = False
    """Registers hold 0 at first, to see what depends on a register that was never written."""
    reads: tuple[ChosenRead, ...] = ()
    """Strong reads that do not return the last write in time."""
    counted: frozenset[int] = frozenset()
    """Atomic operations whose results are unknown where they are `opaque`, while their words stay known."""
    failing: frozenset[int] = frozenset()
    """Tests of mbarrier objects that fail a few times before they wait."""
    steps: int | None = None
    """The most steps of the run, if fewer than any run may take."""
    scripted: Callable[[TraceEvent, int | None], bool] | None = field(default=None, compare=False, repr=False)
    """`reads` is a script. This says whether a value leads the loop around a read back to the read."""


def last_clusters(launch: Launch, first: int, count: int, apart: int = 1) -> dict[int, tuple[int, int, int]]:
    """Clusters at the end of the grid, each `apart`-th, none before the one with the number `first`: by their numbers
    their first CTAs.
    """
    size = launch.cluster
    across = [extent // part for extent, part in zip(launch.grid, size, strict=True)]
    clusters = {}
    for number in range(max(first, prod(across) - count * apart), prod(across), apart):
        x, y, z = index_of(number, across)
        clusters[number] = (x * size[0], y * size[1], z * size[2])
    return clusters
