"""fix and weaken over the shipped tests: what is repaired, by what, and whether it is what the right sibling has.

    python -m benchmarks.repairs fix litmus --out fix.jsonl           # goes on where an earlier run stopped
    python -m benchmarks.repairs weaken litmus --out weaken.jsonl --sample 100
    python -m benchmarks.repairs count fix.jsonl weaken.jsonl         # the figures of docs/repair.md

One line of JSON for each test, written as it comes. For a test that is allowed, racy, hazardous, undefined or hangs:
the repairs, or why there are none. A *sibling* of a test `NAME-suffix` is `NAME` in the same directory, if nothing is
wrong with that one. It counts as found if every line that a repair adds stands in the sibling.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from memmodel import api
from memmodel.answer import Budget, Observation
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.repair import fix as fix_module
from memmodel.repair.edits import apply
from memmodel.repair.fix import Fixed, Repair, fix, wrong_words
from memmodel.repair.judge import judging, parse
from memmodel.repair.layout import laid
from memmodel.repair.searching import trials
from memmodel.repair.spellings import RESTRICTED
from memmodel.repair.weaken import weaken
from memmodel.source import Source

MODELS = (api.load(api.DEFAULT_MODEL),)
LISTED = 6
SEED = 1
SMALL = Budget(20_000_000, 20.0)
"""What an engine may spend on one program, to judge a result again."""


def main() -> None:
    """Run a part, or count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fix", "weaken", "count"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0, help="for the search of each test")
    parser.add_argument("--sample", type=int, help=f"so many tests at random (seed {SEED})")
    chosen = parser.parse_args()
    trials.monotonic = fix_module.monotonic = process_time
    if chosen.what == "count":
        for path in chosen.paths:
            counted([json.loads(line) for line in path.read_text().splitlines()])
        return
    done = {json.loads(line)["file"] for line in chosen.out.read_text().splitlines()} if chosen.out.exists() else set()
    for file in _files(chosen.paths, chosen.sample):
        if str(file) in done:
            continue
        started = process_time()
        found = _fixed(file, chosen.seconds) if chosen.what == "fix" else _weakened(file)
        line = {"file": str(file), **found, "cpu": round(process_time() - started, 2)}
        with chosen.out.open("a") as out:
            out.write(json.dumps(line) + "\n")


def _files(paths: list[Path], sample: int | None) -> list[Path]:
    """The tests in an order that chance decides, so that a run that was cut short is a sample."""
    files = sorted(file for path in paths for file in (path.rglob("*.litmus") if path.is_dir() else [path]))
    random.Random(SEED).shuffle(files)
    return files[:sample]


def blocks(file: str) -> tuple[str, str]:
    """The name of a test, and its text as blocks."""
    source = Source.read(file)
    return source.name, laid(source).blocks


# ---- fix -------------------------------------------------------------------------------------------------------------


def _fixed(file: Path, seconds: float) -> dict[str, object]:
    """What fix says of one test."""
    try:
        name, text = blocks(str(file))
    except InputError as error:
        return {"reason": f"not as blocks: {error}"}
    asked = parse(name, text)
    started = process_time()
    found = fix(name, text, MODELS, Options(), most=LISTED, seconds=seconds)
    told: dict[str, object] = {
        "threads": 0 if asked is None else len(asked[0].test.threads),
        "wrong": found.wrong,
        "tried": found.tried,
        "reason": found.reason,
        "search": round(process_time() - started, 2),
        "repairs": [[one.cost, [edit.what for edit in one.changes], one.instead] for one in found.repairs],
    }
    if found.repairs:
        told["right"] = _right(name, found.repairs[0].new)
        told["engines"] = Counter(_by_the_other(one.new) for one in forms(found))
    sibling = _sibling(file) if found.wrong else None
    if sibling is not None:
        told["sibling"] = any(_like(one, sibling) for one in forms(found))
    return told


def forms(found: Fixed) -> list[Repair]:
    """All repairs, with the others of the same ideas."""
    changes = ((one, edits) for one in found.repairs for edits in (one.changes, *one.others))
    return [Repair(edits, one.name, one.old, apply(one.old, edits)) for one, edits in changes]


def _right(name: str, text: str) -> bool:
    """True if nothing is wrong with a repaired test, judged without what the search knew."""
    standing = judging(name, MODELS, Options())(text)
    return standing is not None and standing.complete and not wrong_words(standing)


def _by_the_other(text: str) -> str:
    """Does the engine that did not judge a repair first say the same of it?"""
    asked = parse("repaired", text)
    assert asked is not None
    first = {api.judge(one, MODELS[0], Options()).engine for one in asked}
    other = "enumerate" if any(one.startswith("z3") for one in first) else "z3"
    one, two = judging("repaired", MODELS, Options())(text), judging("repaired", MODELS, Options(other, SMALL))(text)
    if one is None or two is None or not two.complete:
        return "too large for the other engine"
    return "accepted by the other engine" if one == two else "REFUSED"


def _sibling(file: Path) -> str | None:
    """The text of the right test beside a broken one, if it makes the same accesses to memory: the one whose name is
    the longest that is left when words after a hyphen or a dot go."""
    stem = file.stem
    while parted := re.match(r"(.*)[-.]", stem):
        stem = parted[1]
        other = file.with_name(f"{stem}.litmus")
        if other.exists():
            name, text = blocks(str(other))
            standing = judging(name, MODELS, Options())(text)
            wrong = standing is None or standing.findings or not standing.complete
            bad = standing is not None and any(one[2] is Observation.SOMETIMES for one in standing.observations)
            alike = _accesses(text) == _accesses(blocks(str(file))[1])
            return text if alike and not (wrong or bad) else None
    return None


SYNCHRONIZES = re.compile(
    r"(fence|membar|bar|barrier|mbarrier|bra)\b|tcgen05\.(fence|commit|wait)|.*(commit|wait)_group|@"
)


def _accesses(text: str) -> Counter[str]:
    """The accesses of the threads of a test, up to their semantics and scopes."""
    body = re.sub(r"//.*", "", "".join(re.split(r"^(?=thread )", text, flags=re.M)[1:]).rpartition("}")[0])
    items = (item.rpartition(":\n")[2].strip() for item in re.split(r"[;{}]\s*\n", body))
    weak = (re.sub(r"\.(weak|relaxed|acquire|release|acq_rel|cta|cluster|gpu|sys|b128)\b", "", item) for item in items)
    return Counter(re.sub(r"^red\b", "atom", item) for item in weak if item and not SYNCHRONIZES.match(item))


def _like(repair: Repair, sibling: str) -> bool:
    """Does every line that the repair adds stand in the sibling, or a part of it that orders less?

    Up to state spaces, labels, predicates and what is the default; a wait that is put in may have other semantics.
    """
    changed = [line for line in repair.diff().splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    inserted = all(line.startswith("+") for line in changed)
    lines = {less for line in sibling.splitlines() for less in _less(_bare(line, loose=inserted))}
    for sem, restricted in RESTRICTED.items():
        wide = re.search(rf"\bfence\.({sem}|acq_rel|sc)\.(cluster|gpu|sys);", sibling)
        lines |= {_bare(f"{restricted};", loose=False)} if wide else set()
    return all(_bare(line[1:], loose=inserted) in lines for line in changed if line.startswith("+"))


def _bare(line: str, *, loose: bool) -> str:
    line = line.split("//")[0].strip().replace("shared::cluster", "shared::cta")
    line = re.sub(r"^\w+:$|(?<=bra )\w+|(?<=bar.sync )\d+", "NAME", line)
    line = re.sub(r"^(fence\.(?!proxy\.async)[\w:.]+?)\.(cta|cluster|gpu|sys)(?=[; ])", r"\1", line)
    line = re.sub(r"%(?:ready_*|p\d*|w)\b", "%p", line).replace(".acquire.cta", "").replace(".release.cta", "")
    if loose and "wait" in line:
        line = re.sub(r"\.(acquire|relaxed)\.(cta|cluster)", "", line)
    return line


def _less(line: str) -> list[str]:
    """A fence, and those that order less."""
    if line in ("fence.sc;", "fence.acq_rel;"):
        return [line, "fence.acq_rel;", "fence.acquire;", "fence.release;"]
    if line.startswith("fence.proxy.async;"):
        return [line, *(f"fence.proxy.async.{space};" for space in ("global", "shared::cta"))]
    return [line]


# ---- weaken ----------------------------------------------------------------------------------------------------------


def _weakened(file: Path) -> dict[str, object]:
    """What weaken says of one test, and what both engines say of its result."""
    try:
        name, text = blocks(str(file))
    except InputError as error:
        return {"reason": f"not as blocks: {error}"}
    found = weaken(name, text, MODELS, Options())
    told: dict[str, object] = {
        "saves": found.saves,
        "changes": [edit.what for edit in found.changes],
        "reason": found.reason,
        "best": found.best,
        "tried": found.tried,
    }
    if found.changes:
        told["further"] = [edit.what for edit in weaken(name, found.new, MODELS, Options()).changes]
        told["engines"] = Counter(_no_worse(text, found.new, engine) for engine in ("z3", "enumerate"))
    return told


def _no_worse(old: str, new: str, engine: str) -> str:
    """Does an engine find no outcome and no finding in the new text that the old one has not?"""
    both = [Source("t", text) for text in (old, new)]
    before, after = ([one.answer for one in api.check_all(one, engine=engine, budget=SMALL)] for one in both)
    if any(one.observation is Observation.UNDECIDED for one in (*before, *after)):
        return f"undecided by {engine}"
    same = [one.observation for one in before] == [one.observation for one in after]
    more = any(set(b.flags) - set(a.flags) for a, b in zip(before, after, strict=True))
    if not same or more:
        return "TOO FAR"
    old_states, new_states = (api.outcomes(one, engine=engine, budget=SMALL) for one in both)
    if not (old_states.complete and new_states.complete):
        return f"outcomes undecided by {engine}"
    extra = {one.values for one in new_states.states} - {one.values for one in old_states.states}
    return "TOO FAR" if extra else f"accepted by {engine}"


# ---- figures ---------------------------------------------------------------------------------------------------------


def counted(lines: list[dict[str, object]]) -> None:
    """Print what the lines of a run come to."""
    totals: Counter[str] = Counter()
    for line in lines:
        totals[_class(line)] += 1
        for engine, number in (line.get("engines") or {}).items():  # type: ignore[attr-defined]
            totals[f"  results {engine}"] += number
        if "right" in line:
            said = str(line["reason"]).startswith("the findings end")
            partly = "  whose first repair ends the findings alone, and says so" if said else "  FIRST REPAIR WRONG"
            totals["  whose first repair ends all that is wrong" if line["right"] else partly] += 1
        if "further" in line:
            totals["  that can be WEAKENED FURTHER" if line["further"] else "  that cannot be weakened further"] += 1
        if "sibling" in line:
            totals["  with a right sibling"] += 1
            totals["  whose change is among the repairs"] += bool(line["sibling"])
    for what, number in totals.most_common():
        print(f"{number:5} {what}")
    for what, times in _times(lines):
        if times:
            print(f"{len(times):5} {what}: median {statistics.median(times):.1f} s, most {max(times):.1f} s of CPU")


def _class(line: dict[str, object]) -> str:
    if "changes" in line:
        return str(line["reason"]) or ("weakened" if line["changes"] else "nothing to drop or narrow")
    reason = str(line["reason"]).split(";")[0].split(":")[0]
    if not line.get("wrong"):
        return reason
    return ("repaired" if line["repairs"] else "none") + (f": {reason}" if reason else "")


def _times(lines: list[dict[str, object]]) -> Iterator[tuple[str, list[float]]]:
    wrong = [line for line in lines if line.get("wrong")]
    two = [line for line in wrong if line["threads"] == 2]
    yield "searches of two-thread tests", [float(line["search"]) for line in two]  # type: ignore[arg-type]
    yield "other searches", [float(line["search"]) for line in wrong if line not in two]  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
