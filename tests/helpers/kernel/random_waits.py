"""Random litmus tests of what threads wait for: rings of mbarrier objects, counters that are polled, named barriers.

In `tests`, `python -m helpers.kernel.random_waits KIND SEED COUNT` prints the tests on which the two roads differ.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

from helpers.kernel.random_tests import differing

SCOPES = ("cta", "cluster", "gpu", "gpu")
Blocks = list[list[list[str]]]
"""Threads; each a list of steps, each of which is some lines."""


def _test(variables: list[str], threads: Blocks, ctas: list[int], clusters: list[int] | None = None) -> str:
    blocks = []
    for number, (steps, cta) in enumerate(zip(threads, ctas, strict=True)):
        body = "\n".join(f"    {line}" for step in steps for line in step)
        cluster = 0 if clusters is None else clusters[number]
        blocks.append(f"thread P{number} @ cta {cta}, cluster {cluster}, gpu 0 {{\n{body}\n}}\n")
    return "\n".join(["PTX random", '"Random."', "", *variables, "", *blocks, "exists true", ""])


# ---- rings of mbarrier objects -----------------------------------------------------------------------------------


def ring(seed: int) -> str:
    """A producer and a consumer with one or two stages, some steps of which may be missing or weak."""
    pick = random.Random(seed)
    stages, remote = pick.choice((1, 1, 2)), pick.random() < 0.35
    rounds = pick.choice((2, 3)) + stages - 1
    kind = pick.choice(("tma", "tma", "generic", "st.async"))
    producer: list[list[str]] = []
    consumer: list[list[str]] = []
    for number in range(rounds):
        stage, phase = number % stages, number // stages
        if phase:
            producer.append(_wait(pick, f"e{stage}", phase - 1, 2 * number))
        producer += _produced(pick, kind, stage, number, remote=remote)
        if remote and kind != "generic":
            consumer.append([f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [f{stage}], {_bytes(kind)};"])
        consumer.append(_wait(pick, f"f{stage}", phase, 2 * number + 1))
        consumer.append([f"ld.shared.u32 %r{number}, [s{stage}];"])
        if number + stages < rounds or pick.random() < 0.4:
            if kind == "tma" and pick.random() < 0.6:
                consumer.append(["fence.proxy.async;"])
            sem = pick.choice(("", "", ".release.cluster", ".release.cta", ".relaxed.cta"))
            where = f"e{stage}@cta0" if remote else f"e{stage}"
            consumer.append([f"mbarrier.arrive{sem}.{_window(remote)}.b64 _, [{where}];"])
    for steps in (producer, consumer):
        if pick.random() < 0.3 and len(steps) > 1:
            steps.pop(pick.randrange(len(steps)))
        if remote:  # shared memory of a CTA that has ended is another matter
            steps.append(["barrier.cluster.arrive;", "barrier.cluster.wait;"])
    variables = [".global .align 16 .u32 g[4] = {5};"]
    for stage in range(stages):
        variables.append(f".shared .align 16 .u32 s{stage}[4];")
        variables += [f".shared .align 8 .b64 {name}{stage} = mbarrier(1);" for name in "fe"]
    return _test(variables, [producer, consumer], [0, int(remote)])


def _window(remote: bool) -> str:
    return "shared::cluster" if remote else "shared::cta"


def _bytes(kind: str) -> int:
    return 16 if kind == "tma" else 4


def _wait(pick: random.Random, name: str, phase: int, number: int) -> list[str]:
    sem = pick.choice(("", ".acquire.cta", ".acquire.cluster", ".acquire.cluster", ".relaxed.cluster"))
    test = f"mbarrier.try_wait.parity{sem}.shared::cta.b64 %p{number}, [{name}], {phase % 2};"
    return [f"W{number}: {test}", f"@!%p{number} bra W{number};"]


def _produced(pick: random.Random, kind: str, stage: int, number: int, *, remote: bool) -> list[list[str]]:
    here = "@cta1" if remote else ""
    tile, full = f"[s{stage}{here}]", f"[f{stage}{here}]"
    expect = [f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [f{stage}], {_bytes(kind)};"]
    if kind == "generic":
        sem = pick.choice(("", ".release.cluster", ".release.cta", ".relaxed.cluster"))
        store = f"st.{_window(remote)}.u32 {tile}, {number + 1};"
        return [[store], [f"mbarrier.arrive{sem}.{_window(remote)}.b64 _, {full};"]]
    head = "shared::cluster.{}mbarrier::complete_tx::bytes"
    if kind == "tma":
        copy = [f"cp.async.bulk.{head.format('global.')} {tile}, [g], 16, {full};"]
        fence = [["fence.proxy.async;"]] if pick.random() < 0.3 else []
        return [*fence, copy] if remote else [*fence, expect, copy]
    store = f"st.async.weak.{head.format('')}.u32 {tile}, {number + 1}, {full};"
    return [[store]] if remote else [[store], expect]


def later(seed: int) -> str:
    """A thread that waits for a later phase of an object, behind a flag or a barrier that may order too little."""
    pick = random.Random(seed)
    rounds, way = pick.choice((2, 2, 3)), pick.choice(("flag", "flag", "flag", "barrier", "waits"))
    writer: list[list[str]] = []
    reader = [_wait(pick, "b", number, number) for number in range(rounds - 1)] if way == "waits" else []
    for number in range(rounds):
        if pick.random() < 0.6:
            writer.append([f"st.shared.u32 [s], {number + 1};"])
        writer.append([f"mbarrier.arrive{pick.choice(('', '', '.relaxed.cta'))}.shared::cta.b64 _, [b];"])
        if number + 1 < rounds:
            writer.append(_wait(pick, "b", number, number))
    if way == "flag":
        writer.append([f"st.{pick.choice(('relaxed', 'release'))}.gpu.global.u32 [f], 1;"])
        test = f"ld.{pick.choice(('relaxed', 'acquire'))}.gpu.global.u32 %q0, [f];"
        reader.append([f"L0: {test}", "setp.eq.u32 %p8, %q0, 0;", f"@%p8 bra {pick.choice(('L0', 'END'))};"])
    elif way == "barrier":
        writer.append(["bar.sync 1, 64;"])
        reader.append(["bar.sync 1, 64;"])
    reader += [_wait(pick, "b", rounds - 1, rounds), ["ld.shared.u32 %r9, [s];"], ["END: exit;"]]
    variables = [".global .u32 f = 0;", ".shared .u32 s;", ".shared .align 8 .b64 b = mbarrier(1);"]
    return _test(variables, [writer, reader], [0, 0])


IN_A_LOOP = (
    "selp.u32 %r7, 0, 1, %p2;",
    "xor.b32 %r7, %r7, 1;",
    "mov.u32 %r7, 0;",
    "add.u32 %r9, %r9, 1;",
    "mov.u32 %r9, 5;",
    "st.shared.u32 [t], 1;",
    "ld.shared.u32 %r8, [t];",
    "nanosleep.u32 20;",
)
"""What stands in a loop that waits, or beside it. %r7: the parity that it tests; %r9: used behind it."""

BEHIND = (
    [],
    ["st.shared.u32 [t], %r9;"],
    ["setp.eq.u32 %p4, %r9, 5;", "@%p4 st.shared.u32 [t], 2;"],
    ["setp.gt.u32 %p4, %r9, 1;", "@%p4 ld.shared.u32 %r6, [t];"],
)


def odd(seed: int) -> str:
    """A thread that waits in a loop with something else in it, perhaps after it has looked ahead."""
    pick = random.Random(seed)

    def perhaps(share: float) -> list[str]:
        return [pick.choice(IN_A_LOOP)] if pick.random() < share else []

    flag, ahead = pick.random() < 0.4, pick.random() < 0.4
    test = ["mbarrier.try_wait.parity.shared::cta.b64 %p2, [b], %r7;"]
    peek = ["mbarrier.try_wait.parity.shared::cta.b64 %p5, [b], 0;"]
    if flag:
        test = ["ld.acquire.gpu.global.u32 %r5, [f];", "setp.ne.u32 %p2, %r5, 0;"]
        peek = ["ld.acquire.gpu.global.u32 %r4, [f];", "setp.ne.u32 %p5, %r4, 0;"]
    back = pick.choice((["@!%p2 bra L;"], ["@!%p2 bra L;"], ["@%p2 bra OUT;", "bra L;", "OUT: nanosleep.u32 1;"]))
    lines = ["mov.u32 %r7, 0;", "mov.u32 %r9, 0;", "setp.eq.u32 %p2, %r7, 0;"]
    if ahead:
        lines += [*peek, *perhaps(0.2), "@%p5 bra SEEN;", *perhaps(0.2)]
    lines += ["L: nanosleep.u32 5;", *perhaps(0.4), *test, *perhaps(0.25), *back, *perhaps(0.2)]
    lines += ["SEEN: nanosleep.u32 1;", *pick.choice(BEHIND), "ld.shared.u32 %r6, [s];", "exit;"]
    done = "st.release.gpu.global.u32 [f], 1;" if flag else "mbarrier.arrive.shared::cta.b64 _, [b];"
    third = pick.choice((["st.shared.u32 [t], 3;"], ["ld.shared.u32 %r1, [t];"], []))
    variables = [".global .u32 f = 0;", ".shared .u32 s;", ".shared .u32 t;", ".shared .align 8 .b64 b = mbarrier(1);"]
    threads = [[["st.shared.u32 [s], 7;", done, "exit;"]], [lines], [[*third, "exit;"]]]
    return _test(variables, threads, [0, 0, 0])


# ---- counters ----------------------------------------------------------------------------------------------------


def counter(seed: int) -> str:
    """Threads that add to words, poll them, and access data before and after."""
    pick = random.Random(seed)
    many, words = pick.choice((2, 2, 3)), pick.choice((("c",), ("c",), ("c", "c", "d")))
    threads: Blocks = []
    stored = 0
    for _ in range(many):
        steps: list[list[str]] = []
        for _ in range(pick.randint(1, 4)):
            stored += 1
            word, kind = pick.choice(words), pick.choices(("add", "poll", "data", "fence", "put"), (8, 8, 8, 2, 1))[0]
            if kind == "add":
                sem, amount = pick.choice(("relaxed", "release", "release")), pick.choice((1, 1, 1, 2))
                steps.append([f"red.{sem}.{pick.choice(SCOPES)}.global.add.u32 [{word}], {amount};"])
            elif kind == "poll":
                steps.append(_poll(pick, word, stored))
            elif kind == "data":
                steps.append(_data(pick, stored))
            elif kind == "fence":
                steps.append([f"fence.acq_rel.{pick.choice(SCOPES)};"])
            else:
                steps.append([f"st.relaxed.gpu.global.u32 [{word}], {pick.choice((0, 0, 1))};"])
        stored += 1
        threads.append([*steps, _data(pick, stored)])
    apart = pick.random() < 0.4
    ctas = [number if apart else 0 for number in range(many)]
    clusters = ctas if pick.random() < 0.5 else [0] * many
    return _test([f".global .u32 {name} = 0;" for name in "xycd"], threads, ctas, clusters)


def _poll(pick: random.Random, word: str, number: int) -> list[str]:
    sem = pick.choice(("relaxed", "acquire", "acquire"))
    back, wanted = pick.choice((("lt", 1), ("lt", 2), ("lt", 3), ("ne", 1), ("ne", 2), ("ne", 3), ("eq", 0), ("le", 1)))
    return [
        f"L{number}: ld.{sem}.{pick.choice(SCOPES)}.global.u32 %q{number}, [{word}];",
        f"setp.{back}.u32 %p{number}, %q{number}, {wanted};",
        f"@%p{number} bra L{number};",
    ]


def _data(pick: random.Random, number: int) -> list[str]:
    name = pick.choice("xy")
    return [pick.choice((f"ld.global.u32 %r{number}, [{name}];", f"st.global.u32 [{name}], {number};"))]


# ---- barriers ----------------------------------------------------------------------------------------------------


def barrier(seed: int) -> str:
    """Two or three warps that meet in rounds, all of them or two; a warp may miss a round, or leave."""
    pick = random.Random(seed)
    many = pick.choice((2, 3, 3))
    threads: Blocks = [[] for _ in range(many)]
    for number in range(pick.choice((1, 2, 2, 3))):
        for who in range(many):
            if pick.random() < 0.5:
                space, name = pick.choice((("shared", "s"), ("shared", "s"), ("global", "y")))
                store = f"st.{space}.u32 [{name}], {3 * number + who};"
                threads[who].append([pick.choice((f"ld.{space}.u32 %r{number}, [{name}];", store))])
        kind = pick.choice(("all", "every", "pair", "half"))
        for place, who in enumerate(pick.sample(range(many), 2 if kind in ("pair", "half") else many)):
            half = "arrive" if kind == "half" and not place else "sync"
            line = {"all": f"bar.sync 1, {32 * many};", "every": "bar.sync 0;"}.get(kind, f"bar.{half} 2, 64;")
            if pick.random() > 0.03:
                threads[who].append([line])
    for who, steps in enumerate(threads):  # the end of a thread of a kernel is an exit, that of a litmus thread is none
        steps.append([f"ld.shared.u32 %z{who}, [s];", "exit;"])
    return _test([".global .u32 y;", ".shared .u32 s;"], threads, [0] * many)


KINDS: dict[str, Callable[[int], str]] = {"ring": ring, "counter": counter, "barrier": barrier}


def main() -> None:
    kind, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    counts, found = differing(range(first, first + count), KINDS[kind])
    for seed, said in found:
        print(seed, said)
    print(dict(counts))


if __name__ == "__main__":
    main()
