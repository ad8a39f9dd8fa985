"""docs/architecture.md: its picture shows the imports of today, its two journeys are those of the program.

`MEMMODEL_REWRITE=1 pytest tests/docs/test_architecture.py` draws the picture anew.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from helpers.architecture import picture
from helpers.places import ROOT
from test_house import ROOMS, imports, room_of

from memmodel import api
from memmodel.kernel.check.conductor import check_kernel
from memmodel.kernel.output.text import lines
from memmodel.report.text import explain

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "img" / "architecture" / "rooms.svg"
FIRST = ROOT / "docs" / "examples" / "first"
ROOM = re.compile(r"^\*\*`([\w.]+)`\*\*|^## (.*)$", re.MULTILINE)
STEP = re.compile(r"^\d+\. `([\w.]+)`", re.MULTILINE)


def groups() -> dict[str, str]:
    """The heading under which each room stands."""
    heading, under = "", {}
    for room, title in ROOM.findall(PAGE.read_text(encoding="utf-8")):
        heading = title or heading
        if room:
            under[room] = heading
    return under


def test_the_picture_shows_the_imports_of_today() -> None:
    of_rooms = {room: set[str]() for room in ROOMS}
    for module, others in imports().items():
        if room_of(module) in of_rooms:
            of_rooms[room_of(module)] |= {room_of(other) for other in others} & set(ROOMS) - {room_of(module)}
    drawn = picture(ROOMS, {room: frozenset(others) for room, others in of_rooms.items()}, groups())
    if os.environ.get("MEMMODEL_REWRITE") == "1":
        PICTURE.write_text(drawn, encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == drawn, "MEMMODEL_REWRITE=1 draws it anew"


def first_calls(journey: Callable[[], object]) -> list[str]:
    """The functions of memmodel in the order of their first calls."""
    called: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("memmodel."):
            called[f"{module.removeprefix('memmodel.')}.{frame.f_code.co_qualname}"] = None

    sys.setprofile(note)
    try:
        journey()
    finally:
        sys.setprofile(None)
    return list(called)


def litmus_test() -> None:
    explain(api.check(ROOT / "litmus/async/proxy/A2.litmus", engine="z3"))


def kernel() -> None:
    lines(check_kernel(FIRST / "reverse.ptx", FIRST / "reverse.launch.json"))


@pytest.mark.parametrize(("title", "journey"), [("One litmus test", litmus_test), ("One kernel", kernel)])
def test_the_functions_of_a_journey_are_called_in_the_order_of_the_page(
    title: str, journey: Callable[[], object]
) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"## {title} on its way", 1)[1].split("\n## ", 1)[0]
    steps = [name for name in STEP.findall(section) if name not in ROOMS]
    assert len(steps) >= 5
    called = first_calls(journey)
    assert [name for name in steps if name not in called] == []
    assert steps == sorted(steps, key=called.index)
