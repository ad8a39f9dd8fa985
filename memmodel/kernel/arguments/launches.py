"""A launch from the arguments of a call.

In: the entry, the grid, the arguments in its order. Out: `Launch`. Settled here: where arrays lie. Those that share
memory lie together as they do in the program, and everything else lies apart, at addresses that are the same in every
run, so that equal calls are equal launches. Contents are unknown unless the caller gives them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.arguments.arrays import ArrayFacts, array_facts
from memmodel.kernel.arguments.kinds import Struct, TiledMap
from memmodel.kernel.launch import Launch, parse_launch
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.ptx.module.syntax import ModuleVariable, PtxFunction

Extents = int | Sequence[int]

APART, KEPT = 1 << 32, 4096
"""Distance between arrays that share no memory; the first keeps its address modulo this number (its alignment)."""

ADDRESS_BYTES = 8
WIDE = ("u64", "b64", "s64")
"""Types of parameters that hold an address."""


def launch_of(
    entry: PtxFunction,
    grid: Extents,
    args: Sequence[object] | Mapping[str, object],
    *,
    block: Extents | None = None,
    cluster: Extents | None = None,
    dynamic_shared: int = 0,
    names: Sequence[str] = (),
    nan: bool = True,
) -> Launch:
    """A launch of an entry. `args`: in the order of its parameters, or by their names. `names`: what reports call them;
    without it the names of the PTX. Raises InputError.
    """
    called = KernelCall(entry, grid, args, block, cluster, dynamic_shared, tuple(names))
    return launches_of([called], nan=nan)[0]


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of an entry: `args` and the rest as in `launch_of`."""

    entry: PtxFunction
    grid: Extents
    args: Sequence[object] | Mapping[str, object]
    block: Extents | None = None
    cluster: Extents | None = None
    dynamic_shared: int = 0
    names: tuple[str, ...] = ()
    programmatic: bool = False

    def named(self) -> list[tuple[ModuleVariable, str, object]]:
        """Its parameters, what reports call them, and what is handed over. Raises InputError."""
        names, params = self.names, self.entry.params
        called = (names[at] if at < len(names) else param.name for at, param in enumerate(params))
        return list(zip(params, called, _in_order(self.entry, self.args), strict=True))


def launches_of(calls: Sequence[KernelCall], *, nan: bool = True) -> list[Launch]:
    """The launches of several calls. What shares memory in the program does so in all of them. Raises InputError."""
    places = _Places()
    handed = [call.named() for call in calls]
    for _, name, value in (argument for arguments in handed for argument in arguments):
        places.see(name, value)
    places.settle()
    described = []
    for arguments in handed:
        params, maps = list[dict[str, Any]](), list[dict[str, Any]]()
        for param, name, value in arguments:
            values, found = places.param(param, name, value)
            params.append({"name": name, **values})
            maps += found
        described.append((params, maps))
    return [_launch(call, *parts, places.buffers, nan=nan) for call, parts in zip(calls, described, strict=True)]


def _launch(
    call: KernelCall,
    params: list[dict[str, Any]],
    maps: list[dict[str, Any]],
    buffers: list[dict[str, Any]],
    *,
    nan: bool,
) -> Launch:
    declared = (*call.entry.directives.get("reqnctapercluster", (1,)), 1, 1)[:3]
    data: dict[str, Any] = {
        "kernel": call.entry.name,
        "grid": extents(call.grid, "grid"),
        "block": _block(call.entry, call.block),
        "cluster": list(declared) if call.cluster is None else extents(call.cluster, "cluster"),
        "dynamic_shared": call.dynamic_shared,
        "params": params,
        "buffers": buffers,
        "tensormaps": maps,
        "nan": nan,
        "programmatic": call.programmatic,
    }
    return parse_launch(data, f"the call of {call.entry.name}")


def extents(given: Extents, key: str) -> list[int]:
    """A grid, a block or a cluster as three numbers. Raises InputError."""
    try:
        sizes = [int(given)] if isinstance(given, int) else [int(size) for size in given]
    except (TypeError, ValueError):
        sizes = []
    if not 1 <= len(sizes) <= 3:
        raise InputError(f"{key}: {given!r} is not 1 to 3 numbers")
    return [*sizes, 1, 1][:3]


def _block(entry: PtxFunction, block: Extents | None) -> list[int]:
    if block is not None:
        return extents(block, "block")
    declared = entry.directives.get("reqntid")
    if not declared:
        raise InputError(f"{entry.name} does not say its block (.reqntid)", entry.span, "block=128 says it")
    return [*declared, 1, 1][:3]


def _in_order(entry: PtxFunction, args: Sequence[object] | Mapping[str, object]) -> list[object]:
    signature = ", ".join(f"{param.name} ({_kind(param)})" for param in entry.params) or "none"
    if isinstance(args, Mapping):
        names = [param.name for param in entry.params]
        if set(args) != set(names):
            raise InputError(f"args names {', '.join(map(str, args))}", entry.span, f"its parameters: {signature}")
        return [args[name] for name in names]
    if len(args) != len(entry.params):
        number = len(entry.params)
        what = f"{entry.name} has {number} parameter{'' if number == 1 else 's'}, and args has {len(args)}"
        raise InputError(what, entry.span, f"its parameters: {signature}")
    return list(args)


def _kind(param: ModuleVariable) -> str:
    if param.pointer:
        return "pointer"
    return f"{param.size} bytes" if param.type == "b8" and param.size != 1 else param.type


def _holds_address(param: ModuleVariable) -> bool:
    """True for a parameter of eight bytes, whatever its type: a structure may be nothing but a pointer."""
    return param.type in WIDE or (param.type == "b8" and param.size == ADDRESS_BYTES)


def _arrays(value: object) -> list[object]:
    """The arrays of an argument."""
    if isinstance(value, TiledMap):
        return [value.array]
    if isinstance(value, Struct):
        return [array for part in value.fields.values() for array in _arrays(part)]
    return [value]


class _Places:
    """Where the arrays of a call lie."""

    def __init__(self) -> None:
        self.buffers: list[dict[str, Any]] = []
        self._spans: list[tuple[int, int, str, ArrayFacts]] = []
        self._facts: dict[int, ArrayFacts | None] = {}
        self._fakes: dict[int, int] = {}
        self._regions: list[tuple[int, int, int]] = []
        self._next = APART
        self._values: list[object] = []

    def facts(self, value: object) -> ArrayFacts | None:
        """What is known of an array; None if the value is no array."""
        if id(value) not in self._facts:
            plain = value is None or isinstance(value, bool | int | float | str | bytes | bytearray | Mapping)
            self._facts[id(value)] = None if plain else array_facts(value)
            self._values.append(value)  # so that its identity stays its own
        return self._facts[id(value)]

    def see(self, name: str, value: object) -> None:
        """Note the arrays of an argument."""
        for number, array in enumerate(_arrays(value)):
            facts = self.facts(array)
            if facts is None or not facts.bytes:
                continue
            called = name if not number else f"{name}_{number}"
            if facts.address is None:
                if id(array) not in self._fakes:
                    self._fakes[id(array)] = self._buffer(called, facts.bytes, 0, [facts])
            else:
                self._spans.append((*facts.span, called, facts))

    def settle(self) -> None:
        """Arrays that share memory become one buffer."""
        together: list[list[tuple[int, int, str, ArrayFacts]]] = []
        end = -1
        for span in sorted(self._spans, key=lambda span: span[:2]):
            if span[0] < end:
                together[-1].append(span)
            else:
                together.append([span])
            end = max(end, span[1])
        numbers = {id(facts): number for number, (*_, facts) in enumerate(self._spans)}
        for group in sorted(together, key=lambda group: min(numbers[id(facts)] for *_, facts in group)):
            first, last = group[0][0], max(span[1] for span in group)
            name = min(group, key=lambda span: numbers[id(span[3])])[2]
            start = self._buffer(name, last - first, first % KEPT, [facts for *_, facts in group])
            self._regions.append((first, last, start))

    def _buffer(self, name: str, size: int, offset: int, arrays: list[ArrayFacts]) -> int:
        """The address of a new buffer."""
        address = self._next + offset
        self._next += -(-(offset + size) // APART) * APART
        buffer: dict[str, Any] = {"name": self._own(name), "address": address, "bytes": size}
        for facts in arrays:
            if facts.contents is None and facts.init is None:
                continue
            if len(arrays) > 1 and any(other.span != facts.span for other in arrays):
                raise InputError(f"{name}: contents of an array that shares memory with another cannot be given")
            if facts.contents is not None:
                buffer["hex"] = facts.contents.hex()
            else:
                buffer["init"] = facts.init
        self.buffers.append(buffer)
        return address

    def _own(self, name: str) -> str:
        """A name that no other buffer has."""
        taken = {buffer["name"] for buffer in self.buffers}
        return next(each for each in (name, *(f"{name}_{number}" for number in range(1, 1 << 16))) if each not in taken)

    def address(self, value: object, facts: ArrayFacts) -> int:
        """Where the first element of an array lies. An array without elements has an address that nothing is at."""
        if not facts.bytes:
            return 0
        if facts.address is None:
            return self._fakes[id(value)] + facts.below
        return self.moved(facts.address)

    def moved(self, address: int) -> int:
        """An address of the program, where it lies in the launch."""
        return next((start + address - first for first, end, start in self._regions if first <= address < end), address)

    def param(self, param: ModuleVariable, name: str, value: object) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """A parameter without its name, and the tensor maps in it. Raises InputError for what it cannot be."""
        if isinstance(value, Mapping):
            return dict(value), []
        if isinstance(value, TiledMap):
            return self._map_param(param, name, value)
        if isinstance(value, Struct):
            return self._struct(param, name, value)
        if isinstance(value, bytes | bytearray | ctypes.Structure):
            return {"type": "bytes", "hex": bytes(value).hex()}, []
        facts = self.facts(value)
        if facts is not None and (facts.shape or _holds_address(param)):
            if not _holds_address(param):
                raise InputError(f"{name}: an array is handed to a parameter of type {_kind(param)}", param.span)
            return {"type": "u64", "value": self.address(value, facts)}, []
        return self._scalar(param, name, value), []

    def _scalar(self, param: ModuleVariable, name: str, value: object) -> dict[str, Any]:
        """A number for a parameter of its width. Raises InputError."""
        number: Any = value
        if value is None:
            number = 0
        elif not isinstance(value, bool | int | float):
            item = getattr(value, "item", None)
            number = item() if callable(item) else getattr(value, "value", None)
        letter, width = param.type[:1], param.type[1:]
        if not isinstance(number, bool | int | float) or letter not in "fusb" or not width.isdecimal():
            hint = "numbers, arrays, FakeArray, TiledMap, Struct, bytes, or an entry of params of a launch description"
            raise InputError(f"{name}: a {type(value).__name__} cannot be handed to a {_kind(param)}", param.span, hint)
        bits = int(width)
        if isinstance(number, float) or letter == "f":
            return {"type": f"fp{bits}", "value": float(number)}
        if not -(1 << bits - 1) <= number < 1 << bits:
            raise InputError(f"{name}: {number:,} does not fit into a parameter of type {param.type}", param.span)
        number = self.moved(number) if bits == 64 else int(number)
        return {"type": f"{'s' if number < 0 else 'u'}{bits}", "value": number}

    def _map_param(
        self, param: ModuleVariable, name: str, value: TiledMap
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if param.type == "b8":
            zeros = {"type": "bytes", "hex": "00" * TENSORMAP_BYTES}
            return zeros, [self._map(name, 0, value)]
        facts = ArrayFacts((TENSORMAP_BYTES,), (1,), 1)
        address = self._buffer(f"{name}_map", TENSORMAP_BYTES, 0, [facts])
        return {"type": "u64", "value": address}, [self._map(self.buffers[-1]["name"], 0, value)]

    def _struct(self, param: ModuleVariable, name: str, value: Struct) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        data, maps = bytearray(value.data), []
        for offset, part in sorted(value.fields.items()):
            if isinstance(part, TiledMap):
                maps.append(self._map(name, offset, part))
                end = offset + TENSORMAP_BYTES
            else:
                facts = self.facts(part)
                if facts is None:
                    raise InputError(f"{name}: at offset {offset} stands neither an array nor a tensor map")
                end = offset + 8
                data += bytes(max(0, offset - len(data)))
                data[offset:end] = self.address(part, facts).to_bytes(8, "little")
            data += bytes(max(0, end - len(data)))
        if param.size is not None and len(data) > param.size:
            raise InputError(f"{name}: {len(data)} bytes for a structure of {param.size}", param.span)
        return {"type": "bytes", "hex": bytes(data).hex()}, maps

    def _map(self, name: str, offset: int, value: TiledMap) -> dict[str, Any]:
        """The entry of `tensormaps`, whose dimensions are innermost first."""
        facts = self.facts(value.array)
        if facts is None:
            raise InputError(f"{name}: a tensor map is of an array, and {type(value.array).__name__} is none")
        if facts.strides and facts.strides[-1] != 1:
            raise InputError(f"{name}: the innermost stride of the array of a tensor map is {facts.strides[-1]}, not 1")
        return {
            "param": name,
            "offset": offset,
            "address": self.address(value.array, facts),
            "element_bytes": facts.element_bytes,
            "dims": list(reversed(facts.shape)),
            "strides_bytes": [stride * facts.element_bytes for stride in reversed(facts.strides[:-1])],
            "box": list(reversed(value.box)),
            "swizzle": value.swizzle,
            "element_strides": list(reversed(value.element_strides)),
            "packed": value.packed,
        }
