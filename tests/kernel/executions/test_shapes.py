"""The shapes of weak memory as kernels, with random fences and semantics, against the exact engines."""

from __future__ import annotations

import random

from helpers.examples import each_seed
from helpers.kernel.random_decisions import SEMANTICS, as_both, races
from helpers.kernel.samples import judged

SHAPES = {
    "SB": ("Wx1 Ry0", "Wy1 Rx0"),
    "LB": ("Rx1 Wy1", "Ry1 Wx1"),
    "LB with a branch": ("Rx1 B Wy1", "Ry1 Wx1"),
    "MP": ("Wx1 Wy1", "Ry1 Rx0"),
    "S": ("Wx2 Wy1", "Ry1 Wx1", "Rx1 Rx2"),
    "R": ("Wx1 Wy1", "Wy2 Rx0"),
    "IRIW": ("Wx1", "Wy1", "Rx1 Ry0", "Ry1 Rx0"),
    "WRC": ("Wx1", "Rx1 Wy1", "Ry1 Rx0"),
    "CoRR": ("Wx1", "Rx1 Rx0"),
    "SB with atomic stores": ("Ax Ry0", "Ay Rx0"),
    "SB with atomic loads": ("Ax Ly0", "Ay Lx0"),
}
"""What each thread does: W writes a number, R reads one and goes on only with it, A exchanges, L adds 0; B branches."""


def body(shape: str, place: int, pick: random.Random, likely: float) -> list[str]:
    """The instructions of a thread; at the end it writes what another thread writes, too."""
    lines: list[str] = []
    asked: list[tuple[str, str]] = []

    def decide() -> None:
        while asked:
            lines.extend(("setp.ne.u32 %p5, {}, {};".format(*asked.pop(0)), f"@%p5 bra END{place};"))

    for number, step in enumerate(shape.split()):
        if step == "B":
            decide()
            continue
        if number and pick.random() < likely:
            lines.append(f"fence.{pick.choice(('sc', 'acq_rel'))}.{pick.choice(('gpu', 'gpu', 'cta'))};")
        how, name, register = pick.choice(SEMANTICS[step[0]]), f"[{step[1]}]", f"%r{10 + number}"
        lines.append({
            "W": f"st.{how}.gpu.global.u32 {name}, {step[2:]};",
            "R": f"ld.{how}.gpu.global.u32 {register}, {name};",
            "A": f"atom.{how}.gpu.global.exch.b32 {register}, {name}, 1;",
            "L": f"atom.{how}.gpu.global.add.u32 {register}, {name}, 0;",
        }[step[0]])  # fmt: skip
        if step[0] in "RL":
            asked.append((register, step[2:]))
    asks = any(step[0] in "RL" for step in shape.split())
    decide()
    return [*lines, f"st.global.u32 [d], {7 + place};"] if asks else lines


def both(seed: int) -> tuple[str, str, str, int]:
    """A shape, a litmus test and a kernel of its threads, and how many there are."""
    pick = random.Random(seed)
    shape, likely = pick.choice(sorted(SHAPES)), pick.choice((0, 0.4, 1))
    bodies = [body(one, place, pick, likely) for place, one in enumerate(SHAPES[shape])]
    if sum("[d]" in " ".join(one) for one in bodies) < 2:
        bodies[0].append("st.global.u32 [d], 99;")
    return (shape, *as_both("shape", bodies), len(bodies))


@each_seed(10)
def test_a_race_is_found_where_some_execution_has_one(seed: int) -> None:
    shape, litmus, kernel, threads = both(seed)
    verdict = judged(kernel, 1, threads, "zero")
    assert not verdict.open and verdict.word in ("findings", "explored", "clean")
    found, exists = "data-race" in {one.rule for one in verdict.findings}, races(litmus)
    assert exists or not found, kernel
    assert found or not exists or shape == "S", kernel  # of S, not all are within the bound
