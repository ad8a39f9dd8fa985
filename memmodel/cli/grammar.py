"""Commands from functions: what a person may type is read off the annotations of the function that answers.

In: functions whose parameters are `Annotated[type, Option(…)]` or `Annotated[type, Argument(…)]`, or named tuples of
such fields, which several commands may share. Out: click commands.
Settled here: a command is built, and its module loaded, when it is called or when all are listed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import click

from memmodel.errors import nearest

Complete = Callable[[str], list[str]]
"""For the shell: what a word may become that begins so."""


class Option:
    """An option: its spellings (none: `--name`), and what its help says."""

    def __init__(
        self,
        *flags: str,
        help: str = "",
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        complete: Complete | None = None,
    ) -> None:
        self.flags, self.help, self.metavar, self.min, self.max = flags, help, metavar, min, max
        self.complete = complete


class Argument:
    """An argument, named in capitals by `metavar`."""

    def __init__(self, *, metavar: str, help: str, complete: Complete | None = None) -> None:
        self.metavar, self.help, self.complete = metavar, help, complete


def _function(place: str) -> Callable[..., object]:
    """Import what stands at a place such as `memmodel.cli.ptx:ptx`."""
    module, _, name = place.partition(":")
    found: Callable[..., object] = getattr(import_module(module), name)
    return found


class Signalled(BaseException):
    """A signal, held until click is left: click answers one with an empty line."""

    def __init__(self, signal: KeyboardInterrupt) -> None:
        super().__init__()
        self.signal = signal


class Commands(click.Group):
    """The program: commands by name, in the order in which help lists them."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """As click does; a signal leaves as `Signalled`."""
        try:
            return super().make_context(*args, **more)
        except KeyboardInterrupt as signal:
            raise Signalled(signal) from None

    def invoke(self, ctx: click.Context) -> Any:
        """As click does; a signal leaves as `Signalled`."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as signal:
            raise Signalled(signal) from None

    def __init__(self, name: str, help: str, places: Mapping[str, str], **more: Any) -> None:
        super().__init__(name, help=help, no_args_is_help=True, **more)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, made now."""
        place = self._places.get(cmd_name)
        return None if place is None else command_of(cmd_name, _function(place))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with a proposal where the name is unknown."""
        if args and args[0] not in self._places and not args[0].startswith("-"):
            near = nearest(args[0][:80], self._places)
            ctx.fail(f"No such command {args[0][:80]!r}." + (f" Did you mean {near!r}?" if near else ""))
        return super().resolve_command(ctx, args)


class _Command(click.Command):
    """A command whose help lists its arguments as well."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        arguments = [(one.make_metavar(ctx), one.text) for one in self.params if isinstance(one, _Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        super().format_options(ctx, formatter)


class _Argument(click.Argument):
    def __init__(self, name: str, text: str, **more: Any) -> None:
        super().__init__([name], **more)
        self.text = text + ("  [required]" if self.required else "")

    def make_metavar(self, ctx: click.Context | None = None) -> str:
        return self.metavar or (self.name or "").upper()


def command_of(name: str, function: Callable[..., object]) -> click.Command:
    """The command that calls a function."""
    hints = get_type_hints(inspect.unwrap(function), include_extras=True)
    parameters: list[click.Parameter] = []
    shared: dict[str, Any] = {}
    for one in inspect.signature(function).parameters.values():
        if hasattr(hints[one.name], "_fields"):
            shared[one.name] = hints[one.name]
            parameters += _shared(hints[one.name])
        else:
            parameters.append(_parameter(one, hints[one.name]))

    def call(**given: Any) -> object:
        for one, kind in shared.items():
            given[one] = kind(**{field: given.pop(field) for field in kind._fields})
        return function(**given)

    return _Command(name, callback=call if shared else function, params=parameters, help=inspect.getdoc(function))


def _shared(kind: Any) -> list[click.Parameter]:
    """The options that are the fields of a named tuple."""
    hints = get_type_hints(kind, include_extras=True)
    return [_parameter(one, hints[one.name]) for one in inspect.signature(kind).parameters.values()]


def _parameter(one: inspect.Parameter, hint: object) -> click.Parameter:
    kind, about = get_args(hint)[:2]
    several, plain = _plain(kind)
    required = one.default is inspect.Parameter.empty
    default = None if required else one.default
    completed: dict[str, Any] = {} if about.complete is None else {"shell_complete": _completion(about.complete)}
    if isinstance(about, Argument):
        more = completed | ({"nargs": -1} if several else {})
        return _Argument(one.name, about.help, metavar=about.metavar, required=required, type=plain, **more)
    flags = about.flags or (f"--{one.name.replace('_', '-')}",)
    given: dict[str, Any] = {"help": about.help, "metavar": about.metavar, **completed}
    if plain is bool:
        return click.Option([*flags, one.name], is_flag=True, default=bool(default), help=about.help)
    if isinstance(plain, type) and issubclass(plain, Enum):
        words = [str(word.value) for word in plain]
        given |= {"type": click.Choice(words), "callback": _member(plain)}
        default = default.value if isinstance(default, Enum) else default
    elif about.min is not None or about.max is not None:
        between = click.IntRange if plain is int else click.FloatRange
        given["type"] = between(about.min, about.max)
    else:
        given["type"] = plain
    if several:
        return click.Option([*flags, one.name], multiple=True, required=required, **given)
    if default is not None:
        given |= {"default": default, "show_default": True}
    return click.Option([*flags, one.name], required=required, **given)


def _plain(kind: object) -> tuple[bool, Any]:
    """Is it a list, and of what? `list[str] | None` is one of strings, `str | None` a string."""
    if get_origin(kind) is UnionType:
        kind = next(part for part in get_args(kind) if part is not NoneType)
    return (True, get_args(kind)[0]) if get_origin(kind) is list else (False, kind)


def _completion(complete: Complete) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    return lambda _context, _parameter, incomplete: complete(incomplete)


def _member(kind: type[Enum]) -> Callable[[click.Context, click.Parameter, str | None], Enum | None]:
    return lambda _context, _parameter, word: None if word is None else kind(word)
