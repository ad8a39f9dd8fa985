"""The waits of a run that a thread does not make where a test before it has returned true.

In: a run, the numbers of its events. Out: for each test that looks ahead these waits, and the execution without them;
or one in which tests observe nothing.
Settled here: in a run such a test returns false, and the wait that it could save is made. Its answer decides nothing
else (`flow.ahead.looking_ahead`). So where it always returns true instead, a thread does the same without the waits of
which it was the last test: the machine asks in the same way which test a wait belongs to, and both are for one phase.
If the test acquires less, the thread does the same without these waits where the test returns true, which then observes
what they observe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memmodel.base.rows import Rows, bits, components, mask_of
from memmodel.concrete.execution import Execution
from memmodel.kernel.flow.ahead import NOBODY, looking_ahead
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.order.conditions import sentence
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction

OBSERVES, TO_TEST, FROM_TEST = "mbarobs", ("mbarobs", "mbarseen"), ("mbarnext", "mbarfr")
"""The relations that lead to a test that has returned true, and from it."""

DONE = "MBDONE"
"""The tests that have returned true."""

Saved = Mapping[int, int]
"""By the event of a wait that of its test, by numbers."""


def saved_waits(run: LaunchTrace, numbers: Mapping[int, int]) -> dict[int, Saved]:
    """By the number of a test, what it saves. `numbers`: of events, by their identity."""
    saved: dict[int, dict[int, int]] = {test: {} for tests in run.awaits.values() for test in tests}
    for thread in run.threads if run.awaits.keys() - {NOBODY} else ():
        last: dict[int, int] = {}
        for place, event in enumerate(thread.events):
            if event.at in saved:
                last[event.at] = place
            known = [test for test in run.awaits.get(event.at, ()) if test in last]
            if known and (number := numbers.get(id(event))) is not None:
                test = max(known, key=last.__getitem__)
                saved[test][number] = numbers[id(thread.events[last[test]])]
    return dict(saved)


def why_undecided(run: LaunchTrace, entry: PtxFunction, test: PtxInstruction) -> str:
    """Why a kernel is undecided in which such a test, which saves waits in this run, acquires in another way than they;
    empty if it may be decided. It is a test as any other then, and no loop: after a failure the thread waits. That
    failures change nothing is never shown of it: the thread tests something else before it comes back.
    """
    open_ = complaints(entry, run.tests.keys() - run.proved, looking_ahead(entry))
    return next((sentence(other, why) for other, why in open_ if other is test), "")


def passing(execution: Execution, saved: Saved) -> Execution:
    """The execution in which these tests observe what the waits behind them observe, beside the waits."""
    waits = mask_of(saved)
    sets = {
        name: members | mask_of(saved[wait] for wait in bits(members & waits))
        for name, members in execution.chosen_sets.items()
    }
    changed = {name: list(execution.relation(name)) for name in (*TO_TEST, *FROM_TEST)}
    for rows in (changed[name] for name in TO_TEST):
        for row, seen in enumerate(rows):
            rows[row] = seen | mask_of(saved[wait] for wait in bits(seen & waits))
    for wait, test in saved.items():
        for name in FROM_TEST:
            changed[name][test] |= changed[name][wait]
    return replace(execution, chosen_sets=sets, chosen_relations={**execution.chosen_relations, **changed})


def observing_nothing(execution: Execution, tests: int) -> Execution:
    """The execution in which these tests observe nothing, as if they had returned false and the thread had gone on."""
    sets = {**execution.chosen_sets, DONE: execution.chosen_sets[DONE] & ~tests}
    changed: dict[str, Rows] = {}
    for name in TO_TEST:
        changed[name] = [row & ~tests for row in execution.relation(name)]
    for name in FROM_TEST:
        changed[name] = [0 if tests >> test & 1 else row for test, row in enumerate(execution.relation(name))]
    return replace(execution, chosen_sets=sets, chosen_relations={**execution.chosen_relations, **changed})


def may_pass(execution: Execution, saved: Saved, happens: Rows) -> bool:
    """True if all these tests may return true in one execution: none has to come before what it observes.

    `happens`: the order in which the run is executed, in which no arrival of a later phase comes before one of an
    earlier phase. A thread may come to its tests later than in the run, as long as nothing waits for what it does
    behind them. So they may be made when the phases are over, unless what ends one comes after a test that waits for
    another, and so on in a circle.
    """
    tests = {test: place for place, test in enumerate(dict.fromkeys(saved.values()))}
    of_update, waits = dict[int, int](), mask_of(saved)
    for update, seen in enumerate(execution.relation(OBSERVES)):
        for wait in bits(seen & waits):
            of_update[update] = of_update.get(update, 0) | 1 << tests[saved[wait]]
    updates, rows = mask_of(of_update), list[int]()
    for test in tests:
        later = 0
        for update in bits(happens[test] & updates):
            later |= of_update[update]
        rows.append(later)
    return all(len(part) == 1 for part in components(rows)) and not any(row >> at & 1 for at, row in enumerate(rows))
