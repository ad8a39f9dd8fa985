"""What loads and stores say of caches, and how wide they are: slots and rules that ld and st share.

In: nothing. Out: slots, rules, targets. Settled here: which hints go together and with which state spaces, and that an
access has 128 bits at most, or 256 in global memory of later architectures. No hint has an effect.
"""

from __future__ import annotations

from memmodel.isa.rows.cases import Rule, terms
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import in_blocks, optional
from memmodel.isa.rows.types import BITS, FLOATS, SIGNED, UNSIGNED

CACHE_HINT = optional("hint", "L2::cache_hint")
L1 = optional(
    "L1", *(f"L1::{w}" for w in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate"))
)
L2 = optional("L2", *(f"L2::{w}" for w in ("evict_normal", "evict_first", "evict_last")))
PREFETCH = optional("prefetch", "L2::64B", "L2::128B", "L2::256B")
VECTOR = optional("vec", "v2", "v4", "v8")
TYPE = in_blocks("type", *BITS, *UNSIGNED, *SIGNED, *FLOATS)

LATER = {"hint": Since(80, "7.4"), "L1": Since(70, "7.4"), "L2": Since(100, "8.8")}

LONG = "b64|u64|s64|f64"
PARAMETERS = ("param", "param::entry", "param::func")

WIDE = dict.fromkeys(("vec=v8", f"vec=v4 type={LONG}"), Since(100, "8.8"))


def _alone(slot: str, *others: str) -> tuple[Rule, ...]:
    """A hint is for global memory, and excludes each of the cases `others`, which name one slot."""
    named = "{" + slot + "}"
    excluded = ((case, "{" + terms(case)[0].slot + "}") for case in others)
    hint = f"drop .{named}"
    return (
        Rule(f".{named} is for .global memory", hint, f"space!=global {slot}"),
        *(Rule(f".{named} and .{other} exclude each other", hint, f"{case} {slot}") for case, other in excluded),
    )


PREFETCH_RULES = _alone("prefetch", "mmio")
_WRONG_WIDTH = (".{L2} is for accesses of 256 bits", "write .v8.b32 or .v4.b64, or drop it")

RULES = (
    *_alone("L1", "mmio", "sem=volatile", "cop"),
    *_alone("hint", "mmio", "sem=volatile"),
    Rule("a .b128 access is not a vector", "drop .{vec}", "type=b128 vec"),
    Rule("a .v8 access has elements of 32 bits", "write .v8.b32", "vec=v8 type!=b32|u32|s32|f32"),
    Rule("an access of 256 bits is for .global memory", "write .v4, twice", "space!=global vec=v8"),
    Rule("an access of 256 bits is for .global memory", "write .v2, twice", f"type={LONG} space!=global vec=v4"),
    *(Rule(*_WRONG_WIDTH, f"{case} L2") for case in ("!vec", "vec=v2", f"vec=v4 type!={LONG}")),
)
