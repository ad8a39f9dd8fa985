"""The search by solving as a task of `search.work`: one question for each layout.

In: names of models, a vocabulary, a size. Out: `SolvingTask`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from memmodel.cat.syntax import Model
from memmodel.search.differences import ModelPair
from memmodel.search.solving.layouts import ThreadLayout, layouts
from memmodel.search.solving.question import ProgramQuestion
from memmodel.search.tasks import models_key
from memmodel.search.vocabulary import Vocabulary
from memmodel.search.work import Record


@dataclass(frozen=True, slots=True)
class SolvingTask:
    """Finds a smallest program on which two models differ. `old`: the first model, if it is of a revision."""

    first: str
    second: str
    vocabulary: Vocabulary
    most: int
    outcomes: bool = False
    old: Model | None = field(default=None, compare=False)
    chunk: int = 1
    first_only: bool = True

    def key(self) -> str:
        return (
            f"solve {self.first} {self.second} {models_key(self.old or self.first, self.second)} {self.most} "
            f"{self.outcomes} {self.vocabulary.text()}"
        )

    def parts(self, size: int) -> list[ThreadLayout]:
        return layouts(self.vocabulary, size)

    def judge(self, part: ThreadLayout) -> list[Record]:
        key = (f"{models_key(self.old or self.first, self.second)} {self.outcomes}", id(self.old))
        if key not in _PAIRS:
            _PAIRS.clear()
            _PAIRS[key] = ModelPair(self.old or self.first, self.second, outcomes=self.outcomes)
        return [asdict(difference) for difference in ProgramQuestion(_PAIRS[key], self.vocabulary, part).differences()]


_PAIRS: dict[tuple[str, int], ModelPair] = {}
"""The pair that was asked for last."""
