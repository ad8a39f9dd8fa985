"""Where the shipped models and the shipped litmus tests lie, and where the program keeps what it can make again.

In: nothing. Out: directories, and the name of the default model. In a checkout the shipped files lie beside the package
(`axioms/`, `litmus/`); in an installed wheel inside it (`memmodel/axioms`, `memmodel/suite_files`), where
`pyproject.toml` puts them. MEMMODEL_CACHE names the folder of what is kept; nothing is kept if it is `off` or empty.
MEMMODEL_MODELS names another one for models.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

DEFAULT_MODEL = "ptx-9.4"
"""The default model: that of the newest PTX ISA."""

JOINED = "+"
"""Between the names of a model that is made of several (`cat.composed`)."""

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


def is_shipped(name: str) -> bool:
    """True for the name of a shipped model or reading."""
    if name.endswith(".cat") or "\0" in name:
        return False
    folder = os.path.realpath(axioms_dir())
    path = os.path.realpath(os.path.join(folder, f"{name}.cat"))
    return path.startswith(folder + os.sep) and os.path.isfile(path)


def base_of(files: Sequence[str], text: str) -> str | None:
    """The shipped model that a model derives from: the first whose file it is or includes, or of which it includes a
    part; else the one that its own file is called after."""
    home = os.path.realpath(axioms_dir())
    for file in files:
        inside = os.path.relpath(os.path.realpath(file), home)
        if inside == "prelude.cat" or inside.startswith(("..", "library", "names")):
            continue
        if inside.startswith("readings" + os.sep):
            return inside.removesuffix(".cat").replace(os.sep, "/")
        return inside.split(os.sep)[0].removesuffix(".cat")
    stem = os.path.basename(text).removesuffix(".cat")
    return stem if os.path.isfile(os.path.join(home, f"{stem}.cat")) else None


def cache_dir() -> Path | None:
    """The folder that MEMMODEL_CACHE names, else the person's cache folder for programs; None: nothing is kept."""
    folder = os.environ.get("MEMMODEL_CACHE")
    if folder is not None:
        return Path(folder) if folder not in ("", "off") else None
    if sys.platform == "linux":  # as platformdirs says, whose import takes longer than a model does
        base = os.environ.get("XDG_CACHE_HOME", "").strip()
        return Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "memmodel"
    from platformdirs import user_cache_path

    return user_cache_path("memmodel", appauthor=False)


def models_dir() -> Path | None:
    """Where models are kept: in the folder that MEMMODEL_MODELS names, else in `cache_dir`."""
    folder = os.environ.get("MEMMODEL_MODELS")
    return Path(folder) if folder else cache_dir()


def is_file(path: Path) -> bool:
    """True if there is such a file; False for names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def look(include: str, places: Sequence[Path], has: Callable[[Path], bool] = is_file) -> Path | None:
    """The first place that has the file which an include of a model names."""
    if not include or "\0" in include:
        return None
    return next((place / include for place in places if has(place / include)), None)
