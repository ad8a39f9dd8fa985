"""Tensor maps as they are made: by the arguments of cuTensorMapEncodeTiled, or by a word for each.

In: JSON values; words. Out: the values of a `TensorMapSpec`, whose address may still be missing; its extent in bytes.
Source: CUDA Driver API, "Tensor Map Object Management".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memmodel.errors import InputError, suggestion
from memmodel.kernel.launch import ARGUMENTS

TYPE_PREFIX, INTERLEAVE_PREFIX = "CU_TENSOR_MAP_DATA_TYPE_", "CU_TENSOR_MAP_INTERLEAVE_"

TYPES: dict[str, tuple[int, str | None]] = {
    "UINT8": (1, None),
    "UINT16": (2, None),
    "UINT32": (4, None),
    "INT32": (4, None),
    "UINT64": (8, None),
    "INT64": (8, None),
    "FLOAT16": (2, None),
    "FLOAT32": (4, None),
    "FLOAT64": (8, None),
    "BFLOAT16": (2, None),
    "FLOAT32_FTZ": (4, None),
    "TFLOAT32": (4, None),
    "TFLOAT32_FTZ": (4, None),
    "16U4_ALIGN8B": (1, "b4x16"),
    "16U4_ALIGN16B": (1, "b4x16_p64"),
    "16U6_ALIGN16B": (1, "b6x16_p32"),
}
"""Bytes of an element by the name of its type, and the name that PTX has for a type below a byte."""

SHORT = {
    "BF16": "BFLOAT16", "F16": "FLOAT16", "FP16": "FLOAT16", "F32": "FLOAT32", "FP32": "FLOAT32", "F64": "FLOAT64",
    "FP64": "FLOAT64", "TF32": "TFLOAT32", "U8": "UINT8", "U16": "UINT16", "U32": "UINT32", "U64": "UINT64",
    "S32": "INT32", "S64": "INT64",
}  # fmt: skip
"""Types as PTX and programs write them."""

IN_WORDS = "bf16:384x256:64x64:128B"
"""A map in words: the type of its elements, the sizes of the tensor and of the box, innermost first, the swizzle."""

WITHOUT_EFFECT = ("l2Promotion", "oobFill")
"""Arguments that do not change which bytes are touched."""


def from_arguments(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The values of a tensor map, whichever names they have. `name`: of the launch. Raises InputError."""
    spec = {ARGUMENTS.get(key, key): value for key, value in given.items() if key not in WITHOUT_EFFECT}
    kind = spec.pop("tensorDataType", None)
    if kind is not None:
        short = str(kind).upper().removeprefix(TYPE_PREFIX)
        short = SHORT.get(short, short)
        if short not in TYPES:
            raise InputError(f"{name}: tensorDataType {kind} is not known", hint=suggestion(short, list(TYPES)))
        spec["element_bytes"], packed = TYPES[short]
        if packed is not None:
            spec["packed"] = packed
    interleave = str(spec.pop("interleave", "NONE")).upper().removeprefix(INTERLEAVE_PREFIX)
    if interleave not in ("NONE", "0"):
        raise InputError(f"{name}: interleaved tensor maps are not known", hint="CU_TENSOR_MAP_INTERLEAVE_NONE")
    rank = spec.pop("tensorRank", None)
    dims, size = spec.get("dims"), spec.get("element_bytes")
    if not isinstance(dims, list) or not all(isinstance(extent, int) for extent in dims) or not isinstance(size, int):
        return spec  # what reads the launch says what is wrong
    if rank is not None and rank != len(dims):
        raise InputError(f"{name}: tensorRank is {rank}, and globalDim has {len(dims)} sizes")
    if spec.get("strides_bytes") is None:  # as a tensor lies whose rows are not padded
        strides, row = [], size
        for extent in dims[:-1]:
            row *= extent
            strides.append(row)
        spec["strides_bytes"] = strides
    return spec


def in_words(text: str, where: str) -> dict[str, Any]:
    """The arguments of a map that is written as `IN_WORDS`. `where`: the option. Raises InputError."""
    kind, *sizes = text.split(":")
    swizzle = sizes.pop() if len(sizes) == 3 else "none"
    numbers = [size.replace(",", "x").split("x") for size in sizes]
    if len(numbers) != 2 or not all(number.isdecimal() for size in numbers for number in size):
        raise InputError(
            f"{where}: not a tensor map", hint=f"such as {IN_WORDS}: type, sizes and box, innermost first, swizzle"
        )
    dims, box = ([int(number) for number in size] for size in numbers)
    if len(dims) != len(box):
        raise InputError(f"{where}: the tensor has {len(dims)} sizes, and its box {len(box)}")
    return {"tensorDataType": kind, "globalDim": dims, "boxDim": box, "swizzle": swizzle}


def extent(spec: Mapping[str, Any]) -> int:
    """The bytes from the first one of a tensor to the one after its last. Elements below a byte take one."""
    dims, size = list(map(int, spec["dims"])), int(spec["element_bytes"])
    steps = [size, *map(int, spec["strides_bytes"][: len(dims) - 1])]
    return sum((count - 1) * step for count, step in zip(dims, steps, strict=True)) + size
