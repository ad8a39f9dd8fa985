"""Options that several commands share, and how their text is read.

In: what was typed. Out: typed values. Settled here: `5M` is five million solver steps.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

from memmodel.answer import Budget
from memmodel.cli.grammar import Argument, Option
from memmodel.errors import InputError

if TYPE_CHECKING:
    from memmodel.engine import Options

LEAST_MEMORY = 50_000_000

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


def parse_budget(steps: str | None = None, timeout: float | None = None, memory: str | None = None) -> Budget:
    """What one answer may cost. `steps`: `200k`, `5M`, `1G` or a plain number; `memory` as well, in bytes.

    None: the default. Raises InputError.
    """
    default = Budget()
    effort = default.effort if steps is None else _amount(steps)
    if not 0 < effort < 2**32:  # the solver's counter has 32 bits
        hint = "such as 200k, 5M or 1000000, below 4G"
        raise InputError(f"--budget {(steps or '')[:40]}: not an amount of solver steps", hint=hint)
    size = None if memory is None else _amount(memory)
    if size is not None and size < LEAST_MEMORY:
        hint = "such as 500M or 4G, and no less than 50M"
        raise InputError(f"--memory {(memory or '')[:40]}: not an amount of memory", hint=hint)
    return Budget(effort, default.seconds if timeout is None else timeout, size)


def _amount(text: str) -> int:
    """A number with k, M or G behind it; 0 if it is none."""
    match = re.fullmatch(r"([0-9]{1,12})([kmg]?)", text.strip(), re.ASCII | re.IGNORECASE)
    return int(match[1]) * _FACTORS[match[2].lower()] if match else 0


def model_names(incomplete: str) -> list[str]:
    """For the shell: the models and readings whose names begin so."""
    from memmodel.api import reading_models
    from memmodel.cat import shipped_models

    return [name for name in dict.fromkeys((*shipped_models(), *reading_models())) if name.startswith(incomplete)]


Files = Annotated[
    list[str],
    Argument(metavar="PATH...", help="Litmus tests, directories of them, - for standard input."),
]
File = Annotated[str, Argument(metavar="FILE", help="A litmus test; - is standard input.")]
Ask = Annotated[
    list[str] | None,
    Option(
        "--ask",
        metavar="QUESTION",
        help="Ask this instead of the file's own questions, as in `exists race`; may be repeated.",
    ),
]
ModelName = Annotated[
    str,
    Option("--model", "-m", metavar="NAME|PATH", help="A shipped model or a cat file.", complete=model_names),
]
ModelNames = Annotated[
    list[str] | None,
    Option(
        "--model",
        "-m",
        metavar="NAME|PATH",
        help="A shipped model or a cat file; may be repeated.",
        complete=model_names,
    ),
]
CheckedModels = Annotated[
    list[str] | None,
    Option(
        "--model",
        "-m",
        metavar="NAME|PATH",
        help="A shipped model or a cat file; may be repeated. Default: ptx-9.3.",
        complete=model_names,
    ),
]
Includes = Annotated[
    list[str] | None,
    Option(
        "--allow-include",
        metavar="DIR",
        help="Models may include files below this folder as well as below their own; may be repeated.",
    ),
]
EngineName = Annotated[Engine, Option("--engine", help="Which engine answers.")]
StrictNames = Annotated[
    bool, Option("--strict-names", help="Refuse a model with a name that no PTX test has; else it is empty.")
]
BudgetText = Annotated[
    str | None,
    Option("--budget", metavar="STEPS", help="Solver steps for each test, such as 200k or 5M; default 100M."),
]
Timeout = Annotated[
    float | None,
    Option("--timeout", metavar="SECONDS", min=0.1, max=1e6, help="Seconds for each answer; default 120."),
]
MemoryText = Annotated[
    str | None,
    Option(
        "--memory",
        metavar="BYTES",
        help="For each answer, such as 2G; default: half of the machine's, at most 4G.",
    ),
]
Bound = Annotated[int, Option("--bound", min=1, max=64, help="Iterations of a loop that is unrolled.")]
JsonOut = Annotated[str | None, Option("--json", metavar="OUT", help="Write JSON there; - is standard output.")]
NoCache = Annotated[bool, Option("--no-cache", help="Judge everything anew, and keep nothing; see `memmodel cache`.")]


class Judging(NamedTuple):
    """How a test is judged: the options of every command that does."""

    engine: EngineName = Engine.AUTO
    bound: Bound = 3
    budget: BudgetText = None
    timeout: Timeout = None
    memory: MemoryText = None

    def cost(self) -> Budget:
        """What one answer may cost. Raises InputError."""
        return parse_budget(self.budget, self.timeout, self.memory)

    def options(self) -> Options:
        """As the engines take it. Raises InputError."""
        from memmodel.engine import Options

        return Options(self.engine.value, self.cost(), self.bound)
