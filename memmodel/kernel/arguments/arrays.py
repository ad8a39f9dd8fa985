"""Arrays of other libraries, by the protocols that they share: where an array lies, and what is in it.

In: any object. Out: `ArrayFacts`. Nothing is imported for it, nothing is copied from a device, and no stream waits.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.arguments.element_types import contiguous, element_bytes
from memmodel.kernel.arguments.kinds import FakeArray, Known


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """An array. `shape`, `strides`: outermost first, strides in elements. `address`: of its first element; None: it
    lies nowhere. `memory`: the first address that belongs to it and the one after the last, where more than its
    elements do.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element_bytes: int
    address: int | None = None
    memory: tuple[int, int] | None = None
    init: str | None = None
    contents: bytes | None = None

    @property
    def below(self) -> int:
        """Bytes from the lowest element to the first one: not 0 where a stride is negative."""
        return -self._reach(min)

    @property
    def bytes(self) -> int:
        """Bytes from the lowest element to the end of the highest; 0 for an array without elements."""
        return 0 if 0 in self.shape else self.below + self._reach(max) + self.element_bytes

    def _reach(self, which: Callable[[int, int], int]) -> int:
        steps = (which(0, stride) * (size - 1) for size, stride in zip(self.shape, self.strides, strict=True) if size)
        return sum(steps) * self.element_bytes

    @property
    def span(self) -> tuple[int, int]:
        """The first address of its memory, and the one after its last; from 0 for an array that lies nowhere."""
        first = (self.address or 0) - self.below
        if self.memory is None or not self.memory[0] <= first <= first + self.bytes <= self.memory[1]:
            return first, first + self.bytes
        return self.memory


def array_facts(value: object) -> ArrayFacts | None:
    """An array by the first protocol that it has; None if the value has none of them. Raises InputError for one that
    has no size.
    """
    if isinstance(value, ArrayFacts):
        return value
    if isinstance(value, Known):
        facts = array_facts(value.array) or _buffer(value.array)
        if facts is None:
            raise InputError(f"Known({type(value.array).__name__}): that is no array")
        return replace(facts, contents=_contents(value.array, facts))
    if isinstance(value, FakeArray):
        shape = _sizes(value.shape)
        strides = contiguous(shape) if value.strides is None else _sizes(value.strides, least=None)
        return _checked(ArrayFacts(shape, strides, element_bytes(value.dtype), init=value.init))
    if _is_number(value):
        return None
    for read in (_tensor, _interface, _dlpack, _described):
        facts = read(value)
        if facts is not None:
            return _checked(facts)
    return None


def _sizes(numbers: Iterable[Any], *, least: int | None = 0) -> tuple[int, ...]:
    sizes = tuple(int(number) for number in numbers)
    if least is not None and any(size < least for size in sizes):
        raise InputError(f"the shape {list(sizes)} has a negative size")
    return sizes


def _checked(facts: ArrayFacts) -> ArrayFacts:
    if len(facts.shape) != len(facts.strides):
        raise InputError(f"an array of shape {list(facts.shape)} has strides {list(facts.strides)}")
    return facts


def _attribute(value: object, name: str) -> Any:
    """An attribute, and None where it has none or refuses to say (tensors that need gradients, fakes)."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _called(value: object, name: str) -> Any:
    """What a method without arguments returns; None as in `_attribute`."""
    method = _attribute(value, name)
    try:
        return method() if callable(method) else None
    except Exception:
        return None


def _tensor(value: object) -> ArrayFacts | None:
    """A tensor of PyTorch, or what looks like one. Its memory is that of its storage, which views share."""
    if not callable(_attribute(value, "data_ptr")) or _attribute(value, "dtype") is None:
        return None
    dtype, sizes = _attribute(value, "dtype"), _attribute(value, "shape")
    if sizes is None or callable(sizes):
        return None
    shape = _sizes(sizes)
    strides = _called(value, "stride")
    size = _called(value, "element_size")
    facts = ArrayFacts(
        shape, contiguous(shape) if strides is None else _sizes(strides, least=None),
        size if isinstance(size, int) and size > 0 else element_bytes(dtype),
    )  # fmt: skip
    address = _called(value, "data_ptr")
    if not isinstance(address, int) or address == 0:
        return facts
    storage = _called(value, "untyped_storage")
    first, length = _called(storage, "data_ptr"), _called(storage, "nbytes")
    memory = (first, first + length) if isinstance(first, int) and isinstance(length, int) else None
    return replace(facts, address=address, memory=memory)


def _interface(value: object) -> ArrayFacts | None:
    """`__cuda_array_interface__`, `__array_interface__` (NumPy)."""
    for name in ("__cuda_array_interface__", "__array_interface__"):
        interface = _attribute(value, name)
        if isinstance(interface, Mapping) and "shape" in interface and "typestr" in interface:
            size = re.search(r"\d+", str(interface["typestr"]))
            if size is None:
                return None
            shape, width = _sizes(interface["shape"]), int(size[0])
            steps = interface.get("strides")
            if steps is not None and any(int(step) % width for step in steps):
                raise InputError(f"the strides {list(steps)} of an array are no multiples of its {width} byte elements")
            strides = contiguous(shape) if steps is None else tuple(int(step) // width for step in steps)
            data = interface.get("data")
            address = data[0] if isinstance(data, Sequence) and data else None
            return ArrayFacts(shape, strides, width, int(address) if address else None)
    return None


class _DLTensor(ctypes.Structure):
    """The head of what a DLPack capsule holds ("DLTensor" of dlpack.h)."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


HOST_DEVICE = 1
"""kDLCPU: no stream is handed over."""


def _dlpack(value: object) -> ArrayFacts | None:
    """DLPack. The capsule is looked at and given back unused, so that its maker frees it."""
    export, device = _attribute(value, "__dlpack__"), _called(value, "__dlpack_device__")
    if not callable(export) or device is None:
        return None
    try:
        capsule = export() if int(device[0]) == HOST_DEVICE else export(stream=-1)  # -1: nobody waits
    except Exception:
        return None
    api = ctypes.pythonapi
    api.PyCapsule_IsValid.argtypes = api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    if not api.PyCapsule_IsValid(capsule, b"dltensor"):
        return None
    tensor = _DLTensor.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor"))
    bits = tensor.bits * tensor.lanes
    if bits % 8:
        raise InputError(f"elements of {bits} bits are given as bytes")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides else contiguous(shape)
    address = tensor.data + tensor.byte_offset if tensor.data else None
    return ArrayFacts(shape, strides, bits // 8, address)


def _described(value: object) -> ArrayFacts | None:
    """What has a dtype and a shape and no memory: an abstract array of JAX, a fake of one's own."""
    dtype, sizes = _attribute(value, "dtype"), _attribute(value, "shape")
    if dtype is None or sizes is None or callable(sizes) or isinstance(value, type):
        return None
    try:
        shape = _sizes(sizes)
    except (TypeError, ValueError):
        return None
    strides = _attribute(value, "strides")
    strides = _called(value, "stride") if strides is None or callable(strides) else strides
    return ArrayFacts(
        shape, contiguous(shape) if strides is None else _sizes(strides, least=None), element_bytes(dtype)
    )


def _is_number(value: object) -> bool:
    """True for a scalar of an array library, which has the protocols of arrays and no memory that can be written."""
    if _attribute(value, "shape") != () or hasattr(value, "__setitem__") or callable(_attribute(value, "data_ptr")):
        return False
    return isinstance(_called(value, "item"), bool | int | float)


def _buffer(value: object) -> ArrayFacts | None:
    """What has Python's buffer protocol: `array.array`, `memoryview`."""
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    return ArrayFacts(view.shape or (), tuple(step // view.itemsize for step in view.strides or ()), view.itemsize)


def _contents(array: object, facts: ArrayFacts) -> bytes:
    """The bytes of an array in the memory of the host, if its elements follow each other. Raises InputError."""
    if facts.strides != contiguous(facts.shape) and facts.bytes:
        raise InputError("the contents of an array are taken if it is contiguous", hint="hand over a contiguous copy")
    try:
        return memoryview(array).tobytes()  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        content = _called(array, "tobytes")
    if not isinstance(content, bytes):
        hint = "copy it to the host first, for example to an array of NumPy"
        raise InputError(f"the contents of a {type(array).__name__} cannot be read", hint=hint)
    return content
