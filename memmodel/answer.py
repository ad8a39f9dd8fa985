"""What an engine answers: closed lists of words, the execution it found, the races it saw.

In: nothing. Out: frozen types that both engines fill and `report` prints. "What happens" (Observation), "does the
file's question hold" (holds) and "is that what was expected" (report) are three different words everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from memmodel.litmus.syntax import Quantifier
from memmodel.ptx import Place
from memmodel.source import Span


class Observation(Enum):
    """What happens to the condition over all consistent executions that reach the end of every thread."""

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
    """How much work an engine may do. `effort`: solver steps (Z3 resource units); `seconds`: a last resort."""

    effort: int = 100_000_000
    seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """One event of a witness, in the reader's terms. `thread` None: an initial write. `text`: `W.release.gpu y = 1`."""

    uid: int
    label: str  # a, b, c … in order of threads and program order
    thread: str | None
    place: Place | None
    text: str
    tags: frozenset[str]
    location: str | None = None
    value: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Witness:
    """One consistent execution.

    `edges`: relation name -> pairs of uids (po, rf, co, fr, rmw, sync edges and whatever the model shows).
    `registers`: (thread, register) -> value at the end. `memory`: location -> value at the end.
    """

    events: tuple[ShownEvent, ...]
    edges: dict[str, tuple[tuple[int, int], ...]]
    registers: dict[tuple[str, str], int]
    memory: dict[str, int]


@dataclass(frozen=True, slots=True)
class Race:
    """Two events that a flag of the model relates in some consistent execution: the flag's name and both events."""

    flag: str
    first: ShownEvent
    second: ShownEvent


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
    never). `axioms`: for never, the axioms that forbid the condition. `bound`: not None when a loop was cut after that
    many iterations and the answer speaks only of executions up to there. `reason`: why it is undecided or vacuous.
    `hang`: what is missing, one sentence for each thread that waits for ever in some execution; () if none does.
    `with_condition`: the flags raised in some execution that satisfies the condition; None: not looked for.
    """

    observation: Observation
    engine: str
    witness: Witness | None = None
    counter: Witness | None = None
    axioms: tuple[str, ...] = ()
    races: tuple[Race, ...] = ()
    flags: tuple[str, ...] = ()
    bound: int | None = None
    reason: str = ""
    times: Times = Times()
    events: int = 0
    hang: tuple[str, ...] = ()
    with_condition: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One final state: values of the registers and locations shown, and whether it satisfies the condition."""

    values: tuple[tuple[str, int], ...]
    satisfies: bool


@dataclass(frozen=True, slots=True)
class Outcomes:
    """All final states of a test under a model; `complete` False when the budget ran out first."""

    states: tuple[Outcome, ...]
    engine: str
    complete: bool = True
    bound: int | None = None
    reason: str = ""
