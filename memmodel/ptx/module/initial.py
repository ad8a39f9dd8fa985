"""The first contents of a variable.

In: a Cursor after the `=`. Out: `Initial`. Source: PTX ISA "Initializers", "Initial values of arrays".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod

from memmodel.ptx.module.lexer import ModuleCursor, integer_of, real_of
from memmodel.ptx.module.syntax import AddressValue, Initial

MAX_VALUES = 1 << 24
_REALS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def read_initial(cursor: ModuleCursor, kind: str, unit: int, lengths: Sequence[int | None]) -> tuple[Initial, int]:
    """The values after the `=`, and how many elements they are. `lengths`: of the dimensions, None for `[]`."""
    reader = InitialReader(cursor, kind, unit)
    if lengths and cursor.token.kind == "{":
        count = reader.row(list(lengths))
    else:
        reader.value(0)
        count = 1
    return Initial(bytes(reader.content), tuple(reader.addresses)), count


class InitialReader:
    """Fills `content` with values of `unit` bytes, and `addresses` with those that are addresses."""

    def __init__(self, cursor: ModuleCursor, kind: str, unit: int) -> None:
        self.cursor, self.kind, self.unit = cursor, kind, unit
        self.content = bytearray()
        self.addresses: list[AddressValue] = []

    def row(self, lengths: list[int | None], first: int = 0) -> int:
        """Values in braces from an element on; a row that is given in part ends with zeros. The elements it has."""
        cursor = self.cursor
        cursor.expect("{")
        step = prod(length or 1 for length in lengths[1:])
        at = first
        while cursor.token.kind != "}":
            if cursor.token.kind == "{" and len(lengths) > 1:
                self.row(lengths[1:], at)
                at += step
            elif cursor.token.kind == "{":
                cursor.fail("a value is expected here")
            else:
                self.value(at)
                at += 1
            if at > MAX_VALUES:
                cursor.fail(f"more than {MAX_VALUES:,} values")
            if not cursor.accept(","):
                break
        cursor.expect("}", "',' or '}'")
        return max(at - first, (lengths[0] or 0) * step)

    def value(self, at: int) -> None:
        """One value: a number, or the address of a variable or function."""
        cursor = self.cursor
        token = cursor.token
        if token.kind == "name":
            self._address(at)
            return
        negative = cursor.accept("-") is not None
        token = cursor.expect("number", "a value")
        if not negative and cursor.token.kind == "(":
            cursor.next()
            self._address(at, integer_of(token.text) or 0)
            cursor.expect(")")
            return
        self._store(at, self._number(token.text, negative=negative))

    def _number(self, text: str, *, negative: bool) -> int:
        whole = integer_of(text)
        if whole is not None:
            whole = -whole if negative else whole
            return self._bits(whole) if self.kind in _REALS else whole
        real = real_of(text)
        if real is None:
            self.cursor.fail("this is no number")
        if self.kind == f"f{real.width}":
            return real.bits ^ negative << real.width - 1
        return self._bits(-real.value if negative else real.value)

    def _bits(self, number: float) -> int:
        try:
            return int.from_bytes(struct.pack(_REALS.get(self.kind, "<d"), number), "little")
        except OverflowError:
            self.cursor.fail(f"the value does not fit into .{self.kind}")

    def _address(self, at: int, mask: int | None = None) -> None:
        """`name`, `name+4`, `generic(name)+4`; with a mask the byte that it takes."""
        cursor = self.cursor
        name = cursor.expect("name", "the name of a variable or a function")
        generic = opened = name.text == "generic" and cursor.accept("(") is not None
        if generic:
            name = cursor.expect("name", "the name of a variable")
        offset = 0
        for _ in range(2):
            while cursor.token.kind in ("+", "-"):
                sign = -1 if cursor.next().kind == "-" else 1
                offset += sign * cursor.integer("an offset")
            if opened:
                cursor.expect(")")
                opened = False
        down = 0 if mask is None else max(0, (mask & -mask).bit_length() - 1)
        self.addresses.append(AddressValue(at * self.unit, self.unit, name.text, offset, down, generic))
        self._store(at, 0)

    def _store(self, at: int, value: int) -> None:
        first = at * self.unit
        self.content.extend(bytes(max(0, first + self.unit - len(self.content))))
        self.content[first : first + self.unit] = (value & (1 << 8 * self.unit) - 1).to_bytes(self.unit, "little")
