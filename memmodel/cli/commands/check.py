"""The commands that judge tests: `check`, `outcomes` and `suite`.

In: what was typed. Out: reports, final states or a line for each surprise, as text, JSON or JUnit, and an exit code.
"""

from __future__ import annotations

import sys

import click

from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cli.exits import Exit, complain, guarded, not_kept, say, write_json
from memmodel.cli.options import (
    Judging,
    ask_option,
    asked_level,
    confirm_option,
    file_argument,
    files_argument,
    include_option,
    jobs_option,
    json_option,
    judging_options,
    model_option,
    models_option,
    no_cache_option,
    one_model_option,
    ptx_version_option,
    target_option,
)
from memmodel.cli.terminal import style_for
from memmodel.errors import InputError


@click.command()
@files_argument
@models_option
@click.option("--strict-names", is_flag=True, help="Refuse a model with a name that no PTX test has; else it is empty.")
@ask_option
@judging_options
@confirm_option
@json_option
@no_cache_option
@include_option
@ptx_version_option
@target_option
@click.option("--readings", is_flag=True, help="Ask every reading of the documents: forbidden, allowed, depends.")
@guarded
def check(
    files: tuple[str, ...],
    model: tuple[str, ...],
    strict_names: bool,
    ask: tuple[str, ...],
    judging: Judging,
    confirm: bool,
    json_out: str | None,
    no_cache: bool,
    include: tuple[str, ...],
    ptx_version: str | None,
    target: str | None,
    readings: bool,
) -> Exit:
    """Say what happens to each test's condition, and why.

    A question is `exists (P1:r0 == 0)`, `~exists …`, `forall …`, or `exists` with race, hang, hazard or undefined.
    Also whether that is what the file expects of the model. Exit code: 0 as expected, 1 differs, 2 bad input, 3
    undecided. With --readings the answer is forbidden, allowed or depends, and the code 0 if every model could tell.
    """
    from memmodel import batch
    from memmodel.cli.models import warn_about_models
    from memmodel.cli.results import Results
    from memmodel.limits import within_budget
    from memmodel.report.text import explain as text_of

    # A kept verdict has no execution to explain, so a check judges anew; only models are kept.
    level = asked_level(ptx_version, target)
    settings = batch.Settings(judging.engine, judging.cost(), judging.bound, confirm=confirm, level=level)
    if readings and confirm:
        raise InputError("--confirm goes with a check of one model, not with --readings")
    if readings:
        if model:
            raise InputError("--readings runs the default model and its readings", hint="drop --model")
        from memmodel.cli.listing import run_readings

        return run_readings(batch.collect(files, missing=True), settings, ask, json_out=json_out)
    models = model or (DEFAULT_MODEL,)
    warn_about_models(models, include, strict_names=strict_names, kept=not no_cache)
    with within_budget(settings.budget):
        batch.preload(models)
    codes: list[Exit] = []
    paths = batch.collect(files, missing=True)
    with Results(json_out) as results:
        for path in paths:
            for entry in batch.run_job(batch.Job(path, models, ask=ask), settings):
                codes.append(batch.EXIT_CODES[entry.outcome])
                results.entry(entry, explained=True)
                if entry.report is None:
                    complain(entry.message)
                elif json_out != "-":
                    say(text_of(entry.report, style_for(sys.stdout)))
    not_kept(batch.trouble(settings))
    return results.exit_code(codes)


@click.command()
@file_argument
@one_model_option
@judging_options
@json_option
@include_option
@guarded
def outcomes(file: str, model: str, judging: Judging, json_out: str | None, include: tuple[str, ...]) -> Exit:
    """List all final states, and which satisfy the condition."""
    from memmodel import api
    from memmodel.cli.models import warn_about_models
    from memmodel.limits import within_budget
    from memmodel.report.text import outcomes_lines

    warn_about_models((model,), include)
    cost = judging.cost()
    with within_budget(cost):
        outcomes = api.outcomes(file, model, engine=judging.engine, budget=cost, bound=judging.bound)
    if json_out != "-":
        say("\n".join(outcomes_lines(outcomes, style_for(sys.stdout))))
    if json_out:
        from memmodel.report.record import states

        write_json(json_out, states(outcomes, file, model))
    return Exit.AS_EXPECTED if outcomes.complete else Exit.UNDECIDED


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH...]", help="Files and directories; none: the shipped suite.")
@model_option(multiple=True, help="A shipped model or a cat file; may be repeated.")
@click.option("--expected", metavar="CSV", help="Columns path,holds (1 or 0); only its rows run.")
@click.option("--against", metavar="NAME", help="Expect what the files say of this model.")
@click.option("--under", multiple=True, metavar="NAME|PATH", help="Run every test under this model or reading as well.")
@click.option("--no-expect", is_flag=True, help="Run even if no test says what is expected of it.")
@jobs_option
@json_option
@include_option
@click.option("--junit", metavar="OUT", help="Write JUnit XML there.")
@judging_options
@confirm_option
@no_cache_option
@ptx_version_option
@target_option
@click.option("--resume", metavar="FILE", help="Keep what is done there, and go on from it.")
@click.option("--verbose", "-v", is_flag=True, help="A line for every test.")
@guarded
def suite(
    paths: tuple[str, ...],
    model: tuple[str, ...],
    expected: str | None,
    against: str | None,
    under: tuple[str, ...],
    no_expect: bool,
    jobs: int,
    json_out: str | None,
    include: tuple[str, ...],
    junit: str | None,
    judging: Judging,
    confirm: bool,
    no_cache: bool,
    ptx_version: str | None,
    target: str | None,
    resume: str | None,
    verbose: bool,
) -> Exit:
    """Run many tests and list those that are not as expected.

    Without --model each test runs under the models that its Expect line names. A model of your own has no Expect
    words: `--model my.cat --against ptx-9.4` shows what changes. Control-C ends a run with what is done in the files
    and in the sum; with --resume the same command goes on from there.
    """
    from memmodel import batch
    from memmodel.cli.listing import run_suite
    from memmodel.cli.models import warn_about_models
    from memmodel.limits import shared

    cost = shared(judging.cost(), jobs)
    settings = batch.Settings(
        judging.engine, cost, judging.bound, against, under, include, kept=not no_cache, resume=resume,
        confirm=confirm, level=asked_level(ptx_version, target),
    )  # fmt: skip
    warn_about_models(model, include, kept=not no_cache)
    work = batch.plan(paths, model, expected)
    batch.preload(settings.under)
    return run_suite(work, settings, jobs, json_out=json_out, junit_out=junit, verbose=verbose, no_expect=no_expect)
