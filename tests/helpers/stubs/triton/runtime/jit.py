"""Functions that are compiled when they are launched."""

from __future__ import annotations

import hashlib
import inspect
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

from triton import knobs
from triton.runtime import driver

_triton_jit_function_registry: dict[str, Any] = {}


class LazyDict:
    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.extras: list[tuple[Any, Any]] = []

    def get(self) -> dict[str, Any]:
        for func, args in self.extras:
            self.data = self.data | func(*args)
        self.extras.clear()
        return self.data

    def add(self, func: Any, args: Any) -> None:
        self.extras.append((func, args))


class CompiledKernel:
    """A specialization. Its options are those of the launch that are no arguments."""

    def __init__(self, fn: Any, signature: dict[str, Any], constants: dict[Any, Any], options: dict[str, Any]) -> None:
        target = driver.active.get_current_target()
        self.src = SimpleNamespace(fn=fn, signature=signature, constants=constants)
        self.asm = {"ptx": fn.ptx(options) if callable(fn.ptx) else fn.ptx}
        key = repr((self.asm["ptx"], signature, constants, sorted(options.items()), target))
        self.hash = hashlib.sha256(key.encode()).hexdigest()
        self.name = fn.entry
        self.metadata = SimpleNamespace(
            name=fn.entry, hash=self.hash, target=target, shared=0, num_ctas=1, num_stages=3, tensordesc_meta=[],
            **{"num_warps": 4, **options},
        )  # fmt: skip

    def launch_metadata(self, grid: Any, *args: Any) -> LazyDict:
        lazy = LazyDict({"name": self.name})
        if self.src.fn.launch_metadata is not None:
            named = dict(zip(self.src.fn.arg_names, args, strict=True))
            lazy.add(self.src.fn.launch_metadata, (grid, self.metadata, named))
        return lazy


class JITFunction:
    def __init__(self, fn: Any, ptx: Any, entry: str = "k", launch_metadata: Any = None) -> None:
        self.fn, self.ptx, self.entry = fn, ptx, entry
        self.__name__ = fn.__name__
        self.launch_metadata = launch_metadata
        self.signature = inspect.signature(fn)
        self.arg_names = list(self.signature.parameters)
        self.constants = [name for name in self.arg_names if name.isupper()]
        self.device_caches: Any = defaultdict(lambda: ({}, {}))
        _triton_jit_function_registry[f"{fn.__module__}:{fn.__qualname__}:{id(self)}"] = self

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        options = {name: kwargs.pop(name) for name in list(kwargs) if name not in self.arg_names}
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
        signature = {name: "constexpr" if name in self.constants else _kind(value) for name, value in values.items()}
        constants = {(self.arg_names.index(name),): values[name] for name in self.constants}
        key = repr((signature, constants, options))
        device = driver.active.get_current_device()
        kernel = self.device_caches[device][0].get(key)
        if kernel is None:
            kernel = self.device_caches[device][0][key] = CompiledKernel(self, signature, constants, options)
            if knobs.runtime.jit_post_compile_hook is not None:
                info = SimpleNamespace(jit_function=self)
                knobs.runtime.jit_post_compile_hook(key=key, repr="", fn=info, compile={}, is_manual_warmup=warmup)
        if not warmup:
            grid = grid(values) if callable(grid) else grid
            knobs.runtime.launch_enter_hook(kernel.launch_metadata(grid, *values.values()))
            self.fn(**values)
        return kernel


def _kind(value: Any) -> str:
    return "*fp32" if hasattr(value, "data_ptr") else "fp32" if isinstance(value, float) else "i32"


def jit(**options: Any) -> Any:
    return lambda fn: JITFunction(fn, **options)


class Config:
    def __init__(self, kwargs: dict[str, Any], num_warps: int = 4, pre_hook: Any = None) -> None:
        self.kwargs, self.num_warps, self.pre_hook = kwargs, num_warps, pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        return {**self.kwargs, "num_warps": self.num_warps}

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())


class Autotuner:
    def __init__(self, fn: Any, configs: list[Config]) -> None:
        self.fn, self.configs, self.arg_names = fn, configs, fn.arg_names
