"""Litmus tests emitted as PTX and read back as kernels: do both roads find the same?

In `tests`, `python -m helpers.kernel.roundtrip` writes the table tests/data/kernel-roundtrip.tsv: test, answer, reason.
`fewer`: the one run that the kernel is judged by has some of the kinds of finding that the executions of the test have
together.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from unittest.mock import patch

from helpers.places import ROOT
from memmodel import api
from memmodel.answer import Budget
from memmodel.cat.flags import FindingKind
from memmodel.cat.load import load_model
from memmodel.emit import EmittedModule, emit
from memmodel.emit.address import EmittedVariables
from memmodel.errors import InputError
from memmodel.isa.convert import convert
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import Launch, parse_launch
from memmodel.kernel.machine.engines import matrices, mma, tensor, wgmma
from memmodel.kernel.machine.engines.matrices import MatrixDescriptor
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.machine.parts import Cta
from memmodel.kernel.machine.regions import locate
from memmodel.kernel.machine.regions.maps import Stretch
from memmodel.kernel.order.verdict import KernelFinding, KernelVerdict
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.litmus import parse_litmus
from memmodel.litmus.printer import print_litmus
from memmodel.litmus.syntax import Layout, LitmusTest, Variable
from memmodel.memory.tensormap import TENSORMAP_BYTES
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import PtxModule
from memmodel.ptx.vocabulary import Space
from memmodel.source import Source

TABLE = ROOT / "tests" / "data" / "kernel-roundtrip.tsv"
KINDS = ("race", "hazard", "undefined", "hang")
OF = {
    FindingKind.RACE.value: "race",
    FindingKind.MIXED.value: "race",
    FindingKind.HAZARD.value: "hazard",
    FindingKind.UNDEFINED.value: "undefined",
}
SECONDS = 120.0


def litmus_files() -> list[Path]:
    """The corpus."""
    return sorted((ROOT / "litmus").rglob("*.litmus"))


def launched(module: EmittedModule, test: LitmusTest) -> tuple[PtxModule, Launch]:
    """The module and the launch that its heading asks for, with the tensor maps of the test. Raises InputError."""
    read = parse_module(Source(f"{module.name}.ptx", module.text))
    entry = entry_of(read, None)
    head = re.search(r"// Launch: grid (\d+), block (\d+)(?:, clusters of (\d+))?", module.text)
    if head is None:
        raise InputError("it has several grids")
    params: list[dict[str, object]] = []
    replicas = dict(re.findall(r"// (\w+): a multimem address of ([\w, ]+)", module.text))
    for number, one in enumerate(entry.params, 1):
        if one.name.endswith("_gpu"):
            raise InputError("it is for several devices")
        if "_le_" in one.name:
            raise InputError("no launch binds a logical endpoint to memory")
        if one.name.endswith("_zero"):
            params.append({"name": one.name, "type": "u64", "value": 0})
            continue
        if one.size is not None and one.type == "b8":
            raise InputError("it has constant parameters")
        there = replicas.get(one.name.removeprefix("mm_ptr_"))
        if there is not None:
            names = there.split(", ")
            size = read.variables[names[0]].size
            params.append({"name": one.name, "type": "ptr", "address": number << 32, "bytes": size, "multimem": names})
            continue
        params.append({"name": one.name, "type": "ptr", "address": number << 32, "bytes": 4096, "init": "zero"})
    cluster = int(head[3] or 1)
    given = {"grid": [int(head[1]), 1, 1], "block": [int(head[2]), 1, 1], "cluster": [cluster, 1, 1], "params": params}
    symbols = DeviceMemory(read, entry, parse_launch(given)).symbols
    maps = [
        _map(test, variable, number, symbols)
        for variable in test.variables
        for number in range(len(variable.maps))
        if symbols.get(variable.name, (None, 0))[0] in (Space.GLOBAL, Space.CONST)
    ]
    return read, parse_launch({**given, "tensormaps": maps})


def _map(
    test: LitmusTest, variable: Variable, number: int, symbols: dict[str, tuple[Space | None, int]]
) -> dict[str, object]:
    """The map that a variable starts with, for the launch. Raises InputError."""
    view = variable.maps[number]
    data = next(one for one in test.variables if one.name == view.data)
    if data.type is None or view.data not in symbols:
        raise InputError("the tensor of a map is no variable of the module")
    element, shape = data.type.width // 8, view.shape or (data.length,)
    strides = [element * prod(shape[:axis]) for axis in range(1, len(shape))]
    return {
        "param": variable.name,
        "offset": number * TENSORMAP_BYTES,
        "address": symbols[view.data][1],
        "element_bytes": element,
        "dims": shape,
        "strides_bytes": strides,
        "box": view.box or shape,
    }


@contextmanager
def tiles_of_tests(ends: Sequence[int], columns: Sequence[int]) -> Iterator[set[int]]:
    """Matrices as tests have them: a descriptor is an address, from which the matrix reaches to the next of these ends,
    in tensor memory to the next of these columns, and tiles are aligned to 16 bytes. Gives the addresses in use.
    """
    starts: set[int] = set()

    def decoded(value: int) -> MatrixDescriptor:
        starts.add(value & 0x3FFFF)
        return MatrixDescriptor(value & 0x3FFFF, 0, 0, 0)

    def touched(matrix: MatrixDescriptor, rows: int, depth: int, element: int, *, transposed: bool) -> list[Stretch]:
        return [(matrix.start, _clipped(matrix.start, rows * depth, ends))]

    def stretch(cta: Cta, lane: int, column: int, count: int) -> tuple[Block, int, int]:
        return tensor.stretch(cta, lane, column, _clipped(column, count, columns))

    def owners(cta: Cta, column: int, count: int) -> tuple[TraceEvent, ...]:
        return tensor.owners(cta, column, _clipped(column, count, columns))

    changed = {"blackwell": decoded, "stretch": stretch, "owners": owners}
    with (
        patch.object(matrices, "matrix_bytes", touched),
        patch.object(wgmma, "hopper", decoded),
        patch.multiple(mma, **changed),
        patch.object(locate, "TILE_ALIGN", 16),
    ):
        yield starts


def _clipped(start: int, whole: int, ends: Sequence[int]) -> int:
    return min(whole, min((one for one in ends if one > start), default=start + whole) - start)


def _shared_ends(read: PtxModule, launch: Launch) -> list[int]:
    """Where variables in shared memory end."""
    entry = entry_of(read, None)
    symbols = DeviceMemory(read, entry, launch).symbols
    every = {one.name: one for one in (*read.variables.values(), *entry.variables) if one.space is Space.SHARED}
    return [symbols[name][1] + one.size for name, one in every.items() if one.size]


def found(path: Path) -> tuple[KernelVerdict, set[str]]:
    """The verdict on the kernel of a test, and the kinds of its findings between instructions of the test."""
    test = parse_litmus(Source.read(str(path)))
    if test.layout is not Layout.BLOCKS:
        test = parse_litmus(Source(str(path), print_litmus(convert(test, Layout.BLOCKS))))
    module = emit(test)
    read, launch = launched(module, test)
    options = CheckOptions()
    ends = _shared_ends(read, launch)
    offsets = EmittedVariables.of(test, 1).offsets
    columns = [offsets[one.name] + one.length for one in test.variables if one.name in offsets]
    with tiles_of_tests(ends, columns) as starts:
        verdict = judge(read, entry_of(read, None), launch, load_model("ptx-9.4"), options, Budget(seconds=SECONDS))
    if starts:  # now it is known where the next matrix begins
        with tiles_of_tests([*ends, *starts], columns):
            verdict = judge(read, entry_of(read, None), launch, load_model("ptx-9.4"), options, Budget(seconds=SECONDS))
    findings = []
    for one in verdict.findings:
        own = ["// line" in side.instruction.span.line_text for side in one.sides]  # not of the set-up
        # The end of a kernel, which frees tensor memory, is none of its test.
        between = "race" in one.rule or one.rule in ("undefined-after-exit", "undefined-tensor-memory")
        if all(own) if between else any(own):
            findings.append(one)
    return verdict, kinds_of(findings)


def kinds_of(findings: Iterable[KernelFinding]) -> set[str]:
    """Kinds of findings of a kernel, harmless ones too: to the exact engines, stores that are equal race as others."""
    return {"hang" if one.rule in ("hang", "barrier-divergence") else OF.get(one.kind, one.kind) for one in findings}


def exact(path: Path) -> set[str] | None:
    """The kinds of finding that some execution has; None if the exact engines do not decide."""
    reports = api.check_all(str(path), ask=[f"exists {kind}" for kind in KINDS], budget=Budget(seconds=SECONDS))
    if any(one.holds is None for one in reports):
        return None
    return {kind for kind, one in zip(KINDS, reports, strict=True) if one.holds}


def compared(path: Path) -> tuple[str, str]:
    """`same`, `differs`, or `not run` with the reason."""
    try:
        verdict, mine = found(path)
    except InputError as error:
        return "not run", error.message.split(":")[0]
    return against_exact(path, verdict, mine)


def against_exact(path: Path, verdict: KernelVerdict, mine: set[str]) -> tuple[str, str]:
    """`compared`, for what was found in a kernel; the file has the litmus test."""
    unfinished = verdict.open or (verdict.choices and not verdict.exhaustive)
    # Not clean for every schedule. A finding of the set-up alone ends the search for others, too.
    if verdict.word in ("undecided", "explored") or (unfinished and not mine):
        reason = (verdict.open or verdict.choices)[0]
        return "not run", re.sub(r"lines? [\d, and\[\]]+:? ?", "", reason)
    theirs = exact(path)
    if theirs is None:
        return "not run", "the exact engines do not decide"
    if "undefined" in mine:  # executions with undefined behaviour take no part in the search for hangs
        mine.discard("hang")
    if mine == theirs:
        return "same", " ".join(sorted(mine)) or "clean"
    said = f"kernel: {' '.join(sorted(mine)) or 'clean'}; exact: {' '.join(sorted(theirs)) or 'clean'}"
    if mine and mine < theirs:
        return "fewer", said
    return "differs", f"{said}; {KNOWN.get(path.stem) or explained(path.read_text(encoding='utf-8'))}"


REASONS = (
    (r"\baliases\b", "aliases are one address in PTX"),
    (r"try_cancel", "a launch of one cluster has no other one to cancel"),
    (r"st\.async|multicast", "a CTA of the kernel ends before a signal that the test does not wait for"),
    (r"bar\.warp\.sync", "lanes that are no thread of the test arrive, too"),
    (r"cta_group::2", "the pair of CTAs is not launched"),
    (r"\bexit;", "lanes that are no thread of the test leave"),
)
"""What makes the emitted kernel another program than the test."""

KNOWN = {
    "D13-smallest": "each of two warps becomes a warpgroup",
    "D13": "each of two warps becomes a warpgroup",
    "phase-observed-by-another-warp": "each of two warps becomes a warpgroup",
    "ld-then-mma.thread": "the lanes of a warp are threads, and one of them multiplies",
    "st-to-mma.thread": "the lanes of a warp are threads, and one of them multiplies",
    "relaxed-store-reads-flag-no-fence": "the set-up stores the initial value",
    "no-complete-completes": "an arrive.noComplete that completes a phase is not noticed",
    "rank-of-global-address": "the rank of such an address is not known, and nothing asks for it",
    "slot-reuse-between-ctas": "a CTA of the kernel ends before a signal that the test does not wait for",
    "inval-against-wait": "the run invalidates the object before the wait, which then does not end",
    "bar+branch-around-exit": "the end of a thread of the kernel is an exit",
    "bar+one-round-short": "the end of a thread of the kernel is an exit",
}
"""Single tests; docs/kernels.md has those that are limits of the kernel side."""


def explained(text: str) -> str:
    """Why the kernel is another program; `unexplained` otherwise."""
    return next((reason for pattern, reason in REASONS if re.search(pattern, text)), "unexplained")


def main() -> None:
    rows = []
    for path in litmus_files():
        answer, reason = compared(path)
        rows.append(f"{path.relative_to(ROOT / 'litmus')}\t{answer}\t{reason}")
        print(rows[-1], file=sys.stderr)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
