"""Results as JSON and back: reports and outcomes, whole, so that one that was kept prints what it printed at first.

In: dataclasses made of numbers, strings, enumerations, tuples, dicts and frozensets. Out: text. Settled here: the shape
is read from the types' own fields. A span is two offsets into the test's source; one of another text cannot be kept.
Executions and events, which findings share, stand once, in a table.
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
TRANSIENT = ("ground", "subject")
"""Fields that explanations need and that stay in the process which judged: None in what was kept."""
_PLAIN = (int, str, float, bool, NoneType)


class NotKept(Exception):
    """A value that cannot be written down, or text that is no such value."""


def dump(value: object, source: Source) -> str:
    """A result as ASCII text. Raises NotKept."""
    writer = _Packing(source)
    kind: Any = type(value)
    root = _writer(kind)(value, writer)
    try:
        return json.dumps([writer.table, root], separators=(",", ":"))
    except ValueError as error:  # a number of thousands of digits
        raise NotKept(str(error)) from error


def undump(kind: type[T], text: str, source: Source) -> T:
    """The result that a text of `dump` stands for. Raises NotKept."""
    try:
        table, root = json.loads(text)
        shape: Any = kind
        value: T = _reader(shape)(root, _Unpacking(source, table))
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


Write = Callable[[Any, _Packing], Any]
Read = Callable[[Any, _Unpacking], Any]


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
def _writer(kind: Any) -> Write:
    if _is_plain(kind):
        return lambda value, _: value
    if kind is Span:
        return _write_span
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value, _: value.value
    if (member := _member(kind)) is not None:
        inner = _writer(member)
        return lambda value, to: None if value is None else inner(value, to)
    if is_dataclass(kind) and isinstance(kind, type):
        return _write_record(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple and args[-1] is not Ellipsis:
        each = [_writer(arg) for arg in args]
        return lambda value, to: [write(part, to) for write, part in zip(each, value, strict=True)]
    if origin in (tuple, frozenset):
        item = _writer(args[0])
        order = sorted if origin is frozenset else list
        return lambda value, to: [item(part, to) for part in order(value)]
    if origin is dict:
        key, held = _writer(args[0]), _writer(args[1])
        return lambda value, to: [[key(index, to), held(other, to)] for index, other in value.items()]
    raise NotKept(f"no form for {kind}")


def _write_span(value: Span, to: _Packing) -> list[int]:
    if value.source is not to.source and value.source != to.source:
        raise NotKept("a span of another text")
    return [value.start, value.end]


def _write_record(kind: type) -> Write:
    parts = [(name, _writer(hint)) for name, hint in _parts(kind)]

    def plainly(value: Any, to: _Packing) -> list[Any]:
        return [write(getattr(value, name), to) for name, write in parts]

    def once(value: Any, to: _Packing) -> int:
        if id(value) not in to.known:
            row = plainly(value, to)
            to.known[id(value)] = len(to.table)
            to.table.append(row)
        return to.known[id(value)]

    return once if kind in SHARED else plainly


@cache
def _reader(kind: Any) -> Read:
    if _is_plain(kind):
        return lambda value, _: value
    if kind is Span:
        return lambda value, by: Span(by.source, value[0], value[1])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value, _: kind(value)
    if (member := _member(kind)) is not None:
        inner = _reader(member)
        return lambda value, by: None if value is None else inner(value, by)
    if is_dataclass(kind) and isinstance(kind, type):
        return _read_record(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple and args[-1] is not Ellipsis:
        if all(map(_is_plain, args)):
            return lambda value, _: tuple(value)
        each = [_reader(arg) for arg in args]
        return lambda value, by: tuple([read(part, by) for read, part in zip(each, value, strict=True)])
    if origin in (tuple, frozenset):
        if _is_plain(args[0]):
            return lambda value, _: origin(value)
        item = _reader(args[0])
        return lambda value, by: origin([item(part, by) for part in value])
    if origin is dict:
        key, held = _reader(args[0]), _reader(args[1])
        return lambda value, by: {key(index, by): held(other, by) for index, other in value}
    raise NotKept(f"no form for {kind}")


def _read_record(kind: type) -> Read:
    readers = [_reader(hint) for _, hint in _parts(kind)]

    def plainly(value: Any, by: _Unpacking) -> Any:
        return kind(*[read(part, by) for read, part in zip(readers, value, strict=True)])

    def once(value: int, by: _Unpacking) -> Any:
        if value not in by.known:
            by.known[value] = plainly(by.table[value], by)
        return by.known[value]

    return once if kind in SHARED else plainly
