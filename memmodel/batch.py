"""Run many tests: which files, under which models, against which expectations, on how many processes.

In: paths, models, perhaps a CSV of expectations. Out: one `Entry` for every test and model, in a fixed order. Settled
here: one bad file (or a crashed worker) costs its own entry and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path

from memmodel import api, cat
from memmodel.answer import Budget
from memmodel.base.codes import Exit
from memmodel.base.oneline import shown
from memmodel.base.resources import DEFAULT_MODEL, cache_dir, suite_dir
from memmodel.cache.verdicts import PosedQuestion, Verdicts
from memmodel.engine import Options
from memmodel.errors import BudgetSpent, InputError, TooLarge
from memmodel.isa.lower import refuse_beyond
from memmodel.limits import within_budget
from memmodel.lint.published import known_difference
from memmodel.ptx.targets import PtxLevel
from memmodel.report.expect import FAILS, HOLDS, word_for
from memmodel.report.report import Report, Status
from memmodel.source import STANDARD_INPUT, Source, Span
from memmodel.workers import Workers


class Outcome(Enum):
    """The result of one test under one model, spelled as suites print it."""

    AS_EXPECTED = "as expected"
    DIFFERS = "differs"
    KNOWN = "known difference"  # from a published suite that means something else than PTX does
    BAD = "bad"  # input that cannot be used
    UNDECIDED = "undecided"
    NO_EXPECTATION = "no expectation"
    INTERNAL = "internal error"


EXIT_CODES = {
    Outcome.AS_EXPECTED: Exit.AS_EXPECTED,
    Outcome.NO_EXPECTATION: Exit.AS_EXPECTED,
    Outcome.DIFFERS: Exit.DIFFERS,
    Outcome.KNOWN: Exit.AS_EXPECTED,
    Outcome.BAD: Exit.BAD_INPUT,
    Outcome.UNDECIDED: Exit.UNDECIDED,
    Outcome.INTERNAL: Exit.INTERNAL,
}
"""The exit code that each outcome asks for."""


@dataclass(frozen=True, slots=True)
class Job:
    """One file to run.

    `models` None: those that its Expect line names. `expected`: a CSV's word, or None for the file's own.
    `ask`: questions in place of the file's own.
    """

    path: str
    models: tuple[str, ...] | None = None
    expected: str | None = None
    ask: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """How every test of the suite is run.

    `against`: the model whose Expect words count, instead of the one run. `under`: models under which every test runs
    as well; where a file says nothing of one, what it expects of the default model is expected. `include`: folders that
    models may include from. `kept`: what was judged before is looked up, and what is judged now is kept. `resume`: a
    file that keeps what this run has done, undecided answers too. `confirm`: the engine that did not give an answer is
    asked as well. `level`: the PTX that a test may have.
    """

    engine: str = "auto"
    budget: Budget = field(default_factory=Budget)
    bound: int = 3
    against: str | None = None
    under: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    kept: bool = False
    resume: str | None = None
    confirm: bool = False
    level: PtxLevel = PtxLevel()


@dataclass(frozen=True, slots=True, repr=False)
class Entry:
    """One line of a suite's result: a report, or the message of what went wrong instead."""

    path: str
    model: str | None
    outcome: Outcome
    report: Report | None = None
    message: str = ""
    span: Span | None = None

    def __repr__(self) -> str:
        observed = self.report.answer.observation.value if self.report is not None else self.message
        return shown("Entry", self.outcome.value, f"{self.path} under {self.model}" if self.model else "", observed)


@dataclass(frozen=True, slots=True)
class Worklist:
    """The files to run, rows of the CSV whose file is missing, and files that the CSV does not list."""

    jobs: tuple[Job, ...]
    missing: tuple[Entry, ...] = ()
    unlisted: tuple[str, ...] = ()


# ---- which tests ---------------------------------------------------------------------------------------------


def plan(paths: Sequence[str], models: Sequence[str], csv: str | None = None) -> Worklist:
    """Decide what runs; no paths: the shipped suite. Raises InputError for a path that is missing or has no tests."""
    roots = list(paths) or [_near(suite_dir())]
    files = collect(roots)
    chosen = tuple(models) or None
    preload(models)
    if csv is None:
        return Worklist(tuple(Job(path, chosen) for path in files))
    base = roots[0] if len(roots) == 1 and Path(roots[0]).is_dir() else os.path.dirname(csv) or "."
    rows = {os.path.normpath(os.path.join(base, row)): (row, word) for row, word in read_csv(Source.read(csv)).items()}
    by_path = {os.path.normpath(path): path for path in files}
    wanted = chosen or (DEFAULT_MODEL,)
    whole = all(Path(path).is_dir() for path in roots)  # files named one by one are a selection: no row is missing
    return Worklist(
        tuple(Job(path, wanted, rows[key][1]) for key, path in by_path.items() if key in rows),
        tuple(
            Entry(key, None, Outcome.BAD, message=f"{csv}: lists {row}, which does not exist under {base}")
            for key, (row, _) in rows.items()
            if whole and key not in by_path
        ),
        tuple(path for key, path in by_path.items() if key not in rows),
    )


def _near(directory: Path) -> str:
    """A directory as a person would type it: relative if it lies below where they are."""
    relative = os.path.relpath(directory)
    return str(directory) if relative.startswith("..") else relative


def collect(paths: Iterable[str], *, missing: bool = False) -> list[str]:
    """Files as given and every `.litmus` file below the directories, sorted, each once.

    `missing`: a file that is not there is kept, to cost its own entry. Raises InputError.
    """
    files: dict[str, str] = {}
    for path in paths:
        if not os.path.isdir(path):
            if path != STANDARD_INPUT and not missing and not os.path.exists(path):
                raise InputError(f"{path}: no such file or directory")
            files.setdefault(os.path.normpath(path), path)
            continue
        walked = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        below = sorted(file for file in walked if file.endswith(".litmus"))
        if not below:
            raise InputError(f"{path}: no .litmus file here or below")
        for file in below:
            files.setdefault(os.path.normpath(file), file)
    return list(files.values())


def read_csv(source: Source) -> dict[str, str]:
    """Columns path,holds (1 or 0) as path -> `holds` or `fails`. Raises InputError with the line that is wrong."""
    rows: dict[str, str] = {}
    start = 0
    for number, line in enumerate(source.text.split("\n")):
        span = source.span(start, start + len(line))
        start += len(line) + 1
        cells = [cell.strip() for cell in line.rsplit(",", 1)]
        if number == 0 and cells != ["path", "holds"]:
            raise InputError("a file of expectations begins with the line `path,holds`", span, show_line=False)
        if number == 0 or not line.strip():
            continue
        if len(cells) != 2 or cells[1] not in ("0", "1"):
            raise InputError("expected `path,1` or `path,0`", span)
        path = cells[0].strip('"')
        if path in rows:
            raise InputError(f"{path} is listed twice", span)
        rows[path] = HOLDS if cells[1] == "1" else FAILS
    return rows


def preload(models: Iterable[str]) -> None:
    """Load models before any test runs, so that a bad one is one error. Raises InputError."""
    forget()  # one run, one state of each model
    for name in models:
        api.load(name)


# ---- running them --------------------------------------------------------------------------------------------


def workers(work: Worklist, settings: Settings, jobs: int = 1) -> Workers[Job, list[Entry]]:
    """The files of a worklist under way: the entries of each, in the order of the plan."""
    begin = partial(cat.configure, settings.include, kept=settings.kept)
    return Workers(work.jobs, jobs, partial(run_job, settings=settings), died, begin)


def run(work: Worklist, settings: Settings, jobs: int = 1) -> Iterator[list[Entry]]:
    """The entries of each file of a worklist; rows without a file come first."""
    yield from ([entry] for entry in work.missing)
    yield from workers(work, settings, jobs).results()


def run_job(job: Job, settings: Settings) -> list[Entry]:
    """One file under each of its models. Never raises: what goes wrong becomes an entry."""
    return list(_guarded(job.path, None, lambda: _run_file(job, settings)))


def _run_file(job: Job, settings: Settings) -> list[Entry]:
    verdicts = _verdicts(settings)
    with within_budget(settings.budget):
        asked = verdicts.posed(api.read(job.path), job.ask)
    if settings.level != PtxLevel():
        refuse_beyond(asked[0].steps.test, settings.level)
    options = Options(settings.engine, settings.budget, settings.bound)

    return [entry for posed in asked for entry in _question(job, posed, verdicts, options, settings)]


def _question(job: Job, posed: PosedQuestion, verdicts: Verdicts, options: Options, settings: Settings) -> list[Entry]:
    """One question of a file under each of its models. What a CSV expects is about the first."""
    expectations = posed.expectations
    named = tuple(dict.fromkeys(expectation.model for expectation in expectations))
    expected = job.expected if posed.number == 0 else None

    def judged(name: str, word: str | None) -> list[Entry]:
        if not job.models and name not in settings.under:
            word = word or word_for(expectations, settings.against or name)
            name = cat.named_by(job.path, name)
        with within_budget(settings.budget):
            report = verdicts.report(posed, name, options, expected=word, against=settings.against)
        if settings.confirm:
            with within_budget(settings.budget):
                report = api.confirmed(report, posed.steps, api.load(name), options)
        known = known_difference(posed.steps) if job.expected and report.status is Status.DIFFERS else None
        outcome = _OUTCOMES[report.status] if known is None else Outcome.KNOWN
        return [Entry(job.path, report.model, outcome, report, known or "")]

    models = job.models or named or (DEFAULT_MODEL,)
    wanted = [(name, expected) for name in models]
    for name in settings.under:
        if name not in models:
            wanted.append((name, word_for(expectations, name) or word_for(expectations, DEFAULT_MODEL)))
    return [
        entry
        for name, word in wanted
        for entry in _guarded(job.path, name, lambda name=name, word=word: judged(name, word))  # type: ignore[misc]
    ]


_OUTCOMES = {status: Outcome(status.value) for status in Status}


_VERDICTS: dict[tuple[Path | None, str | None], Verdicts] = {}
"""What this process knows of models and verdicts, by where they are kept."""


def _verdicts(settings: Settings) -> Verdicts:
    place = (cache_dir() if settings.kept else None, settings.resume)
    if place not in _VERDICTS:
        _VERDICTS[place] = Verdicts.at(*place)
    return _VERDICTS[place]


def forget() -> None:
    """Look at models and at what is kept anew from now on."""
    for known in _VERDICTS.values():
        known.close()
    _VERDICTS.clear()


def trouble(settings: Settings) -> str:
    """Why verdicts are not kept although they should be; empty while all is well. Raises InputError."""
    return _verdicts(settings).trouble


def _guarded(path: str, model: str | None, work: Callable[[], list[Entry]]) -> list[Entry]:
    try:
        return work()
    except Exception as error:
        return [failed(path, model, error)]


def failed(path: str, model: str | None, error: Exception) -> Entry:
    """The entry of a test that could not be judged: a bug of ours in one must not hide the results of the others."""
    if isinstance(error, InputError):
        outcome = Outcome.UNDECIDED if isinstance(error, TooLarge) else Outcome.BAD
        return Entry(path, model, outcome, message=error.render(), span=error.span)
    if isinstance(error, BudgetSpent):
        return Entry(path, model, Outcome.UNDECIDED, message=f"undecided: {path}: {error}")
    if isinstance(error, MemoryError | RecursionError):
        what = "memory ran out" if isinstance(error, MemoryError) else "it is nested more deeply than can be followed"
        return Entry(path, model, Outcome.UNDECIDED, message=f"undecided: {path}: {what}")
    message = f"internal error in {path}: {type(error).__name__}: {error}; please report it"
    return Entry(path, model, Outcome.INTERNAL, message=message)


def died(job: Job, killed: bool) -> list[Entry]:
    """The entry of a file whose process ended."""
    if killed:
        message = f"undecided: {job.path}: the process that judged it was killed (did memory run out?)"
        return [Entry(job.path, None, Outcome.UNDECIDED, message=message)]
    message = f"internal error in {job.path}: its process died; please report it"
    return [Entry(job.path, None, Outcome.INTERNAL, message=message)]


# ---- the sum -------------------------------------------------------------------------------------------------


def summary(entries: Sequence[Entry], unlisted: int, seconds: float) -> str:
    """`105 tests: 105 as expected, 0 differ, 0 bad, 0 undecided (1.9 s)`; rarer counts only when there are any."""
    count = {outcome: sum(entry.outcome is outcome for entry in entries) for outcome in Outcome}
    files = len({entry.path for entry in entries})
    head = f"{files} test{'' if files == 1 else 's'}"
    if files != len(entries):
        head += f", {len(entries)} verdicts"
    parts = [
        f"{count[Outcome.AS_EXPECTED]} as expected",
        f"{count[Outcome.DIFFERS]} differ",
        f"{count[Outcome.BAD]} bad",
        f"{count[Outcome.UNDECIDED]} undecided",
    ]
    confirmations = [entry.report.confirmation for entry in entries if entry.report and entry.report.confirmation]
    asked, confirmed = len(confirmations), sum(confirmation.agrees for confirmation in confirmations)
    rare = (
        (confirmed, "confirmed"),
        (asked - confirmed, "not confirmed"),
        (count[Outcome.KNOWN], "known differences"),
        (count[Outcome.NO_EXPECTATION], "without expectation"),
        (count[Outcome.INTERNAL], "internal errors"),
        (unlisted, "not listed"),
    )
    parts += [f"{number} {words}" for number, words in rare if number]
    return f"{head}: {', '.join(parts)} ({seconds:.1f} s)"
