"""Completion of what is typed in a shell: print the script, or put it where the shell looks.

In: the name of a shell (none: the one in $SHELL). Out: text, or a file in the person's own folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from memmodel.errors import InputError

SHELLS = ("bash", "zsh", "fish")


def shell_of(name: str) -> str:
    """The shell that was named, or the person's own. Raises InputError for one that is not supported."""
    shell = name if name != "auto" else Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise InputError(f"no completion for the shell `{shell}`", hint=f"name one of {', '.join(SHELLS)}")
    return shell


def script(command: click.Command, shell: str) -> str:
    """The shell's own code that asks the program what may follow."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    return kind(command, {}, "memmodel", "_MEMMODEL_COMPLETE").source()


def install(command: click.Command, shell: str) -> str:
    """Write the script where the shell finds it; say what is left to do."""
    from memmodel.output import write_text

    home = Path.home()
    place = {
        "bash": home / ".local/share/bash-completion/completions/memmodel",
        "zsh": home / ".zfunc/_memmodel",
        "fish": home / ".config/fish/completions/memmodel.fish",
    }[shell]
    place.parent.mkdir(parents=True, exist_ok=True)
    write_text(str(place), script(command, shell) + "\n")
    more = "; ~/.zshrc needs `fpath+=~/.zfunc; autoload -Uz compinit; compinit`" if shell == "zsh" else ""
    return f"completion for {shell} is in {place}{more}; it works in the next shell"
