"""The command `sync`: the cheapest fences, scopes and waits with which a program is right.

In: what was typed. Out: the changes and a diff, or the file changed in place, and an exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memmodel.cli.commands.repair import Counter, in_place_option, models_of, readings_option, search_option
from memmodel.cli.exits import Exit, guarded, say, write_json
from memmodel.cli.options import (
    Judging,
    file_argument,
    include_option,
    json_option,
    judging_options,
    models_option,
)
from memmodel.errors import InputError
from memmodel.output import replace_text

if TYPE_CHECKING:
    from memmodel.repair.synchronizing.handovers import HandOverPlan
    from memmodel.repair.synchronizing.synchronize import Synchronized
    from memmodel.source import Source

STRIPS = ("nothing", "order", "waits")


@click.command()
@file_argument
@models_option
@readings_option
@click.option(
    "--strip",
    type=click.Choice(STRIPS),
    default="nothing",
    show_default=True,
    help="Take out first: fences and order, or waits for phases and barriers, too.",
)
@click.option("--costs", metavar="JSON", help="A table of costs, as docs/sync.md shows.")
@search_option
@in_place_option
@judging_options
@json_option
@include_option
@guarded
def sync(
    file: str,
    model: tuple[str, ...],
    readings: bool,
    strip: str,
    costs: str | None,
    seconds: float,
    in_place: bool,
    judging: Judging,
    json_out: str | None,
    include: tuple[str, ...],
) -> Exit:
    """Find the cheapest synchronization of a test that lacks it.

    FILE is a litmus test, or a pipeline as JSON: accesses and the hand-overs that are wanted. Fences, semantics, scopes
    and waits are added, so that nothing is found and what the test forbids never happens. The answer says whether it is
    proved to be the cheapest, and was judged again. Exit code: 0 found and proved, or nothing is missing; 1 no set of
    these changes is enough; 3 undecided, or there may be a cheaper one.
    """
    from memmodel.limits import within_budget
    from memmodel.repair.costs import DEFAULT
    from memmodel.repair.synchronizing.library import sync_pipeline
    from memmodel.repair.synchronizing.prices import read_costs
    from memmodel.repair.synchronizing.strip import Strip
    from memmodel.repair.synchronizing.synchronize import synchronize
    from memmodel.source import Source

    options = judging.options()
    table = DEFAULT if costs is None else read_costs(Source.read(costs))
    with Counter() as count, within_budget(options.budget):
        source = Source.read(file)
        models = models_of(model, readings, include)
        if source.text.lstrip().startswith("{"):
            if in_place or strip != "nothing":
                raise InputError(
                    f"{source.name}: a pipeline has no text to strip or to change", hint="leave -i and --strip out"
                )
            synchronized = sync_pipeline(
                _pipeline(source), models, options, costs=table, seconds=seconds, progress=count
            )  # fmt: skip
        else:
            synchronized = synchronize(
                source.name, source.text, models, options,
                strip=Strip(strip), costs=table, seconds=seconds, progress=count,
            )  # fmt: skip
    if json_out:
        from memmodel.repair.record import sync_record

        write_json(json_out, sync_record(synchronized))
    if json_out != "-":
        _print(synchronized, strip)
    if in_place and synchronized.new is not None:
        replace_text(file, synchronized.new)
    if synchronized.proved:
        return Exit.AS_EXPECTED
    return Exit.DIFFERS if synchronized.decided else Exit.UNDECIDED


def _pipeline(source: Source) -> HandOverPlan:
    """A pipeline from its JSON. Raises InputError, at the place in the JSON if it is known."""
    from memmodel.recovery.json_places import JsonPlaces
    from memmodel.repair.synchronizing.handovers import HandOverPlan, PlanError

    try:
        return HandOverPlan.of(_json(source.name, source.text))
    except PlanError as error:
        place = JsonPlaces(source).of_name(error.name)
        if place is not None:
            raise error.at(place) from None
        raise InputError(f"{source.name}: {error.message}", hint=error.hint) from None


def _json(name: str, text: str) -> dict[str, object]:
    from memmodel.recovery.json_values import json_values

    values = json_values(name, text, "neither a litmus test nor JSON")
    assert isinstance(values, dict)  # it begins with {
    return values


def _print(found: Synchronized, strip: str) -> None:
    if found.wrong:
        without = "as it stands" if strip == "nothing" else "without synchronization"
        say(f"{without}: {', '.join(found.wrong)}")
    if found.new is None:
        say(found.reason)
        return
    if not found.wrong:
        say("nothing is missing")
    given = f" (the test as it was written: {found.given:g})" if strip != "nothing" else ""
    version = f", PTX {found.version}" if found.version else ""
    if found.proved:
        say(f"the cheapest: cost {found.cost:g}{given}{version}")
    else:
        say(f"a bound: cost {found.cost:g}{given}{version}; nothing below {found.bound:g} is enough")
    for line in (*found.signals, *found.changes):
        say(f"  {line}")
    if found.depends:
        say(f"  wrong under {' and '.join(found.depends)}")
    if found.reason:
        say(found.reason)
    elif found.offered:
        say(f"proved: no cheaper set of these {found.offered} changes is right; judged again by {found.judged}")
    say(found.diff().rstrip("\n"))
