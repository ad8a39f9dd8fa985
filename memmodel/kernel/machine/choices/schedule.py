"""One way to make the choices that a launch leaves open.

In: nothing, or a Launch. Out: `Schedule`, the clusters that start late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from memmodel.kernel.launch import Launch
from memmodel.kernel.trace.events import TraceEvent
from memmodel.program.fields import Bits

Order = tuple[tuple[str, int], tuple[int, ...]]
"""For a location (the name of its memory, an offset) the threads in the order of their atomic operations there."""

FIRST, LAST = "first", "last"
"""Those that write a word again wait until nobody else can go on; or those that read it do."""

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
    """`last_elected`: elect.sync takes the last lane of its mask. `split`: activemask shows the first lane by itself.
    `order`: of atomic operations; where the kernel does not let them be made so, they are made as they come.
    `backwards`: warps take turns in the opposite order. `opaque`: numbers of instructions whose result is taken as
    unknown, to see what depends on it. `ctas`: the CTAs that are run; empty: all. `cancelled`: so many clusters are not
    started as long as others can go on, so that clusterlaunchcontrol.try_cancel takes them over. `assumed`: beginnings
    of opcodes that are taken to compute registers from registers and to do nothing else. `parks`: lanes that meet
    something which the run cannot decide stay there, and the others go on as far as they can. `looks`: which state of a
    word those see that poll it, at the instructions `looked`: FIRST, LAST, or a seed by which each thread takes one of
    the two; nothing: as it comes. `slow`: a seed by which half of the warps only go on where no other warp changes
    anything, or after many rounds, and stop before each fence; `late`: the warps (CTA, number) that do; `starves`: they
    only do where the others come to no new state, so that who polls a word may give up; `holding`: by which atomic
    operations the first warp that makes one becomes such a warp, so that who tries to take what it has may give up;
    `apart`: of several lanes that make one together, the first is held back and the others go on.
    `truthful`: tests of mbarrier objects that return false where a phase has not ended, and do not wait for its end.
    `filled`: registers hold 0 at first, to see what depends on one that has not been written. `reads`: strong reads
    that return another write than the last one in time. `counted`: atomic operations whose result is not known where
    they are `opaque`, and whose words are known all the same. `failing`: tests of mbarrier objects that fail a few
    times before they wait. `steps`: a run takes at most so many, if fewer than any may. `scripted`: `reads` is a
    script, and this says whether a value leads the loop around a read back to it.
    """

    last_elected: bool = False
    order: tuple[Order, ...] = ()
    split: bool = False
    backwards: bool = False
    opaque: frozenset[int] = frozenset()
    ctas: tuple[int, ...] = ()
    cancelled: int = 0
    assumed: tuple[str, ...] = ()
    parks: bool = False
    looks: str = ""
    looked: frozenset[int] = frozenset()
    slow: str = ""
    late: tuple[tuple[int, int], ...] = ()
    starves: bool = False
    holding: frozenset[int] = frozenset()
    apart: bool = False
    truthful: frozenset[int] = frozenset()
    filled: bool = False
    reads: tuple[ChosenRead, ...] = ()
    counted: frozenset[int] = frozenset()
    failing: frozenset[int] = frozenset()
    steps: int | None = None
    scripted: Callable[[TraceEvent, int | None], bool] | None = field(default=None, compare=False, repr=False)


def last_clusters(launch: Launch, first: int, count: int) -> dict[int, tuple[int, int, int]]:
    """The last clusters of the grid, none before the one with the number `first`: by their numbers their first CTAs."""
    size = launch.cluster
    across = [extent // part for extent, part in zip(launch.grid, size, strict=True)]
    clusters = {}
    for number in range(max(first, prod(across) - count), prod(across)):
        of = (number % across[0], number // across[0] % across[1], number // (across[0] * across[1]))
        clusters[number] = (of[0] * size[0], of[1] * size[1], of[2] * size[2])
    return clusters
