"""What a repair may add to a test: stronger spellings, fences and waits in between, other numbers, fences elsewhere.

In: a lowered test. Out: edits with their costs. Settled here: what is worth trying. A thread without tensor memory
needs no tcgen05 fence, a test without asynchronous accesses no proxy fence, and no fence is wider than the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from memmodel.base.labels import Access
from memmodel.isa.lower import read_instruction
from memmodel.lint.advice import part_label
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Imm, Instruction, Thread
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Assign, IssueAsync, Jump
from memmodel.ptx import Place, Proxy
from memmodel.repair.costs import (
    PROXY_FENCE,
    PROXY_FENCE_OF_ONE_SPACE,
    SCOPE_COST,
    SEM_FACTOR,
    TCGEN05_FENCE,
    WAIT,
    cost,
)
from memmodel.repair.edits import Edit, after, before, whole
from memmodel.repair.spellings import is_fence, wider

NUMBER = 1.0
MOVE = 1.0
LINE = 1.0
"""What a changed number, a moved fence, and one more line cost beside what the instruction costs."""


def strengthenings(lowered: LoweredTest) -> list[Edit]:
    """Changes that only add order: of these, more never allow more."""
    test = lowered.test
    found: list[Edit] = []
    for number, thread in enumerate(test.threads):
        body = list(instructions(thread))
        for index, item in enumerate(body):
            now = cost(read_instruction(item, test))
            options = sorted(((cost(spelling), mnemonic) for mnemonic, spelling in wider(item, test)))
            for level, (price, mnemonic) in enumerate(options):
                span = item.mnemonic_span
                what = f"{_at(thread, item)}: {item.mnemonic} -> {mnemonic}"
                added = max(price - now, 0.0) + NUMBER
                found.append(Edit(span.start, span.end, mnemonic, what, added, (number, index, "spelling"), level))
        found += _insertions(lowered, number, body)
    return found


def _at(thread: Thread, item: Instruction) -> str:
    return f"{thread.name}, line {item.span.line}"


def _insertions(lowered: LoweredTest, number: int, body: list[Instruction]) -> Iterator[Edit]:
    test, thread = lowered.test, lowered.test.threads[number]
    lines = list(_lines(lowered, number))
    for index, item in enumerate(body):
        if not _visible(lowered, number, index):
            continue
        for line, price in lines:
            start, end, text = before(test.source, item, line)
            what = f"{_at(thread, item)}: {line} before {item.mnemonic}"
            implied = frozenset((number, index, other) for other in _implied(line))
            yield Edit(start, end, text, what, price + LINE, (number, index, line), 0, implied)
    last = next((n for n in range(len(body) - 1, -1, -1) if _visible(lowered, number, n)), None)
    if last is not None:
        for line, price in lines:
            if "wait" in line:
                start, end, text = after(test.source, body[last], line)
                what = f"{_at(thread, body[last])}: {line} after {body[last].mnemonic}"
                yield Edit(start, end, text, what, price + LINE, (number, len(body), line))


def _implied(line: str) -> Iterator[str]:
    """The weaker lines that say nothing more where this one stands."""
    if line == "fence.proxy.async":
        yield from (f"{line}.{space}" for space in ("global", "shared::cta", "shared::cluster"))
    if line.startswith(("fence.acq_rel.", "fence.sc.")):
        sem, scope = line.split(".")[1:]
        scopes = list(SCOPE_COST)
        for narrow in scopes[: scopes.index(scope) + 1]:
            yield from (f"fence.{one}.{narrow}" for one in ("acq_rel", sem) if f"fence.{one}.{narrow}" != line)


def _visible(lowered: LoweredTest, number: int, index: int) -> bool:
    """Does an instruction do more than compute?"""
    ops = [step.op for step in lowered.programs[number].steps if step.index == index]
    return any(not isinstance(op, Assign | Jump) for op in ops)


def _lines(lowered: LoweredTest, number: int) -> Iterator[tuple[str, float]]:
    """What may stand between two instructions of a thread, with its price."""
    test = lowered.test
    for scope in _widths([thread.place for thread in test.threads]):
        yield f"fence.acq_rel.{scope}", SCOPE_COST[scope] * SEM_FACTOR["acq_rel"]
        yield f"fence.sc.{scope}", SCOPE_COST[scope] * SEM_FACTOR["sc"]
    everywhere = {item.parts[0] for thread in test.threads for item in instructions(thread)}
    mnemonics = [item.mnemonic for item in instructions(test.threads[number])]
    if _uses_async_proxy(lowered):
        yield "fence.proxy.async", PROXY_FENCE
        for space in ("global", "shared::cta", "shared::cluster"):
            yield f"fence.proxy.async.{space}", PROXY_FENCE_OF_ONE_SPACE
    if any(variable.alias_of is not None for variable in test.variables):
        yield "fence.proxy.alias", PROXY_FENCE
    if any(mnemonic.startswith("mbarrier.init") for mnemonic in mnemonics):
        yield "fence.mbarrier_init.release.cluster", SCOPE_COST["cta"]
    if "tcgen05" in everywhere:
        yield "tcgen05.fence::before_thread_sync", TCGEN05_FENCE
        yield "tcgen05.fence::after_thread_sync", TCGEN05_FENCE
    yield from ((line, WAIT) for begins, line in _WAITS if any(mnemonic.startswith(begins) for mnemonic in mnemonics))


_WAITS = (
    ("cp.async.c", "cp.async.wait_all"),
    ("cp.async.bulk", "cp.async.bulk.commit_group"),
    ("cp.async.bulk", "cp.async.bulk.wait_group 0"),
    ("cp.reduce.async.bulk", "cp.async.bulk.commit_group"),
    ("cp.reduce.async.bulk", "cp.async.bulk.wait_group 0"),
    ("wgmma.mma", "wgmma.fence.sync.aligned"),
    ("wgmma.mma", "wgmma.commit_group.sync.aligned"),
    ("wgmma.mma", "wgmma.wait_group.sync.aligned 0"),
    ("tcgen05.ld", "tcgen05.wait::ld.sync.aligned"),
    ("tcgen05.st", "tcgen05.wait::st.sync.aligned"),
)
"""What begins an asynchronous operation of a kind, and what waits for it."""


def _widths(places: list[Place]) -> list[str]:
    """The scopes that just include two threads of the test."""
    found: set[str] = set()
    for one, other in combinations(places, 2):
        if one.gpu != other.gpu:
            found.add("sys")
        elif one.cluster_id != other.cluster_id:
            found.add("gpu")
        elif one.cta_id != other.cta_id:
            found.add("cluster")
        else:
            found.add("cta")
    return sorted(found or {"cta"}, key=lambda scope: SCOPE_COST[scope])


def _uses_async_proxy(lowered: LoweredTest) -> bool:
    return any(
        isinstance(label := part_label(part), Access) and label.proxy is Proxy.ASYNC
        for program in lowered.programs
        for step in program.steps
        if isinstance(step.op, IssueAsync)
        for part in step.op.parts
    )


# ---- changes that may also allow more --------------------------------------------------------------------------------


def replacements(lowered: LoweredTest) -> list[Edit]:
    """Other parities, counts and byte counts; fences in another place of their thread."""
    test = lowered.test
    sizes = _sizes(lowered)
    found: list[Edit] = []
    for number, thread in enumerate(test.threads):
        body = list(instructions(thread))
        for index, item in enumerate(body):
            found += _numbers(thread, item, (number, index), sizes)
            if is_fence(lowered, number, index):
                found += _moves(lowered, number, body, index)
    return found


def _numbers(thread: Thread, item: Instruction, group: tuple[int, int], sizes: list[int]) -> Iterator[Edit]:
    head = item.mnemonic
    for place, operand in enumerate(item.operands):
        if not isinstance(operand, Imm) or operand.span is None:
            continue
        value = operand.value
        others: list[int] = []
        if "wait" in head and "parity" in head and value in (0, 1):
            others = [1 - value]
        elif "wait_group" in head and value > 0:
            others = list(range(value))
        elif "expect_tx" in head or "complete_tx" in head:
            others = [size for size in sizes if size != value]
        elif head.startswith(("mbarrier.init", "mbarrier.arrive", "bar.", "barrier.cta", "barrier.sync")):
            others = [one for one in (value - 1, value + 1, value + 2) if one > 0 and place > 0]
        for other in others:
            what = f"{_at(thread, item)}: {value} -> {other} in {item.mnemonic}"
            yield Edit(operand.span.start, operand.span.end, str(other), what, NUMBER, (*group, "number", place))


def _sizes(lowered: LoweredTest) -> list[int]:
    """Numbers of bytes that the test's copies name, and what several of them make together."""
    found = {
        operand.value
        for thread in lowered.test.threads
        for item in instructions(thread)
        for operand in item.operands
        if isinstance(operand, Imm) and (item.mnemonic.startswith("cp.") or "expect_tx" in item.mnemonic)
    }
    sums = {one + other for one in found for other in found} | {one // 2 for one in found if one % 2 == 0}
    return sorted(one for one in found | sums if one > 0)[:12]


def _moves(lowered: LoweredTest, number: int, body: list[Instruction], index: int) -> Iterator[Edit]:
    test, thread, fence = lowered.test, lowered.test.threads[number], body[index]
    source = test.source
    start, end = whole(source, fence)
    line = fence.span.text
    for other in range(len(body)):
        if other in (index, index + 1) or not _visible(lowered, number, other):
            continue
        at, _, text = before(source, body[other], line)
        what = (
            f"{_at(thread, fence)}: move {fence.mnemonic} before {body[other].mnemonic} (line {body[other].span.line})"
        )
        if at < start:
            moved = (at, end, text + source.text[at:start])
        elif at >= end:
            moved = (start, at, source.text[end:at] + text)
        else:
            continue
        yield Edit(*moved, what, MOVE, (number, index, "move"))
