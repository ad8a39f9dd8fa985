"""The body of a PTX function: statements to instructions, with registers and labels resolved through their braces.

In: a Cursor after the opening brace. Out: `BodyReader`. What an instruction means is not decided here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace

from memmodel.errors import InputError, suggestion
from memmodel.ptx.lexer import Token
from memmodel.ptx.module.constants import constant, product
from memmodel.ptx.module.lexer import ModuleCursor, integer_of, real_of
from memmodel.ptx.module.syntax import Location, ModuleVariable, PtxInstruction
from memmodel.ptx.module.variables import SPACES, declarations, family, space_of, type_of
from memmodel.ptx.operand_reader import OperandReader
from memmodel.ptx.operands import (
    PARTS,
    Arguments,
    Blank,
    Imm,
    JumpTable,
    JumpTarget,
    Operand,
    Pair,
    Part,
    Reg,
    Register,
    Special,
    Sym,
    Vector,
)
from memmodel.recovery.every_error import ErrorsSoFar

MAX_INSTRUCTIONS = 2_000_000
MAX_DEPTH = 64
MAX_REGISTERS = 1 << 20
_RANGED = re.compile(r"(%?[A-Za-z_$%][\w$]*?)([0-9]+)")
_SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(\.[xyzwrgba])?"
    r"|%(cluster_ctarank|cluster_nctarank|is_explicit_cluster|laneid|warpid|nwarpid|smid|nsmid|gridid|clock|clock_hi"
    r"|clock64|globaltimer|globaltimer_lo|globaltimer_hi|lanemask_(eq|le|lt|ge|gt)|pm\d+(_64)?|envreg\d+"
    r"|total_smem_size|aggr_smem_size|dynamic_smem_size|reserved_smem_offset\w*|current_graph_exec)"
)


@dataclass
class _Scope:
    """What is declared between two braces."""

    registers: dict[str, Register] = field(default_factory=dict)
    ranges: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[Token, ...]] = field(default_factory=dict)
    variables: dict[str, ModuleVariable] = field(default_factory=dict)
    waiting: list[tuple[int, Token]] = field(default_factory=list)


class BodyReader:
    """The statements of one function. `names`: what the module declares.

    Until its braces close, a label is known by where it is mentioned; `_targets` says which instruction that is.
    """

    def __init__(self, cursor: ModuleCursor, names: set[str], locations: Locations, errors: ErrorsSoFar) -> None:
        self.cursor = cursor
        self.errors = errors
        self.locations = locations
        self.variables: list[ModuleVariable] = []
        self.slots = 0
        self._names = names
        self._drafts: list[PtxInstruction] = []
        self._scopes = [_Scope()]
        self._targets: dict[int, int | tuple[int, ...]] = {}
        self._location: Location | None = None
        self._grammar = ModuleOperands(self)

    def read(self) -> tuple[PtxInstruction, ...]:
        """Everything up to the closing brace of the function."""
        while self._scopes:
            begin = self.cursor.at
            try:
                self._statement()
            except InputError as error:
                self._leave_out(begin, error)
        instructions = []
        for draft in self._drafts:
            try:
                instructions.append(replace(draft, operands=self._settled(draft)))
            except InputError as error:
                self.errors.note(error)
        return tuple(instructions)

    def _leave_out(self, begin: int, error: InputError) -> None:
        """Go on after the statement that began at a token and has an error. Raises InputError if nothing follows."""
        cursor = self.cursor
        first = cursor.tokens[begin]
        while cursor.token.kind not in (";", "{", "}", "end"):
            cursor.next()
        if cursor.token.kind == "end":
            self.errors.note(error)
            self.errors.end()
        declares = first.kind == "dot" or (first.kind == "name" and cursor.tokens[begin + 1].kind == ":")
        self.errors.note(error, cursor.span(first, cursor.token).text if declares else "")
        if cursor.at == begin or cursor.token.kind == ";":
            cursor.next()

    def _settled(self, draft: PtxInstruction) -> tuple[Operand, ...]:
        """The operands of an instruction, its labels resolved. Raises InputError for a jump without one label."""
        if draft.words[0] == "bra" and not (len(draft.operands) == 1 and isinstance(draft.operands[0], JumpTarget)):
            raise InputError("bra goes to one label of this function", draft.span)
        return tuple(map(self._resolved, draft.operands))

    def _resolved(self, operand: Operand) -> Operand:
        """A label leads to an instruction, or to a list of labels; that of a prototype leads nowhere."""
        if not isinstance(operand, JumpTarget) or operand.at not in self._targets:
            return operand
        target = self._targets[operand.at]
        return JumpTarget(operand.name, target) if isinstance(target, int) else JumpTable(operand.name, target)

    # ---- statements ------------------------------------------------------------------------------------------

    def _statement(self) -> None:
        cursor = self.cursor
        token = cursor.token
        if token.kind == "{":
            cursor.next()
            if len(self._scopes) >= MAX_DEPTH:
                cursor.fail(f"more than {MAX_DEPTH} braces are open", token)
            self._scopes.append(_Scope())
        elif token.kind == "}":
            cursor.next()
            self._close()
        elif token.kind == ";":
            cursor.next()
        elif token.kind == "dot":
            self._directive(token)
        elif token.kind == "@" or (token.kind == "name" and cursor.ahead().kind != ":"):
            self._instruction()
        elif token.kind == "name":
            self._label()
        elif token.kind == "end":
            cursor.fail("the function is not closed: '}' is expected")
        else:
            cursor.fail(f"{token.text!r} begins no statement", token)

    def _label(self) -> None:
        cursor = self.cursor
        name = cursor.next()
        cursor.next()
        scope = self._scopes[-1]
        if name.text in scope.labels or name.text in scope.tables:
            cursor.fail(f"the label {name.text} stands twice in these braces", name)
        if cursor.token.kind == "dot" and cursor.token.text == ".branchtargets":
            cursor.next()
            scope.tables[name.text] = tuple(cursor.separated(lambda: cursor.expect("name", "a label")))
            cursor.expect(";")
            return
        if cursor.token.kind == "dot" and cursor.token.text in (".callprototype", ".calltargets"):
            cursor.skip_statement()
            scope.tables[name.text] = ()
            return
        scope.labels[name.text] = len(self._drafts)

    def _close(self) -> None:
        """Resolve the labels of these braces; those that are missing are looked for further out."""
        scope = self._scopes.pop()
        tables = {name: tuple(self._listed(token, scope) for token in listed) for name, listed in scope.tables.items()}
        left: list[tuple[int, Token]] = []
        for number, token in scope.waiting:
            if token.text in scope.labels:
                self._targets[number] = scope.labels[token.text]
            elif token.text in tables:
                self._targets[number] = tables[token.text] or -1
            else:
                left.append((number, token))
        if self._scopes:
            self._scopes[-1].waiting += left
            return
        for _, token in left:
            if token.text not in self._names:
                hint = suggestion(token.text, [*scope.labels, *scope.variables])
                self.errors.note(InputError(f"{token.text} is not declared", self.cursor.span(token), hint))

    def _listed(self, token: Token, scope: _Scope) -> int:
        for outer in (scope, *reversed(self._scopes)):
            if token.text in outer.labels:
                return outer.labels[token.text]
        self.cursor.fail(f"the label {token.text} is not known here", token)

    def _directive(self, token: Token) -> None:
        cursor = self.cursor
        cursor.next()
        word = token.text
        if word == ".reg":
            self._registers()
        elif space_of(token) in SPACES:
            for variable in declarations(cursor, token, {}):
                unique = variable.name
                if unique in self._names or any(other.name == unique for other in self.variables):
                    unique = f"{variable.name}#{len(self.variables)}"
                self._scopes[-1].variables[variable.name] = replace(variable, name=unique)
                self.variables.append(self._scopes[-1].variables[variable.name])
        elif word == ".loc":
            self._location = self.locations.read(cursor)
        elif word == ".loc_intermediate":
            for what in ("the number of a file", "a line", "a column"):
                cursor.integer(what)
        elif word == ".pragma":
            cursor.skip_statement()
        else:
            cursor.fail(f"{word} is no directive of a function body", token)

    def _registers(self) -> None:
        cursor = self.cursor
        written = cursor.expect("dot", "a type")
        lanes = 1
        if written.text in (".v2", ".v4", ".v8"):
            lanes = int(written.text[2:])
            written = cursor.expect("dot", "a type")
        kind, width = type_of(cursor, written)
        while True:
            name = cursor.expect("name", "a register")
            scope = self._scopes[-1]
            if cursor.accept("<"):
                count = family(cursor)
                if lanes == 1:
                    scope.ranges[name.text] = (count, kind, width)
                for number in range(count if lanes > 1 else 0):
                    self._vector(f"{name.text}{number}", lanes, kind, width)
            elif lanes > 1:
                self._vector(name.text, lanes, kind, width)
            else:
                scope.registers[name.text] = self._new(name.text, kind, width)
            if not cursor.accept(","):
                break
        cursor.expect(";")

    def _vector(self, name: str, lanes: int, kind: str, width: int) -> None:
        """A vector register: its components, which have two names each ("Vectors as Operands")."""
        scope = self._scopes[-1]
        components = tuple(self._new(f"{name}.{letter}", kind, width) for letter in "xyzw0123"[:lanes])
        for component, *letters in zip(components, "xyzw", "rgba", strict=False):
            scope.registers |= {f"{name}.{letter}": component for letter in letters}
        scope.vectors[name] = Vector(components)

    def _new(self, name: str, kind: str, width: int) -> Register:
        if self.slots >= MAX_REGISTERS:
            raise InputError(f"more than {MAX_REGISTERS:,} registers")
        self.slots += 1
        return Register(name, slot=self.slots - 1, kind=kind, width=width)

    # ---- instructions ----------------------------------------------------------------------------------------

    def _instruction(self) -> None:
        cursor = self.cursor
        start = cursor.token
        guard, negated = None, False
        if cursor.accept("@"):
            negated = cursor.accept("!") is not None
            name = cursor.expect("name", "a predicate")
            guard = self.register(name.text)
            if guard is None:
                cursor.fail(f"the predicate {name.text} is not declared", name)
        opcode = cursor.expect("name", "an instruction")
        self._grammar.calling = opcode.text.partition(".")[0] == "call"
        operands = [] if cursor.token.kind == ";" else cursor.separated(self._grammar.operand)
        end = cursor.expect(";", "',' or ';'")
        if len(self._drafts) >= MAX_INSTRUCTIONS:
            cursor.fail(f"more than {MAX_INSTRUCTIONS:,} instructions", opcode)
        span = cursor.source.span(start.start, end.start)
        number, words = len(self._drafts), tuple(opcode.text.split("."))
        self._drafts.append(PtxInstruction(number, words, tuple(operands), span, guard, negated, self._location))

    def number(self) -> Operand:
        """The number at the cursor: a constant expression, or a floating-point number."""
        cursor = self.cursor
        first = cursor.ahead() if cursor.token.kind == "-" else cursor.token
        if first.kind != "number" or integer_of(first.text) is not None:
            return Imm(constant(cursor))
        negative = cursor.accept("-") is not None
        token = cursor.next()
        real = real_of(token.text)
        if real is None:
            cursor.fail("this is no number", token)
        return replace(real, bits=real.bits ^ negative << real.width - 1)

    def named(self, token: Token) -> Operand:
        """What a name is in the braces that are open. A name that nothing declares is a label."""
        text = token.text
        if text == "_":
            return Blank()
        register = self.register(text)
        vector = next((scope.vectors[text] for scope in reversed(self._scopes) if text in scope.vectors), None)
        if register is not None or vector is not None:
            return register or vector or Blank()
        if _SPECIAL.fullmatch(text):
            return Special(text)
        whole, _, selector = text.rpartition(".")
        register = self.register(whole) if selector in PARTS else None
        if register is not None:
            return Part(register, selector)
        if text.startswith("%"):
            self.cursor.fail(f"the register {text} is not declared", token)
        for scope in reversed(self._scopes):
            if text in scope.variables:
                return Sym(scope.variables[text].name)
        if text in self._names:
            return Sym(text)
        self._scopes[-1].waiting.append((token.start, token))
        return JumpTarget(text, token.start)

    def register(self, name: str) -> Register | None:
        """The register of that name in the innermost braces that declare it."""
        ranged = _RANGED.fullmatch(name)
        for scope in reversed(self._scopes):
            if name in scope.registers:
                return scope.registers[name]
            if ranged is not None and ranged[1] in scope.ranges:
                count, kind, width = scope.ranges[ranged[1]]
                if len(ranged[2]) < 10 and str(int(ranged[2])) == ranged[2] and int(ranged[2]) < count:
                    scope.registers[name] = self._new(name, kind, width)
                    return scope.registers[name]
        return None


class ModuleOperands(OperandReader[ModuleCursor]):
    """Operands of compiled modules, whose names the body resolves. `calling`: parentheses hold arguments."""

    def __init__(self, body: BodyReader) -> None:
        super().__init__(body.cursor)
        self._body = body
        self.calling = False

    def named(self) -> Operand:
        operand = self._body.named(self.cursor.next())
        return replace(operand, offset=self.offset()) if isinstance(operand, Sym) else operand

    def number(self) -> Operand:
        return self._body.number()

    def parenthesized(self, depth: int) -> Operand:
        cursor = self.cursor
        if not self.calling:
            return self._body.number()
        cursor.next()
        items = () if cursor.token.kind == ")" else self.items(depth)
        cursor.expect(")")
        return Arguments(items)

    def pair(self, first: Operand) -> Operand:
        self.cursor.next()
        return Pair(first, self.operand(1))

    def pairs_at(self, depth: int) -> bool:
        return depth == 0

    def predicate(self) -> Reg:
        name = self.cursor.expect("name", "a predicate")
        register = self._body.register(name.text)
        if register is None:
            self.cursor.fail(f"the predicate {name.text} is not declared", name)
        return register

    def base(self) -> Reg | Sym | Imm:
        token = self.cursor.token
        if token.kind not in ("number", "-", "name"):
            raise self.cursor.wanted("an address", "write [x], [x+4] or [%rd1]")
        base = self._body.named(self.cursor.next()) if token.kind == "name" else self.number()
        if not isinstance(base, Reg | Sym | Imm):
            self.cursor.fail(f"{token.text} is no address", token)
        return base

    def offset(self) -> int:
        cursor, offset = self.cursor, 0
        while cursor.token.kind in ("+", "-"):
            sign = -1 if cursor.next().kind == "-" else 1
            offset += sign * product(cursor)
        return offset


_STRING = re.compile(r"^(\$L__info_string\d+):((?:\s*\.b8[ \t][\d, \t]+)+)", re.MULTILINE)
_BYTE = re.compile(r"\b\d+\b")
_INLINE = re.compile(r"// begin inline asm\b.*?// end inline asm\b", re.DOTALL)


class Locations:
    """What .loc directives say. Files are named at the end of a module, so that a file is its number until then.

    Within inline assembly LLVM counts the line up at each line of the assembly, as if these were lines of the source:
    there, a place with the column of the first one is the first one. The first one may stand in front of the assembly.
    """

    def __init__(self, files: dict[int, str], text: str = "") -> None:
        self._files = files
        self._strings = dict(_STRING.findall(text))
        self._text = text
        self._inline = [found.span() for found in _INLINE.finditer(text)]
        self._first: tuple[int, Location] | None = None
        self._outside: Location | None = None
        self._last: dict[tuple[int, int, int], Location] = {}

    def read(self, cursor: ModuleCursor) -> Location:
        """The rest of a .loc directive."""
        at = cursor.token.start
        location = self._read(cursor)
        block = bisect_right(self._inline, at, key=lambda span: span[0]) - 1
        if block < 0 or at >= self._inline[block][1]:
            self._outside = location
            return location
        if self._first is None or self._first[0] != block:
            lines = self._text.count("\n", self._inline[block][0], at)
            before = self._outside if self._outside and _counted_up(self._outside, location, lines) else location
            self._first = block, before
        first = self._first[1]
        return first if _counted_up(first, location) else location

    def _read(self, cursor: ModuleCursor) -> Location:
        file = cursor.integer("the number of a file")
        line = cursor.integer("a line")
        column = cursor.integer("a column")
        caller, function = None, ""
        while cursor.token.kind == ",":
            cursor.next()
            word = cursor.expect("name", "function_name or inlined_at")
            if word.text == "function_name":
                function = self._function(cursor.expect("name", "a label").text)
                if cursor.accept("+"):
                    cursor.integer("an offset")
            elif word.text == "inlined_at":
                key = (cursor.integer("the number of a file"), cursor.integer("a line"), cursor.integer("a column"))
                caller = self._last.get(key) or Location(self._name(key[0]), key[1], key[2])
            else:
                cursor.fail("function_name or inlined_at is expected here", word)
        # A caller that is inlined in turn was named by the directive before.
        if caller is not None and _depth(caller) > 100:
            caller = None
        self._last[file, line, column] = Location(self._name(file), line, column, caller, function)
        return self._last[file, line, column]

    def _function(self, label: str) -> str:
        """The name of a function, which stands in the debugging data of the module."""
        numbers = _BYTE.findall(self._strings.get(label, ""))
        return bytes(int(number) & 255 for number in numbers).rstrip(b"\0").decode("utf-8", "replace")

    def _name(self, number: int) -> str:
        return self._files.get(number, f"file {number}")


def _counted_up(first: Location, location: Location, most: int = 1 << 30) -> bool:
    """True if a place lies after another one, by at most this number of lines."""
    same = (first.file, first.column, first.caller) == (location.file, location.column, location.caller)
    return same and first.line < location.line <= first.line + most


def _depth(location: Location | None) -> int:
    depth = 0
    while location is not None:
        depth, location = depth + 1, location.caller
    return depth
