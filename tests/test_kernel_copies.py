"""Copies whose bytes are not those of a plain box: bytes out of bounds, cache policies."""

from __future__ import annotations

import pytest
from kernel_samples import entry, judged, module

from memmodel.cat.load import load_model
from memmodel.kernel.check import judge
from memmodel.kernel.launch import parse_launch

IGNORING = """@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 64;
{before}
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r2], [%d0], 64, {left}, {right}, [%r4];
W: mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;
@!%p5 bra W;
ld.shared.u32 %r10, [%r2+{at}];
setp.ne.u32 %p6, %r10, 0;
@%p6 trap;
"""


def ignoring(left: int, right: int, at: int = 16, before: str = "", size: int = 65536) -> set[str]:
    """The findings, and the word if it is undecided."""
    read = module(IGNORING.format(left=left, right=right, at=at, before=before))
    param = {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": size, "init": "zero"}
    launch = parse_launch({"grid": [1, 1, 1], "block": [32, 1, 1], "params": [param]})
    verdict = judge(read, entry(read), launch, load_model("ptx-9.3"))
    return {one.rule for one in verdict.findings} | ({"undecided"} if verdict.word == "undecided" else set())


def test_bytes_out_of_bounds_may_be_ignored() -> None:
    assert not ignoring(0, 7, size=57)
    assert ignoring(0, 6, size=57) == ignoring(0, 0, size=57) == {"undefined-address"}
    assert ignoring(16, 0) == ignoring(0, 16) == {"undefined-instruction"}


def test_what_is_ignored_is_not_read_and_is_indeterminate() -> None:
    assert ignoring(4, 4, 0) == ignoring(4, 4, 60) == {"undecided"}
    assert not ignoring(4, 4, 4) and not ignoring(4, 4, 56)
    assert not ignoring(4, 4, before="@%p0 st.global.b8 [%d0+3], 1;")
    assert "data-race" in ignoring(4, 4, before="@%p0 st.global.b8 [%d0+4], 0;")


@pytest.mark.parametrize("sizes", ["16", "16, 8"])
def test_a_cache_policy_is_no_size(sizes: str) -> None:
    body = f"""createpolicy.fractional.L2::evict_first.b64 %d5, 1.0;
cp.async.cg.shared.global.L2::cache_hint [%r2], [%d0], {sizes}, %d5;
{{wait}}ld.shared.u32 %r10, [%r2];"""
    assert judged(body.format(wait="cp.async.wait_all;\n"), threads=1).word == "clean"
    assert judged(body.format(wait=""), threads=1).word == "findings"
