"""Random litmus tests of threads in two CTAs of a cluster: shared memory of a peer, copies that signal an object
or end a group, copies to several CTAs, cluster barriers in halves, and what few shipped tests have."""

from __future__ import annotations

import random

from helpers.strategies.wide import filled

WAIT = (
    "W#: mbarrier.<try_wait|try_wait|test_wait>.parity<|.acquire.cluster|.acquire.cluster|.relaxed.cluster>"
    ".shared::cta.b64 %w#, [bar], <0|0|0|1>; @!%w# bra W#;"
)
EXPECT = "mbarrier.arrive.expect_tx<|.release.cluster|.relaxed.cluster>.shared::cta.b64 _, [bar], <4|4|16|32>;"
ARRIVE = "barrier.cluster.arrive<|.relaxed|.release>;"
OWN = (
    "ld.<weak|acquire.cluster>.shared::cta.u32 %r#, [<s|s+4|u>];",
    "st.<weak|release.cluster>.shared::cta.u32 [<s|s+4|u>], <1|2>;",
    "ld.<weak|acquire.gpu>.global.u32 %r#, [<g|f>];",
    "st.<weak|release.gpu>.global.u32 [<g|f>], 7;",
    "fence.<acq_rel.cluster|acq_rel.cta|release.cluster|acquire.cluster|sc.cluster|proxy.async|proxy.async.shared::cta>;",
    "fence.<acq_rel.cluster|proxy.async>;",
)
REMOTE = (
    "ld.<weak|acquire.cluster|relaxed.cta>.shared::cluster.u32 %r#, [<s|u>@PEER];",
    "st.<weak|release.cluster|relaxed.cluster>.shared::cluster.u32 [<s|u>@PEER], <3|4>;",
    "red.<relaxed|release>.<cluster|cta>.shared::cluster.add.u32 [<s|u>@PEER], 1;",
    "mbarrier.arrive<|.release.cluster|.relaxed.cluster>.shared::cluster.b64 _, [bar@PEER];",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [<s|u>@PEER], 5, [bar@PEER];",
    (
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.<add|max|min>.u32 [<s|u>@PEER], 6, "
        "[bar@PEER];"
    ),
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [<s|u>@PEER], [<u|o>], 16, [bar@PEER];",
    (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [<s|u>], [g], 16, [bar], "
        "<1|2|3|3>;"
    ),
)
GROUPS = (
    "cp.async.<ca.shared::cta.global [<s|u>], [<g|f>], <4|8>|cg.shared::cta.global [<s|u>], [g], 16>;",
    "cp.async.ca.shared::cta.global [<s|u>], [g], 4; cp.async.commit_group;",
    "cp.async.<wait_all|wait_group 0|wait_group 1>;",
    "cp.async.mbarrier.arrive<|.noinc>.shared::cta.b64 [bar];",
    "cp.async.bulk.global.shared::cta.bulk_group [<g|f>], [<s|u>], 16; cp.async.bulk.commit_group;",
    "cp.async.bulk.wait_group<|.read> <0|0|1>;",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [<s|u>], [g], 16, [bar];",
    "mbarrier.arrive<|.relaxed.cluster>.shared::cta.b64 _, [bar];",
)
SELDOM = (
    "setmaxnreg.<dec|inc>.sync.aligned.u32 40;",
    "multimem.st.async.release.gpu.global.u32 [m], 1;",
    "multimem.red.async.release.gpu.global.add.u32 [m], 1;",
    "ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {%k#}, [t];",
    (
        "ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {%k#}, [t]; "
        "stmatrix.sync.aligned.m8n8.x1.shared::cta.b16 [t], {%k#};"
    ),
    "st.weak.shared::cta.u32 [t+<0|4|124>], 9;",
    "st.bulk.weak.shared::cta [t], <64|128>, 0;",
    "<vote.sync.any.pred %v#, %yes, 0xffffffff|redux.sync.max.u32 %v#, %zero, 0xffffffff|activemask.b32 %v#>;",
    "shfl.sync.idx.b32 %v#, %zero, 0, 31, 0xffffffff;",
    "bar.<sync 1, 64|arrive 1, 64|warp.sync 0xffffffff>;",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [g], [s], 16; cp.async.bulk.commit_group;",
)


def cluster(seed: int) -> str:
    """A test of three threads, two of them in one CTA, mostly with barriers of the cluster."""
    pick = random.Random(seed)
    lines = pick.sample(OWN, 3) + pick.sample(pick.choice((REMOTE, REMOTE, GROUPS, SELDOM)), 3)
    middle, end = pick.random() < 0.5, pick.random() < 0.95
    signalled = any("bar" in line and "warp" not in line for line in lines)
    blocks = []
    for place, cta in enumerate((0, 0, 1)):
        made = []
        for number in range(pick.randint(1, 2)):
            line = pick.choice(lines).replace("PEER", f"cta{1 - cta}")
            if signalled and number == 0 and pick.random() < 0.6:
                made.append(filled(EXPECT, pick.choice, 10 * place + 7))
            made.append(filled(line, pick.choice, 10 * place + number))
            if middle and number == 0:
                arrive = filled(ARRIVE, pick.choice, 0)
                made += [*pick.choice(([], ["fence.acq_rel.cluster;"])), arrive, "barrier.cluster.wait;"]
        if signalled and pick.random() < 0.7:
            made.append(filled(WAIT, pick.choice, 10 * place + 8))
            made.append(filled(pick.choice(OWN), pick.choice, 10 * place + 9))
        if end:
            made.append("barrier.cluster.arrive; barrier.cluster.wait;")
        made.insert(0, "mov.pred %yes, 1; mov.u32 %zero, 0;")
        body = "\n".join(f"    {part.strip()};" for line in made for part in line.split(";") if part.strip())
        blocks.append(f"thread P{place} @ cta {cta}, cluster 0, gpu 0 {{\n{body}\n}}\n")
    head = [
        "PTX random",
        '"Random."',
        "",
        *(f".shared .align 16 .u32 {name}[4] = {{{value}}};" for name, value in (("s", 1), ("u", 2), ("o", 3))),
        *(f".global .align 16 .u32 {name}[4];" for name in "gf"),
        ".global .u32 a;",
        ".global .u32 b;",
        ".global .u32 m = multimem(a, b);",
        ".shared .align 128 .b32 t[32];",
        f".shared .align 8 .b64 bar = mbarrier({pick.choice((1, 1, 1, 2))});",
        "",
    ]
    return "\n".join([*head, *blocks, "exists true", ""])
