"""One change of a kernel, asked for in words: what it is, what appears with it, and what is no change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import NEIGHBOUR, ROUNDS, entry, launch, module
from helpers.places import ROOT

from memmodel.cat.load import load_model
from memmodel.cli.app import app
from memmodel.errors import InputError
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.launch import read_launch
from memmodel.kernel.mutate.mutations import REMOVED, mutations
from memmodel.kernel.mutate.rewritten import rewritten
from memmodel.kernel.order.verdict import KernelFinding, KernelVerdict
from memmodel.kernel.question import KernelQuestion
from memmodel.kernel.question.entries import entry_of
from memmodel.kernel.synchronization.what_if import WhatIf, what_if
from memmodel.kernel.synchronization.what_if_text import what_if_lines
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

EXAMPLES = ROOT / "docs" / "examples" / "kernels"


def example(name: str, *requests: str) -> WhatIf:
    read = parse_module(Source.read(EXAMPLES / f"{name}.ptx"))
    launched = read_launch(EXAMPLES / f"{name}.launch.json")
    asked = KernelQuestion(read, entry_of(read, launched.kernel), launched)
    return what_if(asked, requests, load_model("ptx-9.4"), CheckOptions(depends=True))


def changed_words(request: str) -> str:
    """The instruction that a request makes of the one of its line, in the pipeline."""
    read = parse_module(Source.read(EXAMPLES / "tma_pipeline.ptx"))
    launched = read_launch(EXAMPLES / "tma_pipeline.launch.json")
    made = rewritten(read, entry_of(read, launched.kernel), launched, [request])
    (change,) = made.changes
    there = [it.opcode for it in made.entry.body or () if it.line == change.instruction.line]
    assert len(made.entry.body or ()) - len(there) == len(entry_of(read, launched.kernel).body or ()) - 1
    return "; ".join(there)


def test_dropping_is_what_a_mutant_does() -> None:
    read = parse_module(Source.read(EXAMPLES / "dsmem.ptx"))
    launched, model = read_launch(EXAMPLES / "dsmem.launch.json"), load_model("ptx-9.4")
    kernel = entry_of(read, launched.kernel)
    removals = [change for change in mutations(kernel) if change.what == REMOVED]
    assert len(removals) == 4
    for change in removals:
        mutant = judge_case(KernelCase(read, change.of(kernel), launched, model, CheckOptions())).verdict
        answer = example("dsmem", f"{change.instruction.line}: drop")
        assert {finding.key for finding in answer.appearing} == {finding.key for finding in mutant.serious} != set()


@pytest.mark.parametrize(
    ("request_", "becomes"),
    [
        ("61: drop", "nanosleep.u32"),
        ("104: drop", "mov.pred"),
        ("123: relaxed", "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64"),
        ("270: relaxed", "mbarrier.arrive.relaxed.cta.shared.b64"),
        ("270: scope=cluster", "mbarrier.arrive.release.cluster.shared.b64"),
        ("187: scope = .cluster", "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"),
        ("66: bar.sync 0; bar.sync 1; // twice", "bar.sync; bar.sync"),
        ("tma_pipeline.cu:44: relaxed", "mbarrier.arrive.relaxed.cta.shared.b64"),
        ("mbarrier_arrive.h:17: mbarrier.arrive.shared.b64 _, [%r54]", "mbarrier.arrive.shared.b64"),
        ("PTX:66: barrier.sync 0;", "barrier.sync"),
    ],
)
def test_what_a_request_makes(request_: str, becomes: str) -> None:
    assert changed_words(request_) == becomes


@pytest.mark.parametrize(
    ("request_", "place", "message", "repair"),
    [
        ("drop", "--what-if:1:1", "no line and what becomes of it", "LINE: drop"),
        ("66:", "--what-if:1:4", "nothing is said", "`66: drop`"),
        ("50: drop", "--what-if:1:1", "line 50 has no instruction of tma_pipeline", "lines 39, 46, 51, 56, 61, 66"),
        ("none.cu:5: drop", "--what-if:1:9", "line 5 of none.cu has no instruction", "FILE:LINE"),
        ("68: drop", "--what-if:1:5", "nothing to drop: setp.gt.u32 does not synchronize", "`68: nanosleep.u32 0`"),
        ("66: scope=cta", "--what-if:1:5", "bar.sync has no scope", "LINE: drop"),
        ("66: scope=warp", "--what-if:1:5", "warp is no scope", "one of cta, cluster, gpu, sys"),
        ("66: relaxed", "--what-if:1:5", "bar.sync has no semantics", "`66: drop`"),
        ("270: scope=cta", "--what-if:1:6", "nothing to change", "another one"),
        ("270: release", "--what-if:1:6", "nothing to change", "another one"),
        ("270: scope=gpu", "tma_pipeline.ptx:270:2", "an mbarrier operation has .cta or .cluster scope", ".cluster"),
        ("66: bar.sink 0", "tma_pipeline.ptx:66:2", "unknown instruction 'bar.sink'", "bar.sync"),
        ("66: bar.sync %none", "tma_pipeline.ptx:66:11", "the register %none is not declared", ""),
        ("66: bar.sync 0; }", "tma_pipeline.ptx", "", ""),
        ("tma_pipeline.cu:24: drop; drop", "tma_pipeline.ptx:66:2", "unknown instruction 'drop'", ""),
    ],
)
def test_requests_that_are_none(request_: str, place: str, message: str, repair: str) -> None:
    with pytest.raises(InputError) as caught:
        changed_words(request_)
    rendered = caught.value.render()
    assert place in rendered.splitlines()[0] and message in rendered and repair in rendered
    assert "^" in rendered


def test_one_line_is_changed_once() -> None:
    with pytest.raises(InputError, match="line 50 is changed twice"):
        example("dsmem", "50: drop", "50: relaxed")


def test_what_appears_what_goes_and_what_a_reading_says() -> None:
    broken = NEIGHBOUR.format(sync="")
    line = next(it.line for it in entry(module(broken)).body or () if it.opcode.startswith("ld.shared"))
    load = next(text for text in module(broken).source.text.splitlines() if "ld.shared" in text).strip()
    asked = KernelQuestion(module(broken), entry(module(broken)), launch())
    mended = what_if(asked, [f"{line}: bar.sync 0; {load}"], load_model("ptx-9.4"), CheckOptions(depends=True))
    assert (mended.before.word, mended.after.word) == ("findings", "clean")
    assert not mended.appearing and len(mended.vanishing) == 1 and not mended.undecided
    assert any(text.startswith("gone: data-race of lines ") for text in what_if_lines(mended))
    fence = example("tma_pipeline", "61: drop")
    assert not fence.appearing and fence.perhaps_needing == ("D15 fence",) and "different proxies" in fence.why


def test_what_cannot_be_decided_is_not_clean() -> None:
    clean = KernelVerdict("k", launch(), "ptx-9.4")
    cut = replace(clean, open=["the budget ran out"], spent=True)
    assert WhatIf((), clean, clean).undecided == []
    assert WhatIf((), clean, cut).undecided == ["the budget ran out"]
    assert WhatIf((), cut, clean).undecided == ["of the kernel as it is, not all is known: the budget ran out"]
    assert "no finding appears, and none goes, as far as it was judged" in what_if_lines(WhatIf((), clean, cut))
    finding = KernelFinding("data-race", "finding", "", ())
    assert WhatIf((), replace(clean, findings=[finding]), cut).vanishing == []


def test_from_the_command_line(tmp_path: Path) -> None:
    command = ["kernel", str(EXAMPLES / "dsmem.ptx"), "--launch", str(EXAMPLES / "dsmem.launch.json")]
    data = tmp_path / "out.json"
    done = CliRunner().invoke(app, [*command, "--what-if", "79: drop", "--json", str(data)])
    assert done.exit_code == 1
    assert done.output.startswith("clean: dsmem")
    assert "\nwhat if line 79: `barrier.cluster.wait` is dropped\n" in done.output
    assert "\nappears: undefined-after-exit" in done.output
    record = json.loads(data.read_text())
    assert (record["before"], record["after"]) == ("clean", "findings")
    assert record["changes"][0]["line"] == 79 and record["appear"][0]["rule"] == "undefined-after-exit"
    same = CliRunner().invoke(app, [*command, "--what-if", "50: barrier.cluster.arrive.release"])
    assert same.exit_code == 0 and same.output.endswith("no finding appears, and none goes\n")
    assert CliRunner().invoke(app, [*command, "--what-if", "50: drop", "--mutate"]).exit_code == 2
    assert CliRunner().invoke(app, [*command, "--what-if", "500: drop"]).exit_code == 2


@pytest.mark.parametrize(
    ("becomes", "appears", "undecided"),
    [("drop", True, False), ("bar.sync 1;", False, False), ("bar.sync 0; bar.sync 1;", False, True)],
)
def test_what_appears_between_lines_that_race_already(becomes: str, appears: bool, undecided: bool) -> None:
    read = module(ROUNDS)
    line = next(it.line for it in entry(read).body or () if it.opcode == "bar.sync")
    asked = KernelQuestion(read, entry(read), launch())
    answer = what_if(asked, [f"{line}: {becomes}"], load_model("ptx-9.4"), CheckOptions())
    assert bool(answer.appearing) is appears and any("race already" in it for it in answer.undecided) is undecided
