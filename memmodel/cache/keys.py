"""What a verdict depends on, as short texts: this program, a test, a model with all that it includes, options.

In: names, texts, files. Out: digests. Settled here: the program is its version, its own source, Python and the solver's
library, so that a change of any of them finds nothing that was kept before. Of a budget only the effort counts: answers
that ran out of time or memory are not kept, and all others are the same whatever the clock says.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import memmodel
from memmodel.base.resources import axioms_dir, look
from memmodel.errors import InputError
from memmodel.source import Source

if TYPE_CHECKING:
    from memmodel.cache.store import Store
    from memmodel.cat.kept import LoadedModel
    from memmodel.cat.syntax import Model

_HOME = Path(memmodel.__file__).parent


def digest(*parts: object) -> str:
    """One short text for several, told apart wherever one of them ends."""
    import hashlib

    text = json.dumps([part if isinstance(part, str | int | None) else str(part) for part in parts])
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


@cache
def program() -> str:
    """The digest of everything that judges: the package's version and source, Python, Z3."""
    import hashlib

    _stamps()
    source = hashlib.blake2b(digest_size=20)
    for file in sorted(_HOME.rglob("*.py")):
        source.update(f"{file.relative_to(_HOME)}\0".encode() + file.read_bytes())
    return digest(memmodel.__version__, source.hexdigest(), sys.version, sys.platform, *_solver())


def program_changed() -> bool:
    """True if the source was edited since `program` read it: either version may have computed a verdict."""
    return _stamps() != _now()


@cache
def _stamps() -> list[tuple[str, int, int]]:
    return _now()


def _now() -> list[tuple[str, int, int]]:
    """Size and time of every source file."""
    stamps = []
    for folder, folders, files in os.walk(_HOME):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            stat = os.stat(os.path.join(folder, name))
            stamps.append((os.path.join(folder, name), stat.st_size, stat.st_mtime_ns))
    return stamps


def _solver() -> list[str]:
    """Z3 as it lies on the disk, without loading it."""
    from importlib.util import find_spec

    spec = find_spec("z3")
    if spec is None or spec.origin is None:
        return []
    home = Path(spec.origin).parent
    places = (place for place in (home, home / "lib") if place.is_dir())
    stats = [(file.name, file.stat()) for place in places for file in sorted(place.iterdir()) if file.is_file()]
    return [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats]


def of_options(engine: str, bound: int, effort: int | None = None) -> str:
    """How a test is judged. `effort` None: the default."""
    return digest(engine, bound, effort)


def of_model(model: Model) -> str:
    """A loaded model: its name, what it defines and checks, and the text of every file that it was read from."""
    whole = repr((model.title, model.definitions, model.checks, model.shown))
    texts = [part for source in model.sources for part in (source.name, source.text)]
    return digest(model.name, whole, *texts)


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that is not loaded. `name`: in reports. `files`: where it was read from, in order, absolute."""

    name: str
    digest: str
    files: tuple[str, ...]


class ModelKeys:
    """Models by name. One whose files are as they were when they were last read is not read again."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._known: dict[str, KnownModel] = {}
        self._texts: dict[str, str | None] = {}

    def of(self, name: str) -> KnownModel:
        """What is known of a model. Raises InputError for one that cannot be used."""
        if name not in self._known:
            self._known[name] = self._remembered(name) or self._read(name)
        return self._known[name]

    def _key(self, name: str) -> str:
        from memmodel.cat.load import allowed_includes

        shipped = axioms_dir() / f"{name}.cat"
        return digest("model", program(), name, os.getcwd(), shipped, int(shipped.is_file()), *allowed_includes())

    def _remembered(self, name: str) -> KnownModel | None:
        text = self._store.get(self._key(name)) if self._store is not None else None
        if text is None:
            return None
        reported_name, model_digest, files, includes = json.loads(text)
        unchanged = all(self._text(path) == text_digest for path, text_digest in files) and all(
            _absolute(look(include, tuple(map(Path, places)))) == file for include, places, file in includes
        )
        return KnownModel(reported_name, model_digest, tuple(path for path, _ in files)) if unchanged else None

    def _read(self, name: str) -> KnownModel:
        from memmodel.cat.load import loaded

        model = loaded(name)
        model_digest = of_model(model.model)
        files, includes = _files(model)
        if self._store is not None:
            self._store.put(self._key(name), json.dumps([model.model.name, model_digest, files, includes]))
        return KnownModel(model.model.name, model_digest, tuple(path for path, _ in files))

    def _text(self, path: str) -> str | None:
        """The digest of a file's text; None if it cannot be read."""
        if path not in self._texts:
            try:
                self._texts[path] = digest(Source.read(path).text)
            except InputError:
                self._texts[path] = None
        return self._texts[path]


def _absolute(path: Path | None) -> str | None:
    return None if path is None else os.path.abspath(path)


def _files(model: LoadedModel) -> tuple[list[list[str]], list[list[object]]]:
    """The files of a model with the digests of their texts, and where each include was looked for and found."""
    files = [[os.path.abspath(path), digest(text)] for path, text in model.files]
    includes: list[list[object]] = [
        [include, [os.path.abspath(place) for place in places], os.path.abspath(file)]
        for include, places, file in model.includes
    ]
    return files, includes
