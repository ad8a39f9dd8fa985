"""What is judged: a kernel, its launch, a model, and what is asked of them.

In: module, entry, launch, model, options. Out: `KernelCase`, which runs the launch under schedules and counts the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from time import process_time

from memmodel.cat.syntax import Model
from memmodel.kernel.flow.common_polls import PolledAlone
from memmodel.kernel.launch import Launch
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.verdict import FindingKey, Statistics
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction, PtxModule

MAX_INSTRUCTIONS, MAX_JUDGED = 4_000_000, 40_000
"""Instructions in all the schedules that are explored, and events that are judged in them."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """`schedules`: as many are looked at where choices matter; all of them if they are few.

    `ctas`, `assumed`, `steps`: as in `Schedule`. `widens`: all CTAs may be run after those of `ctas`. `readings`: other
    models, by the name of the reading and its answer. `until_finding`: stop at the first serious finding that is not
    `known`, and also if all of `mended` are still found; readings are asked only if there is neither a finding nor
    anything open. `before_model`: then, stop before the model is asked where the run itself shows such a finding.
    `known_to`: findings that do not count, by the name of a reading, which is then asked for others only. `any_grid`,
    `any_trips`: say whether the verdict holds beyond the launch; `by_proof`: without judging other launches.
    `unwritten`: find reads of shared memory that nothing writes. `depends`: say on which readings the verdict may
    depend, if none is asked. `by_instruction`: report each instruction that takes part in a race; otherwise one of
    those that are alike. `explain`: say what is missing between the accesses of a finding. `instructions`: where a
    condition does not hold, schedules in which warps are late are looked at until so many are executed in all.
    """

    schedules: int = 8
    ctas: tuple[int, ...] = ()
    widens: bool = False
    assumed: tuple[str, ...] = ()
    readings: tuple[tuple[str, str, Model], ...] = ()
    until_finding: bool = False
    known: frozenset[FindingKey] = frozenset()
    mended: frozenset[FindingKey] = frozenset()
    any_grid: bool = False
    any_trips: bool = False
    by_proof: bool = False
    steps: int | None = None
    unwritten: bool = False
    by_instruction: bool = False
    depends: bool = False
    before_model: bool = False
    explain: bool = True
    known_to: Mapping[str, AbstractSet[object]] | None = None
    instructions: int = MAX_INSTRUCTIONS


@dataclass(slots=True)
class Effort:
    """The work of a judgement: instructions that were run, events of other schedules that were judged, figures."""

    instructions: int = 0
    events: int = 0
    statistics: Statistics = field(default_factory=Statistics)

    @property
    def spent(self) -> bool:
        """True if no other schedule is to be looked at."""
        return self.instructions > MAX_INSTRUCTIONS or self.events > MAX_JUDGED

    def add_seconds(self, what: str, started: float) -> None:
        """Count the time since a moment."""
        seconds = self.statistics.seconds
        seconds[what] = seconds.get(what, 0.0) + process_time() - started


@dataclass(frozen=True, slots=True)
class KernelCase:
    """A launch of a kernel, to be judged under a model. `effort` grows with each run. `alone`: `entry` is its function,
    and no run counts in which what that needs is not so."""

    module: PtxModule
    entry: PtxFunction
    launch: Launch
    model: Model
    options: CheckOptions = CheckOptions()
    effort: Effort = field(default_factory=Effort)
    alone: PolledAlone | None = None

    @property
    def body(self) -> tuple[PtxInstruction, ...]:
        return self.entry.body or ()

    def run(self, schedule: Schedule) -> LaunchTrace:
        """The launch under a schedule. Raises Refused."""
        started = process_time()
        try:
            trace = run_launch(self.module, self.entry, self.launch, schedule)
        finally:
            self.effort.add_seconds("run", started)
        self.effort.statistics.runs += 1
        self.effort.instructions += trace.instructions
        if self.alone is not None and not self.alone.holds(trace):
            raise Refused("the threads of a CTA do not poll in common", self.entry.span)
        return trace

    def attempt(self, schedule: Schedule) -> LaunchTrace | Refused:
        """The launch under a schedule, or why it cannot be run."""
        try:
            return self.run(schedule)
        except Refused as error:
            return error

    def refusal(self, schedule: Schedule) -> Refused | None:
        """Why the launch cannot be run under a schedule; None if it can."""
        outcome = self.attempt(schedule)
        return outcome if isinstance(outcome, Refused) else None
