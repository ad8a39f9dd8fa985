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
    """The test in that layout, ending with a newline. Raises InputError for an instruction that is none, as `convert`
    does, and for a comment that cannot be kept."""
    lower_test(test)
    made = convert(test, layout)
    lines = print_lines(made)
    plain = "".join(f"{line.text}\n" for line in lines)
    found = list(comments(test.source)) if test.source is not None else []
    if not found:
        return plain
    text = _with(lines, found, _anchors(lines, test, same=layout is test.layout))
    again = parse_litmus(Source(test.source.name, text))
    if again != parse_litmus(Source(test.source.name, plain)) or len(list(comments(again.source))) < len(found):
        hint = "put each on a line of its own, above an instruction or a declaration, or leave the file as it is"
        raise InputError("the comments from here on have no place in the canonical form", found[0], hint)
    return text


def _with(lines: Sequence[Printed], found: Sequence[Span], anchors: Sequence[tuple[int, int]]) -> str:
    """The lines with each comment in its place. `anchors`: offsets in the file, each with its line, in order."""
    above: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    for comment in found:
        text = comment.text.rstrip()
        before = [line for at, line in anchors if at < comment.start]
        own = not comment.source.text[: comment.start].rpartition("\n")[2].strip()
        if before and not own:
            last = before[-1]
            if not any(one.startswith("//") for one in ends.get(last, ())):
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
    """Offsets in the file of what each line says, in order. `same`: the braces of the file are those of the lines."""
    clean = blank_comments(test.source)
    marks = _marks(clean, test)
    found = []
    for number, line in enumerate(lines):
        found += [(span.start, number) for span in line.spans if span is not None and span.source is test.source]
        if line.mark and (same or line.mark not in ("{", "}")):
            at = next(marks[line.mark], None)
            found += [(at, number)] if at is not None else []
    return sorted(found)


def _marks(clean: str, test: LitmusTest) -> dict[str, Iterator[int]]:
    """Where the title, the sentences, the braces and the questions of a file stand."""
    threads = [one.span.start for thread in test.threads for one in (thread, *thread.body)]
    starts = [thread.span.start for thread in test.threads]
    if test.layout is Layout.COLUMNS:
        first = max((one.end() for one in _SENTENCE.finditer(clean, 0, min(starts))), default=0)
        starts = [first]
    braces = [_braces(clean, start) for start in starts]
    end = max(threads)
    return {
        "title": iter([clean.index("PTX")]),
        "sentence": (one.start() for one in _SENTENCE.finditer(clean)),
        "{": iter([opening for opening, _ in braces]),
        "}": iter([closing for _, closing in braces]),
        **{mark: (one.start() for one in pattern.finditer(clean, end)) for mark, pattern in _ENDS.items()},
    }


def _braces(clean: str, start: int) -> tuple[int, int]:
    """The first `{` from an offset on, and the `}` that closes it."""
    depth, first = 0, -1
    for one in _BRACE.finditer(clean, start):
        if depth == 0:
            first = one.start()
        depth += 1 if one[0] == "{" else -1
        if depth == 0:
            return first, one.start()
    return first, len(clean)
