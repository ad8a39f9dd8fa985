"""What may come next at the cursor.

In: Document and an offset. Out: completion items as the protocol has them, each with the range that it replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memmodel.base.resources import DEFAULT_MODEL, axioms_dir
from memmodel.cat.load import shipped_models
from memmodel.cat.names import BASE_NAMES
from memmodel.cat.text.lexer import WORDS as CAT_WORDS
from memmodel.cat.text.outline import defined
from memmodel.isa.table import HEADS
from memmodel.litmus.header import WORDS
from memmodel.litmus.syntax import Instruction, Label, Layout, LitmusTest, Thread
from memmodel.litmus.text.places import blanked
from memmodel.lsp.cat_files import texts_of
from memmodel.lsp.document import Document, Json
from memmodel.lsp.instruction import row_of
from memmodel.lsp.litmus_names import parsed
from memmodel.program.special import SPECIAL
from memmodel.ptx.operands import Reg, elements
from memmodel.ptx.vocabulary import Space
from memmodel.recovery.every_error import Passage, without
from memmodel.source import Source

MOST = 500
"""At most this many words are offered."""

VARIABLE, FUNCTION, FIELD, KEYWORD, FILE, CONSTANT, EVENT = 6, 3, 5, 14, 17, 21, 23
"""Kinds of completion items, as the protocol numbers them."""

QUESTIONS = ("race", "hang", "hazard", "undefined")
"""What a question may ask for in place of a condition."""

_MNEMONIC = re.compile(r"(?:^|[;{}|])\s*(?:[\w$]+\s*:\s*)*(?:@!?\S+\s+)?([A-Za-z][\w.:]*)?\Z")
_WORD = re.compile(r"[\w$%.-]*\Z")
_REGISTER = re.compile(r"%[\w$]+")


def completion(document: Document, offset: int) -> list[Json]:
    """What may stand at an offset."""
    items = {"litmus": _litmus, "cat": _cat, "ptx": _ptx}[document.kind](document, offset)
    unique: dict[object, Json] = {}
    for item in items:
        unique.setdefault(item["label"], item)
        if len(unique) == MOST:
            break
    return list(unique.values())


def _items(
    document: Document, offset: int, typed: str, words: Iterable[str], kind: int, detail: str = ""
) -> Iterator[Json]:
    """Completion items: the words that begin with the text typed before an offset, each replacing that text."""
    start = offset - len(typed)
    for word in words:
        if word.lower().startswith(typed.lower()):
            edit = {"range": document.range(start, offset), "newText": word}
            yield {"label": word, "kind": kind, "detail": detail, "filterText": word, "textEdit": edit}


def _typed(text: str, offset: int) -> str:
    match = _WORD.search(text[max(0, offset - 200) : offset])
    return match[0] if match is not None else ""


# ---- tests -----------------------------------------------------------------------------------------------------------


def _litmus(document: Document, offset: int) -> Iterator[Json]:
    text = blanked(document.source)
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    if re.match(r"\s*Expect\b", line):
        yield from _expectation(document, offset, line)
        return
    question = text.rfind("\n}", 0, offset) < max(text.rfind(word, 0, offset) for word in ("exists", "forall"))
    test = parsed(document.source if question else _finished(document.source, text, offset))
    if question:
        yield from _question(document, offset, _typed(text, offset), test)
        return
    layout = test.layout if test is not None else Layout.BLOCKS
    opened, closed = text.count("{", 0, offset), text.count("}", 0, offset)
    inside = opened > closed if layout is Layout.BLOCKS else closed > 0
    mnemonic = _MNEMONIC.search(text[max(0, offset - 400) : offset])
    if inside and mnemonic is not None:
        yield from _mnemonic(document, offset, mnemonic[1] or "", columns=layout is Layout.COLUMNS, modules=False)
    elif inside:
        yield from _operands(document, offset, _typed(text, offset), test)
    else:
        typed = _typed(text, offset)
        spaces = (f".{space.value}" for space in Space)
        yield from _items(document, offset, typed, (*spaces, "thread", "exists", "forall", "locations"), KEYWORD)


def _finished(source: Source, text: str, offset: int) -> Source:
    """The test without the instruction that is being typed."""
    begin = max(text.rfind(mark, 0, offset) for mark in ";{}|\n") + 1
    label = re.compile(r"\s*[\w$]+\s*:(?!:)").match(text, begin, offset)
    begin = label.end() if label is not None else begin
    if "{" not in text[:begin]:
        return source
    in_blocks = re.search(r"^[ \t]*thread\b", text[:begin], re.MULTILINE) is not None  # in a table the `;` ends the row
    rest = re.compile(r"[^\n;|{}]*;?" if in_blocks else r"[^\n;|{}]*").match(text, offset)
    return without(source, Passage(source.span(begin, rest.end() if rest is not None else offset)))


def _expectation(document: Document, offset: int, line: str) -> Iterator[Json]:
    typed = re.split(r"[\s=:+]", line)[-1]
    if ":" in line.split()[-1] and not line[-1].isspace():
        yield from _items(document, offset, typed, WORDS, CONSTANT, "what a file expects of a model")
        return
    readings = (f"readings/{path.stem}" for path in sorted((axioms_dir() / "readings").glob("*.cat")))
    typed = re.split(r"[\s=]", line)[-1]
    yield from _items(document, offset, typed, (DEFAULT_MODEL, *shipped_models(), *readings), FILE, "model")


def _question(document: Document, offset: int, typed: str, test: LitmusTest | None) -> Iterator[Json]:
    before = document.source.text[: offset - len(typed)]
    if not before.rstrip().endswith(("(", "\\", "/", ",", "~", ":")):
        yield from _items(document, offset, typed, QUESTIONS, EVENT, "a finding")
    if test is None:
        return
    owner = re.search(r"([\w$]+):\Z", before)
    for thread in test.threads:
        names = sorted(_registers(thread))
        if owner is None:
            terms = (f"{thread.name}:{name}" for name in names)
            yield from _items(document, offset, typed, terms, VARIABLE, "register")
        elif owner[1] == thread.name:
            yield from _items(document, offset, typed, names, VARIABLE, "register")
    if owner is None:
        yield from _items(document, offset, typed, (each.name for each in test.variables), FIELD, "variable")


def _operands(document: Document, offset: int, typed: str, test: LitmusTest | None) -> Iterator[Json]:
    if typed.startswith("%"):
        special = (f"%{name}" for name in sorted(SPECIAL))
        yield from _items(document, offset, typed, special, CONSTANT, "special register")
    if test is None:
        return
    for variable in test.variables:
        yield from _items(document, offset, typed, (variable.name,), FIELD, f".{variable.space.value} variable")
    thread = _thread(test, document.source.text, offset)
    if thread is None:
        return
    sign = "%" if typed.startswith("%") or "%" in document.source.text else ""
    yield from _items(document, offset, typed, (f"{sign}{name}" for name in sorted(_registers(thread))), VARIABLE)
    labels = (item.name for item in thread.body if isinstance(item, Label))
    yield from _items(document, offset, typed, labels, FUNCTION, "label")


def _thread(test: LitmusTest, text: str, offset: int) -> Thread | None:
    """The thread that the cursor is in, whether or not that is an instruction yet."""
    if test.layout is Layout.COLUMNS:
        column = text.count("|", max(text.rfind(";", 0, offset), 0), offset)
        return test.threads[column] if column < len(test.threads) else None
    return next((thread for thread in reversed(test.threads) if thread.span.start < offset), None)


def _registers(thread: Thread) -> set[str]:
    """The registers that the instructions of a thread name."""
    return {
        register.name
        for item in thread.body
        if isinstance(item, Instruction)
        for operand in item.operands
        for register in elements(operand)
        if isinstance(register, Reg)
    }


# ---- instructions ----------------------------------------------------------------------------------------------------


def _mnemonic(document: Document, offset: int, typed: str, *, columns: bool, modules: bool) -> Iterator[Json]:
    """The instructions that begin so, and the words that may follow the last dot."""
    heads = (head for head, row in HEADS.items() if (modules or not row.modules) and (columns or not row.columns))
    yield from _items(document, offset, typed, heads, FUNCTION, "instruction")
    *complete, last = typed.split(".")
    row = row_of(".".join(complete)) if complete else None
    if row is None:
        return
    for slot in row.slots:
        words = [*slot.words, *(slot.modules if modules else ())]
        if not {*words} & {*complete}:
            allowed = (word for word in words if columns or word not in slot.columns)
            yield from _items(document, offset, last, allowed, CONSTANT, slot.what)


# ---- models ----------------------------------------------------------------------------------------------------------


def _cat(document: Document, offset: int) -> Iterator[Json]:
    text = document.source.text
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    quoted = re.search(r'\binclude\s*"([^"]*)\Z', line)
    if quoted is not None:
        beside = document.path.parent.glob("*.cat") if document.path is not None else ()
        folders = (axioms_dir(), axioms_dir() / "library")
        files = sorted({path.name for path in beside}) + sorted(
            path.name for folder in folders for path in folder.glob("*.cat")
        )
        yield from _items(document, offset, quoted[1], files, FILE, "model")
        return
    typed = _typed(text, offset)
    for _, source in texts_of(document):
        for name in defined(source):
            if name.kind in ("let", "procedure", "enum"):
                first = " ".join(name.doc.split())[:120]
                yield from _items(document, offset, typed, (name.name,), FUNCTION, first or name.kind)
    for base in BASE_NAMES:
        yield from _items(document, offset, typed, (base.name,), CONSTANT, f"base {base.kind.value}: {base.meaning}")
    yield from _items(document, offset, typed, sorted(CAT_WORDS), KEYWORD)


# ---- kernels ---------------------------------------------------------------------------------------------------------


def _ptx(document: Document, offset: int) -> Iterator[Json]:
    text = document.source.text
    mnemonic = _MNEMONIC.search(text[max(0, offset - 400) : offset])
    if mnemonic is not None:
        yield from _mnemonic(document, offset, mnemonic[1] or "", columns=False, modules=True)
        return
    typed = _typed(text, offset)
    special = (f"%{name}" for name in sorted(SPECIAL))
    yield from _items(document, offset, typed, special, CONSTANT, "special register")
    begin = max(text.rfind(word, 0, offset) for word in (".entry", ".func"))
    used = sorted({*_REGISTER.findall(text, max(begin, 0), offset - len(typed))})
    yield from _items(document, offset, typed, used, VARIABLE, "register")
