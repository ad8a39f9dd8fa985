"""Halves of proxy fences: what they cost, where they are enough, which version of PTX they need."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.kernel.samples import kernel_text, launch
from helpers.patience import PATIENCE
from helpers.places import ROOT

from memmodel import api, fix_kernel
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cli import main
from memmodel.engine import Options
from memmodel.isa.lower import read_instruction
from memmodel.litmus.constants import all_instructions
from memmodel.repair.costs import cost
from memmodel.repair.fix import fix
from memmodel.repair.weaken import weaken

HALF = "fence.proxy.async::generic"
READS = f"{HALF}.release.sync_restrict::shared::cluster::read.cluster"
OWN = f"{HALF}.release.sync_restrict::shared::cta.cluster"
ACQUIRE = f"{HALF}.acquire.sync_restrict::shared::cluster.cluster"
WHOLE = "fence.proxy.async.shared::cta"

HANDED_BACK = """PTX handed-back
.shared .align 16 .u32 s[4] = {1};
.global .align 16 .u32 g[4] = {2};
.shared .align 8 .b64 empty = mbarrier(1);
.shared .align 8 .b64 full = mbarrier(1);

thread CONSUMER @ cta 0, gpu 0 {
    ld.shared::cta.u32 %r0, [s];
    mbarrier.arrive.shared::cta.b64 _, [empty];
}

thread PRODUCER @ cta 0, gpu 0 {
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 0;
    @!%p bra WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];
FULL:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0;
    @!%p bra FULL;
}

~exists (CONSUMER:r0 == 2)
"""
"""A tile that was read is overwritten by a bulk copy, and no proxy fence stands between (Causality Order)."""

MODELS = (api.load(DEFAULT_MODEL),)


def price(mnemonic: str) -> float:
    test = api.lowered(f"PTX t\n.shared .u32 x;\nthread P0 @ cta 0 {{ {mnemonic}; }}\nexists (x == 0)\n").test
    return cost(read_instruction(next(all_instructions(test)), test))


def test_the_narrower_a_proxy_fence_the_cheaper():
    assert price("fence.proxy.async") > price(WHOLE) > price(OWN) > price(ACQUIRE) > price(READS)
    assert price(READS) + price(ACQUIRE) < price(WHOLE)


def test_a_buffer_that_was_read_is_handed_back_with_halves():
    fixed = fix("t", HANDED_BACK, MODELS, Options())
    first, *rest = fixed.repairs
    assert [edit.text.strip() for edit in first.changes] == [f"{READS};", f"{ACQUIRE};"]
    assert first.version == "9.4" and first.cost < rest[0].cost
    assert any(WHOLE in repair.new and not repair.version for repair in rest), "what older toolkits have"
    for repair in fixed.repairs:
        assert api.check(repair.new).holds and not api.check(repair.new).answer.findings


def test_a_buffer_that_was_written_is_not():
    text = HANDED_BACK.replace("ld.shared::cta.u32 %r0, [s];", "st.shared::cta.u32 [s], 3;")
    text = text.replace("~exists (CONSUMER:r0 == 2)", "~exists race")
    assert all(READS not in repair.new for repair in fix("t", text, MODELS, Options()).repairs)


def test_the_version_is_said_and_a_file_gets_no_newer_ptx_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "t.litmus"
    path.write_text(HANDED_BACK)
    with pytest.raises(SystemExit) as ended:
        main(["fix", "--in-place", str(path)])
    assert ended.value.code == 0
    assert "repair 1, cost 12.5, PTX 9.4:" in capsys.readouterr().out
    assert WHOLE in path.read_text() and READS not in path.read_text()


def test_a_half_is_narrowed_to_reads_where_its_thread_has_only_read():
    path = ROOT / "litmus" / "async" / "proxy" / "credit.litmus"
    weaker = weaken(str(path), path.read_text(), MODELS, Options())
    assert OWN not in weaker.new and READS in weaker.new and weaker.version == "9.4"
    written = ROOT / "litmus" / "async" / "proxy" / "credit-half-of-another.litmus"
    assert READS not in weaken(str(written), written.read_text(), MODELS, Options()).new


KERNEL = """
@%p0 mbarrier.init.shared.b64 [%r4], 1;
st.shared.u32 [%r3], %r0;
fence.proxy.async.shared::cta;
bar.sync 0;
xor.b32 %r5, %r3, 128;
ld.shared.u32 %r6, [%r5];
bar.sync 0;
@!%p0 bra DONE;
mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r4], 256;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%d0], 256, [%r4];
WAIT:
mbarrier.try_wait.shared::cta.b64 %p5, [%r4], %d5;
@!%p5 bra WAIT;
DONE:
"""


def test_a_kernel_is_offered_the_halves_and_the_whole_fence(tmp_path: Path):
    path = tmp_path / "k.ptx"
    path.write_text(kernel_text(KERNEL))
    halves, *rest = fix_kernel(path, launch(), seconds=PATIENCE).repairs
    assert [edit.what for edit in halves.edits] == [
        f"{READS} after ld.shared.u32 (PTX 9.4)",
        f"{ACQUIRE} before cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes",
    ]
    assert all(repair.after.word == "clean" for repair in (halves, *rest))
    assert any(edit.what == f"{WHOLE} before bar.sync" for repair in rest for edit in repair.edits)
