"""Launches that stand in the text of a kernel, as comments.

In: text of PTX or CUDA. Out: JSON values. A comment `// memmodel: launch {"grid": [4, 1, 1], …}` is one; it may go on
in the next comment lines, or be a /* comment */. A text with several entries has one for each, with its "kernel".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.launch import Launch
from memmodel.source import Source, Span

_BEGIN = re.compile(r"(?P<mark>//|/\*|#)[ \t]*memmodel:[ \t]*launch\b[ \t]*")


@dataclass(frozen=True, slots=True)
class LaunchComment:
    """A launch, and where it stands."""

    data: dict[str, Any]
    span: Span


def launch_comments(source: Source) -> list[LaunchComment]:
    """The launches in a text. Raises InputError for one that is no JSON object."""
    return list(_comments(source))


def as_comment(launch: Launch) -> str:
    """A complete launch as a comment, which `launch_comments` reads."""
    return f"// memmodel: launch {launch.model_dump_json(exclude_defaults=True)}"


def _comments(source: Source) -> Iterator[LaunchComment]:
    for begin in _BEGIN.finditer(source.text):
        text = _whole(source.text, begin.end(), begin["mark"])
        span = Span(source, begin.start(), source.text.find("\n", begin.start()) % (len(source.text) + 1))
        try:
            data, _ = json.JSONDecoder().raw_decode(text.strip())
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else error
            raise InputError(
                f"the launch in this comment is not JSON: {why}",
                span,
                'such as // memmodel: launch {"grid": [4, 1, 1]}',
            ) from error
        if not isinstance(data, dict):
            raise InputError("the launch in this comment is no JSON object", span)
        yield LaunchComment(data, span)


def _whole(text: str, start: int, mark: str) -> str:
    """What a comment says from there on; that of the comment lines after it, too."""
    if mark == "/*":
        end = text.find("*/", start)
        return text[start : end if end >= 0 else len(text)]
    first, *others = text[start:].split("\n")
    lines = [first]
    for line in others:
        if not line.lstrip().startswith(mark):
            break
        lines.append(line.lstrip().removeprefix(mark))
    return "\n".join(lines)
