"""The windows of state spaces among generic addresses: isspacep, cvta, mapa, getctarank, by their pages."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, verdict_of
from helpers.kernel.samples import judged

BASES = {
    "global": "mov.u64 %d9, %d0;",
    "const": "mov.u64 %d9, c;\ncvta.const.u64 %d9, %d9;",
    "shared": "cvta.shared.u64 %d9, s;",
    "local": "mov.u64 %d9, l;\ncvta.local.u64 %d9, %d9;",
    "param": "mov.b64 %d9, k_param_0;\ncvta.param.u64 %d9, %d9;",
    "null": "mov.u64 %d9, 0;",
}
"""Generic addresses, by the state space of what is there."""

INSIDE = {
    "global": {"global", "param", "null"},
    "const": {"const"},
    "shared": {"shared"},
    "shared::cta": {"shared"},
    "shared::cluster": {"shared"},
    "local": {"local"},
    "param": {"param"},
    "param::entry": {"param"},
}
"""Which of them are in a window: kernel parameters are in that of .global too ("isspacep")."""

FAILS = "@{} st.global.u32 [%d0+1048576], 1;"


def found(body: str) -> set[str]:
    """The rules that a thread breaks."""
    before = ".local .align 64 .b8 l[128];\n"
    verdict = judged(before + body, threads=1, init="zero", before=".const .align 64 .b8 c[128];\n")
    assert not verdict.open
    return {finding.rule for finding in verdict.findings}


@pytest.mark.parametrize("space", INSIDE)
@pytest.mark.parametrize("name", BASES)
def test_which_window_an_address_lies_in(space: str, name: str) -> None:
    body = f"{BASES[name]}\nisspacep.{space} %p9, %d9;\n{FAILS.format('%p9')}"
    assert (found(body) == {"undefined-address"}) is (name in INSIDE[space])


@pytest.mark.parametrize("space", INSIDE)
@pytest.mark.parametrize("name", BASES)
def test_an_address_is_converted_to_the_space_that_it_is_in(space: str, name: str) -> None:
    """ "the resulting address is undefined in cases where the generic address does not fall within the address window";
    .shared and .param: "the behavior is undefined". A null pointer is none of global, constant or local memory.
    """
    null = name == "null" and space in ("global", "const", "local")
    body = f"{BASES[name]}\ncvta.to.{space}.u64 %d10, %d9;"
    assert found(body) == (set() if null or name in INSIDE[space] else {"undefined-instruction"})


@pytest.mark.parametrize("space", ["global", "const", "shared", "shared::cluster", "local", "param"])
def test_there_and_back(space: str) -> None:
    name = space.partition("::")[0]
    back = f"cvta.to.{space}.u64 %d10, %d9;\ncvta.{space}.u64 %d11, %d10;\nsetp.ne.u64 %p9, %d11, %d9;"
    assert not found(f"{BASES[name]}\n{back}\n{FAILS.format('%p9')}")


@pytest.mark.parametrize(
    ("reached", "rules"),
    [
        ("mov.u32 %r9, c;\nld.const.u32 %r8, [%r9+4];", set()),
        ("mov.u64 %d9, c;\nld.const.u32 %r8, [%d9+4];", set()),
        ("ld.const.u32 %r8, [c+4];", set()),
        ("mov.u64 %d9, c;\ncvta.const.u64 %d9, %d9;\nld.u32 %r8, [%d9+4];", set()),
        ("ld.global.u64 %d9, [at];\nld.const.u32 %r8, [%d9];", set()),
        ("ld.global.u64 %d9, [at+8];\nld.u32 %r8, [%d9];", set()),
        (".const .align 4 .b32 inner[2] = {0, 7};\nld.const.u32 %r8, [inner+4];", set()),
        ("mov.u64 %d9, c;\nld.u32 %r8, [%d9+4];", {"undefined-address"}),
        ("mov.u32 %r9, c;\nld.const.u32 %r8, [%r9+8];", {"undefined-address"}),
    ],
)
def test_an_address_in_const_counts_from_the_start_of_constant_memory(reached: str, rules: set[str]) -> None:
    """It has 32 bits, is no generic address, and both are initial values of pointers."""
    variables = ".const .align 8 .b32 c[2] = {0, 7};\n.global .align 8 .u64 at[2] = {c+4, generic(c)+4};\n"
    body = f"{reached}\nsetp.ne.u32 %p9, %r8, 7;\n{FAILS.format('%p9')}"
    assert {finding.rule for finding in judged(body, threads=1, init="zero", before=variables).findings} == rules


@pytest.mark.parametrize("access", ["ld.u32 %r9, [%d8];", "st.u32 [%d8], 1;"])
@pytest.mark.parametrize("thread", [0, 1])
def test_local_memory_is_of_one_thread(access: str, thread: int) -> None:
    """ "Private memory for each thread": a thread reaches its own through a generic address, whoever kept that
    meanwhile, and not that of another thread.
    """
    body = (
        f".local .align 8 .b8 l[16];\n{BASES['local']}\nst.local.u32 [l], 7;\n"
        "@%p0 st.shared.u64 [s], %d9;\nbar.sync 0;\nld.shared.u64 %d8, [s];\n"
        f"setp.eq.u32 %p8, %r0, {thread};\n@%p8 {access}"
    )
    verdict = judged(body, threads=2)
    messages = [finding.message for finding in verdict.findings]
    assert [message.split(" is ")[1] for message in messages] == ["outside the local memory of this thread"] * thread
    assert verdict.clean is not bool(thread)


PEER = (
    "mapa.shared::cluster.u32 %r10, %r2, %r6;\nmov.u64 %d8, s;\ncvta.shared.u64 %d9, %d8;\nmapa.u64 %d10, %d9, %r6;\n"
)
"""An address in the other CTA, in the window of shared memory and as a generic address."""


@pytest.mark.parametrize(
    ("line", "findings"),
    [
        ("cvt.u64.u32 %d11, %r10;\ncvta.shared::cluster.u64 %d11, %d11;\nsetp.eq.u64 %p9, %d10, %d11;", set()),
        ("getctarank.shared::cluster.u32 %r11, %r10;\nsetp.eq.u32 %p9, %r11, %r6;", set()),
        ("getctarank.u64 %r11, %d10;\nsetp.eq.u32 %p9, %r11, %r6;", set()),
        ("isspacep.shared::cluster %p9, %d10;", set()),
        ("isspacep.shared::cta %p9, %d10;", {"undefined-address"}),
        ("cvta.to.shared.u64 %d11, %d10;\nsetp.eq.u32 %p9, %r6, %r6;", set()),
        ("cvta.to.shared::cta.u64 %d11, %d10;\nsetp.eq.u32 %p9, %r6, %r6;", {"undefined-instruction"}),
        ("mapa.u64 %d11, %d0, 1;\nsetp.eq.u32 %p9, %r6, %r6;", {"undefined-instruction"}),
        ("getctarank.u64 %r11, %d0;\nsetp.eq.u32 %p9, %r6, %r6;", {"undefined-instruction"}),
    ],
)
def test_addresses_in_the_other_cta(line: str, findings: set[str]) -> None:
    assert rules(verdict_of(PEER + line + FAILS.format("!%p9"), ctas=2, cluster=2)) == findings


WIDE = "add.u64 %d9, %d0, 1024;\n"
"""An address in global memory whose low 32 bits are an address in shared memory."""


@pytest.mark.parametrize("body", [WIDE, "mov.u64 %d9, s;\ncvta.shared.u64 %d9, %d9;\n"])
@pytest.mark.parametrize(
    "line",
    [
        "st.shared.u32 [%d9], 1;",
        "ld.shared::cta.u32 %r20, [%d9];",
        "st.shared::cluster.v2.u32 [%d9], {1, 1};",
        "ld.relaxed.cta.shared.u32 %r20, [%d9];",
        "atom.shared::cluster.add.u32 %r20, [%d9], 1;",
        "mbarrier.init.shared.b64 [%d9], 1;",
        "mbarrier.arrive.shared::cluster.b64 _, [%d9];",
        "cp.async.ca.shared.global [%d9], [%d0], 16;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%d9], [%d0], 16, [%r4];",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%d9];",
    ],
)
def test_no_bits_of_an_address_in_shared_memory_are_dropped(body: str, line: str) -> None:
    """A 64-bit register with more than 32 bits, such as a generic address, is no address in .shared."""
    verdict = verdict_of(f"mbarrier.init.shared.b64 [%r4], 1;\n{body}{line}", threads=32 if "ldmatrix" in line else 1)
    assert "undefined-address" in rules(verdict)


@pytest.mark.parametrize(("at", "races"), [(0, True), (4, False)])
def test_copies_of_one_instruction_may_go_down_from_object_to_object(at: int, *, races: bool) -> None:
    """The second lane's object lies below that of the first one; a thread of the other warp writes to one of them."""
    declared = ".global .align 16 .u32 a[4];\n.global .align 16 .u32 b[4];\n"
    body = f"""mov.u64 %d1, a; mov.u64 %d2, b;
    min.u64 %d3, %d1, %d2; max.u64 %d4, %d1, %d2;
    selp.u64 %d5, %d4, %d3, %p0;
    setp.lt.u32 %p1, %r0, 2;
    @%p1 cp.async.ca.shared.global [%r3], [%d5], 4;
    setp.eq.u32 %p2, %r0, 40;
    @%p2 st.global.u32 [%d3+{at}], 1;"""
    assert bool(judged(body, before=declared).findings) is races
