"""The program `memmodel`: its commands by name, and what holds for all of them.

In: argv. Out: what the command that was named makes of it. Settled here: a command is loaded when it is called, or when
all are listed; defaults come from the project.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from memmodel.cli.exits import Exit, complain, say
from memmodel.errors import InputError, nearest

COMMANDS = {
    "check": "check",
    "outcomes": "check",
    "suite": "check",
    "draw": "explain",
    "fmt": "language",
    "names": "language",
    "models": "language",
    "ptx": "ptx",
    "kernel": "kernel",
    "record": "record",
    "explain": "explain",
    "fix": "repair",
    "weaken": "repair",
    "sync": "sync",
    "report": "report",
    "schema": "schema",
    "diff": "diff",
    "mutate-model": "mutate_model",
    "synth": "search",
    "verify": "search",
    "lsp": "lsp",
    "cache": "cache",
}
"""The commands in the order in which help lists them, and the file of `cli/commands` that has each."""


class CommandGroup(click.Group):
    """A group whose commands are loaded when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, loaded now."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"memmodel.cli.commands.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, but propose the nearest of all commands: click knows only those that are loaded."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            name = error.command_name[:80]
            near = nearest(name, COMMANDS)
            raise click.exceptions.NoSuchCommand(name, possibilities=near and [near], ctx=ctx) from None


def _version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        import memmodel

        say(f"memmodel {memmodel.__version__}")
        context.exit()


def _completion(context: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    if shell is None:
        return
    from memmodel.cli.completion import install, script, shell_of

    try:
        chosen = shell_of(shell)
        say(script(app, chosen) if parameter.name == "show_completion" else install(app, chosen))
    except InputError as error:
        complain(error.render())
        context.exit(Exit.BAD_INPUT)
    context.exit()


_COMPLETION: dict[str, Any] = {
    "metavar": "[SHELL]",
    "is_flag": False,
    "flag_value": "auto",
    "expose_value": False,
    "is_eager": True,
    "callback": _completion,
}


@click.command(cls=CommandGroup, no_args_is_help=True)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Print the version and exit.",
)
@click.option("--install-completion", **_COMPLETION, help="Install completion for a shell; default: the one in $SHELL.")
@click.option("--show-completion", **_COMPLETION, help="Print the completion script of a shell.")
@click.pass_context
def app(context: click.Context) -> None:
    """What does the PTX memory model let these threads observe?"""
    from memmodel.cli.config import defaults

    try:
        context.default_map = {name: dict(values) for name, values in defaults().items()}
    except InputError as error:
        complain(error.render())
        context.exit(Exit.BAD_INPUT)
