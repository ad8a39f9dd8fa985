"""Properties: each fails for a copy of the model with one rule knocked out, and holds for the model itself."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from helpers.examples import share
from helpers.search_models import BROKEN, Broken, write_broken

from memmodel import api
from memmodel.answer import Budget
from memmodel.errors import BudgetSpent, InputError
from memmodel.search.properties import Counterexample, PropertyCheck, joined, load_property, shipped_properties
from memmodel.search.sketches import Sketch, sketches
from memmodel.search.solving.property import ask_for
from memmodel.search.vocabulary import Vocabulary, vocabulary
from memmodel.search.work import HereAndNow, run

pytestmark = pytest.mark.turns(2)


def words_of(one: Broken) -> Vocabulary:
    it = load_property(one.property)
    if one.words is None:
        return it.vocabulary
    own = it.vocabulary
    return replace(vocabulary(one.words.split(","), it.scopes, own.threads, spread=own.spread), most=own.most)


def programs(one: Broken, words: Vocabulary) -> list[Sketch]:
    found = [sketch for size in range(1, one.size + 1) for sketch in sketches(words, size)]
    if one.shape is None:
        return found
    names = [sorted(" ".join(words.accesses[use].name for use, _ in body) for body in it.threads) for it in found]
    return [it for it, mine in zip(found, names, strict=True) if mine == sorted(one.shape)]


def search(one: Broken, model: str, every: list[Sketch]) -> list[tuple[Sketch, Counterexample]]:
    check, words = PropertyCheck(load_property(one.property), model), words_of(one)
    possible = check.prop.kind == "possible"
    found: list[tuple[Sketch, Counterexample]] = []
    for sketch in every:
        found += [(sketch, it) for it in check.of(sketch, words, one.size)]
        if found and not possible:
            break
    return found


@pytest.mark.parametrize("one", share(BROKEN, 5), ids=lambda one: one.property)
def test_a_broken_copy_shows(one: Broken, tmp_path: Path) -> None:
    every = programs(one, words_of(one))
    bad = search(one, write_broken(one, tmp_path), every)
    for _, shown in bad:  # what a program asks for is how the violation ends, or which finding goes
        nothing = "[" not in shown.text  # neither reads nor writes
        assert shown.text.rstrip().endswith("exists (true)") == nothing, shown.text
    if load_property(one.property).kind == "possible":
        good = search(one, "ptx-9.4", every)
        assert {it.check for _, it in bad} < {it.check for _, it in good}
    else:
        assert bad and bad[0][1].size <= one.size
        sketch = bad[0][0]
        assert not search(one, "ptx-9.4", every[: every.index(sketch) + 1])


def test_every_shipped_property_has_a_broken_copy() -> None:
    assert {one.property for one in BROKEN} == set(shipped_properties())


@pytest.mark.parametrize("one", [one for one in BROKEN if one.property in ("composition", "async-proxy-fencing")])
def test_solving_finds_what_listing_finds_and_nothing_where_the_property_holds(one: Broken, tmp_path: Path) -> None:
    broken = run(ask_for(one.property, write_broken(one, tmp_path), words_of(one), one.size), HereAndNow())
    assert [it["size"] for it in broken.results] == [one.size] and broken.bound == one.size - 1
    assert broken.results[0]["check"] in PropertyCheck(load_property(one.property), "ptx-9.4").own
    holds = run(ask_for(one.property, "ptx-9.4", words_of(one), one.size), HereAndNow())
    assert not holds.results and holds.bound == one.size


def test_solving_is_for_what_holds_in_every_execution() -> None:
    with pytest.raises(InputError, match="is no invariant"):
        ask_for("drf-sc", "ptx-9.4", load_property("drf-sc").vocabulary, 2)


def test_a_property_may_not_use_the_definition_under_test(tmp_path: Path) -> None:
    path = tmp_path / "own.cat"
    path.write_text('"Own"\n(* Kind  invariant *)\nempty causality \\ (po | synchronizes)+ as own\n')
    with pytest.raises(InputError, match="not its subject"):
        joined(load_property(str(path)), "ptx-9.4")


@pytest.mark.parametrize("line", ["Size 1e9", "Size -1", "Threads ٣", "Places 1000", "Accesses two"])
def test_the_numbers_of_a_property_are_numbers(line: str, tmp_path: Path) -> None:
    path = tmp_path / "sized.cat"
    path.write_text(f'"Sized"\n(* Kind  invariant\n   {line} *)\nempty 0 as sized\n')
    with pytest.raises(InputError, match=f"{line.split()[0]} is a number"):
        load_property(str(path))


def test_an_answer_that_was_cut_short_contradicts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both engines confirm what a search found. One whose budget ran out has not found it, and says so."""
    (tmp_path / "m.cat").write_text('"m"\nempty 0 as nothing\n')
    check = PropertyCheck(load_property("coherence"), str(tmp_path / "m.cat"))
    words = vocabulary(["ld", "st"], ["gpu"], 2, 1)
    cut = partial(api.check, budget=Budget(effort=1))
    monkeypatch.setattr("memmodel.search.programs.api.check", cut)
    with pytest.raises(BudgetSpent):
        list(counterexample for sketch in sketches(words, 2) for counterexample in check.of(sketch, words, 2))


def test_a_property_says_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "none.cat"
    path.write_text('"None"\nempty 0 as none\n')
    with pytest.raises(InputError, match="says its kind"):
        load_property(str(path))
