"""A yes for other sizes is attacked: the tables of docs/kernels-theorem.md, a few rows a day."""

from __future__ import annotations

import pytest
from helpers.examples import share
from helpers.kernel.attacked import GRID_KERNELS, LOOPS, attacked_grid, attacked_loop


@pytest.mark.parametrize("name", share(LOOPS, 16))
def test_more_and_fewer_rounds_show_nothing_new(name: str) -> None:
    attack = attacked_loop(LOOPS[name], most=3)
    assert not (attack.says_yes and attack.others), attack


@pytest.mark.parametrize("name", share(GRID_KERNELS, 9))
def test_larger_grids_show_nothing_new(name: str) -> None:
    attack = attacked_grid(GRID_KERNELS[name], most=3)
    assert not (attack.says_yes and attack.others), attack
