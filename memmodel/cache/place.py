"""Where verdicts are kept.

In: the environment. Out: a folder, or None where nothing is kept. Settled here: `MEMMODEL_CACHE` is a folder, or `off`.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "MEMMODEL_CACHE"
OFF = "off"


def cache_dir() -> Path | None:
    """The folder that `MEMMODEL_CACHE` names, else the user's cache folder for programs; None: it says `off`."""
    told = os.environ.get(VARIABLE, "")
    if told == OFF:
        return None
    if told:
        return Path(told)
    from platformdirs import user_cache_path

    return user_cache_path("memmodel", appauthor=False)
