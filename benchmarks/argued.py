"""Mutants that no test can notice, each with the reason: the equivalent ones of `benchmarks.mutants`."""

from __future__ import annotations

ARGUED = {
    "memmodel/cat/evaluate/large.py: () if node in known else nodes[node].operands -> (())": "what is forgotten is "
    "evaluated again",
    'memmodel/cat/analysis.py: isinstance(expr, Unary | Binary) and (expr.op == "~" or (expr.op == "\\\\" and number '
    '== 1)) -> ((expr.op == "~" or (expr.op == "\\\\" and number == 1)))': "no other expression has operands",
    "memmodel/concrete/barriers.py: wait.thread == arrival.thread and before[-1].event < wait.event < arrival.event -> "
    "((before[-1].event < wait.event < arrival.event))": "the events of a thread follow each other",
    "memmodel/concrete/cutting.py: low < high -> (low <= high)": "a run of no bytes carries the ends of accesses, at "
    "which there is a cut already",
    "memmodel/concrete/execution.py: 0 if event.point.cell is None else event.point.cell.size -> "
    "(event.point.cell.size)": "each event of an access has a cell",
    "memmodel/concrete/execution.py: place is None or cell is None or not isinstance(event.label, Access | Mbarrier | "
    "Signal) -> ((cell is None) or (not isinstance(event.label, Access | Mbarrier | Signal)))": "only initial writes "
    "have no place",
    "memmodel/concrete/less_events.py: mask & ~gone -> (mask)": "more sets count as changed, and are evaluated again",
    "memmodel/concrete/issuing.py: data & (1 << where.size * 8) - 1 -> (data)": "what is beyond the bytes is lost",
    "memmodel/encode/barriers.py: event.thread == thread and self.graph.events[uid].thread != thread -> "
    "((event.thread == thread))": "a thread whose exit completes a generation arrives in none from there on, and waits "
    "for none",
    "memmodel/encode/communication.py: sum(map(len, before.values())) > EDGES -> "
    "(sum(map(len, before.values())) <= EDGES)": "an order is transitive at once or where a candidate shows that it is "
    "not: the answers are the same",
    "memmodel/encode/counting.py: logic.either(cases.get(number, FALSE), total) if number > min(cases) else TRUE -> "
    "(logic.either(cases.get(number, FALSE), total))": "where a number is meant, one of its cases holds",
    "memmodel/encode/object_phases.py: phase in self.phase[i] -> (phase not in self.phase[i])": "where a search begins",
    "memmodel/enumeration/answers.py: [WAITS] if findings else [] -> ([WAITS])": "a search ends later, and what it "
    "finds beyond is in no answer",
    "memmodel/enumeration/coherence.py: not later -> bool(later)": "whether a whole order is judged here or by the "
    "search: the same ones are left",
    "memmodel/enumeration/problem.py: Sem.WEAK in (first.sem, second.sem) or first.scope is None or second.scope is "
    "None -> ((Sem.WEAK in (first.sem, second.sem)) or (first.scope is None))": "what is not weak has a scope",
    "memmodel/enumeration/domains.py: total > MAX_VALUES -> (total >= MAX_VALUES)": "how many values are tried",
    "memmodel/enumeration/orders.py: down | up -> (up)": "which orders are tried first",
    "memmodel/enumeration/problem.py: frozenset() if grounded else constants(lowered) | asked_constants(lowered) -> "
    "(constants(lowered) | asked_constants(lowered))": "no values are put in where they are grounded",
    "memmodel/enumeration/problem.py: first.proxy is Proxy.GENERIC -> (first.proxy is not Proxy.GENERIC)": "more loops "
    "count as ones that may race, and a failed round of each is kept",
    "memmodel/enumeration/problem.py: a.instance == b.instance and a.first < b.end and b.first < a.end -> "
    "((a.first < b.end) and (b.first < a.end))": "more loops count as ones that may race",
    "memmodel/enumeration/problem.py: not isinstance(record, AccessRecord) or record.access.side is not side -> "
    "((not isinstance(record, AccessRecord)))": "more loops count as ones that may race",
    "memmodel/enumeration/problem.py: not (loop.spins and loop.reads) or loop.last in runner.racing_loops -> "
    "((loop.last in runner.racing_loops))": "a round is asked about races only if its loop spins",
    "memmodel/enumeration/estimate.py: not isinstance(part, SignalPart) -> bool(isinstance(part, SignalPart))": "which "
    "engine is asked",
    "memmodel/enumeration/estimate.py: reads if is_read else writes -> (reads)": "which engine is asked",
    "memmodel/enumeration/skeleton.py: len(self.fences) > MAX_FENCES -> (len(self.fences) >= MAX_FENCES)": "how many "
    "fences are tried",
    "memmodel/enumeration/supports.py: extent.first < first + size -> (extent.first <= first + size)": "values that "
    "support themselves are tried, and the axiom refuses them",
    "memmodel/encode/boundaries.py: edges.extent.instance == instance and edges.has(at) -> ((edges.has(at)))": "where "
    "another variable is cut, this one may be cut, too: finer cells hold the same bytes",
    "memmodel/encode/algebra.py: self.deepest < most -> (self.deepest <= most)": "after so many steps "
    "nothing is added, and what is said of more is never so",
    "memmodel/encode/communication.py: c != a and b in row -> ((c != a))": "operations that a chain orders are related",
    "memmodel/encode/completion.py: part.moment < event.moment -> (part.moment <= event.moment)": "what signals for a "
    "track has no part of it",
    "memmodel/encode/object_phases.py: len(self.phase[i]) > 1 and phase in self.phase[i] -> ((phase in "
    "self.phase[i]))": "where a search begins",
    "memmodel/encode/object_phases.py: len(self.phase[i]) > 1 -> (len(self.phase[i]) <= 1)": "where a search begins",
    "memmodel/encode/object_phases.py: min(len(self.counting), arrivals // size) -> max(len(self.counting), arrivals "
    "// size)": "phases are told apart that are never over",
    "memmodel/encode/object_tests.py: i in self.phases.phase and update.failed != FALSE -> ((i in "
    "self.phases.phase))": "what never fails adds a false formula",
    'memmodel/events/asynchronous.py: self._apply("add", total, element) if total is not ZERO else element -> '
    '(self._apply("add", total, element))': "a sum may begin with zero",
    "memmodel/encode/completion.py: e.moment < issue.moment -> (e.moment <= issue.moment)": "all numbers are one more, "
    "and only equal ones meet",
    "memmodel/encode/object_phases.py: i < j -> (i >= j)": "where a search begins",
    "memmodel/encode/object_phases.py: max(self.phase[i]) <= min(self.phase[j]) -> "
    "(max(self.phase[i]) < min(self.phase[j]))": "what is required then holds already",
    "memmodel/events/builder.py: len(choices) > MAX_PLACES -> (len(choices) >= MAX_PLACES)": "how many places are "
    "tried",
    "memmodel/events/builder.py: self._depth < _DEEP -> (self._depth <= _DEEP)": "how deep a value is looked up before "
    "it is left to the solver: a bound for Python's stack",
    "memmodel/events/knowledge.py: depth < merged.get(value, depth + 1) and (depth <= self.most_writes or not "
    "self.grounded) -> ((depth < merged.get(value, depth + 1)))": "a read may have more candidate values, which no "
    "write has: none of them is read",
    "memmodel/events/elaborate.py: isinstance(event.label, Access) and event.label.side is Side.WRITE and event.cell "
    "in exact -> ((isinstance(event.label, Access)) and (event.cell in exact))": "a read has no data",
    "memmodel/events/elaborate.py: not isinstance(read, MemoryEvent) or not isinstance(read.label, Access) or "
    "read.label.side is not Side.READ -> ((not isinstance(read, MemoryEvent)) or (not isinstance(read.label, "
    "Access)))": "more loops count as ones that may race, and a failed round of each is kept",
    "memmodel/events/values.py: all(arg.bits is None for arg in args) -> any(arg.bits is None for arg in args)": "how "
    "many combinations are tried before bits are computed",
    "memmodel/events/values.py: numbers if len(numbers) <= LISTED else {} -> (numbers)": "how many numbers are listed",
    "memmodel/events/walk.py: assigned(op) if current.guard else () -> (assigned(op))": "nothing is added then, "
    "and a register that nothing assigned is zero",
    "memmodel/isa/mnemonic.py: len(parts) > MAX_PARTS -> (len(parts) >= MAX_PARTS)": "no row has nearly as many words",
    'memmodel/isa/module.py: isinstance(register, Register) and register.kind == "pred" -> '
    '((register.kind == "pred"))': "a register of a module is a Register",
    'memmodel/isa/scalar/floats.py: _ROUNDED_SINCE | {"approx type=f64": Since(20, "2.1")} -> ({"approx type=f64": '
    'Since(20, "2.1")})': "no target of the table has a PTX before 2.0",
    "memmodel/kernel/all_sizes/following.py: self._numbers(uses, warp, lanes, moving) if moving else {} -> "
    "(self._numbers(uses, warp, lanes, moving))": "no number drifts where no register does",
    "memmodel/kernel/all_sizes/period_insertion.py: event.order or 0 -> ((event.order))": "what meets at a barrier has "
    "a place among the events of its thread",
    'memmodel/kernel/arguments/element_types.py: "f" in self.lower() and "int" not in self.lower() -> '
    '(("f" in self.lower()))': "no type of integers has that letter",
    "memmodel/kernel/check/executions.py: None if flags is None else flags.relation(BASE) -> "
    "(flags.relation(BASE))": "a run that was judged has flags",
    "memmodel/kernel/executions/counters.py: each.given or 0 -> ((each.given))": "a loop is a counter only if all that "
    "is added to it is known",
    "memmodel/kernel/machine/regions/locate.py: address is None or size is None or None in values -> ((address is "
    "None) or (None in values))": "a size that is not known is refused by its range before",
    "memmodel/kernel/executions/consistent.py: source.time > read.time -> (source.time >= read.time)": "no two events "
    "have one time, and none reads what it writes",
    "memmodel/kernel/executions/consistent.py: ranks -> (not ranks)": "which orders of writes are tried first: all of "
    "them are tried behind",
    "memmodel/kernel/check/executions.py: search.left_out and search.no_execution -> ((search.left_out))": "executions "
    "are run, too, that have more order than others which were run",
    "memmodel/kernel/export/hangs.py: event.time < read.time -> (event.time <= read.time)": "no two events have "
    "one time",
    "memmodel/kernel/output/source_names.py: PTX_LINES.sub(self._placed, text) if self._sources else text -> "
    "(PTX_LINES.sub(self._placed, text))": "without places in the source each line stays as it is",
    'memmodel/kernel/output/text.py: more if lines else "" -> (more)': "findings that are alike have sides",
    "memmodel/kernel/export/hangs.py: isinstance(event.label, Barrier) and event.label.half is Half.ARRIVE -> "
    "((event.label.half is Half.ARRIVE))": "asked of events of barriers only",
    "memmodel/kernel/flow/packing.py: len(slots) <= HIGHEST -> (len(slots) < HIGHEST)": "how many registers "
    "are followed",
    "memmodel/kernel/order/flags.py: (None, set(), 0) if like is None else like._difference(execution) -> "
    "((None, set(), 0))": "what was evaluated before is evaluated once more",
    "memmodel/kernel/order/readings.py: left and any(left & keys for keys in gone) -> "
    "((any(left & keys for keys in gone)))": "nothing is in an empty set",
    "memmodel/kernel/conflicts/class_pairs.py: place[piece] < place[partner] -> "
    "(place[piece] <= place[partner])": "two accesses of one thread that are judged by pairs follow each other in "
    "program order: none is found",
    "memmodel/kernel/conflicts/uses.py: not is_replicated(self.label) -> bool(is_replicated(self.label))": "an access "
    "that shares no event has one in each of its pairs: only what a graph costs differs",
    "memmodel/kernel/mutate/regrouped.py: (step := steps.get(event.at)) is not None and step.pending is not None and "
    "step.track in self._known -> (((step := steps.get(event.at)) is not None) and (step.track in self._known))": (
        "what is waited for without a number is in no groups"
    ),
    "memmodel/mutate/work.py: None if self.judging.expected is None else word_for(steps.test.expectations, "
    "self.judging.expected) -> (word_for(steps.test.expectations, self.judging.expected))": "no file has words for the "
    "model None",
    "memmodel/repair/carry.py: is_dataclass(old) and not isinstance(old, type) -> ((is_dataclass(old)))": "ops hold no "
    "classes",
    "memmodel/repair/carry.py: edit.adds > 0 -> (edit.adds >= 0)": "what adds nothing moves nothing",
    "memmodel/repair/glance.py: findings if name != OUTCOME else steps.test.finding is None -> (findings)": "a glance "
    "that finds nothing is followed by an answer",
    "memmodel/repair/guided.py: first is None or second is None or first.uid == second.uid -> "
    "((second is None) or (first.uid == second.uid))": "a finding that names no first event names no second",
    "memmodel/repair/searching/search.py: any(map(self.risky, edits)) -> all(map(self.risky, edits))": "which sets are "
    "tried first",
    "memmodel/repair/searching/search.py: len(pool) < POOL -> (len(pool) >= POOL)": "how many executions refute others "
    "before these are judged",
    "memmodel/repair/searching/search.py: self._idle(*pair) or self._idle(*reversed(pair)) -> "
    "((self._idle(*pair)))": "a pair that leads nowhere is judged",
    "memmodel/repair/searching/trials.py: self._known_counterexample(text) or self._quick_counterexample(text) -> "
    "((self._quick_counterexample(text)))": "what a known execution refutes is judged",
    "memmodel/repair/synchronizing/search.py: len(risky) > 1 -> (len(risky) >= 1)": "one change is tried twice",
    "memmodel/repair/searching/search.py: not self.known_repairs and HANG in self.before.findings -> "
    "((not self.known_repairs))": "the reasons that a number answers are those of hangs",
    "memmodel/repair/searching/sets.py: demand.given & ~chosen -> (demand.given)": "what does not suffice is judged, "
    "too",
    "memmodel/repair/searching/sets.py: pending and len(seen) < MOST_SEEN -> ((pending))": "how many sets are tried",
}
"""`FILE: OLD -> NEW` of a survivor: why the program does the same with it."""
