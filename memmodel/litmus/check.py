"""Every name that a test uses is one that it declares.

In: declarations, threads and questions as read. Out: the same, with the location that a table may leave undeclared
added, and warnings. Settled here: aliases end at a variable; every location, thread, label and instance exists.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from memmodel.errors import InputError, nearest
from memmodel.litmus.condition import Question
from memmodel.litmus.declarations import Declarations
from memmodel.litmus.lexer import listed
from memmodel.litmus.syntax import (
    Instruction,
    Label,
    LocValue,
    Number,
    RegValue,
    Term,
    Thread,
    Variable,
    root_of,
    terms_of,
)
from memmodel.ptx.lexer import shorten
from memmodel.ptx.operands import Mem, Operand, Pair, Reg, Sym, TensorOperand, Vector
from memmodel.ptx.vocabulary import Space
from memmodel.source import Span

PER_CTA = (Space.SHARED, Space.TENSOR)
"""State spaces in which a variable has an instance in every CTA."""

LOADS = frozenset({"ld", "ldu", "suld", "tld", "cold"})
STORES = frozenset({"st", "sust", "red"})
BRANCHES = frozenset({"bra", "goto", "beq", "bne", "blt", "ble", "bgt", "bge"})
"""Instructions whose memory operand, or label, are known before the instruction table is asked."""

_REGISTER_LIKE = re.compile(r"[a-z]{1,3}\d+")


@dataclass(slots=True)
class Checked:
    """What `check_names` leaves behind."""

    variables: dict[str, Variable]
    threads: list[Thread]
    warnings: list[str]


def check_names(
    declarations: Declarations,
    threads: list[Thread],
    questions: Sequence[Question],
    declared: dict[str, set[str]],
    *,
    implicit: bool,
) -> Checked:
    """Resolve every name. `implicit`: a location that is only ever loaded may stay undeclared (column layout).

    `declared`: registers that a thread's own declarations name. Raises InputError with the nearest known name.
    """
    checked = Checked(dict(declarations.variables), threads, [])
    _check_aliases(checked.variables, declarations)
    _check_tensormaps(checked.variables)
    _check_multimem(checked.variables)
    names = [thread.name for thread in threads]
    known = {name: set(declared.get(name, ())) for name in names}
    for item in declarations.registers.values():
        if item.thread not in known:
            raise _unknown("thread", item.thread, names, item.span, f"the test has {shorten(', '.join(names))}")
        if isinstance(item.value, str) and item.value not in checked.variables:
            where = declarations.mentions[item.thread, item.register]
            raise _unknown("variable", item.value, checked.variables, where)
        known[item.thread].add(item.register)
    for thread in threads:
        known[thread.name] |= assigned(thread.body)
    _check_bodies(checked, known, implicit)
    for question in questions:
        for term in (*question.shown, *terms_of(question.condition)):
            _check_term(term, checked, known)
    return checked


def assigned(body: Iterable[Instruction | Label]) -> set[str]:
    """Registers that stand where a result goes: an instruction's first operand, unless that is memory or a label."""
    found: set[str] = set()
    for item in body:
        if isinstance(item, Instruction) and _opcode(item) not in STORES | BRANCHES:
            results = 2 if item.mnemonic.startswith("tcgen05.ld.red") else 1
            for operand in item.operands[:results]:
                items: tuple[Operand, ...] = (operand,)
                if isinstance(operand, Vector):
                    items = operand.items
                elif isinstance(operand, Pair):
                    items = (operand.first, operand.second)
                found.update(one.name for one in items if isinstance(one, Reg))
    return found


def memory_position(instruction: Instruction) -> int | None:
    """Where a plain load, store or atomic has its memory operand; None for every other instruction."""
    opcode = _opcode(instruction)
    return 1 if opcode in LOADS or opcode == "atom" else 0 if opcode in STORES else None


def _opcode(instruction: Instruction) -> str:
    return instruction.mnemonic.partition(".")[0]


# ---- variables -----------------------------------------------------------------------------------------------


def _check_aliases(variables: dict[str, Variable], declarations: Declarations) -> None:
    done: set[str] = set()
    for variable in variables.values():
        path: dict[str, None] = {}
        here = variable
        while here.alias_of is not None and here.name not in done:
            if here.name in path:
                cycle = " aliases ".join([*list(path)[list(path).index(here.name) :], here.name][:8])
                hint = "one of them must be a variable"
                raise InputError(f"these aliases go round in a circle: {cycle}", here.span, hint)
            path[here.name] = None
            if here.alias_of not in variables:
                raise _unknown("variable", here.alias_of, variables, declarations.mentions[here.name])
            here = variables[here.alias_of]
        done.update(path)
        root = root_of(variables, variable.name)
        if variable is not root and root.multimem:
            raise InputError(f"`{root.name}` is a multimem address and has no alias", variable.span)
        if variable.space is not Space.GENERIC and (variable.space is Space.SHARED) != (root.space is Space.SHARED):
            hint = f"`{root.name}` {'is' if root.space is Space.SHARED else 'is not'} .shared"
            raise InputError(f"`{variable.name}` and `{root.name}` cannot be one location", variable.span, hint)


def _check_tensormaps(variables: dict[str, Variable]) -> None:
    for view in (view for variable in variables.values() for view in variable.maps):
        data = variables.get(view.data)
        if data is None:
            raise _unknown("variable", view.data, variables, view.span)
        if data.space not in (Space.GLOBAL, Space.GENERIC) or data.alias_of is not None:
            raise InputError(
                f"`{data.name}` is not a .global variable", view.span, "a tensor map describes global memory"
            )
        elements, size = data.length, prod(view.shape or view.box or (1,))
        if data.maps or size > elements:
            hint = f"the tensor has {size} elements"
            raise InputError(f"`{data.name}` has {elements} elements", view.span, hint)


def _check_multimem(variables: dict[str, Variable]) -> None:
    """What a multimem address points to is alike, and all of them point to as many variables, one on each device."""
    found = [variable for variable in variables.values() if variable.multimem]
    for variable in found:
        for name in variable.multimem:
            if name not in variables:
                raise _unknown("variable", name, variables, variable.span)
        targets = [variables[name] for name in variable.multimem]
        plain = all(
            t.space in (Space.GLOBAL, Space.GENERIC) and not (t.alias_of or t.maps or t.multimem) for t in targets
        )
        if not plain or len({(t.type, t.length) for t in targets}) > 1 or len(set(variable.multimem)) != len(targets):
            hint = "one on each device, declared alike"
            raise InputError(f"`{variable.name}` points to different variables in .global memory", variable.span, hint)
        if len(targets) != len(found[0].multimem):
            hint = f"`{found[0].name}` points to {len(found[0].multimem)}: a test has one set of devices"
            raise InputError(f"`{variable.name}` points to {len(targets)} variables", variable.span, hint)


# ---- instructions --------------------------------------------------------------------------------------------


def _check_bodies(checked: Checked, known: dict[str, set[str]], implicit: bool) -> None:
    found = False
    for thread in checked.threads:
        registers = known[thread.name]
        labels = [item.name for item in thread.body if isinstance(item, Label)]
        for item in thread.body:
            if isinstance(item, Label):
                continue
            memory = memory_position(item)
            if _opcode(item) in BRANCHES:
                _check_target(item, labels)
            for position, operand in enumerate(item.operands):
                if isinstance(operand, Reg) and position != memory:
                    _check_spelling(operand, registers, checked)
                    continue
                for base in _bases(operand):
                    if isinstance(base, Sym):
                        _check_instance(base, checked)
                        if base.name not in checked.variables and (position == memory or isinstance(operand, Mem)):
                            raise InputError(f"`{base.name}` is a label, not a location", base.span)
                    elif _bare(base) and base.name not in registers:
                        loaded = implicit and position == 1 and _opcode(item) in LOADS
                        if not loaded or nearest(base.name, checked.variables):
                            raise _undeclared(base, checked, registers)
                        found = True
    if found:
        _declare_loaded(checked, known)


def _bases(operand: Operand) -> Iterator[Reg | Sym]:
    """Names that are locations unless they are registers: of a memory operand, or a bare one in its position."""
    if isinstance(operand, Mem | TensorOperand) and isinstance(operand.base, Reg | Sym):
        yield operand.base
    elif isinstance(operand, Reg | Sym):
        yield operand
    inner = operand.rest if isinstance(operand, TensorOperand) else operand.items if isinstance(operand, Vector) else ()
    for item in inner:
        if not isinstance(item, Reg):
            yield from _bases(item)


def _check_target(item: Instruction, labels: list[str]) -> None:
    target = item.operands[-1] if item.operands else None
    if isinstance(target, (Reg, Sym)) and _bare(target) and target.name not in labels:
        raise _unknown("label", target.name, labels, target.span, "a label is written `L0:` in the same thread")


def _check_instance(symbol: Sym, checked: Checked) -> None:
    if symbol.cta is None:
        return
    if symbol.name not in checked.variables or root_of(checked.variables, symbol.name).space not in PER_CTA:
        raise _one_instance(symbol)
    if _instances(symbol.name, symbol.cta, checked) == 0:
        raise InputError(f"`{symbol.name}` has no instance in CTA {symbol.cta}", symbol.span, _places(checked))


def _check_spelling(register: Reg, registers: Collection[str], checked: Checked) -> None:
    """A bare name that nothing declares or assigns and that does not look like a register is likely a slip."""
    if register.name not in registers and _bare(register) and not _REGISTER_LIKE.fullmatch(register.name):
        close = nearest(register.name, [*checked.variables, *registers])
        hint = f"; did you mean {close}?" if close else ""
        _warn(checked, register.span, f"`{shorten(register.name)}` is read as a register that is never assigned{hint}")


def _declare_loaded(checked: Checked, known: dict[str, set[str]]) -> None:
    """Turn names that stand in the memory position of loads only, and that no register has, into locations."""
    for number, thread in enumerate(checked.threads):
        registers = known[thread.name]
        body: list[Instruction | Label] = []
        for item in thread.body:
            if isinstance(item, Instruction) and memory_position(item) is not None and len(item.operands) > 1:
                operand = item.operands[1]
                base = operand.base if isinstance(operand, Mem) else operand
                if _opcode(item) in LOADS and isinstance(base, Reg) and _bare(base) and base.name not in registers:
                    symbol = _implicit(base, checked)
                    memory = replace(operand, base=symbol) if isinstance(operand, Mem) else symbol
                    item = replace(item, operands=(item.operands[0], memory, *item.operands[2:]))
            body.append(item)
        checked.threads[number] = replace(thread, body=tuple(body))


def _implicit(register: Reg, checked: Checked) -> Sym:
    if register.name not in checked.variables:
        _warn(checked, register.span, f"location `{register.name}` is not declared; it is taken to be 0 at the start")
        checked.variables[register.name] = Variable(register.name, span=register.span)
    return Sym(register.name, None, register.span)


# ---- the question --------------------------------------------------------------------------------------------


def _check_term(term: Term, checked: Checked, known: dict[str, set[str]]) -> None:
    if isinstance(term, Number):
        return
    if isinstance(term, RegValue):
        if term.thread not in known:
            raise _unknown("thread", term.thread, known, term.span, f"the test has {shorten(', '.join(known))}")
        if term.register not in known[term.thread]:
            close = nearest(term.register, known[term.thread])
            hint = f"; did you mean {close}?" if close else ""
            _warn(checked, term.span, f"`{term.span.text}` is never assigned and stays 0{hint}")
        return
    if term.name not in checked.variables:
        owner = next((name for name, registers in known.items() if term.name.removeprefix("%") in registers), None)
        if owner is not None:
            written = f"{owner}:{term.name.removeprefix('%')}"
            raise InputError(f"`{shorten(term.name)}` is a register of a thread", term.span, f"write {written}")
        raise _unknown("location", term.name, checked.variables, term.span)
    root = root_of(checked.variables, term.name)
    if root.multimem:
        hint = f"name what it points to: {listed(root.multimem)}"
        raise InputError(f"`{term.name}` is a multimem address", term.span, hint)
    if term.index >= root.length:
        what = f"the last is {term.name}[{root.length - 1}]" if root.array else f"`{term.name}` is not an array"
        raise InputError(f"`{term.name}` has no element {term.index}", term.span, what)
    if root.space not in PER_CTA:
        if term.cta is not None or term.thread is not None:
            raise _one_instance(term)
        return
    if term.thread is not None:
        _check_instance_of(term, root, checked, known)
        return
    count = _instances(term.name, term.cta, checked)
    if count == 0:
        raise InputError(f"`{term.name}` has no instance there", term.span, _places(checked))
    if count > 1:
        one = f"name one, as in {term.name}@cta0"
        hint = one if term.cta is None else f"name a thread of the CTA, as in {term.name}@{next(iter(known))}"
        raise InputError(f"`{term.name}` has {count} instances", term.span, hint)


def _check_instance_of(term: LocValue, root: Variable, checked: Checked, known: dict[str, set[str]]) -> None:
    """`x@P1`: there is such a thread, and its CTA has the variable."""
    place = next((thread.place for thread in checked.threads if thread.name == term.thread), None)
    if place is None:
        raise _unknown("thread", term.thread or "", known, term.span, f"the test has {shorten(', '.join(known))}")
    if root.cta not in (None, place.cta):
        raise InputError(f"`{term.name}` has no instance there", term.span, _places(checked))


def _instances(name: str, cta: int | None, checked: Checked) -> int:
    """In how many CTAs of the test (or of those numbered `cta`) a .shared variable has an instance."""
    own = root_of(checked.variables, name).cta
    numbers = {thread.place.cta_id: thread.place.cta for thread in checked.threads}.values()
    return sum(1 for number in numbers if own in (None, number) and cta in (None, number))


def _places(checked: Checked) -> str:
    numbers = sorted({thread.place.cta for thread in checked.threads})
    return f"the test's threads are in CTA {', '.join(map(str, numbers))}"


# ---- messages ------------------------------------------------------------------------------------------------


def _bare(name: Reg | Sym) -> bool:
    return name.span.source.text[name.span.start] != "%"


def _warn(checked: Checked, span: Span, message: str) -> None:
    checked.warnings.append(f"{span}: warning: {message}")


def _unknown(what: str, name: str, known: Iterable[str], span: Span, hint: str | None = None) -> InputError:
    close = nearest(name, known)
    return InputError(f"{what} `{shorten(name)}` is not declared", span, f"did you mean {close}?" if close else hint)


def _one_instance(name: Sym | LocValue) -> InputError:
    return InputError(f"`{name.name}` is not .shared: it has one instance only", name.span, f"write {name.name}")


def _undeclared(register: Reg, checked: Checked, registers: Collection[str]) -> InputError:
    close = nearest(register.name, [*checked.variables, *registers])
    declare = f"declare it, or write %{register.name} for a register that holds an address"
    hint = f"did you mean {close}?" if close else declare
    return InputError(f"location `{shorten(register.name)}` is not declared", register.span, hint)
