"""A kernel and its launch, from files to a verdict."""

from memmodel.kernel.check.conductor import check_kernel

__all__ = ["check_kernel"]
