"""Names that models of other architectures use: what they mean for a PTX test.

In: the heading of a model. Out: the definition of such a name, from axioms/names. Settled here: which architecture a
heading speaks of, since `A` is an atomic access to one and an acquire to the next; and which names may be empty.

A name is looked up here only if neither the model nor the base vocabulary has it. Files of one architecture come
before `any.cat`, and their definitions of base names take the place of these: what Vulkan calls ATOM is not an `atom`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache

from memmodel.base.resources import axioms_dir
from memmodel.cat.text import tree
from memmodel.cat.text.parser import parse
from memmodel.errors import InternalError
from memmodel.source import Source

NAMES = "names"

_ARCHITECTURES = (
    ("ptx", r"ptx"),
    ("vulkan", r"vulkan|spir-?v"),
    ("opencl", r"opencl"),
    ("riscv", r"risc"),
    ("mips", r"mips"),
    ("power", r"power|ppc"),
    ("linux", r"linux|lkmm|kernel|bpf"),
    ("arm", r"arm|aarch|qualcomm"),
    ("x86", r"x86|tso"),
    ("vmm", r"\bvmm\b"),
    ("c", r"\bc\b|c11|c\+\+"),
)
"""What a heading says of the architecture; the first that matches counts."""

_TYPO = 0.85
"""A name that is so like a known one is a mistake."""


class World:
    """The names of one architecture and those of all."""

    def __init__(self, heading: str = "") -> None:
        named = (name for name, words in _ARCHITECTURES if re.search(words, heading, re.IGNORECASE))
        self.architecture = next(named, "")
        self.own: Mapping[str, tree.Binding] = {}
        if self.architecture and (axioms_dir() / NAMES / f"{self.architecture}.cat").is_file():
            self.own = _names(self.architecture)

    def binding(self, name: str) -> tree.Binding | None:
        """The definition of a name, if it has one here."""
        return self.own.get(name) or _names("any").get(name)

    def may_be_empty(self, name: str, known: Iterable[str]) -> bool:
        """True for a set that some architecture may have. Such names begin with a capital letter."""
        if not name[0].isupper() or self.architecture == "ptx":
            return False
        return len(name) < 4 or not difflib.get_close_matches(name, list(known), n=1, cutoff=_TYPO)


@cache
def _names(file: str) -> Mapping[str, tree.Binding]:
    path = axioms_dir() / NAMES / f"{file}.cat"
    bindings: dict[str, tree.Binding] = {}
    for statement in parse(Source(f"axioms/{NAMES}/{file}.cat", Source.read(path).text)).statements:
        if not isinstance(statement, tree.Let):
            raise InternalError(f"{path.name} has something other than definitions")
        bindings.update({binding.name: binding for binding in statement.bindings})
    return bindings
