"""Values that come through matrices, local memory and calls: which stores leave them in equal bytes?"""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, judged, launch, module

from kernel.machine.test_values import MATRIX, OWN, rules
from memmodel.cat.load import load_model
from memmodel.kernel.check.conductor import judge


@pytest.mark.parametrize(
    ("load", "move", "store", "rule"),
    [
        ("", "", "", "equal-store-race"),
        (".trans", "", ".trans", "equal-store-race"),  # turned and turned back
        (".trans", "movmatrix.sync.aligned.m8n8.trans.b16 %r13, %r13;", "", "equal-store-race"),
        ("", "movmatrix.sync.aligned.m8n8.trans.b16 %r13, %r13;", ".trans", "equal-store-race"),
        (".trans", "", "", "data-race"),
        ("", "", ".trans", "data-race"),
        ("", "movmatrix.sync.aligned.m8n8.trans.b16 %r13, %r13;", "", "data-race"),
        (".trans", "prmt.b32 %r13, %r13, %r13, 0x1032;", ".trans", "data-race"),
    ],
)
def test_a_matrix_that_is_turned(load: str, move: str, store: str, rule: str) -> None:
    """One warp stores what it loaded with ldmatrix in some way, the other one words that it loaded plainly."""
    body = MATRIX.format(
        way=load,
        store=f"""shl.b32 %r14, %r10, 2;
        add.s32 %r15, %r2, %r14;
        ld.shared.b32 %r16, [%r15];
        {move}
        add.s32 %r12, %r12, 512;
        @%p1 bra C;
        stmatrix.sync.aligned.m8n8.x1{store}.shared.b16 [%r12], {{%r13}};
        bra D;
        C: st.shared.b32 [%r15+512], %r16;
        D:""",
    )
    assert rules(body) == {rule: ""}


LOCAL = """
.local .align 16 .b8 l[64];
mov.b32 %r30, l;
ld.global.b32 %r9, [%d0];
st.local.b32 [l+4], %r9;
{between}
ld.local.b32 %r10, [{place}];
st.shared.b32 [%r2], %r10;
"""


@pytest.mark.parametrize(
    ("between", "place", "rule"),
    [
        ("", "l+4", "equal-store-race"),
        ("add.s32 %r30, %r30, 4;", "%r30", "equal-store-race"),
        ("st.local.v2.b32 [l+8], {%r0, %r9};", "l+12", "equal-store-race"),
        ("cvta.local.u64 %d9, l;\nst.b32 [%d9+8], %r9;", "l+8", "equal-store-race"),
        ("st.local.b32 [l+8], %r0;", "l+4", "equal-store-race"),
        ("st.local.b16 [l+6], 7;", "l+4", "equal-store-race"),
        # What is there is the thread's own, or not known.
        (OWN + "st.local.b32 [l+4], %r9;", "l+4", "same-store-race"),
        (OWN + "st.local.b8 [l+7], %r9;", "l+4", "same-store-race"),
        (OWN + "st.volatile.local.b32 [l+4], %r9;", "l+4", "same-store-race"),
        (OWN + "cvta.local.u64 %d9, l;\nst.b32 [%d9+4], %r9;", "l+4", "same-store-race"),
        (OWN + "and.b32 %r9, %r9, 4;\nadd.s32 %r30, %r30, %r9;\nst.local.b32 [%r30], 1;", "l+4", "same-store-race"),
        ("", "l+16", "same-store-race"),
        (OWN + "setp.eq.b32 %p1, %r9, 0;\n@%p1 bra J;\nst.local.b32 [l+4], 1;\nJ:", "l+4", "same-store-race"),
    ],
)
def test_values_that_come_through_local_memory(between: str, place: str, rule: str) -> None:
    assert set(rules(LOCAL.format(between=between, place=place), 32)) == {rule}


def test_what_one_side_of_an_unknown_branch_stores_is_not_known_where_they_meet() -> None:
    """It lies in local memory, and says where a store goes."""
    verdict = judged("""
        .local .align 4 .b8 l[4];
        st.local.b32 [l], 0;
        ld.global.u32 %r5, [%d0];
        setp.eq.u32 %p1, %r5, 7;
        @%p1 bra MEET;
        st.local.b32 [l], 256;
        MEET: ld.local.b32 %r6, [l];
        add.u32 %r7, %r3, %r6;
        st.shared.u32 [%r7], %r0;
    """)
    assert verdict.word == "undecided" and "ld.local.b32" in verdict.unsettled[0]


DOUBLED = """
.func (.param .b32 y) twice(.param .b32 x)
{
.reg .b32 %a<3>;
ld.param.b32 %a1, [x];
add.s32 %a1, %a1, %a1;
%OTHER%st.param.b32 [y], %a1;
ret;
}
"""
CALLS = """
ld.global.b32 %r9, [%d0];
{own}
{{ .param .b32 a; .param .b32 c; st.param.b32 [a], %r9; call (c), twice, (a); ld.param.b32 %r10, [c]; }}
{again}
st.shared.b32 [%r2], %r10;
"""
AGAIN = "{ .param .b32 e; .param .b32 g; st.param.b32 [e], %r10; call (g), twice, (e); ld.param.b32 %r10, [g]; }"


@pytest.mark.parametrize(
    ("own", "again", "other", "rule"),
    [
        ("", "", "", "equal-store-race"),
        ("", AGAIN, "", "equal-store-race"),
        (OWN, "", "", "same-store-race"),
        ("", "add.s32 %r10, %r10, %r0;", "", "same-store-race"),
        ("", "", "mov.u32 %a2, %tid.x;\nadd.s32 %a1, %a1, %a2;\n", "same-store-race"),
        (OWN, AGAIN, "mov.u32 %a1, 5;\n", "equal-store-race"),
    ],
)
def test_values_that_come_through_calls(own: str, again: str, other: str, rule: str) -> None:
    verdict = judged(CALLS.format(own=own, again=again), threads=32, before=DOUBLED.replace("%OTHER%", other))
    assert {one.rule for one in verdict.findings} == {rule}


def test_what_a_function_of_the_system_returns_is_equal_to_nothing() -> None:
    body = """
.local .align 8 .b8 l[16];
ld.global.b32 %r9, [%d0];
{ .param .b64 a; .param .b64 b; .param .b32 c;
st.param.b64 [a], 0; st.param.b64 [b], 0; st.param.b32 [c], %r9;
call (c), vprintf, (a, b);
ld.param.b32 %r10, [c]; }
st.shared.b32 [%r2], %r10;
"""
    before = ".extern .func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y);\n"
    assert {one.rule for one in judged(body, threads=32, before=before).findings} == {"same-store-race"}


def test_parameters_of_the_entry_are_one_value_for_all() -> None:
    read = module("ld.param.b32 %r9, [k_param_0];\nst.shared.b32 [%r2], %r9;")
    verdict = judge(read, entry(read), launch(), load_model("ptx-9.4"))
    assert {one.rule for one in verdict.findings} == {"equal-store-race"}


RECURSIVE = """
.func (.param .b32 y) deep(.param .b32 x, .param .b32 n)
{
.reg .b32 %a<6>; .reg .pred %q;
ld.param.b32 %a1, [x];
ld.param.b32 %a2, [n];
setp.eq.s32 %q, %a2, 0;
@%q bra E;
sub.s32 %a3, %a2, 1;
add.s32 %a5, %a1, VALUE;
{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %a5; st.param.b32 [b], %a3;
call (c), deep, (a, b); ld.param.b32 %a4, [c]; }
add.s32 %a1, %a4, %a1;
E: st.param.b32 [y], %a1;
ret;
}
"""


@pytest.mark.parametrize(("value", "rule"), [("1", "same-store-race"), ("%a1", "same-store-race")])
def test_registers_that_a_function_finds_as_it_left_them(value: str, rule: str) -> None:
    """A thread's own value is added to what all have: after the call inside it, %a1 is the thread's own again."""
    body = (
        OWN
        + """{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %r9; st.param.b32 [b], 1;
    call (c), deep, (a, b); ld.param.b32 %r10, [c]; }
    st.shared.b32 [%r2], %r10;"""
    )
    found = judged(body, threads=32, before=RECURSIVE.replace("VALUE", value)).findings
    assert {one.rule for one in found} == {rule}
