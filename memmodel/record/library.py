"""The library that watches the CUDA driver, built from `watch.c`.

In: nothing. Out: the path of the library. Settled here: it is built once for a text of `watch.c` and a compiler, and
kept in the cache folder. Raises InputError where it cannot be built.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from memmodel.base.resources import cache_dir
from memmodel.errors import InputError

SOURCE = Path(__file__).with_name("watch.c")
COMPILERS = ("cc", "gcc", "clang")
OPTIONS = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec")
LIBRARIES = ("-ldl", "-lpthread")
MOST = 1_000
"""Characters of a complaint that are shown."""


def compiler() -> list[str]:
    """The command of the C compiler: what CC names, else the first on the path. Raises InputError."""
    named = shlex.split(os.environ.get("CC", ""))
    for words in ([named] if named else []) + [[name] for name in COMPILERS]:
        path = shutil.which(words[0])
        if path is not None:
            return [path, *words[1:]]
    raise InputError(
        "record builds a small C library, and there is no C compiler (cc, gcc, clang)",
        hint="install one (apt install gcc), or name one: CC=/path/to/gcc",
    )


def built(folder: Path) -> Path:
    """The library, which is built if it is not there. `folder`: where it lies if nothing is kept. Raises InputError."""
    if sys.platform != "linux":
        raise InputError(
            f"record works on Linux, where the loader can put a library in front of the driver, not on {sys.platform}",
            hint="write the launch by hand: memmodel kernel FILE --init-launch",
        )
    command = compiler()
    text = SOURCE.read_bytes()
    key = sha256(b"\0".join((text, *(word.encode() for word in (*command, *OPTIONS, platform.machine()))))).hexdigest()
    for place in (cache_dir(), folder):
        library = None if place is None else place / f"record-{key[:16]}.so"
        if library is not None and (library.is_file() or _build(command, library)):
            return library.resolve()
    raise InputError(f"{folder}: cannot be written")


def _build(command: list[str], library: Path) -> bool:
    """Build it beside its place and try it. False if the folder cannot be written. Raises InputError."""
    part = library.with_suffix(f".{os.getpid()}.part")
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
    except OSError:
        return False
    try:
        done = _run([*command, *OPTIONS, "-o", str(part), str(SOURCE), *LIBRARIES])
        if done.returncode:
            raise InputError(f"{command[0]} cannot build the library of record:\n{_message(done)}")
        tried = _run(["/bin/sh", "-c", "exit 7"], {**os.environ, "LD_PRELOAD": str(part)})
        if tried.returncode != 7 or tried.stderr:
            hint = "glibc is needed, and a compiler for the same machine as the programs"
            raise InputError(f"the loader does not take the library of record:\n{_message(tried)}", hint=hint)
        part.replace(library)
    finally:
        part.unlink(missing_ok=True)
    return True


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, env=environment, capture_output=True, check=False, stdin=subprocess.DEVNULL)


def _message(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stderr or done.stdout).decode("utf-8", "replace").strip()[:MOST]
