"""What a term means: names looked up, functions expanded, kinds found.

In: tree.Term and the names that are known where it stands. Out: `Value`; for a set or relation, an expression of
`cat.syntax` with its kind. Settled here: everything that is known before there is an execution is worked out now:
functions of functions, tuples, tags, sets of sets, conditions on them. Limits keep a hostile text harmless.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from memmodel.base.kinds import Kind
from memmodel.cat.interpret import branching
from memmodel.cat.interpret.values import (
    SHOWN,
    Entry,
    FunctionValue,
    Macro,
    NamedValue,
    Opaque,
    Orders,
    Primitive,
    Scope,
    TagValue,
    TupleValue,
    Typed,
    Value,
    as_kind,
    binary,
    describe,
    elements,
    entry,
    is_void,
    mentioned,
    set_of,
    shortened,
    steps,
    unary,
)
from memmodel.cat.interpret.world import World
from memmodel.cat.names import BASE_NAMES
from memmodel.cat.primitives import PRIMITIVES, Sample, Static, primitive
from memmodel.cat.syntax import Definition, Empty, Name, Notice
from memmodel.cat.text import tree
from memmodel.errors import InputError, nearest
from memmodel.source import Span

MAX_HEIGHT = 250
"""Operators inside one another once names are followed: what a recursive engine has to descend."""
MAX_SIZE = 10_000
"""Operators and names in one expression once functions are expanded."""
MAX_WORK = 200_000
"""Steps of this module for one model."""
MAX_CALLS = 200
"""Terms inside one another while functions are being expanded."""


class Expander(ABC):
    """Works out terms. `definitions` and `notices` grow where a term asks for it.

    `trial_depth`: how many functions that are only tried are being expanded; `try_depth`: how many `try`. `sample`:
    what `linearisations` and `partition` stand for while a set of orders is looked at.
    """

    def __init__(self) -> None:
        self.base: dict[str, Entry] = {base.name: NamedValue(base.kind) for base in BASE_NAMES}
        self.scope: Scope = self.base
        self.world = World()
        self.definitions: list[Definition] = []
        self.notices: list[Notice] = []
        self.absent: dict[str, Span] = {}
        self.foreign: dict[str, Entry | None] = {}
        self.tags: dict[str, str] = {}
        self.groups = 0
        self.work = 0
        self.depth = 0
        self.trial_depth = 0
        self.try_depth = 0
        self.sample: Sample | None = None

    # ---- terms ---------------------------------------------------------------------------------------------------

    def value(self, term: tree.Term, scope: Scope) -> Value:
        """What a term means in a scope."""
        self.work += 1
        if self.work > MAX_WORK or self.depth > MAX_CALLS:
            raise InputError("the model is too large once its functions are expanded", term.span)
        self.depth += 1
        value = self.evaluated(term, scope)
        self.depth -= 1
        if isinstance(value, Typed) and (value.height > MAX_HEIGHT or value.size > MAX_SIZE):
            raise InputError("expression too large once names and functions are followed", term.span)
        return value

    def evaluated(self, term: tree.Term, scope: Scope) -> Value:
        match term:
            case tree.Nothing():
                return Typed(Empty(Kind.EITHER, term.span))
            case tree.Ref():
                return self.ref(term, scope)
            case tree.Affix():
                return self.affix(term, self.term(term.operand, scope))
            case tree.Infix():
                return self.infix(term, self.value(term.left, scope), self.value(term.right, scope))
            case tree.Application():
                return self.application(term, scope)
            case tree.Local():
                return self.local(term, scope)
            case tree.Tag():
                return self.tag(term)
            case tree.Tuple():
                return TupleValue(tuple(self.value(member, scope) for member in term.items))
            case tree.Collection():
                return set_of((self.value(member, scope) for member in term.items), term.span)
            case tree.Lambda():
                return FunctionValue("fun", term.parameters, term.body, scope, term.span, True)
            case tree.Try():
                return branching.attempt(self, term, scope)
            case tree.Conditional():
                return branching.conditional(self, term, scope)
            case tree.MatchTag():
                return self.value(branching.clause(self, term.subject, term.clauses, term.span, scope), scope)
            case tree.MatchSet():
                return branching.match_set(self, term, scope)

    def term(self, term: tree.Term, scope: Scope) -> Typed:
        """A term that is a set or a relation. Raises InputError for anything else."""
        value = self.value(term, scope)
        if isinstance(value, Typed):
            return value
        hint = "only sets of events and relations have operators"
        if isinstance(value, FunctionValue):
            hint = f"call it: {value.name}({', '.join(value.parameters)})"
        elif isinstance(value, Orders | Opaque):
            hint = "with name from …"
        raise Static(f"`{shortened(term.span)}` is {describe(value)}", term.span, hint)

    def progress(self) -> tuple[int, int, int]:
        """The numbers of definitions and groups so far, and the depth, for `go_back`."""
        return len(self.definitions), self.depth, self.groups

    def go_back(self, progress: tuple[int, int, int]) -> None:
        """Forget what was defined since then."""
        count, self.depth, self.groups = progress
        del self.definitions[count:]

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """Forget at the end what the block has defined, and how deep it was when it failed."""
        before = self.progress()
        try:
            yield
        finally:
            self.go_back(before)

    # ---- names ---------------------------------------------------------------------------------------------------

    def lookup(self, ref: tree.Ref, scope: Scope) -> Entry:
        """What a name stands for; `interpret.world` has names that no model defines. Raises InputError for others."""
        known = scope.get(ref.name) or self.from_elsewhere(ref)
        if known is not None:
            return known
        near = nearest(ref.name, (*scope, *PRIMITIVES))
        hint = "`memmodel names` lists the base names"
        if near:
            hint = f"did you mean `{near}`{_where(scope.get(near), ref.span)}?"
        raise InputError(f"unknown name `{ref.name}`", ref.span, hint)

    def from_elsewhere(self, ref: tree.Ref) -> Entry | None:
        """A name of another tool or architecture; None if it has no meaning and may not be empty."""
        if ref.name not in self.foreign:
            self.foreign[ref.name] = self.foreign_entry(ref.name)
        known = self.foreign[ref.name]
        empty = isinstance(known, Macro) and isinstance(known.typed.expr, Empty)
        if not empty and known is not None:
            return known
        if not empty and ref.name not in self.absent and not self.world.may_be_empty(ref.name, self.scope):
            return None
        if self.try_depth:
            return None
        self.absent.setdefault(ref.name, ref.span)
        return known or Macro(Typed(Empty(Kind.EITHER, ref.span)))

    def foreign_entry(self, name: str) -> Entry | None:
        """What a name stands for that the model does not define: in the world of the model, or as a primitive."""
        binding = self.world.binding(name)
        if binding is None:
            return Primitive(name) if name in PRIMITIVES else None
        if binding.parameters is not None:
            return FunctionValue(name, binding.parameters, binding.body, self.base, binding.span, True)
        return entry(self.value(binding.body, self.base), binding.span)

    def ref(self, ref: tree.Ref, scope: Scope) -> Value:
        known = self.lookup(ref, scope)
        if isinstance(known, Macro):
            return known.typed
        if isinstance(known, NamedValue):
            if ref.name == "emptyset" and known.ref is None:
                return Typed(Empty(Kind.SET, ref.span))
            return Typed(Name(ref.name, known.kind, known.ref, ref.span), known.height + 1)
        return known

    def tag(self, tag: tree.Tag) -> Value:
        if tag.name not in self.tags:
            raise InputError(f"no `enum` among the tags has `'{tag.name}`", tag.span, f"enum name = '{tag.name} || …")
        return TagValue(tag.name, self.tags[tag.name])

    # ---- operators -----------------------------------------------------------------------------------------------

    def affix(self, term: tree.Affix, inner: Typed) -> Typed:
        if term.op == "[]":
            inner = self.want(inner, Kind.SET, "`[ ]` is the identity on a set", term.operand)
        elif term.op != "~":
            inner = self.want(inner, Kind.RELATION, f"`{term.op}` applies to a relation", term.operand)
        return unary(term.op, inner, term.span)

    def infix(self, term: tree.Infix, left: Value, right: Value) -> Value:
        if term.op == "++":
            return self.added(term, left, right)
        if not isinstance(left, Typed) or not isinstance(right, Typed):
            return self.combined(term, left, right)
        if term.op == ";":
            wanted, rule = Kind.RELATION, "`;` joins two relations"
        elif term.op == "*":
            wanted, rule = Kind.SET, "`*` between operands pairs two sets"
        else:
            wanted = left.expr.kind if left.expr.kind is not Kind.EITHER else right.expr.kind
            rule = f"`{term.op}` takes two sets or two relations"
            if right.expr.kind not in (wanted, Kind.EITHER):
                message = f"{rule}; left side {self.words(left, term.left)}, right side {self.words(right, term.right)}"
                raise InputError(message, term.mark, _repair(wanted))
        if term.op == "&" and {_base(left), _base(right)} == {"R", "W"}:
            message = "`R & W` is empty: an atomic operation of PTX has a read and a write"
            self.notices.append(Notice(message, term.span, "RMW has both; rmw relates them"))
        left = self.want(left, wanted, f"{rule}; left side", term.left, term.op)
        right = self.want(right, wanted, f"{rule}; right side", term.right, term.op)
        return binary(term.op, left, right, term.span)

    def added(self, term: tree.Infix, left: Value, right: Value) -> Value:
        """`element ++ set`."""
        members = elements(right)
        if members is None:
            raise Static(f"`++` adds to a set that is listed; right side is {describe(right)}", term.mark)
        return set_of((left, *members), term.span)

    def combined(self, term: tree.Infix, left: Value, right: Value) -> Value:
        """Operators between sets of sets, or of tags."""
        first, second = elements(left), elements(right)
        if first == () and term.op in "&\\":
            return left
        if first is None or second is None or term.op not in "|&\\":
            message = f"`{term.op}` cannot combine {describe(left)} and {describe(right)}"
            raise Static(message, term.mark, "only sets of events and relations have all operators")
        if term.op == "|":
            return set_of((*first, *second), term.span)
        return set_of((member for member in first if (member in second) is (term.op == "&")), term.span)

    def want(self, typed: Typed, kind: Kind, rule: str, term: tree.Term, op: str = "") -> Typed:
        """`typed` as an expression of that kind. Raises InputError if it is of the other."""
        if typed.expr.kind is kind:
            return typed
        if Kind.EITHER in (kind, typed.expr.kind):
            return typed._replace(expr=as_kind(typed.expr, kind))
        link = " " if op else "; "
        hint = _repair(typed.expr.kind)
        if op == "*" and rule.endswith("left side"):
            hint = "a closure that is followed by an operand is written (r*)"
        raise InputError(f"{rule}{link}{self.words(typed, term)}", term.span, hint)

    def words(self, typed: Typed, term: tree.Term) -> str:
        return f"`{shortened(term.span)}` is a {typed.expr.kind.value}"

    def void(self, value: Value) -> bool:
        """True for a set or relation that is empty in every execution, as far as its definition tells."""
        return isinstance(value, Typed) and is_void(value.expr, self.definitions)

    # ---- functions -----------------------------------------------------------------------------------------------

    def application(self, call: tree.Application, scope: Scope) -> Value:
        head = call.head
        applied: Value | Entry = self.lookup(head, scope) if isinstance(head, tree.Ref) else self.head(call, scope)
        if not isinstance(applied, Primitive | FunctionValue):
            return self.no_function(call, applied)
        arguments = tuple(self.value(argument, scope) for argument in call.arguments)
        if isinstance(applied, FunctionValue):
            return self.apply(applied, arguments, call)
        if len(arguments) == 1 and isinstance(arguments[0], TupleValue):
            arguments = arguments[0].items
        return primitive(self, applied.name, call, arguments)

    def head(self, call: tree.Application, scope: Scope) -> Value:
        """What is applied, where it is not a name."""
        spine, last = call.head, call.arguments[-1]
        while isinstance(spine, tree.Application):
            spine = spine.head
        if isinstance(spine, tree.Ref) and not isinstance(call.head, tree.Ref):
            known = self.lookup(spine, scope)
            if isinstance(known, NamedValue) or (isinstance(known, Macro) and not self.trial_depth):
                text = shortened(last.span)
                raise InputError(f"an operator is missing before `{text}`", last.span, "one of | ; & \\ *")
        return self.value(call.head, scope)

    def no_function(self, call: tree.Application, applied: Value | Entry) -> Value:
        if self.trial_depth and isinstance(applied, Macro | Typed):
            return Typed(Empty(Kind.EITHER, call.span))
        name, first = shortened(call.head.span), call.arguments[0].span.text.split()
        hint = f"put an operator between `{name}` and `{first[0][:SHOWN] if first else '('}`: | ; & \\ *"
        raise InputError(f"`{name}` is {describe(applied)}, not a function", call.head.span, hint)

    def apply(self, function: FunctionValue, arguments: tuple[Value, ...], call: tree.Application) -> Value:
        """The body of a function with its parameters bound."""
        names = function.parameters
        if len(arguments) == 1 and isinstance(arguments[0], TupleValue) and len(names) != 1:
            arguments = arguments[0].items
        elif function.steps and len(names) == 1 and len(arguments) != 1:
            arguments = (TupleValue(arguments),)
        if len(arguments) != len(names):
            wanted = f"{function.name}({', '.join(names)})"
            count = f"{len(names)} argument{'s' * (len(names) != 1)}"
            raise InputError(f"`{function.name}` takes {count}, not {len(arguments)}", call.span, wanted)
        if self.trial_depth and function.steps:
            return Typed(Empty(Kind.EITHER, call.span))
        bound = {name: entry(argument) for name, argument in zip(names, arguments, strict=True)}
        try:
            return self.value(function.body, {**function.scope, **bound})
        except InputError as error:
            inside = f"in the body of `{function.name}`, {error.span}: {error.span.text!r}" if error.span else None
            hint = error.hint if error.hint and error.hint.startswith("in the body of") else inside
            raise type(error)(error.message, call.span, hint) from error

    def function(self, binding: tree.Binding, scope: Scope, *, recursive: bool = False) -> FunctionValue:
        """A function, its body tried once with parameters of any kind, so that a name unknown in it is found now."""
        names = binding.parameters or ()
        of_known_values = recursive or steps(binding.body, names)
        if of_known_values:
            used, bound = mentioned(binding.body)
            for ref in used:
                if ref.name not in bound and ref.name not in names:
                    self.lookup(ref, scope)
        else:
            any_kind = {name: Macro(Typed(Empty(Kind.EITHER, binding.span))) for name in names}
            self.trial_depth += 1
            try:
                with self.forgetting():
                    self.value(binding.body, {**scope, **any_kind})
            except Static:
                pass
            finally:
                self.trial_depth -= 1
        return FunctionValue(binding.name, names, binding.body, scope, binding.span, of_known_values)

    def local(self, term: tree.Local, scope: Scope) -> Value:
        if term.recursive:
            return self.value(term.body, self.local_recursion(term, scope))
        new: dict[str, Entry] = {}
        for binding in term.bindings:
            if binding.parameters is not None:
                new[binding.name] = self.function(binding, scope)
            else:
                new.update(self.bound(binding, self.value(binding.body, scope)))
        return self.value(term.body, {**scope, **new})

    @abstractmethod
    def local_recursion(self, term: tree.Local, scope: Scope) -> Scope:
        """`let rec … in`. Raises InputError where the engines would have to know of it."""

    def functions(self, bindings: tuple[tree.Binding, ...], scope: dict[str, Entry]) -> dict[str, Entry]:
        """Functions that may call one another; they are added to the scope."""
        functions: dict[str, Entry] = {
            binding.name: FunctionValue(binding.name, binding.parameters, binding.body, scope, binding.span, True)
            for binding in bindings
            if binding.parameters is not None
        }
        scope.update(functions)
        for binding in bindings:
            if binding.parameters is not None:
                self.function(binding, scope, recursive=True)
        return functions

    def bound(self, binding: tree.Binding, value: Value) -> dict[str, Entry]:
        """The names of a binding that is not a function. Raises InputError if they ask for another tuple."""
        if binding.pattern is None:
            return {binding.name: entry(value, binding.span)}
        if self.trial_depth and isinstance(value, Typed):
            return {name: entry(value, binding.span) for name in binding.pattern}
        if not isinstance(value, TupleValue) or len(value.items) != len(binding.pattern):
            count = len(binding.pattern)
            message = f"patterns of {count} names take a tuple of {count}; this is {describe(value)}"
            raise InputError(message, binding.span)
        return {name: entry(part, binding.span) for name, part in zip(binding.pattern, value.items, strict=True)}


def _base(typed: Typed) -> str:
    """The base name that an expression is, or ""."""
    return typed.expr.name if isinstance(typed.expr, Name) and typed.expr.ref is None else ""


def _repair(kind: Kind) -> str:
    if kind is Kind.SET:
        return "[S] is the identity relation on a set S; S * T pairs two sets"
    return "domain(r) and range(r) are the sets at the ends of a relation r"


def _where(known: Entry | None, seen: Span) -> str:
    """` (set, defined at line 22)`, for a hint."""
    span: Span | None = None
    if isinstance(known, NamedValue | Macro | FunctionValue):
        span = known.span
    what = "function" if known is None else describe(known).split(" ", 1)[1]
    if isinstance(known, Macro) and span is None:
        return " (parameter)"
    if span is None:
        return f" ({what}, a base name)" if isinstance(known, NamedValue) else f" ({what})"
    place = f"line {span.line}" if span.source is seen.source else f"{span.source.name}:{span.line}"
    return f" ({what}, defined at {place})"
