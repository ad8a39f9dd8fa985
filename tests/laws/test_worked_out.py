"""Small programs whose answers are worked out by hand from the pages; both engines give them.

Each comes with a sibling that differs in one word and has the other answer, or with values that only one rule gives.
"""

from __future__ import annotations

import pytest
from helpers.agreement import agree

from memmodel.answer import Observation
from memmodel.cat import load_model, parse_model
from memmodel.source import Source

NEVER, ALWAYS, SOMETIMES = Observation.NEVER, Observation.ALWAYS, Observation.SOMETIMES
PLACES = ("cta 0, cluster 0, gpu 0", "cta 1, cluster 0, gpu 0", "cta 2, cluster 1, gpu 0")


def answered(declared: str, question: str, *bodies: str) -> Observation:
    """What happens to a condition; thread k is in the CTA of `PLACES[k]`."""
    threads = "".join(f"thread P{k} @ {PLACES[k]} {{\n{body}\n}}\n" for k, body in enumerate(bodies))
    return agree(f"PTX sample\n{declared}\n{threads}exists ({question})\n", load_model("ptx-9.4")).observation


# ---- tickets: what an atomic returns is computed with, and becomes an address ----------------------------------------

TICKETS = ".global .u32 next = 0;\n.global .u32 slot[8];"


def taken(compute: str) -> str:
    return f"""
    atom.relaxed.gpu.global.add.u32 %ticket, [next], 1;
    {compute}
    mov.u64 %place, slot;
    add.u64 %place, %place, %offset;
    st.relaxed.gpu.global.u32 [%place], 1;"""


@pytest.mark.parametrize(
    ("compute", "second"),
    [
        ("mul.wide.u32 %offset, %ticket, 4;", 1),
        ("shl.b32 %offset, %ticket, 2;", 1),
        ("rem.u32 %offset, %ticket, 2; mul.wide.u32 %offset, %offset, 4;", 1),
        ("bfe.u32 %offset, %ticket, 0, 1; mul.wide.u32 %offset, %offset, 4;", 1),
        ("mov.u32 %offset, 2; shl.b32 %offset, %offset, %ticket; mul.wide.u32 %offset, %offset, 4;", 4),
        ("lop3.b32 %offset, %ticket, %ticket, %ticket, 0x80; mul.wide.u32 %offset, %offset, 4;", 1),
    ],
)
def test_each_ticket_has_a_slot(compute: str, second: int) -> None:
    bodies = (taken(compute),) * 2
    first = 2 if "mov.u32 %offset, 2" in compute else 0
    assert answered(TICKETS, f"next == 2 /\\ slot[{first}] == 1 /\\ slot[{second}] == 1", *bodies) is ALWAYS


def test_a_counter_that_is_also_added_to() -> None:
    """inc to 9 of 10 is 0; of 0 it is 1, and then 11."""
    bodies = ("atom.global.inc.u32 %r, [next], 9;", "atom.global.add.u32 %r, [next], 10;")
    assert answered(TICKETS, "next == 0 \\/ next == 11", *bodies) is ALWAYS
    assert answered(TICKETS, "next == 0", *bodies) is SOMETIMES
    assert answered(TICKETS, "P0:r == 11", *bodies) is NEVER


# ---- reports and layouts of mbarrier objects ("mbarrier.test_wait / mbarrier.try_wait", "mbarrier.pending_count") ----


def test_nothing_is_reported_of_a_phase_that_asynchronous_copies_end() -> None:
    declared = ".shared .align 8 .b64 bar = mbarrier(5);"
    body = """
    mbarrier.arrive.noComplete.b64 %state, [bar], 2;
    mbarrier.pending_count.layout::v0.b64 %count, %state;
    mbarrier.try_wait.parity.phase_type::primary.b64 %p|%q, %value, [bar], 1, 100;
    mbarrier.test_wait.parity.phase_type::primary.b64 %no|_, _, [bar], 0;"""
    known = "P0:count == 5 /\\ P0:p == 1 /\\ P0:q == 0 /\\ P0:value == 0 /\\ P0:no == 0"
    assert answered(declared, known, body) is ALWAYS


# ---- predicates and saturation ("setp", "set", "slct", "add", "cvt") -------------------------------------------------

NUMBERS = ".global .u32 six = 6;"
READ = "ld.global.u32 %a, [six]; mov.u32 %b, 3; mov.pred %yes, 1; mov.pred %no, 0;"


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("setp.gt.u32 %p|%q, %a, %b;", "P0:p == 1 /\\ P0:q == 0"),
        ("setp.gt.and.u32 %p|%q, %a, %b, %no;", "P0:p == 0 /\\ P0:q == 0"),
        ("setp.lt.or.s32 %p|%q, %a, %b, %yes;", "P0:p == 1 /\\ P0:q == 1"),
        ("setp.gt.xor.s32 %p|_, %a, %b, !%no;", "P0:p == 0"),
        ("setp.gt.and.u32 %yes|%no, %a, %b, !%no;", "P0:yes == 1 /\\ P0:no == 0"),
        ("setp.lt.and.u32 %yes|%no, %a, %b, %yes;", "P0:yes == 0 /\\ P0:no == 1"),
        ("setp.hi.u32 %p, -1, %a; setp.ls.u32 %q, -1, %a;", "P0:p == 1 /\\ P0:q == 0"),
        ("set.gt.u32.u32 %p, %a, %b; set.le.and.s32.s32 %q, -1, %a, %yes;", "P0:p == 0xffffffff /\\ P0:q == -1"),
        ("slct.u32.s32 %p, %a, %b, -1; slct.u32.s32 %q, %a, %b, 0;", "P0:p == 3 /\\ P0:q == 6"),
        (
            "add.sat.s32 %p, %a, 0x7fffffff; sub.sat.s32 %q, 0x80000000, %a;",
            "P0:p == 0x7fffffff /\\ P0:q == -2147483648",
        ),
        ("cvt.sat.u8.s32 %p, -5; cvt.sat.s8.s32 %q, 300;", "P0:p == 0 /\\ P0:q == 127"),
        ("cvt.sat.s8.u64 %p, -1; cvt.sat.u32.s64 %q, 0x100000000;", "P0:p == 127 /\\ P0:q == 0xffffffff"),
        ("sub.u32 %c, %b, %a; cvt.sat.u16.s32 %p, %c; cvt.sat.u16.u32 %q, %c;", "P0:p == 0 /\\ P0:q == 0xffff"),
    ],
)
def test_what_a_predicate_or_a_bound_gives(body: str, known: str) -> None:
    assert answered(NUMBERS, known, READ + body) is ALWAYS


# ---- wgmma.mma_async.sp: half of A is stored -------------------------------------------------------------------------

SPARSE = """
    mov.u64 %da, a;
    mov.u64 %db, b;
    wgmma.fence.sync.aligned;
    wgmma.mma_async{form} {{%d0, %d1, %d2, %d3}}, %da, %db, {more}0, 1, 1, 0, 0;
    {between}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    {after}"""
TILES = ".shared .align 16 .b32 a[1024] = {2};\n.shared .align 16 .b32 b[512] = {3};"


@pytest.mark.parametrize(
    ("form", "more", "kept"),
    [
        # 64 rows of 16 elements of 2 bytes: words 0 to 511 are read; of a dense A with 32 columns, twice as many.
        (".sp.sync.aligned.m64n8k32.f32.f16.f16", "%meta, 0, ", 511),
        (".sync.aligned.m64n8k16.f32.f16.f16", "", 511),
    ],
)
def test_what_a_sparse_matrix_is_read_from(form: str, more: str, kept: int) -> None:
    def asked(question: str, between: str = "", after: str = "") -> Observation:
        body = SPARSE.format(form=form, more=more, between=between, after=after)
        return answered(TILES, question, body)

    assert asked("P0:d0 == 6") is ALWAYS
    for word, known in ((kept, SOMETIMES), (kept + 1, NEVER)):
        assert asked("P0:d0 != 6", f"st.shared.u32 [a+{4 * word}], 1;") is known
    assert asked("P0:d0 != 6", after="st.shared.u32 [a], 5;") is NEVER


def test_an_element_of_a_matrix_is_no_more_than_its_bytes() -> None:
    body = SPARSE.format(form=".sync.aligned.m64n8k16.f32.f16.f16", more="", between="", after="")
    assert answered(TILES.replace(".b32 a[1024] = {2}", ".b16 a[2048] = {2, 1}"), "P0:d0 == 9", body) is ALWAYS


# ---- a condition of a write ------------------------------------------------------------------------------------------

CAS = """
    ld.relaxed.gpu.global.u32 %r0, [x];
    atom.relaxed.gpu.global.cas.b32 %r2, [y], {compared}, {new};"""


@pytest.mark.parametrize(("compared", "new", "depends"), [("%r0", "1", True), ("0", "%r0", True), ("0", "1", False)])
def test_whether_a_cas_writes_depends_on_what_it_compares_with(compared: str, new: str, depends: bool) -> None:
    """Whether it writes, and what, are data of the write, not of the read."""
    text = f"PTX cas\n.global .u32 x;\n.global .u32 y;\nthread P0 {{{CAS.format(compared=compared, new=new)}\n}}\n"
    model = parse_model(
        Source("m.cat", "flag ~empty data \\ rmw as from-the-load\nflag ~empty data ; [R] as of-a-read\n")
    )
    assert set(agree(f"{text}exists (true)\n", model).flags) == ({"from-the-load"} if depends else set())


# ---- where the answer rests on one condition of an engine ------------------------------------------------------------


def test_a_vector_is_torn_where_nothing_else_tells_its_scalars_apart() -> None:
    bodies = "st.weak.global.v2.u32 [x], {1, 1};", "ld.weak.global.v2.u32 {%r0, %r1}, [x];"
    assert answered(".global .align 8 .u32 x[2];", "P1:r0 == 1 /\\ P1:r1 == 0", *bodies) is SOMETIMES


def of_grids(question: str, *bodies: str) -> Observation:
    """Each body is a thread of one CTA of grid 0; the last one is grid 1."""
    threads = "".join(
        f"thread P{k} @ cta 0, grid {int(k == len(bodies) - 1)} {{\n{body}\n}}\n" for k, body in enumerate(bodies)
    )
    text = f"PTX grids\n.global .u32 x;\n.global .u32 y;\n{threads}exists ({question})\n"
    return agree(text, load_model("ptx-9.4")).observation


@pytest.mark.parametrize(
    ("before", "stale"), [("", SOMETIMES), ("st.relaxed.gpu.u32 [x], 1; fence.release.gpu;", NEVER)]
)
def test_the_first_launch_of_a_cta_is_by_any_of_its_threads(before: str, stale: Observation) -> None:
    """Also by one whose text has more instructions before it."""
    launch = "griddepcontrol.launch_dependents;"
    first = f"st.relaxed.gpu.u32 [x], 1; fence.release.gpu; {launch}"
    longer = f"{'ld.relaxed.gpu.u32 %r, [y]; ' * 5}{before} {launch}"
    assert of_grids("P2:r == 0", first, longer, "ld.relaxed.gpu.u32 %r, [x];") is stale


def test_an_object_that_is_initialised_again_has_states_of_its_second_life() -> None:
    body = """
    mbarrier.arrive.shared.b64 _, [bar];
    mbarrier.inval.shared.b64 [bar];
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.shared.b64 %s, [bar];
    mbarrier.test_wait.shared.b64 %p, [bar], %s;"""
    assert answered(".shared .align 8 .b64 bar = mbarrier(1);", "P0:p == 1", body) is ALWAYS


def test_a_dependency_under_a_condition_is_one_where_the_condition_holds() -> None:
    """If P0 moves what it read, nothing gives the 1; else it stores a 1 of its own."""
    first = """
    ld.relaxed.gpu.u32 %c, [f]; setp.eq.u32 %p, %c, 1;
    ld.relaxed.gpu.u32 %r0, [x]; mov.u32 %r1, 1; @%p mov.u32 %r1, %r0;
    st.relaxed.gpu.u32 [y], %r1;"""
    second = "ld.relaxed.gpu.u32 %r2, [y]; st.relaxed.gpu.u32 [x], %r2;"
    declared = ".global .u32 f;\n.global .u32 x;\n.global .u32 y;"
    for condition, known in ((1, NEVER), (0, SOMETIMES)):
        question = f"P0:c == {condition} /\\ P0:r0 == 1"
        assert answered(declared, question, first, second, "st.relaxed.gpu.u32 [f], 1;") is known


def test_a_value_has_another_support_although_nothing_new_is_written() -> None:
    """A 1 in y comes behind what P0 reads in x, and later from c too: only then may P1 copy it to x."""
    copied = "ld.relaxed.gpu.u32 %r, [{}]; st.relaxed.gpu.u32 [{}], %r;"
    told = "ld.relaxed.gpu.u32 %r, [{}]; setp.eq.u32 %p, %r, {}; @%p st.relaxed.gpu.u32 [y], 1;"
    bodies = [told.format("x", 2), copied.format("y", "x"), told.format("c", 1), "st.relaxed.gpu.u32 [y], 2;"]
    bodies += [copied.format("b", "c"), copied.format("a", "b"), "st.relaxed.gpu.u32 [a], 1;"]
    threads = "".join(f"thread P{k} @ cta {k} {{\n{body}\n}}\n" for k, body in enumerate(bodies))
    declared = "".join(f".global .u32 {name};\n" for name in "xyabc")
    text = f"PTX support\n{declared}{threads}exists (P0:r == 1)\n"
    assert agree(text, load_model("ptx-9.4")).observation is SOMETIMES


@pytest.mark.parametrize(("arrives", "told"), [(True, {"reported", "clear"}), (False, set())])
def test_only_a_test_that_succeeds_reports(arrives: bool, told: set[str]) -> None:
    """Here no axiom says which of the two it reports."""
    text = f"""PTX report
    .global .align 16 .u32 data[4];
    e @ fabric aliases data;
    .shared .align 16 .u32 src[4]; .shared .align 8 .b64 bar = mbarrier(1);
    thread P0 @ cta 0 {{
        fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.b128
            [e, 0], [src], 16, [bar];
        fabric.submit;
        {"mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [bar], 1;" if arrives else ""}
        mbarrier.test_wait.parity.phase_type::primary.acquire.cta.shared::cta.b64 %done|%failed, [bar], 0;
    }}
    exists (true)"""
    model = parse_model(Source("m.cat", "flag ~empty MBREPORT as reported\nflag ~empty MBCLEAR as clear\n"))
    assert set(agree(text, model).flags) == told


def test_each_race_of_executions_that_hang_is_found() -> None:
    """Also where there are executions of all three kinds: in which the condition holds, does not, and that hang."""
    text = """PTX races
    .global .u32 f; .global .u32 y; .global .u32 a; .global .u32 b;
    thread P0 @ cta 0 {
        ld.relaxed.gpu.u32 %r, [f]; setp.eq.u32 %p, %r, 1;
        @%p st.weak.u32 [a], 2; @%p st.weak.u32 [b], 2; @%p bar.sync 1, 64;
    }
    thread P1 @ cta 1 { st.relaxed.gpu.u32 [f], 1; st.relaxed.gpu.u32 [y], 1; }
    thread P2 @ cta 2 {
        ld.relaxed.gpu.u32 %y, [y]; setp.eq.u32 %s, %y, 0;
        @%s st.weak.u32 [a], 1; @!%s st.weak.u32 [b], 1;
    }
    exists (P2:y == 1)"""
    assert sorted(agree(text, load_model("ptx-9.4")).flags) == ["data-race", "hang"]


def test_only_an_axiom_refuses_a_number_that_nothing_writes() -> None:
    """The number of the condition is tried, so that the answer names the axiom, and without that it comes out."""
    threads = "".join(
        f"thread P{k} @ cta {k} {{ ld.relaxed.gpu.u32 %r, [{a}]; st.relaxed.gpu.u32 [{b}], %r; }}\n"
        for k, (a, b) in enumerate(("xy", "yx"))
    )
    text, model = f"PTX air\n.global .u32 x;\n.global .u32 y;\n{threads}exists (P0:r == 5)\n", load_model("ptx-9.4")
    found = agree(text, model)
    assert (found.observation, found.axioms) == (NEVER, ("No-Thin-Air",))
    assert agree(text, model.without("No-Thin-Air")).observation is SOMETIMES


def test_engines_agree_on_a_test_before_an_inval_of_its_thread_and_a_new_life() -> None:
    """What a test that yields 0 sees is not ordered, so both let it see the life that begins later."""
    first = """
    mbarrier.test_wait.parity.shared.b64 %p, [bar], 1;
    mbarrier.inval.shared.b64 [bar];
    st.release.cta.shared.u32 [f], 1;"""
    second = """
    ld.acquire.cta.shared.u32 %r, [f]; setp.eq.u32 %q, %r, 1;
    @%q mbarrier.init.shared.b64 [bar], 1;
    @%q mbarrier.arrive.shared.b64 _, [bar];"""
    threads = "".join(f"thread P{k} @ cta 0 {{{body}\n}}\n" for k, body in enumerate((first, second)))
    assert not judged(f".shared .align 8 .b64 bar = mbarrier(1);\n.shared .u32 f;\n{threads}")


def judged(text: str) -> set[str]:
    """The flags of a test on which both engines agree."""
    return set(agree(f"PTX flags\n{text}\nexists (true)\n", load_model("ptx-9.4")).flags)


def test_a_wait_in_front_of_every_arrival_hangs() -> None:
    """All threads do the same, as where none is left waiting."""
    turned = "barrier.cluster.wait; barrier.cluster.arrive;"
    threads = "".join(f"thread P{k} @ cta {k}, cluster 0 {{ {turned} }}\n" for k in range(2))
    assert judged(threads) == {"hang"}


@pytest.mark.parametrize("second", ["bar.sync 1, 64;", "bar.arrive 1, 64;"])
def test_arrivals_with_and_without_a_count_are_undefined(second: str) -> None:
    threads = f"thread P0 @ cta 0 {{ bar.sync 1; }}\nthread P1 @ cta 0 {{ {second} }}"
    assert judged(threads) == {"undefined-barrier"}


def test_a_tensor_map_that_a_copy_reads_may_lead_nowhere() -> None:
    """Where the copy writes is known beforehand, what it reads only when it has read the map."""
    text = """
    .global .align 16 .u32 g[4]; .shared .align 128 .u32 s[4]; .shared .align 8 .b64 bar = mbarrier(1);
    .global .align 128 .b8 map[128] = tensormap(g, {4}, {4});
    thread P0 @ cta 0 {
        tensormap.replace.tile.global_address.global.b1024.b64 [map], 64;
        fence.proxy.tensormap::generic.release.gpu;
        fence.proxy.tensormap::generic.acquire.gpu [map], 128;
        cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [s], [map, {0}], [bar];
    }"""
    assert judged(text) == {"undefined-address"}


def test_an_object_of_no_arrivals_is_undefined() -> None:
    """The count is a number of memory: what is written out is refused."""
    threads = """.shared .align 8 .b64 bar; .shared .u32 none = 0;
    thread P0 @ cta 0 { ld.shared.u32 %c, [none]; mbarrier.init.shared.b64 [bar], %c;
        mbarrier.arrive.shared.b64 %s, [bar]; }
    thread P1 @ cta 0 { mbarrier.arrive.shared.b64 %s, [bar]; }"""
    assert "undefined-instruction" in judged(threads)


# ---- a test of an mbarrier object, and an arrival behind it ("mbarrier", "Causality Order", "No Thin Air") -----------

OBJECT = """
.shared .align 8 .b64 bar = mbarrier({count}); .global .u32 flag = 0;
.shared .align 16 .u32 s[4]; .global .align 16 .u32 g[4];"""
MINE = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];"
ARRIVE = "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [bar@cta0];"

TESTS = """
    {before}
    mbarrier.{test}.parity.{sem}.cta.shared::cta.b64 %p, [bar], {parity};
    selp.u32 %r0, 1, 0, %p;
    {guard} st.{store}.gpu.global.u32 [flag], 1;"""

ARRIVES = """
    {ahead}
    ld.{load}.gpu.global.u32 %r0, [flag];
    setp.ne.u32 %q, %r0, 1;
    @%q bra END;
    {arrives}
    END:"""


def of_a_test(
    parity: int, yields: int, *, before: str = "", test: str = "test_wait", sem: str = "relaxed", guard: str = "",
    store: str = "release", ahead: str = "", load: str = "acquire", arrives: str = ARRIVE, count: int = 1,
) -> Observation:  # fmt: skip
    """Whether P0's test yields this where P1 reads the flag that P0 sets behind it, and then arrives."""
    first = TESTS.format(before=before, test=test, sem=sem, parity=parity, guard=guard, store=store)
    second = ARRIVES.format(ahead=ahead, load=load, arrives=arrives)
    return answered(OBJECT.format(count=count), f"P0:r0 == {yields} /\\ P1:r0 == 1", first, second)


@pytest.mark.parametrize("test", ["test_wait", "try_wait"])
@pytest.mark.parametrize("sem", ["acquire", "relaxed"])
@pytest.mark.parametrize(
    ("parity", "yields", "answer"), [(0, 1, NEVER), (1, 0, NEVER), (0, 0, SOMETIMES), (1, 1, SOMETIMES)]
)
def test_no_test_sees_an_arrival_behind_it(parity: int, yields: int, answer: Observation, sem: str, test: str) -> None:
    """Phase 0 is not over before the arrival: the test of its parity yields 0, and that of the phase before yields 1.

    All operations on one object have one order, which respects causality, whatever their semantics.
    """
    assert of_a_test(parity, yields, sem=sem, test=test) is answer


@pytest.mark.parametrize(("store", "load"), [("relaxed", "acquire"), ("release", "relaxed")])
@pytest.mark.parametrize("parity", [0, 1])
def test_a_test_may_see_an_arrival_that_nothing_puts_behind_it(parity: int, store: str, load: str) -> None:
    assert of_a_test(parity, 1 - parity, store=store, load=load) is SOMETIMES


@pytest.mark.parametrize(("load", "zero"), [("acquire", NEVER), ("relaxed", SOMETIMES)])
def test_a_phase_that_ended_before_a_test_is_hidden_by_the_next_one_only(load: str, zero: Observation) -> None:
    """Phase 0 is over before the test of parity 0, which then yields 0 where phase 1 is over as well: P1 ends that."""
    assert of_a_test(0, 0, before=MINE, load=load) is zero
    assert of_a_test(0, 1, before=MINE, load=load) is SOMETIMES


def test_an_arrival_ahead_of_the_flag_may_end_the_phase() -> None:
    """A phase of two, of which P0 makes one before its test."""
    assert of_a_test(1, 0, count=2, before=MINE, ahead=ARRIVE, arrives="") is SOMETIMES
    assert of_a_test(1, 0, count=2, before=MINE) is NEVER


COPY = """
    mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [bar@cta0], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s@cta0], [g], 16, [bar@cta0];"""


@pytest.mark.parametrize(("load", "zero"), [("acquire", NEVER), ("relaxed", SOMETIMES)])
def test_no_test_sees_the_end_of_a_copy_that_is_issued_behind_it(load: str, zero: Observation) -> None:
    assert of_a_test(1, 0, load=load, arrives=COPY) is zero


@pytest.mark.parametrize(("parity", "guard"), [(0, "@%p"), (1, "@!%p")])
def test_no_test_sees_an_arrival_that_its_answer_makes(parity: int, guard: str) -> None:
    """The flag is set where the test yields what it can yield only after the arrival that the flag makes."""
    assert of_a_test(parity, 1 - parity, store="relaxed", load="relaxed", guard=guard) is NEVER
    assert of_a_test(parity, 1 - parity, store="relaxed", load="relaxed") is SOMETIMES
