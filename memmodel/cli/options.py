"""Options and arguments that several commands share, and how their text is read.

In: what was typed. Out: typed values. Settled here: `5M` is five million solver steps.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memmodel.answer import ENGINES, Budget
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cli.exits import complain
from memmodel.errors import InputError
from memmodel.ptx.targets import PtxLevel, version_of

if TYPE_CHECKING:
    from memmodel.engine import Options

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]

LEAST_MEMORY = 50_000_000

_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


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
    """A number with the suffix k, M or G; 0 for any other text."""
    match = re.fullmatch(r"([0-9]{1,12})([kmg]?)", text.strip(), re.ASCII | re.IGNORECASE)
    return int(match[1]) * _FACTORS[match[2].lower()] if match else 0


def model_names(incomplete: str) -> list[str]:
    """The models and readings whose names begin so."""
    from memmodel.api import reading_models
    from memmodel.cat import shipped_models

    return [name for name in dict.fromkeys((*shipped_models(), *reading_models())) if name.startswith(incomplete)]


def gathered(name: str, kind: type[Any], *options: Decorator[Any]) -> Decorator[Any]:
    """Options whose values a command takes together, as one object: a dataclass with a field for each."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def call(**typed: Any) -> Any:
            together = kind(**{field.name: typed.pop(field.name) for field in fields(kind)})
            return command(**typed, **{name: together})

        for option in reversed(options):
            call = option(call)
        return call

    return decorate


class TakesWordsAfterDashes(click.Command):
    """A command that takes the words after `--` as they are, as the parameter `after_dashes`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As in Command."""
        at = args.index("--") if "--" in args else len(args)
        left = super().parse_args(ctx, args[:at])
        ctx.params["after_dashes"] = tuple(args[at + 1 :])
        return left


def model_option(*, multiple: bool = False, default: str | None = None, help: str) -> Decorator[Any]:
    """--model, which the shell completes."""
    return click.option(
        "--model",
        "-m",
        multiple=multiple,
        metavar="NAME|PATH",
        default=default,
        show_default=default is not None,
        shell_complete=lambda _context, _parameter, incomplete: model_names(incomplete),
        help=help,
    )


files_argument = click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="PATH...",
    help="Litmus tests, directories of them, - for standard input.",
)
file_argument = click.argument("file", metavar="FILE", help="A litmus test; - is standard input.")
ask_option = click.option(
    "--ask",
    multiple=True,
    metavar="QUESTION",
    help="Ask this instead of the file's own questions, as in `exists race`; may be repeated.",
)
one_model_option = model_option(default=DEFAULT_MODEL, help="A shipped model or a cat file.")
models_option = model_option(
    multiple=True, help=f"A shipped model or a cat file; may be repeated. Default: {DEFAULT_MODEL}."
)
ptx_version_option = click.option(
    "--ptx-version", metavar="X.Y", help="Refuse what is younger than this version of PTX, such as 8.6."
)
target_option = click.option("--target", metavar="ARCH", help="Refuse what this target does not have, such as sm_90a.")


def asked_level(version: str | None, target: str | None) -> PtxLevel:
    """What `--ptx-version` and `--target` ask for. A version that the table does not know yet is told so."""
    level = PtxLevel.parse(version, target)
    if version is not None:
        from memmodel.isa.table import NEWEST  # loads what every instruction needs

        known = ".".join(map(str, NEWEST))
        if version_of(version) > NEWEST:
            complain(
                f"note: words mean what PTX {known} says, the newest version that is known; --ptx-version is {version}"
            )
    return level


include_option = click.option(
    "--allow-include",
    "include",
    multiple=True,
    metavar="DIR",
    help="Models may include files below this folder as well as below their own; may be repeated.",
)
budget_option = click.option(
    "--budget", metavar="STEPS", help="Solver steps for each test, such as 200k or 5M; default 100M."
)


class Seconds(click.FloatRange):
    """A number of seconds. `nan` is refused, though no bound excludes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As in FloatRange."""
        seconds = super().convert(value, param, ctx)
        if seconds != seconds:
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


timeout_option = click.option(
    "--timeout",
    type=Seconds(0.1, 1e6),
    metavar="SECONDS",
    help="Seconds for each answer; default 120.",
)
memory_option = click.option(
    "--memory", metavar="BYTES", help="For each answer, such as 2G; default: half of the machine's, at most 4G."
)
jobs_option = click.option("--jobs", "-j", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes.")
json_option = click.option("--json", "json_out", metavar="OUT", help="Write JSON there; - is standard output.")
confirm_option = click.option(
    "--confirm", is_flag=True, help="Ask the other engine too; if it answers otherwise, that is an internal error."
)
no_cache_option = click.option(
    "--no-cache", is_flag=True, help="Judge everything anew, and keep nothing; see `memmodel cache`."
)


@dataclass(frozen=True, slots=True)
class Judging:
    """How a test is judged: the options of every command that does."""

    engine: str
    bound: int
    budget: str | None
    timeout: float | None
    memory: str | None

    def cost(self) -> Budget:
        """What one answer may cost. Raises InputError."""
        return parse_budget(self.budget, self.timeout, self.memory)

    def options(self) -> Options:
        """As the engines take it. Raises InputError."""
        from memmodel.engine import Options

        return Options(self.engine, self.cost(), self.bound)


judging_options = gathered(
    "judging",
    Judging,
    click.option(
        "--engine", type=click.Choice(ENGINES), default="auto", show_default=True, help="Which engine answers."
    ),
    click.option(
        "--bound",
        type=click.IntRange(1, 64),
        default=3,
        show_default=True,
        help="Iterations of a loop that is unrolled.",
    ),
    budget_option,
    timeout_option,
    memory_option,
)
