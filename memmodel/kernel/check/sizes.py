"""What the launch says of others: proofs for any grid and any trip count, and verdicts on a few smaller launches.

In: `KernelCase`, what its verdict left open, how to judge another case. Out: sentences and words, put into the verdict
as they come. Proofs are about larger launches. Faults in loops without rounds, or with fewer rounds than a ring has
stages, are looked for beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from memmodel.errors import InputError
from memmodel.kernel.all_sizes.grids import any_grid
from memmodel.kernel.all_sizes.parameters import ParamPart, parameters
from memmodel.kernel.all_sizes.trips import any_trips, deciding
from memmodel.kernel.check.case import Effort, KernelCase
from memmodel.kernel.check.choices import OpenChoices
from memmodel.kernel.check.inputs import chosen_ctas
from memmodel.kernel.launch import KINDS, Launch, Param
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxFunction

GRID, TRIPS = "any grid", "any trip count"
SPARE = 1_000
"""Steps of a smaller launch beyond those of the launch: with 0, a loop may count down from there."""

FEWEST = 2
"""Parameters that are made smaller."""


def questions(case: KernelCase) -> list[str]:
    """What the options ask for."""
    asked = ((GRID, case.options.any_grid), (TRIPS, case.options.any_trips))
    return [question for question, wanted in asked if wanted]


def other_sizes(
    case: KernelCase,
    choices: OpenChoices,
    verdict: KernelVerdict,
    judge: Callable[[KernelCase], KernelVerdict],
    *,
    decided: bool,
) -> None:
    """Say in a verdict what holds beyond its launch. `decided`: the run speaks for every schedule."""
    steps: dict[ParamPart, tuple[int, int]] = {}
    if case.options.any_grid:
        verdict.beyond[GRID] = any_grid(case.module, case.entry, case.launch, choices.trace)
    if case.options.any_trips:
        last_elected = (False, True) if choices.trace.elected else (False,)
        schedules = [replace(choices.base, last_elected=last) for last in last_elected if decided]
        again = [partial(run_launch, case.module, case.entry, case.launch, schedule) for schedule in schedules]
        try:
            verdict.beyond[TRIPS], growing = any_trips(case.entry, again, verdict.equal_stores)
            steps = {growth.param: (growth.step, growth.length) for growth in growing}
        except Refused as error:
            verdict.beyond[TRIPS] = f"not shown: {error.message}"
    steps_of_all = 2 * choices.trace.instructions // min(LANES, case.launch.threads) + SPARE
    options = replace(case.options, any_grid=False, any_trips=False, readings=(), steps=steps_of_all)
    for what, launch in _smaller(case, steps):
        smaller = replace(case, launch=launch, options=replace(options, ctas=chosen_ctas(launch, ())), effort=Effort())
        try:
            verdict.smaller[what] = judge(smaller).word
        except InputError:
            verdict.smaller[what] = "undecided"


def _smaller(case: KernelCase, steps: dict[ParamPart, tuple[int, int]]) -> Iterator[tuple[str, Launch]]:
    """Launches with one cluster, and with loops of few rounds, each with what differs."""
    launch = case.launch
    if case.options.any_grid and launch.grid != launch.cluster:
        yield (
            ("one CTA" if launch.cluster == (1, 1, 1) else "one cluster"),
            launch.model_copy(update={"grid": launch.cluster}),
        )
    if not case.options.any_trips:
        return
    for part in list(steps or dict.fromkeys(parameters(case.entry, deciding(case.entry))))[:FEWEST]:
        value = _value(case.entry, launch, part)
        if value is None:
            continue
        for number in _few(value, *steps.get(part, (1, 2))):
            changed = _with(case.entry, launch, part, number)
            if changed is not None:
                yield f"{part} = {number}", changed


def _few(value: int, step: int, length: int) -> list[int]:
    """Smaller values of a parameter: for 0 and 1 rounds, and for about as many as a ring has stages.

    `step`: what it grows by in a period; `length`: the rounds of a period, which are those of a ring or twice as many.
    """
    each = step // length if step % length == 0 else step
    rounds: Iterable[int] = {0, 1, *(stages + n for stages in (length // 2, length) for n in (-1, 0, 1))}
    return sorted({each * count for count in rounds if 0 <= each * count < value})


def _place(entry: PtxFunction, launch: Launch, part: ParamPart) -> tuple[int, Param] | None:
    names = [param.name for param in entry.params]
    at = names.index(part.name) if part.name in names else len(launch.params)
    return (at, launch.params[at]) if at < len(launch.params) else None


def _value(entry: PtxFunction, launch: Launch, part: ParamPart) -> int | None:
    """The number that a launch gives to a part of a parameter."""
    place = _place(entry, launch, part)
    if place is None:
        return None
    param = place[1]
    if param.type == "bytes" and param.hex is not None:
        return int.from_bytes(bytes.fromhex(param.hex)[part.offset : part.offset + part.size], "little")
    members = [(member.offset, member) for member in param.fields] if param.fields else [(0, param)]
    values = (member.value for at, member in members if (at, KINDS.get(member.type)) == (part.offset, part.size))
    return next((value for value in values if isinstance(value, int)), None)


def _with(entry: PtxFunction, launch: Launch, part: ParamPart, number: int) -> Launch | None:
    """The launch with another number there."""
    place = _place(entry, launch, part)
    if place is None:
        return None
    at, param = place
    if param.fields:
        members = (
            member.model_copy(update={"value": number}) if member.offset == part.offset else member
            for member in param.fields
        )
        changed = param.model_copy(update={"fields": tuple(members)})
    elif param.type == "bytes":
        content = bytearray.fromhex(param.hex or "")
        content[part.offset : part.offset + part.size] = number.to_bytes(part.size, "little")
        changed = param.model_copy(update={"hex": content.hex()})
    else:
        changed = param.model_copy(update={"value": number})
    return launch.model_copy(update={"params": (*launch.params[:at], changed, *launch.params[at + 1 :])})
