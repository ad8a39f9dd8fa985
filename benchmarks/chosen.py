"""Programs that are worth keeping as tests: together they make the most conditions of some rooms matter.

    python -m benchmarks.chosen programs|shipped|kernels [--count 1000] [--seed 1] [--seconds 600] [--most 4]

`programs` are random litmus tests that both engines judge alike (rooms encode, events, concrete, enumeration);
`shipped` are small shipped ones; `kernels` are kinds and seeds of `helpers.kernel.exact` (room kernel). Each is judged
once, and what it infects is noted (`benchmarks.infected`); then those are taken, one after the other, that add the most
for the seconds that they take, until `--most` seconds are used. Printed are the programs, or their names.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.infected import watch
from benchmarks.mutants import ROOT

TIMES = 3
"""At least this many of the chosen ones infect a mutant, where there are as many."""

EXTRA = ("fence.sc.<cta|gpu>;", "bar.sync 0;", "bar.<sync|arrive> 1, 64;", "@%c exit;", "@%c bar.sync 0;")
CONDITION = " ld.relaxed.gpu.global.u32 %cc, [f]; setp.eq.u32 %c, %cc, 0;"


@dataclass(frozen=True, slots=True)
class Tried:
    """A program that was judged: what it is, its seconds, and the numbers of the mutants that it infects."""

    text: str
    seconds: float
    infects: frozenset[int]


def program(seed: int) -> str:
    """Two or three threads with lines of one theme, some under a condition that the execution decides."""
    from helpers.strategies import kinds, wide

    roll = random.Random(seed)
    where, themes = roll.choice(((wide, wide.THEMES), (kinds, kinds.KINDS)))
    theme = roll.choice(list(themes))
    lines = [*themes[theme], *(EXTRA if roll.random() < 0.4 else ())]
    guarded = roll.choice((0.0, 0.3, 0.8)) if roll.random() < 0.4 else 0.0
    many = roll.choice((2, 2, 3))
    bodies = []
    for _ in range(many):
        body = []
        for number in range(roll.randint(1, 6 - many)):
            line = wide.filled(roll.choice(lines), roll.choice, number)
            alone = line.count(";") == 1 and not line.startswith(("@", "W", "L", "S"))
            body.append(f"@{roll.choice(('', '!'))}%c {line}" if alone and roll.random() < guarded else line)
        bodies.append(tuple(body))
    grids = theme == "grids"
    ctas = 1 if grids else 2 if theme in where.PAIRED else roll.choice((1, 2))
    set_up = where.SET_UP + CONDITION
    return wide.Program(ctas, roll.choice((1, 1, 2)), tuple(bodies), where.DECLARATIONS, set_up, grids).text


def programs(count: int, seed: int) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Litmus tests, each with what judges it: true if both engines agree within a small budget."""
    from helpers import agreement
    from hypothesis.errors import UnsatisfiedAssumption

    from memmodel.answer import Budget
    from memmodel.cat import load_model

    agreement.LITTLE = Budget(effort=250_000)
    model = load_model("ptx-9.4")

    def judged(text: str) -> bool:
        try:
            agreement.agree(text, model)
        except UnsatisfiedAssumption:
            return False
        except Exception as error:  # a mutated expression had an effect; the exact run decides
            print(f"not chosen: {type(error).__name__}", file=sys.stderr)
            return False
        return True

    for number in range(count):
        text = program(seed * 1_000_000 + number)
        yield text, lambda text=text: judged(text)


def shipped(count: int, seed: int) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Questions of the smallest shipped tests, each with what judges it: true if both engines answer as expected."""
    from helpers import corpus

    corpus.SMALL, corpus.EFFORT = 3000, 200_000
    files = sorted((ROOT / "litmus").rglob("*.litmus"), key=lambda path: path.stat().st_size)[:count]
    random.Random(seed).shuffle(files)

    def judged(case: corpus.Case) -> bool:
        try:
            return corpus.check_case(case)
        except Exception as error:
            print(f"not chosen: {case}: {type(error).__name__}", file=sys.stderr)
            return False

    for path in files:
        for case in corpus.cases([str(path.relative_to(ROOT / "litmus").with_suffix(""))]):
            if case.model == corpus.DEFAULT:
                yield f"{case.path} {case.number}", lambda case=case: judged(case)


def kernels(count: int, seed: int) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Kinds and seeds of small kernels, each with what judges it."""
    from helpers.kernel import exact

    folder = Path(tempfile.mkdtemp())
    exact.roundtrip.SECONDS = 5.0
    for number, kind in exact.tests(count, seed):
        judged = lambda kind=kind, number=number: exact.judged(exact.KINDS[kind](number), folder)  # noqa: E731
        yield f"{kind} {number}", lambda judged=judged: judged().answer in ("same", "fewer")


ENGINES = ("encode", "events", "concrete", "enumeration")

KINDS = {
    "programs": (programs, ENGINES),
    "shipped": (shipped, ENGINES),
    "kernels": (kernels, ("kernel",)),
}


def chosen(tried: list[Tried], most: float) -> Iterator[Tried]:
    """Those that add the most for their seconds, as long as there are seconds left."""
    covered: Counter[int] = Counter()
    left = list(tried)
    while left:
        best = max(left, key=lambda item: _adds(item, covered) / (item.seconds + 0.03))
        most -= best.seconds
        if most < 0 or not _adds(best, covered):
            return
        left.remove(best)
        covered.update(best.infects)
        yield best


def _adds(tried: Tried, covered: Counter[int]) -> float:
    return sum(0.5 ** covered[number] for number in tried.infects if covered[number] < TIMES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--most", type=float, default=4)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    made, rooms = KINDS[options.kind]
    infection, tried, until = watch(rooms), list[Tried](), time.monotonic() + options.seconds
    for text, judged in made(options.count, options.seed):
        if time.monotonic() > until:
            break
        infection.clear()
        began = time.process_time()
        if judged():
            tried.append(Tried(text, time.process_time() - began, frozenset(infection.seen)))
    kept = list(chosen(tried, options.most))
    print("\n// ----\n".join(item.text for item in kept))
    reached, of_kept = (frozenset[int]().union(*(item.infects for item in part)) for part in (tried, kept))
    numbers = len(kept), len(tried), len(of_kept), len(reached), len(infection.mutants)
    print(
        "{} of {} are chosen; they infect {} of {} mutants that are infected, of {}".format(*numbers), file=sys.stderr
    )


if __name__ == "__main__":
    main()
