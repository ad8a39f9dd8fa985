"""Variables, their aliases, and initial registers: the statements of an init block and of the top of a block file.

In: Reader. Out: Declarations, filled statement by statement. Both layouts write the same statements, the short
`x = 0;` of herd's tables as well as PTX's `.shared .align 8 .u64 bar;`. Settled here: one name, one variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from memmodel.errors import InputError, suggestion
from memmodel.litmus.header import KEYS
from memmodel.litmus.lexer import MAX_PLACE, Reader, listed
from memmodel.litmus.objects import read_object
from memmodel.litmus.reals import read_initial_value
from memmodel.litmus.syntax import RegisterInit, Variable
from memmodel.ptx.lexer import Token, shorten
from memmodel.ptx.vocabulary import DataType, Proxy, Space
from memmodel.source import Span

MAX_VARIABLES = 1_000
MAX_VALUES = 16_384
"""All initial values of a test together."""

MAX_LENGTH = 1 << 40
"""Elements of an array. Nothing costs by the element; this is where a number is surely a slip."""

SPACES = {space.value: space for space in Space if space not in (Space.GENERIC, Space.LOCAL)}
_WIDTHS = {"u": (8, 16, 32, 64), "s": (8, 16, 32, 64), "b": (8, 16, 32, 64, 128), "f": (16, 32, 64)}
TYPES = {f"{kind}{width}": DataType(kind, width) for kind, widths in _WIDTHS.items() for width in widths}
PROXIES = {proxy.value: proxy for proxy in Proxy if proxy is not Proxy.READ_ONLY}
"""What an alias may go through. The read-only path is that of an instruction, through any name."""


@dataclass(slots=True)
class Declarations:
    """What a file has declared so far."""

    variables: dict[str, Variable] = field(default_factory=dict)
    registers: dict[tuple[str, str], RegisterInit] = field(default_factory=dict)
    mentions: dict[str | tuple[str, str], Span] = field(default_factory=dict)
    """Where an alias (by its name) or an initial register (by thread and name) names the variable that it refers to."""
    values: int = 0

    def add(self, variable: Variable) -> None:
        """Take in a variable. Raises InputError if the name is taken or the test becomes too large."""
        first = self.variables.get(variable.name)
        if first is not None:
            hint = f"first declared on line {first.span.line}"
            raise InputError(f"`{variable.name}` is declared twice", variable.span, hint)
        self.values += len(variable.init)
        if len(self.variables) >= MAX_VARIABLES:
            raise InputError(f"more than {MAX_VARIABLES:,} variables", variable.span, "a litmus test is a few threads")
        if self.values > MAX_VALUES:
            raise InputError(f"more than {MAX_VALUES:,} initial values in one test", variable.span)
        self.variables[variable.name] = variable


def read_statement(reader: Reader, into: Declarations) -> None:
    """One declaration or register initialisation, up to its `;` (left for the caller). Raises InputError."""
    if reader.ahead().kind == ":" and reader.token.kind in ("name", "number"):
        _register(reader, into)
    else:
        into.add(_variable(reader, into))


def thread_name(reader: Reader) -> tuple[str, Token]:
    """The thread in `P0:r0` or `0:r0`; a number n stands for Pn."""
    if reader.token.kind == "number":
        number, token = reader.count("a thread number", MAX_PLACE)
        return f"P{number}", token
    token = reader.expect("name", "a thread")
    return token.text, token


def _register(reader: Reader, into: Declarations) -> None:
    thread, first = thread_name(reader)
    reader.expect(":", "`:`")
    register, last = reader.register()
    span = reader.span(first, last)
    reader.expect("=", "`=` and a value")
    value: int | str
    if reader.token.kind == "name":
        into.mentions[thread, register] = reader.here()
        value = reader.next().text
    else:
        value = reader.number("a number or a variable")[0]
    if (thread, register) in into.registers:
        raise InputError(f"`{span.text}` is initialised twice", span)
    into.registers[thread, register] = RegisterInit(thread, register, value, span)


def _variable(reader: Reader, into: Declarations) -> Variable:
    space, kind, align = Space.GENERIC, None, None
    while reader.token.kind == "dot":
        word = reader.next()
        name = word.text[1:]
        if name in SPACES:
            space = SPACES[name]
        elif name in TYPES:
            kind = TYPES[name]
        elif name == "align":
            align, number = reader.count("an alignment", 1 << 16)
            if align == 0 or align & (align - 1):
                raise InputError("an alignment is a power of two", reader.span(number))
        else:
            spellings = f"state spaces: .{listed(SPACES)}; types: .u32, .s64, .b8, …"
            hint = suggestion(name, [*SPACES, *TYPES, "align"], ".{}") or spellings
            raise InputError(f"`{shorten(word.text)}` is not a state space, a type or .align", reader.span(word), hint)
    token = reader.identifier("the name of a variable")
    if token.text in KEYS:
        raise InputError(f"`{token.text}` is a header line and cannot be the name of a variable", reader.span(token))
    size = _size(reader)
    cta, proxy, alias_of = _suffixes(reader)
    span = reader.span(token)
    if alias_of is not None:
        if size is not None or cta is not None or reader.token.kind == "=":
            hint = f"`{token.text}` has the size, the place and the value of `{alias_of}`"
            raise InputError("an alias has no size, CTA or value of its own", span, hint)
        into.mentions[token.text] = reader.span(reader.tokens[reader.at - 1])
        return Variable(token.text, space, kind, alias_of=alias_of, proxy=proxy, align=align, span=span)
    if cta is not None and space is not Space.SHARED:
        hint = "declare it .shared" if kind else "declare it .shared, or close the init block with `}`"
        raise InputError(f"`{token.text}` is not .shared and belongs to no CTA", span, hint)
    variable = Variable(
        token.text, space, kind, length=size or 1, cta=cta, align=align, array=size is not None, span=span
    )
    if reader.token.kind == "=" and (reader.ahead(2).kind == "(" or reader.ahead(2).text == "tensormap"):
        return read_object(reader, variable, counted=size != 0)
    values = _values(reader, size, kind)
    return replace(variable, init=_significant(values), length=size or len(values) or 1)


def _size(reader: Reader) -> int | None:
    """The length in brackets. None: no brackets, no array; 0: empty brackets, as long as the initial values."""
    if reader.accept("[") is None:
        return None
    if reader.accept("]"):
        return 0
    size, token = reader.count("the size of an array", MAX_LENGTH)
    if size == 0:
        raise InputError("an array has at least one element", reader.span(token))
    reader.expect("]", "`]`")
    return size


def _suffixes(reader: Reader) -> tuple[int | None, Proxy, str | None]:
    cta, proxy, proxy_token = None, Proxy.GENERIC, None
    while reader.accept("@"):
        if reader.token.text.startswith("cta"):
            cta = reader.cta_number()[0]
            continue
        proxy_token = reader.expect("name", "a proxy or `cta`")
        if proxy_token.text not in PROXIES:
            hint = suggestion(proxy_token.text, [*PROXIES, "cta"]) or f"known: {listed(PROXIES)}"
            raise InputError(f"unknown proxy `{shorten(proxy_token.text)}`", reader.span(proxy_token), hint)
        proxy = PROXIES[proxy_token.text]
    if reader.accept_word("aliases"):
        return cta, proxy, reader.identifier("a variable").text
    if proxy_token is not None:
        hint = f"for example `s @ {proxy_token.text} aliases x`"
        raise InputError("a proxy is named only for an alias", reader.span(proxy_token), hint)
    return cta, proxy, None


def _values(reader: Reader, size: int | None, kind: DataType | None) -> tuple[int, ...]:
    if reader.accept("=") is None:
        if size == 0:
            raise reader.wanted("`=` and the values of an array without size")
        return ()
    if size is None:
        if reader.token.kind == "{":
            hint = "give the name a size: `a[2] = {1, 2}`"
            raise InputError("a list of values initialises an array", reader.here(), hint)
        return (read_initial_value(reader, kind),)
    reader.expect("{", "`{` and the values of the array")
    values = reader.separated(lambda: read_initial_value(reader, kind))
    last = reader.expect("}", "`,` or `}`")
    if size and len(values) > size:
        raise InputError(f"{len(values)} values for {size} elements", reader.span(last))
    if len(values) > MAX_VALUES:
        raise InputError(f"more than {MAX_VALUES:,} initial values in one test", reader.span(last))
    return tuple(values)


def _significant(values: tuple[int, ...]) -> tuple[int, ...]:
    """The values up to the last one that is not 0."""
    last = max((index for index, value in enumerate(values) if value), default=-1)
    return values[: last + 1]
