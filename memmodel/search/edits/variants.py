"""Programs like a program: with other words of the instruction table, other places of its threads.

In: LitmusTest. Out: LitmusTests of the same size. Every word of every slot of a row is tried, so that a word that is
added to the table is tried from that day on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from memmodel.isa.rows.spelling import Spelling
from memmodel.litmus.syntax import Instruction, Layout, LitmusTest, Thread
from memmodel.ptx.vocabulary import Scope
from memmodel.search.edits.reducing import counts, spelling_of

_SAME = ("type", "vec", "num", "shape", "hint", "L1", "L2", "prefetch", "cop", "primary", "secondary", "rnd")
"""Slots whose words change no label: sizes of what is accessed, and hints."""

_SCOPES = tuple(scope.name.lower() for scope in Scope)


def respelt(test: LitmusTest) -> Iterator[LitmusTest]:
    """The program with one instruction spelt otherwise, or with one scope in place of another throughout."""
    for number, thread in enumerate(test.threads):
        for at, entry in enumerate(thread.body):
            if isinstance(entry, Instruction) and counts(entry, test.layout):
                for mnemonic in _mnemonics(entry, test):
                    body = (*thread.body[:at], replace(entry, mnemonic=mnemonic), *thread.body[at + 1 :])
                    yield _with_thread(test, number, replace(thread, body=body))
    yield from rescoped(test)


def rescoped(test: LitmusTest) -> Iterator[LitmusTest]:
    """The program with one scope in place of another throughout."""
    for old in _SCOPES:
        for new in _SCOPES:
            if new != old:
                threads = tuple(_rescoped(thread, old, new) for thread in test.threads)
                if threads != test.threads:
                    yield replace(test, threads=threads)


def _rescoped(thread: Thread, old: str, new: str) -> Thread:
    body = tuple(
        replace(entry, mnemonic=".".join(new if part == old else part for part in entry.parts))
        if isinstance(entry, Instruction) and old in entry.parts
        else entry
        for entry in thread.body
    )
    return replace(thread, body=body)


def _mnemonics(entry: Instruction, test: LitmusTest) -> Iterator[str]:
    """The legal mnemonics that differ from one in the word of one slot, or in a scope that goes with it."""
    spelling = spelling_of(entry.mnemonic, test.layout)
    if spelling is None:
        return
    for head in spelling.row.heads:
        if head != spelling.head and _is_legal(_spelt(head, spelling, spelling.words), test.layout):
            yield _spelt(head, spelling, spelling.words)
    for slot in spelling.row.slots:
        if slot.name in _SAME:
            continue
        for word in (None, *slot.words):
            if word == spelling.words.get(slot.name):
                continue
            words = {name: text for name, text in spelling.words.items() if name != slot.name}
            words |= {} if word is None else {slot.name: word}
            for variant in _with_scope(spelling, words):
                mnemonic = _spelt(spelling.head, spelling, variant)
                if _is_legal(mnemonic, test.layout):
                    yield mnemonic
                    break


def _is_legal(mnemonic: str, layout: Layout) -> bool:
    """True if PTX has an instruction that is spelt so. Tables may also have what only published tests write."""
    spelling = spelling_of(mnemonic, layout)
    if spelling is None:
        return False
    words = spelling.words
    return not any(words.get(slot.name) in slot.columns for slot in spelling.row.slots)


def _with_scope(spelling: Spelling, words: dict[str, str]) -> Iterator[dict[str, str]]:
    """The words as they are, without a scope, or with one: some semantics want one, and some forbid it."""
    yield words
    scopes = next((slot.words for slot in spelling.row.slots if slot.name == "scope"), ())
    if "scope" in words:
        yield {name: word for name, word in words.items() if name != "scope"}
    for scope in reversed(scopes):
        yield {**words, "scope": scope}


def _spelt(head: str, spelling: Spelling, words: Mapping[str, str]) -> str:
    return ".".join([head, *(words[slot.name] for slot in spelling.row.slots if slot.name in words)])


def _with_thread(test: LitmusTest, number: int, thread: Thread) -> LitmusTest:
    return replace(test, threads=tuple(thread if at == number else other for at, other in enumerate(test.threads)))
