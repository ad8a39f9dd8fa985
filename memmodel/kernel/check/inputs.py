"""What is asked of a kernel: its entry, the CTAs that are run, the models of other readings.

In: a module, a launch, names. Out: as above. What is wrong with them raises InputError.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.cat.decisions import decisions
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model
from memmodel.errors import InputError
from memmodel.isa.module import missing_at
from memmodel.kernel.launch import Launch
from memmodel.kernel.question.entries import entry_of as entry_of
from memmodel.kernel.trace.indices import index_of, number_of
from memmodel.ptx.module.syntax import PtxModule
from memmodel.ptx.targets import PtxLevel, Target

SMALL = 8192
"""Threads of a launch whose CTAs are all run."""


def chosen_ctas(launch: Launch, wanted: Sequence[tuple[int, int, int]]) -> tuple[int, ...]:
    """The numbers of the CTAs to run, with all CTAs of their clusters; empty: all. `wanted`: their indices."""
    grid, size = launch.grid, launch.cluster
    count = grid[0] * grid[1] * grid[2]
    if not wanted:
        if count * launch.threads <= SMALL or count <= 2 * size[0] * size[1] * size[2]:
            return ()
        near = size[0] if grid[0] > size[0] else 0
        wanted = [(0, 0, 0), (near, 0 if near else size[1] if grid[1] > size[1] else 0, 0)]
    numbers: set[int] = set()
    for index in wanted:
        if any(not 0 <= i < extent for i, extent in zip(index, grid, strict=True)):
            raise launch.wrong(f"the grid {'×'.join(map(str, grid))} has no CTA {','.join(map(str, index))}")
        first = [i // extent * extent for i, extent in zip(index, size, strict=True)]
        for rank in range(size[0] * size[1] * size[2]):
            inside = index_of(rank, size)
            numbers.add(number_of([a + b for a, b in zip(first, inside, strict=True)], grid))
    return tuple(sorted(numbers)) if len(numbers) < count else ()


def reading_models() -> tuple[tuple[str, str, Model], ...]:
    """Every reading of the documents: its name, its answer, its model."""
    return tuple(
        (f"{decision.number} {reading.name}", reading.answer, load_model(reading.model))
        for decision in decisions()
        for reading in decision.readings
        if reading.model is not None
    )


def younger_words(module: PtxModule) -> list[str]:
    """Notes on words that the version or the target of a module does not have, each at its first line. ptxas refuses
    such a module; a verdict takes the words as a later version defines them.
    """
    version = f"{module.version[0]}.{module.version[1]}"
    try:
        target = Target.parse(module.target)
    except InputError:
        return []
    level = PtxLevel(version, target if target.known else None)
    notes: dict[str, int] = {}
    for function in module.functions.values():
        for instruction in function.body or ():
            for text in missing_at(instruction.opcode, len(instruction.operands), level):
                notes.setdefault(text, instruction.line)
    says = f"the module says PTX {version} and {target}, and ptxas would refuse it"
    return [f"{text} at line {line}; {says}" for text, line in notes.items()]
