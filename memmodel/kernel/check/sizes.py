"""What the launch says of others: proofs for any grid and any trip count, and verdicts on a few smaller launches.

In: `KernelCase`, what its verdict left open, how to judge another case. Out: sentences and words, put into the verdict
as they come. Proofs are about larger launches. Smaller ones are judged, since a loop may have a fault where it has no
rounds, or fewer than a ring has stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from memmodel.errors import InputError
from memmodel.kernel.all_sizes.grids import any_grid
from memmodel.kernel.all_sizes.larger_numbers import reaching
from memmodel.kernel.all_sizes.launch_numbers import number_of, pointers, with_longer_buffers, with_number
from memmodel.kernel.all_sizes.loops import loops_of
from memmodel.kernel.all_sizes.parameters import ParamPart, parameters
from memmodel.kernel.all_sizes.trips import TOO_SHORT, LongerLoops, any_trips, deciding
from memmodel.kernel.check.case import CheckOptions, Effort, KernelCase
from memmodel.kernel.check.choices import OpenChoices
from memmodel.kernel.check.inputs import chosen_ctas
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.rows import LANES
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.verdict import Growth, KernelVerdict, rule_in_lines
from memmodel.kernel.trace.problems import Refused

GRID, TRIPS = "any grid", "any trip count"
SPARE = 1_000
"""Steps that a smaller launch may take beyond those of the launch: a loop that counts down from 0 hardly ends."""

MOST_SMALLER = 4
"""Parameters that are made smaller, each by itself."""

RING = 4
"""Stages of a ring, where nothing says how many it has."""

MOST_TRIES, CHEAP = 24, 200_000
"""Runs to find out by how much a parameter grows for one more round, and instructions of a launch above which it is not
worth while."""

LONGER = (12, 24, 48)
"""Rounds that are added to a launch that is too short for a proof."""

MOST_EACH, CHEAP_EACH = 32, 50_000
"""Launches that are judged so that an answer holds for each number of rounds, and instructions of one of them."""


def size_questions(case: KernelCase) -> list[str]:
    """The questions about other sizes that the options ask."""
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
    if case.options.any_grid:
        verdict.beyond[GRID] = any_grid(case.module, case.entry, case.launch, choices.trace)
    growing: Sequence[LongerLoops] = ()
    if case.options.any_trips:
        lanes = (0, LANES - 1) if choices.trace.elected else (0,)
        schedules = [replace(choices.base, elected=lane) for lane in lanes if decided]
        runs = [partial(run_launch, case.module, case.entry, case.launch, schedule) for schedule in schedules]
        try:
            verdict.beyond[TRIPS], growing = any_trips(
                case.entry, runs, verdict.equal_stores, pointers(case.entry, case.launch), choices.chosen
            )
        except Refused as error:
            verdict.beyond[TRIPS] = f"not shown: {error.message}"
        verdict.growth = tuple(
            Growth(str(loops.param), loops.value, loops.step, loops.length, loops.most)
            for loops in growing
            if loops.value is not None
        )
    if case.options.by_proof:
        return
    answers = dict(verdict.beyond)
    # A yes does not stand before the other launches are judged.
    verdict.beyond |= {
        question: f"not shown: smaller launches were not judged; {answers[question]}" for question in answers
    }
    others = OtherLaunches(case, judge, verdict, choices.trace.instructions)
    if case.options.any_trips:
        answers[TRIPS] = others.longer(answers[TRIPS], [loops.param for loops in growing])
    steps = {
        loops.param: (loops.length * others.per_round(loops.param, loops.step, loops.length), loops.length)
        for loops in growing
    }
    for question, what, launch in _smaller(others.small, size_questions(case), steps, choices.trace.instructions):
        if what not in verdict.smaller:
            others.smaller(question, what, launch)
    for question, answer in answers.items():
        wrong = others.wrong.get(question)
        verdict.beyond[question] = f"no: {wrong[0]}; for larger ones {answer}" if wrong else answer


@dataclass(slots=True)
class OtherLaunches:
    """Judges launches beside one that was judged. `instructions`: of the run of that one. `wrong`: by question the
    findings that it does not have.
    """

    case: KernelCase
    judge: Callable[[KernelCase], KernelVerdict]
    verdict: KernelVerdict
    instructions: int
    wrong: dict[str, list[str]] = field(default_factory=dict)

    @property
    def small(self) -> KernelCase:
        """The case of smaller launches: with a bound of steps, since a loop may count down from 0."""
        steps = 2 * self.instructions // min(LANES, self.case.launch.threads) + SPARE
        options = replace(self.case.options, any_grid=False, any_trips=False, readings=(), steps=steps)
        return replace(self.case, options=options, effort=Effort())

    def _judged(self, question: str, what: str, launch: Launch, options: CheckOptions) -> KernelVerdict | None:
        """The verdict on a launch; None if it cannot be run. Its first new finding goes into `wrong`."""
        options = replace(options, ctas=chosen_ctas(launch, ()))
        try:
            judged = self.judge(replace(self.case, launch=launch, options=options, effort=Effort()))
        except InputError:
            return None
        known = {finding.key for finding in self.verdict.serious}
        new = [finding for finding in judged.serious if finding.key not in known]
        self.wrong.setdefault(question, []).extend(f"{rule_in_lines(*finding.key)} with {what}" for finding in new[:1])
        return judged

    def smaller(self, question: str, what: str, launch: Launch) -> bool:
        """Judge a smaller launch, and say so in the verdict; True if its word is that of the launch."""
        judged = self._judged(question, what, launch, self.small.options)
        self.verdict.smaller[what] = "undecided" if judged is None else judged.word
        return self.verdict.smaller[what] == self.verdict.word

    def longer(self, answer: str, growing: Sequence[ParamPart]) -> str:
        """The answer about trip counts with what longer launches add: a proof where the launch is too short for one,
        and that there is one for each number of rounds.
        """
        params = list(growing) or parameters(self.case.entry, deciding(self.case.entry))
        too_short = TOO_SHORT in answer and not growing
        if len(params) != 1 or self.instructions > CHEAP or not (too_short or self.verdict.growth):
            return answer
        part, value = params[0], number_of(self.case.entry, self.case.launch, params[0])
        if value is None or ("not shown" in answer and not too_short):
            return answer
        if too_short:
            answer = self._from_a_longer_one(answer, part, value, _step_of_a_round(self.small, part, value) or 1)
        growth = next(iter(self.verdict.growth), None)
        return answer if growth is None or self.wrong.get(TRIPS) else self._for_each_number(answer, part, growth)

    def _longer_launch(self, part: ParamPart, number: int) -> Launch | None:
        """The launch with another number there, and with buffers that reach."""
        value = number_of(self.case.entry, self.case.launch, part) or 0
        launch = with_number(self.case.entry, self.case.launch, part, number)
        return None if launch is None else with_longer_buffers(launch, number // max(value, 1) + 1)

    def per_round(self, part: ParamPart, step: int, rounds: int) -> int:
        """By how much a parameter grows for one more round, if it grows by a step for some rounds."""
        value = number_of(self.case.entry, self.case.launch, part)
        shown = (
            _step_of_a_round(self.small, part, value) if value is not None and self.instructions <= CHEAP_EACH else None
        )
        if shown is not None and step % shown == 0:
            return shown
        return step // rounds if step % rounds == 0 else step

    def _shown(self, part: ParamPart, number: int) -> tuple[str, Growth] | None:
        """What is said of a longer launch and what is shown of it, if its verdict is the same."""
        launch = self._longer_launch(part, number)
        if launch is None:
            return None
        options = replace(self.case.options, any_grid=False, readings=(), by_proof=True)
        judged = self._judged(TRIPS, f"{part} = {number}", launch, options)
        if judged is None or judged.word != self.verdict.word or not judged.growth:
            return None
        answer = judged.beyond[TRIPS]
        return (answer, judged.growth[0]) if "not shown" not in answer else None

    def _from_a_longer_one(self, answer: str, part: ParamPart, value: int, each: int) -> str:
        """The proof for a launch with more rounds that differs from this one by whole periods, and verdicts on those
        between them.
        """
        for rounds in LONGER:
            if self.wrong.get(TRIPS) or self.instructions * (value + rounds * each) > CHEAP * max(value, each):
                break
            shown = self._shown(part, value + rounds * each)
            if shown is None or self.wrong.get(TRIPS):
                continue
            step, number = shown[1].step, shown[1].value
            begin = value - (value - number) // step * step
            shown = shown if begin == number else self._shown(part, begin)
            if shown is None or shown[1].step != step:
                break
            between = list(range(value + step, begin, step))
            if not all(self._same(part, number) for number in between):
                break
            self.verdict.growth = (shown[1],)
            judged = ", ".join(map(str, [value, *between]))
            return f"{shown[0]}; judged with {part} = {judged}"
        return answer

    def _same(self, part: ParamPart, number: int) -> bool:
        """True if a longer launch has the same word."""
        launch = self._longer_launch(part, number)
        options = replace(self.small.options, steps=None)
        if launch is None:
            return False
        judged = self._judged(TRIPS, f"{part} = {number}", launch, options)
        return judged is not None and judged.word == self.verdict.word

    def _for_each_number(self, answer: str, part: ParamPart, growth: Growth) -> str:
        """The answer, if it can be, for each number of rounds: all smaller launches, and the proof for each rest."""
        per_round = self.per_round(part, growth.step, growth.rounds)
        if (
            growth.value % per_round
            or self.instructions > CHEAP_EACH
            or growth.value + growth.step > MOST_EACH * per_round
        ):
            return answer
        limits = [growth.value + growth.step * growth.most]
        for number in range(growth.value + per_round, growth.value + growth.step, per_round):
            shown = self._shown(part, number)
            if shown is None or shown[1].step != growth.step:
                return answer
            limits.append(number + growth.step * shown[1].most)
        for number in range(0, growth.value, per_round):
            launch = self._longer_launch(part, number)
            own = number == number_of(self.case.entry, self.case.launch, part)
            if launch is None or not (own or self.smaller(TRIPS, f"{part} = {number}", launch)):
                return answer
        which = f"{part} that is a multiple of {per_round}" if per_round > 1 else str(part)
        reach = f"up to {min(limits)}, where numbers wrap; as long as buffers reach"
        return f"yes, for every {which} ({reach}): {answer.partition('): ')[2].partition(';')[0]}"


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
    reached = reaching(case.entry, loops_of(case.entry) or {}, pointers(case.entry, case.launch))
    for part in [*deciders, *(part for part in reached if part not in deciders)][:MOST_SMALLER]:
        value = number_of(case.entry, launch, part)
        if value is None:
            continue
        if part in steps:
            numbers = _few(value, *steps[part])
        elif part in deciders:
            step = (_step_of_a_round(case, part, value) if instructions <= CHEAP else None) or 1
            numbers = sorted({*_few(value, RING * step, RING), *range(min(value, 2))})
        else:
            numbers = [number for number in sorted({0, 1, value - 1}) if 0 <= number < value]
        for number in numbers:
            changed = with_number(case.entry, launch, part, number)
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


def _step_of_a_round(case: KernelCase, part: ParamPart, value: int) -> int | None:
    """By how much a parameter grows for one more round, as far as a few runs show it: what lies between the two
    smallest values with which a launch executes more instructions than with less. None if they show nothing.
    """
    tries, end = MOST_TRIES, 2 * value + RING

    def executed(number: int) -> int | None:
        nonlocal tries
        tries -= 1
        changed = with_number(case.entry, case.launch, part, number)
        if changed is None or tries < 0:
            return None
        try:
            schedule = Schedule(ctas=chosen_ctas(changed, ()), assumed=case.options.assumed, steps=case.options.steps)
            return run_launch(case.module, case.entry, changed, schedule).instructions
        except (Refused, InputError):
            return None

    def next_change(start: int) -> int | None:
        before, low, reach = executed(start), start, 1
        while low + reach < end and executed(low + reach) == before:
            low, reach = low + reach, 2 * reach
        high = min(low + reach, end)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if executed(middle) == before else (low, middle)
        return high if before is not None and tries >= 0 else None

    first = next_change(0)
    second = None if first is None or first >= end else next_change(first)
    return None if first is None or second is None else second - first


def _few(value: int, step: int, length: int) -> list[int]:
    """Smaller values of a parameter: for 0 and 1 rounds, and for about as many as a ring has stages.

    `step`: what it grows by in a period; `length`: the rounds of a period, which are those of a ring or twice as many.
    """
    each = step // length if step % length == 0 else step
    rounds: Iterable[int] = {0, 1, *(stages + n for stages in (length // 2, length) for n in (-1, 0, 1))}
    return sorted({each * count for count in rounds if 0 <= each * count < value})
