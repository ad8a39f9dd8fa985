"""`[tool.memmodel]` in the pyproject.toml of the folder that a command runs in, or of one above it.

In: nothing. Out: what options are where the command line does not say. Settled here: which keys there are. Paths are
relative to the file that they stand in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from memmodel.base.resources import DEFAULT_MODEL, is_shipped
from memmodel.errors import InputError, suggestion
from memmodel.source import MAX_BYTES, read_bytes

FILE = "pyproject.toml"

_OPTIONS: dict[str, tuple[type | tuple[type, ...], tuple[str, ...]]] = {
    "model": (str, ("check", "outcomes", "draw")),
    "engine": (str, ("check", "outcomes", "draw", "suite")),
    "bound": (int, ("check", "outcomes", "draw", "suite")),
    "budget": ((str, int), ("check", "outcomes", "draw", "suite")),
    "timeout": ((int, float), ("check", "outcomes", "draw", "suite")),
    "memory": ((str, int), ("check", "outcomes", "draw", "suite")),
    "suite": (list, ("suite",)),
    "readings": (list, ("suite",)),
}
"""Key -> what its value is, and the commands whose default it is."""

_PARAMETER = {"suite": "paths", "readings": "under"}
"""The parameter that a key stands for, where its name is another."""

_SEVERAL = {"check"}
"""Commands whose --model may be repeated."""


def defaults() -> Mapping[str, Mapping[str, object]]:
    """Parameter values for each command, from the project of the current folder. Raises InputError with the key that is
    wrong.
    """
    path = _find(Path.cwd())
    if path is None:
        return {}
    values: dict[str, dict[str, object]] = {}
    for key, value in _table(path).items():
        if key not in _OPTIONS:
            hint = suggestion(key, _OPTIONS) or f"known: {', '.join(_OPTIONS)}"
            raise InputError(f"{path}: [tool.memmodel] has no key `{key[:80]}`", hint=hint)
        kinds, commands = _OPTIONS[key]
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise InputError(f"{path}: [tool.memmodel] {key} has a value of another kind", hint=_EXAMPLES[key])
        for command in commands:
            default = _beside(path, key, value)
            if key == "model" and command in _SEVERAL:
                default = [default]
            values.setdefault(command, {})[_PARAMETER.get(key, key)] = default
    return values


_EXAMPLES = {
    "model": f'model = "{DEFAULT_MODEL}"',
    "engine": 'engine = "auto"',
    "bound": "bound = 3",
    "budget": 'budget = "100M"',
    "timeout": "timeout = 60",
    "memory": 'memory = "2G"',
    "suite": 'suite = ["litmus"]',
    "readings": 'readings = ["readings/D1-issuer"]',
}


def _beside(path: Path, key: str, value: object) -> object:
    """Paths as seen from where the command runs; everything else as it is. Raises InputError."""
    if key == "suite" and isinstance(value, list):
        return [_inside(path, key, str(place)) for place in value]
    if key == "readings" and isinstance(value, list):
        return [_model(path, key, str(name)) for name in value]
    if key == "model":
        return _model(path, key, str(value))
    if key in ("budget", "memory"):
        return str(value)
    return value


def _model(path: Path, key: str, name: str) -> str:
    """A shipped model or reading by its name, or a cat file of the project. Raises InputError."""
    if name.endswith(".cat"):
        return _inside(path, key, name)
    if not is_shipped(name):
        hint = f"a shipped model such as {DEFAULT_MODEL}, or a .cat file of the project; --model names any other"
        raise InputError(f"{path}: [tool.memmodel] {key}: no model `{name[:80]}` is shipped", hint=hint)
    return name


def _inside(path: Path, key: str, name: str) -> str:
    """A place in the project: a configuration may name no other. Raises InputError."""
    place = path.parent / name
    if "\0" in name or not place.resolve().is_relative_to(path.parent.resolve()):
        hint = "a project names files of its own; the command line names any other"
        raise InputError(f"{path}: [tool.memmodel] {key} lies outside the project", hint=hint)
    return os.path.relpath(place)


def _find(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        if (place / FILE).is_file():
            return place / FILE
    return None


def _table(path: Path) -> dict[str, object]:
    try:
        data = read_bytes(path, MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES:,} bytes")
        text = data.decode("utf-8")
        if "tool.memmodel" not in text:
            return {}
        import tomllib

        whole = tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:  # what is no TOML, and what is no UTF-8, is a ValueError
        raise InputError(f"{path}: cannot be read: {error}") from error
    tools = whole.get("tool", {})
    table = tools.get("memmodel", {}) if isinstance(tools, dict) else {}
    return table if isinstance(table, dict) else {}
