"""CUDA C++ as a module: compiled with nvcc, with the lines of the source and the names of parameters.

In: a path, options of nvcc. Out: PTX, the text of the source, names. Nothing is left on the disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from memmodel.kernel.question.toolkit import output_of
from memmodel.ptx.module.names import base_name
from memmodel.ptx.module.reader import decoded, read_source
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.source import Source

SUFFIXES = (".cu", ".cuh", ".cuda")
TARGET = "sm_90a"
"""What is compiled for where the options do not say it."""

_TARGETS = re.compile(r"--?(arch|gpu-architecture|gencode|generate-code)\b|-(arch|code)=")
_FILE = re.compile(r'^([ \t]*\.file[ \t]+\d+[ \t]+")([^"\n]*)(")', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def compiled(path: str | os.PathLike[str], options: Sequence[str]) -> tuple[Source, Source, bool]:
    """The PTX of a source, and the source; True if the target was chosen here. Raises InputError."""
    name = os.fspath(path)
    written = read_source(path)
    chosen = not any(_TARGETS.match(option) for option in options)
    target = [f"-arch={TARGET}"] if chosen else []
    with TemporaryDirectory() as folder:
        out = Path(folder, "out.ptx")
        output_of("nvcc", ["-ptx", "-lineinfo", *target, *options, name, "-o", str(out)], name)
        source = decoded(f"<PTX of {name}>", out.read_bytes())
    return Source(source.name, _FILE.sub(_relative, source.text)), written, chosen


def _relative(directive: re.Match[str]) -> str:
    """A .file directive whose path is relative if it lies below the current folder."""
    path, folder = directive[2], os.getcwd()
    inside = os.path.isabs(path) and os.path.commonpath((path, folder)) == folder
    return directive[1] + (os.path.relpath(path, folder) if inside else path) + directive[3]


def parameter_names(source: Source, entries: Iterable[PtxFunction]) -> Mapping[str, Sequence[str]]:
    """By entry the names of its parameters, as far as the source shows them."""
    text = _COMMENT.sub(" ", source.text)
    return {entry.name: names for entry in entries if (names := _names(text, base_name(entry.name), len(entry.params)))}


def _names(text: str, kernel: str, count: int) -> list[str]:
    """The names in the definition of a kernel with this number of parameters."""
    for found in re.finditer(rf"__global__\b[^;{{}}]*?\b{re.escape(kernel)}\s*\(", text):
        names = [_name(part) for part in _parts(text, found.end())]
        if len(names) == count:
            return names
    return []


def _parts(text: str, start: int) -> list[str]:
    """What stands between commas, up to the closing parenthesis."""
    depth, parts, begin = 0, [], start
    for at in range(start, len(text)):
        if text[at] in "(<[{":
            depth += 1
        elif text[at] in ")>]}" and depth:
            depth -= 1
        elif text[at] == ")" or (text[at] == "," and not depth):
            parts.append(text[begin:at])
            begin = at + 1
            if text[at] == ")":
                break
    return parts


def _name(declaration: str) -> str:
    """The last word of a declaration, without default and extents; nothing if it has no name."""
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"=.*|\[[^\]]*\]", "", declaration))
    return words[-1] if len(words) > 1 else ""
