"""Is all that the package imports installed with it? What an extra brings is asked for by name where it is missing."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
INSTALLED_AS = {"z3": "z3-solver", "pysat": "python-sat"}
EXTRAS = {"distributed", "pygls", "lsprotocol", "pytest", "triton"}
"""What some commands need beside; they say so where it is not there."""


def imported(place: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(place.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def test_what_is_imported_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    given = {one.split(">")[0].split("[")[0].strip() for one in project["dependencies"]}
    found = {
        name.split(".")[0] for place in (ROOT / "memmodel").rglob("*.py") for name in imported(place)
    } - set(sys.stdlib_module_names) - {"memmodel"}  # fmt: skip
    assert {INSTALLED_AS.get(one, one) for one in found} - EXTRAS == given
