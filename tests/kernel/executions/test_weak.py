"""Executions that no interleaving shows: right and broken protocols of strong accesses, and what must not be a finding.

Each thread is a CTA; words at offset 0, 4, 8 are flags, what is at 64 is protected by them.
"""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged


def threads(*bodies: str) -> str:
    """A kernel in which CTA n runs the n-th body. x, y, z are flags; {end} is the end of the thread."""
    text = ["mov.u32 %r50, %ctaid.x;"]
    for number in range(1, len(bodies)):
        text += [f"setp.eq.u32 %p9, %r50, {number};", f"@%p9 bra T{number};"]
    for number, body in enumerate(bodies):
        text += [f"T{number}:", body.replace("END", f"E{number}").replace("DATA", f"st.global.u32 [%d0+64], {number};")]
        text += [f"E{number}:", "bra DONE;"]
    found = "\n".join([*text, "DONE:"])
    for name, at in (("[x]", 0), ("[y]", 4), ("[z]", 8)):
        found = found.replace(name, f"[%d0+{at}]")
    return found


def store(name: str, value: int = 1, sem: str = "relaxed") -> str:
    return f"st.{sem}.gpu.global.u32 [{name}], {value};"


def goes_on(name: str, value: int, sem: str = "relaxed") -> str:
    """Load a flag, and go on only with that value."""
    return f"ld.{sem}.gpu.global.u32 %r20, [{name}];\nsetp.ne.u32 %p3, %r20, {value};\n@%p3 bra END;"


def both(first: tuple[str, int], between: str, second: tuple[str, int], sem: str = "relaxed") -> str:
    """Load two flags, and go on only with these values."""
    return (
        f"ld.{sem}.gpu.global.u32 %r20, [{first[0]}];\n{between}\nld.{sem}.gpu.global.u32 %r21, [{second[0]}];\n"
        f"setp.ne.u32 %p3, %r20, {first[1]};\n@%p3 bra END;\nsetp.ne.u32 %p3, %r21, {second[1]};\n@%p3 bra END;"
    )


def rules(text: str, ctas: int) -> set[str]:
    """The findings of a kernel of which all executions, or some, are judged."""
    verdict = judged(text, 1, ctas, "zero", first=True)
    assert verdict.word in ("clean", "explored", "findings") and not verdict.open
    return {one.rule for one in verdict.findings}


RACE = {"data-race"}
FENCES = [("fence.sc.gpu;", set()), ("fence.acq_rel.gpu;", RACE), ("fence.sc.cta;", RACE), ("", RACE)]


@pytest.mark.parametrize(("fence", "found"), FENCES)
def test_store_buffering_as_a_try_lock(fence: str, found: set[str]) -> None:
    one = store("x") + fence + goes_on("y", 0) + "DATA"
    other = store("y", sem="release") + fence + goes_on("x", 0, "acquire") + "DATA"
    assert rules(threads(one, other), 2) == found


PETERSON = """
st.relaxed.gpu.global.u32 [{mine}], 1;
{between}
st.relaxed.gpu.global.u32 [z], {other};
{fence}
WAIT{place}:
ld.acquire.gpu.global.u32 %r20, [{theirs}];
setp.eq.u32 %p3, %r20, 0;
@%p3 bra ENTER{place};
ld.acquire.gpu.global.u32 %r21, [z];
setp.eq.u32 %p3, %r21, {other};
@%p3 bra WAIT{place};
ENTER{place}:
DATA
st.{release}.gpu.global.u32 [{mine}], 0;
"""


SC, ACQ_REL = "fence.sc.gpu;", "fence.acq_rel.gpu;"


@pytest.mark.share(3)
@pytest.mark.parametrize(("between", "fence", "release", "found"), [
    (SC, SC, "release", set()),
    (SC, SC, "relaxed", RACE),
    (SC, ACQ_REL, "release", RACE),
    # Who sees the turn of the other one need not see its flag: the two stores are not ordered.
    (ACQ_REL, SC, "release", RACE),
    ("", SC, "release", RACE),
])  # fmt: skip
def test_peterson(between: str, fence: str, release: str, found: set[str]) -> None:
    parts = {"between": between, "fence": fence, "release": release}
    first = PETERSON.format(mine="x", theirs="y", other=1, place=0, **parts)
    second = PETERSON.format(mine="y", theirs="x", other=2, place=1, **parts)
    assert rules(threads(first, second), 2) == found


@pytest.mark.parametrize(("fence", "sem", "found"), [
    ("fence.sc.gpu;", "relaxed", set()), ("fence.acq_rel.gpu;", "relaxed", RACE), ("", "acquire", RACE),
    ("", "relaxed", RACE),
])  # fmt: skip
def test_two_readers_that_disagree_about_the_order_of_two_flags(fence: str, sem: str, found: set[str]) -> None:
    readers = [both((one, 1), fence, (other, 0), sem) + "DATA" for one, other in ("xy", "yx")]
    assert rules(threads(store("x"), store("y"), *readers), 4) == found


LATER = "ld.relaxed.gpu.global.u32 %r20, [{}];\n{}\nst.relaxed.gpu.global.u32 [{}], {};\n{}"
GUARD = "setp.ne.u32 %p3, %r20, 1;\n@%p3 bra END;"


@pytest.mark.parametrize(("fence", "found"), [("", RACE), (ACQ_REL, set())])
def test_writes_that_others_see_in_the_opposite_order(fence: str, found: set[str]) -> None:
    """Who answers a message may overwrite what was written before it: then the older write is the last one."""
    first = store("x", 2) + fence + store("y")
    answer = (
        f"ld.relaxed.gpu.global.u32 %r20, [y];\n{fence}\n{store('x')}\nsetp.ne.u32 %p3, %r20, 1;\n@%p3 bra END;DATA"
    )
    reader = both(("x", 1), "", ("x", 2)) + "DATA"
    assert rules(threads(first, answer, reader), 3) == found


@pytest.mark.parametrize(("between", "stored", "found"), [
    ("", "1", RACE),
    ("fence.acq_rel.gpu;", "1", set()),
    ("", "%r20", set()),
    ("shl.b32 %r21, %r20, 1;\nand.b32 %r21, %r21, 1;\nadd.u32 %r21, %r21, 1;", "%r21", set()),  # by its text, at least
    ("mov.u32 %r21, 1;", "%r21", RACE),
])  # fmt: skip
def test_load_buffering(between: str, stored: str, found: set[str]) -> None:
    one = LATER.format("x", between, "y", stored, GUARD) + "DATA"
    other = LATER.format("y", between, "x", stored, GUARD) + "DATA"
    assert rules(threads(one, other), 2) == found


@pytest.mark.parametrize(("between", "found"), [("", RACE), (GUARD, RACE), ("fence.acq_rel.gpu;", RACE)])
def test_load_buffering_where_one_thread_may_be_late(between: str, found: set[str]) -> None:
    """A dependency or a fence in one thread alone does not help."""
    one = LATER.format("x", between, "y", "1", GUARD) + "DATA"
    other = LATER.format("y", "", "x", "1", GUARD) + "DATA"
    assert rules(threads(one, other), 2) == found


@pytest.mark.parametrize(("stored", "found"), [("1", RACE), ("%r20", set())])
def test_a_dependency_through_memory(stored: str, found: set[str]) -> None:
    """What is stored comes from the load by way of memory."""
    between = f"st.global.u32 [%d0+{{0}}], {stored};\nld.global.u32 %r22, [%d0+{{0}}];"
    one = LATER.format("x", between.format(128), "y", "%r22", GUARD) + "DATA"
    other = LATER.format("y", between.format(256), "x", "%r22", GUARD) + "DATA"
    assert rules(threads(one, other), 2) == found


SLEEP = """
st.relaxed.gpu.global.u32 [x], 1;
{fence}
ld.relaxed.gpu.global.u32 %r20, [y];
setp.eq.u32 %p3, %r20, 0;
@%p3 bra END;
st.relaxed.gpu.global.u32 [z], 1;
"""
WAKE = """
st.relaxed.gpu.global.u32 [y], 1;
{fence}
ld.relaxed.gpu.global.u32 %r20, [x];
setp.ne.u32 %p3, %r20, 0;
@%p3 bra END;
SLEEP:
ld.relaxed.gpu.global.u32 %r21, [z];
setp.eq.u32 %p3, %r21, 0;
@%p3 bra SLEEP;
"""
"""A thread says that it sleeps and looks whether there is work; the other one brings work and looks for sleepers."""


@pytest.mark.parametrize(("fence", "found"), [("fence.sc.gpu;", set()), ("fence.acq_rel.gpu;", {"hang"})])
def test_a_sleeper_that_nobody_wakes(fence: str, found: set[str]) -> None:
    assert rules(threads(SLEEP.format(fence=fence), WAKE.format(fence=fence)), 2) == found


def test_a_store_that_depends_on_a_load_in_both_threads() -> None:
    one, other = ("".join((goes_on(mine, 1), store(theirs), "DATA")) for mine, theirs in ("xy", "yx"))
    assert judged(threads(one, other), 1, 2, "zero").word == "clean"


TICKET = """
@!%p0 bra DONE;
atom.relaxed.gpu.global.add.u32 %r20, [%d0], 1;
WAIT:
ld.{acquire}.gpu.global.u32 %r21, [%d0+4];
setp.ne.u32 %p3, %r21, %r20;
@%p3 bra WAIT;
ld.global.u32 %r22, [%d0+64];
add.u32 %r22, %r22, 1;
st.global.u32 [%d0+64], %r22;
add.u32 %r23, %r20, 1;
st.{release}.gpu.global.u32 [%d0+4], %r23;
DONE:"""

SPIN = """
@!%p0 bra DONE;
AGAIN:
ld.relaxed.gpu.global.u32 %r20, [%d0];
setp.ne.u32 %p3, %r20, 0;
@%p3 bra AGAIN;
atom.{acquire}.gpu.global.cas.b32 %r21, [%d0], 0, 1;
setp.ne.u32 %p3, %r21, 0;
@%p3 bra AGAIN;
ld.global.u32 %r22, [%d0+64];
add.u32 %r22, %r22, 1;
st.global.u32 [%d0+64], %r22;
st.{release}.gpu.global.u32 [%d0], 0;
DONE:"""

BARRIER = """
mov.u32 %r30, %ctaid.x;
mul.wide.u32 %d1, %r30, 4;
add.s64 %d2, %d0, %d1;
st.global.u32 [%d2+64], %r30;
ld.relaxed.gpu.global.u32 %r20, [%d0+4];
atom.{release}.gpu.global.add.u32 %r21, [%d0], 1;
setp.ne.u32 %p3, %r21, 2;
@%p3 bra WAIT;
st.relaxed.gpu.global.u32 [%d0], 0;
add.u32 %r22, %r20, 1;
st.{release}.gpu.global.u32 [%d0+4], %r22;
bra OUT;
WAIT:
ld.{acquire}.gpu.global.u32 %r23, [%d0+4];
setp.eq.u32 %p3, %r23, %r20;
@%p3 bra WAIT;
OUT:
ld.global.u32 %r24, [%d0+64];
ld.global.u32 %r25, [%d0+68];
ld.global.u32 %r26, [%d0+72];
"""

SEQUENCE = """
mov.u32 %r30, %ctaid.x;
setp.ne.u32 %p2, %r30, 0;
@%p2 bra READER;
st.relaxed.gpu.global.u32 [%d0], 1;
fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [%d0+4], 7;
st.{release}.gpu.global.u32 [%d0], 2;
bra DONE;
READER:
ld.{acquire}.gpu.global.u32 %r20, [%d0];
ld.relaxed.gpu.global.u32 %r21, [%d0+4];
fence.acq_rel.gpu;
ld.relaxed.gpu.global.u32 %r22, [%d0];
setp.ne.u32 %p3, %r20, 2;
@%p3 bra DONE;
setp.ne.u32 %p3, %r22, 2;
@%p3 bra DONE;
setp.eq.u32 %p3, %r21, 7;
@%p3 bra DONE;
trap;
DONE:"""


@pytest.mark.parametrize(("kernel", "ctas", "broken"), [
    (TICKET, 2, RACE), (SPIN, 2, RACE), (SEQUENCE, 2, {"trap"}),
])  # fmt: skip
def test_locks_and_sequences(kernel: str, ctas: int, broken: set[str]) -> None:
    """With acquire and release nothing is found; without one of them the data races, or the old data is seen."""
    acquire = "acquire"
    assert rules(kernel.format(acquire=acquire, release="release"), ctas) == set()
    assert rules(kernel.format(acquire=acquire, release="relaxed"), ctas) == broken
    assert rules(kernel.format(acquire="relaxed", release="release"), ctas) == broken


@pytest.mark.parametrize(("acquire", "release", "found"), [
    ("acquire", "acq_rel", set()), ("relaxed", "acq_rel", RACE), ("acquire", "relaxed", RACE),
])  # fmt: skip
def test_a_grid_barrier_with_generations(acquire: str, release: str, found: set[str]) -> None:
    body = BARRIER.format(acquire=acquire, release=release).replace("st.acq_rel", "st.release")
    assert rules(body, 3) == found


@pytest.mark.share(3)
@pytest.mark.parametrize("load", ["add.u32 %r20, [{}], 0", "or.b32 %r20, [{}], 0", "cas.b32 %r20, [{}], 0, 0"])
@pytest.mark.parametrize(("sem", "fence", "found"), [
    ("relaxed", "", RACE), ("acquire", "", RACE), ("acq_rel", "", set()), ("relaxed", SC, set()),
    ("relaxed", ACQ_REL, set()),
])  # fmt: skip
def test_atomic_operations_that_stand_for_loads(load: str, sem: str, fence: str, found: set[str]) -> None:
    """Each operation may come before the other thread's in memory, and after its own thread's: unless it is ordered."""
    bodies = [
        f"atom.{sem}.gpu.global.exch.b32 %r21, [{mine}], 1;\n{fence}\natom.{sem}.gpu.global.{load.format(theirs)};\n"
        "setp.ne.u32 %p3, %r20, 0;\n@%p3 bra END;DATA"
        for mine, theirs in ("xy", "yx")
    ]
    assert rules(threads(*bodies), 2) == found


@pytest.mark.parametrize(("value", "word"), [(1, "findings"), (2, "clean")])
def test_a_store_that_depends_on_a_load_and_is_read_by_others_late(value: int, word: str) -> None:
    """Three threads count without an atomic operation. That a store depends on a load forbids nothing where another
    load returns it that comes later: each of the 16 executions is one.
    """
    count = f"ld.relaxed.gpu.global.u32 %r20, [x];\nadd.u32 %r21, %r20, 1;\n{store('x').replace(' 1;', ' %r21;')}\n"
    one_text = f"{count}setp.ne.u32 %p3, %r20, {value};\n@%p3 bra END;\nmov.u32 %r22, %ctaid.x;\n"
    verdict = judged(threads(one_text + "st.global.u32 [%d0+64], %r22;"), 1, 3, "zero")
    assert (verdict.word, verdict.exhaustive, verdict.explored) == (word, True, 16)


@pytest.mark.parametrize(("value", "found"), [(1, {"equal-store-race"}), (2, RACE)])
def test_equal_stores_in_an_execution_that_no_schedule_shows(value: int, found: set[str]) -> None:
    """The flag that is read is an older one; so nothing orders the stores of the data."""
    data = "st.global.u32 [%d0+64], {};\n"
    seen = "ld.acquire.gpu.global.u32 %r20, [x];\nsetp.eq.u32 %p3, %r20, 0;\n"
    other = seen + data.format(value) + "@%p3 bra END;\nld.global.u32 %r21, [%d0+64];"
    assert rules(threads(data.format(1) + store("x", sem="release"), other), 2) == found
