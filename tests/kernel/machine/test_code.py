"""What instructions of an entry do, made once where it is the same in every run."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, launch, module

from memmodel.kernel.machine.choices.schedule import Schedule
from memmodel.kernel.machine.interpret import Interpreter
from memmodel.kernel.machine.run import run_launch


def test_what_only_computes_is_made_once_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of variables and the carry are given out by a run: what uses them is made for each."""
    made: list[str] = []
    pure = Interpreter.pure

    def counted(interpreter: Interpreter) -> object:
        made.append(interpreter.instruction.opcode)
        return pure(interpreter)

    monkeypatch.setattr(Interpreter, "pure", counted)
    read = module(
        "add.cc.u32 %r10, %r0, 1;\naddc.u32 %r11, %r0, 0;\nmul.lo.u32 %r12, %r0, 3;\nst.shared.u32 [%r3], %r12;"
    )
    first = run_launch(read, entry(read), launch(), Schedule())
    assert {"shl.b32", "mov.u32", "mul.lo.u32"} <= set(made)
    made.clear()
    again = run_launch(read, entry(read), launch(), Schedule())
    computed_anew = {opcode for opcode in made if opcode[:2] not in ("ld", "st")}
    assert computed_anew == {"mov.u32", "add.cc.u32", "addc.u32"} and made.count("mov.u32") == 2  # of s and of bar
    assert again.accesses == first.accesses and again.instructions == first.instructions
