"""The command `kernel`: a compiled kernel with its launch, judged for every schedule.

In: what was typed. Out: the verdict as text, JSON or SARIF, and an exit code.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memmodel.cli.exits import Exit, guarded, say
from memmodel.cli.mutations import mutate as mutations
from memmodel.cli.mutations import told
from memmodel.cli.options import JsonOut, MemoryText, ModelName, Timeout, parse_budget
from memmodel.errors import InputError

if TYPE_CHECKING:
    from memmodel.kernel.judge.verdict import KernelVerdict


SECONDS = 600.0
"""For one verdict, unless --timeout says otherwise."""


@guarded
def kernel(
    file: Annotated[str, typer.Argument(metavar="FILE.ptx", help="PTX as a compiler wrote it.")],
    launch: Annotated[
        str | None, typer.Option("--launch", "-l", metavar="L.json", help="Grid, block, parameters, buffers.")
    ] = None,
    entry: Annotated[str | None, typer.Option("--entry", metavar="NAME", help="Default: what the launch says.")] = None,
    model: ModelName = "ptx-9.3",
    cta: Annotated[
        list[str] | None, typer.Option("--cta", metavar="X,Y,Z", help="Look at this CTA; may be repeated.")
    ] = None,
    readings: Annotated[bool, typer.Option("--readings", help="With every decision the other way as well.")] = False,
    schedules: Annotated[
        int, typer.Option("--schedules", min=1, max=10_000, help="Explored where something depends on the schedule.")
    ] = 8,
    assume_pure: Annotated[
        list[str] | None,
        typer.Option("--assume-pure", metavar="OP", help="Take this opcode to touch registers only; may be repeated."),
    ] = None,
    any_grid: Annotated[
        bool, typer.Option("--any-grid", help="Does the verdict hold for any grid, or what stops it?")
    ] = False,
    any_trips: Annotated[
        bool, typer.Option("--any-trips", help="Does it hold for any trip count, or what stops it?")
    ] = False,
    mutate: Annotated[
        bool, typer.Option("--mutate", help="Remove or weaken every synchronization in turn; is that noticed?")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, help="Processes for --mutate.")] = 1,
    json_out: JsonOut = None,
    sarif_out: Annotated[
        str | None, typer.Option("--sarif", metavar="OUT", help="Write a SARIF 2.1.0 log there; - is standard output.")
    ] = None,
    litmus: Annotated[
        str | None, typer.Option("--litmus", metavar="DIR", help="Write a litmus test that shows it for each finding.")
    ] = None,
    statistics: Annotated[bool, typer.Option("--stats", help="Say how large the run was and what it took.")] = False,
    timeout: Timeout = None,
    memory: MemoryText = None,
    init_launch: Annotated[bool, typer.Option("--init-launch", help="Print a launch description to fill in.")] = False,
    launch_schema: Annotated[
        bool, typer.Option("--launch-schema", help="Print the JSON schema of launch descriptions.")
    ] = False,
) -> Exit:
    """Check a compiled kernel for races and hangs.

    The launch is run once; its order under the model speaks for every schedule where the conditions of docs/kernels.md
    hold. Exit code: 0 clean, 1 findings, 2 bad input, 3 undecided, or clean for some of the schedules only.
    """
    from memmodel.kernel.check import check_kernel, entry_of
    from memmodel.kernel.launch import schema, template
    from memmodel.kernel.text.reader import read_module

    if launch_schema:
        say(json.dumps(schema(), indent=1))
        return Exit.AS_EXPECTED
    if init_launch:
        say(json.dumps(template(entry_of(read_module(file), entry)), indent=1))
        return Exit.AS_EXPECTED
    if launch is None:
        raise InputError("--launch is missing", hint="--init-launch prints a launch description to fill in")
    if mutate:
        code, data = mutations(file, launch, entry, model, jobs, timeout or 600.0)
        if json_out != "-":
            told(data)
        if json_out:
            _write(json_out, data)
        return code
    budget = parse_budget(None, timeout or SECONDS, memory)
    verdict = check_kernel(
        file, launch, entry=entry, model=model, ctas=[_index(one) for one in cta or ()], readings=readings,
        schedules=schedules, assume_pure=assume_pure or (), budget=budget, litmus=litmus,
        any_grid=any_grid, any_trips=any_trips,
    )  # fmt: skip
    return _told(verdict, json_out, sarif_out, statistics=statistics)


def _told(verdict: KernelVerdict, json_out: str | None, sarif_out: str | None, *, statistics: bool) -> Exit:
    from memmodel.kernel.output.record import record
    from memmodel.kernel.output.sarif import sarif
    from memmodel.kernel.output.text import lines

    if "-" not in (json_out, sarif_out):
        say("\n".join(lines(verdict, statistics=statistics)))
    if json_out:
        _write(json_out, record(verdict))
    if sarif_out:
        _write(sarif_out, sarif([verdict]))
    codes = {"clean": Exit.AS_EXPECTED, "findings": Exit.DIFFERS, "depends": Exit.DIFFERS}
    return codes.get(verdict.word, Exit.UNDECIDED)


def _write(out: str, data: dict[str, Any]) -> None:
    text = json.dumps(data, indent=1)
    if out == "-":
        say(text)
        return
    with open(out, "w", encoding="utf-8", newline="\n") as handle:
        handle.write(text + "\n")


def _index(text: str) -> tuple[int, int, int]:
    """`1`, `1,0` or `1,0,2`. Raises InputError."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() and len(part) < 11 for part in parts):
        raise InputError(f"--cta {text[:40]}: not the index of a CTA", hint="such as 1,0,0")
    x, y, z = [*(int(part) for part in parts), 0, 0][:3]
    return x, y, z
