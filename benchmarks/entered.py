"""A plugin of pytest: which functions of memmodel each test enters, and how long it takes.

    python -m pytest -p benchmarks.entered --entered FILE [TEST …]
    python -m pytest -p benchmarks.entered --only FILE [TEST …]

The first writes a line of JSON for each test that passes: its name, its seconds, and the functions, each as
`file:qualified name`. What a test needs and an earlier one has computed counts for the earlier one. The second runs the
tests that the file names, one a line, in this order.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

PACKAGE = str(Path(__file__).resolve().parent.parent / "memmodel") + "/"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--entered", default=None, help="write here which functions each test enters")
    parser.addoption("--only", default=None, help="a file with the names of the tests to run, in their order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--only") is None:
        return
    names = Path(config.getoption("--only")).read_text(encoding="utf-8").splitlines()
    collected = {item.nodeid: item for item in items}
    items[:] = [collected[name] for name in names if name in collected]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    file = item.config.getoption("--entered")
    if file is None:
        return (yield)
    entered: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        entered.add(frame.f_code)

    started = time.process_time(), time.monotonic()
    failed = item.session.testsfailed
    sys.settrace(note)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        # Children take time that is not of this process; the clock goes on while others have the machine.
        seconds = max(time.process_time() - started[0], (time.monotonic() - started[1]) / 3)
        functions = {
            f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}"
            for code in entered
            if code.co_filename.startswith(PACKAGE)
        }
        record = {"test": item.nodeid, "seconds": round(seconds, 3), "functions": sorted(functions)}
        if item.session.testsfailed == failed:
            with open(file, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(record) + "\n")
