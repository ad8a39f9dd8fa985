"""The command line: exit codes, what goes where, and that no user ever sees a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from helpers.patience import PATIENCE
from helpers.report_samples import MODEL, TEXT, litmus_test, never, sometimes

import memmodel
from memmodel.answer import Answer, Budget, FinalValues, Observation, Outcomes
from memmodel.cache.verdicts import Verdicts
from memmodel.cli import main
from memmodel.cli.exits import Exit, say, worst
from memmodel.cli.options import parse_budget
from memmodel.cli.terminal import style_for
from memmodel.engine import Options
from memmodel.errors import InputError, TooLarge


@pytest.fixture
def run(capsys):
    """Run the program; its exit code, stdout and stderr."""

    def call(*argv: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return int(left.value.code or 0), out, err

    return call


@pytest.fixture
def world(monkeypatch):
    """A parser, loader and engine that return what the test puts here."""
    state = {"answer": never(), "test": litmus_test("ptx-9.4:never"), "asked": []}

    def answer(lowered, model, options, *, findings, queries=None):
        state["asked"].append((options, findings))
        if isinstance(state["answer"], BaseException):
            raise state["answer"]
        return state["answer"]

    monkeypatch.setattr("memmodel.litmus.parse_litmus", lambda source, ask=(): state["test"])
    monkeypatch.setattr("memmodel.cat.load_model", lambda name: MODEL)
    monkeypatch.setattr("memmodel.engine.answer", answer)
    monkeypatch.setattr("memmodel.api.load", lambda name: MODEL)
    monkeypatch.setattr("memmodel.batch._verdicts", lambda settings: Verdicts())
    return state


@pytest.fixture
def mp(tmp_path):
    path = tmp_path / "MP.litmus"
    path.write_text(TEXT)
    return path


# ---- exit codes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer, code",
    [
        (never(), 0),
        (sometimes(), 1),
        (Answer(Observation.UNDECIDED, "z3", reason="the budget ran out"), 3),
        (TooLarge("70 events are too many"), 3),
        (InputError("x is not declared"), 2),
        (RuntimeError("a bug"), 70),
    ],
)
def test_check_exits_with_what_it_found(run, world, mp, answer, code):
    world["answer"] = answer
    assert run("check", mp)[0] == code


def test_without_an_expectation_nothing_differs(run, world, mp):
    world["test"] = litmus_test("sc:always")
    assert run("check", mp)[0] == 0


def test_the_worst_of_several_results_decides():
    assert worst([Exit.UNDECIDED, Exit.DIFFERS]) is Exit.DIFFERS
    assert worst([Exit.DIFFERS, Exit.BAD_INPUT, Exit.UNDECIDED]) is Exit.BAD_INPUT
    assert worst([Exit.INTERNAL, Exit.BAD_INPUT]) is Exit.INTERNAL
    assert worst([]) is Exit.AS_EXPECTED


@pytest.mark.parametrize(
    "argv",
    [
        ("check",),
        ("nonsense",),
        ("check", "x.litmus", "--engine", "magic"),
        ("check", "x.litmus", "--bound", "0"),
        ("check", "x.litmus", "--budget", "5X"),
        ("check", "no-such-file.litmus"),
        ("suite", "no-such-directory"),
        ("draw", "x.litmus", "-o", "x.png"),
        ("draw", "x.litmus", "-o", "x.svg", "--finding", "joy"),
        ("fmt", "no-such-file.litmus"),
        ("outcomes", "no-such-file.litmus"),
    ],
)
def test_bad_input_and_bad_usage_exit_with_2(run, world, argv):
    code, out, err = run(*argv)
    assert code == 2
    assert err and not out


def test_control_c_exits_with_130(run, world, mp):
    world["answer"] = KeyboardInterrupt()
    assert run("check", mp)[0] == 130


def test_an_internal_error_is_one_line_and_traceable_on_request(run, monkeypatch, capsys):
    monkeypatch.setattr("memmodel.cat.shipped_models", lambda: 1 // 0)
    code, _, err = run("models")
    assert code == 70
    assert err.count("\n") == 1 and "please report" in err
    monkeypatch.setenv("MEMMODEL_TRACEBACK", "1")
    with pytest.raises(SystemExit):
        main(["models"])
    assert "Traceback" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_bad_input(run, world, mp, tmp_path):
    code, _, err = run("check", mp, "--json", tmp_path / "no" / "such" / "directory.json")
    assert code == 2
    assert "No such file or directory" in err


# ---- output --------------------------------------------------------------------------------------------------


def test_check_prints_the_report_and_writes_json(run, world, mp, tmp_path):
    world["answer"] = sometimes()
    out_file = tmp_path / "out.json"
    _, out, _ = run("check", mp, "--json", out_file, "--engine", "z3", "--bound", 2, "--budget", "5M")
    assert out.startswith("MP under ptx-9.4: sometimes; exists")
    (record,) = json.loads(out_file.read_text())
    assert (record["test"], record["observation"], record["ok"]) == ("MP", "sometimes", False)
    assert world["asked"] == [(Options("z3", Budget(effort=5_000_000), 2), True)]


def test_json_on_stdout_is_alone_there_and_has_error_entries(run, world, mp):
    code, out, err = run("check", mp, "missing.litmus", "--json", "-")
    records = json.loads(out)
    assert code == 2
    assert [("error" in record) for record in records] == [False, True]
    assert records[1]["error"]["kind"] == "input"
    assert "missing.litmus" in err


def test_outcomes_lists_states_and_is_3_when_incomplete(run, world, mp, monkeypatch):
    found = Outcomes((FinalValues((("P1:r0", 1),), True),), "enumerate")
    monkeypatch.setattr("memmodel.engine.outcomes", lambda *args, **options: found)
    code, out, _ = run("outcomes", mp)
    assert (code, out.splitlines()[0]) == (0, "* P1:r0 = 1")
    partial = Outcomes((), "z3", complete=False, reason="the budget ran out")
    monkeypatch.setattr("memmodel.engine.outcomes", lambda *args, **options: partial)
    assert run("outcomes", mp)[0] == 3


def test_suite_prints_surprises_and_the_sum_and_writes_reports(run, world, mp, tmp_path):
    world["answer"] = sometimes()
    (tmp_path / "bad.litmus").write_bytes(b"\x00")
    code, out, _ = run("suite", tmp_path, "--json", tmp_path / "o.json", "--junit", tmp_path / "o.xml")
    lines = out.splitlines()
    assert code == 2
    assert lines[0].startswith("differs") and lines[0].endswith("MP.litmus under ptx-9.4: sometimes, expected never")
    assert any(line.startswith("bad") for line in lines)
    assert lines[-1].startswith("2 tests: 0 as expected, 1 differ, 1 bad, 0 undecided (")
    assert len(json.loads((tmp_path / "o.json").read_text())) == 2
    assert ElementTree.parse(tmp_path / "o.xml").getroot().get("failures") == "1"


def test_suite_is_quiet_about_what_is_as_expected(run, world, mp, tmp_path):
    code, out, _ = run("suite", tmp_path)
    assert code == 0
    assert len(out.splitlines()) == 1
    assert run("suite", tmp_path, "-v")[1].startswith("as expected     ")


def test_draw_writes_the_picture(run, world, mp, tmp_path):
    world["answer"] = sometimes()
    code, out, _ = run("draw", mp, "-o", tmp_path / "mp.svg")
    assert code == 0
    assert "sometimes" in out
    assert (tmp_path / "mp.svg").read_text().startswith("<svg ")


def test_draw_writes_the_picture_of_a_finding(run, world, mp):
    world["answer"] = sometimes()
    code, out, _ = run("draw", mp, "-o", "-", "--finding", "race")
    assert code == 0
    assert "Data race between a: " in out
    code, _, err = run("draw", mp, "-o", "-", "--finding", "hang")
    assert code == 2
    assert "no execution has a finding of the kind `hang`" in err


def test_colour_only_where_a_person_reads(monkeypatch, capsys):
    class Terminal:
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    say(style_for(Terminal())("x", "good") + " \x1b[31m")
    assert capsys.readouterr().out == "\x1b[32mx\x1b[0m \\x1b[31m\n"  # what is not our own style is written out
    monkeypatch.setenv("NO_COLOR", "1")
    assert style_for(Terminal())("x", "good") == "x"
    monkeypatch.delenv("NO_COLOR")
    assert style_for(sys.stdout)("x", "good") == "x"


@pytest.mark.parametrize("text, effort", [("5M", 5_000_000), ("200k", 200_000), ("1g", 10**9), ("1000000", 10**6)])
def test_a_budget_is_solver_steps(text, effort):
    assert parse_budget(text) == Budget(effort=effort)


@pytest.mark.parametrize("text", ["", "0", "-1", "5X", "1.5M", "9G", "9" * 400, "٣"])
def test_a_budget_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="not an amount of solver steps"):
        parse_budget(text)


# ---- the real parser and loader ------------------------------------------------------------------------------


def test_fmt_prints_or_rewrites(run, mp):
    code, out, _ = run("fmt", mp, "--layout", "blocks")
    assert code == 0
    assert "thread P0" in out
    assert run("fmt", mp, "--in-place") == (0, "", "")
    assert run("fmt", mp)[1].rstrip("\n") == mp.read_text().rstrip("\n")


def test_names_and_models_are_listed(run):
    code, out, _ = run("names", "--model", "sc")
    assert code == 0
    assert any(line.split()[:2] == ["rf", "relation"] for line in out.splitlines())
    assert any(" axiom" in line for line in out.splitlines())
    code, out, _ = run("models")
    assert code == 0
    assert {"sc", "ptx-6.0", "ptx-7.5"} <= {line.split()[0] for line in out.splitlines()}


def test_a_model_that_does_not_exist_is_one_error(run, mp):
    code, out, err = run("check", mp, mp, "--model", "no-such-model")
    assert (code, out) == (2, "")
    assert err.count("error:") == 1


def test_version_and_help(run):
    assert run("--version")[1] == f"memmodel {memmodel.__version__}\n"
    code, out, _ = run("--help")
    assert code == 0
    for command in ("check", "outcomes", "suite", "draw", "fmt", "names", "models"):
        assert command in out


# ---- as a process --------------------------------------------------------------------------------------------


def test_the_shell_completes_models_and_schemas():
    from click.shell_completion import ShellComplete

    from memmodel.cli.app import app

    shell = ShellComplete(app, {}, "memmodel", "_MEMMODEL_COMPLETE")

    def words(*typed: str) -> list[str]:
        return [one.value for one in shell.get_completions(list(typed[:-1]), typed[-1])]

    assert words("check", "--model", "ptx-9") == ["ptx-9.3", "ptx-9.4"]
    assert "readings/D1-issuer" in words("suite", "--model", "readings/D1")
    assert words("schema", "w") == ["weaken"]
    assert words("di") == ["diff"]


def test_a_closed_pipe_is_quiet():
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "memmodel", "names"], stdout=write, stderr=subprocess.PIPE, text=True, timeout=PATIENCE
    )
    os.close(write)
    assert (process.returncode, process.stderr) == (141, "")


def test_help_loads_neither_solver_nor_parser_generator():
    code = (
        "import sys, memmodel.cli\n"
        "heavy = {'z3', 'lark', 'rich', 'memmodel.api'} & set(sys.modules)\n"
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert (process.returncode, process.stderr) == (0, "")


def test_a_path_that_no_encoding_can_print_is_an_error_like_any_other(run, tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.litmus")
    with open(name, "wb") as handle:
        handle.write(b"\x00")
    code, out, _ = run("suite", tmp_path)
    assert code == 2
    assert out.splitlines()[-1].startswith("1 test: 0 as expected, 0 differ, 1 bad")
