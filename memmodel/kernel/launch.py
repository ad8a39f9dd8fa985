"""What a kernel is launched with: grid, parameters, buffers, tensor maps.

In: JSON, complete. Out: `Launch`, and its schema. `kernel.question` completes what is given only in part.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from memmodel.errors import InputError
from memmodel.memory.tensormap import MAX_DIMENSIONS
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.recovery.every_error import MOST_ERRORS
from memmodel.recovery.json_places import JsonPlaces
from memmodel.recovery.json_values import json_values
from memmodel.source import Source, read_bytes

MAX_THREADS = 1024
MAX_BYTES = 1 << 40
MAX_TEXT = 16_000_000
KINDS = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "i32": 4, "s32": 4, "b32": 4, "u64": 8, "i64": 8, "s64": 8,
         "b64": 8, "fp32": 4, "fp64": 8, "fp16": 2, "bf16": 2}  # fmt: skip


def _number(value: object) -> object:
    """A number may be written in hexadecimal, as a string."""
    if isinstance(value, str):
        return int(value, 0)
    return value


ARGUMENTS = {
    "globalAddress": "address", "globalDim": "dims", "globalStrides": "strides_bytes", "boxDim": "box",
    "elementStrides": "element_strides",
}  # fmt: skip
"""Arguments of cuTensorMapEncodeTiled, and what a launch description calls them."""

FURTHER_ARGUMENTS = ("tensorDataType", "tensorRank", "interleave", "l2Promotion", "oobFill")
"""Arguments that it takes, and has no names of its own for."""

SWIZZLES = {"none": 0, "32B": 32, "64B": 64, "96B": 96, "128B": 128}
"""The rows of a swizzle in bytes, by its name, which may follow CU_TENSOR_MAP_SWIZZLE_."""


def _swizzle(value: object) -> object:
    """The bytes of a swizzle, which may be named. Raises ValueError: a code of CUDA, such as 3, is neither."""
    known = {name.lower(): size for name, size in SWIZZLES.items()}
    named = isinstance(value, str)
    size = known.get(str(value).lower().removeprefix("cu_tensor_map_swizzle_")) if named else value
    if isinstance(size, bool) or size not in SWIZZLES.values():
        sizes, names = (", ".join(map(str, words)) for words in (SWIZZLES.values(), SWIZZLES))
        raise ValueError(f"{value!r} is no swizzle: one has {sizes} bytes, or is called {names}")
    return size


Swizzle = Annotated[
    int, BeforeValidator(_swizzle), WithJsonSchema({"anyOf": [{"enum": list(SWIZZLES.values())}, {"type": "string"}]})
]
Address = Annotated[
    int,
    BeforeValidator(_number),
    Field(ge=0, lt=1 << 64),
    WithJsonSchema({"anyOf": [
        {"type": "integer", "minimum": 0, "exclusiveMaximum": 1 << 64},
        {"type": "string", "pattern": "^(0[xX][0-9a-fA-F_]+|[0-9_]+)$"},
    ]}),
]  # fmt: skip
Corner = Annotated[int, Field(ge=-(1 << 15), lt=1 << 15)]
Extent = Annotated[int, Field(ge=1, le=1 << 31)]
Dim3 = tuple[Extent, Extent, Extent]
MOST_CTAS = ((1 << 31) - 1, 65_535, 65_535)
"""The largest grid in each dimension, on every target ("Technical Specifications per Compute Capability")."""
MOST_THREADS = (1024, 1024, 64)
MOST_IN_CLUSTER = 16
"""CTAs of a cluster; above 8, a kernel asks for it, and the target has to have it."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _check_contents(buffer: Buffer | Param) -> None:
    """Check that a buffer lies in memory, and its first contents are given in one way and fit. Raises ValueError."""
    if (buffer.address or 0) + (buffer.bytes or 0) > 1 << 64:
        raise ValueError("the buffer ends beyond the last address, 2^64 - 1")
    if sum(contents is not None for contents in (buffer.init, buffer.hex, buffer.file)) > 1:
        raise ValueError("the contents of a buffer are given by init, hex or file, and not by two of them")
    if buffer.hex is not None and len(bytes.fromhex(buffer.hex)) > (buffer.bytes or 0):
        raise ValueError(f"the contents in hex are longer than the {buffer.bytes:,} bytes of the buffer")


class Buffer(_Part):
    """Global memory. `init`: zero, or iota (32-bit word k holds k); `hex`: its first bytes; `file`: a file with them,
    seen from the launch description. What is not given is unknown.

    `multimem`: these are multimem addresses, which point to these buffers or variables; none of them, if the launch
    does not touch what they point to by other addresses.
    """

    name: str = ""
    address: Address
    bytes: Annotated[int, Field(ge=1, le=MAX_BYTES)]
    init: Literal["zero", "iota"] | None = None
    hex: str | None = None
    file: str | None = None
    multimem: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Buffer:
        _check_contents(self)
        return self


class Param(_Part):
    """A parameter: a pointer with its buffer, a value, or a structure: its raw bytes in `hex`, or its `fields`.

    A `value` of null, and what neither `hex` nor `fields` say, may be anything.
    """

    name: str = ""
    type: str
    address: Address | None = None
    bytes: Annotated[int, Field(ge=1, le=MAX_BYTES)] | None = None
    init: Literal["zero", "iota"] | None = None
    value: int | float | None = None
    hex: str | None = None
    file: str | None = None
    multimem: tuple[str, ...] | None = None
    fields: tuple[FieldOfStruct, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Param:
        if self.fields and (self.type != "bytes" or self.hex is not None):
            raise ValueError("fields are those of bytes, and stand in place of hex")
        if self.type == "ptr":
            if self.address is None or self.bytes is None:
                raise ValueError("a ptr has an address and the bytes of its buffer")
            _check_contents(self)
        elif self.file is not None:
            raise ValueError("a file has the contents of a buffer, and this parameter is no ptr")
        elif self.type == "bytes":
            bytes.fromhex(self.hex or "")
        elif self.type not in KINDS:
            raise ValueError(f"{self.type} is no type of a parameter: ptr, bytes, {', '.join(KINDS)}")
        elif isinstance(self.value, float) and not self.type.startswith(("fp", "bf")):
            raise ValueError(f"a {self.type} is a whole number")
        return self


class FieldOfStruct(Param):
    """A member of a structure, `offset` bytes from its beginning."""

    offset: Annotated[int, Field(ge=0, lt=1 << 16)]


Part = TypeVar("Part", Buffer, Param)


class Im2colSpec(_Part):
    """What a tensor map for im2col says in place of a box. The corners of its bounding box are W, H, D, as far as the
    tensor has them: from its first element, and from its last one.
    """

    pixels: Annotated[int, Field(ge=1, le=1 << 10)]
    channels: Annotated[int, Field(ge=1, le=1 << 8)]
    lower: tuple[Corner, ...]
    upper: tuple[Corner, ...]


class TensorMapSpec(_Part):
    """What the 128 opaque bytes at `offset` of a parameter describe. `dims` from the innermost.

    `param`: a parameter that holds it or points to it, a variable of the module, or a buffer. A tensor map has a `box`,
    or `im2col`. `element_strides`: how many elements a copy steps on in each dimension, 1 where it is not given.
    `swizzle`: the bytes of its rows. `packed`: the type of elements smaller than a byte, whose `element_bytes` are 1;
    dims and box count elements.
    """

    param: str
    offset: Annotated[int, Field(ge=0)] = 0
    address: Address
    element_bytes: Annotated[int, Field(ge=1, le=16)]
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[Annotated[int, Field(ge=1, lt=1 << 16)], ...] = ()
    swizzle: Swizzle = 0
    element_strides: tuple[Annotated[int, Field(ge=1, le=8)], ...] = ()
    im2col: Im2colSpec | None = None
    packed: Literal["b4x16", "b4x16_p64", "b6x16_p32"] | None = None

    @model_validator(mode="after")
    def _fits(self) -> TensorMapSpec:
        rank = len(self.dims)
        if not 1 <= rank <= MAX_DIMENSIONS or any(size < 1 for size in self.dims):
            raise ValueError(f"a tensor has 1 to {MAX_DIMENSIONS} dimensions, none of them empty")
        if len(self.strides_bytes) < rank - 1:
            raise ValueError(f"a tensor of {rank} dimensions has {rank - 1} strides, not {len(self.strides_bytes)}")
        if len(self.box) != (rank if self.im2col is None else 0):
            raise ValueError(f"a box of a tensor of {rank} dimensions has as many, and a map for im2col has none")
        if len(self.element_strides) not in (0, rank):
            raise ValueError(
                f"a tensor of {rank} dimensions has {rank} element strides, not {len(self.element_strides)}"
            )
        if self.packed is not None and self.element_bytes != 1:
            raise ValueError(f"the element_bytes of {self.packed} are 1, and not {self.element_bytes}")
        corners = () if self.im2col is None else (self.im2col.lower, self.im2col.upper)
        if any(not 1 <= len(corner) == rank - 2 for corner in corners):
            raise ValueError("a tensor for im2col has 3 to 5 dimensions, and its corners two fewer")
        return self


@dataclass(frozen=True, slots=True)
class LeftContents:
    """What launches before leave in global memory: bytes by their address, with 1 for each that is known. No more is
    known than this, of variables of the module either. `module`: the number of the module among those of the list;
    `loaded`: its variables are as when it was loaded, since no launch before was of it and each was followed.
    """

    pieces: tuple[tuple[int, bytes, bytes], ...] = ()
    module: int = 0
    loaded: bool = False


class Launch(_Part):
    """One launch of one entry. `nan`: false where no floating-point number is NaN, of the data or what comes of it.

    `programmatic`: in a list of launches, it may begin before the one before it has ended (programmatic stream
    serialization). `module`: in a list of launches, the file of its kernel, seen from the description.
    """

    kernel: str | None = None
    module: str | None = None
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    dynamic_shared: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    params: tuple[Param, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    tensormaps: tuple[TensorMapSpec, ...] = ()
    nan: bool = True
    source: str | None = None
    target: str | None = None
    programmatic: bool = False
    _file: str = PrivateAttr("<launch>")
    _assumed: dict[str, str] = PrivateAttr(default_factory=dict)
    _guessed: dict[str, str] = PrivateAttr(default_factory=dict)
    _left: LeftContents | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _fits(self) -> Launch:
        if self.threads > MAX_THREADS:
            raise ValueError(f"a CTA has at most {MAX_THREADS} threads, not {self.threads}")
        for key, extents, most in (("grid", self.grid, MOST_CTAS), ("block", self.block, MOST_THREADS)):
            if any(extent > limit for extent, limit in zip(extents, most, strict=True)):
                raise ValueError(f"the {key} {list(extents)} is larger than {list(most)}, the largest that there is")
        if prod(self.cluster) > MOST_IN_CLUSTER:
            raise ValueError(f"a cluster has at most {MOST_IN_CLUSTER} CTAs, not {prod(self.cluster)}")
        if any(g % c for g, c in zip(self.grid, self.cluster, strict=True)):
            raise ValueError(f"the grid {list(self.grid)} is no multiple of the cluster {list(self.cluster)}")
        return self

    def wrong(self, message: str, hint: str | None = None) -> InputError:
        """What is said of a launch that cannot be used, with its file."""
        return InputError(f"{self._file}: {message}", hint=hint)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def all_buffers(self) -> tuple[Buffer, ...]:
        """The buffers of pointers, and the others."""
        members = (member for param in self.params for member in (param, *param.fields))
        pointers = (param for param in members if param.type == "ptr")
        pointed = (Buffer(**{name: getattr(param, name) for name in Buffer.model_fields}) for param in pointers)
        return (*pointed, *self.buffers)

    @property
    def assumptions(self) -> dict[str, str]:
        """What the launch says that a verdict rests on, with what it takes to drop it."""
        filled = (buffer for buffer in self.all_buffers if buffer.init or buffer.hex or buffer.file)
        names = ", ".join(buffer.name or hex(buffer.address) for buffer in filled)
        contents = f"the contents that the launch gives to {names}"
        assumed = {contents: "a verdict for other contents as well"} if names else {}
        assumed |= {} if self.nan else {"no floating-point number is NaN": '"nan": true in the launch'}
        return assumed | self._assumed

    @property
    def guessed(self) -> dict[str, str]:
        """What nobody has given and the run needs: what was taken for it, with how to give it. Nothing is clean that
        rests on it.
        """
        return self._guessed

    @property
    def left(self) -> LeftContents | None:
        """What the launches before it leave; None: it is the only one."""
        return self._left

    def completed(self, assumed: dict[str, str], guessed: dict[str, str], left: LeftContents | None = None) -> Launch:
        """The launch, which was given in part, with what was assumed or guessed for the rest, and what is left by the
        launches before it.
        """
        launch = self.model_copy()
        launch._assumed, launch._guessed, launch._left = assumed, guessed, left
        return launch


_HALF, _WHOLE = "half of a character is escaped in it", "drop the \\ud800 or its like"


def read_launch(path: str | os.PathLike[str]) -> Launch:
    """A complete launch description from a file. Raises InputError."""
    name = os.fspath(path)
    return placed_launch(read_json(path), name)


def placed_launch(data: Any, name: str) -> Launch:
    """A launch description, whose files lie below the folder of `name`. Raises InputError."""
    return _beside(parse_launch(data, name), os.path.dirname(name))


def read_json(path: str | os.PathLike[str]) -> Any:
    """The values in a launch description. Raises InputError."""
    name = os.fspath(path)
    try:
        text = read_bytes(path, MAX_TEXT)
        if len(text) > MAX_TEXT:
            raise InputError(f"{name}: larger than {MAX_TEXT:,} bytes")
        data: Any = json_values(name, text)
        if b"\\ud" in text.lower():
            json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: {_HALF}", hint=_WHOLE) from error
    return data


def _beside(launch: Launch, folder: str) -> Launch:
    """The files of a launch are seen from its description, and stay below its folder. Raises InputError."""

    def placed(part: Part) -> Part:
        if part.file is None:
            return part
        path = below(folder, part.file)
        if path is None:
            hint = "copy it there, or give the bytes as hex"
            raise launch.wrong(
                f"{part.file!r} is elsewhere: contents of buffers stay below the folder of this file", hint
            )
        return part.model_copy(update={"file": path})

    parts = {"params": tuple(map(placed, launch.params)), "buffers": tuple(map(placed, launch.buffers))}
    return launch.model_copy(update=parts)


def below(folder: str, file: str) -> str | None:
    """The path of a file that a description in `folder` names; None if it does not lie below that folder."""
    path, home = os.path.join(folder, file), os.path.realpath(folder)
    return None if "\0" in path or os.path.commonpath((os.path.realpath(path), home)) != home else path


def parse_launch(data: Any, name: str = "<launch>") -> Launch:
    """A launch description from JSON values."""
    try:
        launch = Launch.model_validate(data)
        launch._file = name
        return launch
    except UnicodeError as error:
        raise InputError(f"{name}: {_HALF}", hint=_WHOLE) from error
    except ValidationError as error:
        first, *more = _all_errors(error, name)
        raise first.followed_by(more[: MOST_ERRORS - 1], cut=len(more) >= MOST_ERRORS) from error


def _all_errors(error: ValidationError, name: str) -> list[InputError]:
    """What is wrong with a launch description, each at its place in the file, if that has one description."""
    places = _places(name)
    errors: dict[object, InputError] = {}
    for wrong in error.errors(include_input=False):
        path = wrong["loc"]
        where = ".".join(str(part) for part in path)
        message = f"{where + ': ' if where else ''}{wrong['msg'].removeprefix('Value error, ')}"
        known = None
        if places is not None:
            known = places.key(path) if wrong["type"] in ("extra_forbidden", "missing") else places.value(path)
        shown = InputError(message, known) if known is not None else InputError(f"{name}: {message}")
        errors.setdefault(known or where, shown)  # of what may be one thing or another, neither is right
    return list(errors.values())


def _places(name: str) -> JsonPlaces | None:
    """The places in the file of a launch description; None if it is no file."""
    try:
        source = Source(name, read_bytes(name, MAX_TEXT).decode("utf-8-sig"))
        return JsonPlaces(source) if isinstance(json_values(name, source.text), dict) else None
    except (InputError, UnicodeDecodeError):
        return None


def check_directives(entry: PtxFunction, launch: Launch) -> None:
    """Raise InputError where a launch contradicts what the entry declares ("Performance-Tuning Directives: .reqntid,
    .maxntid", "Cluster Dimension Directives"): such a launch fails.
    """
    directives, size = entry.directives, launch.cluster
    wanted = directives.get("reqntid")
    if wanted and extents(wanted) != launch.block:
        _contradicts(entry, "reqntid", wanted, "block", launch.block)
    most = directives.get("maxntid")
    if most and launch.threads > prod(most):
        _contradicts(entry, "maxntid", most, "block", launch.block)
    cluster = directives.get("reqnctapercluster")
    if cluster and extents(cluster) != size:
        _contradicts(entry, "reqnctapercluster", cluster, "cluster", size)
    rank = directives.get("maxclusterrank")
    if rank and prod(size) > rank[0]:
        _contradicts(entry, "maxclusterrank", rank, "cluster", size)


def extents(numbers: Sequence[int]) -> tuple[int, ...]:
    """Three extents; those that are left out are 1."""
    return (*numbers, 1, 1)[:3]


def _contradicts(entry: PtxFunction, word: str, declared: tuple[int, ...], key: str, extents: tuple[int, ...]) -> None:
    directive, launched = ", ".join(map(str, declared)), list(extents)
    raise InputError(
        f"{entry.name} declares .{word} {directive}, and the {key} of the launch is {launched}",
        entry.span,
        f"launch it with a {key} that the directive allows, or change the directive",
    )


def schema() -> dict[str, Any]:
    """The JSON schema of a launch description, or of a list of them. What is left out, or null, is completed
    (docs/kernels.md).
    """
    values = Launch.model_json_schema()
    known, properties = values.pop("$defs"), values["properties"]
    sizes = [{"type": "integer", "minimum": 1}, {"type": "array", "minItems": 1, "maxItems": 3}]
    properties |= {key: {"title": key.capitalize(), "anyOf": sizes} for key in ("grid", "block", "cluster")}
    by_name = {"type": "object", "description": "values, or parameters, by their names"}
    properties["params"] = {"title": "Params", "anyOf": [properties["params"], by_name]}
    known["Param"]["properties"]["type"] |= {"default": "as the entry says"}
    tensor = known["TensorMapSpec"]["properties"]
    tensor["param"] = {"type": ["string", "integer"], "description": "a name, or the number of a parameter"}
    tensor["address"] = {"type": ["string", "integer"], "description": "an address, or the name of a buffer"}
    tensor |= {called: tensor[name] for called, name in ARGUMENTS.items()} | {key: {} for key in FURTHER_ARGUMENTS}
    for part in (values, known["Param"], known["FieldOfStruct"], known["TensorMapSpec"]):
        part.pop("required", None)
        part["properties"] = {name: {"anyOf": [kind, {"type": "null"}]} for name, kind in part["properties"].items()}
    known["Launch"] = values
    each = {"$ref": "#/$defs/Launch"}
    stream = {"type": "array", "minItems": 1, "items": each}
    listed = {"type": "object", "required": ["launches"], "additionalProperties": False,
              "properties": {"launches": stream}}  # fmt: skip
    return {"$defs": known, "anyOf": [each, stream, listed]}
