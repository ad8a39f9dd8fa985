"""All executions: protocols of strong accesses are decided, and broken ones are found; against the exact engines."""

from __future__ import annotations

import pytest
from helpers.examples import SEED, each_seed, seeds
from helpers.kernel.random_decisions import as_both, both, handing_over, polling, races
from helpers.kernel.random_polls import nested_polls
from helpers.kernel.samples import judged

from memmodel.kernel.order.verdict import KernelVerdict

pytestmark = pytest.mark.turns(2)

INCREMENT = "ld.global.u32 %r21, [%d0+64];\nadd.u32 %r21, %r21, 1;\nst.global.u32 [%d0+64], %r21;\n"
TRY = "@!%p0 bra OUT;\n{again}{take}\nsetp.ne.u32 %p2, %r22, 0;\n@%p2 bra {to};\n" + INCREMENT + "{free}\nOUT:"
CAS, EXCH = "atom.acquire.gpu.global.cas.b32 %r22, [%d0], 0, 1;", "atom.acquire.gpu.global.exch.b32 %r22, [%d0], 1;"
STORE, SWAP = "st.release.gpu.global.u32 [%d0], 0;", "atom.release.gpu.global.exch.b32 %r23, [%d0], 0;"


def lock(take: str = CAS, free: str = STORE, *, again: bool = True) -> str:
    return TRY.format(take=take, free=free, again="L:\n" if again else "", to="L" if again else "OUT")


SPIN = f"""@!%p0 bra OUT;
L: {EXCH}
setp.eq.u32 %p2, %r22, 0;
@%p2 bra GOT;
S: ld.relaxed.gpu.global.u32 %r23, [%d0];
setp.eq.u32 %p3, %r23, 0;
@%p3 bra L;
I: ld.relaxed.gpu.global.u32 %r23, [%d0];
setp.eq.u32 %p3, %r23, 0;
@%p3 bra S;
bra I;
GOT: {INCREMENT}{STORE}
OUT:"""
"""A lock that is polled before it is tried again, by loops within loops, as the semaphores of libcu++ are."""

TICKET = f"""@!%p0 bra OUT;
atom.relaxed.gpu.global.add.u32 %r24, [%d0+8], 1;
P: ld.acquire.gpu.global.u32 %r22, [%d0];
setp.ne.u32 %p2, %r22, %r24;
@%p2 bra P;
{INCREMENT}add.u32 %r25, %r24, 1;
st.release.gpu.global.u32 [%d0], %r25;
OUT:"""

LOOK_BACK = """@!%p0 bra OUT;
mov.u32 %r10, %ctaid.x;
mul.wide.u32 %d1, %r10, 4;
add.s64 %d1, %d1, %d0;
st.global.u32 [%d1+64], %r10;
setp.eq.u32 %p2, %r10, 0;
@%p2 bra PREFIX;
st.release.gpu.global.u32 [%d1], 1;
mov.u64 %d2, %d1;
BACK: add.s64 %d2, %d2, -4;
P: ld.acquire.gpu.global.u32 %r22, [%d2];
setp.eq.u32 %p3, %r22, 0;
@%p3 bra P;
setp.eq.u32 %p4, %r22, 2;
@%p4 bra FOUND;
ld.global.u32 %r23, [%d2+64];
bra BACK;
FOUND: ld.global.u32 %r23, [%d2+128];
PREFIX: st.global.u32 [%d1+128], %r10;
st.{sem}.gpu.global.u32 [%d1], 2;
OUT:"""

FENCED_LOOK_BACK = LOOK_BACK.replace(
    "P: ld.acquire.gpu.global.u32 %r22, [%d2];", "P: ld.relaxed.gpu.global.u32 %r22, [%d2];\nfence.acq_rel.gpu;"
)

SEQUENCE = """@!%p0 bra OUT;
mov.u32 %r10, %ctaid.x;
setp.ne.u32 %p2, %r10, 0;
@%p2 bra READ;
st.relaxed.gpu.global.u32 [%d0], 1;
{fence}
st.relaxed.gpu.global.u32 [%d0+64], 5;
st.relaxed.gpu.global.u32 [%d0+68], 5;
st.release.gpu.global.u32 [%d0], 2;
bra OUT;
READ: ld.acquire.gpu.global.u32 %r20, [%d0];
and.b32 %r25, %r20, 1;
setp.ne.u32 %p3, %r25, 0;
@%p3 bra READ;
ld.relaxed.gpu.global.u32 %r21, [%d0+64];
ld.relaxed.gpu.global.u32 %r22, [%d0+68];
{fence}
ld.relaxed.gpu.global.u32 %r23, [%d0];
setp.ne.u32 %p4, %r20, %r23;
@%p4 bra READ;
setp.ne.u32 %p5, %r21, %r22;
@%p5 trap;
OUT:"""

STACK = """@!%p0 bra OUT;
mov.u32 %r10, %ctaid.x;
add.u32 %r40, %r10, 1;
mul.wide.u32 %d1, %r10, 4;
add.s64 %d1, %d1, %d0;
ld.relaxed.gpu.global.u32 %r20, [%d0];
T: st.global.u32 [%d1+64], %r20;
atom.release.gpu.global.cas.b32 %r22, [%d0], %r20, %r40;
setp.eq.u32 %p2, %r22, %r20;
mov.u32 %r20, %r22;
@!%p2 bra T;
OUT:"""

POPPED = """@!%p0 bra OUT;
mov.u32 %r10, %ctaid.x;
setp.eq.u32 %p3, %r10, 2;
@%p3 bra POP;
add.u32 %r40, %r10, 1;
mul.wide.u32 %d1, %r10, 4;
add.s64 %d1, %d1, %d0;
ld.relaxed.gpu.global.u32 %r20, [%d0];
T: st.global.u32 [%d1+64], %r20;
atom.release.gpu.global.cas.b32 %r22, [%d0], %r20, %r40;
setp.eq.u32 %p2, %r22, %r20;
mov.u32 %r20, %r22;
@!%p2 bra T;
bra OUT;
POP: ld.acquire.gpu.global.u32 %r20, [%d0];
U: setp.eq.u32 %p2, %r20, 0;
@%p2 bra OUT;
sub.u32 %r41, %r20, 1;
mul.wide.u32 %d1, %r41, 4;
add.s64 %d1, %d1, %d0;
ld.global.u32 %r42, [%d1+64];
atom.{acquire}.gpu.global.cas.b32 %r22, [%d0], %r20, %r42;
setp.eq.u32 %p2, %r22, %r20;
mov.u32 %r20, %r22;
@!%p2 bra U;
OUT:"""
"""CTAs 0 and 1 push onto a stack; CTA 2 pops, which loads the next element weakly."""

GIVES_UP = f"""@!%p0 bra OUT;
mov.u32 %r30, 0;
L: {CAS}
setp.eq.u32 %p2, %r22, 0;
@%p2 bra GOT;
add.u32 %r30, %r30, 1;
setp.lt.u32 %p3, %r30, 3;
@%p3 bra L;
bra OUT;
GOT: {INCREMENT}{STORE}
OUT:"""

TASKS = """@!%p0 bra OUT;
N: atom.relaxed.gpu.global.add.u32 %r20, [%d0], 1;
setp.ge.u32 %p2, %r20, 3;
@%p2 bra OUT;
mul.wide.u32 %d1, %r20, 4;
add.s64 %d1, %d1, %d0;
st.global.u32 [%d1+64], %r20;
bra N;
OUT:"""

SYNC = """fence.acq_rel.gpu;
atom.relaxed.gpu.global.add.u32 %r20, [%d0], %r12;
W{0}: ld.acquire.gpu.global.u32 %r21, [%d0];
xor.b32 %r22, %r21, %r20;
setp.ge.s32 %p3, %r22, 0;
@%p3 bra W{0};
"""
"""The grid barrier of cooperative groups: the highest bit turns when all CTAs have come."""

GRID_SYNC = f"""@!%p0 bra OUT;
mov.u32 %r10, %ctaid.x;
mul.wide.u32 %d1, %r10, 4;
add.s64 %d2, %d0, %d1;
mov.u32 %r11, %nctaid.x;
mov.u32 %r12, 1;
setp.ne.u32 %p2, %r10, 0;
@%p2 bra A;
sub.u32 %r12, 0x80000001, %r11;
A: st.global.u32 [%d2+64], %r10;
{SYNC.format(1)}ld.global.u32 %r24, [%d0+64];
ld.global.u32 %r24, [%d0+68];
{SYNC.format(2)}st.global.u32 [%d0+64], %r10;
OUT:"""

COUNTED = """@!%p0 bra OUT;
mov.u32 %r10, %ctaid.x;
mul.wide.u32 %d1, %r10, 4;
add.s64 %d2, %d0, %d1;
st.global.u32 [%d2+64], %r10;
fence.acq_rel.gpu;
{arrive} [%d0], 1;
P: atom.relaxed.gpu.global.add.u32 %r20, [%d0], 0;
setp.lt.u32 %p3, %r20, 2;
@%p3 bra P;
{fence}
ld.global.u32 %r24, [%d0+64];
ld.global.u32 %r24, [%d0+68];
OUT:"""
"""A barrier of a grid that is polled with an atomic operation, which leaves what it reads."""

TILE = """and.b32 %r10, %r0, 31;
mov.u32 %r4, %reserved_smem_offset_1;
setp.eq.u32 %p1, %r10, 0;
shr.u32 %r11, %r0, 5;
mov.u32 %r12, 1;
shl.b32 %r12, %r12, %r11;
not.b32 %r13, %r12;
@%p1 red.and.release.cta.shared.b32 [%r4], %r13;
bar.sync 0;
st.shared.u32 [%r3], %r0;
bar.warp.sync -1;
@!%p1 bra MET;
atom.or.{sem}.cta.shared.b32 %r20, [%r4], %r12;
or.b32 %r21, %r20, %r12;
and.b32 %r21, %r21, 3;
setp.ne.u32 %p2, %r21, 3;
@%p2 bra W;
red.and.relaxed.cta.shared.b32 [%r4], -4;
bra MET;
W: ld.acquire.cta.shared.u32 %r22, [%r4];
and.b32 %r22, %r22, %r12;
setp.ne.u32 %p3, %r22, 0;
@%p3 bra W;
MET: bar.warp.sync -1;
xor.b32 %r14, %r1, 128;
add.u32 %r14, %r14, %r2;
ld.shared.u32 %r23, [%r14];"""
"""The barrier of a tile of two warps of cooperative groups: each operates once on a word of reserved shared memory."""


def threads_of(body: str) -> int:
    """A tile has two warps."""
    return 64 if "reserved_smem" in body else 32


ADD, REDUCE = "atom.relaxed.gpu.global.add.u32 %r21,", "red.relaxed.gpu.global.add.u32"


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("body", "ctas", "executions"),
    [
        pytest.param(lock(), 3, 6, id="lock"),
        pytest.param(lock(EXCH, SWAP), 3, 6, id="lock by exchanges"),
        pytest.param(SPIN, 2, None, id="a lock that is polled first"),
        pytest.param(lock(again=False), 2, 4, id="a lock that is tried once"),
        pytest.param(GIVES_UP, 2, 8, id="a lock that is tried three times"),
        pytest.param(TICKET, 3, 6, id="tickets"),
        pytest.param(LOOK_BACK.replace("{sem}", "release"), 3, 2, id="look-back"),
        pytest.param(FENCED_LOOK_BACK.replace("{sem}", "release"), 3, 2, id="look-back, a fence in each round"),
        pytest.param(SEQUENCE.replace("{fence}", "fence.acq_rel.gpu;"), 2, None, id="sequence lock"),
        pytest.param(STACK, 2, 4, id="stack"),
        pytest.param(POPPED.replace("{acquire}", "acquire"), 3, 20, id="stack, a pop"),
        pytest.param(TASKS, 2, 16, id="task queue"),
        pytest.param(GRID_SYNC.replace("st.global.u32 [%d0+64]", "st.global.u32 [%d2+64]"), 2, 4,
                     id="grid sync of cooperative groups, twice"),
        pytest.param(COUNTED.format(arrive=ADD, fence="fence.acq_rel.gpu;"), 2, None, id="polled by an atomic"),
        pytest.param(COUNTED.format(arrive=REDUCE, fence="fence.acq_rel.gpu;"), 2, None, id="polled by an atomic, red"),
        pytest.param(TILE.format(sem="acq_rel"), 1, None, id="tile of two warps"),
    ],
)  # fmt: skip
def test_all_executions_are_judged(body: str, ctas: int, executions: int | None) -> None:
    verdict = judged(body, threads_of(body), ctas, "zero")
    assert verdict.word == "clean" and verdict.exhaustive, verdict.notes
    assert executions is None or verdict.explored == executions


MEET = """atom.{sem}.gpu.global.add.u32 %r20, [word], 65536;
add.s32 %r21, %r20, 65536;
xor.b32 %r21, %r21, %r20;
setp.gt.s32 %p2, %r21, -1;
@%p2 bra W{phase};
shl.b32 %r22, %r20, 16;
atom.relaxed.gpu.global.add.u32 %r22, [word], %r22;
W{phase}: mov.u32 %r30, 0;
L{phase}: ld.acquire.gpu.global.u32 %r23, [word];
xor.b32 %r24, %r23, %r20;
setp.lt.s32 %p3, %r24, 0;
@%p3 bra M{phase};
setp.lt.u32 %p4, %r30, 2;
@!%p4 bra L{phase};
add.u32 %r30, %r30, 1;
bra L{phase};
M{phase}:
"""
"""A barrier of two threads, as libcu++ has it: the last one to arrive changes the sign and counts the next phase down.
It is polled twice at once, and later with pauses.
"""


def meets(sem: str) -> KernelVerdict:
    """Two threads meet twice: each reads what the other has written, which then is written anew."""
    text = "@!%p0 bra OUT;\nmov.u32 %r10, %ctaid.x;\nshl.b32 %r11, %r10, 2;\ncvt.u64.u32 %d1, %r11;\n"
    text += "add.s64 %d1, %d1, %d0;\nxor.b32 %r11, %r11, 4;\ncvt.u64.u32 %d2, %r11;\n"
    text += "add.s64 %d2, %d2, %d0;\nst.global.u32 [%d1+64], %r10;\n"
    text += MEET.format(sem="acq_rel", phase=0) + "ld.global.u32 %r25, [%d2+64];\n" + MEET.format(sem=sem, phase=1)
    return judged(text + "st.global.u32 [%d1+64], 5;\nOUT:", 32, 2, "zero", before=".global .b32 word = 0x7ffe7ffe;")


def test_a_barrier_of_two_phases() -> None:
    """Whether a thread sees that the phase is over by the last arrival, by what follows it at once, or by an arrival at
    the next phase, makes no difference but order: 6 executions are judged, and there are 32.
    """
    verdict = meets("acq_rel")
    assert verdict.word == "clean" and verdict.exhaustive and verdict.explored == 6, verdict.notes
    assert verdict.statistics.runs <= 80  # a thread that stays in the loop of one phase stays in no other one
    assert "data-race" in {finding.rule for finding in meets("relaxed").findings}


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("body", "ctas", "rule"),
    [
        pytest.param(lock(free=STORE.replace("release", "relaxed")), 2, "data-race", id="lock"),
        pytest.param(SPIN.replace("st.release", "st.relaxed"), 2, "data-race", id="a lock that is polled first"),
        pytest.param(SPIN.replace(f"{STORE}\n", "\n"), 2, "hang", id="a lock that is polled first, and kept"),
        pytest.param(LOOK_BACK.replace("{sem}", "relaxed"), 3, "data-race", id="look-back"),
        pytest.param(FENCED_LOOK_BACK.replace("{sem}", "relaxed"), 3, "data-race", id="look-back, fences"),
        pytest.param(SEQUENCE.replace("{fence}", ""), 2, "trap", id="sequence lock"),
        pytest.param(POPPED.replace("{acquire}", "relaxed"), 3, "data-race", id="stack, a pop"),
        pytest.param(GRID_SYNC, 2, "data-race", id="both store after the second grid sync"),
        pytest.param(COUNTED.format(arrive=ADD, fence=""), 2, "data-race", id="polled by an atomic, without a fence"),
        pytest.param(TILE.format(sem="relaxed"), 1, "data-race", id="tile of two warps"),
        pytest.param(
            COUNTED.replace("20, 2;", "20, 3;").format(arrive=ADD, fence=""), 2, "hang", id="polled for one more"
        ),
    ],
)
def test_broken_ones_are_found(body: str, ctas: int, rule: str) -> None:
    assert rule in {finding.rule for finding in judged(body, threads_of(body), ctas, "zero").findings}


def two(first: str, second: str) -> str:
    """A thread of each of two CTAs."""
    head = "@!%p0 bra OUT;\nmov.u32 %r10, %ctaid.x;\nsetp.ne.u32 %p2, %r10, 0;\n@%p2 bra B;\n"
    return f"{head}{first}bra OUT;\nB: {second}OUT:"


PAIR = "mov.u32 %r40, 1;\nmov.u32 %r41, 7;\n{first}st.relaxed.gpu.global.v2.u32 [%d0], {{%r41, %r40}};\n"
PAIR_POLL = "P: ld.relaxed.gpu.global.v2.u32 {%r21, %r22}, [%d0];\nsetp.ne.u32 %p3, %r22, 1;\n@%p3 bra P;\n"
FOUR = "mov.u32 %r40, 1;\nst.volatile.global.v4.u32 [%d0], {%r0, %r40, %r0, %r40};\n"
FOUR_POLL = """P: ld.volatile.global.v4.u32 {%r21, %r22, %r23, %r24}, [%d0];
setp.ne.u32 %p3, %r22, 1;
setp.ne.or.u32 %p3, %r24, 1, %p3;
@%p3 bra P;
"""
WRITES_IF = "setp.eq.u32 %p4, %r21, {};\n@%p4 st.global.u32 [%d0+64], 2;\n"
FIRST = "st.global.u32 [%d0+64], 1;\n"


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("body", "word", "executions"),
    [
        pytest.param(two(PAIR.format(first=""), PAIR_POLL), "clean", 2, id="LL: a value and a flag"),
        pytest.param(two(FOUR, FOUR_POLL), "clean", 4, id="LL: two values, two flags"),
        pytest.param(two(PAIR.format(first="").replace("%r41, 7", "%r41, %clock"),
                         PAIR_POLL + "st.global.u32 [%d0+128], %r21;\n"), "clean", 2,
                     id="LL: a value that is not known"),
        pytest.param(two(PAIR.format(first=FIRST), PAIR_POLL + WRITES_IF.format(0)), "findings", None,
                     id="with the new flag the old value may be read"),
        pytest.param(two(PAIR.format(first=FIRST), PAIR_POLL + WRITES_IF.format(7)), "findings", None,
                     id="the new value does not order"),
        pytest.param(two(PAIR.format(first=FIRST), PAIR_POLL + WRITES_IF.format(5)), "clean", 2,
                     id="no other value is read"),
        pytest.param(two(PAIR.format(first=FIRST + "fence.acq_rel.gpu;\n"),
                         PAIR_POLL + "fence.acq_rel.gpu;\n" + WRITES_IF.format(0)), "clean", 2,
                     id="the flag orders, whichever value is read"),
        pytest.param(two(PAIR.format(first=""), "mov.u32 %r30, 0;\n" + PAIR_POLL.replace(
            "setp", "add.u32 %r30, %r30, %r21;\nsetp") + "st.global.u32 [%d0+128], %r30;\n"), "explored", None,
                     id="values of rounds that fail are used"),
    ],
)  # fmt: skip
def test_a_vector_of_which_one_element_is_polled(body: str, word: str, executions: int | None) -> None:
    verdict = judged(body, 32, 2, "zero")
    assert verdict.word == word, verdict.notes
    assert executions is None or verdict.explored == executions


POLL = "P: ld.{sem}.gpu.global.u32 %r20, [%d0+4];\nsetp.lt.u32 %p3, %r20, 1;\n@%p3 bra P;\n"
WRITE, DATA = "st.relaxed.gpu.global.u32 [%d0+{at}], {value};\n", "st.global.u32 [%d0+64], %r10;\n"
READ = "ld.relaxed.gpu.global.u32 %r21, [%d0];\n"
IF = "setp.ne.u32 %p4, %r21, {value};\n@%p4 bra E{value};\n{then}E{value}:\n"
AFTER = POLL.format(sem="acquire") + WRITE.format(at=0, value=5) + DATA
FUTEX = f"""@!%p0 bra OUT;
atom.acquire.gpu.global.cas.b32 %r22, [%d0], 0, 1;
setp.eq.u32 %p2, %r22, 0;
@%p2 bra GOT;
W: atom.acquire.gpu.global.exch.b32 %r22, [%d0], 2;
setp.ne.u32 %p2, %r22, 0;
@%p2 bra W;
GOT: {INCREMENT}atom.release.gpu.global.exch.b32 %r23, [%d0], 0;
setp.ne.u32 %p5, %r23, 2;
@%p5 bra OUT;
ld.global.u32 %r30, [%d0+72];
st.global.u32 [%d0+72], %r0;
OUT:"""
COUNT = "atom.relaxed.gpu.global.add.u32 %r30, [%d0+4], 1;\n"


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(
            two(AFTER.replace("acquire", "relaxed"),
                READ + WRITE.format(at=4, value=1) + IF.format(value=5, then=DATA)),
            ("explored", "findings"), id="a later write that is performed before the read",
        ),
        pytest.param(
            two(READ.replace("[%d0]", "[%d0+4]") + IF.format(value=1, then=WRITE.format(at=0, value=5) + DATA),
                READ + IF.format(value=7, then="st.global.u32 [%d0+72], %r10;\n") + WRITE.format(at=4, value=1)
                + IF.format(value=5, then=DATA)),
            ("explored", "findings"), id="a later write behind a branch that does not skip it",
        ),
        pytest.param(two(AFTER, COUNT + READ + IF.format(value=5, then=DATA) + COUNT), ("findings",),
                     id="a counter that goes on"),
        pytest.param(FUTEX, ("findings",), id="an operation of a loop that changes the word"),
        pytest.param(two("st.global.u32 [%d0+4], 0;\nst.release.gpu.global.u32 [%d0+4], 1;\n",
                         POLL.format(sem="acquire")), ("findings",),
                     id="a weak write that a round of a loop races with"),
        pytest.param(
            two(
                FIRST + "P: ld.relaxed.gpu.global.u32 %r20, [%d0+4];\nsetp.ne.u32 %p3, %r20, 0;\n@%p3 bra D;\n"
                f"fence.acq_rel.gpu;\nbra P;\nD: {WRITE.format(at=0, value=1)}",
                WRITE.format(at=4, value=1) + "Q: ld.acquire.gpu.global.u32 %r20, [%d0];\n"
                "setp.eq.u32 %p3, %r20, 0;\n@%p3 bra Q;\nld.global.u32 %r21, [%d0+64];\n",
            ),
            ("findings",), id="a fence in rounds that fail alone",
        ),
        pytest.param(
            two(lock().replace("OUT", "AGAIN") + "\nbra OUT;\n", lock().replace("OUT", "LAST").replace("L:", "M:")
                .replace("bra L;", "bra M;").replace(STORE, "") + "\n"),
            ("findings",), id="a lock that is kept",
        ),
    ],
)  # fmt: skip
def test_what_other_executions_do_is_not_clean(body: str, words: tuple[str, ...]) -> None:
    assert judged(body, 32, 2, "zero").word in words


@pytest.mark.share(2)
@each_seed(12)
def test_decisions_made_at_random_are_judged_as_the_exact_engines_judge_them(seed: int) -> None:
    litmus, kernel, threads = both(seed)
    exact, verdict = races(litmus), judged(kernel, 1, threads, "zero")
    found = "data-race" in {finding.rule for finding in verdict.findings}
    assert exact or not found, kernel
    assert found or not exact or verdict.word == "explored", kernel


HANDED_OVER = (74, 81, 207, 449, 722, 740, 905, 1355, 1442)
"""Seeds of kernels in which a weak load decides, also where strong reads return older values, and nothing races."""


@pytest.mark.share(2)
@pytest.mark.generated
@pytest.mark.parametrize("seed", [*HANDED_OVER, *(seeds(12) if SEED else ())])
def test_weak_loads_that_decide_are_judged_as_the_exact_engines_judge_them(seed: int) -> None:
    litmus, kernel, threads = handing_over(seed)
    exact, verdict = races(litmus), judged(kernel, 1, threads, "zero")
    found = "data-race" in {finding.rule for finding in verdict.findings}
    assert exact or not found, kernel
    assert found or not exact or verdict.word == "explored", kernel
    assert verdict.exhaustive or seed not in HANDED_OVER


POLLING = (1, 20, 35, 51)
"""Seeds of kernels in which polls are left out, or loops end with the earliest of several writes."""


@pytest.mark.generated
@pytest.mark.parametrize("seed", [*POLLING, *(seeds(12) if SEED else ())])
def test_peeled_and_nested_polls_are_judged_as_the_exact_engines_judge_them(seed: int) -> None:
    litmus, kernel, threads = nested_polls(seed)
    exact, verdict = races(litmus), judged(kernel, 1, threads, "zero")
    found = "data-race" in {finding.rule for finding in verdict.findings}
    assert exact or not found, kernel
    assert found or not exact or verdict.word in ("explored", "undecided"), kernel
    assert verdict.word in ("clean", "findings") or seed not in POLLING


UNSURE = (142, 245, 347)
"""Seeds of kernels in which a loop is a wait in the run, and may be none in another execution."""


@pytest.mark.generated
@pytest.mark.parametrize("seed", [*UNSURE, *(seeds(12) if SEED else ())])
def test_loops_that_are_waits_in_some_executions_are_judged_as_the_exact_engines_judge_them(seed: int) -> None:
    litmus, kernel, threads = polling(seed)
    exact, verdict = races(litmus), judged(kernel, 1, threads, "zero")
    rules = {finding.rule for finding in verdict.findings}
    assert exact or "data-race" not in rules, kernel
    assert rules or not exact or verdict.word != "clean", kernel
    assert not verdict.exhaustive or seed not in UNSURE


PASSED = two(
    COUNT + DATA + COUNT, "P: ld.relaxed.gpu.global.u32 %r20, [%d0+4];\nsetp.ne.u32 %p3, %r20, 1;\n@%p3 bra P;\n" + DATA
)
"""A thread waits for a number that the counter holds for a while. In the first run it comes too late."""


def test_what_is_behind_a_loop_is_looked_at_although_a_thread_stays_in_it() -> None:
    assert {finding.rule for finding in judged(PASSED, 32, 2, "zero").findings} == {"hang", "data-race"}


def writes_and_reads(who: int, mine: int, other: int) -> list[str]:
    """A thread writes a number into the word, and writes `d` if it reads the other thread's number behind its own."""
    asked = (f"setp.ne.u32 %p5, %r20, {other};", f"@%p5 bra END{who};", f"st.global.u32 [d], {who};")
    return [f"st.relaxed.gpu.global.u32 [x], {mine};", "ld.relaxed.gpu.global.u32 %r20, [x];", *asked]


COUNTED = ["atom.relaxed.gpu.global.add.u32 %r22, [x], 1;"]
UNTIL = ["P: ld.relaxed.gpu.global.u32 %r21, [x];", "setp.lt.u32 %p5, %r21, 1;", "@%p5 bra P;"]


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("other", "more", "word", "executions"),
    [
        pytest.param(7, [], "clean", 4, id="each reads the other's number: no order of the two writes has both"),
        pytest.param(7, [COUNTED, UNTIL], "clean", 66, id="wrong in no execution, and one was left out: all are run"),
        pytest.param(6, [COUNTED + UNTIL], "findings", 48, id="5 + 1 is 6: an order that is not that of time"),
    ],
)
def test_writes_of_which_coherence_alone_says_the_order(
    other: int, more: list[list[str]], word: str, executions: int
) -> None:
    litmus, kernel = as_both("order", [writes_and_reads(0, 5, other), writes_and_reads(1, other, 5), *more])
    verdict = judged(kernel, 1, 2 + len(more), "zero")
    assert (verdict.word, verdict.explored, verdict.exhaustive) == (word, executions, True)
    assert races(litmus) is (word == "findings")


def peterson(who: int, first: str = "fence.sc.gpu;", second: str = "fence.sc.gpu;") -> list[str]:
    """Peterson's lock: [x] and [y] say who wants to enter, [e] who lets the other one go first."""
    mine, other = ("[x]", "[y]")[:: 1 if who == 0 else -1]
    wants = (f"st.relaxed.gpu.global.u32 {mine}, 1;", first, f"st.relaxed.gpu.global.u32 [e], {1 - who};", second)
    load, store = "ld.acquire.gpu.global.u32 %r20,", f"st.release.gpu.global.u32 {mine}, 0;"
    entered = (f"W{who}: {load} {other};", "setp.eq.u32 %p5, %r20, 0;", f"@%p5 bra C{who};")
    waits = (f"{load} [e];", f"setp.eq.u32 %p6, %r20, {1 - who};", f"@%p6 bra W{who};", f"C{who}:")
    return [*wants, *entered, *waits, "ld.global.u32 %r22, [d];", "st.global.u32 [d], %r22;", store]


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("fences", "words"),
    [
        pytest.param({}, ("explored", "clean"), id="a fence behind each store"),
        pytest.param({"first": ""}, ("findings",), id="none between the stores: coherence orders nothing else"),
        pytest.param({"second": ""}, ("findings",), id="none before the loads"),
    ],
)
def test_threads_that_poll_two_words(fences: dict[str, str], words: tuple[str, ...]) -> None:
    """Rounds of a loop that reads two words are decisions: runs with many of them are passed over, others are not."""
    _, kernel = as_both("peterson", [peterson(0, **fences), peterson(1)])
    assert judged(kernel, 1, 2, "zero", first=True).word in words


def enters(who: int, mine: str, other: str, *then: str, fence: str = "") -> list[str]:
    """A thread sets its word, and goes on if the word of the other one is not set."""
    asked = (f"ld.relaxed.gpu.global.u32 %r20, [{other}];", "setp.ne.u32 %p5, %r20, 0;", f"@%p5 bra END{who};")
    return [f"st.relaxed.gpu.global.u32 [{mine}], 1;", fence, *asked, *then]


@pytest.mark.parametrize(("decides", "word"), [(True, "explored"), (False, "clean")])
def test_what_a_weak_load_returns_in_a_run_that_is_no_execution_decides_nothing(decides: bool, word: str) -> None:
    """Both threads enter where both read older values, which fence.sc forbids: there the load sees a later store."""
    leaves = ("setp.ne.u32 %p5, %r21, 0;", "@%p5 bra END0;") if decides else ()
    loads = ("ld.global.u32 %r21, [d];", *leaves, "st.global.u32 [e], %r21;")
    stores, fence = ("st.global.u32 [d], 7;",), "fence.sc.gpu;"
    bodies = [enters(0, "x", "y", *loads, fence=fence), enters(1, "y", "x", *stores, fence=fence)]
    litmus, kernel = as_both("enter", bodies)
    verdict = judged(kernel, 1, 2, "zero")
    assert verdict.word == word and not verdict.findings and not races(litmus)
    assert decides is any("may read an older value than in a run" in note for note in verdict.notes)


@pytest.mark.parametrize(
    ("load", "word", "exhaustive"),
    [
        ("ld.relaxed.gpu.global.u32 %r21, [d];", "clean", True),
        ("ld.relaxed.gpu.global.u64 %d4, [d];", "explored", False),
        ("ld.weak.global.u32 %r21, [d];", "findings", True),
    ],
)
def test_what_is_open_where_both_threads_enter_stays_open(load: str, word: str, exhaustive: bool) -> None:
    """They do in no schedule, only where both read older values. Strong accesses of two sizes are not judged."""
    store = "st.relaxed.gpu.global.u32 [d], 7;"
    _, kernel = as_both("enter", [enters(0, "x", "y", store), enters(1, "y", "x", load)])
    verdict = judged(kernel, 1, 2, "zero")
    assert (verdict.word, verdict.exhaustive) == (word, exhaustive)
