"""What holds for all tests: none of them sees, or leaves, a verdict in the user's cache, and none is timed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

os.environ["MEMMODEL_CACHE"] = "off"

# For `benchmarks`; last, so that an installed memmodel is the one that is tested.
sys.path.append(str(Path(__file__).resolve().parent.parent))

# A busy machine is no reason to fail: neither a slow example nor a slow draw says anything about the program.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
