"""Which changes would forbid an execution, or would order the two accesses of a finding.

In: a model, an execution, perhaps a finding of it. Out: `Diagnosis`. Settled here: when changes are enough. Without a
finding, the changed execution breaks an axiom in every order of its writes and fences. With a finding, the flag is no
longer raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from operator import attrgetter

from memmodel.base.labels import Access, Fence
from memmodel.base.rows import bits, pairs_of
from memmodel.cat.analysis import names_in
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Binary, Check, Model
from memmodel.concrete.execution import Execution
from memmodel.litmus.syntax import Condition, Not, Quantifier, terms_of
from memmodel.memory.bytes import Cell
from memmodel.ptx.vocabulary import Proxy, Sem
from memmodel.referee.evaluate import Ranks
from memmodel.referee.finals import Finals
from memmodel.referee.relevance import condition_sources, first_that_holds, is_asked, with_open_reads
from memmodel.why.alter import Alteration, alter, combined, with_order
from memmodel.why.changes import changes_worth_trying
from memmodel.why.changes.labels import of_strong_accesses
from memmodel.why.changes.situation import Change, Situation
from memmodel.why.flow import Flow, is_cyclic
from memmodel.why.present.apart import apart
from memmodel.why.records import Reason
from memmodel.why.unfold import Chain, Unfolding, closes_on, turned
from memmodel.why.values import Values

CHOSEN = ("co", "sync_fence")
"""Orders that an execution chooses. Where an axiom asks for a pair that is not ordered yet, it may be chosen."""

PAIRS = 3
"""At most this many races and hazards of an execution are looked at before the execution as a whole."""

FEW = 40
"""With no more events than this, single changes are tried in place of a set that was found."""

ORDERS = 200
"""With more orders of fence.sc than this, an execution counts as possible."""

DEPTH = 6
"""After this number of choices of orders, an execution counts as possible."""

PRICE = attrgetter("cost")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`changes`: a minimal set that is enough. `chain`: the relations that forbid the outcome or order the pair then.

    `axiom`: the axiom that the changed execution breaks, or the flag.
    """

    changes: tuple[Change, ...]
    chain: Chain
    axiom: str


class Diagnosing:
    """Tries changes on one execution. `data`: the pair are accesses to data, and not to a flag that hands it over.

    `end`: the registers at the end of an execution whose outcome is asked about. `forward`: two threads, the first of
    which is to come first: no change makes it wait for the other one.
    """

    def __init__(
        self,
        model: Model,
        execution: Execution,
        ranks: Ranks,
        flag: Check | None,
        pair: tuple[int, int] | None,
        known: dict[object, object] | None = None,
        *,
        data: bool = True,
        end: Mapping[tuple[str, str], int] | None = None,
        forward: tuple[int, int] | None = None,
    ) -> None:
        self.model = model
        self.execution = execution
        self.ranks = ranks
        self.flag = flag
        self.pair = pair
        self.data = data
        self.end = end
        self.forward = forward
        self.flow = Flow(execution)
        self.tried = 0
        self.known = {} if known is None else known
        self._ended: tuple[tuple[int, ...], Values] | None = None
        self._choices = [(check, name) for check in model.axioms for name in CHOSEN if _subtracts(check, name)]
        if flag is None:
            self._in_order_of_reads()
        self.as_asked = self._as_asked(of_equal_values=True)

    @cached_property
    def sources(self) -> int:
        """The accesses that the values of the condition come from, where the outcome is asked about."""
        return condition_sources(self.execution, self._condition()) if self.flag is None else 0

    def _condition(self) -> Condition:
        """The condition, of alternatives the first that holds; of a `forall`, what breaks it."""
        execution, test = self.execution, self.execution.frame.lowered.test
        if self.end is None:
            return test.condition
        finals = Finals(execution.frame.lowered, tuple(terms_of(test.condition)))
        registers = [{name: value for (own, name), value in self.end.items() if own == t.name} for t in test.threads]
        co = execution.relation("co")
        last = {
            cell: value
            for number in bits(execution.set("W"))
            if (cell := execution.events[number].point.cell) is not None
            if (value := execution.values[number]) is not None and not co[number]
        }
        asked = test.condition if test.quantifier is not Quantifier.FORALL else Not(test.condition)
        return first_that_holds(asked, lambda condition: finals.holds(condition, registers, last))

    def _as_asked(self, *, of_equal_values: bool) -> Execution:
        """The execution as far as the outcome asks about it. A change that forbids it because of another value, or
        because of another write of the same value, does not forbid the outcome."""
        if self.flag is not None:
            return self.execution
        return with_open_reads(self.execution, self._condition(), of_equal_values=of_equal_values)

    def _in_order_of_reads(self) -> None:
        """Put a write that leads to another one before that in coherence order, where the execution has them the other
        way round and may have them so: what forbids that order alone does not forbid the outcome."""
        co = self.execution.relation("co")
        for later, first in pairs_of(co):
            between = any(co[later] >> n & 1 and co[n] >> first & 1 for n in range(len(co)))
            if between or self.flow.thread(later) is None or not self.flow.leads(first, later):
                continue
            rows = list(self.execution.relation("co"))
            rows[later] &= ~(1 << first)
            rows[first] |= 1 << later
            relations = {**self.execution.chosen_relations, "co": rows}
            turned_round = replace(self.execution, chosen_relations=relations)
            if self._keeps_the_end(turned_round) and self._broken(turned_round, DEPTH) is None:
                self.execution = turned_round

    def diagnosis(self) -> Diagnosis | None:
        """The changes that are enough; None if none are known."""
        key = (id(self.model), None if self.flag is None else self.flag.name, self.pair, self.data, self.forward)
        if key not in self.known:
            self.known[key] = self.model, self._diagnosis()  # the model stays, so that no other one gets its identity
        kept = self.known[key]
        assert isinstance(kept, tuple)
        diagnosis = kept[1]
        assert diagnosis is None or isinstance(diagnosis, Diagnosis)
        return diagnosis

    def in_order_of(self, ends: tuple[int, int]) -> Diagnosing:
        """The same question, where the thread of the first event is to come before that of the second one."""
        first, second = (self.flow.thread(self.flow.in_po(event)) for event in ends)
        forward = None if first is None or second is None else (first, second)
        return Diagnosing(
            self.model, self.execution, self.ranks, self.flag, self.pair, self.known, data=self.data, forward=forward
        )

    def as_that_of(self, other: Diagnosis | None, *, at_any_price: bool) -> Diagnosis | None:
        """The diagnosis with changes that are enough for something else; None if they are not for this, or if this one
        needs fewer, or such as are tried first."""
        mine = self.diagnosis()
        if mine is None or other is None or other.changes == mine.changes:
            return None
        if (_last_tier(other) > _last_tier(mine) and not at_any_price) or not self.ends(other.changes):
            return None
        kept = self._shrunk(list(other.changes))
        return self._of(kept) if at_any_price or len(kept) <= len(mine.changes) else None

    def _diagnosis(self) -> Diagnosis | None:
        """What forbids the outcome whichever write a read has its value from; if nothing does, this execution of it."""
        diagnosis = self._of_what_is_asked()
        if diagnosis is None and self.flag is None:
            every, self.as_asked = self.as_asked, self._as_asked(of_equal_values=False)
            if self.as_asked.relation("rf") != every.relation("rf"):
                diagnosis = self._of_what_is_asked()
        return diagnosis

    def _of_what_is_asked(self) -> Diagnosis | None:
        by_pair = self._by_a_pair() if self.flag is None else None
        if by_pair is not None:
            return by_pair
        offered = changes_worth_trying(Situation(self.execution, self.flow, self.pair, self.data, self.sources))
        changes = [change for change in offered if not self._is_backward(change)]
        for tier in (1, 2, 3, 4):
            mine = sorted(
                (change for change in changes if change.tier <= tier), key=PRICE, reverse=True
            )  # as they are shrunk
            if (tier > 1 and len(mine) == len([c for c in changes if c.tier < tier])) or not self.ends(mine):
                continue
            kept = self._shrunk(mine)
            if len(kept) > 1 and self.flow.count <= FEW:
                least = sum(map(PRICE, kept))
                cheaper = (change for change in sorted(mine, key=PRICE) if change.cost <= least)
                kept = next(([change] for change in cheaper if self.ends([change])), kept)
            kept = self._relaxed(self._agreeing(kept, mine))
            return self._of(kept)
        # Of many fence.sc at once there are too many orders to look at; one may be enough.
        single = (change for change in sorted(changes, key=PRICE) if change.reason is Reason.NO_FENCE_SC)
        enough = next(([change] for change in single if self.ends([change])), None)
        return None if enough is None else self._of(enough)

    def _is_backward(self, change: Change) -> bool:
        """True if a change lets the second thread of `forward` come before the first one."""
        if self.forward is None or change.other is None:
            return False
        first, second = (self.flow.thread(self.flow.in_po(event)) for event in (change.at, change.other))
        return (second, first) == self.forward

    def _of(self, changes: list[Change]) -> Diagnosis:
        """The diagnosis that these changes are enough."""
        return self._diagnosed(tuple(changes), self._altered(changes))

    def _altered(self, changes: Iterable[Change]) -> Execution:
        return alter(self.as_asked, combined((change.alteration for change in changes), self.flow.count))

    def _agreeing(self, kept: list[Change], offered: list[Change]) -> list[Change]:
        """The changes, if they do not order what they order both ways; else others, without one of them."""
        if self.flag is not None or len(kept) == 1 or not self._contradict(kept):
            return kept
        rests = ([change for change in offered if change is not out] for out in kept)
        others = [self._shrunk(rest) for rest in rests if self.ends(rest)]
        agreeing = [changes for changes in others if len(changes) == 1 or not self._contradict(changes)]
        return min(agreeing, key=lambda changes: sum(map(PRICE, changes)), default=kept)

    def _contradict(self, changes: list[Change]) -> bool:
        return is_cyclic(self._altered(changes))

    def _relaxed(self, changes: list[Change]) -> list[Change]:
        """The changes, with .relaxed for each .acquire or .release of a weak access where that is as good."""
        for number, change in enumerate(changes):
            fields = tuple(
                (event, name, Sem.RELAXED if name == "sem" else v) for event, name, v in change.alteration.fields
            )
            if change.reason is Reason.RELAXED and change.words == Sem.WEAK.value and fields:
                weaker = replace(change, reason=Reason.WEAK, alteration=Alteration(fields), other=None)
                if self.ends([*changes[:number], weaker, *changes[number + 1 :]]):
                    changes = [*changes[:number], weaker, *changes[number + 1 :]]
        return changes

    def strong(self) -> Change | None:
        """The two accesses as strong ones, if they would not race then."""
        labels = [self.execution.events[end].label for end in self.pair or ()]
        plain = all(isinstance(n, Access) and n.proxy is Proxy.GENERIC and not n.asynchronous for n in labels)
        if self.flag is None or self.pair is None or not plain or kind_of(self.flag.name) is not FindingKind.RACE:
            return None
        asked = Situation(self.execution, self.flow, self.pair)
        change = of_strong_accesses(asked) if all(map(asked.may_be_strong, self.pair)) else None
        return change if change is not None and self.ends([change]) else None

    def _by_a_pair(self) -> Diagnosis | None:
        """The changes that order a race or hazard of the execution, if they forbid the outcome as well."""
        values = Values(self.model, self.execution, self.ranks)
        flags = [flag for flag in self.model.flags if kind_of(flag.name) in (FindingKind.RACE, FindingKind.HAZARD)]
        pairs = [(flag, pair) for flag in flags for pair in values.reported(flag) if pair[0] < pair[1]]
        pairs.sort(key=lambda pair: not any(self.sources >> end & 1 for end in pair[1]))
        # The raced access may itself be the flag that the outcome reads: then it does not count as data.
        for (flag, pair), data in product(pairs[:PAIRS], (True, False)):
            asking = Diagnosing(self.model, self.execution, self.ranks, flag, pair, self.known, data=data)
            diagnosis = asking.diagnosis()
            if diagnosis is None or any(self._asks_what_was_seen(change) for change in diagnosis.changes):
                continue
            read = self._what_was_read(pair)
            if read is not None and any(it.reason is Reason.NOT_SEEN for it in diagnosis.changes):
                # To see more would make the outcome certain: the read has to come first.
                first = asking.in_order_of(read).diagnosis()
                if first is not None and self.ends(first.changes):
                    return self._diagnosed(first.changes, self._altered(first.changes), 1 << pair[0] | 1 << pair[1])
                continue
            if self._is_about(diagnosis) and self.ends(diagnosis.changes):
                kept = self._shrunk(list(diagnosis.changes)) if len(diagnosis.changes) > 1 else list(diagnosis.changes)
                if kept[-1].tier > 1 and kept != list(diagnosis.changes):
                    continue  # what is left is not about this pair: synchronization on the way of another one
                return self._diagnosed(tuple(kept), self._altered(kept), 1 << pair[0] | 1 << pair[1])
        return None

    def _what_was_read(self, pair: tuple[int, int]) -> tuple[int, int] | None:
        """The read of a pair and its write, if the question is about what the read returns, and the other access has
        written that."""
        reads_from = self.execution.relation("rf")
        found = (b for a, b in (pair, pair[::-1]) if reads_from[a] >> b & 1 and self.sources >> b & 1)
        read = next(found, None)
        return None if read is None else (read, pair[0] if read == pair[1] else pair[1])

    def _is_about(self, diagnosis: Diagnosis) -> bool:
        """True if changes order a pair by what there is, or it is known what that synchronization lacks."""
        last = diagnosis.changes[-1]
        if last.tier == 1 or last.other is None or len(diagnosis.changes) > 1:
            return last.tier == 1
        return last.reason is Reason.NO_SYNCHRONIZATION and bool(apart(self.execution, self.flow, last.at, last.other))

    def _asks_what_was_seen(self, change: Change) -> bool:
        """True if a thread would see more than it has, and the question is about that: it would be another outcome."""
        seeing, condition = change.other, self.execution.frame.lowered.test.condition
        if change.reason is not Reason.NOT_SEEN or seeing is None:
            return False
        return bool(self.sources >> seeing & 1) or is_asked(self.execution, condition, seeing)

    def ends(self, changes: Sequence[Change]) -> bool:
        """True if these changes cure what is wrong: the flag is no longer raised, or the outcome becomes impossible."""
        self.tried += 1
        altered = self._altered(changes)
        values = Values(self.model, altered, self.ranks)
        if self.flag is not None and self.pair is not None and not self._reported(values):
            self._ended = tuple(map(id, changes)), values
            return True
        return self.flag is None and self.impossible(altered) is not None

    def _reported(self, values: Values) -> bool:
        assert self.flag is not None and self.pair is not None
        return bool({self.pair, self.pair[::-1]} & set(values.reported(self.flag)))

    def impossible(self, execution: Execution) -> tuple[Values, Check] | None:
        """An axiom that the execution breaks in every order; None if some order breaks none, or there are too many."""
        for number, extended in enumerate(fence_orders(execution)):
            if number == ORDERS:
                return None
            broken = self._broken(extended, DEPTH)
            if broken is None:
                return None
        return broken

    def _broken(self, execution: Execution, depth: int) -> tuple[Values, Check] | None:
        values = Values(self.model, execution, self.ranks)
        check = values.violated()
        if check is None:
            return None
        name = next((name for other, name in self._choices if other is check), None)
        if name is None or depth == 0:
            return values, check
        order = values.relation(name)
        assert order is not None
        pairs = [(a, b) for a, b in pairs_of(values.rows(check.body)) if a != b]
        if not pairs or any(order[b] >> a & 1 for a, b in pairs):
            return values, check
        a, b = pairs[0]
        broken: tuple[Values, Check] | None = values, check
        for pair in ((a, b), (b, a)):
            extended = with_order(execution, [pair], name)
            if pair in pairs and (name != "co" or self._keeps_the_end(extended)):
                broken = self._broken(extended, depth - 1)
                if broken is None:
                    return None
        return broken

    def _keeps_the_end(self, execution: Execution) -> bool:
        """True if memory may end as the question has it: with values of writes that no other write follows."""
        if self.end is None or self.flag is not None:
            return True
        test = execution.frame.lowered.test
        finals = Finals(execution.frame.lowered, tuple(terms_of(test.condition)))
        last: dict[Cell, list[int]] = {}
        co = execution.relation("co")
        for number in bits(execution.set("W")):
            cell, value = execution.events[number].point.cell, execution.values[number]
            asked = cell is not None and any(extent.instance == cell.instance for extent in finals.extents)
            if asked and cell is not None and value is not None and not co[number]:
                last.setdefault(cell, []).append(value)
        if prod(map(len, last.values())) > ORDERS:
            return True
        registers = [dict[str, int]() for _ in test.threads]
        names = {thread.name: number for number, thread in enumerate(test.threads)}
        for (thread, name), value in self.end.items():
            if thread in names:
                registers[names[thread]][name] = value
        wanted = test.quantifier is not Quantifier.FORALL
        return any(
            finals.holds(test.condition, registers, dict(zip(last, values, strict=True))) is wanted
            for values in product(*last.values())
        )

    def _shrunk(self, changes: list[Change]) -> list[Change]:
        """A minimal part that is enough. The dearest changes are left out first, halves before single ones.

        The order stays: where several things are added at one place, it says which comes first.
        """
        kept = list(changes)
        size = max(1, len(kept) // 2)
        while True:
            at = 0
            while at < len(kept):
                rest = kept[:at] + kept[at + size :]
                if self.ends(rest):
                    kept = rest
                else:
                    at += size
            if size == 1:
                return kept
            size //= 2

    def _diagnosed(self, changes: tuple[Change, ...], altered: Execution, about: int | None = None) -> Diagnosis:
        """The diagnosis for changes that are enough, with what forbids the outcome or orders the pair then.

        `about`: the accesses on which a cycle should close.
        """
        if self.flag is not None and self.pair is not None:
            known = self._ended is not None and self._ended[0] == tuple(map(id, changes))
            unfolding = Unfolding(self._ended[1] if known and self._ended else Values(self.model, altered, self.ranks))
            for a, b in (self.pair, self.pair[::-1]):
                chain = unfolding.excluded(self.flag, a, b)
                if chain:
                    backward = all(link.name.endswith("^-1") for link in chain)
                    return Diagnosis(changes, turned(chain) if backward else chain, self.flag.name)
            return Diagnosis(changes, (), self.flag.name)
        broken = self.impossible(altered)
        assert broken is not None
        values, check = broken
        unfolding, sources = Unfolding(values), self.sources if about is None else about
        chain = unfolding.broken(check, sources)
        if not closes_on(chain, sources):
            others = (axiom for axiom in self.model.axioms if not axiom.negated and not values.holds(axiom))
            chains = ((axiom, unfolding.broken(axiom, sources)) for axiom in others)
            first = check, chain
            check, chain = next((pair for pair in chains if closes_on(pair[1], sources)), first)
        return Diagnosis(changes, chain, check.name)


def _last_tier(diagnosis: Diagnosis) -> int:
    return max((change.tier for change in diagnosis.changes), default=0)


def fence_orders(execution: Execution) -> Iterator[Execution]:
    """The execution in each order of its fence.sc, where it leaves that open."""
    strong = [n for n, e in enumerate(execution.events) if isinstance(e.label, Fence) and e.label.sem is Sem.SC]
    include = execution.relation("sr")
    pairs = [(a, b) for a in strong for b in strong if a < b and include[a] >> b & 1]
    waiting: list[tuple[Execution, list[tuple[int, int]]]] = [(execution, [])]
    while waiting:
        before, chosen = waiting.pop()
        ordered = with_order(before, chosen, "sync_fence") if chosen else before
        order = ordered.relation("sync_fence")
        left = next(((a, b) for a, b in pairs if not (order[a] >> b & 1 or order[b] >> a & 1)), None)
        if left is None:
            yield ordered
        else:
            waiting += [(ordered, [left[::-1]]), (ordered, [left])]


def _subtracts(check: Check, name: str) -> bool:
    """True if the axiom has the form `empty X \\ order`."""
    body = check.body
    if check.kind != "empty" or check.negated or not isinstance(body, Binary) or body.op != "\\":
        return False
    return any(used.name == name and used.ref is None for used in names_in(body.right))
