"""Models that were loaded before: in this process, and on disk for the next ones; and texts that are made of the
shipped models.

In: how to load a model, or to make a text. Out: Model, or the text. Settled here: a model is taken from before only if
every file that it was read from has the text it had then, every include finds the same file, and the program that
resolved it is the same; a text if no shipped file has another size or time. What is on disk lies in the person's own
cache folder, holds nothing but a model or such a text, and is ignored where it cannot be read. `keep_models(False)`
turns that off.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from memmodel.base.resources import axioms_dir, look, models_dir
from memmodel.cat.syntax import Model
from memmodel.errors import InputError
from memmodel.source import Source, read_bytes

MOST = 200
"""Models on disk; the oldest make room for new ones."""

LARGEST = 64_000_000
"""Bytes of a file on disk; one that is larger is not what was written."""

SUFFIX = ".model"

_ON_DISK = [True]


def keep_models(wanted: bool) -> None:
    """From now on, look models up on disk and keep them there, or do neither."""
    _ON_DISK[0] = wanted


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, the files that it was read from with their text, and what each include was found to mean."""

    model: Model
    files: tuple[tuple[Path, str], ...]
    includes: tuple[tuple[str, tuple[Path, ...], Path], ...]

    def holds(self) -> bool:
        """True if loading it again would give the same."""
        try:
            return all(look(include, places) == path for include, places, path in self.includes) and all(
                Source.read(path).text == text for path, text in self.files
            )
        except InputError:
            return False


_LOADED: dict[tuple[object, ...], LoadedModel] = {}


def kept(name: str, path: Path, allowed: Sequence[Path], load: Callable[[], LoadedModel]) -> LoadedModel:
    """The model loaded before, if no file of it has changed since. `name`, `path`: what it was asked for by."""
    key = (name, str(path), str(path.resolve()), *map(str, allowed))
    known = _LOADED.get(key)
    if known is None or not known.holds():
        entry = _entry(key, anywhere=path.is_absolute() and not allowed)
        known = _from_disk(entry)
        if known is None or not known.holds():
            known = load()
            _to_disk(entry, known)
        _LOADED[key] = known
    return known


def kept_text(name: str, make: Callable[[], str]) -> str:
    """The text of that name that was made of the shipped models before, if neither they nor the program have changed.

    `make`: makes it anew, on one line.
    """
    entry = _entry_of("\0".join([_program(), _shipped(), name]))
    if entry is None:
        return make()
    head = entry.text.encode("utf-8", "surrogatepass") + b"\n"
    data = _bytes_of(entry)
    if data is not None and data.startswith(head):
        return data[len(head) :].decode("utf-8", "replace")
    text = make()
    _write(entry, head + text.encode())
    return text


# ---- on disk ---------------------------------------------------------------------------------------------------------


def forget_models() -> None:
    """Delete what is on disk. Raises OSError."""
    folder = models_dir()
    for path in folder.glob(f"*{SUFFIX}") if folder is not None else ():
        path.unlink(missing_ok=True)


@cache
def _program() -> str:
    """What resolved a model: this Python and these files of the program."""
    package = Path(__file__).resolve().parent.parent
    marks = [sys.version, str(package)]
    for folder in (
        package,
        package / "base",
        *(package / "cat" / room for room in ("", "text", "interpret", "evaluate")),
    ):
        marks += _files(folder, ".py")
    return "\n".join(marks)


def _shipped() -> str:
    """The shipped models, as `_program` says."""
    home = axioms_dir()
    folders = (home, *sorted(folder for folder in home.iterdir() if folder.is_dir()))
    return "\n".join([str(home), *(mark for folder in folders for mark in _files(folder, ".cat"))])


def _files(folder: Path, suffix: str) -> list[str]:
    """Name, size and time of the files of a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        files = [entry for entry in entries if entry.name.endswith(suffix)]
        return sorted(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
    return []


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file on disk, and all that it was made for: another model whose file has the same name is not this one."""

    path: Path
    text: str


def _entry(key: tuple[object, ...], *, anywhere: bool) -> _Entry | None:
    """`anywhere`: the model is the same in whatever folder the program runs."""
    return _entry_of("\0".join([_program(), "" if anywhere else os.getcwd(), *map(str, key)]))


def _entry_of(text: str) -> _Entry | None:
    folder = models_dir() if _ON_DISK[0] else None
    if folder is None:
        return None
    from zlib import crc32

    data = text.encode("utf-8", "surrogatepass")
    return _Entry(folder / f"{crc32(data):08x}{crc32(data, 1):08x}{SUFFIX}", text)


def _from_disk(entry: _Entry | None) -> LoadedModel | None:
    data = None if entry is None else _bytes_of(entry)
    if entry is None or data is None:
        return None
    import pickle

    try:
        content = _read(data)
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, LookupError, ImportError):
        return None
    except (MemoryError, RecursionError):
        return None
    match content:
        case (entry.text, LoadedModel() as loaded):
            return loaded
    return None


def _bytes_of(entry: _Entry) -> bytes | None:
    """What a file on disk has, if it is this person's own."""
    with suppress(OSError, InputError):
        if not hasattr(os, "getuid") or os.stat(entry.path).st_uid == os.getuid():
            data = read_bytes(entry.path, LARGEST)
            return data if len(data) <= LARGEST else None
    return None


def _read(data: bytes) -> object:
    """The object of a pickle that has nothing but the parts of a model. Raises UnpicklingError."""
    import io
    import pickle
    from pathlib import PosixPath, WindowsPath

    from memmodel.base.kinds import Kind
    from memmodel.cat import syntax
    from memmodel.source import Span

    nodes = (*(getattr(syntax, name) for name in syntax.NODES), LoadedModel, Kind, Source, Span, PosixPath, WindowsPath)
    known: dict[tuple[str, str], type] = {(node.__module__, node.__qualname__): node for node in nodes}

    class ModelReader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> type:
            """A file can ask for nothing but the parts of a model."""
            if (module, name) not in known:
                raise pickle.UnpicklingError(name)
            return known[module, name]

    return ModelReader(io.BytesIO(data)).load()


def _to_disk(entry: _Entry | None, loaded: LoadedModel) -> None:
    """Keep a model; without room or right to, nothing is kept."""
    if entry is None:
        return
    import io
    import pickle

    class ModelWriter(pickle.Pickler):
        def reducer_override(self, node: object) -> Any:
            """A node as a call of its class, which is read in half the time of a frozen object that is filled."""
            if isinstance(node, Enum):  # by its value: Python 3.11.2 would write a call of `getattr`
                return type(node), (node.value,)
            if is_dataclass(node) and not isinstance(node, type):
                return type(node), tuple(getattr(node, each.name) for each in fields(node))
            return NotImplemented

    data = io.BytesIO()
    with suppress(RecursionError, MemoryError, pickle.PicklingError):
        ModelWriter(data, protocol=5).dump((entry.text, loaded))
        _write(entry, data.getvalue())


def _write(entry: _Entry, data: bytes) -> None:
    """Keep a file; without room or right to, nothing is kept."""
    import tempfile

    with suppress(OSError):
        entry.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        older = sorted(entry.path.parent.glob(f"*{SUFFIX}"), key=os.path.getmtime)
        for path in older[: max(0, len(older) + 1 - MOST)]:
            path.unlink(missing_ok=True)
        number, beside = tempfile.mkstemp(suffix=".part", dir=entry.path.parent)
        try:
            with os.fdopen(number, "wb") as handle:
                handle.write(data)
            os.replace(beside, entry.path)
        except OSError:
            os.unlink(beside)
