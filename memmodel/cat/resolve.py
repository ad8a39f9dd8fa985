"""Take in the statements of a model, file after file, and make one Model of them.

In: statements of `cat.parser`. Out: Model. Settled here: what each name means after a statement (a later `let` of the
same name does not reach back), that recursion is monotone, what each check is called. An engine therefore meets no
unknown name, no kind error and no function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import PurePath
from typing import NamedTuple

from memmodel.base.kinds import Kind
from memmodel.cat.analysis import names_in
from memmodel.cat.interpret.branching import asked_for, clause
from memmodel.cat.interpret.define import Definer, unordered
from memmodel.cat.interpret.values import (
    Entry,
    Macro,
    Routine,
    Scope,
    SetValue,
    TagValue,
    TupleValue,
    Typed,
    Value,
    as_kind,
    describe,
    elements,
    entry,
)
from memmodel.cat.interpret.world import World
from memmodel.cat.monotonicity import asks_for
from memmodel.cat.primitives import Static
from memmodel.cat.syntax import Check, Definition, Expr, Model, Name, Notice
from memmodel.cat.text import tree
from memmodel.cat.text.printer import show
from memmodel.errors import InputError, suggestion
from memmodel.source import Source

MAX_NAMES = 5_000
"""Names that one model may define."""

MAX_CHECKS = 5_000
"""Checks that one model may have."""

DEPENDENCIES = ("addr", "data", "ctrl")


class Included(NamedTuple):
    """What an include added: the definitions from number `first` on, before `last`. `checks`: how many there were."""

    first: int
    last: int
    checks: int


class Resolver(Definer):
    """Gathers one model. `include` reads the file that an `include` names and feeds it back through `run`.

    `own_dependencies`: the model has said `catdep`. `calling`: the names of the procedures that are being called.
    """

    def __init__(self, include: Callable[[tree.Include], None]) -> None:
        super().__init__()
        self.include = include
        self.shown: dict[str, None] = {}
        self.overrides: dict[str, tuple[tree.Binding, str]] = {}
        self.overridden: list[str] = []
        self.own_dependencies = False
        self.calling: list[str] = []

    def settle_in(self, world: World) -> None:
        """Names mean from here on what they mean in a world."""
        self.world = world
        self.foreign.clear()
        for name, binding in world.own.items():
            if name in self.base:
                value = self.value(binding.body, self.base)
                self.scope = {**self.scope, name: entry(value, binding.span)}

    def model(self, name: str, title: str, sources: tuple[Source, ...]) -> Model:
        """What has been gathered. Coherence is total where a model does not ask for it or speaks of final writes."""
        model = Model(name, title, tuple(self.definitions), tuple(self.checks.values()), tuple(self.shown), sources)
        if not self.total and (asks_for(model, "co") is False or "FW" in self.foreign):
            co = Typed(Name("co", Kind.RELATION))
            writes = Typed(Name("W", Kind.SET))
            self.demand("co-total", "the writes to one location have one order", unordered(writes, co))
        return replace(model, checks=tuple(self.checks.values()), notices=(*self.empties(), *self.notices))

    def empties(self) -> tuple[Notice, ...]:
        """One notice of all names that nothing of a PTX test has."""
        if not self.absent:
            return ()
        names = ", ".join(f"`{name}`" for name in self.absent)
        if len(self.absent) == 1:
            message = f"a PTX test has no {names}: it is empty"
        else:
            message = f"a PTX test has none of {len(self.absent)} names, they are empty: {names}"
        return (Notice(message, next(iter(self.absent.values())), "`memmodel names` lists what a PTX test has"),)

    # ---- statements ----------------------------------------------------------------------------------------------

    def run(self, text: tree.Text) -> None:
        """Take in the statements of one file. Raises InputError if it overrides what no included file defines."""
        mine, outer, before = self.own_overrides(text), self.overrides, len(self.overridden)
        included: list[Included] = []
        for statement in text.statements:
            if isinstance(statement, tree.Include):
                self.overrides = {**mine, **outer}  # the outermost file has the say
                first = len(self.definitions)
                self.include(statement)
                self.overrides = outer
                included.append(Included(first, len(self.definitions), len(self.checks)))
            else:
                if isinstance(statement, tree.Let) and not statement.override:
                    self.shadowing(statement, included)
                self.statement(statement)
        for name, (binding, _) in mine.items():
            if name not in self.overridden[before:]:
                meant = suggestion(name, [known for known in self.scope if known not in self.base], "`{}`")
                hint = meant or "it takes the place of a definition in an included file"
                raise InputError(f"`{name}` is overridden, and no included file defines it", binding.span, hint)

    def statement(self, statement: tree.Statement) -> None:
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
                self.include(statement)
            case tree.Show():
                self.show(statement)
            case tree.Unshow():
                self.lookup(tree.Ref(statement.name, statement.span), self.scope)
                self.shown.pop(statement.name, None)
            case tree.With():
                self.choosing(statement)
            case tree.OwnDependencies():
                self.own_dependencies = True
            case tree.Procedure():
                self.scope = {**self.scope, statement.name: Routine(statement, self.scope)}
            case tree.Enum():
                self.tags.update(dict.fromkeys(statement.tags, statement.name))
                tags = tuple(TagValue(tag, statement.name) for tag in dict.fromkeys(statement.tags))
                self.scope = {**self.scope, statement.name: SetValue(tags)}
            case tree.Branch():
                chosen = statement.first if asked_for(statement.condition) else statement.second
                self.block(chosen)
            case tree.MatchStatement():
                self.block(clause(self, statement.subject, statement.clauses, statement.span, self.scope))
            case tree.CallStatement():
                self.call(statement)
            case tree.Forall():
                self.forall(statement)

    def block(self, statements: tuple[tree.Statement, ...]) -> None:
        for statement in statements:
            self.work += 1
            self.statement(statement)

    def in_own_scope(self, statements: tuple[tree.Statement, ...], scope: Scope) -> None:
        """Statements whose bindings are forgotten after them."""
        outside, self.scope = self.scope, scope
        self.block(statements)
        self.scope = outside

    def call(self, call: tree.CallStatement) -> None:
        routine = self.lookup(call.procedure, self.scope)
        if not isinstance(routine, Routine):
            raise InputError(f"`{call.procedure.name}` is {describe(routine)}, not a procedure", call.procedure.span)
        names = routine.procedure.parameters
        arguments = tuple(self.value(argument, self.scope) for argument in call.arguments)
        if len(arguments) == 1 and isinstance(arguments[0], TupleValue) and len(names) != 1:
            arguments = arguments[0].items
        if len(arguments) != len(names):
            wanted = f"call {call.procedure.name}({', '.join(names)})"
            message = f"`{call.procedure.name}` takes {len(names)} arguments, not {len(arguments)}"
            raise InputError(message, call.span, wanted)
        if len(self.calling) > 20:
            raise InputError("the model is too large once its procedures are expanded", call.span)
        bound = {name: entry(argument) for name, argument in zip(names, arguments, strict=True)}
        self.calling.append(call.name or "")
        self.in_own_scope(routine.procedure.statements, {**routine.scope, routine.procedure.name: routine, **bound})
        self.calling.pop()

    def forall(self, statement: tree.Forall) -> None:
        members = elements(self.value(statement.over, self.scope))
        if members is None:
            message = "`forall` takes a set that is listed; its elements are not known when a model loads"
            raise Static(message, statement.over.span)
        self.calling.append("")
        for member in members:
            self.in_own_scope(statement.statements, {**self.scope, statement.name: entry(member)})
        self.calling.pop()

    def show(self, shown: tree.Show) -> None:
        """What pictures draw. What cannot be drawn, a set or a name that nothing has, is left out."""
        ref = shown.body
        if isinstance(ref, tree.Ref) and ref.name not in self.scope:
            self.try_depth += 1
            known = self.from_elsewhere(ref)
            self.try_depth -= 1
            if known is None:
                if self.world.binding(ref.name) is None:
                    self.notices.append(Notice(f"unknown name `{ref.name}`: nothing is drawn", ref.span))
                return
        typed = self.term(shown.body, self.scope)
        if typed.expr.kind is Kind.SET:
            self.notices.append(Notice(f"`{shown.name}` is a set; pictures draw relations", shown.body.span))
            return
        expr = self.want(typed, Kind.RELATION, "`show` draws a relation", shown.body).expr
        if shown.renamed or not (isinstance(expr, Name) and expr.name == shown.name):
            self.definitions.append(Definition(shown.name, Kind.RELATION, expr, None, "", shown.body.span))
        self.shown[shown.name] = None

    def shadowing(self, let: tree.Let, included: Sequence[Included]) -> None:
        """Notice the bindings of names that an included file defines and uses: it keeps its own meaning of them."""
        for binding in let.bindings:
            definition = self.used_there(binding.name, included)
            if definition is not None and definition.span is not None:
                where = f"{PurePath(definition.span.source.name).name}:{definition.span.line}"
                message = f"`{binding.name}` is defined and used in {where}, which this definition does not change"
                hint = f"write `override let {binding.name}` to change it there"
                self.notices.append(Notice(message, binding.span, hint))

    def used_there(self, name: str, included: Sequence[Included]) -> Definition | None:
        """The last definition of a name to which a definition of the same include, or a check until then, refers."""
        for part in reversed(included):
            named = {at for at in range(part.first, part.last) if self.definitions[at].name == name}
            if named:
                rules = (rule.body for rule in self.definitions[part.first : part.last])
                checks = (check.body for check in islice(self.checks.values(), part.checks))
                used = named.intersection(it.ref for body in chain(rules, checks) for it in names_in(body))
                if used:
                    return self.definitions[max(used)]
        return None

    # ---- overrides -----------------------------------------------------------------------------------------------

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
            if binding.name not in self.overrides:
                bindings.append(binding)
                continue
            override, override_doc = self.overrides[binding.name]
            if _arity(override) != _arity(binding):
                message = f"`{binding.name}` is overridden with other parameters"
                raise InputError(message, override.span, f"it is {binding.span.text}")
            self.overridden.append(binding.name)
            bindings.append(override)
            doc = override_doc or doc
        return tree.Let(tuple(bindings), let.recursive, doc)

    # ---- definitions ---------------------------------------------------------------------------------------------

    def plain(self, let: tree.Let) -> None:
        """`let … and …`: every right side sees the names as they were before."""
        self.check_distinct_names(let)
        let = self.chosen(let)
        new: dict[str, Entry] = {}
        for binding in let.bindings:
            if binding.parameters is not None:
                new[binding.name] = self.function(binding, self.scope)
                continue
            value = self.value(binding.body, self.scope)
            if self.computed(binding, value):
                continue
            for name, meaning in self.bound(binding, value).items():
                if isinstance(meaning, Macro) and meaning.typed.expr.kind is not Kind.EITHER:
                    meaning = self.define(name, meaning.typed, None, let.doc, binding.span)
                new[name] = meaning
        self.scope = {**self.scope, **new}

    def computed(self, binding: tree.Binding, value: Value) -> bool:
        """True for a dependency that the model works out of register events, which the engine does not have."""
        if not self.own_dependencies or binding.name not in DEPENDENCIES or not isinstance(value, Typed):
            return False
        if self.rests_on(value.expr, DEPENDENCIES):
            return False
        message = f"`{binding.name}` is computed from register events; the engine's `{binding.name}` is taken instead"
        self.notices.append(Notice(message, binding.span))
        return True

    def rests_on(self, expr: Expr, names: tuple[str, ...]) -> bool:
        """True if an expression depends on one of these base names."""
        todo, seen = [expr], set[int]()
        while todo:
            for name in names_in(todo.pop()):
                if name.ref is None and name.name in names:
                    return True
                if name.ref is not None and name.ref not in seen:
                    seen.add(name.ref)
                    todo.append(self.definitions[name.ref].body)
        return False

    def recursive(self, let: tree.Let) -> None:
        """`let rec … and …`, with the check that follows it."""
        self.check_distinct_names(let)
        self.scope = {**self.scope, **self.fixpoint(self.chosen(let), self.scope)}
        if let.when is not None:
            self.check(let.when)

    def check_distinct_names(self, let: tree.Let) -> None:
        """No name twice in one `let`, and not too many in all."""
        if len(self.scope) > MAX_NAMES:
            raise InputError(f"more than {MAX_NAMES:,} names", let.bindings[0].span)
        names = [binding.name for binding in let.bindings if binding.name]
        for number, binding in enumerate(let.bindings):
            if binding.name in names[:number]:
                raise InputError(f"`{binding.name}` is defined twice in one `let`", binding.span)

    # ---- checks --------------------------------------------------------------------------------------------------

    def check(self, test: tree.Test) -> None:
        """A check's name: its `as`, or that of the call around it, or the one name that it tests, or its text."""
        if len(self.checks) >= MAX_CHECKS:
            raise InputError(f"more than {MAX_CHECKS:,} checks", test.span)
        typed = self.term(test.body, self.scope)
        if test.test == "empty":
            expr = as_kind(typed.expr, Kind.RELATION) if typed.expr.kind is Kind.EITHER else typed.expr
        else:
            expr = self.want(typed, Kind.RELATION, f"`{test.test}` tests a relation", test.body).expr
        text = f"{'~' if test.negated else ''}{test.test} {show(expr)}"
        name = test.name or (self.calling[-1] if self.calling else "")
        name = name or (expr.name if isinstance(expr, Name) and expr.name not in self.checks else text)
        if name in self.checks and not self.calling:
            hint = f"the other is at {self.checks[name].span}" + ("" if test.name else "; name this one with `as`")
            self.notices.append(Notice(f"two checks are called `{name}`", test.span, hint))
        name = self.unused(name)
        self.checks[name] = Check(name, test.test, expr, test.negated, test.flag, test.doc, test.span)


def _arity(binding: tree.Binding) -> int | None:
    """How many parameters a binding has; None if it is no function."""
    return None if binding.parameters is None else len(binding.parameters)
