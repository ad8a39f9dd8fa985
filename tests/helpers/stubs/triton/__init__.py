"""What memmodel needs of Triton, without its compiler: hooks, launches, autotuned kernels, in the protocol of 3.9.

A function is compiled by looking its PTX up: `@triton.jit(ptx=text)`. It is launched by running its Python body.
"""

from __future__ import annotations

from triton import knobs, runtime
from triton.runtime.jit import Autotuner, Config, JITFunction, jit

__all__ = ["Autotuner", "Config", "JITFunction", "jit", "knobs", "runtime"]
