"""Memory of one launch, by the byte: what is known of its contents, and where addresses lie.

In: Launch, variables of a module. Out: `DeviceMemory`, `Block`. The generic window of shared memory and of parameters
is where nothing else is; a CTA's own shared memory begins at its rank times 2^24, as in hardware.
"""

from __future__ import annotations

import bisect
import struct
from typing import Protocol

from memmodel.base.classes import dataclass, field
from memmodel.errors import InputError
from memmodel.kernel.launch import KINDS, Launch, Param
from memmodel.kernel.machine.maps import described
from memmodel.kernel.text.syntax import PtxFunction, PtxModule
from memmodel.limits import reserve
from memmodel.memory.bytes import Instance
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.program.fields import NOTHING, Bits
from memmodel.ptx import Space

SHARED_WINDOW = 0x7F5A_0000_0000_0000
PARAM_WINDOW = 0x7F6A_0000_0000_0000
LOCAL_WINDOW = 0x7F7A_0000_0000_0000
PRIVATE_START = 1 << 20
"""Where local variables and the parameters of calls begin: every thread has its own."""

RANK_SHIFT = 24
SHARED_START = 1024
MODULE_START = 0x7E00_0000_0000
FUNCTION_START = 0x7D00_0000_0000
WORKSPACE_START, WORKSPACE = 0x7C00_0000_0000, 64
"""Memory that the driver zeroes for a cooperative launch and names in %envreg1 and %envreg2: its grid barrier."""

MAX_SHARED = 232_448
"""Bytes of shared memory that a CTA can have."""

REMEMBERED = 1 << 26
"""Bytes of memory whose contents are held; those of larger memory are unknown."""


@dataclass(slots=True, eq=False)
class Block:
    """Bytes that lie together. `known`: 1 for each byte whose value is known; None while none of them is."""

    instance: Instance
    address: int
    size: int
    data: bytearray = field(default_factory=bytearray, repr=False)
    known: bytearray | None = field(default=None, repr=False)

    def load(self, at: int, size: int) -> int | None:
        """The bytes at an offset as a number; None if one of them is not known."""
        if self.known is None or self.known.find(0, at, at + size) >= 0:
            return None
        return int.from_bytes(self.data[at : at + size], "little")

    def bits(self, at: int, size: int) -> Bits:
        """What is known of the bytes at an offset as a number."""
        if self.known is None:
            return NOTHING
        mask = int.from_bytes(bytes(255 * one for one in self.known[at : at + size]), "little")
        return Bits(mask, int.from_bytes(self.data[at : at + size], "little") & mask)

    def store_bits(self, at: int, size: int, value: Bits) -> None:
        """The same of a number of which single bits are known, perhaps all or none."""
        whole = value.whole(8 * size)
        if whole is not None or not value.known:
            self.store(at, size, whole)
            return
        for number in range(size):
            self.store(at + number, 1, value.part(8 * number, 8).whole(8))

    def store(self, at: int, size: int, value: int | None) -> None:
        if value is None:
            self.forget(at, size)
            return
        self.write(at, (value & (1 << size * 8) - 1).to_bytes(size, "little"))

    def write(self, at: int, content: bytes) -> None:
        """Known bytes at an offset. What is stored in very large memory is not remembered."""
        if self.known is None:
            if self.size > REMEMBERED:
                return
            self.data, self.known = bytearray(self.size), bytearray(self.size)
        self.data[at : at + len(content)] = content
        self.known[at : at + len(content)] = b"\1" * len(content)

    def forget(self, at: int, size: int) -> None:
        """Bytes that are no longer known."""
        if self.known is not None:
            self.known[at : at + size] = bytes(size)

    def copy(self, at: int, source: Block, begin: int, size: int) -> None:
        if source.known is None:
            self.forget(at, size)
            return
        if self.known is None:
            if self.size > REMEMBERED:
                return
            self.data, self.known = bytearray(self.size), bytearray(self.size)
        self.data[at : at + size] = source.data[begin : begin + size]
        self.known[at : at + size] = source.known[begin : begin + size]


def _block(instance: Instance, address: int, size: int, content: bytes | None = None) -> Block:
    made = Block(instance, address, size)
    if content is not None:
        made.write(0, content)
    return made


class Symbols(Protocol):
    """Where named variables and functions lie, by state space and address."""

    symbols: dict[str, tuple[str, int]]


class DeviceMemory:
    """All memory that the CTAs of a launch share, and the layout of shared memory."""

    def __init__(self, module: PtxModule, entry: PtxFunction, launch: Launch) -> None:
        self.launch = launch
        self.symbols: dict[str, tuple[str, int]] = {}
        self.private_size = 0
        self.blocks: list[Block] = []
        self._buffers()
        self._module_variables(module)
        workspace = Instance("grid workspace", None, Space.GLOBAL, WORKSPACE)
        self.blocks.append(_block(workspace, WORKSPACE_START, WORKSPACE, bytes(WORKSPACE)))
        self.symbols |= {name: ("func", FUNCTION_START + 128 * number) for number, name in enumerate(entry.callees)}
        self.blocks.sort(key=lambda one: one.address)
        self._starts = [one.address for one in self.blocks]
        self.shared_size = self._shared(module, entry)
        self._private_variables(entry)
        self.params = self._parameters(entry)
        self._tensor_maps(entry)

    def _private_variables(self, entry: PtxFunction) -> None:
        """The addresses of what each thread has of its own: local variables, and what goes into calls and out of
        them.
        """
        for one in entry.variables:
            if one.space not in ("local", "param"):
                continue
            align = max(one.align, 1)
            at = -(-self.private_size // align) * align
            self.symbols[one.name] = (one.space, PRIVATE_START + at)
            self.private_size = at + (one.size or 64)

    def private(self) -> Block:
        """The local memory of one thread."""
        return _block(Instance("local memory", None, Space.GENERIC, self.private_size), 0, max(1, self.private_size))

    def _tensor_maps(self, entry: PtxFunction) -> None:
        """Parameters that are tensor maps hold what the launch says of them, in the format of `memory.tensormap`."""
        for one in self.launch.tensormaps:
            named = zip(entry.params, self.launch.params, strict=True)
            at = next((self.symbols[p.name][1] for p, given in named if one.param in (p.name, given.name)), None)
            if at is None:
                raise InputError(f"{entry.name} has no parameter {one.param}")
            at += one.offset
            if at + TENSORMAP_BYTES > self.params.size:
                raise InputError(f"a tensor map at offset {one.offset} does not fit into {one.param}")
            self.params.write(at, described(one).to_bytes(TENSORMAP_BYTES, "little"))

    def _buffers(self) -> None:
        spans: list[tuple[int, int, str]] = []
        for one in self.launch.all_buffers:
            name = one.name or hex(one.address)
            for first, end, other in spans:
                if one.address < end and first < one.address + one.bytes:
                    if first == one.address and other == name:
                        break
                    raise InputError(f"the buffers {other} and {name} of the launch overlap")
            spans.append((one.address, one.address + one.bytes, name))
            content = None
            if one.init is not None and one.bytes > REMEMBERED:
                raise InputError(f"{name} has {one.bytes:,} bytes; init is for at most {REMEMBERED:,}")
            if one.init == "zero":
                content = bytes(one.bytes)
            elif one.init == "iota":
                content = b"".join(struct.pack("<I", n & 0xFFFFFFFF) for n in range(one.bytes // 4))
            instance = Instance(name, None, Space.GLOBAL, one.bytes)
            self.blocks.append(_block(instance, one.address, one.bytes, content))

    def _module_variables(self, module: PtxModule) -> None:
        at = MODULE_START
        for one in module.variables.values():
            if one.space not in ("global", "const"):
                continue
            align = max(one.align, 16)
            at = -(-at // align) * align
            size = one.size or 0
            self.symbols[one.name] = (one.space, at)
            held = min(size, REMEMBERED)
            reserve(4 * held)
            zeros = None if size > held else (one.content or b"").ljust(held, b"\0")[:held]
            space = Space.GLOBAL if one.space == "global" else Space.CONST
            self.blocks.append(_block(Instance(one.name, None, space, size), at, max(size, 1), zeros))
            at += size

    def _shared(self, module: PtxModule, entry: PtxFunction) -> int:
        at = SHARED_START
        dynamic: list[str] = []
        for one in (*module.variables.values(), *entry.variables):
            if one.space != "shared":
                continue
            if one.size is None or one.external:
                dynamic.append(one.name)
                continue
            at = -(-at // max(one.align, 1)) * max(one.align, 1)
            self.symbols[one.name] = ("shared", at)
            at += one.size
        start = -(-at // 1024) * 1024 if dynamic else at
        for name in dynamic:
            self.symbols[name] = ("shared", start)
        end = start + (self.launch.dynamic_shared if dynamic else 0)
        if end - SHARED_START > MAX_SHARED:
            raise InputError(
                f"{entry.name} has {end - SHARED_START:,} bytes of shared memory; a CTA has {MAX_SHARED:,}"
            )
        return end

    def _parameters(self, entry: PtxFunction) -> Block:
        given = self.launch.params
        if len(given) != len(entry.params):
            raise InputError(f"{entry.name} has {len(entry.params)} parameters; the launch gives {len(given)}")
        content = bytearray()
        for one, value in zip(entry.params, given, strict=True):
            data = _encoded(value)
            size = one.size or len(data)
            if len(data) > size:
                raise InputError(f"{one.name} has {size} bytes; the launch gives {len(data)}")
            start = -(-len(content) // max(one.align, 1)) * max(one.align, 1)
            reserve(2 * (start + size))
            content += bytes(start - len(content)) + data + bytes(size - len(data))
            self.symbols[one.name] = ("param", start)
        return _block(Instance("parameters", None, Space.PARAM, len(content)), 0, max(1, len(content)), bytes(content))

    def shared(self, cta: int, owner: tuple[object, ...]) -> Block:
        """The shared memory of a CTA."""
        reserve(2 * self.shared_size)
        return _block(
            Instance(f"shared memory of CTA {cta}", owner, Space.SHARED, self.shared_size), 0, self.shared_size
        )

    def find(self, address: int) -> Block | None:
        """The global memory that has an address."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        one = self.blocks[at]
        return one if address < one.address + one.size else None


def _encoded(one: Param) -> bytes:
    if one.type == "ptr":
        return (one.address or 0).to_bytes(8, "little")
    if one.type == "bytes":
        return bytes.fromhex(one.hex or "")
    size = KINDS[one.type]
    if one.type == "fp32":
        return struct.pack("<f", float(one.value or 0))
    if one.type == "fp64":
        return struct.pack("<d", float(one.value or 0))
    if one.type == "fp16":
        return struct.pack("<e", float(one.value or 0))
    if one.type == "bf16":
        return struct.pack("<f", float(one.value or 0))[2:]
    return (int(one.value or 0) & (1 << size * 8) - 1).to_bytes(size, "little")
