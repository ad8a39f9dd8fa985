"""What `MEMMODEL_TRITON=1` does: as soon as the program loads Triton, its launches are watched.

In: the environment. Out: a finder of modules that waits for Triton. This file is loaded by the .pth file that the
package installs, in every process of a person who sets the variable, before the program begins. So it loads nothing
else, and whatever fails in it leaves the program as it was.
"""

from __future__ import annotations

import os
import sys

from memmodel.triton import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TritonFinder:
    """Finds Triton as others find it, and has its launches watched once it is loaded."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """The spec of Triton, whose loader watches; None for all else."""
        if name != "triton" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        try:
            from importlib.util import find_spec

            spec = find_spec("triton")
            if spec is not None and spec.loader is not None:
                spec.loader = TritonLoader(spec.loader)  # type: ignore[assignment]
        except Exception:
            return None
        return spec


class TritonLoader:
    """The loader of Triton, after which its launches are watched."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        """As the loader of Triton."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Load Triton as its own loader does, then watch its launches."""
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        watch()


def watch() -> None:
    """Watch launches as the environment says. Never raises."""
    try:
        from memmodel.triton.installing import install
        from memmodel.triton.options import WatchOptions

        install(WatchOptions.of_text(os.environ.get(VARIABLE, "")))
    except Exception as error:
        print(f"memmodel: launches of Triton are not watched: {error}", file=sys.stderr)


def begin() -> None:
    """Wait for Triton, in the one process of a node that watches. Never raises."""
    if os.environ.get(VARIABLE, "") in ("", "0") or os.environ.get("LOCAL_RANK", "0") != "0":
        return
    if "triton" in sys.modules:
        watch()
    elif not any(isinstance(finder, TritonFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TritonFinder())
