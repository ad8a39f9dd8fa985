"""How many examples generated tests run, and which.

By default few, and the same every time, so that a failure is no matter of luck. `MEMMODEL_EXAMPLES=20` runs 20 times as
many, other ones each time; `MEMMODEL_SEED=7` chooses them, and repeats a run whose last line says so.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterable
from datetime import date
from pathlib import Path
from secrets import randbelow
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

T = TypeVar("T")

TIMES = int(os.environ.get("MEMMODEL_EXAMPLES", "1"))
if TIMES != 1:
    os.environ.setdefault("MEMMODEL_SEED", str(1 + randbelow(10**6)))  # the workers of xdist inherit it
SEED = int(os.environ.get("MEMMODEL_SEED", "0"))
"""0: the same examples every time."""

SAMPLE = os.environ.setdefault("MEMMODEL_SAMPLE", date.today().isoformat())
"""Chooses a sample of what is too much for every run, where each member is known to pass: another one each day; `all`
runs everything, as the night does."""

settings.register_profile(
    "memmodel",
    max_examples=100 * TIMES,
    derandomize=SEED == 0,
    database=None,
    print_blob=False,
    # A busy machine is no reason to fail, and examples that an engine finds too large are dropped.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
settings.load_profile("memmodel")


def examples(count: int) -> settings:
    """Settings of a test of Hypothesis: how many examples it runs by default."""
    return settings(max_examples=count * TIMES)


def seeds(count: int) -> range:
    """Seeds for a test that makes its examples itself, one from each."""
    return range(SEED * 1_000_000, SEED * 1_000_000 + count * TIMES)


def share(cases: Iterable[T], of: int) -> list[T]:
    """One in `of` of the cases of a test that takes long, in their order: others each day, and all of them at night."""
    every = list(cases)
    if SAMPLE == "all" or TIMES != 1:
        return every
    chosen = sorted(random.Random(SAMPLE).sample(range(len(every)), -(-len(every) // of)))
    return [every[number] for number in chosen]


def keep_shares(items: list[pytest.Item], named: Collection[Path]) -> list[pytest.Item]:
    """Take out of `items` what is left for other days. Of the cases of a function with `@pytest.mark.share(of)` one in
    `of` stays; of the functions of a file with `pytestmark = pytest.mark.turns(of)` one in `of` stays, with all its
    cases. Of a file that the command line names, all stay. Returns what was taken out.
    """
    functions: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.path not in named:
            functions.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    files: dict[Path, list[list[pytest.Item]]] = {}
    left = set[pytest.Item]()
    for (path, _), cases in functions.items():
        if (mark := cases[0].get_closest_marker("share")) is not None:
            left |= set(cases) - set(share(cases, *mark.args))
        if cases[0].get_closest_marker("turns") is not None:
            files.setdefault(path, []).append(cases)
    for groups in files.values():
        (mark,) = groups[0][0].iter_markers("turns")
        kept = share(groups, *mark.args)
        left.update(*(cases for cases in groups if cases not in kept))
    items[:] = [item for item in items if item not in left]
    return list(left)


def each_seed(count: int) -> Any:
    """Run a test once for each of `seeds`, as its parameter `seed`."""
    return pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.generated) for seed in seeds(count)])


def generator(key: int | str) -> random.Random:
    """Random numbers for one test; the key keeps those of different tests apart."""
    return random.Random(key if SEED == 0 else f"{SEED}/{key}")
