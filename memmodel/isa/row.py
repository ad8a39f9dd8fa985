"""What one row of the instruction table says.

In: nothing. Out: `Row`, `Slot`, `Rule`, and `Spelling`, a mnemonic sorted into slots. Settled here: the shape of a row,
and the language of cases, in which rows say of which words something holds (`terms`). A new instruction is one row, one
lowering function, one test; `document` writes its line in docs/instructions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memmodel.base.words import WordList
from memmodel.program.ops import Op
from memmodel.program.warp_ops import WarpOp
from memmodel.ptx.operands import Operand
from memmodel.ptx.targets import RENAMED, WITH_F, PtxLevel, Target, version_of
from memmodel.ptx.vocabulary import DataType, Scope

if TYPE_CHECKING:
    from memmodel.isa.call import Call


class Need(Enum):
    """When a slot has to be filled. BLOCKS: the column layout has no types and no state spaces to give."""

    OPTIONAL = "optional"
    BLOCKS = "in the block layout"
    ALWAYS = "always"


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
class Slot:
    """One kind of qualifier: an instruction carries at most one of `words`.

    `refused`: words that people write here although PTX has none such, each with the rule and the repair.
    `columns`: those of `words` that only the column layout knows (`refused` may say what blocks write instead).
    `modules`: further words, which only compiled modules may write (`refused` says why litmus tests may not).
    `what` names the kind in messages; `missing`: what is wrong without it and how to repair it, where that says more.
    """

    name: str
    words: tuple[str, ...]
    what: str
    need: Need = Need.OPTIONAL
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    missing: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """What a case says of one slot: it has one of `words`, or with `others` none of them; without `words`, any word.

    `negated`: what holds is the opposite.
    """

    slot: str
    words: tuple[str, ...] = ()
    others: bool = False
    negated: bool = False

    def holds(self, words: Mapping[str, str]) -> bool:
        """True if an instruction with these words (by slot) is meant."""
        word = words.get(self.slot)
        has = word is not None and (not self.words or (word in self.words) is not self.others)
        return has is not self.negated

    def meant(self, slot: Slot) -> tuple[str, ...]:
        """The words of the slot that the term is about."""
        known = (*slot.words, *slot.modules)
        return tuple(word for word in known if (word in self.words) is not self.others) if self.words else known


@lru_cache(maxsize=1024)
def terms(case: str) -> tuple[Term, ...]:
    """A case taken apart. `"sem=weak|relaxed scope !type"`: the word weak or relaxed in slot sem, any in scope, none in
    type. `type!=b32|b64`: another word than these. `!sem=release`: another word or none. `head=ld|st`: one of these.
    """
    taken_apart = []
    for text in case.split():
        slot, _, words = text.removeprefix("!").partition("=")
        others = slot.endswith("!")
        taken_apart.append(
            Term(slot.removesuffix("!"), tuple(filter(None, words.split("|"))), others, text.startswith("!"))
        )
    return tuple(taken_apart)


def covers(case: str, words: Mapping[str, str]) -> bool:
    """True if an instruction with these words (by slot) is one of the case."""
    return all(term.holds(words) for term in terms(case))


def either(words: Iterable[str]) -> str:
    """One of several words, in a case or a syntax line."""
    return "|".join(words)


@dataclass(frozen=True, slots=True)
class Rule:
    """A combination of qualifiers that is illegal: the mnemonics of a case.

    `message` and `hint` may name the instruction as {head} and the word of a slot as {slot}. The error points at the
    word of the slot that the case names last; if that is negated, at the whole mnemonic.
    """

    message: str
    hint: str
    case: str

    @property
    def at(self) -> str | None:
        """The slot whose word the error points at; None: the whole mnemonic."""
        last = terms(self.case)[-1]
        return None if last.negated else last.slot


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
class Since:
    """What has an instruction or a spelling ("PTX ISA Notes", "Target ISA Notes").

    `sm`: targets from this number on; the table begins with sm_20. `version`: the PTX ISA that introduced it, `9.4`.
    `families`: if it has numbers, only sm_Na and sm_Nf of these, and of those in `alone` only sm_Na. `until`: the last
    number that has it; 0: there is none.
    """

    sm: int = 0
    version: str = ""
    families: frozenset[int] = frozenset()
    alone: frozenset[int] = frozenset()
    until: int = 0

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of which only targets with a suffix have it; empty if every later one has it."""
        return self.families | self.alone

    def has(self, target: Target) -> bool:
        """True if modules for this target may have it."""
        number = RENAMED.get(target.number, target.number)
        if number < self.sm or (self.until and number > self.until):
            return False
        if not self.numbers:
            return True
        return bool(target.suffix) and number in (self.numbers if target.suffix == "a" else self.families)

    @property
    def targets(self) -> str:
        """The targets, for people: `sm_90`, `sm_90a`, `sm_100a, sm_100f, sm_103a or sm_103f`."""
        if self.until:
            return f"sm_{self.sm} to sm_{self.until}"
        if not self.numbers:
            return f"sm_{self.sm}"
        names = []
        for number in sorted(self.numbers):
            names.append(f"sm_{number}a")
            if number in self.families and number >= WITH_F:
                names.append(f"sm_{number}f")
        return ", ".join(names[:-1]) + " or " * (len(names) > 1) + names[-1]


FIRST = Since(20, "1.0")
"""What PTX has had from the beginning."""


@dataclass(frozen=True, slots=True)
class OperandRange:
    """The numbers that an operand may be, in a case. `what` names it in messages."""

    operand: str
    least: int
    most: int
    what: str
    case: str = ""


_CACHE_POLICY = {"cache_policy": "hint"}


def _listed(operands: Iterable[str], cases: Iterable[str] = ()) -> str:
    """Names of operands, in braces those that may be left out or that stand in some cases only."""
    text = ""
    for name in operands:
        shown = (", " if text else "") + name.removesuffix("?")
        text += "{" + shown + "}" if name.endswith("?") or name in cases else shown
    return text


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction of the table.

    `heads`: the fixed beginnings of its mnemonic (the longest head of all rows that fits decides). `slots`: the
    qualifiers that may follow, in the order PTX writes them; `ordered`: no other order is accepted (the ISA's own
    examples of ld, st, atom and fence permute theirs). `operands`: one name each, `?` after those that may be left
    out. `when`: operands that stand where the words fit a case, and only there (cache_policy: with a cache hint).
    `ranges`: the numbers that operands may be; of several for one operand the first whose case fits. `written`: how
    people see the operands, where the litmus reader rearranges them. `events` and `source` are for people; `source` is
    a section title of the PTX ISA. `since`: what has the instruction at all; `later`: what has a case of it that came
    later, which may name operands like slots (`"count !noComplete"`).
    `columns`: the row exists in the column layout only.
    `lower`: the lowering; None if the row exists in compiled modules only, which litmus tests are told.
    `lower_module`: the lowering for modules, where a litmus thread is an abstraction that a warp of a module is not.
    `module_operands`: brings the operands of a module into the order in which the litmus reader gives them.
    `forms`: how it is written (modules may permute the qualifiers); empty: every combination that breaks no rule.

    `sizes`: the bits of register operands that do not have those of slot `type` (1: a predicate), or the slot that says
    their type.
    `results`: how many of the operands before the first address are registers to write. `effect`: what the instruction
    does beside that. `together`: the threads that execute it together.
    `uniform`: the operands that have to be equal in all of these. `live`: no lane of the warp may have exited.
    `aligned`: all threads that execute it together have to come to the same instruction; None if `.aligned` says so.
    `elsewhere`: the same words with the same operands count as the same instruction, wherever they stand.
    `part`: the case in which it is half of another instruction, such as the commit of a copy's group: a search does not
    count it.
    """

    heads: tuple[str, ...]
    slots: tuple[Slot, ...]
    operands: tuple[str, ...]
    lower: Callable[[Call], tuple[Op, ...]] | None
    events: str
    source: str
    rules: tuple[Rule, ...] = ()
    ordered: bool = False
    since: Since = Since()
    later: Mapping[str, Since] = field(default_factory=dict)
    columns: bool = False
    when: Mapping[str, str] = field(default_factory=dict)
    written: str | None = None
    ranges: tuple[OperandRange, ...] = ()
    lower_module: Callable[[Call], tuple[Op | WarpOp, ...]] | None = None
    module_operands: Callable[[tuple[Operand, ...]], tuple[Operand, ...]] | None = None
    forms: tuple[Syntax, ...] = ()
    sizes: Mapping[str, int | str] = field(default_factory=dict)
    results: int = 1
    effect: Effect = Effect.MEMORY
    together: Together = Together.THREAD
    uniform: tuple[str, ...] = ()
    live: bool = False
    aligned: bool | None = None
    elsewhere: bool = False
    part: str | None = None

    @property
    def modules(self) -> bool:
        """True if the row exists in compiled modules only."""
        return self.lower is None

    def operand_text(self, operands: tuple[str, ...] = ()) -> str:
        """The operands (those of a syntax line, or of the row) as the PTX ISA shows them: `d, [a]{, cache_policy}`."""
        if self.written is not None and not operands:
            return self.written
        return _listed(operands or self.operands, self.cases)

    @property
    def cases(self) -> Mapping[str, str]:
        """The operands that stand in some cases only, each with its case."""
        return {**_CACHE_POLICY, **self.when} if "cache_policy" in self.operands else self.when


@dataclass(frozen=True, slots=True)
class Spelling:
    """A legal mnemonic: its row, the head it begins with, its words and their positions (dotted parts) by slot.

    `form`: which of the forms of the row it has.
    """

    row: Row
    head: str
    words: Mapping[str, str]
    where: Mapping[str, int]
    form: Syntax | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the operands that go with these words, `?` after those that may be left out."""
        names = self.row.operands if self.form is None else self.form.operands or self.row.operands
        cases, words = self.row.cases, {"head": self.head, **self.words}
        return tuple(name for name in names if name not in cases or covers(cases[name], words))

    def named(self, count: int) -> tuple[str, ...] | None:
        """The names of so many operands, without `?`; None if it does not have so many. The last ones that may be left
        out are left out first.
        """
        names = list(self.operands)
        optional = [name for name in names if name.endswith("?")]
        if not len(names) - len(optional) <= count <= len(names):
            return None
        for name in optional[len(optional) - len(names) + count :]:
            names.remove(name)
        return tuple(name.removesuffix("?") for name in names)

    @property
    def takes(self) -> str:
        """Which operands it takes, for people; the one slot that decides it is named."""
        if not self.row.cases:
            return f"{self.head} takes {self.row.operand_text() if self.row.operands else 'no operands'}"
        slots = {term.slot for case in self.row.when.values() for term in terms(case)}
        word = self.words.get(slots.pop()) if len(slots) == 1 else None
        if word is not None:
            what = f"{self.head}.{word}"
        else:
            what = f"this {self.head}" if self.row.when or "hint" in self.words else self.head
        return f"{what} takes {_listed(self.operands) or 'no operands'}"

    def needs(self, operands: int) -> Mapping[str, Since]:
        """What has this spelling with that many operands: a module meets all of these. Keys are the cases of the row;
        the empty case is the instruction itself.
        """
        names = [name.strip("[]") for name in self.named(operands) or ()]
        if self.row.columns:
            return {}
        words = {**dict.fromkeys(names, ""), "head": self.head, **self.words}
        return {"": self.row.since, **{case: since for case, since in self.row.later.items() if covers(case, words)}}

    def beyond(self, operands: int, level: PtxLevel) -> Iterator[tuple[int | None, str, bool]]:
        """What a level does not have of this spelling with that many operands: the dotted part that it is about
        (None: all of them), what needs which version or targets, and whether it is the version.
        """
        for case, since in self.needs(operands).items():
            part, what = self._about(case)
            if level.version is not None and version_of(since.version) > version_of(level.version):
                yield part, f"{what} needs PTX {since.version}", True
            if level.target is not None and not since.has(level.target):
                yield part, f"{what} needs {since.targets}", False

    def _about(self, case: str) -> tuple[int | None, str]:
        """The part of the mnemonic that a case of this spelling is about, and its words for people."""
        about = [term.slot for term in terms(case) if not term.negated]
        words = [f".{self.words[slot]}" for slot in about if slot in self.words]
        names = [f"the operand {slot}" for slot in about if slot not in self.words and slot != "head"]
        parts = [self.where[slot] for slot in about if slot in self.where]
        if not words and not names:
            return None, f"`{self.head}`"
        return (parts[-1] if parts else None), " with ".join(f"`{name}`" for name in (*words, *names))


@dataclass(frozen=True, slots=True)
class Refusal:
    """An illegal mnemonic: what is wrong, how to repair it, and which dotted part to point at (None: all)."""

    message: str
    hint: str | None
    part: int | None = None


# ---- vocabulary that several rows share ----------------------------------------------------------------------


def data_type(word: str) -> DataType | None:
    """`u32` as a type, `pred` too; None if the word names no type."""
    if word == "pred":
        return DataType("pred", 1)
    return DataType(word[0], int(word[1:])) if word in BITS + UNSIGNED + SIGNED + FLOATS else None


def numeric_type(word: str) -> DataType | None:
    """A type that instructions compute in as `DataType`: of integers, floating point, or several of them."""
    return _NUMERIC.get(word)


_NUMERIC = {
    str(type): type
    for type in (
        *(DataType(kind, width) for kind in "bus" for width in (8, 16, 32, 64)),
        *(DataType("f", width) for width in (16, 32, 64)),
        DataType("b", 128),
        DataType("pred", 1),
        DataType("bf", 16),
        *(DataType(kind, 32, lanes) for kind in "us" for lanes in (2, 4)),
        DataType("f", 32, 2),
        DataType("bf", 32, 2),
        DataType("f", 64, 2),
    )
}
FOUR_NUMBERS = ("e5m2x4", "e4m3x4", "e3m2x4", "e2m3x4", "e2m1p4x4", "ue8m0x4", "e2m1x4")
"""Formats of four floating-point numbers in 32 bits, or in 16, which instructions compute in: bits, as far as
memmodel knows.
"""
_NUMERIC |= dict.fromkeys(FOUR_NUMBERS, DataType("b", 32)) | {"e2m1x4": DataType("b", 16)}

BITS = ("b8", "b16", "b32", "b64", "b128")
UNSIGNED = ("u8", "u16", "u32", "u64")
SIGNED = ("s8", "s16", "s32", "s64")
FLOATS = ("f32", "f64")
INTEGERS = (*UNSIGNED[1:], *SIGNED[1:])
LOGICAL = ("b16", "b32", "b64", "pred")

SCOPES: Mapping[str, Scope] = {scope.name.lower(): scope for scope in Scope}

NO_SUCH_SCOPE = {
    "cta::cluster": ("PTX has no scope .cta::cluster", "write .cluster, which reaches the same threads"),
    "gl": (".gl is a level of membar, not a scope", "write .gpu"),
    "device": ("PTX calls this scope .gpu", "write .gpu"),
    "system": ("PTX calls this scope .sys", "write .sys"),
    "block": ("PTX calls this scope .cta", "write .cta"),
}


_KINDS = {
    "acc": "precision", "alayout": "layout of A", "atype": "type", "blayout": "layout of B", "bool": "combination",
    "btype": "type", "clamp": "treatment of coordinates outside the surface", "cmp": "comparison",
    "collector": "collector buffer use", "comp": "component", "completion": "completion mechanism",
    "cop": "cache operator", "cta_group": "CTA group", "ctype": "type", "dim": "number of dimensions",
    "down": "direction", "dst": "destination", "dst_fmt": "format of the destination", "dtype": "type",
    "first": "type of a", "geom": "geometry", "hint": "cache hint", "L1": "L1 eviction priority",
    "L2": "L2 eviction priority", "multicast": "qualifier", "num": "number of repetitions", "op": "operation",
    "phase_type": "phase", "prefetch": "prefetch size", "primary": "primary priority",
    "proxies": "pair of proxies", "query": "attribute", "restrict": "restriction", "rnd": "rounding",
    "scale_vec": "size of the vector of scales", "second": "type of b", "secondary": "secondary priority",
    "sem": "memory semantics", "space": "state space", "src": "source", "src_fmt": "format of the source",
    "stype": "type of the scales", "target": "type of the result", "vec": "vector qualifier",
    "vector": "scale vector size",
}  # fmt: skip
"""What slots are called in messages, where that is not their name."""


def _slot(
    name: str,
    words: tuple[str, ...],
    need: Need,
    what: str = "",
    refused: Mapping[str, tuple[str, str]] | None = None,
    columns: tuple[str, ...] = (),
    modules: tuple[str, ...] = (),
    missing: tuple[str, str] | None = None,
) -> Slot:
    words = words or (() if modules else (name,))
    what = what or _KINDS.get(name) or ("qualifier" if words in ((), (name,)) else name)
    return Slot(name, words, what, need, refused or {}, columns, modules, missing)


def optional(name: str, *words: str, **more: Any) -> Slot:
    """A slot that may be empty; without words, a qualifier that is there or not. `more`: further fields of `Slot`."""
    return _slot(name, words, Need.OPTIONAL, **more)


def needed(name: str, *words: str, **more: Any) -> Slot:
    """A slot that has to be filled."""
    return _slot(name, words, Need.ALWAYS, **more)


def in_blocks(name: str, *words: str, **more: Any) -> Slot:
    """A slot that has to be filled but in the column layout, such as a type."""
    return _slot(name, words, Need.BLOCKS, **more)


def scope_slot(make: Callable[..., Slot] = optional, words: tuple[str, ...] = tuple(SCOPES)) -> Slot:
    """The scope of an access, a fence or an atomic."""
    return make("scope", *words, refused=NO_SUCH_SCOPE)


def types_by_operation(
    types: Mapping[str, str],
    among: Iterable[str],
    case: str = "",
    message: str = "{head}.{op} has no type .{type}",
    modules: Mapping[str, str] | None = None,
) -> tuple[Rule, ...]:
    """For operations (`min|max`) the types that they have: of `among`, in a case, they have no others.

    `modules`: further types, which compiled modules have.
    """
    rules = []
    for operations, has in types.items():
        known = {*has.split("|"), *(modules or {}).get(operations, "").split("|")}
        hint = "it has " + " ".join(f".{word}" for word in has.split("|"))
        refused = either(word for word in among if word not in known)
        rules.append(Rule(message, hint, f"{case} op={operations} type={refused}"))
    return tuple(rules)
