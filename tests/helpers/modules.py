"""Single instructions of compiled modules, and their steps."""

from __future__ import annotations

from memmodel.isa.module import lower_in_module
from memmodel.program.ops import Op
from memmodel.program.warp_ops import WarpOp
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import PtxInstruction
from memmodel.source import Source

REGISTERS = (
    *(("b32", "r"),) * 8,
    *(("b64", "d"),) * 4,
    *(("b16", "h"),) * 2,
    *(("pred", "p"),) * 4,
)
"""The registers by number: %r0 is 0, %d0 is 8, %h0 is 12, %p0 is 14."""


def instruction_of(line: str) -> PtxInstruction:
    """One instruction, whose registers are those of `REGISTERS`; `s` is a variable in shared memory, `g` in global, `a`
    and `b` are arguments, `f` is a function.
    """
    zeros = "".join(
        f"setp.ne.u32 %p{n - 14}, 0, 0;" if letter == "p" else f"mov.{kind} %{letter}{n - first}, 0;"
        for n, (kind, letter) in enumerate(REGISTERS)
        for first in (REGISTERS.index((kind, letter)),)
    )
    text = f""".version 9.3
.target sm_100a
.address_size 64
.global .b32 g[4];
.func f;
.visible .entry k()
{{
.reg .b32 %r<8>; .reg .b64 %d<4>; .reg .b16 %h<2>; .reg .pred %p<4>;
.shared .align 1024 .b8 s[65536];
.param .b32 a, b;
{zeros}
{line}
}}
"""
    body = parse_module(Source("k.ptx", text)).functions["k"].body
    assert body is not None
    return body[-1]


def steps_of(line: str) -> tuple[Op | WarpOp, ...]:
    """The steps of one instruction."""
    return lower_in_module(instruction_of(line))
