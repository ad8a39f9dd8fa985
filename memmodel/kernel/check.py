"""From files to a verdict.

In: paths. Out: `KernelVerdict`; `entry_of` chooses the entry. What is wrong with the files raises InputError.
"""

from __future__ import annotations

import os

from memmodel.cat.load import load_model
from memmodel.errors import InputError, nearest
from memmodel.kernel.judge.explore import judge
from memmodel.kernel.judge.verdict import KernelVerdict
from memmodel.kernel.launch import Launch, read_launch
from memmodel.kernel.text.linking import linked
from memmodel.kernel.text.reader import read_module
from memmodel.kernel.text.syntax import PtxFunction, PtxModule

DEFAULT_MODEL = "ptx-9.3"


def check_kernel(
    file: str | os.PathLike[str],
    launch: Launch | str | os.PathLike[str],
    *,
    entry: str | None = None,
    model: str | os.PathLike[str] = DEFAULT_MODEL,
) -> KernelVerdict:
    """Judge one launch of a kernel."""
    module = read_module(file)
    given = launch if isinstance(launch, Launch) else read_launch(launch)
    return judge(module, entry_of(module, entry or given.kernel), given, load_model(model))


def entry_of(module: PtxModule, name: str | None) -> PtxFunction:
    """The entry of that name, without a name the only one, with the functions that it calls."""
    entries = [one for one in module.entries if one.body is not None]
    names = [one.name for one in entries]
    for one in entries:
        if one.name == name:
            return linked(module, one)
    if name is None and len(entries) == 1:
        return linked(module, entries[0])
    if not entries:
        raise InputError(f"{module.source.name}: no entry is defined there")
    if name is None:
        raise InputError(f"{module.source.name}: has {len(entries)} entries", hint="--entry NAME: " + ", ".join(names))
    close = nearest(name, names)
    raise InputError(f"{module.source.name}: has no entry {name}", hint=f"did you mean {close}?" if close else None)
