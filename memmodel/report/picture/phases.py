"""The phases of mbarrier objects in an execution, and where the things of a picture lie.

In: Witness, with its execution; without one there is nothing to say. Out: `Phase`s, and a sentence on places.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memmodel.answer import Witness
from memmodel.base.labels import Action
from memmodel.base.rows import Rows
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.mbarriers import MbarrierUses, ObjectWalk
from memmodel.program.spelling import spell_cell
from memmodel.ptx.vocabulary import Space
from memmodel.why.story import execution_of

_SPACES = {Space.SHARED: "shared memory", Space.TENSOR: "tensor memory", Space.CONST: "constant memory"}


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of one object. `events`: what is counted in it, and the waits that it is over, or not over, for.

    `owner`: the CTA that the object belongs to, as `Place.cta_id`. `counted`: how much came.
    """

    name: str
    number: int
    over: bool
    counted: tuple[str, ...]
    events: frozenset[int]
    owner: tuple[object, ...] | None


def phases_of(witness: Witness) -> list[Phase]:
    """Every phase of every object in which something happens."""
    execution = execution_of(witness)
    if execution is None:
        return []
    observed = execution.relation("mbarobs")
    space = execution.frame.lowered.space
    phases: list[Phase] = []
    for uses in Assembly(execution.frame).objects:
        walk = uses.walk_of(execution.relation("mbar"))
        phases += _phases(uses, walk, spell_cell(space, uses.cell), observed)
    return phases


def _phases(uses: MbarrierUses, walk: ObjectWalk, name: str, observed: Rows) -> list[Phase]:
    last = walk.counts[-1]
    phases: dict[tuple[int, int], list[int]] = {}
    for number in range(len(walk.order)):
        if walk.has_effect(number) and walk.order[number].record.action not in (Action.INIT, Action.INVAL):
            phases.setdefault((walk.counts[number].life, walk.counts[number].over), []).append(number)
    seen: dict[tuple[int, int], set[int]] = {}
    for test in uses.tests:
        over = [phase for phase, inside in phases.items() if any(_has(observed, walk, n, test.event) for n in inside)]
        if test.record.result:
            seen.setdefault(max(over, key=lambda pair: pair[1]) if over else (last.life, -1), set()).add(test.event)
        else:
            seen.setdefault((last.life, last.over), set()).add(test.event)
    completed = []
    for phase in dict.fromkeys((*phases, *seen)):
        if phase[1] < 0:
            continue  # a wait for the phase before the first, which is over from the start
        inside = phases.get(phase, [])
        events = frozenset((*(walk.order[number].event for number in inside), *seen.get(phase, ())))
        done = phase != (last.life, last.over)
        counted = _counted(walk, inside) if done else tuple(uses.missing(walk).partition(": ")[2].split(", "))
        completed.append(Phase(name, phase[1], done, counted, events, uses.cell.instance.owner))
    return completed


def _has(rows: Rows, walk: ObjectWalk, number: int, test: int) -> bool:
    return bool(rows[walk.order[number].event] >> test & 1)


def _counted(walk: ObjectWalk, inside: list[int]) -> tuple[str, ...]:
    """What came in a phase that is over."""
    updates = [walk.order[number].record for number in inside]
    arrivals = sum(update.count for update in updates if update.action is Action.ARRIVE)
    size = sum(update.bytes for update in updates if update.action is Action.COMPLETE_TX)
    words = [f"{arrivals} arrival{'' if arrivals == 1 else 's'}"] if arrivals else []
    return (*words, f"{size} bytes") if size else tuple(words)


def places_line(witness: Witness, shown: Collection[int]) -> str:
    """`Shared memory of CTA 0: bar, s; global memory: g`, for what the events shown are about."""
    execution = execution_of(witness)
    if execution is None:
        return ""
    names: dict[str, dict[str, None]] = {}
    for uid in shown:
        cell = execution.events[uid].point.cell
        if cell is not None:
            owner = cell.instance.owner
            words = _SPACES.get(cell.instance.space, "global memory")
            where = words if owner is None else f"{words} of CTA {owner[-1]}"
            names.setdefault(where, {})[cell.instance.name] = None
    text = "; ".join(f"{where}: {', '.join(sorted(places))}" for where, places in sorted(names.items(), reverse=True))
    return text[:1].upper() + text[1:] + "." if text else ""
