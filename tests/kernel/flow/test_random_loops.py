"""What the text says of loops that poll, against random functions that are executed with numbers.

A loop that is a wait does the same however often it is repeated: the same effects with the same values come behind it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from helpers.examples import seeds
from helpers.kernel.one_thread import Step, asks, execute
from helpers.kernel.samples import entry, module

from memmodel.isa.lowered import body_of
from memmodel.kernel.flow.ahead import NOBODY, looking_ahead
from memmodel.kernel.flow.polling import complaints
from memmodel.kernel.flow.rounds import ends_alike, reads_again
from memmodel.ptx.module.syntax import PtxFunction

COMPUTING = (
    "mov.u32 R, N;", "mov.u32 R, N;", "mov.u32 R, R;", "add.u32 R, R, 1;", "xor.b32 R, R, 1;", "mov.u32 R, %clock;",
    "setp.eq.u32 P, R, N;", "setp.ne.u32 P, R, N;", "setp.lt.and.u32 P, R, 2, P;", "selp.u32 R, N, N, P;",
    "or.pred P, P, P;", "not.pred P, P;", "nanosleep.u32 5;", "@G mov.u32 R, N;", "@G add.u32 R, R, 1;",
    "@G nanosleep.u32 5;",
)  # fmt: skip
ELSE = ("fence.acq_rel.gpu;", "st.shared.u32 [s], R;", "@G st.shared.u32 [s], R;", "@G trap;", "@G exit;")
LOAD, TEST = "ld.acquire.gpu.global.u32 %r5, [D];", "mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], A;"
AGAIN = (
    "mov.u32 %r9, 1;", "mov.u32 %r9, R;", "@G mov.u32 %r9, R;", "mov.u32 %r9, %clock;", "selp.u32 %r9, 0, 1, P;",
    "mov.u32 %r9, 1;\nmov.u32 %r9, 0;",
)  # fmt: skip
"""What a loop computes again in each round, for its test."""
PEEKS = tuple(
    f"mbarrier.test_wait.parity{sem}.shared::cta.b64 %p6, [%r4], A;" for sem in ("", "", "", "", ".relaxed.cta")
)


def random_function(seed: int, poll: str, *, ahead: bool = False) -> PtxFunction:
    """A loop that polls, perhaps with other things in it, and stores behind it."""
    pick = random.Random(seed)

    def filled(line: str) -> str:
        for letter, choices in (
            ("G", ("%p5", "!%p5", "%p6", "%p7", "!%p7")), ("R", ("%r5", "%r6", "%r7", "%r8")), ("N", "0123"),
            ("P", ("%p5", "%p6", "%p7")), ("A", ("0", "1", "%r6", "%r7", "%r9")), ("D", ("%d0", "%d0", "%d2")),
        ):  # fmt: skip
            words = line.split(" ")
            line = " ".join(
                word.replace(letter, pick.choice(choices)) if word.strip(",;@[]") == letter else word for word in words
            )
        return line

    def some(most: int) -> list[str]:
        count = pick.choice((0, 0, *range(most + 1)))
        return [filled(pick.choice(ELSE if pick.random() < 0.04 else COMPUTING)) for _ in range(count)]

    known = [f"mov.u32 %r{number}, {pick.randrange(3)};" for number in (5, 6, 7, 8) if pick.random() < 0.7]
    result = "setp.ne.u32 %p5, %r5, 1;" if poll == LOAD else ""
    again = pick.choice(("", "", "add.s64 %d2, %d2, 4;")) if poll == LOAD else filled(pick.choice(("", "", *AGAIN)))
    inner = pick.choice(("L", "L", "L", "L", "M"))
    enters = pick.choice(("", "", "", "", "bra M;"))
    peeks = (
        [filled(pick.choice(PEEKS)), *some(1), f"@{pick.choice(('', '', '!'))}%p6 bra OUT;", *some(1)] if ahead else []
    )
    usual = "@%p5" if poll == LOAD else "@!%p5"
    test = pick.choice((usual, usual, usual, usual, filled("@G")))
    ends = pick.choice(("", "", "", "", "", "", f"{filled('@G')} bra OUT;", f"{filled('@G')} bra L;", "@%p7 bra LAST;"))
    guard = pick.choice(("", "", "", "", "", "", "", "@%p7 "))
    last = pick.choice(("", filled("st.shared.u32 [s], R;"), "@%p6 st.shared.u32 [s], 1;"))
    lines = [
        *known, "setp.eq.u32 %p6, %r6, 0;", "setp.eq.u32 %p7, %r7, 0;", *peeks, enters,
        "L: nanosleep.u32 5;", *some(2), again, "M: nanosleep.u32 5;" if "M" in inner + enters else "",
        guard + filled(poll), *some(1), result, *some(2), ends, *some(1), f"{test} bra {inner};",
        "OUT: nanosleep.u32 5;", *some(2), last, "LAST: st.shared.u32 [s+4], 7;",
    ]  # fmt: skip
    return entry(module("\n".join(filter(None, lines))))


class Seen(NamedTuple):
    """What others notice of an execution, what polls in it, and why it ended."""

    effects: list[Step]
    polls: list[Step]
    end: str


def executed(
    function: PtxFunction, poll: int, answers: Sequence[int], seed: int, peeked: int = 0, *, fences: bool = False
) -> Seen:  # fmt: skip
    """Execute a function. `answers`: what the poll returns, one after the other; other tests return `peeked`. `fences`:
    they have no effect.
    """
    body, left = body_of(function), list(answers)

    def answer(step: Step) -> int | None:
        return peeked if step[0] != poll else left.pop(0) if left else None

    steps, end, _ = execute(function, seed, answer)
    polls = [step for step in steps if asks(body[step[0]])]
    others = [step for step in steps if not asks(body[step[0]]) and not body[step[0]].without_effect]
    return Seen([step for step in others if not (fences and body[step[0]].fences)], polls, end)


def poll_of(function: PtxFunction, word: str) -> int:
    return next(at for at, does in enumerate(body_of(function)) if does.instruction.opcode.startswith(word))


WAITS, AHEAD = (107,), (67, 77, 94, 100, 131)
"""Seeds that were chosen since wrong conditions show in them."""
TAIL = (1, 0, 2, 3, 1, 1, 1)


def same_later(
    function: PtxFunction, poll: int, repeated: int, tail: Sequence[int], seed: int, *, fences: bool = False
) -> tuple[bool, bool]:  # fmt: skip
    """The poll returns `repeated` once or more often before other values: the thread comes back to the same poll
    without an effect. Whether it then polls as often as without, and whether it has the same effects.
    """
    once = executed(function, poll, tail, seed, fences=fences)
    polls = effects = True
    for times in (1, 2, 5):
        more = executed(function, poll, [repeated] * times + list(tail), seed, fences=fences)
        if "no end" not in (once.end, more.end) and more.end != "trap":
            assert len(set(more.polls[: times + 1])) == 1
            polls &= more.polls[times:] == once.polls
            effects &= (more.effects, more.end) == (once.effects, once.end)
    return polls, effects


@pytest.mark.generated
@pytest.mark.parametrize("seed", (*WAITS, *seeds(40)))
def test_a_test_of_a_phase_that_is_a_wait(seed: int) -> None:
    function = random_function(seed, TEST)
    test = poll_of(function, "mbarrier.try_wait")
    if not complaints(function, [test]) and executed(function, test, [1], seed).polls:
        assert same_later(function, test, 0, (1, 0, 1, 1), seed) == (True, True)


@pytest.mark.generated
@pytest.mark.parametrize("seed", seeds(40))
def test_a_load_that_polls(seed: int) -> None:
    """Rounds may decide how often it polls, and nothing behind that."""
    function = random_function(seed, LOAD)
    load = poll_of(function, "ld.acquire")
    first = execute(function, seed, lambda step: None).first
    if not first:
        return
    around = tuple(pair for pair in first if pair[0] != body_of(function)[load].writes[0])
    for known, fences in ((), False), (around, False), (around, True):
        again = [value for value in range(4) if reads_again(function, load, value, known, fences=fences)]
        for value in again:
            for end in range(4):
                polls, effects = same_later(function, load, value, (end, *TAIL), seed, fences=fences)
                assert effects or not polls
        for ends in ((1, 2), (0, 3), (1, 3)):
            if again and not fences and ends_alike(function, load, again, ends, known):
                one, other = (executed(function, load, [again[0], end, *TAIL], seed) for end in ends)
                assert "trap" in (one.end, other.end) or one == other


@pytest.mark.generated
@pytest.mark.parametrize("seed", (*AHEAD, *seeds(40)))
def test_a_test_that_only_looks_ahead(seed: int) -> None:
    """If the wait passes, the answer of a test before it decides only whether the wait is executed."""
    function = random_function(seed, TEST, ahead=True)
    body = body_of(function)
    test = poll_of(function, "mbarrier.try_wait")
    for wait, peeks in looking_ahead(function).items():
        for peek in peeks:
            passed, failed = (executed(function, peek, [answer] * 9, seed, 1) for answer in (1, 0))
            assert (passed.effects, passed.end) == (failed.effects, failed.end)
            if wait == NOBODY:
                assert passed.polls == failed.polls
            else:
                assert wait == test != peek
                steps = [body[at].phase_test for at in (test, peek)]
                assert len({step and step.label for step in steps}) == 1, "it synchronizes as the wait does"
