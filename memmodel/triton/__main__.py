"""`python -m memmodel.triton train.py ARGUMENTS`: a program whose launches are watched."""

from __future__ import annotations

import os
import runpy
import sys
from importlib.util import find_spec

from memmodel.triton import VARIABLE, startup


def main(argv: list[str]) -> None:
    """Run a program as `python` does, with `MEMMODEL_TRITON` set for it and its children."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: python -m memmodel.triton PROGRAM.py [ARGUMENTS], or -m MODULE [ARGUMENTS]", file=sys.stderr)
        sys.exit(0 if argv else 2)
    if (missing := _missing(argv)) is not None:
        print(f"error: {missing}", file=sys.stderr)
        sys.exit(2)
    os.environ.setdefault(VARIABLE, "1")
    startup.begin()
    if argv[0] == "-m" and len(argv) > 1:
        sys.argv = argv[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
        runpy.run_path(argv[0], run_name="__main__")


def _missing(argv: list[str]) -> str | None:
    """Why there is nothing to run."""
    if argv[0] != "-m":
        return None if os.path.exists(argv[0]) else f"{argv[0]}: cannot be read: No such file or directory"
    if len(argv) == 1:
        return "-m needs a module"
    sys.path[0] = os.getcwd()
    try:
        return None if find_spec(argv[1]) else f"no module is called {argv[1]}"
    except (ImportError, ValueError):  # of the package around it
        return f"no module is called {argv[1]}"


if __name__ == "__main__":
    main(sys.argv[1:])
