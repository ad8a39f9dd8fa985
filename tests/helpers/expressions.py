"""Random models and executions that mean nothing: for those who compare one way to evaluate cat with another.

An execution here is any sets and relations over a few events; only `co` is transitive, as every engine has it. A
model has definitions of both kinds with all operators, each of those before it, a `let rec` of a set and two relations,
a chosen order, and checks.
"""

from __future__ import annotations

from typing import cast

from hypothesis import strategies as st

from memmodel.base.rows import Rows, bits, closure
from memmodel.cat import parse_model
from memmodel.cat.evaluate.graph import graph_of
from memmodel.cat.syntax import Model
from memmodel.concrete.execution import ConcreteEvent, Execution, FixedPart
from memmodel.source import Source

SETS = ("R", "W", "F")
RELATIONS = ("po", "rf", "co", "loc", "sync_fence")
MOST_EVENTS = 5


def execution_of(sets: dict[str, int], relations: dict[str, Rows], count: int) -> Execution:
    """An execution of which only the sets and relations count."""
    frame = cast(FixedPart, type("Frame", (), {"events": cast(list[ConcreteEvent], [None] * count)})())
    others = {name: [0] * count for name in ("int", "ext", "syncbar")}  # the prelude speaks of them
    identity = [1 << event for event in range(count)]
    return Execution(frame, (), {"_": (1 << count) - 1, **sets}, {"id": identity, **others, **relations})


@st.composite
def executions(draw: st.DrawFn, count: int) -> Execution:
    """An execution of so many events."""
    masks = st.integers(0, (1 << count) - 1)
    sparse = st.builds(lambda one, other: one & other, masks, masks)
    relations = {name: draw(st.lists(sparse, min_size=count, max_size=count)) for name in RELATIONS}
    relations["co"] = closure(relations["co"])
    return execution_of({name: draw(masks) for name in SETS}, relations, count)


class _Texts:
    """Draws expressions over base names and definitions."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.sets, self.relations = [*SETS, "_"], [*RELATIONS, "id"]

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def events(self, depth: int) -> str:
        if not depth:
            return self.pick(*self.sets, "0")
        how = self.pick("|", "&", "\\", "~", "domain", "range")
        if how in ("domain", "range"):
            return f"{how}({self.pairs(depth - 1)})"
        if how == "~":
            return f"~({self.events(depth - 1)})"
        return f"({self.events(depth - 1)} {how} {self.events(depth - 1)})"

    def pairs(self, depth: int) -> str:
        if not depth:
            return self.pick(*self.relations, "0")
        how = self.pick("|", "&", "\\", ";", ";", "~", "^-1", "?", "+", "*", "[]", "product", "[];", ";[]")
        if how == "~":
            return f"~({self.pairs(depth - 1)})"
        if how == "[]":
            return f"[{self.events(depth - 1)}]"
        if how == "product":
            return f"({self.events(depth - 1)} * {self.events(depth - 1)})"
        if how == "[];":
            return f"([{self.events(depth - 1)}] ; {self.pairs(depth - 1)})"
        if how == ";[]":
            return f"({self.pairs(depth - 1)} ; [{self.events(depth - 1)}])"
        if how in ("^-1", "?", "+", "*"):
            return f"({self.pairs(depth - 1)}){how}"
        return f"({self.pairs(depth - 1)} {how} {self.pairs(depth - 1)})"

    def recursion(self) -> str:
        """A `let rec` in which each member grows with the others."""
        grown = self.pick("again", "(again ; {0})", "({0} ; onward)", "({0} & again)", "([seen] ; {0})", "again^-1")
        twice = self.pick("(onward \\ {0})", "(onward^-1 ; again)", "(again & onward)", "(again ; onward)")
        member = self.pick("range([seen] ; {0})", "domain(again & {0})", "(seen & {1})")
        texts = (f"{{0}} | {grown}", f"{{0}} | {twice}", f"(R & {{1}}) | {member}")
        first, second, third = (text.format(self.pairs(1), self.events(1)) for text in texts)
        return f"let rec again = {first} and onward = {second} and seen = {third}"


@st.composite
def bodies(draw: st.DrawFn, name: str) -> str:
    """The body of a definition of a relation that often refers to a name."""
    texts = _Texts(draw)
    texts.relations = [name, name, *RELATIONS]
    return texts.pairs(draw(st.integers(1, 3)))


@st.composite
def model_texts(draw: st.DrawFn, orders: bool = False) -> str:
    """A model; perhaps one that chooses a total order."""
    texts, lines = _Texts(draw), ['"random"']
    if orders and draw(st.booleans()):
        lines.append(f"with chosen from linearisations({texts.events(1)}, {texts.pairs(1)})")
        texts.relations.append("chosen")
    for number in range(2):
        lines.append(f"let s{number} = {texts.events(2)}")
        lines.append(f"let r{number} = {texts.pairs(2)}")
        texts.sets.append(f"s{number}")
        texts.relations.append(f"r{number}")
    lines.append(texts.recursion())
    texts.sets.append("seen")
    texts.relations += ["again", "onward"]
    lines.append(f"let last = {texts.pairs(2)}")
    for number in range(4):
        test = texts.pick("empty", "irreflexive", "acyclic")
        negated, flag = texts.pick("", "~"), texts.pick("", "flag ")
        body = texts.events(2) if test == "empty" and draw(st.booleans()) else texts.pairs(2)
        lines.append(f"{flag}{negated}{test} {body} as c{number}")
    return "\n".join(lines) + "\n"


def parsed(text: str) -> Model:
    """The model of a text."""
    return parse_model(Source("random.cat", text))


def bases_of(model: Model) -> dict[str, frozenset[str]]:
    """The base names that each definition and each check depends on, through whatever it refers to."""
    graph = graph_of(model.definitions)
    names = {one.name: number for one, number in zip(model.definitions, graph.defined, strict=True)}
    names |= {check.name: graph.node(check.body) for check in model.checks}
    return {name: graph.graph.nodes[number].bases for name, number in names.items()}


def restricted(execution: Execution, mask: int) -> Execution:
    """An execution with some of its events only, numbered anew."""
    kept = bits(mask)

    def packed(row: int) -> int:
        return sum(1 << number for number, event in enumerate(kept) if row >> event & 1)

    sets = {name: packed(value) for name, value in execution.chosen_sets.items()}
    relations = {name: [packed(rows[event]) for event in kept] for name, rows in execution.chosen_relations.items()}
    return execution_of(sets, relations, len(kept))
