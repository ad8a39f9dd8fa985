"""Properties: each fails for a copy of the model with one rule knocked out, and holds for the model itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from search_models import BROKEN, Broken, write_broken

from memmodel.errors import InputError
from memmodel.search.properties import joined, load_property, shipped_properties
from memmodel.search.tasks import PropertyTask
from memmodel.search.vocabulary import vocabulary
from memmodel.search.work import HereAndNow, Progress, run


def search(one: Broken, model: str) -> Progress:
    it = load_property(one.property)
    words = it.vocabulary
    if one.words is not None:
        words = vocabulary(one.words.split(","), it.scopes, words.threads, spread=words.spread)
    return run(PropertyTask(one.property, model, words, one.size), HereAndNow(), enough=bool)


@pytest.mark.parametrize("one", BROKEN, ids=lambda one: one.property)
def test_a_broken_copy_shows(one: Broken, tmp_path: Path) -> None:
    good, bad = search(one, "ptx-9.3"), search(one, write_broken(one, tmp_path))
    if load_property(one.property).kind == "possible":
        shown, lost = ({record["check"] for record in found.results} for found in (good, bad))
        assert lost < shown
    else:
        assert not good.results and good.bound == one.size
        assert bad.results and bad.results[0]["size"] == one.size


def test_every_shipped_property_has_a_broken_copy() -> None:
    assert {one.property for one in BROKEN} == set(shipped_properties())


def test_a_property_may_not_use_the_definition_under_test(tmp_path: Path) -> None:
    path = tmp_path / "own.cat"
    path.write_text('"Own"\n(* Kind  invariant *)\nempty causality \\ (po | synchronizes)+ as own\n')
    with pytest.raises(InputError, match="not its subject"):
        joined(load_property(str(path)), "ptx-9.3")


def test_a_property_says_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "none.cat"
    path.write_text('"None"\nempty 0 as none\n')
    with pytest.raises(InputError, match="says its kind"):
        load_property(str(path))
