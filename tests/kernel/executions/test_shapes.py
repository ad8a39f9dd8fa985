"""The shapes of weak memory as kernels, with random fences and semantics, against the exact engines."""

from __future__ import annotations

import random
from pathlib import Path

from helpers.examples import each_seed
from helpers.kernel.samples import judged
from helpers.patience import PATIENCE

from memmodel import api
from memmodel.answer import Budget

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
PLACES = {"[x]": "[%d0]", "[y]": "[%d0+4]", "[d]": "[%d0+64]"}
SEMANTICS = {
    "W": ("relaxed", "release"), "R": ("relaxed", "acquire"), "A": ("relaxed", "acq_rel"), "L": ("relaxed", "acq_rel"),
}  # fmt: skip


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


def both(seed: int) -> tuple[str, str, int]:
    """A litmus test and a kernel of the same threads, and how many there are."""
    pick = random.Random(seed)
    shape, likely = pick.choice(sorted(SHAPES)), pick.choice((0, 0.4, 1))
    bodies = [body(one, place, pick, likely) for place, one in enumerate(SHAPES[shape])]
    if sum("[d]" in " ".join(one) for one in bodies) < 2:
        bodies[0].append("st.global.u32 [d], 99;")
    litmus = ["PTX shape", f'"{shape}"', "", *(f".global .u32 {name};" for name in "xyd"), ""]
    kernel = ["mov.u32 %r50, %ctaid.x;"]
    for place in range(1, len(bodies)):
        kernel += [f"setp.eq.u32 %p9, %r50, {place};", f"@%p9 bra T{place};"]
    for place, lines in enumerate(bodies):
        head = f"thread P{place} @ cta {place}, cluster {place}, gpu 0 {{"
        litmus += [head, ".reg .pred %p5; .reg .b32 %r<40>;", *lines, f"END{place}:", "}", ""]
        kernel += [f"T{place}:", *lines, f"END{place}:", "bra DONE;"]
    text = "\n".join([*kernel, "DONE:"])
    for name, at in PLACES.items():
        text = text.replace(name, at)
    return "\n".join([*litmus, "exists true", ""]), text, len(bodies)


@each_seed(10)
def test_a_race_is_found_where_some_execution_has_one(seed: int, tmp_path: Path) -> None:
    litmus, kernel, threads = both(seed)
    path = tmp_path / "shape.litmus"
    path.write_text(litmus, encoding="utf-8")
    (report,) = api.check_all(str(path), ask=["exists race"], budget=Budget(seconds=PATIENCE))
    verdict = judged(kernel, 1, threads, "zero")
    assert not verdict.open and verdict.word in ("findings", "explored", "clean")
    found = "data-race" in {one.rule for one in verdict.findings}
    assert report.holds or not found, kernel
    assert found or not report.holds or '"S"' in litmus, kernel  # of S, not all are within the bound
