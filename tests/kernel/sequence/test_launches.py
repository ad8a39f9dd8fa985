"""Launches in the order of a stream: what one finds in memory, and pairs of which the second may begin early."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memmodel import check_kernel, check_launches
from memmodel.cli.app import app
from memmodel.errors import InputError
from memmodel.kernel.export.grids import NO_WAIT, NOT_BY_WAIT
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n.global .u32 limit;\n"
A, B, C = (f"{number:#x}00000000" for number in (1, 2, 3))


def entry(name: str, count: int, *lines: str) -> str:
    """A kernel of `count` pointers, in %rd1 and so on; %r3 is the number of the thread in the grid, %rd21 and so on are
    the addresses of its words.
    """
    params = ", ".join(f".param .u64 {name}_{number}" for number in range(count))
    loads = [f"ld.param.u64 %rd{number + 1}, [{name}_{number}];" for number in range(count)]
    words = [f"add.s64 %rd{number + 21}, %rd{number + 1}, %rd20;" for number in range(count)]
    body = (
        *loads, "mov.u32 %r1, %ctaid.x;", "mov.u32 %r2, %tid.x;", "mad.lo.s32 %r3, %r1, 32, %r2;",
        "mul.wide.s32 %rd20, %r3, 4;", *words, *lines, "ret;",
    )  # fmt: skip
    registers = ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<32>;"
    return "\n".join((f".visible .entry {name}({params}) {{", registers, *body, "}\n"))


FILL = entry("fill", 1, "shl.b32 %r4, %r3, 3;", "st.global.u32 [%rd21], %r4;")
SCATTER = entry(
    "scatter", 2, "ld.global.u32 %r4, [%rd21];", "mul.wide.s32 %rd5, %r4, 4;", "add.s64 %rd6, %rd2, %rd5;",
    "st.global.u32 [%rd6], %r3;",
)  # fmt: skip


def launch(kernel: str, *addresses: str, grid: int = 1, size: int = 4096, **more: Any) -> dict[str, Any]:
    params = {f"{kernel}_{n}": {"type": "ptr", "address": place, "bytes": size} for n, place in enumerate(addresses)}
    return {"kernel": kernel, "grid": grid, "block": 32, "params": params, **more}


def judged(text: str, *launches: dict[str, Any]) -> list[KernelVerdict]:
    return check_launches(parse_module(Source("k.ptx", HEADER + text)), launches)


def words(text: str, *launches: dict[str, Any]) -> list[str]:
    return [verdict.word for verdict in judged(text, *launches)]


def test_the_second_reads_what_the_first_wrote() -> None:
    """Indices that the first kernel writes decide where the second one stores."""
    pair = launch("fill", A), launch("scatter", A, B)
    assert words(FILL + SCATTER, *pair) == ["clean", "clean"]
    assert words(FILL.replace("%r3, 3", "%r2, 31") + SCATTER, *pair) == ["clean", "findings"]
    # Nothing is known of what no launch before wrote, what one with findings wrote, or what atomic operations left.
    assert words(FILL + SCATTER, launch("fill", C), launch("scatter", A, B)) == ["clean", "undecided"]
    assert words(FILL.replace("[%rd21]", "[%rd1]") + SCATTER, *pair) == ["findings", "undecided"]
    added = FILL.replace("ret;", "red.relaxed.gpu.global.add.u32 [%rd21], 0;\nret;")
    assert words(added + SCATTER, *pair) == ["clean", "undecided"]
    # What the description gives comes first: the host has written it in between.
    given = launch("scatter", A, B)
    given["params"]["scatter_0"]["init"] = "zero"
    assert words(FILL + SCATTER, launch("fill", A), given) == ["clean", "findings"]


def test_a_variable_of_the_module_keeps_its_value() -> None:
    count = entry("count", 0, "mov.u32 %r4, 3;", "st.global.u32 [limit], %r4;")
    loop = entry(
        "loop", 1, "ld.global.u32 %r4, [limit];", "setp.ge.u32 %p1, %r3, %r4;", "@%p1 bra OUT;",
        "st.global.u32 [%rd1], %r3;", "OUT:",
    )  # fmt: skip
    counted = {"kernel": "count", "grid": 1, "block": 1}
    assert words(count + loop, counted, launch("loop", A)) == ["clean", "findings"]
    assert words(count + loop, launch("loop", A)) == ["clean"]  # zero, as when the module is loaded
    (alone,) = judged(count + loop, launch("loop", A))
    assert any("limit holds zeros" in what for what in alone.assumptions)
    late = judged(count.replace("[limit], %r4", "[limit], %r3") + loop, {**counted, "block": 32}, launch("loop", A))
    assert [verdict.word for verdict in late] == ["findings", "undecided"]
    assert not any("limit holds zeros" in what for what in late[1].assumptions)
    after = judged(FILL + loop, launch("fill", B), launch("loop", A))[1]
    assert after.clean and any("limit holds zeros" in what for what in after.assumptions)


WAIT, LAUNCH = "griddepcontrol.wait;", "griddepcontrol.launch_dependents;"
WRITES = entry("writes", 1, LAUNCH, "st.global.u32 [%rd21], %r3;")
ATOMIC = entry("writes", 1, LAUNCH, "red.relaxed.gpu.global.add.u32 [%rd21], 1;")


def reads(*lines: str) -> str:
    return entry("reads", 2, *lines)


USE = ("ld.global.u32 %r5, [%rd21];", "st.global.u32 [%rd22], %r5;")
PAIRS = {
    "waits": (WRITES, reads(WAIT, *USE), "clean", ""),
    "no wait": (WRITES, reads(*USE), "findings", ""),
    "reads before it waits": (WRITES, reads(USE[0], WAIT, USE[1]), "findings", ""),
    "writes before it waits": (
        entry("writes", 1, LAUNCH, "ld.global.u32 %r5, [%rd21];"), reads("st.global.u32 [%rd21], %r3;", WAIT),
        "findings", "",
    ),
    "touches other memory before it waits": (
        WRITES, reads("ld.global.u32 %r6, [%rd22];", WAIT, USE[0], "add.u32 %r5, %r5, %r6;", USE[1]), "clean", "",
    ),
    "begins when all have ended": (WRITES.replace(LAUNCH, ""), reads(*USE), "findings", ""),
    "the read-only path": (WRITES, reads(WAIT, USE[0].replace("global", "global.nc"), USE[1]), "findings", ""),
    "a barrier before the read, and no wait": (WRITES, reads("bar.sync 0;", *USE), "findings", ""),
    "another thread waits, and a barrier is behind it": (
        WRITES, reads("setp.ne.u32 %p1, %r2, 0;", "@%p1 bra IN;", WAIT, "IN:", "bar.sync 0;", *USE), "clean", "",
    ),
    "the barrier comes before its wait": (
        WRITES, reads("setp.ne.u32 %p1, %r2, 0;", "bar.sync 0;", "@%p1 bra IN;", WAIT, "IN:", *USE), "findings", "",
    ),
    "the read-only path, behind a barrier": (
        WRITES,
        reads("setp.ne.u32 %p1, %r2, 0;", "@%p1 bra IN;", WAIT, "IN:", "bar.sync 0;",
              USE[0].replace("global", "global.nc"), USE[1]), "findings", "",
    ),
    # What is not followed is named.
    "another thread waits, and an unlocked word may tell of it": (
        WRITES,
        reads("setp.ne.u32 %p1, %r2, 0;", "@%p1 bra IN;", WAIT, "st.relaxed.cta.shared.u32 [words], 1;", "IN:",
              "ld.relaxed.cta.shared.u32 %r6, [words];", *USE
        ).replace(".reg", ".shared .align 16 .b8 words[128];\n.reg", 1),
        "undecided", "whether anything else orders ld.global.u32 at line",
    ),
    "an asynchronous read of threads that do not wait": (
        WRITES,
        reads(
            "mul.lo.u32 %r7, %r2, 4;", "mov.u32 %r6, words;", "add.u32 %r6, %r6, %r7;", "setp.ne.u32 %p1, %r2, 0;",
            "@%p1 bra IN;", WAIT, "bra OUT;", "IN:", "cp.async.ca.shared.global [%r6], [%rd21], 4;", "OUT:",
        ).replace(".reg", ".shared .align 16 .b8 words[128];\n.reg", 1), "findings", "",
    ),
    "waits twice": (WRITES, reads(WAIT, *USE, "bar.sync 0;", WAIT), "clean", ""),
    "an asynchronous read and lanes of several buffers behind the wait": (
        WRITES,
        reads(
            "mul.lo.u32 %r7, %r2, 4;", "mov.u32 %r6, words;", "add.u32 %r6, %r6, %r7;", "setp.lt.u32 %p2, %r2, 9;",
            "selp.b64 %rd25, %rd21, %rd22, %p2;", WAIT, "ld.global.u32 %r5, [%rd25];",
            "cp.async.ca.shared.global [%r6], [%rd21], 4;",
        ).replace(".reg", ".shared .align 16 .b8 words[128];\n.reg", 1), "clean", "",
    ),
    "an asynchronous read at once behind the wait": (
        WRITES,
        reads(
            "mul.lo.u32 %r7, %r2, 4;", "mov.u32 %r6, words;", "add.u32 %r6, %r6, %r7;", WAIT,
            "cp.async.ca.shared.global [%r6], [%rd21], 4;",
        ).replace(".reg", ".shared .align 16 .b8 words[128];\n.reg", 1), "clean", "",
    ),
    "a fence before the launch": (
        WRITES.replace("ret;", f"fence.acq_rel.gpu;\n{LAUNCH}\nret;").replace(LAUNCH, "", 1), reads(*USE), "undecided",
        "whether anything else orders",
    ),
    "a relaxed store before the launch": (
        WRITES.replace(LAUNCH, f"st.relaxed.gpu.global.u32 [%rd1+4096], %r3;\n{LAUNCH}"), reads(*USE), "findings", "",
    ),
    "a release before the launch": (
        WRITES.replace("ret;", f"st.release.gpu.global.u32 [%rd1+4096], %r3;\n{LAUNCH}\nret;").replace(LAUNCH, "", 1),
        reads(*USE), "undecided", "whether anything else orders",
    ),
    "atomic operations, and a weak read": (ATOMIC, reads(*USE), "findings", ""),
    "reads first, and a word that may tell of the wait of another thread": (
        WRITES,
        reads("setp.ne.u32 %p1, %r2, 0;", "@%p1 bra IN;", WAIT, "st.relaxed.cta.shared.u32 [words], 1;", "bra OUT;",
              "IN:", *USE, "ld.relaxed.cta.shared.u32 %r6, [words];", "OUT:"
        ).replace(".reg", ".shared .align 16 .b8 words[128];\n.reg", 1), "findings", "",
    ),
    "lanes read first, in several buffers, and a word that may tell of the wait of another thread": (
        WRITES,
        reads("setp.ne.u32 %p1, %r2, 0;", "setp.lt.u32 %p2, %r2, 9;", "selp.b64 %rd25, %rd21, %rd22, %p2;",
              "@%p1 bra IN;", WAIT, "st.relaxed.cta.shared.u32 [words], 1;", "bra OUT;", "IN:",
              "ld.global.u32 %r5, [%rd25];", "ld.relaxed.cta.shared.u32 %r6, [words];", "OUT:"
        ).replace(".reg", ".shared .align 16 .b8 words[128];\n.reg", 1), "findings", "",
    ),
    "atomic operations of both": (
        ATOMIC, reads("red.relaxed.gpu.global.add.u32 [%rd21], 1;", WAIT), "undecided", "what they read of each other",
    ),
    "atomic operations, and it waits": (ATOMIC, reads(WAIT, "red.relaxed.gpu.global.add.u32 [%rd21], 1;"), "clean", ""),
    "something depends on the schedule": (
        entry("writes", 1, "atom.relaxed.gpu.global.add.u32 %r5, [%rd1], 1;", "setp.eq.u32 %p1, %r5, 5;",
              "@%p1 st.global.u32 [%rd1+1024], %r5;"), reads(WAIT, *USE), "undecided", "was not followed",
    ),
}  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize("name", PAIRS)
def test_a_launch_that_may_begin_early(name: str) -> None:
    first, second, word, reason = PAIRS[name]
    early = launch("reads", A, B, grid=2, programmatic=True)
    before, verdict = judged(first + second, launch("writes", A, grid=2, size=8192), early)
    assert verdict.word == word, (verdict.open, verdict.findings)
    assert before.word != "findings" and any(reason in what for what in verdict.open) is bool(reason)
    if word == "findings":
        assert [side.what.split(" (")[0][-8:] for side in verdict.findings[0].sides] == ["launch 1", "launch 2"]
        assert verdict.findings[0].reason == (NOT_BY_WAIT if "read-only path" in name else NO_WAIT)
    assert not any("launch before writes" in what for what in verdict.assumptions)
    early["programmatic"] = False
    assert judged(first + second, launch("writes", A, grid=2, size=8192), early)[1].word == "clean"


@pytest.mark.parametrize(("meet", "word"), [("barrier.cluster.wait;", "clean"), ("", "findings")])
def test_another_cta_of_the_cluster_waits(meet: str, word: str) -> None:
    early = reads(
        "mov.u32 %r8, %cluster_ctarank;", "setp.ne.u32 %p1, %r8, 0;", "@%p1 bra IN;", WAIT, "IN:",
        "barrier.cluster.arrive;", meet, *USE,
    )  # fmt: skip
    second = launch("reads", A, B, grid=2, cluster=2, programmatic=True)
    assert judged(WRITES + early, launch("writes", A, grid=2), second)[1].word == word


def test_the_last_block_of_many_counts() -> None:
    """A launch of which some CTAs are run first: what the others write is read too early."""
    early = reads("ld.global.u32 %r5, [%rd1+38396];", WAIT, USE[1])
    second = launch("reads", A, B, size=40960, programmatic=True)
    for grid, word in ((300, "findings"), (299, "clean")):
        assert judged(WRITES + early, launch("writes", A, grid=grid, size=40960), second)[1].word == word


def test_a_chain_of_early_launches() -> None:
    """A wait is for the launch before. What that one did not wait for may still run."""
    between = entry("between", 1, WAIT, LAUNCH, "st.global.u32 [%rd21], %r3;")
    last = launch("reads", A, B, programmatic=True)
    chain = launch("writes", A), launch("between", C, programmatic=True), last
    assert words(WRITES + between + reads(WAIT, *USE), *chain) == ["clean"] * 3
    open_chain = judged(WRITES + between.replace(WAIT, "") + reads(WAIT, *USE), *chain)
    assert [verdict.word for verdict in open_chain] == ["clean", "clean", "undecided"]
    assert "launch 1 (writes)" in open_chain[2].open[0]
    plain = launch("writes", A), launch("between", C), last
    assert words(WRITES + between.replace(WAIT, "") + reads(WAIT, *USE), *plain) == ["clean"] * 3


def invoke(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["kernel", *map(str, words)])
    return result.exit_code, result.output


COUNT = entry("count", 0, "mov.u32 %r4, 3;", "st.global.u32 [limit], %r4;")
LOOP = entry(
    "loop", 1, "ld.global.u32 %r4, [limit];", "setp.ge.u32 %p1, %r3, %r4;", "@%p1 bra OUT;",
    "st.global.u32 [%rd1], %r3;", "OUT:",
)  # fmt: skip
COUNTED, LOOPED = {"kernel": "count", "grid": 1, "block": 1}, launch("loop", A)
OTHER = launch("fill", A)


@pytest.mark.parametrize(
    ("first", "second", "launches", "expected"),
    [
        (COUNT + LOOP, FILL, (COUNTED, OTHER, LOOPED), ["clean", "clean", "findings"]),  # what a launch left stays
        (COUNT, LOOP, (COUNTED, LOOPED), ["clean", "clean"]),  # another variable of that name holds zeros
        (COUNT.replace("[limit], %r4", "[limit], %r3"), LOOP, ({**COUNTED, "block": 32}, LOOPED),
         ["findings", "undecided"]),  # what it may have written
        (COUNT, LOOP, (launch("fill", B), COUNTED, LOOPED), "kernel fill is in none of a.ptx, b.ptx"),
        (COUNT + LOOP, LOOP, (COUNTED, LOOPED), "kernel loop is in each of a.ptx, b.ptx"),
        (COUNT, LOOP.replace(".visible", ".extern .global .u32 x;\n.visible"), (COUNTED, LOOPED), "x is a variable of"),
    ],
)  # fmt: skip
def test_variables_of_two_modules(first: str, second: str, launches: Any, expected: Any) -> None:
    modules = [parse_module(Source(name, HEADER + text)) for name, text in (("a.ptx", first), ("b.ptx", second))]
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            check_launches(modules, launches)
        return
    verdicts = check_launches(modules, launches)
    assert [verdict.word for verdict in verdicts] == expected
    assert any("variables of two files" in what for what in verdicts[-1].assumptions)


@pytest.mark.parametrize("wait", [WAIT, ""])
def test_a_pair_of_two_modules(tmp_path: Path, wait: str) -> None:
    """The kernels of two files, which are both handed over, or named by the launches."""
    launches = [launch("writes", A), launch("reads", A, B, programmatic=True)]
    (tmp_path / "a.ptx").write_text(HEADER + WRITES)
    (tmp_path / "b.ptx").write_text(HEADER + "\n" + reads(wait, *USE))
    listed = tmp_path / "l.json"
    listed.write_text(json.dumps(launches))
    expected = [0, f"clean writes {tmp_path}/a.ptx\nclean reads {tmp_path}/b.ptx\n"]
    if not wait:
        expected = [1, expected[1].replace("clean reads", "findings reads")[:-1] + " data-race@line:14+line:17\n"]
    options = "--launch", listed, "--short"
    assert [*invoke(tmp_path / "a.ptx", tmp_path / "b.ptx", *options)] == expected
    code, output = invoke(tmp_path / "a.ptx", *options)
    assert code == 2 and "has no entry reads" in output and '"module": "FILE"' in output
    for file, answer in (("b.ptx", expected[0]), ("../b.ptx", 2)):
        listed.write_text(json.dumps([launches[0], {**launches[1], "module": file}]))
        assert invoke(tmp_path / "a.ptx", *options)[0] == answer
    listed.write_text(json.dumps({**launches[0], "module": "a.ptx"}))
    assert "one launch is of the file" in invoke(tmp_path / "a.ptx", *options)[1]


def test_the_command(tmp_path: Path) -> None:
    """A list in a file or in a comment; JSON has a list of verdicts, and the exit code is the worst."""
    early = launch("reads", A, B, programmatic=True)
    launches = [launch("writes", A), early]
    (tmp_path / "k.ptx").write_text(HEADER + WRITES + reads(*USE))
    (tmp_path / "l.json").write_text(json.dumps(launches))
    code, output = invoke(tmp_path / "k.ptx", "--launch", tmp_path / "l.json", "--json", tmp_path / "out.json")
    assert (
        code == 1
        and output.startswith("launch 1 of 2:\nclean: writes,")
        and "\nlaunch 2 of 2:\nfindings: reads," in output
    )
    assert "writes in launch 1 (writes), CTA 0 warp 0 lane 0\n" in output and "missing: griddepcontrol.wait" in output
    assert [verdict["verdict"] for verdict in json.loads((tmp_path / "out.json").read_text())] == ["clean", "findings"]
    comment = f"// memmodel: launch {json.dumps({'launches': launches})}\n"
    (tmp_path / "c.ptx").write_text(comment + HEADER + WRITES + reads(WAIT, *USE))
    short = "".join(f"clean {name} {tmp_path}/c.ptx\n" for name in ("writes", "reads"))
    assert invoke(tmp_path / "c.ptx", "--short") == (0, short)
    for options, message in (
        (("--grid", "2"), "a list of launches"), (("--fix",), "2 launches, and one is judged here"),
    ):  # fmt: skip
        code, output = invoke(tmp_path / "c.ptx", *options)
        assert code == 2 and message in output
    with pytest.raises(InputError, match="check_launches judges a list"):
        check_kernel(tmp_path / "c.ptx")
    assert [verdict.word for verdict in check_launches(tmp_path / "c.ptx")] == ["clean", "clean"]
    for wrong in ([], [1], {"launches": {}}, {"launches": launches, "grid": 1}):
        (tmp_path / "l.json").write_text(json.dumps(wrong))
        assert invoke(tmp_path / "k.ptx", "--launch", tmp_path / "l.json")[0] == 2
