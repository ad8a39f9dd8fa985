"""Warnings about the models that a command uses, printed before any answer.

In: names of models. Out: warnings on stderr, or InputError where names are taken strictly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memmodel import cat
from memmodel.cat.load import strictly
from memmodel.cli.exits import complain
from memmodel.errors import render


def warn_about_models(
    names: Iterable[str], include: Sequence[str] | None = None, *, strict_names: bool = False, kept: bool = True
) -> None:
    """Load the models and print their warnings. Raises InputError for a model that cannot be used.

    `include`: folders that models may include from, besides their own. `kept`: models are looked up on disk.
    `strict_names`: a warning is an error.
    """
    cat.configure(include or (), kept=kept)
    for name in names:
        model = cat.load_model(name)
        if strict_names:
            strictly(model)
        for notice in model.notices:
            complain(render("warning", notice.message, notice.span, notice.hint))
