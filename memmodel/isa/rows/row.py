"""One row of the instruction table.

In: nothing. Out: `Row`. Settled here: the shape of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memmodel.base.words import WordList
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import Need, Slot
from memmodel.isa.rows.types import numeric_type
from memmodel.program.ops import Op
from memmodel.ptx.operands import Operand

if TYPE_CHECKING:
    from memmodel.isa.call import Call
    from memmodel.program.warp_ops import WarpOp


class Effect(WordList):
    """What an instruction does beside writing its registers."""

    COMPUTES = "computes only"
    MEMORY = "accesses memory"
    SYNCHRONIZES = "synchronizes"
    ASYNCHRONOUS = "issues what goes on by itself"
    CONTROL = "changes control"
    NOTHING = "has no effect that the model knows"


class Together(WordList):
    """The threads that execute one instruction together: each of them has to execute the same."""

    THREAD = "thread"
    WARP = "warp"
    WARPGROUP = "warpgroup"
    CTA_PAIR = "CTA pair"


@dataclass(frozen=True, slots=True)
class Syntax:
    """One syntax line of an instruction, as its page has it: `"rnd? ftz? sat? f32"` for add{.rnd}{.ftz}{.sat}.f32.

    Each part names a slot of the row, or words of one (`f16|f16x2`, of the first slot that has them); `?`: it may be
    left out. `operands`: their names, where they differ from those of the row.
    """

    text: str
    operands: tuple[str, ...] = ()

    def parts(self, slots: tuple[Slot, ...]) -> Iterator[tuple[Slot, tuple[str, ...], bool]]:
        """The slots that are filled, each with the words that it may have, and whether it must be filled."""
        free = list(slots)
        for part in self.text.split():
            name = part.removesuffix("?")
            words = tuple(name.split("|"))
            slot = next(slot for slot in free if slot.name == name or {*words} <= {*slot.words, *slot.modules})
            free.remove(slot)
            yield slot, (slot.words + slot.modules if slot.name == name else words), not part.endswith("?")

    def fits(self, words: Mapping[str, str], slots: tuple[Slot, ...], columns: bool) -> bool:
        """True if an instruction with these words (by slot) is written so.

        `columns`: in the column layout, where a type may be left out; another word that is left out is the first of its
        slot.
        """
        left = dict(words)
        for slot, allowed, needed in self.parts(slots):
            word = left.pop(slot.name, None)
            if word is None and columns and slot.need is Need.BLOCKS:
                word = allowed[0] if numeric_type(allowed[0]) else slot.words[0]
            if word not in allowed and (word is not None or needed):
                return False
        return not left

    def spelled(self, head: str, slots: tuple[Slot, ...], *, modules: bool = True) -> str | None:
        """The syntax line for people. Without `modules`: as far as litmus tests have it; None if they do not."""
        text = head
        for slot, words, needed in self.parts(slots):
            shown = either(word for word in words if modules or word in slot.words)
            if needed and not shown:
                return None
            text += f".{shown}" if needed else "{." + shown + "}" if shown else ""
        return text


@dataclass(frozen=True, slots=True)
class OperandRange:
    """The numbers that an operand may be, in a case. `what` names it in messages."""

    operand: str
    least: int
    most: int
    what: str
    case: str = ""


_CACHE_POLICY = {"cache_policy": "hint"}


def listed(operands: Iterable[str], cases: Iterable[str] = ()) -> str:
    """Names of operands, in braces those that may be left out or that stand in some cases only."""
    text = ""
    for name in operands:
        shown = (", " if text else "") + name.removesuffix("?")
        text += "{" + shown + "}" if name.endswith("?") or name in cases else shown
    return text


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction of the table."""

    heads: tuple[str, ...]
    """The fixed beginnings of its mnemonic. Of all rows the longest head that fits decides."""
    slots: tuple[Slot, ...]
    """The qualifiers that may follow, in the order in which PTX writes them."""
    operands: tuple[str, ...]
    """One name each, with `?` after those that may be left out."""
    lower: Callable[[Call], tuple[Op, ...]] | None
    """The lowering; None if the row exists in compiled modules only, which litmus tests are told."""
    events: str
    """What it does, for people."""
    source: str
    """The section of the PTX ISA that describes it."""
    rules: tuple[Rule, ...] = ()
    ordered: bool = False
    """True if no other order of the qualifiers is accepted. The ISA's own examples of ld, st, atom and fence permute
    theirs."""
    since: Since = Since()
    """The version and the targets that have the instruction at all."""
    later: Mapping[str, Since] = field(default_factory=dict)
    """By case, what has a case that came later. A case may name operands like slots (`"count !noComplete"`)."""
    columns: bool = False
    """True if the row exists in the column layout only."""
    when: Mapping[str, str] = field(default_factory=dict)
    """Operands that stand where the words fit a case, and only there."""
    written: str | None = None
    """How people see the operands, where the litmus reader rearranges them."""
    ranges: tuple[OperandRange, ...] = ()
    """The numbers that operands may be. Of several for one operand, the first whose case fits."""
    lower_module: Callable[[Call], tuple[Op | WarpOp, ...]] | None = None
    """The lowering for modules, where a litmus thread is an abstraction that a warp of a module is not."""
    module_operands: Callable[[tuple[Operand, ...]], tuple[Operand, ...]] | None = None
    """Brings the operands of a module into the order in which the litmus reader gives them."""
    forms: tuple[Syntax, ...] = ()
    """How it is written; empty: every combination that breaks no rule. Modules may permute the qualifiers."""
    sizes: Mapping[str, int | str] = field(default_factory=dict)
    """The bits of register operands that do not have those of slot `type` (1: a predicate), or the slot that says their
    type."""
    results: int = 1
    """How many of the operands before the first address are registers to write."""
    effect: Effect = Effect.MEMORY
    """What the instruction does beside writing registers."""
    together: Together = Together.THREAD
    """The threads that execute it together."""
    uniform: tuple[str, ...] = ()
    """The operands that have to be equal in all threads that execute it together."""
    live: bool = False
    """True if no lane of the warp may have exited."""
    aligned: bool | None = None
    """True if all threads that execute it together have to come to the same instruction; None if `.aligned` says so."""
    elsewhere: bool = False
    """True if the same words with the same operands count as the same instruction, wherever they stand."""
    of_window: bool = False
    """True if the result is the same wherever in its window an address lies."""
    part: str | None = None
    """The case in which it is half of another instruction, such as the commit of a copy's group: a search does not
    count it."""

    @property
    def modules(self) -> bool:
        """True if the row exists in compiled modules only."""
        return self.lower is None

    def operand_text(self, operands: tuple[str, ...] = ()) -> str:
        """The operands (those of a syntax line, or of the row) as the PTX ISA shows them: `d, [a]{, cache_policy}`."""
        if self.written is not None and not operands:
            return self.written
        return listed(operands or self.operands, self.cases)

    @property
    def cases(self) -> Mapping[str, str]:
        """The operands that stand in some cases only, each with its case."""
        return {**_CACHE_POLICY, **self.when} if "cache_policy" in self.operands else self.when
