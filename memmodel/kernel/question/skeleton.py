"""A launch description to fill in, for the signature of an entry.

In: module, entry. Out: JSON as text. What the module decides is filled in. What it does not decide is null, and is
completed as if it were left out: nothing is clean that rests on a guess.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memmodel.isa.lowered import body_of
from memmodel.kernel.all_sizes.parameters import ParamPart, parts_of
from memmodel.kernel.launch import extents
from memmodel.kernel.question.completing import OF_TYPES
from memmodel.kernel.question.pointers import POINTER_BYTES, pointers, tensor_map_params
from memmodel.kernel.question.requests import POINTER, STRUCT
from memmodel.ptx.module.syntax import PtxFunction, PtxModule
from memmodel.ptx.vocabulary import Space

MAP = {
    "tensorDataType": "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", "globalAddress": None, "globalDim": None,
    "globalStrides": None, "boxDim": None, "swizzle": "CU_TENSOR_MAP_SWIZZLE_128B",
}  # fmt: skip


def skeleton(module: PtxModule, entry: PtxFunction, names: Sequence[str] = ()) -> str:
    """The description, a parameter in a line. `names`: of the parameters in the source, as far as they are known."""
    return printed(template(module, entry, names))


LISTS = ("params", "buffers", "tensormaps")


def printed(data: Mapping[str, Any]) -> str:
    """A launch description as text."""
    lines = [f' "{key}": {json.dumps(value)}' for key, value in data.items() if key not in LISTS]
    for key in LISTS:
        if key in data:
            inside = ",\n".join("  " + json.dumps(value) for value in data[key])
            lines.append(f' "{key}": [\n{inside}\n ]' if inside else f' "{key}": []')
    return "{\n" + ",\n".join(lines) + "\n}"


def template(module: PtxModule, entry: PtxFunction, names: Sequence[str] = ()) -> dict[str, Any]:
    """The values of the description. `names`: as for `skeleton`."""
    called = {param.name: name or param.name for param, name in zip(entry.params, names, strict=False)}
    exact, cluster = entry.directives.get("reqntid"), entry.directives.get("reqnctapercluster")
    data: dict[str, Any] = {
        "kernel": entry.name,
        "grid": None,
        "block": None if exact is None else list(extents(exact)),
        "cluster": list(extents(cluster or (1,))),
    }
    variables = (*module.variables.values(), *entry.variables)
    shared = [variable for variable in variables if variable.space is Space.SHARED]
    if any(variable.external or variable.size is None for variable in shared):
        data["dynamic_shared"] = None
    points, maps = pointers(entry), tensor_map_params(entry)
    data["params"] = []
    for param in entry.params:
        if param.name in maps:
            described: dict[str, Any] = {"type": STRUCT}
        elif param.type == "b8" and (param.size or 0) > 1:
            parts = {part for does in body_of(entry) for part in parts_of(does) if part.name == param.name}
            described = {"type": STRUCT, "fields": [_field(part, part in points) for part in sorted(parts)]}
        elif ParamPart(param.name, 0, POINTER_BYTES) in points:
            described = {"type": POINTER, "bytes": None}
        else:
            described = {"type": OF_TYPES.get(param.type, param.type), "value": None}
        data["params"].append({"name": called.get(param.name, param.name), **described})
    if maps:
        data["tensormaps"] = [{"param": called.get(name, name), **MAP} for name in maps]
    return data


def _field(part: ParamPart, points: bool) -> dict[str, Any]:
    """A member of a structure, as the kernel loads it."""
    if points:
        return {"offset": part.offset, "type": POINTER, "bytes": None}
    return {"offset": part.offset, "type": f"u{8 * part.size}", "value": None}
