"""docs/mnemonics.md: each instruction of the PTX ISA, and which of its words litmus tests and kernels have.

In: tests/data/ptx-isa-9.4.tsv (family, mnemonic, words of its syntax lines), the table. Out: the page. Settled here:
what counts as accepted: a row has the word in a slot, or in its head. Which words go together is in the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from helpers.places import ROOT
from memmodel.isa.refused import refusal
from memmodel.isa.rows.row import Row
from memmodel.isa.table import HEADS

DATA = ROOT / "tests" / "data" / "ptx-isa-9.4.tsv"
PAGE = ROOT / "docs" / "mnemonics.md"

BOTH, KERNELS, LITMUS, MISSING = "both", "kernels", "litmus tests", "missing"
REFUSED = "refused: "

SPELLINGS = {
    "bar.warp.sync.no_membermask_overlap -1;": "",
    "cp.async.bulk.wait_group.sync_restrict::proxy::async 0;": "",
    "fabric.submit.commit_group;": "",
    "fence.alias.release.sync_restrict::read.sys;": "no other semantics or scope",
    "ld.global.nc.proxy::readonly.b32 %r1, [%rd1];": "the page has each of the two alone",
    "ld.global.proxy::readonly.v2.b32 {%r1, %r2}, [%rd1];": "the page has no vectors of it",
    "match.any.sync.no_membermask_overlap.b32 %r1, %r2, -1;": "",
    "redux.sync.add.no_membermask_overlap.u32 %r1, %r2, -1;": "",
    "shfl.sync.idx.no_membermask_overlap.b32 %r1, %r2, 0, 31, -1;": "",
    "trace.mark 1;": "",
    "vote.sync.any.no_membermask_overlap.pred %p1, %p2, -1;": "",
}
"""What ptxas 13.5 takes for sm_107a beside the pages, with a remark."""

HEADER = """\
# Every instruction of PTX

Each instruction of the PTX ISA {version} and each word of its syntax lines, compared with the [table](instructions.md)
that litmus tests and kernels are read by. `MEMMODEL_REWRITE=1 pytest tests/docs/test_mnemonics.py` writes this page;
the list of instructions is `tests/data/{data}`.

A word that is not named here is accepted wherever the instruction is. Which words go together, and who may write them,
is in the table. *Refused* means that the instruction or the word is recognised and an error says why; *missing*, that
it is an unknown word.

| | instructions | words |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Mnemonic:
    """An instruction of the ISA, with the words of its syntax lines."""

    family: str
    name: str
    words: tuple[str, ...]


def mnemonics() -> list[Mnemonic]:
    """The instructions, in the order of the ISA."""
    lines = (line.split("\t") for line in DATA.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return [Mnemonic(family, name, tuple(words.split())) for family, name, words in lines]


NAMES = frozenset(mnemonic.name for mnemonic in mnemonics())


def _prefixes(head: str) -> Iterator[str]:
    """The beginnings of a mnemonic, the longest first."""
    parts = head.split(".")
    return (".".join(parts[:length]) for length in range(len(parts), 0, -1))


def rows_of(name: str) -> dict[str, Row]:
    """The rows that an instruction of the ISA is read by, with the head of each."""
    own = next((head for head in _prefixes(name) if head in HEADS), None)
    if own is not None and not _has(own, HEADS[own], name.split("."), modules=True):
        own = None
    rows = {head: row for head, row in HEADS.items() if next((p for p in _prefixes(head) if p in NAMES), "") == name}
    return rows if own is None else {own: HEADS[own], **rows}


@cache
def status(name: str) -> str:
    """Who has an instruction."""
    rows = rows_of(name).values()
    litmus, kernels = any(not row.modules and not row.columns for row in rows), any(not row.columns for row in rows)
    named = refusal(name)
    if not kernels:
        return MISSING if named is None else REFUSED + named[1]
    return BOTH if litmus else KERNELS


def status_of(name: str, word: str) -> str:
    """Who has a word of an instruction."""
    rows = rows_of(name)
    parts = word.split(".")
    litmus = any(_has(head, row, parts, modules=False) for head, row in rows.items() if not row.modules)
    kernels = any(_has(head, row, parts, modules=True) for head, row in rows.items())
    if litmus or kernels:
        return BOTH if litmus and kernels else LITMUS if litmus else KERNELS
    named = refusal(f"{name}.{word}") or refusal(f"{name}.proxy.{word}")
    if named is not None:
        return REFUSED + named[1]
    reasons = (
        slot.refused[word][0].replace("{head}", head).removeprefix(f"{head}.{word} is not modelled: ")
        for head, row in rows.items()
        for slot in row.slots
        if word in slot.refused
    )
    return next((REFUSED + reason for reason in reasons), MISSING)


def _has(head: str, row: Row, parts: Iterable[str], *, modules: bool) -> bool:
    """True if a row has words in its head or in its slots, of blocks or of modules."""
    if row.columns:
        return False
    words = {word for slot in row.slots for word in (*slot.words, *(slot.modules if modules else ()))}
    columns = {word for slot in row.slots for word in slot.columns}
    return {*parts} <= (words - columns) | {*head.split(".")}


@cache
def statuses(mnemonic: Mnemonic) -> dict[str, str]:
    """Who has each word of an instruction; none of one that nobody has."""
    if status(mnemonic.name) not in (BOTH, KERNELS):
        return {}
    return {word: status_of(mnemonic.name, word) for word in mnemonic.words}


def page() -> str:
    """The whole page."""
    listed = mnemonics()
    version = DATA.stem.rpartition("-")[2]
    instructions = Counter(_kind(status(mnemonic.name)) for mnemonic in listed)
    words = Counter(_kind(who) for mnemonic in listed for who in statuses(mnemonic).values())
    text = HEADER.format(version=version, data=DATA.name)
    names = {BOTH: "litmus tests and kernels", KERNELS: "kernels alone", LITMUS: "litmus tests alone"}
    for kind in (BOTH, KERNELS, LITMUS, REFUSED, MISSING):
        if instructions[kind] or words[kind]:
            text += f"| {names.get(kind, kind.rstrip(': '))} | {instructions[kind]} | {words[kind]} |\n"
    for family, members in groupby(listed, key=lambda mnemonic: mnemonic.family):
        text += f"\n## {family}\n\n| instruction | accepted in | words that are not |\n|---|---|---|\n"
        for member in members:
            who = status(member.name)
            text += f"| `{member.name}` | {_shown(who)} | {_words(who, statuses(member))} |\n"
    text += "\n## Spelling only\n\nptxas 13.5 takes these for `sm_107a`, and no page of the ISA says what they do. "
    text += "They are refused with that reason.\n\n| spelling | |\n|---|---|\n"
    return text + "".join(f"| `{line}` | {remark} |\n" for line, remark in SPELLINGS.items())


def _kind(who: str) -> str:
    return REFUSED if who.startswith(REFUSED) else who


def _shown(who: str) -> str:
    return {BOTH: "litmus tests, kernels", KERNELS: "kernels", MISSING: "**missing**"}.get(who, who)


def _words(instruction: str, words: dict[str, str]) -> str:
    """The words that are not accepted where the instruction is, by what is said of them."""
    said: dict[str, list[str]] = {}
    for word, who in words.items():
        if who not in (BOTH, instruction):
            text = {KERNELS: "kernels only", LITMUS: "litmus tests only", MISSING: "**missing**"}.get(who, who)
            said.setdefault(text, []).append(f"`.{word}`")
    return "; ".join(f"{', '.join(group)}: {text.replace('|', ' or ')}" for text, group in said.items())
