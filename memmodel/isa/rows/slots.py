"""Slots: the kinds of qualifiers that an instruction may carry.

In: nothing. Out: `Slot`, and functions that make the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from memmodel.ptx.vocabulary import Scope, Space, Window


class Need(Enum):
    """When a slot has to be filled. BLOCKS: the column layout has no types and no state spaces to give."""

    OPTIONAL = "optional"
    BLOCKS = "in the block layout"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Slot:
    """One kind of qualifier: an instruction carries at most one of `words`.

    `refused`: words that people write here by mistake, each with the rule and the repair.
    `columns`: those of `words` that only the column layout knows (`refused` may say what blocks write instead).
    `modules`: further words, which only compiled modules may write (`refused` says why litmus tests may not).
    `what` names the kind in messages; `missing`: what is wrong without it and how to repair it, where that says more.
    """

    name: str
    words: tuple[str, ...]
    what: str
    need: Need = Need.OPTIONAL
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    missing: tuple[str, str] | None = None


SCOPES: Mapping[str, Scope] = {scope.name.lower(): scope for scope in Scope}

SPACE_OF = {
    "global": Space.GLOBAL,
    "const": Space.CONST,
    "param": Space.PARAM,
    "param::entry": Space.PARAM,
    "shared": Space.SHARED,
    "shared::cta": Space.SHARED,
    "shared::cluster": Space.SHARED,
}
"""The state space in which the variables are that an instruction with this word accesses."""

WINDOW_OF = {
    "global": Window.GLOBAL,
    "const": Window.CONST,
    "param": Window.PARAM,
    "param::entry": Window.PARAM,
    "local": Window.LOCAL,
    "shared": Window.SHARED_CTA,
    "shared::cta": Window.SHARED_CTA,
    "shared::cluster": Window.SHARED_CLUSTER,
}
"""The window that an instruction with this state space accesses; .shared alone is .shared::cta ("State Spaces")."""

NO_SUCH_SCOPE = {
    "cta::cluster": ("PTX has no scope .cta::cluster", "write .cluster, which reaches the same threads"),
    "gl": (".gl is a level of membar, not a scope", "write .gpu"),
    "device": ("PTX calls this scope .gpu", "write .gpu"),
    "system": ("PTX calls this scope .sys", "write .sys"),
    "block": ("PTX calls this scope .cta", "write .cta"),
}

_KINDS = {
    "acc": "precision", "alayout": "layout of A", "atype": "type", "blayout": "layout of B", "bool": "combination",
    "btype": "type", "clamp": "treatment of coordinates outside the surface", "cmp": "comparison",
    "collector": "collector buffer use", "comp": "component", "completion": "completion mechanism",
    "cop": "cache operator", "cta_group": "CTA group", "ctype": "type", "dim": "number of dimensions",
    "down": "direction", "dst": "destination", "dst_fmt": "format of the destination", "dtype": "type",
    "first": "type of a", "geom": "geometry", "hint": "cache hint", "L1": "L1 eviction priority",
    "L2": "L2 eviction priority", "multicast": "qualifier", "num": "number of repetitions", "op": "operation",
    "phase_type": "phase", "prefetch": "prefetch size", "primary": "primary priority",
    "proxies": "pair of proxies", "query": "attribute", "restrict": "restriction", "rnd": "rounding",
    "scale_vec": "size of the vector of scales", "second": "type of b", "secondary": "secondary priority",
    "sem": "memory semantics", "space": "state space", "src": "source", "src_fmt": "format of the source",
    "stype": "type of the scales", "target": "type of the result", "vec": "vector qualifier",
    "vector": "scale vector size",
}  # fmt: skip
"""What slots are called in messages, where that is not their name."""


def _slot(
    name: str,
    words: tuple[str, ...],
    need: Need,
    what: str = "",
    refused: Mapping[str, tuple[str, str]] | None = None,
    columns: tuple[str, ...] = (),
    modules: tuple[str, ...] = (),
    missing: tuple[str, str] | None = None,
) -> Slot:
    words = words or (() if modules else (name,))
    what = what or _KINDS.get(name) or ("qualifier" if words in ((), (name,)) else name)
    return Slot(name, words, what, need, refused or {}, columns, modules, missing)


def optional(name: str, *words: str, **more: Any) -> Slot:
    """A slot that may be empty; without words, a qualifier that is there or not. `more`: further fields of `Slot`."""
    return _slot(name, words, Need.OPTIONAL, **more)


def needed(name: str, *words: str, **more: Any) -> Slot:
    """A slot that has to be filled."""
    return _slot(name, words, Need.ALWAYS, **more)


def in_blocks(name: str, *words: str, **more: Any) -> Slot:
    """A slot that has to be filled, except in the column layout, such as a type."""
    return _slot(name, words, Need.BLOCKS, **more)


def scope_slot(make: Callable[..., Slot] = optional) -> Slot:
    """The scope of an access, a fence or an atomic. `make`: `optional` or `needed`."""
    return make("scope", *SCOPES, refused=NO_SUCH_SCOPE)
