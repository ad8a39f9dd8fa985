"""A LitmusTest as text, in its layout; what is printed reads back as the same test.

In: LitmusTest. Out: text. A register is printed without `%` in a table where no reader can take it for
anything else. Barrier operands take the shortest form that the layout has for them.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from memmodel.litmus.check import assigned
from memmodel.litmus.instructions import is_cta_barrier, is_reduction
from memmodel.litmus.syntax import (
    Always,
    And,
    Compare,
    Condition,
    Instruction,
    Label,
    Layout,
    LitmusTest,
    LocValue,
    Number,
    Or,
    RegisterInit,
    RegValue,
    TensorView,
    Term,
    Thread,
    Variable,
)
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.ptx.operands import Blank, Imm, Mem, Negated, Operand, Pair, Real, Reg, Sym, TensorOperand, Vector
from memmodel.ptx.vocabulary import Place, Proxy, Space
from memmodel.source import Span


class Printed(NamedTuple):
    """A line that is printed, and where in the file what it says comes from; `mark` where nothing in the test knows:
    `title`, `sentence`, `{` and `}` (of the init block or of a thread), `locations` or `question`."""

    text: str
    spans: tuple[Span | None, ...] = ()
    mark: str = ""


def print_litmus(test: LitmusTest) -> str:
    """The test in its layout, ending with a newline. `isa.convert` gives it another one."""
    return "".join(f"{line.text}\n" for line in print_lines(test))


def print_lines(test: LitmusTest) -> list[Printed]:
    """The lines that `print_litmus` prints."""
    lines = [Printed(f"PTX {test.name}", mark="title")]
    lines += [Printed(f'"{sentence}"', mark="sentence") for sentence in test.description]
    lines += _expectations(test)
    lines += _columns(test) if test.layout is Layout.COLUMNS else _blocks(test)
    if test.shown:
        lines.append(_locations(test))
    lines.append(Printed(print_question(test), mark="question"))
    for further in test.questions()[1:]:
        lines += [Printed(""), *_expectations(further)]
        if further.shown != test.shown:
            lines.append(_locations(further))
        lines.append(Printed(print_question(further), mark="question"))
    return lines


def _expectations(test: LitmusTest) -> list[Printed]:
    words = " ".join(f"{expectation.model}:{expectation.word}" for expectation in test.expectations)
    spans = tuple(expectation.span for expectation in test.expectations)
    return [Printed(f"Expect={words}", spans)] if words else []


def _locations(test: LitmusTest) -> Printed:
    terms = " ".join(f"{_term(term, test.layout)};" for term in test.shown)
    return Printed(f"locations [{terms}]", mark="locations")


# ---- layouts -------------------------------------------------------------------------------------------------


def _columns(test: LitmusTest) -> list[Printed]:
    lines = [Printed("{", mark="{"), *_declarations(test, Layout.COLUMNS), Printed("}", mark="}")]
    columns = [[f"{thread.name}@{_place(thread.place, ',')}", *_cells(test, thread)] for thread in test.threads]
    height = max(map(len, columns))
    widths = [max(map(len, column)) for column in columns]
    for row in range(height):
        cells = [column[row] if row < len(column) else "" for column in columns]
        printed = (thread if row == 0 else thread.body[row - 1] for thread in test.threads if row <= len(thread.body))
        text = " " + " | ".join(map(str.ljust, cells, widths)) + " ;"
        lines.append(Printed(text, tuple(cell.span for cell in printed)))
    return lines


def _cells(test: LitmusTest, thread: Thread) -> list[str]:
    initial = {start.register for start in test.registers if start.thread == thread.name}
    taken = {variable.name for variable in test.variables}
    taken |= {label.name for label in thread.body if isinstance(label, Label)}
    plain = frozenset((assigned(thread.body) | initial) - taken - {"_"})
    return [_statement(statement, Layout.COLUMNS, plain) for statement in thread.body]


def _blocks(test: LitmusTest) -> list[Printed]:
    declarations = _declarations(test, Layout.BLOCKS)
    lines = [Printed(""), *declarations] if declarations else []
    for thread in test.threads:
        lines += [Printed(""), Printed(f"thread {thread.name} @ {_place(thread.place, ', ')} {{", (thread.span,))]
        if thread.predicates:
            lines.append(Printed("    .reg .pred " + ", ".join(f"%{name}" for name in sorted(thread.predicates)) + ";"))
        for statement in thread.body:
            text = _statement(statement, Layout.BLOCKS, frozenset())
            lines.append(Printed(text if isinstance(statement, Label) else f"    {text};", (statement.span,)))
        lines.append(Printed("}", mark="}"))
    return [*lines, Printed("")]


def _place(place: Place, comma: str) -> str:
    parts = [f"cta {place.cta}"]
    if place.cluster is not None:
        parts.append(f"cluster {place.cluster}")
    if place.grid:
        parts.append(f"grid {place.grid}")
    parts.append(f"gpu {place.gpu}")
    if place.warp is not None:
        parts.append(f"warp {place.warp}")
    return comma.join(parts)


# ---- declarations --------------------------------------------------------------------------------------------


def _declarations(test: LitmusTest, layout: Layout) -> list[Printed]:
    variables = [Printed(f"{_variable(variable, layout)};", (variable.span,)) for variable in test.variables]
    return variables + [Printed(f"{_register_init(start, layout)};", (start.span,)) for start in test.registers]


def _variable(variable: Variable, layout: Layout) -> str:
    words = []
    if variable.space is not Space.GENERIC:
        words.append(f".{variable.space.value}")
    if variable.align is not None:
        words.append(f".align {variable.align}")
    if variable.type is not None:
        words.append(f".{variable.type}")
    size = TENSORMAP_BYTES * len(variable.maps) or variable.length
    words.append(f"{variable.name}[{size}]" if variable.array else variable.name)
    if variable.alias_of is not None:
        if variable.proxy is not Proxy.GENERIC or layout is Layout.COLUMNS:
            words.append(f"@ {variable.proxy.value}")
        words.append(f"aliases {variable.alias_of}")
        return " ".join(words)
    if variable.cta is not None:
        words.append(f"@ cta {variable.cta}")
    if variable.mbarrier is not None:
        words.append(f"= mbarrier({variable.mbarrier})")
    elif variable.multimem:
        words.append(f"= multimem({', '.join(variable.multimem)})")
    elif variable.allocates is not None:
        words.append(f"= alloc({variable.allocates})")
    elif variable.maps:
        views = ", ".join(map(_view, variable.maps))
        words.append(f"= {views}" if len(variable.maps) == 1 else f"= {{{views}}}")
    elif not variable.array:
        words.append(f"= {variable.init[0] if variable.init else 0}")
    elif any(variable.init):
        last = max(i for i, value in enumerate(variable.init) if value)
        words.append("= {" + ", ".join(map(str, variable.init[: last + 1])) + "}")
    return " ".join(words)


def _view(view: TensorView) -> str:
    return f"tensormap({', '.join([view.data, *(_extent(sizes) for sizes in (view.box, view.shape) if sizes)])})"


def _extent(sizes: tuple[int, ...]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else "{" + ", ".join(map(str, sizes)) + "}"


def _register_init(start: RegisterInit, layout: Layout) -> str:
    return f"{start.thread}:{'%' if layout is Layout.BLOCKS else ''}{start.register} = {start.value}"


# ---- instructions --------------------------------------------------------------------------------------------


def _statement(instruction: Instruction | Label, layout: Layout, plain: frozenset[str]) -> str:
    """An instruction or a label. `plain`: registers that are printed without `%`."""
    if isinstance(instruction, Label):
        return f"{instruction.name}:"
    guard = ""
    if instruction.guard is not None:
        guard = f"@{'!' if instruction.guard.negated else ''}{_register(instruction.guard.register, plain)} "
    operands = instruction.operands
    if is_cta_barrier(instruction.mnemonic):
        operands = _barrier(operands, is_reduction(instruction.mnemonic), layout)
    pair = "({})" if layout is Layout.COLUMNS else "{}"
    texts = ((pair if isinstance(operand, Pair) else "{}").format(_operand(operand, plain)) for operand in operands)
    return f"{guard}{instruction.mnemonic} {', '.join(texts)}".rstrip()


def _barrier(operands: tuple[Operand, ...], reduction: bool, layout: Layout) -> tuple[Operand, ...]:
    """(instance, resource, count) without the blanks that the layout can leave out."""
    front, back = (operands[:1], operands[-1:]) if reduction else ((), ())
    middle = operands[len(front) : len(operands) - len(back)]
    if len(middle) != 3:
        return operands
    instance, resource, count = middle
    if isinstance(resource, Blank) and isinstance(count, Blank):
        return (*front, instance, *back)
    if layout is Layout.COLUMNS and isinstance(count, Blank):
        return (*front, instance, resource, *back)
    if layout is Layout.BLOCKS and isinstance(resource, Blank):
        return (*front, instance, count, *back)
    return operands


def _register(name: str, plain: frozenset[str]) -> str:
    return name if name in plain else f"%{name}"


def _operand(operand: Operand, plain: frozenset[str]) -> str:
    if isinstance(operand, Reg):
        return _register(operand.name, plain)
    if isinstance(operand, Imm):
        return str(operand.value)
    if isinstance(operand, Real):
        return print_real(operand)
    if isinstance(operand, Sym):
        return _symbol(operand)
    if isinstance(operand, Mem):
        return f"[{_operand(operand.base, plain)}{f'{operand.offset:+d}' if operand.offset else ''}]"
    if isinstance(operand, TensorOperand | Vector):
        texts = ", ".join(_operand(element, plain) for element in operand.items)
        return f"[{texts}]" if isinstance(operand, TensorOperand) else f"{{{texts}}}"
    if isinstance(operand, Negated):
        return f"!{_register(operand.operand.name, plain)}"
    if isinstance(operand, Pair):
        return f"{_operand(operand.first, plain)}|{_operand(operand.second, plain)}"
    return "_"


def print_real(number: Real) -> str:
    """A floating-point number that reads back as the same bits: the shortest decimal, or the bits."""
    if number.width == 64 and isfinite(number.value):
        return repr(number.value)
    return f"0{'f' if number.width == 32 else 'd'}{number.bits:0{number.width // 4}X}"


def _symbol(symbol: Sym) -> str:
    name = symbol.name if symbol.cta is None else f"{symbol.name}@cta{symbol.cta}"
    return f"{name}{symbol.offset:+d}" if symbol.offset else name


# ---- the question --------------------------------------------------------------------------------------------


def _term(term: Term, layout: Layout) -> str:
    if isinstance(term, Number):
        return str(term.value)
    if isinstance(term, RegValue):
        return f"{term.thread}:{'%' if layout is Layout.BLOCKS else ''}{term.register}"
    return _location(term)


def _location(term: LocValue) -> str:
    index = f"[{term.index}]" if term.index else ""
    return f"{term.name}{whose(term)}{index}"


def whose(term: LocValue) -> str:
    """Whose instance of a variable a condition names."""
    if term.thread is not None:
        return f"@{term.thread}"
    return "" if term.cta is None else f"@cta{term.cta}"


def print_question(test: LitmusTest) -> str:
    """`exists (…)`, `exists true` or `exists race`, as the layout spells it."""
    question = test.finding or print_condition(test.condition, test.layout)
    plain = test.finding is not None or question == "true"
    return f"{test.quantifier.value} {question if plain else f'({question})'}"


def print_condition(condition: Condition, layout: Layout = Layout.COLUMNS) -> str:
    """A condition as the layout spells it, without the parentheses around all of it."""
    if isinstance(condition, Always):
        return "true"
    if isinstance(condition, Compare):
        return f"{_term(condition.left, layout)} {condition.op} {_term(condition.right, layout)}"
    if isinstance(condition, And):
        return " /\\ ".join(_inner(conjunct, layout, (And, Or)) for conjunct in condition.items)
    if isinstance(condition, Or):
        return " \\/ ".join(_inner(disjunct, layout, (Or,)) for disjunct in condition.items)
    return f"not {_inner(condition.operand, layout, (And, Or, Compare))}"


def _inner(condition: Condition, layout: Layout, wrapped: tuple[type, ...]) -> str:
    text = print_condition(condition, layout)
    return f"({text})" if isinstance(condition, wrapped) else text
