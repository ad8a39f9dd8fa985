"""One instruction about to be lowered: its qualifiers in slots, its operands checked and turned into expressions.

In: an Instruction with its Spelling, and the test around it. Out: registers, addresses, values, events. Settled here:
which operand is legal where, with an error that points at it. Every lowering function takes one `Call`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from memmodel.base.labels import Access, Family, Side
from memmodel.errors import InputError, nearest
from memmodel.isa.rows.slots import SCOPES, SPACE_OF, WINDOW_OF
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.rows.types import data_type
from memmodel.litmus.constants import Fragments, cache_policies, constants, fragments, predicates
from memmodel.litmus.syntax import Instruction, Label, Layout, LitmusTest, Thread, Variable, root_of
from memmodel.program.addresses import WINDOW_BITS, AddressSpace, cta_places
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import Assign
from memmodel.program.regions import Elements
from memmodel.program.special import special_register
from memmodel.ptx.operands import (
    Blank,
    Imm,
    Mem,
    Negated,
    Operand,
    Real,
    Reg,
    Special,
    Sym,
    Vector,
    describe,
    elements,
)
from memmodel.ptx.vocabulary import UNTYPED, DataType, Place, Proxy, Scope, Sem, Space, Window

ADDRESS = DataType("u", 64)

PROXY_LOADS = {Proxy.SURFACE: "suld", Proxy.TEXTURE: "tld", Proxy.CONSTANT: "cold"}


@dataclass(frozen=True, slots=True)
class Context:
    """What lowering an instruction may ask about the rest of the test."""

    test: LitmusTest
    thread: Thread
    variables: Mapping[str, Variable]
    labels: frozenset[str]
    constants: Mapping[str, int]
    predicates: frozenset[str]
    policies: frozenset[str]
    fragments: Fragments
    space: AddressSpace

    @staticmethod
    def of(test: LitmusTest, thread: Thread, space: AddressSpace) -> Context:
        variables = {variable.name: variable for variable in test.variables}
        labels = frozenset(entry.name for entry in thread.body if isinstance(entry, Label))
        known = constants(test, thread), predicates(thread), cache_policies(thread), fragments(test, thread)
        return Context(test, thread, variables, labels, *known, space)


@dataclass(frozen=True, slots=True)
class Call:
    """What a lowering function sees of one instruction."""

    reading: Spelling
    instruction: Instruction
    context: Context

    # ---- qualifiers ------------------------------------------------------------------------------------------

    @property
    def place(self) -> Place:
        """Where the executing thread runs."""
        return self.context.thread.place

    @property
    def own_rank(self) -> Expr:
        """The rank of the executing thread's CTA in its cluster."""
        return Const(self.place.rank)

    @property
    def first_window(self) -> int:
        """The number of the window of shared memory that the CTA of rank 0 of this cluster has."""
        return self.context.space.first_window(self.place)

    @property
    def window_bits(self) -> int:
        """How many bits of an address in shared memory are the offset in its window."""
        return WINDOW_BITS

    @property
    def cluster_ranks(self) -> tuple[int, ...]:
        """The ranks of the CTAs of this cluster, as far as the test has threads there."""
        places = cta_places(self.context.test)
        return tuple(sorted(place.cta for place in places if place.cluster_id == self.place.cluster_id))

    @property
    def cluster_size(self) -> int:
        """How many CTAs this cluster has."""
        return self.context.space.cluster_size(self.place)

    @property
    def boolean(self) -> DataType:
        """The type in which predicates are combined."""
        return UNTYPED

    @property
    def head(self) -> str:
        return self.reading.head

    @property
    def in_module(self) -> bool:
        """True if the instruction is one of a compiled module."""
        return False

    @property
    def in_columns(self) -> bool:
        """True in the column layout (no types, no state spaces, no brackets)."""
        return self.context.test.layout is Layout.COLUMNS

    def word(self, slot: str) -> str | None:
        """The qualifier in that slot, if any."""
        return self.reading.words.get(slot)

    @property
    def scope(self) -> Scope | None:
        return SCOPES.get(self.reading.words.get("scope", ""))

    @property
    def given_type(self) -> DataType | None:
        """The type suffix; None in the column layout."""
        return data_type(self.reading.words.get("type", ""))

    @property
    def type(self) -> DataType:
        """The type that values are computed in."""
        return self.given_type or UNTYPED

    # ---- operands --------------------------------------------------------------------------------------------

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.instruction.operands

    def optional(self, index: int) -> Operand | None:
        """The operand, or None if it is left out (absent or `_`)."""
        operand = self.operands[index] if index < len(self.operands) else None
        return None if isinstance(operand, Blank) else operand

    def operand(self, name: str) -> Operand | None:
        """The operand of that name, if it goes with the words of the instruction and is not left out."""
        names = self.reading.operand_names(len(self.operands)) or ()
        return self.operands[names.index(name)] if name in names else None

    def destination(self, operand: Operand, *, sink: bool = False) -> str | None:
        """The register to write; None for `_` where that is allowed."""
        if isinstance(operand, Reg):
            if self._is_written_twice(operand):
                self.fail("the registers of a vector that is written are different", operand, "write _ for one of them")
            return self._written(operand)
        if isinstance(operand, Blank) and sink:
            return None
        return self.fail(f"{self.head} writes to a register here, and this is {describe(operand)}", operand)

    def _written(self, register: Reg) -> str:
        if special_register(register.name, self.place, self.context.space) is not None:
            self.fail(f"the special register '%{register.name}' is read-only", register)
        return self._named(register)

    def _is_written_twice(self, register: Reg) -> bool:
        """True if another element of its vector is the same register, which is undefined ("Vectors as Operands")."""
        vectors = (operand.items for operand in self.operands if isinstance(operand, Vector))
        own = next((items for items in vectors if any(item is register for item in items)), ())
        return sum(isinstance(item, Reg) and item.name == register.name for item in own) > 1

    def assign(self, operand: Operand, *values: Expr) -> tuple[Assign, ...]:
        """Assign values to the registers of an operand: a register, or a vector or pair, in which `_` drops a value."""
        parts = elements(operand)
        if len(parts) > len(values):
            self.register(operand)
        names = [self.destination(part, sink=parts != (operand,)) for part in parts]
        return tuple(Assign(name, value) for name, value in zip(names, values, strict=False) if name is not None)

    def register(self, operand: Operand) -> str:
        """The register to write, `_` excluded."""
        return self.destination(operand) or "_"

    def target(self, operand: Operand, type: DataType, *, wider: bool = False) -> str:
        """The register that receives a value of `type`. `wider`: it may be wider ("Operand Size Exceeding ...")."""
        return self.register(operand)

    def source(self, operand: Operand, type: DataType, *, wider: bool = False) -> Expr:
        """A source operand whose size is that of `type`. `wider`: a register may be wider."""
        return self.value(operand, type)

    def value(self, operand: Operand, type: DataType | None = None) -> Expr:
        """A source operand as a value of `type`: register, immediate, predicate, or the address of a variable."""
        if isinstance(operand, Imm):
            return Const((type or self.type).wrap(operand.value))
        if isinstance(operand, Real):
            return Const(self._real(operand, type or self.type))
        named = self._named_value(operand, type)
        if named is not None:
            return named
        hint = "load it into a register first" if isinstance(operand, Mem) else None
        return self.fail(
            f"{self.head} reads a register or a number here, and this is {describe(operand)}", operand, hint
        )

    def _named_value(self, operand: Operand, type: DataType | None) -> Expr | None:
        """What a register or the name of a variable stands for; None for another operand."""
        if isinstance(operand, Reg):
            return self._register_value(operand)
        if isinstance(operand, Negated):
            return Apply("eq", (Get(operand.operand.name), Const(0)), UNTYPED)
        if isinstance(operand, Sym):
            self._check_fits(operand, type or self.given_type)
            return self.address_of(operand, operand.offset)
        return None

    def _real(self, operand: Real, type: DataType) -> int:
        bits = operand.encoded(type)
        if bits is None:
            hint = f"PTX takes it as a .f32, a .f64 or a .b{operand.width}"
            self.fail(f"{describe(operand)} is not a .{type}", operand, None if self.in_columns else hint)
        return bits

    def _register_value(self, operand: Reg) -> Expr:
        special = special_register(operand.name, self.place, self.context.space)
        if special is None and operand.name in self.context.policies:
            hint = "use the register as a cache_policy operand, and another one for numbers"
            self.fail(f"'%{operand.name}' holds a cache policy, whose value PTX leaves open", operand, hint)
        if special is None:
            return Get(self._named(operand))
        if isinstance(special, str):
            self.fail(f"the special register '%{operand.name}' has no value here", operand, special)
        return Const(special)

    def _named(self, operand: Reg) -> str:
        """The name of a register, which no temporary of an instruction may have."""
        if operand.name.startswith("$"):
            self.fail("names that begin with $ are those of temporaries here", operand, "rename the register")
        return operand.name

    def _check_fits(self, symbol: Sym, type: DataType | None) -> None:
        """An address has 64 bits, in shared and tensor memory 32 ("State Spaces"; 32-bit code is history)."""
        space = self.root(self.variable(symbol)).space
        bits = 32 if space in (Space.SHARED, Space.TENSOR) else 64
        if type is not None and type.width < bits:
            what = f"the address of '{symbol.name}'"
            self.fail(f"{what} has {bits} bits, and .{type} has {type.width}", symbol, f"write .u{bits}")

    def integer(self, operand: Operand) -> Expr:
        """A register or an immediate, as it stands."""
        if isinstance(operand, Imm):
            return Const(operand.value)
        if isinstance(operand, Reg | Special):
            return self.value(operand)
        return self.fail(f"{self.head} takes a number or a register here, and this is {describe(operand)}", operand)

    def constant(self, operand: Operand) -> int | None:
        """A number, or a register whose one assignment in the thread is an unguarded mov of a number; else None."""
        if isinstance(operand, Imm):
            return operand.value
        return self.context.constants.get(operand.name) if isinstance(operand, Reg) else None

    def predicate(self, operand: Operand) -> Expr:
        """A source predicate: %p or !%p; in a module a number, too."""
        if isinstance(operand, Reg | Negated) or (self.in_module and isinstance(operand, Imm)):
            return self.value(operand)
        return self.fail(f"{self.head} reads a predicate register here, and this is {describe(operand)}", operand)

    def is_predicate(self, register: Reg) -> bool:
        """True if this register is a predicate: declared so, set by a comparison, or used to guard."""
        return register.name in self.context.predicates

    def label(self, operand: Operand) -> str:
        """A label of this thread."""
        if not isinstance(operand, Sym | Reg):
            self.fail(f"{self.head} jumps to a label, and this is {describe(operand)}", operand)
        labels = self.context.labels
        if isinstance(operand, Sym) and operand.offset:
            self.fail("a jump goes to a label, not to a place after one", operand)
        if operand.name not in labels:
            close = nearest(operand.name, labels)
            repair = f"did you mean '{close}'?" if close else f"put '{operand.name}:' where it should go"
            self.fail(f"no label '{operand.name}' in {self.context.thread.name}", operand, repair)
        return operand.name

    def vector(self, operand: Operand) -> tuple[Operand, ...]:
        """The elements of a data operand: as many as .v2, .v4 or .v8 says, one without."""
        count = int((self.word("vec") or "v1")[1:])
        parts = elements(operand) if isinstance(operand, Vector) else (operand,)
        if len(parts) != count:
            hint = "a .v2 access names two registers in braces: {%r0, %r1}" if count > 1 else "add .v2 or .v4"
            self.fail(
                f"{self.instruction.mnemonic} moves {count} element(s), and {len(parts)} are given", operand, hint
            )
        return parts

    # ---- memory ----------------------------------------------------------------------------------------------

    @property
    def width(self) -> int | None:
        """How many bits one access moves; None: the whole element (column layout)."""
        return self.given_type.width if self.given_type else None

    @property
    def window(self) -> Window:
        """The window of the state space that the instruction names."""
        return WINDOW_OF.get(self.word("space") or "", Window.GENERIC)

    def elements(self, operand: Operand, count: int = 1, proxy: Proxy = Proxy.GENERIC) -> Elements:
        """`count` scalars of the instruction's type at a memory operand, checked as far as its text goes."""
        return Elements(
            self.location(operand, proxy), self.window, None if self.width is None else self.width // 8, count
        )

    def location_of(self, operand: Mem) -> Expr:
        """The number at a memory operand of a compiled module, as the instruction has it."""
        return self.location(operand)

    def in_space(self, address: Expr, space: str | None) -> Expr:
        """An address of a state space as a generic one; litmus tests have one window for all."""
        return address

    def location(self, operand: Operand, proxy: Proxy = Proxy.GENERIC) -> Expr:
        """The address at a memory operand."""
        if isinstance(operand, Mem) and isinstance(operand.base, Reg):
            base = self.value(operand.base)
            return Apply("add", (base, Const(operand.offset)), ADDRESS) if operand.offset else base
        symbol: Operand = operand.base if isinstance(operand, Mem) else operand
        offset = operand.offset if isinstance(operand, Mem | Sym) else 0
        if not isinstance(symbol, Sym) or (symbol is operand and not self.in_columns):
            self.no_memory(operand)
        self._check_access(self.variable(symbol), operand, proxy)
        return self.address_of(symbol, offset)

    def no_memory(self, operand: Operand) -> NoReturn:
        """Refuse an operand where a memory operand should be: most likely its brackets are missing."""
        if isinstance(operand, Sym):
            self.fail("PTX writes memory operands in brackets", operand, f"write [{operand.name}]")
        hint = None
        if isinstance(operand, Reg):
            bare = operand.span is not None and not operand.span.text.startswith("%")
            hint = f"write [%{operand.name}] for the memory that a register points to"
            hint = f"declare the variable {operand.name}, or {hint}" if bare else hint
        self.fail(f"{self.head} accesses memory, and this is {describe(operand)}", operand, hint)

    def variable(self, symbol: Sym) -> Variable:
        """The variable that a name stands for."""
        variable = self.context.variables.get(symbol.name)
        if variable is None:
            close = nearest(symbol.name, self.context.variables)
            what = "is a label, not a variable" if symbol.name in self.context.labels else "is not declared"
            hint = f"did you mean '{close}'?" if close else "declare it before the threads"
            self.fail(f"'{symbol.name}' {what}", symbol, hint)
        return variable

    def address_of(self, symbol: Sym, offset: int) -> AddressOf:
        """The address of a name, `offset` bytes on."""
        variable = self.variable(symbol)
        self._no_endpoint(variable, symbol)
        if symbol.cta is not None and self.root(variable).space is not Space.SHARED:
            self.fail(
                f"'{symbol.name}' is not .shared, so it has one instance for all CTAs", symbol, f"write {symbol.name}"
            )
        if symbol.cta is not None and not self._in_cluster(symbol.cta):
            hint = f"place both threads in one cluster: @ cta {symbol.cta}, cluster 0, gpu {self.place.gpu}"
            self.fail(f"CTA {symbol.cta} is not in the cluster of {self.context.thread.name}", symbol, hint)
        only = self.root(variable).cta
        if only is not None and only != (self.place.cta if symbol.cta is None else symbol.cta):
            hint = f"write {symbol.name}@cta{only}, or map its address with mapa"
            self.fail(f"'{symbol.name}' is declared in CTA {only} alone", symbol, hint)
        return AddressOf(symbol.name, offset, symbol.cta)

    def _in_cluster(self, cta: int) -> bool:
        places = (thread.place for thread in self.context.test.threads)
        return any(place.cta == cta and place.cluster_id == self.place.cluster_id for place in places)

    def root(self, variable: Variable) -> Variable:
        """The variable that this one is, or is finally an alias of."""
        return root_of(self.context.variables, variable.name)

    def no_multimem(self, variable: Variable, operand: Operand) -> None:
        """Raise InputError if an operand names a multimem address, which multimem instructions alone access."""
        if variable.multimem:
            hint = f"name one of {', '.join(variable.multimem)}"
            self.fail(f"{self.head} cannot access '{variable.name}', a multimem address", operand, hint)

    def _no_endpoint(self, variable: Variable, operand: Operand) -> None:
        """Raise InputError if an operand names a logical endpoint, which only handles name."""
        if variable.proxy is Proxy.FABRIC:
            hint = f"write [{variable.name}, 0] in a fabric operation"
            self.fail(f"'{variable.name}' is a logical endpoint, which has no address", operand, hint)

    def _check_access(self, variable: Variable, operand: Operand, proxy: Proxy) -> None:
        self.no_multimem(variable, operand)
        self._no_endpoint(variable, operand)
        name, declared = variable.name, variable.proxy
        if declared is not proxy:
            if proxy is Proxy.GENERIC:
                own = PROXY_LOADS.get(declared, "its own instruction")
                hint = f"use {own}, or declare a generic alias of the location"
                self.fail(f"{self.head} is a generic access, and '{name}' is a {declared.value}", operand, hint)
            hint = f"declare one: s @ {proxy.value} aliases {name};"
            self.fail(f"{self.head} accesses a {proxy.value}, and '{name}' is not declared as one", operand, hint)
        space, word = self.root(variable).space, self.word("space")
        wanted = SPACE_OF.get(word or "")
        if word == "local" or (wanted is not None and space not in (Space.GENERIC, wanted)):
            hint = f"write .{space.value} or leave the state space out"
            self.fail(f"'{name}' is a .{space.value} variable, not .{word}", operand, hint)
        if space in (Space.CONST, Space.PARAM) and self.head != "ld" and proxy is Proxy.GENERIC:
            self.fail(
                f"{self.head} cannot access '{name}': .{space.value} memory is read-only", operand, "declare it .global"
            )

    def access(
        self,
        side: Side,
        sem: Sem = Sem.WEAK,
        scope: Scope | None = None,
        proxy: Proxy = Proxy.GENERIC,
        family: Family = Family.PLAIN,
        *,
        rmw: bool = False,
    ) -> Access:
        """The label of an access of this instruction; it says whether multimem, .volatile or .mmio is written."""
        spelt = "mmio" if self.word("mmio") else "volatile" if self.word("sem") == "volatile" else None
        spelt = "multimem" if self.head.startswith("multimem.") else spelt
        return Access(side, sem, scope, proxy, family, rmw, spelt=spelt)

    def reduced(self, value: Expr) -> Expr:
        """`value` as the instruction's type holds it."""
        if self.given_type is None or isinstance(value, Const):
            return value
        return Apply("cvt", (value,), self.given_type)

    def data(self, operand: Operand) -> Expr:
        """A source operand as the instruction's type holds it. A register of a module has as many bits, or more."""
        if self.given_type is None:
            return self.value(operand)
        return self.reduced(self.source(operand, self.given_type, wider=True))

    # ---- errors ----------------------------------------------------------------------------------------------

    def fail(self, message: str, operand: Operand | None = None, hint: str | None = None) -> NoReturn:
        """Raise InputError at the operand, or at the mnemonic."""
        span = operand.span if operand is not None else self.instruction.mnemonic_span
        raise InputError(message, span or self.instruction.span, hint)

    def refuse(self, message: str, slot: str, hint: str | None = None) -> NoReturn:
        """Raise InputError at the qualifier in that slot."""
        raise InputError(message, self.instruction.span_of_part(self.reading.positions.get(slot)), hint)
