"""Random litmus tests with fence.sc among weak accesses and strong ones whose results decide nothing: the order of the
fences is another one in other executions.
"""

from __future__ import annotations

import random

SCOPES = ("cta", "cluster", "gpu", "gpu", "sys")


def _access(pick: random.Random) -> str:
    kind, register = pick.random(), f"%r{pick.randrange(20)}"
    data, word, scope = pick.choice("de"), pick.choice("xy"), pick.choice(SCOPES)
    if kind < 0.22:
        return f"st.global.u32 [{data}], {pick.choice((1, 1, 2))};"
    if kind < 0.4:
        return f"ld.global.u32 {register}, [{data}];"
    if kind < 0.62:
        return f"st.{pick.choice(('relaxed', 'relaxed', 'release'))}.{scope}.global.u32 [{word}], {pick.randint(1, 3)};"
    if kind < 0.86:
        return f"ld.{pick.choice(('relaxed', 'relaxed', 'acquire'))}.{scope}.global.u32 {register}, [{word}];"
    if kind < 0.93:
        return f"red.relaxed.gpu.global.add.u32 [{word}], 1;"
    return f"atom.acq_rel.gpu.global.exch.b32 {register}, [{word}], 5;"


def fences(seed: int) -> str:
    """A test of two or three threads, in one CTA or in several, which may meet at a barrier."""
    pick = random.Random(seed)
    many = pick.choice((2, 2, 3, 3))
    ctas = [pick.choice((0, 0, 1)) for _ in range(many)] if pick.random() < 0.6 else list(range(many))
    meets, blocks = pick.random() < 0.5, []
    for who, cta in enumerate(ctas):
        lines: list[str] = []
        for _ in range(pick.choice((2, 3))):
            lines += [_access(pick) for _ in range(pick.choice((0, 1, 1, 2)))]
            lines.append(f"fence.{pick.choice(('sc', 'sc', 'sc', 'acq_rel'))}.{pick.choice(SCOPES)};")
        if meets and ctas.count(cta) > 1:
            lines.insert(pick.randint(0, len(lines)), f"bar.sync 1, {32 * ctas.count(cta)};")
        lines += [_access(pick) for _ in range(pick.choice((0, 1, 1, 2)))]
        body = "\n".join(f"    {line}" for line in lines)
        blocks.append(f"thread P{who} @ cta {cta}, cluster {cta}, gpu 0 {{\n{body}\n}}\n")
    variables = "".join(f".global .u32 {name} = 0;\n" for name in "xyde")
    return f"PTX fences-{seed}\n{variables}\n" + "\n".join(blocks) + "\nexists true\n"
