"""CUDA C++ and binaries: what is compiled, found inside, and shown of the source. Programs of the toolkit are played by
scripts; where nvcc is, it compiles a kernel too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from memmodel import check_kernel
from memmodel.cli.app import app
from memmodel.kernel.output.places import called, cuda_word, is_library, places
from memmodel.kernel.output.sarif import sarif
from memmodel.kernel.output.source_names import SourceNames
from memmodel.kernel.question import fatbins
from memmodel.kernel.question.cuda_sources import parameter_names
from memmodel.kernel.question.toolkit import program
from memmodel.ptx.module.names import base_name, without_parameters
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import Location
from memmodel.source import Source

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
RACY, FIXED = (EXAMPLES / "first" / f"reverse{suffix}.cu" for suffix in ("", "-fixed"))


def run(*args: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["kernel", *map(str, args)])
    return result.exit_code, result.output


def play(folder: Path, name: str, script: str) -> None:
    """Put a program of that name in front of all others."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def test_a_source_is_compiled_and_its_lines_are_shown(tmp_path: Path, tools: Path) -> None:
    """The options reach the compiler, the launch stands in a comment of the source, and names are those of it."""
    play(tools, "nvcc", f'echo "$@" > {tmp_path}/args\nfor out; do :; done; cp {EXAMPLES}/first/reverse.ptx "$out"')
    (tmp_path / "k.cu").write_text('// memmodel: launch {"grid": 2, "block": 64}\n' + RACY.read_text())
    code, output = run(tmp_path / "k.cu", "--set", "out=512", "--", "-O1", "-DX")
    assert code == 1 and "  reverse.cu:6:3: st.shared.f32: writes" in output, output
    assert "in line 37 of the PTX" in output and "the code is that of sm_90a" in output
    said = (tmp_path / "args").read_text()
    assert "-lineinfo -arch=sm_90a -O1 -DX" in said
    assert "-arch=sm_90a" not in output
    assert run(tmp_path / "k.cu", "--", "-arch=sm_80")[0] == 1
    assert "sm_90a" not in (tmp_path / "args").read_text()


def test_what_is_missing_names_lines_of_the_source() -> None:
    """Where the PTX lies in no file. In a file of PTX the lines are its own."""
    ptx = EXAMPLES.parent / "gallery" / "dropped-barrier.ptx"
    result = CliRunner().invoke(app, ["kernel", "-"], input=ptx.read_text())
    assert "goes on to __syncthreads(), bar.sync at dropped-barrier.cu:13:3; the other thread comes" in result.output
    assert re.search(r"goes on to bar\.sync at line \d+; the other", run(ptx)[1])


def test_every_sentence_names_the_source() -> None:
    """Findings, reasons, readings, repairs, what was not covered: nobody sees the PTX of what came through a pipe."""
    ptx = EXAMPLES.parent / "gallery" / "waits-for-the-wrong-phase.ptx"
    for options in (["--readings"], ["--fix"], ["--any-trips", "--any-grid"], ["--mutate"], ["--annotate"]):
        result = CliRunner().invoke(app, ["kernel", "-", *options], input=ptx.read_text())
        said = re.sub(r"in (PTX )?lines? [\d, ]+( of the PTX)?", "", result.output.partition("---")[0])
        assert not re.findall(r".*\blines? \d.*", said)
        assert "(not waits-for-the-wrong-phase.cu:25:5)" in said, said
        assert "hang of" not in said or "hang of steps.cuh:16:5" in said, said


def test_a_log_names_the_source() -> None:
    """Annotations of a CUDA file: nobody sees the PTX, and nobody reads mangled names."""
    for name in ("dropped-barrier", "look-back-relaxed"):
        text = (EXAMPLES.parent / "gallery" / f"{name}.ptx").read_text()
        module = parse_module(Source("<PTX>", text))
        log = sarif([check_kernel(module, {"grid": 3, "block": 64})])
        said = [result["message"]["text"] for result in log["runs"][0]["results"]]
        assert said and all(f"{name}.cu:" in text and not re.search(r"\bline \d|^_Z", text) for text in said), said


def test_lines_of_a_sentence_become_places() -> None:
    callee = Location("k.cu", 4, 1)
    names = SourceNames(
        {7: Location("k.cu", 3, 5), 8: Location("/x/cccl/ptx.h", 1, 1, callee), 9: callee}, {"k_param_1": "n"}
    )
    for sentence, said in (
        ("line 7: it waits", "k.cu:3:5: it waits"),
        ("lines 7, 8 and 9 meet", "k.cu:3:5 and k.cu:4:1 meet"),
        ("lines 8 and 9: one place", "k.cu:4:1: one place"),
        ("the loop from line 7 to line 8 depends on k_param_1", "the loop from k.cu:3:5 to k.cu:4:1 depends on n"),
        ("lines 7 and 5", "k.cu:3:5 and line 5 of the PTX"),
        ("k_param_10, line 5", "k_param_10, line 5"),
        ("it depends on line 7, and 1 more like it", "it depends on k.cu:3:5, and 1 more like it"),
        ("data-race of lines 7 and 9 and 12 alike", "data-race of k.cu:3:5 and k.cu:4:1 and 12 alike"),
        ("data-race of line 9 and 2 alike", "data-race of k.cu:4:1 and 2 alike"),
        ("in line 7 of the PTX, in PTX lines 7, 8", "in line 7 of the PTX, in PTX lines 7, 8"),
    ):
        assert names.sentence(sentence) == said
        assert SourceNames().sentence(sentence) == sentence
    assert names.lines((7, 8, 9), 1) == "k.cu:3:5, …" and SourceNames().lines((7, 8), 6) == "lines 7, 8"


def test_a_form_has_the_names_of_the_source(tmp_path: Path, tools: Path) -> None:
    play(tools, "nvcc", f'for out; do :; done; cp {EXAMPLES}/first/reverse.ptx "$out"')
    code, output = run(RACY, "--init-launch")
    assert code == 0 and [param["name"] for param in json.loads(output)["params"]] == ["in", "out"]


def test_what_the_compiler_says_is_bad_input(tmp_path: Path, tools: Path) -> None:
    play(tools, "nvcc", 'echo "k.cu(1): error: nonsense" >&2; exit 1')
    (tmp_path / "k.cu").write_text("nonsense")
    code, output = run(tmp_path / "k.cu")
    assert code == 2 and "nvcc says:\nk.cu(1): error: nonsense" in output
    assert run(RACY.with_suffix(".ptx"), "--", "-O3")[0] == 2


def test_without_the_toolkit_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memmodel.kernel.question.toolkit.program", lambda name: None)
    monkeypatch.setattr("memmodel.kernel.question.binaries.program", lambda name: None)
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF")
    (tmp_path / "k.fatbin").write_bytes(fatbins.BEGINNING + bytes(12))
    for file, package in (
        (RACY, "pip install nvidia-cuda-nvcc"),
        (tmp_path / "k.cubin", "machine code only"),
        (tmp_path / "k.fatbin", "pip install nvidia-cuda-cuob"),
    ):
        code, output = run(file)
        assert code == 2 and package in output


def test_ptx_inside_binaries(tmp_path: Path, tools: Path) -> None:
    ptx = RACY.with_suffix(".ptx").read_text()
    (tmp_path / "one").write_text(f"\nFatbin ptx code:\n================\narch = sm_80\n\n{ptx}\n")
    (tmp_path / "none").write_text("\nFatbin elf code:\n================\narch = sm_80\n")
    (tmp_path / "app").write_bytes(b"\x7fELF....")
    play(tools, "cuobjdump", f"cat {tmp_path}/one")
    assert run(tmp_path / "app", "--grid", 2, "--block", 64)[0] == 1
    play(tools, "cuobjdump", f"cat {tmp_path}/one {tmp_path}/one")
    code, output = run(tmp_path / "app")
    assert code == 2 and "2 modules" in output and "reverse" in output
    newer = (
        (tmp_path / "one")
        .read_text()
        .replace(".target sm_80", ".target sm_100a")
        .replace(".target sm_90", ".target sm_100")
    )
    (tmp_path / "newer").write_text(newer)
    play(tools, "cuobjdump", f"cat {tmp_path}/newer {tmp_path}/one")
    code, output = run(tmp_path / "app", "--grid", 2, "--block", 64)
    assert code == 1 and "the code is that of sm_100, the newest target in" in output
    play(tools, "cuobjdump", f"cat {tmp_path}/none")
    code, output = run(tmp_path / "app")
    assert code == 2 and "machine code only" in output and "-arch" in output


FATBINS = {
    "lz4": (
        "UO1VugEAEADwAQAAAAAAAAEAAQFQAAAAoAEAAAAAAACfAQAAQAAAAAUACQBaAAAAAAAAAAAAAAARIAAAAAAAAAAAAAAAAAAAVAIAAAAAAABIAA"
        "AAAAAAAAAAAAAAAAAAEwoBAPMcLnZlcnNpb24gOS41Ci50YXJnZXQgc21fOTAKLmFkZHJlc3Nfc2l6ZSA2NDAA8RBpc2libGUgLmVudHJ5IHR1"
        "cm4oCi5wYXJhbSAudTY0EgARXxAA9AlfMAopCnsKLnJlZyAuYjMyICVyPDExPjsSAPAWNjQgJXJkPDU+OwoKLnNoYXJlZCAuYWxpZ24gNCAuYj"
        "ggX1paNE8A0kUxdFsyNTZdOwoKbGRsACIudT4ASDEsIFtyAPQCXTsKY3Z0YS50by5nbG9iYWwpACEyLC8AEDtCAAQaAAGTAABCAAAgAGNdOwpt"
        "b3YVAAAuAKN0aWQueDsKc2hsvQAiMywaABgyKgAoNCynAHE7CmFkZC5zGgAiNSwfAHMlcjM7CnN04gABNwBQWyVyNV0aABgxSwBANiwgNisAI3"
        "ViQgAiNywWADglcjKIACI4LBwAGDJuABU5bgAROOQAB24AQSVyMTDlABA55ABzdWwud2lkZRoAFGTVABM0TQACLgEmNCw0AQK+AAc0AQAvARI0"
        "vwDQMDsKcmV0OwoKfQoKAAA="
    ),
    "zstandard": (
        "UO1VugEAEACQAQAAAAAAAAEAAQFQAAAAQAEAAAAAAAA6AQAAQAAAAAUACQBaAAAAAAAAAAAAAAARgAAAAAAAAAAAAAAAAAAAVAIAAAAAAABIAA"
        "AAAAAAAAAAAAAAAAAAKLUv/WBUAYUJAOKOLhlQeQN6cosvDfjKJA9MWY1vXlhsw8YMjqEOgPvp7myc3SnqrfXiq4m/gU3BNAfBKIsFKpRQDGra"
        "RKL/XusOUQ8C2TLtzvhX26HHOcSxWcvbsPf22x1eEyUM8O/m7lBKckzbiKokVZSxnlbaYdpmn16cbabfk+dWxYEM48kBPRDrKYbzu+mDF1VVFf"
        "ApZ7P93oUug5uSeXf4Kd4sTWtVobjUdKU1zvfa96KpOE03xrLd78k3tPM0nXH4HjqogVVpJi0pSd2MAWBGVNR5QI6RTnVC5FgFiTd5oMYESCxW"
        "sX4gQDOk90xHGkP+qsUkxwMLCt3RkTQp5DVVbiabx4s6OVeV3Ba0mcA7tsOdPsYJoYW/qwJa/iW7HW/URMGTfNErSd9HgA31seE1dbNWXRIAAA"
        "AAAAA="
    ),
}
"""Fatbins of one kernel, as nvcc 13.5 writes them with -compress-mode=speed and size."""


@pytest.mark.parametrize("method", FATBINS)
def test_ptx_in_a_fatbin_needs_no_program(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if method == "zstandard" and sys.version_info < (3, 14):
        pytest.importorskip("zstandard")
    monkeypatch.setattr("memmodel.kernel.question.binaries.program", lambda name: None)
    packed = b64decode(FATBINS[method])
    # An executable has its code around it, in which the first word of a container may stand, too.
    (tmp_path / "app").write_bytes(b"\x7fELF" + fatbins.BEGINNING + b"code" + packed + b"more code")
    code, output = run(tmp_path / "app", "--grid", 1, "--block", 64, "--set", "0=256")
    assert code == 1 and "findings: turn" in output
    [text] = fatbins.texts(packed)
    for cut in (17, 60, len(packed) - 1):  # none of these are read as something else
        with pytest.raises(fatbins.UnreadableError):
            fatbins.texts(packed[:cut])
    assert fatbins.texts(packed[:8] + bytes(8)) == [], "a container without entries, at the end"
    plain = bytearray(packed[:96])
    plain[24:32], plain[32:36] = (len(text) - 3).to_bytes(8, "little"), bytes(4)
    plain[8:16], plain[56:58] = (len(text) + 77).to_bytes(8, "little"), bytes(2)
    assert fatbins.texts(bytes(plain) + text.encode()) == [text[:-3]]


def test_without_zstandard_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memmodel.kernel.question.toolkit.program", lambda name: None)
    monkeypatch.setattr("memmodel.kernel.question.binaries.program", lambda name: None)
    for module in ("compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "k.fatbin").write_bytes(b64decode(FATBINS["zstandard"]))
    code, output = run(tmp_path / "k.fatbin")
    assert code == 2 and "compressed with Zstandard" in output and "pip install zstandard" in output


SOURCE = """
// __global__ void scale(int wrong)
template <typename T, int N>
__global__ void __launch_bounds__(128) scale(const T* __restrict__ in, T (*out)[N], int n = f(1, 2), Map<int, 3> map) {}
__global__ void plain(float *, int count);
"""


def test_names_of_parameters() -> None:
    params = {"scale": 4, "plain": 2}
    text = ".version 8.8\n.target sm_90\n.address_size 64\n" + "".join(
        f".entry {name}({', '.join(f'.param .u32 p{at}' for at in range(count))}) {{ ret; }}\n"
        for name, count in params.items()
    )
    entries = parse_module(Source("k.ptx", text)).entries
    names = parameter_names(Source("k.cu", SOURCE), entries)
    assert names["scale"][0] == "in" and names["scale"][2:] == ["n", "map"] and names["plain"] == ["", "count"]


def test_names_of_cpp() -> None:
    mangled = "_ZN2ns5scaleIfLi3EEEvPKT_i"
    assert without_parameters(mangled) == "ns::scale<float, 3>" and base_name(mangled) == "scale"
    assert without_parameters("kernel") == base_name("kernel") == "kernel"
    assert called("_ZN4cuda3ptx3__413mbarrier_initIvEEvPmRKj") == "cuda::ptx::mbarrier_init()"
    assert called("_ZN28_INTERNAL_e1a141f6_5_lb_cu_k10atomicExchEPii") == "atomicExch()"


INLINED = """.version 8.8
.target sm_90
.address_size 64
.entry k() {
.loc 2 18 3, function_name $L__info_string0, inlined_at 1 10 3
bar.sync 1;
.loc 1 11 3
bar.sync 0;
bar.sync 1, 64;
.loc 3 5 3
bar.sync 0;
ret;
}
.file 1 "k.cu"
.file 3 "k.py"
.file 2 "/usr/local/cuda-13/include/cccl/cuda/__ptx/x.h"
.section .debug_str
{
$L__info_string0:
.b8 95,90,78,52,99,117,100,97,51,112,116,120,53,99,
.b8 108,111,115,101,69,118,0

}
"""


def test_the_source_comes_before_libraries_and_has_its_own_words() -> None:
    body = parse_module(Source("<stdin>", INLINED.replace("53,99,", "53,99"))).functions["k"].body or ()
    assert str(places(body[0].location)[0]) == "k.cu:10:3"
    words = ["cuda::ptx::close()", "__syncthreads()", "", ""]  # a named barrier, and Python, have no word of CUDA C++
    assert [cuda_word(instruction) for instruction in body[:4]] == words
    assert is_library("x/cccl/y.h") and not is_library("include/mine.h")
    assert str(places(Location("a.cu", 1, 1))[0]) == "a.cu:1:1"


@pytest.mark.skipif(program("nvcc") is None or shutil.which("g++") is None, reason="needs nvcc and a C++ compiler")
def test_nvcc_itself() -> None:
    arguments = ("--grid", 2, "--block", 64, "--set", "in=512", "--set", "out=512", "--", "-arch=sm_80")
    code, output = run(RACY, *arguments)
    assert code == 1 and "reverse.cu:6:3: st.shared.f32" in output, output
    code, output = run(FIXED, *arguments)
    assert code == 0 and "without a size" not in output, output


def test_the_log_begins_in_the_source() -> None:

    text = RACY.with_suffix(".ptx").read_text().replace('"reverse.cu"', '"/elsewhere/reverse.cu"')
    module = parse_module(Source("<PTX of reverse.cu>", text))
    log = sarif([check_kernel(module, {"grid": 1, "block": 64})])
    result = log["runs"][0]["results"][0]
    uris = [place["physicalLocation"]["artifactLocation"]["uri"] for place in result["locations"]]
    related = [place["physicalLocation"]["artifactLocation"]["uri"] for place in result["relatedLocations"]]
    assert uris == ["file:///elsewhere/reverse.cu"] and not any("PTX" in uri for uri in related)


def test_a_compiler_ends_with_the_budget(tmp_path: Path, tools: Path) -> None:
    """So do the programs that it has started, which hold its streams open."""
    play(tools, "nvcc", "sleep 1000 &\nsleep 1000")
    (tmp_path / "k.cu").write_text(RACY.read_text())
    code, output = run(tmp_path / "k.cu", "--timeout", "0.2")
    assert code == 3 and "the budget of 0.2 seconds ran out" in output


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda whole: whole[: len(whole) // 2], "a container that ends too early"),
        (lambda whole: whole[:10], "a container that ends too early"),
        (lambda whole: whole[:4] + b"\7" + whole[5:], "a container of another version"),
    ],
)
def test_what_is_wrong_with_a_fatbin(
    change: Callable[[bytes], bytes], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memmodel.kernel.question.binaries.program", lambda name: None)
    (tmp_path / "k.fatbin").write_bytes(
        change(fatbins.BEGINNING + b"\1\0\x10\0" + (1000).to_bytes(8, "little") + bytes(1000))
    )
    code, output = run(tmp_path / "k.fatbin")
    assert code == 2 and f"k.fatbin: {says}" in output


def test_a_launch_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "k.ptx").write_text(
        "// nothing\n.version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"
    )
    code, output = run(tmp_path / "k.ptx", "--launch", tmp_path / "pipe")
    assert code == 2 and "is a pipe" in output
