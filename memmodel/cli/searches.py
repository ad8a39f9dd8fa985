"""How the searches of all small programs are run: their options, their steps, and how far they came.

In: what was typed, tasks. Out: the progress of each task; files and lines that say what it covered. Settled here: tasks
run one after the other until one of them finds something.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import click

from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cli.exits import Exit, say, write_json
from memmodel.cli.options import Seconds, gathered, model_option, parse_budget
from memmodel.cli.terminal import progress_bar
from memmodel.errors import InputError
from memmodel.output import few, write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import TaskID

    from memmodel.search.vocabulary import Vocabulary
    from memmodel.search.work import Progress, Record, Task

jobs_option = click.option(
    "--jobs",
    "-j",
    type=click.IntRange(0, 256),
    default=0,
    show_default=True,
    help="Processes; 0: one for each core.",
)
seconds_option = click.option(
    "--timeout", "seconds", type=Seconds(1, 1e6), metavar="SECONDS", help="Stop after so long."
)
show_option = click.option("--show", type=click.IntRange(0), default=10, show_default=True, help="Results to print.")
size_option = partial(click.option, "--size", "-n", type=click.IntRange(1, 12), help="Instructions at most.")
by_option = click.option(
    "--by",
    type=click.Choice(["listing", "solving"]),
    default="listing",
    show_default=True,
    help="How programs are found: all of them are listed and judged, or a solver is asked for a smallest one.",
)
no_idle_option = click.option(
    "--no-idle",
    is_flag=True,
    help="With --by solving: leave out programs with an idle instruction, as listing does, in half of the time.",
)
searched_model_option = model_option(default=DEFAULT_MODEL, help="A model.")


@dataclass(frozen=True, slots=True)
class Searching:
    """The options that all searches have: the programs to search, and the file that keeps progress."""

    words: str | None
    scopes: str | None
    spread: str | None
    threads: int | None
    places: int | None
    resume: str | None
    executor: str | None
    into: str | None
    plot: str | None

    def vocabulary(self) -> Vocabulary:
        """The instructions that are tried. Raises InputError."""
        from memmodel.search.vocabulary import vocabulary

        words, scopes = _listed(self.words or "core"), _listed(self.scopes or "cta,gpu")
        spread = None if self.spread is None else _listed(self.spread)
        return vocabulary(words, scopes, self.threads, self.places, spread=spread)

    def beside(self, *known: Vocabulary) -> Vocabulary:
        """The instructions of some vocabularies, changed by the options that were typed. Raises InputError."""
        from memmodel.search.vocabulary import SCOPES, vocabulary

        if len(known) == 1 and not (self.words or self.scopes or self.spread or self.threads or self.places):
            return known[0]
        words = _listed(self.words) if self.words else [word for other in known for word in other.words]
        used = {scope for other in known for scope in other.scopes}
        scopes = _listed(self.scopes) if self.scopes else [scope for scope in SCOPES if scope in used]
        spread = (
            _listed(self.spread)
            if self.spread
            else list(dict.fromkeys(kind for other in known for kind in other.spread))
        )
        threads = self.threads or max(other.threads for other in known)
        places = self.places or max(other.locations for other in known)
        extended = vocabulary(words, scopes, threads, places, spread=spread)
        return replace(extended, most=None if self.words or len(known) > 1 else known[0].most)


@dataclass(frozen=True, slots=True)
class Changed:
    """What a model was before it was edited, if that chooses the words: another model, or a revision of the same."""

    other: str | None
    revision: str | None

    def vocabularies(self, model: str) -> list[Vocabulary]:
        """The words that the edit is about, the fewest first; none if nothing is named here. Raises InputError if no
        word shows it."""
        from memmodel.compare.git import model_at
        from memmodel.search.edits.tasks import sides_of

        if self.other is None and self.revision is None:
            return []
        if self.other is not None and self.revision is not None:
            raise InputError("--changed-from and --git both say what the model was", hint="leave out one of them")
        first = self.other if self.revision is None else model_at(self.revision, model)
        words = sides_of(first or model, model).chosen_words().first
        if not words:
            name = first if isinstance(first, str) else f"{model} at {self.revision}"
            raise InputError(
                f"no instruction that a search knows tells {model} from {name}", hint="name words with --vocabulary"
            )
        return words


searching_options = gathered(
    "searching",
    Searching,
    click.option(
        "--vocabulary",
        "words",
        metavar="LIST",
        help="Instructions, as ld,st.release,fence.sc, or presets: core, atomics, async, objects, tensor, …",
    ),
    click.option("--scopes", metavar="LIST", help="Scopes that instructions may have."),
    click.option("--spread", metavar="LIST", help="How threads are placed: one, cta, cluster, gpu."),
    click.option("--threads", type=click.IntRange(1, 6), help="Threads at most."),
    click.option("--places", type=click.IntRange(1, 4), help="Places of a kind at most."),
    click.option("--resume", metavar="FILE", help="Keep what is done there, and go on from it."),
    click.option("--executor", metavar="dask://HOST:PORT", help="Work on an existing Dask cluster."),
    click.option("--output", "-o", "into", metavar="DIR", help="Write each result as a litmus file."),
    click.option("--plot", metavar="SVG", help="Draw the bound reached against time."),
)

changed_options = gathered(
    "changed",
    Changed,
    click.option("--changed-from", "other", metavar="MODEL", help="Words: those that the difference is about."),
    click.option("--git", "revision", metavar="REV", help="The same, from the model as it was at this revision."),
)


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def run_search(
    task: Task,
    searching: Searching,
    jobs: int,
    seconds: float | None,
    memory: str | None,
    enough: Callable[[list[Record]], bool] = lambda results: False,
    whole: float | None = None,
) -> Progress:
    """`whole`: the seconds of which `seconds` are left."""
    from memmodel.search.work import run, workers
    from memmodel.workers import cores

    count = jobs or cores()
    most = parse_budget(None, None, memory).memory
    with _bar() as report:
        where = workers(count, searching.executor, most)
        return run(
            task, where, journal=searching.resume, seconds=seconds, whole=whole, memory=most, report=report,
            enough=enough,
        )  # fmt: skip


def run_steps(
    tasks: Sequence[Task],
    searching: Searching,
    jobs: int,
    seconds: float | None,
    memory: str | None,
    enough: Callable[[list[Record]], bool] = lambda results: False,
) -> list[tuple[Task, Progress]]:
    """Run tasks, one after the other, until one finds something or ends early. Each keeps a file of its own."""
    steps: list[tuple[Task, Progress]] = []
    until = None if seconds is None else monotonic() + seconds
    for number, task in enumerate(tasks, 1):
        own = searching.resume if number == 1 or searching.resume is None else f"{searching.resume}.{number}"
        left = None if until is None else max(until - monotonic(), 1.0)
        steps.append((task, run_search(task, replace(searching, resume=own), jobs, left, memory, enough, seconds)))
        if steps[-1][1].results or steps[-1][1].interrupted:
            break
    return steps


@contextmanager
def _bar() -> Iterator[Callable[[int, int, int], None]]:
    """A progress bar for each size of programs, on a terminal: called with the size, what is done, and all."""
    bar = progress_bar()
    if bar is None:
        yield lambda size, done, total: None
        return
    tasks: dict[int, TaskID] = {}

    def report(size: int, done: int, total: int) -> None:
        if size not in tasks:
            bar.start()
            tasks[size] = bar.add_task(f"{size} instructions", total=total)
        bar.update(tasks[size], completed=done, refresh=True)

    try:
        yield report
    finally:
        bar.stop()


def keep_results(progress: Progress, searching: Searching, json_out: str | None, task: Task) -> None:
    """Write results to files."""
    if searching.into is not None:
        os.makedirs(searching.into, exist_ok=True)
        for number, record in enumerate(progress.results, 1):
            first, _, rest = record["text"].partition("\n")
            write_text(os.path.join(searching.into, f"{number:03}.litmus"), f"{first}-{number:03}\n{rest}")
    if searching.plot is not None:
        from memmodel.search.explain import bound_plot

        write_text(searching.plot, bound_plot({"this search": progress.seconds}))
    if json_out is not None:
        result = {
            "bound": progress.bound,
            "sketches": progress.sketches,
            "complete": not progress.interrupted,
            "vocabulary": task.vocabulary.text(),
            "results": progress.results,
        }
        write_json(json_out, result)


def described(record: Record) -> str:
    number = "1 instruction" if record["size"] == 1 else f"{record['size']} instructions"
    more = record["spellings"] - 1
    also = f" ({more:,} other spelling{'s' if more > 1 else ''})" if more else ""
    return f"{'' if record.get('finding') is None else record['finding'] + ', '}{number}{also}"


def say_bound(steps: Sequence[tuple[Task, Progress]], positive: str, negative: str) -> None:
    """The last line: how many results there are, and how far the search came."""
    task, progress = steps[-1]
    number = len(progress.results)
    if number and task.first_only:
        smallest = progress.results[0]["size"]
        say(f"{positive}: the smallest programs have {few(smallest, 'instruction')} ({task.vocabulary.text()})")
        return
    result = f"{positive}: {number} shape{'s' if number > 1 else ''}" if number else negative
    say(f"{result}, {covered(steps)}")


def covered(steps: Sequence[tuple[Task, Progress]]) -> str:
    return "; ".join(reach(progress, task) for task, progress in steps)


def reach(progress: Progress, task: Task) -> str:
    bound = f"{progress.bound} of " if progress.bound < task.most else ""
    why = f"; {progress.reason}" if progress.reason else ""
    return f"up to {bound}{few(task.most, 'instruction')} ({task.vocabulary.text()}){why}"


def say_resume(progress: Progress, resume: str | None) -> None:
    """After all results have been printed: a signal ends the command as it ends any other."""
    if progress.interrupted and resume is not None:
        say(f"the same command goes on from {resume}", sys.stderr)
    if progress.signal is not None:
        raise progress.signal


def exit_code(progress: Progress) -> Exit:
    if progress.results:
        return Exit.DIFFERS
    return Exit.UNDECIDED if progress.interrupted else Exit.AS_EXPECTED
