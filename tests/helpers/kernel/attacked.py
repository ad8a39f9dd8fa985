"""Loops and grids whose "yes" is attacked: other sizes are judged, one by one.

Some do the same for every size; the others do something else from a certain size on, larger than the one that is asked
about. `python -m helpers.kernel.attacked [NAME ...]`, in `tests`, asks `--any-trips` of a loop with 8 rounds and
`--any-grid` of a grid of 3 CTAs, judges the sizes below and prints the tables of docs/kernels-theorem.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from helpers.kernel import loops, samples
from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.order.verdict import KernelVerdict

ROUNDS, CTAS = 8, 3
TIMES = (1, 2, 3, 5, 12)
"""How often what a loop may grow by is added."""
GRIDS = (2, 4, 5, 6, 7, 9, 12, 17, 33)

RACE = "st.shared.u32 [s+4008], %r0;"
OTHER = "xor.b32 %r14, %r1, 128;\nadd.u32 %r14, %r14, {};\nld.shared.u32 %r15, [%r14];"
BEFORE = "mov.u32 %r9, 0;\nmov.u32 %r21, 0;\nmov.u32 %r22, 0;\n@%p0 st.shared.u32 [s+4000], 0;\n{}\nbar.sync 0;"
INIT = "@%p0 mbarrier.init.shared::cta.b64 [bar], 64;\n@%p0 mbarrier.init.shared::cta.b64 [bar+8], 64;"


def loop(body: str, behind: str = "", before: str = "", count: str = "add.u32 %r9, %r9, 1;") -> str:
    """A kernel with a loop of `trips` rounds, of which %r9 is the number."""
    return loops.text(f"L:\n{body}\n{count}\nsetp.lt.u32 %p3, %r9, %r8;\n@%p3 bra L;\n{behind}", BEFORE.format(before))


def slotted(slot: str, meet: str = "bar.sync 0;", after: str = "", **parts: str) -> str:
    """Each round the threads store to a slot of 256 bytes, whose number is in %r10, and read what others stored."""
    store = "shl.b32 %r12, %r10, 8;\nadd.u32 %r12, %r12, %r2;\nadd.u32 %r13, %r12, %r1;\nst.shared.u32 [%r13], %r0;"
    return loop(f"{slot}\n{store}\n{meet}\n{OTHER.format('%r12')}\n{after}", **parts)


def guarded(condition: str, before: str = "") -> str:
    """A race from the round on in which a condition holds."""
    return loop(f"{before}\n{condition}\n@%p7 {RACE}")


def parity(of: str, at: str = "bar") -> str:
    return f"W:\nmbarrier.try_wait.parity.shared::cta.b64 %p6, [{at}], {of};\n@!%p6 bra W;"


ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [bar];\n"
TILE = "mul.wide.u32 %d1, %r9, 256;\nadd.s64 %d1, %d1, %d0;\nmul.wide.u32 %d2, %r0, 4;\nadd.s64 %d1, %d1, %d2;\n"
COPY = "cp.async.ca.shared.global [%r13], [%d1], 4;\ncp.async.commit_group;\n"
SLOT = "shl.b32 %r12, %r10, 8;\nadd.u32 %r12, %r12, %r2;\nadd.u32 %r13, %r12, %r1;\n"
TWO_STAGES = (
    TILE + "and.b32 %r10, %r9, 1;\n" + SLOT + COPY + "cp.async.wait_group 0;\nbar.sync 0;\n" + OTHER.format("%r12")
)

LOOPS = {
    "one slot, two barriers": slotted("mov.u32 %r10, 0;", after="bar.sync 0;"),
    "two slots in turn, one barrier": slotted("and.b32 %r10, %r9, 1;"),
    "four slots in turn, one barrier": slotted("and.b32 %r10, %r9, 3;"),
    "three slots, a counter that wraps": slotted(
        "mov.u32 %r10, %r21;", after="add.u32 %r21, %r21, 1;\nsetp.eq.u32 %p4, %r21, 3;\nselp.u32 %r21, 0, %r21, %p4;"
    ),
    "three slots, a remainder": slotted("rem.u32 %r10, %r9, 3;"),
    "two slots, rounds met at an mbarrier object": slotted(
        "and.b32 %r10, %r9, 1;", ARRIVE + "and.b32 %r11, %r9, 1;\n" + parity("%r11"), before=INIT
    ),
    "the parity flips in a register": slotted(
        "and.b32 %r10, %r9, 1;", ARRIVE + parity("%r21") + "\nxor.b32 %r21, %r21, 1;", before=INIT
    ),
    "a barrier whose number alternates": slotted("and.b32 %r10, %r9, 1;", "add.u32 %r11, %r10, 1;\nbar.sync %r11, 64;"),
    "cp.async into two slots": loop(TWO_STAGES),
    "a tile of global memory for each round": loop(TILE + "st.global.u32 [%d1], %r9;"),
    "tiles that are read and summed": loop(
        TILE + "ld.global.u32 %r16, [%d1];\nadd.u32 %r21, %r21, %r16;", "st.shared.u32 [%r2+64], %r21;\n"
    ).replace("st.shared.u32 [%r2+64], %r21;", "add.u32 %r17, %r2, %r1;\nst.shared.u32 [%r17], %r21;"),
    "a count in shared memory that nobody reads": loop("@%p0 red.shared.add.u32 [s+4000], 1;\nbar.sync 0;"),
    "a strong store of the round": loop("@%p0 st.relaxed.cta.shared.u32 [s+4000], %r9;\nbar.sync 0;"),
    "fence.sc in the loop": slotted("and.b32 %r10, %r9, 1;", "fence.sc.cta;\nbar.sync 0;"),
    "something in round 5 alone": slotted(
        "and.b32 %r10, %r9, 1;", after="setp.eq.u32 %p7, %r9, 5;\n@%p7 st.shared.u32 [%r13+2048], %r0;"
    ),
    "an inner loop of four rounds": slotted(
        "and.b32 %r10, %r9, 1;",
        after="mov.u32 %r22, 0;\nM:\nadd.u32 %r22, %r22, 1;\nbar.sync 0;\nsetp.lt.u32 %p4, %r22, 4;\n@%p4 bra M;",
    ),
    "lanes that exchange values": slotted(
        "and.b32 %r10, %r9, 1;", after="shfl.sync.bfly.b32 %r17, %r15, 1, 31, -1;\nadd.u32 %r21, %r21, %r17;"
    ),
    "two rounds at once": slotted(
        "shr.u32 %r10, %r9, 1;\nand.b32 %r10, %r10, 1;", count="add.u32 %r9, %r9, 2;"
    ),
    "a slot that a shift and a mask name": slotted("shl.b32 %r10, %r9, 1;\nand.b32 %r10, %r10, 6;"),
    "a slot of 16 bits": slotted("cvt.u16.u32 %h1, %r9;\nand.b16 %h1, %h1, 1;\ncvt.u32.u16 %r10, %h1;"),
    "an exit before the loop": slotted("and.b32 %r10, %r9, 1;", before="setp.ge.u32 %p5, %r0, 64;\n@%p5 exit;"),
    # From a certain round on these do something else.
    "a guard that holds from round 13 on": guarded("setp.gt.u32 %p7, %r9, 12;"),
    "a sum of rounds beyond 100": guarded("setp.gt.u32 %p7, %r21, 100;", "add.u32 %r21, %r21, %r9;"),
    "four bits set in the round": guarded("popc.b32 %r30, %r9;\nsetp.ge.u32 %p7, %r30, 4;"),
    "a product of rounds": guarded("mul.lo.u32 %r30, %r9, %r9;\nsetp.gt.u32 %p7, %r30, 120;"),
    "a count in shared memory beyond 12": guarded(
        "setp.gt.u32 %p7, %r17, 12;",
        "@%p0 red.shared.add.u32 [s+4000], 1;\nbar.sync 0;\nld.shared.u32 %r17, [s+4000];\nbar.sync 0;",
    ),
    "a slot that stays at 9": slotted("min.u32 %r10, %r9, 9;"),
    "slots that come back after 16 rounds, no barrier": slotted("and.b32 %r10, %r9, 15;", "bar.warp.sync -1;"),
    "a barrier of another number after 8 rounds": loop(
        "shr.u32 %r11, %r9, 3;\nadd.u32 %r11, %r11, 1;\nbar.sync %r11, 64;"
    ),
    "a table of rounds": guarded("setp.eq.u32 %p7, %r30, 1;", "shr.u32 %r30, 0x8000, %r9;\nand.b32 %r30, %r30, 1;"),
    "a float that grows": guarded("setp.gt.f32 %p7, %f1, 0f41400000;", "cvt.rn.f32.u32 %f1, %r9;"),
}  # fmt: skip

OWN = """mov.u32 %r20, %ctaid.x;
mov.u32 %r26, %nctaid.x;
{change}
mul.wide.u32 %d1, %r20, 256;
add.s64 %d1, %d1, %d0;
mul.wide.u32 %d2, %r0, 4;
add.s64 %d1, %d1, %d2;
st.global.u32 [%d1], %r0;
"""
VARIABLES = ".global .align 4 .u32 table[4];\n.global .align 4 .u32 count;\n.global .align 4 .u32 other[16384];"
ALWAYS = "st.shared.u32 [s+500], %r0;"


def own(after: str = "", change: str = "") -> str:
    """Each CTA stores a tile of its own."""
    return OWN.format(change=change) + after


def only(condition: str) -> str:
    """A race in CTAs for which a condition holds."""
    return own(f"{condition}\n@%p7 {ALWAYS}")


GRID_KERNELS = {
    "a tile for each CTA": own(),
    "two buffers": own(
        "mov.u64 %d3, other;\nmul.wide.u32 %d4, %r20, 512;\nadd.s64 %d3, %d3, %d4;\nadd.s64 %d3, %d3, %d2;\n"
        "st.global.u32 [%d3], %r0;"
    ),
    "tiles from the last to the first": own(change="sub.u32 %r20, 100, %r20;"),
    "a table that all read": own("ld.global.u32 %r27, [table+8];\nst.global.u32 [%d1], %r27;"),
    "the tile is read again": own("bar.sync 0;\nld.global.u32 %r27, [%d1];"),
    "a count that nobody reads": own("red.relaxed.gpu.global.add.u32 [count], 1;"),
    "fence.sc": own("fence.sc.gpu;\nst.global.u32 [%d1], %r1;"),
    "cp.async from the own tile": own(
        "add.u32 %r28, %r2, %r1;\ncp.async.ca.shared.global [%r28], [%d1], 4;\ncp.async.wait_all;\nbar.sync 0;\n"
        "ld.shared.u32 %r29, [s];"
    ),
    "an mbarrier object": own(
        f"@%p0 mbarrier.init.shared::cta.b64 [bar], 64;\nbar.sync 0;\n{ARRIVE}{parity('0')}\nst.global.u32 [%d1], %r1;"
    ),
    "lanes that exchange values": own("shfl.sync.bfly.b32 %r27, %r0, 1, 31, -1;\nst.global.u32 [%d1], %r27;"),
    "shared memory, a barrier": own(
        "add.u32 %r28, %r2, %r1;\nst.shared.u32 [%r28], %r20;\nbar.sync 0;\nld.shared.u32 %r29, [s];"
    ),
    "a loop of four rounds": own(
        "mov.u32 %r9, 0;\nL:\nbar.sync 0;\nst.global.u32 [%d1], %r9;\nadd.u32 %r9, %r9, 1;\n"
        "setp.lt.u32 %p3, %r9, 4;\n@%p3 bra L;"
    ),
    "a tile by a shift": own(change="shl.b32 %r20, %r20, 1;"),
    # For some CTA, or for some size of the grid, these do something else.
    "a race from CTA 6 on": only("setp.gt.u32 %p7, %r20, 5;"),
    "a race from 6 CTAs on": only("setp.gt.u32 %p7, %r26, 5;"),
    "tiles that come back after 4 CTAs": own(change="and.b32 %r20, %r20, 3;"),
    "a remainder": own(change="rem.u32 %r20, %r20, 4;"),
    "a number of 8 bits": own(change="shl.b32 %r20, %r20, 6;\ncvt.u32.u8 %r20, %r20;\nshr.u32 %r20, %r20, 6;"),
    "the number of the CTA through shared memory": own(
        "@%p0 st.shared.u32 [s], %r20;\nbar.sync 0;\nld.shared.u32 %r27, [s];\n"
        f"setp.gt.u32 %p7, %r27, 5;\n@%p7 {ALWAYS}"
    ),
    "a vote about the CTA": own("setp.gt.u32 %p6, %r20, 5;\nvote.sync.any.pred %p7, %p6, -1;\n@%p7 " + ALWAYS),
    "a barrier by the CTA": own("shr.u32 %r27, %r20, 2;\nadd.u32 %r27, %r27, 1;\n@%p0 bar.sync %r27, 64;"),
    "lanes apart by the size of the grid": own(
        "mad.lo.u32 %r27, %r0, %r26, %r20;\nmul.wide.u32 %d3, %r27, 4;\nadd.s64 %d3, %d3, %d0;\n"
        "st.global.u32 [%d3+32768], %r0;"
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """What is said of a size, the sizes that were judged, and those with another verdict."""

    word: str
    answer: str
    tried: list[int]
    others: list[int]

    @property
    def says_yes(self) -> bool:
        return self.answer.startswith("yes") or "; for larger ones yes" in self.answer


def _compared(first: KernelVerdict, answer: str, verdicts: dict[int, KernelVerdict]) -> Attack:
    """Sizes with a kind of finding that the first verdict has not, or without a verdict."""
    known = {finding.rule for finding in first.findings}
    others = [
        size
        for size, verdict in verdicts.items()
        if verdict.word != first.word or not {finding.rule for finding in verdict.findings} <= known
    ]
    return Attack(first.word, answer, list(verdicts), others)


def attacked_loop(source: str, most: int = len(TIMES)) -> Attack:
    """Ask for any trip count; judge the numbers of rounds that the answer speaks of, or some others if it is no yes."""
    first = loops.judged(source, ROUNDS, any_trips=True)
    answer = first.beyond["any trip count"]
    by = loops.step(answer) or (1 if answer.startswith("yes, for every") else None)
    sizes = [ROUNDS + (by or 1) * times for times in TIMES[:most]]
    if answer.startswith("yes, for every"):
        sizes = [*range((by or 1), ROUNDS, (by or 1)), *sizes]
    return _compared(first, answer, {size: loops.judged(source, size) for size in sizes})


def attacked_grid(body: str, most: int = len(GRIDS)) -> Attack:
    """Ask for any grid; judge grids of other sizes."""

    def judged(ctas: int, *, any_grid: bool = False) -> KernelVerdict:
        read = samples.module(body, VARIABLES)
        launch, options = samples.launch(64, ctas), CheckOptions(any_grid=any_grid)
        return judge(read, samples.entry(read), launch, load_model("ptx-9.4"), options)

    first = judged(CTAS, any_grid=True)
    return _compared(first, first.beyond["any grid"], {size: judged(size) for size in GRIDS[:most]})


def _row(name: str, attack: Attack) -> str:
    answer = "yes" if attack.says_yes else "not shown"
    return f"| {name} | {attack.word} | {answer} | {_ranges(attack.tried)} | {_ranges(attack.others) or 'none'} |"


def _ranges(sizes: list[int]) -> str:
    """Numbers in words: those that follow one another by their ends."""
    runs = list[list[int]]()
    for size in sizes:
        if runs and size == runs[-1][-1] + 1:
            runs[-1].append(size)
        else:
            runs.append([size])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def main() -> None:
    wanted = sys.argv[1:]
    for kernels, attack, what in ((LOOPS, attacked_loop, "rounds"), (GRID_KERNELS, attacked_grid, "CTAs")):
        size = ROUNDS if what == "rounds" else CTAS
        print(f"| kernel | with {size} {what} | any number | judged | with another verdict |\n|---|---|---|---|---|")
        for name, source in kernels.items():
            if not wanted or any(word in name for word in wanted):
                outcome = attack(source)
                print(_row(name, outcome), flush=True)
                if outcome.says_yes and outcome.others:
                    print(f"WRONG: {name}: {outcome.answer}", flush=True)
                elif wanted:
                    print(outcome.answer)


if __name__ == "__main__":
    main()
