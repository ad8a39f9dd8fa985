"""Run many tests: which files, under which models, against which expectations, on how many processes.

In: paths, models, perhaps a CSV of expectations. Out: one `Entry` for every test and model, in a fixed order. Settled
here: one bad file (or a crashed worker) costs its own entry and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from memmodel import api, cat
from memmodel.answer import Budget
from memmodel.base.classes import dataclass, field
from memmodel.base.resources import suite_dir
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import InputError, TooLarge
from memmodel.lint.published import known_difference
from memmodel.program.lowered import LoweredTest
from memmodel.report.expect import FAILS, HOLDS, expected_word
from memmodel.report.report import Report, Status
from memmodel.source import STANDARD_INPUT, Source, Span

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.connection import Connection


class Outcome(Enum):
    """What became of one test under one model. Its spelling is what suites print."""

    AS_EXPECTED = "as expected"
    DIFFERS = "differs"
    KNOWN = "known difference"  # from a published suite that means something else than PTX does
    BAD = "bad"  # input that cannot be used
    UNDECIDED = "undecided"
    NO_EXPECTATION = "no expectation"
    INTERNAL = "internal error"


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
    models may include from.
    """

    engine: str = "auto"
    budget: Budget = field(default_factory=Budget)
    bound: int = 3
    against: str | None = None
    under: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a suite's result: a report, or the message of what went wrong instead."""

    path: str
    model: str | None
    outcome: Outcome
    report: Report | None = None
    message: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Worklist:
    """The files to run, rows of the CSV whose file is missing, and files that the CSV does not list."""

    jobs: tuple[Job, ...]
    missing: tuple[Entry, ...] = ()
    unlisted: tuple[str, ...] = ()


# ---- which tests ---------------------------------------------------------------------------------------------


def plan(paths: Sequence[str], models: Sequence[str], csv: str | None = None) -> Worklist:
    """Decide what runs; no paths: the shipped suite. Raises InputError for a path that is missing or has no tests."""
    given = list(paths) or [_near(suite_dir())]
    files = collect(given)
    chosen = tuple(models) or None
    preload(models)
    if csv is None:
        return Worklist(tuple(Job(path, chosen) for path in files))
    base = given[0] if len(given) == 1 and Path(given[0]).is_dir() else os.path.dirname(csv) or "."
    rows = {os.path.normpath(os.path.join(base, row)): (row, word) for row, word in read_csv(Source.read(csv)).items()}
    found = {os.path.normpath(path): path for path in files}
    wanted = chosen or (api.DEFAULT_MODEL,)
    whole = all(Path(path).is_dir() for path in given)  # files named one by one are a selection: no row is missing
    return Worklist(
        tuple(Job(path, wanted, rows[key][1]) for key, path in found.items() if key in rows),
        tuple(
            Entry(key, None, Outcome.BAD, message=f"{csv}: lists {row}, which does not exist under {base}")
            for key, (row, _) in rows.items()
            if whole and key not in found
        ),
        tuple(path for key, path in found.items() if key not in rows),
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
    _MODELS.clear()  # one run, one state of each model
    for name in models:
        _model(name)


# ---- running them --------------------------------------------------------------------------------------------


class Running:
    """A worklist under way: its entries file by file, in the order of the plan; rows without a file come first."""

    def __init__(self, work: Worklist, settings: Settings, jobs: int = 1) -> None:
        self._work, self._settings = work, settings
        self._workers = min(jobs, len(work.jobs))
        self._given = 0
        self._futures: list[Future[list[Entry]]] = []

    def groups(self) -> Iterator[list[Entry]]:
        """The entries of each file, as they come."""
        yield from ([entry] for entry in self._work.missing)
        if self._workers > 1:
            yield from self._parallel()
        else:
            yield from (run_job(job, self._settings) for job in self._work.jobs)

    def done(self) -> Iterator[list[Entry]]:
        """After `groups` was broken off: what was ready but had to wait for its turn."""
        for future in self._futures[self._given :]:
            if future.done() and not future.cancelled() and future.exception() is None:
                yield future.result()

    def _parallel(self) -> Iterator[list[Entry]]:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(self._workers, initializer=_worker, initargs=(self._settings,)) as pool:
            self._futures = [pool.submit(run_job, job, self._settings) for job in self._work.jobs]
            try:
                for job, future in zip(self._work.jobs, self._futures, strict=True):
                    group = _result(job, future, self._settings)
                    self._given += 1
                    yield group
            except BaseException:  # a signal, or the reader of our output is gone: do not wait for tests under way
                _abandon(pool)
                raise


def run(work: Worklist, settings: Settings, jobs: int = 1) -> Iterator[list[Entry]]:
    """The entries of each file of a worklist."""
    return Running(work, settings, jobs).groups()


def run_job(job: Job, settings: Settings) -> list[Entry]:
    """One file under each of its models. Never raises: what goes wrong becomes an entry."""
    return list(_guarded(job.path, None, lambda: _run_file(job, settings)))


def _run_file(job: Job, settings: Settings) -> list[Entry]:
    asked = api.questions(api.lowered(job.path, job.ask))
    options = Options(settings.engine, settings.budget, settings.bound)

    return [entry for number, steps in enumerate(asked) for entry in _question(job, steps, number, options, settings)]


def _question(job: Job, steps: LoweredTest, number: int, options: Options, settings: Settings) -> list[Entry]:
    """One question of a file under each of its models. What a CSV expects is about the first."""
    named = tuple(dict.fromkeys(expectation.model for expectation in steps.test.expectations))
    expected = job.expected if number == 0 else None
    chosen = job.models

    def judged(name: str, word: str | None) -> list[Entry]:
        if not chosen and name not in settings.under:
            word = word or expected_word(steps.test, name)
            name = cat.named_by(job.path, name)
        model = _model(name)
        report = api.report_on(steps, model, options, expected=word, against=settings.against)
        known = known_difference(steps) if job.expected and report.status is Status.DIFFERS else None
        outcome = _OUTCOMES[report.status] if known is None else Outcome.KNOWN
        return [Entry(job.path, model.name, outcome, report, known or "")]

    models = chosen or named or (api.DEFAULT_MODEL,)
    wanted = [(name, expected) for name in models]
    for name in settings.under:
        if name not in models:
            wanted.append((name, expected_word(steps.test, name) or expected_word(steps.test, api.DEFAULT_MODEL)))
    return [
        entry
        for name, word in wanted
        for entry in _guarded(job.path, name, lambda name=name, word=word: judged(name, word))  # type: ignore[misc]
    ]


_OUTCOMES = {status: Outcome(status.value) for status in Status}


_MODELS: dict[str, Model] = {}


def _model(name: str) -> Model:
    if name not in _MODELS:
        _MODELS[name] = api.load(name)
    return _MODELS[name]


def _guarded(path: str, model: str | None, work: Callable[[], list[Entry]]) -> list[Entry]:
    try:
        return work()
    except TooLarge as error:
        return [Entry(path, model, Outcome.UNDECIDED, message=error.render(), span=error.span)]
    except InputError as error:
        return [Entry(path, model, Outcome.BAD, message=error.render(), span=error.span)]
    except (MemoryError, RecursionError) as error:
        what = "memory ran out" if isinstance(error, MemoryError) else "it is nested more deeply than can be followed"
        return [Entry(path, model, Outcome.UNDECIDED, message=f"undecided: {path}: {what}")]
    except Exception as error:  # a bug of ours in one test must not hide the results of the others
        message = f"internal error in {path}: {type(error).__name__}: {error}; please report it"
        return [Entry(path, model, Outcome.INTERNAL, message=message)]


def _abandon(pool: ProcessPoolExecutor) -> None:

    from multiprocessing import active_children

    pool.shutdown(wait=False, cancel_futures=True)
    for child in active_children():
        child.kill()


def _result(job: Job, future: Future[list[Entry]], settings: Settings) -> list[Entry]:
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result()
    except BrokenProcessPool:
        return _alone(job, settings)


def _alone(job: Job, settings: Settings) -> list[Entry]:
    """Run one job in a process of its own, after some job ended the shared ones."""
    from multiprocessing import Pipe, Process

    ours, its = Pipe(duplex=False)
    child = Process(target=_send, args=(its, job, settings))
    child.start()
    its.close()
    try:
        found: list[Entry] = ours.recv()
        return found
    except EOFError:
        child.join()
    finally:
        child.kill()
    if child.exitcode == -9:  # SIGKILL
        message = f"undecided: {job.path}: the process that judged it was killed (did memory run out?)"
        return [Entry(job.path, None, Outcome.UNDECIDED, message=message)]
    message = f"internal error in {job.path}: its process died; please report it"
    return [Entry(job.path, None, Outcome.INTERNAL, message=message)]


def _send(to: Connection, job: Job, settings: Settings) -> None:
    _worker(settings)
    to.send(run_job(job, settings))


def _worker(settings: Settings) -> None:
    """Signals from the terminal are the parent's to handle, and without the parent there is nothing to do."""
    import signal
    from multiprocessing import connection, parent_process
    from threading import Thread

    cat.allow_includes(settings.include)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    Thread(target=watch, name="memmodel-parent", daemon=True).start()


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
    rare = (
        (count[Outcome.KNOWN], "known differences"),
        (count[Outcome.NO_EXPECTATION], "without expectation"),
        (count[Outcome.INTERNAL], "internal errors"),
        (unlisted, "not listed"),
    )
    parts += [f"{number} {words}" for number, words in rare if number]
    return f"{head}: {', '.join(parts)} ({seconds:.1f} s)"
