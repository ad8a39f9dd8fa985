"""What of a kernel's synchronization can be removed or weakened.

In: PtxFunction. Out: `Mutation`s, each of which makes another function of it. Settled here: an instruction that is
removed stays in its place as one that does nothing, so that labels and numbers stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from memmodel.ptx.module.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import Imm, Operand, Pair, Register
from memmodel.repair.spellings import PROXY_SPACES, SCOPES

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
    """One change of one instruction. `what`: in words."""

    instruction: PtxInstruction
    what: str
    becomes: PtxInstruction

    def of(self, entry: PtxFunction) -> PtxFunction:
        """The function with this change."""
        body = list(entry.body or ())
        body[self.instruction.number] = self.becomes
        return replace(entry, body=tuple(body))


def mutations(entry: PtxFunction) -> list[Mutation]:
    """All changes, in the order of the text."""
    return [change for one in entry.body or () for change in _of(one)]


def _of(one: PtxInstruction) -> Iterator[Mutation]:
    words = one.words
    head = words[0]
    if head in FENCES:
        yield _removed(one)
        yield from _fence(one)
    elif head in ("bar", "barrier"):
        yield _removed(one)
        yield from _barrier(one)
    elif head == "mbarrier":
        yield from _object(one)
    elif head == "cp" and any(word in GROUPS for word in words):
        yield _removed(one)
        yield from _more_groups(one)
    elif head == "cp" and words[2:4] == ("mbarrier", "arrive"):
        yield _removed(one)
    elif head == "wgmma" and one.kind != "mma_async":
        yield _removed(one)
        yield from _more_groups(one)
    elif (head == "tcgen05" and one.kind in TENSOR) or head == "griddepcontrol":
        yield _removed(one)
    elif head == "multimem" and one.kind != "cp":
        yield from _semantics(one)
        yield from _scope(one)
    elif head in ACCESSES and one.kind == "async":
        if "sys" in words and "mmio" not in words:
            yield _worded(one, "sys", "gpu")
    elif head in ACCESSES:
        yield from _semantics(one)
        yield from _scope(one)


def _removed(one: PtxInstruction) -> Mutation:
    return Mutation(one, "removed", replace(one, words=NOTHING, operands=(Imm(0),)))


def _worded(one: PtxInstruction, old: str, new: str | None) -> Mutation:
    """One word of the opcode in place of another, or left out."""
    words = tuple(word for word in (new if word == old else word for word in one.words) if word is not None)
    return Mutation(one, f".{old} becomes .{new}" if new is not None else f"without .{old}", replace(one, words=words))


def _semantics(one: PtxInstruction) -> Iterator[Mutation]:
    for old in one.words[1:]:
        for new in WEAKER.get(old, ()):
            load, store = one.words[0] == "ld", one.words[0] in ("st", "red")
            if (load and new == "release") or (store and new in ("acquire", "acq_rel")):
                continue
            yield _worded(one, old, new)


def _scope(one: PtxInstruction) -> Iterator[Mutation]:
    """The next narrower scope, and the narrowest."""
    for old in one.words[1:]:
        if old in SCOPES[1:]:
            wide = SCOPES.index(old)
            for new in dict.fromkeys((SCOPES[wide - 1], SCOPES[0])):
                yield _worded(one, old, new)


def _fence(one: PtxInstruction) -> Iterator[Mutation]:
    words = one.words
    if words[0] == "membar":
        if one.kind in ("gl", "sys"):
            yield _worded(one, one.kind, "cta")
        return
    if "proxy" in words:
        space = next((word for word in words if word in PROXY_SPACES), None)
        if words[2:3] == ("async",) and space is None:
            for new in ("shared::cta", "global"):
                yield Mutation(one, f"with .{new}", replace(one, words=(*words, new)))
        elif space is not None:
            yield _worded(one, space, "global" if space.startswith("shared") else "shared::cta")
        yield from _scope(one)
        return
    if "mbarrier_init" in words:
        return
    if "sc" in words:
        yield _worded(one, "sc", "acq_rel")
    if "acq_rel" in words and len(words) == 3:
        scope = words[2]
        narrow = "shared::cta" if scope == "cta" else "shared::cluster"
        yield Mutation(
            one, f"with .sync_restrict::{narrow}, acquire only",
            replace(one, words=("fence", "acquire", f"sync_restrict::{narrow}", "cluster")),
        )  # fmt: skip
    yield from _scope(one)


def _barrier(one: PtxInstruction) -> Iterator[Mutation]:
    operands = one.operands
    if "cluster" in one.words:
        if "arrive" in one.words:
            plain = "release" not in one.words and "relaxed" not in one.words
            words = (*one.words[:3], "relaxed", *one.words[3:]) if plain else ()
            if plain:
                yield Mutation(one, "with .relaxed", replace(one, words=words))
            elif "release" in one.words:
                yield _worded(one, "release", "relaxed")
        return
    if len(operands) > 1 and isinstance(operands[-1], Imm) and "warp" not in one.words:
        yield _with(one, len(operands) - 1, operands[-1].value + 32, "32 more threads")


def _with(one: PtxInstruction, place: int, value: int, what: str) -> Mutation:
    operands: list[Operand] = list(one.operands)
    operands[place] = Imm(value)
    return Mutation(one, what, replace(one, operands=tuple(operands)))


def _object(one: PtxInstruction) -> Iterator[Mutation]:
    kind = one.kind
    if kind == "init":
        yield _removed(one)
        yield from _numbered(one, 1, "arrival")
    elif kind == "inval":
        yield _removed(one)
    elif kind in ("test_wait", "try_wait"):
        target = one.operands[0].first if isinstance(one.operands[0], Pair) else one.operands[0]
        if isinstance(target, Register):
            passes = replace(one, words=("mov", "pred"), operands=(target, Imm(1)))
            yield Mutation(one, "removed", passes)
        yield from _acquire(one)
        if "parity" in one.words and len(one.operands) > 2 and isinstance(one.operands[2], Imm):
            yield _with(one, 2, one.operands[2].value ^ 1, "the other parity")
    elif kind in ("arrive", "arrive_drop"):
        yield _removed(one)
        if "expect_tx" in one.words:
            yield from _numbered(one, len(one.operands) - 1, "byte", 16)
        yield from _semantics(one)
        if not any(word in WEAKER or word == "relaxed" for word in one.words):
            words = (
                *one.words[:2],
                "relaxed",
                *(() if any(w in SCOPES for w in one.words) else ("cta",)),
                *one.words[2:],
            )
            yield Mutation(one, "with .relaxed", replace(one, words=words))
        yield from _scope(one)
    elif kind == "expect_tx":
        yield _removed(one)
        yield from _numbered(one, 1, "byte", 16)


def _acquire(one: PtxInstruction) -> Iterator[Mutation]:
    if "relaxed" in one.words:
        return
    if "acquire" in one.words:
        yield _worded(one, "acquire", "relaxed")
    else:
        scope = () if any(word in SCOPES for word in one.words) else ("cta",)
        yield Mutation(one, "with .relaxed", replace(one, words=(*one.words[:2], "relaxed", *scope, *one.words[2:])))
    yield from _scope(one)


def _numbered(one: PtxInstruction, place: int, unit: str, step: int = 1) -> Iterator[Mutation]:
    """A number one step up and one step down, where it is written."""
    if place >= len(one.operands) or not isinstance(one.operands[place], Imm):
        return
    operand = one.operands[place]
    assert isinstance(operand, Imm)
    plural = "s" if step > 1 else ""
    yield _with(one, place, operand.value + step, f"{step} more {unit}{plural}")
    if operand.value > step:
        yield _with(one, place, operand.value - step, f"{step} fewer {unit}s" if step > 1 else f"1 fewer {unit}")


def _more_groups(one: PtxInstruction) -> Iterator[Mutation]:
    if one.operands and isinstance(one.operands[0], Imm):
        yield _with(one, 0, one.operands[0].value + 1, "one more group may be open")
