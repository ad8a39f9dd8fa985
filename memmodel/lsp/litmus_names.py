"""Names in a litmus test: what they are, where they are declared, and the outline of the test.

In: Document and an offset. Out: hovers, locations and symbols as the protocol has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from memmodel import api
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.names import BASE_NAMES
from memmodel.errors import InputError
from memmodel.litmus.lexer import SPELLING, Reader
from memmodel.litmus.parse import parse_litmus
from memmodel.litmus.syntax import Instruction, Label, Layout, LitmusTest, Thread, Variable
from memmodel.litmus.text.places import blanked, passage_of, questions_of, word_at
from memmodel.lsp.document import BEGIN, Document, Json, uri_of
from memmodel.lsp.instruction import described
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Op
from memmodel.program.special import SPECIAL
from memmodel.ptx.lexer import tokenize
from memmodel.recovery.every_error import without
from memmodel.source import Source, Span

T = TypeVar("T")

TRIES = 20
"""At most this many passages that cannot be read are left out to read the rest."""

VARIABLE, FUNCTION, FIELD, EVENT = 13, 12, 8, 24
"""Kinds of symbols, as the protocol numbers them."""


def parsed(source: Source) -> LitmusTest | None:
    """The test, without what cannot be read; None if that is not enough."""
    return _read(parse_litmus, source)


def lowered(source: Source) -> LoweredTest | None:
    """The test as steps, without what cannot be read; None if that is not enough."""
    return _read(api.lowered, source)


def _read(reader: Callable[[Source], T], source: Source) -> T | None:
    left: Source | None = source
    for _ in range(TRIES):
        if left is None:
            return None
        try:
            return reader(left)
        except InputError as error:
            passage = passage_of(left, error.span) if error.span is not None else None
            left = without(left, passage) if passage is not None else None
    return None


# ---- hover -------------------------------------------------------------------------------------------------------


def hover(document: Document, offset: int) -> Json | None:
    """What stands at an offset."""
    source = document.source
    span = word_at(source, offset)
    if span is None:
        return None
    text = _meaning(source, span)
    return document.card(text, span.start, span.end)


def _meaning(source: Source, span: Span) -> str | None:
    steps = lowered(source)
    test = steps.test if steps is not None else parsed(source)
    layout = test.layout if test is not None else Layout.BLOCKS
    if test is not None:
        for item, ops in _items(test, steps):
            if item.mnemonic_span.start <= span.start < item.mnemonic_span.end:
                return described(item.mnemonic, layout, ops, api.load(DEFAULT_MODEL))
        variable = next((candidate for candidate in test.variables if candidate.name == span.text), None)
        if variable is not None:
            return _variable(variable)
    if "." in span.text and span.text[0] not in "%@!":
        return described(span.text, layout, (), api.load(DEFAULT_MODEL))
    return _other(span.text)


def _items(test: LitmusTest, steps: LoweredTest | None) -> Iterator[tuple[Instruction, list[Op]]]:
    """The instructions with their steps."""
    for number, thread in enumerate(test.threads):
        for item in thread.body:
            if isinstance(item, Instruction):
                mine = steps.programs[number].steps if steps is not None else ()
                yield item, [step.op for step in mine if step.instruction is item]


def _variable(variable: Variable) -> str:
    kind = f".{variable.type}" if variable.type is not None else ""
    more = f"[{variable.length}]" if variable.array else ""
    lines = [f"`.{variable.space.value} {kind} {variable.name}{more}`".replace("  ", " ")]
    if variable.mbarrier is not None:
        lines.append(f"An mbarrier object, initialised for {variable.mbarrier} arrivals.")
    if variable.maps:
        lines.append(f"A tensor map of {', '.join(view.data for view in variable.maps)}.")
    if variable.alias_of is not None:
        lines.append(f"Another address of {variable.alias_of}, accessed through the {variable.proxy.value} proxy.")
    if variable.multimem:
        lines.append(f"A multimem address of {', '.join(variable.multimem)}.")
    if variable.allocates is not None:
        lines.append(f"Where an alloc leaves the address of {variable.allocates}.")
    if variable.space.value == "shared":
        lines.append("Every CTA has an instance of its own.")
    return "\n\n".join(lines)


def _other(word: str) -> str | None:
    if word.startswith("%") and word[1:].split(".")[0] in {name.split(".")[0] for name in SPECIAL}:
        return f"`{word}`: a special register, which follows from where the test places its threads."
    if word in WORDS:
        return WORDS[word]
    known = next((base for base in BASE_NAMES if base.name == word), None)
    return None if known is None else f"`{known.name}`: {known.meaning} [{known.source}]"


WORDS = {
    "exists": "Does some consistent execution end so? `exists race`, `hang`, `hazard`, `undefined` ask for a finding.",
    "forall": "Does every consistent execution end so?",
    "Expect": f"What the file expects under a model: `Expect={DEFAULT_MODEL}:never`, several words joined by `+`.",
    "never": "No consistent execution satisfies the condition.",
    "sometimes": "Some consistent executions satisfy the condition, some do not.",
    "always": "Every consistent execution satisfies the condition.",
    "race": "Two conflicting accesses that nothing orders, in some consistent execution.",
    "hang": "An execution in which some thread waits for ever.",
    "hazard": "Two conflicting accesses to tensor memory that nothing orders.",
    "undefined": "Behaviour that the PTX ISA leaves undefined, in some consistent execution.",
    "thread": "A thread with its place: `thread P0 @ cta 0, cluster 0, gpu 0 { … }`.",
}
"""Words of the language."""


# ---- definition --------------------------------------------------------------------------------------------------


def definition(document: Document, offset: int) -> list[Json]:
    """Where the name at an offset is declared: label, variable, register, thread or model."""
    source = document.source
    span = word_at(source, offset)
    if span is None:
        return []
    model = _model(document, offset)
    if model is not None:
        return [model]
    test = parsed(source)
    if test is None:
        return []
    target = declared_at(test, source, span, offset)
    return [] if target is None else [{"uri": document.uri, "range": document.at(target)}]


def _model(document: Document, offset: int) -> Json | None:
    """The file of a model that an Expect line names."""
    text = document.source.text
    begin = text.rfind("\n", 0, offset) + 1
    if not text[begin:offset].lstrip().startswith("Expect"):
        return None
    first = max(text.rfind(mark, 0, offset) for mark in "= \n") + 1
    name = text[first:].split(":")[0].split("\n")[0]
    from memmodel.base.resources import axioms_dir, is_file, is_shipped

    beside = document.path.parent / name if document.path is not None and name.endswith(".cat") else None
    path = axioms_dir() / f"{name}.cat" if is_shipped(name) else beside
    if path is None or "/" in name.removeprefix("readings/") or not is_file(path):
        return None
    return {"uri": uri_of(path), "range": BEGIN}


def declared_at(test: LitmusTest, source: Source, span: Span, offset: int) -> Span | None:
    """Where the name at a span is declared; of a register without declaration, where its thread has it first."""
    word = span.text.lstrip("@!")
    thread = _thread(test, offset)
    if thread is None:
        for declared in test.threads:
            if declared.name == word:
                return declared.span
        before = source.text[: span.start].rstrip()
        named = next((candidate for candidate in test.threads if before.endswith(f"{candidate.name}:")), None)
        if named is not None:
            return _register(test, source, named, word)
    if thread is not None and not span.text.startswith("%"):
        for item in thread.body:
            if isinstance(item, Instruction) and item.mnemonic_span.start == span.start:
                return None
            if isinstance(item, Label) and item.name == word:
                return item.span
    for variable in test.variables:
        if variable.name == word:
            return variable.span
    return _register(test, source, thread, word) if thread is not None else None


def _thread(test: LitmusTest, offset: int) -> Thread | None:
    """The thread whose instruction or label stands at an offset."""
    around: Thread | None = None
    for thread in reversed(test.threads):
        spans = [item.span for item in thread.body]
        if any(span.start <= offset <= span.end for span in spans):
            return thread
        if test.layout is Layout.BLOCKS and spans and thread.span.start < offset <= spans[-1].end:
            around = around or thread
    return around


def _register(test: LitmusTest, source: Source, thread: Thread, word: str) -> Span | None:
    """Where a register is declared or initialised, else where it stands first in its thread."""
    name = word.removeprefix("%")
    for initial in test.registers:
        if initial.thread == thread.name and initial.register == name:
            return initial.span
    try:
        clean = blanked(source)
        reader = Reader(source, tokenize(source, SPELLING, clean, clean.find("\n") + 1))
    except InputError:
        return None
    spans = [item.span for item in thread.body]
    if not spans:
        return None
    begin, end = thread.span.start, max(span.end for span in spans)
    for token in reader.tokens:
        inside = begin <= token.start < end if test.layout is Layout.BLOCKS else any(
            span.start <= token.start < span.end for span in spans
        )  # fmt: skip
        if inside and token.kind == "name" and token.text.removeprefix("%") == name:
            return reader.span(token)
    return None


# ---- outline -----------------------------------------------------------------------------------------------------


def symbols(document: Document) -> list[Json]:
    """Variables, threads with their labels, questions."""
    source = document.source
    test = parsed(source)
    if test is None:
        return []
    outline = [
        _symbol(document, variable.name, VARIABLE, variable.span, variable.span, f".{variable.space.value}")
        for variable in test.variables
    ]
    for thread in test.threads:
        spans = [item.span for item in thread.body]
        whole = source.span(thread.span.start, max([thread.span.end, *(span.end for span in spans)]))
        if test.layout is Layout.COLUMNS:
            whole = thread.span
        place = thread.place
        labels = [
            _symbol(document, item.name, FIELD, item.span, item.span, "label")
            for item in thread.body
            if isinstance(item, Label)
        ]
        symbol = _symbol(document, thread.name, FUNCTION, whole, thread.span, f"cta {place.cta}, gpu {place.gpu}")
        outline.append({**symbol, "children": labels} if test.layout is Layout.BLOCKS else symbol)
        if test.layout is Layout.COLUMNS:
            outline += labels
    outline += [
        _symbol(document, question.text[:60], EVENT, question, question, "question")
        for question in questions_of(source)
    ]
    return [symbol for symbol in outline if symbol]


def _symbol(document: Document, name: str, kind: int, whole: Span, name_span: Span, detail: str) -> Json:
    return {
        "name": name or "?",
        "detail": detail,
        "kind": kind,
        "range": document.at(whole),
        "selectionRange": document.at(name_span),
    }
