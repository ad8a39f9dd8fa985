"""Registers that are still needed, and where unknown values come from: worked out by hand."""

from __future__ import annotations

import pytest

from memmodel.kernel.flow.liveness import liveness
from memmodel.kernel.flow.origin import origins
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.source import Source


def entry(body: str) -> PtxFunction:
    text = f""".version 9.3
.target sm_90a
.address_size 64
.visible .entry k()
{{
.reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<4>;
{body}
}}
"""
    return parse_module(Source("k.ptx", text)).functions["k"]


def live(body: str) -> list[set[str]]:
    """The names of the registers that are needed before each instruction."""
    function = entry(body)
    names = {
        register.slot: register.name.lstrip("%")
        for instruction in function.body or ()
        for register in (*instruction.operands, instruction.guard)
        if hasattr(register, "slot")
    }
    return [{names[slot] for slot in slots} for slots in liveness(function)]


def test_a_guarded_write_leaves_the_old_value_needed() -> None:
    assert live("@%p0 mov.u32 %r0, 1;\nadd.u32 %r1, %r0, %r0;") == [{"p0", "r0"}, {"r0"}, set()]
    assert live("mov.u32 %r0, 1;\nadd.u32 %r1, %r0, %r0;") == [set(), {"r0"}, set()]


def test_a_branch_by_a_table_leads_to_all_its_labels() -> None:
    body = """
T: .branchtargets A, B;
brx.idx %r0, T;
A: add.u32 %r1, %r2, %r2;
exit;
B: add.u32 %r1, %r3, %r3;
"""
    assert live(body)[0] == {"r0", "r2", "r3"}


def test_an_accumulator_is_read() -> None:
    """D of wgmma.mma_async is D = A*B+D ("Asynchronous wgmma Instructions: wgmma.mma_async")."""
    function = entry(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %d0, %d1, %p0, 1, 1, 0, 0;"
    )
    assert len(liveness(function)[0]) == 7


@pytest.mark.parametrize(
    ("lines", "sources"),
    [
        ("ld.global.u32 %r0, [%d0];\nadd.u32 %r1, %r0, 1;", ["ld.global.u32 at line 7"]),
        ("ld.param.u32 %r0, [%d0];\nadd.u32 %r1, %r0, 1;", []),
        ("mov.u32 %r0, %clock;\nadd.u32 %r1, %r0, 1;", ["%clock at line 7"]),
        ("ld.global.u32 %r2, [%d0];\nshfl.sync.idx.b32 %r1, %r2, 0, 31, -1;", ["ld.global.u32 at line 7"]),
        ("atom.global.add.u32 %r0, [%d0], 1;\n@%p1 mov.u32 %r0, 3;\nmov.u32 %r1, %r0;",
         ["atom.global.add.u32 at line 7"]),
        ("activemask.b32 %r1;\nnot.b32 %r1, %r1;", ["activemask.b32 at line 7"]),
    ],
)  # fmt: skip
def test_where_a_value_comes_from(lines: str, sources: list[str]) -> None:
    """The loads and special registers that a branch on %r1 depends on, lanes and parameters looked through."""
    function = entry(lines + "\nsetp.eq.u32 %p0, %r1, 0;\nL: @%p0 bra L;")
    assert function.body is not None
    assert origins(function, function.body[-1].number) == sources
