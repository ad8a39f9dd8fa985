"""The command that writes a page about many tests: `report`.

In: what was typed. Out: one HTML file, a line on the run, and an exit code.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cli.exits import Exit, give, guarded
from memmodel.cli.options import (
    Judging,
    Seconds,
    ask_option,
    files_argument,
    include_option,
    jobs_option,
    judging_options,
    models_option,
)
from memmodel.output import STANDARD_OUTPUT, Replacement


@click.command()
@files_argument
@click.option("--output", "-o", required=True, metavar="OUT", help="An HTML file; - is standard output.")
@models_option
@ask_option
@click.option("--title", default="memmodel report", show_default=True, help="What the page is called.")
@click.option("--readings", is_flag=True, help="Also which reading of the documents makes a difference.")
@click.option("--fix", is_flag=True, help="Also the repairs of what is wrong; this takes longest.")
@click.option("--max", "most", type=click.IntRange(1, 50), default=2, show_default=True, help="Repairs of each test.")
@click.option(
    "--search",
    type=Seconds(1, 1e6),
    metavar="SECONDS",
    default=20.0,
    show_default=True,
    help="Time for the repairs of each test.",
)
@jobs_option
@judging_options
@include_option
@guarded
def report(
    files: tuple[str, ...],
    output: str,
    model: tuple[str, ...],
    ask: tuple[str, ...],
    title: str,
    readings: bool,
    fix: bool,
    most: int,
    search: float,
    jobs: int,
    judging: Judging,
    include: tuple[str, ...],
) -> Exit:
    """Write one HTML page: verdicts, reasons, pictures, repairs.

    The page needs no other file and no network. Exit code as `check`: 0 as expected, 1 differs, 2 bad input, 3
    undecided. Control-C ends the run; what is done by then is in the page.
    """
    from memmodel import batch
    from memmodel.cli.models import warn_about_models
    from memmodel.cli.pages import PageSettings, write_page
    from memmodel.limits import shared

    models = model or (DEFAULT_MODEL,)
    warn_about_models(models, include)
    cost = shared(judging.cost(), jobs)
    settings = PageSettings(
        batch.Settings(judging.engine, cost, judging.bound, include=include),
        readings,
        search if fix else 0.0,
        most,
    )
    work = [batch.Job(path, models, ask=ask) for path in batch.collect(files, missing=True)]
    batch.preload(models)
    if output == STANDARD_OUTPUT:
        return write_page(work, settings, jobs, title, lambda pieces: give("".join(pieces)), quiet=True)
    with Replacement(output) as file:

        def write(pieces: Iterator[str]) -> None:
            at = 0
            for piece in pieces:
                at = file.put(piece, at)
            file.keep()

        return write_page(work, settings, jobs, title, write)
