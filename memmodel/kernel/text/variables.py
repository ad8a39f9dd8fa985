"""Declarations of variables and parameters, with their sizes and first contents.

In: a Cursor behind the state space. Out: `ModuleVariable`s.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.kernel.text.lexer import Cursor, PtxToken, integer_of
from memmodel.kernel.text.syntax import ModuleVariable

SPACES = frozenset({"global", "const", "shared", "local", "param", "tex"})
MAX_SIZE = 1 << 48
_WIDTHS = {
    "pred": 1, "b1": 1, "f16x2": 32, "bf16": 16, "bf16x2": 32, "tf32": 32, "e4m3": 8, "e5m2": 8,
    "e4m3x2": 16, "e5m2x2": 16, "texref": 64, "samplerref": 64, "surfref": 64,
}  # fmt: skip


def type_of(cursor: Cursor, token: PtxToken) -> tuple[str, int]:
    """Kind and width in bits of a type."""
    word = token.text[1:]
    if word in _WIDTHS:
        return ("pred" if word == "pred" else "f"), _WIDTHS[word]
    if word[:1] in "busf" and word[1:] in ("8", "16", "32", "64", "128"):
        return word[0], int(word[1:])
    cursor.fail(f"{token.text} is no type", token)


def declarations(
    cursor: Cursor, space: PtxToken, linking: Mapping[str, bool], *, parameter: bool = False
) -> list[ModuleVariable]:
    """One directive: `.align 4 .b8 a[16], b;`. As a parameter, one variable without semicolon."""
    where = space.text[1:].split(".")[0].split("::")[0]
    words = space.text[1:].split(".")[1:]
    align, lanes, pointer = 0, 1, False
    written: PtxToken | None = None
    while written is None:
        token = cursor.expect("dot", "a type")
        if token.text == ".align":
            align = cursor.integer("an alignment")
        elif token.text == ".ptr":
            pointer = True
        elif pointer and token.text[1:] in SPACES:
            continue
        elif token.text in (".v2", ".v4", ".v8"):
            lanes = int(token.text[2:])
        elif token.text == ".attribute":
            _skip_parentheses(cursor)
        else:
            written = token
    del words
    type_width = type_of(cursor, written)[1]
    # A pointer parameter says behind its type what it points to: `.param .u64 .ptr .global .align 1 name`.
    while cursor.next.kind == "dot":
        token = cursor.take()
        if token.text == ".ptr":
            pointer = True
        elif token.text == ".align":
            cursor.integer("an alignment")
        elif token.text[1:] not in SPACES:
            cursor.fail(f"{token.text} is not expected here", token)
    unit = max(1, type_width * lanes // 8)
    found: list[ModuleVariable] = []
    while True:
        found.append(_one(cursor, where, written, align or unit, unit, pointer, linking))
        if parameter or not cursor.accept(","):
            break
    if not parameter:
        cursor.expect(";", "',' or ';'")
    return found


def _one(
    cursor: Cursor, space: str, written: PtxToken, align: int, unit: int, pointer: bool, linking: Mapping[str, bool]
) -> ModuleVariable:
    name = cursor.expect("name", "a name")
    size: int | None = unit
    if cursor.accept("<"):
        cursor.integer("a number of variables")
        cursor.expect(">")
    while cursor.accept("["):
        if cursor.accept("]"):
            size = None
            continue
        length = cursor.integer("a length")
        cursor.expect("]")
        if length < 0 or (size or 1) * length > MAX_SIZE:
            cursor.fail(f"{name.text} cannot have this size", name)
        size = None if size is None else size * length
    content = None
    if cursor.accept("="):
        content, count = _initial(cursor, unit)
        if size is None:
            size = count * unit
    external = linking.get("extern", False)
    return ModuleVariable(
        name.text, space, written.text[1:], align, size, cursor.span(name), content, pointer, external
    )


def _initial(cursor: Cursor, unit: int) -> tuple[bytes | None, int]:
    """The initial values: as bytes if all are integers, and how many there are."""
    values: list[int | None] = []
    depth = 0
    while True:
        token = cursor.take()
        if token.kind == "{":
            depth += 1
        elif token.kind == "}":
            depth -= 1
        elif token.kind == "number":
            values.append(integer_of(token.text))
        elif token.kind == "name":
            values.append(None)
        elif token.kind not in (",", "-", "+", "(", ")"):
            cursor.fail("'}' is expected here", token)
        elif token.kind == "-":
            negative = integer_of(cursor.expect("number", "a number").text)
            values.append(None if negative is None else -negative)
        if depth <= 0:
            break
    known = [one for one in values if one is not None]
    mask = (1 << unit * 8) - 1
    whole = len(known) == len(values)
    return (b"".join((one & mask).to_bytes(unit, "little") for one in known) if whole else None), len(values)


def _skip_parentheses(cursor: Cursor) -> None:
    cursor.expect("(")
    depth = 1
    while depth:
        token = cursor.take()
        if token.kind == "end":
            cursor.fail("')' is expected here", token)
        depth += (token.kind == "(") - (token.kind == ")")
