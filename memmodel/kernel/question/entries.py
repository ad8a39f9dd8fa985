"""The entry of a module that is asked about.

In: a module, a name. Out: the entry, with the functions that it calls.
"""

from __future__ import annotations

from memmodel.errors import InputError, suggestion
from memmodel.ptx.module.linking import linked
from memmodel.ptx.module.names import base_name
from memmodel.ptx.module.syntax import PtxFunction, PtxModule

SHOWN = 8


def entry_of(module: PtxModule, name: str | None) -> PtxFunction:
    """The entry of that name, without a name the only one, with the functions that it calls. A name in C++ may stand
    without its scope, arguments and parameters, if it is that of one entry only. Raises InputError.
    """
    entries = [entry for entry in module.entries if entry.body is not None]
    names = [entry.name for entry in entries]
    for entry in entries:
        if entry.name == name:
            return linked(module, entry)
    short = [entry for entry in entries if name is not None and base_name(entry.name) == name]
    if len(short) == 1:
        return linked(module, short[0])
    if name is None and len(entries) == 1:
        return linked(module, entries[0])
    if not entries:
        raise InputError(f"{module.source.name}: no entry is defined there")
    if name is None or short:
        which = f"has {len(short or entries)} entries" + (f" {name}" if short else "")
        listed = [entry.name for entry in short or entries]
        more = f", and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
        raise InputError(f"{module.source.name}: {which}", hint="--entry NAME: " + ", ".join(listed[:SHOWN]) + more)
    raise InputError(f"{module.source.name}: has no entry {name}", hint=suggestion(name, names))
