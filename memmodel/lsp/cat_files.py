"""The files of the model that a document belongs to.

In: Document. Out: the model, and the texts that it is made of. Settled here: an open document counts as its editor has
it, saved or not; a file that cannot be loaded by itself is a part, and is read in a model that includes it.
"""

from __future__ import annotations

from pathlib import Path

from memmodel.cat.files import Files
from memmodel.cat.loader import PRELUDE, Loader, load_text
from memmodel.cat.syntax import Model
from memmodel.cat.text import tree
from memmodel.cat.text.outline import includes
from memmodel.errors import InputError
from memmodel.lsp.document import Document
from memmodel.source import MAX_BYTES, Source

MOST_FILES = 400
"""At most this many files are looked at for one that includes a part."""

MOST_MODELS = 6
"""At most this many models that include a part are tried."""


class OpenFiles(Files):
    """The disk, with open documents in place of their files."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        texts = {Path(path): text for path, text in document.open.items()}
        if document.path is not None:
            texts[document.path] = document.source.text
        self.texts = {path.resolve(): text for path, text in texts.items()}

    def has(self, path: Path) -> bool:
        return path.resolve() in self.texts or super().has(path)

    def read(self, path: Path) -> Source:
        text = self.texts.get(path.resolve())
        return super().read(path) if text is None else Source(str(path), text)

    def shipped(self, path: Path) -> Source:
        text = self.texts.get(path.resolve())
        return super().shipped(path) if text is None else Source(str(path), text)


class _Gathering(Loader):
    """Reads a text and all that it includes, and looks no name up."""

    def __init__(self, files: Files) -> None:
        super().__init__((), (), files)
        self.texts: list[tuple[Path | None, Source]] = []

    def take(self, path: Path | None, source: Source, model: str | None = None) -> tree.Text:
        self.texts.append((path, source))
        self.open.append((path, source))
        if path is not None:
            self.seen.add(self.disk.real(path))
        for include in includes(source):
            try:
                self.include(include)
            except InputError:
                continue
        self.open.pop()
        return tree.Text("", "", ())


def model_of(document: Document) -> Model:
    """The model that the document is, or is a part of. Raises InputError."""
    files = OpenFiles(document)
    try:
        return load_text(document.source, document.path, files=files).model
    except InputError as error:
        failed = error
    around = _including(document, files)
    for path in around:
        try:
            return load_text(files.read(path), path, files=files).model
        except InputError as error:
            if error.span is not None and error.span.source.text == document.source.text:
                raise
            failed = error
    raise failed


def texts_of(document: Document) -> list[tuple[Path | None, Source]]:
    """The document, and the other texts of its model: what it includes, the prelude, then what includes it."""
    files = OpenFiles(document)
    texts = [(document.path, document.source), *_gathered(files, document.path, document.source)[1:]]
    prelude = files.home / PRELUDE
    texts.append((prelude, files.shipped(prelude)))
    for outer in _including(document, files):
        texts += _gathered(files, outer, files.read(outer))
    unique: dict[object, tuple[Path | None, Source]] = {}
    for path, source in texts:
        unique.setdefault(files.real(path) if path is not None else None, (path, source))
    return list(unique.values())


def found_file(document: Document, include: tree.Include) -> Path | None:
    """The file that an include of the document names."""
    gathering = _Gathering(OpenFiles(document))
    gathering.open.append((document.path, document.source))
    if document.path is not None:
        gathering.allowed.append(gathering.disk.real(document.path).parent)
    try:
        return gathering.find(include)
    except InputError:
        return None


def _gathered(files: Files, path: Path | None, source: Source) -> list[tuple[Path | None, Source]]:
    gathering = _Gathering(files)
    if path is not None:
        gathering.allowed.append(files.real(path).parent)
    gathering.take(path, source)
    return gathering.texts


def _including(document: Document, files: Files) -> list[Path]:
    """Models in the document's folder, or the one above, that include it."""
    path = document.path
    if path is None:
        return []
    mine = path.resolve()
    try:
        beside = [file for folder in (mine.parent, mine.parent.parent) for file in sorted(folder.glob("*.cat"))]
    except OSError:
        return []
    including: list[Path] = []
    for file in beside[:MOST_FILES]:
        if file == mine or len(including) == MOST_MODELS:
            continue
        try:
            if file.stat().st_size > MAX_BYTES or not files.read(file).text.strip():
                continue
            inside = {files.real(other) for other, _ in _gathered(files, file, files.read(file)) if other is not None}
        except (InputError, OSError):
            continue
        if mine in inside:
            including.append(file)
    return including
