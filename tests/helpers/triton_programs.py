"""Kernels in PTX as Triton would compile them, and programs that launch them under the stand-in for Triton."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from helpers.patience import PATIENCE
from helpers.places import ROOT

STUBS = ROOT / "tests" / "helpers" / "stubs"


def triton_ptx(*, barrier: bool, threads: int = 64) -> str:
    """A kernel that reverses a block of words in shared memory, with the barrier that it needs or without."""
    wait = "bar.sync 0;" if barrier else ""
    return f"""
.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 1 k_param_0, .param .u64 .ptr .global .align 1 k_param_1,
  .param .u32 k_param_2, .param .u64 .ptr .global .align 1 k_param_3, .param .u64 .ptr .global .align 1 k_param_4)
.reqntid {threads}
{{
.reg .b32 %r<16>; .reg .b64 %rd<8>;
.shared .align 16 .b8 tile[4096];
.loc 1 7 5
ld.param.b64 %rd1, [k_param_0];
ld.param.b64 %rd2, [k_param_1];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
ld.global.b32 %r2, [%rd4];
shl.b32 %r3, %r1, 2;
mov.b32 %r4, tile;
add.s32 %r5, %r4, %r3;
.loc 1 8 5
st.shared.b32 [%r5], %r2;
{wait}
sub.s32 %r6, {threads - 1}, %r1;
shl.b32 %r7, %r6, 2;
add.s32 %r8, %r4, %r7;
.loc 1 9 5
ld.shared.b32 %r9, [%r8];
add.s64 %rd5, %rd2, %rd3;
st.global.b32 [%rd5], %r9;
ret;
}}
.file 1 "kernels.py"
"""


PROLOGUE = """
import sys, threading, os
from helpers.triton_programs import triton_ptx
import memmodel, triton

@triton.jit(ptx=lambda options: triton_ptx(barrier=False, threads=32 * options.get("num_warps", 4)))
def racy(x, y, n, BLOCK): pass

@triton.jit(ptx=triton_ptx(barrier=True))
def good(x, y, n, BLOCK): pass

class Tensor:
    dtype, shape = "torch.float32", (64,)
    def __init__(self, address=0x7000_0000_0000): self.address = address
    def data_ptr(self): return self.address
    def stride(self): return (1,)
    def element_size(self): return 4

x, y = Tensor(), Tensor(0x7000_0001_0000)
"""


def run_program(
    folder: Path, text: str, *arguments: str, env: dict[str, str] | None = None, timeout: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    """A program that finds the stand-in for Triton, as `python program.py`; its verdicts are kept in the folder."""
    program = folder / "program.py"
    program.write_text(PROLOGUE + text)
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join((str(STUBS), str(ROOT), str(ROOT / "tests"))),
        "MEMMODEL_CACHE": str(folder / "cache"), **(env or {}),
    }  # fmt: skip
    command = [sys.executable, *(arguments or (str(program),))]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout, cwd=folder)
