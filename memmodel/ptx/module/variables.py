"""Declarations of variables and parameters, with their sizes and first contents.

In: a Cursor after the state space. Out: `ModuleVariable`s.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.ptx.lexer import Token
from memmodel.ptx.module.constants import constant
from memmodel.ptx.module.initial import read_initial
from memmodel.ptx.module.lexer import ModuleCursor
from memmodel.ptx.module.syntax import ModuleVariable
from memmodel.ptx.vocabulary import Space

SPACES: Mapping[str, Space | None] = {
    **{space.value: space for space in (Space.GLOBAL, Space.CONST, Space.SHARED, Space.LOCAL, Space.PARAM)},
    "tex": None,
}
"""The state spaces that a directive may name. A texture is no memory."""

MAX_SIZE = 1 << 48
MAX_FAMILY = 1 << 30
PARENTHESIS = "')' is expected here"
_WIDTHS = {
    "pred": 1, "b1": 1, "f16x2": 32, "bf16": 16, "bf16x2": 32, "tf32": 32, "e4m3": 8, "e5m2": 8,
    "e4m3x2": 16, "e5m2x2": 16, "texref": 64, "samplerref": 64, "surfref": 64,
}  # fmt: skip


def type_of(cursor: ModuleCursor, token: Token) -> tuple[str, int]:
    """Kind and width in bits of a type."""
    word = token.text[1:]
    if word in _WIDTHS:
        return ("pred" if word == "pred" else "f"), _WIDTHS[word]
    if word[:1] in "busf" and word[1:] in ("8", "16", "32", "64", "128"):
        return word[0], int(word[1:])
    cursor.fail(f"{token.text} is no type", token)


def declarations(
    cursor: ModuleCursor, space: Token, linking: Mapping[str, bool], *, parameter: bool = False
) -> list[ModuleVariable]:
    """One directive: `.align 4 .b8 a[16], b;`. As a parameter, one variable without semicolon."""
    where = SPACES.get(space_of(space))
    align, lanes, pointer = 0, 1, False
    written: Token | None = None
    while written is None:
        token = cursor.expect("dot", "a type")
        if token.text == ".align":
            align = _alignment(cursor)
        elif token.text == ".ptr":
            pointer = True
        elif pointer and token.text[1:] in SPACES:
            continue
        elif token.text in (".v2", ".v4", ".v8"):
            lanes = int(token.text[2:])
        elif token.text == ".attribute":
            cursor.skip_to_closing("(", ")", PARENTHESIS)
        else:
            written = token
    type_width = type_of(cursor, written)[1]
    # A pointer parameter says after its type what it points to: `.param .u64 .ptr .global .align 1 name`.
    while cursor.token.kind == "dot":
        token = cursor.next()
        if token.text == ".ptr":
            pointer = True
        elif token.text == ".align":
            _alignment(cursor)
        elif token.text[1:] not in SPACES:
            cursor.fail(f"{token.text} is not expected here", token)
    unit = max(1, type_width * lanes // 8)

    def read() -> ModuleVariable:
        return _variable(cursor, where, written, align or unit, unit, pointer, linking)

    if parameter:
        return [read()]
    variables = cursor.separated(read)
    cursor.expect(";", "',' or ';'")
    return variables


def _alignment(cursor: ModuleCursor) -> int:
    """The bytes of `.align`, a power of two ("Variables: Alignment"; "Kernel Function Parameter Attribute: .ptr")."""
    token = cursor.token
    align = cursor.integer("an alignment")
    if align < 1 or align & align - 1 or align > MAX_SIZE:
        cursor.fail("an alignment is a power of two", token)
    return align


def space_of(directive: Token) -> str:
    """The first word of a directive, which may be a state space."""
    return directive.text[1:].split(".")[0].split("::")[0]


def family(cursor: ModuleCursor) -> int:
    """How many variables `%r<100>` declares; the cursor is after its `<` ("Parameterized Variable Names")."""
    token = cursor.token
    count = cursor.integer("a number of variables")
    if not 0 <= count <= MAX_FAMILY:
        cursor.fail(f"the number of variables is 0 to {MAX_FAMILY:,}", token)
    cursor.expect(">")
    return count


def _variable(
    cursor: ModuleCursor,
    space: Space | None,
    written: Token,
    align: int,
    unit: int,
    pointer: bool,
    linking: Mapping[str, bool],
) -> ModuleVariable:
    name = cursor.expect("name", "a name")
    size: int | None = unit
    if cursor.accept("<"):
        family(cursor)
    lengths: list[int | None] = []
    while cursor.accept("["):
        if cursor.accept("]"):
            lengths.append(None)
            size = None
            continue
        length = constant(cursor)  # "The size of each dimension is a constant expression" ("Array Declarations")
        cursor.expect("]")
        if length < 0 or (size or 1) * length > MAX_SIZE:
            cursor.fail(f"{name.text} cannot have this size", name)
        lengths.append(length)
        size = None if size is None else size * length
    initial = None
    if cursor.accept("="):
        initial, count = read_initial(cursor, written.text[1:], unit, lengths)
        if size is None:
            size = count * unit
    external = linking.get("extern", False)
    return ModuleVariable(
        name.text, space, written.text[1:], align, size, cursor.span(name), initial, pointer, external
    )
