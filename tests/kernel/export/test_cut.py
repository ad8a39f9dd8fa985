"""Findings cut down to litmus tests: what they keep, and whether the exact engines find them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.kernel.engines import text_of
from helpers.kernel.samples import NEIGHBOUR, copy, entry, launch, module
from helpers.places import ROOT

from kernel.check.test_run import FLAG
from kernel.export.test_cut_hangs import TWO_CTAS
from kernel.machine.test_copies import BOTH, STRONG
from kernel.machine.test_stasync import POLLED, SENT, STORE, STORES
from kernel.output.test_output import MAILBOX
from memmodel import api
from memmodel.cat.load import load_model
from memmodel.cli.app import app
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.export.litmus import best, litmus_tests
from memmodel.kernel.launch import Launch, parse_launch, read_launch
from memmodel.ptx.module.reader import parse_module, read_module
from memmodel.source import Source


def cuts(body: str, given: Launch | None = None) -> dict[str, tuple[str | None, str]]:
    """The tests of a kernel's findings, by rule."""
    read = module(body)
    kernel = judge_case(
        KernelCase(read, entry(read), given or launch(), load_model("ptx-9.4"), CheckOptions(until_finding=True))
    )
    return {
        one.rule: best(kernel.runs[id(one)], one, "cut") for one in kernel.verdict.findings if id(one) in kernel.runs
    }


def mailbox(**parts: str) -> str:
    given = {"before": "", "after": "", "release": ".release", "acquire": ".acquire", "scope": "gpu", **parts}
    return MAILBOX.format(**given)


TWO = launch(threads=1, ctas=2, init="zero")

CASES: list[tuple[str, Launch | None, list[str]]] = [
    (NEIGHBOUR.format(sync=""), None, ["st.shared.u32 [s], 1;", "ld.shared.u32 %v0, [s];"]),
    (copy(proxy=""), None, ["cp.async.bulk.global.shared::cta.bulk_group"]),
    (copy(proxy="fence.proxy.async.global;"), None, ["fence.proxy.async.global;"]),
    (mailbox(release=".relaxed"), TWO, ["red.relaxed.gpu", "ld.acquire.gpu", "setp.ne.u32 %q, %s1, 1;"]),
    (mailbox(acquire=".relaxed"), TWO, ["red.release.gpu", "ld.relaxed.gpu"]),
    (mailbox(acquire=".relaxed", after="fence.acq_rel.cta;"), TWO, ["fence.acq_rel.cta;"]),
    (mailbox(scope="cta"), TWO, ["red.release.cta"]),
    (POLLED.format(store=STORE, load="relaxed", after=""), TWO, ["st.async.release.gpu.global.u32", "ld.relaxed.gpu"]),
    (BOTH.format(STRONG, "ld.global.b128 %q, [%d0+16]"), TWO, ["cp.async.bulk.relaxed.gpu"]),
]


@pytest.mark.parametrize(("body", "given", "kept"), CASES)
def test_a_cut_keeps_what_is_on_the_way(body: str, given: Launch | None, kept: list[str]) -> None:
    found = cuts(body, given)
    text, why = found["data-race"]
    assert text is not None and why == ""
    assert all(line in text for line in kept), text
    assert ", cluster " not in text  # the launch has none
    report = api.check(text)
    assert report.holds and report.expected == "sometimes"


@pytest.mark.parametrize("offset", ["", "+8"])
@pytest.mark.parametrize("store", [STORES[0], STORES[2]])
def test_stores_to_another_cta_are_cut(store: str, offset: str) -> None:
    """The race with what nothing waits for, the unfinished copy, and the CTA that may be gone."""
    body = SENT.format(store=store, to="%r6", wait="").replace("[%r11]", f"[%r11{offset}]")
    read = parse_module(Source("k.ptx", text_of(body.replace("%r12, [%r2]", f"%r12, [%r2{offset}]"))))
    params = [{"name": "p", "type": "ptr", "address": 1 << 32, "bytes": 64}]
    params.append({"name": "map", "type": "bytes", "hex": "00" * 128})
    given = parse_launch({"grid": [2, 1, 1], "block": [32, 1, 1], "cluster": [2, 1, 1], "params": params})
    kernel = judge_case(KernelCase(read, entry(read), given, load_model("ptx-9.4"), CheckOptions()))
    found = {one.rule: (text, why) for one, text, why in litmus_tests(kernel.verdict.findings, kernel.runs)}
    assert set(found) == {"data-race", "undefined-unfinished-copy", "undefined-after-exit"}
    assert all(text is not None and store.split(".u32")[0] in text for text, _ in found.values()), found


MULTICAST = """
mov.u32 %r7, %cluster_ctarank;
setp.eq.u32 %p1, %r7, 0;
and.pred %p2, %p0, %p1;
@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive;
barrier.cluster.wait;
mov.u32 %r20, 256;
mov.u16 %h1, 3;
@%p0 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r4], 256;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%d0], 256, [%r4], %h1;
@!%p1 bra L;
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@!%p5 bra W;
L: barrier.cluster.arrive;
barrier.cluster.wait;
ld.shared.u32 %r21, [%r2];
"""
"""A copy to both CTAs of a cluster, for whose end only the one that issues it waits."""


def test_a_copy_to_several_ctas_is_cut_to_the_one_that_matters() -> None:
    found = cuts(MULTICAST, TWO_CTAS)
    assert set(found) == {"data-race", "undefined-unfinished-copy", "undefined-after-exit"}
    for text, why in found.values():
        assert text is not None and why == "" and "@cta1], [b], 16, [bar@cta1];" in text, (text, why)


def test_the_way_through_a_third_thread() -> None:
    body = FLAG.replace("setp.ne.u32 %p1, %r0, 0;", "setp.ge.u32 %p1, %r0, 64;").replace(
        "DONE:\n", "DONE:\nbar.sync 0;\n@!%p2 bra OUT;\nld.global.u32 %r23, [%d0+64];\nOUT:"
    ).replace("ld.global.u32 %r22, [%d0+64];", "")  # fmt: skip
    text, why = cuts(
        body.format(store="st.global.u32 [%d0+64], 7;", release=".relaxed", acquire=".acquire"),
        launch(threads=96, ctas=2, init="zero"),
    )["data-race"]
    assert text is not None and why == "", (text, why)


def test_the_command_writes_tests(tmp_path: Path) -> None:
    source, given = tmp_path / "k.ptx", tmp_path / "l.json"
    source.write_text(module(NEIGHBOUR.format(sync="")).source.text)
    given.write_text(launch().model_dump_json(exclude_none=True))
    folder = tmp_path / "tests"
    run = CliRunner().invoke(app, ["kernel", str(source), "--launch", str(given), "--litmus", str(folder)])
    assert run.exit_code == 1 and "01-data-race.litmus" in run.output
    again = CliRunner().invoke(app, ["check", str(folder / "01-data-race.litmus")])
    assert again.exit_code == 0, again.output
    fixed = CliRunner().invoke(app, ["fix", str(folder / "01-data-race.litmus")])
    assert fixed.exit_code == 0 and "+" in fixed.output, fixed.output


# ---- the examples ----------------------------------------------------------------------------------------------

EXAMPLES = ROOT / "docs" / "examples" / "kernels"
SMALL = ["dsmem", "tma_pipeline", "splitk", "scan"]
LARGE = ["gemm_sm90"] if os.environ.get("MEMMODEL_KERNEL_ALL") == "1" else []


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_the_findings_of_the_examples_are_cut(name: str) -> None:
    """Each finding becomes a test with the whole way between its accesses. What precedes the hang of `tma_pipeline`,
    whose consumer misses phases, is undefined by itself.
    """
    read, given = read_module(EXAMPLES / f"{name}-broken.ptx"), read_launch(EXAMPLES / f"{name}.launch.json")
    options = CheckOptions(schedules=1, until_finding=True)
    kernel = judge_case(KernelCase(read, entry_of(read, given.kernel), given, load_model("ptx-9.4"), options))
    found = list(litmus_tests(kernel.verdict.findings, kernel.runs))
    assert all(text is not None and (why == "" or one.rule == "hang") for one, text, why in found), found
    assert len(found) == len(kernel.verdict.findings)


def test_an_object_that_is_invalidated_in_use() -> None:
    body = """
@%p0 mbarrier.init.shared.b64 [%r4], 64;
bar.sync 0;
mbarrier.arrive.shared.b64 %d5, [%r4];
W: mbarrier.try_wait.shared.b64 %p5, [%r4], %d5;
@!%p5 bra W;
setp.eq.s32 %p1, %r0, 32;
@%p1 mbarrier.inval.shared.b64 [%r4];
"""
    text, why = cuts(body)["undefined-mbarrier-inval"]
    assert text is not None and why == "" and "mbarrier.inval" in text


def test_of_many_arrivals_in_a_phase_one_is_kept() -> None:
    body = "@%p0 mbarrier.init.shared.b64 [%r4], 64;\nbar.sync 0;\n" + 2 * "mbarrier.arrive.shared.b64 %d5, [%r4];\n"
    text, why = cuts(body)["undefined-unobserved-phase"]
    assert text is not None and why == "" and text.count("    mbarrier.arrive") == 3
