"""What PTX instructions do: one table, and the steps that it turns a thread into."""

from memmodel.isa.program import Program, Step  # isort: skip (the function `program` must be bound after this module)
from memmodel.isa.lower import lower, minimum_target, program, programs, read_instruction, target
from memmodel.isa.table import TABLE
from memmodel.isa.warnings import legality_warnings

__all__ = [
    "TABLE",
    "Program",
    "Step",
    "legality_warnings",
    "lower",
    "minimum_target",
    "program",
    "programs",
    "read_instruction",
    "target",
]
