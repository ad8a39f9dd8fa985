"""The models under which kernels of Triton are judged: what its compiler relies on is not assumed of written fences."""

from __future__ import annotations

import pytest
from helpers.places import ROOT

from memmodel.kernel.arguments.kinds import FakeArray
from memmodel.triton.calls import CallArguments, TritonCall
from memmodel.triton.judging import TritonJudge

RELOAD = ROOT / "docs" / "gallery" / "gluon" / "reload-without-fence.ptx"


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_missing_fence_before_a_reload(by_hand: bool) -> None:
    places = CallArguments()
    source, out = places.array(FakeArray((256,))), places.array(FakeArray((32768,)))
    described = {"array": source, "shape": [256], "strides": [1], "element_bytes": 4, "box": [128], "swizzle": 0}
    args = (
        ("source", {"map": described}), ("source.shape.0", {"number": 256}), ("source.stride.0", {"number": 1}),
        ("out", {"array": out}), ("global_scratch", {"number": 0}), ("profile_scratch", {"number": 0}),
    )  # fmt: skip
    call = TritonCall("kernel", "", RELOAD.read_text(), (1, 1, 1), 1, 588, args, by_hand)
    assert TritonCall.of_json(call.to_json()) == call
    result = TritonJudge(kept=False).result(call)
    assert result.verdict is not None and result.word == ("findings" if by_hand else "clean"), result.text
    if not by_hand:
        assert any(what.startswith("D18 read") for what in result.verdict.assumptions)
