"""Measure memmodel: a suite on both engines, families of tests that grow, and one check from the shell.

    python benchmarks/run.py [suite] [rows] [families] [pipelines] [shell] [options]

rows: the small asynchronous tests, pipelines left out. pipelines: the main loop of a GEMM, stages times iterations.

Prints ratios and curves; asserts nothing. docs/speed.md has the figures of one machine. No section named: all.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from families import FAMILIES
from pipelines import PIPELINES

HERE = Path(__file__).resolve().parent
SECTIONS = ("suite", "rows", "families", "pipelines", "shell")
ITERATIONS = 9
"""Of the longest main loop."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--suite", metavar="DIR", help="default: the shipped suite")
    parser.add_argument("--expected", metavar="CSV", help="only the tests that it lists")
    parser.add_argument("--model", default="ptx-9.4")
    parser.add_argument("--most", type=int, default=12, metavar="N", help="threads of the largest member of a family")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # one member, in a process of its own
    options = parser.parse_args()
    if options.one:
        print(json.dumps(member(options.one[0], int(options.one[1]), options.model)))
        return
    wanted = options.sections or SECTIONS
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if "suite" in wanted:
        suite(options.suite, options.expected, options.model)
    if "rows" in wanted:
        suite(str(HERE.parent / "litmus" / "async"), None, options.model, without="/pipelines/")
    if "families" in wanted:
        curves({name: range(2, options.most + 1) for name in FAMILIES}, options.model)
    if "pipelines" in wanted:
        curves({name: range(1, ITERATIONS + 1) for name in PIPELINES}, options.model)
    if "shell" in wanted:
        shell()


def suite(directory: str | None, expected: str | None, model: str, without: str | None = None) -> None:
    """Every test of a suite, one process, each engine: total, median, slowest, and the encoding's share.

    `without`: leave out paths that contain this.
    """
    from memmodel import api, batch
    from memmodel.answer import Budget

    plan = batch.plan([directory] if directory else [], [model], expected)
    jobs = [job for job in plan.jobs if not without or without not in Path(job.path).as_posix()]
    api.load(model)
    print(f"{directory or 'shipped suite'}: {len(jobs)} tests under {model}, one process")
    print(
        f"  {'engine':<10} {'total s':>8} {'median ms':>10} {'p90 ms':>8} {'slowest ms':>11}  undecided  slowest test"
    )
    for engine in ("z3", "enumerate", "auto"):
        settings = batch.Settings(engine, Budget(effort=100_000_000, seconds=20))
        batch.run_job(jobs[0], settings)  # imports and caches are not what is measured
        took: list[tuple[float, str]] = []
        undecided = 0
        ratios: list[float] = []
        for job in jobs:
            started = time.perf_counter()
            entry = batch.run_job(job, settings)[0]
            took.append((1000 * (time.perf_counter() - started), job.path))
            undecided += entry.outcome is batch.Outcome.UNDECIDED
            if engine == "z3" and entry.report and entry.report.answer.events > 20:
                times = entry.report.times
                ratios.append(times.encode / max(times.solve, 0.001))
        alone = sorted(ms for ms, _ in took)
        ninth = alone[min(len(alone) - 1, len(alone) * 9 // 10)]
        slowest = max(took)
        print(
            f"  {engine:<10} {sum(alone) / 1000:>8.2f} {statistics.median(alone):>10.1f} {ninth:>8.1f}"
            f" {slowest[0]:>11.1f}  {undecided:>9}  {Path(slowest[1]).name}"
        )
        if ratios:
            over = sum(ratio > 2 for ratio in ratios)
            print(
                f"             encode/solve over {len(ratios)} tests of more than 20 events: median"
                f" {statistics.median(ratios):.2f}, largest {max(ratios):.2f}, above 2: {over}"
            )


def member(family: str, n: int, model: str) -> dict[str, float | str]:
    """One member of a family on Z3. Peak memory is the process's, so each member gets its own."""
    from memmodel import api
    from memmodel.answer import Budget
    from memmodel.litmus.syntax import terms_of
    from memmodel.refine.query import encode
    from memmodel.solve.answers import solve_answer
    from memmodel.source import Source

    loaded = api.load(model)
    test = api.lowered(Source(f"{family}-{n}", (FAMILIES | PIPELINES)[family](n)))
    warm = api.lowered(Source("warm", FAMILIES["mp-chain"](2)))
    solve_answer(warm, loaded, budget=Budget(), bound=3, findings=True)
    answer = solve_answer(test, loaded, budget=Budget(), bound=3, findings=True)
    size = encode(test, loaded, 3, tuple(terms_of(test.test.condition))).graph.logic.size
    return {
        "events": answer.events,
        "nodes": size,
        "encode": answer.times.encode,
        "solve": answer.times.solve,
        "findings": len(answer.findings),
        "answer": answer.observation.value,
        "mb": peak_megabytes(),
    }


def peak_megabytes() -> float:
    """Peak memory of this process. Linux's getrusage also counts the parent that it was forked from, /proc does not."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def curves(members: dict[str, range], model: str) -> None:
    """One table for each family: over the number of threads, or of iterations."""
    for family, sizes in members.items():
        print(f"{family} under {model}, z3")
        print("    n  events    nodes  encode ms  solve ms  ratio  peak MB  findings  answer")
        for n in sizes:
            command = [sys.executable, str(HERE / "run.py"), "--one", family, str(n), "--model", model]
            done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent)
            row = json.loads(done.stdout)
            print(
                f"  {n:>3}  {row['events']:>6}  {row['nodes']:>7}  {row['encode']:>9.1f}  {row['solve']:>8.1f}"
                f"  {row['encode'] / row['solve']:>5.2f}  {row['mb']:>7.0f}  {row['findings']:>8}  {row['answer']}"
            )


def shell() -> None:
    """`memmodel check` of message passing as a person runs it, next to a Python that does nothing."""

    def median(command: list[str]) -> float:
        times = []
        for _ in range(6):  # the first run fills caches
            started = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True, cwd=HERE.parent)
            times.append(1000 * (time.perf_counter() - started))
        return statistics.median(times[1:])

    bare = median([sys.executable, "-c", "pass"])
    test = HERE.parent / "litmus" / "isa" / "MP.litmus"
    for engine in ("auto", "z3"):
        one = median([sys.executable, "-m", "memmodel", "check", str(test), "--engine", engine])
        print(f"shell: check of MP ({engine}) {one:.0f} ms, bare python {bare:.0f} ms, ratio {one / bare:.1f}")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    main()
