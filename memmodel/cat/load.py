"""Find a model's files and load them into one Model.

In: a shipped name, a path, or a Source. Out: Model. Settled here: where shipped models lie, what an `include` finds
(beside the including file, then in the caller's directories, then among the shipped models, then in axioms/library,
which has what other models include), and that the prelude comes before every model. A file that is included again adds
nothing; one that includes itself is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from memmodel.base.classes import dataclass, replace
from memmodel.base.resources import axioms_dir
from memmodel.cat.interpret.world import LIBRARY, World
from memmodel.cat.resolve import Resolver
from memmodel.cat.syntax import Model
from memmodel.cat.text import tree
from memmodel.cat.text.parser import parse
from memmodel.errors import InputError, nearest
from memmodel.source import Source

PRELUDE = "prelude.cat"
MAX_INCLUDES = 20
"""Files that include one another, one inside the next."""


def shipped_models() -> list[str]:
    """Names that `load_model` takes, in order. Files in folders below are parts and variants, loaded by their path."""
    return sorted(path.stem for path in axioms_dir().glob("*.cat") if path.name != PRELUDE)


def load_model(name_or_path: str | os.PathLike[str], *, strict_names: bool = False) -> Model:
    """The model of a shipped name (`ptx-7.5`) or of a `.cat` file. InputError if there is none or it is wrong.

    `strict_names`: what its `notices` tell is an error too.
    """
    model = _found(name_or_path)
    if strict_names:
        strictly(model)
    return model


def _found(name_or_path: str | os.PathLike[str]) -> Model:
    name = os.fspath(name_or_path)
    if not name or "\0" in name:
        raise InputError("a model needs a name", hint=f"shipped models: {', '.join(shipped_models())}")
    shipped = axioms_dir() / f"{name}.cat"
    if not name.endswith(".cat") and _is_file(shipped):
        return _kept(name, shipped, lambda: _shipped(name, shipped))
    if _is_file(Path(name)):
        return _kept(name, Path(name), lambda: _Loader(()).load(Source.read(name)))
    near = nearest(name, shipped_models())
    meant = f"did you mean {near}? " if near else ""
    hint = f"{meant}shipped models: {', '.join(shipped_models())}; or a path to a .cat file"
    raise InputError(f"no model `{name}`", hint=hint)


def parse_model(source: Source, search: Sequence[str | os.PathLike[str]] = (), *, strict_names: bool = False) -> Model:
    """The model that a text describes; `search`: more directories for its includes. Raises InputError."""
    model = _Loader(tuple(Path(directory) for directory in search)).load(source).model
    if strict_names:
        strictly(model)
    return model


def strictly(model: Model) -> None:
    """Raises InputError if there is something that a model's author should hear."""
    for notice in model.notices:
        raise InputError(notice.message, notice.span, notice.hint)


# ---- models that were loaded before ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model, the files that it was read from with their text, and what each include was found to mean."""

    model: Model
    files: tuple[tuple[Path, str], ...]
    includes: tuple[tuple[tree.Include, tuple[Path, ...], Path], ...]

    def holds(self) -> bool:
        """Would loading it again give the same?"""
        try:
            return all(_look(include, places) == found for include, places, found in self.includes) and all(
                Source.read(path).text == text for path, text in self.files
            )
        except InputError:
            return False


_LOADED: dict[tuple[str, Path], _Loaded] = {}
"""By the name that was asked for and the file that it stood for."""


def _kept(name: str, path: Path, load: Callable[[], _Loaded]) -> Model:
    """The model loaded before, if no file of it has changed since."""
    key = (name, path.resolve())
    known = _LOADED.get(key)
    if known is None or not known.holds():
        known = _LOADED[key] = load()
    return known.model


def _shipped(name: str, path: Path) -> _Loaded:
    loaded = _Loader((path.parent,)).load(_read_shipped(path))  # its includes lie beside it, wherever we run
    return replace(loaded, model=replace(loaded.model, name=name))


# ---- loading ---------------------------------------------------------------------------------------------------------


class _Loader:
    """Loads one model: the files already read, and those being read, each inside the one before."""

    def __init__(self, search: tuple[Path, ...]) -> None:
        self.search = search
        self.sources: list[Source] = []
        self.seen: set[Path] = set()
        self.open: list[tuple[Path | None, Source]] = []
        self.files: list[tuple[Path, str]] = []
        self.includes: list[tuple[tree.Include, tuple[Path, ...], Path]] = []
        self.resolver = Resolver(self.include)

    def load(self, source: Source) -> _Loaded:
        prelude = axioms_dir() / PRELUDE
        self.take(prelude, _read_shipped(prelude))
        path = Path(source.name)
        name = path.stem if source.name.endswith(".cat") else source.name
        text = self.take(path if _is_file(path) else None, source, name)
        model = self.resolver.model(name, text.title or name, tuple(self.sources))
        return _Loaded(model, tuple(self.files), tuple(self.includes))

    def take(self, path: Path | None, source: Source, model: str | None = None) -> tree.Text:
        """Read one file into the resolver. `model`: the name of the model, if this is its own file."""
        self.sources.append(source)
        self.open.append((path, source))
        if path is not None:
            self.seen.add(path.resolve())
            self.files.append((path, source.text))
        text = parse(source)
        if model is not None:
            self.resolver.settle_in(World(f"{text.heading} {model}"))
        self.resolver.run(text)
        self.open.pop()
        return text

    def include(self, include: tree.Include) -> None:
        path = self.find(include)
        inside = [file.resolve() for file, _ in self.open if file is not None]
        if path.resolve() in inside:
            around = " -> ".join([source.name for _, source in self.open[inside.index(path.resolve()) - len(inside) :]])
            raise InputError(f'"{include.path}" includes itself', include.span, f"{around} -> {include.path}")
        if len(self.open) > MAX_INCLUDES:
            raise InputError(f"more than {MAX_INCLUDES} files include one another", include.span)
        if path.resolve() in self.seen:
            return
        try:
            shipped = path.parent in (axioms_dir(), axioms_dir() / LIBRARY)
            source = _read_shipped(path) if shipped else Source.read(path)
        except InputError as error:
            if error.span is not None:
                raise
            raise InputError(f"cannot include: {error.message}", include.span, error.hint) from error
        self.take(path, source)

    def find(self, include: tree.Include) -> Path:
        """The file that an include names; InputError at the include if there is none."""
        beside = self.open[-1][0]
        places = (*([beside.parent] if beside is not None else []), *self.search, axioms_dir(), axioms_dir() / LIBRARY)
        found = _look(include, places)
        if found is not None:
            self.includes.append((include, places, found))
            return found
        known = {path.name for place in places for path in place.glob("*.cat")} - {PRELUDE}
        near = nearest(include.path, sorted(known))
        hint = "it is looked for beside this file, then among the shipped models"
        if near:
            hint = f'did you mean "{near}"?'
        raise InputError(f'no file "{include.path}"', include.span, hint)


def _read_shipped(path: Path) -> Source:
    """A shipped file under a short name, the same wherever memmodel is installed."""
    return Source(f"axioms/{path.relative_to(axioms_dir()).as_posix()}", Source.read(path).text)


def _look(include: tree.Include, places: Sequence[Path]) -> Path | None:
    """The first place that has the file which an include names."""
    if not include.path or "\0" in include.path:
        return None
    return next((place / include.path for place in places if _is_file(place / include.path)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
