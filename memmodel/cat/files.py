"""Where the files of a model are read from.

In: paths. Out: text. Settled here: that is the disk; `memmodel.compare.git` has the files of a commit.
"""

from __future__ import annotations

from pathlib import Path

from memmodel.base.resources import axioms_dir, is_file
from memmodel.source import Source

LIBRARY = "library"
"""The folder of shipped files that other models include."""


class Files:
    """The disk. `home`: the folder of the shipped models."""

    def __init__(self) -> None:
        self.home = axioms_dir()

    def has(self, path: Path) -> bool:
        """True if there is such a file."""
        return is_file(path)

    def real(self, path: Path) -> Path:
        """Where a file lies, whatever leads there: one place has one such path."""
        return path.resolve()

    def read(self, path: Path) -> Source:
        """The text of a file; a shipped one has a short name, the same wherever memmodel is installed."""
        shipped = path.parent in (self.home, self.home / LIBRARY)
        return self.shipped(path) if shipped else Source.read(path)

    def shipped(self, path: Path) -> Source:
        """The text of a shipped file."""
        return Source(f"axioms/{path.relative_to(self.home).as_posix()}", Source.read(path).text)


class ChangedFile(Files):
    """Other files, one of which has another text."""

    def __init__(self, files: Files, changed: Source) -> None:
        super().__init__()
        self.files, self.new = files, changed

    def changed(self, source: Source) -> Source:
        """A text that was read, or the new one in its place."""
        return self.new if source.name == self.new.name else source

    def has(self, path: Path) -> bool:
        return self.files.has(path)

    def real(self, path: Path) -> Path:
        return self.files.real(path)

    def read(self, path: Path) -> Source:
        return self.changed(self.files.read(path))

    def shipped(self, path: Path) -> Source:
        return self.changed(self.files.shipped(path))
