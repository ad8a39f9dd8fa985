"""What a register may not hold, and an address may not be: undefined behaviour, on both engines, and its neighbours."""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, verdict_of

from memmodel import api

POLICY = "createpolicy.range.L2::evict_last.b64"
HINTS = {
    "applypriority.L2::evict_normal [{0}], 128;": (True, False),
    "applypriority.global.L2::evict_normal [{0}], 128;": (True, False),
    POLICY + " {1}, [{0}], 16, 32;": (True, True),
    "cp.async.bulk.prefetch.L2.global [{0}], 16;": (True, False),
    "prefetch.L1 [{0}];": (False, True),
    "prefetchu.L1 [{0}];": (False, True),
}
"""Hints: whether shared memory is undefined, and whether an address of global memory that is not aligned is none.

"If the specified address does not fall within the address window of .global state space then the behavior is undefined"
(applypriority, createpolicy); "a must be aligned to 128 bytes", "The address srcMem must be aligned to 16 bytes".
"""

SHARED = ".shared .align 16 .b8 dst[64];\n.shared .b64 bar = mbarrier(1);\n"
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"


def undefined(line: str, number: int, declarations: str = "", engine: str = "enumerate") -> str:
    text = f"PTX T\n.global .u32 x = {number};\n.global .align 16 .b8 src[64];\n{SHARED}{declarations}"
    text += f"thread P0 @ cta 0, gpu 0 {{\n ld.global.u32 r1, [x];\n{line}\n}}\nexists undefined\n"
    report = api.check(text, engine=engine)
    return report.answer.observation.value


@pytest.mark.parametrize("engine", ["enumerate", "z3"])
@pytest.mark.parametrize(
    "line, good, bad",
    [
        (f"{COPY} [dst], [src], r1, [bar];", 16, 24),
        (f"{COPY} [dst], [src], r1, [bar];", 0, 8),
        ("bar.warp.sync r1;", 0xFFFFFFFF, 0),
        (POLICY + " r2, [src], r1, 64;", 64, 65),
        (POLICY + " r2, [src], 32, r1;", 32, 31),
        (POLICY + " r2, [src], r1, 4294967296;", 0xFFFFFFFF, None),
        ("mbarrier.test_wait.parity.shared::cta.b64 p, [bar], r1;", 1, 2),
        ("mbarrier.try_wait.parity.shared::cta.b64 p, [bar], r1;", 0, 3),
    ],
)
def test_a_number_in_a_register(line: str, good: int, bad: int | None, engine: str) -> None:
    assert undefined(line, good, engine=engine) == "never"
    assert bad is None or undefined(line, bad, engine=engine) in ("sometimes", "always")


@pytest.mark.parametrize("left", [True, False])
def test_bytes_that_a_copy_ignores(left: bool) -> None:
    line = f"{COPY}.ignore_oob [dst], [src], 32, {'r1, 0' if left else '0, r1'}, [bar];"
    assert undefined(line, 15, engine="z3") == "never"
    assert undefined(line, 16, engine="z3") == "sometimes"


@pytest.mark.parametrize("engine", ["enumerate", "z3"])
@pytest.mark.parametrize("write", ["st.weak.u32 [r2], 1;", "red.relaxed.gpu.add.u32 [r2], 1;"])
def test_constants_are_only_read(write: str, engine: str) -> None:
    declarations = ".const .u32 c = 5;\n.global .u32 g;\n"
    assert undefined(f"mov.u64 r2, c;\n{write}", 0, declarations, engine) == "sometimes"
    assert undefined(f"mov.u64 r2, g;\n{write}", 0, declarations, engine) == "never"
    assert undefined("mov.u64 r2, c;\nld.weak.u32 r3, [r2];", 0, declarations, engine) == "never"


@pytest.mark.parametrize("engine", ["enumerate", "z3"])
@pytest.mark.parametrize("rank, word", [("1", "sometimes"), ("r3", "sometimes")])
def test_mapa_takes_a_name_that_another_cta_declares(rank: str, word: str, engine: str) -> None:
    text = f"""PTX mapa
.shared .u32 x @cta1;
thread P0 @ cta 0, cluster 0, gpu 0 {{
  mov.u32 r3, 1;
  mapa.shared::cluster.u32 r1, x, {rank};
  st.relaxed.cluster.shared::cluster.u32 [r1], 1;
}}
thread P1 @ cta 1, cluster 0, gpu 0 {{ ld.relaxed.cluster.shared::cta.u32 r0, [x]; }}
exists (P1:r0 == 1)
"""
    report = api.check(text, engine=engine)
    assert report.answer.observation.value == word and not report.answer.findings
    elsewhere = api.check(text.replace(f"x, {rank};", "x, 0;"), engine=engine, ask="exists undefined")
    assert elsewhere.answer.observation.value == "always" or elsewhere.answer.findings


@pytest.mark.parametrize("engine", ["enumerate", "z3"])
@pytest.mark.parametrize("hint", HINTS)
def test_addresses_of_hints_in_a_litmus_test(hint: str, engine: str) -> None:
    of_global, unaligned = HINTS[hint]
    line = hint.format("r2", "r3")
    here = ".global .align 128 .b8 g[128];\n"
    assert undefined(f"mov.u64 r2, g;\n{line}", 0, here, engine) == "never"
    assert (undefined(f"mov.u64 r2, dst;\n{line}", 0, here, engine) != "never") is of_global
    assert (undefined(f"mov.u64 r2, g;\nadd.u64 r2, r2, 4;\n{line}", 0, here, engine) == "never") is unaligned


@pytest.mark.parametrize("hint", HINTS)
def test_addresses_of_hints_in_a_kernel(hint: str) -> None:
    of_global, unaligned = HINTS[hint]
    line = hint.format("%d2", "%d3")
    assert not rules(verdict_of(f"mov.u64 %d2, %d0;\n{line}"))
    if ".global" not in hint:  # a module names no other window by an address of .global
        assert bool(rules(verdict_of(f"cvta.shared.u64 %d2, s;\n{line}"))) is of_global
    assert bool(rules(verdict_of(f"add.u64 %d2, %d0, 4;\n{line}"))) is not unaligned


def test_a_named_variable_of_a_hint_is_aligned() -> None:
    line = "applypriority.global.L2::evict_normal [g+4], 128;"
    assert undefined(line, 0, ".global .align 128 .b8 g[256];\n") != "never"


TO_CTAS = "shared::cluster.multicast::cluster"
MULTICASTS = {
    f"mbarrier.arrive.{TO_CTAS}::32b.b64 _, [{{0}}], 1;": "bar",
    f"mbarrier.expect_tx.{TO_CTAS}::32b.b64 [{{0}}], 0, 1;": "bar",
    f"tcgen05.commit.cta_group::1.mbarrier::arrive::one.{TO_CTAS}.b64 [{{0}}], 1;": "bar",
    f"{COPY.replace('shared::cta', 'shared::cluster')}.multicast::cluster [{{0}}], [src], 16, [bar], 1;": "dst",
    f"{COPY.replace('shared::cta', 'shared::cluster')}.multicast::cluster [dst], [src], 16, [{{0}}], 1;": "bar",
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
    "[{0}], [bar];": "dst",
}
"""Instructions that take an address to several CTAs: what it may be the address of."""


@pytest.mark.parametrize("engine", ["enumerate", "z3"])
@pytest.mark.parametrize("line", MULTICASTS)
def test_an_address_of_a_multicast_is_in_shared_memory(line: str, engine: str) -> None:
    """ "If the address specified by addr does not fall within the address window of .shared::cta or .shared::cluster
    state space then the behavior is undefined", although its lower bits may fit an object of each CTA.
    """
    far = 1 << 40
    text = f"mov.u64 r2, {MULTICASTS[line]};\nadd.u64 r2, r2, {{0}};\n{line.format('r2')}"
    assert undefined(text.format(0), 0, engine=engine) == "never"
    assert undefined(text.format(far), 0, engine=engine) != "never"


COLUMNS = """tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{at}], {count};
{sync}ld.shared.b32 {address}, [{at}];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 {address}, {count};
"""


@pytest.mark.parametrize(("count", "word"), [(64, "never"), (96, "sometimes"), (16, "sometimes"), (1024, "sometimes")])
def test_a_number_of_columns_is_a_power_of_two(count: int, word: str) -> None:
    """ "nCols must be a power of 2, in the range [32, 512]" (tcgen05.alloc), where all else is as it should be."""
    here = ".shared .b32 at;\n.tensor .b32 acc[64];\n"
    litmus = COLUMNS.format(at="at", count="r1", address="r2", sync="")
    assert (undefined(litmus, count, here) == "never") is (word == "never")
    kernel = COLUMNS.format(at="%r4", count="%r10", address="%r11", sync="bar.warp.sync -1;\n")
    assert (not rules(verdict_of(f"mov.u32 %r10, {count};\n{kernel}"))) is (word == "never")
