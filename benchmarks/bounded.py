"""Inputs made to be large or hostile, each under several budgets: is the answer there in time, and within the memory?

    python -m benchmarks.bounded [--quick] [NAME…]

Out: a row for each input and budget: the answer, seconds and memory really used (above an empty run), and whether both
were kept within 10 % or 1 second (memory: 10 % or 100 MB) and the answer says which bound it met; then the worst. Exit
code 1 if one was not kept. `--quick`: the shortest budget only. MEMMODEL_KERNELS names a folder of kernels, each X.ptx
with X.launch.json, which are tried with every option too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, sleep

from benchmarks.families import iriw_fan, sb_ring
from memmodel.answer import Budget


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


def forall(values: int) -> str:
    """A condition of three variables of so many values each."""
    parts = ("(" + " \\/ ".join(f"{name} == {value}" for value in range(values)) + ")" for name in "xyz")
    condition = " /\\ ".join(parts)
    return f"PTX f\n{{ x = 0; y = 0; z = 0; }}\n P0@cta 0,gpu 0 ;\n st.weak x, 1 ;\nforall ({condition})\n"


def hand_overs(count: int) -> str:
    """Agents each of which hands a buffer to the next, as data for `sync`."""
    agents = [
        {
            "name": f"A{i}",
            "accesses": [
                {"name": f"use{i}", "kind": "read", "buffer": f"b{i}"},
                {"name": f"put{i}", "kind": "write", "buffer": f"b{i + 1}"},
            ],
        }
        for i in range(count)
    ]
    handed = [{"first": f"put{i}", "then": f"use{i + 1}"} for i in range(count - 1)]
    buffers = [{"name": f"b{i}", "bytes": 16} for i in range(count + 1)]
    return json.dumps({"name": "chain", "buffers": buffers, "agents": agents, "hand_overs": handed})


def wide(size: int) -> str:
    """Bulk copies of tiles of so many words."""
    return f"""PTX wide
.global .align 16 .u32 g[{size}] = {{1}};
.shared .align 16 .u32 s[{size}] = {{5}};
thread P0 @ cta 0, cluster 0, gpu 0 {{
    cp.async.bulk.global.shared::cta.bulk_group [g], [s], {4 * size};
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ld.weak.u32 %r0, [g];
}}
thread P1 @ cta 0, cluster 0, gpu 0 {{
    ld.weak.u64 %r1, [g+8];
}}
exists (P0:%r0 == 5)
"""


def cat(count: int, line: str = "acyclic po as c{}") -> str:
    """A model of so many lines."""
    return '"large"\n' + "".join(line.format(number) + "\n" for number in range(count))


def squares(count: int) -> str:
    """A model each of whose definitions is about twice as much work as the one before."""
    lines = "".join(
        f"let a{n} = (a{n - 1} ; a{n - 1}) | (a{n - 1}^-1 ; (po | rf)*) | a{n - 1}+\n" for n in range(1, count)
    )
    return f'"squares"\nlet a0 = po | rf | co\n{lines}acyclic a{count - 1} as last\n'


def blank(text: str, lines: int, before: bool = False) -> str:
    """A text with so many empty lines."""
    return "\n" * lines + text if before else text + "\n" * lines


@dataclass(frozen=True)
class Case:
    """One input: the text of FILE, the command that takes it, further files by their names in the command.

    The budget is put at its end, or where it says BUDGET. `budgets`: the titles of those that the command knows.
    `prepare`: what is done in the folder before. `unbounded`: the part of it that no budget bounds, as a command.
    `program`: what Python runs.
    """

    text: Callable[[], str]
    command: tuple[str, ...] = ("check", "FILE")
    suffix: str = ".litmus"
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    budgets: tuple[str, ...] = ("2 s", "10 s", "200 MB", "100k steps")
    prepare: Callable[[Path], None] | None = None
    unbounded: tuple[str, ...] = ()
    program: tuple[str, ...] = ("-m", "memmodel")


def committed(folder: Path) -> None:
    """A repository with a model; the file has another one."""
    if (folder / ".git").exists():
        return
    (folder / "m.cat").write_text(cat(1, "acyclic po | rf as c{}"))
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    for words in (("init", "-q"), ("add", "m.cat"), (*who, "commit", "-q", "-m", "a model")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / "m.cat").write_text(cat(1))


def program(folder: Path) -> None:
    """A program that launches a kernel, and a driver that runs nothing."""
    sources = Path("tests", "record").resolve()
    for words in (
        ("-shared", "-fPIC", str(sources / "driver.c"), "-lpthread", "-o", "libcuda.so.1"),
        (str(sources / "program.c"), "-o", "program", "-ldl", "-lpthread"),
    ):
        subprocess.run(["cc", "-w", *words], cwd=folder, check=True)


def launched(rounds: int) -> str:
    """The module of the program, with a loop in the kernel that is launched."""
    loop = f"\tmov.u32 %r0, 0;\nLOOP:\n\tadd.u32 %r0, %r0, 1;\n\tsetp.lt.u32 %p0, %r0, {rounds};\n\t@%p0 bra LOOP;\n"
    text = Path("tests", "record", "kernels.ptx").read_text()
    return text.replace("\t@%p1 bra DONE;\n", loop + "\t@%p1 bra DONE;\n")


PROGRAM = ("env", "LD_LIBRARY_PATH=.", "./program", "dlsym", "u", "FILE")
"""It launches one kernel of a file."""


def triton(*lines: str) -> str:
    """A program that launches a kernel of the stand-in for Triton, with a long loop before its barrier. It is given
    `--timeout SECONDS`.
    """
    tests = Path("tests").resolve()
    loop = "mov.u32 %r10, 0;\nLOOP:\nadd.u32 %r10, %r10, 1;\nsetp.lt.u32 %p0, %r10, 100000000;\n@%p0 bra LOOP;\n"
    head = f"import sys\nsys.path[:0] = [{str(tests)!r}, {str(tests / 'helpers' / 'stubs')!r}]\n"
    kernel = f"triton_ptx(barrier=True).replace('bar.sync 0;', '.reg .pred %p<1>;' + {loop!r} + 'bar.sync 0;')"
    return "\n".join(
        (
            head,
            "import triton, memmodel.triton",
            "from helpers.triton_programs import triton_ptx",
            "from memmodel import FakeArray",
            f"long = triton.jit(ptx={kernel})(lambda x, y, n, BLOCK: None)",
            "a, b, seconds = FakeArray((64,)), FakeArray((64,)), float(sys.argv[2])",
            *lines,
        )
    )


SEARCH = ("2 s", "10 s", "200 MB")
"""The budgets of a search."""
OPTIONS = (
    "--mutate",
    "--fix",
    "--readings",
    "--any-grid",
    "--any-trips",
    "--unwritten",
    "--annotate",
    "--report x.html",
)
"""What may be asked about a kernel beside its verdict."""
SMALL = "PTX t\n{ x = 0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ld.weak r0, x ;\nexists (P1:r0 == 1)\n"


def _on(text: Callable[[], str], *command: str) -> Case:
    return Case(text, (*command, "FILE"))


def _kernel(text: Callable[[], str], *options: str) -> Case:
    return Case(text, ("kernel", "FILE", "--launch", "launch.json", *options), ".ptx")


def _model(text: Callable[[], str], *command: str) -> Case:
    return Case(lambda: SMALL, (*(command or ("check",)), "FILE", "--model", "m.cat"), files={"m.cat": text})


CASES: dict[str, Case] = {
    "accesses 6 x 60": _on(lambda: accesses(6, 60), "check"),
    "accesses 20 x 25": _on(lambda: accesses(20, 25), "check"),
    "atomics 4 x 40": _on(lambda: atomics(4, 40), "check"),
    "atomics 24 x 4": _on(lambda: atomics(24, 4), "check"),
    "fences 8 x 16": _on(lambda: fences(8, 16), "check"),
    "fences 30 x 3": _on(lambda: fences(30, 3), "check"),
    "spins 6 x 8": _on(lambda: spins(6, 8), "check"),
    "spins 16 x 2": _on(lambda: spins(16, 2), "check"),
    "SB ring 60": _on(lambda: sb_ring(60), "check"),
    "IRIW fan 30": _on(lambda: iriw_fan(30), "check"),
    "confirmed fences 8 x 16": _on(lambda: fences(8, 16), "check", "--confirm"),
    "enumerated accesses 6 x 60": _on(lambda: accesses(6, 60), "check", "--engine", "enumerate"),
    "states 4 x 6": _on(lambda: states(4, 6), "outcomes"),
    "states 8 x 4": _on(lambda: states(8, 4), "outcomes"),
    "readings of atomics 4 x 40": _on(lambda: atomics(4, 40), "check", "--readings"),
    "fix of fences 8 x 16": _on(lambda: fences(8, 16).replace("fence.sc", "fence.acq_rel"), "fix"),
    "weaken of fences 8 x 16": _on(lambda: fences(8, 16), "weaken"),
    "weaken of accesses 6 x 60": _on(lambda: accesses(6, 60), "weaken"),
    "explain accesses 6 x 60": _on(lambda: accesses(6, 60), "explain"),
    "draw atomics 4 x 40": _on(lambda: atomics(4, 40), "draw", "-o", "-"),
    "draw all of accesses 6 x 60": _on(lambda: accesses(6, 60), "draw", "--all", "-o", "x.svg"),
    "report on fences 8 x 16": _on(lambda: fences(8, 16), "report", "-o", "x.html"),
    "repairs in a report": _on(
        lambda: fences(8, 16).replace("fence.sc", "fence.acq_rel"), "report", "-o", "x.html", "--fix", "--search", "1"
    ),
    "sync of fences 8 x 16": _on(lambda: fences(8, 16), "sync", "--strip", "order"),
    "sync of accesses 6 x 60": _on(lambda: accesses(6, 60), "sync"),
    "sync of spins 6 x 8": _on(lambda: spins(6, 8), "sync", "--strip", "order"),
    "sync of hand-overs": Case(lambda: hand_overs(12), ("sync", "FILE"), ".json"),
    "edits of a model on fences 8 x 16": Case(
        lambda: fences(8, 16), ("mutate-model", "ptx-9.4", "FILE", "-j", "1"), budgets=SEARCH
    ),
    "edits of a model, searched": Case(
        lambda: SMALL, ("mutate-model", "sc", "FILE", "--search", "6", "-j", "1"), budgets=SEARCH
    ),
    "diff on fences 8 x 16": Case(lambda: fences(8, 16), ("diff", "sc", "ptx-9.4", "FILE")),
    "suite of states 8 x 4": _on(lambda: states(8, 4), "suite", "--no-expect"),
    "forall over 300 x 300 x 300": _on(lambda: forall(300), "check"),
    "outcomes of forall": _on(lambda: forall(300), "outcomes"),
    "tiles of 50,000 words": _on(lambda: wide(50_000), "check", "--json", "-"),
    "states of wide tiles": _on(lambda: wide(50_000), "outcomes"),
    "50 MB of newlines": _on(lambda: blank("", 50_000_000), "check"),
    "900 kB of newlines": _on(lambda: blank(SMALL, 900_000), "check"),
    "30 MB of spaces": _on(lambda: SMALL + " " * 30_000_000, "explain"),
    "900 kB of spaces": _on(lambda: SMALL + " " * 900_000, "explain"),
    "900 kB of newlines to be repaired": _on(lambda: blank(SMALL, 900_000, before=True), "fix"),
    "60,000 checks": _model(lambda: cat(60_000)),
    "4,900 checks": _model(lambda: cat(4_900)),
    "4,900 checks explained": _model(lambda: cat(4_900), "explain"),
    "4,900 names": _model(lambda: cat(4_900, "let a{} = po") + "acyclic po as c\n"),
    "squares of relations": _model(lambda: squares(24)),
    "squares of relations, drawn": _model(lambda: squares(24), "draw", "-o", "-"),
    "newlines in a model": _model(lambda: blank('"m"\nacyclic po as c\n', 900_000)),
    "newlines in expectations": Case(
        lambda: SMALL, ("suite", "FILE", "--expected", "e.csv"), files={"e.csv": lambda: blank("path,holds\n", 900_000)}
    ),
    "kernel, 5,000 rounds": _kernel(lambda: kernel(5_000)),
    **{f"kernel, 5,000 rounds, {option}": _kernel(lambda: kernel(5_000), *option.split()) for option in OPTIONS},
    "kernel, 5,000 rounds, what if": _kernel(
        lambda: kernel(5_000), "--what-if", "13: atom.cta.global.add.u32 %r2, [%rd2], 1;"
    ),
    "kernel, 5,000 rounds, what if its scope is less": _kernel(lambda: kernel(5_000), "--what-if", "13: scope=cta"),
    "kernel, 5,000 rounds, many grids": _kernel(lambda: kernel(5_000), "--sweep", "grid.x=1..64"),
    "kernel, 200 rounds, many grids": _kernel(lambda: kernel(200), "--sweep", "grid.x=1..64"),
    "kernel, 200 rounds, an unknown buffer": Case(
        lambda: kernel(200),
        ("kernel", "FILE", "--launch", "l.json"),
        ".ptx",
        {"l.json": lambda: json.dumps({**LAUNCH, "params": []})},
    ),
    "kernel, 200 rounds, litmus tests": _kernel(lambda: kernel(200), "--litmus", "tests", "--sarif", "x.sarif"),
    "100,000 blank lines of PTX": _kernel(lambda: blank(kernel(3), 100_000)),
    "50 MB of newlines of PTX": _kernel(lambda: blank(kernel(3), 50_000_000)),
    "newlines in a launch": Case(
        lambda: kernel(3),
        ("kernel", "FILE", "--launch", "l.json"),
        ".ptx",
        {"l.json": lambda: blank(json.dumps(LAUNCH), 900_000)},
    ),
    "synth of 8 instructions": Case(lambda: "", ("synth", "-n", "8"), budgets=SEARCH),
    "synth of objects": Case(lambda: "", ("synth", "-n", "6", "--vocabulary", "objects", "-j", "1"), budgets=SEARCH),
    "verify 8 instructions": Case(lambda: "", ("verify", "coherence", "-n", "8"), budgets=SEARCH),
    "diff of 8 instructions": Case(
        lambda: "", ("diff", "ptx-7.5", "ptx-9.4", "--search", "8", "-j", "2"), budgets=SEARCH
    ),
    "diff with a revision": Case(
        lambda: fences(8, 16), ("diff", "--git", "HEAD", "m.cat", "FILE", "--no-cache"), prepare=committed
    ),
    "diff with a revision, searched": Case(
        lambda: "", ("diff", "--git", "HEAD", "m.cat", "--search", "8", "-j", "1"), budgets=SEARCH, prepare=committed
    ),
    "launches of a program": Case(
        lambda: launched(100_000_000),
        ("record", "--check", "BUDGET", "--", *PROGRAM),
        ".ptx",
        budgets=("2 s", "10 s"),
        prepare=program,
        unbounded=("record", "--", *PROGRAM),
    ),
    "a kernel of Triton": Case(
        lambda: triton("print(memmodel.triton.check(long, a, b, 64, BLOCK=64, grid=1, seconds=seconds, kept=False))"),
        ("FILE",),
        ".py",
        budgets=("2 s", "10 s"),
        unbounded=("FILE", "--timeout", "0.01"),
        program=(),
    ),
    "a program with a kernel of Triton": Case(
        lambda: triton("memmodel.triton.install(wait=seconds)", "long[(1,)](a, b, 64, BLOCK=64)"),
        ("FILE",),
        ".py",
        budgets=("2 s", "10 s"),
        unbounded=("FILE", "--timeout", "0.01"),
        program=(),
    ),
}


def kernels(folder: str) -> dict[str, Case]:
    """The kernels of a folder, with every option."""
    cases = {}
    for path in sorted(Path(folder).glob("*.ptx")) if folder else ():
        launch = path.with_suffix(".launch.json")
        for option in ("", *OPTIONS):
            command = ("kernel", "FILE", "--launch", str(launch.resolve()), *option.split())
            cases[f"{path.stem} {option}".strip()] = Case(path.read_text, command, ".ptx")
    return cases


BUDGETS: dict[str, tuple[str, ...]] = {
    "2 s": ("--timeout", "2"),
    "10 s": ("--timeout", "10"),
    "200 MB": ("--timeout", "60", "--memory", "200M"),
    "100k steps": ("--timeout", "60", "--budget", "100k"),
}


SAID = {"2 s": "2 seconds", "10 s": "10 seconds", "200 MB": "200 MB of memory", "100k steps": "100,000"}
"""How an answer names a budget."""


@dataclass(frozen=True)
class Used:
    """What a run cost, and how it ended. `share`: the part of the seconds in which it did not wait for a processor."""

    seconds: float
    share: float
    megabytes: float
    code: int
    said: str

    def past(self, limit: float, idle: Used) -> float:
        """Seconds past a limit, as on a machine that does nothing else; an empty run does not count."""
        return (self.seconds - limit) * self.share - idle.seconds * idle.share


def measured(
    argv: Sequence[str], last: float = 200.0, folder: str | None = None, program: Sequence[str] = ("-m", "memmodel")
) -> Used:
    """Run memmodel in a process group of its own: its seconds, its peak memory and its words."""
    begun = monotonic()
    path = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(
            [sys.executable, *program, *argv],
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
        )
        group = _Group(child.pid)
        watch = threading.Thread(target=_watch, args=(child, group, begun + last))
        watch.start()
        code = child.wait()
        seconds = monotonic() - begun
        watch.join()
        out.seek(0)
        said = out.read().decode("utf-8", "replace")
    return Used(seconds, max(0.01, 1 - group.waited / seconds), group.peak, code, said)


class _Group:
    """What the processes of a group have used: `peak` megabytes, and how long they waited for a processor."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.peak = 0.0
        self._waited: dict[int, float] = {}

    @property
    def waited(self) -> float:
        """Seconds: of the leader, and of the one beside it that waited longest, which the leader waits for."""
        others = (seconds for process, seconds in self._waited.items() if process != self.leader)
        return self._waited.get(self.leader, 0.0) + max(others, default=0.0)

    def look(self) -> None:
        """Measure now."""
        together = 0.0
        members = [entry for entry in os.listdir("/proc") if entry.isdigit() and _group_of(entry) == self.leader]
        for member in members:
            try:
                together += _resident(member, alone=len(members) == 1)
                self._waited[int(member)] = int(Path(f"/proc/{member}/schedstat").read_text().split()[1]) / 1e9
            except (OSError, ValueError, IndexError):
                continue
        self.peak = max(self.peak, together)


def _group_of(process: str) -> int | None:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[2])
    except (OSError, ValueError, IndexError):
        return None


def _resident(process: str, *, alone: bool) -> float:
    """Megabytes: of a process by itself the most that it had, of several the part that is their own."""
    path, key = (f"/proc/{process}/status", "VmHWM:") if alone else (f"/proc/{process}/smaps_rollup", "Pss:")
    line = next((line for line in Path(path).read_text().splitlines() if line.startswith(key)), f"{key} 0 kB")
    return int(line.split()[1]) / 1024


def _watch(child: subprocess.Popen[bytes], group: _Group, end: float) -> None:
    while child.poll() is None:
        group.look()
        if monotonic() > end:
            os.killpg(child.pid, signal.SIGKILL)
        sleep(0.03)


def kept(used: Used, budget: Sequence[str], idle: Used, title: str = "") -> str:
    """What was wrong, or nothing."""
    wanted = dict(zip(budget[::2], budget[1::2], strict=True))
    wrong = []
    limit = float(wanted["--timeout"])
    if used.past(limit, idle) > max(limit * 0.1, 1):
        wrong.append("late")
    if "--memory" in wanted:
        size = float(wanted["--memory"].removesuffix("M"))
        if used.megabytes - idle.megabytes > max(size * 1.1, size + 100):
            wrong.append("too much memory")
    if used.code not in (0, 1, 2, 3) or "Traceback" in used.said or "internal error" in used.said:
        wrong.append(f"exit code {used.code}")
    if used.code == 2 and "error: " not in used.said:
        wrong.append("no word about the error")
    named = SAID.get(title, ""), f"{limit:g} seconds", f"{Budget().effort:,}", "stopped", "not shown", "round"
    if used.code == 3 and not any(name in used.said for name in named):
        wrong.append("does not say which bound")
    return ", ".join(wrong)


def _word(said: str) -> str:
    lines = said.splitlines()
    return next((line for line in lines if "undecided" in line or "budget" in line), (lines or [""])[0])[:70].strip()


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    quick, wanted = "--quick" in argv, [word for word in argv if word != "--quick"]
    cases = {**CASES, **kernels(os.environ.get("MEMMODEL_KERNELS", ""))}
    rows = failed = 0
    late, large = (0.0, ""), (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "launch.json").write_text(json.dumps(LAUNCH))
        small = Path(folder, "small.litmus")
        small.write_text(sb_ring(2))
        idle = measured(["check", str(small), "--engine", "z3"], folder=folder)
        for name in (name for name in cases if not wanted or name in wanted):
            case = cases[name]
            file = "large" + case.suffix
            if case.prepare is not None:
                case.prepare(Path(folder))
            for other, text in {**case.files, file: case.text}.items():
                Path(folder, other).write_text(text())
            for title in case.budgets[: 1 if quick else None]:
                words = [file if word == "FILE" else word for word in case.command]
                start = idle.seconds
                if case.unbounded:
                    alone = [file if word == "FILE" else word for word in case.unbounded]
                    start += measured(alone, folder=folder, program=case.program).seconds
                at = words.index("BUDGET") if "BUDGET" in words else len(words)
                words[at : at + 1] = BUDGETS[title]
                used = measured(words, folder=folder, program=case.program)
                before = replace(idle, seconds=start)
                wrong = kept(used, BUDGETS[title], before, title)
                rows, failed = rows + 1, failed + bool(wrong)
                limit = float(BUDGETS[title][1])
                late = max(late, (used.past(limit, before), f"{name}, {title}"))
                if title == "200 MB":
                    large = max(large, (used.megabytes - idle.megabytes - 200, f"{name}, {title}"))
                print(
                    f"{name:34} {title:10} {used.seconds:6.1f} s {used.megabytes:6.0f} MB  exit {used.code}  "
                    f"{_word(used.said)}{'  <-- ' + wrong if wrong else ''}",
                    flush=True,
                )
    print(f"{rows} inputs and budgets, {rows - failed} kept")
    print(f"latest: {late[0]:.1f} s past the budget ({late[1]}); largest: {large[0]:.0f} MB past it ({large[1]})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
