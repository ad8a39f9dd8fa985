"""Lower instructions, threads and tests to steps.

In: LitmusTest. Out: `LoweredTest`: addresses, steps in order, and where each label points. Settled here: the legality
of every instruction (InputError with span, rule, repair), guards, labels, and the least target architecture of a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from memmodel.errors import InputError
from memmodel.isa.call import Call, Context
from memmodel.isa.matrix.wgmma_registers import with_register_checks
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.place import range_checks
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.spelling import Refusal, Spelling
from memmodel.isa.synchronization.grids import at_end, at_start
from memmodel.isa.synchronization.reports import with_report_checks
from memmodel.isa.table import HEADS
from memmodel.litmus.constants import all_instructions, cache_policies
from memmodel.litmus.syntax import Instruction, Label, Layout, LitmusTest, RegValue, Thread, terms_of
from memmodel.program.addresses import AddressSpace
from memmodel.program.expressions import Get
from memmodel.program.lowered import LoweredTest, Program, Step
from memmodel.program.ops import Op
from memmodel.ptx.operands import Reg
from memmodel.ptx.targets import PtxLevel, version_of


@lru_cache(maxsize=1024)
def _read(mnemonic: str, layout: Layout) -> Spelling | Refusal:
    return read_mnemonic(mnemonic, layout, HEADS)


def read_instruction(instruction: Instruction, test: LitmusTest) -> Spelling:
    """The row and qualifiers of an instruction. Raises InputError if its mnemonic or operand count is illegal."""
    reading = _read(instruction.mnemonic, test.layout)
    if isinstance(reading, Refusal):
        raise InputError(reading.message, instruction.span_of_part(reading.part), reading.hint)
    count = len(instruction.operands)
    if reading.operand_names(count) is None:
        where = instruction.mnemonic_span if reading.row.cases else instruction.span or instruction.mnemonic_span
        if "cache_policy" in reading.row.operands and "hint" not in reading.words and reading.operand_names(count - 1):
            last = instruction.operands[-1].span
            raise InputError("a cache policy needs the qualifier .L2::cache_hint", last or where)
        plural = "operand is" if count == 1 else "operands are"
        raise InputError(f"{reading.operand_phrase}; {count} {plural} given", where)
    return reading


def lower_instruction(instruction: Instruction, context: Context) -> tuple[Op, ...]:
    """The steps of one instruction of a thread. Raises InputError where it is illegal."""
    reading = read_instruction(instruction, context.test)
    call, guard = Call(reading, instruction, context), instruction.guard
    if guard is not None and not isinstance(call.value(Reg(guard.register)), Get):
        call.fail(f"the special register '%{guard.register}' is not a guard", hint="move it to a predicate first")
    assert reading.row.lower is not None, "rows for modules alone are refused in litmus tests"
    return (*range_checks(call), *reading.row.lower(call))


def lower_test(test: LitmusTest) -> LoweredTest:
    """The whole test. Raises InputError at the first illegal instruction, or at a label that stands twice."""
    _check_questions(test)
    space = AddressSpace(test)
    return LoweredTest(test, space, tuple(_program(test, thread, space) for thread in test.threads))


def _check_questions(test: LitmusTest) -> None:
    """Registers that a question names hold numbers. Raises InputError for one that holds a cache policy."""
    policies = {thread.name: cache_policies(thread) for thread in test.threads}
    for question in test.questions():
        for term in (*question.shown, *terms_of(question.condition)):
            if isinstance(term, RegValue) and term.register in policies.get(term.thread, ()):
                raise InputError(f"'{term.register}' holds a cache policy, whose value PTX leaves open", term.span)


def _program(test: LitmusTest, thread: Thread, space: AddressSpace) -> Program:
    context = Context.of(test, thread, space)
    steps: list[Step] = []
    labels: dict[str, int] = {}
    begin = _boundary(thread, f"start of grid {thread.place.grid}")
    steps += [Step(op, None, begin, -1) for op in at_start(test, thread)]
    number = 0
    for entry in thread.body:
        if isinstance(entry, Label):
            if entry.name in labels:
                raise InputError(
                    f"label '{entry.name}' stands twice in {thread.name}", entry.span, "rename one of them"
                )
            labels[entry.name] = len(steps)
            continue
        steps += [Step(op, entry.guard, entry, number) for op in lower_instruction(entry, context)]
        number += 1
    steps += [Step(op, None, _boundary(thread, "end of thread"), number) for op in at_end(test, thread)]
    program = Program(tuple(steps), labels, _initial(test, thread, space))
    return with_report_checks(with_register_checks(program))


def _boundary(thread: Thread, text: str) -> Instruction:
    """What stands in an instruction's place where a thread begins or ends."""
    return Instruction(text, (), None, thread.span, thread.span)


def _initial(test: LitmusTest, thread: Thread, space: AddressSpace) -> dict[str, int]:
    """The initial values of a thread's registers: numbers, or addresses of variables."""
    values = {}
    for initial in test.registers:
        if initial.thread != thread.name:
            continue
        value = space.address(initial.value, 0, thread.place) if isinstance(initial.value, str) else initial.value
        if value is None:
            raise InputError(f"'{initial.value}' has no instance that {thread.name} can name", initial.span)
        values[initial.register] = value
    return values


def requirements(test: LitmusTest) -> Iterator[tuple[Instruction, Since]]:
    """Each instruction of the test, with the targets and the version of PTX that have it, or a word of it."""
    for instruction in all_instructions(test):
        read_instruction(instruction, test)
        for since in _requirements(instruction.mnemonic, test.layout, len(instruction.operands)):
            yield instruction, since


@lru_cache(maxsize=1024)
def _requirements(mnemonic: str, layout: Layout, operands: int) -> tuple[Since, ...]:
    """The targets and versions of PTX that have a legal mnemonic with that many operands, or a word of it."""
    reading = _read(mnemonic, layout)
    return () if isinstance(reading, Refusal) else tuple(reading.requirements(operands).values())


def refuse_beyond(test: LitmusTest, level: PtxLevel) -> None:
    """Raises InputError at the first word of the test that a level does not have."""
    for instruction in all_instructions(test):
        reading = read_instruction(instruction, test)
        for part, needs_what, of_version in reading.missing_at(len(instruction.operands), level):
            asked = f"--ptx-version is {level.version}" if of_version else f"--target is {level.target}"
            raise InputError(f"{needs_what}; {asked}", instruction.span_of_part(part))


def minimum_target(test: LitmusTest) -> int:
    """The least sm number that has every instruction of the test, as the pages' "Target ISA Notes" give it."""
    return max((since.sm for _, since in requirements(test)), default=0)


def minimum_version(test: LitmusTest, least: str) -> str:
    """The version of PTX that has every instruction of the test; at least `least`."""
    return max([least, *(since.version for _, since in requirements(test))], key=version_of)


def target(test: LitmusTest) -> str | None:
    """The least target that has every instruction of the test, such as `sm_90a`; None if no single one does."""
    needed = {since for _, since in requirements(test)}
    families = [since.numbers for since in needed if since.numbers]
    least = max((since.sm for since in needed), default=0)
    if not families:
        return f"sm_{least}"
    common = frozenset.intersection(*families)
    return next((f"sm_{number}a" for number in sorted(common) if number >= least), None)
