"""A mnemonic sorted into the slots of its row, or refused.

In: a row. Out: `Spelling`, `Refusal`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memmodel.isa.rows.cases import covers, terms
from memmodel.isa.rows.row import Row, Syntax, listed
from memmodel.isa.rows.since import Since
from memmodel.ptx.targets import PtxLevel, version_of


@dataclass(frozen=True, slots=True)
class Spelling:
    """A legal mnemonic: its row, the head it begins with, its words and their positions (dotted parts) by slot.

    `form`: which of the forms of the row it has.
    """

    row: Row
    head: str
    words: Mapping[str, str]
    positions: Mapping[str, int]
    form: Syntax | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the operands that go with these words, `?` after those that may be left out."""
        names = self.row.operands if self.form is None else self.form.operands or self.row.operands
        cases, words = self.row.cases, {"head": self.head, **self.words}
        return tuple(name for name in names if name not in cases or covers(cases[name], words))

    def mnemonic(self, words: Mapping[str, str]) -> str:
        """The mnemonic with other words, in the order of the table."""
        return ".".join([self.head, *(words[slot.name] for slot in self.row.slots if slot.name in words)])

    def operand_names(self, count: int) -> tuple[str, ...] | None:
        """The names of `count` operands, without `?`; None if the spelling cannot have that number.

        Of the optional operands, the last ones are left out first.
        """
        names = list(self.operands)
        optional = [name for name in names if name.endswith("?")]
        if not len(names) - len(optional) <= count <= len(names):
            return None
        for name in optional[len(optional) - len(names) + count :]:
            names.remove(name)
        return tuple(name.removesuffix("?") for name in names)

    @property
    def operand_phrase(self) -> str:
        """A phrase for messages: the operands that this spelling takes. If one slot decides them, its word is named."""
        if not self.row.cases:
            return f"{self.head} takes {self.row.operand_text() if self.row.operands else 'no operands'}"
        slots = {term.slot for case in self.row.when.values() for term in terms(case)}
        word = self.words.get(slots.pop()) if len(slots) == 1 else None
        if word is not None:
            what = f"{self.head}.{word}"
        else:
            what = f"this {self.head}" if self.row.when or "hint" in self.words else self.head
        return f"{what} takes {listed(self.operands) or 'no operands'}"

    def requirements(self, operands: int) -> Mapping[str, Since]:
        """The versions and targets that this spelling with that many operands needs; a module needs all of them.

        Keys are the cases of the row; the empty case is the instruction itself.
        """
        names = [name.strip("[]") for name in self.operand_names(operands) or ()]
        if self.row.columns:
            return {}
        words = {**dict.fromkeys(names, ""), "head": self.head, **self.words}
        return {"": self.row.since, **{case: since for case, since in self.row.later.items() if covers(case, words)}}

    def missing_at(self, operands: int, level: PtxLevel) -> Iterator[tuple[int | None, str, bool]]:
        """What a module of this version and target lacks for this spelling with that many operands.

        Each is the dotted part at fault (None: the whole mnemonic), a message, and True if the version is too old,
        False if the target lacks it.
        """
        for case, since in self.requirements(operands).items():
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
        parts = [self.positions[slot] for slot in about if slot in self.positions]
        if not words and not names:
            return None, f"`{self.head}`"
        return (parts[-1] if parts else None), " with ".join(f"`{name}`" for name in (*words, *names))


@dataclass(frozen=True, slots=True)
class Refusal:
    """An illegal mnemonic: what is wrong, how to repair it, and which dotted part to point at (None: all)."""

    message: str
    hint: str | None
    part: int | None = None
