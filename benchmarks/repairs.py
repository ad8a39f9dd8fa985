"""fix and weaken over the shipped tests: what is repaired, by what, and whether it is what the right sibling has.

    python -m benchmarks.repairs litmus/async/proxy          # a table on standard output
    python -m benchmarks.repairs litmus --weaken --engines   # also weaken, each result judged by both engines

For each test that is allowed, racy, hazardous, undefined or hangs: the repairs, or why there are none. A *sibling* of a
test `NAME-suffix` is `NAME` in the same directory, if nothing is wrong with that one. It counts as found if every line
that a repair adds stands in the sibling.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from time import process_time

from memmodel.cli.repair import _text as blocks

from memmodel import api
from memmodel.answer import Observation
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.repair.fix import Fixed, Repair, fix
from memmodel.repair.judge import judging
from memmodel.repair.weaken import weaken
from memmodel.source import Source

MODELS = (api.load(api.DEFAULT_MODEL),)


def main() -> None:
    """Print a line for each test, then the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0, help="for the search of each test")
    parser.add_argument("--weaken", action="store_true")
    parser.add_argument("--engines", action="store_true", help="judge each result by both engines")
    chosen = parser.parse_args()
    files = sorted(file for path in chosen.paths for file in (path.rglob("*.litmus") if path.is_dir() else [path]))
    count: Counter[str] = Counter()
    for file in files:
        try:
            name, text = blocks(str(file))
        except InputError:
            count["not as blocks"] += 1
            continue
        started = process_time()
        found = fix(name, text, MODELS, Options(), seconds=chosen.seconds)
        told = _repaired(file, found, count, engines=chosen.engines)
        if told:
            print(f"{file}: {told} ({process_time() - started:.1f} s)", flush=True)
        if chosen.weaken and not found.wrong:
            _weakened(file, name, text, count, engines=chosen.engines)
    print(*(f"{number:5} {what}" for what, number in count.most_common()), sep="\n")


def _repaired(file: Path, found: Fixed, count: Counter[str], *, engines: bool) -> str:
    """What fix says of one test, in a line; nothing for a test with which nothing is wrong."""
    if not found.wrong:
        count[found.reason] += 1
        return ""
    if not found.repairs:
        count["none: " + found.reason.split(";")[0].split(":")[0]] += 1
        return f"{', '.join(found.wrong)}: {found.reason}"
    count["repaired"] += 1
    for one in found.repairs:
        if engines:
            count["repairs that both engines accept" if _right(one.new) else "REPAIRS REFUSED"] += 1
    sibling = _sibling(file)
    if sibling is not None:
        count["with a right sibling"] += 1
        count["whose change is among the repairs"] += any(_like(one, sibling) for one in found.repairs)
    best = found.repairs[0]
    return f"{', '.join(found.wrong)}: {best.cost:g}: {'; '.join(edit.what for edit in best.changes)}"


def _sibling(file: Path) -> str | None:
    """The text of the right test beside a broken one."""
    stem = file.stem
    while "-" in stem:
        stem = stem.rpartition("-")[0]
        other = file.with_name(f"{stem}.litmus")
        if other.exists():
            name, text = blocks(str(other))
            standing = judging(name, MODELS, Options())(text)
            wrong = standing is None or standing.findings or not standing.complete
            bad = standing is not None and any(one[2] is Observation.SOMETIMES for one in standing.observations)
            return None if wrong or bad else text
    return None


def _like(repair: Repair, sibling: str) -> bool:
    """Does every line that the repair adds stand in the sibling, up to state space?"""
    lines = {_bare(line) for line in sibling.splitlines()}
    added = [line[1:] for line in repair.diff().splitlines() if line.startswith("+") and not line.startswith("+++")]
    return all(_bare(line) in lines for line in added)


def _bare(line: str) -> str:
    return line.split("//")[0].strip().replace("shared::cluster", "shared::cta")


def _right(text: str) -> bool:
    """Is nothing wrong by either engine? Only small tests are given to both."""
    for engine in ("z3", "enumerate"):
        standing = judging("repaired", MODELS, Options(engine))(text)
        if standing is not None and standing.complete and standing.findings:
            return False
    return True


def _weakened(file: Path, name: str, text: str, count: Counter[str], *, engines: bool) -> None:
    found = weaken(name, text, MODELS, Options())
    if not found.changes:
        count["nothing to drop or narrow"] += 1
        return
    count["weakened"] += 1
    print(f"{file}: saves {found.saves:g}: {'; '.join(edit.what for edit in found.changes)}", flush=True)
    for engine in ("z3", "enumerate") if engines else ():
        before, after = (api.check_all(Source(name, one), engine=engine) for one in (text, found.new))
        same = [one.answer.observation for one in before] == [one.answer.observation for one in after]
        known = all(one.answer.observation is not Observation.UNDECIDED for one in (*before, *after))
        if known and (
            not same or any(set(b.answer.flags) - set(a.answer.flags) for a, b in zip(before, after, strict=True))
        ):
            count["WEAKENED TOO FAR"] += 1
            print(f"  too far by {engine}", file=sys.stderr)


if __name__ == "__main__":
    main()
