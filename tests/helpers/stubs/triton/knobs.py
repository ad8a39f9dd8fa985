"""The hooks, as `triton.knobs.runtime` has them."""

from __future__ import annotations

from typing import Any


class HookChain:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def add(self, func: Any) -> None:
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: Any) -> None:
        if func in self.calls:
            self.calls.remove(func)

    def __call__(self, *args: Any) -> None:
        for call in self.calls:
            call(*args)


class Runtime:
    jit_post_compile_hook: Any = None

    def __init__(self) -> None:
        self.launch_enter_hook = HookChain()


runtime = Runtime()
