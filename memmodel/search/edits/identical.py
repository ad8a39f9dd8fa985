"""Whether two models say the same by the laws of sets and relations alone, whatever the program.

In: two models, the flags that count. Out: True if each check has one form in both. Settled here: the normal form.
A relation is a set of chains, a chain a sequence of steps; `|`, `;`, `&`, `\\`, inverses and closures are rewritten by
laws that hold of all relations, so that equal forms are a proof. Different forms prove nothing. Definitions of one name
with one form stand for themselves; where a name has two forms, its uses have the forms in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import product

from memmodel.base.kinds import Kind
from memmodel.base.relations import SYMMETRIC
from memmodel.cat.analysis import group_at
from memmodel.cat.syntax import Binary, Definition, Empty, Expr, Model, Name, Unary

Step = tuple[object, ...]
Chain = tuple[Step, ...]
Form = frozenset[Chain]
"""A union of chains of steps. A set is a union of chains of one step; the empty chain is `id`."""

_MOST = 64
"""A union of more chains is one step, and is not distributed over other operators."""

_LARGEST = 1000
"""A form of more words is not followed: nothing is proved of what contains it."""

_IDENTITY: Form = frozenset({()})
_NOTHING: Form = frozenset()


def identical(models: tuple[Model, Model], flags: Collection[str]) -> bool:
    """True if all axioms, and these flags, are the same in both models in every execution of every program."""
    mine, theirs = _forms(models)
    for number, (model, forms) in enumerate(((models[0], mine), (models[1], theirs))):
        other, its = (models[1], theirs) if number == 0 else (models[0], mine)
        counterparts = {check.name: check for check in other.checks}
        for check in model.checks:
            if check.flag and check.name not in flags:
                continue
            again = counterparts.get(check.name)
            if again is None or (check.kind, check.negated, check.flag) != (again.kind, again.negated, again.flag):
                return False
            if check.body.kind is not again.body.kind or forms(check.body) != its(again.body):
                return False
    return True


def _forms(models: tuple[Model, Model]) -> tuple[Callable[[Expr], Form], Callable[[Expr], Form]]:
    """The form of an expression of each model."""
    first, second = NormalForms(models[0].definitions), NormalForms(models[1].definitions)
    places = {definition.name: number for number, definition in enumerate(models[1].definitions)}
    for number, definition in enumerate(models[0].definitions):
        counterpart = places.get(definition.name)
        if counterpart is None or models[1].definitions[counterpart].kind is not definition.kind:
            continue
        # What comes before has been compared: the forms of this definition are those in which equal names are names.
        if first.defined(number) == second.defined(counterpart) not in (_NOTHING, _IDENTITY):
            name: Form = frozenset({(("name", definition.name, definition.kind),)})
            first.stands_for[number] = second.stands_for[counterpart] = name
    return first.form, second.form


class NormalForms:
    """The forms of the definitions of a model. `stands_for`: definitions that have the same form in both models."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._definitions = definitions
        self._known: dict[int, Form] = {}
        self.stands_for: dict[int, Form] = {}

    def form(self, expr: Expr) -> Form:
        """The normal form of an expression."""
        match expr:
            case Empty():
                return _NOTHING
            case Name(ref=None):
                return _IDENTITY if expr.name == "id" else _step("base", expr.name, expr.kind)
            case Name():
                assert expr.ref is not None
                return self.stands_for.get(expr.ref) or self.defined(expr.ref)
            case Unary():
                return self._bounded(expr, _unary(expr.op, self.form(expr.operand), expr.operand.kind))
            case Binary():
                return self._bounded(expr, _binary(expr, self.form(expr.left), self.form(expr.right)))

    def _bounded(self, expr: Expr, form: Form) -> Form:
        """A form, or in place of a large one a step that equals nothing else."""
        return form if _weight(form, _LARGEST) <= _LARGEST else _step("large", id(self), id(expr))

    def defined(self, number: int) -> Form:
        """The normal form of a definition."""
        if number not in self._known:
            definition = self._definitions[number]
            if definition.group is not None:
                self._define_group(number)
            elif definition.order is not None:
                form = _step("order", definition.name, self.form(definition.body), self.form(definition.order))
                self._known[number] = form
            else:
                self._known[number] = self.form(definition.body)
        return self._known[number]

    def _define_group(self, number: int) -> None:
        """A `let rec`: a closure if it has one member, which stands at one end of chains; else a step of its own."""
        group = self._definitions[number].group
        first = next(n for n, definition in enumerate(self._definitions) if definition.group == group)
        members = list(group_at(self._definitions, first))
        for place, member in enumerate(members):
            self._known[member] = _step("self", place)
        bodies = tuple(self.form(self._definitions[member].body) for member in members)
        for place, member in enumerate(members):
            self._known[member] = _step("recursion", bodies, place)
        if len(members) == 1 and self._definitions[first].kind is not Kind.SET:
            closed = _closed(bodies[0])
            if closed is not None:
                self._known[first] = closed


def _weight(part: object, most: int) -> int:
    """How many words a form has; more than `most` are not counted."""
    if not isinstance(part, tuple | frozenset):
        return 1
    total = 0
    for inner in part:
        total += _weight(inner, most - total)
        if total > most:
            break
    return total


def _step(*parts: object) -> Form:
    return frozenset({(parts,)})


# ---- operators ---------------------------------------------------------------------------------------------


def _unary(op: str, form: Form, kind: Kind) -> Form:
    if op == "^-1":
        return frozenset(tuple(_inverse(step) for step in reversed(chain)) for chain in form)
    if op == "?":
        return form | _IDENTITY
    if op == "+":
        return _plus(form)
    if op == "*":
        return _plus(form) | _IDENTITY
    if op == "[]":
        return frozenset((("[]", chain),) for chain in form)
    return _step(op, form, kind)


def _inverse(step: Step) -> Step:
    match step:
        case ("base", str(name), _) if name in SYMMETRIC:
            return step
        case ("[]", _):
            return step
        case ("+", frozenset() as form):
            return ("+", _inverted(form))
        case ("&", frozenset() as parts):
            return ("&", frozenset(_inverted(part) for part in parts))
        case ("\\", frozenset() as left, frozenset() as right):
            return ("\\", _inverted(left), _inverted(right))
        case ("product", left, right):
            return ("product", right, left)
        case ("^-1", inner):
            assert isinstance(inner, tuple)
            return inner
    return ("^-1", step)


def _inverted(form: Form) -> Form:
    return frozenset(tuple(_inverse(step) for step in reversed(chain)) for chain in form)


def _binary(expr: Binary, left: Form, right: Form) -> Form:
    if expr.op == "|":
        return left | right
    if not left or (not right and expr.op != "\\"):
        return _NOTHING
    if expr.op == "*":
        return _step("product", left, right)
    if expr.op == "\\":
        return _minus(left, right)
    if len(left) * len(right) > _MOST:
        left, right = _whole(left), _whole(right)
    return _sequence(left, right) if expr.op == ";" else _both(left, right)


def _whole(form: Form) -> Form:
    return form if len(form) == 1 else _step("|", form)


def _sequence(left: Form, right: Form) -> Form:
    return frozenset(_chain((*first, *second)) for first, second in product(left, right))


def _chain(steps: Sequence[Step]) -> Chain:
    """A chain whose closures stand as far to the left as they can: p ; (q ; p)+ is (p ; q)+ ; p."""
    chain = list(steps)
    at = 1
    while at < len(chain):
        before, step = chain[at - 1], chain[at]
        form = step[1] if step[0] == "+" else None
        if isinstance(form, frozenset) and all(inner and inner[-1] == before for inner in form):
            turned = frozenset(_chain((before, *inner[:-1])) for inner in form)
            chain[at - 1 : at + 1] = [("+", turned), before]
            at = max(at - 1, 1)
        else:
            at += 1
    return tuple(chain)


def _both(left: Form, right: Form) -> Form:
    meets: set[Chain] = set()
    for first, second in product(left, right):
        parts = _met(first) | _met(second)
        meets.add(next(iter(next(iter(parts)))) if len(parts) == 1 else (("&", parts),))
    return frozenset(meets)


def _met(chain: Chain) -> frozenset[Form]:
    """The forms whose intersection a chain is; the chain itself if it is no intersection."""
    if len(chain) == 1 and chain[0][0] == "&":
        parts = chain[0][1]
        assert isinstance(parts, frozenset)
        return parts
    return frozenset({frozenset({chain})})


def _minus(left: Form, right: Form) -> Form:
    """(a | b) \\ c is a \\ c | b \\ c, and (a \\ b) \\ c is a \\ (b | c)."""
    rest: set[Chain] = set()
    for chain in left - right:
        less, kept = right, frozenset({chain})
        if len(chain) == 1 and chain[0][0] == "\\":
            _, inner, gone = chain[0]
            assert isinstance(inner, frozenset) and isinstance(gone, frozenset)
            less, kept = right | gone, inner
        rest.add((("\\", kept, less),) if less else chain)
    return frozenset(rest)


def _plus(form: Form) -> Form:
    """The transitive closure; of a relation with `id`, `id` and the closure of the rest."""
    steps = form - _IDENTITY
    closed = {chain for chain in steps if len(chain) == 1 and chain[0][0] == "+"}
    inner = frozenset(steps - closed).union(*(chain[0][1] for chain in closed if isinstance(chain[0][1], frozenset)))
    reflexive = form & _IDENTITY
    return reflexive | (_step("+", inner) if inner else _NOTHING)


def _closed(body: Form) -> Form | None:
    """The least relation that is its body: r = a | b ; r | r ; c is b* ; a ; c*. None for any other body."""
    itself: Step = ("self", 0)
    start, before, after = set[Chain](), set[Chain](), set[Chain]()
    for chain in body:
        if not _mentions(chain):
            start.add(chain)
        elif chain[-1] == itself and not _mentions(chain[:-1]):
            before.add(chain[:-1])
        elif chain[0] == itself and not _mentions(chain[1:]):
            after.add(chain[1:])
        else:
            return None
    left, right = (_plus(frozenset(steps)) | _IDENTITY for steps in (before, after))
    return _sequence(_sequence(left, frozenset(start)), right)


def _mentions(parts: Iterable[object]) -> bool:
    """True if the member of a `let rec` occurs in a form."""
    return any(part == ("self", 0) or (isinstance(part, tuple | frozenset) and _mentions(part)) for part in parts)
