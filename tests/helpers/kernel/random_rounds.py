"""Random litmus tests with loops that are counted and with locks that are tried a number of times."""

from __future__ import annotations

import random

from helpers.kernel.random_waits import SCOPES, Blocks, _data, _test


def lock(seed: int) -> str:
    """Threads that try a lock and give up, or take a ticket; what the lock protects, and what it does not."""
    pick = random.Random(seed)
    many = pick.choice((2, 2, 2, 3))
    apart = pick.random() < 0.4
    wide = pick.choice(("b32", "b32", "b64"))
    threads: Blocks = []
    for who in range(many):
        steps: list[list[str]] = [_data(pick, 90 + who)] if pick.random() < 0.2 else []
        tries = pick.choice((1, 1, 2, 3))
        sem, scope = pick.choice(("acquire", "acquire", "acq_rel", "relaxed")), pick.choice(SCOPES)
        head = [f"atom.{sem}.{scope}.global.cas.{wide} %o, [l], 0, {pick.choice((1, who + 1))};"]
        if pick.random() < 0.15:
            head = [f"atom.{sem}.{scope}.global.exch.{wide} %o, [l], 1;"]
        head.append(f"setp.{pick.choice(('eq', 'eq', 'eq', 'ne'))}.{wide.replace('b', 'u')} %p, %o, 0;")
        if pick.random() < 0.15:
            head.append(f"fence.acq_rel.{pick.choice(SCOPES)};")
        inside = [line for _ in range(pick.choice((1, 2))) for line in _data(pick, 10 * who + pick.randrange(9))]
        sem, scope = pick.choice(("release", "release", "relaxed")), pick.choice(SCOPES)
        free = pick.choice(
            (f"st.{sem}.{scope}.global.{wide} [l], 0;", f"atom.{sem}.{scope}.global.exch.{wide} %f, [l], 0;")
        )
        unlock = [] if pick.random() < 0.1 else [free]
        if tries == 1 and pick.random() < 0.5:  # without a branch
            steps.append([*head, *(f"@%p {line}" for line in [*inside, *unlock])])
        else:
            again = ["add.u32 %i, %i, 1;", f"setp.lt.u32 %q, %i, {tries};", "@%q bra L;"] if tries > 1 else []
            steps.append(["mov.u32 %i, 0;", f"L: {head[0]}", *head[1:], "@%p bra IN;", *again, "bra OUT;"])
            steps.append([f"IN: {inside[0]}", *inside[1:], *unlock, "OUT: mov.u32 %i, 9;"])
        if pick.random() < 0.2:
            steps.append(_data(pick, 80 + who))
        threads.append(steps)
    word = ".global .u64 l = 0;" if wide == "b64" else ".global .u32 l = 0;"
    return _test(
        [".global .u32 x = 0;", ".global .u32 y = 0;", word], threads, [n if apart else 0 for n in range(many)]
    )


def loop(seed: int) -> str:
    """Two or three warps that go round a fixed number of times: slots by parity, barriers, objects, guards."""
    pick = random.Random(seed)
    many = pick.choice((2, 2, 3))
    rounds = pick.choice((2, 2, 3))
    meets = pick.choice(("bar", "bar", "object", "cluster"))
    early = pick.random() < 0.15
    threads: Blocks = []
    for who in range(many):
        mine = rounds - (who == 1 and early)
        body: list[str] = []
        for _ in range(pick.choice((1, 1, 2))):
            body += _slot(pick, who)
            if pick.random() < 0.85:
                body += _meeting(pick, meets, len(body), 32 * many)
        body += _slot(pick, who) if pick.random() < 0.3 else []
        guarded = pick.random() < 0.2
        steps = [
            ["mov.u32 %i, 0;", "mov.u64 %s, s;"],
            ["L: and.b32 %k, %i, 1;", "mul.wide.u32 %a, %k, 4;", "add.u64 %a, %a, %s;", "xor.b32 %n, %k, 1;",
             "mul.wide.u32 %b, %n, 4;", "add.u64 %b, %b, %s;", "setp.eq.u32 %g, %k, 0;"],
            [f"@%g {line}" if guarded and ("[%a]" in line or "[%b]" in line) else line for line in body],
            ["add.u32 %i, %i, 1;", f"setp.lt.u32 %q, %i, {mine};", "@%q bra L;"],
        ]  # fmt: skip
        threads.append([*steps, ["exit;"]])
    variables = [".shared .align 8 .u32 s[2];", f".shared .align 8 .b64 bar = mbarrier({many});"]
    return _test(variables, threads, [0] * many)


def _slot(pick: random.Random, who: int) -> list[str]:
    """An access to the slot of the round, or to the other one."""
    where = pick.choice(("[%a]", "[%a]", "[%b]"))
    number = f"%r{pick.randrange(9)}"
    return [pick.choice((f"ld.shared.u32 {number}, {where};", f"st.shared.u32 {where}, {who + 1};"))]


def _meeting(pick: random.Random, kind: str, number: int, threads: int) -> list[str]:
    """What the threads do where they meet, in each round."""
    if kind == "bar":
        return [pick.choice(("bar.sync 0;", f"bar.sync 1, {threads};", f"barrier.sync 1, {threads};"))]
    if kind == "cluster":
        return [f"barrier.cluster.arrive{pick.choice(('', '', '.relaxed'))};", "barrier.cluster.wait;"]
    sem = pick.choice(("", "", ".relaxed.cta"))
    test = pick.choice(("", "", ".relaxed.cta"))
    return [
        f"mbarrier.arrive{sem}.shared::cta.b64 %t{number}, [bar];",
        f"W{number}: mbarrier.try_wait{test}.shared::cta.b64 %w{number}, [bar], %t{number};",
        f"@!%w{number} bra W{number};",
    ]
