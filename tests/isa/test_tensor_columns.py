"""The columns of tensor memory that a litmus thread has left, worked out by hand.

Section 9.7.17.7: there are 512, an alloc blocks while there are not enough, a dealloc frees one allocation.
"""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, ops

from memmodel import api
from memmodel.base.labels import Allocates, Allocation, Barrier, Domain, Half
from memmodel.isa.matrix.tensor_columns import GROWS, UNSURE
from memmodel.program.expressions import Apply, Const, Get
from memmodel.program.ops import Assign, AtBarrier, Emit, Op, Unmodelled
from memmodel.ptx.vocabulary import DataType

U32 = DataType("u", 32)
HELD, LAST = Get("#columns"), Get("#last columns")
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], {};"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, {};"


def counted(text: str) -> list[Op]:
    """The steps that count columns."""
    return [op for op in ops(blocks(text)) if isinstance(op, AtBarrier | Unmodelled | Assign)]


def taken(columns: int, place: int) -> list[Op]:
    """`place`: how many instructions and labels stand before, without the label with which the sample begins."""
    held = Apply("add", (HELD, Const(columns)), U32)
    count = Apply("add", (Const(1), Apply("gt", (held, Const(512)), U32)), U32)
    halves = [AtBarrier(Barrier(half, Domain.COLUMNS), (Const(0), Const(place + 1)), count) for half in Half]
    return [*halves, Assign("#columns", held)]


def given_back(columns: int) -> list[Op]:
    return [Assign("#columns", Apply("sub", (HELD, Apply("min", (HELD, Const(columns)), U32)), U32))]


@pytest.mark.parametrize("sizes", [(512,), (256, 256), (256, 32)])
def test_columns_that_are_always_there_are_not_counted(sizes):
    assert counted("".join(map(ALLOC.format, sizes)) + FREE.format(sizes[0])) == []


def test_an_increase_is_found():
    grows = Apply("and", (Apply("ne", (LAST, Const(0)), U32), Apply("gt", (Const(256), LAST), U32)), U32)
    found = Unmodelled(GROWS, grows), Assign("#last columns", Const(256))
    assert counted(ALLOC.format(32) + ALLOC.format(256))[2:] == [*found]


def test_columns_that_may_not_be_there_are_counted():
    text = ALLOC.format(512) + FREE.format(512) + ALLOC.format(32)
    assert counted(text) == [*taken(512, 0), *given_back(512), *taken(32, 2)]


def test_an_alloc_in_a_loop_is_counted():
    body = f"L: {ALLOC.format(32)} {FREE.format(32)} @%p bra L;"
    assert counted(body)[:4] == [*taken(32, 1), *given_back(32)]


def test_the_labels_have_the_numbers_that_are_known():
    text = "mov.u32 %n, 64;" + ALLOC.format("%n") + FREE.format(32)
    labels = [op.label for op in ops(blocks(text)) if isinstance(op, Emit)]
    assert labels == [Allocates(Allocation.ALLOC, 1, 64), Allocates(Allocation.DEALLOC, 1, 32)]


TWO = """PTX two
.shared .b32 at;
.shared .b32 next;
.tensor .b32 first[1];
.tensor .b32 second[1];
thread P0 @ cta 0, gpu 0 {{
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], {0};
    ld.shared.b32 %t, [at];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, {0};
}}
thread P1 @ cta {2}, gpu 0 {{
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [next], {1};
    ld.shared.b32 %t, [next];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, {1};
}}
~exists hang
"""


@pytest.mark.parametrize("engine", ["enumerate", "z3"])
@pytest.mark.parametrize(
    ("first", "second", "cta", "said"),
    [(256, 256, 0, "never"), (512, 512, 1, "never"), (512, 32, 0, "undecided"), (512, 512, 0, "undecided")],
)
def test_what_several_warps_of_a_cta_ask_for_is_decided_where_it_always_fits(first, second, cta, said, engine):
    report = api.check(TWO.format(first, second, cta), engine=engine)
    assert report.answer.observation.value == said
    assert said == "never" or UNSURE in report.answer.reason


# ---- which memory an alloc gives -------------------------------------------------------------------------------------

NAMED = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n"
FREED = "mov.u32 %a, t;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 32;\n"


@pytest.mark.parametrize(
    ("threads", "word"),
    [
        ((NAMED + FREED + NAMED + FREED,), "never"),
        ((NAMED + NAMED + FREED,), "undecided"),
        ((NAMED + FREED, NAMED + FREED), "undecided"),
        ((NAMED, FREED), "never"),
        ((NAMED.replace("32;", "512;") * 2,), "undecided"),
    ],
)
def test_memory_is_not_given_twice(threads: tuple[str, ...], word: str) -> None:
    """An alloc would give another piece of memory than the one that it is declared to give, or wait for ever."""
    bodies = "".join(f"thread P{number} {{\n{body}}}\n" for number, body in enumerate(threads))
    text = f"PTX a\n.tensor .b32 t = 0;\n.shared .b32 slot = alloc(t);\n{bodies}exists hang\n"
    for name in ("z3", "enumerate"):
        assert api.check(text, engine=name).answer.observation.value == word


@pytest.mark.parametrize(("own", "peer", "word"), [(64, 64, "never"), (64, 32, "undecided")])
def test_the_ctas_of_a_pair_ask_for_the_same_columns(own: int, peer: int, word: str) -> None:
    """ "One warp from each of the peer CTAs must collectively perform the allocation" (tcgen05.alloc)."""
    bodies = "".join(
        f"""thread P{rank} @ cta {rank}, cluster 0, gpu 0 {{
  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [at], {columns};
  ld.shared.b32 %ta, [at];
  barrier.cluster.arrive; barrier.cluster.wait;
  tcgen05.dealloc.cta_group::2.sync.aligned.b32 %ta, {columns};
}}
"""
        for rank, columns in enumerate((own, peer))
    )
    text = f"PTX pair\n.tensor .b32 acc[32];\n.shared .b32 at;\n{bodies}exists hang\n"
    assert api.check(text).answer.observation.value == word
