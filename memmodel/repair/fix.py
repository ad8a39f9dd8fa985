"""The smallest changes after which what is wrong with a test is gone.

In: a test, models, options. Out: `Fixed`: repairs with their diffs, the cheapest first. Settled here: what a repair is.
It keeps what every access does. After it no flag is raised and no thread hangs, under all the models; the condition of
an `exists` cannot be met and that of a `forall` always is, or, where no change gets there, what is asked answers as
before. Each repair that is returned has been judged in full.

`search` has the search itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import monotonic

from memmodel.answer import HANG, Observation
from memmodel.base.oneline import count, shown
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import BudgetSpent
from memmodel.limits import available, sharing_budget
from memmodel.litmus.syntax import Quantifier
from memmodel.program.lowered import LoweredTest
from memmodel.repair.edits import Edit, apply, diff
from memmodel.repair.exchanging.one_access import one_access
from memmodel.repair.exchanging.one_size import in_halves, one_size
from memmodel.repair.exchanging.other_objects import in_other_ctas, other_objects, other_states
from memmodel.repair.glance import Glance
from memmodel.repair.hints import broken_rules, by_turns, reasons, sufficient_changes
from memmodel.repair.insertion.accesses import moved_accesses
from memmodel.repair.insertion.arrivals import arrivals
from memmodel.repair.insertion.flags import flags
from memmodel.repair.insertion.meetings import meetings
from memmodel.repair.insertion.rereads import repeats
from memmodel.repair.judge import (
    AnswersOfTest,
    Judge,
    QuestionAnswer,
    ended,
    judging,
    looking_for,
    newer_version,
    parse,
    undecided,
)
from memmodel.repair.layout import Laid, laid
from memmodel.repair.searching.halves import with_halves
from memmodel.repair.searching.ideas import by_idea, makes_strong
from memmodel.repair.searching.search import RepairSearch
from memmodel.repair.searching.trials import Aim
from memmodel.repair.searching.turns import Changes, cost
from memmodel.repair.vocabulary import replacements, strengthenings
from memmodel.repair.weakening.needed import wrong_under
from memmodel.solve.kept_queries import KeptQueries
from memmodel.why.records import Reason

ARRIVE = frozenset((Reason.NOT_TRANSITIVE, Reason.TCGEN05_COMMIT, Reason.COUNT))
"""Where an arrival may be what is missing."""

ARRIVED_TWICE = "undefined-cluster-barrier"
"""The finding after which one half of a barrier may be what is missing."""

MOST_TOLD = 2
"""At most this many things that are missing are named where there is no repair."""

FIRST_MET = 8
"""The most executions in which two threads are looked at between the accesses."""

FIRST_PART = 0.7
"""The part of the time that goes to what is wanted most, where something less is good enough."""


@dataclass(frozen=True, slots=True, repr=False)
class Repair:
    """Changes after which the test is right, and the changed text.

    `others`: repairs of the same idea. `version`: of PTX, where the changed text needs a newer one than the test.
    `depends`: readings under which the changed text is wrong, as far as executions at hand show.
    """

    changes: Changes
    name: str
    old: str
    new: str
    others: tuple[Changes, ...] = ()
    version: str = ""
    depends: tuple[str, ...] = ()

    @property
    def cost(self) -> float:
        """By the table of costs."""
        return sum(edit.cost for edit in self.changes)

    def __repr__(self) -> str:
        return shown("Repair", f"cost {self.cost:g}", *(edit.what for edit in self.changes))

    def diff(self) -> str:
        """The change as a unified diff."""
        return diff(self.name, self.old, self.new)

    @property
    def instead(self) -> list[list[str]]:
        """Of each other repair of the same idea, the changes in which it differs, in words."""
        mine = {edit.what for edit in self.changes}
        return [[edit.what for edit in other if edit.what not in mine] for other in self.others]


@dataclass(frozen=True, slots=True, repr=False)
class Fixed:
    """The outcome of a search. `wrong`: what was wrong. `reason`: why there are no repairs, or not all of them.

    `stopped`: time or budget ran out before the search was done.
    """

    name: str
    wrong: tuple[str, ...]
    repairs: tuple[Repair, ...]
    tried: int
    reason: str = ""
    stopped: bool = False

    def __repr__(self) -> str:
        wrong = f"wrong: {', '.join(self.wrong)}" if self.wrong else "nothing is wrong"
        return shown("Fixed", f"{self.name}: {count(len(self.repairs), 'repair')}", wrong, self.reason)


def fix(
    name: str,
    text: str,
    models: tuple[Model, ...],
    options: Options,
    *,
    most: int = 3,
    seconds: float = 60.0,
    progress: Callable[[int], None] | None = None,
) -> Fixed:
    """Repairs of a test, at most `most`, in the layout that it has.

    Raises InputError for a text that is no test, and for a table that blocks cannot say.
    """
    from memmodel import api
    from memmodel.source import Source

    layout = laid(Source(name, text))
    asked = api.questions(api.lowered(Source(name, layout.blocks)))
    try:
        with sharing_budget(options.budget):
            fixed = _fixed(name, layout.blocks, asked, models, options, most, seconds, progress)
    except BudgetSpent as spent:  # before a search began that keeps what it finds
        return Fixed(name, (), (), 1, f"what would repair it is not decided: {spent}")
    repairs = tuple(_as_written(repair, layout) for repair in fixed.repairs)
    return replace(fixed, repairs=repairs, reason=layout.in_written_lines(fixed.reason))


def _as_written(repair: Repair, layout: Laid) -> Repair:
    changes, *others = (
        tuple(replace(edit, what=layout.in_written_lines(edit.what)) for edit in edits)
        for edits in (repair.changes, *repair.others)
    )
    new = layout.back(repair.new)
    return replace(repair, changes=changes, old=layout.text, new=new, others=tuple(others))


def _fixed(
    name: str,
    text: str,
    asked: tuple[LoweredTest, ...],
    models: tuple[Model, ...],
    options: Options,
    most: int,
    seconds: float,
    progress: Callable[[int], None] | None,
) -> Fixed:
    queries = KeptQueries()
    judge = judging(name, models, options, queries=queries)
    before = judge(text)
    if before is None or not before.complete:
        return _in_one_size(name, text, asked[0], judge, most) or Fixed(
            name, (), (), 1, undecided("what the test does as it stands", before)
        )
    wrong = wrong_words(before)
    if not wrong:
        return Fixed(name, (), (), 1, "nothing is wrong with it")
    first, ends = (lambda text: first_question(name, text, options)), (lambda text: ended(name, text, models, options))
    search = RepairSearch(text, before, progress, first, ends)
    search.enumerates = before.engines == {"enumerate"}
    started = monotonic()
    known: list[Changes] = []
    reason, stopped = "", False
    stronger, others = strengthenings(asked[0]), _others(asked[0], before)
    aims = list(_aims(before))
    search.accesses = moved_accesses(asked[0])
    search.flags = flags(asked[0], by_turns(before.counterexamples)[:FIRST_MET])
    search.asks_for_strong = Reason.WEAK in reasons(before.counterexamples)
    search.judge, search.quick_judge = judge, looking_for(before.findings, name, models, options)
    for number, search.aim in enumerate(aims):
        if len(models) > 1:
            lost = search.aim.lost
            search.judge = judging(name, models, options, lost=lost, queries=queries)
            search.quick_judge = looking_for(before.findings, name, models, options, lost)
        wrong_flags = before.findings - search.aim.stays
        search.glance = Glance(name, models, options, wrong_flags, outcomes=search.aim.outcomes, queries=queries)
        search.glance.begin(by_turns(search.counterexamples(before)))
        last = number == len(aims) - 1
        search.until = started + (seconds if last else seconds * FIRST_PART)
        try:
            still_hangs = HANG in search.aim.stays  # what waits, or has another number, might hang more often
            offered = ([edit for edit in stronger if not search.risky(edit)], []) if still_hangs else (stronger, others)
            known = search.repairs(*offered, most)
            known += with_halves(search, asked[0], known)
            if known and search.cheaper_untried:
                reason = "; ".join(part for part in (reason, "not every cheaper change was tried") if part)
        except BudgetSpent as spent:
            known, stopped = search.known_repairs, True
            reason = str(spent) or f"the search stopped after {seconds:g} seconds"
            reason += "; there may be cheaper repairs" if known else ""
        if known:
            note = search.aim.note
            partly = _outcome_alone(search, aims[number:], Glance(name, models, options, frozenset(), outcomes=True))
            reason = "; ".join(part for part in (note, reason, partly) if part)
            break
    if not known:
        reason = (
            f"{reason}; no repair was found by then{_rules_after_hang(search)}" if stopped else _none(before, search)
        )
    repairs = tuple(_made(name, text, edits, others) for edits, others in by_idea(known, most, text))
    if not stopped:
        repairs = tuple(replace(repair, depends=wrong_under(name, repair.new, models, options)) for repair in repairs)
        # without that reason, what is missing is not that data is strong
        turn = {repair: not search.asks_for_strong and any(map(makes_strong, repair.changes)) for repair in repairs}
        repairs = tuple(sorted(repairs, key=lambda repair: (turn[repair], repair.cost, bool(repair.depends))))
    return Fixed(name, wrong, repairs, search.tried, reason, stopped)


def _in_one_size(name: str, text: str, lowered: LoweredTest, judge: Judge, most: int) -> Fixed | None:
    """The repairs of a test of which the model says nothing: accesses of one size, with which nothing is wrong."""
    repairs: list[Repair] = []
    offered = [*one_size(lowered), *one_access(lowered), *in_halves(lowered)]
    for edit in offered:
        now = judge(apply(text, (edit,))) if len(repairs) < most else None
        if now is not None and now.complete and not wrong_words(now):
            repairs.append(_made(name, text, (edit,), []))
    wrong = ("accesses of different sizes race",)
    return Fixed(name, wrong, tuple(repairs), len(offered) + 1) if repairs else None


def _made(name: str, text: str, edits: Changes, others: list[Changes]) -> Repair:
    """A repair, with the version of PTX that it needs and the test did not."""
    new = apply(text, edits)
    return Repair(edits, name, text, new, tuple(others), newer_version(name, text, new))


def _outcome_alone(search: RepairSearch, aims: list[Aim], glance: Glance) -> str:
    """Where accesses are made strong or a flag is waited for, so that nothing races in executions without the outcome:
    what takes the outcome away without that. `aims`: the one that was reached, and those after it."""
    repair = min(search.known_repairs, key=cost, default=())
    rest = tuple(edit for edit in repair if not (makes_strong(edit) or repeats(edit)))
    if len(aims) < 2 or aims[1].stays != search.before.findings or not 0 < len(rest) < len(repair):
        return ""
    search.aim, search.glance = aims[1], glance
    try:
        some = search.needed(rest) if search.is_right(rest) else ()
    except BudgetSpent:
        return ""
    left = ", ".join(sorted(search.before.findings))
    words = " and ".join(edit.what for edit in some)
    return f"to take the outcome away it is enough: {words}; executions without it keep the {left}" if some else ""


def _others(lowered: LoweredTest, before: AnswersOfTest) -> list[Edit]:
    """The changes that do not only add order."""
    hangs = [counterexample for counterexample in before.counterexamples if counterexample.flag == HANG]
    edits = [*replacements(lowered), *meetings(lowered, by_turns(before.counterexamples)[:FIRST_MET])]
    edits += [*other_objects(lowered, hangs), *in_other_ctas(lowered), *other_states(lowered)]
    arrives = ARRIVE & reasons(before.counterexamples) or ARRIVED_TWICE in before.findings
    return [*edits, *arrivals(lowered)] if arrives else edits


def _none(before: AnswersOfTest, search: RepairSearch) -> str:
    """Why there is no repair."""
    rules = broken_rules(before.counterexamples)
    if rules:
        return f"no such change: a rule is broken whatever the order: {'; '.join(rules)}"
    if not before.findings and all(
        observed.observation is Observation.ALWAYS for observed in before.observations if is_bad(observed)
    ):
        return "no such change: every execution has the outcome, and order takes none of them away but all"
    missing = _rules_after_hang(search) or _missing(before)
    if search.gave_up:
        return f"no such change among the {search.tried} programs judged, the cheapest changes first{missing}"
    return f"no such change within these bounds{missing}"


def _rules_after_hang(search: RepairSearch) -> str:
    """What stands in the way once a hang is gone."""
    if search.rules_after_hang is None:
        return ""
    edits, rules = search.rules_after_hang
    return f"; with {' and '.join(edit.what for edit in edits)} nothing hangs, and a rule is broken: {'; '.join(rules)}"


def _missing(before: AnswersOfTest) -> str:
    """What the explanation of an execution that is left says would do."""
    hints = list(dict.fromkeys(sufficient_changes(before.counterexamples)))
    return f"; {'; '.join(hints[:MOST_TOLD])}" if hints else ""


def wrong_words(standing: AnswersOfTest) -> tuple[str, ...]:
    """What is wrong, in words."""
    outcome = "its outcome is allowed" if any(map(is_bad, standing.observations)) else ""
    return tuple(word for word in (outcome, *sorted(standing.findings)) if word)


def is_bad(observed: QuestionAnswer) -> bool:
    """True if a repair has to change this answer to a question about outcomes."""
    quantifier, finding, observation = observed
    if finding is not None:
        return False
    if quantifier is Quantifier.FORALL:
        return observation in (Observation.NEVER, Observation.SOMETIMES)
    return observation in (Observation.SOMETIMES, Observation.ALWAYS)


def _aims(before: AnswersOfTest) -> Iterator[Aim]:
    """What a repair has to reach, the better first."""

    def kept(now: AnswersOfTest, *, strict: bool) -> bool:
        pairs = zip(before.observations, now.observations, strict=True)
        return all(_as_good(old, new, strict=strict) for old, new in pairs)

    bad = [observed for observed in before.observations if is_bad(observed)]
    hangs = any(
        observed.finding is None and observed.observation is Observation.VACUOUS for observed in before.observations
    )
    always = any(
        observed.observation is Observation.ALWAYS and observed.quantifier is not Quantifier.NOT_EXISTS
        for observed in bad
    )
    findings = ", ".join(sorted(before.findings))
    if not (hangs or always):  # of a test that only hangs no outcome is known to be bad
        yield Aim(
            lambda now: not now.findings and kept(now, strict=True),
            lambda flags, observed: bool(flags) or any(map(is_bad, observed)),
        )
    if bad and before.findings and not (hangs or always or HANG in before.findings):
        note = f"no such change ends everything: what is found in executions without the outcome stays ({findings})"
        yield Aim(
            lambda now: now.findings <= before.findings and kept(now, strict=True),
            lambda flags, observed: not flags <= before.findings or any(map(is_bad, observed)),
            stays=before.findings,
            note=note,
        )
    if bad and HANG in before.findings and not (hangs or always):
        yield Aim(
            lambda now: now.findings <= {HANG} and kept(now, strict=True),
            lambda flags, observed: not flags <= {HANG} or any(map(is_bad, observed)),
            stays=frozenset((HANG,)),
            note="no such change ends everything: what waits for ever in executions without the outcome still does",
        )
    if before.findings:
        note = "the findings end; no such change takes the outcome away" if bad else ""
        yield Aim(
            lambda now: not now.findings and kept(now, strict=False),
            lambda flags, _: bool(flags),
            outcomes=False,
            note=note,
        )


def _as_good(old: QuestionAnswer, new: QuestionAnswer, *, strict: bool) -> bool:
    if old.finding is not None:
        return True  # the question is about a finding, and those are gone
    if new.observation in (Observation.VACUOUS, Observation.UNDECIDED):
        return False
    if strict:
        return not is_bad(new)
    if old.observation is Observation.VACUOUS:  # what the file hopes for, if it says so
        return old.quantifier is Quantifier.EXISTS or not is_bad(new)
    return old.observation is new.observation


def first_question(name: str, text: str, options: Options) -> LoweredTest | None:
    """The test with the first of its questions; None if the text is no test. Raises BudgetSpent."""
    available(options.budget)
    asked = parse(name, text)
    return None if asked is None else asked[0]
