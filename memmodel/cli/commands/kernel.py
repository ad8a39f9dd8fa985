"""The command `kernel`: a compiled kernel with its launch, judged for every schedule.

In: what was typed. Out: the verdict as text, JSON or SARIF, and an exit code.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from memmodel.cli.exits import Exit, guarded, say
from memmodel.cli.kernels.directories import judge_directories
from memmodel.cli.kernels.kept import KeptAnswers
from memmodel.cli.kernels.mutations import judge_mutants
from memmodel.cli.kernels.output import KernelOutput
from memmodel.cli.kernels.request import KernelRequest
from memmodel.cli.kernels.several import judge_all
from memmodel.cli.kernels.sweeps import show_sweep
from memmodel.cli.kernels.what_if import answer_what_if
from memmodel.cli.options import (
    TakesWordsAfterDashes,
    budget_option,
    gathered,
    include_option,
    json_option,
    memory_option,
    no_cache_option,
    one_model_option,
    timeout_option,
)
from memmodel.cli.terminal import ticker
from memmodel.errors import InputError
from memmodel.source import STANDARD_INPUT

if TYPE_CHECKING:
    from memmodel.kernel.question.asking import SeveralLaunches


@click.command(cls=TakesWordsAfterDashes)
@gathered(
    "asked",
    KernelRequest,
    click.argument(
        "files",
        metavar="FILE… [-- NVCC OPTIONS]",
        nargs=-1,
        required=True,
        help="PTX, CUDA C++, binaries, or a directory with NAME.ptx and NAME.launch.json; - is standard input.",
    ),
    click.option("--launch", "-l", metavar="L.json", help="Grid, block, parameters, buffers; all, or in part."),
    click.option("--grid", metavar="X,Y,Z", help="CTAs of the launch."),
    click.option("--block", metavar="X,Y,Z", help="Threads of a CTA."),
    click.option("--cluster", metavar="X,Y,Z", help="CTAs of a cluster."),
    click.option(
        "--dynamic-shared", type=click.IntRange(0, 1 << 20), metavar="N", help="Bytes of dynamic shared memory."
    ),
    click.option(
        "--set",
        "values",
        multiple=True,
        metavar="NAME=VALUE",
        help="A parameter, by name or number: a number; of a pointer the bytes of its buffer, zero, iota; a tensor map "
        "as bf16:384x256:64x64:128B. May be repeated.",
    ),
    click.option(
        "--entry", "entries", multiple=True, metavar="NAME", help="Default: what the launch says. May be repeated."
    ),
    one_model_option,
    click.option(
        "--assume", metavar="READING,...", help="Judge with these readings at once, such as D3-implicit,D4ab-no-fences."
    ),
    click.option("--cta", multiple=True, metavar="X,Y,Z", help="Look at this CTA; may be repeated."),
    click.option("--readings", is_flag=True, help="With every decision the other way as well."),
    click.option(
        "--schedules",
        type=click.IntRange(1, 10_000),
        default=8,
        show_default=True,
        help="Explored where something depends on the schedule.",
    ),
    click.option(
        "--assume-pure",
        multiple=True,
        metavar="OP",
        help="Take this opcode to touch registers only; may be repeated.",
    ),
    click.option("--any-grid", is_flag=True, help="Does the verdict hold for any grid, or what stops it?"),
    click.option("--any-trips", is_flag=True, help="Does it hold for any trip count, or what stops it?"),
    click.option(
        "--sweep",
        "family",
        metavar="K=0..1024:64,…",
        help="Judge every launch with these sizes; the smallest counterexample is shown.",
    ),
    click.option("--unwritten", is_flag=True, help="Find reads of shared memory that nothing in the launch writes."),
    click.option("--mutate", is_flag=True, help="Remove or weaken every synchronization in turn; is that noticed?"),
    click.option("--annotate", is_flag=True, help="What does every synchronization order, and is it needed?"),
    click.option("--report", "page", metavar="OUT.html", help="The same as a page, beside the source."),
    click.option(
        "--what-if",
        multiple=True,
        metavar="'LINE: NEW TEXT'",
        help="Which findings appear and go then? Or 'LINE: drop', 'LINE: scope=cta', 'LINE: relaxed'; LINE is of "
        "the PTX, or FILE:LINE of its source. All that are given are made at once.",
    ),
    click.option("--fix", is_flag=True, help="Which small changes of the text end all findings? Printed as diffs."),
    click.option(
        "--jobs",
        "-j",
        type=click.IntRange(1, 256),
        default=1,
        show_default=True,
        help="Processes: for several kernels, for --mutate, for --sweep.",
    ),
    json_option,
    click.option("--sarif", "sarif_out", metavar="OUT", help="Write a SARIF 2.1.0 log there; - is standard output."),
    click.option("--litmus", metavar="DIR", help="Write a litmus test that shows it for each finding."),
    click.option("--stats", "statistics", is_flag=True, help="Say how large the run was and what it took."),
    budget_option,
    timeout_option,
    memory_option,
    include_option,
    click.option(
        "--short", is_flag=True, help="One line about each kernel: its words and their order stay as they are."
    ),
    click.option("--baseline", metavar="FILE", help="Findings listed there, with their reasons, do not count."),
    click.option("--write-baseline", metavar="FILE", help="List all findings there; the reasons are to be filled in."),
    click.option("--init-launch", is_flag=True, help="Print a launch description to fill in."),
    click.option("--launch-schema", is_flag=True, help="Print the JSON schema of launch descriptions."),
    no_cache_option,
    click.option("--resume", metavar="FILE", help="Of a directory: keep what is done there, and go on from it."),
    click.option("--executor", metavar="dask://HOST:PORT", help="Of a directory: work on an existing Dask cluster."),
)
@guarded
def kernel(asked: KernelRequest) -> Exit:
    """Check a compiled kernel for races and hangs.

    The launch is run once; its order under the model speaks for every schedule where the conditions of
    docs/kernels-theorem.md hold. Exit code: 0 clean, 1 findings, 2 bad input, 3 undecided, clean for some of the
    schedules or CTAs only, or what --any-… asks is not shown.
    """
    from memmodel.kernel.question.asking import SeveralEntries

    context = click.get_current_context()
    if asked.directories:
        return judge_directories(asked)
    if asked.resume or asked.executor:
        raise InputError("--resume and --executor are about the kernels of a directory")
    if asked.several and not asked.listed:
        return judge_all(context, asked)
    try:
        return _answer(asked)
    except SeveralEntries as several:
        apart = len({*several.entries, ""}) > len(several.entries)
        if not apart or asked.file == STANDARD_INPUT:
            raise
        return judge_all(context, replace(asked, entries=several.entries))


def _answer(asked: KernelRequest) -> Exit:
    """Answer what is asked of one kernel. Raises SeveralEntries where its file has launches of several."""
    from memmodel import cat

    if asked.launch_schema or asked.init_launch:
        return _print_launch(asked)
    asked.refuse_what_does_not_go_together()
    cat.configure(asked.include, kept=not asked.no_cache)
    if asked.family is not None:
        return show_sweep(asked, asked.family)
    if asked.of_mutants:
        return judge_mutants(asked)
    if asked.what_if:
        return answer_what_if(asked)
    return _fix(asked) if asked.fix else _check(asked)


def _check(asked: KernelRequest) -> Exit:
    """Judge a launch, or a list of launches."""
    from memmodel.kernel.question.asking import SeveralLaunches, kernel_text
    from memmodel.limits import within_budget

    asked.words()  # what is wrong with the options is said before the file is read
    out, budget = KernelOutput(asked), asked.cost()
    with within_budget(budget):
        text = kernel_text(asked.file, asked.after_dashes, asked.entry)
        kept = KeptAnswers(asked, text)
        if (answer := kept.find()) is not None:
            return out.kept_answer(answer)
        try:
            verdict = asked.judged(text, budget, out.verdict)
        except SeveralLaunches as several:
            return _check_launches(asked, several, out)
        code = out.after_verdict(verdict)
        if kept.keeps:
            kept.keep(verdict, code)
        return code


def _check_launches(asked: KernelRequest, several: SeveralLaunches, out: KernelOutput) -> Exit:
    """Judge the launches of a list, in the order of the stream."""
    from memmodel.kernel.question import LaunchWords, kernel_text
    from memmodel.kernel.sequence.launches import judged_launches  # loads the engines of litmus tests

    about_one = asked.entry or asked.cta or asked.litmus or asked.any_grid or asked.any_trips or asked.write_baseline
    if about_one or asked.words() != LaunchWords():
        raise InputError(
            f"{several.name}: is a list of launches, to which --grid and its like, --set, --entry, --cta, "
            "--litmus, --any-… and --write-baseline do not apply"
        ) from several
    texts = several.text, *(kernel_text(file, asked.after_dashes) for file in asked.files[1:])
    verdicts = judged_launches(
        texts, several.launches, several.name, compiler=asked.after_dashes, model=asked.whole_model,
        readings=asked.readings, schedules=asked.schedules, assume_pure=asked.assume_pure, unwritten=asked.unwritten,
        budget=asked.cost(), baseline=asked.baseline,
    )  # fmt: skip
    return out.several(verdicts, len(several.launches))


def _fix(asked: KernelRequest) -> Exit:
    """Judge a launch, and look for repairs."""
    from memmodel.kernel.repair.search import WIDTH, fix_kernel
    from memmodel.limits import within_budget

    out, words, budget = KernelOutput(asked), asked.words(), asked.cost()
    with within_budget(budget):
        with ticker(WIDTH) as tick:
            repairs = fix_kernel(
                asked.file, asked.launch, entry=asked.entry, words=words, compiler=asked.after_dashes,
                model=asked.whole_model, ctas=asked.ctas(), schedules=asked.schedules,
                assume_pure=asked.assume_pure, budget=budget, seconds=budget.seconds, progress=tick.done,
                on_verdict=out.verdict, kept=True, baseline=asked.baseline,
            )  # fmt: skip
        return out.after_verdict(repairs.base, repairs)


def _print_launch(asked: KernelRequest) -> Exit:
    """Print the schema of launch descriptions, or one to fill in."""
    from memmodel.kernel import launch
    from memmodel.kernel.check.inputs import entry_of
    from memmodel.kernel.question import kernel_text
    from memmodel.kernel.question.skeleton import skeleton

    if asked.launch_schema:
        say(json.dumps(launch.schema(), indent=1))
    else:
        text = kernel_text(asked.file, asked.after_dashes, asked.entry)
        function = entry_of(text.module, asked.entry)
        say(skeleton(text.module, function, text.names.get(function.name, ())))
    return Exit.AS_EXPECTED
