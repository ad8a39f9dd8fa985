"""One launch of a compiled kernel of Triton, as data that another process can read.

In: a compiled kernel (its PTX, its signature, its metadata), the grid, the arguments. Out: `TritonCall`. Settled here:
which parameters the PTX has for an argument. A constant has none, a tuple those of its members, a tensor descriptor a
tensor map (or its base), its shape and its strides; the two scratch buffers come last, where the kernel has them. And
that an array that lies nowhere gets a place, so that all arguments that are the same fake share it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.arguments.arrays import ArrayFacts, array_facts
from memmodel.kernel.arguments.kinds import FakeArray, TiledMap

CONSTANT, DESCRIPTOR = "constexpr", "tensordesc"
SWIZZLES = (0, 32, 64, 128)
"""The bytes of a row by the code that Triton hands to the driver."""

SHOWN = 40
FAKES = 1 << 56
"""Where fakes are placed: above all addresses of real memory."""
ALIGNED = 4096


@dataclass(frozen=True, slots=True)
class TritonCall:
    """What is judged. `label`: the constants and options by which its specialization differs from others.

    `args`: the parameters of the PTX, each with its name and its value as JSON. `by_hand`: its fences stand in the
    source, as in Gluon; those of other kernels the compiler has written.
    """

    name: str
    label: str
    ptx: str
    grid: tuple[int, int, int]
    num_ctas: int
    dynamic_shared: int
    args: tuple[tuple[str, Any], ...]
    by_hand: bool = False

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @staticmethod
    def of_json(data: Mapping[str, Any]) -> TritonCall:
        """The call that `to_json` wrote."""
        args = tuple((str(name), value) for name, value in data["args"])
        x, y, z = data["grid"]
        return TritonCall(**{**data, "args": args, "grid": (x, y, z)})

    @property
    def text(self) -> str:
        """The same call, always as the same text."""
        return json.dumps(self.to_json(), sort_keys=True)

    @property
    def values(self) -> list[object]:
        """The arguments as `check_ptx` takes them."""
        return [_value(value) for _, value in self.args]


def call_of(kernel: Any, grid: Sequence[int], bound: Mapping[str, object]) -> TritonCall:
    """The launch of a compiled kernel. `bound`: every argument of the function, by its name. Raises InputError."""
    metadata, source = kernel.metadata, kernel.src
    names = list(source.fn.arg_names)
    signature = dict(source.signature)
    maps = iter(getattr(metadata, "tensordesc_meta", None) or ())
    has_maps = bool(getattr(metadata, "tensordesc_meta", None))
    places = CallArguments()
    args: list[tuple[str, Any]] = []
    for name in names:
        args += places.flat(name, signature.get(name, CONSTANT), bound.get(name), maps, has_maps=has_maps)
    sizes = [int(size) for size in grid]
    x, y, z = [*sizes, 1, 1][:3]
    num_ctas = int(getattr(metadata, "num_ctas", 1))
    text = kernel.asm["ptx"]
    text = text if isinstance(text, str) else text.decode()
    for scratch in _scratch(text, len(args)):
        size = int(getattr(metadata, f"{scratch}_size", 0) or 0) * prod((x, y, z)) * num_ctas
        buffer = FakeArray((size,), "uint8")
        args.append((scratch, {"array": places.array(buffer)} if size else {"number": 0}))
    is_gluon = getattr(source.fn, "is_gluon", None)
    return TritonCall(
        str(metadata.name), label_of(source, metadata), text, (x, y, z), num_ctas, int(metadata.shared), tuple(args),
        bool(is_gluon()) if callable(is_gluon) else False,
    )  # fmt: skip


def label_of(source: Any, metadata: Any) -> str:
    """`BLOCK=128, num_warps=4`."""
    parts = []
    for path, value in sorted(dict(source.constants).items(), key=str):
        at = path[0] if isinstance(path, tuple) else path
        name = source.fn.arg_names[at] if isinstance(at, int) else str(at)
        parts.append(f"{name}={getattr(value, '__name__', None) or str(value)[:SHOWN]}")
    for option, usual in (("num_warps", 4), ("num_stages", 3), ("num_ctas", 1)):
        if getattr(metadata, option, usual) != usual:
            parts.append(f"{option}={getattr(metadata, option)}")
    return ", ".join(parts)


def _scratch(text: str, given: int) -> list[str]:
    """The names of the parameters after the arguments. Older versions of Triton have fewer."""
    _, _, behind = text.partition(".entry")
    listed = behind.partition(")")[0]
    return ["global_scratch", "profile_scratch"][: max(0, listed.count(".param") - given)]


class CallArguments:
    """The arguments of one call as JSON, and where its fakes lie."""

    def __init__(self) -> None:
        self._fakes: dict[int, ArrayFacts] = {}
        self._next = FAKES
        self._kept: list[object] = []

    def flat(
        self, name: str, kind: Any, value: object, maps: Iterator[Any], *, has_maps: bool
    ) -> Iterator[tuple[str, Any]]:
        """The parameters of one argument."""
        if isinstance(kind, tuple):
            members = value if isinstance(value, Sequence) else ()
            for number, (part, member) in enumerate(zip(kind, members, strict=True)):
                yield from self.flat(f"{name}.{number}", part, member, maps, has_maps=has_maps)
        elif kind == CONSTANT:
            return
        elif isinstance(kind, str) and kind.startswith(DESCRIPTOR):
            yield from self._descriptor(name, value, next(maps) if has_maps else None)
        else:
            yield name, self._plain(name, value)

    def _descriptor(self, name: str, value: Any, metadata: Mapping[str, Any] | None) -> Iterator[tuple[str, Any]]:
        """A tensor descriptor that the host has made."""
        described = self.array(value.base)
        if described is None:
            raise InputError(f"{name}: the base of the descriptor is no array")
        shape, strides = [int(size) for size in value.shape], [int(stride) for stride in value.strides]
        sizes: list[tuple[str, Any]] = [(f"{name}.shape.{axis}", {"number": size}) for axis, size in enumerate(shape)]
        sizes += [(f"{name}.stride.{axis}", {"number": stride}) for axis, stride in enumerate(strides)]
        if metadata is None:
            flags = ((f"{name}.padding", getattr(value, "padding", "zero") == "nan"), (f"{name}.round", False))
            yield name, {"array": described}
            yield from sizes
            yield from ((flag, {"number": int(word)}) for flag, word in flags)
            yield from sizes
            return
        if metadata.get("fp4_padded") or metadata.get("is_im2col"):
            raise InputError(f"{name}: descriptors for im2col and of 4-bit elements are not known here")
        yield name, {"map": {
            "array": described, "shape": shape, "strides": strides, "element_bytes": int(metadata["elem_size"]),
            "box": [int(size) for size in metadata["block_size"]], "swizzle": SWIZZLES[int(metadata["swizzle"])],
        }}  # fmt: skip
        yield from sizes

    def _plain(self, name: str, value: Any) -> Any:
        """A number or an array as JSON."""
        if value is None:
            return {"number": 0}
        if isinstance(value, bool | int | float):
            return {"number": value}
        array = self.array(value)
        if array is not None:
            return {"array": array}
        item = getattr(value, "item", None) or getattr(value, "__index__", None)
        number = item() if callable(item) else None
        if not isinstance(number, bool | int | float):
            raise InputError(f"{name}: a {type(value).__name__} is neither a number nor an array")
        return {"number": number}

    def array(self, value: object) -> dict[str, Any] | None:
        """An array as JSON; None for a value that is no array."""
        described = getattr(value, "facts", None)  # of what stands in for an array while Triton compiles
        known = described if isinstance(described, ArrayFacts) else None
        facts = self._fakes.get(id(value)) or known or array_facts(value)
        if facts is None:
            return None
        if facts.address is None:
            facts = self._placed(facts)
            self._fakes[id(value)] = facts
            self._kept.append(value)  # so that its identity stays its own
        return {
            "shape": facts.shape, "strides": facts.strides, "element_bytes": facts.element_bytes,
            "address": facts.address, "memory": facts.memory, "init": facts.init,
            "contents": None if facts.contents is None else facts.contents.hex(),
        }  # fmt: skip

    def _placed(self, facts: ArrayFacts) -> ArrayFacts:
        """A fake at a place of its own."""
        first = self._next
        self._next += (facts.bytes // ALIGNED + 2) * ALIGNED
        return replace(facts, address=first + facts.below, memory=(first, first + facts.bytes))


def _value(data: Mapping[str, Any]) -> object:
    if "number" in data:
        return data["number"]
    if "array" in data:
        return _facts(data["array"])
    described = data["map"]
    view = replace(
        _facts(described["array"]), shape=tuple(described["shape"]), strides=tuple(described["strides"]),
        element_bytes=described["element_bytes"],
    )  # fmt: skip
    return TiledMap(view, tuple(described["box"]), described["swizzle"])


def _facts(data: Mapping[str, Any]) -> ArrayFacts:
    memory = data.get("memory")
    return ArrayFacts(
        tuple(data["shape"]), tuple(data["strides"]), data["element_bytes"], data.get("address"),
        (memory[0], memory[1]) if memory else None, data.get("init"),
        None if data.get("contents") is None else bytes.fromhex(data["contents"]),
    )  # fmt: skip
