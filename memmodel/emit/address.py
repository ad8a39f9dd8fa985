"""How a variable is addressed in PTX: by its name, or through a register that is set up before the thread begins.

In: a use of a variable by a thread. Out: the text that stands for it, and the lines that prepare it. Settled here: a
name stays symbolic where PTX takes it so; aliases (and all global variables of a test for several GPUs) are pointers
that the host passes, as it does the numbers of logical endpoints; another CTA's shared memory is reached by mapa;
tensor memory counts from the allocation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memmodel.litmus.constants import all_instructions
from memmodel.litmus.syntax import Instruction, LitmusTest, Variable, root_of
from memmodel.ptx.operands import Imm, Sym, within
from memmodel.ptx.vocabulary import Proxy, Space

OURS = "mm_"
"""What every name of the set-up begins with."""


def clean(name: str) -> str:
    """A litmus name as a PTX identifier that is not one of ours."""
    text = re.sub(r"[^A-Za-z0-9_$]", "_", name)
    return f"v_{text}" if text.startswith(OURS) or not re.match(r"[A-Za-z]|[_$].", text) else text


def plus(base: str, offset: int) -> str:
    """An address with an offset in bytes; PTX has no minus there."""
    return f"{base}+{offset}" if offset else base


def number(value: int, kind: str = "") -> str:
    """An immediate; the litmus language knows floating-point values by their bits."""
    if kind in ("f32", "f64"):
        width = int(kind[1:])
        return f"0{'f' if width == 32 else 'd'}{value & ((1 << width) - 1):0{width // 4}X}"
    return str(value) if value < 1 << 63 else f"{value:#x}"


@dataclass(frozen=True, slots=True)
class EmittedVariables:
    """The variables of a test as a launch has them. `offsets`: where each .tensor variable begins, in columns."""

    variables: dict[str, Variable]
    pointers: frozenset[str]
    offsets: dict[str, int]

    @property
    def endpoints(self) -> list[Variable]:
        """The logical endpoints of the test."""
        return [variable for variable in self.variables.values() if variable.proxy is Proxy.FABRIC]

    @staticmethod
    def of(test: LitmusTest, gpus: int) -> EmittedVariables:
        variables = {variable.name: variable for variable in test.variables}
        memory = EmittedVariables(variables, frozenset(), {})
        pointers = set()
        for variable in test.variables:
            space = memory.root(variable.name).space
            in_global = space in (Space.GLOBAL, Space.GENERIC)
            alias = variable.alias_of is not None and variable.proxy is Proxy.GENERIC
            if in_global and variable.proxy is not Proxy.FABRIC and (alias or variable.multimem or gpus > 1):
                pointers.add(variable.name)
        column = 0
        allocated = [_columns(instruction) for instruction in all_instructions(test) if _allocates(instruction)]
        for variable in test.variables:
            if variable.space is Space.TENSOR and variable.alias_of is None:
                memory.offsets[variable.name] = column
                column += allocated.pop(0) if allocated else variable.length
        return EmittedVariables(variables, frozenset(pointers), memory.offsets)

    def root(self, name: str) -> Variable:
        """The variable that this one is, or is finally an alias of."""
        return root_of(self.variables, name)

    def symbol(self, name: str) -> str:
        """The name in the module of the memory that a name of the test means."""
        return clean(self.root(name).name)

    def allocates(self, test: LitmusTest) -> bool:
        """True if the set-up must allocate tensor memory: the test uses it and does not allocate it itself."""
        body = list(all_instructions(test))
        if any(_allocates(instruction) for instruction in body):
            return False
        operands = (part for instruction in body for operand in instruction.operands for part in within(operand))
        used = {operand.name for operand in operands if isinstance(operand, Sym)}
        return any(self.root(name).space is Space.TENSOR for name in used if name in self.variables)

    def columns(self) -> int:
        """Tensor-memory columns to allocate: a power of two, at least 32."""
        used = sum(self.variables[name].length for name in self.offsets)
        return max(32, 1 << (used - 1).bit_length())


def _allocates(instruction: Instruction) -> bool:
    return instruction.mnemonic.startswith("tcgen05.alloc")


def _columns(instruction: Instruction) -> int:
    """What an alloc of the test allocates, where it says so in place; tensor memory is handed out from column 0."""
    last = instruction.operands[-1]
    return last.value if isinstance(last, Imm) else 32


def pointer(name: str) -> str:
    """The kernel parameter for a variable whose address the host passes."""
    return f"{OURS}ptr_{clean(name)}"


def endpoint(name: str) -> str:
    """The kernel parameter for a logical endpoint, whose number the host passes."""
    return f"{OURS}le_{clean(name)}"


@dataclass(slots=True)
class Addresses:
    """The addresses that one thread needs in registers, and how they get there. `cta`: the thread's own CTA."""

    memory: EmittedVariables
    cta: int
    lines: list[str] = field(default_factory=list)
    known: dict[tuple[object, ...], str] = field(default_factory=dict)

    def inside(self, symbol: Sym, offset: int, *, generic: bool) -> str:
        """What stands between the brackets of a memory operand."""
        root = self.memory.root(symbol.name)
        if root.space is Space.TENSOR:
            return self._tensor(root, offset)
        text = self._generic(symbol, root) if generic else self._direct(symbol, root)
        return plus(text, offset)

    def value(self, symbol: Sym, width: int, *, named: bool) -> str:
        """The address as a source operand of `width` bits; `named`: the instruction takes the name of a variable."""
        root = self.memory.root(symbol.name)
        if root.space is Space.TENSOR:
            return self._tensor(root, symbol.offset)
        text = self._address(symbol, root, width, named=named)
        if not symbol.offset or not text.startswith("%"):
            return plus(text, symbol.offset)
        return self._register(("on", text, symbol.offset), width, f"add.u{width} {{}}, {text}, {symbol.offset};")

    def _address(self, symbol: Sym, root: Variable, width: int, *, named: bool) -> str:
        """The address of a variable in its own state space."""
        remote = self._remote(symbol, root)
        if remote is None and symbol.name not in self.memory.pointers:
            text = self.memory.symbol(symbol.name)
            return text if named else self._register(("value", text, width), width, f"mov.b{width} {{}}, {text};")
        if remote is not None and width == 64:
            narrow = self._direct(symbol, root)
            return self._register(("wide", narrow), 64, f"cvt.u64.u32 {{}}, {narrow};")
        return self._direct(symbol, root)

    def width(self, text: str) -> int:
        """The width of a register that `inside` names; a name has the width of an address."""
        return 32 if f".reg .b32 {text};" in self.lines else 64

    def generic(self, symbol: Sym) -> str:
        """A variable as its generic address."""
        return self._generic(symbol, self.memory.root(symbol.name))

    def endpoint(self, symbol: Sym) -> str:
        """The number of a logical endpoint."""
        name = endpoint(symbol.name)
        return self._register(("endpoint", name), 32, f"ld.param.u32 {{}}, [{name}];")

    def offset(self, offset: int) -> str:
        """The offset of a handle, for which ptxas takes no number."""
        return self._register(("offset", offset), 64, f"mov.b64 {{}}, {offset};")

    def _direct(self, symbol: Sym, root: Variable) -> str:
        """An address in the variable's own state space."""
        if symbol.name in self.memory.pointers:
            name = pointer(symbol.name)
            lines = (f"ld.param.u64 {{}}, [{name}];", "cvta.to.global.u64 {}, {};")
            return self._register(("pointer", name), 64, *lines)
        remote = self._remote(symbol, root)
        text = self.memory.symbol(symbol.name)
        if remote is None:
            return text
        return self._register(("remote", text, remote), 32, f"mapa.shared::cluster.u32 {{}}, {text}, {remote};")

    def _generic(self, symbol: Sym, root: Variable) -> str:
        text = self.memory.symbol(symbol.name)
        if symbol.name in self.memory.pointers:
            return self._register(("generic", symbol.name), 64, f"ld.param.u64 {{}}, [{pointer(symbol.name)}];")
        space = {Space.GENERIC: "global"}.get(root.space, root.space.value)
        lines = [f"mov.b64 {{}}, {text};", f"cvta.{space}.u64 {{}}, {{}};"]
        remote = self._remote(symbol, root)
        if remote is not None:
            lines.append(f"mapa.u64 {{}}, {{}}, {remote};")
        return self._register(("generic", text, remote), 64, *lines)

    def _remote(self, symbol: Sym, root: Variable) -> int | None:
        """The rank of the CTA that holds the instance, where it is not the thread's own."""
        cta = symbol.cta if symbol.cta is not None else root.cta
        return None if root.space is not Space.SHARED or cta in (None, self.cta) else cta

    def _tensor(self, root: Variable, offset: int) -> str:
        column = self.memory.offsets[root.name] + offset
        return self._register(("tensor", column), 32, f"add.u32 {{}}, %{OURS}tmem, {column};")

    def _register(self, key: tuple[object, ...], width: int, *lines: str) -> str:
        if key not in self.known:
            name = f"%{OURS}a{len(self.known)}"
            self.known[key] = name
            self.lines.append(f".reg .b{width} {name};")
            self.lines += [line.replace("{}", name) for line in lines]
        return self.known[key]
