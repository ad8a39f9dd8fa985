"""What a repair may put into a gap of a thread: fences, waits, commits, each with its price.

In: a lowered test, a gap. Out: lines. Settled here: what is worth trying where. A fence stands between two operations,
a wait after what it waits for, a tcgen05 fence beside tcgen05 instructions, and no fence is wider than the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from memmodel.base.labels import FABRIC, TCGEN, Access, Across, Action, Family, Fence, Half, Mark, Marker, ProxyFence
from memmodel.isa.synchronization.fence_async import READS
from memmodel.lint.advice import part_label
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Variable
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import (
    Assign,
    AtBarrier,
    CommitGroup,
    Emit,
    IssueAsync,
    Jump,
    OnObject,
    Op,
    Track,
    WaitForGroups,
    Write,
)
from memmodel.ptx.vocabulary import Place, Proxy, Scope, Sem, Space
from memmodel.repair.costs import (
    OTHER,
    PROXY_FENCE,
    PROXY_FENCE_OF_ONE_SPACE,
    READS_ALONE,
    SCOPE_COST,
    SEM_FACTOR,
    TCGEN05_FENCE,
    WAIT,
    half_of_proxy_fence,
)
from memmodel.repair.insertion.gaps import Opening
from memmodel.repair.insertion.phases import Phases
from memmodel.repair.spellings import RESTRICTED

GRID_WAIT = "griddepcontrol.wait"
AFTER = "tcgen05.fence::after_thread_sync"

ONE_SIDED = "fence.proxy.async::generic"
"""The fence of the async proxy that has two halves."""

TRACKED = frozenset((Family.MMA, Family.TCGEN_CP, Family.SHIFT))
"""What tcgen05.commit follows."""

MOST_OBJECTS = 4
"""Elements of an array of mbarrier objects that a new wait or commit may name."""


@dataclass(frozen=True, slots=True)
class Addition:
    """`text`: instructions, with `;`; `name`: what it is called; `rank`: its turn among the lines of one gap.

    `implied`: the names of lines that add nothing where this one stands.
    """

    text: str
    name: str
    price: float
    rank: int
    implied: tuple[str, ...] = ()


class Lines:
    """The lines that a test may lack.

    `exact`: more forms: the half of a proxy fence about the reads of its thread, waits for a phase that order nothing
    by themselves; but of waits and commits only those on objects that no thread waits for, or on which nothing arrives.
    """

    def __init__(self, lowered: LoweredTest, *, exact: bool = False) -> None:
        test = lowered.test
        self.widths = widths([thread.place for thread in test.threads])
        self.clusters = "cluster" in self.widths
        self.proxies = _proxies(lowered)
        self.halves = self.clusters or "fence.proxy.async::generic" in test.source.text
        self.spaces = {variable.space for variable in test.variables}
        self.alias = any(
            variable.multimem or (variable.alias_of is not None and variable.proxy is not Proxy.FABRIC)
            for variable in test.variables
        )
        self.maps = [variable for variable in test.variables if variable.maps and variable.space is Space.GLOBAL]
        self.objects = [name for variable in test.variables for name in _objects(lowered, variable)]
        self.text = test.source.text
        self.dependents = {
            number
            for number, thread in enumerate(test.threads)
            if thread.place.grid
            and not any(item.mnemonic == GRID_WAIT and item.guard is None for item in instructions(thread))
        }
        self.phases = Phases(lowered, self.objects)
        self.exact = exact
        self.waits = [("", 0.0)]
        if self.clusters:
            self.waits.append((".acquire.cluster", SCOPE_COST["cluster"] * SEM_FACTOR["acquire"]))
        if exact:
            self.waits += [(f".relaxed.{scope}", 0.0) for scope in ("cta", "cluster")[: 1 + self.clusters]]
        self.waited = self.phases.waited_for() if exact else set[str]()
        self.signalled = self.phases.signalled() if exact else set[str]()

    def at(self, gap: Opening) -> Iterator[Addition]:
        """What may stand in a gap."""
        past, ahead = visible_ops(gap.past), visible_ops(gap.ahead)
        waits = list(self._object_waits(gap)) if ahead else []
        if ahead and (past or (self.exact and waits)):  # a fence may stand behind the wait
            yield from self._memory(past[-1:] + ahead[:1])
            yield from self._proxy(past[-1:] + ahead[:1])
            yield from self._restricted()
            if any(isinstance(op, OnObject) and op.label.action is Action.INIT for op in past):
                yield Addition(
                    "fence.mbarrier_init.release.cluster;",
                    "fence.mbarrier_init",
                    OTHER + SCOPE_COST["cta"] * SEM_FACTOR["release"],
                    4,
                )
        if past or ahead:
            yield from self._maps(past, ahead)
            yield from self._tcgen05(past, ahead)
        if past:
            yield from _groups(past, ahead, of_reads=not self.exact)
            if _families(past) & FABRIC:
                yield Addition("fabric.submit;", "fabric.submit", OTHER, 1)
            yield from self._commits(gap, past)
        if ahead:
            if gap.thread in self.dependents:
                yield Addition(f"{GRID_WAIT};", GRID_WAIT, WAIT, 0)
            yield from waits
            if Family.WGMMA in _families(ahead):
                yield Addition("wgmma.fence.sync.aligned;", "wgmma.fence", OTHER, 6)

    def _memory(self, beside: list[Op]) -> Iterator[Addition]:
        for sem in (Sem.ACQUIRE, Sem.RELEASE, Sem.ACQ_REL, Sem.SC):
            for scope in self.widths:
                if any(_as_strong(op, sem, scope) for op in beside):
                    continue
                price = SCOPE_COST[scope] * SEM_FACTOR[sem.value]
                yield Addition(
                    f"fence.{sem.value}.{scope};", f"fence.{sem.value}.{scope}", price, _rank(sem), _weaker(sem, scope)
                )

    def _restricted(self) -> Iterator[Addition]:
        """Fences of the cluster that are about shared memory alone."""
        for sem, text in RESTRICTED.items() if self.clusters and self._has(Space.SHARED) else ():
            yield Addition(f"{text};", text, OTHER + SCOPE_COST["cta"] * SEM_FACTOR[sem], _rank(Sem(sem)))

    def _proxy(self, beside: list[Op]) -> Iterator[Addition]:
        if Proxy.ASYNC in self.proxies:
            spaces = [name for name, present in (("global", self._has(Space.GLOBAL)), ("shared::cta", True)) if present]
            if self.clusters:
                spaces.append("shared::cluster")
            names = tuple(f"fence.proxy.async.{space}" for space in spaces)
            if not any(_is_proxy_fence(op, Proxy.ASYNC) for op in beside):
                yield Addition("fence.proxy.async;", "fence.proxy.async", PROXY_FENCE, 4, names)
            for name in names:
                yield Addition(f"{name};", name, PROXY_FENCE_OF_ONE_SPACE, 4)
            for sem, text in RESTRICTED.items() if self.halves and self._has(Space.SHARED) else ():
                half = text.replace("fence.", f"{ONE_SIDED}.", 1)
                yield Addition(f"{half};", half, half_of_proxy_fence(sem), 4)
            if self.exact and self._has(Space.SHARED):
                yield from self._half_of_reads(beside[-1])
        if Proxy.FABRIC in self.proxies:
            yield from _fabric(beside)
        if self.alias and not any(_is_proxy_fence(op, None) for op in beside):
            yield Addition("fence.proxy.alias;", "fence.proxy.alias", PROXY_FENCE, 4)

    def _half_of_reads(self, ahead: Op) -> Iterator[Addition]:
        """The half about the reads of its thread, and the half that it needs: together cheaper than a whole fence."""
        release, acquire = (RESTRICTED[sem].replace("fence.", f"{ONE_SIDED}.", 1) for sem in ("release", "acquire"))
        if self.halves or hands_on(ahead):
            reads = release.replace("sync_restrict::shared::cta", READS)
            yield Addition(f"{reads};", reads, half_of_proxy_fence("release", reads=True), 4)
        if not self.halves and isinstance(ahead, IssueAsync):
            yield Addition(f"{acquire};", acquire, half_of_proxy_fence("acquire"), 4)

    def _has(self, space: Space) -> bool:
        return space in self.spaces or Space.GENERIC in self.spaces

    def _maps(self, past: list[Op], ahead: list[Op]) -> Iterator[Addition]:
        """The two halves of the fence between the generic and the tensormap proxy."""
        half = "fence.proxy.tensormap::generic"
        beside = [op.label for op in (*past[-1:], *ahead[:1]) if isinstance(op, Emit)]
        halves = [fence.half for fence in beside if isinstance(fence, ProxyFence) and fence.proxy is Proxy.TENSORMAP]
        for scope in self.widths if self.maps else ():
            if past and Sem.RELEASE not in halves:
                name = f"{half}.release.{scope}"
                yield Addition(f"{name};", name, PROXY_FENCE * SEM_FACTOR["release"], 4)
            if any(isinstance(op, IssueAsync) for op in ahead):
                for variable in self.maps:
                    name = f"{half}.acquire.{scope} [{variable.name}], 128"
                    yield Addition(f"{name};", name, PROXY_FENCE * SEM_FACTOR["acquire"], 6)

    def _tcgen05(self, past: list[Op], ahead: list[Op]) -> Iterator[Addition]:
        marks = [
            op.label.what for op in (*past[-1:], *ahead[:1]) if isinstance(op, Emit) and isinstance(op.label, Mark)
        ]
        if ahead and _families(past) & TCGEN and Marker.BEFORE not in marks:
            yield Addition("tcgen05.fence::before_thread_sync;", "tcgen05.fence::before_thread_sync", TCGEN05_FENCE, 3)
        if past and _families(ahead) & TCGEN and Marker.AFTER not in marks:
            yield Addition(f"{AFTER};", AFTER, TCGEN05_FENCE, 7)

    def _commits(self, gap: Opening, past: list[Op]) -> Iterator[Addition]:
        """tcgen05.commit beside what it follows; and with a wait for it, where the thread goes on."""
        for name in self.objects:
            head = commit(past[-1], name)
            if head is None:
                return
            if name.partition("+")[0] in self.signalled:
                continue
            yield Addition(f"{head};", head, WAIT, 1)
            first = self.phases.straight[gap.thread] and self.phases.unheard(gap.thread, len(self.text), name)
            for parity in ((0,) if first else (0, 1)) if gap.ahead else ():
                text = f"{head};\n{wait_for(self.text, name, '', parity, gap.index)}"
                what = f"{head}, a wait for parity {parity} of it"
                if is_after(gap.ahead[0]):
                    yield Addition(text, what, 2 * WAIT, 1)
                else:
                    yield Addition(f"{text}\n{AFTER};", f"{what} and {AFTER}", 2 * WAIT + TCGEN05_FENCE, 1)

    def _object_waits(self, gap: Opening) -> Iterator[Addition]:
        """A wait for a phase of an mbarrier object."""
        follows = [("", "", 0.0)]
        if _families(visible_ops(gap.ahead)[:1]) & TCGEN:
            follows.append((f"\n{AFTER};", f" with {AFTER}", TCGEN05_FENCE))
        for (name, parity), (form, wider), (then, also, dearer) in product(self.phases.at(gap), self.waits, follows):
            if self._base(gap, name) in self.waited:
                continue
            what = f"a wait{form} for parity {parity} of {name}{also}"
            text = wait_for(self.text, name, form, parity, gap.index) + then
            yield Addition(text, what, WAIT + wider + dearer, 0)

    def _base(self, gap: Opening, name: str) -> str:
        """The variable of an object that a name or a register names."""
        known = self.phases.addresses[gap.thread]
        return known[name[1:]][0] if name.startswith("%") and name[1:] in known else name.partition("+")[0]


def hands_on(op: Op) -> bool:
    """True if other threads may learn from a step that its thread has come so far."""
    match op:
        case OnObject():
            return op.label.action is Action.ARRIVE
        case AtBarrier():
            return op.label.half is Half.ARRIVE
        case Write():
            return op.label.sem in (Sem.RELAXED, Sem.RELEASE)
    return False


def _rank(sem: Sem) -> int:
    """The turn of a memory fence: one that acquires comes before proxy fences of its gap, others come after them."""
    return 2 if sem is Sem.ACQUIRE else 5


def is_after(op: Op) -> bool:
    """True if the operation is tcgen05.fence::after_thread_sync."""
    return isinstance(op, Emit) and isinstance(op.label, Mark) and op.label.what is Marker.AFTER


def wait_for(text: str, name: str, form: str, parity: int | str, number: int) -> str:
    """A wait for a phase of an object, in a loop; `number` tells one label from others."""
    predicate, label = fresh(text, "%ready"), fresh(text, f"READY{number}")
    wait = f"mbarrier.try_wait.parity{form}.shared::cta.b64 {predicate}, [{name}], {parity};"
    return f"{label}:\n{wait}\n@!{predicate} bra {label};"


def commit(op: Op, name: str) -> str | None:
    """tcgen05.commit on an object, for an operation that it tracks; None for any other."""
    if not (isinstance(op, IssueAsync) and op.label.family in TRACKED):
        return None
    return f"tcgen05.commit.cta_group::{op.label.group or 1}.mbarrier::arrive::one.shared::cluster.b64 [{name}]"


def _fabric(among: list[Op]) -> Iterator[Addition]:
    """The halves of fences of the fabric proxy, and both of them for what one thread does."""
    beside = [op.label for op in among if isinstance(op, Emit) and isinstance(op.label, ProxyFence)]
    for across in Across:
        release, acquire = (f"fence.proxy.{across.value}.alias.{sem}.sys" for sem in ("release", "acquire"))
        near = {fence.half for fence in beside if fence.across is across}
        prices = PROXY_FENCE * SEM_FACTOR["release"], PROXY_FENCE * SEM_FACTOR["acquire"]
        for half, text, price in ((Sem.RELEASE, release, prices[0]), (Sem.ACQUIRE, acquire, prices[1])):
            if half not in near:
                yield Addition(f"{text};", text, price, 4)
        if not near:
            yield Addition(f"{release};\n{acquire};", f"{release} and .acquire", sum(prices), 4)


def _groups(past: list[Op], ahead: list[Op], *, of_reads: bool) -> Iterator[Addition]:
    """Commits of groups and waits for them, after what they are about. `of_reads`: also waits for reads alone."""
    for family, line in _SINGLE:
        if family in _families(past):
            yield Addition(f"{line};", line, WAIT, 0)
    for track, commit, wait in _GROUPED:
        issued = [n for n, op in enumerate(past) if isinstance(op, IssueAsync) and tracked(op, track)]
        if not issued:
            continue
        commits = [n for n, op in enumerate(past) if isinstance(op, CommitGroup) and op.track is track]
        if commits and commits[-1] > issued[-1]:
            reads = wait.replace("wait_group", "wait_group.read") if of_reads and track is Track.BULK else ""
            if reads:
                yield Addition(f"{reads};", reads, WAIT - OTHER * READS_ALONE, 0)
            if wait:
                yield Addition(f"{wait};", wait, WAIT, 0, (reads,) if reads else ())
            continue
        if wait and not _commits_next(ahead[:1], track):
            yield Addition(f"{commit};\n{wait};", f"{commit} and {wait}", WAIT + OTHER, 0)
        if any(isinstance(op, WaitForGroups) and op.track is track for op in ahead) and not _commits_next(ahead, track):
            yield Addition(f"{commit};", commit, OTHER, 0)


def _commits_next(ahead: list[Op], track: Track) -> bool:
    """True if what comes next for groups of a kind commits one: with another commit before it, that one is empty."""
    for op in ahead:
        if isinstance(op, CommitGroup | WaitForGroups) and op.track is track:
            return isinstance(op, CommitGroup)
        if isinstance(op, IssueAsync) and tracked(op, track):
            return False
    return False


_SINGLE = (
    (Family.CP_ASYNC, "cp.async.wait_all"),
    (Family.TCGEN_LD, "tcgen05.wait::ld.sync.aligned"),
    (Family.TCGEN_ST, "tcgen05.wait::st.sync.aligned"),
)
"""What begins an asynchronous operation, and what waits for all of them."""

_GROUPED = (
    (Track.CP_ASYNC, "cp.async.commit_group", ""),
    (Track.BULK, "cp.async.bulk.commit_group", "cp.async.bulk.wait_group 0"),
    (Track.WGMMA, "wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned 0"),
)
"""What is waited for in groups; without a wait for what is waited for at once as well."""


def widths(places: list[Place]) -> list[str]:
    """The scopes that just include two threads of the test; .cta for a test of one thread."""
    scopes = {place.common_scope(other) for place, other in combinations(places, 2)}
    return [scope.name.lower() for scope in sorted(scopes or {Scope.CTA})]


def _proxies(lowered: LoweredTest) -> set[Proxy]:
    """The proxies of the test's asynchronous accesses."""
    return {
        label.proxy
        for program in lowered.programs
        for step in program.steps
        if isinstance(step.op, IssueAsync)
        for part in step.op.parts
        if isinstance(label := part_label(part), Access)
    }


def _objects(lowered: LoweredTest, variable: Variable) -> Iterator[str]:
    """The addresses of the mbarrier objects of a variable."""
    initialised = any(
        item.mnemonic.startswith("mbarrier.init") and f"[{variable.name}" in item.span.text
        for thread in lowered.test.threads
        for item in instructions(thread)
    )
    if variable.mbarrier is None and not initialised:
        return
    for number in range(min(variable.length, MOST_OBJECTS)):
        yield variable.name if number == 0 else f"{variable.name}+{8 * number}"


def visible_ops(ops: tuple[Op, ...]) -> list[Op]:
    """The steps that do more than compute."""
    return [op for op in ops if not isinstance(op, Assign | Jump)]


def _families(ops: list[Op]) -> set[Family]:
    return {op.label.family for op in ops if isinstance(op, IssueAsync)}


def tracked(op: IssueAsync, track: Track) -> bool:
    """True if groups of this kind may track a part of the instruction."""
    parts = (getattr(part, "tracks", None) for part in op.parts)
    return any(track is tracks or (isinstance(tracks, frozenset) and track in tracks) for tracks in parts)


def _as_strong(op: Op, sem: Sem, scope: str) -> bool:
    """True if the operation is a fence that makes one with `sem` and `scope` beside it redundant."""
    if not (isinstance(op, Emit) and isinstance(op.label, Fence) and op.label.covers is None):
        return False
    return op.label.sem.orders(sem) and op.label.scope >= Scope[scope.upper()]


def _is_proxy_fence(op: Op, proxy: Proxy | None) -> bool:
    if not (isinstance(op, Emit) and isinstance(op.label, ProxyFence)):
        return False
    return op.label.proxy is proxy and op.label.covers is None and op.label.half is None


def _weaker(sem: Sem, scope: str) -> tuple[str, ...]:
    """The names of the fences that add nothing beside one."""
    scopes = list(SCOPE_COST)
    sems = [weaker.value for weaker in (Sem.ACQUIRE, Sem.RELEASE, Sem.ACQ_REL, Sem.SC) if sem.orders(weaker)]
    names = [f"fence.{word}.{narrow}" for narrow in scopes[: scopes.index(scope) + 1] for word in sems]
    restricted = [text for word, text in RESTRICTED.items() if word in sems and scope != "cta"]
    return (*(name for name in names if name != f"fence.{sem.value}.{scope}"), *restricted)


def fresh(text: str, name: str) -> str:
    """A name that does not occur in the text."""
    while name in text:
        name += "_"
    return name
