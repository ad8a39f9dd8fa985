"""Kernels of Triton: judged as their source is, by one call or while a program runs.

    >>> import memmodel.triton
    >>> memmodel.triton.check(kernel, x, y, out, n, grid=(4,), BLOCK=128)

The names below load on first use. Triton itself is loaded only where a kernel is compiled or watched.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from memmodel.triton.compiling import check
    from memmodel.triton.installing import checked, install, uninstall
    from memmodel.triton.judging import TritonResult, TritonResults

VARIABLE = "MEMMODEL_TRITON"
"""The environment variable that watches a program: 1, or options such as `wait=0,launches=3`."""

__all__ = ["TritonResult", "TritonResults", "check", "checked", "install", "uninstall"]

_HOME = {
    "TritonResult": "memmodel.triton.judging",
    "TritonResults": "memmodel.triton.judging",
    "check": "memmodel.triton.compiling",
    "checked": "memmodel.triton.installing",
    "install": "memmodel.triton.installing",
    "uninstall": "memmodel.triton.installing",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'memmodel.triton' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
