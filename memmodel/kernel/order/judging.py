"""One run under one model: its findings, and the conditions that do not hold.

In: LaunchTrace, Model. Out: `Judgement`. Settled here: which races have a name of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import process_time

from memmodel.base.labels import Access, Family, InitialWrite, Label, Mark, Mbarrier, Role, Side, Signal
from memmodel.cat.flags import kind_of
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.order.conditions import counted, said, strong_sizes
from memmodel.kernel.order.conflicts import Conflicts
from memmodel.kernel.order.equal import BUT_NAN, CTA, LAUNCH, WARP, Stores
from memmodel.kernel.order.fences import BASE, CAUSALITY, forced, reordered
from memmodel.kernel.order.graph import STEP, Graph, ends_of
from memmodel.kernel.order.missing import Missing, Ways
from memmodel.kernel.order.polled_words import CausalOrder, last_writes
from memmodel.kernel.order.roles import Roles
from memmodel.kernel.order.uses import bounded
from memmodel.kernel.order.verdict import EQUAL_STORES, SAME_STORE, FindingPlace, KernelFinding, KernelReading
from memmodel.kernel.trace.accesses import WeakAccess, done_by
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.vocabulary import Proxy
from memmodel.referee.flags import Flags

Told = TraceEvent | WeakAccess
SMALL = 2000
"""Events of a run that is judged under all readings."""

LOOKED_AT = 12
"""Alike findings of which the one with the shortest way between its accesses is shown."""
STAGES = 16
"""Places that an instruction may come back to, for them to be called stages."""
ORDER = "happens"
"""The definition of a model that says what has happened before what."""


@dataclass(slots=True)
class Judgement:
    """What one model says of one run. `late`: the warps, one of which has to be late for what this run excludes by
    chance.
    """

    graph: Graph
    flags: Flags | None = None
    findings: list[KernelFinding] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    late: list[tuple[int, int]] = field(default_factory=list)


def problems(run: LaunchTrace) -> list[KernelFinding]:
    """What went wrong while the launch was run, whatever a model says."""
    found = []
    for problem in run.problems:
        at = problem.instruction
        sides = () if at is None else (FindingPlace(at, at.opcode, -1, -1, -1),)
        found.append(KernelFinding(problem.rule, kind_of(problem.rule).value, problem.message, sides))
    return found


class RunJudge:
    """A run made ready to be judged by models: roles, conflicts, graph.

    `chosen`: the instructions on whose results the run depends.
    """

    def __init__(
        self, entry: PtxFunction, run: LaunchTrace, chosen: frozenset[int] = frozenset(), *, symmetric: bool = True
    ) -> None:
        started = process_time()
        self.entry, self.run, self._chosen = entry, run, chosen
        self.body = entry.body or ()
        self.roles = Roles(run, chosen, symmetric=symmetric)
        bounded(sum(len(run.threads[one].events) for one in self.roles.kept(())))
        self.graph = Graph(run, self.roles, Conflicts(run, self.roles))
        bounded(len(self.graph.points))
        self.execution = self.graph.execution(fences=True)
        self.lanes = len(run.threads) // max(1, len({one.cta for one in run.threads}))
        self._leasts: dict[frozenset[int], Execution] = {}
        self._asks = True
        """May a run of its own show what stores leave? Not for a reading: races of stores that only it has are called
        what they are without it.
        """
        self.seconds = process_time() - started

    def judged(
        self, model: Model, chosen: frozenset[int] = frozenset(), like: Flags | None = None, *, ways: bool = True
    ) -> Judgement:
        """Findings and open conditions under a model. `like`: flags of another model. `ways`: say what is missing.

        `chosen`: numbers of the instructions on whose results the run depends. What other strong reads read from is not
        the same in every execution, so that no order comes of it.
        """
        found = Judgement(self.graph)
        for problem in problems(self.run):
            add(found.findings, problem)
        found.open += [
            said(test, why)
            for test, why in complaints(self.entry, self.run.tests.keys() - self.run.proved, self.run.awaits)
        ]
        found.open += [*strong_sizes(self.run, self.body), *self.run.unchecked]
        least = self._least(chosen)
        found.flags = flags = forced(model, least, like)
        raised = self.raised(flags)
        if raised and (least is not self.execution or any(self.execution.relation("sync_fence"))):
            found.flags = flags = Flags(model, self.execution, flags)
            weaker, raised = raised, self.raised(flags)
            sure = set(raised)
            by_chance = dict.fromkeys(one for one in weaker if one not in sure)
            found.open += self._by_chance(by_chance)
            sides = (self.run.threads[self.graph.behind[n].thread] for _, *ends in by_chance for n in ends)
            found.late = list(dict.fromkeys((one.cta, one.warp) for one in sides))
            for other in reordered(model, flags, self.graph, [(one, two) for _, one, two in by_chance]):
                self._report(found, other, [one for one in self.raised(other) if one in by_chance], ways=ways)
        self._report(found, flags, raised, ways=ways)
        before = flags.relation(ORDER)
        if before is None:
            found.open.append(f"the model {model.name} does not define {ORDER}: counts and waits were not checked")
        else:
            found.open += counted(self.graph, self.run, self.body, before)
        found.open = list(dict.fromkeys(found.open))
        return found

    def shown(self, flags: Flags) -> list[KernelFinding]:
        """What is wrong in one execution, which the run is: no other one is meant."""
        found = Judgement(self.graph)
        for problem in problems(self.run):
            add(found.findings, problem)
        self._report(found, flags, self.raised(flags), ways=True)
        return found.findings

    def _report(self, found: Judgement, flags: Flags, raised: list[tuple[str, int, int]], *, ways: bool) -> None:
        """Findings for what flags report, one for those that are alike."""
        self._asks = ways
        leads = Ways(self.graph, flags, self.body)
        known: dict[object, KernelFinding] = {}
        rules = {check.name: check.doc for check in flags.model.flags}
        for rule, first, other in raised:
            one = other if isinstance(self.graph.points[first].label, InitialWrite) else first
            if self.run.loose and any(self._loose(n) for n in (one, other)):
                lines = sorted({self.body[self.graph.behind[n].at].line for n in (one, other)})
                at = " and ".join(map(str, lines))
                found.open.append(f"lines {at}: {rule}, if these bytes are touched, which is not specified")
                continue
            name, message, where = self._named(rule, one, other)
            key = name, message, frozenset(self.graph.behind[n].at for n in (one, other))
            old = known.get(key)
            if old is not None and (old.count >= LOOKED_AT or not old.steps):
                old.count += 1
                continue
            made = self._finding(name, where, leads.missing(rule, one, other) if ways else None, one, other)
            made.message = message
            if one == other:
                made.message = rules.get(rule, "").rstrip(".")
            if old is not None and len(made.steps) >= len(old.steps):
                old.count += 1
                continue
            made.count = 1 if old is None else old.count + 1
            known[key] = made
        found.findings += known.values()

    def _loose(self, number: int) -> bool:
        """Is an event about bytes that its instruction may not touch?"""
        use = self.graph.behind[number].use
        return use is not None and (use.at, use.part) in self.run.loose

    def last_writes(self, model: Model) -> dict[tuple[str, int], PtxInstruction]:
        """Strong writes that may be the last at their place or not, as the schedule has it."""
        causality = forced(model, self._least(self._chosen)).relation(CAUSALITY)
        return last_writes(self.graph, self.run, self.body, causality)

    def order(self, model: Model) -> CausalOrder:
        """Which access precedes another in causality in every execution, as far as these are judged."""
        flags = forced(model, self._least(self._chosen))
        rows, base = flags.relation(CAUSALITY), flags.relation(BASE)

        def before(one: Told, other: Told) -> bool:
            one, other = self._standing(one, other)
            first, second = self.graph.of(one), self.graph.of(other)
            return rows is not None and first is not None and second is not None and bool(rows[first] >> second & 1)

        def ahead(one: Told, other: Told) -> bool:
            one, other = self._standing(one, other)
            first = self.graph.of(one)
            if base is None or first is None or not isinstance(other, TraceEvent) or not _generic(one.label):
                return False
            own = self.run.threads[other.thread].events[: other.order]
            if one.thread == other.thread:
                return one in own if isinstance(one, TraceEvent) else one.epoch <= len(own)
            numbers = (self.graph.number.get(id(each)) for each in own)
            return any(number is not None and base[first] >> number & 1 for number in numbers)

        return CausalOrder(before, ahead)

    def _standing(self, one: Told, other: Told) -> tuple[Told, Told]:
        """Two accesses, or if the thread of one is left out those of two threads that stand for theirs."""
        if self.graph.of(one) is not None and self.graph.of(other) is not None:
            return one, other
        threads = self.run.threads
        first, second = self.roles.pair(threads[one.thread], threads[other.thread])
        return done_by(one, threads[first]), done_by(other, threads[second])

    def _least(self, chosen: frozenset[int]) -> Execution:
        """The run without what strong reads happened to read from; the reads of .red hand on what others observe."""
        rows, points = self.execution.relation("rf"), self.graph.points
        kept = 0
        for number, point in enumerate(points):
            label, sure = point.label, self.graph.behind[number].at in chosen
            if isinstance(label, Access):
                sure |= label.rmw and label.family in (Family.RED, Family.ST_ASYNC)
                sure |= label.role is Role.DESCRIPTOR  # it reads what was there before the launch, see `given_maps`
            kept |= sure << number
        if not any(row & ~kept for row in rows):
            return self.execution
        if chosen not in self._leasts:
            read = [row & kept for row in rows]
            relations = {**self.execution.chosen_relations, "rf": read}
            self._leasts[chosen] = replace(self.execution, chosen_relations=relations)
        return self._leasts[chosen]

    def _by_chance(self, weaker: Iterable[tuple[str, int, int]]) -> list[str]:
        """What only the order of fence.sc operations in this run excludes, or what strong reads read in it."""
        found = []
        for rule, one, other in weaker:
            lines = sorted({self.body[self.graph.behind[n].at].line for n in (one, other)})
            where = " and ".join(str(line) for line in lines)
            found.append(f"lines {where}: {rule} but for what strong reads read and how fence.sc were ordered here")
        return found

    def raised(self, flags: Flags) -> list[tuple[str, int, int]]:
        """What flags report. An access of a pair stands for it only against the other one of the pair."""
        found = []
        graph = self.graph
        for rule, pairs in flags.raised().items():
            for one, other in pairs:
                sides = graph.behind[one], graph.behind[other]
                if any(side.pair is not None for side in sides) and one != other:
                    accesses = all(isinstance(graph.points[n].label, Access) for n in (one, other))
                    if accesses and ends_of(one, other) not in graph.pair_of:
                        continue
                found.append((rule, one, other))
        return found

    def _named(self, rule: str, one: int, other: int) -> tuple[str, str, str]:
        """The name of a finding, what is said of it, and the byte that it is about."""
        index = self.graph.pair_of.get(ends_of(one, other))
        if index is None:
            cell = self.graph.points[one].cell
            return rule, "", "" if cell is None else f"byte {cell.first} of {cell.instance.name.removesuffix(' *')}"
        pair, message = self.graph.pairs[index], ""
        if rule in ("data-race", "undefined-unfinished-copy") and _both_write(self.graph, one, other):
            rule, message = self._store_race(index, rule)
        return rule, message, f"byte {pair.first} of {pair.block.instance.name}"

    def _finding(self, rule: str, where: str, missing: Missing | None, one: int, other: int) -> KernelFinding:
        ends = (one, other) if missing is None else (missing.first, missing.second)
        kind = kind_of("data-race" if rule in (EQUAL_STORES, SAME_STORE) else rule).value
        made = KernelFinding(rule, kind, "", tuple(self.place(n) for n in dict.fromkeys(ends)), where, events=ends)
        if missing is not None:
            made.reason, made.missing = missing.reason.value, missing.text
            made.way, made.steps = tuple(self.place(n) for n in missing.way), missing.way
        return made

    def _store_race(self, index: int, rule: str) -> tuple[str, str]:
        """The name of a race of two stores, if it has one of its own, and what is said of it."""
        pair = self.graph.pairs[index]
        threads = self.run.threads
        one, other = threads[pair.one.thread], threads[pair.other.thread]
        together = (one.cta, one.warp, pair.one.at) == (other.cta, other.warp, pair.other.at)
        labels = pair.one.label, pair.other.label
        if any(not isinstance(one, Access) or one.asynchronous or one.proxy is not Proxy.GENERIC for one in labels):
            # The lanes of a warp that issue one copy from one place, as the epilogue of CUTLASS does.
            return EQUAL_STORES if together and pair.stored == "equal" else rule, ""
        if pair.stored != "unknown":
            return EQUAL_STORES if pair.stored == "equal" else rule, ""
        level = CTA if one.cta == other.cta else LAUNCH
        level = WARP if level == CTA and one.warp == other.warp else level
        if not self._asks and not self.stores.known:
            return SAME_STORE if together else rule, ""
        classes = frozenset((self.roles.who[use.thread], use.epoch) for use in (pair.one, pair.other))
        if all(self.stores.equal(at, level, classes) for at in pair.unknown):
            return EQUAL_STORES, ""
        doubtful = self._asks and self.stores.doubtful
        ordered = doubtful and all(self.stores.equal(at, level, classes, ordered=True) for at in pair.unknown)
        return SAME_STORE if together else rule, BUT_NAN if ordered else ""

    @cached_property
    def stores(self) -> Stores:
        """What the stores leave whose values are not known."""
        unknown = {at for one in self.graph.pairs for both in one.unknown for at in both}
        return Stores(self.run, self._chosen, frozenset(unknown), self.roles.who)

    def place(self, number: int) -> FindingPlace:
        """Whose and which an event of the graph is."""
        behind = self.graph.behind[number]
        thread = self.run.threads[behind.thread]
        point = self.graph.points[number]
        role = self.roles.who[behind.thread][2]
        turn = self.turn(number)
        what = describe(point.label)
        who = thread.cta, thread.warp, thread.lane, thread.number, role, turn
        return FindingPlace(self.body[behind.at], what, *who, self._stage(number))

    def turn(self, number: int) -> int:
        """How often the thread had executed an instruction before an event that it made, as far as traces tell."""
        behind = self.graph.behind[number]
        use = behind.use
        events = self.run.threads[behind.thread].events
        if use is not None and use.event is None:
            before = [one.order or 0 for one in events if one.at == behind.at]
            if before:
                return sum(order < use.epoch for order in before)
            return self._rounds(behind.thread, behind.at, use.epoch)
        order, event = self.graph.points[number].order, self.graph.events.get(number)
        last = len(events) if order is None else order // STEP - 1
        if event is not None and event.issue is not None:
            last = event.issue.order or 0
        return sum(1 for one in events[: max(0, last)] if one.at == behind.at)

    def _stage(self, number: int) -> int:
        """Which of the places of a ring an access or an operation on an object is about."""
        behind, use = self.graph.behind[number], self.graph.behind[number].use
        if use is not None and use.event is None:
            first = use.parts[0].first if use.parts else use.first
            places = self._visited.get((behind.thread, behind.at), (set(), Counter()))[1]
        else:
            event = self.graph.events.get(number)
            first = -1 if event is None else event.first
            events = self.run.threads[behind.thread].events
            places = Counter(one.first for one in events if one.at == behind.at and one.block is not None)
        comes_back = 1 < len(places) <= STAGES and places.total() > len(places)
        return sorted(places).index(first) if comes_back and first in places else -1

    @cached_property
    def _visited(self) -> dict[tuple[int, int], tuple[set[int], Counter[int]]]:
        """Of the weak accesses that a thread makes with an instruction, the epochs and the first bytes."""
        found: dict[tuple[int, int], tuple[set[int], Counter[int]]] = {}
        for one in self.run.weak():
            known = found.get((one.thread, one.at))
            if known is None:
                known = found[one.thread, one.at] = set(), Counter()
            epochs, firsts = known
            epochs.add(one.epoch)
            firsts[one.first] += 1
        return found

    def _rounds(self, thread: int, at: int, epoch: int) -> int:
        """Of a weak access: the epochs of its thread before, in which the instruction was executed."""
        return sum(one < epoch for one in self._visited.get((thread, at), ((), ()))[0])


def _generic(label: Label) -> bool:
    return isinstance(label, Access) and label.proxy is Proxy.GENERIC and not label.asynchronous


def _both_write(graph: Graph, one: int, other: int) -> bool:
    labels = graph.points[one].label, graph.points[other].label
    return all(isinstance(label, Access) and label.side is Side.WRITE for label in labels)


def add(findings: list[KernelFinding], finding: KernelFinding) -> bool:
    """A finding, counted with one of the same rule and instructions. Is it new?"""
    at = sorted(side.instruction.number for side in finding.sides)
    for known in findings:
        if known.rule == finding.rule and sorted(side.instruction.number for side in known.sides) == at:
            known.count += 1
            return False
    findings.append(finding)
    return True


class OtherReadings:
    """What other readings say of the runs that are judged. `models`: by the name of the reading and its answer.

    Of the first run, and of small ones, all readings are asked; of the others those that the word needs: under which
    most is gone, until each finding is gone under one.
    """

    def __init__(self, models: Sequence[tuple[str, str, Model]]) -> None:
        self.models = models
        self._mine: dict[object, KernelFinding] = {}
        self._theirs: list[dict[object, KernelFinding]] = [{} for _ in models]
        self._known: list[set[object]] = [set() for _ in models]
        """The findings of the default in the runs about which each reading was asked."""
        self._asked = [True] * len(models)
        """The readings that were asked about all runs."""

    def look(self, made: RunJudge, chosen: frozenset[int], judged: Judgement) -> None:
        """Judge a run under the readings."""
        self._mine = {_kept(one): one for one in judged.findings} | self._mine
        for number, (_, _, model) in enumerate(self.models):
            if self._asked[number]:
                self._known[number] |= {_kept(one) for one in judged.findings}
                found = made.judged(model, chosen, judged.flags, ways=False).findings
                self._theirs[number] |= {at: one for one in found if (at := _kept(one)) not in self._theirs[number]}
        if len(made.execution.events) > SMALL:
            self._needed()

    def _needed(self) -> None:
        left = {at for at, one in self._mine.items() if not one.harmless}
        gone = [
            left - theirs.keys() if asked else set() for theirs, asked in zip(self._theirs, self._asked, strict=True)
        ]
        self._asked = [False] * len(gone)
        while left and any(left & one for one in gone):
            most = max(range(len(gone)), key=lambda number: len(left & gone[number]))
            self._asked[most] = True
            left -= gone[most]

    def told(self, findings: list[KernelFinding]) -> list[KernelReading]:
        """What is gone, of these findings, and what a reading has that the default has not."""
        found = []
        for number, ((name, answer, _), theirs, asked) in enumerate(
            zip(self.models, self._theirs, self._asked, strict=True)
        ):
            gone = [one for one in findings if (at := _kept(one)) in self._known[number] and at not in theirs]
            new = [one for at, one in theirs.items() if at not in self._mine]
            if gone or new:
                found.append(KernelReading(name, answer, gone, new, everywhere=asked))
        return found


def _kept(finding: KernelFinding) -> object:
    """What tells findings of different readings apart."""
    return finding.rule, tuple(sorted(side.instruction.number for side in finding.sides))


def describe(label: Label) -> str:
    """An event in words."""
    if isinstance(label, Access):
        what = "reads" if label.side is Side.READ else "writes"
        how = [] if label.proxy.value == "generic" else [f"through the {label.proxy.value} proxy"]
        return " ".join([what, *how, *(["asynchronously"] if label.asynchronous else [])])
    if isinstance(label, Mbarrier | Signal):
        return label.action.value
    if isinstance(label, Mark):
        return label.what.value
    return type(label).__name__.lower()


__all__ = ["Judgement", "PtxInstruction", "RunJudge", "add", "describe"]
