"""What a person meets in the first minutes: help that is not cut off, and texts that say where to go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.places import ROOT

import memmodel
from memmodel.cli.app import app

HANG = str(ROOT / "litmus/async/honest/H5.litmus")
COPY = str(ROOT / "litmus/async/proxy/A1.litmus")
STORE_BUFFERING = str(ROOT / "litmus/isa/SB.litmus")
COLUMNS = str(ROOT / "litmus/shapes/SB+weak@same-cta.litmus")


def run(*argv: str):
    return CliRunner().invoke(app, list(argv))


def test_no_command_is_described_by_half_a_sentence():
    done = run("--help")
    assert done.exit_code == 0
    assert "..." not in done.stdout.partition("Commands:")[2]


def test_a_hang_is_named_where_there_is_nothing_to_list_and_drawn(tmp_path):
    listed = run("outcomes", HANG)
    assert listed.stdout.splitlines()[-1] == "no execution reaches the end of every thread; check says what waits"
    picture = tmp_path / "hang.svg"
    assert run("draw", HANG, "-o", str(picture)).exit_code == 0
    assert "P0 waits for ever" in picture.read_text()


@pytest.mark.parametrize("command", ["outcomes", "ptx", "fmt"])
def test_a_directory_is_sent_to_check_and_suite(command):
    done = run(command, str(ROOT / "litmus"))
    assert done.exit_code == 2
    assert "hint: `memmodel check` and `memmodel suite` take directories" in done.stderr


def test_check_takes_the_tests_of_a_directory(tmp_path):
    for path in (STORE_BUFFERING, HANG):
        (tmp_path / Path(path).name).write_text(Path(path).read_text())
    done = run("check", str(tmp_path))
    assert done.exit_code == 0
    told = [line for line in done.stdout.splitlines() if not line.startswith(" ") and " under " in line]
    assert [line.split()[0] for line in told] == ["H5", "SB"]


def test_a_misspelt_model_to_compare_with_is_no_success():
    done = run("suite", STORE_BUFFERING, "--model", "sc", "--against", "ptx-9.5")
    assert done.exit_code == 2
    assert "--against ptx-9.5: no test says what it expects of this model" in done.stderr
    assert "did you mean ptx-9.4?" in done.stderr


@pytest.mark.parametrize("model, told", [("sc", True), ("ptx-7.5", True), ("ptx-9.4", False)])
def test_a_model_without_rules_for_asynchronous_operations_says_so(model, told):
    report = memmodel.check(COPY, model)
    assert any("no rules for asynchronous operations" in warning for warning in report.warnings) is told
    assert not memmodel.check(STORE_BUFFERING, model).warnings


def test_a_test_without_types_becomes_assembly_by_way_of_fmt(tmp_path):
    refused = run("ptx", COLUMNS)
    assert "memmodel fmt --layout blocks" in refused.stderr
    typed = tmp_path / "typed.litmus"
    typed.write_text(run("fmt", "--layout", "blocks", COLUMNS).stdout)
    assert run("ptx", str(typed)).stdout.startswith("// SB+weak@same-cta")


def test_a_report_at_the_prompt_is_one_line():
    report = memmodel.check(STORE_BUFFERING)
    assert repr(report).startswith("<Report SB under ptx-9.4: always")
    assert "check" in dir(memmodel)
