"""Relations as single integers: bit a*n + b says that event a is related to event b of n.

In: integers and the number of events. Out: integers. One big-integer operation handles a whole matrix, which makes
trying thousands of candidates cheap in plain Python. `evaluate` does the same sums the slow way; tests compare both.
"""

from __future__ import annotations

from collections.abc import Sequence


class Shape:
    """The masks that depend on the number of events only."""

    __slots__ = ("count", "diagonal", "first_column", "full", "row")

    def __init__(self, count: int) -> None:
        self.count = count
        self.row = (1 << count) - 1
        self.full = (1 << count * count) - 1
        self.first_column = sum(1 << a * count for a in range(count))
        self.diagonal = sum(1 << a * count + a for a in range(count))

    def pack(self, rows: Sequence[int]) -> int:
        """Rows to one integer."""
        matrix = 0
        for row in reversed(rows):
            matrix = matrix << self.count | row
        return matrix

    def unpack(self, matrix: int) -> list[int]:
        """One integer to rows."""
        return [matrix >> a * self.count & self.row for a in range(self.count)]

    def compose(self, left: int, right: int) -> int:
        """left ; right. Column k of `left`, spread over the rows, selects the rows that row k of `right` goes into."""
        count, row, first_column = self.count, self.row, self.first_column
        result = 0
        while right:
            step = right & row
            if step:
                result |= (left & first_column) * step
            right >>= count
            left >>= 1
        return result

    def closure(self, matrix: int) -> int:
        """The least transitive relation containing `matrix` (Warshall)."""
        count, row, first_column = self.count, self.row, self.first_column
        for k in range(count):
            step = matrix >> k * count & row
            if step:
                matrix |= (matrix >> k & first_column) * step
        return matrix

    def passes(self, test: str, matrix: int) -> bool:
        """True if a relation passes a test: empty, irreflexive or acyclic."""
        if test == "empty":
            return not matrix
        if test == "irreflexive":
            return not matrix & self.diagonal
        return not self.closure(matrix) & self.diagonal

    def _sparse_inverse(self, matrix: int) -> int:
        count = self.count
        result = 0
        while matrix:
            low = matrix & -matrix
            a, b = divmod(low.bit_length() - 1, count)
            result |= 1 << b * count + a
            matrix ^= low
        return result

    def inverse(self, matrix: int) -> int:
        """Pair by pair if there are few; else row by row, equal rows once."""
        if matrix.bit_count() <= 2 * self.count:
            return self._sparse_inverse(matrix)
        alike: dict[int, int] = {}
        for a, row in enumerate(self.unpack(matrix)):
            if row:
                alike[row] = alike.get(row, 0) | 1 << a
        columns = [0] * self.count
        for row, members in alike.items():
            while row:
                low = row & -row
                columns[low.bit_length() - 1] |= members
                row ^= low
        return self.pack(columns)

    def diagonal_of(self, members: int) -> int:
        """[members]: the identity on a set. Every row becomes the set, of which the diagonal is kept."""
        return members * self.first_column & self.diagonal

    def product(self, left: int, right: int) -> int:
        """left * right between two sets."""
        result = 0
        for a in range(self.count):
            if left >> a & 1:
                result |= right << a * self.count
        return result

    def domain(self, matrix: int) -> int:
        return sum(1 << a for a, row in enumerate(self.unpack(matrix)) if row)

    def range(self, matrix: int) -> int:
        members = 0
        for row in self.unpack(matrix):
            members |= row
        return members
