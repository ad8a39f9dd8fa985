"""Choices that only some schedule meets: those on which the launch depends, alone or together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from helpers.kernel.samples import entry, launch, module

from memmodel.cat.load import load_model
from memmodel.kernel.check import choices
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.choices import OpenChoices, with_more_choices
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.trace.launch import ChoiceKind, LaunchTrace


@pytest.mark.parametrize(
    ("refused", "chosen"),
    [
        ([], set()),  # nothing depends on them
        ([{2}], {2}),
        ([{2, 3}], {2, 3, 4}),  # none matters alone: all of them
        ([{2}, {3, 4}], {2}),
        ([{1, 2}], {2}),  # with one that was known before, whose result is unknown
    ],
)
def test_choices_that_a_schedule_meets_first(refused: list[set[int]], chosen: set[int]) -> None:
    """`refused`: sets of results of which one at least has to be known."""
    case = cast(
        KernelCase,
        SimpleNamespace(
            refusal=lambda schedule: next((f"depends on {each}" for each in refused if each <= schedule.opaque), None)
        ),
    )
    trace = cast(LaunchTrace, SimpleNamespace(choices={(ChoiceKind.ATOMIC, number): None for number in (1, 2, 3, 4)}))
    before = OpenChoices(Schedule(), trace, (), frozenset({7}), frozenset(), frozenset({1}), trace)
    after = with_more_choices(case, before, Schedule(opaque=frozenset({1})), trace)
    assert after.known == {1, 2, 3, 4} and after.chosen == {7, *chosen}
    assert with_more_choices(case, after, Schedule(), trace) == after  # none is new


@pytest.mark.parametrize("part", [False, True])
def test_sums_in_global_memory_are_known_where_all_ctas_are_run(monkeypatch: pytest.MonkeyPatch, *, part: bool) -> None:
    """Of a part, others may add to them."""
    wholes: list[bool] = []

    def noted(*_: object, whole: bool) -> frozenset[int]:
        wholes.append(whole)
        return frozenset()

    monkeypatch.setattr(choices, "order_free_atomics", noted)
    read = module("red.relaxed.gpu.global.add.u32 [%d0], 1;\nld.relaxed.gpu.global.u32 %r8, [%d0];")
    options = CheckOptions(ctas=(0, 1) if part else (), widens=False)
    judge(read, entry(read), launch(threads=2, ctas=3, init="zero"), load_model("ptx-9.4"), options)
    assert wholes and set(wholes) == {not part}
