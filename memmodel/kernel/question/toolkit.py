"""Programs of the CUDA toolkit: from the path, or from packages of pip.

In: a name, arguments. Out: what the program printed. Raises InputError where there is none, or where it fails.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from memmodel.errors import InputError
from memmodel.limits.programs import output

TRITONS = "backends/nvidia/bin"
"""Where the package of Triton has its programs: ptxas and cuobjdump."""
HOMES = ("/usr/local/cuda/bin",)
PACKAGES = {
    "nvcc": "nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl",
    "cuobjdump": "nvidia-cuda-cuobjdump",
}
"""The packages of pip that bring a program."""

LINES = 20
"""Lines of what a program complains about that are shown."""


def program(name: str) -> str | None:
    """The path of a program; None if there is none."""
    if (path := shutil.which(name)) is not None:
        return path
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations or () if spec else ()
    packaged = (file for place in places for file in sorted(Path(place).glob(f"*/bin/{name}"), reverse=True))
    triton = find_spec("triton")
    brought = (Path(place, TRITONS, name) for place in (triton.submodule_search_locations or () if triton else ()))
    homes = (Path(home, name) for home in HOMES)
    return next((str(file) for file in (*packaged, *brought, *homes) if file.is_file()), None)


def output_of(name: str, arguments: Sequence[str], about: str) -> str:
    """Run a program. `about`: the file that it is for. Raises InputError."""
    path = program(name)
    if path is None:
        raise InputError(f"{about}: {name} is needed, and was not found", hint=f"pip install {PACKAGES[name]}")
    done = output([path, *arguments])
    if done.returncode:
        lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().split("\n")
        more = [f"… and {len(lines) - LINES} more lines"] if len(lines) > LINES else []
        raise InputError("\n".join([f"{about}: {name} says:", *lines[:LINES], *more])[:MOST])
    return done.stdout.decode("utf-8", "replace")


MOST = 1_000
"""Characters of a message."""
