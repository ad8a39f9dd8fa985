"""Relations of all spellings of a program at once: each pair of events holds the set of spellings that relate them.

In: models, the sizes of the choices. Out: `WorldGrid`, and `ModelSlices`, which evaluates definitions and checks over
such relations. A spelling is a *world*, a set of worlds one integer. A set of events is a list of worlds by event, a
relation a list of rows, each a dictionary from event to worlds; what is absent is empty. Equal expressions of all
models share one node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memmodel.base.kinds import Kind
from memmodel.cat.analysis import CHOICE, dependencies
from memmodel.cat.syntax import Binary, Check, Empty, Expr, Model, Name, Unary
from memmodel.errors import InputError, InternalError

WorldSet = int
Members = list[int]
SlicedRows = list[dict[int, int]]

STAGE = {"rf": 1, "sync_fence": 2, "co": 3}
"""When a base relation is chosen; what is not listed is settled by the runs of the threads."""


_LEAVES = ("base", "0", "fix", "rec")


class WorldGrid:
    """`sizes[d]`: how many choices dimension d has."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.strides: list[int] = []
        self.count = 1
        for size in sizes:
            self.strides.append(self.count)
            self.count *= size
        self.full = (1 << self.count) - 1
        self._known: dict[tuple[int, int], int] = {}

    def where(self, dimension: int, choice: int) -> int:
        """The worlds with this choice in this dimension."""
        key = (dimension, choice)
        if key not in self._known:
            stride, period = self.strides[dimension], self.strides[dimension] * self.sizes[dimension]
            block = (1 << stride) - 1 << choice * stride
            repeats = self.count // period
            # block at 0, period, 2·period, …: doubled until it is long enough
            done, mask = 1, block
            while done < repeats:
                more = min(done, repeats - done)
                mask |= (mask & (1 << more * period) - 1) << done * period
                done += more
            self._known[key] = mask
        return self._known[key]

    def moved(self, worlds: int, dimension: int, old: int, new: int) -> int:
        """For worlds with choice `old`: are the worlds with `new` in its place in the set? As a set of the former."""
        inside = worlds & self.where(dimension, new)
        by = (new - old) * self.strides[dimension]
        return inside >> by if by > 0 else inside << -by

    def choice(self, world: int) -> tuple[int, ...]:
        """The choices of a world."""
        found = []
        for size in self.sizes:
            world, one = divmod(world, size)
            found.append(one)
        return tuple(found)

    def number(self, choice: Sequence[int]) -> int:
        return sum(one * stride for one, stride in zip(choice, self.strides, strict=True))


def members(worlds: int) -> Iterator[int]:
    """The worlds of a set, smallest first."""
    at = 0
    while worlds:
        low = (worlds & -worlds).bit_length() - 1
        at += low
        yield at
        worlds >>= low + 1
        at += 1


class ModelSlices:
    """Definitions and checks of several models, to be evaluated on one execution after the other.

    `start(exists, base)`: events and what each base name means; `choose(name, rows)`: chosen relations. `nodes`: each
    expression as its operator and the numbers of its operands; `groups`: names and bodies of each `let rec`.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self._stages: list[int] = []
        self._sizes: list[int] = []
        self._none: SlicedRows = []
        self._nobody: Members = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._recursions: dict[tuple[int, ...], int] = {}
        self.groups: list[tuple[list[int], list[int]]] = []
        self._values: list[Any] = []
        self._stamps: list[int] = []
        self._epochs = [0, 0, 0, 0]
        self._clock = 0
        self._between: dict[int, list[int]] = {}
        self._chosen: dict[str, SlicedRows] = {}
        self.count = 0
        self.exists: Members = []
        self._base: Callable[[str], Any] = lambda name: None
        self._checks: dict[tuple[int, str], tuple[int, Check]] = {}
        for number, model in enumerate(models):
            self._compile(number, model)
        self._values = [None] * len(self.nodes)
        self._stamps = [-1] * len(self.nodes)

    # ---- asking ------------------------------------------------------------------------------------------------

    def start(self, exists: Members, base: Callable[[str], Any]) -> None:
        """Turn to other events."""
        self.count, self.exists, self._base = len(exists), exists, base
        self._none, self._nobody = [{} for _ in exists], [0] * len(exists)
        self._chosen = {}
        self._enter(0)

    def choose(self, name: str, rows: SlicedRows) -> None:
        """Decide a chosen relation; decisions of later stages are open again."""
        self._chosen[name] = rows
        self._enter(STAGE[name])

    def again(self) -> None:
        """What the runs of the threads settle has changed: barriers, objects."""
        self._enter(0)

    def _enter(self, stage: int) -> None:
        self._clock += 1
        for later in range(stage, 4):
            self._epochs[later] = self._clock

    def stage(self, number: int, name: str) -> int:
        """When a check of a model is settled."""
        return self._stages[self._checks[number, name][0]]

    def body(self, number: int, name: str) -> int:
        """The node of what a check of a model tests."""
        return self._checks[number, name][0]

    def fails(self, number: int, name: str) -> WorldSet:
        """The worlds in which the body of a check is not as its test wants, negation aside."""
        node, check = self._checks[number, name]
        body = self._value(node)
        if check.test == "empty":
            if check.body.kind is Kind.SET:
                return _any(body)
            return _any(one for row in body for one in row.values())
        if check.test == "acyclic":
            body = closure(body)
        return _any(row.get(a, 0) for a, row in enumerate(body))

    # ---- nodes -------------------------------------------------------------------------------------------------

    def _compile(self, number: int, model: Model) -> None:
        refs: list[int] = []
        bases = dependencies(model).definitions
        start = 0
        while start < len(model.definitions):
            first = model.definitions[start]
            if first.order is not None or CHOICE in bases[start]:
                raise InputError(f"{model.name} chooses an order ({first.name}); the search does not follow that")
            end = start + 1
            if first.group is None:
                refs.append(self._node(first.body, refs))
            else:
                while end < len(model.definitions) and model.definitions[end].group == first.group:
                    end += 1
                stage = max((STAGE.get(name, 0) for name in bases[start]), default=0)
                refs += self._recursive([one.body for one in model.definitions[start:end]], refs, stage)
            start = end
        for check in model.checks:
            self._checks[number, check.name] = (self._node(check.body, refs), check)

    def _recursive(self, bodies: Sequence[Expr], refs: list[int], stage: int) -> list[int]:
        """The names of a `let rec`; of an equal one if there is one, so that what uses it is shared. Equal: with `rec`
        in place of the names, the bodies are the same."""
        group = len(self.groups)
        marks = [self._add(("rec", at), stage) for at in range(len(bodies))]
        looks = (stage, *(self._node(body, [*refs, *marks]) for body in bodies))
        if looks not in self._recursions:
            self._recursions[looks] = group
            names = [self._add(("fix", group, at), stage) for at in range(len(bodies))]
            self.groups.append((names, []))
            self.groups[group][1].extend(self._node(body, [*refs, *names]) for body in bodies)
        return self.groups[self._recursions[looks]][0]

    def _node(self, expr: Expr, refs: list[int]) -> int:
        match expr:
            case Name(ref=None, name=name):
                return self._add(("base", name), STAGE.get(name, 0))
            case Name(ref=int(ref)):
                return refs[ref]
            case Empty(kind=kind):
                return self._add(("0", kind is Kind.SET), 0)
            case Unary(op=op, operand=operand, kind=kind):
                inner = self._node(operand, refs)
                key = "~set" if op == "~" and kind is Kind.SET else op
                return self._add((key, inner), self._stages[inner])
            case Binary(op=op, left=left, right=right, kind=kind):
                a, b = self._node(left, refs), self._node(right, refs)
                if op in "|&" and b < a:
                    a, b = b, a
                key = op + "set" if kind is Kind.SET else op
                return self._add((key, a, b), max(self._stages[a], self._stages[b]))
        raise InternalError("an expression of no known form")

    def _add(self, key: tuple[Any, ...], stage: int) -> int:
        if key not in self._known:
            self._known[key] = len(self.nodes)
            self.nodes.append(key)
            self._stages.append(stage)
            self._sizes.append(1 if key[0] in _LEAVES else 1 + sum(self._sizes[one] for one in key[1:]))
        return self._known[key]

    def _value(self, node: int) -> Any:
        epoch = self._epochs[self._stages[node]]
        if self._stamps[node] != epoch:
            key = self.nodes[node]
            if key[0] == "fix":
                self._fixpoint(key[1])
            else:
                self._values[node] = self._compute(key)
                self._stamps[node] = epoch
        return self._values[node]

    def _fixpoint(self, group: int) -> None:
        """Least fixpoint of a `let rec`: repeat the bodies until nothing changes."""
        names, bodies = self.groups[group]
        epoch = self._epochs[self._stages[names[0]]]
        for name in names:
            self._values[name], self._stamps[name] = self._none, epoch
        inside = self._inside(group)
        while True:
            for node in inside:
                self._stamps[node] = -1
            found = [self._value(body) for body in bodies]
            if all(self._values[name] == one for name, one in zip(names, found, strict=True)):
                return
            for name, one in zip(names, found, strict=True):
                self._values[name] = one

    def _inside(self, group: int) -> list[int]:
        """The nodes between the names of a group and its bodies."""
        if group not in self._between:
            names, _ = self.groups[group]
            found = set(names)
            grown = True
            while grown:
                grown = False
                for node, key in enumerate(self.nodes):
                    if node not in found and key[0] not in _LEAVES and found & set(key[1:]):
                        found.add(node)
                        grown = True
            self._between[group] = [node for node in found if node not in names]
        return self._between[group]

    def _compute(self, key: tuple[Any, ...]) -> Any:
        """The value of a node; what is empty is `_none` or `_nobody` itself, and is not computed with."""
        op = key[0]
        if op == "base":
            found = self._chosen[key[1]] if key[1] in STAGE else self._base(key[1])
        elif op == "0":
            return self._nobody if key[1] else self._none
        elif len(key) == 2:
            found = self._unary(op, self._value(key[1]))
        else:
            return self._dyadic(op, key[1], key[2])
        return self._kept(found)

    def _kept(self, found: Any) -> Any:
        return found if any(found) else self._nobody if found and found[0] == 0 else self._none

    def _is_empty(self, value: Any) -> bool:
        return value is self._none or value is self._nobody

    def _dyadic(self, op: str, one: int, other: int) -> Any:
        """Two operands, the smaller expression first where either may settle it."""
        if op[0] == "|":
            left, right = self._value(one), self._value(other)
            if self._is_empty(left):
                return right
            return left if self._is_empty(right) else _DYADIC[op](left, right)
        if op[0] != "\\" and self._sizes[other] < self._sizes[one] and self._is_empty(self._value(other)):
            return self._nobody if op == "&set" else self._none
        left = self._value(one)
        if self._is_empty(left):
            return self._none if op == "*" else left
        right = self._value(other)
        if self._is_empty(right):
            return left if op[0] == "\\" else self._none if op == "*" else right
        return self._kept(_DYADIC[op](left, right))

    def _unary(self, op: str, one: Any) -> Any:
        if op[0] != "~" and op not in "?*" and self._is_empty(one):
            return self._nobody if op in ("domain", "range") else self._none
        if op == "~set":
            return [every & ~mine for every, mine in zip(self.exists, one, strict=True)]
        if op == "~":
            return [
                {b: left for b, other in enumerate(self.exists) if (left := every & other & ~row.get(b, 0))}
                for every, row in zip(self.exists, one, strict=True)
            ]
        if op == "^-1":
            return _inverse(one)
        if op == "[]":
            return [{a: worlds} if worlds else {} for a, worlds in enumerate(one)]
        if op == "domain":
            return [_any(row.values()) for row in one]
        if op == "range":
            return [_any(row.values()) for row in _inverse(one)]
        if op == "+":
            return closure(one)
        if op in ("?", "*"):
            found = closure(one) if op == "*" else [dict(row) for row in one]
            for a, worlds in enumerate(self.exists):
                if worlds:
                    found[a][a] = worlds | found[a].get(a, 0)
            return found
        raise InternalError(f"unknown operator {op}")


def repeated(value: Any, lanes: int) -> Any:
    """A set or relation in several lanes; `lanes` has the lowest bit of each."""
    if value and isinstance(value[0], dict):
        return [{b: worlds * lanes for b, worlds in row.items()} for row in value]
    return [worlds * lanes for worlds in value]


def merged(parts: Sequence[tuple[Any, int]]) -> Any:
    """One value from several, each in lanes of its own."""
    found = repeated(*parts[0])
    for value, lanes in parts[1:]:
        for at, one in enumerate(value):
            if isinstance(one, dict):
                row = found[at]
                for b, worlds in one.items():
                    row[b] = row.get(b, 0) | worlds * lanes
            else:
                found[at] |= one * lanes
    return found


def _any(sets: Any) -> int:
    found = 0
    for one in sets:
        found |= one
    return found


def _inverse(rows: SlicedRows) -> SlicedRows:
    found: SlicedRows = [{} for _ in rows]
    for a, row in enumerate(rows):
        for b, worlds in row.items():
            found[b][a] = worlds
    return found


def closure(rows: SlicedRows) -> SlicedRows:
    """Warshall, in all worlds at once."""
    found = [dict(row) for row in rows]
    for middle in range(len(found)):
        through = list(found[middle].items())
        if not through:
            continue
        for row in found:
            into = row.get(middle)
            if into:
                for b, worlds in through:
                    both = into & worlds
                    if both:
                        row[b] = row.get(b, 0) | both
    return found


def _compose(left: SlicedRows, right: SlicedRows) -> SlicedRows:
    found: SlicedRows = []
    for row in left:
        mine: dict[int, int] = {}
        for middle, into in row.items():
            for b, worlds in right[middle].items():
                both = into & worlds
                if both:
                    mine[b] = mine.get(b, 0) | both
        found.append(mine)
    return found


def _union(left: SlicedRows, right: SlicedRows) -> SlicedRows:
    found = []
    for mine, other in zip(left, right, strict=True):
        both = dict(mine)
        for b, worlds in other.items():
            both[b] = both.get(b, 0) | worlds
        found.append(both)
    return found


def _intersection(left: SlicedRows, right: SlicedRows) -> SlicedRows:
    return [
        {b: both for b, worlds in mine.items() if (both := worlds & other.get(b, 0))}
        for mine, other in zip(left, right, strict=True)
    ]


def _difference(left: SlicedRows, right: SlicedRows) -> SlicedRows:
    return [
        {b: kept for b, worlds in mine.items() if (kept := worlds & ~other.get(b, 0))}
        for mine, other in zip(left, right, strict=True)
    ]


def _product(left: Members, right: Members) -> SlicedRows:
    there = [(b, other) for b, other in enumerate(right) if other]
    return [{b: both for b, other in there if (both := worlds & other)} if worlds else {} for worlds in left]


_DYADIC: dict[str, Callable[[Any, Any], Any]] = {
    "|": _union,
    "&": _intersection,
    "\\": _difference,
    ";": _compose,
    "*": _product,
    "|set": lambda left, right: [a | b for a, b in zip(left, right, strict=True)],
    "&set": lambda left, right: [a & b for a, b in zip(left, right, strict=True)],
    "\\set": lambda left, right: [a & ~b for a, b in zip(left, right, strict=True)],
}
