"""Properties of a model, and the programs that break them.

In: a property file, a model, a sketch. Out: `Counterexample`s (of a property that says `possible`: examples). A file is
cat after a heading of lines `Word  text` in its first comment:

Kind        invariant: each check holds in every consistent execution; possible: in some; inclusion: see Compare
Subject     the names of the model that the property is about; it may use no other of its definitions
Compare     inclusion only. `outcomes in M`: every outcome is one under M, if the program raises no flag of this file
            and has no data race. `relaxations`: a weaker program has every outcome and finding of the stronger one.
            `fences`: a program without a fence has no outcome that it does not have with it, or has a data race
Accesses    the instructions besides fences that a program has at most
Vocabulary, Scopes, Spread, Threads, Places, Size: what is searched if nothing else is asked for

A check whose name begins with `assume` restricts the executions that are looked at; one with `unless`, the programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from memmodel import api
from memmodel.base.resources import axioms_dir
from memmodel.cat.analysis import names_in
from memmodel.cat.flags import kind_of
from memmodel.cat.load import parse_model
from memmodel.cat.syntax import Check, Model
from memmodel.errors import InputError, InternalError, nearest
from memmodel.search.differences import FINDING_WORDS
from memmodel.search.judging.judge import Judgements, ModelJudge
from memmodel.search.judging.slices import union
from memmodel.search.programs import ENGINES, Ready, Specimen, all_known, confirm
from memmodel.search.sketches import Sketch
from memmodel.search.synthesis import relaxations
from memmodel.search.vocabulary import Vocabulary, vocabulary
from memmodel.source import Source

KINDS = ("invariant", "inclusion", "possible")
LONGEST = 3
"""Digits of a number in the heading of a property: what is larger is searched for ever."""
_LINE = re.compile(
    r"^\s*\(?\*?\s*(Kind|Subject|Compare|Accesses|Vocabulary|Scopes|Spread|Threads|Places|Size)\s+(.+?)\s*(?:\*\))?$",
    re.M,
)


@dataclass(frozen=True, slots=True)
class Property:
    """A property as read; `text` with its heading."""

    name: str
    title: str
    kind: str
    subject: tuple[str, ...]
    compare: str
    size: int
    vocabulary: Vocabulary
    scopes: tuple[str, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A program with an execution in which a check of a property fails (`possible`: holds)."""

    size: int
    check: str
    spellings: int
    text: str


def shipped_properties() -> list[str]:
    """The names that `load_property` takes."""
    return sorted(path.stem for path in (axioms_dir() / "properties").glob("*.cat"))


@lru_cache(maxsize=64)
def load_property(name: str) -> Property:
    """A property, by its shipped name or a path. Raises InputError."""
    path = axioms_dir() / "properties" / f"{name}.cat"
    if not path.is_file():
        path = Path(name)
    if not path.is_file():
        near = nearest(name, shipped_properties())
        meant = f"did you mean {near}? " if near else ""
        raise InputError(f"no property `{name}`", hint=f"{meant}shipped: {', '.join(shipped_properties())}")
    source = Source.read(path)
    comment = source.text[source.text.find("(*") : source.text.find("*)") + 2]
    heading = {word: text for word, text in _LINE.findall(comment)}
    kind = heading.get("Kind", "")
    if kind not in KINDS:
        raise InputError(
            f"{path}: a property says its kind", hint=f"a line `Kind  {'|'.join(KINDS)}` in its first comment"
        )

    def number(word: str, otherwise: int) -> int:
        text = heading.get(word, str(otherwise))
        if not (text.isascii() and text.isdigit() and len(text) <= LONGEST):
            raise InputError(f"{path}: {word} is a number of at most {LONGEST} digits, and this is {text}")
        return int(text)

    title = source.text.split('"')[1] if source.text.startswith('"') else path.stem
    scopes = _list(heading.get("Scopes", "cta, gpu"))
    words = vocabulary(
        _list(heading.get("Vocabulary", "core")),
        scopes,
        number("Threads", 3),
        number("Places", 3),
        spread=_list(heading.get("Spread", "cta")),
    )
    if "Accesses" in heading:
        words = replace(words, most=number("Accesses", 0))
    subject = tuple(_list(heading.get("Subject", "")))
    compare, size = heading.get("Compare", ""), number("Size", 4)
    return Property(path.stem, title, kind, subject, compare, size, words, tuple(scopes), source)


def _list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def joined(prop: Property, name: str) -> Model:
    """The model with the definitions of the property, whose checks have become flags. Raises InputError."""
    model = api.load(name)
    path = axioms_dir() / f"{name}.cat"
    where = path if path.is_file() else Path(name)
    text = prop.source.text
    end = text.index('"', 1) + 1 if text.startswith('"') else 0
    shipped = path.is_file()
    source = Source(prop.source.name, f'{text[:end]} include "{f"{name}.cat" if shipped else where.name}" {text[end:]}')
    extended = parse_model(source, () if shipped else (where.resolve().parent,))
    known = len(model.definitions)
    prelude = {definition.name for definition in parse_model(Source("prelude", "let nothing = 0")).definitions}
    own = extended.definitions[known:]
    checks = [check for check in extended.checks if check not in model.checks]
    for expr in [*(definition.body for definition in own), *(check.body for check in checks)]:
        for used in names_in(expr):
            if used.ref is not None and used.ref < known and used.name not in (*prop.subject, *prelude):
                raise InputError(
                    f"{prop.name} uses `{used.name}` of the model, which is not its subject",
                    used.span,
                    hint="state it over base names, or name it in the line `Subject`",
                )
    return replace(
        extended, name=f"{model.name}+{prop.name}", checks=(*model.checks, *(_flag(prop, check) for check in checks))
    )


def _flag(prop: Property, check: Check) -> Check:
    """A check of a property as a flag that is raised where it matters."""
    if check.name.startswith("assume"):
        return check
    return replace(check, flag=True, negated=check.negated if prop.kind == "possible" else not check.negated)


class PropertyCheck:
    """A property of a model."""

    def __init__(self, prop: Property, model: str) -> None:
        self.prop, self.name = prop, model
        self.model = joined(prop, model)
        bare = api.load(model)
        own = [check.name for check in self.model.flags if check not in bare.flags]
        self.own = [check for check in own if not check.startswith("unless")]
        self.unless = [check for check in own if check.startswith("unless")]
        models, flags = [self.model], [own]
        races = [check.name for check in bare.flags if check.name == "data-race"]
        if prop.kind == "inclusion":
            self.unless += races
            flags = [own + races]
            if prop.compare.startswith("outcomes in "):
                models.append(api.load(prop.compare.removeprefix("outcomes in ")))
                flags.append([])
            elif prop.compare == "relaxations":
                flags = [[check.name for check in bare.flags]]
        self.models = models
        self._judge = ModelJudge(models, flags, outcomes=prop.kind == "inclusion")

    def of(self, sketch: Sketch, words: Vocabulary, most: int) -> Iterator[Counterexample]:
        """The programs of one sketch that break the property (that show it, if it says `possible`)."""
        ready = Ready(sketch, words, most)
        judgements = self._judge.judge(ready)
        if self.prop.kind != "inclusion":
            for name in self.own:
                worlds = judgements.raised[0].get(name, 0) & ready.worlds
                least = ready.without_needless_fences(worlds)
                if least:
                    yield self.raised(ready.specimen(ready.plainest(least)), name, least.bit_count())
        elif self.prop.compare.startswith("outcomes in "):
            yield from self._outcomes(ready, judgements)
        else:
            yield from self._relaxed(ready, judgements)

    def raised(self, specimen: Specimen, name: str, spellings: int) -> Counterexample:
        """A program with an execution that raises the flag, as both engines see it; its question is how that ends."""
        title = f"{self.prop.name}-{specimen.size}"
        text = specimen.text("exists (true)", title)
        answers = [api.check(text, self.model, engine=engine).answer for engine in ENGINES]
        for answer in answers:
            if name not in answer.flags:
                all_known(answer)
                raise InternalError(f"{answer.engine} does not find {name} in\n{text}")
        finding = next(finding for finding in answers[0].findings if finding.flag == name)
        condition = specimen.end(finding.witness)
        if condition is not None:
            text = specimen.text(f"exists ({condition})", title)
            confirm(text, self.model, True)
        return Counterexample(specimen.size, name, spellings, text)

    def _outcomes(self, ready: Ready, judgements: Judgements) -> Iterator[Counterexample]:
        worlds = judgements.only(0, 1, ready.worlds & ~self._exempt(judgements))
        yield from self._first(ready, worlds, self.prop.compare, confirmed=self.models[1])

    def _exempt(self, judgements: Judgements) -> int:
        """The worlds of which the property says nothing."""
        return union(judgements.raised[0].get(name, 0) for name in self.unless)

    def _relaxed(self, ready: Ready, judgements: Judgements) -> Iterator[Counterexample]:
        """Compare each program with its single relaxations."""
        race = self._exempt(judgements)
        keep = self.prop.compare == "fences"
        tables: list[dict[Any, int]] = [{**judgements.allowed[0]}]
        if not keep:
            tables.append({**judgements.raised[0]})
        bad_worlds: dict[Any, int] = {}
        for dimension, old, new in relaxations(ready):
            with_old = ready.grid.worlds_with(dimension, old)
            if keep and ready.spots[dimension].use is not None:
                continue
            for table in tables:
                for key, allowed in table.items():
                    weak = ready.grid.moved(allowed, dimension, old, new)
                    raced = ready.grid.moved(race, dimension, old, new)
                    bad = with_old & weak & ~allowed & ~raced & ~race if keep else with_old & allowed & ~weak
                    bad &= ready.worlds
                    if bad:
                        bad_worlds[key] = bad_worlds.get(key, 0) | bad
        worlds = {key: bad for key, bad in bad_worlds.items() if isinstance(key, tuple)}
        flags = {key: bad for key, bad in bad_worlds.items() if isinstance(key, str)}
        if worlds or not flags:
            yield from self._first(ready, worlds, self.prop.compare)
        else:
            yield self._lost(ready, flags)

    def _lost(self, ready: Ready, flags: dict[str, int]) -> Counterexample:
        """A program that raises a flag which it does not raise when it is weaker."""
        every = union(flags.values())
        choice = ready.plainest(every)
        flag = min(flag for flag, raised in flags.items() if raised >> ready.grid.number(choice) & 1)
        word = FINDING_WORDS.get(kind_of(flag))
        specimen = ready.specimen(choice)
        text = specimen.text(f"exists {word}" if word else "exists (true)", f"{self.prop.name}-{specimen.size}")
        return Counterexample(specimen.size, self.prop.compare, every.bit_count(), text)

    def _first(
        self, ready: Ready, worlds: dict[tuple[int, ...], int], check: str, confirmed: Model | None = None
    ) -> Iterator[Counterexample]:
        every = union(worlds.values())
        if every:
            chosen = ready.plainest(every)
            key = ready.key(worlds, chosen)
            specimen = ready.specimen(chosen)
            condition = specimen.condition(key) if key else "true"
            text = specimen.text(f"exists ({condition})", f"{self.prop.name}-{specimen.size}")
            if confirmed is not None:
                confirm(text, confirmed, False)
            yield Counterexample(specimen.size, check, every.bit_count(), text)


def checks_to_show(prop: Property, model: str) -> set[str]:
    """The checks of a `possible` property, each of which needs an example; none of another kind."""
    if prop.kind != "possible":
        return set()
    return {check.name for check in joined(prop, model).flags} - {check.name for check in api.load(model).flags}
