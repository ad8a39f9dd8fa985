"""Comparisons in a question: both engines agree on them, also where values are known bit by bit only."""

from __future__ import annotations

import pytest
from helpers.agreement import agree

from memmodel.cat import load_model

PROGRAM = """PTX compared
.global .u32 x = 0;
.global .u32 y = 0;
thread P0 @ cta 0, gpu 0 {{
    atom.relaxed.gpu.global.add.u32 %a, [x], 3;
    and.b32 %b, %a, 6;
    st.relaxed.gpu.global.u32 [y], %b;
}}
thread P1 @ cta 0, gpu 0 {{
    atom.relaxed.gpu.global.xor.b32 %a, [x], 5;
    ld.relaxed.gpu.global.u32 %b, [y];
    add.u32 %c, %a, %b;
}}
thread P2 @ cta 0, gpu 0 {{
    atom.relaxed.gpu.global.or.b32 %a, [x], 8;
}}
exists ({left} {compared} {right})
"""


@pytest.mark.share(3)
@pytest.mark.parametrize("compared", ["<", "<=", ">", ">=", "==", "!="])
def test_engines_agree_on_a_comparison(compared: str) -> None:
    for left, right in (("P0:a", "P1:a"), ("x", "P2:a"), ("P1:c", "4"), ("5", "x")):
        agree(PROGRAM.format(left=left, compared=compared, right=right), load_model("ptx-9.4"))
