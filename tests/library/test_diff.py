"""`memmodel diff`: what differs between two models, in which direction, and a model at a revision."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from helpers.places import ROOT

from memmodel import api, cat
from memmodel.answer import Budget
from memmodel.cache.verdicts import Verdicts
from memmodel.cat import parse_model
from memmodel.cli import main
from memmodel.compare import git
from memmodel.compare.judge import Contrast, Direction, Sides, contrasts
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.source import Source

pytestmark = pytest.mark.turns(2)

TOTAL = "docs/examples/total.cat"
MP = """PTX MP
{ x = 0; y = 0; }
P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
st.weak.u32 [x], 1 | ld.acquire.gpu.u32 r0, [y] ;
st.release.gpu.u32 [y], 1 | ld.weak.u32 r1, [x] ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command; its exit code, stdout and stderr."""
    monkeypatch.chdir(ROOT)

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["diff", *map(str, words)])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return int(left.value.code or 0), out, err

    return call


def contrast(first: str, second: str, text: str = MP, options: Options = Options(), **more) -> Contrast:
    """One question under two models, given as cat texts or names."""
    models = [
        parse_model(Source(f"{name}.cat", one)) if "\n" in one else api.load(one)
        for name, one in zip("ab", (first, second), strict=True)
    ]
    verdicts = Verdicts()
    sides = Sides(*models, ("a", "b"), options, **more)
    (found,) = contrasts(verdicts, verdicts.posed(Source("mp.litmus", text)), sides)
    return found


FREE = '"free"\nacyclic po | rf as Thin\n'
SC = 'include "sc.cat"\n'


def test_directions():
    found = contrast(FREE, SC)
    assert found.direction is Direction.FORBIDS and not found.new
    assert [dict(state.values) for state in found.lost_outcomes] == [{"P1:r0": 1, "P1:r1": 0}]
    assert contrast(SC, FREE).direction is Direction.ALLOWS
    assert contrast(SC, SC).direction is Direction.SAME
    one = '"one"\nempty [R & ACQ]; fr as NoFirst\n'
    two = '"two"\nempty [R & ACQ]; rf^-1; [W & REL] as NoSecond\n'
    found = contrast(one, two)
    assert found.direction is Direction.OTHER and found.lost_outcomes and found.new


def test_findings():
    plain = '"m"\nlet race = (W * M | M * W) & loc & ext & WEAK * WEAK\n'
    flagged = plain + "flag ~empty race as data-race\n"
    never = plain + "flag ~empty 0 as data-race\n"
    found = contrast(plain, flagged)
    assert found.direction is Direction.REPORTS_MORE and found.more and not found.lost_outcomes
    assert contrast(flagged, plain).direction is Direction.REPORTS_LESS
    assert contrast(flagged, never).direction is Direction.FORBIDS, "both have a rule for it"
    assert contrast(flagged, never, outcomes_only=True).direction is Direction.SAME
    asked = MP[: MP.index("exists")] + "exists race\n"
    assert contrast(flagged, never, asked).direction is Direction.FORBIDS
    assert contrast(flagged, never, asked, outcomes_only=True).direction is Direction.SAME
    assert "no rule" in contrast(never, plain, asked).undecided
    assert contrast(plain, plain, asked, outcomes_only=True).undecided == ""


def test_what_was_not_searched_is_undecided():
    found = contrast(FREE, SC, options=Options("enumerate", Budget(effort=20)))
    assert found.undecided and not found.differs


def test_text(run):
    code, out, err = run("ptx-9.4", TOTAL, "litmus/generic/H1.litmus", "litmus/generic/G17.litmus")
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == "litmus/generic/H1.litmus: total forbids more"
    assert lines[1].endswith("sometimes under ptx-9.4, never under total")
    assert "8 final states only under ptx-9.4:" in lines[2]
    assert "      an execution that shows it:" in lines and "      forbidden by Causality, Total" in lines
    assert lines[-1] == "2 tests under ptx-9.4 and total: 1 differs (total forbids more in 1), 1 the same, 0 undecided"
    assert run("ptx-9.4", "ptx-9.4", "litmus/generic/H1.litmus")[0] == 0


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ("ptx-9.4", TOTAL, "litmus/generic/H1.litmus"),
        ("ptx-9.4", "sc", "litmus/shapes/MP+rlx.gpu+acq.gpu@two-ctas.litmus"),
    ],
)
def test_reasons_are_the_same_with_and_without_the_cache(run, monkeypatch, tmp_path, first, second, path):
    monkeypatch.setenv("MEMMODEL_CACHE", str(tmp_path / "kept"))
    printed = [run(*words, first, second, path)[1] for words in (("--no-cache",), (), ())]
    assert "because" in printed[0] or "forbidden by" in printed[0]
    assert printed == [printed[0]] * 3


def test_json_and_markdown(run):
    code, out, _ = run("--format", "json", TOTAL, "ptx-9.4", "litmus/generic/H1.litmus")
    (one,) = json.loads(out)["differ"]
    assert code == 1 and one["direction"] == "allows" and one["observations"] == ["never", "sometimes"]
    assert len(one["states_only_second"]) == 8 and one["states_only_first"] == []
    assert "forbidden by Causality, Total" in one["explanations"]["total"]
    here = Path("litmus/generic/H1.litmus").resolve()  # in a review, paths are those of the repository
    code, out, _ = run("--format", "markdown", "-j", 2, TOTAL, "ptx-9.4", here, "litmus/generic/G17.litmus")
    assert code == 1
    assert "| test | total | ptx-9.4 | direction |" in out
    assert str(here) not in out
    assert "| `litmus/generic/H1.litmus` | `never` | `sometimes` | allows more |" in out
    assert out.count("<details>") == out.count("</details>") == 1 and out.count("```") == 2


def test_exit_codes(run, tmp_path):
    bad = tmp_path / "bad.litmus"
    bad.write_text("PTX bad\n")
    code, out, err = run("ptx-9.4", TOTAL, "litmus/generic/H1.litmus", bad)
    assert code == 2 and "bad.litmus:" in err and "1 differs" in out and "1 bad" in out
    few = ("--engine", "enumerate", "--budget", 20)
    code, out, _ = run("ptx-9.4", TOTAL, "litmus/generic/H1.litmus", *few)
    assert code == 3 and "undecided: " in out and "1 undecided" in out
    assert run("ptx-9.4")[0] == 2 and run("ptx-9.4", "nope")[0] == 2
    assert run("ptx-9.4", TOTAL, "no-such-file")[0] == 2


# ---- a model at a revision -------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a model of two files, committed, then changed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "my.cat").write_text('"mine"\ninclude "part.cat"\n')
    (tmp_path / "m" / "part.cat").write_text("acyclic po | rf | co | fr as Order\n")
    (tmp_path / "outside.cat").symlink_to("/etc/hostname.cat")

    def call(*words: str) -> None:
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(["git", *words], check=True, capture_output=True, env=environment)

    call("init", "-q")
    call("add", ".")
    call("commit", "-q", "-m", "one")
    (tmp_path / "m" / "part.cat").write_text("acyclic po | rf as Order\n")
    (tmp_path / "mp.litmus").write_text(MP)
    return call


def test_includes_are_those_of_the_revision(repository, tmp_path, capsys):
    model = git.model_at("HEAD", "m/my.cat")
    assert model.name == "my at HEAD" and model.sources[-1].name == "HEAD:m/part.cat"
    assert "Order" in [check.name for check in model.axioms] and model.checks != api.load("m/my.cat").checks
    with pytest.raises(SystemExit) as left:
        main(["diff", "--git", "HEAD", "m/my.cat", "mp.litmus"])
    assert left.value.code == 1
    assert "mp.litmus: my allows more" in capsys.readouterr().out
    (tmp_path / "m" / "part.cat").unlink()
    assert git.model_at("HEAD", "m/my.cat").checks == model.checks, "a file that is gone was there then"


def test_all_small_programs_under_a_model_and_what_it_was(repository, capsys):
    search = ["diff", "--git", "HEAD", "m/my.cat", "--search", "2", "--vocabulary", "plain", "--outcomes", "-j", "2"]
    with pytest.raises(SystemExit) as left:
        main(search)
    said = capsys.readouterr().out
    assert left.value.code == 1
    assert "m/my.cat allows, my at HEAD forbids, 2 instructions" in said and "Expect=m/my.cat:sometimes\n" in said
    with pytest.raises(SystemExit) as left:
        main([*search, "--format", "markdown"])
    said = capsys.readouterr().out
    assert left.value.code == 1
    assert said.startswith("**`my at HEAD` and `m/my.cat`** differ on") and "<details>" in said and "```\nPTX" in said


def test_nothing_outside_the_commit_is_read(repository, tmp_path):
    (tmp_path.parent / "secret.cat").write_text("acyclic po as Secret\n")
    (tmp_path / "m" / "new.cat").write_text("acyclic po as New\n")
    for include in ("../../secret.cat", str(tmp_path.parent / "secret.cat"), "../outside.cat", "new.cat"):
        (tmp_path / "m" / "bad.cat").write_text(f'"bad"\ninclude "{include}"\n')
        repository("add", "m/bad.cat")
        repository("commit", "-q", "-m", "bad")
        with pytest.raises(InputError, match="no file"):
            git.model_at("HEAD", "m/bad.cat")
    for revision in ("nope", "--help", "", "HEAD:m", "a\0b"):
        with pytest.raises(InputError, match="git knows no revision"):
            git.model_at(revision, "m/my.cat")
    with pytest.raises(InputError, match="does not exist at HEAD"):
        git.model_at("HEAD", "m/new.cat")
    with pytest.raises(InputError, match="no such file"):
        git.model_at("HEAD", "gone/my.cat")


def test_an_include_of_the_revision_stays_below_the_model(repository, tmp_path, capsys):
    (tmp_path / "up.cat").write_text("acyclic po as Up\n")
    (tmp_path / "m" / "my.cat").write_text('"mine"\ninclude "../up.cat"\n')
    repository("add", ".")
    repository("commit", "-q", "-m", "up")
    with pytest.raises(SystemExit) as left:
        main(["diff", "--git", "HEAD", "m/my.cat", "mp.litmus"])
    assert left.value.code == 2 and "--allow-include" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main(["diff", "--git", "HEAD", "m/my.cat", "mp.litmus", "--allow-include", "."])
    assert left.value.code == 0
    cat.allow_includes([])
    with pytest.raises(InputError, match="lies elsewhere"):
        git.model_at("HEAD", "m/my.cat")


def test_a_model_without_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "my.cat").write_text('"mine"\n')
    with pytest.raises(InputError, match="not in a git repository"):
        git.model_at("HEAD", str(tmp_path / "my.cat"))


def test_shipped_includes_of_a_model_elsewhere_are_the_installed_ones(repository, tmp_path):
    (tmp_path / "m" / "total.cat").write_text('include "ptx-9.4.cat"\nempty co as Total\n')
    repository("add", ".")
    repository("commit", "-q", "-m", "total")
    names = {check.name for check in git.model_at("HEAD", "m/total.cat").axioms}
    assert names == {check.name for check in api.load("ptx-9.4").axioms} | {"Total"}
