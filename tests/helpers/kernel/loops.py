"""Random loops whose trip count is a parameter: slots, parities, guards and counts that are computed from the round.

`memmodel kernel --any-trips` says of some that more rounds show nothing new. Is that so? They are judged with more.
"""

from __future__ import annotations

import random
import re

from helpers.kernel.samples import HEAD
from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import parse_launch
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

NAME = "trips"


def text(body: str, before: str = "") -> str:
    """An entry `k(ptr p, u32 trips)`: %r8 is the trip count, %p0 says thread 0, %r1 is four times the thread."""
    return f"""{HEAD}
.visible .entry k(.param .u64 k_param_0, .param .u32 {NAME})
{{
.reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .f32 %f<16>; .reg .b64 %d<32>;
.shared .align 16 .b8 s[4096];
.shared .align 8 .b8 bar[64];
ld.param.u64 %d0, [k_param_0];
ld.param.u32 %r8, [{NAME}];
mov.u32 %r0, %tid.x;
shl.b32 %r1, %r0, 2;
mov.u32 %r2, s;
mov.u32 %r4, bar;
setp.eq.s32 %p0, %r0, 0;
setp.lt.u32 %p1, %r0, 32;
{before}
{body}
ret;
}}
"""


def judged(source: str, trips: int, *, any_trips: bool = False, alone: bool = False) -> KernelVerdict:
    """The verdict on two warps that run a kernel with so many trips. `alone`: without other launches."""
    read = parse_module(Source("k.ptx", source))
    params = [
        {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536},
        {"name": "trips", "type": "u32", "value": trips},
    ]
    launch = parse_launch({"grid": [1, 1, 1], "block": [64, 1, 1], "params": params})
    return judge(
        read, entry_of(read, "k"), launch, load_model("ptx-9.4"), CheckOptions(any_trips=any_trips, by_proof=alone)
    )


def said(source: str, trips: int) -> str:
    """What the launch alone says of any trip count."""
    return judged(source, trips, any_trips=True, alone=True).beyond["any trip count"]


def step(answer: str) -> int | None:
    """What the trip count may grow by, if something is shown."""
    found = re.search(r"any multiple of (\d+) more", answer)
    larger = answer.startswith("yes") or "; for larger ones yes" in answer
    return int(found[1]) if larger and found else None


def kept(source: str, trips: int, times: tuple[int, ...] = (1, 2)) -> bool | None:
    """Is what is found the same with more trips, where it is said to be? None where nothing is said."""
    by = step(said(source, trips))
    if by is None:
        return None
    first = judged(source, trips)
    found = {one.rule for one in first.findings}
    others = [judged(source, trips + by * each) for each in times]
    return all(other.word == first.word and {one.rule for one in other.findings} <= found for other in others)


# ---- random loops ------------------------------------------------------------------------------------------------


def _number(rng: random.Random, target: str) -> list[str]:
    """A number computed from the round %r9 (or from %r20, which goes down)."""
    source = rng.choice(["%r9", "%r9", "%r9", "%r20"])
    return rng.choice([
        [f"and.b32 {target}, {source}, {rng.choice([1, 3, 7])};"],
        [f"shr.u32 {target}, {source}, {rng.choice([1, 2, 3])};", f"and.b32 {target}, {target}, {rng.choice([1, 3])};"],
        [f"rem.u32 {target}, {source}, {rng.choice([2, 3, 5])};"],
        [f"mul.hi.u32 {target}, {source}, 0xAAAAAAAB;", f"shr.u32 {target}, {target}, 1;",
         f"mul.lo.u32 {target}, {target}, 3;", f"sub.u32 {target}, {source}, {target};"],
        [f"min.u32 {target}, {source}, {rng.choice([1, 3, 30])};"],
        [f"div.u32 {target}, {source}, {rng.choice([2, 16, 30])};", f"and.b32 {target}, {target}, 1;"],
        [f"setp.gt.u32 %p8, {source}, {rng.choice([1, 3, 15, 30])};", f"selp.u32 {target}, 1, 0, %p8;"],
        [f"setp.eq.u32 %p8, {source}, {rng.choice([1, 2, 16, 31])};", f"selp.u32 {target}, 1, 0, %p8;"],
        [f"xor.b32 {target}, {source}, {rng.choice([1, 16])};", f"and.b32 {target}, {target}, 1;"],
        [f"cvt.u32.u8 {target}, {source};", f"and.b32 {target}, {target}, 3;"],
        [f"not.b32 {target}, {source};", f"and.b32 {target}, {target}, 1;"],
        [f"bfe.u32 {target}, {source}, {rng.choice([0, 1, 4])}, {rng.choice([1, 2])};"],
        [f"mov.u32 {target}, %r21;"],
        [f"mov.u32 {target}, {rng.choice([0, 1])};"],
    ])  # fmt: skip


def random_loop(seed: int) -> str:
    """Two warps store to and load from slots of shared memory in rounds, with barriers, perhaps guarded."""
    rng = random.Random(seed)
    body = [*_number(rng, "%r10"), *(_number(rng, "%r11") if rng.random() < 0.6 else ["mov.u32 %r11, %r10;"])]
    body += [f"shl.b32 %r12, %r10, {rng.choice([8, 8, 9])};", "add.u32 %r12, %r12, %r2;", "add.u32 %r12, %r12, %r1;"]
    other = rng.choice([4, 128])
    body += ["shl.b32 %r13, %r11, 8;", "add.u32 %r13, %r13, %r2;", f"xor.b32 %r14, %r1, {other};"]
    body += ["add.u32 %r13, %r13, %r14;"]
    steps = ["st.shared.u32 [%r12], %r0;", "bar.sync 0;", "ld.shared.u32 %r15, [%r13];"]
    if rng.random() < 0.75:
        steps.append("bar.sync 0;")
    if rng.random() < 0.35:  # a barrier, or a store, that is not made in each round
        at = rng.randrange(len(steps))
        steps[at] = f"@%p5 {steps[at]}"
        body += [
            *_number(rng, "%r16"),
            f"setp.{rng.choice(['ne', 'lt', 'gt'])}.u32 %p5, %r16, {rng.choice([0, 1, 7])};",
        ]
    if rng.random() < 0.2:  # the state of the loop in memory
        steps.append("@%p0 st.shared.u32 [s+4000], %r10;")
        steps.append("@%p0 ld.shared.u32 %r21, [s+4000];")
    body += steps
    if rng.random() < 0.5:
        body += ["add.u32 %r21, %r21, 1;", "setp.eq.u32 %p9, %r21, 3;", "selp.u32 %r21, 0, %r21, %p9;"]
    down = rng.random() < 0.5
    before = "mov.u32 %r9, 0;\nmov.u32 %r20, %r8;\nmov.u32 %r21, 0;"
    end = "setp.ne.u32 %p3, %r20, 0;" if down else "setp.lt.u32 %p3, %r9, %r8;"
    loop = ["L:", *body, "add.u32 %r9, %r9, 1;", "sub.u32 %r20, %r20, 1;", end, "@%p3 bra L;"]
    return text("\n".join(loop), before)


def _slot(rng: random.Random, stages: int, names: tuple[str, str, str, str]) -> tuple[list[str], list[str], list[str]]:
    """Which slot a round has, and its parity: before the loop, at the beginning of a round and at its end."""
    slot, parity, count, pred = names
    kind = rng.choice(["counter", "divided", "masked" if stages in (1, 2, 4) else "divided"])
    if kind == "counter":
        flip = [f"@{pred} xor.b32 {parity}, {parity}, 1;"]
        if rng.random() < 0.7:
            flip = [f"selp.u32 %r30, 1, 0, {pred};", f"xor.b32 {parity}, {parity}, %r30;"]
        end = [f"add.u32 {slot}, {slot}, 1;", f"setp.eq.u32 {pred}, {slot}, {stages};"]
        end += [f"selp.u32 {slot}, 0, {slot}, {pred};", *flip]
        return [f"mov.u32 {slot}, 0;", f"mov.u32 {parity}, 0;"], [], end
    if kind == "masked":
        shift = stages.bit_length() - 1
        begin = [f"and.b32 {slot}, {count}, {stages - 1};", f"shr.u32 {parity}, {count}, {shift};"]
    else:
        begin = [f"rem.u32 {slot}, {count}, {stages};", f"div.u32 {parity}, {count}, {stages};"]
    return [], [*begin, f"and.b32 {parity}, {parity}, 1;"], []


def _late(rng: random.Random, count: str, what: str) -> list[str]:
    """An instruction, perhaps left out in some rounds."""
    if rng.random() < 0.9:
        return [what]
    how, at = rng.choice(["ne", "lt", "gt", "ge"]), rng.choice([1, 2, 15, 24, 40])
    return [f"setp.{how}.u32 %p12, {count}, {at};", f"@%p12 {what}"]


def random_ring(seed: int) -> str:
    """A producer fills slots and a consumer reads them, with mbarrier objects that say full and empty."""
    rng = random.Random(seed)
    stages = rng.choice([1, 2, 2, 3, 4])
    body = ["@!%p0 bra I;"]
    body += [f"mbarrier.init.shared::cta.b64 [bar+{8 * n}], 1;" for n in range(stages)]
    body += [f"mbarrier.init.shared::cta.b64 [bar+{32 + 8 * n}], 1;" for n in range(stages)]
    body += ["I:", "bar.sync 0;", "setp.eq.u32 %p2, %r0, 32;", "@%p0 bra P;", "@%p2 bra C;", "bra E;"]
    for role, mine, other in (("P", 32, 0), ("C", 0, 32)):
        before, begin, end = _slot(rng, stages, ("%r10", "%r11", "%r9", "%p9"))
        body += [f"{role}:", *before, "mov.u32 %r9, 0;"]
        flips = role == "P"  # the producer's first wait is for the phase before the first
        start = int(role == "C" and rng.random() < 0.1)  # one round less
        body += [f"mov.u32 %r9, {start};"] if start else []
        body += [f"L{role}:", *begin, "shl.b32 %r12, %r10, 3;", "add.u32 %r12, %r12, %r4;"]
        body += ["xor.b32 %r13, %r11, 1;"] if flips else ["mov.u32 %r13, %r11;"]
        body += [f"W{role}: mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r12+{mine}], %r13;", f"@!%p6 bra W{role};"]
        body += ["shl.b32 %r14, %r10, 8;", "add.u32 %r14, %r14, %r2;"]
        access = "st.shared.u32 [%r14], 7;" if role == "P" else "ld.shared.u32 %r15, [%r14];"
        arrive = f"mbarrier.arrive.shared::cta.b64 %d5, [%r12+{other}];"
        body += [*_late(rng, "%r9", access), *_late(rng, "%r9", arrive), *end]
        count = "%r8" if rng.random() < 0.85 else "%r31"
        body += ["add.u32 %r9, %r9, 1;", f"setp.lt.u32 %p3, %r9, {count};", f"@%p3 bra L{role};", "bra E;"]
    body += ["E:", "bar.sync 0;"] if rng.random() < 0.5 else ["E:"]
    return text("\n".join(body), f"add.u32 %r31, %r8, {rng.choice([0, 1])};")


def random_copies(seed: int) -> str:
    """Slots that cp.async fills some rounds ahead, waited for by groups, with barriers, and tiles of global memory."""
    rng = random.Random(seed)
    slots, ahead = rng.choice([2, 3, 4]), rng.choice([1, 1, 2])
    fill = ["rem.u32 %r10, {0}, " + str(slots) + ";", "shl.b32 %r10, %r10, 8;", "add.u32 %r10, %r10, %r2;",
            "add.u32 %r10, %r10, %r1;", "mul.wide.u32 %d1, {0}, " + str(rng.choice([0, 256, 1024])) + ";",
            "add.s64 %d1, %d1, %d0;", "cvt.u64.u32 %d2, %r1;", "add.s64 %d1, %d1, %d2;",
            "cp.async.ca.shared.global [%r10], [%d1], 4;", "cp.async.commit_group;"]  # fmt: skip
    before = ["mov.u32 %r9, 0;"]
    for n in range(ahead):
        before += [f"mov.u32 %r16, {n};", *(line.format("%r16") for line in fill)]
    body = ["L:", f"add.u32 %r16, %r9, {ahead};"]
    made = [line.format("%r16") for line in fill]
    if rng.random() < 0.4:  # the last rounds fill nothing, and commit empty groups
        body += ["setp.lt.u32 %p4, %r16, %r8;"]
        made[-2] = "@%p4 " + made[-2]
    wait = [f"cp.async.wait_group {max(0, ahead - rng.choice([0, 0, 1]))};", "bar.sync 0;"]
    load = ["rem.u32 %r11, %r9, " + str(slots) + ";", "shl.b32 %r11, %r11, 8;", "add.u32 %r11, %r11, %r2;"]
    load += [f"xor.b32 %r12, %r1, {rng.choice([4, 128])};", "add.u32 %r11, %r11, %r12;", "ld.shared.u32 %r13, [%r11];"]
    body += [*made, *wait, *load] if rng.random() < 0.5 else [*wait, *load, *made]
    body += _late(rng, "%r9", "bar.sync 0;") if rng.random() < 0.7 else []
    if rng.random() < 0.4:
        step = rng.choice([256, 256, 128, 512])
        body += [f"mul.wide.u32 %d3, %r9, {step};", "add.s64 %d3, %d3, %d0;", "cvt.u64.u32 %d4, %r1;",
                 "add.s64 %d3, %d3, %d4;", f"st.global.u32 [%d3+{rng.choice([0, 32768])}], %r13;"]  # fmt: skip
    body += ["add.u32 %r9, %r9, 1;", "setp.lt.u32 %p3, %r9, %r8;", "@%p3 bra L;"]
    return text("\n".join(body), "\n".join(before))
