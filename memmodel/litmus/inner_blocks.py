"""Blocks `{ … }` in the body of a thread, which have registers and labels of their own, as compilers' inline code has.

In: the words of a thread's body. Out: the same instructions without blocks: a name that a block declares and that
occurs elsewhere in the thread as well is replaced by one that does not. Lines for debuggers and hints to ptxas (`.loc`,
`.file`, `.pragma`) are left out: they change nothing that a thread does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memmodel.errors import InputError
from memmodel.ptx.lexer import Token
from memmodel.source import Source

MAX_DEPTH = 32
"""Blocks inside one another."""

_TO_THE_LINE_END = frozenset({".loc", ".file"})
_TO_THE_SEMICOLON = frozenset({".pragma"})
_BEFORE_STATEMENT = frozenset({";", ":", "{", "}"})


def flatten(source: Source, tokens: list[Token]) -> list[Token]:
    """The words of a body (without its own braces) with its blocks resolved. Raises InputError."""
    kept = list(_without_directives(source, tokens))
    if not any(token.kind == "{" and _is_brace_of_block(kept, at) for at, token in enumerate(kept)):
        return kept
    depth = 0
    for at in range(len(kept)):
        if not _is_brace_of_block(kept, at):
            continue
        if kept[at].kind == "}":
            depth -= 1
            continue
        depth += 1
        if depth > MAX_DEPTH:
            raise InputError(f"blocks nest deeper than {MAX_DEPTH}", source.span(kept[at].start, kept[at].end))
        end = closing(source, kept, at)
        kept[at + 1 : end] = _renamed(kept, at + 1, end)
        # The words stay in place, so that blocks inside this one are reached next; the braces are dropped at the end.
    return [token for at, token in enumerate(kept) if not _is_brace_of_block(kept, at)]


def _without_directives(source: Source, tokens: list[Token]) -> Iterator[Token]:
    """The words without lines for debuggers and hints to ptxas."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.text in _TO_THE_LINE_END:
            while at < len(tokens) and "\n" not in source.text[tokens[at - 1].end : tokens[at].start]:
                at += 1
        elif token.text in _TO_THE_SEMICOLON:
            while at < len(tokens) and tokens[at].kind != ";":
                at += 1
            at += 1
        else:
            yield token


def _is_brace_of_block(tokens: list[Token], at: int) -> bool:
    """True for a brace of a block, which begins a statement; any other is the brace of a vector."""
    return tokens[at].kind in ("{", "}") and (at == 0 or tokens[at - 1].kind in _BEFORE_STATEMENT)


def closing(source: Source, tokens: list[Token], opened: int) -> int:
    """The index of the token that closes the `{` at an index. Raises InputError."""
    depth = 0
    for at in range(opened, len(tokens)):
        depth += (tokens[at].kind == "{") - (tokens[at].kind == "}")
        if depth == 0:
            return at
    raise InputError("this `{` is never closed", source.span(tokens[opened].start, tokens[opened].end))


def _renamed(tokens: list[Token], first: int, end: int) -> list[Token]:
    """The words of a block, with what it declares renamed where the rest of the thread has that name too."""
    inside = Counter(_plain(token) for token in tokens[first:end] if token.kind == "name")
    everywhere = Counter(_plain(token) for token in tokens if token.kind == "name")
    names, families = _declared(tokens, first, end)
    new = {name: _fresh(name, everywhere) for name in names if everywhere[name] > inside[name]}
    for family, count in families.items():
        members = [f"{family}{number}" for number in range(count)]
        if any(everywhere[name] > inside[name] for name in (family, *members)):
            fresh = _fresh(family, everywhere) + "_"
            new[family] = fresh
            new.update((name, fresh + name.removeprefix(family)) for name in members if inside[name])
    return [
        token._replace(text=new[_plain(token)]) if token.kind == "name" and _plain(token) in new else token
        for token in tokens[first:end]
    ]


def _declared(tokens: list[Token], first: int, end: int) -> tuple[set[str], dict[str, int]]:
    """Registers and labels that a block declares itself, and families of registers (`%r<4>`) with their number."""
    names: set[str] = set()
    families: dict[str, int] = {}
    depth, declares = 0, False
    for at in range(first, end):
        token = tokens[at]
        depth += (token.kind == "{") - (token.kind == "}")
        if token.kind == ";":
            declares = False
        elif depth == 0 and token.text == ".reg":
            declares = True
        elif depth == 0 and token.kind == ":" and at > first and tokens[at - 1].kind == "name":
            names.add(tokens[at - 1].text)
        elif declares and token.kind == "name":
            count = tokens[at + 2].text if tokens[at + 1].kind == "<" else ""
            if count.isdigit() and len(count) < 6:
                families[_plain(token)] = int(count)
            else:
                names.add(_plain(token))
    return names, families


def _fresh(name: str, taken: Counter[str]) -> str:
    """The name with a number behind it, such that no name begins like that. It is taken from then on."""
    number = 1
    while any(other.startswith(f"{name}_{number}") for other in taken):
        number += 1
    fresh = f"{name}_{number}"
    taken[fresh] += 1
    return fresh


def _plain(token: Token) -> str:
    """The name of a register with or without its `%`."""
    return token.text.removeprefix("%")
