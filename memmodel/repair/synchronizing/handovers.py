"""Accesses and hand-overs as data, made into tests that lack only order.

In: `HandOverPlan`: buffers, agents with their accesses in program order, hand-overs that are wanted. Out: for each
way to signal the hand-overs a litmus test whose signals are relaxed. Settled here: how a hand-over may be signalled.
Threads of one CTA have mbarrier objects and bar.sync, those of one cluster have mbarrier objects and flags in global
memory, and all others have such flags. A bulk copy into shared memory signals its mbarrier object itself, and the
thread that goes on waits for that.

The question of the test is whether an access sees anything but what the order of the hand-overs gives it. Accesses that
conflict have to be ordered by program order and hand-overs, so that there is such a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

from memmodel.errors import InputError, suggestion


class PlanError(InputError):
    """A plan that has no meaning. `name`: the name of the wrong item; empty if it has none."""

    def __init__(self, message: str, *, name: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.name = name


Kind = Literal["read", "write", "copy-in", "copy-out"]
"""A load, a store, a bulk copy from global memory into shared memory, and one from shared memory to global memory."""

Space = Literal["shared", "global"]

WORD = 4
COPY = 16
MOST_NUMBER = (1 << 31) - 1
MOST_WAYS = 64
"""At most this many ways to signal are tried."""


@dataclass(frozen=True, slots=True)
class SharedBuffer:
    """Memory that is handed over. `bytes`: a multiple of 4; `cta`: whose shared memory it is."""

    name: str
    bytes: int = WORD
    space: Space = "shared"
    cta: int = 0


@dataclass(frozen=True, slots=True)
class DataAccess:
    """What an agent does with `bytes` of a buffer from `offset` on: 4, 8 or 16, and multiples of 16 for copies."""

    name: str
    kind: Kind
    buffer: str
    offset: int = 0
    bytes: int = WORD


@dataclass(frozen=True, slots=True)
class Agent:
    """A thread, or a warp that acts as one, with its accesses in program order, and its place.

    `cluster` None: its CTA is a cluster of its own.
    """

    name: str
    accesses: tuple[DataAccess, ...]
    cta: int = 0
    cluster: int | None = None
    gpu: int = 0


@dataclass(frozen=True, slots=True)
class WantedHandOver:
    """Access `then` comes after access `first` is done. Both are names."""

    first: str
    then: str


@dataclass(frozen=True, slots=True)
class HandOverPlan:
    """Agents that share buffers, and the hand-overs that are wanted. Raises InputError for what cannot be meant."""

    name: str
    buffers: tuple[SharedBuffer, ...]
    agents: tuple[Agent, ...]
    hand_overs: tuple[WantedHandOver, ...]

    def __post_init__(self) -> None:
        _check(self)

    @property
    def accesses(self) -> dict[str, tuple[int, int]]:
        """By its name, the number of an access's agent and its own."""
        return {
            access.name: (number, index)
            for number, agent in enumerate(self.agents)
            for index, access in enumerate(agent.accesses)
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> HandOverPlan:
        """From JSON values with the names of the fields. Raises InputError."""
        try:
            return cls(
                str(values["name"]),
                tuple(SharedBuffer(**value) for value in values["buffers"]),
                tuple(
                    Agent(**{**value, "accesses": tuple(DataAccess(**access) for access in value["accesses"])})
                    for value in values["agents"]
                ),
                tuple(WantedHandOver(**value) for value in values["hand_overs"]),
            )
        except KeyError as error:
            raise PlanError(f"a pipeline has no {error}", hint="name, buffers, agents, hand_overs") from None
        except TypeError as error:
            raise PlanError(f"not a pipeline: {error}", hint="docs/sync.md shows one") from None


def _check(pipeline: HandOverPlan) -> None:
    buffers = {buffer.name: buffer for buffer in pipeline.buffers}
    accesses = [access for agent in pipeline.agents for access in agent.accesses]
    if not re.fullmatch(r"[\w.+-]{1,80}", pipeline.name, re.ASCII):
        raise PlanError(
            f"{pipeline.name[:40]!r} is no name of a pipeline", name=pipeline.name, hint="letters, digits and _.+-"
        )
    parts: list[SharedBuffer | Agent | DataAccess] = [*pipeline.buffers, *pipeline.agents, *accesses]
    for part in parts:
        _check_numbers(part)
    for names in (
        [buffer.name for buffer in pipeline.buffers],
        [agent.name for agent in pipeline.agents],
        [access.name for access in accesses],
    ):
        for name in names:
            if not (isinstance(name, str) and name.isidentifier() and name.isascii() and len(name) < 40):
                raise PlanError(
                    f"{str(name)[:40]!r} is no name", name=str(name), hint="letters, digits and _, a letter first"
                )
            if names.count(name) > 1:
                raise PlanError(f"two things are called {name}", name=name)
    for buffer in pipeline.buffers:
        if buffer.space not in get_args(Space) or buffer.bytes <= 0 or buffer.bytes % WORD:
            raise PlanError(
                f"buffer {buffer.name}: {buffer.bytes} bytes of {buffer.space}",
                name=buffer.name,
                hint="a multiple of 4, shared or global",
            )
    for agent in pipeline.agents:
        for access in agent.accesses:
            known = buffers.get(access.buffer)
            if known is None:
                raise PlanError(
                    f"access {access.name}: no buffer is called {access.buffer}",
                    name=access.buffer,
                    hint=suggestion(access.buffer, buffers) or None,
                )
            _check_access(agent, access, known, pipeline)
    for hand_over in pipeline.hand_overs:
        for name in (hand_over.first, hand_over.then):
            if name not in pipeline.accesses:
                raise PlanError(
                    f"a hand-over names no access: {name}", name=name, hint=suggestion(name, pipeline.accesses) or None
                )
    _order(pipeline)


def _check_numbers(part: SharedBuffer | Agent | DataAccess) -> None:
    for name in ("bytes", "offset", "cta", "gpu", "cluster"):
        number = getattr(part, name, 0)
        if name == "cluster" and number is None:
            continue
        if type(number) is not int or not 0 <= number <= MOST_NUMBER:
            raise PlanError(
                f"{str(part.name)[:40]}: {name} is {str(number)[:40]}",
                name=str(part.name),
                hint=f"a whole number from 0 to {MOST_NUMBER:,}",
            )


def _check_access(agent: Agent, access: DataAccess, buffer: SharedBuffer, pipeline: HandOverPlan) -> None:
    if access.kind not in get_args(Kind):
        raise PlanError(
            f"access {access.name}: no kind is called {access.kind}", name=access.name, hint=", ".join(get_args(Kind))
        )
    copies = access.kind.startswith("copy")
    fits = access.bytes % COPY == 0 if copies else access.bytes in (4, 8, 16)
    step = COPY if copies else access.bytes
    if (
        not fits
        or access.bytes <= 0
        or access.offset < 0
        or access.offset % step
        or access.offset + access.bytes > buffer.bytes
    ):
        raise PlanError(
            f"access {access.name}: {access.bytes} bytes at {access.offset} of {buffer.name}",
            name=access.name,
            hint="4, 8 or 16 bytes (copies: multiples of 16), aligned, inside the buffer",
        )
    if buffer.space == "shared" and agent.cta != buffer.cta:
        homes = [other.cluster for other in pipeline.agents if other.cta == buffer.cta]
        if copies or agent.cluster is None or agent.cluster not in homes:
            raise PlanError(
                f"access {access.name}: {agent.name} does not reach {buffer.name} so",
                name=access.name,
                hint="loads and stores reach shared memory of the own cluster, copies that of the own CTA",
            )
    if copies and buffer.space != "shared":
        raise PlanError(
            f"access {access.name}: {buffer.name} is global",
            name=access.name,
            hint="a bulk copy is named by its shared buffer",
        )


def _order(pipeline: HandOverPlan) -> dict[str, set[str]]:
    """For each access those before it, by program order and hand-overs.

    Raises InputError for a circle, and for accesses that conflict and are not ordered.
    """
    before: dict[str, set[str]] = {name: set() for name in pipeline.accesses}
    for agent in pipeline.agents:
        for earlier, later in zip(agent.accesses, agent.accesses[1:], strict=False):
            before[later.name].add(earlier.name)
    for hand_over in pipeline.hand_overs:
        before[hand_over.then].add(hand_over.first)
    for middle in before:
        for names in before.values():
            if middle in names:
                names |= before[middle]
    if circle := next((name for name, names in before.items() if name in names), None):
        raise PlanError(f"the hand-overs lead in a circle: {circle} comes before itself", name=circle)
    accesses = [access for agent in pipeline.agents for access in agent.accesses]
    for number, access in enumerate(accesses):
        for other in accesses[number + 1 :]:
            overlap = access.buffer == other.buffer and (
                access.offset < other.offset + other.bytes and other.offset < access.offset + access.bytes
            )
            writes = {"write", "copy-in"} & {access.kind, other.kind}
            ordered = access.name in before[other.name] or other.name in before[access.name]
            if overlap and writes and not ordered:
                raise PlanError(
                    f"{access.name} and {other.name} touch the same bytes, and no hand-over orders them",
                    name=other.name,
                    hint="one that leads from one of them to the other",
                )
    return before


# ---- tests -----------------------------------------------------------------------------------------------------------


def skeletons(pipeline: HandOverPlan) -> Iterator[tuple[tuple[str, ...], str]]:
    """Ways to signal the hand-overs, each with the test that signals so. Raises InputError if there are too many."""
    wanted = [hand_over for hand_over in pipeline.hand_overs if not _needless(pipeline, hand_over)]
    ways = [_ways(pipeline, hand_over) for hand_over in wanted]
    count = 1
    for choices in ways:
        count *= len(choices)
    if count > MOST_WAYS:
        raise InputError(
            f"{count} ways to signal {len(wanted)} hand-overs", hint=f"at most {MOST_WAYS}: fewer hand-overs at once"
        )
    for chosen in product(*ways):
        names = tuple(
            f"{hand_over.first} to {hand_over.then}: {way}" for hand_over, way in zip(wanted, chosen, strict=True)
        )
        yield names, _SkeletonText(pipeline, dict(zip(wanted, chosen, strict=True))).test()


def _needless(pipeline: HandOverPlan, hand_over: WantedHandOver) -> bool:
    """True if program order does it, but for fences and waits of the thread itself."""
    first, then = (pipeline.accesses[name] for name in (hand_over.first, hand_over.then))
    kind = pipeline.agents[first[0]].accesses[first[1]].kind
    return first[0] == then[0] and first[1] < then[1] and kind != "copy-in"


def _ways(pipeline: HandOverPlan, hand_over: WantedHandOver) -> list[str]:
    first, then = (pipeline.accesses[name] for name in (hand_over.first, hand_over.then))
    giver, taker = pipeline.agents[first[0]], pipeline.agents[then[0]]
    one_cta = (giver.gpu, giver.cluster, giver.cta) == (taker.gpu, taker.cluster, taker.cta)
    if giver.accesses[first[1]].kind == "copy-in":
        if not one_cta:
            raise InputError(
                f"{hand_over.first} is a copy, and {taker.name} is in another CTA",
                hint="a thread of the CTA of the copy waits for it, and hands over to the other CTA",
            )
        return ["mbarrier"]
    one_cluster = giver.gpu == taker.gpu and giver.cluster is not None and giver.cluster == taker.cluster
    if one_cta and giver is not taker:
        return ["mbarrier", "bar.sync"]
    return ["mbarrier", "flag"] if one_cluster else ["flag"]


class _SkeletonText:
    """Writes the test of one way to signal."""

    def __init__(self, pipeline: HandOverPlan, ways: Mapping[WantedHandOver, str]) -> None:
        self.pipeline = pipeline
        self.ways = list(ways.items())
        self.before = _order(pipeline)
        self.values = {name: number for number, name in enumerate(pipeline.accesses, 1)}
        self.declared: list[str] = []
        self.wanted: list[str] = []

    def test(self) -> str:
        """The text."""
        threads = [self._thread(number, agent) for number, agent in enumerate(self.pipeline.agents)]
        for number, way in enumerate(way for _, way in self.ways):
            if way == "mbarrier":
                self.declared.append(f".shared .align 8 .b64 sync{number} = mbarrier(1);")
            elif way == "flag":
                self.declared.append(f".global .u32 sync{number} = 0;")
        buffers = [
            f".{buffer.space} .align 16 .u32 {buffer.name}[{buffer.bytes // WORD}] = {{0}};"
            for buffer in self.pipeline.buffers
        ]
        condition = " \\/ ".join(self.wanted) or "false"
        parts = [f"PTX {self.pipeline.name}", *buffers, *self.declared, "", "\n\n".join(threads), ""]
        return "\n".join([*parts, f"~exists ({condition})", ""])

    def _thread(self, number: int, agent: Agent) -> str:
        cluster = f"cluster {agent.cluster}, " if agent.cluster is not None else ""
        lines = [f"thread {agent.name} @ cta {agent.cta}, {cluster}gpu {agent.gpu} {{"]
        for index, access in enumerate(agent.accesses):
            for which, (hand_over, way) in enumerate(self.ways):
                if self.pipeline.accesses[hand_over.then] == (number, index):
                    lines += self._wait(which, way)
            lines += self._does(agent, access)
            for which, (hand_over, way) in enumerate(self.ways):
                if self.pipeline.accesses[hand_over.first] == (number, index):
                    lines += self._signal(which, hand_over, way, agent, access)
        return "\n".join([*(line if line.endswith((":", "{")) else f"    {line}" for line in lines), "}"])

    def _taker(self, hand_over: WantedHandOver) -> Agent:
        return self.pipeline.agents[self.pipeline.accesses[hand_over.then][0]]

    def _wait(self, which: int, way: str) -> list[str]:
        if way == "bar.sync":
            return [f"bar.sync {which + 1}, 64;"]
        if way == "flag":
            return [
                f"WAIT{which}:",
                f"ld.relaxed.cta.global.u32 %f{which}, [sync{which}];",
                f"setp.ne.u32 %p{which}, %f{which}, 1;",
                f"@%p{which} bra WAIT{which};",
            ]
        return [
            f"WAIT{which}:",
            f"mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p{which}, [sync{which}], 0;",
            f"@!%p{which} bra WAIT{which};",
        ]

    def _signal(self, which: int, hand_over: WantedHandOver, way: str, agent: Agent, access: DataAccess) -> list[str]:
        if way == "bar.sync":
            return [f"bar.sync {which + 1}, 64;"]
        if way == "flag":
            return [f"st.relaxed.cta.global.u32 [sync{which}], 1;"]
        if access.kind == "copy-in":
            return []  # the copy signals
        taker = self._taker(hand_over)
        if taker.cta == agent.cta:
            return [f"mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [sync{which}];"]
        return [f"mbarrier.arrive.relaxed.cta.shared::cluster.b64 _, [sync{which}@cta{taker.cta}];"]

    def _does(self, agent: Agent, access: DataAccess) -> list[str]:
        buffer = next(buffer for buffer in self.pipeline.buffers if buffer.name == access.buffer)
        words, place = access.bytes // WORD, self._place(agent, access, buffer)
        if access.kind == "copy-in":
            return self._copy_in(access, words, place)
        if access.kind == "copy-out":
            out = f"{access.name}_out"
            self.declared.append(f".global .align 16 .u32 {out}[{words}] = {{0}};")
            value = self._seen(access)
            self.wanted += [f"{out}[{word}] != {value[word]}" for word in range(words)]
            return [f"cp.async.bulk.global.shared::cta.bulk_group [{out}], [{place}], {access.bytes};"]
        space = (
            "global" if buffer.space == "global" else "shared::cta" if buffer.cta == agent.cta else "shared::cluster"
        )
        vector = f".v{words}" if words > 1 else ""
        if access.kind == "write":
            values = ", ".join([str(self.values[access.name])] * words)
            return [f"st.{space}{vector}.u32 [{place}], {f'{{{values}}}' if words > 1 else values};"]
        registers = [f"%{access.name}{word}" for word in range(words)]
        self.wanted += [f"{agent.name}:{access.name}{word} != {value}" for word, value in enumerate(self._seen(access))]
        return [
            f"ld.{space}{vector}.u32 {{{', '.join(registers)}}}, [{place}];"
            if words > 1
            else f"ld.{space}.u32 {registers[0]}, [{place}];"
        ]

    def _copy_in(self, access: DataAccess, words: int, place: str) -> list[str]:
        source = f"{access.name}_from"
        values = ", ".join([str(self.values[access.name])] * words)
        self.declared.append(f".global .align 16 .u32 {source}[{words}] = {{{values}}};")
        signals = [which for which, (hand_over, _) in enumerate(self.ways) if hand_over.first == access.name]
        if len(signals) != 1:
            raise InputError(
                f"{access.name} is handed over {len(signals)} times", hint="a copy into shared memory once"
            )
        (which,) = signals
        return [
            f"mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [sync{which}], {access.bytes};",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
            f" [{place}], [{source}], {access.bytes}, [sync{which}];",
        ]

    @staticmethod
    def _place(agent: Agent, access: DataAccess, buffer: SharedBuffer) -> str:
        cta = f"@cta{buffer.cta}" if buffer.space == "shared" and buffer.cta != agent.cta else ""
        return f"{buffer.name}{cta}" + (f"+{access.offset}" if access.offset else "")

    def _seen(self, access: DataAccess) -> list[int]:
        """For each word of an access, the value that the last write before it leaves there."""
        writes = [
            other
            for agent in self.pipeline.agents
            for other in agent.accesses
            if other.buffer == access.buffer
            and other.kind in ("write", "copy-in")
            and other.name in self.before[access.name]
        ]
        values = []
        for word in range(access.bytes // WORD):
            at = access.offset + WORD * word
            overlapping = [other for other in writes if other.offset <= at < other.offset + other.bytes]
            last = max(overlapping, key=lambda other: len(self.before[other.name]), default=None)
            values.append(0 if last is None else self.values[last.name])
        return values
