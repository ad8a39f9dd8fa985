"""The cheapest synchronization with which a test is right.

In: a test that lacks synchronization, or one from which it is taken out first; models, a table of costs. Out:
`Synchronized`: the program, what it costs, and whether that is proved to be the least. Settled here: what is right. No
finding is left under any of the models, and what the test forbids never happens. What is returned was judged again, by
both engines where they can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic
from typing import Any

from memmodel import api
from memmodel.base.oneline import shown
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution
from memmodel.engine import Options
from memmodel.errors import BudgetSpent
from memmodel.limits import sharing_budget
from memmodel.litmus.syntax import Not, Quantifier
from memmodel.program.lowered import LoweredTest
from memmodel.repair.costs import DEFAULT, Costs
from memmodel.repair.edits import Edit, apply, diff
from memmodel.repair.fix import FIRST_MET, first_question, is_bad, wrong_words
from memmodel.repair.glance import Glance
from memmodel.repair.hints import by_turns
from memmodel.repair.insertion.meetings import barriers_between, meetings
from memmodel.repair.judge import AnswersOfTest, ended, judging, looking_for, newer_version, parse, undecided
from memmodel.repair.layout import Laid, laid
from memmodel.repair.searching.search import RepairSearch
from memmodel.repair.searching.trials import Aim
from memmodel.repair.searching.turns import Changes, in_order
from memmodel.repair.synchronizing.orderly import orderly
from memmodel.repair.synchronizing.phases_of import phase_waits
from memmodel.repair.synchronizing.prices import program_cost
from memmodel.repair.synchronizing.search import OUT_OF_TIME, WAIT, CheapestSearch, Reached
from memmodel.repair.synchronizing.strip import Strip, Stripped, stripped
from memmodel.repair.vocabulary import single_strengthenings
from memmodel.repair.weakening.needed import wrong_under
from memmodel.solve.kept_queries import KeptQueries
from memmodel.source import Source
from memmodel.why.story import execution_of


@dataclass(frozen=True, slots=True, repr=False)
class Synchronized:
    """The outcome of a search.

    `old`: the text as it was given; `bare`: without what was taken out; `new`: with the synchronization that was found,
    None if there is none. `changes`: of the bare text, in words. `cost`: of the new text, `given`: of the old one.
    `bound`: no set of the changes costs less in all. `offered`: how many changes there were to choose from. `reason`:
    why nothing was found, or it is not proved to be the cheapest. `judged`: by which engines, in words. `version`: of
    PTX, where the new text needs a newer one than the old. `depends`: readings under which the new text is wrong.
    `signals`: how each hand-over of a pipeline is signalled. `decided`: the search was done.
    """

    name: str
    old: str
    bare: str
    new: str | None
    changes: tuple[str, ...]
    wrong: tuple[str, ...]
    cost: float
    given: float
    bound: float
    offered: int
    tried: int
    reason: str = ""
    judged: str = ""
    version: str = ""
    depends: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    decided: bool = True

    @property
    def proved(self) -> bool:
        """True if no cheaper set of the changes is right."""
        return self.new is not None and self.decided

    def __repr__(self) -> str:
        end = "nothing found" if self.new is None else f"cost {self.cost:g}" + ("" if self.proved else " at most")
        return shown("Synchronized", f"{self.name}: {end}", self.reason, *self.changes)

    def diff(self) -> str:
        """From the text as it was given to the new one, as a unified diff; empty if nothing was found."""
        return "" if self.new is None else diff(self.name, self.old, self.new)


def synchronize(
    name: str,
    text: str,
    models: tuple[Model, ...],
    options: Options,
    *,
    strip: Strip = Strip.NOTHING,
    costs: Costs = DEFAULT,
    seconds: float = 60.0,
    below: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Synchronized:
    """The cheapest synchronization of a test, in the layout that it has. `below`: only one that costs less is wanted.

    Raises InputError for a text that is no test, and for a table that blocks cannot say.
    """
    layout = laid(Source(name, text))
    lowered = api.lowered(Source(name, layout.blocks))
    bare = stripped(lowered, strip, costs)
    search = _Synchronizing(name, layout, lowered, bare, strip, models, options, costs, below, progress)
    try:
        with sharing_budget(options.budget):
            return search.result(seconds)
    except BudgetSpent as spent:  # before a search began that keeps what it finds
        return search.nothing(str(spent) or OUT_OF_TIME)


@dataclass(slots=True)
class _Synchronizing:
    name: str
    layout: Laid
    lowered: LoweredTest
    bare: Stripped
    strip: Strip
    models: tuple[Model, ...]
    options: Options
    costs: Costs
    below: float | None
    progress: Callable[[int], None] | None
    wrong: tuple[str, ...] = ()
    base: float = 0.0
    tried: int = 1

    def result(self, seconds: float) -> Synchronized:
        """All of it. Raises BudgetSpent."""
        queries = KeptQueries()
        judge = judging(self.name, self.models, self.options, queries=queries)
        before = judge(self.bare.text)
        if before is None or not before.complete:
            return self.nothing(undecided("what the test does without synchronization", before))
        self.wrong = wrong_words(before)
        self.base = base = program_cost(parsed(self.name, self.bare.text), self.costs)
        if not self.wrong:
            return self._made((), Reached((), 0.0), 0)
        trials = self._trials(before, seconds, queries)
        trials.judge = judge
        alone = [edit for edit in self._alone() if trials.carry.legal(edit)]
        offered = alone + [edit for edit in self._between(before) if trials.carry.legal(edit)]
        has_waits = self.strip is Strip.ORDER
        read_off = None if has_waits else self._waits_of_one(trials, offered)
        explained = self._known(trials, offered, seconds)
        if has_waits and explained is None:
            read_off = self._waits_of_one(trials, offered)
        right = [changes for changes in (read_off, explained) if changes is not None]
        known = min(right, key=lambda changes: sum(map(self._price, changes)), default=None)
        known = known or self._waits_first(trials, offered, seconds)
        # Explanations lead to waits for what later executions show, too.
        offered = list(dict.fromkeys((*offered, *(known or ()))))
        search = CheapestSearch(self.name, trials, offered, self._price)
        reached = search.search(known, None if self.below is None else self.below - base)
        self.tried = trials.tried
        if reached.changes is None:
            none = self.nothing(reached.stopped or NONE, decided=not reached.stopped)
            return replace(none, bound=base + reached.bound, offered=len(offered))
        return self._made(reached.changes, reached, len(offered))

    @staticmethod
    def _known(trials: RepairSearch, offered: list[Edit], seconds: float) -> Changes | None:
        """The changes that explanations lead to, as in `fix`: they are right, and seldom the cheapest. None if there
        are none.
        """
        until, trials.until = trials.until, min(trials.until, monotonic() + seconds * FIRST_PART)
        try:
            return trials.guided(offered, []) or None
        except BudgetSpent:
            return None
        finally:
            trials.until = until

    def _waits_first(self, trials: RepairSearch, offered: list[Edit], seconds: float) -> Changes | None:
        """The fewest waits beside all changes that wait for no other thread, the strongest of each kind at each place:
        of all these, those that are needed beside the others. None if no waits are right, or there is no time."""
        order, waits = _strongest(offered)
        until, trials.until = trials.until, min(trials.until, monotonic() + seconds * FIRST_PART)
        try:
            found = CheapestSearch(self.name, trials, list(waits.values()), lambda edit: 1.0, order).search().changes
            return None if found is None else self._least(trials, [*order, *found], offered)
        finally:
            trials.until = until

    def _waits_of_one(self, trials: RepairSearch, offered: list[Edit]) -> Changes | None:
        """The waits for all phases that one execution with the outcome that is wanted allows, barriers where no phase
        tells of an access, and all other changes: of all these those that are needed, if they are right. None if they
        are not, or there is no time."""
        order, waits = _strongest(offered)
        bare = parsed(self.name, self.bare.text)
        try:
            for execution in self._as_wanted(bare, trials.until):
                handed = phase_waits(execution, waits)
                meet = [edit for edit in barriers_between(bare, handed.untold) if trials.carry.legal(edit)]
                found = [*handed.waits, *meet]
                if not found:
                    return None
                if trials.is_right(order.union(found)):
                    return self._least(trials, [*order, *found], offered)
        except BudgetSpent:
            pass
        return None

    def _as_wanted(self, bare: LoweredTest, until: float) -> Iterator[Execution]:
        """Executions of the bare text with the outcome that is wanted, for each model: first one whose conflicting
        accesses come one after the other."""
        test = bare.test
        wanted = test.condition if test.quantifier is Quantifier.FORALL else Not(test.condition)
        test = replace(test, finding=None, quantifier=Quantifier.EXISTS, condition=wanted)
        for model in chain.from_iterable(map(orderly, self.models)):
            seconds = min(self.options.budget.seconds, max(0.0, until - monotonic()))
            options = replace(self.options, budget=replace(self.options.budget, seconds=seconds))
            answer = api.judge(replace(bare, test=test), model, options, findings=False)
            execution = None if answer.witness is None else execution_of(answer.witness)
            if execution is not None:
                yield execution

    def _trials(self, before: AnswersOfTest, seconds: float, queries: KeptQueries) -> RepairSearch:
        name, models, options = self.name, self.models, self.options
        trials = RepairSearch(
            self.bare.text,
            before,
            self.progress,
            lambda text: first_question(name, text, options),
            lambda text: ended(name, text, models, options),
        )
        trials.enumerates = before.engines == {"enumerate"}
        trials.aim = Aim(_right, lambda flags, observed: bool(flags) or any(map(is_bad, observed)))
        trials.quick_judge = looking_for(before.findings, name, models, options)
        trials.glance = Glance(name, models, options, before.findings, outcomes=True, queries=queries)
        trials.glance.begin(by_turns(trials.counterexamples(before)))
        trials.until = monotonic() + seconds
        return trials

    def _least(self, trials: RepairSearch, changes: Sequence[Edit], offered: Sequence[Edit]) -> Changes:
        """Of changes that are right together those that are needed, each in the cheapest form that is enough beside the
        others, as far as time allows."""
        kept = _needed(trials, changes)
        try:
            for number, edit in sorted(enumerate(kept), key=lambda entry: -entry[1].cost):
                rest = [*kept[:number], *kept[number + 1 :]]
                price = self._price(edit)
                forms = ((self._price(other), other) for other in offered if _does_less(other, edit))
                for _, other in sorted((form for form in forms if form[0] < price), key=lambda form: form[0]):
                    if trials.is_right(frozenset((*rest, other))):
                        kept[number] = other
                        break
        except BudgetSpent:
            pass
        return in_order(kept)

    def _alone(self) -> list[Edit]:
        """What may be added to one place of the bare text."""
        return single_strengthenings(parsed(self.name, self.bare.text), exact=True)

    def _between(self, before: AnswersOfTest) -> list[Edit]:
        """What may be added between threads."""
        return meetings(parsed(self.name, self.bare.text), by_turns(before.counterexamples)[:FIRST_MET])

    def _price(self, edit: Edit) -> float:
        asked = parse(self.name, apply(self.bare.text, (edit,)))
        return 0.0 if asked is None else program_cost(asked[0], self.costs) - self.base

    def _made(self, changes: Sequence[Edit], reached: Reached, offered: int) -> Synchronized:
        """The result, with the changed text judged again by itself."""
        text = apply(self.bare.text, changes)
        clean = self.bare.clean(text)
        cost = program_cost(parsed(self.name, clean), self.costs)
        old, version = self.layout.text, newer_version(self.name, self.layout.blocks, clean)
        return Synchronized(
            self.name,
            old,
            self.bare.clean(self.bare.text),
            self.layout.back(clean),
            tuple(self.layout.in_written_lines(edit.what) for edit in changes),
            self.wrong,
            cost,
            program_cost(self.lowered, self.costs),
            self.base + reached.bound,
            offered,
            self.tried,
            f"{reached.stopped}: there may be a cheaper one" if reached.stopped else "",
            confirmed(self.name, clean, self.models, self.options),
            version,
            wrong_under(self.name, clean, self.models, self.options),
            decided=not reached.stopped,
        )

    def nothing(self, reason: str, *, decided: bool = False) -> Synchronized:
        """The result where nothing was found."""
        given = program_cost(self.lowered, self.costs)
        bare = self.bare.clean(self.bare.text)
        return Synchronized(
            self.name,
            self.layout.text,
            bare,
            None,
            (),
            self.wrong,
            0.0,
            given,
            0.0,
            0,
            self.tried,
            reason,
            decided=decided,
        )


def _strongest(offered: Sequence[Edit]) -> tuple[frozenset[Edit], dict[tuple[Any, ...], Edit]]:
    """Of the changes of one place, the strongest of each kind: those that wait for no other thread; and the waits, by
    thread, instruction, object and parity. Without new arrivals: beside those that there are, they are too many."""
    strongest: dict[tuple[Any, ...], Edit] = {}
    waits: dict[tuple[Any, ...], Edit] = {}
    for edit in offered:
        phase = WAIT.search(edit.text)
        if edit.more or "tcgen05.commit" in edit.text:
            continue
        if phase is not None:
            kinds, kind = waits, (*edit.group[:2], *phase.groups())
        else:
            kinds, kind = strongest, edit.group
        kinds[kind] = max(kinds.get(kind, edit), edit, key=lambda candidate: candidate.cost)
    return frozenset(strongest.values()), waits


def _needed(trials: RepairSearch, changes: Sequence[Edit]) -> list[Edit]:
    """Of changes that are right together those that are needed beside the others, as far as time allows."""
    kept = sorted(changes, key=lambda edit: -edit.cost)
    size = len(kept) // 2
    try:
        while size:
            at = 0
            while at < len(kept):
                rest = kept[:at] + kept[at + size :]
                if trials.is_right(frozenset(rest)):
                    kept = rest
                else:
                    at += size
            size //= 2
    except BudgetSpent:
        pass
    return kept


def _does_less(edit: Edit, other: Edit) -> bool:
    """True if a change is a weaker form of another one at its place."""
    waits = WAIT.search(edit.text), WAIT.search(other.text)
    if waits[0] is not None and waits[1] is not None:
        return edit.group[:2] == other.group[:2] and waits[0].groups() == waits[1].groups()
    return edit.group in other.implies or edit.group == other.group


FIRST_PART = 0.3
"""The part of the time in which explanations are followed, for a first set that is right."""

NONE = "no set of these changes makes it right"


def parsed(name: str, text: str) -> LoweredTest:
    """A text that is known to be a test, with the first of its questions."""
    asked = parse(name, text)
    assert asked is not None
    return asked[0]


def _right(now: AnswersOfTest) -> bool:
    return not now.findings and not any(map(is_bad, now.observations))


def confirmed(name: str, text: str, models: Sequence[Model], options: Options) -> str:
    """By which engines a text is right, judged anew. Raises InternalError if one of them says otherwise."""
    engines: dict[str, None] = {}
    for steps in parse(name, text) or ():
        for model in models:
            report = api.report_on(steps, model, options)
            second = api.confirmed(report, steps, model, options).confirmation
            engines[report.answer.engine] = None
            if second is not None:
                engines[second.engine if not second.reason else f"not by {second.engine}: {second.reason}"] = None
    return " and ".join(sorted(engines, key=lambda words: words.startswith("not by")))
