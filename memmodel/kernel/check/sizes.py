"""What the launch says of others: proofs for any grid and any trip count, and verdicts on a few smaller launches.

In: `KernelCase`, what its verdict left open, how to judge another case. Out: sentences and words, put into the verdict
as they come. Proofs are about larger launches. Faults in loops without rounds, or with fewer rounds than a ring has
stages, are looked for beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from memmodel.errors import InputError
from memmodel.kernel.all_sizes.grids import any_grid
from memmodel.kernel.all_sizes.larger_numbers import reaching
from memmodel.kernel.all_sizes.loops import loops_of
from memmodel.kernel.all_sizes.parameters import ParamPart, parameters
from memmodel.kernel.all_sizes.trips import any_trips, deciding
from memmodel.kernel.check.case import Effort, KernelCase
from memmodel.kernel.check.choices import OpenChoices
from memmodel.kernel.check.inputs import chosen_ctas
from memmodel.kernel.launch import KINDS, Launch, Param
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.verdict import KernelFinding, KernelVerdict
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxFunction

GRID, TRIPS = "any grid", "any trip count"
SPARE = 1_000
"""Steps of a smaller launch beyond those of the launch: with 0, a loop may count down from there."""

FEWEST = 4
"""Parameters that are made smaller."""

POINTER = 8
"""Bytes of an address."""

RING = 4
"""Stages of a ring, where nothing says how many it has."""

MOST_TRIES, CHEAP = 24, 200_000
"""Runs to find out by how much a parameter grows for one more round, and instructions of a launch above which it is not
worth while."""


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
        runs = [partial(run_launch, case.module, case.entry, case.launch, schedule) for schedule in schedules]
        try:
            verdict.beyond[TRIPS], growing = any_trips(
                case.entry, runs, verdict.equal_stores, _pointers(case), choices.chosen
            )
            steps = {growth.param: (growth.step, growth.length) for growth in growing}
        except Refused as error:
            verdict.beyond[TRIPS] = f"not shown: {error.message}"
    answers = dict(verdict.beyond)
    # A yes does not stand before the smaller launches are judged.
    verdict.beyond |= {
        question: f"not shown: smaller launches were not judged; {answers[question]}" for question in answers
    }
    steps_of_all = 2 * choices.trace.instructions // min(LANES, case.launch.threads) + SPARE
    options = replace(case.options, any_grid=False, any_trips=False, readings=(), steps=steps_of_all)
    small = replace(case, options=options, effort=Effort())
    known = {finding.key for finding in verdict.serious}
    wrong: dict[str, list[str]] = {question: [] for question in answers}
    for question, what, launch in _smaller(small, questions(case), steps, choices.trace.instructions):
        smaller = replace(small, launch=launch, options=replace(options, ctas=chosen_ctas(launch, ())), effort=Effort())
        try:
            judged = judge(smaller)
        except InputError:
            verdict.smaller[what] = "undecided"
            continue
        verdict.smaller[what] = judged.word
        new = [finding for finding in judged.serious if finding.key not in known]
        wrong[question] += [f"{_named(finding)} with {what}" for finding in new[:1]]
    for question, answer in answers.items():
        refuted = bool(wrong[question]) and answer.startswith("yes")
        verdict.beyond[question] = f"no: {wrong[question][0]}; for larger ones {answer}" if refuted else answer


def _named(finding: KernelFinding) -> str:
    rule, lines = finding.key
    return f"{rule} of line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}" if lines else rule


def _smaller(
    case: KernelCase, asked: Sequence[str], steps: dict[ParamPart, tuple[int, int]], instructions: int
) -> Iterator[tuple[str, str, Launch]]:
    """Launches with one cluster, and with loops of few rounds, each with the question that it is about, and with what
    differs. `instructions`: of the launch as it is.
    """
    launch = case.launch
    for number, grid in enumerate(_fewer_ctas(launch) if GRID in asked else ()):
        what = "one CTA" if launch.cluster == (1, 1, 1) else "one cluster"
        yield (
            GRID,
            what if not number else f"grid = {'×'.join(map(str, grid))}",
            launch.model_copy(update={"grid": grid}),
        )
    if TRIPS not in asked:
        return
    deciders = list(steps or dict.fromkeys(parameters(case.entry, deciding(case.entry))))
    reached = reaching(case.entry, loops_of(case.entry) or {}, _pointers(case))
    for part in [*deciders, *(part for part in reached if part not in deciders)][:FEWEST]:
        value = _value(case.entry, launch, part)
        if value is None:
            continue
        if part in steps:
            numbers = _few(value, *steps[part])
        elif part in deciders:
            step = _step(case, part, value) if instructions <= CHEAP else 1
            numbers = sorted({*_few(value, RING * step, RING), *range(min(value, 2))})
        else:
            numbers = [number for number in sorted({0, 1, value - 1}) if 0 <= number < value]
        for number in numbers:
            changed = _with(case.entry, launch, part, number)
            if changed is not None:
                yield TRIPS, f"{part} = {number}", changed


def _fewer_ctas(launch: Launch) -> list[tuple[int, int, int]]:
    """Grids with one cluster, and with one in a single dimension."""
    if launch.grid == launch.cluster:
        return []
    long = [axis for axis in range(3) if launch.grid[axis] > launch.cluster[axis]]
    grids = [launch.cluster]
    for axis in long if len(long) > 1 else ():
        x, y, z = (launch.cluster[n] if n == axis else extent for n, extent in enumerate(launch.grid))
        grids.append((x, y, z))
    return grids


def _step(case: KernelCase, part: ParamPart, value: int) -> int:
    """By how much a parameter grows for one more round, as far as a few runs show it: what lies between the two
    smallest values with which a launch executes more instructions than with less.
    """
    tries = MOST_TRIES

    def executed(number: int) -> int | None:
        nonlocal tries
        tries -= 1
        changed = _with(case.entry, case.launch, part, number)
        if changed is None or tries < 0:
            return None
        try:
            schedule = Schedule(ctas=chosen_ctas(changed, ()), assumed=case.options.assumed, steps=case.options.steps)
            return run_launch(case.module, case.entry, changed, schedule).instructions
        except (Refused, InputError):
            return None

    def next_change(start: int) -> int | None:
        before, low, reach = executed(start), start, 1
        while low + reach < value and executed(low + reach) == before:
            low, reach = low + reach, 2 * reach
        high = min(low + reach, value)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if executed(middle) == before else (low, middle)
        return high if before is not None and tries >= 0 else None

    first = next_change(0)
    second = None if first is None or first >= value else next_change(first)
    return 1 if first is None or second is None else second - first


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


def _pointers(case: KernelCase) -> frozenset[ParamPart]:
    """The parameters, and members of parameters, that are addresses of buffers."""
    of_all = zip(case.entry.params, case.launch.params, strict=False)
    return frozenset(
        ParamPart(parameter.name, offset, POINTER)
        for parameter, given in of_all
        for offset, kind in [(0, given.type), *((member.offset, member.type) for member in given.fields or ())]
        if kind == "ptr"
    )


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
