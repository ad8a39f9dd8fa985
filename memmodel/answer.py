"""What an engine answers: closed lists of words, the execution it found, the findings it made.

In: nothing. Out: frozen types that both engines fill and `report` prints. "What happens" (Observation), "does the
file's question hold" (holds) and "is that what was expected" (report) are three different words everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from memmodel.litmus.syntax import Quantifier
from memmodel.ptx import Place
from memmodel.source import Span


class Observation(Enum):
    """What happens to the condition over all consistent executions in which every thread ends."""

    NEVER = "never"
    SOMETIMES = "sometimes"
    ALWAYS = "always"
    UNDECIDED = "undecided"  # the budget ran out, or the test is beyond a limit; `reason` says which
    VACUOUS = "vacuous"  # no execution reaches the end, so there is nothing to observe

    def answers(self, quantifier: Quantifier) -> bool | None:
        """Does the file's question hold? None when undecided. `forall` needs at least one execution."""
        if self is Observation.UNDECIDED:
            return None
        if quantifier is Quantifier.EXISTS:
            return self in (Observation.SOMETIMES, Observation.ALWAYS)
        if quantifier is Quantifier.NOT_EXISTS:
            return self in (Observation.NEVER, Observation.VACUOUS)
        return self is Observation.ALWAYS


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work one answer may cost: everything that belongs to it, from encoding to findings.

    `effort`: solver steps (Z3 resource units), the same on every machine; `seconds`; `memory` in bytes
    (None: half of the machine's, at most 4 GB).
    """

    effort: int = 100_000_000
    seconds: float = 120.0
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """One event of a witness, in the reader's terms. `thread` None: an initial write. `text`: `W.release.gpu y = 1`.

    `tags`: the base sets that it is in. `value`: its bytes as a number, if it accesses memory.
    """

    uid: int
    label: str  # a, b, c … in order of threads and program order
    thread: str | None
    place: Place | None
    text: str
    tags: frozenset[str]
    location: str | None = None
    value: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


class Ground:
    """The execution of a witness, as `referee.evaluate` takes it: an Execution, and the ranks of its total orders.

    For memmodel.why. It stays in the process that found it: a witness that is sent to another one has none there.
    `known`: what was worked out on it.
    """

    __slots__ = ("execution", "known", "ranks")

    def __init__(self, execution: object, ranks: Mapping[int, Sequence[int]]) -> None:
        self.execution = execution
        self.ranks = ranks
        self.known: dict[object, object] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (type(None), ())


@dataclass(frozen=True, slots=True)
class Witness:
    """One consistent execution.

    `edges`: relation name -> pairs of uids (po, rf, co, fr, rmw, sync edges and whatever the model shows).
    `registers`: (thread, register) -> value at the end. `memory`: location -> value at the end. `waits`: a sentence for
    each thread that waits for ever in it.
    """

    events: tuple[ShownEvent, ...]
    edges: dict[str, tuple[tuple[int, int], ...]]
    registers: dict[tuple[str, str], int]
    memory: dict[str, str]
    waits: tuple[str, ...] = ()
    ground: Ground | None = field(default=None, compare=False, repr=False)


HANG = "hang"
"""The flag of a finding that no rule of a model makes: some execution in which a thread waits for ever."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a flag of the model reports in some consistent execution, which `witness` shows; or a hang.

    `first`, `second`: the events that the flag relates; the same event twice if it names one, None if it names none.
    `rule`: the rule that a bad address or an undefined instruction of one thread breaks.
    """

    flag: str
    witness: Witness
    first: ShownEvent | None = None
    second: ShownEvent | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds spent reading, encoding (or enumerating set-up) and solving."""

    parse: float = 0.0
    encode: float = 0.0
    solve: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """All that an engine found out about one test under one model.

    `witness`: an execution that satisfies the condition (sometimes, always). `counter`: one that does not (sometimes,
    never). `axioms`: for never, the axioms that forbid the condition. `findings`: over all executions that end, or in
    which some thread waits for ever; one for each flag and pair of places in the test. `reason`: why it is undecided or
    vacuous. `unsearched`: what was not looked at, and why; "" if the findings are complete. `with_condition`: the flags
    that are also raised in some execution that satisfies the condition; None: not looked for.
    """

    observation: Observation
    engine: str
    witness: Witness | None = None
    counter: Witness | None = None
    axioms: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    unsearched: str = ""
    times: Times = Times()
    events: int = 0
    with_condition: tuple[str, ...] | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that were raised, each once; HANG among them."""
        return tuple(dict.fromkeys(finding.flag for finding in self.findings))

    @property
    def hang(self) -> Finding | None:
        """An execution in which some thread waits for ever."""
        return next((finding for finding in self.findings if finding.flag == HANG), None)


@dataclass(frozen=True, slots=True)
class FinalValues:
    """One final state: values of the registers and locations shown, and whether it satisfies the condition."""

    values: tuple[tuple[str, int], ...]
    satisfies: bool


@dataclass(frozen=True, slots=True)
class Outcomes:
    """All final states of a test under a model; `complete` False, and `reason`, if there may be others."""

    states: tuple[FinalValues, ...]
    engine: str
    complete: bool = True
    reason: str = ""
