"""sync over shipped tests with their synchronization taken out: what is found, beside what the test has.

    python -m benchmarks.synchronize litmus --out sync.jsonl         # goes on where an earlier run stopped
    python -m benchmarks.synchronize --table sync.jsonl              # the table of docs/sync.md

One line of JSON for each right test of `TESTS`. Seconds are of processor time.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time

from memmodel import api
from memmodel.answer import Budget
from memmodel.engine import Options
from memmodel.repair.searching import trials
from memmodel.repair.synchronizing import search, synchronize
from memmodel.repair.synchronizing.strip import Strip

trials.monotonic = search.monotonic = synchronize.monotonic = process_time
MODELS = (api.load(api.DEFAULT_MODEL),)
OPTIONS = Options(budget=Budget(seconds=3600.0))
"""A budget of the clock that is no bound: what bounds a search is its seconds of processor time."""

TESTS = {
    "control/spin+acquire.litmus": "a flag in a loop",
    "control/spin+chain.litmus": "two flags in a chain",
    "async/mbarrier/G3.litmus": "an mbarrier object in one CTA",
    "async/mbarrier/G9.litmus": "a hand-over to another CTA of the cluster",
    "async/mbarrier/G15-passed-on.litmus": "shared memory passed on in a cluster",
    "async/proxy/A1.litmus": "generic store, then a bulk copy",
    "async/proxy/credit.litmus": "a buffer handed back to a copy",
    "async/patterns/tma-to-cp.litmus": "TMA to tcgen05.cp",
    "async/patterns/tma-to-tma-store.litmus": "TMA load to TMA store",
    "async/patterns/threads-to-wgmma.litmus": "threads to wgmma",
    "async/patterns/threads-to-mma.cluster.litmus": "threads to tcgen05.mma of another CTA",
    "async/patterns/wgmma-to-tma-store.litmus": "wgmma to a TMA store",
    "async/patterns/mma-then-st.litmus": "operands of tcgen05.mma overwritten",
    "async/patterns/mma-to-mma.litmus": "one tcgen05.mma after another thread's",
    "async/patterns/ld-then-tma.litmus": "a buffer read, then filled again",
    "async/patterns/st-to-ld.litmus": "tcgen05.st to tcgen05.ld",
    "async/patterns/tma-store-to-threads.litmus": "a TMA store read by threads",
    "async/pipelines/A18.litmus": "three stages of TMA to wgmma",
    "async/pipelines/accumulator-reuse.litmus": "an accumulator drained and used again",
    "async/pipelines/attention-smem.litmus": "attention with P in shared memory",
    "async/pipelines/dsmem-reduction.litmus": "st.async into a cluster's accumulator",
    "async/pipelines/epilogue.litmus": "an epilogue: tcgen05.ld to a TMA store",
    "async/pipelines/gemm-wgmma-2x2.litmus": "a ring of two stages, wgmma",
    "async/pipelines/gemm-tcgen05-2x2.litmus": "a ring of two stages, tcgen05",
    "async/pipelines/multicast.litmus": "a multicast ring of two CTAs",
    "async/pipelines/split-k.litmus": "split-k with a counter",
}
"""Tests, and what each is about."""


def main() -> None:
    """Run what is not in the file yet, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("litmus"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--strip", choices=[Strip.ORDER.value, Strip.WAITS.value], default=Strip.ORDER.value)
    parser.add_argument("--seconds", type=float, default=60.0, help="for the search of each test")
    chosen = parser.parse_args()
    if chosen.table:
        table([json.loads(line) for line in chosen.table.read_text().splitlines()])
        return
    done = {json.loads(line)["file"] for line in chosen.out.read_text().splitlines()} if chosen.out.exists() else set()
    with chosen.out.open("a") as out:
        for file in TESTS:
            if file not in done:
                print(json.dumps(row(chosen.folder, file, Strip(chosen.strip), chosen.seconds)), file=out, flush=True)


def row(folder: Path, file: str, strip: Strip, seconds: float) -> dict[str, object]:
    """What is found for one test."""
    started = process_time()
    text = (folder / file).read_text()
    found = synchronize.synchronize(file, text, MODELS, OPTIONS, strip=strip, seconds=seconds)
    return {
        "file": file,
        "given": found.given,
        "cost": None if found.new is None else found.cost,
        "bound": found.bound,
        "proved": found.proved,
        "offered": found.offered,
        "tried": found.tried,
        "seconds": round(process_time() - started, 1),
        "judged": found.judged,
        "reason": found.reason,
        "depends": found.depends,
        "changes": found.changes,
        "diff": found.diff(),
    }


def table(rows: list[dict[str, object]]) -> None:
    """The rows as Markdown."""
    print("| test | what | as written | found | changes | judged by | s |\n| --- | --- | --- | --- | --- | --- | --- |")
    for entry in rows:
        file, cost = str(entry["file"]), entry["cost"]
        least = "" if entry["proved"] else f", at least {entry['bound']:g}"
        found = "nothing" if cost is None else f"{cost:g}{least}"
        name = f"[{Path(file).stem}](../litmus/{file})"
        cells = (name, TESTS[file], f"{entry['given']:g}", found, entry["offered"], entry["judged"], entry["seconds"])
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
