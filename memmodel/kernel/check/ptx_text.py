"""A kernel as the text of its PTX, and the arguments that a program hands to it.

In: text, grid, arguments. Out: `KernelVerdict`. This is the door for whatever makes PTX and launches it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.arguments.launches import Extents, launch_of
from memmodel.kernel.check.conductor import check_kernel
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.ptx.module.reader import parse_module, read_module
from memmodel.source import Source


def check_ptx(
    text: str | bytes | os.PathLike[str],
    *,
    grid: Extents,
    args: Sequence[object] | Mapping[str, object] = (),
    block: Extents | None = None,
    cluster: Extents | None = None,
    dynamic_shared: int = 0,
    entry: str | None = None,
    names: Sequence[str] = (),
    nan: bool = True,
    name: str = "<ptx>",
    **options: Any,
) -> KernelVerdict:
    """Judge one launch of a kernel in PTX.

    `text`: the PTX, or the path of a file with it. `args`: what the kernel is called with, in the order of its
    parameters or by their names: arrays (DLPack, `__cuda_array_interface__`, NumPy, PyTorch, `FakeArray`, or anything
    with a dtype and a shape), numbers, `TiledMap`, `Struct`, bytes, None for a null pointer, or the entry of `params`
    of a launch description. Contents of arrays are unknown, but of `Known` ones. `block`: not needed where the entry
    has `.reqntid`. `names`: what reports call the parameters. `nan`: False where no number is NaN. `name`: what reports
    call the text. `options`: those of `check_kernel`. Raises InputError.
    """
    if isinstance(text, os.PathLike):
        module = read_module(text)
    else:
        if isinstance(text, str) and text.endswith(".ptx") and "\n" not in text:
            raise InputError(f"{text} is no PTX; it reads like the path of a file", hint="pathlib.Path(…) is a path")
        source = Source.decode(name, text.rstrip(b"\0")) if isinstance(text, bytes) else Source(name, text)
        module = parse_module(Source(source.name, source.text.replace("\r\n", "\n")))
    launch = launch_of(
        entry_of(module, entry), grid, args, block=block, cluster=cluster, dynamic_shared=dynamic_shared, names=names,
        nan=nan,
    )  # fmt: skip
    return check_kernel(module, launch, entry=entry, **options)
