"""PTX in cubins, fatbins, objects and executables.

In: a path. Out: the text of the PTX, from the container that nvcc writes, or as cuobjdump finds it where that is not
known here. Machine code alone has none, and is refused.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise

from memmodel.errors import InputError
from memmodel.kernel.question import fatbins
from memmodel.kernel.question.toolkit import PACKAGES, output_of, program
from memmodel.ptx.module.reader import decoded
from memmodel.source import Source, read_bytes

ELF, FATBIN, ARCHIVE, PORTABLE = b"\x7fELF", b"\x50\xed\x55\xba", b"!<arch>\n", b"MZ"
BEGINNINGS = (ELF, FATBIN, ARCHIVE, PORTABLE)
MOST_BYTES = 1 << 30
"""A larger file is left to cuobjdump."""
LONGEST = max(map(len, BEGINNINGS))
SUFFIXES = (".cubin", ".fatbin")
_VERSION = re.compile(r"^[ \t]*\.version[ \t]+\d", re.MULTILINE)
_REPORT = re.compile(r"^(Fatbin (ptx|elf) code:|=+|ptxasOptions .*|\w[\w ]* = .*)$", re.MULTILINE)


def is_binary(path: str | os.PathLike[str]) -> bool:
    """True for a file of machine code, by its first bytes or its name."""
    try:
        beginning = read_bytes(path, LONGEST)
    except InputError:  # said again, with its hint, by who reads the file as text
        return False
    return beginning.startswith(BEGINNINGS) or os.fspath(path).endswith(SUFFIXES)


def ptx_inside(path: str | os.PathLike[str], entry: str | None) -> tuple[Source, str]:
    """The PTX in a binary; of several modules the one in which the entry is defined, and of those for several targets
    that for the newest. That target, if it was chosen so; else nothing. Raises InputError.
    """
    name = os.fspath(path)
    modules = _modules(path)
    if not modules:
        hint = "compile with -arch=sm_90a or -gencode …,code=compute_90a, which keeps PTX, or give the PTX (nvcc -ptx)"
        raise InputError(f"{name}: there is machine code only, and no PTX", hint=hint)
    wanted = [text for text in modules if entry is not None and re.search(rf"\.entry\s+\w*{re.escape(entry)}\w*", text)]
    newest = sorted(wanted or modules, key=_target)
    several = len(newest) > 1 and _target(newest[-1]) != _target(newest[-2])
    if len(modules) > 1 and len(wanted) != 1 and not (several and (wanted or len(_entries(modules)) == 1)):
        hint = "--entry NAME: " + ", ".join(_entries(modules))
        raise InputError(f"{name}: has {len(modules)} modules of PTX", hint=hint)
    return decoded(f"<PTX of {name}>", newest[-1].encode()), f"sm_{_target(newest[-1])}" if several else ""


def _entries(modules: list[str]) -> list[str]:
    """The names of the entries."""
    return list(dict.fromkeys(name for text in modules for name in re.findall(r"\.entry\s+([\w$]+)", text)))


def _target(module: str) -> int:
    """The number of the target of a module."""
    named = re.search(r"^[ \t]*\.target[ \t]+sm_(\d+)", module, re.MULTILINE)
    return int(named[1]) if named else 0


def _modules(path: str | os.PathLike[str]) -> list[str]:
    """The modules in a file. Raises InputError."""
    name, data = os.fspath(path), read_bytes(path, MOST_BYTES)
    no_program = program("cuobjdump") is None
    if len(data) <= MOST_BYTES:
        try:
            if (modules := fatbins.texts(data)) or no_program:
                return modules
        except fatbins.UnreadableError as error:
            if no_program:
                hint = f"pip install {PACKAGES['cuobjdump']}"
                raise InputError(f"{name}: {error}; cuobjdump is needed, and was not found", hint=hint) from error
        except InputError as error:
            if no_program:
                raise InputError(f"{name}: {error.message}", hint=error.hint) from error
    return _modules_in_report(output_of("cuobjdump", ["-ptx", name], name))


def _modules_in_report(text: str) -> list[str]:
    """The modules in what cuobjdump prints, each from its .version to the next report."""
    starts = [found.start() for found in _VERSION.finditer(text)]
    modules = []
    for start, end in pairwise([*starts, len(text)]):
        next_report = _REPORT.search(text, start, end)
        modules.append(text[start : next_report.start() if next_report else end])
    return modules
