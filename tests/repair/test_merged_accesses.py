"""Accesses that become one: an atomic, one access of both widths, one name; halves of a proxy fence that is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from memmodel import api
from memmodel.engine import Options
from memmodel.program.lowered import LoweredTest
from memmodel.repair.edits import Edit, apply
from memmodel.repair.exchanging.one_access import one_access
from memmodel.repair.exchanging.one_atomic import one_atomic
from memmodel.repair.exchanging.one_name import one_name
from memmodel.repair.exchanging.retries import retries
from memmodel.repair.fix import fix
from memmodel.repair.vocabulary import replacements
from memmodel.repair.weaken import weaken
from memmodel.source import Source

pytestmark = pytest.mark.turns(2)

MODELS = (api.load("ptx-9.4"),)
OPTIONS = Options()


def twice(body: str, question: str, declared: str = ".global .u32 x = 0;") -> str:
    """A test of two threads with one body, in two CTAs."""
    threads = "\n".join(f"thread {name} @ cta {cta}, gpu 0 {{\n{body}\n}}" for cta, name in enumerate("AB"))
    return f"PTX twice\n{declared}\n{threads}\n{question}\n"


COUNTER = twice(
    "ld.relaxed.gpu.global.u32 %a, [x];\nadd.u32 %b, %a, 1;\nst.relaxed.gpu.global.u32 [x], %b;", "~exists (x != 2)"
)
MAXIMUM = twice(
    "ld.relaxed.gpu.global.u32 %a, [x];\nsetp.lt.u32 %p, %a, 5;\n@%p st.relaxed.gpu.global.u32 [x], 5;",
    "~exists (x != 5)",
)
LARGEST = twice(
    "ld.relaxed.gpu.global.u32 %a, [x];\nsetp.ge.u32 %p, %a, 5;\n@%p bra OUT;\nst.relaxed.gpu.global.u32 [x], 5;\n"
    "OUT: mov.u32 %end, 0;",
    "~exists (x != 5)",
)
TAKEN = twice(
    "mov.u32 %won, 0;\nld.relaxed.gpu.global.u32 %a, [x];\nsetp.ne.u32 %p, %a, 0;\n@%p bra OUT;\n"
    "st.relaxed.gpu.global.u32 [x], 1;\nmov.u32 %won, 1;\nOUT: mov.u32 %end, 0;",
    "~exists (A:won == 1 /\\ B:won == 1)",
)
TURN = twice("ld.relaxed.gpu.global.u32 %a, [x];\nst.relaxed.gpu.global.u32 [x], 1;", "~exists (A:a == 0 /\\ B:a == 0)")
DOUBLED = twice(
    "ld.global.u32 %a, [x];\nmul.lo.u32 %b, %a, 2;\nst.relaxed.gpu.global.u32 [x], %b;",
    "~exists (x != 4)",
    ".global .u32 x = 1;",
)
LAST_ONE = twice(
    "mov.u32 %got, 0;\nld.relaxed.gpu.global.u32 %a, [x];\nsetp.eq.u32 %p, %a, 0;\n@%p bra OUT;\n"
    "red.relaxed.gpu.global.add.u32 [x], -1;\nmov.u32 %got, 1;\nOUT: mov.u32 %end, 0;",
    "~exists (A:got == 1 /\\ B:got == 1)",
    ".global .u32 x = 1;",
)
PUSHED = twice(
    "ld.relaxed.gpu.global.u32 %a, [x];\nst.relaxed.gpu.global.u32 [n], %a;\nst.relaxed.gpu.global.u32 [x], 1;",
    "~exists (A:a == 0 /\\ B:a == 0)",
    ".global .u32 x = 0;\n.global .u32 n = 9;",
)
POPPED = twice(
    "ld.relaxed.gpu.global.u32 %a, [x];\nld.relaxed.gpu.global.u32 %n, [n];\nst.relaxed.gpu.global.u32 [x], %n;",
    "~exists (A:a == 1 /\\ B:a == 1)",
    ".global .u32 x = 1;\n.global .u32 n = 2;",
)
CREDIT = twice(
    "ld.relaxed.gpu.global.u32 %a, [x];\nsetp.eq.u32 %p, %a, 0;\n@%p bra OUT;\nsub.u32 %a, %a, 1;\n"
    "st.relaxed.gpu.global.u32 [x], %a;\nOUT: mov.u32 %end, 0;",
    "~exists (x == 1)",
    ".global .u32 x = 2;",
)
BLIND_LOCK = twice(
    "S: ld.acquire.gpu.global.u32 %a, [x];\nsetp.ne.u32 %p, %a, 0;\n@%p bra S;\n"
    "atom.acquire.gpu.global.exch.b32 %o, [x], 1;\nld.global.u32 %c, [c];\nadd.u32 %c, %c, 1;\nst.global.u32 [c], %c;\n"
    "st.release.gpu.global.u32 [x], 0;",
    "~exists (c == 1)",
    ".global .u32 x = 0;\n.global .u32 c = 0;",
)
OVERWRITTEN = """PTX overwritten
.global .u32 d = 1;
thread A @ cta 0, gpu 0 { ld.global.u32 %r, [d]; }
thread B @ cta 1, gpu 0 { st.global.u32 [d], 2; }
~exists (A:r == 2)
"""
HALVES = """PTX halves
.global .align 8 .u32 x[2] = {0};
thread A @ cta 0, gpu 0 { mov.b64 %v, {1, 1}; st.relaxed.gpu.global.b64 [x], %v; }
thread B @ cta 1, gpu 0 { ld.relaxed.gpu.global.u32 %a, [x]; ld.relaxed.gpu.global.u32 %b, [x+4]; }
~exists (B:a == 1 /\\ B:b == 0)
"""
TORN = """PTX torn
.global .align 8 .u32 x[2] = {0};
thread A @ cta 0, gpu 0 {
    st.relaxed.gpu.global.u32 [x+4], 7;
    st.relaxed.gpu.global.u32 [x], 1;
}
thread B @ cta 1, gpu 0 { ld.relaxed.gpu.global.v2.u32 {%a, %b}, [x]; }
~exists (B:a == 1 /\\ B:b == 0)
"""
WEAKLY_TORN = TORN.replace("relaxed.gpu.", "")
TWO_NAMES = """PTX names
.global .u32 d = 0;
.global .u32 x = 0;
.global .u32 y = 0;
.global .u32 both = multimem(x, y);
thread A @ cta 0, gpu 0 {
    st.global.u32 [d], 2;
    multimem.red.release.sys.global.add.u32 [both], 1;
}
thread B @ cta 0, gpu 1 {
W:  ld.acquire.sys.global.u32 %f, [y];
    setp.eq.u32 %p, %f, 0;
    @%p bra W;
    ld.global.u32 %a, [d];
}
~exists (B:a != 2)
"""
ALIAS = """PTX alias
.global .u32 d = 0;
.global .u32 x = 0;
y aliases x;
thread A @ cta 0, gpu 0 { st.global.u32 [d], 2; st.release.gpu.global.u32 [x], 1; }
thread B @ cta 1, gpu 0 {
W:  ld.acquire.gpu.global.u32 %f, [y];
    setp.eq.u32 %p, %f, 0;
    @%p bra W;
    ld.global.u32 %a, [d];
}
~exists (B:a != 2)
"""

Candidates = Callable[[LoweredTest], Iterable[Edit]]


@pytest.mark.parametrize(
    ("text", "candidates", "wanted"),
    [
        (COUNTER, one_atomic, "atom.relaxed.gpu.global.add.u32 %a, [x], 1"),
        (MAXIMUM, one_atomic, "atom.relaxed.gpu.global.max.u32 %a, [x], 5"),
        (LARGEST, one_atomic, "atom.relaxed.gpu.global.max.u32 %a, [x], 5"),
        (TAKEN, one_atomic, "atom.relaxed.gpu.global.cas.b32 %a, [x], 0, 1"),
        (TURN, one_atomic, "atom.relaxed.gpu.global.exch.b32 %a, [x], 1"),
        (PUSHED, one_atomic, "atom.relaxed.gpu.global.exch.b32 %a, [x], 1"),
        (POPPED, retries, "atom.relaxed.gpu.global.cas.b32 %seen0, [x], %a, %n"),
        (CREDIT, retries, "atom.relaxed.gpu.global.cas.b32 %seen0, [x], %had0, %a"),
        (BLIND_LOCK, retries, "atom.acquire.gpu.global.cas.b32 %o, [x], %a, 1"),
        (DOUBLED, retries, "atom.relaxed.gpu.global.cas.b32 %seen0, [x], %a, %b"),
        (LAST_ONE, retries, "atom.relaxed.gpu.global.cas.b32 %seen1, [x], %a, %new1"),
        (TORN, one_access, "ld.relaxed.gpu.global.b64"),
        (WEAKLY_TORN, one_access, "ld.relaxed.gpu.global.b64"),
        (TWO_NAMES, one_name, "multimem.ld_reduce.acquire.sys.global.min.u32 %f, [both]"),
        (ALIAS, one_name, "ld.acquire.gpu.global.u32 %f, [x]"),
    ],
)
def test_accesses_that_become_one(text: str, candidates: Candidates, wanted: str) -> None:
    edits = list(candidates(api.lowered(Source("one", text))))
    mended = {new for edit in edits if wanted in (new := apply(text, (edit,)))}
    answers = [api.check(new) for new in mended]
    assert any(report.answer.observation.value == "never" and not report.answer.flags for report in answers)


def test_fix_offers_the_atomic() -> None:
    repair = fix("counter", COUNTER, MODELS, OPTIONS).repairs[0]
    assert repair.new.count("atom.relaxed.gpu.global.add.u32") == 2 and "st." not in repair.new


def test_a_thread_tells_another_by_a_flag_where_they_meet_at_no_barrier() -> None:
    """Relaxed data would race no more, and the store could still come first."""
    new = fix("overwritten", OVERWRITTEN, MODELS, OPTIONS).repairs[0].new
    assert new.index("ld.global.u32 %r, [d]") < new.index("st.release.gpu.global.u32 [done], 1;")
    assert new.index("ld.acquire.gpu.global.u32 %done, [done]") < new.index("st.global.u32 [d], 2")


def test_accesses_of_two_sizes_become_one_of_one_size() -> None:
    """Of the test as it stands the model says nothing."""
    found = fix("halves", HALVES, MODELS, OPTIONS)
    assert "ld.relaxed.gpu.global.b64 %pair0, [x]" in found.repairs[0].new and found.wrong[0].startswith("accesses of")


def test_a_thread_that_only_computes_meets_the_others() -> None:
    text = """PTX skips
thread A @ cta 0, cluster 0 { barrier.cluster.arrive; barrier.cluster.wait; }
thread B @ cta 1, cluster 0 { mov.u32 %r, 0; }
~exists hang
"""
    assert "mov.u32 %r, 0; barrier.cluster.arrive;" in fix("skips", text, MODELS, OPTIONS).repairs[0].new


def test_data_that_is_made_strong_comes_last() -> None:
    """The lock's fence is too narrow; relaxed stores would cost less, and leave the lock as it is."""
    lock = "S: atom.acquire.gpu.global.cas.b32 %t, [l], 0, 1;\nsetp.ne.u32 %p, %t, 0;\n@%p bra S;"
    body = f"{lock}\nst.global.u32 [x], 1;\nfence.acq_rel.cta;\nst.relaxed.gpu.global.u32 [l], 0;"
    text = twice(body, "~exists race", ".global .u32 x;\n.global .u32 l;")
    first, *_, last = fix("lock", text, MODELS, OPTIONS, most=6).repairs
    assert first.new.count("release.gpu") == 2 and "st.relaxed.gpu.global.u32 [x]" in last.new
    assert first.cost > last.cost


@pytest.mark.parametrize(
    "body",
    [
        "ld.relaxed.gpu.global.u32 %a, [x];\nmul.lo.u32 %b, %a, 2;\nst.relaxed.gpu.global.u32 [x], %b;",
        "ld.relaxed.gpu.global.u32 %a, [x];\nadd.u32 %b, %a, 1;\nadd.u32 %b, %b, 1;\n"
        "st.relaxed.gpu.global.u32 [x], %b;",
        "ld.relaxed.gpu.global.u32 %a, [x];\nfence.sc.gpu;\nst.relaxed.gpu.global.u32 [x], 1;",
        "ld.relaxed.gpu.global.u32 %a, [x];\nst.release.gpu.global.u32 [y], 1;\nst.relaxed.gpu.global.u32 [x], 1;",
        "ld.relaxed.gpu.global.u32 %a, [x];\nst.relaxed.gpu.global.u32 [z], 1;\nst.relaxed.gpu.global.u32 [x], 1;",
        "ld.relaxed.gpu.global.u32 %a, [x];\nL: st.relaxed.gpu.global.u32 [x], 1;",
        "ld.relaxed.gpu.global.u32 %a, [x];\nsetp.ne.u32 %p, %a, 0;\n@!%p bra OUT;\nst.relaxed.gpu.global.u32 [x], 1;\n"
        "OUT: mov.u32 %end, 0;",
    ],
)
def test_what_no_atomic_does(body: str) -> None:
    declared = ".global .u32 x = 0;\n.global .u32 y = 0;\nz aliases x;"
    assert not list(one_atomic(api.lowered(Source("one", twice(body, "~exists (x == 9)", declared)))))


GROUPS = """PTX groups
.global .align 16 .u32 g[8];
.shared .align 16 .u32 s[8];
thread A @ cta 0 {
    cp.async.cg.shared.global [s], [g], 16;
    cp.async.commit_group;
    cp.async.cg.shared.global [s+16], [g+16], 16;
    cp.async.commit_group;
    cp.async.wait_group 1;
    ld.shared.u32 %a, [s];
}
~exists race
"""


def test_a_moved_commit_leaves_no_empty_group() -> None:
    moves = [
        edit for edit in replacements(api.lowered(Source("groups", GROUPS))) if "move cp.async.commit" in edit.what
    ]
    texts = [" ".join(apply(GROUPS, (edit,)).split()) for edit in moves]
    assert texts and not any("commit_group; cp.async.commit_group" in text for text in texts)


def test_two_counts_at_one_barrier_are_two_barriers() -> None:
    text = """PTX counts
thread A @ cta 0 { bar.sync 1, 64; bar.sync 1, 96; }
thread B @ cta 0 { bar.sync 1, 64; bar.sync 1, 96; }
thread C @ cta 0 { bar.sync 1, 96; }
~exists undefined
"""
    texts = [apply(text, (edit,)) for edit in replacements(api.lowered(Source("counts", text)))]
    assert any(new.count("bar.sync 2, 64;") == 2 and new.count("bar.sync 1, 96;") == 3 for new in texts)


def test_weaken_drops_a_fence_between_two_matrix_operations_on_the_same_registers() -> None:
    mma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %a, %b, 1, 1, 1, 0, 0;"
    text = f"""PTX two
.shared .align 16 .u32 sa[4] = {{2}};
.shared .align 16 .u32 sb[4] = {{3}};
thread W @ cta 0 {{
    mov.u64 %a, sa; mov.u64 %b, sb;
    wgmma.fence.sync.aligned;
    {mma}
    wgmma.fence.sync.aligned;
    {mma}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
}}
~exists undefined
"""
    weaker = weaken("two", text, MODELS, OPTIONS)
    assert weaker.best and [change.start for change in weaker.changes] == [text.rindex("    wgmma.fence")]


def test_of_two_forms_of_one_cost_the_plain_one_is_taken() -> None:
    text = """PTX one
.shared .u32 d;
.shared .u32 f;
thread A @ cta 0 { st.shared.u32 [d], 1; fence.acq_rel.cluster; st.relaxed.cta.shared.u32 [f], 1; }
thread B @ cta 0 {
S:  ld.acquire.cta.shared.u32 %t, [f];
    setp.eq.u32 %p, %t, 0;
    @%p bra S;
    ld.shared.u32 %r, [d];
}
~exists (B:r != 1)
"""
    assert "fence.release.cta;" in weaken("one", text, MODELS, OPTIONS).new


HANDED_BACK = """PTX back
.shared .align 16 .u32 s[4] = {1};
.global .align 16 .u32 g[4] = {2};
.shared .align 8 .b64 full = mbarrier(1);
.shared .align 8 .b64 empty = mbarrier(1);
thread C @ cta 0, gpu 0 {
    ld.shared.u32 %a, [s];
    fence.proxy.async;
    mbarrier.arrive.shared::cta.b64 _, [empty];
}
thread P @ cta 0, gpu 0 {
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], 0;
    @!%p bra W;
    mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];
}
~exists (C:a == 2)
"""


def test_weaken_puts_halves_for_a_proxy_fence_that_hands_back() -> None:
    weaker = weaken("back", HANDED_BACK, MODELS, OPTIONS)
    assert (
        "release.sync_restrict::shared::cluster::read.cluster" in weaker.new and "fence.proxy.async;" not in weaker.new
    )
    assert "for an older PTX fence.proxy.async.shared::cta" in weaker.changes[0].what and weaker.version == "9.4"


def test_a_lost_update_is_not_mended_by_a_flag() -> None:
    """Neither thread is to come first."""
    new = fix(
        "pushed", PUSHED.replace("[n]", "[%n]").replace("ld.relaxed", "mov.u64 %n, n;\nld.relaxed"), MODELS, OPTIONS
    )
    assert "atom.relaxed.gpu.global.exch.b32" in new.repairs[0].new and "done" not in new.repairs[0].new


def test_a_warp_alone_at_a_barrier_is_no_repair() -> None:
    """P and C wait for each other first; a count of one warp would let either go on without the other."""
    text = """PTX turns
.shared .u32 s = 0;
thread P @ cta 0, gpu 0 { bar.sync 2, 64; st.shared.u32 [s], 1; bar.arrive 1, 64; }
thread C @ cta 0, gpu 0 { bar.sync 1, 64; ld.shared.u32 %r, [s]; bar.arrive 2, 64; }
~exists hang
"""
    repairs = fix("turns", text, MODELS, OPTIONS).repairs
    assert repairs and not any(", 32;" in repair.new for repair in repairs)


def test_order_within_a_lock_comes_before_an_atomic_in_place_of_what_it_guards() -> None:
    lock = "fence.acq_rel.gpu;\nS: atom.relaxed.gpu.global.cas.b32 %t, [l], 0, 1;\nsetp.ne.u32 %p, %t, 0;\n@%p bra S;"
    body = (
        f"{lock}\nld.global.u32 %c, [x];\nadd.u32 %c, %c, 1;\nst.global.u32 [x], %c;\nst.release.gpu.global.u32 [l], 0;"
    )
    text = twice(body, "~exists (x == 1)", ".global .u32 x = 0;\n.global .u32 l = 0;")
    first, *_ = fix("lock", text, MODELS, OPTIONS).repairs
    assert first.new.count("atom.acquire.gpu.global.cas") == 2


def test_a_load_moves_behind_a_loop_in_place_of_a_second_flag() -> None:
    text = """PTX early
.global .u32 d = 0;
.global .u32 f = 0;
thread A @ cta 0, gpu 0 { st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1; }
thread B @ cta 1, gpu 0 {
    ld.global.u32 %r, [d];
S:
    ld.acquire.gpu.global.u32 %t, [f];
    setp.eq.u32 %p, %t, 0;
    @%p bra S;
    mov.u32 %x, %r;
}
~exists (B:x != 1)
"""
    new = fix("early", text, MODELS, OPTIONS).repairs[0].new
    assert "done" not in new and new.index("bra S;") < new.index("ld.global.u32 %r, [d]") < new.index("mov.u32 %x, %r")


def test_threads_that_have_a_flag_get_no_second_one() -> None:
    """B goes on after the first of two arrivals; A is not to wait until B has read."""
    store = "{{ st.global.u32 [{}], 1; red.release.gpu.global.add.u32 [n], 1; }}"
    text = f"""PTX two
.global .u32 d = 0;
.global .u32 e = 0;
.global .u32 n = 0;
thread A @ cta 0, gpu 0 {store.format("d")}
thread C @ cta 2, gpu 0 {store.format("e")}
thread B @ cta 1, gpu 0 {{
S:
    ld.acquire.gpu.global.u32 %t, [n];
    setp.eq.u32 %p, %t, 0;
    @%p bra S;
    ld.global.u32 %r, [d];
    ld.global.u32 %q, [e];
}}
~exists (B:q != 1)
"""
    assert not any("done" in repair.new for repair in fix("two", text, MODELS, OPTIONS).repairs)


FOUR = """PTX four
.global .align 16 .u32 d[4];
thread A @ cta 0 { st.relaxed.gpu.global.v4.u32 [d], {1, 2, 3, 1}; }
thread B @ cta 1 { ld.relaxed.gpu.global.v4.u32 {%a, %b, %c, %v}, [d]; }
~exists (B:v == 1 /\\ B:a == 0)
"""


def test_four_elements_become_128_bits() -> None:
    """Each half of the 128 bits has two of the elements, the first one in its lower bits."""
    (edit, *_) = one_access(api.lowered(Source("t", FOUR)))
    new = apply(FOUR, (edit,))
    assert "mov.b128 {%pair0low, %pair0high}, %pair0; mov.b64 {%a, %b}, %pair0low;" in new
    assert fix("t", new, MODELS, Options()).wrong == ()
