"""Branches that depend on where variables lie, or on the bits of a state: PTX says neither."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged

BEFORE = ".global .align 4 .b8 first[16];\n.global .align 4 .b8 second[16];\n.func f() { ret; }\n"
STATE = "@%p0 mbarrier.init.shared.b64 [bar], 64;\nbar.sync 0;\nmbarrier.arrive.shared.b64 %d5, [bar];\n"
NUMBER = "selp.u32 %r20, 1, 0, %p1;"
POINTER = "add.u32 %r21, %r2, 256;\nmov.u32 %r22, %r3;\n"
POINTER += "L: add.u32 %r22, %r22, 256;\nsetp.lt.u32 %p2, %r22, %r21;\n@%p2 bra L;"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("shr.u32 %r20, %r2, 12;", "the address of s"),
        ("sub.u32 %r20, %r4, %r2;", "the address of bar, the address of s"),
        (f"mov.u64 %d5, first;\nmov.u64 %d6, second;\nsetp.gt.u64 %p1, %d5, %d6;\n{NUMBER}",
         "the address of first, the address of second"),
        ("mov.u64 %d5, f;\ncvt.u32.u64 %r20, %d5;\nand.b32 %r20, %r20, 64;", "the address of f"),
        ("alloca.u64 %d5, 64, 16;\ncvt.u32.u64 %r20, %d5;", "the stack at line 21"),
        ("mov.u32 %r20, %reserved_smem_offset_end;", "%reserved_smem_offset_end"),
        (STATE + "cvt.u32.u64 %r20, %d5;", "the state of line 23"),
        ("mov.u32 %r20, 0;\n@%p0 mov.u32 %r20, %r2;", "the address of s"),  # no address, or one
        # The places cancel out, are the same everywhere, or are no null pointers.
        (f"{POINTER}\nmov.u32 %r20, 0;", ""),
        ("sub.u32 %r20, %r3, %r2;", ""),
        (f"cvta.shared.u64 %d5, %d1;\nisspacep.shared %p1, %d5;\n{NUMBER}", ""),
        (f"mov.u64 %d5, first;\nsetp.eq.u64 %p1, %d5, 0;\n{NUMBER}", ""),
        (f"{STATE}W: mbarrier.try_wait.shared.b64 %p1, [bar], %d5;\n@!%p1 bra W;\nmov.u32 %r20, 0;", ""),
    ],
)  # fmt: skip
def test_a_place_that_decides_is_an_assumption(body: str, place: str) -> None:
    verdict = judged(
        f"cvt.u64.u32 %d1, %r2;\n{body}\nsetp.eq.u32 %p9, %r20, 12345;\n@%p9 st.global.u32 [%d0], %r0;", before=BEFORE
    )
    assert verdict.word == "clean", repr(verdict)
    decided = [what.split(" decides by ")[1] for what in verdict.assumptions if " decides by " in what]
    assert decided == ([f"{place}, as in this run"] if place else [])


def test_what_no_thread_executes_decides_nothing() -> None:
    body = "bra OVER;\nshr.u32 %r20, %r2, 12;\nsetp.eq.u32 %p9, %r20, 1;\n@%p9 st.global.u32 [%d0], %r0;\nOVER:"
    assert not judged(body).assumptions
