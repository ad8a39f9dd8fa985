"""The active driver: that of one device, or the one that somebody sets."""

from __future__ import annotations

from typing import Any

from triton.backends.compiler import GPUTarget


class Device:
    def get_current_device(self) -> Any:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


class DriverConfig:
    def __init__(self) -> None:
        self._active: Any = None

    @property
    def active(self) -> Any:
        if self._active is None:
            self._active = Device()
        return self._active

    def set_active(self, driver: Any) -> None:
        self._active = driver


driver = DriverConfig()
