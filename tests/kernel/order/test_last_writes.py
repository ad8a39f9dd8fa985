"""Atomic operations that leave the same value in every order, and those on integers among them."""

from __future__ import annotations

import pytest
from helpers.modules import instruction_of

from memmodel.kernel.order.last_writes import commuting, is_integer


@pytest.mark.parametrize(
    ("line", "kind", "integer"),
    [
        ("atom.global.add.u32 %r0, [%d0], %r1;", "add u32", True),
        ("red.global.xor.b64 [%d0], %d1;", "xor b64", True),
        ("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32 [%r0], %r1, [%r2];",
         "max u32", True),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%d0], [%r0], 16;", "min s32", True),
        ("atom.global.add.f32 %r0, [%d0], %r1;", "add f32", False),
        ("atom.global.add.noftz.bf16 %h0, [%d0], %h1;", "add bf16", False),
        ("red.global.add.noftz.f16x2 [%d0], %r1;", "add f16x2", False),
        ("atom.global.exch.b32 %r0, [%d0], %r1;", None, False),
        ("atom.global.cas.b32 %r0, [%d0], 1, 2;", None, False),
        ("red.global.inc.u32 [%d0], 7;", None, False),
        ("st.global.u32 [%d0], 7;", None, False),
    ],
)  # fmt: skip
def test_operations_that_commute(line: str, kind: str | None, integer: bool) -> None:
    combination = commuting(instruction_of(line))
    assert (None if combination is None else " ".join(map(str, combination))) == kind
    assert (combination is not None and is_integer(combination)) is integer
