"""A litmus test as a PTX module that ptxas accepts, and the way back from its errors to the litmus file."""

from memmodel.emit.module import EmittedModule, emit
from memmodel.emit.ptxas import Assembler, Complaint
from memmodel.emit.target import oldest_target
from memmodel.ptx.targets import Target

__all__ = ["Assembler", "Complaint", "EmittedModule", "Target", "emit", "oldest_target"]
