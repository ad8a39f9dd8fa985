"""Random litmus tests in block layout, for both roads of tests/helpers/kernel/roundtrip.py.

In `tests`, `python -m helpers.kernel.random_tests SEED COUNT` prints the tests on which the two differ.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from helpers.kernel.roundtrip import compared

SCOPES = ("cta", "cluster", "gpu")


def accesses(pick: random.Random) -> list[str]:
    """One access to shared or global memory."""
    name, space = pick.choice((("x", "global"), ("s", "shared"), ("s", "shared")))
    number = pick.randrange(9)
    strong = f"{pick.choice(('relaxed', 'acquire'))}.{pick.choice(SCOPES)}."
    store = f"{pick.choice(('relaxed', 'release'))}.{pick.choice(SCOPES)}."
    return pick.choice([
        [f"ld.{space}.u32 %r{number}, [{name}];"],
        [f"st.{space}.u32 [{name}], {number};"],
        [f"st.{space}.u32 [{name}], {number};"],
        [f"ld.{strong}{space}.u32 %r{number}, [{name}];"],
        [f"st.{store}{space}.u32 [{name}], {number};"],
        [f"red.relaxed.{pick.choice(SCOPES)}.{space}.add.u32 [{name}], 1;"],
    ])  # fmt: skip


def copies(pick: random.Random) -> list[str]:
    """A bulk copy out of shared memory, with what waits for it or without."""
    copy = ["cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;", "cp.async.bulk.commit_group;"]
    return [*copy, *pick.choice(([], ["cp.async.bulk.wait_group.read 0;"], ["cp.async.bulk.wait_group 0;"]))]


def fence(pick: random.Random) -> list[str]:
    """A fence."""
    plain = f"fence.{pick.choice(('acq_rel', 'sc'))}.{pick.choice(SCOPES)};"
    return [pick.choice((plain, "fence.proxy.async;", "fence.proxy.async.shared::cta;", "fence.proxy.async.global;"))]


def meeting(kind: str, place: int, number: int, pick: random.Random) -> list[str]:
    """What a thread does where the threads meet."""
    if kind == "bar":
        return [f"bar.sync {number}, 64;"]
    if kind == "half":
        return [f"bar.{'arrive' if place else 'sync'} {number}, 64;"]
    sem = pick.choice(("", ".release.cta", ".relaxed.cta"))
    test = pick.choice(("", ".acquire.cta", ".relaxed.cta"))
    if kind == "one" and place:
        return [f"mbarrier.arrive{sem}.shared::cta.b64 _, [bar{number}];"]
    wait = [
        f"W{number}:", f"mbarrier.try_wait.parity{test}.shared::cta.b64 %p, [bar{number}], 0;", f"@!%p bra W{number};",
    ]  # fmt: skip
    if kind == "one":
        return wait
    return [f"mbarrier.arrive{sem}.shared::cta.b64 _, [bar{number}];", *wait]


def litmus(seed: int) -> str:
    """A test of two threads with one to three meetings."""
    pick = random.Random(seed)
    kinds = [pick.choice(("bar", "half", "one", "both", "none")) for _ in range(pick.randint(1, 3))]
    blocks = []
    for place in range(2):
        lines: list[str] = []
        for number, kind in enumerate(kinds, 1):
            for _ in range(pick.randint(0, 2)):
                lines += pick.choice((accesses, accesses, accesses, fence, copies))(pick)
            lines += [] if kind == "none" else meeting(kind, place, number, pick)
        lines += accesses(pick)
        body = "\n".join(line if line.endswith(":") else f"    {line}" for line in lines)
        blocks.append(f"thread P{place} @ cta 0, cluster 0, gpu 0 {{\n{body}\n}}\n")
    counts = {"one": 1, "both": 2}
    objects = [
        f".shared .align 8 .b64 bar{number} = mbarrier({counts[kind]});"
        for number, kind in enumerate(kinds, 1)
        if kind in counts
    ]
    head = ["PTX random", '"Random."', "", ".global .u32 x;", ".global .align 16 .u32 g[4];"]
    head += [".shared .align 16 .u32 s[4];", *objects, ""]
    return "\n".join([*head, *blocks, "exists true", ""])


def differing(seeds: range, made: Callable[[int], str] = litmus) -> tuple[Counter[str], list[tuple[int, str]]]:
    """How often the two roads agree, and the seeds where they do not."""
    counts: Counter[str] = Counter()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.litmus"
        for seed in seeds:
            path.write_text(made(seed), encoding="utf-8")
            answer, said = compared(path)
            counts[answer] += 1
            if answer == "differs":
                found.append((seed, said))
    return counts, found


def main() -> None:
    first, count = (int(one) for one in sys.argv[1:3])
    counts, found = differing(range(first, first + count))
    for seed, said in found:
        print(seed, said)
    print(dict(counts))


if __name__ == "__main__":
    main()
