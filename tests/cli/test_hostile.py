"""Files written by somebody else: what they may name, what of them is printed, what they may do to a terminal."""

from __future__ import annotations

import pytest

from memmodel import cat
from memmodel.cli import main
from memmodel.errors import InputError
from memmodel.output import escaped

GOOD = """PTX MP
{ x = 0; y = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;
 st.weak x, 1        | ld.acquire.gpu r0, y ;
 st.release.gpu y, 1 | ld.weak r1, x        ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
SECRET = "hunter2 is the password\nroot:x:0:0\n"


@pytest.fixture
def run(capsys):
    def call(*argv: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in argv])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out + err

    return call


def test(tmp_path, expect: str = ""):
    folder = tmp_path / "tests"
    folder.mkdir(exist_ok=True)
    path = folder / "t.litmus"
    path.write_text(GOOD.replace("PTX MP\n", f"PTX MP\n{expect}\n"))
    return path


test.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../secret", "../secret.cat", "{dir}/secret.cat", "readings/../../secret"]
)
def test_an_expect_line_names_nothing_elsewhere(name, run, tmp_path):
    (tmp_path / "secret.cat").write_text(SECRET)
    (tmp_path / "secret").write_text(SECRET)
    code, said = run("suite", test(tmp_path, f"Expect={name.format(dir=tmp_path)}:never"))
    assert code == 2 and "hunter2" not in said and "root" not in said.replace("/root", "").replace("pytest-of-root", "")


def test_a_link_beside_the_test_is_no_way_out(run, tmp_path):
    (tmp_path / "secret.cat").write_text(SECRET)
    path = test(tmp_path, "Expect=mine.cat:never")
    (path.parent / "mine.cat").symlink_to(tmp_path / "secret.cat")
    code, said = run("suite", path)
    assert code == 2 and "hunter2" not in said and "beside the test" in said


def test_an_expect_line_names_a_file_beside_the_test(run, tmp_path):
    path = test(tmp_path, "Expect=mine.cat:sometimes ptx-9.4:never")
    (path.parent / "mine.cat").write_text('"Nothing is forbidden"\nempty 0 as nothing\n')
    code, said = run("suite", path)
    assert code == 0 and "2 as expected" in said


def test_against_counts_for_models_beside_the_test(run, tmp_path):
    path = test(tmp_path, "Expect=mine.cat:sometimes ptx-9.4:never")
    (path.parent / "mine.cat").write_text('"Nothing is forbidden"\nempty 0 as nothing\n')
    code, said = run("suite", path, "--against", "ptx-9.4")
    assert code == 1 and "1 as expected, 1 differ" in said


@pytest.mark.parametrize("include", ["../secret.cat", "{dir}/secret.cat", "link.cat"])
def test_an_include_stays_below_the_model(include, run, tmp_path):
    (tmp_path / "secret.cat").write_text(SECRET)
    path = test(tmp_path)
    (path.parent / "link.cat").symlink_to(tmp_path / "secret.cat")
    model = path.parent / "m.cat"
    model.write_text(f'include "{include.format(dir=tmp_path)}"\nacyclic po\n')
    code, said = run("check", path, "--model", model)
    assert code == 2 and "hunter2" not in said and "--allow-include" in said
    (tmp_path / "secret.cat").write_text("let mine = po\n")
    code, said = run("check", path, "--model", model, "--allow-include", tmp_path)
    assert code == 0, said
    code, said = run("check", path, "--model", model)
    assert code == 2, "what was allowed once is not allowed for ever"


def test_an_edited_model_is_noticed_and_a_cached_one_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMMODEL_CACHE", str(tmp_path / "cache"))
    model = tmp_path / "m.cat"
    model.write_text("acyclic po as one\n")
    first = cat.load_model(model)
    assert [check.name for check in first.checks] == ["one"]
    model.write_text("acyclic po as two\n")
    assert [check.name for check in cat.load_model(model).checks] == ["two"]
    monkeypatch.setattr("memmodel.cat.kept._LOADED", {})
    assert cat.load_model(model) == cat.load_model(model)
    assert [check.name for check in cat.load_model(model).checks] == ["two"]
    for entry in (tmp_path / "cache").iterdir():
        entry.write_bytes(b"\x80\x05cos\nsystem\n(S'touch /tmp/bad'\ntR.")
    monkeypatch.setattr("memmodel.cat.kept._LOADED", {})
    assert [check.name for check in cat.load_model(model).checks] == ["two"]


def test_no_line_of_a_file_that_is_no_test_is_shown(run, tmp_path):
    path = tmp_path / "a.litmus"
    path.write_text(SECRET)
    code, said = run("check", path)
    assert code == 2 and "hunter2" not in said and "root:x" not in said


@pytest.mark.parametrize("char", ["\x1b", "\x85", "\x9b", "\u202e", "\u2066", "\u200f", "\x7f", "\r"])
def test_no_character_of_a_name_reaches_the_terminal(char, run, tmp_path):
    folder = tmp_path / f"a{char}b"
    folder.mkdir()
    (folder / "t.litmus").write_text(GOOD)
    (folder / "u.litmus").write_text("PTX u\nnonsense\n")
    for argv in (["check", folder], ["suite", folder, "--no-expect", "-v"], ["check", folder / "none"],
                 ["check", folder / "t.litmus", "--model", f"no{char}ne"], ["check", "--engine", f"z{char}3", folder],
                 [f"che{char}ck"]):  # fmt: skip
        _, said = run(*argv)
        assert char not in said and said


@pytest.mark.parametrize("char", ["\x85", "\x9b", "\u202e", "\u2066"])
def test_no_character_of_a_text_reaches_the_terminal(char, run, tmp_path):
    path = test(tmp_path)
    path.write_text(GOOD.replace("st.weak x", f"st.{char}weak x"))
    code, said = run("check", path)
    assert code == 2 and char not in said and escaped(char) in said


@pytest.mark.parametrize(
    "line",
    [
        'model = "../secret.cat"',
        'model = "../secret.txt"',
        'model = "ABOVE/secret.txt"',
        'model = "/etc/passwd"',
        'model = "link.cat"',
        'model = "own.txt"',
        'model = "../../../../../../../../etc/passwd"',
        'readings = ["../secret.txt"]',
        'readings = ["../secret.cat"]',
        'readings = ["ABOVE/secret.txt"]',
        'suite = ["../secret.txt"]',
        'suite = ["link.cat"]',
        'suite = ["ABOVE"]',
    ],
)
def test_a_pyproject_of_somebody_else_names_no_file_elsewhere(line, run, tmp_path, monkeypatch):
    path = test(tmp_path)
    for place in ("secret.cat", "secret.txt", "secret.litmus", f"{path.parent.name}/own.txt"):
        (tmp_path / place).write_text(SECRET)
    (path.parent / "link.cat").symlink_to(tmp_path / "secret.cat")
    (path.parent / "pyproject.toml").write_text(f"[tool.memmodel]\n{line.replace('ABOVE', str(tmp_path))}\n")
    monkeypatch.chdir(path.parent)
    for command in ("check", "outcomes", "suite"):
        code, said = run(command, *(["t.litmus"] if command != "suite" else []))
        assert code == 2 and "hunter2" not in said and "root:" not in said
        assert "[tool.memmodel]" in said


def test_allow_include_names_a_folder(tmp_path):
    with pytest.raises(InputError, match="no such directory"):
        cat.allow_includes([tmp_path / "none"])


def test_a_folder_of_models_where_the_program_runs_does_not_matter(tmp_path, monkeypatch):
    """A shipped model is read from where memmodel is installed, whatever `axioms` lies in the current directory."""
    (tmp_path / "axioms" / "readings").mkdir(parents=True)
    (tmp_path / "axioms" / "readings" / "D14-cluster.cat").write_text('"other"\nlet x = po\n')
    (tmp_path / "axioms" / "ptx-9.4.cat").write_text('"other"\nlet x = po\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("memmodel.cat.kept._LOADED", {})
    assert len(cat.load_model("readings/D14-cluster").definitions) > 50
