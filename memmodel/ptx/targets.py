"""Versions of the PTX ISA, and the target architectures that modules name.

In: `9.4` and `sm_90a` as typed. Out: `Version`, `Target`, `PtxLevel`. Settled here: which targets there are, and when
they came (".target": sm_Na is for one architecture alone, sm_Nf for its family).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memmodel.errors import InputError

Version = tuple[int, int]
"""A version of the PTX ISA: (9, 4) is 9.4."""

_FIRST = {
    20: "2.0", 21: "2.0", 30: "3.0", 32: "4.0", 35: "3.1", 37: "4.1", 50: "4.0", 52: "4.1", 53: "4.2", 60: "5.0",
    61: "5.0", 62: "5.0", 70: "6.0", 72: "6.1", 75: "6.3", 80: "7.0", 86: "7.1", 87: "7.4", 88: "9.0", 89: "7.8",
    90: "7.8", 100: "8.6", 101: "8.6", 103: "8.8", 107: "9.4", 110: "9.0", 120: "8.7", 121: "8.8",
}  # fmt: skip
"""The version of PTX that introduced sm_N (".target")."""

_FIRST_ALONE = {90: "8.0"}
"""The version that introduced sm_Na, where sm_N is older."""

_FIRST_FAMILY = "8.8"
"""The version that introduced the suffix f."""

WITH_A, WITH_F = 90, 100
"""The first numbers that have these suffixes."""

FAMILY_100 = frozenset({100, 103, 107, 110})
"""The numbers of the targets with tensor memory."""

FAMILIES = FAMILY_100 | {120, 121}
"""The numbers of all targets that have families."""

RENAMED = {101: 110}
"""Targets that had another number: sm_101 is sm_110 since PTX 9.0."""


def version_of(text: str) -> Version:
    """`9.4` as numbers that compare. Raises InputError for anything else."""
    match = re.fullmatch(r"([1-9][0-9]?)\.([0-9])", text, re.ASCII)
    if match is None:
        raise InputError(f"'{text[:40]}' is not a version of PTX", hint="such as 8.6")
    return int(match[1]), int(match[2])


def in_convergence(target: str) -> bool:
    """True for a target of which all lanes of a warp have to execute the same barrier or `.sync` instruction together
    ("For .target sm_6x or below", of bar, bar.warp.sync, shfl.sync and vote.sync).
    """
    match = re.match(r"sm_(\d+)", target, re.ASCII)
    return match is not None and int(match[1]) < 70


@dataclass(frozen=True, slots=True)
class Target:
    """`sm_90a`: its number and its suffix, "a" (this architecture only), "f" (its family) or none."""

    number: int
    suffix: str = ""

    @staticmethod
    def parse(text: str) -> Target:
        """Raises InputError for what names no target of PTX."""
        match = re.fullmatch(r"sm_([1-9][0-9]{1,2})([af]?)", text, re.ASCII)
        if match is None:
            raise InputError(f"'{text[:40]}' is not a target architecture", hint="such as sm_80, sm_90a or sm_100f")
        return Target(int(match[1]), match[2])

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"

    @property
    def known(self) -> bool:
        """True if PTX 9.4 has this target."""
        least = {"a": WITH_A, "f": WITH_F}.get(self.suffix, 0)
        return self.number in _FIRST and self.number >= least

    @property
    def first(self) -> str | None:
        """The version of PTX that introduced it; None if PTX 9.4 does not have it."""
        if not self.known:
            return None
        first = _FIRST[self.number]
        if self.suffix == "a":
            first = _FIRST_ALONE.get(self.number, first)
        return max(first, _FIRST_FAMILY, key=version_of) if self.suffix == "f" else first


@dataclass(frozen=True, slots=True)
class PtxLevel:
    """The PTX that a module may have: that of a version, for a target. None: of any."""

    version: str | None = None
    target: Target | None = None

    @staticmethod
    def parse(version: str | None, target: str | None) -> PtxLevel:
        """From `--ptx-version` and `--target` as typed. Raises InputError for what PTX does not have together."""
        level = PtxLevel(version, None if target is None else Target.parse(target))
        if version is not None:
            version_of(version)
        if level.target is not None:
            first = level.target.first
            if first is None:
                raise InputError(f"PTX has no target {level.target}", hint="such as sm_80, sm_90a or sm_100f")
            if version is not None and version_of(first) > version_of(version):
                raise InputError(f"{level.target} needs PTX {first}; --ptx-version is {version}")
        return level
