"""What holds for all tests: none of them sees, or leaves, a verdict in the user's cache."""

from __future__ import annotations

import os

os.environ["MEMMODEL_CACHE"] = "off"
