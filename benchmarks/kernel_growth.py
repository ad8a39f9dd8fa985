"""How the time and the memory of a kernel's verdict grow: with rounds of its loop, stages of its ring, CTAs, threads.

`python benchmarks/kernel_growth.py [rounds] [stages] [ctas] [threads]` judges rings of shared memory that one thread
fills by bulk copies and the others read, and prints a Markdown table for each family, with the exponents of seconds
(CPU time) and memory (the peak of the process, less that of the smallest member), fitted over the larger half. Each
member runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

from growth import exponent

FAMILIES = {
    "rounds": [{"rounds": 16 << n} for n in range(6)],
    "stages": [{"stages": 2 << n, "rounds": 128} for n in range(6)],
    "ctas": [{"ctas": 1 << n} for n in range(7)],
    "threads": [{"threads": count} for count in (32, 64, 128, 256, 512, 960)],
}
"""What grows, in members of the same ring: 16 rounds, four stages, one CTA, 64 threads that read, if it is not said."""
COLUMNS = ("instructions", "events", "judged", "seconds", "MB", "verdict")

RING = """
.version 8.8
.target sm_90
.address_size 64
.visible .entry ring(.param .u64 in, .param .u64 out, .param .u32 rounds) {{
  .shared .align 128 .b8 stage[{bytes}];
  .shared .align 8 .b64 full[{stages}];
  .shared .align 8 .b64 empty[{stages}];
  .reg .pred %p<8>;
  .reg .b32 %r<24>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [in];
  ld.param.u64 %d1, [out];
  ld.param.u32 %r1, [rounds];
  cvta.to.global.u64 %d0, %d0;
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r0, %tid.x;
  mov.u32 %r2, stage;
  mov.u32 %r3, full;
  mov.u32 %r4, empty;
  mov.u32 %r5, 0;
  mov.u32 %r15, 0;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra READY;
{inits}
  fence.proxy.async.shared::cta;
READY:
  bar.sync 0;
  setp.lt.u32 %p1, %r0, {threads};
  @%p1 bra READ;
  setp.ne.u32 %p2, %r0, {threads};
  @%p2 bra END;
FILL:
  setp.ge.u32 %p3, %r5, %r1;
  @%p3 bra END;
{places}
  xor.b32 %r11, %r7, 1;
FREE:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r10], %r11;
  @!%p4 bra FREE;
  mul.wide.u32 %d2, %r5, 256;
  add.u64 %d3, %d0, %d2;
  mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r9], 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%d3], 256, [%r9];
  add.u32 %r5, %r5, 1;
  bra FILL;
READ:
  setp.ge.u32 %p5, %r5, %r1;
  @%p5 bra WRITE;
{places}
FILLED:
  mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r9], %r7;
  @!%p6 bra FILLED;
  and.b32 %r12, %r0, 63;
  shl.b32 %r12, %r12, 2;
  add.u32 %r13, %r8, %r12;
  ld.shared.u32 %r14, [%r13];
  add.u32 %r15, %r15, %r14;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.release.cta.shared::cta.b64 _, [%r10];
  add.u32 %r5, %r5, 1;
  bra READ;
WRITE:
  mov.u32 %r16, %ctaid.x;
  mad.lo.u32 %r17, %r16, {threads}, %r0;
  mul.wide.u32 %d4, %r17, 4;
  add.u64 %d5, %d1, %d4;
  st.global.u32 [%d5], %r15;
END:
  ret;
}}
"""

PLACES = """  rem.u32 %r6, %r5, {stages};
  div.u32 %r7, %r5, {stages};
  and.b32 %r7, %r7, 1;
  mad.lo.u32 %r8, %r6, 256, %r2;
  mad.lo.u32 %r9, %r6, 8, %r3;
  mad.lo.u32 %r10, %r6, 8, %r4;"""
"""The stage of a round, its objects, and the parity of their phases."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--model", default="ptx-9.4")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # one member, in a process of its own
    options = parser.parse_args()
    if options.one:
        print(json.dumps(member(options.model, **json.loads(options.one))))
        return
    for family in options.families or FAMILIES:
        print(
            f"\n| {family} | instructions | events | judged | seconds | MB | verdict |\n|---|---|---|---|---|---|---|"
        )
        points, least = [], 0.0
        for sizes in FAMILIES[family]:
            command = [sys.executable, __file__, "--model", options.model, "--one", json.dumps(sizes)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            made = json.loads(done.stdout)
            least = least or made["MB"]
            points.append((sizes[family], made["seconds"], max(made["MB"] - least, 1.0)))
            cells = [f"{sizes[family]:,}", *(f"{made[name]:,}" for name in COLUMNS[:-1]), made["verdict"]]
            print("| " + " | ".join(cells) + " |", flush=True)
        time_, memory = (exponent([(point[0], point[k]) for point in points]) for k in (1, 2))
        print(f"\nexponents: time {time_:.1f}, memory {memory:.1f}")


def text(stages: int, threads: int) -> str:
    """The ring as PTX."""
    inits = "\n".join(
        f"  mbarrier.init.shared::cta.b64 [%r{objects}+{8 * stage}], {count};"
        for stage in range(stages)
        for objects, count in ((3, 1), (4, threads))
    )
    places = PLACES.format(stages=stages)
    return RING.format(bytes=256 * stages, stages=stages, threads=threads, inits=inits, places=places)


def member(model: str, rounds: int = 16, stages: int = 4, ctas: int = 1, threads: int = 64) -> dict[str, object]:
    """The figures of one ring."""
    from memmodel import check_kernel
    from memmodel.ptx.module.reader import parse_module
    from memmodel.source import Source

    launch = {
        "grid": [ctas, 1, 1],
        "block": [threads + 32, 1, 1],
        "params": [{"bytes": 256 * rounds}, {"bytes": 4 * threads * ctas}, {"value": rounds}],
    }
    module = parse_module(Source("<ring>", text(stages, threads)))
    started = time.process_time()
    verdict = check_kernel(module, launch, model=model)
    seconds = time.process_time() - started
    numbers = verdict.statistics
    return {
        "instructions": numbers.instructions,
        "events": numbers.events,
        "judged": numbers.judged,
        "seconds": round(seconds, 2),
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "verdict": verdict.word,
    }


if __name__ == "__main__":
    main()
