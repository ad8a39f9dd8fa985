"""The command `kernel`: a compiled kernel with its launch, judged for every schedule.

In: what was typed. Out: the verdict as text, JSON or SARIF, and an exit code.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from memmodel.cli.commands.mutations import mutate as mutations
from memmodel.cli.commands.mutations import told
from memmodel.cli.exits import Exit, give, guarded, say
from memmodel.cli.grammar import Argument, Option
from memmodel.cli.options import BudgetText, Includes, JsonOut, MemoryText, ModelName, Timeout, parse_budget
from memmodel.cli.terminal import ticker
from memmodel.errors import InputError
from memmodel.output import write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memmodel.answer import Budget
    from memmodel.kernel.order.verdict import KernelVerdict
    from memmodel.kernel.repair.search import KernelRepairs


Ctas = Annotated[list[str] | None, Option("--cta", metavar="X,Y,Z", help="Look at this CTA; may be repeated.")]
AnyGrid = Annotated[bool, Option("--any-grid", help="Does the verdict hold for any grid, or what stops it?")]
AnyTrips = Annotated[bool, Option("--any-trips", help="Does it hold for any trip count, or what stops it?")]
Mutate = Annotated[bool, Option("--mutate", help="Remove or weaken every synchronization in turn; is that noticed?")]
Fix = Annotated[bool, Option("--fix", help="Which small changes of the text end all findings? Printed as diffs.")]

SECONDS = 600.0
"""For one verdict, unless --timeout says otherwise."""


@guarded
def kernel(
    file: Annotated[str, Argument(metavar="FILE.ptx", help="PTX as a compiler wrote it.")],
    launch: Annotated[
        str | None, Option("--launch", "-l", metavar="L.json", help="Grid, block, parameters, buffers.")
    ] = None,
    entry: Annotated[str | None, Option("--entry", metavar="NAME", help="Default: what the launch says.")] = None,
    model: ModelName = "ptx-9.3",
    cta: Ctas = None,
    readings: Annotated[bool, Option("--readings", help="With every decision the other way as well.")] = False,
    schedules: Annotated[
        int, Option("--schedules", min=1, max=10_000, help="Explored where something depends on the schedule.")
    ] = 8,
    assume_pure: Annotated[
        list[str] | None,
        Option("--assume-pure", metavar="OP", help="Take this opcode to touch registers only; may be repeated."),
    ] = None,
    any_grid: AnyGrid = False,
    any_trips: AnyTrips = False,
    mutate: Mutate = False,
    fix: Fix = False,
    jobs: Annotated[int, Option("--jobs", "-j", min=1, max=256, help="Processes for --mutate.")] = 1,
    json_out: JsonOut = None,
    sarif_out: Annotated[
        str | None, Option("--sarif", metavar="OUT", help="Write a SARIF 2.1.0 log there; - is standard output.")
    ] = None,
    litmus: Annotated[
        str | None, Option("--litmus", metavar="DIR", help="Write a litmus test that shows it for each finding.")
    ] = None,
    statistics: Annotated[bool, Option("--stats", help="Say how large the run was and what it took.")] = False,
    budget: BudgetText = None,
    timeout: Timeout = None,
    memory: MemoryText = None,
    include: Includes = None,
    init_launch: Annotated[bool, Option("--init-launch", help="Print a launch description to fill in.")] = False,
    launch_schema: Annotated[
        bool, Option("--launch-schema", help="Print the JSON schema of launch descriptions.")
    ] = False,
) -> Exit:
    """Check a compiled kernel for races and hangs.

    The launch is run once; its order under the model speaks for every schedule where the conditions of
    docs/kernels-theorem.md hold. Exit code: 0 clean, 1 findings, 2 bad input, 3 undecided, or clean for some of the
    schedules only.
    """
    from memmodel import cat
    from memmodel.kernel.check import check_kernel

    if launch_schema or init_launch:
        return _printed(file, entry, schema=launch_schema)
    if launch is None:
        raise InputError("--launch is missing", hint="--init-launch prints a launch description to fill in")
    cat.settle(include or (), kept=True)
    if fix and (mutate or readings or litmus or any_grid or any_trips):
        raise InputError("--fix goes with --json and --sarif, not with --mutate, --readings, --litmus or --any-…")
    if mutate:
        code, data = mutations(file, launch, entry, model, jobs, timeout or 600.0)
        if json_out != "-":
            told(data)
        if json_out:
            _write(json_out, data)
        return code
    cost = parse_budget(budget, timeout or SECONDS, memory)
    looked_at = [_index(one) for one in cta or ()]
    if fix:
        found = _mended(file, launch, entry, model, looked_at, schedules, assume_pure or (), cost)
        return _told(found.base, json_out, sarif_out, statistics=statistics, repairs=found)
    verdict = check_kernel(
        file, launch, entry=entry, model=model, ctas=looked_at, readings=readings,
        schedules=schedules, assume_pure=assume_pure or (), budget=cost, litmus=litmus,
        any_grid=any_grid, any_trips=any_trips,
    )  # fmt: skip
    return _told(verdict, json_out, sarif_out, statistics=statistics)


def _printed(file: str, entry: str | None, *, schema: bool) -> Exit:
    """The schema of launch descriptions, or one to fill in."""
    from memmodel.kernel import launch
    from memmodel.kernel.check.inputs import entry_of
    from memmodel.ptx.module.reader import read_module

    say(json.dumps(launch.schema() if schema else launch.template(entry_of(read_module(file), entry)), indent=1))
    return Exit.AS_EXPECTED


def _mended(
    file: str,
    launch: str,
    entry: str | None,
    model: str,
    ctas: list[tuple[int, int, int]],
    schedules: int,
    assumed: Sequence[str],
    cost: Budget,
) -> KernelRepairs:
    from memmodel.kernel.repair.search import WIDTH, fix_kernel

    with ticker(WIDTH) as tick:
        found = fix_kernel(
            file, launch, entry=entry, model=model, ctas=ctas, schedules=schedules, assume_pure=assumed,
            budget=cost, seconds=cost.seconds, progress=tick.done, kept=True,
        )  # fmt: skip
        tick.hide()
    return found


def _told(
    verdict: KernelVerdict,
    json_out: str | None,
    sarif_out: str | None,
    *,
    statistics: bool,
    repairs: KernelRepairs | None = None,
) -> Exit:
    from memmodel.kernel.output.record import record
    from memmodel.kernel.output.sarif import sarif
    from memmodel.kernel.output.text import lines, repair_lines

    if "-" not in (json_out, sarif_out):
        found = [] if repairs is None else repair_lines(repairs)
        say("\n".join([*lines(verdict, statistics=statistics), *found]))
    if json_out:
        _write(json_out, record(verdict, repairs))
    if sarif_out:
        _write(sarif_out, sarif([verdict]))
    if repairs is not None and repairs.signal is not None:
        raise repairs.signal
    codes = {"clean": Exit.AS_EXPECTED, "findings": Exit.DIFFERS, "depends": Exit.DIFFERS}
    return codes.get(verdict.word, Exit.UNDECIDED)


def _write(out: str, data: dict[str, Any]) -> None:
    text = json.dumps(data, indent=1) + "\n"
    if out == "-":
        give(text)
    else:
        write_text(out, text)


def _index(text: str) -> tuple[int, int, int]:
    """`1`, `1,0` or `1,0,2`. Raises InputError."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() and len(part) < 11 for part in parts):
        raise InputError(f"--cta {text[:40]}: not the index of a CTA", hint="such as 1,0,0")
    x, y, z = [*(int(part) for part in parts), 0, 0][:3]
    return x, y, z
