"""What lanes of a warp find together, which space an address is in, and what ends a test: steps worked out by hand.

Sources: the pages of vote.sync, redux.sync, match.sync, shfl.sync, activemask, isspacep, cvta, ldu, discard, trap.
"""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, ops, shown

WINDOW = "shr.u64(%rd1, 24)"
TOGETHER = {
    "vote.sync.all.pred %p, %q, 0xffffffff;": ["Assign(p %q)"],
    "vote.sync.any.pred %p, !%q, 0xffffffff;": ["Assign(p eq.s64(%q, 0))"],
    "vote.sync.uni.pred %p, %q, 0xffffffff;": ["Assign(p 1)"],
    "vote.sync.ballot.b32 %r0, %q, 0xff;": ["Assign(r0 selp.u32(255, 0, %q))"],
    "redux.sync.min.s32 %r0, %r1, 0xffffffff;": ["Assign(r0 cvt.s32(%r1))"],
    "redux.sync.add.u32 %r0, %r1, 0xff;": ["Assign(r0 mul.u32(cvt.u32(%r1), popc.u32(255)))"],
    "redux.sync.xor.b32 %r0, %r1, 0x7;": ["Assign(r0 mul.u32(cvt.b32(%r1), and.u32(popc.u32(7), 1)))"],
    "match.any.sync.b32 %r0, %r1, 0xff;": ["Assign(r0 255)"],
    "match.all.sync.b64 _|%p, %rd1, 0xff;": ["Assign(p 1)"],
    "vote.sync.all.pred %p, %q, %m;": [
        "UndefinedIf(a thread executes vote.sync with a mask that does not have its own lane eq.u32(cvt.u32(%m), 0))",
        "Assign(p %q)",
    ],
}
BEYOND = (
    "Unmodelled(shfl.sync with a mask that is not full: a lane outside it may be the source ne.u32({}, 4294967295))"
)
SHUFFLED = {
    "shfl.sync.down.b32 %r0, %r1, 1, 31, 0xffffffff;": [BEYOND.format(4294967295), "Assign(r0 cvt.b32(%r1))"],
    "shfl.sync.idx.b32 %r0|%p, %r1, 0, 31, 0xff;": [BEYOND.format(255), "Assign(r0 cvt.b32(%r1))", "Assign(p 1)"],
}
SPACES = {
    "isspacep.shared %p, %rd1;": [f"Assign(p eq.u64({WINDOW}, 0))"],
    "isspacep.shared::cluster %p, %rd1;": [f"Assign(p lt.u64(sub.u64({WINDOW}, 0), 2))"],
    "isspacep.local %p, %rd1;": ["Assign(p 0)"],
    "isspacep.param %p, %rd1;": ["Assign(p 0)"],
    "cvta.shared::cta.u64 %rd0, %rd1;": [
        f"UndefinedIf(cvta takes an address in .shared::cta memory eq.u64(eq.u64({WINDOW}, 0), 0))",
        "Assign(rd0 %rd1)",
    ],
    "cvta.global.u64 %rd0, x+4;": ["Assign(rd0 &x+4)"],
}
ENDED = {
    "trap;": ["Unmodelled(trap stops the execution 1)"],
    "brkpt;": ["Unmodelled(brkpt stops the execution 1)"],
    "pmevent.mask 3;": [],
    "discard.global.L2 [gmap], 128;": ["Unmodelled(discard leaves values that may differ from read to read 1)"],
    "activemask.b32 %r0;": [
        "Unmodelled(activemask depends on which lanes of the warp run together 1)",
        "Assign(r0 4294967295)",
    ],
    "ldu.global.u32 %r0, [x];": ["Read([r0] Elements(&x global size=4) Access(read read_only) type=u32)"],
}
WORKED_OUT: dict[str, list[str]] = {**TOGETHER, **SHUFFLED, **SPACES, **ENDED}


@pytest.mark.parametrize("line", WORKED_OUT)
def test_steps(line: str) -> None:
    assert shown(ops(blocks(line))) == WORKED_OUT[line]
