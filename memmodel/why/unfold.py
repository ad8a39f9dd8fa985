"""Why two events are related: a derived relation taken apart into what the program did.

In: `Values`, an expression, a pair in it. Out: `Link`s from the first event to the second. Settled here: which names
are not taken apart any further. Those are the base names of cat and the names that the model says a witness shows;
these carry their own parts and the model's comment.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from memmodel.base.kinds import Kind
from memmodel.base.labels import Fence, Mark, ProxyFence
from memmodel.base.rows import Rows, bits
from memmodel.cat.syntax import Binary, Check, Definition, Expr, Name, Unary
from memmodel.concrete.execution import ConcreteEvent
from memmodel.errors import InternalError
from memmodel.why.values import Values


@dataclass(frozen=True, slots=True)
class Link:
    """`first` is related to `second` by the relation `name`. `parts`: what it is made of. `clause`: the document's."""

    first: int
    second: int
    name: str
    parts: tuple[Link, ...] = ()
    clause: str = ""


Chain = tuple[Link, ...]

UNORDERED = "not co"
"""What closes a cycle on two writes that coherence order does not relate."""

COMMUNICATION = ("rf", "fr", "co", "rf^-1", "co^-1", UNORDERED)
"""Edges between accesses to one location."""

LONGEST = 80
"""A relation that is written out is cut after this number of characters."""

_TITLE = re.compile(r"\(\*\s*[-=]{3,}[^\n]*?\(([^()\n]*\"[^()\n]*)\)[^\n]*\*\)")


class Unfolding:
    """Takes relations of one execution apart."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.stops = frozenset(values.model.shown)
        self._known: dict[
            tuple[int, int, int, int], tuple[Expr, Values, Chain]
        ] = {}  # what the identities are of stays
        self._stages: dict[int, list[Values]] = {}

    def broken(self, check: Check, sources: int = 0) -> Chain:
        """The shortest cycle or contradiction by which an execution breaks an axiom.

        Where a set or an identity has an event, it is a link from the event to itself. Empty for a negated axiom: what
        it asks for is nowhere. `sources`: a mask of accesses; of several cycles, one that closes on one of these is the
        first.
        """
        if check.negated:
            return ()
        chains = list(self._contradictions(check))
        if not chains:
            raise InternalError(f"{check.name} is not broken")
        linked = [chain for chain in chains if chain]
        if not linked:
            return self._itself(check)
        return min(linked, key=lambda chain: (not closes_on(chain, sources), len(chain)))

    def _itself(self, check: Check) -> Chain:
        """A link from the first event that breaks an axiom by itself to this event."""
        from memmodel.cat.text.printer import show  # for few reasons only

        body = check.body
        if body.kind is Kind.SET:
            members = self.values.value(body)
            assert isinstance(members, int)
            event, name = bits(members)[0], f"[{show(body)}]"
        else:
            event, name = next(a for a, row in enumerate(self.values.rows(body)) if row >> a & 1), show(body)
        return (Link(event, event, name if len(name) <= LONGEST else f"{name[:LONGEST]} …"),)

    def excluded(self, check: Check, a: int, b: int) -> Chain:
        """Why a flag of the form `X \\ R` does not report a pair of X: how the two are related by R."""
        for right in self._subtracted(check.body, a, b):
            return self.merged(self.chain(right, a, b, self.values))
        return ()

    def _subtracted(self, expr: Expr, a: int, b: int) -> Iterator[Expr]:
        """The subtracted parts of an expression that have the pair, through the names of the model."""
        if isinstance(expr, Name) and expr.ref is not None and expr.kind is Kind.RELATION:
            yield from self._subtracted(self.values.definitions[expr.ref].body, a, b)
        elif isinstance(expr, Binary) and expr.op in ("&", "|", "\\"):
            if expr.op == "\\" and expr.kind is Kind.RELATION:
                if self.values.rows(expr.right)[a] >> b & 1:
                    yield expr.right
            elif expr.right.kind is Kind.RELATION:
                yield from self._subtracted(expr.right, a, b)
            yield from self._subtracted(expr.left, a, b)

    def _contradictions(self, check: Check) -> Iterator[Chain]:
        values, body = self.values, check.body
        if body.kind is Kind.SET:
            if values.value(body):
                yield ()
            return
        rows = values.rows(body)
        if check.kind == "empty":
            for a, row in enumerate(rows):
                for b in bits(row):
                    yield self.merged(self.chain(body, a, b, values)) + self._against(body, a, b)
        elif check.kind == "irreflexive":
            for a, row in enumerate(rows):
                if row >> a & 1:
                    yield self.merged(self.chain(body, a, a, values))
        else:
            for a in range(values.count):
                path = _shortest(rows, a, a)
                if path:
                    links = (self.chain(body, x, y, values) for x, y in pairwise(path))
                    yield self.merged(tuple(link for chain in links for link in chain))

    def _against(self, body: Expr, a: int, b: int) -> Chain:
        """For `X \\ R`: R the other way round, where it is so, or that coherence order has neither."""
        if isinstance(body, Binary) and body.op == "\\" and body.right.kind is Kind.RELATION:
            rows = self.values.rows(body.right)
            if rows[b] >> a & 1:
                return self.merged(self.chain(body.right, b, a, self.values))
            if a != b and isinstance(body.right, Name) and body.right.ref is None and body.right.name == "co":
                return (Link(b, a, UNORDERED),)
        return ()

    # ---- one pair of one expression ------------------------------------------------------------------------------

    def chain(self, expr: Expr, a: int, b: int, values: Values) -> Chain:
        """The links from a to b by which (a, b) is in a relation."""
        key = (id(expr), a, b, id(values))
        if key not in self._known:
            self._known[key] = expr, values, self._chain(expr, a, b, values)
        return self._known[key][2]

    def _chain(self, expr: Expr, a: int, b: int, values: Values) -> Chain:
        if isinstance(expr, Name):
            return self._of_name(expr, a, b, values)
        if isinstance(expr, Unary):
            return self._of_unary(expr, a, b, values)
        assert isinstance(expr, Binary)
        left, right = expr.left, expr.right
        if expr.op == ";":
            return self._composed(expr, a, b, values)
        if expr.op == "|":
            sides = [side for side in (left, right) if values.rows(side)[a] >> b & 1]
            return min((self.chain(side, a, b, values) for side in sides), key=_size)
        if expr.op == "&":
            # One side is the path, the other says what kind of pair it has to join.
            return max((self.chain(side, a, b, values) for side in (left, right)), key=_size)
        if expr.op == "\\":
            return self.chain(left, a, b, values)
        return (Link(a, b, "any"),)

    def _of_name(self, name: Name, a: int, b: int, values: Values) -> Chain:
        if name.ref is None:
            return () if name.name == "id" else (Link(a, b, name.name),)
        definition = values.definitions[name.ref]
        if definition.order is not None:
            return (Link(a, b, definition.name),)
        if definition.group is None:
            chain = self.chain(definition.body, a, b, values)
        else:
            chain = self._recursive(name.ref, a, b)
        if definition.name in self.stops:
            return (Link(a, b, definition.name, self.merged(chain), clause_of(definition)),)
        return chain

    def _recursive(self, ref: int, a: int, b: int) -> Chain:
        if ref not in self._stages:
            self._stages[ref] = list(self.values.stages(ref))
        for before, after in pairwise(self._stages[ref]):
            value = after.defined(ref)
            if not isinstance(value, int) and value[a] >> b & 1:
                return self.chain(self.values.definitions[ref].body, a, b, before)
        raise InternalError("a pair of a fixpoint that no stage has")

    def _of_unary(self, expr: Unary, a: int, b: int, values: Values) -> Chain:
        if expr.op == "[]" or (expr.op in "?*" and a == b):
            return ()
        if expr.op == "^-1":
            chain = self.chain(expr.operand, b, a, values)
            return turned(chain)
        if expr.op == "?":
            return self.chain(expr.operand, a, b, values)
        if expr.op in "+*":
            path = _shortest(values.rows(expr.operand), a, b)
            links = (self.chain(expr.operand, x, y, values) for x, y in pairwise(path))
            return tuple(link for chain in links for link in chain)
        return (Link(a, b, "not"),)

    def _composed(self, expr: Binary, a: int, b: int, values: Values) -> Chain:
        """By way of the events that make the fewest links."""
        terms = list(_terms(expr))
        rows = [values.rows(term) for term in terms]
        back: list[int] = [1 << b]
        for row in reversed(rows):
            back.append(sum(1 << x for x, its in enumerate(row) if its & back[-1]))
        back.reverse()
        best: dict[int, tuple[int, tuple[int, ...]]] = {a: (0, (a,))}
        for number, row in enumerate(rows):
            after: dict[int, tuple[int, tuple[int, ...]]] = {}
            for x, (price, path) in best.items():
                for y in bits(row[x] & back[number + 1]):
                    step = (price + (x != y), (*path, y))
                    if y not in after or step < after[y]:
                        after[y] = step
            best = after
        path = best[b][1]
        links = (self.chain(term, x, y, values) for term, x, y in zip(terms, path, path[1:], strict=False))
        return tuple(link for chain in links for link in chain)

    def merged(self, chain: Chain) -> Chain:
        """Program order in one piece, but for the fences on the way and for what is not in the program."""
        links: list[Link] = []
        events = self.values.execution.events
        for link in chain:
            if link.first == link.second and not link.parts:
                continue
            last = links[-1] if links else None
            if last is not None and last.name == "rf^-1" and link.name == "co":
                links[-1] = Link(last.first, link.second, "fr")
            elif last is not None and last.name == link.name == "po" and not _stands_out(events[link.first]):
                links[-1] = Link(last.first, link.second, "po")
            else:
                links.append(link)
        return tuple(links)


def _stands_out(event: ConcreteEvent) -> bool:
    """A fence, or an event that the program does not have."""
    return isinstance(event.label, Fence | ProxyFence | Mark) or (
        event.record is None and event.point.thread is not None
    )


def closes_on(chain: Chain, sources: int) -> bool:
    """True if a communication edge of a chain begins or ends at one of the accesses in a mask."""
    ends = [(link.first, link.second) for link in chain if link.name in COMMUNICATION]
    return any(sources >> first & 1 or sources >> second & 1 for first, second in ends)


def turned(chain: Chain) -> Chain:
    """A chain from its end to its beginning."""
    return tuple(
        Link(link.second, link.first, link.name.removesuffix("^-1"), link.parts, link.clause)
        if link.name.endswith("^-1")
        else Link(link.second, link.first, f"{link.name}^-1", link.parts, link.clause)
        for link in reversed(chain)
    )


def clause_of(definition: Definition) -> str:
    """The title of the section that a definition renders, as the headings of the model's file name it."""
    span = definition.span
    if span is None:
        return ""
    titles = _TITLE.findall(span.source.text[: span.start])
    return titles[-1].replace('"', "") if titles else ""


def _terms(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Binary) and expr.op == ";":
        yield from _terms(expr.left)
        yield from _terms(expr.right)
    else:
        yield expr


def _size(chain: Chain) -> int:
    return sum(1 + _size(link.parts) for link in chain)


def _shortest(rows: Rows, a: int, b: int) -> list[int]:
    """The shortest way from a to b with at least one step; empty if there is none."""
    came: dict[int, int] = {}
    queue = deque([a])
    while queue:
        x = queue.popleft()
        for y in bits(rows[x]):
            if y not in came:
                came[y] = x
                queue.append(y)
            if y == b:
                return _way_back(came, a, b)[::-1]
    return []


def _way_back(came: Mapping[int, int], a: int, b: int) -> list[int]:
    """The way from b to a with at least one step, by the event that each was reached from."""
    way = [b, came[b]]
    while way[-1] != a:
        way.append(came[way[-1]])
    return way
