"""Accesses of different sizes that overlap: found before any engine runs, and never given a verdict they cannot have.

In: LitmusTest. Out: `mixed` variables, and the test with each of them taken as one place. "Limitations on Mixed-size
Data-races": where a race between partly overlapping accesses is possible, the axioms say nothing. With every mixed
variable as one place the engines find such races exactly as they find others (order does not depend on the bytes); what
values an execution without such a race has, memmodel does not model, so the answer is undecided either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from memmodel.answer import Answer, Observation, Race
from memmodel.errors import InputError
from memmodel.isa import ops, programs
from memmodel.isa.memory import element_bytes
from memmodel.litmus.syntax import Instruction, LitmusTest, Variable, root_of

FLAG = "mixed-size-race"


@dataclass(frozen=True, slots=True)
class Footprint:
    """The bytes first … first+size of a variable that an instruction accesses."""

    name: str
    first: int
    size: int
    instruction: Instruction

    def overlaps(self, other: Footprint) -> bool:
        return (
            self.name == other.name and self.first < other.first + other.size and other.first < self.first + self.size
        )

    def same_bytes(self, other: Footprint) -> bool:
        return (self.first, self.size) == (other.first, other.size)


def footprints(test: LitmusTest) -> tuple[Footprint, ...]:
    """The accesses whose address and size the text gives; those through computed addresses are left out."""
    variables = {variable.name: variable for variable in test.variables}
    return tuple(
        footprint
        for program in programs(test)
        for step in program.steps
        for footprint in _of_step(step.op, step.instruction, variables)
    )


def _of_step(op: ops.Op, instruction: Instruction, variables: dict[str, Variable]) -> Iterator[Footprint]:
    parts: tuple[object, ...] = op.parts if isinstance(op, ops.Issue) else (op,)
    for part in parts:
        if not isinstance(part, ops.Read | ops.Write | ops.Part) or not isinstance(part.address, ops.AddressOf):
            continue
        root = root_of(variables, part.address.name) if part.address.name in variables else None
        if root is None or root.type is None or "M" not in part.event.tags or "TMEM" in part.event.tags:
            continue
        size = element_bytes(root) if part.width is None or root.tensormap is not None else part.width // 8
        yield Footprint(root.name, part.address.offset, size, instruction)


def mixed(test: LitmusTest) -> frozenset[str]:
    """Variables with overlapping accesses of different extent.

    Raises InputError if all accesses to a variable agree with each other but not with its declared element.
    """
    variables = {variable.name: variable for variable in test.variables}
    if any(variable.one_place for variable in test.variables):
        return frozenset()
    found = footprints(test)
    names = frozenset(a.name for a in found for b in found if a.overlaps(b) and not a.same_bytes(b))
    for access in found:
        size = element_bytes(variables[access.name])
        if access.name not in names and (access.size != size or access.first % size):
            raise InputError(
                f"this access has {access.size} bytes at {access.name}+{access.first}, where elements have {size}",
                access.instruction.span,
                hint=f"declare {access.name} with elements of {access.size} bytes",
            )
    return names


def as_one_place(test: LitmusTest, names: frozenset[str]) -> LitmusTest:
    """The test with each of these variables taken as a single place, whatever bytes an access touches."""
    variables = tuple(replace(v, one_place=True) if v.name in names else v for v in test.variables)
    return replace(test, variables=variables)


def judge(test: LitmusTest, names: frozenset[str], coarse: Answer, *, races_told: bool) -> Answer:
    """The answer for a test with mixed sizes, from the answer for `as_one_place`: the races between different sizes."""
    found = footprints(test)
    races = tuple(replace(race, flag=FLAG) for race in coarse.races if race.flag == "data-race" and _mixes(race, found))
    listed = ", ".join(sorted(names))
    if races:
        reason = "a mixed-size data race switches the axioms off (Limitations on Mixed-size Data-races)"
    else:
        none = "no race between them" if races_told else "this model reports no races"
        reason = f"accesses of different sizes overlap in {listed}: {none}, and their values are not modelled"
    others = tuple(race for race in coarse.races if race.flag != "data-race")
    flags = tuple(flag for flag in coarse.flags if flag != "data-race") + ((FLAG,) if races else ())
    return replace(
        coarse,
        observation=Observation.UNDECIDED,
        witness=None,
        counter=None,
        axioms=(),
        races=races + others,
        flags=flags,
        reason=reason,
    )


def _mixes(race: Race, found: tuple[Footprint, ...]) -> bool:
    first = [one for one in found if one.instruction.span == race.first.span]
    second = [one for one in found if one.instruction.span == race.second.span]
    return any(a.overlaps(b) and not a.same_bytes(b) for a in first for b in second)
