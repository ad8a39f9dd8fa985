"""Would a test notice? Small changes of conditions and comparisons, each against the tests that reach it.

    python -m benchmarks.mutants [ROOM …] [--count N] [--seed S] [--folder FOLDER] [--most SECONDS] [--least SHARE]

A change drops an operand of `and`, `or`, `&` or `|`, negates a condition, moves a comparison by one, turns it round,
takes one side of a conditional, or exchanges min and max, any and all. First all tests of the rooms run in a copy of
the project, and it is written down which functions each enters; then each mutant is judged by the tests that enter its
function, the quickest first, until one fails. It survives if none does. `benchmarks.argued` says of a survivor why no
test can notice it. All that is known is kept in FOLDER; a later run with the same folder goes on from there. Exit code
1 if the share of mutants that are noticed, among those that are not argued, is less than SHARE.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.argued import ARGUED

ROOT = Path(__file__).resolve().parent.parent

ROOMS = ("kernel", "encode", "enumeration", "concrete", "events", "isa", "cat", "repair")
"""What decides a verdict: the rooms whose score docs/mutation.md has."""

COPIED = (
    "memmodel",
    "tests",
    "litmus",
    "axioms",
    "docs",
    "benchmarks",
    "editors",
    ".ci",
    ".pre-commit-hooks.yaml",
    "action.yml",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "SKILL.md",
)
"""What a copy of the project needs for its tests to run."""

TESTS = {
    "cat": ("cat", "laws/test_tiny_models.py", "enumeration", "engines"),
    "concrete": ("program", "enumeration", "laws"),
    "encode": ("engines", "program", "enumeration", "laws"),
    "enumeration": ("enumeration", "program", "laws"),
    "events": ("engines", "program", "enumeration", "laws"),
    "isa": ("isa", "program", "kernel/machine"),
    "kernel": ("kernel", "program/test_automata.py"),
    "program": ("program", "enumeration"),
    "referee": ("engines", "enumeration", "laws"),
    "refine": ("engines", "enumeration", "laws"),
    "repair": ("repair",),
    "solve": ("engines", "laws"),
    "why": ("why",),
}
"""The tests of a room."""

FEW = 40
"""This many of the quickest tests run first: they notice nearly every mutant that is noticed, and read few files."""

MORE = 200
"""This many of the quickest tests of a file or a room run where few tests enter a function."""

MEMORY = 8 << 30

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

BUILT_IN = ("bool", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple")

EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """Bytes start..end of a file become `new`. `function`: the qualified name of the function around them, or ""."""

    file: str
    function: str
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        return " ".join(f"{self.file}: {self.old} -> {self.new}".split())


# ---- changes ---------------------------------------------------------------------------------------------------------


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its text."""
    encoded = path.read_bytes()
    starts = [0]
    for line in encoded.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def extent(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def text_of(node: ast.expr) -> str:
        start, end = extent(node)
        return encoded[start:end].decode()

    file = str(path.relative_to(ROOT))
    for node, function, is_condition in _expressions(ast.parse(encoded)):
        start, end = extent(node)
        for new in _replacements(node, text_of, is_condition):
            yield Mutant(file, function, node.lineno, start, end, text_of(node), new)


def _expressions(tree: ast.Module) -> Iterator[tuple[ast.expr, str, bool]]:
    """The expressions of a file, the function around each, and True if a branch or a filter asks it.

    Without what is asserted, raised, or said of types.
    """
    pending: list[tuple[ast.AST, str, str, bool]] = [(tree, "", "", False)]
    while pending:
        node, function, prefix, is_condition = pending.pop()
        inner: list[tuple[ast.AST, bool]] = []
        match node:
            case ast.Assert() | ast.Raise() | ast.ImportFrom():
                continue
            case ast.AnnAssign():
                inner = [(node.value, False)] if node.value is not None else []
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.FunctionDef():
                function = prefix + node.name
                inner = [(statement, False) for statement in node.body]
                prefix = f"{function}.<locals>."
            case ast.ClassDef():
                inner = [(statement, False) for statement in node.body]
                prefix = f"{prefix}{node.name}."
            case ast.If() | ast.While() | ast.IfExp():
                inner = [(child, child is node.test) for child in ast.iter_child_nodes(node)]
            case ast.comprehension():
                inner = [(child, child in node.ifs) for child in ast.iter_child_nodes(node)]
            case _:
                inner = [(child, False) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.expr):
            yield node, function, is_condition
        pending += [(child, function, prefix, asked) for child, asked in reversed(inner)]


def _is_type(node: ast.expr) -> bool:
    """True for a union of types outside an annotation, as in the definition of an alias."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and (
            _is_none(node.left) or _is_none(node.right) or (_is_type(node.left) and _is_type(node.right))
        )
    name = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(name, ast.Constant):
        return isinstance(name.value, str)
    return isinstance(name, ast.Name) and (name.id in BUILT_IN or (name.id[:1].isupper() and not name.id.isupper()))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _replacements(node: ast.expr, text_of: object, is_condition: bool) -> Iterator[str]:
    """What may stand in place of an expression."""
    assert callable(text_of)
    match node:
        case ast.BoolOp(values=values):
            word = " and " if isinstance(node.op, ast.And) else " or "
            for number in range(len(values)):
                kept = [text_of(value) for place, value in enumerate(values) if place != number]
                yield f"({word.join(f'({operand})' for operand in kept)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"bool({text_of(operand)})"
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right) if not _is_type(node):
            yield f"({text_of(left)})"
            yield f"({text_of(right)})"
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            for word in TURNED[type(operator)]:
                yield f"({text_of(left)} {word} {text_of(right)})"
        case ast.IfExp(body=body, orelse=orelse):
            yield f"({text_of(body)})"
            yield f"({text_of(orelse)})"
        case ast.Call(func=ast.Name(id=name)) if name in EXCHANGED:
            yield EXCHANGED[name] + text_of(node).removeprefix(name)
        case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript() if is_condition:
            yield f"(not {text_of(node)})"


def sample(room: str, number: int, seed: int) -> list[Mutant]:
    """So many mutants of a room, by a seed. A larger sample begins with the smaller one."""
    folder = ROOT / "memmodel" / room
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    candidates = [mutant for file in files for mutant in mutants_of(file)]
    random.Random(f"{seed} {room}").shuffle(candidates)
    return candidates[:number]


# ---- tests -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Test:
    name: str
    seconds: float
    functions: frozenset[str]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class Tests:
    """The tests of rooms in a copy of the project, and what each of them enters.

    `most`: a mutant is judged by the quickest tests, which together take at most so many seconds.
    """

    def __init__(self, copy: Path, folder: Path, most: float) -> None:
        self.copy, self.most = copy, most
        self._records = folder / "entered.jsonl"
        self._recorded = folder / "recorded"
        self._only = folder / "only"

    def record(self, room: str) -> None:
        """Run the tests of a room, as far as that has not been done."""
        done = self._recorded.read_text(encoding="utf-8").splitlines() if self._recorded.exists() else []
        for name in TESTS.get(room, TESTS.get(room.partition("/")[0], (room,))):
            if any(name == earlier or name.startswith(f"{earlier}/") for earlier in done):
                continue
            print(f"tests/{name}: which functions each test enters", flush=True)
            self._pytest(["--entered", str(self._records), f"tests/{name}"], None)
            done.append(name)
            self._recorded.write_text("\n".join(done), encoding="utf-8")
        known: dict[str, Test] = {}
        for line in self._records.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            known[record["test"]] = Test(record["test"], record["seconds"], frozenset(record["functions"]))
        self.all = sorted(known.values(), key=lambda test: test.seconds)

    def of(self, mutant: Mutant) -> list[Test]:
        """The tests that enter the function of a mutant, the quickest first.

        What runs once, as when rows are loaded, counts for the test that came first only: if few tests enter the
        function, others of its file and of its room follow.
        """
        file = mutant.file.removeprefix("memmodel/")
        listed = tuple(f"tests/{name}" for name in TESTS.get(file.partition("/")[0], ()))
        inside = [test for test in self.all if mutant.function and f"{file}:{mutant.function}" in test.functions]
        if len(inside) >= FEW:
            return inside
        beside = [test for test in self.all if any(name.startswith(f"{file}:") for name in test.functions)]
        of_room = [test for test in self.all if test.name.startswith(listed)]
        return list(dict.fromkeys([*inside, *[*beside, *of_room][:MORE]]))

    def outcome(self, mutant: Mutant) -> str:
        """The test that notices a mutant, `time` if the tests do not end, or `survived`."""
        tests, seconds = self.of(mutant), 0.0
        for number, test in enumerate(tests):
            seconds += test.seconds
            if seconds > self.most:
                tests = tests[:number]
                break
        path = self.copy / mutant.file
        original, status = path.read_bytes(), path.stat()
        path.write_bytes(original[: mutant.start] + mutant.new.encode() + original[mutant.end :])
        try:
            for part in (tests[:FEW], tests[FEW:]):
                if part:
                    noticed = self._noticed(part)
                    if noticed is not None:
                        return noticed
            return "survived"
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _noticed(self, tests: Sequence[Test]) -> str | None:
        """The first of these tests that fails."""
        self._only.write_text("\n".join(test.name for test in tests), encoding="utf-8")
        files = dict.fromkeys(test.file for test in tests)
        # Far above what they take without a change, on a machine that has other work, too.
        limit = 120 + 10 * sum(test.seconds for test in tests)
        code, output = self._pytest(["-x", "--only", str(self._only), *files], limit)
        if code is None:
            return "time"
        if code == 0:
            return None
        failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0].split(" - ")[0] if failed else f"exit {code}"

    def _pytest(self, arguments: Sequence[str], limit: float | None) -> tuple[int | None, str]:
        """The exit code, None if it did not end, and the output. Nothing that it started is left over."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "benchmarks.entered",
            *arguments,
        ]
        environment = os.environ | {"PYTHONPATH": str(self.copy), "PYTHONHASHSEED": "0"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling all of it takes longer than most tests

        def bounded() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

        with (
            tempfile.TemporaryFile() as written,
            subprocess.Popen(
                command,
                cwd=self.copy,
                env=environment,
                stdout=written,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=bounded,
            ) as child,
        ):
            try:
                code: int | None = child.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
            written.seek(0)
            return code, written.read().decode(errors="replace")


def copied(folder: Path) -> Path:
    """A copy of the project."""
    copy = folder / "project"
    copy.mkdir()
    leave = shutil.ignore_patterns("__pycache__", ".*_cache", ".hypothesis")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=leave)
        elif source.exists():
            shutil.copy2(source, copy / name)
    return copy


# ---- the run ---------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=ROOMS, metavar="ROOM", help="a folder or file of memmodel")
    parser.add_argument("--count", type=int, default=20, help="mutants of each room (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="chooses the mutants (default: 1)")
    parser.add_argument("--folder", type=Path, default=None, help="where what is known is kept (default: nowhere)")
    parser.add_argument("--least", type=float, default=1.0, help="the share that has to be noticed (default: 1)")
    parser.add_argument("--most", type=float, default=600, help="seconds of tests for one mutant (default: 600)")
    parser.add_argument("--list", action="store_true", help="print the mutants and judge none")
    options = parser.parse_args(arguments)
    chosen = {room: sample(room, options.count, options.seed) for room in options.rooms}
    if options.list:
        for mutant in (mutant for mutants in chosen.values() for mutant in mutants):
            print(f"line {mutant.line} of {mutant.name}")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        tests, outcomes = Tests(copied(Path(temporary)), folder, options.most), dict[Mutant, str]()
        for room, mutants in chosen.items():
            if mutants:
                tests.record(room)
            outcomes |= _judged(mutants, tests, folder / "outcomes.jsonl")
    return _summary(chosen, outcomes, options.least)


def _judged(mutants: Sequence[Mutant], tests: Tests, file: Path) -> dict[Mutant, str]:
    """What is seen of each mutant; what the file has of an earlier run is believed."""
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines()) if file.exists() else iter(())
    known = {(line["file"], line["start"], line["new"]): line["outcome"] for line in lines}
    outcomes: dict[Mutant, str] = {}
    for mutant in mutants:
        key = (mutant.file, mutant.start, mutant.new)
        if key not in known:
            started = time.monotonic()
            known[key] = tests.outcome(mutant)
            seconds = round(time.monotonic() - started, 1)
            with file.open("a", encoding="utf-8") as written:
                written.write(json.dumps({**asdict(mutant), "outcome": known[key], "seconds": seconds}) + "\n")
            print(f"{seconds:7.1f} s  {mutant.file}:{mutant.line}  {known[key]}", flush=True)
        outcomes[mutant] = known[key]
    return outcomes


def _summary(chosen: dict[str, list[Mutant]], outcomes: dict[Mutant, str], least: float) -> int:
    """Print the score of each room and what survived without a reason; the exit code."""
    whole: Counter[str] = Counter()
    survivors = []
    print(f"{'room':16}  tried  noticed  survived  equivalent  score")
    for room, mutants in chosen.items():
        counts: Counter[str] = Counter()
        for mutant in mutants:
            noticed = outcomes[mutant] != "survived"
            word = "noticed" if noticed else "equivalent" if mutant.name in ARGUED else "survived"
            counts[word] += 1
            survivors += [mutant] if word == "survived" else []
        print(_row(room, counts))
        whole += counts
    print(_row("all", whole))
    for mutant in survivors:
        print(f"survived: line {mutant.line} of {mutant.name}")
    return 1 if _score(whole) < least else 0


def _score(counts: Counter[str]) -> float:
    judged = counts["noticed"] + counts["survived"]
    return counts["noticed"] / judged if judged else 1.0


def _row(name: str, counts: Counter[str]) -> str:
    numbers = counts["noticed"], counts["survived"], counts["equivalent"]
    return "{:16}  {:5}  {:7}  {:8}  {:10}  {:5.0%}".format(name, sum(numbers), *numbers, _score(counts))


if __name__ == "__main__":
    sys.exit(main())
