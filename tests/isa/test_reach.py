"""Scopes that placement makes pointless, each with its place in the file."""

from __future__ import annotations

import pytest
from helpers.isa_samples import read
from helpers.isa_samples import warnings as told


def warnings(first: str, second: str, places: tuple[str, str] = ("cta 0", "cta 1")) -> list[str]:
    text = f"""PTX scopes
.global .u32 x;
.global .u32 y;
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ {places[0]} {{ {first} }}
thread P1 @ {places[1]} {{ {second} }}
exists (true)
"""
    return told(read(text))


def test_a_scope_that_reaches_no_other_thread_of_the_location():
    (first,) = warnings("st.release.cta.u32 [x], 1;", "ld.acquire.gpu.u32 %r0, [x];")
    assert first.startswith("t.litmus:5:")
    assert "no other thread that accesses 'x' is in reach of .cta" in first and "write .gpu" in first


def test_a_fence_that_reaches_nobody():
    (only,) = warnings("fence.acq_rel.cta; st.u32 [x], 1;", "ld.u32 %r0, [x];")
    assert "no other thread of the test is in reach of .cta" in only


def test_a_location_of_one_thread_needs_nobody():
    assert warnings("st.release.cta.u32 [x], 1;", "ld.acquire.gpu.u32 %r0, [y];") == []


def test_the_first_scope_that_is_wider_than_the_test():
    (only,) = warnings("st.release.gpu.u32 [x], 1;", "ld.acquire.sys.u32 %r0, [x];", ("cta 0", "cta 0"))
    assert "all threads of the test are in one CTA: .gpu reaches no farther than .cta" in only
    assert warnings("st.volatile.u32 [x], 1;", "ld.volatile.u32 %r0, [x];", ("cta 0", "cta 0")) == []


@pytest.mark.parametrize("scope, told", [(".cta", 1), (".cluster", 0)])
def test_an_arrive_of_cta_scope_on_a_remote_mbarrier(scope, told):
    arrive = f"mbarrier.arrive.release{scope}.shared::cluster.b64 _, [bar@cta1];"
    found = warnings(arrive, "ld.u32 %r0, [x];", ("cta 0, cluster 0", "cta 1, cluster 0"))
    assert len(found) == told
    assert all("counts but synchronizes nothing" in warning for warning in found)
