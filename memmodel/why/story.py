"""Why an outcome can be seen, or a finding is made: the two accesses, how far order gets, and what stops it.

In: a model, a witness, perhaps a finding of it. Out: `Story`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter

from memmodel.answer import Finding, ShownEvent, Witness
from memmodel.base.labels import Access, Allocates, Barrier, GroupWait, Half, Label, Mbarrier, Signal
from memmodel.base.rows import bits
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution
from memmodel.errors import BudgetSpent
from memmodel.ptx.vocabulary import Proxy
from memmodel.why.changes.situation import Change
from memmodel.why.diagnose import Diagnosing, Diagnosis
from memmodel.why.limited import limited, time_is_over
from memmodel.why.obstacles import Sentences, at
from memmodel.why.phases import broken_rule
from memmodel.why.records import At, Obstacle, PathStep, Reason, Story
from memmodel.why.unfold import COMMUNICATION, Chain, Link
from memmodel.why.values import Values


def outcome_story(model: Model, witness: Witness) -> Story | None:
    """Why an outcome can be seen; None for a witness that has left its process."""
    execution = execution_of(witness)
    if execution is None or witness.evaluated is None:
        return None
    diagnosing = _about_outcome(model, witness, execution)
    return limited(lambda: _story("outcome", witness, diagnosing, diagnosing.diagnosis(), None, ""), None)


def finding_story(
    model: Model, finding: Finding, rule: str, *, meant: bool = False, shown: Witness | None = None
) -> Story | None:
    """Why a flag is raised. None for a hang, and for a witness that has left its process.

    `meant`: the outcome that is asked about does not come from a race, so that the accesses may be meant to meet.
    `shown`: the execution that shows the outcome. If it is that of the finding, a reason for the outcome that is one
    for the finding as well is named: it says which of the two accesses is to come first.
    """
    witness, first, second = finding.witness, finding.first, finding.second
    execution = execution_of(witness)
    flag = next((check for check in model.flags if check.name == finding.flag), None)
    if execution is None or witness.evaluated is None or flag is None:
        return None
    if first is None or second is None or first.uid == second.uid:
        places = tuple(at(event) for event in (first, second) if event is not None)
        broken = None if first is None or finding.rule else broken_rule(execution, first.uid)
        obstacle = Obstacle(Reason.RULE, broken or finding.rule or rule, "", places[:1])
        ends = (*places, None, None)
        return Story(finding.flag, ends[0], ends[1], (obstacle,), (), "", finding.rule or rule, witness)
    pair = (first.uid, second.uid)
    diagnosing = Diagnosing(model, execution, witness.evaluated.ranks, flag, pair, witness.evaluated.known)
    rule_text = finding.rule or rule

    def told() -> Story:
        diagnosis = diagnosing.diagnosis()
        if shown is not None and shown == witness:
            other = _about_outcome(model, shown, execution).diagnosis()
            around = _turned_round(diagnosing, _ends(diagnosis, pair), _ends(other, None))
            common = diagnosing.as_that_of(other, at_any_price=around)
            diagnosis = common or _as_the_outcome_wants(diagnosing, diagnosis, other) or diagnosis
        return _story(finding.flag, witness, diagnosing, diagnosis, pair, rule_text, meant=meant)

    return limited(told, None)


def _as_the_outcome_wants(diagnosing: Diagnosing, mine: Diagnosis | None, other: Diagnosis | None) -> Diagnosis | None:
    """Another reason for the finding, where the reason at hand makes a thread wait for one that has to come after it
    if the outcome is not to be seen; None otherwise."""
    ends = _ends(mine, diagnosing.pair)
    for change in other.changes if other is not None else ():
        if change.reason is Reason.NO_SYNCHRONIZATION and change.other is not None:
            wanted = (change.at, change.other)
            if _turned_round(diagnosing, ends, wanted):
                return diagnosing.in_order_of(wanted).diagnosis()
    return None


def _turned_round(diagnosing: Diagnosing, mine: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    """True if two reasons are about two threads, and which of them comes first is the other way round."""
    if mine is None or other is None:
        return False
    first, second = ([diagnosing.flow.thread(diagnosing.flow.in_po(event)) for event in ends] for ends in (mine, other))
    return first == second[::-1] != second


def _about_outcome(model: Model, witness: Witness, execution: Execution) -> Diagnosing:
    assert witness.evaluated is not None
    known, end = witness.evaluated.known, witness.registers
    return Diagnosing(model, execution, witness.evaluated.ranks, None, None, known, end=end)


def execution_of(witness: Witness) -> Execution | None:
    """The execution that a witness shows."""
    evaluated = witness.evaluated
    return evaluated.execution if evaluated is not None and isinstance(evaluated.execution, Execution) else None


def _story(
    about: str,
    witness: Witness,
    diagnosing: Diagnosing,
    diagnosis: Diagnosis | None,
    pair: tuple[int, int] | None,
    rule: str,
    *,
    meant: bool = False,
) -> Story:
    shown = {event.uid: event for event in witness.events}
    ends = _ends(diagnosis, pair)
    sentences = Sentences(witness, diagnosing.execution, diagnosing.flow, ends)
    first, second = (at(shown[end]) for end in ends) if ends is not None else (None, None)
    if diagnosis is None:
        reason, text = _nothing(diagnosing.execution, pair or tuple(bits(diagnosing.sources)), rule)
        elsewhere = "" if pair else _written_elsewhere(diagnosing.execution, diagnosing.sources, shown)
        if elsewhere and reason is Reason.NOTHING_MISSING:
            reason, text = Reason.LOCATION, elsewhere
        obstacle = Obstacle(reason, text, "", tuple(place for place in (first, second) if place is not None))
        return Story(about, first, second, (obstacle,), (), "", rule, witness)
    changes = sorted(diagnosis.changes, key=attrgetter("at"))
    strong = diagnosing.strong() if meant and changes[-1].reason is Reason.NO_SYNCHRONIZATION else None
    each = tuple(dict.fromkeys(sentences.obstacle(change, strong) for change in changes))
    obstacles = tuple(replace(obstacle, shared=len(each) > 1) for obstacle in each)
    values = Values(diagnosing.model, diagnosing.execution, diagnosing.ranks)
    steps = Path(witness, diagnosis.changes, values, sentences.sides).steps(_order(diagnosis.chain))
    begins = ends is not None and isinstance(diagnosing.execution.events[ends[0]].label, Allocates)
    obstacles = obstacles if begins else _gone(about, obstacles)
    return Story(about, first, second, obstacles, steps, diagnosis.axiom, rule, witness)


def _nothing(execution: Execution, accesses: tuple[int, ...], rule: str) -> tuple[Reason, str]:
    for event in accesses:
        label = execution.events[event].label
        if isinstance(label, Access) and label.proxy is Proxy.READ_ONLY:
            return Reason.READ_ONLY, "one of them goes through the read-only path, which no fence bridges"
    if rule:
        return Reason.RULE, rule
    if time_is_over():
        raise BudgetSpent("the search for a reason was not done")
    return Reason.NOTHING_MISSING, "no synchronization between the accesses of this execution would forbid it"


def _written_elsewhere(execution: Execution, sources: int, shown: Mapping[int, ShownEvent]) -> str:
    """A read that the outcome is about of what nobody writes, where somebody writes the variable of another CTA."""
    events, own = execution.events, execution.set("IW")
    writes = [n for n in bits(execution.set("W") & ~own) if events[n].point.cell is not None]
    for read in bits(sources & execution.set("R")):
        cell = events[read].point.cell
        if cell is None or any(events[n].point.cell == cell for n in writes) or read not in shown:
            continue
        for write in writes:
            other = events[write].point.cell
            if other is not None and (other.instance.name, other.first) == (cell.instance.name, cell.first):
                places = (at(shown[read]), at(shown[write]))
                return f"nobody writes what {places[0]} returns: {places[1]} is to the shared memory of another CTA"
    return ""


def _gone(about: str, obstacles: tuple[Obstacle, ...]) -> tuple[Obstacle, ...]:
    """Order that is missing towards the end of an object's or a CTA's life."""
    if about not in ("undefined-after-exit", "undefined-mbarrier-inval", "undefined-tensor-memory"):
        return obstacles
    return tuple(
        replace(obstacle, reason=Reason.GONE) if obstacle.reason is Reason.NO_SYNCHRONIZATION else obstacle
        for obstacle in obstacles
    )


def _order(chain: Chain) -> Chain:
    """The part of a cycle that is order: what follows its one communication edge; otherwise all of it."""
    communication = [number for number, link in enumerate(chain) if link.name in COMMUNICATION]
    if len(communication) == 1 and chain[-1].second == chain[0].first:
        return (*chain[communication[0] + 1 :], *chain[: communication[0]])
    return chain


def _ends(diagnosis: Diagnosis | None, pair: tuple[int, int] | None) -> tuple[int, int] | None:
    """The two accesses: where the missing order would begin and end."""
    if diagnosis is None or not diagnosis.chain:
        return pair
    order = _order(diagnosis.chain)
    if not order:  # one communication edge is forbidden by itself
        return pair or (diagnosis.chain[0].first, diagnosis.chain[0].second)
    ends = (order[0].first, order[-1].second)
    if ends[0] == ends[1] and len(order) == 1:  # an event that breaks the axiom by itself
        return pair
    if pair is None and len(order) == len(diagnosis.chain):
        # A cycle with several communication edges: the first of them was overtaken.
        link = next((link for link in diagnosis.chain if link.name == "fr"), None)
        return None if link is None else (link.second, link.first)
    return ends


def _added(label: Label) -> str:
    """A missing event, in words, from the label that it would have."""
    match label:
        case GroupWait():
            return "a wait for its end"
        case Signal():
            return "tcgen05.commit"
        case Mbarrier():
            return "an arrive of the thread"
        case Barrier(half=half):
            return "a release" if half is Half.ARRIVE else "an acquire that observes it"
        case _:
            return "a fence"


class Path:
    """Links of an execution, perhaps an altered one, as steps for the reader."""

    def __init__(
        self,
        witness: Witness,
        changes: tuple[Change, ...],
        values: Values,
        sides: Callable[[Change], tuple[At, At]] | None = None,
    ) -> None:
        self.shown = {event.uid: event for event in witness.events}
        self.values = values
        self.count = values.count
        self.inserted = [(change, inserted.label) for change in changes for inserted in change.alteration.inserted]
        self.sides = sides
        weak = [change for change in changes if change.reason is Reason.WEAK]
        self.stronger = {event for change in weak for event, _, _ in change.alteration.fields}

    def place(self, event: int) -> At:
        if event < self.count:
            return at(self.shown[event])
        change, label = self.inserted[event - self.count]
        if self._meets(event) and self.sides is not None:
            assert isinstance(label, Barrier)
            return self.sides(change)[0 if label.half is Half.ARRIVE else 1]
        if change.reason is Reason.NO_FENCE_SC:  # there may be several
            return At("", f"{change.words} before {self.shown[change.at].label}")
        return At("", change.words or _added(label))

    def steps(self, chain: Chain) -> tuple[PathStep, ...]:
        return tuple(self._step(link) for link in chain)

    def _meets(self, event: int) -> bool:
        """True of a side of a hand-over that is not there. It stands for every kind of synchronization."""
        if event < self.count:
            return False
        change, label = self.inserted[event - self.count]
        return isinstance(label, Barrier) and change.reason is Reason.NO_SYNCHRONIZATION

    def _step(self, link: Link) -> PathStep:
        first, second = self.place(link.first), self.place(link.second)
        holds = self._holds(link) or (link.name == "po" and not (first.missing or second.missing))
        if self._meets(link.first) and self._meets(link.second):
            return PathStep(first, second, link.name, holds=False)
        parts = () if len(link.parts) < 1 else self.steps(link.parts)
        return PathStep(first, second, link.name, link.clause, parts, holds=holds)

    def _holds(self, link: Link) -> bool:
        """True if the link exists in the original execution."""
        if max(link.first, link.second) >= self.count:
            return False
        name, a, b = link.name, link.first, link.second
        if name == "rf" and {a, b} & self.stronger:
            return False
        if name.endswith("^-1"):
            name, a, b = name[:-3], b, a
        rows = self.values.relation(name)
        return rows is None or bool(rows[a] >> b & 1)
