"""Targets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GPUTarget:
    backend: str
    arch: int
    warp_size: int
