"""mbarrier objects of compiled modules: ranges of operands, state spaces, states, and what the rows refuse."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, verdict_of

INIT = "@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\nbar.sync 0;\n"
PEER = "mapa.shared::cluster.u32 %r10, %r4, %r6;\ncvt.u64.u32 %d10, %r10;\ncvta.shared.u64 %d10, %d10;\n"
TOGETHER = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"


def messages(body: str, **launch: int) -> list[str]:
    verdict = verdict_of(body, **launch)  # type: ignore[arg-type]
    return [finding.message for finding in verdict.findings] or list(verdict.open)


@pytest.mark.parametrize("put", ["", "mov.u32 %r10, {0};\n"], ids=["text", "register"])
@pytest.mark.parametrize(
    ("line", "value", "why"),
    [
        ("mbarrier.init.shared::cta.b64 [%r4], {0};", 0, "the count of mbarrier.init is from 1 to 1048575"),
        ("mbarrier.init.shared::cta.b64 [%r4], {0};", 1 << 20, "the count of mbarrier.init is from 1 to 1048575"),
        ("mbarrier.init.shared::cta.b64 [%r4], {0};", (1 << 20) - 1, ""),
        ("mbarrier.init.layout::v1.shared::cta.b64 [%r4], {0};", 512, "the count of mbarrier.init is from 1 to 511"),
        ("mbarrier.init.layout::v1.shared::cta.b64 [%r4], {0};", 511, ""),
        ("mbarrier.arrive.shared::cta.b64 _, [%r4+8], {0};", 0, "the count of an arrive is from 1 to 1048575"),
        ("mbarrier.arrive.shared::cta.b64 _, [%r4+8], {0};", 1, ""),
        ("mbarrier.arrive_drop.shared::cta.b64 _, [%r4+8], {0};", 0, "the count of an arrive is from 1 to 1048575"),
        ("mbarrier.expect_tx.shared::cta.b64 [%r4+8], {0};", 1 << 20, "a transaction count is from 0 to 1048575"),
        ("mbarrier.expect_tx.shared::cta.b64 [%r4+8], {0};", 0, ""),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4+8], {0};", 1 << 20, "a transaction count is from 0"),
        ("mbarrier.test_wait.parity.shared::cta.b64 %p5, [%r4+8], {0};", 2, "a phase parity is from 0 to 1"),
        ("mbarrier.test_wait.parity.shared::cta.b64 %p5, [%r4+8], {0};", 1, ""),
    ],
)
def test_ranges_of_operands(line: str, value: int, why: str, put: str) -> None:
    """ "the valid values of phaseParity operand are 0 and 1", "the count must be in the range ..." and their like."""
    begun = "mbarrier.init.shared::cta.b64 [%r4+8], 4;\n" if "+8" in line else ""
    body = f"@!%p0 bra OVER;\n{begun}{put.format(value)}{line.format('%r10' if put else value)}\nOVER:\n"
    found = messages(body)
    assert any((why or " is from ") in message for message in found) is bool(why), found


@pytest.mark.parametrize(
    "line",
    [
        "mbarrier.init.shared::cta.b64 [%r4], %r10;",
        "mbarrier.arrive.shared::cta.b64 _, [%r4], %r10;",
        "mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], %r10;",
        "mbarrier.arrive.shared::cta.b64 _, [%r10];",
    ],
)
def test_an_unknown_operand_is_undecided(line: str) -> None:
    verdict = verdict_of(f"ld.global.u32 %r10, [%d0];\n{line}")
    assert verdict.word == "undecided" and "depends on a value that this run does not know" in verdict.open[0]


def test_a_parity_of_minus_one_is_noted() -> None:
    """What Triton writes: the sign of a bit, extended."""
    arrive = "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r4];\n"
    again = "".join(
        f"{arrive}W{n}: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], {parity};\n@!%p5 bra W{n};\nbar.sync 0;\n"
        for n, parity in enumerate((0, -1))
    )
    verdict = verdict_of(INIT + again)
    assert verdict.word == "clean" and any("a phase parity of -1 counts as 1" in what for what in verdict.assumptions)


@pytest.mark.parametrize(
    ("line", "where", "found"),
    [
        ("mbarrier.arrive.b64 _, [{0}];", "%d11", set()),
        ("mbarrier.arrive.b64 _, [{0}];", "%d12", {"undefined-address"}),
        ("mbarrier.arrive.shared::cta.b64 _, [{0}];", "%r4", set()),
        ("mbarrier.arrive.shared::cta.b64 _, [{0}];", "%r13", {"undefined-address"}),
    ],
)
def test_without_a_state_space_an_address_is_generic(line: str, where: str, found: set[str]) -> None:
    """ "If no state space is specified then Generic Addressing is used."; objects are aligned to 8 bytes."""
    put = "cvt.u64.u32 %d12, %r4;\ncvta.shared.u64 %d11, %d12;\nadd.u32 %r13, %r4, 4;\n"
    assert rules(verdict_of(f"{INIT}{put}@%p0 {line.format(where)}")) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mbarrier.init.b64 [%d10], 1;", {"undefined-address"}),
        ("mbarrier.inval.b64 [%d10];", {"undefined-address"}),
        ("mbarrier.test_wait.parity.b64 %p5, [%d10], 1;", {"undefined-address"}),
        ("mbarrier.arrive.release.cluster.b64 _, [%d10];", set()),
        ("mbarrier.arrive.release.cluster.b64 %d11, [%d10];", {"undefined-instruction"}),
        ("mbarrier.expect_tx.b64 [%d10], 0;", set()),
    ],
)
def test_what_may_be_done_to_an_object_of_another_cta(line: str, found: set[str]) -> None:
    """Arrivals and transactions, "cannot return result"; "other mbarrier operations: not supported"."""
    body = f"{PEER}{INIT}fence.mbarrier_init.release.cluster;\n{TOGETHER}@%p0 {line}\n{TOGETHER}"
    assert rules(verdict_of(body, ctas=2, cluster=2)) == found


@pytest.mark.parametrize(
    ("arrive", "found"),
    [
        ("arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%r4], 3", set()),
        ("arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%r10], 1, %r11", set()),
        ("arrive.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%r4], 3", {"data-race"}),
        ("arrive.shared::cluster.multicast::cluster::32b.b64 _, [%r4], 3", {"data-race"}),
        ("arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%r4], 1", {"hang"}),
    ],
)
def test_a_multicast_arrives_in_each_cta_of_the_mask(arrive: str, found: set[str]) -> None:
    """ "multicast to the same CTA-relative offset as addr in the shared memory of each target CTA"; an arrival each."""
    body = f"""{PEER}{INIT}fence.mbarrier_init.release.cluster;\n{TOGETHER}
mov.u32 %r11, 3;
setp.ne.u32 %p5, %r6, 1;
@%p5 bra WAIT;
@!%p0 bra WAIT;
st.global.u32 [%d0], 7;
mbarrier.{arrive};
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p6, [%r4], 0;
@!%p6 bra WAIT;
ld.global.u32 %r12, [%d0];
{TOGETHER}"""
    assert rules(verdict_of(body, ctas=2, cluster=2)) == found


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("mbarrier.arrive.shared::cta.multicast::cluster::32b.b64 _, [%r4], 3;", "goes to the CTAs of a cluster"),
        ("mbarrier.arrive.shared::cluster.multicast::cluster::32b.b64 %d10, [%r4], 3;", "returns nothing"),
        ("mbarrier.arrive.shared::cluster.multicast::cluster::16b.b64 _, [%r4], 3;", "has masks of 32 bits only"),
        ("mbarrier.arrive.multicast::cluster::32b.b64 _, [%d4];", "takes state, [addr]{, count}, ctaMask; 2 are given"),
        ("mbarrier.arrive.release.cluster.shared::cluster.b64 %d10, [%r4];", "returns nothing"),
        ("mbarrier.arrive.shared::cta.b64 [%r4];", "takes state, [addr]{, count}"),
        ("mbarrier.arrive.acquire.cta.shared::cta.b64 _, [%r4];", "an arrive cannot acquire"),
        ("mbarrier.arrive.release.shared::cta.b64 _, [%r4];", "needs a scope"),
        ("mbarrier.arrive.release.gpu.shared::cta.b64 _, [%r4];", ".cta or .cluster scope"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4];", "needs a transaction count"),
        ("mbarrier.try_wait.parity.shared::cluster.b64 %p5, [%r4], 0;", "objects of the executing CTA only"),
        ("mbarrier.try_wait.shared::cta.b64 %p5, [%r4], 0;", "takes the state that an arrive returned"),
        ("mbarrier.test_wait.parity.shared::cta.b64 %p5, [%r4], 0, 100;", "operands are given"),
        ("mbarrier.init.shared::cta.b64 [%r4];", "takes [addr], count"),
        ("mbarrier.pending_count.layout::v1.b64 %r10, %d10;", "for objects of .layout::v0"),
    ],
)
def test_what_the_table_refuses(line: str, why: str) -> None:
    verdict = verdict_of(line)
    assert verdict.word == "undecided" and why in verdict.open[0], verdict.open


STATES = INIT + "@%p0 mbarrier.init.shared::cta.b64 [%r4+8], 1;\nbar.sync 0;\n@!%p0 bra OVER;\n"
WAIT = "W{0}: mbarrier.try_wait.shared::cta.b64 %p5, [%r4{1}], {2};\n@!%p5 bra W{0};\n"
TWICE = "".join(
    f"mbarrier.arrive.shared::cta.b64 %d1{number}, [%r4];\n" + WAIT.format(number, "", f"%d1{number}")
    for number in range(2)
)
"""Two phases, each with its state."""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("mbarrier.arrive.shared::cta.b64 %d10, [%r4];\n" + WAIT.format(0, "", "%d10"), set()),
        (
            "mbarrier.arrive.shared::cta.b64 %d10, [%r4];\nmbarrier.arrive.shared::cta.b64 _, [%r4+8];\n"
            + WAIT.format(0, "+8", "%d10"),
            {"undefined-instruction"},
        ),
        (
            "mbarrier.arrive.shared::cta.b64 %d10, [%r4];\nmbarrier.inval.shared::cta.b64 [%r4];\n"
            "mbarrier.init.shared::cta.b64 [%r4], 1;\nmbarrier.arrive.shared::cta.b64 _, [%r4];\n"
            + WAIT.format(0, "", "%d10"),
            {"undefined-mbarrier-state"},
        ),
        ("mbarrier.arrive.shared::cta.b64 %d10, [%r4];\nmbarrier.pending_count.b64 %r10, %d10;\n"
         + WAIT.format(0, "", "%d10"), {"undefined-instruction"}),
        (
            "mbarrier.init.shared::cta.b64 [%r4+16], 2;\n"
            "mbarrier.arrive.noComplete.shared::cta.b64 %d10, [%r4+16], 1;\nmbarrier.pending_count.b64 %r10, %d10;\n",
            set(),
        ),
        (TWICE + "mbarrier.test_wait.shared::cta.b64 %p5, [%r4], %d11;\n", set()),
        (TWICE + "mbarrier.test_wait.shared::cta.b64 %p5, [%r4], %d10;\n", {"undefined-mbarrier-state"}),
    ],
    ids=[
        "its own", "of another object", "of an earlier life", "without noComplete", "with noComplete",
        "of the phase before", "of the phase before that one",
    ],
)  # fmt: skip
def test_states(body: str, found: set[str]) -> None:
    """A state is one "returned by an mbarrier.arrive instruction on the same mbarrier object"."""
    assert rules(verdict_of(STATES + body + "OVER:\n")) == found


def test_a_pending_count_depends_on_the_schedule() -> None:
    body = (
        "mbarrier.init.shared::cta.b64 [%r4+16], 2;\nmbarrier.arrive.noComplete.shared::cta.b64 %d10, [%r4+16], 1;\n"
        "mbarrier.pending_count.b64 %r10, %d10;\nsetp.eq.u32 %p5, %r10, 2;\n@%p5 st.global.u32 [%d0], 1;\n"
    )
    verdict = verdict_of(STATES + body + "OVER:\n")
    assert verdict.word == "undecided" and "depends on a value" in verdict.open[0]


def test_reports_of_a_layout_are_zero() -> None:
    body = (
        "mbarrier.arrive.shared::cta.b64 _, [%r4];\n"
        "W: mbarrier.try_wait.parity.phase_type::primary.shared::cta.b64 %p5|%p6, %d10, [%r4], 0;\n@!%p5 bra W;\n"
        "@%p6 trap;\n"
    )
    verdict = verdict_of(STATES + body + "OVER:\n")
    assert not verdict.findings


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mbarrier.arrive.multicast::cluster::32b.b64 _, [%d10], 1;", set()),
        ("mbarrier.arrive.multicast::cluster::32b.b64 _, [%d0], 1;", {"undefined-address", "undefined-instruction"}),
        ("mbarrier.arrive.shared::cluster.multicast::cluster::32b.b64 _, [%r11], 1;", {"undefined-instruction"}),
        ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [%d10], %h1;", set()),
        (
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [%d0], %h1;",
            {"undefined-address", "undefined-instruction"},
        ),
    ],
)
def test_a_multicast_from_an_address_that_is_in_no_cta(line: str, found: set[str]) -> None:
    """Generic addresses of global memory, and an address behind the shared memory of the cluster."""
    put = "cvt.u64.u32 %d10, %r4;\ncvta.shared.u64 %d10, %d10;\nadd.u32 %r11, %r4, 0x10000000;\nmov.b16 %h1, 1;\n"
    assert rules(verdict_of(f"{INIT}{put}@%p0 {line}")) == found


@pytest.mark.parametrize(
    ("init", "asked", "has"), [(".layout::v1", "v1", 1), (".layout::v1", "v0", 0), ("", "v0", 1), ("", "v1", 0)]
)
def test_the_layout_is_that_of_the_init(init: str, asked: str, has: int) -> None:
    body = f"@%p0 mbarrier.init{init}.shared::cta.b64 [%r4], 1;\nbar.sync 0;\n"
    body += f"mbarrier.check_layout.layout::{asked}.shared::cta.b64 %p5, [%r4];\nselp.u32 %r10, 1, 0, %p5;\n"
    body += f"setp.ne.u32 %p6, %r10, {has};\n@%p6 trap;\n"
    verdict = verdict_of(body)
    assert verdict.word == "clean", verdict
    assert rules(verdict_of(body.replace("bar.sync 0;", ""))) == {"undefined-before-init"}


@pytest.mark.parametrize(
    ("meeting", "found"),
    [
        ("bar.warp.sync -1;", set()),
        ("match.any.sync.b32 %r10, 5, -1;", set()),
        ("activemask.b32 %r10;", {"undefined-mbarrier-inval"}),
        ("", {"undefined-mbarrier-inval"}),
    ],
)
def test_lanes_that_meet_keep_their_order_on_an_object(meeting: str, found: set[str]) -> None:
    """The lanes of a warp arrive, one of them invalidates the object: once they have met, it is the last to use it."""
    init = INIT.replace(", 1;", ", 32;")
    body = f"{init}mbarrier.arrive.shared::cta.b64 _, [%r4];\n{meeting}\n@%p0 mbarrier.inval.shared::cta.b64 [%r4];\n"
    assert rules(verdict_of(body)) == found


@pytest.mark.parametrize("test", ["test_wait", "try_wait"])
@pytest.mark.parametrize("before", ["", f"{INIT}@%p0 mbarrier.inval.shared::cta.b64 [%r4];\nbar.sync 0;\n"])
def test_a_test_that_only_looks_ahead_has_an_object(before: str, test: str) -> None:
    line = f"mbarrier.{test}.parity.shared::cta.b64 %p5, [%r4], 0;\n"
    assert rules(verdict_of(f"{before}{line}")) == {"undefined-mbarrier"}
    assert verdict_of(f"{INIT}{line}").word == "clean"
