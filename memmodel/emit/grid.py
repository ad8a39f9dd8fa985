"""Where each litmus thread runs in a launch: GPU, CTA, warp, lane.

In: LitmusTest. Out: Grid. Settled here: a litmus thread is a warp, or four where wgmma wants a warpgroup. Threads that
the test puts into one warp are its lanes 0, 1, …. A thread that reads or writes tensor memory is the first warp of a
warpgroup. CTA n of a cluster has rank n in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from memmodel.errors import InputError
from memmodel.litmus.constants import all_instructions, instructions
from memmodel.litmus.syntax import Instruction, LitmusTest, Thread
from memmodel.program.special import is_special
from memmodel.ptx.operands import Reg

MAX_WARPS = 32
MAX_CLUSTER = 16
GROUP = 4
"""Warps of a warpgroup."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of one litmus thread. `lane` is None where it has its warps to itself."""

    thread: Thread
    gpu: int
    ctaid: int
    warp: int
    warps: int = 1
    lane: int | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """A launch: CTAs in the grid of each GPU, CTAs in a cluster, warps in a CTA, GPUs.

    `clustered`: the test names clusters, so the launch does, even if each has one CTA.
    """

    seats: tuple[Seat, ...]
    ctas: int
    cluster: int
    warps: int
    gpus: int
    clustered: bool

    def number(self, seat: Seat) -> int:
        """The warp's number among all warps of all GPUs."""
        return (seat.gpu * self.ctas + seat.ctaid) * self.warps + seat.warp

    @property
    def idle(self) -> bool:
        """True if the launch has warps that belong to no thread of the test."""
        taken = {self.number(seat) + warp for seat in self.seats for warp in range(seat.warps)}
        return len(taken) < self.gpus * self.ctas * self.warps

    def special(self, seat: Seat, name: str) -> int | None:
        """The value of a special register of a thread; None for a register that the launch does not decide."""
        base, _, axis = name.partition(".")
        cluster, rank = divmod(seat.ctaid, self.cluster)
        size = base in ("cluster_nctarank", "cluster_nctaid")
        if axis in ("y", "z"):
            return int(size)
        values = {"ctaid": seat.ctaid, "clusterid": cluster, "cluster_ctaid": rank, "cluster_ctarank": rank}
        return self.cluster if size else values.get(base)

    def has_cta(self, cta_id: tuple[object, ...]) -> bool:
        """True if this CTA is in the launch."""
        return any(seat.thread.place.cta_id == cta_id for seat in self.seats)

    def seat_of_cta(self, cta_id: tuple[object, ...]) -> Seat:
        """Some thread of that CTA."""
        return next(seat for seat in self.seats if seat.thread.place.cta_id == cta_id)


def arrange(test: LitmusTest) -> Grid:
    """Seat every thread. Raises InputError for a CTA or a cluster that no GPU has."""
    cluster = _cluster_size(test)
    members: dict[tuple[object, ...], list[Thread]] = {}
    for thread in test.threads:
        members.setdefault(thread.place.cta_id, []).append(thread)
    ids = _cta_numbers(test, cluster)
    gpus = sorted({thread.place.gpu for thread in test.threads})
    seats: dict[str, Seat] = {}
    most = 1
    for cta_id, threads in members.items():
        first = 0
        for key, group in _warps(threads).items():
            width = GROUP if key[0] == "group" else 1
            if any(reaches_quarter(thread) for thread in group):
                first += -first % GROUP
            for lane, thread in enumerate(group):
                gpu = gpus.index(thread.place.gpu)
                seats[thread.name] = Seat(thread, gpu, ids[cta_id], first, width, lane if len(group) > 1 else None)
            first += width
        if first > MAX_WARPS:
            raise InputError(f"a CTA of {first} warps", threads[-1].span, f"a CTA has at most {MAX_WARPS} warps")
        most = max(most, first)
    ctas = max(ids.values()) + 1
    ctas += -ctas % cluster
    named = cluster > 1 or any(thread.place.cluster is not None for thread in test.threads)
    return Grid(tuple(seats[thread.name] for thread in test.threads), ctas, cluster, most, len(gpus), named)


def _cluster_size(test: LitmusTest) -> int:
    """1 where every cluster has one CTA and no CTA is named by its rank."""
    clusters: dict[tuple[object, ...], set[int]] = {}
    for thread in test.threads:
        clusters.setdefault(thread.place.cluster_id, set()).add(thread.place.cta)
    ranked = any(_ranks(instruction) for instruction in all_instructions(test))
    if not ranked and all(len(ctas) == 1 for ctas in clusters.values()):
        return 1
    size = 1
    for thread in test.threads:
        if thread.place.cluster is not None:
            size = max(size, thread.place.cta + 1)
            if size > MAX_CLUSTER:
                hint = f"number the CTAs of a cluster from 0; it has at most {MAX_CLUSTER}"
                raise InputError(f"CTA {thread.place.cta} in a cluster", thread.span, hint)
    return size


def _ranks(instruction: Instruction) -> bool:
    """True if the instruction names CTAs by their ranks in the cluster."""
    named = ("multicast::cluster", "cta_group::2", "mapa", "getctarank")
    return any(part in named for part in instruction.parts) or any(
        isinstance(operand, Reg) and is_special(operand.name) and "cluster" in operand.name
        for operand in instruction.operands
    )


def _cta_numbers(test: LitmusTest, cluster: int) -> dict[tuple[object, ...], int]:
    """%ctaid.x of every CTA; the clusters of a GPU follow each other in the order in which the test names them."""
    clusters: dict[int, dict[tuple[object, ...], int]] = {}
    numbers: dict[tuple[object, ...], int] = {}
    for thread in test.threads:
        place = thread.place
        known = clusters.setdefault(place.gpu, {})
        index = known.setdefault(place.cluster_id, len(known))
        rank = place.cta if cluster > 1 and place.cluster is not None else 0
        numbers[place.cta_id] = index * cluster + rank
    return numbers


def _warps(threads: list[Thread]) -> dict[tuple[object, ...], list[Thread]]:
    """The threads of a CTA by warp; warpgroups come first, since they begin at a multiple of four."""
    warps: dict[tuple[object, ...], list[Thread]] = {}
    for thread in sorted(threads, key=lambda thread: not needs_group(thread)):
        key: tuple[object, ...] = ("own", thread.name)
        if thread.place.warp is not None:
            key = ("warp", thread.place.warp)
        if needs_group(thread):
            key = ("group", *key[1:])
        warps.setdefault(key, []).append(thread)
    return warps


def reaches_quarter(thread: Thread) -> bool:
    """True if the thread uses tcgen05.ld or tcgen05.st, with which warp n of a warpgroup reaches the n-th quarter of
    the lanes of tensor memory. All such threads are first warps: their addresses are in the first quarter."""
    return any(instruction.parts[:2] in (("tcgen05", "ld"), ("tcgen05", "st")) for instruction in instructions(thread))


def needs_group(thread: Thread) -> bool:
    """True if the thread uses wgmma or setmaxnreg, which the four warps of a warpgroup execute together."""
    return any(instruction.parts[0] in ("wgmma", "setmaxnreg") for instruction in instructions(thread))
