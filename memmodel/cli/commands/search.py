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
from typing import TYPE_CHECKING

import click

from memmodel.cli.exits import Exit, guarded, say
from memmodel.cli.options import gathered, json_option, memory_option, model_option, parse_budget
from memmodel.output import write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from memmodel.cat.syntax import Model
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
    "--timeout", "seconds", type=click.FloatRange(1), metavar="SECONDS", help="Stop after so long."
)
show_option = click.option("--show", type=click.IntRange(0), default=10, show_default=True, help="Results to print.")
size_option = partial(click.option, "--size", "-n", type=click.IntRange(1, 12), help="Instructions at most.")
searched_model_option = model_option(default="ptx-9.3", help="A model.")


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


def search_differences(
    first: str | Model,
    second: str,
    size: int,
    searching: Searching,
    *,
    outcomes: bool = False,
    jobs: int = 0,
    seconds: float | None = None,
    memory: str | None = None,
    show: int = 10,
    form: str = "text",
) -> Exit:
    """What `memmodel diff FIRST SECOND --search SIZE` does. Exit code 1: they differ; 3: stopped before the bound."""
    from memmodel.search.tasks import DifferenceTask, of_revision

    words = searching.vocabulary()
    if isinstance(first, str):
        task = DifferenceTask(first, second, words, size, outcomes)
    else:
        task = of_revision(first, second, words, size, outcomes)
    found = _run(task, searching, jobs, seconds, memory)
    _keep(found, searching, "-" if form == "json" else None, task)
    if form == "markdown":
        say(_markdown(found, task, show))
    elif form == "text":
        for one in _shown(found.results, show):
            say(f"{one['allows']} allows, {one['forbids']} forbids, {_what(one)}:")
            say(one["text"])
        _bound(found, task, f"{task.first} and {second} differ", "no difference")
    _ended(found, searching.resume)
    return _code(found)


def _markdown(found: Progress, task: DifferenceTask, show: int) -> str:
    """Differences as a comment on a change."""
    number, lines = len(found.results), list[str]()
    said = f"differ on {number} shape{'s' if number > 1 else ''}" if number else "do not differ"
    lines.append(f"**`{task.first}` and `{task.second}`** {said}, {_reach(found, task)}.")
    for one in _shown(found.results, show):
        told = f"`{one['allows']}` allows, `{one['forbids']}` forbids: {_what(one)}"
        lines += [
            "",
            f"<details><summary>{told}</summary>",
            "",
            "```",
            one["text"].rstrip("\n"),
            "```",
            "",
            "</details>",
        ]
    if number > show:
        lines += ["", f"… and {number - show} more"]
    return "\n".join(lines)


@click.command()
@searched_model_option
@size_option(default=4, show_default=True)
@searching_options
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

    task = SynthesisTask(model, searching.vocabulary(), size)
    found = _run(task, searching, jobs, seconds, memory)
    _keep(found, searching, json_out, task)
    if json_out != "-":
        for one in _shown(found.results, show):
            say(f"minimally forbidden, {_what(one)}:")
            say(one["text"])
        _bound(found, task, f"{len(found.results)} minimally forbidden", "nothing is minimally forbidden")
    _ended(found, searching.resume)
    return Exit.UNDECIDED if found.interrupted else Exit.AS_EXPECTED


@click.command()
@click.argument("name", metavar="PROPERTY", help="A shipped property or a cat file; `list` lists.")
@searched_model_option
@size_option()
@searching_options
@jobs_option
@seconds_option
@memory_option
@click.option("--draw", metavar="SVG", help="Draw the first counterexample.")
@json_option
@guarded
def verify(
    name: str,
    model: str,
    size: int | None,
    searching: Searching,
    jobs: int,
    seconds: float | None,
    memory: str | None,
    draw: str | None,
    json_out: str | None,
) -> Exit:
    """Look for a program that breaks a property of a model.

    Exit code: 0 no violation up to the bound (of a property that says `possible`: an example), 1 a violation (no
    example), 3 stopped before the bound.
    """
    from memmodel.search.properties import checks_to_show, load_property, shipped_properties
    from memmodel.search.tasks import PropertyTask

    if name == "list":
        for one in shipped_properties():
            found_one = load_property(one)
            say(f"{one}  {found_one.kind}  {found_one.title}")
        return Exit.AS_EXPECTED
    it = load_property(name)
    chosen = it.vocabulary
    if searching.words or searching.scopes or searching.spread or searching.threads or searching.places:
        asked = replace(
            searching,
            words=searching.words or ",".join(chosen.words),
            scopes=searching.scopes or ",".join(it.scopes),
            spread=searching.spread or ",".join(chosen.spread),
            threads=searching.threads or chosen.threads,
            places=searching.places or chosen.locations,
        )
        chosen = replace(asked.vocabulary(), most=None if searching.words else chosen.most)
    task = PropertyTask(name, model, chosen, size or it.size)
    missing = checks_to_show(it, model)

    def enough(results: list[Record]) -> bool:
        return bool(results) and missing <= {one["check"] for one in results}

    found = _run(task, searching, jobs, seconds, memory, enough)
    missing -= {one["check"] for one in found.results}
    _keep(found, searching, json_out, task)
    if json_out != "-":
        for shown in {record["check"]: record for record in reversed(found.results)}.values():
            word = "example" if it.kind == "possible" else "counterexample"
            say(f"{word}, {_what(shown)}: {shown['check']}")
            say(shown["text"])
            _explain(name, model, shown, draw)
        said = f"{it.name} holds for {model}: no violation"
        if it.kind == "possible":
            said = f"{it.name} of {model}: no example of {', '.join(sorted(missing))}" if missing else "all shown"
        elif found.results:
            said = f"{it.name} does not hold for {model}: {len(found.results)} shapes violate it"
        say(f"{said}, {_reach(found, task)}")
    _ended(found, searching.resume)
    if it.kind == "possible":
        return Exit.AS_EXPECTED if not missing else Exit.UNDECIDED if found.interrupted else Exit.DIFFERS
    return _code(found)


# ---- parts -------------------------------------------------------------------------------------------------


def _list(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _run(
    task: Task,
    searching: Searching,
    jobs: int,
    seconds: float | None,
    memory: str | None,
    enough: Callable[[list[Record]], bool] = lambda results: False,
) -> Progress:
    from memmodel.search.work import run, workers
    from memmodel.workers import cores

    count = jobs or cores()
    most = parse_budget(None, None, memory).memory
    with _bar() as told:
        where = workers(count, searching.executor, most)
        return run(task, where, journal=searching.resume, seconds=seconds, report=told, enough=enough)


@contextmanager
def _bar() -> Iterator[Callable[[int, int, int], None]]:
    """A bar with the time left, where somebody watches."""
    if not sys.stderr.isatty():
        yield lambda size, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=False)
    tasks = {}

    def told(size: int, done: int, total: int) -> None:
        if size not in tasks:
            bar.start()
            tasks[size] = bar.add_task(f"{size} instructions", total=total)
        bar.update(tasks[size], completed=done, refresh=True)

    try:
        yield told
    finally:
        bar.stop()


def _keep(found: Progress, searching: Searching, json_out: str | None, task: Task) -> None:
    """Write results to files."""
    import json

    into, plot = searching.into, searching.plot
    if into is not None:
        os.makedirs(into, exist_ok=True)
        for number, one in enumerate(found.results, 1):
            first, _, rest = one["text"].partition("\n")
            write_text(os.path.join(into, f"{number:03}.litmus"), f"{first}-{number:03}\n{rest}")
    if plot is not None:
        from memmodel.search.explain import bound_plot

        write_text(plot, bound_plot({"this search": found.seconds}))
    if json_out is not None:
        record: dict[str, object] = {
            "bound": found.bound,
            "sketches": found.sketches,
            "complete": not found.interrupted,
        }
        record["vocabulary"] = task.vocabulary.text()
        text = json.dumps({**record, "results": found.results}, indent=1) + "\n"
        if json_out == "-":
            say(text.rstrip("\n"))
        else:
            write_text(json_out, text)


def _shown(results: Sequence[Record], most: int) -> Sequence[Record]:
    return results[:most]


def _what(one: Record) -> str:
    number = "1 instruction" if one["size"] == 1 else f"{one['size']} instructions"
    more = one["spellings"] - 1
    also = f" ({more:,} other spelling{'s' if more > 1 else ''})" if more else ""
    return f"{'' if one.get('finding') is None else one['finding'] + ', '}{number}{also}"


def _explain(name: str, model: str, one: Record, draw: str | None) -> None:
    """What the model says of a counterexample, and its picture."""
    from memmodel.search.explain import explained, picture

    text = explained(name, model, one["text"], one["check"])
    if text:
        say(text)
    if draw is not None:
        write_text(draw, picture(name, model, one["text"], one["check"]))


def _bound(found: Progress, task: Task, positive: str, negative: str) -> None:
    """The last line: what was found, and how far the search came."""
    number = len(found.results)
    said = f"{positive}: {number} shape{'s' if number > 1 else ''}" if number else negative
    say(f"{said}, {_reach(found, task)}")


def _reach(found: Progress, task: Task) -> str:
    bound = f"{found.bound} of {task.most}" if found.bound < task.most else f"{task.most}"
    why = f"; {found.reason}" if found.reason else ""
    return f"up to {bound} instructions ({task.vocabulary.text()}){why}"


def _ended(found: Progress, resume: str | None) -> None:
    """After everything that was found has been said: a signal ends the command as it ends any other."""
    if found.interrupted and resume is not None:
        say(f"the same command goes on from {resume}", sys.stderr)
    if found.signal is not None:
        raise found.signal


def _code(found: Progress) -> Exit:
    if found.results:
        return Exit.DIFFERS
    return Exit.UNDECIDED if found.interrupted else Exit.AS_EXPECTED
