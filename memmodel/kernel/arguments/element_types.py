"""Types of the elements of arrays, by the names that libraries give them.

In: a type, or its name. Out: its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memmodel.errors import InputError

WORDS = {"bool": 1, "i1": 1, "u1": 1, "half": 2, "float": 4, "double": 8, "short": 2, "int": 4, "long": 8,
         "complex": 16}  # fmt: skip
"""Bytes of types whose names have no number of bits, or one that does not count."""


def element_bytes(dtype: object) -> int:
    """The bytes of an element by its type, or by the name of its type. Raises InputError for one that says no size."""
    size = getattr(dtype, "itemsize", None)
    if isinstance(size, int) and size > 0:
        return size
    name = str(getattr(dtype, "name", None) or dtype).rpartition(".")[2].lower().lstrip("*")
    if name in WORDS:
        return WORDS[name]
    bits = re.search(r"\d+", name)
    if bits is None or int(bits[0]) % 8 or not 8 <= int(bits[0]) <= 128:
        hint = "such as float16, bf16, int32, uint8; elements smaller than a byte are given as bytes"
        raise InputError(f"{str(dtype)[:60]!r} is no type of elements with whole bytes", hint=hint)
    return int(bits[0]) // 8


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose rows follow each other."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class TypeName(str):
    """The name of a type of elements, which says its bytes as the types of libraries do."""

    __slots__ = ()

    @property
    def itemsize(self) -> int:
        """Bytes of an element. Raises InputError."""
        return element_bytes(str(self))

    @property
    def is_floating_point(self) -> bool:
        """True for a floating-point type: an attribute of PyTorch's types."""
        return "f" in self.lower() and "int" not in self.lower()
