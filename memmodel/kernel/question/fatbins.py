"""PTX in the containers that nvcc writes into objects, executables and fatbins, without a program of NVIDIA.

In: bytes. Out: the text of each PTX, or why it cannot be read. A container is a header of 16 bytes (the word BA55ED50,
a version, the size of the header, the bytes after it) and entries. The header of an entry has its kind at byte 0 (1:
PTX), its own size at 4, the size of the data at 8, of compressed data at 16, flags at 40, the size of the text at 56.
Text is as it is, or compressed with LZ4 (flag 0x2000) or Zstandard (0x8000), which is what nvcc 13 does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from memmodel.errors import InputError

BEGINNING = struct.pack("<I", 0xBA55ED50)
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQI20xQ8xQ")
PTX, LZ4, ZSTANDARD = 1, 0x2000, 0x8000
MOST_TEXT = 1 << 28
"""Bytes of one text; what says that it is longer is not read."""


class UnreadableError(Exception):
    """A container, or an entry of one, in a form that is not known here."""


def texts(data: bytes) -> list[str]:
    """The text of every PTX in the containers. Raises UnreadableError, and InputError where Zstandard is missing."""
    return list(dict.fromkeys(text for span in _containers(data) for text in _entries(data, *span)))


def _containers(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the entries of each begin and end. The word that begins a container may occur in code, too."""
    at, found, why = data.find(BEGINNING), False, "a container of another version"
    while at >= 0:
        behind, first = at + len(BEGINNING), at + _CONTAINER.size
        if first <= len(data):
            _, version, header, size = _CONTAINER.unpack_from(data, at)
            known = version == 1 and header == _CONTAINER.size
            if known and first + size <= len(data):
                found, behind = True, first + size
                yield first, behind
            why = "a container that ends too early" if known else why
        else:
            why = "a container that ends too early"
        at = data.find(BEGINNING, behind)
    if not found and BEGINNING in data:
        raise UnreadableError(why)


def _entries(data: bytes, at: int, end: int) -> Iterator[str]:
    """The texts of one container."""
    try:
        while at < end:
            kind, _, own, length, packed, flags, whole = _ENTRY.unpack_from(data, at)
            first = at + own
            if own < _ENTRY.size or first + length > end or packed > length or whole > MOST_TEXT:
                raise UnreadableError("an entry that does not fit into its container")
            if kind == PTX:
                yield _text(data[first : first + (packed or length)], flags, whole)
            at = first + length
    except struct.error as error:
        raise UnreadableError("a container that ends too early") from error


def _text(data: bytes, flags: int, whole: int) -> str:
    """The text of an entry."""
    if flags & ZSTANDARD:
        data = _zstandard()(data, whole)
    elif flags & LZ4:
        data = lz4_block(data, whole)
    text = data.rstrip(b"\0").decode("utf-8", "backslashreplace").lstrip("\n")
    if ".version" not in text:
        raise UnreadableError("an entry whose text is no PTX")
    return text


def lz4_block(data: bytes, whole: int) -> bytes:
    """The content of an LZ4 block. Raises UnreadableError unless it is as long as `whole`."""
    out, at = bytearray(), 0
    try:
        while at < len(data) and len(out) <= whole:
            token, at = data[at], at + 1
            count, at = _count(data, at, token >> 4)
            out += data[at : at + count]
            at += count
            if at >= len(data):  # the last sequence has literals only
                break
            distance, at = data[at] | data[at + 1] << 8, at + 2
            count, at = _count(data, at, token & 15)
            if not 0 < distance <= len(out):
                raise UnreadableError("LZ4 data that points in front of itself")
            piece = bytes(out[-distance:])
            out += (piece * ((count + 4) // distance + 1))[: count + 4]
    except IndexError as error:
        raise UnreadableError("LZ4 data that ends too early") from error
    if len(out) != whole:
        raise UnreadableError("LZ4 data of another length than it says")
    return bytes(out)


def _count(data: bytes, at: int, nibble: int) -> tuple[int, int]:
    """A length that goes on while its bytes are 255, and where it ends."""
    if nibble == 15:
        while True:
            nibble, at = nibble + data[at], at + 1
            if data[at - 1] != 255:
                break
    return nibble, at


def _zstandard() -> Callable[[bytes, int], bytes]:
    """The decompression that there is: Python's from 3.14 on, or a package. Raises InputError."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            module: Any = import_module(name)
        except ImportError:
            continue

        def unpacked(data: bytes, whole: int, module: Any = module, name: str = name) -> bytes:
            try:
                unpacker = module.ZstdDecompressor()
                if name == "zstandard":
                    out: bytes = unpacker.stream_reader(data).read(whole + 1)
                else:
                    out = unpacker.decompress(data, whole + 1)
            except Exception as error:  # each module has errors of its own
                raise UnreadableError(f"Zstandard data that cannot be read: {error}") from error
            if len(out) != whole:
                raise UnreadableError("Zstandard data of another length than it says")
            return out

        return unpacked
    raise InputError(
        "its PTX is compressed with Zstandard", hint="pip install zstandard, or nvidia-cuda-cuobjdump, which reads it"
    )
