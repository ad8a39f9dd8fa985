"""The smallest changes after which what is wrong with a test is gone.

In: a test, models, options. Out: `Fixed`: repairs with their diffs, the cheapest first. Settled here: what a repair is.
It keeps every access to memory. After it no flag is raised and no thread hangs, under all the models; the condition of
an `exists` cannot be met and that of a `forall` always is, or, where no change gets there, what is asked answers as
before. Each repair that is returned has been judged in full.

Other numbers and moved fences come first, one at a time. Changes that only add order are searched as sets, by implicit
hitting sets: changes that do not suffice, as many as possible, say that a repair has one of the others. Of a large test
that is learnt from single executions that are bad and stay consistent with the changes made (`carry`), without asking
an engine. The cheapest set that answers all of this is judged in full; if it does not suffice, there is more to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic

from memmodel.answer import Observation
from memmodel.base.classes import dataclass
from memmodel.base.oneline import count, shown
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import BudgetSpent
from memmodel.limits import together
from memmodel.litmus.syntax import Quantifier
from memmodel.program.lowered import LoweredTest
from memmodel.repair.carry import Carry, survives
from memmodel.repair.edits import Edit, apply, diff
from memmodel.repair.judge import Against, Judge, Standing, judging, looking_for, parse
from memmodel.repair.vocabulary import replacements, strengthenings
from memmodel.why.story import execution_of

MOST_CHANGES = 8
"""Repairs of more changes than this are not looked for."""

QUICK = 25
"""A test with no more events is judged faster than its executions are carried."""

EACH = 4
"""So many executions of a set of changes that does not suffice are learnt from."""


@dataclass(frozen=True, slots=True, repr=False)
class Repair:
    """Changes after which the test is right, and the changed text."""

    changes: tuple[Edit, ...]
    name: str
    old: str
    new: str

    @property
    def cost(self) -> float:
        """By the table of costs."""
        return sum(edit.cost for edit in self.changes)

    def __repr__(self) -> str:
        return shown("Repair", f"cost {self.cost:g}", *(edit.what for edit in self.changes))

    def diff(self) -> str:
        """The change as a unified diff."""
        return diff(self.name, self.old, self.new)


@dataclass(frozen=True, slots=True, repr=False)
class Fixed:
    """The outcome of a search. `wrong`: what was wrong. `reason`: why there are no repairs, or not all of them."""

    name: str
    wrong: tuple[str, ...]
    repairs: tuple[Repair, ...]
    tried: int
    reason: str = ""

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
    """Repairs of a test in block layout, at most `most`. Raises InputError for a text that is no test."""
    from memmodel import api
    from memmodel.source import Source

    asked = api.questions(api.lowered(Source(name, text)))
    with together(options.budget):
        return _fixed(name, text, asked, models, options, most, seconds, progress)


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
    judge = judging(name, models, options)
    before = judge(text)
    if before is None or not before.complete:
        return Fixed(name, (), (), 1, "what the test does as it stands is not decided")
    wrong = _wrong(before)
    if not wrong:
        return Fixed(name, (), (), 1, "nothing is wrong with it")
    glance = looking_for(before.findings, name, models, options)
    search = _Search(text, judge, glance, before, monotonic() + seconds, progress, lambda one: _first(name, one))
    found: list[tuple[Edit, ...]] = []
    reason = ""
    for search.target, search.outcomes in _targets(before):
        try:
            found = search.repairs(strengthenings(asked[0]), replacements(asked[0]), most)
        except BudgetSpent as spent:
            found = search.best
            reason = str(spent) or f"the search stopped after {seconds:g} seconds"
            reason += "; there may be cheaper repairs"
        if found or reason:
            break
    if not found:
        reason = (
            reason or "no such change within these bounds: it needs more than fences, semantics, scopes and numbers"
        )
    repairs = tuple(Repair(edits, name, text, apply(text, edits)) for edits in found)
    return Fixed(name, wrong, tuple(sorted(repairs, key=lambda one: one.cost))[:most], search.tried, reason)


def _wrong(standing: Standing) -> tuple[str, ...]:
    """What is wrong, in words."""
    outcome = "its outcome is allowed" if any(map(_bad, standing.observations)) else ""
    return tuple(one for one in (outcome, *sorted(standing.findings)) if one)


Observed = tuple[Quantifier, str | None, Observation]


def _bad(observed: Observed) -> bool:
    """Is the answer to a question about outcomes one that a repair has to change?"""
    quantifier, finding, observation = observed
    if finding is not None:
        return False
    if quantifier is Quantifier.FORALL:
        return observation is not Observation.ALWAYS
    return observation in (Observation.SOMETIMES, Observation.ALWAYS)


Target = Callable[[Standing], bool]


def _targets(before: Standing) -> Iterator[tuple[Target, bool]]:
    """What a repair has to reach, the better first, and whether that is about outcomes."""

    def kept(now: Standing, *, strict: bool) -> bool:
        pairs = zip(before.observations, now.observations, strict=True)
        return all(_as_good(old, new, strict=strict) for old, new in pairs)

    hangs = any(one[1] is None and one[2] is Observation.VACUOUS for one in before.observations)
    if not hangs:  # of a test that only hangs no outcome is known to be bad
        yield (lambda now: kept(now, strict=True)), True
    if before.findings:
        yield (lambda now: kept(now, strict=False)), False


def _as_good(old: Observed, new: Observed, *, strict: bool) -> bool:
    if old[1] is not None:
        return True  # the question is about a finding, and those are gone
    if new[2] in (Observation.VACUOUS, Observation.UNDECIDED):
        return False
    if strict:
        return not _bad(new)
    return old[2] is Observation.VACUOUS or old[2] is new[2]


def _first(name: str, text: str) -> LoweredTest | None:
    """The test with the first of its questions; None if the text is none."""
    asked = parse(name, text)
    return None if asked is None else asked[0]


class _Search:
    """Tries changes of one text."""

    def __init__(
        self,
        text: str,
        judge: Judge,
        glance: Judge,
        before: Standing,
        until: float,
        progress: Callable[[int], None] | None,
        parse_first: Callable[[str], LoweredTest | None],
    ) -> None:
        self.text = text
        self.judge = judge
        self.glance = glance
        self.before = before
        self.until = until
        self.progress = progress
        self.tried = 0
        self.best: list[tuple[Edit, ...]] = []
        self.target: Target = lambda _: False
        self.outcomes = True
        self.failed: Standing | None = None
        self.carry = Carry(text, parse_first)

    def good(self, edits: Sequence[Edit]) -> bool:
        """Is the test right with these changes? Raises BudgetSpent when time is up."""
        if monotonic() > self.until:
            raise BudgetSpent
        self.tried += 1
        if self.progress is not None:
            self.progress(self.tried)
        text = apply(self.text, edits)
        for judge in (self.glance, self.judge):
            self.failed = judge(text)
            if not self._passes(self.failed):
                return False
        return True

    def _passes(self, now: Standing | None) -> bool:
        return now is not None and now.complete and not now.findings and self.target(now)

    def repairs(self, stronger: list[Edit], others: list[Edit], most: int) -> list[tuple[Edit, ...]]:
        """Minimal repairs, about the cheapest first."""
        self.best.clear()
        known = self._speaking(self.before)
        adding = set(stronger)
        for edit in sorted((*others, *stronger), key=lambda one: one.cost):
            if len(self.best) >= most or self._covered((edit,)) or (edit in adding and self._in_vain((edit,), known)):
                continue
            if self.good((edit,)):
                self.best.append((edit,))
        if not self.best and all(len(one.witness.events) <= QUICK for one in known):
            if self.good(stronger):
                self._by_judging(stronger, most)
            else:
                self._pairs(stronger, most)
        elif not self.best:
            legal = filter(self.carry.legal, stronger)
            self._hitting(sorted(legal, key=lambda one: ("fence.sc" in one.text, -one.cost)), most)
        self.best.sort(key=_cost)
        return self.best

    def _covered(self, edits: Sequence[Edit]) -> bool:
        """Do these changes do all that a repair does which is known already?"""
        return any(_covers(edits, known) for known in self.best)

    def _in_vain(self, edits: Sequence[Edit], known: list[Against]) -> bool:
        """Does an execution that speaks against the test survive the changes?"""
        if not all(map(self.carry.legal, edits)):
            return True
        for against in known:
            execution = execution_of(against.witness)
            changed = None if execution is None else self.carry.carried(execution, (), edits)
            if changed is not None and survives(against, changed):
                return True
        return False

    def _hitting(self, stronger: list[Edit], most: int) -> None:
        """Sets of changes that suffice, the cheapest first.

        Each execution that survives some changes says that a repair has one of the others. The cheapest set that has
        one for each execution known so far is judged; if it does not suffice, it is an execution more.
        """
        corrections = [self._correction(one, (), stronger) for one in self._speaking(self.before)]
        while len(self.best) < most and all(corrections):
            hit = _cheapest_hitting(corrections, [frozenset(one) for one in self.best])
            if hit is None or len(hit) > MOST_CHANGES:
                return
            edits = tuple(sorted(hit, key=lambda one: one.start))
            if self.good(edits):
                self.best.append(self._needed(edits))
                continue
            more = [self._correction(one, edits, stronger) for one in self._speaking(self.failed)[:EACH]]
            corrections += [one - hit for one in more] or [frozenset(stronger) - hit]

    def _pairs(self, stronger: list[Edit], most: int) -> None:
        """All together do harm: two at a time."""
        ordered = sorted(stronger, key=lambda one: one.cost)
        known = self._speaking(self.before)
        pairs: list[tuple[Edit, ...]] = [(one, other) for n, one in enumerate(ordered) for other in ordered[n + 1 :]]
        pairs.sort(key=_cost)
        for pair in pairs:
            if len(self.best) >= most:
                return
            if not self._covered(pair) and not self._in_vain(pair, known) and self.good(pair):
                self.best.append(pair)

    def _by_judging(self, stronger: list[Edit], most: int) -> None:
        """Minimal sets of changes that suffice, by implicit hitting sets."""
        ordered = sorted(stronger, key=lambda one: -one.cost)
        first = self._shrunk(ordered)
        self.best.append(first)
        corrections: list[frozenset[Edit]] = []
        done: list[frozenset[Edit]] = []
        while len(self.best) < most + 1:
            hit = _cheapest_hitting(corrections, done)
            if hit is None:
                break
            if self.good(tuple(hit)):
                done.append(hit)
                if frozenset(first) == hit:
                    self.best.remove(first)
                self.best.append(tuple(sorted(hit, key=lambda one: one.start)))
            else:
                grown = self._grown(hit, ordered)
                corrections.append(frozenset(stronger) - grown)
        self.best = [one for one in self.best if not any(other < set(one) for other in done)]

    def _shrunk(self, edits: list[Edit]) -> tuple[Edit, ...]:
        """A part that suffices and of which nothing can be left out; halves go first."""
        kept = list(edits)
        size = max(1, len(kept) // 2)
        while True:
            at = 0
            while at < len(kept):
                rest = kept[:at] + kept[at + size :]
                if len(rest) < len(kept) and self.good(rest):
                    kept = rest
                else:
                    at += size
            if size == 1:
                return tuple(sorted(kept, key=lambda one: one.start))
            size //= 2

    def _grown(self, edits: frozenset[Edit], everything: list[Edit]) -> frozenset[Edit]:
        """As many changes as do not suffice, these among them."""
        kept = set(edits)
        todo = [list(everything)]
        while todo:
            chunk = [one for one in todo.pop() if one not in kept]
            if not chunk:
                continue
            if not self.good(tuple(kept | set(chunk))):
                kept |= set(chunk)
            elif len(chunk) > 1:
                middle = len(chunk) // 2
                todo += [chunk[middle:], chunk[:middle]]
        return frozenset(kept)

    def _needed(self, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        """A repair less what it does not need."""
        for edit in sorted(edits, key=lambda one: -one.cost):
            rest = tuple(one for one in edits if one is not edit)
            if rest and len(edits) > 1 and self.good(rest):
                return self._needed(rest)
        return edits

    def _speaking(self, now: Standing | None) -> list[Against]:
        """The executions of a standing that no repair may have."""
        if now is None:
            return []
        wanted = [one for one in now.against if one.flag is not None or self.outcomes]
        known = [one for one in wanted if one.flag is None or one.flag in self.before.findings]
        return [one for one in known if execution_of(one.witness) is not None]

    def _correction(self, against: Against, made: Sequence[Edit], everything: list[Edit]) -> frozenset[Edit]:
        """The changes of which a repair has one: those that remain when as many are made as the execution survives."""
        execution = execution_of(against.witness)
        assert execution is not None
        kept: list[Edit] = []
        todo = [[one for one in everything if one not in made]]
        while todo:
            chunk = todo.pop()
            if monotonic() > self.until:
                raise BudgetSpent
            changed = self.carry.carried(execution, made, (*kept, *chunk))
            if changed is not None and survives(against, changed):
                kept += chunk
            elif len(chunk) > 1:
                middle = len(chunk) // 2
                todo += [chunk[middle:], chunk[:middle]]
        return frozenset(everything) - frozenset(kept) - frozenset(made)


def _covers(edits: Iterable[Edit], known: Iterable[Edit]) -> bool:
    """Is each change of a known repair among these, or implied by one of them?"""
    made = tuple(edits)
    return all(
        any(
            one == other or (one.group == other.group and one.level >= other.level) or other.group in one.implies
            for one in made
        )
        for other in known
    )


def _cost(edits: Sequence[Edit]) -> float:
    return sum(edit.cost for edit in edits)


def _cheapest_hitting(sets: list[frozenset[Edit]], done: list[frozenset[Edit]]) -> frozenset[Edit] | None:
    """The cheapest set that has a member of each of `sets` and contains none of `done`; None if there is none."""
    best: tuple[float, frozenset[Edit]] | None = None
    pending: list[tuple[float, frozenset[Edit]]] = [(0.0, frozenset())]
    seen: set[frozenset[Edit]] = set()
    while pending:
        price, chosen = pending.pop()
        if chosen in seen or (best is not None and price >= best[0]) or any(_covers(chosen, one) for one in done):
            continue
        seen.add(chosen)
        missed = min((one for one in sets if not one & chosen), key=len, default=None)
        if missed is None:
            best = (price, chosen)
            continue
        for edit in sorted(missed, key=lambda one: -one.cost):
            pending.append((price + edit.cost, chosen | {edit}))
    return None if best is None else best[1]
