"""Litmus tests: text to `LitmusTest` and back, in two layouts of one language."""

from memmodel.litmus.parse import parse_litmus
from memmodel.litmus.printer import print_litmus

__all__ = ["parse_litmus", "print_litmus"]
