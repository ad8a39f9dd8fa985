"""Outcomes worth asking about: those that no interleaving has, and that need every instruction.

In: Draft whose instructions access one place each. Out: outcomes. Every model that is compared is taken to allow what
interleaving the threads allows. A load that can be dropped with the rest still impossible is not needed: the smaller
program has the difference. So is an instruction outside the one cycle of program order and communication.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from memmodel.search.text import Draft, value_of
from memmodel.search.vocabulary import Vocabulary

Point3 = tuple[str, int, int]
"""What an instruction does (r, w, u, or o for a reduction), its place, and the value that it writes."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A draft as loads and stores; `places` in the order in which outcomes list them."""

    threads: tuple[tuple[Point3, ...], ...]
    places: tuple[int, ...]


def plain(it: Draft, vocabulary: Vocabulary) -> Plain | None:
    """The draft as loads and stores; None if it has anything else."""
    threads, number = [], 0
    for body in it.threads:
        mine = []
        for spot in body:
            if spot.use is None:
                continue
            ingredient = vocabulary.accesses[spot.use[0]]
            if ingredient.places != "g":
                return None
            number += ingredient.does in ("w", "u")
            does = "o" if ingredient.does == "u" and not ingredient.answers else ingredient.does
            mine.append((does, spot.use[1][0], value_of(ingredient, number)))
        threads.append(tuple(mine))
    return Plain(tuple(threads), tuple(sorted({place for body in threads for _, place, _ in body})))


def critical_outcomes(it: Plain) -> set[tuple[int, ...]]:
    """The outcomes: what loads return, thread by thread, then what is left in each place."""
    return _Criticism(it).found()


class _Criticism:
    """Outcomes of one program, with what is left of it when instructions are dropped."""

    def __init__(self, it: Plain) -> None:
        self.it = it
        self.nodes = [(thread, at) for thread, body in enumerate(it.threads) for at in range(len(body))]
        self.reads = [node for node in self.nodes if self._of(node)[0] in "ru"]
        self.writes = [node for node in self.nodes if self._of(node)[0] != "r"]
        self._left: dict[frozenset[tuple[int, int]], dict[tuple[int, ...], set[tuple[int, ...]]]] = {}

    def _of(self, node: tuple[int, int]) -> Point3:
        return self.it.threads[node[0]][node[1]]

    def found(self) -> set[tuple[int, ...]]:
        possible = _interleavings(self.it)
        slots = [self._sources(read) for read in self.reads]
        ends = [self._ends(place) for place in self.it.places]
        return {
            outcome
            for outcome in product(*slots, *ends)
            if outcome not in possible and all(self._needed(node, outcome) for node in self.nodes)
        }

    def _sources(self, read: tuple[int, int]) -> list[int]:
        """What a load may return; what two instructions make impossible is found with two instructions."""
        _, place, _ = self._of(read)
        values = _values(self.it, place)
        if len(self.nodes) == 2:
            return values
        thread, at = read
        later = {value for does, where, value in self.it.threads[thread][at:] if where == place and does in "wu"}
        earlier = any(where == place and does != "r" for does, where, _ in self.it.threads[thread][:at])
        return [source for source in values if source not in later and (source or not earlier)]

    def _ends(self, place: int) -> list[int]:
        return [end for end in _values(self.it, place) if end or not _written(self.it, place)]

    def _needed(self, node: tuple[int, int], outcome: tuple[int, ...]) -> bool:
        """True if the outcome is possible without this instruction and all that reads from it."""
        dropped = {node}
        while True:
            gone = [self._of(other) for other in dropped if self._of(other)[0] != "r"]
            more = {
                read
                for read, value in zip(self.reads, outcome, strict=False)
                if read not in dropped and any(self._is_from(read, value, write) for write in gone)
            }
            if not more:
                break
            dropped |= more
        kept = [n for n, read in enumerate(self.reads) if read not in dropped]
        for n, place in enumerate(self.it.places):
            value = outcome[len(self.reads) + n]
            if not any(where == place and _shows(value, does, wrote) for does, where, wrote in gone):
                kept.append(len(self.reads) + n)
        return tuple(outcome[n] for n in kept) in self._possible(frozenset(dropped), tuple(kept))

    def _is_from(self, read: tuple[int, int], value: int, write: Point3) -> bool:
        return self._of(read)[1] == write[1] and _shows(value, write[0], write[2])

    def _possible(self, dropped: frozenset[tuple[int, int]], kept: tuple[int, ...]) -> set[tuple[int, ...]]:
        """What interleavings of the rest give, of what is kept of an outcome."""
        known = self._left.setdefault(dropped, {})
        if kept not in known:
            rest = tuple(
                tuple(point for at, point in enumerate(body) if (thread, at) not in dropped)
                for thread, body in enumerate(self.it.threads)
            )
            outcomes = _interleavings(Plain(rest, self.it.places))
            left = [n for n, read in enumerate(self.reads) if read not in dropped]
            left += [len(self.reads) + n for n in range(len(self.it.places))]
            where = [left.index(n) for n in kept]
            known[kept] = {tuple(rest_outcome[n] for n in where) for rest_outcome in outcomes}
        return known[kept]


def _shows(value: int, does: str, wrote: int) -> bool:
    """True if a value shows that `wrote` was written."""
    return bool(value & wrote) if does == "o" else (value & 7) == wrote if wrote < 8 else value == wrote


def _values(it: Plain, place: int) -> list[int]:
    """What the place may hold at any time."""
    writes = [value for body in it.threads for does, where, value in body if where == place and does in "wu"]
    bits = [value for body in it.threads for does, where, value in body if where == place and does == "o"]
    values = [0, *writes]
    for bit in bits:
        values += [value | bit for value in values]
    return values


def _written(it: Plain, place: int) -> bool:
    return any(where == place and does != "r" for body in it.threads for does, where, _ in body)


def _interleavings(it: Plain) -> set[tuple[int, ...]]:
    """What running the threads in turns gives."""
    none: tuple[int, ...] = ()
    start = ((0,) * len(it.threads), (0,) * len(it.places), (none,) * len(it.threads))
    seen = {start}
    todo = [start]
    outcomes = set()
    index = {place: number for number, place in enumerate(it.places)}
    while todo:
        at, memory, loaded = todo.pop()
        moved = False
        for thread, body in enumerate(it.threads):
            if at[thread] == len(body):
                continue
            moved = True
            does, place, value = body[at[thread]]
            where = index[place]
            now, got = memory, loaded
            if does in "ru":
                got = (*loaded[:thread], (*loaded[thread], memory[where]), *loaded[thread + 1 :])
            if does != "r":
                new = memory[where] | value if does == "o" else value
                now = (*memory[:where], new, *memory[where + 1 :])
            state = ((*at[:thread], at[thread] + 1, *at[thread + 1 :]), now, got)
            if state not in seen:
                seen.add(state)
                todo.append(state)
        if not moved:
            outcomes.add((*(value for mine in loaded for value in mine), *memory))
    return outcomes
