"""What other readings of the documents say of the runs that are judged.

In: models, runs with what the default model says of them. Out: `KernelReading`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from memmodel.base.labels import InitialWrite
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.evaluate.large import LARGE
from memmodel.cat.syntax import Model
from memmodel.kernel.order.judging import Judgement, RaisedPair, RunJudge
from memmodel.kernel.order.verdict import KernelFinding, KernelReading, PossibleReadings

SMALL = 2000
"""Events of a run that is judged under all readings."""


class OtherReadings:
    """What other readings say of the runs that are judged. `models`: by the name of the reading and its answer.

    The first run and small runs are judged under all readings. The others are judged under those that the verdict
    depends on: the readings with the fewest findings, until each finding is gone under one of them.

    `known`: findings that do not count, by the name of a reading: a reading that reports no other is not asked, where
    the model itself finds nothing that a reading may not find.
    """

    def __init__(
        self, models: Sequence[tuple[str, str, Model]], known: Mapping[str, AbstractSet[object]] | None = None
    ) -> None:
        self.models, self._known = models, known
        self._default: dict[object, KernelFinding] = {}
        self._others: list[dict[object, KernelFinding]] = [{} for _ in models]
        self._compared: list[set[object]] = [set() for _ in models]
        """The findings of the default in the runs about which each reading was asked."""
        self._asked = [True] * len(models)
        """The readings that were asked about all runs."""

    def look(self, run: RunJudge, chosen: frozenset[int], judged: Judgement) -> None:
        """Judge a run under the readings."""
        if not self.models:
            return
        defaults = {identity(finding): finding for finding in judged.findings}
        different = _different(run, chosen, judged, self._known) if any(self._asked) else None
        self._default = defaults | self._default
        for number, (name, _, model) in enumerate(self.models):
            if self._asked[number]:
                self._compared[number] |= defaults.keys()
                if different is None:
                    findings = run.judgement(model, chosen, judged.flags, explain=False, may_rerun=False).findings
                else:
                    findings = run.findings_of(model, different[name]) if name in different else judged.findings
                self._others[number] = {identity(finding): finding for finding in findings} | self._others[number]
        if len(run.execution.events) > SMALL:
            self._choose()

    def _choose(self) -> None:
        """Ask from now on only the readings under which most findings are gone, until each is gone under one."""
        left = {key for key, finding in self._default.items() if not finding.harmless}
        gone = [left - other.keys() if asked else set() for other, asked in zip(self._others, self._asked, strict=True)]
        self._asked = [False] * len(gone)
        while left and any(left & keys for keys in gone):
            most = max(range(len(gone)), key=lambda number: len(left & gone[number]))
            self._asked[most] = True
            left -= gone[most]

    def differences(self, findings: list[KernelFinding]) -> list[KernelReading]:
        """For each reading, which of these findings are gone, and which it has that the default has not."""
        readings = []
        for number, (name, answer, _) in enumerate(self.models):
            other, compared = self._others[number], self._compared[number]
            gone = [finding for finding in findings if identity(finding) in compared - other.keys()]
            new = [finding for key, finding in other.items() if key not in self._default]
            if gone or new:
                readings.append(KernelReading(name, answer, gone, new, everywhere=self._asked[number]))
        return readings


def _different(
    run: RunJudge, chosen: frozenset[int], judged: Judgement, known: Mapping[str, AbstractSet[object]] | None
) -> dict[str, set[RaisedPair]] | None:
    """What the flags of readings report, where these are other pairs of events than the default model's; None where
    this is not known without asking all of them. Then the model, a reading and the report must speak of the same
    execution: the run as it is, in which no fence.sc has a place among others, and no source of a strong read is left
    out.
    """
    flags = judged.flags
    if flags is None or flags.model.name != DEFAULT_MODEL or len(run.execution.events) > LARGE:
        return None
    if not run.is_certain(chosen):
        return None
    rules = {check.name for check in flags.model.flags} if judged.findings else set[str]()
    if known is None or any(not finding.harmless for finding in judged.findings):
        both = flags.both_with_readings(rules)
    else:
        news = dict(flags.more_with_readings())
        news = {name: more for name, more in news.items() if not _identities(run, more) <= known.get(name, frozenset())}
        both = [(name, news[name], gone) for name, gone in flags.fewer_with_readings(rules, news)] if news else []
    raised, different = set(judged.raised), dict[str, set[RaisedPair]]()
    for name, more, fewer in both:
        added, gone = run.counting(more), run.counting(fewer)
        if added or gone:
            different[name] = raised.union(added).difference(gone)
    return different


def _identities(run: RunJudge, pairs: Mapping[str, list[tuple[int, int]]]) -> set[object]:
    """The findings that pairs make which flags report, as far as their rules and instructions tell."""
    found = set[object]()
    for rule, *ends in run.counting(pairs):
        events = [end for end in dict.fromkeys(ends) if not isinstance(run.graph.points[end].label, InitialWrite)]
        found.add((rule, tuple(sorted(run.graph.origins[event].at for event in events))))
    return found


def possible_readings(run: RunJudge, judgement: Judgement) -> PossibleReadings:
    """The readings that change what the default model says of a run: if it has findings, those under which one of them
    is gone; if not, those that have one. No reading is asked (`cat.evaluate.readings`): the line of a verdict costs a
    few per cent of it, and says `may`. Of a large run, readings are only looked at as far as they differ by themselves.
    """
    flags, serious = judgement.flags, [finding for finding in judgement.findings if not finding.harmless]
    if flags is None or len(run.execution.events) > LARGE:
        return PossibleReadings()
    raised = run.raised(flags) if serious else []
    rules = {rule for rule, *_ in raised}
    if len(run.execution.events) > SMALL:
        return PossibleReadings(tuple(flags.readings_that_may(rules if serious else None)), compared=False)
    if not serious:
        news = ((name, run.counting(pairs)) for name, pairs in flags.more_with_readings())
        return PossibleReadings(tuple(name for name, new in news if any(not run.is_harmless(*pair) for pair in new)))
    places = {frozenset(side.instruction.number for side in finding.sides) for finding in serious}
    all_ = _by_place(run, raised)
    names = []
    for name, pairs in flags.fewer_with_readings(rules):
        gone = _by_place(run, run.counting(pairs))
        if any(key[1] in places and all_[key] == pairs_there for key, pairs_there in gone.items()):
            names.append(name)
    return PossibleReadings(tuple(names))


def _by_place(
    run: RunJudge, raised: Iterable[tuple[str, int, int]]
) -> dict[tuple[str, frozenset[int]], set[tuple[int, int]]]:
    """Pairs that flags report, by the flag and the instructions."""
    places: dict[tuple[str, frozenset[int]], set[tuple[int, int]]] = {}
    for rule, *ends in raised:
        accesses = [end for end in ends if not isinstance(run.graph.points[end].label, InitialWrite)]
        key = rule, frozenset(run.body[run.graph.origins[end].at].number for end in accesses)
        places.setdefault(key, set()).add((ends[0], ends[1]))
    return places


def identity(finding: KernelFinding) -> object:
    """The rule and the instructions: equal for one finding under different readings."""
    return finding.rule, tuple(sorted(side.instruction.number for side in finding.sides))
