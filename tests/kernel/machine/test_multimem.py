"""multimem instructions of kernels: their accesses, their place in the order, and what is taken for granted."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, kernel_text

from memmodel.cat.load import load_model
from memmodel.errors import InputError
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.launch import parse_launch
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

VALUES = "{%f0, %f1, %f2, %f3}"
FIRST = "setp.eq.s32 %p1, %r0, 0;\n"


def judged(
    body: str, threads: int = 64, ctas: int = 1, before: str = "", points_to: tuple[str, ...] | None = ("own",),
    others: tuple[object, ...] = (),
) -> KernelVerdict:  # fmt: skip
    """The verdict on a kernel whose parameter is a multimem address; `own` is its replica, at 0x200000000."""
    text = kernel_text(f"mov.u64 %d9, 0x200000000;\n{body}", before)
    param = {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 4096}
    param |= {} if points_to is None else {"multimem": points_to}
    buffers = [{"name": "own", "address": "0x200000000", "bytes": 4096, "init": "zero"}, *others]
    launch = parse_launch({"grid": [ctas, 1, 1], "block": [threads, 1, 1], "params": [param], "buffers": buffers})
    read = parse_module(Source("k.ptx", text))
    return judge(read, entry(read), launch, load_model("ptx-9.4"))


def rules(verdict: KernelVerdict) -> set[str]:
    return {one.rule for one in verdict.findings}


@pytest.mark.parametrize(
    "instruction",
    [
        "multimem.ld_reduce.relaxed.sys.global.add.f32 %f0, [%d0]",
        f"multimem.ld_reduce.weak.global.add.v4.f32 {VALUES}, [%d0]",
        "multimem.ld_reduce.add.acc::f32.v2.f16x2 {%r10, %r11}, [%d0]",
        "multimem.ld_reduce.relaxed.cta.min.v2.e4m3x2 {%h0, %h1}, [%d0]",
        "multimem.ld_reduce.add.acc::f16.v4.e5m2 {%h0, %h1, %h2, %h3}, [%d0]",
        "multimem.st.relaxed.sys.global.f32 [%d0], %f0",
        f"multimem.red.relaxed.sys.global.add.v4.f32 [%d0], {VALUES}",
        "multimem.red.max.u64 [%d0], %d5",
    ],
)
def test_no_race_with_itself(instruction: str) -> None:
    verdict = judged(f"mov.u64 %d5, 1;\n{instruction};", ctas=2)
    assert verdict.word == "clean", (rules(verdict), verdict.open)
    assert judged(f"mov.u64 %d5, 1;\n{instruction};", ctas=2, points_to=()).word == "clean"


def test_the_launch_says_what_a_multimem_address_points_to() -> None:
    body = "multimem.red.add.u32 [%d0], 1;"
    verdict = judged(body, points_to=None)
    assert verdict.word == "undecided" and "does not say" in str(verdict.open)
    assert "data-race" in rules(judged("multimem.st.weak.u32 [%d0], %r0;", ctas=2, points_to=None))
    with pytest.raises(InputError):
        judged(body, points_to=("nothing",))


def test_two_multimem_addresses_of_one_memory_are_not_judged_as_one() -> None:
    """They are different virtual addresses, and a barrier alone orders nothing between them."""
    launch = {"name": "other", "address": "0x300000000", "bytes": 4096, "multimem": ["own"]}
    body = "mov.u64 %d8, 0x300000000;\nmultimem.red.add.u32 [%d0], 1;\nbar.sync 0;\n"
    body += "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r10, [%d8];"
    verdict = judged(body, others=(launch,))
    assert verdict.word == "undecided" and "another multimem address" in str(verdict.open)
    assert judged(body.replace("[%d8]", "[%d0]"), others=(launch,)).word == "clean"


@pytest.mark.parametrize(
    "instruction", ["multimem.st.global.f32 [%d0], %f0", "multimem.st.relaxed.cta.global.f32 [%d0], %f0"]
)
def test_races_of_stores(instruction: str) -> None:
    assert "data-race" in rules(judged(f"{instruction};", ctas=2))


UPDATES = [
    "multimem.st.release.gpu.global.u32 [%d0], 1",
    "multimem.red.add.u32 [%d0], 1",
    "multimem.st.weak.global.u32 [%d0], 1",
    "multimem.cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 16",
    "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r2], 16",
]


@pytest.mark.parametrize("update", UPDATES)
def test_a_barrier_orders_what_a_warp_reads(update: str) -> None:
    end = "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n" if ".cp." in update else ""
    body = f"{FIRST}@%p1 {update};\n{end}{{}}@!%p1 multimem.ld_reduce.weak.global.add.u32 %r10, [%d0];"
    assert judged(body.format("bar.sync 0;\n")).word == "clean"
    assert "data-race" in rules(judged(body.format("")))


def test_what_is_reduced_decides_nothing_here() -> None:
    """A loop that polls it waits for what other devices add."""
    body = "multimem.red.release.sys.add.u32 [%d0], 1;\nL: {} %r10, [{}];\nsetp.lt.u32 %p1, %r10, 2;\n@%p1 bra L;"
    polls = "multimem.ld_reduce.acquire.sys.global.add.u32", "%d0"
    assert judged(body.format(*polls), threads=1).word == "undecided"
    other = judged(body.format("ld.acquire.sys.global.u32", "flag"), threads=1, before=".global .u32 flag;")
    assert other.word == "undecided" and "another device" in str(other.open)


@pytest.mark.parametrize(
    ("load", "before", "word"),
    [
        ("ld.acquire.sys.global.u32", "", "undecided"),
        ("ld.volatile.global.u32", "", "undecided"),
        ("ld.acquire.gpu.global.u32", "", "findings"),  # the scope leaves others out
        ("ld.acquire.sys.global.u32", "st.relaxed.sys.global.u32 [flag], 0;", "findings"),  # who writes it is here
    ],
)
def test_who_polls_what_others_may_write_does_not_hang(load: str, before: str, word: str) -> None:
    """A signal pad, which a peer or the host writes."""
    poll = f"{before}\nL: {load} %r10, [flag];\nsetp.eq.u32 %p1, %r10, 0;\n@%p1 bra L;\nbar.sync 0;"
    verdict = judged(poll, threads=1, before=".global .u32 flag;")
    assert verdict.word == word and ("another device" in str(verdict.open)) == (word == "undecided")
    assert word == "undecided" or "hang" in rules(verdict)


@pytest.mark.parametrize(
    ("line", "spoken"),
    [
        ("st.relaxed.sys.global.u32 [flag], 1;", True),
        ("st.volatile.global.u32 [flag], 1;", True),
        ("st.weak.global.u32 [flag], 1;\nfence.acq_rel.sys;", True),
        ("st.relaxed.gpu.global.u32 [flag], 1;", False),
        ("st.volatile.shared.u32 [%r2], 1;", False),
    ],
)
def test_a_clean_verdict_says_that_others_were_left_out(line: str, spoken: bool) -> None:
    """The peers that a launch speaks to are not looked at."""
    verdict = judged(line, threads=1, before=".global .u32 flag;")
    others = [what for what in verdict.assumptions if "other devices touch none" in what]
    assert verdict.clean and any("multimem addresses of" in what for what in others)
    assert any(".sys in line" in what for what in others) == spoken


def test_a_multimem_address_is_for_multimem_instructions() -> None:
    assert rules(judged("multimem.red.add.u32 [%d0], 1;\nld.global.u32 %r10, [%d0+64];", threads=1)) == {
        "undefined-address"
    }
    assert rules(judged(f"multimem.st.v4.f32 [%d0+4], {VALUES};", threads=1)) == {"undefined-address"}


def test_a_copy_reads_through_the_async_proxy() -> None:
    body = "st.shared.u32 [%r2], 1;\n{}multimem.cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 256;"
    end = "\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
    assert "data-race" in rules(judged(body.format("") + end, threads=1))
    assert judged(body.format("fence.proxy.async.shared::cta;\n") + end, threads=1).word == "clean"


SIDES = """setp.eq.s32 %p1, %r0, 0;
@%p1 multimem.st.weak.global.u32 [%d0+16], 1;
{sync}
@!%p1 ld.global.u32 %r10, [%d9+{at}];
"""


def test_a_replica_is_the_same_memory_at_another_address() -> None:
    """What goes through one address and then through the other needs a proxy fence on the way ("Proxies")."""
    alias = "fence.proxy.alias;\nbar.sync 0;\nfence.proxy.alias;"
    assert judged(SIDES.format(sync=alias, at=16)).word == "clean"
    for sync in ("", "bar.sync 0;"):
        assert rules(judged(SIDES.format(sync=sync, at=16))) == {"data-race"}
    assert judged(SIDES.format(sync="", at=20)).word == "clean"


def test_an_atomic_of_the_replica_races_with_a_reduction() -> None:
    """They are morally strong only through one address."""
    body = (
        "setp.eq.s32 %p1, %r0, 0;\n@%p1 multimem.red.add.u32 [%d0], 1;\n@!%p1 red.relaxed.sys.global.add.u32 [{}], 1;"
    )
    assert "data-race" in rules(judged(body.format("%d9"), threads=2))
    assert judged(body.format("%d9+64"), threads=2).word == "clean"


@pytest.mark.parametrize(("store", "op"), [("st", ""), ("red", ".add"), ("st.async", ""), ("red.async", ".add")])
def test_asynchronous_stores_are_not_in_program_order(store: str, op: str) -> None:
    """A weak access of the same thread through the same address races with an asynchronous one only."""
    body = f"multimem.{store}.release.gpu.global{op}.u32 [%d0], 1;\nmultimem.ld_reduce.weak.add.u32 %r10, [%d0];"
    assert ("data-race" in rules(judged(body, threads=1))) is ("async" in store)
    assert judged(f"multimem.{store}.release.gpu.global{op}.u32 [%d0], 1;", threads=1, ctas=2).word == "clean"
