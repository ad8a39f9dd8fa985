"""The kernels of the gallery with what they are called with: `python cases.py [NAME ...]` judges them.

No launch is written down: the arguments are arrays that exist nowhere, and numbers. A case has links to the reports.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import memmodel
from memmodel import FakeArray

HERE = Path(__file__).parent
RELIED = "as-compilers-rely"


def ints(count: int, init: str | None = None) -> FakeArray:
    """An array of integers, whose contents are unknown unless they are zeros."""
    return FakeArray((count,), "int32", init="zero" if init else None)


def floats(count: int) -> FakeArray:
    """An array of numbers."""
    return FakeArray((count,), "float32")


@dataclass(frozen=True)
class Case:
    """A kernel, what is wrong with it, and where that was reported. `rules`: what is found in it.

    `relied`: it is clean as it is under the model of what compilers rely on. `words`: what the fixed form may be.
    `languages`: the folders where it stands in another language, that of the report. `launches`: those of several
    kernels, in the order of the stream; the verdict is that on the last one.
    """

    name: str
    rules: tuple[str, ...]
    block: int
    args: Sequence[object]
    reports: tuple[str, ...]
    grid: int = 1
    relied: bool = False
    words: tuple[str, ...] = ("clean",)
    languages: tuple[str, ...] = ()
    launches: Sequence[Mapping[str, Any]] = ()

    def verdict(self, language: str = "", *, fixed: bool = False, model: str = "ptx-9.4") -> Any:
        """What becomes of the kernel, or of its fixed form; in another language the launch stands in the PTX."""
        path = HERE / language / f"{self.name}{'-fixed' if fixed else ''}.ptx"
        if self.launches:
            return memmodel.check_launches(path, self.launches, model=model)[-1]
        if language:
            return memmodel.check_kernel(path, model=model)
        return memmodel.check_ptx(path, grid=self.grid, block=self.block, args=self.args, model=model)

    def source(self, language: str = "") -> Path:
        """The file of the source."""
        return HERE / language / f"{self.name}{'.py' if language else '.cu'}"

    @property
    def title(self) -> str:
        """What is wrong: the comment above the kernel."""
        lines = self.source().read_text(encoding="utf-8").splitlines()
        comment = itertools.takewhile(lambda line: line.startswith("//"), lines)
        return " ".join(line.removeprefix("//").strip() for line in comment)

    def line(self, language: str = "") -> int:
        """The line of the bug in the source, as its comment says."""
        lines = self.source(language).read_text(encoding="utf-8").splitlines()
        return next(number for number, line in enumerate(lines, 1) if re.search(r"(//|#) the bug", line))

    @property
    def links(self) -> list[str]:
        """The reports, in Markdown."""
        parts = [report.split() for report in self.reports]
        kinds = {"PR": "pull", "issue": "issues"}
        return [f"[{repo} {number}](https://github.com/{repo}/{kinds[kind]}/{number})" for repo, kind, number in parts]


RACE = ("data-race",)
SIZES = {"address": "0x100000000", "bytes": 128}
GROUPED = (
    {"kernel": "sizes", "grid": 1, "block": 32, "params": {"0": SIZES}},
    {"kernel": "grouped", "grid": 2, "block": 32, "params": {"0": SIZES}, "programmatic": True},
)
LANGUAGES = {"cute": "CuTe DSL", "gluon": "Gluon"}
CUTE, GLUON = ((name,) for name in LANGUAGES)
CASES = (
    Case("tmem-freed-early", ("undefined-tensor-memory",), 32, [ints(32)],
         ("NVIDIA/cutlass PR 3652", "flashinfer-ai/flashinfer issue 5334"), languages=CUTE),
    Case("remote-arrive-scope", RACE, 32, [ints(64)],
         ("NVIDIA/cutlass issue 3643", "NVIDIA/cutlass issue 3324"), grid=2, languages=CUTE),
    Case("tmem-fences", ("tensor-memory-hazard",), 160, [ints(32)],
         ("NVIDIA/cutlass issue 2974",), relied=True, languages=CUTE),
    Case("epilogue-without-fence", RACE, 128, [floats(128), 2.0],
         ("NVIDIA/cutlass issue 2960", "NVIDIA/cudnn-frontend PR 784"), languages=CUTE),
    Case("tmem-address-too-early", RACE, 128, [ints(128), 0],
         ("NVIDIA/cutlass PR 2835",)),
    Case("dependent-without-wait", RACE, 32, [],
         ("NVIDIA/cutlass issue 2760", "flashinfer-ai/flashinfer PR 5081", "flashinfer-ai/flashinfer issue 2708"),
         launches=GROUPED),
    Case("barrier-counts-two-warps", ("hang",), 96, [ints(96)],
         ("Dao-AILab/quack PR 146",), languages=CUTE),
    Case("reload-without-fence", RACE, 64, [floats(128), floats(32), 3],
         ("deepseek-ai/DeepEP PR 642", "deepseek-ai/DeepGEMM PR 389", "triton-lang/triton PR 10668"),
         languages=GLUON),
    Case("fence-too-wide", RACE, 128, [floats(128)],
         ("deepseek-ai/DeepEP PR 632", "NVIDIA/Fuser PR 4804", "Dao-AILab/flash-attention issue 2718"),
         languages=CUTE),
    Case("ring-waits-too-little", RACE, 32, [ints(256), 4],
         ("deepseek-ai/DeepEP issue 657", "NVIDIA/Fuser PR 5448")),
    Case("registers-before-wait", ("undefined-instruction",), 128, [floats(128), 1],
         ("deepseek-ai/DeepGEMM PR 448",)),
    Case("fence-on-the-wrong-side", RACE, 128, [floats(128), floats(128)],
         ("NVIDIA/TransformerEngine PR 2695",)),
    Case("fence-in-a-loop", RACE, 128, [floats(128), floats(512), 0],
         ("MoonshotAI/FlashKDA issue 24",)),
    Case("exit-while-signalled", ("undefined-after-exit",), 32, [ints(64)],
         ("sgl-project/sglang PR 32954",), grid=2, languages=CUTE),
    Case("exit-while-read", ("undefined-after-exit",), 32, [ints(65)],
         ("triton-lang/triton PR 11731", "facebookexperimental/triton PR 1105"), grid=2),
    Case("stored-before-it-runs", ("undefined-before-start",), 32, [ints(64)],
         ("facebookexperimental/triton PR 2292",), grid=2),
    Case("waits-beside-the-elected", ("hang",), 64, [floats(96), floats(96)],
         ("NVIDIA/cutlass PR 3654",)),
    Case("arrives-and-does-not-wait", ("hang",), 64, [ints(32), 0],
         ("vllm-project/vllm PR 26026",)),
    Case("released-before-wait", RACE, 160, [ints(128), floats(128), 1],
         ("NVIDIA/Fuser issue 3561",)),
    Case("operand-without-fence", RACE, 128, [floats(128), 1],
         ("tile-ai/tilelang issue 2634",)),
    Case("dropped-barrier", RACE, 64, [ints(64), ints(64)],
         ("tile-ai/tilelang issue 2556", "tile-ai/tilelang issue 2699", "mlc-ai/TIRx-kernels PR 151",
          "NVIDIA/cuml PR 6578", "ORNL/HeCBench issue 253", "tile-ai/tilelang PR 2679")),
    Case("bulk-store-not-a-write", RACE, 64, [ints(64)],
         ("tile-ai/tilelang issue 2703",)),
    Case("read-and-read", RACE, 32, [floats(32), floats(32), floats(32)],
         ("triton-lang/triton PR 10668",), languages=GLUON),
    Case("waits-for-the-wrong-phase", ("hang",), 32, [floats(64), floats(32)],
         ("facebookexperimental/triton issue 1121", "facebookexperimental/triton PR 1157",
          "tile-ai/tilelang PR 3087", "tile-ai/tilelang PR 2674"), languages=GLUON),
    Case("multicast-arrive", ("hang",), 32, [ints(64)],
         ("facebookexperimental/triton PR 2823",), grid=2),
    Case("atomic-of-the-cta", RACE, 32, [ints(2), ints(1, "zero"), ints(1)],
         ("NVlabs/cuda-oxide PR 695", "Rust-GPU/rust-cuda issue 376"), grid=2),
    Case("multicast-handshake", RACE, 32, [floats(32), floats(64)],
         ("NVlabs/cuda-oxide PR 1066",), grid=2),
    Case("moved-over-the-wait", RACE, 32, [floats(32), floats(32)],
         ("HazyResearch/ThunderKittens PR 209",)),
    Case("look-back-relaxed", RACE, 32, [ints(3), ints(3, "zero"), ints(3)],
         ("JuliaGPU/AcceleratedKernels.jl PR 98",), grid=3, words=("clean", "explored")),
    Case("mutual-exclusion", RACE, 32, [ints(2, "zero"), ints(1)],
         ("llvm/llvm-project PR 201468",), grid=2, words=("clean", "explored")),
    Case("last-block-without-fence", RACE, 32, [ints(2), ints(1, "zero"), ints(1)],
         ("llvm/llvm-project PR 106101", "NVIDIA/Fuser PR 2391"), grid=2),
    Case("volatile-flag", RACE, 32, [ints(1), ints(1, "zero"), ints(1)],
         ("NVIDIA/nccl issue 1243", "vllm-project/vllm issue 8404"), grid=2, words=("clean", "explored")),
)  # fmt: skip


def table() -> str:
    """A row for each kernel, as the page has it."""
    rows = ["| kernel | what is wrong | found | reports | |", "|---|---|---|---|---|"]
    for case in CASES:
        started = perf_counter()
        verdict, mended = case.verdict(), case.verdict(fixed=True)
        seconds = perf_counter() - started
        rules = ", ".join(dict.fromkeys(finding.rule for finding in verdict.serious))
        links = [f"[{case.name}]({case.name}.cu)"]
        links += [f"in [{LANGUAGES[name]}]({name}/{case.name}.py)" for name in case.languages]
        lines = ", ".join(str(case.line(name)) for name in ("", *case.languages))
        found = f"{rules}, line {lines}; fixed: {mended.word}"
        rows.append(f"| {', '.join(links)} | {case.title} | {found} | {', '.join(case.links)} | {seconds:.1f} s |")
    return "\n".join(rows) + "\n"


def main(names: list[str]) -> None:
    """Print a line for each kernel, and what was found where names are given."""
    cases = [case for case in CASES if not names or case.name in names]
    forms = [(case, language) for case in cases for language in ("", *case.languages)]
    for (case, language), fixed in itertools.product(forms, (False, True)):
        started = perf_counter()
        verdict = case.verdict(language, fixed=fixed)
        rules = ", ".join(dict.fromkeys(finding.rule for finding in verdict.serious))
        name = f"{Path(language, case.name)}{'-fixed' if fixed else ''}"
        print(f"{perf_counter() - started:5.1f} s  {verdict.word:9} {name}  {rules}")
        if names:
            print(memmodel.explain_kernel(verdict))


if __name__ == "__main__":
    main(sys.argv[1:])
