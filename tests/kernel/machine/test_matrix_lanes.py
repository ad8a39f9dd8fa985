"""Matrices of which it is not specified which lane moves which element: no lane may count on its own part."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged

SUMS = "{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}"
STORE = f"wmma.store.d.sync.aligned.row.m16n16k16.shared.s32 [%r2], {SUMS};\n"
LOAD = f"wmma.load.c.sync.aligned.row.m16n16k16.shared.s32 {SUMS}, [%r2];\n"
FACTOR = "wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%r20, %r21, %r22, %r23}, [%r2];\n"
BARRIER = "bar.warp.sync 0xffffffff;\n"
READ = "ld.shared.b32 %r10, [%r3+{at}];\n"
WRITE = "st.shared.b32 [%r3+{at}], %r0;\n"


def rules(body: str, threads: int = 32) -> set[str]:
    return {finding.rule for finding in judged(body, threads).findings}


@pytest.mark.parametrize("turn", [0, 4, 8, 64, 124])
@pytest.mark.parametrize(("matrix", "access"), [(STORE, READ), (STORE, WRITE), (LOAD, WRITE), (FACTOR, WRITE)])
def test_no_lane_has_a_part_for_itself(matrix: str, access: str, turn: int) -> None:
    """Lanes that take turns at the words of the matrix, from any word on, need a barrier before it and after it."""
    at = f"add.s32 %r3, %r1, {turn};\nand.b32 %r3, %r3, 127;\nadd.s32 %r3, %r2, %r3;\n"
    mine = access.format(at=128 if turn % 8 else 0)
    assert rules(at + matrix + mine) == {"data-race"}
    assert rules(at + mine + matrix) == {"data-race"}
    assert rules(at + mine + BARRIER + matrix + BARRIER + mine) == set()


@pytest.mark.parametrize(
    ("body", "race"),
    [
        (LOAD + STORE, False),  # the accumulator of a kernel that adds to a matrix in memory
        (STORE + STORE, False),
        (STORE + LOAD, False),
        (LOAD + STORE.replace("[%r2]", "[%r2], 16"), False),  # the stride that it has
        (LOAD + STORE.replace("row", "col"), True),
        (LOAD.replace("row", "col") + STORE, True),
        (FACTOR + STORE, True),
        (LOAD + BARRIER + STORE.replace("row", "col"), False),
    ],
)
def test_fragments_at_one_place(body: str, race: bool) -> None:
    """Whichever lane loads an element of an accumulator, the same one stores it at the same place."""
    assert rules(body) == ({"data-race"} if race else set())


def test_a_matrix_of_two_warps() -> None:
    """Lanes of two warps are never one lane, whatever they store."""
    assert rules(STORE, 64) & {"data-race", "same-store-race"}


def test_rounds_of_a_loop_use_one_place() -> None:
    loop = "mov.u32 %r6, 0;\nL:\n{body}add.s32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, 3;\n@%p1 bra L;\n"
    assert rules(loop.format(body=LOAD + STORE)) == set()
    assert rules(loop.format(body=STORE + READ.format(at=0))) == {"data-race"}


def test_a_tensor_map_that_lanes_made_together() -> None:
    """Each lane writes a word of the map; which lane copies that word is not specified ("tensormap.cp_fenceproxy")."""
    copy = (
        "cvt.u64.u32 %d10, %r2;\ncvta.shared.u64 %d10, %d10;\nadd.s64 %d11, %d0, 32768;\n"
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d11], [%r2], 128;\n"
    )
    assert rules(WRITE.format(at=0) + copy) == {"data-race"}
    assert rules(WRITE.format(at=0) + BARRIER + copy) == set()
    apart = copy.replace("tensormap.", "mul.wide.u32 %d12, %r0, 128;\nadd.s64 %d11, %d11, %d12;\ntensormap.", 1)
    assert judged(WRITE.format(at=0) + BARRIER + apart, 32).word == "undecided"


ROWS = "and.b32 %r8, %r0, 7;\nshl.b32 %r8, %r8, 4;\nadd.u32 %r8, %r8, %r2;\n"


@pytest.mark.parametrize(
    ("instruction", "race"),
    [
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r8];\n", False),  # the word that the lane gets
        ("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r9}, [%r8];\n", True),  # halves of two others
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r8], {%r9};\n", False),
        ("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r8], {%r9};\n", True),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_rows_whose_elements_go_to_other_lanes(instruction: str, race: bool, before: bool) -> None:
    """Transposed, a lane has elements of two rows ("ldmatrix"): not the word that it stored or loads itself."""
    mine = WRITE.format(at=0)
    for barrier in ("", BARRIER):
        body = ROWS + (mine + barrier + instruction if before else instruction + barrier + mine)
        assert rules(body) == ({"data-race"} if race and not barrier else set())


def test_rows_that_one_warp_stores_twice() -> None:
    store = "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r8], {%r9};\n"
    assert rules(ROWS + store + store) == set()
    assert "data-race" in rules(ROWS + store + store.replace(".trans", ""))
