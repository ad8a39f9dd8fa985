"""The tests that an edit of a model brings: each change has one, and both models pass them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from memmodel import api
from memmodel.base.resources import axioms_dir
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model
from memmodel.cli.app import app
from memmodel.mutate.regressions import regressions, rule_changes
from memmodel.search.work import Record

FENCES = "([W & REL] ; po-loc? | [F & ACQ_REL] ; po) ; [strong-write]"
ORDER = "sync | sync_fence | syncbar & scta"

MP = """PTX outcome-6
.global .u32 x;
.global .u32 y;
thread P0 @ cta 0 { st.relaxed.gpu.global.u32 [x], 1; fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [y], 1; }
thread P1 @ cta 1 { ld.relaxed.gpu.global.u32 %r0, [y]; fence.acq_rel.gpu; ld.relaxed.gpu.global.u32 %r1, [x]; }
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
SB = """PTX outcome-6
.global .u32 x;
.global .u32 y;
thread P0 @ cta 0 { st.relaxed.gpu.global.u32 [x], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 %r0, [y]; }
thread P1 @ cta 1 { st.relaxed.gpu.global.u32 [y], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 %r0, [x]; }
exists (P0:r0 == 0 /\\ P1:r0 == 0)
"""
CORR = """PTX outcome-3
.global .u32 x;
thread P0 @ cta 0 { st.relaxed.gpu.global.u32 [x], 1; }
thread P1 @ cta 1 { ld.relaxed.gpu.global.u32 %r0, [x]; ld.relaxed.gpu.global.u32 %r1, [x]; }
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


def variant(folder: Path, *changes: tuple[str, str]) -> str:
    """The path of ptx-6.0 with some text replaced."""
    text = (axioms_dir() / "ptx-6.0.cat").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "my.cat"
    path.write_text(text)
    return str(path)


def records(second: str, *texts: str) -> list[Record]:
    return [
        {"text": text, "allows": second, "forbids": "ptx-6.0", "size": int(text.split()[1][-1]), "finding": None}
        for text in texts
    ]


def weaker(folder: Path) -> str:
    return variant(folder, (FENCES, "[W & REL] ; po-loc? ; [strong-write]"), (ORDER, "sync | syncbar & scta"))


def loaded(path: str) -> tuple[Model, Model]:
    return api.load("ptx-6.0"), load_model(path)


def test_the_changes_of_a_model_are_its_rules_and_operands(tmp_path: Path) -> None:
    added = ("acyclic morally-strong & communication | po-loc as SC-per-Location", "irreflexive co as Extra")
    path = variant(tmp_path, (ORDER, "sync | sync_fence | syncbar & sgpu"), added)
    first, second = loaded(path)
    assert [(change.rule, change.what) for change in rule_changes(first, second)] == [
        ("synchronizes", "without `syncbar & scta`"),
        ("synchronizes", "with `syncbar & sgpu`"),
        ("Extra", "is new"),
        ("SC-per-Location", "is gone"),
    ]
    assert rule_changes(first, first) == []


def test_a_change_taken_back_is_the_first_model_again(tmp_path: Path) -> None:
    first, second = loaded(variant(tmp_path, (FENCES, "[W & REL] ; po-loc? ; [strong-write]")))
    (change,) = rule_changes(first, second)
    assert change.without.definitions == first.definitions


@pytest.mark.parametrize("texts", [(MP, SB, CORR), (SB, MP)])
def test_each_change_has_a_test_and_no_more(tmp_path: Path, texts: tuple[str, ...]) -> None:
    path = weaker(tmp_path)
    found = regressions(*loaded(path), ("ptx-6.0", path), records(path, *texts))
    assert sorted(test.name.rsplit("-", 1)[0] for test in found.tests) == [
        "release-pattern-allows",
        "synchronizes-allows",
    ]
    assert found.unseen == ()
    assert found.unsaid == len(texts) - 2  # CoRR does not differ
    for test in found.tests:
        assert test.words == ("never", "sometimes")
        for model, word in zip(loaded(path), test.words, strict=True):
            assert api.check(test.text, model).answer.observation.value == word


def test_a_test_says_which_rule_it_is_for_and_what_both_models_say(tmp_path: Path) -> None:
    path = weaker(tmp_path)
    (test,) = regressions(*loaded(path), ("ptx-6.0", path), records(path, SB)).tests
    lines = test.text.splitlines()
    assert lines[:2] == [
        "PTX synchronizes-allows-01",
        '"my.cat allows more: synchronizes (my.cat:52): without `sync_fence`"',
    ]
    assert lines[2:4] == ["// ptx-6.0: never", "//   forbidden by Causality"]
    assert "Expect=ptx-6.0:never my.cat:sometimes" in lines
    named = next(line for line in lines if "(P1, line" in line)
    number = int(named.split("(P1, line ")[1].split(")")[0])
    assert "st.relaxed.gpu.global.u32 [y]" in lines[number - 1] or "fence.sc.gpu" in lines[number - 1]


def test_what_no_program_shows_is_said(tmp_path: Path) -> None:
    path = weaker(tmp_path)
    found = regressions(*loaded(path), ("ptx-6.0", path), records(path, MP))
    assert len(found.tests) == 1
    assert [text.split(" ")[0] for text in found.unseen] == ["synchronizes"]


def test_a_finding_is_asked_for(tmp_path: Path) -> None:
    first = api.load("ptx-9.4")
    second = first.without("undefined-address")
    text = """PTX undefined-address-1
.global .u32 x;
thread P0 @ cta 0 { ld.weak.global.u32 %r0, [x+64]; }
exists (true)
"""
    record = {"text": text, "allows": "ptx-9.4", "forbids": "m", "size": 1, "finding": "undefined-address"}
    (test,) = regressions(first, second, ("ptx-9.4", "m"), [record]).tests
    assert test.direction == "reports less"
    assert test.words == ("sometimes", "never")
    assert test.text.rstrip().splitlines()[-1] == "exists undefined"


def test_the_command_writes_a_suite_that_both_models_pass(tmp_path: Path) -> None:
    path, folder = weaker(tmp_path), str(tmp_path / "regressions")
    words = ["diff", "ptx-6.0", path, "--search", "6", "--vocabulary", "ld.relaxed,st.relaxed,fence.acq_rel"]
    words += ["--scopes", "gpu", "--threads", "2", "--show", "0", "--by", "solving", "--regressions", folder]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1, result.output
    assert "no program that was found shows synchronizes (my.cat:52): without `sync_fence`" in result.output
    assert f"1 test explains the difference: memmodel suite {folder} --model ptx-6.0" in result.output
    for model in ("ptx-6.0", path):
        suite = CliRunner().invoke(app, ["suite", folder, "--model", model, "--no-cache"])
        assert suite.exit_code == 0, suite.output
        assert "1 as expected" in suite.output


def test_without_a_search_there_is_nothing_to_write() -> None:
    result = CliRunner().invoke(app, ["diff", "ptx-6.0", "ptx-7.5", "litmus/isa", "--regressions", "out"])
    assert result.exit_code == 2
    assert "--regressions writes programs of a search" in result.output
