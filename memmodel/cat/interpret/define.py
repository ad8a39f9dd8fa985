"""Definitions and checks of a model: recursion, and the relations that `with` chooses.

In: bindings, and what `with` chooses. Out: `Definition`s and `Check`s. Settled here: that a recursive definition is
monotone, so that it has a least fixpoint; and what has to hold of a chosen relation.
"""

from __future__ import annotations

from dataclasses import replace

from memmodel.base.kinds import Kind
from memmodel.cat.interpret.choice import choose, order_name, substituted
from memmodel.cat.interpret.expand import Expander
from memmodel.cat.interpret.values import Entry, Macro, NamedValue, Scope, Typed, as_kind, is_void, joined, turned
from memmodel.cat.primitives import Static
from memmodel.cat.syntax import Binary, Check, Definition, Empty, Expr, Name, Unary
from memmodel.cat.text import tree
from memmodel.errors import InputError
from memmodel.source import Span


class Definer(Expander):
    """Makes definitions and checks. `recursing`: the bodies of a recursive definition are being looked at.

    `total`: a check says that coherence is total.
    """

    def __init__(self) -> None:
        super().__init__()
        self.checks: dict[str, Check] = {}
        self.recursing = False
        self.total = False

    # ---- definitions ---------------------------------------------------------------------------------------------

    def fixpoint(self, let: tree.Let, scope: Scope) -> dict[str, Entry]:
        """First the kinds, by repeated guessing; then the bodies; then that they are monotone."""
        bindings = tuple(binding for binding in let.bindings if binding.parameters is None)
        if not bindings:
            return self.functions(let.bindings, {**scope})
        for binding in bindings:
            if binding.pattern is not None:
                raise InputError("`let rec` defines names, not patterns", binding.span, "let rec name = … and name = …")
        if self.recursing:
            raise Static("`let rec` inside a recursive definition", let.bindings[0].span, "define it before, by itself")
        first = len(self.definitions)
        self.recursing = True
        try:
            own, bodies = self.guessed(let.bindings, bindings, scope, first)
        finally:
            self.recursing = False
        self.groups += 1
        height = max(typed.height for typed in bodies)
        names = range(first, first + len(bodies))
        for binding, typed in zip(bindings, bodies, strict=True):
            grown = typed._replace(expr=self.without_voids(typed.expr, names), height=height)
            _require_monotone(grown.expr, names)
            own[binding.name] = self.define(binding.name, grown, self.groups, let.doc, binding.span)
        return own

    def guessed(
        self, every: tuple[tree.Binding, ...], bindings: tuple[tree.Binding, ...], scope: Scope, first: int
    ) -> tuple[dict[str, Entry], list[Typed]]:
        """The kinds of recursive names, found by guessing until the bodies agree; and the bodies."""
        kinds = [Kind.EITHER] * len(bindings)
        while True:
            own: dict[str, Entry] = {
                binding.name: NamedValue(kind, first + number, 1, binding.span)
                for number, (binding, kind) in enumerate(zip(bindings, kinds, strict=True))
            }
            inside = {**scope, **own}
            own.update(self.functions(every, inside))
            bodies = [self.term(binding.body, inside) for binding in bindings]
            bodies = [
                typed._replace(expr=as_kind(typed.expr, kind)) if typed.expr.kind is Kind.EITHER else typed
                for typed, kind in zip(bodies, kinds, strict=True)
            ]
            found = [typed.expr.kind for typed in bodies]
            if found == kinds:
                if Kind.EITHER not in found:
                    return own, bodies
                found[found.index(Kind.EITHER)] = Kind.RELATION
            for binding, before, after in zip(bindings, kinds, found, strict=True):
                if before is not Kind.EITHER and after is not before:
                    message = f"`{binding.name}` is used as a {before.value} but defined as a {after.value}"
                    raise InputError(message, binding.span)
            kinds = found

    def without_voids(self, expr: Expr, names: range) -> Expr:
        """A recursive body in which nothing is taken away from what is empty in every execution."""
        match expr:
            case Binary(op="\\", left=left) if not _speaks_of(left, names) and is_void(left, self.definitions):
                return Empty(expr.kind, expr.span)
            case Binary():
                left, right = (self.without_voids(one, names) for one in (expr.left, expr.right))
                return replace(expr, left=left, right=right)
            case Unary():
                return replace(expr, operand=self.without_voids(expr.operand, names))
        return expr

    def local_recursion(self, term: tree.Local, scope: Scope) -> Scope:
        """`let rec … in`: its relations become definitions of the model."""
        return {**scope, **self.fixpoint(tree.Let(term.bindings, True, ""), scope)}

    def define(self, name: str, typed: Typed, group: int | None, doc: str, span: Span) -> NamedValue:
        kind = typed.expr.kind
        self.definitions.append(Definition(name, kind, typed.expr, group, doc, span))
        return NamedValue(kind, len(self.definitions) - 1, typed.height, span)

    # ---- choices -------------------------------------------------------------------------------------------------

    def choosing(self, given: tree.With) -> None:
        """`with name from set`: the name, and what has to hold of it."""
        chosen = choose(self, given)
        if chosen.value is None:
            self.demand(f"{given.name}-exists", "there is nothing to choose from", Typed(Empty(Kind.SET)), negated=True)
            self.scope = {**self.scope, given.name: Macro(Typed(Empty(Kind.RELATION)), given.span)}
            return
        if chosen.located is not None:
            value = self.located(given, *chosen.located)
        else:
            names: dict[str, Name] = {}
            for number, (over, extends) in enumerate(chosen.orders):
                simple = chosen.value.expr == Name(order_name(number), Kind.RELATION)
                name = given.name if simple else f"{given.name}-order-{number + 1}"
                names[order_name(number)] = self.ordered(name, over, extends, given.span)
                if simple:
                    value = NamedValue(Kind.RELATION, names[order_name(number)].ref, over.height + 1, given.span)
                    self.scope = {**self.scope, given.name: value}
                    return
            expr = substituted(chosen.value.expr, lambda name: names.get(name.name, name))
            value = self.define(given.name, chosen.value._replace(expr=expr), None, "", given.span)
        self.scope = {**self.scope, given.name: value}

    def ordered(self, name: str, over: Typed, extends: Typed, span: Span) -> Name:
        """Some total order on a set that contains a relation."""
        definition = Definition(name, Kind.RELATION, over.expr, None, "", span, extends.expr)
        self.definitions.append(definition)
        order = Name(name, Kind.RELATION, len(self.definitions) - 1, span)
        if not self.void(extends):
            missing = joined("\\", joined("&", joined("*", over, over), extends), Typed(order, over.height + 1))
            self.demand(f"{name}-extends", "it contains what it has to contain", missing)
        return order

    def located(self, given: tree.With, over: Typed, extends: Typed) -> NamedValue:
        """A total order on the events of a set that access one location, for each location."""
        name, loc = given.name, Typed(Name("loc", Kind.RELATION))
        pairs = joined("*", over, over)
        if not self.within_writes(over.expr):
            order = self.ordered(f"{name}-order", over, joined("&", extends, loc), given.span)
            return self.define(name, joined("&", Typed(order, over.height + 1), loc), None, "", given.span)
        co = Typed(Name("co", Kind.RELATION))
        body = co if self.followed(over.expr) == Name("W", Kind.SET) else joined("&", co, pairs)
        value = self.define(name, body, None, "", given.span)
        mine = Typed(Name(name, Kind.RELATION, value.ref), value.height + 1)
        self.demand(f"{name}-total", "the events of one location have one order", unordered(over, mine))
        if body is co:
            self.total = True
        known = dict(self.foreign)
        initial = self.term(tree.Ref("co0", given.span), self.base)
        self.foreign = known  # the model has not spoken of it
        if self.followed(extends.expr) != initial.expr and not self.void(extends):
            missing = joined("\\", joined("&", joined("&", pairs, loc), extends), mine)
            self.demand(f"{name}-extends", "it contains what it has to contain", missing)
        return value

    def within_writes(self, expr: Expr) -> bool:
        """Are all events of a set writes, as far as its definition tells?"""
        match self.followed(expr):
            case Name(name):
                return name in ("W", "IW")
            case Empty():
                return True
            case Binary("&", left, right):
                return self.within_writes(left) or self.within_writes(right)
            case Binary("\\", left):
                return self.within_writes(left)
            case Binary("|", left, right):
                return self.within_writes(left) and self.within_writes(right)
        return self.void(Typed(expr))

    def followed(self, expr: Expr) -> Expr:
        """An expression, or the definition that it is the name of."""
        while isinstance(expr, Name) and expr.ref is not None and self.definitions[expr.ref].group is None:
            if self.definitions[expr.ref].order is not None:
                break
            expr = self.definitions[expr.ref].body
        return expr

    # ---- checks --------------------------------------------------------------------------------------------------

    def unused(self, name: str) -> str:
        """A name of a check, with a number if it is taken."""
        number = 2
        while name in self.checks:
            name, number = f"{name.removesuffix(f'.{number - 1}')}.{number}", number + 1
        return name

    def demand(self, name: str, why: str, body: Typed, *, negated: bool = False) -> None:
        """A check of the resolver's own: `body` is empty."""
        name = self.unused(name)
        self.checks[name] = Check(name, "empty", body.expr, negated, False, f"{name}: {why}.")


def unordered(over: Typed, order: Typed) -> Typed:
    """The pairs on one location that an order leaves unordered."""
    pairs = joined("&", joined("*", over, over), Typed(Name("loc", Kind.RELATION)))
    either = joined("|", joined("|", order, turned("^-1", order)), Typed(Name("id", Kind.RELATION)))
    return joined("\\", pairs, either)


def _speaks_of(expr: Expr, names: range) -> bool:
    match expr:
        case Name(ref=int(ref)):
            return ref in names
        case Unary():
            return _speaks_of(expr.operand, names)
        case Binary():
            return _speaks_of(expr.left, names) or _speaks_of(expr.right, names)
    return False


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
