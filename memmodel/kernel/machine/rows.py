"""The values that a register has in the 32 lanes of a warp.

In: nothing. Out: `Value`, `Uniform`, `uniform`, `UNKNOWN`. A row is a list over the lanes. A `Uniform` row has one
value in all lanes, may belong to several registers and is never changed; any other row belongs to one register.
"""

from __future__ import annotations

from functools import lru_cache

LANES = 32
Value = int | None
Row = list[Value]


class Uniform(list[Value]):
    """One value in all lanes."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        super().__init__([value] * LANES)
        self.value = value


@lru_cache(maxsize=1 << 16)
def uniform(value: Value) -> Uniform:
    """The row with that value in all lanes."""
    return Uniform(value)


UNKNOWN = uniform(None)
