"""What an engine answers: closed lists of words, the execution it found, the findings it made.

In: nothing. Out: frozen types that both engines fill and `report` prints. "What happens" (Observation), "does the
file's question hold" (holds) and "is that what was expected" (report) are three different words everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from memmodel.base.oneline import count, shown
from memmodel.litmus.syntax import Quantifier
from memmodel.ptx.vocabulary import Place
from memmodel.source import Span

if TYPE_CHECKING:
    from networkx import MultiDiGraph


ENGINES = ("auto", "z3", "enumerate")
"""The words for engines; `auto` takes the one that is expected to be faster."""


class Observation(Enum):
    """What happens to the condition over all consistent executions in which every thread ends."""

    NEVER = "never"
    SOMETIMES = "sometimes"
    ALWAYS = "always"
    UNDECIDED = "undecided"  # the budget ran out, or the test is beyond a limit; `reason` says which
    VACUOUS = "vacuous"  # no execution reaches the end, so there is nothing to observe

    def answers(self, quantifier: Quantifier) -> bool | None:
        """True if the file's condition holds; None when undecided. `forall` needs at least one execution."""
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
    (None: half of the machine's, at most 4 GB). `original`: the budget as it was given, if this is what is left of it;
    messages name that one.
    """

    effort: int = 100_000_000
    seconds: float = 120.0
    memory: int | None = None
    original: Budget | None = field(default=None, compare=False, repr=False)

    @property
    def out_of_effort(self) -> str:
        return f"the budget of {(self.original or self).effort:,} solver steps ran out"

    @property
    def out_of_seconds(self) -> str:
        return f"the budget of {(self.original or self).seconds:g} seconds ran out"

    @property
    def out_of_memory(self) -> str:
        given = self.original.memory if self.original is not None else None
        return f"the budget of {(given or self.memory or 0) / 1_000_000:,.0f} MB of memory ran out"


@dataclass(frozen=True, slots=True, repr=False)
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
    span: Span | None = field(default=None, compare=False)

    @property
    def line(self) -> int | None:
        """The line of its instruction; None for an event without one."""
        return self.span.line if self.span else None

    @property
    def where(self) -> str:
        """`P0, line 5`, or `initial write`."""
        return f"{self.thread}, line {self.line}" if self.thread and self.line else self.thread or "initial write"

    def __repr__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        return shown("ShownEvent", f"{self.label}: {self.text}", self.thread or "", line)


class EvaluatedExecution:
    """The execution of a witness: an Execution as `referee.evaluate` takes it, and the ranks of its total orders.

    `why` explains with it. A pickled witness has none. `known`: results that were computed from the execution. `spell`:
    makes the fields of the witness. `choice`: the choices of the execution, if it was replayed (`referee.choice`).
    """

    __slots__ = ("choice", "execution", "known", "ranks", "spell")

    def __init__(
        self, execution: object, ranks: Mapping[int, Sequence[int]], spell: Callable[[], Witness] | None = None
    ) -> None:
        self.execution = execution
        self.ranks = ranks
        self.known: dict[object, object] = {}
        self.spell = spell
        self.choice: object = None

    def __reduce__(self) -> tuple[object, ...]:
        return (type(None), ())


@dataclass(frozen=True, slots=True, repr=False)
class Witness:
    """One consistent execution.

    `edges`: relation name -> pairs of uids (po, rf, co, fr, rmw, sync edges and whatever the model shows).
    `registers`: (thread, register) -> value at the end. `memory`: location -> value at the end. `waits`: a sentence for
    each thread that waits for ever in it. `asked`: the registers that the test's questions name; None: all of them.
    """

    events: tuple[ShownEvent, ...]
    edges: dict[str, tuple[tuple[int, int], ...]]
    registers: dict[tuple[str, str], int]
    memory: dict[str, str]
    waits: tuple[str, ...] = ()
    asked: frozenset[tuple[str, str]] | None = None
    evaluated: EvaluatedExecution | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def of(evaluated: EvaluatedExecution) -> Witness:
        """The witness of an execution. Its fields are made when they are first read: most never are."""
        witness: Witness = object.__new__(Witness)
        object.__setattr__(witness, "evaluated", evaluated)
        return witness

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """A field that is not spelled out yet."""
            evaluated = None if name == "evaluated" else self.evaluated
            if evaluated is None or evaluated.spell is None:
                raise AttributeError(name)
            spelled, evaluated.spell = evaluated.spell(), None
            for field_name in _SPELLED:
                object.__setattr__(self, field_name, getattr(spelled, field_name))
            return object.__getattribute__(self, name)

    def __repr__(self) -> str:
        ends = ", ".join(f"{thread}:{name} = {value}" for (thread, name), value in self.registers.items())
        memory = ", ".join(f"{name} = {value}" for name, value in self.memory.items())
        return shown("Witness", count(len(self.events), "event"), *self.waits, ends, memory)

    def graph(self) -> MultiDiGraph:
        """The execution as a graph of networkx: events are nodes, and the key of an edge is its relation's name."""
        from memmodel.network import graph

        return graph(self)


_SPELLED = ("events", "edges", "registers", "memory", "waits", "asked")

HANG = "hang"
"""The flag of a finding that no rule of a model makes: some execution in which a thread waits for ever."""


@dataclass(frozen=True, slots=True, repr=False)
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

    def __repr__(self) -> str:
        events = (event for event in (self.first, self.second) if event is not None)
        ends = dict.fromkeys(f"{event.thread}: {event.text}" for event in events)
        return shown("Finding", self.flag, " and ".join(ends), self.rule, *self.witness.waits)


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds spent reading, encoding (or enumerating set-up) and solving."""

    parse: float = 0.0
    encode: float = 0.0
    solve: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The answer of an engine about one test under one model.

    `witness`: an execution that satisfies the condition (sometimes, always). `counter`: one that does not (sometimes,
    never). `axioms`: for never, the axioms that forbid the condition. `findings`: over all executions that end, or in
    which some thread waits for ever; one for each flag and pair of places in the test. `reason`: why it is undecided or
    vacuous. `unsearched`: why the findings may not be complete; "" if they are. `with_condition`: the flags that are
    also raised in some execution that satisfies the condition; None: not looked for. `judged`: how many candidates
    enumeration judged.
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
    judged: int = 0

    def __repr__(self) -> str:
        because = f"forbidden by {', '.join(self.axioms)}" if self.axioms else ""
        flags = f"flags {', '.join(self.flags)}" if self.findings else ""
        return shown("Answer", f"{self.observation.value} ({self.engine})", because, self.reason, flags)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that were raised, each once; HANG among them."""
        return tuple(dict.fromkeys(finding.flag for finding in self.findings))

    @property
    def hang(self) -> Finding | None:
        """An execution in which some thread waits for ever."""
        return next((finding for finding in self.findings if finding.flag == HANG), None)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """An answer, asked of the other engine as well. `reason`: why that one has no answer; empty if it agrees.
    `executions`: how many candidates enumeration judged.
    """

    engine: str
    executions: int = 0
    reason: str = ""

    @property
    def agrees(self) -> bool:
        return not self.reason

    @property
    def text(self) -> str:
        """`confirmed by enumeration: 36 executions`, `confirmed by Z3`, `not confirmed: too large to enumerate`."""
        if self.reason:
            return f"not confirmed: {self.reason}"
        if self.engine == "z3":
            return "confirmed by Z3"
        return f"confirmed by enumeration: {self.executions:,} execution{'' if self.executions == 1 else 's'}"


@dataclass(frozen=True, slots=True, repr=False)
class FinalValues:
    """One final state: values of the registers and locations shown, and whether it satisfies the condition."""

    values: tuple[tuple[str, int], ...]
    satisfies: bool

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.values)
        return shown("FinalValues", "satisfies the condition" if self.satisfies else "", values)


@dataclass(frozen=True, slots=True, repr=False)
class Outcomes:
    """All final states of a test under a model; `complete` False, and `reason`, if there may be others.

    `left_out`: large arrays that the states do not show, because the question does not name their elements.
    """

    states: tuple[FinalValues, ...]
    engine: str
    complete: bool = True
    reason: str = ""
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        satisfying = sum(state.satisfies for state in self.states)
        more = "" if self.complete else f"undecided, there may be more: {self.reason}"
        states = f"{count(len(self.states), 'final state')}, {satisfying} satisfying the condition"
        return shown("Outcomes", states, more)
