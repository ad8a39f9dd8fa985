"""Read the files of one model into a resolver.

In: the source of a model, and where its files are. Out: `LoadedModel`. Settled here: what an `include` finds (beside
the including file, then in the caller's directories, then among the shipped models, then in axioms/library, which has
what other models include), that it stays below the model's own folder and the folders allowed, and that the prelude
comes before every model. A file that is included again adds nothing; one that includes itself is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from memmodel.base.resources import look
from memmodel.cat.files import LIBRARY, ChangedFile, Files
from memmodel.cat.interpret.world import World
from memmodel.cat.kept import LoadedModel
from memmodel.cat.resolve import Resolver
from memmodel.cat.text import tree
from memmodel.cat.text.outline import passage_of
from memmodel.cat.text.parser import parse
from memmodel.errors import InputError, suggestion
from memmodel.recovery.every_error import every_error
from memmodel.source import Source

PRELUDE = "prelude.cat"
MAX_INCLUDES = 20
"""Files that include one another, one inside the next."""

parsed = lru_cache(64)(parse)
"""The statements of a text. Readings of one model include the same files."""


class Loader:
    """Loads one model: the files already read, and those being read, each inside the one before.

    `search`: more folders in which includes are looked for. `allowed`: more folders that they may lie below.
    """

    def __init__(self, search: tuple[Path, ...] = (), allowed: Sequence[Path] = (), files: Files | None = None) -> None:
        self.search = search
        self.disk = files or Files()
        self.allowed = [path.resolve() for path in (self.disk.home, *search, *allowed)]
        self.sources: list[Source] = []
        self.seen: set[Path] = set()
        self.open: list[tuple[Path | None, Source]] = []
        self.files: list[tuple[Path, str]] = []
        self.includes: list[tuple[str, tuple[Path, ...], Path]] = []
        self.resolver = Resolver(self.include)

    def load(self, source: Source, at: Path | None = None) -> LoadedModel:
        """The model of a text. `at`: where it lies; None: in the file that it is named after, if there is one."""
        prelude = self.disk.home / PRELUDE
        self.take(prelude, self.disk.shipped(prelude))
        path = at or Path(source.name)
        exists = self.disk.has(path)
        if exists:
            self.allowed.append(self.disk.real(path).parent)
        name = path.stem if source.name.endswith(".cat") else source.name
        text = self.take(path if exists else None, source, name)
        model = self.resolver.model(name, text.title or name, tuple(self.sources))
        return LoadedModel(model, tuple(self.files), tuple(self.includes))

    def take(self, path: Path | None, source: Source, model: str | None = None) -> tree.Text:
        """Read one file into the resolver. `model`: the name of the model, if this is its own file."""
        self.sources.append(source)
        self.open.append((path, source))
        if path is not None:
            self.seen.add(self.disk.real(path))
            self.files.append((path, source.text))
        text = parsed(source)
        if model is not None:
            self.resolver.settle_in(World(f"{text.heading} {model}"))
        self.resolver.run(text)
        self.open.pop()
        return text

    def include(self, include: tree.Include) -> None:
        path = self.find(include)
        real = self.disk.real(path)
        inside = [self.disk.real(file) for file, _ in self.open if file is not None]
        if real in inside:
            around = " -> ".join([source.name for _, source in self.open[inside.index(real) - len(inside) :]])
            raise InputError(f'"{include.path}" includes itself', include.span, f"{around} -> {include.path}")
        if len(self.open) > MAX_INCLUDES:
            raise InputError(f"more than {MAX_INCLUDES} files include one another", include.span)
        if real in self.seen:
            return
        try:
            source = self.disk.read(path)
        except InputError as error:
            if error.span is not None:
                raise
            raise InputError(f"cannot include: {error.message}", include.span, error.hint) from error
        self.take(path, source)

    def find(self, include: tree.Include) -> Path:
        """The file that an include names; InputError at the include if there is none, or if it lies elsewhere."""
        beside, home = self.open[-1][0], self.disk.home
        places = (*([beside.parent] if beside is not None else []), *self.search, home, home / LIBRARY)
        path = look(include.path, places, self.disk.has)
        if path is not None and any(self.disk.real(path).is_relative_to(folder) for folder in self.allowed):
            self.includes.append((include.path, places, path))
            return path
        if path is not None:
            hint = "an include stays below the model's own folder; --allow-include DIR opens another one"
            raise InputError(f'"{include.path}" lies elsewhere', include.span, hint)
        known = {file.name for place in places for file in place.glob("*.cat")} - {PRELUDE}
        where = "it is looked for beside this file, then among the shipped models"
        hint = suggestion(include.path, sorted(known), '"{}"') or where
        raise InputError(f'no file "{include.path}"', include.span, hint)


def load_text(
    source: Source, at: Path | None = None, allowed: Sequence[Path] = (), files: Files | None = None
) -> LoadedModel:
    """The model of a text, as `Loader.load`. What it raises has all errors of the file that has one."""
    disk = files or Files()
    try:
        return Loader((), allowed, disk).load(source, at)
    except InputError as error:
        if error.span is None:
            raise

        def load_changed(changed: Source) -> LoadedModel:
            others = ChangedFile(disk, changed)
            return Loader((), allowed, others).load(others.changed(source), at)

        raise every_error(error, error.span.source, load_changed, passage_of) from error
