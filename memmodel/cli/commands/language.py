"""The commands about litmus and cat text: `fmt` prints tests, `names` and `models` list what a cat file may use.

In: what was typed. Out: a test in its canonical form, or tables, and an exit code.
"""

from __future__ import annotations

import click

from memmodel.cli.exits import Exit, guarded, say
from memmodel.cli.options import file_argument, include_option
from memmodel.litmus.syntax import Layout
from memmodel.output import replace_text


@click.command()
@file_argument
@click.option("--layout", type=click.Choice(["columns", "blocks"]), help="Default: the file's own.")
@click.option("--in-place", "-i", is_flag=True, help="Rewrite the file.")
@guarded
def fmt(file: str, layout: str | None, in_place: bool) -> Exit:
    """Print a test in its canonical form, or in the other layout.

    What --layout prints means the same; what the other layout cannot say is refused.
    """
    from memmodel.library import format
    from memmodel.source import TAKE_DIRECTORIES, Source

    source = Source.read(file, TAKE_DIRECTORIES)
    text = format(source, None if layout is None else Layout(layout))
    if not in_place:
        say(text.rstrip("\n"))
    elif text != source.text:
        replace_text(file, text)
    return Exit.AS_EXPECTED


@click.command()
@click.option("--model", "-m", metavar="NAME|PATH", help="List this model's own names as well.")
@include_option
@guarded
def names(model: str | None, include: tuple[str, ...]) -> Exit:
    """List the sets and relations that a cat file may use.

    With --model also what that model defines and checks, and for the default model the decisions that it takes.
    """
    from memmodel.cli.listing import base_names, model_names
    from memmodel.cli.models import warn_about_models
    from memmodel.cli.tables import show

    warn_about_models((model,) if model is not None else (), include)
    show([*base_names(), *(model_names(model) if model is not None else ())])
    return Exit.AS_EXPECTED


@click.command()
@guarded
def models() -> Exit:
    """List the shipped models, and the readings of the default.

    A reading is the default model with one open question of the documents answered the other way.
    """
    from memmodel.cli.listing import shipped
    from memmodel.cli.tables import show

    show([shipped()])
    return Exit.AS_EXPECTED
