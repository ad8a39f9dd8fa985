"""Steps that only the warps of compiled modules make.

In: nothing. Out: `WarpOp` and its kinds. A litmus thread stands for its warp, and a matrix is the bytes behind an
address there, so that such an instruction lowers to other steps in a litmus test; no engine of those sees these.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.base.labels import Access
from memmodel.program.regions import LaneRows, MatrixLines


@dataclass(frozen=True, slots=True)
class Forget:
    """The registers receive values that nobody knows: of floating point, or of matrices."""

    registers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MoveMatrix:
    """A warp moves matrices between its registers and memory; what it loads or leaves, nobody knows.

    `registers`: those that receive elements. Each byte is moved by one lane.
    """

    label: Access
    region: LaneRows | MatrixLines
    registers: tuple[str, ...] = ()


WarpOp = Forget | MoveMatrix
"""Steps that only the warps of compiled modules make."""
