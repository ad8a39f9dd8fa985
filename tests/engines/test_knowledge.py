"""How many writes it takes to get to a value: what lets the solver leave out values that no execution has."""

from __future__ import annotations

from memmodel import api
from memmodel.base.logic import Logic
from memmodel.events.knowledge import Knowledge
from memmodel.events.values import Cases, combined
from memmodel.memory.bytes import Cell
from memmodel.source import Source

TEXT = "PTX t\n.global .u32 x = 7;\nthread P0 @ cta 0 { st.relaxed.gpu.u32 [x], 1; }\nexists (true)\n"


def test_a_result_takes_as_many_writes_as_the_operand_that_takes_the_most() -> None:
    """In the cheapest of the ways that give it: 2 is 1 + 1, after one write, and 2 + 0, after four."""
    logic = Logic()
    a, b = logic.var("a"), logic.var("b")
    left, right = Cases({1: a, 2: -a}, None, {1: 1, 2: 4}), Cases({0: b, 1: -b}, None, {0: 3, 1: 0})
    assert combined(logic, [left, right], sum).depths == {1: 3, 2: 1, 3: 4}


def test_a_cell_knows_the_fewest_writes_to_each_value() -> None:
    space = api.lowered(Source("t.litmus", TEXT)).space
    cell = Cell(space.instances[0], 0, 4)
    for grounded, last in ((True, {}), (False, {2: 6})):
        knowledge = Knowledge(space, grounded=grounded, most_writes=5)
        for depth in (3, 5, 2, 4):
            knowledge.add(cell, {1: depth})
        knowledge.add(cell, {2: 6})
        assert knowledge.domain(cell) == {7: 0, 1: 2, **last}
