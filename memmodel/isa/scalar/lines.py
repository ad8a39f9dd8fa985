"""Rows of computing instructions, made of the syntax lines of their pages.

In: heads, operands, a lowering function, syntax lines. Out: a Row, whose slots are those that the lines name. Settled
here: which slot a word belongs to, and what litmus tests lack: floating-point numbers, several numbers in one word, and
the qualifiers that only these have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memmodel.isa.call import Call
from memmodel.isa.rows.cases import Rule
from memmodel.isa.rows.row import Effect, Row, Syntax
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import Need, Slot
from memmodel.isa.rows.types import BITS, FLOATS, FOUR_NUMBERS, SIGNED, UNSIGNED, numeric_type
from memmodel.program.ops import Op

HALVES = ("f16", "bf16", "f16x2", "bf16x2")
NO_FLOATS = {
    word: ("floating-point arithmetic is not modelled", "use an integer type") for word in (*HALVES[:2], *FLOATS)
}
"""The message and the hint for a floating-point type in a litmus test."""

_LITMUS_TYPES = (*BITS, "pred", *UNSIGNED, *SIGNED)
_MODULE_TYPES = ("u16x2", "s16x2", "u8x4", "s8x4", *HALVES, *FLOATS, "f32x2", *FOUR_NUMBERS)
_TYPE_SLOTS = {"type": "type", "source": "type of a", "third": "type of b or c", "fourth": "type of c"}
"""The slots of the types in a line from left to right, and what they are called in messages."""

_CHOICES = {
    "rnd": ("rounding", ("rn", "rz", "rm", "rp")),
    "approx": ("precision", ("approx", "full")),
    "mode": ("mode", ("lo", "hi", "wide", "clamp", "wrap", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16")),
    "property": ("property", ("finite", "infinite", "number", "notanumber", "normal", "subnormal")),
}
"""Slots with a choice of words: the name of the slot in messages, and the words. Any other word is a flag.

A syntax line writes `rnd` for all words of that slot.
"""

_SLOT_OF = {word: slot for slot, (_, words) in _CHOICES.items() for word in words}
_FOR_MODULES = ("relu",)
"""Flags that litmus tests lack although integers have them."""


def forms(*lines: str | Syntax) -> tuple[Syntax, ...]:
    """Syntax lines."""
    return tuple(Syntax(line) if isinstance(line, str) else line for line in lines)


def computing(
    heads: str,
    operands: str,
    lower: Callable[[Call], tuple[Op, ...]],
    page: str,
    *lines: str | Syntax,
    rules: tuple[Rule, ...] = (),
    since: Since = FIRST,
    later: Mapping[str, Since] | None = None,
    sizes: Mapping[str, int | str] | None = None,
) -> Row:
    """The row of instructions that assign one register. `page`: the chapter of the PTX ISA that describes them."""
    syntax, names = forms(*lines), tuple(heads.split())
    parsed = [_parts(line) for line in syntax]
    in_litmus = [parts for parts in parsed if any(word in _LITMUS_TYPES for _, words, _ in parts for word in words)]
    return Row(
        names,
        tuple(_slot(name, parsed, in_litmus) for name in _order(parsed)),
        tuple(operands.split()),
        lower if in_litmus else None,
        "none",
        page + ", ".join(names),
        rules,
        ordered=True,
        since=since,
        later=later or {},
        sizes=sizes or {},
        lower_module=None if in_litmus else lower,
        forms=syntax,
        effect=Effect.COMPUTES,
    )


Part = tuple[str, tuple[str, ...], bool]
"""A slot that a line fills, the words that it may have there, and whether it must be filled."""


def _parts(line: Syntax) -> list[Part]:
    types = iter(_TYPE_SLOTS)
    parts: list[Part] = []
    for text in line.text.split():
        words = tuple(text.removesuffix("?").split("|"))
        if numeric_type(words[0]) is not None:
            slot = next(types)
        else:
            slot = _SLOT_OF.get(words[0], words[0])
            words = _CHOICES["rnd"][1] if words == ("rnd",) else words
        parts.append((slot, words, not text.endswith("?")))
    return parts


def _order(parsed: list[list[Part]]) -> list[str]:
    """The slots that lines fill, in the order of the lines."""
    order: list[str] = []
    for parts in parsed:
        place = len(order)
        for slot, _, _ in reversed(parts):
            if slot in order:
                place = order.index(slot)
            else:
                order.insert(place, slot)
    return order


def _slot(name: str, parsed: list[list[Part]], in_litmus: list[list[Part]]) -> Slot:
    """One slot. `in_litmus`: the lines that litmus tests have; if there are none, only modules have the instruction."""

    def listed(lines: list[list[Part]]) -> set[str]:
        return {word for parts in lines for slot, words, _ in parts if slot == name for word in words}

    litmus = {word for word in listed(in_litmus or parsed) if word not in _FOR_MODULES}
    if in_litmus and name in _TYPE_SLOTS:
        litmus &= {*_LITMUS_TYPES}
    known = (*_LITMUS_TYPES, *_MODULE_TYPES) if name in _TYPE_SLOTS else _CHOICES.get(name, ("", (name,)))[1]
    words = tuple(word for word in known if word in litmus)
    others = tuple(word for word in known if word in listed(parsed) - litmus)
    if not all(any(slot == name and needed for slot, _, needed in parts) for parts in in_litmus or parsed):
        need = Need.OPTIONAL
    else:
        need = Need.BLOCKS if in_litmus and (name == "type" or "wide" in words) else Need.ALWAYS
    what = _TYPE_SLOTS.get(name) or _CHOICES.get(name, ("qualifier", ()))[0]
    return Slot(name, words, what, need, NO_FLOATS if name == "type" else {}, modules=others)
