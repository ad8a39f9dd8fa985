"""Atomic operations that leave the same value in every order, and those on integers among them."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, launch, module
from helpers.modules import instruction_of

from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.last_writes import commuting, is_integer, order_free_atomics


@pytest.mark.parametrize(
    ("line", "kind", "integer"),
    [
        ("atom.global.add.u32 %r0, [%d0], %r1;", "add u32", True),
        ("red.global.xor.b64 [%d0], %d1;", "xor b64", True),
        ("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32 [%r0], %r1, [%r2];",
         "max u32", True),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%d0], [%r0], 16;", "min s32", True),
        ("atom.global.add.f32 %r0, [%d0], %r1;", "add f32", False),
        ("atom.global.add.noftz.bf16 %h0, [%d0], %h1;", "add bf16", False),
        ("red.global.add.noftz.f16x2 [%d0], %r1;", "add f16x2", False),
        ("atom.global.exch.b32 %r0, [%d0], %r1;", None, False),
        ("atom.global.cas.b32 %r0, [%d0], 1, 2;", None, False),
        ("red.global.inc.u32 [%d0], 7;", None, False),
        ("st.global.u32 [%d0], 7;", None, False),
    ],
)  # fmt: skip
def test_operations_that_commute(line: str, kind: str | None, integer: bool) -> None:
    combination = commuting(instruction_of(line))
    assert (None if combination is None else " ".join(map(str, combination))) == kind
    assert (combination is not None and is_integer(combination)) is integer


ATOM = "atom.relaxed.gpu.{space}.{op}.{type} {to}, [{where}], {operand};"
GLOBAL = {"space": "global", "where": "%d0"}
SHARED = {"space": "shared", "where": "s"}
ADD = {"op": "add", "type": "u32", "to": "%r20", "operand": "1"}
WIDE = {"op": "add", "type": "u64", "to": "%d20", "operand": "1"}
OR = {"op": "or", "type": "b32", "to": "%r21", "operand": "%r0"}
FLOAT = {"op": "add", "type": "f32", "to": "%f1", "operand": "%f0"}
EXCHANGED = {"op": "exch", "type": "b128", "to": "%q0", "operand": "%q1"}
AT_4 = {"where": "s+4"}
AT_8 = {"where": "s+8"}


@pytest.mark.parametrize(
    ("atoms", "whole", "part"),
    [
        pytest.param([GLOBAL | ADD], "0", "", id="other CTAs may add to global memory"),
        pytest.param([SHARED | ADD], "0", "0", id="none adds to shared memory"),
        pytest.param([GLOBAL | ADD, SHARED | ADD], "01", "1", id="each by itself"),
        pytest.param([SHARED | ADD, SHARED | ADD], "01", "01", id="one kind"),
        pytest.param([SHARED | ADD, SHARED | OR], "", "", id="two kinds"),
        pytest.param([SHARED | FLOAT], "", "", id="sums that are rounded"),
        pytest.param([SHARED | ADD, SHARED | WIDE], "", "", id="words that begin together"),
        pytest.param([SHARED | WIDE, SHARED | ADD | AT_4], "", "", id="a word in another one"),
        pytest.param([SHARED | EXCHANGED, SHARED | ADD | AT_4, SHARED | ADD | AT_8], "", "", id="two words in one"),
        pytest.param([SHARED | WIDE, SHARED | ADD | AT_8], "01", "01", id="words side by side"),
        pytest.param(
            [SHARED | OR | AT_8, SHARED | WIDE, SHARED | ADD | AT_4], "0", "0", id="beside words that overlap"
        ),
        pytest.param([SHARED | ADD | {"where": "%r3"}, SHARED | ADD | AT_8], "01", "01", id="several words"),
        pytest.param([SHARED | ADD | {"where": "%r3"}, SHARED | OR | AT_8], "", "", id="a word of several"),
    ],
)
def test_words_that_hold_the_same_in_every_order(atoms: list[dict[str, str]], whole: str, part: str) -> None:
    """Numbers of atomic operations, in a launch with all of its CTAs and in one that may have more."""
    read = module(".reg .b128 %q<2>;\n" + "\n".join(ATOM.format(**atom) for atom in atoms))
    run, body = run_launch(read, entry(read), launch(32)), entry(read).body or ()
    numbers = [at for at, instruction in enumerate(body) if instruction.opcode.startswith("atom")]
    for known, all_run in ((whole, True), (part, False)):
        assert order_free_atomics(run, entry(read), whole=all_run) == {numbers[int(number)] for number in known}
