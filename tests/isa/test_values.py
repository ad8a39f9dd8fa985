"""What operands say of values that the numbers of a test cannot show: masks, collector buffers, spaces, lanes.

Each program is small enough to be worked out by hand from the page that it names. Both engines answer.
"""

from __future__ import annotations

import re

import pytest
from helpers.agreement import agree
from helpers.isa_samples import read, warnings

from memmodel.answer import Observation
from memmodel.cat import load_model
from memmodel.errors import InputError
from memmodel.isa.lower import lower_test

NEVER, ALWAYS = Observation.NEVER, Observation.ALWAYS
SOMETIMES, UNDECIDED = Observation.SOMETIMES, Observation.UNDECIDED
WAIT = """
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [bar];
W:  mbarrier.try_wait.parity.b64 %q, [bar], 0;
    @!%q bra W;
    tcgen05.fence::after_thread_sync;"""
CHANGE = "\n    fence.proxy.async; st.shared.u32 [sa], 5; fence.proxy.async;"
FILL, USE = "collector::a::fill", "collector::a::use"


def answered(body: str, question: str, more: str = "", meta: str = "") -> Observation:
    text = f"""PTX sample
.global .u32 x = 0;
.const .u32 k = 3;
.param .u32 n = 4;
.tensor .b32 acc[2] = {{7, 7}};
.shared .align 16 .u32 sa[4] = {{2}};
.shared .align 16 .u32 sb[4] = {{3}};
.shared .align 8 .b64 bar = mbarrier(1);
{meta}
thread P0 @ cta 0, cluster 0, gpu 0 {{
    mov.u64 %da, sa;
    mov.u64 %db, sb;
    mov.pred %no, 0;
    {body}
}}
{more}
{question}
"""
    return agree(text, load_model("ptx-9.4")).observation


def mma(words: str = "", operands: str = "%no", head: str = "tcgen05.mma") -> str:
    words = f".{words}" if words else ""
    return f"\n    {head}.cta_group::1.kind::f16{words} [acc], %da, %db, %idesc, {operands};"


# ---- masks ("tcgen05.mma", "Zero-Column Mask Descriptor") -----------------------------------------------------------


@pytest.mark.parametrize(("mask", "known"), [("0", NEVER), ("0xffffffff", UNDECIDED), ("1", UNDECIDED)])
def test_lanes_that_are_not_updated_keep_what_they_have(mask: str, known: Observation) -> None:
    body = f"mov.u32 %m, {mask};" + mma(operands="{%z, %z, %m, %z}, %no")
    assert answered(body, "exists (acc[0] == 7)") is known


@pytest.mark.parametrize(
    ("mask", "known"),
    # Skip Span and Use Span mean nothing without Non-Zero Mask; that, or a Column Shift, changes what is multiplied.
    [("0", NEVER), ("0x3040000000000", NEVER), ("0x8000000000", UNDECIDED), ("0x100000000000000", UNDECIDED)],
)
def test_columns_of_zeros(mask: str, known: Observation) -> None:
    body = f"mov.u64 %z, {mask};" + mma(operands="%no, %z", head="tcgen05.mma.ws")
    assert answered(body, "exists (acc[0] == 0)") is known


# ---- collector buffers ("tcgen05.mma") -----------------------------------------------------------------------------


def test_a_matrix_may_come_from_the_buffer_that_was_filled_with_it() -> None:
    assert answered(mma(FILL) + WAIT + mma(USE), "exists (acc[0] == 6)") is ALWAYS


def test_a_matrix_in_the_buffer_may_be_older_than_memory() -> None:
    assert answered(mma(FILL) + WAIT + CHANGE + mma(USE), "exists (acc[0] == 6)") is UNDECIDED
    assert answered(mma(FILL) + WAIT + CHANGE + mma(FILL), "exists (acc[0] == 6)") is NEVER
    assert answered(mma(FILL) + WAIT + CHANGE + mma(), "exists (acc[0] == 6)") is NEVER


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("", SOMETIMES),
        (mma(), SOMETIMES),  # no word is ::discard
        (mma(FILL), NEVER),
        (mma(FILL) + mma(USE), NEVER),
        (mma(FILL) + mma("collector::a::lastuse"), SOMETIMES),
        (mma(FILL) + mma("collector::a::discard"), SOMETIMES),
        ("setp.eq.u32 %q, %r0, 1;\n    @%q" + mma(FILL), SOMETIMES),
    ],
)
def test_a_buffer_is_used_after_it_was_filled_and_before_it_is_discarded(before: str, found: Observation) -> None:
    assert answered(before + mma(USE), "exists undefined") is found


def test_each_buffer_of_the_weight_stationary_form_is_its_own() -> None:
    head = "tcgen05.mma.ws"
    fill, use = mma("collector::b0::fill", head=head), mma("collector::b0::use", head=head)
    assert answered(fill + use, "exists undefined") is NEVER
    assert answered(fill + mma("collector::b1::discard", head=head) + use, "exists undefined") is NEVER
    assert answered(fill + mma("collector::b1::use", head=head), "exists undefined") is SOMETIMES


def test_what_another_thread_leaves_in_the_buffer_is_not_known() -> None:
    other = "thread P1 @ cta 0, cluster 0, gpu 0 { mov.u64 %da, sa; mov.u64 %db, sb;" + mma(FILL) + "\n}"
    assert answered(mma(FILL) + mma(USE), "exists (acc[0] == 7)", other) is UNDECIDED


# ---- spaces ("isspacep", "cvta") -----------------------------------------------------------------------------------

IN = {
    "shared": {"sa"},
    "shared::cta": {"sa"},
    "shared::cluster": {"sa", "sa@cta1"},
    "global": {"x", "n"},
    "const": {"k"},
    "param::entry": {"n"},
    "local": set[str](),
}
PEER = "thread P1 @ cta 1, cluster 0, gpu 0 { st.global.u32 [x], 0; }"


@pytest.mark.share(3)
@pytest.mark.parametrize("name", ["sa", "sa@cta1", "x", "k", "n"])
@pytest.mark.parametrize("space", IN)
def test_the_window_of_an_address(space: str, name: str) -> None:
    body = f"mov.u64 %a, {name}; isspacep.{space} %p, %a;"
    assert answered(body, "exists (P0:%p == 1)", PEER) is (ALWAYS if name in IN[space] else NEVER)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cvta.to.shared.u64 %b, %a;", NEVER),
        ("cvta.to.global.u64 %b, %a;", SOMETIMES),
        ("cvta.shared::cta.u64 %b, sa@cta1;", SOMETIMES),
        ("cvta.shared::cluster.u64 %b, sa@cta1;", NEVER),
        ("cvta.param.u64 %b, n;", NEVER),
        ("cvta.to.global.u64 %b, %null;", NEVER),
        ("cvta.to.shared::cta.u64 %b, %null;", NEVER),  # where the window of CTA 0 begins
        ("cvta.to.param.u64 %b, %null;", SOMETIMES),
    ],
)
def test_an_address_of_another_space_is_undefined(line: str, found: Observation) -> None:
    assert answered(f"mov.u64 %a, sa; {line}", "exists undefined", PEER) is found


def test_a_name_of_another_space_is_refused() -> None:
    text = "PTX sample\n.global .u32 x;\nthread P0 { cvta.shared.u64 %a, x; }\nexists (true)\n"
    with pytest.raises(InputError, match=r"'x' is a .global variable, not .shared"):
        lower_test(read(text))


# ---- lanes ---------------------------------------------------------------------------------------------------------


def test_a_warp_that_is_one_thread_votes_with_one_voice() -> None:
    body = "setp.eq.u32 %p, %r9, 0; vote.sync.ballot.b32 %r0, %p, 0xffffffff; redux.sync.add.u32 %r1, 3, 0xf;"
    assert answered(body, "exists (P0:%r0 == 0xffffffff /\\ P0:%r1 == 12)") is ALWAYS


def test_lanes_that_are_threads_of_their_own_do_not_vote() -> None:
    text = """PTX lanes
thread P0 @ cta 0, warp 0 { redux.sync.add.u32 %r0, 1, 3; }
thread P1 @ cta 0, warp 0 { redux.sync.add.u32 %r0, 1, 3; }
exists (P0:%r0 == 2)
"""
    assert agree(text, load_model("ptx-9.4")).observation is UNDECIDED


def test_a_test_that_may_trap_is_undecided() -> None:
    assert (
        answered("ld.relaxed.gpu.global.u32 %r0, [x]; setp.eq.u32 %p, %r0, 1; @%p trap;", "exists (x == 0)") is ALWAYS
    )
    assert answered("trap;", "exists (x == 0)") is UNDECIDED


def test_a_racy_read_of_what_is_read_only() -> None:
    writer = "thread P1 @ cta 1, cluster 0, gpu 0 { st.global.u32 [x], 1; }"
    assert answered("ldu.global.u32 %r0, [x];", "exists race", writer) is SOMETIMES


# ---- pipelines ("Pipelined tcgen05 Instructions", "Matrix Shape")


def test_a_dense_and_a_sparse_mma_have_different_shapes() -> None:
    """K of the sparse shape is twice that of the dense one: the pair is no pipeline, whatever the descriptor says."""
    dense, sparse = mma(), mma(head="tcgen05.mma.sp").replace("%idesc", "[meta], %idesc")
    meta = ".tensor .b32 meta[2] = {1, 1};"
    for first, second, found in ((dense, sparse, SOMETIMES), (sparse, dense, SOMETIMES), (sparse, sparse, NEVER)):
        assert answered(first + second, "exists hazard", meta=meta) is found


# ---- where a matrix ends ("executions.md", Memory) -------------------------------------------------------------------


def test_a_matrix_ends_where_the_next_one_of_its_thread_begins() -> None:
    """The accumulator is acc[0] alone, although the copy that names acc[1] comes after the mma."""
    body = mma() + "\n    tcgen05.cp.cta_group::1.128x128b [acc+1], %da;"
    assert answered(body, "exists (acc[1] == 6)") is NEVER
    assert answered(body, "exists hazard") is NEVER


def test_a_shift_moves_every_row_but_the_last() -> None:
    body = "tcgen05.shift.cta_group::1.down [acc];" + WAIT + "\n    tcgen05.cp.cta_group::1.128x128b [acc+1], %da;"
    assert answered(body, "exists (acc[0] == 7 /\\ acc[1] == 2)") is ALWAYS
    rows = "PTX rows\n.tensor .b32 t[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};\n"
    rows += "thread P0 @ cta 0 { tcgen05.shift.cta_group::1.down [t+1]; }\n"
    moved = " /\\ ".join(f"t[{k}] == {k if k in (0, 8, 9) else k + 1}" for k in range(10))
    assert agree(rows + f"exists ({moved})\n", load_model("ptx-9.4")).observation is ALWAYS
    short = rows.replace("t+1]", "t+8]")
    assert agree(short + "exists (t[8] == 9 /\\ t[9] == 9)\n", load_model("ptx-9.4")).observation is ALWAYS


def test_a_row_that_is_shifted_is_touched() -> None:
    body = "tcgen05.shift.cta_group::1.down [acc];\n    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [acc];"
    assert answered(body, "exists hazard") is SOMETIMES


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, %m, 2, 1, 1, 1, 0, 0;", "sp-sel of .f16 is 0 or 1"),
        ("m64n8k64.s32.s8.u8 {%f0, %f1, %f2, %f3}, %d, %d, %m, 1, 1;", "sp-sel of .s8 is 0"),
        ("m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, %m, 0, 1, 1, 1, 0, 0;", "has no shape .m64n8k16 for .f16"),
        ("m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, %m, 0, 1;", "takes 4 numbers after scale-d"),
    ],
)
def test_what_a_sparse_wgmma_is_not_given(line: str, message: str) -> None:
    text = f"PTX sample\nthread P0 {{ wgmma.mma_async.sp.sync.aligned.{line} }}\nexists (true)\n"
    with pytest.raises(InputError, match=re.escape(message)):
        lower_test(read(text))


# ---- numbers that a type does not have --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "what"),
    [
        ("x == -1", "`x` is never -1: it is a .u32"),
        ("-1 != x", "`x` is never -1: it is a .u32"),
        ("y == 0xffffffff", "`y` is never 4294967295: it is a .s32"),
        ("x == 0x100000000", "`x` is never 4294967296: it is a .u32"),
        ("P0:%a == -1", "`P0:%a` is never -1: it is a .u32"),
        ("P0:%b == 255", "`P0:%b` is never 255: it is a .s8"),
        ("x == 0xffffffff", ""),
        ("y == -1", ""),
        ("x < -1", ""),
        ("P0:%a == 1", ""),
        ("P0:%c == -1", ""),  # a number moved as it is, or one of another type
        ("P0:%d == -1", ""),
        ("P0:%e == -1", ""),
    ],
)
def test_a_comparison_that_is_never_true_is_doubtful(question: str, what: str) -> None:
    text = f"""PTX misfits
.global .u32 x = 0;
.global .s32 y = 0;
P0:%e = -1;
thread P0 {{
    ld.global.u32 %a, [x];
    ld.global.s8 %b, [x];
    mov.s32 %c, -1;
    @%p sub.u32 %c, %a, 1;
    sub.s32 %d, 0, 1;
    @%p add.u32 %e, %a, 1;
}}
exists ({question})
"""
    found = [one for one in warnings(read(text)) if "is never" in one]
    assert len(found) == bool(what) and all(what in one for one in found)
