"""A litmus test as a PTX module that ptxas accepts, and the way back from its errors to the litmus file."""

from memmodel.emit.module import Module, emit
from memmodel.emit.ptxas import Assembler, Complaint
from memmodel.emit.target import Target, oldest_target

__all__ = ["Assembler", "Complaint", "Module", "Target", "emit", "oldest_target"]
