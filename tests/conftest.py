"""What holds for all tests: none of them sees, or leaves, a verdict in the user's cache, and none is timed."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ["MEMMODEL_CACHE"] = "off"

# A busy machine is no reason to fail: neither a slow example nor a slow draw says anything about the program.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
