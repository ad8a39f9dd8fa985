"""What fabric operations lower to, worked out by hand. `isa_samples.brief` says how steps are written."""

from __future__ import annotations

import pytest
from helpers.isa_samples import blocks, ops, shown

GET = "fabric.try_get.async.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric.relaxed.sys.b128"
PUT = "fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric"
RED = "fabric.try_red.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys"

PULL = "fabric.try_pullred.async.multimem.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric"

ATOM = "fabric.try_atom.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric"

FETCHED = "+ Gather(Access(read relaxed sys fabric fabric_get asynchronous)"
DELIVERED = "+ Scatter(Access(write async fabric_get asynchronous)"
SOURCE = "+ Gather(Access(read async fabric_put asynchronous source) Chunk(&tile shared_cta 16) tracks={fabric_put})"
WRITTEN = "+ Scatter(Access(write relaxed sys fabric fabric_put asynchronous)"
READ_THERE, WRITTEN_THERE = (
    f"Access({side} relaxed sys fabric fabric_put rmw asynchronous)" for side in ("read", "write")
)
OPERAND, ANSWER = "Access(read async fabric_put asynchronous source)", "Access(write async fabric_put asynchronous)"
FIRST, SECOND = ("when=eq.u32(%$left_out0, 0)", "when=eq.u32(%$left_out1, 0)")
OUTCOME = ["Decide($fails)", "Decide($left_out0 when=%$fails)"]
REPORTED = (
    "+ SignalPart(Signal(complete_tx cta fabric_put) Object(&reporter shared_cta) bytes=1 of=[0 1] failed=%$fails)"
)

WORKED_OUT: dict[str, list[str]] = {
    f"{GET} [tile], [le, 0], 32, [reporter];": [
        *OUTCOME,
        "Decide($left_out1 when=%$fails)",
        "Issue(fabric_get)",
        f"{FETCHED} Chunk(&le global 16 scalar=16))",
        f"{DELIVERED} Chunk(&tile shared_cta 16) 0 {FIRST})",
        f"{FETCHED} Chunk(&le+16 global 16 scalar=16))",
        f"{DELIVERED} Chunk(&tile+16 shared_cta 16) 2 {SECOND})",
        "+ SignalPart(Signal(complete_tx cta fabric_get) Object(&reporter shared_cta) bytes=32 of=[0 1 2 3] "
        "failed=%$fails)",
    ],
    f"{PUT}.relaxed.sys.b128 [le, 0], [tile], 16, [reporter];": [
        *OUTCOME,
        "Issue(fabric_put)",
        SOURCE,
        f"{WRITTEN} Chunk(&le global 16) 0 {FIRST})",
        REPORTED,
    ],
    f"{PUT}.cp_mask.relaxed.sys.b128 [le, %rd0], [tile], 16, [reporter], 3;": [
        "UndefinedIf(a handle is within the memory of its logical endpoint gt.u64(%rd0, 16))",
        *OUTCOME,
        "Issue(fabric_put)",
        SOURCE,
        f"{WRITTEN} Chunk(add.u64(&le, %rd0) global 16 mask=3) 0 {FIRST})",
        REPORTED,
    ],
    f"{PUT.replace('.async', '.async.multimem')}.relaxed.sys.b128 [les, 0], [tile], 16, [reporter];": [
        *OUTCOME,
        "Decide($left_out1 when=%$fails)",
        "Issue(fabric_put)",
        SOURCE,
        f"{WRITTEN} Chunk(&les global 16 replica=0) 0 {FIRST})",
        SOURCE,
        f"{WRITTEN} Chunk(&les global 16 replica=1) 2 {SECOND})",
        REPORTED.replace("of=[0 1]", "of=[0 1 2 3]"),
    ],
    f"{PULL}.relaxed.sys.add.u64.sync [tile], [les, 0], 16, [reporter], 0xffffffff;": [
        *OUTCOME,
        "Issue(fabric_get)",
        f"{FETCHED.replace('Gather', 'AsyncRead')} Chunk(&les global 16 scalar=8 replica=0) [$0.0 $0.1])",
        f"{FETCHED.replace('Gather', 'AsyncRead')} Chunk(&les global 16 scalar=8 replica=1) [$1.0 $1.1])",
        f"{DELIVERED.replace('Scatter', 'AsyncWrite')} Chunk(&tile shared_cta 16 scalar=8) "
        f"[add.u64(%$0.0, %$1.0) add.u64(%$0.1, %$1.1)] {FIRST})",
        "+ SignalPart(Signal(complete_tx cta fabric_get) Object(&reporter shared_cta) bytes=16 of=[0 1 2] "
        "failed=%$fails)",
    ],
    f"{RED}.add.u32 [le, 16], [tile], 16, [reporter];": [
        *OUTCOME,
        "Issue(fabric_put)",
        SOURCE,
        f"+ Update({READ_THERE} {WRITTEN_THERE} Chunk(&le+16 global 16 scalar=4) 0 add u32 {FIRST})",
        REPORTED,
    ],
    f"{ATOM}.relaxed.sys.exch.b128 [le, 16], [response], [tile], [reporter];": [
        *OUTCOME,
        "Decide($left_out1 when=%$fails)",
        "Issue(fabric_put)",
        f"+ AsyncRead({OPERAND} Chunk(&tile shared_cta 16 scalar=16) [$0] tracks={{fabric_put}})",
        f"+ AsyncRead({READ_THERE} Chunk(&le+16 global 16 scalar=16) [$old])",
        f"+ AsyncWrite({WRITTEN_THERE} Chunk(&le+16 global 16 scalar=16) [%$0] rmw {FIRST})",
        f"+ AsyncWrite({ANSWER} Chunk(&response shared_cta 16 scalar=16) [%$old] {SECOND})",
        REPORTED.replace("of=[0 1]", "of=[0 1 2 3]"),
    ],
    f"{ATOM}.relaxed.sys.cas.b128 [le, 0], [response], [tile], [reporter];": [
        *OUTCOME,
        "Decide($left_out1 when=%$fails)",
        "Issue(fabric_put)",
        f"+ AsyncRead({OPERAND} Chunk(&tile shared_cta 16 scalar=16) [$0] tracks={{fabric_put}})",
        f"+ AsyncRead({OPERAND} Chunk(&tile+16 shared_cta 16 scalar=16) [$1] tracks={{fabric_put}})",
        f"+ AsyncRead({READ_THERE} Chunk(&le global 16 scalar=16) [$old])",
        f"+ AsyncWrite({WRITTEN_THERE} Chunk(&le global 16 scalar=16) [%$1] rmw "
        "when=and.u32(eq.u32(%$left_out0, 0), eq.b128(%$old, %$0)))",
        f"+ AsyncWrite({ANSWER} Chunk(&response shared_cta 16 scalar=16) [%$old] {SECOND})",
        REPORTED.replace("of=[0 1]", "of=[0 1 2 3 4]"),
    ],
    "fabric.submit;": ["CommitGroup(fabric_get)", "CommitGroup(fabric_put)", "Emit(Mark(submit))"],
    "fabric.submit.op_restrict::fetching;": ["CommitGroup(fabric_get)", "Emit(Mark(submit_fetching))"],
    "fabric.wait.sync_restrict::reads;": ["WaitForGroups(GroupWait(fabric_put) fabric_put pending=0 sources_only)"],
    "fence.proxy.generic::fabric.alias.release.sys;": ["Emit(ProxyFence(fabric release sys out))"],
    "fence.proxy.fabric::generic.alias.acquire.sys;": ["Emit(ProxyFence(fabric acquire sys in))"],
    "fence.proxy.fabric::fabric.alias.acquire.sys;": ["Emit(ProxyFence(fabric acquire sys within))"],
}


@pytest.mark.parametrize("line", WORKED_OUT)
def test_steps(line: str) -> None:
    assert shown(ops(blocks(line))) == WORKED_OUT[line]


def test_what_a_report_says_is_decided_by_the_model() -> None:
    put = f"{PUT}.relaxed.sys.b128 [le, 0], [tile], 16, [reporter];"
    test = "mbarrier.try_wait.parity.phase_type::primary.acquire.cta.shared::cta.b64 %p|%q, [reporter], 0;"
    seen = "Mbarrier(test acquire cta) Object(&reporter shared_cta) register=p parity=0"
    assert shown(ops(blocks(test))) == [f"OnObject({seen} report=q)", "Assign(q#early eq.s32(%p, 0))"]
    assert shown(ops(blocks(f"{put}\n  {test}")))[-2] == f"OnObject({seen} report=q)"
    conditional = test.replace("primary", "conditional").replace("|%q", "")
    assert shown(ops(blocks(conditional))) == [f"OnObject({seen})"]
    assert shown(ops(blocks(f"{put}\n  {conditional}")))[-1] == f"OnObject({seen} conditional)"
