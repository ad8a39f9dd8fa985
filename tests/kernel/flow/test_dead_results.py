"""What a thread does with the result of an atomic operation: the same for several results, or not."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, module

from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.dead_results import does_alike, read_beside

TICKET = "atom.global.add.u32 %r20, [%d0], 1;\n"
TEST = "setp.eq.u32 %p2, %r20, %r21;\n"
LAST = f"add.u32 %r21, %r22, -1;\n{TEST}"


@pytest.mark.parametrize(
    ("behind", "alike"),
    [
        pytest.param(f"{LAST}@%p2 bra X;\nst.global.u32 [%d0+4], 1;\nX:", True, id="a branch"),
        pytest.param(f"{LAST}selp.b32 %r23, 1, 0, %p2;\nst.shared.u32 [%r2], %r23;", True, id="a flag in memory"),
        pytest.param(f"{LAST}@%p2 st.global.u32 [%d0+4], 1;", True, id="a guard"),
        pytest.param("setp.lt.u32 %p2, %r20, 1;\n@%p2 bra X;\nst.global.u32 [%d0+4], 1;\nX:", False,
                     id="another branch"),
        pytest.param("setp.lt.u32 %p2, %r20, 1;\n@%p2 st.global.u32 [%d0+4], 1;", False, id="another guard"),
        pytest.param("st.global.u32 [%d0+4], %r20;", False, id="the result is stored"),
        pytest.param("mad.wide.u32 %d1, %r20, 4, %d0;\nst.global.u32 [%d1+64], 1;", False, id="it is an address"),
        pytest.param(f"{LAST}add.u32 %r24, %r20, 1;\n@%p2 bra X;\nst.global.u32 [%d0+4], %r24;\nX:", False,
                     id="a sum of it is stored behind the branch"),
        pytest.param(f"{LAST}add.u32 %r24, %r20, 1;\nmov.u32 %r24, 5;\n@%p2 bra X;\nst.global.u32 [%d0+4], %r24;\nX:",
                     True, id="and overwritten before"),
        pytest.param(f"{LAST}mov.u32 %r24, 5;\n@%p3 mov.u32 %r24, %r20;\nst.global.u32 [%d0+4], %r24;", False,
                     id="it may be moved under a guard"),
        pytest.param(f"{LAST}mov.u32 %r24, %r20;\n@%p3 mov.u32 %r24, 5;\nst.global.u32 [%d0+4], %r24;", False,
                     id="it may be overwritten under a guard"),
        pytest.param("add.cc.u32 %r24, %r20, -1;\naddc.u32 %r25, 0, 0;\nst.global.u32 [%d0+4], %r25;", False,
                     id="its carry is used"),
        pytest.param("setp.ge.u32 %p2, %r20, 2;\n@%p2 ret;\nst.global.u32 [%d0+4], 1;", True, id="a thread exits"),
        pytest.param("setp.eq.u32 %p2, %r20, 0;\nshfl.sync.idx.b32 %r24, %r20, 0, 31, -1;", False,
                     id="lanes exchange it"),
        pytest.param(f"@%p3 bra Y;\n{LAST}@%p2 bra X;\nY: st.global.u32 [%d0+4], 1;\nX:", True,
                     id="behind a branch that is not known"),
        pytest.param("setp.eq.u32 %p2, %r20, %r26;\n@%p2 bra X;\nst.global.u32 [%d0+4], 1;\nX:", False,
                     id="a number that is not known"),
    ],
)  # fmt: skip
def test_results_that_make_no_difference(behind: str, alike: bool) -> None:
    """Three threads: the results 0 and 1 are of those that are not the last one."""
    function = entry(module(f"mov.u32 %r22, %nctaid.x;\n{TICKET}{behind}"))
    number = next(at for at, does in enumerate(body_of(function)) if does.atomic)
    ctas = body_of(function)[number - 1].writes[0]
    assert does_alike(function, number, [0, 1], ((ctas, 3),)) is alike
    assert not does_alike(function, number, [0, 1, 2], ((ctas, 3),))


def test_the_registers_that_have_to_be_known() -> None:
    function = entry(module(f"mov.u32 %r22, %nctaid.x;\n{TICKET}{LAST}@%p2 trap;\nadd.u32 %r24, %r25, 1;"))
    number, does = next((at, does) for at, does in enumerate(body_of(function)) if does.atomic)
    last, test = body_of(function)[number + 1 : number + 3]
    assert set(read_beside(function, number)) == {*last.sources, *last.writes}
    assert does.writes[0] in test.sources
