"""Reports and outcomes as JSON and back, complete, so that a kept one prints the same as when it was new.

In: dataclasses made of numbers, strings, enumerations, tuples, dicts and frozensets. Out: text. Settled here: the shape
is read from the types' own fields. A span is two offsets into the test's source; one of another text cannot be kept.
Executions and events, which findings share, are written once, into a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from memmodel.answer import ShownEvent, Witness
from memmodel.source import Source, Span

T = TypeVar("T")

SHARED = (Witness, ShownEvent)
TRANSIENT = ("evaluated", "subject")
"""Fields for explanations that never leave the process that judged; they are None in a kept result."""
_PLAIN = (int, str, float, bool, NoneType)


class NotKept(Exception):
    """A value that cannot be written, or text that cannot be read as one."""


def dump(value: object, source: Source) -> str:
    """A result as ASCII text. Raises NotKept."""
    writer = _Packing(source)
    kind: Any = type(value)
    root = _codec(kind).write(value, writer)
    try:
        return json.dumps([writer.table, root], separators=(",", ":"))
    except ValueError as error:  # a number of thousands of digits
        raise NotKept(str(error)) from error


def undump(kind: type[T], text: str, source: Source) -> T:
    """The result that a text of `dump` stands for. Raises NotKept."""
    try:
        table, root = json.loads(text)
        shape: Any = kind
        value: T = _codec(shape).read(root, _Unpacking(source, table))
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, RecursionError) as error:
        raise NotKept(str(error)) from error
    return value


@dataclass(slots=True)
class _Packing:
    source: Source
    table: list[object] = field(default_factory=list)
    known: dict[int, int] = field(default_factory=dict)  # by identity


@dataclass(slots=True)
class _Unpacking:
    source: Source
    table: list[Any]
    known: dict[int, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Codec:
    """How values of one type are written, and read again."""

    write: Callable[[Any, _Packing], Any]
    read: Callable[[Any, _Unpacking], Any]


def _parts(kind: type) -> list[tuple[str, Any]]:
    """The fields of a dataclass with their types."""
    try:
        hints = get_type_hints(kind)
    except NameError as error:
        raise NotKept(str(error)) from error
    return [(member.name, hints[member.name]) for member in fields(kind) if member.name not in TRANSIENT]


def _is_plain(kind: Any) -> bool:
    """True if JSON has this type."""
    if get_origin(kind) in (Union, UnionType):
        return all(map(_is_plain, get_args(kind)))
    return kind in _PLAIN


def _member(kind: Any) -> Any | None:
    """X of `X | None`; None for a type that is no such union."""
    if get_origin(kind) not in (Union, UnionType):
        return None
    rest = [arg for arg in get_args(kind) if arg is not NoneType]
    if len(rest) != 1:
        raise NotKept(f"no form for {kind}")
    return rest[0]


@cache
def _codec(kind: Any) -> Codec:
    if _is_plain(kind):
        return Codec(lambda value, _: value, lambda value, _: value)
    if kind is Span:
        return Codec(_write_span, lambda value, by: Span(by.source, value[0], value[1]))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Codec(lambda value, _: value.value, lambda value, _: kind(value))
    if (member := _member(kind)) is not None:
        form = _codec(member)
        return Codec(
            lambda value, to: None if value is None else form.write(value, to),
            lambda value, by: None if value is None else form.read(value, by),
        )
    if is_dataclass(kind) and isinstance(kind, type):
        return _record(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple and args[-1] is not Ellipsis:
        each, plain = [_codec(arg) for arg in args], all(map(_is_plain, args))
        return Codec(
            lambda value, to: [form.write(part, to) for form, part in zip(each, value, strict=True)],
            (lambda value, _: tuple(value))
            if plain
            else lambda value, by: tuple([form.read(part, by) for form, part in zip(each, value, strict=True)]),
        )
    if origin in (tuple, frozenset):
        item, order = _codec(args[0]), sorted if origin is frozenset else list
        return Codec(
            lambda value, to: [item.write(part, to) for part in order(value)],
            (lambda value, _: origin(value))
            if _is_plain(args[0])
            else lambda value, by: origin([item.read(part, by) for part in value]),
        )
    if origin is dict:
        key, held = map(_codec, args)
        return Codec(
            lambda value, to: [[key.write(index, to), held.write(other, to)] for index, other in value.items()],
            lambda value, by: {key.read(index, by): held.read(other, by) for index, other in value},
        )
    raise NotKept(f"no form for {kind}")


def _write_span(value: Span, to: _Packing) -> list[int]:
    if value.source is not to.source and value.source != to.source:
        raise NotKept("a span of another text")
    return [value.start, value.end]


def _record(kind: type) -> Codec:
    """The codec of a dataclass. One of SHARED is written into the table once."""
    forms = [(name, _codec(hint)) for name, hint in _parts(kind)]
    writers, readers = [(name, form.write) for name, form in forms], [form.read for _, form in forms]

    def write(value: Any, to: _Packing) -> list[Any]:
        return [writer(getattr(value, name), to) for name, writer in writers]

    def read(value: Any, by: _Unpacking) -> Any:
        return kind(*[reader(part, by) for reader, part in zip(readers, value, strict=True)])

    def write_once(value: Any, to: _Packing) -> int:
        if id(value) not in to.known:
            row = write(value, to)
            to.known[id(value)] = len(to.table)
            to.table.append(row)
        return to.known[id(value)]

    def read_once(value: int, by: _Unpacking) -> Any:
        if value not in by.known:
            by.known[value] = read(by.table[value], by)
        return by.known[value]

    return Codec(write_once, read_once) if kind in SHARED else Codec(write, read)
