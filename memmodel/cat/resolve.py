"""Look up every name, give every expression its kind, expand functions, and check that recursion is monotone.

In: statements of `cat.parser`, file after file. Out: Model. Settled here: what each name means at the place where it
stands (a later `let` of the same name does not reach back), what is a set and what a relation, what each check is
called. An engine therefore meets no unknown name, no kind error and no function. Limits keep a hostile text harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from memmodel.base.kinds import Kind
from memmodel.cat import tree
from memmodel.cat.names import BASE_NAMES
from memmodel.cat.printer import show
from memmodel.cat.syntax import Binary, Check, Definition, Empty, Expr, Model, Name, Unary
from memmodel.errors import InputError, nearest
from memmodel.source import Source, Span

MAX_HEIGHT = 250
"""Operators inside one another once names are followed: what a recursive engine has to descend."""
MAX_SIZE = 10_000
"""Operators and names in one expression once functions are expanded."""
MAX_WORK = 200_000
"""Steps of this module for one model."""
MAX_NAMES = 5_000
"""Names that one model may define."""
MAX_CALLS = 200
"""Terms inside one another while functions are being expanded."""

_SHOWN = 40
_BUILTIN = ("domain", "range")
_BASE = {base.name: base for base in BASE_NAMES}


class Typed(NamedTuple):
    """A resolved expression and its measures."""

    expr: Expr
    height: int = 1
    size: int = 1


@dataclass(frozen=True, slots=True)
class NamedValue:
    """What a name stands for: a base name (`ref` None) or a definition."""

    kind: Kind
    ref: int | None = None
    height: int = 1
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Macro:
    """A name that is replaced by an expression: a parameter, a local `let`, or a definition that is just `0`."""

    typed: Typed
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A `let` with parameters, and the names that were known there."""

    binding: tree.Binding
    scope: Scope


Entry = NamedValue | Macro | Function
Scope = Mapping[str, Entry]


@dataclass
class Resolver:
    """Gathers one model. `include` reads the file that an `include` names and feeds it back through `run`."""

    include: Callable[[tree.Include], None]
    scope: Scope = field(default_factory=lambda: {base.name: NamedValue(base.kind) for base in BASE_NAMES})
    definitions: list[Definition] = field(default_factory=list)
    checks: dict[str, Check] = field(default_factory=dict)
    shown: dict[str, None] = field(default_factory=dict)
    groups: int = 0
    work: int = 0
    depth: int = 0
    overrides: dict[str, tuple[tree.Binding, str]] = field(default_factory=dict)
    overridden: list[str] = field(default_factory=list)

    def model(self, name: str, title: str, sources: tuple[Source, ...]) -> Model:
        """What has been gathered."""
        return Model(name, title, tuple(self.definitions), tuple(self.checks.values()), tuple(self.shown), sources)

    def run(self, text: tree.Text) -> None:
        """Take in the statements of one file. Raises InputError if it overrides what no included file defines."""
        mine, outer, before = self.own_overrides(text), self.overrides, len(self.overridden)
        for statement in text.statements:
            match statement:
                case tree.Let(override=True):
                    pass
                case tree.Let(recursive=True):
                    self.recursive(statement)
                case tree.Let():
                    self.plain(statement)
                case tree.Test():
                    self.check(statement)
                case tree.Include():
                    self.overrides = {**mine, **outer}  # the outermost file has the say
                    self.include(statement)
                    self.overrides = outer
                case tree.Show():
                    self.show(statement)
                case tree.Unshow():
                    self.lookup(tree.Ref(statement.name, statement.span), self.scope)
                    self.shown.pop(statement.name, None)
        for name, (binding, _) in mine.items():
            if name not in self.overridden[before:]:
                near = nearest(name, [known for known in self.scope if known not in _BASE])
                hint = f"did you mean `{near}`?" if near else "it takes the place of a definition in an included file"
                raise InputError(f"`{name}` is overridden, and no included file defines it", binding.span, hint)

    def own_overrides(self, text: tree.Text) -> dict[str, tuple[tree.Binding, str]]:
        """What a file overrides in all files that it includes, theirs included."""
        mine: dict[str, tuple[tree.Binding, str]] = {}
        for statement in text.statements:
            if isinstance(statement, tree.Let) and statement.override:
                for binding in statement.bindings:
                    if binding.name in mine:
                        raise InputError(f"`{binding.name}` is overridden twice", binding.span)
                    mine[binding.name] = (binding, statement.doc)
        return mine

    def chosen(self, let: tree.Let) -> tree.Let:
        """A `let` with the bindings that override its own. They see the names that are known where it stands."""
        bindings, doc = [], let.doc
        for binding in let.bindings:
            other = self.overrides.get(binding.name)
            if other is None:
                bindings.append(binding)
                continue
            if (other[0].parameters is None) is not (binding.parameters is None) or len(
                other[0].parameters or ()
            ) != len(binding.parameters or ()):
                raise InputError(
                    f"`{binding.name}` is overridden with other parameters", other[0].span, f"it is {binding.span.text}"
                )
            self.overridden.append(binding.name)
            bindings.append(other[0])
            doc = other[1] or doc
        return tree.Let(tuple(bindings), let.recursive, doc)

    # ---- statements ----------------------------------------------------------------------------------------------

    def plain(self, let: tree.Let) -> None:
        """`let … and …`: every right side sees the names as they were before."""
        self.once(let)
        let = self.chosen(let)
        new: dict[str, Entry] = {}
        for binding in let.bindings:
            if binding.parameters is not None:
                new[binding.name] = self.function(binding, self.scope)
                continue
            typed = self.term(binding.body, self.scope)
            if typed.expr.kind is Kind.EITHER:
                new[binding.name] = Macro(typed, binding.span)
            else:
                new[binding.name] = self.define(binding, typed, None, let.doc)
        self.scope = {**self.scope, **new}

    def recursive(self, let: tree.Let) -> None:
        """`let rec … and …`: first the kinds, by repeated guessing; then the bodies; then that they are monotone."""
        self.once(let)
        let = self.chosen(let)
        first = len(self.definitions)
        kinds = [Kind.EITHER] * len(let.bindings)
        while True:
            own: dict[str, Entry] = {
                binding.name: NamedValue(kind, first + number, 1, binding.span)
                for number, (binding, kind) in enumerate(zip(let.bindings, kinds, strict=True))
            }
            scope = {**self.scope, **own}
            bodies = [self.term(binding.body, scope) for binding in let.bindings]
            bodies = [
                typed._replace(expr=_as(typed.expr, kind)) if typed.expr.kind is Kind.EITHER else typed
                for typed, kind in zip(bodies, kinds, strict=True)
            ]
            found = [typed.expr.kind for typed in bodies]
            if found == kinds:
                if Kind.EITHER not in found:
                    break
                found[found.index(Kind.EITHER)] = Kind.RELATION
            for binding, before, after in zip(let.bindings, kinds, found, strict=True):
                if before is not Kind.EITHER and after is not before:
                    message = f"`{binding.name}` is used as a {before.value} but defined as a {after.value}"
                    raise InputError(message, binding.span)
            kinds = found
        self.groups += 1
        height = max(typed.height for typed in bodies)
        names = range(first, first + len(bodies))
        for binding, typed in zip(let.bindings, bodies, strict=True):
            _require_monotone(typed.expr, names)
            own[binding.name] = self.define(binding, typed._replace(height=height), self.groups, let.doc)
        self.scope = {**self.scope, **own}

    def define(self, binding: tree.Binding, typed: Typed, group: int | None, doc: str) -> NamedValue:
        kind = typed.expr.kind
        self.definitions.append(Definition(binding.name, kind, typed.expr, group, doc, binding.span))
        return NamedValue(kind, len(self.definitions) - 1, typed.height, binding.span)

    def once(self, let: tree.Let) -> None:
        """No name twice in one `let`, and not too many in all."""
        if len(self.scope) > MAX_NAMES:
            raise InputError(f"more than {MAX_NAMES:,} names", let.bindings[0].span)
        names = [binding.name for binding in let.bindings]
        for number, binding in enumerate(let.bindings):
            if binding.name in names[:number]:
                raise InputError(f"`{binding.name}` is defined twice in one `let`", binding.span)

    def function(self, binding: tree.Binding, scope: Scope) -> Function:
        """A function, its body tried once with parameters of any kind, so that a name unknown in it is found now."""
        any_kind = {name: Macro(Typed(Empty(Kind.EITHER, binding.span))) for name in binding.parameters or ()}
        self.term(binding.body, {**scope, **any_kind})
        return Function(binding, scope)

    def check(self, test: tree.Test) -> None:
        """A check's name: its `as`, or the one name that it tests, or its text."""
        typed = self.term(test.body, self.scope)
        if test.test == "empty":
            expr = _as(typed.expr, Kind.RELATION) if typed.expr.kind is Kind.EITHER else typed.expr
        else:
            expr = self.want(typed, Kind.RELATION, f"`{test.test}` tests a relation", test.body).expr
        text = f"{'~' if test.negated else ''}{test.test} {show(expr)}"
        name = test.name or (expr.name if isinstance(expr, Name) and expr.name not in self.checks else text)
        if name in self.checks:
            hint = f"the other is at {self.checks[name].span}" + ("" if test.name else "; name this one with `as`")
            raise InputError(f"two checks are called `{name}`", test.span, hint)
        self.checks[name] = Check(name, test.test, expr, test.negated, test.flag, test.doc, test.span)

    def show(self, shown: tree.Show) -> None:
        expr = self.want(self.term(shown.body, self.scope), Kind.RELATION, "`show` draws a relation", shown.body).expr
        if shown.renamed:
            self.definitions.append(Definition(shown.name, Kind.RELATION, expr, None, "", shown.body.span))
        self.shown[shown.name] = None

    # ---- expressions ---------------------------------------------------------------------------------------------

    def term(self, term: tree.Term, scope: Scope) -> Typed:
        """The expression that a term means in a scope, with its kind."""
        self.work += 1
        if self.work > MAX_WORK or self.depth > MAX_CALLS:
            raise InputError("the model is too large once its functions are expanded", term.span)
        self.depth += 1
        typed = self.typed(term, scope)
        self.depth -= 1
        if typed.height > MAX_HEIGHT or typed.size > MAX_SIZE:
            raise InputError("expression too large once names and functions are followed", term.span)
        return typed

    def typed(self, term: tree.Term, scope: Scope) -> Typed:
        match term:
            case tree.Nothing():
                return Typed(Empty(Kind.EITHER, term.span))
            case tree.Ref():
                return self.ref(term, scope)
            case tree.Affix():
                return self.affix(term, self.term(term.operand, scope))
            case tree.Infix():
                return self.infix(term, self.term(term.left, scope), self.term(term.right, scope))
            case tree.Application():
                return self.call(term, scope)
            case tree.Local():
                return self.local(term, scope)

    def lookup(self, ref: tree.Ref, scope: Scope) -> Entry:
        entry = scope.get(ref.name)
        if entry is None:
            near = nearest(ref.name, (*scope, *_BUILTIN))
            known = scope.get(near) if near else None
            hint = "`memmodel names` lists the base names"
            if near:
                hint = f"did you mean `{near}`{_where(known, ref.span)}?"
            raise InputError(f"unknown name `{ref.name}`", ref.span, hint)
        return entry

    def ref(self, ref: tree.Ref, scope: Scope) -> Typed:
        if ref.name in _BUILTIN and ref.name not in scope:
            raise InputError(f"`{ref.name}` is a function", ref.span, f"{ref.name}(r)")
        entry = self.lookup(ref, scope)
        if isinstance(entry, Function):
            call = f"{ref.name}({', '.join(entry.binding.parameters or ())})"
            raise InputError(f"`{ref.name}` is a function", ref.span, f"call it: {call}")
        if isinstance(entry, Macro):
            return entry.typed
        if ref.name == "emptyset" and entry.ref is None:
            return Typed(Empty(Kind.SET, ref.span))
        return Typed(Name(ref.name, entry.kind, entry.ref, ref.span), entry.height + 1)

    def affix(self, term: tree.Affix, inner: Typed) -> Typed:
        if term.op == "~":
            kind = inner.expr.kind
        elif term.op == "[]":
            inner = self.want(inner, Kind.SET, "`[ ]` is the identity on a set", term.operand)
            kind = Kind.RELATION
        else:
            inner = self.want(inner, Kind.RELATION, f"`{term.op}` applies to a relation", term.operand)
            kind = Kind.RELATION
        return Typed(Unary(term.op, inner.expr, kind, term.span), inner.height + 1, inner.size + 1)

    def infix(self, term: tree.Infix, left: Typed, right: Typed) -> Typed:
        if term.op == ";":
            kind, wanted, rule = Kind.RELATION, Kind.RELATION, "`;` joins two relations"
        elif term.op == "*":
            kind, wanted, rule = Kind.RELATION, Kind.SET, "`*` between operands pairs two sets"
        else:
            kind = wanted = left.expr.kind if left.expr.kind is not Kind.EITHER else right.expr.kind
            rule = f"`{term.op}` takes two sets or two relations"
            if right.expr.kind not in (kind, Kind.EITHER):
                message = f"{rule}; left side {self.words(left, term.left)}, right side {self.words(right, term.right)}"
                raise InputError(message, term.mark, _repair(kind))
        left = self.want(left, wanted, f"{rule}; left side", term.left, term.op)
        right = self.want(right, wanted, f"{rule}; right side", term.right, term.op)
        size = left.size + right.size + 1
        return Typed(Binary(term.op, left.expr, right.expr, kind, term.span), max(left.height, right.height) + 1, size)

    def want(self, typed: Typed, kind: Kind, rule: str, term: tree.Term, op: str = "") -> Typed:
        """`typed` as an expression of that kind. Raises InputError if it is of the other."""
        if typed.expr.kind is kind:
            return typed
        if Kind.EITHER in (kind, typed.expr.kind):
            return typed._replace(expr=_as(typed.expr, kind))
        link = " " if op else "; "
        hint = _repair(typed.expr.kind)
        if op == "*" and rule.endswith("left side"):
            hint = "a closure that is followed by an operand is written (r*)"
        raise InputError(f"{rule}{link}{self.words(typed, term)}", term.span, hint)

    def words(self, typed: Typed, term: tree.Term) -> str:
        text = " ".join(term.span.text.split())
        text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        return f"`{text}` is a {typed.expr.kind.value}"

    def call(self, call: tree.Application, scope: Scope) -> Typed:
        head, given = call.head, len(call.arguments)
        builtin = head.name in _BUILTIN and head.name not in scope
        entry = None if builtin else self.lookup(head, scope)
        if not builtin and not isinstance(entry, Function):
            what = entry.typed.expr.kind if isinstance(entry, Macro) else entry.kind if entry else Kind.EITHER
            after = call.arguments[0].span.text.split()[0][:_SHOWN] if call.arguments[0].span.text.split() else "("
            hint = f"put an operator between `{head.name}` and `{after}`: | ; & \\ *"
            raise InputError(f"`{head.name}` is a {what.value}, not a function", head.span, hint)
        parameters = entry.binding.parameters or () if isinstance(entry, Function) else ("r",)
        if given != len(parameters):
            wanted = f"{head.name}({', '.join(parameters)})"
            count = f"{len(parameters)} argument{'s' * (len(parameters) != 1)}"
            raise InputError(f"`{head.name}` takes {count}, not {given}", call.span, wanted)
        arguments = [self.term(argument, scope) for argument in call.arguments]
        if not isinstance(entry, Function):
            inner = self.want(arguments[0], Kind.RELATION, f"`{head.name}` takes a relation", call.arguments[0])
            return Typed(Unary(head.name, inner.expr, Kind.SET, call.span), inner.height + 1, inner.size + 1)
        names = {name: Macro(argument) for name, argument in zip(parameters, arguments, strict=True)}
        try:
            return self.term(entry.binding.body, {**entry.scope, **names})
        except InputError as error:
            inside = f"in the body of `{head.name}`, {error.span}: {error.span.text!r}" if error.span else None
            raise InputError(error.message, call.span, error.hint if _in_call(error) else inside) from error

    def local(self, term: tree.Local, scope: Scope) -> Typed:
        new: dict[str, Entry] = {}
        for binding in term.bindings:
            if binding.parameters is not None:
                new[binding.name] = self.function(binding, scope)
            else:
                new[binding.name] = Macro(self.term(binding.body, scope), binding.span)
        return self.term(term.body, {**scope, **new})


def _as(expr: Expr, kind: Kind) -> Expr:
    """An expression of either kind, all of it, as one of that kind."""
    match expr:
        case Empty():
            return Empty(kind, expr.span)
        case Name():
            return Name(expr.name, kind, expr.ref, expr.span)
        case Unary():
            return Unary(expr.op, _as(expr.operand, kind), kind, expr.span)
        case Binary():
            return Binary(expr.op, _as(expr.left, kind), _as(expr.right, kind), kind, expr.span)


def _require_monotone(expr: Expr, names: range, negated: bool = False) -> None:
    """No name of the group under `~` or on the right of `\\`: otherwise there may be no least fixpoint."""
    match expr:
        case Name(ref=int(ref)) if negated and ref in names:
            message = f"`{expr.name}` is recursive here and may not stand under `~` or on the right of `\\`"
            hint = "a `let rec` is a least fixpoint: a larger operand must give a larger result"
            raise InputError(message, expr.span, hint)
        case Unary():
            _require_monotone(expr.operand, names, negated or expr.op == "~")
        case Binary():
            _require_monotone(expr.left, names, negated)
            _require_monotone(expr.right, names, negated or expr.op == "\\")


def _repair(kind: Kind) -> str:
    if kind is Kind.SET:
        return "[S] is the identity relation on a set S; S * T pairs two sets"
    return "domain(r) and range(r) are the sets at the ends of a relation r"


def _in_call(error: InputError) -> bool:
    return bool(error.hint and error.hint.startswith("in the body of"))


def _where(entry: Entry | None, seen: Span) -> str:
    """` (set, defined at line 22)`, for a hint."""
    if entry is None:
        return " (function)"
    span: Span | None
    if isinstance(entry, Function):
        kind, span = "function", entry.binding.span
    elif isinstance(entry, Macro):
        kind, span = "parameter" if entry.span is None else entry.typed.expr.kind.value, entry.span
    else:
        kind, span = entry.kind.value, entry.span
    if span is None:
        return f" ({kind})" if isinstance(entry, Macro) else f" ({kind}, a base name)"
    place = f"line {span.line}" if span.source is seen.source else f"{span.source.name}:{span.line}"
    return f" ({kind}, defined at {place})"
