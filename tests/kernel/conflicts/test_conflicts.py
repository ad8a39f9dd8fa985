"""Which pairs of accesses are judged: those of two lanes stand for those of a warp, of two warps and CTAs for all."""

from __future__ import annotations

from collections.abc import Container, Mapping
from itertools import combinations
from typing import NamedTuple

import pytest
from helpers.examples import SEED, seeds
from helpers.kernel.random_accesses import RandomKernel, random_kernel
from helpers.kernel.samples import entry, judged, launch, module

from memmodel.base.labels import Access, Family, Label, Side, side_of
from memmodel.cat.load import load_model
from memmodel.kernel.conflicts import block_accesses, conflicts
from memmodel.kernel.conflicts.conflicts import OBJECT_BYTES, AlikeThreads, Conflicts
from memmodel.kernel.conflicts.roles import Roles
from memmodel.kernel.conflicts.uses import SharedPlace
from memmodel.kernel.launch import Launch, parse_launch
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.order.flags import Flags
from memmodel.kernel.order.judging import RunJudge
from memmodel.kernel.trace.accesses import WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.ptx.module.syntax import PtxModule

STORES = {
    "the same value": "st.shared.u32 [s], 7;",
    "another value in one lane": "selp.u32 %r10, 1, 7, %p;\nst.shared.u32 [s], %r10;",
    "another value in one lane of another warp": "selp.u32 %r10, 1, 7, %q;\nst.shared.u32 [s], %r10;",
    "a value and a reader": "st.shared.u32 [s], 7;\nbar.warp.sync 0xffffffff;\nld.shared.u32 %r10, [s];",
    "one store and many readers": "@%p st.shared.u32 [s], 7;\nld.shared.u32 %r10, [s];",
    "a store behind a barrier": "st.shared.u32 [s], 7;\nbar.sync 0;\n@%p st.shared.u32 [s], 8;",
    "a value of each lane, twice": "st.shared.u32 [s], %r0;\n@%q st.shared.u32 [s], %r1;",
    "bytes that overlap in part": "st.shared.u32 [s], 0;\n@%p st.shared.u8 [s+1], 0;\n@%q st.shared.u16 [s+2], 1;",
    "a reader between two writers, of which the later one is in its warp": ".reg .pred %m;\nsetp.eq.u32 %m, %r0, 40;\n"
    "@%p st.shared.u32 [s], 7;\n@%m ld.shared.u32 %r10, [s];\n@%q st.shared.u32 [s], 7;",
    "a flag and who looks at it": "@%p st.relaxed.cta.shared.u32 [s], 1;\n@!%p st.shared.u32 [s], 1;",
}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_two_lanes_stand_for_those_that_do_the_same(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = ".reg .pred %p, %q;\nsetp.eq.u32 %p, %r0, 17;\nsetp.eq.u32 %q, %r0, 49;\n" + store

    def findings() -> set[tuple[object, ...]]:
        verdict = judged(named)
        return {(finding.key, finding.count, finding.message, finding.reason) for finding in verdict.findings} | {
            (verdict.word,)
        }

    few = findings()
    monkeypatch.setattr(Conflicts, "_enough_of_warps", lambda self, members, stored: members)
    assert findings() == few


# ---- random kernels --------------------------------------------------------------------------------------------------


CHOSEN = {
    False: (8, 14, 17, 22, 33, 46, 63, 76, 87, 91, 98, 99, 101, 107, 121, 131, 134, 137),
    True: (12, 18, 28, 31, 41, 48, 72, 73, 80, 95, 98, 105, 118, 129),
}
"""Seeds of kernels without and with copies: of 300 those that together make the most conditions matter."""
KERNELS = [
    (asynchronous, seed) for asynchronous, chosen in CHOSEN.items() for seed in (*chosen, *(seeds(24) if SEED else ()))
]


def raised(kernel: RandomKernel, run: LaunchTrace, *, symmetric: bool) -> set[tuple[str, frozenset[int]]]:
    """What is found in one run: rules, each with its instructions."""
    judge = RunJudge(entry(kernel.module), run, symmetric=symmetric, by_instruction=True)
    origins = judge.graph.origins
    flags = Flags(load_model("ptx-9.4"), judge.execution)
    return {(rule, frozenset((origins[a].at, origins[b].at))) for rule, a, b in judge.raised(flags)}


def every(items: list[AlikeThreads]) -> AlikeThreads:
    """All groups as one."""
    ordered = sorted(items, key=lambda item: item.name)
    members = tuple(thread for item in ordered for thread in item.members)
    return AlikeThreads(tuple(item.name for item in ordered), members, any(item.writes for item in ordered))


@pytest.mark.share(3)
@pytest.mark.generated
@pytest.mark.parametrize(("asynchronous", "seed"), KERNELS)
def test_few_threads_show_what_all_threads_show(asynchronous: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = random_kernel(seed, asynchronous=asynchronous)
    run = run_launch(kernel.module, entry(kernel.module), kernel.launch)
    few = raised(kernel, run, symmetric=True)
    monkeypatch.setattr(Conflicts, "_enough_of_warps", lambda self, members, stored: members)
    monkeypatch.setattr(conflicts, "_at_most_two", every)
    monkeypatch.setattr(block_accesses, "_copies_of_two_lanes", lambda run, roles, single, others: single)
    assert few == raised(kernel, run, symmetric=False), kernel.body


# ---- pair by pair ----------------------------------------------------------------------------------------------------


class Touch(NamedTuple):
    """An access of one thread in a run, as bytes: place -> what is left there, if it is a store of known bytes."""

    at: int
    thread: int
    epoch: int
    part: int
    label: Label
    strong: bool
    twin: object
    memory: str
    bytes: Mapping[tuple[Block, int], int | None]

    @property
    def writes(self) -> bool:
        return side_of(self.label) is Side.WRITE


Met = dict[tuple[str, frozenset[int], str], set[str]]
"""Memory, instructions, and the narrowest group that has the threads, each with what the stores leave there."""


def touches(run: LaunchTrace) -> list[Touch]:
    """Every access of the run; one that lanes make together as one of each of them."""
    found = []
    for weak in run.weak():
        value = None if weak.value is None else weak.value.to_bytes(weak.size, "little")
        data = {(weak.block, weak.first + n): None if value is None else value[n] for n in range(weak.size)}
        assert isinstance(weak.label, Access) and weak.label.asynchronous == (weak.issue is not None)
        issues = [] if weak.issue is None else [weak.issue, *weak.others]
        makers = [(issue.thread, issue.order, issue.twin) for issue in issues] or [(weak.thread, weak.epoch, None)]
        memory = weak.block.instance.space.name
        for thread, epoch, twin in makers:
            assert epoch is not None
            found.append(Touch(weak.at, thread, epoch, weak.part, weak.label, False, twin, memory, data))
    for event in (event for thread in run.threads for event in thread.strong()):
        block, epoch = event.block, (event.issue or event).order
        assert block is not None and epoch is not None
        unknown = dict.fromkeys((block, event.first + n) for n in range(event.size))
        memory = block.instance.space.name
        found.append(Touch(event.at, event.thread, epoch, 0, event.label, True, None, memory, unknown))
    return found


def counts_alone(run: LaunchTrace, touch: Touch) -> bool:
    """True of a bulk copy from or to shared memory, and of an access to that of another CTA."""
    block, _ = next(iter(touch.bytes))
    owner = block.instance.owner
    copies = isinstance(touch.label, Access) and touch.label.family in (Family.BULK, Family.BULK_REDUCTION)
    return owner is not None and (owner != run.threads[touch.thread].place.cta_id or copies)


def meeting(run: LaunchTrace, roles: Roles) -> Met:
    """Two accesses at one byte of which one writes, and not both are strong, by going over all pairs."""
    at_place: dict[tuple[Block, int], list[Touch]] = {}
    for touch in touches(run):
        for place in touch.bytes:
            at_place.setdefault(place, []).append(touch)
    alike = {tuple((id(a), a.bytes[place]) for a in accesses): place for place, accesses in at_place.items()}
    met: Met = {}
    for place in alike.values():
        for a, b in combinations(at_place[place], 2):
            if not (a.writes or b.writes) or (a.strong and b.strong) or a[:5] == b[:5]:
                continue
            how = roles.related(run.threads[a.thread], run.threads[b.thread])
            left = met.setdefault((a.memory, frozenset((a.at, b.at)), how), set())
            if a.writes and b.writes and (a.twin is None or a.twin != b.twin):
                values = a.bytes[place], b.bytes[place]
                left.add("unknown" if None in values else "equal" if values[0] == values[1] else "different")
    return met


def paired(run: LaunchTrace, roles: Roles, all_conflicts: Conflicts) -> Met:
    """The same, as `Conflicts` has it."""
    met: Met = {}
    pairs = [(pair, pair.left.thread, pair.right.thread) for pair in all_conflicts.pairs.values()]
    for place in all_conflicts.places.values():
        pairs += [
            (pair, place.members[n][0].thread, place.members[m][0].thread) for (n, m), pair in place.pairs.items()
        ]
    for pair, first, second in pairs:
        how = roles.related(run.threads[first], run.threads[second])
        where = pair.block.instance.space.name, frozenset((pair.left.at, pair.right.at)), how
        met.setdefault(where, set()).add(pair.stored)
    return met


@pytest.mark.generated
@pytest.mark.parametrize(("asynchronous", "seed"), KERNELS)
def test_accesses_meet_where_they_do_pair_by_pair(asynchronous: bool, seed: int) -> None:
    kernel = random_kernel(seed, asynchronous=asynchronous)
    run = run_launch(kernel.module, entry(kernel.module), kernel.launch)
    roles = Roles(run)
    all_conflicts = Conflicts(run, roles, by_instruction=True)
    met, pairs = meeting(run, roles), paired(run, roles, all_conflicts)
    assert met.keys() == pairs.keys(), kernel.body
    for where, left in met.items():
        assert left <= {"equal"} or pairs[where] - {"equal"}, (where, kernel.body)
        assert left - {"equal"} or "different" not in pairs[where], (where, kernel.body)
    seen = {at for _, ats, _ in pairs for at in ats}
    seen |= {use.at for place in all_conflicts.places.values() for use, _ in place.members}
    assert {touch.at for touch in touches(run) if counts_alone(run, touch)} <= seen, kernel.body
    in_objects = {
        (touch.at, at)
        for touch in touches(run) for block, at in run.objects for n in range(OBJECT_BYTES)
        if (block, at + n) in touch.bytes
    }  # fmt: skip
    assert in_objects == {(use.at, at) for (_, at), (use, _) in all_conflicts.touching.items()}, kernel.body


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("at", [None, 0, 31])
def test_stores_are_compared_at_all_bytes_where_the_same_threads_meet(at: int | None, *, copied: bool) -> None:
    """Two warps store one number at each place but one, and a copy reads all of them or none."""
    other = "" if at is None else f"setp.eq.s32 %p2, %r10, {at};\n@%p2 mov.u32 %r12, %r0;"
    copy = """@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;"""
    body = f"""and.b32 %r10, %r0, 31;
    shl.b32 %r11, %r10, 2;
    add.s32 %r11, %r2, %r11;
    mov.u32 %r12, 5;
    {other}
    st.shared.u32 [%r11], %r12;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    {copy if copied else ""}"""
    rules = {finding.rule for finding in judged(body).findings}
    assert ("data-race" in rules) is (at is not None) and rules


ADD = "atom.relaxed.cta.shared.add.u32 %r8, [s], 1;"


@pytest.mark.parametrize(
    ("body", "roles"),
    [
        (ADD, 1),
        (f"{ADD}\nfence.acq_rel.cta;", 3),
        (ADD.replace("relaxed", "acquire"), 3),
        ("@%p0 st.volatile.shared.u32 [s], 1;\nbar.sync 0;\n@!%p0 ld.volatile.shared.u32 %r8, [s];", 2),
    ],
)
def test_threads_are_told_apart_by_the_write_that_they_read(body: str, roles: int) -> None:
    """Only where the run depends on it, and among atomic operations where their order orders other accesses."""
    read = module(body)
    run = run_launch(read, entry(read), launch(threads=3))
    reads = {event.at for thread in run.threads for event in thread.events if event.source is not None}
    assert len(set(Roles(run, reads).who)) == roles
    assert len(set(Roles(run).who)) == 1 + ("@" in body)


NUMBER = """mov.u32 %r10, %ctaid.x;
shl.b32 %r10, %r10, 6;
add.u32 %r10, %r10, %r0;
and.b32 %r11, %r0, 7;
mul.wide.u32 %d1, %r11, 4;
mov.u64 %d2, masks;
add.u64 %d2, %d2, %d1;
ld.const.u32 %r13, [%d2];
xor.b32 %r14, %r10, %r13;
"""
"""%r10: the number of the thread in the launch; %r14: a number made of it with a mask that depends on the lane."""
ALIKE = {
    "bytes that a thread copies to are written by itself, by a lane beside, a warp, a CTA, a cluster":
        (NUMBER + "mul.wide.u32 %d1, %r10, 16;\nadd.u64 %d1, %d1, %d0;\nmul.wide.u32 %d2, %r14, 16;\n"
         "add.u64 %d2, %d2, %d0;\ncp.async.bulk.global.shared::cta.bulk_group [%d1], [%r2], 16;\n"
         "st.global.u32 [%d2], 7;", (0, 3, 3, 32, 64, 192, 128, 0)),
    "two lanes copy the same, or not the same, to the bytes of both":
        (NUMBER + "shr.u32 %r11, %r10, 1;\nmul.wide.u32 %d1, %r11, 16;\nadd.u64 %d1, %d1, %d0;\n"
         "add.u32 %r15, %r2, %r13;\ncp.async.bulk.global.shared::cta.bulk_group [%d1], [%r15], 16;",
         (0, 0, 0, 16, 0, 0, 16, 0)),
}  # fmt: skip
"""Kernels in which accesses of equal threads meet in several ways, each with its masks."""


def alike(name: str) -> tuple[PtxModule, Launch]:
    """Such a kernel, launched as four CTAs of 64 threads in two clusters."""
    body, masks = ALIKE[name]
    param = {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536}
    launched = {"grid": [4, 1, 1], "block": [64, 1, 1], "cluster": [2, 1, 1], "params": [param]}
    table = f".const .align 4 .b32 masks[8] = {{{', '.join(map(str, masks))}}};\n"
    return module(body, table), parse_launch(launched)


def random_copies(seed: int) -> tuple[PtxModule, Launch]:
    kernel = random_kernel(seed, asynchronous=True)
    return kernel.module, kernel.launch


@pytest.mark.parametrize(
    ("read", "launch"), [*map(alike, ALIKE), *map(random_copies, (98, 105, 129))], ids=[*ALIKE, "98", "105", "129"]
)
def test_accesses_of_one_shape_make_the_place_that_each_makes(
    read: PtxModule, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_launch(read, entry(read), launch)
    made: list[int] = []
    place = Conflicts._place

    def counted(self: Conflicts, first: int, size: int, active: list[int]) -> SharedPlace:
        made[-1] += 1
        return place(self, first, size, active)

    def found() -> object:
        made.append(0)
        all_conflicts = Conflicts(run, Roles(run), by_instruction=False)
        return all_conflicts._seen, [
            (
                name, [(use.thread, use.at, stands) for use, stands in one.members], one.owner, one.comparable,
                [(ends, pair.stored, pair.unknown, pair.first) for ends, pair in one.pairs.items()],
            )
            for name, one in all_conflicts.places.items()
        ]  # fmt: skip

    monkeypatch.setattr(Conflicts, "_place", counted)
    shared = found()
    monkeypatch.setattr(Conflicts, "_shape", lambda self, active: object())
    assert found() == shared
    assert made[0] < made[1] or launch.grid == (2, 1, 1)


COPY = "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 64;"
COPIES = {
    "every lane copies the same": COPY,
    "copies, and stores to where they go": COPY + "\nst.global.u32 [%d0+16], %r0;",
    "copies, and a lane that stores to where they go": COPY + "\n@%p st.global.u32 [%d0+16], 7;",
    "copies, and who reads where they come from":
        "st.shared.u32 [%r2], 7;\n" + COPY + "\n@%q ld.shared.u32 %r10, [%r2];",
    "two copies of each lane": COPY + "\ncp.async.bulk.global.shared::cta.bulk_group [%d0+32], [%r2], 64;",
    "another copy of one lane": COPY + "\n@%p cp.async.bulk.global.shared::cta.bulk_group [%d0+32], [%r2], 64;",
    "lanes that wait for their copies": COPY + "\n@%p cp.async.bulk.commit_group;\n@%p cp.async.bulk.wait_group 0;\n"
    "@%p st.shared.u32 [%r2+8], 7;",
}  # fmt: skip


def test_two_lanes_stand_for_those_that_make_the_same_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = block_accesses._copies_of_two_lanes
    left_out: list[int] = []

    def counted(run: LaunchTrace, roles: Roles, single: list[WeakAccess], others: Container[int]) -> list[WeakAccess]:
        few = kept(run, roles, single, others)
        left_out.append(len(single) - len(few))
        return few

    def findings(copies: str) -> set[tuple[object, ...]]:
        verdict = judged(".reg .pred %p, %q;\nsetp.eq.u32 %p, %r0, 17;\nsetp.eq.u32 %q, %r0, 49;\n" + copies)
        return {(finding.key, finding.count, finding.message, finding.reason) for finding in verdict.findings} | {
            (verdict.word,)
        }

    for name, copies in COPIES.items():
        left_out.clear()
        monkeypatch.setattr(block_accesses, "_copies_of_two_lanes", counted)
        few = findings(copies)
        assert sum(left_out) >= (2 * 60 if name == "every lane copies the same" else 0), name
        monkeypatch.setattr(block_accesses, "_copies_of_two_lanes", lambda run, roles, single, others: single)
        assert findings(copies) == few, name


MATRIX = """mov.u32 %r5, m;
add.u32 %r3, %r5, %r1;
shr.u32 %r20, %r5, 4;
and.b32 %r20, %r20, 0x3fff;
mov.b32 %r21, 0x40000040;
mov.b64 %d10, {%r20, %r21};
st.shared.b32 [%r3], %r0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d10, %d10, 1, 1, 1, 0, 0;
"""
"""All lanes read a matrix together, and each wrote a word of it by itself."""


def test_a_lane_that_does_more_is_looked_at_by_itself() -> None:
    """Of lanes that do something together two stand for all of a role, and each that also does something alone."""
    read = module(MATRIX, ".shared .align 1024 .b8 m[16384];")
    run = run_launch(read, entry(read), launch(128))
    places = Conflicts(run, Roles(run)).places.values()
    seen = [[(use.thread, side_of(use.label)) for use, _ in place.members] for place in places]
    stores = [(thread, place) for place in seen for thread, side in place if side is Side.WRITE]
    assert stores
    assert all((thread, Side.READ) in place for thread, place in stores)
