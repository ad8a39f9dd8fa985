"""A launch that is given in part, completed: from what the module says, from what its run needs.

In: module, entry, JSON values. Out: a `Launch`, which keeps what was assumed and what was guessed for it. Settled here:
what no part of the run depends on stays unknown. A number that the run needs is guessed, and a verdict that rests on a
guess is never clean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memmodel.errors import InputError
from memmodel.isa.lowered import body_of
from memmodel.kernel.all_sizes.parameters import ParamPart, feeding_loads, parameters, parts_of
from memmodel.kernel.flow.origin import place_of
from memmodel.kernel.launch import KINDS, Launch, LeftContents, extents, placed_launch
from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.memory import MAX_SHARED
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.question.encoded_maps import IN_WORDS, extent, from_arguments
from memmodel.kernel.question.pointers import POINTER_BYTES, pointers, tensor_map_params
from memmodel.kernel.question.requests import POINTER, STRUCT
from memmodel.kernel.trace.problems import Refused
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.ptx.module.syntax import PtxFunction, PtxModule
from memmodel.ptx.operands import Special
from memmodel.ptx.vocabulary import Sem, Space

SPACING = 1 << 32
"""Bytes from one buffer to the next, if their addresses are not given."""

ROOM, ZEROED = 1 << 26, 1 << 20
"""Bytes of a buffer whose size is not given; and of one that holds zeros."""

MOST_BUFFERS = 1 << 12
"""The most buffers of a launch whose addresses are not given: those of the next launch of a list follow them."""

FEW = 256
"""What is taken for a number that the run needs: with 0, most loops would run no round."""

MOST_RUNS = 24
"""Runs to find out which numbers are needed."""

BLOCKS = (128, 64, 32, 256, 512, 1024)
"""Sizes of a block that is not given. The first is taken with which every access lies in its buffer."""

MANY, FEWEST = 400_000, 4
"""If a run has more instructions of lanes than this, guessed numbers are made smaller, but not smaller than
`FEWEST`."""

BAD_ADDRESS = "undefined-address"
"""The finding for an access that lies in no buffer."""

NUMBERS_OF_CTAS = ("%ctaid", "%clusterid", "%smid")
"""Special registers in which CTAs differ, if they are not in one cluster."""

OF_SIZES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
OF_TYPES = {"f32": "fp32", "f64": "fp64", "f16": "fp16", "b16": "u16", "b8": "u8"}


@dataclass(frozen=True, slots=True)
class LaunchesBefore:
    """The launches before one in a list of launches. `count`: how many; `left`: what they leave in memory."""

    count: int = 0
    left: LeftContents | None = None

    @property
    def addresses(self) -> int:
        """The first address for buffers of this launch whose addresses are not given: after those of earlier ones."""
        return self.count * MOST_BUFFERS * SPACING


@dataclass(slots=True)
class Completion:
    """What is added to a launch. `guessed`: each guess as a sentence, with the option that replaces it."""

    module: PtxModule
    entry: PtxFunction
    request: dict[str, Any]
    before: LaunchesBefore = LaunchesBefore()
    assumed: dict[str, str] = field(default_factory=dict)
    guessed: dict[str, str] = field(default_factory=dict)
    roomy: list[dict[str, Any]] = field(default_factory=list)
    """Buffers whose sizes are not given."""
    numbers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Parameters for which numbers were guessed."""
    grown: bool = False
    all_guessed: bool = False
    blocks: list[int] = field(default_factory=list)
    """Sizes of the block that are still to be tried."""

    def sizes(self) -> None:
        """Grid, block, cluster and dynamic shared memory."""
        request, directives = self.request, self.entry.directives
        if request.get("cluster") is None:
            request["cluster"] = list(extents(directives.get("reqnctapercluster") or (1,)))
        if request.get("block") is None:
            exact, most = directives.get("reqntid"), directives.get("maxntid")
            block = list(extents(exact or most or BLOCKS[:1]))
            request["block"] = block
            if exact is None and most is not None:
                self.assumed[f"a block has {_times(block)} threads, the most that it may have"] = "--block"
            elif exact is None:
                self.blocks = list(BLOCKS[1:])
        if request.get("grid") is None:
            cluster = [size if isinstance(size, int) else 1 for size in request["cluster"]]
            request["grid"] = [2 * cluster[0], *cluster[1:]] if self._several_ctas() else cluster
            self.guessed[f"the grid; {_times(request['grid'])} was taken"] = f"--grid {_commas(request['grid'])}"
        variables = [
            variable
            for variable in (*self.module.variables.values(), *self.entry.variables)
            if variable.space is Space.SHARED
        ]
        if request.get("dynamic_shared") is None:
            request["dynamic_shared"] = 0
            if any(variable.external or variable.size is None for variable in variables):
                fixed = sum((variable.size or 0) + variable.align for variable in variables if not variable.external)
                request["dynamic_shared"] = max(0, MAX_SHARED - (fixed + 1023) // 1024 * 1024 - 1024)
                self.assumed["dynamic shared memory is as large as the kernel needs"] = "--dynamic-shared"

    def _several_ctas(self) -> bool:
        """True if CTAs can do different things: they read their index, or there are atomic operations."""
        operands = (operand for does in body_of(self.entry) for operand in does.instruction.operands)
        asks = any(isinstance(operand, Special) and operand.name.startswith(NUMBERS_OF_CTAS) for operand in operands)
        return asks or any(does.atomic for does in body_of(self.entry))

    def tensor_maps(self, name: str) -> None:
        """Tensor maps, and the buffers that follow from them."""
        maps = self.request.get("tensormaps") or []
        if not isinstance(maps, list):
            return
        maps = [spec for spec in maps if not (isinstance(spec, Mapping) and spec.get("globalDim", 0) is None)]
        specs = [from_arguments(spec, name) if isinstance(spec, Mapping) else spec for spec in maps]
        self.request["tensormaps"] = specs
        for number, spec in enumerate(specs):
            if not isinstance(spec, dict) or not {"dims", "strides_bytes", "element_bytes"} <= spec.keys():
                continue
            spec["param"] = self._map_name(spec.get("param"))
            try:
                size = extent(spec)
            except (TypeError, ValueError):
                continue
            address = spec.get("address")
            if isinstance(address, str) and not address[:1].isdecimal():
                spec["address"] = self._address_of(address, size, name)
            elif address is None:
                spec["address"] = hex(self.before.addresses + (len(self.entry.params) + number + 1) * SPACING)
            if not self._covered(spec["address"]):
                buffers = self.request.setdefault("buffers", [])
                buffers.append({"name": f"tensor of {spec['param']}", "address": spec["address"], "bytes": size})

        described = {spec.get("param") for spec in specs if isinstance(spec, dict)}
        for param, given in zip(self.entry.params, self.request["params"], strict=False):
            names = {param.name, given.get("name") if isinstance(given, dict) else None}
            if param.name in tensor_map_params(self.entry) and not names & described:
                called = given.get("name") or param.name
                self.guessed[f"the tensor map {called}; none was taken"] = f"such as --set {called}={IN_WORDS}"

    def _map_name(self, given: object) -> object:
        """The parameter of a map, by its name or number; if neither is given, the only parameter that is a map."""
        if isinstance(given, int) or (isinstance(given, str) and given.isdecimal()):
            number = int(given)
            return self.entry.params[number].name if number < len(self.entry.params) else given
        used = tensor_map_params(self.entry)
        return used[0] if given is None and len(used) == 1 else given

    def _address_of(self, named: str, size: int, name: str) -> object:
        """The address of the buffer of that name, which holds a tensor of `size` bytes. Raises InputError."""
        parts = [*self.request["params"], *(self.request.get("buffers") or ())]
        for part in parts:
            if isinstance(part, dict) and part.get("name") == named and part.get("address") is not None:
                if part in self.roomy:
                    part["bytes"] = max(part["bytes"], size)
                return part["address"]
        raise InputError(f"{name}: a tensor map lies in {named}, and there is no buffer of that name")

    def _covered(self, address: object) -> bool:
        """True if an address lies in a buffer that is given."""
        at = _whole(address)
        for part in (*self.request["params"], *(self.request.get("buffers") or ())):
            buffer = part if isinstance(part, dict) else {}
            begin, size = _whole(buffer.get("address")), _whole(buffer.get("bytes"))
            if at is None or (begin is not None and size is not None and begin <= at < begin + size):
                return True
        return False

    def params(self) -> None:
        """The types of parameters, and buffers for those that are pointers."""
        params = self.request["params"]
        if len(params) != len(self.entry.params):
            return
        points = pointers(self.entry)
        maps = set(tensor_map_params(self.entry))
        for number, (param, given) in enumerate(zip(self.entry.params, params, strict=True)):
            if not isinstance(given, dict):
                continue
            whole = ParamPart(param.name, 0, POINTER_BYTES)
            struct = param.type == "b8" and param.size is not None and param.size > 1
            if given.get("type") is None:
                number_type = OF_TYPES.get(param.type, param.type)
                given["type"] = STRUCT if struct else POINTER if whole in points else number_type
            address = self.before.addresses + (number + 1) * SPACING
            if given["type"] == POINTER:
                self._buffer(given, address)
            elif given["type"] == STRUCT and given.get("hex") is None:
                inside = [part for part in points if part.name == param.name and param.name not in maps]
                self._members(given, inside, address)
                if param.name in maps:
                    given["hex"] = "00" * TENSORMAP_BYTES
            elif "number" in given:
                given["value"] = given.pop("number")

    def _members(self, given: dict[str, Any], inside: Iterable[ParamPart], address: int) -> None:
        """The members of a structure: those that are given, and its pointers."""
        members = given.setdefault("fields", [])
        offsets = {member.get("offset"): member for member in members}
        for part in sorted(inside, key=lambda part: part.offset):
            if part.offset not in offsets:
                members.append({"offset": part.offset})
                offsets[part.offset] = members[-1]
            offsets[part.offset].setdefault("type", POINTER)
        sizes = {part.offset: part.size for does in body_of(self.entry) for part in parts_of(does)}
        for number, (offset, member) in enumerate(sorted(offsets.items())):
            member.setdefault("type", "b64" if sizes.get(offset) == POINTER_BYTES else "b32")
            member.setdefault("name", f"{given['name']}+{offset}")
            if member["type"] == POINTER:
                self._buffer(member, address + number * (SPACING >> 5))
            elif "number" in member:
                member["value"] = member.pop("number")
        if not members:
            del given["fields"]

    def _buffer(self, given: dict[str, Any], address: int) -> None:
        size = given.pop("number", None)
        if size is not None:
            given["bytes"] = size
        if given.get("bytes") is None:
            given["bytes"] = ZEROED if given.get("init") else ROOM
            self.roomy.append(given)
        if given.get("address") is None:
            given["address"] = hex(address)

    # ---- what the run needs ----------------------------------------------------------------------------------

    def needed(self, error: Refused) -> bool:
        """Guess the values that a run lacked when it stopped. False if nothing that was not given can be the reason."""
        at = place_of(self.entry, error)
        if at is None:
            return self._guess_all()
        slots = body_of(self.entry)[at.number].sources if at.guard is None else (at.guard.slot,)
        guessed = [self._guess(part) for part in parameters(self.entry, slots)]
        if any(guessed):
            return True
        loads = feeding_loads(self.entry, slots)
        sources = {part for does in loads for part in parameters(self.entry, does.sources)}
        return any([self._zero(part) for part in sorted(sources)]) or self._guess_all()

    def _guess_all(self) -> bool:
        """Guess everything that may have stopped a run by way of memory: all numbers, and the contents of words that
        atomic operations or strong accesses use.
        """
        if self.all_guessed:
            return False
        self.all_guessed = True
        body = body_of(self.entry)
        parts = {part for does in body for part in parts_of(does)}
        numbers = [self._guess(part) for part in sorted(parts) if part not in pointers(self.entry)]
        meeting = (does for does in body if does.access is not None and does.access.sem is not Sem.WEAK)
        words = {part for does in meeting for part in parameters(self.entry, does.sources)}
        return any(numbers + [self._zero(part) for part in sorted(words & pointers(self.entry))])

    def smaller(self) -> bool:
        """Make the numbers that were guessed smaller. False if they cannot be."""
        small = [
            given
            for given in self.numbers.values()
            if given["value"] > FEWEST and given["value"] == int(given["value"])
        ]
        for given in small:
            given["value"] //= 4
        return bool(small)

    def other_block(self) -> bool:
        """Guess another number of threads. False if there is none left."""
        if not self.blocks:
            return False
        self.request["block"] = list(extents(self.blocks[:1]))
        del self.blocks[0]
        return True

    def _guess(self, part: ParamPart) -> bool:
        """Take a number for a part of a parameter, if none is given."""
        at = next(at for at, param in enumerate(self.entry.params) if param.name == part.name)
        given = self.request["params"][at]
        if given.get("type") == STRUCT:
            members = given.setdefault("fields", []) if given.get("hex") is None else []
            kind = OF_SIZES.get(part.size)
            if given.get("hex") is not None or kind is None or any(one["offset"] == part.offset for one in members):
                return False
            members.append({"name": f"{given['name']}+{part.offset}", "offset": part.offset, "type": kind})
            given = members[-1]
        elif given.get("type") not in KINDS or given.get("value") is not None:
            return False
        whole = not given["type"].startswith(("fp", "bf"))
        given["value"] = min(FEW, (1 << 8 * part.size - 1) - 1) if whole else 1.0
        self.numbers[given["name"]] = given
        return True

    def _zero(self, part: ParamPart) -> bool:
        """Let a buffer hold zeros, if its contents are not given."""
        at = next(at for at, param in enumerate(self.entry.params) if param.name == part.name)
        given = self.request["params"][at]
        if given.get("type") == STRUCT:
            given = next((one for one in given.get("fields") or () if one["offset"] == part.offset), {})
        if given.get("type") != POINTER or given.get("init") or given.get("hex") or given.get("file"):
            return False
        given["init"] = "zero"
        if any(given is buffer for buffer in self.roomy):
            given["bytes"] = ZEROED
        if given["bytes"] > ROOM:
            return False
        self.guessed[f"what {given['name']} holds; zeros were taken"] = f"--set {given['name']}=zero"
        return True

    def grow(self) -> bool:
        """Make buffers larger, for accesses that lie far apart. The contents of such large buffers are not kept."""
        if self.grown or not self.roomy:
            return False
        self.grown = True
        for given in self.roomy:
            if not given.get("init"):
                given["bytes"] = SPACING if given in self.request["params"] else SPACING >> 5
        return True

    def launch(self, name: str) -> Launch:
        """The launch with all that is known by now. Raises InputError."""
        launch = placed_launch(self.request, name)
        assumed, guessed = dict(self.assumed), dict(self.guessed)
        if self.blocks:
            block = self.request["block"]
            guessed[f"the block; {_times(block)} was taken"] = f"--block {_commas(block)}"
        for number, given in self.numbers.items():
            guessed[f"{number}; {given['value']} was taken"] = f"--set {number}={given['value']}"
        if self.roomy:
            assumed["buffers without a size do not overlap, and are as large as the kernel needs"] = (
                "their addresses and bytes in a launch description"
            )
        if self.before.count and self.roomy:
            assumed["buffers whose addresses are not given are those of no other launch"] = "their addresses"
        return launch.completed(assumed, guessed, self.before.left)


def completed(
    module: PtxModule,
    entry: PtxFunction,
    request: dict[str, Any],
    name: str,
    ctas: Callable[[Launch], tuple[int, ...]],
    assumed: Mapping[str, str],
    before: LaunchesBefore = LaunchesBefore(),
) -> Launch:
    """The launch that a request asks for. `ctas`: those of a launch that are run; `assumed`: what is so far; `before`:
    the launches before it. Raises InputError.
    """
    completion = Completion(module, entry, request, before, dict(assumed))
    completion.sizes()
    completion.params()
    completion.tensor_maps(name)
    launch = completion.launch(name)
    least: tuple[int, Launch] | None = None
    for _ in range(MOST_RUNS if _is_open(launch) or completion.roomy or completion.blocks else 0):
        try:
            run = run_launch(module, entry, launch, Schedule(ctas=ctas(launch)))
        except Refused as error:
            if not completion.needed(error):
                break
        else:
            misplaced = any(problem.rule == BAD_ADDRESS for problem in run.problems)
            if not misplaced or not (completion.grow() or completion.other_block()):
                if least is not None and 4 * run.instructions > 3 * least[0]:
                    return least[1]
                least = run.instructions, launch
                if run.instructions <= MANY or not completion.smaller():
                    break
        launch = completion.launch(name)
    return launch


def _whole(value: object) -> int | None:
    """A number that may be written as a string."""
    try:
        return int(value, 0) if isinstance(value, str) else value if isinstance(value, int) else None
    except ValueError:
        return None


def _times(sizes: Sequence[int]) -> str:
    return "×".join(map(str, sizes))


def _commas(sizes: Sequence[int]) -> str:
    return ",".join(map(str, sizes))


def _is_open(launch: Launch) -> bool:
    """True if a parameter, or a part of one, may be anything."""
    return any(
        (param.value is None and param.type not in (POINTER, STRUCT)) or (param.type == STRUCT and param.hex is None)
        for param in launch.params
    )
