"""Other spellings of an instruction, as the instruction table has them: weaker or stronger, narrower or wider.

In: an instruction of a test. Out: mnemonics with what they change. Settled here: the order of scopes and of semantics.
Whether a spelling is legal is not settled here: the test around it is lowered again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memmodel.base.labels import Fence, Mark, Marker, ProxyFence
from memmodel.errors import InputError
from memmodel.isa.lower import read_instruction
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.synchronization.fence_async import READS
from memmodel.litmus.syntax import Instruction, LitmusTest
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Emit
from memmodel.ptx.operands import Mem, Reg
from memmodel.ptx.vocabulary import Scope, Sem

SCOPES = tuple(scope.name.lower() for scope in Scope)
PROXY_SPACES = ("global", "shared::cta", "shared::cluster")
LEVELS = ("cta", "gl", "sys")


def is_fence(lowered: LoweredTest, thread: int, index: int) -> bool:
    """True if instruction number `index` of a thread is only a fence, so that it may be dropped."""
    ops = lowered.programs[thread].ops(index)
    return bool(ops) and all(
        isinstance(op, Emit)
        and (
            isinstance(op.label, Fence | ProxyFence)
            or (isinstance(op.label, Mark) and op.label.what not in (Marker.EXIT, Marker.END))
        )
        for op in ops
    )


def narrower(item: Instruction, test: LitmusTest) -> Iterator[tuple[str, Spelling]]:
    """Mnemonics that order less, with their spellings."""
    spelling = read_instruction(item, test)
    words = dict(spelling.words)
    for changed in (
        *_scopes(words, down=True),
        *_sems(spelling, words, down=True),
        *_fence_forms(spelling, words),
    ):
        yield from _legal(item, test, spelling, changed)
    if spelling.head == "membar" and words.get("level") in LEVELS:
        scope = {"gl": "gpu"}.get(words["level"], words["level"])
        fence = replace(item, mnemonic=f"fence.acq_rel.{scope}")
        yield fence.mnemonic, read_instruction(fence, test)


def narrowest(item: Instruction, test: LitmusTest) -> Iterator[tuple[str, Spelling]]:
    """The spellings of `narrower`, and again what is narrower than those."""
    seen = {item.mnemonic}
    todo = [item.mnemonic]
    while todo:
        for mnemonic, spelling in narrower(replace(item, mnemonic=todo.pop()), test):
            if mnemonic not in seen:
                seen.add(mnemonic)
                todo.append(mnemonic)
                yield mnemonic, spelling


def wider(item: Instruction, test: LitmusTest, scopes: frozenset[str]) -> Iterator[tuple[str, Spelling]]:
    """Mnemonics that order more, with their spellings; a scope that is not in the instruction is one of `scopes`."""
    read = read_instruction(item, test)
    words = dict(read.words)
    changed = [*_scopes(words, down=False, among=scopes), *_sems(read, words, down=False, among=scopes)]
    changed += _written_out(read, words, scopes)
    if "restrict" in words and read.head == "fence":
        plain = {name: word for name, word in words.items() if name != "restrict"}
        changed += [plain, *({**plain, "sem": sem} for sem in _other_sems(words["sem"], down=False))]
    if read.head == "fence.proxy.async::generic" and words.get("restrict") == READS:
        changed.append({**words, "restrict": "sync_restrict::shared::cta"})
    if read.head == "fence.proxy.async" and "space" in words:
        changed.append({name: word for name, word in words.items() if name != "space"})
    if words.get("read") and "wait_group" in read.head:
        changed.append({name: word for name, word in words.items() if name != "read"})
    seen: set[str] = set()
    for form in changed:
        for mnemonic, spelling in _legal(item, test, read, form):
            if mnemonic not in seen:
                seen.add(mnemonic)
                yield mnemonic, spelling


def other_spaces(item: Instruction, test: LitmusTest) -> Iterator[str]:
    """The same proxy fence for another state space; an access by an address in a register, in the whole cluster."""
    spelling = read_instruction(item, test)
    words = dict(spelling.words)
    mapped = any(isinstance(operand, Mem) and isinstance(operand.base, Reg) for operand in item.operands)
    if spelling.head in ("ld", "st", "atom", "red") and mapped and words.get("space") in ("shared", "shared::cta"):
        yield from (mnemonic for mnemonic, _ in _legal(item, test, spelling, {**words, "space": "shared::cluster"}))
    if spelling.head == "fence.proxy.async" and "space" in words:
        for space in PROXY_SPACES:
            yield from (mnemonic for mnemonic, _ in _legal(item, test, spelling, {**words, "space": space}))


RESTRICTED = {
    "release": "fence.release.sync_restrict::shared::cta.cluster",
    "acquire": "fence.acquire.sync_restrict::shared::cluster.cluster",
}
"""The fences of the cluster that are about shared memory alone."""


def apart(item: Instruction, test: LitmusTest) -> tuple[str, str, Spelling] | None:
    """The semantics of a release or an acquire of the cluster, its relaxed mnemonic and spelling; None for others."""
    spelling = read_instruction(item, test)
    words = dict(spelling.words)
    sem = semantics(spelling)
    if sem not in RESTRICTED or scope_of(spelling) != "cluster" or spelling.head.startswith("fence"):
        return None
    relaxed = next(_legal(item, test, spelling, {**words, "sem": "relaxed"}), None)
    return None if relaxed is None else (sem, *relaxed)


def _legal(
    item: Instruction, test: LitmusTest, read: Spelling, words: dict[str, str]
) -> Iterator[tuple[str, Spelling]]:
    mnemonic = read.mnemonic(words)
    if mnemonic == item.mnemonic:
        return
    try:
        spelling = read_instruction(replace(item, mnemonic=mnemonic), test)
    except InputError:
        return
    yield mnemonic, spelling


def _scopes(
    words: dict[str, str], *, down: bool, among: frozenset[str] = frozenset(SCOPES)
) -> Iterator[dict[str, str]]:
    if "level" in words:
        at = LEVELS.index(words["level"]) if words["level"] in LEVELS else 0
        yield from ({**words, "level": level} for level in (LEVELS[:at] if down else LEVELS[at + 1 :]))
    if words.get("scope") in SCOPES:
        at = SCOPES.index(words["scope"])
        yield from (
            {**words, "scope": scope} for scope in (SCOPES[:at] if down else SCOPES[at + 1 :]) if scope in among
        )


def _written_out(spelling: Spelling, words: dict[str, str], among: frozenset[str]) -> Iterator[dict[str, str]]:
    """Wider scopes of an operation on an mbarrier object that names none, which is then .cta."""
    slots = {slot.name for slot in spelling.row.slots}
    if "mbarrier" in spelling.head and {"sem", "scope"} <= slots and not {"sem", "scope"} & words.keys():
        yield from ({**words, "sem": semantics(spelling), "scope": scope} for scope in SCOPES[1:] if scope in among)


def _sems(
    spelling: Spelling, words: dict[str, str], *, down: bool, among: frozenset[str] = frozenset(SCOPES)
) -> Iterator[dict[str, str]]:
    slot = next((slot for slot in spelling.row.slots if slot.name == "sem"), None)
    if slot is None:
        return
    sem = semantics(spelling)
    now = words.get("scope") or ("sys" if sem == "volatile" else "")
    wider = () if down else SCOPES[SCOPES.index(now) + 1 :] if now else SCOPES
    scopes = [scope for scope in SCOPES if scope == now or (scope in among and (not now or scope in wider))]
    for other in _other_sems(sem, down=down):
        if other not in slot.words:
            continue
        if other == "weak":
            yield {name: word for name, word in words.items() if name not in ("sem", "scope")} | {"sem": "weak"}
        else:
            yield from ({**words, "sem": other, "scope": scope} for scope in scopes)


def _other_sems(sem: str, *, down: bool) -> tuple[str, ...]:
    """The semantics that order less, or more. What is volatile is relaxed, and of the scope .sys."""
    if sem == "volatile":
        return ("relaxed",) if down else ("acquire", "release")
    mine = Sem(sem)
    return tuple(
        other.value for other in Sem if other is not mine and (mine.orders(other) if down else other.orders(mine))
    )


def semantics(spelling: Spelling) -> str:
    """The semantics of an instruction, also of one that names none."""
    sem, head = spelling.words.get("sem"), spelling.head
    if sem is not None:
        return sem
    if head == "fence":
        return "acq_rel"
    if "mbarrier" in head or head.startswith("barrier.cluster"):
        return "release" if "arrive" in head else "acquire" if "wait" in head else "weak"
    return "relaxed" if head in ("atom", "red") else "weak"


def scope_of(spelling: Spelling) -> str:
    """The scope of an instruction, also of one that names none."""
    scope, head = spelling.words.get("scope"), spelling.head
    if scope is not None:
        return scope
    if semantics(spelling) == "volatile":
        return "sys"
    return "gpu" if head in ("atom", "red") else "cluster" if head.startswith("barrier.cluster") else "cta"


def _fence_forms(spelling: Spelling, words: dict[str, str]) -> Iterator[dict[str, str]]:
    """fence.proxy.async for one state space, its release half for reads alone; fences of the cluster for shared memory
    only; waits for groups that wait for reads alone."""
    if spelling.head == "cp.async.bulk.wait_group" and "read" not in words:
        yield {**words, "read": "read"}
    if spelling.head == "fence.proxy.async" and "space" not in words:
        yield from ({**words, "space": space} for space in PROXY_SPACES)
    if spelling.head == "fence.proxy.async::generic" and words.get("restrict") == "sync_restrict::shared::cta":
        yield {**words, "restrict": READS}
    if spelling.head == "fence" and "restrict" not in words and words.get("scope") != "cta":
        yield {"sem": "acquire", "restrict": "sync_restrict::shared::cluster", "scope": "cluster"}
        yield {"sem": "release", "restrict": "sync_restrict::shared::cta", "scope": "cluster"}
