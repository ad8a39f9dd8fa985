"""A family of launches: the smallest counterexample is the smallest, and what is not judged is never clean."""

from __future__ import annotations

import json
import os
import random
import signal
from itertools import product
from pathlib import Path
from time import monotonic

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import HEAD
from jsonschema import Draft202012Validator

import memmodel
from memmodel.cli.app import app
from memmodel.cli.commands.schema import json_schema
from memmodel.errors import InputError
from memmodel.kernel.sweep import judging
from memmodel.kernel.sweep.axes import axes
from memmodel.kernel.sweep.family import LaunchGroup
from memmodel.kernel.sweep.ranges import boxes_of
from memmodel.workers import KILLED

GALLERY = Path(__file__).parents[3] / "docs" / "gallery"

KERNEL = (
    HEAD
    + """
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<8>;
.shared .b32 s[64];
ld.param.u64 %d0, [p];
ld.param.u32 %r1, [n];
mov.u32 %r0, %tid.x;
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %d1, %r0, 4;
add.u64 %d1, %d0, %d1;
BODY
ret;
}
"""
)


def run(folder: Path, body: str, *words: str) -> tuple[int, str]:
    (folder / "k.ptx").write_text(KERNEL.replace("BODY", body))
    launch = ["--grid", "1", "--block", "32", "--set", "p=4096"]
    done = CliRunner().invoke(app, ["kernel", str(folder / "k.ptx"), *launch, *words])
    return done.exit_code, done.output


@pytest.mark.parametrize(("name", "block", "sizes", "number"), [
    ("fence-in-a-loop", 128, ("0=512", "1=2048"), 2),
    ("tmem-address-too-early", 128, ("0=512",), 1),
    ("arrives-and-does-not-wait", 64, ("0=128",), 1),
])  # fmt: skip
def test_the_smallest_counterexample_has_no_tile(
    name: str, block: int, sizes: tuple[str, ...], number: int, tmp_path: Path
) -> None:
    words = ["--grid", "1", "--block", str(block), *(word for size in sizes for word in ("--set", size))]
    out = tmp_path / "o.json"
    command = ["kernel", str(GALLERY / f"{name}.ptx"), *words, "--sweep", f"{number}=0..2", "--json", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1 and f"smallest counterexample: --set {number}=0\nfindings: kernel" in done.output
    assert f"  clean: 2 launches: {number}=1,2" in done.output
    data = json.loads(out.read_text())
    Draft202012Validator(json_schema("sweep")).validate(data)
    assert data["counterexample"] == {str(number): 0} and data["found"]["verdict"] == "findings" and data["left"] == 0


def test_a_parameter_that_nothing_depends_on_costs_one_verdict(tmp_path: Path) -> None:
    code, output = run(tmp_path, "st.global.u32 [%d1], %r1;", "--sweep", "n=0..5000")
    assert code == 0 and output.startswith("clean: k, 5,001 launches with n=0..5000, under ptx-9.4, 1 verdict\n")


def test_what_an_atomic_operation_compares_with_is_not_left_unknown(tmp_path: Path) -> None:
    body = "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra END;\natom.global.cas.b32 %r3, [%d0], {}, 1;\nEND:"
    assert run(tmp_path, body.format("%r1"), "--sweep", "n=1..3")[1].splitlines()[0].endswith("3 verdicts")
    assert run(tmp_path, body.format("5"), "--sweep", "n=1..3")[1].splitlines()[0].endswith("1 verdict")


@pytest.mark.parametrize("body", [
    "setp.ne.u32 %p1, %r1, 7;\n@%p1 bra END;\nst.global.u32 [%d0], %r0;\nEND:",
    "sub.u32 %r3, %r1, 7;\nmul.lo.u32 %r3, %r3, %r0;\nst.global.u32 [%d0], %r3;",
])  # fmt: skip
def test_a_parameter_on_which_something_depends(body: str, tmp_path: Path) -> None:
    """The race is there for 7 only, or for all but 7, and the smallest is shown."""
    code, output = run(tmp_path, body, "--sweep", "n=5..9")
    smallest, clean = ("7", "n=5,6,8,9") if "bra" in body else ("5", "n=7")
    assert code == 1 and f"smallest counterexample: --set n={smallest}\n" in output, output
    assert f"s: {clean}\n" in output or f": {clean}\n" in output


def test_sizes_that_follow_from_others(tmp_path: Path) -> None:
    """CTAs store to the same words from the second one on. Expressions alone use a name that the kernel has not."""
    sweep = "M=0..128:16,grid.x=(M+63)/64"
    code, output = run(tmp_path, "st.global.u32 [%d1], %r2;", "--sweep", sweep)
    first, *rest = output.splitlines()
    assert code == 1 and first.startswith("findings: k, 9 launches") and first.endswith("2 verdicts"), output
    assert "smallest counterexample: --set grid.x=2" in rest and "  clean: 4 launches: M=16..64:16" in rest
    assert "  no launch (the grid has no CTA): 1 launch: M=0" in rest
    assert run(tmp_path, "st.global.u32 [%d1], %r2;", "--set", "grid.x=2")[0] == 1
    assert run(tmp_path, "st.global.u32 [%d1], %r2;", "--sweep", "M=0..1,grid.x=M")[0] == 0
    code, output = run(tmp_path, "", "--sweep", "block.x=512..1536:1024")
    assert code == 2 and "a CTA has at most 1024 threads, not 1536): 1 launch: block.x=1536" in output
    assert "clean: 1 launch: block.x=512" in output


def test_what_is_not_judged_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("memmodel.kernel.sweep.sweeping.monotonic", lambda: monotonic() - 10_000)
        code, output = run(tmp_path, "", "--sweep", "grid.x=1..3")
    assert code == 3 and output.startswith("undecided: k, 3 launches") and "not judged: 3 launches" in output
    code, output = run(tmp_path, "ld.global.u32 %r3, [%d1];\nmul.wide.u32 %d2, %r3, 4;\nadd.u64 %d2, %d2, %d1;\n"
                       "st.global.u32 [%d2], %r0;", "--sweep", "n=1..3,block.x=1..2")  # fmt: skip
    assert code == 3 and "clean" not in output


def test_a_sweep_in_python(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(KERNEL.replace("BODY", "st.global.u32 [%d1], %r2;"))
    seen: list[tuple[int, int]] = []
    launch = {"grid": 1, "block": 32, "params": {"p": 4096}}
    result = memmodel.sweep_kernel(
        tmp_path / "k.ptx", "n=1..3,grid.x=1..2", launch, progress=lambda _, done, total: seen.append((done, total))
    )
    assert result.word == "findings" and result.counterexample == (("n", 1), ("grid.x", 2)) and result.left == 0
    assert result.verdict is not None and result.verdict.launch.grid == (2, 1, 1) and seen[-1] == (6, 6)
    assert repr(result).startswith("<Sweep k, n=1..3,grid.x=1..2 under ptx-9.4: findings")


def test_several_processes_say_the_same(tmp_path: Path) -> None:
    words = ("st.global.u32 [%d1], %r2;", "--sweep", "n=1..3,grid.x=1..4")
    alone = run(tmp_path, *words)
    assert alone[0] == 1 and run(tmp_path, *words, "--jobs", "2") == alone


def test_a_process_that_is_killed_costs_its_own_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One launch ends its process whenever it is judged, and one when it is judged first."""
    judge = judging._answers

    def deadly(work: judging.SweepWork, group: LaunchGroup) -> judging.GroupAnswers:
        size = dict(next(iter(group)))["grid.x"]
        if size == 3 or (size == 5 and not (tmp_path / "seen").exists()):
            (tmp_path / "seen").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return judge(work, group)

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(judging, "_answers", deadly)
    code, output = run(tmp_path, "bar.sync 0;", "--sweep", "grid.x=1..8", "--jobs", "2")
    assert code == 3 and "clean: 7 launches: grid.x=1,2,4..8" in output and f"not judged: {KILLED}" in output, output


@pytest.mark.parametrize(("text", "says"), [
    ("n", "not a name and its values"),
    ("=1..2", "no name before"),
    ("n=3..1", "is not a range"),
    ("n=0..4:0", "is not a range"),
    ("n=0..200000", "more than 100,000 values"),
    ("n=0..999,m=0..999", "1,000,000 launches"),
    ("n=1..2,n=3", "given twice"),
    ("n=m+1", "m is not an axis before"),
    ("n=1..2,m=__import__('os')", "an expression has numbers"),
    ("n=1..2,m=n**9", "an expression has numbers"),
    ("n=1..2,m=n..4", "neither numbers, nor ranges"),
    ("m=(4+4)", "no size goes through a range"),
    ("n=0..2,m=4/n", "no value with n = 0"),
])  # fmt: skip
def test_what_a_sweep_cannot_be(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        family = axes(text)
        list(map(family.sizes, family.launches()))


def test_numbers_ranges_and_expressions() -> None:
    family = axes("K=0..6:2,9, M = 1..2 ,t=min(K,4)/2,grid.x=max(1, (t+M)%3)*2-1")
    assert [(axis.name, axis.values) for axis in family.free] == [("K", (0, 2, 4, 6, 9)), ("M", (1, 2))]
    assert family.count == 10 and family.sizes((9, 2)) == {"K": 9, "M": 2, "t": 2, "grid.x": 1}


def test_ranges_are_what_was_chosen() -> None:
    """What is printed is a sweep of just these launches."""
    family, luck = axes("a=0..20:4,b=1,2,4,8,c=5..7"), random.Random(26)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        chosen = [values for values in family.launches() if luck.random() < share]
        printed = [values for text in boxes_of(chosen, family.free) for values in axes(text).launches()]
        assert sorted(printed) == sorted(chosen)
    assert boxes_of(list(product((0, 4, 8, 16), (2,), (5, 7))), family.free) == ["a=0..8:4,16,b=2,c=5,7"]
