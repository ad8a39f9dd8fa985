"""Chains of hand-overs against an oracle: does the last thread surely see what the first one stored?

A chain is two to four threads, each of which hands over to the next by a flag, a barrier or an mbarrier object, with
any semantics and scopes, and fences in between. The oracle knows sections 8.7 to 8.9 and "mbarrier" for such chains
alone, and shares nothing with the model: what synchronizes is worked out link by link, on places of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from helpers.examples import each_seed

from memmodel import api
from memmodel.answer import Observation
from memmodel.cat import load_model
from memmodel.engine import Options
from memmodel.source import Source

Spot = tuple[int, int, int]
"""CTA, cluster, GPU."""

Place = tuple[int, int]
"""Thread, and where in it: before everything, the read of a link, two fences, the write of a link, after everything."""

FIRST, READ, FENCE, SECOND, WRITE, LAST = range(6)
SPOTS: tuple[Spot, ...] = ((0, 0, 0), (0, 0, 0), (0, 0, 0), (1, 0, 0), (1, 0, 0), (2, 1, 0), (3, 2, 1))
SCOPES = ("cta", "cluster", "gpu", "sys")
FENCES = ("", "", "acq_rel", "release", "acquire", "sc")
RELEASES, ACQUIRES = ("acq_rel", "release", "sc"), ("acq_rel", "acquire", "sc")


def includes(one: str, other: str, first: Spot, second: Spot) -> bool:
    """Do two scopes include each other's threads?"""
    same = {
        "cta": first[0] == second[0],
        "cluster": first[1:] == second[1:],
        "gpu": first[2] == second[2],
        "sys": True,
    }
    return same[one] and same[other]


@dataclass
class Chain:
    """`text`: what stands at each place. `fences`: (semantics, scope) by place.

    `links`: (is the write observed, scope that it releases at, scope that the read acquires at), "" for none; None
    where a barrier does both.
    """

    spots: list[Spot]
    text: dict[Place, str] = field(default_factory=dict)
    fences: dict[Place, tuple[str, str]] = field(default_factory=dict)
    links: list[tuple[bool, str, str] | None] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def test(self) -> str:
        lines = ["PTX chain", ".global .u32 x = 0;", *self.declared]
        for number, (cta, cluster, gpu) in enumerate(self.spots):
            body = [self.text[place] for place in sorted(self.text) if place[0] == number]
            lines += [f"thread P{number} @ cta {cta}, cluster {cluster}, gpu {gpu} {{", *body, "}"]
        asked = " /\\ ".join(self.asked)
        return "\n".join([*lines, f"exists ({asked})", ""])


# ---- chains ----------------------------------------------------------------------------------------------------------


def chain(random: Random) -> Chain:
    """A chain, drawn at random."""
    made = Chain([random.choice(SPOTS) for _ in range(random.choice((2, 2, 3, 3, 4)))])
    last = len(made.spots) - 1
    made.text[0, FIRST] = "st.weak.global.u32 [x], 1;"
    made.text[last, LAST] = "ld.weak.global.u32 %r, [x];"
    for number in range(len(made.spots)):
        for at in (FENCE, SECOND):
            sem, scope = random.choice(FENCES), random.choice(SCOPES)
            if sem:
                made.fences[number, at] = sem, scope
                made.text[number, at] = f"fence.{sem}.{scope};"
    for number, (first, second) in enumerate(pairwise(made.spots)):
        ways = [_flag] * 3 + [_bar, _object] * (first == second) + [_object] * (first[1:] == second[1:])
        random.choice(ways)(made, random, number)
    made.asked.append(f"P{last}:r == 0")
    return made


def _flag(made: Chain, random: Random, number: int) -> None:
    """A store, an atomic or a reduction, and a load or an atomic that sees it."""
    write = random.choice(("st.weak", "st.relaxed", "st.release", "atom.relaxed", "atom.release", "red.relaxed"))
    read = random.choice(("ld.weak", "ld.relaxed", "ld.acquire", "atom.relaxed", "atom.acquire", "atom.acq_rel"))
    out, back = random.choice(SCOPES), random.choice(SCOPES)
    written = f"[f{number}], 1"
    made.text[number, WRITE] = {
        "st": f"{_scoped(write, out)}.global.u32 {written};",
        "atom": f"{_scoped(write, out)}.global.exch.b32 %o{number}, {written};",
        "red": f"{_scoped(write, out)}.global.add.u32 {written};",
    }[write.partition(".")[0]]
    made.text[number + 1, READ] = {
        "ld": f"{_scoped(read, back)}.global.u32 %a{number}, [f{number}];",
        "atom": f"{_scoped(read, back)}.global.add.u32 %a{number}, [f{number}], 0;",
    }[read.partition(".")[0]]
    made.declared.append(f".global .u32 f{number} = 0;")
    made.asked.append(f"P{number + 1}:a{number} == 1")
    strong = "weak" not in write + read and includes(out, back, *made.spots[number : number + 2])
    made.links.append((strong, out * write.endswith("release"), back * read.endswith(("acquire", "acq_rel"))))


def _scoped(words: str, scope: str) -> str:
    return words if words.endswith("weak") else f"{words}.{scope}"


def _bar(made: Chain, random: Random, number: int) -> None:
    made.text[number, WRITE] = made.text[number + 1, READ] = f"bar.sync {number + 1}, 64;"
    made.links.append(None)


def _object(made: Chain, random: Random, number: int) -> None:
    """An arrive on the object of the next thread's CTA, which waits."""
    arrive, wait = (random.choice((strong, "relaxed")) for strong in ("release", "acquire"))
    out, back = random.choice(SCOPES[:2]), random.choice(SCOPES[:2])
    to = made.spots[number + 1][0]
    made.declared.append(f".shared .align 8 .b64 m{number} = mbarrier(1);")
    made.text[number, WRITE] = f"mbarrier.arrive.{arrive}.{out}.shared::cluster.b64 _, [m{number}@cta{to}];"
    made.text[number + 1, READ] = (
        f"W{number}: mbarrier.try_wait.parity.{wait}.{back}.b64 %w{number}, [m{number}], 0; @!%w{number} bra W{number};"
    )
    observed = includes(out, back, *made.spots[number : number + 2])
    made.links.append((observed, out * (arrive == "release"), back * (wait == "acquire")))


# ---- the oracle ------------------------------------------------------------------------------------------------------


def surely_seen(made: Chain) -> bool:
    """Does base causality lead from the store of the first thread to the load of the last one, in every execution?"""
    count = len(made.spots)
    edges = {((n, a), (n, a + 1)) for n in range(count) for a in range(LAST)}
    edges |= {edge for number in range(count - 1) for edge in _synchronized(made, number)}
    orders = [place for place, (sem, _) in made.fences.items() if sem == "sc"]
    while True:
        after = {place: _reached(edges, place) for place in (*orders, *((n, READ) for n in range(count)), (0, FIRST))}
        # Fence-SC: the other order would make a read precede the write that it sees.
        forced = {
            (one, other)
            for one in orders
            for other in orders
            if includes(made.fences[one][1], made.fences[other][1], made.spots[one[0]], made.spots[other[0]])
            and any((n, WRITE) in after[one] and other in after[n + 1, READ] for n in range(count - 1))
        }
        if forced <= edges:
            return (count - 1, LAST) in after[0, FIRST]
        edges |= forced


def _synchronized(made: Chain, number: int) -> Iterator[tuple[Place, Place]]:
    """From the first operations of release patterns to the last ones of acquire patterns of a link."""
    link = made.links[number]
    if link is None:
        yield (number, WRITE), (number + 1, READ)
        return
    observed, out, back = link
    heads = [((number, WRITE), out)] * bool(out)
    tails = [((number + 1, READ), back)] * bool(back)
    for (thread, at), (sem, scope) in made.fences.items():
        heads += [((thread, at), scope)] * (thread == number and sem in RELEASES)
        tails += [((thread, at), scope)] * (thread == number + 1 and sem in ACQUIRES)
    for head, one in heads:
        for tail, other in tails:
            if observed and includes(one, other, *made.spots[number : number + 2]):
                yield head, tail


def _reached(edges: set[tuple[Place, Place]], start: Place) -> set[Place]:
    found, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        new = {to for one, to in edges if one == here} - found
        found |= new
        waiting += new
    return found


@each_seed(2)
def test_the_model_says_what_the_oracle_says(seed: int) -> None:
    random, model, seen = Random(seed), load_model("ptx-9.4"), 0
    for _ in range(40):
        made = chain(random)
        answer = api.judge(api.lowered(Source("chain.litmus", made.test)), model, Options("z3"), findings=False)
        assert answer.observation in (Observation.NEVER, Observation.SOMETIMES, Observation.ALWAYS), made.test
        assert (answer.observation is Observation.NEVER) == surely_seen(made), made.test
        seen += surely_seen(made)
    assert 0 < seen < 40
