"""What a program may lack between two accesses: changes of an execution, each with the reason that it stands for.

In: a `Situation`. Out: `Change`s in tiers: what a writer would add first (semantics, scopes, fences, waits), then
fence.sc and strong accesses, then synchronization that is not there at all. That two accesses are weak is a reason for
a race only where nothing else is.
"""

from __future__ import annotations

from memmodel.why.changes.arrivals import of_phases
from memmodel.why.changes.completion import of_signals, of_waits
from memmodel.why.changes.fences import of_fences
from memmodel.why.changes.labels import of_labels, stronger
from memmodel.why.changes.situation import Change, Situation
from memmodel.why.changes.synchronization import of_synchronization
from memmodel.why.changes.unseen import of_unseen

_KINDS = (of_labels, of_waits, of_signals, of_phases, of_unseen, of_fences, stronger, of_synchronization)


def changes_worth_trying(asked: Situation) -> list[Change]:
    """Every change, each once."""
    unique: dict[object, Change] = {}
    for kind in _KINDS:
        for change in kind(asked):
            unique.setdefault((change.alteration.fields, change.alteration.inserted, change.alteration.edges), change)
    return list(unique.values())
