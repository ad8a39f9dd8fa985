"""Spellings of one instruction that order less, and more."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from helpers.isa_samples import blocks

from memmodel.isa.lower import read_instruction
from memmodel.isa.rows.spelling import Spelling
from memmodel.litmus.syntax import Instruction, LitmusTest
from memmodel.repair.spellings import apart, narrower, other_spaces, scope_of, semantics, wider

RESTRICTED = (
    "fence.release.sync_restrict::shared::cta.cluster",
    "fence.acquire.sync_restrict::shared::cluster.cluster",
)
TABLE = {
    # line: (what orders less, what orders more within scopes gpu and sys)
    "ld.volatile.global.u32 %r0, [x];": ("ld.relaxed.sys", "ld.acquire.sys"),
    "st.volatile.global.u32 [x], 1;": ("st.relaxed.sys", "st.release.sys"),
    "ld.weak.global.u32 %r0, [x];": ("", "ld.acquire.gpu ld.acquire.sys ld.relaxed.gpu ld.relaxed.sys"),
    "st.weak.global.u32 [x], 1;": ("", "st.release.gpu st.release.sys st.relaxed.gpu st.relaxed.sys"),
    "st.relaxed.gpu.global.u32 [x], 1;": (
        "st.relaxed.cluster st.relaxed.cta st.weak", "st.relaxed.sys st.release.gpu st.release.sys",
    ),
    "ld.acquire.gpu.global.u32 %r0, [x];": (
        "ld.acquire.cluster ld.acquire.cta ld.relaxed.gpu ld.weak", "ld.acquire.sys",
    ),
    "atom.acq_rel.cta.global.add.u32 %r0, [x], 1;": (
        "atom.acquire.cta atom.relaxed.cta atom.release.cta", "atom.acq_rel.gpu atom.acq_rel.sys",
    ),
    "red.relaxed.gpu.global.add.u32 [x], 1;": (
        "red.relaxed.cluster red.relaxed.cta", "red.relaxed.sys red.release.gpu red.release.sys",
    ),
    "membar.gl;": ("membar.cta fence.acq_rel.gpu", "membar.sys"),
    "membar.cta;": ("fence.acq_rel.cta", "membar.gl membar.sys"),
    "membar.sys;": ("membar.cta membar.gl fence.acq_rel.sys", ""),
    "fence.acq_rel.gpu;": (
        " ".join(("fence.acq_rel.cluster fence.acq_rel.cta fence.acquire.gpu fence.release.gpu", *RESTRICTED)),
        "fence.acq_rel.sys fence.sc.gpu fence.sc.sys",
    ),
    "fence.sc.cta;": ("fence.acq_rel.cta fence.acquire.cta fence.release.cta", "fence.sc.gpu fence.sc.sys"),
    f"{RESTRICTED[0]};": ("", "fence.acq_rel.cluster fence.release.cluster fence.sc.cluster"),
    f"{RESTRICTED[1]};": ("", "fence.acq_rel.cluster fence.acquire.cluster fence.sc.cluster"),
    "fence.proxy.async;": (
        "fence.proxy.async.global fence.proxy.async.shared::cluster fence.proxy.async.shared::cta", "",
    ),
    "fence.proxy.async.global;": ("", "fence.proxy.async"),
    "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;": (
        "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster", "",
    ),
    "cp.async.bulk.wait_group.read 0;": ("", "cp.async.bulk.wait_group"),
    "cp.async.bulk.wait_group 0;": ("cp.async.bulk.wait_group.read", ""),
    "barrier.cluster.arrive.relaxed;": ("", "barrier.cluster.arrive.release"),
    "barrier.cluster.arrive;": ("barrier.cluster.arrive.relaxed", ""),
    "barrier.cluster.wait;": ("", ""),
}  # fmt: skip


def sample(line: str) -> tuple[Instruction, LitmusTest]:
    test = blocks(line)
    mnemonic = line.split()[0].rstrip(";")
    items = (item for item in test.threads[0].body if isinstance(item, Instruction))
    return next(item for item in items if item.mnemonic == mnemonic), test


def briefly(forms: Iterable[tuple[str, Spelling]]) -> set[str]:
    """Mnemonics without state space and type."""
    return {mnemonic.partition(".global.")[0] if "proxy" not in mnemonic else mnemonic for mnemonic, _ in forms}


@pytest.mark.parametrize("line", TABLE)
def test_what_orders_less_and_more(line: str) -> None:
    less, more = (set(words.split()) for words in TABLE[line])
    assert briefly(narrower(*sample(line))) == less
    assert briefly(wider(*sample(line), frozenset({"gpu", "sys"}))) == more


def test_a_scope_that_is_not_named_is_written_out_for_an_object() -> None:
    line, cluster = "mbarrier.arrive.shared.b64 _, [bar];", frozenset({"cluster"})
    assert briefly(wider(*sample(line), cluster)) == {"mbarrier.arrive.release.cluster.shared.b64"}
    relaxed = "mbarrier.arrive.relaxed.cta.shared.b64 _, [bar];"
    assert briefly(wider(*sample(relaxed), frozenset())) == {"mbarrier.arrive.release.cta.shared.b64"}


DEFAULTS = {
    "ld.global.u32 %r0, [x];": ("weak", "cta"),
    "ld.volatile.global.u32 %r0, [x];": ("volatile", "sys"),
    "ld.acquire.cluster.global.u32 %r0, [x];": ("acquire", "cluster"),
    "atom.global.add.u32 %r0, [x], 1;": ("relaxed", "gpu"),
    "red.global.add.u32 [x], 1;": ("relaxed", "gpu"),
    "barrier.cluster.arrive;": ("release", "cluster"),
    "barrier.cluster.wait;": ("acquire", "cluster"),
    "mbarrier.arrive.shared.b64 _, [bar];": ("release", "cta"),
    "mbarrier.try_wait.parity.b64 %p, [bar], 0;": ("acquire", "cta"),
    "mbarrier.inval.shared.b64 [bar];": ("weak", "cta"),
    "fence.sc.sys;": ("sc", "sys"),
}


@pytest.mark.parametrize("line", DEFAULTS)
def test_semantics_and_scope_that_are_not_written(line: str) -> None:
    spelling = read_instruction(*sample(line))
    assert (semantics(spelling), scope_of(spelling)) == DEFAULTS[line]


def test_a_proxy_fence_for_another_state_space() -> None:
    spaces = ("global", "shared::cta", "shared::cluster")
    for space in spaces:
        others = set(other_spaces(*sample(f"fence.proxy.async.{space};")))
        assert others == {f"fence.proxy.async.{other}" for other in spaces if other != space}
    assert not list(other_spaces(*sample("fence.proxy.async;"))) and not list(other_spaces(*sample("fence.sc.gpu;")))


@pytest.mark.parametrize(
    ("line", "sem", "relaxed"),
    [
        ("barrier.cluster.arrive;", "release", "barrier.cluster.arrive.relaxed"),
        (
            "mbarrier.arrive.release.cluster.shared.b64 _, [bar];",
            "release",
            "mbarrier.arrive.relaxed.cluster.shared.b64",
        ),
        ("mbarrier.arrive.release.cta.shared.b64 _, [bar];", "", ""),
        ("mbarrier.arrive.relaxed.cluster.shared.b64 _, [bar];", "", ""),
        ("fence.release.cluster;", "", ""),
        ("atom.acq_rel.cluster.global.add.u32 %r0, [x], 1;", "", ""),
    ],
)
def test_a_release_of_the_cluster_is_taken_apart(line: str, sem: str, relaxed: str) -> None:
    parts = apart(*sample(line))
    assert (parts is None) if not sem else (parts is not None and parts[:2] == (sem, relaxed))
