"""From text to report with nothing replaced: the library and the program on small tests."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from helpers.patience import PATIENCE
from helpers.places import ROOT

import memmodel
from memmodel.answer import Budget, Observation
from memmodel.errors import InputError
from memmodel.source import Source

MP = """PTX MP
"Message passing: the flag is released and acquired"
Expect=ptx-7.5:{word} sc:never
{{ x=0; y=0; P1:r0=0; P1:r1=0; }}
 P0@cta 0,gpu 0   | P1@cta 1,gpu 0       ;
 st.weak x, 1     | ld.acquire.gpu r0, y ;
 {store} y, 1     | ld.weak r1, x        ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
SYNCHRONISED = MP.format(word="never", store="st.release.gpu")
STALE = MP.format(word="sometimes", store="st.relaxed.gpu")


@pytest.mark.parametrize("engine", ["auto", "z3", "enumerate"])
def test_the_library_answers_with_a_report(engine):
    never = memmodel.check(SYNCHRONISED, "ptx-7.5", engine=engine)
    assert (never.answer.observation, never.holds, never.ok) == (Observation.NEVER, False, True)
    assert "forbidden by" in never.explain()
    stale = memmodel.check(STALE, "ptx-7.5", engine=engine)
    assert (stale.answer.observation, stale.holds, stale.ok) == (Observation.SOMETIMES, True, True)
    assert stale.execution is not None
    assert "P1:r0 = 1, P1:r1 = 0" in stale.explain()
    assert stale.times.parse > 0
    json.dumps(stale.to_json())


def test_a_test_may_be_a_path_a_source_or_text(tmp_path):
    path = tmp_path / "MP.litmus"
    path.write_text(STALE)
    for test in (path, str(path), Source(str(path), STALE), STALE):
        assert memmodel.check(test, "sc").answer.observation is Observation.NEVER
    with pytest.raises(InputError, match="cannot be read"):
        memmodel.check("no-such-file.litmus")


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_all_final_states(engine):
    found = memmodel.outcomes(SYNCHRONISED, "ptx-7.5", engine=engine)
    states = {tuple(value for _, value in state.values) for state in found.states}
    assert states == {(0, 0), (0, 1), (1, 1)}
    assert not any(state.satisfies for state in found.states)


def test_a_tiny_budget_is_undecided():
    report = memmodel.check(SYNCHRONISED, "ptx-7.5", engine="z3", budget=Budget(effort=1))
    assert report.answer.observation is Observation.UNDECIDED
    assert report.answer.reason


@pytest.mark.parametrize("word, code", [("never", 0), ("sometimes", 1)])
def test_the_program_answers_with_its_exit_code(tmp_path, word, code):
    path = tmp_path / "MP.litmus"
    path.write_text(MP.format(word=word, store="st.release.gpu"))
    command = [sys.executable, "-m", "memmodel", "check", str(path), "--model", "ptx-7.5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith("MP under ptx-7.5: never;")
