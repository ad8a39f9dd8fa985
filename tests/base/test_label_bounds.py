"""No pair of a base relation has labels beyond its bound: else programs on which models differ would be left out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from helpers.examples import share

from memmodel import api
from memmodel.answer import Budget
from memmodel.base.label_bounds import may_relate
from memmodel.base.labels import Label
from memmodel.base.relations import RELATION_ROWS
from memmodel.base.resources import suite_dir
from memmodel.base.rows import Rows, bits
from memmodel.concrete.assembly import Assembly
from memmodel.concrete.barriers import meetings
from memmodel.concrete.execution import FixedPart
from memmodel.concrete.mbarriers import observations
from memmodel.concrete.meter import Meter
from memmodel.enumeration.problem import prepare
from memmodel.errors import BudgetSpent, InputError

CHOSEN = ("rf", "co", "sync_fence")
"""What an execution chooses among events that the definition names by label."""

EXECUTIONS = 3
"""So many executions of a test are looked at."""


def relations_of(path: str) -> Iterator[tuple[list[Label], str, Rows]]:
    """The labels of the events of some executions of a test, with each base relation."""
    lowered = api.lowered(path)
    meter = Meter(Budget(effort=100_000))
    problem = prepare(lowered, 3, meter, waits=True)
    for traces in islice(product(*problem.complete), EXECUTIONS):
        frame = FixedPart(lowered, traces, {})
        labels = [event.label for event in frame.events]
        assembly = Assembly(frame)
        for meeting in islice(meetings(assembly.barriers, assembly.halves, assembly.waiting), EXECUTIONS):
            for observed in islice(observations(assembly.objects, meter), EXECUTIONS):
                counted = assembly.relations(meeting, observed)
                for name in RELATION_ROWS:
                    if name not in CHOSEN:
                        yield labels, name, counted[name] if name in counted else frame.relation(name)


def test_no_pair_is_beyond_the_bound_of_its_relation() -> None:
    held: set[str] = set()
    all_ = sorted(map(str, suite_dir().rglob("*.litmus")))
    for path in dict.fromkeys(
        [*share(all_, 24), *(path for path in all_ if "MP+atom.acq_rel.gpu+atom.acq_rel.gpu@two-ctas" in path)]
    ):
        try:
            for labels, name, rows in relations_of(path):
                bound = may_relate(name, labels)
                for a, row in enumerate(rows):
                    held |= {name} if row else set()
                    beyond = [labels[b] for b in bits(row & ~bound[a])]
                    assert not beyond, (path, name, labels[a], beyond)
        except (BudgetSpent, InputError):
            continue
    assert {"po", "loc", "rmw", "iss"} <= held
