"""Random kernels of a few threads that count in one word, and poll it in loops that are peeled, unrolled or nested."""

from __future__ import annotations

import random

from helpers.kernel.random_decisions import as_both


def nested_polls(seed: int) -> tuple[str, str, int]:
    """A litmus test, a kernel of the same threads, each in a CTA of its own, and how many there are."""
    pick = random.Random(seed)
    many, weak = pick.choice((2, 2, 3)), pick.choice((0, 0, 0, 0.3))
    litmus, kernel = as_both("polls", [_thread(pick, who, weak) for who in range(many)])
    return litmus.replace("%p5; .reg .b32 %r<40>", "%p<10>; .reg .b32 %r<60>"), kernel, many


def _thread(pick: random.Random, who: int, weak: float) -> list[str]:
    """A thread that writes and counts, polls and reads or writes, or does both."""
    role = pick.choice(("counts", "counts", "polls", "both")) if who else "counts"
    lines = ["mov.u32 %r41, 0;"]
    for number in range(pick.choice((1, 1, 2)) if role != "polls" else 0):
        if pick.random() < 0.8:
            lines.append(f"st.global.u32 [{pick.choice('de')}], {10 * who + number + 3};")
        lines.append(_counts(pick, weak))
        if pick.random() < 0.2:
            lines += [f"setp.ne.u32 %p5, %r10, {pick.choice((0, 1))};", f"@%p5 bra END{who};"]
        if pick.random() < 0.25:
            lines.append(_counts(pick, 0.7))
    for number in range(pick.choice((1, 1, 1, 2)) if role != "counts" else 0):
        lines += _polls(pick, f"{who}x{number}", weak)
        if pick.random() < 0.8:
            access = pick.choice(("ld.global.u32 %r43, [{}];", f"st.global.u32 [{{}}], {70 + who};"))
            lines.append(access.format(pick.choice("de")))
        if pick.random() < 0.3:
            lines.append(_counts(pick, weak))
    return lines


def _counts(pick: random.Random, weak: float) -> str:
    how = "relaxed" if pick.random() < weak else pick.choice(("release", "acq_rel"))
    kind, value = pick.choice(("add.u32", "add.u32", "add.u32", "exch.b32")), pick.choice((1, 1, 2))
    return f"atom.{how}.gpu.global.{kind} %r10, [x], {value};"


def _polls(pick: random.Random, name: str, weak: float) -> list[str]:
    """A loop that goes on while a condition of the word does not hold, in one of the forms that compilers make."""
    how, bound = "relaxed" if pick.random() < weak else "acquire", pick.choice((1, 1, 2, 2, 3))
    load = f"ld.{how}.gpu.global.u32 %r30, [x];"
    within = f"ld.{pick.choice(('relaxed', 'relaxed', 'acquire'))}.gpu.global.u32 %r31, [x];"
    kind = pick.choice(("ge", "ge", "bit", "eq"))
    before = [f"and.b32 %r40, %r30, {min(bound, 2)};"] if kind == "bit" else []
    register, number = ("%r40", 0) if kind == "bit" else ("%r30", bound)
    holds, fails = {"ge": ("ge", "lt"), "bit": ("ne", "eq"), "eq": ("eq", "ne")}[kind]

    def branch(to: str, *, left: bool) -> list[str]:
        """Branch where the loop is left, or where it goes on; the comparison may be turned round."""
        turned = pick.random() < 0.5
        asked = f"setp.{holds if left != turned else fails}.u32 %p6, {register}, {number};"
        return [*before, asked, f"@{'!' if turned else ''}%p6 bra {to};"]

    again, out, inner = f"A{name}", f"X{name}", f"B{name}"
    end = f"{out}: add.u32 %r41, %r41, 1;"
    form = pick.choice(("peeled", "unrolled", "nested", "peeled and nested"))
    if form == "peeled":
        lines = [load, *branch(out, left=True), f"{again}: {load}", *branch(again, left=False), end]
    elif form == "unrolled":
        first = [line for _ in range(pick.choice((1, 2))) for line in (load, *branch(out, left=True))]
        lines = [f"{again}: {first[0]}", *first[1:], load, *branch(again, left=False), end]
    else:
        peeled = [load, *branch(out, left=True), f"bra {inner};"] if form == "peeled and nested" else []
        seen = pick.choice(("%r30", "%r30", "%r30", "1"))
        changed = [within, f"setp.ne.u32 %p7, %r31, {seen};", f"@%p7 bra {again};"]
        same = [within, f"setp.eq.u32 %p7, %r31, {seen};", f"@%p7 bra {inner};", f"bra {again};", end]
        lines = [*peeled, f"{again}: {load}", *branch(out, left=True), f"{inner}: {changed[0]}", *changed[1:], *same]
    if how == "relaxed" and pick.random() < 0.6:
        lines.append("fence.acq_rel.gpu;")
    return lines
