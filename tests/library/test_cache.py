"""Verdicts that are kept: what is found again, what is not, and that no accident makes one wrong."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import platformdirs
import pytest
from helpers.places import ROOT

from memmodel import api, batch, cat, library
from memmodel.answer import Budget, Observation
from memmodel.base.resources import cache_dir, models_dir
from memmodel.batch import Job, Settings
from memmodel.cache import keys
from memmodel.cache.codec import NotKept, dump, undump
from memmodel.cache.store import Store
from memmodel.cache.verdicts import Verdicts
from memmodel.cat import parse_model
from memmodel.cli import main
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.report.report import Report
from memmodel.source import Source

SHOWN = (
    "litmus/async/proxy/A2.litmus",
    "litmus/generic/H1.litmus",
    "litmus/async/proxy/tensor-2d-half-expected.litmus",
    "litmus/shapes/MP+rel.cta+acq.gpu@two-ctas.litmus",
)
MP = """PTX MP
{ x = 0; y = 0; }
P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
st.relaxed.gpu.u32 [x], 1 | ld.acquire.gpu.u32 r0, [y] ;
st.release.gpu.u32 [y], 1 | ld.relaxed.gpu.u32 r1, [x] ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


@pytest.fixture
def judged(monkeypatch):
    """The models under which the engines were asked, one name for each question."""
    asked: list[str] = []
    engine = api.judge

    def judge(steps, model, options, **more):
        asked.append(model.name)
        return engine(steps, model, options, **more)

    monkeypatch.setattr(api, "judge", judge)
    return asked


def ask(folder: Path, model="ptx-9.4", text: str = MP, options: Options = Options()) -> Report:
    """One question, in what is as good as a process of its own."""
    verdicts = Verdicts(Store(folder))
    (posed,) = verdicts.posed(Source("mp.litmus", text))
    found = verdicts.report(posed, model, options)
    assert verdicts.trouble == ""
    verdicts.close()
    return found


@pytest.mark.parametrize("path", SHOWN)
def test_a_kept_report_is_the_same_report(path, tmp_path, judged):
    source = Source.read(ROOT / path)
    new, kept = (Verdicts(Store(tmp_path)) for _ in range(2))
    first, second = (one.report(one.posed(source)[0], "ptx-9.4", Options()) for one in (new, kept))
    assert judged == ["ptx-9.4"]
    assert second == first
    assert (second.explain(), second.to_json()) == (first.explain(), first.to_json())
    states = [one.outcomes(one.posed(source)[0], "ptx-9.4", Options()) for one in (new, kept)]
    assert states[0] == states[1]


def test_it_is_judged_again_when_anything_that_matters_changes(tmp_path, judged, monkeypatch):
    model = tmp_path / "my.cat"
    part = tmp_path / "part.cat"
    model.write_text('"mine"\ninclude "sc.cat"\ninclude "part.cat"\n')
    part.write_text("acyclic po as Order\n")
    ways = [
        lambda: ask(tmp_path),
        lambda: ask(tmp_path, "sc"),
        lambda: ask(tmp_path, str(model)),
        lambda: ask(tmp_path, text=MP.replace("r1 == 0", "r1 == 1")),
        lambda: ask(tmp_path, options=Options("z3")),
        lambda: ask(tmp_path, options=Options(bound=4)),
        lambda: ask(tmp_path, options=Options(budget=Budget(effort=5_000_000))),
    ]
    for count, way in enumerate(ways, 1):
        way()
        assert len(judged) == count
    for way in ways:
        way()
    assert len(judged) == len(ways), "nothing changed"
    ask(tmp_path, options=Options(budget=Budget(seconds=60, memory=10**9)))
    assert len(judged) == len(ways), "an answer that took less than the budget is the same under any"
    part.write_text("acyclic po | rf as Order\n")
    ask(tmp_path, str(model))
    assert judged[len(ways) :] == ["my"]
    ask(tmp_path)
    monkeypatch.setattr(keys, "program", lambda: "another version")
    ask(tmp_path)
    assert judged[len(ways) :] == ["my", "ptx-9.4"]


def test_a_file_that_comes_to_be_found_first_counts(tmp_path, judged):
    (tmp_path / "my.cat").write_text('"mine"\ninclude "sc.cat"\n')
    assert ask(tmp_path, str(tmp_path / "my.cat")).answer.observation.value == "never"
    (tmp_path / "sc.cat").write_text('"not sc"\nacyclic po as Order\n')
    assert ask(tmp_path, str(tmp_path / "my.cat")).answer.observation.value == "sometimes"
    assert judged == ["my", "my"]


def test_the_digest_of_a_model_tells_models_apart():
    text = '"m"\nlet a = po | rf\nacyclic a as A\n'
    other = (text.replace("rf", "co"), text.replace("acyclic", "irreflexive"), text + "flag ~empty a as race\n")
    digests = {keys.of_model(parse_model(Source("m.cat", one))) for one in (text, *other)}
    model = parse_model(Source("m.cat", text))
    digests |= {keys.of_model(replace(model, checks=())), keys.of_model(replace(model, name="n"))}
    assert len(digests) == len(other) + 3


def test_the_program_is_part_of_the_key(tmp_path):
    """A copy of the package with one changed character has another key."""
    copy = tmp_path / "memmodel"
    shutil.copytree(ROOT / "memmodel", copy, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "axioms").symlink_to(ROOT / "axioms")

    def digest() -> str:
        code = "from memmodel.cache.keys import program; print(program())"
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True).stdout

    before = digest()
    assert digest() == before
    (copy / "base" / "points.py").write_text((copy / "base" / "points.py").read_text() + "#\n")
    assert digest() != before


def test_nothing_is_kept_of_a_program_that_changes_meanwhile(tmp_path, judged, monkeypatch):
    monkeypatch.setattr(keys, "program_changed", lambda: True)
    ask(tmp_path)
    ask(tmp_path)
    assert len(judged) == 2


def test_a_model_that_is_edited_meanwhile_is_kept_under_its_own_name(tmp_path, judged):
    model = tmp_path / "my.cat"
    model.write_text('"mine"\ninclude "sc.cat"\n')
    verdicts = Verdicts(Store(tmp_path))
    verdicts.known(str(model))
    model.write_text('"mine"\nacyclic po as Order\n')
    (posed,) = verdicts.posed(Source("mp.litmus", MP))
    assert verdicts.report(posed, str(model), Options()).answer.observation.value == "sometimes"
    model.write_text('"mine"\ninclude "sc.cat"\n')
    assert ask(tmp_path, str(model)).answer.observation.value == "never"


def test_what_ran_out_of_a_budget_is_judged_again(tmp_path, judged):
    little = Options("enumerate", Budget(effort=10))
    for _ in range(2):
        assert ask(tmp_path, options=little).answer.observation.value == "undecided"
    assert len(judged) == 2


def test_undecided_by_sizes_alone_is_kept(tmp_path, judged):
    """No budget changes that the model says nothing of the program."""
    path = next(path for path in (ROOT / "litmus").rglob("*.litmus") if "undecided+race" in path.read_text()[:600])
    source = Source.read(path)
    for _ in range(2):
        verdicts = Verdicts(Store(tmp_path))
        found = verdicts.report(verdicts.posed(source)[0], "ptx-9.4", Options())
        assert found.answer.observation.value == "undecided" and found.ok
    assert len(judged) == 1


def test_what_a_file_expects_is_compared_anew(tmp_path):
    """Expectations of models that there are not are looked for every time."""
    text = MP.replace("PTX MP\n", "PTX MP\nExpect=ptx-9.4:never ptx-9.5:never\n")
    first, second = ask(tmp_path, text=text), ask(tmp_path, text=text)
    assert first.ok and first == second
    assert "no model `ptx-9.5`" in second.warnings[-1]
    verdicts = Verdicts(Store(tmp_path))
    (posed,) = verdicts.posed(Source("mp.litmus", text))
    judged_by = keys.of_options("auto", 3)
    assert verdicts.meets(posed, "ptx-9.4", judged_by, "never") is True
    assert verdicts.meets(posed, "ptx-9.4", judged_by, "never+race") is False
    assert verdicts.meets(posed, "sc", judged_by, "never") is None


# ---- accidents -------------------------------------------------------------------------------------------------------


def test_a_damaged_file_is_replaced(tmp_path, judged):
    ask(tmp_path)
    path = tmp_path / "verdicts.sqlite"
    whole = path.read_bytes()
    accidents = (b"", b"no database", whole[: len(whole) // 2], b"\0" * len(whole), whole[:4096] + os.urandom(4096))
    for number, content in enumerate(accidents, 2):
        path.write_bytes(content)
        assert ask(tmp_path).answer.observation.value == "never"
        ask(tmp_path)
        assert len(judged) == number, f"accident {number - 2}: judged again, and kept"


def test_an_entry_that_was_changed_is_not_believed(tmp_path, judged):
    ask(tmp_path)
    with sqlite3.connect(tmp_path / "verdicts.sqlite") as db:
        rows = db.execute("SELECT key, seal, body FROM entry").fetchall()
        for (key, *_), (_, seal, body) in zip(rows, rows[1:] + rows[:1], strict=True):
            db.execute("UPDATE entry SET seal = ?, body = ? WHERE key = ?", (seal, body, key))
    db.close()
    assert ask(tmp_path).answer.observation.value == "never"
    assert len(judged) == 2


def test_a_disk_that_is_full_or_read_only_costs_nothing_but_time(tmp_path):
    store = Store(tmp_path)
    store.put("a", "1")
    connection = store._connection
    assert connection is not None
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(50):
        store.put(f"b{number}", os.urandom(3000).hex())
    assert "full" in store.trouble
    assert store.get("a") is None and Store(tmp_path).get("a") == "1"
    (tmp_path / "file").write_text("")
    nowhere = Store(tmp_path / "file" / "below")
    nowhere.put("a", "1")
    assert nowhere.get("a") is None and "file" in nowhere.trouble


def _write(folder: str, mine: int) -> int:
    store = Store(Path(folder))
    for number in range(60):
        store.put(f"{number}", f"{number}" * 50)
        store.put(f"{mine}/{number}", "x")
    return sum(store.get(f"{number}") == f"{number}" * 50 for number in range(60))


def test_several_processes_share_a_store(tmp_path):
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_write, [str(tmp_path)] * 3, range(3))) == [60] * 3
    assert Store(tmp_path).count() == 60 * 4


def test_a_process_that_dies_leaves_what_it_kept(tmp_path):
    code = f"""if 1:
        import os; from pathlib import Path; from memmodel.cache.store import Store
        store = Store(Path({str(tmp_path)!r}))
        store.put("a", "1")
        store._connection.execute("BEGIN IMMEDIATE")
        store._connection.execute("DELETE FROM entry")
        os.kill(os.getpid(), 9)"""
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == -9
    assert Store(tmp_path).get("a") == "1"


def test_a_store_stays_below_its_size(tmp_path):
    store = Store(tmp_path, most=300_000)
    store.put("old", "x")
    for number in range(600):
        store.put(f"{number}", os.urandom(500).hex())
    store.close()
    again = Store(tmp_path, most=300_000)
    assert again.get("599") is not None and again.get("old") is None
    assert again.path.stat().st_size <= 330_000


def test_what_cannot_be_written_down_is_refused():
    report = api.check(MP)
    text = dump(report, Source("<text>", MP))
    assert undump(Report, text, Source("<text>", MP)) == report
    with pytest.raises(NotKept):
        dump(report, Source("<text>", MP + " "))
    for wrong in ("", "[]", "[[],0]", text[:-9] + "]"):
        with pytest.raises(NotKept):
            undump(Report, wrong, Source("<text>", MP))


# ---- the commands ----------------------------------------------------------------------------------------------------


def test_check_suite_and_cache(tmp_path, monkeypatch, capsys, judged):
    monkeypatch.setenv("MEMMODEL_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr("memmodel.cat.kept._LOADED", {})
    monkeypatch.chdir(ROOT)
    batch.forget()

    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main(list(words))
        return int(left.value.code or 0), capsys.readouterr().out

    test = SHOWN[0]
    code, _ = run("suite", test, "--json", str(tmp_path / "1.json"))
    assert run("suite", test, "--json", str(tmp_path / "2.json"))[0] == code == 0
    assert json.loads((tmp_path / "1.json").read_text()) == json.loads((tmp_path / "2.json").read_text())
    assert judged == ["ptx-9.4"]
    assert run("check", test)[0] == 0 and len(judged) == 2, "a check explains, so it judges anew"
    assert run("suite", test, "--no-cache")[0] == 0 and len(judged) == 3
    assert run("cache", "--path")[1] == f"{tmp_path / 'kept' / 'verdicts.sqlite'}\n"
    assert "3 entries" in run("cache")[1]
    assert list((tmp_path / "kept").glob("*.model"))
    assert "empty" in run("cache", "--clear")[1]
    assert list((tmp_path / "kept").iterdir()) == []
    assert "0 entries" in run("cache")[1]
    monkeypatch.setattr("memmodel.cat.kept._LOADED", {})
    run("check", test, "--no-cache")
    assert not list((tmp_path / "kept").glob("*.model"))
    for nothing in ("off", ""):
        monkeypatch.setenv("MEMMODEL_CACHE", nothing)
        assert run("cache")[0] == 2
    batch.forget()


def test_models_have_a_folder_of_their_own_where_one_is_named(tmp_path, monkeypatch):
    """And a shipped one is found again from wherever the program runs."""
    monkeypatch.setenv("MEMMODEL_CACHE", "off")
    monkeypatch.setenv("MEMMODEL_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr("memmodel.cat.kept.models_dir", models_dir)
    monkeypatch.setattr("memmodel.cat.kept._LOADED", {})
    first = cat.load_model("sc")
    assert [path.suffix for path in (tmp_path / "models").iterdir()] == [".model"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("memmodel.cat.kept._LOADED", {})
    monkeypatch.setattr("memmodel.cat.load._shipped", None)
    assert cat.load_model("sc") == first
    monkeypatch.delenv("MEMMODEL_MODELS")
    assert models_dir() is None


def test_what_is_kept_of_a_model_opens_no_folder(tmp_path, judged):
    """An include that was allowed once is refused where it is not, although the model is known."""
    (tmp_path / "below").mkdir()
    (tmp_path / "part.cat").write_text("let mine = po\n")
    model = tmp_path / "below" / "m.cat"
    model.write_text('include "../part.cat"\nacyclic mine as thin\n')
    known = keys.ModelKeys(Store(tmp_path / "kept"))
    cat.allow_includes([tmp_path])
    try:
        assert known.of(str(model)).name == "m"
        assert keys.ModelKeys(Store(tmp_path / "kept")).of(str(model)) == known.of(str(model))
    finally:
        cat.allow_includes([])
    with pytest.raises(InputError, match="lies elsewhere"):
        keys.ModelKeys(Store(tmp_path / "kept")).of(str(model))


def test_the_folder_is_the_one_that_platformdirs_says(tmp_path, monkeypatch):
    monkeypatch.delenv("MEMMODEL_CACHE")
    for home in ("", str(tmp_path / "cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert cache_dir() == platformdirs.user_cache_path("memmodel", appauthor=False)


@pytest.mark.skipif(sys.platform != "linux", reason="where platformdirs is asked, it decides")
def test_a_relative_cache_folder_is_ignored(monkeypatch):
    """As the XDG Base Directory Specification says; platformdirs does so only in its later versions."""
    monkeypatch.delenv("MEMMODEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_dir() == Path("~/.cache/memmodel").expanduser()


def test_each_run_sees_the_models_anew(tmp_path):
    """A program may change a model between two suites."""
    (tmp_path / "t.litmus").write_text(MP)
    model = tmp_path / "m.cat"
    found = []
    for text in ("empty 0 as nothing\n", "acyclic po | rf | co | fr as total\n"):
        model.write_text(text)
        (entry,) = library.suite(tmp_path, str(model))
        found.append(entry.report.answer.observation)
    assert found == [Observation.SOMETIMES, Observation.NEVER]


def test_settings_of_a_program_keep_nothing(tmp_path, monkeypatch, judged):
    """Only commands and the plugin keep verdicts; the library judges."""
    monkeypatch.setenv("MEMMODEL_CACHE", str(tmp_path))
    batch.run_job(Job(str(ROOT / SHOWN[1])), Settings())
    api.check(ROOT / SHOWN[1])
    assert not (tmp_path / "verdicts.sqlite").exists()
