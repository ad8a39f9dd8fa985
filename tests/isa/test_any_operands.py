"""Whatever operands an instruction of a module has, its row lowers it or says why not. No other error leaves a row."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

from helpers.examples import examples
from helpers.isa_samples import BLOCK_SAMPLES
from helpers.modules import instruction_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from memmodel.isa.lowered import lowered
from memmodel.isa.module import spelling_of
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.table import TABLE
from memmodel.kernel.machine.interpret import Interpreter
from memmodel.kernel.machine.surroundings import Surroundings
from memmodel.kernel.trace.problems import Refused
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.ptx.operands import (
    Arguments,
    Blank,
    Imm,
    JumpTable,
    JumpTarget,
    Mem,
    Negated,
    Operand,
    Pair,
    Part,
    Real,
    Register,
    Special,
    Sym,
    TensorOperand,
    Vector,
)
from memmodel.ptx.vocabulary import Space

REGISTERS = [
    Register(f"%x{slot}", slot=slot, kind="pred" if width == 1 else f"b{width}", width=width)
    for slot, width in enumerate((32, 64, 1, 16, 128, 32))
]
PLAIN = [*REGISTERS, *map(Imm, (0, 1, -1, 4, 16, 32, 1 << 40)), Blank(), Sym("s"), Special("%laneid"), Real(0, 32)]
BASES = (REGISTERS[0], REGISTERS[1], Sym("s"), Imm(16))
HARMLESS = instruction_of("exit;")

elements = st.sampled_from(PLAIN)
vectors = st.sampled_from((1, 2, 3, 4, 8)).flatmap(lambda count: st.tuples(*(elements,) * count))
places = st.builds(Mem, st.sampled_from(BASES), st.sampled_from((0, 4, 16)))
operands = st.one_of(
    elements,
    places,
    st.builds(Vector, vectors),
    st.builds(Pair, elements, elements),
    st.builds(Arguments, vectors),
    st.builds(TensorOperand, st.sampled_from(BASES[:3]), vectors),
    st.sampled_from([Negated(REGISTERS[2]), Part(REGISTERS[0], "b1"), JumpTarget("L", -1), JumpTable("T", (0,))]),
)


def opcodes() -> list[str]:
    """Those of the samples and of the instructions that are worked out by hand: some of every row."""
    lines = {line for line in BLOCK_SAMPLES if line}
    for path in Path(__file__).parent.glob("test_*lowering.py"):
        lines |= set(getattr(import_module(f"isa.{path.stem}"), "WORKED_OUT_IN_MODULES", ()))
    words = {line.split()[0].rstrip(";") for line in lines}
    return sorted(opcode for opcode in words if isinstance(spelling_of(opcode), Spelling))


OPCODES = opcodes()


@st.composite
def instructions(draw: DrawFn) -> PtxInstruction:
    """An instruction, mostly with operands of the kinds that its row has."""
    opcode = draw(st.sampled_from(OPCODES))
    spelling = spelling_of(opcode)
    assert isinstance(spelling, Spelling)
    named: list[Operand] = [draw(places if "[" in name else operands) for name in spelling.operands]
    strange = draw(st.integers(0, len(named)))
    if strange < len(named) and draw(st.booleans()):
        named[strange] = draw(operands)
    return replace(HARMLESS, words=tuple(opcode.split(".")), operands=tuple(named[: draw(st.sampled_from((1, 2, 9)))]))


class Variables:
    """The variables of a launch."""

    cluster_size = 2

    def __init__(self) -> None:
        self.symbols = {"s": (Space.SHARED, 1024)}


@examples(800)
@given(instructions())
def test_a_row_lowers_or_refuses(instruction: PtxInstruction) -> None:
    does = lowered(instruction, Variables.cluster_size)
    assert does.refusal is not None or does.row is not None
    for name in ("writes", "reads", "values", "follows", "stored", "combination", "leaves_memory", "phase_test"):
        getattr(does, name)
    if does.refusal is None and does.control is None:
        interpreter = Interpreter(Surroundings(Variables(), registers=len(REGISTERS)), instruction, does.ops)
        try:
            assert interpreter.pure() or interpreter.blocking()
        except Refused as refusal:
            assert refusal.message


def test_every_row_is_tried() -> None:
    spellings = (spelling_of(opcode) for opcode in OPCODES)
    heads = {spelling.head for spelling in spellings if isinstance(spelling, Spelling)}
    assert [row.heads for row in TABLE if not row.columns and heads.isdisjoint(row.heads)] == []
