"""The suite runner: which files, which expectations, and that one bad test costs only itself."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from helpers.report_samples import MODEL, litmus_test, never, report, sometimes

from memmodel import batch
from memmodel.batch import Entry, Job, Outcome, Settings
from memmodel.cache.verdicts import Verdicts
from memmodel.errors import InputError, TooLarge
from memmodel.source import Source


@pytest.fixture
def engine(monkeypatch):
    """An engine that decides by the text of the file, so that only the runner is tested."""

    def parse(source, ask):
        if "bad" in source.text:
            raise InputError("not a test", source.span(0, 3))
        return litmus_test(*source.text.split("Expect=")[1].split())

    def answer(lowered, model, options, *, findings, queries=None):
        words = {expectation.word for expectation in lowered.test.expectations}
        if "hang" in words:
            os.kill(os.getpid(), signal.SIGKILL)
        if "hazard" in words:
            raise TooLarge("70 events are too many")
        if "undefined" in words:
            raise ZeroDivisionError("a bug")
        return never()

    monkeypatch.setattr("memmodel.litmus.parse_litmus", parse)
    monkeypatch.setattr("memmodel.engine.answer", answer)
    monkeypatch.setattr("memmodel.api.load", lambda name: MODEL)
    monkeypatch.setattr("memmodel.batch._verdicts", lambda settings: Verdicts())


@pytest.fixture
def tests(tmp_path):
    def write(**texts: str) -> Path:
        for name, text in texts.items():
            path = tmp_path / f"{name.replace('__', '/')}.litmus"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def outcomes(root: Path, jobs: int = 1, models=("ptx-9.4",)) -> dict[str, Outcome]:
    work = batch.plan([str(root)], models)
    return {Path(e.path).stem: e.outcome for group in batch.run(work, Settings(), jobs) for e in group}


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_bad_file_is_counted_and_the_rest_still_runs(engine, tests, jobs):
    root = tests(
        a="Expect=ptx-9.4:never", b="bad", c="Expect=ptx-9.4:always", d="Expect=", e="Expect=ptx-9.4:undefined",
        f="Expect=ptx-9.4:hazard", g="Expect=ptx-9.4:never",
    )  # fmt: skip
    (root / "h.litmus").write_bytes(b"\xff\xfe\x00")
    assert outcomes(root, jobs) == {
        "a": Outcome.AS_EXPECTED,
        "b": Outcome.BAD,
        "c": Outcome.DIFFERS,
        "d": Outcome.NO_EXPECTATION,
        "e": Outcome.INTERNAL,
        "f": Outcome.UNDECIDED,
        "g": Outcome.AS_EXPECTED,
        "h": Outcome.BAD,
    }


def test_a_worker_that_dies_costs_only_its_own_test(engine, tests):
    root = tests(a="Expect=ptx-9.4:never", b="Expect=ptx-9.4:hang", c="Expect=ptx-9.4:never", d="Expect=ptx-9.4:never")
    assert outcomes(root, 2) == {
        "a": Outcome.AS_EXPECTED,
        "b": Outcome.UNDECIDED,
        "c": Outcome.AS_EXPECTED,
        "d": Outcome.AS_EXPECTED,
    }


def test_without_a_model_every_model_that_the_file_names_is_run(engine, tests, monkeypatch):
    asked = []
    monkeypatch.setattr("memmodel.api.load", lambda name: asked.append(name) or MODEL)
    outcomes(tests(a="Expect=sc:never ptx-9.4:never sc:race", b="Expect="), models=())
    assert asked == ["sc", "ptx-9.4", "ptx-9.4"]


def test_files_are_found_below_directories_in_order_and_once(tests):
    root = tests(b="", a__z="", a="")
    (root / "note.txt").write_text("")
    files = batch.collect([str(root), str(root / "a.litmus")])
    assert [os.path.relpath(file, root) for file in files] == ["a.litmus", "a/z.litmus", "b.litmus"]


def test_a_path_without_tests_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        batch.collect([str(tmp_path / "missing")])
    with pytest.raises(InputError, match=r"no \.litmus file"):
        batch.collect([str(tmp_path)])


# ---- expectations from a CSV ---------------------------------------------------------------------------------


def test_a_csv_decides_which_files_run_and_what_is_expected(engine, tests):
    root = tests(a="Expect=", b="Expect=", c="Expect=")
    (root / "want.csv").write_text("path,holds\na.litmus,0\nb.litmus,1\ngone.litmus,1\n")
    work = batch.plan([str(root)], ["ptx-9.4"], str(root / "want.csv"))
    assert [os.path.basename(path) for path in work.unlisted] == ["c.litmus"]
    entries = [entry for group in batch.run(work, Settings()) for entry in group]
    assert [(os.path.basename(e.path), e.outcome) for e in entries] == [
        ("gone.litmus", Outcome.BAD),
        ("a.litmus", Outcome.AS_EXPECTED),
        ("b.litmus", Outcome.DIFFERS),
    ]
    assert batch.summary(entries, len(work.unlisted), 1.94) == (
        "3 tests: 1 as expected, 1 differ, 1 bad, 0 undecided, 1 not listed (1.9 s)"
    )


def test_files_named_one_by_one_are_a_selection_of_the_csv(engine, tests):
    root = tests(a="Expect=", b="Expect=")
    (root / "want.csv").write_text("path,holds\na.litmus,0\nb.litmus,1\n")
    work = batch.plan([str(root / "b.litmus")], [], str(root / "want.csv"))
    assert (len(work.jobs), work.missing) == (1, ())


@pytest.mark.parametrize(
    "text, message",
    [
        ("a.litmus,1\n", "begins with the line `path,holds`"),
        ("path,holds\na.litmus\n", "want.csv:2:1: error: expected `path,1` or `path,0`"),
        ("path,holds\na.litmus,yes\n", "expected `path,1` or `path,0`"),
        ("path,holds\na,1\n\na,0\n", "want.csv:4:1: error: a is listed twice"),
    ],
)
def test_a_csv_that_cannot_be_read_says_where(text, message):
    with pytest.raises(InputError) as error:
        batch.read_csv(Source("want.csv", text))
    assert message in error.value.render()


def test_a_path_in_a_csv_may_contain_commas():
    assert batch.read_csv(Source("w", 'path,holds\n"a,b.litmus",1\n')) == {"a,b.litmus": "holds"}


# ---- the sum -------------------------------------------------------------------------------------------------


def test_the_summary_counts_tests_and_verdicts():
    entries = [
        Entry("a", "sc", Outcome.AS_EXPECTED, report(never(), "never")),
        Entry("a", "ptx-9.4", Outcome.UNDECIDED, report(sometimes())),
        Entry("b", "sc", Outcome.INTERNAL, message="x"),
    ]
    assert batch.summary(entries[:1], 0, 0.04) == "1 test: 1 as expected, 0 differ, 0 bad, 0 undecided (0.0 s)"
    assert batch.summary(entries, 0, 2) == (
        "2 tests, 3 verdicts: 1 as expected, 0 differ, 0 bad, 1 undecided, 1 internal errors (2.0 s)"
    )


def test_a_job_never_raises():
    entries = batch.run_job(Job("no/such/file.litmus"), Settings())
    assert [entry.outcome for entry in entries] == [Outcome.BAD]
