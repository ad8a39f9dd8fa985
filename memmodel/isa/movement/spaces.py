"""Rows of the table: isspacep and cvta, which ask and say in which state space an address lies. None makes an event.

In: a Call. Out: an Assign. Settled here: which addresses belong to which window. A test has one address space, so cvta
leaves an address as it is there; in a compiled module the windows lie apart (`program.windows`). An address outside the
window that it names is undefined ("cvta"). Kernel parameters lie within the window of global memory ("isspacep").
"""

from __future__ import annotations

from memmodel.isa.call import Call
from memmodel.isa.place import within
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import SPACE_OF, in_blocks, needed, optional
from memmodel.program import windows
from memmodel.program.expressions import Apply, Const, Expr
from memmodel.program.ops import Assign, Op, UndefinedIf
from memmodel.ptx.operands import Sym
from memmodel.ptx.vocabulary import U64, Space

_MOVE = "Data Movement and Conversion Instructions: "


def is_space(call: Call) -> tuple[Op, ...]:
    """isspacep: a predicate."""
    address = call.value(call.operands[1])
    return call.assign(call.operands[0], within(call, address, call.word("space") or ""))


def cvta_in_module(call: Call) -> tuple[Op, ...]:
    """cvta in a module: from the addresses of a state space to generic ones, or back.

    nvcc writes .shared for addresses in other CTAs of the cluster too (__cvta_generic_to_shared), which are taken.
    """
    source, word = call.source(call.operands[1], U64), call.word("space") or ""
    generic = source if call.word("to") else windows.generic(source, word)
    moved = windows.relative(source, word) if call.word("to") else generic
    outside = _outside(call, generic, "shared::cluster" if word == "shared" else word)
    if word == Space.LOCAL.value and not call.word("to"):
        outside = windows.beyond_local(source)
    return (
        UndefinedIf(f"{call.head} takes an address in .{word} memory", outside),
        Assign(call.target(call.operands[0], U64), moved),
    )


def _outside(call: Call, address: Expr, space: str) -> Expr:
    """1 if a generic address of cvta lies outside the window of its state space, where it has to lie there.

    Compiled code converts null pointers before it looks at them; the page leaves their result open, and no more.
    """
    outside: Expr = Apply("eq", (within(call, address, space), Const(0)), U64)
    if call.word("to") and not space.startswith(("shared", "param")):
        return Apply("and", (outside, Apply("ne", (address, Const(0)), U64)), U64)
    return outside


def cvta(call: Call) -> tuple[Op, ...]:
    """cvta: an address as it is, in the one address space of a test."""
    source, word = call.operands[1], call.word("space")
    address = call.value(source)
    moved = Assign(call.register(call.operands[0]), address)
    if word is None:
        return (moved,)
    if isinstance(source, Sym):
        space, name = call.root(call.variable(source)).space, source.name
        if space not in (Space.GENERIC, SPACE_OF.get(word)):
            call.fail(f"'{name}' is a .{space.value} variable, not .{word}", source, f"write cvta.{space.value}")
        if not word.startswith("shared"):
            return (moved,)
    return (UndefinedIf(f"{call.head} takes an address in .{word} memory", _outside(call, address, word)), moved)


_NO_32 = {"u32": ("PTX has no 32-bit code any more", "write .u64")}
_SPACES = ("global", "shared", "shared::cta", "shared::cluster", "const", "local", "param", "param::entry")
_LATER = {
    "space=const": Since(20, "3.1"),
    "space=param": Since(70, "7.7"),
    "space=param::entry": Since(70, "8.3"),
    "space=shared::cta": Since(30, "7.8"),
    "space=shared::cluster": Since(90, "7.8"),
}

ROWS = (
    Row(
        ("isspacep",),
        (needed("space", *_SPACES),),
        ("p", "a"),
        is_space,
        "none; p says whether the generic address a lies in that window. No variable of a test is in .local",
        _MOVE + "isspacep",
        sizes={"a": 64},
        of_window=True,
        since=Since(20, "2.0"),
        later=_LATER,
        effect=Effect.COMPUTES,
    ),
    Row(
        ("cvta",),
        (optional("to"), in_blocks("space", *_SPACES), in_blocks("type", "u64", refused=_NO_32)),
        ("d", "a"),
        cvta,
        "none; an address outside that state space is undefined",
        _MOVE + "cvta",
        lower_module=cvta_in_module,
        ordered=True,
        since=Since(20, "2.0"),
        later=_LATER,
        effect=Effect.COMPUTES,
    ),
)
