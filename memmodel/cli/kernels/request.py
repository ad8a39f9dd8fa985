"""The options of `memmodel kernel`, and what they mean.

In: what was typed. Out: `KernelRequest`. Settled here: which options do not go together.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memmodel.base.resources import JOINED
from memmodel.cli.options import parse_budget
from memmodel.errors import InputError

if TYPE_CHECKING:
    from memmodel.answer import Budget
    from memmodel.kernel.order.verdict import KernelVerdict
    from memmodel.kernel.question import LaunchWords
    from memmodel.kernel.question.asking import KernelText

SECONDS = 600.0
"""For one verdict, unless --timeout says otherwise."""


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """The options of the command. `after_dashes`: the words after `--`, which are options of the compiler."""

    files: tuple[str, ...]
    launch: str | None
    grid: str | None
    block: str | None
    cluster: str | None
    dynamic_shared: int | None
    values: tuple[str, ...]
    entries: tuple[str, ...]
    model: str
    assume: str | None
    cta: tuple[str, ...]
    readings: bool
    schedules: int
    assume_pure: tuple[str, ...]
    any_grid: bool
    any_trips: bool
    family: str | None
    unwritten: bool
    mutate: bool
    annotate: bool
    page: str | None
    what_if: tuple[str, ...]
    fix: bool
    jobs: int
    json_out: str | None
    sarif_out: str | None
    litmus: str | None
    statistics: bool
    budget: str | None
    timeout: float | None
    memory: str | None
    include: tuple[str, ...]
    short: bool
    baseline: str | None
    write_baseline: str | None
    init_launch: bool
    launch_schema: bool
    no_cache: bool
    resume: str | None
    executor: str | None
    after_dashes: tuple[str, ...]

    @property
    def file(self) -> str:
        """The only file."""
        return self.files[0]

    @property
    def entry(self) -> str | None:
        """The only entry that was named."""
        return next(iter(self.entries), None)

    @property
    def whole_model(self) -> str:
        """The model with the readings of --assume."""
        return self.model if self.assume is None else JOINED.join((self.model, *self.assume.split(",")))

    @property
    def several(self) -> bool:
        """True if several kernels are to be judged."""
        return len(self.files) > 1 or len(self.entries) > 1

    @property
    def directories(self) -> bool:
        """True if all kernels of a directory are to be judged."""
        return any(os.path.isdir(file) for file in self.files)

    @property
    def listed(self) -> bool:
        """True if the files are the modules of one list of launches. Raises InputError."""
        from memmodel.kernel.launch import read_json

        if self.launch is None or self.entries:
            return False
        data = read_json(self.launch)
        return isinstance(data, list) or (isinstance(data, dict) and "launches" in data)

    @property
    def synchronization_report(self) -> bool:
        """True if mutants are to show what each synchronization is for."""
        return self.annotate or self.page is not None

    @property
    def of_mutants(self) -> bool:
        """True if the question is about the mutants of the kernel."""
        return self.mutate or self.synchronization_report

    def cost(self) -> Budget:
        """What all that is asked of one kernel may cost together. Raises InputError."""
        return parse_budget(self.budget, self.timeout or SECONDS, self.memory)

    def judged(
        self, text: KernelText, budget: Budget, on_verdict: Callable[[KernelVerdict], None] | None = None
    ) -> KernelVerdict:
        """The verdict on one launch. `on_verdict`: is given it before the questions about others are answered. Raises
        InputError.
        """
        from memmodel.kernel.check import check_kernel

        return check_kernel(
            text, self.launch, entry=self.entry, words=self.words(), compiler=self.after_dashes, model=self.whole_model,
            ctas=self.ctas(), readings=self.readings, schedules=self.schedules, assume_pure=self.assume_pure,
            budget=budget, litmus=self.litmus, any_grid=self.any_grid, any_trips=self.any_trips,
            unwritten=self.unwritten, on_verdict=on_verdict, baseline=self.baseline,
            write_baseline=self.write_baseline,
        )  # fmt: skip

    def ctas(self) -> list[tuple[int, int, int]]:
        """The CTAs to look at. Raises InputError."""
        return [_index(text) for text in self.cta]

    def words(self) -> LaunchWords:
        """What the options say of a launch. Raises InputError."""
        from memmodel.kernel.question import LaunchWords
        from memmodel.kernel.question.requests import dimensions

        sizes = {"grid": self.grid, "block": self.block, "cluster": self.cluster}
        read = {name: None if text is None else dimensions(text, f"--{name}") for name, text in sizes.items()}
        values = {}
        for text in self.values:
            name, equals, value = text.partition("=")
            if not (name and equals and value):
                raise InputError(f"--set {name[:40]}: not a parameter and its value", hint="such as --set n=512")
            values[name] = value
        return LaunchWords(read["grid"], read["block"], read["cluster"], self.dynamic_shared, values)

    def refuse_what_does_not_go_together(self) -> None:
        """Raises InputError for options that ask for different things."""
        about_the_launch = bool(self.readings or self.litmus or self.any_grid or self.any_trips)
        if (self.fix or self.of_mutants) and (self.short or self.write_baseline):
            raise InputError("--short and --write-baseline do not go with --fix, --mutate, --annotate and --report")
        if self.of_mutants and (
            about_the_launch or self.cta or self.assume_pure or self.sarif_out or self.unwritten
        ):  # fmt: skip
            raise InputError(
                "--mutate, --annotate and --report go with --json, --jobs and options of the launch: each mutant is "
                "judged by one run of all CTAs, and its readings are asked by themselves"
            )
        if self.mutate and self.synchronization_report:
            raise InputError("--mutate does not go with --annotate and --report, which say what the mutants show")
        if self.what_if and (
            self.fix or self.of_mutants or self.short or self.write_baseline or self.sarif_out or self.litmus
            or self.any_grid or self.any_trips
        ):  # fmt: skip
            raise InputError(
                "--what-if goes with --json, --readings and options of the launch, not with other questions"
            )
        if self.family is not None and (
            self.cta or self.fix or self.of_mutants or self.what_if or self.short or self.sarif_out or about_the_launch
        ):
            raise InputError(
                "--sweep goes with --json, --jobs and options of the launch, and not with questions about one"
            )
        if self.fix and (self.of_mutants or about_the_launch):
            raise InputError(
                "--fix goes with --json and --sarif, not with --mutate, --report, --readings, --litmus or --any-…"
            )


def _index(text: str) -> tuple[int, int, int]:
    """`1`, `1,0` or `1,0,2`. Raises InputError."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() and len(part) < 11 for part in parts):
        raise InputError(f"--cta {text[:40]}: not the index of a CTA", hint="such as 1,0,0")
    x, y, z = [*(int(part) for part in parts), 0, 0][:3]
    return x, y, z
