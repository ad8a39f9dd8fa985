"""Symbolic values, as terms: one number for one value, whatever the data is.

In: operations and the numbers of their operands. Out: numbers; equal numbers are equal values, different ones may be.
Settled here: operations on equal operands are equal; sums, products, minima and maxima do not depend on the order of
their operands, and those of integers not on how they are grouped either (results that are NaN are canonical but for
.f64, PTX ISA "Floating Point Instructions"). What comparisons decide is a table over their outcomes, so that two ways
to take the larger of two values are one term.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product, repeat
from math import prod
from typing import NamedTuple

from memmodel.kernel.machine.rows import LANES
from memmodel.program.arith import Operation, operation
from memmodel.program.arith.floats import TESTS
from memmodel.ptx.vocabulary import DataType

COMMUTES = ("add", "mul", "max", "min", "and", "or", "xor", "fma")
"""Operations, with any modifiers, that do not depend on the order of their operands (fma: of the first two)."""

GROUPS = ("add", "and", "or", "xor", "min", "max")
"""Operations on integers that do not depend on how more than two operands are grouped."""

NANS_DIFFER = DataType("f", 64)
"""The type whose results that are NaN may have different bits."""

MOST_LEAVES, MOST_OPERANDS, MOST_NUMBERS, MOST_PAIRS = 125, 64, 2_048, 4_096
"""What is larger is a term of its own, of which nothing more is known. Such terms, and those made of them, are
`limited`: two that are not the same may be equal.
"""

OUTCOMES = f"more than {MOST_LEAVES} outcomes of comparisons"

Outcome = str | bool | tuple[bool, ...]
MOST_TERMS, MOST_ROW_TERMS = 1_500_000, 6_000_000
"""Terms of a run, with a number for each term or for each row; one that needs more says nothing."""

EQUAL, UNORDERED = "equal", "unordered"
INTEGERS: tuple[Outcome, ...] = (EQUAL, (True, True), (True, False), (False, True), (False, False))
"""How two integers compare: they are equal, or the first one is less or not, as signed and as unsigned numbers."""
FLOATS: tuple[Outcome, ...] = (EQUAL, (True,), (False,), UNORDERED)
BITS: tuple[Outcome, ...] = (True, False)

LeafFunction = Callable[..., int]
"""The leaf of a table, from one leaf of each of some others."""


class TermsSpent(Exception):
    """A run has more terms than are kept."""


class Choices(NamedTuple):
    """A term as a table. `atoms`: the comparisons that decide it; `leaves`: the term for each combination of their
    outcomes, that of the last one changing first.
    """

    atoms: tuple[int, ...]
    leaves: tuple[int, ...]


@lru_cache(maxsize=4096)
def _cases(sizes: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    """For each combination of outcomes the place in a table of only some of the comparisons."""
    table = []
    for chosen in product(*map(range, sizes)):
        at = 0
        for place in places:
            at = at * sizes[place] + chosen[place]
        table.append(at)
    return tuple(table)


class Terms:
    """Numbers for terms. `ordered`: no floating-point number is taken to be NaN.

    `by_rows`: an operation that all lanes of a warp carry out is looked up once for the row, not for each lane. Much
    less is held and compared, and some values that are equal get different numbers.
    """

    def __init__(self, *, ordered: bool = False, by_rows: bool = False) -> None:
        self.ordered, self.by_rows = ordered, by_rows
        self._count, self._most = 0, MOST_ROW_TERMS if by_rows else MOST_TERMS
        self._rows: dict[Hashable, list[int]] = {}
        self._row_numbers: dict[tuple[int, ...], int] = {}
        self._numbers: dict[Hashable, int] = {}
        self._operations: dict[tuple[str, DataType], int] = {}
        self._known: dict[int, int] = {}
        self._choices: dict[int, Choices] = {}
        self._outcomes: dict[int, tuple[Outcome, ...]] = {}
        self._compared_integers: dict[int, tuple[int, int]] = {}
        self._possible: dict[int, frozenset[int]] = {}
        self._grouped: dict[Hashable, tuple[int, ...]] = {}
        self._done: dict[Hashable, int] = {}
        self.limited: dict[int, str] = {}
        """Terms that a limit may keep apart from equal ones, with the limit."""
        self.doubtful = False
        """True if more terms might be equal if no number were NaN."""
        self._fresh = 0
        self.false, self.true = self.number(0), self.number(1)

    def of(self, *key: Hashable) -> int:
        """The number of a term. Raises TermsSpent."""
        term = self._numbers.get(key)
        if term is None:
            term = self._numbers[key] = self._next(1)
            if (
                self.limited
                and key[0] not in ("number", "fresh")
                and (limit := next(self._limits(key), None)) is not None
            ):
                self.limited[term] = limit
        return term

    def _next(self, count: int) -> int:
        """The first of some numbers that no term has. Raises TermsSpent."""
        first, self._count = self._count, self._count + count
        if self._count > self._most:
            raise TermsSpent
        return first

    def _limits(self, key: Iterable[Hashable]) -> Iterator[str]:
        """The limits of the terms in a key; other numbers in it only make more terms limited."""
        for part in key:
            if isinstance(part, tuple):
                yield from self._limits(part)
            elif type(part) is int and part in self.limited:
                yield self.limited[part]

    def over_limit(self, limit: str, *key: Hashable) -> int:
        """The number of a term of which a limit hides what it is made of."""
        term = self.of(*key)
        self.limited.setdefault(term, limit)
        return term

    def number(self, value: int) -> int:
        """A value that is known."""
        term = self.of("number", value)
        if term not in self._known:
            self._known[term], self._possible[term] = value, frozenset((value,))
        return term

    def known(self, term: int) -> int | None:
        return self._known.get(term)

    def knows(self, row: Iterable[int]) -> bool:
        """True if one of these terms is a value that is known."""
        return not self._known.keys().isdisjoint(row)

    def fresh(self) -> int:
        """A value of which nothing is known, and which may be equal to any other."""
        self._fresh += 1
        return self.of("fresh", self._fresh)

    # ---- operations ------------------------------------------------------------------------------------------

    def computed(self, op: str, type: DataType, inputs: Sequence[int]) -> int:
        """The result of an operation."""
        return self.operation(op, type)(*([term] for term in inputs))[0]

    def operation(self, op: str, type: DataType) -> Callable[..., list[int]]:
        """An operation on rows of operands: the result in each lane."""
        head, number = op.partition(".")[0], self._operations.setdefault((op, type), ~len(self._operations))
        doubtful = head in COMMUTES and type == NANS_DIFFER and not self.ordered
        grouped = op in GROUPS and not type.floating and type.lanes == 1
        name = op, type if op in ("min", "max") else DataType("b", type.width)
        numbers, made = self._numbers, self.of

        def results(*rows: Sequence[int]) -> list[int]:
            if grouped and not self.whole(rows[0]):
                return [self._joined(name, list(operands)) for operands in zip(*rows, strict=True)]
            if head not in COMMUTES or doubtful:
                self.doubtful |= doubtful
            else:
                ends = 2 if head == "fma" else len(rows)
                if ends == 2:
                    rows = (list(map(min, *rows[:2])), list(map(max, *rows[:2])), *rows[2:])
                else:
                    rows = tuple(zip(*map(sorted, zip(*rows, strict=True)), strict=True))
            if self.whole(rows[0]):
                return self._of_row(number, rows)
            keys = zip(repeat(number), *rows)
            return [made(*key) if (term := numbers.get(key)) is None else term for key in keys]

        return results

    def whole(self, row: Sequence[int]) -> bool:
        """True if an operation on such rows is looked up once for all lanes."""
        return self.by_rows and len(row) == LANES

    def _of_row(self, operation: int, rows: Sequence[Sequence[int]]) -> list[int]:
        """The results of an operation in all lanes: the same for the same rows; in one row, for equal operands."""
        known = self._row_numbers
        key = (operation, *(known.setdefault(tuple(row), len(known)) for row in rows))
        results = self._rows.get(key)
        if results is None:
            lanes = list(zip(*rows, strict=True))
            first = self._next(LANES)
            place = dict(zip(lanes, range(first, first + LANES), strict=True))
            results = self._rows[key] = [place[operands] for operands in lanes]
        return results

    def _joined(self, name: tuple[str, DataType], operands: list[int]) -> int:
        """Integers joined in any order and grouping."""
        parts = sorted(part for operand in operands for part in self._grouped.get((name, operand), (operand,)))
        if name[0] not in ("add", "xor"):
            parts = list(dict.fromkeys(parts))
        if len(parts) == 1:
            return parts[0]
        if len(parts) > MOST_OPERANDS:
            return self.over_limit(f"{len(parts)} operands of {name[0]}, more than {MOST_OPERANDS}", name, *operands)
        term = self.of(name, *parts)
        self._grouped[name, term] = tuple(parts)
        return term

    # ---- what comparisons decide -----------------------------------------------------------------------------

    def compared(self, op: str, type: DataType, left: int, right: int) -> int:
        """The result of a comparison of two numbers, as a table over how they compare."""
        how, *modifiers = op.split(".")
        decide, unordered = TESTS[how] if type.floating else (operation(how, DataType("u", type.width)), False)
        first, second = sorted((left, right))
        atom = self._comparison(
            type if type.floating else DataType("b", type.width), *modifiers, left=first, right=second
        )

        def holds(outcome: Outcome) -> bool:
            if outcome in (EQUAL, UNORDERED):
                return bool(decide(0, 0)) if outcome == EQUAL else unordered
            assert isinstance(outcome, tuple)
            less = outcome[0 if type.signed else -1] == (first == left)
            return bool(decide(0, 1) if less else decide(1, 0))

        leaves = tuple(self.true if holds(outcome) else self.false for outcome in self._outcomes[atom])
        return self._table((atom,), leaves)

    def _comparison(self, type: DataType, *modifiers: str, left: int, right: int) -> int:
        """Two numbers compared; which outcomes are possible."""
        atom = self.of("compare", type, *modifiers, left, right)
        if atom in self._outcomes:
            return atom
        if type.floating:
            possible = tuple(x for x in FLOATS if not (self.ordered and x == UNORDERED))
            self.doubtful |= not self.ordered
            self._outcomes[atom] = tuple(x for x in possible if left != right or x in (EQUAL, UNORDERED))
            return atom
        self._compared_integers[atom] = left, right
        mine, others = self._possible.get(left), self._possible.get(right)
        outcomes = INTEGERS if left != right else (EQUAL,)
        if mine is not None and others is not None and left != right:
            signed = DataType("s", type.width).wrap
            if len(mine) * len(others) <= MOST_PAIRS:
                met = {EQUAL if a == b else (signed(a) < signed(b), a < b) for a in mine for b in others}
                outcomes = tuple(x for x in INTEGERS if x in met)
            elif mine.isdisjoint(others):
                outcomes = INTEGERS[1:]
        self._outcomes[atom] = outcomes
        return atom

    def selected(self, which: int, first: int, second: int) -> int:
        """selp: the first value where a predicate holds."""
        key = "selected", which, first, second
        if key not in self._done:
            self._done[key] = self._selected(which, first, second)
        return self._done[key]

    def _selected(self, which: int, first: int, second: int) -> int:
        decision = self._decision(which)

        def chosen(holds: int, yes: int, no: int) -> int:
            return yes if holds == self.true else no

        term = self._combined(chosen, decision, self._table_of(first), self._table_of(second))
        if term is None:
            term = self._combined(chosen, decision, self._leaf(first), self._leaf(second))
        return self.over_limit(OUTCOMES, "select", which, first, second) if term is None else term

    def logic(self, head: str, *predicates: int) -> int:
        """and, or, xor, not of predicates."""

        key = (head, *predicates)
        if key not in self._done:
            self._done[key] = self._logic(head, predicates)
        return self._done[key]

    def _logic(self, head: str, predicates: tuple[int, ...]) -> int:
        def work(*bits: int) -> int:
            held = [bit == self.true for bit in bits]
            result = {"and": all(held), "or": any(held), "xor": held[0] != held[-1], "not": not held[0]}[head]
            return self.true if result else self.false

        term = self._combined(work, *map(self._decision, predicates))
        return self.over_limit(OUTCOMES, head, "pred", *sorted(predicates)) if term is None else term

    def tested(self, fn: Operation, first: int, second: int) -> int | None:
        """What a function says of two values that are numbers in each case; None if they are not."""
        tables = self._table_of(first), self._table_of(second)
        if any(leaf not in self._known for table in tables for leaf in table.leaves):
            return None
        return self._combined(lambda a, b: self.number(fn(self._known[a], self._known[b]) or 0), *tables)

    def _table_of(self, term: int) -> Choices:
        return self._choices.get(term) or self._leaf(term)

    @staticmethod
    def _leaf(term: int) -> Choices:
        return Choices((), (term,))

    def _decision(self, term: int) -> Choices:
        """A predicate as a truth table; a predicate that has no table becomes a variable of its own."""
        table = self._table_of(term)
        if all(leaf in (self.true, self.false) for leaf in table.leaves):
            return table
        atom = self.of("bit", term)
        self._outcomes[atom] = BITS
        return Choices((atom,), (self.true, self.false))

    def _combined(self, fn: LeafFunction, *tables: Choices) -> int | None:
        """A function of tables, for each outcome; None if there are too many."""
        atoms = tuple(sorted({atom for table in tables for atom in table.atoms}))
        sizes = tuple(len(self._outcomes[atom]) for atom in atoms)
        if prod(sizes) > MOST_LEAVES:
            return None
        place = {atom: number for number, atom in enumerate(atoms)}
        columns = []
        for table in tables:
            leaves = table.leaves
            columns.append([leaves[at] for at in _cases(sizes, tuple(place[atom] for atom in table.atoms))])
        results = list(map(fn, *columns))
        for atom in atoms:
            if atom in self._compared_integers and EQUAL in self._outcomes[atom]:
                equal = self._outcomes[atom].index(EQUAL)
                first, second = self._compared_integers[atom]
                digits = _cases(sizes, (place[atom],))
                results = [first if at == equal and x == second else x for x, at in zip(results, digits, strict=True)]
        return self._table(atoms, tuple(results))

    def _table(self, atoms: tuple[int, ...], leaves: tuple[int, ...]) -> int:
        """The term of a table, without the comparisons that decide nothing."""
        after = 1
        for place in range(len(atoms) - 1, -1, -1):
            count = len(self._outcomes[atoms[place]])
            rows = [leaves[n : n + after] for n in range(0, len(leaves), after)]
            if all(rows[n - n % count] == row for n, row in enumerate(rows)):
                leaves = tuple(leaf for n, row in enumerate(rows) if n % count == 0 for leaf in row)
                atoms = (*atoms[:place], *atoms[place + 1 :])
            else:
                after *= count
        if not atoms:
            return leaves[0]
        term = self.of("table", atoms, leaves)
        if term not in self._choices:
            self._choices[term] = Choices(atoms, leaves)
            sets = [self._possible.get(leaf) for leaf in dict.fromkeys(leaves)]
            if all(possible is not None for possible in sets):
                numbers = frozenset(x for possible in sets if possible is not None for x in possible)
                if len(numbers) <= MOST_NUMBERS:
                    self._possible[term] = numbers
        return term
