"""The commands that change tests: `fix` adds what is missing, `weaken` drops what is not needed.

In: what was typed. Out: a diff, or the file changed in place, and an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cli.exits import Exit, guarded, say, write_json
from memmodel.cli.options import (
    Judging,
    Seconds,
    file_argument,
    include_option,
    json_option,
    judging_options,
    models_option,
)
from memmodel.output import replace_text

if TYPE_CHECKING:
    from memmodel.cat.syntax import Model

readings_option = click.option("--readings", is_flag=True, help="Under every reading of the documents as well.")
search_option = click.option(
    "--search",
    "seconds",
    type=Seconds(1, 1e6),
    metavar="SECONDS",
    default=60.0,
    show_default=True,
    help="Time for the search.",
)
in_place_option = click.option("--in-place", "-i", is_flag=True, help="Change the file.")


@click.command()
@file_argument
@models_option
@readings_option
@click.option("--max", "most", type=click.IntRange(1, 50), default=3, show_default=True, help="Repairs to list.")
@search_option
@in_place_option
@judging_options
@json_option
@include_option
@guarded
def fix(
    file: str,
    model: tuple[str, ...],
    readings: bool,
    most: int,
    seconds: float,
    in_place: bool,
    judging: Judging,
    json_out: str | None,
    include: tuple[str, ...],
) -> Exit:
    """Find the smallest repairs of a test, as diffs.

    After a repair the bad outcome and every finding are gone, and every access to memory is still there. Fences,
    semantics, scopes, state spaces, waits, commits, counts and parities are added, moved or strengthened. Each repair
    is judged in full. --in-place makes the first one that needs no newer PTX than the test. Exit code: 0 nothing is
    wrong, or there are repairs; 1 none within these bounds; 3 undecided.
    """
    from memmodel.limits import within_budget
    from memmodel.repair.fix import fix as search_repairs

    options = judging.options()
    with Counter() as count, within_budget(options.budget):
        name, text = _text(file)
        models = models_of(model, readings, include)
        search = search_repairs(name, text, models, options, most=most, seconds=seconds, progress=count)
    if json_out:
        from memmodel.repair.record import fix_record

        write_json(json_out, fix_record(search))
    if json_out != "-":
        if search.wrong:
            say(f"wrong: {', '.join(search.wrong)}")
        if search.reason:
            say(search.reason)
        for number, repair in enumerate(search.repairs, 1):
            version = f", PTX {repair.version}" if repair.version else ""
            say(f"repair {number}, cost {repair.cost:g}{version}:")
            for edit in repair.changes:
                say(f"  {edit.what}")
            if repair.depends:
                numbers = " and ".join(dict.fromkeys(reading.split()[0] for reading in repair.depends))
                say(f"  depends on {numbers}: wrong under {' and '.join(repair.depends)}")
            for other in repair.instead:
                say(f"  or with {' and '.join(other)}")
            say(repair.diff().rstrip("\n"))
    if in_place and search.repairs:
        replace_text(file, min(search.repairs, key=lambda repair: bool(repair.version)).new)
    if not search.wrong:
        return Exit.UNDECIDED if "not decided" in search.reason else Exit.AS_EXPECTED
    if search.repairs:
        return Exit.AS_EXPECTED
    return Exit.UNDECIDED if search.stopped else Exit.DIFFERS


@click.command()
@file_argument
@models_option
@readings_option
@in_place_option
@judging_options
@json_option
@include_option
@guarded
def weaken(
    file: str,
    model: tuple[str, ...],
    readings: bool,
    in_place: bool,
    judging: Judging,
    json_out: str | None,
    include: tuple[str, ...],
) -> Exit:
    """Drop and narrow synchronization that is not needed.

    No outcome and no finding may be added. The answer is the cheapest such program by the table of costs, as a diff.
    Exit code: 0, or 3 undecided.
    """
    from memmodel.limits import within_budget
    from memmodel.repair.weaken import weaken as search_weaker

    options = judging.options()
    with Counter() as count, within_budget(options.budget):
        name, text = _text(file)
        weakened = search_weaker(name, text, models_of(model, readings, include), options, count)
    if json_out:
        from memmodel.repair.record import weaken_record

        write_json(json_out, weaken_record(weakened))
    if json_out != "-":
        if weakened.reason:
            say(weakened.reason)
        elif not weakened.changes:
            say("nothing can be dropped or narrowed")
        else:
            for edit in weakened.changes:
                say(edit.what)
            more = "" if weakened.best else "; there may be a cheaper combination"
            version = f"; needs PTX {weakened.version}" if weakened.version else ""
            say(f"saves {weakened.saves:g} of the cost of synchronization{more}{version}")
            if weakened.wrong:
                say(f"it has {', '.join(weakened.wrong)}, changed or not: repair it first (memmodel fix)")
            say(weakened.diff().rstrip("\n"))
    if in_place and weakened.changes:
        replace_text(file, weakened.new)
    return Exit.UNDECIDED if weakened.reason else Exit.AS_EXPECTED


def _text(file: str) -> tuple[str, str]:
    """The name and the text of a test."""
    from memmodel.source import Source

    source = Source.read(file)
    return source.name, source.text


def models_of(names: tuple[str, ...], readings: bool, include: tuple[str, ...]) -> tuple[Model, ...]:
    from memmodel import api, cat

    cat.configure(include, kept=True)
    chosen = list(names or (DEFAULT_MODEL,))
    if readings:
        chosen += [name for name in api.reading_models() if name not in chosen]
    return tuple(api.load(name) for name in chosen)


class Counter:
    """Tells a person at a terminal how many changed programs were judged."""

    def __enter__(self) -> Callable[[int], None]:
        self._shown = sys.stderr.isatty()
        return self._count

    def _count(self, number: int) -> None:
        if self._shown:
            sys.stderr.write(f"\r{number} programs judged")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * 40 + "\r")
