"""The commands that try all small programs: `synth`, `verify`, and the search of `diff`.

In: what was typed. Out: litmus tests, how far the search came, and an exit code. Settled here: what is searched where
nothing is asked for, and that a search which was stopped says so: 3, undecided, unless it has found something.
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
from memmodel.cli.exits import Exit, guarded, say, write_json
from memmodel.cli.options import Seconds, gathered, json_option, memory_option, model_option, parse_budget
from memmodel.cli.terminal import progress_bar
from memmodel.errors import InputError
from memmodel.output import write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import TaskID

    from memmodel.cat.syntax import Model
    from memmodel.search.solving.task import SolvingTask
    from memmodel.search.tasks import DifferenceTask
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
    help="How programs are found: all of them are listed and judged, or Z3 is asked for a smallest one.",
)
searched_model_option = model_option(default=DEFAULT_MODEL, help="A model.")


@dataclass(frozen=True, slots=True)
class Searching:
    """What is searched, where, and where it is kept: the options of every search."""

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

        words, scopes = _list(self.words or "core"), _list(self.scopes or "cta,gpu")
        spread = None if self.spread is None else _list(self.spread)
        return vocabulary(words, scopes, self.threads, self.places, spread=spread)

    def beside(self, *known: Vocabulary) -> Vocabulary:
        """The instructions of some vocabularies, and of what was typed that which was. Raises InputError."""
        from memmodel.search.vocabulary import SCOPES, vocabulary

        if len(known) == 1 and not (self.words or self.scopes or self.spread or self.threads or self.places):
            return known[0]
        words = _list(self.words) if self.words else [word for it in known for word in it.words]
        used = {scope for it in known for scope in it.scopes}
        scopes = _list(self.scopes) if self.scopes else [scope for scope in SCOPES if scope in used]
        spread = _list(self.spread) if self.spread else list(dict.fromkeys(kind for it in known for kind in it.spread))
        threads = self.threads or max(it.threads for it in known)
        places = self.places or max(it.locations for it in known)
        made = vocabulary(words, scopes, threads, places, spread=spread)
        return replace(made, most=None if self.words or len(known) > 1 else known[0].most)


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


def search_differences(
    first: str | Model,
    second: str,
    size: int,
    searching: Searching,
    *,
    outcomes: bool = False,
    by: str = "listing",
    jobs: int = 0,
    seconds: float | None = None,
    memory: str | None = None,
    show: int = 10,
    form: str = "text",
    regressions: str | None = None,
) -> Exit:
    """What `memmodel diff FIRST SECOND --search SIZE` does. Exit code 1: they differ; 3: stopped before the bound."""
    from memmodel.search.tasks import DifferenceTask, of_revision

    words = searching.vocabulary()
    task: DifferenceTask | SolvingTask
    if by == "solving":
        from memmodel.search.solving.task import SolvingTask

        name, old = (first, None) if isinstance(first, str) else (first.name, first)
        task = SolvingTask(name, second, words, size, outcomes, old)
    elif isinstance(first, str):
        task = DifferenceTask(first, second, words, size, outcomes)
    else:
        task = of_revision(first, second, words, size, outcomes)
    progress = _run(task, searching, jobs, seconds, memory)
    _keep(progress, searching, "-" if form == "json" else None, task)
    if form == "markdown":
        say(_markdown(progress, task, show))
    elif form == "text":
        for record in progress.results[:show]:
            say(f"{record['allows']} allows, {record['forbids']} forbids, {_what(record)}:")
            say(record["text"])
        _bound([(task, progress)], f"{task.first} and {second} differ", "no difference")
    if regressions is not None:
        _write_regressions(regressions, task.old or task.first, second, progress, form)
    _ended(progress, searching.resume)
    return _code(progress)


def _write_regressions(folder: str, first: str | Model, second: str, progress: Progress, form: str) -> None:
    """Write the tests that explain the differences, and say what they show."""
    from memmodel import api
    from memmodel.mutate.regressions import regressions

    name = first if isinstance(first, str) else first.name
    written = regressions(api.load(first), api.load(second), (name, second), progress.results)
    os.makedirs(folder, exist_ok=True)
    for test in written.tests:
        write_text(os.path.join(folder, f"{test.name}.litmus"), test.text)
    out = sys.stderr if form == "json" else None
    for test in written.tests:
        say(f"{os.path.join(folder, test.name)}.litmus: {' -> '.join(test.words)}; {second} {test.direction}", out)
        for rule in test.shows or ("several changes together",):
            say(f"  {rule}", out)
    for rule in written.unseen:
        say(f"no program that was found shows {rule}", out)
    if written.unsaid:
        say(f"{written.unsaid} of the programs differ in what no Expect line can say", out)
    if written.tests:
        models = [word for word in (name, second) if " " not in word]
        commands = " and ".join(f"memmodel suite {folder} --model {word}" for word in models)
        number = "1 test explains" if len(written.tests) == 1 else f"{len(written.tests)} tests explain"
        say(f"{number} the difference: {commands}", out)


def _markdown(progress: Progress, task: DifferenceTask | SolvingTask, show: int) -> str:
    """Differences as a comment on a change."""
    number, lines = len(progress.results), list[str]()
    verb = f"differ on {number} shape{'s' if number > 1 else ''}" if number else "do not differ"
    lines.append(f"**`{task.first}` and `{task.second}`** {verb}, {_reach(progress, task)}.")
    for record in progress.results[:show]:
        summary = f"`{record['allows']}` allows, `{record['forbids']}` forbids: {_what(record)}"
        text = record["text"].rstrip("\n")
        lines += ["", f"<details><summary>{summary}</summary>", "", "```", text, "```", "", "</details>"]
    if number > show:
        lines += ["", f"… and {number - show} more"]
    return "\n".join(lines)


@click.command()
@searched_model_option
@size_option(default=4, show_default=True)
@searching_options
@changed_options
@jobs_option
@seconds_option
@memory_option
@show_option
@json_option
@guarded
def synth(
    model: str,
    size: int,
    searching: Searching,
    changed: Changed,
    jobs: int,
    seconds: float | None,
    memory: str | None,
    show: int,
    json_out: str | None,
) -> Exit:
    """Find the minimally forbidden programs of a model.

    Each has an outcome that is forbidden, and allowed after any single relaxation: a fence or dependency dropped,
    semantics weakened, a scope narrowed. Exit code: 0, or 3 stopped before the bound.
    """
    from memmodel.search.tasks import SynthesisTask

    edit = [searching.beside(words) for words in changed.vocabularies(model)] or [searching.vocabulary()]
    steps = _run_each([SynthesisTask(model, words, size) for words in edit], searching, jobs, seconds, memory)
    task, progress = steps[-1]
    _keep(progress, searching, json_out, task)
    if json_out != "-":
        for record in progress.results[:show]:
            say(f"minimally forbidden, {_what(record)}:")
            say(record["text"])
        _bound(steps, f"{len(progress.results)} minimally forbidden", "nothing is minimally forbidden")
    _ended(progress, searching.resume)
    return Exit.UNDECIDED if progress.interrupted else Exit.AS_EXPECTED


@click.command()
@click.argument("name", metavar="PROPERTY", help="A shipped property or a cat file; `list` lists.")
@searched_model_option
@size_option()
@searching_options
@changed_options
@jobs_option
@seconds_option
@memory_option
@click.option("--draw", metavar="SVG", help="Draw the first counterexample.")
@by_option
@json_option
@guarded
def verify(
    name: str,
    model: str,
    size: int | None,
    searching: Searching,
    changed: Changed,
    jobs: int,
    seconds: float | None,
    memory: str | None,
    draw: str | None,
    by: str,
    json_out: str | None,
) -> Exit:
    """Look for a program that breaks a property of a model.

    Exit code: 0 no violation up to the bound (of a property that says `possible`: an example), 1 a violation (no
    example), 3 stopped before the bound.
    """
    from memmodel.search.properties import checks_to_show, load_property, shipped_properties
    from memmodel.search.tasks import PropertyTask

    if name == "list":
        for shipped in shipped_properties():
            listed = load_property(shipped)
            say(f"{shipped}  {listed.kind}  {listed.title}")
        return Exit.AS_EXPECTED
    model_property = load_property(name)
    chosen = searching.beside(model_property.vocabulary)
    edit = [searching.beside(chosen, words) for words in changed.vocabularies(model)] or [chosen]
    most = size or model_property.size
    tasks: list[Task]
    if by == "solving":
        from memmodel.search.solving.property import ask_for

        tasks = [ask_for(name, model, words, most) for words in edit]
    else:
        tasks = [PropertyTask(name, model, words, most) for words in edit]
    missing = checks_to_show(model_property, model)

    def enough(results: list[Record]) -> bool:
        return bool(results) and missing <= {record["check"] for record in results}

    steps = _run_each(tasks, searching, jobs, seconds, memory, enough)
    task, progress = steps[-1]
    missing -= {record["check"] for record in progress.results}
    _keep(progress, searching, json_out, task)
    if json_out != "-":
        for shown in {record["check"]: record for record in reversed(progress.results)}.values():
            word = "example" if model_property.kind == "possible" else "counterexample"
            say(f"{word}, {_what(shown)}: {shown['check']}")
            say(shown["text"])
            _explain(name, model, shown, draw)
        summary = f"{model_property.name} holds for {model}: no violation"
        if model_property.kind == "possible":
            without = f"{model_property.name} of {model}: no example of {', '.join(sorted(missing))}"
            summary = without if missing else "all shown"
        elif progress.results:
            summary = f"{model_property.name} does not hold for {model}: {len(progress.results)} shapes violate it"
        say(f"{summary}, {_covered(steps)}")
    _ended(progress, searching.resume)
    if model_property.kind == "possible":
        return Exit.AS_EXPECTED if not missing else Exit.UNDECIDED if progress.interrupted else Exit.DIFFERS
    return _code(progress)


# ---- parts -------------------------------------------------------------------------------------------------


def _list(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _run(
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


def _run_each(
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
        steps.append((task, _run(task, replace(searching, resume=own), jobs, left, memory, enough, seconds)))
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


def _keep(progress: Progress, searching: Searching, json_out: str | None, task: Task) -> None:
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


def _what(record: Record) -> str:
    number = "1 instruction" if record["size"] == 1 else f"{record['size']} instructions"
    more = record["spellings"] - 1
    also = f" ({more:,} other spelling{'s' if more > 1 else ''})" if more else ""
    return f"{'' if record.get('finding') is None else record['finding'] + ', '}{number}{also}"


def _explain(name: str, model: str, record: Record, draw: str | None) -> None:
    """What the model says of a counterexample, and its picture."""
    from memmodel.search.explain import explained, picture

    text = explained(name, model, record["text"], record["check"])
    if text:
        say(text)
    if draw is not None:
        write_text(draw, picture(name, model, record["text"], record["check"]))


def _bound(steps: Sequence[tuple[Task, Progress]], positive: str, negative: str) -> None:
    """The last line: how many results there are, and how far the search came."""
    task, progress = steps[-1]
    number = len(progress.results)
    if number and task.first_only:
        smallest = progress.results[0]["size"]
        say(f"{positive}: the smallest programs have {smallest} instructions ({task.vocabulary.text()})")
        return
    result = f"{positive}: {number} shape{'s' if number > 1 else ''}" if number else negative
    say(f"{result}, {_covered(steps)}")


def _covered(steps: Sequence[tuple[Task, Progress]]) -> str:
    return "; ".join(_reach(progress, task) for task, progress in steps)


def _reach(progress: Progress, task: Task) -> str:
    bound = f"{progress.bound} of {task.most}" if progress.bound < task.most else f"{task.most}"
    why = f"; {progress.reason}" if progress.reason else ""
    return f"up to {bound} instructions ({task.vocabulary.text()}){why}"


def _ended(progress: Progress, resume: str | None) -> None:
    """After all results have been printed: a signal ends the command as it ends any other."""
    if progress.interrupted and resume is not None:
        say(f"the same command goes on from {resume}", sys.stderr)
    if progress.signal is not None:
        raise progress.signal


def _code(progress: Progress) -> Exit:
    if progress.results:
        return Exit.DIFFERS
    return Exit.UNDECIDED if progress.interrupted else Exit.AS_EXPECTED
