"""What a few runs show of a parameter: by how much it grows for one more round."""

from __future__ import annotations

import pytest

from memmodel.cat.load import load_model
from memmodel.kernel.all_sizes.parameters import ParamPart
from memmodel.kernel.check import sizes
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.launch import parse_launch
from memmodel.kernel.question.entries import entry_of
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

LOOP = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{{
.reg .pred %p<2>; .reg .b32 %r<4>;
ld.param.u32 %r1, [n];
mov.u32 %r2, 0;
ROUND:
add.u32 %r2, %r2, {step};
setp.lt.u32 %p1, %r2, %r1;
@%p1 bra ROUND;
ret;
}}
"""


def step_of(case: KernelCase, name: str = "n") -> int | None:
    return sizes._step_of_a_round(case, ParamPart(name, 0, 4), 9)


@pytest.mark.parametrize("step", [1, 3, 4])
def test_the_step_of_a_parameter(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read = parse_module(Source("k.ptx", LOOP.format(step=step)))
    params = [{"name": "n", "type": "u32", "value": 9}]
    launch = parse_launch({"grid": [1, 1, 1], "block": [32, 1, 1], "params": params})
    case = KernelCase(read, entry_of(read, "k"), launch, load_model("ptx-9.4"), CheckOptions())
    assert step_of(case) == step and step_of(case, "other") is None
    for tries in range(8):  # what too few runs show is nothing, and never another number
        monkeypatch.setattr(sizes, "MOST_TRIES", tries)
        assert step_of(case) in (None, step)
