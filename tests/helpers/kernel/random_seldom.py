"""Random litmus tests of two threads with instructions that few shipped tests have: two memories behind one address,
asynchronous stores, halves of named barriers, fences of other proxies, warp-wide operations."""

from __future__ import annotations

import random

from helpers.strategies.wide import filled

LINES = (
    "multimem.st.<weak|relaxed.gpu|release.gpu>.global.u32 [<m|n>], <1|2>;",
    "multimem.red.<relaxed|release>.gpu.global.<add|max>.u32 [<m|n>], 1;",
    "multimem.ld_reduce.<weak|relaxed.gpu|acquire.gpu>.global.<add|min>.u32 %r#, [<m|n>];",
    "st.async.release.sys.global.u32 [<x|y>], 3;",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [<x|y>], [s], 16; DONE",
    "cp.async.bulk.global.shared::cta.bulk_group [<x|y>], [s], 16; DONE",
    "ld.<weak|relaxed.gpu|acquire.gpu>.global.u32 %r#, [<x|y|x+4>];",
    "ld.<weak|acquire.cta>.shared.u32 %r#, [s];",
    "st.<weak|release.gpu>.global.u32 [<x|y|x+4>], 7;",
    "st.<weak|release.cta>.shared.u32 [s], 8;",
    "ld.<weak|acquire.gpu>.global.u32 %r#, [f]; setp.eq.u32 %p#, %r#, 1; @%p# ld.global.u32 %q#, [<x|y|d>];",
    "<st.release.gpu|st.relaxed.gpu|red.release.gpu.add>.global.u32 [f], 1;",
    "barrier.<sync|arrive> 1, 64;",
    "barrier.red.<or|and>.pred %b#, 1, 64, %yes;",
    "barrier.red.popc.u32 %c#, 1, 64, %yes;",
    "membar.proxy.<async|alias>;",
    "membar.<cta|gl>;",
    "fence.proxy.<async|async.global|async.shared::cta|alias>;",
    "fence.<acq_rel|sc>.<cta|gpu>;",
    "discard.global.L2 [d], 128;",
    "match.any.sync.b32 %k#, %r#, 1;",
    "applypriority.async.bulk.global.bulk_group.L2::evict_normal [d], 128;",
)
DONE = "cp.async.bulk.commit_group; cp.async.bulk.wait_group<|.read> 0;"


def seldom(seed: int) -> str:
    """A test of two threads, each of two to four lines, often with barriers of both between them."""
    pick = random.Random(seed)
    some = pick.sample(LINES, 5)
    meeting = pick.choice(("", "bar.sync 0, 64;", "bar.sync 0, 64;", "barrier.sync 0, 64;"))
    blocks = []
    for place in range(2):
        lines = ["mov.pred %yes, 1;"]
        for number in range(pick.randint(2, 4)):
            line = pick.choice(some).replace("DONE", pick.choice((DONE, DONE, "")))
            lines.append(filled(line, pick.choice, 10 * place + number))
            if number == 0 and meeting:
                lines += [*pick.choice(([], ["fence.proxy.async;"])), meeting]
        body = "\n".join(f"    {part.strip()};" for line in lines for part in line.split(";") if part.strip())
        blocks.append(f"thread P{place} @ cta 0, cluster 0, gpu 0 {{\n{body}\n}}\n")
    head = [
        "PTX random",
        '"Random."',
        "",
        *(f".global .align 16 .u32 {name}[4];" for name in "xy"),
        ".global .align 128 .u32 d[32] = {1};",
        ".global .u32 f;",
        ".global .u32 m = multimem(x, y);",
        ".global .u32 n = multimem(y, x);",
        ".shared .align 16 .u32 s[4] = {5};",
        "",
    ]
    return "\n".join([*head, *blocks, "exists true", ""])
