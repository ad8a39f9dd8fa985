"""The questions that a search asks of each sketch, in a form that travels to workers.

In: names of models, a vocabulary, a size. Out: `DifferenceTask`, `SynthesisTask`, `PropertyTask`. Each worker loads the
models once. `verified` asks one of them here and now.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import lru_cache

from memmodel import api
from memmodel.cat.syntax import Model
from memmodel.search.differences import ModelPair
from memmodel.search.properties import PropertyCheck, checks_to_show, load_property
from memmodel.search.sketches import Sketch
from memmodel.search.synthesis import Synthesis
from memmodel.search.vocabulary import Vocabulary
from memmodel.search.work import HereAndNow, Record, SketchTask, run


def models_key(*models: str | Model) -> str:
    """The text of models, so that a kept result does not outlive a change."""
    import hashlib

    digest = hashlib.sha256()
    for model in models:
        for source in (api.load(model) if isinstance(model, str) else model).sources:
            digest.update(source.text.encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class DifferenceTask(SketchTask):
    """Finds programs on which two models differ. `old`: the first model, if it is of a revision; `text`: its digest."""

    first: str
    second: str
    vocabulary: Vocabulary
    most: int
    outcomes: bool = False
    old: Model | None = field(default=None, compare=False)
    text: str = ""

    def key(self) -> str:
        return (
            f"diff {self.first} {self.second} {models_key(self.old or self.first, self.second)} {self.most} "
            f"{self.outcomes} {self.vocabulary.text()}"
        )

    def judge(self, sketch: Sketch) -> list[Record]:
        key = (self.first, self.text, self.second, self.outcomes)
        if key not in _COMPARISONS:
            _COMPARISONS.clear()
            _COMPARISONS[key] = ModelPair(self.old or self.first, self.second, outcomes=self.outcomes)
        comparison = _COMPARISONS[key]
        return [asdict(difference) for difference in comparison.of(sketch, self.vocabulary, self.most)]


@dataclass(frozen=True, slots=True)
class SynthesisTask(SketchTask):
    """Finds outcomes that a model forbids and every relaxation of the program allows."""

    model: str
    vocabulary: Vocabulary
    most: int

    def key(self) -> str:
        return f"synth {self.model} {models_key(self.model)} {self.most} {self.vocabulary.text()}"

    def judge(self, sketch: Sketch) -> list[Record]:
        return [asdict(forbidden) for forbidden in _synthesis(self.model).of(sketch, self.vocabulary, self.most)]


@dataclass(frozen=True, slots=True)
class PropertyTask(SketchTask):
    """Finds programs on which a property fails, or examples of a property that says that something is possible."""

    property: str
    model: str
    vocabulary: Vocabulary
    most: int

    def key(self) -> str:
        return f"verify {self.property} {self.model} {models_key(self.model)} {self.most} {self.vocabulary.text()}"

    def judge(self, sketch: Sketch) -> list[Record]:
        return [
            asdict(counterexample)
            for counterexample in property_check(self.property, self.model).of(sketch, self.vocabulary, self.most)
        ]


_COMPARISONS: dict[tuple[str, str, str, bool], ModelPair] = {}
"""The pair that was asked for last."""


def of_revision(old: Model, second: str, vocabulary: Vocabulary, most: int, outcomes: bool) -> DifferenceTask:
    """The task that compares a model with what it was at a revision."""
    return DifferenceTask(old.name, second, vocabulary, most, outcomes, old, models_key(old))


@lru_cache(maxsize=4)
def _synthesis(model: str) -> Synthesis:
    return Synthesis(model)


@lru_cache(maxsize=4)
def property_check(name: str, model: str) -> PropertyCheck:
    """A property of a model, read once in each process."""
    return PropertyCheck(load_property(name), model)


def verified(name: str, model: str, size: int) -> tuple[bool, str]:
    """Returns whether a property holds of a model up to `size` instructions, with a counterexample if not."""
    prop = load_property(name)
    progress = run(PropertyTask(name, model, prop.vocabulary, min(size, prop.size)), HereAndNow())
    missing = checks_to_show(prop, model) - {result["check"] for result in progress.results}
    if prop.kind == "possible":
        return not missing, f"{prop.name} of {model}: no example of {', '.join(sorted(missing))}"
    text = "".join(f"{result['check']}\n{result['text']}" for result in progress.results[:1])
    return not progress.results, f"{prop.name} does not hold for {model}: {text}"
