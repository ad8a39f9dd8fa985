"""The figures of docs/search.md: readings told apart, properties verified, bounds reached, programs counted.

    python benchmarks/searches.py readings|properties|bounds|count [NAME ...] [--seconds N] [--most N] [--svg FILE]

Prints rows of Markdown, with CPU seconds of one process. NAME: only these rows. `readings` also draws which model
implies which (--svg), `bounds` the bound reached against time. `--seconds`: for each row of `bounds`; `--most`: no
larger programs.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from itertools import combinations

from memmodel.output import write_text
from memmodel.search.properties import checks_to_show, load_property, shipped_properties
from memmodel.search.sketches import sketches
from memmodel.search.tasks import DifferenceTask, PropertyTask
from memmodel.search.vocabulary import Vocabulary, vocabulary
from memmodel.search.work import HereAndNow, Record, run


@dataclass(frozen=True)
class Pair:
    """Two models, and the programs on which they are compared; `accesses`: instructions besides fences."""

    second: str
    words: str
    size: int
    spread: str = "one"
    scopes: str = "cta"
    places: int = 1
    accesses: int | None = None
    first: str = "ptx-9.4"

    def vocabulary(self) -> Vocabulary:
        split = [one.split(",") for one in (self.words, self.scopes, self.spread)]
        return replace(vocabulary(split[0], split[1], 2, self.places, split[2]), most=self.accesses)


_MMA = "tcgen05.mma,tcgen05.commit,tcgen05.ld"
_STORES = "tcgen05.st,tcgen05.wait::st,arrive.release,wait.acquire"
_HANDED = "st.shared.weak,arrive.release,wait.acquire,copy.out,fence.proxy.async"
_OVER = "ld.shared.weak,st.shared.weak,copy.in,wait.acquire,fence.proxy.async"
_WGMMA = "wgmma,st.shared.weak,fence.proxy.async,wgmma.fence"
PAIRS = (
    Pair("readings/D1-issuer", "copy.in,copy.out,wait.acquire", 3, "cluster", "cluster", 2),
    Pair("readings/D2-accessor", _HANDED, 5, accesses=4),
    Pair("readings/D2-anywhere", "ld.shared.weak,st.shared.weak,copy.in,fence.proxy.async", 4, "cluster", "cluster"),
    Pair("readings/D3-implicit", f"{_MMA},wait.acquire,st.shared.weak", 4),
    Pair("readings/D4a-no-before", f"{_STORES},tcgen05.fence::after", 6, accesses=5),
    Pair("readings/D4b-acquire", f"{_MMA},wait.acquire", 4),
    Pair("readings/D4c-any-wait", f"{_MMA},wait.relaxed", 4),
    Pair("readings/D4ab-no-fences", _STORES, 5),
    Pair("readings/D5-fence", "tcgen05.mma,tcgen05.ld,st.shared.weak,fence.proxy.async", 3),
    Pair("readings/D6-issuer", "copy.in,wait.acquire,ld.shared.weak", 3, "cluster"),
    Pair("readings/D7-anywhere", "copy.in,copy.out,wait.acquire", 3, "cluster", "cluster", 2),
    Pair("readings/D8-mma-cp", "tcgen05.mma,tcgen05.cp", 2, places=2),
    Pair("readings/D9-letter", "reduce,st.tile,ld.tile", 3, scopes="cta,gpu"),
    Pair("readings/D10-dependent", "ld.shared.weak,st.shared.weak,arrive.release,wait.acquire", 4),
    Pair("readings/D11-unfinished", _OVER, 5, accesses=4),
    Pair("readings/D12-issue", _WGMMA, 4),
    Pair("readings/D12-proxy-fence", _WGMMA, 4),
    Pair("readings/D12-issue", f"{_WGMMA},copy.in,wait.acquire", 3, first="readings/D12-proxy-fence"),
    Pair("readings/D13-thread", "wgmma,wgmma.wait,st.shared.weak", 4, "one,warpgroup"),
    Pair("readings/D14-cluster", "arrive.plain,wait.plain,ld.shared.weak,st.shared.weak", 4, "cluster", "cluster"),
    *(
        Pair(f"readings/{second}", words, size, accesses=5, first=f"readings/{first}")
        for first, second in combinations(("D4a-no-before", "D4b-acquire", "D4c-any-wait", "D4ab-no-fences"), 2)
        for words, size in ((f"{_MMA},wait", 4), (f"{_STORES},tcgen05.fence::after", 6))
    ),
)  # fmt: skip
"""Each reading against the default, and the readings of one decision against each other."""


@dataclass(frozen=True)
class Bound:
    """A search whose bound is measured: two models, and the programs on which they are compared."""

    first: str
    second: str
    words: Vocabulary


BOUNDS = {
    "core": Bound("sc", "ptx-6.0", vocabulary(["core"])),
    "async": Bound("ptx-9.4", "readings/D2-accessor", vocabulary(["async"])),
    "async-D1": Bound("ptx-9.4", "readings/D1-issuer", vocabulary(["async"])),
    "async-3": Bound("ptx-9.4", "readings/D2-accessor", vocabulary(["async"], threads=3)),
    "async.wide": Bound("ptx-9.4", "readings/D2-accessor", vocabulary(["async.wide"])),
    "copies": Bound("ptx-9.4", "readings/D2-anywhere", vocabulary(["copies"])),
}
"""`async-D1`: models that may differ on every program of the vocabulary. `async-3`: up to three threads."""


def _short(name: str) -> str:
    return name.removeprefix("readings/").partition("-")[0] if "/" in name else name


def readings(names: list[str], svg: str | None) -> None:
    """Every pair: the smallest difference, and which of the two allows more."""
    allows: dict[tuple[str, str], set[str]] = {}
    print(
        "| models | instructions | smallest difference | CPU seconds | allows more |\n|---|---|---|---|---|", flush=True
    )
    for pair in PAIRS:
        if names and not set(names) & {pair.second.removeprefix("readings/"), _short(pair.second)}:
            continue
        started = time.process_time()
        task = DifferenceTask(pair.first, pair.second, pair.vocabulary(), pair.size, True)
        found = run(task, HereAndNow()).results
        more = sorted({str(one["allows"]) for one in found})
        allows.setdefault((pair.first, pair.second), set()).update(more)
        spent = time.process_time() - started
        least = min((int(one["size"]) for one in found), default=0)
        models = f"`{pair.first.removeprefix('readings/')}`, `{pair.second.removeprefix('readings/')}`"
        told = " and ".join(one.removeprefix("readings/") for one in more) or "neither"
        words = f"{', '.join(pair.words.split(','))}"
        print(f"| {models} | {words} | {least or 'none'} of {pair.size} | {spent:.0f} | {told} |", flush=True)
    if svg is not None:
        from memmodel.search.lattice import lattice, lattice_svg

        every = dict.fromkeys(name for pair in allows for name in pair)
        implied = {(*{*pair} - more, *more) for pair, more in allows.items() if len(more) == 1}
        drawn = lattice(list(every), implied)
        write_text(svg, lattice_svg(drawn))


def properties(names: list[str]) -> None:
    """Every shipped property of ptx-9.4, to its size; NAME may be NAME:SIZE."""
    print("| property | up to | CPU seconds | answer |\n|---|---|---|---|", flush=True)
    asked = dict(one.partition(":")[::2] for one in names) or dict.fromkeys(shipped_properties(), "")
    for name, size in asked.items():
        it = load_property(name)
        missing = checks_to_show(it, "ptx-9.4")

        def enough(results: list[Record], missing: set[str] = missing) -> bool:
            return bool(results) and missing <= {one["check"] for one in results}

        started = time.process_time()
        found = run(PropertyTask(name, "ptx-9.4", it.vocabulary, int(size or it.size)), HereAndNow(), enough=enough)
        spent = time.process_time() - started
        if it.kind == "possible":
            shown = sorted({int(one["size"]) for one in found.results})
            answer = "shown with " + ", ".join(map(str, shown)) if enough(found.results) else "not shown"
        else:
            answer = f"{len(found.results)} violations" if found.results else "holds"
        print(f"| `{name}` | {found.bound} | {spent:.0f} | {answer} |", flush=True)


def bounds(names: list[str], seconds: float, most: int, svg: str | None) -> None:
    """Each bound by a search of its own, on one process, as far as the CPU time of two cores lasts."""
    from memmodel.search.explain import bound_plot

    drawn: dict[str, dict[int, float]] = {}
    for name in names or BOUNDS:
        one, reached = BOUNDS[name], dict[int, float]()
        task = DifferenceTask(one.first, one.second, one.words, 12, True)
        for size in range(2, most + 1):
            started = time.process_time()

            def stop_late(size: int, done: int, total: int, began: float = started) -> None:
                if time.process_time() - began > 2 * seconds:
                    raise KeyboardInterrupt

            found = run(replace(task, most=size), HereAndNow(), report=stop_late)
            spent = time.process_time() - started
            if found.interrupted:
                print(f"{name}: {size} instructions not reached; {found.bound} of them done", flush=True)
                break
            rate = found.sketches / max(spent, 0.01)
            each = f"{found.sketches:,} shapes, {spent:.0f} CPU seconds, {rate:.0f} shapes a second"
            print(f"{name}: {size} instructions, {each}, {len(found.results)} differences", flush=True)
            reached[size] = spent / 2
        drawn[name] = reached
    if svg is not None:
        write_text(svg, bound_plot(drawn))


def count(names: list[str]) -> None:
    """How many shapes, and how many programs these spell."""
    from memmodel.search.programs import Ready

    print("| vocabulary | instructions | shapes | programs |\n|---|---|---|---|")
    for name in names or BOUNDS:
        for size in (2, 3, 4):
            every = [one for most in range(1, size + 1) for one in sketches(BOUNDS[name].words, most)]
            spelt = sum(Ready(one, BOUNDS[name].words, size).worlds.bit_count() for one in every)
            print(f"| `{name}` | {size} | {len(every):,} | {spelt:,} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["readings", "properties", "bounds", "count"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--most", type=int, default=12)
    parser.add_argument("--svg")
    options = parser.parse_args()
    if options.what == "readings":
        readings(options.names, options.svg)
    elif options.what == "properties":
        properties(options.names)
    elif options.what == "bounds":
        bounds(options.names, options.seconds, options.most, options.svg)
    else:
        count(options.names)


if __name__ == "__main__":
    main()
