"""`dataclass`, as the standard library has it, but cheap to define, and `WordList`, an Enum that is cheap to look up.

In: a class with annotated fields. Out: the same class with `__init__`, `__eq__` and so on. Settled here: what the
standard decorator writes as source and compiles for every class is shared by all of them, and `__init__` is compiled
when the first instance is made. Type checkers see the standard functions; those of `dataclasses` work as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass, replace

__all__ = ["WordList", "dataclass", "field", "replace"]

_OWN = "_own_fields"

_MANY_FIELDS = 3
"""With so many fields, an instance of a frozen class is filled under another class."""


class WordList(Enum):
    """A closed list of words. The standard library hashes the name of a member, in Python; here identity is enough."""

    __hash__ = object.__hash__


class _Fields:
    """`__dataclass_fields__`, made by the standard decorator when somebody asks for it."""

    def __init__(self, fields: dict[str, Field[Any]]) -> None:
        self.fields = fields
        self.made: dict[str, Field[Any]] | None = None

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        if self.made is None:
            import dataclasses

            space = {"__annotations__": dict.fromkeys(self.fields, Any), **self.fields}
            twin: Any = dataclasses.dataclass(kw_only=True)(type("Twin", (), space))
            self.made = twin.__dataclass_fields__
        return self.made


if not TYPE_CHECKING:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True, kw_only=False):
        """As `dataclasses.dataclass`, for the options that this program uses."""

        def decorate(cls: type) -> type:
            return _made(cls, frozen=frozen, slots=slots, eq=eq, show=repr, kw_only=kw_only)

        return decorate if cls is None else decorate(cls)

    def replace(obj, /, **changes):
        """As `dataclasses.replace`; the standard one would have `__dataclass_fields__` made for every class."""
        fields = getattr(obj.__class__, _OWN, None)
        if fields is None:
            import dataclasses

            return dataclasses.replace(obj, **changes)
        kept = {name: getattr(obj, name) for name, one in fields.items() if one.init and name not in changes}
        return obj.__class__(**kept, **changes)


def _made(cls: type, *, frozen: bool, slots: bool, eq: bool, show: bool, kw_only: bool) -> type:
    fields: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        fields.update(base.__dict__.get(_OWN, ()))
    inherited = set(fields)
    space = dict(cls.__dict__)
    for name in cls.__annotations__:
        given = space.get(name, MISSING)
        if isinstance(given, Field):
            fields[name] = given
            del space[name]
        else:
            fields[name] = field() if given is MISSING else field(default=given)
            space.pop(name, None)
    if slots:
        space["__slots__"] = tuple(name for name in fields if name not in inherited)
        space.pop("__dict__", None)
        space.pop("__weakref__", None)
        module, qualified = cls.__module__, cls.__qualname__
        cls = type(cls)(cls.__name__, cls.__bases__, space)
        cls.__module__, cls.__qualname__ = module, qualified
    else:
        for name in cls.__annotations__:
            if name not in space and name in cls.__dict__:
                delattr(cls, name)
        for name, one in fields.items():
            if one.default is not MISSING:
                setattr(cls, name, one.default)
    _equip(cls, fields, space, frozen=frozen, slots=slots, eq=eq, show=show, kw_only=kw_only)
    return cls


def _equip(
    cls: Any,
    fields: dict[str, Field[Any]],
    space: dict[str, Any],
    *,
    frozen: bool,
    slots: bool,
    eq: bool,
    show: bool,
    kw_only: bool,
) -> None:
    setattr(cls, _OWN, fields)
    cls.__dataclass_fields__ = _Fields(fields)
    positional = () if kw_only else tuple(name for name, one in fields.items() if one.init)
    setattr(cls, "__match_args__", positional)  # noqa: B010 - type checkers know it as read-only
    if "__init__" not in space:
        cls.__init__ = _late_init(cls, fields, frozen=frozen, kw_only=kw_only)
    if show and "__repr__" not in space:
        cls.__repr__ = _repr_of(tuple(name for name, one in fields.items() if one.repr))
    if eq and "__eq__" not in space:
        compared = tuple(name for name, one in fields.items() if one.compare)
        key = _key_of(compared)
        cls.__eq__ = _eq_of(key)
        if "__hash__" not in space or space["__hash__"] is None:
            cls.__hash__ = _hash_of(key) if frozen else None
    if frozen:
        cls.__setattr__ = _no_set
        cls.__delattr__ = _no_delete
        if slots:
            cls.__getstate__ = _getstate
            cls.__setstate__ = _late_setstate(cls, fields)


def _late_init(cls: Any, fields: dict[str, Field[Any]], *, frozen: bool, kw_only: bool) -> Callable[..., None]:
    def __init__(self: object, *args: object, **kwargs: object) -> None:
        cls.__init__ = made = _init(cls, fields, frozen, kw_only)
        made(self, *args, **kwargs)

    return __init__


def _init(cls: type, fields: dict[str, Field[Any]], frozen: bool, kw_only: bool) -> Callable[..., None]:
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    head = ["self"] + ["*"] * (kw_only and any(one.init for one in fields.values()))
    body: list[tuple[str, str]] = []
    for name, one in fields.items():
        value = name
        if one.default_factory is not MISSING:
            names[f"_make_{name}"] = one.default_factory
            made = f"_make_{name}()"
            value = f"{made} if {name} is _missing else {name}" if one.init else made
            head += [f"{name}=_missing"] * one.init
        elif one.default is not MISSING:
            names[f"_default_{name}"] = one.default
            value = name if one.init else f"_default_{name}"
            head += [f"{name}=_default_{name}"] * one.init
        elif one.init:
            head.append(name)
        else:
            continue
        body.append((name, value))
    lines = [f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}" for name, value in body]
    if frozen and len(body) >= _MANY_FIELDS and "__slots__" in cls.__dict__:
        # To set the attributes of a class that forbids it costs a call for each. A twin does not forbid it.
        names["_class"], names["_become"] = cls, object.__dict__["__class__"].__set__
        names["_open"] = type(cls)(cls.__name__, (cls,), {"__slots__": (), "__setattr__": object.__setattr__})
        quick = ["_become(self, _open)", *(f"self.{name} = {value}" for name, value in body), "self.__class__ = _class"]
        lines = ["if self.__class__ is _class:", *(f" {one}" for one in quick), "else:", *(f" {one}" for one in lines)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(head)}):\n " + "\n ".join(lines or ["pass"]), names)
    made_init: Callable[..., None] = names["__init__"]
    made_init.__qualname__ = f"{cls.__qualname__}.__init__"
    return made_init


def _key_of(names: tuple[str, ...]) -> Callable[[Any], object]:
    return attrgetter(*names) if names else lambda _: ()


def _eq_of(key: Callable[[Any], object]) -> Callable[[Any, Any], bool]:
    def __eq__(self: Any, other: Any) -> bool:
        if other.__class__ is self.__class__:
            return key(self) == key(other)
        return NotImplemented

    return __eq__


def _hash_of(key: Callable[[Any], object]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(key(self))

    return __hash__


def _repr_of(names: tuple[str, ...]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__


def _no_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, name) for name in self._own_fields]


def _late_setstate(cls: Any, fields: dict[str, Field[Any]]) -> Callable[[Any, list[object]], None]:
    def __setstate__(self: object, state: list[object]) -> None:
        names = [f"_{number}" for number in range(len(fields))]
        body = [f"[{', '.join(names)}] = state"]
        body += [f"_set(self, {name!r}, {given})" for name, given in zip(fields, names, strict=True)]
        space: dict[str, Any] = {"_set": object.__setattr__}
        exec("def __setstate__(self, state):\n " + "\n ".join(body), space)
        cls.__setstate__ = space["__setstate__"]
        cls.__setstate__(self, state)

    return __setstate__
