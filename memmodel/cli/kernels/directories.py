"""All kernels of directories: each is judged under its own launch, on several processes or on a cluster.

In: the command as it was typed, with directories among its files. Out: one table, JSON, and the worst exit code. A file
keeps what is done, so that a run that was cut off goes on with the kernels that are left.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from memmodel.cli.exits import Exit, say, worst, write_json
from memmodel.cli.kernels.kept import KeptAnswers, KernelAnswer
from memmodel.cli.kernels.output import exit_code
from memmodel.cli.kernels.request import KernelRequest
from memmodel.cli.tables import TextTable, show
from memmodel.cli.terminal import ticker
from memmodel.errors import BudgetSpent, InputError, exhausted

SUFFIX, LAUNCH = ".ptx", ".launch.json"
"""A kernel, and the description of its launch beside it: of NAME-broken.ptx that of NAME, if it has none of its own."""

OTHER_QUESTIONS = (
    "fix", "mutate", "annotate", "page", "what_if", "family", "litmus", "sarif_out", "write_baseline", "statistics",
    "init_launch", "launch_schema",
)  # fmt: skip
"""What is asked of one kernel, or of some that are named."""

BAD_INPUT, UNDECIDED = "bad input", "undecided"
_ROLES = {"clean": "good", UNDECIDED: "undecided", "explored": "undecided", "partial": "undecided"}


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A module, and its launch, if a file describes that. `digest`: of the texts of both."""

    path: str
    launch: str | None
    digest: str


@dataclass(frozen=True, slots=True)
class KernelsOfDirectories:
    """What is asked of every kernel: a task for the workers of a search, whose programs all have one size."""

    asked: KernelRequest
    files: tuple[KernelFile, ...]
    most: int = 1
    chunk: int = 1
    first_only: bool = False

    def key(self) -> str:
        """The options, the files, the models and this program."""
        from memmodel.cache import keys
        from memmodel.cat.load import load_model

        options = replace(self.asked, jobs=1, json_out=None, short=False, no_cache=False, resume=None, executor=None)
        model = keys.of_model(load_model(self.asked.whole_model))
        return keys.digest("kernels", keys.program(), model, repr(options), repr(self.files))

    def parts(self, size: int) -> list[KernelFile]:
        """One part for each kernel."""
        return list(self.files)

    def judge(self, part: KernelFile) -> list[dict[str, Any]]:
        """A row for each entry of the file that has a launch."""
        from memmodel import cat
        from memmodel.kernel.question.asking import SeveralEntries

        cat.configure(self.asked.include, kept=not self.asked.no_cache)
        asked = replace(self.asked, files=(part.path,), launch=part.launch)
        try:
            return [_row(asked)]
        except SeveralEntries as several:
            return [_row(replace(asked, entries=(entry,))) for entry in several.entries]

    def killed(self, part: KernelFile) -> list[dict[str, Any]]:
        """The row of a file whose process was killed."""
        from memmodel.workers import KILLED

        return [
            _no_verdict(replace(self.asked, files=(part.path,)), UNDECIDED, f"not judged: {KILLED}", Exit.UNDECIDED)
        ]


def judge_directories(asked: KernelRequest) -> Exit:
    """Judge the kernels of directories, and those that are named beside them. Raises InputError."""
    from memmodel.search.work import run, workers

    other = [name for name in OTHER_QUESTIONS if getattr(asked, name)]
    if other or len(asked.entries) > 1:
        raise InputError(
            "a directory goes with --json, --jobs, --resume, --short and options of the launch and the model"
        )
    task = KernelsOfDirectories(asked, tuple(_files(asked)))
    if not task.files:
        raise InputError(f"{asked.file}: no {SUFFIX} file is in it")
    with ticker(len(task.files)) as tick:
        memory = asked.cost().memory
        progress = run(
            task,
            workers(asked.jobs, asked.executor, memory),
            journal=asked.resume,
            memory=memory,
            report=lambda size, done, total: tick.done(f"{done}/{total}"),
            killed=task.killed,
        )
    rows = progress.results
    if asked.json_out != "-":
        if asked.short:
            say("\n".join(row["short"] for row in rows))
        elif rows:
            cells = [(row["word"], row["what"], row["file"], row["entry"]) for row in rows]
            roles = [_ROLES.get(row["word"], "bad") for row in rows]
            show([TextTable("", ("verdict", "findings", "file", "kernel"), cells, roles)])
        counts = Counter(row["word"] for row in rows)
        parts = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        say(f"{len(rows)} kernel{'s' if len(rows) != 1 else ''}{': ' if parts else ''}{parts}")
    if asked.json_out:
        write_json(asked.json_out, [row["verdict"] for row in rows])
    if progress.interrupted:
        say(f"stopped: {progress.reason}; {len(rows)} of at least {len(task.files)} kernels are judged")
        if asked.resume is not None:
            say(f"the same command goes on from {asked.resume}")
        if progress.signal is not None:
            raise progress.signal
    codes = [Exit(row["code"]) for row in rows]
    return worst([*codes, *([Exit.UNDECIDED] if progress.interrupted else [])])


def _files(asked: KernelRequest) -> Iterator[KernelFile]:
    """The modules of the directories, sorted, and those that are named."""
    from memmodel.cache import keys

    for name in asked.files:
        paths: Sequence[Path] = [Path(name)]
        if os.path.isdir(name):
            paths = sorted(path for path in Path(name).rglob(f"*{SUFFIX}") if path.is_file())
        for path in paths:
            launch = _launch_beside(path) or asked.launch
            texts = (Path(file).read_bytes().hex() for file in (path, launch) if file is not None)
            yield KernelFile(str(path), launch, keys.digest(*texts))


def _launch_beside(path: Path) -> str | None:
    """The description of a kernel's launch, if it has one."""
    stem = path.name.removesuffix(SUFFIX)
    for name in (stem, stem.rpartition("-")[0]):
        beside = path.with_name(name + LAUNCH)
        if name and beside.is_file():
            return str(beside)
    return None


def _row(asked: KernelRequest) -> dict[str, Any]:
    """The verdict on a kernel as a row of the table, or why there is none. Raises SeveralEntries."""
    from memmodel.kernel.output.text import short_name
    from memmodel.kernel.question.asking import SeveralEntries, SeveralLaunches

    try:
        answer = _answer(asked)
    except SeveralEntries:
        raise
    except SeveralLaunches as several:
        return _no_verdict(asked, BAD_INPUT, f"{several.name}: a list of launches is judged by itself", Exit.BAD_INPUT)
    except InputError as error:
        return _no_verdict(asked, BAD_INPUT, error.render().splitlines()[0].removeprefix("error: "), Exit.BAD_INPUT)
    except BudgetSpent as spent:
        return _no_verdict(asked, UNDECIDED, str(spent), Exit.UNDECIDED)
    except (MemoryError, RecursionError) as error:
        return _no_verdict(asked, UNDECIDED, exhausted(error), Exit.UNDECIDED)
    except Exception as error:  # one kernel costs the others nothing
        return _no_verdict(asked, "internal error", f"{type(error).__name__}: {error}", Exit.INTERNAL)
    word, entry = answer.short.split(" ")[:2]
    places = answer.short.removeprefix(f"{word} {entry} {asked.file}").split()
    rules = Counter(place.partition("@")[0] for place in places)
    what = ", ".join(f"{count} {rule}" for rule, count in rules.items())
    what = what or next(iter(answer.record["open"]), "")
    return asdict(_Row(word, what, short_name(entry), asked.file, answer.code, answer.short, answer.record))


def _no_verdict(asked: KernelRequest, word: str, why: str, code: Exit) -> dict[str, Any]:
    entry = asked.entry or "-"
    short = f"{word.replace(' ', '-')} {entry} {asked.file}"
    record = {"file": asked.file, "entry": asked.entry, "verdict": word, "why": why}
    return asdict(_Row(word, why, entry, asked.file, int(code), short, record))


@dataclass(frozen=True, slots=True)
class _Row:
    """A kernel in the table. `what`: its findings, or why there is no verdict; `verdict`: that or this as JSON."""

    word: str
    what: str
    entry: str
    file: str
    code: int
    short: str
    verdict: Any


def _answer(asked: KernelRequest) -> KernelAnswer:
    """The answer about one kernel, taken from the cache if nothing has changed since."""
    from memmodel.kernel.question.asking import kernel_text
    from memmodel.limits import within_budget

    budget = asked.cost()
    with within_budget(budget):
        text = kernel_text(asked.file, asked.after_dashes, asked.entry)
        kept = KeptAnswers(asked, text)
        if (answer := kept.find()) is not None:
            return answer
        verdict = asked.judged(text, budget)
        return kept.keep(verdict, exit_code(verdict))
