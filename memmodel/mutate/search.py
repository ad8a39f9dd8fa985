"""A program that tells an edit apart, where no test does.

In: EditResult, the model, a size. Out: the result with the smallest program that a search found, or how far it came.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.cat.syntax import Model
from memmodel.mutate.edits import edited
from memmodel.mutate.outcome import EditResult, Fate
from memmodel.search.tasks import of_revision
from memmodel.search.vocabulary import Vocabulary
from memmodel.search.work import run, workers


def searched(
    result: EditResult,
    model: Model,
    name: str,
    size: int,
    words: Vocabulary,
    jobs: int,
    seconds: float,
    memory: int | None = None,
) -> EditResult:
    """The result after a search among all programs of up to `size` instructions, within these seconds and bytes."""
    task = of_revision(edited(model, result.edit), name, words, size, False)
    where = workers(jobs, None, memory)
    progress = run(task, where, seconds=max(0.0, min(seconds, 1e9)), memory=memory, enough=bool)
    if progress.results:
        first = min(progress.results, key=lambda record: int(record["size"]))
        return replace(result, fate=Fate.FOUND, how=f"{first['size']} instructions", program=first["text"])
    reach = f"no difference up to {progress.bound} instructions ({words.text()})"
    return replace(result, how=f"{reach}; {progress.reason}" if progress.reason else reach)
