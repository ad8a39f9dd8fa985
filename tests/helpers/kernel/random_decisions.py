"""Random kernels of a few threads in which strong reads and atomic operations decide, and the same litmus tests."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from helpers.patience import PATIENCE
from memmodel import api
from memmodel.answer import Budget

PLACES = {"[x]": "[%d0]", "[y]": "[%d0+4]", "[d]": "[%d0+64]"}
SEMANTICS = {
    "W": ("relaxed", "release"), "R": ("relaxed", "acquire"), "A": ("relaxed", "acq_rel"), "L": ("relaxed", "acq_rel"),
    "C": ("relaxed", "acquire", "acq_rel"),
}  # fmt: skip
STEPS = {
    "W": "st.{how}.gpu.global.u32 {place}, {value};",
    "R": "ld.{how}.gpu.global.u32 {register}, {place};",
    "A": "atom.{how}.gpu.global.exch.b32 {register}, {place}, {mark};",
    "L": "atom.{how}.gpu.global.add.u32 {register}, {place}, 1;",
    "C": "atom.{how}.gpu.global.cas.b32 {register}, {place}, 0, {mark};",
}
"""A store, a load, and atomic operations. `mark`: a number of the thread."""


def body(pick: random.Random, who: int, likely: float) -> list[str]:
    """The instructions of a thread: it goes on only with the values that it expects, and then writes `d`."""
    lines: list[str] = []
    asked: list[tuple[str, int]] = []

    def decide() -> None:
        while asked:
            lines.extend(("setp.ne.u32 %p5, {}, {};".format(*asked.pop(0)), f"@%p5 bra END{who};"))

    for number in range(pick.choice((1, 2, 2, 3))):
        kind = pick.choice("WWRRRALCC")
        if number and pick.random() < likely:
            lines.append(f"fence.{pick.choice(('sc', 'acq_rel'))}.{pick.choice(('gpu', 'gpu', 'gpu', 'cta'))};")
        register, how = f"%r{10 + number}", pick.choice(SEMANTICS[kind])
        place, value = pick.choice(("[x]", "[y]")), pick.choice((1, 2))
        lines.append(STEPS[kind].format(how=how, place=place, value=value, register=register, mark=1 + who))
        if kind in "RC" or (kind in "AL" and pick.random() < 0.6):
            asked.append((register, 0 if kind == "C" else pick.choice((0, 1, 2))))
        if pick.random() < 0.7:
            decide()
    decide()
    lines.append(f"st.global.u32 [d], {7 + who};")
    if pick.random() < 0.4:
        lines.append(f"st.release.gpu.global.u32 [{pick.choice('xy')}], 0;")
    return lines


def both(seed: int) -> tuple[str, str, int]:
    """A litmus test, a kernel of the same threads, each in a CTA of its own, and how many there are."""
    pick = random.Random(seed)
    many, likely = pick.choice((2, 2, 2, 3)), pick.choice((0, 0.4, 1))
    return (*as_both("decisions", [body(pick, who, likely) for who in range(many)]), many)


def as_both(name: str, bodies: Sequence[Sequence[str]]) -> tuple[str, str]:
    """Threads as a litmus test of a name and as a kernel, each in a CTA of its own. The words are [x], [y] and [d]; a
    branch to END and the number of its thread ends that thread.
    """
    litmus = [f"PTX {name}", '"Random."', "", *(f".global .u32 {word};" for word in "xyd"), ""]
    kernel = ["mov.u32 %r50, %ctaid.x;"]
    for who in range(1, len(bodies)):
        kernel += [f"setp.eq.u32 %p9, %r50, {who};", f"@%p9 bra T{who};"]
    for who, lines in enumerate(bodies):
        head = f"thread P{who} @ cta {who}, cluster {who}, gpu 0 {{"
        litmus += [head, ".reg .pred %p5; .reg .b32 %r<40>;", *lines, f"END{who}:", "}", ""]
        kernel += [f"T{who}:", *lines, f"END{who}:", "bra DONE;"]
    text = "\n".join([*kernel, "DONE:"])
    for word, at in PLACES.items():
        text = text.replace(word, at)
    return "\n".join([*litmus, "exists true", ""]), text


def races(litmus: str) -> bool:
    """True if some execution of a litmus test has a race."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.litmus"
        path.write_text(litmus, encoding="utf-8")
        (report,) = api.check_all(str(path), ask=["exists race"], budget=Budget(seconds=PATIENCE))
    assert report.holds is not None
    return report.holds
