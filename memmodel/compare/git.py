"""A model as it was at a revision of a git repository, with what it included then.

In: a file of the working tree, the name of a revision. Out: Model. Settled here: files come from the commit's own list
and from nowhere else, so that no include leads out of the repository; what an include may name is as for any model; a
link is not followed. Shipped models are read
from the commit if the repository has them, else as they are installed.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from memmodel.base.resources import axioms_dir, is_file
from memmodel.cat.files import Files
from memmodel.cat.load import load_from
from memmodel.cat.syntax import Model
from memmodel.errors import InputError
from memmodel.limits.programs import output
from memmodel.source import MAX_BYTES, Source

_SECONDS = 60


def model_at(revision: str, model: str) -> Model:
    """The model of a shipped name or a path, at a revision. Raises InputError."""
    shipped = axioms_dir() / f"{model}.cat"
    path = shipped if not model.endswith(".cat") and is_file(shipped) else Path(model)
    folder = Path(os.path.realpath(path.parent))
    if not folder.is_dir():
        raise InputError(f"{model}: no such file or directory")
    files = Revision(folder, revision)
    whole = folder / path.name
    if not files.has(whole):
        raise InputError(f"{model} does not exist at {revision}", hint="a model that was moved has no earlier version")
    name = model if path is shipped else path.stem
    return load_from(files, whole, f"{name} at {revision}")


class Revision(Files):
    """The cat files of a commit, under the paths that they have, or would have, in the working tree."""

    def __init__(self, folder: Path, revision: str) -> None:
        super().__init__()
        self._folder, self._revision = folder, revision
        top = self._git("rev-parse", "--show-toplevel", what=f"{folder} is not in a git repository")
        self._root = os.path.realpath(os.fsdecode(top.rstrip(b"\n")))
        no = f"git knows no revision {revision[:80]!r}"
        commit = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", what=no)
        listed = self._git("ls-tree", "-r", "-z", "-l", "--full-tree", commit.decode().strip())
        self._blobs: dict[str, tuple[str, int]] = {}
        for line in listed.split(b"\0"):
            head, _, path = line.partition(b"\t")
            if path.endswith(b".cat") and head.startswith(b"100"):
                _, _, blob, size = head.split()
                self._blobs[os.fsdecode(path)] = blob.decode(), int(size)
        self._installed = not self._inside(axioms_dir())

    def has(self, path: Path) -> bool:
        """True if the revision has this file."""
        if self._blob(path) is not None:
            return True
        return self._is_installed(path) and is_file(path)

    def real(self, path: Path) -> Path:
        """Where a file of the commit lies: links of today lead nowhere in it."""
        return Path(os.path.abspath(path))

    def read(self, path: Path) -> Source:
        """Its text then."""
        blob = self._blob(path)
        if blob is None:
            if self._is_installed(path):
                return super().read(path)
            raise InputError(f"{path.name}: not in the repository at {self._revision}")
        name = f"{self._revision}:{self._relative(path)}"
        if blob[1] > MAX_BYTES:
            raise InputError(f"{name}: larger than {MAX_BYTES:,} bytes")
        return Source.decode(name, self._git("cat-file", "blob", blob[0]))

    # ---- below -------------------------------------------------------------------------------------------------------

    def _relative(self, path: Path) -> str:
        return os.path.relpath(os.path.normpath(path), self._root).replace(os.sep, "/")

    def _inside(self, path: Path) -> bool:
        return not self._relative(path).startswith("../")

    def _is_installed(self, path: Path) -> bool:
        """True if it is a shipped file and the repository does not contain the shipped files."""
        return self._installed and Path(os.path.normpath(path)).is_relative_to(axioms_dir())

    def _blob(self, path: Path) -> tuple[str, int] | None:
        return self._blobs.get(self._relative(path))

    def _git(self, *words: str, what: str = "") -> bytes:
        environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
        try:
            done = output(["git", "-C", str(self._folder), *words], environment=environment, seconds=_SECONDS)
        except FileNotFoundError as error:
            raise InputError("git is not installed") from error
        except subprocess.TimeoutExpired as error:
            raise InputError(f"git {words[0]} did not answer within {_SECONDS} seconds") from error
        except ValueError as error:  # a NUL in the revision
            raise InputError(what or str(error)) from error
        if done.returncode:
            complaints = done.stderr.decode(errors="replace").strip().splitlines()
            raise InputError(what or f"git {words[0]}: {complaints[-1] if complaints else 'failed'}")
        return done.stdout
