"""What the documents leave open, as the shipped model files say it: each decision, its default and its other readings.

In: the comments of axioms/ptx-9.3/decisions.cat and of axioms/readings. Out: `Decision`s in the order of that file.
Settled here: no sentence about a decision stands anywhere but beside the definition that it explains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memmodel.base.resources import axioms_dir
from memmodel.cat.text.lexer import tokenize
from memmodel.errors import InternalError
from memmodel.source import Source

DEFAULTS = "ptx-9.3/decisions.cat"
READINGS = "readings"

_DEFAULT = re.compile(r"(D\d+[a-z]*) (\S+)\. ([^?]+\?) (.+?) Left open by (.+)")
_READING = re.compile(r"(D\d+[a-z]*) (\S+)\. (.+)")


@dataclass(frozen=True, slots=True)
class DecisionSide:
    """One answer to a decision's question. `model`: what `load_model` takes; None for the default."""

    name: str
    answer: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing that the documents leave open. `source`: what leaves it open."""

    number: str
    question: str
    default: DecisionSide
    readings: tuple[DecisionSide, ...]
    source: str


@cache
def decisions() -> tuple[Decision, ...]:
    """All decisions of the default model."""
    others: dict[str, list[DecisionSide]] = {}
    for path in sorted((axioms_dir() / READINGS).glob("*.cat")):
        matches = [match for match in map(_READING.fullmatch, _comments(path)) if match]
        if len(matches) != 1 or path.stem != f"{matches[0][1]}-{matches[0][2]}":
            raise InternalError(f"{path.name} needs one comment `{path.stem.replace('-', ' ', 1)}. …`")
        number, name, answer = matches[0].groups()
        others.setdefault(number, []).append(DecisionSide(name, answer, f"{READINGS}/{path.stem}"))
    defaults = [match for match in map(_DEFAULT.fullmatch, _comments(axioms_dir() / DEFAULTS)) if match]
    if {match[1] for match in defaults} != others.keys():
        raise InternalError(f"{DEFAULTS} and {READINGS} do not speak of the same decisions")
    return tuple(
        Decision(number, question, DecisionSide(name, answer), tuple(others[number]), source)
        for number, name, question, answer, source in (match.groups() for match in defaults)
    )


def _comments(path: Path) -> list[str]:
    return [" ".join(comment.text.split()) for comment in tokenize(Source.read(path))[1]]
