"""Branches whose sides only compute: where they meet and what they change, by all paths of random functions."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from helpers.examples import seeds
from helpers.kernel.samples import entry, module

from memmodel.base.graphs import reached
from memmodel.isa.lowered import Body, body_of
from memmodel.kernel.flow.detours import detour

STEPS = (
    "add.u32 %r1, %r1, 1;", "mov.u32 %r2, %r1;", "setp.eq.u32 %p3, %r1, 4;", "st.local.u32 [l], %r1;",
    "ld.local.u32 %r4, [l];", "mov.u32 %r5, %clock;",
)  # fmt: skip
SEEN_BY_OTHERS = ("st.shared.u32 [s], 1;", "exit;", "@%p2 exit;", "bar.sync 0;", "trap;")


def random_body(seed: int) -> Body:
    """A branch by a register, and behind it instructions that mostly compute, with jumps to and fro."""
    pick = random.Random(seed)
    size = pick.randint(3, 9)
    lines = [".local .align 4 .b8 l[4];", f"@%p1 bra L{pick.randrange(size)};"]
    for number in range(size):
        kind = pick.random()
        guard = pick.choice(("", "@%p3 ", "@%p3 ", "@!%p4 "))
        # Most jumps lead on.
        target = pick.randrange(size) if pick.random() < 0.25 else pick.randint(min(number + 1, size), size)
        line = pick.choice(STEPS) if kind < 0.6 else f"{guard}bra L{target};" if kind < 0.9 else None
        lines.append(f"L{number}: {line or pick.choice(SEEN_BY_OTHERS)}")
    return body_of(entry(module("\n".join([*lines, f"L{size}: st.shared.u32 [s], %r1;"]))))


def computes(body: Body, at: int) -> bool:
    return body[at].computes or body[at].private


def without(body: Body, branch: int, join: int | None) -> set[int]:
    """The instructions that are reached from a branch on paths that end before `join`, and where it is left."""

    def follows(at: int) -> Iterable[int]:
        return body[at].follows if at != join and (computes(body, at) or body[at].jumps) else ()

    return reached(body[branch].follows, follows) - {join}


def meetings(body: Body, branch: int) -> set[int]:
    """The instructions that every path from a branch comes to, by instructions that only compute; from each instruction
    before it there is a path to it."""
    found = set[int]()
    for join in without(body, branch, None) - {branch}:
        before = without(body, branch, join)
        leaves = any(not (computes(body, at) or body[at].jumps) for at in before)
        comes = all(join in reached(body[at].follows, lambda place: body[place].follows) for at in before)
        if not leaves and comes:
            found.add(join)
    return found


@pytest.mark.generated
@pytest.mark.parametrize("seed", seeds(60))
def test_where_the_sides_meet(seed: int) -> None:
    body = random_body(seed)
    branch = next(at for at, does in enumerate(body) if does.jumps)
    way = detour(body, branch, lambda at: computes(body, at))
    possible = meetings(body, branch)
    if way is None:
        reaches = without(body, branch, None)
        loops = any(at in without(body, at, None) for at in reaches)
        assert loops or not possible
        return
    assert way.join in possible
    before = without(body, branch, way.join)
    assert not any(join in before for join in possible), "there is a nearer one"
    assert set(way.inside) == before
    assert set(way.slots) == {slot for at in before for slot in body[at].writes}
    among = {at: set(body[at].follows) & before for at in before}
    assert way.loops == any(at in reached(among[at], among.__getitem__) for at in before)
    assert way.stores == any(body[at].stores for at in before)


LOOP = """
.local .align 4 .b8 l[4];
mov.u32 %r2, 0;
@%p1 bra OUT;
L: {round}
@%p3 bra L;
OUT: st.shared.u32 [s], %r1;
"""
PRINT = "{ .param .b32 c; call (c), again, (); ld.param.b32 %r4, [c]; }\nsetp.eq.u32 %p3, %r4, 1;"
AGAIN = ".func (.param .b32 c) again() { .reg .b32 %a; mov.u32 %a, 1; st.param.b32 [c], %a; ret; }\n"


@pytest.mark.parametrize(
    ("round", "ends"),
    [
        ("add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p3, %r1, 9;", True),
        ("mov.u32 %r1, %r3;\nadd.u32 %r3, %r1, 1;\nsetp.lt.u32 %p3, %r1, 9;", True),
        ("ld.local.u32 %r4, [l];\nsetp.eq.u32 %p3, %r4, 1;", True),
        ("mov.u32 %r4, %clock;\nsetp.lt.u32 %p3, %r4, 9;", True),
        (PRINT, True),
        # A loop before one that ends.
        ("@%p4 bra L;\nM: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p3, %r1, 9;\n@%p3 bra M;\nmov.pred %p3, 0;", False),
        ("xor.b32 %r4, %r2, 1;\nsetp.eq.u32 %p3, %r4, 1;", False),
        ("add.u32 %r1, %r1, 1;\nsetp.eq.u32 %p3, %r2, 0;", False),
        ("M: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p4, %r1, 9;\n@%p4 bra M;\nsetp.eq.u32 %p3, %r2, 0;", False),
        ("add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p3, %r1, 9;\nsetp.eq.u32 %p4, %r2, 0;\n@%p4 bra N;\nmov.u32 %r6, 1;\nN:",
         True),
        ("setp.eq.u32 %p4, %r2, 0;\n@%p4 bra N;\nadd.u32 %r1, %r1, 1;\nN: setp.lt.u32 %p3, %r1, 9;", False),
        ("M: setp.eq.u32 %p4, %r2, 0;\n@%p4 bra M;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p3, %r1, 9;", False),
    ],
)  # fmt: skip
def test_a_loop_on_the_way_may_end(round: str, ends: bool) -> None:
    """The rounds of each loop change something on which its end depends."""
    body = body_of(entry(module(LOOP.format(round=round), AGAIN)))
    branch = next(at for at, does in enumerate(body) if does.jumps)
    way = detour(body, branch, lambda at: computes(body, at) or body[at].calls)
    assert (way is not None) == ends
    if way is not None:
        assert way.loops
        assert way.stores == bool(way.calls) == ("call" in round)
