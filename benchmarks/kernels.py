"""Figures of compiled kernels: how long their verdicts take, and how large the runs are.

`python benchmarks/kernels.py [DIR]` judges every DIR/*.ptx that has a *.launch.json beside it (NAME-broken.ptx is
launched as NAME.ptx), each in a process of its own, and prints a Markdown table. Without DIR: docs/examples/kernels.
Seconds are CPU time; memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples" / "kernels"
COLUMNS = ("kernel", "lines", "threads", "instructions", "events", "judged", "seconds", "MB", "verdict", "findings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?", default=EXAMPLES)
    parser.add_argument("--model", default="ptx-9.4")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one kernel")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(given.directory / given.one, given.model)))
        return
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for path in sorted(given.directory.glob("*.ptx")):
        if launch_of(path).exists():
            print("| " + " | ".join(row(given.directory, path, given.model, given.limit)) + " |", flush=True)


def launch_of(path: Path) -> Path:
    """What a kernel is launched with; a broken copy as the kernel that it is a copy of."""
    own = path.with_suffix(".launch.json")
    return own if own.exists() else path.with_name(path.stem.removesuffix("-broken") + ".launch.json")


def row(directory: Path, path: Path, model: str, limit: float) -> list[str]:
    """One line of the table."""
    command = [sys.executable, __file__, str(directory), "--model", model, "--one", path.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return [path.stem, *[""] * 5, f"> {limit:.0f}", "", "no answer", ""]
    if done.returncode:
        return [path.stem, *[""] * 7, "error", done.stderr.strip().splitlines()[-1][:80] if done.stderr else ""]
    found = json.loads(done.stdout)
    return [path.stem, *(found[name] for name in COLUMNS[1:])]


def measured(path: Path, model: str) -> dict[str, str]:
    """The figures of one kernel, as they are printed."""
    from memmodel import check_kernel

    started = time.process_time()
    verdict = check_kernel(path, launch_of(path), model=model)
    seconds = time.process_time() - started
    numbers = verdict.statistics
    rules = Counter(one.rule for one in verdict.findings)
    return {
        "lines": str(len(path.read_text().splitlines())),
        "threads": str(numbers.threads),
        "instructions": f"{numbers.instructions:,}",
        "events": f"{numbers.events:,}",
        "judged": f"{numbers.judged:,}",
        "seconds": f"{seconds:.1f}",
        "MB": str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024),
        "verdict": verdict.word,
        "findings": ", ".join(f"{count} {rule}" for rule, count in sorted(rules.items())),
    }


if __name__ == "__main__":
    main()
