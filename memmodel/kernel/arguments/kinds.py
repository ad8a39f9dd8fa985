"""What a caller may hand over besides numbers and arrays: arrays that do not exist, tensor maps, structures.

In: nothing. Out: `FakeArray`, `TiledMap`, `Known`, `Struct`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from memmodel.kernel.arguments.element_types import TypeName, contiguous, element_bytes


@dataclass(frozen=True, slots=True)
class FakeArray:
    """An array that exists nowhere: its shape (outermost first), the name of its type, its strides in elements.

    `strides` None: it is contiguous. `init`: its first contents, zeros or `iota` (the 32-bit word k holds k); None:
    they are unknown.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] | None = None
    init: Literal["zero", "iota"] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", TypeName(self.dtype))

    def data_ptr(self) -> int:
        """Address 0, as of a PyTorch tensor without memory: compilers ask for the address to see how it is aligned."""
        return 0

    def element_size(self) -> int:
        """Bytes of an element."""
        return element_bytes(self.dtype)

    def stride(self) -> tuple[int, ...]:
        """Strides in elements."""
        return contiguous(self.shape) if self.strides is None else self.strides


@dataclass(frozen=True, slots=True)
class Known:
    """An array whose contents the kernel starts with, such as indices that decide where it goes.

    `array`: one in the memory of the host, which has the buffer protocol or `tobytes`. The verdict is about these
    contents, and says so.
    """

    array: object


@dataclass(frozen=True, slots=True)
class TiledMap:
    """A tensor map of an array, as `cuTensorMapEncodeTiled` makes it. `box` and `element_strides` are in the order of
    the array's shape, outermost first. `swizzle`: the bytes of its rows, or a name such as `128B`. `packed`: the type
    of elements smaller than a byte, such as `b4x16`; the array has a byte for each.
    """

    array: object
    box: tuple[int, ...]
    swizzle: int | str = 0
    element_strides: tuple[int, ...] = ()
    packed: str | None = None


@dataclass(frozen=True, slots=True)
class Struct:
    """A parameter that is a structure. `data`: its bytes; `fields`: by their offsets, the arrays whose addresses and
    the tensor maps whose 128 bytes stand there, in place of what `data` has.
    """

    data: bytes
    fields: Mapping[int, object] = field(default_factory=dict)
