"""Another mbarrier object in an instruction: one that a thread waits for in vain, or for which it never waits; the
object of another CTA in place of one's own, for which nobody waits.

In: a lowered test, executions of it that hang. Out: changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from memmodel.concrete.records import ObjectRecord
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.repair.costs import OTHER, SCOPE_COST, SEM_FACTOR
from memmodel.repair.edits import Edit, place
from memmodel.repair.insertion.arrivals import one_more
from memmodel.repair.judge import TextCounterexample
from memmodel.why.story import execution_of

SIGNALS = re.compile(r"mbarrier\.(arrive|expect_tx|complete_tx)|tcgen05\.commit|complete_tx::bytes")
PLAIN = re.compile(r"mbarrier\.arrive(\.release)?(\.cta)?(\.shared(::cta)?)?\.b64")
"""An arrival that expects no bytes, on an object of the own CTA."""

STATE = re.compile(r"\]\s*,\s*(%[\w$]+)")
"""The state that a wait names."""

ARRIVED = re.compile(r"^mbarrier\.arrive\S*\s+(%[\w$]+)\s*,")
"""The register that an arrival writes."""

REMOTE = "mbarrier.arrive.release.cluster.shared::cluster.b64"
OBJECT = re.compile(r"\[\s*([A-Za-z_$][\w$]*)(?:\s*\+\s*(\d+))?(\s*@\s*\w+)?\s*\]")
"""A variable, how many bytes on, and whose CTA's instance."""


def other_objects(lowered: LoweredTest, hangs: Iterable[TextCounterexample]) -> Iterator[Edit]:
    """Arrivals, commits and copies with an object for whose phase a thread waits for ever, or that nothing signals;
    waits for an object that is signalled and for which the thread does not wait."""
    uses = _uses(lowered)
    signalled = [name for _, _, item, match in uses if SIGNALS.search(item.mnemonic) for name in [_name(match)]]
    waits = [(number, _name(match)) for number, _, item, match in uses if "_wait" in item.mnemonic]
    in_vain = [name for _, name in waits if name not in signalled]
    wanted = list(dict.fromkeys([*(name for hang in hangs for name in awaited(hang)), *in_vain]))
    for number, index, item, match in uses:
        others = wanted if SIGNALS.search(item.mnemonic) else []
        if "_wait" in item.mnemonic:
            others = [name for name in dict.fromkeys(signalled) if (number, name) not in waits]
        for name, offset in others:
            if (name, offset) != _name(match):
                text = f"[{name}{f'+{offset}' if offset else ''}{match[3] or ''}]"
                what = f"{place(lowered.test.threads[number], item)}: {match[0]} -> {text} in {item.mnemonic}"
                start = item.span.start + match.start()
                yield Edit(start, start + len(match[0]), text, what, OTHER, (number, index, "name"))


def in_other_ctas(lowered: LoweredTest) -> Iterator[Edit]:
    """Arrivals on the object of another CTA, for which a thread of that CTA waits, and for its own none of the own CTA;
    with the count that the object has, or one more. Copies and stores that tell such an object of their bytes."""
    uses, threads = _uses(lowered), lowered.test.threads
    waits = {
        (_name(match), threads[number].place.cta_id) for number, _, item, match in uses if "_wait" in item.mnemonic
    }
    for number, index, item, match in uses:
        home, (name, offset) = threads[number].place, _name(match)
        if "complete_tx::bytes" in item.mnemonic and "::cluster" in item.mnemonic:
            yield from _of_copies(lowered, (number, index, item, match), waits)
        if not PLAIN.fullmatch(item.mnemonic) or match[3] or (_name(match), home.cta_id) in waits:
            continue
        ctas = {other.place.cta: None for other in threads if other.place.cluster_id == home.cluster_id}
        for cta in ctas:
            if (_name(match), (home.gpu, home.cluster_id, cta)) not in waits:
                continue
            object_there = f"[{name}@cta{cta}{f'+{offset}' if offset else ''}]"
            text = f"{REMOTE} _, {object_there}"
            what = f"{place(threads[number], item)}: {item.span.text} -> {text}"
            price, more = OTHER + SCOPE_COST["cluster"] * SEM_FACTOR["release"], one_more(lowered, name)
            change = Edit(item.span.start, item.span.end, text, what, price, (number, index, "name"))
            yield change
            if more is not None:
                yield replace(change, what=f"{what} with {more.what}", cost=price + OTHER, more=(more,))


def _of_copies(
    lowered: LoweredTest, use: tuple[int, int, Instruction, re.Match[str]], waits: Collection[tuple[object, object]]
) -> Iterator[Edit]:
    """A copy or store with the object of another CTA of the cluster, for which a thread waits there, and for the one
    that it names nobody."""
    number, index, item, match = use
    threads, (name, offset) = lowered.test.threads, _name(match)
    home = threads[number].place
    ids = {other.place.cta: other.place.cta_id for other in threads if other.place.cluster_id == home.cluster_id}
    named = int(match[3].rpartition("cta")[2]) if match[3] else home.cta
    if ((name, offset), ids.get(named)) in waits:
        return
    for cta, there in ids.items():
        if ((name, offset), there) in waits:
            text = f"[{name}@cta{cta}{f'+{offset}' if offset else ''}]"
            what = f"{place(threads[number], item)}: {match[0]} -> {text} in {item.mnemonic}"
            start = item.span.start + match.start()
            yield Edit(start, start + len(match[0]), text, what, OTHER, (number, index, "name"))


def other_states(lowered: LoweredTest) -> Iterator[Edit]:
    """Waits for the state that another arrival of the thread on the same object has returned."""
    uses = _uses(lowered)
    for number, index, item, match in uses:
        state = STATE.search(item.span.text) if "_wait" in item.mnemonic and "parity" not in item.mnemonic else None
        if state is None:
            continue
        arrivals = [
            ARRIVED.search(it.span.text) for n, _, it, named in uses if n == number and _name(named) == _name(match)
        ]
        for register in dict.fromkeys(found[1] for found in arrivals if found and found[1] != state[1]):
            start = item.span.start + state.start(1)
            what = f"{place(lowered.test.threads[number], item)}: {state[1]} -> {register} in {item.mnemonic}"
            yield Edit(start, start + len(state[1]), register, what, OTHER, (number, index, "name"))


def _uses(lowered: LoweredTest) -> list[tuple[int, int, Instruction, re.Match[str]]]:
    """The instructions that name an object, with their threads and numbers; of a copy, the last place that it names."""
    objects = {variable.name for variable in lowered.test.variables if variable.mbarrier is not None}
    items = [
        (n, i, item) for n, thread in enumerate(lowered.test.threads) for i, item in enumerate(instructions(thread))
    ]
    for _, _, item in items:
        if item.mnemonic.startswith("mbarrier."):
            objects |= {match[1] for match in OBJECT.finditer(item.span.text)}
    named = [(*item, [match for match in OBJECT.finditer(item[2].span.text) if match[1] in objects]) for item in items]
    return [(number, index, item, matches[-1]) for number, index, item, matches in named if matches]


def _name(match: re.Match[str]) -> tuple[str, int]:
    return match[1], int(match[2] or 0)


def awaited(hang: TextCounterexample) -> Iterator[tuple[str, int]]:
    """The objects that waiting threads test last, by their variables and how many bytes on."""
    execution = execution_of(hang.witness)
    for trace in () if execution is None else execution.frame.traces:
        last = trace.records[-1] if trace.records else None
        if trace.ending.first is not None and isinstance(last, ObjectRecord):
            yield last.object.instance.name, last.object.first
