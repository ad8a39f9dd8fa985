"""The pytest plugin, as somebody uses it: pytest with tests of its own, some of the time in a process of its own."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from contextlib import suppress
from importlib import import_module

import pytest
from helpers.places import ROOT

import memmodel
from memmodel.base.resources import axioms_dir, base_of

pytestmark = pytest.mark.turns(2)

pytest_plugins = ["pytester"]

H1 = ROOT / "litmus" / "generic" / "H1.litmus"
TOTAL = ROOT / "docs" / "examples" / "total.cat"
MP = """PTX {name}
Expect={words}
{{ x = 0; y = 0; }}
P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
st.relaxed.gpu.u32 [x], 1 | ld.acquire.gpu.u32 r0, [y] ;
st.release.gpu.u32 [y], 1 | ld.relaxed.gpu.u32 r1, [x] ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


@pytest.fixture
def place(pytester, monkeypatch):
    """A folder with tests; `memmodel` may not be installed here, so the plugin is named."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MEMMODEL_CACHE", str(pytester.path / "kept"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = pytester.path / "litmus" / "mp"
    folder.mkdir(parents=True)
    (folder / "MP.litmus").write_text(MP.format(name="MP", words="ptx-9.4:never sc:never"))
    (folder / "wrong.litmus").write_text(MP.format(name="wrong", words="ptx-9.4:sometimes"))
    (folder.parent / "H1.litmus").write_text(H1.read_text())
    return pytester


for _module in pkgutil.walk_packages(memmodel.__path__, "memmodel."):
    # Pytest run inside this process forgets what it has loaded; classes must not come to be there twice.
    if not _module.name.endswith("__main__"):
        with suppress(ImportError):  # an extra that is not installed
            import_module(_module.name)


def play(place, *words: object, apart: bool = False):
    """Run pytest; `apart`: in a process of its own, which takes longer."""
    run = place.runpytest_subprocess if apart else place.runpytest_inprocess
    return run("-p", "memmodel.pytest_plugin", "-p", "no:cacheprovider", *words)


def test_nothing_happens_without_the_option(place):
    place.makepyfile("def test_one(): pass")
    play(place).assert_outcomes(passed=1)
    code = "import sys, memmodel.pytest_plugin; print([m for m in sys.modules if m.startswith('memmodel.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['memmodel.pytest_plugin']"


def test_a_failure_says_what_was_expected_and_why_it_is_otherwise(place):
    for apart in (False, True):  # the second time from the cache
        ran = play(place, "--memmodel", "ptx-9.4", "litmus", apart=apart)
        outcome = ran.parseoutcomes()
        assert outcome["failed"] == 1 and outcome["passed"] >= 3
        ran.stdout.fnmatch_lines(
            [
                "*wrong.litmus under ptx-9.4*",
                "litmus/mp/wrong.litmus, wrong under ptx-9.4",
                "  expected: sometimes",
                "  got:      never",
                "wrong under ptx-9.4: never; *",
                "  forbidden by Causality",
                "    because *",
                "memmodel check litmus/mp/wrong.litmus --model ptx-9.4",
            ]
        )
        assert "Traceback" not in ran.stdout.str()


def test_a_model_file_stands_in_for_the_model_that_it_derives_from(place):
    (place.path / "total.cat").write_text(TOTAL.read_text())
    ran = play(place, "--memmodel", "total.cat", "litmus/H1.litmus", "litmus/mp/MP.litmus", "-v")
    ran.stdout.fnmatch_lines(
        [
            "litmus/H1.litmus::ptx-9.4=total FAILED*",
            "litmus/mp/MP.litmus::ptx-9.4=total PASSED*",
            "litmus/mp/MP.litmus::sc PASSED*",
            "litmus/H1.litmus, H1 under total in place of ptx-9.4",
            "memmodel diff ptx-9.4 total.cat litmus/H1.litmus",
        ]
    )
    own = place.path / "own.cat"
    own.write_text('"Everything is allowed"\nempty 0 as Nothing\n')
    ran = play(place, "--memmodel", own, "litmus")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(["*derives from no shipped model*", "*--memmodel ptx-9.4=*"])
    ran = play(place, "--memmodel", f"ptx9.3={own}", "litmus")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(["*did you mean ptx-9.3?*"])
    ran = play(place, "--memmodel", f"sc={own}", "--memmodel", "ptx-9.4", "litmus/mp/MP.litmus", "-v")
    ran.stdout.fnmatch_lines(["*::ptx-9.4 PASSED*", "*::sc=own FAILED*"])


def test_which_model_a_file_stands_for(tmp_path):
    axioms = axioms_dir()
    prelude = str(axioms / "prelude.cat")
    mine = str(tmp_path / "my.cat")
    assert base_of((prelude, mine, str(axioms / "ptx-7.5.cat")), mine) == "ptx-7.5"
    assert base_of((prelude, mine, str(axioms / "ptx-9.3" / "axioms.cat")), mine) == "ptx-9.3"
    assert base_of((prelude, str(axioms / "ptx-9.4.cat")), "axioms/ptx-9.4.cat") == "ptx-9.4"
    reading = str(axioms / "readings" / "D1-issuer.cat")
    assert base_of((prelude, mine, reading, str(axioms / "ptx-9.4.cat")), mine) == "readings/D1-issuer"
    assert base_of((prelude, mine, str(axioms / "library" / "stdlib.cat")), mine) is None
    assert base_of((prelude, str(tmp_path / "sc.cat")), str(tmp_path / "sc.cat")) == "sc"


def test_marks_keywords_and_engines(place):
    def chosen(*words: object) -> list[str]:
        ran = play(place, "--memmodel", "ptx-9.4", "litmus/mp/MP.litmus", "--collect-only", "-q", *words)
        return [line.partition("::")[2] for line in ran.outlines if "::" in line]

    assert chosen() == ["ptx-9.4", "sc"]
    assert chosen("-k", "sc") == ["sc"]
    assert chosen("-k", "MP and not sc") == ["ptx-9.4"]
    assert chosen("-m", "memmodel") == ["ptx-9.4", "sc"] and chosen("-m", "not memmodel") == []
    engines = ("--memmodel-engine", "z3", "--memmodel-engine", "enumerate")
    assert chosen(*engines) == ["ptx-9.4-z3", "ptx-9.4-enumerate", "sc-z3", "sc-enumerate"]
    if pytest.version_tuple >= (8, 3):
        assert chosen("-m", 'model(name="sc")') == ["sc"]
        assert chosen("-m", 'folder(name="litmus/mp")') == ["ptx-9.4", "sc"]
        assert chosen(*engines, "-m", 'engine(name="z3")') == ["ptx-9.4-z3", "sc-z3"]
    play(place, "--memmodel", "ptx-9.4", "litmus/mp/MP.litmus", *engines).assert_outcomes(passed=4)


def test_files_that_cannot_be_judged(place):
    (place.path / "bad.litmus").write_text("PTX bad\nnonsense")
    (place.path / "silent.litmus").write_text(MP.format(name="silent", words="").replace("Expect=\n", ""))
    (place.path / "slip.litmus").write_text(MP.format(name="slip", words="ptx-9:never"))
    ran = play(place, "--memmodel", "ptx-9.4", "bad.litmus", "silent.litmus", "slip.litmus", "-rs")
    ran.assert_outcomes(failed=2, skipped=1)
    ran.stdout.fnmatch_lines(["bad.litmus:2:9: error: *", "*no model `ptx-9`*"])
    assert "Traceback" not in ran.stdout.str()
    assert play(place, "--memmodel", "nope", "litmus").ret == pytest.ExitCode.USAGE_ERROR
    assert play(place, "--memmodel", "sc", "--memmodel-budget", "much", "litmus").ret == pytest.ExitCode.USAGE_ERROR
    ran = play(place, "--memmodel", "sc", "--memmodel-engine", "z3", "--memmodel-budget", "1", "litmus/mp/MP.litmus")
    ran.assert_outcomes(failed=2)
    ran.stdout.fnmatch_lines(["  got:      undecided*"])


def test_a_test_names_models_beside_it_and_no_others(place):
    """And such a model includes what lies below it, or below a folder that is allowed."""
    folder = place.path / "litmus" / "own"
    folder.mkdir()
    (folder / "free.cat").write_text('"free"\ninclude "../part.cat"\n')
    (folder.parent / "part.cat").write_text("empty 0 as nothing\n")
    (folder / "own.litmus").write_text(MP.format(name="own", words="free.cat:sometimes ../part.cat:sometimes"))
    run = play(place, "--memmodel", "ptx-9.4", "litmus/own", "-v")
    run.assert_outcomes(failed=2)
    run.stdout.fnmatch_lines(["*own.litmus::free.cat FAILED*", "*lies elsewhere*", "*files beside the test*"])
    run = play(place, "--memmodel", "ptx-9.4", "litmus/own", "-v", "--memmodel-allow-include", "litmus")
    run.assert_outcomes(passed=1, failed=1)
    play(place, "--memmodel", "ptx-9.4", "litmus/own").assert_outcomes(failed=2)


def test_known_items_and_functions_take_turns(place):
    """An item whose answer is known is not set up as others are; what the others set up is torn down all the same."""
    place.makeconftest(
        """
        import pytest
        @pytest.fixture(scope="package", autouse=True)
        def whole():
            yield
            print("torn down")
        """
    )
    place.mkpydir("a").joinpath("test_a.py").write_text("def test_a(): pass\n")
    (place.path / "a" / "MP.litmus").write_text((place.path / "litmus/mp/MP.litmus").read_text())
    place.mkpydir("b").joinpath("test_b.py").write_text("def test_b(): pass\n")
    for _ in range(2):
        words = ("a/test_a.py", "a/MP.litmus", "litmus/mp/MP.litmus", "b/test_b.py", "a/MP.litmus")
        play(place, "--memmodel", "sc", *words, "--junitxml=out.xml").assert_outcomes(passed=6)
    assert (place.path / "out.xml").read_text().count("<testcase") == 6


def test_with_xdist(place):
    pytest.importorskip("xdist")
    play(place, "--memmodel", "ptx-9.4", "litmus/mp")  # some answers are known, some are not
    ran = play(place, "-p", "xdist", "-n", "2", "--memmodel", "ptx-9.4", "litmus", apart=True)
    outcome = ran.parseoutcomes()
    assert outcome["failed"] == 1 and outcome["passed"] >= 3
    ran.stdout.fnmatch_lines(["  expected: sometimes", "  forbidden by Causality"])


def test_only_what_an_edit_affects_is_judged_again(place):
    """Judged anew is what is not kept; the kept file tells how many entries there are."""
    from memmodel.cache.store import Store

    mine = place.path / "my.cat"
    mine.write_text('include "ptx-9.4.cat"\n')
    store = Store(place.path / "kept")
    play(place, "--memmodel", mine, "litmus/mp/MP.litmus").assert_outcomes(passed=2)
    count = store.count()
    play(place, "--memmodel", mine, "litmus/mp/MP.litmus").assert_outcomes(passed=2)
    assert store.count() == count
    mine.write_text('include "ptx-9.4.cat"\nempty (R * R) & id as Nothing\n')
    play(place, "--memmodel", mine, "litmus/mp/MP.litmus").assert_outcomes(passed=1, failed=1)
    assert store.count() == count + 1, "one verdict; sc is as it was"
    play(place, "--memmodel", mine, "--memmodel-no-cache", "litmus/mp/MP.litmus").assert_outcomes(passed=1, failed=1)


def test_assertions_in_python(place):
    place.makepyfile(
        f"""
        import memmodel as m
        MP = {MP.format(name="MP", words="sc:never")!r}
        def test_never(memmodel): memmodel.assert_never(MP)
        def test_ask(memmodel): memmodel.assert_sometimes(MP, ask="exists (P1:r0 == 1)")
        def test_function(): assert m.assert_never(MP, "sc").answer.axioms
        def test_wrong(memmodel): memmodel.assert_always(MP)
        def test_model(memmodel): assert memmodel.model == "ptx-9.4" and memmodel.check(MP).holds is False
        """
    )
    for words in ((), ("--memmodel", "ptx-9.4")):
        ran = play(place, "test_assertions_in_python.py", *words)
        ran.assert_outcomes(passed=4, failed=1)
        ran.stdout.fnmatch_lines(["E *AssertionError: MP under ptx-9.4", "E *expected: always", "E *got:      never"])
        assert "testing.py" not in ran.stdout.str(), "the traceback ends in the test"


def test_assertions_are_strict():
    text = MP.format(name="MP", words="sc:never")
    memmodel.assert_always(text, ask="exists (P1:r0 <= 1)")
    with pytest.raises(AssertionError, match="got:      always"):
        memmodel.assert_sometimes(text, ask="exists (P1:r0 <= 1)")
    with pytest.raises(AssertionError, match="got:      sometimes"):
        memmodel.assert_never(text, ask="exists (P1:r0 == 1)")
    assert os.environ["MEMMODEL_CACHE"] == "off"
