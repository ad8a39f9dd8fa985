"""Random kernels of a few threads that execute one text: each takes a ticket, and the ticket decides what it does."""

from __future__ import annotations

import random

from helpers.kernel.random_decisions import PLACES


def tickets(seed: int) -> tuple[str, str, int]:
    """A litmus test, a kernel of the same threads, each in a CTA of its own, and how many there are."""
    pick = random.Random(seed)
    many = pick.choice((2, 3, 3, 4))
    body = [*_writes(pick, many), *_fence(pick), *_takes(pick, many), *_decides(pick, many)]
    litmus = ["PTX tickets", '"Random."', "", *(f".global .u32 {word};" for word in "xyde"), ""]
    for who in range(many):
        head = f"thread P{who} @ cta {who}, cluster {who}, gpu 0 {{"
        litmus += [head, ".reg .pred %p<10>; .reg .b32 %r<60>;", f"mov.u32 %r50, {who};", *body, "OUT:", "}", ""]
    kernel = "\n".join(["mov.u32 %r50, %ctaid.x;", *body, "OUT:"])
    for word, at in PLACES.items():
        kernel = kernel.replace(word, at)
    return "\n".join([*litmus, "exists true", ""]), kernel, many


def _writes(pick: random.Random, many: int) -> list[str]:
    """Some threads write data."""
    lines = []
    for who in range(many):
        if pick.random() < 0.6:
            lines += [f"setp.eq.u32 %p1, %r50, {who};", f"@%p1 st.global.u32 [{pick.choice('de')}], {who + 3};"]
    return lines


def _fence(pick: random.Random, likely: float = 0.75) -> list[str]:
    return [f"fence.{pick.choice(('acq_rel', 'sc'))}.gpu;"] if pick.random() < likely else []


def _takes(pick: random.Random, many: int) -> list[str]:
    """A thread takes its ticket."""
    kind, operand = pick.choice((("add.u32", 1), ("add.u32", 2), ("inc.u32", many - 1), ("exch.b32", 1), ("or.b32", 1)))
    how = pick.choice(("relaxed", "relaxed", "acq_rel", "release"))
    takes = f"atom.{how}.gpu.global.{kind} %r10, [x], {operand};"
    return [takes, *_fence(pick)] if pick.random() < 0.5 else [takes]


def _decides(pick: random.Random, many: int) -> list[str]:
    """What the thread does depends on its ticket, through some computation."""
    lines, asked, bound = [], "%r10", pick.choice((many - 1, many - 1, many - 2, 1, 2))
    for _ in range(pick.choice((0, 0, 1, 2))):
        step = pick.choice(
            ("and.b32 %r11, {}, 2;", "sub.u32 %r11, {}, 1;", "shr.u32 %r11, {}, 1;", "add.u32 %r11, {}, %r50;")
        )
        lines.append(step.format(asked))
        asked = "%r11"
    test = pick.choice(("eq", "eq", "ge", "lt", "ne"))
    lines.append(f"setp.{test}.u32 %p2, {asked}, {bound};")
    if pick.random() < 0.4:
        lines += ["selp.u32 %r12, 1, 0, %p2;", "setp.ne.u32 %p2, %r12, 0;"]
    lines += [f"@{pick.choice(('', '!'))}%p2 bra OUT;", *_fence(pick)]
    for _ in range(pick.choice((1, 1, 2))):
        value = pick.choice(("9", "9", "%r12", "%r10", "%r11"))
        access = pick.choice(
            ("ld.global.u32 %r20, [{}];", "ld.global.u32 %r21, [{}];", f"st.global.u32 [{{}}], {value};")
        )
        lines.append(access.format(pick.choice("de")))
    return lines
