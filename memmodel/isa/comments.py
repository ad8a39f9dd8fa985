"""A test printed anew, with the comments of its file.

In: LitmusTest as read from a file. Out: text in its layout or the other one. Settled here: a comment on a line of its
own stays above what follows it in the file, any other at the end of the line of what precedes it. In a table a comment
about one cell is about its row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memmodel.errors import InputError
from memmodel.isa.convert import convert
from memmodel.isa.lower import lower_test
from memmodel.litmus import parse_litmus
from memmodel.litmus.lexer import blank_comments, comments
from memmodel.litmus.printer import Printed, print_lines
from memmodel.litmus.syntax import Layout, LitmusTest
from memmodel.source import Source, Span

_SENTENCE = re.compile(r'"[^"]*[^"\s][^"]*"')
_BRACE = re.compile(r"[{}]")
_ENDS = {"locations": re.compile(r"\blocations\b"), "question": re.compile(r"~\s*exists\b|\bexists\b|\bforall\b")}


def print_commented(test: LitmusTest, layout: Layout) -> str:
    """The test in that layout, ending with a newline. Raises InputError for an illegal instruction, as `convert` does,
    and for a comment that cannot be kept."""
    lower_test(test)
    converted = convert(test, layout)
    lines = print_lines(converted)
    plain = "".join(f"{line.text}\n" for line in lines)
    kept = list(comments(test.source)) if test.source is not None else []
    if not kept:
        return plain
    text = _with_comments(lines, kept, _anchors(lines, test, same=layout is test.layout))
    reread = parse_litmus(Source(test.source.name, text))
    if reread != parse_litmus(Source(test.source.name, plain)) or len(list(comments(reread.source))) < len(kept):
        hint = "put each on a line of its own, above an instruction or a declaration, or leave the file as it is"
        raise InputError("the comments from here on have no place in the canonical form", kept[0], hint)
    return text


def _with_comments(lines: Sequence[Printed], kept: Sequence[Span], anchors: Sequence[tuple[int, int]]) -> str:
    """The lines with each comment in its place. `anchors`: as `_anchors` gives them."""
    above: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    for comment in kept:
        text = comment.text.rstrip()
        before = [line for at, line in anchors if at < comment.start]
        own = not comment.source.text[: comment.start].rpartition("\n")[2].strip()
        if before and not own:
            last = before[-1]
            if not any(text.startswith("//") for text in ends.get(last, ())):
                ends.setdefault(last, []).append(text)
                continue
        after = next((line for at, line in anchors if at >= comment.end), len(lines))
        above.setdefault(after, []).append(text)
    out: list[str] = []
    for number, line in enumerate((*lines, Printed(""))):
        indent = line.text[: len(line.text) - len(line.text.lstrip())]
        if line.text == "}" and number and lines[number - 1].text.startswith(" "):
            indent = "    "  # at the end of a thread
        out += [f"{indent}{text}" for text in above.get(number, ())]
        if number < len(lines):
            out.append("  ".join([line.text, *ends.get(number, ())]))
    return "\n".join(out) + "\n"


def _anchors(lines: Sequence[Printed], test: LitmusTest, *, same: bool) -> list[tuple[int, int]]:
    """Offsets in the file, in order, each with the number of the printed line that has the same content.

    `same`: file and lines have the same layout, so that the braces correspond too.
    """
    clean = blank_comments(test.source)
    marks = _marks(clean, test)
    anchors = []
    for number, line in enumerate(lines):
        anchors += [(span.start, number) for span in line.spans if span is not None and span.source is test.source]
        if line.mark and (same or line.mark not in ("{", "}")):
            at = next(marks[line.mark], None)
            anchors += [(at, number)] if at is not None else []
    return sorted(anchors)


def _marks(clean: str, test: LitmusTest) -> dict[str, Iterator[int]]:
    """The offsets of the title, of the sentences in quotes, of braces, of `locations` and of conditions."""
    threads = [part.span.start for thread in test.threads for part in (thread, *thread.body)]
    starts = [thread.span.start for thread in test.threads]
    if test.layout is Layout.COLUMNS:
        first = max((match.end() for match in _SENTENCE.finditer(clean, 0, min(starts))), default=0)
        starts = [first]
    braces = [_braces(clean, start) for start in starts]
    end = max(threads)
    return {
        "title": iter([clean.index("PTX")]),
        "sentence": (match.start() for match in _SENTENCE.finditer(clean)),
        "{": iter([opening for opening, _ in braces]),
        "}": iter([closing for _, closing in braces]),
        **{mark: (match.start() for match in pattern.finditer(clean, end)) for mark, pattern in _ENDS.items()},
    }


def _braces(clean: str, start: int) -> tuple[int, int]:
    """The first `{` from an offset on, and the `}` that closes it."""
    depth, first = 0, -1
    for brace in _BRACE.finditer(clean, start):
        if depth == 0:
            first = brace.start()
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return first, brace.start()
    return first, len(clean)
