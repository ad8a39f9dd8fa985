"""Random kernels of a few threads in which strong reads and atomic operations decide, and the same litmus tests."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from helpers.patience import PATIENCE
from memmodel import api
from memmodel.answer import Budget

PLACES = {"[x]": "[%d0]", "[y]": "[%d0+4]", "[d]": "[%d0+64]", "[e]": "[%d0+68]"}
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


HANDS_OVER = {
    "st": "st.{how}.gpu.global.u32 {place}, {value};",
    "ld": "ld.{how}.gpu.global.u32 {register}, {place};",
    "exch": "atom.{how}.gpu.global.exch.b32 {register}, {place}, {value};",
    "cas": "atom.{how}.gpu.global.cas.b32 {register}, {place}, {old}, {value};",
    "add": "atom.{how}.gpu.global.add.u32 {register}, {place}, 1;",
}
"""Strong operations, each of which releases, acquires or does both, unless it is relaxed."""


def _hands_over(pick: random.Random, kinds: Sequence[str], register: str, values: Sequence[int], weak: float) -> str:
    kind = pick.choice(kinds)
    how = "relaxed" if pick.random() < weak else {"st": "release", "ld": "acquire"}.get(kind, "acq_rel")
    place, old = f"[{pick.choice('xxy')}]", pick.choice((0, 0, 1))
    return HANDS_OVER[kind].format(how=how, register=register, place=place, value=pick.choice(values), old=old)


def _producer(pick: random.Random, who: int, weak: float) -> list[str]:
    """Writes data weakly, and hands it over."""
    lines = []
    for number in range(pick.choice((1, 1, 2))):
        lines.append(f"st.global.u32 [{pick.choice('dde')}], {10 * who + number + 3};")
        lines.append(_hands_over(pick, ("st", "st", "exch", "add", "cas"), f"%r{10 + number}", (1, 2), weak))
        if "atom" in lines[-1] and pick.random() < 0.3:
            lines += [f"setp.ne.u32 %p5, %r{10 + number}, 0;", f"@%p5 bra END{who};"]
    return lines


def _consumer(pick: random.Random, who: int, weak: float) -> list[str]:
    """Takes something over, and goes on only with some values of that and of a weak load."""
    lines = []
    for number in range(pick.choice((1, 1, 2))):
        taken, data = f"%r{20 + 2 * number}", f"%r{21 + 2 * number}"
        lines.append(_hands_over(pick, ("ld", "ld", "ld", "cas", "exch"), taken, (who + 1,), weak))
        asks = pick.choice(("ne", "ne", "eq"))
        lines += [f"setp.{asks}.u32 %p5, {taken}, {pick.choice((0, 1, 1, 2))};", f"@%p5 bra END{who};"]
        if pick.random() < 0.85:
            lines.append(f"ld.global.u32 {data}, [{pick.choice('dde')}];")
            asks = pick.choice(("ne", "eq"))
            lines += [f"setp.{asks}.u32 %p5, {data}, {pick.choice((0, 3, 13, 4))};", f"@%p5 bra END{who};"]
        last = pick.random()
        if last < 0.4:
            lines.append(_hands_over(pick, ("st", "cas", "exch"), f"%r{30 + number}", (1, 2, 0), weak))
        elif last < 0.75:
            lines.append(f"st.global.u32 [{pick.choice('de')}], {90 + who};")
    return lines


def handing_over(seed: int) -> tuple[str, str, int]:
    """The same of threads that hand data over, and decide by what they load weakly."""
    pick = random.Random(seed)
    many, weak = pick.choice((2, 2, 3)), pick.choice((0, 0, 0, 0.2))
    bodies = [_producer(pick, 0, weak)]
    for who in range(1, many):
        bodies.append((_producer if pick.random() < 0.25 else _consumer)(pick, who, weak))
    return (*as_both("handing-over", bodies), many)


def _polls(pick: random.Random, who: int, number: int) -> list[str]:
    """One step of a thread that counts up, sets, polls or asks a word."""
    word, kind, register = pick.choice("xyee"), pick.random(), f"%r{10 + number}"
    if kind < 0.25:
        return [f"red.release.gpu.global.add.u32 [{word}], 1;"]
    if kind < 0.35:
        return [f"atom.acq_rel.gpu.global.add.u32 {register}, [{word}], 1;"]
    if kind < 0.55:
        return [f"st.release.gpu.global.u32 [{word}], {pick.choice((1, 1, 2))};"]
    load = f"ld.acquire.gpu.global.u32 {register}, [{word}];"
    if kind < 0.8:
        asks, loop = pick.choice(("lt", "ne", "eq")), f"W{who}{number}"
        return [
            f"{loop}: {load}",
            f"setp.{asks}.u32 %p6, {register}, {pick.choice((0, 1, 1, 2))};",
            f"@%p6 bra {loop};",
        ]
    asks = pick.choice(("ne", "eq"))
    return [load, f"setp.{asks}.u32 %p5, {register}, {pick.choice((0, 1))};", f"@%p5 bra END{who};"]


def polling(seed: int) -> tuple[str, str, int]:
    """The same of threads that poll words for several values: whether a loop is a wait depends on the execution."""
    pick = random.Random(seed)
    bodies = []
    for who in range(pick.choice((2, 2, 3))):
        lines = [line for number in range(pick.choice((1, 2, 2, 3))) for line in _polls(pick, who, number)]
        bodies.append([*lines, pick.choice((f"st.global.u32 [d], {who};", "ld.global.u32 %r30, [d];", ""))])
    return (*as_both("polling", bodies), len(bodies))


def as_both(name: str, bodies: Sequence[Sequence[str]]) -> tuple[str, str]:
    """Threads as a litmus test of a name and as a kernel, each in a CTA of its own. The words are [x], [y], [d]
    and [e]; a branch to END and the number of its thread ends that thread.
    """
    litmus = [f"PTX {name}", '"Random."', "", *(f".global .u32 {word};" for word in "xyde"), ""]
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
