"""Print then parse is the identity, in both layouts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.examples import examples
from helpers.places import ROOT
from helpers.strategies.litmus import litmus_tests
from hypothesis import given

from memmodel.litmus import parse_litmus, print_litmus
from memmodel.litmus.syntax import Layout, LitmusTest
from memmodel.source import Source

CONFORMANCE = ROOT.parent / "shared" / "conformance" / "dat3m-ptx"
FILES = sorted(CONFORMANCE.rglob("*.litmus"))


def read(text: str) -> LitmusTest:
    return parse_litmus(Source("<text>", text))


@pytest.mark.share(2)
@pytest.mark.parametrize("layout", (Layout.COLUMNS, Layout.BLOCKS))
@examples(60)
@given(test=litmus_tests())
def test_what_is_printed_reads_back_as_the_same_test(layout: Layout, test: LitmusTest) -> None:
    text = print_litmus(replace(test, layout=layout))
    again = read(text)
    assert again == test
    assert again.layout is layout
    assert print_litmus(again) == text


@pytest.mark.skipif(not FILES, reason="the conformance files are not beside this checkout")
def test_every_conformance_file_survives() -> None:
    for path in FILES:
        test = parse_litmus(Source.read(path))
        assert read(print_litmus(test)) == test, path


@pytest.mark.skipif(not FILES, reason="the conformance files are not beside this checkout")
def test_only_the_file_with_an_undeclared_location_is_warned_about() -> None:
    warned = [path.name for path in FILES if parse_litmus(Source.read(path)).warnings]
    assert warned == ["IRIW1.litmus"]
