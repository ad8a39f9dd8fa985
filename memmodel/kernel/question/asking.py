"""From a file and what is said of a launch to a question: module, entry, and a complete launch.

In: a path, a launch or parts of one. Out: `KernelQuestion`. Settled here: what is said beside a launch description
comes before it, and a description comes before the comments in the text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.launch import Launch, read_json
from memmodel.kernel.question.binaries import is_binary, ptx_inside
from memmodel.kernel.question.comments import LaunchComment, launch_comments
from memmodel.kernel.question.completing import LaunchesBefore, completed
from memmodel.kernel.question.cuda_sources import SUFFIXES, TARGET, compiled, parameter_names
from memmodel.kernel.question.entries import entry_of
from memmodel.kernel.question.requests import LaunchWords, requested, settable
from memmodel.ptx.module.reader import parse_module, read_module
from memmodel.ptx.module.syntax import PtxFunction, PtxModule
from memmodel.source import Source, Span

GivenLaunch = Launch | Mapping[str, Any] | list[Any] | str | os.PathLike[str] | None
"""A launch; JSON values; the path of a description; nothing, if the text says it or other words do."""

Ctas = Callable[[Launch], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class KernelText:
    """A module, and the text that the user wrote: PTX, or what was compiled. `names`: of the parameters of entries, as
    that text has them. `assumed`: what was taken for granted when it was compiled.
    """

    module: PtxModule
    written: Source
    names: Mapping[str, Sequence[str]]
    assumed: Mapping[str, str] = field(default_factory=dict)

    def launches(self) -> list[LaunchComment]:
        """The launches that stand in the text that the user wrote."""
        return launch_comments(self.written)


@dataclass(frozen=True, slots=True)
class KernelQuestion:
    """What is asked: a module, an entry, and a launch of it."""

    module: PtxModule
    entry: PtxFunction
    launch: Launch


def kernel_text(
    file: str | os.PathLike[str] | PtxModule | KernelText, options: Sequence[str] = (), entry: str | None = None
) -> KernelText:
    """The module of a file, or of standard input where the path is `-`: PTX, CUDA C++, which is compiled, or a binary
    with PTX in it. `options`: of the compiler; `entry`: chooses between modules of a binary. Raises InputError.
    """
    if isinstance(file, KernelText):
        return file
    if isinstance(file, PtxModule):
        return KernelText(file, file.source, {})
    if os.fspath(file).endswith(SUFFIXES):
        ptx, written, chosen = compiled(file, options)
        module = parse_module(ptx)
        assumed = {f"the code is that of {TARGET}": "-- -arch=…, an option of the compiler"} if chosen else {}
        return KernelText(module, written, parameter_names(written, module.entries), assumed)
    if options:
        raise InputError(f"{os.fspath(file)}: is not compiled, so that it takes no options of a compiler")
    if not is_binary(file):
        module = read_module(file)
        return KernelText(module, module.source, {})
    ptx, newest = ptx_inside(file, entry)
    known = {f"the code is that of {newest}, the newest target in {os.fspath(file)}": "the PTX of another target"}
    module = parse_module(ptx)
    return KernelText(module, module.source, {}, known if newest else {})


def question(
    text: KernelText, launch: GivenLaunch, words: LaunchWords, entry: str | None, ctas: Ctas
) -> KernelQuestion:
    """What is asked about one entry. `entry` None: the one that the launch names, or the only one. `ctas`: those of a
    launch that are run. Raises InputError.
    """
    if isinstance(launch, Launch):
        return KernelQuestion(text.module, entry_of(text.module, entry or launch.kernel), launch)
    name, data = _single(text, launch, entry)
    return described_question(text, data, name, words, entry, ctas)


def described_question(
    text: KernelText,
    data: Mapping[str, Any],
    name: str,
    words: LaunchWords,
    entry: str | None,
    ctas: Ctas,
    before: LaunchesBefore = LaunchesBefore(),
) -> KernelQuestion:
    """What is asked about one entry by one description. `name`: where it stands. Raises InputError."""
    module, kernel = text.module, entry or data.get("kernel")
    function = entry_of(module, kernel if isinstance(kernel, str) else None)
    request = requested(data, words, function, text.names.get(function.name, ()), name)
    return KernelQuestion(module, function, completed(module, function, request, name, ctas, text.assumed, before))


def names_taken(
    text: KernelText, launch: GivenLaunch, entry: str | None, keys: Sequence[str]
) -> tuple[PtxFunction, list[str]]:
    """The entry, and which of `keys` name a size of the launch or a parameter. Raises InputError."""
    if isinstance(launch, Launch):
        raise InputError("a complete launch takes no other sizes", hint="give the values of its description")
    name, data = _single(text, launch, entry)
    kernel = entry or data.get("kernel")
    function = entry_of(text.module, kernel if isinstance(kernel, str) else None)
    names = text.names.get(function.name, ())
    return function, [key for key in keys if settable(data, key, function, names, name)]


LAUNCHES = "launches"
"""The key of a list of launches."""


class SeveralLaunches(InputError):
    """A list of launches stands where one was expected. `text`: that they are of; `name`: where they stand."""

    def __init__(self, text: KernelText, launches: list[Mapping[str, Any]], name: str) -> None:
        super().__init__(
            f"{name}: {len(launches)} launches, and one is judged here", hint="memmodel.check_launches judges a list"
        )
        self.text, self.launches, self.name = text, launches, name


class SeveralEntries(InputError):
    """A text has launches of several entries, and none was chosen. `entries`: as the launches name them."""

    def __init__(self, second: Span, entries: Sequence[str]) -> None:
        hint = '--entry NAME takes the one with that "kernel"'
        super().__init__("two launches stand in this text, and one is judged at a time", second, hint)
        self.entries = tuple(entries)


def _single(text: KernelText, launch: GivenLaunch, entry: str | None) -> tuple[str, Mapping[str, Any]]:
    """The description of one launch, with the name of where it stands. For a list raises SeveralLaunches."""
    name, data = _given(text, launch, entry)
    if isinstance(data, list) or LAUNCHES in data:
        raise SeveralLaunches(text, _listed(name, data), name)
    if data.get("module") is not None:
        raise InputError(
            f"{name}: module: stands in a list of launches, where it names the file of one",
            hint="one launch is of the file that is handed over",
        )
    return name, data


def _listed(name: str, data: Mapping[str, Any] | list[Any]) -> list[Mapping[str, Any]]:
    """The launches of a list. Raises InputError."""
    launches = data if isinstance(data, list) else data[LAUNCHES]
    others = [] if isinstance(data, list) else [key for key in data if key != LAUNCHES]
    if not isinstance(launches, list) or not launches or not all(isinstance(part, Mapping) for part in launches):
        raise InputError(f"{name}: {LAUNCHES} is a list of launch descriptions, in the order of the stream")
    if others:
        raise InputError(f"{name}: {others[0]} stands beside {LAUNCHES}, and not in one of them")
    return launches


def _given(text: KernelText, launch: GivenLaunch, entry: str | None) -> tuple[str, Mapping[str, Any] | list[Any]]:
    """The description of a launch or of several, with the name of where it stands. Raises InputError."""
    if isinstance(launch, Mapping | list):
        return "<launch>", launch
    if isinstance(launch, str | os.PathLike):
        data = read_json(launch)
        if not isinstance(data, dict | list):
            raise InputError(f"{os.fspath(launch)}: a launch description is a JSON object, or a list of them")
        return os.fspath(launch), data
    comments = text.launches()
    fitting = [comment for comment in comments if entry is None or comment.data.get("kernel", entry) == entry]
    if len(fitting) > 1:
        raise SeveralEntries(fitting[1].span, [str(comment.data.get("kernel", "")) for comment in fitting])
    return (str(fitting[0].span), fitting[0].data) if fitting else (text.written.name, {})
