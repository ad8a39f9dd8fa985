"""The synchronization of a kernel that can be removed or weakened.

In: PtxFunction. Out: `Mutation`s, each of which gives another function. Settled here: a removed instruction is replaced
by one that does nothing, so that labels and numbers stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.synchronization.fence_async import READS
from memmodel.isa.table import HEADS
from memmodel.litmus.syntax import Layout
from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Imm, Operand, Pair, Register
from memmodel.repair.spellings import PROXY_SPACES, SCOPES

REMOVED = "removed"
"""What a mutation says that takes its instruction away."""

NOTHING = ("nanosleep", "u32")
WEAKER = {
    "sc": ("acq_rel",),
    "seq_cst": ("acq_rel",),
    "acq_rel": ("release", "acquire", "relaxed"),
    "acquire": ("relaxed",),
    "release": ("relaxed",),
}
"""Semantics, and those to which an access, an arrive or a wait can be weakened."""
FENCES = ("fence", "membar")
ACCESSES = ("ld", "st", "atom", "red", "multimem")
GROUPS = ("commit_group", "wait_group", "wait_all")
TENSOR = ("commit", "wait", "fence")


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one instruction. `what`: in words. `miscounts`: a number is wrong then, and nothing is weaker.
    `copies`: the same change of the other copies of its place in the source, which is made together with it.
    """

    instruction: PtxInstruction
    what: str
    becomes: PtxInstruction
    miscounts: bool = False
    copies: tuple[Mutation, ...] = ()

    @property
    def instructions(self) -> tuple[PtxInstruction, ...]:
        """All that it changes, in the order of the text."""
        return (self.instruction, *(copy.instruction for copy in self.copies))

    def of(self, entry: PtxFunction) -> PtxFunction:
        """The function with this change."""
        body = list(entry.body or ())
        for change in (self, *self.copies):
            body[change.instruction.number] = change.becomes
        return replace(entry, body=tuple(body))


def with_all(entry: PtxFunction, changes: Iterable[Mutation]) -> PtxFunction:
    """The function with several changes."""
    for change in changes:
        entry = change.of(entry)
    return entry


def told_apart(changes: Iterable[Mutation]) -> frozenset[tuple[int, str]]:
    """What tells changes of a kernel apart."""
    return frozenset((change.instruction.number, change.what) for change in changes)


def is_weaker(change: Mutation, other: Mutation) -> bool:
    """True if a change leaves less of an instruction than another one does: a narrower scope, or no order where the
    other one keeps some."""
    mine, others = change.becomes.words, other.becomes.words
    if change.instruction.number != other.instruction.number or len(mine) != len(others):
        return False
    differ = [pair for pair in zip(mine, others, strict=True) if pair[0] != pair[1]]
    if len(differ) != 1 or change.becomes.operands != other.becomes.operands:
        return False
    (word, theirs), *_ = differ
    narrower = word in SCOPES and theirs in SCOPES and SCOPES.index(word) < SCOPES.index(theirs)
    return narrower or (word == "relaxed" and theirs in WEAKER)


def mutations(entry: PtxFunction, *, miscounts: bool = True) -> list[Mutation]:
    """All changes, in the order of the text. `miscounts`: with those that make a number wrong."""
    changes = (change for instruction in entry.body or () for change in _of(instruction))
    return [change for change in changes if (miscounts or not change.miscounts) and _is_legal(change)]


def _is_legal(change: Mutation) -> bool:
    """True if the instruction that it becomes is spelled as the table allows: a word may need another one beside it."""
    words = change.becomes.words
    return words == change.instruction.words or isinstance(
        read_mnemonic(".".join(words), Layout.MODULE, HEADS), Spelling
    )


def copies_together(changes: Sequence[Mutation]) -> list[Mutation]:
    """The same changes, but those of copies of one place in the source are one: a compiler writes a line several times,
    where it unrolls a loop. Calls that are inlined have different places, by their callers.
    """
    groups: dict[object, list[Mutation]] = {}
    for change in changes:
        place = change.instruction.location
        alone = change.instruction.number if place is None else None
        groups.setdefault((place, alone, change.instruction.words, change.what), []).append(change)
    return [replace(first, copies=tuple(others)) for first, *others in groups.values()]


def _of(instruction: PtxInstruction) -> Iterator[Mutation]:
    words = instruction.words
    head = words[0]
    if head in FENCES:
        yield _removed(instruction)
        yield from _fence(instruction)
    elif head in ("bar", "barrier"):
        yield _removed(instruction)
        yield from _barrier(instruction)
    elif head == "mbarrier":
        yield from _object(instruction)
    elif head == "cp" and any(word in GROUPS for word in words):
        yield _removed(instruction)
        yield from _more_groups(instruction)
    elif head == "cp" and words[2:4] == ("mbarrier", "arrive"):
        yield _removed(instruction)
    elif head == "wgmma" and instruction.kind != "mma_async":
        yield _removed(instruction)
        yield from _more_groups(instruction)
    elif head == "cp" or (head == "tensormap" and instruction.kind == "cp_fenceproxy"):
        yield from _scope(instruction)
    elif (head == "tcgen05" and instruction.kind.partition("::")[0] in TENSOR) or head == "griddepcontrol":
        yield _removed(instruction)
    elif head == "multimem" and instruction.kind != "cp":
        yield from _semantics(instruction)
        yield from _scope(instruction)
    elif head in ACCESSES and instruction.kind == "async":
        if "sys" in words and "mmio" not in words:
            yield _worded(instruction, "sys", "gpu")
    elif head in ACCESSES:
        yield from _semantics(instruction)
        yield from _scope(instruction)


def _removed(instruction: PtxInstruction) -> Mutation:
    return Mutation(instruction, REMOVED, replace(instruction, words=NOTHING, operands=(Imm(0),)))


def _worded(instruction: PtxInstruction, old: str, new: str | None) -> Mutation:
    """One word of the opcode in place of another, or left out."""
    words = tuple(word for word in (new if word == old else word for word in instruction.words) if word is not None)
    return Mutation(
        instruction,
        f".{old} becomes .{new}" if new is not None else f"without .{old}",
        replace(instruction, words=words),
    )


def _semantics(instruction: PtxInstruction) -> Iterator[Mutation]:
    for old in instruction.words[1:]:
        for new in WEAKER.get(old, ()):
            load, store = instruction.words[0] == "ld", instruction.words[0] in ("st", "red")
            if (load and new == "release") or (store and new in ("acquire", "acq_rel")):
                continue
            yield _worded(instruction, old, new)


def _scope(instruction: PtxInstruction) -> Iterator[Mutation]:
    """The next narrower scope, and the narrowest."""
    for old in instruction.words[1:]:
        if old in SCOPES[1:]:
            wide = SCOPES.index(old)
            for new in dict.fromkeys((SCOPES[wide - 1], SCOPES[0])):
                yield _worded(instruction, old, new)


def _fence(instruction: PtxInstruction) -> Iterator[Mutation]:
    words = instruction.words
    if words[0] == "membar":
        if instruction.kind in ("gl", "sys"):
            yield _worded(instruction, instruction.kind, "cta")
        return
    if "proxy" in words:
        space = next((word for word in words if word in PROXY_SPACES), None)
        if words[2:3] == ("async",) and space is None:
            for new in ("shared::cta", "global"):
                yield Mutation(instruction, f"with .{new}", replace(instruction, words=(*words, new)))
        elif space is not None:
            yield _worded(instruction, space, "global" if space.startswith("shared") else "shared::cta")
        elif "async::generic" in words and "sync_restrict::shared::cta" in words:
            yield _worded(instruction, "sync_restrict::shared::cta", READS)
        yield from _scope(instruction)
        return
    if "mbarrier_init" in words:
        return
    if "sc" in words:
        yield _worded(instruction, "sc", "acq_rel")
    if "acq_rel" in words and words[2] != "cta":
        yield Mutation(
            instruction, "with .sync_restrict::shared::cluster, acquire only",
            replace(instruction, words=("fence", "acquire", "sync_restrict::shared::cluster", "cluster")),
        )  # fmt: skip
    yield from _scope(instruction)


def _barrier(instruction: PtxInstruction) -> Iterator[Mutation]:
    operands = instruction.operands
    if "cluster" in instruction.words:
        if "arrive" in instruction.words:
            plain = "release" not in instruction.words and "relaxed" not in instruction.words
            words = (*instruction.words[:3], "relaxed", *instruction.words[3:]) if plain else ()
            if plain:
                yield Mutation(instruction, "with .relaxed", replace(instruction, words=words))
            elif "release" in instruction.words:
                yield _worded(instruction, "release", "relaxed")
        return
    if len(operands) > 1 and isinstance(operands[-1], Imm) and "warp" not in instruction.words:
        yield _with(instruction, len(operands) - 1, operands[-1].value + 32, "32 more threads", miscounts=True)


def _with(instruction: PtxInstruction, place: int, value: int, what: str, *, miscounts: bool = False) -> Mutation:
    operands: list[Operand] = list(instruction.operands)
    operands[place] = Imm(value)
    return Mutation(instruction, what, replace(instruction, operands=tuple(operands)), miscounts)


def _object(instruction: PtxInstruction) -> Iterator[Mutation]:
    kind = instruction.kind
    if kind == "init":
        yield _removed(instruction)
        yield from _numbered(instruction, 1, "arrival")
    elif kind == "inval":
        yield _removed(instruction)
    elif kind in ("test_wait", "try_wait"):
        target = instruction.operands[0].first if isinstance(instruction.operands[0], Pair) else instruction.operands[0]
        if isinstance(target, Register):
            passes = replace(instruction, words=("mov", "pred"), operands=(target, Imm(1)))
            yield Mutation(instruction, REMOVED, passes)
        yield from _acquire(instruction)
        if "parity" in instruction.words and len(instruction.operands) > 2 and isinstance(instruction.operands[2], Imm):
            yield _with(instruction, 2, instruction.operands[2].value ^ 1, "the other parity", miscounts=True)
    elif kind in ("arrive", "arrive_drop"):
        yield _removed(instruction)
        if "expect_tx" in instruction.words:
            yield from _numbered(instruction, len(instruction.operands) - 1, "byte", 16)
        yield from _semantics(instruction)
        if not any(word in WEAKER or word == "relaxed" for word in instruction.words):
            words = (
                *instruction.words[:2],
                "relaxed",
                *(() if any(w in SCOPES for w in instruction.words) else ("cta",)),
                *instruction.words[2:],
            )
            yield Mutation(instruction, "with .relaxed", replace(instruction, words=words))
        yield from _scope(instruction)
    elif kind == "expect_tx":
        yield _removed(instruction)
        yield from _numbered(instruction, 1, "byte", 16)
        yield from _scope(instruction)
    elif kind == "complete_tx":
        yield from _scope(instruction)


def _acquire(instruction: PtxInstruction) -> Iterator[Mutation]:
    if "relaxed" in instruction.words:
        return
    if "acquire" in instruction.words:
        yield _worded(instruction, "acquire", "relaxed")
    else:
        scope = () if any(word in SCOPES for word in instruction.words) else ("cta",)
        yield Mutation(
            instruction,
            "with .relaxed",
            replace(instruction, words=(*instruction.words[:2], "relaxed", *scope, *instruction.words[2:])),
        )
    yield from _scope(instruction)


def _numbered(instruction: PtxInstruction, place: int, unit: str, step: int = 1) -> Iterator[Mutation]:
    """A number one step up and one step down, where it is written."""
    if place >= len(instruction.operands) or not isinstance(instruction.operands[place], Imm):
        return
    operand = instruction.operands[place]
    assert isinstance(operand, Imm)
    plural = "s" if step > 1 else ""
    yield _with(instruction, place, operand.value + step, f"{step} more {unit}{plural}", miscounts=True)
    if operand.value > step:
        fewer = f"{step} fewer {unit}{plural}"
        yield _with(instruction, place, operand.value - step, fewer, miscounts=True)


def _more_groups(instruction: PtxInstruction) -> Iterator[Mutation]:
    if instruction.operands and isinstance(instruction.operands[0], Imm):
        yield _with(instruction, 0, instruction.operands[0].value + 1, "one more group may be open")
