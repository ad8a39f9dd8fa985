"""What lies on cycles is freed when the process has grown, however few objects it is."""

from __future__ import annotations

import gc
import weakref

import pytest

from memmodel.limits import collect_what_has_grown, garbage


class Cycle:
    def __init__(self) -> None:
        self.me = self


@pytest.mark.parametrize("grown", [0, garbage.GROWTH - 1, garbage.GROWTH + 1])
def test_cycles_are_freed_when_the_process_has_grown(grown: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_AFTER_LAST_LOOK", [1000])
    monkeypatch.setattr(garbage, "memory_in_use", lambda: 1000 + grown)
    gc.disable()
    try:
        cycle = weakref.ref(Cycle())
        collect_what_has_grown()
        assert (cycle() is None) is (grown > garbage.GROWTH)
    finally:
        gc.enable()
