"""The memory of a test as PTX declares it.

In: LitmusTest, Memory. Out: declarations, and the instructions that give shared memory its first values. Settled here:
alignment (128 bytes for arrays, which any copy accepts), and the type of a variable that was declared without one.
"""

from __future__ import annotations

from memmodel.emit.address import OURS, EmittedVariables, clean, number
from memmodel.emit.body import Line
from memmodel.litmus.constants import all_instructions
from memmodel.litmus.syntax import LitmusTest, Variable
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.ptx.operands import Mem, Sym
from memmodel.ptx.vocabulary import DataType, Proxy, Space

TILE = 128
"""Alignment of arrays: that of swizzled tiles in shared memory, the strictest that a copy asks for."""

UNROLLED = 16
"""Elements of a shared array that are initialised one by one."""

_FILE_SPACES = {Space.GENERIC: "global", Space.GLOBAL: "global", Space.SHARED: "shared", Space.CONST: "const"}


def constant_parameters(test: LitmusTest) -> list[Variable]:
    """Variables that are parameters of the kernel."""
    return [v for v in test.variables if v.space is Space.PARAM and v.alias_of is None]


def declare_parameter(variable: Variable) -> str:
    """A .param variable in the kernel's signature."""
    return f".param {_what(variable, variable.type or DataType('b', 64))}"


def declare(test: LitmusTest, memory: EmittedVariables) -> list[Line]:
    """Module-scope variables, in the order of the test."""
    lines: list[Line] = []
    types = _used_types(test)
    for variable in test.variables:
        space = _FILE_SPACES.get(variable.space)
        if variable.multimem:
            text = f"// {clean(variable.name)}: a multimem address of {', '.join(map(clean, variable.multimem))}"
            lines.append((text, variable.span))
            continue
        if variable.alias_of is not None:
            if variable.name not in memory.pointers and variable.proxy is not Proxy.FABRIC:
                lines.append((f"// {clean(variable.name)} is {clean(variable.alias_of)}", variable.span))
            continue
        if space is None or variable.name in memory.pointers:
            if variable.space is not Space.PARAM:
                column = memory.offsets.get(variable.name)
                what = _first(variable) if column is None else f"tensor memory from column {column}"
                lines.append((f"// {clean(variable.name)}: {what}", variable.span))
            continue
        kind = variable.type or types.get(variable.name) or DataType("b", 64)
        text = f".{space} {_what(variable, kind)}"
        if space == "shared":
            lines.append((f"{text};", variable.span))
            continue
        text = f".visible {text}"
        lines.append((f"{text}{_values(variable)};", variable.span))
    return lines


def initialise(test: LitmusTest) -> list[Line]:
    """What one thread of each CTA does to its shared variables."""
    lines: list[Line] = []
    types = _used_types(test)
    for variable in test.variables:
        if variable.space is not Space.SHARED or variable.alias_of is not None or variable.maps:
            continue
        name = clean(variable.name)
        if variable.mbarrier is not None:
            for index in range(variable.length):
                at = f"{name}+{8 * index}" if index else name
                lines.append((f"mbarrier.init.shared.b64 [{at}], {variable.mbarrier};", variable.span))
            continue
        width = (variable.type or types.get(variable.name) or DataType("b", 64)).width
        lines += _stores(variable, name, width)
    return lines


def _stores(variable: Variable, name: str, width: int) -> list[Line]:
    size = width // 8
    lines: list[str] = []
    values = {index: value for index, value in enumerate(variable.init) if value}
    if variable.length > UNROLLED:
        loop, n, x = f"{OURS}clear_{name}", f"%{OURS}n", f"%{OURS}x"
        lines += [f"mov.b64 {x}, {name};", f"mov.u32 {n}, {variable.length * size};", f"{loop}:"]
        lines += [f"st.shared.b8 [{x}], 0;", f"add.u64 {x}, {x}, 1;", f"sub.u32 {n}, {n}, 1;"]
        lines += [f"setp.ne.u32 %{OURS}p, {n}, 0;", f"@%{OURS}p bra {loop};"]
    else:
        values = dict.fromkeys(range(variable.length), 0) | values
    for index, value in values.items():
        at = f"{name}+{index * size}" if index else name
        for half in range(max(1, width // 64)):
            part = value >> 64 * half & (1 << 64) - 1 if width > 64 else value
            lines.append(f"st.shared.b{min(width, 64)} [{at}{f'+{8 * half}' if half else ''}], {number(part)};")
    return [(text, variable.span) for text in lines]


def _what(variable: Variable, kind: DataType) -> str:
    """Alignment, type, name and size."""
    name = clean(variable.name)
    if variable.maps:
        return f".align {TILE} .b8 {name}[{TENSORMAP_BYTES * len(variable.maps)}]"
    natural = max(1, kind.width // 8)
    align = variable.align or (TILE if variable.array else natural)
    word = "b" + str(kind.width) if kind.kind == "f" and kind.width == 16 else str(kind)
    return f".align {max(align, natural)} .{word} {name}" + (f"[{variable.length}]" if variable.array else "")


def _first(variable: Variable) -> str:
    """The first values of a variable, for a comment."""
    values = [*variable.init[:8], *[0] * (min(variable.length, 8) - len(variable.init))]
    return ", ".join(map(str, values)) + (", …" if variable.length > 8 else "")


def _values(variable: Variable) -> str:
    if variable.maps or not any(variable.init):
        return ""
    if not variable.array:
        return f" = {number(variable.init[0], str(variable.type))}"
    last = max(index for index, value in enumerate(variable.init) if value)
    return " = {" + ", ".join(number(value, str(variable.type)) for value in variable.init[: last + 1]) + "}"


def _used_types(test: LitmusTest) -> dict[str, DataType]:
    """The widest type through which each variable is accessed, for those declared without one."""
    types: dict[str, DataType] = {}
    for instruction in all_instructions(test):
        width = next(
            (int(part[1:]) for part in reversed(instruction.parts) if part[:1] in "usb" and part[1:].isdigit()), 0
        )
        for operand in instruction.operands:
            if isinstance(operand, Mem) and isinstance(operand.base, Sym) and width in (8, 16, 32, 64, 128):
                known = types.get(operand.base.name)
                if known is None or known.width < width:
                    types[operand.base.name] = DataType("b", width)
    return types
