"""A yes for every grid, of random kernels whose numbers depend on the CTA in many ways: larger grids are judged."""

from __future__ import annotations

import random

import pytest
from helpers.examples import seeds
from helpers.kernel.attacked import attacked_grid

LINES = (
    "mov.u32 R, %ctaid.x;", "mov.u32 R, %ctaid.x;", "mov.u32 R, %nctaid.x;", "mov.u32 R, %ctaid.y;", "mov.u32 R, K;",
    "mad.lo.u32 R, R, K, R;", "mul.lo.u32 R, R, K;", "mul.lo.u32 R, R, R;", "shl.b32 R, R, S;", "shl.b32 R, S, R;",
    "shr.u32 R, R, S;", "and.b32 R, R, M;", "add.u32 R, R, R;", "sub.u32 R, R, R;", "min.u32 R, R, K;",
    "cvt.u32.u8 R, R;", "mul.wide.u16 R, H, 3;\\ncvt.u16.u32 H, R;", "add.cc.u32 R, R, M;\\naddc.u32 R, R, 0;",
    "setp.lt.u32 P, R, K;", "setp.eq.u32 P, R, 4;", "selp.u32 R, R, K, P;", "@P add.u32 R, R, 64;", "@P bra N;\\nN:",
    "st.shared.u32 [%r3+512], R;\\nld.shared.u32 R, [%r3+512];", "st.shared.u32 [%r3+512], R;\\nbar.sync 0;",
    "ld.shared.u32 R, [%r3+512];", "st.local.u32 [l], R;\\nld.local.u32 R, [l];",
    "atom.shared.add.u32 R, [%r3+512], R;",
    "and.b32 %r19, R, 3;\\nshl.b32 %r19, %r19, 2;\\nmov.u32 %r18, table;\\nadd.u32 %r18, %r18, %r19;"
    "\\nld.const.u32 R, [%r18];",
    "bar.sync 0;", "st.shared.u32 [%r3], R;",
    "xor.b32 %r17, %r1, 128;\\nadd.u32 %r17, %r17, %r2;\\nld.shared.u32 R, [%r17];",
    "@P st.shared.u32 [s+1000], %r0;", "mov.u32 R, %laneid;", "shfl.sync.idx.b32 R, R, 0, 31, -1;",
    "vote.sync.ballot.b32 R, P, -1;", "ld.global.u32 R, [%d0+60000];", "bfe.u32 R, R, S, 8;",
)  # fmt: skip
ENDS = ("mad.lo.u32 %r23, %r24, K, %r0;", "mad.lo.u32 %r23, %r24, 64, %r0;", "mad.lo.u32 %r23, %r24, 64, %r0;")


def random_kernel(seed: int) -> str:
    """Numbers, what threads of a CTA exchange, and a store to a place that they give."""
    pick = random.Random(seed)
    number = 0

    def filled(line: str) -> str:
        nonlocal number
        number += 1
        choices = {
            "R": ("%r20", "%r20", "%r21", "%r22"), "K": ("1", "3", "4", "5", "64"), "S": ("1", "2", "4"),
            "M": ("1", "3", "7", "255"), "P": ("%p5", "%p6"), "H": ("%h1",), "N": (f"N{number}",),
        }  # fmt: skip
        words = [part for part in line.replace("\\n", " \\n ").split(" ") if part]
        for at, word in enumerate(words):
            bare = word.strip("@,;:")
            if bare in choices:
                words[at] = word.replace(bare, pick.choice(choices[bare]))
        return " ".join(words).replace(" \\n ", "\n")

    start = ["mov.u32 %r20, %ctaid.x;", "mov.u32 %r21, %r0;", "mov.u32 %r22, 0;", "setp.eq.u32 %p5, %r0, 5;"]
    start += ["setp.ne.u32 %p6, %r0, 0;", "mov.u16 %h1, 1;", ".local .align 4 .b8 l[4];"]
    body = [filled(pick.choice(LINES)) for _ in range(pick.randint(1, 5))]
    body += ["mov.u32 %r24, %ctaid.x;", filled(pick.choice(ENDS))]
    moved = pick.choice(("", "", filled("add.u32 %r23, %r23, R;"), filled("mad.lo.u32 %r23, R, 512, %r23;")))
    guard, value = pick.choice(("", "", "", "@%p5 ")), pick.choice(("%r0", "%r20", "%r21"))
    return "\n".join([
        *start, *body, moved, "mul.wide.u32 %d1, %r23, 4;", "add.s64 %d2, %d0, %d1;",
        f"{guard}st.global.u32 [%d2], {value};",
    ])  # fmt: skip


@pytest.mark.share(2)
@pytest.mark.generated
@pytest.mark.parametrize("seed", (5, 9, 38, 74, 94, 194, 353, *seeds(20)))
def test_larger_grids_are_judged_as_the_answer_says(seed: int) -> None:
    body = random_kernel(seed)
    if attacked_grid(body, 0).says_yes:
        attack = attacked_grid(body, 4)
        assert not attack.others, attack.answer
