"""Inputs made to be large, each under several budgets: is the answer there in time, and within the memory?

    python -m benchmarks.bounded [--quick] [NAME…]

Out: a row for each input and budget: the answer, seconds and memory really used (above an empty run), and whether both
were kept within 10 % or 2 seconds (memory: 10 % or 100 MB). Exit code 1 if one was not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from benchmarks.families import iriw_fan, sb_ring


def _table(columns: Sequence[Sequence[str]], declarations: str, question: str, name: str = "large") -> str:
    height = max(map(len, columns))
    header = " | ".join(f"P{i}@cta {i},gpu 0" for i in range(len(columns)))
    rows = (" | ".join(column[row] if row < len(column) else "" for column in columns) for row in range(height))
    body = "".join(f"{row} ;\n" for row in (header, *rows))
    return f"PTX {name}\n{{ {declarations} }}\n{body}{question}\n"


def accesses(threads: int, each: int) -> str:
    """Plain accesses: every thread writes and reads four locations in turn."""
    columns = [
        [
            f"st.relaxed.gpu x{k % 4}, {i * each + k + 1}" if k % 2 else f"ld.relaxed.gpu r{k}, x{(k + i) % 4}"
            for k in range(each)
        ]
        for i in range(threads)
    ]
    return _table(columns, "x0 = 0; x1 = 0; x2 = 0; x3 = 0;", "exists (P0:r0 == 3 /\\ P1:r2 == 1)")


def atomics(threads: int, each: int) -> str:
    """Atomic additions to one location."""
    columns = [[f"atom.acq_rel.gpu.add r{k}, x, 1" for k in range(each)] for _ in range(threads)]
    return _table(columns, "x = 0;", f"exists (x == {threads * each - 1})")


def fences(threads: int, each: int) -> str:
    """A fence.sc between any two accesses."""
    columns = []
    for i in range(threads):
        column = []
        for k in range(each):
            column += [f"st.relaxed.gpu x{i}, {k + 1}", "fence.sc.gpu", f"ld.relaxed.gpu r{k}, x{(i + 1) % threads}"]
        columns.append(column)
    stale = " /\\ ".join(f"P{i}:r0 == 0" for i in range(threads))
    return _table(columns, " ".join(f"x{i} = 0;" for i in range(threads)), f"exists ({stale})")


def spins(threads: int, rounds: int) -> str:
    """Every thread waits for its turn, many times."""
    columns = []
    for i in range(threads):
        column = []
        for k in range(rounds):
            turn = k * threads + i
            column += [f"L{k}:", "ld.acquire.gpu r0, f", f"bne r0, {turn}, L{k}", f"st.release.gpu f, {turn + 1}"]
        columns.append(column)
    return _table(columns, "f = 0; x = 0;", f"exists (f == {threads * rounds - 1})")


def states(threads: int, each: int) -> str:
    """Racing writes of different values, all read: many final states."""
    columns = [
        [*(f"st.relaxed.gpu x{k}, {i + 1}" for k in range(each)), *(f"ld.relaxed.gpu r{k}, x{k}" for k in range(each))]
        for i in range(threads)
    ]
    return _table(columns, " ".join(f"x{k} = 0;" for k in range(each)), "exists (P0:r0 == 1)")


def kernel(rounds: int) -> str:
    """A kernel whose threads add to shared memory again and again."""
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 0;
LOOP:
    atom.global.add.u32 %r2, [%rd2], 1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, {rounds};
    @%p bra LOOP;
    ret;
}}
"""


LAUNCH = {
    "kernel": "k",
    "grid": [16, 1, 1],
    "block": [256, 1, 1],
    "params": [{"name": "p", "type": "ptr", "address": "0x10000", "bytes": 64, "init": "zero"}],
}


@dataclass(frozen=True)
class Case:
    """One input: its text, the command that takes it, and its suffix."""

    text: Callable[[], str]
    command: tuple[str, ...] = ("check",)
    suffix: str = ".litmus"


CASES: dict[str, Case] = {
    "accesses 6 x 60": Case(lambda: accesses(6, 60)),
    "accesses 20 x 25": Case(lambda: accesses(20, 25)),
    "atomics 4 x 40": Case(lambda: atomics(4, 40)),
    "atomics 24 x 4": Case(lambda: atomics(24, 4)),
    "fences 8 x 16": Case(lambda: fences(8, 16)),
    "fences 30 x 3": Case(lambda: fences(30, 3)),
    "spins 6 x 8": Case(lambda: spins(6, 8)),
    "spins 16 x 2": Case(lambda: spins(16, 2)),
    "SB ring 60": Case(lambda: sb_ring(60)),
    "IRIW fan 30": Case(lambda: iriw_fan(30)),
    "states 4 x 6": Case(lambda: states(4, 6), ("outcomes",)),
    "states 8 x 4": Case(lambda: states(8, 4), ("outcomes",)),
    "readings of atomics 4 x 40": Case(lambda: atomics(4, 40), ("check", "--readings")),
    "fix of fences 8 x 16": Case(lambda: fences(8, 16).replace("fence.sc", "fence.acq_rel"), ("fix",)),
    "weaken of fences 8 x 16": Case(lambda: fences(8, 16), ("weaken",)),
    "explain accesses 6 x 60": Case(lambda: accesses(6, 60), ("explain",)),
    "draw atomics 4 x 40": Case(lambda: atomics(4, 40), ("draw", "-o", "-")),
    "diff on fences 8 x 16": Case(lambda: fences(8, 16), ("diff", "sc", "ptx-9.4")),
    "suite of states 8 x 4": Case(lambda: states(8, 4), ("suite", "--no-expect")),
    "kernel, 5,000 rounds": Case(lambda: kernel(5_000), ("kernel",), ".ptx"),
}

BUDGETS: dict[str, tuple[str, ...]] = {
    "2 s": ("--timeout", "2"),
    "10 s": ("--timeout", "10"),
    "200 MB": ("--timeout", "60", "--memory", "200M"),
    "100k steps": ("--timeout", "60", "--budget", "100k"),
}


@dataclass(frozen=True)
class Used:
    """What a run cost, and how it ended."""

    seconds: float
    megabytes: float
    code: int
    said: str


def measured(argv: Sequence[str], last: float = 200.0) -> Used:
    """Run memmodel in a process of its own; its seconds, its peak memory and its last words."""
    begun = monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([sys.executable, "-m", "memmodel", *argv], stdout=out, stderr=subprocess.STDOUT)
        peak = [0.0]
        watch = threading.Thread(target=_watch, args=(child, peak, begun + last))
        watch.start()
        code = child.wait()
        seconds = monotonic() - begun
        watch.join()
        out.seek(0)
        said = out.read().decode("utf-8", "replace")
    return Used(seconds, peak[0], code, said)


def _watch(child: subprocess.Popen[bytes], peak: list[float], end: float) -> None:
    while child.poll() is None:
        try:
            status = Path(f"/proc/{child.pid}/status").read_text()
        except OSError:
            return
        line = next((one for one in status.splitlines() if one.startswith("VmHWM")), "VmHWM: 0 kB")
        peak[0] = max(peak[0], int(line.split()[1]) / 1024)
        if monotonic() > end:
            child.kill()
        sleep(0.02)


def kept(used: Used, budget: Sequence[str], idle: float) -> str:
    """What was wrong, or nothing."""
    wanted = dict(zip(budget[::2], budget[1::2], strict=True))
    wrong = []
    limit = float(wanted["--timeout"])
    if used.seconds > max(limit * 1.1, limit + 2) + 1:  # starting and printing belong to no answer
        wrong.append("late")
    if "--memory" in wanted:
        size = float(wanted["--memory"].removesuffix("M"))
        if used.megabytes - idle > max(size * 1.1, size + 100):
            wrong.append("too much memory")
    if used.code not in (0, 1, 3) or "Traceback" in used.said or "internal error" in used.said:
        wrong.append(f"exit code {used.code}")
    return ", ".join(wrong)


def _word(said: str) -> str:
    line = next((one for one in said.splitlines() if "undecided" in one or "budget" in one), "")
    return (line or (said.splitlines() or [""])[0])[:70]


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    quick = "--quick" in argv
    names = [name for name in CASES if not (only := [one for one in argv if one != "--quick"]) or name in only]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        launch = os.path.join(folder, "launch.json")
        Path(launch).write_text(json.dumps(LAUNCH))
        small = os.path.join(folder, "small.litmus")
        Path(small).write_text(sb_ring(2))
        idle = measured(["check", small, "--engine", "z3"]).megabytes
        for name in names:
            case = CASES[name]
            path = os.path.join(folder, "large" + case.suffix)
            Path(path).write_text(case.text())
            for title, budget in list(BUDGETS.items())[: 1 if quick else None]:
                more = ("--launch", launch) if case.command[0] == "kernel" else ()
                used = measured([*case.command, path, *more, *budget])
                wrong = kept(used, budget, idle)
                failed += bool(wrong)
                print(
                    f"{name:28} {title:10} {used.seconds:6.1f} s {used.megabytes:6.0f} MB  exit {used.code}  "
                    f"{_word(used.said)}{'  <-- ' + wrong if wrong else ''}",
                    flush=True,
                )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
