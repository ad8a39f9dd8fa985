"""A kernel and its launch, from files to a verdict."""

from memmodel.kernel.check.conductor import check_kernel
from memmodel.kernel.check.ptx_text import check_ptx

__all__ = ["check_kernel", "check_ptx"]
