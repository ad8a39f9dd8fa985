"""What loads and stores say of caches, and how wide they are: slots and rules that ld and st share.

In: nothing. Out: slots, rules, targets. Settled here: which hints go together and with which state spaces, and that an
access has 128 bits at most, or 256 in global memory of later architectures. No hint has an effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.isa.call import Call
from memmodel.isa.row import BITS, FLOATS, SIGNED, UNSIGNED, Later, Rule, Slot, type_slot

CACHE_HINT = Slot("hint", ("L2::cache_hint",), "cache hint")
L1 = Slot(
    "L1",
    tuple(f"L1::{w}" for w in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")),
    "L1 eviction priority",
)
L2 = Slot("L2", tuple(f"L2::{w}" for w in ("evict_normal", "evict_first", "evict_last")), "L2 eviction priority")
PREFETCH = Slot("prefetch", ("L2::64B", "L2::128B", "L2::256B"), "prefetch size")
VECTOR = Slot("vec", ("v2", "v4", "v8"), "vector qualifier")
TYPE = type_slot((*BITS, *UNSIGNED, *SIGNED, *FLOATS))

NEEDS = {"L2::cache_hint": 80, **dict.fromkeys(L1.words, 70), **dict.fromkeys(L2.words, 100)}

_LONG = ("b64", "u64", "s64", "f64")
_WORD = ("b32", "u32", "s32", "f32")
PARAMETERS = ("param", "param::entry", "param::func")
NOT_GLOBAL = ("shared", "shared::cta", "shared::cluster", "const", "local", *PARAMETERS)

WIDE = (Later(100, "`.v8`", {"vec": ("v8",)}), Later(100, "`.v4` of 64 bits", {"vec": ("v4",), "type": _LONG}))


def check_policy(call: Call, index: int) -> None:
    """A cache policy is the operand after all others, and goes with .L2::cache_hint only."""
    given, hinted = len(call.operands) > index, call.word("hint") is not None
    if given and not hinted:
        call.fail("a cache policy needs the qualifier .L2::cache_hint", call.operands[index])
    if hinted and not given:
        call.refuse(
            ".L2::cache_hint needs a cache policy as last operand", "hint", "add the operand or drop the qualifier"
        )


def _alone(slot: str, *others: Mapping[str, tuple[str, ...]]) -> tuple[Rule, ...]:
    """A hint is for global memory, and excludes what each of `others` says."""
    named = "{" + slot + "}"
    return (
        Rule(f".{named} is for .global memory", f"drop .{named}", {slot: (), "space": NOT_GLOBAL}, at=slot),
        *(
            Rule(f".{named} and .{{{other}}} exclude each other", f"drop .{named}", {slot: (), **has}, at=slot)
            for has in others
            for other in has
        ),
    )


_MMIO: Mapping[str, tuple[str, ...]] = {"mmio": ()}
_VOLATILE = {"sem": ("volatile",)}

PREFETCH_RULES = _alone("prefetch", _MMIO)

RULES = (
    *_alone("L1", _MMIO, _VOLATILE, {"cop": ()}),
    *_alone("hint", _MMIO, _VOLATILE),
    Rule("a .b128 access is not a vector", "drop .{vec}", {"vec": (), "type": ("b128",)}, at="vec"),
    Rule(
        "a .v8 access has elements of 32 bits",
        "write .v8.b32",
        {"vec": ("v8",), "type": tuple(word for word in TYPE.words if word not in _WORD)},
        at="type",
    ),
    Rule(
        "an access of 256 bits is for .global memory",
        "write .v4, twice",
        {"vec": ("v8",), "space": NOT_GLOBAL},
        at="vec",
    ),
    Rule(
        "an access of 256 bits is for .global memory",
        "write .v2, twice",
        {"vec": ("v4",), "type": _LONG, "space": NOT_GLOBAL},
        at="vec",
    ),
    *(
        Rule(
            ".{L2} is for accesses of 256 bits", "write .v8.b32 or .v4.b64, or drop it", {"L2": (), **has}, lacks, "L2"
        )
        for has, lacks in (
            ({}, ("vec",)),
            ({"vec": ("v2",)}, ()),
            ({"vec": ("v4",), "type": tuple(word for word in TYPE.words if word not in _LONG)}, ()),
        )
    ),
)
