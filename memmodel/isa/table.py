"""The instruction table: every row, and the row that each head belongs to.

In: the rows of each family. Out: `FAMILIES`, `TABLE` and `HEADS`. A further family is a further file, added here.
Settled here: a file is loaded when an instruction is looked up whose first word it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from memmodel.errors import InternalError

if TYPE_CHECKING:
    from memmodel.isa.rows.row import Row

    FAMILIES: tuple[tuple[str, tuple[Row, ...]], ...]
    TABLE: tuple[Row, ...]

NEWEST = (9, 4)
"""The version of the PTX ISA whose pages the table was written from."""

_FILES: tuple[tuple[str, str, str], ...] = (
    ("Loads and stores", "movement.access", "cold ld ldu st suld sust tld"),
    ("Loads and stores", "movement.fill", "st"),
    ("Textures and surfaces of compiled modules", "movement.textures", "istypep suld sured suq sust tex tld4 txq"),
    ("Atomics", "synchronization.atomic", "atom red"),
    ("Memory of several devices", "movement.multimem", "multimem"),
    ("Fences", "synchronization.fence", "fence membar"),
    ("Fences of the asynchronous half", "synchronization.fence_async", "fence membar"),
    ("Barriers", "synchronization.barrier", "bar barrier"),
    ("mbarrier objects", "synchronization.mbarrier", "mbarrier"),
    ("Copies without bulk", "movement.cpasync", "cp"),
    ("Bulk copies", "movement.bulk", "cp multimem"),
    ("Tensor copies and tensor maps", "movement.tensor", "applypriority cp"),
    ("Tensor copies and tensor maps", "movement.tensormap", "tensormap"),
    ("Fabric operations", "movement.fabric", "fabric"),
    ("Groups of asynchronous operations", "synchronization.groups", "cp"),
    ("Asynchronous stores and reductions", "movement.stasync", "multimem red st"),
    ("Matrices of a warp", "matrix.fragments", "ldmatrix stmatrix"),
    ("Matrices of a warp", "matrix.warp_mma", "mma movmatrix wmma"),
    ("wgmma", "matrix.wgmma", "wgmma"),
    ("tcgen05", "matrix.tcgen_mma", "tcgen05"),
    ("tcgen05", "matrix.tcgen_move", "tcgen05"),
    ("tcgen05", "matrix.tcgen_sync", "tcgen05"),
    ("Cluster launch control", "synchronization.launch", "clusterlaunchcontrol"),
    ("Grids that depend on one another", "synchronization.grids", "griddepcontrol"),
    ("Addresses", "movement.cluster", "getctarank mapa"),
    ("Addresses", "movement.spaces", "cvta isspacep"),
    ("Lanes of a warp", "synchronization.votes", "activemask elect match redux shfl vote"),
    ("Hints to the caches", "movement.hints", "applypriority createpolicy discard prefetch prefetchu"),
    (
        "Arithmetic and moves",
        "scalar.compute",
        "abs add and bfe bfi bfind bmsk brev clmad clz cnot div dp2a dp4a fns lop3 mad mad24 max min mov mul mul24 neg "
        "not or popc prmt rem sad selp shf shl shr sub szext xor",
    ),
    ("Arithmetic and moves", "scalar.compare", "set setp slct"),
    ("Arithmetic and moves", "scalar.convert", "cvt"),
    ("Arithmetic and moves", "scalar.extended", "add addc mad madc sub subc"),
    ("Floating point", "scalar.floats", "copysign cos ex2 fma lg2 rcp rsqrt sin sqrt tanh testp"),
    (
        "Video instructions",
        "scalar.video",
        "vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 "
        "vset4 vshl vshr vsub vsub2 vsub4",
    ),
    (
        "Control flow",
        "scalar.control",
        "beq bge bgt ble blt bne bra brkpt brx exit goto nanosleep pmevent ret setmaxnreg trap",
    ),
    ("Calls and the stack of compiled modules", "scalar.calls", "alloca call stackrestore stacksave"),
)
"""Heading in docs/instructions.md, file, and the words with which its mnemonics begin."""


@cache
def _rows(file: str) -> tuple[Row, ...]:
    rows: tuple[Row, ...] = import_module(f"memmodel.isa.{file}").ROWS
    words = next(words for _, named, words in _FILES if named == file).split()
    for head in (head for row in rows for head in row.heads):
        if _first_word(head) not in words:
            raise InternalError(f"isa/table.py: {head} is a row of {file}, whose words lack {_first_word(head)!r}")
    return rows


def _first_word(head: str) -> str:
    return head.partition(".")[0]


@lru_cache(maxsize=256)
def _group(word: str) -> dict[str, Row]:
    """The heads that begin with a word."""
    rows = (row for _, file, words in _FILES if word in words.split() for row in _rows(file))
    return {head: row for row in rows for head in row.heads if _first_word(head) == word}


@cache
def _all() -> dict[str, Row]:
    return {head: row for _, file, _ in _FILES for row in _rows(file) for head in row.heads}


class _Heads(Mapping[str, "Row"]):
    """Head -> its row, in the order of the table."""

    def __getitem__(self, head: str) -> Row:
        return _group(_first_word(head))[head]

    def __iter__(self) -> Iterator[str]:
        return iter(_all())

    def __len__(self) -> int:
        return len(_all())


HEADS: Mapping[str, Row] = _Heads()


def _families() -> tuple[tuple[str, tuple[Row, ...]], ...]:
    """Headings of docs/instructions.md and what stands under each."""
    families: dict[str, tuple[Row, ...]] = {}
    for heading, file, _ in _FILES:
        families[heading] = (*families.get(heading, ()), *_rows(file))
    return tuple(families.items())


def __getattr__(name: str) -> object:
    if name == "FAMILIES":
        return _families()
    if name == "TABLE":
        return tuple(row for _, rows in _families() for row in rows)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
