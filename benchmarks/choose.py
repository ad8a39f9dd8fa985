"""Z3 chooses the program together with the execution: the other way to search, measured against growing programs.

    python benchmarks/choose.py [--size N] [--weak] [--seconds S] [--first MODEL] [--second MODEL]

Programs of N loads and stores, weak or relaxed.gpu (--weak: weak ones only), in one CTA. A cell of the program is an
instruction: its thread, its location and what it is are variables; so are reads-from, coherence and what is left in the
end. Z3 finds an execution that the second model allows and the first does not; another solver asks whether the first
allows the same outcome with another coherence order. If so, this outcome of this program is excluded, else the program,
and the search goes on until nothing is left. For comparison the same question is put to memmodel.search.
"""

from __future__ import annotations

import argparse
import time
from itertools import permutations
from typing import Any

import z3

from memmodel import api
from memmodel.base.kinds import Kind
from memmodel.cat.syntax import Binary, Empty, Expr, Model, Name, Unary
from memmodel.search.sketches import sketches
from memmodel.search.tasks import DifferenceTask
from memmodel.search.vocabulary import vocabulary

Rows = list[list[Any]]


class Cells:
    """The variables of a program of `size` instructions and of one execution of it."""

    def __init__(self, size: int, places: int, weak: bool) -> None:
        self.size, self.places = size, places
        self.count = size + places
        cells = range(size)
        self.begins = [z3.BoolVal(True), *(z3.Bool(f"begins{i}") for i in cells[1:])]
        self.at = [[z3.Bool(f"at{i}_{p}") for p in range(places)] for i in cells]
        self.writes = [z3.Bool(f"writes{i}") for i in cells]
        self.strong = [z3.BoolVal(False) if weak else z3.Bool(f"strong{i}") for i in cells]
        self.program = [*self.begins[1:], *(one for row in self.at for one in row), *self.writes]
        self.program += [] if weak else self.strong
        everyone = range(self.count)
        self.rf = [[z3.Bool(f"rf{a}_{b}") for b in cells] for a in everyone]
        self.co = [[z3.Bool(f"co{a}_{b}") for b in everyone] for a in everyone]
        self.last = [[z3.Bool(f"last{p}_{a}") for a in everyone] for p in range(places)]

    def write(self, a: int) -> Any:
        return self.writes[a] if a < self.size else z3.BoolVal(True)

    def here(self, a: int, place: int) -> Any:
        return self.at[a][place] if a < self.size else z3.BoolVal(a - self.size == place)

    def together(self, a: int, b: int) -> Any:
        return z3.Or([z3.And(self.here(a, p), self.here(b, p)) for p in range(self.places)])

    def same_thread(self, a: int, b: int) -> Any:
        return z3.Not(z3.Or([*self.begins[min(a, b) + 1 : max(a, b) + 1], z3.BoolVal(False)]))

    def rules(self) -> list[Any]:
        """What a program is: one place for each cell, numbered as they are first named."""
        found = [z3.PbEq([(one, 1) for one in row], 1) for row in self.at]
        for i in range(self.size):
            for p in range(1, self.places):
                before = [self.at[j][p - 1] for j in range(i)]
                found.append(z3.Implies(self.at[i][p], z3.Or([*before, z3.BoolVal(False)])))
        return found

    def execution(self, co: Rows) -> list[Any]:
        """What an execution is, with this coherence order."""
        everyone, found = range(self.count), []
        for b in range(self.size):
            sources = [(self.rf[a][b], 1) for a in everyone]
            found.append(z3.If(self.writes[b], z3.PbEq(sources, 0), z3.PbEq(sources, 1)))
            found += [z3.Implies(self.rf[a][b], z3.And(self.write(a), self.together(a, b))) for a in everyone if a != b]
            found.append(z3.Not(self.rf[b][b]))
        for a in everyone:
            for b in everyone:
                both = z3.And(self.write(a), self.write(b), self.together(a, b))
                found.append(z3.Implies(co[a][b], both) if a != b and b < self.size else z3.Not(co[a][b]))
                if a >= self.size and b < self.size:
                    found.append(z3.Implies(both, co[a][b]))
                found += [z3.Implies(z3.And(co[a][b], co[b][c]), co[a][c]) for c in everyone]
        for place, row in enumerate(self.last):
            found.append(z3.PbEq([(one, 1) for one in row], 1))
            for a in everyone:
                found.append(z3.Implies(row[a], z3.And(self.write(a), self.here(a, place))))
                found += [z3.Implies(row[a], z3.Not(co[a][b])) for b in everyone]
        return found

    def base(self, name: str, co: Rows) -> Any:
        """The meaning of a base name; what loads and stores of one CTA cannot have is empty."""
        everyone, no = range(self.count), z3.BoolVal(False)
        rows = lambda holds: [[holds(a, b) for b in everyone] for a in everyone]  # noqa: E731
        inside = lambda a, b: a < self.size and b < self.size  # noqa: E731
        strong = [*self.strong, *([no] * self.places)]
        table: dict[str, Any] = {
            "po": lambda: rows(lambda a, b: self.same_thread(a, b) if a < b < self.size else no),
            "loc": lambda: rows(self.together),
            "rf": lambda: rows(lambda a, b: self.rf[a][b] if b < self.size else no),
            "co": lambda: co,
            "id": lambda: rows(lambda a, b: z3.BoolVal(a == b)),
            "int": lambda: rows(lambda a, b: self.same_thread(a, b) if inside(a, b) else no),
            "ext": lambda: rows(lambda a, b: z3.Not(self.same_thread(a, b)) if inside(a, b) else z3.BoolVal(True)),
            "sr": lambda: rows(lambda a, b: z3.And(strong[a], strong[b])),
            "_": lambda: [z3.BoolVal(True) for _ in everyone],
            "M": lambda: [z3.BoolVal(True) for _ in everyone],
            "W": lambda: [self.write(a) for a in everyone],
            "R": lambda: [z3.Not(self.write(a)) for a in everyone],
            "RLX": lambda: strong,
            "IW": lambda: [z3.BoolVal(a >= self.size) for a in everyone],
        }
        sets = ("F", "ACQ", "REL", "ACQ_REL", "SC")
        return table.get(name, lambda: [no] * self.count if name in sets else [[no] * self.count for _ in everyone])()


class Judged:
    """A model over cells."""

    def __init__(self, model: Model, cells: Cells, co: Rows) -> None:
        self.cells, self.co, self.values = cells, co, list[Any]()
        for one in model.definitions:
            self.values.append(self.value(one.body))
        self.holds = z3.And([self.check(one.test, one.body) for one in model.axioms])

    def check(self, test: str, body: Expr) -> Any:
        found = self.value(body)
        if body.kind is Kind.SET:
            return z3.Not(z3.Or(found))
        if test == "empty":
            return z3.Not(z3.Or([one for row in found for one in row]))
        found = closure(found) if test == "acyclic" else found
        return z3.Not(z3.Or([row[a] for a, row in enumerate(found)]))

    def value(self, expr: Expr) -> Any:
        n = range(self.cells.count)
        match expr:
            case Name(ref=None, name=name):
                return self.cells.base(name, self.co)
            case Name(ref=int(ref)):
                return self.values[ref]
            case Empty(kind=kind):
                return [z3.BoolVal(False)] * len(n) if kind is Kind.SET else [[z3.BoolVal(False)] * len(n) for _ in n]
            case Unary(op=op, operand=operand, kind=kind):
                return unary(op, kind, self.value(operand))
            case Binary(op=op, left=left, right=right, kind=kind):
                return binary(op, kind, self.value(left), self.value(right))
        raise AssertionError(expr)


def unary(op: str, kind: Kind, one: Any) -> Any:
    n = range(len(one))
    if op == "~":
        return [z3.Not(x) for x in one] if kind is Kind.SET else [[z3.Not(x) for x in row] for row in one]
    if op == "[]":
        return [[one[a] if a == b else z3.BoolVal(False) for b in n] for a in n]
    if op == "^-1":
        return [[one[b][a] for b in n] for a in n]
    if op in ("domain", "range"):
        return [z3.Or([one[a][b] if op == "domain" else one[b][a] for b in n]) for a in n]
    found = one if op == "?" else closure(one)
    return [[z3.BoolVal(True) if a == b and op != "+" else found[a][b] for b in n] for a in n]


def binary(op: str, kind: Kind, left: Any, right: Any) -> Any:
    n = range(len(left))
    if op == "*":
        return [[z3.And(left[a], right[b]) for b in n] for a in n]
    if op == ";":
        return [[z3.simplify(z3.Or([z3.And(left[a][m], right[m][b]) for m in n])) for b in n] for a in n]
    join = {"|": z3.Or, "&": z3.And, "\\": lambda x, y: z3.And(x, z3.Not(y))}[op]
    if kind is Kind.SET:
        return [z3.simplify(join(left[a], right[a])) for a in n]
    return [[z3.simplify(join(left[a][b], right[a][b])) for b in n] for a in n]


def closure(one: Rows) -> Rows:
    found, length = one, 1
    while length < len(one):
        found, length = binary("|", Kind.RELATION, found, binary(";", Kind.RELATION, found, found)), 2 * length
    return found


def chosen(first: str, second: str, size: int, weak: bool, seconds: float) -> tuple[set[object], bool]:
    """Every program on which the second model has an outcome that the first has not; were all found?"""
    started = time.process_time()
    cells = Cells(size, max(1, size // 2), weak)
    other = [[z3.Bool(f"other{a}_{b}") for b in range(cells.count)] for a in range(cells.count)]
    allowing = Judged(api.load(second), cells, cells.co)
    solver, inner = z3.Solver(), z3.Solver()
    solver.add(*cells.rules(), *cells.execution(cells.co), allowing.holds)
    solver.add(z3.Not(Judged(api.load(first), cells, cells.co).holds))
    inner.add(*cells.execution(other), Judged(api.load(first), cells, other).holds)
    print(f"encoded in {time.process_time() - started:.1f} s", flush=True)
    outcome = [*cells.program, *(x for row in cells.rf for x in row), *(x for row in cells.last for x in row)]
    found: set[object] = set()
    rounds = 0
    while solver.check() == z3.sat and time.process_time() - started < seconds:
        model, rounds = solver.model(), rounds + 1
        fixed = [one if z3.is_true(model.eval(one, model_completion=True)) else z3.Not(one) for one in outcome]
        if inner.check(*fixed) == z3.sat:
            solver.add(z3.Not(z3.And(fixed)))
            continue
        solver.add(z3.Not(z3.And(fixed[: len(cells.program)])))
        found.add(spelling(cells, model))
    spent = time.process_time() - started
    over = "all" if spent < seconds else "stopped"
    print(f"Z3: {len(found)} programs of {size} that differ, {rounds} rounds, {spent:.1f} CPU seconds ({over})")
    return found, spent < seconds


def spelling(cells: Cells, model: Any) -> object:
    """The program, once up to the order of threads and the names of places."""
    threads: list[list[tuple[bool, bool, int]]] = []
    for i in range(cells.size):
        true = [z3.is_true(model.eval(one, model_completion=True)) for one in cells.at[i]]
        one = [z3.is_true(model.eval(x, model_completion=True)) for x in (cells.writes[i], cells.strong[i])]
        if z3.is_true(model.eval(cells.begins[i], model_completion=True)):
            threads.append([])
        threads[-1].append((one[0], one[1], true.index(True)))
    return min(_renamed([threads[n] for n in order]) for order in permutations(range(len(threads))))


def _renamed(threads: list[list[tuple[bool, bool, int]]]) -> tuple[object, ...]:
    known: dict[int, int] = {}
    return tuple(tuple((w, s, known.setdefault(p, len(known))) for w, s, p in body) for body in threads)


def grown(first: str, second: str, size: int, weak: bool) -> int:
    """The same question to the search that grows programs: all shapes, all spellings at once; how many programs."""
    started = time.process_time()
    names = ["ld.weak", "st.weak", *([] if weak else ["ld.relaxed", "st.relaxed"])]
    words = vocabulary(names, ["gpu"], size, max(1, size // 2), ["one"])
    task = DifferenceTask(first, second, words, size, True)
    every = list(sketches(words, size))
    found = [one for sketch in every for one in task.judge(sketch)]
    spent = time.process_time() - started
    programs = sum(int(one["spellings"]) for one in found)
    print(f"grown: {len(found)} shapes, {programs} programs of {size} that differ minimally, {spent:.1f} CPU seconds")
    return programs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("--weak", action="store_true")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--first", default="sc")
    parser.add_argument("--second", default="ptx-6.0")
    options = parser.parse_args()
    grown(options.first, options.second, options.size, options.weak)
    chosen(options.first, options.second, options.size, options.weak, options.seconds)


if __name__ == "__main__":
    main()
