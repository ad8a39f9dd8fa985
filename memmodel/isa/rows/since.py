"""The versions of PTX and the targets that have an instruction or a spelling of it.

In: nothing. Out: `Since`.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.ptx.targets import RENAMED, WITH_F, Target


@dataclass(frozen=True, slots=True)
class Since:
    """What has an instruction or a spelling ("PTX ISA Notes", "Target ISA Notes").

    `sm`: targets from this number on; the table begins with sm_20. `version`: the PTX ISA that introduced it, `9.4`.
    `families`: if it has numbers, only sm_Na and sm_Nf of these, and of those in `alone` only sm_Na. `until`: the last
    number that has it; 0: there is none.
    """

    sm: int = 0
    version: str = ""
    families: frozenset[int] = frozenset()
    alone: frozenset[int] = frozenset()
    until: int = 0

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of which only targets with a suffix have it; empty if every later one has it."""
        return self.families | self.alone

    def has(self, target: Target) -> bool:
        """True if modules for this target may have it."""
        number = RENAMED.get(target.number, target.number)
        if number < self.sm or (self.until and number > self.until):
            return False
        if not self.numbers:
            return True
        return bool(target.suffix) and number in (self.numbers if target.suffix == "a" else self.families)

    @property
    def targets(self) -> str:
        """The targets, for people: `sm_90`, `sm_90a`, `sm_100a, sm_100f, sm_103a or sm_103f`."""
        if self.until:
            return f"sm_{self.sm} to sm_{self.until}"
        if not self.numbers:
            return f"sm_{self.sm}"
        names = []
        for number in sorted(self.numbers):
            names.append(f"sm_{number}a")
            if number in self.families and number >= WITH_F:
                names.append(f"sm_{number}f")
        return ", ".join(names[:-1]) + " or " * (len(names) > 1) + names[-1]


FIRST = Since(20, "1.0")
"""What PTX has had from the beginning."""
