"""The command `mutate-model`: one-rule edits of a model, and the tests that tell them apart.

In: what was typed. Out: text or JSON, and an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

import click

from memmodel.cli.exits import Exit, guarded, say, write_json
from memmodel.cli.options import Seconds, include_option, json_option, memory_option, parse_budget
from memmodel.errors import InputError
from memmodel.output import STANDARD_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from memmodel.answer import Budget
    from memmodel.cat.syntax import Model
    from memmodel.mutate.outcome import EditResult, Strength
    from memmodel.search.vocabulary import Vocabulary


@click.command("mutate-model")
@click.argument("model", metavar="MODEL", help="A shipped model or a cat file.")
@click.argument(
    "tests", nargs=-1, metavar="[PATH]...", help="Litmus tests, directories of them; none: the shipped suite."
)
@click.option("--only", multiple=True, metavar="RULE", help="A definition, axiom or flag to edit; may be repeated.")
@click.option("--list", "listing", is_flag=True, help="List the edits and judge nothing.")
@click.option("--all", "everything", is_flag=True, help="Show the edits that tests tell apart, too.")
@click.option("--expect", metavar="NAME", help="The model whose Expect words count; default: the one it derives from.")
@click.option("--bound", type=click.IntRange(1, 64), default=3, show_default=True, help="Iterations of a loop.")
@click.option("--jobs", "-j", type=click.IntRange(0, 256), default=0, help="Processes; 0: one for each core.")
@click.option("--timeout", type=Seconds(1, 1e6), metavar="SECONDS", help="Stop after so long.")
@memory_option
@click.option("--each", type=Seconds(0.5, 1e6), default=20.0, show_default=True, help="Seconds of an engine's answer.")
@click.option("--resume", metavar="FILE", help="Keep what is done there, and go on from it.")
@click.option("--search", type=click.IntRange(1, 12), metavar="N", help="Search programs for what no test tells apart.")
@click.option(
    "--vocabulary", "words", metavar="LIST", default="core", show_default=True, help="Instructions of a search."
)
@json_option
@include_option
@guarded
def mutate_model(
    model: str,
    tests: tuple[str, ...],
    only: tuple[str, ...],
    listing: bool,
    everything: bool,
    expect: str | None,
    bound: int,
    jobs: int,
    timeout: float | None,
    memory: str | None,
    each: float,
    resume: str | None,
    search: int | None,
    words: str,
    json_out: str | None,
    include: tuple[str, ...],
) -> Exit:
    """Edit one rule of a model at a time: which tests notice?

    An edit drops an operand, an exception, a filter, an operator, an axiom or a flag, or puts a name in the place of
    its sibling. It is told apart by the smallest test whose Expect line is no longer met. What no test tells apart is
    a gap of the suite, or text that the model does not need.

    Exit code: 0 all edits are told apart or equivalent, 1 some are not, 2 bad input, 3 some tests were not judged.
    """
    from memmodel.cat.load import allow_includes, loaded
    from memmodel.limits import shared
    from memmodel.mutate.edits import edits_of
    from memmodel.mutate.run import strength
    from memmodel.mutate.work import NO_END, EditJudging
    from memmodel.search.vocabulary import vocabulary
    from memmodel.workers import cores

    budget = parse_budget(None, timeout or NO_END, memory)
    budget = replace(budget, original=budget)
    until = float("inf") if timeout is None else monotonic() + timeout
    allow_includes(include)
    tried = vocabulary([word.strip() for word in words.split(",") if word.strip()])
    known = loaded(model)
    edits = [edit for edit in edits_of(known.model) if not only or edit.rule in only]
    _known_rules(only, [edit.rule for edit in edits_of(known.model)])
    if listing:
        for edit in edits:
            say(f"{edit.place}:{edit.span.column} {edit.rule}: {edit.what}")
        say(f"{known.model.name}: {len(edits):,} edits")
        return Exit.AS_EXPECTED
    expected = _expected(expect, model, [str(path) for path, _ in known.files])
    paths, expected = _tests(tests, expected)
    processes = jobs or cores()
    judging = EditJudging(
        known.model, expected, bound, each, until, budget=budget if memory is None else shared(budget, processes)
    )
    with _progress() as report:
        result = strength(
            judging,
            paths,
            wanted=lambda edit: not only or edit.rule in only,
            jobs=processes,
            journal=resume,
            progress=report,
        )
    if search is not None:
        result = replace(result, results=_searched(result, known.model, model, search, tried, processes, until, budget))
    _show(result, json_out, everything=everything)
    if result.reason and resume is not None:
        say(f"the same command goes on from {resume}", sys.stderr)
    return _code(result)


def _show(result: Strength, json_out: str | None, *, everything: bool) -> None:
    from memmodel.cli.terminal import style_for
    from memmodel.mutate.text import lines, record

    if json_out is not None:
        write_json(json_out, record(result).json_values())
    if json_out != STANDARD_OUTPUT:
        for line in lines(result, everything=everything, style=style_for(sys.stdout)):
            say(line)


def _known_rules(only: Sequence[str], rules: Sequence[str]) -> None:
    """Raises InputError for a rule that has no edits."""
    from memmodel.errors import suggestion

    for name in only:
        if name not in rules:
            hint = suggestion(name, sorted(set(rules))) or "`memmodel mutate-model MODEL --list` lists the edits"
            raise InputError(
                f"no edit of `{name[:60]}`: no axiom and no flag depends on a definition of that name", hint=hint
            )


def _expected(asked: str | None, model: str, files: Sequence[str]) -> str | None:
    """The model whose Expect words count: the one asked for, else the shipped model that a file derives from."""
    from memmodel.base.resources import base_of, is_shipped

    if asked is not None:
        return asked
    return model if is_shipped(model) else base_of(files, model)


def _tests(tests: Sequence[str], expected: str | None) -> tuple[list[str], str | None]:
    """The files, and the model whose Expect words count: none if no file speaks of it. Files that speak of other models
    only are left out, unless all do. Raises InputError."""
    from memmodel import api
    from memmodel.batch import collect, plan
    from memmodel.errors import TooLarge

    paths = [job.path for job in plan(tests, ()).jobs] if not tests else collect(tests)
    speaking = []
    for path in paths:
        try:
            named = {expectation.model for expectation in api.lowered(path).test.expectations}
        except TooLarge:
            continue
        if not named or expected in named:
            speaking.append((path, bool(named)))
    if not any(named for _, named in speaking):
        return paths, None
    return [path for path, _ in speaking], expected


def _searched(
    result: Strength,
    model: Model,
    name: str,
    size: int,
    words: Vocabulary,
    jobs: int,
    until: float,
    budget: Budget,
) -> list[EditResult]:
    """The results, with a search for each edit that no test tells apart."""
    from memmodel.mutate.outcome import Fate
    from memmodel.mutate.search import searched

    survivors = [each for each in result.results if each.fate is Fate.SURVIVES]
    known = {}
    for number, survivor in enumerate(survivors):
        share = (until - monotonic()) / (len(survivors) - number)
        if share <= 0:
            known[id(survivor)] = replace(survivor, how=f"not searched: {budget.out_of_seconds}")
        else:
            known[id(survivor)] = searched(survivor, model, name, size, words, jobs, share, budget.memory)
    return [known.get(id(each), each) for each in result.results]


def _code(result: Strength) -> Exit:
    from memmodel.mutate.outcome import Fate

    if result.count(Fate.SURVIVES, Fate.FOUND):
        return Exit.DIFFERS
    return Exit.UNDECIDED if result.count(Fate.UNDECIDED) or result.reason else Exit.AS_EXPECTED


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A progress bar, on a terminal: called with the tests done, and all."""
    from memmodel.cli.terminal import progress_bar

    bar = progress_bar()
    if bar is None:
        yield lambda done, total: None
        return
    task = bar.add_task("tests", total=None)

    def report(done: int, total: int) -> None:
        bar.start()
        bar.update(task, completed=done, total=total, refresh=True)

    try:
        yield report
    finally:
        bar.stop()
