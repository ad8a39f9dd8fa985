"""The algebra of sets and relations over events, with formulas for cells.

A set is a row: event -> formula. A relation is a list of rows: `rows[a][b]` is the formula of the pair (a, b); a
missing cell is FALSE. Shape of every relation: events × events. Closures are least closures, exactly.
"""

from __future__ import annotations

from memmodel.base.logic import FALSE, TRUE, Logic

Row = dict[int, int]
Rel = list[Row]


class Algebra:
    """Operations on rows and relations over `size` events. Arguments are never changed."""

    def __init__(self, logic: Logic, size: int) -> None:
        self.logic = logic
        self.size = size

    def empty(self) -> Rel:
        return [{} for _ in range(self.size)]

    # ---- sets ----------------------------------------------------------------------------------------------------

    def row_or(self, left: Row, right: Row) -> Row:
        if not left:
            return right
        if not right:
            return left
        out = dict(left)
        either = self.logic.either
        for key, formula in right.items():
            old = out.get(key)
            out[key] = formula if old is None else either(old, formula)
        return out

    def row_and(self, left: Row, right: Row) -> Row:
        if len(right) < len(left):
            left, right = right, left
        both = self.logic.both
        out = {}
        for key, formula in left.items():
            other = right.get(key)
            if other is not None and (cell := both(formula, other)) != FALSE:
                out[key] = cell
        return out

    def row_minus(self, left: Row, right: Row) -> Row:
        both = self.logic.both
        out = {}
        for key, formula in left.items():
            other = right.get(key)
            if other is None:
                out[key] = formula
            elif (cell := both(formula, -other)) != FALSE:
                out[key] = cell
        return out

    # ---- relations -----------------------------------------------------------------------------------------------

    def union(self, left: Rel, right: Rel) -> Rel:
        return [self.row_or(a, b) for a, b in zip(left, right, strict=True)]

    def intersection(self, left: Rel, right: Rel) -> Rel:
        return [self.row_and(a, b) if a and b else {} for a, b in zip(left, right, strict=True)]

    def difference(self, left: Rel, right: Rel) -> Rel:
        return [self.row_minus(a, b) for a, b in zip(left, right, strict=True)]

    def sequence(self, left: Rel, right: Rel) -> Rel:
        """left ; right"""
        both = self.logic.both
        out = self.empty()
        for a, row in enumerate(left):
            if not row:
                continue
            parts: dict[int, list[int]] = {}
            for middle, first in row.items():
                for b, second in right[middle].items():
                    if (cell := both(first, second)) != FALSE:
                        parts.setdefault(b, []).append(cell)
            out[a] = {b: cells[0] if len(cells) == 1 else self._any(cells) for b, cells in parts.items()}
        return out

    def _any(self, cells: list[int]) -> int:
        return TRUE if TRUE in cells else self.logic.disj(cells)

    def inverse(self, rel: Rel) -> Rel:
        out = self.empty()
        for a, row in enumerate(rel):
            for b, formula in row.items():
                out[b][a] = formula
        return out

    def product(self, left: Row, right: Row) -> Rel:
        """left * right, the cartesian product."""
        both = self.logic.both
        out = self.empty()
        for a, first in left.items():
            out[a] = {b: cell for b, second in right.items() if (cell := both(first, second)) != FALSE}
        return out

    def identity(self, events: Row) -> Rel:
        """[events]"""
        out = self.empty()
        for a, formula in events.items():
            out[a][a] = formula
        return out

    def domain(self, rel: Rel) -> Row:
        return {a: self._any(list(row.values())) for a, row in enumerate(rel) if row}

    def range(self, rel: Rel) -> Row:
        return self.domain(self.inverse(rel))

    def closure(self, rel: Rel) -> Rel:
        """Least transitive relation containing `rel`: middle events eliminated one by one (Warshall), exactly."""
        both, either = self.logic.both, self.logic.either
        rows = [dict(row) for row in rel]
        into: list[set[int]] = [set() for _ in range(self.size)]
        for a, row in enumerate(rows):
            for b in row:
                into[b].add(a)
        # Cheapest middles first keeps intermediate formulas small; the result does not depend on the order.
        for middle in sorted(range(self.size), key=lambda e: len(into[e]) * len(rows[e])):
            out = [(b, formula) for b, formula in rows[middle].items() if b != middle]
            if not out:
                continue
            for a in list(into[middle]):
                if a == middle:
                    continue
                row = rows[a]
                first = row[middle]
                for b, second in out:
                    old = row.get(b)
                    if old == TRUE:
                        continue
                    cell = both(first, second)
                    if cell == FALSE:
                        continue
                    if old is None:
                        row[b] = cell
                        into[b].add(a)
                    else:
                        row[b] = either(old, cell)
        return rows

    def cyclic(self, rel: Rel) -> int:
        """The formula that says `rel` has a cycle: only strongly connected parts are looked at."""
        cells: list[int] = []
        for part in self._components(rel):
            inside = set(part)
            renumber = {event: i for i, event in enumerate(part)}
            small = Algebra(self.logic, len(part))
            rows = [{renumber[b]: f for b, f in rel[a].items() if b in inside} for a in part]
            closed = small.closure(rows)
            cells += [closed[i][i] for i in range(len(part)) if i in closed[i]]
        return self.logic.disj(cells)

    def _components(self, rel: Rel) -> list[list[int]]:
        """Strongly connected components that can hold a cycle (Tarjan, without recursion)."""
        index: dict[int, int] = {}
        low: dict[int, int] = {}
        on_stack: set[int] = set()
        stack: list[int] = []
        found: list[list[int]] = []
        for root in range(self.size):
            if root in index:
                continue
            work = [(root, iter(rel[root]))]
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
            while work:
                node, successors = work[-1]
                for successor in successors:
                    if successor not in index:
                        index[successor] = low[successor] = len(index)
                        stack.append(successor)
                        on_stack.add(successor)
                        work.append((successor, iter(rel[successor])))
                        break
                    if successor in on_stack:
                        low[node] = min(low[node], index[successor])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == index[node]:
                        part = []
                        while True:
                            member = stack.pop()
                            on_stack.discard(member)
                            part.append(member)
                            if member == node:
                                break
                        if len(part) > 1 or node in rel[node]:
                            found.append(sorted(part))
        return found
