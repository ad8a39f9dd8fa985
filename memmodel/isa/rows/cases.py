"""The language of cases, in which rows say of which words something holds (`terms`), and rules that forbid cases.

In: a case as text. Out: `Term`, `Rule`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from memmodel.isa.rows.slots import Slot


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

    def matching_words(self, slot: Slot) -> tuple[str, ...]:
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
