"""Would a test notice? Small changes of conditions and comparisons, one at a time, each against the tests of its room.

    python -m benchmarks.mutants ROOM [ROOM …] [--count N] [--seed S] [--jobs N] [--results FILE] [--list]

A change drops an operand of `and`, `or`, `&` or `|`, drops a `not`, moves a comparison by one, turns it round, or takes
the other side of a conditional. A mutant survives if all tests of its room pass with it; ARGUED says of a survivor why
no test can notice it. Results are lines of JSON; a run with the same file goes on where another one stopped. Exit code
1 if a mutant survives that ARGUED does not explain. A sample of 100 takes about an hour on two cores, so this is no
part of the tests.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent

COPIED = ("memmodel", "tests", "litmus", "axioms", "docs", "benchmarks", "pyproject.toml", "README.md", "CHANGELOG.md")
"""What a copy of the project needs for its tests to run."""

TESTS = {
    "cat": ("cat",),
    "concrete": ("program", "enumeration", "cat/test_findings.py", "laws"),
    "encode": ("engines", "enumeration", "laws"),
    "enumeration": ("enumeration", "laws"),
    "events": ("engines", "program", "enumeration", "laws"),
    "isa": ("isa", "kernel/machine"),
    "kernel/machine": ("kernel/machine", "kernel"),
    "kernel": ("kernel",),
    "program": ("program", "enumeration"),
    "referee": ("enumeration", "laws"),
    "refine": ("engines", "enumeration", "laws"),
    "repair": ("repair",),
    "solve": ("engines", "cat/test_findings.py", "laws"),
    "why": ("why",),
}
"""The tests of a room, those that fail soonest first. A room inside another one begins with those of its own name."""

ARGUED: dict[str, str] = {}
"""`FILE: OLD -> NEW` of a survivor: why the program does the same with it."""

TURNED: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """Characters start..end of a file become `new`."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        return " ".join(f"{self.file}: {self.old} -> {self.new}".split())


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its text."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    encoded = text.encode()

    def part(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def said(node: ast.expr) -> str:
        start, end = part(node)
        return encoded[start:end].decode()

    for node in _conditions(tree):
        start, end = part(node)
        for new in _replacements(node, said):
            yield Mutant(str(path.relative_to(ROOT)), node.lineno, start, end, said(node), new)


def _conditions(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions of a file, without what is asserted, raised, or said of types."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Assert | ast.Raise | ast.AnnAssign | ast.ImportFrom):
            pending += [node.value] if isinstance(node, ast.AnnAssign) and node.value is not None else []
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.FunctionDef):
            pending += reversed(node.body)
            continue
        if isinstance(node, ast.expr):
            yield node
        pending += reversed(list(ast.iter_child_nodes(node)))


def _is_type(node: ast.expr) -> bool:
    """True for a union of types outside a call, as in the definition of an alias."""
    if isinstance(node, ast.BinOp):
        return _is_type(node.left) and _is_type(node.right)
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.Name) and node.id[:1].isupper() and not node.id.isupper()
    )


def _replacements(node: ast.expr, said: object) -> Iterator[str]:
    """What may stand in place of an expression."""
    assert callable(said)
    match node:
        case ast.BoolOp(values=values):
            word = " and " if isinstance(node.op, ast.And) else " or "
            for number in range(len(values)):
                kept = [said(value) for place, value in enumerate(values) if place != number]
                yield f"({word.join(f'({operand})' for operand in kept)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"bool({said(operand)})"
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right) if not _is_type(node):
            yield f"({said(left)})"
            yield f"({said(right)})"
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            for word in TURNED[type(operator)]:
                yield f"({said(left)} {word} {said(right)})"
        case ast.IfExp(body=body, orelse=orelse):
            yield f"({said(body)})"
            yield f"({said(orelse)})"


def tests_of(file: str) -> list[str]:
    """The paths of the tests of a file's room, the nearest first."""
    parts = Path(file).relative_to("memmodel").parts[:-1]
    mirrored = ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]
    listed = [name for room in mirrored for name in TESTS.get(room, ())]
    names = dict.fromkeys([*mirrored, *listed])
    return [f"tests/{name}" for name in names if (ROOT / "tests" / name).exists()]


def outcome(copy: Path, mutant: Mutant, seconds: float) -> str:
    """The tests that notice a mutant, `time` if they do not end, or `survived`."""
    path = copy / mutant.file
    original = path.read_bytes()
    path.write_bytes(original[: mutant.start] + mutant.new.encode() + original[mutant.end :])
    try:
        compile(path.read_bytes(), str(path), "exec")
        done: list[str] = []
        for tests in tests_of(mutant.file):
            ignored = [f"--ignore={earlier}" for earlier in done if earlier.startswith(tests)]
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", tests, *ignored]
            environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                ended = subprocess.run(
                    command, cwd=copy, env=environment, capture_output=True, timeout=seconds, check=False
                )
            except subprocess.TimeoutExpired:
                return "time"
            if ended.returncode:
                failed = [line for line in ended.stdout.decode().splitlines() if line.startswith(("FAILED", "ERROR"))]
                return failed[0].split(" - ")[0] if failed else f"{tests}: exit {ended.returncode}"
            done.append(tests)
        return "survived"
    finally:
        path.write_bytes(original)


def sample(rooms: Sequence[str], number: int, seed: int) -> list[Mutant]:
    """So many mutants of each room, by a seed."""
    chosen: list[Mutant] = []
    for room in rooms:
        folder = ROOT / "memmodel" / room
        files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
        candidates = [mutant for file in files for mutant in mutants_of(file)]
        chosen += random.Random(f"{seed}{room}").sample(candidates, min(number, len(candidates)))
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="+", metavar="ROOM", help="a folder or file of memmodel, such as kernel/order")
    parser.add_argument("--count", type=int, default=10, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one folder of tests")
    parser.add_argument(
        "--results", type=Path, default=None, help="a file of JSON lines, which a later run goes on with"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and judge none")
    options = parser.parse_args(arguments)
    mutants = sample(options.rooms, options.count, options.seed)
    if options.list:
        for mutant in mutants:
            print(f"line {mutant.line} of {mutant.name}")
        return 0
    known: dict[str, str] = {}
    if options.results is not None and options.results.exists():
        lines = map(json.loads, options.results.read_text(encoding="utf-8").splitlines())
        known = {f"{line['file']}:{line['start']}:{line['new']}": line["outcome"] for line in lines}
    outcomes = _judged(mutants, known, options)
    return _summary(mutants, outcomes)


def _judged(mutants: list[Mutant], known: dict[str, str], options: argparse.Namespace) -> list[str]:
    """The outcomes, in order; each worker has a copy of the project."""
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            copy = Path(folder) / str(number)
            copy.mkdir()
            for name in COPIED:
                source = ROOT / name
                leave = shutil.ignore_patterns("__pycache__", ".*_cache", ".hypothesis")
                if source.is_dir():
                    shutil.copytree(source, copy / name, ignore=leave)
                elif source.exists():
                    shutil.copy(source, copy / name)
            copies.put(copy)

        def judged(mutant: Mutant) -> str:
            key = f"{mutant.file}:{mutant.start}:{mutant.new}"
            if key in known:
                return known[key]
            copy, started = copies.get(), time.monotonic()
            try:
                seen = outcome(copy, mutant, options.timeout)
            finally:
                copies.put(copy)
            record = {**asdict(mutant), "outcome": seen, "seconds": round(time.monotonic() - started, 1)}
            if options.results is not None:
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
            print(f"{record['seconds']:7.1f} s  {mutant.file}:{mutant.line}  {seen}", flush=True)
            return seen

        with ThreadPoolExecutor(options.jobs) as workers:
            return list(workers.map(judged, mutants))


def _summary(mutants: list[Mutant], outcomes: list[str]) -> int:
    """Print the score of each room and what survived without a reason; the exit code."""
    rooms: dict[str, Counter[str]] = {}
    survivors = []
    for mutant, seen in zip(mutants, outcomes, strict=True):
        word = "noticed" if seen != "survived" else "argued" if mutant.name in ARGUED else "survived"
        rooms.setdefault(str(Path(mutant.file).parent), Counter())[word] += 1
        if word == "survived":
            survivors.append(mutant)
    for room, counts in sorted(rooms.items()):
        score = counts["noticed"] / max(counts["noticed"] + counts["survived"], 1)
        said = ", ".join(f"{counts[word]} {word}" for word in ("noticed", "survived", "argued"))
        print(f"{room:40} {score:5.0%}  {said}")
    for mutant in survivors:
        print(f"survived: line {mutant.line} of {mutant.name}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
