"""Which mutants of `benchmarks.mutants` would compute anything else while a piece of work runs.

In: rooms of memmodel, before they are imported. Out: for a piece of work, the mutants whose expression came to another
value than the mutated one would have, at least once. What does not infect a mutant cannot notice it; so inputs are
chosen by what they infect (`benchmarks.chosen`), which takes one run of each instead of one for each mutant.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from benchmarks.mutants import ROOT, Mutant, mutants_of

NAME = "_memmodel_infects"
"""The function that each instrumented expression calls."""

CHANGES = re.compile(
    r":=|\byield\b|\bnext\(|\.(?:pop|popleft|append|add|discard|setdefault|update)\("
    r"|\.(?:_control|_plain|gathered|blocking)\("  # these carry out an instruction
)
"""What cannot be computed twice: such an expression counts as infected where it is reached."""


class Infection:
    """What has been seen since `clear`. `mutants`: by number, all of the rooms that were imported."""

    def __init__(self) -> None:
        self.mutants: list[Mutant] = []
        self.sites: list[tuple[int, ...]] = []
        self.seen: set[int] = set()
        self._done: set[int] = set()

    def clear(self) -> None:
        """Forget what was seen."""
        self.seen.clear()
        self._done.clear()

    def site(self, mutants: Sequence[Mutant]) -> int:
        """A place in the text that has these mutants."""
        first = len(self.mutants)
        self.mutants += mutants
        self.sites.append(tuple(range(first, len(self.mutants))))
        return len(self.sites) - 1

    def of_values(self, site: int, value: Any, mutated: Callable[[int], Any], asked: bool) -> Any:
        """Note the mutants that come to another value. `asked`: only whether it is true counts."""
        if site in self._done:
            return value
        missing = 0
        for place, number in enumerate(self.sites[site]):
            if number in self.seen:
                continue
            try:
                other = mutated(place)
                differs = bool(other) != bool(value) if asked else other is not value and bool(other != value)
            except Exception:  # the mutant ends here
                differs = True
            if differs:
                self.seen.add(number)
            else:
                missing += 1
        if not missing:
            self._done.add(site)
        return value

    def of_side(self, site: int, value: Any, side: int) -> Any:
        """Note the mutant that takes the other side of a conditional: 0 for the first."""
        self.seen.add(self.sites[site][1 - side])
        return value

    def of_any(self, site: int, value: Any) -> Any:
        """Note mutants that always differ."""
        self.seen.update(self.sites[site])
        return value


INFECTION = Infection()


class _Instrumented(ast.NodeTransformer):
    """Calls around the expressions that have mutants."""

    def __init__(self, path: Path, text: bytes) -> None:
        starts = [0]
        for line in text.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        self._starts = starts
        self._mutants: dict[tuple[int, int], list[Mutant]] = {}
        for mutant in mutants_of(path):
            self._mutants.setdefault((mutant.start, mutant.end), []).append(mutant)
        self._conditions: set[int] = set()

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # places inside are not those of the text

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node

    def visit(self, node: ast.AST) -> Any:
        match node:
            case ast.If() | ast.While() | ast.IfExp():
                self._conditions.add(id(node.test))
            case ast.comprehension():
                self._conditions |= set(map(id, node.ifs))
            case ast.BoolOp() if id(node) in self._conditions:
                self._conditions |= set(map(id, node.values))
        mutants = self._mutants_at(node)
        changed = super().visit(node)
        if not mutants or ":=" in mutants[0].old:
            return changed
        return ast.copy_location(self._call(node, changed, mutants), node)

    def _mutants_at(self, node: ast.AST) -> list[Mutant]:
        if not isinstance(node, ast.expr) or node.end_lineno is None or node.end_col_offset is None:
            return []
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        return self._mutants.pop((start, end), [])

    def _call(self, node: ast.AST, changed: ast.expr, mutants: list[Mutant]) -> ast.expr:
        site = INFECTION.site(mutants)
        match node:
            case ast.IfExp() if len(mutants) == 2:
                assert isinstance(changed, ast.IfExp)
                changed.body = _called("of_side", site, changed.body, ast.Constant(0))
                changed.orelse = _called("of_side", site, changed.orelse, ast.Constant(1))
                return changed
            case ast.UnaryOp(op=ast.Not()):
                return _called("of_any", site, changed)
            case _ if mutants[0].new.startswith("(not ") or CHANGES.search(mutants[0].old):
                return _called("of_any", site, changed)
            case ast.BoolOp() | ast.BinOp() | ast.Compare() | ast.Call():
                return _called("of_values", site, changed, _cases(mutants), ast.Constant(id(node) in self._conditions))
        return _called("of_any", site, changed)


def _called(function: str, site: int, value: ast.expr, *more: ast.expr) -> ast.Call:
    method = ast.Attribute(ast.Name(NAME, ast.Load()), function, ast.Load())
    return ast.Call(method, [ast.Constant(site), value, *more], [])


def _cases(mutants: Sequence[Mutant]) -> ast.Lambda:
    """The mutated expressions, by their number among those of their place."""
    *others, last = (ast.parse(mutant.new.strip(), mode="eval").body for mutant in mutants)
    body = last
    for number, expression in reversed(list(enumerate(others))):
        test = ast.Compare(ast.Name("_number", ast.Load()), [ast.Eq()], [ast.Constant(number)])
        body = ast.IfExp(test, expression, body)
    none = ast.arguments(posonlyargs=[], args=[ast.arg("_number")], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(none, body)


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.path)
        text = path.read_bytes()
        tree = ast.fix_missing_locations(_Instrumented(path, text).visit(ast.parse(text)))
        code = compile(tree, self.path, "exec")
        assert isinstance(code, CodeType)
        return code

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, NAME, INFECTION)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, rooms: Sequence[str]) -> None:
        self._rooms = tuple(f"memmodel.{room}" for room in rooms)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if not any(fullname == room or fullname.startswith(f"{room}.") for room in self._rooms):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None and spec.origin.startswith(str(ROOT)):
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def watch(rooms: Sequence[str]) -> Infection:
    """Instrument rooms of memmodel that are not imported yet."""
    sys.meta_path.insert(0, _Finder(rooms))
    return INFECTION
