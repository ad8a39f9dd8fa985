"""The command line. `main` is the program `memmodel`; everything that it needs is loaded by the command that runs."""

from __future__ import annotations

from memmodel.cli.app import main

__all__ = ["main"]
