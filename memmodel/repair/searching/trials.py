"""Changes of a text, tried: whether the test is right with them, and which executions show that it is not.

In: a text, what judges a changed one, an aim. Out: yes or no, counterexamples. Settled here: when a counterexample of
one changed text is one of another. `carry` decides that from the execution alone, without an engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

from memmodel.answer import HANG, Witness
from memmodel.errors import BudgetSpent
from memmodel.litmus.constants import instructions
from memmodel.program.lowered import LoweredTest
from memmodel.repair.carry import Carry, survives
from memmodel.repair.edits import Edit, about_numbers, apply
from memmodel.repair.glance import Glance
from memmodel.repair.hints import BY_ITSELF, broken_rules, moves_a_fence
from memmodel.repair.insertion.lines import Lines
from memmodel.repair.judge import AnswersOfTest, Judge, Lost, TextCounterexample
from memmodel.repair.purpose import keeps_phases
from memmodel.repair.searching.ideas import FORMS, by_idea, has_all, idea
from memmodel.repair.searching.turns import Changes, cost, covers, in_order
from memmodel.why.story import execution_of


@dataclass(frozen=True, slots=True)
class Aim:
    """What a repair has to reach. `lost`: whether what some models say shows that it does not.

    `outcomes`: whether an outcome is wrong under this aim. `stays`: the findings that may stay. `note`: what a repair
    that reaches it leaves as it is.
    """

    reached: Callable[[AnswersOfTest], bool]
    lost: Lost
    outcomes: bool = True
    stays: frozenset[str] = frozenset()
    note: str = ""


class Trials:
    """Changes of one text, tried under one aim after the other.

    How a change is tried: `glance` and `quick_judge` look for a counterexample, `judge` judges in full. `enumerates`:
    the test is small, so that judging is as fast as looking. `effort_divisor`: 2 for a large test, of which fewer
    changes are tried. `until`: when time is up.

    What is known: `known_repairs`; `tried`: how many programs were judged; `looked`: how many were judged or refuted by
    a known counterexample; `failed`: what is wrong with the last change that did not suffice; `skips_phase`: the last
    change skips a phase, and nothing else is wrong with it; `rules_after_hang`: the first changes that end a hang and
    let a thread break a rule by itself, with these rules.

    What a search needs: `order_only`: changes that only add order; `survivors`: counterexamples of the test with all of
    them; `useless`: other changes, none of which suffices with all of them; `refuted_by`: the counterexamples of each
    other change; `endings`: sets of changes, each of which ended a counterexample, the last useful one first;
    `accesses`: moves of accesses, for where nothing else is a repair; `flags`: of two threads, for where no repair but
    strong data is known, unless that is asked for (`asks_for_strong`); `survivors_of`: for some changes, the
    counterexamples that survive all of them, and whether there is any.

    `gave_up`: not all changes were tried; `cheaper_untried`: among them cheaper ones than the repairs known.
    """

    def __init__(
        self,
        text: str,
        before: AnswersOfTest,
        progress: Callable[[int], None] | None,
        parse_first: Callable[[str], LoweredTest | None],
        ended: Callable[[str], tuple[Witness, ...]],
    ) -> None:
        self.text = text
        self.judge: Judge = _unjudged
        self.quick_judge: Judge = _unjudged
        self.glance: Glance | None = None
        self.before = before
        self.progress = progress
        self.ended = ended
        self.until = monotonic()
        self.tried = 0
        self.looked = 0
        self.known_repairs: list[Changes] = []
        self.aim = Aim(lambda _: False, lambda *_: True)
        self.failed: AnswersOfTest | None = None
        self.gave_up = False
        self.cheaper_untried = False
        self.skips_phase = False
        self.rules_after_hang: tuple[Changes, tuple[str, ...]] | None = None
        self.order_only: list[Edit] = []
        self.useless: set[Edit] = set()
        self.refuted_by: dict[Edit, list[TextCounterexample]] = {}
        self.survivors: list[TextCounterexample] = []
        self.accesses: list[Edit] = []
        self.flags: list[Edit] = []
        self.asks_for_strong = False
        self.endings: list[frozenset[Edit]] = []
        self.survivors_of: dict[Changes, tuple[list[TextCounterexample], bool]] = {}
        self.enumerates = False
        self._ideas: tuple[list[Changes], list[list[Changes]]] = [], []
        self.effort_divisor = 1
        self._bad: dict[str, list[TextCounterexample]] = {}
        self._survived: dict[
            tuple[TextCounterexample, Changes], tuple[list[frozenset[Edit]], list[frozenset[Edit]]]
        ] = {}
        self._parse_first = parse_first
        self.carry = Carry(text, self._parsed)
        self.phases = None if self.carry.base is None else Lines(self.carry.base).phases

    def instructions(self) -> int:
        """The number of instructions of the test."""
        base = self.carry.base
        return 0 if base is None else sum(len(list(instructions(thread))) for thread in base.test.threads)

    def is_right(self, edits: Iterable[Edit], *, fully: bool = False) -> bool:
        """True if the test is right with these changes. Raises BudgetSpent when time is up.

        `fully`: if it is not, `failed` has every finding that is left, and not only the first that was met.
        """
        self.in_time()
        self.skips_phase = False
        ordered = in_order(edits)
        text = apply(self.text, ordered)
        counterexample = None if fully else self._refuted(text) or self._known_counterexample(text)
        if counterexample is None:
            self.tried += 1
            if self.progress is not None:
                self.progress(self.tried)
            counterexample = None if fully or self.enumerates else self._quick_counterexample(text)
        if counterexample is not None:
            self._bad.setdefault(text, []).append(counterexample)
            flags = frozenset((counterexample.flag,) if counterexample.flag else ())
            self.failed = AnswersOfTest((), flags, complete=False, counterexamples=(counterexample,))
            self._ends_a_hang(ordered)
            return False
        for judge in (self.quick_judge, self.judge) if fully else (self.judge,):
            self.failed = judge(text)
            if not self._passes(self.failed):
                self._ends_a_hang(ordered)
                return False
        assert self.failed is not None
        if HANG not in self.before.findings and not any(map(about_numbers, ordered)):
            return True
        self.skips_phase = not keeps_phases(self.before, self.failed.shown or self.ended(text), ordered)
        return not self.skips_phase

    def counterexample(self, edits: Iterable[Edit]) -> TextCounterexample | None:
        """A counterexample of the test with these changes, if one is soon found."""
        self.in_time()
        text = apply(self.text, edits)
        return self._known_counterexample(text) or self._quick_counterexample(text)

    def _known_counterexample(self, text: str) -> TextCounterexample | None:
        self.looked += 1
        return None if self.glance is None else self.glance.known_counterexample(text)

    def _quick_counterexample(self, text: str) -> TextCounterexample | None:
        return None if self.glance is None else self.glance.at(text)

    def counterexample_of(self, edits: Iterable[Edit], flag: str) -> TextCounterexample | None:
        """An execution of the test with these changes in which this is found, if one is soon found."""
        self.in_time()
        return None if self.glance is None else self.glance.counterexample_of(apply(self.text, edits), flag)

    def _refuted(self, text: str) -> TextCounterexample | None:
        """A counterexample of the text that was found under another aim and counts under this one as well."""
        return next(
            (counterexample for counterexample in self._bad.get(text, ()) if self._counts(counterexample)), None
        )

    def _counts(self, counterexample: TextCounterexample) -> bool:
        if counterexample.flag is None:
            return self.aim.outcomes
        return counterexample.flag not in self.aim.stays

    def is_new(self, counterexample: TextCounterexample) -> bool:
        """True if an execution shows a finding that the test did not have. No repair may have one."""
        return counterexample.flag is not None and counterexample.flag not in self.before.findings

    def _parsed(self, text: str) -> LoweredTest | None:
        """A changed text, read but not judged. Raises BudgetSpent when time is up."""
        if text != self.text:
            self.in_time()
        return self._parse_first(text)

    def in_time(self) -> None:
        """Raise BudgetSpent when time is up."""
        if monotonic() > self.until:
            raise BudgetSpent

    def _ends_a_hang(self, applied: Changes) -> None:
        """Keep the first changes with which a hang ends, and then one thread breaks a rule by itself."""
        if (
            self.rules_after_hang is None
            and HANG in self.before.findings
            and self.failed
            and HANG not in self.failed.findings
        ):
            rules = broken_rules(self.failed.counterexamples)
            self.rules_after_hang = (applied, rules) if rules else None

    def _passes(self, now: AnswersOfTest | None) -> bool:
        return now is not None and now.complete and self.aim.reached(now)

    def counterexamples(self, now: AnswersOfTest | None, *, new: bool = False) -> list[TextCounterexample]:
        """The counterexamples of a standing that count under the aim; with `new`, those of new findings as well."""
        if now is None:
            return []
        counterexamples = [
            counterexample
            for counterexample in now.counterexamples
            if self._counts(counterexample) and (new or not self.is_new(counterexample))
        ]
        return [
            counterexample for counterexample in counterexamples if execution_of(counterexample.witness) is not None
        ]

    def survives(self, counterexample: TextCounterexample, applied: Changes, edits: Iterable[Edit]) -> bool:
        """True if an execution of the text with the changes `applied` still exists, and is bad, with `edits` made."""
        self.in_time()
        execution, more = execution_of(counterexample.witness), tuple(edits)
        counted = any(delta is not None and delta.hidden for delta in map(self.carry.delta, more))
        if execution is None or (counted and counterexample.flag == "undefined-instruction"):
            return False
        chosen = frozenset(more)
        lived, died = self._survived.setdefault((counterexample, tuple(applied)), ([], []))
        if any(chosen <= known for known in lived):
            return True
        if any(known <= chosen for known in died):  # with more order it stays so
            return False
        ways = self.carry.choices(more)
        changed = [self.carry.carried(execution, applied, way) for way in ways]
        survived = bool(ways) and all(after is not None and survives(counterexample, after) for after in changed)
        (lived if survived else died).append(chosen)
        return survived

    def passed_by(self, counterexample: TextCounterexample, edit: Edit, applied: Changes = ()) -> bool:
        """True if an execution of the text with the changes `applied` does not reach what `edit` concerns."""
        execution = execution_of(counterexample.witness)
        return execution is not None and self.carry.passed_by(execution, edit, applied)

    def waits_in_vain(self, edits: Iterable[Edit]) -> bool:
        """True if a wait is inserted for an arrival that cannot happen before it, and none of the changes adds one."""
        changes = tuple(edits)
        texts = [part.text for edit in changes for part in (edit, *edit.more)]
        if any(edit.group[2] == "move" for edit in changes) or any(re.search(r"arrive|commit", text) for text in texts):
            return False
        return any(self._unheard(edit) for edit in changes if edit.adds > 0 and edit.rank == 0)

    def _unheard(self, edit: Edit) -> bool:
        match, place = re.search(r"wait\.parity[^\[]*\[([^\]]*)\]", edit.text), edit.group[:2]
        if match is None or self.phases is None or match[1] not in self.phases.objects:
            return False
        thread, index = place
        return isinstance(thread, int) and isinstance(index, int) and self.phases.unheard(thread, index, match[1])

    def moved_in_vain(self, counterexample: TextCounterexample, edit: Edit) -> bool:
        """True if a fence is moved and the execution survives the fence at its new place, with the old fence kept."""
        if (
            not moves_a_fence(edit)
            or counterexample.flag in BY_ITSELF
            or counterexample.flag == "undefined-instruction"
        ):
            return False
        delta = self.carry.delta(edit.more[0])
        return delta is not None and not delta.hidden and self.survives(counterexample, (), edit.more)

    def risky(self, edit: Edit) -> bool:
        """True if the effect of a change is known only by judging the changed test."""
        return self.carry.delta(edit) is None

    def covered(self, edits: Iterable[Edit]) -> bool:
        """True if these changes include a known repair."""
        return any(covers(edits, known) for known in self.known_repairs)

    def enough(self, price: float, most: int) -> bool:
        """True if `most` repairs of different ideas are known that cost no more."""
        return sum(cost(group[0]) <= price for group in self.ideas()) >= most

    def ideas(self) -> list[list[Changes]]:
        """The repairs that are known, those of one idea together, the cheapest first."""
        if self._ideas[0] != self.known_repairs:
            self._ideas = (
                list(self.known_repairs),
                [[first, *others] for first, others in by_idea(self.known_repairs, len(self.known_repairs), self.text)],
            )
        return self._ideas[1]

    def shown_already(self, edits: Iterable[Edit]) -> bool:
        """True if the idea of these changes properly includes that of a known repair that costs no more, or equals it
        and FORMS forms of it are known."""
        changes = tuple(edits)
        price = cost(changes)
        cheaper = [(group[0], len(group)) for group in self.ideas() if cost(group[0]) <= price]
        mine = idea(changes) if cheaper else {}
        return any(
            has_all(mine, known) and (mine != known or forms >= FORMS)
            for known, forms in ((idea(first), forms) for first, forms in cheaper)
        )

    def needed(self, edits: Changes) -> Changes:
        """A repair less what it does not need."""
        for edit in sorted(edits, key=lambda edit: -edit.cost):
            rest = tuple(kept for kept in edits if kept is not edit)
            if rest and self.is_right(rest):
                return self.needed(rest)
        return edits


def _unjudged(text: str) -> AnswersOfTest | None:
    """A judge that decides nothing: used before there is an aim."""
    return None
