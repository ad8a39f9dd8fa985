"""A page about many tests: each file is one job, with its verdicts, explanations, pictures and repairs.

In: jobs, what is shown of each. Out: the pieces of one HTML page, a line on the run, and an exit code. Settled here: a
signal ends the run, and what is done by then is in the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from memmodel import batch
from memmodel.cli.exits import Exit, complain, say, worst
from memmodel.cli.terminal import ticker
from memmodel.errors import BudgetSpent, InputError, exhausted

if TYPE_CHECKING:
    from memmodel.report.page.sheet import Repairs, Sheet
    from memmodel.report.report import Report


@dataclass(frozen=True, slots=True)
class PageSettings:
    """How each test is judged, and what its sheet shows."""

    batch: batch.Settings
    readings: bool
    """True if the sheet shows on which readings of the model the verdict depends."""
    seconds: float
    """The time for the repairs of one test; 0: no repairs are looked for."""
    most_repairs: int
    """The largest number of repairs of one test."""


@dataclass(frozen=True, slots=True)
class FileSheets:
    """The verdicts of one file, and a sheet for each."""

    entries: tuple[batch.Entry, ...]
    sheets: tuple[Sheet, ...]


def write_page(
    work: list[batch.Job],
    settings: PageSettings,
    jobs: int,
    title: str,
    write: Callable[[Iterator[str]], None],
    *,
    quiet: bool = False,
) -> Exit:
    """Do all jobs and write the page. After a signal, the page has the jobs that were finished."""
    from memmodel import cat
    from memmodel.batch import EXIT_CODES
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
        if not sheets:  # no job was finished: an older page is kept
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
    return worst([EXIT_CODES[entry.outcome] for entry in entries])


def _file(job: batch.Job, settings: PageSettings) -> FileSheets:
    """One file under its models. Never raises: what goes wrong becomes a sheet."""
    entries = batch.run_job(job, settings.batch)
    repairs: dict[str, Repairs] = {}
    sheets = tuple(_sheet(entry, settings, repairs) for entry in entries)
    return FileSheets(tuple(map(_without_report, entries)), sheets)


def _without_report(entry: batch.Entry) -> batch.Entry:
    """An entry without its report, which the summary does not need; the message says why it is undecided."""
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
    """True if a repair may help: the report has findings, or an outcome that the test forbids."""
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
        search = fix(source.name, source.text, model, options, most=settings.most_repairs, seconds=settings.seconds)
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
