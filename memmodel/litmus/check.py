"""Every name that a test uses is one that it declares.

In: declarations, threads and questions as read. Out: the same, with the location that a table may leave undeclared
added, and warnings. Settled here: aliases end at a variable; every location, thread, label and instance exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod

from memmodel.errors import InputError, nearest, suggestion
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
from memmodel.ptx.operands import Mem, Operand, Reg, Sym, TensorOperand, Vector, elements
from memmodel.ptx.vocabulary import Proxy, Space
from memmodel.source import Span

PER_CTA = (Space.SHARED, Space.TENSOR)
"""State spaces in which a variable has an instance in every CTA."""

LOADS = frozenset({"ld", "ldu", "suld", "tld", "cold"})
STORES = frozenset({"st", "sust", "red"})
BRANCHES = frozenset({"bra", "goto", "beq", "bne", "blt", "ble", "bgt", "bge"})
"""Instructions whose memory operand, or label, are known before the instruction table is asked."""

_REGISTER_LIKE = re.compile(r"[a-z]{1,3}\d+")


def assigned(body: Iterable[Instruction | Label]) -> set[str]:
    """Registers that stand where a result goes: an instruction's first operand, unless that is memory or a label."""
    names: set[str] = set()
    for instruction in body:
        if isinstance(instruction, Instruction) and _opcode(instruction) not in STORES | BRANCHES:
            results = 2 if instruction.mnemonic.startswith("tcgen05.ld.red") else 1
            for operand in instruction.operands[:results]:
                names.update(register.name for register in elements(operand) if isinstance(register, Reg))
    return names


def memory_position(instruction: Instruction) -> int | None:
    """Where a plain load, store or atomic has its memory operand; None for every other instruction."""
    opcode = _opcode(instruction)
    return 1 if opcode in LOADS or opcode == "atom" else 0 if opcode in STORES else None


def _opcode(instruction: Instruction) -> str:
    return instruction.mnemonic.partition(".")[0]


class NameCheck:
    """Looks up every name of a test. The result is in `variables`, `threads` and `warnings`.

    `declared`: registers that a thread's own declarations name. `implicit`: a location that is only ever loaded may
    stay undeclared (column layout). `registers`: those of each thread that are declared, initialised or assigned.
    """

    def __init__(
        self, declarations: Declarations, threads: list[Thread], declared: dict[str, set[str]], *, implicit: bool
    ) -> None:
        self.variables = dict(declarations.variables)
        self.threads = threads
        self.warnings: list[str] = []
        self._declarations = declarations
        self._implicit = implicit
        self._registers = {thread.name: set(declared.get(thread.name, ())) for thread in threads}

    def check(self, questions: Sequence[Question]) -> None:
        """Resolve every name. Raises InputError with the nearest known name."""
        self._check_aliases()
        self._check_tensormaps()
        self._check_multimem()
        self._check_allocations()
        for start in self._declarations.registers.values():
            if start.thread not in self._registers:
                raise self._unknown_thread(start.thread, start.span)
            if isinstance(start.value, str) and start.value not in self.variables:
                where = self._declarations.mentions[start.thread, start.register]
                raise _unknown("variable", start.value, self.variables, where)
            self._registers[start.thread].add(start.register)
        for thread in self.threads:
            self._registers[thread.name] |= assigned(thread.body)
        if any([self._check_body(thread) for thread in self.threads]):
            self.threads = [self._with_locations(thread) for thread in self.threads]
        for question in questions:
            for term in (*question.shown, *terms_of(question.condition)):
                self._check_term(term)

    # ---- variables -----------------------------------------------------------------------------------------------

    def _check_aliases(self) -> None:
        done: set[str] = set()
        for variable in self.variables.values():
            path: dict[str, None] = {}
            alias = variable
            while alias.alias_of is not None and alias.name not in done:
                if alias.name in path:
                    cycle = " aliases ".join([*list(path)[list(path).index(alias.name) :], alias.name][:8])
                    hint = "one of them must be a variable"
                    raise InputError(f"these aliases go round in a circle: {cycle}", alias.span, hint)
                path[alias.name] = None
                if alias.alias_of not in self.variables:
                    mention = self._declarations.mentions[alias.name]
                    raise _unknown("variable", alias.alias_of, self.variables, mention)
                alias = self.variables[alias.alias_of]
            done.update(path)
            root = root_of(self.variables, variable.name)
            if variable is not root and root.multimem and variable.proxy is not Proxy.FABRIC:
                raise InputError(f"`{root.name}` is a multimem address and has no alias", variable.span)
            if variable.space is not Space.GENERIC and (variable.space is Space.SHARED) != (root.space is Space.SHARED):
                hint = f"`{root.name}` {'is' if root.space is Space.SHARED else 'is not'} .shared"
                raise InputError(f"`{variable.name}` and `{root.name}` cannot be one location", variable.span, hint)

    def _check_tensormaps(self) -> None:
        for view in (view for variable in self.variables.values() for view in variable.maps):
            data = self.variables.get(view.data)
            if data is None:
                raise _unknown("variable", view.data, self.variables, view.span)
            if data.space not in (Space.GLOBAL, Space.GENERIC) or data.alias_of is not None:
                hint = "a tensor map describes global memory"
                raise InputError(f"`{data.name}` is not a .global variable", view.span, hint)
            size = prod(view.shape or view.box or (1,))
            if data.maps or size > data.length:
                raise InputError(
                    f"`{data.name}` has {data.length} elements", view.span, f"the tensor has {size} elements"
                )

    def _check_multimem(self) -> None:
        """What a multimem address points to is alike, and each points to as many variables, one on each device."""
        addresses = [variable for variable in self.variables.values() if variable.multimem]
        for variable in addresses:
            for name in variable.multimem:
                if name not in self.variables:
                    raise _unknown("variable", name, self.variables, variable.span)
            targets = [self.variables[name] for name in variable.multimem]
            alike = len({(target.type, target.length) for target in targets}) == 1
            if not alike or not all(map(_is_plain, targets)) or len(set(variable.multimem)) != len(targets):
                message = f"`{variable.name}` points to different variables in .global memory"
                raise InputError(message, variable.span, "one on each device, declared alike")
            first = addresses[0]
            if len(targets) != len(first.multimem):
                hint = f"`{first.name}` points to {len(first.multimem)}: a test has one set of devices"
                raise InputError(f"`{variable.name}` points to {len(targets)} variables", variable.span, hint)

    def _check_allocations(self) -> None:
        for variable in self.variables.values():
            name = variable.allocates
            if name is None:
                continue
            allocated = self.variables.get(name)
            if allocated is None:
                raise _unknown("variable", name, self.variables, variable.span)
            if allocated.space is not Space.TENSOR or allocated.alias_of is not None:
                hint = f"declare it `.tensor .b32 {allocated.name}[4]`"
                raise InputError(f"`{allocated.name}` is not a .tensor variable", variable.span, hint)

    # ---- instructions --------------------------------------------------------------------------------------------

    def _check_body(self, thread: Thread) -> bool:
        """Check the operands of a thread; True if one of them is a location that is not declared, as it may be."""
        registers = self._registers[thread.name]
        labels = [label.name for label in thread.body if isinstance(label, Label)]
        undeclared = False
        for instruction in thread.body:
            if isinstance(instruction, Label):
                continue
            if _opcode(instruction) in BRANCHES:
                _check_target(instruction, labels)
            undeclared |= self._check_operands(instruction, registers)
        return undeclared

    def _check_operands(self, instruction: Instruction, registers: set[str]) -> bool:
        """As `_check_body`, of one instruction."""
        memory, undeclared = memory_position(instruction), False
        for position, operand in enumerate(instruction.operands):
            if isinstance(operand, Reg) and position != memory:
                self._check_spelling(operand, registers)
                continue
            for base in _bases(operand):
                if isinstance(base, Sym):
                    self._check_symbol(base, is_memory=position == memory or isinstance(operand, Mem))
                elif _bare(base) and base.name not in registers:
                    loaded = self._implicit and position == 1 and _opcode(instruction) in LOADS
                    if not loaded or nearest(base.name, self.variables):
                        raise self._undeclared(base, registers)
                    undeclared = True
        return undeclared

    def _check_symbol(self, symbol: Sym, *, is_memory: bool) -> None:
        if symbol.cta is not None:
            if symbol.name not in self.variables or root_of(self.variables, symbol.name).space not in PER_CTA:
                raise _one_instance(symbol)
            if self._instances(symbol.name, symbol.cta) == 0:
                raise InputError(f"`{symbol.name}` has no instance in CTA {symbol.cta}", symbol.span, self._places())
        if is_memory and symbol.name not in self.variables:
            raise InputError(f"`{symbol.name}` is a label, not a location", symbol.span)

    def _check_spelling(self, register: Reg, registers: set[str]) -> None:
        """A bare name that nothing declares or assigns and that does not look like a register is likely a slip."""
        if register.name not in registers and _bare(register) and not _REGISTER_LIKE.fullmatch(register.name):
            message = f"`{shorten(register.name)}` is read as a register that is never assigned"
            self._warn(register.span, message, suggestion(register.name, [*self.variables, *registers]))

    def _with_locations(self, thread: Thread) -> Thread:
        """The names that stand in the memory position of loads only, and that no register has, are locations."""
        registers = self._registers[thread.name]
        body: list[Instruction | Label] = []
        for instruction in thread.body:
            if isinstance(instruction, Instruction) and _opcode(instruction) in LOADS and len(instruction.operands) > 1:
                target, operand, *rest = instruction.operands
                base = operand.base if isinstance(operand, Mem) else operand
                if isinstance(base, Reg) and _bare(base) and base.name not in registers:
                    symbol = self._location(base)
                    memory = replace(operand, base=symbol) if isinstance(operand, Mem) else symbol
                    instruction = replace(instruction, operands=(target, memory, *rest))
            body.append(instruction)
        return replace(thread, body=tuple(body))

    def _location(self, register: Reg) -> Sym:
        if register.name not in self.variables:
            self._warn(register.span, f"location `{register.name}` is not declared; it is taken to be 0 at the start")
            self.variables[register.name] = Variable(register.name, span=register.span)
        return Sym(register.name, None, register.span)

    # ---- the question --------------------------------------------------------------------------------------------

    def _check_term(self, term: Term) -> None:
        if isinstance(term, Number):
            return
        if isinstance(term, RegValue):
            if term.thread not in self._registers:
                raise self._unknown_thread(term.thread, term.span)
            registers = self._registers[term.thread]
            if term.register not in registers:
                message = f"`{term.span.text}` is never assigned and stays 0"
                self._warn(term.span, message, suggestion(term.register, registers))
            return
        if term.name not in self.variables:
            register = term.name.removeprefix("%")
            owner = next((thread for thread, registers in self._registers.items() if register in registers), None)
            if owner is not None:
                message = f"`{shorten(term.name)}` is a register of a thread"
                raise InputError(message, term.span, f"write {owner}:{register}")
            raise _unknown("location", term.name, self.variables, term.span)
        root = root_of(self.variables, term.name)
        if root.multimem:
            hint = f"name what it points to: {listed(root.multimem)}"
            raise InputError(f"`{term.name}` is a multimem address", term.span, hint)
        if term.index >= root.length:
            what = f"the last is {term.name}[{root.length - 1}]" if root.array else f"`{term.name}` is not an array"
            raise InputError(f"`{term.name}` has no element {term.index}", term.span, what)
        if root.space in PER_CTA:
            self._check_instance(term, root)
        elif term.cta is not None or term.thread is not None:
            raise _one_instance(term)

    def _check_instance(self, term: LocValue, root: Variable) -> None:
        """Raise InputError unless the variable has one instance in the CTA that a term names."""
        if term.thread is not None:
            place = next((thread.place for thread in self.threads if thread.name == term.thread), None)
            if place is None:
                raise self._unknown_thread(term.thread, term.span)
            count = int(root.cta in (None, place.cta))
        else:
            count = self._instances(term.name, term.cta)
        if count == 0:
            raise InputError(f"`{term.name}` has no instance there", term.span, self._places())
        if count > 1:
            hint = f"name one, as in {term.name}@cta0"
            if term.cta is not None:
                hint = f"name a thread of the CTA, as in {term.name}@{self.threads[0].name}"
            raise InputError(f"`{term.name}` has {count} instances", term.span, hint)

    def _instances(self, name: str, cta: int | None) -> int:
        """In how many CTAs of the test (or of those numbered `cta`) a .shared variable has an instance."""
        own = root_of(self.variables, name).cta
        numbers = {thread.place.cta_id: thread.place.cta for thread in self.threads}.values()
        return sum(1 for number in numbers if own in (None, number) and cta in (None, number))

    # ---- messages ------------------------------------------------------------------------------------------------

    def _places(self) -> str:
        numbers = sorted({thread.place.cta for thread in self.threads})
        return f"the test's threads are in CTA {', '.join(map(str, numbers))}"

    def _warn(self, span: Span, message: str, hint: str = "") -> None:
        self.warnings.append(f"{span}: warning: {message}{f'; {hint}' if hint else ''}")

    def _unknown_thread(self, name: str, span: Span) -> InputError:
        known = [thread.name for thread in self.threads]
        return _unknown("thread", name, known, span, f"the test has {shorten(', '.join(known))}")

    def _undeclared(self, register: Reg, registers: set[str]) -> InputError:
        declare = f"declare it, or write %{register.name} for a register that holds an address"
        return _unknown("location", register.name, [*self.variables, *registers], register.span, declare)


def _is_plain(variable: Variable) -> bool:
    """True for memory on one device that a multimem address may point to."""
    special = variable.alias_of or variable.maps or variable.multimem
    return variable.space in (Space.GLOBAL, Space.GENERIC) and not special


def _bases(operand: Operand) -> Iterator[Reg | Sym]:
    """Names that are locations unless they are registers: of a memory operand, or a bare one in its position."""
    if isinstance(operand, Mem | TensorOperand) and isinstance(operand.base, Reg | Sym):
        yield operand.base
    elif isinstance(operand, Reg | Sym):
        yield operand
    inner = operand.rest if isinstance(operand, TensorOperand) else operand.items if isinstance(operand, Vector) else ()
    for element in inner:
        if not isinstance(element, Reg):
            yield from _bases(element)


def _check_target(branch: Instruction, labels: list[str]) -> None:
    target = branch.operands[-1] if branch.operands else None
    if isinstance(target, (Reg, Sym)) and _bare(target) and target.name not in labels:
        raise _unknown("label", target.name, labels, target.span, "a label is written `L0:` in the same thread")


def _bare(name: Reg | Sym) -> bool:
    return name.span.source.text[name.span.start] != "%"


def _unknown(what: str, name: str, known: Iterable[str], span: Span, hint: str | None = None) -> InputError:
    return InputError(f"{what} `{shorten(name)}` is not declared", span, suggestion(name, known) or hint)


def _one_instance(name: Sym | LocValue) -> InputError:
    return InputError(f"`{name.name}` is not .shared: it has one instance only", name.span, f"write {name.name}")
