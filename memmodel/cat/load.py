"""Find a model: by a shipped name, by a path, or as text.

In: a shipped name, a path, or a Source. Out: Model. Settled here: where shipped models lie, and which models a test may
name. A model that was read before is taken from `kept`; `loader` reads the others.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memmodel.base.resources import JOINED, axioms_dir, is_file, is_shipped
from memmodel.cat.files import Files
from memmodel.cat.kept import LoadedModel, keep_models
from memmodel.cat.kept import kept as kept_model
from memmodel.cat.syntax import Model
from memmodel.errors import InputError, nearest, suggestion
from memmodel.source import STANDARD_INPUT, Source

_ALLOWED: list[Path] = []


def allow_includes(folders: Sequence[str | os.PathLike[str]]) -> None:
    """From now on, models may include files below these folders. Raises InputError if one of them is no folder."""
    for folder in folders:
        if not os.path.isdir(folder):
            raise InputError(f"{os.fspath(folder)}: no such directory", hint="--allow-include names a directory")
    _ALLOWED[:] = [Path(folder) for folder in folders]


def configure(include: Sequence[str | os.PathLike[str]], *, kept: bool) -> None:
    """Set how models are loaded from now on. `include`: as in `allow_includes`; `kept`: loaded models are kept on disk.

    Raises InputError.
    """
    allow_includes(include)
    keep_models(kept)


def allowed_includes() -> tuple[Path, ...]:
    """The folders that `allow_includes` was called with, absolute."""
    return tuple(folder.resolve() for folder in _ALLOWED)


def shipped_models() -> list[str]:
    """Names that `load_model` takes, in order. Files in folders below are parts and variants, loaded by their path."""
    return sorted(path.stem for path in axioms_dir().glob("*.cat") if path.name != "prelude.cat")


def load_model(name_or_path: str | os.PathLike[str], *, strict_names: bool = False) -> Model:
    """The model of a shipped name (`ptx-7.5`), of several readings (`ptx-9.4+D3-implicit+D4ab-no-fences`), or of a
    `.cat` file. Raises InputError if there is no such model, or if it has an error.

    `strict_names`: a notice of the model is an error too.
    """
    model = loaded(name_or_path).model
    if strict_names:
        strictly(model)
    return model


def loaded(name_or_path: str | os.PathLike[str]) -> LoadedModel:
    """What `load_model` returns, with the files that it was read from. Raises InputError."""
    name = os.fspath(name_or_path)
    if not name or "\0" in name:
        raise InputError("a model needs a name", hint=f"shipped models: {', '.join(shipped_models())}")
    shipped = axioms_dir() / f"{name}.cat"
    if not name.endswith(".cat") and is_file(shipped):
        return kept_model(name, shipped, (), lambda: _shipped(name, shipped))
    if is_file(Path(name)):
        return kept_model(name, Path(name), _ALLOWED, lambda: _own(name))
    if os.path.exists(name):
        Source.read(name)  # raises: a directory, a pipe, …
    if JOINED in name:
        from memmodel.cat.composed import composed

        source = composed(name)
        if source is not None:
            return _composed(name, source)
    near = nearest(name, shipped_models())
    meant = f"did you mean {near}? " if near else ""
    hint = f"{meant}shipped models: {', '.join(shipped_models())}; or a path to a .cat file"
    raise InputError(f"no model `{name}`", hint=hint)


def parse_model(source: Source, search: Sequence[str | os.PathLike[str]] = (), *, strict_names: bool = False) -> Model:
    """The model that a text describes; `search`: more directories for its includes. Raises InputError."""
    from memmodel.cat.loader import Loader

    model = Loader(tuple(Path(directory) for directory in search), _ALLOWED).load(source).model
    if strict_names:
        strictly(model)
    return model


def strictly(model: Model) -> None:
    """Raise InputError for the first notice of a model, such as a name that no test has."""
    for notice in model.notices:
        raise InputError(notice.message, notice.span, notice.hint)


def load_from(files: Files, path: Path, name: str) -> Model:
    """The model of a file, read with all that it includes from `files`, under a name. Raises InputError."""
    from memmodel.cat.loader import Loader

    return replace(Loader((), _ALLOWED, files).load(files.read(path), path).model, name=name)


def _shipped(name: str, path: Path) -> LoadedModel:
    from memmodel.cat.loader import Loader

    # Its includes lie beside it, wherever the program runs.
    model = Loader((path.parent,)).load(Files().shipped(path), path)
    return replace(model, model=replace(model.model, name=name))


def _composed(name: str, source: Source) -> LoadedModel:
    from memmodel.cat.loader import Loader

    model = Loader((axioms_dir(),)).load(source)
    return replace(model, model=replace(model.model, name=name))


def _own(name: str) -> LoadedModel:
    from memmodel.cat.loader import load_text

    return load_text(Source.read(name), allowed=_ALLOWED)


def named_by(test: str, name: str) -> str:
    """What `load_model` takes for a model that a test names: a shipped one, or a file beside the test.

    `test`: the path of the test. Raises InputError for anything else, whether there is such a file or not.
    """
    if is_shipped(name):
        return name
    beside = os.path.dirname(test)
    if name.endswith(".cat") and test != STANDARD_INPUT and os.path.basename(name) == name and "\0" not in name:
        path = os.path.join(beside, name)
        if os.path.dirname(os.path.realpath(path)) == os.path.realpath(beside or ".") and os.path.isfile(path):
            return path
    beside_it = f"shipped models: {', '.join(shipped_models())}; or a .cat file beside the test"
    hint = suggestion(name, shipped_models()) or beside_it
    raise InputError(f"no model `{name}`: an Expect line names shipped models or files beside the test", hint=hint)
