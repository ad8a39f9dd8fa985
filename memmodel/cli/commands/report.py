"""The command that writes a page about many tests: `report`.

In: what was typed. Out: one HTML file, a line on the run, and an exit code. Settled here: each file is one job, with
its verdicts, explanations, pictures and repairs; a signal ends the run, and what is done by then is in the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import click

from memmodel import batch
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cli.exits import Exit, complain, give, guarded, say, worst
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
from memmodel.cli.terminal import ticker
from memmodel.errors import BudgetSpent, InputError, exhausted
from memmodel.output import STANDARD_OUTPUT, Replacement

if TYPE_CHECKING:
    from memmodel.report.page.sheet import Repairs, Sheet
    from memmodel.report.report import Report


@dataclass(frozen=True, slots=True)
class PageSettings:
    """What is shown of every test. `seconds` 0: no repairs are looked for."""

    batch: batch.Settings
    readings: bool
    seconds: float
    most: int


@dataclass(frozen=True, slots=True)
class FileSheets:
    """What became of one file: its verdicts, and a sheet for each."""

    entries: tuple[batch.Entry, ...]
    sheets: tuple[Sheet, ...]


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
    from memmodel.cli.models import warn_about_models
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
        return _run(work, settings, jobs, title, lambda pieces: give("".join(pieces)), quiet=True)
    with Replacement(output) as file:

        def write(pieces: Iterator[str]) -> None:
            at = 0
            for piece in pieces:
                at = file.put(piece, at)
            file.keep()

        return _run(work, settings, jobs, title, write)


def _run(
    work: list[batch.Job],
    settings: PageSettings,
    jobs: int,
    title: str,
    write: Callable[[Iterator[str]], None],
    *,
    quiet: bool = False,
) -> Exit:
    """Do all jobs and write the page; after a signal, with what there is."""
    from memmodel import cat
    from memmodel.library import CODES
    from memmodel.report.page.page import page
    from memmodel.workers import Workers

    begin = partial(cat.configure, settings.batch.include, kept=False)
    workers = Workers(work, jobs, partial(_file, settings=settings), _died, begin)
    entries: list[batch.Entry] = []
    sheets: list[Sheet] = []
    started = perf_counter()

    with ticker(len(work)) as tick:

        def take(done: FileSheets) -> None:
            entries.extend(done.entries)
            sheets.extend(done.sheets)
            tick.done(done.entries[0].path)

        stopped = workers.each(take)
    summary = batch.summary(entries, 0, perf_counter() - started)
    if stopped is not None:
        finished = len({entry.path for entry in entries})
        if not sheets:  # nothing was done: what was there before is better
            raise stopped
        write(page(sheets, title, f"Stopped after {finished} of {len(work)}."))
        say(f"stopped after {finished} of {len(work)}: {summary}")
        raise stopped
    write(page(sheets, title))
    for entry in entries:
        if entry.outcome in (batch.Outcome.BAD, batch.Outcome.INTERNAL, batch.Outcome.UNDECIDED):
            complain(entry.message)
    if not quiet:
        say(summary)
    return worst([CODES[entry.outcome] for entry in entries])


def _file(job: batch.Job, settings: PageSettings) -> FileSheets:
    """One file under its models. Never raises: what goes wrong becomes a sheet."""
    entries = batch.run_job(job, settings.batch)
    repairs: dict[str, Repairs] = {}
    sheets = tuple(_sheet(entry, settings, repairs) for entry in entries)
    return FileSheets(tuple(map(_without_report, entries)), sheets)


def _without_report(entry: batch.Entry) -> batch.Entry:
    """What the summary needs of an entry, and why it is undecided."""
    message = entry.message
    if entry.report is not None and entry.outcome is batch.Outcome.UNDECIDED:
        message = f"undecided: {entry.path}: {entry.report.answer.reason or entry.report.answer.unsearched}"
    return replace(entry, report=None, span=None, message=message)


def _sheet(entry: batch.Entry, settings: PageSettings, known: dict[str, Repairs]) -> Sheet:
    from memmodel import api
    from memmodel.report.page.sheet import Repairs, failed, sheet_of

    report = entry.report
    if report is None:
        return failed(entry.path, entry.model, entry.outcome.value, entry.message)
    try:
        repairs = Repairs()
        if settings.seconds and _is_wrong(report):
            repairs = known.get(report.model) or _repairs(report, settings)
            known[report.model] = repairs
        depends = partial(api.depends, report) if settings.readings else None
        return sheet_of(report, entry.outcome.value, repairs, depends)
    except (MemoryError, RecursionError) as error:
        message = f"no explanation: {exhausted(error)}"
    except BudgetSpent as spent:
        message = f"no explanation: {spent}"
    except Exception as error:  # a bug of ours in one explanation must not hide the verdicts of the others
        message = f"internal error: {type(error).__name__}: {error}; please report it"
    return failed(entry.path, entry.model, entry.outcome.value, f"{report!r}\n{message}")


def _is_wrong(report: Report) -> bool:
    """True if there is something that a repair would be for."""
    from memmodel.answer import Observation
    from memmodel.litmus.syntax import Quantifier

    if report.answer.findings:
        return True
    observed = report.answer.observation in (Observation.SOMETIMES, Observation.ALWAYS)
    if report.quantifier is Quantifier.FORALL:
        return report.holds is False
    return report.finding is None and observed


def _repairs(report: Report, settings: PageSettings) -> Repairs:
    from memmodel.repair.fix import fix
    from memmodel.report.page.sheet import Repairs, ShownRepair

    subject = report.subject
    source = subject.lowered.test.source if subject is not None else None
    if subject is None or source is None:
        return Repairs()
    model, options = (subject.model,), subject.options
    try:
        search = fix(source.name, source.text, model, options, most=settings.most, seconds=settings.seconds)
    except (BudgetSpent, InputError) as error:
        return Repairs(note=f"No repairs: {error}.")
    shown = (
        ShownRepair(
            repair.cost,
            tuple(edit.what for edit in repair.changes),
            repair.diff(),
            tuple(tuple(other) for other in repair.instead),
        )
        for repair in search.repairs
    )
    reason = search.reason or ("" if search.repairs else "Nothing is wrong.")
    return Repairs(tuple(shown), reason[:1].upper() + reason[1:])


def _died(job: batch.Job, killed: bool) -> FileSheets:
    from memmodel.report.page.sheet import failed

    entries = batch.died(job, killed)
    sheets = (failed(job.path, None, entry.outcome.value, entry.message) for entry in entries)
    return FileSheets(tuple(entries), tuple(sheets))
