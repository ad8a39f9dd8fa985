"""Memory of one launch, by the byte: what is known of its contents, and where addresses lie.

In: Launch, variables of a module. Out: `DeviceMemory`, `Block`. `program.windows` says where the windows of state
spaces are.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Mapping
from typing import Protocol

from memmodel.errors import InputError
from memmodel.isa.lowered import lowered
from memmodel.kernel.launch import KINDS, Buffer, Launch, LeftContents, Param, check_directives
from memmodel.kernel.machine.regions.maps import packed_map
from memmodel.kernel.trace.blocks import REMEMBERED, AlignedVariable, Alignments, Block
from memmodel.limits import reserve
from memmodel.memory.bytes import Instance
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.program.warp_ops import OnStack
from memmodel.program.windows import CONST_WINDOW, is_in
from memmodel.ptx.module.syntax import Initial, PtxFunction, PtxModule
from memmodel.ptx.operands import Special
from memmodel.ptx.vocabulary import Space
from memmodel.source import read_bytes

PRIVATE_START = 1 << 20
"""Where local variables and the parameters of calls begin: every thread has its own."""

SHARED_START = 1024
RESERVED = {"begin": 0, "end": SHARED_START, "cap": SHARED_START, "0": 0, "1": 512}
"""Shared memory below that of the kernel: by what names it (%reserved_smem_offset_1). The libraries of CUDA use what
begins at the last one; nothing else may be touched.
"""
MODULE_START = 0x7E00_0000_0000
FUNCTION_START = 0x7D00_0000_0000
MODULE_BYTES, MOST_MODULES = 1 << 32, 64
"""Bytes of addresses of each module in a list of launches: this number for its variables, and again for functions."""

HEAP_START = 0x7B00_0000_0000
GRID_WORKSPACE, WORKSPACE_START, WORKSPACE = "grid workspace", 0x7C00_0000_0000, 64
"""Memory that the driver zeroes for a cooperative launch and names in %envreg1 and %envreg2: its grid barrier."""

STACK = 1 << 16
"""Bytes of the stack of a thread from which alloca takes, above its variables."""

MAX_SHARED = 232_448
"""Bytes of shared memory that a CTA can have."""

START_OF: Mapping[Space | None, int] = {Space.CONST: CONST_WINDOW}
"""What an address in a state space of device memory and its generic address differ by."""

APART = 1024
"""Bytes between two variables, which belong to neither: PTX does not say where variables lie, so that what reaches
beyond one may touch nothing. No instruction asks for a stricter alignment, so none depends on them.
"""


def _aligned(at: int, align: int) -> int:
    """The first multiple of an alignment from an address on."""
    return -(-at // max(align, 1)) * max(align, 1)


def _block(instance: Instance, address: int, size: int, content: bytes | None = None) -> Block:
    block = Block(instance, address, size)
    if content is not None:
        block.write(0, content)
    return block


class Symbols(Protocol):
    """Where named variables and functions lie: the state space, None of a function, and the address.

    `cluster_size`: the CTAs of a cluster.
    """

    symbols: dict[str, tuple[Space | None, int]]
    cluster_size: int


class DeviceMemory:
    """All memory that the CTAs of a launch share, and the layout of shared memory."""

    def __init__(self, module: PtxModule, entry: PtxFunction, launch: Launch) -> None:
        self.launch = launch
        self.cluster_size = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
        self.symbols: dict[str, tuple[Space | None, int]] = {}
        self.private_size = 0
        self.blocks: list[Block] = []
        self.trusted: dict[str, tuple[int, str]] = {}
        """By variables that are accessed as if they were aligned to more than they say: to how much, and a sentence."""
        self._with_addresses: list[tuple[Block, Initial]] = []
        self.heap: dict[int, Block] = {}
        self._allocated = 0
        self._module_offset = 0 if launch.left is None else launch.left.module * MODULE_BYTES
        self._buffers()
        self._module_variables(module, entry)
        self.replicas = self._replicas()
        workspace = Instance(GRID_WORKSPACE, None, Space.GLOBAL, WORKSPACE)
        self.blocks.append(_block(workspace, WORKSPACE_START, WORKSPACE, bytes(WORKSPACE)))
        functions = FUNCTION_START + self._module_offset
        self.symbols |= {name: (None, functions + 128 * number) for number, name in enumerate(entry.callees)}
        self._addresses()
        if launch.left is not None:
            self._fill_with_left_contents(launch.left)
        self.blocks.sort(key=lambda block: block.address)
        self._starts = [block.address for block in self.blocks]
        self._reserved = _uses_reserved(entry)
        self._shared_objects = [(RESERVED["1"], SHARED_START)] if self._reserved else []
        self.shared_size = self._shared(module, entry)
        self._private_variables(entry)
        self.params = self._parameters(entry)
        self._tensor_maps(entry)

    def _private_variables(self, entry: PtxFunction) -> None:
        """The addresses of what each thread has of its own: local variables, and what goes into calls and out of
        them.
        """
        for variable in entry.variables:
            if variable.space not in (Space.LOCAL, Space.PARAM):
                continue
            align = max(variable.align, 1)
            at = -(-self.private_size // align) * align
            self.symbols[variable.name] = (variable.space, PRIVATE_START + at)
            self.private_size = at + (variable.size or 64)
        self.variables_end = self.private_size
        if any(isinstance(op, OnStack) for instruction in entry.body or () for op in lowered(instruction).ops):
            self.private_size = (self.private_size | 15) + 1 + STACK

    def private(self) -> Block:
        """The local memory of one thread."""
        return _block(Instance("local memory", None, Space.GENERIC, self.private_size), 0, max(1, self.private_size))

    def _tensor_maps(self, entry: PtxFunction) -> None:
        """What is a tensor map holds what the launch says of it, in the format of `memory.tensormap`."""
        for tensor_map in self.launch.tensormaps:
            holder = self._holder(entry, tensor_map.param)
            if holder is None:
                raise self.launch.wrong(
                    f"{entry.name} has no parameter {tensor_map.param}, and there is no variable or buffer of it"
                )
            block, at = holder
            at += tensor_map.offset
            if at + TENSORMAP_BYTES > block.size:
                raise self.launch.wrong(
                    f"a tensor map at offset {tensor_map.offset} does not fit into {tensor_map.param}"
                )
            block.write(at, packed_map(tensor_map).to_bytes(TENSORMAP_BYTES, "little"))

    def _holder(self, entry: PtxFunction, name: str) -> tuple[Block, int] | None:
        """Where maps lie: in a parameter, what it points to, a variable of the module, or a buffer of that name."""
        for param, argument in zip(entry.params, self.launch.params, strict=True):
            if name in (param.name, argument.name):
                address = argument.address or 0
                pointed = self.find(address) if argument.type == "ptr" else None
                return (
                    (self.params, self.symbols[param.name][1])
                    if pointed is None
                    else (pointed, address - pointed.address)
                )
        space, address = self.symbols.get(name, (None, 0))
        if space in (Space.GLOBAL, Space.CONST):
            variable = self.find(address + START_OF.get(space, 0))
            return None if variable is None else (variable, 0)
        return next(((block, 0) for block in self.blocks if block.instance.name == name), None)

    def _buffers(self) -> None:
        spans: list[tuple[int, int, str]] = []
        for buffer in self.launch.all_buffers:
            name = buffer.name or hex(buffer.address)
            for first, end, other in spans:
                if buffer.address < end and first < buffer.address + buffer.bytes:
                    if first == buffer.address and other == name:
                        break
                    hint = 'give a second pointer to a buffer as a number: "type": "u64", and its address as "value"'
                    raise self.launch.wrong(f"the buffers {other} and {name} overlap", hint)
            spans.append((buffer.address, buffer.address + buffer.bytes, name))
            content = _contents(self.launch, buffer, name)
            instance = Instance(name, None, Space.GLOBAL, buffer.bytes)
            self.blocks.append(_block(instance, buffer.address, buffer.bytes, content))

    def _replicas(self) -> dict[Block, tuple[Block, ...]]:
        """The memory that multimem addresses point to, as far as the launch says it."""
        named = {block.instance.name: block for block in self.blocks}
        replicas: dict[Block, tuple[Block, ...]] = {}
        for buffer in self.launch.all_buffers:
            for other in buffer.multimem or ():
                if other not in named:
                    raise self.launch.wrong(f"{buffer.name} points to {other}, and there is no memory of that name")
                if named[other].size < buffer.bytes:
                    sizes = f"has {buffer.bytes:,} bytes, and {other} only {named[other].size:,}"
                    raise self.launch.wrong(f"{buffer.name} {sizes}")
            if buffer.multimem is not None:
                replicas[named[buffer.name or hex(buffer.address)]] = tuple(named[other] for other in buffer.multimem)
        return replicas

    def _module_variables(self, module: PtxModule, entry: PtxFunction) -> None:
        places = {Space.GLOBAL: MODULE_START + self._module_offset, Space.CONST: CONST_WINDOW}
        for variable in (*module.variables.values(), *entry.variables):
            if variable.space not in places:
                continue
            align = max(variable.align, 16)
            at = -(-places[variable.space] // align) * align
            size = variable.size or 0
            self.symbols[variable.name] = (variable.space, at - START_OF.get(variable.space, 0))
            held = min(size, REMEMBERED)
            reserve(4 * held)
            first_bytes = b"" if variable.initial is None else variable.initial.content
            content = None if size > held or variable.external else first_bytes.ljust(held, b"\0")[:held]
            self.blocks.append(_block(Instance(variable.name, None, variable.space, size), at, max(size, 1), content))
            whole = AlignedVariable(0, size, variable.align, variable.name)
            self.blocks[-1].aligned = Alignments([whole], self.trusted)
            if variable.initial is not None:
                self._with_addresses.append((self.blocks[-1], variable.initial))
            places[variable.space] = at + size + APART

    def _fill_with_left_contents(self, left: LeftContents) -> None:
        """Variables, and buffers whose contents the launch does not give, hold what the launches before have left."""
        filled = {buffer.address for buffer in self.launch.all_buffers if buffer.init or buffer.hex or buffer.file}
        if left.loaded:
            filled |= {address for space, address in self.symbols.values() if space is Space.GLOBAL}
        for block in self.blocks:
            if block.instance.space is not Space.GLOBAL or block.address == WORKSPACE_START or block.address in filled:
                continue
            block.forget(0, block.size)
            for address, content, known in left.pieces:
                first, end = max(address, block.address), min(address + len(content), block.address + block.size)
                if first < end:
                    part = slice(first - address, end - address)
                    block.put(first - block.address, content[part], known[part])

    def _addresses(self) -> None:
        """Variables whose first contents are addresses; one of something that is not here is unknown."""
        for block, initial in self._with_addresses:
            for pointer in initial.addresses:
                space, address = self.symbols.get(pointer.name, (Space.GENERIC, 0))
                known = space in (Space.GLOBAL, Space.CONST, None)
                address += START_OF.get(space, 0) * pointer.generic
                block.store(pointer.at, pointer.size, address + pointer.addend >> pointer.down if known else None)

    def _shared(self, module: PtxModule, entry: PtxFunction) -> int:
        """Static variables lie in the order of the text, and dynamic shared memory behind them, each aligned as it
        says and no more.
        """
        variables = [one for one in (*module.variables.values(), *entry.variables) if one.space is Space.SHARED]
        dynamic = [variable for variable in variables if variable.size is None or variable.external]
        at = end = SHARED_START
        placed: list[AlignedVariable] = []
        for variable in variables:
            if variable in dynamic:
                continue
            at = _aligned(at, variable.align)
            end = at + (variable.size or 0)
            placed.append(AlignedVariable(at, end, variable.align, variable.name))
            self.symbols[variable.name] = (Space.SHARED, at)
            self._shared_objects.append((at, end))
            at = end + APART
        if dynamic:
            at = _aligned(at, max(variable.align for variable in dynamic))
            end = at + self.launch.dynamic_shared
            self.symbols |= {variable.name: (Space.SHARED, at) for variable in dynamic}
            self._shared_objects.append((at, end))
        self._alignments = Alignments(placed, self.trusted) if placed else None
        used = end - SHARED_START - APART * max(0, len(variables) - len(dynamic) - (not dynamic))
        if used > MAX_SHARED:
            what = f"{entry.name} has {used:,} bytes of shared memory; a CTA has {MAX_SHARED:,}"
            raise InputError(what, entry.span)
        return end

    def _parameters(self, entry: PtxFunction) -> Block:
        arguments = self.launch.params
        check_directives(entry, self.launch)
        if len(arguments) != len(entry.params):
            number = len(entry.params)
            what = f"{entry.name} has {number} parameter{'' if number == 1 else 's'}; the launch gives {len(arguments)}"
            raise self.launch.wrong(what, "params lists them in the order of the entry")
        content, unknown = bytearray(), list[tuple[int, int]]()
        for param, value in zip(entry.params, arguments, strict=True):
            data = _encoded(value)
            size = param.size or len(data)
            if len(data) > size:
                raise self.launch.wrong(f"{param.name} has {size} bytes; the launch gives {len(data)}")
            start = -(-len(content) // max(param.align, 1)) * max(param.align, 1)
            reserve(2 * (start + size))
            content += bytes(start - len(content)) + data + bytes(size - len(data))
            unknown += [(start + at, length) for at, length in _unknown(value, size)]
            self.symbols[param.name] = (Space.PARAM, start)
        params = Instance("parameters", None, Space.PARAM, len(content))
        block = _block(params, 0, max(1, len(content)), bytes(content))
        for at, length in unknown:
            block.forget(at, length)
        return block

    def shared(self, cta: int, owner: tuple[object, ...]) -> Block:
        """The shared memory of a CTA."""
        reserve(2 * self.shared_size)
        instance = Instance(f"shared memory of CTA {cta}", owner, Space.SHARED, self.shared_size)
        block = _block(instance, 0, self.shared_size)
        block.aligned = self._alignments
        if self._reserved:
            block.write(RESERVED["1"], bytes(SHARED_START - RESERVED["1"]))
        return block

    def bounds(self, block: Block, at: int) -> tuple[int, int]:
        """Where the object begins and ends that has an offset of a block, or the one before it if none has."""
        if block.instance.space is not Space.SHARED:
            return 0, block.size
        number = bisect.bisect_right(self._shared_objects, (at, block.size))
        return self._shared_objects[number - 1] if number else (SHARED_START, SHARED_START)

    def allocate(self, size: int) -> int:
        """The address of new memory of the heap."""
        address = HEAP_START + self._allocated
        self._allocated += (size | 15) + 1 + APART
        reserve(2 * self._allocated)
        block = _block(Instance(f"heap memory {len(self.heap)}", None, Space.GLOBAL, size), address, max(1, size))
        self.heap[address] = block
        at = bisect.bisect_right(self._starts, address)
        self._starts.insert(at, address)
        self.blocks.insert(at, block)
        return address

    def release(self, block: Block) -> None:
        """Memory of the heap that is free again; its address is not given out once more."""
        at = self.blocks.index(block)
        del self.blocks[at], self._starts[at], self.heap[block.address]

    def is_unmapped(self, address: int | None) -> bool:
        """True if a generic address is in the global state space, and no memory is there."""
        return address is not None and self.find(address) is None and is_in(address, Space.GLOBAL)

    def find(self, address: int) -> Block | None:
        """The global memory that has an address."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        block = self.blocks[at]
        return block if address < block.address + block.size else None


def _contents(launch: Launch, buffer: Buffer, name: str) -> bytes | None:
    """What the launch says of the first contents of a buffer."""
    source = buffer.init or buffer.hex or buffer.file
    if source is not None and buffer.bytes > REMEMBERED:
        raise launch.wrong(f"{name} has {buffer.bytes:,} bytes; contents are for at most {REMEMBERED:,}")
    if buffer.init == "zero":
        return bytes(buffer.bytes)
    if buffer.init == "iota":
        return b"".join(struct.pack("<I", n & 0xFFFFFFFF) for n in range(buffer.bytes // 4))
    if buffer.file is None:
        return None if buffer.hex is None else bytes.fromhex(buffer.hex)
    content = read_bytes(buffer.file, buffer.bytes)
    if len(content) > buffer.bytes:
        raise InputError(f"{buffer.file}: has more than the {buffer.bytes:,} bytes of {name}")
    return content


def _uses_reserved(entry: PtxFunction) -> bool:
    """True if a kernel asks where the shared memory of the libraries lies."""
    operands = (operand for instruction in entry.body or () for operand in instruction.operands)
    return any(isinstance(operand, Special) and operand.name == "%reserved_smem_offset_1" for operand in operands)


def _encoded(param: Param) -> bytes:
    """The bytes of a parameter, zeros where they may be anything."""
    if param.type == "ptr":
        return (param.address or 0).to_bytes(8, "little")
    if param.fields:
        members = {member.offset: _encoded(member) for member in param.fields}
        content = bytearray(max(at + len(data) for at, data in members.items()))
        for at, data in members.items():
            content[at : at + len(data)] = data
        return bytes(content)
    if param.type == "bytes":
        return bytes.fromhex(param.hex or "")
    size = KINDS[param.type]
    if param.type == "fp32":
        return struct.pack("<f", float(param.value or 0))
    if param.type == "fp64":
        return struct.pack("<d", float(param.value or 0))
    if param.type == "fp16":
        return struct.pack("<e", float(param.value or 0))
    if param.type == "bf16":
        return struct.pack("<f", float(param.value or 0))[2:]
    return (int(param.value or 0) & (1 << size * 8) - 1).to_bytes(size, "little")


def _unknown(param: Param, size: int) -> list[tuple[int, int]]:
    """The bytes of a parameter that may be anything: where they begin, and how many."""
    if param.type == "ptr" or (param.type == "bytes" and param.hex is not None):
        return []
    if param.type != "bytes":
        return [(0, size)] if param.value is None else []
    given = bytearray(size)
    for member in param.fields:
        if member.type == "ptr" or member.value is not None:
            length = len(_encoded(member))
            given[member.offset : member.offset + length] = b"\1" * length
    return [(at, 1) for at, known in enumerate(given) if not known]
