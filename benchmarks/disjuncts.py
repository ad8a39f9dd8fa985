"""Does every alternative of the shipped models earn its place? Drop each operand of `|` and see which test notices.

    python -m benchmarks.disjuncts [--model NAME] [--only DEFINITION] [--jobs N] [--list]

An operand survives if without it no shipped test has another verdict or other findings. Exit code 1 if an operand
survives that SURVIVORS does not explain, or if one that it explains no longer does. All of ptx-9.4 takes an hour or two
on two cores, so this is no part of the tests.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from memmodel import api, batch
from memmodel.answer import Answer, Budget
from memmodel.base.logic import FALSE
from memmodel.base.relations import RELATIONS
from memmodel.base.resources import suite_dir
from memmodel.base.sets import SET_ROWS, SETS
from memmodel.cat.syntax import Binary, Check, Definition, Empty, Expr, Model, Name, Unary
from memmodel.cat.text.printer import show
from memmodel.encode.base import BaseFormulas
from memmodel.encode.relations import Algebra
from memmodel.engine import Options
from memmodel.errors import InputError, TooLarge
from memmodel.events.elaborate import elaborate
from memmodel.litmus.syntax import terms_of
from memmodel.source import Span

MODELS = ("ptx-9.4", "ptx-7.5", "ptx-6.0", "sc")

OPTIONS = Options("auto", Budget(seconds=30))

SURVIVORS: dict[tuple[str, str, str], str] = {}
"""Operands that no test misses, and why they stay: (model, definition or check, operand) -> reason."""

Verdict = tuple[str, frozenset[object]]
"""What happens, and the findings with their places."""


# ---- the operands ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Disjunct:
    """One operand of `|`. `owner`: the definition or check that it stands in. `text`: the operand, with a number if it
    stands there more than once. `span`: where; the same in all expansions of a function."""

    owner: str
    text: str
    span: Span

    @property
    def place(self) -> str:
        return f"{Path(self.span.source.name).name}:{self.span.line}"


def disjuncts(model: Model) -> list[Disjunct]:
    """Every operand of every union that a check reaches, in order."""
    found: dict[tuple[object, ...], Disjunct] = {}
    times: Counter[tuple[str, str]] = Counter()
    owners: list[Definition | Check] = [*_reached(model), *model.checks]
    for owner in owners:
        for operand in _operands(owner.body):
            if operand.span is not None and not isinstance(operand, Empty):
                key = (operand.span.source.name, operand.span.start, operand.span.end)
                if key not in found:
                    text = show(operand)
                    times[owner.name, text] += 1
                    again = times[owner.name, text]
                    found[key] = Disjunct(owner.name, f"{text} ({again})" if again > 1 else text, operand.span)
    return list(found.values())


def _reached(model: Model) -> list[Definition]:
    """The definitions that some check depends on."""
    seen: set[int] = set()
    todo = [check.body for check in model.checks]
    while todo:
        for name in _names(todo.pop()):
            if name.ref is not None and name.ref not in seen:
                seen.add(name.ref)
                todo.append(model.definitions[name.ref].body)
    return [definition for number, definition in enumerate(model.definitions) if number in seen]


def _names(expr: Expr) -> Iterator[Name]:
    match expr:
        case Name():
            yield expr
        case Unary():
            yield from _names(expr.operand)
        case Binary():
            yield from _names(expr.left)
            yield from _names(expr.right)


def _operands(expr: Expr) -> Iterator[Expr]:
    """The operands of the unions in an expression, those of a chain `a | b | c` one by one."""
    match expr:
        case Binary(op="|"):
            for side in (expr.left, expr.right):
                if not (isinstance(side, Binary) and side.op == "|"):
                    yield side
                yield from _operands(side)
        case Binary():
            yield from _operands(expr.left)
            yield from _operands(expr.right)
        case Unary():
            yield from _operands(expr.operand)


def without(model: Model, dropped: Disjunct) -> Model:
    """The model less one operand."""
    return replace(
        model,
        name=f"{model.name} without {dropped.text}",
        definitions=tuple(replace(one, body=_dropped(one.body, dropped.span)) for one in model.definitions),
        checks=tuple(replace(one, body=_dropped(one.body, dropped.span)) for one in model.checks),
    )


def _dropped(expr: Expr, span: Span) -> Expr:
    match expr:
        case Binary(op="|") if expr.left.span == span:
            return _dropped(expr.right, span)
        case Binary(op="|") if expr.right.span == span:
            return _dropped(expr.left, span)
        case Binary():
            return replace(expr, left=_dropped(expr.left, span), right=_dropped(expr.right, span))
        case Unary():
            return replace(expr, operand=_dropped(expr.operand, span))
        case _:
            return expr


def _operand_at(model: Model, span: Span) -> list[Expr]:
    """The operand in all expansions."""
    bodies = [one.body for one in (*model.definitions, *model.checks)]
    return [operand for body in bodies for operand in _operands(body) if operand.span == span]


# ---- the tests -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A test under the whole model. `names`: the base names that hold something in some execution, or may."""

    path: str
    verdict: Verdict
    seconds: float
    names: frozenset[str]


def tests_of(model: str) -> list[str]:
    """The shipped tests that speak of a model."""
    found = []
    for path in batch.collect([str(suite_dir())]):
        if any(one.model == model for one in api.lowered(path).test.expectations):
            found.append(path)
    return found


def verdict(answer: Answer) -> Verdict:
    """What is compared of an answer."""
    findings = frozenset(
        (one.flag, frozenset((e.thread, e.span and e.span.start) for e in (one.first, one.second) if e is not None))
        for one in answer.findings
    )
    return answer.observation.value, findings


def known(path: str, model: str) -> Known:
    """A test under the whole model."""
    started = time.perf_counter()
    answer = api.judge(api.lowered(path), _model(model), OPTIONS)
    return Known(path, verdict(answer), time.perf_counter() - started, _held(path))


@cache
def _model(name: str) -> Model:
    return api.load(name)


def _held(path: str) -> frozenset[str]:
    """The base names of which the formulas of a test say more than that they are empty."""
    steps = api.lowered(path)
    try:
        graph = elaborate(steps, OPTIONS.bound, tuple(terms_of(steps.test.condition)))
        base = BaseFormulas(graph, Algebra(graph.logic, len(graph.events)))
        return frozenset(name for name in _base_names() if _holds(base, name))
    except TooLarge:
        return frozenset(_base_names())


def _base_names() -> tuple[str, ...]:
    return tuple(row.name for row in (*SETS, *RELATIONS))


def _holds(base: BaseFormulas, name: str) -> bool:
    if name in SET_ROWS:
        return any(formula != FALSE for formula in base.set(name).values())
    return any(formula != FALSE for row in base.relation(name) for formula in row.values())


def may_hold(model: Model, expr: Expr, names: frozenset[str]) -> bool:
    """Can an expression hold anything where only these base names do?"""
    fixed: dict[int, bool] = {}

    def of(expr: Expr) -> bool:
        match expr:
            case Name(ref=None):
                return expr.name in names
            case Name(ref=int(ref)):
                if ref not in fixed:
                    # A recursive definition holds what it holds without itself, as a start.
                    fixed[ref] = False
                    fixed[ref] = of(model.definitions[ref].body)
                return fixed[ref]
            case Empty():
                return False
            case Unary(op="~" | "?" | "*"):
                return True
            case Unary():
                return of(expr.operand)
            case Binary(op="|"):
                return of(expr.left) or of(expr.right)
            case Binary(op="\\"):
                return of(expr.left)
            case Binary():
                return of(expr.left) and of(expr.right)
            case _:
                return True

    return of(expr)


# ---- one operand at a time -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fate:
    """What became of a dropped operand. `noticed`: the first test that changes, or None. `tried`: how many ran."""

    dropped: Disjunct
    noticed: str | None
    tried: int
    seconds: float


_tests: list[Known] = []


def _share(tests: list[Known]) -> None:
    _tests[:] = tests


def fate(model_name: str, number: int) -> Fate:
    """Drop the operand of that number, and run tests, quick ones first, until one notices."""
    started = time.perf_counter()
    model = _model(model_name)
    dropped = disjuncts(model)[number]
    operands, changed = _operand_at(model, dropped.span), without(model, dropped)
    tried = 0
    for test in _tests:
        if not any(may_hold(model, operand, test.names) for operand in operands):
            continue
        tried += 1
        answer = api.judge(api.lowered(test.path), changed, OPTIONS)
        if "budget" not in answer.reason + answer.unsearched and verdict(answer) != test.verdict:
            name = str(Path(test.path).resolve().relative_to(suite_dir().resolve()).with_suffix(""))
            return Fate(dropped, name, tried, time.perf_counter() - started)
    return Fate(dropped, None, tried, time.perf_counter() - started)


def run(model: str, only: Sequence[str], jobs: int, say: Callable[[str], None]) -> tuple[list[Fate], list[Fate]]:
    """All fates under one model: unexplained survivors, and explained ones that are noticed after all."""
    numbers = [n for n, one in enumerate(disjuncts(_model(model))) if not only or one.owner in only]
    if not numbers:
        return [], []
    paths = tests_of(model)
    say(f"{model}: {len(numbers)} operands, {len(paths)} tests; first all tests under the whole model")
    with ProcessPoolExecutor(jobs) as pool:
        tests = sorted(pool.map(known, paths, [model] * len(paths), chunksize=8), key=lambda one: one.seconds)
    bad: list[Fate] = []
    stale: list[Fate] = []
    with ProcessPoolExecutor(jobs, initializer=_share, initargs=(tests,)) as pool:
        for count, one in enumerate(pool.map(fate, [model] * len(numbers), numbers), start=1):
            reason = SURVIVORS.get((model, one.dropped.owner, one.dropped.text))
            if one.noticed is None and reason is None:
                bad.append(one)
            elif one.noticed is not None and reason is not None:
                stale.append(one)
            say(f"[{count}/{len(numbers)}] {one.dropped.place} {one.dropped.owner}: {one.dropped.text}")
            say(f"    {_told(one, reason)} ({one.tried} tests, {one.seconds:.1f} s)")
    return bad, stale


def _told(one: Fate, reason: str | None) -> str:
    if one.noticed is not None:
        return f"needed by {one.noticed}"
    return f"survives, known: {reason}" if reason else "SURVIVES"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS, help="default: all of them")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a definition or check")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only list the operands")
    options = parser.parse_args(argv)
    bad: list[Fate] = []
    stale: list[Fate] = []
    for model in options.model or MODELS:
        if options.list:
            for one in disjuncts(_model(model)):
                print(f"{model} {one.place} {one.owner}: {one.text}")
            continue
        try:
            survivors, explained = run(model, options.only, options.jobs, lambda line: print(line, flush=True))
        except InputError as error:
            print(error.render(), file=sys.stderr)
            return 2
        bad += survivors
        stale += explained
    for one in bad:
        print(f"no shipped test needs {one.dropped.place} {one.dropped.owner}: {one.dropped.text}")
    for one in stale:
        print(f"{one.noticed} needs {one.dropped.place} {one.dropped.owner}: {one.dropped.text}, listed as a survivor")
    return 1 if bad or stale else 0


if __name__ == "__main__":
    sys.exit(main())
