"""Memory is bytes: values put together from several writes, sizes that race, addresses that are computed or bad.

What must come out is worked out by hand, and asked of both engines. A first table has the shipped rows of litmus/bytes.
"""

from __future__ import annotations

import pytest
from helpers.agreement import agree
from helpers.examples import share

from memmodel import check
from memmodel.answer import Observation
from memmodel.base.resources import suite_dir
from memmodel.cat import load_model
from memmodel.report.report import Report

ENGINES = pytest.mark.parametrize("engine", ["z3", "enumerate"])
MIXED, RACE, HANG = "mixed-size-race", "data-race", "hang"

ROWS = {
    "B1": ("never", set()),  # the copy has written the last word
    "B1-value": ("always", set()),
    "B2-race": ("sometimes", {RACE, "undefined-unfinished-copy"}),
    "B3": ("never", set()),  # no word of any round is wrong, nothing races, nobody waits for ever
    "B3-no-proxy-fence": ("sometimes", {RACE}),
    "B3-bytes": ("sometimes", {HANG}),
    "B4": ("always", set()),
    "B5": ("undecided", {MIXED}),
    "B5-race": ("sometimes", {MIXED}),
    "B6": ("sometimes", set()),
    "B7": ("never", set()),
    "B7-half": ("always", set()),
    "B8": ("sometimes", {RACE, "undefined-address"}),
    "B9": ("vacuous", {HANG}),
    "B10": ("never", set()),
    "B10-flag-first": ("sometimes", {HANG, RACE}),  # P0 and P2 may be a generation before P1 arrives: the data races
    "B11": ("always", set()),
    "B12-all": ("vacuous", {RACE, HANG}),
    "B13": ("never", set()),
    "B14": ("sometimes", {RACE}),
}


@pytest.mark.share(2)
@ENGINES
@pytest.mark.parametrize("row", share(ROWS, 4))
def test_rows(row: str, engine: str) -> None:
    answer = check(suite_dir() / "bytes" / f"{row}.litmus", engine=engine).answer
    assert (answer.observation.value, set(answer.flags), answer.unsearched) == (*ROWS[row], "")


def ask(
    store: str,
    load: str,
    question: str,
    engine: str,
    declarations: str = ".global .align 16 .u32 x[4];",
    between: str = "",
) -> Report:
    """Two threads of a CTA: one stores, the other loads, with something in between in each."""
    text = f"""PTX bytes
{declarations}
thread P0 @ cta 0 {{
    {store}
    {between}
}}
thread P1 @ cta 0 {{
    {between}
    {load}
}}
{question}
"""
    return check(text, engine=engine)


BARRIER = "bar.sync 0;"

# ---- values --------------------------------------------------------------------------------------------------------

X8 = ".global .align 16 .b8 x[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};"
TOGETHER = {
    # lowest byte first
    "parts of a wide store": ("st.u64 [x], 0x1122334455667788;", "ld.u32 %r0, [x+4];", 0x11223344),
    "a byte of it": ("st.u64 [x], 0x1122334455667788;", "ld.u8 %r0, [x+1];", 0x77),
    "two bytes of it": ("st.u64 [x], 0x1122334455667788;", "ld.u16 %r0, [x+6];", 0x1122),
    "a byte in a word": ("st.u8 [x+1], 0xaa;", "ld.u32 %r0, [x];", 0x0302AA00),
    "bytes around it": ("st.u16 [x+2], 0xbbaa;", "ld.u64 %r0, [x];", 0x07060504BBAA0100),
    "a later store over half of it": (
        "st.u64 [x], 0x1122334455667788; st.u32 [x+4], 0xcafe;",
        "ld.u64 %r0, [x];",
        0x0000CAFE55667788,
    ),
    "a vector read as one": ("st.v2.u32 [x+8], {1, 2};", "ld.u64 %r0, [x+8];", 0x0000000200000001),
    "one written as a vector reads it": ("st.u64 [x+8], 0x0000000200000001;", "ld.v2.u32 {_, %r0}, [x+8];", 2),
    "only the bits of the type": ("st.u8 [x], 0x1ff;", "ld.u16 %r0, [x];", 0x01FF),
    "nothing of it": ("st.u32 [x+4], 0;", "ld.u32 %r0, [x+8];", 0x0B0A0908),
    "sixteen bytes": (
        "mov.b128 %q, {%rd0, %rd1}; st.b128 [x], %q;",
        "ld.b128 %q, [x]; mov.b128 {_, %r0}, %q;",
        0,
    ),
    "the sign of a byte": ("st.u32 [x], 0x8081;", "ld.s8 %r0, [x+1];", -128),
    "no sign of a byte": ("st.u32 [x], 0x8081;", "ld.u8 %r0, [x+1];", 128),
    "the sign of two bytes": ("st.u32 [x], 0x8081;", "ld.s16 %r0, [x];", 0x8081 - 0x10000),
    "an atomic on half of it": ("st.u64 [x], 0xffffffff;", "atom.add.u32 %r1, [x], 1; ld.u64 %r0, [x];", 0),
    "a copy of it": (
        "st.v4.u32 [x], {1, 2, 3, 4};",
        "cp.async.ca.shared.global [s], [x+8], 8; cp.async.wait_all; ld.shared.u32 %r0, [s+4];",
        4,
    ),
}


@ENGINES
@pytest.mark.parametrize("name", TOGETHER)
def test_a_value_has_each_byte_from_its_own_write(name: str, engine: str) -> None:
    store, load, value = TOGETHER[name]
    declarations = f"{X8}\n.shared .align 16 .b8 s[16];"
    report = ask(store, load, f"forall (P1:r0 == {value})", engine, declarations, BARRIER)
    assert (report.answer.observation, report.answer.flags) == (Observation.ALWAYS, ())


@ENGINES
@pytest.mark.parametrize(
    ("store", "condition"),
    [
        ("st.u64 [x], 0x0000000200000001;", "x[0] == 1 /\\ x[1] == 2"),
        ("st.u8 [x+5], 3;", "x[1] == 0x300"),
        ("st.u16 [x+6], 0xffff; st.u8 [x+6], 0;", "x[1] == 0xff000000"),
    ],
)
def test_a_condition_reads_the_elements_as_declared(store: str, condition: str, engine: str) -> None:
    report = ask(store, "ld.u64 %r9, [x+8];", f"forall ({condition})", engine)
    assert (report.answer.observation, report.answer.flags) == (Observation.ALWAYS, ())


@ENGINES
def test_a_racing_load_may_see_some_of_several_stores(engine: str) -> None:
    """Of two bytes that are stored one after the other, a weak load of both may see either, and the race is mixed."""
    stores, load = "st.relaxed.cta.u8 [x], 1; st.relaxed.cta.u8 [x+1], 1;", "ld.u16 %r0, [x];"
    assert ask(stores, load, "exists (P1:r0 == 256)", engine).answer.observation is Observation.UNDECIDED
    loads = "ld.relaxed.cta.u8 %r0, [x+1]; ld.relaxed.cta.u8 %r1, [x];"
    strong = ask(stores, loads, "exists (P1:r0 == 1 /\\ P1:r1 == 0)", engine)
    assert (strong.answer.observation, strong.answer.flags) == (Observation.SOMETIMES, ())


# ---- sizes that race -----------------------------------------------------------------------------------------------


@pytest.mark.share(3)
@ENGINES
@pytest.mark.parametrize(
    "store",
    [
        "st.u64 [x], 1;",
        "st.u16 [x], 1;",
        "st.u16 [x+2], 1;",
        "st.u8 [x+3], 1;",
        "st.v2.u64 [x], {1, 1};",
        "st.relaxed.cta.u64 [x], 1;",
        "atom.add.u64 %r9, [x], 1;",
    ],
)
@pytest.mark.parametrize("load", ["ld.u32 %r0, [x];", "ld.relaxed.cta.u32 %r0, [x];", "ld.v2.u32 {%r0, _}, [x];"])
def test_a_race_between_sizes_leaves_every_outcome_open(store: str, load: str, engine: str) -> None:
    for question in ("exists (P1:r0 == 1)", "~exists (P1:r0 == 1)", "forall (P0:r7 == 0)"):
        report = ask(store, load, question, engine)
        assert report.answer.observation is Observation.UNDECIDED and report.holds is None
        assert report.answer.flags == (MIXED,)
        assert "accesses of different sizes race" in report.answer.reason
    assert ask(store, load, "exists race", engine).holds is True
    assert ask(store, load, "~exists race", engine).holds is False
    assert ask(store, load, "exists hang", engine).holds is False


@ENGINES
@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("st.v2.u32 [x], {1, 1};", "ld.u32 %r0, [x];"),  # an element of a vector is a scalar of its own
        ("st.v4.u32 [x], {1, 1, 1, 1};", "ld.v2.u32 {%r0, _}, [x];"),
        ("st.b32 [x], 1;", "ld.u32 %r0, [x];"),
    ],
)
def test_equal_sizes_race_without_more(store: str, load: str, engine: str) -> None:
    report = ask(store, load, "exists (P1:r0 == 1)", engine)
    assert (report.answer.observation, report.answer.flags) == (Observation.SOMETIMES, (RACE,))
    strong = ask(store.replace("st.", "st.relaxed.cta."), load.replace("ld.", "ld.relaxed.cta."), "exists race", engine)
    assert strong.holds is False


@ENGINES
def test_a_scalar_of_16_bytes_is_no_vector(engine: str) -> None:
    vector = "st.relaxed.cta.v2.b64 [x], {1, 1};"
    assert ask(vector, "ld.relaxed.cta.b128 %q, [x];", "exists race", engine).answer.flags == (MIXED,)
    assert ask(vector, "ld.relaxed.cta.v2.u64 {%r0, %r1}, [x];", "exists race", engine).answer.flags == ()
    whole = "mov.b128 %q, {1, 1}; st.relaxed.cta.b128 [x], %q;"
    load = "ld.relaxed.cta.b128 %q, [x]; mov.b128 {%r0, %r1}, %q;"
    report = ask(whole, load, "exists (P1:r0 == 1 /\\ P1:r1 == 0)", engine)
    assert (report.answer.observation, report.answer.flags) == (Observation.NEVER, ())


@ENGINES
@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("st.u8 [x+1], 1;", "ld.u8 %r0, [x+2];"),
        ("st.u64 [x+8], 1;", "ld.u32 %r0, [x];"),
        ("st.u16 [x], 1;", "ld.u16 %r0, [x+2];"),
    ],
)
def test_bytes_of_their_own_do_not_race(store: str, load: str, engine: str) -> None:
    report = ask(store, load, "exists (P1:r0 == 1)", engine)
    assert (report.answer.observation, report.answer.flags) == (Observation.NEVER, ())


@ENGINES
@pytest.mark.parametrize("between", [BARRIER, "fence.sc.cta; bar.sync 1; fence.sc.cta;"])
def test_sizes_in_order_are_ordinary(between: str, engine: str) -> None:
    report = ask("st.u64 [x], 0x500000007;", "ld.u32 %r0, [x+4];", "forall (P1:r0 == 5)", engine, between=between)
    assert (report.answer.observation, report.answer.flags) == (Observation.ALWAYS, ())


SYNCHRONIZED = """PTX synchronized
.global .align 8 .u32 x[2];
.global .u32 flag;
thread P0 @ cta 0 {{
    st.global.u64 [x], 0x500000007;
    st.{0}.gpu.global.u32 [flag], 1;
}}
thread P1 @ cta 1 {{
    ld.acquire.gpu.global.u32 %f, [flag];
    setp.eq.u32 %p, %f, 1;
    @%p ld.global.u32 %r0, [x+4];
}}
exists (P1:f == 1 /\\ P1:r0 != 5)
"""


@ENGINES
@pytest.mark.parametrize(
    ("semantics", "observation", "flags"),
    [("release", Observation.NEVER, ()), ("relaxed", Observation.UNDECIDED, (MIXED,))],
)
def test_sizes_that_a_flag_orders(semantics: str, observation: Observation, flags: object, engine: str) -> None:
    answer = check(SYNCHRONIZED.format(semantics), engine=engine).answer
    assert (answer.observation, answer.flags) == (observation, flags)


ELSEWHERE = """PTX elsewhere
.global .align 8 .u32 x[2];
.global .u32 y;
thread P0 @ cta 0 {
    st.global.u64 [x], 1;
    st.relaxed.gpu.global.u32 [y], 1;
}
thread P1 @ cta 1 {
    ld.relaxed.gpu.global.u32 %r1, [y];
    setp.eq.u32 %p, %r1, 1;
    @!%p bra OUT;
    ld.global.u32 %r0, [x];
OUT:
}
exists (P1:r1 == 0)
"""


@ENGINES
def test_a_race_between_sizes_in_any_execution_leaves_the_whole_program_open(engine: str) -> None:
    """The executions with r1 == 0 do not race; of a program that contains such a race the model says nothing."""
    answer = check(ELSEWHERE, engine=engine).answer
    assert (answer.observation, answer.flags) == (Observation.UNDECIDED, (MIXED,))


@ENGINES
@pytest.mark.parametrize(
    "load", ["ld.shared.u8 %r0, [s+5];", "ld.shared.u32 %r0, [s+4];", "ld.shared.v2.u64 {%r0, %r1}, [s];"]
)
def test_a_weak_copy_has_no_size_of_its_own(load: str, engine: str) -> None:
    """It counts as the pieces that the other access has: its races are between equal sizes."""
    declarations = """.global .align 16 .b8 x[16];
.shared .align 16 .b8 s[16];
.shared .align 8 .b64 bar = mbarrier(1);"""
    copy = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [x], 16, [bar];"
    flags = ask(copy, load, "exists race", engine, declarations).answer.flags
    assert RACE in flags and MIXED not in flags


# ---- addresses -----------------------------------------------------------------------------------------------------

CHOSEN = """PTX chosen
.global .u32 index;
.global .align 8 .u32 x[4] = {{10, 11, 12, 13}};
thread P0 @ cta 0 {{
    st.relaxed.gpu.global.u32 [index], {0};
}}
thread P1 @ cta 1 {{
    ld.relaxed.gpu.global.u32 %i, [index];
    mul.wide.u32 %off, %i, 4;
    mov.u64 %a, x;
    add.u64 %a, %a, %off;
    ld.global.{1} %r0, [%a];
}}
exists (P1:r0 == {2})
"""


@ENGINES
@pytest.mark.parametrize(
    ("index", "load", "value", "observation", "flags"),
    [
        (3, "u32", 13, Observation.SOMETIMES, ()),
        (3, "u32", 12, Observation.NEVER, ()),
        (2, "u64", 12 | 13 << 32, Observation.SOMETIMES, ()),
        (1, "u64", 10 | 11 << 32, Observation.SOMETIMES, ("undefined-address",)),  # misaligned where it is 1
        (1, "u64", 11 | 12 << 32, Observation.NEVER, ("undefined-address",)),
        (4, "u32", 10, Observation.SOMETIMES, ("undefined-address",)),  # after the array
    ],
)
def test_an_address_that_another_thread_decides(
    index: int, load: str, value: int, observation: Observation, flags: object, engine: str
) -> None:
    answer = check(CHOSEN.format(index, load, value), engine=engine).answer
    assert (answer.observation, answer.flags) == (observation, flags)


@ENGINES
@pytest.mark.parametrize(("index", "load"), [(1, "u64"), (4, "u32"), (-1, "u32")])
def test_the_thread_of_a_bad_address_ends_there_with_the_registers_that_it_has(
    index: int, load: str, engine: str
) -> None:
    text = CHOSEN.format(index, load, 0)
    found = "undefined-address"
    stopped = check(text.replace("(P1", f"(P1:i == {index % 2**32} /\\ P1"), engine=engine)
    assert (stopped.answer.observation, stopped.answer.flags) == (Observation.SOMETIMES, (found,))
    loaded = check(text.replace("(P1:r0 ==", f"(P1:i == {index % 2**32} /\\ P1:r0 !="), engine=engine)
    assert (loaded.answer.observation, loaded.answer.flags) == (Observation.NEVER, (found,))
    (finding,) = stopped.answer.findings
    assert finding.first is not None and finding.first.thread == "P1" and "ld.global" in finding.first.text


MATRIX = """PTX matrix
.shared .align 16 .b16 s[64] = {0};
.shared .align 16 .b16 same[64];
.shared .align 16 .b16 turned[64];
thread P0 @ cta 0 {{
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r0}}, [s];
    stmatrix.sync.aligned.m8n8.x1.shared.b16 [same], {{%r0}};
    stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [turned], {{%r0}};
}}
forall ({1})
"""


@ENGINES
def test_a_matrix_of_16_bit_elements_goes_through_the_lanes_of_a_warp(engine: str) -> None:
    """Row i, column j of an 8x8 matrix is element 8 i + j, and 8 j + i when it is transposed."""
    numbers = "{" + ", ".join(str(100 + k) for k in range(64)) + "}"
    wanted = [
        f"same[{8 * i + j}] == {100 + 8 * i + j} /\\ turned[{8 * j + i}] == {100 + 8 * i + j}"
        for i, j in ((0, 0), (0, 7), (3, 5), (7, 0), (7, 6))
    ]
    assert check(MATRIX.format(numbers, " /\\ ".join(wanted)), engine=engine).holds is True


WIDE = """PTX wide
.global .align 16 .b32 x[{0}];
.shared .align 16 .b32 s[{0}];
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0 {{
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {1};
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [x], {1}, [bar];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra WAIT;
    ld.shared.b32 %r0, [s];
    ld.shared.b32 %r1, [s+{2}];
}}
~exists (P0:r0 != 0 \\/ P0:r1 != 0)
"""


@ENGINES
def test_nothing_costs_by_the_byte(engine: str) -> None:
    """Two arrays of 16 KB, a copy between them and two loads are as many events as with arrays of 64 bytes."""
    small, large = (check(WIDE.format(n, 4 * n, 4 * n - 4), engine=engine).answer for n in (16, 4096))
    assert small.observation is large.observation is Observation.NEVER
    assert small.events == large.events < 30
    assert small.flags == large.flags == ()


def test_a_copy_has_what_its_source_has_wherever_the_execution_puts_it() -> None:
    text = """PTX source
.global .u64 at = 0;
.global .align 16 .u32 src[8] = {1, 1, 1, 1, 2, 2, 2, 2};
.shared .align 16 .u32 dst[4];
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {
  ld.relaxed.gpu.global.u64 %rd1, [at];
  mov.u64 %rd0, src;
  add.u64 %rd0, %rd0, %rd1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [dst], [%rd0], 16, [bar];
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
  @!%p bra W;
  ld.shared.u32 %r2, [dst];
}
thread P1 @ cta 1, gpu 0 { st.relaxed.gpu.global.u64 [at], 16; }
forall ((P0:%rd1 == 16 /\\ P0:%r2 == 2) \\/ (P0:%rd1 == 0 /\\ P0:%r2 == 1))
"""
    assert agree(text, load_model("ptx-9.4")).observation is Observation.ALWAYS
