"""A model of which all executions are those that waits can be read off: one conflicting access after the other.

In: a model. Out: models that allow fewer executions, the fewest first, and last the model itself. Settled here: nothing
about PTX; `axioms/executions/one-after-the-other.cat` says which executions are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from memmodel.base.resources import axioms_dir
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Expr, Model, Name, rebuilt


def orderly(model: Model) -> Iterator[Model]:
    """The model with all the checks of the file, with fewer of them, and with none."""
    wanted, known = _wanted(), len(model.definitions)

    def moved(expr: Expr) -> Expr:
        if isinstance(expr, Name):
            return expr if expr.ref is None else replace(expr, ref=expr.ref + known)
        return rebuilt(expr, moved)

    definitions = tuple(replace(definition, body=moved(definition.body)) for definition in wanted.definitions)
    checks = tuple(replace(check, body=moved(check.body)) for check in wanted.checks)
    for count in range(len(checks), 0, -1):
        more = checks[:count]
        name = f"{model.name}+{more[-1].name}"
        yield replace(model, name=name, definitions=(*model.definitions, *definitions), checks=(*model.checks, *more))
    yield model


@cache
def _wanted() -> Model:
    return load_model(axioms_dir() / "executions" / "one-after-the-other.cat")
