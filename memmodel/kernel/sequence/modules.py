"""The modules of a list of launches.

In: the files that were handed over, and the files that launches name. Out: for each launch its module, with a number.
Settled here: a file is one module. Global variables of two modules are different memory, whatever their names, and a
variable keeps its value while launches of other modules run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.launch import LeftContents, below
from memmodel.kernel.machine.memory import MODULE_BYTES, MODULE_START, MOST_MODULES
from memmodel.kernel.question.asking import KernelText, kernel_text
from memmodel.kernel.question.cuda_sources import SUFFIXES
from memmodel.kernel.question.entries import entry_of
from memmodel.ptx.module.syntax import ModuleVariable
from memmodel.ptx.vocabulary import Space


class StreamModules:
    """The modules of a list of launches, numbered in the order in which launches need them."""

    def __init__(self, texts: Sequence[KernelText], name: str, compiler: Sequence[str]) -> None:
        """`texts`: those that were handed over; `name`: of the list; `compiler`: options for what is compiled."""
        self._texts, self._name, self._compiler = list(texts), name, compiler
        self._used: list[KernelText] = []
        self._files = {os.path.realpath(text.written.name): text for text in texts if text.written.in_file}

    @property
    def several(self) -> bool:
        """True if launches of more than one module were asked for."""
        return len(self._used) > 1

    def of(self, data: Mapping[str, Any]) -> tuple[KernelText, int]:
        """The module of a launch: the file that it names, or the only one that was handed over and has its kernel; and
        its number. Raises InputError.
        """
        named = data.get("module")
        text = self._with_kernel(data.get("kernel")) if named is None else self._file(named)
        if text not in self._used:
            self._used.append(text)
            if len(self._used) == 2:
                self._check(self._used[0])
            if len(self._used) > 1:
                self._check(text)
        return text, self._used.index(text)

    def _with_kernel(self, kernel: object) -> KernelText:
        if len(self._texts) == 1:
            return self._texts[0]
        having = [text for text in self._texts if _has(text, kernel)]
        if len(having) == 1:
            return having[0]
        files = ", ".join(text.written.name for text in having or self._texts)
        what = "is in each of" if having else "is in none of"
        raise InputError(f"{self._name}: kernel {kernel} {what} {files}", hint='"module": "FILE" in its launch')

    def _file(self, named: object) -> KernelText:
        if not isinstance(named, str):
            raise InputError(f"{self._name}: module: the name of a file is expected")
        path = below("" if self._name.startswith("<") else os.path.dirname(self._name), named)
        if path is None:
            raise InputError(
                f"{self._name}: {named!r} is elsewhere: modules stay below the folder of this file",
                hint="copy it there, or name it on the command line",
            )
        known = os.path.realpath(path)
        if known not in self._files:
            self._files[known] = kernel_text(path, self._compiler if path.endswith(SUFFIXES) else ())
        return self._files[known]

    def _check(self, text: KernelText) -> None:
        """Raises InputError for what two modules cannot have."""
        variables = [variable for variable in text.module.variables.values() if variable.space is Space.GLOBAL]
        shared = next((variable for variable in variables if variable.external), None)
        if shared is not None:
            raise InputError(
                f"{shared.name} is a variable of another module, with which this one is linked", shared.span,
                "hand over what the linker wrote: in a list of launches, each file is a module of its own",
            )  # fmt: skip
        if len(self._used) > MOST_MODULES or sum(map(_room, variables)) > MODULE_BYTES:
            raise InputError(
                f"{self._name}: at most {MOST_MODULES} modules, with at most {MODULE_BYTES >> 30} GB of variables each"
            )


def following(left: LeftContents, before: LeftContents) -> LeftContents:
    """What a launch leaves, with the variables of other modules that the launches before it have left."""
    start = MODULE_START + before.module * MODULE_BYTES
    others = (
        piece for piece in before.pieces
        if MODULE_START <= piece[0] < MODULE_START + MOST_MODULES * MODULE_BYTES
        and not start <= piece[0] < start + MODULE_BYTES
    )  # fmt: skip
    return replace(left, pieces=(*left.pieces, *others))


def _has(text: KernelText, kernel: object) -> bool:
    try:
        entry_of(text.module, kernel if isinstance(kernel, str) else None)
    except InputError:
        return False
    return True


def _room(variable: ModuleVariable) -> int:
    return (variable.size or 0) + max(variable.align, 16)
