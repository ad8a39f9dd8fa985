"""The command `diff`: two models, or one model at two times, on the same tests.

In: what was typed. Out: text, Markdown or JSON, and an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from memmodel.cli.commands.search import search_differences
from memmodel.cli.exits import Exit, complain, guarded, say, worst, write_json
from memmodel.cli.options import Judging, include_option, judging_options, no_cache_option
from memmodel.cli.searches import Searching, by_option, no_idle_option, searching_options, show_option
from memmodel.errors import InputError
from memmodel.output import STANDARD_OUTPUT

if TYPE_CHECKING:
    from memmodel.cat.syntax import Model
    from memmodel.compare.judge import Sides


@click.command()
@click.argument(
    "models_and_files",
    nargs=-1,
    required=True,
    metavar="MODEL_A MODEL_B [PATH...]",
    help="Two models; tests and directories of them.",
)
@click.option("--git", metavar="REV", help="One model only: as it was at this revision, and as it is.")
@click.option("--outcomes", is_flag=True, help="Leave findings out.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="What is printed.",
)
@click.option("--jobs", "-j", type=click.IntRange(0, 256), help="Processes; 0, and for a search: one for each core.")
@judging_options
@no_cache_option
@include_option
@click.option(
    "--search", type=click.IntRange(1, 12), metavar="N", help="Try all programs of up to N instructions instead."
)
@click.option(
    "--regressions",
    metavar="DIR",
    help="With --search: write the fewest programs that show every change, as tests with the answers of both models.",
)
@by_option
@no_idle_option
@searching_options
@show_option
@guarded
def diff(
    models_and_files: tuple[str, ...],
    git: str | None,
    outcomes: bool,
    form: str,
    jobs: int | None,
    judging: Judging,
    no_cache: bool,
    include: tuple[str, ...],
    search: int | None,
    regressions: str | None,
    by: str,
    no_idle: bool,
    searching: Searching,
    show: int,
) -> Exit:
    """Find programs, or list tests, on which two models differ.

    Without files the shipped tests are run under both models, those that differ are made smaller, and all smaller
    programs are tried, for --timeout seconds (60); the last line says what was tried. With files, compared are the
    final states, what happens to the question, and the findings. Each difference has its direction (the second model
    forbids more, allows more, or both) and what each model says of it. Exit code: 0 the same, as far as tried, 1 they
    differ, 2 bad input, 3 undecided and no difference known.
    """
    if search is not None:
        return search_differences(
            *_two_models(models_and_files, git, include),
            search,
            searching,
            outcomes=outcomes,
            by=by,
            no_idle=no_idle,
            jobs=jobs or 0,
            seconds=judging.timeout,
            memory=judging.memory,
            show=show,
            form=form,
            regressions=regressions,
        )
    if regressions is not None:
        raise InputError(
            "--regressions writes programs of a search", hint="memmodel diff A B --search 4 --regressions DIR"
        )
    if len(models_and_files) == (2 if git is None else 1):
        from memmodel.cli.smallest import smallest_differences

        return smallest_differences(
            *_two_models(models_and_files, git, include),
            outcomes=outcomes,
            jobs=jobs or 0,
            seconds=judging.timeout,
            memory=judging.memory,
            show=show,
            form=form,
            into=searching.into,
        )
    from memmodel.compare.judge import Sides
    from memmodel.engine import Options
    from memmodel.limits import shared
    from memmodel.workers import cores

    jobs = cores() if jobs == 0 else jobs or 1

    compared = _compared(models_and_files, git, include, not no_cache)
    options = Options(judging.engine, shared(judging.cost(), jobs), judging.bound)
    sides = Sides(compared.first, compared.second, compared.names, options, outcomes)
    return _on_tests(sides, compared.paths, form, jobs, include, kept=not no_cache)


def _on_tests(sides: Sides, paths: Sequence[str], form: str, jobs: int, include: Sequence[str], *, kept: bool) -> Exit:
    from memmodel import batch
    from memmodel.batch import EXIT_CODES
    from memmodel.cli.terminal import style_for, ticker
    from memmodel.compare import text
    from memmodel.compare.run import FileResult, run

    names = sides.names
    files = batch.plan(paths, ()).jobs
    style = style_for(sys.stdout)
    results: list[FileResult] = []
    with ticker(len(files)) as tick:
        for result in run([job.path for job in files], sides, kept=kept, jobs=jobs, include=include):
            results.append(result)
            if result.failure is not None or (form == "text" and result.contrasts):
                tick.hide()
            if result.failure is not None:
                complain(result.failure.message)
            for contrast in result.contrasts if form == "text" else ():
                if contrast.differs:
                    say("\n".join(text.lines(contrast, names, style)))
                elif contrast.undecided:
                    say(text.undecided_line(contrast))
            tick.done(result.path)
    if form == "json":
        write_json(STANDARD_OUTPUT, text.record(results, names))
    else:
        say(text.markdown(results, names) if form == "markdown" else text.summary(results, names))
    exits = [EXIT_CODES[result.failure.outcome] for result in results if result.failure is not None]
    contrasts = [contrast for result in results for contrast in result.contrasts]
    exits += [Exit.DIFFERS for contrast in contrasts if contrast.differs]
    exits += [Exit.UNDECIDED for contrast in contrasts if contrast.undecided]
    return worst(exits)


def _two_models(words: Sequence[str], revision: str | None, include: Sequence[str]) -> tuple[str | Model, str]:
    """The models of a search. Raises InputError."""
    if len(words) != (2 if revision is None else 1):
        raise InputError(
            "a search is about two models and no files",
            hint="memmodel diff MODEL_A MODEL_B --search 4, or memmodel diff --git REV MODEL --search 4",
        )
    if revision is None:
        return words[0], words[1]
    compared = _compared(words, revision, include, True)
    return compared.first, compared.second


class ModelsAndTests(NamedTuple):
    """The models that `diff` compares, their names, and the paths of tests."""

    first: str | Model
    second: str
    names: tuple[str, str]
    paths: list[str]


def _compared(words: Sequence[str], revision: str | None, include: Sequence[str], kept: bool) -> ModelsAndTests:
    """The models and paths that were typed. Raises InputError."""
    from memmodel.cli.models import warn_about_models

    if revision is not None:
        from memmodel.compare.git import model_at

        warn_about_models(words[:1], include, kept=kept)
        first = model_at(revision, words[0])
        names = first.name, first.name.removesuffix(f" at {revision}")
        return ModelsAndTests(first, words[0], names, list(words[1:]))
    if len(words) < 2:
        raise InputError("two models are compared", hint="or one with its version at a revision: --git REV")
    warn_about_models(words[:2], include, kept=kept)
    return ModelsAndTests(words[0], words[1], _names(words[0], words[1]), list(words[2:]))


def _names(first: str, second: str) -> tuple[str, str]:
    """The names of two models, or what was typed where these are the same."""
    from memmodel import api

    names = api.load(first).name, api.load(second).name
    return names if names[0] != names[1] else (first, second)
