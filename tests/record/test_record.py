"""`memmodel record`: programs that launch kernels on a driver that only checks what it is given.

The driver (`driver.c`), the program (`program.c`) and the library are built once. The program prints what came back
from every call, and a sum over all that arrived at the driver: watched or not, it has to print the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.patience import PATIENCE

from memmodel.cli.app import app
from memmodel.cli.kernels.several import KernelRun
from memmodel.errors import InputError
from memmodel.record import library

HERE = Path(__file__).parent
PTX = HERE / "kernels.ptx"


def c_compiler() -> list[str]:
    try:
        return library.compiler()
    except InputError:
        return []


pytestmark = pytest.mark.skipif(sys.platform != "linux" or not c_compiler(), reason="no C compiler, or not Linux")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("built")
    driver = ["-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", str(HERE / "driver.c"), "-lpthread"]
    program = ["-w", str(HERE / "program.c")]
    (folder / "old").mkdir()
    for words in (
        [*driver, "-o", "libcuda.so.1"],
        [*driver, "-DOLD", "-o", "old/libcuda.so.1"],
        [*program, "-o", "program", "-ldl", "-lpthread"],
        [*program, "-DLINKED", "-o", "linked", "./libcuda.so.1", "-ldl", "-lpthread"],
    ):
        subprocess.run([*c_compiler(), *words], cwd=folder, check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMMODEL_CACHE", str(folder / "cache"))
        patch.setenv("LD_LIBRARY_PATH", str(folder))
        patch.setenv("PATH", str(folder / "bin"), prepend=os.pathsep)
        yield folder


@dataclass(frozen=True)
class Alone:
    """A program that ran without being watched."""

    code: int
    lines: list[str]


def alone(*program: object) -> Alone:
    done = subprocess.run(list(map(str, program)), capture_output=True, text=True, timeout=PATIENCE)
    return Alone(128 - done.returncode if done.returncode < 0 else done.returncode, done.stdout.splitlines())


@dataclass(frozen=True)
class Recorded:
    """A recording: the exit code, what the program printed, what we said, the launches by their files."""

    code: int
    printed: list[str]
    said: list[str]
    launches: dict[str, dict[str, Any]]


def recorded(capfd: pytest.CaptureFixture[str], out: Path, *program: object, options: tuple[str, ...] = ()) -> Recorded:
    capfd.readouterr()
    result = CliRunner().invoke(app, ["record", "-o", str(out), *options, "--", *map(str, program)])
    assert not list(out.glob(".*")), "nothing else is left in the folder"
    launches = {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}
    assert not result.exit_code or f"ended with exit code {result.exit_code}" in result.stderr or options
    return Recorded(result.exit_code, capfd.readouterr().out.splitlines(), result.stdout.splitlines(), launches)


def invoke(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["record", *map(str, words)])
    return result.exit_code, result.output


@pytest.mark.parametrize("way", ["linked", "dlsym", "address", "streams"])
def test_every_way_to_the_driver(built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], way: str) -> None:
    """Linked, by dlsym, by cuGetProcAddress, with the default stream of the thread. The launches are those that were
    made: parameters one by one or packed, a structure, a tensor map, a cluster, a view into a buffer. One that may
    begin early comes with the one before it in its stream, too.
    """
    program = [built / ("linked" if way == "linked" else "program"), way, "o", PTX]
    before, watched = alone(*program), recorded(capfd, tmp_path, *program)
    assert before.code == watched.code == 5
    assert before.lines == watched.printed and before.lines[0].endswith("tiled 0, errno 77")
    assert watched.said[-1] == f"3 kernels in 6 launches: {tmp_path}"
    command = f"memmodel kernel {tmp_path}/module.ptx --launch {tmp_path}/scale.json  # scale, grid 4×1×1"
    assert watched.said[0].startswith(command)
    scale, fused, tiled = (watched.launches[name] for name in ("scale-2", "fused-2", "tiled"))
    (x,) = scale["buffers"]
    assert (scale["grid"], scale["block"], x["bytes"]) == ([4, 1, 1], [64, 1, 1], 16384)
    assert [param["value"] for param in scale["params"]] == [x["address"] + 1024, 256, 2.0]
    x, y = fused["buffers"]
    words = [x["address"], 101, y["address"]]
    assert fused["params"][0]["hex"] == b"".join(word.to_bytes(8, "little") for word in words).hex()
    assert (fused["block"], fused["dynamic_shared"], y["bytes"]) == ([32, 2, 1], 512, 4096)
    assert tiled["cluster"] == [2, 1, 1]
    assert tiled["tensormaps"] == [
        {
            "param": "tiled_param_0", "address": tiled["buffers"][0]["address"], "element_bytes": 2, "dims": [64, 128],
            "strides_bytes": [128], "box": [64, 32], "swizzle": 128,
        }
    ]  # fmt: skip
    first, second = watched.launches["scale-tiled"]["launches"]
    assert second["programmatic"] and second["tensormaps"][0]["address"] == first["params"][0]["value"] - 1024


@pytest.mark.parametrize(
    ("what", "launches"),
    [
        ("dt", 3),  # threads, and every file is closed
        ("f", 4),  # forks beside threads
        ("wo", 7),  # sizes that the driver refuses, bad addresses
        ("oc", 6),  # a crash
        ("te", 9),  # another program in the same process
        ("u", 1),  # a module is unloaded, and its kernel launched
    ],
)
def test_the_program_does_not_notice(
    built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], what: str, launches: int
) -> None:
    program = [built / "program", "address", what, PTX]
    before, watched = alone(*program), recorded(capfd, tmp_path, *program)
    assert (before.code, before.lines) == (watched.code, watched.printed)
    assert len(watched.launches) == launches, watched.said
    assert not any(launch.get("block") == [2048, 1, 1] for launch in watched.launches.values())


def test_a_module_inside_the_program(
    built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written when a kernel of it is launched. Its PTX comes from cuobjdump; without that, what to do is said."""
    program = [built / "program", "address", "b", PTX]
    with monkeypatch.context() as patch:
        patch.setattr("memmodel.kernel.question.binaries.program", lambda name: None)
        missing = recorded(capfd, tmp_path / "none", *program)
    assert missing.launches == {} and "its container; cuobjdump is needed" in "\n".join(missing.said)
    (built / "bin").mkdir(exist_ok=True)
    script = built / "bin" / "cuobjdump"
    script.write_text('#!/bin/sh\necho "Fatbin ptx code:"\ntail -c +17 "$2"\n')
    script.chmod(0o755)
    scale = recorded(capfd, tmp_path / "out", *program).launches["scale"]
    assert scale["params"][1]["value"] == 320 and scale["grid"] == [5, 1, 1]


def test_an_old_driver(
    built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not say how large parameters are. The text of the PTX does, and a fatbin has none."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(built / "old"))
    launches = recorded(capfd, tmp_path, built / "program", "dlsym", "o", PTX).launches
    assert launches["scale"]["params"][2]["value"] == 2.0
    assert len(launches["fused"]["params"][0]["hex"]) == 48 and "tensormaps" in launches["tiled"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cuobjdump").write_text('#!/bin/sh\ntail -c +17 "$2"\n')
    (tmp_path / "bin" / "cuobjdump").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    watched = recorded(capfd, tmp_path / "out", built / "program", "dlsym", "b", PTX)
    assert "params" not in watched.launches["scale"] and "not known: its parameters" in watched.said[1]


def test_verdicts(
    built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(words: Sequence[str]) -> KernelRun:
        result = CliRunner().invoke(app, ["kernel", *words])
        return KernelRun(result.exit_code, result.output, "")

    monkeypatch.setattr("memmodel.cli.commands.record.run_kernel", judged)
    watched = recorded(capfd, tmp_path, built / "program", "dlsym", "o", PTX, options=("--check", "--short"))
    verdicts = [line.split()[:2] for line in watched.said[-7:]]
    alone = [["clean", "scale"]] * 2 + [["findings", "fused"]] * 2 + [["clean", "tiled"]]
    assert verdicts == [*alone, ["clean", "scale"], ["findings", "tiled"]]  # tiled does not wait for scale
    assert watched.code == 1


def test_signals_are_for_the_program(built: Path, tmp_path: Path) -> None:
    words = [
        "-m",
        "memmodel",
        "record",
        "-o",
        tmp_path,
        "--",
        "/bin/sh",
        "-c",
        "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done",
    ]
    process = subprocess.Popen([sys.executable, *map(str, words)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 9


def test_what_it_needs(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke("--", tmp_path / "nothing")[0] == 2
    code, output = invoke("-o", tmp_path)
    assert code == 2 and "hint: memmodel record -- ./program arguments" in output
    code, output = invoke("-o", tmp_path, "--", "true")
    assert code == 3 and "no launch was recorded" in output
    monkeypatch.setattr(library, "OPTIONS", ("-no-such-option",))
    code, output = invoke("-o", tmp_path, "--", "true")
    assert code == 2 and "cannot build the library of record" in output
    monkeypatch.setenv("PATH", str(tmp_path))
    code, output = invoke("-o", tmp_path, "--", "true")
    assert code == 2 and "there is no C compiler (cc, gcc, clang)" in output and "apt install gcc" in output
    monkeypatch.setattr(library.sys, "platform", "win32")
    assert "works on Linux" in invoke("-o", tmp_path, "--", "true")[1]
