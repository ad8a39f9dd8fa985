"""Where the shipped models and the shipped litmus tests lie.

In: nothing. Out: directories. In a checkout they lie beside the package (`axioms/`, `litmus/`); in an installed wheel
inside it (`memmodel/axioms`, `memmodel/suite_files`), where `pyproject.toml` puts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def axioms_dir() -> Path:
    """The directory of the shipped `.cat` models."""
    return _beside_or_inside("axioms", "axioms")


def suite_dir() -> Path:
    """The directory of the shipped `.litmus` tests."""
    return _beside_or_inside("litmus", "suite_files")


def _beside_or_inside(beside: str, inside: str) -> Path:
    # A checkout is recognised by its pyproject.toml, so that a stray `litmus/` in site-packages is never taken.
    if (_PACKAGE.parent / "pyproject.toml").is_file():
        return _PACKAGE.parent / beside
    return _PACKAGE / inside


def is_file(path: Path) -> bool:
    """Is there such a file? False for names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def look(include: str, places: Sequence[Path], has: Callable[[Path], bool] = is_file) -> Path | None:
    """The first place that has the file which an include of a model names."""
    if not include or "\0" in include:
        return None
    return next((place / include for place in places if has(place / include)), None)
