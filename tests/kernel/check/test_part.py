"""Launches of which a part is run: what the part may say of the whole, and when all CTAs are run after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import entry, kernel_text, launch, module

from memmodel.cat.load import load_model
from memmodel.cli.app import app
from memmodel.kernel.check import inputs, part
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.check.inputs import chosen_ctas
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.output.record import record
from memmodel.kernel.output.text import lines

CTAS, THREADS = 9, 1024
"""More threads than those of a launch that is run whole at once."""

FIRST_AND_THIRD = """
mov.u32 %r5, %ctaid.x;
setp.eq.u32 %p1, %r5, 0;
setp.eq.u32 %p2, %r5, 2;
or.pred %p3, %p1, %p2;
and.pred %p3, %p3, %p0;
@%p3 st.global.u32 [%d0], %r5;
"""

LAST_BLOCK = """
mov.u32 %r5, %ctaid.x;
mul.wide.u32 %d1, %r5, 4;
add.s64 %d1, %d1, %d0;
mov.u32 %r6, %nctaid.x;
sub.u32 %r7, %r6, 1;
@!%p0 bra END;
st.global.u32 [%d1+64], %r5;
{fence}
atom.global.inc.u32 %r8, [%d0], %r7;
setp.eq.u32 %p1, %r8, %r7;
@!%p1 bra END;
membar.gl;
ld.global.u32 %r10, [%d0+64];
END:
"""

BARRIER = """
mov.u32 %r6, %nctaid.x;
@!%p0 bra END;
red.release.gpu.global.add.u32 [%d0], 1;
WAIT: ld.acquire.gpu.global.u32 %r8, [%d0];
setp.lt.u32 %p1, %r8, %r6;
@%p1 bra WAIT;
END:
"""


def judged(body: str, ctas: int = CTAS, threads: int = THREADS, *, widens: bool = True) -> KernelVerdict:
    read, launched = module(body), launch(threads, ctas, "zero")
    options = CheckOptions(ctas=chosen_ctas(launched, ()), widens=widens)
    return judge(read, entry(read), launched, load_model("ptx-9.4"), options)


def test_a_race_of_ctas_that_the_part_has_not() -> None:
    assert judged(FIRST_AND_THIRD).word == "findings"
    verdict = judged(FIRST_AND_THIRD, widens=False)
    assert verdict.word == "partial" and lines(verdict)[0].startswith("clean for CTAs 0, 1: k, grid 9×1×1")
    assert list(verdict.assumptions)[-1] == "the other 7 CTAs do nothing new"
    data = record(verdict)
    assert data["verdict"] == "partial" and data["whole"] is False
    assert {"assumption": "the other 7 CTAs do nothing new", "needs": "a launch of at most 8,192 threads"} in data[
        "assumptions"
    ]  # type: ignore[operator]


@pytest.mark.parametrize(("fence", "word"), [("", "findings"), ("membar.gl;", "clean")])
def test_the_last_block_of_a_large_grid(fence: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "SMALL", 256)
    assert len(chosen_ctas(launch(32, CTAS), ())) == 2
    for ctas in (6, CTAS):
        verdict = judged(LAST_BLOCK.format(fence=fence), ctas, 32)
        assert (verdict.word, verdict.ctas) == (word, ())


def test_a_part_does_not_hang_because_others_are_not_run() -> None:
    verdict = judged(BARRIER, widens=False)
    assert verdict.word == "undecided" and not verdict.findings
    assert verdict.open[0].endswith("threads poll what CTAs may write that are not run")
    assert judged(BARRIER, widens=True).word == "clean"


def test_all_ctas_are_not_run_where_that_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "MOST_INSTRUCTIONS", 1000)
    assert judged(FIRST_AND_THIRD).word == "partial"


def test_the_exit_code_of_a_part(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(kernel_text(FIRST_AND_THIRD))
    launched = launch(64, 4).model_dump(mode="json", exclude_none=True)
    (tmp_path / "l.json").write_text(json.dumps(launched))
    command = ["kernel", str(tmp_path / "k.ptx"), "--launch", str(tmp_path / "l.json")]
    done = CliRunner().invoke(app, [*command, "--cta", "0", "--cta", "1"])
    assert done.exit_code == 3 and done.output.startswith("clean for CTAs 0, 1: k")
    assert CliRunner().invoke(app, command).exit_code == 1


@pytest.mark.parametrize(
    ("variable", "assumed"),
    [(".global .align 4 .u32 count;", True), (".global .align 4 .u32 count = 1;", False)],
)
def test_zeros_that_the_launch_does_not_give_are_assumed(variable: str, assumed: bool) -> None:
    read = module("ld.global.u32 %r9, [count];\nsetp.eq.u32 %p1, %r9, 0;\n@%p1 bar.sync 0;\n", variable)
    verdict = judge(read, entry(read), launch(32), load_model("ptx-9.4"))
    assert verdict.word == "clean"
    assert ("count holds zeros, as when its module is loaded" in verdict.assumptions) is assumed
