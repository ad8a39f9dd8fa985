"""The rule of the house: no opcode, no qualifier and no scope word is spelt where kernels are judged.

What an instruction does is in its row and its steps. Those rooms that write texts (repairs, mutations, litmus tests)
spell them; the others may neither look at the words of an opcode nor have a word of the table as a string.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from memmodel.isa.rows.slots import SCOPES
from memmodel.isa.table import HEADS
from memmodel.program.arith import BITS_ONLY, COMPARISONS, NAMED, floats

KERNEL = Path(__file__).parent.parent.parent.parent / "memmodel" / "kernel"
WRITE_TEXTS = ("export", "mutate", "repair")

OPERATIONS = {*NAMED, *BITS_ONLY, *COMPARISONS, *floats.TESTS, *floats.ROUNDED}
"""What expressions apply: `program.arith` has the names, some of which are those of instructions, too."""

WORDS = {
    *HEADS,
    *(word for head in HEADS for word in head.split(".")),
    *(word for row in HEADS.values() for slot in row.slots for word in (*slot.words, *slot.modules)),
    *SCOPES,
}

ALLOWED: dict[str, tuple[str, str]] = {
    "all_sizes/drift.py": ("b", "a kind of types"),
    "all_sizes/following.py": ("b", "a kind of types"),
    "arguments/kinds.py": ("zero", "a value of a launch description"),
    "arguments/launches.py": ("b8 b64 u64 s64 init param cluster", "types of parameters, keys of a launch description"),
    "check/executions.py": ("elect.sync", "the name of a reading that a verdict shows"),
    "executions/consistent.py": ("po", "a relation of cat"),
    "launch.py": (
        "b32 b4x16_p64 b64 b6x16_p32 bf16 cluster param s16 s32 s64 s8 u16 u32 u64 u8 zero",
        "keys and values of a launch description",
    ),
    "machine/memory.py": ("zero bf16", "values of a launch description"),
    "machine/values/terms.py": ("number b pred", "kinds of terms and of types"),
    "order/frame.py": ("po", "a relation of cat"),
    "order/missing_order.py": ("exit inval po", "parts of the names of rules, and a relation of cat"),
    "order/tensor_order.py": ("po", "a relation of cat"),
    "conflicts/roles.py": ("cta cluster rank warp", "groups of threads, as keys"),
    "output/places.py": (
        "bar.sync barrier.sync bar.warp.sync barrier.cluster.arrive barrier.cluster.wait atom red",
        "beginnings of instructions, each with what CUDA C++ calls it",
    ),
    "output/sarif.py": ("level", "a key of SARIF"),
    "question/completing.py": (
        "b16 b32 b64 b8 cluster f16 f32 f64 init number param u16 u32 u64 u8 zero",
        "types of parameters, keys and values of a launch description",
    ),
    "question/encoded_maps.py": (
        "b4x16_p64 b6x16_p32",
        "types of parameters, keys and values of a launch description",
    ),
    "question/requests.py": (
        "cluster init number param zero",
        "types of parameters, keys and values of a launch description",
    ),
    "question/skeleton.py": (
        "b8 cluster param",
        "types of parameters, keys and values of a launch description",
    ),
    "question/toolkit.py": ("replace", "how text is decoded"),
    "trace/problems.py": ("trap", "the rule of a finding"),
}
"""By file the words that mean something else there, and what."""


def texts(tree: ast.AST) -> Iterator[str]:
    """The strings of a file; no docstrings, and no pieces of longer texts."""
    apart: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            apart.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            apart |= {id(value) for value in node.values}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.value


def spelt(tree: ast.AST) -> set[str]:
    """The words of opcodes that a file has as strings: one by one, or in a list that is one string."""
    found: set[str] = set()
    for text in texts(tree):
        words = text.split()
        if text.strip() == text and words and WORDS.issuperset(words):
            found |= set(words)
    return found - OPERATIONS


def looks_at_words(tree: ast.AST) -> bool:
    """True if a file takes an opcode apart, or compares it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            if any(isinstance(part, ast.Attribute) and part.attr == "opcode" for part in parts):
                return True
        if isinstance(node, ast.Attribute) and node.attr == "words":
            return True
    return False


FILES = {
    str(path.relative_to(KERNEL)): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(KERNEL.rglob("*.py"))
    if path.relative_to(KERNEL).parts[0] not in WRITE_TEXTS
}


@pytest.mark.parametrize("file", FILES)
def test_no_word_of_an_opcode_is_spelt(file: str) -> None:
    allowed, _ = ALLOWED.get(file, ("", ""))
    words, looks = spelt(FILES[file]), looks_at_words(FILES[file])
    assert (words, looks) == (set(allowed.split()), False)


def test_every_exception_is_needed() -> None:
    assert {*ALLOWED} <= set(FILES)


def test_the_reader_sees_what_it_should() -> None:
    """Otherwise the tests above could not fail."""
    assert len(FILES) > 80 and len(WORDS) > 700
    text = """
'''ld'''
OPS = ("ld", "add", "a text about ld")
LIST = "relaxed acquire mbarrier.init"
SAID = f"ld {OPS}"
"""
    assert spelt(ast.parse(text)) == {"ld", "relaxed", "acquire", "mbarrier.init"}
    assert looks_at_words(ast.parse("if instruction.words[0] == x: pass"))
    assert looks_at_words(ast.parse("known = instruction.opcode in names"))
    assert not looks_at_words(ast.parse("print(instruction.opcode)"))
