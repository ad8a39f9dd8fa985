"""The verdict on one launch: findings, what is open, what was explored.

In: nothing. Out: `KernelVerdict` and its parts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from memmodel.base.oneline import shown
from memmodel.kernel.launch import Launch
from memmodel.ptx.module.syntax import Location, PtxInstruction
from memmodel.source import in_lines

KernelWord = Literal["clean", "findings", "depends", "explored", "partial", "undecided"]

EQUAL_STORES = "equal-store-race"
"""Threads store the same bytes to one place and nothing orders them."""

SAME_STORE = "same-store-race"
"""Lanes store unknown values to one place with one instruction, and nothing orders them."""

HARMLESS = (EQUAL_STORES,)
"""Races that no read can observe; they are reported and do not change the verdict."""


FindingKey = tuple[str, tuple[int, ...]]
"""A rule, and the lines of the instructions that break it."""


def rule_in_lines(rule: str, lines: Collection[object]) -> str:
    """`data-race of lines 3 and 5`; the rule alone if there are no lines."""
    return f"{rule} of {in_lines(lines)}" if lines else rule


@dataclass(frozen=True, slots=True)
class FindingPlace:
    """One access or operation of a finding. `turn`: how often the thread had executed the instruction before.

    `stage`: the place of a ring that it is about, from 0; -1 if the instruction does not walk round a ring.
    """

    instruction: PtxInstruction
    what: str
    cta: int
    warp: int
    lane: int
    thread: int = -1
    role: int = -1
    turn: int = 0
    stage: int = -1


@dataclass(slots=True)
class KernelFinding:
    """Something wrong, with its places. `count`: pairs of classes that are alike.

    `ignored`: why it does not count, if a comment or a baseline says so. `reason`, `missing`: what would order them;
    `mentioned`: the instructions that `missing` names by their lines; `way`: how far the order leads. `events`,
    `steps`: the numbers of sides and way in the graph that was judged.
    """

    rule: str
    kind: str
    message: str
    sides: tuple[FindingPlace, ...]
    where: str = ""
    count: int = 1
    missing: str = ""
    reason: str = ""
    mentioned: tuple[PtxInstruction, ...] = ()
    way: tuple[FindingPlace, ...] = ()
    events: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    ignored: str = ""

    @property
    def key(self) -> FindingKey:
        """The rule and the lines: equal for findings that are not told apart."""
        return self.rule, tuple(sorted({side.instruction.line for side in self.sides}))

    @property
    def harmless(self) -> bool:
        return self.rule in HARMLESS


@dataclass(slots=True)
class Statistics:
    """Figures of one judgement. `seconds`: of run, order and conditions; `memory` in bytes."""

    instructions: int = 0
    threads: int = 0
    accesses: int = 0
    events: int = 0
    judged: int = 0
    pairs: int = 0
    roles: int = 0
    runs: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the runs of a verdict came to. `unreached`: the lines of synchronizations that no thread executed;
    `skipped`: those where loops begin of which no round was run; `single`: mbarrier objects that ended at most
    one phase.
    """

    synchronizations: int
    unreached: tuple[int, ...]
    loops: int
    skipped: tuple[int, ...]
    objects: int
    single: int


@dataclass(slots=True)
class KernelReading:
    """What another reading of the documents says. `gone`: findings of the default that it has not; `new`: others.

    `everywhere`: it was asked about all runs, not only about the first one.
    """

    name: str
    answer: str
    gone: list[KernelFinding]
    new: list[KernelFinding]
    everywhere: bool = True


@dataclass(frozen=True, slots=True)
class PossibleReadings:
    """Readings, as `D2 accessor`, under which the representative run has findings, or has not all that it has.
    `compared`: their flags were evaluated; if not, they may."""

    names: tuple[str, ...] = ()
    compared: bool = True


class Growth(NamedTuple):
    """A launch does the same if a parameter is larger by up to `most` times `step`, which is what it grows by for
    `rounds` rounds of its loops.
    """

    param: str
    value: int
    step: int
    rounds: int
    most: int


@dataclass(slots=True, repr=False)
class KernelVerdict:
    """What is wrong with a launch, what is open, and what was taken for granted."""

    entry: str
    launch: Launch
    model: str
    findings: list[KernelFinding] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    """Conditions that do not hold or were not checked."""
    choices: list[str] = field(default_factory=list)
    """What depends on the schedule, if that was explored."""
    explored: int = 0
    """How many schedules were looked at."""
    exhaustive: bool = False
    """True if these are all that there are."""
    ctas: tuple[int, ...] = ()
    """The CTAs that were looked at; empty: all."""
    whole: bool = False
    """True if these CTAs stand for all."""
    assumptions: dict[str, str] = field(default_factory=dict)
    """What was taken for granted, each with what it takes to drop it."""
    notes: list[str] = field(default_factory=list)
    readings: list[KernelReading] = field(default_factory=list)
    beyond: dict[str, str] = field(default_factory=dict)
    """Whether the verdict holds for any grid and any trip count, by the question."""
    smaller: dict[str, KernelWord] = field(default_factory=dict)
    """The words of other launches with fewer CTAs or rounds, by what differs."""
    growth: tuple[Growth, ...] = ()
    """The parameters with which loops may run longer, where that was asked and shown."""
    statistics: Statistics = field(default_factory=Statistics)
    reached: frozenset[int] = frozenset()
    """The numbers of the instructions that left a trace."""
    coverage: Coverage | None = None
    """None if no run came to its end."""
    spent: bool = False
    """True if the budget ran out."""
    possible: PossibleReadings = PossibleReadings()
    """The readings on which the verdict may depend, where none was asked."""
    sources: Mapping[int, Location] = field(default_factory=dict)
    """By the line of the PTX its place in the source, if it has one."""
    compiled: bool = False
    """True if the PTX lies in no file, so that no user sees it."""

    @property
    def serious(self) -> list[KernelFinding]:
        """The findings that change the verdict."""
        return [finding for finding in self.findings if not finding.harmless and not finding.ignored]

    @property
    def known_keys(self) -> frozenset[FindingKey]:
        """The findings that are no news: those that change the verdict, and those that are ignored."""
        return frozenset(finding.key for finding in self.findings if not finding.harmless)

    @property
    def equal_stores(self) -> frozenset[int]:
        """The numbers of stores that race with others, and are harmless because they store the same."""
        return frozenset(
            side.instruction.number for finding in self.findings if finding.harmless for side in finding.sides
        )

    @property
    def unsettled(self) -> list[str]:
        """Why the verdict is undecided, or its findings are not all there may be: open conditions, and what of the
        launch was guessed.
        """
        guesses = [f"not given: {what} ({how})" for what, how in self.launch.guessed.items()]
        return [*self.open, *(guesses if not self.serious else [])]

    @property
    def clean(self) -> bool:
        """True if nothing was found in the part that was judged."""
        return self.word in ("clean", "explored", "partial")

    def __repr__(self) -> str:
        findings = [
            f"{finding.rule}: {finding.message}" if finding.message else finding.rule for finding in self.findings
        ]
        return shown("KernelVerdict", f"{self.entry} under {self.model}: {self.word}", *findings, *self.open)

    @property
    def word(self) -> KernelWord:
        if self.serious:
            gone = {id(finding) for reading in self.readings for finding in reading.gone if reading.everywhere}
            return "depends" if all(id(finding) in gone for finding in self.serious) else "findings"
        if self.open or self.launch.guessed:
            return "undecided"
        if self.choices and not self.exhaustive:
            return "explored"
        return "partial" if self.ctas and not self.whole else "clean"
