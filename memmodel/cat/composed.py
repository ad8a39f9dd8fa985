"""Several readings at once, as one model: `ptx-9.4+D3-implicit+D4ab-no-fences`.

In: such a name. Out: the text of its model; or a model, and the readings that it is made of. Settled here: a reading is
a file of `axioms/readings` that includes the default model and overrides some of its definitions. Several readings are
one include with all their overrides. Two that override the same definition answer the same question, and are refused. A
model is made of a reading if the comment of the reading stands in one of its files, whoever wrote it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from memmodel.base.resources import DEFAULT_MODEL, JOINED, axioms_dir
from memmodel.cat.decisions import Decision, DecisionSide, decisions
from memmodel.cat.syntax import Model
from memmodel.cat.text.lexer import tokenize
from memmodel.errors import InputError, suggestion
from memmodel.source import Source

_INCLUDE = re.compile(rf'^include "\.\./{re.escape(DEFAULT_MODEL)}\.cat"$', re.MULTILINE)
_OVERRIDE = re.compile(r"^override let (?:rec )?([\w-]+)", re.MULTILINE)


def composed(name: str) -> Source | None:
    """The text of a model whose name joins readings; None for any other name. Raises InputError."""
    base, *readings = name.split(JOINED)
    if not readings or "/" in base or name.endswith(".cat"):
        return None
    if base != DEFAULT_MODEL:
        raise InputError(f"readings are added to {DEFAULT_MODEL}, and not to {base}", hint=f"{DEFAULT_MODEL}+…")
    sides = {f"{decision.number}-{side.name}": side for decision in decisions() for side in decision.readings}
    owners: dict[str, str] = {}
    bodies = []
    for reading in dict.fromkeys(part.strip().removeprefix("readings/") for part in readings):
        if reading not in sides:
            raise InputError(
                f"no reading `{reading}`", hint=suggestion(reading, sides) or "`memmodel models` lists them"
            )
        text = Source.read(axioms_dir() / f"{sides[reading].model}.cat").text
        head, _, body = text.partition(_INCLUDE.search(text)[0])  # type: ignore[index]  # every reading has it
        for defined in _OVERRIDE.findall(body):
            if owners.setdefault(defined, reading) != reading:
                raise InputError(f"{owners[defined]} and {reading} answer one question", hint="assume one of them")
        bodies.append(head.partition("\n")[2] + body)
    return Source(name, f'"{name}"\ninclude "{DEFAULT_MODEL}.cat"\n' + "\n".join(bodies))


def readings_of(model: Model) -> list[tuple[Decision, DecisionSide]]:
    """The decisions that a model answers otherwise than the default model, with its answers."""
    comments = frozenset[str]().union(*map(_comments, model.sources))
    return [
        (decision, side)
        for decision in decisions()
        for side in decision.readings
        if f"{decision.number} {side.name}. {side.answer}" in comments
    ]


@lru_cache(maxsize=128)
def _comments(source: Source) -> frozenset[str]:
    """The comments of a file, each on one line; kept, as every verdict on a kernel asks for those of its model."""
    return frozenset(" ".join(comment.text.split()) for comment in tokenize(source)[1])
