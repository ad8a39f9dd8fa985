"""Executions with lines put in: what is kept of one for the next changes nothing."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.base.points import Point
from memmodel.base.relations import RELATIONS, BaseRelation
from memmodel.base.rows import bits
from memmodel.base.sets import SETS
from memmodel.concrete.execution import Execution
from memmodel.engine import Options
from memmodel.repair.carry import Carry, survives
from memmodel.repair.edits import Edit
from memmodel.repair.judge import TextCounterexample, judging, parse
from memmodel.repair.vocabulary import strengthenings
from memmodel.why.story import execution_of

SHIPPED = ROOT / "litmus"
MODELS = (api.load("ptx-9.4"),)
NAMES = ("async/proxy/A4", "async/tcgen05/T5-no-fence", "async/honest/H16-relaxed")


def begun(name: str) -> tuple[Carry, list[Edit], list[tuple[TextCounterexample, Execution]]]:
    """What adds order to a shipped test, and executions that speak against it."""
    path = SHIPPED / f"{name}.litmus"
    text = path.read_text()
    asked, before = parse(str(path), text), judging(str(path), MODELS, Options())(text)
    assert asked is not None and before is not None
    carry = Carry(text, lambda one: (parse(str(path), one) or (None,))[0])
    edits = [one for one in strengthenings(asked[0]) if carry.legal(one) and carry.delta(one) is not None]
    bad = [(one, execution) for one in before.counterexamples if (execution := execution_of(one.witness)) is not None]
    return carry, edits, bad[:3]


def related(row: BaseRelation, a: Point, b: Point) -> bool:
    if row.key is not None and (row.key(a) is None or row.key(a) != row.key(b)):
        return False
    admitted = (row.domain is None or row.domain(a)) and (row.range is None or row.range(b))
    return admitted and (row.holds is None or row.holds(a, b))


@pytest.mark.parametrize("name", NAMES)
def test_lines_put_in_are_related_as_any_others(name: str) -> None:
    """Again and again into one execution, in other company each time."""
    carry, edits, bad = begun(name)
    chance, put_in, relabelled = Random(5), 0, 0
    for _, execution in bad:
        for _ in range(6):
            carried = carry.carried(execution, (), chance.sample(edits, min(4, len(edits))))
            if carried is None:
                continue
            points = [event.point for event in carried.events]
            put_in += len(points) > len(execution.events)
            relabelled += any(a.label != b.label for a, b in zip(carried.events, execution.events, strict=False))
            for row in RELATIONS:
                if (row.key is not None or row.holds is not None) and row.name != "po":
                    found = [(a, b) for a, its in enumerate(carried.relation(row.name)) for b in bits(its)]
                    wanted = [(a.event, b.event) for a in points for b in points if related(row, a, b)]
                    assert found == wanted, row.name
            for one in SETS:
                if one.holds is not None:
                    wanted_set = [p.event for p in points if one.holds(p.label) and one.has(p.cell)]
                    assert bits(carried.set(one.name)) == wanted_set, one.name
            order = carried.relation("po")
            assert all(not order[b] >> a & 1 for a, its in enumerate(order) for b in bits(its))
            assert all(order[b] & ~its == 0 for its in order for b in bits(its))
    assert put_in and relabelled


@pytest.mark.parametrize("name", NAMES)
def test_what_ends_an_execution_ends_it_with_more_order(name: str) -> None:
    """So what is known of some changes is known of more of them."""
    carry, edits, bad = begun(name)
    ended = 0
    for counterexample, execution in bad:
        lives = {
            one: (got := carry.carried(execution, (), (one,))) and survives(counterexample, got) for one in edits[::8]
        }
        for pair in combinations(lives, 2):
            both = carry.carried(execution, (), pair)
            if both is not None and survives(counterexample, both):
                assert all(lives[one] is not False for one in pair if carry.carried(execution, (), (one,)))
            ended += not all(lives[one] for one in pair)
    assert ended
