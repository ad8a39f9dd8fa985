"""What depends on a load, against random functions that are executed with numbers: two executions that differ in what
it returns are equal in all that does not depend on it."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import NamedTuple

import pytest
from helpers.examples import seeds
from helpers.kernel.one_thread import SET_UP, Step, execute, noise
from helpers.kernel.samples import entry, module

from memmodel.isa.lowered import body_of
from memmodel.kernel.executions.dependence import dependent, only_values
from memmodel.ptx.module.syntax import PtxFunction
from memmodel.ptx.operands import Imm, Mem, Register
from memmodel.ptx.vocabulary import Sem

LINES = (
    "mov.u32 R, R;", "add.u32 R, R, 1;", "mov.u32 R, N;", "setp.eq.u32 P, R, N;", "setp.ne.and.u32 P, R, N, P;",
    "selp.u32 R, N, R, P;", "@G mov.u32 R, N;", "st.shared.u32 A, R;", "st.shared.u32 A, R;", "ld.shared.u32 R, A;",
    "ld.shared.u32 R, A;", "@G st.shared.u32 A, N;", "@G ld.shared.u32 R, A;", "st.relaxed.cta.shared.u32 A, R;",
    "ld.relaxed.cta.shared.u32 R, A;", "@G bra L;", "@G bra L;", "bra L;", "fence.acq_rel.cta;", "@G exit;",
    "and.b32 %r9, R, 4;", "red.relaxed.cta.shared.add.u32 [s+12], R;",
)  # fmt: skip


def random_function(seed: int) -> PtxFunction:
    """A load, and what may depend on it."""
    pick = random.Random(seed)
    size, at = pick.randint(4, 12), pick.randrange(3)
    lines = [f"mov.u32 %r{number}, {pick.randrange(3)};" for number in range(5, 10)]
    for number in range(size):
        line = "ld.relaxed.gpu.global.u32 %r5, [%d0];" if number == at else pick.choice(LINES)
        words = {
            "R": ("%r5", "%r6", "%r7", "%r8"), "P": ("%p5", "%p6"), "G": ("%p5", "!%p5", "%p6"), "N": "0124",
            "A": ("[s]", "[s+4]", "[%r9]"), "L": [f"L{other}" for other in range(number // 2, size + 1)],
        }  # fmt: skip
        filled = [
            "".join(("@" if word[0] == "@" else "", pick.choice(words[bare]), word[-1] if word[-1] in ",;" else ""))
            if (bare := word.strip("@,;")) in words else word
            for word in line.split(" ")
        ]  # fmt: skip
        lines.append(f"L{number}: {' '.join(filled)}")
    return entry(module("\n".join([*lines, f"L{size}: st.shared.u32 [s+8], %r6;"])))


class Thread(NamedTuple):
    """The steps of a thread that runs alone, each with where it accesses memory; whether it has ended."""

    steps: list[tuple[Step, object]]
    ended: bool


def alone(
    function: PtxFunction, seed: int, load: int, returned: int, loads_of: dict[int, set[int]]
) -> Thread:  # fmt: skip
    """Execute a function. `returned`: what the load returns; other loads return what the thread has written, and
    `loads_of` notes by a store the loads that have read its value.
    """
    body, memory = body_of(function), dict[object, tuple[int, int]]()

    def place(step: Step) -> object:
        mem = next((operand for operand in body[step[0]].instruction.operands if isinstance(operand, Mem)), None)
        if mem is None or "global" in body[step[0]].instruction.opcode:
            return None
        return mem.offset + (step[1][0] if isinstance(mem.base, Register) else 0)

    def read(step: Step) -> tuple[int, int]:
        return memory.get(place(step), (noise(seed, 1000 + hash(place(step))), -1))

    def answer(step: Step) -> int:
        if step[0] == load:
            return returned
        value, writer = read(step)
        loads_of[writer].add(step[0])
        return value

    def other(step: Step) -> None:
        at, values = step
        if place(step) is not None:
            stored = body[at].instruction.operands[-1]
            value = stored.value if isinstance(stored, Imm) else values[-1]
            before, _ = read(step)
            memory[place(step)] = (value + before if body[at].atomic else value), at

    steps, end, _ = execute(function, seed, answer, other)
    return Thread([(step, place(step)) for step in steps], end == "exit")


def compared(seed: int) -> None:
    """What does not depend on the load is the same, whatever the load returns."""
    function = random_function(seed)
    body = body_of(function)
    load = next(at for at, does in enumerate(body) if at >= SET_UP and "gpu.global" in does.instruction.opcode)
    loads_of: dict[int, set[int]] = defaultdict(set)
    threads = [alone(function, seed, load, returned, loads_of) for returned in range(4)]
    loads_of.pop(-1, None)  # the value before all stores
    if not all(thread.ended for thread in threads):
        return
    one, *others = threads
    depends = dependent(function, load, loads_of)
    for other in others:
        for at in set(range(len(body))) - depends - {load}:
            assert [step for step in one.steps if step[0][0] == at] == [
                step for step in other.steps if step[0][0] == at
            ]
    if only_values(function, load, loads_of):
        for other in others:
            assert [(at, place) for (at, _), place in one.steps] == [(at, place) for (at, _), place in other.steps]
            for step, same in zip(one.steps, other.steps, strict=True):
                access = body[step[0][0]].access
                assert access is None or access.sem is Sem.WEAK or step == same


@pytest.mark.generated
@pytest.mark.parametrize("seed", (141, 244, 377, 770, *seeds(60)))
def test_what_does_not_depend_on_a_load(seed: int) -> None:
    compared(seed)


@pytest.mark.parametrize(
    "body",
    [
        "{ .param .b32 a; st.param.b32 [a], %r5; call f, (a); }\nst.shared.u32 [s], %r6;",
        "T: .branchtargets A, B;\nbrx.idx %r6, T;\nA: mov.u32 %r7, 1;\nB: st.shared.u32 [s], %r6;",
        "mov.u32 %r6, 1;\nmbarrier.arrive.shared::cta.b64 %d5, [%r5];\nst.shared.u32 [s], %r6;",
    ],
)
def test_behind_what_is_not_followed_everything_may_depend(body: str) -> None:
    """The function that is called may write memory."""
    callee = ".func f(.param .b32 a) { .reg .b32 %a<2>; ld.param.b32 %a1, [a]; st.shared.u32 [0], %a1; ret; }\n"
    function = entry(module("ld.relaxed.gpu.global.u32 %r5, [%d0];\n" + body, callee))
    everything = frozenset(range(len(body_of(function))))
    assert dependent(function, SET_UP, {}) == everything and not only_values(function, SET_UP, {})
