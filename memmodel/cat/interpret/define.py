"""Definitions and checks of a model: recursion, and the relations that `with` chooses.

In: bindings, and what `with` chooses. Out: `Definition`s and `Check`s. Settled here: that a recursive definition is
monotone, so that it has a least fixpoint; and what has to hold of a chosen relation.
"""

from __future__ import annotations

from memmodel.base.kinds import Kind
from memmodel.cat.analysis import is_taken_away, names_in
from memmodel.cat.interpret.choice import choose, order_name, substituted
from memmodel.cat.interpret.expand import Expander
from memmodel.cat.interpret.values import Entry, Macro, NamedValue, Scope, Typed, as_kind, binary, is_void, unary
from memmodel.cat.primitives import Static
from memmodel.cat.syntax import Binary, Check, Definition, Empty, Expr, Name, operands_of, rebuilt
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
        self._numbers: dict[str, int] = {}
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
            defined = [typed.expr.kind for typed in bodies]
            if defined == kinds:
                if Kind.EITHER not in defined:
                    return own, bodies
                defined[defined.index(Kind.EITHER)] = Kind.RELATION
            for binding, before, after in zip(bindings, kinds, defined, strict=True):
                if before is not Kind.EITHER and after is not before:
                    message = f"`{binding.name}` is used as a {before.value} but defined as a {after.value}"
                    raise InputError(message, binding.span)
            kinds = defined

    def without_voids(self, expr: Expr, names: range) -> Expr:
        """A recursive body in which nothing is taken away from what is empty in every execution."""
        match expr:
            case Binary(op="\\", left=left) if not _speaks_of(left, names) and is_void(left, self.definitions):
                return Empty(expr.kind, expr.span)
        return rebuilt(expr, lambda operand: self.without_voids(operand, names))

    def local_recursion(self, term: tree.Local, scope: Scope) -> Scope:
        """`let rec … in`: its relations become definitions of the model."""
        return {**scope, **self.fixpoint(tree.Let(term.bindings, True, ""), scope)}

    def define(self, name: str, typed: Typed, group: int | None, doc: str, span: Span) -> NamedValue:
        kind = typed.expr.kind
        self.definitions.append(Definition(name, kind, typed.expr, group, doc, span))
        return NamedValue(kind, len(self.definitions) - 1, typed.height, span)

    # ---- choices -------------------------------------------------------------------------------------------------

    def choosing(self, choice: tree.With) -> None:
        """`with name from set`: the name, and what has to hold of it."""
        self.scope = {**self.scope, choice.name: self.chosen_value(choice.name, choice.body, choice.span)}

    def chosen_value(self, name: str, body: tree.Term, span: Span) -> Entry:
        """What a name stands for that is chosen from a set."""
        chosen = choose(self, body)
        if chosen.value is None:
            self.demand(f"{name}-exists", "there is nothing to choose from", Typed(Empty(Kind.SET)), negated=True)
            return Macro(Typed(Empty(Kind.RELATION)), span)
        if chosen.located is not None:
            return self.located(name, *chosen.located, span)
        orders: dict[str, Name] = {}
        for number, (over, extends) in enumerate(chosen.orders):
            if chosen.value.expr == Name(order_name(number), Kind.RELATION):
                return NamedValue(Kind.RELATION, self.ordered(name, over, extends, span).ref, over.height + 1, span)
            orders[order_name(number)] = self.ordered(f"{name}-order-{number + 1}", over, extends, span)
        expr = substituted(chosen.value.expr, lambda order: orders.get(order.name, order))
        return self.define(name, chosen.value._replace(expr=expr), None, "", span)

    def ordered(self, name: str, over: Typed, extends: Typed, span: Span) -> Name:
        """Some total order on a set that contains a relation."""
        definition = Definition(name, Kind.RELATION, over.expr, None, "", span, extends.expr)
        self.definitions.append(definition)
        order = Name(name, Kind.RELATION, len(self.definitions) - 1, span)
        if not self.void(extends):
            missing = binary("\\", binary("&", binary("*", over, over), extends), Typed(order, over.height + 1))
            self.demand(f"{name}-extends", "it contains what it has to contain", missing)
        return order

    def located(self, name: str, over: Typed, extends: Typed, span: Span) -> NamedValue:
        """A total order on the events of a set that access one location, for each location."""
        loc = Typed(Name("loc", Kind.RELATION))
        pairs = binary("*", over, over)
        if not self.within_writes(over.expr):
            order = self.ordered(f"{name}-order", over, binary("&", extends, loc), span)
            return self.define(name, binary("&", Typed(order, over.height + 1), loc), None, "", span)
        co = Typed(Name("co", Kind.RELATION))
        body = co if self.followed(over.expr) == Name("W", Kind.SET) else binary("&", co, pairs)
        value = self.define(name, body, None, "", span)
        chosen = Typed(Name(name, Kind.RELATION, value.ref), value.height + 1)
        self.demand(f"{name}-total", "the events of one location have one order", unordered(over, chosen))
        if body is co:
            self.total = True
        known = dict(self.foreign)
        initial = self.term(tree.Ref("co0", span), self.base)
        self.foreign = known  # the model has not spoken of it
        if self.followed(extends.expr) != initial.expr and not self.void(extends):
            missing = binary("\\", binary("&", binary("&", pairs, loc), extends), chosen)
            self.demand(f"{name}-extends", "it contains what it has to contain", missing)
        return value

    def within_writes(self, expr: Expr) -> bool:
        """True if all events of a set are writes, as far as its definition tells."""
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
        numbered, number = name, self._numbers.get(name, 2)
        while numbered in self.checks:
            numbered, number = f"{name}.{number}", number + 1
        if numbered != name:
            self._numbers[name] = number
        return numbered

    def demand(self, name: str, why: str, body: Typed, *, negated: bool = False) -> None:
        """A check of the resolver's own: `body` is empty."""
        name = self.unused(name)
        self.checks[name] = Check(name, "empty", body.expr, negated, False, f"{name}: {why}.")


def unordered(over: Typed, order: Typed) -> Typed:
    """The pairs on one location that an order leaves unordered."""
    pairs = binary("&", binary("*", over, over), Typed(Name("loc", Kind.RELATION)))
    either = binary("|", binary("|", order, unary("^-1", order)), Typed(Name("id", Kind.RELATION)))
    return binary("\\", pairs, either)


def _speaks_of(expr: Expr, names: range) -> bool:
    return any(name.ref in names for name in names_in(expr) if name.ref is not None)


def _require_monotone(expr: Expr, names: range, *, taken_away: bool = False) -> None:
    """No name of the group under `~` or on the right of `\\`: otherwise there may be no least fixpoint."""
    if isinstance(expr, Name) and taken_away and expr.ref is not None and expr.ref in names:
        message = f"`{expr.name}` is recursive here and may not stand under `~` or on the right of `\\`"
        hint = "a `let rec` is a least fixpoint: a larger operand must give a larger result"
        raise InputError(message, expr.span, hint)
    for number, operand in enumerate(operands_of(expr)):
        _require_monotone(operand, names, taken_away=taken_away or is_taken_away(expr, number))
