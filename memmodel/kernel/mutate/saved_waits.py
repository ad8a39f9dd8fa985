"""The waits of a run that a thread does not make where a test before it has returned true.

In: a run, the numbers of its events. Out: for each test that looks ahead, the events of these waits. Settled here: in a
run such a test returns false, and the wait that it could save is made. Its answer decides nothing else
(`flow.ahead.looking_ahead`). So where it always returns true instead, a thread does the same without the waits of which
it was the last test: the machine asks in the same way which test a wait belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.kernel.flow.ahead import NOBODY
from memmodel.kernel.trace.launch import LaunchTrace


def saved_waits(run: LaunchTrace, numbers: Mapping[int, int]) -> dict[int, int]:
    """By the number of a test, these events as a mask. `numbers`: of events, by their identity."""
    saved = {test: 0 for wait, tests in run.awaits.items() if wait != NOBODY for test in tests}
    for thread in run.threads if saved else ():
        last: dict[int, int] = {}
        for place, event in enumerate(thread.events):
            if event.at in saved:
                last[event.at] = place
            known = [test for test in run.awaits.get(event.at, ()) if test in last]
            if known and (number := numbers.get(id(event))) is not None:
                saved[max(known, key=last.__getitem__)] |= 1 << number
    return saved | dict.fromkeys(run.awaits.get(NOBODY, ()), 0)
