"""What an explanation consists of, in the reader's terms.

In: nothing. Out: frozen types. `At` is a place on a path: an event of the shown execution, or something missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from memmodel.answer import Observation, Witness
from memmodel.source import Span

WOULD_DO = "would do"


class Reason(Enum):
    """What stops the order from the first access towards the second: a closed list, in the words of reports."""

    NO_SYNCHRONIZATION = "no synchronization"
    NOT_SEEN = "a flag that need not have been seen"
    SCOPES = "scopes that do not include each other"
    RELAXED = "relaxed or weak where acquire or release is needed"
    FENCE_SIDE = "a fence on the wrong side of the synchronization"
    REDUCTION = "a reduction heads no acquire pattern"
    RESTRICTED = "a fence restricted to other memory"
    NO_FENCE_SC = "no fence.sc between the accesses"
    WEAK = "weak accesses where strong ones are needed"
    NO_PROXY_FENCE = "no proxy fence on the path"
    PROXY_FENCE_SPACE = "a proxy fence for another state space or range"
    PROXY_FENCE_CTA = "a proxy fence in another CTA"
    PROXY_FENCE_SIDE = "a proxy fence on the wrong side"
    NO_ALIAS_FENCE = "no alias fence between two names"
    NOT_WAITED = "completion not waited for"
    NOT_TRANSITIVE = "a completion publishes nothing that its thread did"
    WGMMA_FENCE = "no wgmma.fence after what is read"
    TCGEN05_FENCE = "no tcgen05.fence"
    TCGEN05_COMMIT = "no tcgen05.commit"
    TCGEN05_WAIT = "no tcgen05.wait"
    READ_ONLY = "the read-only path, which no fence bridges"
    LOCATION = "not one location"
    PARITY = "wrong parity"
    EARLIER_PHASE = "a wait for an earlier phase"
    COUNT = "an arrive count that does not match"
    BYTES = "expected bytes that do not match"
    NO_COLUMNS = "tensor memory that is not free"
    NEVER_WRITTEN = "a value that nobody writes, or that is overwritten"
    DEADLOCK = "each waits for the other"
    OTHER_THREAD_WAITS = "a thread that waits for ever comes first"
    GONE = "an object or CTA that may be gone"
    RULE = "a rule that one thread breaks alone"
    NOTHING_MISSING = "nothing is missing: no order could forbid it"


class InFile:
    """What may have a place in a file. `span`: of the instruction."""

    __slots__ = ()
    span: Span | None

    @property
    def file(self) -> str | None:
        return None if self.span is None else self.span.source.name

    @property
    def line(self) -> int | None:
        return None if self.span is None else self.span.line

    @property
    def column(self) -> int | None:
        return None if self.span is None else self.span.column


@dataclass(frozen=True, slots=True)
class At(InFile):
    """A place on a path. `label`: of the event in its execution; empty for what is not there and would have to be."""

    label: str
    text: str
    thread: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def missing(self) -> bool:
        return not self.label

    @property
    def where(self) -> str:
        parts = (self.thread or "initial write", f"line {self.line}" if self.line else "")
        return ", ".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.label}: {self.text} ({self.where})" if self.label else self.text


@dataclass(frozen=True, slots=True)
class PathStep:
    """From one place to another by a relation. `parts`: what it is derived from. `clause`: the section that gives it.

    `holds`: it does in the execution that is shown; the others would if what is missing were there.
    """

    first: At
    second: At
    relation: str
    clause: str = ""
    parts: tuple[PathStep, ...] = ()
    holds: bool = True


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stops the order. `text`: in a sentence. `repair`: what would let it go on. `shared`: there are others."""

    reason: Reason
    text: str
    repair: str
    events: tuple[At, ...] = ()
    shared: bool = False

    @property
    def would_do(self) -> str:
        """The words before the repair: where several obstacles stop the order, one of their repairs is not enough."""
        return f"{WOULD_DO} together with the others" if self.shared else WOULD_DO


@dataclass(frozen=True, slots=True)
class Story:
    """Why an outcome can be seen or a finding is made. `about`: "outcome", or the name of the flag.

    `first` and `second` are the two accesses between which order is missing, `steps` how it would go, `axiom` what
    would then forbid the outcome. `rule`: what a finding breaks where no order is concerned.
    """

    about: str
    first: At | None
    second: At | None
    obstacles: tuple[Obstacle, ...]
    steps: tuple[PathStep, ...]
    axiom: str
    rule: str
    witness: Witness


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One axiom that an outcome needs to be forbidden: the cycle, in an execution that every other axiom allows.

    `rests_on`: the instructions on the cycle.
    """

    axiom: str
    rule: str
    steps: tuple[PathStep, ...]
    rests_on: tuple[At, ...]
    witness: Witness


@dataclass(frozen=True, slots=True)
class Waiting(InFile):
    """A thread that waits for ever. `goes_on`: what would let it go on. `span`: the instruction that waits."""

    thread: str
    text: str
    reason: Reason
    goes_on: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class HangExplanation:
    """A hang: who waits, and the execution so far."""

    waiting: tuple[Waiting, ...]
    witness: Witness


@dataclass(frozen=True, slots=True)
class Dependence:
    """A decision that makes the difference. `allowed_by`: the reading under which the outcome can be seen, `obstacles`:
    what a program has to add so that it does not matter."""

    decision: str
    question: str
    default: str
    other: str
    allowed_by: str
    obstacles: tuple[Obstacle, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one question is answered as it is."""

    test: str
    path: str
    model: str
    question: str
    observation: str
    stories: tuple[Story, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    stuck: HangExplanation | None = None
    depends: tuple[Dependence, ...] = ()
    note: str = ""

    @property
    def never(self) -> bool:
        """True if no execution has the outcome that is asked about. Findings are of executions with other outcomes."""
        never = self.observation == Observation.NEVER.value and self.question.endswith(")")
        return never and all(story.about != "outcome" for story in self.stories)
