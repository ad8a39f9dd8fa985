"""One rule of a model changed: how long both ways of searching take to find a smallest program that shows it.

    python benchmarks/solving.py [NAME...] [--seconds SECONDS] [--way listing|solving]

Each edit is searched as `memmodel diff ptx-9.4 EDITED --search N --outcomes` does, with the instructions that it is
about, in this process. Printed are the instructions of the program that was found, or up to how many there is none, and
CPU seconds. Listing goes on to the end of the size, and finds all shapes.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from dataclasses import dataclass, field

from memmodel.search.solving.task import SolvingTask
from memmodel.search.tasks import DifferenceTask
from memmodel.search.vocabulary import vocabulary
from memmodel.search.work import HereAndNow, run


@dataclass(frozen=True)
class Edit:
    """One rule of ptx-9.4, the instructions that it is about, and the most of them."""

    rule: str
    words: str
    most: int
    room: dict[str, object] = field(default_factory=lambda: {"threads": 3, "locations": 2})


NARROW = {"threads": 2, "locations": 1}
CLUSTER = {"threads": 2, "locations": 1, "spread": ["cta", "cluster"]}
REDUCING = "ld.weak,st.weak,st.release,red.relaxed,fence.acquire"

EDITS = {
    "scopes need not include each other": Edit("let in-scope = [strong] ; ext ; [strong]", "core", 6),
    "no release pattern with a later write": Edit(
        "let release-pattern = [W & REL] | [release-fence] ; po ; [strong-write]", "core", 6
    ),
    "no release pattern with a fence": Edit(
        "let release-pattern = [W & REL] | [W & REL] ; (po & loc) ; [strong-write]", "core", 6
    ),
    "no acquire pattern with a later read": Edit(
        "let acquire-pattern = [R & ACQ & strong-read] | [strong-read] ; po ; [acquire-fence]", "core", 6
    ),
    "fences do not acquire": Edit("let acquire-fence = (F & ACQ) \\ UNI", "core", 6),
    "fence.sc does not synchronize": Edit(
        "let any-sync = pattern-sync | D10-acquired(phase-sync) | barrier-sync | fenced-barrier-sync", "core", 6
    ),
    "no observation through atomics": Edit("let observation = observed", "atomics", 5),
    "reductions acquire": Edit("let strong-read = R \\ WEAK", REDUCING, 6),
    "no dependency on data": Edit("let dependency = addr | ctrl | rmw | [WAIT] ; po", "dependencies", 5),
    "bar.sync does not synchronize": Edit("let barrier-sync = 0", "barriers", 5),
    "no relaxed cluster arrive after a fence": Edit(
        "let fenced-barrier-sync = 0", "ld.weak,st.weak,cluster.arrive,cluster.wait,fence.acq_rel", 7, CLUSTER
    ),
    "no release on objects by a fence": Edit("let phase-release = [(MBARRIVE | SIGNAL) & REL]", "objects", 6, NARROW),
    "completions are no proxy fence": Edit("let D3-implicit = WGMMA | CLC", "async", 5, {}),
    "proxy fences of any CTA": Edit(
        "let D2-leaving(X-to-F, together) = X-to-F\noverride let D2-entering(F-to-Y, together) = F-to-Y", "async", 5, {}
    ),
    "no fence after a wait for tcgen05.ld": Edit(
        "let waited = [tensor & (TLD | TST)] ; compl ; [TWAIT] ; (po | D4-before ; execution ; po) ; iss",
        "tensor", 7, NARROW,
    ),
    "mma and cp are pipelined": Edit("let D8-pipelined = MMA * CP", "tcgen05.mma,tcgen05.cp", 4),
}  # fmt: skip


def measured(edit: Edit, way: str, seconds: int) -> tuple[str, float]:
    """Instructions of the smallest program, or how far the search came; CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "edited.cat")
        with open(model, "w", encoding="utf-8") as handle:
            handle.write(f'"edited"\ninclude "ptx-9.4.cat"\noverride {edit.rule}\n')
        words = vocabulary(edit.words.split(","), **edit.room)  # type: ignore[arg-type]
        make = SolvingTask if way == "solving" else DifferenceTask
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        progress = run(make("ptx-9.4", model, words, edit.most, True), HereAndNow(), enough=bool)
        signal.setitimer(signal.ITIMER_PROF, 0)
    sizes = [int(result["size"]) for result in progress.results]
    spent = time.process_time() - started
    return (str(min(sizes)) if sizes else f"none up to {progress.bound}"), spent


def stop(number: int, frame: object) -> None:
    """The CPU time is over."""
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="Parts of the names of edits.")
    parser.add_argument("--seconds", type=int, default=120, help="CPU seconds for each search.")
    parser.add_argument("--way", choices=["listing", "solving"], action="append")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, stop)
    ways = options.way or ["solving", "listing"]
    print("| edit | " + " | ".join(f"{way} | seconds" for way in ways) + " |")
    print("|" + "---|" * (1 + 2 * len(ways)))
    for name, edit in EDITS.items():
        if options.names and not any(word in name for word in options.names):
            continue
        cells = [name]
        for way in ways:
            found, spent = measured(edit, way, options.seconds)
            cells += [found, f"{spent:.0f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
