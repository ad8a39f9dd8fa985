"""How a state of an mbarrier object counts: by the life of the object, and by the phases that are over in it.

In: how many lives were before, and phases over. Out: one number, which grows with both. Settled here: a state of an
earlier life is older than the phase before the current one, so that it is undefined in a test ("mbarrier.inval", "Phase
of the mbarrier object"). The objects of kernels have more phases than those of litmus tests.
"""

from __future__ import annotations

LIFE_BITS = 9
"""An object has fewer lives, and each of them fewer phases, than this many bits can count."""


KERNEL_PHASE_BITS = 22
"""A run of a kernel has fewer phases of a life than this many bits can count, and 2^12 times fewer lives."""


def in_life(number: int, over: int, bits: int = LIFE_BITS) -> int:
    """The state of an object with `over` completed phases in its life number `number`. `bits`: the width of `over`."""
    return max(0, number) << bits | over


def of_life(state: int) -> tuple[int, int]:
    """The number of the life and its completed phases, of a state of `in_life`."""
    return state >> LIFE_BITS, state & (1 << LIFE_BITS) - 1


def in_lives(lives: int, phases: int) -> tuple[int, ...]:
    """All states of objects with at most that many lives, and phases in each. Every object has a first life."""
    return tuple(in_life(number, over) for number in range(max(1, lives)) for over in range(phases))
