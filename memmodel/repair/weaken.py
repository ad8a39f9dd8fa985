"""Which fences of a test may be dropped, and which scopes and semantics narrowed, with nothing more allowed.

In: a test, models, options. Out: `Weaker`: the cheapest program that was found, its diff, and what each change saves.
Settled here: what has to stay. Every outcome of the changed test, in the terms that its question names, is one of the
test as it was, and no flag is raised that was not raised before. Everything that is returned has been judged in full.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from memmodel import engine
from memmodel.base.classes import dataclass, replace
from memmodel.base.oneline import count, shown
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import BudgetSpent
from memmodel.isa.lower import read_instruction
from memmodel.isa.row import Spelling
from memmodel.limits import available, together
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.repair.costs import OTHER, SCOPE_COST, SEM_FACTOR, cost
from memmodel.repair.edits import Edit, apply, diff, whole
from memmodel.repair.insertion.gaps import gaps
from memmodel.repair.judge import Judge, Standing, judging, parse
from memmodel.repair.layout import laid
from memmodel.repair.spellings import RESTRICTED, apart, is_fence, narrower

NOT_NEEDED = "what is forbidden stays forbidden without it"
ONLY_SHARED = "only shared memory is handed over"

MAX_TRIED = 400
"""Combinations that are judged before the search takes what it has and narrows one place after the other."""


@dataclass(frozen=True, slots=True, repr=False)
class Weaker:
    """The outcome of a search. `changes` empty: nothing can go, or `reason` says why nothing was tried."""

    name: str
    old: str
    new: str
    changes: tuple[Edit, ...]
    tried: int
    reason: str = ""
    best: bool = True

    def __repr__(self) -> str:
        saved = f"{self.name}: {count(len(self.changes), 'change')}, saves {self.saves:g}"
        return shown("Weaker", saved, self.reason, *(edit.what for edit in self.changes))

    @property
    def saves(self) -> float:
        """By the table of costs."""
        return -sum(edit.cost for edit in self.changes)

    def diff(self) -> str:
        """The change as a unified diff; empty if there is none."""
        return diff(self.name, self.old, self.new) if self.changes else ""


def weaken(
    name: str,
    text: str,
    models: tuple[Model, ...],
    options: Options,
    progress: Callable[[int], None] | None = None,
) -> Weaker:
    """The cheapest equivalent of a test, in the layout that it has.

    Raises InputError for a text that is no test, and for a table that blocks cannot say.
    """
    from memmodel import api
    from memmodel.source import Source

    given = laid(Source(name, text))
    asked = api.questions(api.lowered(Source(name, given.blocks)))
    try:
        with together(options.budget):
            found = _weaker(name, given.blocks, asked, models, options, progress)
        changes = tuple(replace(edit, what=given.said(edit.what)) for edit in found.changes)
        return replace(found, old=text, new=given.back(found.new) if changes else text, changes=changes)
    except BudgetSpent as spent:
        return Weaker(name, text, text, (), 1, f"not decided: {spent}")


def _weaker(
    name: str,
    text: str,
    asked: tuple[LoweredTest, ...],
    models: tuple[Model, ...],
    options: Options,
    progress: Callable[[int], None] | None,
) -> Weaker:
    judge = judging(name, models, options)
    before = judge(text)
    states = _states(asked, models, options) if before is not None and before.complete else None
    if before is None or states is None:
        return Weaker(name, text, text, (), 1, "what the test allows as it stands is not decided")
    allowed: list[frozenset[object]] = states
    tried = 0

    def acceptable(edits: tuple[Edit, ...]) -> bool:
        nonlocal tried
        tried += 1
        if progress is not None:
            progress(tried)
        return _no_worse(name, apply(text, edits), before, allowed, judge, models, options)

    def so_far() -> int:
        available(options.budget)
        return tried

    sites = _sites(asked[0])
    singles = [[edit for edit in site if acceptable((edit,))] for site in sites]
    singles = [site for site in singles if site]
    chosen, best = _cheapest(singles, acceptable, so_far)
    return Weaker(name, text, apply(text, chosen), chosen, tried, best=best)


def _no_worse(
    name: str,
    text: str,
    before: Standing,
    allowed: list[frozenset[object]],
    judge: Judge,
    models: tuple[Model, ...],
    options: Options,
) -> bool:
    now = judge(text)
    if now is None or not now.complete or not now.findings <= before.findings:
        return False
    if [one[2] for one in now.observations] != [one[2] for one in before.observations]:
        return False
    asked = parse(name, text)
    states = None if asked is None else _states(asked, models, options)
    return states is not None and all(new <= old for new, old in zip(states, allowed, strict=True))


def _states(
    asked: tuple[LoweredTest, ...], models: tuple[Model, ...], options: Options
) -> list[frozenset[object]] | None:
    """The final states for each question and model; None if one list is not complete."""
    found: list[frozenset[object]] = []
    for steps in asked:
        if steps.test.finding is not None:
            continue
        for model in models:
            outcomes = engine.outcomes(steps, model, options)
            if not outcomes.complete:
                return None
            found.append(frozenset(state.values for state in outcomes.states))
    return found


def _sites(lowered: LoweredTest) -> list[list[Edit]]:
    """For every instruction that may be narrowed, its cheaper forms, the cheapest first."""
    test = lowered.test
    found: list[list[Edit]] = []
    for number, thread in enumerate(test.threads):
        for index, item in enumerate(instructions(thread)):
            now = cost(read_instruction(item, test))
            site: list[Edit] = []
            where = f"{thread.name}, line {item.span.line}"
            group = (number, index)
            if is_fence(lowered, number, index):
                start, end = whole(test.source, item)
                site.append(Edit(start, end, "", f"{where}: drop {item.mnemonic}: {NOT_NEEDED}", -now, group))
            for mnemonic, spelling in narrower(item, test):
                saved = now - cost(spelling)
                if saved > 0:
                    span = item.mnemonic_span
                    what = f"{where}: {item.mnemonic} -> {mnemonic}: {_why(read_instruction(item, test), spelling)}"
                    site.append(Edit(span.start, span.end, mnemonic, what, -saved, group))
            site += _apart(lowered, number, index, item, now)
            if site:
                found.append(sorted(site, key=lambda edit: edit.cost))
    return found


def _why(old: Spelling, new: Spelling) -> str:
    """Why a weaker spelling is enough, where it is."""
    before, after = dict(old.words), dict(new.words)
    if "restrict" in after:
        return ONLY_SHARED
    if after.get("space") != before.get("space"):
        return f"only .{after['space']} memory is accessed through both proxies"
    sem, scope = (after.get(slot) if after.get(slot) != before.get(slot) else None for slot in ("sem", "scope"))
    if sem is None:
        return f".{scope or after.get('level', 'cta')} takes in all threads that it has to reach"
    return f"as .{sem} it orders all that it has to"


def _apart(lowered: LoweredTest, number: int, index: int, item: Instruction, now: float) -> Iterator[Edit]:
    """A relaxed operation, and a fence for shared memory alone in front of a release or after an acquire."""
    test, thread = lowered.test, lowered.test.threads[number]
    found = apart(item, test)
    if found is None:
        return
    sem, mnemonic, spelling = found
    fence = RESTRICTED[sem]
    there = [gap for gap in gaps(lowered, number) if not gap.last]
    if sem == "release":
        gap = next((gap for gap in there if gap.index == index), None)
    else:
        gap = next((gap for gap in there if gap.index > index), None)
    saved = now - cost(spelling) - OTHER - SCOPE_COST["cta"] * SEM_FACTOR[sem]
    if gap is None or saved <= 0:
        return
    span = item.mnemonic_span
    where = f"{thread.name}, line {item.span.line}"
    what = f"{where}: {item.mnemonic} -> {mnemonic}, with {fence} {gap.where}: {ONLY_SHARED}"
    start, text = gap.put(test.source, f"{fence};")
    line = Edit(start, start, text, what, 0.0, (number, gap.index, fence))
    yield Edit(span.start, span.end, mnemonic, what, -saved, (number, index), more=(line,))


def _cheapest(
    sites: list[list[Edit]], acceptable: Callable[[tuple[Edit, ...]], bool], tried: Callable[[], int]
) -> tuple[tuple[Edit, ...], bool]:
    """The combination that saves most, and whether every better one was refuted.

    Combinations come in the order of what they save. One that is refuted is narrowed down to the changes that are to
    blame, and none that contains these is tried again.
    """
    if not sites:
        return (), True
    refuted: list[frozenset[Edit]] = []
    options = [[*site, None] for site in sites]
    start = (0,) * len(sites)
    heap = [(_total(options, start), start)]
    seen = {start}
    while heap and tried() < MAX_TRIED:
        _, at = heapq.heappop(heap)
        edits = tuple(one for site, n in zip(options, at, strict=True) if (one := site[n]) is not None)
        if not any(conflict <= set(edits) for conflict in refuted):
            if not edits or acceptable(edits):
                return edits, True
            refuted.append(frozenset(_blamed(edits, acceptable)))
        for following in _next(at, options):
            if following not in seen:
                seen.add(following)
                heapq.heappush(heap, (_total(options, following), following))
    return _one_by_one(sites, acceptable), False


def _total(options: list[list[Edit | None]], at: tuple[int, ...]) -> float:
    return sum(one.cost for site, n in zip(options, at, strict=True) if (one := site[n]) is not None)


def _next(at: tuple[int, ...], options: list[list[Edit | None]]) -> Iterator[tuple[int, ...]]:
    for place, n in enumerate(at):
        if n + 1 < len(options[place]):
            yield (*at[:place], n + 1, *at[place + 1 :])


def _blamed(edits: tuple[Edit, ...], acceptable: Callable[[tuple[Edit, ...]], bool]) -> tuple[Edit, ...]:
    """A part of the edits that is refuted as well, and of which no edit can be left out."""
    kept = list(edits)
    for edit in edits:
        rest = tuple(one for one in kept if one is not edit)
        if len(rest) > 1 and not acceptable(rest):
            kept.remove(edit)
    return tuple(kept)


def _one_by_one(sites: list[list[Edit]], acceptable: Callable[[tuple[Edit, ...]], bool]) -> tuple[Edit, ...]:
    chosen: tuple[Edit, ...] = ()
    for site in sorted(sites, key=lambda one: one[0].cost):
        for edit in site:
            if acceptable((*chosen, edit)):
                chosen = (*chosen, edit)
                break
    return chosen
