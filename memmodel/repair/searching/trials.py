"""Changes of a text, tried: is the test right with them, and which executions say that it is not?

In: a text, what judges a changed one, an aim. Out: yes or no, executions. Settled here: when an execution of one
changed text also speaks against another one. That is told from the execution alone (`carry`), without an engine.
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
from memmodel.repair.hints import BY_ITSELF, alone, moves_a_fence
from memmodel.repair.insertion.lines import Lines
from memmodel.repair.judge import Against, Judge, Lost, Standing
from memmodel.repair.purpose import keeps_phases
from memmodel.repair.searching.ideas import FORMS, by_idea, has_all, idea
from memmodel.repair.searching.turns import Changes, cost, covers, in_order
from memmodel.why.story import execution_of


@dataclass(frozen=True, slots=True)
class Aim:
    """What a repair has to reach. `lost`: whether what some models say shows that it does not.

    `outcomes`, `findings`: whether an execution that shows one speaks against it. `note`: what a repair that reaches it
    leaves as it is.
    """

    reached: Callable[[Standing], bool]
    lost: Lost
    outcomes: bool = True
    findings: bool = True
    note: str = ""


class Trials:
    """Changes of one text, tried under one aim after the other. `best`: the repairs that are known. `tried`: how many
    programs were judged, `looked`: with those that an execution which was found before speaks against.

    `order`: changes that only add order. `survivors`: executions that speak against the test with all of them.
    `vain`: other changes, none of which suffices with all of them. `shown`: what speaks against each other change.
    `skips`: the last change that was tried skips a phase, and nothing else is wrong with it.
    `answers`: to executions, the changes of which each repair has one, the last that were of use first.
    `accesses`: moves of accesses, for where nothing else is a repair.
    `hopes`: of changes, the executions that survive all of them, and whether one does.
    """

    def __init__(
        self,
        text: str,
        before: Standing,
        progress: Callable[[int], None] | None,
        parse_first: Callable[[str], LoweredTest | None],
        ended: Callable[[str], tuple[Witness, ...]],
    ) -> None:
        self.text = text
        self.judge: Judge = _unjudged
        self.look: Judge = _unjudged
        self.glance: Glance | None = None
        self.before = before
        self.progress = progress
        self.ended = ended
        self.until = monotonic()
        self.tried = 0
        self.looked = 0
        self.best: list[Changes] = []
        self.aim = Aim(lambda _: False, lambda *_: True)
        self.failed: Standing | None = None
        self.left_out = False
        self.untried = False
        self.skips = False
        self.beyond: tuple[Changes, tuple[str, ...]] | None = None
        self.order: list[Edit] = []
        self.vain: set[Edit] = set()
        self.shown: dict[Edit, list[Against]] = {}
        self.survivors: list[Against] = []
        self.accesses: list[Edit] = []
        self.answers: list[frozenset[Edit]] = []
        self.hopes: dict[Changes, tuple[list[Against], bool]] = {}
        self.small = False
        self._ideas: tuple[list[Changes], list[list[Changes]]] = [], []
        self.slow = 1
        self._bad: dict[str, list[Against]] = {}
        self._survived: dict[tuple[Against, Changes], tuple[list[frozenset[Edit]], list[frozenset[Edit]]]] = {}
        self._parse_first = parse_first
        self.carry = Carry(text, self._parsed)
        self.phases = None if self.carry.base is None else Lines(self.carry.base).phases

    def instructions(self) -> int:
        """How many the test has."""
        base = self.carry.base
        return 0 if base is None else sum(len(list(instructions(thread))) for thread in base.test.threads)

    def is_right(self, edits: Iterable[Edit], *, fully: bool = False) -> bool:
        """True if the test is right with these changes. Raises BudgetSpent when time is up.

        `fully`: if it is not, `failed` has all that is wrong with it, as far as that was wrong before.
        """
        self.in_time()
        self.skips = False
        ordered = in_order(edits)
        text = apply(self.text, ordered)
        seen = None if fully else self._refuted(text) or self._again(text)
        if seen is None:
            self.tried += 1
            if self.progress is not None:
                self.progress(self.tried)
            seen = None if fully or self.small else self._glanced(text)
        if seen is not None:
            self._bad.setdefault(text, []).append(seen)
            self.failed = Standing((), frozenset((seen.flag,) if seen.flag else ()), complete=False, against=(seen,))
            self._ends_a_hang(ordered)
            return False
        for judge in (self.look, self.judge) if fully else (self.judge,):
            self.failed = judge(text)
            if not self._passes(self.failed):
                self._ends_a_hang(ordered)
                return False
        assert self.failed is not None
        if HANG not in self.before.findings and not any(map(about_numbers, ordered)):
            return True
        self.skips = not keeps_phases(self.before, self.failed.shown or self.ended(text), ordered)
        return not self.skips

    def seen(self, edits: Iterable[Edit]) -> Against | None:
        """An execution that speaks against the test with these changes, if one is soon found."""
        self.in_time()
        text = apply(self.text, edits)
        return self._again(text) or self._glanced(text)

    def _again(self, text: str) -> Against | None:
        self.looked += 1
        return None if self.glance is None else self.glance.known_against(text)

    def _glanced(self, text: str) -> Against | None:
        return None if self.glance is None else self.glance.at(text)

    def flagged(self, edits: Iterable[Edit], flag: str) -> Against | None:
        """An execution of the test with these changes in which this is found, if one is soon found."""
        self.in_time()
        return None if self.glance is None else self.glance.flagged(apply(self.text, edits), flag)

    def _refuted(self, text: str) -> Against | None:
        """An execution that was found under another aim, and speaks against the text under this one as well."""
        return next((against for against in self._bad.get(text, ()) if self._speaks(against)), None)

    def _speaks(self, against: Against) -> bool:
        if against.flag is None:
            return self.aim.outcomes
        return self.aim.findings or self.is_new(against)

    def is_new(self, against: Against) -> bool:
        """True if an execution shows a finding that the test did not have. No repair may have one."""
        return against.flag is not None and against.flag not in self.before.findings

    def _parsed(self, text: str) -> LoweredTest | None:
        """A changed text, for what is told without judging it. Raises BudgetSpent when time is up."""
        if text != self.text:
            self.in_time()
        return self._parse_first(text)

    def in_time(self) -> None:
        """Raise BudgetSpent when time is up."""
        if monotonic() > self.until:
            raise BudgetSpent

    def _ends_a_hang(self, applied: Changes) -> None:
        """Keep the first changes with which a hang ends, and then one thread breaks a rule by itself."""
        if self.beyond is None and HANG in self.before.findings and self.failed and HANG not in self.failed.findings:
            rules = alone(self.failed.against)
            self.beyond = (applied, rules) if rules else None

    def _passes(self, now: Standing | None) -> bool:
        return now is not None and now.complete and self.aim.reached(now)

    def speaking(self, now: Standing | None, *, new: bool = False) -> list[Against]:
        """The executions of a standing that no repair may have; with `new` those of new findings are among them."""
        if now is None:
            return []
        againsts = [against for against in now.against if self._speaks(against) and (new or not self.is_new(against))]
        return [against for against in againsts if execution_of(against.witness) is not None]

    def survives(self, against: Against, applied: Changes, edits: Iterable[Edit]) -> bool:
        """True if an execution of the text with the changes `applied` still exists, and is bad, with `edits` made."""
        self.in_time()
        execution, more = execution_of(against.witness), tuple(edits)
        counted = any(delta is not None and delta.hidden for delta in map(self.carry.delta, more))
        if execution is None or (counted and against.flag == "undefined-instruction"):
            return False
        chosen = frozenset(more)
        lived, died = self._survived.setdefault((against, tuple(applied)), ([], []))
        if any(chosen <= known for known in lived):
            return True
        if any(known <= chosen for known in died):  # with more order it stays so
            return False
        ways = self.carry.choices(more)
        changed = [self.carry.carried(execution, applied, way) for way in ways]
        survived = bool(ways) and all(after is not None and survives(against, after) for after in changed)
        (lived if survived else died).append(chosen)
        return survived

    def passed_by(self, against: Against, edit: Edit, applied: Changes = ()) -> bool:
        """True if an execution of the text with the changes `applied` does not reach what `edit` concerns."""
        execution = execution_of(against.witness)
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

    def moved_in_vain(self, against: Against, edit: Edit) -> bool:
        """True if a fence is moved and the execution survives the fence at its new place, with the old fence kept."""
        if not moves_a_fence(edit) or against.flag in BY_ITSELF or against.flag == "undefined-instruction":
            return False
        delta = self.carry.delta(edit.more[0])
        return delta is not None and not delta.hidden and self.survives(against, (), edit.more)

    def risky(self, edit: Edit) -> bool:
        """True if the effect of a change is known only by judging the changed test."""
        return self.carry.delta(edit) is None

    def covered(self, edits: Iterable[Edit]) -> bool:
        """True if these changes include a known repair."""
        return any(covers(edits, known) for known in self.best)

    def enough(self, price: float, most: int) -> bool:
        """True if `most` repairs of different ideas are known that cost no more."""
        return sum(cost(group[0]) <= price for group in self.ideas()) >= most

    def ideas(self) -> list[list[Changes]]:
        """The repairs that are known, those of one idea together, the cheapest first."""
        if self._ideas[0] != self.best:
            self._ideas = (
                list(self.best),
                [[first, *others] for first, others in by_idea(self.best, len(self.best), self.text)],
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


def _unjudged(text: str) -> Standing | None:
    """What stands for a judge before there is an aim."""
    return None
