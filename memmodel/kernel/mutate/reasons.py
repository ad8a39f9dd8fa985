"""Why a change is not noticed: no accesses on both sides of the instruction have to be ordered, or what is left orders
them.

In: the judged runs of the kernel and of the mutant, the change. Out: a sentence. It is computed from the orders of both
runs: two accesses that conflict lie on both sides of an instruction if the order leads from one through the instruction
to the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from memmodel.base.labels import Access, Action, Mbarrier
from memmodel.base.rows import Rows, bits, union
from memmodel.kernel.check.so_far import JudgedRun
from memmodel.kernel.mutate.mutations import Mutation
from memmodel.kernel.order.fences import BASE
from memmodel.kernel.order.flags import Flags
from memmodel.kernel.order.judging import RunJudge
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.vocabulary import Proxy

DEFINED, STEPS = ("synchronizes",), ("iss", "compl", "complwg")
"""What base causality is made of, with program order: by the model, and by the run."""

SHOWN, TRIED = 3, 8
"""Steps of a way that are named; pairs of the same two instructions of which the shortest way is looked for."""

Pair = tuple[int, int]


class LaunchOrder:
    """The accesses of a judged run in base causality."""

    def __init__(self, run: RunJudge, flags: Flags, causes: Rows) -> None:
        self.run, self.graph, self.body, self.after = run, run.graph, run.body, causes
        self.before: Rows = flags.inverse(causes)
        self.program = flags.execution.relation("po")
        defined = [flags.relation(name) for name in DEFINED]
        rows = [row for row in defined if row is not None] + [flags.execution.relation(name) for name in STEPS]
        self.steps = [union(cells) for cells in zip(*rows, strict=True)]
        self._pairs: dict[bool, tuple[Pair, ...]] = {}

    @classmethod
    def of(cls, judged: JudgedRun | None) -> LaunchOrder | None:
        """The order of a judged run; None if the run was not judged, or the model has no such order."""
        if judged is None or judged.judgement.flags is None:
            return None
        causes = judged.judgement.flags.relation(BASE)
        return None if causes is None else cls(judged.run, judged.judgement.flags, causes)

    def pairs(self, *, proxies: bool) -> tuple[Pair, ...]:
        """The pairs of events that have to be ordered, in their order: accesses that conflict, of different threads or
        asynchronous, and the init of an object with its uses.

        `proxies`: only pairs with an access through another proxy than the generic one.
        """
        if proxies not in self._pairs:
            self._pairs[proxies] = tuple(self._each_pair(proxies=proxies))
        return self._pairs[proxies]

    def _each_pair(self, *, proxies: bool) -> Iterator[Pair]:
        points = self.graph.points
        for ends in (*self.graph.pair_of, *(() if proxies else self._uses())):
            labels = [points[event].label for event in ends]
            accesses = [label for label in labels if isinstance(label, Access)]
            alone = len({points[event].thread for event in ends}) == 1
            if len(set(ends)) != 2 or (alone and not any(label.asynchronous for label in accesses)):
                continue
            if proxies and all(label.proxy is Proxy.GENERIC for label in accesses):
                continue
            first, second = ends
            if self.after[first] >> second & 1:
                yield first, second
            elif self.after[second] >> first & 1:
                yield second, first

    def _uses(self) -> Iterator[frozenset[int]]:
        """The init of each mbarrier object with each operation on it."""
        for log in self.graph.run.objects.values():
            numbers = [self.graph.number[id(step.event)] for step in log if id(step.event) in self.graph.number]
            labels = [(number, self.graph.points[number].label) for number in numbers]
            inits = [number for number, init in labels if isinstance(init, Mbarrier) and init.action is Action.INIT]
            yield from (frozenset((init, number)) for init in inits for number in numbers)

    def idle(self, number: int) -> bool:
        """True if an instruction works on mbarrier objects, and no thread waits for a phase of them."""
        logs = [log for log in self.graph.run.objects.values() if any(step.event.at == number for step in log)]
        return bool(logs) and all(step.update for log in logs for step in log)

    def across(self, *instructions: PtxInstruction) -> list[Pair]:
        """The pairs on both sides of an instruction, or of one of its copies; of a proxy fence, those that it may
        serve.
        """
        numbers = {instruction.number for instruction in instructions}
        mine = sum(1 << event for event, origin in enumerate(self.graph.origins) if origin.at in numbers)
        pairs = self.pairs(proxies="proxy" in instructions[0].words)
        return [(first, second) for first, second in pairs if self.after[first] & self.before[second] & mine]

    def around(self, *instructions: PtxInstruction) -> Sequence[Pair]:
        """The pairs that an instruction or one of its copies may order: all, if one of them leaves no event."""
        left = {origin.at for origin in self.graph.origins}
        if all(instruction.number in left for instruction in instructions):
            return self.across(*instructions)
        return self.pairs(proxies=False)

    def places(self, pair: Pair) -> Pair:
        """The instructions of a pair."""
        first, second = (self.graph.origins[event].at for event in pair)
        return first, second

    def alone(self, pair: Pair) -> bool:
        """True if both events are of one thread."""
        first, second = (self.graph.points[event].thread for event in pair)
        return first == second

    def way(self, places: Pair, *, alone: bool) -> list[int] | None:
        """The instructions that lead from one access to another one; None if there is no such pair."""
        pairs = [
            pair for pair in self.pairs(proxies=False) if self.places(pair) == places and self.alone(pair) is alone
        ]
        ways = [self._way(*pair) for pair in pairs[:TRIED]]
        return min(ways, key=len, default=None)

    def _way(self, first: int, second: int) -> list[int]:
        """The instructions at which a shortest path in causality leaves or enters a thread."""
        between = self.after[first] & self.before[second] | 1 << second
        came, queue = {first: first}, deque([first])
        while queue and second not in came:
            at = queue.popleft()
            for after in bits((self.steps[at] | self.program[at]) & between):
                if after not in came:
                    came[after] = at
                    queue.append(after)
        way, at = [], came.get(second, first)
        while at != first:
            way.append(self.graph.origins[at].at)
            at = came[at]
        ends = self.places((first, second))
        return list(dict.fromkeys(instruction for instruction in way[::-1] if instruction not in ends))


def redundant(base: LaunchOrder, mutant: LaunchOrder, change: Mutation) -> str:
    """Why the change is not noticed."""
    words = change.instruction.words
    if words[:2] == ("mbarrier", "inval"):
        return "the memory of its object has no other use afterwards"
    if "commit_group" in words:
        return "its group is empty, or over with the next one"
    if all(base.idle(instruction.number) for instruction in change.instructions):
        return "nothing waits for a phase of its mbarrier object"
    across = base.across(*change.instructions)
    if not across:
        which = "accesses through different proxies" if "proxy" in words else "accesses"
        return f"no {which} that conflict lie on both sides of it"
    between = {pair: (base.after[pair[0]] & base.before[pair[1]]).bit_count() for pair in across}
    chosen = min(across, key=lambda pair: (base.alone(pair), between[pair], pair))
    first, second = base.places(chosen)
    lines = f"lines {base.body[first].line} and {base.body[second].line}"
    more = f" and {len(across) - 1} more pairs" if len(across) > 1 else ""
    steps = mutant.way((first, second), alone=base.alone(chosen))
    if steps is None:
        return f"{lines}{more}, on both sides of it, do not meet then"
    if any(instruction.number in steps for instruction in change.instructions):
        return f"what is left of it orders {lines}{more}"
    named = ", ".join(base.body[at].at_line for at in steps[:SHOWN])
    named += ", …" if len(steps) > SHOWN else ""
    return f"redundant: {lines}{more} are also ordered by {named or 'program order'}"
