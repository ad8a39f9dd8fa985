"""Sets and relations over events, with formulas for cells.

A set is a row: event -> formula. A relation is a list of rows: `rows[a][b]` is the formula of the pair (a, b); a
missing cell is FALSE. Closures are least closures, exactly.
"""

from __future__ import annotations

from memmodel.base import rows
from memmodel.base.logic import FALSE, TRUE, Logic

Row = dict[int, int]
Rel = list[Row]


def no_pairs(count: int) -> Rel:
    """The empty relation over `count` events."""
    return [{} for _ in range(count)]


def put(logic: Logic, row: Row, event: int, formula: int) -> None:
    """The event is in the row too, if the formula holds."""
    if formula != FALSE:
        row[event] = logic.either(row.get(event, FALSE), formula)


def closure(logic: Logic, rel: Rel) -> Rel:
    """The least transitive relation that contains another: middle events are eliminated one by one (Warshall)."""
    both, either = logic.both, logic.either
    closed = [dict(row) for row in rel]
    into: list[set[int]] = [set() for _ in rel]
    for a, row in enumerate(closed):
        for b in row:
            into[b].add(a)
    # Cheapest middles first keeps intermediate formulas small; the result does not depend on the order.
    for middle in sorted(range(len(rel)), key=lambda event: len(into[event]) * len(closed[event])):
        out = [(b, formula) for b, formula in closed[middle].items() if b != middle]
        if not out:
            continue
        for a in list(into[middle]):
            if a == middle:
                continue
            row = closed[a]
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
    return closed


def cyclic(logic: Logic, rel: Rel) -> int:
    """The formula that says that a relation has a cycle: only strongly connected parts are looked at."""
    cells: list[int] = []
    for component in rows.components([sum(1 << b for b in row) for row in rel]):
        part = sorted(component)
        if len(part) == 1 and part[0] not in rel[part[0]]:
            continue
        numbers = {event: number for number, event in enumerate(part)}
        closed = closure(logic, [{numbers[b]: f for b, f in rel[a].items() if b in numbers} for a in part])
        cells += [closed[number][number] for number in range(len(part)) if number in closed[number]]
    return logic.disj(cells)
