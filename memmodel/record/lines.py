"""What the library wrote, read.

In: the folder. Out: `Recording`. A line that is not whole is left out: the disk was full.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MemoryRange = tuple[int, int]
"""The first address of an allocation, and its bytes."""


@dataclass(frozen=True, slots=True)
class RecordedMap:
    """The arguments of a call of cuTensorMapEncodeTiled that succeeded, as the driver numbers them. Innermost first."""

    type: int
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    interleave: int
    swizzle: int
    memory: MemoryRange


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch. `image`: the file of its module; None: it could not be read. `cluster` None: as the kernel declares.

    `params`: their bytes, one by one; `packed`: all in one buffer; both None: the driver did not say their sizes.
    `memory`: the allocations that they point into. `follows`: the number of the launch before it in its stream, if it
    may begin before that one has ended; 0: which one is not known.
    """

    process: str
    number: int
    image: Path | None
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    shared: int
    params: tuple[bytes, ...] | None
    packed: bytes | None
    memory: tuple[MemoryRange, ...]
    follows: int | None


@dataclass(slots=True)
class Recording:
    """All that was recorded of a run. `maps`: by their 128 bytes. `left_out`: what was not written, as sentences."""

    launches: list[RecordedLaunch] = field(default_factory=list)
    maps: dict[bytes, RecordedMap] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def read_recording(folder: Path) -> Recording:
    """What the library wrote into a folder, the launches of a process in their order."""
    recording = Recording()
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: (len(path.name), path.name)):
        refused: set[int] = set()
        for line in path.read_bytes().splitlines():
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                data = {"left_out": "what the disk had no room for"}
            if "refused" in data:
                refused.add(data["refused"])
            else:
                _take(data, path, recording)
        recording.launches = [
            launch for launch in recording.launches if launch.process != path.stem or launch.number not in refused
        ]
    return recording


def _take(data: Mapping[str, Any], path: Path, recording: Recording) -> None:
    if "left_out" in data:
        if data["left_out"] not in recording.left_out:
            recording.left_out.append(data["left_out"])
    elif "map" in data:
        lists: dict[str, Any] = {key: tuple(data[key]) for key in ("dims", "strides", "box", "steps", "memory")}
        numbers: dict[str, Any] = {key: data[key] for key in ("type", "address", "interleave", "swizzle")}
        recording.maps[bytes.fromhex(data["map"])] = RecordedMap(**numbers, **lists)
    else:
        params, packed, cluster = data.get("params"), data.get("packed"), data.get("cluster")
        recording.launches.append(
            RecordedLaunch(
                path.stem, data["launch"], path.parent / data["image"] if data["image"] else None,
                bytes.fromhex(data["kernel"]).decode("utf-8", "replace"), tuple(data["grid"]), tuple(data["block"]),
                tuple(cluster) if cluster else None, data["shared"],
                None if params is None else tuple(map(bytes.fromhex, params)),
                None if packed is None else bytes.fromhex(packed[0]),
                tuple((base, size) for base, size in data.get("memory", ())), data.get("programmatic_after"),
            )
        )  # fmt: skip
