"""Several launches, one after the other in a stream: `check_launches`."""

from memmodel.kernel.sequence.launches import check_launches

__all__ = ["check_launches"]
