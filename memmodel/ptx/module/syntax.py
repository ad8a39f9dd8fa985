"""A PTX module as written, with names resolved.

In: nothing. Out: `PtxModule` and its parts. Registers have numbers that are unique in a function, labels are places in
its list of instructions; the braces that scope both are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from memmodel.ptx.operands import Operand, Register
from memmodel.ptx.vocabulary import Space
from memmodel.source import Source, Span


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the source that was compiled. `caller`: where it was inlined. `function`: the mangled name of the
    function that was inlined there, if it is known.
    """

    file: str
    line: int
    column: int
    caller: Location | None = None
    function: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def with_callers(location: Location | None) -> Iterator[Location]:
    """A place in the source, then where it was inlined."""
    while location is not None:
        yield location
        location = location.caller


@dataclass(frozen=True, slots=True, eq=False)
class PtxInstruction:
    """`words`: the opcode between its dots. `number`: of the instruction in its function."""

    number: int
    words: tuple[str, ...]
    operands: tuple[Operand, ...]
    span: Span = field(repr=False)
    guard: Register | None = None
    negated: bool = False
    location: Location | None = field(default=None, repr=False)

    @property
    def opcode(self) -> str:
        return ".".join(self.words)

    @property
    def kind(self) -> str:
        """The second word of the opcode; nothing if it has but one."""
        return self.words[1] if len(self.words) > 1 else ""

    @property
    def line(self) -> int:
        return self.span.line

    @property
    def at_line(self) -> str:
        """`st.global.u32 at line 12`: how sentences name it."""
        return f"{self.opcode} at line {self.line}"


@dataclass(frozen=True, slots=True)
class AddressValue:
    """An initial value that is the address of `name`, plus `addend`, shifted right by `down` bits: `size` bytes at
    `at`. `generic`: it is the generic address, not that in the state space of `name`.
    """

    at: int
    size: int
    name: str
    addend: int
    down: int
    generic: bool = False


@dataclass(frozen=True, slots=True)
class Initial:
    """The initial contents of a variable: bytes, and the addresses among them."""

    content: bytes
    addresses: tuple[AddressValue, ...] = ()


@dataclass(frozen=True, slots=True)
class ModuleVariable:
    """A variable of the module or of a function, or a parameter.

    `space` None: a register, or a texture. `size` None: an array without a length. `pointer`: .ptr was written.
    """

    name: str
    space: Space | None
    type: str
    align: int
    size: int | None
    span: Span = field(repr=False)
    initial: Initial | None = None
    pointer: bool = False
    external: bool = False


@dataclass(frozen=True, slots=True)
class Callee:
    """A function in the body of the entry that calls it: where it begins and ends, its parameters and results.

    `registers`: the first and their number; `variables`: those of the function, one copy for each thread. `returns`:
    False if it is declared with .noreturn.
    """

    start: int
    end: int
    params: tuple[ModuleVariable, ...]
    results: tuple[ModuleVariable, ...]
    registers: tuple[int, int]
    variables: tuple[ModuleVariable, ...]
    returns: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class PtxFunction:
    """A .entry or .func. `body` None: only declared.

    `callees`: by their names, the functions whose bodies follow its own (`ptx.module.linking`).
    """

    name: str
    entry: bool
    params: tuple[ModuleVariable, ...]
    results: tuple[ModuleVariable, ...]
    span: Span = field(repr=False)
    body: tuple[PtxInstruction, ...] | None = None
    variables: tuple[ModuleVariable, ...] = ()
    registers: int = 0
    directives: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    callees: Mapping[str, Callee] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class PtxModule:
    """A PTX file."""

    source: Source = field(repr=False)
    version: tuple[int, int]
    target: str
    variables: Mapping[str, ModuleVariable]
    functions: Mapping[str, PtxFunction]

    @property
    def entries(self) -> tuple[PtxFunction, ...]:
        return tuple(function for function in self.functions.values() if function.entry)
