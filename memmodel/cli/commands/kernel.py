"""The command `kernel`: a compiled kernel with its launch, judged for every schedule.

In: what was typed. Out: the verdict as text, JSON or SARIF, and an exit code.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from memmodel.base.resources import JOINED
from memmodel.cli.commands.mutations import MutantQuestion
from memmodel.cli.commands.mutations import mutate as mutations
from memmodel.cli.exits import Exit, guarded, say, worst, write_json
from memmodel.cli.kernels import judge_all
from memmodel.cli.options import (
    budget_option,
    include_option,
    json_option,
    memory_option,
    one_model_option,
    parse_budget,
    timeout_option,
)
from memmodel.cli.sweeps import show_sweep
from memmodel.cli.terminal import ticker
from memmodel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memmodel.answer import Budget
    from memmodel.kernel.order.verdict import KernelVerdict
    from memmodel.kernel.question import LaunchWords
    from memmodel.kernel.repair.search import KernelRepairs


SECONDS = 600.0
"""For one verdict, unless --timeout says otherwise."""


COMPILER = "memmodel.compiler"


class WithCompilerOptions(click.Command):
    """A command whose words behind `--` are options of the compiler."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[COMPILER] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command(cls=WithCompilerOptions)
@click.argument(
    "files",
    metavar="FILE… [-- NVCC OPTIONS]",
    nargs=-1,
    required=True,
    help="PTX, CUDA C++, binaries; - is standard input.",
)
@click.option("--launch", "-l", metavar="L.json", help="Grid, block, parameters, buffers; all, or in part.")
@click.option("--grid", metavar="X,Y,Z", help="CTAs of the launch.")
@click.option("--block", metavar="X,Y,Z", help="Threads of a CTA.")
@click.option("--cluster", metavar="X,Y,Z", help="CTAs of a cluster.")
@click.option("--dynamic-shared", type=click.IntRange(0, 1 << 20), metavar="N", help="Bytes of dynamic shared memory.")
@click.option(
    "--set",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter, by name or number: a number; of a pointer the bytes of its buffer, zero, iota. May be repeated.",
)
@click.option(
    "--entry", "entries", multiple=True, metavar="NAME", help="Default: what the launch says. May be repeated."
)
@one_model_option
@click.option(
    "--assume", metavar="READING,...", help="Judge with these readings at once, such as D3-implicit,D4ab-no-fences."
)
@click.option("--cta", multiple=True, metavar="X,Y,Z", help="Look at this CTA; may be repeated.")
@click.option("--readings", is_flag=True, help="With every decision the other way as well.")
@click.option(
    "--schedules",
    type=click.IntRange(1, 10_000),
    default=8,
    show_default=True,
    help="Explored where something depends on the schedule.",
)
@click.option(
    "--assume-pure",
    multiple=True,
    metavar="OP",
    help="Take this opcode to touch registers only; may be repeated.",
)
@click.option("--any-grid", is_flag=True, help="Does the verdict hold for any grid, or what stops it?")
@click.option("--any-trips", is_flag=True, help="Does it hold for any trip count, or what stops it?")
@click.option(
    "--sweep",
    "family",
    metavar="K=0..1024:64,…",
    help="Judge every launch with these sizes; the smallest counterexample is shown.",
)
@click.option("--unwritten", is_flag=True, help="Find reads of shared memory that nothing in the launch writes.")
@click.option("--mutate", is_flag=True, help="Remove or weaken every synchronization in turn; is that noticed?")
@click.option("--annotate", is_flag=True, help="What does every synchronization order, and is it needed?")
@click.option("--report", "page", metavar="OUT.html", help="The same as a page, beside the source.")
@click.option("--fix", is_flag=True, help="Which small changes of the text end all findings? Printed as diffs.")
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Processes: for several kernels, for --mutate, for --sweep.",
)
@json_option
@click.option("--sarif", "sarif_out", metavar="OUT", help="Write a SARIF 2.1.0 log there; - is standard output.")
@click.option("--litmus", metavar="DIR", help="Write a litmus test that shows it for each finding.")
@click.option("--stats", "statistics", is_flag=True, help="Say how large the run was and what it took.")
@budget_option
@timeout_option
@memory_option
@include_option
@click.option("--short", is_flag=True, help="One line about each kernel: its words and their order stay as they are.")
@click.option("--baseline", metavar="FILE", help="Findings listed there, with their reasons, do not count.")
@click.option("--write-baseline", metavar="FILE", help="List all findings there; the reasons are to be filled in.")
@click.option("--init-launch", is_flag=True, help="Print a launch description to fill in.")
@click.option("--launch-schema", is_flag=True, help="Print the JSON schema of launch descriptions.")
@guarded
def kernel(
    files: tuple[str, ...],
    launch: str | None,
    grid: str | None,
    block: str | None,
    cluster: str | None,
    dynamic_shared: int | None,
    values: tuple[str, ...],
    entries: tuple[str, ...],
    model: str,
    assume: str | None,
    cta: tuple[str, ...],
    readings: bool,
    schedules: int,
    assume_pure: tuple[str, ...],
    any_grid: bool,
    any_trips: bool,
    family: str | None,
    unwritten: bool,
    mutate: bool,
    annotate: bool,
    page: str | None,
    fix: bool,
    jobs: int,
    json_out: str | None,
    sarif_out: str | None,
    litmus: str | None,
    statistics: bool,
    budget: str | None,
    timeout: float | None,
    memory: str | None,
    include: tuple[str, ...],
    short: bool,
    baseline: str | None,
    write_baseline: str | None,
    init_launch: bool,
    launch_schema: bool,
) -> Exit:
    """Check a compiled kernel for races and hangs.

    The launch is run once; its order under the model speaks for every schedule where the conditions of
    docs/kernels-theorem.md hold. Exit code: 0 clean, 1 findings, 2 bad input, 3 undecided, clean for some of the
    schedules or CTAs only, or what --any-… asks is not shown.
    """
    from memmodel import cat
    from memmodel.kernel.check import check_kernel
    from memmodel.kernel.question import LaunchWords
    from memmodel.kernel.question.asking import SeveralLaunches
    from memmodel.limits import whole

    context = click.get_current_context()
    compiler = tuple(context.meta.get(COMPILER, ()))
    if len(files) > 1 or len(entries) > 1:
        return judge_all(context, files, entries, jobs, compiler)
    file, entry = files[0], next(iter(entries), None)
    if launch_schema or init_launch:
        return _printed(file, entry, compiler, schema=launch_schema)
    words = _words(grid, block, cluster, dynamic_shared, values)
    cat.settle(include, kept=True)
    if assume is not None:
        model = JOINED.join((model, *assume.split(",")))
    mutants = MutantQuestion(mutate, annotate, page)
    if (fix or mutants.asked) and (short or write_baseline):
        raise InputError("--short and --write-baseline do not go with --fix, --mutate, --annotate and --report")
    if mutate and mutants.report:
        raise InputError("--mutate does not go with --annotate and --report, which say what the mutants show")
    if family is not None and (
        cta or fix or mutants.asked or readings or any_grid or any_trips or short or litmus or sarif_out
    ):
        raise InputError("--sweep goes with --json, --jobs and options of the launch, and not with questions about one")
    if fix and (mutants.asked or readings or litmus or any_grid or any_trips):
        raise InputError(
            "--fix goes with --json and --sarif, not with --mutate, --report, --readings, --litmus or --any-…"
        )
    if family is not None:
        cost = parse_budget(budget, timeout or SECONDS, memory)
        return show_sweep(
            file, launch, words, compiler, entry, model, family, schedules, assume_pure, jobs, cost, json_out, baseline,
            unwritten=unwritten,
        )  # fmt: skip
    if mutants.asked:
        told = _Output(None, None, statistics=statistics).verdict
        cost = parse_budget(budget, timeout or SECONDS, memory)
        return mutations(mutants, file, launch, words, compiler, entry, model, jobs, cost, told, json_out, baseline)
    cost = parse_budget(budget, timeout or SECONDS, memory)
    looked_at, out = [_index(text) for text in cta], _Output(json_out, sarif_out, statistics=statistics)
    out.short = file if short else ""
    with whole(cost):
        if fix:
            repairs = _repairs(
                file, launch, words, compiler, entry, model, looked_at, schedules, assume_pure, cost, out.verdict,
                baseline,
            )  # fmt: skip
            return out.rest(repairs.base, repairs)
        try:
            verdict = check_kernel(
                file, launch, entry=entry, words=words, compiler=compiler, model=model, ctas=looked_at,
                readings=readings, schedules=schedules, assume_pure=assume_pure, budget=cost, litmus=litmus,
                any_grid=any_grid, any_trips=any_trips, unwritten=unwritten, told=out.verdict,
                baseline=baseline, write_baseline=write_baseline,
            )  # fmt: skip
        except SeveralLaunches as several:
            if words != LaunchWords() or entry or cta or litmus or any_grid or any_trips or write_baseline:
                raise InputError(
                    f"{several.name}: is a list of launches, to which --grid and its like, --set, --entry, --cta, "
                    "--litmus, --any-… and --write-baseline do not apply"
                ) from several
            from memmodel.kernel.sequence.launches import judged_launches  # loads the engines of litmus tests

            return out.several(
                judged_launches(
                    several.text, several.launches, several.name, model=model, readings=readings, schedules=schedules,
                    assume_pure=assume_pure, unwritten=unwritten, budget=cost, baseline=baseline,
                ),
                len(several.launches),
            )  # fmt: skip
        return out.rest(verdict)


def _words(
    grid: str | None, block: str | None, cluster: str | None, dynamic_shared: int | None, values: tuple[str, ...]
) -> LaunchWords:
    """What the options say of a launch. Raises InputError."""
    from memmodel.kernel.question import LaunchWords
    from memmodel.kernel.question.requests import dimensions

    sizes = {"grid": grid, "block": block, "cluster": cluster}
    given = {key: None if text is None else dimensions(text, f"--{key}") for key, text in sizes.items()}
    pairs = [text.partition("=") for text in values]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise InputError(f"--set {name[:40]}: not a parameter and its value", hint="such as --set n=512")
    return LaunchWords(
        given["grid"], given["block"], given["cluster"], dynamic_shared, {name: value for name, _, value in pairs}
    )


def _printed(file: str, entry: str | None, compiler: tuple[str, ...], *, schema: bool) -> Exit:
    """The schema of launch descriptions, or one to fill in."""
    from memmodel.kernel import launch
    from memmodel.kernel.check.inputs import entry_of
    from memmodel.kernel.question import kernel_text
    from memmodel.kernel.question.skeleton import skeleton

    if schema:
        say(json.dumps(launch.schema(), indent=1))
    else:
        module = kernel_text(file, compiler, entry).module
        say(skeleton(module, entry_of(module, entry)))
    return Exit.AS_EXPECTED


def _repairs(
    file: str,
    launch: str | None,
    words: LaunchWords,
    compiler: tuple[str, ...],
    entry: str | None,
    model: str,
    ctas: list[tuple[int, int, int]],
    schedules: int,
    assumed: Sequence[str],
    cost: Budget,
    told: Callable[[KernelVerdict], None],
    baseline: str | None,
) -> KernelRepairs:
    from memmodel.kernel.repair.search import WIDTH, fix_kernel

    with ticker(WIDTH) as tick:
        repairs = fix_kernel(
            file, launch, entry=entry, words=words, compiler=compiler, model=model, ctas=ctas,
            schedules=schedules, assume_pure=assumed,
            budget=cost, seconds=cost.seconds, progress=tick.done, told=told, kept=True, baseline=baseline,
        )  # fmt: skip
        tick.hide()
    return repairs


class _Output:
    """Where a verdict goes: first as it stands, then what is asked beyond it, which may be cut short."""

    def __init__(self, json_out: str | None, sarif_out: str | None, *, statistics: bool) -> None:
        self._json, self._sarif, self._statistics = json_out, sarif_out, statistics
        self._text = "-" not in (json_out, sarif_out)
        self._notes = 0
        self.short = ""
        """The file, if only one line is printed about its kernel."""

    def verdict(self, verdict: KernelVerdict) -> None:
        """A verdict on the launch stands."""
        from memmodel.kernel.output.text import lines

        self._notes = len(verdict.notes)
        if self._text and not self.short:
            say("\n".join(lines(verdict, statistics=self._statistics)))
        self._write(verdict, None)

    def rest(self, verdict: KernelVerdict, repairs: KernelRepairs | None = None) -> Exit:
        """What is said beyond the verdict; the exit code."""
        from memmodel.kernel.output.text import beyond, repair_lines, short

        more = [f"note: {note}" for note in verdict.notes[self._notes :]] + beyond(verdict)
        more += [] if repairs is None else repair_lines(repairs)
        if self._text and self.short:
            say(short(verdict, self.short))
        elif self._text and more:
            say("\n".join(more))
        self._write(verdict, repairs, last=True)
        if repairs is not None and repairs.signal is not None:
            raise repairs.signal
        return _code(verdict)

    def several(self, verdicts: Iterable[KernelVerdict], count: int) -> Exit:
        """The verdicts on launches in the order of a stream, each as it comes; the worst exit code."""
        from memmodel.kernel.output.record import record
        from memmodel.kernel.output.sarif import sarif
        from memmodel.kernel.output.text import lines, short

        judged = []
        for number, verdict in enumerate(verdicts, 1):
            judged.append(verdict)
            if self._text and self.short:
                say(short(verdict, self.short))
            elif self._text:
                say("\n".join([f"launch {number} of {count}:", *lines(verdict, statistics=self._statistics)]))
        if self._json:
            write_json(self._json, [record(verdict) for verdict in judged])
        if self._sarif:
            write_json(self._sarif, sarif(judged))
        return worst(map(_code, judged))

    def _write(self, verdict: KernelVerdict, repairs: KernelRepairs | None, *, last: bool = False) -> None:
        """Standard output is written once, with all that is known in the end."""
        from memmodel.kernel.output.record import record
        from memmodel.kernel.output.sarif import sarif

        json_out, sarif_out = (file if last or file != "-" else None for file in (self._json, self._sarif))
        if json_out:
            write_json(json_out, record(verdict, repairs))
        if sarif_out:
            write_json(sarif_out, sarif([verdict]))


def _code(verdict: KernelVerdict) -> Exit:
    """The worse of that of the verdict, and of what was asked beyond it."""
    codes = {"clean": Exit.AS_EXPECTED, "findings": Exit.DIFFERS, "depends": Exit.DIFFERS}
    each = [codes.get(word, Exit.UNDECIDED) for word in (verdict.word, *verdict.smaller.values())]
    each += [Exit.UNDECIDED for answer in verdict.beyond.values() if "not shown" in answer]
    return next((code for code in (Exit.DIFFERS, Exit.UNDECIDED) if code in each), Exit.AS_EXPECTED)


def _index(text: str) -> tuple[int, int, int]:
    """`1`, `1,0` or `1,0,2`. Raises InputError."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() and len(part) < 11 for part in parts):
        raise InputError(f"--cta {text[:40]}: not the index of a CTA", hint="such as 1,0,0")
    x, y, z = [*(int(part) for part in parts), 0, 0][:3]
    return x, y, z
