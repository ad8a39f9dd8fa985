"""What is said of a launch, wherever it is said: a description, a comment, words of a command line.

In: JSON values and words. Out: JSON values of one launch, with a value for each parameter of the entry, which may be
empty: `kernel.question.completing` fills the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from memmodel.errors import InputError, suggestion
from memmodel.kernel.launch import KINDS
from memmodel.kernel.question.encoded_maps import in_words
from memmodel.ptx.module.syntax import PtxFunction

POINTER, STRUCT, CONTENTS = "ptr", "bytes", ("zero", "iota")
SIZES, AXES, SHARED, LISTS = ("grid", "block", "cluster"), "xyz", "dynamic_shared", ("tensormaps", "buffers")
"""What a launch has beside its parameters."""


@dataclass(frozen=True, slots=True)
class LaunchWords:
    """What a caller says of a launch beside its description. `values`: of parameters, by their names or numbers: a
    number; of a pointer the bytes of its buffer, zero or iota for its contents, or both with a comma between them; a
    tensor map as `bf16:384x256:64x64:128B`. Of other numbers by their place in a description: `grid.x`,
    `tensormaps.0.dims.1`.
    """

    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    cluster: tuple[int, ...] | None = None
    dynamic_shared: int | None = None
    values: Mapping[str, str] = field(default_factory=dict)


def dimensions(text: str, option: str) -> tuple[int, ...]:
    """`4`, `4,2` or `4x2x1` as numbers. Raises InputError."""
    parts = text.replace("x", ",").replace("×", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() and len(part) < 11 for part in parts):
        raise InputError(f"{option} {text[:40]}: not one, two or three numbers", hint=f"such as {option} 4,2,1")
    return tuple(map(int, parts))


def requested(
    data: Mapping[str, Any], words: LaunchWords, entry: PtxFunction, names: Sequence[str], name: str
) -> dict[str, Any]:
    """A description and words as one, the words first. `names`: of the parameters in the source, as far as they are
    known; `name`: of the description. Raises InputError.
    """
    request = dict(data)
    for key in SIZES:
        extents = getattr(words, key) or request.get(key)
        if isinstance(extents, int) and not isinstance(extents, bool):
            extents = (extents,)
        if isinstance(extents, list | tuple) and len(extents) < 3:
            extents = [*extents, *(1,) * (3 - len(extents))]
        request[key] = extents
    if words.dynamic_shared is not None:
        request["dynamic_shared"] = words.dynamic_shared
    request["params"] = _params(request.get("params"), entry, names, name)
    for key, text in words.values.items():
        if not _set_size(request, key, text, entry):
            at, offset = _index(key, entry, names, request["params"])
            if text.count(":") > 1:
                _set_map(request, entry.params[at].name, offset, in_words(text, f"--set {key}={text}"))
            else:
                _set(request["params"][at], offset, text, f"--set {key}={text}")
    return request


def _set_map(request: dict[str, Any], param: str, offset: int, spec: dict[str, Any]) -> None:
    """Put a tensor map into a parameter, in place of the one that a description has there."""
    known = request.get("tensormaps") or []
    others = [each for each in known if (each.get("param"), each.get("offset", 0)) != (param, offset)]
    request["tensormaps"] = [*others, {"param": param, "offset": offset, **spec}]


def settable(data: Mapping[str, Any], key: str, entry: PtxFunction, names: Sequence[str], name: str) -> bool:
    """True if words may give a value to `key`: a size of the launch, or a parameter of the entry."""
    if key == SHARED or key.split(".")[0] in (*SIZES, *LISTS):
        return True
    try:
        _index(key, entry, names, _params(data.get("params"), entry, names, name))
    except InputError:
        return False
    return True


def _set_size(request: dict[str, Any], key: str, text: str, entry: PtxFunction) -> bool:
    """Put a number where a description has no parameter: `grid.x`, `dynamic_shared`, `tensormaps.0.dims.1`. False if
    the key is that of a parameter. Raises InputError.
    """
    head, *path = key.split(".")
    where = f"--set {key}={text}"
    if not path and (head != SHARED or head in {param.name for param in entry.params}):
        return False
    if head in SIZES and len(path) == 1 and path[0] in AXES:
        sizes = request[head] if isinstance(request[head], list | tuple) else ()
        request[head] = [*sizes, *(1,) * (3 - len(sizes))]
        request[head][AXES.index(path[0])] = _whole(text, where)
        return True
    if not path:
        request[head] = _whole(text, where)
        return True
    if head not in LISTS:
        return False
    request[head] = deepcopy(request.get(head))
    place: Any = request[head]
    for step in path[:-1]:
        place = _member(place, step)
    if not isinstance(_member(place, path[-1]), int | str):
        raise InputError(f"{where}: no number stands there in the launch", hint="such as tensormaps.0.dims.1")
    place[int(path[-1]) if isinstance(place, list) else path[-1]] = _whole(text, where)
    return True


def _member(place: object, step: str) -> Any:
    """A part of JSON values; None if there is none."""
    if isinstance(place, list):
        return place[int(step)] if step.isdecimal() and len(step) < 5 and int(step) < len(place) else None
    return place.get(step) if isinstance(place, dict) else None


def _whole(text: str, where: str) -> int:
    number = _number(text, where)
    if isinstance(number, float):
        raise InputError(f"{where}: not a whole number")
    return number


def _params(given: object, entry: PtxFunction, names: Sequence[str], name: str) -> list[Any]:
    """What is said of each parameter."""
    params: list[Any] = [{} for _ in entry.params]
    if isinstance(given, Mapping):
        for key, value in given.items():
            at, offset = _index(str(key), entry, names, params)
            if isinstance(value, Mapping) and not offset:
                params[at] = dict(value)
            elif isinstance(value, int | float | str):
                _set(params[at], offset, str(value), f"{name}: {key}")
            elif value is not None:
                raise InputError(f"{name}: params.{key}: neither a value nor an object")
    elif isinstance(given, list):
        if len(given) != len(entry.params) and given:
            return given  # what reads the launch says what is wrong
        params = [dict(value) if isinstance(value, Mapping) else value or {} for value in given] or params
    elif given is not None:
        raise InputError(f"{name}: params: neither a list nor an object")
    for at, param in enumerate(entry.params):
        if isinstance(params[at], dict) and params[at].get("name", param.name) in ("", None, param.name):
            params[at] = {**params[at], "name": names[at] if at < len(names) and names[at] else param.name}
    return params


def _index(key: str, entry: PtxFunction, names: Sequence[str], params: Sequence[Any]) -> tuple[int, int]:
    """The number of the parameter that a key names, and the offset in it. Raises InputError."""
    name, plus, rest = key.partition("+")
    offset = int(rest) if rest.strip().isdecimal() and len(rest) < 6 else None
    if plus and offset is None:
        raise InputError(f"{key}: not a parameter and an offset", hint="such as params+8")
    name, written = name.strip(), [param.name for param in entry.params]
    given = [str(param.get("name")) if isinstance(param, Mapping) else "" for param in params]
    for listed in (given, names, written):
        if name in listed:
            return list(listed).index(name), offset or 0
    if name.isdecimal() and len(name) < 5 and int(name) < len(written):
        return int(name), offset or 0
    known = [name for name in (*names, *written) if name]
    hint = suggestion(name, known) or (f"its parameters are {', '.join(known[:8])}" if known else None)
    raise InputError(f"{entry.name} has no parameter {name}", hint=hint)


def _set(param: dict[str, Any], offset: int, text: str, where: str) -> None:
    """Put what a word says of a parameter, or of a part of it, into its values."""
    if offset or param.get("fields"):
        fields = param.setdefault("fields", [])
        member = next((member for member in fields if member.get("offset") == offset), None)
        if member is None:
            member = {"offset": offset}
            fields.append(member)
        param["type"] = STRUCT
        _set(member, 0, text, where)
        return
    kind, colon, rest = text.partition(":")
    if colon and (kind in KINDS or kind == POINTER):
        param["type"], text = kind, rest
    for part in text.split(","):
        word = part.strip()
        if word in CONTENTS:
            param["type"], param["init"] = POINTER, word
        else:
            param["number"] = _number(word, where)


def _number(text: str, where: str) -> int | float:
    """A number in the writing of Python. Raises InputError."""
    for read in (lambda word: int(word, 0), float):
        try:
            number: int | float = read(text)
        except ValueError:
            continue
        return number
    raise InputError(f"{where}: {text[:40]} is no number", hint="a number; of a buffer its bytes, zero or iota")
