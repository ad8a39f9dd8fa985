"""Small tests judged twice, by the thousand: as kernels, and by the exact engines.

In `tests`, `python -m helpers.kernel.exact --count 5000 --seed 1 [--kind KIND] [--seconds 3000]` prints each difference
as the smallest test that shows it, then the figures. `--number N` judges the one test of this number. The same seed
makes the same tests.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as from_seed
from hypothesis import strategies as st

from helpers.kernel import one_text, random_waits, roundtrip
from helpers.kernel.random_clusters import cluster
from helpers.kernel.random_fences import fences
from helpers.kernel.random_mutants import mutant, unwritten
from helpers.kernel.random_one_text import one_text as kernel
from helpers.kernel.random_rounds import lock, loop
from helpers.kernel.random_seldom import seldom
from helpers.kernel.random_tests import litmus
from helpers.strategies import asynchronous, kinds, wide
from memmodel.isa.lower import read_instruction
from memmodel.isa.rows.row import Effect
from memmodel.isa.table import TABLE
from memmodel.litmus import parse_litmus
from memmodel.litmus.syntax import Instruction
from memmodel.source import Source

BATCH = 40
"""So many tests of Hypothesis come from one seed."""


# ---- where tests come from -------------------------------------------------------------------------------------------


@cache
def _drawn(name: str, seed: int) -> tuple[str, ...]:
    """Texts of programs of a strategy."""
    made: list[str] = []

    @from_seed(seed)
    @settings(
        max_examples=BATCH,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=False,
    )
    @given(STRATEGIES[name])
    def collect(program: Any) -> None:
        made.append(program.text)

    collect()
    return tuple(made)


STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "wide": wide.programs(),
    "more": kinds.kinds(),
    "handed": asynchronous.programs(),
}


def _of_strategy(name: str) -> Callable[[int], str]:
    def made(seed: int) -> str:
        texts = _drawn(name, seed // BATCH)
        return texts[seed % len(texts)]

    return made


KINDS: dict[str, Callable[[int], str]] = {
    "mutant": mutant,
    "mixed": litmus,
    **random_waits.KINDS,
    "later": random_waits.later,
    "odd": random_waits.odd,
    "lock": lock,
    "loop": loop,
    "seldom": seldom,
    "cluster": cluster,
    "fences": fences,
    "one-text": kernel,
    **{name: _of_strategy(name) for name in STRATEGIES},
}
"""Kinds of tests: name -> the test of a seed."""

SHARES = ("mutant",) * 6 + ("one-text",) * 5 + tuple(name for name in KINDS if name != "mutant")
"""The kind of each test in turn."""


def tests(count: int, seed: int, kind: str | None = None) -> Iterator[tuple[int, str]]:
    """Kinds and seeds of so many tests."""
    for number in range(count):
        yield seed * 1_000_000 + number, kind or SHARES[number % len(SHARES)]


# ---- judging ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """What was found on both roads. `answer`: `same`; `fewer` kinds of finding in the kernel, but some; `other` kinds;
    `wrong clean`; `false alarm`; `explained`; `not run`; `error`.
    """

    answer: str
    said: str


WRONG = ("wrong clean", "false alarm", "error")
"""Answers that nothing explains. Both roads have findings in all others that differ."""

ANY = (*WRONG, "other")
LANES = r"\b(?:vote|match|redux|shfl|elect|activemask|bar\.warp)"
EXPLAINED = (
    (r"\baliases\b", ANY, "aliases are one address in PTX"),
    (r"try_cancel", ANY, "a launch of one cluster has no other one to cancel"),
    (r"cta_group::2", ANY, "the pair of CTAs is not launched"),
    (r"\.cas\.", ("false alarm",), "a cas that succeeds in no execution is taken to write"),
    (r"^\.tensor.*(?s:.*)\bbar", ("false alarm",), "a barrier of the kernel waits for warps that have no thread"),
    (LANES, ("other", "false alarm"), "the thread is lane 0, and a mask that leaves it out is undefined"),
    (
        r"\b(?:mapa|getctarank)\b",
        ("false alarm",),
        "an address that is no shared one has no rank, and nothing asks for it",
    ),
    (r"\bwgmma\b", ("false alarm",), "all warps of a warpgroup read what its first one wrote"),
    (
        r"\bld\.\S+ %\w+, \[(\w+)\];(?s:.*)tcgen05\.alloc\S* \[\1\]",
        ("wrong clean",),
        "what is read before tcgen05.alloc writes its address is 0, as the first column of the kernel",
    ),
    (
        r"@!?%\w+ ld\.\S+ (%\w+), \[\w+\];(?s:.*)tcgen05\.\S+ \1\b",
        ("wrong clean",),
        "a register that a skipped load leaves is 0, as the first column of the kernel",
    ),
    (r"%idesc", ("false alarm", "other"), "an instruction descriptor that nothing writes describes no shape"),
)
"""What makes the emitted kernel another program than the test: a pattern, answers that it explains, the reason."""

BARRIER = r"\bbar(?:rier)?(?:\.cta)?\.(?:sync|red)\b"
_END = re.compile(r"^(?!\s*(?:exit|ret);)(.*)\n\}$", re.M)


def ended(text: str) -> str:
    """A test in one CTA with an exit at the end of each thread: every thread of a kernel ends so, and no barrier waits
    for it then. Where there are several CTAs, what is emitted keeps all of them until the last one ends.
    """
    return _END.sub(r"\1\n    exit;\n}", text) if one_cta(text) else text


def one_cta(text: str) -> bool:
    """True if all threads of a test are in one CTA."""
    return len(set(re.findall(r"^thread [^{]*\bcta (\d+)", text, re.M))) == 1


def judged(text: str, folder: Path) -> Compared:
    """Judge a test on both roads."""
    path, together = folder / "random.litmus", one_text.OneText.written(text)
    try:
        if together:
            answer, said = one_text.compared(text, path)
        else:
            path.write_text(ended(text), encoding="utf-8")
            answer, said = roundtrip.compared(path)
    except Exception as error:
        return Compared("error", f"{type(error).__name__}: {error}"[:300])
    if answer == "differs":
        said = said.rpartition("; ")[0]
        mine, theirs = (part.partition(": ")[2] for part in said.split("; "))
        answer = "wrong clean" if mine == "clean" else "false alarm" if theirs == "clean" else "other"
        if together:
            return Compared(answer, said)
        for pattern, answers, why in EXPLAINED:
            if answer in answers and re.search(pattern, text, re.M):
                return Compared("explained", why)
        if theirs == "hang" and not one_cta(text) and re.search(BARRIER, text):
            return Compared("explained", "the end of a thread of the kernel is an exit")
        if theirs == "undefined" and not one_cta(text) and re.search(r"\bexit;", text):
            return Compared("explained", "what is emitted keeps all CTAs until the last one ends")
    return Compared(answer, said)


def smaller(text: str, keeps: Callable[[str], bool]) -> str:
    """The smallest text that still has a property: lines of threads and variables are left out while it keeps it."""
    changed = True
    while changed:
        changed = False
        for size in (6, 3, 2, 1):
            at = 1
            while at < len(lines := text.split("\n")):
                part = lines[at : at + size]
                rest = [*lines[:at], *lines[at + size :]]
                whole = all(not line.startswith(("thread", "}", "exists")) for line in part)
                if whole and any(map(str.strip, part)) and keeps(shorter := "\n".join(rest)):
                    text, changed = shorter, True
                else:
                    at += 1
        for block in re.findall(r"^thread [^{]*\{.*?^\}\n", text, re.M | re.S):
            if keeps(shorter := text.replace(block, "")):
                text, changed = shorter, True
    return re.sub(r"\n\n+", "\n", text)


# ---- figures ---------------------------------------------------------------------------------------------------------


@dataclass
class Figures:
    """What a run has seen so far."""

    answers: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    heads: Counter[str] = field(default_factory=Counter)
    """Tests on which the roads agreed or differed that have an instruction of a row."""

    def add(self, kind: str, text: str, compared: Compared) -> None:
        """Count one test."""
        answer = compared.answer
        if answer == "same":
            answer = "same, clean" if compared.said == "clean" else "same, with findings"
        self.answers[answer] += 1
        self.by_kind[f"{kind}: {compared.answer}"] += 1
        if compared.answer == "not run":
            self.reasons[re.sub(r"[\[%]\S+|\d+", "…", compared.said)[:100]] += 1
        elif compared.answer not in ("error", "explained"):
            self.heads.update(heads(text))


def heads(text: str) -> set[str]:
    """The rows of the instructions of a test, by their first heads."""
    if one_text.OneText.written(text):
        text = one_text.OneText.of(text).litmus()
    test = parse_litmus(Source("t", text))
    return {
        read_instruction(item, test).row.heads[0]
        for thread in test.threads
        for item in thread.body
        if isinstance(item, Instruction)
    }


def uncovered(figures: Figures) -> list[str]:
    """Heads of rows that touch memory or synchronize and that no test had."""
    told = (Effect.MEMORY, Effect.SYNCHRONIZES, Effect.ASYNCHRONOUS)
    return sorted(row.heads[0] for row in TABLE if row.effect in told and row.heads[0] not in figures.heads)


def _alike(compared: Compared, read: set[tuple[str, str]], folder: Path, text: str) -> bool:
    """True if a text is judged like this, and reads no other register that nothing writes."""
    return unwritten(text) <= read and judged(text, folder) == compared


def run(
    count: int, seed: int, kind: str | None = None, seconds: float = 1e9, say: Callable[[str], None] = print
) -> tuple[Figures, int]:
    """Judge so many tests, or as many as there is time for; how many differ without an explanation."""
    figures, wrong, began = Figures(), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        for number, name in tests(count, seed, kind):
            if time.monotonic() - began > seconds:
                break
            if sum(figures.answers.values()) % 500 == 499:
                say(f"so far: {dict(figures.answers.most_common())}")
            text = KINDS[name](number)
            compared = judged(text, folder)
            figures.add(name, text, compared)
            if compared.answer in WRONG:
                wrong += 1
                least = smaller(text, partial(_alike, compared, unwritten(text), folder))
                say(f"--- {name} {number}: {compared.answer}: {compared.said}\n{least}")
    return figures, wrong


def main() -> int:
    """Print the differences and the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--number", type=int)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    roundtrip.SECONDS = 5.0
    if given.number is not None:
        text = KINDS[given.kind or "mutant"](given.number)
        with tempfile.TemporaryDirectory() as home:
            print(text, judged(text, Path(home)), sep="\n")
        return 0
    figures, wrong = run(given.count, given.seed, given.kind, given.seconds, lambda said: print(said, flush=True))
    total = sum(figures.answers.values())
    print(f"{total} tests, {wrong} differ: {dict(figures.answers.most_common())}")
    for title, counts in (("by kind", figures.by_kind), ("not run", figures.reasons), ("rows", figures.heads)):
        print(f"{title}:", ", ".join(f"{name} {number}" for name, number in counts.most_common(60)))
    print("no test has:", ", ".join(uncovered(figures)))
    if given.json:
        given.json.write_text(json.dumps({name: dict(value) for name, value in vars(figures).items()}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
