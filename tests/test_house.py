"""The order of the house: which room may import which, and what keeps a room easy to find one's way in.

Read from the source with `ast`; nothing is imported. An import inside a function counts like any other, one that is for
types only (`if TYPE_CHECKING`) does not: it is gone when the program runs.
"""

from __future__ import annotations

import ast
import gc
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "memmodel"

ROOMS = (
    "base.words", "errors", "source", "recovery", "output", "ptx", "network",
    "memory", "base", "litmus", "answer", "cat", "program", "isa", "lint", "collecting", "limits", "workers",
    "concrete", "referee", "enumeration", "events", "encode", "refine", "solve", "engine",
    "why", "records", "report", "emit", "api", "cache", "batch", "library", "compare", "search", "mutate",
    "repair", "kernel.launch", "kernel.arguments", "kernel.trace", "kernel.flow", "kernel.machine", "kernel.conflicts",
    "kernel.order", "kernel.executions", "kernel.all_sizes", "kernel.question", "kernel.export", "kernel.check",
    "kernel.sequence", "kernel.repair", "kernel.mutate", "kernel.output", "kernel.synchronization", "kernel.sweep",
    "triton", "testing", "record", "lsp", "cli", "pytest_plugin",
)  # fmt: skip
"""A room imports from itself and from rooms before it. A file of `memmodel` itself is a room of its own, and so is
`base.words`, from which every room imports."""

HOUSES = ("kernel",)
"""Folders of rooms, with nothing in them but rooms."""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""(file, module): why it may import against the order."""

APART = ((("litmus",), ("cat",)), (("enumeration",), ("events", "encode", "solve")))
"""Rooms that never import each other: the two languages, and the two engines, which check each other."""

MOST_FILES = 16
DOORS = ("__init__", "__main__")
"""Files of `memmodel` that may import anything: they are how the package is entered."""


def name_of(file: Path) -> str:
    return ".".join(("memmodel", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def room_of(module: str) -> str:
    """The longest name of a room that the module's begins with."""
    parts = module.split(".")[1:]
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in ROOMS), parts[0] if parts else "__init__")


@cache
def trees() -> dict[str, ast.Module]:
    """What each file of the package says, by the name of its module."""
    gc.disable()  # trees are all kept: to look for cycles among them took seven of ten seconds
    try:
        return {name_of(file): ast.parse(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py"))}
    finally:
        gc.enable()


BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
"""What has statements in it; no expression has."""


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements of a file that run or may run."""
    left = [tree]
    while left:
        node = left.pop()
        types_only = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        inside = node.orelse if types_only else ast.iter_child_nodes(node)
        below = [child for child in inside if isinstance(child, BLOCKS)]
        yield from below
        left += below


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of the package that a file imports."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            found = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [one if one in trees() else str(node.module) for one in found]
        else:
            continue
        yield from (one for one in found if one in trees())


@cache
def imports() -> dict[str, frozenset[str]]:
    """The modules that each module imports."""
    return {module: frozenset(imported(tree)) - {module} for module, tree in trees().items()}


def test_every_room_has_its_place_in_the_order() -> None:
    rooms = {room_of(module) for module in trees()} - set(DOORS)
    assert rooms == {*ROOMS, *HOUSES}
    assert [module for module in trees() if room_of(module) in HOUSES] == [f"memmodel.{house}" for house in HOUSES]
    assert not any(imports()[f"memmodel.{house}"] for house in HOUSES)
    assert len(ROOMS) == len(set(ROOMS))


def test_imports_go_down_the_order() -> None:
    place = {room: number for number, room in enumerate(ROOMS)}
    wrong = [
        (module, other)
        for module, others in imports().items()
        if room_of(module) not in (*DOORS, *HOUSES)
        for other in others
        if room_of(other) in DOORS or place[room_of(other)] > place[room_of(module)]
    ]
    # `import memmodel` for its version is no import of a room.
    wrong = [pair for pair in wrong if pair[1] != "memmodel"]
    assert sorted(wrong) == sorted(EXCEPTIONS)


def test_what_is_to_stay_apart_does() -> None:
    for first, second in APART:
        for one, other in ((first, second), (second, first)):
            met = [
                (m, o) for m, others in imports().items() if room_of(m) in one for o in others if room_of(o) in other
            ]
            assert met == []


def test_no_circle_of_files() -> None:
    try:
        tuple(TopologicalSorter(imports()).static_order())
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_a_class_has_one_name_and_one_meaning() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_no_room_is_crowded() -> None:
    sizes = {folder: len(list(folder.glob("*.py"))) for folder in {file.parent for file in PACKAGE.rglob("*.py")}}
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_FILES} == {}


def test_the_documentation_has_the_same_order() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\*\*`([\w.]+)`\*\*", text, re.MULTILINE)
    assert listed == list(ROOMS)


def test_tests_mirror_the_rooms() -> None:
    """What no room is tested by alone stands in `laws`, `docs` and at the top; what tests share in `helpers`."""
    folder = ROOT / "tests"
    top = {path.name for path in folder.glob("*.py")}
    assert top == {"conftest.py", "test_dependencies.py", "test_house.py"}
    folders = {path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders <= {room.split(".")[0] for room in ROOMS} | {"engines", "laws", "docs", "helpers"}
    for house in HOUSES:
        within = {f"{house}.{path.name}" for path in (folder / house).iterdir() if any(path.glob("*.py"))}
        assert within <= set(ROOMS)
    assert not [path for path in (folder / "helpers").rglob("test_*.py")]
    for path in folder.rglob("*/test_*.py"):
        assert (path.parent / "__init__.py").exists(), f"{path.parent.name} has no __init__.py"


def test_the_reader_of_imports_sees_what_it_should() -> None:
    """Otherwise the tests above could not fail."""
    text = (
        "from typing import TYPE_CHECKING\nimport memmodel.api\n"
        "if TYPE_CHECKING:\n    from memmodel.batch import run\n"
        "def f():\n    if f:\n        from memmodel import cat\n    from memmodel.litmus.parse import parse_litmus\n"
    )
    assert set(imported(ast.parse(text))) == {"memmodel.api", "memmodel.cat", "memmodel.litmus.parse"}
    assert len(imports()["memmodel.engine"]) > 3
