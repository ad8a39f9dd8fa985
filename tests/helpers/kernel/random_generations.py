"""Random kernels of a few threads that meet at barriers of two words, a count and a generation, done right or nearly.

Fences, orders of operations, scopes and kinds of accesses are drawn; one in three kernels is a barrier without a fault.
"""

from __future__ import annotations

import random

from helpers.kernel.random_decisions import as_both

FENCE = "fence.acq_rel.gpu;"


def generations(seed: int) -> tuple[str, str, int]:
    """A litmus test, a kernel of the same threads, each in a CTA of its own, and how many there are."""
    pick = random.Random(seed)
    many = pick.choice((2, 2, 2, 3))
    rounds, likely = 1 if many == 3 else pick.choice((1, 1, 2)), pick.choice((0, 0.15, 0.35))
    same = _Style(pick, likely)
    bodies = []
    for who in range(many):
        style = same if pick.random() < 0.7 else _Style(pick, likely)
        lines = []
        for number in range(rounds):
            lines += _data(pick, who, number, "before")
            lines += _barrier(style, f"{who}x{number}", who, many)
            lines += _data(pick, who, number, "after")
        bodies.append(lines)
    return (*as_both("generations", bodies), many)


class _Style:
    """How a thread meets the others. `likely`: that something is done otherwise than it should be."""

    def __init__(self, pick: random.Random, likely: float) -> None:
        def right(others: tuple[str, ...], *wrong: str) -> str:
            return pick.choice(wrong) if wrong and pick.random() < likely else pick.choice(others)

        self.first = right((FENCE, FENCE, "fence.sc.gpu;"), "", "", "fence.acq_rel.cta;")
        self.behind_reset = right((FENCE, FENCE, "fence.sc.gpu;"), "", "")
        self.last = right((FENCE, FENCE, "fence.sc.gpu;"), "", "")
        self.behind_generation = right(("", ""), FENCE)
        self.asks = right(("relaxed", "relaxed", "acquire"))
        self.polls = right(("relaxed", "relaxed", "acquire"))
        self.counts = right(("relaxed", "relaxed", "acq_rel"), "release", "acquire")
        self.word = right(("st",), "st", "exch", "none", "red")
        self.bumps = right(("st", "st", "st.release", "add"), "red", "st", "before")
        self.asks_first = right(("yes",), "no", "never") == "yes"
        self.known = pick.random() < 0.3


def _barrier(style: _Style, name: str, who: int, many: int) -> list[str]:
    """One meeting: [x] counts, [y] is the generation."""
    asks = f"ld.{style.asks}.gpu.global.u32 %r20, [y];"
    number = name.split("x")[1]
    arrives = f"atom.{style.counts}.gpu.global.add.u32 %r21, [x], 1;"
    reset = {
        "st": "st.relaxed.gpu.global.u32 [x], 0;", "exch": "atom.relaxed.gpu.global.exch.b32 %r24, [x], 0;",
        "none": "", "red": f"red.relaxed.gpu.global.add.u32 [x], {-many};",
    }[style.word]  # fmt: skip
    bump = {
        "st": "st.relaxed.gpu.global.u32 [y], %r23;", "st.release": "st.release.gpu.global.u32 [y], %r23;",
        "add": "atom.acq_rel.gpu.global.add.u32 %r25, [y], 1;", "red": "red.release.gpu.global.add.u32 [y], 1;",
        "before": "st.relaxed.gpu.global.u32 [y], %r23;",
    }[style.bumps]  # fmt: skip
    last = [reset, style.behind_reset, bump]
    if style.bumps == "before":
        last = [bump, style.behind_reset, reset]
    lines = [
        *([asks, style.behind_generation] if style.asks_first else []),
        style.first,
        arrives,
        *([] if style.asks_first else [asks]),
        f"mov.u32 %r20, {number};" if style.known else "",
        f"setp.eq.u32 %p5, %r21, {many - 1};",
        f"@%p5 bra L{name};",
        f"W{name}: ld.{style.polls}.gpu.global.u32 %r22, [y];",
        "setp.eq.u32 %p6, %r22, %r20;",
        f"@%p6 bra W{name};",
        f"bra O{name};",
        f"L{name}: add.u32 %r23, %r20, 1;",
        *last,
        f"O{name}: mov.u32 %r26, 0;",
        style.last,
    ]
    return [line for line in lines if line]


def _data(pick: random.Random, who: int, number: int, where: str) -> list[str]:
    """Weak accesses before and after: one thread writes what the others read behind the barrier."""
    if where == "before":
        return [f"st.global.u32 [{'de'[number]}], {7 + who};"] if who == number else []
    if pick.random() < 0.2:
        return [f"st.global.u32 [{'de'[number]}], {17 + who};"]
    return [f"ld.global.u32 %r30, [{'de'[number]}];"]
