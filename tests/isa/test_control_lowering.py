"""The steps of control flow in modules, each worked out by hand from its page."""

from __future__ import annotations

import pytest
from helpers.isa_samples import shown
from helpers.modules import instruction_of, steps_of

from memmodel.errors import InputError
from memmodel.isa.lowered import lowered

BEHIND = 19
"""The number of an instruction behind the one that is asked for."""

WORKED_OUT_IN_MODULES: dict[str, list[str]] = {
    "bra.uni A; A:": [f"Jump({BEHIND})"],
    "brx.idx %r0, T; T: .branchtargets A, B; A: B:": [f"JumpByTable([{BEHIND} {BEHIND}] %0)"],
    "ret;": ["Return()"],
    "exit;": ["EndThread()"],
    "trap;": ["Trap(trap)"],
    "brkpt;": ["Trap(brkpt)"],
    "call f;": ["CallFunction(f - [] [])"],
    "call (a), f, (b, a);": ["CallFunction(f - [b a] [a])"],
    "call.uni f, (b);": ["CallFunction(f - [b] [])"],
    "call (a), %d0, (b), P; P: .callprototype (.param .b32 _) _ (.param .b32 _);": ["CallFunction( %8 [b] [a])"],
    # The least alignment is that of the frame.
    "alloca.u64 %d0, %d1;": ["OnStack(8 size=%9 alignment=8)"],
    "alloca.u64 %d0, 40, 4;": ["OnStack(8 size=40 alignment=8)"],
    "alloca.u32 %r0, %r1, 64;": ["OnStack(0 size=%1 alignment=64)"],
    "stacksave.u64 %d0;": ["OnStack(8)"],
    "stackrestore.u64 %d0;": ["OnStack(- end=%8)"],
}


@pytest.mark.parametrize("line", WORKED_OUT_IN_MODULES)
def test_steps(line: str) -> None:
    assert shown(list(steps_of(line))) == WORKED_OUT_IN_MODULES[line]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("brx.idx %r0, A; A:", "takes a list of branch targets, and this is the label 'A'"),
        ("brx.idx %d0, T; T: .branchtargets A; A:", "has 64 bits"),
        ("bra T; T: .branchtargets A; A:", "goes to a label of this function"),
        ("call (a), f, (%r0);", "only variables in .param"),
        ("call (a);", "takes the name of a function"),
        ("call 7;", "takes the name of a function"),
        ("alloca.u64 %r0, %d1;", "has 32 bits"),
        ("alloca.u64 %d0, %d1, 3;", "power of 2"),
        ("stacksave %d0;", "needs a type"),
    ],
)
def test_what_the_isa_does_not_have(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        steps_of(line)


def test_where_branches_lead() -> None:
    branch = lowered(instruction_of("brx.idx %r0, T; T: .branchtargets A, B; A: B:"))
    assert branch.jumps_by_table and not branch.jumps and branch.target is None and not branch.goes_on
    assert branch.targets == (BEHIND, BEHIND)
    call = lowered(instruction_of("call f;"))
    assert call.calls and call.goes_on and call.targets == () and not call.ends
