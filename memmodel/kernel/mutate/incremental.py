"""The mutants of a kernel, judged for much less than a verdict each.

In: the kernel with its verdict, the mutations. Out: a result for each. What is wrong with most mutants shows in the run
of the kernel itself (`same_run`). Those that only take order away, and in which nothing shows there, are judged many at
once: where nothing is noticed in a kernel with several changes, nothing is in one with a single one of them, which has
more order. Made together are those in which nothing shows in the run either. Where something is noticed, those that a
reading needs are told apart in the run; otherwise neighbours, which often stand in for each other, go to different
halves, and so on. Waits are judged together in the runs of the kernel in which their tests stay and observe nothing:
without one wait, the test of another one may be what is wrong. Of the weaker forms of an instruction the weakest are
judged first: where nothing is noticed with one of them, nothing is with a stronger one. All others are judged for
themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from memmodel.kernel.mutate.mutants import (
    MutantFate,
    MutantResult,
    MutantWork,
    Noticed,
    explained,
    fate_of,
    judged_alone,
    reached,
)
from memmodel.kernel.mutate.mutations import REMOVED, Mutation, is_weaker, with_all
from memmodel.kernel.mutate.reasons import LaunchOrder
from memmodel.kernel.mutate.same_run import SameRun
from memmodel.kernel.mutate.together import largest
from memmodel.kernel.order.verdict import FindingKey, KernelFinding

Judged = Iterator[tuple[int, MutantResult]]
MANY = 3
"""More changes of one opcode are put to the run at once before they are put to it one by one."""
NEEDLESS = "nothing is noticed without the whole instruction"


def judged_incrementally(work: MutantWork, same: SameRun, jobs: int) -> Judged:
    """The result of each change. Raises BudgetSpent."""
    changes = work.changes
    removals = [number for number, change in enumerate(changes) if change.what == REMOVED]
    needless, tested = set(), set[int]()
    for number, result in _judged(work, same, removals, jobs, tested):
        change = result.mutation
        needed = result.noticed is not Noticed.UNNOTICED or result.needing
        if not needed and (same.only_orders(change) or number in tested):
            needless.add(change.instruction.number)
        yield number, result
    weaker = [number for number, change in enumerate(changes) if change.what != REMOVED]
    idle_too = _doing_less(work, same, [it for it in weaker if changes[it].instruction.number in needless])
    for number in weaker:
        if number in idle_too:
            yield number, MutantResult(changes[number], Noticed.UNNOTICED, NEEDLESS)
    left = [number for number in weaker if number not in idle_too]
    below = {number: [other for other in left if is_weaker(changes[other], changes[number])] for number in left}
    idle: dict[int, MutantResult] = {}
    for number, result in _judged(work, same, [number for number in left if not below[number]], jobs):
        if result.noticed is Noticed.UNNOTICED and not result.needing and same.only_orders(result.mutation):
            idle[number] = result
        yield number, result
    rest = [number for number in left if below[number]]
    for number in rest:
        weakest = next((idle[other] for other in below[number] if other in idle), None)
        if weakest is not None and same.only_orders(changes[number]):
            yield number, MutantResult(changes[number], Noticed.UNNOTICED, weakest.how)
    yield from _judged(work, same, [number for number in rest if idle.keys().isdisjoint(below[number])], jobs)


def _doing_less(work: MutantWork, same: SameRun, numbers: Sequence[int]) -> set[int]:
    """Weaker forms of instructions without which nothing is noticed, with which nothing is either. A wait may be
    noticed itself: it has to be for its own phase. Nothing else is wrong with its test, which was judged where it
    observes nothing. With a weaker test that looks ahead, a thread either makes the wait
    that it saves, as in the kernel, or does not, as without the test. All other waits are weakened at once first: with
    one weaker wait there is no less order than with all of them.
    """
    waits = [number for number in numbers if work.runs.waits_in_all(work.changes[number])]
    idle = set(numbers).difference(waits)
    for members in _rounds(work, same, [number for number in waits if same.only_orders(work.changes[number])]):
        work.check_time()
        plain = [number for number in members if not work.runs.look_ahead(work.changes[number])]
        changes = [work.changes[number] for number in plain]
        if work.runs.are_executions(changes) and not work.runs.show(changes):
            idle.update(plain)
        idle.update(it for it in members if it not in idle and not work.runs.show([work.changes[it]]))
    return idle


def _rounds(work: MutantWork, same: SameRun, numbers: Sequence[int]) -> list[list[int]]:
    """Changes of different instructions, which are alike: the first of each, the second of each, and so on."""
    rounds: dict[tuple[int, bool, bool], list[int]] = {}
    for _, of_instruction in groupby(numbers, key=lambda number: work.changes[number].instruction.number):
        for place, number in enumerate(of_instruction):  # readings are about proxies, mostly
            change = work.changes[number]
            kind = place, "proxy" in change.instruction.words, same.only_orders(change)
            rounds.setdefault(kind, []).append(number)
    return list(rounds.values())


def _judged(
    work: MutantWork, same: SameRun, numbers: Sequence[int], jobs: int, tested: set[int] | None = None
) -> Judged:  # fmt: skip
    """The results of some changes. Those that are judged at once are of different instructions. `tested`: what it is
    for `_at_once`."""
    alone, waits, left = list[int](), list[int](), list[int]()
    # Where not all schedules were looked at, other ones may be looked at with more changes.
    groups = work.base.exhaustive or not work.base.choices
    met = [number for number in numbers if reached(work, work.changes[number].instruction)]
    shown = _shown_of_order(work, same, met)
    silent = frozenset(_silent(work, [number for number, found in shown.items() if found == []]))
    for number in numbers:
        change = work.changes[number]
        if number not in met:
            yield number, MutantResult(change, Noticed.UNREACHED)
            continue
        work.check_time()
        new = shown[number] if number in shown else same.new_findings(change)
        execution = new is not None
        new = new or (work.runs.new_findings([change]) if execution and number not in silent else [])
        if new:
            yield number, MutantResult(change, *fate_of([finding.key for finding in new], work.base.known_keys))
        elif not execution and (hangs := _hangs(work, same, change)):
            yield number, MutantResult(change, *fate_of(hangs))
        elif execution and same.only_orders(change) and (why := work.runs.why_undecided(change)):
            yield number, MutantResult(change, Noticed.UNDECIDED, why)
        else:  # a change about which nothing is known yet would spoil the others
            at_once = execution and (groups or work.runs.cover(change))
            if at_once and same.keeps_others(change):
                left.append(number)
            else:  # the runs still know what differs with it
                (waits if _only_waits(work, change) else alone).append(number)
    for members in _rounds(work, same, left):
        for group in _groups(work, same, members):
            yield from _at_once(work, same, group)
    for group in _groups(work, same, waits):
        yield from _at_once(work, same, group, tested)
    yield from judged_alone(work, alone, jobs)  # last: where the time runs out, many at once say more


def _only_waits(work: MutantWork, change: Mutation) -> bool:
    """True if a wait is removed without which the model finds nothing: the runs show nothing, and other waits are for
    their own phases. What readings find is asked of it with others. Where order is a matter of chance, a schedule may
    show what the runs do not.
    """
    work.check_time()
    if change.what != REMOVED or not (work.runs.waits_in_all(change) and work.runs.certain):
        return False
    return not work.runs.show([change])


def _hangs(work: MutantWork, same: SameRun, change: Mutation) -> list[FindingKey]:
    """The hangs that a change adds, as far as the kernel's runs tell."""
    hangs = same.endless_waits([change]) or work.runs.endless_waits([change])
    return [key for key in hangs if key not in work.base.known_keys]


def _shown_of_order(
    work: MutantWork, same: SameRun, numbers: Sequence[int]
) -> dict[int, list[KernelFinding] | None]:  # fmt: skip
    """The findings that the run shows with each change that keeps others. If it shows nothing with all changes of one
    opcode, it shows nothing with any of them.
    """
    shown: dict[int, list[KernelFinding] | None] = {}
    for members in _alike(work, [number for number in numbers if same.keeps_others(work.changes[number])]):
        work.check_time()
        if len(members) > MANY and same.new_findings(*(work.changes[number] for number in members)) == []:
            shown |= {number: [] for number in members}
        else:
            shown |= {number: same.new_findings(work.changes[number]) for number in members}
    return shown


def _silent(work: MutantWork, numbers: Sequence[int]) -> Iterator[int]:
    """Removals of which longer runs show nothing, since they show nothing with all of one opcode."""
    for members in _alike(work, [number for number in numbers if work.changes[number].what == REMOVED]):
        work.check_time()
        if len(members) > MANY and not work.runs.new_findings([work.changes[number] for number in members]):
            yield from members


def _alike(work: MutantWork, numbers: Sequence[int]) -> Iterable[list[int]]:
    """Changes of one kind of instructions of one opcode."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for number in numbers:
        change = work.changes[number]
        alike.setdefault((change.what, *change.instruction.words), []).append(number)
    return alike.values()


def _groups(work: MutantWork, same: SameRun, numbers: Sequence[int]) -> Iterator[list[int]]:
    """The changes in few parts, in each of which nothing shows in the run, unless it is one change."""

    def shows(members: Sequence[int]) -> bool:
        work.check_time()
        changes = [work.changes[number] for number in members]
        return same.shows(changes) is not None or bool(work.runs.new_findings(changes))

    while numbers:
        group = largest(numbers, lambda members: len(members) == 1 or not shows(members))
        yield group
        numbers = [number for number in numbers if number not in group]


def _at_once(work: MutantWork, same: SameRun, numbers: Sequence[int], tested: set[int] | None = None) -> Judged:
    """The results of some changes, judged together as far as nothing is noticed. `tested`: given for removals of waits.
    Then their tests stay, and those are added of which nothing is noticed.
    """
    mutant = with_all(work.entry, [work.changes[number] for number in numbers])
    outcome, judged = work.outcome(mutant, tests_stay=tested is not None)
    with_parts = tested is None or (judged is not None and work.runs.lead_to(judged))
    if len(numbers) > 1 and not (outcome.unnoticed and with_parts):
        known = _needed_by_readings(work, same, numbers, outcome) if with_parts else []
        order = LaunchOrder.of(judged.representative) if judged is not None else None
        for number in known:
            yield number, MutantResult(work.changes[number], *explained(work, work.changes[number], outcome, order))
        left = [number for number in numbers if number not in known]
        judged = order = None  # much memory, which the parts may need
        for part in [left] if known else [numbers[::2], numbers[1::2]]:
            if part:
                yield from _at_once(work, same, part, tested)
        return
    if tested is not None and with_parts:
        if outcome.unnoticed:
            tested.update(numbers)
        else:  # its own test may be what is wrong
            outcome, judged = work.outcome(mutant)
    order = LaunchOrder.of(judged.representative) if judged is not None else None
    for number in numbers:
        change, unnoticed = work.changes[number], outcome.noticed is Noticed.UNNOTICED
        yield number, MutantResult(change, *(explained(work, change, outcome, order) if unnoticed else outcome))


def _needed_by_readings(work: MutantWork, same: SameRun, numbers: Sequence[int], outcome: MutantFate) -> list[int]:
    """The changes that, as the run shows, all readings need which need something of these. No other reading needs them,
    and the model itself needs none."""
    needed = list(numbers) if outcome.noticed is Noticed.UNNOTICED and outcome.needing else []
    for name, _, model in work.readings:
        if needed and name in outcome.needing:
            run = same.under(model)
            needed = [number for number in needed if run.new_findings(work.changes[number])]
    return needed
