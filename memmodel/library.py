"""What the command line does with many tests and with text, for programs.

In: paths, names, text. Out: SuiteResult, ShippedModel, LitmusTest, text. `api` has what is asked about one test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from memmodel import api, batch, cat, litmus
from memmodel.answer import Budget
from memmodel.base.codes import Exit, worst
from memmodel.base.oneline import shown
from memmodel.batch import EXIT_CODES, Entry, Outcome, Settings
from memmodel.litmus.syntax import Layout, LitmusTest

if TYPE_CHECKING:
    from memmodel.records.answers import ErrorKind


@dataclass(frozen=True, slots=True, repr=False)
class SuiteResult:
    """The results of many tests: one entry for every question of a test and model, in the order of the files.

    `unlisted`: files that a CSV of expectations does not list, which did not run. `seconds`: how long it took.
    """

    entries: tuple[Entry, ...]
    unlisted: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    no_expect: bool = False

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return shown("SuiteResult", self.summary)

    @property
    def summary(self) -> str:
        """`105 tests: 105 as expected, 0 differ, 0 bad, 0 undecided (1.9 s)`."""
        return batch.summary(self.entries, len(self.unlisted), self.seconds)

    @property
    def surprises(self) -> tuple[Entry, ...]:
        """The entries to look at: those that differ, and those without an answer."""
        quiet = (Outcome.AS_EXPECTED, Outcome.NO_EXPECTATION, Outcome.KNOWN)
        return tuple(entry for entry in self.entries if entry.outcome not in quiet)

    @property
    def expected_nothing(self) -> bool:
        """True if no test has an expectation. Such a run could not fail."""
        return bool(self.entries) and all(entry.outcome is Outcome.NO_EXPECTATION for entry in self.entries)

    @property
    def exit_code(self) -> Exit:
        """What `memmodel suite` exits with; bad input where nothing was expected, unless that was asked for."""
        if self.expected_nothing and not self.no_expect:
            return Exit.BAD_INPUT
        return worst(EXIT_CODES[entry.outcome] for entry in self.entries)

    def to_json(self) -> list[dict[str, object]]:
        """The entries as `memmodel suite --json` writes them."""
        return [entry_record(entry) for entry in self.entries]


def suite(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    models: str | Sequence[str] | None = None,
    *,
    expected: str | os.PathLike[str] | None = None,
    against: str | None = None,
    under: Sequence[str] = (),
    include: Sequence[str] = (),
    no_expect: bool = False,
    jobs: int = 1,
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
    progress: Callable[[Entry], None] | None = None,
) -> SuiteResult:
    """Run many tests. The options are those of `memmodel suite`.

    `paths`: files and directories; None: the shipped suite. `models`: names and paths of cat files; None: those that
    each test's Expect line names. `expected`: a CSV of expectations. `against`: the model whose Expect words count.
    `under`: models under which every test runs as well. `include`: folders that models may include from besides their
    own. `progress` is called with each entry. Raises InputError for a
    path or a model that cannot be used; a test that cannot is an entry.
    """
    started = perf_counter()
    settings = Settings(engine, budget, bound, against, tuple(under), tuple(include))
    cat.allow_includes(include)
    work = batch.plan(_several(paths), _several(models), None if expected is None else os.fspath(expected))
    batch.preload(settings.under)
    entries: list[Entry] = []
    for group in batch.run(work, settings, jobs):
        entries += group
        if progress is not None:
            for entry in group:
                progress(entry)
    return SuiteResult(tuple(entries), work.unlisted, perf_counter() - started, no_expect)


def _several(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None) -> list[str]:
    if paths is None:
        return []
    return [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def entry_record(entry: Entry, *, explained: bool = False) -> dict[str, object]:
    """The JSON object of one entry: its report, or an error. `explained`: with the reasons."""
    from memmodel.report.record import failure, record

    if entry.report is not None:
        return record(entry.report, entry.message, explained=explained)
    kinds: dict[Outcome, ErrorKind] = {Outcome.INTERNAL: "internal", Outcome.UNDECIDED: "limit"}
    return failure(entry.path, entry.model, kinds.get(entry.outcome, "input"), entry.message, entry.span)


@dataclass(frozen=True, slots=True, repr=False)
class ShippedModel:
    """A model that `check` takes by its name. `reading`: it is the default with one decision the other way."""

    name: str
    title: str
    reading: bool = False

    def __repr__(self) -> str:
        return shown("ShippedModel", f"{self.name}: {self.title}")


def models() -> tuple[ShippedModel, ...]:
    """The shipped models with their titles, then the readings of the default."""
    from memmodel.cat.decisions import decisions

    plain = [ShippedModel(name, cat.load_model(name).title) for name in cat.shipped_models()]
    readings = [
        ShippedModel(side.model, f"{decision.question} {side.answer}", reading=True)
        for decision in decisions()
        for side in decision.readings
        if side.model is not None
    ]
    return (*plain, *readings)


def parse(test: api.TestInput) -> LitmusTest:
    """A test from a path, a Source, or its text (a string with a newline in it). Raises InputError."""
    return litmus.parse_litmus(api.read(test))


def format(test: api.TestInput | LitmusTest, layout: Layout | str | None = None) -> str:
    """A test in its canonical form, as `memmodel fmt` prints it; `layout`: `blocks` or `columns` instead of its own.

    Its comments are kept. Raises InputError for a text that is no test, and for what the other layout cannot say.
    """
    from memmodel.isa.comments import print_commented

    parsed = test if isinstance(test, LitmusTest) else parse(test)
    return print_commented(parsed, parsed.layout if layout is None else Layout(layout))
