"""All edits of a model under many tests: on several processes, in the time that there is, again from where it stopped.

In: a model, tests. Out: Strength. Settled here: tests are tried from the smallest on, and an edit is done with the
first one that fails; so that test is the smallest. Small tests come before all that need an engine. A file keeps what
each chunk of tests has shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from time import monotonic

from memmodel import api
from memmodel.base.labels import Label
from memmodel.errors import BudgetSpent, InputError, TooLarge
from memmodel.events.elaborate import elaborate
from memmodel.limits import within_budget
from memmodel.litmus.syntax import terms_of
from memmodel.mutate.edits import ModelEdit, edits_of
from memmodel.mutate.family import EditFamily
from memmodel.mutate.outcome import EditResult, Fate, NoticedBy, Strength
from memmodel.mutate.proofs import bounds_of_labels, kinds_of
from memmodel.mutate.work import EditJudging, FileFindings, FileJudge
from memmodel.search.journal import Journal
from memmodel.workers import KILLED, ProcessPool, settle, surviving

_CHUNK = 6
"""Small tests that one process judges together."""

_FORMAT = 2
"""Of the lines of a file that keeps what is done."""

Chosen = Callable[[ModelEdit], bool]

_JUDGES: list[FileJudge] = []
_WHILE_IT_RUNS = ExitStack()
"""What holds for a process of several, from its beginning to its end."""


@dataclass(frozen=True, slots=True)
class PathChunk:
    """Tests that are judged together. `large`: by an engine, under these edits; None: by all candidates."""

    paths: tuple[str, ...]
    large: frozenset[int] | None = None


@dataclass(slots=True)
class _RunState:
    """What is known so far. `fails`, `differs`: by edit, the order of the chunk and the notice. `open`: by edit, the
    tests that were not judged; `large`: by test, the edits that an engine has to judge."""

    fails: dict[int, tuple[int, NoticedBy]] = field(default_factory=dict)
    differs: dict[int, tuple[int, NoticedBy]] = field(default_factory=dict)
    open: dict[int, set[str]] = field(default_factory=dict)
    large: dict[str, frozenset[int]] = field(default_factory=dict)
    spent: str = ""
    judged: int = 0

    def take(self, order: int, findings: Sequence[FileFindings]) -> None:
        """Add what a chunk has shown."""
        for of_file in findings:
            for known, notices in ((self.fails, of_file.fails), (self.differs, of_file.differs)):
                for edit, test, before, after in notices:
                    if edit not in known or known[edit][0] > order:
                        known[edit] = order, NoticedBy(test, before, after)
            for edit in of_file.open:
                self.open.setdefault(edit, set()).add(of_file.path)
            if of_file.large:
                self.large[of_file.path] = frozenset(of_file.large)
            self.spent = self.spent or of_file.spent
            self.judged += not of_file.large


def strength(
    judging: EditJudging,
    tests: Sequence[str],
    *,
    wanted: Chosen = lambda edit: True,
    jobs: int = 1,
    journal: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Strength:
    """What the tests make of each edit of the model. `wanted`: which edits; `progress`: tests done, tests.

    Raises InputError for a journal of another run.
    """
    edits = edits_of(judging.model)
    numbers = [number for number, edit in enumerate(edits) if wanted(edit)]
    family = EditFamily(judging.model, edits)
    same = {number for number in numbers if family.members[number].unchanged}
    asked = [number for number in numbers if number not in same]
    ordered = by_size(tests)
    kept = _EditJournal(journal, _key(judging, ordered, asked))
    run = _Run(judging, asked, kept, jobs, progress, len(ordered))
    state = run.state
    with judging.sharing():
        reason = run.small(ordered)
        left = [number for number in asked if number not in state.fails and number not in state.differs]
        proved = _proved(family, left, tests, judging)
        run.asked = [number for number in asked if number not in proved]
        reason = reason or run.large(ordered) or state.spent
    unjudged = set(run.unjudged).union(*state.open.values() if reason else ())
    results = []
    for number in numbers:
        edit = edits[number]
        if number in same:
            results.append(EditResult(edit, Fate.EQUIVALENT, how="the edited expression is the same"))
        elif number in state.fails:
            results.append(EditResult(edit, Fate.FAILS, state.fails[number][1]))
        elif number in state.differs:
            results.append(EditResult(edit, Fate.DIFFERS, state.differs[number][1]))
        elif number in proved:
            results.append(EditResult(edit, Fate.EQUIVALENT, how="no labels of events can tell the expressions apart"))
        elif open_tests := run.not_judged(number):
            many = len(open_tests)
            results.append(EditResult(edit, Fate.UNDECIDED, how=f"{many} test{'s' if many > 1 else ''} not judged"))
        else:
            results.append(EditResult(edit, Fate.SURVIVES))
    return Strength(judging.model.name, results, len(ordered) - len(unjudged), sorted(unjudged), reason)


def by_size(tests: Sequence[str]) -> list[str]:
    """Tests, the smallest first; those that cannot be read last."""

    def size(path: str) -> tuple[float, str]:
        try:
            return sum(len(thread.body) for thread in api.lowered(path).test.threads), path
        except (InputError, TooLarge):
            return float("inf"), path

    return sorted(tests, key=size)


def _proved(family: EditFamily, left: Sequence[int], tests: Sequence[str], judging: EditJudging) -> set[int]:
    """The edits that change nothing, whatever the execution: events have the labels of all these tests. As many as
    there is time for."""
    proved: set[int] = set()
    if not left:
        return proved
    try:
        with within_budget(judging.left()):
            bounds = bounds_of_labels(family, kinds_of(_labels(tests, judging)))
            for number in left:
                if bounds.agrees(family.members[number]):
                    proved.add(number)
    except BudgetSpent:
        pass
    return proved


def _labels(tests: Sequence[str], judging: EditJudging) -> list[Label]:
    """The labels of the events of all tests that can be read."""
    labels: list[Label] = []
    for path in tests:
        try:
            for steps in api.questions(api.lowered(path)):
                graph = elaborate(steps, judging.bound, tuple(terms_of(steps.test.condition)))
                labels += [event.label for event in graph.events]
        except (InputError, TooLarge):
            continue
    return labels


# ---- in processes --------------------------------------------------------------------------------------------------


def _begin(judging: EditJudging) -> None:
    _JUDGES[:] = [FileJudge(judging)]


def _nothing() -> None:
    """Nothing to load in advance: a process loads what it needs with its first chunk."""


def _settle(judging: EditJudging) -> None:
    settle(_nothing)
    _WHILE_IT_RUNS.enter_context(judging.sharing())
    _begin(judging)


def _judge(chunk: PathChunk, alive: Sequence[int], differing: Sequence[int]) -> list[FileFindings]:
    """What a process does with a chunk. An edit that a test of the chunk fails under is not asked for again."""
    judge, findings, left = _JUDGES[-1], list[FileFindings](), list(alive)
    differs = list(differing)
    for path in chunk.paths:
        if chunk.large is None:
            findings.append(judge.small(path, left, differs))
        else:
            findings.append(judge.large(path, [edit for edit in left if edit in chunk.large], differs))
        gone = {edit for edit, *_ in findings[-1].fails}
        left = [edit for edit in left if edit not in gone]
        differs += [edit for edit, *_ in findings[-1].differs]
    return findings


class _Run:
    """Chunks under way."""

    def __init__(
        self,
        judging: EditJudging,
        asked: Sequence[int],
        kept: _EditJournal,
        jobs: int,
        progress: Callable[[int, int], None],
        total: int,
    ) -> None:
        self._judging, self.asked, self._kept, self._jobs = judging, asked, kept, jobs
        self._progress, self._total = progress, total
        self.state = _RunState()
        self.unjudged: dict[str, frozenset[int] | None] = {}  # the edits, or None for all
        self._done = 0

    def small(self, tests: Sequence[str]) -> str:
        """Judge tests by all their candidates; returns why it ended early, or nothing."""
        return self._chunks([PathChunk(tuple(tests[at : at + _CHUNK])) for at in range(0, len(tests), _CHUNK)], 0)

    def large(self, tests: Sequence[str]) -> str:
        """Judge those that have too many by an engine; returns why it ended early, or nothing."""
        order = {path: number for number, path in enumerate(tests)}
        paths = sorted(self.state.large, key=order.__getitem__)
        return self._chunks([PathChunk((path,), self.state.large[path]) for path in paths], len(tests))

    def not_judged(self, edit: int) -> set[str]:
        """The tests that were not judged under an edit."""
        late = {path for path, edits in self.unjudged.items() if edits is None or edit in edits}
        return late | self.state.open.get(edit, set())

    def _chunks(self, chunks: Sequence[PathChunk], first: int) -> str:
        todo = []
        for number, chunk in enumerate(chunks, start=first):
            known = self._kept.done.get(number)
            if known is None:
                todo.append((number, chunk))
            else:
                self._take(number, chunk, known)
        if not todo:
            return ""
        if self._jobs <= 1:
            _begin(self._judging)
        reason = self._here(todo) if self._jobs <= 1 else self._elsewhere(todo)
        return reason

    def _alive(self) -> tuple[list[int], list[int]]:
        """The edits that no test fails under so far, and those under which some answer differs."""
        return [edit for edit in self.asked if edit not in self.state.fails], list(self.state.differs)

    def _take(self, number: int, chunk: PathChunk, findings: Sequence[FileFindings]) -> None:
        self.state.take(number, findings)
        self._done += sum(not of_file.large for of_file in findings)
        self._progress(self._done, self._total)

    def _here(self, todo: Sequence[tuple[int, PathChunk]]) -> str:
        for at, (number, chunk) in enumerate(todo):
            if monotonic() > self._judging.until:
                return self._late(todo[at:])
            findings = _judge(chunk, *self._alive())
            self._kept.add(number, findings)
            self._take(number, chunk, findings)
        return ""

    def _elsewhere(self, todo: Sequence[tuple[int, PathChunk]]) -> str:
        pool = ProcessPool(self._jobs, begin=partial(_settle, self._judging))

        def begin(job: tuple[int, PathChunk], alone: bool) -> Future[list[FileFindings]]:
            return (pool.alone if alone else pool.submit)(_judge, job[1], *self._alive())

        left = dict(todo)
        try:
            # The fewer are begun, the more is known of which edits they need not try.
            for (number, chunk), findings in surviving(todo, pool, begin, self._judging.until, ahead=2):
                if findings is not None:
                    del left[number]
                    self._kept.add(number, findings)
                    self._take(number, chunk, findings)
        except TimeoutError:
            return self._late(list(left.items()))
        finally:
            pool.close()
        if not left:
            return ""
        self._late(list(left.items()))
        return KILLED

    def _late(self, left: Sequence[tuple[int, PathChunk]]) -> str:
        if all(chunk.large is None for _, chunk in left):
            self.unjudged.update(self.state.large)
        self.unjudged.update((path, chunk.large) for _, chunk in left for path in chunk.paths)
        budget = self._judging.budget
        return (budget.original or budget).out_of_seconds


# ---- the file that keeps what is done ------------------------------------------------------------------------------


def _key(judging: EditJudging, tests: Sequence[str], asked: Sequence[int]) -> str:
    """All that the findings of a chunk depend on."""
    digest = hashlib.sha256()
    for source in judging.model.sources:
        digest.update(source.text.encode())
    for path in tests:
        digest.update(path.encode("utf-8", "surrogatepass"))
        digest.update(api.read(path).text.encode())
    digest.update(repr((_FORMAT, judging.expected, judging.bound, list(asked), _CHUNK)).encode())
    return digest.hexdigest()[:24]


class _EditJournal:
    """Finished chunks, by number, and the file that keeps them."""

    def __init__(self, path: str | None, key: str) -> None:
        repeat = "its model, tests and options"
        self._journal = Journal(path, key, name="mutate-model", what="run", repeat=repeat)
        self.done: dict[int, list[FileFindings]] = {}
        for entry in self._journal.entries:
            match entry:
                case {"chunk": int(number), "files": list(files)}:
                    self.done[number] = [_findings(of_file) for of_file in files]

    def add(self, number: int, findings: Sequence[FileFindings]) -> None:
        """Keep a chunk; one that was cut short by the clock is judged again."""
        if not any(of_file.open for of_file in findings):
            self._journal.add({"chunk": number, "files": [asdict(of_file) for of_file in findings]})


def _findings(values: dict[str, list[list[object]]]) -> FileFindings:
    """What a line of the file has."""
    findings = FileFindings(**values)  # type: ignore[arg-type]
    findings.fails = [tuple(notice) for notice in values["fails"]]  # type: ignore[misc]
    findings.differs = [tuple(notice) for notice in values["differs"]]  # type: ignore[misc]
    return findings
