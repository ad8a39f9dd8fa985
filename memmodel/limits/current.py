"""What each thread works under now."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weakref import ReferenceType

    from memmodel.limits.sharing import SharedBudget
    from memmodel.limits.watching import Limits


class Current(threading.local):
    """`limits`: the innermost ones; `shared`: the budget that several answers share."""

    limits: ReferenceType[Limits] | None = None
    shared: SharedBudget | None = None


CURRENT = Current()
