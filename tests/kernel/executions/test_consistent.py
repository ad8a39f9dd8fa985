"""What the orders of writes and the first values of runs are made from, against what is said of them one by one."""

from __future__ import annotations

import random
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.kernel.samples import entry, launch, module

from memmodel.base.labels import Access, Side, side_of
from memmodel.base.rows import closure
from memmodel.kernel.executions.consistent import _unordered_writes, one_place
from memmodel.kernel.executions.decisions import leaves_out
from memmodel.kernel.machine.choices.scripted_reads import NOT_COUNTED
from memmodel.kernel.machine.run import run_launch


class Orders:
    """Events of which some are writes, each at a place."""

    def __init__(self, writes: int, places: list[int]) -> None:
        self._writes, self._places = writes, places

    def set(self, _: str) -> int:
        return self._writes

    def relation(self, _: str) -> list[int]:
        return [sum(1 << n for n, place in enumerate(self._places) if place == mine) for mine in self._places]


@pytest.mark.parametrize("seed", range(8))
def test_the_pairs_of_writes_that_an_order_leaves_open(seed: int) -> None:
    pick = random.Random(seed)
    places = [pick.randrange(2) for _ in range(9)]
    writes = sum(1 << n for n in range(9) if pick.random() < 0.8)
    rows = [0] * 9
    for _ in range(6):
        first, second = sorted(pick.sample(range(9), 2))
        if places[first] == places[second]:
            rows[first] |= 1 << second
    order = closure(rows)
    if pick.random() < 0.5:  # the other way round
        order = [sum(1 << n for n in range(9) if order[n] >> mine & 1) for mine in range(9)]
    wanted = [
        (one, other)
        for one, other in combinations(range(9), 2)
        if writes >> one & 1
        and writes >> other & 1
        and places[one] == places[other]
        and not order[one] >> other & 1
        and not order[other] >> one & 1
    ]
    assert _unordered_writes(Orders(writes, places), order) == wanted  # type: ignore[arg-type]


STRONG = "st.relaxed.gpu.global.u32 [%d0], 1;"
FENCE = "fence.acq_rel.gpu;"
WEAK = "st.global.u32 [%d0], 2;" + FENCE
READ = "ld.relaxed.gpu.global.u32 %r20, [%d0];"


@pytest.mark.parametrize(("body", "one"), [
    (STRONG + READ, True),
    (WEAK + STRONG + READ, True),
    (STRONG + WEAK + READ, False),  # its value may be read, and it comes neither first nor as a strong write
    (STRONG + READ + WEAK, False),
    (WEAK + WEAK + STRONG + READ, False),
    ("st.global.u16 [%d0], 2;" + FENCE + STRONG + READ, False),
    ("st.global.u64 [%d0], 2;" + FENCE + STRONG + READ, True),
    ("st.relaxed.gpu.global.u8 [%d0+3], 1;" + READ, False),
    ("st.relaxed.gpu.global.u8 [%d0+4], 1;" + READ, True),
    (READ + "ld.relaxed.gpu.global.u16 %h1, [%d0];", False),
])  # fmt: skip
def test_where_the_first_value_of_a_word_is_known(body: str, one: bool) -> None:
    read = module(body.replace(";", ";\n"))
    run = run_launch(read, entry(read), launch(1, 1, "zero"))
    (load,) = (it for it in run.threads[0].strong() if side_of(it.label) is Side.READ and it.size == 4)
    assert one_place(run, load) is one


@pytest.mark.parametrize("seed", range(8))
def test_whether_rounds_of_an_instruction_that_decides_were_left_out(seed: int) -> None:
    """Some reads of each instruction and thread are missing, or do not count: only those of what decides matter."""
    pick = random.Random(seed)
    events, missing = list[Any](), set[int]()
    for thread in range(2):
        for at in (3, 5, 8):
            turns = list(range(pick.randint(1, 4)))
            if pick.random() < 0.4:
                turns = [turn + 1 for turn in turns]
                missing.add(at)
            events += [SimpleNamespace(thread=thread, at=at, turn=turn, label=Access(Side.READ)) for turn in turns]
            events += [SimpleNamespace(thread=thread, at=at, turn=9, label=Access(Side.WRITE))]
            events += [SimpleNamespace(thread=thread, at=at, turn=NOT_COUNTED, label=Access(Side.READ))]
    run: Any = SimpleNamespace(
        threads=[SimpleNamespace(events=[it for it in events if it.thread == n]) for n in (0, 1)]
    )
    for deciding in (set(), {3}, {5}, {8}, {3, 5}, {5, 8}):
        reads: Any = [it for it in events if it.at in deciding and it.label.side is Side.READ]
        assert leaves_out(run, reads) is bool(deciding & missing)
