"""What one lane has in a register is given to all lanes that stand for its litmus thread.

In: the register as printed, its width in bits. Out: lines of PTX.
"""

from __future__ import annotations

from memmodel.emit.address import OURS

FULL = "0xffffffff"
_LO, _HI = f"%{OURS}lo", f"%{OURS}hi"
"""The halves of 64 bits, for a shuffle."""
_LOW, _HIGH = f"%{OURS}low", f"%{OURS}high"
"""The halves of 128 bits."""

_HALVES = f"{{{_LO}, {_HI}}}"
_SHUFFLE = "shfl.sync.idx.b32 {0}, {0}, 0, 31, " + FULL + ";"


def within_warp(register: str, width: int) -> list[str]:
    """From the first lane to the others of its warp."""
    return {
        1: [f"selp.u32 {_LO}, 1, 0, {register};", _SHUFFLE.format(_LO), f"setp.ne.u32 {register}, {_LO}, 0;"],
        16: [f"cvt.u32.u16 {_LO}, {register};", _SHUFFLE.format(_LO), f"cvt.u16.u32 {register}, {_LO};"],
        32: [_SHUFFLE.format(register)],
        64: _double(register),
        128: [
            f"mov.b128 {{{_LOW}, {_HIGH}}}, {register};",
            *_double(_LOW),
            *_double(_HIGH),
            f"mov.b128 {register}, {{{_LOW}, {_HIGH}}};",
        ],
    }[width]


def _double(register: str) -> list[str]:
    return [
        f"mov.b64 {_HALVES}, {register};",
        _SHUFFLE.format(_LO),
        _SHUFFLE.format(_HI),
        f"mov.b64 {register}, {_HALVES};",
    ]


def across_warps(register: str, width: int, slot: str, meet: str) -> list[str]:
    """From the first lane of the first warp to all lanes of all warps of a thread, through 16 bytes of shared memory.

    `meet`: a barrier of these warps.
    """
    words = {1: ("b32", _LO), 128: ("v2.b64", f"{{{_LOW}, {_HIGH}}}")}
    kind, value = words.get(width, (f"b{width}", register))
    before = {1: [f"selp.u32 {_LO}, 1, 0, {register};"], 128: [f"mov.b128 {value}, {register};"]}.get(width, [])
    after = {1: [f"setp.ne.u32 {register}, {_LO}, 0;"], 128: [f"mov.b128 {register}, {value};"]}.get(width, [])
    passed = [f"@%{OURS}first st.shared.{kind} [{slot}], {value};", meet, f"ld.shared.{kind} {value}, [{slot}];", meet]
    return [*before, *passed, *after]
