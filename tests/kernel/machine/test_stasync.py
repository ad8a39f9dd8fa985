"""st.async and red.async of kernels: to global memory with .release, and to the shared memory of the cluster."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, text_of, verdict_of, wait
from helpers.kernel.samples import judged

from memmodel.cat.load import load_model
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import parse_launch
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

POLLED = """
mov.u32 %r10, %ctaid.x;
setp.ne.u32 %p3, %r10, 0;
@%p3 bra READER;
st.global.u32 [%d0+64], 7;
{store};
{after}
ret;
READER:
ld.{load}.gpu.global.u32 %r11, [%d0];
setp.ne.u32 %p4, %r11, 1;
@%p4 bra READER;
ld.global.u32 %r12, [%d0+64];
"""
"""CTA 0 writes data and, asynchronously, a flag; CTA 1 polls the flag and reads the data."""

STORE = "st.async.release.gpu.global.u32 [%d0], 1"


def polled(store: str = STORE, load: str = "acquire", after: str = "") -> KernelVerdict:
    return judged(POLLED.format(store=store, load=load, after=after), 1, 2, "zero")


@pytest.mark.parametrize(
    "store",
    [
        STORE,
        "st.async.mmio.release.sys.global.u32 [%d0], 1",
        "st.async.release.sys.u32 [%d0], 1",
        "red.async.release.gpu.global.add.u32 [%d0], 1",
    ],
)
def test_the_issue_of_a_release_comes_before_who_acquires_it(store: str) -> None:
    verdict = polled(store)
    assert verdict.word == "clean", (rules(verdict), verdict.open)


@pytest.mark.parametrize(
    ("load", "after"), [("relaxed", ""), ("acquire", "st.global.u32 [%d0+64], 8;")], ids=["relaxed", "after"]
)
def test_what_a_release_does_not_order(load: str, after: str) -> None:
    """Nothing acquires it; or the store stands after the issue."""
    assert rules(polled(load=load, after=after)) == {"data-race"}


def test_an_asynchronous_store_is_not_in_program_order() -> None:
    """A weak load of the same thread races with it."""
    assert "data-race" in rules(judged(f"{STORE};\nld.global.u32 %r10, [%d0];", threads=1))


def test_two_asynchronous_stores_of_one_thread_have_no_order() -> None:
    """Which is the last one depends on the schedule, and so does the branch."""
    body = f"{STORE};\n{STORE.replace(', 1', ', 2')};\nbar.sync 0;\n"
    branch = (
        "ld.relaxed.gpu.global.u32 %r10, [%d0];\nsetp.eq.u32 %p3, %r10, 2;\n@%p3 bra X;\nst.global.u32 [%d0+8], 1;\nX:"
    )
    assert judged(body + branch, threads=1, init="zero").word == "explored"


def test_counting_is_no_race() -> None:
    assert judged("red.async.release.gpu.global.add.u32 [%d0], 1;", threads=64, ctas=2, init="zero").word == "clean"
    mixed = "red.async.release.gpu.global.add.u32 [%d0], 1;\nst.global.u32 [%d0], 1;"
    assert "data-race" in rules(judged(mixed, threads=64, ctas=2, init="zero"))


@pytest.mark.parametrize("where", ["%d0+2", "%d9"])
def test_where_a_release_goes(where: str) -> None:
    """To aligned global memory, and not to shared memory."""
    body = f"cvt.u64.u32 %d8, %r2;\ncvta.shared.u64 %d9, %d8;\nst.async.release.gpu.u32 [{where}], 1;"
    assert rules(judged(body, threads=1)) == {"undefined-address"}


# ---- to the shared memory of the cluster -----------------------------------------------------------------------

MEET = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
SENT = f"""@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 4;
{MEET}mapa.shared::cluster.u32 %r10, %r4, {{to}};
mapa.shared::cluster.u32 %r11, %r2, {{to}};
@%p0 {{store}} [%r11], 5, [%r10];
{{wait}}ld.shared.u32 %r12, [%r2];
{MEET.replace("aligned;", "aligned ;")}"""
"""Thread 0 of each CTA sends a word to the other one, which waits for it."""

STORES = [
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32",
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32",
]


def sent(
    store: str, to: str = "%r6", waits: str = wait("%r4", 0, ".acquire.cluster"), cluster: int = 2
) -> KernelVerdict:
    return verdict_of(SENT.format(store=store, to=to, wait=waits), ctas=2, cluster=cluster)


@pytest.mark.parametrize("store", STORES)
def test_a_complete_tx_tells_of_the_end(store: str) -> None:
    verdict = sent(store)
    assert verdict.word == "clean", (rules(verdict), verdict.open)
    assert "data-race" in rules(sent(store, waits=""))


@pytest.mark.parametrize(
    ("store", "to", "cluster", "rule"),
    [
        (STORES[0], "%r5", 1, "undefined-instruction"),
        (STORES[2], "%r5", 2, "undefined-address"),
        (STORES[2], "%r5", 1, "undefined-address"),
    ],
)
def test_which_ctas_may_be_written_to(store: str, to: str, cluster: int, rule: str) -> None:
    """A store needs a cluster of several CTAs; the window of a reduction is the shared memory of other CTAs."""
    assert rule in rules(sent(store, to, cluster=cluster))


def test_a_store_to_the_own_cta_of_a_cluster() -> None:
    assert sent(STORES[0], "%r5").word == "clean"


@pytest.mark.share(2)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("waits", [True, False])
def test_representatives_show_what_all_threads_show(store: str, waits: bool) -> None:
    """The findings with the reduction by symmetry are those without it; all lanes send to one place."""
    body = SENT.replace("@%p0 {store}", "{store}").replace(", 4;", ", 128;")
    text = text_of(body.format(store=store, to="%r6", wait=wait("%r4", 0, ".acquire.cluster") if waits else ""))
    read = parse_module(Source("k.ptx", text))
    params = [{"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 64}]
    params.append({"name": "map", "type": "bytes", "hex": "00" * 128})
    launch = parse_launch({"grid": [2, 1, 1], "block": [32, 1, 1], "cluster": [2, 1, 1], "params": params})
    run = run_launch(read, entry_of(read, "k"), launch)
    model = load_model("ptx-9.4")

    def found(*, symmetric: bool) -> set[tuple[str, frozenset[int]]]:
        made = RunJudge(entry_of(read, "k"), run, symmetric=symmetric).judgement(model)
        return {(one.rule, frozenset(side.instruction.line for side in one.sides)) for one in made.findings}

    assert found(symmetric=True) == found(symmetric=False)
    assert found(symmetric=True) or (waits and store.startswith("red"))


COUNTED = """mov.u32 %r10, %ctaid.x;
mul.wide.u32 %d6, %r10, 4;
add.u64 %d5, %d0, %d6;
st.global.u32 [%d5+256], 7;
red.async.release.gpu.global.add.u32 [%d0], 1;
R: ld.{load}.gpu.global.u32 %r11, [%d0];
setp.ne.u32 %p4, %r11, 2;
@%p4 bra R;
ld.global.u32 %r12, [%d0+256];
ld.global.u32 %r12, [%d0+260];
"""


def test_a_counter_of_asynchronous_reductions() -> None:
    """Each hands on what it read, so that who sees 2 comes after both."""
    verdict = judged(COUNTED.format(load="acquire"), 1, 2, "zero")
    assert verdict.word == "explored" and not verdict.findings
    assert rules(judged(COUNTED.format(load="relaxed"), 1, 2, "zero")) == {"data-race"}


SUMMED = f"""@%p0 mbarrier.init.shared.b64 [%r4], 1;
@%p0 st.shared.u32 [%r2], 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 8;
{MEET}mapa.shared::cluster.u32 %r10, %r4, %r6;
mapa.shared::cluster.u32 %r11, %r2, %r6;
setp.eq.u32 %p5, %r0, 0;
setp.eq.u32 %p6, %r0, 1;
@%p5 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r11], 5, [%r10];
@%p6 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.OP.u32 [%r11], 7, [%r10];
{wait("%r4", 0, ".acquire.cluster")}ld.shared.u32 %r12, [%r2];
setp.ne.u32 %p7, %r12, 12;
@%p7 st.shared.u32 [%r2+64], 1;
"""


def test_what_reductions_of_two_kinds_leave() -> None:
    """Sums are the same in every order; 5 added to the maximum with 7 is 12, and the other way round 7."""
    assert verdict_of(SUMMED.replace("OP", "add"), ctas=2, cluster=2).word == "clean"
    assert verdict_of(SUMMED.replace("OP", "max"), ctas=2, cluster=2).word == "explored"
