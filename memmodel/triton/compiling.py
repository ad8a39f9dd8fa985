"""A kernel of Triton compiled without a GPU, and each of its specializations judged.

In: a function with @triton.jit, autotuned or not, and what it is called with. Out: `TritonResults`. Triton compiles by
its own `warmup`, for a device that is not there: a driver that knows its target and nothing else stands in for the one
of the machine while it compiles.
"""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.arguments.arrays import ArrayFacts, array_facts
from memmodel.kernel.arguments.kinds import Known
from memmodel.triton.calls import TritonCall, call_of
from memmodel.triton.judging import TritonJudge, TritonResult, TritonResults
from memmodel.triton.options import SECONDS

Grid = int | Sequence[int] | Callable[[dict[str, Any]], Any]

_COMPILING = threading.RLock()
"""Only one thread at a time has a driver that stands in."""


def check(
    fn: Any,
    *args: object,
    grid: Grid,
    target: tuple[str, int] = ("cuda", 100),
    model: str | None = None,
    seconds: float = SECONDS,
    kept: bool = True,
    **kwargs: object,
) -> TritonResults:
    """Compile a kernel for a target and judge its launch. No GPU is needed.

    `args`, `kwargs`: what the kernel is called with, its constants and options such as `num_warps` included. Tensors
    may be `memmodel.FakeArray(shape, dtype, strides)`, or anything else that `check_ptx` takes. `grid`: as between the
    brackets of a launch. `target`: the backend and the compute capability, such as 90 or 100. Of an autotuned kernel,
    every configuration is judged. `model` None: the default, and where something is found
    under it, `as-compilers-rely`. `seconds`: of the processor, for each verdict. `kept`: verdicts
    are looked up and kept on disk. Raises InputError for what cannot be compiled.
    """
    judge = TritonJudge(model, seconds, kept)
    results: list[TritonResult] = []
    for case in _cases(fn, args, kwargs):
        if isinstance(case, TritonResult):
            results.append(case)
            continue
        call = _compiled(case, grid, target)
        results.append(call if isinstance(call, TritonResult) else judge.result(call))
    return TritonResults(tuple(results))


@dataclass(frozen=True, slots=True)
class _Case:
    """One configuration: the function below all decorators, and its arguments by name. `config`: as a label."""

    fn: Any
    bound: Mapping[str, object]
    options: Mapping[str, object]
    config: str = ""


def _cases(fn: Any, args: Sequence[object], kwargs: Mapping[str, object]) -> Iterator[_Case | TritonResult]:
    """The configurations of an autotuned kernel; only one of any other."""
    names = list(getattr(fn, "arg_names", ()))
    if not names or not hasattr(fn, "fn"):
        raise InputError(f"{_name(fn)} is no kernel of Triton", hint="a function with @triton.jit above it")
    configs = getattr(fn, "configs", None)
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if configs is not None:
        for config in configs:
            chosen = config.all_kwargs() if hasattr(config, "all_kwargs") else dict(config.kwargs)
            merged = {
                name: copy.copy(value) if hasattr(value, "block_shape") else value for name, value in given.items()
            }
            merged |= chosen
            if getattr(config, "pre_hook", None) is not None:
                try:
                    config.pre_hook(merged)
                except Exception as error:
                    why = f"the pre_hook of the configuration failed: {error}"
                    yield TritonResult(_name(fn), str(config), "refused", why)
                    continue
            for case in _cases(fn.fn, (), merged):
                yield case if isinstance(case, TritonResult) else _Case(case.fn, case.bound, case.options, str(config))
        return
    if hasattr(fn, "values") and not hasattr(fn, "device_caches"):
        for name, compute in fn.values.items():
            given[name] = compute(given)
        yield from _cases(fn.fn, (), given)
        return
    parameters = [name for name in given if name in names]
    try:
        bound = fn.signature.bind(**{name: given[name] for name in parameters})
    except TypeError as error:
        raise InputError(f"{_name(fn)}: {error}", hint=f"its arguments: {', '.join(names)}") from error
    bound.apply_defaults()
    options = {name: value for name, value in given.items() if name not in names}
    yield _Case(fn, dict(bound.arguments), options)


def _name(fn: Any) -> str:
    while hasattr(fn, "fn") and not hasattr(fn, "__name__"):
        fn = fn.fn
    return str(getattr(fn, "__name__", None) or type(fn).__name__)


def _compiled(case: _Case, grid: Grid, target: tuple[str, int]) -> TritonCall | TritonResult:
    """The launch of one configuration, or why there is none. Raises InputError."""
    tensors = {name: _tensor(value) for name, value in case.bound.items()}
    sizes = grid(dict(case.bound)) if callable(grid) else grid
    sizes = (sizes,) if isinstance(sizes, int) else tuple(int(size) for size in sizes)
    try:
        with _target(target), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = case.fn.warmup(**tensors, **case.options, grid=sizes)
            kernel = kernel.result() if hasattr(kernel, "result") and not hasattr(kernel, "asm") else kernel
    except InputError:
        raise
    except Exception as error:
        text = f"Triton did not compile it for {target[0]} {target[1]}: {error}"
        return TritonResult(_name(case.fn), case.config, "refused", text)
    call = call_of(kernel, sizes, tensors)
    if 0 in sizes:
        return TritonResult(call.name, call.label, "clean", "nothing is launched: the grid is empty")
    return call


class _Pointer:
    """An array as Triton asks for it: a type and an address."""

    def __init__(self, value: object, facts: ArrayFacts) -> None:
        self.facts = facts
        self.dtype = _type_name(value, facts)
        self.shape = facts.shape

    def data_ptr(self) -> int:
        """Its address; 0, which is aligned in every way, if it lies nowhere."""
        return self.facts.address or 0

    def stride(self) -> tuple[int, ...]:
        """In elements."""
        return self.facts.strides

    def element_size(self) -> int:
        """In bytes."""
        return self.facts.element_bytes

    def ptr_range(self) -> int:
        """Bytes."""
        return self.facts.bytes


def _type_name(value: object, facts: ArrayFacts) -> str:
    """The type of an array as Triton spells it; an unsigned type if it is not known."""
    if isinstance(value, Known):
        return _type_name(value.array, facts)
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        try:
            letter = memoryview(value).format[-1:]  # type: ignore[arg-type]
        except TypeError:
            letter = "I"
        kind = "fp" if letter in "efd" else "int" if letter.islower() else "uint"
        return f"{kind}{8 * facts.element_bytes}"
    return str(getattr(dtype, "name", None) or dtype).rpartition(".")[2]


def _tensor(value: object) -> object:
    """What Triton is called with: what has an address and a type is left as it is."""
    if value is None or isinstance(value, bool | int | float | str) or hasattr(value, "data_ptr"):
        return value
    if isinstance(value, tuple):
        members: list[Any] = [_tensor(member) for member in value]
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    if hasattr(value, "block_shape"):
        return value
    try:
        facts = array_facts(value)
    except InputError:
        if isinstance(value, Known):
            raise
        return value
    return value if facts is None else _Pointer(value, facts)


@contextmanager
def _target(target: tuple[str, int]) -> Iterator[None]:
    """Triton compiles for this target, whatever the machine has. Raises InputError where there is no Triton."""
    try:
        from triton.backends.compiler import GPUTarget
        from triton.runtime import driver
    except ImportError as error:
        raise InputError(f"Triton cannot be loaded: {error}", hint="pip install triton") from error
    backend, capability = target
    with _COMPILING:
        before = driver.__dict__.get("_active", driver.__dict__.get("active"))
        driver.set_active(_NoDevice(GPUTarget(backend, int(capability), 32)))
        try:
            yield
        finally:
            if before is None and "_active" in driver.__dict__:
                driver._active = None
            else:
                driver.set_active(before)


class _NoDevice:
    """A driver of Triton for a device that is not there. What it cannot do, compiling does not need."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        """What is compiled for."""
        return self._target

    def get_current_device(self) -> str:
        """A name of its own for each target, so that what is compiled for one is taken for no other."""
        return f"memmodel {self._target.backend} {self._target.arch}"

    def get_current_stream(self, device: object) -> int:
        """There is none."""
        return 0

    def map_python_to_cpp_type(self, kind: str) -> str:
        """No launcher is built."""
        return kind
