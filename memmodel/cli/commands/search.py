"""The commands that try all small programs: `synth`, `verify`, and the search of `diff`.

In: what was typed. Out: litmus tests, how far the search came, and an exit code. Settled here: what is searched where
nothing is asked for, and that a search which was stopped says so: 3, undecided, unless it has found something.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from memmodel.cli.exits import Exit, guarded, say
from memmodel.cli.options import json_option, memory_option
from memmodel.cli.searches import (
    Changed,
    Searching,
    by_option,
    changed_options,
    covered,
    described,
    exit_code,
    jobs_option,
    keep_results,
    no_idle_option,
    reach,
    run_search,
    run_steps,
    say_bound,
    say_resume,
    searched_model_option,
    searching_options,
    seconds_option,
    show_option,
    size_option,
)
from memmodel.output import write_text

if TYPE_CHECKING:
    from memmodel.cat.syntax import Model
    from memmodel.search.solving.task import SolvingTask
    from memmodel.search.tasks import DifferenceTask
    from memmodel.search.work import Progress, Record, Task


def search_differences(
    first: str | Model,
    second: str,
    size: int,
    searching: Searching,
    *,
    outcomes: bool = False,
    by: str = "listing",
    no_idle: bool = False,
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
        task = SolvingTask(name, second, replace(words, idle=not no_idle), size, outcomes, old)
    elif isinstance(first, str):
        task = DifferenceTask(first, second, words, size, outcomes)
    else:
        task = of_revision(first, second, words, size, outcomes)
    progress = run_search(task, searching, jobs, seconds, memory)
    keep_results(progress, searching, "-" if form == "json" else None, task)
    if form == "markdown":
        say(_markdown(progress, task, show))
    elif form == "text":
        for record in progress.results[:show]:
            say(f"{record['allows']} allows, {record['forbids']} forbids, {described(record)}:")
            say(record["text"])
        say_bound([(task, progress)], f"{task.first} and {second} differ", "no difference")
    if regressions is not None:
        _write_regressions(regressions, task.old or task.first, second, progress, form)
    say_resume(progress, searching.resume)
    return exit_code(progress)


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
    lines.append(f"**`{task.first}` and `{task.second}`** {verb}, {reach(progress, task)}.")
    for record in progress.results[:show]:
        summary = f"`{record['allows']}` allows, `{record['forbids']}` forbids: {described(record)}"
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
    steps = run_steps([SynthesisTask(model, words, size) for words in edit], searching, jobs, seconds, memory)
    task, progress = steps[-1]
    keep_results(progress, searching, json_out, task)
    if json_out != "-":
        for record in progress.results[:show]:
            say(f"minimally forbidden, {described(record)}:")
            say(record["text"])
        say_bound(steps, f"{len(progress.results)} minimally forbidden", "nothing is minimally forbidden")
    say_resume(progress, searching.resume)
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
@no_idle_option
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
    no_idle: bool,
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

        tasks = [ask_for(name, model, replace(words, idle=not no_idle), most) for words in edit]
    else:
        tasks = [PropertyTask(name, model, words, most) for words in edit]
    missing = checks_to_show(model_property, model)

    def enough(results: list[Record]) -> bool:
        return bool(results) and missing <= {record["check"] for record in results}

    steps = run_steps(tasks, searching, jobs, seconds, memory, enough)
    task, progress = steps[-1]
    missing -= {record["check"] for record in progress.results}
    keep_results(progress, searching, json_out, task)
    if json_out != "-":
        for shown in {record["check"]: record for record in reversed(progress.results)}.values():
            word = "example" if model_property.kind == "possible" else "counterexample"
            say(f"{word}, {described(shown)}: {shown['check']}")
            say(shown["text"])
            _explain(name, model, shown, draw)
        summary = f"{model_property.name} holds for {model}: no violation"
        if model_property.kind == "possible":
            without = f"{model_property.name} of {model}: no example of {', '.join(sorted(missing))}"
            summary = without if missing else "all shown"
        elif progress.results:
            summary = f"{model_property.name} does not hold for {model}: {len(progress.results)} shapes violate it"
        say(f"{summary}, {covered(steps)}")
    say_resume(progress, searching.resume)
    if model_property.kind == "possible":
        return Exit.AS_EXPECTED if not missing else Exit.UNDECIDED if progress.interrupted else Exit.DIFFERS
    return exit_code(progress)


def _explain(name: str, model: str, record: Record, draw: str | None) -> None:
    """What the model says of a counterexample, and its picture."""
    from memmodel.search.explain import explained, picture

    text = explained(name, model, record["text"], record["check"])
    if text:
        say(text)
    if draw is not None:
        write_text(draw, picture(name, model, record["text"], record["check"]))
