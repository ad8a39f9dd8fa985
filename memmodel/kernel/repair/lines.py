"""The instructions that may be missing between two accesses of a kernel, by the reason of the finding.

In: a finding, the entry. Out: `MissingLine`s. Whether they cure the finding is not settled here: the kernel with them
is judged again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from memmodel.isa.synchronization.fence_async import READS
from memmodel.kernel.order.missing_order import UNFINISHED, MissingOrder
from memmodel.kernel.order.verdict import FindingPlace, KernelFinding
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Imm
from memmodel.repair.costs import (
    OTHER,
    PROXY_FENCE,
    PROXY_FENCE_OF_ONE_SPACE,
    SCOPE_COST,
    SEM_FACTOR,
    TCGEN05_FENCE,
    WAIT,
    half_of_proxy_fence,
)
from memmodel.repair.spellings import RESTRICTED

Reason = MissingOrder
_SIGNALS = "mbarrier::complete_tx::bytes"
GUARD = re.compile(r"^@!?\s*%?[\w$]+\s+")
TENSOR_MAP = re.compile(r"\[([^\[\],]+),\s*\{|cp_fenceproxy\S*\s+\[([^\]]+)\]")
"""The tensor map that a copy reads, or into which a fence has copied one."""

WHOLE_BARRIER = "bar.sync 0;"

MOST_BARRIERS = 4
"""Barriers of the text that are tried elsewhere."""


class Where(Enum):
    """Where a line goes: after the first access (`FIRST`), before the second one (`SECOND`) or after it
    (`AFTER_SECOND`), on the releasing or the acquiring side of the way; `MEETING`: beside either access, or where the
    threads that come to it diverge or meet again.
    """

    ANY = "any"
    RELEASING = "releasing"
    ACQUIRING = "acquiring"
    FIRST = "first"
    SECOND = "second"
    AFTER_SECOND = "after second"
    MEETING = "meeting"


@dataclass(frozen=True, slots=True)
class MissingLine:
    """`text`: instructions, each with its `;`. `at`: the instruction before which it goes, or `after` which, if that is
    known."""

    text: str
    where: Where
    cost: float
    at: PtxInstruction | None = None
    after: bool = False


WGMMA_FENCE = MissingLine("wgmma.fence.sync.aligned;", Where.SECOND, OTHER)


def lines(finding: KernelFinding, entry: PtxFunction, cluster: int) -> Iterator[tuple[MissingLine, ...]]:
    """Lines to be put in together, the likeliest first. `cluster`: CTAs in a cluster."""
    if len(finding.sides) < 2:
        yield from _announced(finding, entry)
        if any("wgmma" in side.instruction.words for side in finding.sides):
            yield (WGMMA_FENCE,)
        if "wgmma" in finding.message and "wait" in finding.message:
            yield (MissingLine("wgmma.wait_group.sync.aligned 0;", Where.SECOND, WAIT),)
        if any("barrier.cluster.wait" in side.instruction.opcode for side in finding.sides):
            yield (MissingLine("barrier.cluster.arrive;", Where.SECOND, SCOPE_COST["cluster"]),)
        return
    first, second = finding.sides[0], finding.sides[-1]
    reason = finding.reason
    alone = first.thread == second.thread
    if reason in (Reason.PROXY.value, Reason.PROXY_PLACE.value):
        yield from _proxies(finding)
    tensor = finding.rule == "tensor-memory-hazard"
    if reason in UNFINISHED or tensor or alone:
        yield from _ends(first, entry, (Where.RELEASING, Where.SECOND))
        yield from _ends(second, entry, (Where.AFTER_SECOND,))
        yield from _announced(finding, entry)
    if tensor:
        before = MissingLine("tcgen05.fence::before_thread_sync;", Where.RELEASING, TCGEN05_FENCE)
        after = MissingLine("tcgen05.fence::after_thread_sync;", Where.ACQUIRING, TCGEN05_FENCE)
        yield from ((before,), (after,), (before, after))
    scope = _scope(first, second, cluster)
    if reason in (Reason.RELAXED.value, Reason.SCOPES.value) or scope == "gpu":
        yield from _fences(scope)
    if not alone:
        yield from _meetings(first, second, entry, clustered=cluster > 1 and scope != "gpu")
    if "wgmma" in second.instruction.words:
        yield (WGMMA_FENCE,)


def _proxies(finding: KernelFinding) -> Iterator[tuple[MissingLine, ...]]:
    sides = " ".join(side.what for side in finding.sides)
    if "tensormap" in sides:
        price = PROXY_FENCE * SEM_FACTOR["acquire"]
        for side, where in ((finding.sides[-1], Where.SECOND), (finding.sides[0], Where.FIRST)):
            if named := TENSOR_MAP.search(side.instruction.span.text):
                fence = f"fence.proxy.tensormap::generic.acquire.gpu [{(named[1] or named[2]).strip()}], 128;"
                yield (MissingLine(fence, where, price),)
        return
    space = "shared::cta" if " of shared memory" in finding.where else "global"
    if space != "global":
        yield from _halves(finding.sides[0], finding.sides[-1])
    yield (MissingLine(f"fence.proxy.async.{space};", Where.ANY, PROXY_FENCE_OF_ONE_SPACE),)
    yield (MissingLine("fence.proxy.async;", Where.ANY, PROXY_FENCE),)
    yield (MissingLine("fence.proxy.alias;", Where.ANY, PROXY_FENCE),)


def _halves(first: FindingPlace, second: FindingPlace) -> Iterator[tuple[MissingLine, ...]]:
    """The half about reads alone, and the acquire half in front of the copy that overwrites what was read: they cost
    less than a whole proxy fence."""
    copies = second.instruction.words[:3] == ("cp", "async", "bulk") and second.what.startswith("writes")
    if first.what.startswith("reads") and "async" not in first.what and copies:
        head = "fence.proxy.async::generic"
        release = MissingLine(
            f"{head}.release.{READS}.cluster;", Where.FIRST, half_of_proxy_fence("release", reads=True)
        )
        acquire = MissingLine(
            RESTRICTED["acquire"].replace("fence", head, 1) + ";", Where.SECOND, half_of_proxy_fence("acquire")
        )
        yield release, acquire


def _ends(side: FindingPlace, entry: PtxFunction, places: tuple[Where, ...]) -> Iterator[tuple[MissingLine, ...]]:
    """Waits for the end of an asynchronous instruction."""
    words = side.instruction.words
    head, texts = "", list[str]()
    if words[:2] == ("cp", "async") and "bulk" not in words:
        head, texts = "cp.async", ["cp.async.wait_all;", *_texts(entry, ("cp", "async", "wait_group"))]
    elif words[0] == "cp" and "bulk_group" in words:
        read = ".read" if side.what.startswith("reads") else ""
        head, texts = "cp.async.bulk", [f"cp.async.bulk.wait_group{read} 0;"]
    elif words[0] == "tcgen05" and words[1:2] in (("ld",), ("st",)):
        texts = [f"tcgen05.wait::{words[1]}.sync.aligned;"]
    elif words[0] == "wgmma":
        head, texts = "wgmma", ["wgmma.wait_group.sync.aligned 0;"]
    commit = f"{head}.commit_group{'.sync.aligned' if head == 'wgmma' else ''};" if head else ""
    priced = [(text, WAIT) for text in texts]
    if commit and _texts(entry, (*head.split("."), "wait_group")) and not committed(side.instruction, entry):
        priced = [(commit, OTHER), *priced]
    own = _commit_of(side.instruction, entry)
    if commit and head != "cp.async" and own is None:
        priced += [(f"{commit} {text}", WAIT + OTHER) for text in texts]
    for text, price in priced:
        yield from ((MissingLine(text, where, price),) for where in places)
    if own is not None:
        yield from ((MissingLine(text, Where.FIRST, WAIT, own, after=True),) for text in texts)
    if head == "cp.async":
        yield from ((MissingLine(text, Where.FIRST, WAIT),) for text in _signals(entry))


def _signals(entry: PtxFunction) -> Iterator[str]:
    """Arrivals of copies on the mbarrier objects on which the text arrives: they are not counted in advance."""
    for instruction in entry.body or ():
        if instruction.words[:2] == ("mbarrier", "arrive") and "shared::cluster" not in instruction.opcode:
            yield f"cp.async.mbarrier.arrive.shared::cta.b64 {_operands(instruction)[-1]};"


def committed(copy: PtxInstruction, entry: PtxFunction) -> bool:
    """True if the text puts an asynchronous instruction into a group before it waits for groups."""
    return _commit_of(copy, entry) is not None


def _commit_of(copy: PtxInstruction, entry: PtxFunction) -> PtxInstruction | None:
    """The commit that puts an asynchronous instruction into a group; None if the text has a wait before one."""
    own = copy.words[0], "bulk" in copy.words
    following = _of_kind(own, (entry.body or ())[copy.number :])
    first = next((it for it in following if {"commit_group", "wait_group"} & set(it.words)), None)
    return first if first is not None and "commit_group" in first.words else None


def _of_kind(kind: tuple[str, bool], body: Iterable[PtxInstruction]) -> Iterator[PtxInstruction]:
    """The instructions that begin as copies or matrix operations of one kind do."""
    return (it for it in body if (it.words[0], "bulk" in it.words) == kind)


def _announced(finding: KernelFinding, entry: PtxFunction) -> Iterator[tuple[MissingLine, ...]]:
    """An expect-tx for copies that signal an mbarrier object, before a copy, or before an arrive on the object.

    Its number of bytes: what the message says has come, or what the copy says.
    """
    come = re.search(r"got (\d+) bytes that nobody announced", finding.message)
    copies = [
        instruction
        for instruction in entry.body or ()
        if instruction.words[:3] == ("cp", "async", "bulk") and _SIGNALS in instruction.words
    ]
    if come is None:
        copies = [
            instruction
            for instruction in copies
            if instruction is finding.sides[0].instruction and "tensor" not in instruction.words
        ]
        copies = copies if len(finding.sides) > 1 else []
    arrives = come is not None and "arrivals" in finding.message
    head = "arrive.expect_tx.release.cta.shared::cta.b64 _," if arrives else "expect_tx.relaxed.cta.shared::cta.b64"
    for copy in copies:
        places = [operand for operand in _operands(copy) if operand.startswith("[")]
        size = come[1] if come else bytes_of(copy)
        if len(places) < 3 or size is None:
            continue
        text = f"mbarrier.{head} {places[2]}, {size};"
        beside = (
            [] if arrives else [instruction for instruction in entry.body or () if _arrives(instruction, places[2])]
        )
        for instruction in (copy, *beside):
            guard = GUARD.match(instruction.span.text)
            yield (MissingLine((guard[0] if guard else "") + text, Where.SECOND, OTHER, instruction),)


def bytes_of(copy: PtxInstruction) -> str | None:
    """How many bytes a bulk copy copies, as its text says it."""
    return next((operand for operand in _operands(copy) if operand[0] not in "[{"), None)


def _operands(copy: PtxInstruction) -> list[str]:
    """The operands of a copy, as they are written."""
    text = copy.span.text[copy.span.text.index(copy.opcode) :]
    return re.findall(r"\[[^\]]*\]|\{[^}]*\}|[^\s,\[\]{}]+", text)[1:]


def _arrives(instruction: PtxInstruction, place: str) -> bool:
    return (
        instruction.words[:2] == ("mbarrier", "arrive")
        and "expect_tx" not in instruction.words
        and place in instruction.span.text
    )


def _fences(scope: str) -> Iterator[tuple[MissingLine, ...]]:
    cost = SCOPE_COST[scope]
    release = MissingLine(f"fence.acq_rel.{scope};", Where.RELEASING, cost)
    acquire = MissingLine(f"fence.acq_rel.{scope};", Where.ACQUIRING, cost)
    yield from ((release,), (acquire,), (release, acquire))


def _meetings(
    first: FindingPlace, second: FindingPlace, entry: PtxFunction, *, clustered: bool
) -> Iterator[tuple[MissingLine, ...]]:
    """Barriers that both threads come to."""
    if first.instruction.words[:2] == ("mbarrier", "init"):
        yield (MissingLine("fence.mbarrier_init.release.cluster;", Where.FIRST, SCOPE_COST["cta"]),)
    if first.cta == second.cta and first.warp == second.warp:
        yield (MissingLine("bar.warp.sync 0xffffffff;", Where.MEETING, OTHER),)
    for text in _barriers(entry, first.instruction, second.instruction):
        yield (MissingLine(text, Where.MEETING, SCOPE_COST["cta"]),)
    if clustered:
        body = entry.body or ()
        for instruction in body[:-1]:
            if instruction.words[:3] == ("barrier", "cluster", "arrive"):  # it may have lost its wait
                wait = MissingLine(
                    "barrier.cluster.wait;", Where.MEETING, SCOPE_COST["cluster"], body[instruction.number + 1]
                )
                yield (wait,)
        for text in ("barrier.cluster.wait;", "barrier.cluster.arrive; barrier.cluster.wait;"):
            yield (MissingLine(text, Where.MEETING, SCOPE_COST["cluster"]),)


def _barriers(entry: PtxFunction, *beside: PtxInstruction) -> list[str]:
    """Barriers of the text whose numbers are written out, the nearest to an access first: where warps have roles, it is
    one of the same role. The second is one of all threads."""
    far: dict[str, int] = {}
    for instruction in entry.body or ():
        plain = (
            instruction.words[0] in ("bar", "barrier")
            and "sync" in instruction.words
            and "warp" not in instruction.words
        )
        if plain and all(isinstance(operand, Imm) for operand in instruction.operands):
            text = _bare(instruction)
            way = min(abs(access.number - instruction.number) for access in beside)
            far[text] = min(way, far.get(text, way))
    texts = sorted(far, key=lambda text: far[text])[:MOST_BARRIERS]
    return list(dict.fromkeys([*texts[:1], WHOLE_BARRIER, *texts[1:]]))


def _texts(entry: PtxFunction, words: tuple[str, ...]) -> list[str]:
    return list(
        dict.fromkeys(
            _bare(instruction) for instruction in entry.body or () if instruction.words[: len(words)] == words
        )
    )


def _bare(instruction: PtxInstruction) -> str:
    """An instruction as it is written, without its guard."""
    return GUARD.sub("", " ".join(instruction.span.text.split())) + ";"


def _scope(first: FindingPlace, second: FindingPlace, cluster: int) -> str:
    """The narrowest scope that has both threads."""
    if first.cta == second.cta:
        return "cta"
    return "cluster" if first.cta // cluster == second.cta // cluster else "gpu"


__all__ = ["MissingLine", "Where", "bytes_of", "committed", "lines"]
