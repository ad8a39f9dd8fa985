"""Does `auto` choose well? CPU time of auto over that of the faster engine, test by test.

    python benchmarks/engines.py [PATH ...] [--model NAME] [--every N] [--limit SECONDS] [--json FILE]

PATH: litmus files or folders; the shipped suite and small members of the families without any. Prints the distribution
of the ratios, what choosing costs in all, and the tests where auto loses most. `--every`: only each Nth test.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from families import FAMILIES
from pipelines import main_loop, ring

HERE = Path(__file__).resolve().parent
ENGINES = ("enumerate", "z3", "auto")
Row = dict[str, float | str]


def tests(paths: list[Path], every: int) -> list[tuple[str, str]]:
    """Names and texts."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.litmus")))]
    found = [(str(file), file.read_text(encoding="utf-8")) for file in files[::every]]
    if not paths:
        found += [(f"{name} {n}", make(n)) for name, make in FAMILIES.items() for n in (2, 3, 4, 6, 8, 12, 16)]
        found += [(f"ring-{stages} {n}", ring(stages, n)) for stages in (1, 2) for n in (2, 3, 4, 6)]
        found += [(f"gemm-{stages} {n}", main_loop(stages, n)) for stages, n in ((1, 1), (2, 2), (2, 3))]
    return found


def measured(name: str, text: str, model: str, limit: float) -> Row | None:
    """One test on both engines and on auto, best of three; None if it cannot be asked."""
    from memmodel import api
    from memmodel.answer import Budget
    from memmodel.engine import Options
    from memmodel.enumeration.estimate import estimate
    from memmodel.errors import InputError, TooLarge
    from memmodel.source import Source

    try:
        steps, loaded = api.lowered(Source(name, text)), api.load(model)
    except (InputError, TooLarge):
        return None
    row: Row = {"name": name, "estimate": estimate(steps, 3)}
    for engine in ENGINES:
        took = []
        for _ in range(3):
            started = time.process_time()
            answer = api.judge(steps, loaded, Options(engine, Budget(effort=10**10, seconds=limit)))
            took.append(time.process_time() - started)
            if took[0] > 0.3:
                break
        row[engine] = min(took) if not answer.unsearched else 10 * limit
        row[f"{engine} answers"] = answer.observation.value
        row["engine"] = answer.engine
    return row


def show(rows: list[Row]) -> None:
    """The distribution of the ratios."""
    cost = [(float(row["auto"]), min(float(row["enumerate"]), float(row["z3"])), str(row["name"])) for row in rows]
    ratios = sorted(auto / best for auto, best, _ in cost)
    at = {q: ratios[min(len(ratios) - 1, int(q * len(ratios)))] for q in (0.5, 0.9, 0.95, 0.99, 1)}
    print(f"{len(rows)} tests; auto over the faster engine, CPU:")
    print("  " + ", ".join(f"{100 * q:g} % below {ratio:.2f}" for q, ratio in at.items()))
    print(f"  in all {sum(a for a, _, _ in cost) / sum(b for _, b, _ in cost):.2f}, mean {statistics.mean(ratios):.2f}")
    lost = sorted((auto / best, auto, name) for auto, best, name in cost if auto > 1.5 * best)
    print(f"  {len(lost)} tests lose more than 1.5 times:")
    for ratio, auto, name in reversed(lost[-12:]):
        print(f"    {ratio:.1f}  {1000 * auto:.0f} ms  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--model", default="ptx-9.4")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    given = tests(options.paths or [HERE.parent / "litmus"], options.every)
    given += [] if options.paths else tests([], 1)
    rows = [row for name, text in given if (row := measured(name, text, options.model, options.limit)) is not None]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    show(rows)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    main()
