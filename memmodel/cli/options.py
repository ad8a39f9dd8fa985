"""Options that several commands share, and how their text is read.

In: what was typed. Out: typed values. Settled here: `5M` is five million solver steps.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import typer

from memmodel.answer import Budget
from memmodel.errors import InputError

_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


class Engine(StrEnum):
    """Which engine answers; auto takes the one that is expected to be faster."""

    AUTO = "auto"
    Z3 = "z3"
    ENUMERATE = "enumerate"


class FindingWord(StrEnum):
    """What a question can ask for beside final states."""

    RACE = "race"
    HANG = "hang"
    HAZARD = "hazard"
    UNDEFINED = "undefined"


def parse_budget(text: str | None) -> Budget:
    """`200k`, `5M`, `1G` or a plain number as solver steps. None: the default. Raises InputError."""
    if text is None:
        return Budget()
    match = re.fullmatch(r"([0-9]{1,12})([kmg]?)", text.strip(), re.ASCII | re.IGNORECASE)
    effort = int(match[1]) * _FACTORS[match[2].lower()] if match else 0
    if not 0 < effort < 2**32:  # the solver's counter has 32 bits
        hint = "such as 200k, 5M or 1000000, below 4G"
        raise InputError(f"--budget {text[:40]}: not an amount of solver steps", hint=hint)
    return Budget(effort=effort)


Files = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Litmus tests, directories of them, - for standard input."),
]
File = Annotated[str, typer.Argument(metavar="FILE", help="A litmus test; - is standard input.", show_default=False)]
Ask = Annotated[
    list[str] | None,
    typer.Option(
        "--ask",
        metavar="QUESTION",
        help="Ask this instead of the file's own questions, as in `exists race`; may be repeated.",
    ),
]
ModelName = Annotated[str, typer.Option("--model", "-m", metavar="NAME|PATH", help="A shipped model or a cat file.")]
ModelNames = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", metavar="NAME|PATH", help="A shipped model or a cat file; may be repeated."),
]
CheckedModels = Annotated[
    list[str] | None,
    typer.Option(
        "--model", "-m", metavar="NAME|PATH", help="A shipped model or a cat file; may be repeated. Default: ptx-9.3."
    ),
]
EngineName = Annotated[Engine, typer.Option("--engine", help="Which engine answers.")]
BudgetText = Annotated[
    str | None,
    typer.Option("--budget", metavar="STEPS", help="Solver steps for each test, such as 200k or 5M; default 100M."),
]
Bound = Annotated[int, typer.Option("--bound", min=1, max=64, help="Iterations of a loop that is unrolled.")]
JsonOut = Annotated[str | None, typer.Option("--json", metavar="OUT", help="Write JSON there; - is standard output.")]
