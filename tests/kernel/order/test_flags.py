"""The evaluator of large executions against the referee's: random expressions on random relations.

Relations have the shapes that it treats in ways of their own: few pairs and many, rows that are equal, sets with few
members; inverses on either side of a chain, a difference and an intersection; values that are given up and asked for
again; other executions of the same events.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import cast

import pytest
from helpers.examples import each_seed

from memmodel.base.rows import Rows
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import ConcreteEvent, Execution, FixedPart
from memmodel.concrete.less_events import without
from memmodel.kernel.order.flags import Flags
from memmodel.referee.evaluate import evaluate

SETS, RELATIONS = ("R", "W", "F"), ("po", "rf", "co", "loc", "sync_fence")
COUNT = 420


def rows(random: Random) -> Rows:
    """A relation: empty, with few pairs, with few different rows, in the order of numbers, or dense."""
    shape = random.choice(("empty", "few", "alike", "alike", "forward", "dense"))
    if shape == "alike":
        kinds = [random.getrandbits(COUNT) for _ in range(random.randint(1, 4))]
        return [random.choice((0, *kinds)) for _ in range(COUNT)]
    found = [0] * COUNT
    if shape == "few":
        for _ in range(random.randint(1, COUNT)):
            found[random.randrange(COUNT)] |= 1 << random.randrange(COUNT)
    if shape in ("forward", "dense"):
        found = [random.getrandbits(COUNT) & random.getrandbits(COUNT) for _ in range(COUNT)]
    return [row >> one + 1 << one + 1 for one, row in enumerate(found)] if shape == "forward" else found


def execution(random: Random) -> Execution:
    """An execution of which only the relations count."""
    frame = cast(FixedPart, type("Frame", (), {"events": cast(list[ConcreteEvent], [None] * COUNT)})())
    sets = {name: random.getrandbits(COUNT) & random.choice((-1, 0b111, 0)) for name in SETS}
    return Execution(frame, (), sets, {name: rows(random) for name in RELATIONS})


def expression(random: Random, depth: int, names: list[str]) -> str:
    """A relation, as text."""
    if depth == 0:
        return random.choice((*names, *RELATIONS))
    how = random.randrange(9)
    mine, other = (expression(random, depth - 1, names) for _ in range(2))
    if how == 0:
        return f"({mine})^-1"
    if how == 1:
        return f"({mine})+"
    if how == 2:
        left, right = (
            random.choice((f"[{random.choice(SETS)}] ; ", "")),
            random.choice((f" ; [{random.choice(SETS)}]", "")),
        )
        return f"({left}({mine}){right})"
    if how == 3:
        return f"([domain({mine})] ; ({other}))"
    if how == 8:
        return f"(({mine}) {random.choice('&;')} ({other})^-1)" if depth > 1 else f"({mine} \\ {other}^-1)"
    return f"(({mine}) {random.choice(';;|&&')} ({other}))" if how < 7 else f"(({mine}) \\ ({other}))"


def model(random: Random, path: Path) -> Model:
    """Definitions, each of those before it, and flags of them."""
    names: list[str] = []
    lines = ['"random"']
    for number in range(6):
        lines.append(f"let d{number} = {expression(random, random.randint(1, 3), names)}")
        names.append(f"d{number}")
    lines.append(f"let rec again = {random.choice(names)} | again ; {random.choice(names)}")
    for number in range(5):
        test = random.choice(("empty", "irreflexive", "acyclic"))
        lines.append(f"flag ~{test} {expression(random, 2, [*names, 'again'])} as f{number}")
    path.write_text("\n".join(lines) + "\n")
    return load_model(path)


@pytest.mark.share(2)
@pytest.mark.parametrize("large", [0, 6_000])
@each_seed(4)
def test_flags_and_relations_are_the_referees(
    seed: int, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memmodel.cat.evaluate.large.LARGE", large)
    random = Random(seed)
    one, run = model(random, tmp_path / "m.cat"), execution(random)
    flags, expected = Flags(one, run), evaluate(one, run)
    assert flags.raised() == expected.flags
    for name in ("d5", "again", "d0", "d3"):  # in no order in which they were worked out
        assert flags.relation(name) == expected.relation(name), name


@pytest.mark.share(2)
@pytest.mark.parametrize("large", [0, 6_000])
@each_seed(4)
def test_other_executions_of_the_same_events_take_over_what_is_the_same(
    seed: int, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memmodel.cat.evaluate.large.LARGE", large)
    random = Random(seed)
    one, run = model(random, tmp_path / "m.cat"), execution(random)
    first = Flags(one, run)
    first.raised()
    changed = {"sync_fence": rows(random)} | ({"rf": rows(random)} if random.random() < 0.5 else {})
    other = replace(run, chosen_relations={**run.chosen_relations, **changed})
    flags = Flags(one, other, first)
    assert flags.raised() == evaluate(one, other).flags
    sets = replace(run, chosen_sets={**run.chosen_sets, "R": random.getrandbits(COUNT)})
    assert Flags(one, sets, flags).raised() == evaluate(one, sets).flags


@pytest.mark.share(2)
@pytest.mark.parametrize("large", [0, 6_000])
@each_seed(6)
def test_an_execution_without_some_events_takes_over_what_is_decided_pair_by_pair(
    seed: int, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memmodel.cat.evaluate.large.LARGE", large)
    random = Random(seed)
    one, run = model(random, tmp_path / "m.cat"), execution(random)
    first = Flags(one, run)
    first.raised()
    gone, more = random.getrandbits(COUNT) & random.getrandbits(COUNT), random.getrandbits(COUNT)
    added = more & ~gone & random.choice((-1, 0))
    less = without(run, gone, {"F": added})
    assert less.set("F") == run.set("F") & ~gone | added
    assert not any(
        gone >> event & 1 for rows in less.chosen_relations.values() for event, row in enumerate(rows) if row
    )
    assert Flags(one, less, first).raised() == evaluate(one, less).flags


def test_values_are_given_up_and_worked_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memmodel.cat.evaluate.large.LARGE", 0)
    path = tmp_path / "m.cat"
    path.write_text('"m"\nlet a = po ; rf\nlet happens = a | co\nlet b = a ; loc\nflag ~empty b as B\n')
    one, run = load_model(path), execution(Random(1))
    flags = Flags(one, run)
    flags.raised()
    known = [name for name, number in flags._names.items() if number in flags._evaluator._values]
    assert known == ["a"]  # it leads to what may be asked for
    assert flags.relation("b") == evaluate(one, run).relation("b")
