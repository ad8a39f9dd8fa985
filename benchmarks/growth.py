"""Cost against size, of this tree and of others in the same run: families of tests that grow.

    python benchmarks/growth.py [TREE ...] [--model NAME] [--limit SECONDS]

TREE: other checkouts of memmodel, such as a worktree of an earlier commit. For each member of a family one line: CPU
seconds and peak memory of each tree (z3, races and hangs included), the ratio to this one, and at the end of a family
the exponent of time and memory in events, fitted over its larger half. Each member runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

from families import FAMILIES
from pipelines import main_loop, ring

HERE = Path(__file__).resolve().parent
MEMBERS: dict[str, tuple[int, ...]] = {
    "mp-chain": (4, 12, 16, 25, 40, 60),
    "sb-ring": (4, 12, 16, 25, 40, 60),
    "iriw-fan": (4, 12, 16, 25),
    "ring-1": (3, 5, 9, 12, 24, 48),
    "ring-2": (4, 8, 12, 24, 48),
    "ring-4": (4, 8, 12, 24, 48),
    "gemm-3": (3, 6, 9, 12, 24),
}


def text(family: str, n: int) -> str:
    """The member of a family."""
    kind, _, stages = family.partition("-")
    if kind == "ring":
        return ring(int(stages), n)
    return main_loop(int(stages), n) if kind == "gemm" else FAMILIES[family](n)


def member(family: str, n: int, model: str, limit: float) -> dict[str, float | str]:
    """What one member costs in this process, which has answered a small test before."""
    import resource

    from memmodel import api
    from memmodel.answer import Budget

    def used() -> float:
        return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])

    budget = Budget(effort=10**10, seconds=limit)
    api.check(FAMILIES["mp-chain"](2), model, engine="z3", budget=budget)
    started = used()
    answer = api.check(text(family, n), model, engine="z3", budget=budget).answer
    seconds = used() - started
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    return {"events": answer.events, "seconds": seconds, "mb": peak, "answer": answer.observation.value}


def measured(tree: Path, family: str, n: int, model: str, limit: float) -> dict[str, float | str] | None:
    """One member under one tree; None if it fails or is not decided within the limit."""
    command = [
        sys.executable,
        str(HERE / "growth.py"),
        "--one",
        family,
        str(n),
        "--model",
        model,
        "--limit",
        str(limit),
    ]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=4 * limit, check=True, cwd=tree
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    found: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return None if found["answer"] == "undecided" else found


def exponent(points: list[tuple[float, float]]) -> float:
    """The slope of a line through the logarithms of the larger half of the points."""
    half = [(math.log(x), math.log(y)) for x, y in points[len(points) // 2 - 1 :]]
    x, y = (sum(one[k] for one in half) / len(half) for k in (0, 1))
    return sum((a - x) * (b - y) for a, b in half) / sum((a - x) ** 2 for a, _ in half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--model", default="ptx-9.4")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--family", action="append", choices=MEMBERS)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(member(options.one[0], int(options.one[1]), options.model, options.limit)))
        return
    trees = [HERE.parent, *(tree.resolve() for tree in options.trees)]
    print("| family | n | events | " + " | ".join(f"{tree.name} s | MB" for tree in trees) + " | ratio |")
    print("|---|---|---|" + "---|---|" * len(trees) + "---|")
    for family in options.family or MEMBERS:
        points: list[tuple[float, float, float]] = []
        for n in MEMBERS[family]:
            found = [measured(tree, family, n, options.model, options.limit) for tree in trees]
            own, last = found[0], found[-1]
            cells = [f"{one['seconds']:.3f} | {one['mb']:.0f}" if one else "– | –" for one in found]
            ratio = f"{float(last['seconds']) / float(own['seconds']):.1f}" if own and last else "–"
            print(f"| {family} | {n} | {own['events'] if own else ''} | {' | '.join(cells)} | {ratio} |", flush=True)
            if own:
                points.append((float(own["events"]), float(own["seconds"]), float(own["mb"])))
        if len(points) > 2:
            time, memory = (exponent([(one[0], one[k]) for one in points]) for k in (1, 2))
            print(f"\n{family}: time grows with events to the {time:.1f}, memory to the {memory:.1f}\n", flush=True)


if __name__ == "__main__":
    main()
