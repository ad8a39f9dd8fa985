"""A recording as files that `memmodel kernel` takes: PTX, and a launch description for each launch that differs.

In: a recording, a folder. Out: `RecordedKernels`. Settled here: launches that differ only in addresses are
written once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memmodel.errors import InputError
from memmodel.kernel.arguments.launches import KernelCall, launches_of
from memmodel.kernel.launch import Launch
from memmodel.kernel.question import kernel_text
from memmodel.kernel.question.entries import entry_of
from memmodel.kernel.question.skeleton import printed
from memmodel.output import write_text
from memmodel.ptx.module.names import base_name, without_parameters
from memmodel.ptx.module.syntax import PtxFunction, PtxModule
from memmodel.record.arguments import argument, bytes_of
from memmodel.record.lines import RecordedLaunch, Recording

LONGEST = 60
"""Characters of a file name."""


@dataclass(frozen=True, slots=True)
class WrittenLaunch:
    """A kernel and a launch of it, as files."""

    ptx: Path
    launch: Path
    title: str
    """The kernel, and the sizes of the launch."""
    unknown: tuple[str, ...] = ()
    """What the recording does not know of the launch, as phrases."""

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of `memmodel kernel` that judge the launch."""
        return str(self.ptx), "--launch", str(self.launch)


@dataclass(slots=True)
class RecordedKernels:
    """The launches that were written. `notes`: those that were not, each with the reason."""

    launches: list[WrittenLaunch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of kernels."""
        return len({(item.ptx, item.title.partition(",")[0]) for item in self.launches})


@dataclass(frozen=True, slots=True)
class _ImageText:
    """The PTX of an image, and its file."""

    module: PtxModule
    path: Path


class _KernelWriter:
    def __init__(self, recording: Recording, folder: Path) -> None:
        self._recording, self._folder = recording, folder
        self._numbered = {(launch.process, launch.number): launch for launch in recording.launches}
        self._texts: dict[tuple[Path, str], _ImageText | None] = {}
        self._paths: dict[str, Path] = {}
        self._taken: set[str] = set()
        self._written: set[tuple[Path, str]] = set()
        self._notes: dict[str, int] = {}
        self.kernels = RecordedKernels()

    def write(self) -> RecordedKernels:
        for launch in self._recording.launches:
            try:
                self._launch(launch)
                if launch.follows is not None:
                    self._pair(launch)
            except InputError as error:
                message = error.message.replace(str(launch.image), "its module")
                self._note(f"{base_name(launch.kernel)}: {message}" + (f" ({error.hint})" if error.hint else ""))
        for note in self._recording.left_out:
            self._note(f"left out: {note}")
        self.kernels.notes = [
            note if count == 1 else f"{note} ({count} launches)" for note, count in self._notes.items()
        ]
        return self.kernels

    def _note(self, text: str) -> None:
        self._notes[text] = self._notes.get(text, 0) + 1

    def _launch(self, recorded: RecordedLaunch) -> None:
        text = self._text(recorded)
        if text is None:
            return
        entry = entry_of(text.module, recorded.kernel)
        data, unknown = self._described(entry, recorded)
        written = printed(data) + "\n"
        if (text.path, written) in self._written:
            return
        self._written.add((text.path, written))
        path = self._folder / self._name(base_name(recorded.kernel), ".json")
        write_text(str(path), written)
        self.kernels.launches.append(WrittenLaunch(text.path, path, _titled(recorded), tuple(unknown)))

    def _pair(self, recorded: RecordedLaunch) -> None:
        """Write a launch that may begin early, with the one before it. Raises InputError."""
        before = self._numbered.get((recorded.process, recorded.follows or 0))
        if before is None:
            raise InputError("it may begin early (programmatic), and the launch before it was not recorded")
        text, first = self._text(recorded), self._text(before)
        if text is None or first is None:
            return
        pair = (first, before), (text, recorded)
        calls = [self._call(entry_of(image.module, launch.kernel), launch)[0] for image, launch in pair]
        if None in calls:
            raise InputError("it may begin early (programmatic), and parameters of the two launches are not known")
        launches = launches_of([call for call in calls if call is not None])
        values = [_values(launch) for launch in launches]
        if text.path != first.path:
            values[0] = {**values[0], "module": first.path.name}
        listed = ",\n".join(map(printed, values))
        written = f'{{"launches": [\n{listed}\n]}}\n'
        if (text.path, written) not in self._written:
            self._written.add((text.path, written))
            path = self._folder / self._name(f"{base_name(before.kernel)}-{base_name(recorded.kernel)}", ".json")
            write_text(str(path), written)
            title = f"{_titled(recorded)}, which may begin before {without_parameters(before.kernel)} has ended"
            self.kernels.launches.append(WrittenLaunch(text.path, path, title))

    def _call(self, entry: PtxFunction, recorded: RecordedLaunch) -> tuple[KernelCall | None, list[str]]:
        """The call of a kernel, and what is not known of it; None if its parameters are not. Raises InputError."""
        values = bytes_of(entry, recorded)
        if values is None:
            return None, []
        arguments, unknown = [], []
        for param, value in zip(entry.params, values, strict=True):
            handed, missing = argument(param, value, recorded.memory, self._recording.maps)
            arguments.append(handed)
            unknown += missing
        call = KernelCall(
            entry, recorded.grid, arguments, recorded.block, recorded.cluster, recorded.shared,
            programmatic=recorded.follows is not None,
        )  # fmt: skip
        return call, unknown

    def _described(self, entry: PtxFunction, recorded: RecordedLaunch) -> tuple[dict[str, Any], list[str]]:
        """The launch description, and what is not known of the launch. Raises InputError."""
        call, unknown = self._call(entry, recorded)
        if call is None:
            data: dict[str, Any] = {"kernel": entry.name, "grid": recorded.grid, "block": recorded.block}
            data |= {"cluster": recorded.cluster} if recorded.cluster else {}
            return {**data, "dynamic_shared": recorded.shared}, [
                "its parameters, whose sizes drivers say from CUDA 12.4 on"
            ]
        return _values(launches_of([call])[0]), unknown

    def _text(self, recorded: RecordedLaunch) -> _ImageText | None:
        """The PTX of a launch. Raises InputError, once for a kernel."""
        if recorded.image is None or not recorded.image.is_file():
            raise InputError("its module could not be read while the program ran")
        key = recorded.image, recorded.kernel
        if key not in self._texts:
            self._texts[key] = None
            module = kernel_text(recorded.image, entry=recorded.kernel).module
            content = module.source.text
            if content not in self._paths:
                self._paths[content] = self._folder / self._name(_title(module), ".ptx")
                write_text(str(self._paths[content]), content)
            self._texts[key] = _ImageText(module, self._paths[content])
        text = self._texts[key]
        if text is None:
            self._note_again(recorded)
        return text

    def _note_again(self, recorded: RecordedLaunch) -> None:
        beginning = f"{base_name(recorded.kernel)}: "
        for note in self._notes:
            if note.startswith(beginning):
                self._notes[note] += 1
                return

    def _name(self, title: str, suffix: str) -> str:
        """A file name that no other file of this recording has."""
        plain = re.sub(r"[^\w.-]+", "_", title, flags=re.ASCII).strip("._-")[:LONGEST] or "kernel"
        name = next(name for name in _numbered(plain) if name + suffix not in self._taken)
        self._taken.add(name + suffix)
        return name + suffix


def write_kernels(recording: Recording, folder: Path) -> RecordedKernels:
    """Write the kernels of a recording into a folder. Raises InputError, and OSError if a file cannot be written."""
    return _KernelWriter(recording, folder).write()


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _title(module: PtxModule) -> str:
    """The name of the file of a module: its kernel, if it has only one."""
    names = [entry.name for entry in module.entries]
    return base_name(names[0]) if len(names) == 1 else "module"


def _values(launch: Launch) -> dict[str, Any]:
    """A launch description."""
    return launch.model_dump(mode="json", exclude_defaults=True)


def _titled(recorded: RecordedLaunch) -> str:
    sizes = [f"grid {_times(recorded.grid)}", f"block {_times(recorded.block)}"]
    sizes += [f"cluster {_times(recorded.cluster)}"] if recorded.cluster else []
    return ", ".join((without_parameters(recorded.kernel), *sizes))


def _times(sizes: tuple[int, ...]) -> str:
    return "×".join(map(str, sizes))
