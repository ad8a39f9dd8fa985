"""Checks of the registers that hold what a test of an mbarrier object reports, as steps between those of the program.

In: Program. Out: the same program, in which a thread notes beside each such register (`#early`) whether the test that
last wrote it returned false. Settled here: to read it then is undefined ("mbarrier.test_wait / mbarrier.try_wait"). A
guard is read too: the report of such a test may be 0 or 1, so that some execution has the guarded instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.lowered import Program, Step
from memmodel.program.ops import Assign, OnObject, UndefinedIf
from memmodel.program.uses import assigned, is_hidden, used
from memmodel.ptx.operands import Pair
from memmodel.ptx.vocabulary import S32

_RULE = "a report is read of a test that returned false"


def with_report_checks(program: Program) -> Program:
    """The program with its checks; the program itself if no test reports."""
    tests = [step for step in program.steps if _reporting_test(step) is not None]
    numbers = {step.index for step in tests}
    written = {name for step in program.steps if step.index in numbers for name in assigned(step.op)}
    watched = {name for name in written if not is_hidden(name)} - {_reporting_test(step) for step in tests}
    if not watched:
        return program

    def rewrite(whole: Sequence[Step]) -> list[Step]:
        first = whole[0]
        read = sorted(watched & {name for step in whole for name in used(step)})
        early = [
            Step(UndefinedIf(_RULE, Get(_early(name))), first.guard, first.instruction, first.index) for name in read
        ]
        done = next((register for step in whole if (register := _reporting_test(step)) is not None), None)
        false: Expr = Const(0) if done is None else Apply("eq", (Get(done), Const(0)), S32)
        changed = sorted(watched & {name for step in whole for name in assigned(step.op)})
        notes = [Step(Assign(_early(name), false), first.guard, first.instruction, first.index) for name in changed]
        return [*early, *whole, *notes]

    return program.rewritten(rewrite)


def _reporting_test(step: Step) -> str | None:
    """The register of the outcome, if this is a test with a second result; None for any other step."""
    operands = step.instruction.operands
    if isinstance(step.op, OnObject) and operands and isinstance(operands[0], Pair):
        return step.op.register
    return None


def _early(name: str) -> str:
    return f"{name}#early"
