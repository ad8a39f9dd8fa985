"""One run under one model: its findings, and the conditions that do not hold.

In: LaunchTrace, Model. Out: `Judgement`. Settled here: the races that have a name of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import process_time

from memmodel.base.labels import (
    Access,
    Family,
    InitialWrite,
    Role,
    Side,
    side_of,
)
from memmodel.base.relations import ONWARD
from memmodel.base.rows import Rows, bits
from memmodel.cat.flags import kind_of
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import Execution
from memmodel.kernel.conflicts.conflicts import Conflicts
from memmodel.kernel.conflicts.roles import Roles
from memmodel.kernel.conflicts.uses import bounded, is_generic
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.order.conditions import Counts, sentence, strong_sizes
from memmodel.kernel.order.equal_stores import BUT_NAN, CTA, LAUNCH, WARP, Stores
from memmodel.kernel.order.fences import BASE, CAUSALITY, forced, reordered, with_fences
from memmodel.kernel.order.flags import Flags
from memmodel.kernel.order.graph import Graph, ends_of
from memmodel.kernel.order.last_writes import CausalOrder, last_writes
from memmodel.kernel.order.missing_order import Missing, Ways
from memmodel.kernel.order.open_reads import meeting, notes_on
from memmodel.kernel.order.places import Places
from memmodel.kernel.order.verdict import EQUAL_STORES, HARMLESS, SAME_STORE, FindingKey, FindingPlace, KernelFinding
from memmodel.kernel.trace.accesses import WeakAccess, done_by
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import ChoiceKey, LaunchTrace
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.source import in_lines

AnyAccess = TraceEvent | WeakAccess
RaisedPair = tuple[str, int, int]
"""A flag, and two events that it reports."""
MOST_COMPARED = 12
"""How many similar findings are compared: the one with the shortest way between its accesses is shown."""
ORDER = "happens"
"""The definition of a model that orders what has happened."""


@dataclass(slots=True)
class Judgement:
    """What one model says of one run. `raised`: the pairs of events that its flags report, as far as they count;
    `late`: warps; a race that this run excludes by chance needs one of them to be late.
    """

    graph: Graph
    flags: Flags | None = None
    raised: list[RaisedPair] = field(default_factory=list)
    findings: list[KernelFinding] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    late: list[tuple[int, int]] = field(default_factory=list)


def problems(run: LaunchTrace) -> list[KernelFinding]:
    """What went wrong while the launch was run, whatever a model says."""
    findings = []
    for problem in run.problems:
        at = problem.instruction
        sides = () if at is None else (FindingPlace(at, at.opcode, -1, -1, -1),)
        findings.append(KernelFinding(problem.rule, kind_of(problem.rule).value, problem.message, sides))
    return findings


class _StoresNotCompared(Exception):
    """A limit, for which it is not known whether two stores leave the same bytes."""


class RunJudge:
    """A run made ready to be judged by models: roles, conflicts, graph.

    `chosen`: the instructions on whose results the run depends. `by_instruction`: as in `Conflicts`.
    """

    def __init__(
        self,
        entry: PtxFunction,
        run: LaunchTrace,
        chosen: frozenset[int] = frozenset(),
        *,
        symmetric: bool = True,
        by_instruction: bool = False,
    ) -> None:
        started = process_time()
        self.entry, self.run, self._chosen = entry, run, chosen
        self.body = entry.body or ()
        self.roles = Roles(run, chosen, symmetric=symmetric)
        bounded(sum(len(run.threads[thread].events) for thread in self.roles.kept(())))
        self.graph = Graph(run, self.roles, Conflicts(run, self.roles, by_instruction=by_instruction))
        bounded(len(self.graph.points))
        self.execution = self.graph.execution()

        self._certain_executions: dict[frozenset[int], Execution] = {}
        self._places = Places(run, self.roles, self.graph, self.body)
        self._base: tuple[Model, Rows | None] | None = None
        """The model that base causality was asked of last, with the answer."""
        self._gone = 0
        """The events that this run has not, of those in the graph."""
        self._may_rerun = True
        """True if another run may be carried out to compare the values of stores. Not for a reading: the races of
        stores that only a reading has keep their plain name.
        """
        self.seconds = process_time() - started

    def as_execution(self, execution: Execution, gone: int) -> RunJudge:
        """The run as another execution of the events of its graph: with other labels, or without those in `gone`."""
        _ = self.stores  # which both share
        other = copy(self)
        other.execution, other._gone = execution, gone
        other._certain_executions, other._base = {}, None
        return other

    def judgement(
        self,
        model: Model,
        chosen: frozenset[int] = frozenset(),
        like: Flags | None = None,
        *,
        explain: bool = True,
        may_rerun: bool = True,
    ) -> Judgement:
        """Findings and open conditions under a model. `like`: flags of another model. `explain`: say what is missing.
        `may_rerun`: another run may be carried out to compare the values of stores.

        `chosen`: the instructions on whose results the run depends. The sources of other strong reads differ between
        executions, so no order follows from them.
        """
        self._may_rerun = may_rerun
        judgement = Judgement(self.graph)
        for problem in problems(self.run):
            add(judgement.findings, problem)
        judgement.open += [
            sentence(test, why)
            for test, why in complaints(self.entry, self.run.tests.keys() - self.run.proved, self.run.awaits)
        ]
        judgement.open += [*strong_sizes(self.run, self.body), *self.run.unchecked]
        certain = self._certain_execution(chosen)
        judgement.flags = flags = forced(model, certain, like)
        raised = self.raised(flags)
        if raised and (certain is not self.execution or any(self.execution.relation("sync_fence"))):
            judgement.flags = flags = Flags(model, self.execution, flags)
            weaker, raised = raised, self.raised(flags)
            sure = set(raised)
            by_chance = dict.fromkeys(pair for pair in weaker if pair not in sure)
            judgement.open += self._by_chance(by_chance)
            sides = (self.run.threads[self.graph.origins[n].thread] for _, *ends in by_chance for n in ends)
            judgement.late = list(dict.fromkeys((thread.cta, thread.warp) for thread in sides))
            for other in reordered(model, flags, self.graph, [(first, second) for _, first, second in by_chance]):
                also = [pair for pair in self.raised(other) if pair in by_chance]
                self._report(judgement, also, model, other if explain else None)
        judgement.raised = raised
        self._report(judgement, raised, model, flags if explain else None)
        judgement.open += [
            f"the model {model.name} does not define {name}: counts and waits were not checked"
            for name in (ORDER, BASE)
            if flags.relation(name) is None
        ]
        judgement.open += self._counted(flags, self._gone)
        judgement.open = list(dict.fromkeys(judgement.open))
        return judgement

    def findings_shown(self, flags: Flags) -> list[KernelFinding]:
        """What is wrong in the one execution that the run is."""
        self._may_rerun = True
        judgement = Judgement(self.graph)
        for problem in problems(self.run):
            add(judgement.findings, problem)
        self._report(judgement, self.raised(flags), flags.model, flags)
        return judgement.findings

    def findings_of(self, model: Model, raised: Iterable[RaisedPair]) -> list[KernelFinding]:
        """The findings of a model whose flags report these pairs of events in this run, in which nothing that orders is
        a matter of chance. What is missing is not said."""
        self._may_rerun = False
        judgement = Judgement(self.graph)
        for problem in problems(self.run):
            add(judgement.findings, problem)
        places = {check.name: place for place, check in enumerate(model.flags)}
        self._report(judgement, sorted(raised, key=lambda pair: (places[pair[0]], *pair[1:])), model)
        return judgement.findings

    def first_shown(
        self,
        flags: Flags,
        raised: AbstractSet[RaisedPair],
        known: AbstractSet[FindingKey],
        names: Iterable[str] | None = None,
    ) -> list[KernelFinding]:
        """What a flag that has something new reports in the one execution that the run is, or in another one of its
        events; of several flags one that is quickly evaluated. `raised`: pairs that are not new; `known`: findings that
        are not. `names`: of the flags that are asked, if not all are. What is missing is not said.
        """
        self._may_rerun = True
        for rule, pairs in flags.each_raised(names, quick_first=True):
            judgement = Judgement(self.graph)
            new = self.counting({rule: [pair for pair in pairs if (rule, *pair) not in raised]})
            self._report(judgement, new, flags.model)
            findings = [finding for finding in judgement.findings if not finding.harmless and finding.key not in known]
            if findings:
                return findings
        return []

    def violated_counts(self, flags: Flags, gone: int) -> frozenset[str]:
        """The conditions of counts and waits that do not hold in the one execution that the run is without some of its
        events, as sentences."""
        return frozenset(self._counted(flags, gone))

    def _counted(self, flags: Flags, gone: int) -> list[str]:
        before, base = flags.relation(ORDER), flags.relation(BASE)
        if before is None or base is None:
            return []
        return self._counts.complaints(before, base, gone)

    @cached_property
    def _counts(self) -> Counts:
        return Counts(self.graph, self.run, self.body)

    def late_tests(self, flags: Flags) -> list[tuple[int, int]]:
        """Tests of mbarrier objects to which a thread may come late: the thread and the instruction, by numbers."""
        before, base = flags.relation(ORDER), flags.relation(BASE)
        if before is None or base is None:
            return []
        return self._counts.late_tests(before, base)

    def _report(self, judgement: Judgement, raised: list[RaisedPair], model: Model, flags: Flags | None = None) -> None:
        """Findings for what the flags of a model report, one for those that are alike. `flags`: say what is missing."""
        leads = None if flags is None else Ways(self.graph, flags, self.body)
        known: dict[object, KernelFinding] = {}
        rules = {check.name: check.doc for check in model.flags}
        for rule, first, right in raised:
            left = right if isinstance(self.graph.points[first].label, InitialWrite) else first
            if self.run.unspecified_parts and any(self._is_unspecified(n) for n in (left, right)):
                at = self._lines(left, right)
                judgement.open.append(f"{at}: {rule}, if these bytes are touched, which is not specified")
                continue
            try:
                name, message, where = self._named(rule, left, right)
            except _StoresNotCompared as limit:
                at = self._lines(left, right)
                judgement.open.append(f"{at}: {rule}, unless both leave the same bytes; not compared: {limit}")
                continue
            key = name, message, frozenset(self.graph.origins[n].at for n in (left, right))
            old = known.get(key)
            if old is not None and (old.count >= MOST_COMPARED or not old.steps):
                old.count += 1
                continue
            missing = None if leads is None else leads.missing(rule, left, right)
            finding = self._finding(name, where, missing, left, right)
            finding.message = message
            if left == right:
                finding.message = rules.get(rule, "").rstrip(".")
            if old is not None and len(finding.steps) >= len(old.steps):
                old.count += 1
                continue
            finding.count = 1 if old is None else old.count + 1
            known[key] = finding
        judgement.findings += known.values()

    def _is_unspecified(self, number: int) -> bool:
        """True if an event is about bytes that its instruction perhaps does not touch."""
        use = self.graph.origins[number].use
        return use is not None and (use.at, use.part) in self.run.unspecified_parts

    def last_writes(self, model: Model) -> dict[ChoiceKey, PtxInstruction]:
        """Strong writes that may be the last at their place or not, as the schedule has it."""
        causality = forced(model, self._certain_execution(self._chosen)).relation(CAUSALITY)
        return last_writes(self.graph, self.run, self.body, causality)

    def order(self, model: Model, *, fences: bool = True) -> CausalOrder:
        """Which access precedes another in causality in every execution, as far as these are judged. `fences`: where
        what reads return demands an order of fence.sc, this counts.
        """
        certain = self._certain_execution(self._chosen)
        flags = forced(model, certain) if fences else Flags(model, with_fences(certain, [0] * len(certain.events)))
        rows, base = flags.relation(CAUSALITY), flags.relation(BASE)

        def before(access: AnyAccess, later: AnyAccess) -> bool:
            access, later = self._in_graph(access, later)
            first, second = self.graph.of(access), self.graph.of(later)
            return rows is not None and first is not None and second is not None and bool(rows[first] >> second & 1)

        def ahead(access: AnyAccess, later: AnyAccess) -> bool:
            access, later = self._in_graph(access, later)
            first = self.graph.of(access)
            if base is None or first is None or not isinstance(later, TraceEvent) or not is_generic(access.label):
                return False
            own = self.run.threads[later.thread].events[: later.order]
            if access.thread == later.thread:
                return access in own if isinstance(access, TraceEvent) else access.epoch <= len(own)
            numbers = (self.graph.number.get(id(each)) for each in own)
            return any(number is not None and base[first] >> number & 1 for number in numbers)

        return CausalOrder(before, ahead)

    def leads(self, model: Model, thread: int, since: int, other: int, until: int) -> bool:
        """True if in every execution base causality leads from an event of a thread, its number `since` or a later one,
        to one of the first `until` events of another thread.
        """
        if self._base is None or self._base[0] is not model:
            self._base = model, forced(model, self._certain_execution(self._chosen)).relation(BASE)
        base, threads = self._base[1], self.run.threads
        first, second = self.roles.pair(threads[thread], threads[other])
        numbers = self.graph.number
        targets = sum(1 << numbers[id(event)] for event in threads[second].events[:until] if id(event) in numbers)
        sources = (numbers.get(id(event)) for event in threads[first].events[since:])
        return base is not None and any(source is not None and base[source] & targets for source in sources)

    def open_reads(self, model: Model, decided: frozenset[int]) -> list[str]:
        """Notes on strong loads that no thread waits for, and of which the schedule decides what they return.

        `decided`: the instructions on whose results the run depends, and the loads that are waits.
        """
        pairs = meeting(self.run, self.roles, decided)
        return notes_on(pairs, self.body, self.order(model).before) if pairs else []

    def is_certain(self, chosen: frozenset[int]) -> bool:
        """True if nothing that orders events in this run is a matter of chance: no order of fence.sc, no source of a
        strong read that differs between executions.
        """
        return self._certain_execution(chosen) is self.execution and not any(self.execution.relation("sync_fence"))

    def _in_graph(self, access: AnyAccess, later: AnyAccess) -> tuple[AnyAccess, AnyAccess]:
        """Two accesses, or those of the representatives of their threads, if a thread is left out of the graph."""
        if self.graph.of(access) is not None and self.graph.of(later) is not None:
            return access, later
        threads = self.run.threads
        first, second = self.roles.pair(threads[access.thread], threads[later.thread])
        return done_by(access, threads[first]), done_by(later, threads[second])

    def _certain_execution(self, chosen: frozenset[int]) -> Execution:
        """The run without the sources of strong reads that differ between executions. Those of red are kept: it passes
        on what others observe. What comes after it in its own thread is not ordered by what it read.
        """
        rows, points = self.execution.relation("rf"), self.graph.points
        kept = passing = 0
        for number, point in enumerate(points):
            label, sure = point.label, self.graph.origins[number].at in chosen
            if isinstance(label, Access):
                passes = not sure and label.rmw and label.family in (Family.RED, Family.ST_ASYNC)
                passing |= passes << number
                sure |= passes
                sure |= label.role is Role.DESCRIPTOR  # it reads what was there before the launch, see `given_maps`
            kept |= sure << number
        others = (
            1 << read
            for number, row in enumerate(rows)
            for read in bits(row & passing)
            if points[read].thread != points[number].thread is not None
        )
        passing = sum(set(others))
        if not passing and not any(row & ~kept for row in rows):
            return self.execution
        if chosen not in self._certain_executions:
            relations = {**self.execution.chosen_relations, "rf": [row & kept for row in rows]}
            for name in ONWARD if passing else ():
                onward = self.execution.relation(name)
                relations[name] = [0 if passing >> number & 1 else row for number, row in enumerate(onward)]
            self._certain_executions[chosen] = replace(self.execution, chosen_relations=relations)
        return self._certain_executions[chosen]

    def _by_chance(self, weaker: Iterable[RaisedPair]) -> list[str]:
        """The races that only the order of fence.sc or the sources of strong reads of this run exclude."""
        reasons = []
        for rule, first, second in weaker:
            where = self._lines(first, second)
            reasons.append(f"{where}: {rule} but for what strong reads read and how fence.sc were ordered here")
        return reasons

    def _lines(self, *events: int) -> str:
        """The lines of some events, in words."""
        return in_lines(sorted({self.body[self.graph.origins[event].at].line for event in events}))

    def numbers_at(self, lines: Iterable[int]) -> list[int]:
        """The numbers of the instructions in these lines."""
        return [number for line in lines for number in self._by_line.get(line, ())]

    @cached_property
    def _by_line(self) -> dict[int, list[int]]:
        numbers: dict[int, list[int]] = {}
        for instruction in self.body:
            numbers.setdefault(instruction.line, []).append(instruction.number)
        return numbers

    def raised(self, flags: Flags) -> list[RaisedPair]:
        """The events that flags report. An access of a pair counts only against the other access of the pair."""
        return self.counting(flags.raised())

    def counting(self, raised: Mapping[str, Iterable[tuple[int, int]]]) -> list[RaisedPair]:
        """What counts of the pairs that flags report."""
        counting, graph = [], self.graph
        for rule, pairs in raised.items():
            for first, second in pairs:
                sides = graph.origins[first], graph.origins[second]
                if any(side.pair is not None for side in sides) and first != second:
                    accesses = all(isinstance(graph.points[n].label, Access) for n in (first, second))
                    if accesses and ends_of(first, second) not in graph.pair_of:
                        continue
                counting.append((rule, first, second))
        return counting

    def is_harmless(self, rule: str, first: int, second: int) -> bool:
        """True if a pair that a flag reports changes no verdict, as far as that is known without another run."""
        self._may_rerun = False
        try:
            return self._named(rule, first, second)[0] in HARMLESS
        except _StoresNotCompared:
            return False

    def _named(self, rule: str, first: int, second: int) -> tuple[str, str, str]:
        """The name of a finding, its message, and the byte that it is about."""
        index = self.graph.pair_of.get(ends_of(first, second))
        if index is None:
            cell = self.graph.points[first].cell
            return rule, "", "" if cell is None else f"byte {cell.first} of {cell.instance.name.removesuffix(' *')}"
        pair, message = self.graph.pairs[index], ""
        if rule in ("data-race", "undefined-unfinished-copy") and _both_write(self.graph, first, second):
            rule, message = self._store_race(index, rule)
        return rule, message, f"byte {pair.first} of {pair.block.instance.name}"

    def _finding(self, rule: str, where: str, missing: Missing | None, left: int, right: int) -> KernelFinding:
        ends = (left, right) if missing is None else (missing.first, missing.second)
        kind = kind_of("data-race" if rule in (EQUAL_STORES, SAME_STORE) else rule).value
        finding = KernelFinding(rule, kind, "", self._places.of(*ends), where, events=ends)
        if missing is not None:
            finding.reason, finding.missing = missing.reason.value, missing.text
            finding.way, finding.steps = tuple(map(self._places.place, missing.way)), missing.way
            finding.mentioned = missing.mentioned
        return finding

    def _store_race(self, index: int, rule: str) -> tuple[str, str]:
        """The name of a race of two stores, if it has one of its own, and its message."""
        pair = self.graph.pairs[index]
        threads = self.run.threads
        left, right = threads[pair.left.thread], threads[pair.right.thread]
        together = (left.cta, left.warp, pair.left.at) == (right.cta, right.warp, pair.right.at)
        if not (is_generic(pair.left.label) and is_generic(pair.right.label)):
            # The lanes of a warp that issue one copy from one place, as the epilogue of CUTLASS does.
            return EQUAL_STORES if together and pair.stored == "equal" else rule, ""
        if pair.stored != "unknown":
            return EQUAL_STORES if pair.stored == "equal" else rule, ""
        level = CTA if left.cta == right.cta else LAUNCH
        level = WARP if level == CTA and left.warp == right.warp else level
        if not self._may_rerun and not self.stores.known:
            return SAME_STORE if together else rule, ""
        classes = frozenset((self.roles.who[use.thread], use.epoch) for use in (pair.left, pair.right))
        if all(self.stores.equal(at, level, classes) for at in pair.unknown):
            return EQUAL_STORES, ""
        limit = next((limit for at in pair.unknown if (limit := self.stores.limit(at, level, classes))), None)
        if limit is not None:
            raise _StoresNotCompared(limit)
        doubtful = self._may_rerun and self.stores.doubtful
        ordered = doubtful and all(self.stores.equal(at, level, classes, ordered=True) for at in pair.unknown)
        return SAME_STORE if together else rule, BUT_NAN if ordered else ""

    @cached_property
    def stores(self) -> Stores:
        """A comparison of the stores whose values are not known."""
        unknown = {at for pair in self.graph.pairs for both in pair.unknown for at in both}
        return Stores(self.run, self._chosen, frozenset(unknown), self.roles.who)


def _both_write(graph: Graph, first: int, second: int) -> bool:
    return all(side_of(graph.points[event].label) is Side.WRITE for event in (first, second))


def add(findings: list[KernelFinding], finding: KernelFinding) -> bool:
    """Add a finding, or count it with a known one of the same rule and instructions. Returns True if it is new."""
    at = sorted(side.instruction.number for side in finding.sides)
    for known in findings:
        if known.rule == finding.rule and sorted(side.instruction.number for side in known.sides) == at:
            known.count += 1
            return False
    findings.append(finding)
    return True
