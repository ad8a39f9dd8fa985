"""NVIDIA's assembler: find it, run it, and say where in the litmus file its errors are.

In: Module. Out: the complaints of ptxas. Settled here: which ptxas runs (the one of the Python package before one on
PATH), and for which architecture when the module's own is older than all that it still generates code for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from memmodel.emit.module import EmittedModule
from memmodel.errors import InputError, render
from memmodel.limits.programs import output
from memmodel.ptx.targets import Target
from memmodel.source import Span

OLDEST = 75
"""The oldest architecture that ptxas of CUDA 13 generates code for; a module for an older one runs there too."""

TIMEOUT = 120
_HINT = "pip install 'memmodel[ptx]', or put the ptxas of a CUDA toolkit on PATH"
_ERROR = re.compile(r"^ptxas .*?, line (\d+); (error|fatal)\s*: (.*)$")
_FATAL = re.compile(r"^ptxas (?:error|fatal)\s*: (.*)$")
_SUMMARY = "Ptx assembly aborted due to errors"


@dataclass(frozen=True, slots=True)
class Complaint:
    """One error of ptxas. `span` is None where the line of the module comes from no line of the test."""

    message: str
    span: Span | None
    line: str = ""

    def render(self) -> str:
        """The message with the place in the litmus file and a caret, or with the line of the module."""
        hint = None if self.span is not None or not self.line else f"in the module: {self.line.strip()}"
        return render("error", f"ptxas: {self.message}", self.span, hint)


@dataclass(frozen=True, slots=True)
class Assembler:
    """A ptxas."""

    path: Path

    @staticmethod
    def find() -> Assembler:
        """Raises InputError where neither the package nor PATH has one."""
        for path in (*_packaged(), shutil.which("ptxas")):
            if path is not None and os.access(path, os.X_OK):
                return Assembler(Path(path))
        raise InputError("no ptxas found", hint=_HINT)

    def assemble(self, module: EmittedModule) -> tuple[Complaint, ...]:
        """Assemble, and keep no binary. Raises InputError if ptxas cannot be run."""
        with tempfile.TemporaryDirectory(prefix="memmodel-") as folder:
            source = Path(folder, "module.ptx")
            source.write_text(module.text, encoding="utf-8")
            binary = Path(folder, "module.cubin")
            command = [str(self.path), f"-arch={architecture(module.target)}", str(source), "-o", str(binary)]
            try:
                done = output(command, seconds=TIMEOUT)
            except OSError as error:
                raise InputError(f"{self.path}: cannot be run: {error.strerror or error}", hint=_HINT) from error
            except subprocess.TimeoutExpired as error:
                raise InputError(f"ptxas did not finish within {TIMEOUT} s") from error
        if done.returncode == 0:
            return ()
        said = (done.stdout + done.stderr).decode(errors="replace")
        return complaints(module, said) or (Complaint(f"failed ({done.returncode})", None),)


def architecture(target: Target) -> Target:
    """The target that ptxas generates code for: not older than the oldest it knows."""
    return target if target.number >= OLDEST else Target(OLDEST)


def complaints(module: EmittedModule, output: str) -> tuple[Complaint, ...]:
    """The errors in what ptxas printed, each at its place in the litmus file."""
    lines = module.text.splitlines()
    distinct: dict[Complaint, None] = {}
    for text in output.splitlines():
        if match := _ERROR.match(text):
            number = int(match[1])
            inside = 0 < number <= len(lines)
            span = module.places[number - 1] if inside else None
            distinct[Complaint(match[3].strip(), span, lines[number - 1] if inside else "")] = None
        elif (match := _FATAL.match(text)) and not match[1].startswith(_SUMMARY):
            distinct[Complaint(match[1].strip(), None)] = None
    return tuple(distinct)


def _packaged() -> list[Path]:
    """ptxas of the package nvidia-cuda-nvcc, whose folder has the CUDA version in its name."""
    spec = util.find_spec("nvidia")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec is not None else []
    return sorted((path for folder in folders for path in folder.glob("*/bin/ptxas*")), reverse=True)
